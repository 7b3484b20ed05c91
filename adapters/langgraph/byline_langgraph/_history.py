"""A thread's checkpoint as AG-UI messages: the parent agent's conversation."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from ag_ui.core import FunctionCall, SystemMessage, ToolCall, ToolMessage, UserMessage
from byline.events import AssistantMessage, Message
from byline.plain import clean_text, plain
from langchain_core import messages as lc

from ._content import parts_of, pieces

__all__ = ["told"]


def told(messages: Sequence[Any]) -> list[Message]:
    """Return LangChain messages as the protocol has them; what is no message is left out."""
    return [message for number, one in enumerate(messages) for message in _told(one, f"message-{number}")]


def _told(one: Any, id_: str) -> Iterator[Message]:
    if not isinstance(one, lc.BaseMessage):
        return
    id_ = one.id or id_
    if isinstance(one, lc.HumanMessage):
        yield UserMessage(id=id_, content=plain(parts_of(one.content)))
    elif isinstance(one, lc.ToolMessage):
        error = clean_text(str(one.content)) if one.status == "error" else None
        content = plain(parts_of(one.content))
        yield ToolMessage(id=id_, content=content, tool_call_id=one.tool_call_id, error=error)
    elif isinstance(one, lc.AIMessage):
        calls = [
            ToolCall(
                id=call["id"] or f"{id_}:call-{number}",
                function=FunctionCall(
                    name=call["name"], arguments=json.dumps(plain(call["args"]), ensure_ascii=False)
                ),
            )
            for number, call in enumerate(one.tool_calls)
        ]
        text = "".join(value for kind, value in pieces(one.content, {}) if kind == "text")
        yield AssistantMessage(id=id_, content=clean_text(text) or None, tool_calls=calls or None)
    elif isinstance(one, lc.SystemMessage):
        yield SystemMessage(id=id_, content=clean_text(str(one.text)))
