"""What files note of their trajectories beside the arrays: how they were made, the files and the split they are of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vcnef.data.splits import SPLITS

if TYPE_CHECKING:
    from vcnef.data.trajectories import Trajectories

NOTE = "vcnef"
"""Under which a file holds them, as JSON."""


GENERATED = "generation"
"""An attribute of what `vcnef.generate` made, and of nothing else: such data are split in their order."""


def origin(data: Trajectories) -> dict[str, Any]:
    """Of which files and which split trajectories are; empty for those of one whole file."""
    parts = {"parts": list(data.parts)} if len(data.parts) > 1 else {}
    ordered = {"split_in_order": data.split_in_order} if data.split_in_order != (GENERATED in data.attributes) else {}
    return parts | ({"subset": data.subset} if data.subset else {}) | ordered


def lasting_attributes(data: Trajectories) -> dict[str, Any]:
    """Without the recipes of several files, of which none makes this one, and which outgrow a file's attributes."""
    attributes = dict(data.attributes)
    if not isinstance(attributes.get("recipe"), Mapping):
        attributes.pop("recipe", None)
    return attributes


def write_note(data: Trajectories) -> dict[str, str]:
    """The note by its name, where there is anything to say."""
    attributes = lasting_attributes(data)
    note = origin(data) | ({"attributes": attributes} if attributes else {})
    return {NOTE: json.dumps(note, default=str)} if note else {}


def read_note(text: Any) -> dict[str, Any]:
    """The note of a file, whose kinds of values are those that `write_note` writes."""
    if text is None:
        return {}
    try:
        note = json.loads(str(text))
    except (ValueError, RecursionError):
        note = None
    if not isinstance(note, dict):
        raise ValueError(f"the note {NOTE!r} is {str(text)!r:.40}, which is no JSON object. Remove it, or save anew.")
    return note


def _check_kinds(note: Mapping[str, Any]) -> None:
    """Refuse values that only a damaged note has, or another program's."""
    parts = note.get("parts", [1])
    sizes = isinstance(parts, list) and all(type(size) is int and size > 0 for size in parts)
    kinds = {
        "parts": (sizes, "a list of numbers of trajectories"),
        "subset": (note.get("subset") in (None, *SPLITS), f"one of {', '.join(SPLITS)}"),
        "split_in_order": (isinstance(note.get("split_in_order", False), bool), "true or false"),
        "attributes": (isinstance(note.get("attributes", {}), Mapping), "values by name"),
    }
    for name, (right, expected) in kinds.items():
        if not right:
            raise ValueError(
                f"the note {NOTE!r} has {name} {note[name]!r:.40}; expected {expected}. Remove it, or save anew."
            )


def understand(note: Mapping[str, Any], samples: int) -> dict[str, Any]:
    """What is noted of so many trajectories, by the fields of `Trajectories`; without a note they are of one file, and
    no split."""
    _check_kinds(note)
    parts = tuple(note.get("parts", (samples,)))
    if sum(parts) != samples:
        # Without the sizes a split would mix what was trained on with what was not.
        raise ValueError(
            f"the note {NOTE!r} counts {' + '.join(map(str, parts))} trajectories, but there are {samples}. "
            "Keep all of them, or remove the note."
        )
    attributes = note.get("attributes", {})
    return {
        "attributes": attributes,
        "parts": parts,
        "subset": note.get("subset"),
        "split_in_order": bool(note.get("split_in_order", GENERATED in attributes)),
    }
