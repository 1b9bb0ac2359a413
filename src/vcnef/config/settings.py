"""Settings by dotted names: `train.epochs=50`, or `epochs=50` where only one section has the key."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from vcnef.config.plain_yaml import read_yaml
from vcnef.config.sections import SECTIONS
from vcnef.models.registry import MODELS, option_names

GROUPS = (*SECTIONS, "model.options")
"""Places that hold values by name; each of these is set for itself."""


def parse_setting(setting: str) -> tuple[str, Any]:
    """`name=value`, with the value as YAML reads it, or a list `4,16`."""
    name, equals, text = setting.partition("=")
    if not (name and equals and text):
        raise ValueError(f"{setting!r} is not understood; write name=value, e.g. train.epochs=50.")
    is_list = "," in text and text[0] not in "[{\"'"
    try:
        value = read_yaml(f"[{text}]" if is_list else text)
    except ValueError:
        raise ValueError(f"{setting!r} has no readable value; quote texts, write lists as 4,16.") from None
    if value == {} and name in GROUPS:
        raise ValueError(f"{setting!r} changes nothing; write the values that are to change, e.g. train.epochs=50.")
    return name, value


def flatten(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield values by their dotted names, out of sections inside sections."""
    for name, value in settings.items():
        if isinstance(value, Mapping) and prefix + name in GROUPS:
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def place_of(name: str, model: str, beside: Collection[str]) -> str:
    """Return where a setting belongs: its own dotted name, or the one place with this key."""
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
