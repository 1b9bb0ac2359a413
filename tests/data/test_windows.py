"""Windows: how long they are, and which frames a sample of them has."""

import pytest
import torch

from vcnef.data import Batches, Queries, from_arrays
from vcnef.data.windows import MOST_WINDOWS, choose_window


def waves(frames, speed, points=32, samples=6):
    """sin(x − c t + φ): in a time t it changes by 2 sin(c t / 2) of its spread."""
    t = torch.linspace(0, 1, frames, dtype=torch.float64)
    x = 2 * torch.pi * torch.arange(points) / points
    phase = torch.rand(samples, 1, 1)
    u = torch.sin(x - speed * t[:, None] + phase)
    return from_arrays(u[..., None].numpy(), t=t.numpy())


@pytest.mark.parametrize(("speed", "frames"), [(0.04, 11), (0.2, 3), (10.0, 1)])
def test_a_window_is_as_long_as_fields_take_to_change(speed, frames):
    window = choose_window(waves(21, speed), "auto")
    assert window.frames == frames
    assert window.length == pytest.approx(frames / 20)
    assert f"in {frames} of 20 frames" in window.why


def test_there_are_not_too_many_windows():
    data = waves(401, 40.0)
    assert choose_window(data, "auto").frames == 400 // MOST_WINDOWS


def test_fields_at_rest_are_answered_directly():
    assert choose_window(from_arrays(torch.ones(4, 21, 8, 1).numpy()), "auto") is None
    assert choose_window(waves(21, 1e-4), "auto") is None


def test_few_frames_and_scattered_points_are_answered_directly():
    assert choose_window(waves(4, 10.0), "auto") is None
    assert choose_window(waves(21, 10.0), "direct") is None
    points = from_arrays(torch.rand(4, 21, 9, 1).numpy(), t=range(21), x=torch.rand(9, 2).numpy())
    assert choose_window(points, "auto") is None


def test_a_window_that_is_asked_for_is_a_multiple_of_the_time_between_frames():
    data = waves(21, 1.0)
    assert choose_window(data, 0.1).frames == 2
    for wrong in (0.12, 0.01, 1.5):
        with pytest.raises(ValueError, match=f"window is {wrong}; expected a multiple of 0.05, the time"):
            choose_window(data, wrong)


@pytest.mark.parametrize("pushes", [0, 1, 2])
def test_a_sample_is_windows_in_a_row_from_any_frame(pushes):
    queries, generator = Queries(window=3, pushes=pushes), torch.Generator().manual_seed(0)
    frames = queries.draw(500, 11, 0, generator)
    assert frames.shape == (500, 3 * pushes + 4)
    # The last window begins anywhere that leaves room for it; before the first frame there is that frame.
    assert sorted(set(frames[:, -4].tolist())) == list(range(8))
    gaps = frames.diff(dim=1)
    assert torch.equal(gaps[:, -3:], torch.ones(500, 3, dtype=torch.long))
    assert set(gaps.flatten().tolist()) <= {0, 1}
    assert bool(((gaps == 0) <= (frames[:, 1:] == 0)).all())


def test_an_epoch_has_as_many_passes_as_a_trajectory_has_windows():
    data = waves(11, 1.0)
    batches = Batches(data, 4, queries=Queries(window=3, pushes=1))
    assert len(batches) == len(list(batches)) == 2 * 3
    batch = next(iter(batches))
    assert batch.u.shape == (4, 6, 32, 1)
    assert batch.t.shape == (4, 6)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"window": 0}, "window is 0 frames; expected at least 1"),
        ({"window": 2, "times": 3}, "Leave out random_starts, passes, times and at_start"),
        ({"pushes": 1}, "pushes is 1 with window=None; expected 0 or more, of windows"),
    ],
)
def test_what_does_not_go_with_windows_is_refused(given, said):
    with pytest.raises(ValueError, match=said):
        Queries(**given)


def test_too_few_frames_for_a_window():
    with pytest.raises(ValueError, match="The data have 3 frames; a window of 3 frames needs at least 4"):
        Queries(window=3).check(3)
