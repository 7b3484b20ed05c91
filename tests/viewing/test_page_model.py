"""What the page holds: whole values, for one small recording of everything."""

import json
from typing import Any

import pytest
from byline.reading import ReadError, Record
from byline.render import page
from byline.render._model import model


def lines(*events: dict[str, Any]) -> list[Record]:
    return [Record(json.dumps(event).encode(), at + 1) for at, event in enumerate(events)]


RUN_1 = [
    {
        "type": "RUN_STARTED",
        "threadId": "t",
        "runId": "r1",
        "protocolVersion": "1.0",
        "timestamp": 1000,
    },
    {
        "type": "TOOL_CALL_START",
        "toolCallId": "c",
        "toolCallName": "ask",
        "parentMessageId": "m",
        "timestamp": 1010,
    },
    {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": '{"task": "go"}', "timestamp": 1010},
    {"type": "TOOL_CALL_END", "toolCallId": "c", "timestamp": 1010},
    {
        "type": "SUBAGENT_STARTED",
        "subagentRunId": "w1",
        "name": "writer",
        "parentToolCallId": "c",
        "timestamp": 1020,
        "metadata": {"byline": {"framework": "x", "context": "fork", "inheritedState": ["files"]}},
    },
    {
        "type": "REASONING_MESSAGE_START",
        "messageId": "r",
        "role": "reasoning",
        "subagentRunId": "w1",
        "timestamp": 1030,
    },
    {"type": "REASONING_MESSAGE_CONTENT", "messageId": "r", "delta": "hm", "timestamp": 1030},
    {"type": "REASONING_MESSAGE_END", "messageId": "r", "timestamp": 1040},
    {"type": "STATE_SNAPSHOT", "snapshot": {"n": 1}, "subagentRunId": "w1", "timestamp": 1050},
    {
        "type": "SUBAGENT_FINISHED",
        "subagentRunId": "w1",
        "outcome": {"type": "suspended", "interruptIds": ["i"]},
        "timestamp": 1060,
    },
    {
        "type": "RUN_FINISHED",
        "threadId": "t",
        "runId": "r1",
        "timestamp": 1100,
        "outcome": {
            "type": "interrupt",
            "interrupts": [{"id": "i", "reason": "approval", "message": "may I?", "subagentRunId": "w1"}],
        },
        "usage": [{"model": "gpt", "inputTokens": 9, "cachedInputTokens": 4, "outputTokens": 2}],
        "metadata": {
            "byline": {
                "usage": [{"subagentRunId": "w1", "model": "gpt", "inputTokens": 9, "outputTokens": 2}]
            }
        },
    },
]
RUN_2 = [
    {
        "type": "RUN_STARTED",
        "threadId": "t",
        "runId": "r2",
        "protocolVersion": "1.0",
        "timestamp": 9000000,
    },
    {
        "type": "SUBAGENT_STARTED",
        "subagentRunId": "w1",
        "name": "writer",
        "parentToolCallId": "c",
        "timestamp": 9000010,
        "metadata": {"byline": {"framework": "x", "context": "fork", "inheritedState": ["files"]}},
    },
    {
        "type": "TEXT_MESSAGE_START",
        "messageId": "m2",
        "role": "assistant",
        "subagentRunId": "w1",
        "timestamp": 9000010,
    },
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m2", "delta": "done", "timestamp": 9000020},
    {"type": "TEXT_MESSAGE_END", "messageId": "m2", "timestamp": 9000020},
    {
        "type": "SUBAGENT_ERROR",
        "subagentRunId": "w1",
        "message": "gave up",
        "code": "tired",
        "timestamp": 9000030,
    },
    {
        "type": "TOOL_CALL_RESULT",
        "messageId": "c:r",
        "toolCallId": "c",
        "content": "no",
        "timestamp": 9000040,
    },
    {
        "type": "RUN_FINISHED",
        "threadId": "t",
        "runId": "r2",
        "outcome": {"type": "success"},
        "timestamp": 9000050,
    },
]


def test_lanes_items_runs_and_the_clock():
    shown = model(lines(*RUN_1, *RUN_2), profile="producer")
    section = shown["sections"][0]
    assert shown["events"] == 19
    assert section["lanes"] == [
        {
            "id": None,
            "name": "parent agent",
            "depth": 0,
            "status": "finished",
            "segments": [[0, 10], [11, 18]],
        },
        {
            "id": "w1",
            "name": "writer",
            "parent": 0,
            "depth": 1,
            "status": "failed",
            "segments": [[4, 9], [12, 16]],
            "call": "c",
            "contract": [["context", "fork"]],
            "more": [["framework", "x"], ["inheritedState", '["files"]']],
            "usage": [{"model": "gpt", "inputTokens": 9, "outputTokens": 2}],
        },
    ]
    assert section["items"] == [
        {
            "lane": 0,
            "kind": "call",
            "id": "c",
            "at": 1,
            "end": 17,
            "head": "ask",
            "body": '{"task": "go"}',
            "answer": "no",
        },
        {"lane": 1, "kind": "reasoning", "id": "r", "at": 5, "end": 7, "body": "hm"},
        {"lane": 1, "kind": "state", "at": 8, "head": "snapshot", "body": '{"n": 1}'},
        {"lane": 1, "kind": "end", "at": 9, "head": "suspended"},
        {"lane": 1, "kind": "interrupt", "at": 10, "head": "approval", "body": "may I?"},
        {"lane": 1, "kind": "text", "id": "m2", "at": 13, "end": 15, "body": "done"},
        {"lane": 1, "kind": "end", "at": 16, "head": "failed", "body": "gave up (tired)"},
    ]
    assert [(run["id"], run["status"], run["at"], run["end"]) for run in section["runs"]] == [
        ("r1", "interrupted", 0, 10),
        ("r2", "finished", 11, 18),
    ]
    assert section["runs"][0]["usage"] == [
        {"model": "gpt", "inputTokens": 9, "cachedInputTokens": 4, "outputTokens": 2}
    ]
    # The night between the two runs is left out.
    assert section["clock"] == [
        0, 10, 10, 10, 20, 30, 30, 40, 50, 60, 100, 100, 110, 110, 120, 120, 130, 140, 150,
    ]  # fmt: skip


def test_findings_stand_at_their_item_their_lane_or_the_section():
    shown = model(
        lines(
            {"type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0"},
            {"type": "TEXT_MESSAGE_START", "messageId": "a", "role": "assistant"},
            {"type": "TEXT_MESSAGE_CONTENT", "messageId": "a", "delta": "x"},
            {"type": "TEXT_MESSAGE_CONTENT", "messageId": "a", "delta": "y", "subagentRunId": "other"},
            {"type": "SUBAGENT_FINISHED", "subagentRunId": "nobody"},
        ),
        profile="producer",
    )
    section = shown["sections"][0]
    found = [
        (one["level"], one["rule"], one.get("at"), one.get("lane"), one.get("item"))
        for one in section["findings"]
        if one["level"] == "error"
    ]
    assert section["items"][0]["id"] == "a"
    assert [(level, at, item) for level, _rule, at, _lane, item in found[:1]] == [("error", 3, 0)]
    assert found[-1][2] is None  # the stream ended before its run did: nobody's but the section's


def test_what_is_shown_twice_stays_twice_with_a_finding_at_the_second():
    card = '<artifact title="Q3">all of it</artifact>'

    def call(id_: str, name: str) -> list[dict[str, Any]]:
        return [
            {"type": "TOOL_CALL_START", "toolCallId": id_, "toolCallName": name},
            {"type": "TOOL_CALL_END", "toolCallId": id_},
            {"type": "TOOL_CALL_RESULT", "messageId": f"{id_}:r", "toolCallId": id_, "content": card},
        ]

    shown = model(
        lines(
            {"type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0"},
            *call("c1", "ask"),
            *call("c2", "lookup_artifact"),
            {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"},
        ),
        profile="producer",
    )
    section = shown["sections"][0]
    assert [(item["id"], item["answer"]) for item in section["items"]] == [("c1", card), ("c2", card)]
    assert [(one["rule"], one["level"], one["at"], one["item"]) for one in section["findings"]] == [
        ("artifact-shown-twice", "info", 6, 1)
    ]


def test_threads_are_sections_and_numbers_go_through():
    other = [{**event, "threadId": "u"} if "threadId" in event else event for event in RUN_1]
    shown = model(lines(*RUN_1, *other), profile="producer")
    assert [section["thread"] for section in shown["sections"]] == ["t", "u"]
    assert shown["sections"][1]["numbers"] == list(range(11, 22))
    assert [one for section in shown["sections"] for one in section["findings"]] == []


def test_half_a_recording_is_shown_and_says_so():
    def broken() -> Any:
        yield from lines(*RUN_1)[:5]
        raise ReadError("the gzip data breaks off after line 5", 5)

    shown = model(broken(), profile="producer")
    assert shown["notes"] == ["the gzip data breaks off after line 5"]
    assert [lane["status"] for lane in shown["sections"][0]["lanes"]] == ["abandoned", "abandoned"]


def test_a_recording_whose_last_line_is_half_there_says_so():
    whole = lines(*RUN_1)
    half = Record(b'{"type":"TOOL_CALL_ARGS","tim', len(whole) + 1)
    shown = model([*whole, half], profile="producer")
    assert shown["events"] == len(whole) + 1
    assert shown["notes"] == ["the last line is no whole event: the recording breaks off there"]
    assert [one["rule"] for one in shown["sections"][0]["findings"]] == ["not-json"]
    assert model(whole, profile="producer")["notes"] == []


def test_nothing_to_read_is_an_error():
    def broken() -> Any:
        raise ReadError("the input is binary", 1)
        yield

    with pytest.raises(ReadError, match="the input is binary"):
        page(broken(), title="x")


@pytest.mark.parametrize(
    "line", [b"", b"null", b"7", b"[1]", b'"x"', b"{", b'{"type":7}', b'{"type":"RUN_STARTED","threadId":{}}']
)
def test_no_line_breaks_the_page(line: bytes):
    text = page([Record(line, 1), Record(None, 2), *lines(*RUN_1)], title="x")
    assert text.startswith("<!doctype html>")


def test_the_page_holds_no_markup_of_the_stream():
    evil = "</script><script>alert(1)</script><!--\u2028"
    events = json.loads(json.dumps(RUN_1).replace("writer", evil.replace("\u2028", "")).replace("hm", evil))
    text = page(lines(*events), title=evil)
    assert text.count("<script") == 2
    assert text.count("</script") == 2
    assert "<!--" not in text
    assert "http://" not in text
    assert "https://" not in text
