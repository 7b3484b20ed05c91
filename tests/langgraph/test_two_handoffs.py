"""Two hand-offs in one turn, under grants and with artifacts: each call has its answer, and each result its placeholder."""

import functools

import langgraph_supervisor.supervisor
import pytest
from ag_ui.core import EventType
from byline.artifacts import Artifacts, Counts
from byline.grants import NotCoveredError, Resource
from byline_langgraph import lookup_tool
from byline_langgraph.scripted import Say
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph_supervisor import create_supervisor
from langgraph_swarm import create_handoff_tool, create_swarm
from test_artifacts_on_graphs import play as play_with
from test_artifacts_on_graphs import results, scripted
from test_grants_on_graphs import guarded, nothing_ran, permitted
from test_grants_on_graphs import play as play_held

pytestmark = pytest.mark.filterwarnings("ignore:create_react_agent has been moved")

BOTH = Say(calls=[("c1", "transfer_to_ana", {}), ("c2", "transfer_to_bea", {})])


def told(name):
    body = f"<p>{name} has said all of it</p>"
    return body, f'{name}: <artifact title="{name}">{body}</artifact>'


def team(*script, tools=(), answers=("ana", "bea")):
    models = [scripted(Say(told(name)[1])) for name in answers]
    agents = [create_agent(model, [], name=name) for model, name in zip(models, ("ana", "bea"), strict=True)]
    main = scripted(*script)
    graph = create_supervisor(agents, model=main, tools=list(tools) or None)
    return graph.compile(name="boss", checkpointer=InMemorySaver()), main, models


def read_by(model):
    return [(one.name, one.content) for one in model.requests[-1].messages if isinstance(one, AIMessage)]


def opened(events):
    return {event.name: event for event in events if event.type is EventType.SUBAGENT_STARTED}


@pytest.fixture
def at_once(monkeypatch):
    """The supervisor's tools node gets all calls of a turn together, and so it hands over to both."""
    batched = functools.partial(langgraph_supervisor.supervisor.create_react_agent, version="v1")
    monkeypatch.setattr(langgraph_supervisor.supervisor, "create_react_agent", batched)


# --------------------------------------------------------------------------------------------------------- artifacts


@pytest.mark.usefixtures("at_once")
def test_two_hand_offs_of_a_turn_give_a_placeholder_each():
    artifacts = Artifacts()
    graph, main, _ = team(BOTH, Say("done"), tools=[lookup_tool(artifacts)])
    events = play_with(graph, artifacts)
    assert results(events) == {
        "c1": "Successfully transferred to ana",
        "c2": "Successfully transferred to bea",
    }
    kept = {one.title: one for one in map(artifacts.store.get, artifacts.store.ids("t1", "ann"))}
    assert {name: one.body for name, one in kept.items()} == {"ana": told("ana")[0], "bea": told("bea")[0]}
    assert {name: one.invocation for name, one in kept.items()} == {
        name: event.subagent_run_id for name, event in opened(events).items()
    }
    assert {name: event.parent_tool_call_id for name, event in opened(events).items()} == {
        "ana": "c1",
        "bea": "c2",
    }
    assert read_by(main) == [
        ("ana", f"ana: {artifacts.placeholder(kept['ana'])}"),
        ("ana", "Transferring back to supervisor"),
        ("bea", f"bea: {artifacts.placeholder(kept['bea'])}"),
        ("bea", "Transferring back to supervisor"),
    ]
    assert [artifacts.counts(one.id) for one in kept.values()] == [Counts(1, 0)] * 2
    stored = graph.get_state({"configurable": {"thread_id": "t1"}}).values["messages"]
    assert [one.content for one in stored if isinstance(one, AIMessage)] == [
        told("ana")[1],
        "Transferring back to supervisor",
        told("bea")[1],
        "Transferring back to supervisor",
        "done",
    ]


@pytest.mark.usefixtures("at_once")
def test_with_and_without_artifacts_both_agents_say_the_same():
    said = []
    for artifacts in (Artifacts(), None):
        graph, _, models = team(BOTH, Say("done"), tools=[lookup_tool(Artifacts())])
        play_with(graph, artifacts)
        said.append([[(one.type, one.content) for one in model.requests[-1].messages] for model in models])
    assert said[0] == said[1]


def test_where_langgraph_lets_one_hand_off_win_its_artifact_is_covered():
    """A supervisor as it comes runs each call as a task of its own, and the first of two hand-offs is all that happens."""
    artifacts = Artifacts()
    graph, main, models = team(BOTH, Say("done"), tools=[lookup_tool(artifacts)])
    events = play_with(graph, artifacts)
    (ran,) = opened(events)
    assert [len(model.requests) for model in models] == [ran == "ana", ran == "bea"]
    (id_,) = artifacts.store.ids("t1", "ann")
    artifact = artifacts.store.get(id_)
    assert (artifact.title, artifact.invocation) == (ran, opened(events)[ran].subagent_run_id)
    assert read_by(main)[0] == (ran, f"{ran}: {artifacts.placeholder(artifact)}")


@pytest.mark.usefixtures("at_once")
def test_a_look_up_beside_a_hand_off_has_its_answer_in_the_stream():
    artifacts = Artifacts()
    (earlier,) = artifacts.keep(told("eva")[1], thread="t1", user="ann", source="earlier").artifacts
    calls = [("c1", "transfer_to_ana", {}), ("c2", "lookup_artifact", {"id": earlier.id})]
    graph, _, _ = team(Say(calls=calls), Say("done"), tools=[lookup_tool(artifacts)])
    events = play_with(graph, artifacts)
    assert results(events) == {"c1": "Successfully transferred to ana", "c2": told("eva")[0]}
    assert artifacts.counts(earlier.id) == Counts(0, 1)


# ------------------------------------------------------------------------------------------------------------ grants


@pytest.mark.usefixtures("at_once")
def test_two_hand_offs_of_a_turn_are_held_to_one_grant():
    graph, _, models = team(BOTH, Say("done"))
    agent = guarded(graph)
    permit = permitted(agent)
    events = play_held(agent, permit)
    assert list(opened(events)) == ["ana", "bea"]
    assert [len(model.requests) for model in models] == [1, 1]


@pytest.mark.usefixtures("at_once")
def test_of_two_hand_offs_of_a_turn_one_is_not_covered_and_nothing_runs():
    graph, main, models = team(BOTH, Say("done"))
    before = create_supervisor([create_agent(scripted(Say("x")), [], name="ana")], model=scripted(Say("x")))
    permit = permitted(guarded(before.compile(name="boss")))
    with pytest.raises(NotCoveredError) as raised:
        play_held(guarded(graph), permit)
    assert raised.value.resources == (Resource("subagent", "bea"), Resource("tool", "transfer_to_bea"))
    nothing_ran(graph, main, *models)


@pytest.mark.usefixtures("at_once")
def test_a_call_that_is_not_covered_beside_a_hand_off_is_answered_and_the_hand_off_is_made():
    calls = Say(calls=[("c1", "transfer_to_ana", {}), ("c2", "shell", {"command": "rm"})])
    graph, _, models = team(calls, Say("done"))
    agent = guarded(graph)
    events = play_held(agent, permitted(agent))
    assert list(opened(events)) == ["ana"]
    assert results(events) == {
        "c1": "Successfully transferred to ana",
        "c2": "not_covered: this run may not use tool 'shell'; it was not called",
    }
    assert [len(model.requests) for model in models] == [1, 0]
    assert events[-1].type is EventType.RUN_FINISHED


# -------------------------------------------------------------------------------------------------------------- swarm


def swarm():
    """Alpha hands over to both in one turn; LangGraph lets the first that gets through win."""
    to = {name: create_handoff_tool(agent_name=name) for name in ("ana", "bea")}
    models = {name: scripted(Say(told(name)[1])) for name in to}
    alpha = create_agent(scripted(BOTH), list(to.values()), name="alpha")
    agents = [alpha, *(create_agent(models[name], [], name=name) for name in to)]
    return create_swarm(agents, default_active_agent="alpha").compile(name="boss"), models


def test_a_swarms_two_hand_offs_are_held_to_one_grant():
    graph, models = swarm()
    agent = guarded(graph)
    events = play_held(agent, permitted(agent))
    assert len(opened(events)) == 2
    (ran,) = [name for name in opened(events) if name != "alpha"]
    assert {name: len(model.requests) for name, model in models.items()} == {
        "ana": int(ran == "ana"),
        "bea": int(ran == "bea"),
    }


def test_a_swarm_has_no_parent_model_and_its_agents_read_originals():
    graph, _ = swarm()
    artifacts = Artifacts(lookup=False)
    events = play_with(graph, artifacts)
    assert events[-1].type is EventType.RUN_FINISHED
    assert artifacts.store.ids("t1", "ann") == []
