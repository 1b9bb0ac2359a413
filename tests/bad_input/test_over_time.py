"""Histories, clocks and changing parameters that are labelled otherwise, and exports of what is none."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from vcnef.data import from_arrays
from vcnef.surrogate import Surrogate

TINY = {"width": 16, "heads": 2, "depth": 1, "modulations": 1}
X, T = (np.arange(32) + 0.5) / 32, np.linspace(0, 1, 6)


@pytest.fixture(scope="module")
def over_time(world):
    """Models in windows: with two frames of history, with a clock, and of a parameter that changes."""
    v, nu = world.burgers_data.u.numpy(), world.burgers_data.params[:, 0].numpy()
    plain = from_arrays(v, t=T, x=X, params={"nu": nu}, periodic=True)
    changing = from_arrays(v, t=T, x=X, params={"g": np.sin(T) * nu[:, None]}, periodic=True)
    changing = replace(changing, problem=replace(changing.problem, units={"t": "s", "g": "m"}))
    return SimpleNamespace(
        v=v, u0=v[:3, 0], history=Surrogate.build("vcnef", TINY | {"history": 2}, plain, seed=0, window=0.4),
        clock=Surrogate.build("vcnef", TINY, plain, seed=0, window=0.4, explicit_time=True),
        changing=Surrogate.build("vcnef", TINY, changing, seed=0, window=0.4), plain=world.burgers, one=world.model,
    )  # fmt: skip


def remember(o, frames, t=(0.5,), **more):
    return o.history.predict(frames, list(t), {"nu": 0.05}, **more).values


def frames_at(o, t, frames=None):
    values = o.v[:3, :2] if frames is None else frames
    return xr.DataArray(values, {"t": list(t), "x": X, "channel": ["u"]}, ("sample", "t", "x", "channel"))


def begin(o, start=None, u0=None):
    return o.clock.predict(o.u0 if u0 is None else u0, [0.5], {"nu": 0.05}, start=start).values


def drive(o, g, **more):
    return o.changing.predict(o.u0, [0.5], {"g": g}, **more).values


def record(values, t, unit=None):
    return xr.DataArray(values, {"t": ("t", t, {"units": unit} if unit else {})}, ("t",))


CASES = {
    "two frames": (lambda o: remember(o, frames_at(o, (0.0, 0.2))), "right", ""),
    "one frame": (lambda o: remember(o, o.u0), "refused", "remembers 2 frames and expects .sample, 2, x, 1."),
    "three frames": (lambda o: remember(o, o.v[:3, :3]), "refused", "remembers 2 frames"),
    "frames too far apart": (lambda o: remember(o, frames_at(o, (0.0, 0.4))), "refused", "0.4 to 0.4 apart; exp"),
    "frames backwards": (lambda o: remember(o, frames_at(o, (0.2, 0.0))), "refused", "-0.2 to -0.2 apart; exp"),
    "frames in milliseconds": (lambda o: remember(o, frames_at(o, (0.0, 200.0))), "refused", "200 to 200 apart"),
    "points before frames": (lambda o: remember(o, o.v[:3, :2].transpose(0, 2, 1, 3)), "refused", "remembers 2 frames"),
    "frames first, said": (lambda o: remember(o, o.v[:3, :2, :, 0].transpose(1, 0, 2), layout="t n x"), "right", ""),
    "adaptive windows": (lambda o: remember(o, o.v[:3, :2], tolerance=0.1), "refused", "Leave it out, or train with"),
    "a start of long after": (lambda o: begin(o, 50.0), "warned", "The clock of the data goes from 50 to 50.5"),
    "a start of NaN": (lambda o: begin(o, np.nan), "refused", "start is nan; expected one finite time"),
    "a start in words": (lambda o: begin(o, "now"), "refused", "start is not an array of real numbers"),
    "two starts of three": (lambda o: begin(o, [0.0, 0.1]), "refused", "expected one finite time, or 3, one for each"),
    "a label for a start": (
        lambda o: begin(o, None, xr.DataArray(o.u0, {"t": 0.4, "x": X}, ("sample", "x", "channel"))),
        "refused", "u0 is labelled t = 0.4, and its equation depends on the time",
    ),
    "a record": (lambda o: drive(o, [0.01, 0.05], params_t=[0, 1]), "right", ""),
    "a record that is short": (lambda o: drive(o, [0.01, 0.05], params_t=[0, 0.3]), "refused", "Give a longer record"),
    "a record that is late": (lambda o: drive(o, [0.01, 0.05], params_t=[0.3, 1]), "refused", "Give a longer record"),
    "a record backwards": (lambda o: drive(o, [0.01, 0.05], params_t=[1, 0]), "refused", "expected ascending, finite"),
    "a record of NaN": (lambda o: drive(o, [0.01, np.nan], params_t=[0, 1]), "refused", "has NaN or infinity"),
    "a record without times": (lambda o: drive(o, np.ones((3, 4))), "refused", "but params_t is not given"),
    "a record in milliseconds": (
        lambda o: drive(o, record([0.01, 0.05], [0, 1000.0], "ms")), "warned", "t of the parameter g is in 'ms'"
    ),
    "times in milliseconds": (
        lambda o: drive(o, [0.01, 0.05], params_t=xr.DataArray([0, 1000.0], dims="t", attrs={"units": "ms"})),
        "warned", "params_t is in 'ms' and was multiplied by 0.001",
    ),
    "a record of fortnights": (
        lambda o: drive(o, record([0.01, 0.05], [0, 1.0], "fortnight")), "refused", "t is in 'fortnight' in the times"
    ),
    "times in fortnights": (
        lambda o: drive(o, [0.01, 0.05], params_t=xr.DataArray([0, 1.0], dims="t", attrs={"units": "fortnight"})),
        "refused", "t is in 'fortnight' in the times of params_t",
    ),
    "a record in kilometres": (
        lambda o: drive(o, record([0.01, 0.05], [0, 1.0]).assign_attrs(units="km")), "warned", "parameter g is in 'km'"
    ),
    "a function of words": (lambda o: drive(o, lambda t: "a"), "refused", "is not an array of real numbers"),
    "a function of nothing": (lambda o: drive(o, lambda t: None), "refused", "is not an array of real numbers"),
    "an export of a history": (lambda o: o.history.export("a.pt2"), "refused", "begin with 2 frames, which"),
    "an export of records": (lambda o: o.changing.export("a.pt2"), "refused", "g changes with time, which one input"),
    "an export of no kind": (lambda o: o.plain.export("a.exe"), "refused", "ends in '.exe'; a model is"),
    "an export of no points": (lambda o: o.plain.export("a.pt2", resolution=0), "refused", "one positive count per"),
    "an export of half a point": (lambda o: o.plain.export("a.pt2", resolution=3.5), "refused", "3.5 is no count of"),
    "an export in words": (lambda o: o.plain.export("a.pt2", resolution="a"), "refused", "'a' is no count of points"),
    "an export in 2D": (lambda o: o.plain.export("a.pt2", resolution=(3, 4)), "refused", "does not fit 1 axes"),
    "an export both ways": (lambda o: o.plain.export("a.pt2", resolution=3, x=X), "refused", "Leave out one: x has"),
    "an export backwards": (lambda o: o.plain.export("a.pt2", x=X[::-1].copy()), "refused", "that is not increasing"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_over_time(over_time, ends, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call, how, said = CASES[name]
    ends(lambda: call(over_time), how, said)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"x": X + 100}, "x goes from 100 to 101; the surrogate was"),
        ({"resolution": 2}, "on 2 points"),
    ],
)
def test_an_export_on_other_points_is_doubted(over_time, tmp_path, monkeypatch, asked, said):
    monkeypatch.setattr("vcnef.surrogate.surrogate.export", lambda *given: 0.0)  # that of the program takes seconds
    with pytest.warns(UserWarning, match=said):
        over_time.plain.export(tmp_path / "a.pt2", **asked)
