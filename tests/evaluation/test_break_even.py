"""The solver at equal error: between its grids, outside of them, and what it makes of a training's cost."""

import json
from math import inf

import pytest

import vcnef
from vcnef.evaluation.break_even import compare, seconds_at
from vcnef.evaluation.fidelity import Fidelity
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
    return run, vcnef.evaluate(run.surrogate, data, break_even=True)


def test_an_evaluation_says_it_in_its_table_and_numbers(judged):
    run, found = judged
    provenance = run.surrogate.provenance
    assert (provenance["trajectories"], provenance["training_seconds"] > 0) == (17, True)
    paid = found.break_even
    assert paid.seconds == found.result.cost.seconds
    # After one epoch an error is larger than that of the solver on an eighth of the points.
    assert paid.at_most
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
