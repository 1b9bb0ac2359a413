"""One thread: the tests share few cores, and sums are then always in the same order."""

from pathlib import Path
from runpy import run_path
from types import SimpleNamespace

import pytest
import torch

SCRIPT = Path(__file__).with_name("decaying_modes.py")


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def world():
    """The functions of `decaying_modes.py`."""
    return SimpleNamespace(**run_path(str(SCRIPT)), script=SCRIPT)


@pytest.fixture
def data(world):
    return world.make_data()


@pytest.fixture
def fit_quickly(world, data):
    """Train the tiny network, by default for one epoch of five steps."""
    from vcnef.training import Recipe, fit

    def train(*, options=(), train=None, valid=None, out=None, arguments=(), **recipe):
        surrogate = world.make_surrogate(data, **dict(options))
        settings = Recipe(**{"epochs": 1, "batch": 4} | recipe)
        splits = train or data.split("train", valid=0.2), valid or data.split("valid", valid=0.2)
        return fit(surrogate, *splits, settings, out=out, **{"devices": "cpu"} | dict(arguments))

    return train


@pytest.fixture
def check_gradients():
    """A check of the gradient of all weights against a difference along a random direction; models are in double."""

    def check(loss, model, batch):
        weights = list(model.parameters())
        loss(model, batch, 0.5).backward()
        direction = [torch.randn_like(w) for w in weights]
        slope = sum((w.grad * d).sum() for w, d in zip(weights, direction, strict=True))
        step, values = 1e-7, []
        for sign in (1, -2):
            with torch.no_grad():
                for w, d in zip(weights, direction, strict=True):
                    w += sign * step * d
            values.append(loss(model, batch, 0.5).detach())
        torch.testing.assert_close((values[0] - values[1]) / (2 * step), slope, rtol=1e-4, atol=1e-8)

    return check
