"""Arrays of any shape and type: taken, or refused in a sentence; what is taken is saved and read as it was."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import vcnef as library
from vcnef.data import from_arrays
from vcnef.pde import solve

pytestmark = pytest.mark.slow
FUZZ = settings.get_profile("fuzz")
kinds = st.one_of(
    arrays.floating_dtypes(), arrays.integer_dtypes(), arrays.complex_number_dtypes(), arrays.boolean_dtypes(),
    arrays.byte_string_dtypes(), arrays.unicode_string_dtypes(), arrays.datetime64_dtypes(),
)  # fmt: skip
shapes = arrays.array_shapes(min_dims=0, max_dims=6, min_side=0, max_side=5)
any_arrays = kinds.flatmap(lambda kind: arrays.arrays(kind, shapes))
things = st.one_of(
    any_arrays, any_arrays.map(lambda array: array.tolist()), st.none(), st.integers(), st.floats(),
    st.text(max_size=5), st.dictionaries(st.text(max_size=3), st.floats(), max_size=2),
)  # fmt: skip
good = arrays.arrays(
    np.float64, arrays.array_shapes(min_dims=4, max_dims=4, min_side=2, max_side=5), elements=st.floats(-1e3, 1e3)
)


@settings(FUZZ)
@given(u=st.one_of(good, things), t=st.one_of(st.none(), things), x=st.one_of(st.none(), things),
       params=st.one_of(st.none(), things, st.dictionaries(st.sampled_from(["nu", "t", "", 3]), things)))  # fmt: skip
def test_data(u, t, x, params, attempt, tmp_path_factory):
    data = attempt(from_arrays, u, t=t, x=x, params=params)
    if data is None:
        return
    assert torch.isfinite(data.u).all()
    folder = tmp_path_factory.mktemp("saved")
    for suffix in (".npz", ".nc", ".hdf5"):
        path = attempt(data.save, folder / f"d{suffix}")
        again = None if path is None else attempt(library.open, path)
        if path is not None:
            assert again is not None, f"{path.name} was written and cannot be read"
            assert torch.equal(again.u, data.u)
            assert torch.equal(again.t, data.t)
            assert torch.equal(again.params, data.params)


@pytest.fixture(scope="module")
def surrogate():
    return library.load("burgers")


states = st.one_of(arrays.arrays(np.float32, (2, 8, 1), elements=st.floats(-2, 2, width=32)), things)


@settings(FUZZ)
@given(u0=states, t=st.one_of(st.just([0.5]), things), x=st.one_of(st.none(), things),
       nu=st.one_of(st.just(0.01), things))  # fmt: skip
def test_predictions(surrogate, u0, t, x, nu, attempt):
    answer = attempt(surrogate.predict, u0, t, {"nu": nu}, x)
    if answer is not None:
        assert answer.dims[-1] == "channel"


@settings(FUZZ)
@given(u0=states, t=st.one_of(st.just([0.0, 0.1]), things), nu=st.one_of(st.just(0.01), things))
def test_solutions(u0, t, nu, attempt):
    attempt(solve, "burgers", u0, t=t, params={"nu": nu})
