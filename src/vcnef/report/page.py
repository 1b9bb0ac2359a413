"""The whole page: head, style, title, and the sections in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from importlib.resources import files
from typing import Any

from vcnef.report import sections
from vcnef.report.html import Html, element, join
from vcnef.report.record import RunRecord
from vcnef.report.timing import timing

# Nothing but what is in the file itself may be shown or asked for.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def build_report(
    runs: Sequence[RunRecord],
    *,
    commands: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    benchmark: Mapping[str, Any] | None = None,
) -> str:
    """A page about one run, or about several side by side.

    `commands` repeat what the page shows, `environment` says with what it was written, and `benchmark` is what
    `vcnef benchmark speed` wrote as JSON.
    """
    if not runs:
        raise ValueError("There is no run to report on: got none, expected at least one. Give a run folder.")
    title = name_page(runs)
    contents = {
        "Key numbers": sections.key_numbers,
        "Training": sections.training,
        "Error over time": sections.error_over_time,
        "Super-resolution": sections.super_resolution,
        "Parameters": sections.parameters,
        "Pictures": sections.pictures,
        **({"Spectra": sections.spectra} if any(run.spectra for run in runs) else {}),
        "Timing": partial(timing, benchmark=benchmark),
        "Notes and warnings": sections.notes,
        "Environment": partial(sections.environment, facts=environment or {}),
        "Commands to repeat this": lambda runs: sections.repeat(commands),
    }
    links = [element("a", heading, href=f"#{_slug(heading)}") for heading in contents]
    body = [
        element("section", element("h2", heading), *make(runs), id=_slug(heading)) for heading, make in contents.items()
    ]
    main = element("main", element("h1", title), *_summary(runs), element("nav", *links), *body)
    page = element("html", _head(title), element("body", main), lang="en")
    return f"<!doctype html>\n{page}\n"


def name_page(runs: Sequence[RunRecord]) -> str:
    models = list(dict.fromkeys(run.architecture for run in runs))
    problems = list(dict.fromkeys(run.problem for run in runs))
    compared = f"{len(runs)} runs compared: " if len(runs) > 1 else ""
    return f"{compared}{' and '.join(models)} on {' and '.join(problems)}"


def describe(run: RunRecord) -> str:
    """What was trained on what, and what it was judged on, in one sentence."""
    weights = f" with {run.weights:,} weights" if run.weights is not None else ""
    length = ""
    if run.history:
        taken = f" in {run.minutes:.3g} minutes" if run.minutes is not None else ""
        epochs = run.history[-1].get("epoch", "?")
        length = f" for {epochs} epoch{'s' * (epochs != 1)}{taken}"
    data = run.provenance.get("train") or f"{run.problem} (its folder does not say more)"
    trained = f"trained{length} on {data}" if run.folder else "made elsewhere"
    judged = f"judged on {run.found('samples')} trajectories of the {run.found('split')} split"
    return f"{run.architecture}{weights}, {trained}; {judged if run.metrics else 'not judged yet'}."


def _summary(runs: Sequence[RunRecord]) -> list[Html]:
    if len(runs) == 1:
        return [element("p", element("strong", runs[0].name), ": ", describe(runs[0]))]
    return [element("ul", *(element("li", element("strong", run.name), ": ", describe(run)) for run in runs))]


def _head(title: str) -> Html:
    style = files("vcnef.report").joinpath("page.css").read_text(encoding="utf-8")
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("link", rel="icon", href="data:,"),
        element("title", title),
        # The style is ours and holds nothing that would need to be escaped.
        element("style", Html(style)),
    )


def _slug(heading: str) -> Html:
    return join(heading.lower().replace(" ", "-"))
