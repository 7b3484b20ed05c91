"""What a client sees of a run, and that the observers see everything."""

import asyncio
import json

import pytest
from byline import attribute, hookimpl
from byline import signals as s
from byline.events import TokenUsage, encode
from byline.validator import Validator
from fake import INPUT, plugin, scripted, two_at_once
from naive import Replay


def run(app, visibility="attributed", plugins=()):
    observed = []

    async def main():
        agent = attribute(
            app, plugins=[plugin, *plugins], clock=None, visibility=visibility, observers=[observed.append]
        )
        return [json.loads(encode(event)) async for event in agent.run(INPUT)]

    seen = asyncio.run(main())
    for stream in (seen, [json.loads(encode(event)) for event in observed]):
        judge, replay = Validator("producer"), Replay()
        for event in stream:
            assert [f for f in judge.feed(event) if f.level == "error"] == []
            replay.event(event)
    return seen


def short(event):
    """A line per event: what, whose, and what it says."""
    parts = [event["type"], event.get("subagentRunId"), event.get("messageId") or event.get("toolCallId")]
    return tuple(part for part in (*parts, event.get("delta")) if part is not None)


def lines(events):
    return [short(event) for event in events[1:-1]]


ALPHA = [
    ("SUBAGENT_STARTED", "alpha-1"),
    ("TEXT_MESSAGE_START", "alpha-1", "m1"),
    ("TEXT_MESSAGE_CONTENT", "alpha-1", "m1", "alpha "),
]


def test_attributed_shows_everything():
    assert lines(run(scripted(*two_at_once()))) == [
        ("TOOL_CALL_START", "c1"),
        ("SUBAGENT_STARTED", "alpha-1"),
        ("SUBAGENT_STARTED", "beta-1"),
        ("TEXT_MESSAGE_START", "alpha-1", "m1"),
        ("TEXT_MESSAGE_CONTENT", "alpha-1", "m1", "alpha "),
        ("TEXT_MESSAGE_START", "beta-1", "m2"),
        ("TEXT_MESSAGE_CONTENT", "beta-1", "m2", "beta "),
        ("TEXT_MESSAGE_END", "beta-1", "m2"),
        ("TOOL_CALL_START", "beta-1", "c2"),
        ("SUBAGENT_STARTED", "leaf-1"),
        ("TEXT_MESSAGE_START", "leaf-1", "m3"),
        ("TEXT_MESSAGE_CONTENT", "leaf-1", "m3", "leaf"),
        ("TEXT_MESSAGE_END", "leaf-1", "m3"),
        ("SUBAGENT_FINISHED", "leaf-1"),
        ("TOOL_CALL_END", "beta-1", "c2"),
        ("TOOL_CALL_RESULT", "beta-1", "c2:result"),
        ("TEXT_MESSAGE_CONTENT", "alpha-1", "m1", "one"),
        ("TEXT_MESSAGE_END", "alpha-1", "m1"),
        ("SUBAGENT_FINISHED", "alpha-1"),
        ("SUBAGENT_FINISHED", "beta-1"),
        ("TOOL_CALL_END", "c1"),
        ("TOOL_CALL_RESULT", "c1:result"),
    ]


def test_inline_shows_their_output_as_the_parents_and_no_lifecycle():
    events = run(scripted(*two_at_once()), "inline")
    assert lines(events) == [
        ("TOOL_CALL_START", "c1"),
        ("TEXT_MESSAGE_START", "m1"),
        ("TEXT_MESSAGE_CONTENT", "m1", "alpha "),
        ("TEXT_MESSAGE_START", "m2"),
        ("TEXT_MESSAGE_CONTENT", "m2", "beta "),
        ("TEXT_MESSAGE_END", "m2"),
        ("TOOL_CALL_START", "c2"),
        ("TEXT_MESSAGE_START", "m3"),
        ("TEXT_MESSAGE_CONTENT", "m3", "leaf"),
        ("TEXT_MESSAGE_END", "m3"),
        ("TOOL_CALL_END", "c2"),
        ("TOOL_CALL_RESULT", "c2:result"),
        ("TEXT_MESSAGE_CONTENT", "m1", "one"),
        ("TEXT_MESSAGE_END", "m1"),
        ("TOOL_CALL_END", "c1"),
        ("TOOL_CALL_RESULT", "c1:result"),
    ]
    assert "subagentRunId" not in json.dumps(events)


def test_hidden_keeps_words_calls_and_lifecycle_out_and_a_child_names_the_nearest_ancestor():
    events = run(scripted(*two_at_once()), {"beta": "hidden"})
    assert lines(events) == [
        ("TOOL_CALL_START", "c1"),
        *ALPHA,
        ("SUBAGENT_STARTED", "leaf-1"),
        ("TEXT_MESSAGE_START", "leaf-1", "m3"),
        ("TEXT_MESSAGE_CONTENT", "leaf-1", "m3", "leaf"),
        ("TEXT_MESSAGE_END", "leaf-1", "m3"),
        ("SUBAGENT_FINISHED", "leaf-1"),
        ("TEXT_MESSAGE_CONTENT", "alpha-1", "m1", "one"),
        ("TEXT_MESSAGE_END", "alpha-1", "m1"),
        ("SUBAGENT_FINISHED", "alpha-1"),
        ("TOOL_CALL_END", "c1"),
        ("TOOL_CALL_RESULT", "c1:result"),
    ]
    assert next(e for e in events if e.get("name") == "leaf") == {
        "type": "SUBAGENT_STARTED",
        "subagentRunId": "leaf-1",
        "name": "leaf",
    }


def test_a_plugin_decides_before_the_argument_and_a_wrong_answer_counts_as_none():
    class Decides:
        @hookimpl
        def byline_visibility(self, invocation):
            return {"alpha": "hidden", "beta": "transparent"}.get(invocation.name)

    events = run(scripted(*two_at_once()), {"alpha": "attributed", "beta": "inline"}, [Decides()])
    assert [e["name"] for e in events if e["type"] == "SUBAGENT_STARTED"] == ["leaf"]
    assert [e["delta"] for e in events if e["type"] == "TEXT_MESSAGE_CONTENT"] == ["beta ", "leaf"]


STATEFUL = (
    s.Opened("a", "alpha", "alpha-1"),
    s.Opened("b", "beta", "beta-1", "a"),
    s.StateIs("b", {"x": 1}),
    s.StepStarted("a", "n"),
    s.StepStarted("b", "n"),
    s.StepFinished("a", "n"),
    s.StepFinished("b", "n"),
    s.Call("b", "m", "c", "client_tool"),
    s.Usage("b", TokenUsage(model="m", input_tokens=1, output_tokens=1)),
    s.Question("b", "q", "approval"),
)


@pytest.mark.parametrize(
    ("visibility", "steps", "call"),
    [
        ("inline", ["STEP_STARTED", "STEP_FINISHED"], True),
        ("hidden", ["STEP_STARTED", "STEP_FINISHED"], False),
    ],
)
def test_state_usage_and_interrupts_pass_with_the_nearest_announced_ancestor(visibility, steps, call):
    events = run(scripted(*STATEFUL, end=s.RunFinished(asked=["q"])), {"beta": visibility})
    assert [e for e in events if e["type"] == "STATE_SNAPSHOT"] == [
        {"type": "STATE_SNAPSHOT", "snapshot": {"x": 1}, "subagentRunId": "alpha-1"}
    ]
    assert [e["type"] for e in events if e["type"].startswith("STEP")] == steps
    assert any(e["type"] == "TOOL_CALL_START" for e in events) is call
    assert events[-2] == {
        "type": "SUBAGENT_FINISHED",
        "subagentRunId": "alpha-1",
        "outcome": {"type": "suspended", "interruptIds": ["q"]},
    }
    assert events[-1] == {
        "type": "RUN_FINISHED",
        "threadId": "t",
        "runId": "r",
        "outcome": {
            "type": "interrupt",
            "interrupts": [{"id": "q", "reason": "approval", "subagentRunId": "alpha-1"}],
        },
        "usage": [{"model": "m", "inputTokens": 1, "outputTokens": 1, "totalTokens": 2}],
        "metadata": {
            "byline": {
                "usage": [
                    {
                        "subagentRunId": "alpha-1",
                        "model": "m",
                        "inputTokens": 1,
                        "outputTokens": 1,
                        "totalTokens": 2,
                    }
                ]
            }
        },
    }


def test_a_pending_call_that_the_client_does_not_see_is_not_named():
    events = run(scripted(*STATEFUL[:-1]), {"beta": "hidden"})
    assert events[-1]["outcome"] == {"type": "success"}
