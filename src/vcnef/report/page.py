"""The whole page: title, summary, and the sections in their order, set by the template `page.html`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined

from vcnef.report import page_sections
from vcnef.report.page_blocks import PageSection
from vcnef.report.page_timing import timing
from vcnef.report.run_record import RunRecord

# Nothing but what is in the file itself may be shown or asked for.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def build_report(
    runs: Sequence[RunRecord],
    *,
    commands: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    benchmark: Mapping[str, Any] | None = None,
) -> str:
    """Return a page about one run, or about several side by side.

    `commands` repeat what the page shows, `environment` says with what it was written, and `benchmark` is what
    `vcnef benchmark speed` wrote as JSON.
    """
    if not runs:
        raise ValueError("There is no run to report on: got none, expected at least one. Give a run folder.")
    contents = [
        PageSection("Key numbers", page_sections.key_numbers(runs)),
        PageSection("Training", page_sections.training(runs)),
        PageSection("Error over time", page_sections.error_over_time(runs)),
        PageSection("Super-resolution", page_sections.super_resolution(runs)),
        PageSection("Parameters", page_sections.parameters(runs)),
        PageSection("Pictures", page_sections.pictures(runs)),
    ]
    if any(run.spectra for run in runs):
        contents.append(PageSection("Spectra", page_sections.spectra(runs)))
    contents += [
        PageSection("Timing", timing(runs, benchmark)),
        PageSection("Notes and warnings", page_sections.notes(runs)),
        PageSection("Environment", page_sections.environment(runs, environment or {})),
        PageSection("Commands to repeat this", page_sections.repeat(commands)),
    ]
    # What a template names must be there: an empty place on a page would go unseen.
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(_read("page.html"))
    return template.render(
        title=name_page(runs), runs=runs, describe=describe, sections=contents, style=_read("page.css"), policy=POLICY
    )


def name_page(runs: Sequence[RunRecord]) -> str:
    models = list(dict.fromkeys(run.architecture for run in runs))
    problems = list(dict.fromkeys(run.problem for run in runs))
    title = f"{' and '.join(models)} on {' and '.join(problems)}"
    if len(runs) > 1:
        title = f"{len(runs)} runs compared: {title}"
    return title


def describe(run: RunRecord) -> str:
    """Say in one sentence what was trained on what, and what it was judged on."""
    said = run.architecture
    if run.weights is not None:
        said += f" with {run.weights:,} weights"
    if run.folder:
        said += f", trained{_length(run)} on {_data(run)}"
    else:
        said += ", made elsewhere"
    if run.metrics:
        said += f"; judged on {run.found('samples')} trajectories of the {run.found('split')} split."
    else:
        said += "; not judged yet."
    return said


def _length(run: RunRecord) -> str:
    if not run.history:
        return ""
    epochs = run.history[-1].get("epoch", "?")
    length = f" for {epochs} epochs"
    if epochs == 1:
        length = " for 1 epoch"
    if run.minutes is not None:
        length += f" in {run.minutes:.3g} minutes"
    return length


def _data(run: RunRecord) -> str:
    return run.provenance.get("train") or f"{run.problem} (its folder does not say more)"


def _read(name: str) -> str:
    return files("vcnef.report").joinpath(name).read_text(encoding="utf-8")
