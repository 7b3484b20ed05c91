"""`interrupt_on` in a subagent: the question, the answer, and what becomes of the invocations meanwhile."""

import asyncio
import json
import subprocess
import sys

import elsewhere
import pytest
from byline.errors import ResumeError
from byline_deepagents import _compat
from byline_langgraph.scripted import Say
from deepkit import Play, deep, fork, sub, task
from elsewhere import guarded, nested, send
from kit import CANCEL, Relay, call, judge
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import interrupt

APPROVE = {"decisions": [{"type": "approve"}]}


def asks(tool, args):
    return f'"Tool execution requires approval\\n\\nTool: {tool}\\nArgs: {args}"'


SINGLE = [
    "start",
    'main state {"files": {}}',
    "main says m1: 'go'",
    'main calls call_A in m1: task {"description": "do it", "subagent_type": "alpha"}',
    "alpha#1 opens as isolated for main, call call_A in m1, 'do it'",
    "alpha#1 says m2: 'alpha wants'",
    'alpha#1 calls call_S in m2: send {"q": "x"}',
    "alpha#1 suspends i1",
    f"waits [i1 alpha#1 tool_call {asks('send', {'q': 'x'})} on call_S]",
]


def single(decisions=True):
    alpha = guarded("alpha", decisions=decisions)
    return deep(
        Say("go", calls=[task("call_A", "alpha")]), "done", subagents=[alpha], checkpointer=InMemorySaver()
    )


def resumed(heard):
    return [
        "start",
        'main state {"files": {}}',
        "alpha#1 opens as isolated for main, call call_A in m1, 'do it'",
        f"alpha#1 hears call_S: {heard!r}",
        "alpha#1 says m3: 'alpha done'",
        "alpha#1 returns 'alpha done'",
        "main hears call_A: 'alpha done'",
        "main says m4: 'done'",
        "end",
    ]


@pytest.mark.parametrize(
    ("decision", "heard"),
    [
        ({"type": "approve"}, "sent x"),
        (
            {"type": "reject", "message": "not now"},
            "User rejected the tool call for `send` with reason: not now",
        ),
        ({"type": "respond", "message": "did it myself"}, "did it myself"),
    ],
)
def test_a_decision(decision, heard):
    play = Play(single())
    first = play.run()
    assert first.lines == SINGLE
    second = play.resume({"i1": {"decisions": [decision]}}, messages=first.history)
    assert second.lines == resumed(heard)
    judge([*first.events, *second.events])


def test_an_edited_call():
    play = Play(single())
    first = play.run()
    assert first.lines == SINGLE
    edited = {"type": "edit", "edited_action": {"name": "send", "args": {"q": "other"}}}
    heard = play.resume({"i1": {"decisions": [edited]}}, messages=first.history).lines[3]
    assert heard.startswith("alpha#1 hears call_S: ")
    assert "sent other" in heard


def test_a_question_that_is_abandoned_is_a_rejection():
    play = Play(single())
    first = play.run()
    assert first.lines == SINGLE
    assert play.resume({"i1": CANCEL}, messages=first.history).lines == resumed(
        "User rejected the tool call for `send` with reason: The user cancelled."
    )


def test_the_question_on_the_wire():
    trace = Play(single(decisions={"allowed_decisions": ["approve", "reject"]})).run()
    assert trace.lines == SINGLE
    value = {
        "action_requests": [
            {
                "name": "send",
                "args": {"q": "x"},
                "description": "Tool execution requires approval\n\nTool: send\nArgs: {'q': 'x'}",
            }
        ],
        "review_configs": [{"action_name": "send", "allowed_decisions": ["approve", "reject"]}],
    }
    approve = {"type": "object", "properties": {"type": {"const": "approve"}}, "required": ["type"]}
    reject = {
        "type": "object",
        "properties": {"type": {"const": "reject"}, "message": {"type": "string"}},
        "required": ["type"],
    }
    assert trace.interrupts == [
        {
            "id": "i1",
            "reason": "tool_call",
            "message": "Tool execution requires approval\n\nTool: send\nArgs: {'q': 'x'}",
            "toolCallId": "call_S",
            "responseSchema": {
                "type": "object",
                "properties": {
                    "decisions": {
                        "type": "array",
                        "items": {"oneOf": [approve, reject]},
                        "minItems": 1,
                        "maxItems": 1,
                    }
                },
                "required": ["decisions"],
            },
            "metadata": {
                "langgraph": {"raw": value},
                "byline": {
                    "toolCalls": [
                        {
                            "toolCallId": "call_S",
                            "name": "send",
                            "args": {"q": "x"},
                            "decisions": ["approve", "reject"],
                        }
                    ]
                },
            },
            "subagentRunId": "alpha#1",
        }
    ]


def test_several_calls_under_one_question():
    alpha = sub(
        "alpha",
        Say("alpha wants", calls=[call("call_S", "send", "x"), call("call_T", "send", "y")]),
        "alpha done",
        tools=[send],
        interrupt_on={"send": {"allowed_decisions": ["approve", "reject"]}},
    )
    team = deep(
        Say("go", calls=[task("call_A", "alpha")]), "done", subagents=[alpha], checkpointer=InMemorySaver()
    )
    play = Play(team)
    first = play.run()
    assert first.lines[-2] == "alpha#1 suspends i1"
    [asked] = first.interrupts
    assert asked["toolCallId"] == "call_S"
    assert [one["toolCallId"] for one in asked["metadata"]["byline"]["toolCalls"]] == ["call_S", "call_T"]
    assert asked["responseSchema"]["properties"]["decisions"]["minItems"] == 2
    answer = {"decisions": [{"type": "approve"}, {"type": "reject", "message": "no"}]}
    lanes = play.resume({"i1": answer}, messages=first.history).lanes
    assert sorted(lanes["alpha#1"][1:3]) == [
        "hears call_S: 'sent x'",
        "hears call_T: 'User rejected the tool call for `send` with reason: no'",
    ]


class Stage(Play):
    """Two guarded subagents at once, in an order that is set anew for each run."""

    def __init__(self):
        self.relay = Relay("")
        super().__init__(parallel(self.relay))

    def run(self, *args, order, **fields):
        self.relay.order, self.relay.moved = (
            order.split(),
            asyncio.Condition(),
        )  # each run has a loop of its own
        return super().run(*args, **fields)


ASKING = "alpha alpha alpha alpha alpha . beta beta beta beta beta ."


def parallel(relay):
    calls = [task("call_A", "alpha", "a"), task("call_B", "beta", "b")]

    def spec(name, q):
        turns = Say(f"{name} wants", calls=[call("call_S", "send", q)]), f"{name} done"
        return sub(name, *turns, relay=relay, tools=[send], interrupt_on={"send": True})

    subagents = [spec("alpha", "x"), spec("beta", "y")]
    return deep(Say("go", calls=calls), "done", subagents=subagents, checkpointer=InMemorySaver())


BETA_WAITS = f"[i2 beta#1 tool_call {asks('send', {'q': 'y'})} on call_S@beta#1]"


def asked_in_parallel(play):
    first = play.run(order=ASKING)
    assert first.lines[3:] == [
        'main calls call_A+ in m1: task {"description": "a", "subagent_type": "alpha"}',
        'main calls call_B+ in m1: task {"description": "b", "subagent_type": "beta"}',
        "main calls +call_A",
        "main calls +call_B",
        "alpha#1 opens as isolated for main, call call_A in m1, 'a'",
        "beta#1 opens as isolated for main, call call_B in m1, 'b'",
        "alpha#1 says m2: 'alpha wants'",
        'alpha#1 calls call_S in m2: send {"q": "x"}',
        "beta#1 says m3: 'beta wants'",
        'beta#1 calls call_S@beta#1 in m3: send {"q": "y"}',
        "alpha#1 suspends i1",
        "beta#1 suspends i2",
        f"waits [i1 alpha#1 tool_call {asks('send', {'q': 'x'})} on call_S] {BETA_WAITS}",
    ]
    return first


def test_two_questions_answered_together():
    play = Stage()
    first = asked_in_parallel(play)
    both = {"i1": APPROVE, "i2": {"decisions": [{"type": "reject", "message": "no"}]}}
    assert play.resume(both, messages=first.history, order="alpha alpha . beta beta .").lanes == {
        "run": ["start", "end"],
        "main": [
            'state {"files": {}}',
            "hears call_A: 'alpha done'",
            "hears call_B: 'beta done'",
            "says m4: 'done'",
        ],
        "alpha#1": [
            "opens as isolated for main, call call_A in m1, 'a'",
            "hears call_S: 'sent x'",
            "says m5: 'alpha done'",
            "returns 'alpha done'",
        ],
        "beta#1": [
            "opens as isolated for main, call call_B in m1, 'b'",
            "hears call_S@beta#1: 'User rejected the tool call for `send` with reason: no'",
            "says m6: 'beta done'",
            "returns 'beta done'",
        ],
    }


def test_two_questions_answered_one_by_one():
    play = Stage()
    first = asked_in_parallel(play)
    second = play.resume({"i1": APPROVE}, messages=first.history, order="alpha alpha .")
    assert second.lanes == {
        "run": ["start", f"waits {BETA_WAITS}"],
        "main": ['state {"files": {}}', "hears call_A: 'alpha done'"],
        "alpha#1": [
            "opens as isolated for main, call call_A in m1, 'a'",
            "hears call_S: 'sent x'",
            "says m4: 'alpha done'",
            "returns 'alpha done'",
        ],
        "beta#1": ["opens as isolated for main, call call_B in m1, 'b'", "suspends i2"],
    }
    third = play.resume({"i2": APPROVE}, messages=[*first.history, *second.history], order="beta beta .")
    assert third.lines == [
        "start",
        'main state {"files": {}}',
        "beta#1 opens as isolated for main, call call_B in m1, 'b'",
        "beta#1 hears call_S@beta#1: 'sent y'",
        "beta#1 says m5: 'beta done'",
        "beta#1 returns 'beta done'",
        "main hears call_B: 'beta done'",
        "main says m6: 'done'",
        "end",
    ]
    judge([*first.events, *second.events, *third.events])


NESTED = [
    "start",
    'main state {"files": {}}',
    "main says m1: 'go'",
    'main calls call_A in m1: task {"description": "do it", "subagent_type": "lead"}',
    "lead#1 opens as isolated for main, call call_A in m1, 'do it'",
    "lead#1 says m2: 'lead asks'",
    'lead#1 calls call_B in m2: task {"description": "inner", "subagent_type": "alpha"}',
    "alpha#1 opens as isolated for lead#1, call call_B in m2, 'inner'",
    "alpha#1 says m3: 'alpha wants'",
    'alpha#1 calls call_S in m3: send {"q": "x"}',
    "alpha#1 suspends i1",
    "lead#1 suspends without asking",
    f"waits [i1 alpha#1 tool_call {asks('send', {'q': 'x'})} on call_S]",
]


def nested_resumed(*messages):
    a, b, c = messages
    return [
        "start",
        'main state {"files": {}}',
        "lead#1 opens as isolated for main, call call_A in m1, 'do it'",
        "alpha#1 opens as isolated for lead#1, call call_B in m2, 'inner'",
        "alpha#1 hears call_S: 'sent x'",
        f"alpha#1 says {a}: 'alpha done'",
        "alpha#1 returns 'alpha done'",
        "lead#1 hears call_B: 'alpha done'",
        f"lead#1 says {b}: 'lead done'",
        "lead#1 returns 'lead done'",
        "main hears call_A: 'lead done'",
        f"main says {c}: 'done'",
        "end",
    ]


def test_a_nested_question():
    play = Play(nested(checkpointer=InMemorySaver()))
    first = play.run()
    assert first.lines == NESTED
    second = play.resume({"i1": APPROVE}, messages=first.history)
    assert second.lines == nested_resumed("m4", "m5", "m6")
    judge([*first.events, *second.events])


def test_an_answer_in_another_process(tmp_path):
    db = str(tmp_path / "threads.db")
    asked = subprocess.run(
        [sys.executable, elsewhere.__file__, db],
        env={"PYTHONPATH": ":".join(sys.path), "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(asked.stdout)
    assert told["lines"] == NESTED
    trace = asyncio.run(
        elsewhere.play(db, told["names"], text=None, messages=told["history"], resume={"i1": APPROVE})
    )
    assert trace.lines == nested_resumed("m4", "m5", "m6")


def test_a_fork_that_asks_is_still_the_same_fork():
    beta = fork(
        "beta",
        "never said",
        Say("beta wants", calls=[call("call_S", "send", "x")]),
        "beta done",
    )
    team = deep(
        Say("first", calls=[task("call_A", "alpha")]),
        Say("then", calls=[task("call_B", "beta")]),
        "done",
        tools=[send],
        subagents=[sub("alpha", "alpha answers"), beta],
        interrupt_on={"send": True},
        checkpointer=InMemorySaver(),
    )
    play = Play(team)
    first = play.run()
    assert first.lines[10:] == [
        "beta#1 opens as fork(3; files) for main, call call_B in m3, 'do it'",
        "beta#1 says m4: 'beta wants'",
        'beta#1 calls call_S in m4: send {"q": "x"}',
        "beta#1 suspends i1",
        f"waits [i1 beta#1 tool_call {asks('send', {'q': 'x'})} on call_S]",
    ]
    assert play.resume({"i1": APPROVE}, messages=first.history).lines == [
        "start",
        'main state {"files": {}}',
        "beta#1 opens as fork(3; files) for main, call call_B in m3, 'do it'",
        "beta#1 hears call_S: 'sent x'",
        "beta#1 says m5: 'beta done'",
        "beta#1 returns 'beta done'",
        "main hears call_B: 'beta done'",
        "main says m6: 'done'",
        "end",
    ]


@pytest.mark.parametrize(
    ("payload", "wrong"),
    [
        ({"type": "approve"}, "expected an object with the list 'decisions', one per call: send"),
        ({"decisions": []}, "0 decisions were given for 1 calls (send): send one for each, in this order"),
        ({"decisions": ["approve"]}, "the decision about send is 'approve', allowed are 'approve', 'reject'"),
        (
            {"decisions": [{"type": "edit"}]},
            "the decision about send is 'edit', allowed are 'approve', 'reject'",
        ),
        (True, "the answer is True, expected an object with the list 'decisions'"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_before_anything_runs(payload, wrong):
    play = Play(single(decisions={"allowed_decisions": ["approve", "reject"]}))
    first = play.run()
    assert first.lines == SINGLE
    with pytest.raises(ResumeError) as refused:
        play.resume({"i1": payload}, messages=first.history)
    assert wrong in str(refused.value)
    assert "alpha" in str(refused.value)
    assert play.resume({"i1": APPROVE}, messages=first.history).lines == resumed("sent x")


def test_an_answer_without_a_checkpointer_is_refused_before_anything_runs():
    play = Play(deep(Say("go", calls=[task("call_A", "alpha")]), "done", subagents=[guarded("alpha")]))
    first = play.run()
    assert first.lines == SINGLE
    with pytest.raises(ResumeError) as refused:
        play.resume({"i1": APPROVE}, messages=first.history)
    assert play.names.rename(str(refused.value)) == (
        "resume needs a checkpointer, and this agent has none: what subagent 'alpha#1' asked cannot be continued; "
        "create_deep_agent(..., checkpointer=...) keeps it, for the subagents too"
    )


def test_the_isolated_mode_spelled_out():
    """On the wire it is `isolated`, whatever the version calls it; a spelling of another version is refused."""
    known, other = ("isolated", "handoff") if _compat.has("mode isolated") else ("handoff", "isolated")
    calls = [task("call_A", "alpha")]
    team = deep(Say("go", calls=calls), "done", subagents=[sub("alpha", "alpha answers", mode=known)])
    assert Play(team).run().lines[4] == "alpha#1 opens as isolated for main, call call_A in m1, 'do it'"
    with pytest.raises(ValueError, match=f"SubAgent 'alpha' has invalid mode '{other}'"):
        deep("done", subagents=[sub("alpha", "x", mode=other)])


def test_a_mode_that_there_is_not_is_refused_by_deepagents():
    with pytest.raises(ValueError, match="SubAgent 'alpha' has invalid mode 'half'"):
        deep("done", subagents=[fork("alpha", "x") | {"mode": "half"}])


def test_a_question_that_a_tool_of_a_subagent_asks():
    @tool
    def confirm(q: str) -> str:
        """Confirm."""
        return f"confirmed: {interrupt(f'{q}?')}"

    alpha = sub(
        "alpha", Say("alpha asks", calls=[call("call_C", "confirm", "sure")]), "knows", tools=[confirm]
    )
    play = Play(
        deep(
            Say("go", calls=[task("call_A", "alpha")]),
            "done",
            subagents=[alpha],
            checkpointer=InMemorySaver(),
        )
    )
    first = play.run()
    assert first.lines[4:] == [
        "alpha#1 opens as isolated for main, call call_A in m1, 'do it'",
        "alpha#1 says m2: 'alpha asks'",
        'alpha#1 calls call_C in m2: confirm {"q": "sure"}',
        "alpha#1 suspends i1",
        "waits [i1 alpha#1 langgraph:interrupt 'sure?' on call_C]",
    ]
    assert play.resume({"i1": "yes"}, messages=first.history).lines[-6:] == [
        "alpha#1 hears call_C: 'confirmed: yes'",
        "alpha#1 says m3: 'knows'",
        "alpha#1 returns 'knows'",
        "main hears call_A: 'knows'",
        "main says m4: 'done'",
        "end",
    ]
