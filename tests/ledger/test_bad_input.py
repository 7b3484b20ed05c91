"""Whatever is fed, the ledger neither raises nor forgets what it knew."""

import json
import math
from random import Random

import pytest
from byline.ledger import Ledger
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger.composer import Composer

START = {"type": "RUN_STARTED", "threadId": "t", "runId": "r1", "protocolVersion": "1.0"}

RECORDS = {
    "nothing": (b"", "not-json"),
    "no json": (b"{", "not-json"),
    "not utf-8": (b'{"type":"\xff"}', "not-json"),
    "NaN": ('{"type":"CUSTOM","name":"n","value":NaN}', "not-json"),
    "beyond a double": ('{"type":"CUSTOM","name":"n","value":1e400}', "not-json"),
    "nesting": ("[" * 100_000, "beyond-limits"),
    "a number": (b"7", "not-an-event"),
    "no type": ({}, "not-an-event"),
    "a number of python": ({"type": "CUSTOM", "name": "n", "value": math.inf}, "not-json"),
    "an object of python": ({"type": "CUSTOM", "name": "n", "value": object()}, "not-json"),
    "null for nothing": ({"type": "CUSTOM", "name": "n", "value": 1, "subagentRunId": None}, "null-tag"),
    "another type": ({"type": "STEP_STARTED", "stepName": ["x"]}, "wrong-value"),
    "a member short": ({"type": "STEP_STARTED"}, "missing-member"),
    "a patch that is none": (
        {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "x", "value": 1}]},
        "wrong-value",
    ),
}


@pytest.mark.parametrize(("record", "rule"), RECORDS.values(), ids=RECORDS)
def test_a_record_that_is_no_event_is_refused(record, rule):
    ledger = Ledger()
    ledger.feed(START)
    refusal = ledger.feed(record)
    assert (refusal.event, refusal.rule) == (1, rule)
    assert refusal.record is record
    assert ledger.refusals == (refusal,)


def test_what_the_schema_does_not_know_is_stripped():
    """As a consumer does: no reason to reject, and nothing of it is kept."""
    ledger = Ledger()
    for event in (
        START,
        {"type": "THINKING_START", "title": "x"},
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "subagent_run_id": "s"},
        {"type": "TEXT_MESSAGE_END", "messageId": "m", "extra": {"a": 1}},
        {"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "n"},
        {"type": "SUBAGENT_FINISHED", "subagentRunId": "s", "outcome": {"type": "paused"}},
        {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "m", "role": "assistant", "mood": "good"}]},
    ):
        assert ledger.feed(event) is None
    assert ledger.messages == [{"id": "m", "role": "assistant"}]
    assert ledger.invocation("s").status == "finished"


def test_a_long_id_makes_no_long_message():
    ledger = Ledger()
    ledger.feed(START)
    refusal = ledger.feed({"type": "TEXT_MESSAGE_END", "messageId": "m" * 1_000_000})
    assert len(refusal.message) < 200


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32), st.data())
def test_a_mutated_stream_raises_nothing(seed, data):
    random = Random(seed)
    ledger = Ledger()
    for event in Composer(random, runs=2, actions=15).events:
        record = event
        match random.randrange(6):
            case 0:
                record = {**event, random.choice(sorted(event)): data.draw(anything)}
            case 1:
                record = {key: value for key, value in event.items() if random.random() < 0.7}
            case 2:
                text = json.dumps(event)
                record = text[: random.randrange(len(text))]
        ledger.feed(record)
        if random.random() < 0.2:
            ledger.to_json()
    ledger.finish()
    json.dumps([ledger.to_json(), ledger.messages, ledger.state, list(ledger.pending_interrupts.items())])
    for invocation in ledger.invocations:
        assert invocation.status != "running"
    for message in ledger.messages:
        assert ledger.owner_of_message(message["id"]) == message.get("subagentRunId")


@settings(max_examples=100)
@given(anything)
def test_no_value_raises(value):
    ledger = Ledger()
    ledger.feed(START)
    assert ledger.feed(value) is not None
