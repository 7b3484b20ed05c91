"""Hand-offs: langgraph-supervisor and langgraph-swarm."""

import asyncio
from typing import Annotated

import pytest
from byline_langgraph.scripted import Say
from kit import Play, agent, call, human, model, takes_lists
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, Send
from langgraph_supervisor import create_supervisor
from langgraph_swarm import create_handoff_tool, create_swarm
from test_interrupts import confirm

# langgraph-supervisor builds its supervisor with a function that LangGraph calls outdated.
pytestmark = pytest.mark.filterwarnings("ignore:create_react_agent has been moved")


def to(id_, name):
    return (id_, f"transfer_to_{name}", {})


def supervisor(agents, *turns, name="supervisor", **options):
    return create_supervisor(agents, model=model(*turns), supervisor_name=name, **options)


def test_a_supervisor_hands_over_and_gets_control_back():
    alpha, beta = agent("alpha", "", "alpha answers"), agent("beta", *[""] * 4, "beta answers")
    graph = supervisor(
        [alpha, beta],
        Say("super asks alpha", calls=[to("call_A", "alpha")]),
        "",
        "",
        Say("super asks beta", calls=[to("call_B", "beta")]),
        "",
        "",
        "super done",
    ).compile()
    assert Play(graph).run().lines == [
        "start",
        "main says m1: 'super asks alpha'",
        "main calls call_A in m1: transfer_to_alpha {}",
        "main hears call_A: 'Successfully transferred to alpha'",
        "alpha#1 opens as handoff and back for main, call call_A in m1",
        "alpha#1 says m2: 'alpha answers'",
        "alpha#1 returns 'alpha answers'",
        "main says m3: 'super asks beta'",
        "main calls call_B in m3: transfer_to_beta {}",
        "main hears call_B: 'Successfully transferred to beta'",
        "beta#1 opens as handoff and back for main, call call_B in m3",
        "beta#1 says m4: 'beta answers'",
        "beta#1 returns 'beta answers'",
        "main says m5: 'super done'",
        "end",
    ]


@pytest.mark.parametrize("first", [0, 1], ids=["hand-off first", "tool first"])
def test_a_handoff_and_a_tool_in_one_turn_have_a_result_each(first):
    """LangGraph waits for the tool; the supervisor's own state keeps neither call nor result."""

    @tool
    async def slow_look(q: str) -> str:
        """Look, and take longer than a hand-off does."""
        await asyncio.sleep(0.2)
        return f"seen {q}"

    called = [to("call_A", "alpha"), call("call_B", "slow_look", "x")]
    told = {"call_A": "transfer_to_alpha {}", "call_B": 'slow_look {"q": "x"}'}
    order = ["call_B", "call_A"] if first else ["call_A", "call_B"]
    graph = supervisor(
        [agent("alpha", "", "alpha answers")],
        Say("super wants both", calls=called[::-1] if first else called),
        "",
        "super done",
        tools=[slow_look],
    ).compile()
    assert Play(graph).run().lines == [
        "start",
        "main says m1: 'super wants both'",
        f"main calls {order[0]}+ in m1: {told[order[0]]}",
        f"main calls {order[1]}+ in m1: {told[order[1]]}",
        f"main calls +{order[0]}",
        f"main calls +{order[1]}",
        "main hears call_A: 'Successfully transferred to alpha'",
        "main hears call_B: 'seen x'",
        "alpha#1 opens as handoff and back for main, call call_A in m1",
        "alpha#1 says m2: 'alpha answers'",
        "alpha#1 returns 'alpha answers'",
        "main says m3: 'super done'",
        "end",
    ]


def test_a_supervisor_of_supervisors():
    alpha = agent("alpha", *[""] * 2, "alpha answers")
    research = supervisor(
        [alpha],
        "",
        Say("research asks", calls=[to("call_B", "alpha")]),
        "",
        "",
        "research done",
        name="research_lead",
    ).compile(name="research")
    graph = supervisor(
        [research], Say("top asks", calls=[to("call_A", "research")]), "", "", "top done", name="top"
    ).compile(name="company")
    assert Play(graph, transparent=["top", "research_lead"]).run().lines == [
        "start",
        "main says m1: 'top asks'",
        "main calls call_A in m1: transfer_to_research {}",
        "main hears call_A: 'Successfully transferred to research'",
        "research#1 opens as handoff and back for main, call call_A in m1",
        "research#1 says m2: 'research asks'",
        "research#1 calls call_B in m2: transfer_to_alpha {}",
        "research#1 hears call_B: 'Successfully transferred to alpha'",
        "alpha#1 opens as handoff and back for research#1, call call_B in m2",
        "alpha#1 says m3: 'alpha answers'",
        "alpha#1 returns 'alpha answers'",
        "research#1 says m4: 'research done'",
        "research#1 returns 'research done'",
        "main says m5: 'top done'",
        "end",
    ]


CONFIRMED = [
    "alpha#1 hears call_alpha: 'confirmed: yes'",
    "alpha#1 says m3: 'alpha knows'",
    "alpha#1 returns 'alpha knows'",
]


def confirmer():
    asks = Say("alpha asks", calls=[call("call_alpha", "confirm", "sure")])
    return agent("alpha", "", asks, "alpha knows", tools=[confirm])


def test_an_agent_asks_after_a_supervisors_handoff():
    graph = supervisor([confirmer()], Say("super asks", calls=[to("call_A", "alpha")]), "", "", "super done")
    play = Play(graph.compile(checkpointer=InMemorySaver()))
    assert play.run().lines == [
        "start",
        "main says m1: 'super asks'",
        "main calls call_A in m1: transfer_to_alpha {}",
        "main hears call_A: 'Successfully transferred to alpha'",
        "alpha#1 opens as handoff and back for main, call call_A in m1",
        "alpha#1 says m2: 'alpha asks'",
        'alpha#1 calls call_alpha in m2: confirm {"q": "sure"}',
        "alpha#1 suspends i1",
        "waits [i1 alpha#1 langgraph:interrupt 'sure?' on call_alpha]",
    ]
    assert play.resume({"i1": "yes"}).lines == [
        "start",
        "alpha#1 opens as handoff and back for main, call call_A in None",
        *CONFIRMED,
        "main says m4: 'super done'",
        "end",
    ]


def test_an_agent_asks_after_a_swarms_handoff():
    """The call was another agent's, of another run: there is none to name in this one."""
    beta = agent(
        "beta",
        Say("beta passes on", calls=[to("call_A", "alpha")]),
        tools=[create_handoff_tool(agent_name="alpha")],
    )
    graph = create_swarm([confirmer(), beta], default_active_agent="beta")
    play = Play(graph.compile(checkpointer=InMemorySaver()))
    assert play.run().lines == [
        "start",
        "beta#1 opens as subgraph for main",
        "beta#1 says m1: 'beta passes on'",
        "beta#1 calls call_A in m1: transfer_to_alpha {}",
        "beta#1 hears call_A: 'Successfully transferred to alpha'",
        "beta#1 returns None",
        'main state {"active_agent": "alpha"}',
        "alpha#1 opens as handoff for main, call call_A in m1",
        "alpha#1 says m2: 'alpha asks'",
        'alpha#1 calls call_alpha in m2: confirm {"q": "sure"}',
        "alpha#1 suspends i1",
        "waits [i1 alpha#1 langgraph:interrupt 'sure?' on call_alpha]",
    ]
    assert play.resume({"i1": "yes"}).lines == [
        "start",
        'main state {"active_agent": "alpha"}',
        "alpha#1 opens as handoff for main",
        *CONFIRMED,
        "end",
    ]


def swarm(**options):
    to_beta = create_handoff_tool(agent_name="beta")
    to_alpha = create_handoff_tool(agent_name="alpha")
    alpha = agent(
        "alpha", Say("alpha passes on", calls=[to("call_B", "beta")]), "", "alpha ends", tools=[to_beta]
    )
    beta = agent(
        "beta", "", Say("beta passes back", calls=[to("call_A", "alpha")]), "", "beta again", tools=[to_alpha]
    )
    return create_swarm([alpha, beta], default_active_agent="alpha").compile(**options)


def test_a_swarm_hands_over_and_back():
    assert Play(swarm()).run().lines == [
        "start",
        "alpha#1 opens as subgraph for main",
        "alpha#1 says m1: 'alpha passes on'",
        "alpha#1 calls call_B in m1: transfer_to_beta {}",
        "alpha#1 hears call_B: 'Successfully transferred to beta'",
        "alpha#1 returns None",
        'main state {"active_agent": "beta"}',
        "beta#1 opens as handoff for main, call call_B in m1",
        "beta#1 says m2: 'beta passes back'",
        "beta#1 calls call_A in m2: transfer_to_alpha {}",
        "beta#1 hears call_A: 'Successfully transferred to alpha'",
        "beta#1 returns None",
        'main state {"active_agent": "alpha"}',
        "alpha#2 opens as handoff for main, call call_A in m2",
        "alpha#2 says m3: 'alpha ends'",
        "alpha#2 returns 'alpha ends'",
        "end",
    ]


def test_the_next_turn_goes_to_whom_the_swarm_was_handed():
    to_beta = create_handoff_tool(agent_name="beta")
    alpha = agent("alpha", Say("alpha passes on", calls=[to("call_B", "beta")]), tools=[to_beta])
    beta = agent("beta", "", "beta takes it", "beta goes on")
    play = Play(
        create_swarm([alpha, beta], default_active_agent="alpha").compile(checkpointer=InMemorySaver())
    )
    assert play.run("one").lines == [
        "start",
        "alpha#1 opens as subgraph for main",
        "alpha#1 says m1: 'alpha passes on'",
        "alpha#1 calls call_B in m1: transfer_to_beta {}",
        "alpha#1 hears call_B: 'Successfully transferred to beta'",
        "alpha#1 returns None",
        'main state {"active_agent": "beta"}',
        "beta#1 opens as handoff for main, call call_B in m1",
        "beta#1 says m2: 'beta takes it'",
        "beta#1 returns 'beta takes it'",
        "end",
    ]
    assert play.run("two").lines == [
        "start",
        'main state {"active_agent": "beta"}',
        "beta#2 opens as subgraph for main",
        "beta#2 says m3: 'beta goes on'",
        "beta#2 returns 'beta goes on'",
        "end",
    ]


def handed(name, of="transfer_to_alpha"):
    """A conversation of an earlier run that ends with what a tool answered."""
    return [
        HumanMessage("go", id="u1"),
        AIMessage(
            "beta passes on", id="a1", name=name, tool_calls=[{"name": of, "args": {}, "id": "call_A"}]
        ),
        ToolMessage("done", id="t1", name=of, tool_call_id="call_A"),
    ]


@pytest.mark.parametrize("of", ["look", "transfer_to_beta"])
def test_a_conversation_that_ends_with_the_answer_of_another_tool_is_no_handoff(of):
    alpha = agent("alpha", "", "alpha answers")
    beta = agent("beta", "never said", tools=[create_handoff_tool(agent_name="alpha")])
    back = agent("gamma", "never said", tools=[create_handoff_tool(agent_name="beta")])
    graph = create_swarm([alpha, beta, back], default_active_agent="alpha").compile()
    assert Play(graph).stream({"messages": handed("gamma", of)}).lines == [
        "start",
        "alpha#1 opens as subgraph for main",
        "alpha#1 says m1: 'alpha answers'",
        "alpha#1 returns 'alpha answers'",
        "end",
    ]


def test_a_conversation_that_was_cut_before_the_call_of_its_handoff():
    alpha = agent("alpha", "alpha answers")
    beta = agent("beta", "never said", tools=[create_handoff_tool(agent_name="alpha")])
    graph = create_swarm([alpha, beta], default_active_agent="alpha").compile()
    assert Play(graph).stream({"messages": handed("beta")[-1:]}).lines == [
        "start",
        "alpha#1 opens as handoff for main",
        "alpha#1 says m1: 'alpha answers'",
        "alpha#1 returns 'alpha answers'",
        "end",
    ]


def test_an_agent_asks_after_the_handoff_of_a_supervisor_that_is_a_subagent():
    asks = Say("alpha asks", calls=[call("call_alpha", "confirm", "sure")])
    alpha = agent("alpha", "", "", asks, "alpha knows", tools=[confirm])
    desk = supervisor([alpha], "", Say("desk asks", calls=[to("call_A", "alpha")]), "", "", "desk done")
    graph = supervisor(
        [desk.compile(name="desk")],
        Say("top asks", calls=[to("call_D", "desk")]),
        "",
        "",
        "top done",
        name="top",
    ).compile(checkpointer=InMemorySaver())
    play = Play(graph, transparent=["top", "supervisor"])
    assert play.run().lines == [
        "start",
        "main says m1: 'top asks'",
        "main calls call_D in m1: transfer_to_desk {}",
        "main hears call_D: 'Successfully transferred to desk'",
        "desk#1 opens as handoff and back for main, call call_D in m1",
        "desk#1 says m2: 'desk asks'",
        "desk#1 calls call_A in m2: transfer_to_alpha {}",
        "desk#1 hears call_A: 'Successfully transferred to alpha'",
        "alpha#1 opens as handoff and back for desk#1, call call_A in m2",
        "alpha#1 says m3: 'alpha asks'",
        'alpha#1 calls call_alpha in m3: confirm {"q": "sure"}',
        "alpha#1 suspends i1",
        "desk#1 suspends without asking",
        "waits [i1 alpha#1 langgraph:interrupt 'sure?' on call_alpha]",
    ]
    assert play.resume({"i1": "yes"}).lines == [
        "start",
        "desk#1 opens as handoff and back for main, call call_D in None",
        "alpha#1 opens as handoff and back for desk#1, call call_A in None",
        "alpha#1 hears call_alpha: 'confirmed: yes'",
        "alpha#1 says m4: 'alpha knows'",
        "alpha#1 returns 'alpha knows'",
        "desk#1 says m5: 'desk done'",
        "desk#1 returns 'desk done'",
        "main says m6: 'top done'",
        "end",
    ]


@tool
def pass_on(tool_call_id: Annotated[str, InjectedToolCallId]) -> list:
    """Note it, and hand over."""
    heard = ToolMessage("beta, please", tool_call_id=tool_call_id)
    return [
        Command(),
        Command(goto="beta", graph=Command.PARENT, update={"messages": [heard]}),
    ]


@tool
def go_on(tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
    """Hand over."""
    heard = ToolMessage("beta, please", tool_call_id=tool_call_id)
    return Command(goto="beta", graph=Command.PARENT, update={"messages": [heard]})


@tool
def stay(tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
    """Go to a node of one's own."""
    return Command(goto="beta", update={"messages": [ToolMessage("on my way", tool_call_id=tool_call_id)]})


def with_a_node_of_its_own(*turns, tools):
    """An agent, by hand, that may go on to a node named `beta`."""

    async def think(state: MessagesState) -> dict:
        return {"messages": [await llm.ainvoke(state["messages"])]}

    def beta(state: MessagesState) -> dict:
        return {}

    llm = model(*turns)
    builder = StateGraph(MessagesState)
    builder.add_node("think", think)
    builder.add_node("tools", ToolNode(tools))
    builder.add_node("beta", beta)
    builder.add_edge(START, "think")
    builder.add_edge("think", "tools")
    return builder.compile(name="alpha")


@takes_lists
def test_a_tool_that_returns_a_list_with_its_handoff():
    alpha = agent("alpha", Say("alpha passes on", calls=[("call_B", "pass_on", {})]), tools=[pass_on])
    builder = StateGraph(MessagesState)
    builder.add_node("alpha", alpha)
    builder.add_node("beta", agent("beta", "beta answers"))
    builder.add_edge(START, "alpha")
    assert Play(builder.compile()).run().lines == [
        "start",
        "alpha#1 opens as subgraph for main",
        "alpha#1 says m1: 'alpha passes on'",
        "alpha#1 calls call_B in m1: pass_on {}",
        "alpha#1 hears call_B: 'beta, please'",
        "alpha#1 returns None",
        "beta#1 opens as handoff for main, call call_B in m1",
        "beta#1 says m2: 'beta answers'",
        "beta#1 returns 'beta answers'",
        "end",
    ]


def test_a_command_to_a_node_of_ones_own_hands_nothing_over():
    alpha = with_a_node_of_its_own(Say("alpha stays", calls=[("call_B", "stay", {})]), tools=[stay])
    builder = StateGraph(MessagesState)
    builder.add_node("alpha", alpha)
    builder.add_node("beta", agent("beta", "", "beta answers"))
    builder.add_edge(START, "alpha")
    builder.add_edge("alpha", "beta")
    assert Play(builder.compile()).run().lines == [
        "start",
        "alpha#1 opens as subgraph for main",
        "alpha#1 says m1: 'alpha stays'",
        "alpha#1 calls call_B in m1: stay {}",
        "alpha#1 hears call_B: 'on my way'",
        "alpha#1 returns 'on my way'",
        "beta#1 opens as subgraph for main",
        "beta#1 says m2: 'beta answers'",
        "beta#1 returns 'beta answers'",
        "end",
    ]


def test_what_comes_after_a_handoff_was_not_handed_over():
    alpha = agent("alpha", Say("alpha passes on", calls=[("call_B", "go_on", {})]), tools=[go_on])
    builder = StateGraph(MessagesState)
    builder.add_node("alpha", alpha)
    builder.add_node("beta", agent("beta", "beta answers"))
    builder.add_node("gamma", agent("gamma", "", "gamma answers"))
    builder.add_edge(START, "alpha")
    builder.add_edge("beta", "gamma")
    assert Play(builder.compile()).run().lines[6:] == [
        "beta#1 opens as handoff for main, call call_B in m1",
        "beta#1 says m2: 'beta answers'",
        "beta#1 returns 'beta answers'",
        "gamma#1 opens as subgraph for main",
        "gamma#1 says m3: 'gamma answers'",
        "gamma#1 returns 'gamma answers'",
        "end",
    ]


@pytest.mark.parametrize("goto", [["beta"], [Send("beta", human("beta, please"))]], ids=["by name", "sent"])
def test_a_handoff_by_a_list_of_one_out_of_what_is_transparent(goto):
    """The tool is none that the graph is known to have: nothing but its command tells."""

    @tool
    def leave(tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
        """Leave."""
        heard = ToolMessage("beta, please", tool_call_id=tool_call_id, name="another")
        return Command(goto=goto, graph=Command.PARENT, update={"messages": [heard]})

    lead = agent("lead", Say("lead passes on", calls=[("call_B", "leave", {})]), tools=[leave])
    builder = StateGraph(MessagesState)
    builder.add_node("lead", lead)
    builder.add_node("beta", agent("beta", "beta answers"))
    builder.add_edge(START, "lead")
    assert Play(builder.compile(), transparent=["lead"]).run().lines == [
        "start",
        "main says m1: 'lead passes on'",
        "main calls call_B in m1: leave {}",
        "main hears call_B: 'beta, please'",
        "beta#1 opens as handoff and back for main, call call_B in m1",
        "beta#1 says m2: 'beta answers'",
        "beta#1 returns 'beta answers'",
        "end",
    ]
