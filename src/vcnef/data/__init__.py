"""Trajectories: in memory, on the GPU or streamed; files in and out; splits, views, scales and batches.

`open`, `from_arrays` and `generate` give `Trajectories` (or `StoredTrajectories`, which stay in their files): fields,
times, grid and parameters with their names. `split` and `view` choose some of them; `Scaling` learns the scales of
the training split; `Batches` hands out `Batch` records on the device, with `Queries` for starts and times and the
symmetries of `augment` for exact new data. `Records` are the same trajectories one by one, for PyTorch's `DataLoader`.
"""

from vcnef.data.arrays import from_arrays
from vcnef.data.augment import Affine, Galilean, Permute, Reflect, Shift
from vcnef.data.batches import Batch, Batches
from vcnef.data.generator import generate
from vcnef.data.names import parse_name, public_name
from vcnef.data.normalise import Normaliser, ParameterScale
from vcnef.data.opening import open
from vcnef.data.queries import Queries
from vcnef.data.records import Records
from vcnef.data.scaling import Scaling
from vcnef.data.stored import StoredTrajectories
from vcnef.data.trajectories import Trajectories
from vcnef.data.views import View

__all__ = [
    "Affine",
    "Batch",
    "Batches",
    "Galilean",
    "Normaliser",
    "ParameterScale",
    "Permute",
    "Queries",
    "Records",
    "Reflect",
    "Scaling",
    "Shift",
    "StoredTrajectories",
    "Trajectories",
    "View",
    "from_arrays",
    "generate",
    "open",
    "parse_name",
    "public_name",
]
