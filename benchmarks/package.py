"""Make a packaged model out of a run and of what `benchmarks/accuracy.py` has measured of it.

    python benchmarks/package.py RUN_FOLDER --name burgers --result FILE.json [--into src/vcnef/packaged]

The folder `src/vcnef/packaged/<name>/` then holds the model and `card.md`, which is written from the JSON alone. It
travels in the wheel, and `vcnef.load("burgers")` finds it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from statistics import stdev
from typing import Any

from accuracy_tables import is_finished
from vcnef.packaged import CARD, FOLDER
from vcnef.surrogate.folder import CONFIG, WEIGHTS, find
from vcnef.whole import write_whole

LARGEST = 15e6
"""Bytes of weights; a wheel is not a place for more."""
EQUATIONS = {
    "advection": "Advection in 1D",
    "burgers": "Burgers' equation in 1D",
    "cns1d": "Compressible Navier–Stokes in 1D",
    "cns2d": "Compressible Navier–Stokes in 2D",
    "cns3d": "Compressible Navier–Stokes in 3D",
}
FORMULAS = {
    "advection": "u_t + β u_x = 0",
    "burgers": "u_t + u u_x = (ν/π) u_xx",
    "burgers 2022": "u_t + 2 u u_x = (ν/π) u_xx, with the flux of the benchmark's first files",
}
"""Of those equations that fit on a line; where a generation of data has its own, its name is beside."""
STATES = {
    "advection": "sums of a few sine waves, some made positive or cut off outside a window",
    "burgers": "sums of a few sine waves, some made positive or cut off outside a window",
    "cns1d": "density, pressure and velocity sums of a few sine waves, half of them cut off outside a window",
    "cns2d": "a uniform gas with random Fourier modes up to 4 on top, in half of the samples only inside a window",
    "cns3d": "a uniform gas with random Fourier modes up to 4 on top, in half of the samples only inside a window",
}
"""What `vcnef.pde` draws initial states from, in a few words."""


def package(run: Path, name: str, result: Path, into: Path = FOLDER) -> Path:
    """The packaged folder; nothing is copied unless run and result belong together."""
    model, record = find(run), read_result(result)
    weights = (model / WEIGHTS).read_bytes()
    if sha256(weights).hexdigest() != record["weights_sha256"]:
        raise ValueError(f"{result} is about other weights than those in {model}. Give the result of this very run.")
    if len(weights) > LARGEST:
        raise ValueError(
            f"The weights of {model} have {len(weights) / 1e6:.1f} MB; expected at most {LARGEST / 1e6:g}. "
            "Package a smaller model."
        )
    if not name.isidentifier():
        raise ValueError(f"The name is {name!r}; expected a word of letters, digits and underscores. Choose another.")
    folder = into / name
    folder.mkdir(parents=True, exist_ok=True)
    for file in (WEIGHTS, CONFIG):
        shutil.copyfile(model / file, folder / file)
    description = json.loads((model / CONFIG).read_text(encoding="utf-8"))
    write_whole(folder / CARD, write_card(name, record, description).encode())
    return folder


def read_result(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise FileNotFoundError(f"There is no result {path}. Measure one with `python benchmarks/accuracy.py`.")
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        complete = record["weights_sha256"] and is_finished(record)
    except (ValueError, KeyError, TypeError):
        complete = False
    if not complete:
        raise ValueError(f"{path} is no complete result. Expected a file that benchmarks/accuracy.py has finished.")
    return record


def write_card(name: str, record: Mapping[str, Any], description: Mapping[str, Any]) -> str:
    """What the model is, how it was made, how good it is, and what it is not for."""
    told = (_headline(name, record), _data(record), _recipe(record), _errors(record))
    # Of a model that is packaged anew nothing has been measured yet; benchmarks/pays.py --cards adds it.
    return "\n\n".join((*told, _limits(record, description))) + "\n"


def _headline(name: str, record: Mapping[str, Any]) -> str:
    errors = f"nRMSE {_mean(record, seen=True):.4f}"
    if any(not each["seen"] for each in record["evaluations"]):
        errors += f" on seen and {_mean(record, seen=False):.4f} on unseen parameter values"
    equation, generation = record["data"]["equation"], record["data"]["generation"]
    title = f"# {EQUATIONS.get(equation, equation)}: {errors}"
    formula = FORMULAS.get(f"{equation} {generation}") or FORMULAS.get(equation)
    use = f'`vcnef.load("{name}")`, or `{name}` in place of a run folder in `vcnef evaluate`, `predict` and `serve`.'
    return "\n\n".join(filter(None, (title, formula and f"{formula}.", use)))


def _data(record: Mapping[str, Any]) -> str:
    data = record["data"]
    values = "; ".join(f"{key} = {', '.join(f'{each:g}' for each in some)}" for key, some in data["params"].items())
    tests = "The first tenth of each value is test"
    if data.get("fresh"):
        tests = (
            f"Test are {data['fresh']:,} states of seed {data['data_seed'] + 1}. The first tenth of these was left out"
        )
    options = "".join(f" --set {key}={value}" for key, value in data["initial"].items())
    command = f"vcnef generate {data['equation']} --generation {data['generation']} --seed {data['data_seed']}{options}"
    return f"""## Data

Generated with `{command}`:
{data["samples"]:,} trajectories for each of {values}; {data["resolution"]} cells along an axis, {data["frames"]} times
up to {data["horizon"]:g}. {tests}; the next twentieth chose the weights."""


def _recipe(record: Mapping[str, Any]) -> str:
    training, source = record["training"], record["source"]
    code = f"commit {source['commit'][:12]}" if source["commit"] else f"sources {source['sha256'][:12]}"
    changed = ", changed since" if source["changed"] else ""
    return f"""## Recipe

    {record["command"]}

{record["weights"]:,} weights, {training["epochs"]} epochs in {training["seconds"] / 60:.1f} minutes on one
{record["device"]}, seed {record["seed"]}, torch {record["torch"]}, {code}{changed}."""


def _errors(record: Mapping[str, Any]) -> str:
    """By parameter value, and for super-resolution the mean over those that were seen."""
    rows = ["| value | training | nRMSE | bRMSE | joint L² |", "|---|---|---|---|---|"]
    for each in record["evaluations"]:
        kind = "seen" if each["seen"] else "unseen"
        nrmse, *others = (_number(each["result"]["overall"][metric]) for metric in ("nrmse", "brmse", "relative_l2"))
        numbers = (f"{nrmse}{_uncertainty(each['nrmse'])}", *others)
        rows.append(f"| {_spell(each['params'])} | {kind} | {' | '.join(numbers)} |")
    finer = ["| points | times | nRMSE |", "|---|---|---|"]
    seen = [each for each in record["evaluations"] if each["seen"]]
    for axis in ("space", "time"):
        for results in zip(*(each[axis] for each in seen), strict=True):
            if axis == "time" and results[0]["trained"]:  # it is among those of space
                continue
            points = "×".join(map(str, results[0]["resolution"]))
            found = _average([each["overall"]["nrmse"] for each in results])
            finer.append(f"| {points} | {results[0]['frames']} | {_number(found)} |")
    tests = f"On {record['evaluations'][0]['samples']:,} test trajectories of each value, ± the mean's standard error:"
    return "\n".join(["## Errors", "", tests, "", *rows, "", "On finer grids, mean of the seen values:", "", *finer])


def _limits(record: Mapping[str, Any], description: Mapping[str, Any]) -> str:
    provenance, data = description["provenance"], record["data"]
    ranges = ", ".join(
        f"{key} = {low:g}" if low == high else f"{key} from {low:g} to {high:g}"
        for key, (low, high) in description["problem"]["ranges"].items()
    )
    fields = ", ".join(f"{key} from {low:.3g} to {high:.3g}" for key, (low, high) in provenance["field_ranges"].items())
    sides = "×".join(map(str, provenance["resolution"]))
    unseen = [_spell(each["params"]) for each in record["evaluations"] if not each["seen"]]
    judged = f" It was also judged at {'; '.join(unseen)}, see above." if unseen else ""
    raised = ", raised by a constant" if data["initial"].get("constant_offsets") else ""
    return f"""## Limits

- Parameters: {ranges}.{judged}
- Times: up to {description["scaling"]["horizon"]:g} since the initial state.
- Grid: trained on {sides} points; other grids as far as the table above says.
- Domain: {", ".join(f"({low:g}, {high:g})" for low, high in description["problem"]["domain"])}, periodic.
- Initial states: {STATES.get(data["equation"], "those of the generator")}{raised}.
- Fields: {fields}. Other initial states with such values may be answered badly without a warning."""


def _mean(record: Mapping[str, Any], *, seen: bool) -> float:
    found = [each["result"]["overall"]["nrmse"] for each in record["evaluations"] if each["seen"] == seen]
    if (mean := _average(found)) is None:
        raise ValueError("The result has errors that are not finite. Package a model that answers every test state.")
    return mean


def _average(values: Sequence[float | None]) -> float | None:
    return None if None in values else sum(values) / len(values)


def _uncertainty(values: Sequence[float | None]) -> str:
    """The standard error of the mean of test trajectories, which are drawn independently; one alone tells none.

    Where the mean is finite, trajectories that have no error are at rest: it leaves them out too.
    """
    known = [each for each in values if each is not None]
    return f" ± {_number(stdev(known) / len(known) ** 0.5)}" if len(known) > 1 else ""


def _number(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.4f}"


def _spell(params: Mapping[str, float]) -> str:
    return ", ".join(f"{key} = {each:g}" for key, each in params.items())


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="the folder that --keep of benchmarks/accuracy.py has left")
    parser.add_argument("--name", required=True, help="what users write")
    parser.add_argument("--result", type=Path, required=True, help="the JSON of the same run")
    parser.add_argument("--into", type=Path, default=FOLDER)
    asked = parser.parse_args(arguments)
    try:
        folder = package(asked.run, asked.name, asked.result, asked.into)
    except (ValueError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    print(f"{folder}: {size:.1f} MB.\n\n{(folder / CARD).read_text(encoding='utf-8')}")


if __name__ == "__main__":
    main()
