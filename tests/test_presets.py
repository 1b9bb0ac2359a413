"""Every preset: it says how to run it, fits its data, and builds the model that the paper describes."""

import numpy as np
import pytest
import torch

from vcnef import build
from vcnef.config import Config
from vcnef.data import View
from vcnef.pde import equation
from vcnef.presets import FOLDER, find_preset, list_presets

PAPER = {
    # epochs, batch, largest learning rate, weights, parameters that those count, frames
    "burgers/vcnef": (500, 32, 3e-4, 793_825, 1, 41),
    "advection/vcnef": (500, 64, 6e-4, 793_825, 1, 41),
    "cns1d/vcnef": (500, 64, 4e-4, 794_307, 2, 41),
    "cns2d/vcnef": (1000, 64, 3e-4, 11_779_436, 0, 21),
    "cns3d/vcnef": (1000, 4, 3e-4, 27_335_041, 0, 11),
    "burgers/fno": (500, 64, 1e-4, 549_569, 0, 41),
    "advection/fno": (500, 64, 1e-4, 549_569, 0, 41),
    "cns1d/fno": (500, 64, 6e-5, 549_955, 0, 41),
    "cns2d/fno": (500, 64, 3e-4, 9_453_716, 0, 21),
    "cns3d/fno": (1000, 4, 3e-4, 22_123_593, 0, 11),
}
RESOLUTION = {1: 256, 2: 64, 3: 32}


def build_on_meta(config, channels, params):
    with torch.device("meta"):
        return build(config.model.name, ndim=config.data.ndim, channels=channels, params=params, **config.model.options)


def weights(model):
    # A complex weight is two numbers.
    return sum(each.numel() * (1 + each.is_complex()) for each in model.parameters())


@pytest.mark.parametrize("name", list_presets())
def test_the_header_says_how_to_run_it(name):
    header = [line for line in find_preset(name).read_text().splitlines() if line.startswith("#")]
    assert header[0].removeprefix("# ") == list_presets()[name]
    assert any(f"vcnef train {name} --data " in line for line in header)
    assert all(len(line) <= 120 for line in header if not line.startswith("#   "))


@pytest.mark.parametrize("name", list_presets())
def test_the_model_can_be_built(name):
    config = Config.load(name)
    assert weights(build_on_meta(config, channels=config.data.ndim + 2, params=2)) > 0


@pytest.mark.parametrize("name", PAPER)
def test_values_and_sizes_are_the_papers(name):
    epochs, batch, rate, count, params, frames = PAPER[name]
    config = Config.load(name)
    assert (config.train.epochs, config.train.batch, config.train.learning_rate) == (epochs, batch, rate)
    assert config.train.loss == "mse"
    assert not config.data.normalise
    schedule = {"vcnef": ("one_cycle", 0.2, 100, 0.5), "fno": ("step", 0.2, 100, 0.5)}[config.model.name]
    recipe = config.train
    assert (recipe.schedule, recipe.warm_up, recipe.step_epochs, recipe.step_factor) == schedule

    equations = equation(name.split("/")[0])
    assert weights(build_on_meta(config, len(equations.problem.channels), params)) == count

    view = View(config.data.space_stride, config.data.time_stride, config.data.horizon)
    times = np.linspace(0, equations.horizon, equations.frames)
    assert len(times[view.frames(times)]) == frames
    assert equations.resolution // view.space_stride == RESOLUTION[config.data.ndim]


@pytest.mark.parametrize("pde", ["burgers", "advection", "cns1d", "cns2d", "cns3d"])
def test_randomised_starts_are_the_same_recipe_with_more_passes(pde):
    randomised, plain = Config.load(f"{pde}/vcnef_r"), Config.load(f"{pde}/vcnef")
    assert randomised.override(["passes=0"]) == plain
    assert randomised.data.passes == (9 if pde == "cns3d" else 10)
    randomised.queries().check(PAPER[f"{pde}/vcnef"][-1])


@pytest.mark.parametrize("name", [name for name in list_presets() if name.startswith("debug/")])
def test_debug_presets_are_tiny(name):
    config = Config.load(name)
    assert config.train.epochs == 2
    assert weights(build_on_meta(config, channels=5, params=2)) < 100_000


@pytest.mark.parametrize("name", [f"own/{size}{ndim}d" for size in ("small", "large") for ndim in (1, 2, 3)])
def test_presets_for_own_data_normalise_and_minimise_what_is_measured(name):
    config = Config.load(name)
    assert config.data.normalise
    assert config.train.loss == "relative"
    assert config.data.ndim == int(name[-2])


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("burger/vcnf", ". Did you mean 'burgers/vcnef' or 'burgers/vcnef_r'? List them with `vcnef presets`"),
        ("burgers", ". Did you mean 'burgers/"),
        ("zzz", ". List them with `vcnef presets`, or give the path of a YAML file."),
    ],
)
def test_an_unknown_preset(name, hint):
    with pytest.raises(ValueError) as caught:
        Config.load(name)
    assert str(caught.value).startswith(f"There is no preset {name!r}{hint}")


def test_presets_lie_inside_the_package():
    import vcnef

    assert FOLDER.parent.samefile(vcnef.__path__[0])
