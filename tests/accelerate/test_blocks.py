"""Blocks layer by layer give what the blocks of the model give."""

import pytest
import torch
from torch import nn

from vcnef.accelerate.arithmetic import TRAINING, inference
from vcnef.accelerate.blocks import Coordinates, LayeredBlock, ReferenceBlock, branch_of_sums, branches_together
from vcnef.models.vcnef import (
    CoordinateBranch,
    LinearAttention,
    ModulationBlock,
    Nothing,
    SoftmaxAttention,
    TransformerBlock,
)

TABLES = {"training": TRAINING, "inference": inference(torch.device("cpu"), None)}
KNOWN = {"attention", "local", "branch"}


def draw(*shape):
    return torch.randn(shape, dtype=torch.float64)


def coordinates(batch=1):
    return Coordinates(draw(batch, 4, 8), draw(batch, 5, 8))


def branch(*, nonlinear=True, residual=False, activation=nn.GELU):
    return CoordinateBranch(8, activation, nonlinear=nonlinear, residual=residual).double()


def modulation(attention, *, shift=False):
    return ModulationBlock(8, attention, branch(), nn.ReLU, shift=shift, dropout=0.0).double()


def transformer(attention):
    return TransformerBlock(8, attention, nn.GELU, dropout=0.0).double()


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize(("nonlinear", "residual"), [(True, False), (True, True), (False, False), (False, True)])
@torch.no_grad()
def test_the_branch_on_sums_is_the_branch_on_joined_coordinates(nonlinear, residual, batch, table):
    each, where = branch(nonlinear=nonlinear, residual=residual), coordinates(batch)
    torch.testing.assert_close(branch_of_sums(each, where, TABLES[table]), each(where.joined()))


@pytest.mark.parametrize("nonlinear", [True, False])
def test_branches_together_are_each_of_them(nonlinear):
    branches, where = [branch(nonlinear=nonlinear) for _ in range(3)], coordinates()
    expected = torch.stack([each(where.joined()) for each in branches])
    torch.testing.assert_close(branches_together(branches, where), expected)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("shift", [True, False])
@pytest.mark.parametrize("attention", [LinearAttention(8, 2), SoftmaxAttention(8, 2), Nothing()])
@torch.no_grad()
def test_a_modulation_block_in_two_steps_is_the_block(attention, shift, table):
    block, where = modulation(attention, shift=shift), coordinates()
    layered = LayeredBlock(block, TABLES[table], KNOWN).prepare()
    for z in (draw(2, 1, 5, 8), draw(2, 4, 5, 8)):
        given, field = z.clone(), layered.field(where)
        torch.testing.assert_close(layered.finish(layered.begin(z, ()), field), block(z, where.joined()))
        assert torch.equal(z, given)
    torch.testing.assert_close(layered.apply(z, field, ()), block(z, where.joined()))


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("attention", [LinearAttention(8, 2), SoftmaxAttention(8, 2), Nothing()])
@torch.no_grad()
def test_a_transformer_block_is_the_block(attention, table):
    block, z = transformer(attention), draw(2, 5, 8)
    torch.testing.assert_close(LayeredBlock(block, TABLES[table], KNOWN).prepare().transform(z, ()), block(z))


class Wave(nn.Module):
    """A branch that nobody knows."""

    def forward(self, c):
        return c.sin()


@pytest.mark.parametrize("table", TABLES)
@torch.no_grad()
def test_parts_that_are_not_known_are_called_and_keep_what_they_give(table):
    """An attention may give its own tokens, whose memory is not the norm's to take."""
    block, where, z = modulation(nn.Identity()), coordinates(), draw(2, 4, 5, 8)
    block.branch, given = Wave(), z.clone()
    layered = LayeredBlock(block, TABLES[table], {"local"}).prepare()
    torch.testing.assert_close(layered.apply(z, layered.field(where), ()), block(z, where.joined()))
    assert torch.equal(z, given)


@torch.no_grad()
def test_the_block_itself_has_the_same_methods():
    where, z = coordinates(), draw(2, 4, 5, 8)
    block, other = modulation(LinearAttention(8, 2)), transformer(LinearAttention(8, 2))
    reference, expected = ReferenceBlock(block), block(z, where.joined())
    field = reference.field(where)
    assert torch.equal(reference.finish(reference.begin(z, ()), field), expected)
    assert torch.equal(reference.apply(z, field, ()), expected)
    assert torch.equal(ReferenceBlock(other).transform(z[:, 0], ()), other(z[:, 0]))
