"""How far the data themselves are from the solution."""

import pytest
import torch

import vcnef
from vcnef.evaluation import data_error as module
from vcnef.evaluation.data_error import data_error
from vcnef.pde import shifted

CPU = torch.device("cpu")


def test_data_of_advection_are_judged_by_the_exact_solution(make_surrogate):
    data = vcnef.generate("advection", samples=4, params={"beta": 1.0}, resolution=64, frames=5, horizon=0.5, seed=0)
    truth = shifted(data.u[:, 0], data.t[1:], 1.0)
    expected = float(vcnef.metrics.nrmse(data.u[:, 1:], truth, initial_frames=0))
    assert data_error(data, CPU) == pytest.approx(expected, rel=1e-4)


def test_of_other_data_it_is_the_distance_to_half_of_the_points():
    options = {"params": {"nu": 0.02}, "frames": 5, "horizon": 0.5, "seed": 0, "samples": 3}
    coarse, fine = (vcnef.generate("burgers", resolution=n, **options) for n in (128, 256))
    estimate = data_error(coarse, CPU)
    # Cells of the finer grid lie beside the points of the coarse one, half a cell to each side.
    truth = vcnef.pde.solve("burgers", coarse.u[:, 0], t=coarse.t, params={"nu": 0.02})
    assert torch.allclose(truth, coarse.u, atol=1e-3)
    assert 0 < estimate < 0.05
    assert data_error(fine, CPU) < estimate / 2


def test_an_evaluation_shows_it_and_warns_of_errors_below(make_data, make_surrogate):
    data = vcnef.generate("advection", samples=20, params={"beta": 4.0}, resolution=32, frames=5, horizon=1.0, seed=0)

    def perfect(u0, t, params):
        rows = (data.u[:, 0] - u0[:1]).flatten(1).abs().sum(1).argmin()
        return data.u[rows : rows + len(u0), 1:]

    found = vcnef.evaluate(perfect, data, split="all", batch=20)
    assert found.data_nrmse == pytest.approx(data_error(data, CPU))
    assert "nRMSE of the data, at most about" in found.table()
    assert any(note.startswith("The data themselves are off by up to about") for note in found.notes)
    assert found.to_dict()["data_nrmse"] == found.data_nrmse
    assert vcnef.evaluate(perfect, data, split="all", batch=20, solver=False).data_nrmse is None


def test_where_it_is_not_known(make_data, monkeypatch):
    odd = vcnef.generate("burgers", samples=2, params={"nu": 0.1}, resolution=33, frames=3, horizon=0.1)
    assert data_error(odd, CPU) is None
    monkeypatch.setattr(module, "LONGEST", 0.0)
    even = vcnef.generate("burgers", samples=2, params={"nu": 0.1}, resolution=32, frames=3, horizon=0.1)
    assert data_error(even, CPU) is None
