"""Data that are judged on, opened together or given as sets of a run, but are not of one kind."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

import vcnef as library
from vcnef.data import from_arrays
from vcnef.data.sets import make_sets
from vcnef.evaluation import evaluate

HERE = {"split": "all", "solver": False}


def other(data, **problem):
    return replace(data, problem=replace(data.problem, **problem))


def units(data, **changed):
    return other(data, units={**data.problem.units, **changed})


def judge(w, data, model=None, **asked):
    """The notes as warnings, but for those of a model that was not trained."""
    for note in evaluate(model or w.model, data, **{**HERE, **asked}).notes:
        if "The model does not say" not in note and "does not list" not in note:
            warnings.warn(note, UserWarning, stacklevel=1)


def finer(w, points):
    x = (np.arange(points) + 0.5) / points
    u = np.stack([2 + np.sin(2 * np.pi * x), np.cos(2 * np.pi * x)], -1)[None, None].repeat(4, 0).repeat(6, 1)
    return from_arrays(u, t=np.linspace(0, 1, 6), x=x, params={"a": 1.0, "b": 0.1}, channels=["h", "q"])


def constant(u0, t, params):
    return u0[:, None].repeat(1, len(t), 1, 1)


JUDGED = {
    "as they should be": (lambda w, d: judge(w, d), "right", ""),
    "channels exchanged": (lambda w, d: judge(w, other(d, channels=("q", "h"))), "refused", "the data have q, h"),
    "another unit": (lambda w, d: judge(w, units(d, h="km")), "warned", "h of the data is in 'km' and was mult"),
    "a unit that nobody knows": (
        lambda w, d: judge(w, units(d, h="furlong")), "refused", "h is in 'furlong' in the data and in 'm' in the"
    ),
    "another unit of time": (lambda w, d: judge(w, units(d, t="ms")), "warned", "t of the data is in 'ms' and was"),
    "another unit of a parameter": (lambda w, d: judge(w, units(d, a="km/h")), "warned", "a of the data is in 'km/h'"),
    "another equation": (
        lambda w, d: judge(w, other(w.burgers_data, name="advection"), w.burgers), "warned", "The equation of these"
    ),
    "other sides": (lambda w, d: judge(w, other(d, periodic=False)), "warned", "The periodicity of these data"),
    "another domain": (lambda w, d: judge(w, other(d, domain=((0.0, 2.0),))), "warned", "The domain of these data"),
    "points elsewhere": (lambda w, d: judge(w, replace(d, grid=d.grid + 0.5)), "warned", "x goes from 0.5156 to 1.484"),
    "points in kilometres": (lambda w, d: judge(w, replace(d, grid=d.grid / 1000)), "warned", "trained on 0 to 1"),
    "parameters exchanged": (
        lambda w, d: judge(w, other(d, parameters=("b", "a"), ranges={})), "warned", "a is 0 to 0.5; the surrogate was"
    ),
    "a parameter of another name": (
        lambda w, d: judge(w, other(d, parameters=("a", "c"), ranges={})), "refused", "so b is missing"
    ),
    "parameters elsewhere": (lambda w, d: judge(w, replace(d, params=50 * d.params)), "warned", "a is 25 to 75"),
    "one parameter elsewhere": (
        lambda w, d: judge(w, replace(w.burgers_data, params=0 * w.burgers_data.params + 50), w.burgers),
        "warned", "nu is 50 to 50; the surrogate was trained on 0.01 to 0.1",
    ),
    "fields elsewhere": (lambda w, d: judge(w, replace(d, u=5 * d.u)), "warned", "check the units of u0"),
    "fields of NaN": (lambda w, d: judge(w, replace(d, u=d.u * np.nan)), "refused", "non-finite values"),
    "times in another unit": (lambda w, d: judge(w, replace(d, t=30 * d.t)), "warned", "judged at t = 6, beyond the"),
    "twice as long": (lambda w, d: judge(w, replace(d, t=2 * d.t)), "warned", "3 of the 6 frames lie beyond"),
    "33 points": (lambda w, d: judge(w, finer(w, 33)), "warned", "Trained on 32 points, but judged on the 33"),
    "two dimensions": (lambda w, d: judge(w, from_arrays(w.flat.u)), "refused", "The model expects the channels"),
    "no such split": (lambda w, d: judge(w, d, split="half"), "refused", "There is no split 'half'"),
    "batches of none": (lambda w, d: judge(w, d, batch=0), "refused", "batch is 0; expected at least 1"),
    "batches in words": (lambda w, d: judge(w, d, batch="all"), "refused", "batch is 'all'; expected at least 1"),
    "batches of halves": (lambda w, d: judge(w, d, batch=1.5), "refused", "batch is 1.5; expected at least 1"),
    "no points": (lambda w, d: judge(w, d, space=[0]), "refused", "space has 0, which no stride leaves"),
    "points without end": (lambda w, d: judge(w, d, space=[10**9]), "refused", "which no stride leaves"),
    "no frames": (lambda w, d: judge(w, d, time=[0]), "refused", "time has 0 frames"),
    "a horizon below zero": (lambda w, d: judge(w, d, horizon=-1), "refused", "horizon is -1 times"),
    "a horizon of NaN": (lambda w, d: judge(w, d, horizon=float("nan")), "refused", "horizon is nan times"),
    "a horizon beyond the data": (lambda w, d: judge(w, d, horizon=100), "refused", "but the data end at 1"),
    "no such device": (lambda w, d: judge(w, d, device="gpu"), "refused", "The device is 'gpu'"),
    "a path for data": (lambda w, d: judge(w, "a.nc"), "refused", "got the path 'a.nc'. Open it with vcnef.open"),
    "no such model": (lambda w, d: judge(w, d, "nothing"), "refused", "There is no run or model folder nothing"),
    "a function of states": (lambda w, d: judge(w, d, lambda u0, t, p: u0), "refused", "gave u of shape"),
    "a function, times last": (
        lambda w, d: judge(w, d, lambda *asked: constant(*asked).transpose(1, 2)), "refused", "gave u of shape"
    ),
    "a function of five": (lambda w, d: judge(w, d, lambda a, b, c, d, e: a), "refused", "takes .a, b, c, d, e.; exp"),
    "a function of NaN": (lambda w, d: judge(w, d, lambda *each: np.nan * constant(*each)), "warned", "are not finite"),
}  # fmt: skip


@pytest.mark.parametrize("name", JUDGED)
def test_judged_data(world, ends, name):
    call, how, said = JUDGED[name]
    ends(lambda: call(world, world.data), how, said)


# What a second set has otherwise, and what is said of it.
OTHERS = {
    "channels": (lambda d: other(d, channels=("q", "h")), "their channels are"),
    "a unit": (lambda d: units(d, h="km"), "h is in km and m"),
    "sides": (lambda d: other(d, periodic=False), "only one of them is periodic"),
    "a domain": (lambda d: other(d, domain=((0.0, 1.001),)), "their domains are"),
    "points": (lambda d: replace(d, grid=d.grid + 0.001), "their points differ, by up to 0.001"),
    "times": (lambda d: replace(d, t=1.01 * d.t), "their times differ, by up to 0.01"),
    "a resolution": (lambda d: d.view(space_stride=2), "they have 16 and 32 points"),
    "names of parameters": (lambda d: other(d, parameters=("a", "c"), ranges={}), "their parameters are"),
    "a generation": (lambda d: replace(d, attributes={"generation": "2022"}), "their equation is of the generations"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_sets_of_another_kind(world, ends, writers, name):
    change, said = OTHERS[name]
    data = replace(world.data, attributes={"generation": "documented"})
    given = change(replace(data, u=1.001 * data.u))
    for which in ("valid", "test"):
        ends(lambda which=which: make_sets(data, 0.1, **{which: given}), "refused", f"The {which} set does .*{said}")
    paths = [each.save(writers.folder / f"{name}{number}.npz") for number, each in enumerate((data, given))]
    ends(lambda: library.open(paths), "refused", f"cannot be opened together: {said}")


def test_sets_of_another_equation(world, ends):
    given = other(replace(world.burgers_data, u=1.001 * world.burgers_data.u), name="advection")
    ends(lambda: make_sets(world.burgers_data, 0.1, valid=given), "refused", "of the equations advection and burgers")


def test_sets_in_another_order_of_parameters(world, ends):
    """They are known by name."""
    given = replace(world.data, u=1.001 * world.data.u, params=world.data.params.flip(1))
    sets = make_sets(world.data, 0.1, valid=other(given, parameters=("b", "a"), ranges={}))
    assert torch.equal(sets.valid.params, world.data.params)


OPENED = {
    "a stride of 0": ({"space_stride": 0}, "space_stride is 0; expected a positive whole number"),
    "a stride that does not fit": ({"space_stride": 3}, "32 points do not divide by space_stride 3"),
    "half a stride": ({"time_stride": 1.5}, "time_stride is 1.5; expected a positive whole number"),
    "a stride in words": ({"time_stride": "two"}, "time_stride is two; expected a positive whole number"),
    "a horizon below zero": ({"horizon": -1}, "leave only the first frame"),
    "a horizon of NaN": ({"horizon": float("nan")}, "leave only the first frame"),
    "a horizon in milliseconds": ({"horizon": 1000.0}, "horizon is 1000, but the data end at 1"),
    "two values for one file": ({"params": {"c": [1, 2]}}, "has 2 values for 1 file"),
    "a parameter in words": ({"params": {"c": "x"}}, r"params\['c'\] is 'x'; expected one number"),
    "a parameter of NaN": ({"params": {"c": float("nan")}}, "has NaN or infinity"),
    "a parameter like a coordinate": ({"params": {"x": 1.0}}, "which is the name of a coordinate"),
    "a parameter like a channel": ({"params": {"h": 1.0}}, "names a channel or parameter twice"),
    "another equation": ({"equation": "burgers"}, "The equation 'burgers' is 1D with the channels u"),
    "no equation": ({"equation": "water"}, "There is no equation 'water'"),
    "sides in words": ({"periodic": "yes"}, "periodic is 'yes'; expected True or False"),
    "sides of two axes": ({"periodic": (True, False)}, "for 2 axes; expected one value for each of x"),
    "sides of no axis": ({"periodic": {"q": False}}, "periodic names the axis 'q'"),
    "a layout beside names": ({"layout": "n t x c"}, "names its axes itself, but layout is 'n t x c'"),
}


@pytest.mark.parametrize("name", OPENED)
def test_how_files_are_opened(world, ends, writers, name):
    asked, said = OPENED[name]
    path = writers.saved(world.data, ".npz")
    ends(lambda: library.open(path, **asked), "refused", said)
