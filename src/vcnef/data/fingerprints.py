"""Fingerprints of trajectories, by which a surrogate knows again what it was trained on.

A fingerprint is a short checksum of an initial state at a few points that strides keep. It is the same for all
thinner or shorter views of the same data, and for data that stay in their files.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from vcnef.data.rows import row_blocks
from vcnef.grid import axes, is_scattered

CODE_BYTES = 5
"""Of one trajectory. Of a thousand others, compared with ten thousand, one in 100 000 such sets has one taken for
another."""
FEWEST_POINTS = 8
"""That are looked at along each axis, if there are as many."""
ROWS_AT_ONCE = 1024


@dataclass(frozen=True)
class Places:
    """Where trajectories are looked at: points along each axis (or scattered ones, of which there is one list), and
    frames, by their times since the first one."""

    points: tuple[np.ndarray, ...]
    times: tuple[float, ...]

    def cuts(self, data: Any) -> list[tuple[slice, ...]] | None:
        """Return the slices of data that hold these places, one for each frame; None where data lack one of them."""
        lines = _lines(data.grid)
        if len(lines) != len(self.points):
            return None
        elapsed = (data.t.double() - data.t[0].double()).cpu().numpy()[:, None]
        slack = 1e-4 * max(self.times[-1], 1e-3 * float(elapsed[-1, 0]))
        frames = [_find(np.array([[time]]), elapsed, slack) for time in self.times]
        points = [_find(wanted, line, 1e-3 * _gap(line)) for wanted, line in zip(self.points, lines, strict=True)]
        if any(each is None for each in (*frames, *points)):
            return None
        return [(frame, *points) for frame in frames]


@dataclass(frozen=True)
class Fingerprints:
    """Those of all trajectories that a surrogate has learnt from, or was chosen by."""

    places: Places
    codes: frozenset[bytes]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, about seven letters for each trajectory."""
        return {
            "points": [_plain(points) for points in self.places.points],
            "times": list(self.places.times),
            "codes": b64encode(b"".join(sorted(self.codes))).decode(),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Fingerprints:
        joined = b64decode(record["codes"])
        codes = (joined[first : first + CODE_BYTES] for first in range(0, len(joined), CODE_BYTES))
        points = tuple(np.array(points).reshape(len(points), -1) for points in record["points"])
        return cls(Places(points, tuple(record["times"])), frozenset(codes))

    def digest(self) -> str:
        """Return a text of all of them that is short enough to be shown."""
        return blake2b(b"".join(sorted(self.codes)), digest_size=4).hexdigest()

    def among(self, data: Any) -> Bool[Tensor, " n"] | None:
        """Which trajectories of these data have been seen; None where data lack the points or times to tell."""
        codes = codes_of(data, self.places)
        return None if codes is None else torch.tensor([code in self.codes for code in codes], dtype=torch.bool)


def take_fingerprints(data: Any, rows: Int[Tensor, " n"], more: Sequence[Any] = ()) -> Fingerprints:
    """Fingerprints of some trajectories of a data set, and of all in further sets on the same points and times.

    Initial states tell trajectories apart, as the splits do: files of one equation share them by index. Where a file
    has the same one several times, as in experiments that all begin at rest, a later frame is looked at too.
    """
    places = _places(data, later=False)
    codes = codes_of(data, places)
    if any(len(set(part)) < len(part) for part in _parts(codes, data.parts)):
        places = _places(data, later=True)
        codes = codes_of(data, places)
    seen = {codes[row] for row in rows.tolist()}
    for each in more:
        seen.update(codes_of(each, places))
    return Fingerprints(places, frozenset(seen))


def find_same(data: Any, other: Any) -> Bool[Tensor, " n"]:
    """Which trajectories of a data set are in another one on the same points and times, whole and not just begun so."""
    places = _places(data, later=True)
    known = set(codes_of(other, places))
    return torch.tensor([code in known for code in codes_of(data, places)], dtype=torch.bool)


def codes_of(data: Any, places: Places) -> list[bytes] | None:
    """Return the fingerprint of each trajectory; None where data lack one of the places."""
    cuts = places.cuts(data)
    if cuts is None:
        return None
    codes = []
    for rows in row_blocks(len(data), 1, most=ROWS_AT_ONCE):
        frames = [data.read(rows, cut).flatten(1).cpu() for cut in cuts]
        # Adding zero makes −0 and 0 the same.
        values = torch.cat(frames, dim=1).float().numpy() + np.float32(0)
        codes += [blake2b(row.astype("<f4").tobytes(), digest_size=CODE_BYTES).digest() for row in values]
    return codes


def _places(data: Any, *, later: bool) -> Places:
    """A few points of the first frame, and of a `later` one, if there is one."""
    lines = tuple(line[:: _stride(len(line))] for line in _lines(data.grid))
    if not later or len(data.t) < 2:
        return Places(lines, (0.0,))
    # Half as far as the data go, or less, at a frame that time strides of two, four, ... keep.
    frame = _stride(len(data.t) - 1, fewest=2)
    return Places(lines, (0.0, float(data.t[frame].double() - data.t[0].double())))


def _lines(grid: Float[Tensor, "*x D"]) -> tuple[np.ndarray, ...]:
    """The coordinates along each axis, [points, 1], or all of scattered points, [points, D]."""
    if is_scattered(grid):
        return (grid.double().cpu().numpy(),)
    return tuple(line.double().cpu().numpy()[:, None] for line in axes(grid))


def _stride(size: int, fewest: int = FEWEST_POINTS) -> int:
    """The largest power of two that leaves enough: other strides keep most of what it keeps."""
    stride = 1
    while 2 * stride * fewest <= size:
        stride *= 2
    return stride


def _plain(points: Float[np.ndarray, "m D"]) -> list[Any]:
    """Along an axis a point is one number, elsewhere a list of coordinates."""
    return points[:, 0].tolist() if points.shape[1] == 1 else points.tolist()


def _find(wanted: Float[np.ndarray, "m D"], line: Float[np.ndarray, "n D"], slack: float) -> slice | None:
    """The slice of a line that has these points; None where one is missing, or they are not equally many apart."""
    distances = np.linalg.norm(wanted[:, None] - line[None], axis=-1)
    found = distances.argmin(axis=1)
    if distances.min(axis=1).max() > slack:
        return None
    steps = np.diff(found)
    step = int(steps[0]) if len(steps) else 1
    if step < 1 or (steps != step).any():
        return None
    return slice(int(found[0]), int(found[-1]) + 1, step)


def _gap(line: Float[np.ndarray, "n D"]) -> float:
    """The smallest distance from a point to the next of the list."""
    return float(np.linalg.norm(np.diff(line, axis=0), axis=-1).min()) if len(line) > 1 else 1.0


def _parts(codes: list[bytes], parts: Sequence[int]) -> list[list[bytes]]:
    """The codes of each file."""
    rest = iter(codes)
    return [[next(rest) for _ in range(size)] for size in parts]
