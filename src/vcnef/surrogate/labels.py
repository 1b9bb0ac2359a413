"""The answer of a surrogate with the names of its dimensions, coordinates and units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.data.conditions import Conditions
from vcnef.data.labelled import label_points, parameter_over
from vcnef.labels import CHANNEL, SAMPLE, TIME
from vcnef.problem import Problem

if TYPE_CHECKING:
    import xarray as xr

    from vcnef.surrogate.inputs import Question


def label(u: Float[Tensor, "b t *x c"], question: Question, problem: Problem) -> xr.DataArray:
    """(sample, t, x[, y[, z]], channel), or (sample, t, point, channel) on scattered points."""
    import xarray as xr

    space, points = label_points(question.grid)
    coordinates: dict[str, Any] = {TIME: question.t.numpy(), CHANNEL: list(problem.channels), **points}
    params = question.params
    if question.params_t is not None:
        known = Conditions(params, question.params_t.double())
        params = torch.stack([known.at(float(time)) for time in question.t], dim=1)
    for index, name in enumerate(problem.parameters):
        coordinates[name] = parameter_over(problem, name, params[..., index])
    array = xr.DataArray(u.numpy(), coordinates, (SAMPLE, TIME, *space, CHANNEL), name=problem.name)
    for name in (TIME, *points, *problem.parameters):
        unit = problem.units.get(name, problem.units.get("x") if name in points else None)
        if unit:
            array[name].attrs["units"] = unit
    units = [problem.units.get(channel, "") for channel in problem.channels]
    if any(units):
        array = array.assign_coords(units=(CHANNEL, units))
    return array
