"""A package laid out, named and called like the authors' release, whose model is u(t, x) = u₀ + t x + p."""

MODEL = """
import torch
from torch import nn

from vcnef.layers.speed import Speed


class VCNeFModel(nn.Module):
    def __init__(self, num_channels=1, condition_on_pde_param=True, pde_param_dim=1, d_model=1):
        super().__init__()
        self.use_pde_param = condition_on_pde_param
        self.speeds = nn.ModuleList(Speed() for _ in range(d_model))

    def forward(self, x, grid, pde_param, t):
        # b *x t c, as theirs
        t = t.view(len(t), *[1] * (x.ndim - 2), -1, 1)
        u = x.unsqueeze(-2) + sum(speed(t) for speed in self.speeds) * grid[..., None, :1]
        if self.use_pde_param:
            u = u + pde_param.view(len(t), *[1] * (u.ndim - 2), -1).sum(-1, keepdim=True)
        return u
"""

LAYER = """
import torch
from torch import nn

from vcnef.bases.numbers import ONE
from ..bases.numbers import ONE as SAME


class Speed(nn.Module):
    def __init__(self):
        super().__init__()
        assert ONE is SAME
        self.value = nn.Parameter(ONE.clone())

    def forward(self, t):
        return self.value * t
"""

FILES = {
    "vcnef_1d.py": MODEL,
    "vcnef_2d.py": MODEL,
    "layers/__init__.py": "",
    "layers/speed.py": LAYER,
    "bases/numbers.py": "import torch\n\nONE = torch.ones(())\n",
}


def write(folder):
    for name, text in FILES.items():
        path = folder / "vcnef" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder
