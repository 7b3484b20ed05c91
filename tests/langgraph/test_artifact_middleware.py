"""Placeholders and look-up as a middleware: of an agent that is built with it, attributed or not."""

import asyncio

import pytest
from byline.artifacts import Artifacts, Counts
from byline_langgraph import ArtifactMiddleware
from byline_langgraph.scripted import Say
from langchain.agents import create_agent
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from test_artifacts_on_graphs import (
    BODY,
    CALL,
    RESULT,
    play,
    read_by_the_model,
    results,
    scripted,
    stored,
    the_only,
)

HERE = {"configurable": {"thread_id": "t1", "user_id": "ann"}}


def team(artifacts, *script, writer_middleware=(), writer=None):
    inner = writer or create_agent(scripted(Say(RESULT)), [], name="writer", middleware=writer_middleware)

    @tool
    async def ask_writer(q: str) -> str:
        """Ask the writer."""
        return (await inner.ainvoke({"messages": [("user", q)]}))["messages"][-1].content

    model = scripted(*script)
    middleware = ArtifactMiddleware(artifacts, ["ask_writer"])
    graph = create_agent(
        model, [ask_writer], name="boss", middleware=[middleware], checkpointer=InMemorySaver()
    )
    return graph, model


def go(graph, text="go", config=HERE):
    return asyncio.run(graph.ainvoke({"messages": [("user", text)]}, config))["messages"]


def look(id_):
    return Say(calls=[("c2", "lookup_artifact", {"id": id_})])


def test_without_attribution_the_model_gets_placeholders_and_the_state_keeps_the_original():
    artifacts = Artifacts()
    graph, model = team(artifacts, CALL, Say("done"))
    messages = go(graph)
    artifact = the_only(artifacts)
    assert read_by_the_model(model) == [f"Here: {artifacts.placeholder(artifact)} Done."]
    assert [one.content for one in messages if isinstance(one, ToolMessage)] == [RESULT]
    assert (artifact.body, artifact.source, artifacts.counts(artifact.id)) == (BODY, "c1", Counts(1, 0))


def test_the_parent_looks_it_up():
    artifacts = Artifacts()
    graph, _ = team(artifacts, CALL, Say("done"))
    go(graph)
    id_ = the_only(artifacts).id
    graph, model = team(artifacts, CALL, look(id_), Say("done"))
    assert [one.content for one in go(graph) if isinstance(one, ToolMessage)] == [RESULT, BODY]
    assert read_by_the_model(model)[1] == BODY
    assert artifacts.counts(id_).lookups == 1


@pytest.mark.parametrize(("thread", "user"), [("t2", "ann"), ("t1", "bob")])
def test_an_id_of_another_thread_or_user_is_refused(thread, user):
    artifacts = Artifacts()
    graph, _ = team(artifacts, CALL, Say("done"))
    go(graph)
    graph, _ = team(artifacts, look(the_only(artifacts).id), Say("done"))
    config = {"configurable": {"thread_id": thread, "user_id": user}}
    (answer,) = [one for one in go(graph, config=config) if isinstance(one, ToolMessage)]
    assert (answer.status, answer.content.partition(":")[0]) == ("error", "unknown_artifact")


def test_a_subagent_that_has_the_middleware_too_is_refused():
    artifacts = Artifacts()
    graph, _ = team(artifacts, CALL, Say("done"))
    go(graph)
    id_ = the_only(artifacts).id
    asked = scripted(look(id_), Say("told"))
    inner = create_agent(asked, [], name="writer", middleware=[ArtifactMiddleware(artifacts, ["ask_writer"])])
    graph, _ = team(artifacts, CALL, Say("done"), writer=inner)
    go(graph)
    (answer,) = read_by_the_model(asked)
    assert answer.startswith("not_the_parent: ")
    assert artifacts.counts(id_).lookups == 0


def test_under_attribution_the_same_agent_needs_nothing_else():
    artifacts = Artifacts()
    graph, model = team(artifacts, CALL, Say("done"))
    events = play(graph, artifacts)
    artifact = the_only(artifacts)
    assert results(events) == {"c1": RESULT}
    assert read_by_the_model(model) == [f"Here: {artifacts.placeholder(artifact)} Done."]
    assert [one.content for one in stored(graph) if isinstance(one, ToolMessage)] == [RESULT]
    assert artifacts.counts(artifact.id) == Counts(1, 0), "it is replaced and counted once"
    assert artifact.invocation is not None
