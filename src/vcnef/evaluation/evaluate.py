"""Every metric of a surrogate on trajectories that it was not trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.data.arrays import columns_of
from vcnef.evaluation.adaptive import AdaptiveAnswers
from vcnef.evaluation.baselines import Baselines, mean_of_training
from vcnef.evaluation.break_even import measure_break_even
from vcnef.evaluation.cost import device_name, follows_solver, measure_cost
from vcnef.evaluation.data_error import data_error
from vcnef.evaluation.groups import Grouping, group_by_value
from vcnef.evaluation.held_out import Judged, choose_judged
from vcnef.evaluation.inputs import (
    AskedStates,
    Report,
    as_surrogate,
    blocks,
    check_trajectories,
    differences,
    matching_params,
    place,
)
from vcnef.evaluation.judge import Judge
from vcnef.evaluation.record import Evaluation, Group, Result
from vcnef.evaluation.selections import (
    Selection,
    about_later_frames,
    as_trained,
    beyond,
    finer_in_space,
    finer_in_time,
    known_of_time,
)
from vcnef.evaluation.tables import number
from vcnef.surrogate.instance import check_instance


def evaluate(
    surrogate: Any,
    data: Any,
    *,
    space: Sequence[int] = (),
    time: Sequence[int] = (),
    horizon: float | int | None = None,
    tolerance: float | int | None = None,
    split: str | None = None,
    batch: int = 64,
    device: torch.device | str | None = None,
    solver: bool = True,
    break_even: bool = False,
    name: str | None = None,
    progress: Report | None = None,
) -> Evaluation:
    """All metrics on what the model has not seen of the data, at the resolution and times of training.

    Those are all of data of which it was trained on none, and the test split of others; `split` asks for "train",
    "valid", "test" or "all" by name. Where the model cannot tell, it is the test split, and a note says so.

    `space` and `time` add zero-shot super-resolution: points along the first axis and frames (the initial one
    included) at which the same trajectories are predicted and judged. The data must then be opened at full
    resolution. Both keep the horizon of training. `horizon` goes on to so many of them, as far as the data do. With
    `tolerance` windows are of adaptive lengths, as in `predict`; a note says how many there were. With `solver`, the
    classical solver of a known equation is timed beside the model, on the same device and trajectories. `break_even`
    runs it on coarser grids too: how fast it is at the model's error, and after how many solves the model is cheaper,
    each with the settings that make it fastest, which takes a minute or two: solvers are compiled for it.

    In place of a surrogate, the run that `fit` returned, the folder of a run or model, or the name of a packaged model
    will do; and so will any `nn.Module` or function (u0, t, params) -> u, or (u0, grid, t, params) -> u, in the units
    and layout of the data. `name` is that of the model in tables.
    """
    surrogate, device = place(as_surrogate(surrogate, data, name), device)
    chosen, params, plan = prepare(surrogate, data, space=space, time=time, split=split, horizon=horizon)
    judged = chosen.data
    groups = group_by_value(judged, surrogate.problem, surrogate.provenance)
    beside = Baselines(plan.base, mean_of_training(chosen.training, plan.base))
    answering = surrogate if tolerance is None else AdaptiveAnswers(surrogate, tolerance)
    asked = AskedStates()
    judges = _judge(answering, judged, params, plan, groups, (beside, asked), batch, device, progress)
    about_windows = [] if tolerance is None else answering.notes()
    solver, notes = follows_solver(judged, device) if solver else (False, [])
    results, more = _results(answering, judged, params, plan, judges, device, solver, progress)
    notes += [*more, *about_windows]
    of_data = data_error(judged, device) if solver else None
    if of_data is not None and results[plan.base].value("nrmse") < of_data:
        notes.append(
            f"The data themselves are off by up to about {number(of_data)}, more than the model is off from them: its "
            "error against the true solution may be as large as that. Judge it on data of a finer grid."
        )
    paid = None
    if break_even:
        base = results[plan.base]
        paid, more = measure_break_even(surrogate, judged, params, plan.base, base.value("nrmse"), device)
        notes += more
    several = _groups(groups, judges[plan.base]) if set(judged.problem.parameters) - set(judged.problem.varying) else ()
    if len(several) > 1 and surrogate.problem.ranges and not surrogate.provenance.get("parameter_values"):
        notes.append("The model does not list the values it was trained on; those in its range count as seen.")
    return Evaluation(
        model=name or surrogate.name,
        problem=judged.problem.name,
        channels=judged.problem.channels,
        split=chosen.split,
        samples=len(judged),
        device=device_name(device),
        result=results[plan.base],
        space=tuple(_changed(results[each], results[plan.base]) for each in plan.space),
        time=tuple(_changed(results[each], results[plan.base]) for each in plan.time),
        beyond=results[plan.beyond] if plan.beyond else None,
        horizon=surrogate.horizon,
        parameters=several,
        baselines=beside.errors(),
        data_nrmse=of_data,
        break_even=paid,
        nrmse=judges[plan.base].per_sample.numpy(),
        params=columns_of(judged.params.cpu().numpy(), judged.problem),
        notes=tuple(dict.fromkeys([*differences(surrogate, judged), *asked.doubts(surrogate), *notes])),
    )


@dataclass(frozen=True)
class Plan:
    """The selection of training, and ascending ones, it among them, in space and in time."""

    base: Selection
    space: tuple[Selection, ...]
    time: tuple[Selection, ...]
    beyond: Selection | None
    """Up to several horizons."""
    as_trained: bool
    """Whether the first one is known to be how the model was trained."""
    notes: tuple[str, ...]

    def all(self) -> list[Selection]:
        further = [self.beyond] if self.beyond else []
        return list(dict.fromkeys([self.base, *self.space, *self.time, *further]))


def prepare(
    surrogate: Any,
    data: Any,
    *,
    space: Sequence[int],
    time: Sequence[int],
    split: str | None = None,
    horizon: float | int | None = None,
) -> tuple[Judged, Float[Tensor, "n p"] | Float[Tensor, "n t p"], Plan]:
    """What is judged, its parameters and the plan; what does not fit the model is an error."""
    check_trajectories(data)
    chosen = choose_judged(surrogate, data, split)
    params = matching_params(surrogate, chosen.data)
    plan = make_plan(surrogate, chosen.data, space, time, horizon)
    _check_instance(surrogate, chosen.data, params, plan)
    return chosen, params, replace(plan, notes=(*chosen.notes, *plan.notes))


def make_plan(
    surrogate: Any, data: Any, space: Sequence[int], time: Sequence[int], horizon: float | int | None = None
) -> Plan:
    """Everything that is to be predicted, checked before anything is."""
    base, notes = as_trained(surrogate, data)
    known = not notes
    in_space = {base} | {finer_in_space(data, base, points) for points in space}
    in_time = {base}
    for frames in time:
        selection, more = finer_in_time(data, base, frames)
        in_time.add(selection)
        notes += more
    further = None if horizon is None else beyond(data, base, surrogate.horizon, horizon)
    notes += about_later_frames(data, base, surrogate.horizon) if horizon is None else []
    by_points = tuple(sorted(in_space, key=lambda each: -each.stride))
    by_frames = tuple(sorted(in_time, key=lambda each: len(each.frames)))
    return Plan(base, by_points, by_frames, further, known, tuple(notes))


def _check_instance(surrogate: Any, data: Any, params: Tensor, plan: Plan) -> None:
    if instance := surrogate.provenance.get("instance"):
        u0 = plan.base.cut(data.read(torch.tensor([0])))[:, 0]
        check_instance(instance, surrogate.problem, u0, plan.base.grid(data), params)


def predict_trajectories(
    surrogate: Any, data: Any, rows: Sequence[int], *, device: torch.device | str | None = None
) -> tuple[Selection, Float[Tensor, "b t *x c"], Float[Tensor, "b t *x c"]]:
    """Truth and prediction of some trajectories at the resolution and times of training, for figures."""
    surrogate = as_surrogate(surrogate, data)
    check_trajectories(data)
    params = matching_params(surrogate, data)
    surrogate, device = place(surrogate, device)
    selection, _ = as_trained(surrogate, data)
    chosen = torch.as_tensor(rows, dtype=torch.long)
    whole = data.read(chosen)
    u, begin = selection.cut(whole).to(device), selection.begin(whole).to(device)
    grid, t = selection.grid(data).to(device), selection.times(data).to(device)
    known = known_of_time(surrogate, data, selection, params)
    prediction = surrogate.answer(begin, grid, t, params[chosen].to(device), **known)
    return selection, u[:, 1:].cpu(), prediction.cpu()


def _judge(surrogate, data, params, plan, groups, beside, batch, device, progress) -> dict[Selection, Judge]:
    """Each block of trajectories is read once and judged at every selection; at that of training by group."""
    together = torch.zeros(len(data), dtype=torch.long)
    judges = {each: Judge(each, data, groups.member if each == plan.base else together) for each in plan.all()}
    for rows, u in blocks(data, batch, progress):
        fields, own = u.to(device), params[rows].to(device)
        for each in beside:
            each.update(fields)
        for judge in judges.values():
            judge.update(surrogate, rows, fields, own)
    return judges


def _results(
    surrogate, data, params, plan, judges, device, solver, progress
) -> tuple[dict[Selection, Result], list[str]]:
    results, notes = {}, [*plan.notes]
    for selection, judge in judges.items():
        # More output times do not change what a solver does, so finer times are the model's alone.
        beside = solver and selection in plan.space
        cost, more = measure_cost(surrogate, data, params, selection, device, beside)
        results[selection] = replace(judge.result(), trained=plan.as_trained and selection == plan.base, cost=cost)
        notes += [*judge.notes(), *more]
        if progress is not None:
            progress("time", len(results), len(judges))
    return results, notes


def _groups(groups: Grouping, judge: Judge) -> tuple[Group, ...]:
    known = ~judge.per_sample.isnan()
    return tuple(
        Group(values, seen, judge.scores(i), judge.per_sample[(groups.member == i) & known].numpy())
        for i, (values, seen) in enumerate(zip(groups.values, groups.seen, strict=True))
    )


def _changed(result: Result, base: Result) -> Result:
    """With the change of each metric against the training resolution."""
    before = base.scores["overall"]
    pairs = {name: (value, before[name]) for name, value in result.scores["overall"].items() if before.get(name)}
    return replace(result, change={name: value / reference - 1 for name, (value, reference) in pairs.items()})
