"""One run of a LangGraph graph."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, cast
from uuid import uuid4

from byline import signals as s
from byline.agent import Sink
from byline.artifacts import Artifacts
from byline.errors import InputError, ResumeError
from byline.events import Message, RunAgentInput
from byline.grants import Grant, Grants, Guard, Inventory, Nested, Permit
from byline.hooks import Plugins
from byline.plain import plain
from byline.user import current_user
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langchain_core.tools import BaseTool
from langgraph.pregel import Pregel
from langgraph.types import Command, StateSnapshot, StreamMode

from . import _compat
from ._artifacts import Carrier, require_lookup
from ._gate import GateHandler, ToolGate
from ._handler import Handler
from ._history import told
from ._input import (
    conversation,
    edited_message,
    graph_input,
    new_messages,
    open_without_answer,
    resume_command,
)
from ._inventory import inventory
from ._lost import watched
from ._outputs import messages_in
from ._review import question
from ._rewire import Interceptor, ModelNode, rewire
from ._walk import handoff_tools, remote_nodes

__all__ = ["BoundGraph", "GraphSession", "bind", "messages_of"]

NOT_STATE: Final = frozenset({"messages", "tools", "ag-ui", "copilotkit"})
"""What of a graph's values is no state of the run: messages are events, the rest came from the client."""

WRITTEN: Final = "langgraph.custom"
"""The `CUSTOM` name of what a graph wrote to its stream without giving it a `name` and a `value`."""

_OURS: Final = ("stream_mode", "subgraphs", "version")

_MODES: Final[list[StreamMode]] = ["values", "custom"]


def bind(target: Any, plugins: Plugins, **options: Any) -> "BoundGraph":
    """Take hold of a compiled graph; raises `UnsupportedVersionError`."""
    _compat.check()
    return BoundGraph(target, plugins, **options)


class BoundGraph:
    """A compiled graph in our hands.

    `config` and `context` go to every run of it.  `transparent` names nested graphs that are no invocation of
    their own when no tool call stands between them and their caller; langgraph-supervisor's is `supervisor`.

    With `grants` no run starts without a grant for `agent_id` (the graph's name, if it is not given) that covers
    what the graph uses; `allow` names the tools and nodes that may hide what they use.  With `artifacts` the
    parent's model gets placeholders for the artifacts in its subagents' results.
    """

    handler: type[Handler] = Handler
    """The observer of a run; a derived adapter brings its own."""

    @property
    def session(self) -> "type[GraphSession]":
        """The kind of a run; a derived adapter brings its own."""
        return GraphSession

    def __init__(
        self,
        graph: Pregel[Any, Any, Any, Any],
        plugins: Plugins,
        *,
        config: RunnableConfig | None = None,
        context: Any = None,
        transparent: Iterable[str] = ("supervisor",),
        grants: Grants | None = None,
        agent_id: str | None = None,
        allow: Iterable[str] = (),
        nested: Nested = "trust",
        artifacts: Artifacts | None = None,
    ) -> None:
        self.graph: Final = graph
        self.plugins: Final = plugins
        self.config: Final = config
        self.context: Final = context
        self.remote: Final = remote_nodes(graph)
        self.handoffs: Final = handoff_tools(graph)
        self.transparent: Final = frozenset([transparent] if isinstance(transparent, str) else transparent)
        self.guard: Final = None if grants is None else Guard(grants, agent_id or graph.name, allow, nested)
        self.artifacts: Final = artifacts
        if artifacts is not None:
            require_lookup(artifacts, self.uses())

    def channels(self, run_input: RunAgentInput) -> Iterable[str]:  # noqa: ARG002 - a remote graph's are not known
        """Return the names that the graph's input may have."""
        return self.graph.channels

    def delegates(self, tool: BaseTool) -> Mapping[str, Any] | None:  # noqa: ARG002 - a derived adapter knows its own
        """Return the subagents behind a delegation tool by their names, or `None` for an ordinary tool."""
        return None

    def uses(self) -> Inventory:
        """Return what a run of the graph uses, as it is now."""
        return inventory(self.graph, transparent=self.transparent, delegates=self.delegates)

    def open(self, run_input: RunAgentInput) -> "GraphSession":
        """Return the session of an AG-UI input."""
        thread = {"configurable": {"thread_id": run_input.thread_id}}
        config = merge_configs(self.config, cast("RunnableConfig", thread))
        session = self.session(self, config, {} if self.context is None else {"context": self.context})
        session.thread_id, session.run_id = run_input.thread_id, run_input.run_id
        session.parent_run_id = run_input.parent_run_id
        session.history = run_input.messages
        session.run_input = run_input
        # What only needs the input is said at once.
        graph_input(run_input, (), self.channels(run_input))
        return session

    def open_native(
        self, native_input: Any, config: RunnableConfig | None = None, *, context: Any = None, **kwargs: Any
    ) -> "GraphSession":
        """Return the session of `graph.astream(native_input, config, context=..., **kwargs)`."""
        if taken := [name for name in _OURS if name in kwargs]:
            raise InputError(
                f"stream() was given {', '.join(taken)}: it brings its own, because the events are made of them; "
                "leave them out, the graph's values are in the run's `result`"
            )
        if config is not None and not isinstance(config, Mapping):
            raise InputError(
                f"config is {type(config).__name__}, expected a mapping: "
                "stream(native_input, {'configurable': {'thread_id': ...}})"
            )
        context = self.context if context is None else context
        if context is not None:
            kwargs["context"] = context
        merged = merge_configs(self.config, config)
        session = self.session(self, merged, kwargs)
        session.thread_id = str(merged.get("configurable", {}).get("thread_id") or uuid4())
        session.run_id = str(merged.get("run_id") or uuid4())
        session.native_input = native_input
        return session

    async def history(self, thread_id: str) -> list[Message] | None:
        """Return the parent agent's messages of a thread as its checkpoint has them; `None` for an unknown one."""
        thread: RunnableConfig = {"configurable": {"thread_id": thread_id}}
        config = merge_configs(self.config, thread)
        if not (self.graph.checkpointer or "__pregel_checkpointer" in config.get("configurable", {})):
            return None
        messages = messages_of(await self.graph.aget_state(config))
        return told(messages) if messages else None


class GraphSession:
    """Runs the graph once and reports what happens."""

    def __init__(self, bound: BoundGraph, config: RunnableConfig, kwargs: dict[str, Any]) -> None:
        self.thread_id = ""
        self.run_id = ""
        self.parent_run_id: str | None = None
        self.history: Sequence[Message] = ()
        self.result: Any = None
        self.run_input: RunAgentInput | None = None
        self.native_input: Any = None
        self.handler: Handler | None = None
        """The observer, once the run has begun."""
        self._bound: Final = bound
        self._config = config
        self._kwargs: Final = kwargs
        self._state: Any = None
        self._asked: dict[str, Any] = {}
        self.permit: Permit | None = None
        self._grants: list[Grant] = []

    async def prepare(self) -> None:
        """Make the graph's input of the client's, and hold the run to its grant.

        Raises `ResumeError` for an answer that nothing waits for, and a `GrantError` for a run that is not
        permitted; nothing has run then, and only a run that can begin spends its grant.
        """
        guard = self._bound.guard
        if guard is not None:
            self._grants = guard.check(self.permit, self.run_id, self.thread_id, self._bound.uses())
        await self._make_input()
        if guard is not None:
            for grant in self._grants:
                await asyncio.to_thread(guard.grants.spend, grant)

    async def _make_input(self) -> None:
        run_input = self.run_input
        if run_input is None:
            return
        self._state = plain(run_input.state)
        legacy = _legacy_resume(run_input)
        if not self._has_checkpointer():
            if run_input.resume:
                raise ResumeError(
                    "resume needs a checkpointer, and this graph was compiled without one: "
                    "compile(checkpointer=...) keeps what an interrupt has to continue"
                )
            self.native_input = graph_input(
                run_input, conversation(run_input.messages), self._bound.channels(run_input)
            )
            return
        snapshot = await self._snapshot()
        # Not `snapshot.interrupts`: before 1.2 it goes on listing an answered one while another of its step waits.
        pending = {
            str(one.id): one for task in snapshot.tasks if task.result is None for one in task.interrupts
        }
        if run_input.resume:
            whose = self._whose(snapshot)
            self.native_input = resume_command(run_input.resume, pending, self.thread_id, whose)
        elif legacy is not None:
            self.native_input = Command(resume=legacy)
        elif pending:
            raise open_without_answer(pending, self.thread_id)
        else:
            self.native_input = self._continued(run_input, snapshot, await self._branch(run_input, snapshot))

    async def _snapshot(self) -> StateSnapshot:
        """Return the thread as it is."""
        return await self._bound.graph.aget_state(self._config)

    async def _branch(self, run_input: RunAgentInput, snapshot: StateSnapshot) -> StateSnapshot:
        """Return where the run begins: at the end of the thread, or before a message that the client has edited.

        Then the run is a branch of the thread: what is before keeps its ids, and what is run again is new.
        """
        edited = edited_message(run_input.messages, messages_of(snapshot))
        if edited is None:
            return snapshot
        async for earlier in self._bound.graph.aget_state_history(self._config):
            if all(message.id != edited for message in messages_of(earlier)):
                self._config = merge_configs(self._config, earlier.config)
                return earlier
        return snapshot

    def _continued(self, run_input: RunAgentInput, snapshot: StateSnapshot, start: StateSnapshot) -> Any:
        """Return the input of the thread's next run: what is new in the conversation since `start`, and in the state.

        A client sends the state back as it got it; what it did not change must not go through the reducers again.
        A thread that stopped at a breakpoint goes on from there unless the user says something.
        """
        channels = self._bound.channels(run_input)
        thread = snapshot.values if isinstance(snapshot.values, Mapping) else {}
        fresh = new_messages(run_input.messages, messages_of(start))
        if isinstance(run_input.state, Mapping):
            known = plain({key: thread[key] for key in run_input.state if key in thread})
            changed = {
                key: value
                for key, value in run_input.state.items()
                if key not in known or known[key] != plain(value)
            }
            run_input = run_input.model_copy(update={"state": changed})
        values = graph_input(run_input, fresh, channels)
        if start.next and not fresh:
            values.pop("messages", None)
            return Command(update=values) if values else None
        return values or None

    async def drive(self, sink: Sink) -> s.RunFinished:
        """Run the graph under the observer.

        `values` parts come in order, after the callbacks of their superstep and before the next one: they give
        the state, and the interrupts that the run waits for.  `custom` parts trail the callbacks.  Neither says
        who did what; that is the handler's alone, except of remote graphs, for which `messages` parts are read.
        """
        with watched(sink):
            return await self._drive(sink)

    async def _drive(self, sink: Sink) -> s.RunFinished:
        handler = self.handler = self._observer(sink)
        handler.remotes.nodes = self._bound.remote
        handler.handoffs = self._bound.handoffs
        graph, callbacks = self._held(handler)
        config = merge_configs(self._theirs(), {"callbacks": callbacks})
        stream = graph.astream(
            self.native_input,
            config,
            stream_mode=[*_MODES, "messages"] if self._bound.remote else _MODES,
            subgraphs=True,
            version="v2",
            **self._kwargs,
        )
        try:
            # A cancelled run stops the graph at once.
            async with aclosing(cast("AsyncGenerator[Any, None]", stream)):
                async for part in stream:
                    is_values = part["type"] == "values" and "|".join(part["ns"]) == handler.root_ns
                    try:
                        self._part(sink, handler, part, is_values=is_values)
                    except Exception as fault:
                        sink.fault(part["type"], fault)
                    if is_values:  # the next superstep waits for the consumer, as it does without us
                        await sink.drained()
        finally:
            with sink.lock:
                handler.remotes.settle()
        return s.RunFinished(asked=tuple(self._asked))

    def _part(self, sink: Sink, handler: Handler, part: Any, *, is_values: bool) -> None:
        if is_values:
            with sink.lock:
                handler.remotes.settle()
            self._values(sink, part)
        elif part["type"] == "custom":
            ns = "|".join(part["ns"])
            scope = handler.scopes.get(ns)
            self._custom(sink, scope.owner if scope is not None else handler.remotes.owner(ns), part["data"])
        elif part["type"] == "messages" and isinstance(part["data"][0], Mapping):
            with sink.lock:
                handler.remotes.message("|".join(part["ns"]), *part["data"])

    def _held(self, handler: Handler) -> tuple[Pregel[Any, Any, Any, Any], list[BaseCallbackHandler]]:
        """Return the graph to run and its observers: held to the grant, and with placeholders for artifacts."""
        bound = self._bound
        callbacks: list[BaseCallbackHandler] = [handler, *_compat.companions()]
        interceptors: list[Interceptor] = []
        model_nodes: list[ModelNode] = []
        if self._grants:
            interceptors.append(ToolGate(self._grants[0]))
            callbacks.append(GateHandler(self._grants[0], handler))
        if bound.artifacts is not None:
            user = current_user() if self.permit is None else self.permit.user
            carrier = Carrier(bound.artifacts, self.thread_id, user or "", handler, bound)
            interceptors.append(carrier)
            model_nodes.append(carrier.for_model)
        if not interceptors:
            return bound.graph, callbacks
        graph = rewire(bound.graph, interceptors, model_nodes, bound.transparent, handler.stood_in)
        return graph, callbacks

    def _theirs(self) -> RunnableConfig:
        """Return the caller's config, with the callbacks that plain LangGraph would call."""
        bound = (self._bound.graph.config or {}).get("callbacks")
        if bound is None or self._config.get("callbacks") or _compat.has("merged callbacks"):
            return self._config
        return merge_configs({"callbacks": bound}, self._config)

    def _values(self, sink: Sink, part: Any) -> None:
        self.result = part["data"]
        for interrupt in part.get("interrupts") or ():
            # Every task that asks gives a part of its own, which lists its own question only.
            self._asked[str(interrupt.id)] = interrupt
            sink.report(question(None, interrupt))  # counts only if no graph was seen raising it
        if isinstance(self.result, Mapping):
            state = plain({key: value for key, value in self.result.items() if key not in NOT_STATE})
            before = self._state or {}
            replaced = self.handler is not None and self.handler.state_was_set
            if replaced or state != before:
                self._state = state
                for signal in [s.StateIs(None, state)] if replaced else self._changes(before, state):
                    sink.report(signal)
            if self.handler is not None:
                self.handler.state_was_set = False

    def _observer(self, sink: Sink) -> Handler:
        return self._bound.handler(sink, self._bound.transparent)

    def _whose(self, snapshot: StateSnapshot) -> Mapping[str, str]:  # noqa: ARG002 - for those who override
        """Return the names of the subagents that raised the open interrupts, by interrupt, where a thread tells."""
        return {}

    def _changes(
        self,
        before: Mapping[str, Any],  # noqa: ARG002 - for those who override
        state: Mapping[str, Any],
    ) -> Iterable[s.Signal]:
        """Return how to report that the run's state is `state` now; a derived adapter may know whose doing it is."""
        return [s.StateIs(None, state)]

    def _custom(self, sink: Sink, owner: str | None, data: Any) -> None:
        name = data.get("name") if isinstance(data, Mapping) else None
        if isinstance(name, str) and set(data) == {"name", "value"}:
            value = data["value"]
        else:
            name, value = WRITTEN, data
        sink.report(s.Custom(owner, name, value))

    def _has_checkpointer(self) -> bool:
        configurable = self._config.get("configurable", {})
        return bool(self._bound.graph.checkpointer) or "__pregel_checkpointer" in configurable


def messages_of(snapshot: StateSnapshot) -> Sequence[BaseMessage]:
    """Return the messages of a thread."""
    values = snapshot.values if isinstance(snapshot.values, Mapping) else {}
    return list(messages_in(values))


def _legacy_resume(run_input: RunAgentInput) -> Any:
    """Return the answer that clients older than `RunAgentInput.resume` forward, or `None`."""
    forwarded = run_input.forwarded_props
    command = forwarded.get("command") if isinstance(forwarded, Mapping) else None
    return command.get("resume") if isinstance(command, Mapping) else None
