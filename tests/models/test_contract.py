"""Every model, in every dimension it has, with and without parameters: one interface."""

import weakref

import pytest
import torch

import vcnef
from vcnef.accelerate import predict
from vcnef.accelerate.trajectory import FastVCNeF
from vcnef.grid import cell_centres
from vcnef.models.registry import option_names

TINY = {
    "vcnef": {"width": 16, "heads": 2, "depth": 1, "modulations": 1},
    "fno": {"width": 4, "modes": 2, "depth": 2, "steps": 4},
    "oformer": {"width": 8, "scales": (2, 1), "heads": 2, "propagators": 1, "steps": 4},
    "mp_pde": {"width": 8, "depth": 2, "steps": 4},
    "unet": {"width": 4, "multipliers": (1, 2), "blocks": 1, "steps": 4},
    "galerkin": {"width": 8, "heads": 2, "depth": 2, "hidden": 8, "modes": 2, "spectral_width": 4, "steps": 4},
    "coral": {"latent": 8, "width": 8, "depth": 3, "dynamics_width": 8, "dynamics_depth": 1, "steps": 4},
    "pinn": {"width": 8, "depth": 2},
}
"""Options that make models small; those of a model that is not here are made small by their names, as `SMALL` says."""
SMALL = {"width": 8, "heads": 2, "depth": 2, "modes": 2, "steps": 4}


def small_options(name):
    return {option: SMALL[option] for option in option_names(name) if option in SMALL}


def dimensions(name):
    """The dimensions that a model is for, as its builder says."""
    known = []
    for ndim in (1, 2, 3):
        try:
            with torch.device("meta"):
                vcnef.build(name, ndim=ndim, channels=1, **TINY[name])
        except ValueError:
            continue
        known.append(ndim)
    return tuple(known)


TINY = {name: TINY.get(name) or small_options(name) for name in vcnef.list_models()}
DIMENSIONS = {name: dimensions(name) for name in TINY}
SIDES = {1: (12,), 2: (16, 8), 3: (8, 4, 6)}
CASES = [(name, ndim, params) for name in TINY for ndim in DIMENSIONS[name] for params in (0, 2)]


def test_models_are_for_the_dimensions_that_the_paper_has_them_in():
    assert all(DIMENSIONS[name] == (1, 2, 3) for name in ("vcnef", "fno", "unet", "coral", "pinn"))
    assert DIMENSIONS["galerkin"] == (1, 2)
    assert DIMENSIONS["oformer"] == DIMENSIONS["mp_pde"] == (1,)


@pytest.mark.parametrize(("name", "ndim", "params"), CASES)
def test_the_interface(name, ndim, params):
    model = vcnef.build(name, ndim=ndim, channels=2, params=params, **TINY[name])
    assert (model.ndim, model.channels, model.params) == (ndim, 2, params)
    u0, t = torch.randn(3, *SIDES[ndim], 2), torch.tensor([0.25, 0.5, 1.0])
    grid = cell_centres(((0.0, 1.0),) * ndim, SIDES[ndim])
    p = torch.rand(3, params) if params else None

    u = model(u0, grid, t, p)
    assert u.shape == (3, 3, *SIDES[ndim], 2)
    torch.testing.assert_close(predict(model, u0, grid, t, p, points_per_chunk=1), u, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(model.query(model.encode(u0, grid, p), t[1:]), u[:, 1:], rtol=1e-4, atol=1e-5)

    u.square().mean().backward()
    assert not [name for name, weight in model.named_parameters() if weight.grad is None]
    finer = tuple(2 * side for side in SIDES[ndim])
    fine = model(torch.randn(1, *finer, 2), cell_centres(((0.0, 1.0),) * ndim, finer), t, p if p is None else p[:1])
    assert fine.shape == (1, 3, *finer, 2)


def test_answers_are_not_in_memory_twice(monkeypatch):
    """No part is kept when the next one is asked for: all of them together are as large as the answer."""
    model, parts = vcnef.build("vcnef", ndim=1, channels=2, **TINY["vcnef"]), []
    answer = FastVCNeF._answer

    def watched(*given):
        assert not [each for each in parts if each() is not None]
        part = answer(*given)
        parts.append(weakref.ref(part))
        return part

    monkeypatch.setattr(FastVCNeF, "_answer", watched)
    predict(model, torch.randn(2, 12, 2), torch.rand(12, 1), torch.rand(7), points_per_chunk=2 * 12)
    assert len(parts) == 7


@pytest.mark.parametrize(("name", "ndim", "params"), CASES)
def test_nothing_is_asked(name, ndim, params):
    model = vcnef.build(name, ndim=ndim, channels=2, params=params, **TINY[name])
    grid = cell_centres(((0.0, 1.0),) * ndim, SIDES[ndim])
    for samples, times in ((0, 3), (2, 0)):
        u0, t, p = torch.randn(samples, *SIDES[ndim], 2), torch.ones(times), torch.rand(samples, params)
        assert predict(model, u0, grid, t, p if params else None).shape == (samples, times, *SIDES[ndim], 2)


@pytest.mark.parametrize("name", TINY)
def test_prediction_in_inference_mode(name):
    model = vcnef.build(name, ndim=1, channels=2, params=2, **TINY[name]).eval()
    inputs = torch.randn(3, 12, 2), torch.rand(12, 1), torch.tensor([0.5, 1.0]), torch.rand(3, 2)
    expected = predict(model, *inputs)
    with torch.inference_mode():
        torch.testing.assert_close(predict(model, *inputs), expected)
        torch.testing.assert_close(predict(model, *(each.clone() for each in inputs)), expected)


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-5), (torch.float16, 0.01), (torch.bfloat16, 0.08)])
@pytest.mark.parametrize("name", TINY)
def test_a_model_of_another_type(name, dtype, bound):
    """Converted as a whole, it takes and gives that type, and is the same function but for rounding."""
    ndim = DIMENSIONS[name][-1]
    model = vcnef.build(name, ndim=ndim, channels=2, params=2, **TINY[name])
    grid = cell_centres(((0.0, 1.0),) * ndim, SIDES[ndim])
    inputs = torch.randn(3, *SIDES[ndim], 2), grid, torch.tensor([0.25, 0.5]), torch.rand(3, 2)
    expected = model(*inputs)
    u = model.to(dtype)(*(each.to(dtype) for each in inputs))
    assert u.dtype == dtype
    assert (u - expected).norm() < bound * expected.norm()
    u.float().square().mean().backward()


@pytest.mark.parametrize(("name", "ndim", "params"), CASES)
def test_weights_survive_a_state_dict(name, ndim, params):
    first, second = (vcnef.build(name, ndim=ndim, channels=1, params=params, **TINY[name]) for _ in range(2))
    second.load_state_dict(first.state_dict())
    u0, grid = torch.randn(2, *SIDES[ndim], 1), cell_centres(((0.0, 1.0),) * ndim, SIDES[ndim])
    p = torch.rand(2, params) if params else None
    assert torch.equal(first(u0, grid, torch.tensor([0.5]), p), second(u0, grid, torch.tensor([0.5]), p))
