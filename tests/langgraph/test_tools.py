"""Subagents that are called in tools."""

import asyncio
import threading
from typing import Any

from byline_langgraph.scripted import Say
from kit import Play, Relay, agent, ask, call, human, model, said, takes_lists
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command


def boss(*calls, tools, name="boss", **options):
    return agent(name, Say("boss asks", calls=calls), "boss done", tools=tools, **options)


ONE = [
    "start",
    "main says m1: 'boss asks'",
    'main calls call_A in m1: ask_alpha {"q": "qa"}',
    "alpha#1 opens as tool for main, call call_A in m1",
    "alpha#1 says m2: 'alpha answers'",
    "alpha#1 returns 'alpha answers'",
    "main hears call_A: 'alpha answers'",
    "main says m3: 'boss done'",
    "end",
]


def test_an_agent_called_in_an_async_tool():
    alpha = agent("alpha", "alpha answers")
    assert Play(boss(call("call_A", "ask_alpha", "qa"), tools=[ask(alpha, "ask_alpha")])).run().lines == ONE


def test_an_agent_called_in_a_sync_tool():
    alpha = agent("alpha", "alpha answers")
    team = boss(call("call_A", "ask_alpha", "qa"), tools=[ask(alpha, "ask_alpha", sync=True)])
    assert Play(team).run().lines == ONE


def test_an_agent_called_in_a_thread_of_the_tools_own_with_the_tools_config():
    alpha = agent("alpha", "alpha answers")

    @tool
    def ask_alpha(q: str, config: RunnableConfig) -> str:
        """Ask."""
        answers = []
        thread = threading.Thread(target=lambda: answers.append(said(alpha.invoke(human(q), config))))
        thread.start()
        thread.join()
        return answers[0]

    assert Play(boss(call("call_A", "ask_alpha", "qa"), tools=[ask_alpha])).run().lines == ONE


def test_an_agent_with_a_thread_of_its_own():
    alpha = agent("alpha", "alpha answers", checkpointer=InMemorySaver())
    own = {"configurable": {"thread_id": "alphas-own"}}
    team = boss(
        call("call_A", "ask_alpha", "qa"),
        tools=[ask(alpha, "ask_alpha", config=own)],
        checkpointer=InMemorySaver(),
    )
    assert Play(team).run().lines == ONE


def test_an_unnamed_agent_has_the_name_of_the_tool_that_called_it():
    helper = agent(None, "helper answers")
    assert Play(boss(call("call_A", "ask_helper", "qa"), tools=[ask(helper, "ask_helper")])).run().lines == [
        "start",
        "main says m1: 'boss asks'",
        'main calls call_A in m1: ask_helper {"q": "qa"}',
        "ask_helper#1 opens as tool for main, call call_A in m1",
        "ask_helper#1 says m2: 'helper answers'",
        "ask_helper#1 returns 'helper answers'",
        "main hears call_A: 'helper answers'",
        "main says m3: 'boss done'",
        "end",
    ]


def test_two_parallel_agents_token_by_token():
    relay = Relay("alpha beta alpha alpha beta beta alpha . beta")
    alpha = agent("alpha", "alpha one two three", model_options={"who": "alpha", "relay": relay})
    beta = agent("beta", "beta one two three", model_options={"who": "beta", "relay": relay})
    team = boss(
        call("call_A", "ask_alpha", "qa"),
        call("call_B", "ask_beta", "qb"),
        tools=[ask(alpha, "ask_alpha"), ask(beta, "ask_beta")],
    )
    assert Play(team).run().lines == [
        "start",
        "main says m1: 'boss asks'",
        'main calls call_A+ in m1: ask_alpha {"q": "qa"}',
        'main calls call_B+ in m1: ask_beta {"q": "qb"}',
        "main calls +call_A",
        "main calls +call_B",
        "alpha#1 opens as tool for main, call call_A in m1",
        "beta#1 opens as tool for main, call call_B in m1",
        "alpha#1 says m2+: 'alpha '",
        "beta#1 says m3+: 'beta '",
        "alpha#1 says +m2+: 'one two '",
        "beta#1 says +m3+: 'one two '",
        "alpha#1 says +m2: 'three'",
        "alpha#1 returns 'alpha one two three'",
        "main hears call_A: 'alpha one two three'",
        "beta#1 says +m3: 'three'",
        "beta#1 returns 'beta one two three'",
        "main hears call_B: 'beta one two three'",
        "main says m4: 'boss done'",
        "end",
    ]


def test_two_agents_at_once_in_one_tool_call():
    relay = Relay("alpha beta alpha beta")
    alpha = agent("alpha", "alpha answers", model_options={"who": "alpha", "relay": relay})
    beta = agent("beta", "beta answers", model_options={"who": "beta", "relay": relay})

    @tool
    async def ask_both(q: str) -> str:
        """Ask."""
        both = await asyncio.gather(alpha.ainvoke(human(q)), beta.ainvoke(human(q)))
        return " + ".join(said(one) for one in both)

    assert Play(boss(call("call_A", "ask_both", "qa"), tools=[ask_both])).run().lanes == {
        "run": ["start", "end"],
        "main": [
            "says m1: 'boss asks'",
            'calls call_A in m1: ask_both {"q": "qa"}',
            "hears call_A: 'alpha answers + beta answers'",
            "says m2: 'boss done'",
        ],
        "alpha#1": [
            "opens as tool for main, call call_A in m1",
            "says m3: 'alpha answers'",
            "returns 'alpha answers'",
        ],
        "beta#1": [
            "opens as tool for main, call call_A in m1",
            "says m4: 'beta answers'",
            "returns 'beta answers'",
        ],
    }


def test_two_agents_one_after_the_other_in_one_tool_call():
    alpha, beta = agent("alpha", "alpha answers"), agent("beta", "beta answers")

    @tool
    async def ask_both(q: str) -> str:
        """Ask."""
        first = said(await alpha.ainvoke(human(q)))
        return first + " + " + said(await beta.ainvoke(human(first)))

    assert Play(boss(call("call_A", "ask_both", "qa"), tools=[ask_both])).run().lines == [
        "start",
        "main says m1: 'boss asks'",
        'main calls call_A in m1: ask_both {"q": "qa"}',
        "alpha#1 opens as tool for main, call call_A in m1",
        "alpha#1 says m2: 'alpha answers'",
        "alpha#1 returns 'alpha answers'",
        "beta#1 opens as tool for main, call call_A in m1",
        "beta#1 says m3: 'beta answers'",
        "beta#1 returns 'beta answers'",
        "main hears call_A: 'alpha answers + beta answers'",
        "main says m4: 'boss done'",
        "end",
    ]


def test_the_same_agent_twice_in_one_tool_call():
    alpha = agent("alpha", "alpha answers")

    @tool
    def ask_twice(q: str) -> str:
        """Ask."""
        return said(alpha.invoke(human(q))) + " + " + said(alpha.invoke(human(q)))

    assert Play(boss(call("call_A", "ask_twice", "qa"), tools=[ask_twice])).run().lines == [
        "start",
        "main says m1: 'boss asks'",
        'main calls call_A in m1: ask_twice {"q": "qa"}',
        "alpha#1 opens as tool for main, call call_A in m1",
        "alpha#1 says m2: 'alpha answers'",
        "alpha#1 returns 'alpha answers'",
        "alpha#2 opens as tool for main, call call_A in m1",
        "alpha#2 says m3: 'alpha answers'",
        "alpha#2 returns 'alpha answers'",
        "main hears call_A: 'alpha answers + alpha answers'",
        "main says m4: 'boss done'",
        "end",
    ]


TWICE = {
    "run": ["start", "end"],
    "main": [
        "says m1: 'boss asks'",
        'calls call_A+ in m1: ask_alpha {"q": "qa"}',
        'calls call_B+ in m1: ask_alpha {"q": "qb"}',
        "calls +call_A",
        "calls +call_B",
        "hears call_A: 'alpha answers'",
        "hears call_B: 'alpha answers'",
        "says m2: 'boss done'",
    ],
    "alpha#1": [
        "opens as tool for main, call call_A in m1",
        "says m3: 'alpha answers'",
        "returns 'alpha answers'",
    ],
    "alpha#2": [
        "opens as tool for main, call call_B in m1",
        "says m4: 'alpha answers'",
        "returns 'alpha answers'",
    ],
}


def test_the_same_agent_in_two_parallel_calls():
    alpha = agent("alpha", "alpha answers")
    team = boss(
        call("call_A", "ask_alpha", "qa"), call("call_B", "ask_alpha", "qb"), tools=[ask(alpha, "ask_alpha")]
    )
    assert Play(team).run().lanes == TWICE


def test_an_agent_with_a_memory_of_its_own_in_two_parallel_calls():
    """`checkpointer=True`: the two share one namespace, which is why names are not taken from it."""
    alpha = agent("alpha", "alpha answers", checkpointer=True)
    team = boss(
        call("call_A", "ask_alpha", "qa"),
        call("call_B", "ask_alpha", "qb"),
        tools=[ask(alpha, "ask_alpha")],
        checkpointer=InMemorySaver(),
    )
    assert Play(team).run().lanes == TWICE


def test_agents_in_tools_three_deep():
    gamma = agent("gamma", "gamma answers")
    beta = agent(
        "beta",
        Say("beta asks", calls=[call("call_C", "ask_gamma", "qc")]),
        "beta answers",
        tools=[ask(gamma, "ask_gamma", sync=True)],
    )
    alpha = agent(
        "alpha",
        Say("alpha asks", calls=[call("call_B", "ask_beta", "qb")]),
        "alpha answers",
        tools=[ask(beta, "ask_beta")],
    )
    team = boss(call("call_A", "ask_alpha", "qa"), tools=[ask(alpha, "ask_alpha")])
    assert Play(team).run().lines == [
        "start",
        "main says m1: 'boss asks'",
        'main calls call_A in m1: ask_alpha {"q": "qa"}',
        "alpha#1 opens as tool for main, call call_A in m1",
        "alpha#1 says m2: 'alpha asks'",
        'alpha#1 calls call_B in m2: ask_beta {"q": "qb"}',
        "beta#1 opens as tool for alpha#1, call call_B in m2",
        "beta#1 says m3: 'beta asks'",
        'beta#1 calls call_C in m3: ask_gamma {"q": "qc"}',
        "gamma#1 opens as tool for beta#1, call call_C in m3",
        "gamma#1 says m4: 'gamma answers'",
        "gamma#1 returns 'gamma answers'",
        "beta#1 hears call_C: 'gamma answers'",
        "beta#1 says m5: 'beta answers'",
        "beta#1 returns 'beta answers'",
        "alpha#1 hears call_B: 'beta answers'",
        "alpha#1 says m6: 'alpha answers'",
        "alpha#1 returns 'alpha answers'",
        "main hears call_A: 'alpha answers'",
        "main says m7: 'boss done'",
        "end",
    ]


def batched(llm, tools):
    """A graph whose one tools task runs all calls of a message."""

    async def think(state: MessagesState) -> dict:
        return {"messages": [await llm.ainvoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("think", think)
    builder.add_node("tools", ToolNode(tools))
    builder.add_edge(START, "think")
    builder.add_conditional_edges("think", tools_condition)
    builder.add_edge("tools", "think")
    return builder.compile()


def test_a_hand_written_tool_node_that_runs_all_calls_in_one_task():
    relay = Relay("alpha beta alpha . beta")
    alpha = agent("alpha", "alpha answers", model_options={"who": "alpha", "relay": relay})
    beta = agent("beta", "beta answers", model_options={"who": "beta", "relay": relay})
    llm = model(
        Say("boss asks", calls=[call("call_A", "ask_alpha", "qa"), call("call_B", "ask_beta", "qb")]),
        "boss done",
    )
    graph = batched(llm, [ask(alpha, "ask_alpha"), ask(beta, "ask_beta")])
    assert Play(graph).run().lines == [
        "start",
        "main says m1: 'boss asks'",
        'main calls call_A+ in m1: ask_alpha {"q": "qa"}',
        'main calls call_B+ in m1: ask_beta {"q": "qb"}',
        "main calls +call_A",
        "main calls +call_B",
        "alpha#1 opens as tool for main, call call_A in m1",
        "beta#1 opens as tool for main, call call_B in m1",
        "alpha#1 says m2+: 'alpha '",
        "beta#1 says m3+: 'beta '",
        "alpha#1 says +m2: 'answers'",
        "alpha#1 returns 'alpha answers'",
        "main hears call_A: 'alpha answers'",
        "beta#1 says +m3: 'answers'",
        "beta#1 returns 'beta answers'",
        "main hears call_B: 'beta answers'",
        "main says m4: 'boss done'",
        "end",
    ]


def test_a_tool_that_merely_calls_a_model_is_no_subagent():
    helper = model("helper words")

    @tool
    async def rephrase(q: str) -> str:
        """Rephrase."""
        return (await helper.ainvoke(q)).text

    assert Play(boss(call("call_A", "rephrase", "qa"), tools=[rephrase])).run().lines == [
        "start",
        "main says m1: 'boss asks'",
        'main calls call_A in m1: rephrase {"q": "qa"}',
        "main says m2: 'helper words'",
        "main hears call_A: 'helper words'",
        "main says m3: 'boss done'",
        "end",
    ]


def test_a_subagent_named_supervisor_is_a_subagent_when_a_tool_calls_it():
    supervisor = agent("supervisor", "supervisor answers")
    team = boss(call("call_A", "ask_supervisor", "qa"), tools=[ask(supervisor, "ask_supervisor")])
    assert Play(team).run().lines == [
        "start",
        "main says m1: 'boss asks'",
        'main calls call_A in m1: ask_supervisor {"q": "qa"}',
        "supervisor#1 opens as tool for main, call call_A in m1",
        "supervisor#1 says m2: 'supervisor answers'",
        "supervisor#1 returns 'supervisor answers'",
        "main hears call_A: 'supervisor answers'",
        "main says m3: 'boss done'",
        "end",
    ]


def test_a_plain_tool_of_a_subagent():
    @tool
    def look_up(q: str) -> str:
        """Look up."""
        return f"found {q}"

    alpha = agent(
        "alpha", Say("alpha looks", calls=[call("call_L", "look_up", "it")]), "alpha knows", tools=[look_up]
    )
    assert Play(boss(call("call_A", "ask_alpha", "qa"), tools=[ask(alpha, "ask_alpha")])).run().lines == [
        "start",
        "main says m1: 'boss asks'",
        'main calls call_A in m1: ask_alpha {"q": "qa"}',
        "alpha#1 opens as tool for main, call call_A in m1",
        "alpha#1 says m2: 'alpha looks'",
        'alpha#1 calls call_L in m2: look_up {"q": "it"}',
        "alpha#1 hears call_L: 'found it'",
        "alpha#1 says m3: 'alpha knows'",
        "alpha#1 returns 'alpha knows'",
        "main hears call_A: 'alpha knows'",
        "main says m4: 'boss done'",
        "end",
    ]


def by_hand(tool, **config):
    """A graph that asks a model and makes its only call itself."""
    llm = model(Say("main asks", calls=[call("call_A", tool.name, "q")]))

    async def think(state: MessagesState) -> dict:
        return {"messages": [await llm.ainvoke(state["messages"])]}

    async def act(state: MessagesState) -> Any:
        made = await tool.ainvoke({**state["messages"][-1].tool_calls[0], "type": "tool_call"}, config)
        return {"messages": [made]} if isinstance(made, ToolMessage) else made

    builder = StateGraph(MessagesState)
    builder.add_node("think", think)
    builder.add_node("act", act)
    builder.add_edge(START, "think")
    builder.add_edge("think", "act")
    return builder


def test_a_command_without_a_message_answers_its_call_with_nothing():
    @tool
    def note(q: str) -> Command:
        """Note."""
        return Command(update={})

    assert Play(by_hand(note).compile()).run().lines == [
        "start",
        "main says m1: 'main asks'",
        'main calls call_A in m1: note {"q": "q"}',
        "main hears call_A: ''",
        "end",
    ]


def test_a_handoff_without_a_message_leaves_its_call_open():
    @tool
    def leave(q: str) -> Command:
        """Leave."""
        return Command(goto="beta", graph=Command.PARENT)

    builder = StateGraph(MessagesState)
    builder.add_node("alpha", by_hand(leave).compile(name="alpha"))
    builder.add_node("beta", agent("beta", "beta answers"))
    builder.add_edge(START, "alpha")
    assert Play(builder.compile()).run().lines == [
        "start",
        "alpha#1 opens as subgraph for main",
        "alpha#1 says m1: 'main asks'",
        'alpha#1 calls call_A in m1: leave {"q": "q"}',
        "alpha#1 returns None",
        "beta#1 opens as handoff for main, call call_A in m1",
        "beta#1 says m2: 'beta answers'",
        "beta#1 returns 'beta answers'",
        "end pending call_A",
    ]


@takes_lists
def test_a_list_with_a_handoff_without_a_message_leaves_its_call_open():
    @tool
    def leave(q: str) -> list:
        """Leave."""
        return [Command(goto="beta", graph=Command.PARENT)]

    builder = StateGraph(MessagesState)
    builder.add_node("alpha", by_hand(leave).compile(name="alpha"))
    builder.add_node("beta", agent("beta", "beta answers"))
    builder.add_edge(START, "alpha")
    assert Play(builder.compile()).run().lines == [
        "start",
        "alpha#1 opens as subgraph for main",
        "alpha#1 says m1: 'main asks'",
        'alpha#1 calls call_A in m1: leave {"q": "q"}',
        "alpha#1 returns None",
        "beta#1 opens as handoff for main, call call_A in m1",
        "beta#1 says m2: 'beta answers'",
        "beta#1 returns 'beta answers'",
        "end pending call_A",
    ]


def test_an_answer_under_another_id_is_what_the_tool_returned():
    @tool
    def look(q: str) -> ToolMessage:
        """Look."""
        return ToolMessage("seen", tool_call_id="another")

    assert Play(by_hand(look).compile()).run().lines == [
        "start",
        "main says m1: 'main asks'",
        'main calls call_A in m1: look {"q": "q"}',
        "main hears call_A: 'seen'",
        "end",
    ]


def test_an_unnamed_agent_has_the_name_of_the_tool_and_not_that_of_its_run():
    consult = ask(agent(None, "somebody answers"), "ask_somebody")
    assert Play(by_hand(consult, run_name="a pretty name").compile()).run().lines == [
        "start",
        "main says m1: 'main asks'",
        'main calls call_A in m1: ask_somebody {"q": "q"}',
        "ask_somebody#1 opens as tool for main, call call_A in m1",
        "ask_somebody#1 says m2: 'somebody answers'",
        "ask_somebody#1 returns 'somebody answers'",
        "main hears call_A: 'somebody answers'",
        "end",
    ]


def test_what_a_command_answers_is_its_callers_call():
    @tool
    def note(q: str) -> Command:
        """Note."""
        return Command(update={})

    builder = StateGraph(MessagesState)
    builder.add_node("alpha", by_hand(note).compile(name="alpha"))
    builder.add_edge(START, "alpha")
    assert Play(builder.compile()).run().lines == [
        "start",
        "alpha#1 opens as subgraph for main",
        "alpha#1 says m1: 'main asks'",
        'alpha#1 calls call_A in m1: note {"q": "q"}',
        "alpha#1 hears call_A: ''",
        "alpha#1 returns 'main asks'",
        "end",
    ]


def test_a_tool_that_no_model_called_answers_nothing():
    @tool
    def look(q: str) -> str:
        """Look."""
        return f"seen {q}"

    async def work(state: MessagesState) -> dict:
        return {"messages": [AIMessage(await look.ainvoke({"q": "it"}), id="a1")]}

    graph = StateGraph(MessagesState).add_node("work", work).add_edge(START, "work").compile()
    assert Play(graph).run().lines == ["start", "main says a1: 'seen it'", "end"]


def test_a_subagent_in_a_thread_of_the_second_of_two_tools_that_one_node_calls():
    alpha = agent("alpha", "alpha answers")

    @tool
    def look(q: str) -> str:
        """Look."""
        return "seen"

    @tool
    def ask_alpha(q: str, config: RunnableConfig) -> str:
        """Ask."""
        answers = []
        thread = threading.Thread(target=lambda: answers.append(said(alpha.invoke(human(q), config))))
        thread.start()
        thread.join()
        return answers[0]

    llm = model(Say("main asks", calls=[call("call_A", "look", "q"), call("call_B", "ask_alpha", "q")]))

    async def think(state: MessagesState) -> dict:
        return {"messages": [await llm.ainvoke(state["messages"])]}

    def act(state: MessagesState, config: RunnableConfig) -> dict:
        first, second = ({**one, "type": "tool_call"} for one in state["messages"][-1].tool_calls)
        return {"messages": [look.invoke(first, config), ask_alpha.invoke(second, config)]}

    builder = StateGraph(MessagesState)
    builder.add_node("think", think)
    builder.add_node("act", act)
    builder.add_edge(START, "think")
    builder.add_edge("think", "act")
    assert Play(builder.compile()).run().lines == [
        "start",
        "main says m1: 'main asks'",
        'main calls call_A+ in m1: look {"q": "q"}',
        'main calls call_B+ in m1: ask_alpha {"q": "q"}',
        "main calls +call_A",
        "main calls +call_B",
        "main hears call_A: 'seen'",
        "alpha#1 opens as tool for main, call call_B in m1",
        "alpha#1 says m2: 'alpha answers'",
        "alpha#1 returns 'alpha answers'",
        "main hears call_B: 'alpha answers'",
        "end",
    ]
