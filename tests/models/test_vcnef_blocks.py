import pytest
import torch
from torch import Tensor, nn

from vcnef.models.vcnef import CoordinateBranch, LinearAttention, ModulationBlock, Nothing, TransformerBlock
from vcnef.nn.layers import FeedForward


def draw(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64)


def modulation(width: int = 8, *, shift: bool = False, dropout: float = 0.0, attend: bool = True) -> ModulationBlock:
    branch = CoordinateBranch(width, nn.GELU, nonlinear=True, residual=True)
    attention = LinearAttention(width, 2) if attend else Nothing()
    return ModulationBlock(width, attention, branch, nn.GELU, shift=shift, dropout=dropout).double()


def test_one_time_axis_of_size_one_serves_all_times():
    block, c = modulation(), draw(1, 3, 5, 8)
    tokens = draw(2, 1, 5, 8)
    torch.testing.assert_close(block(tokens, c), block(tokens.expand(-1, 3, -1, -1), c))


def test_query_times_do_not_interact():
    block, c = modulation(), draw(1, 4, 5, 8)
    tokens = draw(2, 4, 5, 8)
    together = block(tokens, c)
    for k in range(4):
        alone = block(tokens[:, k : k + 1], c[:, k : k + 1])
        torch.testing.assert_close(together[:, k : k + 1], alone)


def test_shift_adds_to_the_scaled_field():
    block, c = modulation(shift=True), draw(1, 2, 5, 8)
    tokens = draw(1, 1, 5, 8)
    shifted = block(tokens, c)
    nn.init.zeros_(block.shift.weight), nn.init.zeros_(block.shift.bias)
    unshifted = block(tokens, c)
    block.shift = Nothing()
    torch.testing.assert_close(block(tokens, c), unshifted)
    assert not torch.allclose(shifted, unshifted)


def test_without_attention_tokens_do_not_see_each_other():
    blocks = [TransformerBlock(8, Nothing(), nn.ReLU, 0.0).double(), modulation(attend=False)]
    c = draw(1, 2, 5, 8)
    tokens = draw(1, 1, 5, 8)
    disturbed = tokens.clone()
    disturbed[:, :, 0] += 1
    torch.testing.assert_close(blocks[0](tokens)[:, :, 1:], blocks[0](disturbed)[:, :, 1:])
    torch.testing.assert_close(blocks[1](tokens, c)[:, :, 1:], blocks[1](disturbed, c)[:, :, 1:])


def test_dropout_acts_in_training_only():
    block, c = modulation(dropout=0.5), draw(1, 2, 5, 8)
    tokens = draw(1, 1, 5, 8)
    assert not torch.equal(block(tokens, c), block(tokens, c))
    block.eval()
    assert torch.equal(block(tokens, c), block(tokens, c))


@pytest.mark.parametrize("shift", [False, True])
def test_gradients_of_a_modulation_block(shift):
    block = modulation(width=4, shift=shift)
    inputs = [x.requires_grad_() for x in (draw(2, 1, 3, 4), draw(1, 2, 3, 4))]
    assert torch.autograd.gradcheck(block, inputs)


def test_gradients_of_a_transformer_block():
    block = TransformerBlock(4, LinearAttention(4, 2), nn.GELU, 0.0).double()
    tokens = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(block, tokens)
    assert torch.autograd.gradcheck(FeedForward(4, 8, nn.GELU, 3).double(), tokens)
