"""The solver at equal error: between its grids, outside of them, and what it makes of a training's cost."""

import json
import re
from dataclasses import fields
from math import inf

import pytest
import torch

import vcnef
from vcnef.evaluation.break_even import compare, seconds_at
from vcnef.evaluation.fastest import can_compile, fastest_model, on_threads
from vcnef.evaluation.fidelity import Fidelity, solver_at_its_best
from vcnef.evaluation.selections import Selection
from vcnef.report import RunRecord, build_report

GRIDS = [Fidelity((64,), 0.8, 1e-7, 8), Fidelity((32,), 0.2, 0.01, 8), Fidelity((16,), 0.05, 0.04, 8)]
"""Of second order: half of the points, four times the error in a quarter of the time."""


@pytest.mark.parametrize(
    ("nrmse", "seconds", "at_most"),
    [
        (0.01, 0.2, False),
        (0.02, 0.1, False),
        (0.04, 0.05, True),  # no coarser grid is known, which might do as well
        (0.3, 0.05, True),
        (0.002, 0.8, True),
    ],
)
def test_between_grids_of_second_order_an_error_is_inverse_to_its_time(nrmse, seconds, at_most):
    assert seconds_at(nrmse, GRIDS) == (pytest.approx(seconds), at_most)


def test_the_solver_may_be_known_on_its_own_grid_alone():
    assert seconds_at(0.01, GRIDS[:1]) == (0.8, True)


def test_training_and_its_data_are_paid_off_by_what_each_solve_saves():
    provenance = {"training_seconds": 60.0, "trajectories": 100}
    found = compare(0.02, 0.02, GRIDS, provenance)
    assert found.speed_up == pytest.approx(5.0)
    assert found.invested == pytest.approx(60.0 + 100 * 0.8)
    assert found.solves == pytest.approx(140.0 / (0.1 - 0.02))
    assert compare(0.02, 0.02, GRIDS, {}).solves is None
    assert compare(0.02, 0.1001, GRIDS, provenance).solves == inf


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    data = vcnef.generate("advection", samples=20, params={"beta": 1.0}, resolution=32, frames=5, horizon=0.1, seed=0)
    folder = tmp_path_factory.mktemp("run")
    run = vcnef.fit(data, window="direct", out=folder / "run", epochs=1, width=16, heads=2, devices="cpu", quiet=True)
    with pytest.MonkeyPatch.context() as patch:
        # Compiling takes seconds for each grid.
        patch.setattr("vcnef.evaluation.fidelity.can_compile", lambda known, device: False)
        return run, vcnef.evaluate(run.surrogate, data, break_even=True)


def test_an_evaluation_says_it_in_its_table_and_numbers(judged):
    run, found = judged
    provenance = run.surrogate.provenance
    assert (provenance["trajectories"], provenance["training_seconds"] > 0) == (17, True)
    paid = found.break_even
    assert (paid.model.samples, paid.model.threads) in {(n, 1) for n in (1, 4, 16, 64)}
    assert paid.seconds == paid.model.seconds <= 2 * found.result.cost.seconds
    # After one epoch an error is larger than that of the solver on a quarter of the points, the fewest.
    assert paid.at_most
    own, coarse = paid.solver
    assert (own.resolution, coarse.resolution) == ((32,), (8,))
    assert coarse.nrmse < found.result.value("nrmse")
    assert re.search(rf"solver at the same error, {own.samples} at once on 1 thread +at most", found.table())
    assert "solver's nRMSE on points" in found.table()
    assert "Break-even on" in found.table()
    assert f"at most {paid.speed_up:.3g}×" in found.table()
    record = json.loads(json.dumps(found.to_dict()))["break_even"]
    assert record["speed_up"] == pytest.approx(paid.speed_up)
    assert record["never"] == (paid.solves == inf)


def test_a_report_shows_it(judged):
    _, found = judged
    others = found.to_dict() | {"break_even": None}
    page = build_report([RunRecord("one", metrics=found.to_dict()), RunRecord("two", metrics=others)])
    assert "speed at the solver&#39;s equal error" in page
    assert f"at most {found.break_even.speed_up:.3g}×" in page


def test_without_a_solver_a_note_says_why(make_data, make_surrogate):
    data = make_data()
    found = vcnef.evaluate(make_surrogate(data), data, split="test", break_even=True)
    assert found.break_even is None
    assert "There is no break-even: no solver is known for these data." in found.notes


def test_the_solver_is_run_from_the_coarsest_grid_on_until_it_is_better(monkeypatch):
    """Finer ones would only cost time; what data take on their own grid is told from a part of them."""
    data = vcnef.generate("advection", samples=6, params={"beta": 1.0}, resolution=128, frames=5, horizon=0.1, seed=0)
    monkeypatch.setattr("vcnef.evaluation.fidelity.can_compile", lambda known, device: False)
    selection, parts = Selection(4, (0, 2, 4)), (2, 4, 8, 16)
    every = solver_at_its_best(data, selection, torch.device("cpu"), parts, 0.0)
    assert [each.resolution for each in every] == [(128,), (64,), (32,), (16,), (8,)]
    assert [each.nrmse for each in every] == sorted(each.nrmse for each in every)
    assert every[0].nrmse == 0
    some = solver_at_its_best(data, selection, torch.device("cpu"), parts, every[2].nrmse * 1.1)
    assert [each.resolution for each in some] == [(128,), (32,), (16,), (8,)]
    assert some[1].nrmse == pytest.approx(every[2].nrmse)
    assert all(each.samples == 6 and each.threads == 1 and not each.compiled for each in every)


def test_only_solvers_of_the_package_are_compiled(monkeypatch):
    cpu = torch.device("cpu")
    monkeypatch.setattr("vcnef.evaluation.fastest.shutil.which", lambda name: "/usr/bin/g++")
    assert can_compile(vcnef.pde.equation("burgers"), cpu)
    own = vcnef.Equation("compiled_never", lambda u, d, p: -u, domain=(0.0, 1.0))
    assert not can_compile(own, cpu)
    monkeypatch.setattr("vcnef.evaluation.fastest.shutil.which", lambda name: None)
    assert not can_compile(vcnef.pde.equation("burgers"), cpu)


def test_threads_are_as_they_were_after_a_measurement():
    before = torch.get_num_threads()
    with on_threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


def test_half_precision_is_taken_on_a_cpu_where_it_is_faster_and_harmless(judged, monkeypatch):
    run, _ = judged
    data = vcnef.generate("advection", samples=4, params={"beta": 1.0}, resolution=32, frames=5, horizon=0.1, seed=1)
    monkeypatch.setattr("vcnef.evaluation.fastest.cpu_multiplies_bf16", lambda: True)
    asked = []

    class Asked(type(run.surrogate)):
        def answer(self, u0, grid, t, params, precision="fp16", **options):
            asked.append(precision)
            return super().answer(u0, grid, t, params, **options) * (1.001 if precision == "bf16" else 1.0)

    surrogate = Asked(
        **{field.name: getattr(run.surrogate, field.name) for field in fields(run.surrogate) if field.init}
    )
    question = surrogate, data, data.params, Selection(1, (0, 4)), torch.device("cpu")
    monkeypatch.setattr(
        "vcnef.evaluation.fastest.time_model",
        lambda call, device, repeats: 1.0 if "precision" in call.keywords else 2.0,
    )
    way = fastest_model(*question, 0.01)
    assert (way.precision, way.samples) == ("bf16", 64)
    assert way.seconds == pytest.approx(1 / 64)
    # A more accurate model would lose by it.
    assert fastest_model(*question, 0.002).precision is None
