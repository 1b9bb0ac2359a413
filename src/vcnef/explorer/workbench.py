"""The surrogates of an explorer and their classical solvers: questions in, arrays with times and warnings out."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.explorer.grids import Grids, find_grids
from vcnef.explorer.questions import Ask, model_number, parameter_bounds, read_ask
from vcnef.explorer.references import SAME_GRID, describe, find_reference
from vcnef.explorer.states import NAMES, level, make_state
from vcnef.explorer.turns import Turns
from vcnef.metrics.errors import floored_nrmse_table, nrmse_table
from vcnef.pde import Equation, equation, is_known, noted_generation
from vcnef.problem import Problem
from vcnef.surrogate import Surrogate
from vcnef.surrogate.inputs import Question, read_question
from vcnef.surrogate.points import usual_points

REMEMBERED = 8
"""Answers kept, so that an export or a comparison needs not compute them again."""
LONGEST_SOLVE = 60.0
"""Seconds; a solver that would take longer is not begun."""


@dataclass(frozen=True, eq=False)
class Answer:
    """A trajectory with the seconds it took and what is to be said of it."""

    question: Question
    u: Float[Tensor, "1 t *x c"]
    seconds: float
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Solution(Answer):
    """What the surrogate is judged by, with the seconds and the error of the solver on the points that are shown."""

    reference: str = ""
    """What it is, in words."""
    solver: tuple[float, ...] = ()
    """nRMSE of the solver on the points that are shown, by channel."""
    own: tuple[float, ...] = ()
    """Estimate of the error of the reference itself, by channel."""


class Workbench:
    """Surrogates by name, asked in JSON. Predictions and solver runs each go one at a time, the newest of a page."""

    def __init__(self, surrogates: Mapping[str, Surrogate]) -> None:
        if not surrogates:
            raise ValueError("There is no model to explore; name run folders, e.g. `vcnef serve runs/a`.")
        for name, surrogate in surrogates.items():
            _check_explorable(name, surrogate)
        self.names, self.surrogates = list(surrogates), list(surrogates.values())
        self.equations = [find_equation(each) for each in self.surrogates]
        self.grids = [find_grids(each) for each in self.surrogates]
        self._predicting, self._solving = Turns(), Turns()
        self._predictions, self._solutions = _Memory(), _Memory()

    def models(self) -> list[dict[str, Any]]:
        """Return what a page needs to know of each model."""
        rows = zip(self.names, self.surrogates, self.equations, self.grids, strict=True)
        return [_describe(*row) for row in rows]

    def read(self, asked: Mapping[str, Any]) -> Ask:
        number = model_number(asked, len(self.surrogates))
        surrogate = self.surrogates[number]
        ends = [abs(end) for pair in _fields(surrogate).values() for end in pair]
        known = {"grids": self.grids[number], "horizon": surrogate.horizon, "size": max([1.0, *ends])}
        return read_ask(asked, number, surrogate.problem, **known, solver=self.equations[number] is not None)

    def predict(self, ask: Ask) -> Answer:
        with self._predicting.take(ask.page):
            return self._predicted(ask)

    def solve(self, ask: Ask) -> Solution:
        """Return the reference: exact where it can be, else by the solver on a finer grid; timed is the solver here."""
        known = self.equations[ask.model]
        if known is None:
            raise ValueError(f"There is no solver for {self.surrogates[ask.model].problem.name} here.")
        with self._solving.take(ask.page):
            solved = self._solutions.get(ask.key())
            if solved is None:
                solved = self._solve(ask, known)
                self._solutions.put(ask.key(), solved)
        return solved

    def errors(self, ask: Ask) -> dict[str, list]:
        """Return the nRMSE of the prediction against the reference, by time and channel, and by channel.

        Beside it the mean without a floor, that of the solver on the points shown, and of the reference itself.
        """
        predicted, solved = self.shown(ask)
        if solved is None:
            raise ValueError("The solver's answer to this question is not kept any more. Run the solver again.")
        initial = solved.u[:, 0]
        by_time = floored_nrmse_table(predicted.u, solved.u, initial)
        later = floored_nrmse_table(predicted.u[:, 1:], solved.u[:, 1:], initial)
        raw = nrmse_table(predicted.u, solved.u, 1)
        return {
            "by_time": by_time.mean("t c").tolist(),
            "mean": later.mean("c").tolist(),
            "raw": raw.mean("c").tolist(),
            "solver": list(solved.solver),
            "reference": list(solved.own),
        }

    def shown(self, ask: Ask) -> tuple[Answer, Solution | None]:
        """Return the prediction, and the solution where it has been computed.

        A prediction that is not remembered any more is computed in its turn, in a line of its own: the page's newest
        question may be another one by now.
        """
        predicted = self._predictions.get(ask.key())
        if predicted is None:
            with self._predicting.take(f"{ask.page}, again"):
                predicted = self._predicted(ask)
        return predicted, self._solutions.get(ask.key())

    def problem(self, ask: Ask) -> Problem:
        return self.surrogates[ask.model].problem

    def _question(self, ask: Ask) -> Question:
        surrogate, known = self.surrogates[ask.model], self.equations[ask.model]
        sides = self.grids[ask.model].sides(ask.points)
        u0 = make_state(ask.shape, surrogate.problem, _fields(surrogate), known, sides)
        t = torch.linspace(0.0, ask.last, ask.times, dtype=torch.float64).float()
        grid = usual_points(surrogate.problem, surrogate.provenance, sides)
        return read_question(surrogate.problem, u0, t, dict(ask.params), grid, earlier=surrogate.earlier)

    def _predicted(self, ask: Ask) -> Answer:
        found = self._predictions.get(ask.key())
        if found is not None:
            return found
        surrogate, question = self.surrogates[ask.model], self._question(ask)
        said = surrogate.check(question)
        tensors = question.tensors(surrogate.device)
        begun = time.perf_counter()
        u = surrogate.answer(*tensors).cpu()
        seconds = time.perf_counter() - begun
        u[:, question.t == 0] = question.u0[:, None]
        if not u.isfinite().all():
            said.append("Some predicted values are not finite and are not shown.")
        answer = Answer(question, u, seconds, tuple(said))
        self._predictions.put(ask.key(), answer)
        return answer

    def _solve(self, ask: Ask, known: Equation) -> Solution:
        surrogate, question = self.surrogates[ask.model], self._question(ask)
        problem = surrogate.problem
        for channel in ("density", "pressure"):
            if channel in problem.channels and question.u0[..., problem.channels.index(channel)].min() <= 0:
                raise ValueError(f"The {channel} goes down to zero or below; the solver needs it positive.")
        u0 = question.u0.to(surrogate.device)
        params = {name: float(question.params[0, row]) for row, name in enumerate(problem.parameters)}

        def run(t: Tensor) -> Tensor:
            return known.solve(u0, t, params, domain=problem.domain).cpu()

        # One step may be more than the first part, and may compile something; the second part is more telling.
        for parts in (1024, 64):
            begun = time.perf_counter()
            run(question.t[-1:] / parts)
            expected = (time.perf_counter() - begun) * parts
            if expected <= LONGEST_SOLVE:
                break
        else:
            raise ValueError(f"The solver would take about {expected:.0f} s. Ask for fewer points or a shorter time.")
        begun = time.perf_counter()
        u = run(question.t)
        seconds = time.perf_counter() - begun
        if not u.isfinite().all():
            said = ("The solver's run blew up; what is not finite is not shown.",)
            return Solution(question, u, seconds, said, SAME_GRID)
        found = find_reference(known, u0, question.t, params, problem.domain, seconds)
        if found is None:
            said = ("The reference is the solver on these points: on finer ones it would take too long.",)
            return Solution(question, u, seconds, said, SAME_GRID)
        truth = found.u.cpu()
        truth[:, question.t == 0] = question.u0[:, None]
        off = floored_nrmse_table(u[:, 1:], truth[:, 1:], question.u0).mean("c").tolist()
        own = tuple(found.own_error(each) for each in off)
        return Solution(question, truth, seconds, (), describe(found), tuple(off), own)


def find_equation(surrogate: Surrogate) -> Equation | None:
    """Return the equation whose solver made such data, with their initial states: as the model's folder notes them."""
    problem = surrogate.problem
    if not is_known(problem.name) or not all(problem.closes):
        return None
    noted = surrogate.provenance.get("generated", {})
    known = equation(problem.name, generation=noted_generation(noted))
    # Files of several Mach numbers note them all; then the usual one is as good as another.
    if "mach" in known.initial_options and isinstance(noted.get("mach"), int | float):
        known = replace(known, initial_options={**known.initial_options, "mach": noted["mach"]})
    fits = problem.channels == known.problem.channels and set(problem.parameters) <= set(known.defaults)
    if fits and known.solvable and known.sampler is not None:
        return known
    return None


def _check_explorable(name: str, surrogate: Surrogate) -> None:
    instance = surrogate.provenance.get("instance")
    if instance:
        raise ValueError(
            f"{name} is a {surrogate.name} of one initial state, trajectory {instance['number']} of its training data, "
            "and would refuse the states that a page asks about. Serve a model of many states, e.g. a vcnef; this one "
            "is asked with `vcnef predict`."
        )


class _Memory:
    """The last few answers by their question."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, Answer] = OrderedDict()

    def get(self, key: str) -> Answer | None:
        return self._answers.get(key)

    def put(self, key: str, answer: Answer) -> None:
        self._answers[key] = answer
        while len(self._answers) > REMEMBERED:
            self._answers.popitem(last=False)


def _fields(surrogate: Surrogate) -> dict[str, list[float]]:
    return surrogate.provenance.get("field_ranges", {})


def _describe(name: str, surrogate: Surrogate, known: Equation | None, grids: Grids) -> dict[str, Any]:
    problem = surrogate.problem
    middles = {channel: level(channel, _fields(surrogate)) for channel in problem.channels}
    unasked = sorted(set(known.defaults) - set(problem.parameters)) if known else []
    return {
        "name": name,
        "model": surrogate.name,
        "weights": sum(weight.numel() for weight in surrogate.model.parameters()),
        "problem": problem.name,
        "trained": str(surrogate.provenance.get("train", "")),
        "ndim": problem.ndim,
        "domain": [list(pair) for pair in problem.domain],
        "units": dict(problem.units),
        "channels": [{"name": each, "middle": middle, "half": half} for each, (middle, half) in middles.items()],
        "parameters": [_slider(each, problem, solver=known is not None) for each in problem.parameters],
        "horizon": surrogate.horizon,
        "solver": known is not None,
        "assumed": {each: known.defaults[each] for each in unasked} if known else {},
        "presets": list(NAMES),
        **grids.describe(),
    }


def _slider(name: str, problem: Problem, *, solver: bool) -> dict[str, Any]:
    """Return ends and scale of a slider that goes somewhat beyond the trained values."""
    trained = problem.ranges.get(name)
    low, high = trained or (0.0, 1.0)
    logarithmic = low > 0 and (high >= 10 * low or low == high)
    if logarithmic:
        spare = 10.0 if low == high else 3.0
        ends, start = (low / spare, high * spare), float(np.sqrt(low * high))
    else:
        spare = 0.25 * (high - low) or 1.0
        ends, start = (max(low - spare, 0.0) if low >= 0 else low - spare, high + spare), 0.5 * (low + high)
    least, most = parameter_bounds(name, problem, solver=solver)
    ends = max(ends[0], least), min(ends[1], most)
    return {
        "name": name,
        "trained": trained,
        "low": ends[0],
        "high": ends[1],
        "start": _rounded(start, low, high),
        "logarithmic": logarithmic,
    }


def _rounded(value: float, low: float, high: float) -> float:
    """Round to three digits, or as many as keep it between both ends: of a single value, all that it has."""
    shorter = (float(f"{value:.{digits}g}") for digits in range(3, 17))
    return next((each for each in shorter if low <= each <= high), min(max(value, low), high))
