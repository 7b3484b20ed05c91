"""What middleware asks a model for itself: its tokens are counted, its words are nobody's."""

import pytest
from byline_langgraph.scripted import Say
from kit import Play, agent, call, model
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import AIMessage, HumanMessage

USAGE = {"input_tokens": 30, "output_tokens": 3, "total_tokens": 33}
SPENT = '"provider": "byline", "model": "scripted", "inputTokens": 30, "outputTokens": 3, "totalTokens": 33'


def summarising(name, *turns, tools=(), checkpointer=None):
    """An agent that has a model sum up what was said before its own is asked."""
    small = model(Say("a summary nobody should read", usage=USAGE))
    middleware = SummarizationMiddleware(model=small, trigger=("messages", 3), keep=("messages", 1))
    return agent(name, *turns, tools=tools, middleware=[middleware], checkpointer=checkpointer)


LONG = [HumanMessage("one", id="u1"), AIMessage("two", id="a1"), HumanMessage("three", id="u3")]


def test_the_parents_summary():
    trace = Play(summarising("boss", "boss done")).stream({"messages": LONG})
    assert trace.lines == [
        "start",
        "main says m1: 'boss done'",
        f"end usage {{{SPENT}}}",
    ]


def test_a_subagents_summary_is_counted_as_the_subagents():
    alpha = summarising("alpha", "alpha answers")

    async def consult(q: str) -> str:
        """Ask."""
        return str((await alpha.ainvoke({"messages": LONG}))["messages"][-1].text)

    boss = agent(
        "boss", Say("boss asks", calls=[call("call_A", "consult", "qa")]), "boss done", tools=[consult]
    )
    assert Play(boss).run().lines == [
        "start",
        "main says m1: 'boss asks'",
        'main calls call_A in m1: consult {"q": "qa"}',
        "alpha#1 opens as tool for main, call call_A in m1",
        "alpha#1 says m2: 'alpha answers'",
        "alpha#1 returns 'alpha answers'",
        "main hears call_A: 'alpha answers'",
        "main says m3: 'boss done'",
        f'end usage {{{SPENT}}} of {{"subagentRunId": "alpha#1", {SPENT}}}',
    ]


@pytest.mark.parametrize("mark", [{"lc_internal_call": True}, {"lc_source": "summarization"}])
def test_a_call_that_is_marked_as_internal(mark):
    inner = model(Say("not for you", usage=USAGE)).with_config(metadata=mark)

    async def think(q: str) -> str:
        """Think."""
        return str((await inner.ainvoke(q)).text)

    boss = agent("boss", Say("boss asks", calls=[call("call_T", "think", "x")]), "boss done", tools=[think])
    assert Play(boss).run().lines == [
        "start",
        "main says m1: 'boss asks'",
        'main calls call_T in m1: think {"q": "x"}',
        "main hears call_T: 'not for you'",
        "main says m2: 'boss done'",
        f"end usage {{{SPENT}}}",
    ]
