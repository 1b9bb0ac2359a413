"""Data that are taken as periodic and are not: a warning where they say so clearly, silence where not."""

import warnings

import numpy as np
import pytest
import torch
import xarray as xr

import vcnef
from vcnef.data import from_arrays
from vcnef.data import open as open_data
from vcnef.data.seams import breaks, meets_itself

POINTS, T = 64, torch.linspace(0.0, 1.0, 6)
CELLS = (torch.arange(POINTS) + 0.5) / POINTS
WAVES = torch.arange(1, 6)


def heat(kind, samples=8, x=CELLS):
    """Heat between walls, as a series: held at zero, held at two values, or insulated."""
    sizes = torch.randn(samples, 5) / WAVES
    decay = torch.exp(-0.05 * WAVES**2 * T[:, None])
    shapes = (torch.cos if kind == "insulated" else torch.sin)(torch.pi * WAVES[:, None] * x)
    u = torch.einsum("nm,tm,mx->ntx", sizes, decay, shapes)
    if kind == "two values":
        left, right = torch.randn(2, samples, 1, 1)
        u = u + left + (right - left) * x
    return u[..., None]


def outflow(samples=16):
    """Bumps that leave at the right."""
    centre, speed = 0.3 + 0.2 * torch.rand(samples, 1, 1), 0.5 + 0.5 * torch.rand(samples, 1, 1)
    return torch.exp(-(((CELLS - centre - speed * T[:, None]) / 0.1) ** 2))[..., None]


def channel(samples=6):
    """Temperature that drifts along x between cold walls in y."""
    x, y = CELLS[::2, None], CELLS[None, ::2]
    phase = torch.rand(samples, 1, 1, 1)
    along = 1.2 + torch.cos(2 * torch.pi * (x - T[:, None, None] + phase))
    return (along * (torch.sin(torch.pi * y) + 0.3 * torch.sin(2 * torch.pi * (y + 0 * phase))))[..., None]


@pytest.mark.parametrize("kind", ["held at zero", "two values", "insulated"])
def test_heat_between_walls_draws_a_warning(kind):
    what = "slopes turn" if kind == "held at zero" else "values jump"
    with pytest.warns(
        UserWarning, match=rf"{what} \d+ times as far along x .*periodic=False \(--no-periodic.*periodic=True"
    ):
        from_arrays(heat(kind))


def test_fields_that_leave_draw_a_warning():
    with pytest.warns(UserWarning, match="values jump"):
        from_arrays(outflow())


def test_of_a_channel_only_the_walls_do():
    message = (
        r"slopes turn \d+ times as far along y .* Give periodic=\(True, False\) \(--walls y on the command line\), or"
    )
    with pytest.warns(UserWarning, match=message):
        from_arrays(channel())
    with pytest.warns(UserWarning, match=r"along x .* Give periodic=\(False, True\) \(--walls x"):
        from_arrays(channel().transpose(2, 3))
    from_arrays(channel(), periodic=(True, False))
    with pytest.warns(UserWarning, match=r"along x and slopes turn \d+ times as far along y .* Give periodic=False"):
        from_arrays(channel() * torch.exp(CELLS[::2])[:, None, None])


def test_whoever_says_it_is_believed():
    for periodic in (False, True):
        from_arrays(heat("insulated"), periodic=periodic)
    labelled = from_arrays(heat("insulated"), periodic=False).to_xarray()
    from_arrays(labelled)
    with pytest.warns(UserWarning, match="values jump"):
        from_arrays(xr.Dataset(labelled.data_vars, labelled.coords))


def test_ends_that_are_held_at_one_value_are_no_points_that_are_there_twice():
    both = torch.linspace(0.0, 1.0, 65)
    u = heat("held at zero", x=both)
    assert meets_itself(u, 2)
    with pytest.warns(UserWarning, match="slopes turn"):
        from_arrays(u, x=both)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".nc", ".hdf5"])
@pytest.mark.parametrize("stream", [True, False])
def test_files_are_asked_too_unless_they_note_it(tmp_path, suffix, stream):
    path, u = tmp_path / f"mine{suffix}", heat("two values").numpy()
    if suffix == ".npy":
        np.save(path, u)
    elif suffix == ".npz":
        np.savez(path, u=u)
    else:
        from_arrays(u, periodic=True).save(path)
        open_data(path, stream=stream)
        forget(path)
    with pytest.warns(UserWarning, match=r"values jump \d+ times"):
        assert open_data(path, stream=stream).problem.periodic is True
    for periodic in (False, True):
        open_data(path, stream=stream, periodic=periodic)


def forget(path):
    import h5py

    with h5py.File(path, "r+") as file:
        for name in ("problem", "periodic", "domain"):
            file.attrs.pop(name, None)


def rough(kind):
    samples, generator = 12, torch.Generator().manual_seed(0)
    if kind == "noise":
        return torch.randn(samples, 3, POINTS, 1, generator=generator)
    if kind == "boxes":
        centre, speed = torch.rand(2, samples, 1, 1, generator=generator)
        return (((CELLS - centre - speed * T[:, None]) % 1) < 0.3).float()[..., None]
    if kind == "bridges":
        steps = torch.randn(samples, 1, POINTS, 1, generator=generator)
        return (steps - steps.mean(dim=2, keepdim=True)).cumsum(dim=2)
    params = {"advection": {"beta": 1.0}, "burgers": {"nu": 1e-4}}[kind]
    return vcnef.generate(kind, samples=samples, params=params, resolution=POINTS, frames=5, horizon=0.5).u


@pytest.mark.parametrize("kind", ["noise", "boxes", "bridges", "advection", "burgers"])
def test_rough_fields_and_shocks_that_are_periodic_draw_none(kind):
    u = rough(kind)
    for first in range(0, len(u), 4):
        assert breaks(u[first : first + 4], 2) is None
    from_arrays(u)


def test_a_shock_at_the_seam_of_one_trajectory_is_no_wall():
    u = torch.sin(2 * torch.pi * (CELLS + torch.rand(8, 1, 1))).expand(8, 3, -1).clone()
    u[0] = torch.linspace(-1.0, 1.0, POINTS)
    from_arrays(u[..., None])


def test_what_is_no_evidence_is_left_alone():
    u = heat("two values")
    for few in (u[:2], u[:, :, ::8], torch.ones(8, 3, POINTS, 1), torch.zeros(8, 3, POINTS, 1)):
        from_arrays(few)
    # Fields that vary along x alone, but for rounding.
    along = torch.sin(2 * torch.pi * (CELLS[::2] + torch.rand(8, 1, 1)))[..., None].repeat(1, 3, 1, 16)
    along[..., -1] += 1e-6
    from_arrays(along[..., None])
    from_arrays(u, x=CELLS**2)
    from_arrays(u, x=torch.rand(POINTS, 2))
    # States that have come to rest show how numbers were rounded, and one that has not is alone.
    still = 1e-5 * u
    still[0] = torch.sin(2 * torch.pi * CELLS)[:, None]
    from_arrays(still)


def test_few_values_of_many_are_looked_at(monkeypatch):
    seen = []
    data = from_arrays(heat("insulated", samples=100), periodic=False)
    monkeypatch.setattr(vcnef.data.seams, "NUMBERS", 4 * POINTS * len(T))
    monkeypatch.setattr(vcnef.data.seams, "breaks", lambda u, axis: seen.append(tuple(u.shape)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_arrays(data.u)
        monkeypatch.setattr(vcnef.data.seams, "ROWS_BYTES", 1000)
        from_arrays(data.u)
        monkeypatch.setattr(vcnef.data.seams, "ROWS_BYTES", 10**6)
        monkeypatch.setattr(vcnef.data.seams, "NUMBERS", 1)
        from_arrays(data.u)
    assert seen == [(4, len(T), POINTS, 1), (3, 2, POINTS, 1)]
