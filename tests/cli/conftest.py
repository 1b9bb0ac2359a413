import pytest

from vcnef.cli import main


@pytest.fixture
def vcnef(capsys):
    """The command, run in this process: exit code, standard output and standard error."""

    def run(*arguments):
        with pytest.raises(SystemExit) as stop:
            main([str(each) for each in arguments])
        printed = capsys.readouterr()
        return stop.value.code, printed.out, printed.err

    return run
