"""The sections of a page, in their order: each is given all runs and says what it knows, or that it knows nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vcnef.report import drawings, page_numbers
from vcnef.report.page_blocks import Block, Cell, Figure, Heading, Items, Listing, Paragraph, TableBlock
from vcnef.report.page_numbers import NONE, TEST, TIMING, differing, listed, row_of, score, shown
from vcnef.report.run_record import Picture, RunRecord, dig
from vcnef.spelling import BASELINES, DATA_ERROR, TITLES, spell_seconds, spell_solves, spell_speed_up, spell_values

Runs = Sequence[RunRecord]
NOT_JUDGED = "No evaluation is there to show this."
KEY_METRICS = ("nrmse", "brmse", "rmse")
SEEN: dict[Any, str] = {True: "seen", False: "unseen"}
"""Whether training had a parameter value, in a word."""


def key_numbers(runs: Runs) -> list[Block]:
    """Show errors, times and sizes side by side."""
    smallest_error = None if differing(runs, TEST) else min
    fastest = None if differing(runs, TIMING) else min
    rows: list[Sequence[Cell | str]] = []
    for name in KEY_METRICS:
        rows.append([TITLES[name], *_metric(runs, name, smallest_error)])
    for key, words in BASELINES.items():
        found = [run.found("baselines", key) for run in runs]
        if any(each is not None for each in found):
            rows.append([f"nRMSE without a model: {words}", *row_of(found, best=None)])
    of_data = [run.found("data_nrmse") for run in runs]
    if any(each is not None for each in of_data):
        rows.append([DATA_ERROR, *row_of(of_data, best=None)])
    own = [run.found("result", "cost", "seconds") for run in runs]
    solver = [run.found("result", "cost", "solver_seconds") for run in runs]
    rows.append(["time per trajectory", *row_of(own, spell_seconds, best=fastest)])
    rows.append(["solver's time per trajectory", *row_of(solver, spell_seconds, best=None)])
    rows += _break_even(runs)
    rows.append(["weights", *row_of([run.weights for run in runs], page_numbers.count)])
    rows.append(["minutes of training", *row_of([run.minutes for run in runs], page_numbers.short)])

    blocks: list[Block] = [_not_judged(run) for run in runs if not run.metrics]
    blocks.append(TableBlock("Key numbers", ["", *(run.name for run in runs)], rows))
    return blocks + _about_marks(runs) + _all_metrics(runs)


def _break_even(runs: Runs) -> list[list[Cell | str]]:
    """Show the solver at equal error, where a run was judged with it."""
    found = [run.found("break_even") for run in runs]
    if not any(found):
        return []
    speed: list[Cell | str] = ["speed at the solver's equal error"]
    solves: list[Cell | str] = ["solves until it has paid off"]
    for each in found:
        if not each:
            speed.append(NONE)
            solves.append(NONE)
            continue
        speed.append(spell_speed_up(each["speed_up"], at_most=each["at_most"]))
        solves.append(spell_solves(each["solves"], never=each["never"], at_least=each["at_most"]))
    return [speed, solves]


def _not_judged(run: RunRecord) -> Paragraph:
    return _warning(
        f"{run.name} has not been evaluated: there is no metrics.json in {run.folder}. "
        f"`vcnef evaluate {run.folder} --data FILE` writes it."
    )


def _about_marks(runs: Runs) -> list[Block]:
    """Say what the marks of the best mean, and why there are none."""
    if len(runs) == 1:
        return []
    blocks: list[Block] = [Paragraph("✓ marks the best of a row: the smallest error, time or size.", tone="soft")]
    tests = differing(runs, TEST)
    if tests:
        said = f"The runs were judged on different {listed(tests)}, so no error is marked as best."
        if "files" in tests:
            said += " Give --data to judge all of them on the same files."
        blocks.append(_warning(said))
    timings = differing(runs, TIMING)
    if timings:
        blocks.append(_warning(f"Times were taken on different {listed(timings)}, so none is marked as best."))
    return blocks


def _all_metrics(runs: Runs) -> list[Block]:
    """Show every metric, and of several fields each one."""
    judged = [run for run in runs if run.metrics]
    if not judged:
        return []
    comparable = not differing(judged, TEST)
    names: dict[str, None] = {}
    for run in judged:
        names |= dict.fromkeys(run.found("result", "scores", "overall") or {})
    rows = []
    for name in names:
        if name == "nrmse_raw" and all(run.score(name) == run.score("nrmse") for run in judged):
            continue  # no field of any of them has faded below the floor
        better = min
        if name in page_numbers.LARGER_IS_BETTER:
            better = max
        if not comparable:
            better = None
        rows.append([TITLES.get(name, name), *_metric(judged, name, better)])
    header = ["metric", *(run.name for run in judged)]
    blocks: list[Block] = [Heading("All metrics"), TableBlock("All metrics", header, rows)]
    for run in judged:
        blocks += _fields(run, runs)
    return blocks


def _metric(runs: Runs, name: str, best: Any) -> list[Cell]:
    return row_of([score(run.found("result", "scores"), "overall", name) for run in runs], best=best)


def _fields(run: RunRecord, runs: Runs) -> list[Block]:
    """Show the metrics of each field, where there are several."""
    channels, scores = run.found("channels") or (), run.found("result", "scores")
    if len(channels) < 2:
        return []
    rows = []
    for name in dig(scores, "per_channel") or {}:
        values = [score(scores, "per_channel", name, place) for place in range(len(channels))]
        rows.append([TITLES.get(name, name), *map(shown, values)])
    title = _of(run, runs, "Fields")
    return [Heading(title), TableBlock(title, ["metric", *channels], rows)]


def training(runs: Runs) -> list[Block]:
    blocks: list[Block] = []
    for run in runs:
        if run.folder and not run.history:
            blocks.append(_warning(f"{run.name} has no training log: {run.folder} holds no record of an epoch."))
    for over, words in (("epoch", "epochs"), ("seconds", "the time of training")):
        drawn = drawings.training(runs, over)
        if drawn is not None:
            caption = f"Loss, and nRMSE on the valid split, over {words}."
            blocks.append(Figure(drawings.svg_uri(drawn), caption, wide=True))
    rows = []
    for run in runs:
        if run.history:
            last, best = run.history[-1], run.provenance
            epochs, kept = shown(last.get("epoch"), page_numbers.count), shown(best.get("epoch"), page_numbers.count)
            rows.append([run.name, epochs, shown(last.get("loss")), shown(best.get("valid_nrmse")), kept])
    if rows:
        blocks.append(TableBlock("Training", ["", "epochs", "last loss", "best nRMSE on valid", "kept epoch"], rows))
    return blocks


def error_over_time(runs: Runs) -> list[Block]:
    blocks: list[Block] = []
    for drawn in drawings.error_over_time(runs):
        caption = "nRMSE at each time: the mean of the test trajectories, and where most lie."
        blocks.append(Figure(drawings.svg_uri(drawn), caption))
    # Runs that were judged at the same times share a table.
    tables: dict[tuple[str, ...], list[list[Cell | str]]] = {}
    for run in runs:
        scores = run.found("result", "scores")
        if dig(scores, "over_time", "nrmse"):
            t = run.found("result", "t")
            places = sorted({round(k * (len(t) - 1) / 4) for k in range(5)})
            cells = [shown(score(scores, "over_time", "nrmse", place)) for place in places]
            header = ("t", *(f"{t[place]:.4g}" for place in places))
            tables.setdefault(header, []).append([run.name, *cells])
    for header, rows in tables.items():
        blocks.append(TableBlock("nRMSE over time", header, rows))
    return blocks or [Paragraph(NOT_JUDGED)]


def super_resolution(runs: Runs) -> list[Block]:
    """Show the same models asked on points and at times that training did not have."""
    blocks = _finer(runs, "space", "In space", "points along an axis") + _finer(runs, "time", "In time", "times")
    if not blocks:
        said = "Not measured. `--space 256,512` and `--time 41,101`, together with --data, ask for it."
        return [Paragraph(said)]
    return blocks


def _finer(runs: Runs, axis: str, title: str, unit: str) -> list[Block]:
    columns = []
    for run in runs:
        columns.append({drawings.size(each, axis): each for each in run.results(axis)})
    sizes = sorted(set().union(*columns))
    if not sizes:
        return []
    blocks: list[Block] = [Heading(title)]
    drawn = drawings.super_resolution(runs, axis)
    if drawn is not None:
        blocks.append(Figure(drawings.svg_uri(drawn), f"nRMSE over resolution, {title.lower()}."))
    rows = []
    for points in sizes:
        rows.append([str(points), *(_against_training(column.get(points)) for column in columns)])
    blocks.append(TableBlock(f"Super-resolution, {title.lower()}", [unit, *(run.name for run in runs)], rows))
    blocks.append(Paragraph("nRMSE, and its change against the resolution of training.", tone="soft"))
    return blocks


def _against_training(result: Mapping[str, Any] | None) -> Cell:
    if result is None:
        return Cell(NONE)
    said = "trained"
    if not result.get("trained"):
        said = page_numbers.change(dig(result, "change", "nrmse"))
    return shown(score(result["scores"], "overall", "nrmse"), behind=f" ({said})")


def parameters(runs: Runs) -> list[Block]:
    """Show test trajectories by the values of their parameters, seen in training or not."""
    columns = []
    for run in runs:
        columns.append({spell_values(each["values"]): each for each in run.found("parameters") or ()})
    values: dict[str, None] = {}
    for column in columns:
        values |= dict.fromkeys(column)
    if not values:
        if any(run.metrics for run in runs):
            return [Paragraph("The data have no parameters.")]
        return [Paragraph(NOT_JUDGED)]
    rows = []
    for value in values:
        groups = [column.get(value) for column in columns]
        samples = next(each["scores"].get("samples") for each in groups if each)
        rows.append([value, shown(samples, page_numbers.count), *map(_group, groups)])
    names = ["nRMSE"]
    if len(runs) > 1:
        names = [f"nRMSE, {run.name}" for run in runs]
    table = TableBlock("Parameter values", ["value", "trajectories", *names], rows)
    if len(values) < 2:
        return [table]
    drawn = drawings.parameters(runs, columns)
    if drawn is None:
        return [table]
    return [Figure(drawings.svg_uri(drawn), "nRMSE of each trajectory by the values of its parameters."), table]


def _group(group: Mapping[str, Any] | None) -> Cell:
    if group is None:
        return Cell(NONE)
    known = SEEN.get(group.get("seen"), "unknown")
    return shown(score(group["scores"], "overall", "nrmse"), behind=f" ({known})")


def pictures(runs: Runs) -> list[Block]:
    blocks: list[Block] = []
    for run in runs:
        if run.pictures and len(runs) > 1:
            blocks.append(Heading(run.name))
        blocks += [_picture(each, run, runs) for each in run.pictures]
    return blocks or [Paragraph("Pictures need the data: give them with --data. Scattered points have none.")]


def spectra(runs: Runs) -> list[Block]:
    blocks: list[Block] = []
    for run in runs:
        blocks += [_picture(each, run, runs) for each in run.spectra]
    return blocks


def _picture(picture: Picture, run: RunRecord, runs: Runs) -> Figure:
    """Show a picture as large as the curves of the page, which have no pixels."""
    width, caption = drawings.png_width(picture.png), _of(run, runs, picture.title)
    return Figure(drawings.png_uri(picture.png), caption, width, wide=width > drawings.PHONE)


def notes(runs: Runs) -> list[Block]:
    """Say what a reader of the numbers must know."""
    said = []
    for run in runs:
        for each in dict.fromkeys([*(run.found("notes") or ()), *run.warnings]):
            said.append(_of(run, runs, each))
    if not said:
        return [Paragraph("None.")]
    return [Items(said)]


def environment(runs: Runs, facts: Mapping[str, str]) -> list[Block]:
    blocks: list[Block] = []
    if facts:
        blocks.append(TableBlock("Environment", ["written with", ""], list(facts.items())))
    rows = []
    for run in runs:
        recipe = run.provenance.get("recipe")
        row = [run.name]
        for fact in (
            run.model.get("vcnef"),
            run.provenance.get("torch"),
            dig(recipe, "seed"),
            dig(recipe, "precision"),
            run.found("device"),
        ):
            row.append(NONE if fact is None else str(fact))
        rows.append(row)
    header = ["", "vcnef", "torch", "seed", "precision", "judged on"]
    blocks.append(TableBlock("Training and evaluation", header, rows))
    return blocks


def repeat(commands: Sequence[str]) -> list[Block]:
    if not commands:
        return [Paragraph("The commands are not known.")]
    return [Listing(commands)]


def _warning(text: str) -> Paragraph:
    return Paragraph(text, tone="warning")


def _of(run: RunRecord, runs: Runs, text: str) -> str:
    """Put the run's name before a text where there are several."""
    if len(runs) > 1:
        text = f"{run.name}: {text}"
    return text
