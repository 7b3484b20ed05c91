"""The event of a single word, which is made as often as all other events together.

pydantic checks what it is given, which for a word costs more than all else that happens to it here.  There is nothing
to check: the attributor has seen to the text, and the ids are its own.  So the event is put together from the fields
of one that pydantic made, and written to the slots of a pydantic model as it writes them itself.
"""

from typing import Final, TypeVar

from pydantic import BaseModel

from .events import ReasoningMessageContentEvent, TextMessageContentEvent

__all__ = ["word"]

W = TypeVar("W", TextMessageContentEvent, ReasoningMessageContentEvent)

_new: Final = object.__new__
_fields: Final = BaseModel.__dict__["__dict__"].__set__
_fields_set: Final = BaseModel.__dict__["__pydantic_fields_set__"].__set__
_extra: Final = BaseModel.__dict__["__pydantic_extra__"].__set__
_private: Final = BaseModel.__dict__["__pydantic_private__"].__set__

_FIELDS: Final = {
    kind: dict(kind(message_id="m", delta="d").__dict__)
    for kind in (TextMessageContentEvent, ReasoningMessageContentEvent)
}


def word(kind: type[W], message_id: str, delta: str, tag: str | None, timestamp: int | None) -> W:
    """Return `kind(message_id=..., delta=..., subagent_run_id=tag, timestamp=...)`, which is equal to it in all."""
    event = _new(kind)
    fields = _FIELDS[kind].copy()
    fields["timestamp"] = timestamp
    fields["subagent_run_id"] = tag
    fields["message_id"] = message_id
    fields["delta"] = delta
    _fields(event, fields)
    _fields_set(event, {"message_id", "delta", "subagent_run_id", "timestamp"})
    _extra(event, {})
    _private(event, None)
    return event
