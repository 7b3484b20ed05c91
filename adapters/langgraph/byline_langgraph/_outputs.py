"""What nodes, tools and graphs return, and how they end."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from byline import signals as s
from byline.attributor import CANCELLED
from langchain_core.messages import BaseMessage, convert_to_messages
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.types import Command, Overwrite

from ._content import parts_of

__all__ = ["cause_of", "ending_of", "interrupts_of", "messages_in", "result_of", "spelled_in"]


def messages_in(value: Any) -> Iterator[BaseMessage]:
    """Yield the messages that a node or a tool returned, in whatever it returned them."""
    return (message for _, message in spelled_in(value))


def spelled_in(value: Any) -> Iterator[tuple[Any, BaseMessage]]:
    """Yield the messages in `value`, each with what it was spelled as.

    Under `messages` LangGraph takes any spelling of LangChain's: an object, `("ai", "text")`, a mapping with `role`
    or `type`, and a bare string, which is the user's.  In the state it is an object with an id of LangGraph's, if
    it had none of its own; no callback tells that id.
    """
    if type(value) is dict:  # most of the time
        yield from _conversation(value.get("messages"))
    elif isinstance(value, BaseMessage):
        yield value, value
    elif isinstance(value, Command):
        yield from spelled_in(value.update)
    elif isinstance(value, Mapping):
        yield from _conversation(value.get("messages"))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _conversation(item[1]) if _is_update(item) else spelled_in(item)


def _is_update(item: Any) -> bool:
    """Return whether this is one of the pairs of channel and value that a command's update may consist of."""
    return isinstance(item, tuple) and len(item) == 2 and item[0] == "messages"


def _conversation(messages: Any) -> Iterator[tuple[Any, BaseMessage]]:
    if messages is None:
        return
    if isinstance(messages, Overwrite):
        messages = messages.value
    several = isinstance(messages, list) or (
        isinstance(messages, tuple) and any(isinstance(one, BaseMessage) for one in messages)
    )
    for item in messages if several else (messages,):
        if isinstance(item, BaseMessage):
            yield item, item
        elif isinstance(item, str | list | tuple | Mapping):
            try:
                (message,) = convert_to_messages([cast("Any", item)])
            except Exception:  # noqa: S112 - it is no message; LangGraph refuses it, or the channel is for something else
                continue
            yield item, message


def result_of(outputs: Any) -> Any:
    """Return what the caller gets to read: the text of the last message, else the graph's output."""
    if isinstance(outputs, Mapping) and "messages" in outputs:
        messages = outputs["messages"]
        last = messages[-1] if isinstance(messages, list | tuple) and messages else messages
        if isinstance(last, Mapping):  # from a remote graph, whose messages may be of types that are no role
            return parts_of(last.get("content") or "")
        return next((parts_of(message.content) for _, message in _conversation([last])), s.ABSENT)
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
