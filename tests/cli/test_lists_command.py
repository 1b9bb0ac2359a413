"""`vcnef models` and `vcnef presets`: one line for each, readable on a terminal and in a file."""

from vcnef.cli._tables import print_table
from vcnef.models.registry import MODELS
from vcnef.presets import list_presets


def test_models(vcnef):
    code, out, err = vcnef("models")
    assert (code, err) == (0, "")
    title, *lines = out.splitlines()
    assert title.split() == ["model", "1D", "2D", "3D"]
    # Below them stand packaged models, where there are any.
    assert [line.split()[0] for line in lines[: len(MODELS)]] == list(MODELS)
    assert lines[0].split()[:4] == ["vcnef", "793,729", "11,750,213", "27,060,549"]


def test_presets(vcnef):
    code, out, err = vcnef("presets")
    assert (code, err) == (0, "")
    title, *lines = out.splitlines()
    assert title.split() == ["preset", "model", "epochs"]
    assert [line.split()[0] for line in lines] == list(list_presets())
    burgers = next(line for line in lines if line.startswith("burgers/vcnef "))
    assert burgers.split(maxsplit=3)[1:] == ["vcnef", "500", list_presets()["burgers/vcnef"]]


def test_numbers_to_the_right_and_words_to_the_left(capsys):
    print_table(("name", "count", ""), [("a", "1,000", "first"), ("longer", "-", "second one")])
    assert capsys.readouterr().out == "name    count\na       1,000  first\nlonger      -  second one\n"
