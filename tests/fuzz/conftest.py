"""How many cases are tried, and what may come of one: an answer, or one sentence of a kind that is documented."""

import os
import signal
import warnings
from contextlib import contextmanager
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, settings

CASES = int(os.environ.get("FUZZ_CASES", "80"))
"""Of each test; those of all thirteen are a thousand."""
SECONDS = 30
"""After so long a case hangs; the machine may be shared."""
ALL_CHECKS = list(HealthCheck)
settings.register_profile(
    "fuzz", max_examples=CASES, deadline=timedelta(seconds=SECONDS), suppress_health_check=ALL_CHECKS, print_blob=True
)


class HangingError(Exception):
    """A case took too long; no `TimeoutError`, which is an `OSError`."""


@pytest.fixture(autouse=True, scope="module")
def unchecked(as_users_call):
    """All tests here."""


@pytest.fixture(scope="session")
def attempt():
    """Calls something: its answer, or None where it is refused as everything has to be."""

    def call(function, *given, **named):
        try:
            with warnings.catch_warnings(), _limited():
                warnings.simplefilter("ignore")
                return function(*given, **named)
        except (ValueError, OSError) as error:
            text = str(error)
            assert "\n" not in text, f"more than a line: {text!r}"
            assert len(text) > 10, f"says nothing: {text!r}"
            return None

    return call


@contextmanager
def _limited():
    def stop(*_):
        raise HangingError(f"no answer within {SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
