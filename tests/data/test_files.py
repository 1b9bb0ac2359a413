"""The benchmark's layout as others write it and as we do; other formats; several files; streaming."""

from dataclasses import replace

import h5py
import numpy as np
import pytest
import torch
import xarray as xr

from vcnef.data import StoredTrajectories, Trajectories, from_arrays, generate
from vcnef.data import open as open_data
from vcnef.data.save import SAVERS

ROOT = np.random.default_rng(0)


def write_benchmark(path, *, samples=10, frames=11, points=(16,), scalar=True, attributes=None, leading=False):
    """A file as the benchmark has it: no description of ours, one time too many."""
    keys = ["tensor"] if scalar else ["density", "pressure", "Vx", "Vy", "Vz"][: 2 + len(points)]
    fields = {key: ROOT.random((samples, frames, *points)).astype("f4") for key in keys}
    with h5py.File(path, "w") as file:
        for key, field in fields.items():
            file[key] = field[None] if leading else field
        for axis, n in zip("xyz", points, strict=False):
            file[f"{axis}-coordinate"] = ((np.arange(n) + 0.5) / n).astype("f4")
        file["t-coordinate"] = (0.1 * np.arange(frames + 1)).astype("f4")
        for name, value in (attributes or {}).items():
            file.attrs[name] = value
    return np.stack([fields[key] for key in keys], axis=-1)


def test_a_scalar_file(tmp_path):
    u = write_benchmark(tmp_path / "1D_Burgers_Sols_Nu0.001.hdf5")
    data = open_data(tmp_path / "1D_Burgers_Sols_Nu0.001.hdf5")
    assert np.array_equal(data.u.numpy(), u)
    assert data.t.tolist() == pytest.approx([0.1 * i for i in range(11)])
    assert (data.problem.name, data.problem.channels, data.problem.parameters) == ("burgers", ("u",), ("nu",))
    assert data.problem.domain == ((0.0, 1.0),)
    assert data.problem.ranges == {"nu": (0.001, 0.001)}


@pytest.mark.parametrize("points", [(8,), (8, 4), (4, 8, 4)])
def test_gas_files_keep_the_order_of_channels_and_the_mach_number_beside_the_parameters(tmp_path, points):
    ndim = len(points)
    mach = "" if ndim == 1 else "_M0.1"
    path = tmp_path / f"{ndim}D_CFD_Rand{mach}_Eta1e-08_Zeta0.1_periodic_Train.hdf5"
    u = write_benchmark(path, points=points, scalar=False)
    data = open_data(path)
    assert data.problem.name == f"cns{ndim}d"
    assert data.problem.channels == ("density", "pressure", "vx", "vy", "vz")[: 2 + ndim]
    assert data.problem.parameters == ("eta", "zeta")
    assert data.params[0].tolist() == pytest.approx([1e-8, 0.1])
    assert data.attributes.get("mach") == (None if ndim == 1 else 0.1)
    assert np.array_equal(data.u.numpy(), u)


def test_strides_and_horizon_are_applied_in_the_file(tmp_path):
    path = tmp_path / "2D_CFD_Rand_M0.1_Eta0.1_Zeta0.1_periodic_128_Train.hdf5"
    u = write_benchmark(path, points=(8, 16), scalar=False)
    data = open_data(path, space_stride=4, time_stride=2, horizon=0.6)
    assert np.array_equal(data.u.numpy(), u[:, 0:7:2, ::4, ::4])
    assert data.grid.shape == (2, 4, 2)
    assert data.problem.domain == ((0.0, 1.0), (0.0, 1.0))


def test_an_old_leading_axis_is_dropped(tmp_path):
    u = write_benchmark(tmp_path / "1D_Advection_Sols_beta0.1.hdf5", leading=True)
    assert np.array_equal(open_data(tmp_path / "1D_Advection_Sols_beta0.1.hdf5").u.numpy(), u)


def test_attributes_name_the_parameters_of_any_file(tmp_path):
    write_benchmark(tmp_path / "a.hdf5", attributes={"Nu": 0.004})
    write_benchmark(tmp_path / "b.h5", scalar=False, points=(4, 4), attributes={"eta": 0.1, "zeta": 0.2, "M": 1.0})
    assert open_data(tmp_path / "a.hdf5").problem.ranges == {"nu": (0.004, 0.004)}
    assert open_data(tmp_path / "a.hdf5").problem.name == "burgers"
    gas = open_data(tmp_path / "b.h5")
    assert (gas.problem.ranges, gas.attributes["mach"]) == ({"eta": (0.1, 0.1), "zeta": (0.2, 0.2)}, 1.0)


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".hdf5", ".nc"])
def test_the_name_of_a_file_makes_no_equation(tmp_path, suffix):
    path, u = tmp_path / f"burgers{suffix}", ROOT.random((10, 5, 8, 1), dtype=np.float32)
    if suffix == ".npz":
        np.savez(path, u=u, nu=ROOT.random(10))
    elif suffix == ".npy":
        np.save(path, u)
    elif suffix == ".nc":
        xr.Dataset({"u": (("sample", "t", "x"), u[..., 0])}).to_netcdf(path, engine="h5netcdf")
    else:
        write_benchmark(path)
    assert open_data(path).problem.name == "custom"
    assert open_data(path, equation="burgers").problem.name == "burgers"
    assert open_data([path, path], equation="burgers", stream=True).problem.name == "burgers"


def test_an_equation_that_is_named_has_to_fit(tmp_path):
    np.save(tmp_path / "mine.npy", ROOT.random((4, 5, 8, 2), dtype=np.float32))
    with pytest.raises(ValueError, match=r"'burgers' is 1D with the channels u; the data are 1D with u1, u2. Name the"):
        open_data(tmp_path / "mine.npy", equation="burgers")
    with pytest.raises(ValueError, match=r"There is no equation 'burger'. Did you mean 'burgers'"):
        open_data(tmp_path / "mine.npy", equation="burger")


def test_an_unknown_file_opens_with_parameters_that_are_passed(tmp_path):
    write_benchmark(tmp_path / "mine.hdf5")
    assert open_data(tmp_path / "mine.hdf5", params={"kappa": 2}).problem.ranges == {"kappa": (2.0, 2.0)}
    bare = open_data(tmp_path / "mine.hdf5")
    assert (bare.problem.name, bare.params.shape) == ("mine", (10, 0))


@pytest.mark.parametrize(("name", "scalar"), [("1D_Burgers_Sols_Nu0.001 (1)", True), ("ReacDiff_Nu0.5_Rho1.0", True),
                                              ("gas", False)])  # fmt: skip
def test_parameters_that_must_be_there_are_asked_for(tmp_path, name, scalar):
    path = tmp_path / f"{name}.hdf5"
    write_benchmark(path, scalar=scalar)
    with pytest.raises(ValueError, match=r"names its parameters neither in its attributes .* give them, e.g. --param "):
        open_data(path)
    assert open_data(path, params={"eta": 1}).problem.ranges == {"eta": (1.0, 1.0)}


@pytest.mark.parametrize("suffix", [".hdf5", ".nc", ".npz"])
def test_given_parameters_join_those_of_the_file_and_replace_them_by_name(make_data, tmp_path, suffix):
    path = make_data("cns1d", value=0.5).save(tmp_path / f"gas{suffix}")
    data = open_data(path, params={"g": 9.81, "zeta": 2})
    assert data.problem.ranges == {"eta": (0.5, 0.5), "zeta": (2.0, 2.0), "g": (9.81, 9.81)}
    assert data.params[0].tolist() == pytest.approx([0.5, 2.0, 9.81])


def test_given_parameters_join_those_of_a_name_of_the_benchmark(tmp_path):
    path = tmp_path / "1D_Burgers_Sols_Nu0.001.hdf5"
    write_benchmark(path)
    assert open_data(path, params={"g": 2}).problem.parameters == ("nu", "g")


def test_arrays_of_one_number_per_sample_are_parameters_by_their_name(tmp_path):
    u, c = ROOT.random((6, 5, 8, 1)), ROOT.random(6)
    np.savez(tmp_path / "own.npz", u=u, t=np.arange(5.0), x=np.arange(8.0), c=c, g=9.81)
    data = open_data(tmp_path / "own.npz")
    assert data.problem.parameters == ("c", "g")
    assert data.params[:, 0].tolist() == pytest.approx(c.tolist())
    assert data.problem.ranges["g"] == (9.81, 9.81)


def test_so_are_datasets_beside_the_fields_of_the_benchmark(tmp_path):
    path, nu = tmp_path / "own.hdf5", ROOT.random(10)
    write_benchmark(path)
    with h5py.File(path, "a") as file:
        file["nu"], file["g"], file["mask"] = nu, 9.81, np.ones(16)
    data = open_data(path)
    assert dict(zip(data.problem.parameters, data.params[0].tolist(), strict=True)) == pytest.approx(
        {"g": 9.81, "nu": nu[0]}
    )
    assert data.problem.name == "own"  # whose nu is not that of Burgers' equation
    assert open_data(path, params={"g": 1.6}).problem.ranges["g"] == pytest.approx((1.6, 1.6))


@pytest.mark.parametrize("suffix", [".hdf5", ".npz"])
def test_axes_of_length_one_make_a_parameter_no_other_thing(tmp_path, suffix):
    path, nu = tmp_path / f"own{suffix}", ROOT.random((10, 1))
    if suffix == ".npz":
        np.savez(path, u=ROOT.random((10, 5, 8, 1)), nu=nu, g=np.array([9.81]), h=np.ones((1, 1)))
    else:
        write_benchmark(path)
        with h5py.File(path, "a") as file:
            file["nu"], file["g"], file["h"], file["none"] = nu, [9.81], np.ones((1, 1)), h5py.Empty("f4")
    data = open_data(path)
    table = dict(zip(data.problem.parameters, data.params.T.tolist(), strict=True))
    assert table == {"nu": pytest.approx(nu[:, 0].tolist()), "g": pytest.approx([9.81] * 10), "h": [1.0] * 10}


def test_a_gas_may_have_a_viscosity_for_each_sample(tmp_path):
    path, eta = tmp_path / "own.hdf5", ROOT.random(10)
    write_benchmark(path, scalar=False)
    with h5py.File(path, "a") as file:
        file["eta"] = file["zeta"] = eta
    data = open_data(path)
    assert data.problem.parameters == ("eta", "zeta")
    assert data.params[:, 1].tolist() == pytest.approx(eta.tolist())


def test_arrays_of_numpy_say_what_from_arrays_is_told(tmp_path):
    u, (x, y) = ROOT.random((6, 5, 8, 4, 2)), (np.arange(8.0), np.arange(4.0) / 2)
    given = {"channels": ["h", "v"], "periodic": False}
    np.savez(tmp_path / "own.npz", u=u, x=x, y=y, **given)
    data, same = open_data(tmp_path / "own.npz"), from_arrays(u, x=(x, y), name="own", **given)
    assert data.problem == same.problem
    assert torch.equal(data.grid, same.grid)
    np.savez(tmp_path / "own.npz", u=u, y=y)
    with pytest.raises(ValueError, match=r"own.npz has the axes y; expected x. Rename them"):
        open_data(tmp_path / "own.npz")


def test_a_dataset_may_say_that_its_domain_does_not_close(tmp_path):
    dataset = from_arrays(ROOT.random((6, 5, 8, 1))).to_xarray()
    dataset.attrs = {"periodic": 0}
    dataset.to_netcdf(tmp_path / "own.nc", engine="h5netcdf")
    assert not open_data(tmp_path / "own.nc").problem.periodic
    assert not from_arrays(dataset).problem.periodic
    with pytest.raises(
        ValueError, match=r"The note 'periodic' is 'False'; expected 1 or 0. Say it with periodic=... instead"
    ):
        from_arrays(dataset.assign_attrs(periodic="False"))
    assert not from_arrays(dataset.assign_attrs(domain="North Sea")).problem.periodic
    flat = from_arrays(ROOT.random((6, 5, 8, 4, 1)), periodic=False).to_xarray()
    assert not from_arrays(flat.isel(y=0)).problem.periodic


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".nc", ".hdf5"])
def test_it_may_be_said_as_a_file_is_opened(tmp_path, suffix):
    path = tmp_path / f"own{suffix}"
    u = ROOT.random((6, 5, 8, 1))
    np.save(path, u) if suffix == ".npy" else from_arrays(u).save(path)
    assert open_data(path).problem.periodic
    # Only where the ends do not meet may points be left over.
    assert open_data(path, space_stride=3, periodic=False).resolution == (3,)
    assert not open_data(path, periodic=np.False_, stream=True).problem.periodic
    with pytest.raises(ValueError, match="periodic is 0; expected True or False, for all axes, one for each"):
        open_data(path, periodic=0)


def test_an_hdf5_file_of_others_may_note_it(tmp_path):
    path = from_arrays(ROOT.random((6, 5, 8, 1))).save(tmp_path / "own.hdf5")
    with h5py.File(path, "r+") as file:
        del file.attrs["problem"]
        file.attrs["periodic"] = 0
    assert not open_data(path).problem.periodic
    assert open_data(path, periodic=True).problem.periodic
    with h5py.File(path, "r+") as file:
        file.attrs["periodic"] = "no"
    with pytest.raises(ValueError, match=r"own.hdf5: The note 'periodic' is 'no'; expected 1 or 0"):
        open_data(path)


def test_a_name_that_contradicts_the_attributes_is_not_believed(tmp_path):
    path = tmp_path / "1D_Burgers_Sols_Nu0.001.hdf5"
    write_benchmark(path, attributes={"Nu": 0.1})
    with pytest.raises(ValueError, match=r"has nu = 0.1 in its attributes but 0.001 in its name; pass the right one"):
        open_data(path)
    assert open_data(path, params={"nu": 0.1}).problem.ranges == {"nu": (0.1, 0.1)}


def test_several_files_are_one_data_set_with_the_parameter_as_a_column(tmp_path):
    paths = [tmp_path / f"1D_Burgers_Sols_Nu{nu}.hdf5" for nu in (0.001, 0.1)]
    u = [write_benchmark(path, samples=samples) for path, samples in zip(paths, (20, 10), strict=True)]
    data = open_data(paths)
    assert data.parts == (20, 10)
    assert np.array_equal(data.u.numpy(), np.concatenate(u))
    assert data.problem.ranges == {"nu": (0.001, 0.1)}
    test = data.split("test")
    assert np.array_equal(test.u.numpy(), np.concatenate([u[0][:2], u[1][:1]]))
    assert test.params[:, 0].tolist() == pytest.approx([0.001, 0.001, 0.1])


def test_two_mach_numbers_are_both_kept(tmp_path):
    paths = [tmp_path / f"2D_CFD_Rand_M{mach}_Eta0.1_Zeta0.1_periodic_128_Train.hdf5" for mach in (0.1, 1.0)]
    for path in paths:
        write_benchmark(path, points=(4, 4), scalar=False)
    assert open_data(paths).attributes == {"mach": (0.1, 1.0), "initial": "Rand"}


def test_streamed_rows_are_those_of_the_file(tmp_path):
    paths = [tmp_path / f"1D_Burgers_Sols_Nu{nu}.hdf5" for nu in (0.001, 0.1)]
    u = np.concatenate([write_benchmark(path) for path in paths])
    stored = open_data(paths, space_stride=2, stream=True)
    assert isinstance(stored, StoredTrajectories)
    rows = torch.tensor([19, 3, 4, 5, 3, 10])
    assert np.array_equal(stored.read(rows).numpy(), u[rows.numpy()][:, :, ::2])
    train = stored.split("train")
    assert np.array_equal(train.read(torch.tensor([0, 9])).numpy(), u[[2, 13]][:, :, ::2])
    assert torch.equal(train.load().u, open_data(paths, space_stride=2).split("train").u)
    assert "in 2 files" in repr(stored)
    with pytest.raises(ValueError, match="already the train split"):
        train.split("test")


def test_data_larger_than_memory_stay_in_their_file(tmp_path, monkeypatch):
    write_benchmark(tmp_path / "1D_Burgers_Sols_Nu0.1.hdf5")
    monkeypatch.setattr("vcnef.data.opening.machine_memory", lambda: 1000.0)
    assert isinstance(open_data(tmp_path / "1D_Burgers_Sols_Nu0.1.hdf5"), StoredTrajectories)


@pytest.mark.parametrize(("limit", "kind"), [("1000\n", StoredTrajectories), ("max\n", Trajectories)])
def test_the_memory_of_a_container_is_its_own(tmp_path, monkeypatch, limit, kind):
    write_benchmark(tmp_path / "1D_Burgers_Sols_Nu0.1.hdf5")
    (tmp_path / "memory.max").write_text(limit)
    monkeypatch.setattr("vcnef.data.machine.CONTAINER_LIMITS", (tmp_path / "memory.max", tmp_path / "none"))
    assert isinstance(open_data(tmp_path / "1D_Burgers_Sols_Nu0.1.hdf5"), kind)


@pytest.mark.parametrize("suffix", [".hdf5", ".h5", ".nc", ".npz"])
@pytest.mark.parametrize("name", ["burgers", "cns1d", "cns2d", "cns3d"])
def test_saved_data_come_back_without_loss(make_data, tmp_path, name, suffix):
    data = make_data(name, samples=5, points=4)
    data.params[:] = torch.rand_like(data.params)
    again = open_data(data.save(tmp_path / f"some{suffix}"))
    for part in ("u", "t", "grid", "params"):
        assert torch.equal(getattr(again, part), getattr(data, part)), part
    expected = data.problem.to_dict() | {"ranges": again.problem.to_dict()["ranges"]}
    assert again.problem.to_dict() == expected


@pytest.mark.parametrize("suffix", [".hdf5", ".nc", ".npz"])
def test_data_that_cannot_be_saved_leave_what_was_there_before(make_data, tmp_path, monkeypatch, suffix):
    def fill_the_disk(data, path):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    data, path = make_data(), tmp_path / f"data{suffix}"
    data.save(path)
    monkeypatch.setitem(SAVERS, suffix, fill_the_disk)
    with pytest.raises(OSError, match=rf"Could not write {path}: No space left on device\. What was saved"):
        data.view(space_stride=2).save(path)
    assert torch.equal(open_data(path).u, data.u)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", [".hdf5", ".nc", ".npz"])
def test_a_place_that_cannot_be_written_is_named(make_data, tmp_path, suffix):
    (tmp_path / "notes").write_text("mine")
    path = tmp_path / "notes" / f"data{suffix}"
    with pytest.raises(OSError, match=rf"Could not write {path}: (Not a directory|File exists)\. What was saved"):
        make_data().save(path)


@pytest.mark.parametrize("suffix", [".hdf5", ".nc", ".npz"])
def test_the_test_split_of_saved_data_is_that_of_the_data(make_data, tmp_path, suffix):
    data = replace(make_data(samples=60), parts=(20, 30, 10), attributes={"generation": "2022", "mach": (0.1, 1.0)})
    again = open_data(data.save(tmp_path / f"all{suffix}"))
    assert (again.parts, again.subset) == (data.parts, None)
    assert again.attributes == {"generation": "2022", "mach": [0.1, 1.0]}
    assert torch.equal(again.split("test").u, data.split("test").u)
    stored = open_data([tmp_path / f"all{suffix}"] * 2, stream=True)
    assert stored.parts == (20, 30, 10) * 2


@pytest.mark.parametrize("suffix", [".hdf5", ".nc", ".npz"])
def test_a_saved_split_stays_one(make_data, tmp_path, suffix):
    train, test = (make_data().split(name).save(tmp_path / f"{name}{suffix}") for name in ("train", "test"))
    assert open_data(train).subset == "train"
    with pytest.raises(ValueError, match="already the train split"):
        open_data(train).split("test")
    with pytest.raises(ValueError, match=r"cannot be opened together: they are the test split and the train split\."):
        open_data([train, test])
    whole = make_data().save(tmp_path / f"whole{suffix}")
    with pytest.raises(ValueError, match=r"they are no split and the train split\."):
        open_data([train, whole])


def test_the_recipes_of_several_files_do_not_spoil_the_one_they_are_saved_to(make_data, tmp_path):
    recipes = ({"seed": 1}, {"seed": 2})
    several = replace(make_data(), attributes={"seed": 1, "recipe": recipes})
    assert open_data(several.save(tmp_path / "several.hdf5")).attributes == {"seed": 1}
    one = replace(several, attributes={"recipe": recipes[0]})
    assert open_data(one.save(tmp_path / "one.hdf5")).attributes == {"recipe": {"seed": 1}}


def test_a_note_that_does_not_fit_is_not_believed(make_data, tmp_path):
    import xarray as xr

    whole = replace(make_data(), parts=(10, 10)).save(tmp_path / "whole.nc")
    with xr.open_dataset(whole, engine="h5netcdf") as dataset:
        dataset.isel(sample=slice(7)).to_netcdf(tmp_path / "some.nc", engine="h5netcdf")
    with pytest.raises(ValueError, match=r"some.nc .* the note 'vcnef' counts 10 \+ 10 trajectories, but there are 7"):
        open_data(tmp_path / "some.nc")


def test_a_bare_npy_file(tmp_path):
    u = ROOT.random((6, 5, 8, 1))
    np.save(tmp_path / "u.npy", u)
    data = open_data(tmp_path / "u.npy", space_stride=2, params={"nu": 0.1})
    assert np.array_equal(data.u.numpy(), u[:, :, ::2].astype("f4"))
    assert data.problem.ranges == {"nu": (0.1, 0.1)}
    stored = open_data(tmp_path / "u.npy", stream=True)
    assert np.array_equal(stored.read(torch.tensor([4, 1])).numpy(), u[[4, 1]].astype("f4"))


def test_a_netcdf_file_from_elsewhere(tmp_path):
    u = ROOT.random((3, 4, 8))
    xr.Dataset({"h": (("time", "x", "batch"), u)}, coords={"x": np.arange(4.0)}).to_netcdf(
        tmp_path / "shallow.nc", engine="h5netcdf"
    )
    data = open_data(tmp_path / "shallow.nc")
    assert data.problem.channels == ("h",)
    assert np.array_equal(data.u[..., 0].numpy(), u.transpose(2, 0, 1).astype("f4"))


@pytest.mark.parametrize("name", ["points.npz", "points.nc"])
def test_scattered_points_are_saved(tmp_path, name):
    known = {"t": [0.0, 0.5, 1.5, 2.0], "params": {"nu": [1.0, 2.0, 3.0]}, "channels": ("a", "b"), "periodic": False}
    data = from_arrays(ROOT.random((3, 4, 5, 2)), x=ROOT.random((5, 2)), **known)
    again = open_data(data.save(tmp_path / name))
    assert again.problem == data.problem
    for part in ("u", "t", "grid", "params"):
        assert torch.equal(getattr(again, part), getattr(data, part))


def test_hdf5_files_hold_no_scattered_points(tmp_path):
    data = from_arrays(np.ones((3, 4, 5, 1)), x=ROOT.random((5, 2)))
    with pytest.raises(ValueError, match=r"cannot hold scattered points; save them as .npz or .nc"):
        data.save(tmp_path / "points.hdf5")


def test_a_mesh_from_elsewhere(tmp_path):
    """Whose coordinates are variables, in any order of dimensions."""
    u, points = ROOT.random((7, 4, 3)), ROOT.random((2, 7))
    places = {name: (("point",), line) for name, line in zip("xy", points, strict=True)}
    xr.Dataset({"h": (("point", "time", "batch"), u), **places}).to_netcdf(tmp_path / "mesh.nc", engine="h5netcdf")
    data = open_data(tmp_path / "mesh.nc")
    assert np.array_equal(data.grid.numpy(), points.T.astype("f4"))
    assert np.array_equal(data.u[..., 0].numpy(), u.transpose(2, 1, 0).astype("f4"))


def test_other_loaders_find_the_benchmark_layout_in_our_files(make_data, tmp_path):
    scalar, gas = make_data("advection").save(tmp_path / "a.hdf5"), make_data("cns2d").save(tmp_path / "g.hdf5")
    with h5py.File(scalar) as file:
        assert file["tensor"].shape == (20, 6, 8)
        assert file["tensor"].dtype == np.float32
        assert file["tensor"].chunks is None
        assert len(file["t-coordinate"]) == 7
        assert np.diff(file["t-coordinate"]) == pytest.approx(0.2)
        assert file.attrs["beta"] == 0.01
    with h5py.File(gas) as file:
        assert {"density", "pressure", "Vx", "Vy", "x-coordinate", "y-coordinate"} <= set(file)
        assert (file.attrs["eta"], file.attrs["zeta"]) == (0.01, 0.01)


def test_one_value_for_all_files_or_one_for_each(tmp_path):
    paths = [tmp_path / "a.hdf5", tmp_path / "b.hdf5"]
    for path in paths:
        write_benchmark(path)
    assert open_data(paths, params={"nu": 1}).problem.ranges == {"nu": (1.0, 1.0)}
    assert open_data(paths, params={"nu": [1, 2]}).problem.ranges == {"nu": (1.0, 2.0)}
    assert open_data(paths, params={"nu": np.array([1, 2])}).problem.ranges == {"nu": (1.0, 2.0)}


@pytest.mark.parametrize(
    ("value", "got"),
    [
        ([1, 2, 3], "has 3 values for 2 files"),
        (np.ones(10), "has 10 values for 2 files"),
        ("q", "is 'q'"),
        ([1, [2, 3]], r"is \[1, \[2, 3\]\]"),
    ],
)
def test_parameters_that_are_not_one_number_for_each_file(tmp_path, value, got):
    paths = [tmp_path / "a.hdf5", tmp_path / "b.hdf5"]
    for path in paths:
        write_benchmark(path)
    sentence = rf"params\['nu'\] {got}; expected one number for all files, or one for each. Values of single samples go"
    with pytest.raises(ValueError, match=sentence):
        open_data(paths, params={"nu": value})
    with pytest.raises(ValueError, match="has 10 values for 1 file; expected one number"):
        open_data(paths[0], params={"nu": np.ones(10)})


UNITS = {"t": "hours since 2000-01-01", "x": "m", "density": "kg/m3", "nu": "m2/s"}


@pytest.fixture
def with_units():
    """As simulations write them: two fields, of which one has no unit, and times counted from a day."""
    rng = np.random.default_rng(0)
    dims, shape = ("sample", "time", "x"), (3, 5, 8)
    fields = {"density": (dims, rng.random(shape), {"units": "kg/m3"}), "share": (dims, rng.random(shape))}
    fields["nu"] = (("sample",), np.array([0.1, 0.2, 0.3]), {"units": "m2/s"})
    hours = ("time", np.arange(5.0), {"units": UNITS["t"]})
    return xr.Dataset(fields, {"time": hours, "x": ("x", np.arange(8) + 0.5, {"units": "m"})})


@pytest.mark.parametrize("suffix", [".nc", ".hdf5", ".npz"])
def test_units_of_a_netcdf_file_are_read_and_kept(with_units, suffix, tmp_path):
    with_units.to_netcdf(tmp_path / "theirs.nc", engine="h5netcdf")
    data = open_data(tmp_path / "theirs.nc")
    assert data.problem.units == UNITS
    assert data.t.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert open_data(data.save(tmp_path / f"ours{suffix}")).problem.units == UNITS


def test_units_of_labelled_arrays(with_units):
    assert from_arrays(with_units).problem.units == UNITS
    alone = with_units["density"].assign_coords(nu=with_units["nu"])
    assert from_arrays(alone).problem.units == UNITS
    assert from_arrays(alone.rename(nu="c")).problem.units["c"] == UNITS["nu"]
    both = with_units[["density", "share"]].to_dataarray("channel").assign_coords(units=("channel", ["kg/m3", ""]))
    assert from_arrays(both).problem.units == {"t": UNITS["t"], "x": "m", "density": "kg/m3"}


@pytest.mark.parametrize("unit", [1e-8, 1.0, 1e6])
@pytest.mark.parametrize("longer", ["t", "x"])
def test_other_times_or_points_are_other_ones_in_any_unit(unit, longer, tmp_path):
    u = ROOT.random((4, 5, 8, 1))
    lines = {"t": unit * np.arange(5.0), "x": unit * np.arange(8.0)}
    for name, given in {"a": lines, "b": lines, "c": lines | {longer: 2 * lines[longer]}}.items():
        from_arrays(u, **given).save(tmp_path / f"{name}.npz")
    assert len(open_data([tmp_path / "a.npz", tmp_path / "b.npz"])) == 8
    with pytest.raises(ValueError, match="differ"):
        open_data([tmp_path / "a.npz", tmp_path / "c.npz"])


@pytest.mark.parametrize("name", ["M", "recipe"])
def test_parameters_of_any_name_come_back(tmp_path, name):
    """Though a file says other things under it; M is a Mach number."""
    data = from_arrays(np.ones((3, 4, 8, 1)), params={name: 0.5})
    again = open_data(data.save(tmp_path / "own.hdf5"))
    assert (again.problem, again.attributes) == (data.problem, data.attributes)


def test_channels_of_any_name_come_back(tmp_path):
    u = ROOT.random((4, 5, 8, 2)).astype("f4")
    data = from_arrays(u, channels=["tensor", "v"])
    assert np.array_equal(open_data(data.save(tmp_path / "s.hdf5")).u.numpy(), u)
    for taken in ("params", "x-coordinate", "a/b"):
        with pytest.raises(ValueError, match=f"cannot hold a channel of the name '{taken}'"):
            from_arrays(u, channels=[taken, "v"]).save(tmp_path / "taken.hdf5")
        assert not (tmp_path / "taken.hdf5").exists()


def test_one_time_alone(tmp_path):
    data = from_arrays(ROOT.random((4, 1, 8, 1)))
    for suffix in (".nc", ".npz"):
        assert torch.equal(open_data(data.save(tmp_path / f"one{suffix}")).u, data.u)
    with pytest.raises(ValueError, match=r"An HDF5 file cannot hold one time alone; .* Save as .npz"):
        data.save(tmp_path / "one.hdf5")


@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize("stream", [False, True])
def test_files_of_different_lengths_with_the_same_initial_states_leak_nothing(stream, in_order, tmp_path):
    u0 = ROOT.random((100, 1, 8, 1)).astype("f4")
    for name, samples in {"long": 100, "short": 20, "tiny": 8}.items():
        later = ROOT.random((samples, 4, 8, 1)).astype("f4")
        data = from_arrays(np.concatenate([u0[:samples], later], axis=1))
        replace(data, split_in_order=in_order).save(tmp_path / f"{name}.npz")
    data = open_data([tmp_path / "long.npz", tmp_path / "short.npz"], stream=stream)
    sizes, states = {}, {}
    for split in ("train", "valid", "test"):
        rows = data.split(split)
        sizes[split] = len(rows)
        states[split] = {row.tobytes() for row in rows.read(torch.arange(len(rows)))[:, 0].numpy()}
    expected = {"train": 85 + 5, "valid": 5 + 5, "test": 10 + 10}
    # Where they are shuffled, chance says how many of the 20 are among the test states of the 100.
    assert (sizes == expected) == in_order
    assert sum(sizes.values()) == 120
    assert not states["train"] & states["test"]
    assert not states["train"] & states["valid"]
    assert not states["valid"] & states["test"]
    if in_order:
        tiny = open_data([tmp_path / "long.npz", tmp_path / "tiny.npz"], stream=stream)
        with pytest.raises(ValueError, match="A file of 8 trajectories begins with the same initial states as one of"):
            tiny.split("train")


def test_files_of_different_lengths_that_begin_at_rest_are_split_by_themselves(tmp_path):
    for name, samples in {"long": 100, "short": 20}.items():
        u = ROOT.random((samples, 5, 8, 1))
        u[:, 0] = 0.0
        from_arrays(u).save(tmp_path / f"{name}.npz")
    data = open_data([tmp_path / "long.npz", tmp_path / "short.npz"])
    assert len(data.split("test")) == 10 + 2


@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize("suffix", [".hdf5", ".nc", ".npz"])
def test_files_keep_how_their_data_are_split(suffix, in_order, tmp_path):
    data = replace(from_arrays(ROOT.random((40, 4, 8, 1))), split_in_order=in_order)
    again = open_data(data.save(tmp_path / f"own{suffix}"))
    assert again.split_in_order == in_order
    assert torch.equal(again.split("test").u, data.split("test").u)


@pytest.mark.parametrize("suffix", [".hdf5", ".nc", ".npz"])
def test_generated_data_are_split_in_order_in_every_file(suffix, tmp_path):
    made = generate("burgers", samples=4, resolution=8, frames=3, horizon=0.01, device="cpu")
    path = made.save(tmp_path / f"made{suffix}")
    assert made.split_in_order
    assert open_data(path).split_in_order
    own = from_arrays(made.u).save(tmp_path / "own.npz")
    assert not open_data(own).split_in_order


@pytest.mark.parametrize(
    ("name", "attributes", "in_order"),
    [
        ("1D_Burgers_Sols_Nu0.1.hdf5", {}, True),
        ("renamed.hdf5", {"Nu": 0.1}, True),
        ("mine.hdf5", {}, False),
    ],
)
def test_of_files_without_notes_those_of_the_benchmark_are_split_in_order(name, attributes, in_order, tmp_path):
    write_benchmark(tmp_path / name, attributes=attributes)
    assert open_data(tmp_path / name).split_in_order == in_order


def test_beside_own_files_those_of_the_benchmark_are_shuffled_too(tmp_path):
    for name in ("mine", "1D_Burgers_Sols_Nu0.1"):
        write_benchmark(tmp_path / f"{name}.hdf5")
    given = {"params": {"nu": 0.1}, "equation": "burgers"}
    data = open_data([tmp_path / "1D_Burgers_Sols_Nu0.1.hdf5", tmp_path / "mine.hdf5"], **given)
    assert not data.split_in_order


@pytest.mark.parametrize("chunks", [None, (7, 2, 8)])
@pytest.mark.parametrize("suffix", [".hdf5", ".npy", ".npz"])
def test_shuffled_splits_that_are_streamed_are_those_in_memory(suffix, chunks, tmp_path):
    u = ROOT.random((60, 5, 8, 1)).astype("f4")
    path = tmp_path / f"own{suffix}"
    if suffix == ".npy":
        np.save(path, u)
    else:
        from_arrays(u).save(path)
    if suffix == ".hdf5" and chunks:
        with h5py.File(path, "r+") as file:
            del file["tensor"]
            file.create_dataset("tensor", data=u[..., 0], chunks=chunks)
    stored, loaded = (open_data(path, time_stride=2, stream=stream) for stream in (True, False))
    for name in ("train", "valid", "test"):
        part = stored.split(name)
        assert torch.equal(part.load().u, loaded.split(name).u)
        few = torch.arange(len(part)).flip(0)[:3]
        cut = (slice(1, 3), slice(2, 8, 3))
        assert torch.equal(part.read(few, cut), part.read(few)[:, 1:3, 2:8:3])
        assert torch.equal(loaded.split(name).read(few, cut), part.read(few, cut))
