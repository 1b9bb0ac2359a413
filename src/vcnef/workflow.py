"""The public road: `fit` leads from data to a run folder, `load` from a folder to a surrogate."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from inspect import signature
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from vcnef.checks import check_path
from vcnef.config import Config
from vcnef.config.settings import flatten
from vcnef.data import StoredTrajectories, Trajectories, from_arrays
from vcnef.data.arrays import by_name
from vcnef.data.augment import Symmetry
from vcnef.data.conservation import Conserved, conserved_means
from vcnef.data.instance import hide_truth, pick_instance
from vcnef.data.precision import short
from vcnef.data.sets import Sets, make_sets
from vcnef.data.vouching import examine
from vcnef.data.windows import Window, choose_window, departures
from vcnef.grid import is_scattered
from vcnef.models.fno import is_benchmarks
from vcnef.models.registry import option_names
from vcnef.own_data import asked_window, choose_preset, suit
from vcnef.packaged import locate
from vcnef.surrogate import Surrogate
from vcnef.surrogate.instance import describe_instance
from vcnef.surrogate.points import UNEVEN, arrangement
from vcnef.training.checkpoint import FREE_TO_CHANGE, begun_in_order, check_unused
from vcnef.training.fit import Run
from vcnef.training.fit import fit as train_surrogate
from vcnef.training.own import check_objective, check_settings
from vcnef.training.screen import describe_choices, training_progress

VIEW = {"space_stride": 1, "time_stride": 1, "horizon": None}
"""All frames and points. Data in memory are taken so: the strides of a preset are meant for files."""
STRAIGHT = 0.1
"""How far parameters may depart from a straight line within a window, as a part of their spread."""
FEW = 100
"""Up to so many different values of the parameters are listed in a model's folder."""
RUN_CONFIG = "config.yaml"
Data = Trajectories | StoredTrajectories

log = logging.getLogger(__name__)


def fit(
    data: Any,
    /,
    *,
    valid: Any = None,
    test: Any = None,
    model: str | None = None,
    preset: str | Path | None = None,
    out: str | Path | None = None,
    t: Any = None,
    x: Any = None,
    params: Mapping[str, Any] | None = None,
    channels: Sequence[str] | None = None,
    name: str | None = None,
    periodic: Any = None,
    layout: str | None = None,
    objective: Any = None,
    resume: bool = False,
    devices: int | str = "auto",
    nodes: int = 1,
    quiet: bool = False,
    on_progress: Callable[..., None] | None = None,
    **overrides: Any,
) -> Run:
    """Train a surrogate on trajectories, or on an array `u [samples, times, *space, channels]`, in the folder `out`.

    >>> run = vcnef.fit(u, t=t, x=x, params={"nu": nu}, out="runs/mine", epochs=50)
    >>> run.surrogate.predict(u0, t=t)

    t, x, params, channels, name, periodic, layout: what an array does not say itself; see `vcnef.from_arrays`.
    valid, test: trajectories (or, without parameters of their own, an array like `data`) that choose the weights, and
        that are kept for the test; the run then trains on everything else. By default a twentieth and a tenth of the
        data, drawn by a fixed seed; a number for `valid` is another share.
    model, preset: by default a VCNeF, with a preset chosen by the data and by whether there is a GPU.
    overrides: any value of the preset, as `train={"epochs": 50}`, or `epochs=50` where only one section has that key.
        Strides and the horizon are those of the data, unless they are given here; a warning says which ones of a
        preset are left out so.

    objective: a loss of your own, a function of (model, batch, progress) in place of the preset's; or beside it, as
        `vcnef.training.Beside(f, weight=0.1)`. `vcnef.training.Objective` says what a batch holds.

    The standard error shows what was chosen and how far the run is: a bar on a terminal, plain lines elsewhere. With
    `quiet` it shows nothing. `on_progress` takes a record about once a second in place of it.
    """
    given = {"t": t, "x": x, "params": params, "channels": channels, "name": name, "periodic": periodic}
    given["layout"] = layout
    given = {key: value for key, value in given.items() if value is not None}
    trajectories = _as_trajectories(data, **given)
    if isinstance(valid, Real):
        overrides, valid = {**overrides, "data.valid": valid}, None
    sets = {"valid": _as_set("valid", valid, given), "test": _as_set("test", test, given)}
    window = asked_window(overrides) if model in (None, "vcnef") else "direct"
    chosen = preset or choose_preset(trajectories, window, devices)
    config = Config.load(preset) if preset else suit(chosen, trajectories)
    config = config.with_model(model or config.model.name)
    if preset and (ignored := _ignored_view(str(preset), config, overrides)):
        warnings.warn(ignored, UserWarning, stacklevel=2)
    config = config.override({"data": VIEW})
    own = [each.name for each in signature(fit).parameters.values() if each.kind is each.KEYWORD_ONLY]
    config = config.override(overrides, beside=own)
    _check_objective(objective, config, overrides)
    sets = {name: each if each is None else _view(each, config) for name, each in sets.items()}
    if isinstance(devices, int) and devices > 1 and not {"RANK", "LOCAL_RANK", "SLURM_PROCID"} & {*os.environ}:
        warnings.warn(
            f"devices is {devices}: each further process runs this script from its first line up to this call, and "
            "goes on after it. Put what must happen once under `if 'LOCAL_RANK' not in os.environ`, or train by "
            "`vcnef train` or torchrun.",
            UserWarning,
            stacklevel=2,
        )
    usual = Path("runs") / f"{trajectories.problem.name}-{config.model.name}"
    folder = check_path(out or usual, "The folder of the run")
    return train(
        config, _view(trajectories, config), **sets, out=folder, objective=objective, resume=resume, devices=devices,
        nodes=nodes, preset=str(chosen), quiet=quiet, on_progress=on_progress,
    )  # fmt: skip


def train(
    config: Config,
    data: Data,
    *,
    valid: Data | None = None,
    test: Data | None = None,
    out: str | Path,
    objective: Any = None,
    resume: bool = False,
    devices: int | str = "auto",
    nodes: int = 1,
    preset: str | None = None,
    quiet: bool = False,
    on_progress: Callable[..., None] | None = None,
) -> Run:
    """Train what a configuration describes, on data that are already viewed as it says; `resume` continues a run.

    `valid` and `test` are sets of their own, viewed alike; without them they are drawn from the data.
    `preset` is the name under which the screen shows the configuration; see `fit` for `objective`, `quiet` and
    `on_progress`.
    """
    check_fit(config, data)
    _check_objective(objective, config)
    folder = Path(out)
    check_folder(folder, resume=resume)
    config = _note_padding(config, _begun_config(folder) if resume else None)
    if resume:
        check_same(folder, config)
        data = replace(data, split_in_order=begun_in_order(folder, data.split_in_order))
    section, recipe = config.data, config.train
    sets = _choose_sets(config, data, valid, test)
    training, validation = sets.train, sets.valid and _thin(sets.valid, config)
    window = choose_window(training, section.window)
    _check_window(window, config)
    conserved = _conserved(config, training)
    surrogate = Surrogate.build(
        config.model.name, config.model.options, training, conserve=conserved.channels,
        log=section.log, normalise=section.normalise, own_time=section.own_time, thinning=config.thinning(),
        window=window and window.length, explicit_time=section.explicit_time, seed=recipe.seed,
    )  # fmt: skip
    if window:
        surrogate.provenance["window"] = {"frames": window.frames, "why": window.why}
        log.info("Windows of %g: %s.", window.length, window.why)
        _doubt_records(training, window)
    if section.conserve:
        surrogate.provenance["conserved"] = {"channels": list(conserved.channels), "why": conserved.why}
    _check_instance(surrogate, config)
    _check_points(surrogate, data)
    surrogate.scaling.params.check(data.params, surrogate.problem)
    surrogate.provenance |= _provenance(training, config) | sets.provenance()
    symmetries = config.symmetries()
    surrogate.provenance["symmetries"] = _examine(symmetries, training)
    shown = not quiet and on_progress is None and is_first_process()

    def begin() -> None:
        # Not before: a run that is not resumed after all keeps the configuration that it was made with.
        config.save(folder / RUN_CONFIG)
        if shown:
            print(*describe_choices(surrogate, recipe, sets.describe(), preset), sep="\n", file=sys.stderr)

    with training_progress(recipe.epochs) if shown else nullcontext(on_progress) as report:
        return train_surrogate(
            surrogate, training, validation, recipe,
            out=folder, queries=config.queries(window), symmetries=symmetries, objective=objective,
            devices=devices, nodes=nodes, resume=resume, on_begin=begin, on_progress=report,
        )  # fmt: skip


def load(path: str | Path) -> Surrogate:
    """The surrogate of a run folder, of a model folder, or of a packaged model: `load("burgers")`."""
    return Surrogate.load(locate(check_path(path, "The run or model to load")))


def check_fit(config: Config, data: Data) -> None:
    """Whether data have the space axes that a configuration is meant for."""
    ndim, expected = data.problem.ndim, config.data.ndim
    if expected not in (None, ndim):
        raise ValueError(
            f"The configuration is for {expected}D data, but {data.problem.name} is {ndim}D. "
            f"Choose a preset for {ndim}D, e.g. {choose_preset(data)}; `vcnef presets` lists them."
        )
    if (
        is_scattered(data.grid)
        and "patches" in option_names(config.model.name)
        and config.model.options.get("patches") != ()
    ):
        raise ValueError("The data lie on scattered points, which make no patches. Set model.options.patches=[].")


def check_folder(folder: Path, *, resume: bool) -> None:
    """Whether a run may begin, or go on, in this folder; better asked before data are read."""
    if resume and not (folder / RUN_CONFIG).is_file():
        raise FileNotFoundError(f"There is no run in {folder} to resume. Check the path, or start without resume.")
    there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        trouble = "may not be written to" if there.is_dir() else "is a file"
        raise OSError(f"The run cannot be kept in {folder}, since {there} {trouble}. Choose another folder.")
    # What another process of the same run has written is no obstacle.
    if not resume and is_first_process():
        check_unused(folder)


def check_same(folder: Path, config: Config) -> None:
    """Whether a run that is to be continued was begun with this configuration, as far as that matters."""
    begun = _begun_config(folder)
    before, now = _flat(begun), _flat(_note_padding(config, begun))
    free = {f"train.{name}" for name in FREE_TO_CHANGE}
    for name in sorted((before.keys() | now.keys()) - free):
        if before.get(name) != now.get(name):
            raise ValueError(
                f"The run in {folder} was begun with {name}={before.get(name)!r}, not {now.get(name)!r}. "
                "Resume it as it was begun, or start a new run."
            )


def _begun_config(folder: Path) -> Config:
    """The configuration of the run in a folder, with what it meant by an FNO that does not note its padding.

    The benchmark's was the default when it was begun; later runs note theirs.
    """
    config = Config.load(folder / RUN_CONFIG)
    if config.model.name == "fno" and "padding" not in config.model.options:
        return config.override({"model.options.padding": True})
    return config


def _note_padding(config: Config, begun: Config | None) -> Config:
    """The configuration of an FNO with its padding: the benchmark's as the run that it continues spells it."""
    if config.model.name != "fno":
        return config
    before = None if begun is None else begun.model.options.get("padding")
    asked = config.model.options.get("padding", before)
    same = is_benchmarks(before) and is_benchmarks(asked)
    return config.override({"model.options.padding": before if same else asked})


def is_first_process() -> bool:
    """Whether this process writes: every launcher numbers its processes in one of these."""
    return all(os.environ.get(name, "0") == "0" for name in ("RANK", "LOCAL_RANK", "NODE_RANK", "SLURM_PROCID"))


def _as_trajectories(data: Any, **given: Any) -> Data:
    if isinstance(data, str | Path):
        raise ValueError(f"fit expects trajectories or an array, got the path {str(data)!r}. Open it with vcnef.open.")
    if not isinstance(data, Trajectories | StoredTrajectories):
        return from_arrays(data, **given)
    if given:
        raise ValueError(f"{', '.join(given)} is given beside trajectories, which have their own. Leave it out.")
    return data


def _ignored_view(preset: str, config: Config, overrides: Mapping[str, Any]) -> str | None:
    """What a preset would leave out of files and `fit` does not, in a sentence; None where nothing differs."""
    given = {name.rpartition(".")[2] for name, _ in flatten(overrides)}
    own = {name: getattr(config.data, name) for name in VIEW}
    ignored = {name: value for name, value in own.items() if value != VIEW[name] and name not in given}
    if not ignored:
        return None
    asked, here = (", ".join(f"{name}={values[name]}" for name in ignored) for values in (ignored, VIEW))
    return (
        f"The preset {preset!r} has {asked} for its files; fit takes data as they are, {here}, which is another "
        f"experiment than on the command line. Give fit(..., {asked}) if the data are at full resolution, and "
        f"fit(..., {here}) if they are as they should be."
    )


def _view(data: Data, config: Config) -> Data:
    asked = config.view()
    if asked == VIEW:
        return data
    if isinstance(data, StoredTrajectories):
        raise ValueError("These trajectories stay in their files. Give strides and horizon to vcnef.open instead.")
    return data.view(**asked)


def _as_set(name: str, data: Any, given: Mapping[str, Any]) -> Data | None:
    """Trajectories of one's own for "valid" or "test"; an array has what is given for the array of training."""
    if data is None or isinstance(data, Trajectories | StoredTrajectories):
        return data
    several = [key for key, value in by_name(given.get("params")).items() if np.ndim(value)]
    if isinstance(data, str | Path | Real) or several:
        about = f" with its own values of {', '.join(several)}" if several else ""
        raise ValueError(
            f"{name} is {type(data).__name__}; expected trajectories{about}. Make them with vcnef.open, or with "
            f"vcnef.from_arrays({name}, ...), which takes params too."
        )
    return from_arrays(data, **given)


def _choose_sets(config: Config, data: Data, valid: Data | None, test: Data | None) -> Sets:
    """What is trained on, and what chooses the weights."""
    section = config.data
    if section.instance is None:
        sets = make_sets(data, section.valid, valid, test)
        for doubt in sets.doubts if is_first_process() else ():
            warnings.warn(doubt, UserWarning, stacklevel=3)
        return sets
    if valid is not None or test is not None:
        raise ValueError(
            "data.instance trains on one trajectory alone, which is also judged. Leave out valid and test."
        )
    chosen = pick_instance(data, section.instance)
    return Sets(train=hide_truth(chosen), valid=chosen if section.valid else None)


def _thin(data: Data, config: Config) -> Data:
    """Data at the resolution of the batches, on which models are judged too."""
    if config.thinning() == 1:
        return data
    loaded = data.load() if isinstance(data, StoredTrajectories) else data
    return loaded.view(space_stride=config.thinning())


def _check_window(window: Window | None, config: Config) -> None:
    if window and config.train.unroll != "full":
        raise ValueError(
            f"data.window is {config.data.window}, but train.unroll={config.train.unroll!r} is about whole "
            "trajectories. Set data.window=direct."
        )


def _doubt_records(training: Data, window: Window) -> None:
    """Say where parameters that change with time do so within windows, of which the network sees both ends alone."""
    for name, share in departures(training, window.frames).items():
        if share > STRAIGHT and is_first_process():
            warnings.warn(
                f"Within a window of {window.frames} frames {name} departs from a straight line by {share:.0%} of its "
                "spread, and the network sees its values at both ends alone. Set window to a shorter time.",
                UserWarning,
                stacklevel=3,
            )


def _check_objective(objective: Any, config: Config, given: Mapping[str, Any] | None = None) -> None:
    """Whether an objective can be called, and means something with these settings."""
    if objective is None:
        return
    check_objective(objective)
    named = {name.rpartition(".")[2]: value for name, value in flatten(given or {})}
    recipe = config.train
    if config.data.window != "direct" and "input_noise" not in named:
        # The noise that suits the data goes with the recipe's loss; an objective sees true states.
        recipe = replace(recipe, input_noise=0.0)
    check_settings(objective, recipe, named)


def _conserved(config: Config, training: Data) -> Conserved:
    """The channels whose means the model is to keep, where it can."""
    asked, model = config.data.conserve, config.model.name
    obstacle = None
    if "conserved" not in option_names(model):
        obstacle = f"{model!r} has no part that keeps means"
    elif config.data.instance is not None:
        obstacle = "the truth of an instance is not seen"
    elif config.thinning() > 1:
        obstacle = f"batches keep one of {config.thinning()} points, whose mean is another one"
    if obstacle is None:
        return conserved_means(training, asked, config.data.log)
    if asked not in ("auto", ()):
        raise ValueError(f"data.conserve names {', '.join(asked)}, but {obstacle}. Set data.conserve=[].")
    return Conserved((), obstacle)


def _check_instance(surrogate: Surrogate, config: Config) -> None:
    if surrogate.model.one_instance and config.data.instance is None:
        raise ValueError(
            f"The model {surrogate.name!r} is the solution of one instance, but data.instance is not given. "
            "Set data.instance=0, train.data_weight=0 and train.physics=1."
        )


def _examine(symmetries: Sequence[Symmetry], training: Data) -> list[str]:
    """What the data say of symmetries that the user vouches for; what speaks against one is a warning."""
    own = [each for each in symmetries if each.vouched and training.problem.name not in each.equations]
    findings = [examine(each, training) for each in own]
    for finding in findings:
        log.info(finding.words)
        if finding.doubtful and is_first_process():
            warnings.warn(finding.words, UserWarning, stacklevel=3)
    return [finding.words for finding in findings]


def _check_points(surrogate: Surrogate, data: Data) -> None:
    if is_scattered(data.grid) and not surrogate.model.scattered:
        raise ValueError(
            f"The data lie on scattered points, but the model {surrogate.name!r} needs a grid. "
            "Use vcnef with model.options.patches=[], or coral."
        )
    if not surrogate.model.uneven and arrangement(data.grid) == UNEVEN:
        raise ValueError(
            f"The data lie on an uneven grid, but the model {surrogate.name!r} takes points as equally far apart. "
            "Resample the data, or use vcnef, oformer or coral."
        )


def _provenance(data: Data, config: Config) -> dict[str, Any]:
    """Where a surrogate is at home, for its evaluation: times, share of validation and, if few, parameters."""
    instance = config.data.instance
    listable = data.problem.parameters and not data.problem.varying
    values = data.params.unique(dim=0).tolist() if listable else []
    listed = {"parameter_values": [list(map(short, row)) for row in values]} if values else {}
    return {
        "times": list(map(short, data.t.tolist())),
        "valid": config.data.valid,
        **({"semigroup": config.train.semigroup} if config.train.semigroup else {}),
        **(listed if len(values) <= FEW else {}),
        **(
            {} if instance is None else {"instance": describe_instance(instance, data.problem, data.u[:, 0], data.grid)}
        ),
    }


def _flat(config: Config) -> dict[str, Any]:
    sections = config.to_dict()
    options = sections["model"].pop("options")
    return {f"{section}.{key}": value for section, part in sections.items() for key, value in part.items()} | {
        f"model.options.{key}": value for key, value in options.items()
    }
