"""A surrogate is its network in physical units, and stays the same when it is saved and loaded."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from vcnef.models.rollout import TimeInterpolated
from vcnef.surrogate import Surrogate
from vcnef.surrogate.export import FORMATS


def test_an_answer_is_the_network_in_physical_units(make_surrogate, make_data):
    data, surrogate = make_data("cns2d"), make_surrogate("cns2d", log=("density",))
    u0, t = data.u[:, 0], torch.tensor([0.5, 1.0, 2.0])
    scaling = surrogate.scaling
    # The domain is (0, 1) × (−1, 1).
    points = (data.grid + torch.tensor([0.0, 1.0])) / 2.0
    z = surrogate.model.eval()(scaling.fields.normalise(u0), points, t / 2.0, scaling.params.scale(data.params))
    torch.testing.assert_close(surrogate.answer(u0, data.grid, t, data.params), scaling.fields.denormalise(z))
    assert scaling.horizon == 2.0


def test_numbers_of_numpy_are_saved(make_surrogate, tmp_path):
    surrogate = make_surrogate()
    surrogate.provenance |= {"width": np.int64(16), "rates": np.array([0.5, 1.0])}
    surrogate.save(tmp_path)
    told = Surrogate.load(tmp_path).provenance
    assert (told["width"], told["rates"]) == (16, [0.5, 1.0])
    surrogate.provenance["width"] = {16}
    with pytest.raises(TypeError, match=r"described by numbers, texts and lists of them; got \{16\}\. Give one"):
        surrogate.save(tmp_path)


def test_it_says_what_it_is_in_one_line(make_surrogate):
    words = repr(make_surrogate("cns2d"))
    assert words.startswith("Surrogate(vcnef, ")
    assert "weights, for cns2d: " in words
    assert len(words) < 200


def test_without_normalisation_the_network_sees_raw_values(make_surrogate, make_data):
    data, surrogate = make_data(), make_surrogate(normalise=False)
    u0, t = data.u[:, 0], data.t[1:]
    torch.testing.assert_close(
        surrogate.answer(u0, data.grid, t, data.params), surrogate.model.eval()(u0, data.grid, t / 2.0, data.params)
    )


KINDS = {
    "vcnef": {"width": 16, "heads": 2, "depth": 1, "modulations": 1, "frequencies": 2, "local": 1},
    "fno": {"width": 4, "modes": 2},
    "unet": {"width": 4},
    "galerkin": {"width": 16, "hidden": 16, "modes": 2, "spectral_width": 8},
    "oformer": {"width": 16, "heads": 2},
    "mp_pde": {"width": 40, "bundle": 2},
    "coral": {"width": 8, "latent": 4, "dynamics_width": 8},
    "pinn": {"width": 8, "depth": 2},
}


def in_other_units(data, factor=1024.0, origin=4096.0):
    """The same data from another origin on, in a unit that is no rounding away from the first."""
    domain = tuple((factor * low + origin, factor * high + origin) for low, high in data.problem.domain)
    return replace(data, grid=factor * data.grid + origin, problem=replace(data.problem, domain=domain))


@pytest.mark.parametrize("model", KINDS)
def test_unit_and_origin_of_the_points_do_not_matter(make_data, model):
    data = make_data(points=16)
    far = in_other_units(data)
    near, other = (Surrogate.build(model, KINDS[model], each, seed=0) for each in (data, far))
    assert other.options == near.options
    expected = near.answer(data.u[:, 0], data.grid, data.t[1:], data.params)
    assert torch.equal(other.answer(far.u[:, 0], far.grid, far.t[1:], far.params), expected)
    assert np.array_equal(other.predict(far.u[:, 0], [1.0], {"nu": 0.01}).x, far.grid[:, 0])


def test_of_several_axes_angles_and_ratios_stay(make_data):
    data = make_data("heat", points=16)
    options = {**KINDS["vcnef"], "patches": ()}
    near, other = (Surrogate.build("vcnef", options, each, seed=0) for each in (data, in_other_units(data)))
    expected = near.answer(data.u[:, 0], data.grid, data.t[1:], data.params)
    assert torch.equal(other.answer(data.u[:, 0], 1024 * data.grid + 4096, data.t[1:], data.params), expected)
    flat = replace(data, problem=replace(data.problem, domain=((0.0, 4.0), (-1.0, 1.0))))
    assert Surrogate.build("vcnef", options, flat).options["lengths"] == (1.0, 0.5)
    assert Surrogate.build("vcnef", options, flat, normalise=False).options["lengths"] == (4.0, 2.0)


def test_the_resolution_of_training_is_that_of_the_batches(make_data):
    data = make_data("burgers")
    points = len(data.grid)
    assert Surrogate.build("oformer", {}, data).options["resolution"] == points
    longer = replace(data, grid=4 * data.grid, problem=replace(data.problem, domain=((0.0, 4.0),)))
    assert Surrogate.build("oformer", {}, longer, normalise=False).options["resolution"] == points / 4
    assert Surrogate.build("oformer", {}, data, thinning=2).options["resolution"] == points / 2
    assert Surrogate.build("oformer", {"resolution": 256}, data).options["resolution"] == 256


def test_a_model_from_before_points_were_scaled_sees_them_as_they_are(make_data, tmp_path):
    data = in_other_units(make_data())
    surrogate = Surrogate.build("vcnef", {"width": 16, "heads": 2, "depth": 1, "modulations": 1}, data)
    surrogate.save(tmp_path)
    record = json.loads((tmp_path / "config.json").read_text())
    del record["checksum"]  # which such models did not have
    assert record["scaling"].pop("points") == {"origin": [4096.0], "length": 1024.0}
    ask = data.u[:, 0], data.grid, data.t[1:], data.params
    assert torch.equal(Surrogate.load(tmp_path).answer(*ask), surrogate.answer(*ask))
    (tmp_path / "config.json").write_text(json.dumps(record))
    older = Surrogate.load(tmp_path)
    surrogate.scaling = replace(surrogate.scaling, points=None)
    assert torch.equal(older.answer(*ask), surrogate.answer(*ask))


def test_the_data_decide_what_they_can(make_surrogate, make_data):
    stepper = make_surrogate(model="fno", options={"width": 4, "modes": 2})
    assert stepper.options["steps"] == stepper.model.steps == 4
    assert make_surrogate(model="fno", options={"width": 4, "modes": 2, "steps": 8}).model.steps == 8
    assert "steps" not in make_surrogate().options
    assert make_surrogate().provenance["train"].startswith("burgers: 6 × 5 times 0…2 × 8 points, u, nu=0.001…0.1")


@pytest.mark.parametrize(("model", "options"), [("fno", {"width": 4, "modes": 2}), ("coral", {"width": 8})])
def test_a_model_that_steps_wants_equal_steps(make_data, model, options):
    data = make_data(frames=6)
    # Single precision, far from 0, leaves equal steps equal.
    Surrogate.build(model, options, replace(data, t=1990 + torch.arange(6) / 12))
    uneven = replace(data, t=torch.tensor([0.0, 0.02, 0.05, 0.1, 0.3, 1.0]))
    sentence = f"The model '{model}' takes equal steps in time, but those of the data are 0.02 to 0.7 long. Resample"
    with pytest.raises(ValueError, match=sentence):
        Surrogate.build(model, options, uneven)
    assert Surrogate.build("vcnef", {"width": 16, "heads": 2}, uneven).scaling.horizon == 1.0


@pytest.mark.parametrize("normalise", [True, False])
def test_clocks_go_by_the_parameter_itself(make_surrogate, make_data, tmp_path, normalise):
    options = {"width": 16, "heads": 2, "depth": 1, "modulations": 1, "clocks": 4}
    data, surrogate = make_data(), make_surrogate(options=options, normalise=normalise)
    t = torch.tensor([[0.1, 0.4]])
    slow, fast = surrogate.scaling.params.scale(torch.tensor([[0.01], [0.02]])).split(1)
    torch.testing.assert_close(surrogate.model.clocks(t, fast), surrogate.model.clocks(2 * t, slow))
    ask = data.u[:, 0], data.grid, data.t[1:], data.params
    surrogate.save(tmp_path)
    assert torch.equal(Surrogate.load(tmp_path).answer(*ask), surrogate.answer(*ask))
    assert "speeds" not in make_surrogate().options


def test_the_seed_decides_the_weights(make_data):
    first, again, other = (
        Surrogate.build("vcnef", {"width": 16, "heads": 2}, make_data(), seed=seed).model.encoder.state_dict()
        for seed in (0, 0, 1)
    )
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)


def test_a_model_that_steps_answers_between_its_frames(make_surrogate, make_data):
    data, surrogate = make_data(), make_surrogate(model="fno", options={"width": 4, "modes": 2})
    ask = data.u[:, 0], data.grid
    frames = surrogate.answer(*ask, torch.tensor([0.5, 1.0]), data.params)
    between = surrogate.answer(*ask, torch.tensor([0.75]), data.params)
    torch.testing.assert_close(between[:, 0], frames.mean(dim=1))
    assert not isinstance(surrogate.model, TimeInterpolated)


@pytest.mark.parametrize("name", ["burgers", "cns2d", "heat"])
def test_saved_and_loaded_it_answers_the_same(make_surrogate, make_data, tmp_path, name):
    data, surrogate = make_data(name), make_surrogate(name, log=("density",) if name == "cns2d" else ())
    surrogate.save(tmp_path / "model")
    for folder in (tmp_path / "model", tmp_path):
        loaded = Surrogate.load(folder)
        ask = data.u[:, 0], data.grid, data.t[1:], data.params
        assert torch.equal(loaded.answer(*ask), surrogate.answer(*ask))
        assert loaded.problem == surrogate.problem
        assert loaded.provenance == json.loads(json.dumps(surrogate.provenance))
        assert loaded.options == surrogate.options
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["config.json", "model.safetensors"]


@pytest.fixture
def double_by_default():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("normalise", [True, False])
def test_where_torch_makes_doubles_a_surrogate_is_single(
    make_surrogate, make_data, tmp_path, monkeypatch, double_by_default, normalise
):
    surrogate, u0 = make_surrogate(normalise=normalise), make_data().u[:2, 0]
    expected = surrogate.predict(u0, [1.0], {"nu": 0.01})
    surrogate.save(tmp_path / "model")
    loaded = Surrogate.load(tmp_path / "model")
    assert loaded.predict(u0, [1.0], {"nu": 0.01}).equals(expected)
    # The slow part of an export is not asked about here.
    monkeypatch.setitem(FORMATS, ".pt2", lambda module, *others: (b"", lambda inputs: module(*inputs)))
    assert loaded.export(tmp_path / "model.pt2") == 0.0


def test_what_a_saved_model_says_of_itself(make_surrogate, tmp_path):
    make_surrogate().save(tmp_path)
    record = json.loads((tmp_path / "config.json").read_text())
    assert record["format"] == 1
    assert set(record) == {"format", "vcnef", "model", "problem", "scaling", "provenance", "checksum"}
    assert record["problem"]["ranges"] == {"nu": [0.001, 0.1]}


def _config(folder, change):
    record = json.loads((folder / "config.json").read_text())
    del record["checksum"]
    change(record)
    (folder / "config.json").write_text(json.dumps(record))


DAMAGES = {
    "no folder": (lambda f: (f / "config.json").unlink(), r"holds no model: there is no config.json in it. Give a"),
    "no weights": (
        lambda f: (f / "model.safetensors").unlink(),
        r"has a config.json but no model.safetensors. Copy both",
    ),
    "cut json": (
        lambda f: (f / "config.json").write_text('{"format'),
        r"config.json is not a description of a model: it",
    ),
    "other json": (
        lambda f: (f / "config.json").write_text("[]"),
        r"config.json is not a description of a model: it is",
    ),
    "no scales": (lambda f: _config(f, lambda r: r.pop("scaling")), r"config.json lacks or garbles 'scaling'. Copy or"),
    "newer": (lambda f: _config(f, lambda r: r.update(format=9)), r"has format 9, .* up to 1. Install a newer vcnef"),
    "cut weights": (
        lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:-8]),
        r"model.safetensors is damaged \(.*\). Copy or train it again",
    ),
    "other width": (
        lambda f: _config(f, lambda r: r["model"]["options"].update(width=32)),
        r"do not fit its model 'vcnef': .* is \(.*16.*\) in model.safetensors, and \(.*32.*\) in the model that config",
    ),
    "deeper": (
        lambda f: _config(f, lambda r: r["model"]["options"].update(depth=2)),
        r"do not fit its model 'vcnef': .* is absent in model.safetensors, and",
    ),
    "unknown model": (
        lambda f: _config(f, lambda r: r["model"].update(name="vcnff")),
        r"no model 'vcnff'. Did you mean",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_folder_is_one_sentence(make_surrogate, tmp_path, damage):
    make_surrogate().save(tmp_path)
    harm, sentence = DAMAGES[damage]
    harm(tmp_path)
    with pytest.raises((ValueError, FileNotFoundError), match=sentence):
        Surrogate.load(tmp_path)


def test_a_full_disk_leaves_the_saved_model(make_surrogate, tmp_path, monkeypatch):
    make_surrogate().save(tmp_path)
    before = (tmp_path / "model.safetensors").read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match=r"Could not write .*model.safetensors: No space left on device. What was saved"):
        make_surrogate(normalise=False).save(tmp_path)
    assert (tmp_path / "model.safetensors").read_bytes() == before
    assert not list(tmp_path.glob("*.part*"))


def test_a_file_in_place_of_the_folder_is_said(make_surrogate, tmp_path):
    (tmp_path / "model").touch()
    with pytest.raises(OSError, match=r"Could not write .*model.safetensors: File exists"):
        make_surrogate().save(tmp_path / "model")


def test_a_note_that_json_cannot_hold_leaves_the_saved_model(make_surrogate, tmp_path):
    make_surrogate().save(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    other = make_surrogate(normalise=False, options={"width": 8, "heads": 2})
    other.provenance["error"] = 0.1j
    with pytest.raises(TypeError, match="described by numbers, texts and lists of them; got"):
        other.save(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_memory_limit_changes_nothing(make_surrogate, make_data):
    surrogate, u0 = make_surrogate(), make_data(samples=7).u[:, 0].numpy()
    ask = {"u0": u0, "t": np.linspace(0.0, 2.0, 17), "params": {"nu": 0.01}}
    whole = surrogate.predict(**ask, memory_limit=None)
    for limit in ("2GB", "60kB", "50 KB", 30_000, 1e16):
        np.testing.assert_allclose(surrogate.predict(**ask, memory_limit=limit), whole, rtol=1e-5, atol=1e-6)


def test_the_memory_limit_is_kept_in_chunks(make_surrogate, note_parts):
    surrogate, asked = make_surrogate(), []
    note_parts(surrogate.model, asked)
    surrogate.predict(np.ones((1, 8, 1)), np.linspace(0.0, 2.0, 100), {"nu": 0.01}, memory_limit="100kB")
    probe, *chunks = asked
    assert probe == 1
    assert sum(chunks) == 100
    assert len(chunks) > 3
    asked.clear()
    surrogate.predict(np.ones((3, 8, 1)), 1.0, {"nu": 0.01})
    assert asked == [1]  # what such fields need is known


def test_a_memory_limit_that_is_none(make_surrogate):
    with pytest.raises(ValueError, match="memory_limit is 'much'; expected a size such as '2GB', '500MB' or a number"):
        make_surrogate().predict(np.ones((1, 8, 1)), 1.0, {"nu": 0.01}, memory_limit="much")
    with pytest.raises(
        ValueError, match=r"One time of one sample on 8 points needs about .* MB, more than memory_limit"
    ):
        make_surrogate().predict(np.ones((1, 8, 1)), 1.0, {"nu": 0.01}, memory_limit="1kB")


def test_the_memory_of_a_model_that_steps_is_that_of_a_step(make_surrogate):
    """Though the first time that is asked for may be that of the state itself."""
    surrogate = make_surrogate(model="fno", options={"width": 4, "modes": 2})
    for times in ([0.0], [0.0, 2.0], [0.3]):
        with pytest.raises(ValueError, match=r"One time of one sample on 8 points needs about 0.0328 MB, more than"):
            surrogate.predict(np.ones((1, 8, 1)), times, {"nu": 0.01}, memory_limit="10kB")


def test_in_its_own_time_a_faster_film_is_the_same(make_surrogate, make_data, tmp_path):
    data, surrogate = make_data(), make_surrogate(own_time=True)
    u0, t = data.u[:, 0], data.t[1:]
    slow = surrogate.answer(u0, data.grid, t, data.params)
    fast = surrogate.answer(3 * u0, data.grid, t / 3, 3 * data.params)
    torch.testing.assert_close(fast, 3 * slow, rtol=1e-4, atol=1e-5)
    surrogate.save(tmp_path)
    torch.testing.assert_close(Surrogate.load(tmp_path).answer(u0, data.grid, t, data.params), slow)
    # Every sample as if it were asked alone.
    torch.testing.assert_close(surrogate.answer(u0[:1], data.grid, t, data.params[:1]), slow[:1], rtol=1e-4, atol=1e-5)


def test_own_time_is_for_models_that_answer_at_any_time(make_surrogate):
    with pytest.raises(ValueError, match="own_time needs a model that answers at any time; 'fno' does not"):
        make_surrogate(model="fno", options={"width": 4, "modes": 2}, own_time=True)
    with pytest.raises(ValueError, match="clocks go by parameters, own_time makes those rates the unit of time"):
        make_surrogate(options={"width": 16, "heads": 2, "clocks": 4}, own_time=True)


def test_own_time_is_a_scale(make_surrogate):
    with pytest.raises(
        ValueError, match=r"own_time is true, but normalise is false. Set normalise, or leave out own_t"
    ):
        make_surrogate(own_time=True, normalise=False)
