"""The classical solver on coarser grids."""

import math
from dataclasses import replace

import pytest
import torch

from vcnef.data import generate
from vcnef.evaluation import fidelity
from vcnef.evaluation.fidelity import coarsen, measure_fidelities, refine
from vcnef.evaluation.selections import Selection


@pytest.fixture
def advection():
    return generate("advection", samples=6, params={"beta": 1.0}, resolution=64, frames=5, horizon=0.1, seed=0)


def test_fewer_points_are_faster_and_worse(advection):
    # As a model sees it that was trained on every second point and frame.
    found = measure_fidelities(advection, Selection(2, (0, 2, 4)), "cpu")
    assert [each.resolution for each in found] == [(32,), (16,), (8,)]
    assert all(each.seconds > 0 and each.samples == 6 for each in found)
    errors = [each.nrmse for each in found]
    assert 1e-4 < errors[0] < errors[1] < errors[2] < 1


def test_the_error_is_that_at_the_points_of_the_model(advection, monkeypatch):
    """A solver that does nothing leaves the error of standing still, however the points are chosen."""
    monkeypatch.setattr(
        fidelity, "classical_solver", lambda data, rows, **_: lambda u0, t: u0[:, None].expand(-1, len(t), -1, -1)
    )
    selection = Selection(2, (0, 2, 4))
    (found,) = measure_fidelities(advection, selection, "cpu", parts=(2,))
    truth = selection.cut(advection.u)
    error = (truth[:, :1] - truth[:, 1:]).norm(dim=2) / truth[:, 1:].norm(dim=2)
    assert found.nrmse == pytest.approx(error.mean().item(), rel=1e-5)


def test_trajectories_at_rest_have_no_error(advection):
    """They do not hide that of the others."""
    selection = Selection(1, (0, 4))
    moving = replace(advection, u=advection.u[3:].clone(), params=advection.params[3:], parts=(3,))
    (alone,) = measure_fidelities(moving, selection, "cpu", parts=(2,))
    advection.u[:3] = 0.0
    (found,) = measure_fidelities(advection, selection, "cpu", parts=(2,))
    assert (found.nrmse, found.samples) == (pytest.approx(alone.nrmse), 6)
    advection.u[:] = 0.0
    assert measure_fidelities(advection, selection, "cpu", parts=(2,)) == []


def test_what_is_left_out(advection, make_data, monkeypatch):
    selection = Selection(1, (0, 4))
    assert measure_fidelities(make_data(), Selection(1, (0, 8)), "cpu") == []
    assert measure_fidelities(advection, selection, "cpu", parts=(3, 16)) == []
    monkeypatch.setattr(fidelity, "LONGEST_SOLVE", 0.0)
    assert measure_fidelities(advection, selection, "cpu") == []


def test_a_solver_that_blows_up_is_left_out(advection, monkeypatch):
    blown = lambda data, rows, **_: lambda u0, t: torch.full((len(u0), len(t), *u0.shape[1:]), math.nan)  # noqa: E731
    monkeypatch.setattr(fidelity, "classical_solver", blown)
    assert measure_fidelities(advection, Selection(1, (0, 4)), "cpu") == []


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_coarser_and_finer_grids(ndim):
    u = torch.rand(2, 3, *(4,) * ndim, 2, dtype=torch.float64)
    fine = refine(u, 4)
    assert fine.shape == (2, 3, *(16,) * ndim, 2)
    torch.testing.assert_close(coarsen(fine[:, 0], 4), u[:, 0])
    # Halfway between two points, and around the periodic end.
    first = fine.flatten(2, -2) if ndim == 1 else fine[(..., *(0,) * (ndim - 1), slice(None))]
    points = u.flatten(2, -2) if ndim == 1 else u[(..., *(0,) * (ndim - 1), slice(None))]
    torch.testing.assert_close(first[:, :, 2], (points[:, :, 0] + points[:, :, 1]) / 2)
    torch.testing.assert_close(first[:, :, 14], (points[:, :, 3] + points[:, :, 0]) / 2)
