"""Files with axes in another order, from training to the report."""

import numpy as np
import pytest

from vcnef.surrogate import Surrogate

X = (np.arange(16) + 0.5) / 16
U = np.sin(2 * np.pi * (X + np.linspace(0, 1, 12)[:, None, None] - 0.1 * np.arange(4)[:, None]))[:, :, None]
"""[n t c x], as APEBench has it."""
TINY = ("width=16", "heads=2", "depth=1", "modulations=1", "epochs=1", "window=direct")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("raw.npy", U)
    np.save("usual.npy", U.swapaxes(2, 3))
    return tmp_path


def test_the_whole_road(vcnef, here):
    asked = ("train", "--data", "raw.npy", "--out", "run", "--devices", "cpu", *(f"--set={each}" for each in TINY))
    code, _, err = vcnef(*asked)
    assert code == 2
    assert "a single point along x; expected two or more along each axis." in err
    code, _, err = vcnef(*asked, "--layout", "n t c x")
    assert code == 0, err
    assert Surrogate.load("run").provenance["resolution"] == [16]
    tables = []
    for told in (("usual.npy",), ("raw.npy", "--layout", "n t c x")):
        code, out, err = vcnef("evaluate", "run", "--device", "cpu", "--data", *told)
        assert code == 0, err
        tables.append(out.partition("\n")[2].partition("Time per trajectory")[0])
    assert tables[0] == tables[1]
    # What was judged before, and what is judged for the report.
    for told in ((), ("--data", "raw.npy", "--layout", "n t c x", "--device", "cpu")):
        code, _, err = vcnef("report", "run", *told)
        assert code == 0, err
        page = (here / "run/report.html").read_text()
        assert "vcnef evaluate run --data raw.npy --layout &#39;n t c x&#39;" in page


def test_doubts_about_a_file_are_lines_of_the_command(vcnef, here):
    np.save("plane.npy", np.random.default_rng(0).random((4, 5, 8, 8)))
    code, _, err = vcnef("evaluate", "burgers", "--data", "plane.npy")
    assert code == 2
    assert err.startswith(
        "Warning: u has trajectories of shape (5, 8, 8), whose last axis is taken for 8 channels. Name them, or"
    )
