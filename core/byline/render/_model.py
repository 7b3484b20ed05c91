"""What the page shows: a section per thread, in it a lane per invocation, in it the items in order.

All of it is read off the ledger and the validator; this module only lays it out.  Places are numbers of events within
the section; `clock` says when each was, in milliseconds from the first, with the time between two runs left out: a
user who answers after a night would leave nothing of the rest to see.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pydantic_core import from_json

from byline.ledger import Invocation, Ledger, Run, Work
from byline.reading import ReadError, Record
from byline.rules import Profile
from byline.validator import Finding, Validator

__all__ = ["MAX_ITEMS", "model"]

MAX_ITEMS: Final = 100_000
"""How many items a page holds; a browser does not hold more with comfort."""

_SHORT: Final = 80
"""The longest JSON that stays on one line."""

_CONTRACT: Final = ("mode", "context", "interaction", "approvals", "returns", "concurrency", "leaf")
_IDS: Final = ("messageId", "toolCallId", "entityId")


def model(records: Iterable[Record], *, profile: Profile) -> dict[str, Any]:
    """Return the recording as the page's script reads it; raise `ReadError` when nothing can be read."""
    sections: dict[str | None, _Section] = {}
    current: _Section | None = None
    notes: list[str] = []
    number = 0
    event: Mapping[str, Any] = {}
    try:
        for record in records:
            event = _parsed(record.data)
            thread = event.get("threadId") if event.get("type") == "RUN_STARTED" else None
            if current is None or isinstance(thread, str):
                key = thread if isinstance(thread, str) else None
                current = sections.get(key) or sections.setdefault(key, _Section(key, profile))
            current.feed(record.data or b"", event, number, record.line)
            number += 1
    except ReadError as fault:
        if not number:
            raise
        notes.append(str(fault))
    if number and not event and not notes:
        notes.append("the last line is no whole event: the recording breaks off there")
    shown = [section.shown() for section in sections.values()]
    left = MAX_ITEMS
    for section in shown:
        kept = section["items"][:left]
        if len(kept) < len(section["items"]):
            notes.append(f"{len(section['items']) - len(kept)} items are left out: a page holds {MAX_ITEMS}")
        section["items"] = kept
        left -= len(kept)
    return {"events": number, "sections": shown, "notes": notes, "profile": profile}


def _parsed(data: bytes | None) -> Mapping[str, Any]:
    try:
        event = from_json(data or b"null")
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


class _Section:
    """One thread of the recording."""

    def __init__(self, thread: str | None, profile: Profile) -> None:
        self._thread: Final = thread
        self._ledger: Final = Ledger()
        self._judge: Final = Validator(profile)
        self._findings: Final[list[Finding]] = []
        self._numbers: Final[list[int]] = []  # of the events in the whole recording
        self._lines: Final[list[int]] = []
        self._clock: Final[list[int]] = []
        self._last: int | None = None
        self._about: Final[list[tuple[str | None, ...]]] = []  # by event: tag, and the ids it names

    def feed(self, data: bytes, event: Mapping[str, Any], number: int, line: int) -> None:
        """Take the next event, as it was and as it reads."""
        self._ledger.feed(data)
        self._findings.extend(self._judge.feed(data))
        self._numbers.append(number)
        self._lines.append(line)
        self._about.append(tuple(_text(event.get(key)) for key in ("subagentRunId", *_IDS)))
        now = event.get("timestamp")
        before = self._clock[-1] if self._clock else 0
        if isinstance(now, int) and not isinstance(now, bool):
            new_run = event.get("type") == "RUN_STARTED"
            step = 0 if self._last is None or new_run else max(0, now - self._last)
            self._last = now
            self._clock.append(before + step)
        else:
            self._clock.append(before)

    def shown(self) -> dict[str, Any]:
        """Return the section as the page has it."""
        self._ledger.finish()
        self._findings.extend(self._judge.finish())
        branches = self._ledger.tree()
        runs = self._ledger.runs
        lanes = [_root_lane(runs)]
        lanes += [_lane(branch.invocation, branch.depth, runs) for branch in branches]
        index: dict[str | None, int] = {lane["id"]: at for at, lane in enumerate(lanes)}
        for lane in lanes[1:]:
            lane["parent"] = index.get(lane["parent"], 0)
        items: list[dict[str, Any]] = []
        for at, lane in enumerate(lanes):
            work = self._ledger.work(lane["id"]) if runs or lane["id"] is not None else Work()
            own = [*_items(work), *(_bounds(branches[at - 1].invocation) if at else ())]
            items += [{"lane": at, **item} for item in own]
        for run in runs:
            items += [
                {"lane": index.get(asked.get("subagentRunId"), 0), **_interrupt(asked, run)}
                for asked in run.interrupts
            ]
        items.sort(key=lambda item: (item["lane"], item["at"], item["kind"] == "end"))
        return {
            "thread": self._thread,
            "runs": [_run(run) for run in runs],
            "lanes": lanes,
            "items": items,
            "findings": list(self._placed(items, index)),
            "clock": self._clock,
            "numbers": self._numbers,
            "lines": self._lines,
        }

    def _placed(
        self, items: list[dict[str, Any]], index: Mapping[str | None, int]
    ) -> Iterator[dict[str, Any]]:
        """Put each finding to the item it is about, else to the lane, else to the section."""
        by_id: dict[str, int] = {}
        by_place: dict[int, int] = {}
        for at, item in enumerate(items):
            by_id.setdefault(item.get("id", ""), at)
            by_place.setdefault(item["at"], at)
        for finding in self._findings:
            placed: dict[str, Any] = {
                "rule": finding.rule,
                "level": finding.level,
                "message": finding.message,
                "law": finding.law,
                "hint": finding.hint,
            }
            if finding.event is not None:
                placed["at"] = finding.event
                tag, *ids = self._about[finding.event]
                about = next((by_id[id_] for id_ in ids if id_ is not None and id_ in by_id), None)
                about = by_place.get(finding.event) if about is None else about
                placed["lane"] = index.get(tag, 0) if about is None else items[about]["lane"]
                if about is not None:
                    placed["item"] = about
            yield placed


def _root_lane(runs: tuple[Run, ...]) -> dict[str, Any]:
    return _some(
        id=None,
        name="parent agent",
        depth=0,
        status=runs[-1].status if runs else None,
        segments=[[run.start.event, None if run.end is None else run.end.event] for run in runs],
        usage=_usage_of(None, runs),
        id_always=True,
    )


def _lane(invocation: Invocation, depth: int, runs: tuple[Run, ...]) -> dict[str, Any]:
    contract = dict(invocation.contract or {})
    return _some(
        id=invocation.id,
        name=invocation.name or invocation.id,
        description=invocation.description,
        parent=invocation.parent,
        depth=depth + 1,
        status=invocation.status,
        segments=[
            [one.start.event, None if one.end is None else one.end.event] for one in invocation.segments
        ],
        call=invocation.spawning_call,
        contract=[[axis, _word(contract.pop(axis))] for axis in _CONTRACT if axis in contract],
        more=[[name, _word(value)] for name, value in contract.items()],
        usage=_usage_of(invocation.id, runs),
        id_always=True,
    ) | {"parent": invocation.parent}


def _usage_of(owner: str | None, runs: tuple[Run, ...]) -> list[Any]:
    return [entry for run in runs for entry in run.usage_by_owner.get(owner, ())]


def _run(run: Run) -> dict[str, Any]:
    return _some(
        id=run.run_id or "?",
        status=run.status,
        at=run.start.event,
        end=None if run.end is None else run.end.event,
        usage=list(run.usage),
        failure=None if run.failure is None else _failure(run.failure.message, run.failure.code),
        result=None if run.result is None else _pretty(run.result),
    )


def _items(work: Work) -> Iterator[dict[str, Any]]:
    for text in work.texts:
        head = "" if text.role == "assistant" else text.name or text.role
        yield _some(
            kind="text", id=text.id, at=text.start.event, end=_event(text.end), head=head, body=text.text
        )
    for thought in work.reasoning:
        yield _some(
            kind="reasoning",
            id=thought.id,
            at=thought.start.event,
            end=_event(thought.end),
            body=thought.text,
        )
    for call in work.calls:
        answer = call.answer
        yield _some(
            kind="call",
            id=call.id,
            at=call.start.event,
            end=_event(call.end) if answer is None else answer.at.event,
            head=call.name,
            body=_pretty_text(call.arguments),
            answer=None if answer is None else _content(answer.content),
        )
    for activity in work.activities:
        yield _some(
            kind="activity",
            id=activity.id,
            at=activity.start.event,
            end=activity.changed.event,
            head=activity.type,
            body=_pretty(activity.content),
        )
    for step in work.steps:
        yield _some(kind="step", at=step.start.event, end=_event(step.end), head=step.name)
    for change in work.state_changes:
        yield _some(kind="state", at=change.at.event, head=change.kind, body=_pretty(change.value))
    for custom in work.customs:
        yield _some(kind="custom", at=custom.at.event, head=custom.name, body=_pretty(custom.value))
    for raw in work.raws:
        yield _some(kind="raw", at=raw.at.event, head=raw.source or "", body=_pretty(raw.event))


def _bounds(invocation: Invocation) -> Iterator[dict[str, Any]]:
    """Yield the ends of an invocation's segments: the last says how it ended."""
    for number, segment in enumerate(invocation.segments):
        if segment.end is None:
            continue
        last = number == len(invocation.segments) - 1
        failure = invocation.failure
        body = None
        if last and failure is not None:
            body = _failure(failure.message, failure.code)
        elif last and invocation.result is not None:
            body = _pretty(invocation.result)
        status = (invocation.status if last else "suspended") or ""
        yield _some(kind="end", at=segment.end.event, head=status, body=body)


def _interrupt(asked: Mapping[str, Any], run: Run) -> dict[str, Any]:
    metadata = asked.get("metadata")
    return _some(
        kind="interrupt",
        at=run.end.event if run.end is not None else run.start.event,
        head=str(asked.get("reason", "")),
        body=asked.get("message") or (_pretty(metadata) if metadata is not None else None),
        call=asked.get("toolCallId"),
    )


def _failure(message: str, code: str | None) -> str:
    return f"{message} ({code})" if code else message


def _content(content: Any) -> str:
    return content if isinstance(content, str) else _pretty(content)


def _pretty_text(text: str) -> str:
    """Return JSON text laid out; what is none as it is."""
    try:
        return _pretty(json.loads(text)) if text else ""
    except (ValueError, RecursionError):
        return text


def _pretty(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        short = json.dumps(value, ensure_ascii=False)
        return short if len(short) <= _SHORT else json.dumps(value, ensure_ascii=False, indent=2)
    except (TypeError, ValueError, RecursionError):
        return str(value)


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _event(mark: Any) -> int | None:
    return None if mark is None else int(mark.event)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _some(*, id_always: bool = False, **members: Any) -> dict[str, Any]:
    """Return the members that have a value: the page is smaller without the rest."""
    return {
        name: value
        for name, value in members.items()
        if value not in (None, "", [], {}) or (id_always and name == "id")
    }
