"""What the validator remembers of a stream, and how it speaks.

Two things keep the memory of a long stream small.  An id is kept as one integer that packs where it was first
seen, who owns it and what kind of item it names; an id longer than `LONG` is kept as a digest.  And what is open
is kept apart from what is known: the events that continue an item look into the small dictionary only.

Two things keep the findings few.  An item that has had its first error is *muted*: nothing more is said about it.
And after a record that could not be read, or an item that was not followed, there is a *gap*: that something was
not opened or not closed is then no longer known, and not said.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, TypeAlias

from byline.rules import RULES, Level
from byline.schema import shown

__all__ = [
    "ACTIVITY",
    "CALL",
    "LONG",
    "NOUNS",
    "REASONING",
    "RESULT",
    "TAG",
    "TEXT",
    "UNKNOWN",
    "Book",
    "Finding",
    "Invocation",
    "Open",
    "key_of",
    "kind_of",
    "named",
    "packed",
    "unpacked",
]

LONG: Final = 64
"""Ids longer than this many characters are kept as digests."""

TAG: Final = "subagentRunId"

_MANY: Final = 20
"""Of what a run leaves open of one kind, this many are named one by one."""

TEXT, REASONING, ACTIVITY, RESULT, CALL, MINTING_CALL = 1, 2, 3, 4, 5, 6
"""What an id names.  A call without a parentMessageId mints a message under its own id."""

NOUNS: Final = {
    TEXT: "a text message",
    REASONING: "a reasoning message",
    ACTIVITY: "an activity",
    RESULT: "a tool result",
    CALL: "a tool call",
    MINTING_CALL: "the message of a tool call",
}

Open: TypeAlias = tuple[str | None, int]
"""An open item: its owner's tag, and the index of the event that opened it."""

About: TypeAlias = Hashable


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing wrong with a stream.

    `rule` is the id of a row in `byline.rules`, `level` what breaking it means in the profile at hand.  `event` is
    the 0-based index of the event that is at fault, which may lie before the one just fed (an announcement that
    came too late), or `None` for the end of the stream; `related` the index of the earlier event it conflicts
    with.  `pointer` is a JSON Pointer into the event.  `message` says what was met, `law` what the text says,
    `hint` how to mend it.
    """

    rule: str
    level: Level
    event: int | None
    pointer: str
    related: int | None
    message: str
    law: str
    hint: str


@dataclass(slots=True)
class Invocation:
    """One invocation as this run shows it; the first event that carries its tag makes it."""

    tag: str | None
    code: int
    first: int
    announced: int | None = None
    ended: int | None = None
    how: str = ""  # finished, failed or suspended
    parent: "Invocation | None" = None
    call: str | None = None
    interrupts: tuple[str, ...] = ()
    contract: Mapping[str, Any] = field(default_factory=dict)

    @property
    def active(self) -> bool:
        """Whether it is announced and not closed."""
        return self.announced is not None and self.ended is None


class Book:
    """The state of one stream under one profile; the handlers read and write it, `report` is how they speak."""

    __slots__ = (
        "activities", "answered", "call_labels", "calls", "codes", "earlier", "findings", "gap", "held", "index",
        "interrupts", "interrupts_at", "invocations", "labels", "levels", "max_open", "messages", "muted", "names",
        "quiet", "run", "run_index", "runs", "state", "tags", "thread", "thread_index", "unanswered",
    )  # fmt: skip

    def __init__(self, levels: Mapping[str, Level], max_open: int = 0) -> None:
        self.levels = levels
        self.max_open = max_open
        self.index = -1
        self.findings: list[Finding] = []
        self.quiet = False
        # of the whole stream
        self.messages: dict[str, int] = {}
        self.calls: dict[str, int] = {}
        self.labels: dict[str, tuple[str, str | None]] = {}  # role and name, where not (assistant, none)
        self.call_labels: dict[str, tuple[str, str | None]] = {}  # tool and parent message
        self.names: dict[str, str] = {}
        self.codes: dict[str | None, int] = {None: 0}
        self.tags: list[str | None] = [None]
        self.earlier: dict[str, str] = {}  # how the announced invocations of earlier runs ended
        self.activities: dict[str, Any] = {}
        self.state: Any = UNKNOWN
        self.runs: dict[str | None, int] = {}
        self.thread: str | None = None
        self.thread_index: int  # with `thread`
        self.interrupts: frozenset[str] | None = None  # of the last run, where it was interrupted
        self.interrupts_at: int  # with `interrupts`
        # of the run
        self.run: str | None = None
        self.run_index: int
        self.gap: int | None
        self.muted: set[About] = set()
        self.invocations: dict[str | None, Invocation] = {}
        self.unanswered: dict[str, None] = {}
        self.answered: dict[str, int] = {}
        self.held: dict[str | None, Invocation] = {}  # callers whose control is elsewhere
        self.begin_run()

    def begin_run(self) -> None:
        """Forget what a run scopes: whose invocations are which, what was answered, muted or lost."""
        self.run_index = self.index
        self.gap = None
        for scoped in (self.muted, self.invocations, self.unanswered, self.answered, self.held):
            scoped.clear()
        self.invocations[None] = Invocation(None, 0, self.index)

    def report(
        self,
        rule: str,
        message: str,
        about: About = None,
        *,
        event: int | None = -1,
        pointer: str = "",
        related: int | None = None,
    ) -> None:
        """Add a finding at the event being judged, unless it has been said.

        The first error of the item it is `about` is the last word on that item; of what is less than an error, each
        rule speaks once per item.
        """
        level = self.levels.get(rule)
        if level is None or self.quiet:
            return
        if about is not None:
            said = about if level == "error" else (rule, about)
            if about in self.muted or said in self.muted:
                return
            self.muted.add(said)
        row = RULES[rule]
        at = self.index if event == -1 else event
        self.findings.append(Finding(rule, level, at, pointer, related, message, row.law, row.hint))

    def report_left(self, rule: str, left: Iterable[tuple[About, str, int | None]]) -> None:
        """Report what a run leaves open, each as what it is, what to say, and where it began; the rest as a number."""
        said = 0
        for about, message, index in left:
            if about in self.muted or (self.gap is not None and index is not None and index <= self.gap):
                continue  # had its error, or its end may be what was lost
            said += 1
            if said <= _MANY:
                self.report(rule, message, about, related=index)
        if said > _MANY:
            self.report(rule, f"and {said - _MANY} more of this kind are still open")

    def owner(self, tag: str | None) -> Invocation:
        """Return the invocation that `tag` names in this run; the first event to carry a tag makes it."""
        found = self.invocations.get(tag)
        if found is None:
            if tag is not None and len(tag) > LONG:
                tag = key_of(tag)
            found = self.invocations.get(tag)
        if found is None:
            found = self.invocations[tag] = Invocation(tag, self.code(tag), self.index)
        elif found.how == "suspended" and found.ended != self.index:
            message = f"{named(tag)} was suspended at event {found.ended} and produces more in the same run"
            self.report("output-after-suspension", message, ("subagent", found.tag), related=found.ended)
        return found

    def code(self, tag: str | None) -> int:
        """Return the number that stands for `tag` in packed ids."""
        code = self.codes.get(tag)
        if code is None:
            code = self.codes[tag] = len(self.tags)
            self.tags.append(tag)
        return code

    def share(self, name: str) -> str:
        """Return the one copy of `name` that is kept."""
        return self.names.setdefault(name, name)

    def too_many(self) -> None:
        """Note that more is open than is followed; what is opened from here on is not known to be."""
        message = f"more than {self.max_open} items of one kind are open at once; the rest of the run is not fully judged"
        self.report("beyond-limits", message, ("limit",))
        self.gap = self.index

    def lose(self) -> None:
        """Note that an event of this run could not be read: what it opened, closed or changed is not known."""
        self.gap = self.index
        self.state = UNKNOWN
        self.activities.clear()


UNKNOWN: Final[Any] = object()
"""The state, or an activity's content, is no longer known; patches to it are not judged."""

_OWNER_BITS, _INDEX_SHIFT = 4, 36
_OWNER_MASK, _KIND_MASK = (1 << 32) - 1, 15


def packed(index: int, code: int, kind: int) -> int:
    """Return first event, owner and kind of an id as one integer."""
    return index << _INDEX_SHIFT | code << _OWNER_BITS | kind


def unpacked(value: int) -> tuple[int, int, int]:
    """Return the first event, owner and kind that `packed` put in."""
    return value >> _INDEX_SHIFT, value >> _OWNER_BITS & _OWNER_MASK, value & _KIND_MASK


def kind_of(value: int) -> int:
    """Return the kind that `packed` put in."""
    return value & _KIND_MASK


def key_of(id_: str) -> str:
    """Return what is kept of an id: itself, or of a long one its beginning and a digest."""
    if len(id_) <= LONG:
        return id_
    return f"{id_[:24]}…{blake2b(id_.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"


def named(tag: str | None) -> str:
    """Name an owner in a message."""
    return "the parent agent" if tag is None else f"subagent {shown(tag, 40)}"
