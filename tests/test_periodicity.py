"""Domains that close along some axes and end along others: how they are said, noted and read again."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from vcnef.data import from_arrays
from vcnef.data import open as open_data
from vcnef.data.source import check_alike
from vcnef.data.windows import looked_at
from vcnef.evaluation.cost import has_solver
from vcnef.evaluation.held_out import choose_judged
from vcnef.explorer.workbench import find_equation
from vcnef.own_data import fitting_patches
from vcnef.pde import equation
from vcnef.periodicity import of_points, per_axis, settle, spell_axes
from vcnef.problem import Problem
from vcnef.surrogate import Surrogate

CHANNEL = (True, False)


def channel(shape=(8, 6), **given):
    fields = np.random.default_rng(0).random((5, 4, *shape, 1))
    return from_arrays(fields, periodic=CHANNEL, **given)


def test_one_answer_stands_for_all_axes_where_it_can():
    assert settle((True, True), 2) is True
    assert settle(np.array([False, False]), 2) is False
    assert settle([True, False], 2) == CHANNEL
    assert per_axis({"y": False}, 3) == (True, False, True)
    assert [spell_axes(each) for each in (CHANNEL, (True, True), (False,))] == [
        "along x",
        "along x and y",
        "along no axis",
    ]
    assert of_points(CHANNEL, (8, 6)) == CHANNEL
    # Scattered points stand in a row, which has no axes.
    assert (of_points(CHANNEL, (48,)), of_points(True, (48,))) == ((False,), (True,))


def test_problems_of_one_answer_are_written_as_ever_and_others_as_a_list():
    box = {"name": "flow", "channels": ["u"], "domain": [[0.0, 1.0], [0.0, 2.0]]}
    for noted, kept in ((True, True), (False, False), ([True, False], CHANNEL), ([True, True], True)):
        problem = Problem.from_dict(box | {"periodic": noted})
        assert problem.periodic == kept
        assert Problem.from_dict(json.loads(json.dumps(problem.to_dict()))) == problem
        assert problem.closes == ((kept, kept) if isinstance(kept, bool) else kept)
    assert json.dumps(Problem.from_dict(box).to_dict()["periodic"]) == "true"
    with pytest.raises(ValueError, match="periodic is 'no'; expected True or False"):
        Problem.from_dict(box | {"periodic": "no"})


@pytest.mark.parametrize("suffix", [".hdf5", ".nc", ".npz"])
def test_files_keep_it_for_each_axis(tmp_path, suffix):
    path = channel().save(tmp_path / f"flow{suffix}")
    assert open_data(path).problem.periodic == CHANNEL
    assert open_data(path, stream=True, periodic=True).problem.periodic is True
    assert open_data(path, periodic={"x": False}).problem.periodic == (False, True)


@pytest.mark.parametrize("note", [[1, 0], np.array([1, 0], dtype="i1"), np.array([True, False])])
def test_notes_of_others_have_one_number_or_one_for_each_axis(tmp_path, note):
    u = np.random.default_rng(0).random((5, 4, 8, 6, 1))
    np.savez(tmp_path / "own.npz", u=u, periodic=note)
    assert open_data(tmp_path / "own.npz").problem.periodic == CHANNEL
    labelled = channel().to_xarray().assign_attrs(periodic=np.asarray(note, dtype="i4"))
    assert from_arrays(labelled).problem.periodic == CHANNEL
    np.savez(tmp_path / "line.npz", u=u[..., 0, :], periodic=note)
    with pytest.raises(ValueError, match=r"The note 'periodic' is .*; expected 1 or 0. Say it with periodic="):
        open_data(tmp_path / "line.npz")
    assert open_data(tmp_path / "line.npz", periodic=False).problem.periodic is False
    with pytest.raises(ValueError, match=r"The note 'periodic' is .*; expected 1 or 0. Say it with periodic="):
        from_arrays(labelled.isel(y=0, drop=True))
    assert from_arrays(labelled.isel(y=0, drop=True), periodic=True).problem.periodic is True


def test_a_part_of_a_channel_does_not_close_along_the_axis_that_was_cut():
    labelled = channel().to_xarray()
    assert from_arrays(labelled.isel(x=slice(0, 4))).problem.periodic is False
    assert from_arrays(labelled.isel(y=slice(0, 4))).problem.periodic == CHANNEL


def test_points_are_left_out_by_divisors_along_periodic_axes_alone():
    assert channel((8, 7)).view(space_stride=2).resolution == (4, 4)
    with pytest.raises(ValueError, match="7 points do not divide by space_stride 2"):
        channel((7, 8)).view(space_stride=2)


def test_files_of_other_sides_are_not_joined(tmp_path):
    data = channel()
    first = data.save(tmp_path / "a.npz")
    second = replace(data, problem=replace(data.problem, periodic=(False, True))).save(tmp_path / "b.npz")
    with pytest.raises(ValueError, match="cannot be opened together: they are periodic along y and along x"):
        open_data([first, second])
    third = replace(data, problem=replace(data.problem, periodic=True)).save(tmp_path / "c.npz")
    with pytest.raises(ValueError, match="they are periodic along x and y and along x"):
        open_data([first, third])
    check_alike([open_data(first, stream=True).sources[0]])


def test_scattered_points_of_a_channel_can_be_thinned():
    x = torch.rand(30, 2)
    data = from_arrays(torch.rand(3, 2, 30, 1), x=x, periodic=CHANNEL)
    assert data.view(space_stride=4).resolution == (8,)


def test_patches_close_the_ring_along_periodic_axes_alone():
    for sides, expected in (((32, 33), (4,)), ((33, 32), ())):
        data = channel(sides)
        # Of waves that are long enough for any patch.
        long_waves = torch.sin(2 * torch.pi * data.grid[..., :1]).expand_as(data.u)
        wavy = replace(data, u=long_waves.contiguous())
        assert fitting_patches(wavy, looked_at(wavy)) == expected


def test_a_model_of_a_channel_tells_the_data_and_has_no_solver(tmp_path):
    known = equation("cns2d").problem
    u = 1.0 + np.random.default_rng(0).random((10, 3, 8, 8, 4))
    given = {"params": {"eta": 0.1, "zeta": 0.1}, "channels": known.channels, "name": "cns2d"}
    data = from_arrays(u, **given)
    walled = from_arrays(u, **given, periodic=CHANNEL)
    assert (has_solver(data), has_solver(walled)) == (True, False)
    options = {"width": 16, "heads": 2, "depth": 1, "modulations": 1, "patches": (4,), "local": 1}
    surrogate = Surrogate.build("vcnef", options, walled, seed=0)
    surrogate.save(tmp_path / "model")
    loaded = Surrogate.load(tmp_path / "model")
    assert loaded.problem.periodic == loaded.options["periodic"] == CHANNEL
    assert loaded.model.modulations[0].local.closes == CHANNEL
    assert find_equation(loaded) is None
    assert find_equation(Surrogate.build("vcnef", options, data, seed=0)) is not None
    # Files of plain arrays do not say it.
    assert choose_judged(loaded, data, "test").data.problem.periodic == CHANNEL
    u0 = torch.as_tensor(u[:2, 0]).float()
    times = {"t": [0.5, 1.0], "params": {"eta": 0.1, "zeta": 0.1}}
    assert np.array_equal(loaded.predict(u0, **times).values, surrogate.predict(u0, **times).values)
