"""Small worlds to be asked wrongly, and how a case has to end: one sentence, a warning, or the right answer."""

import json
import warnings
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
import torch
import xarray as xr

from vcnef.data import from_arrays
from vcnef.surrogate import Surrogate

TINY = {"width": 16, "heads": 2, "depth": 1, "modulations": 1}
UNITS = {"t": "s", "x": "m", "h": "m", "q": "m2/s", "a": "m/s"}
POINTS, FRAMES, SAMPLES = 32, 6, 12
X, T = (np.arange(POINTS) + 0.5) / POINTS, np.linspace(0, 1, FRAMES)
A, B = np.linspace(0.5, 1.5, SAMPLES), np.linspace(0, 0.5, SAMPLES)


def waves():
    """[n t x c] of two fields that are of different sizes."""
    angle = 2 * np.pi * (X - A[:, None, None] * T[:, None])
    return np.stack([2 + np.sin(angle) + B[:, None, None], 0.3 * np.cos(angle)], axis=-1)


U = waves()


def dataset(**units):
    """The waves with all of their units, some of them others."""
    fields = {name: (("sample", "t", "x"), U[..., i]) for i, name in enumerate("hq")}
    data = xr.Dataset(fields | {"a": ("sample", A), "b": ("sample", B)}, {"t": T, "x": X})
    for name, unit in (UNITS | units).items():
        data[name].attrs["units"] = unit
    return data


def make_flat():
    """A model of two fields in two dimensions, on 12 × 16 points."""
    x, y, c = (np.arange(12) + 0.5) / 12, 2 * (np.arange(16) + 0.5) / 16, np.linspace(0.5, 1.5, 8)
    angle = 2 * np.pi * (x[:, None] + y / 2) + c[:, None, None, None] * T[:, None, None]
    u = np.stack([np.sin(angle), 2 + np.cos(angle)], axis=-1)
    data = from_arrays(u, t=T, x=(x, y), params={"c": c}, channels=["vx", "vy"])
    model = Surrogate.build("vcnef", TINY | {"patches": ()}, data, seed=0)
    return SimpleNamespace(model=model, u=u, x=x, y=y, c=c, given={"c": c[:3]})


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    """Data of two fields and two parameters, a model for them, and one of Burgers' equation."""
    data = from_arrays(dataset())
    model = Surrogate.build("vcnef", TINY, data, seed=0)
    nu = np.linspace(0.01, 0.1, SAMPLES)
    v = (np.sin(2 * np.pi * (X + 30 * nu[:, None]))[:, None] * np.linspace(1, 0.5, FRAMES)[:, None])[..., None]
    scalar = from_arrays(v, t=T, x=X, params={"nu": nu}, name="burgers", periodic=True)
    burgers = Surrogate.build("vcnef", TINY, scalar, seed=0)
    stepper = Surrogate.build("fno", {"width": 8, "modes": 4, "depth": 1}, scalar, seed=0)
    folder, burgers_folder = tmp_path_factory.mktemp("hq"), tmp_path_factory.mktemp("burgers")
    model.save(folder)
    burgers.save(burgers_folder)
    given = {"a": A[:3], "b": B[:3]}
    return SimpleNamespace(
        data=data, model=model, folder=folder, burgers=burgers, burgers_data=scalar, burgers_folder=burgers_folder,
        stepper=stepper, flat=make_flat(), u0=U[:3, 0], given=given, right=model.predict(U[:3, 0], [0.5], given).values,
    )  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def unchecked(as_users_call):
    """All tests here."""


@pytest.fixture(scope="session")
def ends():
    """Calls something, and fails unless it ends as it has to; "right" is an answer without a word."""

    def check(call, how, said=""):
        if how == "refused":
            with pytest.raises((ValueError, OSError), match=said) as error:
                call()
            text = str(error.value)
            assert "\n" not in text
            assert len(text) > 20
            assert text.rstrip().endswith((".", "?"))
            assert type(error.value).__name__ != "JSONDecodeError"
        elif how == "warned":
            with pytest.warns(UserWarning, match=said):
                call()
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("error", UserWarning)
                found = call()
            assert found is None or np.all(np.isfinite(found))

    return check


@pytest.fixture(scope="session")
def writers(tmp_path_factory):
    """Files of the waves, changed as a case says."""
    folder, count = tmp_path_factory.mktemp("written"), iter(range(10_000))

    def npz(**arrays):
        path = folder / f"f{next(count)}.npz"
        np.savez(path, **arrays)
        return path

    def hdf5(arrays, attributes=None, units=None):
        path = folder / f"f{next(count)}.hdf5"
        with h5py.File(path, "w") as file:
            file.attrs.update(attributes or {})
            for name, array in arrays.items():
                file[name] = array
            for name, unit in (units or {}).items():
                file[name].attrs["units"] = unit
        return path

    def netcdf(data):
        path = folder / f"f{next(count)}.nc"
        data.to_netcdf(path, engine="h5netcdf")
        return path

    def saved(data, suffix, **problem):
        """As `save` writes it, with another description."""
        path = data.save(folder / f"f{next(count)}{suffix}")
        if suffix == ".npz":
            with np.load(path) as held:
                arrays = dict(held)
            described = json.loads(str(arrays["problem"])) | problem
            np.savez(path, **arrays | {"problem": json.dumps(described)})
        else:
            with h5py.File(path, "r+") as file:
                file.attrs["problem"] = json.dumps(json.loads(file.attrs["problem"]) | problem)
        return path

    return SimpleNamespace(npz=npz, hdf5=hdf5, netcdf=netcdf, saved=saved, folder=folder)


@pytest.fixture(scope="session", autouse=True)
def one_core():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
