"""The records a ledger builds: messages and tool calls, and whose they are."""

from typing import Any, Final, NamedTuple

from byline import state
from byline.state import Json

__all__ = ["ABSENT", "Claim", "Mark", "Message", "RejectedError", "ToolCall"]

ABSENT: Final[Any] = object()
"""The content of a message that has none."""


class Mark(NamedTuple):
    """A place in the stream: the 0-based number of the record fed, and its `timestamp` if it has one."""

    event: int
    timestamp: int | None


class Claim(NamedTuple):
    """Who opened an item, and in which run.  In that run only the same owner, or nobody by name, may continue it."""

    run: int
    owner: str | None


class RejectedError(Exception):
    """An event that a consumer must reject, by a rule of the validator; it has changed nothing."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.rule = rule


class Message:
    """One message under construction; `wire()` is what it is so far."""

    __slots__ = (
        "_content",
        "_deltas",
        "calls",
        "claim",
        "end",
        "fields",
        "last_answer",
        "listed",
        "next",
        "start",
    )

    def __init__(self, fields: dict[str, Json], start: Mark, claim: Claim) -> None:
        self._content: Json = fields.pop("content", ABSENT)
        self._deltas: list[str] = []
        self.fields = fields
        """Its members except `content` and `toolCalls`."""
        self.calls: list[ToolCall] = []
        self.claim = claim
        self.start = start
        self.end: Mark | None = None
        self.listed = True
        """Whether it is among the messages; what a snapshot dropped is not."""
        self.next: Message | None = None
        self.last_answer: Message | None = None
        """The last of the answers that stand behind it."""

    @property
    def id(self) -> str:
        return str(self.fields["id"])

    @property
    def role(self) -> str:
        return str(self.fields["role"])

    @property
    def owner(self) -> str | None:
        owner: str | None = self.fields.get("subagentRunId")
        return owner

    @property
    def content(self) -> Json:
        """Text, content parts, an activity's object, or `None` for a message that has no content (yet)."""
        if self._deltas:
            self._content = "".join([self._content if isinstance(self._content, str) else "", *self._deltas])
            self._deltas.clear()
        return None if self._content is ABSENT else self._content

    @content.setter
    def content(self, content: Json) -> None:
        self._deltas.clear()
        self._content = content

    def append(self, delta: str) -> None:
        self._deltas.append(delta)

    def merge_metadata(self, metadata: Json) -> None:
        self.fields["metadata"] = {**self.fields.get("metadata", {}), **metadata}

    def wire(self) -> dict[str, Json]:
        wire: dict[str, Json] = state.copied(self.fields)
        if (content := state.copied(self.content)) is not None:
            wire["content"] = content
        if self.calls:
            wire["toolCalls"] = [call.wire() for call in self.calls]
        return wire


class ToolCall:
    """One tool call under construction."""

    __slots__ = ("_arguments", "answer", "claim", "end", "extra", "id", "message", "name", "start")

    def __init__(self, id_: str, name: str, message: Message, start: Mark, claim: Claim) -> None:
        self._arguments: list[str] = []
        self.id = id_
        self.name = name
        self.message = message
        self.claim = claim
        self.extra: dict[str, Json] = {}
        """`metadata` and `encryptedValue`, where it has them."""
        self.answer: Message | None = None
        self.start = start
        self.end: Mark | None = None

    @property
    def arguments(self) -> str:
        """Its arguments as they were sent: text that is meant to be JSON and need not be."""
        if len(self._arguments) > 1:
            self._arguments = ["".join(self._arguments)]
        return self._arguments[0] if self._arguments else ""

    @arguments.setter
    def arguments(self, arguments: str) -> None:
        self._arguments = [arguments]

    def append(self, delta: str) -> None:
        self._arguments.append(delta)

    def merge_metadata(self, metadata: Json) -> None:
        self.extra["metadata"] = {**self.extra.get("metadata", {}), **metadata}

    def wire(self) -> dict[str, Json]:
        function = {"name": self.name, "arguments": self.arguments}
        return {"id": self.id, "type": "function", "function": function, **state.copied(self.extra)}
