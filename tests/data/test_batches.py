"""Batches: what is in them, and that a run can be repeated, shared out and taken up anywhere."""

from itertools import islice

import numpy as np
import pytest
import torch

from vcnef.data import Batches, Galilean, Queries, Reflect, Scaling, Shift
from vcnef.data import open as open_data
from vcnef.data.prefetch import prefetch


def same(a, b):
    return all(torch.equal(getattr(a, name), getattr(b, name)) for name in ("u0", "grid", "t", "params", "u"))


def test_by_default_a_batch_asks_for_all_later_frames(make_data):
    data = make_data()
    batches = Batches(data, 8, seed=None)
    got = list(batches)
    assert [len(batch) for batch in got] == [8, 8, 4]
    assert len(batches) == 3
    assert torch.equal(torch.cat([batch.u0 for batch in got]), data.u[:, 0])
    assert torch.equal(torch.cat([batch.u for batch in got]), data.u[:, 1:])
    assert torch.equal(got[0].t, data.t[1:])
    assert torch.equal(got[0].grid, data.grid)
    assert [len(batch) for batch in Batches(data, 8, drop_last=True)] == [8, 8]


def test_every_sample_comes_once_an_epoch_in_another_order(make_data):
    data = make_data()
    data.params[:, 0] = torch.arange(20.0)
    batches = Batches(data, 8)
    orders = [torch.cat([batch.params[:, 0] for batch in batches.epoch(number)]).tolist() for number in (0, 1)]
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(20))
    assert orders[0] != orders[1]


RANDOM = {"queries": Queries(times=3, random_starts=0.5), "symmetries": (Shift(), Reflect(), Galilean(4.0))}


def test_a_run_is_repeated_and_taken_up_at_any_step(make_data):
    data = make_data()
    run = list(islice(Batches(data, 8, seed=3, **RANDOM).steps(), 8))
    again = list(islice(Batches(data, 8, seed=3, **RANDOM).steps(first=5), 3))
    assert all(same(a, b) for a, b in zip(run[5:], again, strict=True))
    assert not same(run[0], next(iter(Batches(data, 8, seed=4, **RANDOM))))


def test_whole_numbers_of_numpy_are_whole_numbers(make_data):
    data = make_data()
    pairs = zip(Batches(data, np.int64(8), seed=np.int64(3), **RANDOM), Batches(data, 8, seed=3, **RANDOM), strict=True)
    assert all(same(a, b) for a, b in pairs)


def test_streamed_batches_are_the_resident_ones(make_data, tmp_path):
    data = make_data("cns2d")
    stored = open_data(data.save(tmp_path / "a.hdf5"), stream=True)
    options = RANDOM | {"scaling": Scaling.fit(data)}
    pairs = zip(Batches(data, 6, **options), Batches(stored, 6, **options), strict=True)
    assert all(same(a, b) for a, b in pairs)


def test_processes_share_an_epoch(make_data):
    data = make_data()
    data.params[:, 0] = torch.arange(20.0)
    shares = [[b.params[:, 0] for b in Batches(data, 4, shard=(rank, 3))] for rank in range(3)]
    assert {len(share) for share in shares} == {2}
    seen = torch.cat([rows for share in shares for rows in share])
    assert len(seen) == 21
    assert set(seen.tolist()) == set(range(20))


@pytest.mark.parametrize("queries", [Queries(times=3), Queries(times=3, random_starts=0.5), Queries(passes=2)])
def test_processes_draw_for_themselves(make_data, queries):
    """Equal trajectories give different batches of the same shapes, at any step; the first as if it were alone."""
    data = make_data(samples=16, frames=9, points=16)
    data.u[:] = data.u[:1, :1].clone() + torch.arange(9.0)[:, None, None]
    options = {"queries": queries, "symmetries": (Shift(),)}
    first, second = ([*Batches(data, 4, shard=(rank, 2), **options)] for rank in range(2))
    alone = Batches(data, 4, **options)
    assert same(first[0], next(iter(alone)))
    for mine, other in zip(first, second, strict=True):
        assert not torch.equal(mine.u0, other.u0)
        assert (mine.t.shape, mine.u.shape) == (other.t.shape, other.u.shape)
    [again] = islice(Batches(data, 4, shard=(1, 2), **options).steps(first=1), 1)
    assert same(again, second[1])


@pytest.mark.parametrize("queries", [Queries(), Queries(times=3, random_starts=0.5)])
def test_a_batch_is_in_one_piece_each(make_data, queries):
    batch = next(iter(Batches(make_data(), 8, queries=queries)))
    assert all(each.is_contiguous() for each in vars(batch).values())


def test_random_starts_ask_at_later_frames_of_the_same_trajectory(make_data):
    data = make_data(samples=64, frames=9)
    data.u[:] = (torch.arange(64)[:, None] * 10 + torch.arange(9))[:, :, None, None]
    [batch] = Batches(data, 64, queries=Queries(times=3, random_starts=0.5))
    sample, start = batch.u0[:, 0, 0] // 10, batch.u0[:, 0, 0] % 10
    asked = batch.u[:, :, 0, 0] - 10 * sample[:, None]
    assert batch.t.shape == (64, 3)
    assert torch.allclose(batch.t, (asked - start[:, None]) * 0.125)
    assert (batch.t.diff(dim=1) > 0).all()
    assert (batch.t > 0).all()
    assert 0.3 < float((start == 0).float().mean()) < 0.8
    assert start.max() == 5


def test_few_times_are_drawn_for_the_whole_batch(make_data):
    data = make_data(frames=9)
    first, second = islice(Batches(data, 8, queries=Queries(times=3)), 2)
    assert first.t.shape == (3,)
    assert not torch.equal(first.t, second.t)
    [all_times] = Batches(data, 20, queries=Queries(times=50))
    assert torch.equal(all_times.t, data.t[1:])


@pytest.mark.parametrize("random_starts", [0.0, 0.5])
def test_the_start_is_asked_for_too(make_data, random_starts):
    queries = Queries(times=3, at_start=True, random_starts=random_starts)
    batches = list(islice(Batches(make_data(samples=64, frames=9), 64, queries=queries).steps(), 20))
    times = [batch.t.expand(64, 3) for batch in batches]
    for batch, t in zip(batches, times, strict=True):
        asked = t == 0
        assert (asked.sum(dim=1) <= 1).all()
        assert torch.equal(batch.u[asked], batch.u0[asked.any(dim=1)])
    assert 0.1 < float(torch.stack(times).eq(0).any(dim=2).float().mean()) < 0.8


def test_algorithm_1_goes_over_the_data_once_from_each_start(make_data):
    data = make_data(frames=9)
    data.u[:] = torch.arange(9.0)[:, None, None]
    batches = Batches(data, 8, queries=Queries(passes=4))
    epoch = list(batches.epoch(0))
    assert len(epoch) == len(batches) == 3 * 5
    starts = [int(batch.u0[0, 0, 0]) for batch in epoch]
    assert starts[:3] == [0, 0, 0]
    assert len(set(starts)) == 5
    assert all(starts[i] == starts[i + 1] == starts[i + 2] for i in range(0, 15, 3))
    for batch, start in zip(epoch, starts, strict=True):
        assert batch.u[0, :, 0, 0].tolist() == list(range(start + 1, 9))
        assert torch.allclose(batch.t, data.t[start + 1 :] - data.t[start])
    assert {int(batch.u0[0, 0, 0]) for batch in batches.epoch(1)} != set(starts)


def test_scaled_batches_are_in_the_network_s_units(make_data):
    data = make_data(samples=40)
    data.params[:20] = 1.0
    data = open_like(data)
    scaling = Scaling.fit(data)
    [batch] = Batches(data, 40, scaling=scaling, seed=None)
    assert torch.allclose(batch.u0, scaling.fields.normalise(data.u[:, 0]))
    assert batch.t.max() == 1.0
    assert set(batch.params.flatten().tolist()) == {-1.0, 1.0}


def test_scaled_points_leave_speeds_physical(make_data):
    """An observer's speed is in cells per frame of the data, whatever the network's lengths are."""
    data = make_data("cns1d")
    moves = Galilean(speed=2.5)
    scaled, plain = (
        next(iter(Batches(data, 4, symmetries=(moves,), scaling=each))) for each in (Scaling.fit(data), None)
    )
    assert torch.equal(scaled.grid, (plain.grid + 1.0) / 2.0)
    torch.testing.assert_close(Scaling.fit(data).fields.denormalise(scaled.u), plain.u)


def open_like(data):
    """The same data with ranges of the parameters it has now."""
    from dataclasses import replace

    return replace(data, params=data.params.clone())


def test_a_batch_of_phases_is_on_the_coarse_grid(make_data):
    data = make_data("cns2d", points=16)
    batch = next(iter(Batches(data, 4, symmetries=(Shift(stride=4),))))
    assert batch.u0.shape == (4, 4, 4, 4)
    assert torch.equal(batch.grid, data.grid[::4, ::4])


def test_messages(make_data):
    data = make_data()
    with pytest.raises(ValueError, match="Batches of 0 out of 20 trajectories"):
        Batches(data, 0)
    with pytest.raises(ValueError, match="with drop_last leave nothing of 20"):
        Batches(data, 21, drop_last=True)
    with pytest.raises(ValueError, match=r"have 6 frames; random_starts with times=8 needs at least 10. Give longer"):
        Batches(data, 4, queries=Queries(times=8, random_starts=0.5))
    with pytest.raises(ValueError, match=r"The data have 6 frames; .* needs at least 7"):
        Queries(times=5, random_starts=1.0).check(6)
    with pytest.raises(ValueError, match=r"The data have 6 frames; passes=5 needs at least 7"):
        Queries(passes=5).check(6)
    with pytest.raises(ValueError, match=r"The data have 1 frames; training needs at least 2"):
        Queries(times=5).check(1)
    with pytest.raises(ValueError, match="times is 0; expected at least 1"):
        Queries(times=0)
    with pytest.raises(ValueError, match="random_starts is 2; expected a share"):
        Queries(times=2, random_starts=2.0)
    with pytest.raises(ValueError, match="passes is -1; expected 0 or more"):
        Queries(passes=-1)
    with pytest.raises(ValueError, match="random_starts needs times"):
        Queries(random_starts=0.5)
    with pytest.raises(ValueError, match="choose one"):
        Queries(times=2, random_starts=0.5, passes=2)


def test_prefetching_keeps_order_passes_errors_on_and_can_be_left():
    assert list(prefetch(range(5), lambda i: i * i)) == [(i, i * i) for i in range(5)]
    with pytest.raises(ZeroDivisionError):
        list(prefetch([1, 0], lambda i: 1 / i))
    fetched = []
    for item, _ in prefetch(range(100), fetched.append):
        if item == 3:
            break
    assert len(fetched) < 10


@pytest.mark.gpu
def test_on_a_gpu_the_data_are_resident_and_the_run_is_the_same(make_data, tmp_path):
    data = make_data()
    resident = Batches(data, 8, device="cuda", **RANDOM)
    assert resident.data.u.is_cuda
    stored = Batches(open_data(data.save(tmp_path / "a.hdf5"), stream=True), 8, device="cuda", **RANDOM)
    for on_gpu, streamed, on_cpu in zip(resident, stored, Batches(data, 8, **RANDOM), strict=True):
        assert same(on_gpu, streamed)
        assert torch.allclose(on_gpu.u.cpu(), on_cpu.u, atol=1e-6)


@pytest.mark.gpu
def test_batches_that_are_made_ahead_leave_those_alone_that_are_still_to_be_read(make_data):
    def read_late(batch):
        torch.cuda._sleep(2_000_000)
        return batch.u.clone()

    batches = Batches(make_data(), 8, device="cuda", **RANDOM)
    late = [read_late(batch) for batch in islice(batches.steps(), 12)]
    assert all(torch.equal(u, batch.u) for u, batch in zip(late, batches.steps(), strict=False))
