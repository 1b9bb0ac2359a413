"""One computation at a time, the newest question of each page; and which models can be explored."""

from copy import copy
from dataclasses import replace
from math import pi
from threading import Event, Thread

import pytest
import torch

from vcnef.explorer import Workbench
from vcnef.explorer.turns import PAGES, Answering, OutdatedQuestionError, StoppedError, Turns
from vcnef.explorer.workbench import find_equation
from vcnef.pde import equation


class Asker(Thread):
    """Takes a turn in the background and stays in it until it is told to go."""

    def __init__(self, turns, page):
        super().__init__(daemon=True)
        self.turns, self.page, self.outdated = turns, page, False
        self.started, self.go = Event(), Event()
        self.start()

    def run(self):
        try:
            with self.turns.take(self.page):
                self.started.set()
                self.go.wait(10)
        except OutdatedQuestionError:
            self.outdated = True


def test_a_newer_question_takes_the_place_of_one_that_waits():
    turns = Turns()
    first = Asker(turns, "a")
    assert first.started.wait(5)
    second = Asker(turns, "a")
    while "a" not in turns._newest or turns._count < 2:
        pass
    third = Asker(turns, "a")
    second.join(5)
    assert second.outdated
    assert not third.started.is_set()
    first.go.set()
    assert third.started.wait(5)
    third.go.set()
    third.join(5)
    assert not third.outdated


def test_pages_do_not_take_each_others_place():
    turns = Turns()
    first = Asker(turns, "a")
    assert first.started.wait(5)
    others = [Asker(turns, page) for page in "bc"]
    for each in (first, *others):
        each.go.set()
    for each in others:
        each.join(5)
    assert all(each.started.is_set() and not each.outdated for each in others)


def test_a_failure_ends_the_turn():
    turns = Turns()
    with pytest.raises(RuntimeError), turns.take("a"):
        raise RuntimeError
    with turns.take("a"):
        pass


def test_few_pages_are_remembered():
    turns = Turns()
    for number in range(3 * PAGES):
        with turns.take(str(number)):
            pass
    assert len(turns._newest) == PAGES


def test_what_is_being_answered_is_waited_for():
    answering = Answering()
    with answering.one():
        assert not answering.stop(0.01)
    assert answering.stop(0.01)
    with pytest.raises(StoppedError, match="has been stopped"), answering.one():
        pass


def test_there_must_be_a_model():
    with pytest.raises(ValueError, match="There is no model to explore"):
        Workbench({})


def test_the_solution_of_one_instance_is_not_explored(surrogates):
    alone = copy(surrogates["burgers"])
    alone.provenance = alone.provenance | {"instance": {"number": 3}}
    words = "pinn is a vcnef of one initial state, trajectory 3 .* Serve a model of many states"
    with pytest.raises(ValueError, match=words):
        Workbench({"burgers": surrogates["burgers"], "pinn": alone})


def test_points_are_those_of_training_at_its_resolution(surrogates):
    strided = copy(surrogates["burgers"])
    strided.provenance = {**strided.provenance, "ends": [[0.0, 0.875]]}
    bench = Workbench({"strided": strided})
    asked = {"model": 0, "state": {"preset": "random", "seed": 3}, "params": {"nu": 0.1}, "last": 0.5, "times": 3}
    points = [bench.predict(bench.read({**asked, "points": n})).question.grid[0, 0] for n in (8, 16)]
    assert points == [0.0, 0.5 / 16]


def test_the_solver_is_of_the_generation_that_made_the_data(surrogates):
    def generation(**provenance):
        surrogate = copy(surrogates["burgers"])
        surrogate.problem, surrogate.provenance = replace(surrogate.problem, domain=((-1.0, 1.0),)), provenance
        return find_equation(surrogate).generation

    assert generation() == "documented"
    assert generation(generated={"generation": "2022"}) == "2022"
    assert generation(generated={"generation": "documented"}) == "documented"


@pytest.mark.parametrize(("noted", "mach"), [({"mach": 1.0}, 1.0), ({"mach": [0.1, 1.0]}, 0.1), ({}, 0.1)])
def test_a_random_gas_is_as_fast_as_those_of_training(surrogates, noted, mach):
    surrogate = copy(surrogates["cns2d"])
    surrogate.provenance = surrogate.provenance | {"generated": noted}
    bench = Workbench({"gas": surrogate})
    asked = {"state": {"preset": "random", "seed": 3}, "params": {"eta": 0.1, "zeta": 0.1}, "points": 8, "times": 2}
    expected = equation("cns2d").initial_states([0], seed=3, resolution=8, mach=mach)
    torch.testing.assert_close(bench.predict(bench.read(asked)).u[:, 0], expected)


@pytest.mark.parametrize(
    ("trained", "start"), [((0.01, 0.5), 0.0707), ((0.01 / pi, 0.01 / pi), 0.01 / pi), ((1231.0, 1234.0), 1232)]
)
def test_parameters_begin_among_those_of_training(surrogates, trained, start):
    surrogate = copy(surrogates["heat"])
    surrogate.problem = replace(surrogate.problem, ranges={"kappa": trained})
    bench = Workbench({"heat": surrogate})
    (kappa,) = bench.models()[0]["parameters"]
    assert kappa["start"] == start
    answer = bench.predict(bench.read({"params": {"kappa": kappa["start"]}, "points": 8, "times": 2}))
    assert not [words for words in answer.warnings if "kappa" in words]


def test_a_forgotten_prediction_is_computed_in_its_turn(surrogates, monkeypatch):
    """And takes nobody's: the page has asked something newer meanwhile."""
    bench = Workbench({"burgers": surrogates["burgers"]})
    ask = bench.read({"params": {"nu": 0.1}, "points": 8, "times": 2})
    pages = []
    take = bench._predicting.take
    monkeypatch.setattr(bench._predicting, "take", lambda page: pages.append(page) or take(page))
    bench.shown(ask)
    bench.shown(ask)
    assert len(pages) == 1
    assert pages[0] != ask.page


def test_errors_without_a_solution_are_refused_in_a_sentence(surrogates):
    bench = Workbench({"burgers": surrogates["burgers"]})
    ask = bench.read({"params": {"nu": 0.1}, "points": 8, "times": 2})
    with pytest.raises(ValueError, match=r"The solver's answer to this question is not kept any more. Run the solver"):
        bench.errors(ask)
