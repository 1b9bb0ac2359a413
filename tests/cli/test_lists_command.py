"""`vcnef models`, `presets` and `equations`: one line for each, readable on a terminal and in a file."""

import json

from vcnef.cli._tables import print_table
from vcnef.models.registry import MODELS
from vcnef.pde import EQUATIONS
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


MINE = '''
import vcnef


def growth(u, d, p):
    """u_t = D u_xx + r u (1 − u)"""
    return p["D"] * d(u, "x", 2) + p["r"] * u * (1 - u)


vcnef.Equation("fisher", growth, parameters={"D": (0.01, 0.1), "r": 2.0}, periodic=False)
'''


def test_equations(vcnef, tmp_path):
    code, out, err = vcnef("equations")
    assert (code, err) == (0, "")
    title, *lines = out.splitlines()
    assert title.split() == ["equation", "fields", "parameters", "domain", "known"]
    assert [line.split()[0] for line in lines] == list(EQUATIONS)
    assert "nu=0.001" in lines[1]
    assert "mind the 1/π" in lines[1]
    script = tmp_path / "mine.py"
    script.write_text(MINE, encoding="utf-8")
    line = vcnef("--with", script, "equations")[1].splitlines()[-1]
    cells = [cell for cell in line.split("  ") if cell]
    assert [cell.strip() for cell in cells] == [
        "fisher", "u", "D=0.01:0.1, r=2", "(0, 1), walls", "residual", "u_t = D u_xx + r u (1 − u)",
    ]  # fmt: skip


def test_a_verb_knows_what_the_script_before_it_defines(vcnef, tmp_path):
    script = tmp_path / "mine.py"
    script.write_text(MINE.replace("periodic=False", "initial=lambda rng, x: 0 * x + rng.uniform()"), encoding="utf-8")
    code, out, _ = vcnef("--with", script, "generate", "fisher", "--samples", 3, "--resolution", 8, "--out", tmp_path)
    assert code == 0
    assert "fisher_D0.01to0.1_r2.0.hdf5: 3 trajectories" in out
    assert vcnef("generate", "fisher2", "--out", tmp_path)[2].startswith("There is no equation 'fisher2'")


def test_equations_for_programs(vcnef):
    code, out, _ = vcnef("equations", "--json")
    records = {each["name"]: each for each in json.loads(out)}
    assert (code, list(records)) == (0, list(EQUATIONS))
    assert records["cns1d"]["channels"] == ["density", "pressure", "vx"]
    assert records["burgers"]["parameters"] == {"nu": 0.001}
    assert not records["burgers"]["own"]


def test_a_script_that_is_not_there(vcnef):
    code, out, err = vcnef("--with", "nowhere.py", "equations")
    assert (code, out) == (2, "")
    assert err == "There is no script nowhere.py. Give a Python file that defines what is your own.\n"
