"""Neural surrogates of time-dependent parametric PDEs."""

from vcnef.models.registry import build, list_models
from vcnef.models.release import from_release
from vcnef.problem import Problem

__all__ = ["Problem", "build", "from_release", "list_models"]
__version__ = "0.1.0"
