"""One record read alone: the event that a consumer makes of it, or why it must reject it."""

import pytest
from byline.events import StepStartedEvent
from byline.rules import RULES
from byline.validator import Finding
from byline.validator._alone import read_alone

STEP = {"type": "STEP_STARTED", "stepName": "s"}


@pytest.mark.parametrize(
    "record",
    [
        STEP,
        b'{"type":"STEP_STARTED","stepName":"s"}',
        '{"type":"STEP_STARTED","stepName":"s"}',
        StepStartedEvent(step_name="s"),
        {**STEP, "extra": 1},
        {**STEP, "extra": {"more": [1]}, "another": 2},
    ],
    ids=["mapping", "bytes", "text", "typed", "stripped", "stripped twice"],
)
def test_what_can_be_read_is_read(record):
    assert read_alone(record) == (STEP, None)


def test_of_a_type_that_nobody_knows_nothing_is_left():
    assert read_alone({"type": "STEP_PAUSED", "stepName": "s"}) == (None, None)


@pytest.mark.parametrize(
    ("record", "rule", "pointer", "message"),
    [
        ({"type": "STEP_STARTED"}, "missing-member", "", "stepName is missing"),
        (
            {"extra": 1, "type": "STEP_STARTED", "stepName": 5},
            "wrong-value",
            "/stepName",
            "stepName is 5, where the schema has a string",
        ),
        (
            {**STEP, "subagentRunId": None},
            "null-tag",
            "/subagentRunId",
            "subagentRunId is null, which does not stand for absence",
        ),
        (
            b"[" * 300,
            "beyond-limits",
            "",
            "the record cannot be read: it is nested more than 200 levels deep",
        ),
        (
            b'{"type":"RAW","event":1e999}',
            "not-json",
            "",
            "the record cannot be read: the number at /event is beyond the range of a double",
        ),
    ],
)
def test_what_must_be_rejected_says_why(record, rule, pointer, message):
    row = RULES[rule]
    assert read_alone(record) == (
        None,
        Finding(rule, "error", -1, pointer, None, message, row.law, row.hint),
    )
