"""Configurations: what they hold, how they are changed, and what is said of wrong ones."""

import pytest
import yaml

from vcnef.config import Config
from vcnef.data import Galilean, Queries, Reflect, Shift
from vcnef.training.recipe import Recipe


def test_defaults_are_a_run():
    config = Config()
    assert config.model.name == "vcnef"
    assert config.train == Recipe()
    assert config.queries() == Queries()
    assert config.symmetries() == ()


def test_a_saved_configuration_is_the_same_when_loaded(tmp_path):
    config = Config.load("cns2d/vcnef").override(
        [
            "train.epochs=3",
            "data.symmetries=[shift, {galilean: {speed: 0.5}}]",
            "data.horizon=0.5",
        ]
    )
    path = config.save(tmp_path / "run" / "config.yaml")
    assert Config.load(path) == config
    assert [each.name for each in path.parent.iterdir()] == ["config.yaml"]


def test_a_file_may_leave_out_whatever_it_likes(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("train:\n  epochs: 7\ndata:\n")
    assert Config.load(path) == Config(train=Recipe(epochs=7))
    path.write_text("")
    assert Config.load(path) == Config()


def test_values_of_overrides_are_yaml():
    config = Config().override(
        ["train.learning_rate=3e-4", "train.minutes=null", "train.compile=false", "model.options.patches=4,16",
         "train.logs=[tensorboard]", "model.options.attention=softmax"]
    )  # fmt: skip
    assert config.train.learning_rate == 3e-4
    assert config.train.minutes is None
    assert config.train.compile is False
    assert config.train.logs == ("tensorboard",)
    assert config.model.options == {"patches": (4, 16), "attention": "softmax"}


@pytest.mark.parametrize(
    "settings",
    [
        ["train.epochs=5", "model.options.width=32"],
        ["epochs=5", "width=32"],
        {"epochs": 5, "width": 32},
        {"train.epochs": 5, "model.options.width": 32},
        {"train": {"epochs": 5}, "model": {"options": {"width": 32}}},
    ],
)
def test_ways_to_say_the_same(settings):
    config = Config.load("burgers/vcnef").override(settings)
    assert (config.train.epochs, config.model.options["width"]) == (5, 32)
    assert config.train.batch == 32
    assert config.model.options["heads"] == 8


def test_overriding_leaves_the_original_alone():
    config = Config.load("burgers/vcnef")
    config.override(["width=32"])
    assert config == Config.load("burgers/vcnef")


@pytest.mark.parametrize("name", ["model.name", "name"])
def test_another_model_leaves_the_options_and_queries_of_the_first_behind(name):
    preset = Config.load("burgers/vcnef_plus").override(["random_starts=0.5"])
    config = preset.override(["modes=4", f"{name}=fno", "epochs=1"])
    assert (config.model.name, config.model.options, config.train.epochs) == ("fno", {"modes": 4}, 1)
    assert config.queries() == Queries()
    assert not config.data.own_time
    assert (config.data.space_stride, config.train.loss) == (preset.data.space_stride, "relative")
    assert preset.override(["model.name=fno", "times=3"]).queries() == Queries(times=3)
    assert preset.override(["model.name=vcnef"]) == preset


def test_queries_and_symmetries_of_the_data_section():
    config = Config().override({"data": {"times": 4, "random_starts": 0.5, "symmetries": [{"shift": {"stride": 2}}]}})
    assert config.queries() == Queries(times=4, random_starts=0.5)
    assert config.symmetries() == (Shift(stride=2),)
    assert Config().override(["symmetries=[{galilean: {speed: 1}}]"]).symmetries() == (Galilean(speed=1.0),)


def test_symmetries_that_a_user_vouches_for(tmp_path):
    config = Config().override(["symmetries={shift: true, reflect: {odd: [u]}}"])
    assert config.symmetries() == (Shift(vouched=True), Reflect(odd=("u",), vouched=True))
    assert Config().override({"symmetries": {"shift": True, "reflect": {"odd": ["u"]}}}) == config
    assert Config.load(config.save(tmp_path / "config.yaml")) == config


def test_random_phases_move_the_stride_behind_the_shifts():
    config = Config().override(["space_stride=4", "symmetries=[reflect, shift]", "random_phases=true"])
    assert config.symmetries() == (Shift(stride=4), Reflect())
    assert (config.view()["space_stride"], config.thinning()) == (1, 4)
    for setting in ("symmetries=[reflect]", "random_phases=false"):
        plain = config.override([setting])
        assert (plain.view()["space_stride"], plain.thinning()) == (4, 1)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("epoch=3", "There is no setting 'epoch'; did you mean train.epochs or train.step_epochs?"),
        ("zzz=3", "There is no setting 'zzz'; write one of model.options.variant, "),
        (
            "train.epoch=3",
            "train has no key 'epoch'. Did you mean 'epochs' or 'step_epochs'? There are epochs, minutes, ",
        ),
        ("train.epochs=many", "train.epochs is 'many'; expected a whole number."),
        ("train.minutes=soon", "train.minutes is 'soon'; expected a number."),
        ("train.compile=maybe", "train.compile is 'maybe'; expected true or false."),
        ("train.optimiser=sgd", "train.optimiser is 'sgd'; expected 'adam', 'adamw' or 'muon'."),
        (
            "train.physics_method=exact",
            "train.physics_method is 'exact'; expected 'spectral', 'finite_volume' or 'finite_difference'.",
        ),
        ("train.logs=[paper]", "train.logs.0 is 'paper'; expected 'tensorboard' or 'wandb'."),
        ("train.epochs=0", "epochs is 0; "),
        ("data.log=density", "data.log is 'density'; expected a list in square brackets."),
        ("data.space_stride=0", "space_stride is 0; expected a positive whole number."),
        ("data={log: [u], normalise: false}", "log names u, but normalise is false. Set normalise, or leave out log."),
        ("data.random_starts=0.5", "random_starts needs times, e.g. times=8"),
        ("model.name=vcnf", "There is no model 'vcnf'. Did you mean 'vcnef'? There are vcnef"),
        ("model.options.widht=3", "Model 'vcnef' has no option 'widht'. Did you mean 'width'? There are variant, "),
        ("model.options.width=wide", "model.options.width is 'wide'; expected a whole number."),
        ("model.options=3", "model.options is 3; expected keys with values."),
        ("data.symmetries=[shft]", "data.symmetries has 'shft'. Did you mean 'shift'? There are shift, reflect, "),
        ("data.symmetries=shift", "data.symmetries is 'shift'; expected a list, or what you vouch for: {shift: true}."),
        ("data.symmetries={shift: maybe}", "data.symmetries has 'maybe' for 'shift'; expected true, or options by na"),
        ("data.symmetries={shft: true}", "data.symmetries has 'shft'. Did you mean 'shift'?"),
        ("data.symmetries=[galilean]", "The symmetry galilean lacks speed; write [{galilean: {speed: value}}]."),
        ("data.symmetries=[{galilean: {speed: fast}}]", "galilean.speed is 'fast'; expected a number."),
        ("data.symmetries=[{shift: {step: 2}}]", "The symmetry shift has no option 'step'"),
        ("fit.epochs=3", "There is no place 'fit.epochs'; write section.key, with the section one of model, data, "),
        ("train=3", "There is no place 'train'; write section.key"),
        ("train.epochs", "'train.epochs' is not understood; write name=value, e.g. train.epochs=50."),
        ("train.epochs=[", "'train.epochs=[' has no readable value; quote texts, write lists as 4,16."),
        ("data={}", "'data={}' changes nothing; write the values that are to change, e.g. train.epochs=50."),
        ("model.options={}", "changes nothing; write the values that are to change"),
    ],
)
def test_what_is_said_of_a_wrong_setting(setting, message):
    with pytest.raises(ValueError) as caught:
        Config().override([setting])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "pydantic" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "trian:\n  epochs: 3\n",
            "A configuration has no key 'trian'. Did you mean 'train'? There are model, data, train.",
        ),
        ("- 3\n", "A configuration is [3]; expected keys with values (model, data, train)."),
        ("train: 3\n", "train is 3; expected keys with values (epochs, minutes, "),
        ("train: {epochs: 3\n", "is not valid YAML ("),
        ("train:\n  epochs: 3\ntrain:\n  batch: 4\n", "is not valid YAML (train stands there twice in"),
        ("train: &a {epochs: 3}\ndata: *a\n", "is not valid YAML (*a is an alias; write the value out in"),
        ("train: " + "[" * 5000, "is not valid YAML (it is nested too deeply). Repair it"),
        ("train:\n  epochs: 3\n  batch: 4\n  epochs: 5\n", "epochs stands there twice in"),
    ],
)
def test_what_is_said_of_a_wrong_file(tmp_path, text, message):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(ValueError) as caught:
        Config.load(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there():
    with pytest.raises(
        FileNotFoundError, match=r"There is no file mine\.yaml\. Give the path of a YAML file or a preset"
    ):
        Config.load("mine.yaml")


def test_a_key_in_two_places_has_to_be_told_apart(monkeypatch):
    monkeypatch.setattr("vcnef.config.settings.option_names", lambda model: ["batch"])
    with pytest.raises(
        ValueError, match=r"'batch' is in several places; write model\.options\.batch or train\.batch\."
    ):
        Config().override(["batch=3"])


def test_the_file_on_disk_is_plain_yaml(tmp_path):
    values = yaml.safe_load(Config().save(tmp_path / "config.yaml").read_text())
    assert set(values) == {"model", "data", "train"}
    assert values["train"]["learning_rate"] == 3e-4


def test_of_a_long_value_an_error_shows_a_part():
    """A network in place of a model's name, for one."""
    with pytest.raises(
        ValueError, match=r"train.epochs is \[0, 1, 2, .*\[\.\.\.\]; expected a whole number\.$"
    ) as error:
        Config().override({"train.epochs": list(range(1000))})
    assert len(str(error.value)) < 200
