"""Charts of time, memory and accuracy."""

import io
from dataclasses import asdict

import numpy as np
import pytest

from vcnef import plots
from vcnef.evaluation.speed import Speed

RECORDS = [
    asdict(Speed("vcnef", "parallel", 80, 793825, seconds=2.0, spread=0.5, peak_memory=400 * 2**20)),
    asdict(Speed("vcnef", "parallel", 40, 793825, seconds=1.0, spread=0.2, peak_memory=200 * 2**20)),
    asdict(Speed("vcnef", "sequential", 40, 793825, seconds=4.0, spread=0.0, peak_memory=20 * 2**20)),
    asdict(Speed("fno", "rollout", 40, 500000, seconds=3.0, spread=0.0, peak_memory=10 * 2**20)),
    asdict(Speed("mp_pde", "rollout", 40, 500000, peak_memory=10 * 2**20)),
    asdict(Speed("unet", "rollout", 40, 500000, seconds=3.0, spread=0.0)),
]


def draw(figure):
    figure.savefig(io.BytesIO(), format="png", dpi=40)
    return figure.axes[0]


def test_speed_and_memory():
    axis = draw(plots.speed_memory(RECORDS, title="One H200"))
    lines = {each.get_label(): each.lines[0] for each in axis.containers}
    assert list(lines) == ["vcnef, parallel", "vcnef, sequential", "fno, rollout"]
    parallel, sequential, rollout = lines.values()
    assert (parallel.get_xdata().tolist(), parallel.get_ydata().tolist()) == ([200, 400], [1, 2])
    assert (rollout.get_xdata().tolist(), rollout.get_ydata().tolist()) == ([10], [3])
    assert parallel.get_color() == sequential.get_color() != rollout.get_color()
    assert len({each.get_marker() for each in lines.values()}) == 3
    assert [text.get_text() for text in axis.texts] == ["40 steps", "80 steps"]
    # The spread of the repeats goes up from the fastest.
    bars = axis.containers[0].lines[2][0].get_segments()
    assert [bar[:, 1].tolist() for bar in bars] == [[1.0, 1.2], [2.0, 2.5]]
    names = [text.get_text() for text in axis.get_legend().get_texts()]
    assert names == ["vcnef", "fno", "parallel", "sequential", "rollout"]
    assert (axis.get_xscale(), axis.get_yscale()) == ("log", "log")
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("peak memory in MiB", "time in s")


def test_speed_and_memory_without_steps():
    record = {"model": "vcnef", "way": "parallel", "seconds": 1.0, "peak_memory": 200 * 2**20}
    axis = draw(plots.speed_memory([record, record | {"seconds": 2.0}]))
    assert axis.containers[0].lines[0].get_ydata().tolist() == [1, 2]
    assert not axis.texts


def test_accuracy_and_cost():
    models = {"vcnef": (0.003, 0.05), "fno": (0.01, 0.08)}
    solver = {"1024 points": (1.0, 0.0), "512 points": (0.3, 0.01), "256 points": (0.1, 0.04)}
    axis = draw(plots.accuracy_cost(models, solver))
    vcnef, fno, line = axis.get_lines()
    assert (*vcnef.get_xdata(), *vcnef.get_ydata()) == (0.003, 0.05)
    assert vcnef.get_linestyle() == fno.get_linestyle() == "None"
    np.testing.assert_allclose(line.get_xydata(), [[0.1, 0.04], [0.3, 0.01]])
    assert [text.get_text() for text in axis.texts] == ["256 points", "512 points"]
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["vcnef", "fno", "classical solver"]
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("time per trajectory in s", "nRMSE")
    assert (axis.get_xscale(), axis.get_yscale()) == ("log", "log")
    assert len(draw(plots.accuracy_cost(models)).get_lines()) == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plots.speed_memory([{"model": "a", "way": "b"}]), "has model, way; expected seconds, peak_memory too"),
        (lambda: plots.speed_memory([]), "There is no record to draw: got 0, expected some with seconds and peak_mem"),
        (
            lambda: plots.speed_memory(RECORDS[-2:]),
            "got 2, expected some with seconds and peak_memory. Measure on a GPU",
        ),
        (lambda: plots.accuracy_cost({}), "There is no curve to draw"),
        (lambda: plots.accuracy_cost({"a": (1.0, 0.0)}), r"a of models is \[1.0, 0.0\]; expected \(seconds, error\)"),
        (lambda: plots.accuracy_cost({"a": (1.0, np.nan)}), "a of models is .* Leave out what was not measured"),
        (lambda: plots.accuracy_cost({"a": (1, 1)}, {"b": (0, 1)}), r"b of solver is \[0, 1\]; expected \(seconds"),
        (lambda: plots.accuracy_cost({"a": (1, 1)}, {"b": (1, 1, 1)}), r"b of solver is \[1, 1, 1\]; expected"),
    ],
)
def test_wrong_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
