"""The seam: given a model, an engine that computes what it computes, faster where every part of it is known.

It is asked once, before a prediction or a training run. Parts that are unknown, or known but changed, are called as
they are (`recognise.py`), and a model that is no VCNeF runs itself. What is decided stands in the engine's `plan`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd import forward_ad

from vcnef.accelerate.arithmetic import TRAINING, Arithmetic, inference
from vcnef.accelerate.blocks import LayeredBlock, ReferenceBlock
from vcnef.accelerate.kernels.requirements import WIDEST_NORM, obstacle, switched_off
from vcnef.accelerate.numbers import HALF, cpu_multiplies_bf16
from vcnef.accelerate.patches import decode_patches, encode_patches
from vcnef.accelerate.recognise import change_everywhere, change_in
from vcnef.accelerate.stencil import convolve_tokens
from vcnef.accelerate.trajectory import FastVCNeF, Parts
from vcnef.models.interface import TrajectoryModel
from vcnef.models.vcnef import (
    CoordinateBranch,
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
from vcnef.models.vcnef_beyond import InterleavedVCNeF, Stencil
from vcnef.nn.layers import full_precision, join_inputs

log = logging.getLogger(__name__)

FEW = 4
"""Up to this many input features, a sum of scaled columns compiles better than a product."""

MOST_CHANNELS = 8
"""Of a decoder that trains as a kernel."""


class Reference:
    """The model itself."""

    half = None

    def __init__(self, model: nn.Module, why: str) -> None:
        self.model, self.plan = model, {"model": f"reference: {why}"}

    def encode(self, *question: Tensor | None) -> Any:
        return self.model.encode(*question)

    def query_in_parts(self, latent: Any, t: Tensor, times: int) -> Iterator[Float[Tensor, "b part *x c"]]:
        return self.model.query_in_parts(latent, t, times)


Engine = FastVCNeF | Reference


@dataclass(frozen=True)
class Setting:
    """Where and how an engine is to compute."""

    device: torch.device
    half: torch.dtype | None
    training: bool
    compiled: bool = False

    @property
    def kernels(self) -> bool:
        """Whether fused kernels are in question at all."""
        return self.device.type == "cuda" and self.half is not None


def inference_engine(model: TrajectoryModel, device: torch.device, precision: str) -> Engine:
    """The engine of a prediction; `precision` as in `predict`."""
    half = HALF[precision]
    if device.type == "cpu" and not (half is torch.bfloat16 and cpu_multiplies_bf16()):
        half = None
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0:
        return Reference(model, "somebody traces or differentiates the prediction")
    return _engine(model, Setting(device, half, training=False))


def training_engine(
    model: nn.Module, device: torch.device, half: torch.dtype | None, *, compiled: bool
) -> Engine:
    """The engine of a training run, also of a single step of a model that steps; `half` is what autocasting chooses."""
    return _engine(model, Setting(device, half, training=True, compiled=compiled))


def _engine(model: nn.Module, setting: Setting) -> Engine:
    why = _obstacle_of_model(model, setting)
    engine = Reference(model, why) if why else _build(model, setting)
    _log_once("; ".join(f"{part}: {how}" for part, how in engine.plan.items()))
    return engine


@cache
def _log_once(plan: str) -> None:
    log.info("How the parts of the model run: %s.", plan)


def _obstacle_of_model(model: nn.Module, setting: Setting) -> str | None:
    """Why the model as a whole runs as it is, or None."""
    if not isinstance(model, VCNeF):
        return f"{type(model).__name__} has no other way to run"
    if switched_off():
        return "VCNEF_KERNELS is 0"
    children = [name for name, _ in model.named_children()]
    found = change_everywhere() or change_in(model, (VCNeF, InterleavedVCNeF), leave_out=children)
    if found is None and not model.modulations:
        return "it has no modulation block"
    if found is None and setting.kernels and next(model.parameters()).dtype != torch.float32:
        return f"its weights are {next(model.parameters()).dtype}, where half precision starts from torch.float32"
    return found


def _build(model: VCNeF, setting: Setting) -> FastVCNeF:
    builder = _Builder(model, setting)
    return FastVCNeF(model, builder.parts(), builder.plan, setting.half)


class _Builder:
    """Decides part by part, and writes down how each is computed and why."""

    def __init__(self, model: VCNeF, setting: Setting) -> None:
        self.model, self.setting = model, setting
        self.plan: dict[str, str] = {}
        norms = [norm for block in model.modulations for norm in block.children() if type(norm) is nn.LayerNorm]
        width = max([norm.normalized_shape[-1] for norm in norms], default=0)
        self.no_kernels = obstacle(setting.device, torch.float32, width, widest=WIDEST_NORM)
        if setting.half is None and self.no_kernels is None:
            self.no_kernels = "products are in single precision"
        self.plan["fused kernels"] = "yes" if self.no_kernels is None else f"none: {self.no_kernels}"
        self.arithmetic = self._arithmetic()

    def parts(self) -> Parts:
        model = self.model
        *blocks, norm = model.blocks
        encoder, coordinates = self.encoder(), self.coordinates()
        transforms = [self.block(f"blocks.{k}", each, TransformerBlock) for k, each in enumerate(blocks)]
        last_norm = self.last_norm(norm)
        modulations = [
            self.block(f"modulations.{k}", each, ModulationBlock) for k, each in enumerate(model.modulations)
        ]
        decoder = self.decoder()
        return Parts(
            encoder,
            *coordinates,
            transforms,
            last_norm,
            modulations,
            decoder,
            line=self.is_line(modulations[0]),
            branches_at_once=self.branches_at_once(modulations),
            decodes_last=hasattr(modulations[-1], "weights") and hasattr(decoder, "weights"),
        )

    def block(self, name: str, block: nn.Module, kind: type[nn.Module]) -> Any:
        changed = change_in(block, (kind,), leave_out=("attention", "local", "branch"))
        if changed is None and block.training and type(block.dropout) is nn.Dropout:
            changed = "dropout is active"
        if changed is not None:
            self.plan[name] = f"reference: {changed}"
            return ReferenceBlock(block)
        known = set()
        for part, kinds in CHILDREN.items():
            if hasattr(block, part):
                found = change_in(getattr(block, part), kinds)
                if found is None:
                    known.add(part)
                else:
                    self.plan[f"{name}.{part}"] = f"reference: {found}"
        layered = LayeredBlock(block, self.arithmetic, known)
        why_not_whole = self.obstacle_of_block(layered)
        layered.local = self.local(block, known, packed=not self.setting.training and why_not_whole is None)
        if why_not_whole is not None:
            self.plan[name] = f"layer by layer, {self.how()}" + ("" if self.no_kernels else f": {why_not_whole}")
            return layered.prepare()
        from vcnef.accelerate.gpu import PackedBlock, TrainedBlock

        self.plan[name] = f"fused kernels, {self.how()}"
        kind = TrainedBlock if self.setting.training else PackedBlock
        return kind(layered, self.setting.half)

    def obstacle_of_block(self, layered: LayeredBlock) -> str | None:
        """Why a block does not run as kernels of whole layers, or None."""
        block, training = layered.block, self.setting.training
        if self.no_kernels is not None:
            return self.no_kernels
        if not layered.linear and not (training and "attention" not in layered.known):
            return "kernels of whole layers are for linear attention"
        if type(getattr(block, "shift", Nothing())) is not Nothing:
            return "kernels of whole layers have no shift"
        norms = [child for child in block.children() if type(child) is nn.LayerNorm]
        if len({norm.eps for norm in norms}) > 1:
            return "its norms differ in eps"
        heads = block.attention.heads if layered.linear else 1
        return obstacle(self.setting.device, torch.float32, block.mlp_norm.normalized_shape[0], heads)

    def local(self, block: nn.Module, known: set[str], *, packed: bool) -> Callable[[Tensor, tuple], Tensor] | None:
        """How the neighbours of a block's tokens are mixed; None where there is nothing to mix."""
        stencil = block.local
        if "local" not in known:
            return lambda z, sides: stencil(z, sides).clone()
        if type(stencil) is Nothing:
            return None
        if self.no_kernels is None:
            from vcnef.accelerate.gpu import packed_local, trained_local

            return packed_local(stencil, self.setting.half) if packed else trained_local(stencil)
        if self.setting.device.type == "cpu" and not self.setting.compiled:
            return partial(convolve_tokens, stencil)
        return stencil

    def encoder(self) -> Callable[..., Tensor]:
        encoder = self.model.encoder
        changed = change_in(encoder, (PointEncoder, PatchEncoder))
        if changed is not None:
            self.plan["encoder"] = f"reference: {changed}"
            return encoder
        if type(encoder) is PatchEncoder:
            self.plan["encoder"] = "products over patches"
            return partial(encode_patches, encoder)
        self.plan["encoder"] = "one product"
        return partial(_encode_points, encoder) if self.few_as_sums else encoder

    def coordinates(self) -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]:
        coordinates = self.model.coordinates
        if self.few_as_sums and self.has_linear_coordinates():
            return partial(_encode_space, coordinates), partial(_encode_time, coordinates)
        return coordinates.encode_space, coordinates.encode_time

    def last_norm(self, norm: nn.Module) -> Callable[[Tensor], Tensor]:
        changed = change_in(norm, (nn.LayerNorm,))
        if changed is not None:
            self.plan["blocks.norm"] = f"reference: {changed}"
            return norm
        return lambda z: self.arithmetic.add_norm(z, None, None, norm)

    def decoder(self) -> Any:
        decoder = self.model.decoder
        changed = change_in(decoder, (PointDecoder, PatchDecoder))
        if changed is not None:
            self.plan["decoder"] = f"reference: {changed}"
            return decoder
        if type(decoder) is PatchDecoder:
            self.plan["decoder"] = f"products over patches, {self.how()}"
            return partial(decode_patches, decoder, arithmetic=self.arithmetic)
        why_not = self.no_kernels or obstacle(self.setting.device, torch.float32, decoder.norm.normalized_shape[0])
        if why_not is None and self.setting.training and decoder.mlp[2].out_features > MOST_CHANNELS:
            why_not = f"more than {MOST_CHANNELS} channels"
        if why_not is not None:
            self.plan["decoder"] = f"layer by layer, {self.how()}" + ("" if self.no_kernels else f": {why_not}")
            return partial(_decode_points, decoder, self.arithmetic)
        from vcnef.accelerate.gpu import PackedDecoder, trained_decoder

        self.plan["decoder"] = f"fused kernels, {self.how()}"
        make = trained_decoder if self.setting.training else PackedDecoder
        return make(decoder, self.setting.half)

    def is_line(self, first: Any) -> bool:
        """Whether the first modulation is linear in t: no nonlinear MLP(C), and coordinates linear in t.

        Kernels compute it at every time, which is as fast as following a line.
        """
        if type(first) is not LayeredBlock or "branch" not in first.known or self.setting.training:
            return False
        branch = first.block.branch
        straight = type(branch.project) is nn.Identity and type(branch.residual) is Nothing
        return straight and self.has_linear_coordinates() and type(self.model.clocks) is Nothing

    def branches_at_once(self, modulations: list[Any]) -> bool:
        """Whether MLP(C) of all blocks is computed by the same products, which small steps on a GPU gain from."""
        if not (self.setting.training and self.setting.device.type == "cuda"):
            return False
        layered = [each if type(each) is LayeredBlock else getattr(each, "layered", None) for each in modulations]
        if not all(each is not None and "branch" in each.known for each in layered):
            return False
        branches = [each.block.branch for each in layered]
        kinds = {(type(each.project), tuple(map(type, each.project.children()))) for each in branches}
        return len(kinds) == 1 and all(type(each.residual) is Nothing for each in branches)

    def has_linear_coordinates(self) -> bool:
        return change_in(self.model.coordinates, (LinearCoordinates,)) is None

    @property
    def few_as_sums(self) -> bool:
        return self.setting.compiled and self.setting.device.type == "cuda"

    def how(self) -> str:
        if self.setting.half is None:
            return "single precision" if _like(self.model).dtype == torch.float32 else "as precise as the weights"
        return str(self.setting.half).removeprefix("torch.")

    def _arithmetic(self) -> Arithmetic:
        setting = self.setting
        if self.no_kernels is None:
            from vcnef.accelerate.gpu import half_arithmetic

            return half_arithmetic(setting.device, setting.half, training=setting.training)
        return TRAINING if setting.training else inference(setting.device, setting.half)


CHILDREN = {
    "attention": (LinearAttention, SoftmaxAttention, Nothing),
    "local": (Stencil, Nothing),
    "branch": (CoordinateBranch,),
}
"""Parts of a block that are asked about on their own, and the types that are known there."""


def _like(model: nn.Module) -> Tensor:
    return next(model.parameters())


def _decode_points(
    decoder: PointDecoder, arithmetic: Arithmetic, z: Float[Tensor, "b t s d"], sides: tuple[int, ...]
) -> Float[Tensor, "b t *x c"]:
    first, activation, last = decoder.mlp
    hidden = arithmetic.linear(arithmetic.add_norm(z, None, None, decoder.norm), first, activation)
    with full_precision(z):
        return last(hidden.to(last.weight.dtype)).unflatten(2, sides)


# --- Maps of few features, as sums ----------------------------------------------------------------------------------


def _sum_of_columns(x: Float[Tensor, "*b i"], weight: Tensor, bias: Tensor | None = None) -> Float[Tensor, "*b o"]:
    """x W + b for few input features: as a sum, compilers make it one with what comes before and after. The GPU's
    libraries are slow at products of so few columns, and slower at their gradients."""
    if x.shape[-1] > FEW:
        return F.linear(x, weight, bias)
    columns = [x[..., i, None] * weight[:, i] for i in range(x.shape[-1])]
    return sum(columns if bias is None else [*columns, bias])


def _encode_points(
    encoder: PointEncoder, u0: Float[Tensor, "b *x c"], grid: Float[Tensor, "_ *x D"], params: Tensor | None
) -> Float[Tensor, "b s d"]:
    with full_precision(u0):
        inputs = join_inputs(u0, grid, params).flatten(1, -2)
        return _sum_of_columns(inputs, encoder.linear.weight, encoder.linear.bias)


def _encode_space(coordinates: LinearCoordinates, grid: Float[Tensor, "b *x D"]) -> Float[Tensor, "b s d"]:
    with full_precision(grid):
        return _sum_of_columns(grid.flatten(1, -2), coordinates.linear.weight[:, 1:], coordinates.linear.bias)


def _encode_time(coordinates: LinearCoordinates, t: Float[Tensor, "b t"]) -> Float[Tensor, "b t d"]:
    with full_precision(t):
        return _sum_of_columns(coordinates.pace * t.unsqueeze(-1), coordinates.linear.weight[:, :1])
