"""Newton–Schulz steps as a kernel against their twin; run in Triton's interpreter."""

import interpreting  # noqa: F401, before any kernel is imported
import torch

from vcnef.kernels import orthogonal, plain
from vcnef.training.muon import COEFFICIENTS, STEPS

torch.manual_seed(0)
# Fewer columns than are taken at a time, and more.
for shape in ((3, 20, 20), (2, 16, 70), (1, 33, 128)):
    matrices = torch.randn(shape) * torch.logspace(-3, 3, shape[0])[:, None, None]
    found = orthogonal.orthogonalise(matrices, COEFFICIENTS, STEPS, torch.float32)
    torch.testing.assert_close(found, plain.orthogonalise(matrices, COEFFICIENTS, STEPS), rtol=1e-4, atol=1e-5)
assert not orthogonal.orthogonalise(torch.zeros(1, 16, 32), COEFFICIENTS, STEPS, torch.float32).any()
