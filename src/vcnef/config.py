"""What a run is made of: model, data and training in one typed record, with YAML in and out and dotted overrides."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from difflib import get_close_matches
from math import prod
from pathlib import Path
from textwrap import shorten
from typing import Any, get_type_hints

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, field_validator, model_validator

from vcnef.data import Affine, Galilean, Permute, Queries, Reflect, Shift, View
from vcnef.data.augment import Symmetry
from vcnef.data.splits import VALID_SHARE
from vcnef.models.registry import MODELS, option_names
from vcnef.presets import find_preset
from vcnef.suggest import suggestion
from vcnef.training.recipe import Recipe
from vcnef.whole import replacing

SYMMETRIES = {kind.__name__.lower(): kind for kind in (Shift, Reflect, Permute, Galilean, Affine)}
EXPECTED = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "a text",
    "tuple": "a list in square brackets",
    "dict": "keys with values",
}
"""What the first word of a validation error's type stands for."""
LONGEST_VALUE = 120
"""Letters of a value that an error shows: an array or a network would fill the screen."""
OF_ITS_MODEL = ("times", "at_start", "random_starts", "own_time")
"""What of `data` is meant for the model of a preset: others pass all times on the way, or have none of their own."""


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelSection(Section):
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
        _check_keys(f"Model {name!r}", options, option_names(name), "option")
        hints = get_type_hints(MODELS[name])
        return {key: _typed(f"model.options.{key}", hints[key], value) for key, value in options.items()}


class DataSection(Section):
    """Which frames and points of the data are seen, in which units, and how samples are drawn from them."""

    ndim: int | None = None
    """Space axes that the data must have; sizes and rates of a preset suit no others."""
    space_stride: int = 1
    time_stride: int = 1
    horizon: float | None = None
    """Last physical time, counted from the first frame."""
    valid: float = VALID_SHARE
    """Share of each file that chooses the weights that are kept."""
    normalise: bool = True
    """Fields, parameters and points in scales that a network likes; times are always."""
    log: tuple[str, ...] = ()
    """Positive channels to be normalised in their logarithm."""
    own_time: bool = False
    """A unit of time of its own for every sample, by the strength of its initial state (Burgers), its speed of sound
    (gas) or β (advection). The equations are the same in any unit, so that is exact; no model that steps has it."""
    times: int | None = None
    """Query times per step; all by default."""
    at_start: bool = False
    """Ask at time 0 too, where the answer is the initial state: what happens before the first frame is learnt so."""
    random_starts: float = 0.0
    """Share of the samples that start from a random frame."""
    passes: int = 0
    """Passes per epoch from random frames, beside the one from the initial states: the paper's algorithm 1."""
    symmetries: tuple[Any, ...] = ()
    """Names, or {name: {option: value}}, in a list: [shift, {galilean: {speed: 1}}]; see `vcnef.data.augment`."""
    random_phases: bool = False
    """Shifts, where there are any, are by the cells of the files, and `space_stride` comes after them: every point of
    the files is seen, at the resolution of the stride."""
    instance: int | None = None
    """Train on the equation for this one trajectory of the files, counted from 0; only with train.data_weight: 0. Its
    truth is not seen, except by validation, which `valid: 0` leaves out."""

    def queries(self) -> Queries:
        return Queries(self.times, self.random_starts, self.passes, self.at_start)

    @model_validator(mode="after")
    def _consistent(self) -> DataSection:
        View(self.space_stride, self.time_stride, self.horizon)
        self.queries()
        for each in self.symmetries:
            _symmetry(each)
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


class Config(Section):
    """A run. Presets and a run's `config.yaml` are such records; `load`, `override` and `save` handle them."""

    model: ModelSection = ModelSection()
    data: DataSection = DataSection()
    train: Recipe = Recipe()

    @model_validator(mode="after")
    def _truth_unseen(self) -> Config:
        if self.data.instance is not None and self.train.data_weight:
            raise ValueError(
                f"data.instance is {self.data.instance}, which is trained on its equation alone, but train.data_weight "
                f"is {self.train.data_weight:g}. Set train.data_weight=0 and train.physics=1."
            )
        return self

    @classmethod
    def load(cls, source: str | Path) -> Config:
        """A preset by its name, e.g. "burgers/vcnef", or a YAML file by its path."""
        path = Path(source)
        if path.suffix not in (".yaml", ".yml"):
            path = find_preset(str(source))
        elif not path.is_file():
            raise FileNotFoundError(f"There is no file {path}. Give the path of a YAML file or a preset's name.")
        try:
            values = yaml.load(path.read_text(encoding="utf-8"), Loader=_EachKeyOnce)
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            reason = " ".join(str(error).split())
            raise ValueError(f"{path} is not valid YAML ({reason}). Repair it, or start from a preset.") from None
        return cls.parse({} if values is None else values)

    @classmethod
    def parse(cls, values: Any) -> Config:
        """A record from nested dictionaries. What is wrong with them is said in one sentence."""
        _check_keys("A configuration", values, SECTIONS)
        values = {section: part for section, part in values.items() if part is not None}
        for section, part in values.items():
            _check_keys(section, part, SECTIONS[section])
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise ValueError(_sentence(error)) from None

    def override(self, settings: Mapping[str, Any] | Iterable[str], beside: Collection[str] = ()) -> Config:
        """Other values in some places: `{"train.epochs": 50}`, `{"train": {"epochs": 50}}` or `["train.epochs=50"]`.

        The section may be left out where only one has the key: `epochs=50`, `width=64`. Another `model.name` comes
        first, as in `with_model`. `beside` are other names that the caller takes: one of them may have been meant.
        """
        given = settings if isinstance(settings, Mapping) else dict(map(_parse_setting, settings))
        changes = dict(_flatten(given))
        model = next((changes.pop(key) for key in ("model.name", "name") if key in changes), self.model.name)
        values = self.with_model(model).to_dict()
        for name, value in changes.items():
            *path, key = _place(name, model, beside).split(".")
            section = values
            for step in path:
                section = section[step]
            section[key] = value
        return self.parse(values)

    def with_model(self, name: str) -> Config:
        """The same recipe for another model, without the options of this one and what of `data` was meant for it."""
        if name == self.model.name:
            return self
        values = self.to_dict()
        kept = {key: value for key, value in values["data"].items() if key not in OF_ITS_MODEL}
        return self.parse(values | {"model": {"name": name}, "data": kept})

    def view(self) -> dict[str, Any]:
        """Which frames and points are seen, as `vcnef.open` and `Trajectories.view` take it."""
        asked = {name: getattr(self.data, name) for name in ("space_stride", "time_stride", "horizon")}
        return asked | ({"space_stride": 1} if self._shifts_finely() else {})

    def to_dict(self) -> dict[str, Any]:
        """The same as nested dictionaries that YAML and JSON can hold; `parse` is the inverse."""
        return self.model_dump(mode="json")

    def save(self, path: str | Path) -> Path:
        """Write as YAML, whole or not at all."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as draft:
            draft.write_text(yaml.safe_dump(self.to_dict(), sort_keys=False, allow_unicode=True), encoding="utf-8")
        return path

    def queries(self) -> Queries:
        return self.data.queries()

    def symmetries(self) -> tuple[Symmetry, ...]:
        found = tuple(_symmetry(each) for each in self.data.symmetries)
        if not self._shifts_finely():
            return found
        first = next(place for place, each in enumerate(found) if isinstance(each, Shift))
        finely = replace(found[first], stride=found[first].stride * self.data.space_stride)
        # It thins the grid, so it comes before all that work on a thinned one.
        return (finely, *found[:first], *found[first + 1 :])

    def thinning(self) -> int:
        """How many points of the data that are read make one of a batch, along each axis."""
        return prod(getattr(each, "stride", 1) for each in self.symmetries())

    def _shifts_finely(self) -> bool:
        return self.data.random_phases and any(isinstance(_symmetry(each), Shift) for each in self.data.symmetries)


SECTIONS: dict[str, tuple[str, ...]] = {
    "model": tuple(ModelSection.model_fields),
    "data": tuple(DataSection.model_fields),
    "train": tuple(field.name for field in fields(Recipe)),
}
GROUPS = (*SECTIONS, "model.options")
"""Places that hold values by name; each of these is set for itself."""


class _EachKeyOnce(yaml.SafeLoader):
    """Plain YAML, in which a second section of the same name would replace the first one unseen."""

    def compose_mapping_node(self, anchor: str | None) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        keys = [key.value for key, _ in node.value]
        for place, (key, _) in enumerate(node.value):
            if key.value in keys[:place]:
                raise yaml.MarkedYAMLError(problem=f"{key.value} stands there twice", problem_mark=key.start_mark)
        return node


def _symmetry(entry: Any) -> Symmetry:
    name, options = next(iter(entry.items())) if isinstance(entry, Mapping) and len(entry) == 1 else (entry, None)
    if not isinstance(name, str) or name not in SYMMETRIES:
        raise ValueError(f"data.symmetries has {entry!r}. {suggestion(str(name), SYMMETRIES)}")
    kind, options = SYMMETRIES[name], options or {}
    keys = [field.name for field in fields(kind) if field.name != "equations"]
    _check_keys(f"The symmetry {name}", options, keys, "option")
    if missing := [key for key in keys if key not in options and not hasattr(kind, key)]:
        raise ValueError(f"The symmetry {name} lacks {missing[0]}; write [{{{name}: {{{missing[0]}: value}}}}].")
    hints = get_type_hints(kind)
    return kind(**{key: _typed(f"{name}.{key}", hints[key], value) for key, value in options.items()})


def _check_keys(what: str, values: Any, known: Iterable[str], kind: str = "key") -> None:
    if not isinstance(values, Mapping):
        raise ValueError(f"{what} is {values!r}; expected {kind}s with values ({', '.join(known)}).")
    for key in values:
        if key not in known:
            raise ValueError(f"{what} has no {kind} {key!r}. {suggestion(str(key), known)}")


def _typed(place: str, kind: Any, value: Any) -> Any:
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        raise ValueError(_sentence(error, place)) from None


def _sentence(error: ValidationError, place: str = "") -> str:
    """The first of the errors: where, what is there, and what was expected."""
    first = error.errors()[0]
    context = first.get("ctx", {})
    if "error" in context:  # a sentence of our own
        return str(context["error"])
    where = ".".join(map(str, [place] * bool(place) + list(first["loc"])))
    expected = EXPECTED.get(first["type"].split("_")[0]) or context.get("expected") or first["msg"]
    return f"{where} is {shorten(repr(first['input']), LONGEST_VALUE)}; expected {expected}."


def _parse_setting(setting: str) -> tuple[str, Any]:
    name, equals, text = setting.partition("=")
    if not (name and equals and text):
        raise ValueError(f"{setting!r} is not understood; write name=value, e.g. train.epochs=50.")
    is_list = "," in text and text[0] not in "[{\"'"
    try:
        value = yaml.safe_load(f"[{text}]" if is_list else text)
    except yaml.YAMLError:
        raise ValueError(f"{setting!r} has no readable value; quote texts, write lists as 4,16.") from None
    if value == {} and name in GROUPS:
        raise ValueError(f"{setting!r} changes nothing; write the values that are to change, e.g. train.epochs=50.")
    return name, value


def _flatten(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, Mapping) and prefix + name in GROUPS:
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _place(name: str, model: str, beside: Collection[str]) -> str:
    """Where a setting belongs: its own dotted name, or the one place with this key."""
    if "." in name or name in SECTIONS:
        section, *keys = name.split(".")
        if section not in SECTIONS or not keys or (len(keys) > 1 and (section, keys[0]) != ("model", "options")):
            raise ValueError(
                f"There is no place {name!r}; write section.key, with the section one of model, data, train."
            )
        return name
    options = option_names(model) if model in MODELS else []
    places = [f"model.options.{option}" for option in options]
    places += [f"{section}.{key}" for section, keys in SECTIONS.items() for key in keys]
    found = [place for place in places if place.rpartition(".")[2] == name]
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError(f"{name!r} is in several places; write {' or '.join(found)}.")
    named = [*places, *beside]
    close = get_close_matches(name, [each.rpartition(".")[2] for each in named], n=2)
    near = [each for each in named if each.rpartition(".")[2] in close]
    hint = f"did you mean {' or '.join(near)}?" if near else f"write one of {', '.join(places)}."
    raise ValueError(f"There is no setting {name!r}; {hint}")
