"""What a subagent kept of its parent's prompt cache.

A provider reuses what it has computed for as much of a request as is equal to the start of an earlier one.  The
order in which it reads is: the model, the tools, the system prompt, the messages.  So a request continues another
one's cache when model, tools and system prompt are the same and its messages begin with the other's.

Compared is what the model object received, never a state: middleware has the last word about a request.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage

__all__ = ["Asked", "Request", "calls_of", "first_difference"]


class Request(NamedTuple):
    """What a model received."""

    model: str
    tools: Sequence[str]
    system: str
    messages: Sequence[BaseMessage]

    @classmethod
    def of(
        cls, messages: Sequence[BaseMessage], metadata: Mapping[str, Any], params: Mapping[str, Any]
    ) -> "Request":
        """Return the request that a callback reports."""
        head = [one for one in messages if isinstance(one, SystemMessage)]
        return cls(
            "/".join(str(metadata[key]) for key in ("ls_provider", "ls_model_name") if metadata.get(key)),
            tuple(_tool_name(tool) for tool in params.get("tools") or ()),
            "\n".join(_text(one.content) for one in head),
            [one for one in messages if not isinstance(one, SystemMessage)],
        )


class Asked(NamedTuple):
    """A model request as a callback reports it: read only when somebody asks, for most are never compared."""

    messages: Sequence[BaseMessage]
    metadata: Mapping[str, Any]
    params: Mapping[str, Any]

    def request(self) -> Request:
        """Return what the model received."""
        return Request.of(self.messages, self.metadata, self.params)


def first_difference(request: Request, before: Request) -> dict[str, Any] | None:
    """Return where `request` stops being what `before` was, or `None` when it begins with all of it."""
    if request.model != before.model:
        return {"part": "model", "parent": before.model, "own": request.model}
    if list(request.tools) != list(before.tools):
        pairs = zip_longest(request.tools, before.tools)
        index = next(at for at, (own, parents) in enumerate(pairs) if own != parents)
        return {
            "part": "tools",
            "index": index,
            "missing": [name for name in before.tools if name not in request.tools],
            "added": [name for name in request.tools if name not in before.tools],
        }
    if request.system != before.system:
        return {"part": "system", "offset": _common(request.system, before.system)}
    for index, message in enumerate(before.messages):
        if index >= len(request.messages) or _same(request.messages[index]) != _same(message):
            return {"part": "messages", "index": index, "role": message.type}
    return None


def calls_of(messages: Sequence[BaseMessage]) -> Iterator[tuple[str, str, str | None]]:
    """Yield the tool calls in `messages`: name, arguments in one spelling, id."""
    for message in messages:
        if isinstance(message, AIMessage):
            for call in message.tool_calls:
                yield call["name"], spelled(call["args"]), call["id"]


def spelled(args: Any) -> str:
    """Return arguments in one spelling, so that equal ones are equal text."""
    return json.dumps(args, sort_keys=True, ensure_ascii=False, default=str)


def _same(message: BaseMessage) -> tuple[Any, ...]:
    """Return what of a message reaches a provider."""
    calls = tuple(calls_of([message]))
    answers = message.tool_call_id if isinstance(message, ToolMessage) else None
    return message.type, _text(message.content), message.name, calls, answers


def _text(content: Any) -> str:
    """Return content in one spelling.  Where a cache may be cut (`cache_control`) is not part of what is cached."""
    if isinstance(content, str):
        return content
    blocks = [
        {key: value for key, value in block.items() if key not in ("cache_control", "index", "id")}
        if isinstance(block, Mapping)
        else {"type": "text", "text": str(block)}
        for block in content
    ]
    if all(block.get("type") == "text" and set(block) == {"type", "text"} for block in blocks):
        return "".join(str(block["text"]) for block in blocks)
    return spelled(blocks)


def _common(one: str, other: str) -> int:
    """Return how many characters two texts begin with in common."""
    shorter = min(len(one), len(other))
    return next((at for at in range(shorter) if one[at] != other[at]), shorter)


def _tool_name(tool: Any) -> str:
    if not isinstance(tool, Mapping):
        return str(getattr(tool, "name", None) or getattr(tool, "__name__", None) or type(tool).__name__)
    function = tool.get("function")
    inner = function.get("name") if isinstance(function, Mapping) else None
    return str(tool.get("name") or inner or tool.get("type") or "")
