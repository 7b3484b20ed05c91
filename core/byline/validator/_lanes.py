"""The chunked form: one lane per owner, and in it at most one item that is being assembled.

A chunk is judged as the events it stands for: what opens an item goes through the same `start` as TEXT_MESSAGE_START
and its like, and what closes a lane closes the item.  So every rule of the explicit form holds here too; this
module only decides which item a chunk belongs to.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from byline.schema import WireEvent, shown
from byline.validator._book import TAG, Book, key_of, named
from byline.validator._items import Streamed

__all__ = ["CLOSES", "Lanes"]

CLOSES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "MESSAGES_SNAPSHOT"), "every lane"),
    **dict.fromkeys(
        (
            "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END",
            "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT",
            "REASONING_START", "REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_END", "REASONING_END",
            "STEP_STARTED", "STEP_FINISHED", "STATE_SNAPSHOT", "STATE_DELTA", "CUSTOM",
            "SUBAGENT_FINISHED", "SUBAGENT_ERROR",
        ),
        "its owner's lane",
    ),
}  # fmt: skip
"""What ends a chunk stream.  The other types (RAW, activities, encrypted values, SUBAGENT_STARTED) stand aside."""

_CONTINUES: Final = ("_CONTENT", "_ARGS", "_END")

_MEMBERS: Final[Mapping[str, tuple[str, ...]]] = {
    "text": ("role", "name"),
    "call": ("toolCallName", "parentMessageId"),
    "reasoning": (),
}
_ABSENT: Final = {"role": "assistant"}


@dataclass(slots=True)
class _Lane:
    tag: str | None
    family: Streamed
    key: str
    index: int
    said: dict[str, str | None]


class Lanes:
    """The lanes of the run, by owner."""

    __slots__ = ("book", "families", "of_kind", "open")

    def __init__(self, book: Book, families: Mapping[str, Streamed]) -> None:
        self.book = book
        self.families = families
        self.open: dict[str | None, _Lane] = {}
        self.of_kind: dict[str, dict[str | None, _Lane]] = {prefix: {} for prefix in families}

    def chunk(self, family: Streamed, event: WireEvent) -> None:
        """Judge a `*_CHUNK` event of a family."""
        id_: Any = event.get(family.id)  # None names no item
        item = family.open.get(id_)
        lane = None if item is None else self.open.get(item[0])
        if lane is None or lane.key != id_ or lane.family is not family:
            lane = self._find(family, event)
            if lane is None:
                return
        elif TAG in event and event[TAG] != lane.tag:
            family.carry_on(event)  # says who disagrees
        for member in lane.said:
            if member in event:
                self._compare(lane, member, event)

    def _find(self, family: Streamed, event: WireEvent) -> _Lane | None:
        """Return the lane of a chunk that does not plainly name its item; `None` when the chunk opens one."""
        if family.id not in event:
            return self._lane_without_id(family, event)
        key = key_of(event[family.id])
        item = family.open.get(key)
        lane = None if item is None else self.open.get(item[0])
        if lane is None or lane.family is not family or lane.key != key:
            self._opens(family, event, explicit=item)
            return None
        if TAG in event:
            family.carry_on(event)
        return lane

    def _lane_without_id(self, family: Streamed, event: WireEvent) -> _Lane | None:
        """Return the lane that a chunk without an id continues: its tag's, else the parent's, else the only one."""
        tag = self.book.owner(event.get(TAG)).tag
        lane = self.open.get(tag)
        if lane is not None and lane.family is family:
            return lane
        if TAG not in event:
            candidates = self.of_kind[family.prefix]
            first = next(iter(candidates.values()), None)
            if len(candidates) == 1:
                return first
            if first is not None:
                what = f"{len(candidates)} subagents have a {family.noun} open"
                message = f"{event['type']} has neither {family.id} nor tag, and {what}"
                self.book.report(
                    "chunk-ambiguous", message, ("lane", family.prefix, tag), related=first.index
                )
                return None
        self._opens(family, event, explicit=None)
        return None

    def _opens(self, family: Streamed, event: WireEvent, explicit: tuple[str | None, int] | None) -> None:
        book = self.book
        needed = (family.id, "toolCallName") if family.prefix == "call" else (family.id,)
        owner = book.owner(event.get(TAG))
        missing = [member for member in needed if member not in event]
        if missing:
            if book.gap is None:
                message = f"{event['type']} continues nothing that {named(owner.tag)} has open, and has no {' and no '.join(missing)}"
                book.report("chunk-first", message, ("lane", family.prefix, owner.tag))
            return
        book.muted.discard(("lane", family.prefix, owner.tag))
        key = key_of(event[family.id])
        if explicit is not None:
            message = f"{event['type']} names {family.noun} {shown(key)}, which event {explicit[1]} opened in the explicit form"
            book.report(
                "chunk-mixed", message, (family.prefix, key), pointer=f"/{family.id}", related=explicit[1]
            )
            return
        self._close(owner.tag)
        family.start(event)
        if key in family.open:
            said = {member: event.get(member, _ABSENT.get(member)) for member in _MEMBERS[family.prefix]}
            tag = family.open[key][0]
            self._close(tag)
            family.chunked.add(key)
            self.open[tag] = self.of_kind[family.prefix][tag] = _Lane(tag, family, key, book.index, said)

    def _compare(self, lane: _Lane, member: str, event: WireEvent) -> None:
        old, new = lane.said[member], event[member]
        if new != old:
            what = "no " + member if old is None else f"{member} {shown(old)}"
            message = f"{member} is {shown(new)}, but the first chunk, event {lane.index}, opened {lane.family.noun} {shown(lane.key)} with {what}"
            self.book.report(
                "chunk-repeat",
                message,
                (lane.family.prefix, lane.key),
                pointer=f"/{member}",
                related=lane.index,
            )

    def _close(self, tag: str | None) -> None:
        lane = self.open.pop(tag, None)
        if lane is not None:
            del self.of_kind[lane.family.prefix][tag]
            lane.family.open.pop(lane.key, None)
            lane.family.chunked.discard(lane.key)

    def before(self, event: WireEvent) -> None:
        """Close what `event`, which is no chunk, brings to its end."""
        if CLOSES[event["type"]] == "every lane":
            for tag in list(self.open):
                self._close(tag)
        else:
            self._close(self._lane_of(event))

    def _lane_of(self, event: WireEvent) -> str | None:
        """Return whose lane an explicit event is in; say so when it continues an item that chunks assemble."""
        for family in self.families.values():
            if not event["type"].endswith(_CONTINUES) or not event["type"].startswith(_TYPES[family.prefix]):
                continue
            key = key_of(event[family.id])
            item = family.open.get(key)
            lane = None if item is None else self.open.get(item[0])
            tag = item[0] if item is not None and TAG not in event else self.book.owner(event.get(TAG)).tag
            if lane is not None and lane.family is family and lane.key == key:
                message = f"{event['type']} names {family.noun} {shown(key)}, which chunks assemble since event {lane.index}"
                self.book.report(
                    "chunk-mixed", message, (family.prefix, key), pointer=f"/{family.id}", related=lane.index
                )
            return tag
        tag = event.get(TAG)
        return None if tag is None else key_of(tag)


_TYPES: Final = {"text": "TEXT_MESSAGE_", "call": "TOOL_CALL_", "reasoning": "REASONING_MESSAGE_"}
