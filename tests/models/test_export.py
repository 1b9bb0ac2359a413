"""Compilation and export, in a process of their own: the tests' shape checker is not made to be traced."""

import subprocess
import sys

import pytest

COMPILE = """
import sys, torch, vcnef
from vcnef.grid import cell_centres
tiny = {"width": 16, "heads": 2, "depth": 1, "modulations": 1}
for ndim, patches, sides, trained in ((1, (), (20,), None), (2, (4, 16), (32, 16), None), (2, (4,), (16, 8), (8, 8))):
    torch._dynamo.reset()
    model = vcnef.build("vcnef", ndim=ndim, channels=2, params=1, patches=patches, sides=trained, **tiny)
    grid = cell_centres(((0.0, 1.0),) * ndim, sides)
    compiled = torch.compile(model, fullgraph=True, backend=sys.argv[1])
    for batch, times in ((2, 3), (4, 5)):
        inputs = torch.randn(batch, *sides, 2), grid, torch.rand(times), torch.rand(batch, 1)
        torch.testing.assert_close(compiled(*inputs), model(*inputs))
        losses = [f(*inputs).square().sum() for f in (compiled, model)]
        gradients = [torch.autograd.grad(loss, list(model.encoder.parameters())) for loss in losses]
        torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-5)
"""

EXPORT = """
import torch, vcnef
from torch.export import Dim
from vcnef.grid import cell_centres
batch, times, points = Dim("batch", min=1), Dim("times", min=1), Dim("points", min=2)
tiny = {"width": 16, "heads": 2, "depth": 1, "modulations": 2}
for ndim, patches, sides, trained in ((1, (), (20,), None), (2, (4, 16), (32, 16), None), (2, (4,), (16, 8), (8, 8))):
    model = vcnef.build("vcnef", ndim=ndim, channels=2, params=1, patches=patches, sides=trained, **tiny)
    free = {} if patches else {1: points}
    shapes = ({0: batch} | free, {} if patches else {0: points}, {0: times}, {0: batch})
    def inputs(b, t, sides):
        return torch.randn(b, *sides, 2), cell_centres(((0.0, 1.0),) * ndim, sides), torch.rand(t), torch.rand(b, 1)
    exported = torch.export.export(model, inputs(3, 4, sides), dynamic_shapes=shapes).module()
    for b, t, other in ((3, 4, sides), (5, 7, sides if patches else (33,))):
        example = inputs(b, t, other)
        torch.testing.assert_close(exported(*example), model(*example))
"""


def run(script, *arguments):
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr[-3000:]


def test_one_graph_without_breaks():
    run(COMPILE, "eager")


@pytest.mark.slow
def test_compiled_code_agrees():
    run(COMPILE, "inductor")


def test_export_with_dynamic_shapes():
    run(EXPORT)
