"""What answers cost: the chart with the solver's line, and the record of a benchmark."""

import pytest

from vcnef.report import RunRecord, build_report, drawings
from vcnef.report.page_timing import accuracy_cost

SOLVER = [
    {"resolution": [32], "seconds": 0.02, "nrmse": 0.04, "samples": 12},
    {"resolution": [16], "seconds": 0.01, "nrmse": 0.2, "samples": 12},
]


def make_run(name, nrmse=0.1, device="cpu", **more):
    cost = {"samples": 4, "device": device, "seconds": 0.005}
    result = {
        "resolution": [64], "frames": 5, "t": [1.0], "cost": cost, "scores": {"overall": {"nrmse": nrmse}},
    }  # fmt: skip
    return RunRecord(name=name, folder=f"runs/{name}", metrics={"result": result, **more})


@pytest.fixture(autouse=True)
def undrawn(monkeypatch):
    monkeypatch.setattr(drawings, "_render", lambda *_, **__: b"<svg></svg>")


def case(model="vcnef", way="parallel", steps=40, **more):
    return {"model": model, "way": way, "steps": steps, "seconds": 0.5, "peak_memory": 400 * 2**20} | more


def make_benchmark(*results):
    return {"samples": 1000, "points": 256, "batch": 64, "device": "H200", "results": list(results)}


def test_models_and_the_line_of_the_solver(read_page):
    runs = [make_run("first", solver=SOLVER), make_run("second", 0.3)]
    axis = accuracy_cost(runs).axes[0]
    first, second, line = axis.get_lines()
    assert (*first.get_xdata(), *first.get_ydata()) == (0.005, 0.1)
    assert second.get_ydata() == [0.3]
    assert line.get_xydata().tolist() == [[0.01, 0.2], [0.02, 0.04]]
    assert [text.get_text() for text in axis.texts] == ["16 points", "32 points"]
    page = read_page(build_report(runs))
    charts = [image["alt"] for image in page.images if "time per trajectory" in image["alt"]]
    assert charts == ["nRMSE over time per trajectory; lower and further left is better."]
    assert "The line is the classical solver on coarser grids" in page.text
    assert "12 trajectories were solved" in page.text


def test_runs_on_different_machines_have_a_chart_each(read_page):
    page = read_page(build_report([make_run("first", solver=SOLVER), make_run("second", device="H200")]))
    charts = [image["alt"] for image in page.images if "time per trajectory" in image["alt"]]
    assert [each.split(":")[0] for each in charts] == ["first", "second"]
    assert page.text.count("The line is the classical solver") == 1


def test_what_is_not_finite_has_no_chart(read_page):
    assert accuracy_cost([make_run("first", nrmse=None, solver=SOLVER)]) is None
    assert accuracy_cost([RunRecord(name="bare", folder="runs/bare")]) is None


def test_a_benchmark(read_page):
    slow = case("fno", "rollout", seconds=2.0, peak_memory=10 * 2**20)
    large = case("fno", "rollout", 80, seconds=None, peak_memory=None, fits=False)
    page = read_page(build_report([make_run("first")], benchmark=make_benchmark(case(), slow, large)))
    assert "1000 initial states, 256 points, 64 at once, H200" in page.text
    assert page.tables["Benchmark of inference"] == [
        ["model", "times", "40 steps", "80 steps"],
        ["vcnef", "parallel", "500 ms, 400 MiB", "–"],
        ["fno", "rollout", "2 s, 10 MiB", "out of memory"],
    ]
    assert [image["alt"] for image in page.images].count(
        "Time over peak memory; lower and further left is better."
    ) == 1


def test_a_benchmark_on_a_cpu_has_no_chart_of_memory(read_page):
    page = read_page(build_report([make_run("first")], benchmark=make_benchmark(case(peak_memory=None))))
    assert page.row("Benchmark of inference", "vcnef") == ["parallel", "500 ms"]
    assert "Memory is counted on a GPU only" in page.text
    assert not any("peak memory" in image["alt"] for image in page.images)
