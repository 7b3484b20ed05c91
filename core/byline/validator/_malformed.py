"""Events that the schema refuses: which rule each problem breaks, and what of the event still counts.

A consumer strips what it does not recognise and goes on; so does the validator, in either profile, so that the
events after it are judged by what a reader would have.  A malformed known value is fatal: the items the event
names are then muted, and where it does not even name them there is a gap.
"""

from collections.abc import Sequence
from typing import Any, Final

from byline.schema import Problem, WireEvent, problems, without
from byline.validator._book import ACTIVITY, TAG, UNKNOWN, Book, key_of, packed

__all__ = ["judge", "mute", "remainder"]

_TOLD: Final = 10
"""Of the faults of one event, this many are told one by one."""

_STRIPPED: Final = {"unknown": 0, "null": 0, "variant": 1}
"""What can be left out of an event: a member, or (one step up) the object whose tag is not known."""

_HARMLESS: Final = frozenset({"RAW", "CUSTOM"})
_RUN_EVENTS: Final = frozenset({"RUN_STARTED", "RUN_FINISHED", "RUN_ERROR"})
_ITEMS: Final = (
    ("TEXT_MESSAGE_", "messageId", "text"),
    ("REASONING_MESSAGE_", "messageId", "reasoning"),
    ("REASONING_", "messageId", "span"),
    ("TOOL_CALL_", "toolCallId", "call"),
    ("ACTIVITY_", "messageId", "activity"),
)


def judge(book: Book, document: Any, found: Sequence[Problem]) -> bool:
    """Report what the schema refuses about an event; return whether it is an error in this profile."""
    levels = book.levels
    paths = {problem.path: problem for problem in found}
    told: list[tuple[str, Problem, str]] = []
    for problem in found:
        rule, message = _rule(problem, document), problem.message
        if problem.kind == "unknown" and (camel := _camel(str(problem.path[-1]))):
            message += f"; on the wire it is {camel!r}"
        elif (
            problem.kind == "missing"
            and levels.get("unknown-member") == "error"
            and _snake_of(problem, paths)
        ):
            continue  # said with the member that stands in its place
        told.append((rule, problem, message))
    told.sort(key=lambda one: levels.get(one[0]) != "error")  # errors first, else as they stand
    more = len(told) - _TOLD
    for number, (rule, problem, message) in enumerate(told[:_TOLD], 1):
        tail = f"; and {more} more in this event" if more > 0 and number == _TOLD else ""
        book.report(rule, message + tail, pointer=problem.pointer)
    return bool(told) and levels.get(told[0][0]) == "error"


def _rule(problem: Problem, document: Any) -> str:
    path, kind = problem.path, problem.kind
    type_ = document.get("type") if isinstance(document, dict) else None
    if kind == "many":
        return "beyond-limits"
    if not path or path == ("type",):
        return "unknown-type" if kind == "variant" else "not-an-event"
    last = path[-1]
    if last == TAG and kind in ("null", "unknown", "missing"):
        return {"null": "null-tag", "unknown": "tag-not-allowed", "missing": "tag-missing"}[kind]
    if kind == "unknown":
        if last == "usage" and str(type_).startswith("SUBAGENT_"):
            return "usage-on-subagent"
        return "success-with-interrupts" if path == ("outcome", "interruptIds") else "unknown-member"
    if kind == "variant":
        return "unknown-outcome" if path == ("outcome", "type") else "unknown-variant"
    return {"null": "null-member", "missing": "missing-member"}.get(kind, "wrong-value")


def _camel(name: str) -> str | None:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest) if rest and head and all(rest) else None


def _snake_of(problem: Problem, paths: dict[tuple[str | int, ...], Problem]) -> bool:
    """Whether a missing member is there under a name that only Python uses."""
    around, name = problem.path[:-1], problem.path[-1]
    return any(
        other.kind == "unknown" and path[:-1] == around and _camel(str(path[-1])) == name
        for path, other in paths.items()
    )


def remainder(book: Book, document: Any, found: Sequence[Problem]) -> WireEvent | None:
    """Return what a reader would keep of a refused event, or mute what it names and return `None`."""
    if not isinstance(document, dict) or not isinstance(document.get("type"), str):
        book.lose()
        return None
    if any(problem.path == ("type",) for problem in found):
        if book.levels.get("unknown-type") == "error":
            book.lose()
        return None
    if all(problem.kind in _STRIPPED for problem in found):
        cut = {problem.path[: len(problem.path) - _STRIPPED[problem.kind]] for problem in found}
        kept = without(document, cut)
        if not problems(kept):
            return dict(kept)
    if document["type"] in _RUN_EVENTS:
        return _boundary(book, document)
    _refuse(book, document)
    return None


def _boundary(book: Book, document: WireEvent) -> WireEvent:
    """Return the least that a run event with a fault still says: that a run began or ended."""
    kept: WireEvent = {"type": document["type"]}
    for member, known in (("threadId", book.thread), ("runId", book.run)):
        said = document.get(member)
        kept[member] = said if isinstance(said, str) else known
    return kept


def mute(book: Book, document: WireEvent) -> bool:
    """Say nothing more about the item that a refused event is about; return whether it names one."""
    about = _item(document)
    if about is not None:
        book.muted.add(about)
    return about is not None


def _item(document: WireEvent) -> tuple[str | None, ...] | None:
    """Return the item that an event is about, as findings are `about` it, if its members say so."""
    type_, tag = document["type"], document.get(TAG)
    if type_.startswith("SUBAGENT_"):
        return ("subagent", key_of(tag)) if isinstance(tag, str) else None
    if type_.startswith("STEP_"):
        name = document.get("stepName")
        if not isinstance(name, str) or not isinstance(tag, str | None):
            return None
        return ("step", tag if tag is None else key_of(tag), key_of(name))
    for prefix, member, kind in _ITEMS:
        if type_.startswith(prefix):
            id_ = document.get(member)
            return (kind, key_of(id_)) if isinstance(id_, str) else None
    return None


def _refuse(book: Book, document: WireEvent) -> None:
    """Drop an event, and forget what it may have changed."""
    type_ = document["type"]
    if type_.startswith("STATE_"):
        book.state = UNKNOWN
    elif not mute(book, document):
        if type_ not in _HARMLESS:
            book.lose()
    elif type_.startswith("SUBAGENT_"):
        known = book.owner(document[TAG])
        if type_ == "SUBAGENT_STARTED":
            known.announced = book.index
        elif known.announced is not None:
            known.ended, known.how = book.index, "closed"
    elif type_.startswith("ACTIVITY_"):
        key = key_of(document["messageId"])
        book.activities[key] = UNKNOWN
        book.messages.setdefault(key, packed(book.index, 0, ACTIVITY))
