"""Questions: suspended invocations, and the runs that continue them."""

from byline_langgraph.scripted import Say
from kit import CANCEL, Play, agent, ask, call
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import interrupt


@tool
def confirm(q: str) -> str:
    """Confirm."""
    return f"confirmed: {interrupt(f'{q}?')}"


def confirmer(name, q="sure"):
    return agent(
        name,
        Say(f"{name} asks", calls=[call(f"call_{name}", "confirm", q)]),
        f"{name} knows",
        tools=[confirm],
    )


def boss(*calls, tools, **options):
    return agent(
        "boss",
        Say("boss asks", calls=calls),
        "boss done",
        tools=tools,
        checkpointer=InMemorySaver(),
        **options,
    )


def test_a_question_of_a_tool_of_the_parent():
    play = Play(
        agent(
            None,
            Say("main asks", calls=[call("call_C", "confirm", "sure")]),
            "main done",
            tools=[confirm],
            checkpointer=InMemorySaver(),
        )
    )
    assert play.run().lines == [
        "start",
        "main says m1: 'main asks'",
        'main calls call_C in m1: confirm {"q": "sure"}',
        "waits [i1 main langgraph:interrupt 'sure?' on call_C]",
    ]
    assert play.resume({"i1": "yes"}).lines == [
        "start",
        "main hears call_C: 'confirmed: yes'",
        "main says m2: 'main done'",
        "end",
    ]


def test_a_question_of_a_subagent():
    play = Play(boss(call("call_A", "ask_alpha", "qa"), tools=[ask(confirmer("alpha"), "ask_alpha")]))
    assert play.run().lines == [
        "start",
        "main says m1: 'boss asks'",
        'main calls call_A in m1: ask_alpha {"q": "qa"}',
        "alpha#1 opens as tool for main, call call_A in m1",
        "alpha#1 says m2: 'alpha asks'",
        'alpha#1 calls call_alpha in m2: confirm {"q": "sure"}',
        "alpha#1 suspends i1",
        "waits [i1 alpha#1 langgraph:interrupt 'sure?' on call_alpha]",
    ]
    assert play.resume({"i1": "yes"}).lines == [
        "start",
        "alpha#1 opens as tool for main, call call_A in None",
        "alpha#1 hears call_alpha: 'confirmed: yes'",
        "alpha#1 says m3: 'alpha knows'",
        "alpha#1 returns 'alpha knows'",
        "main hears call_A: 'alpha knows'",
        "main says m4: 'boss done'",
        "end",
    ]


def test_a_question_of_a_sync_subagent():
    play = Play(
        boss(call("call_A", "ask_alpha", "qa"), tools=[ask(confirmer("alpha"), "ask_alpha", sync=True)])
    )
    assert play.run().lines[-2:] == [
        "alpha#1 suspends i1",
        "waits [i1 alpha#1 langgraph:interrupt 'sure?' on call_alpha]",
    ]
    assert play.resume({"i1": "yes"}).lines == [
        "start",
        "alpha#1 opens as tool for main, call call_A in None",
        "alpha#1 hears call_alpha: 'confirmed: yes'",
        "alpha#1 says m3: 'alpha knows'",
        "alpha#1 returns 'alpha knows'",
        "main hears call_A: 'alpha knows'",
        "main says m4: 'boss done'",
        "end",
    ]


def reviewed():
    """A subagent whose calls are reviewed by a human before they are made."""

    @tool
    def send(to: str) -> str:
        """Send."""
        return f"sent to {to}"

    return agent(
        "alpha",
        Say("alpha sends", calls=[("call_S", "send", {"to": "you"})]),
        "alpha sent",
        tools=[send],
        middleware=[HumanInTheLoopMiddleware(interrupt_on={"send": True})],
    )


def test_a_review_of_a_subagents_calls():
    play = Play(boss(call("call_A", "ask_alpha", "qa"), tools=[ask(reviewed(), "ask_alpha")]))
    first = play.run()
    assert first.lines == [
        "start",
        "main says m1: 'boss asks'",
        'main calls call_A in m1: ask_alpha {"q": "qa"}',
        "alpha#1 opens as tool for main, call call_A in m1",
        "alpha#1 says m2: 'alpha sends'",
        'alpha#1 calls call_S in m2: send {"to": "you"}',
        "alpha#1 suspends i1",
        r"""waits [i1 alpha#1 tool_call "Tool execution requires approval\n\nTool: send\nArgs: {'to': 'you'}" on call_S]""",
    ]
    (asked,) = first.events[-1].outcome.interrupts
    assert asked.metadata["langgraph"]["raw"]["action_requests"] == [
        {
            "name": "send",
            "args": {"to": "you"},
            "description": "Tool execution requires approval\n\nTool: send\nArgs: {'to': 'you'}",
        }
    ]
    assert play.resume({"i1": {"decisions": [{"type": "approve"}]}}).lines == [
        "start",
        "alpha#1 opens as tool for main, call call_A in None",
        "alpha#1 hears call_S: 'sent to you'",
        "alpha#1 says m3: 'alpha sent'",
        "alpha#1 returns 'alpha sent'",
        "main hears call_A: 'alpha sent'",
        "main says m4: 'boss done'",
        "end",
    ]


def test_a_review_that_is_abandoned():
    play = Play(boss(call("call_A", "ask_alpha", "qa"), tools=[ask(reviewed(), "ask_alpha")]))
    play.run()
    lines = play.resume({"i1": CANCEL}).lines
    # Newer LangChain puts words of its own around ours.
    assert [line.replace("User rejected the tool call for `send` with reason: ", "") for line in lines] == [
        "start",
        "alpha#1 opens as tool for main, call call_A in None",
        "alpha#1 hears call_S: 'The user cancelled.'",
        "alpha#1 says m1: 'alpha sent'",
        "alpha#1 returns 'alpha sent'",
        "main hears call_A: 'alpha sent'",
        "main says m2: 'boss done'",
        "end",
    ]


def test_a_question_that_is_abandoned():
    play = Play(boss(call("call_A", "ask_alpha", "qa"), tools=[ask(confirmer("alpha"), "ask_alpha")]))
    play.run()
    assert play.resume({"i1": CANCEL}).lines == [
        "start",
        "alpha#1 opens as tool for main, call call_A in None",
        "alpha#1 hears call_alpha: \"confirmed: {'__agui_cancelled__': True, 'interrupt_id': 'i1'}\"",
        "alpha#1 says m1: 'alpha knows'",
        "alpha#1 returns 'alpha knows'",
        "main hears call_A: 'alpha knows'",
        "main says m2: 'boss done'",
        "end",
    ]


def two():
    return boss(
        call("call_A", "ask_alpha", "qa"),
        call("call_B", "ask_beta", "qb"),
        tools=[ask(confirmer("alpha", "a"), "ask_alpha"), ask(confirmer("beta", "b"), "ask_beta")],
    )


TWO_ASK = {
    "run": [
        "start",
        "waits [i1 alpha#1 langgraph:interrupt 'a?' on call_alpha] [i2 beta#1 langgraph:interrupt 'b?' on call_beta]",
    ],
    "main": [
        "says m1: 'boss asks'",
        'calls call_A+ in m1: ask_alpha {"q": "qa"}',
        'calls call_B+ in m1: ask_beta {"q": "qb"}',
        "calls +call_A",
        "calls +call_B",
    ],
    "alpha#1": [
        "opens as tool for main, call call_A in m1",
        "says m2: 'alpha asks'",
        'calls call_alpha in m2: confirm {"q": "a"}',
        "suspends i1",
    ],
    "beta#1": [
        "opens as tool for main, call call_B in m1",
        "says m3: 'beta asks'",
        'calls call_beta in m3: confirm {"q": "b"}',
        "suspends i2",
    ],
}


def test_two_questions_answered_together():
    play = Play(two())
    assert play.run().lanes == TWO_ASK
    assert play.resume({"i1": "yes", "i2": "no"}).lanes == {
        "run": ["start", "end"],
        "main": ["hears call_A: 'alpha knows'", "hears call_B: 'beta knows'", "says m4: 'boss done'"],
        "alpha#1": [
            "opens as tool for main, call call_A in None",
            "hears call_alpha: 'confirmed: yes'",
            "says m5: 'alpha knows'",
            "returns 'alpha knows'",
        ],
        "beta#1": [
            "opens as tool for main, call call_B in None",
            "hears call_beta: 'confirmed: no'",
            "says m6: 'beta knows'",
            "returns 'beta knows'",
        ],
    }


def test_two_questions_answered_one_by_one():
    play = Play(two())
    assert play.run().lanes == TWO_ASK
    assert play.resume({"i2": "no"}).lanes == {
        "run": ["start", "waits [i1 alpha#1 langgraph:interrupt 'a?' on call_alpha]"],
        "main": ["hears call_B: 'beta knows'"],
        "alpha#1": ["opens as tool for main, call call_A in None", "suspends i1"],
        "beta#1": [
            "opens as tool for main, call call_B in None",
            "hears call_beta: 'confirmed: no'",
            "says m4: 'beta knows'",
            "returns 'beta knows'",
        ],
    }
    assert play.resume({"i1": "yes"}).lanes == {
        "run": ["start", "end"],
        "main": ["hears call_A: 'alpha knows'", "says m5: 'boss done'"],
        "alpha#1": [
            "opens as tool for main, call call_A in None",
            "hears call_alpha: 'confirmed: yes'",
            "says m6: 'alpha knows'",
            "returns 'alpha knows'",
        ],
    }


def test_a_review_names_its_calls_as_the_stream_does_where_ids_collide():
    @tool
    def send(to: str) -> str:
        """Send."""
        return f"sent to {to}"

    alpha = agent(
        "alpha",
        Say("alpha sends", calls=[("call_A", "send", {"to": "you"})]),
        tools=[send],
        middleware=[
            HumanInTheLoopMiddleware(interrupt_on={"send": {"allowed_decisions": ["approve", "reject"]}})
        ],
    )
    play = Play(boss(call("call_A", "ask_alpha", "qa"), tools=[ask(alpha, "ask_alpha")]))
    trace = play.run()
    assert trace.lines[:-1] == [
        "start",
        "main says m1: 'boss asks'",
        'main calls call_A in m1: ask_alpha {"q": "qa"}',
        "alpha#1 opens as tool for main, call call_A in m1",
        "alpha#1 says m2: 'alpha sends'",
        'alpha#1 calls call_A@alpha#1 in m2: send {"to": "you"}',
        "alpha#1 suspends i1",
    ]
    (asked,) = trace.events[-1].outcome.interrupts
    assert play.names.rename(asked.tool_call_id) == "call_A@alpha#1"
    (reviewed_call,) = asked.metadata["byline"]["toolCalls"]
    assert {**reviewed_call, "toolCallId": play.names.rename(reviewed_call["toolCallId"])} == {
        "toolCallId": "call_A@alpha#1",
        "name": "send",
        "args": {"to": "you"},
        "decisions": ["approve", "reject"],
    }
