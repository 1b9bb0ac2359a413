"""Plain and labelled arrays become trajectories with sensible names."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr

from vcnef.data import from_arrays
from vcnef.data import open as open_data
from vcnef.grid import cell_centres


def test_an_array_alone_gets_names_times_and_a_grid():
    data = from_arrays(np.ones((3, 5, 4, 2)))
    assert data.u.dtype == torch.float32
    assert data.problem.channels == ("u1", "u2")
    assert data.problem.domain == ((0.0, 1.0),)
    assert torch.equal(data.t, torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0]))
    assert torch.allclose(data.grid[:, 0], torch.tensor([0.125, 0.375, 0.625, 0.875]))
    assert data.params.shape == (3, 0)
    assert from_arrays(torch.ones(3, 5, 4, 1)).problem.channels == ("u",)


def test_parameters_are_one_value_or_one_per_sample():
    data = from_arrays(np.ones((3, 5, 4, 1)), params={"nu": 0.1, "beta": [1, 2, 3]})
    assert data.problem.parameters == ("nu", "beta")
    assert data.params.tolist() == [[pytest.approx(0.1), i] for i in (1, 2, 3)]
    assert data.problem.ranges["beta"] == (1.0, 3.0)


def test_axes_of_length_one_make_a_parameter_no_other_thing():
    data = from_arrays(np.ones((3, 5, 4, 1)), params={"visc": torch.tensor([[0.1]]), "nu": np.ones((3, 1))})
    assert data.params.tolist() == [[pytest.approx(0.1), 1.0]] * 3
    with pytest.raises(ValueError, match=r"params\['nu'\] has shape \(3, 2\); expected one value or 3"):
        from_arrays(np.ones((3, 5, 4, 1)), params={"nu": np.ones((3, 2))})


def test_axes_give_the_grid_and_the_box():
    x, y = (np.arange(4) + 0.5) / 2 - 1, (np.arange(6) + 0.5) / 6
    data = from_arrays(np.ones((2, 3, 4, 6, 1)), x=(x, y))
    assert data.problem.domain == ((-1.0, 1.0), (0.0, 1.0))
    assert data.grid.shape == (4, 6, 2)
    again = from_arrays(np.ones((2, 3, 4, 6, 1)), x=data.grid)
    assert torch.equal(again.grid, data.grid)
    assert again.problem.domain == data.problem.domain


def test_scattered_points_have_coordinates_but_no_axes():
    points = np.random.default_rng(0).random((9, 2))
    data = from_arrays(np.ones((2, 3, 9, 1)), x=points)
    assert data.grid.shape == (9, 2)
    assert data.problem.ndim == 2


def test_an_axis_of_any_length_has_a_clean_box():
    for n in (7, 100, 1024):
        x = (np.arange(n, dtype=np.float32) + np.float32(0.5)) / np.float32(n)
        assert from_arrays(np.ones((1, 2, n, 1)), x=x).problem.domain == ((0.0, 1.0),)


def test_many_channels_are_those_that_are_meant():
    u = np.ones((3, 5, 16, 20))
    names = tuple(f"species {k}" for k in range(20))
    assert from_arrays(u, channels=names).problem.channels == names
    labelled = xr.DataArray(u, dims=("sample", "t", "x", "channel"))
    assert from_arrays(labelled).problem.channels[-1] == "u20"
    assert from_arrays(np.ones((3, 5, 16, 15)), layout="n t x c").problem.channels[-1] == "u15"


def test_a_labelled_array_brings_its_own_names():
    array = xr.DataArray(
        np.random.default_rng(0).random((4, 3, 5)),
        dims=("x", "time", "batch"),
        coords={"time": [0.0, 0.5, 2.0], "x": [0.5, 1.5, 2.5, 3.5], "nu": ("batch", np.arange(5) + 1.0)},
        name="temperature",
    )
    data = from_arrays(array)
    assert data.u.shape == (5, 3, 4, 1)
    assert torch.allclose(data.u[2, 1, :, 0].double(), torch.from_numpy(array.values[:, 1, 2]))
    assert data.problem.channels == ("temperature",)
    assert data.problem.parameters == ("nu",)
    assert data.problem.domain == ((0.0, 4.0),)
    assert data.t.tolist() == [0.0, 0.5, 2.0]


def test_a_channel_that_is_selected_keeps_its_name_and_unit():
    units = ("channel", ["kg/m³", "Pa"])
    coordinates = {"channel": ["density", "pressure"], "units": units}
    array = xr.DataArray(np.ones((2, 3, 8, 2)), coordinates, ("sample", "t", "x", "channel"), name="gas")
    one = from_arrays(array.sel(channel="pressure"))
    assert (one.problem.channels, one.problem.units) == (("pressure",), {"pressure": "Pa"})


def test_xarray_there_and_back(make_data):
    data = make_data("cns2d")
    again = from_arrays(data.to_xarray().to_dataarray(dim="channel").sel(channel=list(data.problem.channels)))
    assert torch.equal(again.u, data.u)
    assert again.problem.channels == data.problem.channels


@pytest.mark.parametrize("name", ["burgers", "cns2d"])
def test_a_dataset_is_taken_as_a_file_of_it_is(make_data, tmp_path, name):
    data = replace(make_data(name), parts=(8, 12), attributes={"seed": 3})
    data.params[:] = torch.rand_like(data.params)
    again, opened = from_arrays(data.to_xarray()), open_data(data.save(tmp_path / "data.nc"))
    for part in ("u", "t", "grid", "params"):
        assert torch.equal(getattr(again, part), getattr(data, part)), part
    assert again.problem == opened.problem
    assert (again.parts, again.attributes) == ((8, 12), {"seed": 3})


def test_what_is_given_beside_a_dataset_joins_its_parameters_and_replaces_the_rest(make_data):
    dataset = make_data("burgers").to_xarray()
    data = from_arrays(dataset, x=np.arange(8.0), params={"g": 2.0}, name="kdv", periodic=False)
    assert (data.problem.name, data.problem.parameters, data.problem.periodic) == ("kdv", ("nu", "g"), False)
    assert data.problem.domain == ((-0.5, 7.5),)


PARTS = {
    "half": (slice(0, 4), (0.0, 0.5)),
    "all but one": (slice(0, 7), (0.0, 0.875)),
    "stride": (slice(None, None, 2), None),
    "other phase": (slice(3, None, 4), None),
}


@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_a_domain_is_one_of_its_own_that_does_not_close(make_data, tmp_path, part):
    points, box = PARTS[part]
    data = make_data("cns2d")
    dataset = data.to_xarray().isel(y=points)
    dataset.to_netcdf(tmp_path / "part.nc", engine="h5netcdf")
    for found in (from_arrays(dataset), open_data(tmp_path / "part.nc")):
        assert found.problem.name == "cns2d"
        assert found.problem.domain == (data.problem.domain if box is None else ((0.0, 1.0), box))
        assert found.problem.periodic == (True if box is None else (True, False))
    assert from_arrays(dataset, periodic=True).problem.periodic


def test_a_dataset_from_elsewhere():
    fields = {"h": (("time", "x"), np.ones((3, 4))), "depth": ((), 2.0)}
    dataset = xr.Dataset(fields, coords={"y": 0.5}, attrs={"domain": "North Sea"})
    data = from_arrays(dataset)
    assert (data.problem.name, data.problem.channels, data.problem.parameters) == ("custom", ("h",), ("depth",))
    with pytest.raises(ValueError, match="the dataset has no variable over t and x or point; its variables are"):
        from_arrays(dataset[["depth"]])


@pytest.mark.parametrize(
    ("axes", "coordinates", "sentence"),
    [
        ("y", {}, r"has the space axes y; expected x. Rename them with array.rename\(y='x'\)"),
        ("zx", {}, r"has the space axes x, z; expected x, y. Rename them with array.rename\(z='y'\)"),
        ("yz", {}, r"has the space axes y, z; expected x, y. Rename them with array.rename\(y='x', z='y'\)"),
        ("xz", {"y": 0.5}, r"expected x, y. Rename them with array.drop_vars\(\['y'\]\).rename\(z='y'\)"),
    ],
)
def test_axes_are_the_first_of_x_y_z(axes, coordinates, sentence):
    array = xr.DataArray(np.ones((3, 5, *[4] * len(axes))), coordinates, ("sample", "t", *axes), name="u")
    for labelled in (array, array.to_dataset()):
        with pytest.raises(ValueError, match=sentence):
            from_arrays(labelled)


def test_what_a_dataset_would_lose_is_refused(tmp_path):
    kept = {"u": (("sample", "t", "x"), np.ones((3, 5, 4))), "nu": ("sample", [1, 2, 3]), "remark": ((), "dry")}
    lost = {"k": (("sample", "x"), np.ones((3, 4))), "f": ("t", np.ones(5)), "kind": ("sample", ["a", "b", "c"])}
    assert from_arrays(xr.Dataset(kept)).problem.parameters == ("nu",)
    sentence = (
        r"dataset has k over \(sample, x\), f over \(t\), kind over \(sample\) beside its fields; expected .*"
        r"Make them channels or parameters, or leave them out with drop_vars\(\['k', 'f', 'kind'\]\)\."
    )
    with pytest.raises(ValueError, match=sentence):
        from_arrays(xr.Dataset(kept | lost))
    xr.Dataset(kept | lost).to_netcdf(tmp_path / "lost.nc", engine="h5netcdf")
    with pytest.raises(ValueError, match=rf"lost.nc cannot be used: the {sentence}"):
        open_data(tmp_path / "lost.nc")


def test_coordinates_of_all_axes_or_of_none():
    array = xr.DataArray(np.ones((3, 5, 4, 4)), {"x": np.arange(4.0)}, ("sample", "t", "x", "y"), name="u")
    sentence = r"coordinates for x, but none for y. Add them with array.assign_coords\(y=...\), or leave out all with"
    with pytest.raises(ValueError, match=sentence):
        from_arrays(array)
    assert from_arrays(array.drop_vars("x")).problem.domain == ((0.0, 1.0), (0.0, 1.0))
    assert from_arrays(array, x=(np.arange(4.0), np.arange(4.0))).problem.domain == ((-0.5, 3.5), (-0.5, 3.5))


@pytest.mark.parametrize(
    ("name", "dims", "dim"),
    [("seconds", ("t",), "t"), ("time", ("t",), "t"), ("lon", ("x",), "x"), ("r", ("x", "y"), "x")],
)
def test_coordinates_of_another_name_are_not_lost_for_the_default_ones(name, dims, dim):
    bare = xr.DataArray(np.ones((3, 5, 4, 4)), dims=("sample", "t", "x", "y"), name="u")
    shape = [bare.sizes[each] for each in dims]
    values = np.arange(np.prod(shape)).reshape(shape)
    array = bare.assign_coords({name: (dims, values)})
    sentence = rf"no coordinate {dim}, but {name} in its place. Name what it is with array.assign_coords\({dim}=...\)"
    for labelled in (array, array.to_dataset()):
        with pytest.raises(ValueError, match=sentence):
            from_arrays(labelled)
    axes = {each: np.arange(4.0) for each in "xy"}
    assert len(from_arrays(array.assign_coords(t=np.arange(5.0), **axes)).t) == 5
    assert len(from_arrays(array, t=np.arange(5.0), x=tuple(axes.values())).t) == 5


ONES = np.ones((3, 5, 4, 1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"u": np.ones((3, 5, 4))}, r"shape \(3, 5, 4\).*\n?.*u\[..., None\]"),
        ({"u": np.ones((0, 5, 4, 1))}, r"u has shape \(0, 5, 4, 1\) and nothing in it. Give at least one trajectory"),
        ({"u": torch.ones(3, 0, 4, 1)}, r"u has shape \(3, 0, 4, 1\) and nothing in it"),
        ({"u": np.array([["a"]])}, "u is not an array of real numbers"),
        ({"u": [[1.0], [2.0, 3.0]]}, "u is not an array of real numbers"),
        ({"u": np.where(np.arange(3)[:, None, None, None] == 1, np.nan, ONES)}, "NaN or infinity in 1 .* first in 1"),
        ({"u": torch.ones(3, 5, 4, 1, dtype=torch.complex64)}, r"u is not an array of real numbers \(its type is"),
        (
            {"u": np.ma.masked_less(ONES * [[1], [-9999], [1], [1]], 0)},
            r"u is not .* \(15 of its values are masked; fill",
        ),
        ({"params": {"nu": np.ma.masked_equal([1, 2, 3], 2)}}, r"params\['nu'\] is not .* \(1 of its values"),
        ({"t": [0.0, 1.0]}, r"t has shape \(2,\); expected \(5,\)"),
        ({"t": [0, 1, 1, 2, 3]}, "t is not increasing"),
        ({"x": [0.0, 1.0]}, r"x has axes of shape \(\(2,\),\); expected lengths \(4,\)"),
        (
            {"u": np.ones((3, 5, 4, 8)), "x": (np.arange(4.0), np.arange(7.0))},
            r"x has 2 axes, but u those of \(4,\) points .* add its channel with u\[..., None\]",
        ),
        ({"u": np.ones((3, 5, 16, 16))}, r"a last axis of 16, .* with layout='n t c x' or layout='n t x y'; otherwise"),
        ({"x": [0.0, 1.0, 0.5, 2.0]}, "4 points that is not increasing"),
        (
            {"t": 1e5 + np.arange(5) / 400},
            r"t has 5 values from 100000.0 to 100000.01, too close .* Subtract the first",
        ),
        ({"t": [0, 1, 1 + 1e-9, 2, 3]}, "t has 5 values from 0.0 to 3.0, too close .* leave out values"),
        ({"x": 4.5e6 + np.arange(4) / 10}, "x has 4 values from 4500000.0 to 4500000.3, too close"),
        ({"x": 1e6 + np.arange(8).reshape(4, 2) / 10}, "x has 4 values from 1000000.0 to 1000000.6, too close"),
        ({"channels": ("a", "b")}, r"channels are \('a', 'b'\); expected 1 names"),
        ({"channels": "u"}, "channels are 'u'; expected 1 names"),
        ({"params": {"nu": [1.0, 2.0]}}, r"params\['nu'\] has shape \(2,\); expected one value or 3"),
        ({"params": np.ones((3, 2))}, "params is ndarray; expected values by name, e.g. params="),
        ({"params": {"t": 1.0}}, "has the parameter 't', which is the name of a coordinate. Rename it; sample, t, x, "),
        ({"params": {"nu": np.nan}}, r"params\['nu'\] has NaN"),
        ({"u": xr.DataArray(ONES, dims=("a", "t", "x", "c"))}, "Rename them"),
    ],
)
def test_messages(arguments, message):
    with pytest.raises(ValueError, match=message):
        from_arrays(**({"u": ONES} | arguments))


@pytest.mark.parametrize("indexing", ["bent", "xy"])
def test_a_grid_that_is_no_product_of_axes(indexing):
    axes, u = (np.linspace(0, 1, 4), np.linspace(0, 1, 4)), np.ones((2, 3, 4, 4, 1))
    grid = np.stack(np.meshgrid(*axes, indexing="xy" if indexing == "xy" else "ij"), axis=-1)
    grid[..., 0] += 0.1 * grid[..., 1] if indexing == "bent" else 0.0
    with pytest.raises(
        ValueError, match=r"x of shape \(4, 4, 2\) is no product of axes .* scattered points: x.reshape"
    ):
        from_arrays(u, x=grid)
    assert from_arrays(u.reshape(2, 3, -1, 1), x=grid.reshape(-1, 2)).grid.shape == (16, 2)


def test_a_mask_that_hides_nothing_is_no_obstacle():
    assert from_arrays(np.ma.masked_array(ONES, mask=False)).u.shape == ONES.shape


def test_coordinates_that_single_precision_holds_are_taken():
    for x in (np.linspace(-1, 1, 2**16), 1e5 + np.arange(4) * 100, np.geomspace(1e-6, 1, 40)):
        assert from_arrays(np.zeros((1, 2, len(x), 1)), x=x).resolution == x.shape
    assert from_arrays(ONES, t=2000 + np.arange(5)).t.diff().tolist() == [1.0] * 4


def test_the_box_gives_the_points_back_and_is_short_where_noise_alone_makes_it_long():
    x = np.linspace(0, 1, 48, endpoint=False)
    problem = from_arrays(np.zeros((2, 3, 48, 1)), x=x).problem
    assert np.allclose(cell_centres(problem.domain, (48,))[:, 0], x, rtol=0, atol=1e-7)
    assert problem.domain[0][0] == pytest.approx(-1 / 96, rel=1e-12)
    for low, high in ((0.0, 1.0), (-1.0, 1.0), (0.0, 16.0)):
        centres = cell_centres(((low, high),), (1000,))[:, 0]
        assert from_arrays(np.zeros((2, 3, 1000, 1)), x=centres).problem.domain == ((low, high),)


@pytest.mark.parametrize("offset", [1e5, -1e7])
@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
def test_fields_that_single_precision_would_round_to_steps_are_refused(offset, kind):
    u = np.random.default_rng(0).random((4, 3, 8, 2))
    u[..., 1] = 101325.0  # may stay as it is
    from_arrays(kind(u))
    u[..., 0] += offset
    with pytest.raises(ValueError, match=r"Channel 'u1' is between .*: single precision, .* Subtract its mean."):
        from_arrays(kind(u))
    from_arrays(kind(u).astype("f4") if kind is np.asarray else kind(u).float())  # nobody knows more digits


GIVEN = [
    (None, True),
    (np.False_, False),
    ((True, False), (True, False)),
    ([True, True], True),
    (np.array([False, True]), (False, True)),
    ({"y": False}, (True, False)),
    ({"x": False, "y": False}, False),
]


@pytest.mark.parametrize(("given", "noted"), GIVEN)
def test_a_domain_may_close_along_each_axis_or_not(given, noted):
    found = from_arrays(np.zeros((4, 3, 8, 8, 1)), periodic=given).problem.periodic
    assert found == noted
    assert type(found) is type(noted)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("no", r"periodic is 'no'; expected True or False, for all axes, one for each, as \(True, False\), or by name"),
        (1, "periodic is 1; expected True or False"),
        ((1, 0), r"periodic is \(1, 0\); expected True or False"),
        ((True, False, True), "for 3 axes; expected one value for each of x, y, or True or False for all"),
        ({"z": False}, "periodic names the axis 'z'; expected some of x, y"),
    ],
)
def test_what_does_not_say_it_of_each_axis_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        from_arrays(np.zeros((4, 3, 8, 8, 1)), periodic=given)


def test_points_that_are_there_twice_draw_a_warning():
    x = np.linspace(0.0, 1.0, 17)
    u = np.sin(2 * np.pi * (x + np.arange(6).reshape(2, 3, 1)))[..., None]
    with pytest.warns(
        UserWarning, match=r"first and the last points along x .*leave the last ones out.*periodic=False"
    ):
        from_arrays(u, x=x)
    both = u[:, :, :, None] + np.sin(2 * np.pi * np.arange(8) / 8)[:, None]
    with pytest.warns(UserWarning, match="along y"):
        from_arrays(both.swapaxes(2, 3))
    bump = np.exp(-(((x - 0.5) / 0.05) ** 2)) * np.ones((2, 3, 1))
    # Each point once, a domain that ends, and fields that are flat at both ends.
    from_arrays(u[:, :, :-1], x=x[:-1])
    from_arrays(u, x=x, periodic=False)
    from_arrays(bump[..., None], x=x)
    from_arrays(np.ones((2, 3, 2, 1)))


def test_a_dictionary_of_arrays_is_refused_with_the_way_to_take():
    two_frames = r"two frames: np.stack\(\[a, u\], axis=1\)\[..., None\]."
    with pytest.raises(
        ValueError, match=rf"u is a dict of 'x' \(4, 8\), 'y' \(4, 8\); expected an array .* {two_frames}"
    ):
        from_arrays({"x": np.zeros((4, 8)), "y": np.zeros((4, 8))})
    # As neuraloperator has them.
    arrays = {"input": torch.zeros(4, 8), "output": torch.zeros(4, 5, 8), "visc": torch.zeros(1, 1)}
    with pytest.raises(ValueError, match=r"Give that one of them, as ...\['output'\] with layout='n t x' if its axes"):
        from_arrays(arrays)
    assert from_arrays(arrays["output"], layout="n t x").u.shape == (4, 5, 8, 1)


def test_times_that_nobody_gave_are_noted(tmp_path):
    u = np.zeros((4, 5, 8, 1))
    bare, told = from_arrays(u), from_arrays(u, t=np.linspace(0, 1, 5))
    assert (dict(bare.attributes), dict(told.attributes)) == ({"times": "assumed"}, {})
    np.savez(tmp_path / "bare.npz", u=u)
    assert open_data(tmp_path / "bare.npz").attributes == bare.attributes
    for suffix in (".hdf5", ".nc", ".npz"):
        assert open_data(bare.save(tmp_path / f"saved{suffix}")).attributes == bare.attributes
    labelled = xr.DataArray(u, dims=("sample", "t", "x", "channel"))
    assert from_arrays(labelled).attributes == bare.attributes
    assert from_arrays(labelled, t=np.arange(5.0)).attributes == {}
