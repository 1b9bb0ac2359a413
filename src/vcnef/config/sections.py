"""Two of the three sections of a configuration, model and data; the third is the recipe of training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from math import inf
from typing import Any, Literal, cast, get_type_hints

from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from vcnef.config.checking import check_keys, typed
from vcnef.data import Affine, Galilean, Permute, Queries, Reflect, Shift, View
from vcnef.data.augment import Symmetry
from vcnef.data.splits import VALID_SHARE
from vcnef.models.registry import MODELS, option_names
from vcnef.suggest import suggestion
from vcnef.training.recipe import Recipe

SYMMETRIES = {kind.__name__.lower(): kind for kind in (Shift, Reflect, Permute, Galilean, Affine)}


ABOUT_WHOLE: dict[str, Any] = {
    "times": None,
    "at_start": False,
    "random_starts": 0.0,
    "passes": 0,
    "own_time": False,
    "instance": None,
}
"""What of `data` is about whole trajectories, not windows, and its default."""


class ConfigSection(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelSection(ConfigSection):
    """Which model, and the options of its builder; sizes left out are the paper's for the dimension of the data."""

    name: str = "vcnef"
    options: dict[str, Any] = {}

    @field_validator("name")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in MODELS:
            raise ValueError(f"There is no model {name!r}. {suggestion(name, MODELS)}")
        return name

    @field_validator("options")
    @classmethod
    def _of_the_builder(cls, options: dict[str, Any], info: Any) -> dict[str, Any]:
        name = info.data.get("name")
        if name is None:  # the name is wrong, which is said first
            return options
        check_keys(f"Model {name!r}", options, option_names(name), "option")
        hints = get_type_hints(MODELS[name])
        return {key: typed(f"model.options.{key}", hints[key], value) for key, value in options.items()}


class DataSection(ConfigSection):
    """Which frames and points of the data are seen, in which units, and how samples are drawn from them."""

    ndim: int | None = None
    """Space axes that the data must have; sizes and rates of a preset suit no others."""
    space_stride: int = 1
    """Keep one of so many points along each axis."""
    time_stride: int = 1
    """Keep one of so many frames, the first one among them."""
    horizon: float | None = None
    """Last physical time, counted from the first frame."""
    valid: float = VALID_SHARE
    """Share of each file that chooses the weights that are kept."""
    normalise: bool = True
    """Fields, parameters and points in scales that a network likes; times are always."""
    log: tuple[str, ...] = ()
    """Positive channels to be normalised in their logarithm."""
    conserve: Literal["auto"] | tuple[str, ...] = ()
    """Channels whose mean over the domain every answer keeps, as that of a mass: names, or "auto" for those that do
    in the data. For vcnef, on grids of equal steps."""
    own_time: bool = False
    """A unit of time of its own for every sample, by the strength of its initial state (Burgers), its speed of sound
    (gas) or β (advection). The equations are the same in any unit, so that is exact; no model that steps has it."""
    times: int | None = None
    """Query times per step; all by default."""
    at_start: bool = False
    """Ask at time 0 too, where the answer is the initial state: what happens before the first frame is learnt so."""
    random_starts: float = 0.0
    """Share of the samples that start from a random frame."""
    window: Literal["auto", "direct"] | float = "direct"
    """Time that the model answers directly, in units of the data; what is later is composed of such windows, and every
    frame is the start of one in training. "direct" is the whole horizon at once, and "auto" chooses."""
    pushes: int = 1
    """Through how many windows at most a state may have come from the model itself before it is trained on."""
    explicit_time: bool = False
    """The equation itself depends on the time, as with a forcing that is switched on: a window is told when it begins.
    A direct answer always begins with the first frame, and needs it not."""
    chain: int = 1
    """So many windows in a row are learnt from in the last two fifths of a run, and gradients pass through them; with
    unroll: push_forward, so many steps."""
    passes: int = 0
    """Passes per epoch from random frames, beside the one from the initial states: the paper's algorithm 1."""
    symmetries: tuple[Any, ...] | dict[str, Any] = ()
    """Names, or {name: {option: value}}, in a list: [shift, {galilean: {speed: 1}}]; see `vcnef.data.augment`. For an
    equation that is not known, those that you vouch for: {shift: true, reflect: {odd: [u]}}."""
    random_phases: bool = False
    """Shifts, where there are any, are by the cells of the files, and `space_stride` comes after them: every point of
    the files is seen, at the resolution of the stride."""
    instance: int | None = None
    """Train on the equation for this one trajectory of the files, counted from 0; only with train.data_weight: 0. Its
    truth is not seen, except by validation, which `valid: 0` leaves out."""

    def queries(self) -> Queries:
        return Queries(self.times, self.random_starts, self.passes, self.at_start, chain=self.chain)

    @field_validator("symmetries", mode="before")
    @classmethod
    def _listed(cls, given: Any) -> Any:
        if not isinstance(given, list | tuple | Mapping):
            raise ValueError(f"data.symmetries is {given!r}; expected a list, or what you vouch for: {{shift: true}}.")
        return given

    def read_symmetries(self) -> tuple[Symmetry, ...]:
        given = self.symmetries
        if not isinstance(given, Mapping):
            return tuple(map(read_symmetry, given))
        for name, value in given.items():
            if value is not True and not isinstance(value, Mapping):
                raise ValueError(f"data.symmetries has {value!r} for {name!r}; expected true, or options by name.")
        symmetries: list[Symmetry] = []
        for name, value in given.items():
            entry = name
            if value is not True:
                entry = {name: value}
            symmetries.append(replace(cast(Any, read_symmetry(entry)), vouched=True))
        return tuple(symmetries)

    @model_validator(mode="after")
    def _consistent(self) -> DataSection:
        View(self.space_stride, self.time_stride, self.horizon)
        self.queries()
        self.read_symmetries()
        if not isinstance(self.window, str) and not 0 < self.window < inf:
            raise ValueError(f"window is {self.window:g}; expected a time above 0, 'auto' or 'direct'.")
        if self.pushes < 0:
            raise ValueError(f"pushes is {self.pushes}; expected 0 or more windows.")
        given = [name for name, default in ABOUT_WHOLE.items() if getattr(self, name) != default]
        if self.window != "direct" and given:
            raise ValueError(
                f"window is {self.window}, but {', '.join(given)} is about whole trajectories. Leave it out, or set "
                "window to direct."
            )
        if self.explicit_time and self.window == "direct":
            raise ValueError(
                "explicit_time is true, but window is direct: such an answer begins with the first frame, and knows "
                "all times from that. Set window, or leave explicit_time out."
            )
        if self.log and not self.normalise:
            raise ValueError(
                f"log names {', '.join(self.log)}, but normalise is false. Set normalise, or leave out log."
            )
        if self.own_time and not self.normalise:
            raise ValueError("own_time is true, but normalise is false. Set normalise, or leave out own_time.")
        if self.instance is not None and self.instance < 0:
            raise ValueError(f"instance is {self.instance}; expected the number of a trajectory, 0 or more.")
        if self.instance is not None and (self.symmetries or self.random_starts or self.passes):
            raise ValueError(
                f"instance is {self.instance}, which has one initial state; symmetries, random_starts and passes make "
                "others. Leave them out."
            )
        return self


SECTIONS: dict[str, tuple[str, ...]] = {
    "model": tuple(ModelSection.model_fields),
    "data": tuple(DataSection.model_fields),
    "train": tuple(field.name for field in fields(Recipe)),
}


def read_symmetry(entry: Any) -> Symmetry:
    """Return the symmetry of a name, or of {name: {option: value}}."""
    name, options = entry, None
    if isinstance(entry, Mapping) and len(entry) == 1:
        name, options = next(iter(entry.items()))
    if not isinstance(name, str) or name not in SYMMETRIES:
        raise ValueError(f"data.symmetries has {entry!r}. {suggestion(str(name), SYMMETRIES)}")
    kind, options = SYMMETRIES[name], options or {}
    keys = [field.name for field in fields(kind) if field.name != "vouched"]
    check_keys(f"The symmetry {name}", options, keys, "option")
    missing = [key for key in keys if key not in options and not hasattr(kind, key)]
    if missing:
        raise ValueError(f"The symmetry {name} lacks {missing[0]}; write [{{{name}: {{{missing[0]}: value}}}}].")
    hints = get_type_hints(kind)
    values = {key: typed(f"{name}.{key}", hints[key], value) for key, value in options.items()}
    return cast(Symmetry, kind(**values))
