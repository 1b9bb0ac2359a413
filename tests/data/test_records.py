"""Trajectories as PyTorch's DataLoader takes them."""

import pickle

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from vcnef.data import Batches, Records, Scaling, from_arrays
from vcnef.data import open as open_data
from vcnef.models.registry import build

NAMES = {"u0", "u", "t", "grid", "params"}


def test_a_record_is_what_a_model_is_asked_and_answers(make_data):
    data = make_data("cns2d", samples=5)
    records = Records(data)
    assert len(records) == 5
    assert set(records[3]) == NAMES
    record = records[3]
    assert torch.equal(record["u0"], data.u[3, 0])
    assert torch.equal(record["u"], data.u[3, 1:])
    torch.testing.assert_close(record["t"], data.t[1:] - data.t[0])
    assert torch.equal(record["grid"], data.grid)
    assert torch.equal(record["params"], data.params[3])
    assert torch.equal(records[-2]["u"], record["u"])
    assert len(list(records)) == 5
    with pytest.raises(IndexError, match="There is no record 5; expected 0 to 4"):
        records[5]


@pytest.mark.parametrize("own_time", [False, True])
def test_batches_of_records_are_those_of_this_library(make_data, own_time):
    data = make_data(samples=6)
    data.params[:] = torch.linspace(0.01, 0.1, 6)[:, None]
    scaling = Scaling.fit(data, own_time=own_time)
    loader = DataLoader(Records(data, scaling=scaling), batch_size=4)
    for batch, expected in zip(loader, Batches(data, 4, seed=None, scaling=scaling), strict=True):
        for name in ("u0", "u", "params"):
            torch.testing.assert_close(batch[name], getattr(expected, name))
        torch.testing.assert_close(batch["t"], expected.t.expand_as(batch["t"]))
        torch.testing.assert_close(batch["grid"][0], expected.grid)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".hdf5"])
def test_workers_read_streamed_data(make_data, tmp_path, suffix):
    data = make_data("advection", samples=9)
    path = tmp_path / f"own{suffix}"
    np.save(path, data.u.numpy()) if suffix == ".npy" else data.save(path)
    train = open_data([path, path], stream=True).split("train")
    records = Records(train)
    order = torch.randperm(len(records), generator=torch.Generator().manual_seed(0)).tolist()
    loader = DataLoader(records, batch_size=4, sampler=order, num_workers=2)
    found = torch.cat([torch.cat([batch["u0"][:, None], batch["u"]], dim=1) for batch in loader])
    expected = train.load().u[order]
    assert torch.equal(found, expected)
    # Where workers are not forked, what they are given is pickled.
    again = pickle.loads(pickle.dumps(records))
    assert torch.equal(again[order[0]]["u"], expected[0, 1:])


@pytest.mark.parametrize("name", ["vcnef", "fno", "coral"])
def test_bare_models_take_batches_of_records(make_data, name):
    data = make_data("cns1d", samples=4)
    options = {"width": 16, "heads": 2, "depth": 1, "modulations": 1} if name == "vcnef" else {}
    options |= {"steps": 5} if name == "fno" else {}
    model = build(name, ndim=1, channels=3, params=2, **options)
    batch = next(iter(DataLoader(Records(data), batch_size=4)))
    answer = model(batch["u0"], batch["grid"], batch["t"], batch["params"])
    assert answer.shape == batch["u"].shape


def test_data_without_parameters(make_data):
    records = Records(from_arrays(make_data().u))
    batch = next(iter(DataLoader(records, batch_size=2)))
    assert batch["params"].shape == (2, 0)
    model = build("vcnef", ndim=1, channels=1, params=0, width=16, heads=2, depth=1, modulations=1)
    assert model(batch["u0"], batch["grid"], batch["t"], batch["params"]).shape == batch["u"].shape


def test_what_makes_no_records(make_data):
    with pytest.raises(ValueError, match=r"Records are of trajectories, got Tensor. Make such with vcnef.from_arrays"):
        Records(make_data().u)
    with pytest.raises(ValueError, match="The trajectories have 1 frame; expected an initial one and one after it"):
        Records(make_data().view(time_stride=10))
