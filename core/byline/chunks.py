"""`*_CHUNK` events written out as START, CONTENT and END, one lane per owner.

A chunk opens, continues or closes without saying which.  What it means depends on what its owner has open, and on
nothing another owner does: invocations run in parallel, so every owner (each `subagentRunId`, and the parent agent,
which has none) has a lane of its own in which at most one item streams by chunks.

Which lane a chunk belongs to:

1. its id is open in some lane: that lane, and a tag on the chunk must be that lane's owner;
2. another id: the lane of its tag, where it opens a new item;
3. no id but a tag: the lane of that tag;
4. neither: the parent's lane if an item of this kind is open there, else the only lane that has one.  Several:
   ambiguous.

What ends the item in a lane is a chunk that opens another one there and every event in `_ENDS_OWN` with the same
tag; the events in `_ENDS_ALL` end all of them; no other event ends any.  The tag is taken as it stands: an untagged
continuation of a subagent's item counts as the parent's here, as it does at the official client, because a lane
does not know who opened an item that it did not open itself.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

from byline.errors import BylineError
from byline.events import EVENT_CLASSES, BaseEvent
from byline.state import Json

__all__ = ["CHUNK_TYPES", "ChunkError", "Expander", "Plan", "Wire", "expand"]

Wire: TypeAlias = Mapping[str, Json]
"""An event, or a part of one, as it is on the wire: the wire's own names, absent where there is no value."""

AnyEvent = TypeVar("AnyEvent", BaseEvent, Wire)


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of item that can be sent in chunks."""

    noun: str
    chunk: str
    start: str
    content: str
    end: str
    id: str
    """The member that names the item."""
    needed: tuple[str, ...]
    """What the chunk that opens an item must have; `id` among it."""
    fixed: Mapping[str, str | None]
    """What later chunks may repeat and may not change, with what it means to leave it out at the opening."""
    added: Mapping[str, str] = field(default_factory=dict)
    """What START must have and a chunk cannot carry."""


_KINDS: Final = {
    kind.chunk: kind
    for kind in (
        _Kind(
            noun="text message",
            chunk="TEXT_MESSAGE_CHUNK",
            start="TEXT_MESSAGE_START",
            content="TEXT_MESSAGE_CONTENT",
            end="TEXT_MESSAGE_END",
            id="messageId",
            needed=("messageId",),
            fixed={"role": "assistant", "name": None},
        ),
        _Kind(
            noun="tool call",
            chunk="TOOL_CALL_CHUNK",
            start="TOOL_CALL_START",
            content="TOOL_CALL_ARGS",
            end="TOOL_CALL_END",
            id="toolCallId",
            needed=("toolCallId", "toolCallName"),
            fixed={"toolCallName": None, "parentMessageId": None},
        ),
        _Kind(
            noun="reasoning message",
            chunk="REASONING_MESSAGE_CHUNK",
            start="REASONING_MESSAGE_START",
            content="REASONING_MESSAGE_CONTENT",
            end="REASONING_MESSAGE_END",
            id="messageId",
            needed=("messageId",),
            fixed={},
            added={"role": "reasoning"},
        ),
    )
}

_CONTINUED_BY: Final = {part: kind for kind in _KINDS.values() for part in (kind.content, kind.end)}

CHUNK_TYPES: Final = frozenset(_KINDS)
"""The types that `Expander` replaces; every other event passes through it as it is."""

_ENDS_OWN: Final = frozenset(
    {part for kind in _KINDS.values() for part in (kind.start, kind.content, kind.end)}
    | {"TOOL_CALL_RESULT", "REASONING_START", "REASONING_END", "STATE_SNAPSHOT", "STATE_DELTA"}
    | {"STEP_STARTED", "STEP_FINISHED", "CUSTOM", "SUBAGENT_FINISHED", "SUBAGENT_ERROR"}
)
_ENDS_ALL: Final = frozenset({"RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "MESSAGES_SNAPSHOT"})


class ChunkError(BylineError):
    """A chunk that nothing can be made of; the lanes are as they were before it.

    `kind` says what is wrong: `"first"` (it would open an item and lacks what that needs), `"ambiguous"` (it could
    continue several), `"owner"` (its tag is not that of the item it continues) or `"repeat"` (it repeats a member
    with another value); `member` is the wire name of the member at fault.
    """

    def __init__(
        self, message: str, *, kind: Literal["first", "ambiguous", "owner", "repeat"], member: str
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.member = member


@dataclass(frozen=True, slots=True)
class _Lane:
    """What one owner has open: the item and what its opening said."""

    kind: _Kind
    id: str
    owner: str | None
    fixed: Mapping[str, str | None]
    """What its opening said, or meant, for each member of `kind.fixed`."""

    def end(self) -> Wire:
        return {"type": self.kind.end, self.kind.id: self.id, **_tag(self.owner)}


class Plan(NamedTuple):
    """What an event comes to, before anything is done about it."""

    events: list[Wire]
    """What it stands for, in order, none of them a chunk."""
    ended: tuple[_Lane, ...] = ()
    opened: _Lane | None = None


class Expander:
    """Turn a stream with chunks into the same stream without; sans-IO, one per stream.

    Takes and gives wire events (mappings with the wire's names) of the schema's shape.  What a chunk carried besides
    its delta (`metadata`, `timestamp`, `rawEvent`) is on the first event made of it; a chunk that only carries
    `metadata` becomes CONTENT with an empty delta.

    `feed` is all that most need.  Who may yet refuse what comes out takes a `plan`, and does not `commit` to it then.
    """

    def __init__(self) -> None:
        self._lanes: dict[str | None, _Lane] = {}
        self._open: dict[tuple[str, str], _Lane] = {}  # by what continues the item, and its id

    def feed(self, event: Wire) -> list[Wire]:
        """Return the events that `event` stands for, in order, none of them a chunk.

        Raises `ChunkError` for an illegal chunk, after which the expander can go on as if it had not come.
        """
        plan = self.plan(event)
        self.commit(plan)
        return plan.events

    def plan(self, event: Wire) -> Plan:
        """Return what `event` comes to; raises as `feed` does, and changes nothing."""
        kind = _KINDS.get(event["type"])
        if kind is not None:
            return self._plan_chunk(kind, event)
        ended: tuple[_Lane, ...] = ()
        if self._lanes:
            if event["type"] in _ENDS_ALL:
                ended = tuple(self._lanes.values())
            elif event["type"] in _ENDS_OWN:
                ended = self._lane_of(event.get("subagentRunId"))
        return Plan([*(lane.end() for lane in ended), event], ended)

    def commit(self, plan: Plan) -> None:
        """Go on as `plan`, the last that was made, says."""
        for lane in plan.ended:
            del self._lanes[lane.owner], self._open[lane.kind.content, lane.id]
        if plan.opened is not None:
            self._lanes[plan.opened.owner] = self._open[plan.opened.kind.content, plan.opened.id] = (
                plan.opened
            )

    def finish(self) -> list[Wire]:
        """Return the END of every item that is still open: there are no more chunks to come."""
        plan = Plan([lane.end() for lane in self._lanes.values()], tuple(self._lanes.values()))
        self.commit(plan)
        return plan.events

    def assembles(self, event: Wire) -> bool:
        """Whether `event`, in the explicit form, continues an item that is open in a lane."""
        kind = _CONTINUED_BY.get(event["type"])
        return kind is not None and (kind.content, event[kind.id]) in self._open

    def _plan_chunk(self, kind: _Kind, chunk: Wire) -> Plan:
        lane = self._find(kind, chunk)
        if lane is not None:
            _check_continuation(lane, chunk)
            if "delta" not in chunk and "metadata" not in chunk:
                return Plan([])
            return Plan([_content(lane, chunk, extras=True)])
        owner = chunk.get("subagentRunId")
        for member in kind.needed:
            if member not in chunk:
                raise ChunkError(
                    f"First {kind.chunk} must have a {member}: {_who(owner)} has no {kind.noun} open that this one "
                    "could continue",
                    kind="first",
                    member=member,
                )
        fixed = {member: chunk.get(member, default) for member, default in kind.fixed.items()}
        lane = _Lane(kind, chunk[kind.id], owner, fixed)
        start = {**chunk, **kind.added, "type": kind.start}
        start.pop("delta", None)
        content = [_content(lane, chunk, extras=False)] if "delta" in chunk else []
        ended = self._lane_of(owner)
        return Plan([*(left.end() for left in ended), start, *content], ended, lane)

    def _find(self, kind: _Kind, chunk: Wire) -> _Lane | None:
        """Return the lane whose item `chunk` continues; `None` when it opens one."""
        if kind.id in chunk:
            return self._open.get((kind.content, chunk[kind.id]))
        if (own := self._lanes.get(chunk.get("subagentRunId"))) is not None and own.kind is kind:
            return own
        if "subagentRunId" in chunk:
            return None
        candidates = [lane for lane in self._lanes.values() if lane.kind is kind]
        if len(candidates) > 1:
            raise ChunkError(
                f"Ambiguous {kind.chunk}: it names neither a {kind.id} nor a subagentRunId, and {len(candidates)} "
                f"owners have a {kind.noun} open; tag it with the subagentRunId of its owner",
                kind="ambiguous",
                member=kind.id,
            )
        return candidates[0] if candidates else None

    def _lane_of(self, owner: str | None) -> tuple[_Lane, ...]:
        lane = self._lanes.get(owner)
        return () if lane is None else (lane,)


def expand(events: Iterable[AnyEvent]) -> Iterator[AnyEvent]:
    """Yield `events`, wire mappings or typed, with their chunks expanded; what they leave open is not ended.

    Raises `ChunkError` at the first illegal chunk.
    """
    expander = Expander()
    for event in events:
        if isinstance(event, BaseEvent):
            given = event.model_dump(mode="json", by_alias=True)
            for wire in expander.feed(given):
                yield event if wire is given else EVENT_CLASSES[wire["type"]].model_validate(wire)
        else:
            yield from expander.feed(event)


def _check_continuation(lane: _Lane, chunk: Wire) -> None:
    subject = f"{lane.kind.chunk} continues the {lane.kind.noun} {_short(lane.id)}"
    if "subagentRunId" in chunk and chunk["subagentRunId"] != lane.owner:
        raise ChunkError(
            f"{subject} of {_who(lane.owner)} with the tag of {_who(chunk['subagentRunId'])}; "
            "a continuation has its opener's tag or none",
            kind="owner",
            member="subagentRunId",
        )
    for member, opened in lane.fixed.items():
        if member in chunk and chunk[member] != opened:
            raise ChunkError(
                f"{subject} with {member} {_short(chunk[member])}, but it was opened with "
                f"{'none' if opened is None else _short(opened)}; repeat it unchanged or leave it out",
                kind="repeat",
                member=member,
            )


def _content(lane: _Lane, chunk: Wire, *, extras: bool) -> Wire:
    content = {
        "type": lane.kind.content,
        lane.kind.id: lane.id,
        "delta": chunk.get("delta", ""),
        **_tag(lane.owner),
    }
    if "timestamp" in chunk:
        content["timestamp"] = chunk["timestamp"]
    if extras:
        content.update({member: chunk[member] for member in ("metadata", "rawEvent") if member in chunk})
    return content


def _tag(owner: str | None) -> Wire:
    return {} if owner is None else {"subagentRunId": owner}


def _who(owner: str | None) -> str:
    return "the parent agent" if owner is None else f"subagent {_short(owner)}"


def _short(text: object) -> str:
    shown = repr(text)
    return shown if len(shown) <= 80 else f"{shown[:76]}…'"
