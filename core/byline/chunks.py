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
from typing import Final, Literal, TypeAlias, TypeVar

from byline.errors import BylineError
from byline.events import EVENT_CLASSES, BaseEvent
from byline.state import Json

__all__ = ["CHUNK_TYPES", "ChunkError", "Expander", "Wire", "expand"]

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


class Expander:
    """Turn a stream with chunks into the same stream without; sans-IO, one per stream.

    Takes and gives wire events (mappings with the wire's names) of the schema's shape.  What a chunk carried besides
    its delta (`metadata`, `timestamp`, `rawEvent`) is on the first event made of it; a chunk that only carries
    `metadata` becomes CONTENT with an empty delta.
    """

    def __init__(self) -> None:
        self._lanes: dict[str | None, _Lane] = {}
        self._open: dict[tuple[str, str], _Lane] = {}  # by chunk type and id

    def feed(self, event: Wire) -> list[Wire]:
        """Return the events that `event` stands for, in order, none of them a chunk.

        Raises `ChunkError` for an illegal chunk, after which the expander can go on as if it had not come.
        """
        kind = _KINDS.get(event["type"])
        if kind is not None:
            return self._chunk(kind, event)
        if not self._lanes:
            return [event]
        if event["type"] in _ENDS_ALL:
            return [*self.finish(), event]
        if event["type"] in _ENDS_OWN:
            return [*self._leave(event.get("subagentRunId")), event]
        return [event]

    def finish(self) -> list[Wire]:
        """Return the END of every item that is still open: there are no more chunks to come."""
        return [end for owner in tuple(self._lanes) for end in self._leave(owner)]

    def _chunk(self, kind: _Kind, chunk: Wire) -> list[Wire]:
        lane = self._find(kind, chunk)
        if lane is not None:
            _check_continuation(lane, chunk)
            if "delta" not in chunk and "metadata" not in chunk:
                return []
            return [_content(lane, chunk, extras=True)]
        for member in kind.needed:
            if member not in chunk:
                raise ChunkError(
                    f"First {kind.chunk} must have a {member}: {_who(chunk.get('subagentRunId'))} has no {kind.noun} "
                    "open that this one could continue",
                    kind="first",
                    member=member,
                )
        fixed = {member: chunk.get(member, default) for member, default in kind.fixed.items()}
        lane = _Lane(kind, chunk[kind.id], chunk.get("subagentRunId"), fixed)
        ended = self._leave(lane.owner)
        self._lanes[lane.owner] = self._open[kind.chunk, lane.id] = lane
        start = {**chunk, **kind.added, "type": kind.start}
        start.pop("delta", None)
        return [*ended, start, *([_content(lane, chunk, extras=False)] if "delta" in chunk else [])]

    def _find(self, kind: _Kind, chunk: Wire) -> _Lane | None:
        """Return the lane whose item `chunk` continues; `None` when it opens one."""
        if kind.id in chunk:
            return self._open.get((kind.chunk, chunk[kind.id]))
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

    def _leave(self, owner: str | None) -> list[Wire]:
        lane = self._lanes.pop(owner, None)
        if lane is None:
            return []
        del self._open[lane.kind.chunk, lane.id]
        return [lane.end()]


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
