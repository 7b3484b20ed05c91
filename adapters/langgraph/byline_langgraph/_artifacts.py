"""Placeholders for artifacts in an existing graph.

State, checkpoint and stream keep the original: what is changed is the copy of the state that the model node is given,
in every request, in whatever process.  Measured, and what this module rests on:

* A model node may write the whole history back (langchain does, to mend calls that could not be parsed), so in its
  output the originals are put back.
* A delegation tool hands its caller's state on to a fork, so it is given the placeholders as well; ordinary tools
  see the state as it is.
* A look-up tool has to be bound to the model when the agent is built.  As a member of `tools=[...]` every subagent
  may get it too, so its own body refuses, and only the parent's tool node answers.
* A supervisor's agents answer with AI messages under their own names.
"""

import dataclasses
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from byline.artifacts import Artifact, ArtifactError, Artifacts, NotTheParentError
from byline.errors import InputError, StoreError
from byline.grants import Inventory, Resource
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.types import Command

from ._gate import refusal
from ._handler import Handler
from ._rewire import Call

if TYPE_CHECKING:
    from ._session import BoundGraph

__all__ = ["Carrier", "lookup_tool", "require_lookup"]

_log = logging.getLogger("byline")


def lookup_tool(artifacts: Artifacts) -> BaseTool:
    """Return the look-up tool that the parent agent is built with, as one of its `tools`.

    Raises `InputError` for artifacts without a look-up.
    """
    if not artifacts.lookup:
        raise InputError("these artifacts have no look-up: Artifacts(lookup='...') names one")

    def look_up(id: str) -> str:  # noqa: A002, ARG001 - what the model is asked for
        raise ToolException(
            f"{NotTheParentError.code}: only the parent agent of an attributed run can look an artifact up"
        )

    return StructuredTool.from_function(
        look_up,
        name=artifacts.lookup,
        description=(
            "Get the full text of an artifact that the conversation only mentions, by the id in its placeholder. "
            "Only for work that needs the text itself: the user has it already."
        ),
        handle_tool_error=True,
    )


def require_lookup(artifacts: Artifacts, used: Inventory) -> None:
    """Raise `InputError` when a placeholder would promise a look-up that the agent does not have."""
    if artifacts.lookup and Resource("tool", artifacts.lookup) not in used.resources:
        raise InputError(
            f"the agent has no tool {artifacts.lookup!r} to look artifacts up with: build it with "
            "tools=[..., byline_langgraph.lookup_tool(artifacts)], or say Artifacts(lookup=False)"
        )


class Carrier:
    """Keeps the artifacts of one run's subagents, and tells the parent's model of them."""

    def __init__(
        self, artifacts: Artifacts, thread: str, user: str, handler: Handler, bound: "BoundGraph"
    ) -> None:
        self._artifacts: Final = artifacts
        self._where: Final = {"thread": thread, "user": user}
        self._handler: Final = handler
        self._delegates: Final = bound.delegates
        self._subagents: Final = bound.uses().named("subagent")
        self._known: set[str] | None = None

    # ---------------------------------------------------------------- tools

    def enter(self, call: Call) -> Call | ToolMessage:
        """Answer a look-up; give a delegation the state as its caller's model saw it."""
        if self._artifacts.lookup and call.tool_call["name"] == self._artifacts.lookup:
            return self._look_up(call)
        if call.tool is not None and self._delegates(call.tool) is not None:
            state, _ = self._state(call.state, [])
            return call.override(state=state, runtime=dataclasses.replace(call.runtime, state=state))
        return call

    def failed(self, call: Call, fault: Exception) -> ToolMessage | None:
        """Let it raise."""

    def left(self, call: Call, answer: Any) -> None:
        """Keep the artifacts of a subagent's result; other tools' results are none of ours."""
        id_ = call.tool_call["id"]
        invocation = self._handler.invocation_of(id_)
        if invocation is None:
            return
        for message in _found(answer):
            if isinstance(message, ToolMessage) and message.tool_call_id == id_:
                self._keep(message, id_, invocation)

    def _look_up(self, call: Call) -> ToolMessage:
        wanted = call.tool_call["args"].get("id")
        try:
            text = self._artifacts.look_up(wanted, **self._where)
        except (ArtifactError, StoreError) as fault:
            return refusal(call, getattr(fault, "code", "store_unavailable"), str(fault))
        return ToolMessage(text, tool_call_id=call.tool_call["id"], name=call.tool_call["name"])

    # --------------------------------------------------------------- models

    def for_model(self, state: Any) -> tuple[Any, Callable[[Any], Any]]:
        """Return the state with placeholders, and how to put the originals back into the model node's output."""
        artifacts: list[Artifact] = []
        given, originals = self._state(state, artifacts)
        self._artifacts.sent(artifacts)
        return given, lambda output: _restored(output, originals) if originals else output

    def _state(self, state: Any, artifacts: list[Artifact]) -> tuple[Any, dict[str, BaseMessage]]:
        """Return a copy of `state` with placeholders, and the originals by what they are known by."""
        messages = state.get("messages") if isinstance(state, Mapping) else getattr(state, "messages", None)
        originals: dict[str, BaseMessage] = {}
        fresh: list[Any] = []
        for message in messages or ():
            short = self._short(message, artifacts)
            fresh.append(short)
            if short is not message:
                originals[_key(message)] = message
        if not originals:
            return state, originals
        if isinstance(state, Mapping):
            return {**state, "messages": fresh}, originals
        if dataclasses.is_dataclass(state) and not isinstance(state, type):
            return dataclasses.replace(state, messages=fresh), originals
        return state.model_copy(update={"messages": fresh}), originals

    def _short(self, message: Any, artifacts: list[Artifact]) -> Any:
        if isinstance(message, ToolMessage):
            source = message.tool_call_id
        elif isinstance(message, AIMessage) and message.id and message.name in self._subagents:
            source = message.id
            self._keep(message, source, self._handler.speaker_of(source))
        else:
            return message
        content: Any = message.content
        if isinstance(content, str):
            content = self._text(content, source, artifacts)
        else:
            content = [self._block(block, source, artifacts) for block in content]
        return message if content == message.content else message.model_copy(update={"content": content})

    def _block(self, block: Any, source: str, artifacts: list[Artifact]) -> Any:
        if isinstance(block, str):
            return self._text(block, source, artifacts)
        if isinstance(block, Mapping) and block.get("type") == "text" and isinstance(block.get("text"), str):
            return {**block, "text": self._text(block["text"], source, artifacts)}
        return block

    def _text(self, text: str, source: str, artifacts: list[Artifact]) -> str:
        short = self._artifacts.abbreviate(text, source=source, known=self._ids(), **self._where)
        artifacts += short.artifacts
        return short.text

    def _keep(self, message: BaseMessage, source: str, invocation: str | None) -> None:
        content: Any = message.content
        for block in [content] if isinstance(content, str) else content:
            text = block if isinstance(block, str) else block.get("text")
            if isinstance(text, str):
                kept = self._artifacts.keep(text, source=source, invocation=invocation, **self._where)
                self._ids().update(artifact.id for artifact in kept.artifacts)
                for refused in kept.refused:
                    _log.warning("an artifact of %s is not kept: %s", source, refused.message)

    def _ids(self) -> set[str]:
        """Return the ids that can be looked up: only what was kept is replaced."""
        if self._known is None:
            try:
                self._known = set(self._artifacts.store.ids(**self._where))
            except StoreError:
                _log.warning("the artifacts of the thread are not to be had: originals stay", exc_info=True)
                self._known = set()
        return self._known


def _key(message: BaseMessage) -> str:
    return f"call {message.tool_call_id}" if isinstance(message, ToolMessage) else f"message {message.id}"


def _restored(value: Any, originals: Mapping[str, BaseMessage]) -> Any:
    """Return a node's output with the original in the place of every message that was given shortened."""
    if isinstance(value, BaseMessage):
        return originals.get(_key(value), value)
    if isinstance(value, list):
        return [_restored(one, originals) for one in value]
    if isinstance(value, Command):
        return dataclasses.replace(value, update=_restored(value.update, originals))
    if isinstance(value, dict):
        return {name: _restored(one, originals) for name, one in value.items()}
    if type(value).__name__ == "Overwrite":
        return dataclasses.replace(value, value=_restored(value.value, originals))
    return value


def _found(answer: Any) -> Iterable[BaseMessage]:
    if isinstance(answer, BaseMessage):
        yield answer
    elif isinstance(answer, Command):
        yield from _found(answer.update)
    elif isinstance(answer, Mapping):
        yield from _found(answer.get("messages"))
    elif isinstance(answer, list | tuple):
        for one in answer:
            yield from _found(one)
