"""Files with flipped bits, other bytes or a missing end: read as they were saved, or refused in a sentence."""

import shutil

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import vcnef as library
from vcnef.cli._initial_states import read_initial_states
from vcnef.config import Config
from vcnef.data import from_arrays

TINY = {"model": "vcnef", "window": "direct", "width": 16, "heads": 2, "depth": 1, "modulations": 1, "quiet": True}
X, T, NU = (np.arange(8) + 0.5) / 8, np.linspace(0, 1, 4), np.linspace(0.01, 0.1, 12)
U = (np.sin(2 * np.pi * (X + 30 * NU[:, None]))[:, None] * np.linspace(1, 0.5, 4)[:, None])[..., None]
pytestmark = pytest.mark.slow
FUZZ = settings.get_profile("fuzz")

places = st.floats(0, 1, exclude_max=True)
flips = st.lists(st.tuples(places, st.integers(0, 7)), min_size=1, max_size=8)
damages = st.one_of(
    st.tuples(st.just("flip"), flips),
    st.tuples(st.just("cut"), places),
    st.tuples(st.just("write"), st.tuples(places, st.binary(min_size=1, max_size=64))),
    st.tuples(st.just("replace"), st.binary(max_size=512)),
)


def spoil(content, damage):
    """The bytes of a file after a damage; places are parts of its length, so that they fit any."""
    kind, what = damage
    changed = bytearray(content)
    if kind == "replace":
        return what
    if kind == "cut":
        return bytes(changed[: int(what * len(changed))])
    if kind == "write":
        place, piece = int(what[0] * len(changed)), what[1]
        changed[place : place + len(piece)] = piece
    else:
        for place, bit in what:
            changed[int(place * len(changed))] ^= 1 << bit
    return bytes(changed)


@pytest.fixture(scope="module")
def data():
    return from_arrays(U, t=T, x=X, params={"nu": NU}, name="burgers")


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    return library.fit(data, out=tmp_path_factory.mktemp("runs") / "run", epochs=1, **TINY).folder


@pytest.fixture(scope="module")
def files(data, tmp_path_factory):
    """The same data in each kind of file, by its suffix."""
    folder = tmp_path_factory.mktemp("files")
    found = {suffix: data.save(folder / f"d{suffix}") for suffix in (".npz", ".nc", ".hdf5")}
    found[".npy"] = folder / "d.npy"
    np.save(found[".npy"], U)
    return found


@pytest.mark.parametrize("suffix", [".npz", ".nc", ".hdf5", ".npy"])
def test_data(files, data, suffix, attempt, tmp_path):
    content, path = files[suffix].read_bytes(), tmp_path / f"spoilt{suffix}"

    @settings(FUZZ)
    @given(damages)
    def check(damage):
        path.write_bytes(spoil(content, damage))
        found = attempt(library.open, path)
        if found is not None:
            assert torch.isfinite(found.u).all()
            # Of the others only the archive has checksums.
            if suffix == ".npz" and found.u.shape == data.u.shape:
                assert torch.equal(found.u, data.u)
        attempt(read_initial_states, path, data.problem, {"nu": 0.05})

    check()


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_models(run, name, attempt, tmp_path):
    folder = shutil.copytree(run / "model", tmp_path / "model")
    content, before = (folder / name).read_bytes(), library.load(run)
    weights = before.model.state_dict()

    @settings(FUZZ)
    @given(damages)
    def check(damage):
        (folder / name).write_bytes(spoil(content, damage))
        found = attempt(library.load, folder)
        if found is not None:
            assert found.problem == before.problem
            assert all(torch.equal(value, weights[key]) for key, value in found.model.state_dict().items())

    check()


@pytest.mark.parametrize("name", ["state.pt", "log.jsonl"])
def test_runs(run, data, name, attempt, tmp_path):
    folder = shutil.copytree(run, tmp_path / "run")
    content = (folder / name).read_bytes()
    kept = {each: (folder / each).read_bytes() for each in ("state.pt", "log.jsonl", "config.yaml")}

    @settings(FUZZ)
    @given(damages)
    def check(damage):
        for each, whole in kept.items():
            (folder / each).write_bytes(whole)
        (folder / name).write_bytes(spoil(content, damage))
        # The run is over: it is read, and not a step is made.
        attempt(library.fit, data, out=folder, resume=True, epochs=1, **TINY)

    check()


def test_configurations(run, attempt, tmp_path):
    content, path = (run / "config.yaml").read_bytes(), tmp_path / "c.yaml"

    @settings(FUZZ)
    @given(damages)
    def check(damage):
        path.write_bytes(spoil(content, damage))
        attempt(Config.load, path)

    check()
