"""From many runs in many threads to one sink: what stands between an app and a recording of it.

The app's threads only append to a deque; one thread of ours takes what is there a few times a second, encodes it,
writes it and flushes it.  So a crash costs the last quarter of a second and no more, and a slow sink slows nobody:
when the deque is full the app waits, but never longer than its `patience` in all; after that events are lost,
counted, and the place is marked in the recording.

A stream holds one run at a time, and its events do not say which run they are of.  Runs that happen at once are
therefore written one after the other: the first is written as it happens, the next ones are held until it is over.
"""

import asyncio
import gzip
import logging
import os
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import IO, Any, Final, Protocol, TypeAlias, cast

from .errors import InputError
from .events import EVENT_CLASSES, BaseEvent, CustomEvent, EventType, encode

__all__ = ["GAP", "Outlet", "Redact", "Tape", "outlet"]

Redact: TypeAlias = Callable[[dict[str, Any]], dict[str, Any] | None]
"""Takes an event in its wire form, returns what may be written of it; `None`: nothing."""

GAP: Final = "byline.gap"
"""`CUSTOM.name` of the mark that stands where events were lost; its value is `{"events": how many}`."""

_MOMENT: Final = 0.05
"""Seconds after which the recorder's thread looks whether it has something to do."""

_GATHER: Final = 5
"""For how many moments events are gathered before they are written together.

Beside an app that works the thread finds nothing of its own in the processor's cache: what it does for one event takes
about as long as for ten."""

_PATIENT: Final = 40
"""How many moments long nothing may have come before the recorder's thread waits to be woken."""

_ENDS: Final = frozenset({EventType.RUN_FINISHED, EventType.RUN_ERROR})

_log = logging.getLogger("byline")


class Outlet(Protocol):
    """A sink as the tape sees it: all but `open` is called in the tape's own thread."""

    def open(self) -> None:
        """Get ready, in the app's thread.  Raises `InputError` for a sink that cannot be used."""

    def prepare(self, event: BaseEvent) -> Any:
        """Return `event` as it will be written, or `None` when nothing of it may be."""

    def write(self, prepared: Sequence[Any]) -> None:
        """Write and flush."""

    def close(self) -> None:
        """Finish the sink."""


class Tape:
    """Takes the events of any number of runs and hands them to one outlet, run after run.

    `buffer` is how many events may wait, those of held runs among them; `patience` how many seconds the app may
    be kept waiting in all.
    """

    def __init__(self, target: Outlet, *, buffer: int, patience: float) -> None:
        self.lost = 0
        """How many events were not written."""
        self.fault: BaseException | None = None
        """What the sink failed with."""
        self._outlet: Final = target
        self._buffer: Final = buffer
        self._patience = patience
        self._lock: Final = threading.RLock()
        self._changed: Final = threading.Condition(self._lock)
        self._items: deque[tuple[Hashable, BaseEvent]] = deque()
        self._jobs: list[Callable[[], None]] = []
        self._soon = False  # whether one of them has no time to gather more
        self._waiting = 0  # events that came and are not written
        self._gaps: dict[Hashable, int] = {}
        self._held: dict[
            Hashable, list[Any]
        ] = {}  # the runs whose turn has not come, in the order they began
        self._over: set[Hashable] = set()  # of those, the ones that have ended
        self._current: Hashable | None = None
        self._idle = False
        self._closing = False
        target.open()
        self._thread: Final = threading.Thread(target=self._work, name="byline recorder", daemon=True)
        self._thread.start()

    def put(self, run: Hashable, events: Sequence[BaseEvent]) -> None:
        """Take events of `run`, from any thread.  Never raises; waits only while there is patience left."""
        with self._lock:
            for event in events:
                if self.fault is not None or (
                    self._closing and threading.current_thread() is not self._thread
                ):
                    self.lost += 1
                    continue
                if self._waiting >= self._buffer and event.type not in _ENDS and not self._room():
                    self._gaps[run] = self._gaps.get(run, 0) + 1
                    self.lost += 1
                    continue
                if self._gaps and run in self._gaps:
                    self._append(run, CustomEvent(name=GAP, value={"events": self._gaps.pop(run)}))
                self._append(run, event)
            if self._idle:
                self._idle = False
                self._changed.notify_all()

    def later(self, job: Callable[[], None], *, soon: bool) -> None:
        """Have `job` called in the tape's thread before it next takes what there is: `soon`, or when it is due."""
        with self._changed:
            self._jobs.append(job)
            self._soon = self._soon or soon
            if self._idle:
                self._idle = False
                self._changed.notify_all()

    def close(self) -> None:
        """Write what is there and finish the sink; waits while there is patience left."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(max(self._patience, 0.1))
        if self._thread.is_alive():
            with self._changed:
                self.fault = self.fault or TimeoutError("the sink did not take the events in time")
        if self.lost or self._waiting:
            self.lost += self._waiting
            _log.error(
                "the recording is incomplete: %d events were lost%s",
                self.lost,
                "" if self.fault is None else f" ({self.fault})",
            )

    def _append(self, run: Hashable, event: BaseEvent) -> None:
        self._items.append((run, event))
        self._waiting += 1

    def _room(self) -> bool:
        """Wait for room, as long as there is patience left."""
        if threading.current_thread() is self._thread:  # a job: who else would make room?
            return True
        self._changed.notify_all()
        began = time.monotonic()
        self._changed.wait_for(lambda: self._waiting < self._buffer, max(self._patience, 0))
        self._patience -= time.monotonic() - began
        return self._waiting < self._buffer

    # ------------------------------------------------------ the tape's thread

    def _work(self) -> None:
        try:
            while (items := self._take()) is not None:
                self._sort(items)
            for rest in self._held.values():
                self._write(rest)
        except BaseException as fault:
            _log.error("the sink failed and is not written to any more", exc_info=True)
            with self._changed:
                self.fault = fault
                self._changed.notify_all()
        try:
            self._outlet.close()
        except Exception as fault:
            self.fault = self.fault or fault
            _log.error("the sink could not be closed", exc_info=True)

    def _take(self) -> list[tuple[Hashable, BaseEvent]] | None:
        """Return what was gathered; `None` when there will be no more.

        Waking a thread costs the one that wakes it more than all the rest of `put`, so nobody is woken while events
        keep coming: this thread looks by itself, and waits to be woken only after a long silence.
        """
        moments = 0
        with self._changed:
            while not self._closing and not (self._items and self._waiting >= self._buffer):
                self._changed.wait(_MOMENT)
                moments += 1
                if self._items or self._jobs:
                    if self._soon or moments >= _GATHER:
                        break
                elif moments > _PATIENT and not self._closing:
                    self._idle = True
                    self._changed.wait()
                    self._idle, moments = False, 0
            if self._closing and not self._items and not self._jobs:
                return None
            jobs, self._jobs, self._soon = self._jobs, [], False
        for job in jobs:  # not under our lock: they take a run's, under which others take ours
            job()
        with self._changed:
            items, self._items = self._items, deque()
            return list(items)

    def _sort(self, items: list[tuple[Hashable, BaseEvent]]) -> None:
        """Write what is of the current run, hold what is of others, and go on to the next run at its end."""
        ready: list[Any] = []
        for run, event in items:
            prepared = self._outlet.prepare(event)
            if self._current is None:
                self._current = run
            mine = ready if run == self._current else self._held.setdefault(run, [])
            if prepared is None:
                self._written(1)
            else:
                mine.append(prepared)
            if event.type not in _ENDS:
                continue
            if run != self._current:
                self._over.add(run)
                continue
            self._current = None
            while self._current is None and self._held:
                following = next(iter(self._held))
                ready += self._held.pop(following)
                if following in self._over:
                    self._over.discard(following)
                else:
                    self._current = following
        self._write(ready)

    def _write(self, ready: list[Any]) -> None:
        if ready:
            self._outlet.write(ready)
            self._written(len(ready))

    def _written(self, count: int) -> None:
        with self._changed:
            self._waiting -= count
            self._changed.notify_all()


def outlet(sink: Any, *, redact: Redact | None, append: bool) -> Outlet:
    """Return `sink` (a path, a queue or a callable) as an outlet; raises `InputError` for anything else."""
    if isinstance(sink, str | os.PathLike):
        return _File(Path(sink), redact, append=append)
    if isinstance(sink, asyncio.Queue):
        return _AsyncQueue(sink, redact)
    if callable(getattr(sink, "put", None)):
        return _Each(sink.put, redact)
    if asyncio.iscoroutinefunction(sink):
        raise InputError(
            f"the sink {sink!r} is a coroutine function, and nobody would await it: "
            "give an asyncio.Queue and read that, or a plain callable"
        )
    if callable(sink):
        return _Each(sink, redact)
    raise InputError(f"the sink is {type(sink).__name__}, expected a path, a callable or a queue")


def _redacted(event: BaseEvent, redact: Redact | None) -> BaseEvent | None:
    """Ask `redact` what may be written; when it fails, or what it gives is no event, nothing of the event may."""
    if redact is None:
        return event
    try:
        wire = redact(event.model_dump(mode="json", by_alias=True))
        return None if wire is None else EVENT_CLASSES[wire["type"]].model_validate(wire)
    except Exception:
        _log.error("redact failed; the %s event is not recorded", event.type.value, exc_info=True)
        return None


class _File:
    """A JSONL file, compressed when its name ends in `.gz`."""

    def __init__(self, path: Path, redact: Redact | None, *, append: bool) -> None:
        self._path: Final = path
        self._redact: Final = redact
        self._append: Final = append
        self._file: IO[bytes]

    def open(self) -> None:
        mode = "ab" if self._append else "wb"
        try:
            if self._path.suffix == ".gz":
                if self._append:
                    _mend_gzip(self._path)
                self._file = cast("IO[bytes]", gzip.open(self._path, mode))  # noqa: SIM115
            else:
                self._file = self._path.open(mode)
                if self._append and _cut_short(self._path):
                    self._file.write(b"\n")
        except OSError as fault:
            raise InputError(
                f"cannot record to {os.fspath(self._path)!r}: {fault.strerror or fault}; "
                "give a file in a folder that exists and can be written"
            ) from fault

    def prepare(self, event: BaseEvent) -> Any:
        if self._redact is None:
            return encode(event)
        seen = _redacted(event, self._redact)
        return None if seen is None else encode(seen)

    def write(self, prepared: Sequence[Any]) -> None:
        self._file.write(("\n".join(prepared) + "\n").encode())
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class _Each:
    """A callable, or a queue's `put`, that takes event after event."""

    def __init__(self, take: Callable[[Any], object], redact: Redact | None) -> None:
        self._take: Final = take
        self._redact: Final = redact

    def open(self) -> None:
        """Nothing to open."""

    def prepare(self, event: BaseEvent) -> Any:
        return _redacted(event, self._redact)

    def write(self, prepared: Sequence[Any]) -> None:
        for event in prepared:
            self._take(event)

    def close(self) -> None:
        """Nothing to close: the sink is its owner's."""


class _AsyncQueue(_Each):
    """An `asyncio.Queue`, fed on the loop where the recording began; what it has no room for is lost."""

    def __init__(self, target: "asyncio.Queue[Any]", redact: Redact | None) -> None:
        super().__init__(target.put_nowait, redact)
        self._loop: asyncio.AbstractEventLoop

    def open(self) -> None:
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError as fault:
            raise InputError(
                "an asyncio.Queue was given as the sink outside of an event loop: "
                "begin the recording in a coroutine, or give a queue.Queue"
            ) from fault

    def write(self, prepared: Sequence[Any]) -> None:
        self._loop.call_soon_threadsafe(self._fill, prepared)

    def _fill(self, prepared: Sequence[Any]) -> None:
        for at, event in enumerate(prepared):
            try:
                self._take(event)
            except asyncio.QueueFull:
                _log.error("the asyncio.Queue is full: %d events were lost", len(prepared) - at)
                return


def _cut_short(path: Path) -> bool:
    """Return whether the last line was not finished: the writer before us was killed."""
    with path.open("rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def _mend_gzip(path: Path) -> None:
    """Write a compressed file anew when its end is missing: nothing that is added to one could ever be read."""
    if not path.exists() or path.stat().st_size == 0:
        return
    mended = path.with_name(path.name + ".mended")
    try:
        with path.open("rb") as old, gzip.open(mended, "wb") as new:
            if _copy(old, cast("IO[bytes]", new)):
                return
        mended.replace(path)
    finally:
        mended.unlink(missing_ok=True)


def _copy(old: IO[bytes], new: IO[bytes]) -> bool:
    """Copy what can be decompressed; return whether that was all, down to the end of a line."""
    reader = zlib.decompressobj(wbits=31)
    last, data = b"\n", b""
    try:
        while data := data or old.read(1 << 16):
            plain = reader.decompress(data)
            new.write(plain)
            last = plain[-1:] or last
            data = reader.unused_data
            if reader.eof and (data := data or old.read(1 << 16)):
                reader = zlib.decompressobj(wbits=31)
    except zlib.error as fault:
        _log.warning("the recording to be continued is damaged: %s", fault)
    else:
        if reader.eof and last == b"\n":
            return True
    if last != b"\n":
        new.write(b"\n")
    return False
