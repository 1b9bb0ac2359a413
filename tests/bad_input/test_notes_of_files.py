"""Files that say of themselves what is not so, or is so of other data: units, problems, and where they come from."""

import json
import warnings

import h5py
import numpy as np
import pytest

import vcnef as library
from vcnef.cli._initial_states import read_initial_states
from vcnef.evaluation import evaluate

X, T = (np.arange(32) + 0.5) / 32, np.linspace(0, 1, 6)
NAMES = {"channels": ["h", "q"]}


def datasets(w):
    """What an HDF5 file of one's own holds."""
    params = {name: w.data.params[:, i].numpy() for i, name in enumerate("ab")}
    return {"u": w.data.u.numpy(), "t": T, "x": X, **params}


def judge(w, path):
    """The notes as warnings, but for those of a model that was not trained."""
    for note in evaluate(w.model, library.open(path), split="all", solver=False).notes:
        if "The model does not" not in note:
            warnings.warn(note, UserWarning, stacklevel=1)


UNITS = {
    "of times": ({"t": "fortnight"}, "t is in 'fortnight'"),
    "of points": ({"x": "furlong"}, "x is in 'furlong'"),
    "of a parameter": ({"a": "knots"}, "a is in 'knots'"),
    "of all channels": ({"u": "km"}, "q is in 'km'"),
    "of each channel": ({"u": ["furlong", "m2/s"]}, "h is in 'furlong'"),
    "of too few channels": ({"u": ["m", "m", "m"]}, "the units are m, m, m, for the 2 channels"),
    "in bytes": ({"t": np.bytes_("fortnight")}, "t is in 'fortnight'"),
}


@pytest.mark.parametrize("name", UNITS)
def test_units_of_hdf5_datasets(world, writers, ends, name):
    units, said = UNITS[name]
    path = writers.hdf5(datasets(world), NAMES, units)
    ends(lambda: read_initial_states(path, world.model.problem, {}), "refused", said)
    ends(lambda: evaluate(world.model, library.open(path), split="all", solver=False), "refused", said)


def test_units_that_are_the_same_or_are_told(world, writers, ends):
    right = {"t": "sec", "x": "m", "a": "m s-1", "u": ["m", "m²/s"]}
    path = writers.hdf5(datasets(world), NAMES, right)
    assert library.open(path).problem.units == {"t": "sec", "x": "m", "a": "m s-1", "h": "m", "q": "m²/s"}
    ends(lambda: judge(world, path), "right")
    other = writers.hdf5(datasets(world), NAMES, {"a": "km/h"})
    assert "a" not in library.open(other, params={"a": 1.0}).problem.units
    ends(lambda: read_initial_states(other, world.model.problem, {"a": 1.0}) and None, "right")


@pytest.mark.parametrize("key", ["t-coordinate", "x-coordinate", "h"])
def test_units_of_datasets_beside_a_note(world, writers, ends, key):
    path = writers.saved(world.data, ".hdf5")
    with h5py.File(path, "r+") as file:
        file[key].attrs["units"] = "furlong"
    ends(lambda: library.open(path), "refused", "is in 'furlong' in its dataset and in '[ms]' in its note 'problem'")


NOTES = {
    "units as a list": ({"units": ["m"]}, "The units of problem 'custom' are"),
    "a unit as a number": ({"units": {"h": 3}}, "The unit of h in problem 'custom' is 3; expected a text"),
    "no name": ({"name": None}, "The name of a problem is None; expected a text"),
    "channels as a text": ({"channels": "hq"}, "The channels of a problem are 'hq'; expected a list"),
    "other sides in words": ({"periodic": "no"}, "periodic is 'no'; expected True or False"),
    "sides of two axes": ({"periodic": [True, False]}, "for 2 axes; expected one value for each of x"),
    "a domain of two axes": ({"domain": [[0, 1], [0, 1]]}, "a domain of 2 axes, but points along 1"),
    "a domain backwards": ({"domain": [[1, 0]]}, "expected finite low < high"),
    "a domain of one end": ({"domain": [[1]]}, r"The domain of a problem has \[1\]; expected two numbers"),
    "parameters that vary, of no name": ({"varying": ["z"]}, "has varying .'z'., not among"),
    "fewer parameters": ({"parameters": ["a"], "ranges": {}}, "has 'params' of shape"),
    "ranges of no parameter": ({"ranges": {"c": [0, 1]}}, "has ranges for .'c'., not among"),
    "a field too many": ({"colour": "blue"}, "A problem has no field .'colour'."),
}


@pytest.mark.parametrize("suffix", [".npz", ".hdf5"])
@pytest.mark.parametrize("name", NOTES)
def test_notes_of_problems(world, writers, ends, suffix, name):
    changed, said = NOTES[name]
    path = writers.saved(world.data, suffix, **changed)
    ends(lambda: library.open(path), "refused", said)
    ends(lambda: read_initial_states(path, world.model.problem, {}), "refused", said)


OTHERS = {
    "units": ({"units": {"h": "furlong"}}, "refused", "h is in 'furlong'"),
    "units that can be converted": ({"units": {"h": "km"}}, "warned", "h of .* is in 'km' and was multiplied by 1000"),
    "channels": ({"channels": ["q", "h"]}, "refused", "channels q, h"),
    "sides": ({"periodic": False}, "warned", "The periodicity of these states is along no axis"),
    "domain": ({"domain": [[0, 2]]}, "warned", "The periodicity of these states is along no axis"),
    "parameters": ({"parameters": ["a", "nu"], "ranges": {}}, "warned", "does not know the parameter 'nu'"),
}


@pytest.mark.parametrize("suffix", [".npz", ".hdf5"])
@pytest.mark.parametrize("name", OTHERS)
def test_what_files_of_ours_say_is_compared(world, writers, ends, suffix, name):
    changed, how, said = OTHERS[name]
    path = writers.saved(world.data, suffix, **changed)
    ends(lambda: read_initial_states(path, world.model.problem, {}), how, said)


def test_another_equation(world, writers, ends):
    path = writers.saved(world.burgers_data, ".npz", name="advection")
    said = "The equation of these states is advection, that of training was burgers"
    ends(lambda: read_initial_states(path, world.burgers.problem, {}), "warned", said)


ORIGINS = {
    "no JSON": ("{", "the note 'vcnef' is '{', which is no JSON object"),
    "a list": ("[1]", "which is no JSON object"),
    "other parts": ({"parts": [3]}, "counts 3 trajectories, but there are 12"),
    "parts in words": ({"parts": "ab"}, "has parts 'ab'; expected a list of numbers"),
    "parts below zero": ({"parts": [-1, 13]}, "expected a list of numbers of trajectories"),
    "halves of parts": ({"parts": [6.5, 5.5]}, "expected a list of numbers of trajectories"),
    "an unknown split": ({"subset": "half"}, "has subset 'half'; expected one of train, valid, test"),
    "an order in words": ({"split_in_order": "no"}, "has split_in_order 'no'; expected true or false"),
    "a list of attributes": ({"attributes": [1]}, "has attributes .1.; expected values by name"),
}


@pytest.mark.parametrize("name", ORIGINS)
def test_notes_of_origins(world, writers, ends, name):
    note, said = ORIGINS[name]
    text = note if isinstance(note, str) else json.dumps(note)
    ends(lambda: library.open(writers.npz(**datasets(world), **NAMES, vcnef=text)), "refused", said)
