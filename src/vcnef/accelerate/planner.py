"""How each part of a VCNeF is computed: decided part by part, and written down with the reason.

A part that `recognise` does not know, or finds changed, is called as it is. The others run as fused kernels of whole
layers where those serve, and layer by layer elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vcnef.accelerate import patches, points
from vcnef.accelerate.arithmetic import TRAINING, Arithmetic, inference
from vcnef.accelerate.blocks import LayeredBlock, ReferenceBlock
from vcnef.accelerate.kernels.requirements import WIDEST_NORM, obstacle
from vcnef.accelerate.recognise import NORMS, change_in
from vcnef.accelerate.stencil import convolve_tokens
from vcnef.accelerate.trajectory import Parts, SummedCoordinates
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
from vcnef.models.vcnef_beyond import Clocks, SpectralMixing, Stencil

CHILDREN = {
    "attention": (LinearAttention, SoftmaxAttention, Nothing),
    "local": (Stencil, SpectralMixing, Nothing),
    "branch": (CoordinateBranch,),
}
"""Parts of a block that are asked about on their own, and the types that are known there."""


@dataclass(frozen=True)
class PlanSetting:
    """Where and how an engine is to compute."""

    device: torch.device
    half: torch.dtype | None
    training: bool
    compiled: bool = False

    @property
    def kernels(self) -> bool:
        """Return whether fused kernels are in question at all."""
        return self.device.type == "cuda" and self.half is not None


class Planner:
    """Decides part by part; `plan` says for each how it is computed and why."""

    def __init__(self, model: VCNeF, setting: PlanSetting) -> None:
        self.model, self.setting = model, setting
        self.plan: dict[str, str] = {}
        self.no_kernels = self._obstacle_of_kernels()
        self.plan["fused kernels"] = "yes" if self.no_kernels is None else f"none: {self.no_kernels}"
        self.arithmetic = self._arithmetic()

    def parts(self) -> Parts:
        model = self.model
        *blocks, norm = model.blocks
        encoder = self.encoder()
        coordinates = self.coordinates()
        transforms = [self.block(f"blocks.{k}", block, TransformerBlock) for k, block in enumerate(blocks)]
        last_norm = self.last_norm(norm)
        modulations = [self.block(f"modulations.{k}", b, ModulationBlock) for k, b in enumerate(model.modulations)]
        decoder = self.decoder()
        return Parts(
            encoder,
            coordinates,
            transforms,
            last_norm,
            modulations,
            decoder,
            branches_at_once=self.branches_at_once(coordinates, modulations),
            decodes_last=self.decodes_last(modulations[-1], decoder),
        )

    # --- Encoder, coordinates, decoder ------------------------------------------------------------------------------

    def encoder(self) -> Callable[..., Tensor]:
        encoder = self.model.encoder
        changed = change_in(encoder, (PointEncoder, PatchEncoder))
        if changed is not None:
            self.plan["encoder"] = f"reference: {changed}"
            return encoder
        if type(encoder) is PatchEncoder:
            self.plan["encoder"] = "products over patches"
            return partial(patches.encode_patches, encoder)
        self.plan["encoder"] = "one product"
        return partial(points.encode_points, encoder, self.linear)

    def coordinates(self) -> SummedCoordinates | nn.Module:
        """Return the coordinates as sums, or as they are where somebody has changed them."""
        coordinates, clocks = self.model.coordinates, self.model.clocks
        changed = {
            "coordinates": change_in(coordinates, (LinearCoordinates, FourierCoordinates), leave_out=["fourier"]),
            "clocks": change_in(clocks, (Clocks, Nothing), leave_out=["out"]),
        }
        changed = {part: why for part, why in changed.items() if why is not None}
        if changed:
            self.plan |= {part: f"reference: {why}" for part, why in changed.items()}
            return coordinates
        self.plan["coordinates"] = "a sum of time and space"
        if type(coordinates) is FourierCoordinates:
            ways = partial(patches.encode_space, coordinates), partial(patches.encode_time, coordinates)
        else:
            own = coordinates, self.linear
            ways = partial(points.encode_space, *own), partial(points.encode_time, *own)
        return SummedCoordinates(*ways)

    def last_norm(self, norm: nn.Module) -> Callable[[Tensor], Tensor]:
        changed = change_in(norm, NORMS)
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
            self.plan["decoder"] = f"products over patches, {self.precision}"
            return partial(patches.decode_patches, decoder, arithmetic=self.arithmetic)
        why_not = self.obstacle_of_decoder(decoder)
        if why_not is not None:
            self.plan["decoder"] = self.layer_by_layer(why_not)
            return partial(points.decode_points, decoder, arithmetic=self.arithmetic)
        from vcnef.accelerate.gpu import PackedDecoder, trained_decoder

        self.plan["decoder"] = f"fused kernels, {self.precision}"
        make = trained_decoder if self.setting.training else PackedDecoder
        return make(decoder, self.setting.half)

    def obstacle_of_decoder(self, decoder: PointDecoder) -> str | None:
        """Return why a decoder does not run as one kernel, or None."""
        if self.no_kernels is not None:
            return self.no_kernels
        from vcnef.accelerate.gpu import DECODE, DECODER

        width = decoder.norm.normalized_shape[0]
        if self.setting.training:
            return DECODER.obstacle(self.setting.device, torch.float32, width, decoder.mlp[2].out_features)
        return DECODE.obstacle(self.setting.device, torch.float32, width)

    # --- Blocks -----------------------------------------------------------------------------------------------------

    def block(self, name: str, block: nn.Module, kind: type[nn.Module]) -> Any:
        changed = change_in(block, (kind,), leave_out=CHILDREN)
        if changed is None and block.training and type(block.dropout) is nn.Dropout:
            changed = "dropout is active"
        if changed is not None:
            self.plan[name] = f"reference: {changed}"
            return ReferenceBlock(block)
        layered = LayeredBlock(block, self.arithmetic, self.known_children(name, block))
        why_not = self.obstacle_of_block(layered)
        layered.local = self.local(layered, packed=not self.setting.training and why_not is None)
        if why_not is not None:
            self.plan[name] = self.layer_by_layer(why_not)
            return layered.prepare()
        from vcnef.accelerate.gpu import PackedBlock, TrainedBlock

        self.plan[name] = f"fused kernels, {self.precision}"
        kind = TrainedBlock if self.setting.training else PackedBlock
        return kind(layered, self.setting.half)

    def known_children(self, name: str, block: nn.Module) -> set[str]:
        known = set()
        for child, kinds in CHILDREN.items():
            if not hasattr(block, child):
                continue
            changed = change_in(getattr(block, child), kinds)
            if changed is None:
                known.add(child)
            else:
                self.plan[f"{name}.{child}"] = f"reference: {changed}"
        return known

    def obstacle_of_block(self, layered: LayeredBlock) -> str | None:
        """Return why a block does not run as kernels of whole layers, or None."""
        block, training = layered.block, self.setting.training
        if self.no_kernels is not None:
            return self.no_kernels
        if not layered.linear and not (training and "attention" not in layered.known):
            return "kernels of whole layers are for linear attention"
        if type(getattr(block, "shift", Nothing())) is not Nothing:
            return "kernels of whole layers have no shift"
        norms = [child for child in block.children() if type(child) in NORMS]
        if len({norm.eps for norm in norms}) > 1:
            return "its norms differ in eps"
        from vcnef.accelerate.gpu import ATTENTION

        heads = block.attention.heads if layered.linear else 1
        return ATTENTION.obstacle(self.setting.device, torch.float32, block.mlp_norm.normalized_shape[0], heads)

    def local(self, layered: LayeredBlock, *, packed: bool) -> Callable[[Tensor, tuple], Tensor] | None:
        """Return how the neighbours of a block's tokens are mixed; None where there is nothing to mix."""
        stencil = layered.block.local
        if "local" not in layered.known:
            # A copy: what comes after may take the memory of it, and this could be the tokens themselves.
            return lambda z, sides: stencil(z, sides).clone()
        if type(stencil) is Nothing:
            return None
        if type(stencil) is SpectralMixing:
            return stencil
        if self.no_kernels is None:
            from vcnef.accelerate.gpu import packed_local, trained_local

            return packed_local(stencil, self.setting.half) if packed else trained_local(stencil)
        if self.setting.device.type == "cpu" and not self.setting.compiled:
            return partial(convolve_tokens, stencil)
        return stencil

    # --- What several parts make possible ---------------------------------------------------------------------------

    def branches_at_once(self, coordinates: SummedCoordinates | nn.Module, modulations: list[Any]) -> bool:
        """Return whether MLP(C) of all blocks is computed by the same products, which small steps on a GPU gain
        from."""
        small_steps = self.setting.training and self.setting.device.type == "cuda"
        if not (small_steps and isinstance(coordinates, SummedCoordinates)):
            return False
        layered = [each if type(each) is LayeredBlock else getattr(each, "layered", None) for each in modulations]
        if not all(each is not None and "branch" in each.known for each in layered):
            return False
        branches = [each.block.branch for each in layered]
        kinds = {(type(each.project), tuple(map(type, each.project.children()))) for each in branches}
        return len(kinds) == 1 and all(type(each.residual) is Nothing for each in branches)

    def decodes_last(self, modulation: Any, decoder: Any) -> bool:
        """Return whether the kernel of the last block can take in the decoder."""
        if self.no_kernels is not None:
            return False
        from vcnef.accelerate.gpu import PackedBlock, PackedDecoder

        return type(modulation) is PackedBlock and type(decoder) is PackedDecoder

    # --- Devices and precision --------------------------------------------------------------------------------------

    @property
    def linear(self) -> points.Linear:
        """Return a map of few features; as a sum of columns, a GPU's compiler joins it with its neighbours."""
        return points.sum_of_columns if self.setting.compiled and self.setting.device.type == "cuda" else F.linear

    @property
    def precision(self) -> str:
        half, own = self.setting.half, next(self.model.parameters()).dtype
        if half is not None:
            return str(half).removeprefix("torch.")
        return "single precision" if own == torch.float32 else str(own).removeprefix("torch.")

    def layer_by_layer(self, why_not: str) -> str:
        """Return why kernels do not serve, unless that stands in the plan for the whole model."""
        reason = "" if why_not == self.no_kernels else f": {why_not}"
        return f"layer by layer, {self.precision}{reason}"

    def _obstacle_of_kernels(self) -> str | None:
        """Return why no part can run as a kernel, or None."""
        norms = [norm for block in self.model.modulations for norm in block.children() if type(norm) in NORMS]
        width = max([norm.normalized_shape[-1] for norm in norms], default=0)
        found = obstacle(self.setting.device, torch.float32, width, widest=WIDEST_NORM)
        if found is None and self.setting.half is None:
            return "products are in single precision"
        return found

    def _arithmetic(self) -> Arithmetic:
        setting = self.setting
        if self.no_kernels is None:
            from vcnef.accelerate.gpu import half_arithmetic

            attentions = [part for part in self.model.modules() if type(part) is LinearAttention]
            return half_arithmetic(setting.device, setting.half, attentions, training=setting.training)
        return TRAINING if setting.training else inference(setting.device, setting.half)
