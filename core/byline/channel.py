"""The pump between a framework and one consumer.

A framework reports from callbacks, some of them in worker threads; a consumer reads from one event loop.  Between
them stands one lock, one deque and a future for who waits: the consumer's for something to read, and one for
everybody who waits for the consumer to catch up (`drained`).  An `asyncio.Queue` would cost a task
switch per item and is not safe to feed from a thread.

To wake the consumer costs more than all else that happens to a token.  So it is woken at once when it has rested for
a moment (`BURST`), and what comes faster than that is read together, at the end of the moment; nobody who waits for
the consumer (`drained`, the end) is kept waiting for it.  Whoever puts may wait with his work for that end (`later`).
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable
from time import monotonic
from typing import Final, Generic, TypeVar

__all__ = ["BURST", "Channel"]

BURST: Final = 0.032
"""Seconds between two wakes of a consumer that nobody waits for: two pictures of a screen.

A model that says fewer than thirty tokens a second never meets it."""

T = TypeVar("T")


class Channel(Generic[T]):
    """Items from any thread to one consumer on the loop that constructs it."""

    def __init__(self) -> None:
        self.lock: Final = threading.RLock()
        """Held around every change of what is reported, so that items keep the order in which things happened."""
        self.closed = False
        self._abandoned = False
        self._items: deque[T] = deque()
        self._loop: Final = asyncio.get_running_loop()
        self._thread: Final = threading.get_ident()
        self._reader: asyncio.Future[None] | None = None
        self._woken = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._fill: Callable[[], object] | None = None
        self._writers: Final[list[asyncio.Future[None]]] = []

    def put(self, items: Iterable[T]) -> None:
        """Add `items`, from any thread; dropped after `close`."""
        with self.lock:
            if self.closed:
                return
            self._items.extend(items)
            if self._reader is not None and self._timer is None:
                self._wake_in_time()

    def close(self) -> None:
        """End the channel, from any thread: the consumer reads what is there and then stops."""
        with self.lock:
            self.closed = True
            self._wake_reader()

    def later(self, fill: Callable[[], object], /) -> bool:
        """Return whether the consumer sleeps until the burst is over; `fill` is then called before it wakes.

        What nobody can see before then need not be put before then.
        """
        if self._reader is None:
            return False
        left = self._woken + BURST - monotonic()
        if left <= 0:
            return False
        if self._timer is None:
            if threading.get_ident() != self._thread:
                return False
            self._timer = self._loop.call_later(left, self._time_is_up)
        self._fill = fill
        return True

    async def read(self) -> deque[T]:
        """Return what there is, at least one item; raises `StopAsyncIteration` when the channel is closed and empty."""
        while True:
            with self.lock:
                if self._items:
                    items, self._items = self._items, deque()
                    return items
                self._release()
                if self.closed:
                    raise StopAsyncIteration
                self._reader = self._loop.create_future()
            try:
                await self._reader
            finally:
                self._reader = None

    async def drained(self) -> None:
        """Wait until the consumer has read all there is and asks for more: the two go in lock-step.

        Several may wait at once: agents that run side by side each hold their next step back.  Raises
        `CancelledError` when the consumer has gone: what waited for it must not take that step.
        """
        if self._abandoned:
            raise asyncio.CancelledError
        if self.closed or (self._reader is not None and not self._items):
            return
        self._wake_reader()
        writer = self._loop.create_future()
        self._writers.append(writer)
        await writer

    def abandon(self) -> None:
        """The consumer has gone: forget what it did not read, and cut off who waits for it."""
        self._abandoned = True
        self.close()
        if self._timer is not None:
            self._timer.cancel()
            self._time_is_up()
        self._items.clear()
        for writer in self._writers:
            writer.cancel()
        self._writers.clear()

    def _release(self) -> None:
        for writer in self._writers:
            _set(writer)
        self._writers.clear()

    def _wake_in_time(self) -> None:
        if threading.get_ident() != self._thread:
            self._wake_reader()
            return
        left = self._woken + BURST - monotonic()
        if left > 0:
            self._timer = self._loop.call_later(left, self._time_is_up)
        else:
            self._woken = monotonic()
            self._wake_reader()

    def _time_is_up(self) -> None:
        with self.lock:
            fill, self._fill = self._fill, None
            if fill is not None:
                fill()
            self._timer = None
            self._woken = monotonic()
            self._wake_reader()

    def _wake_reader(self) -> None:
        reader = self._reader
        if reader is None:
            return
        if threading.get_ident() == self._thread:
            _set(reader)
        else:
            self._loop.call_soon_threadsafe(_set, reader)


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
