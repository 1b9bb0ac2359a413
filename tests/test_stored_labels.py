"""Every label that is stored is compared somewhere: one that is stored and forgotten is found here.

What is stored is asked of the code, not listed: the fields of problems and trajectories, and what a real run writes.
"""

import json
import re
import warnings
from dataclasses import dataclass, fields, replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import jaxtyping
import numpy as np
import pytest
import torch

import vcnef as library
from vcnef.data import Trajectories, from_arrays
from vcnef.data.sets import check_set
from vcnef.evaluation import evaluate
from vcnef.problem import Problem
from vcnef.surrogate import Surrogate
from vcnef.surrogate.folder import CHECKSUM

PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
SETTINGS = {
    "model": "vcnef", "window": "direct", "width": 16, "heads": 2, "depth": 1, "modulations": 1, "epochs": 1,
    "valid": 0.2, "quiet": True,
}  # fmt: skip
X, T, NU = (np.arange(16) + 0.5) / 16, np.linspace(0, 1, 4), np.linspace(0.01, 0.1, 20)
U = np.sin(2 * np.pi * (X + 30 * NU[:, None]))[:, None, :, None] * np.linspace(1, 0.5, 4)[:, None, None]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A run on data that note all that can be noted."""
    jaxtyping.config.update("jaxtyping_disable", True)
    data = from_arrays(U, t=T, x=X, params={"nu": NU}, name="burgers", periodic=True)
    data = replace(data, problem=replace(data.problem, units={"t": "s", "u": "m/s"}), attributes={"generation": "2022"})
    folder = tmp_path_factory.mktemp("labels") / "run"
    run = library.fit(data, out=folder, **SETTINGS)
    yield SimpleNamespace(data=data, folder=folder, model=run.surrogate)
    jaxtyping.config.update("jaxtyping_disable", False)


def problem(data, **changed):
    return replace(data, problem=replace(data.problem, **changed))


def changing(data):
    """The same, with parameters that are noted at all times."""
    described = replace(data.problem, varying=("nu",))
    return replace(data, problem=described, params=data.params[:, None].expand(-1, 4, 1))


def judge(w, data):
    """What is said of data, but for what is said of any."""
    for note in evaluate(w.model, data, split="all", solver=False).notes:
        warnings.warn(note, UserWarning, stacklevel=1)


def predict(w, u0=None, t=(0.5,), **given):
    w.model.predict(w.data.u[:3, 0] if u0 is None else u0, list(t), {"nu": 0.05} | given)


def resume(w, data=None, **settings):
    library.fit(w.data if data is None else data, out=w.folder, resume=True, **SETTINGS | settings)


def load_edited(w, path, change):
    """The folder of the model with one file changed."""
    content = (w.folder / "model" / path).read_bytes()
    try:
        (w.folder / "model" / path).write_bytes(change(content))
        library.load(w.folder)
    finally:
        (w.folder / "model" / path).write_bytes(content)


# Of each label: what is asked with another one, and what is said of it.
COMPARED = {
    "Problem.name": (lambda w, d: judge(w, problem(d, name="advection")), "The equation of these data is advection"),
    "Problem.channels": (lambda w, d: judge(w, problem(d, channels=("v",))), "expects the channels u; the data have v"),
    "Problem.parameters": (lambda w, d: judge(w, problem(d, parameters=("mu",), ranges={})), "so nu is missing"),
    "Problem.domain": (lambda w, d: judge(w, problem(d, domain=((0.0, 2.0),))), "The domain of these data is"),
    "Problem.periodic": (lambda w, d: judge(w, problem(d, periodic=False)), "The periodicity of these data is"),
    "Problem.ranges": (lambda w, d: predict(w, nu=0.5), "nu is 0.5.*; the surrogate was trained on 0.01 to 0.1"),
    "Problem.units": (lambda w, d: judge(w, problem(d, units={"u": "km/h"})), "u of the data is in 'km/h' and"),
    "Problem.varying": (
        lambda w, d: judge(w, changing(d)),
        "nu changes with time in these data",
    ),
    "Trajectories.u": (lambda w, d: resume(w, replace(d, u=torch.cat([d.u[:, :-1], -d.u[:, -1:]], 1))), "their values"),
    "Trajectories.t": (lambda w, d: check_set("valid", replace(d, t=1.1 * d.t), d), "their times differ"),
    "Trajectories.grid": (lambda w, d: check_set("valid", replace(d, grid=d.grid + 0.01), d), "their points differ"),
    "Trajectories.params": (lambda w, d: resume(w, replace(d, params=d.params.roll(1, 0))), "was begun with other"),
    "Trajectories.problem": (lambda w, d: check_set("valid", problem(d, channels=("v",)), d), "their channels are"),
    "Trajectories.attributes": (
        lambda w, d: judge(w, replace(d, attributes={"generation": "documented"})), "The generation of these data is"
    ),
    "Trajectories.parts": (lambda w, d: replace(d, parts=(3,)), r"parts \(3,\) sum to 3; expected the 20"),
    "Trajectories.subset": (lambda w, d: check_set("valid", d.split("test"), d), "valid is the test split of its data"),
    "Trajectories.split_in_order": (
        lambda w, d: resume_in_order(w, d), "the order of the run was kept"
    ),
    "provenance.train": (lambda w, d: resume(w, d.view(time_stride=3)), "was begun with other data: (train|times)"),
    "provenance.trajectories": (lambda w, d: resume(w, d.select(torch.arange(18))), "was begun with|steps per epoch"),
    "provenance.resolution": (lambda w, d: predict(w, d.u[:3, 0, :3]), "on 3 points; the surrogate was trained on 16"),
    "provenance.grid": (lambda w, d: judge(w, replace(d, grid=d.grid**1.5)), "given on an uneven grid"),
    "provenance.horizon": (lambda w, d: predict(w, t=(3.0,)), "t goes to 3; the surrogate was trained to 1"),
    "provenance.field_ranges": (lambda w, d: predict(w, 9 * d.u[:3, 0]), "check the units of u0"),
    "provenance.split_in_order": (
        lambda w, d: resume_in_order(w, d), "the order of the run was kept"
    ),
    "provenance.generated": (
        lambda w, d: judge(w, replace(d, attributes={"generation": "documented"})), "The generation of these data is"
    ),
    "provenance.times": (lambda w, d: resume(w, replace(d, t=1.5 * d.t)), "was begun with other data"),
    "provenance.valid": (lambda w, d: resume(w, valid=0.3), "was begun with data.valid=0.2, not 0.3"),
    "provenance.seen": (lambda w, d: judge_all_again(w, d), "what the model has seen was left out"),
    "provenance.parameter_values": (lambda w, d: seen_values(w, d), "values that were not trained on"),
    "provenance.recipe": (lambda w, d: resume(w, learning_rate=0.5), "was begun with train.learning_rate"),
    "config.json": (
        lambda w, d: load_edited(w, "config.json", lambda text: text.replace(b'"m/s"', b'"km"')), "not fit its checksum"
    ),
    "model.safetensors": (
        lambda w, d: load_edited(w, "model.safetensors", lambda raw: raw[:-1] + bytes([raw[-1] ^ 1])), "checksum"
    ),
}  # fmt: skip
EXCUSED = {
    "provenance.test": "the share of a split, which seen trajectories tell better",
    "provenance.sets": "words for a reader",
    "provenance.symmetries": "words for a reader",
    "provenance.torch": "the version that trained, for a reader",
    "provenance.epoch": "how training went",
    "provenance.step": "how training went",
    "provenance.valid_nrmse": "how training went",
    "provenance.training_seconds": "how training went",
}
"""What is stored and says nothing that another side could say otherwise."""


def resume_in_order(w, data):
    """The label of the run holds, or its test rows would be trained on."""
    in_order = replace(data, split_in_order=True)
    assert not torch.equal(in_order.split("test").u, data.split("test").u)
    run = library.fit(in_order, out=w.folder, resume=True, **SETTINGS)
    if run.surrogate.provenance["split_in_order"] is False and run.best < float("inf"):
        warnings.warn("the order of the run was kept", UserWarning, stacklevel=1)


def judge_all_again(w, data):
    """All of them, most of which were trained on."""
    found = evaluate(w.model, data, solver=False)
    assert found.samples < len(data), "what was trained on was judged"
    warnings.warn("what the model has seen was left out: it was trained on it", UserWarning, stacklevel=1)


def seen_values(w, data):
    found = evaluate(w.model, replace(data, params=data.params + 0.003), split="all", solver=False)
    if not any(group.seen for group in found.parameters):
        warnings.warn("values that were not trained on", UserWarning, stacklevel=1)


def stored(world, *kinds) -> set[str]:
    """The names of everything that classes of data hold, and that a run writes."""
    held = {f"{kind.__name__}.{each.name}" for kind in (Problem, Trajectories, *kinds) for each in fields(kind)}
    record = json.loads((world.folder / "model" / "config.json").read_text())
    assert CHECKSUM in record
    files = {path.name for path in (world.folder / "model").iterdir()}
    return held | {f"provenance.{name}" for name in record["provenance"]} | files


def test_every_stored_label_is_compared_or_excused(world):
    known = COMPARED.keys() | EXCUSED.keys()
    assert stored(world) - known == set(), "stored, and nobody looks: add a comparison, and a row in architecture.md"
    assert known - stored(world) == set(), "these are not stored any more"
    assert not COMPARED.keys() & EXCUSED.keys()
    assert all(len(reason) > 10 for reason in EXCUSED.values())


def test_a_forgotten_label_would_be_found(world):
    @dataclass
    class Surface:
        roughness: float = 0.0

    assert stored(world, Surface) - (COMPARED.keys() | EXCUSED.keys()) == {"Surface.roughness"}


def spoken(call):
    """What is said, as an error or as warnings."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            call()
        except (ValueError, OSError) as error:
            return str(error)
    return " ".join(str(each.message) for each in said)


@pytest.mark.parametrize("name", COMPARED)
def test_another_one_is_noticed(world, name):
    ask, said = COMPARED[name]
    assert re.search(said, spoken(lambda: ask(world, world.data))), spoken(lambda: ask(world, world.data))


def test_the_same_is_not_noticed(world):
    """Or the tests above would pass for any reason."""
    quiet = spoken(lambda: judge(world, world.data)) + spoken(lambda: predict(world)) + spoken(lambda: resume(world))
    for name, (_, said) in COMPARED.items():
        assert not re.search(said, quiet), (name, quiet)
    assert spoken(lambda: check_set("valid", replace(world.data, u=1.1 * world.data.u), world.data)) == ""


def test_the_table_names_functions_that_are_called():
    """From outside of their own file, or nobody would know the label by them."""
    table = PAGE.read_text().partition("## Labels have one place")[2].partition("\n## ")[0]
    rows = [line.split("|")[1:4] for line in table.splitlines() if line.startswith("| ") and "compared by" not in line]
    assert len(rows) >= 8
    sources = {path: path.read_text() for path in Path(library.__file__).parent.rglob("*.py")}
    for label, compared_by, called_from in rows:
        assert called_from.strip(), label
        for place in re.findall(r"`([\w.]+)`", compared_by):
            module, _, name = place.rpartition(".")
            try:
                whole = import_module(f"vcnef.{place}")
                own, name = Path(whole.__file__), place.rpartition(".")[2]
            except ModuleNotFoundError:
                own = Path(import_module(f"vcnef.{module}").__file__)
                assert hasattr(import_module(f"vcnef.{module}"), name), place
            callers = [path for path, text in sources.items() if path != own and re.search(rf"\b{name}\b", text)]
            assert callers, f"{place} compares {label.strip()}, and nobody calls it"


def test_surrogates_without_a_run_store_no_more(world):
    built = Surrogate.build("vcnef", {"width": 16, "heads": 2, "depth": 1, "modulations": 1}, world.data, seed=0)
    assert {f"provenance.{name}" for name in built.provenance} <= COMPARED.keys() | EXCUSED.keys()
