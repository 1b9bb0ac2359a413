"""Numbers on the page, as its script writes them."""

import json
import shutil
import subprocess

import pytest

from vcnef.explorer.server import PAGE

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")


def run(expression):
    """The value of an expression with the functions of `numbers.js`."""
    script = f"{(PAGE / 'numbers.js').read_text()}\nconsole.log(JSON.stringify({expression}));"
    done = subprocess.run([NODE, "--input-type=module"], input=script, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_numbers_keep_their_whole_part():
    values = [0, 0.125, 0.53125, -6.28319, 64, 1024, 1234.4, 31415.9, 123456, 0.00012]
    words = ["0", "0.125", "0.531", "-6.28", "64", "1024", "1234", "31416", "1.2e+5", "1.2e-4"]
    assert run(f"{values}.map(value => short(value))") == words


def test_ticks_of_a_scale_are_told_apart():
    scales = [[0, 1], [-20, 20], [293.1, 293.9], [1000, 1022], [101300, 101350], [-1e-5, 1e-5], [0.5, 0.5001]]
    found = run(f"{scales}.map(([low, high]) => ticks([low, high], 8).map(tick => [tick, short(tick, high - low)]))")
    for (low, high), labels in zip(scales, found, strict=True):
        places, words = zip(*labels, strict=True)
        assert len(set(words)) == len(words) > 3
        assert list(map(float, words)) == pytest.approx(places, abs=(high - low) / 100)
        assert max(map(len, words)) <= 8


@pytest.mark.parametrize(
    ("values", "ends"), [("1e-12, 3e-12, NaN", [1e-12, 3e-12]), ("2, 2", [1.5, 2.5]), ("0", [-0.5, 0.5]), ("", [-1, 1])]
)
def test_ends_of_a_scale(values, ends):
    assert run(f"bounds([{values}])") == ends


def test_both_answers_have_one_scale():
    assert run("compare([0, 1, 0, 4], [0, -2, 0, 3])") == {
        "own": [0, 1, 0, 4],
        "other": [0, -2, 0, 3],
        "difference": [0, 3, 0, 1],
        "range": [-2, 4],
        "reach": 3,
    }
    assert run("compare([0, 1, 0, 4])") == {"own": [0, 1, 0, 4], "range": [0, 4], "reach": 1}
