"""The chunked form: one lane per owner, and in it at most one item that is being assembled.

A chunk is judged as the events it stands for: what opens an item goes through the same `start` as TEXT_MESSAGE_START
and its like, and what closes a lane closes the item.  So every rule of the explicit form holds here too; this
module only decides which item a chunk belongs to.
"""

from collections.abc import Mapping
from typing import Any, Final

from byline.schema import WireEvent, shown
from byline.validator._book import TAG, Book, key_of, named
from byline.validator._items import Lane, Streamed

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


class Lanes:
    """The lanes of the run, by owner."""

    __slots__ = ("book", "families", "of_kind", "open")

    def __init__(self, book: Book, families: Mapping[str, Streamed]) -> None:
        self.book = book
        self.families = families
        self.open: dict[str | None, Lane] = {}
        self.of_kind: dict[str, dict[str | None, Lane]] = {prefix: {} for prefix in families}

    def chunk(self, family: Streamed, event: WireEvent) -> None:
        """Judge a `*_CHUNK` event of a family."""
        id_: Any = event.get(family.id)  # None names no item
        lane = family.chunked.get(id_)
        if lane is None:
            lane = self._find(family, event)
            if lane is None:
                return
        elif TAG in event and event[TAG] != lane.owner:
            family.carry_on(event)  # says who disagrees
        for member in lane.said:
            if member in event:
                self._compare(lane, member, event)

    def _find(self, family: Streamed, event: WireEvent) -> Lane | None:
        """Return the lane of a chunk that does not plainly name its item; `None` when the chunk opens one."""
        if family.id not in event:
            return self._lane_without_id(family, event)
        key = key_of(event[family.id])
        lane = family.chunked.get(key)
        if lane is None:
            self._opens(family, event, explicit=family.open.get(key))
        elif TAG in event:
            family.carry_on(event)
        return lane

    def _lane_without_id(self, family: Streamed, event: WireEvent) -> Lane | None:
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
            lane = Lane(owner.tag, family.open[key][0], family, key, book.index, said)
            self.open[owner.tag] = self.of_kind[family.prefix][owner.tag] = family.chunked[key] = lane

    def _compare(self, lane: Lane, member: str, event: WireEvent) -> None:
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
            lane.family.close(lane.key)
            del lane.family.chunked[lane.key]

    def before(self, event: WireEvent) -> None:
        """Close what `event`, which is no chunk, brings to its end.

        The tag is taken as it stands: an untagged continuation of a subagent's item ends what the parent agent has
        in its lane, as at the official client, because a lane knows nothing of items that it did not open.
        """
        if CLOSES[event["type"]] == "every lane":
            for tag in list(self.open):
                self._close(tag)
        else:
            self._no_mixing(event)
            self._close(self.book.owner(event.get(TAG)).tag)

    def _no_mixing(self, event: WireEvent) -> None:
        """Report an explicit event that continues an item which chunks assemble, and close that."""
        type_ = event["type"]
        if not type_.endswith(_CONTINUES):
            return
        for family in self.families.values():
            if type_.startswith(_TYPES[family.prefix]):
                lane = family.chunked.get(key_of(event[family.id]))
                if lane is not None:
                    what = f"{family.noun} {shown(lane.key)}, which chunks assemble since event {lane.index}"
                    about, pointer = (family.prefix, lane.key), f"/{family.id}"
                    self.book.report(
                        "chunk-mixed", f"{type_} names {what}", about, pointer=pointer, related=lane.index
                    )
                    self._close(lane.tag)


_TYPES: Final = {"text": "TEXT_MESSAGE_", "call": "TOOL_CALL_", "reasoning": "REASONING_MESSAGE_"}
