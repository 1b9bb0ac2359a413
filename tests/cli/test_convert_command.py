"""`vcnef convert`: the release's numbers come out of the folder it writes; wrong names and files are refused."""

from pathlib import Path

import numpy as np
import pytest
import torch

from vcnef.surrogate import Surrogate

GOLDEN = Path(__file__).parent.parent / "models" / "golden"


@pytest.fixture
def release(tmp_path):
    def save(ndim):
        arrays = np.load(GOLDEN / f"release_{ndim}d.npz")
        state = {key[6:]: torch.from_numpy(arrays[key]) for key in arrays.files if key.startswith("state/")}
        torch.save({"model_state_dict": state}, tmp_path / "release.pt")
        return tmp_path / "release.pt", {key: torch.from_numpy(arrays[key]) for key in arrays.files if key[:2] != "st"}

    return save


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_the_folder_answers_as_the_release_does(vcnef, release, tmp_path, ndim):
    path, arrays = release(ndim)
    params = {1: ["a", "b"], 2: ["a"], 3: []}[ndim]
    named = ["--params", ",".join(params)] if params else []
    channels = ",".join(f"f{i}" for i in range(arrays["in/u0"].shape[-1]))
    code, out, err = vcnef(
        "convert", path, "--ndim", ndim, "--heads", 2, "--channels", channels, *named, "--domain", "-1:1",
        "--horizon", 2, "--out", tmp_path / "model",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert f"in {ndim}D, to t = 2." in out
    surrogate = Surrogate.load(tmp_path / "model")
    assert surrogate.problem.domain == ((-1.0, 1.0),) * ndim
    assert surrogate.provenance == {"release": "release.pt"}
    # The release counts time from 0 to 1 over the horizon.
    given = arrays["in/params"] if params else torch.zeros(len(arrays["in/u0"]), 0)
    u = surrogate.answer(arrays["in/u0"], arrays["in/grid"][0], 2 * arrays["in/t"], given)
    torch.testing.assert_close(u, arrays["out/u"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"--ndim": 4}, "--ndim is 4; expected 1, 2 or 3."),
        ({"--horizon": 0}, "--horizon is 0; expected a positive time."),
        ({"--params": "a"}, "--params names a, but the checkpoint has 2. Name each, as in --params a,b."),
        ({"--channels": ""}, "--channels names nothing, but the checkpoint has 2. Name each, as in --channels a,b."),
        ({"--domain": "wide"}, "--domain wide is not understood; write low:high, e.g. -1:1 or 0:1,0:2."),
        ({"--domain": "0:1,0:1"}, "--domain 0:1,0:1 has 2 axes; expected 1, or one for all."),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(vcnef, release, tmp_path, wrong, message):
    right = {"--ndim": 1, "--heads": 2, "--channels": "f,g", "--params": "a,b", "--out": tmp_path / "model"}
    options = [each for pair in (right | wrong).items() for each in pair]
    code, out, err = vcnef("convert", release(1)[0], *options)
    assert (code, out, err) == (2, "", message + "\n")
    assert not (tmp_path / "model").exists()


def test_a_missing_file_and_a_folder_in_use(vcnef, tmp_path):
    code, _, err = vcnef("convert", tmp_path / "no.pt", "--ndim", 1, "--out", tmp_path / "model")
    assert (code, err) == (2, f"There is no file {tmp_path / 'no.pt'}. Give the path of a .pt file of the release.\n")
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "notes.txt").write_text("mine")
    code, _, err = vcnef("convert", tmp_path / "no.pt", "--ndim", 1, "--out", tmp_path / "used")
    assert (code, err) == (2, f"{tmp_path / 'used'} exists already. Choose another folder.\n")
