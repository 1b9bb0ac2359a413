"""Every preset: it says how to run it, fits its data, and builds the model that the paper describes."""

import numpy as np
import pytest
import torch

from vcnef import build
from vcnef.config import Config
from vcnef.data import View, from_arrays
from vcnef.pde import equation
from vcnef.presets import FOLDER, find_preset, list_presets
from vcnef.workflow import load, train

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
    "burgers/oformer": (500, 64, 6e-5, 660_814, 1, 41),
    "advection/oformer": (500, 64, 6e-5, 660_814, 1, 41),
    "cns1d/oformer": (500, 64, 6e-5, 662_733, 2, 41),
    "burgers/mp_pde": (20 * 41, 64, 1e-4, 614_929, 1, 41),  # an epoch of the original is a pass per frame
    "advection/mp_pde": (20 * 41, 64, 1e-4, 614_929, 1, 41),
    "burgers/unet": (500, 256, 3e-3, 557_137, 1, 41),
    "advection/unet": (500, 256, 3e-3, 557_137, 1, 41),
    "cns1d/unet": (500, 256, 3e-3, 562_579, 2, 41),
    "cns2d/unet": (500, 256, 3e-3, 9_187_284, 3, 21),
    "burgers/galerkin": (500, 64, 1e-5, 530_305, 0, 41),
    "advection/galerkin": (500, 64, 1e-5, 530_305, 0, 41),
    "cns1d/galerkin": (500, 64, 1e-5, 530_595, 0, 41),
    "cns2d/galerkin": (500, 64, 8e-5, 8_053_091, 0, 21),
    "burgers/coral": (1500, 64, 1e-3, 1_381_125, 0, 41),
    "advection/coral": (1500, 64, 1e-3, 1_381_125, 0, 41),
    "cns1d/coral": (1500, 64, 1e-3, 1_381_639, 0, 41),
}
SCHEDULE = {
    "vcnef": "one_cycle",
    "fno": "step",
    "oformer": "one_cycle",
    "mp_pde": "multi_step",
    "unet": "step",
    "galerkin": "one_cycle",
    "coral": "constant",
}
RESOLUTION = {1: 256, 2: 64, 3: 32}


def build_on_meta(config, channels, params):
    ndim, options = config.data.ndim, config.model.options
    # What the data say of themselves when a surrogate is built.
    facts = {"sides": (64,) * ndim} if options.get("local") else {}
    with torch.device("meta"):
        return build(config.model.name, ndim=ndim, channels=channels, params=params, **options, **facts)


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
    assert config.data.normalise == (config.model.name == "coral")
    recipe = config.train
    schedule = SCHEDULE[config.model.name]
    factor = {"mp_pde": 0.4}.get(config.model.name, 0.5)
    assert (recipe.schedule, recipe.warm_up, recipe.step_epochs, recipe.step_factor) == (schedule, 0.2, 100, factor)

    equations = equation(name.split("/")[0])
    assert weights(build_on_meta(config, len(equations.problem.channels), params)) == count

    view = View(config.data.space_stride, config.data.time_stride, config.data.horizon)
    times = np.linspace(0, equations.horizon, equations.frames)
    assert len(times[view.frames(times)]) == frames
    assert equations.resolution // view.space_stride == RESOLUTION[config.data.ndim]


@pytest.mark.parametrize("pde", ["burgers", "advection", "cns1d"])
def test_oformer_learns_by_a_curriculum(pde):
    recipe = Config.load(f"{pde}/oformer").train
    assert (recipe.unroll, recipe.input_noise) == ("curriculum", 0.001)


@pytest.mark.parametrize("pde", ["burgers", "advection"])
def test_mp_pde_learns_by_pushing_forward(pde):
    recipe = Config.load(f"{pde}/mp_pde").train
    assert (recipe.unroll, recipe.optimiser, recipe.weight_decay) == ("push_forward", "adamw", 0.01)
    assert recipe.milestones == tuple(41 * epoch for epoch in (1, 5, 10, 15))


@pytest.mark.parametrize("pde", ["burgers", "advection", "cns1d"])
def test_coral_learns_in_two_stages(pde):
    recipe = Config.load(f"{pde}/coral").train
    assert recipe.unroll == "two_stage"
    assert {recipe.learning_rate * recipe.rates[name] for name in ("siren", "inner_rate")} == {5e-6}


@pytest.mark.parametrize("pde", ["burgers", "advection"])
def test_a_pinn_never_sees_the_truth(pde):
    config = Config.load(f"{pde}/pinn")
    assert (config.data.instance, config.data.valid, config.train.data_weight, config.train.physics) == (0, 0, 0, 1)
    assert (config.train.epochs, weights(build_on_meta(config, channels=1, params=1))) == (15_000, 8_401)


@pytest.mark.parametrize("pde", ["burgers", "advection", "cns1d", "cns2d", "cns3d"])
def test_randomised_starts_are_the_same_recipe_with_more_passes(pde):
    randomised, plain = Config.load(f"{pde}/vcnef_r"), Config.load(f"{pde}/vcnef")
    assert randomised.override(["passes=0"]) == plain
    assert randomised.data.passes == (9 if pde == "cns3d" else 10)
    randomised.queries().check(PAPER[f"{pde}/vcnef"][-1])


PLUS = {"burgers": 41, "advection": 41, "cns1d": 41, "cns2d": 21, "cns3d": 11}
TINY = {
    1: {"width": 16, "heads": 2, "depth": 1, "modulations": 1},
    2: {"width": 16, "heads": 2, "modulations": 1, "patches": [2, 4]},
    3: {"width": 16, "heads": 2, "modulations": 1, "patches": [2, 4]},
}
SIDE = {1: 32, 2: 16, 3: 16}
OWN_SIZES = {"cns3d": ("width", "patches")}
"""Of a network that has to learn from few trajectories."""


@pytest.mark.parametrize("pde", PLUS)
def test_the_network_of_vcnef_plus_sees_what_the_papers_sees(pde):
    plus, plain = Config.load(f"{pde}/vcnef_plus"), Config.load(f"{pde}/vcnef")
    options, view = plus.model.options, ("ndim", "space_stride", "time_stride", "horizon")
    kept = {name: value for name, value in plain.model.options.items() if name not in OWN_SIZES.get(pde, ())}
    assert kept.items() <= options.items()
    assert all(getattr(plus.data, key) == getattr(plain.data, key) for key in view)
    assert (plus.train.loss, plus.train.ema, plus.data.normalise) == ("relative", 0.999, True)
    plus.queries().check(PLUS[pde])
    positive = {"density", "pressure"} & set(equation(pde).problem.channels)
    assert set(plus.data.log) == positive


@pytest.mark.parametrize("pde", PLUS)
def test_ingredients_of_vcnef_plus_are_switched_by_one_setting(pde):
    plus = Config.load(f"{pde}/vcnef_plus")
    switches = ["log=[]", "loss=mse", "ema=null", "symmetries=[]", "precision=fp32"]
    switches += ["random_phases=false", "random_phases=true", "optimiser=adam"]
    switches += ["random_starts=0" if plus.data.random_starts else "random_starts=0.5"] if plus.data.times else []
    switches += ["times=null"] if not plus.data.random_starts else []
    switches += ["normalise=false"] if not plus.data.log and not plus.data.own_time else []
    switches += ["own_time=false" if plus.data.own_time else "own_time=true"]
    changed = [plus.override([switch]) for switch in switches]
    # Only what is off already, or on, stays as it is.
    assert sum(each == plus for each in changed) == 1 + (not plus.data.log) + (plus.data.times is None)
    change = "change=false" if plus.model.options["change"] else "change=true"
    for switch in ("local=0", change, "activation=relu", *(["frequencies=0"] if plus.data.ndim == 1 else [])):
        other = plus.override([switch])
        assert other != plus
        build_on_meta(other, channels=plus.data.ndim + 2, params=2)


@pytest.mark.parametrize("pde", PLUS)
def test_vcnef_plus_runs_tiny_on_a_cpu(pde, tmp_path):
    plus = Config.load(f"{pde}/vcnef_plus")
    ndim, stride = plus.data.ndim, plus.data.space_stride
    frames = 3 * plus.data.time_stride + 1
    problem = equation(pde).problem
    u = 1.0 + 0.1 * torch.rand(20, frames, *[SIDE[ndim]] * ndim, len(problem.channels))
    params = dict.fromkeys(problem.parameters, 0.1)
    data = from_arrays(u, params=params, channels=problem.channels, name=pde)
    times = min(plus.data.times or 2, 2)
    small = {"epochs": 1, "minutes": None, "horizon": None, "times": times, "compile": False, **TINY[ndim]}
    config = plus.override(small)
    run = train(config, data.view(**config.view()), out=tmp_path, devices="cpu")
    assert run.best < float("inf")
    assert run.surrogate.provenance["resolution"] == [SIDE[ndim] // stride] * ndim
    assert load(tmp_path).options["change"] == plus.model.options["change"]


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


BASELINES = [name for name in list_presets() if name.endswith("_plus") and not name.endswith("/vcnef_plus")]
TINY_BASELINE = {
    "fno": {"width": 4, "modes": 3, "depth": 1},
    "unet": {"width": 4, "blocks": 1},
    "galerkin": {"width": 16, "depth": 1, "hidden": 16, "modes": 3, "spectral_width": 8},
    "oformer": {"width": 16, "heads": 2, "propagators": 1},
    "mp_pde": {"width": 16, "depth": 1, "bundle": 1},
    "coral": {"width": 16, "latent": 8, "depth": 2, "dynamics_width": 16, "dynamics_depth": 1},
}


def test_every_baseline_has_the_recipe_of_vcnef_plus():
    papers = [name for name in list_presets() if name in PAPER and not name.endswith("/vcnef")]
    assert sorted(BASELINES) == sorted(f"{name}_plus" for name in papers)


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_with_the_recipe_of_vcnef_plus(name):
    pde = name.split("/")[0]
    config, plain = Config.load(name), Config.load(name.removesuffix("_plus"))
    plus, view = Config.load(f"{pde}/vcnef_plus"), ("ndim", "space_stride", "time_stride", "horizon")
    assert all(getattr(config.data, key) == getattr(plain.data, key) for key in view)
    for key in ("normalise", "log", "symmetries", "random_phases"):
        assert getattr(config.data, key) == getattr(plus.data, key), key
    for key in ("loss", "ema", "schedule", "warm_up", "minutes", "batch"):
        assert getattr(config.train, key) == getattr(plus.train, key), key
    sizes = dict(config.model.options)
    if config.model.name == "fno":
        assert (sizes.pop("padding"), sizes.pop("residual")) == (0, True)
    assert sizes.items() <= plain.model.options.items()


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_with_that_recipe_learns_on_a_cpu(name, tmp_path):
    """A few steps change its weights by finite amounts, and what it saves answers."""
    config, pde = Config.load(name), name.split("/")[0]
    side = (16 if config.data.ndim < 3 else 8) * config.data.space_stride
    frames = 3 * config.data.time_stride + 1
    problem = equation(pde).problem
    x = torch.arange(side) / side
    # Like its data: density and pressure are positive, waves of one field are about zero.
    mean = 1.0 if config.data.log else 0.0
    waves = mean + 0.1 * torch.sin(2 * torch.pi * (x + torch.rand(10, frames, 1)))
    u = waves.reshape(10, frames, side, *[1] * problem.ndim).expand(
        10, frames, *[side] * problem.ndim, len(problem.channels)
    )
    params = {each: np.linspace(0.1, 0.2, 10) for each in problem.parameters}
    data = from_arrays(u.numpy(), params=params, channels=problem.channels, name=pde)
    small = {"epochs": 2, "minutes": None, "horizon": None, "compile": False, "batch": 4, "validate_every": 1}
    small |= {f"model.options.{key}": value for key, value in TINY_BASELINE[config.model.name].items()}
    config = config.override(small)
    run = train(config, data.view(**config.view()), out=tmp_path, devices="cpu", quiet=True)
    assert 0 < run.best < 5
    assert all(weight.isfinite().all() for weight in load(tmp_path).model.parameters())
