"""Files whose labels are those of other data, at every way in: opened, predicted from, and judged on."""

import numpy as np
import pytest

import vcnef as library
from vcnef.cli._initial_states import read_initial_states
from vcnef.evaluation import evaluate

SAMPLES, POINTS = 12, 32
X, T = (np.arange(POINTS) + 0.5) / POINTS, np.linspace(0, 1, 6)


def arrays(w, **changed):
    """What an .npz file of one's own holds; what is None is left out."""
    held = {"u": w.data.u.numpy().astype("f8"), "t": T, "x": X, "channels": ["h", "q"]}
    held |= {name: w.data.params[:, i].numpy() for i, name in enumerate("ab")}
    return {name: value for name, value in (held | changed).items() if value is not None}


def datasets(w, **changed):
    return {name: value for name, value in arrays(w, **changed).items() if name != "channels"}


NAMES = {"channels": ["h", "q"]}

# By name: the file, how opening, predicting from and judging on it end, and what is said.
PLAIN = {
    "good": ({}, ("right", "right", "noted"), ""),
    "channels exchanged": ({"channels": ["q", "h"]}, ("right", "warned", "refused"), "u0 has h between|h, q; the data"),
    "other channels": ({"channels": ["p", "v"]}, ("right", "refused", "refused"), "p, v"),
    "numbers for channels": ({"channels": [0, 1]}, ("right", "refused", "refused"), "0, 1"),
    "bytes for channels": ({"channels": np.array([b"h", b"q"])}, ("right", "right", "noted"), ""),
    "three channels": ({"channels": ["h", "q", "r"]}, ("refused",) * 3, "h, q, r|'h', 'q', 'r'"),
    "one channel": ({"channels": "h"}, ("refused",) * 3, "1 channels|has the channels h"),
    "channels twice": ({"channels": ["h", "h"]}, ("refused",) * 3, "h, h|'h', 'h'"),
    "time backwards": ({"t": T[::-1]}, ("refused",) * 3, "t is not increasing"),
    "points backwards": ({"x": X[::-1]}, ("refused",) * 3, "that is not increasing"),
    "points in kilometres": ({"x": X / 1000}, ("right", "warned", "noted"), "trained on 0 to 1|that of training was"),
    "time in another unit": ({"t": 30 * T}, ("right", "right", "noted"), "judged at t = 6, beyond the horizon 1 of"),
    "sides that end": ({"periodic": 0}, ("right", "warned", "noted"), "periodicity of these .* is along no axis"),
    "sides in words": ({"periodic": "no"}, ("refused",) * 3, "The note 'periodic' is 'no'; expected 1 or 0"),
    "sides counted": ({"periodic": 2}, ("refused",) * 3, "The note 'periodic' is 2; expected 1 or 0"),
    "a parameter of another name": ({"a": None, "speed": 1.0}, ("right", "warned", "refused"), "has speed|a is m"),
    "another parameter": ({"nu": 0.1}, ("right", "warned", "noted"), "has nu beside|know the parameter 'nu'"),
    "parameters without names": ({"params": np.ones((SAMPLES, 2))}, ("refused", "warned", "refused"), "params"),
    "a parameter of NaN": ({"a": np.full(SAMPLES, np.nan)}, ("refused",) * 3, "has NaN or infinity"),
    "a tiny parameter": ({"a": np.full(SAMPLES, 1e-46)}, ("refused",) * 3, "single precision"),
    "time by another name": ({"t": None, "time": T}, ("refused", "warned", "refused"), "'time' of shape|has time"),
    "units as an array": ({"units": ["km", "m2/s"]}, ("refused", "warned", "refused"), "'units' of|has units"),
    "points before times": ("n x t c", ("refused",) * 3, "Give layout='n x t c'"),
    "channels before times": ("n c t x", ("refused",) * 3, "Give layout='n c t x'"),
    "complex": (lambda u: u + 0j, ("refused",) * 3, "has complex128 of shape"),
    "texts": (lambda u: u.astype("U4"), ("refused",) * 3, "has <U4 of shape"),
    "NaN": (lambda u: np.where(u > 3, np.nan, u), ("refused",) * 3, "NaN or infinity in|non-finite"),
    "tiny": (lambda u: 1e-46 * u, ("refused",) * 3, "is up to 3.5e-46; single precision"),
    "one channel tiny": (lambda u: [1, 1e-46] * u, ("refused",) * 3, "'?q'?.* is up to (3|2.99)e-47"),
    "beyond all numbers": (lambda u: 1e200 * u, ("refused",) * 3, "single precision.* ends at 3.4e"),
}  # fmt: skip


def change(w, how):
    """The arrays, changed as a case says: some others, other axes, or other fields."""
    if isinstance(how, dict):
        return arrays(w, **how)
    u = arrays(w)["u"]
    if isinstance(how, str):
        return arrays(w, u=u.transpose(["ntxc".index(letter) for letter in how.replace(" ", "")]))
    return arrays(w, u=how(u))


def _predict(w, path):
    """From the states of a file."""
    states = read_initial_states(path, w.model.problem, {})
    if {"a", "b"} <= {*states.params}:  # what is missing is refused on the command line
        w.model.predict(states.u0, [0.5], states.params, states.x)


def judge(w, path):
    """The notes as warnings, but for those of a model that was not trained."""
    import warnings

    for note in evaluate(w.model, library.open(path), split="all", solver=False).notes:
        if "The model does not" not in note or "know the" in note:
            warnings.warn(note, UserWarning, stacklevel=1)


def enter(w, path, ends, doors, said):
    """Open, predict from and judge on a file; `noted` is warned of where something is said."""
    opened, predicted, judged = doors
    ends(lambda: library.open(path).u.numpy(), opened, said)

    ends(lambda: _predict(w, path), predicted, said)
    if judged != "noted":
        ends(lambda: judge(w, path), judged, said)
    else:
        ends(lambda: judge(w, path), "warned" if said else "right", said)


@pytest.mark.parametrize("name", PLAIN)
def test_npz_files(world, writers, ends, name):
    how, doors, said = PLAIN[name]
    enter(world, writers.npz(**change(world, how)), ends, doors, said)
