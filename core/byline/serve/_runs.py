"""Runs that outlive their connections.

A run writes into a log and readers read from it, each at its own pace, so a client that went away can come back and
get what it missed.  The three limits are all here: how much of a run is kept (then the run waits for its readers), how
many runs are open, and how long a run waits for a client that went away.

Readers of this process read from memory.  Where several servers share a database the log is written there too
(`_shared`), for readers that come back to another one.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from ag_ui.encoder import EventEncoder

from byline.agent import Agent, Run
from byline.errors import BylineError, StoreError
from byline.events import RunAgentInput, RunErrorEvent
from byline.grants import Permit
from byline.user import as_user

if TYPE_CHECKING:
    from byline.serve._shared import FollowedRun, Share, Sharing

__all__ = ["Limits", "LiveRun", "Reader", "RefusedError", "Runs", "run_exists", "thread_busy"]

_log = logging.getLogger("byline")


@dataclass(frozen=True, slots=True)
class Limits:
    """What a server spends: seconds and bytes."""

    grace: float = 30.0
    """How long a run goes on without a reader, and how long a finished one can be read."""
    keep_alive: float = 15.0
    """After how long a silence a comment is sent."""
    max_runs: int = 1000
    """How many runs may be open."""
    max_body: int = 10_000_000
    """The largest request."""
    max_log: int = 16_000_000
    """How much of one run is kept for its readers."""


class RefusedError(BylineError):
    """A run that cannot be begun or read now; `status` is HTTP's, `code` a stable word, `more` goes along."""

    def __init__(self, status: int, code: str, message: str, **more: str) -> None:
        super().__init__(message)
        self.status: Final = status
        self.code: Final = code
        self.more: Final = more


def thread_busy(thread: str, run_id: str | None) -> RefusedError:
    """Return the refusal of a run beside another; `run_id` is the other's, where the client may know it."""
    running = {} if run_id is None else {"runId": run_id}
    return RefusedError(409, "thread_busy", f"thread {thread!r} has a run under way", **running)


def run_exists(thread: str, run_id: str) -> RefusedError:
    """Return the refusal of a run whose id was used."""
    return RefusedError(
        409, "run_exists", f"thread {thread!r} had a run {run_id!r}: a new run needs a new id"
    )


class Reader:
    """One reader of a run's log."""

    def __init__(self, live: "LiveRun", following: int) -> None:
        self._live: Final = live
        self.at = following
        self.gone = False
        self._wake: Final = asyncio.Event()

    def wake(self) -> None:
        """There is something new: a frame, the end, or that the client has gone."""
        self._wake.set()

    def leave(self) -> None:
        """The client has gone."""
        self.gone = True
        self._wake.set()

    async def read(self, patience: float) -> bytes | None:
        """Return what is new, in one piece; empty after `patience` seconds of silence, `None` at the end."""
        while not self.gone:
            data = self._live.after(self)
            if data:
                return data
            if self._live.over:
                return None
            self._wake.clear()
            try:
                async with asyncio.timeout(patience):
                    await self._wake.wait()
            except TimeoutError:
                return b""
        return None


class LiveRun:
    """One run of the agent with its log."""

    def __init__(
        self,
        run: Run,
        user: str | None,
        limits: Limits,
        ended: Callable[["LiveRun"], None],
        share: "Share | None" = None,
    ) -> None:
        self.run: Final = run
        self.user: Final = user
        self.over = False
        self.task: asyncio.Task[None] | None = None
        self._limits: Final = limits
        self._ended: Final = ended
        self._share: Final = share
        self._asking: asyncio.Task[None] | None = None
        self._frames: Final[deque[bytes]] = deque()
        self._first = 0  # the number of the oldest frame that is kept
        self._size = 0
        self._readers: Final[set[Reader]] = set()
        self._room: Final = asyncio.Event()
        self._begun: Final[asyncio.Future[None]] = asyncio.get_running_loop().create_future()
        self._leaving: asyncio.TimerHandle | None = None
        self._cancelling: asyncio.Task[None] | None = None

    @property
    def key(self) -> tuple[str, str]:
        """The thread and the run."""
        return self.run.thread_id, self.run.run_id

    @property
    def empty(self) -> bool:
        """Whether it has no event at all: it was refused."""
        return self._first + len(self._frames) == 0

    def holds(self, following: int) -> bool:
        """Return whether frame `following` is still in memory, or has not been yet."""
        return following >= self._first

    @asynccontextmanager
    async def reading(self, following: int = 0) -> AsyncIterator[Reader]:
        """Give a reader of what comes from frame number `following` on."""
        if following < self._first:
            raise RefusedError(
                410, "events_gone", f"the events before {self._first} of this run are not kept any more"
            )
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None
        reader = Reader(self, min(following, self._first + len(self._frames)))
        self._readers.add(reader)
        try:
            yield reader
        finally:
            self._readers.discard(reader)
            self._room.set()
            if not self._readers and not self.over and self._leaving is None:
                self._wait_for_somebody(self._limits.grace)

    def after(self, reader: Reader) -> bytes:
        """Return the frames that `reader` has not read, and count them as read."""
        missing = reader.at - self._first
        count = len(self._frames) - missing
        if count <= 0:
            return b""
        newest = list(islice(reversed(self._frames), count))  # not all there are, for each that is new
        data = b"".join(reversed(newest))
        reader.at += count
        if self._size > self._limits.max_log:
            self._room.set()
        return data

    async def begun(self) -> None:
        """Wait for the first event; raises what the input was refused with."""
        await asyncio.shield(self._begun)

    def cancel(self, reason: str) -> None:
        """Stop the run; its readers still get its end."""
        if not self.over and self._cancelling is None:
            self._cancelling = asyncio.create_task(self._cancel(reason))

    async def stop(self, reason: str) -> None:
        """Stop the run: what a reader may ask for."""
        self.cancel(reason)

    async def _cancel(self, reason: str) -> None:
        await self.run.cancel(reason)
        self._room.set()
        if not self._begun.done() and self.task is not None:  # its app has not been called yet
            self.task.cancel()

    def _wait_for_somebody(self, seconds: float) -> None:
        self._leaving = asyncio.get_running_loop().call_later(seconds, self._nobody_came_back)

    def _nobody_came_back(self) -> None:
        self._leaving = None
        if self._share is None:
            self.cancel(f"the client did not come back within {self._limits.grace:g} s")
        else:
            self._asking = asyncio.create_task(self._unless_read_elsewhere(self._share))

    async def _unless_read_elsewhere(self, share: "Share") -> None:
        try:
            wanted = await share.attended()
        except StoreError:
            wanted = 1.0  # nobody can tell now
        if self._readers or self.over:
            return
        if wanted > 0:
            self._wait_for_somebody(wanted)
        else:
            self.cancel(f"the client did not come back within {self._limits.grace:g} s")

    async def pump(self) -> None:
        """Run the agent into the log."""
        encoder = EventEncoder()
        refusal: BylineError | None = None
        try:
            async for event in self.run:
                self._put(encoder.encode(event))
                if not self._begun.done():
                    self._begun.set_result(None)
                if self._size > self._limits.max_log:
                    await self._make_room()
        except BaseException as fault:
            refusal = self._failed(fault, encoder)
            if not isinstance(fault, Exception):
                raise
        finally:
            if self._share is not None:  # whoever sees the end may begin the thread's next run anywhere
                await (self._share.release() if self.empty else self._share.finish())
            self.over = True
            if refusal is not None:
                self._begun.set_exception(refusal)
                self._begun.exception()  # nobody may be waiting any more
            if self._leaving is not None:
                self._leaving.cancel()
            for reader in self._readers:
                reader.wake()
            self._ended(self)

    def _failed(self, fault: BaseException, encoder: EventEncoder) -> BylineError | None:
        """Before the first event the fault is the request's: return it; later it is the end of the stream."""
        if not self._begun.done():
            if isinstance(fault, BylineError):
                return fault
            _log.error("run %r of thread %r could not begin", *reversed(self.key), exc_info=fault)
            return RefusedError(500, "internal", "the run could not begin")
        _log.error("run %r of thread %r broke off", *reversed(self.key), exc_info=fault)
        self._put(encoder.encode(RunErrorEvent(message="the server failed; see its log", code="internal")))
        return None

    def _put(self, text: str) -> None:
        frame = f"id: {self._first + len(self._frames)}\n{text}".encode()
        self._frames.append(frame)
        self._size += len(frame)
        if self._share is not None:
            self._share.put(frame)
        for reader in self._readers:
            reader.wake()

    def saved(self) -> None:
        """More of the log is in the database."""
        self._room.set()

    async def _make_room(self) -> None:
        """Forget what all readers have; wait for them, or for somebody to come back, while it is too much."""
        while self._size > self._limits.max_log and self._cancelling is None:
            if self._share is None:
                read = min((reader.at for reader in self._readers), default=self._first)
            else:  # what is in the database can be read from there
                read = min([self._share.saved, *(reader.at for reader in self._readers)])
            while self._first < read and self._size > self._limits.max_log // 2:
                self._size -= len(self._frames.popleft())
                self._first += 1
            if self._size > self._limits.max_log:
                self._room.clear()
                await self._room.wait()


class Runs:
    """The runs of one server: one per thread at a time, the finished ones for a while longer."""

    def __init__(self, agent: Agent, limits: Limits, sharing: "Sharing | None" = None) -> None:
        self.limits: Final = limits
        self.closing = False
        self._agent: Final = agent
        self._by_thread: Final[dict[str, LiveRun]] = {}
        self._known: Final[dict[tuple[str, str], LiveRun]] = {}
        self._sharing: Final = sharing
        self._claiming = 0

    @property
    def open(self) -> int:
        """How many runs are under way."""
        return len(self._by_thread)

    def start(self) -> None:
        """Take part in what several servers share, if they do."""
        if self._sharing is not None:
            self._sharing.start()

    async def begin(
        self, run_input: RunAgentInput, user: str | None, permit: Permit | None = None
    ) -> LiveRun:
        """Begin a run.  Raises `RefusedError`, and `InputError` for an input that the agent cannot use."""
        if self._sharing is None:
            return self._begin(run_input, user, permit, None)
        # To its end also when the request is given up: a thread that is taken and not run would stay taken.
        return await asyncio.shield(asyncio.create_task(self._claim(self._sharing, run_input, user, permit)))

    async def _claim(
        self, sharing: "Sharing", run_input: RunAgentInput, user: str | None, permit: Permit | None
    ) -> LiveRun:
        self._admit(run_input, user)
        self._claiming += 1
        try:
            share = await sharing.claim(
                run_input.thread_id, run_input.run_id, user, again=bool(run_input.resume)
            )
        finally:
            self._claiming -= 1
        try:
            return self._begin(run_input, user, permit, share)
        except BaseException:
            await share.release()
            raise

    def _admit(self, run_input: RunAgentInput, user: str | None) -> None:
        """Raise what speaks against a run now.

        "A runId MUST NOT be used for another run of the same thread", which is the client's to keep.  CopilotKit does
        not: it answers an interrupt under the id of the run that asked.  Such a run takes the place of the one that
        asked, whose end the client has seen.
        """
        if self.closing:
            raise RefusedError(503, "closing", "the server is shutting down")
        thread, run_id = run_input.thread_id, run_input.run_id
        busy = self._by_thread.get(thread)
        if busy is not None:
            raise thread_busy(thread, busy.run.run_id if busy.user == user else None)
        known = self._known.get((thread, run_id))
        if known is not None and not (known.user == user and run_input.resume):
            raise run_exists(thread, run_id)
        if self.open + self._claiming >= self.limits.max_runs:
            raise RefusedError(503, "too_many_runs", f"{self.open} runs are open, which is as many as may be")

    def _begin(
        self, run_input: RunAgentInput, user: str | None, permit: Permit | None, share: "Share | None"
    ) -> LiveRun:
        self._admit(run_input, user)
        with as_user(user):
            run = self._agent.run(run_input, permit=permit)
        live = LiveRun(run, user, self.limits, self._over, share)
        if share is not None:
            share.belongs_to(live)
        self._by_thread[run_input.thread_id] = self._known[live.key] = live
        with as_user(user):
            live.task = asyncio.create_task(live.pump(), name=f"byline serve {run_input.run_id}")
        return live

    async def find(
        self, thread: str, run_id: str, user: str | None, following: int | None = None
    ) -> "LiveRun | FollowedRun":
        """Return a run that is under way or has just finished, to be read from frame `following` on.

        Raises `RefusedError`, also for another user's.
        """
        live = self._known.get((thread, run_id))
        if live is not None and live.user == user:
            elsewhere = self._sharing is not None and following is not None and not live.holds(following)
            if not elsewhere:
                return live
        if self._sharing is not None:
            followed = await self._sharing.find(thread, run_id, user)
            if followed is not None:
                return followed
        raise RefusedError(404, "no_such_run", f"thread {thread!r} has no run {run_id!r} that can be read")

    async def close(self) -> None:
        """Refuse new runs, stop those under way, and wait for their ends to be written."""
        self.closing = True
        tasks = [live.task for live in self._by_thread.values() if live.task is not None]
        for live in list(self._by_thread.values()):
            live.cancel("the server is shutting down")
        if tasks:
            await asyncio.wait(tasks, timeout=10)
        if self._sharing is not None:
            await self._sharing.close()

    def _over(self, live: LiveRun) -> None:
        if self._by_thread.get(live.run.thread_id) is live:
            del self._by_thread[live.run.thread_id]
        if live.empty:  # it never was a run: its id is free
            self._drop(live)
        else:
            asyncio.get_running_loop().call_later(self.limits.grace, self._drop, live)

    def _drop(self, live: LiveRun) -> None:
        if self._known.get(live.key) is live:  # and no other that has taken its place
            del self._known[live.key]
