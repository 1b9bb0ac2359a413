"""The training loop, read from top to bottom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from math import inf, isnan
from pathlib import Path

from vcnef.data import Queries, StoredTrajectories, Trajectories
from vcnef.data.augment import Symmetry
from vcnef.surrogate import Surrogate
from vcnef.training.checkpoint import RunFolder
from vcnef.training.devices import fused, mean_over, numerics, seed_step, start
from vcnef.training.job import Job, prepare
from vcnef.training.log import Record, open_diary
from vcnef.training.objectives import Objective
from vcnef.training.own import Beside
from vcnef.training.progress import Reporter
from vcnef.training.recipe import Recipe
from vcnef.training.schedules import learning_rate
from vcnef.training.stopping import Clock, Signals, Stopped, noticing_lost_processes
from vcnef.training.validation import validate


@dataclass(eq=False)
class Run:
    """What training leaves behind: its folder, the best model, a record per epoch, and the best nRMSE on valid."""

    folder: Path | None
    surrogate: Surrogate
    history: list[Record]
    best: float


def fit(
    surrogate: Surrogate,
    train: Trajectories | StoredTrajectories,
    valid: Trajectories | StoredTrajectories | None,
    recipe: Recipe,
    *,
    out: str | Path | None = None,
    queries: Queries | None = None,
    symmetries: Sequence[Symmetry] = (),
    objective: Objective | Beside | None = None,
    devices: int | str = "auto",
    nodes: int = 1,
    resume: bool = False,
    on_begin: Callable[[], None] | None = None,
    on_progress: Callable[[Record], None] | None = None,
) -> Run:
    """Train a surrogate, which has the best weights afterwards: those with the smallest nRMSE on `valid`.

    Without `valid`, they are those of the end. `objective` replaces the loss that the recipe names, or
    stands beside it (`Beside`). `devices` is a
    number, "cpu", or "auto": one device, or all that `torchrun` or SLURM has started processes for.

    `resume` continues the interrupted run in `out`, exactly as if nothing had happened. SIGTERM and SIGINT save the
    state and raise `Stopped`. `on_begin` is called when nothing has been refused and there are steps to make,
    `on_progress` is given a record about once a second.
    """
    fabric = start(recipe, devices, nodes)
    queries, path = queries or Queries(), None if out is None else Path(out)
    with RunFolder(path, writes=fabric.is_global_zero) as folder:
        parts = {"queries": queries, "symmetries": symmetries, "objective": objective, "resume": resume}
        job = prepare(fabric, surrogate, train, valid, recipe, folder=folder, **parts)
        try:
            noticing = noticing_lost_processes(fabric, lambda: f"at step {job.state.step}")
            with noticing, numerics(recipe), fused(surrogate.model, recipe, queries, fabric.device):
                history = _train(job, on_begin, on_progress)
        finally:
            # After a failure too: nobody should be left with weights that are not finite if there were better ones.
            if job.state.best_weights:
                surrogate.model.load_state_dict(job.state.best_weights)
            surrogate.model.eval()
    return Run(path, surrogate, history, job.state.best)


def _train(job: Job, on_begin: Callable[[], None] | None, on_progress: Callable[[Record], None] | None) -> list[Record]:
    fabric, recipe, batches, state = job.fabric, job.recipe, job.batches, job.state
    with Signals() as signals, open_diary(job.folder, recipe.logs, step=state.step) as diary:
        steps = recipe.epochs * len(batches)
        clock = Clock(fabric, signals, steps, recipe.minutes, state.elapsed, state.prepared, state.reserved)
        reporter = Reporter(state, clock, on_progress if fabric.is_global_zero else None)
        if on_begin and fabric.is_global_zero and not clock.over(state.step):
            on_begin()
        if clock.over(state.step) and state.best == inf:
            # It was interrupted before a model was kept, and is now to go no further.
            _judge(job, (state.step - 1) // len(batches), clock)
            _save(job)
        while not clock.over(state.step):
            epoch, first = divmod(state.step, len(batches))
            reporter.begin(epoch)
            for batch in batches.epoch(epoch, first=first):
                progress = clock.progress(state.step)
                seed_step(fabric, recipe, state.step)
                loss = job.step(batch, progress, learning_rate(progress, recipe))
                state.note(loss)
                clock.agree(state.step)
                reporter.tick(len(batch) * fabric.world_size, check=fabric.world_size == 1)
                if clock.asked_to_stop or clock.over(state.step):
                    break
            # Of all processes before they look: one that stopped alone would leave the others waiting.
            state.losses = mean_over(fabric, state.losses)
            state.check_finite(clock.steps)
            if clock.over(state.step) or state.step % len(batches) == 0:
                record = reporter.record(float(state.losses / state.counted)) | _judge(job, epoch, clock)
                diary.write(record)
                reporter.tell(record)
                state.begin_epoch()
            state.elapsed, state.prepared, state.reserved = clock.elapsed, clock.prepared, clock.reserved
            done = clock.over(state.step)
            if done or clock.asked_to_stop or (epoch + 1) % recipe.save_every == 0:
                _save(job)
            if clock.asked_to_stop and not done:
                raise Stopped(_farewell(job, clock), clock.asked_to_stop)
    return diary.history


def _judge(job: Job, epoch: int, clock: Clock) -> Record:
    """Validate if it is time to, and keep the model if it is the best so far."""
    state, score = job.state, inf
    due = clock.over(state.step) or ((epoch + 1) % job.recipe.validate_every == 0 and clock.has_room())
    with state.average.in_use() if state.average else nullcontext():
        if due and job.valid:
            with clock.judging(state.step):
                score = validate(job.surrogate, job.valid, job.fabric)
        score = inf if isnan(score) else score  # Nothing is ever better than NaN.
        # Where no score is ever finite, the last model is the one that is kept.
        if score < state.best or (clock.over(state.step) and state.best == inf):
            state.keep_best(score)
            job.surrogate.provenance |= {
                "epoch": epoch + 1,
                "step": state.step,
                "valid_nrmse": _finite(score),
                "training_seconds": round(clock.elapsed, 1),
            }
            job.folder.save_model(job.surrogate)
    return {"valid_nrmse": score} if due and job.valid else {}


def _save(job: Job) -> None:
    job.folder.save(job.state, job.terms)
    job.fabric.barrier()  # No process goes on to read what the first one has yet to write.


def _finite(score: float) -> float | None:
    return score if score < inf else None


def _farewell(job: Job, clock: Clock) -> str:
    kept = f"its state is saved in {job.folder.path}; continue with resume" if job.folder.path else "nothing was kept"
    return f"Stopped by {clock.asked_to_stop} after step {job.state.step} of {clock.steps}: {kept}."
