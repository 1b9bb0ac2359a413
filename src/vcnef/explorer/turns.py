"""One computation at a time, of each page only its newest question, and none cut off at the end."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition

PAGES = 64
"""Pages whose newest question is remembered."""


class OutdatedQuestionError(Exception):
    """A newer question of the same page came before this one's turn."""


class Turns:
    """A queue of length one per page: a newer question takes the place of one that has not started."""

    def __init__(self) -> None:
        self._condition = Condition()
        self._busy = False
        self._count = 0
        self._newest: OrderedDict[str, int] = OrderedDict()

    @contextmanager
    def take(self, page: str) -> Iterator[None]:
        """Wait for the turn of a page's question; `OutdatedQuestionError` if another one of that page comes first."""
        with self._condition:
            self._count += 1
            ticket = self._newest[page] = self._count
            self._newest.move_to_end(page)
            while len(self._newest) > PAGES:
                self._newest.popitem(last=False)
            self._condition.notify_all()
            self._condition.wait_for(lambda: not self._busy or self._newest.get(page) != ticket)
            if self._newest.get(page) != ticket:
                raise OutdatedQuestionError("A newer question came; this one was not computed.")
            self._busy = True
        try:
            yield
        finally:
            with self._condition:
                self._busy = False
                self._condition.notify_all()


class StoppedError(Exception):
    """A question that came after the end."""


class Answering:
    """Counts the questions that are being answered: a thread that computes must not outlive the interpreter."""

    def __init__(self) -> None:
        self._condition = Condition()
        self._count, self._stopped = 0, False

    @contextmanager
    def one(self) -> Iterator[None]:
        with self._condition:
            if self._stopped:
                raise StoppedError("The explorer has been stopped; start it again with `vcnef serve`.")
            self._count += 1
        try:
            yield
        finally:
            with self._condition:
                self._count -= 1
                self._condition.notify_all()

    def stop(self, patience: int | float) -> bool:
        """Take no more, and wait so many seconds for the rest; whether nothing is left."""
        with self._condition:
            self._stopped = True
            return self._condition.wait_for(lambda: not self._count, patience)
