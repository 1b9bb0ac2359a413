"""Surrogates that are compiled, copied, pickled or in double precision answer, and are saved, as they did before."""

import copy
import pickle

import numpy as np
import pytest
import torch

from vcnef.accelerate import explain
from vcnef.accelerate.recognise import change_everywhere
from vcnef.evaluation import evaluate
from vcnef.models import vcnef
from vcnef.models.registry import MODELS
from vcnef.surrogate import Surrogate

U0 = 1.0 + 0.4 * np.sin(np.linspace(0.0, 6.0, 8))
SMALL = {"vcnef": None, "fno": {"width": 8, "modes": 3}, "coral": {}}


def compile_whole(surrogate):
    surrogate.model = torch.compile(surrogate.model, backend="eager")


def compile_in_place(surrogate):
    surrogate.model.compile(backend="eager")


def compile_a_part(surrogate):
    surrogate.model.encoder = torch.compile(surrogate.model.encoder, backend="eager")


WAYS = [compile_whole, compile_in_place, compile_a_part]


def ask(surrogate, **more):
    return surrogate.predict(U0, [0.5, 1.0], {"nu": 0.01}, **more).values


@pytest.fixture
def uncompiled():
    """The compiler's modules, run as they are: it cannot follow the checks of shapes that the tests put around them."""
    with torch.compiler.set_stance("force_eager"):
        yield


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("way", WAYS)
def test_a_compiled_surrogate(make_surrogate, tmp_path, way):
    surrogate = make_surrogate()
    expected = ask(surrogate)
    way(surrogate)
    np.testing.assert_array_equal(ask(surrogate), expected)
    assert way is compile_a_part or "no other way to run" not in explain(surrogate)
    surrogate.save(tmp_path)
    np.testing.assert_array_equal(ask(Surrogate.load(tmp_path)), expected)
    for again in (copy.deepcopy(surrogate), pickle.loads(pickle.dumps(surrogate))):
        np.testing.assert_allclose(ask(again), expected, atol=1e-6)


def test_what_the_compiler_leaves_in_a_file_is_no_change_of_it(monkeypatch):
    def made():
        pass

    made.__module__ = None
    monkeypatch.setitem(vars(vcnef), "__compiled_fn_1_750b76e4", made)
    assert change_everywhere() is None
    monkeypatch.setitem(vars(vcnef), "rearrange", made)
    assert change_everywhere() == "vcnef.models.vcnef.rearrange was replaced"


@pytest.mark.usefixtures("uncompiled")
def test_a_compiled_surrogate_is_exported(make_surrogate, tmp_path):
    surrogate = make_surrogate()
    compile_whole(surrogate)
    assert surrogate.export(tmp_path / "model.pt2") < 1e-4


@pytest.mark.usefixtures("uncompiled")
def test_gradients_run_through_a_compiled_model(make_surrogate):
    surrogate = make_surrogate()
    u0 = torch.from_numpy(U0).float()[None, :, None].requires_grad_()
    question = torch.linspace(0, 1, 8)[:, None], torch.tensor([0.5]), torch.tensor([[0.01]])
    expected = surrogate.answer(u0, *question, differentiable=True)
    compile_whole(surrogate)
    found = surrogate.answer(u0, *question, differentiable=True)
    torch.testing.assert_close(found, expected)
    assert found.requires_grad


@pytest.mark.usefixtures("uncompiled")
def test_a_compiled_model_that_steps_is_asked_between_its_frames(make_surrogate):
    surrogate = make_surrogate(model="fno", options=SMALL["fno"])
    expected = surrogate.predict(U0, [0.3], {"nu": 0.01})
    compile_whole(surrogate)
    np.testing.assert_array_equal(surrogate.predict(U0, [0.3], {"nu": 0.01}), expected)


@pytest.mark.parametrize("model", SMALL)
def test_copies(make_surrogate, model):
    surrogate = make_surrogate(model=model, options=SMALL[model])
    expected = ask(surrogate)
    for again in (copy.deepcopy(surrogate), pickle.loads(pickle.dumps(surrogate))):
        np.testing.assert_array_equal(ask(again), expected)
        with torch.no_grad():
            next(again.model.parameters()).zero_()
        np.testing.assert_array_equal(ask(surrogate), expected)


@pytest.mark.parametrize("model", [name for name in MODELS if name not in ("pinn", "coral")])
def test_double_precision(make_surrogate, model):
    surrogate = make_surrogate(model=model, options=SMALL.get(model, {}))
    single = ask(surrogate)
    assert surrogate.double() is surrogate
    double = ask(surrogate)
    assert double.dtype == np.float64
    np.testing.assert_allclose(double, single, atol=1e-5)
    # What is asked keeps its digits, too.
    other = surrogate.predict(U0 + 1e-10, [0.5, 1.0], {"nu": 0.01 + 1e-12}).values
    assert 0 < np.abs(other - double).max() < 1e-8
    np.testing.assert_array_equal(ask(surrogate.to(torch.float32)), single)


def test_double_precision_elsewhere(make_surrogate, make_data, tmp_path):
    surrogate, data = make_surrogate(samples=12), make_data(samples=12)
    single, scores = ask(surrogate), evaluate(surrogate, data).to_dict()["result"]["scores"]["overall"]
    surrogate.to(torch.float64)
    again = evaluate(surrogate, data).to_dict()["result"]["scores"]["overall"]
    assert again["nrmse"] == pytest.approx(scores["nrmse"], rel=1e-4)
    surrogate.save(tmp_path / "model")
    np.testing.assert_array_equal(ask(Surrogate.load(tmp_path / "model")), single)
    assert surrogate.export(tmp_path / "model.pt2") < 1e-4
    assert ask(surrogate.to("cpu", torch.float64)).dtype == np.float64
    # The weights alone may have been changed.
    fresh = Surrogate.load(tmp_path / "model")
    fresh.model.double()
    assert ask(fresh).dtype == np.float64


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int32])
def test_other_precisions_are_refused(make_surrogate, dtype):
    with pytest.raises(ValueError, match=rf"dtype is {dtype}; expected torch.float32 or torch.float64. Half precision"):
        make_surrogate().to(dtype)
