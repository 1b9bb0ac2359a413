"""A changed method is what runs: in predictions, in training, in evaluations and in exported files."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

import vcnef
from vcnef.accelerate import predict
from vcnef.accelerate.engine import FastVCNeF, inference_engine, training_engine
from vcnef.accelerate.recognise import change_everywhere
from vcnef.models import vcnef as method
from vcnef.models.vcnef import LinearAttention, ModulationBlock
from vcnef.nn.layers import join_inputs

HERE = Path(__file__).parent
ways = SimpleNamespace(**run_path(str(HERE / "changes.py")))
CPU = torch.device("cpu")


def answers(model, question):
    """What the method says, what `predict` gives, and what a training step computes."""
    with torch.no_grad():
        expected = model(*question)
    engine = training_engine(model, CPU, None, compiled=False)
    trained = engine.forward if isinstance(engine, FastVCNeF) else engine.model
    return expected, predict(model, *question, precision="fp32"), trained(*question).detach()


def differ(found, expected):
    return float((found - expected).norm() / expected.norm())


def is_fast(model):
    plan = inference_engine(model, CPU, "fp32").plan
    return not any(how.startswith("reference") for how in plan.values())


@pytest.mark.parametrize("name", ways.MODELS)
def test_no_change_of_any_part_is_overlooked(name):
    model, question = ways.build(name)
    (plain, *_), count = answers(model, question), 0
    assert is_fast(model)
    for label, change in ways.changes(model):
        changed, _ = ways.build(name)
        change(changed)
        try:
            expected, predicted, trained = answers(changed, question)
        except (AttributeError, TypeError):
            # Nothing can stand there as it is written: the method takes this part apart.
            with pytest.raises((AttributeError, TypeError)):
                changed(*question)
            continue
        assert differ(predicted, expected) < 1e-5, label
        assert differ(trained, expected) < 1e-5, label
        count += differ(plain, expected) > 1e-4
    assert count > 150, f"only {count} of the changes changed the answer"


@pytest.mark.parametrize(
    ("owner", "name", "other"),
    [
        (LinearAttention, "feature_map", lambda self, x: x.square() + 0.1),
        (ModulationBlock, "modulate", lambda self, z, c: 0 * (z + c)),
        (ModulationBlock, "forward", lambda self, z, c, sides=(): z.expand(-1, c.shape[1], -1, -1)),
        (nn.Linear, "forward", lambda self, x: 2 * nn.functional.linear(x, self.weight, self.bias)),
        (method, "join_inputs", lambda *given: (3 * join_inputs(*given)).sin()),
    ],
)
def test_what_is_changed_for_all_models_runs(owner, name, other, monkeypatch):
    model, question = ways.build("points")
    before, *_ = answers(model, question)
    other.__module__ = "somebody"
    monkeypatch.setattr(owner, name, other)
    assert "was replaced" in change_everywhere()
    expected, predicted, trained = answers(model, question)
    assert differ(predicted, expected) < 1e-5
    assert differ(trained, expected) < 1e-5
    assert differ(before, expected) > 1e-3
    monkeypatch.undo()
    assert change_everywhere() is None


def test_hooks_for_all_modules_run():
    model, question = ways.build("points")
    before = predict(model, *question)
    handle = nn.modules.module.register_module_forward_hook(lambda part, given, out: ways.more(out))
    expected, predicted, trained = answers(model, question)
    handle.remove()
    assert differ(predicted, expected) < 1e-5
    assert differ(trained, expected) < 1e-5
    assert differ(predict(model, *question), before) < 1e-6 < differ(expected, before)


class SquaredAttention(LinearAttention):
    """Another feature map."""

    def feature_map(self, x):
        return x.square() + 0.1


@pytest.fixture
def own_attention():
    """A surrogate whose attentions have another feature map, and the same one without."""
    data = vcnef.generate("burgers", samples=20, params={"nu": (0.01, 0.1)}, resolution=16, frames=3, horizon=0.1)
    plain, changed = (vcnef.Surrogate.build("vcnef", ways.SIZES, data, seed=0) for _ in range(2))
    for block in [*changed.model.blocks[:-1], *changed.model.modulations]:
        block.attention.__class__ = SquaredAttention
    return plain, changed, data


def test_evaluations_are_of_the_changed_model(own_attention, monkeypatch):
    plain, changed, data = own_attention
    scores = [vcnef.evaluate(each, data, solver=False).nrmse for each in (plain, changed)]
    monkeypatch.setenv("VCNEF_KERNELS", "0")
    np.testing.assert_allclose(vcnef.evaluate(changed, data, solver=False).nrmse, scores[1], rtol=1e-5)
    assert np.abs(scores[0] / scores[1] - 1).max() > 1e-3


def test_exported_files_are_of_the_changed_model(tmp_path):
    """In a process of its own: the tests' shape checker is not made to be traced."""
    command = [sys.executable, HERE / "exported_changes.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]


def test_the_plan_names_what_is_changed(own_attention):
    plain, changed, _ = own_attention
    assert "modulations.0.attention  reference: its type is SquaredAttention" in vcnef.explain(changed)
    assert "reference" not in vcnef.explain(plain)


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
@pytest.mark.parametrize("script", ["interpreted_models.py", "interpreted_changes.py"])
def test_in_tritons_interpreter(script):
    """With the kernels of a GPU: models as they are, and changed."""
    path = os.pathsep.join([str(HERE / "kernels"), str(HERE), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": path}
    command = [sys.executable, HERE / script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
