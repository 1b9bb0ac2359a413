"""Models of others: any module or function is judged as a surrogate is, or one sentence says what is expected."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import vcnef
from vcnef.evaluation import evaluate, predict_trajectories
from vcnef.metrics import nrmse
from vcnef.report import RunRecord, build_report


def decay(u0, t, params):
    """Ten per cent too large."""
    return 1.1 * u0[:, None] * torch.exp(-params * t)[..., None, None]


class Decay(nn.Module):
    def __init__(self):
        super().__init__()
        self.size = nn.Parameter(torch.tensor(1.1))
        self.noise = nn.Dropout(0.5)

    def forward(self, u0, grid, t, params=None):
        assert grid.shape == (*u0.shape[1:-1], 1)
        return self.noise(self.size * u0[:, None] * torch.exp(-params * t)[..., None, None])


def arrays(u0, t, params):
    return 1.1 * np.asarray(u0)[:, None] * np.exp(-np.asarray(params * t, dtype=np.float64))[..., None, None]


def several(*asked):
    u0, t, params = asked
    return decay(u0, t, params)


@pytest.mark.parametrize(
    "model", [decay, Decay(), arrays, several, lambda u0, t, params, power=1: decay(u0, t, params)]
)
def test_modules_and_functions_are_judged(make_data, model):
    data = make_data(rates=(0.5, 2.0), points=16)
    found = evaluate(model, data, name="mine")
    assert found.result.value("nrmse") == pytest.approx(0.1, rel=1e-5)
    assert found.result.cost.seconds > 0
    assert found.table().startswith("mine on decay, test split: 2 trajectories, 16 points, 9 times\n")
    assert [group.seen for group in found.parameters] == [None, None]
    assert not any("range" in note for note in found.notes)


def test_a_module_is_asked_as_it_is_for_evaluation_and_left_as_it_was(make_data):
    model = Decay().train()
    evaluate(model, make_data(points=16))
    assert model.training


def test_bare_models_of_ours_are_such_modules(make_data):
    data = make_data(points=16, frames=5)
    model = vcnef.build("vcnef", ndim=1, channels=1, params=1, width=8, heads=2, depth=1, modulations=1)
    found = evaluate(model, data)
    assert found.model == "VCNeF"
    with torch.no_grad():
        test = data.split("test")
        answer = model(test.u[:, 0], data.grid, data.t[1:], test.params)
    expected = vcnef.metrics.nrmse(answer, test.u[:, 1:], initial_frames=0)
    assert found.result.value("nrmse") == pytest.approx(expected.item(), rel=1e-4)


def test_data_without_parameters_have_none(make_data):
    whole = make_data(points=16)
    data = vcnef.from_arrays(whole.u, t=whole.t)

    def still(u0, t, params):
        assert params is None
        return u0[:, None].expand(-1, len(t), -1, -1)

    found = evaluate(still, data)
    assert found.result.value("nrmse") == pytest.approx(found.baselines["persistence"])


def test_what_it_was_trained_on_nobody_knows(make_data):
    """It is judged on the split that the data themselves have, and a note says that these are not all."""
    data = make_data(points=16)
    found = evaluate(decay, data)
    assert found.params["rate"].shape == (1,)
    assert found.notes[0] == (
        "The model does not say which trajectories it was trained on: judged on 1 of 10, their test split. If it has "
        "seen none of them, judge all with split='all', or --split all."
    )
    assert evaluate(decay, data, split="all").samples == 10
    assert not any("trained on:" in note for note in evaluate(decay, data, split="all").notes)
    asked = []
    for in_order in (True, False):
        ordered = replace(data, split_in_order=in_order)
        evaluate(lambda u0, t, params: asked.append(u0) or decay(u0, t, params), ordered, solver=False)
        assert torch.equal(asked[0], ordered.split("test").u[:, 0])
        asked.clear()


def test_its_fields_are_there_for_figures(make_data):
    data = make_data(points=16)
    _, truth, prediction = predict_trajectories(decay, data, [0, 3])
    torch.testing.assert_close(prediction, 1.1 * truth)


BAD_SHAPES = {
    "(1, 9, 16, 1); expected (1, 8, 16, 1), which is [samples, times, *space, channels] of the 8 times t. "
    "Leave out the initial state: return u[:, 1:].": lambda u: torch.cat([u[:, :1], u], dim=1),
    "Move the channels to the end: return u.movedim(2, -1).": lambda u: u.movedim(-1, 2),
    "Add the axis of channels: return u[..., None].": lambda u: u[..., 0],
    "Return one state like u0 for each time.": lambda u: u[:, -1],
}


@pytest.mark.parametrize("advice", BAD_SHAPES)
def test_an_answer_of_another_shape_is_refused_in_a_sentence(make_data, advice):
    change = BAD_SHAPES[advice]
    with pytest.raises(ValueError, match=f"^mine gave u of shape .*{re.escape(advice)}$"):
        evaluate(lambda u0, t, params: change(decay(u0, t, params)), make_data(points=16), name="mine")


@pytest.mark.parametrize("change", [lambda u: u.to(torch.complex64), lambda u: {"u": u}, lambda u: str(u)])
def test_an_answer_that_is_no_field_is_refused(make_data, change):
    with pytest.raises(ValueError, match=r"^model gave .* expected a tensor or an array of real numbers\. Return the"):
        evaluate(lambda u0, t, params: change(decay(u0, t, params)), make_data(points=16))


@pytest.mark.parametrize(
    ("model", "takes"),
    [
        (nn.Linear(1, 1), "Linear takes (input)"),
        (lambda u: u, "model takes (u)"),
        (lambda u, grid, params=None: u, "model takes (u, grid, params)"),
    ],
)
def test_a_model_that_takes_something_else_is_refused(make_data, model, takes):
    expected = f"{takes}; expected (u0, t, params), or (u0, grid, t, params), that gives u [samples, times, *space, cha"
    with pytest.raises(ValueError, match=re.escape(expected)):
        evaluate(model, make_data())


def test_what_is_no_model_is_refused(make_data):
    with pytest.raises(
        ValueError, match="no model to judge in int; expected a surrogate, a run, a folder, or a module"
    ):
        evaluate(3, make_data())


def test_they_stand_beside_our_models_in_a_report(make_data, make_surrogate, tmp_path):
    data = make_data(points=16, samples=30)
    both = [evaluate(make_surrogate(data, provenance={}), data), evaluate(decay, data, name="theirs")]
    page = build_report([RunRecord(each.model, metrics=each.to_dict()) for each in both])
    assert "theirs, made elsewhere; judged on 3 trajectories of the test split." in page
    assert "no training log" not in page
    assert page.count("nRMSE without a model: initial state, repeated") == 1


def test_an_evaluation_says_what_there_is_without_a_model(make_data, make_surrogate):
    data = make_data(samples=30)
    found = evaluate(make_surrogate(data), data)
    u, train = data.u[:3, ::2, ::4], data.u[4:, ::2, ::4].mean(dim=0)
    nrmse = vcnef.metrics.nrmse
    assert found.baselines["persistence"] == pytest.approx(
        nrmse(u[:, :1].expand_as(u)[:, 1:], u[:, 1:], initial_frames=0).item()
    )
    assert found.baselines["mean"] == pytest.approx(nrmse(train.expand_as(u)[:, 1:], u[:, 1:], initial_frames=0).item())
    (section,) = [each for each in found.sections() if each.title == "Without a model"]
    assert [row[0] for row in section.rows] == [
        "initial state, repeated", "mean of the initial state", "mean of the training split",
        "mean of each channel in training",
    ]  # fmt: skip
    assert "baselines" in found.to_dict()


def test_a_split_alone_has_no_mean_of_training(make_data, make_surrogate):
    data = make_data(samples=30)
    surrogate = make_surrogate(data)
    assert set(evaluate(surrogate, data.split("test")).baselines) == {"persistence", "level"}
    assert set(evaluate(surrogate, data, split="all").baselines) == {"persistence", "level"}


def test_constant_answers_are_judged_too(make_data, make_surrogate):
    """The mean of each state over its points, and that of each channel over all of training."""
    data = make_data(rates=(1.0, 2.0), samples=20)
    found = evaluate(make_surrogate(data, trained=(1.0, 2.0)), data, split="test")
    assert list(found.baselines) == ["persistence", "level", "mean", "constant"]
    test = data.split("test").view(space_stride=4, time_stride=2)
    level = test.u[:, :1].mean(dim=2, keepdim=True).expand_as(test.u)
    assert found.baselines["level"] == pytest.approx(float(nrmse(level, test.u)), rel=1e-4)
    assert "mean of the initial state" in found.table()
    assert "mean of each channel in training" in found.table()
