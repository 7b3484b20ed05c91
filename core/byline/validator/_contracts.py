"""Delegation contracts: a stream that declares how an invocation works is held to it, as warnings.

A contract is `SUBAGENT_STARTED.metadata["byline"]`.  An axis that is absent, or has a value that is not in the
vocabulary, promises nothing.
"""

from collections.abc import Mapping
from typing import Any

from byline.schema import WireEvent, shown
from byline.validator._book import TAG, Book, Invocation, key_of, named

__all__ = ["Contracts"]


class Contracts:
    """What the invocations of the run have promised."""

    __slots__ = ("book", "serial")

    def __init__(self, book: Book) -> None:
        self.book = book
        self.serial: dict[str | None, Invocation] = {}  # by parent, the one that others have to wait for

    def announced(self, event: WireEvent, known: Invocation) -> None:
        """Take the contract of an invocation, and hold it and its parent's to the announcement."""
        book = self.book
        contract = event.get("metadata", {}).get("byline")
        known.contract = contract if isinstance(contract, dict) else {}
        parent = known.parent
        if parent is not None and parent.contract.get("leaf") is True:
            message = f"{named(known.tag)} is delegated to by {named(parent.tag)}, which event {parent.announced} declared a leaf"
            book.report("contract-leaf", message, pointer="/parentSubagentRunId", related=parent.announced)
        if known.contract.get("context") == "isolated":
            self._isolated(known)
        if parent is not None and known.contract.get("concurrency") == "serial":
            self._serial(known, parent)
        if parent is not None and known.contract.get("returns") == "manual":
            book.held[parent.tag] = known

    def _isolated(self, known: Invocation) -> None:
        for member in ("inheritedMessages", "inheritedState"):
            if known.contract.get(member):
                message = f"{named(known.tag)} is declared isolated and has {member}"
                self.book.report("contract-isolated", message, pointer=f"/metadata/byline/{member}")

    def _serial(self, known: Invocation, parent: Invocation) -> None:
        other = self.serial.get(parent.tag)
        if other is None or not other.active or other.parent is not parent:  # of this run, and not ended
            self.serial[parent.tag] = known
            return
        message = f"{named(known.tag)} is announced while its sibling {named(other.tag)} is active, both declared serial"
        pointer = "/metadata/byline/concurrency"
        self.book.report("contract-serial", message, pointer=pointer, related=other.announced)

    def closed(self, known: Invocation) -> None:
        """Give control back to the caller of an invocation that has ended."""
        parent = known.parent
        if parent is not None and self.book.held.get(parent.tag) is known:
            del self.book.held[parent.tag]

    def run_finished(self, raised: Mapping[str, Mapping[str, Any]]) -> None:
        """Hold the suspended ones to their interaction, the successful ones to the result they owe."""
        by_tag: dict[str, dict[str, Mapping[str, Any]]] = {}
        for id_, interrupt in raised.items():
            if TAG in interrupt:
                by_tag.setdefault(key_of(interrupt[TAG]), {})[id_] = interrupt
        invocations = self.book.invocations.values()
        suspended = [known for known in invocations if known.how == "suspended"]
        callers = {id(known.parent) for known in suspended}
        for known in suspended:
            listed = {id_: raised[id_] for id_ in known.interrupts if id_ in raised}
            # A run that waits suspends all that is open, the silent with those that asked.
            asked = {**listed, **by_tag.get(known.tag or "", {})}
            self._suspended(known, asked, silent=bool(raised) or id(known) in callers)
        waiting = {
            known.call for known in suspended
        }  # a call in which another is suspended has no result yet
        for known in invocations:
            owes = known.contract.get("returns") == "automatic" and known.how == "finished"
            if owes and known.call not in waiting:
                self._result(known)

    def _suspended(self, known: Invocation, asked: Mapping[str, Mapping[str, Any]], *, silent: bool) -> None:
        """Judge a suspension, which may be `silent` about its reason; an interrupt with a tool call is an approval."""
        approvals = [id_ for id_, interrupt in asked.items() if "toolCallId" in interrupt]
        if known.contract.get("approvals") is False and approvals:
            message = f"{named(known.tag)} is suspended for an approval, interrupt {shown(approvals[0])}"
            self.book.report("contract-approvals", message, event=known.ended, related=known.announced)
        questions = len(asked) > len(approvals) or not (asked or silent)
        if known.contract.get("interaction") == "none" and questions:
            message = f"{named(known.tag)} is suspended, and neither for an approval nor for a descendant"
            self.book.report("contract-interaction", message, event=known.ended, related=known.announced)

    def _result(self, known: Invocation) -> None:
        book = self.book
        # Of a call of an earlier run, such as a hand-off after which the user was asked, the answer was there.
        if known.call in book.unanswered and book.gap is None:
            message = (
                f"{named(known.tag)} has finished, and its spawning call {shown(known.call)} has no result"
            )
            book.report("contract-result", message, event=known.ended, related=known.announced)
