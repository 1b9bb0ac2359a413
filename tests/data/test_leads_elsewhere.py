"""An HDF5 file reads no other: external storage, external links and virtual datasets from elsewhere are refused."""

import ast
from pathlib import Path

import h5py
import numpy as np
import pytest

import vcnef as library
from vcnef.data import from_arrays
from vcnef.data.inside import open_hdf5
from vcnef.data.writer import TrajectoryWriter

U = np.random.default_rng(0).random((2, 4, 8, 1)).astype("f4")
SECRET = b"root:x:0:0:root:/root:/bin/sh\n" * 10


def stored_outside(file, secret):
    file.create_dataset("tensor", (2, 4, 8), "u1", external=[(str(secret), 0, 64)])


def linked_outside(file, secret):
    with h5py.File(secret.with_suffix(".h5"), "w") as other:
        other["tensor"] = U[..., 0]
    file["tensor"] = h5py.ExternalLink(str(secret.with_suffix(".h5")), "/tensor")


def linked_to_a_group_outside(file, secret):
    with h5py.File(secret.with_suffix(".h5"), "w") as other:
        other["tensor"] = U[..., 0]
    file["far"] = h5py.ExternalLink(str(secret.with_suffix(".h5")), "/")
    file["tensor"] = h5py.SoftLink("/far/tensor")


def gathered_from_outside(file, secret):
    with h5py.File(secret.with_suffix(".h5"), "w") as other:
        other["tensor"] = U[..., 0]
    layout = h5py.VirtualLayout((2, 4, 8), "f4")
    layout[:] = h5py.VirtualSource(str(secret.with_suffix(".h5")), "tensor", (2, 4, 8))
    file.create_virtual_dataset("tensor", layout)


def hidden_in_a_group(file, secret):
    file["tensor"] = U[..., 0]
    file.create_group("deep/er").create_dataset("x", (4,), "u1", external=[(str(secret), 0, 4)])


WAYS = [stored_outside, linked_outside, linked_to_a_group_outside, gathered_from_outside, hidden_in_a_group]


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "elsewhere" / "secret.txt"
    path.parent.mkdir()
    path.write_bytes(SECRET)
    return path


def write(folder, way, secret):
    path = folder / "data.hdf5"
    with h5py.File(path, "w") as file:
        file["x-coordinate"], file["t-coordinate"] = (np.arange(8) + 0.5) / 8, np.linspace(0, 1, 5)
        way(file, secret)
    return path


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("suffix", [".hdf5", ".nc"])
def test_what_leads_elsewhere_is_refused(tmp_path, secret, way, suffix):
    path = write(tmp_path, way, secret).rename(tmp_path / f"data{suffix}")
    with pytest.raises(
        ValueError, match=rf"^{path} (has|cannot be used: has) the .* would read other files\. Copy the"
    ):
        library.open(path, params={"nu": 0.1})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["u0.hdf5", "u0.nc"])
def test_initial_states_that_lead_elsewhere_are_refused(vcnef, tmp_path, secret, way, name):
    path = write(tmp_path, way, secret)
    with h5py.File(path, "r+") as file:
        del file["t-coordinate"]
        file.move("tensor", "u0")
    path = path.rename(tmp_path / name)
    code, _, said = vcnef(
        "predict", "burgers", "--input", path, "--times", "0,1", "--out", tmp_path / "o.npy", "--device", "cpu"
    )
    assert code == 2
    assert "would read other files" in said
    assert len(said.splitlines()) == 1


def test_a_file_that_leads_elsewhere_is_not_written_to(tmp_path, secret):
    path = tmp_path / "made.hdf5"
    from_arrays(U).save(path)
    with h5py.File(path, "r+") as file:
        file.create_dataset("more", (4,), "u1", external=[(str(secret), 0, 4)])
    with pytest.raises(ValueError, match="would read other files"):
        TrajectoryWriter(path)
    with pytest.raises(ValueError, match="would read other files"):
        open_hdf5(path, "r+")
    assert secret.read_bytes() == SECRET


def test_links_and_virtual_datasets_inside_stay(tmp_path):
    path = tmp_path / "own.hdf5"
    with h5py.File(path, "w") as file:
        file["raw"] = U
        file["ring/self"] = h5py.SoftLink("/ring")
        file["ring/root"] = file["/"]  # a hard link to what holds it
        file["u"] = h5py.SoftLink("/ring/root/raw")
        file["nowhere"] = h5py.SoftLink("/is/not/there")
    with open_hdf5(path) as file:
        assert np.array_equal(file["u"], U)


def test_virtual_datasets_of_files_beside_stay_if_those_stay(tmp_path, secret):
    part, path = tmp_path / "part.h5", tmp_path / "whole.hdf5"
    with h5py.File(part, "w") as file:
        file["u"] = U
    layout = h5py.VirtualLayout(U.shape, "f4")
    layout[:] = h5py.VirtualSource("part.h5", "u", U.shape)
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("u", layout)
    assert np.array_equal(library.open(path).u, U)
    part.unlink()
    with h5py.File(part, "w") as file:
        file.create_dataset("u", U.shape, "f4", external=[(str(secret), 0, 4 * U.size)])
    with pytest.raises(ValueError, match="whose numbers lie in another file"):
        library.open(path)
    part.unlink()
    with pytest.raises(ValueError, match=r"virtual dataset '/u' of the file 'part.h5', which is not beside it"):
        library.open(path)


def test_every_hdf5_file_is_opened_by_the_same_door():
    source = Path(library.__file__).parent
    doors = []
    for path in source.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            called = isinstance(node, ast.Call) and ast.unparse(node.func) in ("h5py.File", "File", "h5netcdf.File")
            # A draft that is begun has nothing inside yet.
            if called and not any(ast.unparse(each) == "'w'" for each in node.args):
                doors.append(path.name)
    assert set(doors) == {"inside.py"}
