"""What an answer costs: times and memory in tables, and charts of accuracy and memory over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vcnef import plots
from vcnef.report import drawings, numbers
from vcnef.report.html import Html, element, figure, join, table
from vcnef.report.numbers import NONE, TEST, TIMING, differing, finite, shown
from vcnef.report.record import RunRecord, dig
from vcnef.spelling import spell_memory, spell_seconds

Runs = Sequence[RunRecord]


def timing(runs: Runs, benchmark: Mapping[str, Any] | None = None) -> list[Html]:
    """The models beside the solver, and what `vcnef benchmark` found where that is given."""
    parts = [*_charts(runs), *(each for run in runs for each in _costs(run, runs)), *_benchmark(benchmark)]
    return parts or [element("p", "No evaluation is there to show this.")]


def accuracy_cost(runs: Runs) -> Any:
    """Error over time per trajectory, with the solver on coarser grids where it was measured; None without models."""
    pairs = {run.name: (run.found("result", "cost", "seconds"), run.score("nrmse")) for run in runs}
    models = {drawings.label(name): pair for name, pair in pairs.items() if all(finite(each) and each for each in pair)}
    solver = next((run.found("solver") for run in runs if run.found("solver")), ())
    known = {f"{_sides(each)} points": (each["seconds"], each["nrmse"]) for each in solver}
    return plots.accuracy_cost(models, known) if models else None


def _charts(runs: Runs) -> list[Html]:
    """One chart for all runs whose errors and times can be compared, otherwise one for each."""
    together = [[run] for run in runs] if differing(runs, {**TEST, **TIMING}) else [runs]
    parts = []
    for group in together:
        if (drawn := accuracy_cost(group)) is not None:
            caption = f"{_names(group, runs)}nRMSE over time per trajectory; lower and further left is better."
            parts.append(figure(drawings.svg_uri(drawn), caption))
            parts += _about_solver(group)
    return parts


def _about_solver(runs: Runs) -> list[Html]:
    solver = next((run.found("solver") for run in runs if run.found("solver")), None)
    if not solver:
        return []
    text = (
        "The line is the classical solver on coarser grids than that of the data. It starts from every second, fourth "
        "or eighth point of the data, and its answer is interpolated linearly to the points of the model where it has "
        f"fewer; {solver[0]['samples']} trajectories were solved."
    )
    return [element("p", text, class_="soft")]


def _costs(run: RunRecord, runs: Runs) -> list[Html]:
    """The model's time beside the solver's, at every resolution that was judged."""
    known = [run.found("result"), *run.results("space"), *run.results("time")]
    costs = {(_sides(each), each["frames"]): each["cost"] for each in known if dig(each, "cost")}
    if not costs:
        return []
    first = next(iter(costs.values()))
    title = f"{_names([run], runs)}Time per trajectory on {first.get('device')}"
    header = ("points", "times", "at once", "model", "solver", "solver's nRMSE", "speed-up", "memory")
    by_size = sorted(costs.items(), key=lambda item: (int(item[0][0].split(" ")[0]), item[0][1]))
    rows = [(points, str(frames), *_cost(cost)) for (points, frames), cost in by_size]
    return [element("h3", title), table(header, rows, title)]


def _cost(cost: Mapping[str, Any]) -> list[Html]:
    own, solver, memory = cost.get("seconds"), cost.get("solver_seconds"), cost.get("peak_memory")
    return [
        # Of large fields fewer are computed together.
        shown(cost.get("samples"), numbers.count),
        shown(own, spell_seconds),
        shown(solver, spell_seconds),
        shown(cost.get("solver_nrmse")),
        shown(solver / own if own and solver else None, lambda value: f"{value:.3g}×"),
        shown(memory, spell_memory),
    ]


def _benchmark(record: Mapping[str, Any] | None) -> list[Html]:
    """The record of `vcnef benchmark speed --json`: a chart where memory was counted, and a table."""
    if record is None:
        return []
    results = record["results"]
    about = [f"{record[key]} {words}" for key, words in BENCHMARK.items() if key in record]
    parts = [element("h3", "Benchmark of inference"), element("p", ", ".join([*about, str(record.get("device", ""))]))]
    if any(each["seconds"] and each["peak_memory"] for each in results):
        drawn = plots.speed_memory([each | {"model": drawings.label(each["model"])} for each in results])
        parts.append(figure(drawings.svg_uri(drawn), "Time over peak memory; lower and further left is better."))
    else:
        parts.append(element("p", "Memory is counted on a GPU only, so there is no chart of it.", class_="soft"))
    steps = sorted({each["steps"] for each in results})
    cases: dict[tuple[str, str], dict[int, Any]] = {}
    for each in results:
        cases.setdefault((each["model"], each["way"]), {})[each["steps"]] = each
    rows = [(*case, *(_speed(found.get(count)) for count in steps)) for case, found in cases.items()]
    return [*parts, table(("model", "times", *(f"{count} steps" for count in steps)), rows, "Benchmark of inference")]


BENCHMARK = {"samples": "initial states", "points": "points", "batch": "at once", "precision": "precision"}


def _speed(found: Mapping[str, Any] | None) -> Html | str:
    if found is None:
        return NONE
    if found.get("fits") is False:
        return "out of memory"
    memory = found.get("peak_memory")
    text = shown(found["seconds"], spell_seconds)
    return join(text, f", {spell_memory(memory)}") if memory else text


def _sides(result: Mapping[str, Any]) -> str:
    return " × ".join(map(str, result["resolution"]))


def _names(group: Runs, runs: Runs) -> str:
    """Before a title, where there are several runs and it is not about all of them."""
    return "" if len(group) == len(runs) else f"{', '.join(run.name for run in group)}: "
