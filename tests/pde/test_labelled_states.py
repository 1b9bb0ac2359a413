"""`solve` with labelled states: axes, channels, points and parameters are taken by their names, or refused."""

import numpy as np
import pytest
import torch
import xarray as xr

from vcnef.pde import solve

T = [0.0, 0.01]
X = (np.arange(8) + 0.5) / 8


def gas(order=("density", "pressure", "vx")):
    values = {"density": 1 + 0.1 * np.sin(2 * np.pi * X), "pressure": np.full(8, 2.0), "vx": np.zeros(8)}
    stacked = np.stack([values[name] for name in order], axis=-1)[None]
    return xr.DataArray(stacked, {"x": 2 * X - 1, "channel": list(order)}, ("sample", "x", "channel"))


def test_channels_and_axes_are_taken_by_name():
    expected = solve("cns1d", gas().values, t=T)
    assert torch.equal(solve("cns1d", gas(("pressure", "density", "vx")), t=T), expected)
    assert torch.equal(solve("cns1d", gas().transpose("channel", "x", "sample"), t=T), expected)
    assert torch.equal(solve("cns1d", gas().to_dataset("channel"), t=T), expected)
    assert torch.equal(solve("cns1d", gas().isel(sample=0), t=T), expected)


def test_channels_of_other_names_are_refused():
    other = gas().assign_coords(channel=["rho", "pressure", "vx"])
    with pytest.raises(ValueError, match="u0 has the channels rho, pressure, vx; the equation 'cns1d' expects density"):
        solve("cns1d", other, t=T)
    with pytest.raises(ValueError, match=r"u0 has the dimensions .*the equation 'cns1d' expects sample, x and channel"):
        solve("cns1d", gas().rename(x="y"), t=T)


def test_parameters_come_along():
    wave = xr.DataArray(np.sin(2 * np.pi * X)[None] * [[1.0], [2.0]], {"x": X, "nu": ("sample", [0.1, 0.01])},
                        ("sample", "x"))  # fmt: skip
    expected = solve("burgers", wave.values[..., None], t=T, params={"nu": [0.1, 0.01]})
    assert torch.equal(solve("burgers", wave, t=T), expected)
    told = solve("burgers", wave.values[..., None], t=T, params={"nu": 1.0})
    assert torch.equal(solve("burgers", wave, t=T, params={"nu": 1.0}), told)


def test_points_have_to_be_those_of_the_domain():
    wave = xr.DataArray(np.sin(np.pi * X)[None], {"x": 2 * X}, ("sample", "x"))
    with pytest.raises(ValueError, match=r"8 points of x from 0\.125 to 1\.875; expected .* from 0 to 1\. Give the"):
        solve("burgers", wave, t=T)
    assert solve("burgers", wave, t=T, domain=[(0.0, 2.0)]).shape == (1, 2, 8, 1)
    # At the left ends of their cells they are on the same periodic ring; with both ends one is there twice.
    assert solve("burgers", wave.assign_coords(x=np.arange(8) / 8), t=T).shape == (1, 2, 8, 1)
    for points in (np.linspace(0, 1, 8), X[::-1], X**2):
        with pytest.raises(ValueError, match="expected one in each of as many equal cells"):
            solve("burgers", wave.assign_coords(x=points), t=T)
    scattered = xr.DataArray(np.ones((1, 8)), {"x": ("point", X)}, ("sample", "point"))
    with pytest.raises(ValueError, match="scattered points; the equation 'burgers' is solved on cells"):
        solve("burgers", scattered, t=T)
