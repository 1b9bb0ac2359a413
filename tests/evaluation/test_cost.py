"""Time and memory of a call, and of the classical solver beside a model."""

import gc
import re
import time
from dataclasses import replace

import h5py
import pytest
import torch

from vcnef.data import from_arrays, generate
from vcnef.data import open as open_data
from vcnef.evaluation import cost as cost_room
from vcnef.evaluation import evaluate, peak_memory, time_model
from vcnef.evaluation.fidelity import measure_fidelities
from vcnef.evaluation.selections import Selection
from vcnef.evaluation.tables import number, seconds
from vcnef.pde import solve


def test_seconds_are_the_median_after_a_warm_up():
    pauses = iter([0.2, 0.01, 0.01, 0.05])
    assert 0.009 < time_model(lambda: time.sleep(next(pauses)), "cpu", repeats=3) < 0.04


def test_slow_calls_are_not_repeated_for_ever(monkeypatch):
    monkeypatch.setattr("vcnef.timing.ENOUGH_SECONDS", 0.02)
    calls = []
    time_model(lambda: (calls.append(1), time.sleep(0.02)), "cpu", repeats=100)
    assert len(calls) == 2


def test_repeats_must_be_positive():
    with pytest.raises(ValueError, match="repeats is 0; expected at least 1"):
        time_model(lambda: None, "cpu", repeats=0)


def test_the_clock_waits_for_the_device_that_works(monkeypatch):
    """With several of them torch waits for the current one, unless it is told."""
    waited = []
    monkeypatch.setattr(torch.accelerator, "synchronize", waited.append)
    time_model(lambda: waited.append("call"), "cuda:1", repeats=1)
    assert waited == ["call", "cuda:1", "call", "cuda:1"]


def test_memory_is_known_on_a_gpu_only():
    assert peak_memory(lambda: None, "cpu") is None


@pytest.mark.gpu
def test_memory_on_a_gpu():
    assert peak_memory(lambda: torch.ones(2**20, device="cuda"), "cuda") >= 4 * 2**20


def test_the_truth_is_none_of_a_models_memory(make_data, make_surrogate, monkeypatch):
    """Of the trajectories only the initial states lie on the device while the model answers."""
    data, held = make_data(samples=4, points=64, frames=9), set()

    def weigh(call, device):
        found = (each for each in gc.get_objects() if issubclass(type(each), torch.Tensor) and each.device == device)
        held.update(tuple(each.shape) for each in found)

    monkeypatch.setattr(cost_room, "time_model", lambda call, device: 1.0)
    monkeypatch.setattr(cost_room, "peak_memory", weigh)
    asked = Selection(1, tuple(range(9))), torch.device("meta")
    cost_room.measure_cost(make_surrogate(data), data, data.params, *asked, solver=False)
    assert (4, 64, 1) in held
    assert not held & {(4, 9, 64, 1), (4, 8, 64, 1)}


@pytest.fixture
def burgers():
    return generate("burgers", samples=10, params={"nu": 0.01}, resolution=32, frames=3, horizon=0.1, seed=0)


def test_the_solver_is_timed_beside_the_model(burgers, make_surrogate):
    surrogate = make_surrogate(burgers, provenance={"resolution": [16]})
    found = evaluate(surrogate, burgers, space=(32,), time=(3,))
    coarse, fine = (each.cost for each in found.space)
    assert coarse.solver_seconds > 0
    assert fine.speed_up == pytest.approx(fine.solver_seconds / fine.seconds)
    assert fine.solver_nrmse < 1e-5
    assert 1e-4 < coarse.solver_nrmse < 0.2
    assert "solver nRMSE" in found.table()
    without = evaluate(surrogate, burgers, solver=False)
    assert without.result.cost.solver_seconds is None


def test_the_solver_is_that_of_the_equation_which_the_data_obey(make_surrogate, tmp_path):
    """The benchmark's files of 2022 do not say that they are; own data on (−1, 1) need not be."""
    made = generate(
        "burgers", samples=2, params={"nu": 0.01}, resolution=32, frames=3, horizon=0.1, seed=0, generation="2022"
    )
    published = made.save(tmp_path / "1D_Burgers_Sols_Nu0.01.hdf5")
    with h5py.File(published, "r+") as file:
        for note in set(file.attrs) - {"Nu"}:
            del file.attrs[note]
        del file["params"], file["attempts"]
    for data in (made, open_data(made.save(tmp_path / "made.nc")), open_data(published)):
        found = evaluate(make_surrogate(data, provenance={}), data, split="all")
        assert found.result.cost.solver_nrmse < 1e-5
    u = solve("burgers", made.u[:, 0], t=made.t, params={"nu": 0.01}, domain=[(-1.0, 1.0)])
    own = from_arrays(u, t=made.t, x=made.grid, params={"nu": 0.01}, name="burgers")
    assert evaluate(make_surrogate(own, provenance={}), own, split="all").result.cost.solver_nrmse < 1e-5


def test_every_time_says_how_many_trajectories_were_computed_together(make_data, make_surrogate, monkeypatch):
    monkeypatch.setitem(cost_room.POINTS, "cpu", 64)
    data = make_data()
    *_, table = evaluate(make_surrogate(data), data, space=(64,), split="all").sections()
    assert table.header[:2] == ("points", "at once")
    assert [row[:2] for row in table.rows] == [("16", "4"), ("64", "1")]


def test_a_solver_that_does_not_follow_the_data_is_left_out_and_said(burgers, make_surrogate):
    """As of foreign data with other constants, which somebody has called burgers."""
    faster = replace(burgers, t=0.25 * burgers.t)
    found = evaluate(make_surrogate(faster, provenance={}), faster)
    assert found.result.cost.solver_seconds is None
    (said,) = [note for note in found.notes if "solver" in note]
    assert re.fullmatch(
        r"The data are called 'burgers', but over their first step the solver of that equation misses \d\d% of the "
        r"change, so they obey another one: the solver is left out\.", said,
    )  # fmt: skip
    assert measure_fidelities(faster, Selection(1, (0, 1)), "cpu") == []


def test_constants_that_are_not_those_of_the_data_are_doubted(make_surrogate):
    """A viscosity that is meant without its 1/π hardly shows in the first step, but it does in the end."""
    made = generate("burgers", samples=4, params={"nu": 0.01}, resolution=32, frames=21, horizon=1.0, seed=0)
    other = replace(made, params=3 * made.params)
    found = evaluate(make_surrogate(other, provenance={}), other, split="all", space=(16,))
    assert found.result.cost.solver_nrmse > 0.2
    (said,) = [note for note in found.notes if "solver" in note]
    assert re.match(
        r"The solver of 'burgers' is off by an nRMSE of 0\.\d+ on the data's own grid: that is too coarse", said
    )


def test_there_is_no_solver_on_an_uneven_grid(burgers, make_surrogate):
    uneven = replace(burgers, grid=burgers.grid + 0.01 * (2 * torch.pi * burgers.grid).sin())
    assert evaluate(make_surrogate(uneven, provenance={}), uneven).result.cost.solver_seconds is None


def test_without_a_parameter_of_the_equation_there_is_no_solver(burgers, make_surrogate):
    unknown = replace(burgers, params=burgers.params[:, :0], problem=replace(burgers.problem, parameters=(), ranges={}))
    assert evaluate(make_surrogate(unknown, provenance={}), unknown).result.cost.solver_seconds is None
    assert measure_fidelities(unknown, Selection(1, (0, 2)), "cpu") == []


def test_a_solver_that_takes_too_long_is_left_out_and_said(burgers, make_surrogate, monkeypatch):
    monkeypatch.setattr(cost_room, "LONGEST_SOLVE", 0.0)
    surrogate = make_surrogate(burgers, provenance={})
    found = evaluate(surrogate, burgers)
    assert found.result.cost.speed_up is None
    assert any("The solver was not timed on 32 points: it would take about" in note for note in found.notes)


@pytest.mark.parametrize(("rate", "tried"), [(1e-3, 1.0), (3.0, 1.0), (1e3, 1 / 256), (40.0, 1 / 16)])
def test_a_slow_solver_is_tried_for_a_short_time_only(rate, tried, monkeypatch):
    """It takes `rate` seconds per unit of time."""
    asked = []
    monkeypatch.setattr(cost_room, "time_once", lambda call, device: rate * call())

    def run(t):
        asked.append(float(t[-1]))
        return asked[-1]

    expected = cost_room.expected_seconds(run, torch.tensor([1.0, 3.0]), torch.device("cpu"))
    assert expected == pytest.approx(3 * rate)
    assert max(asked) == tried


def test_trajectories_to_time_are_spread_over_the_data():
    cpu, cuda = torch.device("cpu"), torch.device("cuda")
    assert cost_room.spread(100, cost_room.together(100, 64, cpu)).tolist() == [0, 33, 66, 99]
    assert cost_room.spread(100, cost_room.together(100, 2**20, cpu)).tolist() == [0]
    assert cost_room.together(1000, 64, cuda) == 64


def test_numbers_as_people_read_them():
    assert [number(each) for each in (0.12345, 1e-5, 0.0, 4567.0, float("nan"), None)] == [
        "0.1235", "1.00e-05", "0.0000", "4.57e+03", "not finite", "–",
    ]  # fmt: skip
    assert [seconds(each) for each in (0.0123, 2.5, None)] == ["12.3 ms", "2.5 s", "–"]
    assert [seconds(each) for each in (0.9994, 0.9996, 999.4, 999.6, 1234.0)] == [
        "999 ms", "1 s", "999 s", "1,000 s", "1,234 s",
    ]  # fmt: skip


@pytest.mark.parametrize("known", [{"cpu_name": "An  abacus"}, {}])
def test_a_time_names_the_processor_and_its_threads(known, monkeypatch):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: known, raising=False)
    monkeypatch.setattr("platform.processor", lambda: "")
    monkeypatch.setattr("platform.machine", lambda: "x86")
    expected = "An abacus" if known else "x86"
    for threads, words in ((1, "1 thread"), (8, "8 threads")):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        assert cost_room.device_name(torch.device("cpu")) == f"{expected}, {words}"
    assert cost_room.device_name(torch.device("meta")) == "meta"
