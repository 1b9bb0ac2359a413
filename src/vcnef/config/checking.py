"""What is wrong with values that were given, in one sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from textwrap import shorten
from typing import Any

from pydantic import TypeAdapter, ValidationError

from vcnef.suggest import suggestion

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


def check_keys(what: str, values: Any, known: Iterable[str], kind: str = "key") -> None:
    """Raise a `ValueError` where there is a key that is not known, or there are none."""
    if not isinstance(values, Mapping):
        raise ValueError(f"{what} is {values!r}; expected {kind}s with values ({', '.join(known)}).")
    for key in values:
        if key not in known:
            raise ValueError(f"{what} has no {kind} {key!r}. {suggestion(str(key), known)}")


def typed(place: str, kind: Any, value: Any) -> Any:
    """Return the value as the type of its place has it; what does not fit is named by that place."""
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        raise ValueError(sentence(error, place)) from None


def sentence(error: ValidationError, place: str = "") -> str:
    """Return the first of the errors: where, what is there, and what was expected."""
    first = error.errors()[0]
    context = first.get("ctx", {})
    if "error" in context:  # a sentence of our own
        return str(context["error"])
    where = ".".join(map(str, [place] * bool(place) + list(first["loc"])))
    expected = EXPECTED.get(first["type"].split("_")[0]) or context.get("expected") or first["msg"]
    return f"{where} is {shorten(repr(first['input']), LONGEST_VALUE)}; expected {expected}."
