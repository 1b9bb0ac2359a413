import pytest

pytest.importorskip("triton")
from vcnef.accelerate.kernels.parts import widths
from vcnef.accelerate.kernels.weights import Tiling, first_for


@pytest.mark.parametrize(
    ("size", "parts"),
    [
        (1, (16,)),
        (16, (16,)),
        (20, (32,)),
        (40, (32, 16)),
        (48, (32, 16)),
        (96, (64, 32)),
        (100, (128,)),
        (128, (128,)),
    ],
)
def test_parts_are_powers_of_two_that_hold_the_width(size, parts):
    assert widths(size) == parts


def test_wide_tokens_are_not_squeezed_into_few_registers():
    squeezed, free = Tiling(128, 64, 8, 2, 128), Tiling(128, 64, 8, 3)
    assert first_for(96, (squeezed, free)) == squeezed
    assert first_for(128, (squeezed, free)) == free


@pytest.mark.parametrize(("points", "tokens"), [(256, 128), (100, 128), (64, 64), (300, 64), (17, 64)])
def test_tiles_reach_little_beyond_the_points(points, tokens):
    assert first_for(96, (Tiling(128, 32, 8, 3), Tiling(64, 64, 4, 2)), points).tokens == tokens
