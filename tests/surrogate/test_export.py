"""A surrogate as one file, in a process of its own: the tests' shape checker is not made to be traced."""

import subprocess
import sys
from copy import copy

import pytest
import torch

import vcnef
from vcnef.grid import cell_centres
from vcnef.surrogate.export import FORMATS, OnGrid, choose_points

TINY = {"width": 16, "heads": 2, "depth": 1, "modulations": 1}

EXPORT = """
import json, sys
import numpy as np, onnxruntime, torch, vcnef
from vcnef.cli import main
from vcnef.surrogate import Surrogate

torch.manual_seed(0)  # how far untrained networks move a field is a matter of chance
tiny = {"width": 16, "heads": 2, "depth": 1, "modulations": 1}
data = vcnef.generate("burgers", samples=4, params={"nu": (0.01, 0.1)}, resolution=32, frames=3, horizon=0.1)
surrogate = Surrogate.build("vcnef", {**tiny, "local": 1, "frequencies": 2}, data, own_time=True)
torch.nn.init.normal_(surrogate.model.blocks[0].local.weight)
u0, t, params = data.u[:2, 0], torch.linspace(0.0, 0.1, 5), data.params[:2]
expected = surrogate.predict(u0, t, {"nu": params[:, 0]}).values

for name in ("model.pt2", "model.onnx"):
    assert surrogate.export(name) < 1e-5, name
noted = {"vcnef.json": ""}
program = torch.export.load("model.pt2", extra_files=noted).module()
np.testing.assert_allclose(program(u0, t, params).numpy(), expected, rtol=1e-4, atol=1e-5)
session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
assert {each.name: each.shape for each in session.get_inputs()} == {
    "u0": ["sample", 32, 1], "t": ["time"], "params": ["sample", 1],
}
(found,) = session.run(None, {"u0": u0.numpy(), "t": t.numpy(), "params": params.numpy()})
np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
for text in (noted["vcnef.json"], session.get_modelmeta().custom_metadata_map["vcnef"]):
    assert json.loads(text)["problem"]["parameters"] == ["nu"]

# By the command: patches that go beyond the domain, with a stencil, two axes, another resolution than that of training,
# and no parameters.
fields = np.random.default_rng(0).normal(size=(4, 3, 16, 16, 2)).astype("f4")
flat = Surrogate.build("vcnef", {**tiny, "patches": (4, 8), "local": 1}, vcnef.from_arrays(fields, t=[0.0, 0.5, 1.0]))
torch.nn.init.normal_(flat.model.blocks[0].local.weight)
flat.save("flat")
try:
    main(["export", "flat", "--out", "flat.onnx", "--points", "16,20"])
except SystemExit as end:
    assert end.code == 0
program = onnxruntime.InferenceSession("flat.onnx", providers=["CPUExecutionProvider"])
finer = np.concatenate([fields[:3, 0], fields[:3, 1, :, :4]], axis=2)
(found,) = program.run(None, {"u0": finer, "t": np.array([0.7], dtype="f4")})
np.testing.assert_allclose(found, flat.predict(finer, [0.7]).values, rtol=1e-4, atol=1e-5)

# A flow map on windows is composed in the file, too.
wavy = vcnef.generate("burgers", samples=6, params={"nu": (0.01, 0.1)}, resolution=32, frames=7, horizon=0.6)
flow = {**tiny, "patches": (4,), "modes": 3, "rate": True}
composed = Surrogate.build("vcnef", flow, wavy, conserve=["u"], window=0.2)
torch.nn.init.normal_(composed.model.modulations[0].local.weight, std=0.3)
u0, t, params = wavy.u[:2, 0], torch.tensor([0.0, 0.05, 0.2, 0.21, 0.4, 0.6]), wavy.params[:2]
expected = composed.predict(u0, t, {"nu": params[:, 0]}).values
assert np.abs(expected[:, -1] - expected[:, 0]).max() > 0.01
np.testing.assert_allclose(expected.mean(axis=2), np.repeat(u0.mean(dim=1)[:, None], 6, axis=1), atol=1e-5)
for name in ("composed.pt2", "composed.onnx"):
    assert composed.export(name) < 1e-5, name
program = torch.export.load("composed.pt2").module()
np.testing.assert_allclose(program(u0, t, params).numpy(), expected, rtol=1e-4, atol=1e-5)
session = onnxruntime.InferenceSession("composed.onnx", providers=["CPUExecutionProvider"])
(found,) = session.run(None, {"u0": u0.numpy(), "t": t.numpy(), "params": params.numpy()})
np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)

# Where windows are told when they begin, that is an input; here without parameters.
forced = vcnef.from_arrays(wavy.u.numpy(), t=wavy.t.numpy())
told = Surrogate.build("vcnef", {**tiny, "patches": (4,)}, forced, window=0.2, explicit_time=True)
start = torch.tensor([0.1, 0.0])
expected = told.predict(u0, t, start=start).values
assert np.abs(expected - told.predict(u0, t).values).max() > 1e-4
for name in ("told.pt2", "told.onnx"):
    assert told.export(name) < 1e-5, name
program = torch.export.load("told.pt2").module()
np.testing.assert_allclose(program(u0, t, start).numpy(), expected, rtol=1e-4, atol=1e-5)
session = onnxruntime.InferenceSession("told.onnx", providers=["CPUExecutionProvider"])
(found,) = session.run(None, {"u0": u0.numpy(), "t": t.numpy(), "start": start.numpy()})
np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
"""


def test_files_answer_as_the_surrogate_does(tmp_path):
    pytest.importorskip("onnxruntime")
    done = subprocess.run([sys.executable, "-c", EXPORT], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def surrogate():
    data = vcnef.generate("burgers", samples=4, params={"nu": (0.01, 0.1)}, resolution=32, frames=3, horizon=0.1)
    return vcnef.Surrogate.build("vcnef", TINY, data)


def test_the_module_answers_as_predict_does_and_keeps_the_initial_state(surrogate):
    u0, t = torch.rand(2, 8, 1), torch.tensor([0.0, 0.02, 0.1])
    grid = cell_centres(surrogate.problem.domain, 8)
    found = OnGrid(surrogate, grid)(u0, t, torch.tensor([[0.02], [0.04]]))
    expected = torch.from_numpy(surrogate.predict(u0, t, {"nu": [0.02, 0.04]}).values)
    torch.testing.assert_close(found, expected)
    assert torch.equal(found[:, 0], u0)


def test_the_module_composes_windows():
    data = vcnef.generate("burgers", samples=4, params={"nu": (0.01, 0.1)}, resolution=32, frames=7, horizon=0.6)
    surrogate = vcnef.Surrogate.build("vcnef", TINY, data, window=0.2)
    u0, t = data.u[:2, 0], torch.tensor([0.6, 0.1, 0.2, 0.3, 0.5])
    found = OnGrid(surrogate, data.grid)(u0, t, data.params[:2])
    torch.testing.assert_close(found, surrogate.answer(u0, data.grid, t, data.params[:2]))


def test_the_module_scales_its_points():
    u = torch.rand(4, 3, 8, 1)
    surrogate = vcnef.Surrogate.build("vcnef", TINY, vcnef.from_arrays(u, x=500.0 + 10.0 * torch.arange(8)))
    found = OnGrid(surrogate, cell_centres(surrogate.problem.domain, 8))(u[:, 0], torch.tensor([0.3, 1.0]))
    torch.testing.assert_close(found, torch.from_numpy(surrogate.predict(u[:, 0], [0.3, 1.0]).values))


def test_other_kinds_of_files_and_of_models_are_refused(surrogate, tmp_path):
    with pytest.raises(ValueError, match=r"model\.pth ends in '\.pth'; a model is exported to \.pt2 \(PyTorch\) or"):
        surrogate.export(tmp_path / "model.pth")
    data = vcnef.generate("burgers", samples=4, params={"nu": 0.01}, resolution=32, frames=3, horizon=0.1)
    stepping = vcnef.Surrogate.build("fno", {"width": 4, "modes": 4}, data)
    with pytest.raises(ValueError, match="fno goes from frame to frame"):
        stepping.export(tmp_path / "model.pt2")
    alone = copy(surrogate)
    alone.provenance = surrogate.provenance | {"instance": {"number": 3}}
    with pytest.raises(ValueError, match="vcnef is the solution from one initial state"):
        alone.export(tmp_path / "model.pt2")
    assert not list(tmp_path.iterdir())


def test_a_file_that_answers_otherwise_is_not_written(surrogate, tmp_path, monkeypatch):
    monkeypatch.setitem(FORMATS, ".pt2", lambda module, *others: (b"", lambda inputs: module(*inputs) + 1.0))
    with pytest.raises(RuntimeError, match="answers otherwise than the surrogate"):
        surrogate.export(tmp_path / "model.pt2")
    assert not list(tmp_path.iterdir())


def test_points_of_training_must_be_told_where_they_were_not_uniform(tmp_path):
    x = torch.linspace(0.0, 1.0, 12) ** 2
    data = vcnef.from_arrays(torch.rand(4, 3, 12, 1), t=[0.0, 0.5, 1.0], x=x)
    uneven = vcnef.Surrogate.build("vcnef", TINY, data)
    with pytest.raises(ValueError, match="was trained on an uneven grid"):
        uneven.export(tmp_path / "model.pt2")


def test_points_are_given_as_to_predict(surrogate):
    line, plane = torch.linspace(0.0, 1.0, 5), vcnef.from_arrays(torch.rand(4, 3, 6, 5, 1), t=[0.0, 0.5, 1.0])
    flat = vcnef.Surrogate.build("vcnef", {**TINY, "patches": ()}, plane)
    for x in (line, line.tolist(), (line,), line[:, None]):
        torch.testing.assert_close(choose_points(surrogate, None, x), line[:, None])
    axes = (torch.linspace(0.0, 1.0, 6) ** 2, line)
    mesh = torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1)
    for x in (axes, [each.numpy() for each in axes], mesh):
        torch.testing.assert_close(choose_points(flat, None, x), mesh)
    torch.testing.assert_close(choose_points(flat, None, mesh.reshape(-1, 2)), mesh.reshape(-1, 2))
    with pytest.raises(ValueError, match="resolution is 8 and x is given too"):
        choose_points(surrogate, 8, line)
