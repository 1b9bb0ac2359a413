"""Scales of fields, parameters and times: from training data alone, invertible, storable."""

import json
from dataclasses import replace

import pytest
import torch

from vcnef.data import Normaliser, ParameterScale, Scaling
from vcnef.data import open as open_data
from vcnef.data.normalise import PointScale


def test_training_fields_get_zero_mean_and_unit_spread(make_data):
    train = make_data("cns1d").split("train")
    z = Normaliser.fit(train).normalise(train.u)
    assert torch.allclose(z.flatten(0, -2).mean(dim=0), torch.zeros(3), atol=1e-5)
    assert torch.allclose(z.flatten(0, -2).std(dim=0), torch.ones(3), atol=1e-3)


def test_streamed_data_give_the_same_scales(make_data, tmp_path, monkeypatch):
    monkeypatch.setattr("vcnef.data.rows.BLOCK_BYTES", 1000)
    data = make_data("cns1d")
    stored = open_data(data.save(tmp_path / "a.hdf5"), stream=True)
    assert Normaliser.fit(stored).to_dict() == Normaliser.fit(data).to_dict()


@pytest.mark.parametrize("log", [(), ("density", "pressure")])
def test_normalisation_is_invertible_and_goes_through_json(make_data, log):
    data = make_data("cns1d")
    fitted = Normaliser.fit(data, log)
    again = Normaliser.from_dict(json.loads(json.dumps(fitted.to_dict())))
    assert torch.allclose(again.denormalise(fitted.normalise(data.u)), data.u, rtol=1e-5)
    assert again.log.tolist() == [name in log for name in data.problem.channels]
    if log:
        expected = data.u[..., 0].log()
        assert torch.allclose(
            fitted.normalise(data.u)[..., 0], (expected - expected.mean()) / expected.std(correction=0), atol=1e-3
        )


def test_gradients_pass_the_unused_branch(make_data):
    data = make_data("cns1d")
    z = torch.full((4, 3), 200.0, requires_grad=True)
    Normaliser.fit(data, ("density",)).denormalise(z)[:, 1:].sum().backward()
    assert torch.isfinite(z.grad).all()


def test_a_constant_channel_is_only_shifted(make_data):
    data = make_data("cns1d")
    data.u[..., 2] = 7.0
    assert Normaliser.fit(data).normalise(data.u)[..., 2].abs().max() < 1e-5


@pytest.mark.parametrize("value", [1.0, 7.0])
def test_rounding_does_not_make_a_constant_channel_change_in_its_logarithm(make_data, value):
    data = make_data("cns1d")
    data.u[..., 0] = value * (1 + 1e-7 * data.u[..., 0])
    assert Normaliser.fit(data, ("density",)).normalise(data.u)[..., 0].abs().max() < 1e-5


def test_a_small_unit_makes_no_channel_constant(make_data):
    data = make_data("cns1d")
    u = data.u - data.u.mean()
    small = Normaliser.fit(replace(data, u=2.0**-90 * u))
    assert torch.equal(small.std, 2.0**-90 * Normaliser.fit(replace(data, u=u)).std)
    assert Normaliser.fit(replace(data, u=0 * u)).std.tolist() == [1.0, 1.0, 1.0]


def test_parameters_that_span_decades_are_scaled_in_their_logarithm():
    scale = ParameterScale.fit({"nu": (1e-3, 10.0), "beta": (1.0, 3.0), "eta": (0.5, 0.5)})
    assert scale.log == (True, False, False)
    params = torch.tensor([[1e-3, 1.0, 0.5], [0.1, 2.0, 0.5], [10.0, 3.0, 0.5]])
    scaled = scale.scale(params)
    assert torch.allclose(scaled, torch.tensor([[-1.0, -1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 1.0, 0.0]]), atol=1e-6)
    assert torch.allclose(scale.unscale(scaled), params, rtol=1e-5)
    none = ParameterScale.fit({})
    assert none.scale(torch.zeros(3, 0)).shape == none.unscale(torch.zeros(3, 0)).shape == (3, 0)


def test_speeds_are_the_sizes_of_parameters():
    ranges = {"nu": (1e-3, 10.0), "beta": (-4.0, 3.0), "eta": (0.5, 0.5), "zeta": (0.0, 0.0)}
    params = torch.tensor([[1e-3, -4.0, 0.5, 0.0], [0.1, 2.0, 0.5, 0.0], [20.0, 3.0, 1.0, 0.0]])
    scale = ParameterScale.fit(ranges)
    for one in (scale, ParameterScale((0.0,) * 4, (1.0,) * 4, (False,) * 4)):
        columns = zip(one.scale(params).unbind(1), one.speeds(ranges), strict=True)
        found = [(a + b * each).exp() if log else a + b * each for each, (a, b, log) in columns]
        expected = params / torch.tensor([10.0, 4.0, 0.5, 1.0])
        assert torch.allclose(torch.stack(found, dim=1), expected, rtol=1e-4, atol=1e-6)


def test_points_are_measured_from_the_corner_in_longest_sides():
    scale = PointScale.fit(((-2.0, 2.0), (500.0, 501.0)))
    assert (scale.origin, scale.length) == ((-2.0, 500.0), 4.0)
    grid = torch.tensor([[-2.0, 500.0], [0.0, 500.5], [2.0, 501.0]])
    assert scale.scale(grid).tolist() == [[0.0, 0.0], [0.5, 0.125], [1.0, 0.25]]
    assert PointScale.from_dict(json.loads(json.dumps(scale.to_dict()))) == scale
    # Nothing to do, nothing to store.
    assert PointScale.fit(((0.0, 1.0), (0.0, 0.5))) is None


def test_all_scales_together(make_data):
    data = make_data().view(horizon=0.8)
    scaling = Scaling.fit(data.split("train"))
    assert scaling.units(data.u[:, 0], data.params).times(data.t)[-1] == 1.0
    again = Scaling.from_dict(json.loads(json.dumps(scaling.to_dict())))
    assert again.to_dict() == scaling.to_dict()
    assert again.params == scaling.params
    assert "points" not in scaling.to_dict()
    gas = Scaling.fit(make_data("cns1d"))
    assert Scaling.from_dict(json.loads(json.dumps(gas.to_dict()))).points == gas.points == PointScale((-1.0,), 2.0)


def test_messages(make_data):
    data = make_data("cns1d")
    with pytest.raises(ValueError, match="fitted on training data; got the test split"):
        Normaliser.fit(data.split("test"))
    with pytest.raises(ValueError, match=r"log names \['rho'\]; the channels are density, pressure, vx"):
        Normaliser.fit(data, ("rho",))
    with pytest.raises(ValueError, match=r"log names \['vx'\], but not all their values are positive"):
        Normaliser.fit(replace(data, u=-data.u), ("vx",))
