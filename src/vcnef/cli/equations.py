"""`vcnef equations`: what is known of which equation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from vcnef.pde import Equation


def equations(
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list, for programs.")] = False,
) -> None:
    """List the equations that are known, with their fields, parameters and domains.

    Data that name one of them have its residual for the physics-informed loss and its solver beside them. Your own are
    listed too where their script is given: vcnef --with mine.py equations
    """
    import json

    from vcnef.cli._tables import print_table
    from vcnef.pde import equations as known

    records = [_record(each) for each in known().values()]
    if as_json:
        typer.echo(json.dumps(records, indent=2, ensure_ascii=False))
        return
    rows = [_row(record) for record in records]
    print_table(("equation", "fields", "parameters", "domain", "known", ""), rows)


def _record(equation: Equation) -> dict[str, Any]:
    from vcnef.pde.equation import OWN

    return {
        "name": equation.name,
        "about": _headline(equation),
        "channels": list(equation.channels),
        "parameters": equation.defaults,
        "ranges": {name: list(ends) for name, ends in equation.ranges.items()},
        "domain": [list(axis) for axis in equation.problem.domain],
        "periodic": equation.periodic,
        "residual": equation.law is not None,
        "solver": equation.solvable,
        "initial_states": equation.sampler is not None,
        "own": equation.generation == OWN,
    }


def _row(record: dict[str, Any]) -> tuple[str, ...]:
    values = []
    for name, value in record["parameters"].items():
        low, high = record["ranges"].get(name, (value, value))
        values.append(f"{name}={value:g}" if low == high else f"{name}={low:g}:{high:g}")
    box = " × ".join(f"({low:g}, {high:g})" for low, high in record["domain"])
    there = [what for what in ("residual", "solver", "initial_states") if record[what]]
    return (
        record["name"],
        ", ".join(record["channels"]),
        ", ".join(values) or "-",
        box if record["periodic"] else f"{box}, walls",
        ", ".join(there).replace("_", " ") or "-",
        record["about"],
    )


def _headline(equation: Equation) -> str:
    """Return the first line that the code says of it."""
    from inspect import getdoc

    from vcnef.pde import EQUATIONS

    source: Any = EQUATIONS.get(equation.name, equation.rate)
    said = getdoc(getattr(source, "func", source)) if source is not None else None
    return said.splitlines()[0] if said else ""
