import pytest
import torch
import torch.nn.functional as F

from vcnef.models.vcnef import LinearAttention, SoftmaxAttention


def explicit_kernel_attention(attention: LinearAttention, tokens: torch.Tensor) -> torch.Tensor:
    """The kernel matrix κ_ij = φ(q_i)·φ(k_j), head by head, rows normalised: no associativity, no folding."""
    heads = []
    width = tokens.shape[-1] // attention.heads
    for h in range(attention.heads):
        own = slice(h * width, (h + 1) * width)
        queries = F.elu(attention.query(tokens)[..., own]) + 1
        keys = F.elu(attention.key(tokens)[..., own]) + 1
        kernel = queries @ keys.mT
        heads.append(kernel / kernel.sum(-1, keepdim=True) @ attention.value(tokens)[..., own])
    return attention.out(torch.cat(heads, dim=-1))


@pytest.mark.parametrize("heads", [1, 2, 4])
@pytest.mark.parametrize("leading", [(), (3,), (2, 1), (2, 5)])
def test_linear_attention_is_the_explicit_kernel_matrix(heads, leading):
    attention = LinearAttention(12, heads).double()
    tokens = torch.randn(*leading, 17, 12, dtype=torch.float64)
    torch.testing.assert_close(attention(tokens), explicit_kernel_attention(attention, tokens), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("attention", [LinearAttention, SoftmaxAttention])
def test_attention_is_permutation_equivariant(attention):
    attend = attention(16, 4).double()
    tokens, order = torch.randn(2, 9, 16, dtype=torch.float64), torch.randperm(9)
    torch.testing.assert_close(attend(tokens)[:, order], attend(tokens[:, order]))


@pytest.mark.parametrize("attention", [LinearAttention, SoftmaxAttention])
def test_gradients(attention):
    attend = attention(6, 2).double()
    tokens = torch.randn(2, 5, 6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(attend, tokens)
    parameters = [p.detach().requires_grad_() for p in attend.parameters()]
    names = [name for name, _ in attend.named_parameters()]

    def from_weights(*weights):
        return torch.func.functional_call(attend, dict(zip(names, weights, strict=True)), tokens.detach())

    assert torch.autograd.gradcheck(from_weights, parameters)


def test_softmax_attention_matches_torch():
    attend = SoftmaxAttention(8, 2).double()
    reference = torch.nn.MultiheadAttention(8, 2, batch_first=True, dtype=torch.float64)
    reference.in_proj_weight.data = torch.cat([attend.query.weight, attend.key.weight, attend.value.weight])
    reference.in_proj_bias.data = torch.cat([attend.query.bias, attend.key.bias, attend.value.bias])
    reference.out_proj.load_state_dict(attend.out.state_dict())
    tokens = torch.randn(3, 7, 8, dtype=torch.float64)
    torch.testing.assert_close(attend(tokens), reference(tokens, tokens, tokens)[0])


def test_softmax_attention_of_several_batch_axes_is_one_after_the_other():
    attend, tokens = SoftmaxAttention(8, 2).double(), torch.randn(2, 3, 5, 8, dtype=torch.float64)
    together = attend(tokens)
    for i, j in ((0, 0), (0, 2), (1, 1)):
        torch.testing.assert_close(together[i, j], attend(tokens[i, j]))


@pytest.mark.parametrize("attention", [LinearAttention, SoftmaxAttention])
@pytest.mark.parametrize("leading", [(3,), (2, 3)])
def test_derivatives_forwards(attention, leading):
    attend = attention(8, 2).double()
    tokens, direction = torch.randn(2, *leading, 5, 8, dtype=torch.float64)
    _, slope = torch.func.jvp(attend, (tokens,), (direction,))
    difference = attend(tokens + 1e-6 * direction) - attend(tokens - 1e-6 * direction)
    torch.testing.assert_close(slope, difference / 2e-6, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("attention", [LinearAttention, SoftmaxAttention])
def test_heads_must_divide_the_width(attention):
    with pytest.raises(ValueError, match="Width 10 cannot be divided among 3 heads"):
        attention(10, 3)
