"""The Galerkin Transformer: its published sizes, its attention as a dense sum, its way to coarse points and back."""

import pytest
import torch
import torch.nn.functional as F

from vcnef.grid import cell_centres
from vcnef.models.galerkin import GalerkinAttention, coarsen, galerkin, resize

TINY = {"width": 8, "heads": 2, "depth": 1, "hidden": 8, "modes": 2, "spectral_width": 4, "spectral_depth": 2}


@pytest.mark.parametrize(("ndim", "channels", "count"), [(1, 1, 530_305), (1, 3, 530_595), (2, 4, 8_053_091)])
def test_published_counts(ndim, channels, count):
    with torch.device("meta"):
        model = galerkin(ndim, channels)
    assert sum(weight.numel() for weight in model.parameters()) == count


@pytest.mark.parametrize(("ndim", "heads"), [(1, 1), (2, 2)])
def test_attention_is_a_dense_sum_over_tokens(ndim, heads):
    attention = GalerkinAttention(ndim, 6, heads).double()
    for weight in attention.parameters():
        torch.nn.init.normal_(weight)
    tokens, points, each = torch.randn(2, 5, 6).double(), torch.rand(1, 5, ndim).double(), 6 // heads
    heads_out = []
    for head in range(heads):
        columns = slice(head * each, (head + 1) * each)
        q, k, v = (linear(tokens)[..., columns] for linear in (attention.query, attention.key, attention.value))
        k, v = (
            F.layer_norm(
                values, (each,), attention.gain[row, head, 0], attention.shift[row, head, 0], attention.epsilon
            )
            for row, values in enumerate((k, v))
        )
        q, k, v = (torch.cat((points.expand(2, 5, ndim), values), dim=-1) for values in (q, k, v))
        # The matrix of all pairs, which the model never forms.
        heads_out.append((q @ k.mT) @ v / 5)
    torch.testing.assert_close(attention(tokens, points), attention.out(torch.cat(heads_out, dim=-1)))


def test_projections_begin_near_a_hundredth_of_the_identity():
    weight = GalerkinAttention(1, 96, 1).query.weight
    # Xavier's bound for 96 x 96 and gain 0.01.
    assert (weight - 0.01 * torch.eye(96)).abs().max() <= 0.01 * (6 / 192) ** 0.5 + 1e-8


def test_sizes_in_between():
    assert coarsen(64) == (44, 32)
    assert coarsen(1) == (1, 1)
    assert all(coarse <= between <= side for side in range(1, 200) for between, coarse in [coarsen(side)])


def test_a_resized_grid_lies_where_the_resized_field_does():
    grid = cell_centres(((0.0, 1.0), (-1.0, 1.0)), (12, 8))[None]
    linear = 2 * grid[..., :1] - 3 * grid[..., 1:] + 1
    coarse = resize(grid, (5, 4))
    torch.testing.assert_close(resize(linear, (5, 4)), 2 * coarse[..., :1] - 3 * coarse[..., 1:] + 1)


@pytest.mark.parametrize(
    ("ndim", "coarse", "sides"), [(1, False, (9,)), (1, True, (9,)), (2, True, (7, 5)), (2, False, (4, 6))]
)
def test_every_weight_matters_on_any_grid(ndim, coarse, sides):
    model = galerkin(ndim, 2, 1, **TINY, coarse=coarse, steps=2).double()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    grid = cell_centres(((0.0, 1.0),) * ndim, sides).double()
    u = model(torch.randn(3, *sides, 2).double(), grid, torch.tensor([1.0]).double(), torch.rand(3, 1).double())
    assert u.shape == (3, 1, *sides, 2)
    u.square().mean().backward()
    assert not [name for name, weight in model.named_parameters() if weight.grad.abs().max() == 0]


def test_dropout_ends_with_training():
    model = galerkin(1, 1, **TINY, dropout=0.5, steps=1)
    inputs = torch.randn(1, 9, 1), torch.rand(9, 1), torch.tensor([1.0])
    assert not torch.equal(model(*inputs), model(*inputs))
    model.eval()
    assert torch.equal(model(*inputs), model(*inputs))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ndim": 3}, "ndim is 3; expected 1 or 2"),
        ({"heads": 5}, "Width 96 cannot be divided among 5 heads"),
        ({"depth": 0}, "depth is 0; expected at least 1"),
        ({"dropout": 1.0}, "dropout is 1.0; expected a probability below 1"),
        ({"ndim": 2, "width": 2, "heads": 1}, "width is 2 where half of the points attend; expected at least 3"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        galerkin(**({"ndim": 1, "channels": 1} | options))
