"""The tables of `docs/results.md`: seeds together, the paper beside them, and nothing that was not measured."""

import json

import pytest

import accuracy_tables as tables


def result(nrmse, size=256, frames=41, trained=False):
    overall = {"nrmse": nrmse, "brmse": nrmse and nrmse / 2, "relative_l2": nrmse and nrmse / 4}
    return {"resolution": [size], "frames": frames, "trained": trained, "overall": overall}


def judged(nrmse, seen=True, **params):
    base = result(nrmse, trained=True)
    space = [base, result(nrmse and 1.1 * nrmse, size=512)]
    return {"params": params, "seen": seen, "result": base, "space": space, "time": [base, result(nrmse, frames=101)]}


def record(*evaluations, case="burgers", preset="vcnef", label="", ablation=False, seed=0, minutes=10.0, smoke=False):
    return {
        "case": case, "preset": preset, "label": label, "ablation": ablation, "seed": seed, "smoke": smoke,
        "device": "abacus", "data": {"generation": "2022", "samples": 10000, "params": {"nu": [0.001]}},
        "config": {"train": {"minutes": minutes, "epochs": 60}},
        "training": {"seconds": 60 * (minutes or 1), "steps": 8400}, "evaluations": list(evaluations),
    }  # fmt: skip


def test_seeds_make_one_row_with_their_mean_and_range():
    records = [record(judged(0.08, nu=0.001)), record(judged(0.1, nu=0.001), seed=1)]
    titles, (row,) = tables.headline(records)
    shown = dict(zip(titles, row, strict=True))
    assert shown["data"] == "burgers (2022, 10,000)"
    assert shown["paper: nRMSE"] == "0.0824"
    assert shown["here: nRMSE"] == "0.0900 (0.0800 … 0.1000)"
    assert shown["joint L²"] == "0.0225 (0.0200 … 0.0250)"
    assert (shown["seeds"], shown["minutes"], shown["hardware"]) == ("2", "10.0", "abacus")


def test_runs_of_another_budget_are_another_row():
    records = [record(judged(0.08, nu=0.001)), record(judged(0.1, nu=0.001), minutes=5.0)]
    _, rows = tables.headline(records)
    assert [row[3] for row in rows] == ["0.0800", "0.1000"]


def test_runs_of_other_settings_are_no_seeds_of_one():
    """Though nobody labelled them; a setting that a run is older than is none."""
    records = [record(judged(0.08, nu=0.001), seed=seed) for seed in range(4)]
    for each, options in zip(records, ({}, {"width": 8}, {}, {"width": 8}), strict=True):
        each["config"] = {"train": each["config"]["train"] | {"seed": each["seed"]}, "model": {"options": options}}
    records[2]["config"]["train"]["physics"] = 0.0
    assert [[run["seed"] for run in runs] for runs in tables.alike(records)] == [[0, 2], [1, 3]]
    assert [row[7] for row in tables.headline(records)[1]] == ["2", "2"]


def test_a_model_that_the_paper_has_not_stands_beside_its_best():
    titles, (row,) = tables.headline([record(judged(0.02, nu=0.001), preset="vcnef_plus")])
    shown = dict(zip(titles, row, strict=True))
    assert shown["paper: nRMSE"] == "0.0566 (best, unet)"
    assert shown["paper: bRMSE"] == "0.0179 (best, vcnef_r)"


def test_in_3d_the_boundary_error_is_of_the_papers_kind():
    """Channels summed inside the root, on the grid of training and on finer ones."""
    found = judged(0.6, eta=1e-8)
    for each in (found["result"], *found["space"]):
        each["overall"]["brmse_pdebench_3d"] = 4.0
    gas = record(found, case="cns3d")
    titles, (row,) = tables.headline([gas])
    shown = dict(zip(titles, row, strict=True))
    assert (shown["paper: bRMSE"], shown["here: bRMSE"]) == ("4.8922", "4.0000")
    titles, rows = tables.finer([gas], "space")
    assert [row[titles.index("bRMSE")] for row in rows] == ["4.0000", "4.0000"]


def test_ablations_are_compared_with_the_preset_in_the_same_time():
    records = [
        record(judged(0.08, nu=0.001), label="the preset", ablation=True),
        record(judged(0.12, nu=0.001), label="no stencil", ablation=True),
        record(judged(0.12, nu=0.001), label="no stencil", ablation=True, minutes=5.0),
        record(judged(0.05, nu=0.001)),
    ]
    assert [row[3] for row in tables.headline(records)[1]] == ["0.0500"]
    titles, rows = tables.ablations(records)
    column = titles.index("change")
    assert sorted(row[column] for row in rows) == ["+50 %", "–", "–"]
    assert {row[1:3] for row in rows} == {("vcnef", "the preset"), ("vcnef", "no stencil")}


def test_a_label_belongs_to_the_name_of_a_model():
    records = [record(judged(0.08, nu=0.001), label="8 times per step"), record(judged(0.1, nu=0.001))]
    assert {row[1:4] for row in tables.headline(records)[1]} == {
        ("vcnef, 8 times per step", "0.0824", "0.0800"), ("vcnef", "0.0824", "0.1000"),
    }  # fmt: skip
    assert tables.ablations(records)[1] == []


def test_short_runs_are_compared_by_their_steps_and_are_no_headline():
    records = [
        record(judged(0.1, nu=0.001), label="the preset", ablation=True, minutes=None),
        record(judged(0.12, nu=0.001), label="no stencil", ablation=True, minutes=None),
    ]
    assert tables.headline(records)[1] == []
    titles, rows = tables.ablations(records)
    shown = [dict(zip(titles, row, strict=True)) for row in rows]
    assert {each["difference"]: each["change"] for each in shown} == {"the preset": "–", "no stencil": "+20 %"}
    assert {(each["steps"], each["minutes"]) for each in shown} == {("8,400", "–")}


def test_ablations_begin_with_the_preset_and_go_on_with_what_matters_most():
    errors = {"a": 0.11, "b": None, "the preset": 0.1, "z": 0.3}
    records = [record(judged(error, nu=0.001), label=label, ablation=True) for label, error in errors.items()]
    records += [record(judged(0.5, nu=0.001), label=label, ablation=True, minutes=5.0) for label in ("x", "the preset")]
    assert [row[2] for row in tables.ablations(records)[1]] == ["the preset", "b", "z", "a", "the preset", "x"]


def test_super_resolution_beside_the_papers():
    titles, rows = tables.finer([record(judged(0.08, nu=0.001))], "space")
    assert [row[2:6] for row in rows] == [
        ("256", "0.0824", "0.0800", "trained"), ("512", "0.0832", "0.0880", "+10.0 %"),
    ]  # fmt: skip
    assert titles[2] == "points"
    _, rows = tables.finer([record(judged(0.08, nu=0.001))], "time")
    assert rows[1][2:6] == ("101", "0.0829", "0.0800", "+0.0 %")


def test_seeds_count_where_they_were_judged():
    coarse = judged(0.1, nu=0.001)
    del coarse["space"][1]
    _, rows = tables.finer([record(coarse), record(judged(0.08, nu=0.001), seed=1)], "space")
    assert [(row[4], row[5], row[8]) for row in rows] == [
        ("0.0900 (0.0800 … 0.1000)", "trained", "2"), ("0.0880", "+10.0 %", "1"),
    ]  # fmt: skip


def test_values_in_ascending_order_seen_and_unseen():
    found = record(
        judged(0.03, nu=0.002), judged(0.05, nu=0.01), judged(0.09, seen=False, nu=0.004), case="burgers_params"
    )
    assert tables.headline([found])[1] == []
    _, rows = tables.parameters([found])
    assert [row[2:5] for row in rows] == [
        ("nu = 0.002", "seen", "0.0300"), ("nu = 0.004", "**unseen**", "0.0900"), ("nu = 0.01", "seen", "0.0500"),
    ]  # fmt: skip


def test_errors_that_are_not_finite_are_said_so():
    ablated = [record(judged(e, nu=0.001), label=k, ablation=True) for k, e in (("the preset", None), ("other", 0.1))]
    records = [record(judged(None, nu=0.001)), *ablated]
    assert tables.headline(records)[1][0][3] == "not finite"
    assert tables.ablations(records)[1][0][4] == "–"
    assert tables.finer(records, "space")[1][1][5] == "–"


@pytest.mark.parametrize("kind", tables.TABLES)
def test_titles_and_rows_go_together(kind, measured):
    single, several = record(judged(0.08, nu=0.001)), measured[2] | {"smoke": False}
    titles, rows = tables.TABLES[kind]([single, single | {"ablation": True}, several])
    assert rows
    assert {len(row) for row in rows} == {len(titles)}


def test_smoke_tests_and_unfinished_runs_are_not_shown(tmp_path):
    kept = record(judged(0.08, nu=0.001))
    for name, each in {"a": kept, "b": record(judged(0.1, nu=0.001), smoke=True), "c": record()}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(each))
    assert tables.read_results(tmp_path) == [kept]
    assert tables.read_results(tmp_path / "nowhere") == []


def test_a_run_that_was_interrupted_between_values_is_no_result_of_one(measured, tmp_path):
    several = measured[2] | {"smoke": False}
    first = several | {"seed": 4, "evaluations": several["evaluations"][:1]}
    coarse = several | {"evaluations": [each | {"space": each["space"][:1]} for each in several["evaluations"]]}
    for name, each in {"a": several, "b": first}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(each))
    found = tables.read_results(tmp_path)
    assert found == [several]
    assert tables.headline(found)[1] == []
    assert [tables.is_judged(each) for each in (several, coarse, first)] == [True, True, False]
    assert [tables.is_finished(each) for each in (several, coarse, first)] == [True, False, False]


def test_the_papers_numbers_are_complete():
    errors = tables.paper()["errors"]
    assert {case: len(models) for case, models in errors.items()} == {
        "burgers": 8, "advection": 8, "cns1d": 7, "cns2d": 4, "cns3d": 2,
    }  # fmt: skip
