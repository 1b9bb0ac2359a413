"""The page by its structure: what it shows, what it asks of a browser, and what it says of missing pieces."""

import copy
import re
from base64 import b64decode
from io import BytesIO

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from vcnef.report import Picture, RunRecord, build_report, drawings
from vcnef.report.drawings import label, png
from vcnef.report.page_numbers import change

SECTIONS = [
    "Key numbers", "Training", "Error over time", "Super-resolution", "Parameters", "Pictures", "Spectra", "Timing",
    "Notes and warnings", "Environment", "Commands to repeat this",
]  # fmt: skip
NASTY = """<script>alert("1 & 2")</script>"""


def result(nrmse, points=16, frames=5, **more):
    scores = {"nrmse": nrmse, "rmse": 0.0123456789, "brmse": 0.2, "correlation": 0.9}
    t = np.linspace(0.25, 1.0, frames - 1).tolist()
    return {
        "resolution": [points],
        "frames": frames,
        "t": t,
        "trained": points == 16 and frames == 5,
        "scores": {"samples": 7, "overall": scores, "over_time": {"nrmse": [nrmse] * len(t)}, "per_channel": {}},
        "change": {"nrmse": 0.25},
        "cost": {"samples": 4, "device": "cpu", "seconds": 0.002, "solver_seconds": 0.01, "solver_nrmse": 0.05},
    } | more


def group(value, seen, nrmse):
    scores = {"samples": 3, "overall": {"nrmse": nrmse}}
    return {"values": {"nu": [value, value]}, "seen": seen, "scores": scores, "nrmse": [nrmse, 2 * nrmse, None]}


def make_metrics(nrmse=0.314159265358979):
    return {
        "data": ["data/burgers.hdf5"], "model": "vcnef", "problem": "burgers", "channels": ["u"], "split": "test",
        "samples": 7, "device": "cpu", "result": result(nrmse),
        "space": [result(nrmse), result(1.25 * nrmse, points=32)],
        "time": [result(nrmse), result(nrmse, frames=9)],
        "parameters": [group(0.01, True, nrmse), group(0.1, False, 3 * nrmse)],
        "notes": ["The solver was not timed on 1024 points."],
    }  # fmt: skip


def make_run(name="first", **changes):
    parts = {
        "name": name,
        "folder": f"runs/{name}",
        "model": {
            "vcnef": "0.1.0",
            "model": {"name": "vcnef"},
            "problem": {"name": "burgers"},
            "provenance": {"train": "burgers train: 20 × 5 times", "torch": "2.9", "epoch": 2, "valid_nrmse": 0.4},
        },
        "history": [
            {"epoch": 1, "loss": 0.9, "valid_nrmse": None, "seconds": 30.0},
            {"epoch": 2, "loss": 0.5, "valid_nrmse": 0.4, "seconds": 90.0},
        ],
        "metrics": make_metrics(),
        "weights": 12345,
        "pictures": [Picture("Worst trajectory", png(Figure(figsize=(1, 1))))],
        "spectra": [Picture("Energy spectra", png(Figure(figsize=(1, 1))))],
        "warnings": ["nu lies outside."],
    }
    return RunRecord(**(parts | changes))


@pytest.fixture
def undrawn(monkeypatch):
    """Figures are made, but not drawn, which is what takes time."""
    monkeypatch.setattr(drawings, "_render", lambda *_, **__: b"<svg></svg>")


def test_sections_come_in_their_order(read_page, undrawn):
    page = read_page(build_report([make_run()], commands=["vcnef evaluate runs/first"], environment={"torch": "2.9"}))
    assert [each for each in page.headings if each in SECTIONS] == SECTIONS
    assert page.headings[0] == "vcnef on burgers"
    assert "vcnef with 12,345 weights, trained for 2 epochs in 1.5 minutes on burgers train: 20 × 5 times" in page.text
    assert "judged on 7 trajectories of the test split" in page.text
    for words in ("not timed on 1024 points", "nu lies outside.", "vcnef evaluate runs/first", "2.9"):
        assert words in page.text


def test_nothing_is_asked_of_the_network(read_page):
    text = build_report([make_run(), make_run("second")])
    page = read_page(text)
    assert len(page.images) == 2 + 1 + 2 + 1 + 2 * 2 + 1
    for image in page.images:
        assert image["src"].startswith(("data:image/svg+xml;base64,", "data:image/png;base64,"))
        assert image["alt"]
    assert all(link.startswith(("data:", "#")) for link in page.links)
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    assert not {"script", "iframe", "object", "embed", "form"} & set(page.tags)
    assert "http:" not in text
    assert "https:" not in text
    assert "@import" not in text
    assert "url(" not in text


def test_pictures_are_whole():
    run = make_run()
    text = build_report([run])
    first = text.index("data:image/png;base64,") + len("data:image/png;base64,")
    assert imread(BytesIO(b64decode(text[first : text.index('"', first)]))).shape == (100, 100, 4)
    start = text.index("data:image/svg+xml;base64,") + len("data:image/svg+xml;base64,")
    svg = b64decode(text[start : text.index('"', start)]).decode()
    assert svg.startswith("<svg")
    assert svg.rstrip().endswith("</svg>")
    assert text == build_report([run])


def test_it_fits_phones_print_and_the_dark(undrawn):
    text = build_report([make_run()])
    for words in (
        'name="viewport" content="width=device-width', "prefers-color-scheme: dark", "@media print", "overflow-x: auto",
        "max-width",
    ):  # fmt: skip
        assert words in text


def test_numbers_are_those_of_the_evaluation(read_page, undrawn):
    metrics = make_metrics()
    metrics["space"][1]["cost"]["samples"] = 1
    page = read_page(build_report([make_run(metrics=metrics)]))
    assert page.row("Key numbers", "nRMSE") == ["0.3142"]
    assert page.row("Key numbers", "time per trajectory") == ["2 ms"]
    assert page.row("Key numbers", "solver's time per trajectory") == ["10 ms"]
    assert page.row("Key numbers", "weights") == ["12,345"]
    assert page.row("Key numbers", "minutes of training") == ["1.5"]
    exact = {float(value) for value in page.values}
    assert set(metrics["result"]["scores"]["overall"].values()) <= exact
    assert page.row("Super-resolution, in space", "16") == ["0.3142 (trained)"]
    assert page.row("Super-resolution, in space", "32") == ["0.3927 (+25.0 %)"]
    assert page.row("Super-resolution, in time", "9") == ["0.3142 (+25.0 %)"]
    assert page.row("Parameter values", "nu=0.1") == ["3", "0.9425 (unseen)"]
    assert page.row("Time per trajectory on cpu", "16")[1:6] == ["4", "2 ms", "10 ms", "0.0500", "5×"]
    assert page.row("Time per trajectory on cpu", "32")[1:3] == ["1", "2 ms"]


def test_the_best_of_several_is_marked(read_page, undrawn):
    better = make_run("better", metrics=make_metrics(0.1), weights=99999, history=[{"epoch": 1, "seconds": 30.0}])
    page = read_page(build_report([make_run(), better]))
    assert page.headings[0] == "2 runs compared: vcnef on burgers"
    assert page.row("Key numbers", "nRMSE") == ["0.3142", "0.1000 ✓"]
    assert page.row("Key numbers", "RMSE") == ["0.0123 ✓", "0.0123 ✓"]
    assert page.row("Key numbers", "weights") == ["12,345 ✓", "99,999"]
    assert page.row("Key numbers", "minutes of training") == ["1.5", "0.5 ✓"]
    assert page.row("Key numbers", "solver's time per trajectory") == ["10 ms", "10 ms"]
    assert "✓" not in read_page(build_report([better])).text


def test_larger_is_better_for_the_correlation(read_page, undrawn):
    metrics = make_metrics()
    metrics["result"]["scores"]["overall"]["correlation"] = 0.95
    page = read_page(build_report([make_run(), make_run("second", metrics=metrics)]))
    assert page.row("All metrics", "correlation") == ["0.9000", "0.9500 ✓"]


def test_different_tests_are_not_compared(read_page, undrawn):
    other = make_metrics(0.1) | {"samples": 8}
    other["result"]["cost"]["device"] = "NVIDIA H200"
    page = read_page(build_report([make_run(), make_run("second", metrics=other)]))
    assert page.row("Key numbers", "nRMSE") == ["0.3142", "0.1000"]
    assert page.row("Key numbers", "time per trajectory") == ["2 ms", "2 ms"]
    assert "The runs were judged on different numbers of trajectories, so no error is marked as best." in page.text
    assert "Times were taken on different devices, so none is marked as best." in page.text
    assert "Give --data" not in page.text


@pytest.mark.parametrize("size", [{"points": 32}, {"frames": 9}])
def test_times_of_different_sizes_are_not_compared(read_page, undrawn, size):
    other = make_metrics() | {"result": result(0.1, **size)}
    other["result"]["cost"]["seconds"] = 0.001
    page = read_page(build_report([make_run(), make_run("second", metrics=other)]))
    assert page.row("Key numbers", "time per trajectory") == ["2 ms", "1 ms"]
    words = {"points": "points", "frames": "query times"}[next(iter(size))]
    assert f"The runs were judged on different {words}, so no error is marked as best. Times" in page.text
    assert f"Times were taken on different {words}, so none is marked as best." in page.text


def test_what_differs_is_said(read_page, undrawn):
    other = make_metrics() | {"data": ["other.hdf5"], "split": "valid", "samples": 8}
    other["result"]["cost"]["samples"] = 2
    page = read_page(build_report([make_run(), make_run("second", metrics=other)]))
    assert "judged on different files, splits and numbers of trajectories, so no error" in page.text
    assert "Give --data to judge all of them on the same files." in page.text
    assert "Times were taken on different numbers of trajectories at once, so none is marked" in page.text


def test_runs_at_different_times_have_a_figure_each(read_page, undrawn):
    other = make_metrics() | {"result": result(0.2, frames=3)}
    page = read_page(build_report([make_run(), make_run("second", metrics=other)]))
    assert sum(image["alt"].startswith("nRMSE at each time") for image in page.images) == 2
    assert [row[0] for row in page.tables["nRMSE over time"]] == ["t", "first", "t", "second"]


def test_where_most_trajectories_lie_is_drawn(monkeypatch):
    """The mean of the table in the middle, whatever is around it."""
    band = {"low": [0.1, 0.1, 0.1, 0.1], "high": [0.9, 0.9, 0.9, None]}
    (drawn,) = drawings.error_over_time([make_run(metrics=make_metrics() | {"result": result(0.5, band=band)})])
    (shade,) = drawn.axes[0].collections
    edges = shade.get_paths()[0].vertices[:, 1]
    assert (edges.min(), edges.max()) == (0.1, 0.9)
    assert drawn.axes[0].lines[0].get_ydata().tolist() == [0.5] * 4
    (plain,) = drawings.error_over_time([make_run()])
    assert not plain.axes[0].collections


def test_pictures_are_as_large_as_curves(read_page, undrawn):
    wide = Picture("Three panels", png_of(inches=9.6))
    page = read_page(build_report([make_run(pictures=[wide, Picture("One panel", png_of(inches=3.6))], spectra=())]))
    sizes = {image["alt"]: (image.get("width"), image.get("class")) for image in page.images}
    assert sizes["Three panels"] == ("922", "wide")
    assert sizes["One panel"] == ("346", None)


def png_of(inches):
    """The beginning of a picture, which says how wide it is."""
    return b"\x89PNG\r\n\x1a\n" + bytes(8) + round(160 * inches).to_bytes(4, "big")


def test_every_field_has_its_metrics(read_page, undrawn):
    metrics = make_metrics() | {"channels": ["density", "<p>"]}
    metrics["result"]["scores"]["per_channel"] = {"nrmse": [0.1, 0.2], "brmse": [0.3, None]}
    page = read_page(build_report([make_run(metrics=metrics)]))
    assert page.tables["Fields"] == [
        ["metric", "density", "<p>"], ["nRMSE", "0.1000", "0.2000"], ["bRMSE", "0.3000", "not finite"],
    ]  # fmt: skip


def test_everything_from_files_is_escaped(read_page):
    metrics = make_metrics() | {"notes": [NASTY], "device": NASTY, "split": NASTY, "problem": NASTY}
    metrics["parameters"][0]["values"] = {NASTY: [1, 1]}
    metrics["result"]["scores"]["overall"][NASTY] = 1.0
    metrics["result"]["cost"]["device"] = NASTY
    model = {"model": {"name": NASTY}, "problem": {"name": NASTY}, "vcnef": NASTY, "provenance": {"train": NASTY}}
    run = make_run(
        NASTY, folder=NASTY, metrics=metrics, model=model, pictures=[Picture(NASTY, b"")], warnings=[NASTY + "!"]
    )
    # Dollars are mathematics to matplotlib, and an underscore hides a curve.
    runs = [run, make_run("_$^$ a & b"), make_run("bare", metrics=None, history=(), folder=NASTY)]
    text = build_report(runs, commands=[NASTY], environment={NASTY: NASTY})
    page = read_page(text)
    assert "<script" not in text
    assert "script" not in page.tags
    assert page.text.count(NASTY) > 10
    assert page.tables["Key numbers"][0] == ["", NASTY, "_$^$ a & b", "bare"]


def test_missing_pieces_are_said(read_page, undrawn):
    bare = RunRecord(name="bare", folder="runs/bare")
    page = read_page(build_report([bare]))
    assert "bare has not been evaluated: there is no metrics.json in runs/bare." in page.text
    assert "bare has no training log" in page.text
    assert "Pictures need the data" in page.text
    assert "not judged yet" in page.text
    assert page.row("Key numbers", "nRMSE") == ["–"]
    assert not page.images
    beside = read_page(build_report([make_run(), bare]))
    assert beside.row("Key numbers", "nRMSE") == ["0.3142", "–"]


@pytest.mark.parametrize(("rmse", "word"), [(None, "not finite"), (0.1, "undefined")])
def test_what_is_not_finite_is_said_and_what_is_undefined(read_page, undrawn, rmse, word):
    metrics = make_metrics()
    for each in (*metrics["space"], *metrics["time"], metrics["result"], metrics["parameters"][1]):
        each["scores"]["overall"] |= {"nrmse": None, "rmse": rmse}
        each["change"] = {"nrmse": None}
    metrics["result"]["scores"]["over_time"] = {"nrmse": [0.1, None], "rmse": [0.1, rmse]}
    metrics["result"]["scores"]["per_channel"] = {"nrmse": [0.1, None], "rmse": [0.1, rmse]}
    metrics |= {"channels": ["u", "v"], "result": metrics["result"] | {"t": [0.5, 1.0]}}
    history = [{"epoch": 1, "loss": None, "seconds": 1.0}]
    page = read_page(build_report([make_run(metrics=metrics, history=history)]))
    assert page.row("Key numbers", "nRMSE") == [word]
    assert page.row("All metrics", "RMSE") == ["0.1000" if rmse else "not finite"]
    assert page.row("Super-resolution, in space", "32") == [f"{word} (–)"]
    assert page.row("nRMSE over time", "first") == ["0.1000", word]
    assert page.row("Fields", "nRMSE") == ["0.1000", word]
    assert page.row("Parameter values", "nu=0.1")[1] == f"{word} (unseen)"


def test_an_evaluation_without_super_resolution_parameters_and_times(read_page, undrawn):
    metrics = copy.deepcopy(make_metrics()) | {"space": [], "time": [], "parameters": [], "notes": []}
    metrics["result"]["cost"] = None
    page = read_page(build_report([make_run(metrics=metrics, warnings=())]))
    assert "Not measured." in page.text
    assert "The data have no parameters." in page.text
    assert page.row("Key numbers", "time per trajectory") == ["–"]


def test_no_run_is_an_error():
    with pytest.raises(ValueError, match=r"There is no run to report on: got none, expected at least one\. Give"):
        build_report([])


def test_names_in_figures_and_changes():
    assert label("_a$b") == r" _a\$b"
    assert change(-0.0001) == "+0.0 %"
    assert change(-0.1) == "-10.0 %"


def test_the_error_of_the_data_is_beside_that_of_the_models():
    metrics = {
        "model": "vcnef",
        "problem": "burgers",
        "split": "test",
        "samples": 3,
        "result": {},
        "data_nrmse": 0.0123,
    }
    page = build_report([RunRecord("one", metrics=metrics), RunRecord("two", metrics=metrics | {"data_nrmse": None})])
    assert re.search(r"nRMSE of the data, at most about.{0,200}0\.0123", page, re.DOTALL)
    assert "nRMSE of the data" not in build_report([RunRecord("two", metrics=metrics | {"data_nrmse": None})])
