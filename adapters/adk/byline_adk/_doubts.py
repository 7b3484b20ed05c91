"""What ADK accepts and then drops: combinations of modes that cannot work, each with its cure."""

from collections.abc import Iterator
from typing import Any

from byline.team_view import Doubt

from ._compat import can

__all__ = ["doubts"]


def doubts(root: Any) -> list[Doubt]:
    """Return what of a team will not run as it was written; `root` is its root agent or workflow."""
    return [*_root(root), *_below(root, [])]


def _root(root: Any) -> Iterator[Doubt]:
    mode = getattr(root, "mode", None)
    if mode == "single_turn" or (mode == "task" and not can("task_root")):
        yield Doubt(
            "mode-on-root",
            root.name,
            f"agent {root.name!r} is the root and has mode={mode!r}, which is for subagents",
            "leave mode out, and give it to the agents in sub_agents",
        )


def _below(agent: Any, above: list[Any]) -> Iterator[Doubt]:
    for child in getattr(agent, "sub_agents", None) or ():
        mode = getattr(child, "mode", None)
        line = [*above, agent]
        if mode in ("task", "single_turn"):
            yield from _delegation(child, mode, agent, line)
        yield from _below(child, line)


def _delegation(child: Any, mode: str, caller: Any, line: list[Any]) -> Iterator[Doubt]:
    if not _thinks(caller):
        yield Doubt(
            "mode-without-caller",
            child.name,
            f"agent {child.name!r} has mode={mode!r} under {_kind(caller)} {caller.name!r}, which runs it as if it had "
            "none",
            "make it a node of a Workflow, or leave mode out",
        )
        return
    containers = [one for one in line if not _thinks(one)]
    if containers and (mode == "task" or containers[0] is line[0]):
        fate = "is never answered" if mode == "task" else "always fails"
        yield Doubt(
            "call-without-scheduler",
            caller.name,
            f"agent {caller.name!r} delegates to {child.name!r} (mode={mode!r}) inside {_kind(containers[0])} "
            f"{containers[0].name!r}, where ADK has no scheduler for it: the call {fate}",
            "use a Workflow in its place, or an LlmAgent as the root",
        )
    elif mode == "task" and len(line) > 1 and getattr(caller, "mode", None) in (None, "chat"):
        yield Doubt(
            "task-after-transfer",
            caller.name,
            f"agent {caller.name!r} is reached by transfer and delegates the task {child.name!r}: ADK fails when the "
            "call is made",
            "give the task to the root, or make the caller a task as well",
        )
    elif mode == "task" and getattr(caller, "mode", None) == "task" and not can("nested_task"):
        yield Doubt(
            "task-in-task",
            caller.name,
            f"agent {caller.name!r} is a task and delegates the task {child.name!r}, which google-adk before 2.12 "
            "never answers",
            "upgrade, or let the root delegate both",
        )


def _thinks(agent: Any) -> bool:
    """Return whether an agent has a model: others only run their sub-agents."""
    return hasattr(agent, "mode")


def _kind(agent: Any) -> str:
    return type(agent).__name__
