"""What each promise of the attributor looks like on the wire."""

import json
import tracemalloc

import pytest
from ag_ui.core import AssistantMessage, FunctionCall, TokenUsage, ToolCall, ToolMessage, UserMessage
from byline import signals as s
from byline.attributor import Attributor, native_ids
from byline.events import encode

RUN = {"type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0"}


def stream(*signals, **options):
    attributor = Attributor("t", "r", **options)
    events = attributor.start()
    for signal in signals:
        events += attributor.feed(signal)
    return [json.loads(encode(event)) for event in events]


def after_start(*signals, **options):
    events = stream(*signals, **options)
    assert events[0] == RUN
    return events[1:]


def started(id_, name, **more):
    return {"type": "SUBAGENT_STARTED", "subagentRunId": id_, "name": name, **more}


def text(id_, *deltas, tag=None, end=True):
    tagged = {} if tag is None else {"subagentRunId": tag}
    return [
        {"type": "TEXT_MESSAGE_START", "messageId": id_, "role": "assistant", **tagged},
        *({"type": "TEXT_MESSAGE_CONTENT", "messageId": id_, "delta": d, **tagged} for d in deltas),
        *([{"type": "TEXT_MESSAGE_END", "messageId": id_, **tagged}] if end else []),
    ]


def finished(outcome, **more):
    return {"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": outcome, **more}


SUCCESS = {"type": "success"}


class Odd:
    def __str__(self):
        raise ValueError


def test_two_models_that_speak_at_once_under_one_owner_are_two_messages():
    assert after_start(
        s.Text(None, "m1", "alpha "),
        s.Text(None, "m2", "beta "),
        s.Text(None, "m1", "one"),
        s.Text(None, "m2", "two"),
    ) == [
        {"type": "TEXT_MESSAGE_START", "messageId": "m1", "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "alpha "},
        {"type": "TEXT_MESSAGE_START", "messageId": "m2", "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m2", "delta": "beta "},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "one"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m2", "delta": "two"},
    ]


def test_an_invocation_carries_its_parent_its_call_and_the_message_that_held_the_call():
    assert after_start(
        s.Call(None, "m1", "c1", "ask"),
        s.Arguments(None, "m1", "c1", '{"q":1}'),
        s.ModelOver(None, "m1"),
        s.Opened("k", "alpha", "alpha-1", None, s.CallRef(None, "c1"), "asks", {"mode": "tool"}),
        s.Text("k", "m2", "hi"),
        s.ModelOver("k", "m2"),
        s.Closed("k", "done"),
        s.Result(None, "c1", "done"),
        s.RunFinished(),
    ) == [
        {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "ask", "parentMessageId": "m1"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": '{"q":1}'},
        {"type": "TOOL_CALL_END", "toolCallId": "c1"},
        started(
            "alpha-1",
            "alpha",
            description="asks",
            parentToolCallId="c1",
            parentMessageId="m1",
            metadata={"byline": {"mode": "tool"}},
        ),
        *text("m2", "hi", tag="alpha-1"),
        {"type": "SUBAGENT_FINISHED", "subagentRunId": "alpha-1", "result": "done"},
        {
            "type": "TOOL_CALL_RESULT",
            "messageId": "c1:result",
            "toolCallId": "c1",
            "content": "done",
            "role": "tool",
        },
        finished(SUCCESS),
    ]


def test_a_signal_that_overtakes_its_opening_announces_the_invocation_once():
    assert after_start(s.Text("k", "m", "early"), s.Opened("k", "alpha", "alpha-1")) == [
        started("k", "k"),
        *text("m", "early", tag="k", end=False),
    ]


def test_an_unknown_parent_is_announced_before_its_child():
    assert after_start(s.Opened("child", "c", parent="mother"), s.Opened("mother", "m")) == [
        started("mother", "mother"),
        started("child", "c", parentSubagentRunId="mother"),
    ]


def test_text_after_its_owners_end_reopens_the_message_under_that_owner_and_is_closed_before_the_run():
    assert after_start(
        s.Opened("k", "alpha"),
        s.Text("k", "m", "one"),
        s.Closed("k"),
        s.Text("k", "m", "two"),
        s.RunFinished(),
    ) == [
        started("k", "alpha"),
        *text("m", "one", tag="k"),
        {"type": "SUBAGENT_FINISHED", "subagentRunId": "k"},
        *text("m", "two", tag="k"),
        finished(SUCCESS),
    ]


def test_what_an_owner_opened_is_closed_before_the_owner():
    assert after_start(
        s.Opened("k", "alpha"),
        s.StepStarted("k", "think"),
        s.Reasoning("k", "m", "hm"),
        s.Call("k", "m", "c", "f"),
        s.Failed("k", "boom", "E"),
    ) == [
        started("k", "alpha"),
        {"type": "STEP_STARTED", "stepName": "think", "subagentRunId": "k"},
        {"type": "REASONING_START", "messageId": "m:reasoning", "subagentRunId": "k"},
        {
            "type": "REASONING_MESSAGE_START",
            "messageId": "m:reasoning",
            "role": "reasoning",
            "subagentRunId": "k",
        },
        {
            "type": "REASONING_MESSAGE_CONTENT",
            "messageId": "m:reasoning",
            "delta": "hm",
            "subagentRunId": "k",
        },
        {"type": "REASONING_MESSAGE_END", "messageId": "m:reasoning", "subagentRunId": "k"},
        {"type": "REASONING_END", "messageId": "m:reasoning", "subagentRunId": "k"},
        {
            "type": "TOOL_CALL_START",
            "toolCallId": "c",
            "toolCallName": "f",
            "parentMessageId": "m",
            "subagentRunId": "k",
        },
        {"type": "TOOL_CALL_END", "toolCallId": "c", "subagentRunId": "k"},
        {"type": "STEP_FINISHED", "stepName": "think", "subagentRunId": "k"},
        {"type": "SUBAGENT_ERROR", "subagentRunId": "k", "message": "boom", "code": "E"},
    ]


def test_one_part_of_a_message_is_open_at_a_time_and_a_second_thought_is_a_message_of_its_own():
    kinds = [
        (event["type"], event["messageId"])
        for event in after_start(
            s.Reasoning(None, "m", "a"),
            s.Text(None, "m", "b"),
            s.Reasoning(None, "m", "c"),
            s.ModelOver(None, "m"),
        )
    ]
    assert kinds == [
        ("REASONING_START", "m:reasoning"),
        ("REASONING_MESSAGE_START", "m:reasoning"),
        ("REASONING_MESSAGE_CONTENT", "m:reasoning"),
        ("REASONING_MESSAGE_END", "m:reasoning"),
        ("REASONING_END", "m:reasoning"),
        ("TEXT_MESSAGE_START", "m"),
        ("TEXT_MESSAGE_CONTENT", "m"),
        ("TEXT_MESSAGE_END", "m"),
        ("REASONING_START", "m:reasoning-2"),
        ("REASONING_MESSAGE_START", "m:reasoning-2"),
        ("REASONING_MESSAGE_CONTENT", "m:reasoning-2"),
        ("REASONING_MESSAGE_END", "m:reasoning-2"),
        ("REASONING_END", "m:reasoning-2"),
    ]


def test_colliding_call_ids_get_public_ids_that_every_later_mention_follows():
    events = after_start(
        s.Opened("a", "alpha", "alpha-1"),
        s.Opened("b", "beta", "beta-1"),
        s.Call(None, "m0", "call_0", "root"),
        s.Call("a", "m1", "call_0", "first"),
        s.Call("b", "m2", "call_0", "second"),
        s.Arguments("b", "m2", "call_0", "{}"),
        s.ModelOver("b", "m2"),
        s.Result("b", "call_0", "two"),
        s.Call("b", "m3", "call_0", "third"),
        s.Opened("c", "gamma", "gamma-1", "b", s.CallRef("b", "call_0")),
        s.Question("a", "q", "approval", call="call_0"),
        s.Result("b", "call_0", "three"),
        s.RunFinished(asked=["q"]),
    )
    calls = [(e["type"], e["toolCallId"], e.get("content")) for e in events if "toolCallId" in e]
    assert calls == [
        ("TOOL_CALL_START", "call_0", None),
        ("TOOL_CALL_START", "call_0@alpha-1", None),
        ("TOOL_CALL_START", "call_0@beta-1", None),
        ("TOOL_CALL_ARGS", "call_0@beta-1", None),
        ("TOOL_CALL_END", "call_0@beta-1", None),
        ("TOOL_CALL_RESULT", "call_0@beta-1", "two"),
        ("TOOL_CALL_START", "call_0@beta-1#2", None),
        ("TOOL_CALL_END", "call_0@beta-1#2", None),
        ("TOOL_CALL_RESULT", "call_0@beta-1#2", "three"),
        ("TOOL_CALL_END", "call_0@alpha-1", None),
        ("TOOL_CALL_END", "call_0", None),
    ]
    assert [e for e in events if e["type"] == "SUBAGENT_STARTED"][2] == started(
        "gamma-1",
        "gamma",
        parentSubagentRunId="beta-1",
        parentToolCallId="call_0@beta-1#2",
        parentMessageId="m3",
    )
    assert events[-1]["outcome"]["interrupts"] == [
        {"id": "q", "reason": "approval", "toolCallId": "call_0@alpha-1", "subagentRunId": "alpha-1"}
    ]


@pytest.mark.parametrize(
    ("public", "native"),
    [
        ("call_0", ("call_0",)),
        ("call_0@alpha-1", ("call_0@alpha-1", "call_0")),
        ("call_0@alpha-1#2", ("call_0@alpha-1#2", "call_0")),
        ("call_0#2", ("call_0#2", "call_0")),
        ("a#b", ("a#b",)),
        ("@x", ("@x",)),
        ("a#b#2", ("a#b#2", "a#b")),
        ("call_0@team@1", ("call_0@team@1", "call_0")),
    ],
)
def test_a_public_id_leads_back_to_the_frameworks(public, native):
    assert native_ids(public) == native


def test_ids_of_the_clients_history_are_taken_and_its_unanswered_calls_are_known():
    def call(id_):
        return ToolCall(id=id_, function=FunctionCall(name="f", arguments="{}"))

    history = [
        UserMessage(id="m1", role="user", content="hi"),
        AssistantMessage(id="m2", role="assistant", tool_calls=[call("call_0"), call("call_1")]),
        ToolMessage(id="t", role="tool", tool_call_id="call_1", content="done"),
        AssistantMessage(
            id="m3", role="assistant", subagent_run_id="alpha-1", tool_calls=[call("call_0@alpha-1")]
        ),
    ]
    assert after_start(
        s.Text(None, "m1", "x"),
        s.Result(None, "call_0", "late answer"),
        s.Opened("k", "alpha", "alpha-1", None, s.CallRef(None, "call_0")),
        s.Result("k", "call_0", "its own"),
        s.Call(None, "m9", "call_0", "again"),
        history=history,
    ) == [
        *text("m1#2", "x", end=False),
        {
            "type": "TOOL_CALL_RESULT",
            "messageId": "call_0:result",
            "toolCallId": "call_0",
            "content": "late answer",
            "role": "tool",
        },
        started("alpha-1", "alpha", parentToolCallId="call_0", parentMessageId="m2"),
        {
            "type": "TOOL_CALL_RESULT",
            "messageId": "call_0@alpha-1:result",
            "toolCallId": "call_0@alpha-1",
            "content": "its own",
            "role": "tool",
            "subagentRunId": "alpha-1",
        },
        {
            "type": "TOOL_CALL_START",
            "toolCallId": "call_0#2",
            "toolCallName": "again",
            "parentMessageId": "m9",
        },
    ]


def test_two_invocations_that_ask_for_one_id_get_two():
    assert after_start(s.Opened("a", "alpha", "x"), s.Closed("a"), s.Opened("b", "alpha", "x")) == [
        started("x", "alpha"),
        {"type": "SUBAGENT_FINISHED", "subagentRunId": "x"},
        started("x#2", "alpha"),
    ]


def test_lifecycle_signals_are_idempotent_and_the_first_answer_to_a_call_is_the_answer():
    assert after_start(
        s.Opened("a", "alpha"),
        s.Opened("a", "other"),
        s.Closed("a", 1),
        s.Closed("a", 2),
        s.Failed("a", "no"),
        s.Call(None, "m", "c", "f"),
        s.Call(None, "m", "c", "g"),
        s.Result(None, "c", "one"),
        s.Result(None, "c", "two"),
        s.RunFinished(),
        s.RunFailed("late"),
    ) == [
        started("a", "alpha"),
        {"type": "SUBAGENT_FINISHED", "subagentRunId": "a", "result": 1},
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f", "parentMessageId": "m"},
        {"type": "TOOL_CALL_END", "toolCallId": "c"},
        {
            "type": "TOOL_CALL_RESULT",
            "messageId": "c:result",
            "toolCallId": "c",
            "content": "one",
            "role": "tool",
        },
        finished(SUCCESS),
    ]


def test_steps_are_counted_per_owner():
    assert after_start(
        s.Opened("a", "alpha"),
        s.StepStarted(None, "n"),
        s.StepStarted(None, "n"),
        s.StepStarted("a", "n"),
        s.StepFinished(None, "n"),
        s.StepFinished("a", "n"),
        s.StepFinished("a", "n"),
        s.StepFinished(None, "n"),
    ) == [
        started("a", "alpha"),
        {"type": "STEP_STARTED", "stepName": "n"},
        {"type": "STEP_STARTED", "stepName": "n", "subagentRunId": "a"},
        {"type": "STEP_FINISHED", "stepName": "n", "subagentRunId": "a"},
        {"type": "STEP_FINISHED", "stepName": "n"},
    ]


def test_a_change_of_state_is_a_patch_that_applies_and_a_snapshot_where_there_is_nothing_to_patch():
    assert after_start(
        s.Opened("a", "alpha"),
        s.StateChanged("a", {"x": 1}),
        s.StateChanged("a", {"x/y~z": [1]}),
        s.StateIs(None, None),
        s.StateChanged(None, {"x": {2}}),
        s.StateChanged(None, {}),
    ) == [
        started("a", "alpha"),
        {"type": "STATE_SNAPSHOT", "snapshot": {"x": 1}, "subagentRunId": "a"},
        {
            "type": "STATE_DELTA",
            "delta": [{"op": "add", "path": "/x~1y~0z", "value": [1]}],
            "subagentRunId": "a",
        },
        {"type": "STATE_SNAPSHOT", "snapshot": None},
        {"type": "STATE_SNAPSHOT", "snapshot": {"x": [2]}},
    ]


def test_usage_is_the_runs_one_entry_per_provider_and_model_and_its_split_is_metadata():
    one = TokenUsage(
        provider="p", model="m", input_tokens=10, output_tokens=2, total_tokens=99, cached_input_tokens=4
    )
    two = TokenUsage(provider="p", model="m", input_tokens=1, output_tokens=1)
    other = TokenUsage(provider="p", model="n", input_tokens=5)
    end = after_start(
        s.Usage(None, one), s.Opened("a", "alpha"), s.Usage("a", two), s.Usage("a", other), s.RunFailed("x")
    )
    assert end[-1] == {
        "type": "RUN_ERROR",
        "message": "x",
        "usage": [
            {
                "provider": "p",
                "model": "m",
                "inputTokens": 11,
                "outputTokens": 3,
                "totalTokens": 14,
                "cachedInputTokens": 4,
            },
            {"provider": "p", "model": "n", "inputTokens": 5},
        ],
        "metadata": {
            "byline": {
                "usage": [
                    {
                        "provider": "p",
                        "model": "m",
                        "inputTokens": 10,
                        "outputTokens": 2,
                        "totalTokens": 12,
                        "cachedInputTokens": 4,
                    },
                    {
                        "subagentRunId": "a",
                        "provider": "p",
                        "model": "m",
                        "inputTokens": 1,
                        "outputTokens": 1,
                        "totalTokens": 2,
                    },
                    {"subagentRunId": "a", "provider": "p", "model": "n", "inputTokens": 5},
                ]
            }
        },
    }


def endings(*signals):
    """How each invocation ended, in order: id, and outcome or error code."""
    return [
        (e["subagentRunId"], e.get("outcome") or e.get("code"))
        for e in after_start(*signals)
        if e["type"] in ("SUBAGENT_FINISHED", "SUBAGENT_ERROR")
    ]


NESTED = (
    s.Opened("mid", "mid"),
    s.Opened("leaf", "leaf", parent="mid"),
    s.Opened("side", "side"),
    s.Question("leaf", "q1", "approval"),
    s.Question("mid", "q1", "approval"),
)
SUSPENDED = {"type": "suspended"}


def test_an_interrupted_run_suspends_all_that_is_open_deepest_first_and_only_the_asker_has_the_id():
    assert endings(*NESTED, s.RunFinished(asked=["q1"])) == [
        ("leaf", {"type": "suspended", "interruptIds": ["q1"]}),
        ("mid", SUSPENDED),
        ("side", SUSPENDED),
    ]


def test_a_question_that_was_swallowed_is_lost_and_so_are_the_ancestors_that_it_stopped():
    assert endings(*NESTED, s.RunFinished()) == [
        ("leaf", "interrupt_lost"),
        ("mid", "interrupt_lost"),
        ("side", "cancelled"),
    ]


def test_what_waits_for_the_users_next_words_is_suspended_in_a_run_that_succeeds():
    assert endings(
        s.Opened("mid", "mid"), s.Opened("leaf", "leaf", parent="mid"), s.Suspended("leaf"), s.RunFinished()
    ) == [("leaf", SUSPENDED), ("mid", SUSPENDED)]


@pytest.mark.parametrize("end", [s.RunCancelled("stop"), s.RunFailed("boom", "E")])
def test_what_is_cut_off_with_its_run_is_cancelled_and_never_a_success(end):
    assert endings(*NESTED, s.Suspended("side"), end) == [
        ("leaf", "cancelled"),
        ("mid", "cancelled"),
        ("side", "cancelled"),
    ]


def test_how_each_end_of_a_run_is_spelled():
    assert after_start(s.RunFinished({"answer": 42})) == [finished(SUCCESS, result={"answer": 42})]
    assert after_start(s.RunFinished(None)) == [finished(SUCCESS)]
    assert after_start(s.RunCancelled()) == [finished({"type": "cancelled"})]
    assert after_start(s.RunFailed("boom", "E")) == [{"type": "RUN_ERROR", "message": "boom", "code": "E"}]
    assert after_start(s.RunFinished(asked=["unseen"])) == [
        finished({"type": "interrupt", "interrupts": [{"id": "unseen", "reason": "interrupt"}]})
    ]


def test_a_run_that_succeeds_names_the_calls_that_the_client_has_to_answer():
    events = after_start(
        s.Call(None, "m", "c1", "f"), s.Call(None, "m", "c2", "g"), s.Result(None, "c1", ""), s.RunFinished()
    )
    assert events[-1] == finished({"type": "success", "pendingToolCallIds": ["c2"]})


def test_after_the_end_signals_are_dropped_and_counted():
    attributor = Attributor("t", "r")
    attributor.feed(s.RunFinished())
    assert [attributor.feed(s.Text(None, "m", "late")), attributor.feed(s.RunFailed("x"))] == [[], []]
    assert attributor.dropped == 2


def test_what_json_has_no_word_for_becomes_what_comes_nearest():
    assert after_start(
        s.Text(None, "m", "a\ud83d"),
        s.StateIs(None, {"nan": float("nan"), "bytes": b"\x00", "set": {1}, "odd": Odd(), "\udc00": 1}),
        s.Result(None, "c", [{"type": "text", "text": "one"}]),
        s.Result(None, "d", [{"type": "unknown"}]),
    ) == [
        *text("m", "a\ufffd", end=False),
        {
            "type": "STATE_SNAPSHOT",
            "snapshot": {
                "nan": None,
                "bytes": "AA==",
                "set": [1],
                "odd": "<Unserializable Odd object>",
                "\ufffd": 1,
            },
        },
        {
            "type": "TOOL_CALL_RESULT",
            "messageId": "c:result",
            "toolCallId": "c",
            "content": [{"type": "text", "text": "one"}],
            "role": "tool",
        },
        {
            "type": "TOOL_CALL_RESULT",
            "messageId": "d:result",
            "toolCallId": "d",
            "content": '[{"type": "unknown"}]',
            "role": "tool",
        },
    ]


def test_the_clock_gives_the_timestamp_of_every_event():
    ticks = iter(range(100, 200))
    events = stream(
        s.Opened("a", "alpha"),
        s.Text("a", "m", "x"),
        s.Closed("a"),
        s.RunFinished(),
        clock=lambda: next(ticks),
    )
    assert [event["timestamp"] for event in events] == [100, 101, 102, 103, 104, 105, 106]


def test_memory_grows_with_what_is_open_and_not_with_the_text():
    attributor = Attributor("t", "r")
    attributor.feed(s.Text(None, "m", "x"))
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(20_000):
        attributor.feed(s.Text(None, "m", "x" * 100))
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 20_000
