"""`ArtifactMiddleware` in `create_deep_agent`: an isolated subagent does not get it, a fork mirrors it and is refused."""

import asyncio

import pytest
from ag_ui.core import EventType, RunAgentInput
from byline import attribute
from byline.artifacts import Artifacts, Counts
from byline.grants import Permit
from byline_langgraph import ArtifactMiddleware
from byline_langgraph.scripted import Say
from deepkit import _plugins, deep, fork, sub, task
from kit import attribute_plugins, model
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

BODY = "<p>" + "all of it " * 50 + "</p>"
RESULT = f'Here: <artifact type="text/html" title="Q3">{BODY}</artifact> Done.'
HERE = {"configurable": {"thread_id": "t1", "user_id": "ann"}}


def team(artifacts, *turns, subagents, saver=None):
    main = model(*turns)
    middleware = [ArtifactMiddleware(artifacts)]
    graph = deep(main, subagents=subagents, middleware=middleware, checkpointer=saver or InMemorySaver())
    return graph, main


def go(graph):
    return asyncio.run(graph.ainvoke({"messages": [("user", "go")]}, HERE))["messages"]


def attributed(graph, artifacts, run_id="r1"):
    async def events():
        agent = attribute(graph, plugins=[*attribute_plugins(), *_plugins()], artifacts=artifacts, clock=None)
        message = {"id": f"u-{run_id}", "role": "user", "content": "go"}
        wire = {"threadId": "t1", "runId": run_id, "messages": [message]}
        return [event async for event in agent.run(RunAgentInput.model_validate(wire), permit=Permit("ann"))]

    return asyncio.run(events())


def answers(messages):
    return {one.tool_call_id: one.content for one in messages if isinstance(one, ToolMessage)}


def look(call, id_):
    return Say(calls=[(call, "lookup_artifact", {"id": id_})])


def the_only(artifacts):
    (id_,) = artifacts.store.ids("t1", "ann")
    return artifacts.store.get(id_)


def test_the_parent_gets_a_placeholder_and_the_state_keeps_the_original():
    artifacts = Artifacts()
    graph, main = team(
        artifacts, Say(calls=[task("c1", "writer")]), "done", subagents=[sub("writer", RESULT)]
    )
    assert answers(go(graph)) == {"c1": RESULT}
    artifact = the_only(artifacts)
    assert answers(main.requests[-1].messages) == {"c1": f"Here: {artifacts.placeholder(artifact)} Done."}
    assert (artifact.body, artifact.source, artifacts.counts(artifact.id)) == (BODY, "c1", Counts(1, 0))


def test_the_parent_looks_it_up_and_an_isolated_subagent_has_no_look_up():
    artifacts = Artifacts()
    (artifact,) = artifacts.keep(RESULT, thread="t1", user="ann", source="earlier").artifacts
    writer = sub("writer", look("s1", artifact.id), "told")
    graph, main = team(
        artifacts, Say(calls=[task("c1", "writer")]), look("c2", artifact.id), "done", subagents=[writer]
    )
    assert answers(go(graph)) == {"c1": "told", "c2": BODY}
    assert "lookup_artifact" in main.requests[0].tools
    assert "lookup_artifact" not in writer["model"].requests[0].tools
    assert answers(writer["model"].requests[-1].messages)["s1"].startswith("Error: lookup_artifact is not a")
    assert artifacts.counts(artifact.id) == Counts(0, 1)


@pytest.mark.parametrize("under", ["plain", "attributed"])
def test_a_fork_reads_what_its_parent_read_and_may_not_look_up(under):
    artifacts = Artifacts()
    (earlier,) = artifacts.keep(RESULT, thread="t1", user="ann", source="earlier").artifacts
    spying = look("s1", earlier.id)  # a turn is as many AI messages on as the history has
    twin = fork("twin", spying, spying, spying, "done too")
    script = (Say(calls=[task("c1", "writer")]), Say(calls=[task("c2", "twin", "go on")]), "done")
    graph, main = team(artifacts, *script, subagents=[sub("writer", RESULT), twin])
    if under == "plain":
        assert answers(go(graph)) == {"c1": RESULT, "c2": "done too"}
    else:
        events = attributed(graph, artifacts)
        told = {one.tool_call_id: one.content for one in events if one.type is EventType.TOOL_CALL_RESULT}
        assert (told["c1"], told["c2"]) == (RESULT, "done too")
    parents, forks = main.requests[1].messages, twin["model"].requests[0].messages
    read = [[(type(message), message.content) for message in request] for request in (parents, forks)]
    assert read[1][: len(parents)] == read[0], "the prefix is the parent's request, placeholders included"
    assert BODY not in str(forks)
    assert "is not repeated here" in str(forks)
    assert answers(twin["model"].requests[-1].messages)["s1"].startswith("not_the_parent: ")
    (made,) = [id_ for id_ in artifacts.store.ids("t1", "ann") if id_ != earlier.id]
    assert artifacts.counts(made) == Counts(2, 0), "what a fork reads was not sent to the parent"
    assert artifacts.counts(earlier.id) == Counts(0, 0)


def test_with_attribution_nothing_is_replaced_or_counted_twice():
    artifacts = Artifacts()
    graph, main = team(
        artifacts, Say(calls=[task("c1", "writer")]), "done", subagents=[sub("writer", RESULT)]
    )
    events = attributed(graph, artifacts)
    artifact = the_only(artifacts)
    assert answers(main.requests[-1].messages) == {"c1": f"Here: {artifacts.placeholder(artifact)} Done."}
    (started,) = [event for event in events if event.type is EventType.SUBAGENT_STARTED]
    assert artifact.invocation == started.subagent_run_id
    assert artifacts.counts(artifact.id) == Counts(1, 0)


def test_the_next_turn_in_a_new_process_has_the_placeholder_too():
    first, saver = Artifacts(), InMemorySaver()
    graph, _ = team(
        first, Say(calls=[task("c1", "writer")]), "done", subagents=[sub("writer", RESULT)], saver=saver
    )
    go(graph)
    again = Artifacts(first.store)
    graph, main = team(again, "more", subagents=[sub("writer", RESULT)], saver=saver)
    assert answers(go(graph)) == {"c1": RESULT}
    assert answers(main.requests[-1].messages) == {"c1": f"Here: {again.placeholder(the_only(again))} Done."}
