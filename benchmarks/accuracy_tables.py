"""Tables of what `benchmarks/accuracy.py` has measured, beside the paper's numbers, for `docs/results.md`.

    python docs/write_reference.py

A table is its titles and rows. Runs that differ in their seed alone make one row, with their mean and range. Runs of
`--ablate` have a table of their own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import groupby
from math import inf
from pathlib import Path
from typing import Any

import yaml

from accuracy_cases import by_value
from vcnef.spelling import BASELINES

RESULTS = Path(__file__).parent / "results" / "accuracy"
TRIVIAL = Path(__file__).parent / "results" / "trivial"
PAPER = Path(__file__).parent / "paper.yaml"
ORDER = ("burgers", "advection", "cns1d", "cns2d", "cns3d", "burgers_params", "advection_params", "cns1d_params")
PRESET = "the preset"
"""The label of the ablation that changes nothing, with which others are compared."""
Record = Mapping[str, Any]
Table = tuple[tuple[str, ...], list[tuple[str, ...]]]


def read_results(folder: Path | None = None) -> list[Record]:
    """Every result that is meant to be shown: judged, and not of a smoke test."""
    records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((folder or RESULTS).glob("*.json"))]
    return [each for each in records if is_judged(each) and not each["smoke"]]


def is_judged(record: Record) -> bool:
    """Whether all parameter values were; a run that is interrupted leaves the first few."""
    values = [by_value(record["data"].get(kind, {})) for kind in ("params", "unseen")]
    return len(record["evaluations"]) == sum(map(len, values))


def is_finished(record: Record) -> bool:
    """Whether everything was judged, at all resolutions."""
    return is_judged(record) and all(each["space"][1:] for each in record["evaluations"])


def headline(records: Iterable[Record]) -> Table:
    """One parameter value, the presets as they are or as a label says."""
    titles = ("data", "model", "paper: nRMSE", "here: nRMSE", "paper: bRMSE", "here: bRMSE", "joint L²", *RUN_TITLES)
    rows = []
    for runs in alike(each for each in records if is_single(each) and not is_ablation(each)):
        data, model = name(runs[0])
        nrmse, brmse, joint = (spread(each) for each in numbers([each["evaluations"][0]["result"] for each in runs]))
        stated = [published(runs[0], column) for column in (0, 1)]
        rows.append((data, model, stated[0], nrmse, stated[1], brmse, joint, *about(runs)))
    return titles, rows


def ablations(records: Iterable[Record]) -> Table:
    """One ingredient of a preset switched, after the preset itself in the same time or the same steps; worst first."""
    titles = ("data", "model", "difference", "nRMSE", "change", "bRMSE", "joint L²", *RUN_TITLES)
    groups = [
        (runs, numbers([each["evaluations"][0]["result"] for each in runs]))
        for runs in alike(filter(is_ablation, records))
    ]
    plain = {same_budget(runs[0]): found[0] for runs, found in groups if runs[0]["label"] == PRESET}
    rows = []
    for budget, group in groupby(groups, key=lambda group: same_budget(group[0][0])):
        for runs, found in sorted(group, key=_harm):
            nrmse, *others = (spread(each) for each in found)
            change = "–" if runs[0]["label"] == PRESET else percent(found[0], plain.get(budget, ()))
            rows.append((*name(runs[0]), runs[0]["label"], nrmse, change, *others, *about(runs)))
    return titles, rows


def finer(records: Iterable[Record], axis: str) -> Table:
    """Super-resolution along one axis: errors there, and how much larger they are than where the model was trained."""
    what = {"space": "points", "time": "times"}[axis]
    titles = ("data", "model", what, "paper: nRMSE", "here: nRMSE", "change", "bRMSE", "joint L²", "seeds")
    rows = []
    for runs in alike(each for each in records if is_single(each) and not is_ablation(each)):
        judged: dict[str, list[tuple[Mapping[str, Any], Mapping[str, Any]]]] = {}
        for run in runs:  # not all seeds need have been judged everywhere
            evaluation = run["evaluations"][0]
            for result in evaluation[axis]:
                size = "×".join(map(str, result["resolution"])) if axis == "space" else str(result["frames"])
                judged.setdefault(size, []).append((result, evaluation["result"]))
        for size, pairs in judged.items():
            results, trained = zip(*pairs, strict=True)
            found, here = numbers(results), results[0]["trained"]
            nrmse, *others = (spread(each) for each in found)
            stated = published(runs[0], 0) if here else published_finer(runs[0], axis, size)
            change = "trained" if here else percent(found[0], numbers(trained)[0], digits=1)
            rows.append((*name(runs[0]), size, stated, nrmse, change, *others, str(len(results))))
    return titles, rows


def parameters(records: Iterable[Record]) -> Table:
    """Models that are conditioned on the parameters, value by value."""
    titles = ("data", "model", "value", "training", "nRMSE", "bRMSE", "joint L²", *RUN_TITLES)
    rows = []
    for runs in alike(each for each in records if not is_single(each)):
        data, model = name(runs[0])
        by_value = list(zip(*(each["evaluations"] for each in runs), strict=True))
        for judged in sorted(by_value, key=lambda judged: list(judged[0]["params"].values())):
            value = ", ".join(f"{key} = {each:g}" for key, each in judged[0]["params"].items())
            kind = "seen" if judged[0]["seen"] else "**unseen**"
            found = (spread(each) for each in numbers([each["result"] for each in judged]))
            rows.append((data, model, value, kind, *found, *about(runs)))
    return titles, rows


def trivial(records: Iterable[Record]) -> Table:
    """Answers without a model on the same cases, as `benchmarks/trivial.py` has measured them."""
    titles = ("data", "value", *BASELINES.values(), "trajectories", "hardware")
    cases = {each["case"]: each for each in map(read_json, sorted(TRIVIAL.glob("*.json")))}
    rows = []
    for case in sorted(cases, key=_place):
        found = cases[case]
        for each in found["values"]:
            value = ", ".join(f"{key} = {number:g}" for key, number in each["params"].items())
            errors = (f"{each['nrmse'][kind]:.4f}" if kind in each["nrmse"] else "–" for kind in BASELINES)
            data = f"{case} ({found['generation']})"
            rows.append((data, value, *errors, f"{each['samples']:,}", found["device"]))
    kept = [column for column in range(len(titles)) if any(row[column] != "–" for row in rows)]
    return tuple(titles[column] for column in kept), [tuple(row[column] for column in kept) for row in rows]


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


RUN_TITLES = ("seeds", "steps", "minutes", "hardware")
TABLES: dict[str, Callable[[Sequence[Record]], Table]] = {
    "headline": headline,
    "trivial": trivial,
    "ablations": ablations,
    "space": lambda records: finer(records, "space"),
    "time": lambda records: finer(records, "time"),
    "parameters": parameters,
}


def alike(records: Iterable[Record]) -> list[list[Record]]:
    """Runs that differ in their seed alone, together, in the order of the cases."""
    groups: dict[tuple, list[list[Record]]] = {}
    for each in records:
        named_alike = groups.setdefault((*same_budget(each), each["label"]), [])
        for runs in named_alike:
            if same_settings(runs[0], each):
                runs.append(each)
                break
        else:
            named_alike.append([each])
    ordered = sorted(groups, key=lambda key: (_place(key[0]), *map(str, key)))
    return [runs for key in ordered for runs in groups[key]]


def same_settings(one: Record, other: Record) -> bool:
    """Whether no setting but the seed differs: a label may be forgotten. What one run is older than does not count."""
    sections = [(one["config"][name], other["config"][name]) for name in one["config"]]
    return all(mine[key] == yours[key] for mine, yours in sections for key in mine.keys() & yours.keys() - {"seed"})


def same_budget(record: Record) -> tuple:
    """What decides a row beside its label; runs of other data, time or hardware are not the same."""
    data, train = (record["data"]["generation"], record["data"]["samples"]), record["config"]["train"]
    budget = train["minutes"], None if train["minutes"] else train["epochs"]
    return record["case"], record["preset"], *budget, record["device"], *data


def is_single(record: Record) -> bool:
    """Whether the model was trained and judged on one parameter value."""
    return len(record["evaluations"]) == 1


def is_ablation(record: Record) -> bool:
    return record.get("ablation", False)


def name(record: Record) -> tuple[str, str]:
    """Data and model; ablations have a column for their label."""
    model = [record["preset"], "" if is_ablation(record) else record["label"]]
    data = f"{record['case']} ({record['data']['generation']}, {record['data']['samples']:,})"
    return data, ", ".join(filter(None, model))


def about(runs: Sequence[Record]) -> tuple[str, ...]:
    """Where steps were the budget, the run may have shared its device: its minutes would say little."""
    steps, seconds = (sum(each["training"][key] for each in runs) / len(runs) for key in ("steps", "seconds"))
    minutes = f"{seconds / 60:.1f}" if runs[0]["config"]["train"]["minutes"] else "–"
    return str(len(runs)), f"{steps:,.0f}", minutes, runs[0]["device"]


def published(record: Record, column: int) -> str:
    """The paper's error of the model, or that of its best one where it has no such model."""
    known = paper()["errors"].get(record["case"], {})
    if record["preset"] in known:
        return f"{known[record['preset']][column]:.4f}"
    best = min(known, key=lambda model: known[model][column], default=None)
    return "–" if best is None else f"{known[best][column]:.4f} (best, {best})"


def published_finer(record: Record, axis: str, size: str) -> str:
    known = paper()[axis].get(record["case"], {}).get(record["preset"], {})
    found = known.get(int(size.partition("×")[0]))
    return "–" if found is None else f"{found[0]:.4f}"


@cache
def paper() -> dict[str, Any]:
    return yaml.safe_load(PAPER.read_text(encoding="utf-8"))


def numbers(results: Sequence[Record]) -> list[list[float | None]]:
    """nRMSE, bRMSE and joint relative L² of each seed; in 3D the bRMSE is the one of published numbers."""
    found = [each["overall"] for each in results]
    # PDEBench sums over channels in 3D, which is several times as much as `brmse`.
    boundary = [each.get("brmse_pdebench_3d", each["brmse"]) for each in found]
    return [[each["nrmse"] for each in found], boundary, [each["relative_l2"] for each in found]]


def spread(values: Sequence[float | None]) -> str:
    """The mean, with the smallest and the largest value where there are several."""
    if None in values:
        return "not finite"
    text = f"{sum(values) / len(values):.4f}"
    return f"{text} ({min(values):.4f} … {max(values):.4f})" if len(values) > 1 else text


def percent(values: Sequence[float | None], before: Sequence[float | None], digits: int = 0) -> str:
    """How much larger the mean has become."""
    if not before or None in [*values, *before]:
        return "–"
    return f"{100 * (sum(values) / len(values) * len(before) / sum(before) - 1):+.{digits}f} %"


def _place(case: str) -> int:
    return ORDER.index(case) if case in ORDER else len(ORDER)


def _harm(group: tuple[Sequence[Record], Sequence[Sequence[float | None]]]) -> tuple[bool, float]:
    """Orders ablations: the preset, then those that make errors largest."""
    runs, (nrmse, *_) = group
    return runs[0]["label"] != PRESET, -inf if None in nrmse else -sum(nrmse) / len(nrmse)
