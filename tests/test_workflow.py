"""From data to a saved surrogate, and what is said when the two do not fit."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

from vcnef.config import Config
from vcnef.data import from_arrays, generate
from vcnef.data import open as open_data
from vcnef.data.splits import split_rows
from vcnef.data.windows import looked_at
from vcnef.evaluation import evaluate
from vcnef.evaluation.held_out import choose_judged
from vcnef.metrics import nrmse
from vcnef.own_data import MAX_NOISE, MIN_STEPS, asked_window, choose_preset, fitting_patches, suit
from vcnef.workflow import fit, load, train

TINY = {"width": 8, "heads": 2, "depth": 1, "modulations": 1, "batch": 4, "epochs": 1, "devices": "cpu"}
T = np.linspace(0.0, 0.5, 4)


def waves(samples=8, sides=(16,), speed=1.0):
    """Travelling waves sin 2π(x − s t + φ), the same along every axis."""
    x = (np.arange(sides[0]) + 0.5) / sides[0]
    u = np.sin(2 * np.pi * (x - speed * T[:, None] + np.arange(samples)[:, None, None] / samples))
    for side in sides[1:]:
        u = np.repeat(u[..., None], side, axis=-1)
    return u[..., None]


@pytest.fixture
def data():
    return from_arrays(waves(), t=T, params={"s": 1.0}, name="waves")


def test_three_lines_from_an_array_to_a_saved_surrogate(tmp_path):
    speeds = np.repeat([1.0, 2.0], 4)
    u = np.concatenate([waves(4), waves(4, speed=2.0)])
    run = fit(u, t=T, x=(np.arange(16) + 0.5) / 16, params={"s": speeds}, out=tmp_path / "run", **TINY)
    surrogate = load(tmp_path / "run")
    answer = surrogate.predict(u[:2, 0], t=T[1:], params={"s": 1.5})
    assert answer.dims == ("sample", "t", "x", "channel")
    assert np.array_equal(answer, run.surrogate.predict(u[:2, 0], t=T[1:], params={"s": 1.5}))
    assert np.array_equal(answer, load(tmp_path / "run" / "model").predict(u[:2, 0], t=T[1:], params={"s": 1.5}))
    assert surrogate.problem.ranges == {"s": (1.0, 2.0)}
    assert [record["epoch"] for record in run.history] == [1]


def test_a_run_says_what_it_does_beside_its_output_unless_it_is_quiet(tmp_path, capsys):
    fit(waves(), t=T, out=tmp_path / "said", **TINY)
    said = capsys.readouterr()
    assert said.out == ""
    assert "trajectories: 6 to learn from, 1 to choose the weights, 1 left for the test; drawn at random\n" in said.err
    assert ", preset own/small1d\n" in said.err
    assert "epoch 1 of 1, loss " in said.err
    fit(waves(), t=T, out=tmp_path / "quiet", quiet=True, **TINY)
    records = []
    fit(waves(), t=T, out=tmp_path / "taken", on_progress=records.append, **TINY)
    assert capsys.readouterr().err == ""
    assert records[-1]["epoch"] == 1


def test_data_in_any_unit_train_alike(tmp_path):
    x, weights = (np.arange(16) + 0.5) / 16, []
    for name, axis in (("metres", x), ("far", 1024 * x + 4096)):
        run = fit(waves(), t=T, x=axis, out=tmp_path / name, **TINY)
        weights.append(run.surrogate.model.state_dict())
    assert all(torch.equal(value, weights[1][name]) for name, value in weights[0].items())


def test_the_resolved_configuration_stays_in_the_run_folder(data, tmp_path):
    fit(data, out=tmp_path, **TINY, train={"seed": 3}, **{"data.times": 2})
    config = Config.load(tmp_path / "config.yaml")
    assert (config.train.epochs, config.train.seed, config.data.times) == (1, 3, 2)
    assert config.model.options["width"] == 8
    assert config.train.loss == Config.load("own/small1d").train.loss
    saved = json.loads((tmp_path / "model" / "config.json").read_text())
    assert saved["model"]["options"]["width"] == 8


def test_a_surrogate_knows_where_it_is_at_home(tmp_path):
    data = from_arrays(waves(), t=T, params={"nu": np.repeat([0.1, 0.2], 4)}, name="burgers")
    options = {**TINY, "symmetries": [{"shift": {"stride": 2}}]}
    provenance = fit(data, out=tmp_path, **options).surrogate.provenance
    assert provenance["resolution"] == [8]
    np.testing.assert_allclose(provenance["times"], T, rtol=1e-6)
    assert provenance["parameter_values"] == [[0.1], [0.2]]
    assert load(tmp_path).provenance["resolution"] == [8]


def test_after_a_stride_a_surrogate_is_asked_at_the_points_that_were_kept(tmp_path):
    run = fit(waves(), t=T, out=tmp_path, space_stride=4, **TINY)
    assert np.allclose(run.surrogate.predict(waves()[:2, 0, ::4], [0.5]).x, (np.arange(4) + 1 / 8) / 4)


def test_random_phases_train_judge_and_build_at_the_resolution_of_the_stride(tmp_path):
    data = from_arrays(waves(samples=40), t=T, params={"nu": 0.1}, name="burgers")
    path = data.save(tmp_path / "waves.hdf5")
    phases = {**TINY, "space_stride": 2, "symmetries": ["shift"], "local": 1, "random_phases": True}
    run = fit(data, out=tmp_path / "run", **phases)
    assert run.surrogate.provenance["resolution"] == [8]
    assert run.surrogate.options["sides"] == (8,)
    coarse = data.view(space_stride=2).split("valid")
    pred = run.surrogate.answer(coarse.u[:, 0], coarse.grid, coarse.t[1:], coarse.params)
    assert run.best == pytest.approx(nrmse(pred, coarse.u[:, 1:], initial_frames=0).item(), rel=1e-4)

    # Points of training were everywhere in their cells.
    assert np.allclose(run.surrogate.predict(coarse.u[:, 0], [0.5]).x, (np.arange(8) + 0.5) / 8)

    config = Config.load(tmp_path / "run" / "config.yaml")
    streamed = open_data(path, **config.view(), stream=True)
    again = train(config, streamed, out=tmp_path / "streamed", devices="cpu")
    assert again.best == pytest.approx(run.best, rel=1e-4)


def test_a_surrogate_says_how_its_data_were_generated(data, tmp_path):
    made = generate("burgers", samples=8, resolution=16, frames=4, horizon=0.05, seed=5, device="cpu")
    made.save(tmp_path / "made.hdf5")
    for number, trajectories in enumerate((made, open_data(tmp_path / "made.hdf5"))):
        fit(trajectories, out=tmp_path / str(number), **TINY)
        assert load(tmp_path / str(number)).provenance["generated"] == {
            "generation": "documented",
            "seed": 5,
            "initial_options": "default",
        }
    assert "generated" not in fit(data, out=tmp_path / "own", **TINY).surrogate.provenance


def long_waves(samples, frames, sides):
    """One wave along each axis, of random amplitudes."""
    wave = torch.ones(())
    for side in sides:
        wave = wave.unsqueeze(-1) * torch.cos(2 * torch.pi * torch.arange(side) / side)
    return torch.randn(samples, frames, *[1] * len(sides), 1) * wave.unsqueeze(-1)


@pytest.mark.parametrize(
    ("sides", "periodic", "preset", "patches"),
    [
        ((32,), True, "own/windows1d", (4,)),
        ((18,), True, "own/windows1d", (2,)),
        ((33,), True, "own/windows1d", ()),
        ((33,), False, "own/windows1d", (4,)),
        ((32, 64), True, "own/windows2d", (4,)),
        ((16, 32, 16), True, "own/windows3d", (2,)),
        ((8, 8, 8), True, "own/windows3d", ()),
    ],
)
def test_data_with_many_frames_are_learnt_in_windows_with_patches_that_fit(sides, periodic, preset, patches):
    data = from_arrays(long_waves(4, 8, sides), periodic=periodic)
    assert choose_preset(data) == preset
    assert suit(preset, data).model.options["patches"] == patches
    assert choose_preset(data, "direct") == f"own/small{len(sides)}d"


def test_noise_is_a_small_part_of_what_changes_in_a_window():
    x, t = torch.arange(32) / 32, torch.arange(9)

    def noise(speed):
        u = torch.sin(2 * torch.pi * (x - speed * t[:, None] + torch.rand(4, 1, 1))).unsqueeze(-1)
        return suit("own/windows1d", from_arrays(u)).train.input_noise

    assert noise(0.25) == MAX_NOISE
    assert noise(0.01) == pytest.approx(0.03 * 2 * np.pi * 0.01, rel=0.05)
    assert suit("own/windows1d", from_arrays(torch.ones(4, 9, 32, 1))).train.input_noise == 0


def patches_for(u, periodic):
    data = from_arrays(u, periodic=periodic)
    return fitting_patches(data, looked_at(data))


@pytest.mark.parametrize("periodic", [True, False])
def test_fields_of_short_waves_have_small_patches(periodic):
    x = torch.arange(64) / 64
    phases = torch.rand(4, 8, 1)
    for waves, expected in ((2, (4,)), (7, (2,)), (15, ())):
        u = torch.sin(2 * torch.pi * (waves * x + phases)).unsqueeze(-1)
        assert patches_for(u, periodic) == expected
    sideways = torch.sin(2 * torch.pi * (7 * x + phases))[:, :, None, :, None].expand(4, 8, 64, 64, 1)
    assert patches_for(sideways.contiguous(), periodic) == (2,)


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_a_gpu_learns_windows_with_a_wider_model(monkeypatch, ndim):
    data = from_arrays(np.random.default_rng(0).normal(size=(4, 8, *(16,) * ndim, 1)))
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert choose_preset(data, devices="auto") == f"own/windows{ndim}d_gpu"
    assert choose_preset(data, devices=1) == f"own/windows{ndim}d_gpu"
    assert choose_preset(data, devices="cpu") == f"own/windows{ndim}d"
    wide, narrow = (Config.load(choose_preset(data, devices=devices)) for devices in ("auto", "cpu"))
    assert wide.model.options["width"] > narrow.model.options["width"]
    assert wide.train.precision == "half"


def test_few_data_get_more_epochs():
    def steps(samples):
        config = suit("own/windows1d", from_arrays(np.random.default_rng(0).normal(size=(samples, 9, 16, 1))))
        return config.train.epochs, config.train.epochs * -(-samples // config.train.batch) * 8

    few, many = steps(20), steps(640)
    assert few[0] > many[0] == Config.load("own/windows1d").train.epochs
    assert MIN_STEPS <= few[1] <= 1.1 * MIN_STEPS < many[1]


@pytest.mark.parametrize(
    ("settings", "window"),
    [
        ({}, "auto"),
        ({"epochs": 3}, "auto"),
        ({"window": "direct"}, "direct"),
        ({"data": {"window": 0.5}}, 0.5),
        (["data.window=0.5", "epochs=3"], 0.5),
        ({"times": 5}, "direct"),
        ({"data.own_time": True}, "direct"),
        ({"train": {"physics": 0.1}}, "direct"),
        ({"times": 5, "window": "auto"}, "auto"),
    ],
)
def test_which_window_settings_ask_for(settings, window):
    """What is about whole trajectories asks for none."""
    assert asked_window(settings) == window


@pytest.mark.parametrize(("samples", "sides", "preset"), [(3, (8,), "own/small1d"), (2000, (2, 2), "own/large2d")])
def test_a_preset_is_chosen_by_dimension_and_size(samples, sides, preset):
    assert choose_preset(from_arrays(np.zeros((samples, 2, *sides, 1)))) == preset


def test_data_in_memory_are_taken_as_they_are_unless_strides_are_given(data, tmp_path):
    small = {**TINY, "times": 1}
    run = fit(data, preset="burgers/vcnef", out=tmp_path / "a", **small)
    assert "4 times" in run.surrogate.provenance["train"]
    assert "16 points" in run.surrogate.provenance["train"]
    assert Config.load(tmp_path / "a" / "config.yaml").data.space_stride == 1
    run = fit(data, preset="burgers/vcnef", out=tmp_path / "b", space_stride=2, horizon=0.4, **small)
    assert "3 times" in run.surrogate.provenance["train"]
    assert "8 points" in run.surrogate.provenance["train"]


@pytest.mark.parametrize("model", ["fno", "unet", "galerkin", "mp_pde"])
def test_models_that_take_points_as_equally_far_apart_refuse_others(model, tmp_path):
    uneven = from_arrays(waves(), t=T, x=np.linspace(0, 1, 16) ** 2)
    with pytest.raises(ValueError, match=f"an uneven grid, but the model '{model}' takes points as equally far apart"):
        fit(uneven, model=model, out=tmp_path / "refused", epochs=1, devices="cpu")
    fit(uneven, out=tmp_path / "taken", **TINY)


def test_scattered_points_get_a_token_each(tmp_path):
    points = np.random.default_rng(0).random((12, 2))
    u = np.sin(2 * np.pi * (points.sum(axis=1) - T[:, None] + np.arange(6)[:, None, None] / 6))[..., None]
    run = fit(u, t=T, x=points, out=tmp_path, **TINY)
    assert run.surrogate.options["patches"] == ()
    assert run.surrogate.options["local"] == 0
    with pytest.raises(
        ValueError, match=r"scattered points, which make no patches. Set model\.options\.patches=\[\]\."
    ):
        fit(u, t=T, x=points, out=tmp_path / "b", preset="own/small2d", **TINY)
    with pytest.raises(ValueError, match=r"scattered points, but the model 'fno' needs a grid. Use vcnef with"):
        fit(u, t=T, x=points, out=tmp_path / "c", model="fno")


def test_another_model_with_the_same_recipe(data, tmp_path):
    run = fit(data, model="fno", out=tmp_path, width=4, modes=2, batch=4, epochs=1, devices="cpu")
    assert run.surrogate.name == "fno"
    config = Config.load(tmp_path / "config.yaml")
    assert (config.data.times, config.data.at_start, config.data.normalise) == (None, False, True)
    assert load(tmp_path).predict(waves(1)[:, 0], t=T[1:]).shape == (1, 3, 16, 1)


def test_the_name_and_the_edges_of_an_array_are_those_of_its_problem(data, tmp_path):
    problem = fit(waves(), t=T, name="waves", periodic=False, out=tmp_path / "run", **TINY).surrogate.problem
    assert (problem.name, problem.periodic) == ("waves", False)
    with pytest.raises(ValueError, match=r"name, periodic is given beside trajectories, which have their own\. Leave"):
        fit(data, name="waves", periodic=False, out=tmp_path / "other")


def test_without_validation_the_last_weights_are_kept(data, tmp_path):
    run = fit(data, out=tmp_path, valid=0, **TINY)
    assert run.history[-1].get("valid_nrmse") is None
    weights = load(tmp_path).model.state_dict()
    assert all(torch.equal(value, weights[name]) for name, value in run.surrogate.model.state_dict().items())


def test_a_run_is_judged_on_the_splits_that_it_was_trained_with(tmp_path):
    data = from_arrays(waves(samples=40), t=T, params={"s": 1.0}, name="waves")
    fit(data, out=tmp_path / "a", valid=0.3, **TINY)
    for split, samples in {"train": 24, "valid": 12, "test": 4}.items():
        assert evaluate(tmp_path / "a", data, split=split).samples == samples
    fit(data, out=tmp_path / "b", valid=0, **TINY)
    assert evaluate(tmp_path / "b", data, split="train").samples == 36
    with pytest.raises(ValueError, match=r"trained with valid=0, so there is no valid split.* Use split='test'\."):
        evaluate(tmp_path / "b", data, split="valid")


def test_sets_of_their_own_are_used_noted_and_told(data, tmp_path, capsys):
    others = {name: from_arrays(waves() + shift, t=T, params={"s": 1.0}) for name, shift in (("valid", 1), ("test", 2))}
    run = fit(data, out=tmp_path / "a", **others, **TINY)
    told = "8 to learn from, 8 to choose the weights (a set of its own), 8 left for the test (a set of its own)"
    assert f"trajectories: {told}\n" in capsys.readouterr().err
    provenance = load(tmp_path / "a").provenance
    assert provenance["sets"] == {"description": told, "own": ["valid", "test"]}
    valid = others["valid"]
    pred = run.surrogate.answer(valid.u[:, 0], valid.grid, valid.t[1:], valid.params)
    assert run.best == pytest.approx(nrmse(pred, valid.u[:, 1:], initial_frames=0).item(), rel=1e-4)
    assert evaluate(run, others["test"], solver=False).samples == 8
    with pytest.raises(ValueError, match="All 8 trajectories of these data were trained on, or chose the weights"):
        evaluate(run, data)


def test_arrays_of_their_own_have_what_is_given_for_the_data(tmp_path, capsys):
    run = fit(waves(), t=T, params={"s": 1.0}, valid=waves() + 1, test=waves() + 2, out=tmp_path / "a", **TINY)
    assert run.surrogate.provenance["sets"]["own"] == ["valid", "test"]
    with pytest.raises(
        ValueError, match=r"valid is ndarray; expected trajectories with its own values of s\. Make them"
    ):
        fit(waves(), t=T, params={"s": np.arange(8.0)}, valid=waves() + 1, out=tmp_path / "b", **TINY)
    with pytest.raises(
        ValueError, match=r"test is str; expected trajectories\. Make them with vcnef\.open, or with vcnef"
    ):
        fit(waves(), t=T, test="test.npz", out=tmp_path / "b", **TINY)
    with pytest.raises(ValueError, match=r"test is float; expected trajectories"):
        fit(waves(), t=T, test=0.2, out=tmp_path / "b", **TINY)
    with pytest.raises(ValueError, match="The valid set does not fit the data that are trained on: they have 8 and 16"):
        fit(waves(), t=T, valid=waves(sides=(8,)), out=tmp_path / "b", **TINY)
    alone = {"instance": 0, "data_weight": 0, "physics": 1}
    with pytest.raises(
        ValueError, match=r"data\.instance trains on one trajectory alone, .* Leave out valid and test\."
    ):
        fit(waves(), t=T, valid=waves() + 1, **alone, out=tmp_path / "b", **TINY)
    assert not (tmp_path / "b").exists()


def test_sets_of_their_own_are_viewed_as_the_data(data, tmp_path):
    valid = from_arrays(waves() + 1, t=T, params={"s": 1.0})
    run = fit(data, valid=valid, space_stride=2, out=tmp_path, **TINY)
    assert run.surrogate.provenance["resolution"] == [8]


def test_other_parameters_in_the_test_set_are_a_warning(tmp_path):
    data = from_arrays(waves(30), t=T, params={"s": np.linspace(0.2, 1.0, 30)})
    test = from_arrays(waves(4) + 1, t=T, params={"s": np.linspace(2.0, 3.0, 4)})
    with pytest.warns(
        UserWarning, match=r"4 of 4 trajectories of the test set have s outside of the 0\.2 to 1 that is"
    ):
        fit(data, test=test, out=tmp_path / "a", **TINY)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        fit(data, out=tmp_path / "b", **TINY)


def test_a_run_of_an_earlier_version_goes_on_with_the_splits_that_it_was_begun_with(tmp_path):
    """It took the first rows of all data for the test; shuffled now, it would be trained on them."""
    data = from_arrays(waves(40) + np.arange(40)[:, None, None, None], t=T, params={"s": 1.0}, name="waves")
    fit(replace(data, split_in_order=True), out=tmp_path, **TINY)
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    del state["data"]["split_in_order"], state["data"]["trajectories"]
    torch.save(state, tmp_path / "state.pt")
    run = fit(data, out=tmp_path, resume=True, **TINY | {"epochs": 2})
    assert len(run.history) == 2
    found = evaluate(run, data, solver=False)
    assert found.samples == 4
    judged = choose_judged(run.surrogate, data)
    assert torch.equal(judged.data.u, data.u[:4])


def test_a_run_is_not_continued_on_other_trajectories(tmp_path):
    """Of the same number, ranges and times."""
    data = from_arrays(waves(40), t=T, params={"s": 1.0}, name="waves")
    fit(data, out=tmp_path, **TINY)
    turned = replace(data, u=data.u.roll(1, dims=0))
    with pytest.raises(
        ValueError, match=r"begun with other data: trajectories='\w{8}', not '\w{8}'\. Resume it with the"
    ):
        fit(turned, out=tmp_path, resume=True, **TINY | {"epochs": 2})


def test_a_run_is_only_ever_continued_as_it_was_begun(data, tmp_path):
    fit(data, out=tmp_path, **TINY)
    with pytest.raises(FileExistsError, match="already holds a run"):
        fit(data, out=tmp_path, **TINY)
    with pytest.raises(ValueError, match=r"was begun with model\.options\.width=8, not 16\. Resume it as it was begun"):
        fit(data, out=tmp_path, resume=True, **TINY | {"width": 16})
    with pytest.raises(ValueError, match=r"was begun with train\.batch=4, not 2\."):
        fit(data, out=tmp_path, resume=True, **TINY | {"batch": 2})
    longer = fit(data, out=tmp_path, resume=True, **TINY | {"epochs": 2})
    assert [record["epoch"] for record in longer.history] == [1, 2]
    assert Config.load(tmp_path / "config.yaml").train.epochs == 2
    with pytest.raises(FileNotFoundError, match=r"There is no run in .*nowhere to resume\. Check the path"):
        fit(data, out=tmp_path / "nowhere", resume=True, **TINY)


def test_a_folder_that_cannot_be_made_is_refused_at_once(data, tmp_path, monkeypatch):
    (tmp_path / "notes").write_text("mine")
    for out in (tmp_path / "notes", tmp_path / "notes" / "run"):
        with pytest.raises(OSError, match=r"The run cannot be kept in .*, since .*notes is a file\. Choose another"):
            fit(data, out=out, **TINY)
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(OSError, match=rf"in {tmp_path}/a/b, since {tmp_path} may not be written to\. Choose another"):
        fit(data, out=tmp_path / "a" / "b", **TINY)


def test_a_run_that_is_not_continued_keeps_its_configuration(data, tmp_path):
    """`config.yaml` says what was run: neither what was refused, nor fewer epochs than there were."""
    fit(data, out=tmp_path, **TINY | {"epochs": 2})
    others = from_arrays(waves(samples=60), t=T, params={"s": 1.0}, name="waves")
    with pytest.raises(ValueError, match="Resume it with the data it was begun with"):
        fit(others, out=tmp_path, resume=True, **TINY | {"epochs": 9})
    assert Config.load(tmp_path / "config.yaml").train.epochs == 2
    assert len(fit(data, out=tmp_path, resume=True, **TINY | {"epochs": 1}).history) == 2
    assert Config.load(tmp_path / "config.yaml").train.epochs == 2


def test_a_run_that_failed_before_it_began_leaves_no_obstacle(data, tmp_path):
    with pytest.raises(ValueError, match="'waves' is not known, so Permute may be a symmetry of it or not"):
        fit(data, out=tmp_path, symmetries=["permute"], **TINY)
    fit(data, out=tmp_path, **TINY)


def test_a_symmetry_that_is_vouched_for_is_looked_at_in_the_data(data, tmp_path, capsys):
    run = fit(data, out=tmp_path / "run", symmetries={"shift": True}, **TINY)
    said = "shift: vouched for by you; 6 trajectories are too few or too large to test it on"
    assert run.surrogate.provenance["symmetries"] == [said]
    assert f"symmetry {said}\n" in capsys.readouterr().err
    still = from_arrays(waves(60) + 3 * np.sin(2 * np.pi * np.arange(16) / 16)[:, None], t=T, name="waves")
    with pytest.warns(UserWarning, match="shift is vouched for, but the initial states of 51 trajectories already"):
        fit(still, out=tmp_path / "forced", symmetries={"shift": True}, **TINY)


def test_data_that_do_not_fit(data, tmp_path):
    with pytest.raises(
        ValueError, match=r"is for 1D data, but custom is 2D\. Choose a preset for 2D, e\.g\. own/small2d"
    ):
        fit(waves(4, (4, 4)), preset="burgers/vcnef", out=tmp_path)
    with pytest.raises(ValueError, match=r"t is given beside trajectories, which have their own\. Leave it out\."):
        fit(data, t=T, out=tmp_path)
    with pytest.raises(ValueError, match=r"got the path 'waves\.hdf5'\. Open it with vcnef\.open\."):
        fit("waves.hdf5", out=tmp_path)
    with pytest.raises(ValueError, match="u has NaN or infinity in 1 trajectories, first in 2; remove them"):
        fit(np.where(np.arange(8)[:, None, None, None] == 2, np.nan, waves()), out=tmp_path)
    with pytest.raises(ValueError, match=r"There is no setting 'epoch'; did you mean train\.epochs"):
        fit(data, out=tmp_path, epoch=3)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("name", "meant"), [("device", "devices"), ("parms", "params"), ("chanels", "channels")])
def test_arguments_of_fit_are_among_what_may_have_been_meant(name, meant):
    with pytest.raises(ValueError, match=rf"There is no setting '{name}'; did you mean (.* or )?{meant}\b"):
        fit(np.zeros((3, 2, 8, 1)), **{name: 1})


def test_held_out_values_without_a_logarithm_are_said_before_training(tmp_path):
    test = int(split_rows((10,), "test"))
    nu = np.geomspace(0.01, 1.0, 10)
    nu[test] = 0.0
    with pytest.raises(ValueError, match=r"nu is 0, but the model knows nu by its logarithm, as it is trained on 0\.0"):
        fit(waves(10), t=T, params={"nu": nu}, out=tmp_path / "run", **TINY)
    assert not (tmp_path / "run").exists()
    nu[[test, 0]] = nu[[0, test]]
    assert test != 0
    assert fit(waves(10), t=T, params={"nu": nu}, out=tmp_path / "run", **TINY).history


def test_files_that_are_streamed_are_thinned_when_they_are_opened(data, tmp_path):
    data.save(tmp_path / "waves.npz")
    stored = open_data(tmp_path / "waves.npz", stream=True)
    with pytest.raises(ValueError, match=r"stay in their files\. Give strides and horizon to vcnef\.open instead\."):
        fit(stored, out=tmp_path / "run", space_stride=2, **TINY)
    run = fit(stored, out=tmp_path / "run", **TINY)
    assert run.folder == tmp_path / "run"


def test_what_is_said_when_there_is_nothing_to_load(data, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no run or model folder .*x\. Train one with `vcnef train`"):
        load(tmp_path / "x")
    fit(data, out=tmp_path / "waves", **TINY)
    with pytest.raises(FileNotFoundError, match=r"no run or model folder .*wave\. There are .*waves\."):
        load(tmp_path / "wave")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="empty holds no model"):
        load(tmp_path / "empty")


def test_without_a_folder_the_run_is_named_after_the_data(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = fit(data, **TINY)
    assert str(run.folder) == "runs/waves-vcnef"
    assert load("runs/waves-vcnef").problem.name == "waves"


def test_an_fno_that_was_begun_with_the_benchmarks_padding_goes_on_with_it(data, tmp_path):
    """Earlier versions did not note it; what is begun now notes that there is none."""
    small = {"model": "fno", "width": 4, "modes": 2, "batch": 4, "devices": "cpu", "quiet": True}
    fit(data, out=tmp_path / "new", epochs=1, **small)
    assert Config.load(tmp_path / "new" / "config.yaml").model.options["padding"] is None
    fit(data, out=tmp_path / "new", epochs=2, resume=True, **small)
    for again in ({}, {"padding": 2}):
        old = tmp_path / f"old{len(again)}"
        run = fit(data, out=old, epochs=1, padding=True, **small)
        config = old / "config.yaml"
        config.write_text(config.read_text().replace("    padding: true\n", ""))
        assert "padding" not in Config.load(config).model.options
        with pytest.raises(ValueError, match=r"begun with model\.options\.padding=True, not 0"):
            fit(data, out=old, epochs=2, resume=True, padding=0, **small)
        run = fit(data, out=old, epochs=2, resume=True, **again, **small)
        assert run.surrogate.model.stepper.padding == (2,)
        assert len(run.history) == 2
    with pytest.raises(ValueError, match=r"begun with model\.options\.padding=None, not 2"):
        fit(data, out=tmp_path / "new", epochs=3, resume=True, padding=2, **small)
