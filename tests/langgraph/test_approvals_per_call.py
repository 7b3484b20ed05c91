"""langchain's approvals with `interrupt_mode="per_call"`: one interrupt for each call, answered by the decision itself."""

import inspect

import pytest
from byline.errors import ResumeError
from byline_langgraph.scripted import Say
from kit import CANCEL, Play, agent, ask, call
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

PER_CALL = (
    "interrupt_mode" in inspect.signature(HumanInTheLoopMiddleware.__init__).parameters
)  # langchain 1.5


@tool
def send(q: str) -> str:
    """Send."""
    return f"sent {q}"


@tool
def wipe(q: str) -> str:
    """Wipe."""
    return f"wiped {q}"


def boss():
    review = HumanInTheLoopMiddleware(
        {"send": True, "wipe": {"allowed_decisions": ["approve", "reject"]}}, interrupt_mode="per_call"
    )
    alpha = agent(
        "alpha",
        Say("alpha wants", calls=[call("call_S", "send", "x"), call("call_W", "wipe", "y")]),
        "alpha done",
        tools=[send, wipe],
        middleware=[review],
    )
    return agent(
        "boss",
        Say("boss asks", calls=[call("call_A", "ask_alpha", "qa")]),
        "boss done",
        tools=[ask(alpha, "ask_alpha")],
        checkpointer=InMemorySaver(),
    )


def asks(tool, args):
    return f'"Tool execution requires approval\\n\\nTool: {tool}\\nArgs: {args}"'


def asked():
    """A play whose first run has asked, and the short names of its interrupts by their calls.

    LangGraph lists them in the order in which they were raised, and that is not always the order of the calls.
    """
    play = Play(boss())
    trace = play.run()
    interrupts = {one.tool_call_id: one for one in trace.events[-1].outcome.interrupts}
    names = {call: play.names.short[one.id] for call, one in interrupts.items()}
    assert trace.lines[:-2] == [
        "start",
        "main says m1: 'boss asks'",
        'main calls call_A in m1: ask_alpha {"q": "qa"}',
        "alpha#1 opens as tool for main, call call_A in m1",
        "alpha#1 says m2: 'alpha wants'",
        'alpha#1 calls call_S+ in m2: send {"q": "x"}',
        'alpha#1 calls call_W+ in m2: wipe {"q": "y"}',
        "alpha#1 calls +call_S",
        "alpha#1 calls +call_W",
    ]
    assert sorted(trace.lines[-2].removeprefix("alpha#1 suspends ").split(", ")) == ["i1", "i2"]
    return play, names, interrupts


if PER_CALL:

    def test_each_call_is_a_question_of_its_own():
        _, _, interrupts = asked()
        assert {call: (one.reason, one.message) for call, one in interrupts.items()} == {
            "call_S": ("tool_call", "Tool execution requires approval\n\nTool: send\nArgs: {'q': 'x'}"),
            "call_W": ("tool_call", "Tool execution requires approval\n\nTool: wipe\nArgs: {'q': 'y'}"),
        }
        assert {call: one.metadata["byline"] for call, one in interrupts.items()} == {
            "call_S": {
                "toolCalls": [
                    {
                        "toolCallId": "call_S",
                        "name": "send",
                        "args": {"q": "x"},
                        "decisions": ["approve", "edit", "reject", "respond"],
                    }
                ]
            },
            "call_W": {
                "toolCalls": [
                    {
                        "toolCallId": "call_W",
                        "name": "wipe",
                        "args": {"q": "y"},
                        "decisions": ["approve", "reject"],
                    }
                ]
            },
        }
        # The schema is the middleware's own: an edit cannot name another tool.
        assert (
            interrupts["call_S"].response_schema["$defs"]["EditedAction"]["properties"]["name"]["const"]
            == "send"
        )
        assert list(interrupts["call_W"].response_schema["discriminator"]["mapping"]) == ["approve", "reject"]

    def test_they_are_answered_one_by_one():
        play, names, _ = asked()
        assert play.resume({names["call_S"]: {"type": "approve"}}).lines == [
            "start",
            "alpha#1 opens as tool for main, call call_A in None",
            "alpha#1 hears call_S: 'sent x'",
            f"alpha#1 suspends {names['call_W']}",
            f"waits [{names['call_W']} alpha#1 tool_call {asks('wipe', {'q': 'y'})} on call_W]",
        ]
        assert play.resume({names["call_W"]: {"type": "reject", "message": "no"}}).lines == [
            "start",
            "alpha#1 opens as tool for main, call call_A in None",
            "alpha#1 hears call_W: 'User rejected the tool call for `wipe` with reason: no'",
            "alpha#1 says m3: 'alpha done'",
            "alpha#1 returns 'alpha done'",
            "main hears call_A: 'alpha done'",
            "main says m4: 'boss done'",
            "end",
        ]

    def test_they_are_answered_together_and_one_is_abandoned():
        play, names, _ = asked()
        edited = {"type": "edit", "edited_action": {"name": "send", "args": {"q": "other"}}}
        lines = play.resume({names["call_S"]: edited, names["call_W"]: CANCEL}).lines
        heard = sorted(line for line in lines if " hears call_S" in line or " hears call_W" in line)
        assert "sent other" in heard[0]
        assert heard[1:] == [
            "alpha#1 hears call_W: 'User rejected the tool call for `wipe` with reason: The user cancelled.'"
        ]
        assert lines[-5:] == [
            "alpha#1 says m3: 'alpha done'",
            "alpha#1 returns 'alpha done'",
            "main hears call_A: 'alpha done'",
            "main says m4: 'boss done'",
            "end",
        ]

    @pytest.mark.parametrize(
        ("call", "payload", "wrong"),
        [
            (
                "call_W",
                {"type": "respond", "message": "x"},
                "wipe is 'respond', allowed are 'approve', 'reject'",
            ),
            ("call_W", {"decisions": [{"type": "approve"}]}, "allowed are 'approve', 'reject'"),
            ("call_S", {"type": "edit"}, "'edit' about send needs 'edited_action' with 'name' and 'args'"),
        ],
    )
    def test_an_answer_that_does_not_fit_is_refused_before_anything_runs(call, payload, wrong):
        play, names, _ = asked()
        with pytest.raises(ResumeError) as refused:
            play.resume({names[call]: payload})
        assert wrong in str(refused.value)
        # Nothing has run: both can still be answered.
        lines = play.resume(
            {names["call_S"]: {"type": "approve"}, names["call_W"]: {"type": "approve"}}
        ).lines
        assert sorted(line for line in lines if " hears call_" in line) == [
            "alpha#1 hears call_S: 'sent x'",
            "alpha#1 hears call_W: 'wiped y'",
            "main hears call_A: 'alpha done'",
        ]

else:

    def test_before_langchain_1_5_there_is_no_such_mode():
        with pytest.raises(TypeError, match="interrupt_mode"):
            boss()
