"""State, and the app's own events."""

import operator
from typing import Annotated

from byline_langgraph.scripted import Say
from kit import Play, agent, ask, call, human, model, said
from langchain_core.callbacks import adispatch_custom_event
from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command


class Notes(MessagesState):
    notes: Annotated[list, operator.add]


@tool
def note(q: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
    """Note."""
    return Command(update={"notes": [q], "messages": [ToolMessage(f"noted {q}", tool_call_id=tool_call_id)]})


def writer():
    return agent(
        "alpha",
        Say("alpha notes", calls=[call("call_N", "note", "one")]),
        "alpha noted",
        tools=[note],
        state_schema=Notes,
    )


def test_a_subgraphs_state_becomes_the_runs_when_it_is_merged():
    def plan(state: Notes) -> dict:
        return {"notes": ["zero"]}

    def drop(state: Notes) -> dict:
        return {"notes": []}

    builder = StateGraph(Notes)
    builder.add_node("plan", plan)
    builder.add_node("write", writer())
    builder.add_node("drop", drop)
    builder.add_edge(START, "plan")
    builder.add_edge("plan", "write")
    builder.add_edge("write", "drop")
    assert Play(builder.compile()).run().lines == [
        "start",
        'main state {"notes": []}',
        'main state {"notes": ["zero"]}',
        "alpha#1 opens as subgraph for main",
        "alpha#1 says m1: 'alpha notes'",
        'alpha#1 calls call_N in m1: note {"q": "one"}',
        "alpha#1 hears call_N: 'noted one'",
        "alpha#1 says m2: 'alpha noted'",
        "alpha#1 returns 'alpha noted'",
        'main state {"notes": ["zero", "zero", "one"]}',
        "end",
    ]


def test_what_a_subagent_in_a_tool_gives_back_in_a_command():
    alpha = writer()

    @tool
    async def ask_alpha(q: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
        """Ask."""
        done = await alpha.ainvoke(human(q))
        message = ToolMessage(said(done), tool_call_id=tool_call_id)
        return Command(update={"notes": done["notes"], "messages": [message]})

    boss = agent(
        "boss",
        Say("", calls=[call("call_A", "ask_alpha", "qa")]),
        "boss done",
        tools=[ask_alpha],
        state_schema=Notes,
    )
    assert Play(boss).run().lines == [
        "start",
        'main state {"notes": []}',
        'main calls call_A in m1: ask_alpha {"q": "qa"}',
        "alpha#1 opens as tool for main, call call_A in m1",
        "alpha#1 says m2: 'alpha notes'",
        'alpha#1 calls call_N in m2: note {"q": "one"}',
        "alpha#1 hears call_N: 'noted one'",
        "alpha#1 says m3: 'alpha noted'",
        "alpha#1 returns 'alpha noted'",
        "main hears call_A: 'alpha noted'",
        'main state {"notes": ["one"]}',
        "main says m4: 'boss done'",
        "end",
    ]


def test_a_state_that_the_client_has_is_not_told_again():
    def keep(state: Notes) -> dict:
        return {}

    builder = StateGraph(Notes)
    builder.add_node("keep", keep)
    builder.add_edge(START, "keep")
    play = Play(builder.compile(checkpointer=InMemorySaver()))
    assert play.run(state={"notes": ["one"]}).lines == ["start", "end"]
    assert play.run(state={"notes": ["two"]}).lines == [
        "start",
        'main state {"notes": ["one", "two"]}',
        "end",
    ]
    assert play.run(state={"notes": []}).lines == ["start", 'main state {"notes": ["one", "two"]}', "end"]


def test_a_state_that_the_client_sends_back_is_not_added_again():
    def note_more(state: Notes) -> dict:
        return {"notes": ["one"]}

    builder = StateGraph(Notes)
    builder.add_node("note", note_more)
    builder.add_edge(START, "note")
    play = Play(builder.compile(checkpointer=InMemorySaver()))
    assert play.run().lines == ["start", 'main state {"notes": []}', 'main state {"notes": ["one"]}', "end"]
    assert play.run(state={"notes": ["one"]}).lines == [
        "start",
        'main state {"notes": ["one", "one"]}',
        "end",
    ]


def test_state_that_is_no_json():
    class Odd:
        def __str__(self):
            return "odd"

    def think(state: Notes) -> dict:
        return {"notes": [float("nan"), b"hi", {"a set"}, "\ud800", ("a", "tuple")]}

    builder = StateGraph(Notes)
    builder.add_node("think", think)
    builder.add_edge(START, "think")
    assert Play(builder.compile()).run().lines == [
        "start",
        'main state {"notes": []}',
        'main state {"notes": [null, "aGk=", ["a set"], "\ufffd", ["a", "tuple"]]}',
        "end",
    ]


def test_events_of_the_app_in_a_node_and_in_a_subagent():
    async def announce(state: MessagesState) -> dict:
        get_stream_writer()({"progress": 1})
        get_stream_writer()({"name": "app.progress", "value": 2})
        await adispatch_custom_event("app.dispatched", {"by": "main"})
        return {}

    @tool
    async def tell(q: str) -> str:
        """Tell."""
        get_stream_writer()({"told": q})
        await adispatch_custom_event("app.dispatched", {"by": "alpha"})
        return "told"

    alpha = agent("alpha", Say("", calls=[call("call_T", "tell", "it")]), "alpha told", tools=[tell])
    llm = model(Say("", calls=[call("call_A", "ask_alpha", "qa")]), "main done")
    consult = ask(alpha, "ask_alpha")

    async def think(state: MessagesState) -> dict:
        answer = await llm.ainvoke(state["messages"])
        return {"messages": [answer, *[await consult.ainvoke(one) for one in answer.tool_calls]]}

    builder = StateGraph(MessagesState)
    builder.add_node("announce", announce)
    builder.add_node("think", think)
    builder.add_edge(START, "announce")
    builder.add_edge("announce", "think")
    trace = Play(builder.compile()).run()
    # The writer's events travel another way than all else and may come later, in their own order.
    told = [line for line in trace.lines if " custom " in line]
    assert told == [
        'main custom app.dispatched: {"by": "main"}',
        'main custom langgraph.custom: {"progress": 1}',
        "main custom app.progress: 2",
        'alpha#1 custom app.dispatched: {"by": "alpha"}',
        'alpha#1 custom langgraph.custom: {"told": "it"}',
    ]
    assert [line for line in trace.lines if " custom " not in line] == [
        "start",
        'main calls call_A in m1: ask_alpha {"q": "qa"}',
        "alpha#1 opens as tool for main, call call_A in m1",
        'alpha#1 calls call_T in m2: tell {"q": "it"}',
        "alpha#1 hears call_T: 'told'",
        "alpha#1 says m3: 'alpha told'",
        "alpha#1 returns 'alpha told'",
        "main hears call_A: 'alpha told'",
        "end",
    ]


def test_the_writer_of_two_agents_in_one_call_and_of_two_that_share_a_namespace():
    def teller(name, **options):
        @tool
        async def tell(q: str) -> str:
            """Tell."""
            get_stream_writer()({"from": name})
            return "told"

        return agent(
            name, Say("", calls=[call(f"call_{name}", "tell", "it")]), "told", tools=[tell], **options
        )

    alpha, beta, gamma = teller("alpha"), teller("beta"), teller("gamma", checkpointer=True)

    @tool
    async def ask_both(q: str) -> str:
        """Ask."""
        await alpha.ainvoke(human(q))
        return said(await beta.ainvoke(human(q)))

    boss = agent(
        None,
        Say("", calls=[call("call_A", "ask_both", "qa")]),
        Say("", calls=[call("call_B", "ask_gamma", "qb"), call("call_C", "ask_gamma", "qc")]),
        "main done",
        tools=[ask_both, ask(gamma, "ask_gamma")],
        checkpointer=InMemorySaver(),
    )
    # Two that share a namespace cannot be told apart by it: what they write is their caller's.
    assert [line for line in Play(boss).run().lines if " custom " in line] == [
        'alpha#1 custom langgraph.custom: {"from": "alpha"}',
        'beta#1 custom langgraph.custom: {"from": "beta"}',
        'main custom langgraph.custom: {"from": "gamma"}',
        'main custom langgraph.custom: {"from": "gamma"}',
    ]
