"""Fetching ahead: the next batches are read while the current one is used."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")
Fetched = TypeVar("Fetched")


def prefetch(
    items: Iterable[Item], fetch: Callable[[Item], Fetched], *, ahead: int = 2
) -> Iterator[tuple[Item, Fetched]]:
    """Each item with what `fetch` gives for it; a thread is up to `ahead` items in front of the one handed out.

    One thread is enough: reading releases the interpreter, and HDF5 reads one thing at a time anyway.
    """
    waiting = iter(items)
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="prefetch") as thread:
        pending = deque((item, thread.submit(fetch, item)) for item in islice(waiting, ahead))
        try:
            while pending:
                item, future = pending.popleft()
                pending.extend((new, thread.submit(fetch, new)) for new in islice(waiting, 1))
                yield item, future.result()
        finally:
            thread.shutdown(wait=True, cancel_futures=True)
