"""Surrogate and data brought together: the parameters in the model's order, the device, the batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.data import StoredTrajectories, Trajectories
from vcnef.data.arrays import ASSUMED, TIMES
from vcnef.data.rows import bytes_of_one, row_blocks
from vcnef.device import choose_device
from vcnef.evaluation.own_model import EXPECTED, OwnModel
from vcnef.packaged import locate
from vcnef.surrogate import Surrogate
from vcnef.surrogate.doubts import about_fields, about_params, about_points
from vcnef.surrogate.foreign import about_problem, about_unknown, other_than_trained
from vcnef.units import check_units

BLOCK_BYTES = 2**29
"""Of fields at full resolution that are read at once."""

Report = Callable[[str, int, int], None]
"""Called with a label, the amount done and the total."""


def as_surrogate(given: Any, data: Any, name: str | None = None) -> Any:
    """A surrogate, that of a run, the one in a folder or of a packaged model's name; or a module or function of others'
    for these data."""
    if isinstance(given, str | Path):
        return Surrogate.load(locate(given))
    found = getattr(given, "surrogate", given)
    if hasattr(found, "answer"):
        return found
    if not callable(found):
        raise ValueError(
            f"There is no model to judge in {type(found).__name__}; expected a surrogate, a run, a folder, or a module "
            f"or function: {EXPECTED.removeprefix('expected ')}."
        )
    check_trajectories(data)
    if data.problem.varying:
        raise ValueError(
            f"{', '.join(data.problem.varying)} changes with time in these data, but a module or function is told one "
            "value of each parameter. Judge a surrogate that was trained in windows."
        )
    return OwnModel(found, data, name)


def check_trajectories(data: Any) -> None:
    """Whether there is something to predict."""
    if isinstance(data, str | Path):
        raise ValueError(f"Expected trajectories to judge on, got the path {str(data)!r}. Open it with vcnef.open.")
    if not isinstance(data, Trajectories | StoredTrajectories):
        raise ValueError(
            f"Expected trajectories to judge on, got {type(data).__name__}. "
            "Make them of arrays with vcnef.from_arrays(u, t=t, x=x, params=params)."
        )
    if len(data.t) < 2:
        raise ValueError(
            f"The data have {len(data.t)} frame, which is the initial state; expected later ones to judge on. "
            "Give whole trajectories."
        )


def matching_params(surrogate: Any, data: Any) -> Float[Tensor, "n p"] | Float[Tensor, "n t p"]:
    """The parameters of the data in the order of the model; data that do not fit the model are an error."""
    trained, problem = surrogate.problem, data.problem
    for what, expected, got in (
        ("channels", trained.channels, problem.channels),
        ("space axes", trained.ndim, problem.ndim),
    ):
        if expected != got:
            shown = [", ".join(each) if isinstance(each, tuple) else str(each) for each in (expected, got)]
            raise ValueError(
                f"The model expects the {what} {shown[0]}; the data have {shown[1]}. "
                "Give data of the problem that the model was trained on."
            )
    check_units(problem.units, trained.units, "the data", "the model")
    if missing := [name for name in trained.parameters if name not in problem.parameters]:
        raise ValueError(
            f"The model expects the parameters {', '.join(trained.parameters)}; the data have "
            f"{', '.join(problem.parameters) or 'none'}, so {', '.join(missing)} is missing. "
            f"Give it beside the data: params={{{missing[0]!r}: …}} of vcnef.open, --param {missing[0]}=VALUE."
        )
    if unknown := [name for name in problem.varying if name in trained.parameters and name not in trained.varying]:
        raise ValueError(
            f"{', '.join(unknown)} changes with time in these data, but the model was trained on values that do not. "
            "Give data of that kind, or train on these in windows."
        )
    params = data.params.cpu()[..., [problem.parameters.index(name) for name in trained.parameters]]
    if params.ndim == 3 and not trained.varying:
        params = params[:, 0]
    surrogate.scaling.params.check(params, trained)
    return params


def differences(surrogate: Any, data: Any) -> list[str]:
    """What sets these data apart from those of training, where both say it, as notes."""
    made, here, trained = surrogate.provenance.get("generated", {}), data.attributes, surrogate.problem
    noted = {name: getattr(data.problem, name) for name in ("name", "domain", "periodic")}
    others = [name for name in made if name != "seed" and name in here and here[name] != made[name]]
    return [
        *_about_assumed_times(surrogate, data),
        *about_unknown(data.problem.parameters, trained),
        *(other_than_trained(name, here[name], made[name]) for name in others),
        *about_problem(noted, trained),
        *_about_places(surrogate, data),
    ]


def _about_places(surrogate: Any, data: Any) -> list[str]:
    """Of points and parameters, where those of training are left."""
    trained, said = surrogate.problem, []
    # Of another domain it has been said already.
    if data.problem.domain == trained.domain:
        said += about_points(data.grid.cpu(), trained, surrogate.provenance.get("grid"))
    return [*said, *about_params(matching_params(surrogate, data), trained).values()]


class AskedStates:
    """The values of all initial states that a model is judged on, against those of its training."""

    def __init__(self) -> None:
        self._ends: Float[Tensor, "2 c"] | None = None

    def update(self, u: Float[Tensor, "b t *x c"]) -> None:
        """Take in some trajectories, of which the first frame counts."""
        u0 = u[:, 0].flatten(0, -2)
        ends = torch.stack([u0.amin(dim=0), u0.amax(dim=0)])
        if self._ends is not None:
            ends = torch.stack([torch.minimum(ends[0], self._ends[0]), torch.maximum(ends[1], self._ends[1])])
        self._ends = ends

    def doubts(self, surrogate: Any) -> list[str]:
        """What of them was not seen in training, as notes."""
        ranges = surrogate.provenance.get("field_ranges", {})
        if self._ends is None or not ranges:
            return []
        return list(about_fields(self._ends.cpu(), surrogate.scaling.fields, ranges))


def _about_assumed_times(surrogate: Any, data: Any) -> list[str]:
    """Of data that say no times, whether those that they are taken to have are others than in training."""
    trained = surrogate.provenance.get("times", [])
    t = data.t.cpu() - data.t[0].cpu()
    expected = torch.tensor(trained) - (trained[0] if trained else 0.0)
    same = t.shape == expected.shape and torch.allclose(t, expected, rtol=1e-4, atol=1e-4 * float(t[-1]))
    if data.attributes.get(TIMES) != ASSUMED or not trained or same:
        return []
    return [
        f"The data say no times: their {len(t)} frames are taken to be equally spaced from 0 to {float(t[-1]):g}, "
        f"while the {len(trained)} of training go to {float(expected[-1]):g}. Give t of both: from_arrays(u, t=t)."
    ]


def place(surrogate: Any, device: torch.device | str | None) -> tuple[Any, torch.device]:
    """The surrogate on the device, by default the one it is on."""
    here = next((each.device for each in surrogate.model.parameters()), torch.device("cpu"))
    there = here if device is None else choose_device(device)
    return (surrogate if here == there else surrogate.to(there)), there


def blocks(data: Any, batch: int, progress: Report | None) -> Iterator[tuple[Tensor, Tensor]]:
    """Row numbers and fields of all trajectories, a batch or half a gigabyte at a time."""
    if not isinstance(batch, int) or batch < 1:
        raise ValueError(
            f"batch is {batch!r:.40}; expected at least 1, a whole number. Give the number of trajectories predicted "
            "at once."
        )
    for rows in row_blocks(len(data), bytes_of_one(data), most_bytes=BLOCK_BYTES, most=batch):
        yield rows, data.read(rows)
        if progress is not None:
            progress("evaluate", int(rows[-1]) + 1, len(data))
