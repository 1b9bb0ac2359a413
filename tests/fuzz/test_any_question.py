"""Questions to the explorer of any JSON: answered, or refused in a sentence."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vcnef.data import from_arrays
from vcnef.explorer import Workbench
from vcnef.surrogate import Surrogate

pytestmark = pytest.mark.slow
FUZZ = settings.get_profile("fuzz")
TINY = {"width": 16, "heads": 2, "depth": 1, "modulations": 1, "patches": ()}

plain = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8))
anything = st.recursive(
    plain,
    lambda each: st.lists(each, max_size=4) | st.dictionaries(st.text(max_size=8), each, max_size=4),
    max_leaves=8,
)
numbers = st.lists(st.floats(-5, 5), max_size=6)
state = st.fixed_dictionaries(
    {},
    optional={
        "preset": st.sampled_from(["sine", "waves", "bump"]) | anything,
        "seed": st.integers(0, 9) | anything,
        "modes": st.dictionaries(st.sampled_from(["u", "v"]), numbers | anything, max_size=2) | anything,
        "drawn": st.dictionaries(st.sampled_from(["u", "v"]), numbers | anything, max_size=2) | anything,
    },
)
questions = st.fixed_dictionaries(
    {},
    optional={
        "model": st.just(0) | anything,
        "state": state | anything,
        "params": st.dictionaries(st.sampled_from(["nu", "mu"]), st.floats(0, 1) | anything, max_size=2) | anything,
        "last": st.floats(0, 3) | anything,
        "times": st.integers(0, 9) | anything,
        "points": st.integers(0, 70) | anything,
        "page": anything,
    },
)


@pytest.fixture(scope="module")
def workbench():
    x, nu = (np.arange(8) + 0.5) / 8, np.linspace(0.01, 0.1, 6)
    u = np.sin(2 * np.pi * (x + nu[:, None]))[:, None, :, None] * np.linspace(1, 0.5, 4)[:, None, None]
    data = from_arrays(u, t=np.linspace(0, 1, 4), x=x, params={"nu": nu}, name="burgers")
    return Workbench({"tiny": Surrogate.build("vcnef", TINY, data, seed=0)})


@settings(FUZZ)
@given(asked=st.one_of(questions, st.dictionaries(st.text(max_size=8), anything, max_size=3)))
def test_questions(workbench, asked, attempt):
    # As it comes from a page: what Python holds and JSON does not is no question.
    ask = attempt(workbench.read, json.loads(json.dumps(asked)))
    if ask is not None:
        answer = attempt(workbench.predict, ask)
        assert answer is None or np.isfinite(np.asarray(answer.u)).all()
