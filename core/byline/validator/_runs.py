"""Runs: how each begins and ends, and what its two boundary events owe each other and the runs before it."""

import re
from collections.abc import Sequence
from typing import Any, Final

from byline.events import PROTOCOL_VERSION
from byline.schema import WireEvent, shown
from byline.validator._book import TAG, UNKNOWN, Book, key_of, named, unpacked
from byline.validator._documents import Documents
from byline.validator._invocations import Invocations
from byline.validator._items import Steps, Streamed

__all__ = ["Runs"]

_VERSION: Final = re.compile(r"(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})")
_PARTS: Final = (
    ("reasoningTokens", "outputTokens"),
    ("cachedInputTokens", "inputTokens"),
    ("cacheWriteInputTokens", "inputTokens"),
)


class Runs:
    """The boundary events of the runs of a stream."""

    __slots__ = ("book", "documents", "invocations", "items")

    def __init__(
        self, book: Book, items: Sequence[Streamed | Steps], documents: Documents, invocations: Invocations
    ) -> None:
        self.book = book
        self.items = items
        self.documents = documents
        self.invocations = invocations

    def started(self, event: WireEvent) -> None:
        """Judge RUN_STARTED and begin a run with nothing open."""
        book = self.book
        for items in self.items:
            items.clear()
        book.begin_run()
        self._identify(event)
        self._version(event.get("protocolVersion"))
        interrupts, book.interrupts = book.interrupts, None
        if "input" in event:
            self._input(event, event["input"], interrupts)

    def _identify(self, event: WireEvent) -> None:
        book = self.book
        # of an event that the schema refused an id may be missing
        thread, run = (None if id_ is None else key_of(id_) for id_ in (event["threadId"], event["runId"]))
        book.run = run
        if book.thread is not None and thread != book.thread:
            message = (
                f"run {shown(run)} is on thread {shown(thread)}; the stream's thread is {shown(book.thread)}"
            )
            book.report("thread-changed", message, pointer="/threadId", related=book.thread_index)
        elif run in book.runs:
            message = f"runId {shown(run)} was used by the run that began at event {book.runs[run]}"
            book.report("run-id-reused", message, pointer="/runId", related=book.runs[run])
        book.thread, book.thread_index = thread, book.index
        book.runs[run] = book.index

    def _version(self, declared: str | None) -> None:
        if declared is None:
            self.book.report("version-missing", "RUN_STARTED declares no protocolVersion")
            return
        if not _VERSION.fullmatch(declared) or _numbers(declared) > _numbers(PROTOCOL_VERSION):
            message = f"protocolVersion is {shown(declared)}; this reader knows {PROTOCOL_VERSION}"
            self.book.report("version-unknown", message, pointer="/protocolVersion")

    def _input(self, event: WireEvent, echoed: dict[str, Any], interrupts: frozenset[str] | None) -> None:
        book = self.book
        for member in ("threadId", "runId"):
            if echoed[member] != event[member]:
                message = f"the echoed input is for {member} {shown(echoed[member])}, the run has {shown(event[member])}"
                book.report("input-mismatch", message, pointer=f"/input/{member}")
        if "state" in echoed:
            book.state = echoed["state"]
        elif book.state is UNKNOWN and len(book.runs) == 1:
            book.state = {}  # an input without state starts from the empty object
        for message in echoed["messages"]:
            self.documents.restate(message)
        if interrupts is not None:
            self._resume(echoed.get("resume"), interrupts)

    def _resume(self, entries: list[dict[str, Any]] | None, interrupts: frozenset[str]) -> None:
        book, related = self.book, self.book.interrupts_at
        if entries is None:
            message = (
                f"the run before ended with {len(interrupts)} interrupts and the input has no resume list"
            )
            book.report("resume-absent", message, pointer="/input", related=related)
            return
        for position, entry in enumerate(entries):
            if key_of(entry["interruptId"]) not in interrupts:
                message = f"the resume entry for {shown(entry['interruptId'])} answers an interrupt that was not raised"
                pointer = f"/input/resume/{position}/interruptId"
                book.report("resume-unknown", message, pointer=pointer, related=related)
        for missing in sorted(interrupts - {key_of(entry["interruptId"]) for entry in entries}):
            message = f"interrupt {shown(missing)} of the run before has no resume entry"
            book.report("resume-uncovered", message, pointer="/input/resume", related=related)

    def finished(self, event: WireEvent) -> None:
        """Judge RUN_FINISHED: everything that the run opened is closed, and the outcome fits what was seen."""
        book = self.book
        for member, of_run in (("threadId", book.thread), ("runId", book.run)):
            if of_run is not None and key_of(event[member]) != of_run:
                message = f"RUN_FINISHED has {member} {shown(event[member])}, its RUN_STARTED {shown(of_run)}"
                book.report(
                    "run-id-mismatch", message, ("run",), pointer=f"/{member}", related=book.run_index
                )
        for items in self.items:
            items.left_open()
        outcome = event.get("outcome", {"type": "success"})
        interrupts = outcome.get("interrupts", []) if outcome["type"] == "interrupt" else None
        self.invocations.run_finished(outcome["type"], interrupts or [])
        if outcome["type"] == "success":
            self._pending(outcome.get("pendingToolCallIds"))
        if interrupts is not None:
            self._interrupts(interrupts)
        self._usage(event)
        self.invocations.close_run()

    def _pending(self, listed: list[str] | None) -> None:
        book = self.book
        if book.gap is not None:
            return
        if not listed:
            if book.unanswered:
                names = ", ".join(shown(call) for call in list(book.unanswered)[:5])
                more = f" and {len(book.unanswered) - 5} more" if len(book.unanswered) > 5 else ""
                book.report(
                    "pending-calls-unlisted",
                    f"the run leaves {names}{more} unanswered and does not list them",
                )
            return
        keys = [key_of(call) for call in listed]
        for position, call in enumerate(keys):
            if call not in book.unanswered:
                answer = book.answered.get(call)
                why = "the run has not started it" if answer is None else f"event {answer} answered it"
                pointer = f"/outcome/pendingToolCallIds/{position}"
                message = f"tool call {shown(call)} is listed as pending, but {why}"
                book.report(
                    "pending-calls-wrong", message, ("pending", call), pointer=pointer, related=answer
                )
        for call in book.unanswered.keys() - set(keys):
            message = f"tool call {shown(call)} is unanswered and not listed as pending"
            index = unpacked(book.calls[call])[0]
            book.report(
                "pending-calls-wrong",
                message,
                ("pending", call),
                pointer="/outcome/pendingToolCallIds",
                related=index,
            )

    def _interrupts(self, interrupts: list[dict[str, Any]]) -> None:
        book = self.book
        seen: dict[str, int] = {}
        for position, interrupt in enumerate(interrupts):
            key = key_of(interrupt["id"])
            if key in seen:
                message = f"interrupts {seen[key]} and {position} have the same id {shown(key)}"
                book.report(
                    "interrupt-id-repeated",
                    message,
                    ("interrupt", key),
                    pointer=f"/outcome/interrupts/{position}/id",
                )
            seen[key] = position
            if "toolCallId" in interrupt:
                self._call_of(interrupt, position)
        book.interrupts, book.interrupts_at = frozenset(seen), book.index

    def _call_of(self, interrupt: dict[str, Any], position: int) -> None:
        book = self.book
        known = book.calls.get(key_of(interrupt["toolCallId"]))
        if known is None:
            return
        index, was, _ = unpacked(known)
        tag = interrupt.get(TAG)
        if index >= book.run_index and book.tags[was] != (None if tag is None else key_of(tag)):
            message = f"interrupt {shown(interrupt['id'])} of {named(tag)} is about a tool call that event {index} gave to {named(book.tags[was])}"
            book.report(
                "interrupt-call-owner", message, pointer=f"/outcome/interrupts/{position}", related=index
            )

    def failed(self, event: WireEvent) -> None:
        """Judge RUN_ERROR: it ends the run and everything in it, and asks for no closing event."""
        for items in self.items:
            items.clear()
        self._usage(event)
        self.invocations.close_run()
        self.book.interrupts = None

    def _usage(self, event: WireEvent) -> None:
        for position, entry in enumerate(event.get("usage", ())):
            total, read, written = (
                entry.get(name) for name in ("totalTokens", "inputTokens", "outputTokens")
            )
            if total is not None and read is not None and written is not None and total != read + written:
                message = f"totalTokens is {total}, inputTokens + outputTokens is {read + written}"
                self.book.report("usage-sums", message, pointer=f"/usage/{position}/totalTokens")
            for part, whole in _PARTS:
                if part in entry and whole in entry and entry[part] > entry[whole]:
                    message = f"{part} is {entry[part]}, more than the {entry[whole]} {whole} it is a part of"
                    self.book.report("usage-sums", message, pointer=f"/usage/{position}/{part}")


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]
