"""Which handler an event has: one table per phase of the stream.

    before the first event ──RUN_STARTED──▶ in a run ──RUN_FINISHED──▶ after it ──RUN_ERROR──▶ after an error
                           ──RUN_ERROR──────────────────────────────────────────────────────▶
    (and from either of the last two back into a run by RUN_STARTED)

A boundary event swaps the table, so that no other event asks which phase it is.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

from byline.events import EVENT_CLASSES
from byline.schema import WireEvent, shown
from byline.validator._book import REASONING, TAG, Book, key_of
from byline.validator._cards import Cards, Spoken
from byline.validator._documents import Documents
from byline.validator._invocations import Invocations
from byline.validator._items import Calls, Messages, Spans, Steps, encrypted_value
from byline.validator._lanes import Lanes
from byline.validator._runs import Runs

__all__ = ["Phases"]

Handler: TypeAlias = Callable[[WireEvent], None]
Table: TypeAlias = Mapping[str, Handler]


class Phases:
    """The parts of a validator put together, and the table that is in force."""

    __slots__ = ("_after_error", "_after_finished", "_book", "_calls", "_cards", "_in_run", "_invocations", "_lanes", "_open_lanes", "_runs", "_table", "_text")  # fmt: skip

    def __init__(self, book: Book) -> None:
        self._book = book
        self._cards = Cards(book)
        text = self._text = Spoken(book, self._cards)
        reasoning = Messages(book, REASONING, "reasoning", "reasoning message")
        spans = Spans(book, "span", "reasoning span", owner_rule="reasoning-owner")
        calls, steps = Calls(book), Steps(book)
        self._calls = calls
        families = {"text": text, "reasoning": reasoning, "call": calls}
        documents = Documents(book, families, self._cards)
        self._invocations = Invocations(book)
        self._runs = Runs(book, (steps, text, reasoning, spans, calls), documents, self._invocations)
        self._lanes = Lanes(book, families)
        self._open_lanes = self._lanes.open
        self._in_run: Table = {
            **dict.fromkeys(EVENT_CLASSES, documents.passes),  # a newer protocol's types, and RAW
            "RUN_STARTED": self._nests,
            "RUN_FINISHED": self._finishes,
            "RUN_ERROR": self._fails,
            "TEXT_MESSAGE_START": text.start,
            "TEXT_MESSAGE_CONTENT": text.carry_on,
            "TEXT_MESSAGE_END": text.end,
            "TEXT_MESSAGE_CHUNK": self._text_chunk,
            "REASONING_START": spans.start,
            "REASONING_END": spans.end,
            "REASONING_MESSAGE_START": reasoning.start,
            "REASONING_MESSAGE_CONTENT": reasoning.carry_on,
            "REASONING_MESSAGE_END": reasoning.end,
            "REASONING_MESSAGE_CHUNK": partial(self._lanes.chunk, reasoning),
            "REASONING_ENCRYPTED_VALUE": partial(encrypted_value, book),
            "TOOL_CALL_START": calls.start,
            "TOOL_CALL_ARGS": calls.carry_on,
            "TOOL_CALL_END": calls.end,
            "TOOL_CALL_CHUNK": partial(self._lanes.chunk, calls),
            "TOOL_CALL_RESULT": self._result,
            "STEP_STARTED": steps.start,
            "STEP_FINISHED": steps.finish,
            "STATE_SNAPSHOT": documents.state_snapshot,
            "STATE_DELTA": documents.state_delta,
            "MESSAGES_SNAPSHOT": documents.messages_snapshot,
            "ACTIVITY_SNAPSHOT": documents.activity_snapshot,
            "ACTIVITY_DELTA": documents.activity_delta,
            "CUSTOM": documents.custom,
            "SUBAGENT_STARTED": self._invocations.started,
            "SUBAGENT_FINISHED": self._invocations.finished,
            "SUBAGENT_ERROR": self._invocations.failed,
        }
        begins: Table = {"RUN_STARTED": self._begins}
        begins_or_fails: Table = {**begins, "RUN_ERROR": self._fails}
        after_finished = partial(self._follows, "after-finished", "RUN_FINISHED")
        after_error = partial(self._follows, "after-error", "RUN_ERROR")
        self._after_finished: Table = {**dict.fromkeys(EVENT_CLASSES, after_finished), **begins_or_fails}
        self._after_error: Table = {**dict.fromkeys(EVENT_CLASSES, after_error), **begins}
        self._table: Table = {**dict.fromkeys(EVENT_CLASSES, self._precedes), **begins_or_fails}

    def _text_chunk(self, event: WireEvent) -> None:
        self._lanes.chunk(self._text, event)
        if self._cards.open and (delta := event.get("delta")):
            # Without an id it goes on with what its lane has: the parent's, or that of the only one who speaks.
            lanes = self._lanes.of_kind["text"]
            id_, lane = event.get("messageId"), lanes.get(event.get(TAG))
            if id_ is None and lane is None and TAG not in event and len(lanes) == 1:
                lane = next(iter(lanes.values()))
            self._cards.says(key_of(id_) if id_ is not None else lane.key if lane else "", delta)

    def _result(self, event: WireEvent) -> None:
        self._calls.result(event)
        self._cards.result(event)

    def _begins(self, event: WireEvent) -> None:
        self._table = self._in_run
        self._runs.started(event)

    def _finishes(self, event: WireEvent) -> None:
        self._table = self._after_finished
        self._runs.finished(event)

    def _fails(self, event: WireEvent) -> None:
        self._table = self._after_error
        self._runs.failed(event)

    def _nests(self, event: WireEvent) -> None:
        """Refuse a run within a run, and follow the new one."""
        book = self._book
        message = (
            f"RUN_STARTED opens run {shown(event['runId'])} while the run of event {book.run_index} is active"
        )
        book.report("run-nested", message, related=book.run_index)
        self._invocations.close_run()
        self._runs.started(event)

    def _precedes(self, event: WireEvent) -> None:
        """Refuse an event before any run, and follow what comes as a run whose beginning is not known."""
        book = self._book
        if book.gap is None:
            book.report("first-event", f"the first event is {event['type']}, not RUN_STARTED or RUN_ERROR")
        book.begin_run()
        book.lose()
        book.muted.add(("run",))
        self._table = self._in_run
        self._in_run[event["type"]](event)

    def _follows(self, rule: str, last: str, event: WireEvent) -> None:
        """Refuse an event after the end of a run; of several the first."""
        message = f"{event['type']} follows {last} of the run that began at event {self._book.run_index}"
        self._book.report(rule, message, (rule,))
