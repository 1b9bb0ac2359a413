"""Whether the fast code knows a part of a model: it is of exactly a known type, and nothing about it was changed.

Anything else is called as it is. So a subclass, an overridden method, a hook, a parametrization or a module put in
place of another is never silently replaced by the original.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from inspect import isclass, isfunction
from types import ModuleType
from typing import Any

from torch import nn
from torch.nn.modules import module as torch_module

from vcnef.models import vcnef, vcnef_beyond
from vcnef.models.interface import TrajectoryModel
from vcnef.models.vcnef import (
    CoordinateBranch,
    FourierCoordinates,
    LinearAttention,
    LinearCoordinates,
    ModulationBlock,
    Nothing,
    PatchDecoder,
    PatchEncoder,
    PointDecoder,
    PointEncoder,
    SoftmaxAttention,
    TransformerBlock,
    VCNeF,
)
from vcnef.models.vcnef_beyond import Clocks, InterleavedVCNeF, SpectralMixing, Stencil
from vcnef.nn import layer_norm, layers, patching
from vcnef.nn.layer_norm import LayerNorm
from vcnef.nn.layers import FeedForward

HOOKS = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
)
GLOBAL_HOOKS = (
    "_global_forward_hooks",
    "_global_forward_pre_hooks",
    "_global_backward_hooks",
    "_global_backward_pre_hooks",
)
SOURCES = (vcnef, vcnef_beyond, layers, layer_norm, patching)
LIBRARIES = {"vcnef", "torch", "einops", "jaxtyping", *sys.stdlib_module_names}
"""Where functions in the namespaces of these files come from, unless somebody has put another one there."""

COMPILED = ("__compiled_fn", "__resume_at")
"""How the names of functions begin that torch.compile puts into the files of what it compiles."""


def _always(part: nn.Module) -> bool:
    return True


def _has_bias(part: nn.Module) -> bool:
    return part.bias is not None


def _plain_norm(part: nn.LayerNorm) -> bool:
    return part.weight is not None and part.bias is not None and len(part.normalized_shape) == 1


def _without_overlap(part: nn.Module) -> bool:
    """Return whether strides are as long as the kernel, and nothing is padded, dilated or grouped."""
    padded = any(part.padding) or any(part.output_padding)
    return part.stride == part.kernel_size and not padded and set(part.dilation) == {1} and part.groups == 1


def _widens_and_narrows(part: FeedForward) -> bool:
    kinds = [type(each) for each in part]
    return len(kinds) == 3 and kinds[0] is kinds[2] is nn.Linear and kinds[1] in (nn.ReLU, nn.GELU)


def _projects(part: nn.Sequential) -> bool:
    """Return whether a part is the nonlinear one of a coordinate branch, or convolution, GELU and convolution of an
    encoder."""
    kinds = [type(each) for each in part]
    branch = len(kinds) == 2 and kinds[0] in (nn.ReLU, nn.GELU) and kinds[1] is nn.Linear
    return branch or (len(kinds) == 3 and kinds[0] is kinds[2] in CONVOLUTIONS and kinds[1] is nn.GELU)


CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
NORMS = (LayerNorm, nn.LayerNorm)

KNOWN: dict[type[nn.Module], Callable[[nn.Module], bool]] = {
    **dict.fromkeys(
        (
            *(VCNeF, InterleavedVCNeF, TransformerBlock, ModulationBlock, CoordinateBranch, Nothing, Stencil),
            *(SpectralMixing, Clocks),
            *(LinearAttention, SoftmaxAttention, PointEncoder, PatchEncoder, LinearCoordinates, FourierCoordinates),
            *(PointDecoder, PatchDecoder, nn.ModuleList, nn.Identity, nn.Dropout, nn.ReLU),
        ),
        _always,
    ),
    nn.Linear: _has_bias,
    nn.GELU: lambda part: part.approximate == "none",
    nn.Sequential: _projects,
    FeedForward: _widens_and_narrows,
    **dict.fromkeys(NORMS, _plain_norm),
    **dict.fromkeys((*CONVOLUTIONS, *TRANSPOSED), _without_overlap),
}
"""Types that the fast code knows, and whether it knows one that is set up so."""


def change_in(part: nn.Module, kinds: Iterable[type[nn.Module]], *, leave_out: Iterable[str] = ()) -> str | None:
    """Return what is different about a part, which should be of one of these kinds, or about a part in it; None if
    nothing.

    `leave_out` names children that are asked about on their own.
    """
    if type(part) not in kinds:
        return f"its type is {type(part).__name__}"
    found = _own_change(part)
    if found is not None:
        return found
    for name, child in part._modules.items():
        if name not in leave_out and child is not None:
            found = change_in(child, KNOWN)
            if found is not None:
                return f"{name}: {found}"
    return None


def change_everywhere() -> str | None:
    """Return what is different for all models of this process, or None."""
    if _global_hooks():
        return "hooks for all modules are registered"
    for base, methods in WRITTEN.items():
        for name, function in _callables(base).items():
            if methods.get(name) is not function:
                return f"{base.__name__}.{name} was replaced"
    for source in SOURCES:
        name = _replaced_function(source)
        if name is not None:
            return f"{source.__name__}.{name} was replaced"
    return None


def calls_more(model: TrajectoryModel) -> bool:
    """Return whether a call of the model may do more than its `encode` and `query` do: by a `forward` of its own, or
    hooks."""
    own_forward = type(model).forward is not TrajectoryModel.forward or "forward" in vars(model)
    return own_forward or _has_hooks(model) or _global_hooks()


def _has_hooks(part: nn.Module) -> bool:
    return any(vars(part)[name] for name in HOOKS)


def _global_hooks() -> bool:
    return any(getattr(torch_module, name) for name in GLOBAL_HOOKS)


def _own_change(part: nn.Module) -> str | None:
    kind = type(part)
    if _has_hooks(part):
        return "it has hooks"
    replaced = METHODS[kind].intersection(vars(part))
    if replaced:
        return f"its {min(replaced)} was replaced"
    return None if KNOWN[kind](part) else f"this {kind.__name__} is set up otherwise"


def _replaced_function(source: ModuleType) -> str | None:
    for name, value in vars(source).items():
        # What torch.compile makes of a part lies here too, and replaces nothing.
        if name.startswith(COMPILED):
            continue
        if isfunction(value) and str(value.__module__).split(".", 1)[0] not in LIBRARIES:
            return name
    return None


def _callables(base: type) -> dict[str, Any]:
    return {name: value for name, value in vars(base).items() if callable(value) and not isclass(value)}


def _methods_as_written(base: type) -> dict[str, Any]:
    """Return the methods of a class, but for those that somebody has put there: a function says where it was
    written."""
    methods = {}
    for name, value in _callables(base).items():
        where = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
        if where == (base.__module__, f"{base.__qualname__}.{name}"):
            methods[name] = value
    return methods


def _bases(kind: type[nn.Module]) -> list[type]:
    return [base for base in kind.__mro__ if issubclass(base, nn.Module) and base is not nn.Module]


METHODS = {kind: {name for name in dir(kind) if callable(getattr(kind, name))} for kind in KNOWN}
"""The names of each type's methods, none of which may stand in an instance."""

WRITTEN = {base: _methods_as_written(base) for kind in KNOWN for base in _bases(kind)}
"""The methods of the known types and of their bases, as they were when this module was imported."""
