"""Delegation contracts: a stream that declares how an invocation works is held to it, as warnings.

A contract is `SUBAGENT_STARTED.metadata["byline"]`.  An axis that is absent, or has a value that is not in the
vocabulary, promises nothing.
"""

from collections.abc import Mapping
from typing import Any

from byline.schema import WireEvent, shown
from byline.validator._book import Book, Invocation, named

__all__ = ["Contracts"]


class Contracts:
    """What the invocations of the run have promised."""

    __slots__ = ("book",)

    def __init__(self, book: Book) -> None:
        self.book = book

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
        if known.contract.get("concurrency") == "serial":
            self._serial(known)
        if known.contract.get("returns") == "manual" and parent is not None:
            book.held[parent.tag] = known

    def _isolated(self, known: Invocation) -> None:
        for member in ("inheritedMessages", "inheritedState"):
            if known.contract.get(member):
                message = f"{named(known.tag)} is declared isolated and has {member}"
                self.book.report("contract-isolated", message, pointer=f"/metadata/byline/{member}")

    def _serial(self, known: Invocation) -> None:
        for other in self.book.invocations.values():
            if other is known or not other.active or other.parent is not known.parent or known.parent is None:
                continue
            if other.contract.get("concurrency") == "serial":
                message = f"{named(known.tag)} is announced while its sibling {named(other.tag)} is active, both declared serial"
                self.book.report(
                    "contract-serial",
                    message,
                    pointer="/metadata/byline/concurrency",
                    related=other.announced,
                )
                return

    def closed(self, known: Invocation) -> None:
        """Give control back to the caller of an invocation that has ended."""
        parent = known.parent
        if parent is not None and self.book.held.get(parent.tag) is known:
            del self.book.held[parent.tag]

    def run_finished(self, raised: Mapping[str, Mapping[str, Any]]) -> None:
        """Hold the suspended ones to their interaction, the successful ones to the result they owe."""
        book = self.book
        suspended = [known for known in book.invocations.values() if known.how.startswith("suspended")]
        waiting_for_a_child = {id(known.parent) for known in suspended if known.parent is not None}
        for known in suspended:
            asked = [raised[id_] for id_ in known.interrupts if id_ in raised]
            asked += [
                one for one in raised.values() if one not in asked and one.get("subagentRunId") == known.tag
            ]
            approvals = [one for one in asked if "toolCallId" in one]
            if known.contract.get("approvals") is False and approvals:
                message = f"{named(known.tag)} is suspended for an approval ({shown(approvals[0]['id'])})"
                book.report("contract-approvals", message, event=known.ended, related=known.announced)
            if known.contract.get("interaction") == "none":
                questions = len(asked) - len(approvals)
                if questions or (not asked and id(known) not in waiting_for_a_child):
                    message = (
                        f"{named(known.tag)} is suspended, and neither for an approval nor for a descendant"
                    )
                    book.report("contract-interaction", message, event=known.ended, related=known.announced)
        for known in book.invocations.values():
            owes = known.contract.get("returns") == "automatic" and known.how == "finished"
            if owes and known.call is not None and known.call not in book.answered and book.gap is None:
                message = f"{named(known.tag)} has finished, and its spawning call {shown(known.call)} has no result"
                book.report("contract-result", message, event=known.ended, related=known.announced)
