"""Hand-offs: langgraph-supervisor and langgraph-swarm."""

import asyncio

import pytest
from byline_langgraph.scripted import Say
from kit import Play, agent, call, model
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
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
