"""Whatever is wrong with a file is said in one sentence with the file's name."""

import json
import re
from dataclasses import replace

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vcnef.data import open as open_data

NAME = "1D_CFD_Rand_Eta0.1_Zeta0.1_periodic_Train.hdf5"
QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def contents():
    fields = {key: np.ones((4, 5, 8), dtype="f4") for key in ("density", "pressure", "Vx")}
    return fields | {"x-coordinate": (np.arange(8) + 0.5) / 8, "t-coordinate": np.arange(6) * 0.1}


def write(path, datasets, attributes=None):
    with h5py.File(path, "w") as file:
        for key, value in datasets.items():
            file[key] = value
        for key, value in (attributes or {}).items():
            file.attrs[key] = value
    return path


def refusal(path) -> str:
    """The one sentence with which a file is refused."""
    with pytest.raises(ValueError) as caught:
        open_data(path)
    message = str(caught.value)
    assert type(caught.value) is ValueError
    assert message.startswith(str(path))
    assert "\n" not in message
    assert message.endswith(".")
    return message.removeprefix(str(path))


def read_or_refused(path):
    """The data, or None if the file is refused as it should be."""
    try:
        return open_data(path)
    except ValueError:
        refusal(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Vx": None}, " has no dataset 'Vx'; it holds"),
        ({"density": None, "pressure": None, "Vx": None}, " has neither 'tensor' nor 'density' nor 'u'; it holds"),
        ({"x-coordinate": None}, " has no dataset 'x-coordinate'"),
        ({"x-coordinate": None}, "'t-coordinate']. Write such data with vcnef.from_arrays(u, t=t, x=x"),
        ({"t-coordinate": None}, " has no dataset 't-coordinate'"),
        ({"t-coordinate": np.arange(9.0)}, " has 9 times in 't-coordinate' for 5 frames; expected 5 or one more"),
        ({"t-coordinate": np.zeros(6)}, " has 't-coordinate' with values that are too few, not finite or not incr"),
        (
            {"t-coordinate": 1.7e9 + np.arange(6)},
            ": 't-coordinate' has 6 values from 1700000000.0 to 1700000005.0, too",
        ),
        ({"x-coordinate": np.zeros((8, 2))}, " has 'x-coordinate' of shape (8, 2); expected one list"),
        ({"density": np.ones((4, 8))}, " has fields of different shapes"),
        ({key: np.ones((4, 8)) for key in ("density", "pressure", "Vx")}, "expected [samples, times, 8] beside"),
        ({key: np.ones((0, 5, 8)) for key in ("density", "pressure", "Vx")}, " has fields of shape (0, 5, 8)"),
        ({"Vx": np.full((4, 5, 8), np.nan)}, " has NaN or infinity in trajectory 0"),
        ({"Vx": np.full((4, 5, 8), b"a")}, " has 'Vx', but not as an array of real numbers"),
        ({"attempts": np.array([0, 0, -1, -1], dtype=np.int8)}, " is unfinished: 2 of 4 trajectories are made. Res"),
    ],
)
def test_wrong_contents(tmp_path, change, message):
    datasets = {key: value for key, value in (contents() | change).items() if value is not None}
    assert message in refusal(write(tmp_path / NAME, datasets))


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"eta": [1.0, 2.0]}, " has an attribute 'eta' that is not one number"),
        ({"eta": "high"}, " has an attribute 'eta' that is not one number"),
        ({"problem": "{"}, " has an attribute 'problem' that is not JSON"),
        ({"problem": "[1]"}, " has an attribute 'problem' that is not a JSON object"),
        ({"problem": '{"name": "x"}'}, " has an attribute 'problem' that does not describe one"),
        ({"problem": json.dumps({"name": "x", "channels": ["density"], "domain": [[0, 1]], "odd": 1})}, "odd"),
        (
            {"problem": json.dumps({"name": "x", "channels": ["density"], "parameters": ["a"], "domain": [[0, 1]]})},
            " has no dataset 'params'",
        ),
    ],
)
def test_wrong_attributes(tmp_path, attributes, message):
    assert message in refusal(write(tmp_path / NAME, contents(), attributes))


def test_views_that_do_not_fit_name_the_file(tmp_path):
    path = write(tmp_path / NAME, contents())
    with pytest.raises(ValueError, match=f"{NAME}: 8 points do not divide by space_stride 3"):
        open_data(path, space_stride=3)
    with pytest.raises(ValueError, match=f"{NAME}: horizon is 7, but the data end at 0.4"):
        open_data(path, horizon=7.0)


def test_not_a_file_at_all(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no file .*nowhere.hdf5"):
        open_data(tmp_path / "nowhere.hdf5")
    with pytest.raises(IsADirectoryError, match=r" is a folder; expected a file\. Name those in it, e\.g\. .*hdf5\."):
        open_data(tmp_path)
    with pytest.raises(ValueError, match="There is no file to open"):
        open_data([])
    (tmp_path / "data.csv").touch()
    with pytest.raises(ValueError, match=r"data.csv has the suffix '.csv'; expected one of .hdf5, .h5, .nc"):
        open_data(tmp_path / "data.csv")


@pytest.mark.parametrize(("suffix", "loader"), [(".pt", "torch.load"), (".mat", "scipy.io.loadmat")])
def test_files_whose_arrays_may_mean_anything_are_refused_with_the_way_to_take(tmp_path, suffix, loader):
    path = tmp_path / f"burgers{suffix}"
    path.touch()
    with pytest.raises(
        ValueError,
        match=rf"with {loader}\(path\) and give that of the trajectories to vcnef.from_arrays, with its axes",
    ):
        open_data(path)


@pytest.mark.parametrize("suffix", [".hdf5", ".h5", ".nc", ".npy", ".npz"])
@given(noise=st.binary(max_size=300))
@QUICK
def test_noise_is_no_data(tmp_path, suffix, noise):
    path = tmp_path / f"noise{suffix}"
    path.write_bytes(noise)
    refusal(path)


@given(share=st.floats(0.0, 0.999))
@QUICK
def test_files_cut_short(tmp_path, share):
    path = write(tmp_path / NAME, contents())
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    assert "damaged or cut short" in refusal(path)


@pytest.mark.parametrize("suffix", [".nc", ".npz"])
@given(share=st.floats(0.0, 0.97))
@QUICK
def test_other_files_cut_short(make_data, tmp_path, suffix, share):
    path = make_data().save(tmp_path / f"data{suffix}")
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    refusal(path)


SHAPES = st.lists(st.integers(0, 3), max_size=5).map(tuple)
ARRAYS = st.one_of(
    SHAPES.map(lambda shape: np.ones(shape, dtype="f4")),
    SHAPES.map(lambda shape: np.full(shape, np.nan)),
    SHAPES.map(lambda shape: np.ones(shape, dtype=np.int8)),
    st.integers(0, 4).map(lambda n: np.arange(n, dtype="f8")),
    st.just(np.array([b"text"])),
    st.just(np.array([True, False])),
    st.text(st.characters(exclude_characters="\0"), max_size=3),  # which h5py itself does not write
)
KEYS = st.sampled_from(
    ["tensor", "density", "Vx", "x-coordinate", "y-coordinate", "t-coordinate", "params", "attempts"]
)


@given(
    datasets=st.dictionaries(KEYS, ARRAYS),
    odd=st.dictionaries(st.sampled_from(["Nu", "beta", "eta", "problem"]), ARRAYS),
)
@QUICK
def test_any_mixture_of_datasets_is_read_or_refused_in_a_sentence(tmp_path, datasets, odd):
    path = write(tmp_path / "mixture.hdf5", datasets, odd)
    data = read_or_refused(path)
    assert data is None or np.isfinite(data.u.numpy()).all()


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
@given(array=ARRAYS.map(np.asarray))
@QUICK
def test_any_array_is_read_or_refused_in_a_sentence(tmp_path, suffix, array):
    path = tmp_path / f"array{suffix}"
    {".npy": lambda: np.save(path, array), ".npz": lambda: np.savez(path, u=array)}[suffix]()
    data = read_or_refused(path)
    assert data is None or data.u.shape == array.shape


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("params", (4, 1), " has 'params' of shape (4, 1) without names; save each by its own, e.g. nu=params[:, 0]."),
        ("time", (4,), " has an array 'time' of shape (4,), which is none of u, t, x, "),
        ("time", (4,), "Did you mean 't'? Rename it, or leave it out."),
        ("grid", (8, 1), "Did you mean 'x'? Rename it"),
        ("paramz", (4, 2), "Did you mean 'params'"),
        ("forcing", (4, 5, 8), " and no parameter, one number, 4 or (4, 5). Rename it, or leave it out."),
    ],
)
def test_arrays_of_an_npz_that_are_not_understood(tmp_path, name, shape, message):
    np.savez(tmp_path / "a.npz", u=np.ones((4, 5, 8, 1)), **{name: np.ones(shape)})
    assert message in refusal(tmp_path / "a.npz")


def test_parameters_without_names_in_the_layout_of_the_benchmark(tmp_path):
    path = write(tmp_path / NAME, contents() | {"params": np.ones((4, 2))})
    assert " has 'params', but no attribute 'problem' that names them" in refusal(path)


def test_npz_without_u_and_netcdf_without_fields(tmp_path):
    import xarray as xr

    np.savez(tmp_path / "a.npz", v=np.ones(3))
    assert " has no array 'u'; it holds ['v']" in refusal(tmp_path / "a.npz")
    xr.Dataset({"a": ("b", np.ones(3))}).to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    assert " has no variable over t and x or point; its variables are ['a']" in refusal(tmp_path / "a.nc")


@pytest.mark.parametrize("problem", ["burgers", 1.0, '{"channels": ["u"]}'])
def test_an_npz_whose_problem_is_none(tmp_path, problem):
    np.savez(tmp_path / "a.npz", u=np.ones((4, 5, 8, 1)), problem=problem)
    assert " has an array 'problem' that does not describe one as `save` does: " in refusal(tmp_path / "a.npz")


@pytest.mark.parametrize("suffix", [".npy", ".hdf5"])
@pytest.mark.parametrize("samples", [3, 200])
def test_files_with_fields_that_single_precision_would_round_to_steps(tmp_path, suffix, samples):
    path = tmp_path / f"sound{suffix}"
    u = 101325.0 + np.random.default_rng(0).random((samples, 3, 8))

    def write(fields):
        if suffix == ".npy":
            np.save(path, fields[..., None])
        else:
            with h5py.File(path, "w") as file:
                arrays = {"tensor": fields, "x-coordinate": np.arange(8.0), "t-coordinate": np.arange(3.0)}
                for key, array in arrays.items():
                    file[key] = array

    write(u)
    assert re.search(r"Channel 'u' is between 101325.\d* and .*: single precision, .* Subtract its mean", refusal(path))
    for fine in (u - 101325.0, u.astype("f4")):
        write(fine)
        assert len(open_data(path)) == samples


def test_a_netcdf_file_of_the_classic_format(tmp_path):
    (tmp_path / "old.nc").write_bytes(b"CDF\x01" + bytes(28))
    expected = " has the classic format of NetCDF 3; expected NetCDF 4. Convert it with nccopy -k nc4."
    assert refusal(tmp_path / "old.nc") == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x-coordinate": (np.arange(8) + 0.5) / 4}, "their points differ, by up to 0.938"),
        ({"t-coordinate": np.arange(6) * 0.2}, "their times differ, by up to 0.4"),
        ({"t-coordinate": np.arange(5) * 0.1}, None),
    ],
)
def test_files_that_do_not_go_together(tmp_path, change, message):
    first = write(tmp_path / NAME, contents())
    second = write(tmp_path / NAME.replace("0.1", "0.01"), contents() | change)
    if message is None:
        assert len(open_data([first, second])) == 8
        return
    with pytest.raises(ValueError, match=f"{second.name} and .*{NAME} cannot be opened together: {message}"):
        open_data([first, second])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"periodic": False}, "only one of them is periodic"),
        ({"domain": ((0.0, 1.0625),)}, r"their domains are \(\(0.0, 1.0625\),\) and \(\(0.0, 1.0\),\)"),
        ({"name": "kdv"}, "they are of kdv and burgers"),
        ({"units": {"u": "km/h", "t": "s"}}, "u is in km/h and m/s. Multiply it by 0.277"),
        ({"units": {"t": "s since 2001-01-01"}}, None),
        ({"name": "second"}, None),  # as the file is called
    ],
)
def test_files_of_other_problems(tmp_path, make_data, change, message):
    data = make_data("burgers")
    data = replace(data, problem=replace(data.problem, units={"u": "m/s", "t": "s since 2000-01-01"}))
    first = data.save(tmp_path / "first.hdf5")
    second = replace(data, problem=replace(data.problem, **change)).save(tmp_path / "second.hdf5")
    if message is None:
        assert len(open_data([first, second])) == 40
        return
    with pytest.raises(ValueError, match=f"second.hdf5 and .*first.hdf5 cannot be opened together: {message}"):
        open_data([first, second])


def test_files_of_other_channels_sizes_or_parameters(tmp_path, make_data):
    burgers = make_data("burgers").save(tmp_path / "b.hdf5")
    others = {
        "gas": (make_data("cns1d"), r"their channels are \['density', 'pressure', 'vx'\] and \['u'\]"),
        "fine": (make_data("burgers", points=16), "they have 16 and 8 points"),
        "long": (make_data("burgers", frames=7), "they have 7 and 6 times"),
        "drift": (make_data("advection"), r"their parameters are \['beta'\] and \['nu'\]"),
    }
    for name, (data, message) in others.items():
        with pytest.raises(ValueError, match=message):
            open_data([burgers, data.save(tmp_path / f"{name}.hdf5")])
