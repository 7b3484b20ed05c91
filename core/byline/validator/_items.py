"""Items that are opened, continued and closed: text and reasoning messages, reasoning spans, tool calls, steps.

The three streamed families share one discipline, `Streamed`; what a family adds is its subclass.  An owner is
whoever opened the item.  A continuation may leave the tag out, and then continues for whoever that is; a step may
not, because its owner is part of its name.
"""

from dataclasses import dataclass

from byline.schema import WireEvent, shown
from byline.validator._book import (
    CALL,
    LONG,
    MINTING_CALL,
    NOUNS,
    REASONING,
    RESULT,
    TAG,
    TEXT,
    Book,
    Invocation,
    Open,
    key_of,
    kind_of,
    named,
    packed,
    unpacked,
)

__all__ = ["Calls", "Lane", "Messages", "Spans", "Steps", "Streamed"]


@dataclass(slots=True)
class Lane:
    """A chunk stream: the tag whose lane it is in, the owner of the item, and what the first chunk said of it."""

    tag: str | None
    owner: str | None
    family: "Streamed"
    key: str
    index: int
    said: dict[str, str | None]


class Streamed:
    """A family of items that open, continue and close by id, each event agreeing about the owner."""

    __slots__ = ("book", "chunked", "id", "noun", "open", "owner_rule", "prefix")

    def __init__(
        self, book: Book, prefix: str, noun: str, id_: str = "messageId", owner_rule: str = ""
    ) -> None:
        self.book = book
        self.prefix = prefix
        self.noun = noun
        self.id = id_
        self.owner_rule = owner_rule or f"{prefix}-owner"
        self.open: dict[str, Open] = {}
        self.chunked: dict[str, Lane] = {}  # of these, the ones that chunks assemble

    def start(self, event: WireEvent) -> None:
        """Judge the event that opens, or reopens, an item."""
        raise NotImplementedError

    def carry_on(self, event: WireEvent) -> None:
        """Judge an event that continues an item."""
        item = self.open.get(event[self.id])
        if item is None or ((tag := event.get(TAG)) is not None and tag != item[0]):
            self._look_closer(event)

    def end(self, event: WireEvent) -> None:
        """Judge the event that closes an item."""
        item = self.open.pop(event[self.id], None)
        if item is None or ((tag := event.get(TAG)) is not None and tag != item[0]):
            if item is not None:
                self.open[event[self.id]] = item
            self._look_closer(event)
            self.open.pop(key_of(event[self.id]), None)

    def _look_closer(self, event: WireEvent) -> None:
        """Judge a continuation that is not plainly good: a long id or tag, or a fault."""
        book, key = self.book, key_of(event[self.id])
        owner = book.owner(event.get(TAG))
        item = self.open.get(key)
        about = (self.prefix, key)
        if item is None:
            if book.gap is None:
                self._not_open(event, key)
        elif TAG in event and owner.tag != item[0]:
            said = f"{event['type']} of {self.noun} {shown(key)} is tagged {named(owner.tag)}"
            message = f"{said}, but event {item[1]} opened it for {named(item[0])}"
            book.report(self.owner_rule, message, about, pointer="/" + TAG, related=item[1])

    def _not_open(self, event: WireEvent, key: str) -> None:
        message = f"{event['type']} names {self.noun} {shown(key)}, which is not open"
        self.book.report(f"{self.prefix}-not-open", message, (self.prefix, key), pointer=f"/{self.id}")

    def _opens(self, key: str, tag: str | None) -> None:
        """Note that an item is open, if that many can be followed."""
        book = self.book
        if len(self.open) >= book.max_open:
            book.too_many()
        else:
            self.open[key] = (tag, book.index)

    def close(self, key: str) -> None:
        """Close an item that chunks have made."""
        self.open.pop(key, None)

    def left_open(self) -> None:
        """Report what the run leaves open, and forget it."""
        self.book.report_left(
            f"{self.prefix}-left-open",
            (
                (
                    (self.prefix, key),
                    f"{self.noun} {shown(key)} of {named(tag)} is still open when the run finishes",
                    index,
                )
                for key, (tag, index) in self.open.items()
            ),
        )
        self.clear()

    def clear(self) -> None:
        """Forget what is open."""
        self.open.clear()


class Messages(Streamed):
    """Text and reasoning messages: their ids, once used, name that message for the whole thread."""

    __slots__ = ("kind",)

    def __init__(self, book: Book, kind: int, prefix: str, noun: str) -> None:
        super().__init__(book, prefix, noun)
        self.kind = kind

    def start(self, event: WireEvent) -> None:
        """Judge the event that opens, or reopens, a message."""
        book = self.book
        key = event["messageId"]
        if len(key) > LONG:
            key = key_of(key)
        owner = book.owner(event.get(TAG))
        tag = owner.tag
        known = book.messages.get(key) or minted(book, key)
        if known is not None:
            tag = self._reopens(event, key, known, owner)
        else:
            book.messages[key] = packed(book.index, owner.code, self.kind)
            if self.kind == TEXT:
                self._label(event, key)
        if book.held:
            _speaks(book, tag, event)
        self._opens(key, tag)

    def _label(self, event: WireEvent, key: str) -> None:
        label = (event.get("role", "assistant"), event.get("name"))
        if label != ("assistant", None):
            self.book.labels[key] = (self.book.share(label[0]), label[1])

    def _reopens(self, event: WireEvent, key: str, known: int, owner: Invocation) -> str | None:
        """Judge a start whose id is known, and return the tag of the owner it opens under."""
        book, about = self.book, (self.prefix, key)
        tag, code = owner.tag, owner.code
        if key in self.open:
            was = self.open[key]
            message = f"{event['type']} opens {self.noun} {shown(key)}, which event {was[1]} opened and nothing closed"
            book.report(f"{self.prefix}-already-open", message, about, pointer="/messageId", related=was[1])
            return was[0]
        index, was_code, kind = unpacked(known)
        fresh = index >= book.run_index
        if kind != self.kind and not (kind == MINTING_CALL and self.kind == TEXT):
            message = (
                f"{event['type']} opens {shown(key)}, an id that names {NOUNS[kind]} since event {index}"
            )
            book.report("message-id-reused", message, about, pointer="/messageId", related=index)
            return tag
        if TAG in event and code != was_code:
            self._other_owner(event, key, book.tags[was_code], index, fresh=fresh)
        elif self.kind == TEXT:
            self._compare_label(event, key, index)
        if fresh and TAG not in event:
            return book.tags[was_code]
        book.messages[key] = packed(book.index, code, self.kind)
        return tag

    def _other_owner(self, event: WireEvent, key: str, was: str | None, index: int, *, fresh: bool) -> None:
        rule = self.owner_rule if fresh else "owner-changed-across-runs"
        message = f"{event['type']} reopens {self.noun} {shown(key)} for {named(event[TAG])}; event {index} gave it to {named(was)}"
        self.book.report(rule, message, (self.prefix, key), pointer="/" + TAG, related=index)

    def _compare_label(self, event: WireEvent, key: str, index: int) -> None:
        book = self.book
        was = book.labels.get(key, ("assistant", None))
        now = (event.get("role", "assistant"), event.get("name"))
        for member, old, new in zip(("role", "name"), was, now, strict=True):
            if old != new:
                message = f"{member} is {shown(new)}, but event {index} opened {self.noun} {shown(key)} with {shown(old)}"
                book.report(
                    "text-reopened-differently",
                    message,
                    (self.prefix, key),
                    pointer=f"/{member}",
                    related=index,
                )


class Spans(Streamed):
    """Reasoning spans: a namespace of their own, and nothing is remembered of a closed one."""

    __slots__ = ()

    def start(self, event: WireEvent) -> None:
        """Judge REASONING_START."""
        key = key_of(event["messageId"])
        tag = self.book.owner(event.get(TAG)).tag
        if key in self.open:
            was = self.open[key][1]
            message = (
                f"REASONING_START opens {self.noun} {shown(key)}, which event {was} opened and nothing closed"
            )
            self.book.report("span-already-open", message, ("span", key), pointer="/messageId", related=was)
        else:
            self._opens(key, tag)


class Calls(Streamed):
    """Tool calls: each inherits the owner of the message that holds it, and mints that message where there is none."""

    __slots__ = ()

    def __init__(self, book: Book) -> None:
        super().__init__(book, "call", "tool call", "toolCallId")

    def start(self, event: WireEvent) -> None:
        """Judge TOOL_CALL_START, also where it reopens a call."""
        book, key = self.book, key_of(event["toolCallId"])
        owner = book.owner(event.get(TAG))
        parent = event.get("parentMessageId")
        holder = None if parent is None else key_of(parent)
        code = self._code_from_message(event, key, holder, owner.code)
        tag = book.tags[code]
        if book.held:
            _speaks(book, tag, event)
        if key in self.open:
            was = self.open[key][1]
            message = (
                f"TOOL_CALL_START opens tool call {shown(key)}, which event {was} opened and nothing closed"
            )
            book.report("call-already-open", message, ("call", key), pointer="/toolCallId", related=was)
            return
        if key in book.calls:
            self._reopens(event, key, code)
        book.calls[key] = packed(book.index, code, MINTING_CALL if holder is None else CALL)
        book.call_labels[key] = (book.share(event["toolCallName"]), holder)
        if key not in book.answered:
            book.unanswered[key] = None
        self._opens(key, tag)

    def _code_from_message(self, event: WireEvent, key: str, holder: str | None, code: int) -> int:
        """Return the code of the owner of a call: its own tag's, or without one that of the message it is in."""
        book = self.book
        message_id = key if holder is None else holder
        known = book.messages.get(message_id)
        if known is None and holder is not None:
            known = minted(book, holder)
        if TAG not in event and key in book.calls and (holder is None or known is None):
            index, was, _ = unpacked(book.calls[key])
            if index >= book.run_index:  # reopened by nobody in particular: it stays whose it is
                return was
        if known is None:
            if holder is not None:
                book.messages[holder] = packed(book.index, code, TEXT)
            return code
        index, was, kind = unpacked(known)
        if TAG not in event and holder is not None:
            return was
        if index < book.run_index or (holder is None and key in book.calls):
            return code  # ownership is not tracked over runs; a reopened call is judged as one
        if was != code:
            where = f"message {shown(message_id)}" if holder is not None else f"{NOUNS[kind]} of the same id"
            message = f"tool call {shown(key)} of {named(book.tags[code])} is in {where}, which event {index} gave to {named(book.tags[was])}"
            pointer = "/parentMessageId" if holder is not None else "/toolCallId"
            book.report("call-message-owner", message, ("call", key), pointer=pointer, related=index)
        return code

    def _reopens(self, event: WireEvent, key: str, code: int) -> None:
        book, about = self.book, ("call", key)
        index, was, _ = unpacked(book.calls[key])
        if code != was:
            rule = "call-owner" if index >= book.run_index else "owner-changed-across-runs"
            message = f"TOOL_CALL_START reopens tool call {shown(key)} for {named(book.tags[code])}; event {index} gave it to {named(book.tags[was])}"
            book.report(rule, message, about, pointer="/" + TAG if TAG in event else "", related=index)
        tool, holder = book.call_labels.get(key, (event["toolCallName"], None))
        parent = event.get("parentMessageId")
        for member, old, new in (
            ("toolCallName", tool, event["toolCallName"]),
            ("parentMessageId", holder, parent and key_of(parent)),
        ):
            if new is not None and old != new:
                message = f"{member} is {shown(new)}, but event {index} opened tool call {shown(key)} with {shown(old)}"
                book.report("call-reopened-differently", message, about, pointer=f"/{member}", related=index)

    def result(self, event: WireEvent) -> None:
        """Judge TOOL_CALL_RESULT: a message of its own, with an owner of its own."""
        book, call, key = self.book, key_of(event["toolCallId"]), key_of(event["messageId"])
        owner = book.owner(event.get(TAG))
        if call in self.open and call not in self.chunked:  # chunks have no end to wait for
            message = f"tool call {shown(call)} is answered before its arguments are complete"
            book.report("result-before-end", message, related=self.open[call][1])
        elif call not in book.calls and book.gap is None:
            message = f"tool call {shown(call)} is answered and was never shown"
            book.report("result-unknown-call", message, pointer="/toolCallId")
        if call in book.answered:
            message = f"tool call {shown(call)} has its result at event {book.answered[call]} already"
            book.report("result-repeated", message, pointer="/toolCallId", related=book.answered[call])
        book.answered[call] = book.index
        book.unanswered.pop(call, None)
        known = book.messages.get(key) or minted(book, key)
        if known is not None:
            index, _, kind = unpacked(known)
            if kind != RESULT:
                message = f"TOOL_CALL_RESULT makes message {shown(key)}, an id that names {NOUNS[kind]} since event {index}"
                book.report(
                    "message-id-reused", message, ("result", key), pointer="/messageId", related=index
                )
                return
        book.messages[key] = packed(book.index, owner.code, RESULT)


class Steps:
    """Steps: per owner, so that the tag of the event that finishes one is part of its name."""

    __slots__ = ("book", "count", "open")

    def __init__(self, book: Book) -> None:
        self.book = book
        self.open: dict[str, dict[str | None, int]] = {}  # by name and owner
        self.count = 0

    def start(self, event: WireEvent) -> None:
        """Judge STEP_STARTED."""
        book = self.book
        tag, name = book.owner(event.get(TAG)).tag, key_of(event["stepName"])
        was = self.open.get(name, {}).get(tag)
        if was is not None:
            message, about = (
                f"step {shown(name)} of {named(tag)} is open since event {was}",
                ("step", tag, name),
            )
            book.report("step-already-open", message, about, pointer="/stepName", related=was)
        elif self.count >= book.max_open:
            book.too_many()
        else:
            self.open.setdefault(name, {})[tag] = book.index
            self.count += 1

    def finish(self, event: WireEvent) -> None:
        """Judge STEP_FINISHED."""
        book = self.book
        tag, name = book.owner(event.get(TAG)).tag, key_of(event["stepName"])
        owners, about = self.open.get(name, {}), ("step", tag, name)
        if owners.pop(tag, None) is not None:
            self.count -= 1
        elif owners:
            other, index = next(iter(owners.items()))
            message = (
                f"step {shown(name)} is finished for {named(tag)}; it is {named(other)} that has it open"
            )
            book.report(
                "step-owner", message, about, pointer="/" + TAG if TAG in event else "", related=index
            )
            book.muted.add(("step", other, name))
        elif book.gap is None:
            message = f"step {shown(name)} of {named(tag)} is not open"
            book.report("step-not-open", message, about, pointer="/stepName")
        if not owners:
            self.open.pop(name, None)

    def left_open(self) -> None:
        """Report what the run leaves open, and forget it."""
        self.book.report_left(
            "step-left-open",
            (
                (
                    ("step", tag, name),
                    f"step {shown(name)} of {named(tag)} is still open when the run finishes",
                    index,
                )
                for name, owners in self.open.items()
                for tag, index in owners.items()
            ),
        )
        self.clear()

    def clear(self) -> None:
        """Forget what is open."""
        self.open.clear()
        self.count = 0


def minted(book: Book, key: str) -> int | None:
    """Return the call that has minted a message under its own id, packed, if there is one."""
    call = book.calls.get(key)
    return call if call is not None and kind_of(call) == MINTING_CALL else None


def encrypted_value(book: Book, event: WireEvent) -> None:
    """Judge REASONING_ENCRYPTED_VALUE: it continues the message or the call that it names."""
    key = key_of(event["entityId"])
    owner = book.owner(event.get(TAG))
    of_call = event["subtype"] == "tool-call"
    known = book.calls.get(key) if of_call else book.messages.get(key) or minted(book, key)
    index, was, kind = unpacked(known or 0)
    if known is None or kind not in (CALL, MINTING_CALL, TEXT, REASONING, RESULT):
        if book.gap is None:
            what = "tool call" if of_call else "message"
            message = f"{what} {shown(key)} is not known, or cannot hold a value"
            book.report("encrypted-value-unknown", message, pointer="/entityId")
    elif TAG in event and was != owner.code and index >= book.run_index:
        rule, prefix = (
            ("call-owner", "call")
            if of_call
            else ("reasoning-owner", "reasoning" if kind == REASONING else "text")
        )
        message = f"the value for {shown(key)} is tagged {named(owner.tag)}, but event {index} gave that to {named(book.tags[was])}"
        book.report(rule, message, (prefix, key), pointer="/" + TAG, related=index)


def _speaks(book: Book, tag: str | None, event: WireEvent) -> None:
    """Hold a caller to a hand-off whose contract says that control has to come back."""
    holder = book.held.get(tag)
    if holder is not None:
        message = f"{event['type']} of {named(tag)} while {named(holder.tag)} has control since event {holder.announced}"
        book.report("contract-control", message, ("subagent", holder.tag), related=holder.announced)
