"""Shapes and types of every annotated function are checked while the tests run; in production they cost nothing."""

import pytest
from jaxtyping import install_import_hook

install_import_hook("vcnef", "beartype.beartype")

import torch  # noqa: E402


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


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
