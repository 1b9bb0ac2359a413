"""The documentation says what the code does: examples run, generated parts are current, the site builds whole."""

import importlib.util
import inspect
import os
import re
import shlex
import subprocess
import sys
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from pathlib import Path

import pytest

import vcnef
from vcnef.cli import main
from vcnef.models.registry import MODELS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RUN = [
    "quickstart.md",
    "tour.md",
    "my-own-data.md",
    "own-physics.md",
    "own-loop.md",
    "metrics.md",
    "models.md",
    "change-the-method.md",
    "how-far.md",
    "gradients.md",
    "plots.md",
    "report.md",
    "explorer.md",
]
"""Pages whose examples are executed."""
RESULT = re.compile(r"\]\((\.\./benchmarks/results/[^)]+)\)")


@pytest.fixture(scope="module")
def reference():
    """The script that fills in what the code knows."""
    spec = importlib.util.spec_from_file_location("write_reference", DOCS / "write_reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read(page):
    return (DOCS / page).read_text(encoding="utf-8")


@pytest.fixture
def own_models():
    """A model that an example registers does not stay for other tests."""
    known = dict(MODELS)
    yield
    MODELS.clear()
    MODELS.update(known)


@pytest.mark.usefixtures("own_models")
@pytest.mark.parametrize("page", RUN)
def test_every_example_runs_and_prints_what_it_says(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names, printed = {}, ""
    for language, text in BLOCK.findall(read(page)):
        if language == "python":
            exec(compile(text, page, "exec"), names)
            printed = capsys.readouterr().out
        elif language == "bash":
            for line in text.splitlines():
                run_command(line)
            capsys.readouterr()
        else:
            expected = text.replace("…\n", "...\n").replace("…)", "...)")
            assert OutputChecker().check_output(expected, printed, ELLIPSIS | NORMALIZE_WHITESPACE), printed


def run_command(line):
    program, *arguments = shlex.split(line)
    assert program == "vcnef"
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 0, line


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_generated_parts_are_current(path, reference):
    text = path.read_text(encoding="utf-8")
    assert reference.fill(text) == text, f"{path.name} is out of date. Run `python docs/write_reference.py`."


def test_every_option_has_a_meaning_of_its_own():
    checked = 0
    for page in ("models.md", "training.md", "commands.md"):
        for part in re.split(r"^## ", read(page), flags=re.MULTILINE):
            if "| meaning |" not in part:
                continue
            rows = re.findall(r"^\| (`.+`) \| [^|]* \| ([^|]*) \|$", part, re.MULTILINE)
            meanings = [meaning.strip() for _, meaning in rows]
            assert all(meanings), [name for name, meaning in rows if not meaning.strip()]
            assert len(set(meanings)) == len(meanings), part.partition("\n")[0]
            checked += len(rows)
    assert checked > 150


def test_every_verb_has_its_options_on_the_page(vcnef_help):
    page = read("commands.md")
    for verb, options in vcnef_help.items():
        section = page.partition(f"\n## vcnef {verb}\n")[2].partition("\n## ")[0]
        assert section, verb
        for option in options - {"--help"}:
            assert f"`{option}`" in section, (verb, option)


@pytest.fixture
def vcnef_help(capsys, monkeypatch):
    """Verbs and options as the command itself prints them."""
    monkeypatch.setenv("COLUMNS", "200")

    def ask(*arguments):
        with pytest.raises(SystemExit):
            main([*arguments, "--help"])
        return re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)

    verbs = re.findall(r"^│ (\w+) ", ask().partition("Commands")[2], re.MULTILINE)
    assert len(verbs) >= 9
    return {verb: set(re.findall(r"^│ (?:\* +)?(--[\w-]+)", ask(verb), re.MULTILINE)) for verb in verbs}


def test_every_model_is_there_with_its_count(reference):
    page = read("models.md")
    for name in vcnef.list_models():
        assert f"\n## {name}\n" in page
        assert f"<!-- begin options {name} -->" in page
    rows = re.findall(r"^\| `(\w+)` \| (\d) \| (\d) \| (\d) \| ([\d,]+) \|", page, re.MULTILINE)
    assert {row[0] for row in rows} <= set(vcnef.list_models())
    assert len(rows) > 15
    for name, ndim, channels, params, weights in rows:
        assert reference.count(name, ndim=int(ndim), channels=int(channels), params=int(params)) == weights, name


def test_every_metric_is_defined():
    page = read("metrics.md")
    for name in set(vcnef.metrics.__all__) - {"Scores", "boundary_points", "zero_norm_frames"}:
        assert f"\n| `{name}` | " in page, name


def test_figures_of_speed_stand_in_the_files_that_are_linked():
    checked = 0
    place, figures = "", ""
    for line in read("performance.md").splitlines():
        if found := RESULT.search(line):
            place = found[1]
            figures = (DOCS / place).resolve().read_text(encoding="utf-8")
        if line.startswith("| ") and place:
            for number in re.findall(r"\d[\d,.]*(?:e-\d)?", line.replace("², ", " ")):
                assert number.rstrip(".,") in figures, f"{number} is not in {place}: {line}"
                checked += 1
    assert checked > 50


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs", reason="pip install 'vcnef[docs]'")
    pytest.importorskip("material", reason="pip install 'vcnef[docs]'")
    pytest.importorskip("mkdocstrings", reason="pip install 'vcnef[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_site_builds_without_a_warning(site):
    built = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    assert {path.relative_to(DOCS).with_suffix(".html").as_posix() for path in PAGES} <= built
    assert {"contributing.html", "changelog.html"} <= built
    assert {f"results/{path.stem}.html" for path in (ROOT / "benchmarks" / "results").glob("*.md")} <= built
    assert not list(site.glob("*.py"))


@pytest.mark.parametrize(
    "room", ["vcnef", *(path.stem for path in (DOCS / "api").glob("*.md") if path.stem != "vcnef")]
)
def test_every_public_name_has_a_place_in_the_reference(room):
    module = importlib.import_module("vcnef" if room == "vcnef" else f"vcnef.{room}")
    places = re.findall(r"^::: (\S+)$", read(f"api/{room}.md"), re.MULTILINE)
    assert places
    for name in getattr(module, "__all__", ()):
        if not inspect.ismodule(getattr(module, name)):
            assert f"{module.__name__}.{name}" in places


def test_the_site_loads_nothing_from_elsewhere(site):
    """Links may lead away; scripts, styles, fonts and pictures may not."""
    loads = re.compile(
        r"<(?:script|img|iframe|source|video)\b[^>]*\bsrc=\"?(?:https?:)?//|<link\b[^>]*\bhref=\"?https?://"
    )
    for page in site.rglob("*.html"):
        assert not loads.search(page.read_text(encoding="utf-8")), page.name
    for style in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import )[\"']?(?:https?:)?//", style.read_text(encoding="utf-8")), style.name


def test_pictures_of_the_page_on_figures_are_those_that_its_code_draws():
    page = read("plots.md")
    drawn = re.findall(r'savefig\("(\w+\.png)"\)', page)
    assert drawn == re.findall(r"\]\(images/plots/(\w+\.png)\)", page)
    assert set(drawn) == {path.name for path in (DOCS / "images" / "plots").glob("*.png")}
