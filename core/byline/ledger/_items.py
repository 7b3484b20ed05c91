"""The records a ledger builds: messages and tool calls, and whose they are.

There is one for every message of a thread, and the garbage collector looks at each of its containers again and again:
with lists and marks in every record, a ledger of 64,000 events took a quarter longer per event than one of 8,000.
So a record has a list only while something is appended to it, claims are shared, and a place is a plain tuple of
numbers, which the collector does not keep looking at.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from byline import state
from byline.state import Json

__all__ = ["ABSENT", "Claim", "Mark", "Message", "Place", "RejectedError", "ToolCall"]

ABSENT: Final[Any] = object()
"""The content of a message that has none."""


class Mark(NamedTuple):
    """A place in the stream: the 0-based number of the record fed, and its `timestamp` if it has one."""

    event: int
    timestamp: int | None


Place: TypeAlias = tuple[int, int | None]
"""What a `Mark` is made of."""


class Claim(NamedTuple):
    """Who opened an item, and in which run.  In that run only the same owner, or nobody by name, may continue it."""

    run: int
    owner: str | None


class RejectedError(Exception):
    """An event that a consumer must reject, by a rule of the validator; it has changed nothing."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.rule = rule


class Item:
    """What is written piece by piece: the text there is, and what was appended since somebody looked."""

    __slots__ = ("_deltas", "_text", "claim", "end", "start")

    def __init__(self, start: Place, claim: Claim, text: Json = ABSENT) -> None:
        self._text: Json = text
        self._deltas: list[str] | None = None
        self.claim = claim
        self.start = start
        self.end: Place | None = None

    def append(self, delta: str) -> None:
        if self._deltas is None:
            self._deltas = []
        self._deltas.append(delta)

    def close(self, place: Place) -> None:
        self.end = place
        self._settle()

    def merge_metadata(self, metadata: Json) -> None:
        """Take over the metadata of an event that built the item; a span keeps none."""

    def _settle(self) -> Json:
        if self._deltas is not None:
            self._text = "".join([self._text if isinstance(self._text, str) else "", *self._deltas])
            self._deltas = None
        return self._text


class Message(Item):
    """One message under construction; `wire()` is what it is so far."""

    __slots__ = ("_calls", "fields", "last_answer", "listed", "next")

    def __init__(self, fields: dict[str, Json], start: Place, claim: Claim) -> None:
        super().__init__(start, claim, fields.pop("content", ABSENT))
        self._calls: list[ToolCall] | None = None
        self.fields = fields
        """Its members except `content` and `toolCalls`."""
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
        content = self._settle()
        return None if content is ABSENT else content

    @content.setter
    def content(self, content: Json) -> None:
        self._text, self._deltas = content, None

    @property
    def calls(self) -> Sequence["ToolCall"]:
        return self._calls or ()

    def hold(self, call: "ToolCall") -> None:
        if self._calls is None:
            self._calls = []
        self._calls.append(call)

    def let_go(self) -> None:
        """Hold no calls any more."""
        self._calls = None

    def merge_metadata(self, metadata: Json) -> None:
        self.fields["metadata"] = {**self.fields.get("metadata", {}), **metadata}

    def wire(self) -> dict[str, Json]:
        wire: dict[str, Json] = state.copied(self.fields)
        if (content := state.copied(self.content)) is not None:
            wire["content"] = content
        if self._calls:
            wire["toolCalls"] = [call.wire() for call in self._calls]
        return wire


class ToolCall(Item):
    """One tool call under construction."""

    __slots__ = ("answer", "extra", "id", "message", "name")

    def __init__(self, id_: str, name: str, message: Message, start: Place) -> None:
        super().__init__(start, message.claim)
        self.id = id_
        self.name = name
        self.message = message
        self.extra: dict[str, Json] = {}
        """`metadata` and `encryptedValue`, where it has them."""
        self.answer: Message | None = None

    @property
    def arguments(self) -> str:
        """Its arguments as they were sent: text that is meant to be JSON and need not be."""
        arguments = self._settle()
        return "" if arguments is ABSENT else str(arguments)

    @arguments.setter
    def arguments(self, arguments: str) -> None:
        self._text, self._deltas = arguments, None

    def merge_metadata(self, metadata: Json) -> None:
        self.extra["metadata"] = {**self.extra.get("metadata", {}), **metadata}

    def wire(self) -> dict[str, Json]:
        function = {"name": self.name, "arguments": self.arguments}
        return {"id": self.id, "type": "function", "function": function, **state.copied(self.extra)}
