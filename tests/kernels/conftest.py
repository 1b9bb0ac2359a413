import pytest
import torch

from vcnef.kernels.weights import BlockWeights
from vcnef.nn.attention import LinearAttention
from vcnef.nn.coordinates import Coordinates
from vcnef.nn.fused import block_weights
from vcnef.nn.modulation import CoordinateBranch, ModulationBlock


class Case:
    """A block with weights of a trained one's size, tokens and coordinates."""

    def __init__(self, width, heads, points, activation, batch=2, times=3, shared=True, device="cpu"):
        torch.manual_seed(0)
        branch = CoordinateBranch(width, activation, nonlinear=True, residual=False)
        block = ModulationBlock(width, LinearAttention(width, heads), branch, activation, shift=False, dropout=0.1)
        for parameter in block.parameters():
            noise = torch.randn_like(parameter)
            parameter.data = noise / parameter.shape[-1] ** 0.5 if parameter.ndim > 1 else parameter + 0.2 * noise
        self.block = block.to(device).eval()
        self.tokens = torch.randn(batch, times, points, width, device=device)
        leading = 1 if shared else batch
        shapes = (leading, times, width), (leading, points, width)
        self.coordinates = Coordinates(*(torch.randn(shape, device=device) for shape in shapes))
        self.extra = torch.randn_like(self.tokens)

    @property
    def field(self):
        return self.block.branch(self.coordinates)

    def weights(self, dtype=torch.float32) -> BlockWeights:
        return block_weights(self.block, dtype)


@pytest.fixture
def make_case():
    return Case
