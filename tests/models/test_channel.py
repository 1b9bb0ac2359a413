"""A channel, periodic along x and with walls in y: what models make of it moves along with it and meets its walls."""

import pytest
import torch

import vcnef
from vcnef.accelerate.stencil import convolve_tokens
from vcnef.grid import cell_centres
from vcnef.models.vcnef_beyond import PeriodicFeatures, SpectralMixing, Stencil
from vcnef.nn.patching import continue_field

CHANNEL = (True, False)
SIDES = (12, 8)


def draw(module):
    with torch.no_grad():
        for weight in module.parameters():
            torch.nn.init.normal_(weight, std=0.3)
    return module.double()


def made(kind, patches=(), periodic=CHANNEL):
    if kind == "stencil":
        return draw(Stencil(3, 2, SIDES, patches, periodic=periodic))
    return draw(SpectralMixing(2, 3, 2, patches, periodic=periodic))


def field(tokens=SIDES):
    return torch.randn(2, *tokens, 3, dtype=torch.float64)


@pytest.mark.parametrize("patches", [(), (2,)])
@pytest.mark.parametrize("kind", ["stencil", "spectral"])
def test_what_lies_further_along_the_channel_is_mixed_alike(kind, patches):
    module, u = made(kind, patches), field((6, 4) if patches else SIDES)

    def mix(tokens):
        return module(tokens.flatten(1, 2), SIDES).unflatten(1, tokens.shape[1:3])

    torch.testing.assert_close(mix(u.roll(2, 1)), mix(u).roll(2, 1))
    # Not so from wall to wall.
    assert not torch.allclose(mix(u.roll(2, 2)), mix(u).roll(2, 2), rtol=0.01)


@pytest.mark.parametrize("way", [lambda stencil, *given: stencil(*given), convolve_tokens])
def test_one_wall_is_not_felt_at_the_other(way):
    stencil, u = made("stencil"), field()
    other = u.clone()
    other[:, :, -2:] += 1.0
    before, after = (way(stencil, each.flatten(1, 2), SIDES).unflatten(1, SIDES) for each in (u, other))
    torch.testing.assert_close(after[:, :, :4], before[:, :, :4], rtol=0, atol=0)
    assert ((after - before)[:, :, 4:].abs() > 0).all()
    # Beyond the end of x its beginning is felt.
    other = u.clone()
    other[:, -1] += 1.0
    after = way(stencil, other.flatten(1, 2), SIDES).unflatten(1, SIDES)
    assert ((after - before)[:, :2].abs() > 0).all()


def test_both_ways_to_compute_a_stencil_agree():
    for shape, patches in (((12, 8), ()), ((24, 8), ()), ((11, 7), (2,))):
        stencil = made("stencil", patches)
        tokens = torch.randn(2, 24 if patches else shape[0] * shape[1], 3, dtype=torch.float64)
        torch.testing.assert_close(convolve_tokens(stencil, tokens, shape), stencil(tokens, shape))


def test_waves_are_mirrored_at_walls_alone():
    """In a channel of which the second half mirrors the first, walls make no difference."""
    module, u = made("spectral"), field((12, 4))
    whole = made("spectral", periodic=True)
    whole.load_state_dict(module.state_dict())
    both = torch.cat((u, u.flip(2)), dim=2)
    wanted = whole(both.flatten(1, 2), (12, 8)).unflatten(1, (12, 8))[:, :, :4]
    torch.testing.assert_close(module(u.flatten(1, 2), (12, 4)).unflatten(1, (12, 4)), wanted)


def test_a_field_goes_on_from_its_other_end_or_by_its_last_values():
    u = torch.arange(6.0).view(1, 3, 2, 1)
    wide = continue_field(u, (4, 4), CHANNEL)[0, ..., 0]
    assert wide.tolist() == [[0, 1, 1, 1], [2, 3, 3, 3], [4, 5, 5, 5], [0, 1, 1, 1]]


def test_features_tell_the_walls_apart_and_not_the_ends_of_x():
    features = PeriodicFeatures(2, (1.0, 1.0), periodic=CHANNEL)
    corners = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    found = features(corners)
    assert found.shape == (3, features.count) == (3, 9)
    torch.testing.assert_close(found[0], found[1], atol=1e-5, rtol=0)
    torch.testing.assert_close(found[2] - found[0], torch.eye(9)[0], atol=1e-5, rtol=0)


MODELS = {
    "vcnef points": ("vcnef", {"width": 16, "heads": 2, "depth": 1, "modulations": 1, "patches": (), "local": 1}),
    "vcnef waves": ("vcnef", {"width": 16, "heads": 2, "depth": 1, "modulations": 1, "patches": (), "modes": 2}),
    "fno": ("fno", {"width": 6, "modes": 3, "depth": 2, "steps": 2}),
    "unet": ("unet", {"width": 4, "multipliers": (1, 2), "steps": 2, "parameter_scale": 1.0}),
}


@pytest.mark.parametrize("which", MODELS)
def test_models_commute_with_shifts_along_the_channel(which):
    name, options = MODELS[which]
    more = {"frequencies": 2, "sides": SIDES} if name == "vcnef" else {}
    model = vcnef.build(name, ndim=2, channels=1, periodic=CHANNEL, **options, **more)
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(std=0.3)
    model = model.double().eval()
    grid = cell_centres(((0.0, 1.0),) * 2, SIDES, dtype=torch.float64)
    u0, t = torch.randn(2, *SIDES, 1, dtype=torch.float64), torch.tensor([0.5, 1.0], dtype=torch.float64)

    def answer(u0, axis, places):
        # The grid moves along: where a point lies is an input of some models.
        moved = grid if name == "unet" else grid.roll(places, axis - 1)
        return model(u0.roll(places, axis), moved, t).roll(-places, axis + 1)

    with torch.no_grad():
        plain = answer(u0, 1, 0)
        torch.testing.assert_close(answer(u0, 1, 4), plain, rtol=1e-8, atol=1e-8)
        assert (answer(u0, 2, 4) - plain).abs().max() > 1e-3 * plain.abs().max()
        if name == "vcnef":
            single = model.float()
            expected = single(u0.float(), grid.float(), t.float())
            fast = vcnef.accelerate.predict(single, u0.float(), grid.float(), t.float())
            torch.testing.assert_close(fast, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["vcnef", "fno", "unet", "pinn"])
@pytest.mark.parametrize("all_axes", [True, False])
def test_one_value_for_each_axis_is_the_same_as_one_for_all(name, all_axes):
    sizes = {"vcnef": {"width": 32, "patches": (4,), "local": 1, "sides": (10, 7)}, "pinn": {}}
    options = sizes.get(name, {"steps": 2, "width": 4})
    answers = []
    for periodic in (all_axes, (all_axes, all_axes)):
        torch.manual_seed(0)
        model = vcnef.build(name, ndim=2, channels=1, periodic=periodic, **options)
        torch.manual_seed(1)
        for weight in model.parameters():
            torch.nn.init.normal_(weight, std=0.2)
        u0, grid = torch.randn(1, 10, 7, 1), cell_centres(((0.0, 1.0),) * 2, (10, 7))
        answers.append(model(u0, grid, torch.tensor([0.5, 1.0])))
    assert torch.equal(*answers)


def test_a_pinn_repeats_itself_along_the_channel_alone():
    model = vcnef.build("pinn", ndim=2, channels=1, periodic=CHANNEL)
    assert model.network[0].in_features == 1 + 2 + 1
    corners = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]).unsqueeze(1)
    first, along, across = model(torch.zeros(1, 3, 1, 1), corners, torch.tensor([0.5]))[0, 0, :, 0, 0]
    torch.testing.assert_close(first, along)
    assert not torch.isclose(first, across)


def test_what_is_no_answer_for_each_axis_is_refused():
    for name in ("vcnef", "fno", "unet", "pinn"):
        with pytest.raises(ValueError, match="for 3 axes; expected one value for each of x, y"):
            vcnef.build(name, ndim=2, channels=1, periodic=(True, False, True))
    with pytest.raises(ValueError, match="for 2 axes; expected one value for each of x"):
        vcnef.build("mp_pde", ndim=1, channels=1, periodic=CHANNEL)
