"""Content blocks, both ways: LangChain's many spellings and AG-UI's parts."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.types import Command, Send

__all__ = ["Piece", "invocation_id", "open_calls", "parts_of", "pieces", "sent_along", "to_blocks"]

Piece: TypeAlias = tuple[Literal["text", "reasoning", "media"], Any]
"""What a model's answer is made of: text, thought text, or an AG-UI content part."""

_MEDIA = ("image", "audio", "video", "document")
_KINDS = {"file": "document", "input_audio": "audio", "image_url": "image"}


def pieces(content: Any, additional: Mapping[str, Any] | None = None) -> Iterator[Piece]:
    """Yield the pieces of a message's content, in order.

    Reasoning comes in five spellings: LangChain's own `reasoning` block (with a text, or with OpenAI's list of
    summaries), Anthropic's `thinking`, Bedrock's `reasoning_content`, and DeepSeek's extra keyword.
    """
    if additional and (thought := additional.get("reasoning_content")):
        yield "reasoning", str(thought)
    if isinstance(content, str):
        if content:
            yield "text", content
        return
    for block in content or ():
        if isinstance(block, str):
            yield "text", block
        elif isinstance(block, Mapping):
            yield from _block(block)


def _block(block: Mapping[str, Any]) -> Iterator[Piece]:
    kind = block.get("type")
    if kind == "text":
        yield "text", str(block.get("text") or "")
    elif kind == "thinking":
        yield "reasoning", str(block.get("thinking") or "")
    elif kind == "reasoning":
        yield "reasoning", str(block.get("reasoning") or "") or _summaries(block.get("summary"))
    elif kind == "reasoning_content":
        inner = block.get("reasoning_content")
        yield "reasoning", str(inner.get("text") or "") if isinstance(inner, Mapping) else ""
    elif (part := _part(block)) is not None:
        yield "media", part


def _summaries(summary: Any) -> str:
    if not isinstance(summary, Iterable) or isinstance(summary, str):
        return ""
    return "".join(str(one.get("text") or "") for one in summary if isinstance(one, Mapping))


def _part(block: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the AG-UI part of a LangChain block that carries media, or nothing for other blocks."""
    kind = _KINDS.get(str(block.get("type")), str(block.get("type")))
    if kind not in _MEDIA:
        return None
    mime = block.get("mime_type")
    data = block.get("base64") or (block.get("data") if block.get("source_type") == "base64" else None)
    url = block.get("url")
    if isinstance(block.get("image_url"), Mapping):
        url = block["image_url"].get("url")
    elif isinstance(block.get("image_url"), str):
        url = block["image_url"]
    if isinstance(url, str) and url.startswith("data:") and ";base64," in url:
        head, data = url.split(";base64,", 1)
        mime, url = head.removeprefix("data:"), None
    file_id = block.get("file_id") or (block.get("id") if block.get("source_type") == "id" else None)
    source: dict[str, Any]
    if data:
        source = {"type": "data", "value": str(data), "mimeType": str(mime or "application/octet-stream")}
    elif url:
        source = {"type": "url", "value": str(url)}
    elif file_id:
        source = {"type": "file", "value": str(file_id)}
    else:
        return None
    if mime and "mimeType" not in source:
        source["mimeType"] = str(mime)
    return {"type": kind, "source": source}


def parts_of(content: Any) -> str | list[dict[str, Any]]:
    """Return a tool message's content as AG-UI has it: text, or content parts when there is more than text."""
    if isinstance(content, str):
        return content
    parts: list[dict[str, Any]] = []
    for kind, value in pieces(content):
        if kind == "media":
            parts.append(value)
        elif kind == "text" and value:
            parts.append({"type": "text", "text": value})
    if all(part["type"] == "text" for part in parts):
        return "".join(part["text"] for part in parts)
    return parts


def to_blocks(content: str | Iterable[Any]) -> str | list[str | dict[str, Any]]:
    """Return AG-UI content (text or parts) as LangChain's standard content blocks."""
    if isinstance(content, str):
        return content
    return [_to_block(part.model_dump(by_alias=True)) for part in content if not isinstance(part, str)]


def _to_block(part: dict[str, Any]) -> dict[str, Any]:
    if part["type"] == "text":
        return {"type": "text", "text": part["text"]}
    source = part["source"]
    block: dict[str, Any] = {"type": "file" if part["type"] == "document" else part["type"]}
    block[{"data": "base64", "url": "url", "file": "file_id"}[source["type"]]] = source["value"]
    if source.get("mimeType"):
        block["mime_type"] = source["mimeType"]
    return block


def open_calls(thread: Sequence[BaseMessage]) -> set[str]:
    """Return the ids of the tool calls that have no answer yet.

    Read in order, because a model may give each of its turns the same id (`call_0`).
    """
    waiting: set[str] = set()
    for message in thread:
        if isinstance(message, AIMessage):
            waiting |= {str(call["id"]) for call in [*message.tool_calls, *message.invalid_tool_calls]}
        elif isinstance(message, ToolMessage):
            waiting.discard(message.tool_call_id)
    return waiting


def sent_along(commands: Iterable[Command[Any]]) -> Iterator[BaseMessage]:
    """Yield the messages that a hand-off tool sends to the agent it hands to, instead of returning them.

    Measured: a hand-off of langgraph-supervisor that is one of several calls of a turn returns
    `Command(goto=[Send(agent, {"messages": [..., answer]})])` without an update.  Its own answer to its call stands there
    and nowhere else: neither the answers of the turn nor the turn itself are in the graph's state afterwards.
    """
    for command in commands:
        goto = command.goto if isinstance(command.goto, list | tuple) else (command.goto,)
        for target in goto:
            if isinstance(target, Send) and isinstance(target.arg, Mapping):
                messages = target.arg.get("messages")
                yield from (one for one in messages or () if isinstance(one, BaseMessage))


def invocation_id(name: str, *parts: str) -> str:
    """Return a `subagentRunId` that is readable, made of `name`, and as lasting as the `parts` it is made of."""
    digest = hashlib.sha256("\x1f".join(parts).encode("utf-8", "replace")).hexdigest()
    return f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', name)}-{digest[:12]}"
