"""A remote graph as the observed one: nothing runs in this process, and the parts of its stream are all there is.

The thread is the server's.  Its state is read before a run, as it is of a graph with a checkpointer; an answer to an
interrupt, an edited message and what is new in the conversation are found the same way.
"""

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from types import SimpleNamespace
from typing import Any, Final, cast

from byline import signals as s
from byline.agent import Sink
from byline.errors import InputError
from byline.events import Message, RunAgentInput
from byline.hooks import Plugins
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.types import Command, Interrupt, StateSnapshot, StreamMode

from . import _compat
from ._history import told
from ._input import forwarded_names
from ._remote import Remotes
from ._session import BoundGraph, GraphSession, messages_of

__all__ = ["BoundRemote", "RemoteSession", "bind"]

_MODES: Final[list[StreamMode]] = ["values", "messages", "custom", "updates"]

_INTERRUPT: Final = "__interrupt__"

_SENT: Final = ("type", "content", "id", "name", "tool_calls", "tool_call_id", "status")
"""What of a message a server has to know."""

_EMPTY: Final = StateSnapshot({}, (), cast("RunnableConfig", {}), None, None, None, (), ())


def bind(target: Any, plugins: Plugins, **options: Any) -> "BoundRemote":
    """Take hold of a remote graph; raises `UnsupportedVersionError`, and `InputError` for what only its server can do."""
    _compat.check()
    if refused := sorted({"grants", "artifacts", "transparent"} & set(options)):
        raise InputError(
            f"attribute() was given {', '.join(refused)} for a remote graph: what it uses and whom it calls is known "
            "to its server only; wrap the graph there"
        )
    return BoundRemote(target, plugins, **options)


class BoundRemote(BoundGraph):
    """A remote graph in our hands; `config` and `context` go to every run of it."""

    @property
    def session(self) -> "type[RemoteSession]":
        """The kind of a run."""
        return RemoteSession

    def channels(self, run_input: RunAgentInput) -> Iterable[str]:
        """Return all that the client sent: only the server knows what the graph has a channel for."""
        state = run_input.state if isinstance(run_input.state, Mapping) else {}
        return {"messages", "tools", "ag-ui", "copilotkit", *state, *forwarded_names(run_input)}

    async def history(self, thread_id: str) -> list[Message] | None:
        """Return the parent agent's messages of a thread as its server has them; `None` for an unknown one."""
        thread: RunnableConfig = {"configurable": {"thread_id": thread_id}}
        messages = messages_of(await thread_state(self.graph, merge_configs(self.config, thread)))
        return told(messages) if messages else None


class RemoteSession(GraphSession):
    """Lets the server run the graph once, and reports what its stream tells."""

    async def _make_input(self) -> None:
        await super()._make_input()
        if self.run_input is not None:
            self.native_input = _sent(self.native_input)

    def _has_checkpointer(self) -> bool:
        return True

    async def _snapshot(self) -> StateSnapshot:
        return await thread_state(self._bound.graph, self._config)

    async def _branch(self, run_input: RunAgentInput, snapshot: StateSnapshot) -> StateSnapshot:
        start = await super()._branch(run_input, snapshot)
        if start is not snapshot:  # a remote graph drops the checkpoint from the config
            self._kwargs["checkpoint_id"] = start.config["configurable"]["checkpoint_id"]
        return start

    async def drive(self, sink: Sink) -> s.RunFinished:
        """Run the graph and report the parts of its stream."""
        remotes = Remotes(sink)
        remotes.begin()
        stream = self._bound.graph.astream(
            self.native_input, self._config, stream_mode=_MODES, subgraphs=True, version="v2", **self._kwargs
        )
        async with aclosing(cast("AsyncGenerator[Any, None]", stream)):
            async for part in stream:
                try:
                    with sink.lock:
                        self._take(sink, remotes, part["type"], "|".join(part["ns"]), part)
                except Exception as fault:
                    sink.fault(part["type"], fault)
                if part["type"] == "values" and not part["ns"]:
                    await sink.drained()
        with sink.lock:
            remotes.step_over("")
        return s.RunFinished(asked=tuple(self._asked))

    def _take(self, sink: Sink, remotes: Remotes, kind: str, ns: str, part: Any) -> None:
        data = part["data"]
        if kind == "messages" and isinstance(data[0], Mapping):
            remotes.message(ns, *data)
        elif kind == "custom":
            self._custom(sink, remotes.owner(ns), data)
        elif kind == "updates" and isinstance(data, Mapping):
            self._interrupts(remotes, ns, data.get(_INTERRUPT) or ())
        elif kind == "values":
            asked = part.get("interrupts") or ()
            if not asked:  # those come while others of the same step may still be at work
                remotes.values(ns, data)
            self._interrupts(remotes, ns, asked)
            if not ns:
                self._values(sink, {"data": data})

    def _interrupts(self, remotes: Remotes, ns: str, interrupts: Iterable[Any]) -> None:
        for one in interrupts:
            interrupt = SimpleNamespace(**one) if isinstance(one, Mapping) else cast("Interrupt", one)
            remotes.asked(ns, interrupt)
            if not ns:
                self._asked[str(interrupt.id)] = interrupt


async def thread_state(graph: Any, config: RunnableConfig) -> StateSnapshot:
    """Return a thread as its server has it, empty when there is none of this id."""
    try:
        return cast("StateSnapshot", await graph.aget_state(config))
    except Exception as error:
        # The SDK's error is not imported: it differs over the versions, and all have the response.
        if getattr(getattr(error, "response", None), "status_code", None) == 404:
            return _EMPTY
        raise


def _sent(native_input: Any) -> Any:
    """Return an input with its messages as mappings, which is what goes over the wire."""
    if isinstance(native_input, Command):
        return native_input
    if not isinstance(native_input, Mapping) or "messages" not in native_input:
        return native_input
    messages = [
        {key: value for key, value in one.model_dump(mode="json", exclude_none=True).items() if key in _SENT}
        if isinstance(one, BaseMessage)
        else one
        for one in native_input["messages"]
    ]
    return {**native_input, "messages": messages}
