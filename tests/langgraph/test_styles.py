"""Other ways to call a subagent and a model."""

import asyncio

import pytest
from byline_langgraph.scripted import Say
from kit import Play, Relay, agent, ask, call, human, model, said
from langchain.agents.structured_output import ToolStrategy
from langchain_core.language_models.fake import FakeListLLM, FakeStreamingListLLM
from langchain_core.messages import AIMessage
from langchain_core.outputs import GenerationChunk
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command
from pydantic import BaseModel
from test_interrupts import boss, confirmer
from test_nodes import chain

ASKED = [
    "start",
    "main says m1: 'boss asks'",
    'main calls call_A in m1: ask_alpha {"q": "qa"}',
]


@pytest.mark.filterwarnings("ignore:This API is in beta")
def test_a_graph_as_a_tool():
    alpha = agent("alpha", "alpha answers")

    class Question(BaseModel):
        messages: list

    consult = alpha.as_tool(Question, name="ask_alpha", description="Ask.")
    args = {"messages": [{"role": "user", "content": "qa"}]}
    team = agent(
        "boss",
        Say("boss asks", calls=[("call_A", "ask_alpha", args)], arguments="one"),
        "boss done",
        tools=[consult],
    )
    lines = Play(team).run().lines
    assert lines[:6] == [
        "start",
        "main says m1: 'boss asks'",
        'main calls call_A in m1: ask_alpha {"messages": [{"role": "user", "content": "qa"}]}',
        "alpha#1 opens as tool for main, call call_A in m1",
        "alpha#1 says m2: 'alpha answers'",
        "alpha#1 returns 'alpha answers'",
    ]
    assert lines[7:] == [
        "main says m3: 'boss done'",
        "end",
    ]  # what it hears is the printed state of the graph


def test_an_agent_that_is_streamed_in_a_tool():
    alpha = agent("alpha", "alpha answers")

    @tool
    async def ask_alpha(q: str) -> str:
        """Ask."""
        return [said(state) async for state in alpha.astream(human(q), stream_mode="values")][-1]

    assert Play(boss(call("call_A", "ask_alpha", "qa"), tools=[ask_alpha])).run().lines == [
        *ASKED,
        "alpha#1 opens as tool for main, call call_A in m1",
        "alpha#1 says m2: 'alpha answers'",
        "alpha#1 returns 'alpha answers'",
        "main hears call_A: 'alpha answers'",
        "main says m3: 'boss done'",
        "end",
    ]


def test_a_batch_of_one_agent_in_a_tool():
    alpha = agent("alpha", "alpha answers")

    @tool
    async def ask_alpha(q: str) -> str:
        """Ask."""
        return " + ".join(said(one) for one in await alpha.abatch([human(q), human(q)]))

    assert Play(boss(call("call_A", "ask_alpha", "qa"), tools=[ask_alpha])).run().lanes == {
        "run": ["start", "end"],
        "main": [
            "says m1: 'boss asks'",
            'calls call_A in m1: ask_alpha {"q": "qa"}',
            "hears call_A: 'alpha answers + alpha answers'",
            "says m2: 'boss done'",
        ],
        "alpha#1": [
            "opens as tool for main, call call_A in m1",
            "says m3: 'alpha answers'",
            "returns 'alpha answers'",
        ],
        "alpha#2": [
            "opens as tool for main, call call_A in m1",
            "says m4: 'alpha answers'",
            "returns 'alpha answers'",
        ],
    }


def test_an_agent_whose_caller_loses_patience():
    alpha = agent("alpha", Say("alpha is far too slow", pause=0.1))

    @tool
    async def ask_alpha(q: str) -> str:
        """Ask."""
        try:
            return said(await asyncio.wait_for(alpha.ainvoke(human(q)), 0.15))
        except TimeoutError:
            return "alpha took too long"

    assert Play(boss(call("call_A", "ask_alpha", "qa"), tools=[ask_alpha])).run().lines == [
        *ASKED,
        "alpha#1 opens as tool for main, call call_A in m1",
        "alpha#1 says m2: 'alpha '",
        "alpha#1 fails cancelled: cancelled before it was over",
        "main hears call_A: 'alpha took too long'",
        "main says m3: 'boss done'",
        "end",
    ]


def test_an_agent_that_asks_itself():
    holder = {}

    @tool
    async def ask_alpha(q: str) -> str:
        """Ask."""
        return said(await holder[q].ainvoke(human(q)))

    holder["two"] = agent("alpha", "second alpha answers")
    holder["one"] = agent(
        "alpha",
        Say("alpha asks alpha", calls=[call("call_A", "ask_alpha", "two")]),
        "alpha answers",
        tools=[ask_alpha],
    )
    assert Play(boss(call("call_A", "ask_alpha", "one"), tools=[ask_alpha])).run().lines == [
        "start",
        "main says m1: 'boss asks'",
        'main calls call_A in m1: ask_alpha {"q": "one"}',
        "alpha#1 opens as tool for main, call call_A in m1",
        "alpha#1 says m2: 'alpha asks alpha'",
        'alpha#1 calls call_A@alpha#1 in m2: ask_alpha {"q": "two"}',
        "alpha#2 opens as tool for alpha#1, call call_A@alpha#1 in m2",
        "alpha#2 says m3: 'second alpha answers'",
        "alpha#2 returns 'second alpha answers'",
        "alpha#1 hears call_A@alpha#1: 'second alpha answers'",
        "alpha#1 says m4: 'alpha answers'",
        "alpha#1 returns 'alpha answers'",
        "main hears call_A: 'alpha answers'",
        "main says m5: 'boss done'",
        "end",
    ]


def test_two_models_at_once_under_one_owner():
    relay = Relay("left right left . right")
    left = model("left one", who="left", relay=relay)
    right = model("right two", who="right", relay=relay)

    def node(llm):
        async def think(state: MessagesState) -> dict:
            return {"messages": [await llm.ainvoke(state["messages"])]}

        return think

    builder = StateGraph(MessagesState)
    for name, llm in (("left", left), ("right", right)):
        builder.add_node(name, node(llm))
        builder.add_edge(START, name)
        builder.add_edge(name, END)
    assert Play(builder.compile()).run().lines == [
        "start",
        "main says m1+: 'left '",
        "main says m2+: 'right '",
        "main says +m1: 'one'",
        "main says +m2: 'two'",
        "end",
    ]


def test_a_model_in_a_sync_node():
    llm = model("main answers")

    def think(state: MessagesState) -> dict:
        return {"messages": [llm.invoke(state["messages"])]}

    assert Play(chain(think=think).compile()).run().lines == ["start", "main says m1: 'main answers'", "end"]


def test_models_that_only_complete_text():
    streaming = FakeStreamingListLLM(responses=["abc"])
    whole = FakeListLLM(responses=["def"])

    async def think(state: MessagesState) -> dict:
        async for _ in streaming.astream("go"):
            pass
        return {"messages": [AIMessage(await whole.ainvoke("go"), id="given")]}

    assert Play(chain(think=think).compile()).run().lines == [
        "start",
        "main says m1: 'abc'",
        "main says m2: 'def'",
        "end",
    ]


class Answer(BaseModel):
    """Answer."""

    n: int


def test_a_structured_answer():
    alpha = agent(
        "alpha", Say("", calls=[("call_S", "Answer", {"n": 1})]), response_format=ToolStrategy(Answer)
    )
    assert Play(boss(call("call_A", "ask_alpha", "qa"), tools=[ask(alpha, "ask_alpha")])).run().lines == [
        *ASKED,
        "alpha#1 opens as tool for main, call call_A in m1",
        'alpha#1 calls call_S in m2: Answer {"n": 1}',
        "alpha#1 hears call_S: 'Returning structured response: n=1'",
        "alpha#1 returns 'Returning structured response: n=1'",
        "main hears call_A: 'Returning structured response: n=1'",
        "main says m3: 'boss done'",
        "end",
    ]


def test_a_breakpoint_of_the_graph():
    alpha, beta = agent("alpha", "alpha answers"), agent("beta", "", "beta answers")
    graph = chain(first=alpha, second=beta).compile(checkpointer=InMemorySaver(), interrupt_before=["second"])
    play = Play(graph)
    assert play.run().lines == [
        "start",
        "alpha#1 opens as subgraph for main",
        "alpha#1 says m1: 'alpha answers'",
        "alpha#1 returns 'alpha answers'",
        "end",
    ]
    assert play.run(None).lines == [
        "start",
        "beta#1 opens as subgraph for main",
        "beta#1 says m2: 'beta answers'",
        "beta#1 returns 'beta answers'",
        "end",
    ]


def test_a_breakpoint_of_a_subgraph():
    one, two = agent("one", "one answers"), agent("two", "", "two answers")
    inner = chain(one=one, two=two).compile(name="inner", interrupt_before=["two"])
    # A breakpoint waits for the user, which nobody foresees of a subgraph.
    play = Play(chain(inner=inner).compile(checkpointer=InMemorySaver()), accepts=["contract-interaction"])
    assert play.run().lines == [
        "start",
        "inner#1 opens as subgraph for main",
        "one#1 opens as subgraph for inner#1",
        "one#1 says m1: 'one answers'",
        "one#1 returns 'one answers'",
        "inner#1 suspends without asking",
        "end",
    ]
    assert play.run(None).lines == [
        "start",
        "inner#1 opens as subgraph for main",
        "two#1 opens as subgraph for inner#1",
        "two#1 says m2: 'two answers'",
        "two#1 returns 'two answers'",
        "inner#1 returns 'two answers'",
        "end",
    ]


def test_the_client_changes_the_state_at_a_breakpoint():
    seen = []

    class Topic(MessagesState):
        topic: str

    def first(state: Topic) -> dict:
        return {"topic": "ships"}

    def second(state: Topic) -> dict:
        seen.append(state["topic"])
        return {}

    builder = StateGraph(Topic)
    builder.add_node("first", first)
    builder.add_node("second", second)
    builder.add_edge(START, "first")
    builder.add_edge("first", "second")
    play = Play(builder.compile(checkpointer=InMemorySaver(), interrupt_before=["second"]))
    assert play.run().lines == ["start", 'main state {"topic": "ships"}', "end"]
    assert play.run(None, state={"topic": "sails"}).lines == ["start", "end"]
    assert seen == ["sails"]


def test_a_resume_with_langgraphs_own_arguments():
    play = Play(boss(call("call_A", "ask_alpha", "qa"), tools=[ask(confirmer("alpha"), "ask_alpha")]))
    config = {"configurable": {"thread_id": "n"}}
    assert play.stream(human("go"), config).lines == [
        *ASKED,
        "alpha#1 opens as tool for main, call call_A in m1",
        "alpha#1 says m2: 'alpha asks'",
        'alpha#1 calls call_alpha in m2: confirm {"q": "sure"}',
        "alpha#1 suspends i1",
        "waits [i1 alpha#1 langgraph:interrupt 'sure?' on call_alpha]",
    ]
    assert play.stream(Command(resume="yes"), config).lines == [
        "start",
        "alpha#1 opens as tool for main, call call_A in None",
        "alpha#1 hears call_alpha: 'confirmed: yes'",
        "alpha#1 says m3: 'alpha knows'",
        "alpha#1 returns 'alpha knows'",
        "main hears call_A: 'alpha knows'",
        "main says m4: 'boss done'",
        "end",
    ]


class Completes(FakeListLLM):
    """A model that completes text piece by piece, as LangChain has those of providers do it."""

    async def _astream(self, prompt, stop=None, run_manager=None, **kwargs):
        for piece in self.responses:
            await run_manager.on_llm_new_token(piece, chunk=GenerationChunk(text=piece))
            yield GenerationChunk(text=piece)


def test_a_model_that_only_completes_text_is_heard_while_it_does():
    completes = Completes(responses=["a", "b", "c"])

    async def think(state: MessagesState) -> dict:
        async for _ in completes.astream("go"):
            pass
        return {}

    events = Play(chain(think=think).compile()).run().events
    assert [event.delta for event in events if event.type == "TEXT_MESSAGE_CONTENT"] == ["a", "b", "c"]
