"""Processes that train together go by one clock."""

from types import SimpleNamespace
from unittest.mock import Mock

from lightning_fabric import Fabric

from vcnef.training.stopping import Clock, Signals


def test_a_resumed_run_has_one_rate_for_all_processes(monkeypatch):
    """However long each of them took to compile."""
    now, said = [0.0], []
    monkeypatch.setattr("vcnef.training.stopping.time", SimpleNamespace(monotonic=lambda: now[0]))
    # The first process speaks before the others listen.
    fabric = Mock(spec=Fabric, world_size=2, broadcast=lambda mine: said[0] if said else (said.append(mine), mine)[1])
    clocks = [Clock(fabric, Signals(), 10**6, 1.0, 30.0, 5.0) for _ in range(2)]
    for clock, compiling in zip(clocks, (3.0, 7.0), strict=True):
        now[0] = compiling
        clock.agree(21)
    assert [clock.prepared for clock in clocks] == [8.0, 8.0]
    assert clocks[0].progress(21) == clocks[1].progress(21) == 25.0 / 52.0
