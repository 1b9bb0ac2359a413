"""What a run trains on, chooses its weights on and leaves for the test: drawn from the data, or sets of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from vcnef.data.fingerprints import Fingerprints, find_same, take_fingerprints
from vcnef.data.parameter_shift import columns_over_time, describe_shifts
from vcnef.data.source import differences
from vcnef.data.splits import TEST_SHARE, rows_of_split
from vcnef.data.stored import StoredTrajectories
from vcnef.data.trajectories import Trajectories

Data = Trajectories | StoredTrajectories
USES = {"train": "to learn from", "valid": "to choose the weights", "test": "left for the test"}


@dataclass(frozen=True)
class Sets:
    """The three sets of a run, and how they came about."""

    train: Data
    valid: Data | None
    tested: int = 0
    """Trajectories that are left for the test, or were given for it."""
    shares: dict[str, float] = field(default_factory=dict)
    """Of the data that went to `valid` and `test`; nothing where those are sets of their own."""
    own: tuple[str, ...] = ()
    """Those that were given beside the data."""
    seen: Fingerprints | None = None
    """Of all that is learnt from, or chooses the weights."""
    left_out: int = 0
    """Trajectories of the data that are in a set that was given, and are used there alone."""
    doubts: tuple[str, ...] = ()
    """What is wrong with the sets, in sentences."""

    @property
    def in_order(self) -> bool:
        return self.train.split_in_order

    def describe(self) -> str:
        """Return sizes, uses and origin of the sets in one line."""
        sizes = {"train": len(self.train), "valid": len(self.valid or ()), "test": self.tested}
        words = [
            f"{size} {USES[name]}{' (a set of its own)' if name in self.own else ''}"
            for name, size in sizes.items()
            if size
        ]
        if self.left_out:
            words.append(f"{self.left_out} of the data left out, which are in these sets")
        drawn = any(self.shares.values())
        how = "; the first of each file are the test" if self.in_order else "; drawn at random"
        return ", ".join(words) + (how if drawn else "")

    def provenance(self) -> dict[str, Any]:
        """What a model's folder says of them."""
        return {
            **self.shares,
            "split_in_order": self.in_order,
            "sets": {"description": self.describe(), "own": list(self.own)},
            **({"seen": self.seen.to_dict()} if self.seen else {}),
        }


def make_sets(data: Data, share: float, valid: Any = None, test: Any = None) -> Sets:
    """Divide data into what is trained on and what is held out; beside given sets everything else is trained on.

    `share` is that of the data that go to validation where no such set is given. What is in the data and in a given
    set too is left out of the data.
    """
    given = {name: each for name, each in (("valid", valid), ("test", test)) if each is not None}
    for name, each in given.items():
        check_set(name, each, data)
    given = {name: _named_alike(each, data) for name, each in given.items()}
    valid, test = given.get("valid"), given.get("test")
    shares = {"valid": 0.0 if "valid" in given else share, "test": 0.0 if "test" in given else TEST_SHARE}
    if data.subset == "train" and given:
        # Whoever gives the train split has taken the test out already.
        data, shares["test"] = replace(data, subset=None), 0.0
    rows = {name: rows_of_split(data, name, **shares) for name in ("train", *shares)}
    rows, left_out = _without(data, rows, list(given.values()))
    drawn = {name: data.select(rows[name], name) for name in shares if shares[name]}
    training, judging = data.select(rows["train"], "train"), drawn | given
    doubts = list(_overlaps(training, valid, test))
    for name, each in judging.items():
        judged, trained = columns_over_time(each), columns_over_time(training)
        doubts.extend(describe_shifts(name, judged, trained, given=name in given))
    return Sets(
        train=training,
        valid=judging.get("valid"),
        tested=len(judging.get("test", ())),
        shares=shares,
        own=tuple(given),
        seen=take_fingerprints(data, torch.cat([rows["train"], rows["valid"]]), [valid] if valid is not None else []),
        doubts=tuple(doubts),
        left_out=left_out,
    )


def _without(data: Data, rows: dict[str, Tensor], given: Sequence[Data]) -> tuple[dict[str, Tensor], int]:
    """The rows of each set that are in no set that is given, and how many are."""
    if not given:
        return rows, 0
    same = torch.stack([find_same(data, each) for each in given]).any(dim=0)
    kept = {name: each[~same[each]] for name, each in rows.items()}
    if not len(kept["train"]):
        raise ValueError(
            f"All {len(data)} trajectories of the data are in the sets given beside. Give others to train on."
        )
    if len(rows["valid"]) and not len(kept["valid"]):
        raise ValueError(
            f"The {len(rows['valid'])} trajectories of the data that were to choose the weights are in the test set. "
            "Give a valid set too."
        )
    return kept, int(same.sum())


def check_set(name: str, given: Any, data: Data) -> None:
    """Refuse a set for `name` ("valid" or "test") that is not of the same problem, or is another split."""
    if not isinstance(given, Trajectories | StoredTrajectories):
        raise ValueError(
            f"{name} is {type(given).__name__}; expected trajectories. Make them with vcnef.open or vcnef.from_arrays."
        )
    if data.subset not in (None, "train"):
        raise ValueError(f"The data are the {data.subset} split; expected the whole data set, or its train split.")
    if given.subset not in (None, name):
        raise ValueError(
            f"{name} is the {given.subset} split of its data; expected the {name} split, or data of their own. "
            "What is used twice judges nothing."
        )
    for difference in differences(given, data):
        raise ValueError(
            f"The {name} set does not fit the data that are trained on: {difference}. Give data of the same problem, "
            "on the same points and at the same times."
        )


def _named_alike(given: Data, data: Data) -> Data:
    """The set with its parameters in the order of the data."""
    names = data.problem.parameters
    if given.problem.parameters == names:
        return given
    columns = [given.problem.parameters.index(name) for name in names]
    return replace(given, params=given.params[..., columns], problem=replace(given.problem, parameters=names))


def _overlaps(training: Data, valid: Data | None, test: Data | None) -> Iterator[str]:
    """What sets of their own share with others, in sentences."""
    if valid is None and test is None:
        return
    learnt = take_fingerprints(training, torch.arange(len(training)))
    chosen = None if valid is None else take_fingerprints(valid, torch.arange(len(valid)))
    for name, given, others in (("valid", valid, [learnt]), ("test", test, [learnt, chosen])):
        if given is None:
            continue
        for other, use in zip(others, ("trained on", "used to choose the weights"), strict=False):
            same = 0 if other is None else int(other.among(given).sum())
            if same:
                what = "trajectories" if len(other.places.times) > 1 else "initial states"
                yield (
                    f"{same} of the {len(given)} trajectories of the {name} set have {what} that are {use} too: they "
                    "tell little of what is new. Give others."
                )
