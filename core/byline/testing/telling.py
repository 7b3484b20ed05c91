"""Tells a stream as a scenario's truth is written: party by party, line by line.

A second reader of streams: it shares nothing with the attributor, the validator or the ledger, so that they do not
confirm each other's mistakes.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from byline.events import BaseEvent

from .host import Host

__all__ = ["Telling", "Told", "wire"]

Wire: TypeAlias = Mapping[str, Any]
_ENDS: Final = ("RUN_FINISHED", "RUN_ERROR")
_IDS: Final = frozenset({"langchainRunId", "invocationId", "traceId", "spanId"})


def wire(event: BaseEvent | Wire) -> Wire:
    """Return an event as it is on the wire."""
    if isinstance(event, BaseEvent):
        return event.model_dump(by_alias=True, mode="json", exclude_none=True)
    return event


@dataclass
class _Line:
    party: str | None
    """The `subagentRunId`, or `None` for the parent agent; `run` lines have the party `""`."""
    text: str
    start: int
    end: int
    hears: int = 0


@dataclass
class Told:
    """One run as it was told."""

    lanes: dict[str, list[str]] = field(default_factory=dict)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Where `party line` begins and ends in the stream."""
    contracts: dict[str, Any] = field(default_factory=dict)
    """What each announcement says of its delegation, but for ids."""
    usage: list[str] = field(default_factory=list)
    interrupts: list[tuple[str, Wire]] = field(default_factory=list)
    """The run's questions, each with the party that asks."""


class Telling:
    """The tellings of one thread: what was named in a run keeps its name in the next."""

    def __init__(self, host: Host) -> None:
        self._host: Final = host
        self._labels: Final[dict[str | None, str]] = {None: "main", "": "run"}
        self._counts: Final[dict[str, int]] = {}
        self._calls: Final[dict[str, tuple[str | None, int]]] = {}
        self._made: Final[dict[str | None, int]] = {}

    def tell(self, events: Sequence[Wire]) -> Told:
        """Return what happened in a run.  Of a stream that breaks the law, what can be told."""
        self._number_calls(events)
        self._name(events)
        told = Told()
        for line in self._lines(events, told):
            party = self.label(line.party)
            told.lanes.setdefault(party, []).append(line.text)
            told.places.setdefault(f"{party} {line.text}", (line.start, line.end))
        return told

    def label(self, owner: str | None) -> str:
        """Return the name of a party; of one that was never announced, the raw id."""
        return self._labels.get(owner, f"<{owner}>")

    # -- names -------------------------------------------------------------------------------------------------------

    def _number_calls(self, events: Iterable[Wire]) -> None:
        for event in events:
            if event.get("type") == "TOOL_CALL_START" and event["toolCallId"] not in self._calls:
                owner = event.get("subagentRunId")
                self._made[owner] = self._made.get(owner, 0) + 1
                self._calls[event["toolCallId"]] = (owner, self._made[owner])

    def _name(self, events: Sequence[Wire]) -> None:
        order = {call: at for at, call in enumerate(self._calls)}
        fresh: dict[str, tuple[int, int, str]] = {}
        for at, event in enumerate(events):
            id_ = event.get("subagentRunId")
            if event.get("type") == "SUBAGENT_STARTED" and id_ not in self._labels and id_ not in fresh:
                fresh[str(id_)] = (
                    order.get(event.get("parentToolCallId", ""), -1),
                    at,
                    str(event.get("name")),
                )
        for id_, (_, _, name) in sorted(fresh.items(), key=lambda item: item[1]):
            self._counts[name] = self._counts.get(name, 0) + 1
            self._labels[id_] = f"{name}#{self._counts[name]}"

    def _call(self, id_: str | None, party: str | None) -> str:
        """Return `call 1`, or `call 1 of main` where it is not the call of `party`."""
        if id_ not in self._calls:
            return f"unknown call {id_}"
        owner, number = self._calls[str(id_)]
        return f"call {number}" if owner == party else f"call {number} of {self.label(owner)}"

    # -- lines -------------------------------------------------------------------------------------------------------

    def _lines(self, events: Sequence[Wire], told: Told) -> list[_Line]:
        lines: list[_Line] = []
        items: dict[tuple[str, str], _Line] = {}
        for at, event in enumerate(events):
            kind, owner = str(event.get("type")), event.get("subagentRunId")
            if kind in _ITEMS:
                self._item(event, at, lines, items)
            elif kind == "TOOL_CALL_RESULT":
                maker, number = self._calls.get(event["toolCallId"], (owner, 0))
                ordinal = str(number or f"unknown call {event['toolCallId']}")
                ordinal += "" if maker == owner else f" of {self.label(maker)}"
                answer = self._host.answer(event["content"])
                lines.append(_Line(owner, f"hears {ordinal}: {answer!r}", at, at, hears=number))
            elif kind.startswith("SUBAGENT_"):
                lines.append(_Line(owner, self._lifecycle(event, told), at, at))
            elif kind == "RUN_STARTED" or kind in _ENDS:
                lines += [_Line("", text, at, at) for text in self._run(event, told)]
        lines = [line for line in lines if line.text not in ("says ''", "thinks ''")]
        return _hearings_in_order([self._finish(line) for line in lines])

    def _item(self, event: Wire, at: int, lines: list[_Line], items: dict[tuple[str, str], _Line]) -> None:
        verb = _ITEMS[str(event.get("type"))]
        id_ = str(event.get("toolCallId") if verb == "calls" else event.get("messageId"))
        # A message under a wrong owner is another line: it must not hide in the right one.
        key = (f"{verb} {event.get('subagentRunId')}", id_)
        line = items.get(key)
        if line is None:
            head = ""
            if verb == "calls":
                number = self._calls.get(id_, (None, 0))[1]
                head = f"{number or f'unknown {id_}'}\0{event.get('toolCallName', '')}\0"
            line = items[key] = _Line(event.get("subagentRunId"), f"{verb}\0{head}", at, at)
            lines.append(line)
        line.text += event.get("delta", "")
        line.end = at

    def _finish(self, line: _Line) -> _Line:
        """Write out an item that is complete."""
        verb, split, text = line.text.partition("\0")
        if not split:
            return line
        if verb != "calls":
            line.text = f"{verb} {text!r}"
            return line
        number, name, arguments = text.split("\0", 2)
        try:
            given = json.loads(arguments or "{}")
        except ValueError:
            given = None
        delegation = self._host.delegation(name, given) if isinstance(given, dict) else None
        if delegation is None:
            shown = arguments if given is None else json.dumps(given, ensure_ascii=False)
            line.text = f"calls {number}: {name} {shown}"
        else:
            agent, task = delegation
            line.text = f"calls {number}: " + (
                f"hand over to {agent}" if task is None else f"{agent} {task!r}"
            )
        return line

    def _lifecycle(self, event: Wire, told: Told) -> str:
        kind, id_ = event.get("type"), event.get("subagentRunId")
        if kind == "SUBAGENT_STARTED":
            contract = (event.get("metadata") or {}).get("byline")
            if isinstance(contract, Mapping):
                told.contracts[self.label(id_)] = {k: v for k, v in contract.items() if k not in _IDS}
            parent = event.get("parentSubagentRunId")
            text = f"opens for {self.label(parent)}"
            if "parentToolCallId" in event:
                text += f", {self._call(event['parentToolCallId'], parent)}"
            return text
        if kind == "SUBAGENT_ERROR":
            return "cancelled" if event.get("code") == "cancelled" else f"fails: {event.get('message')}"
        outcome = event.get("outcome") or {}
        if outcome.get("type") == "suspended":
            asked = len(outcome.get("interruptIds") or ())
            return f"suspends, asking {asked}" if asked else "suspends"
        result = self._host.answer(event.get("result"))
        return "returns" if result is None else f"returns {result!r}"

    def _run(self, event: Wire, told: Told) -> list[str]:
        if event.get("type") == "RUN_STARTED":
            return ["start"]
        told.usage = sorted(_entry(entry) for entry in event.get("usage") or ())
        if event.get("type") == "RUN_ERROR":
            return [f"fails: {event.get('message')}"]
        outcome = event.get("outcome") or {}
        if outcome.get("type") == "cancelled":
            return ["cancelled"]
        if outcome.get("type") != "interrupt":
            return ["end"]
        told.interrupts = [
            (self.label(one.get("subagentRunId")), one) for one in outcome.get("interrupts", ())
        ]
        return sorted(
            f"waits for {party}"
            + (f", {self._call(one['toolCallId'], owner)}" if "toolCallId" in one else "")
            for party, one in told.interrupts
            for owner in [one.get("subagentRunId")]
        )


_ITEMS: Final = {
    **{f"TEXT_MESSAGE_{part}": "says" for part in ("START", "CONTENT", "CHUNK", "END")},
    **{f"REASONING_MESSAGE_{part}": "thinks" for part in ("START", "CONTENT", "CHUNK", "END")},
    **{f"TOOL_CALL_{part}": "calls" for part in ("START", "ARGS", "CHUNK", "END")},
}


def _hearings_in_order(lines: list[_Line]) -> list[_Line]:
    """Sort adjacent answers of one party by the order of its calls: who answers first is not the scenario's matter."""
    lanes: dict[str | None, list[_Line]] = {}
    for line in lines:
        lanes.setdefault(line.party, []).append(line)
    told: list[_Line] = []
    for lane in lanes.values():
        adjacent: list[_Line] = []
        for line in lane:
            if not line.hears:
                told += sorted(adjacent, key=lambda one: one.hears)
                adjacent = []
                told.append(line)
            else:
                adjacent.append(line)
        told += sorted(adjacent, key=lambda one: one.hears)
    return told


def _entry(entry: Mapping[str, Any]) -> str:
    text = f"{entry.get('provider')}/{entry.get('model')}"
    text += f" {entry.get('inputTokens', 0)} in, {entry.get('outputTokens', 0)} out"
    cached = entry.get("cachedInputTokens")
    return f"{text}, {cached} cached" if cached else text
