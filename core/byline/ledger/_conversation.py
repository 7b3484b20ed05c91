"""The messages of a thread as a consumer must build them, each with its owner.

One table, `Conversation._HANDLERS`, says what each event does to the list.  What is easily got wrong:

- a START under a known id reuses that message, whatever its role, and keeps its owner; only an activity is left
  alone;
- a tool call goes into the message it names.  A message that does not exist yet is made under that id (or under
  the call's own id when it names none) and only then takes the call's tag;
- a tool's answer has its own owner and stands right after the message that holds the call, behind the answers that
  are there already, however much was said in between;
- a replacing activity snapshot re-owns the activity, also back to the parent agent; `replace: false` keeps what is
  there; either way its metadata is merged;
- `MESSAGES_SNAPSHOT` replaces by id in place, appends what is new, and drops what it does not list, except activities
  and reasoning while it lists none of that kind;
- metadata is merged key by key into the item that the event builds: the call, not the message, for tool calls.

The list is a chain of records, so that an answer is put into its middle, and a word appended to any message, at the
same cost in the ten-thousandth message as in the first.  Records outlive the list: what a snapshot drops was still
said, and stays with its owner, unless the snapshot has other messages of that owner: then it tells its work anew,
under ids of its own, as backends do that build it from their memory.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final, NamedTuple

from byline import state
from byline.chunks import Wire
from byline.state import Json

__all__ = ["Conversation", "Mark", "Message", "ToolCall"]

_ABSENT: Final[Any] = object()


class Mark(NamedTuple):
    """A place in the stream: the 0-based number of the record fed, and its `timestamp` if it has one."""

    event: int
    timestamp: int | None


class Message:
    """One message under construction; `wire()` is what it is so far."""

    __slots__ = ("_content", "_deltas", "calls", "end", "fields", "last_answer", "listed", "next", "start")

    def __init__(self, fields: dict[str, Json], start: Mark) -> None:
        self.fields = fields
        """Its members except `content` and `toolCalls`."""
        self.calls: list[ToolCall] = []
        self.start = start
        self.end: Mark | None = None
        self.listed = True
        self.next: Message | None = None
        self.last_answer: Message | None = None
        self._content: Json = fields.pop("content", _ABSENT)
        self._deltas: list[str] = []

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
        return None if self._content is _ABSENT else self._content

    @content.setter
    def content(self, content: Json) -> None:
        self._deltas.clear()
        self._content = content

    def append(self, delta: str) -> None:
        self._deltas.append(delta)

    def wire(self) -> dict[str, Json]:
        wire = state.copied(self.fields)
        if (content := state.copied(self.content)) is not None:
            wire["content"] = content
        if self.calls:
            wire["toolCalls"] = [call.wire() for call in self.calls]
        return dict(wire)


class ToolCall:
    """One tool call under construction."""

    __slots__ = ("_arguments", "answer", "end", "extra", "id", "message", "name", "start")

    def __init__(self, id_: str, name: str, message: Message, start: Mark) -> None:
        self.id = id_
        self.name = name
        self.message = message
        self.extra: dict[str, Json] = {}
        """`metadata` and `encryptedValue`, where it has them."""
        self.answer: Message | None = None
        self.start = start
        self.end: Mark | None = None
        self._arguments: list[str] = []

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

    def wire(self) -> dict[str, Json]:
        function = {"name": self.name, "arguments": self.arguments}
        return {"id": self.id, "type": "function", "function": function, **state.copied(self.extra)}


class Conversation:
    """Takes wire events without chunks, in order, and keeps the messages they make.

    It expects events that a consumer may accept; of others it makes what it can.
    """

    def __init__(self) -> None:
        self._head = Message({"id": "", "role": ""}, Mark(-1, None))
        self._last = self._head
        self._messages: dict[str, Message] = {}
        self._calls: dict[str, ToolCall] = {}
        self.of_owner: dict[str | None, list[Message]] = {}
        """Every message that there ever was, by owner, in the order of their beginning."""

    def __iter__(self) -> Iterator[Message]:
        """Iterate over the messages in their order."""
        message = self._head.next
        while message is not None:
            yield message
            message = message.next

    def message(self, id_: str) -> Message | None:
        """Return the newest message that had the id, also one that a snapshot has dropped."""
        return self._messages.get(id_)

    def call(self, id_: str) -> ToolCall | None:
        """Return the newest tool call that had the id, also one whose message a snapshot has dropped."""
        return self._calls.get(id_)

    def apply(self, event: Wire, mark: Mark) -> None:
        """Do what `event` does to the messages; events that do nothing to them pass.

        Raises `state.PatchError` for an `ACTIVITY_DELTA` that does not apply; the activity keeps its content.
        """
        handler = self._HANDLERS.get(event["type"])
        if handler is not None:
            handler(self, event, mark)

    # -- text and reasoning ---------------------------------------------------------------------------------------

    def _open(self, event: Wire, mark: Mark, role: str) -> None:
        message = self._listed(event["messageId"])
        if message is None:
            fields = {"id": event["messageId"], "role": role, "content": ""}
            fields.update({member: event[member] for member in ("name", "subagentRunId") if member in event})
            message = self._append(Message(fields, mark))
        elif message.role == "activity":
            return
        message.end = None
        _merge_metadata(message.fields, event)

    def _text_start(self, event: Wire, mark: Mark) -> None:
        self._open(event, mark, event.get("role", "assistant"))

    def _reasoning_start(self, event: Wire, mark: Mark) -> None:
        self._open(event, mark, "reasoning")

    def _content(self, event: Wire, _mark: Mark) -> None:
        message = self._listed(event["messageId"])
        if message is not None and message.role != "activity":
            message.append(event["delta"])
            _merge_metadata(message.fields, event)

    def _end(self, event: Wire, mark: Mark) -> None:
        message = self._listed(event["messageId"])
        if message is not None and message.role != "activity":
            message.end = mark
            _merge_metadata(message.fields, event)

    def _encrypted(self, event: Wire, _mark: Mark) -> None:
        if event["subtype"] == "tool-call":
            call = self._listed_call(event["entityId"])
            if call is not None:
                call.extra["encryptedValue"] = event["encryptedValue"]
        else:
            message = self._listed(event["entityId"])
            if message is not None and message.role != "activity":
                message.fields["encryptedValue"] = event["encryptedValue"]

    # -- tool calls -----------------------------------------------------------------------------------------------

    def _call_start(self, event: Wire, mark: Mark) -> None:
        call = self._listed_call(event["toolCallId"])
        if call is None:
            call = self._hold_call(
                event["toolCallId"], event["toolCallName"], self._holder(event, mark), mark
            )
        call.name = event["toolCallName"]
        call.end = None
        _merge_metadata(call.extra, event)

    def _holder(self, event: Wire, mark: Mark) -> Message:
        """Return the assistant message that a new call goes into, which may have to be made."""
        id_ = event.get("parentMessageId", event["toolCallId"])
        named = self._listed(id_)
        if named is not None and named.role == "assistant":
            return named
        fields = {"id": id_ if named is None else event["toolCallId"], "role": "assistant"}
        if "subagentRunId" in event:
            fields["subagentRunId"] = event["subagentRunId"]
        return self._append(Message(fields, mark))

    def _call_arguments(self, event: Wire, _mark: Mark) -> None:
        call = self._listed_call(event["toolCallId"])
        if call is not None:
            call.append(event["delta"])
            _merge_metadata(call.extra, event)

    def _call_end(self, event: Wire, mark: Mark) -> None:
        call = self._listed_call(event["toolCallId"])
        if call is not None:
            call.end = mark
            _merge_metadata(call.extra, event)

    def _call_result(self, event: Wire, mark: Mark) -> None:
        fields = {"id": event["messageId"], "role": "tool"}
        fields.update({m: event[m] for m in ("toolCallId", "content", "subagentRunId") if m in event})
        answer = Message(fields, mark)
        answer.end = mark
        _merge_metadata(fields, event)
        call = self._listed_call(event["toolCallId"])
        if call is None:
            self._append(answer)
            return
        place = call.message.last_answer or call.message
        while place.next is not None and place.next.role == "tool":
            place = place.next
        call.message.last_answer = answer
        self._insert(place, answer)

    # -- activities -----------------------------------------------------------------------------------------------

    def _activity_snapshot(self, event: Wire, mark: Mark) -> None:
        message = self._listed(event["messageId"])
        minted = {"id": event["messageId"], "role": "activity", "activityType": event["activityType"]}
        minted.update({m: event[m] for m in ("content", "subagentRunId") if m in event})
        if message is None:
            message = self._append(self._read(minted, mark))
        elif event.get("replace", True):
            metadata = message.fields.get("metadata") if message.role == "activity" else None
            self._rewrite(message, minted if metadata is None else {**minted, "metadata": metadata}, mark)
        _merge_metadata(message.fields, event)

    def _activity_delta(self, event: Wire, mark: Mark) -> None:
        message = self._listed(event["messageId"])
        if message is None or message.role != "activity":
            return
        _merge_metadata(message.fields, event)
        message.content = state.apply(message.content, event["patch"])
        message.fields["activityType"] = event["activityType"]
        message.end = mark

    # -- whole histories ------------------------------------------------------------------------------------------

    def _run_started(self, event: Wire, mark: Mark) -> None:
        for wire in event.get("input", {}).get("messages", ()):
            if self._listed(wire["id"]) is None:
                self._append(self._read(wire, mark))

    def _snapshot(self, event: Wire, mark: Mark) -> None:
        snapshot = {wire["id"]: wire for wire in event["messages"]}
        kept_roles = {"activity", "reasoning"} - {wire["role"] for wire in event["messages"]}
        owners = {wire.get("subagentRunId") for wire in event["messages"]}
        before = list(self)
        self._head.next, self._last = None, self._head
        for message in before:
            message.next = message.last_answer = None
            message.listed = message.id in snapshot or message.role in kept_roles
        for message in before:
            if message.listed:
                self._link(self._last, message)
                if (wire := snapshot.pop(message.id, None)) is not None:
                    self._rewrite(message, wire, mark)
        for owner in owners & self.of_owner.keys():  # whose work the snapshot knows and tells anew
            self.of_owner[owner] = [message for message in self.of_owner[owner] if message.listed]
        for wire in snapshot.values():
            self._append(self._read(wire, mark))

    def _read(self, wire: Wire, mark: Mark) -> Message:
        message = Message({"id": wire["id"], "role": wire["role"]}, mark)
        self._fill(message, wire, mark)
        return message

    def _rewrite(self, message: Message, wire: Wire, mark: Mark) -> None:
        owner = message.owner
        self._fill(message, wire, mark)
        if message.owner != owner:
            self.of_owner[owner].remove(message)
            self._own(message)

    def _fill(self, message: Message, wire: Wire, mark: Mark) -> None:
        """Make `message` what `wire` says, and nothing that it does not say."""
        message.fields = {key: value for key, value in wire.items() if key not in {"content", "toolCalls"}}
        message.content = wire.get("content", _ABSENT)
        message.end = mark
        message.calls = []
        for told in wire.get("toolCalls", ()):
            call = self._hold_call(told["id"], told["function"]["name"], message, mark)
            call.arguments = told["function"]["arguments"]
            call.extra = {key: told[key] for key in ("metadata", "encryptedValue") if key in told}
            call.end = call.end or mark

    # -- the chain, and who owns what -----------------------------------------------------------------------------

    def _listed(self, id_: str) -> Message | None:
        message = self._messages.get(id_)
        return message if message is not None and message.listed else None

    def _listed_call(self, id_: str) -> ToolCall | None:
        call = self._calls.get(id_)
        return call if call is not None and call.message.listed else None

    def _append(self, message: Message) -> Message:
        return self._insert(self._last, message)

    def _insert(self, place: Message, message: Message) -> Message:
        self._link(place, message)
        if (
            self._listed(message.id) is None
        ):  # of two under one id the first is found, as at the official client
            self._messages[message.id] = message
        self._own(message)
        if message.role == "tool" and (call := self._listed_call(message.fields["toolCallId"])) is not None:
            call.answer = call.answer or message
        return message

    def _link(self, place: Message, message: Message) -> None:
        message.next = place.next
        place.next = message
        if place is self._last:
            self._last = message

    def _own(self, message: Message) -> None:
        self.of_owner.setdefault(message.owner, []).append(message)

    def _hold_call(self, id_: str, name: str, message: Message, mark: Mark) -> ToolCall:
        """Put the call into `message`: the one there is, unless it went with a message that was dropped."""
        call = self._listed_call(id_)
        if call is None:
            call = self._calls[id_] = ToolCall(id_, name, message, mark)
        call.name = name
        call.message = message
        message.calls.append(call)
        return call

    _HANDLERS: ClassVar[Mapping[str, Callable[["Conversation", Wire, Mark], None]]] = {
        "RUN_STARTED": _run_started,
        "TEXT_MESSAGE_START": _text_start,
        "TEXT_MESSAGE_CONTENT": _content,
        "TEXT_MESSAGE_END": _end,
        "REASONING_MESSAGE_START": _reasoning_start,
        "REASONING_MESSAGE_CONTENT": _content,
        "REASONING_MESSAGE_END": _end,
        "REASONING_ENCRYPTED_VALUE": _encrypted,
        "TOOL_CALL_START": _call_start,
        "TOOL_CALL_ARGS": _call_arguments,
        "TOOL_CALL_END": _call_end,
        "TOOL_CALL_RESULT": _call_result,
        "ACTIVITY_SNAPSHOT": _activity_snapshot,
        "ACTIVITY_DELTA": _activity_delta,
        "MESSAGES_SNAPSHOT": _snapshot,
    }
    """What each event does to the messages; every other event leaves them alone."""


def _merge_metadata(fields: dict[str, Json], event: Wire) -> None:
    if "metadata" in event:
        fields["metadata"] = {**fields.get("metadata", {}), **event["metadata"]}
