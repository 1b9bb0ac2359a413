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
