"""Artifacts on ADK: the user sees the original, the root's model a placeholder; the session keeps the original."""

import re

import pytest
from adk_kit import agent, answer, judge, runner, user
from byline import attribute
from byline.artifacts import Artifacts, Counts, MemoryArtifacts
from byline.errors import StoreError
from byline.hooks import Plugins
from byline.ledger import Ledger
from byline_adk import _plugin
from byline_adk.scripted import Say
from google.adk.apps import App
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.sessions import InMemorySessionService
from google.adk.tools import AgentTool, FunctionTool

pytestmark = pytest.mark.anyio

BODY = "<p>" + "all of it " * 100 + "</p>"
RESULT = f'Here: <artifact identifier="q3" type="text/html" title="Q3">{BODY}</artifact> Done.'


def team(mode, *script, result=RESULT):
    said = [Say(calls=[("f1", "finish_task", {"result": result})])] if mode == "task" else [Say(result)]
    ana = agent("ana", *said, **({} if mode == "tool" else {"mode": mode}))
    first = Say(calls=[("c1", "ana", {"request": "go"})])
    if mode == "tool":
        return agent("boss", first, *script, tools=[AgentTool(ana)])
    return agent("boss", first, *script, sub_agents=[ana])


async def play(target, artifacts, *inputs, **options):
    plugins = [] if "adk" in Plugins().names else [_plugin]
    attributed = attribute(target, plugins=plugins, artifacts=artifacts, clock=None, **options)
    events = []
    for run_input in inputs or (user("go"),):
        once = [event async for event in attributed.run(run_input)]
        judge(once)
        events += once
    return events


def results(events):
    return {event.tool_call_id: event.content for event in events if event.type == "TOOL_CALL_RESULT"}


def read_by_the_model(boss, request=-1):
    parts = [part for content in boss.model.requests[request].contents for part in content.parts or ()]
    return [part.function_response.response for part in parts if part.function_response is not None]


def the_only(artifacts):
    (id_,) = artifacts.store.ids("t", "user")
    return artifacts.store.get(id_)


async def stored(a_runner):
    session = await a_runner.session_service.get_session(
        app_name=a_runner.app_name, user_id="user", session_id="t"
    )
    parts = [
        part for event in session.events for part in (event.content.parts if event.content else None) or ()
    ]
    return [part.function_response.response for part in parts if part.function_response is not None]


@pytest.mark.parametrize("mode", ["tool", "single_turn", "task"])
async def test_the_user_sees_the_original_and_the_root_gets_a_placeholder(mode):
    artifacts = Artifacts()
    boss = team(mode, Say("done"))
    a_runner = runner(boss)
    events = await play(a_runner, artifacts)
    artifact = the_only(artifacts)
    assert artifact.body == BODY
    assert RESULT in results(events)["c1"]
    placed = f"Here: {artifacts.placeholder(artifact)} Done."
    assert [placed in str(response) for response in read_by_the_model(boss)] == [True]
    assert BODY not in str(boss.model.requests[-1].contents)
    assert [RESULT in str(response) for response in await stored(a_runner)].count(True) >= 1
    assert placed not in str(await stored(a_runner))


@pytest.mark.parametrize("mode", ["tool", "single_turn", "task"])
async def test_the_artifact_knows_the_invocation_that_made_it(mode):
    artifacts = Artifacts()
    events = await play(runner(team(mode, Say("done"))), artifacts)
    (started,) = [event for event in events if event.type == "SUBAGENT_STARTED"]
    assert the_only(artifacts).invocation == started.subagent_run_id


async def test_the_next_turn_has_the_placeholder_too_also_in_a_new_process():
    artifacts = Artifacts()
    boss = team("single_turn", Say("done"), Say("more"))
    a_runner = runner(boss)
    await play(a_runner, artifacts)
    artifact = the_only(artifacts)
    again = Artifacts(artifacts.store)
    await play(a_runner, again, user("and?", runId="r2"))
    # Before 2.13 the next turn also quotes the subagent's own words, which are an artifact of their own.
    assert artifacts.placeholder(artifact) in str(read_by_the_model(boss))
    assert BODY not in str(boss.model.requests[-1].contents)


async def test_what_a_chat_agent_said_is_quoted_with_a_placeholder():
    artifacts = Artifacts()
    ana = agent("ana", Say(RESULT), Say(calls=[("b1", "transfer_to_agent", {"agent_name": "boss"})]))
    boss = agent(
        "boss", Say(calls=[("c1", "transfer_to_agent", {"agent_name": "ana"})]), Say("done"), sub_agents=[ana]
    )
    a_runner = runner(boss)
    events = await play(a_runner, artifacts)
    (started,) = [event for event in events if event.type == "SUBAGENT_STARTED"]
    assert the_only(artifacts).invocation == started.subagent_run_id
    artifacts = Artifacts(artifacts.store)  # another process
    await play(a_runner, artifacts, user("back", runId="r2"))
    quoted = str(boss.model.requests[-1].contents)
    assert artifacts.placeholder(the_only(artifacts)) in quoted.replace("\\'", "'")
    assert BODY not in quoted


class Tree(BasePlugin):
    """What ADK calls back, a line each."""

    def __init__(self):
        super().__init__(name="tree")
        self.lines = []

    async def before_agent_callback(self, *, agent, callback_context):
        self.lines.append(f"agent {agent.name}")

    async def after_agent_callback(self, *, agent, callback_context):
        self.lines.append(f"agent {agent.name} over")

    async def before_model_callback(self, *, callback_context, llm_request):
        self.lines.append(f"model of {callback_context.agent_name}")

    async def after_model_callback(self, *, callback_context, llm_response):
        self.lines.append(f"answer for {callback_context.agent_name}")

    async def before_tool_callback(self, *, tool, tool_args, tool_context):
        self.lines.append(f"tool {tool.name} {tool_args}")

    async def after_tool_callback(self, *, tool, tool_args, tool_context, result):
        self.lines.append(f"tool {tool.name} over {result}")


def normal(text):
    """Number the ids that ADK draws anew for every run, and leave its clock out."""
    names = {}
    text = re.sub(r'"timestamp": ?[0-9.]+', '"timestamp":0', text)
    return NATIVE.sub(lambda found: names.setdefault(found[0], f"id-{len(names)}"), text)


NATIVE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@pytest.mark.parametrize("mode", ["tool", "single_turn", "task"])
async def test_with_and_without_artifacts_stream_session_and_callbacks_are_the_same(mode):
    seen = []
    for artifacts in (Artifacts(), None):
        tree = Tree()
        boss = team(mode, Say("done"))
        a_runner = runner(App(name="team", root_agent=boss, plugins=[tree]))
        events = await play(a_runner, artifacts)
        wire = normal("\n".join(event.model_dump_json(by_alias=True, exclude_none=True) for event in events))
        session = await a_runner.session_service.get_session(app_name="team", user_id="user", session_id="t")
        kept = normal("\n".join(event.model_dump_json(exclude_none=True) for event in session.events))
        seen.append((wire, kept, tree.lines, str(boss.model.requests[-1].contents).count(BODY)))
    (wire, kept, lines, bodies), (plain_wire, plain_kept, plain_lines, plain_bodies) = seen
    assert wire == plain_wire
    assert BODY in wire
    assert kept == plain_kept
    assert BODY in kept
    assert lines == plain_lines
    assert len(lines) > 8
    assert bodies == 0, "smaller by the body"
    assert plain_bodies >= 1


async def test_the_root_looks_up_the_original_without_display_tags():
    artifacts = Artifacts()
    a_runner = runner(team("single_turn", Say("done")))
    await play(a_runner, artifacts)
    artifact = the_only(artifacts)
    assert artifacts.counts(artifact.id) == Counts(1, 0), "not looking up is the default"
    boss = team("single_turn", Say(calls=[("c2", "lookup_artifact", {"id": artifact.id})]), Say("done"))
    events = await play(runner(boss), artifacts)
    assert results(events)["c2"] == BODY
    assert artifacts.counts(artifact.id).lookups == 1
    assert [BODY in str(response) for response in read_by_the_model(boss)] == [False, True]


async def test_shown_told_and_looked_up_are_three_facts_of_the_recording():
    boss = team("single_turn", Say("done"), Say("more"))
    a_runner, artifacts = runner(boss), Artifacts()
    events = await play(a_runner, artifacts)
    [fate] = Ledger.read(events).artifacts(artifacts, user="user")
    assert (fate.id, fate.title, fate.characters) == (the_only(artifacts).id, "Q3", len(BODY))
    assert [(one.place, one.owner is None) for one in fate.shown] == [("result", True), ("words", False)]
    assert (fate.lookups, fate.counts) == ((), Counts(1, 0))
    assert Ledger.read(events).shown_twice() == []


async def test_an_id_of_another_thread_is_refused():
    artifacts = Artifacts()
    await play(runner(team("single_turn", Say("done"))), artifacts)
    id_ = the_only(artifacts).id
    boss = agent("boss", Say(calls=[("c2", "lookup_artifact", {"id": id_})]), Say("done"))
    events = await play(runner(boss), artifacts, user("go", threadId="other"))
    assert "unknown_artifact" in results(events)["c2"]
    assert artifacts.counts(id_).lookups == 0


async def test_a_subagent_has_no_look_up():
    artifacts = Artifacts()
    seen = agent("ana", Say("x"), mode="single_turn")
    boss = agent("boss", Say(calls=[("c1", "ana", {"request": "go"})]), Say("done"), sub_agents=[seen])
    await play(runner(boss), artifacts)
    assert "lookup_artifact" in boss.model.requests[0].tools_dict
    assert "lookup_artifact" not in seen.model.requests[0].tools_dict


@pytest.mark.parametrize("mode", ["tool", "single_turn", "task", "chat"])
async def test_a_look_up_by_a_subagent_is_refused_with_its_code(mode):
    artifacts = Artifacts()
    (artifact,) = artifacts.keep(RESULT, thread="t", user="user", source="earlier").artifacts
    look = Say(calls=[("s1", "lookup_artifact", {"id": artifact.id})])
    end = Say(calls=[("f1", "finish_task", {"result": "told"})]) if mode == "task" else Say("told")
    ana = agent("ana", look, end, **({"mode": mode} if mode in ("single_turn", "task") else {}))
    first = ("c1", "transfer_to_agent", {"agent_name": "ana"}) if mode == "chat" else ("c1", "ana", GO)
    where = {"tools": [AgentTool(ana)]} if mode == "tool" else {"sub_agents": [ana]}
    events = await play(runner(agent("boss", Say(calls=[first]), Say("done"), **where)), artifacts)
    refusal = '{"error": "not_the_parent: only the parent agent can look an artifact up"}'
    assert results(events)["s1"] == refusal
    assert artifacts.counts(artifact.id) == Counts(0, 0)
    assert events[-1].type == "RUN_FINISHED"
    assert BODY not in str([request.contents for request in ana.model.requests])


GO = {"request": "go"}


async def test_without_a_look_up_none_is_offered():
    boss = team("single_turn", Say("done"))
    await play(runner(boss), Artifacts(lookup=False))
    assert "lookup_artifact" not in boss.model.requests[0].tools_dict
    assert "It cannot be looked up from here" in str(read_by_the_model(boss))


# ---------------------------------------------------------------------------------------------------------- bad input


async def test_an_id_of_another_user_is_refused():
    artifacts = Artifacts()
    await play(runner(team("single_turn", Say("done"))), artifacts)
    id_ = the_only(artifacts).id
    boss = agent("boss", Say(calls=[("c2", "lookup_artifact", {"id": id_})]), Say("done"))
    events = await play(runner(boss), artifacts, user_id="bob")
    assert "unknown_artifact" in results(events)["c2"]
    assert artifacts.counts(id_).lookups == 0


@pytest.mark.parametrize(
    "args", [{}, {"id": None}, {"id": 7}, {"id": ""}, {"id": "x" * 10_000}, {"id": ["art"]}]
)
async def test_what_is_no_id_is_refused(args):
    boss = agent("boss", Say(calls=[("c2", "lookup_artifact", args)]), Say("done"))
    events = await play(runner(boss), Artifacts())
    assert results(events)["c2"].startswith('{"error": "unknown_artifact: there is no artifact ')
    assert len(results(events)["c2"]) < 250
    assert events[-1].type == "RUN_FINISHED"


@pytest.mark.parametrize("mode", ["tool", "single_turn", "task"])
async def test_text_without_a_tag_passes_unchanged(mode):
    artifacts = Artifacts()
    boss = team(mode, Say("done"), result="plain words")
    await play(runner(boss), artifacts)
    assert "plain words" in str(read_by_the_model(boss))
    assert artifacts.store.ids("t", "user") == []


@pytest.mark.parametrize("mode", ["tool", "single_turn", "task"])
async def test_an_unclosed_tag_is_shown_and_not_stored(mode):
    artifacts = Artifacts()
    text = "Here: <artifact title='U'>half of it"
    boss = team(mode, Say("done"), result=text)
    events = await play(runner(boss), artifacts)
    assert text in results(events)["c1"]
    assert text in str([response.get("result") for response in read_by_the_model(boss)])
    assert artifacts.store.ids("t", "user") == []


async def test_a_body_over_the_limit_is_shown_and_stays_in_the_request():
    artifacts = Artifacts(limit=500)
    boss = team("single_turn", Say("done"))
    events = await play(runner(boss), artifacts)
    assert results(events)["c1"] == RESULT
    assert BODY in str(read_by_the_model(boss))
    assert artifacts.store.ids("t", "user") == []


async def test_a_title_with_markup_is_none_in_the_placeholder():
    artifacts = Artifacts()
    result = '<artifact title="&lt;artifact&gt;[x]&#10;now &quot;obey&quot;">all of it</artifact>'
    boss = team("single_turn", Say("done"), result=result)
    await play(runner(boss), artifacts)
    (response,) = read_by_the_model(boss)
    assert response["result"] == artifacts.placeholder(the_only(artifacts))
    assert 'with title "&lt;artifact&gt;(x) now \\"obey\\"", 9 characters' in response["result"]


class Down(MemoryArtifacts):
    def put(self, artifacts):
        raise StoreError("the disk is full")


class Gone(MemoryArtifacts):
    def ids(self, thread, user):
        raise StoreError("connection refused")


@pytest.mark.parametrize("store", [Down, Gone])
async def test_with_a_store_that_fails_nothing_is_lost(store):
    boss = team("single_turn", Say("done"))
    events = await play(runner(boss), Artifacts(store()))
    assert results(events)["c1"] == RESULT
    if store is Down:
        assert BODY in str(read_by_the_model(boss))
    assert events[-1].type == "RUN_FINISHED"


async def test_a_look_up_in_a_store_that_is_down_is_answered_with_its_code():
    class Lost(MemoryArtifacts):
        def get(self, id):  # noqa: A002
            raise StoreError("connection refused")

    artifacts = Artifacts(Lost())
    boss = agent("boss", Say(calls=[("c2", "lookup_artifact", {"id": "art_1"})]), Say("done"))
    events = await play(runner(boss), artifacts)
    assert results(events)["c2"] == '{"error": "store_unavailable: connection refused"}'
    assert events[-1].type == "RUN_FINISHED"


async def test_after_a_resume_in_a_new_process_the_placeholder_stands_there():
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    def started():
        ana = agent("ana", Say(RESULT), mode="single_turn")
        script = (
            Say(calls=[("c1", "ana", {"request": "go"})]),
            Say(calls=[("p1", "pay", {"amount": 5})]),
            Say("done"),
        )
        tools = [FunctionTool(pay, require_confirmation=True)]
        return agent("boss", *script, sub_agents=[ana], tools=tools)

    sessions, store = InMemorySessionService(), MemoryArtifacts()
    first = await play(runner(started(), session_service=sessions), Artifacts(store))
    (asked,) = first[-1].outcome.interrupts
    again, boss = Artifacts(store), started()
    resumed = answer((asked.id, {"confirmed": True}), runId="r2")
    events = await play(runner(boss, session_service=sessions), again, resumed)
    assert results(events) == {"p1": "paid 5"}
    kept = {one.source.partition(":")[2] != "": one for one in map(store.get, store.ids("t", "user"))}
    assert kept[True].invocation == "c1", "before 2.13 it is quoted too, as an artifact of its own"
    assert f"Here: {again.placeholder(kept[True])} Done." in str(read_by_the_model(boss)[0])
    assert BODY not in str(boss.model.requests[-1].contents)
