"""Fast implementations against their baselines, on the examples of an operation."""

from inspect import signature

import torch


def obstacle(operation, sizes):
    """Why an operation cannot serve inputs of these sizes, or None."""
    known = [name for name in signature(operation.obstacle).parameters if hasattr(sizes, name)]
    return operation.obstacle(**{name: getattr(sizes, name) for name in known})


def served(operation, candidates):
    """Those sizes that an operation serves, in types for which it says how exact it is; at least one."""
    found = [each for each in candidates if each.dtype in operation.tolerance and obstacle(operation, each) is None]
    assert found, f"{operation.name} serves none of {candidates}"
    return found


def half_types(operation):
    """The types that matter on a GPU."""
    return [dtype for dtype in operation.tolerance if dtype != torch.float32] or [torch.float32]


def outcome(function, inputs, dtype=None):
    """The results, without gradients; `dtype` is the type of the first input inside the function."""
    with torch.no_grad():
        found = function(*_first_as(inputs, dtype))
    return [found] if isinstance(found, torch.Tensor) else list(found)


def values_and_gradients(function, inputs, dtype=None):
    """The result, and the gradients of all inputs."""
    leaves = [each.detach().clone().requires_grad_() for each in inputs]
    out = function(*_first_as(leaves, dtype))
    upstream = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to(out)
    return [out.detach(), *torch.autograd.grad(out, leaves, upstream)]


def _first_as(inputs, dtype):
    return [inputs[0] if dtype is None else inputs[0].to(dtype), *inputs[1:]]


def change(found, expected):
    assert found.shape == expected.shape
    found, expected = found.to(torch.complex128), expected.to(torch.complex128)
    return float((found - expected).norm() / expected.norm())


def disagreement(example, dtype):
    """The largest ‖fast − baseline‖ / ‖baseline‖ of results and, where there are any, gradients."""
    if example.operation.differentiable:
        inputs = [each.to(dtype).float() for each in example.inputs]
        found = values_and_gradients(example.fast, inputs, dtype)
        expected = values_and_gradients(example.baseline, inputs)
    else:
        found, expected = outcome(example.fast, example.inputs), outcome(example.baseline, example.inputs)
        assert [each.dtype for each in found] == [each.dtype for each in expected]
    return max(change(*pair) for pair in zip(found, expected, strict=True))


def check(operation, sizes):
    """Every example of an operation."""
    torch.manual_seed(0)
    for example in operation.examples(sizes):
        found = disagreement(example, sizes.dtype)
        assert found < operation.tolerance[sizes.dtype], (example.label, sizes, found)
