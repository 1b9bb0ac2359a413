"""Metrics: pure functions (prediction, target) -> numbers, their definitions in their docstrings.

Conventions that hold for all of them:

- Fields are `b t *x c`, in 1, 2 or 3 space dimensions; the dimension comes from the rank.
- `initial_frames=1`: the first frame is the given initial state, not a prediction, and is not judged. Pass 0 when
  the fields hold predicted times only.
- `keep` names the axes of the result: none gives one number, `keep="c"` one per channel, `keep="t"` the course over
  time, `keep="b t c"` everything. All other axes are averaged (for `max_error`: maximised), each entry alike.
- Sums run in double precision whatever the fields are; results are double.
- Means over space are over points, each alike; they know nothing of the distances between them.
- A non-finite prediction makes the metrics that see it non-finite. Undefined values (a relative error of a zero
  target) are left out of averages and reported in a warning.

`rmse`, `nrmse`, `floored_nrmse`, `relative_l2`, `max_error` and `conserved` judge all points, `brmse` the boundary,
`frmse` bands of wave numbers, `correlation` and `correlation_time` the resemblance; `Scores` collects them over
batches.
"""

from vcnef.metrics.boundary import boundary_points, brmse, brmse_pdebench_3d
from vcnef.metrics.errors import (
    conserved,
    faded_frames,
    floored_nrmse,
    max_error,
    nrmse,
    relative_l2,
    rmse,
    zero_norm_frames,
)
from vcnef.metrics.scores import Scores
from vcnef.metrics.similarity import correlation, correlation_time
from vcnef.metrics.spectral import energy_spectrum, frmse

__all__ = [
    "Scores",
    "boundary_points",
    "brmse",
    "brmse_pdebench_3d",
    "conserved",
    "correlation",
    "correlation_time",
    "energy_spectrum",
    "faded_frames",
    "floored_nrmse",
    "frmse",
    "max_error",
    "nrmse",
    "relative_l2",
    "rmse",
    "zero_norm_frames",
]
