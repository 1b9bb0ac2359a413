"""What data or states note of themselves that sets them apart from those of training, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from vcnef.data.labelled import NUMBERS, noted_problem
from vcnef.data.names import names_equation
from vcnef.labels import SAMPLE, TIME, synonyms_of
from vcnef.periodicity import settle, spell_axes
from vcnef.problem import COORDINATES, SPACE, Problem
from vcnef.suggest import suggestion


def about_problem(noted: Mapping[str, Any], trained: Problem, whose: str = "these data") -> Iterator[str]:
    """One sentence for each of `name`, `domain` and `periodic` that is noted, and is another one than in training."""
    ndim, pairs = trained.ndim, {}
    if "domain" in noted:
        pairs["domain"] = tuple(_spell(domain) for domain in (noted["domain"], trained.domain))
    # Of data whose equation nobody named, the name is that of a file.
    if "name" in noted and names_equation(noted["name"]) and names_equation(trained.name):
        pairs["equation"] = noted["name"], trained.name
    if "periodic" in noted and len(noted.get("domain", trained.domain)) == ndim:
        here = Problem("", ("u",), domain=trained.domain, periodic=settle(noted["periodic"], ndim))
        pairs["periodicity"] = spell_axes(here.closes), spell_axes(trained.closes)
    for what, (own, expected) in pairs.items():
        if own != expected:
            yield other_than_trained(what, own, expected, whose)


def other_than_trained(what: str, own: Any, expected: Any, whose: str = "these data") -> str:
    return f"The {what} of {whose} is {own}, that of training was {expected}: the model was not made for them."


def about_unknown(names: Sequence[str], trained: Problem, whose: str = "these data") -> Iterator[str]:
    """One sentence for each parameter that the model does not know."""
    for name in names:
        if name not in trained.parameters:
            known = suggestion(name, trained.parameters)
            yield f"The model does not know the parameter {name!r} of {whose}, and answers without. {known}"


def about_labels(u0: Any, trained: Problem) -> Iterator[str]:
    """The same of labelled states."""
    noted = noted_problem(u0.attrs, trained.ndim)
    yield from about_problem(noted, trained, "these states")
    yield from about_unknown(_parameters_of(u0), trained, "these states")


def about_clock(u0: Any, t: Float[Tensor, " t"]) -> Iterator[str]:
    """Whether times since labelled states may have been meant on the clock of their label."""
    label, first, last = _time_of(u0), float(t.min()), float(t.max())
    if 0 < label <= first and label < last:
        yield (
            f"u0 is labelled {TIME} = {label:g}, and t goes from {first:g} to {last:g}; t are times since u0. If they "
            f"were meant on the clock of that label, subtract {label:g}; otherwise drop the label."
        )


def _parameters_of(u0: Any) -> list[str]:
    """The numbers beside labelled states that are none of their coordinates: one for all, or one for each sample."""
    renamed = u0.rename(synonyms_of(u0))
    beside = renamed.variables if hasattr(u0, "data_vars") else renamed.coords
    return [
        str(name)
        for name, each in beside.items()
        if name not in (*renamed.dims, *COORDINATES, "time")
        and each.dims in ((), (SAMPLE,))
        and each.dtype.kind in NUMBERS
        and not {*SPACE} & {*each.dims}
    ]


def _time_of(u0: Any) -> float:
    """The label of the only frame, or of the last one."""
    for name in (TIME, "time"):
        if name in u0.coords and u0[name].dtype.kind in NUMBERS and u0[name].size:
            return float(np.ravel(u0[name].values)[-1])
    return 0.0


def _spell(domain: Sequence[tuple[float, float]]) -> str:
    """To two digits: ends may have been read off coordinates."""
    return " × ".join(f"({low:.2g}, {high:.2g})" for low, high in domain)
