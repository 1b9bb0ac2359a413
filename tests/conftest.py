"""Shapes and types of every annotated function are checked while the tests run; in production they cost nothing."""

import sys
from pathlib import Path
from runpy import run_path

import jaxtyping
import pytest
from jaxtyping import install_import_hook

install_import_hook("vcnef", "beartype.beartype")

import torch  # noqa: E402


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def no_equations_stay():
    """What a test defines is not known to the next."""
    yield
    if defining := sys.modules.get("vcnef.pde.equation"):
        defining.OWN_EQUATIONS.clear()


@pytest.fixture(scope="module")
def as_users_call():
    """Without the tests' own checks of types, which take time and would speak before what is tested."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


@pytest.fixture(scope="session")
def one_thread():
    """From here on, for tests that share few cores."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def vcnef(capsys):
    """The command, run in this process: exit code, standard output and standard error."""
    from vcnef.cli import main

    def run(*arguments):
        with pytest.raises(SystemExit) as stop:
            main([str(each) for each in arguments])
        printed = capsys.readouterr()
        return stop.value.code, printed.out, printed.err

    return run


@pytest.fixture
def note_parts(monkeypatch):
    """Has a model note how many times each part has that `predict` asks it for, in the list that is given."""

    def note(model, asked):
        query = model.query_in_parts

        def noting(*given):
            for part in query(*given):
                asked.append(part.shape[1])
                yield part

        monkeypatch.setattr(model, "query_in_parts", noting)

    return note


@pytest.fixture
def browser(tmp_path):
    """Headless Chromium, where there is one."""
    browsing = run_path(str(Path(__file__).with_name("browsing.py")))
    if not (browsing["CHROMIUM"] and browsing["DRIVER"]):
        pytest.skip("needs chromium and chromedriver")
    with browsing["open_browser"](tmp_path) as session:
        yield session


@pytest.fixture
def release(tmp_path):
    """A folder that looks like the authors' repository."""
    return run_path(str(Path(__file__).with_name("stand_in_release.py")))["write"](tmp_path / "their_repository")
