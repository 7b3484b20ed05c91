"""A thread after a reload: its messages with their owners, and who did what.

The framework's own store holds the parent agent's conversation; what happened inside a subagent is in no checkpoint.
So a `Threads` store keeps the stream of each run as the client saw it, with the user's words in front of it, and the
history is what a ledger makes of that.  Without such a store, or for a thread that is older than it, the history is the
framework's: the parent's messages, and no tree.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from pydantic import TypeAdapter

from .events import (
    BaseEvent,
    EventType,
    Message,
    MessagesSnapshotEvent,
    RunAgentInput,
    RunStartedEvent,
    encode,
)
from .ledger import Ledger

__all__ = ["History", "Keeper", "Keeping", "MemoryThreads", "Part", "Threads"]

_PART: Final = 200
"""Events that are stored together."""
_WAIT: Final = 1.0
"""Seconds after which fewer are."""
_PATIENCE: Final = 5.0
"""Seconds that the end of a run waits for its last events to be kept."""
_ENDS: Final = frozenset({EventType.RUN_FINISHED, EventType.RUN_ERROR})
_MESSAGES: Final = TypeAdapter(list[Message])

_log = logging.getLogger("byline")


class Part(NamedTuple):
    """A stretch of a run: JSON lines."""

    thread_id: str
    run_id: str
    began: int
    """When the run began, in nanoseconds: what puts the runs of a thread in order."""
    number: int
    """Which stretch of the run, from 0."""
    user: str | None
    lines: str


class Threads(Protocol):
    """Keeps the streams of threads.  Called from threads of ours; a fault is logged and the run goes on."""

    def append(self, part: Part) -> None:
        """Keep one more stretch of a run."""

    def read(self, thread_id: str) -> Sequence[Part]:
        """Return all stretches of a thread, in the order of its runs; none for a thread that is not known."""

    def forget(self, thread_id: str) -> None:
        """Keep nothing of a thread any more."""


class MemoryThreads:
    """Threads in this process: the newest ones, up to `limit` characters in all."""

    def __init__(self, limit: int = 64_000_000) -> None:
        self._limit: Final = limit
        self._size = 0
        self._parts: Final[OrderedDict[str, list[Part]]] = OrderedDict()  # the thread used last is last
        self._lock: Final = threading.Lock()

    def append(self, part: Part) -> None:
        """Keep one more stretch of a run; threads that were not used for longest give way."""
        with self._lock:
            self._parts.setdefault(part.thread_id, []).append(part)
            self._parts.move_to_end(part.thread_id)
            self._size += len(part.lines)
            while self._size > self._limit and len(self._parts) > 1:
                self._forget(next(iter(self._parts)))

    def read(self, thread_id: str) -> Sequence[Part]:
        """Return all stretches of a thread."""
        with self._lock:
            return sorted(
                self._parts.get(thread_id, ()), key=lambda part: (part.began, part.run_id, part.number)
            )

    def forget(self, thread_id: str) -> None:
        """Keep nothing of a thread any more."""
        with self._lock:
            self._forget(thread_id)

    def _forget(self, thread_id: str) -> None:
        self._size -= sum(len(part.lines) for part in self._parts.pop(thread_id, ()))


@dataclass(frozen=True)
class History:
    """What is known of a thread."""

    thread_id: str
    messages: Sequence[Message]
    """Its messages, subagents' among them, each with its owner (`subagent_run_id`)."""
    ledger: Ledger | None = None
    """The book of its runs, where they were kept: `tree()`, `invocation(id)`, `pending_interrupts`, `state`."""
    user: str | None = None
    """Whom its newest run was for."""

    def snapshot(self) -> MessagesSnapshotEvent:
        """Return the messages as the event that gives them to a client."""
        return MessagesSnapshotEvent(messages=list(self.messages))

    def to_json(self) -> dict[str, Any]:
        """Return the messages in their wire form and, where there is one, the ledger."""
        known = {} if self.ledger is None else self.ledger.to_json()
        messages = [message.model_dump(mode="json", by_alias=True) for message in self.messages]
        return {"threadId": self.thread_id, "messages": messages, **known}


class Keeper:
    """Writes runs into a `Threads` store, in a few threads of its own."""

    def __init__(self, threads: Threads) -> None:
        self._threads: Final = threads
        self._pool: Final = ThreadPoolExecutor(2, thread_name_prefix="byline history")
        self._pending: Final[dict[str, dict[str, Future[None]]]] = {}  # by thread and run, the last write
        self._lock: Final = threading.Lock()

    def keep(
        self, thread_id: str, run_id: str, run_input: RunAgentInput | None, user: str | None
    ) -> "Keeping":
        """Return what takes the events of a run, one by one."""
        return Keeping(self, Part(thread_id, run_id, time.time_ns(), 0, user, ""), run_input)

    def read(self, thread_id: str) -> History | None:
        """Return what is kept of a thread, the writes under way included; `None` for one that is not known."""
        with self._lock:
            pending = list(self._pending.get(thread_id, {}).values())
        for write in pending:
            write.result()
        parts = self._threads.read(thread_id)
        if not parts:
            return None
        ledger = Ledger.read(line for part in parts for line in part.lines.splitlines())
        return History(thread_id, _MESSAGES.validate_python(ledger.messages), ledger, parts[-1].user)

    def write(self, part: Part) -> "Future[None]":
        """Write a stretch of a run, soon; the future never fails."""
        with self._lock:
            runs = self._pending.setdefault(part.thread_id, {})
            runs[part.run_id] = write = self._pool.submit(self._append, part)
        write.add_done_callback(lambda done: self._written(part, done))
        return write

    def _append(self, part: Part) -> None:
        try:
            self._threads.append(part)
        except Exception:
            _log.error("a stretch of run %r could not be kept for its history", part.run_id, exc_info=True)

    def _written(self, part: Part, write: "Future[None]") -> None:
        with self._lock:
            runs = self._pending.get(part.thread_id, {})
            if runs.get(part.run_id) is write:
                del runs[part.run_id]
                if not runs:
                    del self._pending[part.thread_id]


class Keeping:
    """Keeps one run: called with each of its events."""

    def __init__(self, keeper: Keeper, part: Part, run_input: RunAgentInput | None) -> None:
        self._keeper: Final = keeper
        self._part = part
        self._run_input: Final = run_input
        self._lines: Final[list[str]] = []
        self._written = time.monotonic()
        self._last: Future[None] | None = None

    def __call__(self, event: BaseEvent) -> None:
        """Take an event; what was taken is written now and then, and at the run's end."""
        if isinstance(event, RunStartedEvent) and self._run_input is not None:
            event = event.model_copy(update={"input": _spoken(self._run_input)})
        lines = self._lines
        lines.append(encode(event))
        if event.type in _ENDS or len(lines) >= _PART or time.monotonic() - self._written > _WAIT:
            self._last = self._keeper.write(self._part._replace(lines="\n".join(lines) + "\n"))
            self._part = self._part._replace(number=self._part.number + 1)
            lines.clear()
            self._written = time.monotonic()

    async def settled(self) -> None:
        """Wait until what was taken is written, though not for a store that hangs."""
        if self._last is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE):
                    await asyncio.shield(asyncio.wrap_future(self._last))


def _spoken(run_input: RunAgentInput) -> RunAgentInput:
    """Return of an input what belongs to the thread's story: what the user said.  The rest came from the stream."""
    said: list[Message] = [message for message in run_input.messages if message.role == "user"]
    return RunAgentInput(
        thread_id=run_input.thread_id,
        run_id=run_input.run_id,
        messages=said,
        tools=[],
        context=[],
        state={},
        forwarded_props={},
    )
