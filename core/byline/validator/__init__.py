"""The judge: events in, findings out, and never an exception.

    judge = Validator(profile="producer")
    for line in stream:
        for finding in judge.feed(line):
            print(finding.rule, finding.event, finding.message)
    judge.finish()

`producer` holds a stream to everything the text demands of who writes it, `consumer` to what a reader must reject;
`byline.rules` has both as one table.  Either way the stream is followed as a reader follows it, so that what comes
after a fault is judged fairly, and an item that had its error is not mentioned again.

The heart is one dispatch table per phase of the stream: before the first event, in a run, after RUN_FINISHED,
after RUN_ERROR.  An event goes through the strict reader and then to the one handler its type has in this phase.
"""

from collections.abc import Mapping
from typing import Any, Final

from pydantic_core import from_json

from byline.events import BaseEvent
from byline.rules import PROFILES, Profile, levels
from byline.schema import QUICK, UnreadableError, accepts, parse, problems, wire
from byline.validator._book import Book, Finding
from byline.validator._lanes import CLOSES
from byline.validator._malformed import judge, mute, remainder
from byline.validator._phases import Phases

__all__ = ["MAX_OPEN", "Finding", "Validator"]

MAX_OPEN: Final = 100_000
"""How many items of one kind may be open at once before the run is not followed further."""


class Validator(Phases):
    """Judges one stream of AG-UI events.

    `profile` is whose duties count, `max_open` how many items of one kind may be open at once.  Raises `ValueError`
    for a profile that there is not; nothing after that raises, whatever is fed.
    """

    __slots__ = ("profile",)

    def __init__(self, profile: Profile = "producer", *, max_open: int = MAX_OPEN) -> None:
        if profile not in PROFILES:
            raise ValueError(f"profile is {profile!r}; there are {' and '.join(PROFILES)}")
        super().__init__(Book(levels(profile), max_open))
        self.profile: Final = profile

    @property
    def events(self) -> int:
        """How many events have been fed, unreadable ones included."""
        return self._book.index + 1

    def feed(self, event: bytes | str | Mapping[str, Any] | BaseEvent) -> list[Finding]:
        """Judge the next event and return what is wrong, in the order it was noticed; an empty list when nothing is.

        `event` is a record as it is on the wire (one JSON text as bytes or str), or a mapping or typed event, which
        is judged as the JSON it would be sent as.
        """
        book = self._book
        book.index += 1
        try:
            known = from_json(event, allow_inf_nan=False, cache_strings="keys")  # type: ignore[arg-type]
            type_ = known["type"]
            good = QUICK[type_](known) or accepts(known)
        except (ValueError, TypeError, LookupError):  # not bytes or str, no JSON, no object, no such type
            good = False
        if good:
            if self._open_lanes and type_ in CLOSES:
                self._lanes.before(known)
            self._table[type_](known)
        else:
            self._look_closer(event)
        if book.findings:
            found, book.findings = book.findings, []
            return found
        return []

    def skip(self, why: str) -> list[Finding]:
        """Count a record that was not read, for the reason `why`, and return what is to be said about that."""
        book = self._book
        book.index += 1
        self._unreadable(why, limit=True)
        found, book.findings = book.findings, []
        return found

    def finish(self) -> list[Finding]:
        """Judge the end of the stream: a run that has not ended has broken off."""
        book = self._book
        if book.index < 0:
            book.report("empty-stream", "the stream has no event", event=None)
        elif self._table is self._in_run and book.gap != book.index:
            message = f"the stream ends in the run that began at event {book.run_index}, without RUN_FINISHED or RUN_ERROR"
            book.report("run-truncated", message, ("run",), event=None, related=book.run_index)
        found, book.findings = book.findings, []
        return found

    def _look_closer(self, event: bytes | str | Mapping[str, Any] | BaseEvent) -> None:
        """Judge a record that is no event as it stands; then take of it what a reader would."""
        book = self._book
        try:
            document = parse(event if isinstance(event, bytes | str) else wire(event))
        except UnreadableError as error:
            self._unreadable(str(error), limit=error.limit)
            return
        found = problems(document)
        quiet = judge(book, document, found)
        kept = remainder(book, document, found)
        if kept is None:
            return
        if self._open_lanes and kept["type"] in CLOSES:
            self._lanes.before(kept)
        if quiet:
            mute(book, kept)
        book.quiet = quiet
        self._table[kept["type"]](kept)
        book.quiet = False
        if quiet and kept["type"] == "RUN_STARTED":
            book.muted.add(("run",))  # its ids may be ours and not the stream's

    def _unreadable(self, why: str, *, limit: bool) -> None:
        self._book.report("beyond-limits" if limit else "not-json", f"the record cannot be read: {why}")
        self._book.lose()
