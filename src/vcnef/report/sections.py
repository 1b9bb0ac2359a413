"""The sections of a page, in their order: each is given all runs and says what it knows, or that it knows nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vcnef.report import drawings, numbers
from vcnef.report.html import Html, element, figure, join, listing, table
from vcnef.report.numbers import NONE, TEST, TIMING, differing, listed, row_of, score, shown
from vcnef.report.record import Picture, RunRecord, dig
from vcnef.spelling import BASELINES, TITLES, spell_seconds, spell_values

Runs = Sequence[RunRecord]
NOT_JUDGED = "No evaluation is there to show this."


def key_numbers(runs: Runs) -> list[Html]:
    """Errors, times and sizes side by side."""
    errors, times = (None if differing(runs, facts) else min for facts in (TEST, TIMING))
    costs = [run.found("result", "cost") for run in runs]
    rows = [(TITLES[name], *_metric(runs, name, errors)) for name in ("nrmse", "brmse", "rmse")]
    rows += [
        (f"nRMSE without a model: {words}", *row_of([run.found("baselines", key) for run in runs], best=None))
        for key, words in BASELINES.items()
        if any(run.found("baselines", key) is not None for run in runs)
    ]
    rows += [
        ("time per trajectory", *row_of([dig(each, "seconds") for each in costs], spell_seconds, best=times)),
        (
            "solver's time per trajectory",
            *row_of([dig(each, "solver_seconds") for each in costs], spell_seconds, best=None),
        ),
        ("weights", *row_of([run.weights for run in runs], numbers.count)),
        ("minutes of training", *row_of([run.minutes for run in runs], numbers.short)),
    ]
    return [
        *(_not_judged(run) for run in runs if not run.metrics),
        table(("", *(run.name for run in runs)), rows, "Key numbers"),
        *_about_marks(runs),
        *_all_metrics(runs),
    ]


def _about_marks(runs: Runs) -> list[Html]:
    if len(runs) == 1:
        return []
    said = [element("p", "✓ marks the best of a row: the smallest error, time or size.", class_="soft")]
    if tests := differing(runs, TEST):
        advice = " Give --data to judge all of them on the same files." if "files" in tests else ""
        said.append(
            _warning(f"The runs were judged on different {listed(tests)}, so no error is marked as best.{advice}")
        )
    if timings := differing(runs, TIMING):
        said.append(_warning(f"Times were taken on different {listed(timings)}, so none is marked as best."))
    return said


def _all_metrics(runs: Runs) -> list[Html]:
    """Every metric, and of several fields each one."""
    judged = [run for run in runs if run.metrics]
    if not judged:
        return []
    names = dict.fromkeys(name for run in judged for name in run.found("result", "scores", "overall") or {})
    best = not differing(judged, TEST)
    rows = [
        (TITLES.get(name, name), *_metric(judged, name, _better(name) if best else None)) for name in names
    ]  # fmt: skip
    parts = [element("h3", "All metrics"), table(("metric", *(run.name for run in judged)), rows, "All metrics")]
    for run in judged:
        channels, scores = run.found("channels") or (), run.found("result", "scores")
        if len(channels) > 1:
            lines = [
                (TITLES.get(name, name), *(shown(score(scores, "per_channel", name, c)) for c in range(len(channels))))
                for name in dig(scores, "per_channel") or {}
            ]
            title = _of(run, runs, "Fields")
            parts += [element("h3", title), table(("metric", *channels), lines, title)]
    return parts


def _metric(runs: Runs, name: str, best: Any) -> list[Html]:
    return row_of([score(run.found("result", "scores"), "overall", name) for run in runs], best=best)


def _better(name: str) -> Any:
    return max if name in numbers.LARGER_IS_BETTER else min


def training(runs: Runs) -> list[Html]:
    parts = [
        _warning(f"{run.name} has no training log: {run.folder} holds no record of an epoch.")
        for run in runs
        if run.folder and not run.history
    ]
    for over, words in (("epoch", "epochs"), ("seconds", "the time of training")):
        if (drawn := drawings.training(runs, over)) is not None:
            parts.append(
                figure(drawings.svg_uri(drawn), f"Loss, and nRMSE on the valid split, over {words}.", wide=True)
            )
    logged = [run for run in runs if run.history]
    rows = []
    for run in logged:
        last, best = run.history[-1], run.provenance.get("valid_nrmse")
        cells = (shown(last.get("epoch"), numbers.count), shown(last.get("loss")), shown(best))
        rows.append((run.name, *cells, shown(run.provenance.get("epoch"), numbers.count)))
    if rows:
        parts.append(table(("", "epochs", "last loss", "best nRMSE on valid", "kept epoch"), rows, "Training"))
    return parts


def error_over_time(runs: Runs) -> list[Html]:
    parts = [
        figure(drawings.svg_uri(drawn), "nRMSE at each time: the mean of the test trajectories, and where most lie.")
        for drawn in drawings.error_over_time(runs)
    ]
    rows: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for run in runs:
        if run.found("result", "scores", "over_time", "nrmse"):
            t, scores = run.found("result", "t"), run.found("result", "scores")
            chosen = sorted({round(k * (len(t) - 1) / 4) for k in range(5)})
            cells = (shown(score(scores, "over_time", "nrmse", k)) for k in chosen)
            rows.setdefault(("t", *(f"{t[k]:.4g}" for k in chosen)), []).append((run.name, *cells))
    parts += [table(header, lines, "nRMSE over time") for header, lines in rows.items()]
    return parts or [element("p", NOT_JUDGED)]


def super_resolution(runs: Runs) -> list[Html]:
    """The same models asked on points and at times that training did not have."""
    parts: list[Html] = []
    for axis, title in (("space", "In space"), ("time", "In time")):
        sizes = sorted({drawings.size(each, axis) for run in runs for each in run.results(axis)})
        if not sizes:
            continue
        columns = [{drawings.size(each, axis): each for each in run.results(axis)} for run in runs]
        rows = [(f"{points}", *(_finer(column.get(points)) for column in columns)) for points in sizes]
        header = ({"space": "points along an axis", "time": "times"}[axis], *(run.name for run in runs))
        parts.append(element("h3", title))
        if (drawn := drawings.super_resolution(runs, axis)) is not None:
            parts.append(figure(drawings.svg_uri(drawn), f"nRMSE over resolution, {title.lower()}."))
        parts += [
            table(header, rows, f"Super-resolution, {title.lower()}"),
            element("p", "nRMSE, and its change against the resolution of training.", class_="soft"),
        ]
    return parts or [
        element("p", "Not measured. `--space 256,512` and `--time 41,101`, together with --data, ask for it.")
    ]


def _finer(result: Mapping[str, Any] | None) -> Html:
    if result is None:
        return join(NONE)
    value = shown(score(result["scores"], "overall", "nrmse"))
    return join(
        value, " (trained)" if result.get("trained") else f" ({numbers.change(dig(result, 'change', 'nrmse'))})"
    )


def parameters(runs: Runs) -> list[Html]:
    """Test trajectories by the values of their parameters, seen in training or not."""
    columns = [{spell_values(each["values"]): each for each in run.found("parameters") or ()} for run in runs]
    names = list(dict.fromkeys(name for column in columns for name in column))
    if not names:
        known = any(run.metrics for run in runs)
        return [element("p", "The data have no parameters." if known else NOT_JUDGED)]
    rows = []
    for name in names:
        groups = [column.get(name) for column in columns]
        samples = next(each["scores"].get("samples") for each in groups if each)
        rows.append((name, shown(samples, numbers.count), *map(_group, groups)))
    header = ("value", "trajectories", *(f"nRMSE, {run.name}" if len(runs) > 1 else "nRMSE" for run in runs))
    drawn = drawings.parameters(runs, columns) if len(names) > 1 else None
    caption = "nRMSE of each trajectory by the values of its parameters."
    return [*([figure(drawings.svg_uri(drawn), caption)] if drawn else []), table(header, rows, "Parameter values")]


def _group(group: Mapping[str, Any] | None) -> Html:
    if group is None:
        return join(NONE)
    kind = {True: "seen", False: "unseen"}.get(group.get("seen"), "unknown")
    return join(shown(score(group["scores"], "overall", "nrmse")), f" ({kind})")


def pictures(runs: Runs) -> list[Html]:
    parts: list[Html] = []
    for run in runs:
        if run.pictures and len(runs) > 1:
            parts.append(element("h3", run.name))
        parts += [_picture(each, run, runs) for each in run.pictures]
    return parts or [element("p", "Pictures need the data: give them with --data. Scattered points have none.")]


def spectra(runs: Runs) -> list[Html]:
    return [_picture(each, run, runs) for run in runs for each in run.spectra]


def _picture(picture: Picture, run: RunRecord, runs: Runs) -> Html:
    """As large as the curves of the page, which have no pixels."""
    width = drawings.png_width(picture.png)
    title = _of(run, runs, picture.title)
    return figure(drawings.png_uri(picture.png), title, width=width, wide=width > drawings.PHONE)


def notes(runs: Runs) -> list[Html]:
    """What a reader of the numbers must know."""
    said = [(run, each) for run in runs for each in dict.fromkeys([*(run.found("notes") or ()), *run.warnings])]
    items = [element("li", _of(run, runs, each)) for run, each in said]
    return [element("ul", *items)] if items else [element("p", "None.")]


def environment(runs: Runs, facts: Mapping[str, str]) -> list[Html]:
    rows = [(name, value) for name, value in facts.items()]
    parts = [table(("written with", ""), rows, "Environment")] if rows else []
    header = ("", "vcnef", "torch", "seed", "precision", "judged on")
    lines = []
    for run in runs:
        trained = (run.model.get("vcnef"), run.provenance.get("torch"))
        recipe = (dig(run.provenance, "recipe", "seed"), dig(run.provenance, "recipe", "precision"))
        cells = (*trained, *recipe, run.found("device"))
        lines.append((run.name, *(NONE if each is None else str(each) for each in cells)))
    return [*parts, table(header, lines, "Training and evaluation")]


def repeat(commands: Sequence[str]) -> list[Html]:
    return [listing(commands)] if commands else [element("p", "The commands are not known.")]


def _not_judged(run: RunRecord) -> Html:
    return _warning(
        f"{run.name} has not been evaluated: there is no metrics.json in {run.folder}. "
        f"`vcnef evaluate {run.folder} --data FILE` writes it."
    )


def _warning(text: str) -> Html:
    return element("p", text, class_="warning")


def _of(run: RunRecord, runs: Runs, text: str) -> str:
    """With the run's name where there are several."""
    return f"{run.name}: {text}" if len(runs) > 1 else text
