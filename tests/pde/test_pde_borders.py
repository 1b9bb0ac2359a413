"""What a user's mistakes are answered with: what was expected and got, then what to do."""

import jaxtyping
import numpy as np
import pytest
import torch
import xarray as xr

from vcnef.pde import EQUATIONS, Equation, equation, solve

BENCHMARK = ("advection", "burgers", "cns1d", "cns2d", "cns3d")
GAS = np.ones((2, 16, 3), dtype=np.float32)


def test_names():
    assert {*BENCHMARK} <= {*EQUATIONS}
    with pytest.raises(ValueError, match=r"no equation 'burger'. Did you mean 'burgers'"):
        equation("burger")
    with pytest.raises(ValueError, match=r"no equation 'plasma'. Use one of advection, burgers"):
        equation("plasma")
    with pytest.raises(ValueError, match=r"no generation '2023' of 'burgers'. Did you mean '2022'"):
        equation("burgers", generation="2023")
    with pytest.raises(ValueError, match=r"no option of the initial states 'mach_number'. Did you mean 'mach'"):
        equation("cns2d").initial_states([0], seed=0, resolution=8, mach_number=1.0)
    with pytest.raises(ValueError, match="modes is 0; expected at least 1"):
        equation("cns1d").initial_states([0], seed=0, resolution=8, modes=0)
    with pytest.raises(ValueError, match=r"'burgers' has no parameter 'mu'. Did you mean 'nu'"):
        equation("burgers").solve(torch.zeros(1, 8, 1), [0.1], {"mu": 0.1})


@pytest.mark.parametrize(
    ("name", "u0", "options", "message"),
    [
        ("burgers", np.zeros((4, 32)), {}, r"u0 has 2 axes \(4, 32\); 'burgers' expects 3.*u0\[..., None\]"),
        (
            "cns1d",
            np.ones((4, 32, 1)),
            {},
            "1 channels on its last axis; 'cns1d' expects 3. Stack .*density, pressure, vx",
        ),
        ("cns1d", GAS[:0], {}, r"u0 has shape \(0, 16, 3\), which is no sample; expected at least one. Give some"),
        ("burgers", np.zeros((4, 3, 1)), {}, r"u0 has \(3,\) cells; expected at least 4"),
        ("burgers", np.full((4, 8, 1), np.nan), {}, "u0 has 32 values that are not finite"),
        ("cns1d", GAS * [1, -2, 1], {}, "pressure of u0 goes down to -2; expected more than 1e-08.*pressure, vx"),
        ("cns1d", GAS * [1, 1e-9, 1], {}, "pressure of u0 goes down to 1e-09; expected more than 1e-08.*other units"),
        ("cns1d", GAS * [0, 1, 1], {}, "density of u0 goes down to 0; expected more than 0"),
        ("cns1d", GAS, {"t": []}, r"t has shape \(0,\); expected a list of output times"),
        ("cns1d", GAS, {"t": [0.2, 0.1]}, "Output times run from 0.2 to 0.1 and are not finite, ascending"),
        ("cns1d", GAS, {"t": [-0.2, 0.1]}, "count time from the state u0"),
        ("cns1d", GAS, {"params": {"etta": 0.1}}, "'cns1d' has no parameter 'etta'. Did you mean 'eta'"),
        ("cns1d", GAS, {"params": {"eta": [0.1, 0.2, 0.3]}}, r"'eta' has shape \(3,\); expected a number or 2"),
        ("cns1d", GAS, {"params": {"eta": -0.1}}, "'eta' is negative: -0.1. A viscosity is zero or more"),
        ("cns1d", GAS, {"params": {"eta": np.inf}}, "'eta' is not finite: inf"),
        ("cns1d", GAS * 1j, {}, "u0 is of type complex64; expected real numbers. Give an array of them"),
        ("cns1d", "states", {}, "u0 is of type <U6; expected real numbers"),
        ("cns1d", GAS, {"t": ["noon"]}, "t is of type <U4; expected real numbers"),
        ("cns1d", GAS, {"params": {"eta": "thick"}}, "'eta' is 'thick'; expected a number, or one per sample"),
        ("cns1d", GAS, {"params": [0.1]}, r"Parameters are \[0.1\]; expected values by name, e.g. {'eta'"),
        ("cns1d", GAS, {"domain": [(0, 1), (0, 1)]}, "The domain has 2 axes; 'cns1d' has 1. Give one"),
        ("cns1d", GAS, {"domain": [(0, 1, 2)]}, r"The domain has the axis \(0, 1, 2\); expected a \(low, high\) pair"),
        ("cns1d", GAS, {"domain": [(0, 0)]}, r"The domain has the axis \(0, 0\); expected finite ends, the lower one"),
        ("cns1d", GAS, {"domain": [(1, 0)]}, r"The domain has the axis \(1, 0\)"),
    ],
)
def test_solve_says_what_is_wrong(name, u0, options, message, monkeypatch):
    # The tests' own checks of types would speak first.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=message):
        solve(name, u0, **{"t": [0.1], **options})


def test_an_equation_refuses_what_is_no_viscosity_whoever_asks():
    with pytest.raises(ValueError, match=r"'eta' is negative: -0.1. A viscosity is zero or more"):
        equation("cns1d").solve(torch.from_numpy(GAS), [0.1], {"eta": -0.1})
    with pytest.raises(ValueError, match="'nu' is not finite: nan"):
        equation("burgers").solve(torch.ones(2, 8, 1), [0.1], {"nu": torch.tensor([0.1, torch.nan])})


def test_solve_takes_numpy_and_torch_and_keeps_double_precision():
    u0 = np.sin(2 * np.pi * (np.arange(32) + 0.5) / 32)[None, :, None]
    assert solve("burgers", u0, t=np.array([0.0, 0.1])).dtype == torch.float64
    single = solve("burgers", u0.astype(np.float32), t=[0.0, 0.1], params={"nu": np.float64(0.01)})
    assert single.dtype == torch.float32
    assert single.shape == (1, 2, 32, 1)
    # Labelled, backwards, and in the order of bytes of other machines.
    labelled = xr.DataArray(u0[:, ::-1].astype(">f4"), dims=("sample", "x", "channel"))
    t = xr.DataArray([0.0, 0.1], dims="t")
    assert torch.equal(solve("burgers", labelled, t=t, params={"nu": 0.01})[:, 0], single[:, 0].flip(1))


def test_sizes_and_defaults_are_the_benchmarks():
    sizes = {name: (e.resolution, e.frames, e.horizon) for name, e in ((n, equation(n)) for n in BENCHMARK)}
    assert sizes["advection"] == sizes["burgers"] == (1024, 201, 2.0)
    assert sizes["cns1d"] == (1024, 101, 1.0)
    assert sizes["cns2d"] == sizes["cns3d"] == (128, 21, 1.0)
    assert [equation(n).defaults for n in BENCHMARK] == [
        {"beta": 0.1},
        {"nu": 0.001},
        {"eta": 0.007, "zeta": 0.007},
        {"eta": 0.01, "zeta": 0.01},
        {"eta": 1e-8, "zeta": 1e-8},
    ]


def test_a_parameter_of_an_equation_of_ones_own_may_be_negative():
    def solver(u0, times, params, spacing, **options):
        return torch.ones(2, 1, 8, 1) * params["drift"].view(-1, 1, 1, 1)

    own = Equation("own", parameters={"drift": 1.0}, solver=solver)
    assert (own.solve(torch.zeros(2, 8, 1), [0.1], {"drift": -1.0}) == -1.0).all()
