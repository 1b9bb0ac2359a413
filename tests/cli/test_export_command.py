"""What `vcnef export` refuses; that its files answer as they should is in tests/surrogate/test_export.py."""

import pytest

import vcnef as package


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("burgers", "--out", "model.bin"), "a model is exported to .pt2 (PyTorch) or .onnx"),
        (("burgers", "--out", "model.pt2", "--points", "many"), "--points many is not understood"),
        (("burgers", "--out", "model.pt2", "--points", "64,64"), "does not fit 1 axes"),
        (("nowhere", "--out", "model.pt2"), "nowhere"),
    ],
)
def test_refusals(vcnef, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = vcnef("export", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert not list(tmp_path.iterdir())


def test_what_takes_long_is_said_before_it_begins(vcnef, tmp_path, monkeypatch):
    def exporting(surrogate, path, **_):
        path.write_bytes(b"model")
        return 2e-6

    monkeypatch.setattr("vcnef.Surrogate.export", exporting)
    code, out, err = vcnef("export", "burgers", "--out", tmp_path / "model.pt2")
    assert code == 0
    assert out == f"{tmp_path / 'model.pt2'}: 5 B; its answers are within 2e-06 of the model's.\n"
    assert err.startswith("Tracing the model")


def test_a_place_that_cannot_be_written_is_refused_before_anything_is_made(vcnef, tmp_path, monkeypatch):
    monkeypatch.setattr("vcnef.Surrogate.export", None)
    (tmp_path / "notes").write_text("mine")
    code, _, err = vcnef("export", "burgers", "--out", tmp_path / "notes" / "model.pt2")
    assert code == 2
    assert f"Could not write {tmp_path / 'notes' / 'model.pt2'}: " in err


def test_a_model_that_steps_is_refused_before_anything_is_made(vcnef, tmp_path):
    data = package.generate("burgers", samples=4, params={"nu": 0.01}, resolution=16, frames=3, horizon=0.1)
    package.Surrogate.build("fno", {"width": 4, "modes": 4}, data).save(tmp_path / "run")
    code, _, err = vcnef("export", tmp_path / "run", "--out", tmp_path / "model.onnx")
    assert code == 2
    assert "fno goes from frame to frame" in err
    assert not (tmp_path / "model.onnx").exists()
