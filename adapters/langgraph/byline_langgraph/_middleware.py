"""Placeholders and the look-up in one object, for agents that are built with it.

An agent built so needs no more: it works in plain `invoke` too.  Under `attribute(graph, artifacts=...)` the run's own
carrier stands outside of it and has replaced and answered everything before; then it only brings the tool.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import Any, Final

from byline.artifacts import Artifact, ArtifactError, Artifacts, NotTheParentError
from byline.errors import StoreError
from byline.user import current_user
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import ToolMessage
from langgraph.config import get_config

from ._artifacts import lookup_tool
from ._gate import refusal

__all__ = ["ArtifactMiddleware"]

_INSIDE: Final[ContextVar[bool]] = ContextVar("byline_inside_a_tool", default=False)
"""Whether a tool of such an agent is at work in this context: who asks or looks something up there is a subagent."""


class ArtifactMiddleware(AgentMiddleware[Any, Any, Any]):
    """Gives a new agent placeholders for the artifacts in its subagents' results, and the look-up tool.

    `create_agent(model, tools, middleware=[ArtifactMiddleware(artifacts, ["ask_writer"])])`, and the same with
    `create_deep_agent`.  `delegations` are the names of the tools behind which subagents are.  An artifact is of the
    `thread_id` and the `user_id` in `config["configurable"]`.
    """

    def __init__(self, artifacts: Artifacts, delegations: Iterable[str] = ("task",)) -> None:
        super().__init__()
        self.artifacts: Final = artifacts
        self.delegations: Final = frozenset([delegations] if isinstance(delegations, str) else delegations)
        self.tools = [lookup_tool(artifacts)] if artifacts.lookup else []

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Ask the model with placeholders."""
        return handler(self._told(request))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Ask the model with placeholders."""
        return await handler(await asyncio.to_thread(self._told, request))

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Answer a look-up; leave other calls as they are."""
        if request.tool_call["name"] == self.artifacts.lookup:
            return self._look_up(request)
        inside = _INSIDE.set(True)
        try:
            return handler(request)
        finally:
            _INSIDE.reset(inside)

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Answer a look-up; leave other calls as they are."""
        if request.tool_call["name"] == self.artifacts.lookup:
            return await asyncio.to_thread(self._look_up, request)
        inside = _INSIDE.set(True)
        try:
            return await handler(request)
        finally:
            _INSIDE.reset(inside)

    def _look_up(self, request: Any) -> ToolMessage:
        if _INSIDE.get():
            return refusal(request, NotTheParentError.code, "only the parent agent can look an artifact up")
        try:
            text = self.artifacts.look_up(request.tool_call["args"].get("id"), **_where())
        except (ArtifactError, StoreError) as fault:
            return refusal(request, getattr(fault, "code", "store_unavailable"), str(fault))
        return ToolMessage(text, tool_call_id=request.tool_call["id"], name=request.tool_call["name"])

    def _told(self, request: Any) -> Any:
        sent: list[Artifact] = []
        messages = [self._short(message, sent) for message in request.messages]
        if not sent:
            return request
        if not _INSIDE.get():  # a fork has this middleware too, and reads what its parent read
            self.artifacts.sent(sent)
        return request.override(messages=messages)

    def _short(self, message: Any, sent: list[Artifact]) -> Any:
        if not isinstance(message, ToolMessage) or message.name not in self.delegations:
            return message
        where = {**_where(), "source": message.tool_call_id}

        def short(block: Any) -> Any:
            if isinstance(block, Mapping) and isinstance(block.get("text"), str):
                return {**block, "text": short(block["text"])}
            if not isinstance(block, str):
                return block
            told = self.artifacts.abbreviate(block, **where)
            sent.extend(told.artifacts)
            return told.text

        content: Any = message.content
        fresh = short(content) if isinstance(content, str) else [short(block) for block in content]
        return message if fresh == content else message.model_copy(update={"content": fresh})


def _where() -> dict[str, str]:
    configurable = get_config().get("configurable", {})
    user = configurable.get("user_id") or current_user() or ""
    return {"thread": str(configurable.get("thread_id", "")), "user": str(user)}
