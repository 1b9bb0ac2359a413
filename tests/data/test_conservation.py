"""Which means stay in the data: found, named, doubted and refused."""

import warnings

import numpy as np
import pytest
import torch

import vcnef
from vcnef.config import Config
from vcnef.data import from_arrays
from vcnef.data.conservation import conserved_means

T = np.linspace(0, 1, 9)
X = (np.arange(16) + 0.5) / 16
TINY = {"width": 8, "heads": 2, "modulations": 1, "modes": 2, "patches": [2], "epochs": 1, "batch": 16}


def flowing(samples=8, drift=0.0, **given):
    """A wave that travels, whose mean drifts by this until the end, and one that decays."""
    rng = np.random.default_rng(0)
    size, mean = rng.uniform(0.5, 1, (samples, 1, 1)), rng.normal(size=(samples, 1, 1))
    wave = np.sin(2 * np.pi * (X - T[:, None]))
    rho = mean + drift * T[:, None] + size * wave
    heat = (1 + size * wave) * np.exp(-T[:, None])
    return from_arrays(np.stack((rho, heat), axis=-1), t=T, channels=["rho", "heat"], **({"x": X} | given))


def test_what_stays_is_found():
    found = conserved_means(flowing(), "auto")
    assert found.channels == ("rho",)
    assert found.why.startswith("in the data means drift by so much of their channel's spread at most: that of rho by ")
    nothing = conserved_means(flowing(drift=0.01), "auto")
    assert nothing.channels == ()
    assert "that of rho by " in nothing.why
    assert "that of heat by " in nothing.why


def test_a_logarithm_has_another_mean():
    assert conserved_means(flowing(), "auto", log=("rho",)).channels == ()
    with pytest.raises(ValueError, match=r"names rho, which data\.log has normalised in its logarithm"):
        conserved_means(flowing(), ["rho"], log=("rho",))


def test_a_channel_that_never_changes_is_left_alone():
    data = from_arrays(np.ones((4, 9, 16, 1)), t=T)
    assert conserved_means(data, "auto") == ((), "no channel changes")


@pytest.mark.parametrize(
    ("x", "why"),
    [(X**2, "the grid is uneven"), (np.random.default_rng(0).uniform(size=(16, 2)), "the points are scattered")],
)
def test_elsewhere_a_mean_over_points_is_no_integral(x, why):
    data = flowing(x=x)
    assert conserved_means(data, "auto") == ((), why)
    with pytest.raises(ValueError, match=f"data.conserve names rho, but {why}, so that a mean over points is no integ"):
        conserved_means(data, ["rho"])


def test_what_is_named_is_taken_and_doubted_where_data_speak_against_it():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert conserved_means(flowing(), ["rho"]).channels == ("rho",)
    with pytest.warns(UserWarning, match=r"names heat, but means drift by .* every answer will be wrong by as much"):
        assert conserved_means(flowing(), ["rho", "heat"]).channels == ("rho", "heat")
    with pytest.raises(ValueError, match=r"names 'roh', which is no channel\. Did you mean 'rho'"):
        conserved_means(flowing(), ["roh"])


def test_a_run_keeps_them_says_so_and_composes(tmp_path, capsys):
    data = flowing(16)
    vcnef.fit(data, preset="own/windows1d", conserve="auto", out=tmp_path / "run", **TINY)
    assert "\nconserved: the mean of rho; in the data means drift by " in capsys.readouterr().err
    surrogate = vcnef.load(tmp_path / "run")
    assert surrogate.provenance["conserved"]["channels"] == ["rho"]
    assert surrogate.options["conserved"] == (0,)
    u0, grid, t = data.u[:3, 0] + 0.1, data.grid, torch.tensor([0.03, 1.0, 5.0])
    u = surrogate.answer(u0, grid, t, data.params[:3])
    spread = data.u.std()
    torch.testing.assert_close(u[..., 0].mean(2), u0[..., 0].mean(1)[:, None].expand(3, 3), rtol=0, atol=1e-6 * spread)
    assert (u[..., 1].mean(2) - u0[..., 1].mean(1)[:, None]).abs().min() > 1e-4
    with pytest.warns(UserWarning, match="keeps the mean of rho over the points, which on an uneven grid is no integr"):
        surrogate.predict(data.u[:1, 0], [0.1], x=X**1.5)


def test_nothing_is_looked_for_unless_it_is_asked(tmp_path):
    run = vcnef.fit(flowing(16), preset="own/windows1d", conserve=[], out=tmp_path / "run", **TINY)
    assert "conserved" not in run.surrogate.provenance
    assert "conserved" not in run.surrogate.options
    assert Config.load("burgers/vcnef").data.conserve == ()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model": "fno", "width": 4, "modes": 2}, "data.conserve names rho, but 'fno' has no part that keeps means"),
        (
            {"symmetries": {"shift": True}, "space_stride": 2, "random_phases": True},
            "batches keep one of 2 points, whose mean is another one. Set data.conserve=",
        ),
    ],
)
def test_where_nothing_can_keep_them_names_are_refused(given, said, tmp_path):
    preset = {"preset": "own/windows1d", "epochs": 1, "out": tmp_path / "run"}
    with pytest.raises(ValueError, match=said):
        vcnef.fit(flowing(16), conserve=["rho"], **preset, **given)
