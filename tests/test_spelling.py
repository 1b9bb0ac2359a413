"""How measured sizes are written."""

import pytest

from vcnef.spelling import spell_bytes


@pytest.mark.parametrize(
    ("size", "spelt"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1408, "1.41 kB"),
        (56_320, "56.3 kB"),
        (999_900, "1 MB"),
        (4_200_000, "4.2 MB"),
        (82e9, "82 GB"),
        (1.6e12, "1,600 GB"),
    ],
)
def test_bytes_have_three_digits_and_the_unit_that_suits(size, spelt):
    assert spell_bytes(size) == spelt
