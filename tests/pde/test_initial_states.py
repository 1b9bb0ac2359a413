"""Random initial states: reproducible sample by sample, as documented or with the benchmark's accidents."""

import pytest
import torch

from vcnef.pde import EQUATIONS, equation

SMALL = {1: 64, 2: 16, 3: 10}


@pytest.mark.parametrize("generation", ["documented", "2022"])
@pytest.mark.parametrize("name", EQUATIONS)
def test_a_sample_depends_on_seed_index_and_attempt_alone(name, generation):
    chosen = equation(name, generation=generation)
    n = SMALL[chosen.problem.ndim]
    batch = chosen.initial_states([0, 7, 1234], seed=5, resolution=n, attempt=[0, 2, 0])
    assert batch.shape == (3, *(n,) * chosen.problem.ndim, len(chosen.problem.channels))
    assert torch.equal(chosen.initial_states([7], seed=5, resolution=n, attempt=2)[0], batch[1])
    assert not torch.equal(chosen.initial_states([7], seed=5, resolution=n)[0], batch[1])
    assert not torch.equal(chosen.initial_states([7], seed=6, resolution=n, attempt=2)[0], batch[1])
    double = chosen.initial_states([0, 7, 1234], seed=5, resolution=n, attempt=[0, 2, 0], dtype=torch.float64)
    assert torch.equal(double.float(), batch)


def test_the_same_waves_at_another_resolution():
    burgers = equation("burgers")
    coarse, fine = (burgers.initial_states(range(50), seed=0, resolution=n, dtype=torch.float64) for n in (64, 192))
    torch.testing.assert_close(fine[:, 1::3], coarse, atol=1e-12, rtol=0)  # centres of every third cell coincide


def spectrum(u):
    return torch.fft.rfft(u[..., 0], dim=1).abs() / u.shape[1]


def test_documented_waves_are_two_sines_with_no_offset():
    plain = {"absolute_probability": 0.0, "window_probability": 0.0}
    u = equation("burgers").initial_states(range(2000), seed=0, resolution=64, dtype=torch.float64, **plain)
    power = spectrum(u)
    assert power[:, 0].max() < 1e-12
    assert power[:, 5:].max() < 1e-12
    assert ((power > 1e-9).sum(1) <= 2).all()
    # E[u²] = Σ E[A²] E[sin²] = 2 · ⅓ · ½
    torch.testing.assert_close(u.square().mean(), torch.tensor(1 / 3).double(), atol=0.02, rtol=0)
    assert u.abs().max() < 2.0
    drawn = (power[:, 1:5] > 1e-9).double().mean(0)
    torch.testing.assert_close(drawn, torch.full((4,), 7 / 16).double(), atol=0.04, rtol=0)  # 1 − (¾)²


def windowed(u, limit=1e-3):
    """Samples that vanish on both sides, where every window does."""
    return (u[:, :2, 0].abs().amax(1) < limit) & (u[:, -2:, 0].abs().amax(1) < limit)


def test_window_absolute_value_and_sign_have_their_probabilities():
    u = equation("burgers").initial_states(range(4000), seed=1, resolution=64)
    assert abs(windowed(u).float().mean() - 0.1) < 0.02
    one_signed = (u.amin(1) >= 0) | (u.amax(1) <= 0)
    assert abs(one_signed.float().mean() - 0.1) < 0.02
    inside = u[windowed(u)][..., 0].abs() > 1e-2
    widths = inside.float().mean(1)
    assert widths.min() < 0.35  # independent limits: widths from 0.1 to 0.8
    assert widths.max() > 0.6


def test_accidents_of_the_benchmarks_scalar_states():
    """The statistics of the benchmark's 10 000 states on (0, 1), to sampling error."""
    u = equation("advection", generation="2022").initial_states(range(6000), seed=0, resolution=128)[..., 0]
    assert abs(u.mean()) < 0.03
    assert abs(u.std() - 0.797) < 0.03
    assert abs(u.mean(1).std() - 0.60) < 0.02
    assert abs(u.std(1).mean() - 0.477) < 0.02
    assert abs((u.mean(1).abs() > u.std(1)).float().mean() - 0.44) < 0.03
    assert abs(((u.amin(1) >= 0) | (u.amax(1) <= 0)).float().mean() - 0.34) < 0.03
    assert 2.8 < u.abs().max() < 4.0
    whole = ~windowed(u[..., None])
    torch.testing.assert_close(u[whole, 0], u[whole, -1], atol=1e-4, rtol=0)  # the period is one cell short


def test_each_accident_can_be_switched_alone():
    burgers, plain = equation("burgers"), {"absolute_probability": 0.0, "window_probability": 0.0}

    def states(**options):
        return burgers.initial_states(range(1000), seed=0, resolution=64, dtype=torch.float64, **options)

    offset = spectrum(states(**plain, constant_offsets=True))[:, 0]
    assert (offset > 0.1).double().mean() > 0.7
    doubled = spectrum(states(**plain, doubled_wavenumbers=True))
    assert abs((doubled[:, [6, 8]] > 1e-9).any(1).double().mean() - 1 / 8) < 0.03  # 3 + 3 or 4 + 4
    short = states(**plain, short_period=True)
    torch.testing.assert_close(short[:, 0], short[:, -1], atol=1e-12, rtol=0)
    coupled = states(window_probability=0.1, absolute_probability=0.0, coupled_window=True)
    part = coupled[windowed(coupled)][..., 0].abs() > 1e-6
    x = (torch.arange(64) + 0.5) / 64
    left, right = x[part.int().argmax(1)], x[63 - part.flip(1).int().argmax(1)]
    assert 0.02 < left.min() <= left.max() < 0.14
    assert 0.54 < right.min() <= right.max() < 0.66


def test_documented_1d_gas_has_independent_positive_fields():
    gas = equation("cns1d").initial_states(range(2000), seed=0, resolution=64)
    rho, p, v = gas.unbind(-1)
    assert 1.0 <= rho.min() < 1.1
    assert 15.0 < rho.max() <= 20.0
    assert 10.0 <= p.min() < 11.0
    assert 150.0 < p.max() <= 200.0
    torch.testing.assert_close(rho.amin(1).log10().mean(), torch.tensor(0.5), atol=0.03, rtol=0)  # log-uniform
    assert v.abs().max() <= 2.0
    shapes = torch.stack([rho, p, v], 1)
    shapes = (shapes - shapes.mean(2, keepdim=True)) / shapes.std(2, keepdim=True).clamp(min=1e-9)
    assert (shapes[:, 0] * shapes[:, 1]).mean().abs() < 0.08
    assert (shapes[:, 0] * shapes[:, 2]).mean().abs() < 0.08


def test_accidents_of_the_benchmarks_1d_gas():
    gas = equation("cns1d", generation="2022")
    rho, p, v = gas.initial_states(range(3000), seed=0, resolution=64).unbind(-1)
    assert abs(rho.mean() - 5.78) < 0.2
    assert abs(rho.std() - 3.14) < 0.15
    assert abs(p.mean() - 57.8) < 2.0
    assert abs(v.std() - 0.556) < 0.02
    later = gas.initial_states(range(1000, 1004), seed=0, resolution=64)
    torch.testing.assert_close(unit(p[:4]), unit(later[..., 0]), atol=1e-5, rtol=0)
    torch.testing.assert_close(unit(v[:4]), unit(later[..., 1]), atol=1e-5, rtol=0)


def unit(w):
    low, high = w.amin(1, keepdim=True), w.amax(1, keepdim=True)
    return (w - low) / (high - low)


@pytest.mark.parametrize("mach", [0.1, 1.0])
def test_2d_gas_has_the_asked_mach_number_and_the_documented_scales(mach):
    gas = equation("cns2d")
    u = gas.initial_states(range(200), seed=0, resolution=32, mach=mach, window_probability=0.0, dtype=torch.float64)
    rho, p, vx, vy = u.unbind(-1)
    temperature = p.mean((1, 2)) / rho.mean((1, 2))
    speed = (vx**2 + vy**2).sqrt().mean((1, 2))
    torch.testing.assert_close(speed, mach * (5 / 3 * temperature).sqrt(), atol=1e-12, rtol=1e-9)
    assert temperature.min() >= 0.1
    assert temperature.max() <= 10.0
    assert abs(rho.mean() - 5.05) < 0.6
    part = (rho / rho.mean((1, 2), keepdim=True) - 1).abs().mean((1, 2))
    assert 0.01 <= part.min() < 0.02
    assert 0.18 < part.max() <= 0.2


def test_windows_of_the_2d_gas_leave_it_uniform_and_at_rest_outside():
    u = equation("cns2d").initial_states(range(400), seed=0, resolution=32)
    still = u[:, 0, :, 2].abs().amax(1) < 1e-4
    assert abs(still.float().mean() - 0.5) < 0.08
    border = torch.cat([u[still][:, 0], u[still][:, :, 0]], dim=1)
    assert (border[..., :2].std(1) / border[..., :2].mean(1)).max() < 1e-3


def test_3d_gas_shares_one_field_among_velocity_pressure_and_density_in_2022():
    def correlation(generation):
        gas = equation("cns3d", generation=generation)
        u = gas.initial_states(range(2), seed=0, resolution=12, window_probability=0.0, dtype=torch.float64)
        return torch.stack([torch.corrcoef(sample.flatten(0, 2).T) for sample in u])

    shared = correlation("2022")
    torch.testing.assert_close(shared[:, [0, 0, 1], [1, 4, 4]].abs(), torch.ones(2, 3).double(), atol=1e-6, rtol=0)
    assert correlation("documented")[:, [0, 0, 1], [1, 4, 4]].abs().max() < 0.5
