"""Grants on ADK: what an app really uses is read off its objects, and held to the grant before and while it runs."""

import asyncio
from dataclasses import replace

import pytest
from adk_kit import AT_ONCE, SSE, agent, judge, llm, runner, user
from byline import attribute
from byline.grants import (
    BadSignatureError,
    DecisionTimedOutError,
    DeniedError,
    ExpiredError,
    GrantError,
    Grants,
    NotCoveredError,
    ParentMismatchError,
    Permit,
    ReplayedError,
    Resource,
    RunMismatchError,
    ScopeMismatchError,
    TableDecider,
    UserMismatchError,
    peek,
)
from byline_adk import _plugin
from byline_adk.scripted import Say
from google.adk.agents.base_agent import BaseAgent
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools import AgentTool, FunctionTool
from google.adk.tools.base_toolset import BaseToolset
from refusals import BROKEN_SINCE, REFUSALS, saved_links

pytestmark = pytest.mark.anyio

jwt = pytest.importorskip("jwt", reason="grants need PyJWT: pip install 'byline[grants]'")

SECRET = b"0123456789abcdef0123456789abcdef"
EVERYTHING = TableDecider([("*", "*", "*")])


def search(q: str) -> str:
    """Search."""
    return f"found {q}"


def shell(command: str) -> str:
    """Run a command."""
    raise AssertionError("must never be called")


def team(*script: Say, tools=(), subagents=None, **more):
    subagents = [agent("ana", Say("ana says"))] if subagents is None else subagents
    return agent("boss", *(script or [Say("done")]), tools=[search, *tools], sub_agents=subagents, **more)


def guarded(target, decider=EVERYTHING, **more):
    from byline.hooks import Plugins

    plugins = [] if "adk" in Plugins().names else [_plugin]
    return attribute(target, plugins=plugins, clock=None, **({"grants": Grants(SECRET, decider)} | more))


async def permitted(attributed, run_id="r", thread_id="t", who="ann", **more):
    return await attributed.permit(who, run_id=run_id, thread_id=thread_id, **more)


async def play(attributed, permit, run_input=None):
    events = [event async for event in attributed.run(run_input or user("go"), permit=permit)]
    judge(events)
    return events


def results(events):
    return {event.tool_call_id: event.content for event in events if event.type == "TOOL_CALL_RESULT"}


async def no_trace(a_runner, *models):
    assert [model.requests for model in models] == [[]] * len(models)
    listed = await a_runner.session_service.list_sessions(app_name=a_runner.app_name, user_id="user")
    assert listed.sessions == []


class Quiet(BasePlugin):
    """A plugin of the app's."""


# ---------------------------------------------------------------------------------------------- what a run will use


async def test_model_tools_subagents_and_plugins_are_found():
    from google.adk.apps import App

    inner = agent("inner", Say("x"))
    boss = team(
        tools=[AgentTool(agent("tooled", Say("x")))],
        subagents=[
            agent("ana", Say("x"), sub_agents=[inner]),
            agent("tasked", Say("x"), mode="task"),
            agent("single", Say("x"), mode="single_turn"),
        ],
    )
    used = guarded(App(name="team", root_agent=boss, plugins=[Quiet("quiet")])).uses()
    assert sorted(f"{kind} {name}" for kind, name in used.resources) == [
        "middleware quiet",
        "model scripted",
        "subagent ana",
        "subagent single",
        "subagent tasked",
        "subagent tooled",
        "tool search",
    ], "what ana and her subagents use inside is their own matter"
    assert used.opaque == ()


async def test_a_workflow_at_the_root_uses_its_nodes():
    from google.adk.workflow import START, Workflow

    first, second = agent("first", Say("1"), tools=[shell]), agent("second", Say("2"))
    attributed = guarded(Workflow(name="wf", edges=[(START, first), (first, second)]))
    used = attributed.uses()
    assert sorted(f"{kind} {name}" for kind, name in used.resources) == ["subagent first", "subagent second"]
    assert sorted(used.inside["first"].resources) == [("model", "scripted"), ("tool", "shell")]
    await play(attributed, await permitted(attributed))
    assert [len(one.model.requests) for one in (first, second)] == [1, 1]


async def test_a_workflows_functions_and_tools_are_tools_and_a_join_is_nothing():
    from google.adk.tools import FunctionTool
    from google.adk.workflow import START, JoinNode, Workflow

    hidden = agent("hidden", Say("x"))

    def step(node_input):
        return f"stepped {node_input}"

    async def asks(node_input):
        return hidden.name

    graph = Workflow(
        name="wf",
        edges=[
            (START, step, (agent("a", Say("A")), agent("b", Say("B"))), JoinNode(name="j")),
            (START, FunctionTool(search)),
            (START, asks),
            (START, Workflow(name="inner", edges=[(START, agent("c", Say("C")))])),
        ],
    )
    used = guarded(graph).uses()
    assert sorted(f"{kind} {name}" for kind, name in used.resources) == [
        "subagent a",
        "subagent b",
        "subagent inner",
        "tool asks",
        "tool search",
        "tool step",
    ]
    assert [(one.name, one.why) for one in used.opaque] == [("asks", "the tool holds agent 'hidden'")]


async def test_a_node_added_to_a_workflow_after_the_grant_is_refused():
    from google.adk.workflow import START, Workflow

    first, second = agent("first", Say("1")), agent("second", Say("2"))
    permit = await permitted(guarded(Workflow(name="wf", edges=[(START, first)])))
    with pytest.raises(NotCoveredError) as raised:
        await play(guarded(Workflow(name="wf", edges=[(START, first), (first, second)])), permit)
    assert raised.value.resources == (Resource("subagent", "second"),)
    assert first.model.requests == second.model.requests == []


async def test_skills_are_refused_as_opaque_unless_allowed_by_name():
    """Where ADK's skills come from stands in private fields only, so they cannot be granted one by one."""
    skill_toolset = pytest.importorskip(
        "google.adk.tools.skill_toolset", reason="this version of ADK has no skills"
    )
    from google.adk.skills.models import Frontmatter, Skill

    skill = Skill(frontmatter=Frontmatter(name="pdf", description="reads"), instructions="Read it.")
    boss = team(tools=[skill_toolset.SkillToolset([skill])])
    with pytest.raises(NotCoveredError, match=r"'SkillToolset': .* allow=\['SkillToolset'\]"):
        await permitted(guarded(boss))
    assert await permitted(guarded(boss, allow=["SkillToolset"]))


# ------------------------------------------------------------------------------------------- permitted, and refused


async def test_a_permitted_run_runs():
    boss = team(Say(calls=[("c1", "search", {"q": "x"})]), Say("done"))
    attributed = guarded(runner(boss))
    events = await play(attributed, await permitted(attributed))
    assert results(events) == {"c1": "found x"}
    assert events[-1].type == "RUN_FINISHED"


async def test_the_user_needs_the_permission_on_every_resource():
    boss = team()
    a_runner = runner(boss)
    rows = [("ann", "model", "*"), ("ann", "tool", "*")]
    with pytest.raises(DeniedError) as raised:
        await permitted(guarded(a_runner, TableDecider(rows)))
    assert raised.value.resources == (Resource("subagent", "ana"),)
    await no_trace(a_runner, boss.model)


async def nothing(attributed):
    return None


async def bobs(attributed):
    return Permit("bob", (await permitted(attributed)).token)


async def another_run(attributed):
    return await permitted(attributed, run_id="other")


async def another_thread(attributed):
    return await permitted(attributed, thread_id="other")


async def expired(attributed):
    permit = await permitted(attributed)
    attributed._bound.guard.grants._clock = lambda: 4_000_000_000.0
    return permit


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (nothing, BadSignatureError),
        (bobs, UserMismatchError),
        (another_run, RunMismatchError),
        (another_thread, ScopeMismatchError),
        (expired, ExpiredError),
    ],
)
async def test_a_run_that_is_refused_leaves_no_trace(make, kind):
    boss = team()
    a_runner = runner(boss)
    attributed = guarded(a_runner)
    with pytest.raises(kind):
        await play(attributed, await make(attributed))
    await no_trace(a_runner, boss.model)


@pytest.mark.parametrize(("code", "scenario"), REFUSALS.values(), ids=REFUSALS.keys())
async def test_every_refusal_before_the_run_has_its_code_and_leaves_no_trace(code, scenario):
    boss = team()
    a_runner = runner(boss)
    where = {"run_id": "r", "thread_id": "t"}
    with pytest.raises(GrantError) as raised:
        await play(
            *await scenario(lambda grants, **more: guarded(a_runner, **{"grants": grants, **more}), where)
        )
    assert raised.value.code == code
    await no_trace(a_runner, boss.model)


@pytest.mark.parametrize(("since", "kind"), BROKEN_SINCE.values(), ids=BROKEN_SINCE.keys())
async def test_a_saved_link_is_checked_again_when_a_run_starts(since, kind):
    boss = team()
    a_runner = runner(boss)
    saved, links = saved_links()
    attributed = guarded(a_runner, links=links)
    permit = await permitted(attributed)
    since(saved)
    with pytest.raises(kind):
        await play(attributed, permit)
    await no_trace(a_runner, boss.model)


async def test_a_grant_is_used_once_and_a_replay_leaves_no_session():
    boss = team()
    first, second = runner(boss), runner(boss)
    attributed = guarded(first)
    permit = await permitted(attributed)
    await play(attributed, permit)
    again = guarded(second)
    again._bound.guard.grants.ledger = attributed._bound.guard.grants.ledger
    with pytest.raises(ReplayedError):
        await play(again, permit)
    await no_trace(second)


@pytest.mark.parametrize("kind", ["tool", "model", "middleware", "subagent"])
async def test_what_was_added_after_the_grant_was_made_is_refused(kind):
    boss = team()
    a_runner = runner(boss)
    attributed = guarded(a_runner)
    permit = await permitted(attributed)
    if kind == "tool":
        boss.tools.append(shell)
    elif kind == "model":
        boss.model = llm(Say("x")).model_copy(update={"model": "huge"})
    elif kind == "middleware":
        a_runner.plugin_manager.plugins.append(Quiet("late"))
    else:
        boss.sub_agents.append(agent("spy", Say("x")))
    with pytest.raises(NotCoveredError) as raised:
        await play(attributed, permit)
    assert [resource.kind for resource in raised.value.resources] == [kind]
    await no_trace(a_runner, boss.model)


# -------------------------------------------------------------------------------------------- what cannot be seen


class Tools(BaseToolset):
    async def get_tools(self, readonly_context=None):
        return []

    async def close(self):
        pass


HELD = agent("held", Say("x"))


def ask_held(q: str) -> str:
    """Ask."""
    return HELD.name


async def test_what_is_opaque_is_refused_unless_allowed_by_name():
    with pytest.raises(NotCoveredError, match="'Tools': what is in a toolset"):
        await permitted(guarded(runner(team(tools=[Tools()]))))
    assert await permitted(guarded(runner(team(tools=[Tools()])), allow=["Tools"]))
    with pytest.raises(NotCoveredError, match="'ask_held': the tool holds agent 'held'"):
        await permitted(guarded(runner(team(tools=[ask_held]))))
    assert await permitted(guarded(runner(team(tools=[ask_held])), allow="ask_held"))


class Adds(BasePlugin):
    """Declares something to the model that the app was not built with."""

    def __init__(self, tool):
        super().__init__("adds")
        self.tool = tool

    async def before_model_callback(self, *, callback_context, llm_request):
        llm_request.append_tools([self.tool])


@pytest.mark.parametrize("config", [SSE, AT_ONCE], ids=["streamed", "at once"])
async def test_a_call_that_is_not_covered_is_answered_and_not_made(config):
    from google.adk.apps import App
    from google.adk.tools import FunctionTool

    boss = team(Say(calls=[("c1", "shell", {"command": "rm"}), ("c2", "search", {"q": "x"})]), Say("done"))
    app = App(name="team", root_agent=boss, plugins=[Adds(FunctionTool(shell))])
    attributed = guarded(runner(app), run_config=config)
    events = await play(attributed, await permitted(attributed))
    assert results(events) == {
        "c1": '{"error": "not_covered: this run may not use tool \'shell\'; it was not called"}',
        "c2": "found x",
    }
    assert events[-1].type == "RUN_FINISHED"
    assert len(boss.model.requests) == 2


class AddsLate(BasePlugin):
    """Gives the root a subagent once the run has begun."""

    def __init__(self, root, spy):
        super().__init__("adds_late")
        self.root, self.spy = root, spy

    async def before_run_callback(self, *, invocation_context):
        if self.spy.parent_agent is None:
            self.spy.parent_agent = self.root
            self.root.sub_agents.append(self.spy)


async def test_a_transfer_to_a_subagent_that_is_not_covered_is_answered():
    from google.adk.apps import App

    spy = agent("spy", Say("spied"))
    boss = team(Say(calls=[("c1", "transfer_to_agent", {"agent_name": "spy"})]), Say("done"))
    attributed = guarded(runner(App(name="team", root_agent=boss, plugins=[AddsLate(boss, spy)])))
    events = await play(attributed, await permitted(attributed))
    assert results(events) == {
        "c1": '{"error": "not_covered: this run may not use subagent \'spy\'; it was not called"}'
    }
    assert spy.model.requests == []


@pytest.mark.parametrize("mode", ["task", "single_turn", "chat", "tool"])
async def test_a_covered_delegation_of_every_kind_goes_through(mode):
    """What an agent uses inside is its own matter: ann has no permission on it."""
    inside = [Say(calls=[("i1", "shell2", {})]), Say("ana says")]
    if mode == "task":
        inside = [
            Say(calls=[("i1", "shell2", {})]),
            Say(calls=[("f1", "finish_task", {"result": "ana says"})]),
        ]

    def shell2() -> str:
        """Inside."""
        return "inside"

    ana = agent("ana", *inside, tools=[shell2], **({} if mode == "tool" else {"mode": mode}))
    call = {"chat": ("c1", "transfer_to_agent", {"agent_name": "ana"})}.get(
        mode, ("c1", "ana", {"request": "go"})
    )
    boss = team(
        Say(calls=[call]),
        Say("done"),
        tools=[AgentTool(ana)] if mode == "tool" else [],
        subagents=[] if mode == "tool" else [ana],
    )
    rows = [("ann", "model", "*"), ("ann", "tool", "search"), ("ann", "subagent", "ana")]
    attributed = guarded(runner(boss), TableDecider(rows))
    events = await play(attributed, await permitted(attributed))
    assert [event.name for event in events if event.type == "SUBAGENT_STARTED"] == ["ana"]
    assert "inside" in results(events)["i1"]
    assert events[-1].type == "RUN_FINISHED"


async def test_a_model_that_is_not_covered_ends_the_run_before_its_request():
    class Swaps(BasePlugin):
        async def before_run_callback(self, *, invocation_context):
            boss.model = other

    from google.adk.apps import App

    other = llm(Say("x")).model_copy(update={"model": "huge"})
    boss = team()
    first = boss.model
    attributed = guarded(runner(App(name="team", root_agent=boss, plugins=[Swaps("swaps")])))
    events = await play(attributed, await permitted(attributed))
    assert events[-1].type == "RUN_ERROR"
    assert "not_covered: model 'huge' is not among what was granted; it was not asked" in events[-1].message
    assert (first.requests, other.requests) == ([], [])


@pytest.mark.parametrize("model", ["other", None])
async def test_a_model_that_the_agents_own_callback_swaps_in_is_not_asked(model):
    """The agent's callbacks come after every plugin."""

    def change(callback_context, llm_request):
        llm_request.model = model

    boss = team(before_model_callback=change)
    attributed = guarded(runner(boss))
    events = await play(attributed, await permitted(attributed))
    assert boss.model.requests == []
    assert (events[-1].type, events[-1].code) == ("RUN_ERROR", "NotCoveredError")
    assert events[-1].message == (
        f"not_covered: model {model!r} is not among what was granted; it was not asked"
    )


async def test_a_callback_may_change_the_rest_of_a_request():
    def change(callback_context, llm_request):
        llm_request.model = "scripted"
        llm_request.append_instructions(["Be brief."])

    boss = team(before_model_callback=change)
    attributed = guarded(runner(boss))
    events = await play(attributed, await permitted(attributed))
    assert events[-1].type == "RUN_FINISHED"
    assert "Be brief." in str(boss.model.requests[0].config.system_instruction)


async def test_a_tool_that_the_agents_own_callback_adds_is_not_called():
    def add(callback_context, llm_request):
        llm_request.append_tools([FunctionTool(shell)])

    boss = team(Say(calls=[("c1", "shell", {"command": "x"})]), Say("done"), before_model_callback=add)
    attributed = guarded(runner(boss))
    events = await play(attributed, await permitted(attributed))
    assert "not_covered: this run may not use tool 'shell'; it was not called" in results(events)["c1"]


async def test_a_call_that_the_agents_own_callback_makes_is_not_made():
    def add(callback_context, llm_request):
        llm_request.append_tools([FunctionTool(shell)])

    def swap(callback_context, llm_response):
        for part in llm_response.content.parts:
            if part.function_call is not None:
                part.function_call.name, part.function_call.args = "shell", {"command": "rm"}

    boss = team(
        Say(calls=[("c1", "search", {"q": "x"})]),
        Say("done"),
        before_model_callback=add,
        after_model_callback=swap,
    )
    attributed = guarded(runner(boss))
    events = await play(attributed, await permitted(attributed))
    assert "not_covered: this run may not use tool 'shell'; it was not called" in results(events)["c1"]
    assert events[-1].type == "RUN_FINISHED"


async def test_an_open_task_is_held_to_the_grant_of_the_next_run():
    """A paused task is entered by the user's next words without any call; so it is checked before the run."""
    ana = agent(
        "ana", Say("which one?"), Say(calls=[("f1", "finish_task", {"result": "ana says"})]), mode="task"
    )
    boss = team(Say(calls=[("c1", "ana", {"request": "go"})]), Say("done"), subagents=[ana])
    a_runner = runner(boss)
    rows = {("ann", "model", "*"), ("ann", "tool", "*"), ("ann", "subagent", "ana")}
    attributed = guarded(a_runner, TableDecider(rows))
    await play(attributed, await permitted(attributed))
    asked = len(ana.model.requests)
    revoked = TableDecider(rows - {("ann", "subagent", "ana")})
    with pytest.raises(DeniedError, match="subagent 'ana'"):
        await permitted(attributed, run_id="r2", decider=revoked)
    with pytest.raises(BadSignatureError):
        await play(attributed, None, user("this one", runId="r2"))
    assert len(ana.model.requests) == asked


async def test_with_grants_required_every_subagent_has_one_of_its_own():
    ana = agent("ana", Say("ana says"), tools=[shell], mode="single_turn")
    boss = team(Say(calls=[("c1", "ana", {"request": "go"})]), Say("done"), subagents=[ana])
    outside = TableDecider([("ann", "model", "*"), ("ann", "tool", "search"), ("ann", "subagent", "ana")])
    with pytest.raises(DeniedError) as raised:
        await permitted(guarded(runner(boss), outside, nested="require"))
    assert raised.value.resources == (Resource("tool", "shell"),)
    attributed = guarded(runner(boss), nested="require")
    permit = await permitted(attributed)
    with pytest.raises(BadSignatureError):
        await play(attributed, Permit("ann", permit.token))
    events = await play(attributed, permit)
    assert results(events) == {"c1": "ana says"}


def in_a_worker(inner):
    """A workflow that runs `inner` for every item of a list."""
    from google.adk.workflow import START, Workflow, node

    def split(node_input: str) -> list[str]:
        return ["1", "2"]

    return Workflow(name="wf", edges=[(START, split, node(inner, parallel_worker=True))])


async def test_what_a_parallel_worker_runs_is_seen_and_held_to_a_grant_of_its_own():
    worker = agent("w", Say("W says"), tools=[shell])
    no_shell = TableDecider([("*", kind, "*") for kind in ("model", "subagent", "middleware")] + SPLIT)
    attributed = guarded(in_a_worker(worker), nested="require")
    used = attributed.uses()
    assert sorted(used.resources) == [("subagent", "w"), ("tool", "split")]
    assert sorted(used.inside["w"].resources) == [("model", "scripted"), ("tool", "shell")]
    with pytest.raises(DeniedError) as raised:
        await permitted(guarded(in_a_worker(worker), no_shell, nested="require"))
    assert raised.value.resources == (Resource("tool", "shell"),)
    permit = await permitted(attributed)
    assert sorted(permit.nested) == ["w"]
    with pytest.raises(BadSignatureError):
        await play(attributed, replace(permit, nested={}))
    assert worker.model.requests == []
    await play(attributed, permit)
    assert len(worker.model.requests) == 2


SPLIT = [("*", "tool", "split")]


async def test_a_function_in_a_parallel_worker_is_a_tool_and_shows_what_it_holds():
    def plain(node_input: str) -> str:
        return node_input

    attributed = guarded(in_a_worker(plain))
    assert sorted(attributed.uses().resources) == [("tool", "plain"), ("tool", "split")]
    assert attributed.uses().opaque == ()
    hidden = agent("hidden", Say("x"))

    def holds(node_input: str) -> str:
        return hidden.name

    assert [one.name for one in guarded(in_a_worker(holds)).uses().opaque] == ["holds"]


async def test_agents_of_one_name_need_what_each_of_them_uses():
    """Agents that are tools stand in no tree of ADK's, which would refuse a name that comes twice."""

    def helper(*tools):
        return AgentTool(agent("helper", Say("helped"), tools=list(tools)))

    ana, bea = (
        agent(name, Say("x"), tools=[helper(tool)]) for name, tool in (("ana", search), ("bea", shell))
    )
    boss = team(subagents=[ana, bea])
    attributed = guarded(runner(boss), nested="require")
    permit = await permitted(attributed)
    assert sorted(permit.nested) == ["ana", "bea", "helper"]
    assert sorted(name for kind, name in peek(permit.nested["helper"]).resources) == [
        "scripted",
        "search",
        "shell",
    ]


class Custom(BaseAgent):
    """An agent of the app's own kind."""

    async def _run_async_impl(self, ctx):
        raise AssertionError("must never run")
        yield


async def test_with_grants_required_an_agent_that_cannot_be_seen_through_is_refused_unless_allowed_by_name():
    custom = Custom(name="own", sub_agents=[agent("below", Say("x"))])
    boss = team(subagents=[custom])
    with pytest.raises(NotCoveredError, match=r"what subagent 'own' uses cannot be seen.*allow=\['own'\]"):
        await permitted(guarded(runner(boss), nested="require"))
    permit = await permitted(guarded(runner(boss), nested="require", allow=["own"]))
    assert permit.nested == {}
    assert (await permitted(guarded(runner(boss)))).nested == {}, "the default is to trust it"


async def test_a_parent_that_cannot_be_seen_through_is_opaque():
    with pytest.raises(NotCoveredError, match=r"'own': a Custom may use anything.*allow=\['own'\]"):
        await permitted(guarded(runner(Custom(name="own"))))
    assert (await permitted(guarded(runner(Custom(name="own")), allow=["own"]))).token


async def test_shells_are_seen_through():
    from google.adk.agents import LoopAgent, ParallelAgent, SequentialAgent

    inner = [agent(name, Say("x")) for name in ("a", "b")]
    shells = [
        ParallelAgent(name="both", sub_agents=[inner[0]]),
        LoopAgent(name="again", sub_agents=[inner[1]], max_iterations=1),
    ]
    used = guarded(runner(SequentialAgent(name="seq", sub_agents=shells))).uses()
    assert (used.opaque, sorted(used.resources)) == ((), [("subagent", "again"), ("subagent", "both")])
    assert sorted(used.inside["both"].resources) == [("subagent", "a")]
    assert sorted(used.inside["again"].inside["b"].resources) == [("model", "scripted")]


async def test_another_parent_agent_or_mode():
    boss = team()
    a_runner = runner(boss)
    grants = Grants(SECRET, EVERYTHING)
    permit = await permitted(guarded(a_runner, grants=grants, agent_id="another"))
    with pytest.raises(ParentMismatchError):
        await play(guarded(a_runner, grants=grants), permit)
    permit = await permitted(guarded(a_runner, grants=grants), mode="batch")
    with pytest.raises(ScopeMismatchError):
        await play(guarded(a_runner, grants=grants), replace(permit, mode="chat"))
    await no_trace(a_runner, boss.model)


async def test_a_decision_that_takes_too_long_is_another_cause_than_a_denial():
    class Hangs:
        async def can_use(self, request):
            await asyncio.Event().wait()

    boss = team()
    a_runner = runner(boss)
    with pytest.raises(DecisionTimedOutError):
        await permitted(guarded(a_runner, grants=Grants(SECRET, Hangs(), limit=0.05)))
    await no_trace(a_runner, boss.model)


# ------------------------------------------------------------------------------------------------------- factories


async def test_a_factory_is_called_for_a_permitted_run_only_and_what_it_built_is_checked():
    from byline import Factory

    declared = [Resource("model", "scripted"), Resource("tool", "search"), Resource("subagent", "ana")]
    built = []

    def build(tools=()):
        built.append(team(tools=tools))
        return runner(built[-1])

    attributed = guarded(Factory(build, declared), agent_id="boss")
    permit = await permitted(attributed)
    with pytest.raises(NotCoveredError):
        await play(guarded(Factory(build, [*declared, Resource("tool", "shell")]), agent_id="boss"), permit)
    with pytest.raises(DeniedError):
        await permitted(
            guarded(Factory(build, declared), TableDecider([("ann", "model", "*")]), agent_id="boss")
        )
    assert built == []
    with pytest.raises(NotCoveredError) as raised:
        await play(guarded(Factory(lambda: build([shell]), declared), agent_id="boss"), permit)
    assert raised.value.resources == (Resource("tool", "shell"),)
    assert [boss.model.requests for boss in built] == [[]]
    await play(attributed, permit)
    assert [len(boss.model.requests) for boss in built] == [0, 1]
