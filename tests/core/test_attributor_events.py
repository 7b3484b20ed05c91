"""Every signal's event whole, field by field, and what becomes of signals that come late, twice or out of nowhere."""

import json

import pytest
from ag_ui.core import AssistantMessage, FunctionCall, ToolCall, ToolMessage, UserMessage
from byline import signals as s
from byline.attributor import Attributor
from byline.events import encode
from test_attributor import SUCCESS, SUSPENDED, after_start, finished, started, stream, text


def result(call, content, **more):
    return {
        "type": "TOOL_CALL_RESULT",
        "messageId": f"{call}:result",
        "toolCallId": call,
        "content": content,
        "role": "tool",
        **more,
    }


def test_every_event_has_its_owner_its_time_and_its_words():
    signals = [
        s.Opened("k", "né\udc00", "né-1", None, "c\udc00", "dé\udc00", {"mode": "tool"}),
        s.StepStarted("k", "é\udc00"),
        s.StepStarted("k", "second"),
        s.Reasoning("k", "m", "hm"),
        s.Reasoning("k", "m", "é\udc00"),
        s.Text("k", "m", "é\udc00"),
        s.Call("k", "m", "c1", "fé\udc00"),
        s.Arguments("k", "m", "c1", '{"a":"é\udc00"}'),
        s.Arguments("k", "m", "c1", ""),
        s.ModelOver("k", "m"),
        s.Result("k", "c1", "é\udc00"),
        s.Activity("k", "plan", "PLAN\udc00", {"é": "\udc00"}),
        s.StepFinished("k", "é\udc00"),
        s.StateIs("k", {"é": "\udc00"}),
        s.StateChanged("k", {"x": 1}),
        s.Custom("k", "né\udc00", {"é": "\udc00"}),
        s.Raw("k", {"é": "\udc00"}, "sé\udc00"),
        s.Raw("k", 1),
        s.Closed("k", {"é": "\udc00"}, {"why": "é\udc00"}),
        s.Opened("f", "f"),
        s.Failed("f", "é\udc00", "E\udc00", {"why": "é"}),
        s.Opened("g", "g"),
        s.Failed("g", "no code"),
        s.RunFinished({"é": "\udc00"}, metadata={"é": "\udc00"}),
    ]
    ticks = iter(range(1, 100))
    events = stream(*signals, clock=lambda: next(ticks), parent_run_id="before")
    assert [event.pop("timestamp") for event in events] == list(range(1, len(events) + 1))
    tag = {"subagentRunId": "né-1"}
    assert events == [
        {
            "type": "RUN_STARTED",
            "threadId": "t",
            "runId": "r",
            "parentRunId": "before",
            "protocolVersion": "1.0",
        },
        {
            "type": "SUBAGENT_STARTED",
            "subagentRunId": "né-1",
            "name": "né\ufffd",
            "description": "dé\ufffd",
            "parentToolCallId": "c\ufffd",
            "metadata": {"byline": {"mode": "tool"}},
        },
        {"type": "STEP_STARTED", "stepName": "é\ufffd", **tag},
        {"type": "STEP_STARTED", "stepName": "second", **tag},
        {"type": "REASONING_START", "messageId": "m:reasoning", **tag},
        {"type": "REASONING_MESSAGE_START", "messageId": "m:reasoning", "role": "reasoning", **tag},
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": "m:reasoning", "delta": "hm", **tag},
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": "m:reasoning", "delta": "é\ufffd", **tag},
        {"type": "REASONING_MESSAGE_END", "messageId": "m:reasoning", **tag},
        {"type": "REASONING_END", "messageId": "m:reasoning", **tag},
        *text("m", "é\ufffd", tag="né-1"),
        {
            "type": "TOOL_CALL_START",
            "toolCallId": "c1",
            "toolCallName": "fé\ufffd",
            "parentMessageId": "m",
            **tag,
        },
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": '{"a":"é\ufffd"}', **tag},
        {"type": "TOOL_CALL_END", "toolCallId": "c1", **tag},
        result("c1", "é\ufffd", **tag),
        {
            "type": "ACTIVITY_SNAPSHOT",
            "messageId": "plan",
            "activityType": "PLAN\ufffd",
            "content": {"é": "\ufffd"},
            **tag,
        },
        {"type": "STEP_FINISHED", "stepName": "é\ufffd", **tag},
        {"type": "STATE_SNAPSHOT", "snapshot": {"é": "\ufffd"}, **tag},
        {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/x", "value": 1}], **tag},
        {"type": "CUSTOM", "name": "né\ufffd", "value": {"é": "\ufffd"}, **tag},
        {"type": "RAW", "event": {"é": "\ufffd"}, "source": "sé\ufffd", **tag},
        {"type": "RAW", "event": 1, **tag},
        {"type": "STEP_FINISHED", "stepName": "second", **tag},
        {
            "type": "SUBAGENT_FINISHED",
            **tag,
            "result": {"é": "\ufffd"},
            "metadata": {"byline": {"why": "é\ufffd"}},
        },
        started("f", "f"),
        {
            "type": "SUBAGENT_ERROR",
            "subagentRunId": "f",
            "message": "é\ufffd",
            "code": "E\ufffd",
            "metadata": {"byline": {"why": "é"}},
        },
        started("g", "g"),
        {"type": "SUBAGENT_ERROR", "subagentRunId": "g", "message": "no code"},
        finished(SUCCESS, result={"é": "\ufffd"}, metadata={"byline": {"é": "\ufffd"}}),
    ]


def test_a_run_that_fails_ends_at_its_time_too():
    events = stream(s.RunFailed("b\udc00", "E\udc00"), clock=lambda: 7)
    assert events[1:] == [{"type": "RUN_ERROR", "message": "b\ufffd", "code": "E\ufffd", "timestamp": 7}]


def test_of_the_optional_fields_none_is_written_where_nothing_was_said():
    assert after_start(s.Question(None, "q", "approval"), s.RunFinished(asked=["q", "q"])) == [
        finished({"type": "interrupt", "interrupts": [{"id": "q", "reason": "approval"}]})
    ]


def test_an_interrupt_says_all_that_is_known_of_its_question():
    assert after_start(
        s.Opened("k", "alpha"),
        s.Question(
            "k",
            "q\udc00",
            "r\udc00",
            "May I\udc00?",
            "c",
            {"type": "object", "é": "\udc00"},
            {"risk": "\udc00"},
            "2026-01-01T00:00:00Z",
        ),
        s.Question("k", "q\udc00", "the first counts"),
        s.RunFinished(asked=["q\udc00"]),
    ) == [
        started("k", "alpha"),
        {
            "type": "SUBAGENT_FINISHED",
            "subagentRunId": "k",
            "outcome": {"type": "suspended", "interruptIds": ["q\ufffd"]},
        },
        finished(
            {
                "type": "interrupt",
                "interrupts": [
                    {
                        "id": "q\ufffd",
                        "reason": "r\ufffd",
                        "message": "May I\ufffd?",
                        "toolCallId": "c",
                        "responseSchema": {"type": "object", "é": "\ufffd"},
                        "expiresAt": "2026-01-01T00:00:00Z",
                        "metadata": {"risk": "\ufffd"},
                        "subagentRunId": "k",
                    }
                ],
            }
        ),
    ]


def test_a_call_of_an_earlier_run_keeps_its_id_from_the_question_that_names_it_on():
    assert after_start(
        s.Opened("k", "alpha"),
        s.Question("k", "q", "approval", call="c"),
        s.Call(None, "m", "c", "f"),
        s.RunFinished(asked=["q"]),
    ) == [
        started("k", "alpha"),
        {"type": "TOOL_CALL_START", "toolCallId": "c#2", "toolCallName": "f", "parentMessageId": "m"},
        {
            "type": "SUBAGENT_FINISHED",
            "subagentRunId": "k",
            "outcome": {"type": "suspended", "interruptIds": ["q"]},
        },
        {"type": "TOOL_CALL_END", "toolCallId": "c#2"},
        finished(
            {
                "type": "interrupt",
                "interrupts": [{"id": "q", "reason": "approval", "toolCallId": "c", "subagentRunId": "k"}],
            }
        ),
    ]


def test_an_id_that_is_taken_gets_its_owner_and_then_the_next_free_number():
    assert after_start(
        s.Text(None, "m", "1"),
        s.Text("a", "m", "2"),
        s.Call(None, "x", "m", "f"),
        s.Call(None, "y", "m", "f"),
        s.Call(None, "z", "m", "f"),
        s.Activity("a", "m", "PLAN", {}),
        s.Activity("a", "m", "PLAN", {"step": 2}),
        s.Result("b", "m", "nobody reported that call"),
        s.Opened("c", "gamma", spawned_by=s.CallRef("b", "m")),
    ) == [
        *text("m", "1", end=False),
        started("a", "a"),
        *text("m@a", "2", tag="a", end=False),
        {"type": "TOOL_CALL_START", "toolCallId": "m#2", "toolCallName": "f", "parentMessageId": "x"},
        {"type": "TOOL_CALL_START", "toolCallId": "m#3", "toolCallName": "f", "parentMessageId": "y"},
        {"type": "TOOL_CALL_START", "toolCallId": "m#4", "toolCallName": "f", "parentMessageId": "z"},
        {
            "type": "ACTIVITY_SNAPSHOT",
            "messageId": "m@a#2",
            "activityType": "PLAN",
            "content": {},
            "subagentRunId": "a",
        },
        {
            "type": "ACTIVITY_SNAPSHOT",
            "messageId": "m@a#2",
            "activityType": "PLAN",
            "content": {"step": 2},
            "subagentRunId": "a",
        },
        started("b", "b"),
        result("m@b", "nobody reported that call", subagentRunId="b"),
        started("c", "gamma", parentToolCallId="m@b"),
    ]


def test_whoever_is_named_first_by_a_call_is_announced_before_it_is():
    assert after_start(s.Opened("child", "c", spawned_by=s.CallRef("mother", "c1"))) == [
        started("mother", "mother"),
        started("child", "c", parentToolCallId="c1"),
    ]


def test_an_invocation_is_neither_its_own_parent_nor_the_child_of_its_own_call():
    assert after_start(s.Opened("k", "alpha", parent="k", spawned_by=s.CallRef("k", "c"))) == [
        started("k", "alpha")
    ]


def test_the_parent_agent_is_neither_closed_nor_failed():
    assert after_start(s.Closed(None), s.Failed(None, "x"), s.Text(None, "m", "on"), s.RunFinished()) == [
        *text("m", "on"),
        finished(SUCCESS),
    ]


def test_arguments_that_overtake_their_call_open_one_without_a_name():
    assert after_start(
        s.Opened("k", "alpha"),
        s.Arguments("k", "m", "c", "{"),
        s.Call("k", "m", "c", "too late to name it"),
        s.Arguments("k", "m", "c", "}"),
        s.ModelOver("k", "m"),
    ) == [
        started("k", "alpha"),
        {
            "type": "TOOL_CALL_START",
            "toolCallId": "c",
            "toolCallName": "",
            "parentMessageId": "m",
            "subagentRunId": "k",
        },
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{", "subagentRunId": "k"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "}", "subagentRunId": "k"},
        {"type": "TOOL_CALL_END", "toolCallId": "c", "subagentRunId": "k"},
    ]


def test_arguments_after_their_calls_end_reopen_it_and_it_ends_with_its_owner():
    assert after_start(
        s.Opened("k", "alpha"),
        s.Call("k", "m", "c", "f"),
        s.ModelOver("k", "m"),
        s.Arguments("k", "m", "c", "{}"),
        s.Closed("k"),
    ) == [
        started("k", "alpha"),
        {
            "type": "TOOL_CALL_START",
            "toolCallId": "c",
            "toolCallName": "f",
            "parentMessageId": "m",
            "subagentRunId": "k",
        },
        {"type": "TOOL_CALL_END", "toolCallId": "c", "subagentRunId": "k"},
        {
            "type": "TOOL_CALL_START",
            "toolCallId": "c",
            "toolCallName": "f",
            "parentMessageId": "m",
            "subagentRunId": "k",
        },
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{}", "subagentRunId": "k"},
        {"type": "TOOL_CALL_END", "toolCallId": "c", "subagentRunId": "k"},
        {"type": "SUBAGENT_FINISHED", "subagentRunId": "k"},
    ]


def test_a_model_run_that_was_over_may_be_over_again_and_one_that_said_nothing_leaves_nothing():
    assert after_start(
        s.Text(None, "m", "x"), s.ModelOver(None, "m"), s.ModelOver(None, "m"), s.ModelOver(None, "silent")
    ) == text("m", "x")


def test_messages_close_in_the_order_of_their_latest_opening():
    assert after_start(
        s.Opened("k", "alpha"),
        s.Text("k", "m1", "1"),
        s.ModelOver("k", "m1"),
        s.Text("k", "m2", "2"),
        s.Text("k", "m1", "3"),
        s.Closed("k"),
    ) == [
        started("k", "alpha"),
        *text("m1", "1", tag="k"),
        *text("m2", "2", tag="k", end=False),
        *text("m1", "3", tag="k", end=False),
        {"type": "TEXT_MESSAGE_END", "messageId": "m2", "subagentRunId": "k"},
        {"type": "TEXT_MESSAGE_END", "messageId": "m1", "subagentRunId": "k"},
        {"type": "SUBAGENT_FINISHED", "subagentRunId": "k"},
    ]


def test_what_had_ended_does_not_keep_the_rest_from_being_ended():
    assert after_start(
        s.Opened("mid", "mid"), s.Opened("leaf", "leaf", parent="mid"), s.Closed("leaf"), s.RunFinished()
    ) == [
        started("mid", "mid"),
        started("leaf", "leaf", parentSubagentRunId="mid"),
        {"type": "SUBAGENT_FINISHED", "subagentRunId": "leaf"},
        {
            "type": "SUBAGENT_ERROR",
            "subagentRunId": "mid",
            "message": "still at work when the run ended",
            "code": "cancelled",
        },
        finished(SUCCESS),
    ]


@pytest.mark.parametrize(
    ("end", "code", "message"),
    [
        (
            s.RunFinished(),
            "interrupt_lost",
            "its question was swallowed by the caller, and the run went on without an answer",
        ),
        (s.RunFailed("boom"), "cancelled", "cut off because the run failed"),
        (s.RunCancelled(), "cancelled", "the run was cancelled"),
        (s.RunCancelled("stopped by ann"), "cancelled", "stopped by ann"),
    ],
)
def test_whatever_ends_an_invocation_says_why(end, code, message):
    assert after_start(s.Opened("k", "alpha"), s.Question("k", "q", "approval"), end)[1] == {
        "type": "SUBAGENT_ERROR",
        "subagentRunId": "k",
        "message": message,
        "code": code,
    }


def test_the_clients_history_says_which_calls_are_answered_and_whose_they_are():
    def call(id_):
        return ToolCall(id=id_, function=FunctionCall(name="f", arguments="{}"))

    history = [
        UserMessage(id="u", role="user", content="hi"),
        AssistantMessage(id="m", role="assistant", tool_calls=[call("c1"), call("c2")]),
        ToolMessage(id="t", role="tool", tool_call_id="c1", content="done"),
    ]
    assert after_start(
        s.Result(None, "c1", "answered again by a framework that runs the task again"),
        s.Result(None, "c2", "answered"),
        s.Text(None, "t", "the id of a tool's message is taken too"),
        history=history,
    ) == [
        result("c2", "answered"),
        *text("t#2", "the id of a tool's message is taken too", end=False),
    ]


def test_what_was_observed_is_told_by_kind_and_owner_and_the_latest_counts():
    metadata = {
        "byline": {
            "mine": True,
            "doubts": [
                {"what": "root"},
                {"subagentRunId": "alpha-1", "what": "new"},
            ],
            "lost": [{"subagentRunId": "alpha-1", "n": [1]}],
        }
    }
    assert after_start(
        s.Opened("k", "alpha", "alpha-1"),
        s.Observed(None, "doubts", {"what": "root"}),
        s.Observed("k", "doubts", {"what": "old"}),
        s.Observed("k", "doubts", {"what": "new"}),
        s.Observed("k", "lost", {"n": {1}}),
        s.Closed("k"),
        s.RunFinished(metadata={"mine": True}),
    )[-1] == finished(SUCCESS, metadata=metadata)


def test_an_answer_of_parts_that_nobody_knows_is_their_json_in_their_own_letters():
    assert after_start(s.Result(None, "c", [{"type": "né"}])) == [result("c", '[{"type": "né"}]')]


def test_the_public_ids_can_be_asked_for():
    attributor = Attributor("t", "r")
    attributor.feed(s.Call(None, "m", "c", "f"))
    attributor.feed(s.Opened("k", "alpha", "alpha-1"))
    attributor.feed(s.Call("k", "m2", "c", "f"))
    assert (attributor.public_call(None, "c"), attributor.public_call("k", "c")) == ("c", "c@alpha-1")
    assert [attributor.subagent_run_id(owner) for owner in (None, "k", "unknown")] == [None, "alpha-1", None]


def test_the_first_feed_brings_the_start_and_the_last_says_that_it_is_over():
    attributor = Attributor("t", "r")
    assert attributor.over is False
    first = [json.loads(encode(event)) for event in attributor.feed(s.Suspended("k"))]
    last = [json.loads(encode(event)) for event in attributor.feed(s.RunFinished())]
    assert first == [
        {"type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0"},
        started("k", "k"),
    ]
    assert last == [
        {"type": "SUBAGENT_FINISHED", "subagentRunId": "k", "outcome": SUSPENDED},
        finished(SUCCESS),
    ]
    assert attributor.over is True
    assert attributor.start() == []


def test_the_words_of_a_moment_are_those_that_are_fed_one_by_one():
    ticks = iter(range(1, 100))
    attributor = Attributor("t", "r", clock=lambda: next(ticks))
    attributor.start()
    failed = []
    said = [
        s.Words(s.Text, "a", "m", ["", "one ", "", "é\udc00", 7, "two "]),
        s.Words(s.Reasoning, "a", "m", ["hm ", "hmm "]),
        s.Words(s.Text, None, "m", ["three "]),
        s.Words(s.Text, "a", "m", ["", "four ", "five "]),
    ]
    events = attributor.feed_words(said, lambda kind, fault: failed.append((kind, type(fault))))
    seen = [json.loads(encode(event)) for event in events]
    a, reasoning = {"subagentRunId": "a"}, {"messageId": "m:reasoning", "subagentRunId": "a"}
    assert seen == [
        {**started("a", "a"), "timestamp": 3},
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant", "timestamp": 4, **a},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "one ", "timestamp": 5, **a},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "é\ufffd", "timestamp": 7, **a},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "two ", "timestamp": 7, **a},
        {"type": "TEXT_MESSAGE_END", "messageId": "m", "timestamp": 8, **a},
        {"type": "REASONING_START", "timestamp": 9, **reasoning},
        {"type": "REASONING_MESSAGE_START", "role": "reasoning", "timestamp": 10, **reasoning},
        {"type": "REASONING_MESSAGE_CONTENT", "delta": "hm ", "timestamp": 11, **reasoning},
        {"type": "REASONING_MESSAGE_CONTENT", "delta": "hmm ", "timestamp": 13, **reasoning},
        {"type": "TEXT_MESSAGE_START", "messageId": "m#2", "role": "assistant", "timestamp": 15},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m#2", "delta": "three ", "timestamp": 16},
        {"type": "REASONING_MESSAGE_END", "timestamp": 19, **reasoning},
        {"type": "REASONING_END", "timestamp": 20, **reasoning},
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant", "timestamp": 21, **a},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "four ", "timestamp": 22, **a},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "five ", "timestamp": 23, **a},
    ]
    assert failed == [(s.Text, AttributeError)]
    attributor.feed(s.RunFinished())
    assert attributor.feed_words(said, lambda *_: None) == []
    assert attributor.dropped == 12
    attributor.feed_words(said[1:2], lambda *_: None)
    assert attributor.dropped == 14
