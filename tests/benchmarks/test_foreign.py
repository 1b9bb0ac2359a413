"""`benchmarks/foreign.py`: every model is trained on the same data, and the best on valid is the one that is judged."""

import pytest
import torch

import foreign
import foreign_models
import foreign_problems
from vcnef.models.registry import MODELS


@pytest.fixture
def small(monkeypatch):
    make = foreign_problems.make
    monkeypatch.setattr(foreign, "make", lambda name, device: make(name, samples=24, device=device))


@pytest.mark.parametrize(("problem", "model"), [("heat_walls", "vcnef"), ("kdv", "fno")])
def test_a_run_says_what_was_done(small, problem, model):
    threads = torch.get_num_threads()
    found = foreign.run(problem, model, foreign.RATES[model][0], 0, 0.02, "cpu")
    torch.set_num_threads(threads)
    assert (found["problem"], found["model"]) == (problem, model)
    assert 0 < found["nrmse"] < 10
    assert 0 < found["valid"] < 10
    assert (found["window"] is None) == (model == "fno")


def test_settings_follow_the_name_of_a_model():
    data = foreign_problems.make("kdv", samples=4)
    assert foreign.options("vcnef modes=8 patches=[2]", data, None) == {"modes": 8, "patches": [2]}
    tuned = foreign.options("fno chain=4", data, 1e-3)
    assert (tuned["model"], tuned["chain"], tuned["learning_rate"], tuned["unroll"]) == ("fno", 4, 1e-3, "push_forward")
    with pytest.raises(ValueError, match="The model is 'cnn'; expected one of vcnef, direct, fno"):
        foreign.read("cnn width=3")


def test_the_step_of_a_library_adds_the_change_and_sees_parameters():
    class Change(torch.nn.Module):
        """Of the field, its parameter times itself."""

        def forward(self, inputs):
            field, rate = inputs.split(1, dim=1)
            return rate * field

    step = foreign_models.LibraryStep(2, 1, 1, Change())
    u, params = torch.randn(3, 4, 5, 1), torch.tensor([[0.0], [0.5], [2.0]])
    torch.testing.assert_close(step(u, None, params), u * (1 + params)[:, :, None, None])


@pytest.mark.skipif(not foreign_models.INSTALLED, reason="neuraloperator is not installed")
@pytest.mark.parametrize("problem", ["heat_walls", "kdv"])
def test_the_fno_of_neuraloperator_is_trained_too(small, problem, monkeypatch):
    monkeypatch.setitem(MODELS, "neuralop", foreign_models.neuralop)  # other tests do not know it afterwards
    found = foreign.run(problem, "neuralop", 1e-3, 0, 0.02, "cpu")
    assert 0 < found["nrmse"] < 10


def test_nobody_sees_the_trajectories_that_are_judged():
    data = foreign_problems.make("heat_walls", samples=30)
    learnt, asked = foreign.parts(data)
    assert (len(learnt["u"]), len(asked["u"])) == (27, 3)
    seen = {float(each) for each in learnt["params"]["k"]}
    assert not seen & {float(each) for each in asked["params"]["k"]}


def test_the_best_on_valid_is_judged():
    shared = {"problem": "ks", "model": "fno", "seed": 0}
    found = [shared | {"valid": 0.2, "nrmse": 0.1}, shared | {"valid": 0.1, "nrmse": 0.3}]
    found.append({"problem": "ks", "model": "vcnef", "seed": 0, "valid": 1.0, "nrmse": 0.05})
    assert foreign.table(found).splitlines()[-1] == "| ks | 0.3000 | 0.0500 |"
