"""What was trained on is known again, however it is thinned, shortened, saved or streamed."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from vcnef.data import from_arrays
from vcnef.data import open as open_data
from vcnef.data.fingerprints import Fingerprints, codes_of, take_fingerprints

SIDES = {1: (64,), 2: (32, 64), 3: (16, 16, 32)}


def make(samples=12, frames=17, ndim=1, channels=1, seed=0, u0=None):
    u = np.random.default_rng(seed).normal(size=(samples, frames, *SIDES[ndim], channels)).astype("f4")
    if u0 is not None:
        u[:, 0] = u0
    return from_arrays(u, t=np.linspace(0.0, 2.0, frames))


def take(data, rows=(0, 2, 5)):
    return take_fingerprints(data, torch.tensor(rows))


@pytest.mark.parametrize("ndim", [1, 2, 3])
@pytest.mark.parametrize("trained", [{}, {"space_stride": 2}, {"time_stride": 4, "horizon": 1.0}])
@pytest.mark.parametrize("judged", [{}, {"space_stride": 2}, {"space_stride": 2, "time_stride": 2}, {"horizon": 0.5}])
def test_they_are_the_same_for_all_views(ndim, trained, judged):
    data = make(ndim=ndim, channels=2)
    known = take(data.view(**trained))
    assert known.among(data.view(**judged)).nonzero().flatten().tolist() == [0, 2, 5]
    assert not known.among(make(ndim=ndim, channels=2, seed=1).view(**judged)).any()


@pytest.mark.parametrize("suffix", [".hdf5", ".nc", ".npz"])
def test_they_are_the_same_in_files(suffix, tmp_path):
    data = make()
    path = data.save(tmp_path / f"own{suffix}")
    known = take(open_data(path, space_stride=2, time_stride=2, stream=True))
    assert known.digest() == take(data.view(space_stride=2)).digest()
    for stream in (True, False):
        assert known.among(open_data(path, stream=stream)).nonzero().flatten().tolist() == [0, 2, 5]


def test_streamed_data_are_not_read_for_them_but_at_a_few_points(tmp_path, monkeypatch):
    stored = open_data(make(ndim=2).save(tmp_path / "own.hdf5"), stream=True)
    sizes, read = [], type(stored).read
    monkeypatch.setattr(
        type(stored),
        "read",
        lambda self, rows, cut=(): sizes.append(read(self, rows, cut).shape) or read(self, rows, cut),
    )
    take(stored)
    assert sizes == [(12, 1, 8, 8, 1)]


def test_they_survive_a_folder_and_are_small():
    data = make(samples=1000, frames=2)
    known = take(data, range(1000))
    record = known.to_dict()
    assert len(record["codes"]) <= 7 * 1000
    assert Fingerprints.from_dict(record).among(data).all()


def test_scattered_points_have_them():
    u = np.random.default_rng(0).normal(size=(6, 4, 30, 1))
    data = from_arrays(u, x=np.random.default_rng(1).random((30, 2)))
    assert take(data).among(data).nonzero().flatten().tolist() == [0, 2, 5]
    assert take(data).among(replace(data, grid=data.grid + 0.1)) is None


def test_data_without_the_points_or_times_tell_nothing():
    data = make()
    known = take(data)
    assert known.among(make(ndim=2)) is None
    assert known.among(data.view(space_stride=16)) is None
    assert known.among(replace(data, grid=data.grid + 0.004)) is None
    at_rest = make(u0=0.0)
    assert take(at_rest).among(at_rest.view(horizon=0.25)) is None


def test_a_state_is_known_again_at_another_parameter():
    """Files of one equation share initial states by index; a state that was seen is none to judge on."""
    first, second = make(seed=0), make(seed=1)
    second.u[:, 0] = first.u[:, 0]
    assert take(first).among(second).sum() == 3
    both = replace(
        first,
        u=torch.cat([first.u, second.u]),
        params=torch.cat([first.params, second.params]),
        parts=(12, 12),
    )
    assert take(both).places.times == (0.0,)


@pytest.mark.parametrize("u0", [0.0, np.sin(np.arange(64.0))[:, None]])
def test_where_all_begin_alike_later_frames_tell_them_apart(u0):
    data, others = make(u0=u0), make(u0=u0, seed=1)
    known = take(data)
    assert known.places.times == (0.0, 1.0)
    assert known.among(data).nonzero().flatten().tolist() == [0, 2, 5]
    assert known.among(data.view(time_stride=8)).nonzero().flatten().tolist() == [0, 2, 5]
    assert not known.among(others).any()


def test_sets_of_their_own_are_taken_too():
    data, valid = make(), make(samples=4, seed=1)
    known = take_fingerprints(data, torch.tensor([0]), [valid])
    assert known.among(valid).all()
    assert known.among(data).sum() == 1


def test_signs_of_zero_do_not_matter():
    data = make(samples=1)
    data.u[:, 0] = 0.0
    places = take(data, (0,)).places
    assert codes_of(data, places) == codes_of(replace(data, u=torch.where(data.u == 0, -0.0, data.u)), places)
