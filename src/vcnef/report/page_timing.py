"""What an answer costs: times and memory in tables, and charts of accuracy and memory over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vcnef import plots
from vcnef.report import drawings, page_numbers
from vcnef.report.page_blocks import Block, Cell, Figure, Heading, Paragraph, TableBlock
from vcnef.report.page_numbers import NONE, TEST, TIMING, differing, finite, shown
from vcnef.report.run_record import RunRecord, dig
from vcnef.spelling import spell_memory, spell_seconds

Runs = Sequence[RunRecord]

BENCHMARK = {"samples": "initial states", "points": "points", "batch": "at once", "precision": "precision"}
"""What the record of a benchmark says of all its cases, and how it is called."""


def timing(runs: Runs, benchmark: Mapping[str, Any] | None = None) -> list[Block]:
    """Show the models beside the solver, and what `vcnef benchmark` found where that is given."""
    blocks = _charts(runs)
    for run in runs:
        blocks += _costs(run, runs)
    if benchmark is not None:
        blocks += _benchmark(benchmark)
    return blocks or [Paragraph("No evaluation is there to show this.")]


def accuracy_cost(runs: Runs) -> Any:
    """Draw error over time per trajectory, with the solver on coarser grids where it was measured."""
    models = {}
    for run in runs:
        seconds, error = run.found("result", "cost", "seconds"), run.score("nrmse")
        if finite(seconds) and finite(error) and seconds and error:
            models[drawings.label(run.name)] = (seconds, error)
    if not models:
        return None
    solver = {f"{_sides(each)} points": (each["seconds"], each["nrmse"]) for each in _solver(runs)}
    return plots.accuracy_cost(models, solver)


def _solver(runs: Runs) -> Sequence[Mapping[str, Any]]:
    """Return the solver on coarser grids, from the first run beside which it was measured."""
    for run in runs:
        if run.found("solver"):
            return run.found("solver")
    return ()


def _charts(runs: Runs) -> list[Block]:
    """Draw one chart for all runs whose errors and times can be compared, otherwise one for each."""
    apart = differing(runs, {**TEST, **TIMING})
    groups: list[Runs] = [runs]
    if apart:
        groups = [[run] for run in runs]
    blocks: list[Block] = []
    for group in groups:
        drawn = accuracy_cost(group)
        if drawn is not None:
            caption = f"{_names(group, runs)}nRMSE over time per trajectory; lower and further left is better."
            blocks.append(Figure(drawings.svg_uri(drawn), caption))
            blocks += _about_solver(group)
    return blocks


def _about_solver(runs: Runs) -> list[Block]:
    solver = _solver(runs)
    if not solver:
        return []
    text = (
        "The line is the classical solver on coarser grids than that of the data. It starts from every second, fourth "
        "or eighth point of the data, and its answer is interpolated linearly to the points of the model where it has "
        f"fewer; {solver[0]['samples']} trajectories were solved."
    )
    return [Paragraph(text, tone="soft")]


def _costs(run: RunRecord, runs: Runs) -> list[Block]:
    """Show the model's time beside the solver's, at every resolution that was judged."""
    known = [run.found("result"), *run.results("space"), *run.results("time")]
    costs = {}
    for each in known:
        if dig(each, "cost"):
            costs[each["resolution"][0], _sides(each), each["frames"]] = each["cost"]
    if not costs:
        return []
    first = next(iter(costs.values()))
    title = f"{_names([run], runs)}Time per trajectory on {first.get('device')}"
    header = ("points", "times", "at once", "model", "solver", "solver's nRMSE", "speed-up", "memory")
    rows = []
    for size in sorted(costs):
        _, points, frames = size
        rows.append([points, str(frames), *_cost(costs[size])])
    return [Heading(title), TableBlock(title, header, rows)]


def _cost(cost: Mapping[str, Any]) -> list[Cell]:
    own, solver, memory = cost.get("seconds"), cost.get("solver_seconds"), cost.get("peak_memory")
    speed_up = None
    if own and solver:
        speed_up = solver / own
    return [
        # Of large fields fewer are computed together.
        shown(cost.get("samples"), page_numbers.count),
        shown(own, spell_seconds),
        shown(solver, spell_seconds),
        shown(cost.get("solver_nrmse")),
        shown(speed_up, lambda value: f"{value:.3g}×"),
        shown(memory, spell_memory),
    ]


def _benchmark(record: Mapping[str, Any]) -> list[Block]:
    """Show the record of `vcnef benchmark speed --json`: a chart where memory was counted, and a table."""
    results = record["results"]
    about = [f"{record[key]} {words}" for key, words in BENCHMARK.items() if key in record]
    about.append(str(record.get("device", "")))
    blocks: list[Block] = [Heading("Benchmark of inference"), Paragraph(", ".join(about))]
    if any(each["seconds"] and each["peak_memory"] for each in results):
        drawn = plots.speed_memory([each | {"model": drawings.label(each["model"])} for each in results])
        caption = "Time over peak memory; lower and further left is better."
        blocks.append(Figure(drawings.svg_uri(drawn), caption))
    else:
        blocks.append(Paragraph("Memory is counted on a GPU only, so there is no chart of it.", tone="soft"))
    steps = sorted({each["steps"] for each in results})
    cases: dict[tuple[str, str], dict[int, Any]] = {}
    for each in results:
        cases.setdefault((each["model"], each["way"]), {})[each["steps"]] = each
    rows = []
    for case, found in cases.items():
        rows.append([*case, *(_speed(found.get(count)) for count in steps)])
    header = ["model", "times", *(f"{count} steps" for count in steps)]
    return [*blocks, TableBlock("Benchmark of inference", header, rows)]


def _speed(found: Mapping[str, Any] | None) -> Cell:
    if found is None:
        return Cell(NONE)
    if found.get("fits") is False:
        return Cell("out of memory")
    memory = ""
    if found.get("peak_memory"):
        memory = f", {spell_memory(found['peak_memory'])}"
    return shown(found["seconds"], spell_seconds, behind=memory)


def _sides(result: Mapping[str, Any]) -> str:
    return " × ".join(map(str, result["resolution"]))


def _names(group: Runs, runs: Runs) -> str:
    """Return the names of some runs, before a title, where it is not about all of them."""
    if len(group) == len(runs):
        return ""
    return f"{', '.join(run.name for run in group)}: "
