"""The `vcnef` command. Each file here is a verb: a function of the file's name, whose docstring is its help.

A verb's file imports nothing heavy at its top, so that `vcnef --help` is quick.
"""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from inspect import getdoc
from io import TextIOWrapper
from pathlib import Path
from textwrap import shorten
from typing import Annotated, Any, NoReturn

import typer

# Typer has carried its own copy of click since 0.2x; the base class of usage errors is found through either.
_USAGE_ERROR: Any = typer.BadParameter.__mro__[2]

INTERRUPTED = 130
"""Exit code after an interrupt, 128 and the number of its signal, as shells have it."""


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run one verb. Bad input is one plain sentence on stderr and exit code 2."""
    if isinstance(sys.stdout, TextIOWrapper):
        # Where output goes to a file, Windows writes letters of its own code page only: one like ν is no error.
        sys.stdout.reconfigure(errors="replace")
    try:
        command = typer.main.get_command(_app())
        status = command.main(args=arguments, prog_name="vcnef", standalone_mode=False)
    except _USAGE_ERROR as error:
        _stop(error.format_message(), 2)
    except (ValueError, OSError) as error:
        _stop(str(error), 2)
    except (MemoryError, RuntimeError) as error:
        if not _is_about_memory(error):
            raise
        reason = shorten(str(error) or "none is left", 200)
        _stop(f"There is not enough memory ({reason}). Ask for less at once: fewer points, times or samples.", 2)
    except (typer.Abort, KeyboardInterrupt):
        _stop("Stopped.", INTERRUPTED)
    sys.exit(status if isinstance(status, int) else 0)


def _app() -> typer.Typer:
    app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
    app.callback()(_describe)
    for verb in pkgutil.iter_modules(__path__):
        if not verb.name.startswith("_"):
            function = getattr(import_module(f"{__name__}.{verb.name}"), verb.name)
            app.command(verb.name, help=_flowing(function), no_args_is_help=False)(_interruptible(function))
    return app


def _flowing(verb: Callable[..., None]) -> str:
    """Return its docstring with a line per paragraph: a terminal is seldom as wide as the source."""
    paragraphs = (getdoc(verb) or "").split("\n\n")
    return "\n\n".join(" ".join(each.split()) for each in paragraphs)


def _interruptible(verb: Callable[..., None]) -> Callable[..., None]:
    """Return the verb, whose interrupt is said here: of one that gets to Typer nothing but the exit code is left."""

    @wraps(verb)
    def run(**options: Any) -> None:
        try:
            verb(**options)
        except KeyboardInterrupt as stop:
            _stop(str(stop) or "Stopped.", getattr(stop, "status", INTERRUPTED))

    return run


def _say_version(asked: bool) -> bool:
    if asked:
        from vcnef import __version__

        typer.echo(f"vcnef {__version__}")
        raise typer.Exit
    return asked


def _run_script(path: str | None) -> str | None:
    """Run a user's script, so that what it defines is known to the verb after it."""
    if path is not None:
        from runpy import run_path

        if not Path(path).is_file():
            raise FileNotFoundError(f"There is no script {path}. Give a Python file that defines what is your own.")
        run_path(path)
    return path


def _describe(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Say which version this is.")
    ] = False,
    script: Annotated[
        str | None,
        typer.Option(
            "--with",
            metavar="FILE",
            callback=_run_script,
            help="Run a script first, for its equations and models.",
        ),
    ] = None,
) -> None:
    """Neural surrogates of time-dependent parametric PDEs."""


def _is_about_memory(error: Exception) -> bool:
    """PyTorch has no class of its own for an allocation that fails on a CPU."""
    said = ("out of memory", "not enough memory", "can't allocate memory")
    return isinstance(error, MemoryError) or any(words in str(error) for words in said)


def _stop(message: str, status: int) -> NoReturn:
    sys.stderr.write(message.rstrip() + "\n")
    sys.exit(status)
