"""What a client sends, as what ADK takes.

The session is ADK's own: only what is new goes in, the user's words behind the last answer and the answers to calls
that wait.  ADK refuses a message that holds both, and answers that belong to different invocations: each becomes a
message of its own, sent one after the other.
"""

import base64
import binascii
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from byline.attributor import native_ids
from byline.errors import InputError, ResumeError
from byline.events import Message, ResumeEntry, RunAgentInput
from google.genai import types

from . import _content as content
from ._identity import Book, ToolUse

__all__ = ["Answer", "Turn", "turns"]

_MEDIA: Final = {
    "image": "image/*",
    "audio": "audio/*",
    "video": "video/*",
    "document": "application/octet-stream",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a call of an earlier run."""

    use: ToolUse
    response: dict[str, Any]
    shown: bool
    """Whether the client has it already: a tool message is its own."""


@dataclass(slots=True)
class Turn:
    """One message for ADK."""

    message: types.Content
    answers: list[Answer] = field(default_factory=list)


def turns(run_input: RunAgentInput, book: Book) -> list[Turn]:
    """Return what to send; raises `ResumeError` and `InputError` for what nothing waits for."""
    fresh = _behind_the_last_answer(run_input.messages)
    answers = [_resume(entry, book, run_input) for entry in run_input.resume or ()]
    if len({answer.use for answer in answers}) < len(answers):
        raise ResumeError("resume answers one interrupt twice: send one entry per interrupt")
    answers += _tool_messages(fresh, book)
    out = [Turn(_responses(group), group) for group in _by_course(answers)]
    parts = [part for message in fresh if message.role == "user" for part in _parts(message)]
    if parts:
        out.append(Turn(types.Content(role="user", parts=parts)))
    if not out:
        raise InputError(
            "there is nothing to send: expected a user message behind the last assistant message, "
            "a tool message that answers a waiting call, or resume entries"
        )
    return out


def _behind_the_last_answer(messages: Sequence[Message]) -> list[Message]:
    fresh: list[Message] = []
    for message in reversed(messages):
        if message.role == "assistant":
            break
        fresh.append(message)
    return fresh[::-1]


def _resume(entry: ResumeEntry, book: Book, run_input: RunAgentInput) -> Answer:
    waiting = {use.id: use for use in book.waiting()}
    use = waiting.get(entry.interrupt_id)
    if use is None:
        listed = ", ".join(repr(id_) for id_ in waiting) or "none"
        raise ResumeError(
            f"resume answers interrupt {entry.interrupt_id!r}, which is not open on thread "
            f"{run_input.thread_id!r}: it is unknown or already answered; open are {listed}"
        )
    return Answer(use, _payload(use, entry), shown=False)


def _payload(use: ToolUse, entry: ResumeEntry) -> dict[str, Any]:
    """Return the response that ADK expects for this kind of call."""
    payload = entry.payload
    given = entry.status == "resolved"
    if use.name == content.CONFIRMATION:
        if not given:
            return {"confirmed": False}
        if isinstance(payload, bool):
            return {"confirmed": payload}
        if isinstance(payload, Mapping) and "confirmed" in payload:
            return {key: payload[key] for key in ("confirmed", "hint", "payload") if key in payload}
        return {"confirmed": True} if payload is None else {"confirmed": True, "payload": payload}
    if use.name == content.CREDENTIAL and given and isinstance(payload, Mapping):
        return content.completed(content.auth_config(use.args), payload)
    if not given:
        return {"status": "cancelled", "error": "the user cancelled"}
    return dict(payload) if isinstance(payload, Mapping) else {"result": payload}


def _tool_messages(messages: Iterable[Message], book: Book) -> list[Answer]:
    waiting = {use.public: use for use in book.waiting()} | {use.id: use for use in book.waiting()}
    out: list[Answer] = []
    for message in messages:
        if message.role != "tool":
            continue
        use = next((waiting[id_] for id_ in native_ids(message.tool_call_id) if id_ in waiting), None)
        if use is not None:
            out.append(Answer(use, _response(message), shown=True))
    return out


def _response(message: Any) -> dict[str, Any]:
    said: Any = message.content
    if not isinstance(said, str):
        said = "".join(part.text for part in said if part.type == "text")
    if message.error:
        return {"error": message.error}
    try:
        value = json.loads(said)
    except ValueError:
        value = said
    return value if isinstance(value, dict) else {"result": value}


def _by_course(answers: Iterable[Answer]) -> list[list[Answer]]:
    groups: dict[str, list[Answer]] = {}
    for answer in answers:
        groups.setdefault(answer.use.course, []).append(answer)
    return list(groups.values())


def _responses(answers: Iterable[Answer]) -> types.Content:
    return types.Content(
        role="user",
        parts=[
            types.Part(
                function_response=types.FunctionResponse(
                    id=answer.use.id, name=answer.use.name, response=answer.response
                )
            )
            for answer in answers
        ],
    )


def _parts(message: Any) -> list[types.Part]:
    if isinstance(message.content, str):
        return [types.Part(text=message.content)] if message.content else []
    return [_part(part) for part in message.content]


def _part(part: Any) -> types.Part:
    if part.type == "text":
        return types.Part(text=part.text)
    source = part.source
    mime = source.mime_type or _MEDIA.get(part.type, "application/octet-stream")
    if source.type == "data":
        try:
            data = base64.b64decode(source.value, validate=True)
        except (ValueError, binascii.Error) as fault:
            raise InputError(f"the data of part {part.type!r} is not base64: {fault}") from fault
        return types.Part(inline_data=types.Blob(data=data, mime_type=mime))
    return types.Part(file_data=types.FileData(file_uri=source.value, mime_type=mime))
