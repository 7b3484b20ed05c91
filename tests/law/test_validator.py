"""The validator as a whole: no cascades, what it takes, what it forgets, what it does beyond its limits."""

import json
import tracemalloc
from types import MappingProxyType

import pytest
from byline.events import (
    EventType,
    RunFinishedEvent,
    RunStartedEvent,
    StateSnapshotEvent,
    SubagentStartedEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
)
from byline.validator import Finding, Validator

STARTED = {"type": "RUN_STARTED", "threadId": "t1", "runId": "r1", "protocolVersion": "1.0"}
FINISHED = {"type": "RUN_FINISHED", "threadId": "t1", "runId": "r1"}


def judged(*events, profile="producer", **options):
    judge = Validator(profile, **options)
    found = [finding for event in events for finding in judge.feed(event)]
    return found + judge.finish()


def said(*events, **options):
    return [(finding.rule, finding.event) for finding in judged(*events, **options)]


def start(id_, tag=None):
    return {
        "type": "TEXT_MESSAGE_START",
        "messageId": id_,
        **({"subagentRunId": tag} if tag is not None else {}),
    }


def content(id_, tag=None):
    return {
        "type": "TEXT_MESSAGE_CONTENT",
        "messageId": id_,
        "delta": "x",
        **({"subagentRunId": tag} if tag is not None else {}),
    }


def end(id_, tag=None):
    return {
        "type": "TEXT_MESSAGE_END",
        "messageId": id_,
        **({"subagentRunId": tag} if tag is not None else {}),
    }


def announced(tag, **more):
    return {"type": "SUBAGENT_STARTED", "subagentRunId": tag, "name": "worker", **more}


# --- what a finding is -------------------------------------------------------------------------------------------


def test_a_finding_says_everything():
    found = judged(
        STARTED,
        announced("s1"),
        start("m1", "s1"),
        content("m1", "s2"),
        end("m1"),
        {"type": "SUBAGENT_FINISHED", "subagentRunId": "s1"},
        FINISHED,
    )
    assert found == [
        Finding(
            rule="text-owner",
            level="error",
            event=3,
            pointer="/subagentRunId",
            related=2,
            message="TEXT_MESSAGE_CONTENT of text message 'm1' is tagged subagent 's2', but event 2 opened it for subagent 's1'",
            law="TEXT_MESSAGE_CONTENT, TEXT_MESSAGE_END and a reopening start MUST NOT carry a subagentRunId that disagrees with the message's opener; they MAY omit it.",
            hint="tag the event as the opener is tagged, or leave the tag out",
        )
    ]
    with pytest.raises(AttributeError):
        found[0].rule = "other"


def test_a_late_announcement_is_found_where_it_was_missing():
    judge = Validator()
    assert judge.feed(STARTED) == []
    assert judge.feed(start("m1", "s1")) == []
    (finding,) = judge.feed(announced("s1"))
    assert (finding.rule, finding.event, finding.related) == ("announced-late", 1, 2)


def test_there_are_two_profiles():
    with pytest.raises(ValueError, match="profile is 'strict'; there are producer and consumer"):
        Validator("strict")


# --- no cascades -------------------------------------------------------------------------------------------------


def test_an_item_is_mentioned_once():
    wrong = (content("m1"), content("m1"), end("m1"), content("m1", "s9"))
    assert said(STARTED, *wrong, FINISHED) == [("text-not-open", 1)]


def test_an_item_refused_by_the_schema_is_not_mentioned_again():
    assert said(STARTED, {**start("m1"), "role": 7}, content("m1"), end("m1"), FINISHED) == [
        ("wrong-value", 1)
    ]
    assert said(
        STARTED,
        {"type": "STEP_STARTED", "stepName": "a", "timestamp": "x"},
        {"type": "STEP_FINISHED", "stepName": "a"},
        FINISHED,
    ) == [("wrong-value", 1)]
    lost = {"type": "SUBAGENT_STARTED", "subagentRunId": "s1"}
    child = announced("s2", parentSubagentRunId="s1")
    closed = [{"type": "SUBAGENT_FINISHED", "subagentRunId": tag} for tag in ("s2", "s1")]
    assert said(STARTED, lost, child, *closed, FINISHED) == [("missing-member", 1)]


def test_what_is_stripped_leaves_the_rest_of_the_event():
    extra = {**start("m1", "s1"), "author": "ann"}
    assert said(STARTED, extra, content("m1", "s2"), end("m1"), FINISHED, profile="consumer") == [
        ("unknown-member", 1),
        ("text-owner", 2),
    ]
    assert said(STARTED, extra, content("m1", "s2"), end("m1"), FINISHED) == [("unknown-member", 1)]
    assert said(STARTED, extra, start("m2"), end("m2"), content("m1", "s2"), FINISHED) == [
        ("unknown-member", 1)
    ]


def test_after_an_unreadable_record_it_is_not_known_what_was_opened():
    assert said(STARTED, b"{oops", content("m1"), end("m1"), FINISHED) == [("not-json", 1)]
    assert said(STARTED, start("m1"), b"{oops", FINISHED) == [("not-json", 2)]
    assert said(STARTED, b"{oops", {"type": "SUBAGENT_FINISHED", "subagentRunId": "s1"}, FINISHED) == [
        ("not-json", 1)
    ]
    assert said(b"{oops", start("m1"), end("m1"), FINISHED) == [("not-json", 0)]
    assert said(STARTED, b"{oops") == [("not-json", 1)]


def test_what_was_opened_after_an_unreadable_record_is_judged():
    assert said(STARTED, b"{oops", start("m1"), FINISHED) == [("not-json", 1), ("text-left-open", 3)]


def test_a_stream_that_begins_in_the_middle_has_one_error():
    assert said(content("m1"), end("m1"), {"type": "STEP_FINISHED", "stepName": "a"}) == [("first-event", 0)]


def test_a_failed_patch_is_said_once_and_a_snapshot_mends_it():
    delta = {"type": "STATE_DELTA", "delta": [{"op": "remove", "path": "/z"}]}
    snapshot = {"type": "STATE_SNAPSHOT", "snapshot": {"a": 1}}
    assert said(STARTED, snapshot, delta, delta, snapshot, delta, FINISHED) == [
        ("state-patch", 2),
        ("state-patch", 5),
    ]


def test_many_open_items_are_told_in_few_words():
    found = said(STARTED, *(start(f"m{number}") for number in range(50)), FINISHED)
    assert len(found) == 21
    assert {rule for rule, _ in found} == {"text-left-open"}


def test_events_after_the_end_are_one_error():
    assert said(STARTED, FINISHED, start("m1"), content("m1"), end("m1")) == [("after-finished", 2)]


# --- what it takes -----------------------------------------------------------------------------------------------

TYPED = [
    RunStartedEvent(type=EventType.RUN_STARTED, thread_id="t1", run_id="r1", protocol_version="1.0"),
    SubagentStartedEvent(type=EventType.SUBAGENT_STARTED, subagent_run_id="s1", name="worker"),
    TextMessageStartEvent(type=EventType.TEXT_MESSAGE_START, message_id="m1", subagent_run_id="s1"),
    TextMessageEndEvent(type=EventType.TEXT_MESSAGE_END, message_id="m1", subagent_run_id="s2"),
    RunFinishedEvent(type=EventType.RUN_FINISHED, thread_id="t1", run_id="r1"),
]


def test_bytes_text_mappings_and_typed_events_are_the_same():
    lines = [event.model_dump_json(by_alias=True) for event in TYPED]
    expected = [("text-owner", 3), ("subagent-left-open", 4)]
    assert said(*TYPED) == expected
    assert said(*lines) == expected
    assert said(*(line.encode() for line in lines)) == expected
    assert said(*map(json.loads, lines)) == expected
    assert said(*(MappingProxyType(json.loads(line)) for line in lines)) == expected


class Hostile(dict):
    def __iter__(self):
        raise OSError("no")

    keys = items = __iter__


@pytest.mark.parametrize(
    "event",
    [None, 5, [], object(), {"type": object()}, {1: 2}, {"type": "CUSTOM", "name": "a.b", "value": {1, 2}}, Hostile(a=1), bytearray(b"{}"),
     {"type": "CUSTOM", "name": "a.b", "value": float("nan")}, {"type": "CUSTOM", "name": "a.b", "value": "\ud800"}],
    ids=["none", "number", "list", "object", "object inside", "number as key", "set", "hostile", "bytearray", "nan", "surrogate"],
)  # fmt: skip
def test_what_is_no_event_is_a_finding(event):
    judge = Validator()
    judge.feed(STARTED)
    (finding,) = judge.feed(event)
    assert finding.rule in {"not-json", "not-an-event"}
    assert finding.event == 1


def test_a_circle_is_a_finding():
    circle = {"type": "CUSTOM", "name": "a.b"}
    circle["value"] = circle
    assert [rule for rule, _ in said(STARTED, circle, FINISHED)] == ["not-json"]


def test_nothing_that_is_fed_is_changed():
    snapshot = {"type": "STATE_SNAPSHOT", "snapshot": {"a": [1]}}
    typed = StateSnapshotEvent(type=EventType.STATE_SNAPSHOT, snapshot={"a": [1]})
    delta = {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/a/-", "value": 2}]}
    assert judged(STARTED, snapshot, delta, typed, delta, FINISHED) == []
    assert snapshot["snapshot"] == typed.snapshot == {"a": [1]}


def test_an_empty_list_of_findings_is_the_callers():
    judge = Validator()
    judge.feed(STARTED).append("mine")
    assert judge.feed(FINISHED) == []


# --- limits ------------------------------------------------------------------------------------------------------


def test_long_ids_are_told_apart_and_not_kept():
    long = "m" * 1_000_000
    tag = "s" * 1_000_000
    events = (STARTED, announced(tag), start(long + "1", tag), start(long + "2", tag), content(long + "1", tag), content(long + "2", tag + "x"), end(long + "1", tag), end(long + "2"), {"type": "SUBAGENT_FINISHED", "subagentRunId": tag}, FINISHED)  # fmt: skip
    found = judged(*events)
    assert [(finding.rule, finding.event, finding.related) for finding in found] == [("text-owner", 5, 3)]
    assert len(found[0].message) < 400
    judge = Validator()
    tracemalloc.start()
    try:
        judge.feed(STARTED)
        for number in range(20):
            judge.feed(json.dumps(start(long + str(number), tag + str(number))))
        assert tracemalloc.get_traced_memory()[0] < 500_000
    finally:
        tracemalloc.stop()


def test_beyond_the_limit_of_open_items_the_run_is_not_followed():
    events = (
        STARTED,
        start("m1"),
        start("m2"),
        start("m3"),
        content("m3"),
        end("m3"),
        end("m1"),
        end("m2"),
        FINISHED,
    )
    assert said(*events, max_open=2) == [("beyond-limits", 3)]
    steps = [{"type": "STEP_STARTED", "stepName": str(number)} for number in range(4)]
    closed = [{"type": "STEP_FINISHED", "stepName": str(number)} for number in range(4)]
    assert said(STARTED, *steps, *closed, FINISHED, max_open=2) == [("beyond-limits", 3)]
    assert said(STARTED, *steps, *closed, FINISHED, max_open=4) == []


def test_a_run_forgets_what_was_open_and_who_was_who():
    second = {**STARTED, "runId": "r2"}
    events = (
        STARTED,
        announced("s1"),
        start("m1", "s1"),
        {"type": "RUN_ERROR", "message": "x"},
        second,
        start("m2", "s1"),
        end("m2"),
        {**FINISHED, "runId": "r2"},
    )
    assert said(*events) == []


def test_results_of_chunked_calls_need_no_end():
    chunk = {"type": "TOOL_CALL_CHUNK", "toolCallId": "c1", "toolCallName": "f", "subagentRunId": "s1"}
    result = {"type": "TOOL_CALL_RESULT", "messageId": "m1", "toolCallId": "c1", "content": "x"}
    assert said(STARTED, chunk, result, FINISHED) == []


def test_an_empty_id_is_an_id():
    chunk = {"type": "TEXT_MESSAGE_CHUNK", "delta": "x"}
    assert said(STARTED, {**chunk, "messageId": ""}, chunk, {**chunk, "messageId": ""}, FINISHED) == []
    assert said(STARTED, start("", ""), content("", ""), end(""), FINISHED) == []
    assert said(STARTED, start("", ""), content("", "s1"), end(""), FINISHED) == [("text-owner", 2)]


def test_long_ids_of_chunks_are_ids_too():
    chunk = {"type": "TEXT_MESSAGE_CHUNK", "delta": "x", "messageId": "m" * 500, "subagentRunId": "s" * 500}
    assert said(STARTED, chunk, chunk, FINISHED) == []
    assert said(STARTED, chunk, {**chunk, "subagentRunId": "s" * 501}, FINISHED) == [("text-owner", 2)]
    assert said(STARTED, chunk, {**chunk, "messageId": "m" * 501}, FINISHED) == []


def test_many_faults_of_one_event_are_told_in_few_words():
    messages = [{"id": f"m{number}", "role": "user", "content": "x", "zz": 1} for number in range(30)]
    snapshot = {
        "type": "MESSAGES_SNAPSHOT",
        "messages": [*messages, {"id": 5, "role": "user", "content": "x"}],
    }
    found = judged(STARTED, snapshot, FINISHED, profile="consumer")
    assert [finding.rule for finding in found] == ["wrong-value", *["unknown-member"] * 9]
    assert found[-1].message == "the schema has no messages[8].zz here; and 21 more in this event"
    flood = {**start("m1"), **{f"x{number}": 1 for number in range(2000)}}
    assert said(STARTED, flood, content("m1"), end("m1"), FINISHED) == [("beyond-limits", 1)]


def test_everything_that_can_be_left_out_is():
    messages = [
        {"id": f"m{number}", "role": "assistant", "content": "x", "subagentRunId": "s1", "zz": 1}
        for number in range(30)
    ]
    snapshot = {"type": "MESSAGES_SNAPSHOT", "messages": messages}
    found = judged(STARTED, snapshot, start("m29", "s2"), end("m29"), FINISHED, profile="consumer")
    assert [(finding.rule, finding.event) for finding in found if finding.level == "error"] == [
        ("text-owner", 2)
    ]
