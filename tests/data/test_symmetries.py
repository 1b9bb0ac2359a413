"""Symmetries: exact on the solvers' own output, and refused where they are not."""

from dataclasses import replace

import pytest
import torch

from vcnef.data import Affine, Galilean, Permute, Reflect, Shift
from vcnef.data.augment import Setting
from vcnef.pde import equation, noted_generation


def setting(data):
    return Setting(data.problem, data.t, data.grid, noted_generation(data.attributes))


def transformed(data, symmetry, seed=0):
    frames = torch.arange(len(data.t))[None]
    return symmetry.bind(setting(data))(data.u, frames, torch.Generator().manual_seed(seed))


def solved_again(data, u):
    """The trajectories that the solver gives from the transformed initial states."""
    params = dict(zip(data.problem.parameters, data.params.T, strict=True))
    return equation(data.problem.name).solve(u[:, 0], data.t, params)


@pytest.fixture
def solution(make_data):
    def solve(name, points, value, samples=4):
        data = make_data(name, samples=samples, frames=5, points=points, value=value)
        data = replace(data, t=data.t * 0.1)
        u0 = equation(name).initial_states(range(samples), seed=1, resolution=points)
        u = equation(name).solve(u0, data.t, dict(zip(data.problem.parameters, data.params.T, strict=True)))
        return replace(data, u=u)

    return solve


@pytest.mark.parametrize(
    ("name", "points", "symmetry"),
    [
        ("advection", 32, Shift()),
        ("advection", 32, Affine()),
        ("burgers", 32, Shift()),
        ("burgers", 32, Reflect()),
        ("cns1d", 32, Shift()),
        ("cns1d", 32, Reflect()),
        ("cns2d", 8, Shift()),
        ("cns2d", 8, Reflect()),
        ("cns2d", 8, Permute()),
        ("cns3d", 6, Permute()),
        ("cns3d", 6, Reflect()),
    ],
)
def test_a_transformed_solution_is_the_solution_of_the_transformed_state(solution, name, points, symmetry):
    # Without viscosity the solver is exactly symmetric in the axes; its viscous steps go one axis after the other.
    data = solution(name, points, value=1e-8 if isinstance(symmetry, Permute) else 0.1)
    u = transformed(data, symmetry)
    again = solved_again(data, u)
    assert not torch.equal(u, data.u)
    scale = again.flatten(0, -2).abs().amax(dim=0)
    assert ((u - again).abs() / scale).max() < 2e-4


def test_a_moving_observer_sees_burgers(make_data):
    """A travelling front of Burgers' equation, which the exact solution lets us move at any speed."""
    data = make_data("burgers", samples=5, frames=6, points=64)
    c, k = 1.0 / 64 / 0.2, 2 * torch.pi

    def wave(t, x, speed):
        return speed + torch.sin(k * (x - speed * t))

    # Only the transport of the phase matters here: the transform must shift by c t and add c, frame by frame.
    still = wave(0 * data.t[:, None], data.grid[:, 0], 0.0)[None, ..., None].expand(5, -1, -1, -1)
    data = replace(data, u=still.contiguous())
    u = transformed(data, Galilean(speed=3.5 * c))
    means = u.mean(dim=(1, 2, 3))
    steps = means / c
    assert torch.allclose(steps, steps.round(), atol=1e-4)
    assert steps.abs().max() <= 3.001
    assert len(set(steps.round().tolist())) > 1
    for sample, speed in enumerate(means):
        assert torch.allclose(u[sample, ..., 0], wave(data.t[:, None], data.grid[:, 0], speed), atol=1e-4)


def test_a_moving_observer_goes_at_the_least_speed_and_at_multiples_of_it(make_data):
    data = make_data("burgers", samples=64, frames=11, points=48)
    with pytest.raises(ValueError, match=r"the least is 0.208333\."):
        Galilean(0.1).bind(setting(data))
    assert Galilean(0.208333).bind(setting(data))
    data = make_data("burgers", samples=64, frames=11, points=100)  # 0.6 / 0.1 is 5.999…
    boost = (transformed(data, Galilean(speed=0.6)) - data.u).mean(dim=(1, 2, 3))
    assert boost.max().item() == pytest.approx(0.6, abs=1e-4)


def test_a_moving_observer_starts_at_the_sample_s_own_frame(make_data):
    data = make_data("cns2d", points=8, samples=3)
    apply = Galilean(speed=2.0).bind(setting(data))
    frames = torch.tensor([[0, 2], [1, 2], [3, 5]])
    u = data.u[torch.arange(3)[:, None], frames]
    moved = apply(u, frames, torch.Generator().manual_seed(1))
    boost = (moved - u).mean(dim=(1, 2, 3))
    assert torch.allclose(boost[:, :2], torch.zeros(3, 2), atol=1e-5)
    quantum = (1 / 8) / 0.2
    cells = (boost[:, 2:] / quantum).round().long()
    assert cells.abs().max() > 0
    for i in range(3):
        steps = tuple((cells[i] * (frames[i, 1] - frames[i, 0])).tolist())
        expected = u[i, 1].roll(steps, dims=(0, 1)) + boost[i]
        assert torch.allclose(moved[i, 1], expected, atol=1e-5)


def test_a_shift_on_the_fine_grid_gives_every_phase_of_the_coarse_one(make_data):
    data = make_data("burgers", samples=64, points=16)
    u = transformed(data, Shift(stride=4))
    assert u.shape == (64, 6, 4, 1)
    phases = set()
    for sample in range(64):
        matches = [s for s in range(16) if torch.equal(data.u[sample].roll(s, dims=1)[:, ::4], u[sample])]
        assert len(matches) == 1
        phases.add(matches[0])
    assert len(phases) == 16


def test_square_and_cube_have_all_their_symmetries(make_data):
    for name, points, group in (("cns2d", 3, 8), ("cns3d", 2, 48)):
        data = make_data(name, samples=1, frames=2, points=points)
        frames, generator = torch.arange(2)[None], torch.Generator().manual_seed(3)
        u = data.u.expand(group * 12, *data.u.shape[1:])
        for symmetry in (Permute(), Reflect()):
            u = symmetry.bind(setting(data))(u, frames, generator)
        assert len(torch.unique(u.flatten(1), dim=0)) == group


def test_draws_come_from_the_generator(make_data):
    data = make_data("cns2d")
    for symmetry in (Shift(), Reflect(), Permute(), Galilean(2.0)):
        assert torch.equal(transformed(data, symmetry, seed=4), transformed(data, symmetry, seed=4))
        assert not torch.equal(transformed(data, symmetry, seed=4), transformed(data, symmetry, seed=5))


def test_refusals(make_data):
    burgers, gas, advection = make_data("burgers"), make_data("cns2d"), make_data("advection")

    def refused(symmetry, data, message):
        with pytest.raises(ValueError, match=message):
            symmetry.bind(setting(data))

    refused(Reflect(), advection, "Reflect is no symmetry of 'advection'; it is one of burgers, cns1d, cns2d, cns3d")
    refused(Galilean(1.0), advection, "Galilean is no symmetry of 'advection'")
    refused(Affine(), burgers, "Affine is no symmetry of 'burgers'; it is one of advection")
    refused(Permute(), burgers, "Permute is no symmetry of 'burgers'")
    walls = replace(burgers, problem=replace(burgers.problem, periodic=False))
    refused(Shift(), walls, "Shift needs a periodic grid")
    refused(Shift(stride=3), burgers, "Shift has stride 3, which does not divide")
    refused(Galilean(0.1), burgers, r"speed 0.1; on this grid and these times the least is 0.625")
    refused(Galilean(9.0), replace(burgers, attributes={"generation": "2022"}), "not exact for Burgers data of 2022")
    own = replace(burgers, problem=replace(burgers.problem, domain=((-1.0, 1.0),)))
    assert Galilean(9.0).bind(setting(own))  # wherever they lie
    for unit in (1.0, 1e-9):
        refused(Galilean(9.0 / unit), replace(burgers, t=unit * burgers.t**2), "needs equally spaced times")
    flat = replace(gas, problem=replace(gas.problem, domain=((0.0, 1.0), (0.0, 2.0))))
    refused(Permute(), flat, "Permute needs equal axes")
    rounded = replace(gas, problem=replace(gas.problem, domain=((0.0, 0.1), (0.2, 0.3))))
    assert Permute().bind(setting(rounded))


def test_a_user_may_vouch_for_an_equation(make_data):
    data = make_data("burgers")
    mine = replace(data, problem=replace(data.problem, name="kdv"))
    with pytest.raises(ValueError, match=r"'kdv' is not known, so Shift may be .* vouch for it: .*\{'shift': True\}"):
        Shift().bind(setting(mine))
    assert torch.equal(transformed(mine, Shift(vouched=True)), transformed(data, Shift()))
    assert torch.equal(transformed(mine, Reflect(odd=("u",), vouched=True)), transformed(data, Reflect()))
    even = transformed(mine, Reflect(odd=(), vouched=True))
    assert torch.equal(even, transformed(data, Reflect()).abs())
    # Of an equation that is known, nobody can.
    with pytest.raises(ValueError, match="Affine is no symmetry of 'burgers'"):
        Affine(vouched=True).bind(setting(data))


def test_a_vorticity_changes_sign_where_axes_are_exchanged(make_data):
    gas = make_data("cns2d", points=8)
    channels = ("density", "vorticity", "vx", "vy")
    mine = replace(gas, problem=replace(gas.problem, name="mine", channels=channels))
    u = transformed(mine, Permute(odd=("vorticity",), vouched=True))
    swapped = u[..., 1].flatten(1).amax(dim=1) < 0
    assert 0 < swapped.sum() < len(u)
    expected = gas.u.transpose(2, 3)[..., [0, 1, 3, 2]] * torch.tensor([1.0, -1.0, 1.0, 1.0])
    assert torch.equal(u[swapped], expected[swapped])
    assert torch.equal(u[~swapped], gas.u[~swapped])


def test_what_a_voucher_has_to_say(make_data):
    def refused(symmetry, data, message):
        with pytest.raises(ValueError, match=message):
            symmetry.bind(setting(data))

    line, gas = make_data("burgers"), make_data("cns2d")
    mine = replace(line, problem=replace(line.problem, name="mine"))
    plane = replace(gas, problem=replace(gas.problem, name="mine", channels=("density", "a", "b", "vx")))
    refused(
        Reflect(vouched=True), mine, r"Which of u change .* Write \{'reflect': \{'odd': \['u'\]\}\}, or 'odd': \[\]"
    )
    refused(Reflect(odd=("w",), vouched=True), mine, "The symmetry reflect has the odd channel 'w'. Use one of u")
    refused(Reflect(odd=("u",)), line, "Which channels of 'burgers' change sign with reflect is known. Leave odd out")
    refused(
        Galilean(9.0, vouched=True), plane, "changes the velocities vx, vy; the data of this 'mine' have density, a"
    )
    refused(Permute(odd=(), vouched=True), plane, "Permute changes the velocities vx, vy")


def test_fields_that_a_symmetry_does_not_know_are_refused(make_data):
    gas = make_data("cns2d", points=8)
    channels = (*gas.problem.channels, "vorticity")
    more = replace(gas, u=gas.u[..., [0, 1, 2, 3, 0]], problem=replace(gas.problem, channels=channels))
    with pytest.raises(ValueError, match=r"Reflect is a symmetry of 2D fields density, .*, vy; the data .* vorticity"):
        Reflect().bind(setting(more))
    flat = replace(gas, problem=replace(gas.problem, name="burgers"))
    with pytest.raises(ValueError, match="Shift is a symmetry of 1D fields u; the data of this 'burgers' are 2D"):
        Shift().bind(setting(flat))


def test_an_uneven_grid_is_refused(make_data):
    data = make_data("burgers")
    with pytest.raises(ValueError, match="The grid is not uniform"):
        Shift().bind(setting(replace(data, grid=data.grid + 0.01 * (2 * torch.pi * data.grid).sin())))
