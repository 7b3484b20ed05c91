"""`attribute()`: an existing app, unchanged, as a source of attributed events.

What happens in a run::

    native callback -> adapter -> Signal -> Attributor -> Event -+-> observers (recorder, ledger, validator)
                                                                 +-> visibility -> your code

An adapter brings three small things: an `Adapter` that recognises a target without importing its framework, a
`Bound` that holds one target, and a `Session` that runs it once.  All that is common to frameworks is here.
"""

import asyncio
import importlib.util
import logging
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, cast

from pydantic import ValidationError

from . import signals as s
from .attributor import Attributor
from .channel import Channel
from .errors import InputError, NoAdapterError
from .events import BaseEvent, Message, RunAgentInput, SubagentStartedEvent
from .history import History, Keeper, Keeping, Threads
from .hooks import Invocation, Plugins, Visibility
from .user import current_user
from .visibility import Lens

if TYPE_CHECKING:
    from .grants import Decider, Guard, Inventory, Permit
    from .ledger import Ledger
    from .team import Links

__all__ = [
    "Adapter",
    "Agent",
    "Bound",
    "Observer",
    "Outlet",
    "Run",
    "RunEnd",
    "Session",
    "Sink",
    "Unread",
    "VisibilityRule",
    "adapter_of",
    "attribute",
    "in_order",
    "milliseconds",
]

Observer: TypeAlias = Callable[[BaseEvent], object]
"""Called with every event of a run, before visibility; a fault in one is logged and it is not called again."""

VisibilityRule: TypeAlias = Visibility | Mapping[str, Visibility]
"""One visibility for all, or one per subagent name (`attributed` for the names that are not there)."""

RunEnd: TypeAlias = s.RunFinished | s.RunCancelled | s.RunFailed

_WORDS: Final = (s.Text, s.Reasoning)

_log = logging.getLogger("byline")


def milliseconds() -> int:
    """Return the time as events carry it: milliseconds since the Unix epoch."""
    return time.time_ns() // 1_000_000


class Session(Protocol):
    """One run of one target, as an adapter brings it."""

    thread_id: str
    run_id: str
    parent_run_id: str | None
    history: Sequence[Message]
    """What the client already has."""
    result: Any
    """The framework's own result of the run, once there is one."""
    permit: "Permit | None"
    """Who runs it, with which grant."""

    async def prepare(self) -> None:
        """Check the input against the target.  Raises `BylineError`; the app has not been called yet."""

    async def drive(self, sink: "Sink") -> RunEnd:
        """Run the app and report what happens; the app's own exceptions come through."""


class Bound(Protocol):
    """One target in the hands of its adapter."""

    def open(self, run_input: RunAgentInput) -> Session:
        """Return the session of an AG-UI input; raises `InputError` for one that cannot be used."""

    def open_native(self, *args: Any, **kwargs: Any) -> Session:
        """Return the session of a call with the framework's own arguments."""


class Adapter(Protocol):
    """What a plugin brings to teach byline a framework."""

    name: str
    extra: str
    """The extra that installs what it needs: `pip install 'byline[extra]'`."""
    requires: Sequence[str]
    """The modules it needs."""
    refines: Sequence[str]
    """The names of adapters that take the same targets and know less of them: this one is asked before those."""

    def takes(self, target: object) -> bool:
        """Return whether `target` is one of its own; must not import the framework."""

    def hint(self, target: object) -> str | None:
        """Return what to do when `target` is nearly right (a graph that was not compiled)."""

    def bind(self, target: Any, plugins: Plugins, **options: Any) -> Bound:
        """Take hold of `target`.  Raises `UnsupportedVersionError`."""


class Outlet(Protocol):
    """Where a sink delivers: the channel to a consumer, or a recording."""

    @property
    def lock(self) -> "threading.RLock":
        """Held around every change of what is reported."""

    def put(self, items: Iterable[BaseEvent]) -> None:
        """Take `items`, from any thread."""

    def later(self, fill: Callable[[], object], /) -> bool:
        """Return whether nobody looks for a moment; `fill` is then called at its end, to put what came in it."""

    async def drained(self) -> None:
        """Wait until the consumer has read all that was put."""


class Unread:
    """An outlet that nobody reads: what is reported is kept some other way."""

    def __init__(self) -> None:
        self.lock: Final = threading.RLock()

    def put(self, items: Iterable[BaseEvent]) -> None:
        """Take nothing."""

    def later(self, fill: Callable[[], object], /) -> bool:  # noqa: ARG002
        """Nothing need wait: nobody is woken."""
        return False

    async def drained(self) -> None:
        """Wait for nobody."""


class Sink:
    """Where a session reports.  Safe to call from any thread; never raises into the app."""

    def __init__(
        self,
        attributor: Attributor,
        outlet: Outlet,
        lens: Lens,
        observers: Iterable[Observer],
        plugins: Plugins,
        keep: Observer | None = None,
    ) -> None:
        self.plugins: Final = plugins
        self._keep: Final = keep  # what the client sees, for the thread's history
        self._attributor: Final = attributor
        self._words: list[s.Words] = []
        self.hears: list[str] | None = None
        """The words that wait and came last: who said them may go on by adding to it, with `lock` held.

        It is there until anything else is reported, or the consumer looks."""
        self.lock: Final = outlet.lock
        self._outlet: Final = outlet
        self._lens: Final = lens
        self._observers = list(observers)
        self._faults: set[str] = set()

    @property
    def attributor(self) -> Attributor:
        """The attributor of the run, which knows all that was reported."""
        self.settle()
        return self._attributor

    def report(self, signal: s.Signal) -> None:
        """Take a signal: what it gives is on its way to the consumer when this returns.

        Words come in floods, and one by one each finds the processor's caches cold.  So those that nobody could see
        yet wait for one another, in their order, until the consumer wakes or anything else is reported.
        """
        with self.lock:
            if isinstance(signal, _WORDS) and (self._words or self._outlet.later(self.settle)):
                self._wait(signal)
                return
            self.settle()
            try:
                events = self._attributor.feed(signal)
                if events:
                    self._deliver(events)
            except Exception as fault:
                self._failed(type(signal), fault)

    def _wait(self, word: s.Text | s.Reasoning) -> None:
        kind, (owner, run, delta) = type(word), word
        if self._words and self._words[-1][:3] == (kind, owner, run):
            self._words[-1].deltas.append(delta)
            return
        self.hears = [delta]
        self._words.append(s.Words(kind, owner, run, self.hears))

    def settle(self) -> None:
        """Take the words that wait, so that all that was reported is known."""
        if not self._words:
            return
        with self.lock:
            words, self._words, self.hears = self._words, [], None
            faults: list[tuple[type, Exception]] = []
            events = self._attributor.feed_words(words, lambda kind, fault: faults.append((kind, fault)))
            try:
                self._deliver(events)
            except Exception as fault:
                faults.append((words[-1].kind, fault))
            for kind, ours in faults:
                self._failed(kind, ours)

    def _failed(self, kind: type, fault: Exception) -> None:
        self.fault(f"signal {kind.__name__}", fault)

    def start(self) -> None:
        """Send `RUN_STARTED`."""
        self._deliver(self._attributor.start())

    def fault(self, where: str, fault: BaseException) -> None:
        """Keep a fault of ours: a log record each time, a `CUSTOM` event `byline.fault` the first time."""
        _log.error("byline failed in %s; the app is not affected", where, exc_info=fault)
        with self.lock:
            self.settle()
            if where in self._faults or self._attributor.over:
                return
            self._faults.add(where)
            value = {"where": where, "error": f"{type(fault).__name__}: {fault}"}
            try:
                self._deliver(self._attributor.feed(s.Custom(None, "byline.fault", value)))
            except Exception:
                _log.exception("byline could not report its own fault")

    async def drained(self) -> None:
        """Wait until the consumer has read all that was reported."""
        self.settle()
        await self._outlet.drained()

    def _deliver(self, events: list[BaseEvent]) -> None:
        if self._observers:
            self._show_observers(events)
        shown = self._lens.view(events)
        if self._keep is not None:
            for event in shown:
                self._keep(event)
        self._outlet.put(shown)

    def _show_observers(self, events: list[BaseEvent]) -> None:
        for observer in self._observers:
            for event in events:
                try:
                    observer(event)
                except Exception:
                    _log.warning("observer %r failed and is not called again", observer, exc_info=True)
                    self._observers = [other for other in self._observers if other is not observer]
                    break


class Run:
    """One run: an async iterable of its events, and a handle to stop it.

    `error` is the app's own exception after a run that failed, `result` its own result (LangGraph: the final
    values of the graph) after one that ended by itself.  A run that failed does not raise: it ends with
    `RUN_ERROR`.  What is wrong with the *input* raises a `BylineError` before the first event.
    """

    def __init__(
        self,
        session: Session,
        plugins: Plugins,
        visibility: VisibilityRule,
        observers: Iterable[Observer],
        clock: Callable[[], int] | None,
        keep: Keeping | None = None,
        links: "Links | None" = None,
    ) -> None:
        self.error: BaseException | None = None
        self._links: Final = links
        self._keep: Final = keep
        self._session: Final = session
        self._plugins: Final = plugins
        self._visibility: Final = visibility
        self._observers: Final = tuple(observers)
        self._clock: Final = clock
        self._pump: asyncio.Task[None] | None = None
        self._stopped: str | None = None
        self._iterator: AsyncGenerator[BaseEvent, None] | None = None
        self._used = False

    @property
    def thread_id(self) -> str:
        """The thread of the run."""
        return self._session.thread_id

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self._session.run_id

    @property
    def result(self) -> Any:
        """The app's own result."""
        return self._session.result

    def __aiter__(self) -> AsyncIterator[BaseEvent]:
        # A generator that nobody else holds: a consumer that breaks out of its loop drops it, and the loop's
        # finaliser then stops the run.
        return self._events()

    async def __anext__(self) -> BaseEvent:
        if self._iterator is None:
            self._iterator = self._events()
        return await anext(self._iterator)

    async def cancel(self, reason: str = "the run was cancelled") -> None:
        """Stop the run: it ends with the outcome `cancelled`, which the consumer still gets to see."""
        self._stopped = self._stopped or reason
        await self._stop()

    async def aclose(self) -> None:
        """Stop the run because nobody reads it any more; the closing events go to the observers."""
        if self._iterator is not None:
            await self._iterator.aclose()
        await self.cancel("the consumer went away")

    async def _events(self) -> AsyncGenerator[BaseEvent, None]:
        if self._used:
            raise RuntimeError("a run is read once: its events have been read already")
        self._used = True
        session = self._session
        if self._links is not None:
            await asyncio.to_thread(self._links.check)
        await session.prepare()
        attributor = Attributor(
            session.thread_id,
            session.run_id,
            parent_run_id=session.parent_run_id,
            history=session.history,
            clock=self._clock,
        )
        channel: Channel[BaseEvent] = Channel()
        ledger = _ledger() if self._plugins.takes("byline_run_finished", "ledger") else None
        observers = self._observers if ledger is None else (*self._observers, ledger.feed)
        sink = Sink(attributor, channel, Lens(self._how_to_show), observers, self._plugins, self._keep)
        self._plugins.ask("byline_run_started", run=self)
        sink.start()
        self._pump = asyncio.create_task(self._drive(sink, channel), name=f"byline run {session.run_id}")
        try:
            while True:
                try:
                    events = await channel.read()
                except StopAsyncIteration:
                    break
                for event in events:
                    yield event
        finally:
            channel.abandon()
            self._stopped = self._stopped or "the consumer went away"
            await self._stop()
            sink.report(s.RunCancelled(self._stopped))  # counts only if the pump was stopped before it began
            self._plugins.ask("byline_run_finished", run=self, ledger=ledger)
            if self._keep is not None:
                await self._keep.settled()
        self._raise_what_is_not_an_error()

    async def _drive(self, sink: Sink, channel: Channel[BaseEvent]) -> None:
        end: RunEnd
        try:
            end = await self._session.drive(sink)
        except asyncio.CancelledError:
            # Ours, or the app cancelled itself: in both cases it was stopped before it was over.
            end = s.RunCancelled(self._stopped or "the app cancelled the run")
        except BaseException as fault:
            self.error = fault
            end = s.RunFailed(str(fault) or type(fault).__name__, type(fault).__name__)
        sink.report(end)
        channel.close()

    async def _stop(self) -> None:
        pump = self._pump
        if pump is None or pump.done():
            return
        pump.cancel()
        await asyncio.wait([pump])

    def _raise_what_is_not_an_error(self) -> None:
        """An exit or a keyboard interrupt is nobody's error to report: hand it on."""
        if self.error is not None and not isinstance(self.error, Exception):
            raise self.error

    def _how_to_show(self, event: SubagentStartedEvent) -> Visibility:
        return how_to_show(self._plugins, self._visibility, event)


def how_to_show(plugins: Plugins, visibility: VisibilityRule, event: SubagentStartedEvent) -> Visibility:
    """Return how a client gets to see an invocation: what a plugin says of it, else the rule."""
    answer: Visibility | None = None
    if plugins.implements("byline_visibility"):
        metadata = (event.metadata or {}).get("byline", {})
        answer = plugins.ask(
            "byline_visibility",
            invocation=Invocation(
                framework=str(metadata.get("framework", "")),
                name=event.name,
                id=event.subagent_run_id,
                parent_id=event.parent_subagent_run_id,
                description=event.description,
                metadata=metadata,
            ),
        )
        if answer is not None and answer not in _VISIBILITIES:
            _log.warning(
                "byline_visibility answered %r, expected one of %s", answer, ", ".join(_VISIBILITIES)
            )
            answer = None
    if answer is not None:
        return answer
    return visibility if isinstance(visibility, str) else visibility.get(event.name, "attributed")


class Agent:
    """A target under attribution.  Holds no state of a run: run it as often and as concurrently as the app allows."""

    def __init__(
        self,
        target: Any,
        adapter: Adapter,
        bound: Bound,
        plugins: Plugins,
        *,
        visibility: VisibilityRule,
        observers: Iterable[Observer],
        clock: Callable[[], int] | None,
        keeper: Keeper | None = None,
        links: "Links | None" = None,
    ) -> None:
        self._keeper: Final = keeper
        self._links: Final = links
        self.target: Final = target
        self.adapter: Final = adapter
        self.plugins: Final = plugins
        self._bound: Final = bound
        self._visibility: Final = visibility
        self._observers: Final = tuple(observers)
        self._clock: Final = clock

    def uses(self) -> "Inventory":
        """Return what a run will use, read off the target as it is now: what a grant for it has to cover.

        Raises `InputError` where the adapter cannot tell.
        """
        uses = getattr(self._bound, "uses", None)
        if uses is None:
            raise InputError(f"the adapter {self.adapter.name!r} cannot tell what its targets use")
        return cast("Inventory", uses())

    async def permit(
        self,
        user: str,
        *,
        run_id: str,
        thread_id: str,
        mode: str = "default",
        decider: "Decider | None" = None,
    ) -> "Permit":
        """Ask whether `user` may use all that one run uses, and return what the run needs: its sealed grant.

        For a target with `grants=`.  Raises a `GrantError`: denied, timed out, or not to be seen.
        """
        from .grants import Permit

        guard: Guard | None = getattr(self._bound, "guard", None)
        if guard is None:
            raise InputError("this target was attributed without grants: attribute(target, grants=...)")
        return await guard.issue(Permit(user, mode=mode), run_id, thread_id, self.uses(), decider)

    def run(self, run_input: RunAgentInput | Mapping[str, Any], *, permit: "Permit | None" = None) -> Run:
        """Return the run that answers an AG-UI input, given as the model or as its wire form.

        `permit` says who runs it, with which grant; a target with `grants=` does not start without.

        Raises `InputError` for one that is not a `RunAgentInput`; what only the app's own state can tell (an
        interrupt that is not open, say) raises when the first event is asked for.
        """
        wire = _as_input(run_input)
        return self._run(self._bound.open(wire), permit, wire)

    def stream(self, *args: Any, permit: "Permit | None" = None, **kwargs: Any) -> Run:
        """Return the run of a call with the framework's own arguments.

        LangGraph: `stream(native_input, config, context=...)`.
        """
        return self._run(self._bound.open_native(*args, **kwargs), permit)

    def observed_by(self, *observers: Observer, threads: Threads | None = None) -> "Agent":
        """Return the same agent with more observers; `threads` is where its threads are kept if it has nowhere."""
        keeper = self._keeper
        if keeper is None and threads is not None:
            keeper = Keeper(threads)
        return Agent(
            self.target,
            self.adapter,
            self._bound,
            self.plugins,
            visibility=self._visibility,
            observers=(*self._observers, *observers),
            clock=self._clock,
            keeper=keeper,
            links=self._links,
        )

    @property
    def guarded(self) -> bool:
        """Whether a run needs a permit."""
        return getattr(self._bound, "guard", None) is not None

    async def history(self, thread_id: str) -> History | None:
        """Return a thread after a reload: its messages with their owners, and the book of its runs.

        What was kept in `attribute(..., threads=...)`, as the client saw it; where there is nothing of the thread,
        what the framework's own store has of it.  ADK keeps its subagents' events in the session, and gives the book
        with them; LangGraph keeps the parent agent's messages, without a book.  `None` for a thread that nobody knows.
        Raises `StoreError` for a store that cannot be read.
        """
        if self._keeper is not None:
            kept = await asyncio.to_thread(self._keeper.read, thread_id)
            if kept is not None:
                return kept
        past = getattr(self._bound, "past", None)
        if past is not None:
            from ._retold import retold

            runs, user = await past(thread_id)
            how = partial(how_to_show, self.plugins, self._visibility)
            if runs is None:
                return None
            return await asyncio.to_thread(retold, thread_id, runs, user, self.plugins, how)
        own = getattr(self._bound, "history", None)
        messages = None if own is None else await own(thread_id)
        return None if messages is None else History(thread_id, messages)

    def _run(self, session: Session, permit: "Permit | None", run_input: RunAgentInput | None = None) -> Run:
        if permit is not None:
            session.permit = permit
        keep = None
        if self._keeper is not None:
            user = permit.user if permit is not None else current_user()
            keep = self._keeper.keep(session.thread_id, session.run_id, run_input, user)
        return Run(session, self.plugins, self._visibility, self._observers, self._clock, keep, self._links)


_VISIBILITIES: Final = ("attributed", "inline", "hidden")


def attribute(
    target: Any,
    *,
    plugins: Iterable[object] = (),
    visibility: VisibilityRule = "attributed",
    observers: Iterable[Observer] = (),
    clock: Callable[[], int] | None = milliseconds,
    threads: Threads | None = None,
    links: "Links | None" = None,
    **options: Any,
) -> Agent:
    """Put an existing app under attribution, without changing it.

    `target` is what one of the installed adapters takes (a compiled LangGraph graph, say), or a `Factory` of one.  `plugins` are hook
    implementations for this agent alone; `visibility` says what a client gets to see of the subagents;
    `observers` are called with every event; `clock` gives the events' `timestamp` (`None`: none);
    `threads` is where the streams of its threads are kept for `history`: `MemoryThreads()`, or
    `open_store(url).threads`; `links` are saved links that are checked again when a run starts.  Further options are the
    adapter's.

    Raises `NoAdapterError` when no adapter takes the target, `HookError` for a plugin that cannot be used,
    `UnsupportedVersionError` for a framework the adapter does not know.
    """
    known = Plugins(plugins)
    for name in [visibility] if isinstance(visibility, str) else visibility.values():
        if name not in _VISIBILITIES:
            raise InputError(f"visibility {name!r} is unknown: expected one of {', '.join(_VISIBILITIES)}")
    adapter = adapter_of(target, known)
    bound = adapter.bind(target, known, **options)
    keeper = None if threads is None else Keeper(threads)
    return Agent(
        target,
        adapter,
        bound,
        known,
        visibility=visibility,
        observers=observers,
        clock=clock,
        keeper=keeper,
        links=links,
    )


def adapter_of(target: Any, plugins: Plugins) -> Adapter:
    """Return the adapter that takes `target`; raises `NoAdapterError`."""
    if type(target).__module__ == "byline.factory":
        from .factory import FactoryAdapter

        return FactoryAdapter()
    adapters = in_order(plugins.collect("byline_adapters"))
    for adapter in adapters:
        if adapter.takes(target):
            return adapter
    raise NoAdapterError(_nobody(target, adapters, plugins))


def in_order(adapters: Iterable[Adapter]) -> list[Adapter]:
    """Return `adapters` in the order to ask them in: as they are, but whoever refines another goes before it."""
    waiting, order = list(adapters), []
    while waiting:
        free = next((one for one in waiting if not _is_refined(one, waiting)), waiting[0])
        waiting.remove(free)
        order.append(free)
    return order


def _is_refined(adapter: Adapter, by: Iterable[Adapter]) -> bool:
    return any(adapter.name in getattr(other, "refines", ()) for other in by if other is not adapter)


def _nobody(target: object, adapters: Sequence[Adapter], plugins: Plugins) -> str:
    """Say who was asked, what is missing, and how to get it."""
    kind = type(target)
    parts = [f"no adapter takes {kind.__module__}.{kind.__qualname__}"]
    parts += [hint for adapter in adapters if (hint := adapter.hint(target))]
    usable = [adapter for adapter in adapters if all(_installed(module) for module in adapter.requires)]
    missing = [adapter for adapter in adapters if adapter not in usable]
    parts.append(f"asked: {', '.join(adapter.name for adapter in usable) or 'none'}")
    parts += [f"not installed: {adapter.name} (pip install 'byline[{adapter.extra}]')" for adapter in missing]
    parts += [f"plugin {name} could not be used: {why}" for name, why in plugins.broken.items()]
    if not adapters:
        parts.append("install one, for example: pip install 'byline[langgraph]'")
    return "; ".join(parts)


def _ledger() -> "Ledger":
    from .ledger import Ledger  # with its validator the heaviest import here, and few watchers ask for it

    return Ledger()


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # its parent package is missing
        return False


def _as_input(run_input: RunAgentInput | Mapping[str, Any]) -> RunAgentInput:
    if isinstance(run_input, RunAgentInput):
        return run_input
    if not isinstance(run_input, Mapping):
        raise InputError(
            f"expected a RunAgentInput or its wire form, got {type(run_input).__name__}: "
            "build one with ag_ui.core.RunAgentInput, or call stream() with the framework's own arguments"
        )
    try:
        return RunAgentInput.model_validate(run_input)
    except ValidationError as fault:
        lines = [
            f"{'.'.join(map(str, error['loc'])) or 'input'}: {error['msg']}" for error in fault.errors()[:5]
        ]
        raise InputError(f"not a RunAgentInput: {'; '.join(lines)}") from fault
