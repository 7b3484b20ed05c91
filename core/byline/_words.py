"""The event of a single word, which is made as often as all other events together.

pydantic checks what it is given, which for a word costs more than all else that happens to it here.  There is nothing
to check: the attributor has seen to the text, and the ids are its own.  So the event is put together from the fields
of one that pydantic made.
"""

from typing import Final, TypeVar

from .events import ReasoningMessageContentEvent, TextMessageContentEvent

__all__ = ["word"]

W = TypeVar("W", TextMessageContentEvent, ReasoningMessageContentEvent)

_new: Final = object.__new__
_set: Final = object.__setattr__

_FIELDS: Final = {
    kind: dict(kind(message_id="m", delta="d").__dict__)
    for kind in (TextMessageContentEvent, ReasoningMessageContentEvent)
}


def word(kind: type[W], message_id: str, delta: str, tag: str | None, timestamp: int | None) -> W:
    """Return `kind(message_id=..., delta=..., subagent_run_id=tag, timestamp=...)`, which is equal to it in all."""
    event = _new(kind)
    fields = {
        **_FIELDS[kind],
        "timestamp": timestamp,
        "subagent_run_id": tag,
        "message_id": message_id,
        "delta": delta,
    }
    _set(event, "__dict__", fields)
    _set(event, "__pydantic_fields_set__", {"message_id", "delta", "subagent_run_id", "timestamp"})
    _set(event, "__pydantic_extra__", {})
    _set(event, "__pydantic_private__", None)
    return event
