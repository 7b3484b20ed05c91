"""Grants and artifacts with deep agents: who is behind `task`, and what a fork gets to read."""

import asyncio
import json
import re
import time

import pytest
from ag_ui.core import EventType, RunAgentInput
from byline import Factory, attribute
from byline.artifacts import Artifacts, Counts, MemoryArtifacts
from byline.grants import (
    DecisionTimedOutError,
    DeniedError,
    ExpiredError,
    GrantError,
    Grants,
    Inventory,
    NotCoveredError,
    Permit,
    ReplayedError,
    Resource,
    TableDecider,
)
from byline.validator import Validator
from byline_langgraph import lookup_tool
from byline_langgraph.scripted import Say
from deepkit import _plugins, deep, fork, sub, task
from kit import attribute_plugins, model
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import interrupt
from refusals import BROKEN_SINCE, REFUSALS, saved_links

pytest.importorskip("jwt", reason="grants need PyJWT: pip install 'byline[grants]'")

SECRET = b"0123456789abcdef0123456789abcdef"
EVERYTHING = TableDecider([("*", "*", "*")])
BODY = "<p>" + "all of it " * 50 + "</p>"
RESULT = f'Here: <artifact type="text/html" title="Q3">{BODY}</artifact> Done.'


def attributed(graph, **options):
    return attribute(graph, plugins=[*attribute_plugins(), *_plugins()], clock=None, **options)


def an_input(run_id="r1"):
    return RunAgentInput.model_validate(
        {
            "threadId": "t1",
            "runId": run_id,
            "messages": [{"id": f"u-{run_id}", "role": "user", "content": "go"}],
        }
    )


def play(agent, permit, run_id="r1"):
    async def go():
        return [event async for event in agent.run(an_input(run_id), permit=permit)]

    events = asyncio.run(go())
    validator = Validator("producer")
    findings = [found for event in events for found in validator.feed(event)] + list(validator.finish())
    assert [found.rule for found in findings if found.level == "error"] == []
    return events


def permitted(agent, user="ann"):
    return asyncio.run(agent.permit(user, run_id="r1", thread_id="t1"))


def results(events):
    return {event.tool_call_id: event.content for event in events if event.type is EventType.TOOL_CALL_RESULT}


# ------------------------------------------------------------------------------------------------------------ grants


def test_a_factory_is_called_for_a_permitted_run_only_and_what_it_built_is_checked():
    built = []

    def build(names=("alpha",)):
        boss = model("done")
        built.append(boss)
        return deep(boss, subagents=[sub(name, "x") for name in names])

    declared = attributed(build(), grants=Grants(SECRET, EVERYTHING), agent_id="boss").uses()
    built.clear()

    def factory(how=build, uses=declared):
        return attributed(Factory(how, uses), grants=Grants(SECRET, EVERYTHING), agent_id="boss")

    permit = permitted(factory())
    more = Inventory(declared.resources | {Resource("subagent", "beta")})
    with pytest.raises(NotCoveredError):
        play(factory(uses=more), permit)
    assert built == []
    with pytest.raises(NotCoveredError) as raised:
        play(factory(lambda: build(("alpha", "beta"))), permit)
    assert raised.value.resources == (Resource("subagent", "beta"),)
    assert [boss.requests for boss in built] == [[]]
    play(factory(), permit)
    assert [len(boss.requests) for boss in built] == [0, 1]


def test_what_a_deep_agent_uses():
    graph = deep("x", subagents=[sub("writer", "x"), fork("twin", "x")], skills=["/skills/report"])
    used = attributed(graph, grants=Grants(SECRET)).uses()
    assert used.opaque == ()
    assert sorted(used.named("subagent")) == ["general-purpose", "twin", "writer"]
    assert sorted(used.named("skill")) == ["/skills/report"]
    assert used.named("model") == {"scripted"}
    assert {"task", "read_file", "write_file"} <= used.named("tool")
    assert {"SkillsMiddleware", "FilesystemMiddleware", "SubAgentMiddleware"} <= used.named("middleware")


def test_directly_connected_subagents_are_on_the_list_of_what_is_allowed():
    graph = deep(Say(calls=[task("c1", "writer")]), "done", subagents=[sub("writer", "written")])
    agent = attributed(graph, grants=Grants(SECRET, EVERYTHING))
    permit = permitted(agent)
    assert (
        Resource("subagent", "writer")
        in agent._bound.guard.grants.check(
            permit.token, agent._bound.guard.attempt(permit, "r1", "t1", agent.uses())
        ).resources
    )
    assert results(play(agent, permit)) == {"c1": "written"}


def test_without_the_permission_on_a_subagent_nothing_runs():
    main = model(Say(calls=[task("c1", "writer")]), "done")
    graph = deep(main, subagents=[sub("writer", "written")])
    kinds = ("model", "tool", "middleware", "skill")
    rows = [("ann", kind, "*") for kind in kinds] + [("ann", "subagent", "general-purpose")]
    with pytest.raises(DeniedError) as raised:
        permitted(attributed(graph, grants=Grants(SECRET, TableDecider(rows))))
    assert raised.value.resources == (Resource("subagent", "writer"),)
    assert main.requests == []


@pytest.mark.parametrize(("code", "scenario"), REFUSALS.values(), ids=REFUSALS.keys())
def test_every_refusal_before_the_run_has_its_code_and_leaves_no_trace(code, scenario):
    main, saver = model("done"), InMemorySaver()
    graph = deep(main, subagents=[sub("writer", "written")], checkpointer=saver)

    async def go():
        agent, permit = await scenario(
            lambda grants, **more: attributed(graph, grants=grants, **more),
            {"run_id": "r1", "thread_id": "t1"},
        )
        async for _ in agent.run(an_input(), permit=permit):
            raise AssertionError("nothing may come out")

    with pytest.raises(GrantError) as raised:
        asyncio.run(go())
    assert raised.value.code == code
    assert (main.requests, list(saver.list(None))) == ([], [])


@pytest.mark.parametrize(("since", "kind"), BROKEN_SINCE.values(), ids=BROKEN_SINCE.keys())
def test_a_saved_link_is_checked_again_when_a_run_starts(since, kind):
    main, saver = model("done"), InMemorySaver()
    graph = deep(main, subagents=[sub("ana", "x"), sub("bea", "x")], checkpointer=saver)
    saved, links = saved_links()
    agent = attributed(graph, links=links)
    since(saved)
    with pytest.raises(kind):
        play(agent, None)
    assert (main.requests, list(saver.list(None))) == ([], [])


def test_timed_out_expired_and_used_again_are_causes_of_their_own():
    class Hangs:
        async def can_use(self, request):
            await asyncio.Event().wait()

    main = model("done", "done")
    graph = deep(main, subagents=[sub("writer", "written")])
    with pytest.raises(DecisionTimedOutError):
        permitted(attributed(graph, grants=Grants(SECRET, Hangs(), limit=0.05)))
    agent = attributed(graph, grants=Grants(SECRET, EVERYTHING))
    permit = permitted(agent)
    later = Grants(SECRET, EVERYTHING, clock=lambda: time.time() + 3_600)
    with pytest.raises(ExpiredError):
        play(attributed(graph, grants=later), permit)
    assert main.requests == []
    play(agent, permit)
    with pytest.raises(ReplayedError):
        play(agent, permit)
    assert len(main.requests) == 1


def test_a_subagent_added_after_the_grant_was_made_is_refused():
    grants = Grants(SECRET, EVERYTHING)
    before = attributed(deep("x", subagents=[sub("writer", "x")]), grants=grants)
    main = model("x")
    after = attributed(deep(main, subagents=[sub("writer", "x"), sub("spy", "x")]), grants=grants)
    with pytest.raises(NotCoveredError) as raised:
        play(after, permitted(before))
    assert raised.value.resources == (Resource("subagent", "spy"),)
    assert main.requests == []


def test_with_grants_required_every_type_behind_task_has_one_of_its_own():
    graph = deep(Say(calls=[task("c1", "writer")]), "done", subagents=[sub("writer", "written")])
    agent = attributed(graph, grants=Grants(SECRET, EVERYTHING), nested="require")
    permit = permitted(agent)
    assert sorted(permit.nested) == ["general-purpose", "writer"]
    assert "write_file" in agent.uses().inside["writer"].named("tool")
    assert results(play(agent, permit)) == {"c1": "written"}


# --------------------------------------------------------------------------------------------------------- artifacts


def team(artifacts, *turns, subagents):
    main = model(*turns)
    graph = deep(main, subagents=subagents, tools=[lookup_tool(artifacts)], checkpointer=InMemorySaver())
    return graph, main


def test_a_task_result_is_shown_whole_and_handed_on_as_a_placeholder():
    artifacts = Artifacts()
    graph, main = team(
        artifacts, Say(calls=[task("c1", "writer")]), "done", subagents=[sub("writer", RESULT)]
    )
    events = play(attributed(graph, artifacts=artifacts), Permit("ann"))
    assert results(events) == {"c1": RESULT}
    (id_,) = artifacts.store.ids("t1", "ann")
    artifact = artifacts.store.get(id_)
    (started,) = [event for event in events if event.type is EventType.SUBAGENT_STARTED]
    assert artifact.invocation == started.subagent_run_id
    read = [message.content for message in main.requests[-1].messages if isinstance(message, ToolMessage)]
    assert read == [f"Here: {artifacts.placeholder(artifact)} Done."]
    stored = graph.get_state({"configurable": {"thread_id": "t1"}}).values["messages"]
    assert [message.content for message in stored if isinstance(message, ToolMessage)] == [RESULT]


NATIVE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?<=writer-)[0-9a-f]{12}")


def normal(text):
    """Number what LangChain draws anew for every run: its run ids, and the ids that are made of them."""
    names = {}
    return NATIVE.sub(lambda found: names.setdefault(found[0], f"id-{len(names)}"), text)


def test_with_and_without_artifacts_stream_and_conversation_are_the_same():
    seen = []
    for artifacts in (Artifacts(), None):
        script = (Say(calls=[task("c1", "writer")]), "done")
        graph, main = team(Artifacts(), *script, subagents=[sub("writer", RESULT)])
        events = play(attributed(graph, artifacts=artifacts), Permit("ann"))
        wire = normal("\n".join(event.model_dump_json(by_alias=True, exclude_none=True) for event in events))
        stored = graph.get_state({"configurable": {"thread_id": "t1"}}).values["messages"]
        told = normal(json.dumps([message.model_dump(mode="json") for message in stored]))
        seen.append((wire, told, [BODY in str(request.messages) for request in main.requests]))
    assert seen[0][:2] == seen[1][:2]
    assert (BODY in seen[0][0], BODY in seen[0][1]) == (True, True)
    assert (seen[0][2], seen[1][2]) == ([False, False], [False, True]), "smaller by the body"


def test_a_fork_receives_what_its_parents_model_received():
    artifacts = Artifacts()
    twin = fork("twin", "done too")
    script = (Say(calls=[task("c1", "writer")]), Say(calls=[task("c2", "twin", "go on")]), "done")
    graph, main = team(artifacts, *script, subagents=[sub("writer", RESULT), twin])
    events = play(attributed(graph, artifacts=artifacts), Permit("ann"))
    assert results(events) == {"c1": RESULT, "c2": "done too"}
    parents, forks = main.requests[1].messages, twin["model"].requests[0].messages
    told = [[(type(message), message.content) for message in request] for request in (parents, forks)]
    assert told[1][: len(parents)] == told[0], "the prefix is the parent's request, placeholders included"
    assert isinstance(parents[0], SystemMessage)
    assert isinstance(forks[-1], HumanMessage)
    assert not [message for message in forks if BODY in str(message.content)]
    assert [message for message in forks if "is not repeated here" in str(message.content)]


def test_a_fork_that_looks_an_artifact_up_is_refused():
    """As a tool of the parent's, the look-up is a fork's too; only the parent gets an answer."""
    artifacts = Artifacts()
    store = artifacts.store
    (artifact,) = artifacts.keep(RESULT, thread="t1", user="ann", source="earlier").artifacts
    spying = Say(calls=[("s1", "lookup_artifact", {"id": artifact.id})])
    graph, _ = team(
        artifacts,
        Say(calls=[task("c1", "twin")]),
        Say(calls=[("c2", "lookup_artifact", {"id": artifact.id})]),
        "done",
        subagents=[fork("twin", spying, spying, "told", "told")],
    )
    answers = results(play(attributed(graph, artifacts=artifacts), Permit("ann")))
    assert (
        answers["s1"] == "not_the_parent: only the parent agent of an attributed run can look an artifact up"
    )
    assert answers["c2"] == BODY
    assert store.counts(artifact.id) == Counts(0, 1)


@pytest.mark.parametrize(("thread", "user"), [("t2", "ann"), ("t1", "bob")])
def test_an_id_of_another_thread_or_user_is_refused(thread, user):
    artifacts = Artifacts()
    (artifact,) = artifacts.keep(RESULT, thread=thread, user=user, source="earlier").artifacts
    look = Say(calls=[("c1", "lookup_artifact", {"id": artifact.id})])
    graph, _ = team(artifacts, look, "done", subagents=[])
    answers = results(play(attributed(graph, artifacts=artifacts), Permit("ann")))
    assert answers["c1"].startswith("unknown_artifact: there is no artifact ")
    assert artifacts.counts(artifact.id) == Counts(0, 0)


@pytest.mark.parametrize("result", ["plain words", "Here: <artifact title='U'>half of it"])
def test_text_without_a_tag_and_an_unclosed_one_pass_unchanged(result):
    artifacts = Artifacts()
    graph, main = team(
        artifacts, Say(calls=[task("c1", "writer")]), "done", subagents=[sub("writer", result)]
    )
    assert results(play(attributed(graph, artifacts=artifacts), Permit("ann"))) == {"c1": result}
    assert [one.content for one in main.requests[-1].messages if isinstance(one, ToolMessage)] == [result]
    assert artifacts.store.ids("t1", "ann") == []


def test_after_a_resume_in_a_new_process_the_placeholder_stands_there():
    @tool
    def confirm(q: str) -> str:
        """Ask the user."""
        return str(interrupt(q))

    store, saver = MemoryArtifacts(), InMemorySaver()
    script = (Say(calls=[task("c1", "writer")]), Say(calls=[("c2", "confirm", {"q": "sure?"})]), "done")

    def started(artifacts):
        main = model(*script)
        tools = [lookup_tool(artifacts), confirm]
        graph = deep(main, subagents=[sub("writer", RESULT)], tools=tools, checkpointer=saver)
        return attributed(graph, artifacts=artifacts), main

    first = play(started(Artifacts(store))[0], Permit("ann"))
    (asked,) = first[-1].outcome.interrupts
    again = Artifacts(store)
    agent, main = started(again)
    answer = {"interruptId": asked.id, "status": "resolved", "payload": "yes"}
    wire = {"threadId": "t1", "runId": "r2", "messages": [], "resume": [answer]}

    async def go():
        run_input = RunAgentInput.model_validate(wire)
        return [event async for event in agent.run(run_input, permit=Permit("ann"))]

    assert asyncio.run(go())[-1].type is EventType.RUN_FINISHED
    (id_,) = store.ids("t1", "ann")
    read = [one.content for one in main.requests[-1].messages if isinstance(one, ToolMessage)]
    assert read == [f"Here: {again.placeholder(store.get(id_))} Done.", "yes"]
