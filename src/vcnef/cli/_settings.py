"""Values on the command line: `--set name=value`, `--times`, `--space`, `--walls`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from vcnef.periodicity import SPACE
from vcnef.suggest import suggestion

MOST_TIMES = 10**6
"""That are asked for at once."""


def parse_settings(settings: Iterable[str], option: str = "--set") -> dict[str, Any]:
    """Return values by name: `nu=0.001` a number, `nu=0.001,0.01` a list, `nu=0.001:1` a (low, high) range."""
    parsed: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not (name and equals and text):
            raise ValueError(
                f"{option} {setting} is not understood; write {option} name=value, e.g. {option} nu=0.001."
            )
        if name in parsed:
            raise ValueError(f"{option} names {name} twice; several values are written {option} {name}=0.001,0.01.")
        parsed[name] = _value(text)
    return parsed


def share_out(settings: Mapping[str, Any], *known: Mapping[str, Any], what: str) -> list[dict[str, Any]]:
    """Return the settings that belong to each of several groups of known names."""
    names = [name for group in known for name in group]
    for name in settings:
        if name not in names:
            raise ValueError(f"{what} has nothing called {name!r} to set. {suggestion(name, names)}")
    shares = []
    for group in known:
        shares.append({name: value for name, value in settings.items() if name in group})
    return shares


def parse_times(text: str, option: str = "--times") -> list[float]:
    """`0:2:201`, from 0 to 2 in 201 times, or a list `0,0.1,0.5`."""
    try:
        if ":" not in text:
            return [float(part) for part in text.split(",")]
        first, last, count = text.split(":")
        if int(count) > MOST_TIMES:
            raise OverflowError
        gap = (float(last) - float(first)) / (int(count) - 1)
        return [float(first) + k * gap for k in range(int(count))]
    except OverflowError:
        raise ValueError(f"--times {text} are too many times; expected at most {MOST_TIMES}. Ask for fewer.") from None
    except (ValueError, ZeroDivisionError):
        raise ValueError(
            f"{option} {text} is not understood; write first:last:count, e.g. 0:2:201, or 0,0.5,2."
        ) from None


def parse_counts(text: str | None, option: str) -> tuple[int, ...]:
    """`256,512,1024`."""
    try:
        counts = tuple(int(part) for part in text.split(",")) if text else ()
    except ValueError:
        counts = (0,)
    if any(count < 1 for count in counts):
        raise ValueError(f"{option} {text} is not understood; write positive whole numbers, e.g. {option} 64,128.")
    return counts


def read_sides(periodic: bool | None, walls: str | None) -> bool | dict[str, bool] | None:
    """Return what `--periodic`, `--no-periodic` and `--walls y,z` say of a domain, as `open` takes it."""
    if walls is None:
        return periodic
    names = walls.split(",")
    if not set(names) <= set(SPACE):
        raise ValueError(f"--walls is {walls}; expected axes among {', '.join(SPACE)}, e.g. --walls y, or --walls y,z.")
    if periodic is not None:
        option = "--periodic" if periodic else "--no-periodic"
        raise ValueError(f"--walls {walls} and {option} are given; one of them says it all. Leave out the other.")
    return dict.fromkeys(names, False)


def known_sides(*periodic: bool | Sequence[bool] | None) -> bool | Sequence[bool] | None:
    """Return what models say of a domain that ends, since files of plain arrays do not."""
    return next((each for each in periodic if each is not None and each is not True), None)


def spell_sides(periodic: bool | Sequence[bool] | None) -> list[str]:
    """Return the same back in words of the command line, where a domain does not close along all axes."""
    if periodic is None or isinstance(periodic, bool):
        return ["--no-periodic"] if periodic is False else []
    return ["--walls", ",".join(name for name, closes in zip(SPACE, periodic, strict=False) if not closes)]


def _value(text: str) -> Any:
    if "," in text:
        return [_value(part) for part in text.split(",") if part]
    if ":" in text:
        return tuple(_value(part) for part in text.split(":"))
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.lower(), text)
