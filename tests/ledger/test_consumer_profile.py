"""The ledger and the validator's consumer profile say the same of any event, and what is refused changes nothing."""

from pathlib import Path
from random import Random

import pytest
from byline.ledger import Ledger
from byline.validator import Validator
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger.composer import Composer

INTRUDER = "intruder"
LAW = Path(__file__).parent.parent / "data" / "law"
WARNED_OF = {"state-patch", "activity-patch", "activity-not-object"}
"""What a consumer accepts and cannot apply: a refusal of the ledger, a warning of the validator."""


class Intruder:
    """Makes events that could be part of a stream and mostly are wrong there: known ids, any owner, any order."""

    def __init__(self, random, prefix):
        self.random = random
        self.ids = {
            "messageId": {"x"},
            "toolCallId": {"x"},
            "subagentRunId": {INTRUDER},
            "stepName": {"a", "b"},
        }
        for event in prefix:
            for member, seen in self.ids.items():
                if member in event:
                    seen.add(event[member])

    def choose(self, member):
        return self.random.choice(sorted(self.ids[member]))

    def tag(self):
        return {} if self.random.random() < 0.4 else {"subagentRunId": self.choose("subagentRunId")}

    def event(self):
        message, call = {"messageId": self.choose("messageId")}, {"toolCallId": self.choose("toolCallId")}
        id_, step = {"subagentRunId": self.choose("subagentRunId")}, {"stepName": self.choose("stepName")}
        parent = {"parentSubagentRunId": self.choose("subagentRunId")}
        holder = self.random.choice([{}, {"parentMessageId": self.choose("messageId")}])
        run = {"threadId": "t", "runId": "r9"}
        return self.random.choice(
            [
                {"type": "TEXT_MESSAGE_START", **message, **self.tag()},
                {"type": "TEXT_MESSAGE_CONTENT", **message, "delta": "!", **self.tag()},
                {"type": "TEXT_MESSAGE_END", **message, **self.tag()},
                {"type": "REASONING_MESSAGE_START", **message, "role": "reasoning", **self.tag()},
                {"type": "REASONING_MESSAGE_CONTENT", **message, "delta": "!", **self.tag()},
                {"type": "REASONING_MESSAGE_END", **message, **self.tag()},
                {"type": "REASONING_START", **message, **self.tag()},
                {"type": "REASONING_END", **message, **self.tag()},
                {
                    "type": "REASONING_ENCRYPTED_VALUE",
                    "subtype": "message",
                    "entityId": self.choose("messageId"),
                    "encryptedValue": "!",
                    **self.tag(),
                },
                {
                    "type": "REASONING_ENCRYPTED_VALUE",
                    "subtype": "tool-call",
                    "entityId": self.choose("toolCallId"),
                    "encryptedValue": "!",
                    **self.tag(),
                },
                {"type": "TOOL_CALL_START", **call, "toolCallName": "n", **holder, **self.tag()},
                {"type": "TOOL_CALL_ARGS", **call, "delta": "!", **self.tag()},
                {"type": "TOOL_CALL_END", **call, **self.tag()},
                {"type": "STEP_STARTED", **step, **self.tag()},
                {"type": "STEP_FINISHED", **step, **self.tag()},
                {"type": "ACTIVITY_DELTA", **message, "activityType": "t", "patch": [], **self.tag()},
                {
                    "type": "TEXT_MESSAGE_CHUNK",
                    **self.random.choice([{}, message]),
                    "delta": "!",
                    **self.tag(),
                },
                {"type": "TEXT_MESSAGE_CHUNK", **message, "role": "system", **self.tag()},
                {
                    "type": "REASONING_MESSAGE_CHUNK",
                    **self.random.choice([{}, message]),
                    "delta": "!",
                    **self.tag(),
                },
                {"type": "TOOL_CALL_CHUNK", **self.random.choice([{}, call]), "delta": "!", **self.tag()},
                {"type": "TOOL_CALL_CHUNK", **call, "toolCallName": "n", **self.tag()},
                {"type": "SUBAGENT_STARTED", **id_, "name": "n", **self.random.choice([{}, parent])},
                {"type": "SUBAGENT_FINISHED", **id_},
                {"type": "SUBAGENT_ERROR", **id_, "message": "no"},
                {"type": "RUN_STARTED", **run},
                {"type": "RUN_FINISHED", **run},
                {"type": "RUN_ERROR", "message": "no"},
                {"type": "STATE_SNAPSHOT", "subagentRunId": None, "snapshot": 1},
                {"type": "CUSTOM", "name": "n"},
                {"type": "CUSTOM", "name": "n", "value": 1, "subagentRunId": 7},
            ]
        )


def book(ledger):
    """Return what a ledger says, but for where in the stream it was."""

    def placeless(value):
        if isinstance(value, dict):
            return {key: placeless(part) for key, part in value.items() if key not in {"event", "refusals"}}
        return [placeless(part) for part in value] if isinstance(value, list) else value

    return placeless([ledger.to_json(), ledger.messages, ledger.state])


def intruded(seed):
    random = Random(seed)
    events = Composer(random, runs=2, actions=30).events
    at = random.randrange(len(events) + 1)
    return events, at, Intruder(random, events[:at]).event()


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32))
def test_both_say_the_same_of_any_event(seed):
    events, at, intruder = intruded(seed)
    ledger, judge = Ledger(), Validator(profile="consumer")
    for event in events[:at]:
        assert ledger.feed(event) is None
        assert [finding for finding in judge.feed(event) if finding.level == "error"] == []
    errors = {finding.rule for finding in judge.feed(intruder) if finding.level == "error"}
    refusal = ledger.feed(intruder)
    assert (refusal is not None) == bool(errors), (intruder, refusal, errors)
    assert refusal is None or refusal.rule in errors, (intruder, refusal, errors)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32))
def test_what_is_refused_changes_nothing(seed):
    events, at, intruder = intruded(seed)
    ledger = Ledger()
    for event in events[:at]:
        ledger.feed(event)
    if ledger.feed(intruder) is None:
        return
    for event in [intruder, intruder, *events[at:]]:
        ledger.feed(event)
    assert [refusal.event for refusal in ledger.refusals] == [at, at + 1, at + 2]
    assert book(ledger) == book(Ledger.read(events))


@pytest.mark.parametrize(
    "path", sorted(LAW.glob("*/*.jsonl")), ids=lambda path: f"{path.parent.name}/{path.stem}"
)
def test_both_find_the_first_fault_of_a_stream(path):
    ledger, judge = Ledger(), Validator("consumer")
    for record in path.read_bytes().splitlines():
        errors = {finding.rule for finding in judge.feed(record) if finding.level == "error"}
        refusal = ledger.feed(record)
        if refusal is not None and refusal.rule in WARNED_OF:
            refusal = None
        assert (refusal is not None) == bool(errors), (refusal, errors)
        if refusal is not None:
            assert refusal.rule in errors
            return
