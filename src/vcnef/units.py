"""Units of fields, parameters and coordinates, and the one place where two sides that note them are compared."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isclose
from typing import Any, NamedTuple

import numpy as np

from vcnef.periodicity import SPACE

METRIC = ("m", "s", "g", "Pa", "K", "N", "J", "W", "Hz", "V", "A", "mol")
"""Units that take the prefixes of the SI."""
PREFIXES = {"n": 1e-9, "µ": 1e-6, "u": 1e-6, "m": 1e-3, "c": 1e-2, "d": 1e-1, "h": 1e2, "k": 1e3, "M": 1e6, "G": 1e9}
SPELLED = {"min": ("s", 60.0), "h": ("s", 3600.0), "d": ("s", 86400.0), "bar": ("Pa", 1e5), "L": ("m3", 1e-3)}
"""Other units, as multiples of those."""
WORDS = {
    "sec": "s", "secs": "s", "second": "s", "seconds": "s", "minute": "min", "minutes": "min", "mins": "min",
    "hr": "h", "hrs": "h", "hour": "h", "hours": "h", "day": "d", "days": "d", "metre": "m", "metres": "m",
    "meter": "m", "meters": "m", "kelvin": "K", "pascal": "Pa", "millisecond": "ms", "milliseconds": "ms",
    "kilometre": "km", "kilometres": "km", "kilometer": "km", "kilometers": "km",
}  # fmt: skip
UNIT_KEYS = ("units", "unit")
"""Attributes that hold them, in capitals or not."""
WITHOUT = ("", "1", "-", "none", "dimensionless")
"""How a number without a unit is noted."""
SUPERSCRIPTS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹μ·⋅.", "-0123456789µ***")
FACTOR = re.compile(r"(1|[^\W\d_]+)(?:\^|\*\*)?([+-]?\d+)?")

Size = tuple[float, dict[str, int]]
"""A number, and the powers of the units that it counts."""
SINCE = " since "
"""What follows is the origin of times, as in "hours since 2000-01-01"."""


class Conversion(NamedTuple):
    """How values in one unit come to be in another one: by a factor that is certain."""

    unit: str
    into: str
    factor: float

    def describe(self, what: str, whose: str) -> str:
        """Say what was multiplied, and why.

        >>> Conversion("km", "m", 1000.0).describe("h", "the model")
        "h is in 'km' and was multiplied by 1000: the model has it in 'm'."
        """
        return f"{what} is in {self.unit!r} and was multiplied by {self.factor:.12g}: {whose} has it in {self.into!r}."


def conversions(got: Mapping[str, str], expected: Mapping[str, str]) -> dict[str, Conversion]:
    """Return how to convert what both sides note in different units, but for units whose factor is not certain.

    Those that are left out are for `check_units` to refuse: units that are not known here, those of different kinds,
    and times that are counted from a date.

    >>> conversions({"h": "km", "T": "degC"}, {"h": "m", "T": "K"})
    {'h': Conversion(unit='km', into='m', factor=1000.0)}
    """
    found = {}
    for name, here, there in differing(got, expected):
        factor = factor_between(here, there)
        dated = SINCE in got[name] or SINCE in expected.get(name, "")
        if factor is not None and not dated:
            found[name] = Conversion(here, there, factor)
    return found


def factors_of(names: Iterable[str], found: Mapping[str, Conversion]) -> list[float]:
    """Return what the values of each name are multiplied by, 1 where nothing is converted."""
    factors = []
    for name in names:
        factors.append(found[name].factor if name in found else 1.0)
    return factors


def along_all_axes(noted: Mapping[str, str], axes: Sequence[str]) -> dict[str, str]:
    """Return units with that of x for those of the axes y and z that note none of their own."""
    first = noted.get(SPACE[0])
    if first is None:
        return dict(noted)
    return dict.fromkeys(axes, first) | dict(noted)


def check_units(got: Mapping[str, str], expected: Mapping[str, str], whose_got: str, whose_expected: str) -> None:
    """Refuse units that differ where both sides note them; a side that notes nothing is believed.

    >>> check_units({"h": "km"}, {"h": "m"}, "the data", "the model")
    Traceback (most recent call last):
    ValueError: h is in 'km' in the data and in 'm' in the model. Multiply it by 1000 and note its unit as 'm'.
    """
    for name, here, there in differing(got, expected):
        raise ValueError(
            f"{name} is in {here!r} in {whose_got} and in {there!r} in {whose_expected}. {advice(here, there)}"
        )


def noted_unit(attributes: Mapping[str, Any]) -> str | None:
    """Return the unit that the attributes of an array note; None where they note none.

    >>> noted_unit({"Unit": b"km"})
    'km'
    """
    noted = noted_units(attributes)
    return ", ".join(noted) if noted else None


def noted_units(attributes: Mapping[str, Any]) -> list[str]:
    """Return all units that the attributes of an array note: one, or one for each of its channels."""
    for key in attributes:
        if str(key).lower() not in UNIT_KEYS:
            continue
        found = attributes[key]
        each = np.ravel(found).tolist() if isinstance(found, np.ndarray | list | tuple) else [found]
        texts = [text.decode(errors="replace") if isinstance(text, bytes) else str(text) for text in each]
        return [] if texts == [""] else texts
    return []


def units_of_channels(attributes: Mapping[str, Any], channels: Sequence[str]) -> dict[str, str]:
    """Return the units that the attributes of one array note of its channels: one for all, or one for each.

    >>> units_of_channels({"units": ["m", "m/s"]}, ("h", "v"))
    {'h': 'm', 'v': 'm/s'}
    """
    noted = noted_units(attributes)
    if len(noted) == 1:
        noted = noted * len(channels)
    if noted and len(noted) != len(channels):
        raise ValueError(
            f"the units are {', '.join(noted)}, for the {len(channels)} channels {', '.join(channels)}; expected one "
            "for each, or one for all."
        )
    return {name: unit for name, unit in zip(channels, noted, strict=False) if unit}


def differing(got: Mapping[str, str], expected: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Name, unit here and unit there of whatever both sides note, and note differently."""
    for name, here in got.items():
        # Lengths are alike along all axes, and often noted of the first one alone.
        there = expected.get(name, expected.get(SPACE[0]) if name in SPACE else None)
        if there is not None and not are_equal(here, there):
            yield name, _without_origin(here), _without_origin(there)


def are_equal(here: str, there: str) -> bool:
    """Whether two units are one, whichever way they are spelled: "m/s" is "m s-1".

    >>> are_equal("m/s", "m s-1"), are_equal("hours since 2000-01-01", "h"), are_equal("km/h", "m/s")
    (True, True, False)
    """
    here, there = _without_origin(here), _without_origin(there)
    if here == there:
        return True
    factor = factor_between(here, there)
    return factor is not None and isclose(factor, 1.0, rel_tol=1e-9)


def factor_between(here: str, there: str) -> float | None:
    """How many of the second unit the first one is; None where that is not certain.

    >>> factor_between("km/h", "m/s")
    0.2777777777777778
    """
    one, other = _size(here), _size(there)
    if one is None or other is None or one[1] != other[1]:
        return None
    return one[0] / other[0]


def advice(here: str, there: str) -> str:
    """How to bring values from one unit to another."""
    factor = factor_between(here, there)
    how = "Convert its values" if factor is None else f"Multiply it by {factor:.12g}"
    return f"{how} and note its unit as {there!r}."


def _without_origin(unit: str) -> str:
    """Hours are hours, whichever day they are counted from."""
    return unit.partition(SINCE)[0].strip()


def _size(unit: str) -> Size | None:
    """What a unit is in those of the SI; None for one that is not known here, as degrees Celsius."""
    text = _without_origin(unit).translate(SUPERSCRIPTS).strip()
    if text.lower() in WITHOUT:
        return 1.0, {}
    number, powers = 1.0, {}
    for place, part in enumerate(text.split("/")):
        sign = 1 if place == 0 else -1
        # Powers are written with two stars, products with one.
        for word in re.split(r"(?<!\*)\*(?!\*)|\s+", part.strip()):
            found = FACTOR.fullmatch(word)
            base = _base(found[1]) if found else None
            if found is None or base is None:
                return None
            power = sign * int(found[2] or 1)
            if abs(power) > 9:
                return None
            number *= base[0] ** power
            for name, count in base[1].items():
                powers[name] = powers.get(name, 0) + count * power
    return number, {name: count for name, count in powers.items() if count}


def _base(word: str) -> Size | None:
    """One unit without a power."""
    word = WORDS.get(word, word)
    if word == "1":
        return 1.0, {}
    if word in METRIC:
        return 1.0, {word: 1}
    if word in SPELLED:
        name, factor = SPELLED[word]
        return factor, {name[0]: 3} if name == "m3" else {name: 1}
    if word[:1] in PREFIXES and word[1:] in METRIC:
        return PREFIXES[word[0]], {word[1:]: 1}
    return None
