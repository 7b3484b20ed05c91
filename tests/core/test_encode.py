"""One line of wire JSON per event: as the official models write it, and as the protocol wants it."""

import json
from typing import Any

import pytest
from byline.events import EVENT_CLASSES, encode

EVENTS: list[dict[str, Any]] = [
    {
        "type": "RUN_STARTED",
        "timestamp": 1,
        "threadId": "t",
        "runId": "r",
        "protocolVersion": "1.0.0",
        "input": {
            "threadId": "t",
            "runId": "r",
            "state": {"kept": None},
            "messages": [{"id": "u", "role": "user", "content": "hi"}],
            "tools": [],
            "context": [],
            "forwardedProps": {},
        },
    },
    {
        "type": "SUBAGENT_STARTED",
        "subagentRunId": "a",
        "name": "alpha",
        "metadata": {"byline": {"leaf": None}},
    },
    {"type": "STEP_STARTED", "stepName": "modèle", "subagentRunId": "a"},
    {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant", "subagentRunId": "a"},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": 'a "word"\u2028\n', "subagentRunId": "a"},
    {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "ask", "parentMessageId": "m"},
    {
        "type": "TOOL_CALL_RESULT",
        "messageId": "c:result",
        "toolCallId": "c",
        "content": [{"type": "text", "text": "yes"}],
        "role": "tool",
    },
    {"type": "STATE_SNAPSHOT", "snapshot": {"a": None, "b": [1.5, True, {"c": None}]}},
    {"type": "STATE_SNAPSHOT", "snapshot": None},
    {
        "type": "STATE_DELTA",
        "delta": [{"op": "add", "path": "/a", "value": None}, {"op": "remove", "path": "/b"}],
    },
    {"type": "CUSTOM", "name": "n", "value": None},
    {"type": "RAW", "event": {"x": None}, "source": "langchain"},
    {
        "type": "SUBAGENT_FINISHED",
        "subagentRunId": "a",
        "outcome": {"type": "suspended", "interruptIds": ["i"]},
    },
    {"type": "RUN_ERROR", "message": "m", "unknown": {"kept": None}},
    {
        "type": "RUN_FINISHED",
        "threadId": "t",
        "runId": "r",
        "outcome": {
            "type": "interrupt",
            "interrupts": [{"id": "i", "reason": "interrupt", "toolCallId": "c"}],
        },
        "usage": [{"provider": "p", "model": "m", "inputTokens": 1, "outputTokens": 2}],
    },
]


@pytest.mark.parametrize("wire", EVENTS, ids=lambda wire: wire["type"])
def test_an_event_is_written_as_it_was_read(wire: dict[str, Any]):
    event = EVENT_CLASSES[wire["type"]].model_validate(wire)
    assert json.loads(encode(event)) == wire
    assert encode(event) == event.model_dump_json(by_alias=True)


def test_what_json_has_no_word_for_is_null():
    event = EVENT_CLASSES["CUSTOM"].model_validate({"name": "n", "value": [float("nan"), float("inf")]})
    assert encode(event) == '{"type":"CUSTOM","name":"n","value":[null,null]}'
