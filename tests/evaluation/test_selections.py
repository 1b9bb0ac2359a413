"""Which frames and points stand for a resolution, and what is said when none do."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from vcnef.data import from_arrays
from vcnef.evaluation.selections import Selection, as_trained, finer_in_space, finer_in_time


@pytest.fixture
def data():
    """As the benchmark's 1D Navier–Stokes: 101 frames up to 1, of which training sees every second up to 0.8."""
    return from_arrays(torch.rand(3, 101, 24, 1), t=torch.linspace(0.0, 1.0, 101))


TIMES = [0.02 * k for k in range(41)]


def trained(horizon=0.8, **provenance):
    return SimpleNamespace(provenance=provenance, horizon=horizon)


def test_the_view_of_training_is_found_again(data):
    selection, notes = as_trained(trained(resolution=[6], times=TIMES), data)
    assert selection == Selection(4, tuple(range(0, 81, 2)))
    assert notes == []
    assert torch.equal(selection.cut(data.u), data.view(4, 2, 0.8).u)
    assert torch.equal(selection.grid(data), data.view(4).grid)
    torch.testing.assert_close(selection.times(data), torch.tensor(TIMES[1:]))


def test_times_count_from_the_first_frame(data):
    later = from_arrays(data.u, t=data.t + 5.0)
    selection, _ = as_trained(trained(times=[1.0 + each for each in TIMES]), later)
    assert selection.frames == tuple(range(0, 81, 2))
    torch.testing.assert_close(selection.times(later), torch.tensor(TIMES[1:]), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("provenance", "note"),
    [
        ({"resolution": 48, "times": TIMES}, "Trained on 48 points, but judged on the 24 of the data."),
        ({"resolution": [5], "times": TIMES}, "Trained on 5 points, but judged on the 24 of the data."),
        ({"times": TIMES}, "The model does not say at which resolution it was trained; judged on 24 points."),
    ],
)
def test_data_without_the_resolution_of_training_are_used_as_they_are(data, provenance, note):
    selection, notes = as_trained(trained(**provenance), data)
    assert selection == Selection(1, tuple(range(0, 81, 2)))
    assert notes == [note]


@pytest.mark.parametrize(
    ("provenance", "note"),
    [
        ({"times": [0.0, 0.333, 0.8]}, "Trained on 3 times, but judged on the 81 of the data."),
        ({}, "The model does not say at which times it was trained; judged at 81 times."),
    ],
)
def test_times_that_are_not_known_end_at_the_horizon(data, provenance, note):
    selection, notes = as_trained(trained(resolution=[12], **provenance), data)
    assert selection == Selection(2, tuple(range(81)))
    assert notes == [note]


def test_finer_in_space(data):
    base = Selection(4, (0, 10))
    assert finer_in_space(data, base, 12) == Selection(2, (0, 10))
    assert finer_in_space(data, base, 24) == Selection(1, (0, 10))


@pytest.mark.parametrize("points", [7, 48, 0, -3])
def test_a_resolution_that_does_not_divide(data, points):
    message = (
        f"space has {points}, which no stride leaves of the 24 points of the data. Choose from 2, 3, 4, 6, 8, 12, 24"
    )
    with pytest.raises(ValueError, match=message):
        finer_in_space(data, Selection(4, (0, 1)), points)


@pytest.mark.parametrize(("points", "stride"), [(33, 1), (17, 2), (11, 3), (9, 4), (5, 8), (4, 9), (3, 11)])
def test_points_between_walls_are_thinned_by_any_stride(points, stride):
    data = from_arrays(torch.rand(3, 2, 33, 1), periodic=False)
    selection, notes = as_trained(trained(resolution=[points], times=[0.0, 1.0]), data)
    assert (selection, notes) == (Selection(stride, (0, 1)), [])
    assert finer_in_space(data, Selection(1, (0, 1)), points) == selection
    assert torch.equal(selection.grid(data), data.view(stride).grid)


def test_points_between_walls_that_no_stride_leaves():
    flat, plane = (from_arrays(torch.rand(3, 2, *shape, 1), periodic=False) for shape in ((33,), (33, 17)))
    with pytest.raises(
        ValueError, match=r"space has 20, which no stride .* Choose from 2, 3, 4, 5, 6, 7, 9, 11, 17, 33,"
    ):
        finer_in_space(flat, Selection(1, (0, 1)), 20)
    assert as_trained(trained(resolution=[17, 9]), plane)[0].stride == 2
    notes = as_trained(trained(resolution=[17, 8]), plane)[1]
    assert notes[0] == "Trained on 17×8 points, but judged on the 33×17 of the data."
    channel = from_arrays(torch.rand(3, 2, 34, 17, 1), periodic=(True, False))
    assert as_trained(trained(resolution=[17, 9]), channel)[0].stride == 2
    closed = replace(channel, problem=replace(channel.problem, periodic=True))
    assert as_trained(trained(resolution=[17, 9]), closed)[0].stride == 1
    periodic = from_arrays(torch.rand(3, 2, 33, 1))
    assert as_trained(trained(resolution=[17]), periodic)[0].stride == 1


def test_axes_of_different_lengths_keep_their_proportion():
    data = from_arrays(torch.rand(3, 2, 8, 12, 1))
    assert finer_in_space(data, Selection(4, (0, 1)), 4).grid(data).shape == (4, 6, 2)
    with pytest.raises(ValueError, match="space has 1, which no stride leaves of the 8×12 points"):
        finer_in_space(data, Selection(4, (0, 1)), 1)


def test_scattered_points_have_no_resolution():
    data = from_arrays(torch.rand(3, 2, 10, 1), x=torch.rand(10, 2))
    assert as_trained(trained(resolution=[10]), data)[0].grid(data).shape == (10, 2)
    with pytest.raises(ValueError, match="scattered points, which have no resolutions"):
        finer_in_space(data, Selection(1, (0, 1)), 5)


def test_finer_in_time(data):
    base = Selection(4, tuple(range(0, 81, 2)))
    selection, notes = finer_in_time(data, base, 81)
    assert (selection, notes) == (Selection(4, tuple(range(81))), [])
    selection, notes = finer_in_time(data, base, 82)
    assert selection.frames == tuple(range(82))
    assert notes == ["The last of 82 times, 0.81, lies beyond the horizon 0.8."]


def test_unequal_steps_are_said(data):
    t = torch.tensor([0.0, 0.01, 0.02, 0.05, 0.3, 0.31, 0.9, 0.95, 1.0])
    uneven, base = from_arrays(data.u[:, :9], t=t), Selection(4, tuple(range(9)))
    selection, notes = finer_in_time(uneven, base, 5)
    assert selection.frames == (0, 2, 4, 6, 8)
    assert notes == ["The steps between the 5 times are not equal, but 0.02 to 0.6 long."]
    _, notes = finer_in_time(uneven, Selection(4, tuple(range(8))), 9)
    assert [note.split(",")[0] for note in notes] == [
        "The last of 9 times",
        "The steps between the 9 times are not equal",
    ]


@pytest.mark.parametrize("frames", [60, 101, 1, 0])
def test_frames_that_the_data_cannot_give(data, frames):
    base = Selection(4, tuple(range(0, 81, 2)))
    with pytest.raises(
        ValueError, match=rf"time has {frames} frames, .* Choose from 2, 3, 5, 6, 9, 11, 17, 21, 41, 81"
    ):
        finer_in_time(data, base, frames)
