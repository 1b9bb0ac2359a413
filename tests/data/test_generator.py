"""The generator: what it makes, what it redraws, and that files do not depend on how a run went."""

import fcntl
import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from runpy import run_path

import h5py
import jaxtyping
import numpy as np
import pytest
import torch

from vcnef.data import generate
from vcnef.data import open as open_data
from vcnef.data.writer import TrajectoryWriter, create
from vcnef.problem import Problem

SCRIPT = Path(__file__).with_name("decaying_waves.py")
DecayingWaves = run_path(str(SCRIPT))["DecayingWaves"]
SETTINGS = {"samples": 40, "batch": 4, "seed": 5, "device": "cpu", "params": {"rate": (0.1, 10.0)}}


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def make_script_data(path, **options):
    return generate(DecayingWaves(blows_up=(2, 21)), out=path, **SETTINGS, **options)


def test_in_memory_and_from_the_file_are_the_same(tmp_path):
    memory = generate(DecayingWaves(), **SETTINGS)
    [path] = generate(DecayingWaves(), out=tmp_path / "decay.hdf5", **SETTINGS)
    stored = open_data(path)
    for part in ("u", "t", "grid", "params"):
        assert torch.equal(getattr(stored, part), getattr(memory, part)), part
    assert stored.problem == memory.problem
    assert stored.attributes["seed"] == memory.attributes["seed"] == 5
    assert stored.attributes["initial_options"] == memory.attributes["initial_options"] == "default"
    larger = generate(DecayingWaves(), **SETTINGS, amplitude=2.0)
    assert larger.attributes["initial_options"] == "amplitude=2.0"
    exact = memory.u[:, :1] * torch.exp(-memory.params[:, :, None, None] * memory.t[:, None, None])
    assert torch.allclose(memory.u, exact, atol=1e-6)


def test_samples_do_not_depend_on_how_many_there_are_or_on_the_batch():
    many, few = (
        generate(DecayingWaves(), **SETTINGS),
        generate(DecayingWaves(), **(SETTINGS | {"samples": 7, "batch": 3})),
    )
    assert torch.equal(many.u[:7], few.u)
    assert not torch.equal(few.u, generate(DecayingWaves(), **(SETTINGS | {"samples": 7, "seed": 6})).u)


def test_a_range_is_drawn_per_sample_evenly_in_its_logarithm():
    rate = generate(DecayingWaves(), samples=400, params={"rate": (0.01, 100.0)}, device="cpu").params[:, 0]
    assert rate.min() >= 0.01
    assert rate.max() <= 100.0
    assert abs(float((rate < 1.0).float().mean()) - 0.5) < 0.1
    linear = generate(DecayingWaves(), samples=400, params={"rate": (-1.0, 1.0)}, device="cpu").params[:, 0]
    assert abs(float(linear.mean())) < 0.15


def test_several_values_share_their_initial_states(tmp_path):
    waves = DecayingWaves()
    data = generate(waves, samples=10, params={"rate": [0.5, 2.0]}, device="cpu")
    assert data.parts == (10, 10)
    assert torch.equal(data.u[:10, 0], data.u[10:, 0])
    assert data.params[[0, 10], 0].tolist() == [0.5, 2.0]
    assert len(data.split("test")) == 2
    paths = generate(waves, samples=10, params={"rate": [0.5, 2.0]}, device="cpu", out=tmp_path)
    assert [path.name for path in paths] == ["decay_rate0.5.hdf5", "decay_rate2.0.hdf5"]
    assert torch.equal(open_data(paths).u, data.u)


def test_samples_that_blow_up_are_drawn_again_and_counted(tmp_path):
    waves = DecayingWaves(blows_up=(2, 21))
    [path] = generate(waves, out=tmp_path / "decay.hdf5", **SETTINGS)
    assert ((2,), 1) in waves.calls
    data = open_data(path)
    assert torch.isfinite(data.u).all()
    with h5py.File(path) as file:
        assert (file.attrs["completed"], file.attrs["redrawn"]) == (40, 2)
        assert np.flatnonzero(file["attempts"][()]).tolist() == [2, 21]
    calm = generate(DecayingWaves(), **SETTINGS)
    others = torch.tensor([i not in (2, 21) for i in range(40)])
    assert torch.equal(data.u[others], calm.u[others])
    assert generate(waves, **SETTINGS).attributes["redrawn"] == 2


def test_what_never_becomes_finite_is_given_up():
    with pytest.raises(ValueError, match=r"decay sample 0 was not finite in 8 draws .*higher resolution"):
        generate(DecayingWaves(), samples=1, params={"rate": -1e9}, device="cpu")


def test_an_error_before_the_first_batch_leaves_no_file(tmp_path):
    path = tmp_path / "decay.hdf5"
    with pytest.raises(ValueError, match="not finite in 8 draws"):
        generate(DecayingWaves(), samples=1, params={"rate": -1e9}, device="cpu", out=path)
    assert not path.exists()


def test_what_was_made_before_an_error_is_kept(tmp_path, monkeypatch):
    waves, path = DecayingWaves(), tmp_path / "decay.hdf5"
    solve = waves.solve
    monkeypatch.setattr(waves, "solve", lambda *given: solve(*given) * (1.0 if len(waves.calls) == 1 else torch.inf))
    with pytest.raises(ValueError, match="decay sample 4 was not finite in 8 draws"):
        generate(waves, out=path, **SETTINGS)
    with h5py.File(path) as file:
        assert np.flatnonzero(file["attempts"][()] >= 0).tolist() == [0, 1, 2, 3]
    generate(DecayingWaves(), out=path, resume=True, **SETTINGS)
    assert torch.equal(open_data(path).u, generate(DecayingWaves(), **SETTINGS).u)


def test_thousands_of_times(tmp_path):
    few = SETTINGS | {"samples": 2, "frames": 4000}
    first, second = (generate(DecayingWaves(), out=tmp_path / each, **few)[0] for each in ("a.hdf5", "b.hdf5"))
    assert digest(first) == digest(second)
    data = open_data(first)
    assert len(data.t) == len(data.attributes["recipe"]["times"]) == 4000
    for suffix in (".hdf5", ".nc", ".npz"):
        assert open_data(data.save(tmp_path / f"again{suffix}")).attributes == data.attributes


def test_stored_points_are_thinned(tmp_path):
    fine = generate(DecayingWaves(), **SETTINGS)
    [path] = generate(DecayingWaves(), out=tmp_path / "decay.hdf5", store_stride=4, **SETTINGS)
    coarse = open_data(path)
    assert torch.equal(coarse.u, fine.u[:, :, ::4])
    assert torch.equal(coarse.grid, fine.grid[::4])
    assert coarse.problem.domain == ((0.0, 1.0),)
    assert torch.equal(generate(DecayingWaves(), store_stride=4, **SETTINGS).u, coarse.u)


def test_progress_is_told():
    told = []
    generate(DecayingWaves(), progress=lambda *each: told.append(each), **(SETTINGS | {"samples": 10, "batch": 4}))
    assert told == [("decay_rate0.1to10.0.hdf5", done, 10) for done in (4, 8, 10)]


def test_a_killed_run_says_how_far_it_got_and_ends_with_the_same_bytes(tmp_path):
    path, whole = tmp_path / "killed.hdf5", tmp_path / "whole.hdf5"
    make_script_data(whole)
    process = subprocess.Popen([sys.executable, SCRIPT, path, "0.3", "new"], stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while made(path) < 8 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    done = made(path)
    assert 8 <= done < 40, process.stderr.read().decode()
    with pytest.raises(ValueError, match=f"is unfinished: {done} of 40 trajectories are made. Resume its generation"):
        open_data(path)
    make_script_data(path, resume=True)
    assert digest(path) == digest(whole)
    make_script_data(path, resume=True)
    assert digest(path) == digest(whole)


def made(path) -> int:
    if not path.exists():
        return 0
    with h5py.File(path, "r") as file:
        return int((file["attempts"][()] >= 0).sum())


def test_processes_share_a_run_and_give_the_same_bytes(tmp_path, monkeypatch):
    alone, shared = tmp_path / "alone.hdf5", tmp_path / "shared.hdf5"
    make_script_data(alone)
    monkeypatch.setenv("WORLD_SIZE", "3")
    for rank in "021":
        monkeypatch.setenv("RANK", rank)
        make_script_data(shared)
    assert digest(shared) == digest(alone)


def test_a_process_may_look_while_another_one_finishes(tmp_path):
    make_script_data(tmp_path / "shared.hdf5")
    writer = TrajectoryWriter(tmp_path / "shared.hdf5")
    with h5py.File(writer.path) as file:
        attempts = file["attempts"][()]
    with writer.path.open("r+b") as other:
        fcntl.flock(other, fcntl.LOCK_EX)  # as HDF5 does
        assert np.array_equal(writer.attempts(), attempts)


def test_files_are_not_overwritten_and_not_mixed(tmp_path):
    path = tmp_path / "decay.hdf5"
    make_script_data(path)
    with pytest.raises(ValueError, match=r"decay.hdf5 exists already. Resume it .* or choose another name"):
        make_script_data(path)
    other = SETTINGS | {"seed": 6, "samples": 50}
    message = r"was begun differently .*: samples was 40, now 50; seed was 5, now 6\. Ask for what it was begun with"
    with pytest.raises(ValueError, match=message):
        generate(DecayingWaves(), out=path, resume=True, **other)
    with pytest.raises(ValueError, match=r"decay.csv has the suffix '.csv'; generated data are written as .hdf5"):
        generate(DecayingWaves(), out=tmp_path / "decay.csv", **SETTINGS)
    with pytest.raises(ValueError, match="2 parameter values make as many files; give a folder instead of"):
        generate(DecayingWaves(), samples=1, device="cpu", params={"rate": [1.0, 2.0]}, out=tmp_path / "b.hdf5")


def test_numbers_of_numpy_are_resumed_as_any_others(tmp_path):
    sizes = {"samples": 4, "seed": 5, "batch": 2, "resolution": 16, "store_stride": 2}
    for number in (np.int64, int):
        same = {name: number(size) for name, size in sizes.items()}
        [path] = generate(DecayingWaves(), out=tmp_path / "decay.hdf5", resume=True, device="cpu", **same)
    assert open_data(path).attributes["recipe"]["samples"] == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"params": {"rat": 1.0}}, "decay has no parameter 'rat'. Did you mean 'rate'"),
        ({"amplitud": 1.0}, "decay has no initial option 'amplitud'. Did you mean 'amplitude'"),
        ({"samples": 0}, "samples is 0; expected at least 1"),
        ({"frames": 1}, "frames is 1 and horizon 1; expected 2 frames or more"),
        ({"horizon": 0.0}, "horizon 0; expected 2 frames or more and a time above 0"),
        ({"t": [0.0, 0.5], "frames": 3}, "Output times are given twice"),
        ({"t": [0.1, 0.5]}, r"t is \[0.1, 0.5\]; expected two or more ascending, finite times, the first of them 0"),
        ({"t": [0.0, np.inf]}, "expected two or more ascending, finite times"),
        ({"t": [0.0, 1.0, 1.0 + 1e-9]}, "t has 3 values from 0.0 to 1.000000001, too close for single precision"),
        ({"store_stride": 3}, "resolution is 16 with store_stride 3; expected 4 or more cells and a divisor"),
        ({"params": {"rate": "fast"}}, "rate is 'fast'; expected a number, a list of them"),
        ({"params": {"rate": (2.0, 1.0)}}, r"rate is \(2.0, 1.0\); expected a number, a list of them, or a \(low"),
        ({"params": [1.0]}, "params is list; expected values by name, e.g. params="),
        ({"params": {"rate": []}}, "Lists of parameters go through together, but have {'rate': 0} values"),
        ({"device": "abacus"}, "The device is 'abacus', which this machine does not have; expected cpu, cuda"),
    ],
)
def test_messages(change, message, monkeypatch):
    # The tests' own checks of types would speak first.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=message):
        generate(DecayingWaves(), **({"samples": 2, "device": "cpu"} | change))


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "notes").write_text("mine")
    path = tmp_path / "notes" / "decay.hdf5"
    with pytest.raises(OSError, match=rf"Could not write {path}: (Not a directory|File exists)\. What was saved"):
        generate(DecayingWaves(), samples=2, device="cpu", out=path)


@pytest.mark.parametrize("name", ["samples", "resolution", "frames", "seed", "batch", "store_stride"])
def test_sizes_that_are_no_whole_numbers_are_named(name, monkeypatch):
    # The tests' own checks of types would speak first.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=rf"{name} is 1000\.0; expected a whole number\."):
        generate(DecayingWaves(), **({"samples": 2, "device": "cpu"} | {name: 1e3}))


def test_output_times_are_free(tmp_path):
    times = [0.0, 0.1, 0.7, 2.0]
    data = generate(DecayingWaves(), samples=3, device="cpu", t=times)
    torch.testing.assert_close(data.t, torch.tensor(times))
    [path] = generate(DecayingWaves(), samples=3, device="cpu", t=times, out=tmp_path / "decay.hdf5")
    again = open_data(path)
    assert torch.equal(again.t, data.t)
    assert torch.equal(again.u, data.u)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_a_missing_gpu_is_said():
    with pytest.raises(ValueError, match=r"The device is 'cuda', which this machine does not have"):
        generate(DecayingWaves(), samples=1, device="cuda")


@pytest.mark.parametrize(
    ("name", "points"), [("advection", 32), ("burgers", 32), ("cns1d", 32), ("cns2d", 8), ("cns3d", 8)]
)
def test_the_equations_of_the_benchmark(tmp_path, name, points):
    size = {"samples": 3, "resolution": points, "frames": 3, "horizon": 0.05, "device": "cpu"}
    data = generate(name, **size)
    assert data.problem.name == name
    assert torch.isfinite(data.u).all()
    [path] = generate(name, **size, out=tmp_path)
    again = open_data(path)
    assert torch.equal(again.u, data.u)
    assert again.problem == data.problem
    assert again.attributes.get("mach") == data.attributes.get("mach")


def test_a_file_that_cannot_be_begun_leaves_nothing(tmp_path):
    line, t, note = np.linspace(0.0, 1.0, 4), np.array([0.0, 1.0]), {}
    note["itself"] = note
    with pytest.raises(ValueError, match="Circular reference"):
        create(tmp_path / "new.hdf5", Problem("custom", ("u",)), t, [line], np.zeros((2, 0)), note)
    assert not list(tmp_path.iterdir())
