"""Newton–Schulz steps as a kernel against their twin, on a GPU."""

import pytest
import torch

from vcnef.kernels import orthogonal, plain
from vcnef.training.muon import COEFFICIENTS, STEPS

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")]


@pytest.mark.parametrize(
    "shape", [(3, 16, 16), (37, 96, 96), (12, 96, 384), (2, 100, 130), (2, 128, 512), (1, 24, 5000)]
)
def test_the_kernel_agrees_with_its_twin(shape):
    torch.manual_seed(0)
    matrices = torch.randn(shape, device="cuda")
    assert orthogonal.serves(matrices)
    found = orthogonal.orthogonalise(matrices, COEFFICIENTS, STEPS).float()
    # The twin in single precision; in half precision it is as far away from that as the kernel may be.
    exact = plain.orthogonalise(matrices.cpu(), COEFFICIENTS, STEPS).cuda()
    twin = plain.orthogonalise(matrices, COEFFICIENTS, STEPS).float()
    assert (found - exact).norm() < 1.5 * (twin - exact).norm()
    assert (found - exact).norm() < 0.03 * exact.norm()
    assert torch.linalg.svdvals(found).max() < 1.3


def test_wide_matrices_are_left_to_the_twin():
    assert not orthogonal.serves(torch.randn(2, 256, 256, device="cuda"))
