"""One record as a consumer reads it, whatever comes before or after it."""

from collections.abc import Mapping
from typing import Any, Final

from byline.events import BaseEvent
from byline.rules import levels
from byline.schema import UnreadableError, WireEvent, parse, problems, read, wire
from byline.validator._book import Book, Finding
from byline.validator._malformed import judge, remainder

__all__ = ["read_alone"]

_LEVELS: Final = levels("consumer")


def read_alone(
    record: bytes | str | Mapping[str, Any] | BaseEvent,
) -> tuple[WireEvent | None, Finding | None]:
    """Return the event that a consumer makes of `record`, or the finding for which it must reject it.

    What the schema does not know is stripped, as a consumer does; of an event of an unknown type nothing is left, and
    both are `None`.  The event shares nothing with `record`.  Never raises.
    """
    try:
        text = record if isinstance(record, bytes | str) else wire(record)
        if (known := read(text)) is not None:
            return known, None
        document = parse(text)
    except UnreadableError as error:
        book = Book(_LEVELS)
        book.report("beyond-limits" if error.limit else "not-json", f"the record cannot be read: {error}")
        return None, book.findings[0]
    book = Book(_LEVELS)
    found = problems(document)
    if judge(book, document, found):
        return None, next(finding for finding in book.findings if finding.level == "error")
    return remainder(book, document, found), None
