"""The numbers that a page gets: those of the surrogate and of the solver, with their warnings and limits."""

import io
import json
import warnings
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from vcnef import metrics
from vcnef.explorer import Workbench
from vcnef.explorer.questions import MOST_VALUES
from vcnef.explorer.states import Shape, make_state
from vcnef.pde import equation, shifted, solve
from vcnef.pde.reference import finer_solution
from vcnef.problem import Problem

BURGERS, GAS, HEAT, BOX = 0, 1, 2, 3
FLAT = {"drawn": {"u": [1.0] * 8}}
"""A state within what was trained."""


def test_what_a_page_is_told(client):
    status, headers, content = client.request("GET", "/api/models")
    assert (status, headers["Content-Type"]) == (200, "application/json; charset=utf-8")
    burgers, gas, heat, box = json.loads(content)
    assert (burgers["name"], burgers["ndim"], burgers["solver"], burgers["horizon"]) == ("burgers", 1, True, 0.5)
    (nu,) = burgers["parameters"]
    assert nu["logarithmic"]
    assert nu["low"] < nu["trained"][0] < nu["start"] < nu["trained"][1] < nu["high"]
    assert [each["name"] for each in gas["channels"]] == ["density", "pressure", "vx", "vy"]
    assert gas["parameters"][0]["high"] <= 1.0
    assert (heat["solver"], heat["units"]) == (False, {"t": "s"})
    assert (box["ndim"], box["solver"]) == (3, True)


@pytest.mark.parametrize("preset", ["sine", "two sines", "box", "bump", "random"])
def test_the_surrogates_numbers(client, surrogates, unpack, preset):
    question = {"state": {"preset": preset, "seed": 3}, "params": {"nu": 0.05}, "points": 64, "times": 5, "last": 0.4}
    status, answer = client.ask("/api/predict", **question)
    assert (status, answer["shape"]) == (200, [5, 64, 1])
    assert answer["ms"] > 0
    u = unpack(answer)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = surrogates["burgers"].predict(u[None, 0], np.linspace(0, 0.4, 5), {"nu": 0.05}).values[0]
    np.testing.assert_allclose(u, expected, atol=1e-6)


def test_the_random_state_is_the_generators(client, unpack):
    state = {"preset": "random", "seed": 3}
    _, answer = client.ask("/api/predict", state=state, params={"nu": 0.05}, points=32, times=2)
    expected = equation("burgers").initial_states([0], seed=3, resolution=32)[0]
    np.testing.assert_allclose(unpack(answer)[0], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("model", "state", "points", "params"),
    [
        (BURGERS, {"preset": "two sines", "modes": {"u": [0.1, 0.2]}}, 64, {"nu": 0.02}),
        (GAS, {"preset": "random", "seed": 1}, 16, {"eta": 0.02, "zeta": 0.03}),
        (BOX, {"preset": "random", "seed": 1}, 8, {"eta": 0.02, "zeta": 0.03}),
    ],
)
def test_the_solvers_numbers(client, server, unpack, model, state, points, params):
    question = {"model": model, "state": state, "params": params, "points": points, "times": 4, "last": 0.1}
    predicted = torch.from_numpy(unpack(client.ask("/api/predict", **question)[1]).copy())
    status, answer = client.ask("/api/solve", **question)
    assert status == 200
    solved = torch.from_numpy(unpack(answer).copy())
    name, t = server.workbench.names[model], torch.linspace(0, 0.1, 4)
    known, u0 = equation(name), predicted[None, 0]
    parts = int(answer["reference"].split()[3])
    assert answer["reference"] == f"the solver on {parts} times as many points"
    expected = finer_solution(known, u0, t, params, known.problem.domain, parts).u[0]
    torch.testing.assert_close(solved, expected, rtol=1e-5, atol=1e-5)
    # Beside it the error of the solver on these points, and from that one the reference's own.
    coarse = metrics.nrmse(solve(name, u0, t=t, params=params), solved[None], keep="c")
    np.testing.assert_allclose(answer["nrmse"]["solver"], coarse, rtol=1e-4)
    np.testing.assert_allclose(answer["nrmse"]["reference"], coarse / (parts - 1), rtol=1e-4)
    error = metrics.nrmse(predicted[None], solved[None], keep="c")
    np.testing.assert_allclose(answer["nrmse"]["mean"], error, rtol=1e-5)
    assert answer["nrmse"]["by_time"][0] == [0.0] * predicted.shape[-1]
    assert answer["nrmse"]["raw"] == answer["nrmse"]["mean"]


def test_advection_is_judged_by_its_exact_solution(surrogates, monkeypatch):
    """At few points the solver itself is far off, and the surrogate is not to be blamed for that."""
    surrogate = copy(surrogates["burgers"])
    surrogate.problem = Problem("advection", ("u",), ("beta",), ranges={"beta": (0.1, 4.0)})
    bench = Workbench({"advection": surrogate})
    ask = bench.read({"state": {"preset": "two sines"}, "params": {"beta": 1.0}, "points": 32, "times": 3, "last": 0.5})
    solved = bench.solve(ask)
    assert solved.reference == "the exact solution"
    u0, t = solved.u[:, 0], solved.question.t
    torch.testing.assert_close(solved.u, shifted(u0, t, 1.0), rtol=0, atol=1e-6)
    errors = bench.errors(ask)
    assert errors["reference"] == [0.0]
    assert errors["solver"][0] > 0.005
    # A surrogate that is exact is shown as such.
    bench._predictions.put(ask.key(), replace(bench.predict(ask), u=solved.u))
    assert bench.errors(ask)["mean"] == [0.0]


def test_a_reference_that_would_take_too_long_is_the_same_grid_and_says_so(surrogates, monkeypatch):
    monkeypatch.setattr("vcnef.explorer.references.FINER", {4: 0.0, 2: 0.0})
    bench = Workbench({"burgers": surrogates["burgers"]})
    ask = bench.read({"params": {"nu": 0.1}, "points": 16, "times": 3, "last": 0.1})
    solved = bench.solve(ask)
    assert solved.warnings == ("The reference is the solver on these points: on finer ones it would take too long.",)
    assert bench.errors(ask)["solver"] == []


def test_fields_that_fade_are_judged_over_the_floor(surrogates):
    bench = Workbench({"burgers": surrogates["burgers"]})
    ask = bench.read({"state": {"preset": "sine"}, "params": {"nu": 0.5}, "points": 16, "times": 3, "last": 0.1})
    solved = bench.solve(ask)
    faded = solved.u.clone()
    faded[:, 2] *= 1e-6
    bench._solutions.put(ask.key(), replace(solved, u=faded))
    bench._predictions.put(ask.key(), replace(bench.predict(ask), u=faded * 2))
    errors = bench.errors(ask)
    assert errors["by_time"][2][0] < 0.01
    assert errors["raw"] == [pytest.approx(1.0, rel=1e-3)]


def test_without_a_solver_there_is_a_sentence(client):
    question = {"model": HEAT, "params": {"kappa": 0.1}}
    assert client.ask("/api/predict", **question, points=16)[0] == 200
    assert client.ask("/api/solve", **question) == (400, {"error": "There is no solver for heat here."})


def test_no_warning_inside_the_trained_range(client):
    status, answer = client.ask("/api/predict", state=FLAT, params={"nu": 0.1}, points=16)
    assert (status, answer["warnings"]) == (200, [])


def test_without_a_solver_parameters_are_bounded_by_training(surrogates):
    surrogate = copy(surrogates["burgers"])
    surrogate.problem = replace(surrogate.problem, name="flow", ranges={"nu": (2e6, 4e6)})
    bench = Workbench({"flow": surrogate})
    (nu,) = bench.models()[0]["parameters"]
    assert nu["low"] < 2e6 < 4e6 < nu["high"]
    assert bench.read({"params": {"nu": 3e6}}).params == {"nu": 3e6}
    with pytest.raises(ValueError, match=r"nu is 5e\+07; expected -4e\+07 to 4e\+07, not too far from training\."):
        bench.read({"params": {"nu": 5e7}})


def test_a_model_of_scattered_points_is_shown_on_a_grid(surrogates):
    surrogate = copy(surrogates["burgers"])
    surrogate.provenance = surrogate.provenance | {"grid": "scattered points"}
    bench = Workbench({"burgers": surrogate})
    answer = bench.predict(bench.read({"state": FLAT, "params": {"nu": 0.1}, "points": 16}))
    (warning,) = answer.warnings
    assert warning.startswith("u0 is given on a uniform grid; the surrogate was trained on scattered points.")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"params": {"nu": 2.0}}, "nu is 2; the surrogate was trained on 0.01 to 0.5."),
        ({"last": 1.0}, "t goes to 1; the surrogate was trained to 0.5."),
        ({"state": {"drawn": {"u": [9.0] * 8}}}, "u0 has u between 9 and 9; in training"),
    ],
)
def test_warnings_outside_the_trained_range(client, change, words):
    question = {"state": FLAT, "params": {"nu": 0.1}, "points": 16} | change
    status, answer = client.ask("/api/predict", **question)
    (warning,) = answer["warnings"]
    assert status == 200
    assert warning.startswith(words)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({"points": 4097}, "points is 4097; expected a whole number from 8 to 4096."),
        ({"points": 12.5}, "points is 12.5"),
        ({"points": "many"}, "points is 'many'; expected a finite number."),
        ({"times": 513}, "times is 513"),
        ({"times": 1}, "times is 1"),
        ({"model": 4}, "model is 4; expected a whole number from 0 to 3."),
        ({"model": GAS, "points": 256, "times": 128}, f"at most {MOST_VALUES} are answered"),
        (
            {"model": BOX, "points": 128, "times": 11},
            "128 points along 3 axes at 11 times are 23068672 values; at most",
        ),
        ({"last": 0}, "The last time is 0; expected more than 0 and at most 2."),
        ({"last": 1e9}, "The last time is 1e+09"),
        ({"params": {"nu": 21}}, "nu is 21; expected 0 to 20, where the solver works."),
        ({"params": {"nu": float("nan")}}, "nu is nan; expected a finite number."),
        ({"params": {"nu": 10**400}}, "nu is 1000000000000000000000000000000000000000; expected a finite number."),
        ({"params": {"nu": True}}, "nu is True; expected a finite number."),
        ({"params": {}}, "The parameter nu (trained on 0.01 to 0.5) is missing."),
        ({"params": {"mu": 1}}, "There is no parameter 'mu' of burgers."),
        ({"params": [1]}, "params is [1]; expected names with their values."),
        ({"state": {"preset": "wave"}}, "There is no initial state 'wave'."),
        ({"state": {"seed": -1}}, "seed is -1"),
        ({"state": {"modes": {"v": [1]}}}, "There is no channel 'v'."),
        ({"state": {"modes": {"u": [1] * 17}}}, "modes of u is not a list of 0 to 16 numbers."),
        ({"state": {"drawn": {"u": [1e9] * 8}}}, "drawn of u goes beyond"),
        ({"model": GAS, "state": {"drawn": {"vx": [1] * 8}}}, "only 1D can be drawn."),
        ({"file": "/etc/passwd"}, "A question has no 'file'"),
        ({"state": {"mode": {"u": [1]}}}, "A state has no 'mode'. Did you mean 'modes'?"),
    ],
)
def test_limits(client, question, words):
    status, answer = client.ask("/api/predict", **({"params": {"nu": 0.1}} | question))
    assert status == 400
    assert words in answer["error"]


def test_a_gas_without_density_is_not_solved(client):
    question = {"model": GAS, "params": {"eta": 0.01, "zeta": 0.01}, "points": 8, "times": 2}
    status, answer = client.ask("/api/solve", **question, state={"modes": {"density": [5.0]}})
    assert (status, answer["error"]) == (400, "The density goes down to zero or below; the solver needs it positive.")


def test_a_run_that_would_take_too_long_is_not_begun(client, monkeypatch):
    monkeypatch.setattr("vcnef.explorer.workbench.LONGEST_SOLVE", 0.0)
    status, answer = client.ask("/api/solve", params={"nu": 0.3}, points=16, state={"seed": 9})
    assert status == 400
    assert answer["error"].startswith("The solver would take about ")


def test_modes_are_added_to_one_channel(surrogates):
    problem = surrogates["cns2d"].problem
    plain = make_state(Shape("bump"), problem, {}, None, 8)
    more = make_state(Shape("bump", modes={"vx": (0.5,)}), problem, {}, None, 8)
    changed = (plain != more).flatten(0, 2).any(dim=0).tolist()
    assert changed == [False, False, True, False]


def test_a_drawn_line_is_kept_on_any_grid(surrogates):
    problem = surrogates["burgers"].problem
    line = np.sin(2 * np.pi * (np.arange(128) + 0.5) / 128).tolist()
    for points in (32, 256):
        (u0,) = make_state(Shape(drawn={"u": line}), problem, {}, None, points)
        x = 2 * np.pi * (np.arange(points) + 0.5) / points
        np.testing.assert_allclose(u0[:, 0], np.sin(x), atol=1e-3)


def test_export_npz(client, unpack):
    question = {"params": {"nu": 0.07}, "points": 16, "times": 3, "last": 0.1}
    body = {"Content-Type": "application/json"}
    for solved in (False, True):
        answers = {"surrogate": client.ask("/api/predict", **question)[1]}
        if solved:
            answers["reference"] = client.ask("/api/solve", **question)[1]
        status, _, content = client.request("POST", "/api/export", _json(question, "npz"), **body)
        assert status == 200
        arrays = np.load(io.BytesIO(content))
        assert set(arrays) == {"t", "x", "nu", "channels", *answers}
        assert arrays["nu"] == np.float32(0.07)
        for name, answer in answers.items():
            np.testing.assert_array_equal(arrays[name], unpack(answer))


def test_export_csv(client, unpack):
    question = {"model": GAS, "params": {"eta": 0.01, "zeta": 0.01}, "points": 8, "times": 3}
    answer = client.ask("/api/predict", **question)[1]
    _, headers, content = client.request(
        "POST", "/api/export", _json(question, "csv"), **{"Content-Type": "application/json"}
    )
    assert headers["Content-Type"].startswith("text/csv")
    title, *rows = content.decode().splitlines()
    assert title == "t,x,y,density surrogate,pressure surrogate,vx surrogate,vy surrogate"
    table = np.array([row.split(",") for row in rows], dtype=float)
    np.testing.assert_allclose(table[:, 3:], unpack(answer).reshape(-1, 4), rtol=1e-5)


def test_export_of_a_box(client, unpack):
    question = {"model": BOX, "params": {"eta": 0.01, "zeta": 0.01}, "points": 8, "times": 2}
    answer = client.ask("/api/predict", **question)[1]
    assert answer["shape"] == [2, 8, 8, 8, 5]
    body = {"Content-Type": "application/json"}
    arrays = np.load(io.BytesIO(client.request("POST", "/api/export", _json(question, "npz"), **body)[2]))
    assert set(arrays) == {"t", "x", "y", "z", "eta", "zeta", "channels", "surrogate"}
    np.testing.assert_array_equal(arrays["surrogate"], unpack(answer))
    title = client.request("POST", "/api/export", _json(question, "csv"), **body)[2].decode().splitlines()[0]
    assert title.startswith("t,x,y,z,density surrogate,")


def test_an_unknown_format(client):
    status, answer = client.ask("/api/export", params={"nu": 0.1}, format="png")
    assert status == 400
    assert answer["error"].startswith("There is no format 'png'.")


def _json(question, form):
    return json.dumps(question | {"format": form}).encode()
