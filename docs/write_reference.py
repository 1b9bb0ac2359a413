"""Fills in those parts of the documentation that are known already: what the code says of itself, measured errors.

    python docs/write_reference.py

A part stands between `<!-- begin NAME -->` and `<!-- end -->`; what was there before is replaced. A test compares.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
import typer

import vcnef
from vcnef.cli import _app
from vcnef.config import Config, DataSection, sections
from vcnef.models.registry import MODELS, build
from vcnef.presets import list_presets
from vcnef.training import recipe
from vcnef.training.recipe import Recipe

PAGES = Path(__file__).parent
sys.path.append(str(PAGES.parent / "benchmarks"))
FURTHER_PUBLIC = {
    "models": (
        "vcnef.models.registry.build",
        "vcnef.models.registry.list_models",
        "vcnef.models.interface.TrajectoryModel",
        "vcnef.models.interface.Stepper",
        "vcnef.models.rollout.Rollout",
        "vcnef.models.rollout.TimeInterpolated",
        "vcnef.models.derivative.time_derivative",
        "vcnef.models.vcnef.VCNeF",
        "vcnef.models.release.from_release",
    ),
}
"""Public names of rooms that are used file by file."""
PART = re.compile(r"(<!-- begin (\w+)(?: (\w+))? -->\n).*?(<!-- end -->)", re.DOTALL)


def fill(page: str) -> str:
    """The page with its parts as the code has them now."""
    return PART.sub(lambda found: f"{found[1]}\n{WRITERS[found[2]](*filter(None, [found[3]]))}\n\n{found[4]}", page)


def add_models(page: str) -> str:
    """Return the page on models with a section for each that has none: what its builder says, and its options."""
    for name, builder in MODELS.items():
        if f"\n## {name}\n" not in page:
            about = inspect.getdoc(builder).partition("\n")[0]
            section = f"## {name}\n\n{about}\n\n<!-- begin options {name} -->\n<!-- end -->\n\n"
            page = page.replace("## Your own\n", f"{section}## Your own\n")
    return page


def write_commands() -> str:
    """Every verb with its help, arguments and options."""
    command = typer.main.get_command(_app())
    return "\n\n".join(_command(name, verb) for name, verb in command.commands.items())


def write_counts() -> str:
    """Weights of every model with its default sizes, for one field without parameters."""
    rows = [(f"[`{name}`](#{name})", *(count(name, ndim=ndim) for ndim in (1, 2, 3))) for name in MODELS]
    return table(("model", "1D", "2D", "3D"), rows)


def write_options(name: str) -> str:
    """The options of a model's builder, with their defaults and what its docstring says of them."""
    builder = MODELS[name]
    defaults = {
        each.name: each.default
        for each in inspect.signature(builder).parameters.values()
        if each.kind is each.KEYWORD_ONLY
    }
    said: dict[str, str] = {}
    for names, text in re.findall(r"^(\w+(?:, \w+)*): (.*(?:\n +.*)*)", inspect.getdoc(builder), re.MULTILINE):
        said |= dict.fromkeys(names.split(", "), " ".join(text.split()))
    rows = [(f"`{option}`", _value(default), said.get(option, "")) for option, default in defaults.items()]
    return table(("option", "default", "meaning"), rows)


def write_keys(section: str) -> str:
    """The keys of a section of a configuration, with the strings that stand below them in the source."""
    record, module = {"train": (Recipe, recipe), "data": (DataSection, sections)}[section]
    tree = ast.parse(inspect.getsource(module))
    body = next(each for each in tree.body if isinstance(each, ast.ClassDef) and each.name == record.__name__).body
    values, rows = record(), []
    for line, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(line, ast.AnnAssign):
            said = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
            choices = re.findall(r'"(\w+)"', ast.unparse(line.annotation).replace("'", '"'))
            one_of = f"One of {', '.join(f'`{each}`' for each in choices)}. " if choices else ""
            default = _value(getattr(values, line.target.id))
            rows.append((f"`{line.target.id}`", default, f"{one_of}{' '.join(said.split())}".strip()))
    return table(("key", "default", "meaning"), rows)


def write_presets() -> str:
    """Presets for experiments; those for tests and for the demo are left out."""
    names = [name for name in list_presets() if not name.startswith(("debug/", "demo/"))]
    lines = list_presets()
    return table(
        ("preset", "epochs", "what it is"),
        [(f"`{name}`", Config.load(name).train.epochs, lines[name]) for name in names],
    )


def write_results(kind: str) -> str:
    """What `benchmarks/accuracy.py` has measured, beside the paper's numbers."""
    import accuracy_tables

    titles, rows = accuracy_tables.TABLES[kind](accuracy_tables.read_results())
    return table(titles, rows) if rows else "Nothing has been measured yet."


def write_api(room: str) -> str:
    """Return a place for every public name of a room, which mkdocstrings fills in from the source."""
    module = vcnef if room == "vcnef" else import_module(f"vcnef.{room}")
    names = getattr(module, "__all__", ()) or FURTHER_PUBLIC[room]
    # A submodule has a page of its own.
    names = [name for name in names if not inspect.ismodule(getattr(module, name, None))]
    places = [name if "." in name else f"{module.__name__}.{name}" for name in names]
    return "\n\n".join(f"::: {place}" for place in places)


def write_pays() -> str:
    """The packaged models beside the solver at equal error, as `benchmarks/pays.py` has measured them."""
    import pays

    titles, rows = pays.table()
    return table(titles, rows) if rows else "Nothing has been measured yet."


def count(name: str, **sizes: int) -> str:
    """How many numbers a model learns; a complex weight is two. It is described, never allocated."""
    try:
        with torch.device("meta"):
            model = build(name, **{"channels": 1} | sizes)
    except ValueError:  # the model is not for this dimension
        return "–"
    return f"{sum(weight.numel() * (1 + weight.is_complex()) for weight in model.parameters()):,}"


def table(titles: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    lines = [tuple(titles), *rows]
    lines.insert(1, ("---",) * len(lines[0]))
    return "\n".join(f"| {' | '.join(str(cell).replace('|', '&#124;') for cell in line)} |" for line in lines)


def _command(name: str, verb: Any) -> str:
    options = [_option(each) for each in verb.params if each.name != "help"]
    titles = ("", "default", "meaning")
    said = inspect.getdoc(verb.callback)  # with its lines as they are, which the command's own help makes flow
    return f"## vcnef {name}\n\n{said}\n\n{table(titles, options) if options else 'No options.'}"


def _option(each: Any) -> tuple[str, str, str]:
    if each.param_type_name == "argument":
        name = (each.metavar or each.name).upper()
        spelled, default = f"`{name}`", "required" if each.required else "–"
    else:
        spelled = " ".join(f"`{one}`" for one in (*each.opts, *each.secondary_opts))
        default = "required" if each.required else _value(each.default)
    return spelled, default, " ".join((each.help or "").split())


def _value(value: Any) -> str:
    if value is None or value in ((), {}):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"`{value}`"


WRITERS: dict[str, Callable[..., str]] = {
    "commands": write_commands,
    "counts": write_counts,
    "options": write_options,
    "keys": write_keys,
    "presets": write_presets,
    "api": write_api,
    "results": write_results,
    "pays": write_pays,
}

if __name__ == "__main__":
    for path in sorted(PAGES.rglob("*.md")):
        old = path.read_text(encoding="utf-8")
        new = fill(add_models(old) if path.name == "models.md" else old)
        if new != old:
            path.write_text(new, encoding="utf-8")
            print(f"Wrote {path.name}.")
