"""Attention with less work is the attention of the model."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from vcnef.accelerate.arithmetic import TRAINING, inference
from vcnef.accelerate.attention import joined_softmax_attention, membership, unbiased_linear_attention
from vcnef.models.vcnef import LinearAttention, SoftmaxAttention


def linear(attention, z, table=TRAINING):
    return unbiased_linear_attention(attention, z, table, membership(attention)) + attention.out.bias


def softmax(attention, z):
    return attention.out(joined_softmax_attention(attention, z))


WAYS = [(LinearAttention, linear), (SoftmaxAttention, softmax)]


@pytest.mark.parametrize("leading", [(), (3,), (2, 1), (2, 5)])
@pytest.mark.parametrize("heads", [1, 2, 4])
@pytest.mark.parametrize(("kind", "attend"), WAYS)
def test_it_is_the_models_with_gradients(kind, attend, heads, leading):
    attention, z = kind(12, heads).double(), torch.randn(*leading, 17, 12, dtype=torch.float64, requires_grad=True)

    def outcome(way):
        out = way(attention, z)
        return out, *torch.autograd.grad(out.square().sum(), [z, *attention.parameters()])

    # The model's small number in the normaliser is of another size where tokens are many.
    torch.testing.assert_close(outcome(attend), outcome(lambda attention, z: attention(z)), rtol=1e-5, atol=1e-7)


@torch.no_grad()
def test_without_gradients_it_is_the_same_and_the_tokens_stay():
    attention, z = LinearAttention(12, 3), torch.randn(2, 3, 17, 12)
    given = z.clone()
    torch.testing.assert_close(linear(attention, z, inference(torch.device("cpu"), None)), attention(z))
    assert torch.equal(z, given)


@torch.no_grad()
def test_sums_over_many_tokens_fit_half_precision():
    attention, z = LinearAttention(8, 2), 3 * torch.randn(1, 200_000, 8)
    expected = attention(z)
    found = linear(attention.half(), z.half())
    assert (found.float() - expected).norm() < 0.02 * expected.norm()


class Largest(TorchDispatchMode):
    """Notes the number of values of the largest tensor that is made."""

    count = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        made = operation(*args, **(kwargs or {}))
        self.count = max(self.count, *(each.numel() for each in tree_leaves(made) if isinstance(each, torch.Tensor)))
        return made


@pytest.mark.parametrize("leading", [(), (6,), (2, 3)])
def test_softmax_attention_never_stores_the_weights_of_all_pairs(leading):
    attention, z = SoftmaxAttention(8, 2), torch.randn(*leading, 100, 8)
    with Largest() as largest:
        softmax(attention, z).sum().backward()
    assert largest.count < z.numel() / 8 * 100


def test_softmax_attention_of_several_batch_axes_is_one_after_the_other():
    attention, z = SoftmaxAttention(8, 2).double(), torch.randn(2, 3, 5, 8, dtype=torch.float64)
    together = softmax(attention, z)
    for i, j in ((0, 0), (0, 2), (1, 1)):
        torch.testing.assert_close(together[i, j], softmax(attention, z[i, j]))
