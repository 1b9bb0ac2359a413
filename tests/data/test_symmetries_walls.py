"""Symmetries of a domain that closes along some axes and ends along others."""

import pytest
import torch

from vcnef.data import Galilean, Permute, Reflect, Shift, from_arrays
from vcnef.data.augment import Setting


def setting(shape, periodic, channels=("u",)):
    data = from_arrays(torch.zeros(2, 2, *shape, len(channels)), periodic=periodic, channels=channels)
    return Setting(data.problem, data.t, data.grid)


def drawn(symmetry, here, u):
    frames = torch.arange(u.shape[1])[None]
    return symmetry.bind(here)(u, frames, torch.Generator().manual_seed(0))


def test_a_shift_moves_along_the_channel_and_keeps_the_distance_to_its_walls():
    u = torch.rand(16, 2, 8, 6, 1)
    moved = drawn(Shift(vouched=True), setting((8, 6), (True, False)), u)
    assert not torch.equal(moved, u)
    for before, after in zip(u, moved, strict=True):
        assert any(torch.equal(before.roll(cells, 1), after) for cells in range(8))
    thinned = drawn(Shift(2, vouched=True), setting((8, 6), (True, False)), u)
    for before, after in zip(u, thinned, strict=True):
        assert any(torch.equal(before.roll(cells, 1)[:, ::2, ::2], after) for cells in range(8))


def test_a_reflection_turns_periodic_axes_alone():
    u = torch.rand(16, 2, 8, 6, 2)
    here = setting((8, 6), (False, True), ("vx", "vy"))
    turned = drawn(Reflect(odd=(), vouched=True), here, u)
    mirror = u.flip(3) * torch.tensor([1.0, -1.0])
    same = [torch.equal(*pair) for pair in zip(turned, u, strict=True)]
    other = [torch.equal(*pair) for pair in zip(turned, mirror, strict=True)]
    assert any(same)
    assert any(other)
    assert all(one != two for one, two in zip(same, other, strict=True))


def test_axes_with_walls_keep_their_place():
    u = torch.rand(16, 2, 6, 4, 6, 1)
    moved = drawn(Permute(odd=(), vouched=True), setting((6, 4, 6), (True, False, True)), u)
    swapped = u.transpose(2, 4)
    same = [torch.equal(*pair) for pair in zip(moved, u, strict=True)]
    other = [torch.equal(*pair) for pair in zip(moved, swapped, strict=True)]
    assert any(same)
    assert any(other)
    assert all(one or two for one, two in zip(same, other, strict=True))


@pytest.mark.parametrize(
    ("symmetry", "periodic", "message"),
    [
        (Shift(vouched=True), False, "Shift needs a periodic grid"),
        (Permute(odd=(), vouched=True), (True, False), "Permute exchanges periodic axes; .* periodic along x only"),
        (Galilean(1.0, vouched=True), (True, False), "walls do not move with the observer; .* periodic along x. Leave"),
    ],
)
def test_what_walls_do_not_allow_is_refused(symmetry, periodic, message):
    with pytest.raises(ValueError, match=message):
        symmetry.bind(setting((8, 8), periodic))
