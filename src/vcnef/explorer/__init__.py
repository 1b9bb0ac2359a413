"""Surrogates in the browser: a workbench that answers questions in JSON, and a local server with one page for it."""

from vcnef.explorer.server import ExplorerServer
from vcnef.explorer.workbench import Workbench

__all__ = ["ExplorerServer", "Workbench"]
