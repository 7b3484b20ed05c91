"""Holds a run to its grant while it runs: what could not be seen before is stopped where it shows itself.

* A tool that the grant does not name is answered with an error, without being called.  One that a node calls by
  itself ends the run before it works.
* A subagent that the grant does not name is stopped at its first step, before its first request; where a tool called
  it, the tool's call is answered with an error, so that no call is left without an answer.
* A model that the grant does not name ends the run before its request.

A handler that is to stop a run has to raise, and LangChain lets only a handler with `raise_error` do so; the observer
never does, so the gate is a handler of its own, called after it.
"""

from typing import Any, Final
from uuid import UUID

from byline.grants import Grant, GrantError, NotCoveredError, Resource
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import ToolMessage

from ._handler import Handler
from ._rewire import Call

__all__ = ["GateHandler", "ToolGate", "refusal"]


def refusal(call: Call, code: str, message: str) -> ToolMessage:
    """Return the answer to a call that is not made."""
    asked = call.tool_call
    return ToolMessage(
        content=f"{code}: {message}", tool_call_id=asked["id"], name=asked["name"], status="error"
    )


class ToolGate:
    """Answers the calls of the parent agent that its grant does not cover."""

    def __init__(self, grant: Grant) -> None:
        self._grant: Final = grant

    def enter(self, call: Call) -> Call | ToolMessage:
        """Let a granted tool through."""
        name = call.tool_call["name"]
        if Resource("tool", name) in self._grant.resources:
            return call
        return refusal(call, NotCoveredError.code, f"this run may not use tool {name!r}; it was not called")

    def failed(self, call: Call, fault: Exception) -> ToolMessage | None:
        """Answer for a tool whose subagent was stopped."""
        cause: BaseException | None = fault
        while cause is not None and not isinstance(cause, GrantError):
            cause = cause.__cause__
        return (
            None if cause is None else refusal(call, cause.code, str(cause).removeprefix(f"{cause.code}: "))
        )

    def left(self, call: Call, answer: Any) -> None:
        """Take note of nothing."""


class GateHandler(BaseCallbackHandler):
    """Stops models and direct subagents that a grant does not name."""

    run_inline = True
    raise_error = True
    ignore_retriever = True
    ignore_retry = True

    def __init__(self, grant: Grant, handler: Handler) -> None:
        super().__init__()
        self._grant: Final = grant
        self._handler: Final = handler

    def on_chain_start(
        self, serialized: dict[str, Any] | None, inputs: Any, *, run_id: UUID, **kwargs: Any
    ) -> None:
        """Stop a direct subagent of the parent that the grant does not name."""
        if any(tag.startswith("graph:step:") for tag in kwargs.get("tags") or ()):
            name = self._handler.direct_subagent(run_id)
            if name is not None and Resource("subagent", name) not in self._grant.resources:
                raise NotCoveredError(
                    f"subagent {name!r} is not among what was granted; it was stopped before its first step",
                    [Resource("subagent", name)],
                )

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """Stop a model of the parent's that the grant does not name."""
        if not self._handler.is_the_parents(parent_run_id):
            return
        metadata = kwargs.get("metadata") or {}
        name = str(metadata.get("ls_model_name") or (serialized or {}).get("name") or "?")
        if Resource("model", name) not in self._grant.resources:
            raise NotCoveredError(
                f"model {name!r} is not among what was granted; it was not asked", [Resource("model", name)]
            )

    on_llm_start = on_chat_model_start  # type: ignore[assignment]  # a model that completes text

    def on_tool_start(
        self,
        serialized: dict[str, Any],
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """Stop a tool of the parent's that the grant does not name: called by a node, or in the place of another."""
        name = str(serialized["name"])  # not that of the run, which a config may give
        if Resource("tool", name) not in self._grant.resources and self._handler.calls_a_tool(parent_run_id):
            raise NotCoveredError(
                f"tool {name!r} is not among what was granted; it was not called", [Resource("tool", name)]
            )
