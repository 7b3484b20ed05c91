"""What evolves: the run's state, the content of activities, and the conversation's own snapshot.

State is the run's, whoever sends it; nothing here looks at the tag of a state event.  A document that is not known
(`UNKNOWN`: the baseline was not in the stream, a patch failed, an event was lost) is not judged until a snapshot.
"""

import re
from typing import Any, Final

from byline.schema import WireEvent, shown
from byline.state import PatchError, apply
from byline.validator._book import (
    ACTIVITY,
    CALL,
    NOUNS,
    REASONING,
    RESULT,
    TAG,
    TEXT,
    UNKNOWN,
    Book,
    key_of,
    named,
    packed,
    unpacked,
)
from byline.validator._cards import Cards
from byline.validator._items import Streamed

__all__ = ["Documents"]

_PREFIXED: Final = re.compile(r"[^.:/]+[.:/].")
_KIND_OF_ROLE: Final = {"activity": ACTIVITY, "reasoning": REASONING, "tool": RESULT}


class Documents:
    """The snapshots and deltas of a stream."""

    __slots__ = ("book", "cards", "families")

    def __init__(self, book: Book, families: dict[str, Streamed], cards: Cards) -> None:
        self.book = book
        self.cards = cards
        self.families = families

    def passes(self, event: WireEvent) -> None:
        """Judge RAW: its tag is provenance, and nothing in it counts."""
        self.book.owner(event.get(TAG))

    def custom(self, event: WireEvent) -> None:
        """Judge CUSTOM: the names without a prefix are the protocol's."""
        book = self.book
        book.owner(event.get(TAG))
        name = event["name"]
        if not _PREFIXED.match(name):
            message = f"CUSTOM is named {shown(name)}, without a prefix"
            book.report("custom-name", message, ("custom", key_of(name)), pointer="/name")

    def state_snapshot(self, event: WireEvent) -> None:
        """Judge STATE_SNAPSHOT: it replaces the run's state, whoever sends it."""
        self.book.owner(event.get(TAG))
        self.book.state = event["snapshot"]

    def state_delta(self, event: WireEvent) -> None:
        """Judge STATE_DELTA: it applies to the run's state."""
        book = self.book
        book.owner(event.get(TAG))
        if book.state is not UNKNOWN:
            book.state = self._patched("state-patch", book.state, event, "delta", None)

    def _patched(self, rule: str, document: Any, event: WireEvent, member: str, about: object) -> Any:
        try:
            return apply(document, event[member])
        except PatchError as refused:
            # The schema has seen to the shape, so what refuses is a member of an operation.
            pointer = f"/{member}/{refused.op_index}/{refused.member}"
            self.book.report(rule, f"the patch does not apply: {refused}", about, pointer=pointer)
            return UNKNOWN

    # --- activities ---------------------------------------------------------------------------------------------

    def activity_snapshot(self, event: WireEvent) -> None:
        """Judge ACTIVITY_SNAPSHOT: it creates an activity, or replaces it with its owner unless told not to."""
        book, key = self.book, key_of(event["messageId"])
        owner = book.owner(event.get(TAG))
        known = book.messages.get(key)
        if known is not None:
            index, was, kind = unpacked(known)
            if kind != ACTIVITY:
                message = f"ACTIVITY_SNAPSHOT makes message {shown(key)}, an id that names {NOUNS[kind]} since event {index}"
                book.report(
                    "message-id-reused", message, ("activity", key), pointer="/messageId", related=index
                )
                return
            if event.get("replace") is False:
                if TAG in event and was != owner.code and index >= book.run_index:
                    message = f"activity {shown(key)} stays {named(book.tags[was])}'s, but the snapshot is tagged {named(owner.tag)}"
                    book.report(
                        "activity-kept-owner", message, ("activity", key), pointer="/" + TAG, related=index
                    )
                return
        book.messages[key] = packed(book.index, owner.code, ACTIVITY)
        book.activities[key] = event["content"]

    def activity_delta(self, event: WireEvent) -> None:
        """Judge ACTIVITY_DELTA: it amends an activity that a snapshot has made, as its owner or untagged."""
        book, key = self.book, key_of(event["messageId"])
        owner = book.owner(event.get(TAG))
        known, about = book.messages.get(key), ("activity", key)
        index, was, kind = unpacked(known or 0)
        if kind != ACTIVITY:
            if known is not None or book.gap is None:
                what = "was never made" if known is None else f"is {NOUNS[kind]}"
                message = f"ACTIVITY_DELTA amends activity {shown(key)}, which {what}"
                book.report(
                    "activity-no-snapshot",
                    message,
                    about,
                    pointer="/messageId",
                    related=None if known is None else index,
                )
            return
        if TAG in event and was != owner.code:
            rule = "activity-owner" if index >= book.run_index else "owner-changed-across-runs"
            message = f"ACTIVITY_DELTA of activity {shown(key)} is tagged {named(owner.tag)}, but event {index} gave it to {named(book.tags[was])}"
            book.report(rule, message, about, pointer="/" + TAG, related=index)
        content = book.activities.get(key, UNKNOWN)
        if content is not UNKNOWN:
            content = self._patched("activity-patch", content, event, "patch", about)
            if content is not UNKNOWN and not isinstance(content, dict):
                message = f"the patch makes the content of activity {shown(key)} {shown(content)}"
                book.report("activity-not-object", message, about, pointer="/patch", related=index)
                content = UNKNOWN
            book.activities[key] = content

    # --- the conversation ---------------------------------------------------------------------------------------

    def messages_snapshot(self, event: WireEvent) -> None:
        """Judge MESSAGES_SNAPSHOT: it says which messages there are and whose each of them is."""
        book = self.book
        messages = event["messages"]
        if any(message["role"] == "activity" for message in messages):
            book.activities.clear()
        seen: dict[str, int] = {}
        for position, message in enumerate(messages):
            key = key_of(message["id"])
            if key in seen:
                said = f"messages {seen[key]} and {position} of the snapshot have the same id {shown(key)}"
                book.report("message-id-reused", said, ("snapshot", key), pointer=f"/messages/{position}/id")
            seen[key] = position
            self.restate(message)
        self._own_calls(messages)

    def restate(self, message: dict[str, Any]) -> None:
        """Take a message of a snapshot or of an echoed input as its owner's, together with its calls."""
        book, key = self.book, key_of(message["id"])
        self.cards.restated(message)
        tag = message.get(TAG)
        tag = None if tag is None else key_of(tag)
        code, role = book.code(tag), message["role"]
        kind = _KIND_OF_ROLE.get(role, TEXT)
        book.messages[key] = packed(book.index, code, kind)
        book.labels.pop(key, None)
        if kind == TEXT and (role, message.get("name")) != ("assistant", None):
            book.labels[key] = (role, message.get("name"))
        if kind == ACTIVITY:
            book.activities[key] = message["content"]
        for family in (self.families["text"], self.families["reasoning"]):
            if key in family.open:
                family.open[key] = (tag, family.open[key][1])
        for call in message.get("toolCalls", ()):
            call_key = key_of(call["id"])
            book.calls[call_key] = packed(book.index, code, CALL)
            book.call_labels[call_key] = (book.share(call["function"]["name"]), key)
            if call_key in self.families["call"].open:
                self.families["call"].open[call_key] = (tag, self.families["call"].open[call_key][1])
        if role == "tool":
            book.unanswered.pop(key_of(message["toolCallId"]), None)

    def _own_calls(self, messages: list[dict[str, Any]]) -> None:
        """Report a call that a snapshot shows in the messages of two owners."""
        book = self.book
        owners: dict[str, tuple[str | None, int]] = {}
        for position, message in enumerate(messages):
            for number, call in enumerate(message.get("toolCalls", ())):
                tag, first = owners.setdefault(call["id"], (message.get(TAG), position))
                if tag != message.get(TAG):
                    said = f"tool call {shown(call['id'])} is in message {first} of {named(tag)} and in message {position} of {named(message.get(TAG))}"
                    pointer = f"/messages/{position}/toolCalls/{number}/id"
                    book.report("call-message-owner", said, ("call", key_of(call["id"])), pointer=pointer)
