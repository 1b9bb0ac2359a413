"""Names of the benchmark's files: what they say about the equation, its parameters and the initial states."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vcnef.pde import is_known

Value = float | int | tuple[float, float]
"""A parameter's one value, or the range it was drawn from."""

_NUMBER = r"\d+\.?\d*(?:e[+-]?\d+)?"
_PATTERNS = {
    "advection": rf"1D_Advection_Sols_beta(?P<beta>{_NUMBER})",
    "burgers": rf"1D_Burgers_Sols_Nu(?P<nu>{_NUMBER})",
    # The public names have M before Eta; files merged by the benchmark's own script have it after Zeta.
    "cns": rf"(?P<ndim>[123])D_CFD_(?P<initial>Rand|Turb|Shock)(?:_M(?P<mach>{_NUMBER}))?"
    rf"_Eta(?P<eta>{_NUMBER})_Zeta(?P<zeta>{_NUMBER})(?:_M(?P<mach_last>{_NUMBER}))?"
    r"_(?P<boundary>periodic|trans)(?:_\d+)?(?:_(?:Train|Test))?",
}


@dataclass(frozen=True)
class FileName:
    """What a file's name tells. The Mach number shapes the initial states; it is no parameter of the equations."""

    problem: str
    params: Mapping[str, float]
    mach: float | None = None
    initial: str | None = None
    periodic: bool = True


def parse_name(stem: str) -> FileName | None:
    """What the stem of a file's name says, or None if it follows no pattern of the benchmark."""
    for family, pattern in _PATTERNS.items():
        if match := re.fullmatch(pattern, stem):
            found = match.groupdict()
            params = {name: float(found[name]) for name in ("beta", "nu", "eta", "zeta") if found.get(name)}
            mach = found.get("mach") or found.get("mach_last")
            return FileName(
                problem=f"cns{found['ndim']}d" if family == "cns" else family,
                params=params,
                mach=float(mach) if mach else None,
                initial=found.get("initial"),
                periodic=found.get("boundary", "periodic") == "periodic",
            )
    return None


def name_own(stem: str) -> str:
    """What data of a file that describes nothing are called: as the file, unless that is the name of an equation.

    Anybody may call a file burgers.npz; that its data obey our Burgers' equation nobody has said.
    """
    return "custom" if is_known(stem) else stem


def names_equation(name: str) -> bool:
    """Whether it is the name of an equation; other names are those of files, and say nothing."""
    return is_known(name)


def promises_parameters(stem: str) -> bool:
    """Whether a name begins as the benchmark's do and has the value of a parameter, understood or not."""
    return re.match(r"(?:[123]D_|ReacDiff_).*(?:beta|Nu|Rho|Eta|Zeta)\d", stem) is not None


def public_name(problem: str, params: Mapping[str, Value], initial: Mapping[str, Any], points: int) -> str:
    """The name that the benchmark's scheme gives to a file of these data.

    >>> public_name("burgers", {"nu": 0.001}, {}, 1024)
    '1D_Burgers_Sols_Nu0.001.hdf5'
    """
    value = {name: _spell(each, short=not problem.startswith(("cns2", "cns3"))) for name, each in params.items()}
    mach = f"_M{_spell(initial['mach'], short=False)}" if "mach" in initial else ""
    templates = {
        "advection": "1D_Advection_Sols_beta{beta}",
        "burgers": "1D_Burgers_Sols_Nu{nu}",
        "cns1d": "1D_CFD_Rand_Eta{eta}_Zeta{zeta}_periodic_Train",
        "cns2d": f"2D_CFD_Rand{mach}_Eta{{eta}}_Zeta{{zeta}}_periodic_{points}_Train",
        "cns3d": f"3D_CFD_Rand{mach}_Eta{{eta}}_Zeta{{zeta}}_periodic_Train",
    }
    template = templates.get(problem, "_".join([problem, *(f"{name}{{{name}}}" for name in params)]))
    return template.format(**value) + ".hdf5"


def _spell(value: Any, *, short: bool) -> str:
    """0.001, 1.0, and 1e-08; in 1D names `1.e-8`, since some loaders understand no other small number there."""
    if isinstance(value, tuple | list):
        return "to".join(_spell(each, short=short) for each in value)
    text = repr(float(value))
    mantissa, exponent = text.split("e") if "e" in text else (text, "")
    if not exponent or not short:
        return text
    return f"{mantissa}{'' if '.' in mantissa else '.'}e{int(exponent)}"
