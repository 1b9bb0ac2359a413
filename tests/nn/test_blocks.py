import pytest
import torch
from torch import nn

from vcnef.nn.attention import LinearAttention
from vcnef.nn.blocks import FeedForward, TransformerBlock
from vcnef.nn.coordinates import Coordinates
from vcnef.nn.modulation import CoordinateBranch, ModulationBlock


def coordinates(times: int, points: int, width: int, batch: int = 1) -> Coordinates:
    return Coordinates(*(torch.randn(batch, n, width, dtype=torch.float64) for n in (times, points)))


def modulation(width: int = 8, *, shift: bool = False, dropout: float = 0.0, attend: bool = True) -> ModulationBlock:
    branch = CoordinateBranch(width, nn.GELU, nonlinear=True, residual=True)
    attention = LinearAttention(width, 2) if attend else None
    return ModulationBlock(width, attention, branch, nn.GELU, shift=shift, dropout=dropout).double()


def test_one_time_axis_of_size_one_serves_all_times():
    block, where = modulation(), coordinates(3, 5, 8)
    tokens = torch.randn(2, 1, 5, 8, dtype=torch.float64)
    torch.testing.assert_close(block(tokens, where), block(tokens.expand(-1, 3, -1, -1), where))


def test_query_times_do_not_interact():
    block, where = modulation(), coordinates(4, 5, 8)
    tokens = torch.randn(2, 4, 5, 8, dtype=torch.float64)
    together = block(tokens, where)
    for k in range(4):
        alone = block(tokens[:, k : k + 1], Coordinates(where.time[:, k : k + 1], where.space))
        torch.testing.assert_close(together[:, k : k + 1], alone)


def test_shift_adds_to_the_scaled_field():
    block, where = modulation(shift=True), coordinates(2, 5, 8)
    tokens = torch.randn(1, 1, 5, 8, dtype=torch.float64)
    shifted = block(tokens, where)
    nn.init.zeros_(block.shift.weight), nn.init.zeros_(block.shift.bias)
    unshifted = block(tokens, where)
    block.shift = None
    torch.testing.assert_close(block(tokens, where), unshifted)
    assert not torch.allclose(shifted, unshifted)


def test_without_attention_tokens_do_not_see_each_other():
    blocks = [TransformerBlock(8, None, nn.ReLU, 0.0).double(), modulation(attend=False)]
    where = coordinates(2, 5, 8)
    tokens = torch.randn(1, 1, 5, 8, dtype=torch.float64)
    disturbed = tokens.clone()
    disturbed[:, :, 0] += 1
    torch.testing.assert_close(blocks[0](tokens)[:, :, 1:], blocks[0](disturbed)[:, :, 1:])
    torch.testing.assert_close(blocks[1](tokens, where)[:, :, 1:], blocks[1](disturbed, where)[:, :, 1:])


def test_dropout_acts_in_training_only():
    block, where = modulation(dropout=0.5), coordinates(2, 5, 8)
    tokens = torch.randn(1, 1, 5, 8, dtype=torch.float64)
    assert not torch.equal(block(tokens, where), block(tokens, where))
    block.eval()
    assert torch.equal(block(tokens, where), block(tokens, where))


@pytest.mark.parametrize("shift", [False, True])
def test_gradients_of_a_modulation_block(shift):
    block = modulation(width=4, shift=shift)
    inputs = [torch.randn(2, 1, 3, 4, dtype=torch.float64), *coordinates(2, 3, 4)]
    inputs = [x.requires_grad_() for x in inputs]
    assert torch.autograd.gradcheck(lambda tokens, t, x: block(tokens, Coordinates(t, x)), inputs)


def test_gradients_of_a_transformer_block():
    block = TransformerBlock(4, LinearAttention(4, 2), nn.GELU, 0.0).double()
    tokens = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(block, tokens)
    assert torch.autograd.gradcheck(FeedForward(4, 8, nn.GELU, 3).double(), tokens)
