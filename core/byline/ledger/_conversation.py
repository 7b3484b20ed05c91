"""The messages of a thread as a consumer must build them, each with its owner.

One table, `Conversation._HANDLERS`, says what each event does to the list.  What is easily got wrong:

- a START under a known id reuses that message, whatever its role, and the message keeps its owner; only an activity
  takes no text;
- a tool call goes into the message it names.  A message that does not exist yet is made under that id (or under
  the call's own id when it names none) and only then takes the call's tag;
- a tool's answer has its own owner and stands right behind the message that holds the call and the answers that are
  there already, however much was said in between;
- a replacing activity snapshot re-owns the activity, also back to the parent agent; `replace: false` keeps what is
  there; either way its metadata is merged;
- `MESSAGES_SNAPSHOT` replaces by id in place, appends what is new, and drops what it does not list, except activities
  and reasoning while it lists none of that kind;
- metadata is merged key by key into the item that the event builds: the call, not the message, for tool calls;
- whoever continues an item must be who opened it, or say nothing.  That is judged within a run: the next run knows
  the owners that its input or a snapshot names, and of other messages whoever speaks first.

The list is a chain of records, so that an answer is put into its middle, and a word appended to any message, at the
same cost in the ten-thousandth message as in the first.  Records outlive the list: what a snapshot drops was still
said, and stays with its owner, unless the snapshot has other messages of that owner: then it tells its work anew,
under ids of its own, as backends do that build it from their memory.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import ClassVar, Final

from byline import state
from byline.chunks import Wire
from byline.ledger._items import ABSENT, Claim, Item, Message, Place, RejectedError, ToolCall
from byline.schema import shown

__all__ = ["Conversation"]

_TAG: Final = "subagentRunId"
_NOUNS: Final = {
    "text": "text message",
    "reasoning": "reasoning message",
    "span": "reasoning span",
    "call": "tool call",
}
_PREFIXES: Final = {"text": "TEXT_MESSAGE_", "reasoning": "REASONING_MESSAGE_", "call": "TOOL_CALL_"}


class Conversation:
    """Takes wire events without chunks, in order, and keeps the messages they make.

    It expects events of the schema's shape, and keeps parts of them.
    """

    def __init__(self) -> None:
        self._run = 0
        self._claims: dict[str | None, Claim] = {}  # of this run
        self._head = Message({"id": "", "role": ""}, (-1, None), Claim(0, None))
        self._last = self._head
        self._messages: dict[str, Message] = {}
        self._calls: dict[str, ToolCall] = {}
        self._open: dict[tuple[str, str], Item] = {}
        self.of_owner: dict[str | None, list[Message]] = {}
        """Every message that there ever was, by owner, in the order of their beginning."""

    def start_from(self, messages: Iterable[Wire]) -> None:
        """Begin with the messages of a thread that the stream goes on with."""
        for wire in messages:
            self._append(self._read(state.copied(wire), (-1, None)))

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

    def apply(self, event: Wire, place: Place) -> None:
        """Do what `event` does to the messages; events that do nothing to them pass.

        Raises `RejectedError` for one that would put words into another's mouth, or into an item that is not open;
        and `state.PatchError` for an `ACTIVITY_DELTA` that does not apply: the activity keeps its content.
        """
        handler = self._HANDLERS.get(event["type"])
        if handler is not None:
            handler(self, event, place)

    # -- who may ---------------------------------------------------------------------------------------------------

    def _claim(self, owner: str | None) -> Claim:
        claim = self._claims.get(owner)
        if claim is None:
            claim = self._claims[owner] = Claim(self._run, owner)
        return claim

    def _claimed(self, claim: Claim, event: Wire, rule: str, what: str) -> Claim:
        """Return the claim under which `event` goes on with an item; refuse a tag that disagrees with it."""
        if claim.run != self._run:
            return self._claim(event.get(_TAG))
        if self._disagrees(claim, event):
            said = f"{what} belongs to {_who(claim.owner)}; the event is tagged as {_who(event[_TAG])}"
            raise RejectedError(rule, said)
        return claim

    def _disagrees(self, claim: Claim, event: Wire) -> bool:
        return claim.run == self._run and _TAG in event and event[_TAG] != claim.owner

    def check_all_closed(self) -> None:
        """Raise `RejectedError` while something is open, as at the end of a run nothing may be."""
        for kind, id_ in self._open:
            raise RejectedError(f"{kind}-left-open", f"{_NOUNS[kind]} {shown(id_)} is still open")

    def open_item(self, event: Wire) -> Item | None:
        """Return the item that `event`, a START or an END, is about, if it is open."""
        return self._open.get(_key(event))

    def put_back(self, end: Wire, item: Item) -> None:
        """Undo what `end` did to `item`, when the event that brought it about is rejected."""
        item.end = None
        self._open[_key(end)] = item

    def _refuse_second_opening(self, kind: str, id_: str) -> None:
        if (kind, id_) in self._open:
            raise RejectedError(f"{kind}-already-open", f"{_NOUNS[kind]} {shown(id_)} is open already")

    def _continued(self, kind: str, id_: str, event: Wire, rule: str = "") -> Item:
        """Return the open item that `event` continues."""
        item = self._open.get((kind, id_))
        if item is None:
            raise RejectedError(f"{kind}-not-open", f"{_NOUNS[kind]} {shown(id_)} is not open")
        if _TAG in event and event[_TAG] != item.claim.owner:  # what is open was opened in this run
            self._claimed(item.claim, event, rule or f"{kind}-owner", f"{_NOUNS[kind]} {shown(id_)}")
        if "metadata" in event:
            item.merge_metadata(event["metadata"])
        return item

    def _end_items(self, place: Place) -> None:
        for item in self._open.values():
            item.close(place)
        self._open.clear()

    # -- text and reasoning ---------------------------------------------------------------------------------------

    def _start(self, kind: str, role: str, event: Wire, place: Place) -> None:
        id_ = event["messageId"]
        self._refuse_second_opening(kind, id_)
        known = self._messages.get(id_)
        if known is None:
            message = self._append(self._mint(event, role, place))
        elif known.role == "activity" or (_kind(known) != kind and self._disagrees(known.claim, event)):
            message = self._aside(self._mint(event, role, place))
        else:
            claim = self._claimed(known.claim, event, f"{kind}-owner", f"message {shown(id_)}")
            message = known if known.listed else self._append(self._mint(event, role, place))
            message.claim = claim
        message.end = None
        self._open[kind, id_] = message
        if "metadata" in event:
            message.merge_metadata(event["metadata"])

    def _mint(self, event: Wire, role: str, place: Place) -> Message:
        fields = {"id": event["messageId"], "role": role, "content": ""}
        fields.update({member: event[member] for member in ("name", _TAG) if member in event})
        return Message(fields, place, self._claim(event.get(_TAG)))

    def _aside(self, message: Message) -> Message:
        """Keep a message that has no place in the list: it was said, but its id names something else already."""
        message.listed = False
        self.of_owner.setdefault(message.owner, []).append(message)
        return message

    def _text_start(self, event: Wire, place: Place) -> None:
        self._start("text", event.get("role", "assistant"), event, place)

    def _text_content(self, event: Wire, _place: Place) -> None:
        self._continued("text", event["messageId"], event).append(event["delta"])

    def _text_end(self, event: Wire, place: Place) -> None:
        self._continued("text", event["messageId"], event).close(place)
        del self._open["text", event["messageId"]]

    def _reasoning_start(self, event: Wire, place: Place) -> None:
        self._start("reasoning", "reasoning", event, place)

    def _reasoning_content(self, event: Wire, _place: Place) -> None:
        self._continued("reasoning", event["messageId"], event).append(event["delta"])

    def _reasoning_end(self, event: Wire, place: Place) -> None:
        self._continued("reasoning", event["messageId"], event).close(place)
        del self._open["reasoning", event["messageId"]]

    def _span_start(self, event: Wire, place: Place) -> None:
        self._refuse_second_opening("span", event["messageId"])
        self._open["span", event["messageId"]] = Item(place, self._claim(event.get(_TAG)))

    def _span_end(self, event: Wire, _place: Place) -> None:
        self._continued("span", event["messageId"], event, "reasoning-owner")
        del self._open["span", event["messageId"]]

    def _encrypted(self, event: Wire, _place: Place) -> None:
        id_ = event["entityId"]
        if event["subtype"] == "tool-call":
            if (call := self._calls.get(id_)) is not None:
                self._claimed(call.claim, event, "call-owner", f"tool call {shown(id_)}")
                call.extra["encryptedValue"] = event["encryptedValue"]
        elif (message := self._messages.get(id_)) is not None and message.role != "activity":
            self._claimed(message.claim, event, "reasoning-owner", f"message {shown(id_)}")
            message.fields["encryptedValue"] = event["encryptedValue"]

    # -- tool calls -----------------------------------------------------------------------------------------------

    def _call_start(self, event: Wire, place: Place) -> None:
        id_, name = event["toolCallId"], event["toolCallName"]
        known, holder = self._calls.get(id_), self._messages.get(event.get("parentMessageId", id_))
        if holder is not None and ("parentMessageId" in event or known is None):
            self._claimed(holder.claim, event, "call-message-owner", f"message {shown(holder.id)}")
        self._refuse_second_opening("call", id_)
        claim = None if known is None else self._reclaimed(known, holder, event)
        call = self._listed_call(id_) or self._hold_call(id_, name, self._message_for(event, place), place)
        call.claim = claim or call.claim
        call.name = name
        call.end = None
        self._open["call", id_] = call
        if "metadata" in event:
            call.merge_metadata(event["metadata"])

    def _reclaimed(self, call: ToolCall, holder: Message | None, event: Wire) -> Claim:
        """Return the claim under which a call is opened again: by the tag, or else by the message it is said to be in."""
        what = f"tool call {shown(call.id)}"
        if holder is not None and "parentMessageId" in event and holder.claim.run == self._run:
            return self._claimed(call.claim, {_TAG: holder.claim.owner, **event}, "call-owner", what)
        return self._claimed(call.claim, event, "call-owner", what)

    def _message_for(self, event: Wire, place: Place) -> Message:
        """Return the assistant message that a new call goes into, which may have to be made."""
        id_ = event.get("parentMessageId", event["toolCallId"])
        named = self._listed(id_)
        if named is not None and named.role == "assistant":
            if named.claim.run != self._run:  # a call without a tag "inherits the attribution" of its message
                named.claim = self._claim(event.get(_TAG, named.owner))
            return named
        fields = {"id": id_ if named is None else event["toolCallId"], "role": "assistant"}
        if _TAG in event:
            fields[_TAG] = event[_TAG]
        message = self._append(Message(fields, place, self._claim(event.get(_TAG))))
        message.end = place  # nobody opened it, so nobody has to end it
        return message

    def _call_arguments(self, event: Wire, _place: Place) -> None:
        self._continued("call", event["toolCallId"], event).append(event["delta"])

    def _call_end(self, event: Wire, place: Place) -> None:
        self._continued("call", event["toolCallId"], event).close(place)
        del self._open["call", event["toolCallId"]]

    def _call_result(self, event: Wire, place: Place) -> None:
        fields = {"id": event["messageId"], "role": "tool"}
        members = ("toolCallId", "content", "metadata", _TAG)
        fields.update({member: event[member] for member in members if member in event})
        answer = Message(fields, place, self._claim(event.get(_TAG)))
        answer.end = place
        call = self._listed_call(event["toolCallId"])
        if call is None:
            self._append(answer)
            return
        before = call.message.last_answer or call.message
        while before.next is not None and before.next.role == "tool":
            before = before.next
        call.message.last_answer = self._insert(before, answer)

    # -- activities -----------------------------------------------------------------------------------------------

    def _activity_snapshot(self, event: Wire, place: Place) -> None:
        minted = {"id": event["messageId"], "role": "activity"}
        minted.update({m: event[m] for m in ("activityType", "content", _TAG) if m in event})
        message = self._listed(event["messageId"])
        if message is None:
            message = self._append(self._read(minted, place))
        elif event.get("replace", True):
            if message.role == "activity" and "metadata" in message.fields:
                minted["metadata"] = message.fields["metadata"]
            self._rewrite(message, minted, place)
        if "metadata" in event:
            message.merge_metadata(event["metadata"])

    def _activity_delta(self, event: Wire, place: Place) -> None:
        message = self._listed(event["messageId"])
        if message is None or message.role != "activity":
            return
        self._claimed(message.claim, event, "activity-owner", f"activity {shown(message.id)}")
        if "metadata" in event:
            message.merge_metadata(
                event["metadata"]
            )  # as at the official client, whatever becomes of the patch
        content = state.apply(message.content, event["patch"])
        if not isinstance(content, dict):
            raise RejectedError(
                "activity-not-object", f"activity {shown(message.id)} would no longer be an object"
            )
        message.content = content
        message.fields["activityType"] = event["activityType"]
        message.end = place

    # -- whole histories ------------------------------------------------------------------------------------------

    def _run_started(self, event: Wire, place: Place) -> None:
        self._end_items(place)
        self._run += 1
        self._claims = {}
        for wire in event.get("input", {}).get("messages", ()):
            known = self._listed(wire["id"])
            if known is None:
                self._append(self._read(wire, place, beside=True))
            else:
                known.claim = self._claim(wire.get(_TAG))

    def _run_over(self, _event: Wire, place: Place) -> None:
        self._end_items(place)

    def _snapshot(self, event: Wire, place: Place) -> None:
        _check_calls(event["messages"])
        snapshot = {wire["id"]: wire for wire in event["messages"]}
        kept_roles = {"activity", "reasoning"} - {wire["role"] for wire in event["messages"]}
        owners = {wire.get(_TAG) for wire in event["messages"]}
        before = list(self)
        self._head.next, self._last = None, self._head
        for message in before:
            message.next = message.last_answer = None
            message.listed = message.id in snapshot or message.role in kept_roles
        for message in before:
            if message.listed:
                self._link(self._last, message)
                if (wire := snapshot.pop(message.id, None)) is not None:
                    self._rewrite(message, wire, place)
        for owner in owners & self.of_owner.keys():  # whose work the snapshot knows and tells anew
            self.of_owner[owner] = [message for message in self.of_owner[owner] if message.listed]
        for wire in snapshot.values():
            self._append(self._read(wire, place))

    def _read(self, wire: Wire, place: Place, *, beside: bool = False) -> Message:
        """Return the message that `wire` tells; `beside` those there are, whose calls stay as they are."""
        message = Message({"id": wire["id"], "role": wire["role"]}, place, self._claim(wire.get(_TAG)))
        self._fill(message, wire, place, beside=beside)
        return message

    def _rewrite(self, message: Message, wire: Wire, place: Place) -> None:
        owner = message.owner
        self._fill(message, wire, place)
        if message.owner != owner:
            self.of_owner[owner].remove(message)
            self.of_owner.setdefault(message.owner, []).append(message)

    def _fill(self, message: Message, wire: Wire, place: Place, *, beside: bool = False) -> None:
        """Make `message` what `wire` says, and nothing that it does not say."""
        message.fields = {key: value for key, value in wire.items() if key not in {"content", "toolCalls"}}
        message.content = wire.get("content", ABSENT)
        message.claim = self._claim(message.owner)
        message.end = place
        message.let_go()
        for told in wire.get("toolCalls", ()):
            id_, name = told["id"], told["function"]["name"]
            if beside and self._listed_call(id_) is not None:
                call = ToolCall(id_, name, message, place)  # of two under one id the first is found
                message.hold(call)
            else:
                call = self._hold_call(id_, name, message, place)
            call.arguments = told["function"]["arguments"]
            call.extra = {key: told[key] for key in ("metadata", "encryptedValue") if key in told}
            call.end = call.end or place

    # -- the chain ------------------------------------------------------------------------------------------------

    def _listed(self, id_: str) -> Message | None:
        message = self._messages.get(id_)
        return message if message is not None and message.listed else None

    def _listed_call(self, id_: str) -> ToolCall | None:
        call = self._calls.get(id_)
        return call if call is not None and call.message.listed else None

    def _append(self, message: Message) -> Message:
        return self._insert(self._last, message)

    def _insert(self, before: Message, message: Message) -> Message:
        self._link(before, message)
        if (
            self._listed(message.id) is None
        ):  # of two under one id the first is found, as at the official client
            self._messages[message.id] = message
        self.of_owner.setdefault(message.owner, []).append(message)
        if message.role == "tool" and (call := self._listed_call(message.fields["toolCallId"])) is not None:
            call.answer = call.answer or message
        return message

    def _link(self, before: Message, message: Message) -> None:
        message.next = before.next
        before.next = message
        if before is self._last:
            self._last = message

    def _hold_call(self, id_: str, name: str, message: Message, place: Place) -> ToolCall:
        """Put the call into `message`: the one there is, unless it went with a message that was dropped."""
        call = self._listed_call(id_)
        if call is None:
            call = self._calls[id_] = ToolCall(id_, name, message, place)
        call.name = name
        call.message = message
        call.claim = message.claim
        message.hold(call)
        return call

    _HANDLERS: ClassVar[Mapping[str, Callable[["Conversation", Wire, Place], None]]] = {
        "RUN_STARTED": _run_started,
        "RUN_FINISHED": _run_over,
        "RUN_ERROR": _run_over,
        "TEXT_MESSAGE_START": _text_start,
        "TEXT_MESSAGE_CONTENT": _text_content,
        "TEXT_MESSAGE_END": _text_end,
        "REASONING_MESSAGE_START": _reasoning_start,
        "REASONING_MESSAGE_CONTENT": _reasoning_content,
        "REASONING_MESSAGE_END": _reasoning_end,
        "REASONING_START": _span_start,
        "REASONING_END": _span_end,
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


def _check_calls(messages: Iterable[Wire]) -> None:
    """Raise `RejectedError` when one call is in the messages of two owners."""
    owners: dict[str, str | None] = {}
    for wire in messages:
        for call in wire.get("toolCalls", ()):
            owner = owners.setdefault(call["id"], wire.get(_TAG))
            if owner != wire.get(_TAG):
                said = f"tool call {shown(call['id'])} is in messages of {_who(owner)} and of {_who(wire.get(_TAG))}"
                raise RejectedError("call-message-owner", said)


def _key(event: Wire) -> tuple[str, str]:
    kind = next(kind for kind, prefix in _PREFIXES.items() if event["type"].startswith(prefix))
    return kind, event["toolCallId" if kind == "call" else "messageId"]


def _kind(message: Message) -> str:
    return message.role if message.role in {"reasoning", "tool", "activity"} else "text"


def _who(owner: str | None) -> str:
    return "the parent agent" if owner is None else f"subagent {shown(owner)}"
