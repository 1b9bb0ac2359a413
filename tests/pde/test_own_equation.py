"""Equations that a user defines: residuals of exact solutions, the solver that comes for free, and what is refused."""

from math import pi

import numpy as np
import pytest
import torch

import vcnef
from vcnef.pde import EQUATIONS, Equation, equation, equations, modes, residual, residual_norm, solve

DELTA = 0.7


def kdv(u, d, p):
    return -u * d(u, "x") - p["delta"] * d(u, "x", 3)


def growth(u, d, p):
    return p["D"] * d(u, "x", 2) + p["r"] * u * (1 - u)


def heat(u, d, p):
    return p["D"] * d(u, "x", 2)


def points(n, length=1.0):
    return (torch.arange(n, dtype=torch.float64) + 0.5) * length / n


def along(solution, *times):
    """Exact fields `[1 t n 1]` of a function of a time, and their exact derivatives in it."""
    each = [torch.func.jvp(solution, (torch.tensor(t).double(),), (torch.ones(()).double(),)) for t in times]
    return tuple(torch.stack(parts)[None, ..., None] for parts in zip(*each, strict=True))


def soliton(n, speed=2.0, length=40.0):
    """3c sech²(√(c/δ) (x − ct) / 2), in the frame of a period."""
    x = points(n, length)
    return lambda t: 3 * speed / torch.cosh((speed / DELTA) ** 0.5 / 2 * (x - 20.0 - speed * t)) ** 2


def test_a_soliton_obeys_kdv_and_travels():
    Equation("kdv", kdv, parameters={"delta": DELTA}, domain=(0, 40))
    u, u_t = along(soliton(256), 0.0, 0.4)
    assert residual_norm("kdv", u, u_t).max() < 1e-9
    assert residual_norm("kdv", u, u_t, {"delta": 1.0}).max() > 0.05
    assert residual_norm("kdv", -u, -u_t).max() > 0.05
    sizes = [residual("kdv", *along(soliton(n), 0.1), method="finite_difference").abs().max() for n in (256, 512)]
    assert torch.log2(sizes[0] / sizes[1]) == pytest.approx(4, abs=0.3)
    after = solve("kdv", u[:, 0], t=[0.2, 0.4])
    assert after.dtype == torch.float64
    assert (after[0, 1] - u[0, 1]).abs().max() < 1e-4  # of a height of 6


def fisher_front(n, D, r, length=60.0):
    """Of Ablowitz and Zeppetella: 1 / (1 + e^{√(r/6D) x − 5rt/6})², and its mirror image far away."""
    x = points(n, length)
    k = (r / (6 * D)) ** 0.5

    def solution(t):
        return (1 + torch.exp(k * (x - 40.0) - 5 / 6 * r * t)) ** -2

    return solution


def test_a_front_obeys_fisher_between_walls():
    fisher = Equation("fisher", growth, parameters={"D": 1.0, "r": 1.0}, domain=(0, 60), periodic=False)
    sizes = []
    for n in (120, 240):
        u, u_t = along(fisher_front(n, 1.0, 1.0), 0.0, 2.0)
        sizes.append(residual(fisher, u, u_t, method="finite_difference").abs().max())
    assert sizes[1] < 1e-4
    assert torch.log2(sizes[0] / sizes[1]) == pytest.approx(4, abs=0.4)
    assert residual_norm(fisher, u, u_t, {"r": 1.2}, method="finite_difference").max() > 0.05


def test_heat_between_walls_is_judged_up_to_them():
    """On points that stand on the walls, and on those half a cell away."""
    bar = Equation("bar", heat, parameters={"D": 0.1}, periodic=False)
    k = 4.0
    for on_walls in (True, False):
        sizes = []
        for n in (32, 64):
            x = torch.linspace(0, 1, n, dtype=torch.float64) if on_walls else points(n)
            u, u_t = along(lambda t, x=x: torch.exp(-0.1 * k**2 * t) * torch.sin(k * x + 0.5), 0.0, 1.0)
            found = residual(bar, u, u_t, method="finite_difference", grid=x[:, None])
            assert found.shape == u.shape
            sizes.append(found.abs().max())
        assert torch.log2(sizes[0] / sizes[1]) == pytest.approx(4, abs=0.6)


def test_a_source_that_is_there_all_the_time_ends_at_rest():
    """D u_xx = −sin kx, which an integrating factor alone would miss by far with steps as long as these."""

    def sourced(u, d, p, x):
        return d(u, "x", 2) + torch.sin(2 * pi * x) + torch.sin(20 * pi * x)

    Equation("sourced", sourced)
    x = points(64)
    after = solve("sourced", torch.zeros(1, 64, 1, dtype=torch.float64), t=[50.0])
    rest = torch.sin(2 * pi * x) / (2 * pi) ** 2 + torch.sin(20 * pi * x) / (20 * pi) ** 2
    torch.testing.assert_close(after[0, 0, :, 0], rest, rtol=0, atol=1e-12)


def test_fourth_derivatives_two_axes_places_and_times_by_a_manufactured_solution():
    def swift(u, d, p, x, y, t):
        laplacian = d(u, "x", 2) + d(u, "y", 2)
        return -d(u, "x", 4) + laplacian - u**3 + p["a"] * torch.sin(x) * torch.cos(y) * t

    chosen = Equation("swift", swift, parameters={"a": 0.5}, domain=((0, 2 * pi), (0, 2 * pi)))
    x, y = torch.meshgrid(points(16, 2 * pi), points(16, 2 * pi), indexing="ij")
    t = torch.tensor([[0.2, 0.9]]).double()
    wave = torch.sin(x) * torch.cos(y)
    u = (wave * t[..., None, None])[..., None]
    # −∂⁴ and the Laplacian of the wave are −1 and −2 times it.
    rate = -3 * u - u**3 + 0.5 * u
    torch.testing.assert_close(residual("swift", u, rate + 1.0, t=t[0]), torch.ones_like(u), rtol=0, atol=1e-10)
    with pytest.raises(ValueError, match=r"'swift' depends on time, and t is not given\. Give the times of u"):
        residual(chosen, u, rate)


def test_coefficients_of_places_have_derivatives_too():
    """(a u_x)_x and a_x u_x + a u_xx are the same."""

    def layered(u, d, p, x):
        return d((2 + torch.sin(2 * pi * x)) * d(u, "x"), "x")

    def by_parts(u, d, p, x):
        a = 2 + torch.sin(2 * pi * x)
        return d(a, "x") * d(u, "x") + a * d(u, "x", 2)

    u = torch.randn(3, 2, 1, 1).double() * torch.cos(4 * pi * points(32)[:, None])
    rates = [residual(Equation("layers", each), u, torch.zeros_like(u)) for each in (layered, by_parts)]
    torch.testing.assert_close(rates[0], rates[1], rtol=0, atol=1e-9)


def test_several_fields_come_and_go_as_a_tuple():
    def waves(state, d, p):
        u, v = state
        return v, p["c"] ** 2 * d(u, "x", 2)

    Equation("waves", waves, channels=("u", "v"), parameters={"c": 2.0})
    x = points(32)
    u0 = torch.stack([torch.sin(2 * pi * x), torch.zeros_like(x)], dim=-1)[None]
    after = solve("waves", u0, t=[0.1])[0, 0]
    angle = torch.tensor(2 * pi * 2 * 0.1)
    torch.testing.assert_close(after[:, 0], torch.cos(angle) * u0[0, :, 0], rtol=0, atol=1e-5)
    torch.testing.assert_close(after[:, 1], -4 * pi * torch.sin(angle) * u0[0, :, 0], rtol=0, atol=1e-4)


def test_the_solver_takes_stiff_linear_parts_exactly():
    def biharmonic(u, d, p):
        return -p["k"] * d(u, "x", 4)

    Equation("plate", biharmonic, parameters={"k": 1e-3})
    x = points(128)
    u0 = torch.stack([torch.sin(2 * pi * x), torch.sin(6 * pi * x)])[..., None]
    after = solve("plate", u0, t=[0.5], params={"k": [1e-3, 1e-4]})
    for row, (k, number) in enumerate(((1e-3, 2), (1e-4, 6))):
        factor = np.exp(-k * (number * pi) ** 4 * 0.5)
        torch.testing.assert_close(after[row, 0], factor * u0[row], rtol=0, atol=1e-9)


def test_the_solver_agrees_with_that_of_the_package():
    def own_burgers(u, d, p):
        return -u * d(u, "x") + p["nu"] / pi * d(u, "x", 2)

    Equation("mine", own_burgers, parameters={"nu": 0.05})
    u0 = torch.sin(2 * pi * points(512))[None, :, None]
    ours, theirs = solve("mine", u0, t=[0.5]), solve("burgers", u0, t=[0.5], params={"nu": 0.05})
    assert (ours - theirs).norm() / theirs.norm() < 1e-3


def test_reactions_and_forcing_are_of_the_right_order_in_time():
    def forced(u, d, p, x, t):
        return -u + torch.cos(t) + torch.sin(t) + 0 * x

    Equation("forced", forced)
    after = solve("forced", torch.zeros(1, 8, 1, dtype=torch.float64), t=[0.5, 2.0])  # u = sin t
    torch.testing.assert_close(after[0, :, 0, 0], torch.sin(torch.tensor([0.5, 2.0]).double()), rtol=0, atol=5e-6)


def test_a_sample_does_not_depend_on_the_others_nor_on_the_output_times():
    Equation("fisher", growth, parameters={"D": 0.005, "r": 2.0})
    x = points(32)
    u0 = (0.4 + 0.3 * torch.sin(2 * pi * (x - torch.rand(3, 1))))[..., None]
    r = torch.tensor([1.0, 4.0, 9.0])
    together = solve("fisher", u0, t=[0.0, 0.3, 1.0], params={"r": r})
    torch.testing.assert_close(together[:, 0], u0)
    for row in range(3):
        alone = solve("fisher", u0[row : row + 1], t=[0.0, 0.3, 1.0], params={"r": float(r[row])})
        torch.testing.assert_close(together[row : row + 1], alone, rtol=0, atol=1e-13)
    torch.testing.assert_close(solve("fisher", u0, t=[1.0], params={"r": r})[:, 0], together[:, 2], rtol=0, atol=1e-6)


def test_a_run_that_blows_up_is_not_finite_and_the_others_are(monkeypatch):
    monkeypatch.setattr(modes, "SHORTEST_STEP", 1e-3)

    def explosive(u, d, p):
        return u**2

    Equation("explosive", explosive)
    u0 = torch.tensor([2.0, 0.1]).double().reshape(2, 1, 1).expand(2, 8, 1)
    after = solve("explosive", u0, t=[0.25, 1.0])  # u₀ / (1 − u₀ t), infinite at t = ½
    torch.testing.assert_close(after[:, 0, 0, 0], torch.tensor([4.0, 0.1 / 0.975]).double(), rtol=1e-5, atol=0)
    assert after[0, 1].isnan().all()
    torch.testing.assert_close(after[1, 1, 0, 0], torch.tensor(0.1 / 0.9).double(), rtol=1e-5, atol=0)


def test_what_the_solver_cannot_resolve_is_said(monkeypatch):
    def steepening(u, d, p):
        return -u * d(u, "x") + 1e-4 * d(u, "x", 2)

    Equation("steepening", steepening)
    u0 = torch.sin(2 * pi * points(32))[None, :, None]
    with pytest.warns(UserWarning, match=r"waves are \d+% of a solution of 'steepening': 32 points do not resolve"):
        solve("steepening", u0, t=[0.17])
    monkeypatch.setattr(modes, "MOST_STEPS", 2)
    with pytest.raises(ValueError, match=r"has taken 2 steps to t = .* and is not done; .* give it a solver of"):
        solve("steepening", u0, t=[1.0])


def test_a_solver_of_ones_own_is_given_columns_and_sides():
    asked = []

    def cooling(u0, times, params, spacing):
        asked.append((times, {name: each.shape for name, each in params.items()}, spacing))
        factor = torch.exp(-params["k"][:, None] * torch.tensor(times).to(u0))
        return (u0[:, None] * factor[:, :, None, None]).numpy()  # of any kind

    Equation("cooling", lambda u, d, p: -p["k"] * u, parameters={"k": 2.0}, periodic=False, solver=cooling)
    after = solve("cooling", torch.ones(3, 8, 1), t=[0.5, 1.0])
    assert asked == [([0.5, 1.0], {"k": (3,)}, (0.125,))]
    assert after[2, 1, 0, 0] == pytest.approx(np.exp(-2))
    Equation("cooling", solver=lambda *given: torch.zeros(2, 8))
    with pytest.raises(ValueError, match=r"The solver of 'cooling' returns shape \(2, 8\); expected \(3, 1, 8, 1\)"):
        solve("cooling", torch.ones(3, 8, 1), t=[0.5])


def spots(rng, x, *, height=0.5):
    return 0.2 + height * rng.uniform() * np.exp(-(((x[:, 0] - rng.uniform()) / 0.1) ** 2))


def test_data_are_generated_from_initial_states_and_ranges(tmp_path):
    Equation("fisher", growth, parameters={"D": (0.002, 0.02), "r": 2.0}, initial=spots, resolution=32, frames=5)
    data = vcnef.generate("fisher", samples=6, seed=3)
    assert data.u.shape == (6, 5, 32, 1)
    assert data.problem.name == "fisher"
    assert 0.002 <= data.params[:, 0].min() < data.params[:, 0].max() <= 0.02
    assert (data.params[:, 1] == 2.0).all()
    fewer = vcnef.generate("fisher", samples=2, seed=3, params={"D": 0.01}, height=0.0)
    assert (fewer.params[:, 0] == data.params.new_tensor(0.01)).all()
    assert (fewer.u[:, 0] == fewer.u.new_tensor(0.2)).all()
    assert torch.equal(vcnef.generate("fisher", samples=2, seed=3).u[:, 0], data.u[:2, 0])
    (path,) = vcnef.generate("fisher", samples=6, seed=3, out=tmp_path)
    again = vcnef.open(path)
    assert torch.equal(again.u, data.u)
    assert again.problem == data.problem


def test_definitions_are_known_by_name_and_replace_each_other():
    first = Equation("fisher", growth, parameters={"D": (0.01, 0.04), "r": (-1.0, 3.0)})
    assert equation("fisher") is first is equations()["fisher"]
    assert first.defaults == {"D": pytest.approx(0.02), "r": 1.0}
    assert first.problem.channels == ("u",)
    second = Equation("fisher", growth, parameters={"D": 0.1, "r": 1.0}, domain=(0, 5))
    assert equation("fisher") is second
    assert second.problem.domain == ((0.0, 5.0),)
    assert list(equations()) == [*EQUATIONS, "fisher"]
    with pytest.raises(ValueError, match="no generation '2022' of 'fisher'"):
        equation("fisher", generation="2022")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": "burgers"}, "'burgers' is an equation of the package. Choose another name"),
        ({"rate": "u_xx"}, r"The rate of 'own' is 'u_xx'; expected a function of \(u, d, p\)"),
        ({"rate": lambda u: u}, r"The rate of 'own' takes \(u\); expected a function of \(u, d, p\)"),
        ({"rate": lambda u, d, p, D: u}, "takes 'D'; after u, d and p it may take x, t. Parameters .* are in p"),
        ({"rate": lambda u, d, p, y: u}, "takes 'y'; after u, d and p it may take x, t"),
        ({"rate": lambda u, d, p: p["k"] * u}, "'own' has no parameter 'k'. Use one of nu"),
        ({"rate": lambda u, d, p: d(u, "y")}, "names no axis; expected one of x"),
        ({"rate": lambda u, d, p: d(u, "x", 0)}, r"d\(…, 'x', 0\) has no order; expected 1, 2, 3"),
        ({"rate": lambda u, d, p: d(u[..., None], "x")}, r"d takes a field of shape \(2, 16\), .* got \(2, 16, 1\)"),
        ({"rate": lambda u, d, p: d(1.0, "x")}, "d takes a field of shape .* got float"),
        ({"rate": lambda u, d, p: (u,)}, "returns 1 of them; expected one field, the rate of u"),
        (
            {"rate": lambda u, d, p: u[0] + u[1], "channels": ("a", "b")},
            "returns one Tensor; expected a tuple of 2 fields, one for each of a, b",
        ),
        (
            {"rate": lambda u, d, p: (*u, u[0]), "channels": ("a", "b")},
            "returns 3 of them; expected a tuple of 2 fields",
        ),
        ({"rate": lambda u, d, p: u[:, :3]}, r"The rate of u in 'own' has shape \(2, 3\); expected .* \(2, 16\)"),
        ({"channels": "u"}, r"channels is 'u'; expected names in a list, e.g. channels=\('u',\)"),
        ({"channels": ("t",)}, "has the channel 't', which is the name of a coordinate"),
        ({"parameters": ("D",)}, r"parameters is \('D',\); expected values by name, e.g. parameters={'D': 0.01}"),
        (
            {"parameters": {"D": (2.0, 1.0)}},
            r"Parameter 'D' is \(2.0, 1.0\); expected a number, or a",
        ),
        ({"parameters": {"D": "thick"}}, "Parameter 'D' is 'thick'; expected a number"),
        ({"domain": (0, 1, 2)}, r"domain is \(0, 1, 2\); expected \(low, high\), or such a pair for each axis"),
        ({"domain": (1, 0)}, r"has the axis \(1.0, 0.0\); expected finite low < high"),
    ],
)
def test_what_is_wrong_with_a_definition_is_said_where_it_stands(given, message):
    given = {"name": "own", "rate": None, "parameters": {"nu": 1.0}} | given
    with pytest.raises(ValueError, match=message):
        Equation(given.pop("name"), given.pop("rate"), **given)
    assert "own" not in equations()


def test_what_is_missing_is_said_where_it_is_needed():
    still = torch.zeros(1, 16, 1)
    Equation("bar", heat, parameters={"D": 1.0}, periodic=False)
    with pytest.raises(ValueError, match="'bar' has walls, of which its rate says nothing; expected a solver"):
        solve("bar", still, t=[1.0])
    with pytest.raises(ValueError, match=r"'bar' has no random initial states\. Define it with some: .*initial=f"):
        vcnef.generate("bar", samples=1)
    with pytest.raises(ValueError, match="'spectral' takes derivatives around a period, but the fields of 'bar' lie"):
        residual("bar", still[:, None], still[:, None])
    with pytest.raises(ValueError, match="'bar' is known by its right-hand side and has no fluxes for 'finite_volume'"):
        residual("bar", still[:, None], still[:, None], method="finite_volume")
    Equation("data", channels=("u",))
    with pytest.raises(ValueError, match="'data' has no rate; expected a solver of your own"):
        solve("data", still, t=[1.0])
    with pytest.raises(ValueError, match=r"There is no residual of 'data'\. Define it with its right-hand side"):
        residual("data", still[:, None], still[:, None])
    Equation("wide", initial=lambda rng, x: np.zeros(3))
    with pytest.raises(ValueError, match=r"An initial state of 'wide' has shape \(3,\); expected \(128, 1\): space"):
        vcnef.generate("wide", samples=1)


def test_the_packages_own_laws_by_finite_differences_too():
    x = points(256)
    u, u_t = along(lambda t: torch.sin(2 * pi * (x - 0.7 * t)), 0.3)
    assert residual_norm("advection", u, u_t, {"beta": 0.7}, method="finite_difference").max() < 1e-7
