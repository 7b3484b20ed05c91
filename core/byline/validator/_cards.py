"""Artifacts that the user is shown again: the parent agent's own lane, as `byline.artifacts` reads it.

The first showing is the result of a call; what may repeat it is another result, or what the parent says.  A subagent's
words are another lane.  Of an artifact a digest is kept, so a repetition is found however far back the first one lies;
what the parent says is listened to once there is something to repeat, so that other streams pay nothing.  (The ledger, which
has all messages anyway, also tells what the parent alone says twice.)

The tags are the common ones, and the look-up's name the usual one: a stream does not say what the app calls them.  A
message of an echoed input or a snapshot was shown before; it can be repeated, and repeats nothing.
"""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

from byline.artifacts import LOOKUP, REASONS, TAGS, Showing, Tags, reason_of, showings
from byline.schema import WireEvent, shown
from byline.validator._book import TAG, TEXT, Book, key_of, unpacked
from byline.validator._items import Messages

__all__ = ["Cards", "Spoken"]

_TAGS: Final = Tags(TAGS)

_MOST: Final = 16_000_000
"""Characters of open messages that are kept; a message that would be more is not followed."""


class Cards:
    """What the parent agent's lane has shown."""

    __slots__ = ("book", "first", "open", "size")

    def __init__(self, book: Book) -> None:
        self.book = book
        self.first: dict[
            bytes, tuple[int, str, int]
        ] = {}  # by digest of the body: event, message, place in it
        self.open: dict[str, list[str]] = {}  # what the parent is saying, by message
        self.size = 0

    def says(self, key: str, delta: str) -> None:
        """Take a piece of a message that is open."""
        pieces = self.open.get(key)
        if pieces is None:
            return
        pieces.append(delta)
        self.size += len(delta)
        if self.size > _MOST:
            self.ends(key)

    def ends(self, key: str, *, judge: bool = False) -> None:
        """Let go of an open message; with `judge` it is complete."""
        pieces = self.open.pop(key, None)
        if pieces:
            text = "".join(pieces)
            self.size -= len(text)
            known = self.book.messages.get(key)
            if judge and known is not None:
                wire = {"id": key, "role": "assistant", "content": text}
                self._shows(wire, unpacked(known)[0], None)

    def result(self, event: WireEvent) -> None:
        """Judge the result of a call of the parent's."""
        if TAG in event:
            return
        tool, _ = self.book.call_labels.get(key_of(event["toolCallId"]), (None, None))
        wire = {"role": "tool", "content": event["content"], "toolCallId": event["toolCallId"]}
        self._shows({**wire, "id": key_of(event["messageId"])}, self.book.index, tool)

    def restated(self, message: Mapping[str, Any]) -> None:
        """Take a message that was there before."""
        if TAG not in message and message["role"] == "tool":
            self._shows({**message, "id": key_of(message["id"])}, self.book.index, None, again=False)

    def _shows(self, wire: Mapping[str, Any], event: int, tool: str | None, *, again: bool = True) -> None:
        for one in showings([wire], tags=_TAGS):
            if not one.closed:
                continue
            digest = blake2b(one.body.encode("utf-8", "surrogatepass"), digest_size=16).digest()
            here = (event, one.message, one.ordinal)
            before = self.first.get(digest) if one.place == "words" else self.first.setdefault(digest, here)
            if again and before is not None and before[1:] != here[1:]:
                self._repeats(one._replace(tool=tool), event, before[0], before[1])

    def _repeats(self, one: Showing, event: int, index: int, message: str) -> None:
        name = "without a title" if one.title is None else shown(one.title)
        where = (
            f"the artifact {name} of message {shown(message)} is shown again in message {shown(one.message)}"
        )
        text = f"{where}: {REASONS[reason_of(one, LOOKUP)]}"
        about = ("card", one.message, one.ordinal)
        pointer = "" if one.place == "words" else "/content"
        self.book.report("artifact-shown-twice", text, about, event=event, pointer=pointer, related=index)


class Spoken(Messages):
    """Text messages, of which the parent agent's own are listened to."""

    __slots__ = ("cards", "heard")

    def __init__(self, book: Book, cards: Cards) -> None:
        super().__init__(book, TEXT, "text", "text message")
        self.cards = cards
        self.heard = cards.open

    def start(self, event: WireEvent) -> None:
        """Judge TEXT_MESSAGE_START."""
        super().start(event)
        if self.cards.first:
            key = key_of(event["messageId"])
            item = self.open.get(key)
            if item is not None and item[0] is None and event.get("role", "assistant") == "assistant":
                self.heard.setdefault(key, [])

    def carry_on(self, event: WireEvent) -> None:
        """Judge TEXT_MESSAGE_CONTENT."""
        item = self.open.get(event["messageId"])
        if item is None or ((tag := event.get(TAG)) is not None and tag != item[0]):
            self._look_closer(event)
        if self.heard:
            self.cards.says(key_of(event["messageId"]), event.get("delta", ""))

    def end(self, event: WireEvent) -> None:
        """Judge TEXT_MESSAGE_END."""
        super().end(event)
        if self.heard:
            self.cards.ends(key_of(event["messageId"]), judge=True)

    def close(self, key: str) -> None:
        """Close a message that chunks have made."""
        super().close(key)
        self.cards.ends(key, judge=True)

    def clear(self) -> None:
        """Forget what is open."""
        super().clear()
        self.heard.clear()
        self.cards.size = 0
