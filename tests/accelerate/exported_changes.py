"""A surrogate whose attention has another feature map, as a file: it answers as the changed model does."""

import numpy as np
import torch

import vcnef
from vcnef.models.vcnef import LinearAttention

SIZES = {"width": 16, "heads": 2, "depth": 1, "modulations": 1}


class SquaredAttention(LinearAttention):
    def feature_map(self, x):
        return x.square() + 0.1


data = vcnef.generate("burgers", samples=4, params={"nu": (0.01, 0.1)}, resolution=32, frames=3, horizon=0.1)
surrogate = vcnef.Surrogate.build("vcnef", SIZES, data, seed=0)
u0, t, params = data.u[:2, 0], torch.linspace(0.0, 0.1, 5), data.params[:2]
plain = surrogate.predict(u0, t, {"nu": params[:, 0]}).values
for block in (surrogate.model.blocks[0], surrogate.model.modulations[0]):
    block.attention.__class__ = SquaredAttention
changed = surrogate.predict(u0, t, {"nu": params[:, 0]}).values
assert np.abs(changed - plain).max() > 1e-2
assert surrogate.export("model.pt2") < 1e-5
found = torch.export.load("model.pt2").module()(u0, t, params).numpy()
np.testing.assert_allclose(found, changed, rtol=1e-4, atol=1e-5)
