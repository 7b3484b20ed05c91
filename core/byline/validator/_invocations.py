"""Invocations: announced, closed, suspended, nested; and what their interrupts and contracts say about them."""

from typing import Any

from byline.schema import WireEvent, shown
from byline.validator._book import TAG, Book, Invocation, key_of, named
from byline.validator._contracts import Contracts

__all__ = ["Invocations"]


class Invocations:
    """The lifecycle events of a stream, and what is owed when a run ends."""

    __slots__ = ("book", "contracts")

    def __init__(self, book: Book) -> None:
        self.book = book
        self.contracts = Contracts(book)

    def started(self, event: WireEvent) -> None:
        """Judge SUBAGENT_STARTED."""
        book = self.book
        tag = key_of(event[TAG])
        known = book.invocations.get(tag)
        about = ("subagent", tag)
        if known is not None and known.announced is not None:
            if known.ended is None:
                message = f"{named(tag)} is announced again and has been active since event {known.announced}"
                book.report(
                    "subagent-already-active", message, about, pointer="/" + TAG, related=known.announced
                )
            else:
                message = (
                    f"{named(tag)} is announced again; it was {known.how} at event {known.ended} of this run"
                )
                book.report("subagent-id-reused", message, about, pointer="/" + TAG, related=known.ended)
            return
        if known is not None:
            message = (
                f"this event carries the tag of {named(tag)}, which event {book.index} announces only later"
            )
            book.report(
                "announced-late", message, about, event=known.first, pointer="/" + TAG, related=book.index
            )
        else:
            known = book.invocations[tag] = Invocation(tag, book.code(tag), book.index)
        known.announced = book.index
        self._returns(tag)
        known.parent = self._parent(event, known)
        known.call = None if "parentToolCallId" not in event else key_of(event["parentToolCallId"])
        self._spawning_call(known)
        self.contracts.announced(event, known)

    def _returns(self, tag: str) -> None:
        book = self.book
        how = book.earlier.get(tag)
        if how is not None and how != "suspended":
            message = f"{named(tag)} comes back; in an earlier run it was {how}, not suspended"
            book.report("subagent-id-returns", message, ("subagent", tag), pointer="/" + TAG)
        if tag == book.run:
            book.report("subagent-id-is-run-id", f"{named(tag)} has the id of the run", pointer="/" + TAG)

    def _parent(self, event: WireEvent, known: Invocation) -> Invocation | None:
        book = self.book
        if "parentSubagentRunId" not in event:
            return book.invocations[None]
        parent = book.invocations.get(key_of(event["parentSubagentRunId"]))
        if parent is known or parent is None or parent.announced is None:
            if book.gap is None and (
                parent is known or parent is None or ("subagent", parent.tag) not in book.muted
            ):
                what = (
                    "itself"
                    if parent is known
                    else f"{named(event['parentSubagentRunId'])}, which this run has not announced"
                )
                message = f"{named(known.tag)} names as its parent {what}"
                book.report(
                    "subagent-parent-unknown",
                    message,
                    ("subagent", known.tag),
                    pointer="/parentSubagentRunId",
                )
            return None
        return parent

    def _spawning_call(self, known: Invocation) -> None:
        book = self.book
        if known.call is None or known.call in book.calls or book.gap is not None:
            return
        message = (
            f"{named(known.tag)} was spawned by tool call {shown(known.call)}, which the stream has not shown"
        )
        book.report("spawning-call", message, pointer="/parentToolCallId")

    def finished(self, event: WireEvent) -> None:
        """Judge SUBAGENT_FINISHED, as a success or a suspension."""
        outcome = event.get("outcome", {"type": "success"})
        known = self._closes(event, "suspended" if outcome["type"] == "suspended" else "finished")
        if known is not None and known.how == "suspended":
            known.interrupts = tuple(key_of(id_) for id_ in outcome.get("interruptIds", ()))

    def failed(self, event: WireEvent) -> None:
        """Judge SUBAGENT_ERROR: it ends the invocation and not the run."""
        self._closes(event, "failed")

    def _closes(self, event: WireEvent, how: str) -> Invocation | None:
        book = self.book
        tag = key_of(event[TAG])
        known = book.invocations.get(tag)
        about = ("subagent", tag)
        if known is None or known.announced is None:
            if book.gap is None:
                message = f"{event['type']} closes {named(tag)}, which this run has not announced"
                book.report("subagent-not-announced", message, about, pointer="/" + TAG)
            return None
        if known.ended is not None:
            message = f"{event['type']} closes {named(tag)}, which was {known.how} at event {known.ended}"
            book.report("subagent-already-ended", message, about, pointer="/" + TAG, related=known.ended)
            return None
        known.ended, known.how = book.index, how
        self.contracts.closed(known)
        return known

    # --- the end of the run -------------------------------------------------------------------------------------

    def run_finished(self, outcome: str, interrupts: list[dict[str, Any]]) -> None:
        """Judge what RUN_FINISHED owes the invocations of the run, and their suspensions its interrupts."""
        book = self.book
        book.report_left(
            "subagent-left-open",
            (
                (
                    ("subagent", known.tag),
                    f"{named(known.tag)} is still active when the run finishes",
                    known.announced,
                )
                for known in book.invocations.values()
                if known.active
            ),
        )
        raised = {key_of(interrupt["id"]): interrupt for interrupt in interrupts}
        for known in book.invocations.values():
            if known.how == "suspended":
                self._suspended(known, outcome, raised)
        for position, interrupt in enumerate(interrupts):
            self._tagged(interrupt, position)
        self.contracts.run_finished(raised)

    def _suspended(self, known: Invocation, outcome: str, raised: dict[str, dict[str, Any]]) -> None:
        book = self.book
        if outcome != "interrupt" and not known.interrupts:
            message = f"{named(known.tag)} is suspended and the run ends with outcome {outcome}"
            book.report("suspended-in-success", message, event=known.ended)
        for position, id_ in enumerate(known.interrupts):
            pointer = f"/outcome/interruptIds/{position}"
            if id_ not in raised:
                message = (
                    f"{named(known.tag)} waits for interrupt {shown(id_)}, which the run does not end with"
                )
                book.report("suspended-without-interrupt", message, event=known.ended, pointer=pointer)
                continue
            tag = raised[id_].get(TAG)
            if tag is None or key_of(tag) != known.tag:
                message = f"{named(known.tag)} waits for interrupt {shown(id_)}, which is tagged {named(tag)}"
                book.report("interrupt-owner", message, event=known.ended, pointer=pointer)

    def _tagged(self, interrupt: dict[str, Any], position: int) -> None:
        book = self.book
        if TAG not in interrupt:
            return
        tag = key_of(interrupt[TAG])
        known = book.invocations.get(tag)
        pointer = f"/outcome/interrupts/{position}/{TAG}"
        if known is None:
            if book.gap is None:
                message = f"interrupt {shown(interrupt['id'])} is tagged {named(tag)}, of whom the run has shown nothing"
                book.report("interrupt-tag-unknown", message, pointer=pointer)
        elif known.announced is not None and known.how in ("finished", "failed"):
            message = f"interrupt {shown(interrupt['id'])} is tagged {named(tag)}, which {known.how} at event {known.ended}"
            book.report("interrupt-owner", message, pointer=pointer, related=known.ended)

    def close_run(self) -> None:
        """Remember how the announced invocations ended, for the runs to come."""
        for tag, known in self.book.invocations.items():
            if tag is not None and known.announced is not None:
                self.book.earlier[tag] = known.how or "abandoned"
