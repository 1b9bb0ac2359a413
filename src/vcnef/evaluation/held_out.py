"""Which trajectories a model is judged on: those that it has not seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from vcnef.data.fingerprints import Fingerprints
from vcnef.data.instance import pick_instance
from vcnef.data.other_units import convert_trajectories
from vcnef.data.splits import SPLITS, TEST_SHARE, VALID_SHARE, rows_of_split

ALL = "all"
LACKING = "The data lack points or times"
ROUNDED = "The data are in other units than those of training, and lack the last digits"
"""Why a model may not know again what it was trained on."""
ASK_FOR_ALL = "If it has seen none of them, judge all with split='all', or --split all."


@dataclass(frozen=True)
class Judged:
    """What is judged, the name of that split, and what is to be said of it."""

    data: Any
    split: str
    notes: tuple[str, ...] = ()
    training: Any = None
    """Those of the data that were trained on, where there are some beside what is judged."""


def choose_judged(surrogate: Any, data: Any, split: str | None = None) -> Judged:
    """Choose a split of the data by its name, or the trajectories that the model has not seen.

    Without a name, data of which none was trained on are judged whole, and others on their test split. A model of one
    instance is judged on that one alone. Data that note other units than the model are multiplied, which is noted.
    """
    if split not in (None, *SPLITS, ALL):
        raise ValueError(f"There is no split {split!r}; expected one of {', '.join(SPLITS)}, {ALL}.")
    data, found = convert_trajectories(data, surrogate.problem.units)
    # Fields that were multiplied are rounded otherwise, and a fingerprint knows none of them again.
    rounded = not found.keys().isdisjoint(data.problem.channels)
    judged = _choose(surrogate, data, split, rounded=rounded)
    notes = list(judged.notes)
    for name, each in found.items():
        notes.append(each.describe(f"{name} of the data", "the model"))
    return replace(judged, notes=tuple(notes))


def _choose(surrogate: Any, data: Any, split: str | None, *, rounded: bool) -> Judged:
    """Choose among data in the units of the model, which may be rounded otherwise than those of training."""
    trained = surrogate.problem
    if not all(trained.closes) and data.problem.ndim == trained.ndim:
        # Files of plain arrays do not say it: the model was told.
        data = replace(data, problem=replace(data.problem, periodic=trained.periodic))
    if instance := surrogate.provenance.get("instance"):
        number = instance["number"]
        note = f"The model is the solution of trajectory {number} alone, and is judged on that; no split was used."
        return Judged(pick_instance(data, number), "instance", (note,))
    known = surrogate.provenance.get("seen")
    seen = None
    if known and not rounded:
        seen = Fingerprints.from_dict(known).among(data)
    if split == ALL or data.subset is not None:
        return _as_they_are(data, split, seen)
    if known is None or seen is None:
        lacking = None
        if known is not None and rounded:
            lacking = ROUNDED
        elif known is not None:
            lacking = LACKING
        return _by_the_rule(surrogate, data, split, lacking)
    if seen.any():
        return _beside_training(surrogate, data, split, seen)
    if split is not None:
        return Judged(data.split(split, valid=surrogate.provenance.get("valid") or VALID_SHARE), split)
    return Judged(data, ALL, (f"None of these {len(data)} trajectories was trained on, so all of them are judged.",))


def _as_they_are(data: Any, split: str | None, seen: Bool[Tensor, " n"] | None) -> Judged:
    """All of the data, or the split that they are already."""
    if split != ALL and data.subset != (split or "test"):
        raise ValueError(
            f"These trajectories are the {data.subset} split; expected the {split or 'test'} split or the whole data "
            f"set. Pass the whole data set, or split={data.subset!r}."
        )
    name, count = split or "test", 0 if seen is None else int(seen.sum())
    notes = (_say_seen(count, len(data)),) if count and name in ("test", ALL) else ()
    return Judged(data, name, notes)


def _by_the_rule(surrogate: Any, data: Any, split: str | None, lacking: str | None) -> Judged:
    """A split of data of which nobody can tell whether the model has seen them, and a note where none was asked for.

    `lacking` says what the data lack, where the model itself knows what it has seen.
    """
    why = "The model does not say which trajectories it was trained on"
    if lacking is not None:
        why = f"{lacking} by which the model knows what it was trained on again"
    if lacking is not None and not surrogate.provenance.get("test", TEST_SHARE):
        fix = "Open them at the resolution of training or a multiple"
        if lacking == ROUNDED:
            fix = "Give them in the units of training"
        raise ValueError(
            f"{why}, and it was trained on all of its data. {fix}, or say split='all' if it has seen none of them."
        )
    judged = _split(surrogate, data, split or "test")
    if split is not None:
        return judged
    count = len(judged.data)
    return replace(judged, notes=(f"{why}: judged on {count} of {len(data)}, their test split. {ASK_FOR_ALL}",))


def _beside_training(surrogate: Any, data: Any, split: str | None, seen: Bool[Tensor, " n"]) -> Judged:
    """A split of data that were trained on, of which the test split has nothing that the model has seen."""
    if split in ("train", "valid"):
        return _split(surrogate, data, split, seen)
    left = _test_rows(surrogate, data)
    if len(left) and not seen[left].any():
        return _split(surrogate, data, "test", seen)
    unseen = (~seen).nonzero().flatten()
    if not len(unseen):
        raise ValueError(
            f"All {len(data)} trajectories of these data were trained on, or chose the weights. Give others, such as "
            "the test set of the run, or say split='all' for errors that are too small."
        )
    note = f"{_say_seen(int(seen.sum()), len(data))} Only the {len(unseen)} others are judged."
    return Judged(data.select(unseen), "test", (note,), training=data.select(seen.nonzero().flatten()))


def _say_seen(count: int, samples: int) -> str:
    return f"{count} of the {samples} trajectories were trained on, or chose the weights: errors on them are too small."


def _test_rows(surrogate: Any, data: Any) -> Int[Tensor, " n"]:
    """Those that were left for the test when the model was trained; none where it had a test set of its own."""
    shares = _shares(surrogate)
    if not shares["test"] or min(data.parts) < len(SPLITS):
        return torch.arange(0)
    return rows_of_split(_ordered(surrogate, data), "test", **shares)


def _split(surrogate: Any, data: Any, split: str, seen: Bool[Tensor, " n"] | None = None) -> Judged:
    """That split of the data, as the model was trained with it; of train and valid without what it has not `seen`."""
    shares = _shares(surrogate)
    if not shares.get(split, 1.0):
        if split in surrogate.provenance.get("sets", {}).get("own", ()):
            raise ValueError(f"The model was trained with a {split} set of its own. Give that set, and split='all'.")
        raise ValueError(
            "The model was trained with valid=0, so there is no valid split: all but the test split was trained on. "
            "Use split='test'."
        )

    def choose(name: str) -> Any:
        rows = rows_of_split(_ordered(surrogate, data), name, **shares)
        return data.select(rows if seen is None or name == "test" else rows[seen[rows]], name)

    return Judged(choose(split), split, training=None if split == "train" else choose("train"))


def _shares(surrogate: Any) -> dict[str, float]:
    """The shares of the data that validation and test had; folders of earlier versions had these."""
    usual = {"valid": VALID_SHARE, "test": TEST_SHARE}
    return {name: surrogate.provenance.get(name, share) for name, share in usual.items()}


def _ordered(surrogate: Any, data: Any) -> Any:
    """The data, to be split as those of training were; earlier versions shuffled none."""
    return replace(data, split_in_order=surrogate.provenance.get("split_in_order", True))
