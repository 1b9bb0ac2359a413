"""A surrogate as one file that runs without vcnef: `.pt2` in PyTorch, Python or C++, `.onnx` in most other places."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from io import BytesIO
from logging import ERROR, getLogger
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vcnef.data.conditions import Conditions
from vcnef.grid import as_sides
from vcnef.models.compiled import plain
from vcnef.surrogate.composition import windows_before, windows_to
from vcnef.surrogate.inputs import check_uniform, read_grid
from vcnef.surrogate.points import shape_of, usual_points
from vcnef.whole import write_whole

if TYPE_CHECKING:
    from vcnef.surrogate.surrogate import Surrogate

Inputs = tuple[Tensor, ...]
Answer = Callable[[Inputs], Tensor]
INPUTS = {"u0": {0: "sample"}, "t": {0: "time"}, "params": {0: "sample"}, "start": {0: "sample"}}
"""With the axes whose length is free; `params` only where there are parameters, `start` where time is told."""
TOLERANCE = 1e-4
"""Of ‖difference‖ / ‖answer‖ between file and surrogate: what single precision may round differently, and some more."""


def choose_points(surrogate: Surrogate, resolution: int | Sequence[int] | None, x: Any) -> Float[Tensor, "*x D"]:
    """Those of training or cell centres of the domain, or the points that are given."""
    problem = surrogate.problem
    if x is not None:
        if resolution is not None:
            raise ValueError(f"resolution is {resolution} and x is given too. Leave out one: x has its own.")
        return read_grid(problem, x, shape_of(x, problem.ndim)).float()
    check_uniform(problem, surrogate.provenance.get("grid"))
    chosen = surrogate.provenance["resolution"] if resolution is None else resolution
    sides = as_sides(chosen, problem.ndim)
    return usual_points(problem, surrogate.provenance, sides)


class OnGrid(nn.Module):
    """u(t | u₀, p) in physical units, on a grid that is part of the module.

    Of a surrogate that composes, the states at the ends of all windows up to its horizon are found one after the other,
    and each time is asked from the one before it. Later times are answered from the last of them.
    """

    def __init__(self, surrogate: Surrogate, grid: Float[Tensor, "*x D"]) -> None:
        super().__init__()
        self.model = deepcopy(plain(surrogate.model)).cpu().float().eval().requires_grad_(False)
        self.scaling = surrogate.scaling.to("cpu")
        self.register_buffer("grid", self.scaling.coordinates(grid.cpu()))
        self.window = surrogate.window
        self.windows = windows_to(surrogate.horizon, surrogate.window) if surrogate.composes else 1
        there = {"params": surrogate.problem.parameters, "start": surrogate.scaling.explicit_time is not None}
        self.left_out = [name for name, is_there in there.items() if not is_there]

    def forward(
        self,
        u0: Float[Tensor, "b *x c"],
        t: Float[Tensor, " t"],
        params: Float[Tensor, "b p"] | None = None,
        start: Float[Tensor, " b"] | None = None,
    ) -> Float[Tensor, "b t *x c"]:
        known = Conditions(u0.new_empty(u0.shape[0], 0) if params is None else params, start=start)
        u = self._within_window(u0, t, known) if self.windows == 1 else self._composed(u0, t, known)
        initial = (t == 0)[:, *(None,) * (u0.ndim - 1)]
        return torch.where(initial, u0[:, None], u)

    def _within_window(
        self,
        u0: Float[Tensor, "b *x c"],
        t: Float[Tensor, " t"] | Float[Tensor, "b t"],
        known: Conditions,
        begin: float | Tensor = 0.0,
    ) -> Float[Tensor, "b t *x c"]:
        units = self.scaling.units(u0, known.params)
        scaled = units.told(known, begin, self.window) if self.model.params else None
        return units.physical(self.model(units.fields(u0), self.grid, units.times(t), scaled))

    def _composed(
        self, u0: Float[Tensor, "b *x c"], t: Float[Tensor, " t"], known: Conditions
    ) -> Float[Tensor, "b t *x c"]:
        end, starts = t.new_full((1,), self.window), [u0]
        for number in range(self.windows - 1):
            starts.append(self._within_window(starts[-1], end, known, number * self.window)[:, 0])
        number = windows_before(t, self.window).clamp(max=self.windows - 1)
        # A sample for every time, with that one time of its own.
        states = torch.stack(starts, dim=1)[:, number.long()].flatten(0, 1)
        rest = (t - number * self.window).expand(u0.shape[0], -1).reshape(-1, 1)
        params = known.params.unsqueeze(1).expand(-1, t.shape[0], -1).flatten(0, 1)
        start = known.start
        if start is not None:
            start = (start.unsqueeze(1) + number * self.window).flatten()
        u = self._within_window(states, rest, Conditions(params, start=start))
        return u.view(u0.shape[0], t.shape[0], *u0.shape[1:])


class OnGridWithoutParams(OnGrid):
    """The same of an equation that has no parameters, so that `start` is the third input."""

    def forward(
        self, u0: Float[Tensor, "b *x c"], t: Float[Tensor, " t"], start: Float[Tensor, " b"]
    ) -> Float[Tensor, "b t *x c"]:
        return super().forward(u0, t, None, start)


def export(surrogate: Surrogate, path: Path, grid: Float[Tensor, "*x D"], description: Mapping[str, Any]) -> float:
    """Write the file; how far its answers are from the surrogate's, for other numbers of samples and times.

    It is run before it is written: a file that answers otherwise is none.
    """
    check_exportable(surrogate, path)
    without_params = surrogate.scaling.explicit_time is not None and not surrogate.problem.parameters
    module = (OnGridWithoutParams if without_params else OnGrid)(surrogate, grid)
    with torch.no_grad(), _quiet():
        content, answer = FORMATS[path.suffix](module, _inputs(surrogate, grid, 3, 4), json.dumps(description))
        others = _inputs(surrogate, grid, 2, 5)
        expected = module(*others)
        distance = float((answer(others) - expected).norm() / expected.norm())
    if not distance < TOLERANCE:
        raise RuntimeError(f"The exported model answers otherwise than the surrogate, by {distance:.1e} of its norm.")
    write_whole(path, content)
    return distance


def check_exportable(surrogate: Surrogate, path: Path) -> None:
    """Whether such a model can be such a file; better asked before long work."""
    if path.suffix not in FORMATS:
        raise ValueError(f"{path} ends in {path.suffix!r}; a model is exported to .pt2 (PyTorch) or .onnx.")
    if not surrogate.model.independent_times:
        raise ValueError(
            f"{surrogate.name} goes from frame to frame, so its answer is no single graph for any times. "
            "Export a vcnef, or use `vcnef predict`."
        )
    if surrogate.history > 1:
        raise ValueError(
            f"The answers of {surrogate.name} begin with {surrogate.history} frames, which an exported file does not "
            "take. Use `vcnef predict` in Python, or train with history=1."
        )
    if varying := surrogate.problem.varying:
        raise ValueError(
            f"{', '.join(varying)} changes with time, which one input cannot say for each window. "
            "Use `vcnef predict`, or train on values that stay."
        )
    if surrogate.provenance.get("instance"):
        raise ValueError(
            f"{surrogate.name} is the solution from one initial state, and its file would answer about any other with "
            "that one. Export a vcnef."
        )


def _as_pt2(module: OnGrid, example: Inputs, description: str) -> tuple[bytes, Answer]:
    lengths = {name: torch.export.Dim(name, min=1) for name in ("sample", "time")}
    shapes = tuple({axis: lengths[name] for axis, name in each.items()} for each in _free(module).values())
    program, file = torch.export.export(module, example, dynamic_shapes=shapes), BytesIO()
    torch.export.save(program, file, extra_files={"vcnef.json": description})
    loaded = torch.export.load(BytesIO(file.getvalue())).module()
    return file.getvalue(), lambda inputs: loaded(*inputs)


def _as_onnx(module: OnGrid, example: Inputs, description: str) -> tuple[bytes, Answer]:
    try:
        import onnxruntime
        import onnxscript  # noqa: F401, what torch exports with
    except ImportError as error:
        raise ValueError(
            f"Exporting to .onnx needs {error.name}: pip install 'vcnef[onnx]'. A .pt2 needs nothing."
        ) from None

    program = torch.onnx.export(
        module, example, dynamo=True, verbose=False,
        input_names=list(_free(module)), output_names=["u"], dynamic_shapes=tuple(_free(module).values()),
    )  # fmt: skip
    program.model.metadata_props["vcnef"] = description
    content = program.model_proto.SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    run = partial(session.run, ["u"])

    def answer(inputs: Inputs) -> Tensor:
        named = zip(_free(module), map(Tensor.numpy, inputs), strict=True)
        return torch.from_numpy(run(dict(named))[0])

    return content, answer


FORMATS = {".pt2": _as_pt2, ".onnx": _as_onnx}


def _free(module: OnGrid) -> dict[str, dict[int, str]]:
    """The inputs of a module with their free axes."""
    return {name: axes for name, axes in INPUTS.items() if name not in module.left_out}


def _inputs(surrogate: Surrogate, grid: Tensor, samples: int, times: int) -> Inputs:
    """Fields and parameters as in training, at times up to its horizon."""
    problem, chance = surrogate.problem, torch.Generator().manual_seed(samples)
    ranges = [surrogate.provenance.get("field_ranges", {}).get(name, (0.5, 1.5)) for name in problem.channels]
    values = [problem.ranges.get(name, (1.0, 1.0)) for name in problem.parameters]

    def between(ends: Sequence[Sequence[float]], *shape: int) -> Tensor:
        low, high = torch.tensor(ends, dtype=torch.float32).reshape(-1, 2).unbind(dim=1)
        return low + (high - low) * torch.rand(*shape, len(ends), generator=chance, dtype=torch.float32)

    t = torch.linspace(0.0, surrogate.horizon, times, dtype=torch.float32)
    inputs = between(ranges, samples, *grid.shape[:-1]), t
    inputs = (*inputs, between(values, samples)) if values else inputs
    clock = surrogate.scaling.explicit_time
    return inputs if clock is None else (*inputs, torch.linspace(*clock, samples))


@contextmanager
def _quiet() -> Iterator[None]:
    """Exporters tell their own story of what they skip."""
    log = getLogger("torch.onnx")
    level = log.level
    log.setLevel(ERROR)
    with catch_warnings():
        simplefilter("ignore")
        try:
            yield
        finally:
            log.setLevel(level)
