"""What nodes, tools and graphs return, and how they end."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from byline import signals as s
from byline.attributor import CANCELLED
from langchain_core.messages import BaseMessage
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.types import Command

from ._content import parts_of

__all__ = ["cause_of", "ending_of", "interrupts_of", "messages_in", "result_of"]


def messages_in(value: Any) -> Iterator[BaseMessage]:
    """Yield the messages that a node or a tool returned, in whatever it returned them."""
    if isinstance(value, BaseMessage):
        yield value
    elif isinstance(value, Command):
        yield from messages_in(value.update)
    elif isinstance(value, Mapping):
        yield from messages_in(value.get("messages"))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from messages_in(item)


def result_of(outputs: Any) -> Any:
    """Return what the caller gets to read: the text of the last message, else the graph's output."""
    if isinstance(outputs, Mapping) and "messages" in outputs:
        last = outputs["messages"][-1] if outputs["messages"] else None
        if isinstance(last, Mapping):  # from a remote graph
            return parts_of(last.get("content") or "")
        return parts_of(last.content) if isinstance(last, BaseMessage) else s.ABSENT
    return s.ABSENT if outputs is None else outputs


def interrupts_of(error: GraphInterrupt) -> Sequence[Any]:
    """Return the interrupts that stopped a run; none for a breakpoint."""
    return error.args[0] if error.args else ()


def ending_of(owner: str, error: BaseException) -> s.Closed | s.Failed | s.Suspended | None:
    """Return how an invocation ended with `error`; `None` if it asked, which the end of the run has to tell."""
    if isinstance(error, GraphInterrupt):
        # A breakpoint asks nothing: the next run goes on from there.
        return None if interrupts_of(error) else s.Suspended(owner)
    if isinstance(error, GraphBubbleUp):
        return s.Closed(owner)  # control was handed on
    return s.Failed(owner, *cause_of(error))


def cause_of(error: BaseException) -> tuple[str, str]:
    """Return the message and the code of a failure."""
    if type(error).__name__ == "CancelledError":
        return "cancelled before it was over", CANCELLED
    return str(error) or type(error).__name__, type(error).__name__
