"""Data sets from seeds: solved batch by batch, kept in memory or written as they are made."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
import torch
from torch import Tensor

from vcnef.data.hdf5 import reading, record
from vcnef.data.recipe import Equation, Recipe, plan
from vcnef.data.trajectories import Trajectories
from vcnef.data.writer import TrajectoryWriter, create
from vcnef.device import choose_device
from vcnef.grid import cell_centres
from vcnef.whole import naming

Progress = Callable[[str, int, int], None]
"""Called with the data set's name, the trajectories made so far and how many there will be."""
ATTEMPTS = 8


def generate(
    name: str | Equation,
    *,
    samples: SupportsIndex,
    params: Mapping[str, Any] | None = None,
    seed: SupportsIndex = 0,
    device: torch.device | str | None = None,
    out: str | Path | None = None,
    generation: str = "documented",
    resume: bool = False,
    progress: Progress | None = None,
    resolution: SupportsIndex | None = None,
    t: Sequence[float] | np.ndarray | None = None,
    frames: int | None = None,
    horizon: float | None = None,
    batch: SupportsIndex | None = None,
    store_stride: SupportsIndex = 1,
    **initial: Any,
) -> Trajectories | list[Path]:
    """Trajectories of an equation ("advection", "burgers", "cns1d", "cns2d", "cns3d", or your own) from random initial
    states.

    `params`: per name a number, a list of numbers (a data set for each; sample i starts from the same state in all
    of them) or a (low, high) range from which each sample draws its own. `initial` are options of the initial
    states, such as `mach`. Resolution and output times default to the benchmark's; times are `t`, from 0 on, or
    `frames` of them (the initial one included) equally spaced up to `horizon`.

    Without `out` the result is in memory. With it files are written as they are made, and their paths returned: one
    file, or in a folder one per parameter value under the benchmark's names. `resume` continues a file that was
    interrupted, with the same bytes in the end. Several processes (`torchrun`) share one run: each makes its share
    of the batches and writes it into the same file.

    These change the bytes, so they are stored with them: `batch`, how many are solved at once; `store_stride`, every
    how many cells a point is kept; and the kind of device.
    """
    equation = _equation(name, generation)
    target = choose_device(device)
    recipes = plan(
        equation,
        samples=samples,
        params=params,
        initial=initial,
        generation=getattr(equation, "generation", generation),
        device=target.type,
        resolution=resolution,
        t=t,
        frames=frames,
        horizon=horizon,
        seed=seed,
        batch=batch,
        store_stride=store_stride,
    )
    if out is None:
        return _in_memory(equation, recipes, target, progress)
    paths = _paths(Path(out), recipes)
    for path, recipe in zip(paths, recipes, strict=True):
        with naming(path):
            _to_file(equation, recipe, path, target, resume, progress)
    return paths


def make_batch(equation: Equation, recipe: Recipe, rows: range, device: torch.device) -> tuple[Tensor, list[int]]:
    """Solve some samples; those that blow up are drawn again until they are finite. Also says how often."""
    names = equation.problem.parameters
    table = torch.from_numpy(recipe.table(names, rows)).float()
    attempts = np.zeros(len(rows), dtype=int)
    todo = np.arange(len(rows))
    u = None
    for attempt in range(ATTEMPTS):
        u0 = equation.initial_states(
            [rows[i] for i in todo], seed=recipe.seed, resolution=recipe.resolution, attempt=attempt,
            device=device, dtype=torch.float32, **recipe.initial,
        )  # fmt: skip
        values = {name: table[todo, column].to(device) for column, name in enumerate(names)}
        solved = _thin(equation.solve(u0, recipe.t(), values, **equation.stored_options), recipe.store_stride)
        u = solved if u is None else u.index_copy(0, torch.from_numpy(todo).to(device), solved)
        todo = todo[~torch.isfinite(solved.flatten(1)).all(dim=1).cpu().numpy()]
        if not len(todo):
            return u.cpu(), attempts.tolist()
        attempts[todo] += 1
    raise ValueError(
        f"{recipe.equation} sample {rows[int(todo[0])]} was not finite in {ATTEMPTS} draws with "
        f"params {dict(recipe.params)}. Use a higher resolution or a less extreme parameter."
    )


def _in_memory(
    equation: Equation, recipes: list[Recipe], device: torch.device, progress: Progress | None
) -> Trajectories:
    first, problem = recipes[0], equation.problem
    stride = (slice(None, None, first.store_stride),) * problem.ndim
    grid = cell_centres(problem.domain, first.resolution)[stride]
    u = torch.empty(len(recipes) * first.samples, len(first.times), *grid.shape[:-1], len(problem.channels))
    redrawn = 0
    for number, recipe in enumerate(recipes):
        offset = number * recipe.samples
        for rows in recipe.batches():
            u[offset + rows.start : offset + rows.stop], attempts = make_batch(equation, recipe, rows, device)
            redrawn += sum(attempts)
            _report(progress, recipe.file_name, rows.stop, recipe.samples)
    params = np.concatenate([recipe.table(problem.parameters) for recipe in recipes])
    attributes = {**_attributes(equation, first), "redrawn": redrawn}
    parts = (first.samples,) * len(recipes)
    table = torch.from_numpy(params).float()
    return Trajectories(u, first.t().float(), grid, table, problem, attributes, parts, split_in_order=True)


def _to_file(
    equation: Equation, recipe: Recipe, path: Path, device: torch.device, resume: bool, progress: Progress | None
) -> None:
    rank, processes = (int(os.environ.get(key, default)) for key, default in (("RANK", 0), ("WORLD_SIZE", 1)))
    writer = _begin(equation, recipe, path, resume or processes > 1, rank)
    made = writer.attempts() >= 0
    mine = [rows for number, rows in enumerate(recipe.batches()) if number % processes == rank]
    total, done = sum(map(len, mine)), 0
    # One thread writes a batch while the next one is solved.
    with _without_leftovers(writer, alone=processes == 1), ThreadPoolExecutor(max_workers=1) as background:
        writing = None
        for rows in mine:
            if not made[rows.start : rows.stop].all():
                u, attempts = make_batch(equation, recipe, rows, device)
                if writing:
                    writing.result()
                writing = background.submit(writer.write, rows.start, u, attempts)
            done += len(rows)
            _report(progress, path.name, done, total)
        if writing:
            writing.result()
    if (writer.attempts() >= 0).all():
        writer.finish()


@contextmanager
def _without_leftovers(writer: TrajectoryWriter, *, alone: bool) -> Iterator[None]:
    """Remove a file that an error has left empty: it would stand in the way of the corrected command."""
    try:
        yield
    except ValueError:
        if alone and (writer.attempts() < 0).all():
            writer.path.unlink()
        raise


def _begin(equation: Equation, recipe: Recipe, path: Path, resume: bool, rank: int) -> TrajectoryWriter:
    """The file to fill: a new one, or one that was begun with the same recipe."""
    if path.suffix not in (".hdf5", ".h5"):
        raise ValueError(f"{path} has the suffix {path.suffix!r}; generated data are written as .hdf5, or to a folder.")
    if not path.exists() and rank == 0:
        names = equation.problem.parameters
        lines = recipe.lines(equation.problem)
        t = recipe.t().numpy()
        attributes = _attributes(equation, recipe)
        return create(path, equation.problem, t, lines, recipe.table(names), attributes, recipe.to_dict())
    _wait_for(path, patience=0.0 if rank == 0 else 300.0)
    if not resume:
        raise ValueError(f"{path} exists already. Resume it (resume=True, --resume) or choose another name.")
    with reading(path) as file:
        begun = record(file, "recipe")
    wanted = json.loads(json.dumps(recipe.to_dict(), default=str))
    if changed := [key for key in wanted if begun.get(key) != wanted[key]]:
        what = "; ".join(f"{key} was {begun.get(key)}, now {wanted[key]}" for key in changed)
        raise ValueError(
            f"{path} was begun differently and cannot be resumed: {what}. Ask for what it was begun with, or "
            "choose another place."
        )
    return TrajectoryWriter(path)


def _wait_for(path: Path, patience: float) -> None:
    """The first process makes the file; the others wait for it."""
    deadline = time.monotonic() + patience
    while not path.exists():
        if time.monotonic() > deadline:
            raise FileNotFoundError(f"{path} was not begun by the first process within {patience:g} seconds.")
        time.sleep(0.1)


def _paths(out: Path, recipes: list[Recipe]) -> list[Path]:
    if out.is_dir() or not out.suffix:
        return [out / recipe.file_name for recipe in recipes]
    if len(recipes) > 1:
        raise ValueError(f"{len(recipes)} parameter values make as many files; give a folder instead of {out}.")
    return [out]


def _equation(name: str | Equation, generation: str) -> Equation:
    if not isinstance(name, str):
        return name
    from vcnef.pde import equation

    return equation(name, generation=generation)


def _thin(u: Tensor, stride: int) -> Tensor:
    return u[(slice(None), slice(None), *(slice(None, None, stride),) * (u.ndim - 3))]


def _attributes(equation: Equation, recipe: Recipe) -> dict[str, Any]:
    """What data say of themselves; `initial_options` are those that are not the equation's own."""
    mach = {"mach": recipe.initial["mach"]} if "mach" in recipe.initial else {}
    usual = equation.initial_options
    changed = [f"{key}={value}" for key, value in recipe.initial.items() if key != "mach" and value != usual[key]]
    states = {"initial_options": ", ".join(sorted(changed)) or "default"}
    return {"generation": recipe.generation, "seed": recipe.seed, **mach, **states}


def _report(progress: Progress | None, label: str, done: int, total: int) -> None:
    if progress is not None:
        progress(label, done, total)
