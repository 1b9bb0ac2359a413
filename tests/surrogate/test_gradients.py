"""Gradients run through an answer in physical units, from window to window, or it is said that they do not."""

import warnings
from dataclasses import replace

import pytest
import torch

import vcnef
from vcnef.surrogate.composition import compose

KINDS = {
    "vcnef": {"width": 8, "heads": 2, "depth": 1, "modulations": 1, "activation": "gelu"},
    "fno": {"width": 4, "modes": 2},
    "coral": {"width": 8, "latent": 4, "dynamics_width": 8},
}
NAMES = ("u0", "grid", "t", "params")


def doubled(surrogate):
    """In double precision, for differences."""
    surrogate.model.double()
    return surrogate


def question(data, t):
    given = data.u[:2, 0], data.grid, torch.tensor(t), data.params[:2]
    return {name: value.double() for name, value in zip(NAMES, given, strict=True)}


def slope_of(function, values, direction, step=1e-6):
    """Of a number, by central differences."""
    return (function(values + step * direction) - function(values - step * direction)) / (2 * step)


@pytest.mark.parametrize("options", [{}, {"log": ("u",)}, {"own_time": True}], ids=["plain", "log", "own time"])
@pytest.mark.parametrize("t", [[0.3, 1.0, 1.7], [0.5, 1.9, 3.1, 3.9, 5.2]], ids=["within a window", "over windows"])
@pytest.mark.parametrize("by", NAMES)
def test_gradients_are_those_of_differences(make_surrogate, make_data, by, t, options):
    surrogate, given = doubled(make_surrogate(options=KINDS["vcnef"], **options)), question(make_data(), t)
    weights = torch.randn(2, len(t), 8, 1).double()

    def total(values):
        return (surrogate.answer(**given | {by: values}, differentiable=True) * weights).sum()

    values = given[by].clone().requires_grad_()
    (gradient,) = torch.autograd.grad(total(values), values)
    direction = torch.randn_like(values)
    if by == "params":
        direction = direction * given["params"]
    with torch.no_grad():
        expected = slope_of(total, given[by], direction)
    assert expected.abs() > 1e-9
    torch.testing.assert_close((gradient * direction).sum(), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model_has_them(make_surrogate, make_data, kind):
    surrogate, given = doubled(make_surrogate(model=kind, options=KINDS[kind])), question(make_data(), [0.3, 1.0, 2.5])
    expected = surrogate.answer(**given)
    values = [given[name].requires_grad_() for name in ("u0", "params")]
    found = surrogate.answer(**given, differentiable=True)
    torch.testing.assert_close(found, expected)
    gradients = torch.autograd.grad(found.square().sum(), [*values, *surrogate.model.parameters()], allow_unused=True)
    assert all(each.any() for each in gradients[:2])
    assert any(each is not None and each.any() for each in gradients[2:])
    assert surrogate.answer(**{name: value.detach() for name, value in given.items()}).grad_fn is None


def test_an_answer_depends_on_no_time_but_its_own(make_surrogate, make_data):
    """Also where one is asked for at the end of a window, from which the next one starts."""
    surrogate, given = doubled(make_surrogate(options=KINDS["vcnef"])), question(make_data(), [2.0, 3.0, 4.0])

    def answer(t):
        return surrogate.answer(**given | {"t": t}, differentiable=True).flatten(2).sum((0, 2))

    jacobian = torch.autograd.functional.jacobian(answer, given["t"])
    assert torch.equal(jacobian, jacobian.diag().diag())
    assert jacobian.diag().abs().min() > 1e-6
    slope = torch.func.jvp(answer, (given["t"],), (torch.ones(3).double(),))[1]
    torch.testing.assert_close(slope, jacobian.diag())
    # Forward mode asks for no flag: there is nothing that would be cut.
    without = torch.func.jvp(lambda t: surrogate.answer(**given | {"t": t}), (given["t"],), (torch.ones(3).double(),))
    torch.testing.assert_close(without[1].flatten(2).sum((0, 2)), slope)


def test_a_time_just_behind_a_window_has_its_derivative():
    def flow(u, t, begin):
        return u[:, None] * torch.exp(-t)[:, None, None]

    t = torch.tensor([1.0 + 4e-6, 2.0], requires_grad=True)
    compose(flow, torch.ones(1, 1, 1), t, 1.0).sum().backward()
    torch.testing.assert_close(t.grad, -torch.exp(-t.detach()), rtol=1e-4, atol=1e-5)


def test_the_time_derivative_in_physical_units(make_surrogate, make_data):
    surrogate, given = doubled(make_surrogate(options=KINDS["vcnef"])), question(make_data(), [0.3, 1.0])
    scaling = surrogate.scaling
    inner = scaling.fields.normalise(given["u0"]), given["grid"], given["t"] / 2, scaling.params.scale(given["params"])
    _, expected = vcnef.time_derivative(surrogate.model.eval(), *inner)
    rate = torch.ones_like(given["t"])
    _, found = torch.func.jvp(lambda t: surrogate.answer(**given | {"t": t}), (given["t"],), (rate,))
    torch.testing.assert_close(found, expected * scaling.fields.std / 2)


def test_a_model_that_steps_has_none_by_time(make_surrogate, make_data):
    surrogate, given = make_surrogate(model="fno", options=KINDS["fno"]), question(make_data(), [0.5, 1.0])
    given = {name: value.float() for name, value in given.items()}
    sentence = r"A derivative by t is asked of 'fno', which goes from frame to frame; expected a model that is"
    with pytest.raises(ValueError, match=sentence):
        surrogate.answer(**given | {"t": given["t"].requires_grad_()}, differentiable=True)
    with pytest.raises(ValueError, match=sentence):
        torch.func.jvp(lambda t: surrogate.answer(**given | {"t": t}), (torch.ones(1),), (torch.ones(1),))


def test_a_cut_gradient_is_spoken_of(make_surrogate, make_data):
    surrogate, data = make_surrogate(), make_data()
    u0, params = data.u[:2, 0].requires_grad_(), data.params[:2].clone().requires_grad_()
    with pytest.warns(UserWarning, match=r"answer cuts the gradient of u0, params: .* Use answer\(…, differentiable"):
        surrogate.answer(u0, data.grid, data.t[1:], params)
    with pytest.warns(UserWarning, match=r"predict cuts the gradient of nu: its answer is a constant"):
        surrogate.predict(u0.detach(), t=[1.0], params={"nu": params[:, 0]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        surrogate.answer(u0.detach(), data.grid, data.t[1:], params.detach())
        surrogate.answer(u0, data.grid, data.t[1:], params, differentiable=True)
        with torch.no_grad():
            surrogate.answer(u0, data.grid, data.t[1:], params)


def test_points_may_be_found_too(make_surrogate, make_data):
    """In a domain of another unit, whose points are scaled."""
    data = make_data()
    far = replace(data, grid=100 * data.grid, problem=replace(data.problem, domain=((0.0, 100.0),)))
    surrogate = doubled(vcnef.Surrogate.build("vcnef", KINDS["vcnef"], far, seed=0))
    given = question(far, [1.0])
    grid = given["grid"].clone().requires_grad_()
    surrogate.answer(**given | {"grid": grid}, differentiable=True).sum().backward()
    direction = torch.randn_like(given["grid"])
    expected = slope_of(lambda x: surrogate.answer(**given | {"grid": x}).sum(), given["grid"], direction, 1e-4)
    torch.testing.assert_close((grid.grad * direction).sum(), expected, rtol=1e-5, atol=1e-8)
