import jaxtyping
import pytest
import torch
from torch import nn

import vcnef
from vcnef.grid import cell_centres
from vcnef.models.oformer import CrossAttention, EncoderLayer, attend, rotate, start_small

ANGLES = 256 * 10_000 ** (-torch.arange(0, 12, 2, dtype=torch.float64) / 12)


@pytest.fixture
def tokens():
    queries, keys, values = torch.randn(3, 2, 7, 12, dtype=torch.float64)
    return queries, keys, values, torch.rand(2, 7, 1, dtype=torch.float64)


@pytest.mark.parametrize(
    ("sizes", "count"),
    [
        ({"channels": 1, "params": 1}, 660_814),
        ({"channels": 3, "params": 2}, 662_733),
        ({"channels": 3, "params": 2, "norms": False}, 662_733 - 8 * 2 * 96),
        ({"channels": 1}, 660_814 - 95),
    ],
)
def test_the_published_counts(sizes, count):
    model = vcnef.build("oformer", ndim=1, **sizes)
    assert sum(p.numel() for p in model.parameters()) == count
    assert model.stepper.frequencies.std().item() == pytest.approx(2.0, rel=0.3)


def test_attention_is_the_dense_formula(tokens):
    """1/n Σ_j cos-and-sin-weighted products of features, each token normalised over its own features."""
    queries, keys, values, x = tokens

    def norm(each):
        return (each - each.mean(-1, keepdim=True)) / (each.var(-1, correction=0, keepdim=True) + 1e-5).sqrt()

    q, k = (torch.view_as_complex(norm(each).unflatten(-1, (2, 6)).mT.contiguous()) for each in (queries, keys))
    apart = (x[:, :, None] - x[:, None, :]) * ANGLES
    scores = (q[:, :, None] * k[:, None, :].conj() * torch.polar(torch.ones_like(apart), apart)).real.sum(-1)
    expected = torch.einsum("bij,bje->bie", scores, values) / 7
    torch.testing.assert_close(attend(queries, keys, values, x * ANGLES), expected)


def test_attention_depends_on_positions_through_their_differences(tokens):
    *others, x = tokens
    torch.testing.assert_close(attend(*others, (x + 0.37) * ANGLES), attend(*others, x * ANGLES), rtol=1e-9, atol=1e-9)
    assert (attend(*others, 1.1 * x * ANGLES) - attend(*others, x * ANGLES)).abs().max() > 0.1


def test_turning_keeps_lengths(tokens):
    queries, *_, x = tokens
    torch.testing.assert_close(rotate(queries, x * ANGLES).norm(dim=-1), queries.norm(dim=-1))


def test_norms_come_before_the_sum(tokens):
    queries, _, _, x = tokens
    layer = EncoderLayer(12, norms=True).double()
    for weight in (layer.project.weight, *layer.feed_forward.out.parameters()):
        nn.init.zeros_(weight)
    normed = nn.functional.layer_norm(queries, (12,))
    torch.testing.assert_close(layer(queries, x * ANGLES), nn.functional.layer_norm(normed, (12,)))


def test_cross_attention_is_the_sum_of_its_heads(tokens):
    points, latent, _, x = tokens
    cross = CrossAttention(12, 3).double()
    keys, values = cross.key_value(latent).chunk(2, dim=-1)
    heads = [slice(12 * head, 12 * head + 12) for head in range(3)]
    parts = [attend(cross.query(points)[..., e], keys[..., e], values[..., e], x * ANGLES) for e in heads]
    torch.testing.assert_close(cross(points, latent, x * ANGLES), cross.out(torch.cat(parts, dim=-1)))


def test_initial_weights_are_orthogonal_plus_identity_and_small():
    weight = torch.empty(24, 12, dtype=torch.float64)
    start_small(weight)
    for block in (12 * weight).split(12):
        rest = block - torch.eye(12, dtype=torch.float64)
        torch.testing.assert_close(rest @ rest.mT, torch.eye(12, dtype=torch.float64))


@pytest.mark.parametrize("channels", [1, 2])
def test_points_may_come_in_any_order(channels):
    model = vcnef.build("oformer", ndim=1, channels=channels, params=1, width=16).double()
    u, params = torch.randn(2, 20, channels, dtype=torch.float64), torch.rand(2, 1, dtype=torch.float64)
    grid, order = cell_centres([(-1.0, 1.0)], 20, dtype=torch.float64), torch.randperm(20)
    shuffled = model.stepper(u[:, order], grid[order], params)
    torch.testing.assert_close(shuffled, model.stepper(u, grid, params)[:, order])
    each = model.stepper(u, torch.stack([grid, grid + 0.1]), params)
    torch.testing.assert_close(each[:1], model.stepper(u[:1], grid[None], params[:1]))
    torch.testing.assert_close(each[1:], model.stepper(u[1:], grid[None] + 0.1, params[1:]))


def test_it_refuses_what_it_cannot_be(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match="ndim is 2; expected 1, since OFormer is here for 1D only"):
        vcnef.build("oformer", ndim=2, channels=1)
    with pytest.raises(ValueError, match="width is 9; expected an even number"):
        vcnef.build("oformer", ndim=1, channels=1, width=9)
