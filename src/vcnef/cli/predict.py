"""`vcnef predict`: trajectories from initial states."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vcnef.cli._options import Device, Layout

if TYPE_CHECKING:
    import numpy as np

    from vcnef.problem import Problem


def predict(
    run: Annotated[Path, typer.Argument(help="A run folder, the model folder inside, or a packaged model's name.")],
    input_path: Annotated[Path, typer.Option("--input", help="Initial states: .nc, .npy, .npz or .hdf5.")],
    times: Annotated[str, typer.Option(help="Times since the initial state: first:last:count, or 0,0.1,0.5.")],
    out: Annotated[Path, typer.Option(help="Where to write: .nc (labelled), .npz, .npy or .hdf5.")],
    param: Annotated[
        list[str] | None,
        typer.Option(help="A parameter of the equation: nu=0.002, or one value per initial state: nu=0.001,0.002."),
    ] = None,
    layout: Layout = None,
    param_times: Annotated[
        str | None,
        typer.Option(help="Times since the initial state at which --param lists values that change with time."),
    ] = None,
    start: Annotated[
        float | None,
        typer.Option(help="Of a model trained with explicit_time: when the initial states are, on the data's clock."),
    ] = None,
    memory: Annotated[str, typer.Option(help="Memory for what is computed at once.")] = "2GB",
    device: Device = None,
    precision: Annotated[
        str, typer.Option(help="On a GPU: fp16, bf16, tf32 or fp32. A CPU takes bf16, and else fp32.")
    ] = "fp16",
    tolerance: Annotated[
        float | None, typer.Option(help="Halve windows that differ from their two halves by more than this.")
    ] = None,
) -> None:
    """Predict trajectories from initial states at any times, points and parameters, and write them with their names."""
    from vcnef.checks import check_file
    from vcnef.packaged import locate

    # A mistyped path is answered before torch is imported.
    folder = locate(run)
    check_file(input_path, "Give the initial states as --input FILE.")

    from vcnef.cli._initial_states import read_initial_states
    from vcnef.cli._outputs import check_apart
    from vcnef.cli._predictions import check_points, check_writable, write_prediction
    from vcnef.cli._settings import parse_settings, parse_times
    from vcnef.cli._surrogates import load_surrogate, plain_warnings
    from vcnef.spelling import spell_bytes
    from vcnef.surrogate.points import are_scattered

    instants, given = parse_times(times), parse_settings(param or [], "--param")
    listed_at = None if param_times is None else parse_times(param_times, "--param-times")
    check_writable(out, instants)
    check_apart(out, "--out", "prediction", input=[input_path])
    surrogate = load_surrogate(folder, device)
    with plain_warnings():
        states = read_initial_states(input_path, surrogate.problem, given, layout, surrogate.history)
    check_params(surrogate.problem, states.params)
    check_points(out, are_scattered(states.x, surrogate.problem.ndim))
    if start is None and surrogate.scaling.explicit_time is not None:
        start = states.start
    begun = time.monotonic()
    with plain_warnings():
        u = surrogate.predict(
            states.u0, instants, states.params or None, states.x, memory, precision,
            layout=states.layout, tolerance=tolerance, params_t=listed_at, start=start,
        )  # fmt: skip
    broken = count_broken(u.values)
    if broken:
        typer.echo(f"Warning: {broken} of {len(u)} predictions are not finite.", err=True)
    if tolerance is not None:
        typer.echo(describe_windows(u.attrs))
    write_prediction(out, u, surrogate.problem)
    seconds, size = time.monotonic() - begun, spell_bytes(out.stat().st_size)
    shape = " × ".join(f"{size} {name}" for name, size in u.sizes.items())
    typer.echo(f"{out}: {shape}, {size}, in {seconds:.1f} s.")


def check_params(problem: Problem, given: Mapping[str, Any]) -> None:
    """Raise an error where a parameter is missing that the model knows several values of."""
    from vcnef.surrogate.inputs import check_names

    check_names(problem, given)
    for name in problem.parameters:
        low, high = problem.ranges.get(name, (0.0, 1.0))
        if name not in given and low != high:
            trained = f"; the model was trained on {low:g} to {high:g}" if name in problem.ranges else ""
            raise ValueError(f"The parameter {name} is missing{trained}. Give it as --param {name}=VALUE.")


def describe_windows(steps: Mapping[str, Any]) -> str:
    """Return how an answer with a tolerance was composed."""
    fewest, most = min(steps["windows"]), max(steps["windows"])
    count = f"{most}" if fewest == most else f"{fewest} to {most}"
    return (
        f"{count} windows, the shortest {steps['shortest_window']:.4g} long, in {steps['network_calls']} calls of the "
        f"network; the estimated error is up to {max(steps['estimated_error']):.1e}."
    )


def count_broken(u: np.ndarray) -> int:
    """Return the number of trajectories that are not finite somewhere."""
    import numpy as np

    return int((~np.isfinite(u).reshape(len(u), -1).all(axis=1)).sum())
