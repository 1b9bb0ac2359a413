"""What a data set, a model or a solver is about: its fields, parameters and domain, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from math import isfinite
from typing import Any

from vcnef.periodicity import SPACE, Periodic, per_axis, settle

DIGITS = 1e-5
"""Relative difference below which two values of a parameter are the same; files hold single precision."""

COORDINATES = ("sample", "t", *SPACE, "point", "channel")
"""Dimensions of labelled data and answers; a channel or parameter of such a name would take the place of one."""


@dataclass(frozen=True)
class Problem:
    """A time-dependent parametric PDE problem on a box, u(t, x; p) with c channels.

    >>> burgers = Problem("burgers", channels=("u",), parameters=("nu",), domain=((0.0, 1.0),))
    >>> burgers.ndim
    1
    """

    name: str
    channels: tuple[str, ...]
    parameters: tuple[str, ...] = ()
    domain: tuple[tuple[float, float], ...] = ((0.0, 1.0),)
    periodic: Periodic = True
    """Whether the domain closes on itself: True or False, or one of them for each axis where they differ."""
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Smallest and largest value of each parameter that the data hold; what a surrogate was trained on."""
    units: Mapping[str, str] = field(default_factory=dict)
    """Unit of a channel, a parameter, or of "t" and "x", where known."""
    varying: tuple[str, ...] = ()
    """Parameters whose values change with time within a trajectory."""

    def __post_init__(self) -> None:
        _check_words(self)
        if not self.channels:
            raise ValueError(f"Problem {self.name!r} has no channels. Name at least one field, e.g. channels=('u',).")
        names = self.channels + self.parameters
        if len(set(names)) < len(names):
            raise ValueError(f"Problem {self.name!r} names a channel or parameter twice: {names}. Names must differ.")
        if taken := [name for name in names if name in COORDINATES]:
            kind = "channel" if taken[0] in self.channels else "parameter"
            raise ValueError(
                f"Problem {self.name!r} has the {kind} {taken[0]!r}, which is the name of a coordinate. Rename it; "
                f"{', '.join(COORDINATES)} are taken."
            )
        if not 1 <= len(self.domain) <= 3:
            raise ValueError(f"Problem {self.name!r} has {len(self.domain)} axes; expected 1 to 3 (low, high) pairs.")
        for low, high in self.domain:
            if not (isfinite(low) and isfinite(high) and low < high):
                raise ValueError(f"Problem {self.name!r} has the axis ({low}, {high}); expected finite low < high.")
        object.__setattr__(self, "periodic", settle(self.periodic, self.ndim))
        unknown = set(self.ranges) - set(self.parameters)
        if unknown:
            raise ValueError(f"Problem {self.name!r} has ranges for {sorted(unknown)}, not among {self.parameters}.")
        if unknown := set(self.varying) - set(self.parameters):
            raise ValueError(f"Problem {self.name!r} has varying {sorted(unknown)}, not among {self.parameters}.")

    @property
    def varying_columns(self) -> tuple[int, ...]:
        """Their numbers among all parameters."""
        return tuple(self.parameters.index(name) for name in self.varying)

    @property
    def ndim(self) -> int:
        """Number of spatial dimensions D."""
        return len(self.domain)

    @property
    def closes(self) -> tuple[bool, ...]:
        """For each axis whether the domain closes on itself along it."""
        return per_axis(self.periodic, self.ndim)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description; `from_dict` is its inverse."""
        described = {
            "name": self.name,
            "channels": list(self.channels),
            "parameters": list(self.parameters),
            "domain": [list(axis) for axis in self.domain],
            "periodic": self.periodic if isinstance(self.periodic, bool) else list(self.periodic),
            "ranges": {name: list(pair) for name, pair in self.ranges.items()},
            "units": dict(self.units),
        }
        return described | ({"varying": list(self.varying)} if self.varying else {})

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Problem:
        known = {f.name for f in fields(cls)}
        if unknown := set(description) - known:
            raise ValueError(f"A problem has no field {sorted(unknown)}; expected some of {sorted(known)}.")
        values = dict(description)
        for name in ("channels", "parameters", "varying"):
            values[name] = _names(values[name] if name == "channels" else values.get(name, ()), name)
        values["domain"] = tuple(_ends(axis, "domain") for axis in values["domain"])
        values["periodic"] = settle(values.get("periodic", True), len(values["domain"]))
        values["ranges"] = {name: _ends(pair, f"range of {name}") for name, pair in values.get("ranges", {}).items()}
        return cls(**values)


def _check_words(problem: Problem) -> None:
    """Refuse names and units that are no texts, as a damaged or foreign note has them."""
    if not isinstance(problem.name, str):
        raise ValueError(f"The name of a problem is {problem.name!r:.40}; expected a text. Write its name in quotes.")
    if not isinstance(problem.units, Mapping):
        raise ValueError(
            f"The units of problem {problem.name!r} are {problem.units!r:.40}; expected a text by the name of each "
            "field, as {'u': 'm/s'}."
        )
    for what, texts in (("channel", problem.channels), ("parameter", problem.parameters)):
        for text in texts:
            if not isinstance(text, str) or not text:
                raise ValueError(f"Problem {problem.name!r} has the {what} {text!r:.40}; expected a name, as 'u'.")
    for name, unit in problem.units.items():
        if not isinstance(unit, str):
            raise ValueError(
                f"The unit of {name} in problem {problem.name!r} is {unit!r:.40}; expected a text, as 'm/s'. "
                "Leave it out where it is not known."
            )


def _names(given: Any, what: str) -> tuple[str, ...]:
    """The names in a list; the letters of one text are none."""
    if not isinstance(given, list | tuple):
        raise ValueError(f"The {what} of a problem are {given!r:.40}; expected a list of names, as ['u'].")
    return tuple(given)


def _ends(given: Any, what: str) -> tuple[float, float]:
    """The two ends of an interval."""
    try:
        low, high = map(float, given)
    except (TypeError, ValueError):
        raise ValueError(f"The {what} of a problem has {given!r:.40}; expected two numbers, as [0, 1].") from None
    return low, high


def within(values: Any, low: int | float, high: int | float) -> Any:
    """Which values of a parameter lie in a range, as a mask.

    Of each end its own digits: ranges such as 1e-8 to 0.1 span decades.
    """
    return (values >= low - DIGITS * abs(low)) & (values <= high + DIGITS * abs(high))
