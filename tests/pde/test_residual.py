"""Residuals vanish on exact solutions and on the solvers' own steps, and only there."""

from dataclasses import replace
from math import pi

import jaxtyping
import pytest
import torch

from vcnef.grid import cell_centres
from vcnef.pde import equation, residual, residual_norm, time_derivative
from vcnef.pde.fluxes import FiniteVolume, Spectral
from vcnef.pde.residual import _balance
from vcnef.pde.riemann import hllc_flux

GAMMA = 5.0 / 3.0
UNIT = (0.0, 1.0)


def points(n, ndim=1, domain=None):
    return cell_centres(domain or (UNIT,) * ndim, n, dtype=torch.float64)


def along(solution, *times):
    """A solution `[1 *x c]` at some times, and its time derivative, exact by forward mode."""
    t = torch.tensor(times, dtype=torch.float64)
    return torch.func.jvp(lambda t: torch.stack([solution(each) for each in t], 1), (t,), (torch.ones_like(t),))


def shifted_wave(n, beta=0.7):
    x = points(n)[None]
    # Several times, because the error of a limited slope depends on where the extrema lie between the points.
    return along(lambda t: torch.exp(torch.sin(2 * pi * (x - beta * t))), *(0.037 * k for k in range(8)))


def cole_hopf(n, nu=0.2, bounds=UNIT, steepness=0.8):
    """u = −2κ φ_x / φ with φ = 1 + a e^{−κk²t} cos kx, which solves u_t + u u_x = κ u_xx, κ = ν/π."""
    x, kappa, k = points(n, domain=(bounds,))[None], nu / pi, 2 * pi / (bounds[1] - bounds[0])

    def solution(t):
        a = steepness * torch.exp(-kappa * k * k * t)
        return 2 * kappa * a * k * torch.sin(k * x) / (1 + a * torch.cos(k * x))

    return along(solution, 0.1, 0.4)


EXACT = {"advection": (shifted_wave, {"beta": 0.7}), "burgers": (cole_hopf, {"nu": 0.2})}


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("n", [64, 65])
def test_spectral_residual_of_exact_solutions_is_rounding(name, n):
    exact, params = EXACT[name]
    assert residual_norm(name, *exact(n), params).max() < 1e-11  # measured 6e-15 to 1e-12


@pytest.mark.parametrize("name", EXACT)
def test_finite_volume_residual_of_exact_solutions_is_of_second_order(name):
    exact, params = EXACT[name]
    sizes = [residual(name, *exact(n), params, method="finite_volume").abs().mean() for n in (64, 128, 256)]
    assert torch.log2(sizes[0] / sizes[2]) / 2 > 1.7
    assert residual_norm(name, *exact(256), params, method="finite_volume").max() < 5e-3


def test_the_doubled_flux_of_2022():
    # u_t + 2 u u_x = κ u_xx: then 2u solves Burgers' equation.
    u, u_t = (0.5 * q for q in cole_hopf(64, bounds=(-1.0, 1.0)))
    assert residual_norm("burgers", u, u_t, {"nu": 0.2}, generation="2022").max() < 1e-8
    assert residual_norm("burgers", u, u_t, {"nu": 0.2}, domain=((-1, 1),)).max() > 0.01


def test_wrong_fields_and_wrong_parameters_are_seen():
    u, u_t = shifted_wave(64)
    torch.testing.assert_close(residual_norm("advection", u, -u_t, {"beta": 0.7}), torch.ones(1, 8, 1).double())
    assert residual_norm("advection", u, u_t, {"beta": 0.35}).min() > 0.3
    u, u_t = cole_hopf(64)
    assert residual_norm("burgers", u, u_t, {"nu": 0.2 * pi}).min() > 0.2  # the 1/π left out
    assert residual_norm("burgers", torch.ones_like(u), torch.zeros_like(u)).max() == 0


PARAMS = {"advection": {"beta": 0.7}, "burgers": {"nu": torch.tensor([0.01, 0.4])}}
SIDES = {"advection": 64, "burgers": 64, "cns1d": 64, "cns2d": 16, "cns3d": 8}


@pytest.mark.parametrize("generation", ["documented", "2022"])
@pytest.mark.parametrize("name", SIDES)
def test_finite_volume_residual_of_the_solvers_steps_vanishes_with_dt(name, generation):
    """Random states with windows, in every dimension: one short step of the solver gives u_t."""
    chosen, params = equation(name, generation=generation), PARAMS.get(name, {"eta": 0.01, "zeta": 0.03})
    u0 = chosen.initial_states(range(2), seed=1, resolution=SIDES[name], dtype=torch.float64)
    sizes = []
    for dt in (2e-6, 1e-6):
        u_t = (chosen.solve(u0, [dt], params) - u0[:, None]) / dt
        norm = residual_norm(name, u0[:, None], u_t, params, method="finite_volume", generation=generation)
        sizes.append(norm.max())
    assert sizes[1] < 2e-4  # measured 3e-6 (advection) to 1.2e-4 (cns1d)
    torch.testing.assert_close(sizes[0] / sizes[1], torch.tensor(2.0).double(), rtol=0.02, atol=0)


def gas(x, size=0.1):
    """A smooth gas at the points x [D], as a function to differentiate."""
    ndim = len(x)
    phases = 2 * pi * x + torch.arange(ndim)
    rho = 2 + size * torch.sin(phases).prod()
    p = 3 + size * torch.cos(phases + 1).prod()
    v = [0.2 + size * torch.sin(phases + j).sum() for j in range(ndim)]
    return torch.stack([rho, p, *v])


def primitive_rate(x, eta, zeta):
    """The equations of the docstring, term by term with exact derivatives, at one point."""
    rho, p, *v = gas(x)
    ndim, v = len(x), torch.stack(v)
    slopes = torch.func.jacfwd(gas)(x)  # [c D]
    curves = torch.func.jacfwd(torch.func.jacfwd(gas))(x)  # [c D D]
    mu = eta + (eta / 3 + zeta) * torch.eye(ndim, dtype=x.dtype)  # [j d]
    drho, dp, dv = slopes[0], slopes[1], slopes[2:]
    second = torch.diagonal(curves[2:], dim1=1, dim2=2)
    divergence = dv.trace()
    viscous = (mu * (drho * dv + rho * second)).sum(1) / rho
    heat = (GAMMA - 1) * (mu * rho * dv**2).sum()
    return torch.stack(
        [
            -(v @ drho + rho * divergence),
            -(v @ dp + GAMMA * p * divergence) + heat,
            *(-(dv @ v) - dp / rho + viscous),
        ]
    )


@pytest.mark.parametrize(("ndim", "n"), [(1, 32), (2, 32), (3, 16)])
def test_gas_residual_is_the_documented_form(ndim, n):
    eta, zeta = 0.02, 0.05
    x = points(n, ndim).flatten(0, -2)
    shape = (1, 1, *(n,) * ndim, ndim + 2)
    u = torch.func.vmap(gas)(x).reshape(shape)
    u_t = torch.func.vmap(lambda x: primitive_rate(x, eta, zeta))(x).reshape(shape)
    params, domain = {"eta": eta, "zeta": zeta}, (UNIT,) * ndim
    assert residual_norm(f"cns{ndim}d", u, u_t, params, domain=domain).max() < 1e-11
    coarse = residual_norm(f"cns{ndim}d", u, u_t, params, domain=domain, method="finite_volume")
    assert coarse.max() < 0.1


@pytest.mark.parametrize("method", ["spectral", "finite_volume"])
def test_shear_decays_at_the_kinematic_rate_and_heats(method):
    """v_y = sin kx in a uniform gas at rest: v_t = −η k² v whatever ρ, and p_t = (γ − 1) η ρ (∂_x v)²."""
    eta, rho, k, n = 0.02, 3.0, 2 * pi, 64
    x = points((n, 4), 2)[..., 0]
    wave, nought = torch.sin(k * x), torch.zeros_like(x)
    u = torch.stack([nought + rho, nought + 1.0, nought, wave], dim=-1)[None, None]
    heating = (GAMMA - 1) * eta * rho * (k * torch.cos(k * x)) ** 2
    u_t = torch.stack([nought, heating, nought, -eta * k**2 * wave], dim=-1)[None, None]
    norm = residual_norm("cns2d", u, u_t, {"eta": eta, "zeta": 0.3}, method=method)
    assert norm.max() < {"spectral": 1e-12, "finite_volume": 2e-3}[method]


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_a_sound_wave_is_a_solution_to_second_order_in_its_size(ndim):
    sound, sizes = (GAMMA * 2.0 / 3.0) ** 0.5, []
    domain, params = (UNIT,) * ndim, {"eta": 0.0, "zeta": 0.0}
    for size in (1e-3, 5e-4):

        def wave(t, size=size):
            f = size * torch.sin(2 * pi * (points(16, ndim).sum(-1, keepdim=True) - ndim**0.5 * sound * t))
            velocity = (sound / ndim**0.5 * f).expand(*f.shape[:-1], ndim)
            return torch.cat([3.0 * (1 + f), 2.0 * (1 + GAMMA * f), velocity], dim=-1)[None]

        u, u_t = along(wave, 0.1)
        sizes.append(residual_norm(f"cns{ndim}d", u, u_t, params, domain=domain).max())
    assert sizes[0] < 3e-3
    assert torch.log2(sizes[0] / sizes[1]) > 0.95


def test_samples_and_times_do_not_mix():
    gas_1d = equation("cns1d")
    u = gas_1d.initial_states(range(6), seed=0, resolution=32, dtype=torch.float64).unflatten(0, (2, 3))
    u_t, eta = torch.randn_like(u), torch.tensor([0.01, 0.1], dtype=torch.float64)
    both = residual("cns1d", u, u_t, {"eta": eta}, method="finite_volume")
    for b in range(2):
        for t in range(3):
            at = (slice(b, b + 1), slice(t, t + 1))
            alone = residual("cns1d", u[at], u_t[at], {"eta": float(eta[b])}, method="finite_volume")
            torch.testing.assert_close(both[at], alone)


def test_equal_limits_make_the_solvers_flux_the_physical_one():
    u = equation("cns2d").initial_states([0], seed=0, resolution=8, dtype=torch.float64)
    rho, p, vx, vy = u.unbind(-1)
    mass, energy, *momentum = hllc_flux((rho, p, vx, vy), (rho, p, vx, vy), axis=2)
    torch.testing.assert_close(mass, rho * vy)
    torch.testing.assert_close(momentum, [rho * vx * vy, rho * vy**2 + p])
    torch.testing.assert_close(energy, vy * (p / (GAMMA - 1) + p + 0.5 * rho * (vx**2 + vy**2)))


def test_spectral_slopes_along_any_axis_and_the_shortest_wave():
    x = points((8, 6), 2, domain=((0.0, 2.0), UNIT))
    wave = torch.sin(pi * x[..., :1])[None, ..., 0] * torch.cos(2 * pi * x[..., 1])
    method = Spectral((0.25, 1 / 6))
    expected = -2 * pi * torch.sin(pi * x[..., 0]) * torch.sin(2 * pi * x[..., 1])
    torch.testing.assert_close(method.slope(wave, 2)[0], expected)
    zigzag = torch.tensor([[1.0, -1.0] * 4])
    torch.testing.assert_close(method.slope(zigzag, 1), torch.zeros(1, 8))
    assert FiniteVolume((0.25,)).slope(zigzag, 1).abs().min() == 8.0


@pytest.mark.parametrize("method", ["spectral", "finite_volume"])
def test_gradients_reach_the_fields(method):
    u = (2 + 0.3 * torch.randn(1, 2, 6, 3, dtype=torch.float64)).requires_grad_()
    u_t = torch.randn_like(u).requires_grad_()
    assert torch.autograd.gradcheck(lambda *fields: residual("cns1d", *fields, {"eta": 0.1}, method=method), (u, u_t))


def test_time_derivative_of_frames():
    t = torch.tensor([0.0, 0.1, 0.3, 0.4], dtype=torch.float64)
    u = (t**2)[None, :, None, None].expand(2, -1, 5, 1)
    torch.testing.assert_close(time_derivative(u, t), (2 * t)[None, :, None, None].expand_as(u))
    with pytest.raises(ValueError, match=r"2 frames for 2 times; expected .* at least 3. Predict"):
        time_derivative(u[:, :2], t[:2])


FIELD = torch.ones(2, 3, 8, 1)


def test_arrays_are_to_be_tensors(monkeypatch):
    # Annotations are not checked, as for a user of the package.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(TypeError, match=r"u is of type ndarray; expected a tensor. Convert it with torch"):
        residual("burgers", FIELD.numpy(), FIELD)
    with pytest.raises(TypeError, match="u_t is of type list; expected a tensor"):
        residual_norm("burgers", FIELD, FIELD.tolist())
    with pytest.raises(TypeError, match="t is of type list; expected a tensor"):
        time_derivative(FIELD, [0.0, 0.1, 0.2])


def test_an_equation_may_be_without_a_residual():
    heat = replace(equation("burgers"), name="heat", rate=None)
    with pytest.raises(ValueError, match=r"There is no residual of 'heat'. Define it with its right-hand side"):
        residual(heat, FIELD, FIELD)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "burger"}, "no equation 'burger'. Did you mean 'burgers'"),
        ({"generation": "2021"}, "no generation '2021'"),
        ({"method": "spectra"}, "no method 'spectra' for a residual. Did you mean 'spectral'"),
        ({"u": FIELD[..., 0]}, r"u has shape \(2, 3, 8\); 'burgers' expects samples, times, 1 of space and 1 channels"),
        ({"u": FIELD.expand(-1, -1, -1, 2)}, "Stack u on the last axis"),
        ({"u": FIELD[:, :, :3]}, r"u has \(3,\) points; expected at least 4 per axis. Use a finer grid"),
        ({"u_t": FIELD[:1]}, r"u_t has shape \(1, 3, 8, 1\) and u \(2, 3, 8, 1\); expected the same"),
        ({"params": {"eta": 1.0}}, "'burgers' has no parameter 'eta'. Use one of nu"),
        ({"params": {"nu": torch.ones(3)}}, r"'nu' has shape \(3,\); expected a number or 2, one per sample"),
        ({"domain": (UNIT, UNIT)}, r"domain has 2 axes; 'burgers' has 1. Give one \(low, high\) pair"),
        ({"domain": ((1.0, 0.0),)}, r"domain has the axis \(1.0, 0.0\); expected finite ends, the lower one first"),
    ],
)
def test_borders(change, message):
    # Straight to the border, past the shapes that the annotations already check in tests.
    given = {"name": "burgers", "u": FIELD, "params": None, "domain": None, "method": "spectral"} | change
    given = {"u_t": given["u"], "generation": "documented"} | given
    with pytest.raises(ValueError, match=message):
        _balance(**given)
