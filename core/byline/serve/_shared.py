"""What several servers share: each writes the logs of its runs into one database, and reads there those of others.

All of a worker's runs go into the database together, a tenth of a second after the first of them had something new:
the number of transactions depends on neither how many runs there are nor how much they say.  A thread of its own says
every few seconds that the worker lives, and ends the runs of those that do not; another listens for news.  A worker
that cannot say so stops its runs before the others may take them for dead, so that a thread never runs twice.
"""

import asyncio
import functools
import logging
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from ag_ui.encoder import EventEncoder

from byline.errors import StoreError
from byline.events import RunErrorEvent, encode
from byline.history import Threads
from byline.serve._runs import Limits, LiveRun, RefusedError, run_exists, thread_busy
from byline.stores._runs import Kept, LastFrame, News, SqlRuns, Written

if TYPE_CHECKING:
    from byline.stores._sql import SqlStore

__all__ = ["FollowedRun", "Share", "Sharing"]

_GATHER: Final = 0.1
"""Seconds for which frames are gathered before they are written."""
_RETRY: Final = 1.0
"""Seconds until a database that failed is tried again."""
_LEASE: Final = 15.0
"""Seconds for which a worker is taken for alive once it has said that it is."""
_BEAT: Final = 3.0
"""Seconds between two times that it does."""
_GIVE_UP: Final = 5.0
"""Seconds that a run's end waits to be written; it is tried further after that."""
_LOOK: Final = 5.0
"""Seconds after which a reader looks for itself, in case a notice was missed."""

_P = ParamSpec("_P")
_R = TypeVar("_R")

_log = logging.getLogger("byline")


class Share:
    """One run of this worker, as it goes into the database."""

    def __init__(self, sharing: "Sharing", token: str) -> None:
        self.token: Final = token
        self.saved = 0
        """How many frames are in the database."""
        self.live: LiveRun | None = None
        self._sharing: Final = sharing
        self._unsaved: Final[list[bytes]] = []
        self._ending = False
        self._writing: Written | None = None
        self._done: Final = asyncio.Event()

    def belongs_to(self, live: LiveRun) -> None:
        """Say which run it is."""
        self.live = live

    def put(self, frame: bytes) -> None:
        """Take one more frame."""
        if not self._done.is_set():
            self._unsaved.append(frame)
            self._sharing.flush_soon(self)

    async def finish(self) -> None:
        """The log is complete: wait until that is written, though not for a database that hangs."""
        self._ending = True
        if not self._done.is_set():
            self._sharing.flush_soon(self, now=True)
            with suppress(TimeoutError):
                async with asyncio.timeout(_GIVE_UP):
                    await self._done.wait()

    async def release(self) -> None:
        """The run never began."""
        self._sharing.drop(self)
        try:
            await self._sharing.call(self._sharing.runs.release, self.token)
        except StoreError:
            _log.error("a run that never began could not be taken back", exc_info=True)

    async def attended(self) -> float:
        """Return for how many seconds readers at other workers want the run to go on."""
        return await self._sharing.call(self._sharing.runs.attended, self.token)

    def next(self) -> Written | None:
        """Return what is to be written next; the same again until it was."""
        if self._writing is None and (self._unsaved or self._ending):
            body = b"".join(self._unsaved)
            self._writing = Written(self.token, self.saved, len(self._unsaved), body, self._ending)
            self._unsaved.clear()
        return self._writing

    def written(self) -> bool:
        """What `next` gave is in the database; returns whether there is more."""
        assert self._writing is not None  # noqa: S101
        self.saved += self._writing.frames
        ended, self._writing = self._writing.ended, None
        if ended:
            self.close()
        elif self.live is not None:
            self.live.saved()
        return not ended and bool(self._unsaved or self._ending)

    def close(self) -> None:
        """There is nothing more to be written."""
        self._sharing.drop(self)
        self._unsaved.clear()
        self._done.set()

    def lose(self, why: str) -> None:
        """The run is not ours any more: stop it."""
        self.close()
        if self.live is not None:
            self.live.cancel(why)


class FollowReader:
    """One reader of a run that another worker has."""

    def __init__(self, sharing: "Sharing", token: str, following: int) -> None:
        self.token: Final = token
        self.gone = False
        self._at = following
        self._sharing: Final = sharing
        self._wake: Final = asyncio.Event()

    def wake(self) -> None:
        """There may be something new."""
        self._wake.set()

    def leave(self) -> None:
        """The client has gone, or we go."""
        self.gone = True
        self._wake.set()

    async def read(self, patience: float) -> bytes | None:
        """Return what is new, in one piece; empty after `patience` seconds of silence, `None` at the end."""
        until = time.monotonic() + patience
        while not self.gone:
            self._wake.clear()
            try:
                kept = await self._sharing.call(self._sharing.runs.read, self.token, self._at)
            except StoreError:
                _log.warning("a run of another worker cannot be read now", exc_info=True)
                await asyncio.sleep(_RETRY)
            else:
                if kept is None:
                    return None
                if data := self._new(kept):
                    return data
                if kept.ended:
                    return None
            left = until - time.monotonic()
            if left <= 0:
                return b""
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, _LOOK)):
                    await self._wake.wait()
        return None

    def _new(self, kept: Kept) -> bytes:
        self._at = kept.following
        pieces = []
        for first, body in kept.stretches:
            frames = body.split(b"\n\n")[:-1]  # a frame is one line of JSON and ends with an empty one
            new = frames[self._at - first :]
            pieces += new
            self._at += len(new)
        return b"".join(frame + b"\n\n" for frame in pieces)


class FollowedRun:
    """A run that another worker has, or had."""

    def __init__(self, sharing: "Sharing", token: str, key: tuple[str, str]) -> None:
        self.key: Final = key
        self._sharing: Final = sharing
        self._token: Final = token

    @asynccontextmanager
    async def reading(self, following: int = 0) -> AsyncIterator[FollowReader]:
        """Give a reader of what comes from frame number `following` on."""
        reader = FollowReader(self._sharing, self._token, following)
        await self._sharing.follow(reader)
        try:
            yield reader
        finally:
            await self._sharing.unfollow(reader)

    async def stop(self, reason: str) -> None:
        """Ask the run's worker to stop it."""
        await self._sharing.call(self._sharing.runs.stop, self._token, reason)


class Sharing:
    """One worker's part in what is shared."""

    def __init__(self, store: "SqlStore", limits: Limits, threads: Threads | None) -> None:
        self.runs: Final[SqlRuns] = store.runs
        self.worker: Final = uuid.uuid4().hex
        self._limits: Final = limits
        self._threads: Final = threads
        self._pool: Final = ThreadPoolExecutor(4, thread_name_prefix="byline runs")
        self._shares: Final[dict[str, Share]] = {}
        self._dirty: Final[dict[str, Share]] = {}
        self._hurry: Final = asyncio.Event()
        self._flushing: asyncio.Task[None] | None = None
        self._readers: Final[dict[str, set[FollowReader]]] = {}
        self._asking: asyncio.Task[None] | None = None
        self._watching: asyncio.TimerHandle | None = None
        self._alive = time.monotonic()
        self._closed: Final = threading.Event()
        self._threads_of_ours: Final[list[threading.Thread]] = []
        self._loop: asyncio.AbstractEventLoop

    async def call(self, what: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Call the database in a thread of ours: the app may keep the loop's own ones busy."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, functools.partial(what, *args, **kwargs))

    def start(self) -> None:
        """Begin to take part, once."""
        if self._threads_of_ours:
            return
        self._loop = asyncio.get_running_loop()
        self._alive = time.monotonic()
        for work, name in ((self._beat, "byline heartbeat"), (self._listen, "byline listener")):
            thread = threading.Thread(target=work, name=name, daemon=True)
            self._threads_of_ours.append(thread)
            thread.start()
        self._watch()

    async def close(self) -> None:
        """Take part no more: what could not be ended here is for others to end."""
        if self._closed.is_set():
            return
        self._closed.set()
        for reader in [one for many in self._readers.values() for one in many]:
            reader.leave()  # its client comes back to another worker
        if self._watching is not None:
            self._watching.cancel()
        if self._flushing is not None and self._dirty:
            await asyncio.wait([self._flushing], timeout=_GIVE_UP)
        if not self._threads_of_ours:
            return
        try:
            await asyncio.to_thread(self._threads_of_ours[0].join, _GIVE_UP)
            await self.call(self.runs.leave, self.worker)
        except StoreError:
            _log.warning("the store was not told that this worker has ended", exc_info=True)
        self._pool.shutdown(wait=False)

    # --------------------------------------------------------------- our own runs

    async def claim(self, thread: str, run_id: str, user: str | None, *, again: bool = False) -> Share:
        """Take a thread for a run of ours; raises `RefusedError` where somebody has it, and `StoreError`.

        With `again`, a run of that id that has ended gives way.
        """
        if "\0" in f"{thread}{run_id}{user or ''}":
            raise RefusedError(422, "bad_input", "an id holds a NUL character, which no database takes")
        self.start()
        claim = await self.call(
            self.runs.claim, self.worker, _LEASE, thread, run_id, user, self._last_frame(), again=again
        )
        if claim.token is None:
            other = claim.in_the_way
            if other is not None and other.ended:
                raise run_exists(thread, run_id)
            raise thread_busy(thread, other.run_id if other is not None and other.user == user else None)
        share = self._shares[claim.token] = Share(self, claim.token)
        return share

    def flush_soon(self, share: Share, *, now: bool = False) -> None:
        """Write what a run has, together with what others have."""
        self._dirty[share.token] = share
        if now:
            self._hurry.set()
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush(), name="byline runs into the store")

    def drop(self, share: Share) -> None:
        """A run is over."""
        self._shares.pop(share.token, None)
        self._dirty.pop(share.token, None)

    async def _flush(self) -> None:
        try:
            while self._dirty:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_GATHER):
                        await self._hurry.wait()
                self._hurry.clear()
                taken = {token: share for token, share in self._dirty.items() if share.next() is not None}
                try:
                    lost = await self.call(self._append, list(taken.values()))
                except StoreError:
                    _log.error("the runs cannot be written into the store now", exc_info=True)
                    await asyncio.sleep(_RETRY)
                    continue
                for token, share in taken.items():
                    self._dirty.pop(token, None)
                    if token in lost:
                        share.lose("another worker has ended this run: this one was taken for dead")
                    elif share.written():
                        self._dirty[token] = share
        finally:
            self._flushing = None

    def _append(self, shares: list[Share]) -> set[str]:
        written = [one for share in shares if (one := share.next()) is not None]
        return self.runs.append(written, self._limits.grace)

    def _watch(self) -> None:
        """Stop our runs when we could not say for long that we live: soon others will take them for dead."""
        if time.monotonic() - self._alive > _LEASE - _BEAT:
            for share in list(self._shares.values()):
                share.lose("the store cannot be reached")
        self._watching = self._loop.call_later(1.0, self._watch)

    # --------------------------------------------------------------- others' runs

    async def find(self, thread: str, run_id: str, user: str | None) -> FollowedRun | None:
        """Return a user's run that is in the database."""
        if "\0" in thread + run_id:
            return None
        self.start()
        known = await self.call(self.runs.find, thread, run_id)
        if known is None or known.user != user:
            return None
        return FollowedRun(self, known.token, (thread, run_id))

    async def follow(self, reader: FollowReader) -> None:
        """Wake `reader` when there is news, and let its run go on."""
        self._readers.setdefault(reader.token, set()).add(reader)
        await self.call(self.runs.attend, reader.token, self.worker, self._patience)

    async def unfollow(self, reader: FollowReader) -> None:
        """A reader has gone."""
        readers = self._readers.get(reader.token, set())
        readers.discard(reader)
        if not readers:
            self._readers.pop(reader.token, None)
            if not self._closed.is_set():
                with suppress(StoreError):
                    await self.call(self.runs.attend, reader.token, self.worker, self._limits.grace)

    @property
    def _patience(self) -> float:
        return max(self._limits.grace, 3 * _BEAT)

    def _news(self, news: News) -> None:
        token, stop = news
        every = [one for many in self._readers.values() for one in many]
        for reader in every if token is None else list(self._readers.get(token, ())):
            reader.wake()
        ours = bool(self._shares) if token is None else token in self._shares
        if stop and ours and self._asking is None:
            self._asking = asyncio.create_task(self._stop_what_is_wanted())

    async def _stop_what_is_wanted(self) -> None:
        try:
            for token, why in (await self.call(self.runs.stops, self.worker)).items():
                share = self._shares.get(token)
                if share is not None and share.live is not None:
                    share.live.cancel(why)
        except StoreError:
            _log.warning("whether a run is to be stopped cannot be told now", exc_info=True)
        finally:
            self._asking = None

    # --------------------------------------------------------------- the two threads

    def _beat(self) -> None:
        while not self._closed.is_set():
            began = time.monotonic()
            try:
                self.runs.beat(self.worker, _LEASE)
                self._alive = began
                for token in list(self._readers):
                    self.runs.attend(token, self.worker, self._patience)
                for token in self.runs.tidy(self._last_frame()):
                    self._tell(News(token))
            except Exception:
                _log.warning("the store was not told that this worker lives", exc_info=True)
            self._closed.wait(_BEAT)

    def _listen(self) -> None:
        while not self._closed.is_set():
            try:
                for news in self.runs.changes(self._closed.is_set):
                    self._tell(news)
            except Exception:
                if self._closed.is_set():
                    return
                _log.warning("there is no news from the store now", exc_info=True)
                self._closed.wait(_RETRY)

    def _tell(self, news: News) -> None:
        with suppress(RuntimeError):  # the loop has ended before us
            self._loop.call_soon_threadsafe(self._news, news)

    def _last_frame(self) -> LastFrame:
        return LastFrame(_lost_frame, self._end_history, self._limits.grace)

    def _end_history(self, thread: str, run_id: str, _user: str | None) -> None:
        """Let a run that was cut off with its worker end in the thread's history, too."""
        if self._threads is None:
            return
        try:
            parts = [part for part in self._threads.read(thread) if part.run_id == run_id]
            if parts and '"type":"RUN_FINISHED"' not in parts[-1].lines:
                lines = encode(_lost()) + "\n"
                self._threads.append(parts[-1]._replace(number=parts[-1].number + 1, lines=lines))
        except Exception:
            _log.error("the end of run %r could not be kept for its history", run_id, exc_info=True)


def _lost() -> RunErrorEvent:
    return RunErrorEvent(message="the worker that ran it is gone", code="worker_lost")


def _lost_frame(number: int) -> bytes:
    return f"id: {number}\n{EventEncoder().encode(_lost())}".encode()
