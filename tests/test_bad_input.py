"""Whatever is absurd or damaged is refused in one clear sentence: no traceback, no hang, no answer."""

import json
import resource
import shutil
import zipfile

import numpy as np
import pytest
import torch

import vcnef as library
from vcnef.data import from_arrays
from vcnef.data.archives import reading_npz
from vcnef.pde import solve
from vcnef.training.log import read_lines
from vcnef.training.stopping import Stopped

TINY = {"model": "vcnef", "window": "direct", "width": 16, "heads": 2, "depth": 1, "modulations": 1, "quiet": True}
X, T, NU = (np.arange(16) + 0.5) / 16, np.linspace(0, 1, 4), np.linspace(0.01, 0.1, 12)
U = (np.sin(2 * np.pi * (X + 30 * NU[:, None]))[:, None] * np.linspace(1, 0.5, 4)[:, None])[..., None]
SPARSE, META = torch.ones(2, 16, 1).to_sparse(), torch.ones(2, 16, 1, device="meta")


@pytest.fixture(scope="module")
def data():
    return from_arrays(U, t=T, x=X, params={"nu": NU}, name="burgers")


@pytest.fixture(scope="module")
def finished(data, tmp_path_factory):
    """The folder of a run of one epoch."""
    return library.fit(data, out=tmp_path_factory.mktemp("runs") / "run", epochs=1, **TINY).folder


@pytest.fixture
def run(finished, tmp_path):
    """A copy that may be damaged."""
    return shutil.copytree(finished, tmp_path / "run")


def one_sentence(error):
    return "\n" not in str(error.value) and len(str(error.value)) > 20 and str(error.value).rstrip().endswith(".")


CALLS = {
    "load nothing": (lambda d, s: library.load(None), "The run or model to load is None; expected a path"),
    "load a number": (lambda d, s: library.load(3), "The run or model to load is 3; expected a path"),
    "load a null": (lambda d, s: library.load("a\0b"), "no path has a null character"),
    "open nothing": (lambda d, s: library.open(None), "The file to open is None; expected a path"),
    "open a number": (lambda d, s: library.open(3), "The file to open is 3; expected a path"),
    "open nothings": (lambda d, s: library.open([None]), "The file to open is None; expected a path"),
    "judge nothing": (lambda d, s: library.evaluate(None, d), "There is no model to judge in NoneType"),
    "judge on nothing": (lambda d, s: library.evaluate(s, None), "Expected trajectories to judge on, got NoneType"),
    "judge nowhere": (lambda d, s: library.evaluate(s, d, device="meta"), "The device is 'meta', on which nothing has"),
    "move nowhere": (lambda d, s: s.to("nowhere"), "The device is 'nowhere', which this machine does not have"),
    "move to meta": (lambda d, s: s.to("meta"), "The device is 'meta', on which nothing has"),
    "sparse data": (lambda d, s: from_arrays(SPARSE), "u is sparse. Give it as tensor.to_dense()"),
    "data of meta": (lambda d, s: from_arrays(META), "u is on the meta device, so it has no values"),
    "sparse u0": (lambda d, s: s.predict(SPARSE, [0.5]), "u0 is sparse. Give it as tensor.to_dense()"),
    "u0 of meta": (lambda d, s: s.predict(META, [0.5]), "u0 is on the meta device, so it has no values"),
    "solve sparse": (lambda d, s: solve("burgers", SPARSE, t=[0.1]), "u0 is sparse. Give it as tensor.to_dense()"),
    "solve meta": (lambda d, s: solve("burgers", META, t=[0.1]), "u0 is on the meta device, so it has no values"),
    "too wide": (lambda d, s: library.fit(d, out="never", **TINY | {"width": 10**9}), "larger than a machine with"),
    "wide": (lambda d, s: library.fit(d, out="never", **TINY | {"width": 10**6}), "Choose a smaller width or depth"),
    "widest": (lambda d, s: library.fit(d, out="never", **TINY | {"width": 10**30}), "Choose a smaller width"),
    "deep": (lambda d, s: library.fit(d, out="never", **TINY | {"depth": 10**6}), "more than 20000 tensors of"),
    "fit nothing": (lambda d, s: library.fit(None), "u is not an array of real numbers"),
    "tiny fields": (lambda d, s: from_arrays(U * 1e-46), "u is up to 1e-46; single precision, in which it is kept"),
    "tiny parameters": (
        lambda d, s: from_arrays(U, params={"nu": NU * 1e-46}),
        r"params\['nu'\] is up to 1e-47; single precision.* Give it in other units",
    ),
    "tiny u0": (lambda d, s: s.predict(U[:, 0] * 1e-46, [0.5], {"nu": NU}), "u0 is up to 1e-46; single precision"),
    "a table of times": (
        lambda d, s: s.predict(U[:, 0], np.zeros((2, 1)), {"nu": NU}),
        r"t is array\(\[\[0\.\], \[0\.\]\]\); expected one or more finite times",
    ),
    "a point": (lambda d, s: s.predict(U[:, 0], [0.5], {"nu": NU}, 0.5), r"x has axes of shape \(\(\),\); expected"),
    "endless": (
        lambda d, s: solve("advection", np.ones((1, 16, 1)), t=[0.0, 1.0], params={"beta": 1e20}),
        r"The solver needs 4e\+21 steps of .* until the last time, 1; expected at most 1e\+08",
    ),
}


@pytest.fixture(autouse=True, scope="module")
def bounded_memory():
    """What is not refused is to fail here, and not to take the memory of the whole machine."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (16 * 2**30, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.parametrize("name", CALLS)
def test_what_is_absurd_is_refused_in_python(data, finished, name, monkeypatch):
    import jaxtyping

    call, said = CALLS[name]
    surrogate = library.load(finished)
    # The tests' own checks of types would speak first.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=said) as error:
        call(data, surrogate)
    assert one_sentence(error)


def change_state(**values):
    def change(run):
        record = torch.load(run / "state.pt", weights_only=True)
        torch.save(record | values, run / "state.pt")

    return change


def write(name, content):
    return lambda run: (run / name).write_bytes(content.encode() if isinstance(content, str) else content)


DAMAGES = {
    "a log of lists": (write("log.jsonl", "[1, 2]\n{}\n"), r"log\.jsonl has no record of training in line 1"),
    "a log of bytes": (write("log.jsonl", b"\xff\xfe\n{}\n"), r"log\.jsonl has no record of training in line 1"),
    "a deep log": (write("log.jsonl", "[" * 10**5 + "\n{}\n"), r"log\.jsonl has no record of training in line 1"),
    "a log of texts": (write("log.jsonl", '{"step": "a"}\n'), r"log\.jsonl has no record of training in line 1"),
    "an empty model": (
        write("model/config.json", "{}"),
        r"config\.json is not a description of a model: it is damaged",
    ),
    "a deep model": (write("model/config.json", "[" * 10**5), r"config\.json is not a description of a model"),
    "a step in words": (change_state(step="abc"), r"state\.pt is damaged or of another model \(its step is 'abc'\)"),
    "a step before": (change_state(step=-5), r"state\.pt is damaged or of another model \(its step is -5\)"),
    "a best in words": (change_state(best="a"), r"state\.pt is damaged or of another model \(its best is 'a'\)"),
    "no seconds": (change_state(elapsed=float("nan")), r"state\.pt is damaged .*its elapsed is nan"),
    "a later state": (change_state(format=99), r"its format is 99, this vcnef reads 1"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_run_is_not_resumed(data, run, name):
    damage, said = DAMAGES[name]
    damage(run)
    with pytest.raises(ValueError, match=said) as error:
        library.fit(data, out=run, resume=True, epochs=2, **TINY)
    assert one_sentence(error)


def test_the_last_line_of_a_log_may_be_cut(run):
    whole = read_lines(run / "log.jsonl")
    with (run / "log.jsonl").open("a") as file:
        file.write('{"step": 1')
    assert read_lines(run / "log.jsonl") == whole


COMMANDS = {
    "generate burgers --samples 99999999999999999999": "samples is 99999999999999999999; expected at most",
    "generate burgers --resolution 99999999999999": "resolution is 99999999999999; expected at most",
    "generate burgers --frames 99999999999999": "frames is 99999999999999; expected at most",
    "generate advection --samples 1 --set beta=1e20": "The solver needs",
    "predict burgers --input missing.npy --times 0:1:1000000000": "are too many times; expected at most 1000000",
    "predict burgers --input missing.npy --times 0,1 --device meta": "The device is 'meta', on which nothing has",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_absurd_is_refused_on_the_command_line(vcnef, tmp_path, command):
    verb, *rest = command.split()
    np.save(tmp_path / "missing.npy", np.ones((1, 256, 1)))
    arguments = [str(tmp_path / each) if each.endswith(".npy") else each for each in rest]
    out = tmp_path / ("out.hdf5" if verb == "generate" else "out.nc")
    code, _, said = vcnef(verb, *arguments, "--out", out)
    assert code == 2
    assert COMMANDS[command] in said
    assert "Traceback" not in said
    assert not out.exists()


@pytest.mark.parametrize("member", ["u", "u.npy"])
def test_a_member_that_is_no_array(vcnef, tmp_path, member):
    path = tmp_path / "bad.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, b"hello")
    with pytest.raises(ValueError, match=r"bad\.npz has 'u', which is no array") as error:
        library.open(path)
    assert one_sentence(error)
    out = tmp_path / "out.nc"
    code, _, said = vcnef("predict", "burgers", "--input", path, "--times", "0,1", "--out", out, "--device", "cpu")
    assert code == 2
    assert "has 'u', which is no array" in said


def test_what_unpacks_to_more_than_there_is_is_not_unpacked(tmp_path, monkeypatch):
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, u=np.zeros((2, 3, 10**6, 1), dtype="f4"), nu=np.ones(2))
    assert path.stat().st_size < 10**5
    monkeypatch.setattr("vcnef.data.archives.free_memory", lambda: 1e6)
    with pytest.raises(
        ValueError, match=r"has 'u', which unpacks to 24 MB; there are 1 MB of memory\. Save it"
    ) as error:
        library.open(path)
    assert one_sentence(error)
    with reading_npz(path) as arrays:
        assert arrays["nu"] is arrays["nu"]  # unpacked once
        assert {*arrays} == {"u", "nu"}
        assert len(arrays) == 2


def test_deep_notes_in_files_are_refused(tmp_path, data):
    path = data.save(tmp_path / "deep.npz")
    with np.load(path) as arrays:
        held = dict(arrays)
    np.savez(path, **held | {"problem": "[" * 10**5})
    with pytest.raises(ValueError, match="has an array 'problem' that does not describe one") as error:
        library.open(path)
    assert one_sentence(error)


def test_a_report_of_a_damaged_log(vcnef, run, tmp_path):
    (run / "log.jsonl").write_text("[1, 2]\n" + json.dumps({"step": 1}) + "\n")
    code, _, said = vcnef("report", run, "--out", tmp_path / "r.html")
    assert code == 2
    assert "has no record of training in line 1" in said


def test_exit_codes_are_those_of_shells():
    assert Stopped("Stopped by SIGTERM.", "SIGTERM").status == 143
    assert Stopped("Stopped by SIGINT.", "SIGINT").status == 130


def test_strides_of_a_preset_are_not_dropped_in_silence(tmp_path):
    data = from_arrays(U, t=T, x=X, params={"nu": NU}, name="burgers")
    tiny = {key: value for key, value in TINY.items() if key != "model"}
    said = r"has space_stride=4, time_stride=\d for its files; fit takes data as they are, space_stride=1, time"
    with pytest.warns(UserWarning, match=said):
        library.fit(data, preset="burgers/vcnef", out=tmp_path / "a", epochs=1, patches=[], **tiny)


@pytest.mark.filterwarnings("error::UserWarning")
def test_strides_that_are_said_are_not_doubted(data, tmp_path):
    tiny = {key: value for key, value in TINY.items() if key != "model"}
    said = {"space_stride": 1, "time_stride": 1, "epochs": 1, "patches": []}
    run = library.fit(data, preset="burgers/vcnef", out=tmp_path / "b", **said, **tiny)
    assert run.surrogate.provenance["resolution"] == [16]


def test_a_builder_that_needs_values_is_not_hindered(data, monkeypatch):
    from vcnef.models import registry
    from vcnef.surrogate import Surrogate

    built = registry.MODELS["vcnef"]

    def build(ndim, channels, params, *, width: int = 16):
        assert torch.linspace(0, 1, 3).tolist()[-1] == 1.0  # impossible without memory
        return built(ndim, channels, params, width=width, heads=2, depth=1, modulations=1)

    monkeypatch.setitem(registry.MODELS, "mine", build)
    assert Surrogate.build("mine", {}, data, seed=0).name == "mine"


def test_names_of_parameters_are_texts_in_files_too(tmp_path, monkeypatch):
    import jaxtyping

    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    path = from_arrays(U, t=T, params={3: 1.0}).save(tmp_path / "three.hdf5")
    assert library.open(path).problem.parameters == ("3",)
