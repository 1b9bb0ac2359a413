"""Ways to change a model, none of which its fast code may overlook."""

import torch
from torch import nn
from torch.nn.utils import parametrize

import vcnef
from vcnef.grid import cell_centres

SIZES = {"width": 16, "heads": 2, "depth": 1, "modulations": 2}
EXTRAS = {"frequencies": 2, "clocks": 2, "local": 1, "rate": True}
MODELS = {
    "points": ((8,), EXTRAS),
    "softmax": ((8,), {"attention": "softmax", "conditioning": "scale_shift"}),
    "patches": ((8, 8), {"patches": (4,), "local": 1}),
}


def build(name, **sizes):
    """A model, and a question to it."""
    sides, options = MODELS[name]
    torch.manual_seed(0)
    model = vcnef.build("vcnef", ndim=len(sides), channels=1, params=1, sides=sides, **SIZES | options | sizes).eval()
    for part in model.modules():
        if type(part).__name__ == "Stencil":
            nn.init.normal_(part.weight, std=0.3)
    grid = cell_centres(((0.0, 1.0),) * len(sides), sides)
    return model, (torch.randn(2, *sides, 1), grid, torch.rand(3), torch.rand(2, 1))


def named(model, kind):
    """Every part, but for mere lists of others."""
    return [name for name, part in model.named_modules() if isinstance(part, kind) and type(part) is not nn.ModuleList]


class Curved(nn.Module):
    """A parametrization."""

    def forward(self, weight):
        return weight + 0.5 * weight.sin()


def more(out):
    """Another result: of a tensor, or of the tensors of a tuple."""
    if isinstance(out, torch.Tensor):
        return out + (3 * out).sin()  # a norm takes factors and constants away again
    return type(out)(*(each if each is None else more(each) for each in out))


def put_hook(model, name):
    model.get_submodule(name).register_forward_hook(lambda part, given, out: more(out))


def put_pre_hook(model, name):
    model.get_submodule(name).register_forward_pre_hook(lambda part, given: (more(given[0]), *given[1:]))


def subclass(model, name):
    """The same weights, in an object of a class with another `forward`."""
    part = model.get_submodule(name)
    kind = type(part)

    class Changed(kind):
        def forward(self, *given):
            return more(super().forward(*given))

    part.__class__ = Changed


def override(model, name):
    """Another `forward` of this one object."""
    part = model.get_submodule(name)
    forward = part.forward
    part.forward = lambda *given: more(forward(*given))


class Wrapped(nn.Module):
    """Another module in a part's place, which passes on what the model asks of its parts."""

    def __init__(self, part):
        super().__init__()
        self.part = part

    def forward(self, *given):
        return more(self.part(*given))

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("part"), name)

    def __iter__(self):
        return iter(self.part)


def replace(model, name):
    model.set_submodule(name, Wrapped(model.get_submodule(name)))


def parametrise(model, name):
    parametrize.register_parametrization(model.get_submodule(name), "weight", Curved())


def raise_eps(model, name):
    model.get_submodule(name).eps = 0.5


def fewer_heads(model, name):
    model.get_submodule(name).heads = 1


def without_bias(model, name):
    model.get_submodule(name).bias = None


EVERY_PART = {
    "hook": put_hook,
    "pre-hook": put_pre_hook,
    "subclass": subclass,
    "override": override,
    "replace": replace,
}
KINDS = {
    "parametrization": (parametrise, (nn.Linear, nn.LayerNorm)),
    "eps": (raise_eps, nn.LayerNorm),
    "no bias": (without_bias, (nn.Linear, nn.LayerNorm)),
}


def changes(model):
    """The name of each change, and what makes it."""
    for label, change in EVERY_PART.items():
        # Of the model, too, but another module in its place is another model.
        for name in named(model, nn.Module)[label == "replace" :]:
            yield f"{label} of {name}", lambda model, change=change, name=name: change(model, name)
    for label, (change, kind) in KINDS.items():
        for name in named(model, kind):
            yield f"{label} of {name}", lambda model, change=change, name=name: change(model, name)
    for name in named(model, nn.Module):
        if name.endswith("attention"):
            yield f"heads of {name}", lambda model, name=name: fewer_heads(model, name)
