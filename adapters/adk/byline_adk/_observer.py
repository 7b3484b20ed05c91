"""The plugin that sees: at the front of a runner's plugins, it never raises and never returns anything."""

import logging
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from byline import signals as s
from byline.agent import Observer as EventObserver
from byline.agent import RunEnd, Sink, milliseconds
from byline.attributor import Attributor
from byline.channel import Channel
from byline.events import Message
from byline.hooks import Plugins
from byline.visibility import Lens
from google.adk.plugins.base_plugin import BasePlugin

from ._compat import can, check
from ._identity import SPAWN, Book
from ._watch import Watch

if TYPE_CHECKING:
    from byline.events import BaseEvent

__all__ = ["WATCH", "BylinePlugin", "Follower", "Observer", "observe"]

WATCH: Final[ContextVar[Watch | None]] = ContextVar("byline_adk_watch", default=None)
"""The run that is observed in this context; an AgentTool's inner runner runs in the context of its caller."""

_log = logging.getLogger("byline")


class Observer(BasePlugin):  # type: ignore[misc,unused-ignore]  # untyped in some releases
    """Hands what it sees to the watch of the run, if there is one.

    One per runner serves all its runs.  ADK calls plugins in their order and stops at the first that returns
    something: this one stands first and returns nothing.  An exception in a plugin would kill the run: a fault of
    ours is logged and reported, and the run goes on.
    """

    def __init__(self, name: str = "byline") -> None:
        super().__init__(name=name)
        self._stamps: Final = not can("shared_actions")

    def _see(self, what: str, look: Callable[[Watch], object]) -> None:
        watch = WATCH.get()
        if watch is None:
            return
        try:
            look(watch)
        except Exception as fault:
            watch.sink.fault(what, fault)

    async def before_agent_callback(self, *, agent: Any, callback_context: Any) -> None:
        self._see("before_agent", lambda watch: watch.begin_agent(agent, callback_context))

    async def after_agent_callback(self, *, agent: Any, callback_context: Any) -> None:
        self._see("after_agent", lambda watch: watch.end_agent(callback_context))

    async def on_agent_error_callback(self, *, agent: Any, callback_context: Any, error: Exception) -> None:
        self._see("agent_error", lambda watch: watch.fail_agent(callback_context, error))

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        self._see("before_model", lambda watch: watch.ask_model(callback_context, llm_request.model))

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
        if not self._stamps:
            return
        watch = WATCH.get()
        if watch is not None and watch.to_stamp:  # only the first piece of an answer
            self._see("after_model", lambda watch: watch.stamp(callback_context, llm_response))

    async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> None:
        self._see("before_tool", lambda watch: watch.begin_tool(tool, tool_context))

    async def after_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any, result: Any) -> None:
        self._see("after_tool", lambda watch: watch.end_tool(tool_context, result))

    async def on_tool_error_callback(
        self, *, tool: Any, tool_args: Any, tool_context: Any, error: Exception
    ) -> None:
        self._see("tool_error", lambda watch: watch.fail_tool(tool_context, error))

    async def on_event_callback(self, *, invocation_context: Any, event: Any) -> None:
        watch = WATCH.get()
        if watch is None:
            return
        try:
            if self._stamps and event.custom_metadata:
                watch.unstamp(event)
            # An AgentTool has a runner of its own.  Asked without a call: every word comes here.
            inside = watch.book.courses
            if inside and invocation_context.invocation_id in inside:
                watch.event(event, stored=False)
                if not event.partial:
                    await watch.sink.drained()
        except Exception as fault:
            watch.sink.fault("on_event", fault)


def observe(runner: Any) -> None:
    """Put an observer at the front of a runner's plugins, if there is none."""
    plugins = runner.plugin_manager.plugins
    if plugins and type(plugins[0]) is Observer:
        return
    ours = next((plugin for plugin in plugins if type(plugin) is Observer), None)
    if ours is not None:
        plugins.remove(ours)
    plugins.insert(0, ours or Observer())


class Follower(Observer):
    """Follows the runs of an app whose `run_async` loop is not ours: a run is over when ADK says so.

    A run whose consumer was cancelled ends, as cancelled, when the next one begins in its context.
    """

    def open_sink(self, thread_id: str, history: Sequence[Message]) -> Sink:
        """Return where a new run is reported."""
        raise NotImplementedError

    def close_sink(self, sink: Sink, end: RunEnd) -> None:
        """End the run of `sink`."""
        sink.report(end)

    async def before_run_callback(self, *, invocation_context: Any) -> None:
        """Begin a stream, unless this is an AgentTool's own runner."""
        if WATCH.get() is not None and SPAWN.get() is not None:
            return
        self._finish(lambda _watch: s.RunCancelled("the run was given up"))
        if invocation_context.live_request_queue is not None:
            _log.warning("run_live is not observed: byline attributes run_async only")
            return
        try:
            WATCH.set(self._begin(invocation_context))
        except Exception:
            _log.error("byline failed at the start of a run; the app is not affected", exc_info=True)

    def _begin(self, context: Any) -> Watch:
        session = context.session
        book = Book(getattr(context.agent, "root_agent", context.agent))
        past = list(session.events)
        answers = []
        if past and past[-1].author == "user":
            answers = past.pop().get_function_responses()
        book.replay(past)
        watch = Watch(self.open_sink(session.id, book.history()), book, state=session.state)
        for answer in answers:
            watch.answer(answer.id, answer.response)
        return watch

    async def on_event_callback(self, *, invocation_context: Any, event: Any) -> None:
        """Take every event, those of the outer run too."""
        self._see("on_event", lambda watch: self._event(watch, invocation_context.invocation_id, event))

    def _event(self, watch: Watch, course: str, event: Any) -> None:
        if self._stamps:
            watch.unstamp(event)
        watch.event(event, stored=not watch.is_inside(course))

    async def after_run_callback(self, *, invocation_context: Any) -> None:
        """End the stream of the outer run."""
        watch = WATCH.get()
        if watch is not None and not watch.is_inside(invocation_context.invocation_id):
            self._finish(lambda watch: watch.end())

    async def on_run_error_callback(self, *, invocation_context: Any, error: BaseException) -> None:
        """End the stream of the outer run as failed."""
        watch = WATCH.get()
        if watch is not None and not watch.is_inside(invocation_context.invocation_id):
            self._finish(lambda watch: watch.crash(error))

    def _finish(self, how: Callable[[Watch], RunEnd]) -> None:
        watch = WATCH.get()
        if watch is None:
            return
        WATCH.set(None)
        try:
            self.close_sink(watch.sink, how(watch))
        except Exception as fault:
            watch.sink.fault("the end of a run", fault)


class BylinePlugin(Follower):
    """Observes the runs of an app by hand: `App(plugins=[BylinePlugin(sink)])`.

    `sink` is called with every event of every run: `list.append`, a ledger's `feed`, a recorder.  Put it first:
    what an earlier plugin replaces is not seen.
    """

    def __init__(
        self,
        sink: EventObserver,
        *,
        name: str = "byline",
        clock: Callable[[], int] | None = milliseconds,
    ) -> None:
        check()
        super().__init__(name)
        self._sink: Final = sink
        self._clock: Final = clock
        self._plugins: Final = Plugins()

    def open_sink(self, thread_id: str, history: Sequence[Message]) -> Sink:
        """Return a sink that nobody reads along: events go to the observer alone."""
        channel: Channel[BaseEvent] = Channel()
        channel.abandon()
        attributor = Attributor(thread_id, str(uuid4()), history=history, clock=self._clock)
        sink = Sink(attributor, channel, Lens(lambda _event: "attributed"), [self._sink], self._plugins)
        sink.start()
        return sink
