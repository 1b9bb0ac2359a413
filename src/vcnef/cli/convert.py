"""`vcnef convert`: a checkpoint of the authors' release as a model folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from vcnef.models.vcnef import VCNeF
    from vcnef.problem import Problem

GAS = ("density", "pressure", "vx", "vy", "vz")


def convert(
    checkpoint: Annotated[Path, typer.Argument(help="The .pt file of the release.")],
    ndim: Annotated[int, typer.Option(help="Space axes of its model: 1, 2 or 3.")],
    out: Annotated[Path, typer.Option(help="The model folder to write.")],
    heads: Annotated[int, typer.Option(help="Attention heads, which no weight tells.")] = 8,
    name: Annotated[str, typer.Option(help="Name of the problem, e.g. burgers.")] = "custom",
    channels: Annotated[str | None, typer.Option(help="Names of the fields: density,pressure,vx.")] = None,
    params: Annotated[str | None, typer.Option(help="Names of the PDE parameters in their order: eta,zeta.")] = None,
    domain: Annotated[str, typer.Option(help="low:high of each axis, one for all or 0:1,0:2.")] = "0:1",
    horizon: Annotated[float, typer.Option(help="The physical time that the model knows as 1.")] = 1.0,
) -> None:
    """Turn a checkpoint of the authors' release into a model folder, for `vcnef predict` and `vcnef.load`.

    The release scales neither fields nor parameters, so the folder says what their numbers mean and changes none.
    """
    from shlex import quote

    from vcnef.checks import check_file

    # Whatever is mistyped is answered before torch is imported.
    if out.exists() and (out.is_file() or any(out.iterdir())):
        raise FileExistsError(f"{out} exists already. Choose another folder.")
    if ndim not in (1, 2, 3):
        raise ValueError(f"--ndim is {ndim}; expected 1, 2 or 3.")
    if not 0.0 < horizon < float("inf"):
        raise ValueError(f"--horizon is {horizon:g}; expected a positive time.")
    check_file(checkpoint, "Give the path of a .pt file of the release.")

    from vcnef.cli._tables import count_weights
    from vcnef.data import Scaling
    from vcnef.models.release import from_release
    from vcnef.surrogate import Surrogate

    model = from_release(checkpoint, ndim=ndim, heads=heads)
    problem = _problem(model, name, channels, params, domain)
    options = _options(model, heads)
    scaling = Scaling.identity(problem, horizon)
    surrogate = Surrogate(model, "vcnef", options, problem, scaling, {"release": checkpoint.name})
    surrogate.save(out)
    typer.echo(
        f"{out}: VCNeF of {count_weights(model)} weights, {', '.join(problem.channels)} in {ndim}D, to t = {horizon:g}."
    )
    typer.echo(f"Use it with `vcnef predict {quote(str(out))}` or vcnef.load({str(out)!r}).")


def _problem(model: VCNeF, name: str, channels: str | None, params: str | None, domain: str) -> Problem:
    from vcnef.problem import Problem

    usual = {1: ("u",), model.ndim + 2: GAS[: model.ndim + 2]}.get(model.channels, ())
    fields = tuple(channels.split(",")) if channels else usual
    parameters = tuple(params.split(",")) if params else ()
    for option, names, count in (("--channels", fields, model.channels), ("--params", parameters, model.params)):
        if len(names) != count:
            given = ", ".join(names) or "nothing"
            raise ValueError(f"{option} names {given}, but the checkpoint has {count}. Name each, as in {option} a,b.")
    return Problem(name, fields, parameters, _box(domain, model.ndim))


def _box(domain: str, ndim: int) -> tuple[tuple[float, float], ...]:
    try:
        axes = []
        for axis in domain.split(","):
            low, high = map(float, axis.split(":"))
            axes.append((low, high))
        if len(axes) == 1:
            axes *= ndim
        box = tuple(axes)
    except ValueError:
        raise ValueError(f"--domain {domain} is not understood; write low:high, e.g. -1:1 or 0:1,0:2.") from None
    if len(box) != ndim:
        raise ValueError(f"--domain {domain} has {len(box)} axes; expected {ndim}, or one for all.")
    return box


def _options(model: VCNeF, heads: int) -> dict[str, object]:
    """Return what the registry builds the same network from."""
    from vcnef.models.vcnef import PatchEncoder

    patches: tuple[int, ...] = ()
    if isinstance(model.encoder, PatchEncoder):
        patches = (4, 16)
    return {
        "variant": "release",
        "width": model.decoder.get_parameter("norm.weight").numel(),
        "heads": heads,
        "depth": len(model.blocks) - 1,  # a norm follows the blocks
        "modulations": len(model.modulations),
        "patches": patches,
    }
