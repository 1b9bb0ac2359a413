"""Violins: places, medians, and how unseen values are marked."""

import io

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from vcnef import plots
from vcnef.plots import style
from vcnef.plots.violins import GROUND, UNSEEN_COLOUR


def errors(centre, count=40, seed=0):
    return centre * np.exp(np.random.default_rng(seed).normal(0.0, 0.2, count))


def draw(figure):
    figure.savefig(io.BytesIO(), format="png", dpi=40)
    return figure.axes[0]


def medians(axis):
    """Place and height of the white dots."""
    dots = [line for line in axis.get_lines() if line.get_markerfacecolor() == "white"]
    return [(float(dot.get_xdata()[0]), float(dot.get_ydata()[0])) for dot in dots]


def test_one_model():
    given = {0.001: errors(0.10), 0.002: errors(0.11, seed=1), 0.01: errors(0.12, seed=2)}
    axis = draw(plots.violins({"vcnef": given}, unseen=[0.002], parameter="nu", title="Burgers"))
    assert medians(axis) == [(i, pytest.approx(np.median(each))) for i, each in enumerate(given.values())]
    labels = axis.get_xticklabels()
    assert [text.get_text() for text in labels] == ["0.001", "0.002", "0.01"]
    assert [text.get_fontweight() for text in labels] == ["normal", "bold", "normal"]
    assert labels[1].get_color() == UNSEEN_COLOUR
    shapes = [each for each in axis.collections if each.get_alpha()]
    assert [to_hex(each.get_facecolor()[0]).upper() for each in shapes] == [
        style.COLOURS[0],
        UNSEEN_COLOUR,
        style.COLOURS[0],
    ]
    low, high = shapes[0].get_paths()[0].get_extents().get_points()[:, 1]
    assert (low, high) == (pytest.approx(given[0.001].min()), pytest.approx(given[0.001].max()))
    assert (axis.get_xlabel(), axis.get_ylabel(), axis.get_yscale()) == ("nu", "nRMSE", "linear")
    assert axis.get_ylim()[0] == 0
    assert [text.get_text() for text in axis.figure.legends[0].get_texts()] == ["vcnef", "not in training"]
    assert axis.figure.get_suptitle() == "Burgers"


def test_there_is_room_above_errors_that_are_all_alike():
    axis = draw(plots.violins({"vcnef": {"a": [0.1], "b": [0.1000001]}}))
    assert axis.get_ylim() == (0, pytest.approx(0.108, rel=1e-3))


def test_models_stand_side_by_side():
    given = {"vcnef": {"a": errors(0.1), "b": errors(0.2)}, "fno": {"b": errors(0.3), "c": errors(0.4)}}
    axis = draw(plots.violins(given, unseen=["b"]))
    assert [place for place, _ in medians(axis)] == pytest.approx([-0.2, 0.8, 1.2, 2.2])
    assert [text.get_text() for text in axis.get_xticklabels()] == ["a", "b", "c"]
    grounds = [each for each in axis.patches if isinstance(each, Rectangle)]
    assert [(each.get_x(), each.get_width(), to_hex(each.get_facecolor()).upper()) for each in grounds] == [
        (0.5, 1.0, GROUND)
    ]
    assert [text.get_text() for text in axis.figure.legends[0].get_texts()] == ["vcnef", "fno", "not in training"]


def test_errors_that_span_decades_have_an_axis_by_factors():
    given = {"vcnef": {1: errors(0.001), 2: errors(0.5)}}
    axis = draw(plots.violins(given))
    assert axis.get_yscale() == "log"
    shapes = [each for each in axis.collections if each.get_alpha()]
    low, high = shapes[0].get_paths()[0].get_extents().get_points()[:, 1]
    assert (low, high) == (pytest.approx(given["vcnef"][1].min()), pytest.approx(given["vcnef"][1].max()))
    assert not axis.figure.legends
    assert draw(plots.violins(given, log=False)).get_yscale() == "linear"
    assert draw(plots.violins({"vcnef": {1: [0.0, *errors(0.1)]}}, log=True)).get_yscale() == "log"


def test_few_equal_and_broken_errors():
    given = {"few": [0.1, 0.2], "equal": [0.3] * 9, "some": [np.nan, *errors(0.1, 9)], "none": [np.inf, np.nan]}
    axis = draw(plots.violins({"vcnef": given}))
    assert len([each for each in axis.collections if each.get_alpha()]) == 1
    assert [place for place, _ in medians(axis)] == [0, 1, 2]
    assert [text.get_text() for text in axis.texts] == ["1 of 10\nnot finite", "2 of 2\nnot finite"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plots.violins({}), "There is no error to draw: got {}, expected model -> value -> errors"),
        (lambda: plots.violins({"a": {}}), "There is no error to draw"),
        (lambda: plots.violins({"a": {1: []}}), r"errors of a at 1 are \[\]; expected at least one"),
        (lambda: plots.violins({"a": {1: [-1.0]}}), r"errors of a at 1 are \[-1.0\]; .* none below zero"),
        (lambda: plots.violins({"a": {1: [[0.1]]}}), r"errors of a at 1 has shape \(1, 1\); expected the axes \[n\]"),
        (lambda: plots.violins({"a": {1: [0.1]}}, unseen=[2]), r"unseen has \[2\]; expected values among \[1\]"),
    ],
)
def test_wrong_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_long_names_leave_room_for_the_violins():
    values = [f"eta={k}e-05, zeta={k}e-05, mach=0.{k}" for k in range(1, 6)]
    models = [f"runs/burgers_vcnef_plus_without_the_stencil_seed{k}" for k in range(4)]
    figure = plots.violins({model: {value: errors(0.1) for value in values} for model in models})
    draw(figure)
    legend, height = figure.legends[0].get_window_extent(), figure.get_size_inches()[1]
    assert 0 <= legend.x0 < legend.x1 <= figure.bbox.x1
    assert figure.axes[0].get_position().height * height > 1.8  # inches
