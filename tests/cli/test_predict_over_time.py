"""`vcnef predict` of equations that depend on the time, and with parameters that change with it."""

import numpy as np
import pytest
import xarray as xr

from vcnef.data import from_arrays
from vcnef.data import open as open_data
from vcnef.surrogate import Surrogate

TINY = {"width": 16, "heads": 2, "depth": 1, "modulations": 1}
T, X = np.linspace(0, 1, 5), (np.arange(16) + 0.5) / 16
F = np.random.default_rng(0).uniform(-1, 1, (8, 5))
DATA = from_arrays(np.random.default_rng(1).uniform(size=(8, 5, 16, 1)), t=T, x=X, params={"f": F})
ASK = ("--times", "0:1:5", "--device", "cpu")


@pytest.fixture
def model(tmp_path):
    surrogate = Surrogate.build("vcnef", TINY, DATA, window=0.25, explicit_time=True, seed=0)
    surrogate.save(tmp_path / "model")
    return Surrogate.load(tmp_path / "model")


@pytest.mark.parametrize("suffix", ["nc", "npz", "hdf5"])
def test_values_at_times_and_a_start_are_given_and_written(vcnef, model, tmp_path, suffix):
    from_arrays(DATA.u[:2].numpy(), t=T, x=X, params={"f": 0.5}).save(tmp_path / "ic.npz")
    out = tmp_path / f"pred.{suffix}"
    given = ("--param", "f=0,0.5,-0.5", "--param-times", "0,0.5,1", "--start", "0.0")
    code, _, err = vcnef("predict", tmp_path / "model", "--input", tmp_path / "ic.npz", *ASK, *given, "--out", out)
    assert (code, err) == (0, "")
    expected = model.predict(DATA.u[:2, 0], T, {"f": [0, 0.5, -0.5]}, X, params_t=[0, 0.5, 1.0], start=0.0)
    if suffix == "nc":
        with xr.open_dataset(out, engine="h5netcdf") as dataset:
            assert dataset["f"].dims == ("sample", "t")
    found = open_data(out)
    assert found.problem.varying == ("f",)
    np.testing.assert_allclose(found.params[..., 0], [np.interp(T, [0, 0.5, 1], [0, 0.5, -0.5])] * 2, atol=1e-6)
    np.testing.assert_allclose(found.u, expected.values, atol=1e-5)


def test_a_file_of_trajectories_says_when_it_begins_and_not_what_a_parameter_will_do(vcnef, model, tmp_path):
    from_arrays(DATA.u[:2, 1:].numpy(), t=T[1:], x=X, params={"f": F[:2, 1:]}).save(tmp_path / "later.npz")
    ask = ("predict", tmp_path / "model", "--input", tmp_path / "later.npz", "--times", "0:0.5:3", "--device", "cpu")
    code, _, err = vcnef(*ask, "--out", tmp_path / "pred.npy")
    assert code
    assert "The parameter f is missing" in err
    code, _, err = vcnef(*ask, "--param", "f=0.5", "--out", tmp_path / "pred.npy")
    assert (code, err) == (0, "")
    expected = model.predict(DATA.u[:2, 1], [0, 0.25, 0.5], {"f": 0.5}, X, start=0.25).values
    np.testing.assert_allclose(np.load(tmp_path / "pred.npy"), expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["nc", "saved npz", "hdf5", "npy", "npz"])
def test_the_first_frames_of_a_file_are_a_history(vcnef, tmp_path, kind):
    u, path = DATA.u[:2].numpy(), tmp_path / f"ic.{kind.split()[-1]}"
    data = from_arrays(DATA.u.numpy(), t=T, x=X)
    surrogate = Surrogate.build("vcnef", TINY | {"history": 2}, data, window=0.25, explicit_time=True, seed=0)
    surrogate.save(tmp_path / "model")
    if kind == "npy":
        np.save(path, u[:, :2])
    elif kind == "npz":
        np.savez(path, u0=u, x=X)
    else:
        from_arrays(u, t=T, x=X).save(path)
    expected = surrogate.predict(u[:, :2], [0, 0.5], x=X, start=0.25).values
    ask = ("predict", tmp_path / "model", "--input", path, "--times", "0,0.5", "--device", "cpu")
    code, _, err = vcnef(*ask, "--out", tmp_path / "pred.npy")
    assert (code, err) == (0, "")
    np.testing.assert_allclose(np.load(tmp_path / "pred.npy"), expected, atol=1e-5)
