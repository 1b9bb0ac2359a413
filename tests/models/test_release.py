"""The authors' release, reproduced: golden arrays of their code with random weights, and every way to pass them."""

from pathlib import Path

import numpy as np
import pytest
import torch

import vcnef

GOLDEN = Path(__file__).parent / "golden"


def golden(ndim):
    arrays = np.load(GOLDEN / f"release_{ndim}d.npz")
    state = {key[6:]: torch.from_numpy(arrays[key]) for key in arrays.files if key.startswith("state/")}
    inputs = {key[3:]: torch.from_numpy(arrays[key]) for key in arrays.files if key.startswith("in/")}
    return state, inputs, torch.from_numpy(arrays["out/u"])


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_the_releases_outputs(ndim):
    state, inputs, expected = golden(ndim)
    model = vcnef.from_release(state, ndim=ndim, heads=2)
    if not model.params:
        del inputs["params"]
    torch.testing.assert_close(model(**inputs), expected, rtol=1e-5, atol=1e-6)


def test_every_way_to_pass_a_checkpoint(tmp_path):
    state, inputs, expected = golden(1)
    torch.save({"epoch": 3, "model_state_dict": {f"module.{name}": w for name, w in state.items()}}, tmp_path / "a.pt")
    for checkpoint in ({"model_state_dict": state}, tmp_path / "a.pt", str(tmp_path / "a.pt")):
        model = vcnef.from_release(checkpoint, ndim=1, heads=2)
        torch.testing.assert_close(model(**inputs), expected, rtol=1e-5, atol=1e-6)


def test_what_is_no_checkpoint_of_the_release_is_refused(tmp_path):
    state, _, _ = golden(2)
    with pytest.raises(ValueError, match=r"'layer.weight' is no weight of the VCNeF release"):
        vcnef.from_release({"layer.weight": torch.zeros(1)}, ndim=1)
    with pytest.raises(ValueError, match="is of a 2D model, not 3D"):
        vcnef.from_release(state, ndim=3)
    with pytest.raises(ValueError, match="is of a 1D model, not 2D"):
        vcnef.from_release(golden(1)[0], ndim=2, heads=2)
    with pytest.raises(ValueError, match=r"vcnef.norm.weight has 1 non-finite values"):
        vcnef.from_release(state | {"vcnef.norm.weight": torch.tensor([torch.nan, 1.0])}, ndim=2)
    incomplete = {name: weight for name, weight in state.items() if not name.startswith("final_mlp")}
    with pytest.raises(ValueError, match=r"lacks decoder.mlps.0.0.bias"):
        vcnef.from_release(incomplete, ndim=2, heads=2)
    encoderless = {name: weight for name, weight in golden(1)[0].items() if not name.startswith("initial_value")}
    with pytest.raises(ValueError, match=r"lacks encoder.linear.weight \(our names\). Pass a whole state dict."):
        vcnef.from_release(encoderless, ndim=1, heads=2)
    torch.save([1, 2], tmp_path / "list.pt")
    for other in ({}, {"model_state_dict": {}}, {"model": state, "epoch": 3}, tmp_path / "list.pt"):
        with pytest.raises(ValueError, match="is no state dict and has none under 'model_state_dict'"):
            vcnef.from_release(other, ndim=2)


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path):
    (tmp_path / "text.pt").write_text("not a checkpoint")
    with pytest.raises(ValueError, match=r"text.pt is no checkpoint that can be read safely\. Save its .* alone\.$"):
        vcnef.from_release(tmp_path / "text.pt", ndim=1)
    for path in (tmp_path / "missing.pt", tmp_path):
        with pytest.raises(ValueError, match=rf"There is no file {path}\. Give the path of a \.pt file"):
            vcnef.from_release(path, ndim=1)
