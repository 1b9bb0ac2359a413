"""What a call takes."""

import time

import vcnef.timing
from vcnef.timing import time_once


def test_the_clock_can_be_that_of_the_processor(monkeypatch):
    assert time_once(lambda: time.sleep(0.05)) > 0.04
    monkeypatch.setattr(vcnef.timing, "clock", time.process_time)
    assert time_once(lambda: time.sleep(0.05)) < 0.04
