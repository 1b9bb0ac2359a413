"""What a run is made of: model, data and training in one typed record, with YAML in and out and dotted overrides."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError, model_validator

from vcnef.config.checking import check_keys, sentence
from vcnef.config.plain_yaml import read_yaml
from vcnef.config.sections import SECTIONS, ConfigSection, DataSection, ModelSection
from vcnef.config.settings import flatten, parse_setting, place_of
from vcnef.data import Queries, Shift
from vcnef.data.augment import Symmetry
from vcnef.data.windows import Window
from vcnef.presets import find_config
from vcnef.training.recipe import Recipe
from vcnef.whole import write_whole

__all__ = ["Config", "DataSection", "ModelSection"]

OF_ITS_MODEL = ("times", "at_start", "random_starts", "own_time", "window", "pushes", "chain", "conserve")
"""What of `data` is meant for the model of a preset: others pass all times on the way, or have none of their own."""
OF_WINDOWS = ("input_noise", "semigroup")
"""What of `train` is about windows, where a preset has them."""


class Config(ConfigSection):
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
        """Return a preset by its name, e.g. "burgers/vcnef", or a YAML file by its path."""
        path = find_config(source)
        try:
            values = read_yaml(path.read_text(encoding="utf-8"))
        except ValueError as error:  # one of its encoding, too
            raise ValueError(f"{path} is not valid YAML ({error}). Repair it, or start from a preset.") from None
        return cls.parse({} if values is None else values)

    @classmethod
    def parse(cls, values: Any) -> Config:
        """Return a record from nested dictionaries. What is wrong with them is said in one sentence."""
        check_keys("A configuration", values, SECTIONS)
        values = {section: part for section, part in values.items() if part is not None}
        for section, part in values.items():
            check_keys(section, part, SECTIONS[section])
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise ValueError(sentence(error)) from None

    def override(self, settings: Mapping[str, Any] | Iterable[str], beside: Collection[str] = ()) -> Config:
        """Change values in some places: `{"train.epochs": 50}`, `{"train": {"epochs": 50}}` or `["train.epochs=50"]`.

        The section may be left out where only one has the key: `epochs=50`, `width=64`. Another `model.name` comes
        first, as in `with_model`. `beside` are other names that the caller takes: one of them may have been meant.
        """
        given = settings if isinstance(settings, Mapping) else dict(map(parse_setting, settings))
        changes = dict(flatten(given))
        model = next((changes.pop(key) for key in ("model.name", "name") if key in changes), self.model.name)
        values = self.with_model(model).to_dict()
        for name, value in changes.items():
            *path, key = place_of(name, model, beside).split(".")
            section = values
            for step in path:
                section = section[step]
            section[key] = value
        return self.parse(values)

    def with_model(self, name: str) -> Config:
        """Return the same recipe for another model, without options and keys of `data` that were meant for this one."""
        if name == self.model.name:
            return self
        values = self.to_dict()
        kept = {key: value for key, value in values["data"].items() if key not in OF_ITS_MODEL}
        recipe = values["train"]
        if self.data.window != "direct":
            recipe = {key: value for key, value in recipe.items() if key not in OF_WINDOWS}
        return self.parse(values | {"model": {"name": name}, "data": kept, "train": recipe})

    def view(self) -> dict[str, Any]:
        """Return which frames and points are seen, as `vcnef.open` and `Trajectories.view` take it."""
        asked = {name: getattr(self.data, name) for name in ("space_stride", "time_stride", "horizon")}
        return asked | ({"space_stride": 1} if self._shifts_finely() else {})

    def to_dict(self) -> dict[str, Any]:
        """Return the same as nested dictionaries that YAML and JSON can hold; `parse` is the inverse."""
        return self.model_dump(mode="json")

    def save(self, path: str | Path) -> Path:
        """Write as YAML, whole or not at all."""
        text = yaml.safe_dump(self.to_dict(), sort_keys=False, allow_unicode=True)
        write_whole(Path(path), text.encode())
        return Path(path)

    def queries(self, window: Window | None = None) -> Queries:
        """Return the frames of a step; those of windows, where the data have made some."""
        if window is None:
            return self.data.queries()
        history = self.model.options.get("history", 1)
        return Queries(window=window.frames, pushes=self.data.pushes, chain=self.data.chain, history=history)

    def symmetries(self) -> tuple[Symmetry, ...]:
        """Return the symmetries of training, a shift by the cells of the files before all others."""
        found = self.data.read_symmetries()
        if not self._shifts_finely():
            return found
        others = list(found)
        for each in found:
            if isinstance(each, Shift):
                others.remove(each)
                # It thins the grid, so it comes before all that work on a thinned one.
                return (replace(each, stride=each.stride * self.data.space_stride), *others)
        return found

    def thinning(self) -> int:
        """Return how many points of the data that are read make one of a batch, along each axis."""
        return prod(getattr(each, "stride", 1) for each in self.symmetries())

    def _shifts_finely(self) -> bool:
        return self.data.random_phases and any(isinstance(each, Shift) for each in self.data.read_symmetries())
