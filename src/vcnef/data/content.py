"""Digests of what trajectories hold, by which a run knows whether its data are still the same."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from vcnef.data.rows import bytes_of_one, row_blocks, spread

MOST_BYTES = 64 * 2**20
"""Of fields that are looked at; of more, some trajectories from first to last."""
FEWEST_ROWS = 16
"""Trajectories that are looked at in any case, if need be at some of their frames."""


def content_of(data: Any) -> str:
    """Return a short digest of fields, times, points and parameters, for files and arrays alike.

    Of large data a change may be in what is not looked at.
    """
    digest = blake2b(digest_size=8)
    for values in (data.t, data.grid, data.params):
        digest.update(_bytes(values))
    size = bytes_of_one(data)
    step = max(1, -(-size * FEWEST_ROWS // MOST_BYTES))
    count = min(len(data), max(FEWEST_ROWS, MOST_BYTES // max(1, size)))
    rows = spread(len(data), count)
    for block in row_blocks(len(rows), size // step):
        digest.update(_bytes(data.read(rows[block], (slice(0, None, step),))))
    return digest.hexdigest()


def _bytes(values: Any) -> bytes:
    # Adding zero makes −0 and 0 the same.
    return (values.detach().cpu().float() + 0.0).contiguous().numpy().tobytes()
