"""What a surrogate is asked beyond what it was trained on, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf, log
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.data import Scaling
from vcnef.data.normalise import Normaliser
from vcnef.grid import spell_sides
from vcnef.models.interface import TrajectoryModel
from vcnef.problem import SPACE, Problem, within
from vcnef.surrogate.inputs import FAR_FEWER, Question
from vcnef.surrogate.points import SCATTERED, UNIFORM, arrangement

if TYPE_CHECKING:
    from vcnef.surrogate.surrogate import Surrogate

MARGIN = 0.1
"""What was seen in training, of a field, an axis or a network's time, may be left by this part of it."""


def doubts(
    question: Question, problem: Problem, scaling: Scaling, provenance: Mapping[str, Any], model: TrajectoryModel
) -> Iterator[str]:
    """One sentence for each way in which the question lies outside what was trained."""
    params = _about_own_params(question, problem, scaling) | about_params(question.params, problem)
    yield from params.values()
    yield from about_fields(question.u0, scaling.fields, provenance.get("field_ranges", {}))
    yield from about_points(question.grid, problem, provenance.get("grid"))
    yield from _about_means(question, provenance.get("conserved", {}).get("channels", ()))
    yield from about_resolution(question.grid.shape[:-1], provenance.get("resolution"), model)


def about_params(params: Float[Tensor, "*b p"], problem: Problem) -> dict[str, str]:
    """One sentence for each parameter outside of its range in training, by its name."""
    said = {}
    for name, (low, high) in problem.ranges.items():
        column = params[..., problem.parameters.index(name)].flatten()
        if not within(column, low, high).all():
            asked = f"{column.min():.4g} to {column.max():.4g}" if len(column) > 1 else f"{column[0]:.4g}"
            trained = f"the surrogate was trained on {low:g} to {high:g}"
            said[name] = f"{name} is {asked}; {trained}. Its answer is extrapolated."
    return said


def _about_own_params(question: Question, problem: Problem, scaling: Scaling) -> dict[str, str]:
    """As the network sees them: in the unit of time of each state."""
    if scaling.own_time is None:
        return {}
    scaled = scaling.units(question.u0, question.params).params(question.params)
    own = scaling.params.unscale(scaled)
    low, high = scaling.params.unscale(torch.tensor([[-1.0], [1.0]]).expand(2, scaled.shape[1]))
    said = {}
    for index, name in enumerate(problem.parameters):
        row = int(scaled[:, index].abs().argmax())
        if scaled[row, index].abs() > 1 + MARGIN:
            asked = f"{question.params[row, index]:.4g}, in the own time of its u0 {own[row, index]:.4g}"
            trained = f"the surrogate was trained on {low[index]:.4g} to {high[index]:.4g} of that"
            said[name] = f"{name} is {asked}; {trained}. Its answer is extrapolated."
    return said


def about_fields(u0: Float[Tensor, "*b c"], scales: Normaliser, ranges: Mapping[str, Any]) -> Iterator[str]:
    """One sentence for each channel of initial states that leaves what was seen in training."""
    for channel, (low, high) in ranges.items():
        place = scales.channels.index(channel)
        least, most = (float(end) for end in u0[..., place].aminmax())
        # As the network sees them: below a density that spans decades there is little room.
        measure = log if scales.log[place] else float
        room = MARGIN * (measure(high) - measure(low))
        if measure(least) < measure(low) - room or measure(most) > measure(high) + room:
            yield (
                f"u0 has {channel} between {least:.4g} and {most:.4g}; in training it was between "
                f"{low:.4g} and {high:.4g}. The answer is extrapolated; check the units of u0."
            )


def about_points(grid: Float[Tensor, "*x D"], problem: Problem, trained: str | None) -> Iterator[str]:
    """Points are to fill the domain: of the rest u0 says nothing."""
    here = arrangement(grid)
    if trained not in (None, here):
        yield f"u0 is given on {here}; the surrogate was trained on {trained}. Its answer may be worse there."
    scattered = (len(grid) ** (1 / problem.ndim),) * problem.ndim
    sides = scattered if here == SCATTERED else grid.shape[:-1]
    lines = zip(SPACE, grid.flatten(0, -2).T, problem.domain, sides, strict=False)
    for name, line, (low, high), side in lines:
        # The outermost of few points lie well inside.
        room = max(MARGIN, 1 / side) * (high - low)
        first, last = float(line.min()), float(line.max())
        if abs(first - low) > room or abs(last - high) > room:
            yield (
                f"{name} goes from {first:.4g} to {last:.4g}; the surrogate was trained on {low:g} to {high:g}. "
                "Its answer is extrapolated; give u0 on that domain."
            )


def _about_means(question: Question, conserved: Sequence[str]) -> Iterator[str]:
    here = arrangement(question.grid)
    if conserved and here != UNIFORM:
        yield (
            f"The surrogate keeps the mean of {', '.join(conserved)} over the points, which on {here} is no integral. "
            "Give u0 on a uniform grid where that matters."
        )


def about_resolution(points: Sequence[int], trained: Sequence[int] | None, model: TrajectoryModel) -> Iterator[str]:
    """Far fewer points than in training, or a spacing that a model does not know."""
    sides = tuple(points)
    if not trained or len(trained) != len(sides):
        return
    coarser = [side0 / side for side, side0 in zip(sides, trained, strict=True)]
    if max(coarser) > FAR_FEWER or (max(coarser) >= 2 and max(coarser) >= 2 * min(coarser)):
        yield (
            f"u0 is given on {spell_sides(sides)} points; the surrogate was trained on {spell_sides(trained)}, many "
            "more. If an axis of u0 is not what it was taken for, say layout=...; the answer means little otherwise."
        )
    elif not model.suits(sides, tuple(trained)):
        here, there = spell_sides(sides), spell_sides(trained)
        yield (
            f"u0 is given on {here} points; the surrogate was trained on {there}, and its model knows that spacing "
            "alone. Its answer may be much worse there."
        )


def about_times(question: Question, surrogate: Surrogate) -> Iterator[str]:
    """Times since u0 beyond the horizon, and absolute ones that training did not have."""
    scaling, horizon = surrogate.scaling, surrogate.horizon
    last, units = float(question.t.max()), scaling.units(question.u0, question.params)
    # In its own time, a film that is faster than those of training goes on for longer.
    further = units.rate is not None and bool(units.times(question.t).max() > 1 + MARGIN)
    own = scaling.span / float(units.rate.max()) if further else inf
    if last > min(horizon, own) * (1 + 1e-5):
        trained = f"{own:.4g} for a state as fast as u0" if own < horizon else f"{horizon:g}"
        rest = f"composed of windows of {surrogate.window:g}, and errors grow" if surrogate.composes else "extrapolated"
        yield f"t goes to {last:.4g}; the surrogate was trained to {trained}. The rest is {rest}."
    if scaling.explicit_time is not None:
        yield from _about_absolute_times(question, scaling.explicit_time, last)


def _about_absolute_times(question: Question, trained: tuple[float, float], last: float) -> Iterator[str]:
    starts = torch.as_tensor(trained[0] if question.start is None else question.start).double()
    begin, end, room = float(starts.min()), float(starts.max()) + last, 1e-5 * (trained[1] - trained[0])
    if begin < trained[0] - room or end > trained[1] + room:
        yield (
            f"The clock of the data goes from {begin:.4g} to {end:.4g} in this answer; the surrogate was trained on "
            f"{trained[0]:.4g} to {trained[1]:.4g}. What the equation does at other times is extrapolated."
        )
