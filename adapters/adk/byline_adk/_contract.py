"""The contract of a delegation, from the agent that really ran and the way it was called."""

from dataclasses import replace
from typing import Any, Final

from byline.delegation import MODES, Contract

from ._compat import can
from ._identity import Invocation, Kind
from ._remote import is_remote

__all__ = ["AGENT_TOOL", "WORKFLOW_TOOL", "contract", "describe"]

AGENT_TOOL: Final = Contract(
    "adk",
    "agent_tool",
    context="isolated",
    interaction="none",
    approvals=False,
    returns="automatic",
    concurrency="parallel",
)
"""An AgentTool runs its agent in a session of its own, which cannot wait for anybody."""

WORKFLOW_TOOL: Final = Contract("adk", "workflow_tool", context="isolated", returns="automatic")
_WORKFLOW_AGENT: Final = Contract("adk", "workflow_agent", context="shared", returns="onward")
"""A sub-agent of Sequential, Parallel, Loop or a custom agent."""

_REMOTE: Final = Contract("adk", "remote")
"""An agent elsewhere: what it is told, and whether it asks, is between ADK and its peer."""


def contract(one: Invocation) -> Contract:
    """Return what is known of how `one` was delegated to."""
    mode = getattr(one.agent, "mode", None)
    if one.kind is Kind.CALL and one.course != (one.call.course if one.call else one.course):
        return AGENT_TOOL
    if mode is None and is_remote(one.agent):
        return replace(_REMOTE, returns="onward") if one.kind in (Kind.NODE, Kind.PART) else _REMOTE
    if one.kind is Kind.CHAT:
        # An agent without modes (a Sequential, a custom one) can be transferred to, but does not talk with the user.
        return MODES["adk", "chat"] if hasattr(one.agent, "mode") else replace(_WORKFLOW_AGENT, returns=None)
    if one.kind in (Kind.TASK, Kind.CALL, Kind.NODE) and mode in ("task", "single_turn"):
        known = MODES["adk", mode]
        if mode == "task" and not can("nested_task"):
            known = replace(known, leaf=True)
        if mode == "single_turn":
            # Before 2.13 it does pause, but what it asked for does not come back to it: neither yes nor no is true.
            known = replace(known, approvals=True if can("approval") else None)
        return replace(known, returns="onward", concurrency=None) if one.kind is Kind.NODE else known
    if one.kind is Kind.CALL:
        return Contract("adk", mode, returns="automatic") if hasattr(one.agent, "mode") else WORKFLOW_TOOL
    if getattr(one.agent, "graph", None) is not None:
        mode = "workflow"
    return _WORKFLOW_AGENT if one.kind is Kind.PART else Contract("adk", mode, returns="onward")


def describe(one: Invocation) -> dict[str, Any]:
    """Return `metadata["byline"]` of an invocation: its contract, and the ids that lead to its traces.

    These are the ADK invocation id and, of a remote agent, the A2A task and context.
    """
    known: dict[str, Any] = {**contract(one).metadata(), "invocationId": one.course}
    return known if one.peer is None else {**known, "a2a": dict(one.peer)}
