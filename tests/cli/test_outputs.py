"""Where the command line writes, and what it never takes the place of."""

import pytest

from vcnef.cli._outputs import FILES_OF_A_RUN, check_place


@pytest.mark.parametrize("name", FILES_OF_A_RUN)
def test_no_output_takes_the_place_of_a_part_of_a_run(tmp_path, name):
    path = tmp_path / "run" / name
    (tmp_path / "run" / "model").mkdir(parents=True)
    path.write_text("ours")
    with pytest.raises(ValueError, match=r"is a part of that run, .* Choose another --json\."):
        check_place(path, "--json")
    assert path.read_text() == "ours"


def test_files_of_the_same_name_elsewhere_and_other_files_of_a_run_are_free(tmp_path):
    (tmp_path / "run" / "model").mkdir(parents=True)
    for path in (tmp_path / "config.yaml", tmp_path / "run" / "metrics.json", tmp_path / "run" / "new" / "log.jsonl"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}")
        check_place(path, "--json")
