"""HDF5 files with u, t, x and parameters under these names, as others write them."""

import pickle

import h5py
import numpy as np
import pytest
import torch

from vcnef.data import from_arrays
from vcnef.data import open as open_data
from vcnef.data.fields import DatasetFields

ROOT = np.random.default_rng(0)
U = ROOT.random((6, 5, 8, 4, 2))
T, X, Y, NU = np.arange(5.0) / 4, np.arange(8.0), np.arange(4.0) / 2, ROOT.random(6)


def write(path, datasets, attributes=None, **storage):
    with h5py.File(path, "w") as file:
        for key, value in datasets.items():
            options = storage if key == "u" else {}
            file.create_dataset(key, data=value, **options)
        file.attrs.update(attributes or {})
    return path


def test_it_says_what_from_arrays_is_told(tmp_path):
    names = np.array(["h", "v"], dtype=h5py.string_dtype())
    told = {"u": U, "t": T, "x": X, "y": Y, "channels": names, "nu": NU[:, None], "g": 9.81}
    path = write(tmp_path / "own.hdf5", told, {"periodic": False, "rho": 2.0, "remark": "by the sea"})
    params = {"g": 9.81, "nu": NU, "rho": 2.0}
    same = from_arrays(U, t=T, x=(X, Y), channels=["h", "v"], params=params, name="own", periodic=False)
    for data in (open_data(path), open_data(path, stream=True).load()):
        assert data.problem == same.problem
        for part in ("u", "t", "grid", "params"):
            assert torch.equal(getattr(data, part), getattr(same, part)), part
    # All but the fields may be attributes.
    told = {"t": T, "x": X, "y": Y, "channels": ["h", "v"], "periodic": 0, "nu": NU, "g": 9.81, "rho": 2.0}
    assert open_data(write(tmp_path / "own.h5", {"u": U}, told)).problem.channels == ("h", "v")


def test_u_alone_is_enough(tmp_path):
    data = open_data(write(tmp_path / "burgers.h5", {"u": U}), params={"c": 2.0})
    assert (data.problem.name, data.problem.ranges) == ("custom", {"c": (2.0, 2.0)})
    assert data.problem.periodic


@pytest.mark.parametrize("storage", [{}, {"chunks": (1, 2, 2, 8, 4), "compression": "gzip"}])
def test_it_is_streamed_row_by_row_in_any_layout(tmp_path, monkeypatch, storage):
    path = write(tmp_path / "own.hdf5", {"u": U.transpose(0, 1, 4, 2, 3), "t": T, "x": X, "y": Y}, **storage)
    data = open_data(path, layout="n t c x y", stream=True, space_stride=2, time_stride=2)
    expected = U[:, ::2, ::2, ::2].astype("f4")
    asked = []
    read = DatasetFields.read
    monkeypatch.setattr(
        DatasetFields, "read", lambda own, rows, cut: asked.append(rows.tolist()) or read(own, rows, cut)
    )
    np.testing.assert_array_equal(data.read(torch.tensor([5, 1, 2])), expected[[5, 1, 2]])
    assert asked == [[1, 2, 5]]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(data)).load().u, expected)
    turned = write(tmp_path / "turned.h5", {"u": U.transpose(3, 2, 1, 4, 0)})
    np.testing.assert_array_equal(open_data(turned, layout="y x t c n").u, U.astype("f4"))


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".nc", ".hdf5"])
def test_streamed_data_can_be_pickled(tmp_path, suffix):
    path = tmp_path / f"own{suffix}"
    np.save(path, U) if suffix == ".npy" else from_arrays(U).save(path)
    data = open_data(path, stream=True)
    again = pickle.dumps(data)
    assert torch.equal(pickle.loads(again).load().u, data.load().u)
    if suffix in (".npy", ".hdf5"):
        assert len(again) < U.nbytes / 2  # the fields stay in their file


@pytest.mark.parametrize(
    ("change", "attributes", "message"),
    [
        ({"u": np.ones((6, 8, 5, 1)), "y": None}, {}, "does not fit 5 times, 8 points along x. Give layout='n x t c'"),
        ({"u": np.ones((6, 5, 1, 8)), "x": None, "y": None}, {}, "a single point along x; .* layout='n t c x'"),
        ({"u": np.ones(6)}, {}, r"has float64 of shape \(6,\); expected numbers \[samples, times"),
        ({"u": np.array([b"a"])}, {}, r"of shape \(1,\); expected numbers"),
        ({"u": h5py.Empty("f4")}, {}, "has an empty dataset 'u'; expected arrays"),
        ({"t": T[::-1]}, {}, "t is not increasing"),
        ({"x": None}, {}, "has the axes y; expected x. Rename them"),
        ({"time": T}, {}, r"has an array 'time' of shape \(5,\), .* Did you mean 't'\? Rename it"),
        (
            {"mask": np.ones((6, 8))},
            {},
            r"has an array 'mask' of shape \(6, 8\), .* no parameter, one number, 6 or \(6, 5\)",
        ),
        ({"part/u": U}, {}, "has a group 'part'; expected arrays, none of them in groups"),
        ({"params": np.ones((6, 2))}, {}, r"has 'params' of shape \(6, 2\) without names; save each by its own"),
        ({}, {"nu": NU[:3]}, r"has an array 'nu' of shape \(3,\), .* no parameter, one number, 6 or \(6, 5\)"),
        ({"nu": NU}, {"nu": 0.1}, "has 'nu' as a dataset and as an attribute. Keep one of them"),
        ({}, {"t": T}, "has 't' as a dataset and as an attribute"),
        ({}, {"periodic": "no"}, "The note 'periodic' is 'no'; expected 1 or 0"),
        ({}, {"channels": ["a", "b", "c"]}, r"channels are \['a', 'b', 'c'\]; expected 2 names"),
        ({"u": np.where(np.arange(6) == 2, np.nan, 1.0).reshape(6, 1, 1, 1, 1) * U}, {}, "NaN or infinity in traject"),
    ],
)
def test_messages(tmp_path, change, attributes, message):
    datasets = {key: value for key, value in ({"u": U, "t": T, "x": X, "y": Y} | change).items() if value is not None}
    path = write(tmp_path / "own.hdf5", datasets, attributes)
    with pytest.raises(ValueError, match=f"own.hdf5 .*{message}") as caught:
        open_data(path)
    assert "\n" not in str(caught.value)
