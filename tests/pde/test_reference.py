"""What answers are judged by: exact where it can be, else finer than they are, with its own error known."""

import torch

from vcnef.pde import equation, shifted
from vcnef.pde.reference import exact_solution, finer_solution, sharpen


def test_a_state_is_sharpened_by_its_modes():
    x = torch.arange(16) / 16
    fine = torch.arange(64) / 64

    def wave(x):
        return (1 + torch.sin(2 * torch.pi * 3 * x) + 0.5 * torch.cos(2 * torch.pi * x))[None, :, None]

    torch.testing.assert_close(sharpen(wave(x), 4), wave(fine), rtol=0, atol=1e-6)
    both = (wave(x)[..., None] * wave(x)[:, None])[..., 0][..., None]
    expected = (wave(fine)[..., None] * wave(fine)[:, None])[..., 0][..., None]
    torch.testing.assert_close(sharpen(both, 4), expected, rtol=0, atol=1e-5)
    odd = wave(torch.arange(15) / 15)
    torch.testing.assert_close(sharpen(odd, 2)[:, ::2], odd, rtol=0, atol=1e-6)


def test_a_jump_makes_no_waves():
    box = torch.zeros(2, 16, 1)
    box[0, 4:9] = 1.0
    box[1, :, 0] = torch.sin(2 * torch.pi * torch.arange(16) / 16)
    fine = sharpen(box, 2)
    assert 0 <= fine[0].min() <= fine[0].max() <= 1
    torch.testing.assert_close(fine[:, ::2], box, rtol=0, atol=1e-6)


def test_what_is_positive_stays_so():
    """A density that nearly vanishes between two points must not become negative there."""
    x = 2 * torch.pi * (torch.arange(16) + 0.5) / 16
    density = (1.0 - torch.cos(x) + 0.002 - (1.0 - torch.cos(x)).min())[None, :, None]
    assert sharpen(density, 4).min() > 0


def test_the_estimate_of_the_own_error_holds_against_the_exact_solution():
    advection = equation("advection")
    u0 = advection.initial_states(range(4), seed=0, resolution=64)
    t, params, domain = torch.tensor([0.25, 0.5]), {"beta": 1.0}, advection.problem.domain
    exact = exact_solution(advection, u0, t, params, domain)
    torch.testing.assert_close(exact.u, shifted(u0, t, 1.0))
    assert exact.own_error(0.1) == 0.0
    finer = finer_solution(advection, u0, t, params, domain, 4)

    def off(u, truth):
        return float((u - truth).norm() / truth.norm())

    true = off(finer.u, exact.u)
    measured = off(advection.solve(u0, t, params), finer.u)
    # For smooth waves a scheme of second order is better than estimated; it is never worse.
    assert true < finer.own_error(measured) < 10 * true
    assert exact_solution(equation("burgers"), u0, t, {"nu": 0.1}, domain) is None
