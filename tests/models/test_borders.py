"""Bad input raises one clear sentence that names expected and got."""

from functools import partial

import jaxtyping
import pytest
import torch

import vcnef
from vcnef.accelerate import predict


@pytest.fixture(autouse=True)
def unchecked(monkeypatch):
    """Without the tests' shape checker, as in production, so that our own messages are seen."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.fixture
def model():
    return vcnef.build("vcnef", ndim=1, channels=2, params=1, width=8, heads=2)


GOOD = {"u0": (3, 10, 2), "grid": (10, 1), "t": (4,), "params": (3, 1)}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"u0": (3, 10, 1)}, r"expects u0 of shape \(batch, \*space, 2\), got \(3, 10, 1\)"),
        ({"u0": (10, 2)}, r"expects u0 of shape \(batch, \*space, 2\), got \(10, 2\)"),
        ({"grid": (9, 1)}, r"expects a grid of shape \(10, 1\), or \(3, 10, 1\) if samples differ, got \(9, 1\)"),
        ({"grid": (10, 2)}, r"got \(10, 2\)"),
        ({"grid": (2, 10, 1)}, r"got \(2, 10, 1\)"),
        ({"t": ()}, r"expects times of shape \(t,\), or \(3, t\) if samples differ, got \(\)"),
        ({"t": (2, 4)}, r"got \(2, 4\)"),
        ({"t": (3, 4, 1)}, r"got \(3, 4, 1\)"),
        ({"params": None}, r"expects PDE parameters of shape \(3, 1\), got none"),
        ({"params": (3, 2)}, r"expects PDE parameters of shape \(3, 1\), got \(3, 2\)"),
    ],
)
def test_wrong_shapes(model, wrong, message):
    tensors = {name: shape if shape is None else torch.rand(shape) for name, shape in (GOOD | wrong).items()}
    with pytest.raises(ValueError, match=message):
        model(**tensors)
    with pytest.raises(ValueError, match=message):
        predict(model, **tensors)


@pytest.mark.parametrize(
    ("name", "options"),
    [("fno", {"width": 8}), ("vcnef", {"patches": (4,)}), ("vcnef", {"patches": (), "local": 1, "sides": (8, 8)})],
)
def test_scattered_points_where_a_grid_is_needed(name, options):
    sizes = {"width": 8, "heads": 2} if name == "vcnef" else {}
    model = vcnef.build(name, ndim=2, channels=1, **sizes | options)
    assert not model.scattered
    with pytest.raises(ValueError, match=r"expects u0 on a grid of 2 axes, got shape \(3, 10, 1\)\. Interpolate"):
        predict(model, torch.rand(3, 10, 1), torch.rand(10, 2), torch.ones(1))


def test_a_table_of_no_parameters_is_none():
    """As batches of data without parameters have it."""
    model = vcnef.build("vcnef", ndim=1, channels=1, width=8, heads=2)
    asked = torch.rand(3, 10, 1), torch.rand(10, 1), torch.rand(4)
    torch.testing.assert_close(model(*asked, torch.zeros(3, 0)), model(*asked))


def test_parameters_that_the_model_does_not_take():
    model = vcnef.build("vcnef", ndim=1, channels=2, width=8, heads=2)
    with pytest.raises(ValueError, match=r"built without PDE parameters, got some of shape \(3, 1\)"):
        model(**{name: torch.rand(shape) for name, shape in GOOD.items()})


@pytest.mark.parametrize("name", ["grid", "t", "params"])
def test_mixed_precision_of_inputs_is_named(model, name):
    tensors = {key: torch.rand(shape) for key, shape in GOOD.items()}
    tensors[name] = tensors[name].double()
    with pytest.raises(ValueError, match=f"expects {name} of u0's type, torch.float32, got torch.float64"):
        model(**tensors)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int64])
def test_inputs_of_another_type_than_the_weights_are_named(model, dtype):
    tensors = {key: torch.ones(shape, dtype=dtype) for key, shape in GOOD.items()}
    message = rf"u0 of its weights' type, torch\.float32, got {dtype}\. .* with \.to\(torch\.float32\), or the model"
    for ask in (model, partial(predict, model)):
        with pytest.raises(ValueError, match=message):
            ask(**tensors)
    if dtype.is_floating_point:
        assert model.to(dtype)(**tensors).dtype == dtype


@pytest.mark.parametrize("name", list(GOOD))
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_values_that_are_not_finite(model, name, value):
    tensors = {key: torch.rand(shape) for key, shape in GOOD.items()}
    tensors[name].view(-1)[0] = value
    with pytest.raises(ValueError, match=f"{name} has 1 non-finite values among {tensors[name].numel()}"):
        predict(model, **tensors)


def test_a_chunk_needs_a_point(model):
    with pytest.raises(ValueError, match="points_per_chunk is 0; expected at least 1"):
        predict(model, **{name: torch.rand(shape) for name, shape in GOOD.items()}, points_per_chunk=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"atention": "linear"}, "no option 'atention'. Did you mean 'attention'"),
        ({"banana": 1}, "no option 'banana'. Use one of variant, width"),
        ({"ndim": 4}, "ndim is 4; expected one of 1, 2, 3"),
        ({"variant": "arxiv"}, "variant is 'arxiv'; expected one of 'paper', 'release'"),
        ({"attention": "flash"}, "attention is 'flash'; expected one of 'linear', 'softmax', 'none'"),
        ({"activation": "tanh"}, "activation is 'tanh'; expected one of None, 'relu', 'gelu'"),
        ({"conditioning": "film"}, "conditioning is 'film'; expected one of 'scale', 'scale_shift'"),
        ({"patches": (3, 16)}, r"patches is \(3, 16\); expected even sizes"),
        ({"width": 0}, "width is 0; expected at least 1"),
        ({"channels": 0}, "channels is 0; expected at least 1"),
        ({"params": -1}, "params is -1; expected at least 0"),
        ({"heads": 7}, "Width 96 cannot be divided among 7 heads"),
        ({"dropout": 1.5}, "dropout is 1.5; expected a probability below 1"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        vcnef.build("vcnef", **({"ndim": 1, "channels": 1} | options))


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("fno", "width", 0),
        ("fno", "modes", 0),
        ("fno", "depth", 0),
        ("mp_pde", "depth", 0),
        ("mp_pde", "bundle", 0),
        ("oformer", "heads", 0),
        ("oformer", "propagators", -1),
    ],
)
def test_sizes_of_baselines_are_at_least_one(name, option, value):
    with pytest.raises(ValueError, match=f"{option} is {value}; expected at least 1"):
        vcnef.build(name, ndim=1, channels=1, **{option: value})


@pytest.mark.parametrize("name", list(vcnef.list_models()))
def test_numbers_of_fields_and_parameters_that_no_model_has(name):
    with pytest.raises(ValueError, match="channels is 0; expected at least 1"):
        vcnef.build(name, ndim=1, channels=0)
    with pytest.raises(ValueError, match="params is -1; expected at least 0"):
        vcnef.build(name, ndim=1, channels=1, params=-1)


def test_unknown_model():
    with pytest.raises(ValueError, match=r"no model 'vcnet'. Did you mean 'vcnef'"):
        vcnef.build("vcnet", ndim=1, channels=1)


def test_models_are_listed_with_a_line_each():
    assert all(line and "\n" not in line for line in vcnef.list_models().values())
    assert "vcnef" in vcnef.list_models()


def test_options_beyond_the_paper_that_cannot_be():
    sizes = {"ndim": 2, "channels": 1, "width": 8, "heads": 2}
    with pytest.raises(
        ValueError, match=r"frequencies is 2 with patches \(4, 16\) and lengths .*; expected no patches"
    ):
        vcnef.build("vcnef", **sizes, frequencies=2, lengths=(1.0, 1.0))
    with pytest.raises(ValueError, match=r"lengths \(1.0,\); expected no patches, .* and 2 lengths of the domain"):
        vcnef.build("vcnef", **sizes, frequencies=2, patches=(), lengths=(1.0,))
    with pytest.raises(ValueError, match=r"lengths \(1.0, 0.0\); expected .* 2 lengths of the domain, all above 0\."):
        vcnef.build("vcnef", **sizes, frequencies=2, patches=(), lengths=(1.0, 0.0))
    for patches in ((), (4, 16)):
        with pytest.raises(ValueError, match=r"pace is 0; expected a factor above 0\."):
            vcnef.build("vcnef", **sizes, patches=patches, pace=0.0)
    with pytest.raises(ValueError, match=r"clocks is 8 with 0 parameters and 0 speeds; expected parameters"):
        vcnef.build("vcnef", **sizes, clocks=8)
    with pytest.raises(ValueError, match=r"clocks is 8 with 2 parameters and 1 speeds"):
        vcnef.build("vcnef", **sizes, params=2, clocks=8, speeds=((0.0, 1.0, True),))
    with pytest.raises(
        ValueError, match=r"local is 1 with sides \(7,\); a stencil needs a regular grid. Give its 2 sides"
    ):
        vcnef.build("vcnef", **sizes, local=1, sides=(7,))
    with pytest.raises(ValueError, match=r"patches is \(4, 16\) with sides \(7,\); patches need a regular grid\. Give"):
        vcnef.build("vcnef", **sizes, sides=(7,))
    with pytest.raises(ValueError, match=r"patches is \(4, 16\) with sides \(0, 8\); patches need a regular grid"):
        vcnef.build("vcnef", **sizes, sides=(0, 8))
