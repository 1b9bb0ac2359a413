"""Sets, files and records of data whose parameters change with time."""

import h5py
import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import vcnef
from vcnef.data import open as open_data
from vcnef.data.records import Records
from vcnef.data.sets import make_sets
from vcnef.surrogate import Surrogate

T, X = np.linspace(0, 1, 5), np.arange(8) / 8


def make(samples, size=1.0, seed=0, order=("f", "g")):
    generator = np.random.default_rng(seed)
    params = {"f": size * generator.uniform(-1, 1, (samples, 5)), "g": generator.uniform(0, 1, samples)}
    u = generator.normal(size=(samples, 5, 8, 1))
    return vcnef.from_arrays(u, t=T, x=X, params={name: params[name] for name in order})


def test_sets_of_their_own_are_put_in_order_and_compared_by_their_extremes():
    data, alike, stronger = make(60), make(20, seed=1, order=("g", "f")), make(20, size=4.0, seed=2)
    sets = make_sets(data, 0.1, valid=alike)
    assert sets.valid.problem.parameters == ("f", "g")
    torch.testing.assert_close(sets.valid.params, alike.params[..., [1, 0]])
    assert sets.doubts == ()
    said = make_sets(data, 0.1, test=stronger).doubts
    assert any("trajectories of the test set have the largest f outside of the" in each for each in said)
    assert any("have the smallest f outside of the" in each for each in said)
    assert not any(" g " in each for each in said)


def test_a_set_whose_parameter_stays_is_another_problem():
    constant = vcnef.from_arrays(make(9, seed=1).u.numpy(), t=T, x=X, params={"f": 0.5, "g": 0.5})
    with pytest.raises(ValueError, match="their parameters that change with time are none and f"):
        make_sets(make(30), 0.1, valid=constant)


def test_records_hold_the_values_at_all_frames():
    data = make(6)
    record = Records(data)[2]
    assert torch.equal(record["params"], data.params[2])
    surrogate = Surrogate.build("vcnef", {"width": 16, "heads": 2, "patches": ()}, data, window=0.25, seed=0)
    batch = next(iter(DataLoader(Records(data, scaling=surrogate.scaling), batch_size=4)))
    assert batch["params"].shape == (4, 5, 2)
    assert batch["params"].abs().max() <= 1.001


def test_hdf5_files_of_named_arrays_hold_them_in_any_layout(tmp_path):
    data = make(6)
    with h5py.File(tmp_path / "mine.hdf5", "w") as file:
        file["u"], file["t"], file["x"] = np.moveaxis(data.u[..., 0].numpy(), 0, 1), T, X
        file["f"], file["g"] = data.params[..., 0], data.params[:, 0, 1]
    found = open_data(tmp_path / "mine.hdf5", layout="t n x")
    assert found.problem.varying == ("f",)
    torch.testing.assert_close(found.params, data.params)
    thin = open_data(tmp_path / "mine.hdf5", layout="t n x", time_stride=2)
    torch.testing.assert_close(thin.params, data.params[:, ::2])
