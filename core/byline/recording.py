"""`byline.record()`: the app is called as ever, and who did what is written down.

The core knows no framework.  It asks the plugins (`byline_observe`) for a context manager under which the runs the
app starts by itself are reported to an `Observation`; each run is a `Sink` like any other, so a recorded stream is
made by the same attributor as one that is asked for.
"""

import atexit
import contextlib
import functools
import inspect
import logging
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Final, Self, TypeVar, cast

from . import signals as s
from ._tape import Redact, Tape, outlet
from .agent import RunEnd, Sink, Unread, milliseconds
from .attributor import Attributor
from .errors import InputError, NoAdapterError
from .events import BaseEvent, EventType, Message
from .hooks import Plugins
from .visibility import Lens

__all__ = ["Observation", "ObservedRun", "Recording", "record"]

F = TypeVar("F", bound=Callable[..., Any])

_log = logging.getLogger("byline")


_AS_IT_IS: Final = Lens(lambda _event: "attributed")
"""What a `Sink` has to be given, and an `ObservedRun` does not look through."""

_LASTING: Final = frozenset(
    {
        s.Opened,
        s.Text,
        s.Reasoning,
        s.Call,
        s.Arguments,
        s.ModelOver,
        s.StepStarted,
        s.StepFinished,
        s.Usage,
        s.RunCancelled,
        s.RunFailed,
    }
)
"""The signals that hold nothing of the app's that it could still change."""

_FAR_BEHIND: Final = 1000
"""How many signals of a run may wait for the recorder's thread before the app's own turns them into events."""


def _lasts(signal: s.Signal) -> bool:
    """Return whether `signal` says the same in a moment, whatever the app does until then."""
    kind = type(signal)
    if kind in _LASTING:
        return True
    value: object = None
    if isinstance(signal, s.Result):
        value = signal.content
    elif isinstance(signal, s.Closed | s.RunFinished):
        value = signal.result
    return value is s.ABSENT or type(value) is str


class ObservedRun(Sink):
    """One run of the app, reported from outside: signals go to `report`, its end to `end`.

    A signal costs the app an append.  The recorder's thread makes the events, some milliseconds later and many at
    once, which costs a fraction of making them one by one in the midst of the app: what an event takes is little
    work, and much waiting for code and data that the app has driven out of the processor's cache.  Each keeps its
    own time.  What holds an object of the app's, which may change, is told at once.
    """

    def __init__(
        self, observation: "Observation", attributor: Callable[[Callable[[], int] | None], Attributor]
    ) -> None:
        clock = observation.clock
        self._clock: Final = clock or _no_time
        self._at = self._clock()
        super().__init__(
            attributor(None if clock is None else self._time), Unread(), _AS_IT_IS, (), observation.plugins
        )
        self.observation: Final = observation
        self.silent = True
        """Whether nothing has been reported of it."""
        self._behind: list[tuple[int, s.Signal]] = []  # signals, with their time
        self._due = False
        self._gone = False

    def _time(self) -> int:
        return self._at

    def report(self, signal: s.Signal) -> None:
        """Take a signal.  Never raises."""
        with self.lock:
            if self._gone:
                return
            self.silent = False
            self._behind.append((self._clock(), signal))
            if len(self._behind) >= _FAR_BEHIND or not _lasts(signal):
                self.settle()
            elif not self._due:
                self._due = True
                self.observation.later(self._settle_soon)

    def settle(self) -> None:
        """Have all that was reported recorded."""
        with self.lock:
            if not self._behind:
                return
            behind, self._behind = self._behind, []
            events: list[BaseEvent] = []
            for self._at, signal in behind:
                try:
                    events += self._attributor.feed(signal)
                except Exception as fault:
                    self._deliver(events)
                    events = []
                    self.fault(f"signal {type(signal).__name__}", fault)
            self._deliver(events)

    @property
    def is_behind(self) -> bool:
        """Whether something was reported that is not recorded yet."""
        return bool(self._behind)

    def _settle_soon(self) -> None:
        """Catch up in the recorder's thread, which must not wait for the run: it may be waiting for room."""
        if not self.lock.acquire(blocking=False):
            self.observation.later(self._settle_soon)
            return
        try:
            self._due = False
            self.settle()
        finally:
            self.lock.release()

    def _deliver(self, events: list[BaseEvent]) -> None:
        # Everything is recorded as it is, and nobody else watches: neither lens nor observers are asked.
        if events:
            self.observation.take(self, events)

    def end(self, how: RunEnd) -> None:
        """Say how the run ended; what is reported afterwards is dropped."""
        self.report(how)
        self.observation.forget(self)

    def forget(self) -> None:
        """Drop a run that turned out to be none: nothing is recorded of it."""
        self._gone = True
        self.observation.forget(self)


class Observation:
    """What an adapter reports the runs of the app to, while the recording lasts."""

    def __init__(self, tape: Tape, plugins: Plugins, *, raw: bool, clock: Callable[[], int] | None) -> None:
        self.plugins: Final = plugins
        self.raw: Final = raw
        """Whether the framework's own events are wanted as `RAW` events."""
        self.clock: Final = clock
        self._tape: Final = tape
        self._open: Final[dict[ObservedRun, None]] = {}  # in the order of their beginning
        self._ended: list[ObservedRun] = []  # those whose last signals may not be recorded yet
        self._closed = False

    def begin(
        self,
        thread_id: str,
        run_id: str,
        *,
        parent_run_id: str | None = None,
        history: Sequence[Message] = (),
    ) -> ObservedRun:
        """Return a new run.  Nothing is written of it before its first signal."""
        run = ObservedRun(
            self,
            lambda clock: Attributor(
                thread_id, run_id, parent_run_id=parent_run_id, history=history, clock=clock
            ),
        )
        self._open[run] = None
        return run

    def later(self, job: Callable[[], None], *, soon: bool = False) -> None:
        """Have `job` called once by the recorder's thread, when it next works: in a quarter of a second at most.

        `soon` is for what gets its time only then: within 50 ms.
        """
        self._tape.later(job, soon=soon)

    def take(self, run: ObservedRun, events: list[BaseEvent]) -> None:
        """Record `events` of `run`, unless the recording is over."""
        if self._closed:
            return
        if not self.raw:
            events = [event for event in events if event.type is not EventType.RAW]
        self._tape.put(run, events)

    def forget(self, run: ObservedRun) -> None:
        """Drop a run that is over."""
        self._open.pop(run, None)
        self._ended = [*(one for one in self._ended if one.is_behind), run]

    def close(self) -> None:
        """End the runs that are still at work: the recording stops before they do."""
        for run in list(self._open):
            if not run.silent:
                run.end(s.RunCancelled("the recording ended before the run did"))
        for run in self._ended:
            run.settle()
        self._open.clear()
        self._closed = True


class Recording:
    """What `record` returns: a context manager, sync and async, and a decorator.

    As a decorator it takes functions of all four kinds: plain, coroutine, generator and async generator.  Calls
    of one decorated function write to one sink, also at the same time.
    """

    def __init__(
        self,
        sink: Any,
        target: Any,
        plugins: Iterable[object],
        options: dict[str, Any],
        limits: dict[str, Any],
    ) -> None:
        self._sink: Final = sink
        self._target: Final = target
        self._plugins: Final = tuple(plugins)
        self._options: Final = options  # of the observation
        self._limits: Final = limits  # of the tape
        self._lock: Final = threading.Lock()
        self._users = 0
        self._tape: Tape | None = None
        self._stack: ExitStack | None = None

    @property
    def lost(self) -> int:
        """How many events were not written because the sink was too slow or failed."""
        return 0 if self._tape is None else self._tape.lost

    def __enter__(self) -> Self:
        if self._stack is not None:
            raise RuntimeError("this recording is under way already: call record() again for another one")
        stack = ExitStack()
        stack.enter_context(self._observing())
        self._stack = stack
        return self

    def __exit__(self, *_exc: object) -> None:
        stack, self._stack = self._stack, None
        if stack is not None:
            stack.close()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *_exc: object) -> None:
        # The wait for a slow sink is bounded by `patience`, but the loop should not stand still for it.
        stack, self._stack = self._stack, None
        if stack is None:
            return
        import asyncio

        self._users += 1  # the last user closes the tape: let that be the thread below
        stack.close()
        await asyncio.to_thread(self._release)

    def __call__(self, function: F) -> F:
        """Return `function` with every call of it recorded."""
        if inspect.isasyncgenfunction(function):

            @functools.wraps(function)
            async def wrapped_asyncgen(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
                with self._observing():
                    async with contextlib.aclosing(function(*args, **kwargs)) as items:
                        async for item in items:
                            yield item

            return cast("F", wrapped_asyncgen)
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def wrapped_async(*args: Any, **kwargs: Any) -> Any:
                with self._observing():
                    return await function(*args, **kwargs)

            return cast("F", wrapped_async)
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def wrapped_generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
                with self._observing():
                    return (yield from function(*args, **kwargs))

            return cast("F", wrapped_generator)

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self._observing():
                return function(*args, **kwargs)

        return cast("F", wrapped)

    @contextlib.contextmanager
    def _observing(self) -> Iterator[None]:
        plugins = Plugins(self._plugins)
        tape = self._acquire()
        try:
            observation = Observation(tape, plugins, **self._options)
            try:
                with _observer(plugins, observation, self._target):
                    yield
            finally:
                observation.close()
        finally:
            self._release()

    def _acquire(self) -> Tape:
        with self._lock:
            if self._users == 0 or self._tape is None:
                self._tape = Tape(
                    outlet(self._sink, redact=self._limits["redact"], append=self._limits["append"]),
                    buffer=self._limits["buffer"],
                    patience=self._limits["patience"],
                )
                _tapes.add(self._tape)
            self._users += 1
            return self._tape

    def _release(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._tape is not None:
                self._tape.close()
                _tapes.discard(self._tape)
                # A second `with` on this object continues the file, whatever was said of the first.
                self._limits["append"] = True


_tapes: Final["weakref.WeakSet[Tape]"] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """A generator that was never finished keeps its recording open: the interpreter's end closes it."""
    for tape in list(_tapes):
        tape.close()


def _no_time() -> int:
    return 0


def record(
    sink: Any,
    target: Any = None,
    *,
    redact: Redact | None = None,
    raw: bool = False,
    append: bool = True,
    buffer: int = 100_000,
    patience: float = 10.0,
    plugins: Iterable[object] = (),
    clock: Callable[[], int] | None = milliseconds,
) -> Recording:
    """Record what an unchanged app does while it is called as ever.

    >>> with byline.record("run.jsonl"):                        # doctest: +SKIP
    ...     app.invoke({"messages": [("user", "hi")]})

    `sink` is a path (JSON lines; compressed when it ends in `.gz`), a callable that takes an event, or a queue:
    `queue.Queue`, `multiprocessing.Queue`, or an `asyncio.Queue` of the running loop.  `target` is what to watch
    in a framework that has no process-wide hook (an ADK runner); LangGraph and deepagents need none.

    `redact` is called with each event in its wire form (a `dict`, which it may change) and returns what may be
    written, or `None` to leave the event out.  `raw` adds the framework's own events.  `append` continues a file
    that is there, else it is begun anew.  `buffer` is how many events may wait for a slow sink, `patience` how
    many seconds the app may be kept waiting for it in all; what does not fit is lost, counted in
    `Recording.lost`, and marked in the stream by a `CUSTOM` event `byline.gap`.

    Raises `InputError` for a sink that cannot be used and `NoAdapterError` when no installed adapter can watch
    the target, both on entering.  Once the app runs nothing is raised: its results and exceptions are its own.
    """
    if buffer < 1:
        raise InputError(f"buffer is {buffer}, expected how many events may wait: 1 or more")
    limits = {"redact": redact, "append": append, "buffer": buffer, "patience": patience}
    return Recording(sink, target, plugins, {"raw": raw, "clock": clock}, limits)


def _observer(plugins: Plugins, observation: Observation, target: Any) -> AbstractContextManager[Any]:
    answer = plugins.ask("byline_observe", observation=observation, target=target)
    if answer is not None:
        return cast("AbstractContextManager[Any]", answer)
    broken = "".join(f"; plugin {name} could not be used: {why}" for name, why in plugins.broken.items())
    if target is None:
        raise NoAdapterError(
            "no installed adapter can watch an app without being given it: "
            "pip install 'byline[langgraph]', or give the target (for ADK: record(sink, runner))" + broken
        )
    kind = type(target)
    raise NoAdapterError(
        f"no adapter can watch {kind.__module__}.{kind.__qualname__}; "
        "a LangGraph app needs no target, for ADK give the runner: record(sink, runner)" + broken
    )
