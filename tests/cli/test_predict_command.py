"""`vcnef predict` from every kind of file to every kind of file, and what it says when something is wrong."""

import json
import resource

import h5py
import numpy as np
import pytest
import torch
import xarray as xr

from vcnef.cli._initial_states import read_initial_states
from vcnef.data import from_arrays
from vcnef.data import open as open_data
from vcnef.problem import Problem
from vcnef.surrogate import Surrogate

TINY = {"width": 16, "heads": 2, "depth": 1, "modulations": 1}
X = (np.arange(16) + 0.5) / 16
U0 = np.stack([np.sin(2 * np.pi * X), np.cos(2 * np.pi * X)])[..., None].astype(np.float32)
ASK = ("--times", "0:1:5", "--device", "cpu")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """An untrained model of a field u with a parameter nu between 0.001 and 0.1."""
    nu = np.linspace(0.001, 0.1, 8)
    u = (
        np.sin(2 * np.pi * (X + np.linspace(0, 1, 8)[:, None]))[:, None, :, None]
        * np.linspace(1, 0.5, 5)[:, None, None]
    )
    data = from_arrays(u, t=np.linspace(0, 1, 5), x=X, params={"nu": nu}, name="burgers")
    folder = tmp_path_factory.mktemp("run")
    Surrogate.build("vcnef", TINY, data, seed=0).save(folder / "model")
    return folder


@pytest.fixture(scope="module")
def expected(model):
    surrogate = Surrogate.load(model)
    return surrogate.predict(U0, np.linspace(0, 1, 5), {"nu": 0.01}, X).values


def write(kind, folder):
    """The same two states in each kind of file."""
    path = folder / f"ic.{kind.split()[-1]}"
    if kind == "npy":
        np.save(path, U0)
    elif kind == "npz":
        np.savez(path, u0=U0, x=X, nu=np.array([0.01, 0.01]))
    elif kind == "hdf5":
        with h5py.File(path, "w") as file:
            file["u"], file["x"] = U0[..., 0], X
    elif kind == "nc":
        xr.Dataset({"u": (("sample", "x"), U0[..., 0])}, {"x": X}).to_netcdf(path, engine="h5netcdf")
    elif kind == "one variable nc":
        array = xr.DataArray(U0[..., 0], {"x": X}, ("batch", "x"), name="u")
        array.expand_dims(time=[0.0, 1.0]).to_netcdf(path, engine="h5netcdf")
    elif kind == "answer nc":
        coordinates = {"x": X, "channel": ["u"], "t": [0.0, 1.0]}
        array = xr.DataArray(
            np.stack([U0, 0 * U0], axis=1), coordinates, ("sample", "t", "x", "channel"), name="burgers"
        )
        array.to_netcdf(path, engine="h5netcdf")
    else:
        later = np.stack([U0, 0 * U0], axis=1)
        from_arrays(later, x=X, params={"nu": 0.01}, name="burgers").save(path)
    return path


KINDS = ["npy", "npz", "hdf5", "nc", "one variable nc", "answer nc", "saved npz", "saved nc", "saved hdf5"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_input_gives_the_same_answer(vcnef, model, expected, tmp_path, kind):
    path = write(kind, tmp_path)
    code, out, err = vcnef(
        "predict", model, "--input", path, *ASK, "--param", "nu=0.01", "--out", tmp_path / "pred.npy"
    )
    assert (code, err) == (0, "")
    assert "2 sample × 5 t × 16 x × 1 channel" in out
    np.testing.assert_allclose(np.load(tmp_path / "pred.npy"), expected, atol=1e-6)


def test_labelled_output(vcnef, model, expected, tmp_path):
    np.save(tmp_path / "ic.npy", U0)
    out = tmp_path / "new" / "pred.nc"
    code, _, err = vcnef("predict", model / "model", "--input", tmp_path / "ic.npy", *ASK, "--param", "nu=0.01",
                         "--out", out)  # fmt: skip
    assert (code, err) == (0, "")
    with xr.open_dataset(out, engine="h5netcdf") as found:
        assert found["u"].dims == ("sample", "t", "x")
        np.testing.assert_allclose(found["t"], np.linspace(0, 1, 5))
        np.testing.assert_allclose(found["x"], X)
        np.testing.assert_allclose(found["nu"], 0.01)
        np.testing.assert_allclose(found["u"].values[..., None], expected, atol=1e-6)
    assert [path.name for path in out.parent.iterdir()] == ["pred.nc"]


@pytest.mark.parametrize("suffix", ["nc", "npz", "hdf5"])
def test_predictions_open_as_data(vcnef, model, expected, tmp_path, suffix):
    np.save(tmp_path / "ic.npy", U0[:1])
    out = tmp_path / f"pred.{suffix}"
    # One state and several values make as many trajectories.
    code, _, err = vcnef("predict", model, "--input", tmp_path / "ic.npy", *ASK, "--param", "nu=0.01,0.02",
                         "--out", out)  # fmt: skip
    assert (code, err) == (0, "")
    data = open_data(out)
    assert data.problem.name == "burgers"
    torch.testing.assert_close(data.params[:, 0], torch.tensor([0.01, 0.02]))
    torch.testing.assert_close(data.u[0], torch.from_numpy(expected[0]), atol=1e-6, rtol=1e-5)


def test_parameters_of_the_file_and_of_the_command_line(vcnef, model, expected, tmp_path):
    path = write("npz", tmp_path)
    code, _, _ = vcnef("predict", model, "--input", path, *ASK, "--out", tmp_path / "pred.npy")
    assert code == 0
    np.testing.assert_allclose(np.load(tmp_path / "pred.npy"), expected, atol=1e-6)


def test_states_of_a_plane_bring_both_axes(tmp_path):
    np.savez(tmp_path / "plane.npz", u=np.ones((3, 5, 8, 4, 1)), x=np.arange(8.0), y=np.arange(4.0))
    plane = Problem("own", channels=("u",), domain=((0.0, 8.0), (0.0, 4.0)))
    states = read_initial_states(tmp_path / "plane.npz", plane, {})
    assert states.u0.shape == (3, 8, 4, 1)
    assert [len(line) for line in states.x] == [8, 4]


def test_the_command_line_may_name_what_the_benchmark_layout_does_not(vcnef, model, expected, tmp_path):
    with h5py.File(tmp_path / "tensor.h5", "w") as file:
        file["tensor"], file["x-coordinate"] = np.stack([U0[..., 0]] * 3, axis=1), X
        file["t-coordinate"] = np.arange(4.0)
    asked = ("predict", model, "--input", tmp_path / "tensor.h5", *ASK, "--out", tmp_path / "pred.npy")
    assert "The parameter nu is missing" in vcnef(*asked)[2]
    code, _, err = vcnef(*asked, "--param", "nu=0.01,0.01")
    assert code == 0, err
    np.testing.assert_allclose(np.load(tmp_path / "pred.npy"), expected, atol=1e-6)


def test_a_gas_without_viscosities_in_its_file_is_told_them(vcnef, tmp_path):
    channels, told = ("density", "pressure", "vx"), {"eta": np.linspace(0.01, 0.1, 4), "zeta": 0.1}
    data = from_arrays(np.random.default_rng(0).random((4, 3, 16, 3)), x=X, channels=channels, params=told)
    Surrogate.build("vcnef", TINY, data, seed=0).save(tmp_path / "model")
    with h5py.File(tmp_path / "gas.h5", "w") as file:
        for key, field in zip(("density", "pressure", "Vx"), data.u.unbind(dim=-1), strict=True):
            file[key] = field.numpy()
        file["x-coordinate"], file["t-coordinate"] = X, np.arange(4.0)
    asked = ("predict", tmp_path / "model", "--input", tmp_path / "gas.h5", *ASK, "--out", tmp_path / "pred.npy")
    assert "give them, e.g. --param eta=0.01 and zeta=0.01" in vcnef(*asked)[2]
    code, _, err = vcnef(*asked, "--param", "eta=0.01,0.02,0.03,0.04", "--param", "zeta=0.1")
    assert code == 0, err


def test_memory_does_not_change_the_answer(vcnef, model, expected, tmp_path):
    path = write("npz", tmp_path)
    code, _, _ = vcnef("predict", model, "--input", path, *ASK, "--memory", "100KB", "--out", tmp_path / "pred.npy")
    assert code == 0
    np.testing.assert_allclose(np.load(tmp_path / "pred.npy"), expected, atol=1e-6)


def test_out_of_range_is_warned_of(vcnef, model, tmp_path):
    path = write("npz", tmp_path)
    code, _, err = vcnef("predict", model, "--input", path, "--times", "0,3", "--param", "nu=7", "--out",
                         tmp_path / "pred.npy")  # fmt: skip
    assert code == 0
    assert "Warning: nu is 7 to 7; the surrogate was trained on 0.001 to 0.1." in err
    assert "Warning: t goes to 3; the surrogate was trained to 1." in err


def test_a_prediction_that_is_not_finite_is_said(vcnef, model, tmp_path):
    broken = Surrogate.load(model)
    with torch.no_grad():
        for weight in broken.model.decoder.parameters():
            weight.fill_(3e38)  # Weights that are not finite would not be loaded.
    broken.save(tmp_path / "broken")
    code, _, err = vcnef("predict", tmp_path / "broken", "--input", write("npz", tmp_path), *ASK, "--out",
                         tmp_path / "pred.nc")  # fmt: skip
    assert code == 0
    assert err == "Warning: 2 of 2 predictions are not finite.\n"


def bad_files(folder):
    """Files that a model of u on one axis cannot use."""
    np.save(folder / "ic.npy", U0)
    np.save(folder / "three.npy", np.concatenate([U0] * 3, axis=-1))
    np.savez(folder / "other.npz", density=U0, vx=U0)
    (folder / "broken.nc").write_bytes(b"not a file")
    (folder / "states.csv").write_text("1,2")
    gas = xr.Dataset({"density": (("sample", "x"), U0[..., 0])}, {"x": X})
    gas.to_netcdf(folder / "gas.nc", engine="h5netcdf")
    from_arrays(U0[:, None], x=X, channels=("height",)).save(folder / "height.npz")
    nan = U0.copy()
    nan[0, 3] = np.nan
    np.save(folder / "nan.npy", nan)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"--input": "gone.npy"}, "There is no file gone.npy. Give the initial states as --input FILE."),
        ({"--input": "states.csv"}, "states.csv has the suffix '.csv'; expected one of .nc, .npy, .npz, .hdf5, .h5."),
        ({"--input": "broken.nc"}, "broken.nc is no .nc file, or it is damaged"),
        ({"--input": "three.npy"}, "u0 has shape (2, 16, 3); this surrogate of burgers expects [sample, x, 1]"),
        ({"--input": "other.npz"}, "other.npz has neither u0 or u; it holds ['density', 'vx']."),
        ({"--input": "gas.nc"}, "u0 has the channels density; this surrogate of burgers expects u."),
        ({"--input": "height.npz"}, "height.npz has the channels height; the model of burgers expects u."),
        ({"--input": "nan.npy"}, "non-finite values"),
        ({"--param": "mu=0.1"}, "There is no parameter 'mu' of burgers. Did you mean 'nu'?"),
        ({"--param": "nu"}, "--param nu is not understood; write --param name=value"),
        ({"--param": "nu=1,2,3"}, "expected one value or 2, one per sample"),
        ({"--times": "0:1"}, "--times 0:1 is not understood"),
        ({"--times": "-1,0"}, "expected one or more finite times since u0, none of them negative"),
        ({"--out": "pred.csv"}, "pred.csv has the suffix '.csv'; expected one of .nc, .npy, .npz, .hdf5, .h5."),
        ({"--out": "ic.npy/pred.nc"}, "Could not write ic.npy/pred.nc: "),
        ({"--out": "folder.nc"}, "folder.nc is a folder; expected a file."),
        (
            {"--out": "pred.hdf5", "--times": "0.5"},
            "pred.hdf5 cannot hold a single time; its layout needs two or more.",
        ),
        ({"--out": "pred.hdf5", "--times": "0.5,0.1"}, "pred.hdf5 cannot hold times that do not increase. Sort them"),
        ({"--out": "pred.npz", "--times": "0.1,0.1"}, "pred.npz cannot hold times that do not increase. Sort them in"),
        ({"--memory": "lots"}, "memory_limit is 'lots'; expected a size such as '2GB'"),
        ({"--precision": "fp8"}, "precision is 'fp8'; expected one of 'fp32', 'tf32', 'bf16', 'fp16'"),
        (
            {"--param": None},
            "The parameter nu is missing; the model was trained on 0.001 to 0.1. Give it as --param nu=",
        ),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(vcnef, model, tmp_path, monkeypatch, changes, message):
    monkeypatch.chdir(tmp_path)
    bad_files(tmp_path)
    (tmp_path / "folder.nc").mkdir()
    options = {"--input": "ic.npy", "--times": "0:1:3", "--param": "nu=0.01", "--out": "pred.nc"} | changes
    words = [word for name, value in options.items() if value is not None for word in (f"{name}={value}",)]
    code, out, err = vcnef("predict", model, *words)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "pred.nc").exists()


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    """An untrained model of a field on a plane."""
    data = from_arrays(np.random.default_rng(0).random((4, 3, 8, 8, 1)))
    folder = tmp_path_factory.mktemp("plane")
    Surrogate.build("vcnef", TINY | {"patches": ()}, data, seed=0).save(folder / "model")
    return folder, data


def test_one_state_with_its_whole_grid(vcnef, plane, tmp_path):
    folder, data = plane
    np.savez(tmp_path / "ic.npz", u0=data.u[0, 0], x=data.grid)
    code, out, err = vcnef("predict", folder, "--input", tmp_path / "ic.npz", *ASK, "--out", tmp_path / "pred.npz")
    assert (code, err) == (0, "")
    assert "1 sample × 5 t × 8 x × 8 y × 1 channel" in out
    assert open_data(tmp_path / "pred.npz").u.shape == (1, 5, 8, 8, 1)


def test_scattered_points_go_where_they_can(vcnef, plane, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("ic.npz", u0=np.full((20, 1), 0.5), x=np.random.default_rng(0).random((20, 2)))
    for name in ("pred.nc", "pred.npz", "pred.npy"):
        code, out, _ = vcnef("predict", plane[0], "--input", "ic.npz", *ASK, "--out", name)
        assert code == 0
        assert "1 sample × 5 t × 20 point × 1 channel" in out
    code, _, _ = vcnef("predict", plane[0], "--input", "pred.nc", *ASK, "--out", "again.npy")
    assert code == 0
    # A file of trajectories begins where its first frame is.
    np.testing.assert_allclose(np.load("again.npy"), np.load("pred.npy"), rtol=1e-5)
    monkeypatch.setattr(Surrogate, "predict", None)
    code, _, err = vcnef("predict", plane[0], "--input", "ic.npz", *ASK, "--out", "pred.hdf5")
    assert (code, err.count("\n")) == (2, 1)
    assert "pred.hdf5 cannot hold scattered points; its layout is of grids. Write .nc, .npz or .npy." in err


def test_a_checkpoint_that_does_not_fit(vcnef, model, tmp_path):
    Surrogate.load(model).save(tmp_path / "model")
    config = tmp_path / "model" / "config.json"
    record = json.loads(config.read_text())
    del record["checksum"]
    record["model"]["options"]["width"] = 32
    config.write_text(json.dumps(record))
    code, _, err = vcnef("predict", tmp_path, "--input", write("npz", tmp_path), *ASK, "--out", tmp_path / "pred.nc")
    assert (code, err.count("\n")) == (2, 1)
    assert "do not fit its model 'vcnef'" in err


def test_the_input_is_not_written_over(vcnef, model, tmp_path):
    path = write("saved npz", tmp_path)
    before = path.read_bytes()
    code, _, err = vcnef("predict", model, "--input", path, *ASK, "--out", tmp_path / "." / path.name)
    assert code != 0
    assert "is both --input and --out. Write the prediction to another file." in err
    assert path.read_bytes() == before


@pytest.mark.parametrize("suffix", ["nc", "npz", "hdf5", "npy"])
def test_a_file_that_finds_no_room_is_one_sentence(vcnef, model, tmp_path, suffix):
    """Files may not grow beyond a limit, as they may not on a full disk: HDF5 would end the process."""
    np.save(tmp_path / "ic.npy", U0)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**15, before[1]))
    try:
        out = tmp_path / f"answer.{suffix}"
        given = ("--input", tmp_path / "ic.npy", "--param", "nu=0.01", "--times", "0:1:1001", "--device", "cpu")
        code, _, err = vcnef("predict", model, *given, "--out", out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert code == 2
    assert err == f"Could not write {out}: File too large. Choose another place with --out.\n"
    assert [each.name for each in tmp_path.iterdir()] == ["ic.npy"]


def test_axes_in_another_order_are_named_by_a_layout(vcnef, model, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    later = np.stack([U0, 0 * U0], axis=1)  # [n t x c]
    np.save("states.npy", U0.transpose(0, 2, 1))
    np.save("trajectories.npy", later.transpose(0, 1, 3, 2))
    np.savez("turned.npz", u0=U0.transpose(1, 0, 2), x=X, nu=0.01)
    with h5py.File("own.hdf5", "w") as file:
        file["u"], file["x"], file["t"] = later.transpose(0, 3, 1, 2), X, [0.0, 1.0]
        file.attrs["nu"] = 0.01
    layouts = {"states.npy": "n c x", "trajectories.npy": "n t c x", "turned.npz": "x n c", "own.hdf5": "n c t x"}
    for name, layout in layouts.items():
        asked = ("predict", model, "--input", name, *ASK, "--param", "nu=0.01", "--out", "pred.npy")
        code, _, err = vcnef(*asked)
        assert code == 2, name
        assert f"layout='{layout}'" in err or "expected lengths (2,)" in err, err
        code, _, err = vcnef(*asked, "--layout", layout)
        assert (code, err) == (0, ""), name
        np.testing.assert_allclose(np.load("pred.npy"), expected, atol=1e-6)


def test_trajectories_in_hdf5_without_an_axis_of_channels(vcnef, model, expected, tmp_path):
    with h5py.File(tmp_path / "own.hdf5", "w") as file:
        file["u"], file["x"], file["t"], file["nu"] = np.stack([U0[..., 0]] * 3, axis=1), X, np.arange(3.0), [0.01] * 2
    code, _, err = vcnef("predict", model, "--input", tmp_path / "own.hdf5", *ASK, "--out", tmp_path / "pred.npy")
    assert (code, err) == (0, "")
    np.testing.assert_allclose(np.load(tmp_path / "pred.npy"), expected, atol=1e-6)


@pytest.mark.parametrize("name", ["own.nc", "own.npz", "own.hdf5"])
def test_files_that_name_their_axes_take_no_layout(vcnef, model, tmp_path, name):
    from_arrays(np.stack([U0, U0], axis=1), x=X).save(tmp_path / name)
    asked = ("predict", model, "--input", tmp_path / name, *ASK, "--param", "nu=0.01", "--out", tmp_path / "pred.npy")
    code, _, err = vcnef(*asked, "--layout", "n t x c")
    assert code == 2
    assert "names its axes itself, but layout is 'n t x c'. Leave layout out." in err


@pytest.mark.parametrize("suffix", [".npz", ".h5"])
def test_channels_of_a_file_are_put_in_the_order_of_the_model(vcnef, tmp_path, suffix):
    u = np.random.default_rng(0).random((4, 3, 16, 2)).astype("f4")
    Surrogate.build("vcnef", TINY, from_arrays(u, x=X, channels=["h", "q"]), seed=0).save(tmp_path / "model")
    answers = []
    for channels, field in ((["h", "q"], u), (["q", "h"], u[..., ::-1]), (["p", "v"], u)):
        path = tmp_path / f"own{suffix}"
        if suffix == ".npz":
            np.savez(path, u=field, x=X, channels=channels)
        else:
            with h5py.File(path, "w") as file:
                file["u"], file["x"], file["channels"] = field, X, channels
        asked = ("predict", tmp_path / "model", "--input", path, *ASK, "--out", tmp_path / "pred.npy")
        code, _, err = vcnef(*asked)
        if code == 0:
            answers.append(np.load(tmp_path / "pred.npy"))
    np.testing.assert_array_equal(*answers)
    assert f"own{suffix} has the channels p, v" in err
    assert "expects h, q. Give initial states of that problem." in err


def test_windows_of_adaptive_lengths_are_told(vcnef, model, tmp_path):
    np.save(tmp_path / "ic.npy", U0)
    asked = ("predict", model, "--input", tmp_path / "ic.npy", "--times", "0:4:5", "--param", "nu=0.01")
    code, printed, said = vcnef(*asked, "--out", tmp_path / "out.nc", "--tolerance", "100", "--device", "cpu")
    assert code == 0, said
    assert "4 windows, the shortest 1 long, in 8 calls of the network; the estimated error is up to" in printed
    with xr.open_dataset(tmp_path / "out.nc", engine="h5netcdf") as answer:
        assert answer.attrs["windows"].tolist() == [4, 4]
    code, _, said = vcnef(*asked, "--out", tmp_path / "again.nc", "--tolerance", "-1")
    assert code != 0
    assert "tolerance is -1; expected a number above 0" in said
