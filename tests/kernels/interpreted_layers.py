"""The layers with gradients against their twins, and a model that trains with them; run in Triton's interpreter."""

import interpreting  # noqa: F401, before any kernel is imported
import torch
from twins_of_layers import cases, change, mixing_cases, values_and_gradients

import vcnef
from vcnef.grid import cell_centres
from vcnef.kernels.layers import launch, modulation_layer
from vcnef.kernels.weights import Tiling
from vcnef.nn import attention, blocks, decoders, fused, modulation, norms

launch.TILINGS |= dict.fromkeys(launch.TILINGS, Tiling(16, 64, 4, 2))
# Three samples come in two parts then, of which the second is smaller.
modulation_layer.MOST_IN_TURN |= dict.fromkeys(modulation_layer.MOST_IN_TURN, 2)
# Nine sets of tokens are four tiles and a half of heads with 16 features, nine of those with 32.
launch.TILINGS |= dict.fromkeys(("wide_mixing", "wide_mixing_backward"), Tiling(32, 64, 4, 2, together=2))

torch.manual_seed(0)
for name, layer, twin, inputs in (
    # Six and four tiles, for two programs that take one after the other.
    *cases(20, 2, 5, "gelu", shared=True, batch=3, times=2),
    *cases(40, 4, 17, "relu", shared=False, batch=2, times=1),
    *mixing_cases(32, 2, batch=3, times=3),
    *mixing_cases(96, 3, batch=3, times=3),
):
    expected, shape = values_and_gradients(twin, inputs), inputs[0].shape
    for dtype, bound in ((torch.float32, 1e-5), (torch.float16, 5e-3)):
        pairs = zip(values_and_gradients(layer, inputs, dtype), expected, strict=True)
        assert max(change(*pair) for pair in pairs) < bound, (name, shape, dtype)
    with torch.no_grad():
        assert change(layer(*inputs), twin(*inputs)) < 1e-5, (name, shape)


class Tilings(dict):
    """Remembers the kernels that were launched."""

    def __getitem__(self, name):
        launched.add(name)
        return super().__getitem__(name)


launched, launch.TILINGS = set(), Tilings(launch.TILINGS)
NORM, GELU = {"residual", "residual_backward"}, {"activation", "activation_backward"}
MIXING = {"wide_mixing", "wide_mixing_backward"}


def compare(model, sides, in_blocks, expected_launches, *, compiled=True):
    """Gradients with the kernels, eager and compiled, against those of the plain code."""
    for block in (*list(model.blocks)[:-1], *model.modulations):
        torch.nn.init.normal_(block.local.weight, std=0.3)
    inputs = torch.randn(2, *sides, 1), cell_centres(((0.0, 1.0),) * len(sides), sides), torch.rand(2)

    def gradients(function):
        return torch.autograd.grad(function(*inputs).square().mean(), list(model.parameters()))

    switch(in_blocks=False, half=False)
    expected = gradients(model)
    switch(in_blocks=in_blocks, half=True)
    ways = [model, torch.compile(model, fullgraph=True, backend="aot_eager")]
    for function in ways if compiled else ways[:1]:
        launched.clear()
        assert max(change(*pair) for pair in zip(gradients(function), expected, strict=True)) < 1e-4
        assert launched == expected_launches, launched ^ expected_launches


def switch(*, in_blocks, half):
    """Whether blocks train as kernels, and what wide ones have: as if autocasting had chosen single precision."""
    blocks.training_operands = modulation.training_operands = lambda *_: torch.float32 if in_blocks else None
    decoders.decoder_operands = lambda *_: torch.float32 if in_blocks else None
    for module in (attention, blocks, fused, norms):
        module.half_precision = lambda *_: torch.float32 if half else None


sizes = {"width": 16, "heads": 2, "depth": 1, "modulations": 2, "local": 1}
few = sizes | {"modulations": 1}
compare(vcnef.build("vcnef", ndim=1, channels=1, sides=(8,), **sizes), (8,), True, set(launch.TILINGS) - GELU - MIXING)
patched = vcnef.build("vcnef", ndim=2, channels=1, sides=(4, 4), patches=(2,), **few | {"heads": 1})
compare(patched, (4, 4), False, NORM | GELU | MIXING | {"neighbours_backward"})
volumes = vcnef.build("vcnef", ndim=3, channels=1, sides=(4, 4, 4), patches=(2, 4), **few)
compare(volumes, (4, 4, 4), True, set(launch.TILINGS) - MIXING - {"decoder", "decoder_backward"}, compiled=False)
