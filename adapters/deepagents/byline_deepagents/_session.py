"""One run of a deep agent, or of a graph that calls one."""

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from byline import signals as s
from byline.agent import Sink
from byline.errors import ResumeError
from byline.events import Message
from byline.hooks import Plugins
from byline_langgraph import _session as langgraph
from byline_langgraph._compat import check as check_langgraph
from byline_langgraph._handler import Handler
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.types import Command, StateSnapshot

from . import _compat
from ._handler import TaskHandler

__all__ = ["DeepGraph", "DeepSession", "bind", "is_deep_agent"]


def is_deep_agent(graph: Any) -> bool:
    """Return whether `create_deep_agent` made `graph`: it says so in the graph's own configuration."""
    config = getattr(graph, "config", None) or {}
    return (config.get("metadata") or {}).get("ls_integration") == "deepagents"


def bind(target: Any, plugins: Plugins, **options: Any) -> langgraph.BoundGraph:
    """Take hold of a graph.

    Raises `UnsupportedVersionError` for a deep agent of a version that is not supported; a graph that merely shares
    its process with one is LangGraph's.
    """
    if is_deep_agent(target):
        _compat.check()
    check_langgraph()
    bound = DeepGraph if _compat.supported() else langgraph.BoundGraph
    return bound(target, plugins, **options)


class DeepGraph(langgraph.BoundGraph):
    """A graph in our hands; the options are those of LangGraph's."""

    handler = TaskHandler

    @property
    def session(self) -> type["DeepSession"]:
        """The kind of a run."""
        return DeepSession

    def delegates(self, tool: BaseTool) -> Mapping[str, Any] | None:
        """Return the subagents of `task`, and the remote ones of `start_async_task`, by their names.

        They stand in the tools' closures only; the paths are the same from 0.7.12 to 0.7.32.
        """
        held = _held(getattr(tool, "func", None))
        if tool.name == "task":
            specs = _held(held.get("_validate_and_prepare_state")).get("subagents_by_name") or {}
            return {**specs, **(held.get("subagent_graphs") or {})}
        if tool.name == "start_async_task":
            return held.get("agent_map")
        return None


class DeepSession(langgraph.GraphSession):
    """Runs the graph once and reports what happens."""

    async def prepare(self) -> None:
        """Make the graph's input of the client's; raises `ResumeError` for an answer that nothing can take."""
        run_input = self.run_input
        lost = run_input is not None and run_input.resume and not self._has_checkpointer()
        if run_input is not None and lost and (asked := _askers(run_input.messages)):
            raise ResumeError(
                f"resume needs a checkpointer, and this agent has none: what subagent "
                f"{', '.join(map(repr, asked))} asked cannot be continued; "
                "create_deep_agent(..., checkpointer=...) keeps it, for the subagents too"
            )
        await super().prepare()

    def _observer(self, sink: Sink) -> Handler:
        handler = super()._observer(sink)
        if isinstance(handler, TaskHandler):
            handler.resumes = isinstance(self.native_input, Command)
        return handler

    def _whose(self, snapshot: StateSnapshot) -> Mapping[str, str]:
        """Return who asked: the n-th task that a model's message started answers the n-th of its calls.

        Of nested subagents it is the outermost, which is what the thread's own checkpoint knows.
        """
        values = snapshot.values if isinstance(snapshot.values, Mapping) else {}
        messages = list(values.get("messages") or ())
        last = next((one for one in reversed(messages) if isinstance(one, AIMessage)), None)
        answered = {one.tool_call_id for one in messages if isinstance(one, ToolMessage)}
        calls = [] if last is None else [call for call in last.tool_calls if call["id"] not in answered]
        found: dict[str, str] = {}
        for task in snapshot.tasks:
            place = task.path[1] if len(task.path) > 1 and task.path[0] == "__pregel_push" else None
            if isinstance(place, int) and place < len(calls) and calls[place]["name"] == "task":
                name = str(calls[place]["args"].get("subagent_type"))
                found |= {str(interrupt.id): name for interrupt in task.interrupts}
        return found

    def _changes(self, before: Mapping[str, Any], state: Mapping[str, Any]) -> Iterable[s.Signal]:
        """Report first what subagents wrote back, one by one, then the rest as the parent's.

        The state is the root's own, after its reducers; `task` says which keys a subagent wrote.  Where several
        wrote one mapping in the same step, each is credited with its own entries of it.
        """
        written = self.handler.take_written() if isinstance(self.handler, TaskHandler) else []
        changed = {key for key in state if key not in before or state[key] != before[key]}
        told = dict(before)
        signals: list[s.Signal] = []
        for owner, update in written:
            mine = {
                key: _merged(told.get(key), state[key], value)
                for key, value in update.items()
                if key in changed and _sole(key, written, state)
            }
            mine = {key: value for key, value in mine.items() if key not in told or told[key] != value}
            if mine:
                signals.append(s.StateChanged(owner, mine))
                told |= mine
        if signals and self._unsent:
            signals.insert(0, s.StateIs(None, before))
        if told != state:
            signals.append(s.StateIs(None, state))
        if signals:
            self._unsent = False
        return signals

    _unsent = True
    """Whether the client has no state of this run yet that a patch could apply to."""


def _askers(messages: Iterable[Message]) -> list[str]:
    """Return the `subagentRunId`s of the calls that a client has no answer to."""
    waiting: dict[str, str] = {}
    for message in messages:
        if message.role == "assistant" and message.subagent_run_id is not None:
            waiting |= {call.id: message.subagent_run_id for call in message.tool_calls or ()}
        elif message.role == "tool":
            waiting.pop(message.tool_call_id, None)
    return list(dict.fromkeys(waiting.values()))


def _held(function: Any) -> Mapping[str, Any]:
    return inspect.getclosurevars(function).nonlocals if inspect.isfunction(function) else {}


def _sole(key: str, written: Iterable[tuple[str, Mapping[str, Any]]], state: Mapping[str, Any]) -> bool:
    """Return whether it can be told who wrote `key`: one did, or each wrote entries of a mapping."""
    return isinstance(state[key], Mapping) or sum(key in update for _, update in written) == 1


def _merged(old: Any, final: Any, wrote: Any) -> Any:
    """Return a value as it is once one writer has written and those after it have not."""
    if not isinstance(final, Mapping) or not isinstance(wrote, Mapping):
        return final
    known = old if isinstance(old, Mapping) else {}
    return {
        key: value if key in wrote else known[key]
        for key, value in final.items()
        if key in wrote or key in known
    }
