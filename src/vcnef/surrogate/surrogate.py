"""Surrogate: a model with its problem, its scales and where it comes from."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor

from vcnef.accelerate import points_in_flight
from vcnef.conversion import Asked, convert_question
from vcnef.data import Scaling, StoredTrajectories, Trajectories
from vcnef.data.arrays import by_name
from vcnef.data.precision import short
from vcnef.data.scaling import horizon_of
from vcnef.data.trajectories import describe
from vcnef.device import choose_device
from vcnef.grid import is_even
from vcnef.models import registry
from vcnef.models.compiled import plain, plain_weights
from vcnef.models.interface import TrajectoryModel, number_of_weights
from vcnef.models.rollout import Rollout
from vcnef.problem import Problem
from vcnef.surrogate import folder as folders
from vcnef.surrogate.adaptive import Place, Steps, check_tolerance, compose_adaptively, relative_distance
from vcnef.surrogate.composition import check_reach, compose
from vcnef.surrogate.conditions import choose_start, read_conditions
from vcnef.surrogate.description import check_options, check_provenance, check_scaling
from vcnef.surrogate.doubts import about_points, about_resolution, about_times, doubts
from vcnef.surrogate.export import choose_points, export
from vcnef.surrogate.flow_map import FlowMap, evaluating
from vcnef.surrogate.foreign import about_clock, about_labels
from vcnef.surrogate.gradients import check_times, warn_of_cut_gradients
from vcnef.surrogate.inputs import Question, read_question
from vcnef.surrogate.instance import check_instance
from vcnef.surrogate.labels import label
from vcnef.surrogate.limits import within_memory
from vcnef.surrogate.memory import largest_tensor, points_within
from vcnef.surrogate.points import arrangement, note_ends
from vcnef.surrogate.ranges import field_ranges

if TYPE_CHECKING:
    import xarray

MADE_WITH = ("generation", "seed", "mach", "initial_options")
"""What generated data say of themselves and a model's folder repeats."""


@dataclass(eq=False)
class Surrogate:
    """u(t, x | u₀, p) in physical units: the network inside sees scaled times, points, fields and parameters.

    It answers directly up to its `window`, and composes what is later: u(t) = φ_{t − k w}(φ_w(… φ_w(u₀))).
    `name` and `options` are what the registry built the model from; `provenance` says what it was trained on.
    """

    model: TrajectoryModel
    name: str
    options: dict[str, Any]
    problem: Problem
    scaling: Scaling
    provenance: dict[str, Any] = field(default_factory=dict)
    _largest: dict[tuple, int] = field(default_factory=dict, init=False)

    def __repr__(self) -> str:
        trained = self.provenance.get("train", self.problem.name)
        return f"Surrogate({self.name}, {number_of_weights(self.model):,} weights, for {trained}, on {self.device})"

    @classmethod
    def build(
        cls,
        name: str,
        options: Mapping[str, Any],
        train: Trajectories | StoredTrajectories,
        *,
        conserve: Sequence[str] = (),
        log: Sequence[str] = (),
        normalise: bool = True,
        own_time: bool = False,
        thinning: int = 1,
        window: float | None = None,
        explicit_time: bool = False,
        seed: int | None = None,
    ) -> Surrogate:
        """An untrained model for the data's problem, with the scales of the training split.

        `conserve` names channels whose mean over the points every answer keeps; only a vcnef can.
        `log` names positive channels to be normalised in their logarithm. `normalise=False` leaves fields, parameters
        and points as they are, which is the paper's recipe; times are scaled in any case. With `own_time` every sample
        has a unit of time of its own. With `thinning`, as of `Shift(stride)`, batches keep one of so many points along
        each axis, from wherever. `window` is the time up to which answers are direct, that of the whole trajectories
        without one. With `explicit_time` the network is told when a window begins. `seed` decides the initial weights;
        without one, torch's own generator does.
        """
        problem = train.problem
        _check_windows(problem, window, explicit_time)
        if own_time and options.get("clocks"):
            raise ValueError("clocks go by parameters, own_time makes those rates the unit of time. Leave out one.")
        if own_time and not normalise:
            raise ValueError("own_time is true, but normalise is false. Set normalise, or leave out own_time.")
        if normalise:
            scaling = Scaling.fit(train, log, own_time=own_time)
        else:
            scaling = Scaling.identity(problem, horizon_of(train.t))
        if window is not None and own_time:
            raise ValueError("own_time measures whole trajectories by their initial states. Leave it or window out.")
        if window is not None:
            scaling = replace(scaling, horizon=window)
        if explicit_time:
            scaling = replace(scaling, explicit_time=(short(float(train.t[0])), short(float(train.t[-1]))))
        if conserve:
            options = dict(options) | {"conserved": tuple(problem.channels.index(name) for name in conserve)}
        resolution = [n // thinning for n in train.resolution]
        complete = dict(options) | _facts(name, options, train, scaling, tuple(resolution))
        with torch.random.fork_rng(devices=[]), within_memory(name):
            _network(name, problem, scaling, complete)
        with torch.random.fork_rng(devices=[], enabled=seed is not None):
            if seed is not None:
                torch.manual_seed(seed)
            model = _network(name, problem, scaling, complete)
        if own_time and not model.independent_times:
            raise ValueError(f"own_time needs a model that answers at any time; {name!r} does not. Leave it out.")
        if not model.independent_times:
            if window is not None:
                raise ValueError(f"{name!r} goes from frame to frame by itself. Leave window out.")
            _check_equal_steps(name, train.t)
        made = {name: train.attributes[name] for name in MADE_WITH if name in train.attributes}
        memory = _memory(name, complete.get("history", 1), train.t, window)
        provenance = {
            "train": describe(train), "trajectories": len(train), **memory,
            "resolution": resolution, "grid": arrangement(train.grid),
            "horizon": horizon_of(train.t), "field_ranges": field_ranges(train),
            "split_in_order": train.split_in_order,
            **({"generated": made} if made else {}),
            **(note_ends(train.grid, problem.domain) if thinning == 1 else {}),
        }  # fmt: skip
        return cls(model, name, complete, problem, scaling, provenance)

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        """The precision of questions and answers: double if that of the weights is."""
        return torch.float64 if next(self.model.parameters()).dtype == torch.float64 else torch.float32

    @property
    def window(self) -> float:
        """The time up to which an answer is direct."""
        return self.scaling.horizon

    @property
    def horizon(self) -> float:
        """The last time that was seen in training."""
        return float(self.provenance.get("horizon", self.scaling.horizon))

    @property
    def history(self) -> int:
        """How many frames an answer begins with."""
        return self.model.history

    @property
    def earlier(self) -> tuple[float, ...]:
        """How long before u0 the other frames of its history are, the oldest first."""
        gap = self.provenance.get("frame_gap", 0.0)
        return tuple(gap * number for number in range(self.history - 1, 0, -1))

    @property
    def composes(self) -> bool:
        """Whether later answers are composed of windows: not of a model that steps by itself, knows a single initial
        state, or sees times within a period."""
        own = self.scaling.own_time
        goes_on = own is not None and own.period is not None
        return self.model.independent_times and not self.model.one_instance and not goes_on

    def to(self, device: torch.device | str | torch.dtype | None = None, dtype: torch.dtype | None = None) -> Surrogate:
        """Move to a device, or change the precision: `to("cuda")`, `to(torch.float64)`, whose answers are double."""
        if isinstance(device, torch.dtype):
            device, dtype = None, device
        if dtype not in (None, torch.float32, torch.float64):
            raise ValueError(
                f"dtype is {dtype}; expected torch.float32 or torch.float64. Half precision is chosen for each "
                "prediction: predict(..., precision='bf16')."
            )
        if dtype is not None:
            self.model.to(dtype)
        if device is not None:
            device = choose_device(device)
            self.model.to(device)
            self.scaling = self.scaling.to(device)
        return self

    def double(self) -> Surrogate:
        """Compute and answer in double precision; `to(torch.float32)` is the way back."""
        return self.to(torch.float64)

    def answer(
        self,
        u0: Float[Tensor, "b *_ c"],
        grid: Float[Tensor, "*x D"],
        t: Float[Tensor, " t"] | Float[Tensor, "b t"],
        params: Float[Tensor, "b p"] | Float[Tensor, "b r p"],
        *,
        params_t: Float[Tensor, " r"] | None = None,
        start: float | Float[Tensor, "*_"] | None = None,
        differentiable: bool = False,
        tolerance: float | int | None = None,
        points_per_chunk: int | None = None,
        precision: str = "fp16",
    ) -> Float[Tensor, "b t *x c"]:
        """The trajectory at physical times `t` since `u0`, all in physical units; tensors on the model's device.

        After training with a history, u0 is [b h *x c], its last frame the initial state.
        If `differentiable`, gradients run through it, also from window to window: to u0, grid, t, params and the
        weights. It is computed in the precision of the weights then, and all at once, with the memory that this takes.
        For `params_t` and `start` see `predict`, for `tolerance` `answer_adaptively`, and for the last two
        `accelerate.predict`.
        """
        check_times(t, plain(self.model), self.name)
        if self.dtype == torch.float64:
            u0, grid, t, params = u0.double(), grid.double(), t.double(), params.double()
        if not differentiable:
            warn_of_cut_gradients("answer", {"u0": u0, "grid": grid, "t": t, "params": params})
        elif tolerance is not None:
            raise ValueError(
                f"tolerance is {tolerance:g} and the answer is to be differentiable, but windows are chosen by "
                "comparing answers, and that choice has no gradient. Leave out tolerance."
            )
        about = {"params_t": params_t, "start": start, "points_per_chunk": points_per_chunk, "precision": precision}
        if tolerance is not None:
            return self.answer_adaptively(u0, grid, t, params, tolerance=tolerance, **about)[0]
        conditions = read_conditions(self.scaling, params, params_t, start, t, max(self.earlier, default=0.0))
        self._check_reach(t)
        flow_map = self._flow_map(grid, points_per_chunk=points_per_chunk, precision=precision)

        def flow(state: Tensor, times: Tensor, begin: float = 0.0) -> Tensor:
            return flow_map(state, times, conditions, begin)

        with evaluating(self.model), torch.set_grad_enabled(differentiable and torch.is_grad_enabled()):
            return compose(flow, u0, t, self.window, self.earlier) if self.composes else flow(u0, t)

    @torch.no_grad()
    def answer_adaptively(
        self,
        u0: Float[Tensor, "b *_ c"],
        grid: Float[Tensor, "*x D"],
        t: Float[Tensor, " t"] | Float[Tensor, "b t"],
        params: Float[Tensor, "b p"] | Float[Tensor, "b r p"],
        *,
        tolerance: float | int,
        params_t: Float[Tensor, " r"] | None = None,
        start: float | Float[Tensor, "*_"] | None = None,
        **chunks: Any,
    ) -> tuple[Float[Tensor, "b t *x c"], Steps]:
        """The answer in windows that differ from their two halves by `tolerance` of the field's norm at most.

        They are shorter than `window` where they have to be, for each sample by itself; the second part of the result
        says what they were and estimates the error. See docs/how-far.md for when that means something.
        """
        check_tolerance(tolerance, composes=self.composes, name=self.name, history=self.history)
        self._check_reach(t)
        scaling, conditions = self.scaling.to(u0.device), read_conditions(self.scaling, params, params_t, start, t)
        flow_map = self._flow_map(grid, **chunks)

        def flow(state: Tensor, times: Tensor, place: Place) -> Tensor:
            return flow_map(state, times, conditions.select(place.rows), place.begin, place.length)

        def distance(u: Tensor, reference: Tensor, rows: Tensor) -> Tensor:
            return relative_distance(scaling.units(u0[rows], conditions.select(rows).at(0.0)), u, reference)

        with evaluating(self.model):
            return compose_adaptively(flow, distance, u0, t, self.window, tolerance)

    def _check_reach(self, t: Tensor) -> None:
        """Whether the walk to the last time has an end: in windows, or in the steps of a model that steps."""
        if self.composes:
            check_reach(t, self.window)
        elif isinstance(known := plain(self.model), Rollout):
            check_reach(t, self.scaling.horizon / known.steps, "steps")

    def answer_directly(
        self,
        u0: Float[Tensor, "b *_ c"],
        grid: Float[Tensor, "*x D"],
        t: Float[Tensor, " t"] | Float[Tensor, "b t"],
        params: Float[Tensor, "b p"],
        **chunks: Any,
    ) -> Float[Tensor, "b t *x c"]:
        """What the network answers by itself, at any time: within its window it was trained to."""
        conditions = read_conditions(self.scaling, params, None, None, t)
        with evaluating(self.model):
            return self._flow_map(grid, **chunks)(u0, t, conditions)

    def _flow_map(self, grid: Float[Tensor, "*x D"], **chunks: Any) -> FlowMap:
        return FlowMap(self.model, self.scaling, self.window, grid, **chunks)

    def predict(
        self,
        u0: Any,
        t: Any,
        params: Any = None,
        x: Any = None,
        memory_limit: str | float | int | None = "2GB",
        precision: str = "fp16",
        layout: str | None = None,
        tolerance: float | int | None = None,
        *,
        params_t: Any = None,
        start: Any = None,
    ) -> xarray.DataArray:
        """The trajectories from initial states `u0` at times `t`, labelled: (sample, t, x[, y[, z]], channel).

        Labelled arrays that note other units than the model, as km for m, are multiplied, and a warning says so.

        u0: NumPy, torch or xarray; [sample, *x, channel], or less where only one reading is possible. After training
            with a history of h frames, [sample, h, *x, channel], or labelled over t.
        t: times since `u0`; at 0 the answer is `u0` itself.
        params: by name, {"nu": 0.002}, one value or one per sample; several for one initial state make a sample each.
            They join those that a labelled `u0` brings, and replace them.
        x: coordinates as in `from_arrays`; by default the points of training where `u0` has their resolution, and
            otherwise, as after training with random phases, the cell centres of the domain. After training on
            scattered points or on an uneven grid they must be given.
        memory_limit: for what is computed at once, beside the answer itself; it changes the speed, not the answer.
        precision: of what GPU kernels multiply, "fp16" or "bf16"; "tf32" and "fp32" are without them. A CPU computes in
            fp32, or in "bf16" if asked and able to: faster, and off by some thousandths.
        layout: the axes of a `u0` that has them in another order, by letters, as in `from_arrays`: "n c x".
        tolerance: windows are halved where one and its two halves differ by more, relative to the field's norm. The
            attributes of the answer then say how many there were and estimate the error.
        params_t: times since `u0` at which parameters that change with time are given, [time] or [sample, time];
            between them they are linear. Without it, functions of such a time, and labelled arrays over t.
        start: after training with `explicit_time`, the time of `u0` on the clock of the data, one or one per sample; by
            default the first time of the data, after a history that of its last frame.
        """
        warn_of_cut_gradients("predict", {"u0": u0, "t": t, **by_name(params), "x": x})
        given = Asked(u0, t, params, x, params_t)
        (u0, t, params, x, params_t), of_units = convert_question(
            self.problem, given, f"this surrogate of {self.problem.name}"
        )
        start = choose_start(self.scaling, u0, start, max(self.earlier, default=0.0))
        about = {"params_t": params_t, "window": self.window, "earlier": self.earlier}
        asked = read_question(self.problem, u0, t, params, x, self.provenance, layout, self.dtype, **about)
        question = replace(asked, start=start)
        said = [*of_units, *self.check(question)]
        if hasattr(u0, "dims"):
            said += about_labels(u0, self.problem)
            # Models that know the clock take the label for their start, and frames of a history have labels anyway.
            labels_mean_more = self.scaling.explicit_time is not None or self.history > 1
            said += () if labels_mean_more else about_clock(u0, question.t)
        for doubt in said:
            warnings.warn(doubt, UserWarning, stacklevel=2)
        states, grid, times, table = question.tensors(self.device, self.dtype)
        usual = points_in_flight(plain(self.model), self.device)
        frame = prod(question.grid.shape[:-1])
        budget = points_within(memory_limit, usual, frame, lambda: self._largest_tensor(states, grid, table))
        about = {"params_t": question.params_t, "start": start, "points_per_chunk": budget, "precision": precision}
        attributes: dict[str, Any] = {}
        if tolerance is None:
            u = self.answer(states, grid, times, table, **about).cpu()
        else:
            u, steps = self.answer_adaptively(states, grid, times, table, tolerance=tolerance, **about)
            u, attributes = u.cpu(), steps.describe(self.provenance)
            for doubt in steps.doubts(self.provenance):
                warnings.warn(doubt, UserWarning, stacklevel=2)
        u[:, question.t == 0] = question.state[:, None]
        return label(u, question, self.problem).assign_attrs(attributes)

    def check(self, question: Question) -> list[str]:
        """Refuse what has no answer; of the rest, a sentence for each way in which it is outside of training."""
        instance = self.provenance.get("instance")
        check_instance(instance, self.problem, question.state, question.grid, question.params)
        self.scaling.params.check(question.params, self.problem)
        self.scaling.fields.check(question.u0)
        said = list(doubts(question, self.problem, self.scaling, self.provenance, plain(self.model)))
        return said + list(about_times(question, self))

    def _largest_tensor(self, u0: Tensor, grid: Tensor, params: Tensor) -> int:
        """On the way to one time of one sample; looked at once for each kind of field."""
        kind = (tuple(u0.shape[1:]), u0.device, u0.dtype)
        if kind not in self._largest:
            # After a whole step: at time 0 a model that steps has nothing to do.
            step = self.scaling.horizon / (self.model.steps if isinstance(plain(self.model), Rollout) else 1)
            own = params[:1] if params.ndim == 2 else params[:1, 0]
            compute = partial(self.answer, u0[:1], grid, u0.new_tensor([step]), own)
            self._largest[kind] = largest_tensor(compute)
        return self._largest[kind]

    def save(self, folder: str | Path) -> None:
        """Write `config.json` and `model.safetensors`, each complete or not at all."""
        folders.save(Path(folder), plain_weights(self.model), self._describe())

    def export(self, path: str | Path, resolution: int | Sequence[int] | None = None, x: Any = None) -> float:
        """Write one file that runs without vcnef: `.pt2` in PyTorch, Python or C++, `.onnx` in most other places.

        It takes u0 [sample, *x, channel], t [time] and params [sample, parameter] in physical units, for any numbers of
        samples and times, on points that are chosen here: `resolution` cells along each axis of the domain, by default
        the points of training, or any points `x`, as `predict` takes them. Its answers are compared with the
        surrogate's before it is written; ‖difference‖ / ‖answer‖ is returned.
        """
        grid = choose_points(self, resolution, x)
        places = about_points(grid, self.problem, self.provenance.get("grid"))
        sides = about_resolution(grid.shape[:-1], self.provenance.get("resolution"), plain(self.model))
        for doubt in (*places, *sides):
            warnings.warn(doubt, UserWarning, stacklevel=2)
        return export(self, Path(path), grid, self._describe())

    @classmethod
    def load(cls, folder: str | Path) -> Surrogate:
        """The surrogate in a folder that `save` wrote, or in a run's folder; nothing is unpickled."""
        place = folders.find(Path(folder))
        return folders.read(place, cls._from_description)

    def _describe(self) -> dict[str, Any]:
        return {
            "model": {"name": self.name, "options": self.options},
            "problem": self.problem.to_dict(),
            "scaling": self.scaling.to_dict(),
            "provenance": self.provenance,
        }

    @classmethod
    def _from_description(cls, record: Mapping[str, Any]) -> Surrogate:
        problem = Problem.from_dict(record["problem"])
        name, saved = record["model"]["name"], record["model"]["options"]
        check_options(saved)
        options = {key: _tuples(value) for key, value in saved.items()}
        # Of a network without memory, too, the scales are numbers that can be looked at.
        with torch.device("cpu"):
            scaling = Scaling.from_dict(record["scaling"])
        check_scaling(scaling, problem)
        check_provenance(record["provenance"], problem)
        model = _network(name, problem, scaling, options).eval()
        return cls(model, name, options, problem, scaling, dict(record["provenance"]))


def _network(name: str, problem: Problem, scaling: Scaling, options: Mapping[str, Any]) -> TrajectoryModel:
    """For a problem's fields; in single precision as all that it is asked, whatever torch's default is."""
    sizes = {
        "ndim": problem.ndim,
        "channels": len(problem.channels),
        "params": scaling.columns.count(len(problem.parameters)),
    }
    return registry.build(name, **sizes, **options).float()


def _check_windows(problem: Problem, window: float | None, explicit_time: bool) -> None:
    """Whether there are windows for what is told to them."""
    if problem.varying and window is None:
        raise ValueError(
            f"{', '.join(problem.varying)} changes with time, but there are no windows: a direct answer, or a model "
            "that steps, is told one value of each parameter. Train a vcnef with window= a multiple of the time "
            "between frames, or give one value per sample."
        )
    if explicit_time and window is None:
        raise ValueError(
            "explicit_time is true, but there are no windows: a direct answer begins with the first frame, and knows "
            "all times from that. Set a window, or leave explicit_time out."
        )


def _memory(name: str, history: int, t: Float[Tensor, " t"], window: float | None) -> dict[str, float]:
    """What a folder notes of a history: how far its frames are apart."""
    if history == 1:
        return {}
    if window is None or not is_even(t):
        raise ValueError(
            f"history is {history}, which needs windows on frames that are equally far apart. Set window, resample the "
            "data, or leave history out."
        )
    return {"frame_gap": short(float(t[-1] - t[0]) / (len(t) - 1))}


def _check_equal_steps(name: str, t: Float[Tensor, " t"]) -> None:
    """Whether frames lie on the clock of a model that takes one step from each to the next."""
    gaps = t.double().cpu().diff()
    # Off by no more of a step than `Rollout` bears: times are of single precision.
    if len(gaps) and float((gaps.cumsum(dim=0) / gaps.mean() - torch.arange(1, len(t))).abs().max()) > 0.01:
        raise ValueError(
            f"The model {name!r} takes equal steps in time, but those of the data are {gaps.min():.4g} to "
            f"{gaps.max():.4g} long. Resample the trajectories to equal steps, or use vcnef, which takes any times."
        )


def _tuples(value: Any) -> Any:
    """JSON has lists where options are tuples."""
    return tuple(_tuples(each) for each in value) if isinstance(value, list) else value


def _facts(
    name: str,
    options: Mapping[str, Any],
    train: Trajectories | StoredTrajectories,
    scaling: Scaling,
    sides: tuple[int, ...],
) -> dict[str, Any]:
    """Options that the data and the sides of a batch decide, where the model has them and nobody has set them."""
    builder = registry.MODELS.get(name)
    known = inspect.signature(builder).parameters if builder else {}
    lengths = tuple((high - low) / scaling.length for low, high in train.problem.domain)
    facts = {
        "steps": len(train.t) - 1,
        "lengths": lengths,
        "sides": sides,
        "resolution": sides[0] / lengths[0],
        "padding": None,  # noted, since without a note it means what it did in earlier versions
    }
    if not all(train.problem.closes):
        facts["periodic"] = train.problem.periodic
    if options.get("clocks"):
        facts["speeds"] = scaling.params.speeds(train.problem.ranges)
    return {option: value for option, value in facts.items() if option in known and option not in options}
