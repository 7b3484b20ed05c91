"""Grants on LangGraph: what a run really uses is read off the graph, and held to the grant before and while it runs."""

import asyncio

import pytest
from ag_ui.core import EventType, RunAgentInput
from byline import attribute
from byline.errors import InputError
from byline.grants import (
    BadSignatureError,
    DeniedError,
    ExpiredError,
    GrantError,
    Grants,
    NotCoveredError,
    ParentMismatchError,
    ReplayedError,
    Resource,
    RunMismatchError,
    ScopeMismatchError,
    TableDecider,
    UserMismatchError,
)
from byline.validator import Validator
from byline_langgraph.scripted import Say, ScriptedModel
from kit import attribute_plugins
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware, TodoListMiddleware
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import create_react_agent
from langgraph_supervisor import create_supervisor
from langgraph_swarm import create_handoff_tool, create_swarm
from refusals import BROKEN_SINCE, REFUSALS, saved_links

pytest.importorskip("jwt", reason="grants need PyJWT: pip install 'byline[grants]'")

pytestmark = pytest.mark.filterwarnings("ignore:create_react_agent has been moved")

SECRET = b"0123456789abcdef0123456789abcdef"
EVERYTHING = TableDecider([("*", "*", "*")])


def scripted(*script: Say, name: str = "big") -> ScriptedModel:
    return ScriptedModel(script=list(script), model_name=name, requests=[])


@tool
def search(q: str) -> str:
    """Search."""
    return f"found {q}"


@tool
def shell(command: str) -> str:
    """Run a command."""
    raise AssertionError("must never be called")


def boss(*tools, script=(), **more):
    model = scripted(*script or [Say("done")])
    return create_agent(model, [search, *tools], name="boss", checkpointer=InMemorySaver(), **more), model


def guarded(graph, decider=EVERYTHING, **more):
    return attribute(
        graph,
        plugins=attribute_plugins(),
        clock=None,
        **({"grants": Grants(SECRET, decider), "agent_id": "boss"} | more),
    )


def an_input(run_id="r1", thread_id="t1", text="go") -> RunAgentInput:
    return RunAgentInput.model_validate(
        {
            "threadId": thread_id,
            "runId": run_id,
            "messages": [{"id": f"u-{run_id}", "role": "user", "content": text}],
        }
    )


async def read(run):
    events = [event async for event in run]
    validator = Validator("producer")
    findings = [found for event in events for found in validator.feed(event)] + list(validator.finish())
    assert [found.rule for found in findings if found.level == "error"] == []
    return events


def permitted(agent, run_id="r1", thread_id="t1", user="ann", **more):
    return asyncio.run(agent.permit(user, run_id=run_id, thread_id=thread_id, **more))


def play(agent, permit, run_input=None):
    return asyncio.run(read(agent.run(run_input or an_input(), permit=permit)))


def nothing_ran(graph, *models):
    assert [model.requests for model in models] == [[]] * len(models)
    saver = graph.checkpointer
    assert saver is None or list(saver.list(None)) == []


# ---------------------------------------------------------------------------------------------- what a run will use


def used(graph, **more):
    return sorted(f"{kind} {name}" for kind, name in guarded(graph, **more).uses().resources)


def test_models_tools_middleware_and_provider_tools_are_found():
    small = scripted(Say("short"), name="small")
    graph = create_agent(
        scripted(Say("x")),
        [search, {"type": "web_search"}],
        middleware=[TodoListMiddleware(), SummarizationMiddleware(model=small)],
        name="boss",
    )
    assert used(graph) == [
        "middleware SummarizationMiddleware",
        "middleware TodoListMiddleware",
        "model big",
        "model small",
        "tool search",
        "tool web_search",
        "tool write_todos",
    ]


def test_a_supervisor_and_its_agents_are_found():
    agents = [create_agent(scripted(Say("x"), name="tiny"), [search], name=name) for name in ("ana", "bea")]
    graph = create_supervisor(agents, model=scripted(Say("x"))).compile(name="boss")
    assert used(graph) == [
        "model big",
        "subagent ana",
        "subagent bea",
        "tool transfer_to_ana",
        "tool transfer_to_bea",
    ], "what ana and bea use inside is their own matter"


def test_a_swarms_agents_are_found():
    agents = [
        create_agent(scripted(Say("x")), [create_handoff_tool(agent_name=other)], name=name)
        for name, other in (("ana", "bea"), ("bea", "ana"))
    ]
    assert used(create_swarm(agents, default_active_agent="ana").compile(name="boss")) == [
        "subagent ana",
        "subagent bea",
    ]


def test_an_agent_in_a_node_function_and_a_model_in_another_are_found():
    inner = create_agent(scripted(Say("x")), [], name="inner")
    model = scripted(Say("x"), name="small")

    def ask(state):
        return inner.invoke(state)

    def think(state):
        return {"messages": [model.invoke(state["messages"])]}

    graph = StateGraph(MessagesState).add_node("ask", ask).add_node("think", think)
    graph = graph.add_edge(START, "ask").add_edge("ask", "think").compile(name="boss")
    assert used(graph) == ["model small", "subagent inner"]


class Skilled(AgentMiddleware):
    name = "Skilled"
    sources = ("/skills/report", "/skills/tables")

    def before_agent(self, state, runtime):
        return None


def test_skills_are_found_by_their_source():
    graph = create_agent(scripted(Say("x")), [], middleware=[Skilled()], name="boss")
    assert used(graph) == [
        "middleware Skilled",
        "model big",
        "skill /skills/report",
        "skill /skills/tables",
    ]


# ------------------------------------------------------------------------------------------- permitted, and refused


def test_a_permitted_run_runs_as_without_a_grant():
    graph, model = boss(script=(Say(calls=[("c1", "search", {"q": "x"})]), Say("done")))
    agent = guarded(graph)
    events = play(agent, permitted(agent))
    plain_graph, _ = boss(script=(Say(calls=[("c1", "search", {"q": "x"})]), Say("done")))
    plain = asyncio.run(read(attribute(plain_graph, plugins=attribute_plugins(), clock=None).run(an_input())))
    assert [event.type for event in events] == [event.type for event in plain]
    assert len(model.requests) == 2


def test_the_user_needs_the_permission_on_every_resource():
    graph, model = boss()
    agent = guarded(graph, TableDecider([("ann", "model", "big")]))
    with pytest.raises(DeniedError) as raised:
        permitted(agent)
    assert raised.value.resources == (Resource("tool", "search"),)
    nothing_ran(graph, model)


def other_clock(agent):
    agent._bound.guard.grants._clock = lambda: 4_000_000_000.0


REFUSED = {
    "no permit": (lambda agent: None, {}, BadSignatureError),
    "another user's": (
        lambda agent: type(permitted(agent))("bob", permitted(agent).token),
        {},
        UserMismatchError,
    ),
    "another run's": (permitted, {"run_id": "r2"}, RunMismatchError),
    "another thread's": (permitted, {"thread_id": "t2"}, ScopeMismatchError),
}


@pytest.mark.parametrize(("make", "where", "kind"), REFUSED.values(), ids=REFUSED.keys())
def test_a_run_that_is_refused_leaves_no_trace(make, where, kind):
    graph, model = boss()
    agent = guarded(graph)
    with pytest.raises(kind):
        play(agent, make(agent), an_input(**where))
    nothing_ran(graph, model)


@pytest.mark.parametrize(("code", "scenario"), REFUSALS.values(), ids=REFUSALS.keys())
def test_every_refusal_before_the_run_has_its_code_and_leaves_no_trace(code, scenario):
    graph, model = boss()

    async def go():
        agent, permit = await scenario(
            lambda grants, **more: guarded(graph, grants=grants, **more), {"run_id": "r1", "thread_id": "t1"}
        )
        await read(agent.run(an_input(), permit=permit))

    with pytest.raises(GrantError) as raised:
        asyncio.run(go())
    assert raised.value.code == code
    nothing_ran(graph, model)


@pytest.mark.parametrize(("since", "kind"), BROKEN_SINCE.values(), ids=BROKEN_SINCE.keys())
def test_a_saved_link_is_checked_again_when_a_run_starts(since, kind):
    graph, model = boss()
    team, links = saved_links()
    agent = guarded(graph, links=links)
    permit = permitted(agent)
    since(team)
    with pytest.raises(kind):
        play(agent, permit)
    nothing_ran(graph, model)
    assert play(guarded(graph, grants=agent._bound.guard.grants), permit), "and no grant is spent"


def test_expired_before_the_graph_is_called():
    graph, model = boss()
    agent = guarded(graph)
    permit = permitted(agent)
    other_clock(agent)
    with pytest.raises(ExpiredError):
        play(agent, permit)
    nothing_ran(graph, model)


def test_another_parent_agent_or_mode():
    graph, model = boss()
    permit = permitted(guarded(graph, agent_id="other"))
    with pytest.raises(ParentMismatchError):
        play(guarded(graph), permit)
    agent = guarded(graph)
    batch = permitted(agent, mode="batch")
    with pytest.raises(ScopeMismatchError):
        play(agent, type(batch)("ann", batch.token, "default"))
    nothing_ran(graph, model)


def test_a_grant_is_used_once():
    graph, model = boss()
    agent = guarded(graph)
    permit = permitted(agent)
    play(agent, permit)
    with pytest.raises(ReplayedError):
        play(agent, permit)
    assert len(model.requests) == 1


def test_a_run_that_cannot_begin_spends_nothing():
    graph, _ = boss()
    agent = guarded(graph)
    permit = permitted(agent)
    bad = RunAgentInput.model_validate(
        {
            "threadId": "t1",
            "runId": "r1",
            "messages": [],
            "resume": [{"interruptId": "i9", "status": "resolved"}],
        }
    )
    with pytest.raises(InputError):
        play(agent, permit, bad)
    assert play(agent, permit)[-1].type is EventType.RUN_FINISHED


def later(kind: str):
    """The same agent, as it was when the grant was made and with something added."""
    more = {
        "tool": {"tools": [search, shell]},
        "model": {"model": scripted(Say("x"), name="huge")},
        "middleware": {"middleware": [TodoListMiddleware()]},
        "skill": {"middleware": [Skilled()]},
    }
    base = {"model": scripted(Say("x")), "tools": [search], "name": "boss"}
    if kind == "subagent":
        agents = [create_agent(scripted(Say("x")), [], name=name) for name in ("ana", "bea")]
        first = create_supervisor(agents[:1], model=scripted(Say("x"))).compile(name="boss")
        return first, create_supervisor(agents, model=scripted(Say("x"))).compile(name="boss"), None
    model = more[kind].get("model", base["model"])
    return create_agent(**base), create_agent(**(base | more[kind])), model


@pytest.mark.parametrize("kind", ["tool", "model", "middleware", "skill", "subagent"])
def test_what_was_added_after_the_grant_was_made_is_refused(kind):
    before, after, model = later(kind)
    grants = Grants(SECRET, EVERYTHING)
    permit = permitted(attribute(before, plugins=attribute_plugins(), grants=grants))
    with pytest.raises(NotCoveredError) as raised:
        play(attribute(after, plugins=attribute_plugins(), grants=grants), permit)
    assert kind in {resource.kind for resource in raised.value.resources}
    assert model is None or model.requests == []


def test_a_tool_put_into_the_graph_itself_is_seen():
    graph, model = boss()
    agent = guarded(graph)
    permit = permitted(agent)
    graph.nodes["tools"].bound._tools_by_name["shell"] = shell
    with pytest.raises(NotCoveredError) as raised:
        play(agent, permit)
    assert raised.value.resources == (Resource("tool", "shell"),)
    nothing_ran(graph, model)


def test_a_team_attributed_without_grants_says_so():
    graph, _ = boss()
    with pytest.raises(InputError, match="without grants"):
        permitted(attribute(graph, plugins=attribute_plugins()))


# -------------------------------------------------------------------------------------------- what cannot be seen


def with_an_agent_in_a_tool(writer=None):
    writer_model = scripted(Say("written"), name="small")
    writer = writer or create_agent(writer_model, [], name="writer")

    @tool
    def ask_writer(q: str) -> str:
        """Ask the writer."""
        return writer.invoke({"messages": [("user", q)]})["messages"][-1].content

    graph, model = boss(ask_writer, script=[Say(calls=[("c1", "ask_writer", {"q": "x"})]), Say("done")])
    return graph, model, writer_model


def test_an_agent_in_a_tools_closure_is_refused_unless_allowed_by_name():
    graph, model, writer = with_an_agent_in_a_tool()
    with pytest.raises(
        NotCoveredError, match=r"'ask_writer': the tool holds agent 'writer'.*allow=\['ask_writer'\]"
    ):
        permitted(guarded(graph))
    agent = guarded(graph, allow=["ask_writer"])
    assert Resource("subagent", "writer") in agent.uses().resources, "allowed, it is still held to the grant"
    play(agent, permitted(agent))
    assert (len(model.requests), len(writer.requests)) == (2, 1)


HELD = scripted(Say("x"), name="held")


@tool
def think(q: str) -> str:
    """Think."""
    return HELD.invoke(q).content


def test_a_model_in_a_tools_globals_is_refused_unless_allowed_by_name():
    graph, _ = boss(think)
    with pytest.raises(NotCoveredError, match="the tool holds model 'held'"):
        permitted(guarded(graph))
    assert permitted(guarded(graph, allow="think"))


def test_a_model_chosen_at_run_time_is_refused_unless_allowed():
    def choose(state, runtime):
        return scripted(Say("x"))

    graph = create_react_agent(choose, [search], name="boss")
    with pytest.raises(NotCoveredError, match="'agent': its model is chosen at run time"):
        permitted(guarded(graph))
    assert permitted(guarded(graph, allow=["agent"]))


class Swaps(AgentMiddleware):
    """Asks another model than the agent was built with."""

    def __init__(self, get):
        super().__init__()
        self.get = get

    def wrap_model_call(self, request, handler):
        return handler(request.override(model=self.get()))

    async def awrap_model_call(self, request, handler):
        return await handler(request.override(model=self.get()))


class Box:
    """An object of the app's own, which nobody can look into."""

    def __init__(self, inside):
        self.inside = inside

    def get(self):
        return self.inside


def test_a_model_swapped_in_at_run_time_ends_the_run_before_its_request():
    other = scripted(Say("x"), name="other")
    graph, model = boss(middleware=[Swaps(Box(other).get)])
    agent = guarded(graph)
    events = play(agent, permitted(agent))
    assert (events[-1].type, events[-1].code) == (EventType.RUN_ERROR, "NotCoveredError")
    assert events[-1].message == "not_covered: model 'other' is not among what was granted; it was not asked"
    assert (model.requests, other.requests) == ([], [])


# Older langchain-core leaves a coroutine of its own behind when a handler that is to stop the run raises.
@pytest.mark.filterwarnings("ignore:coroutine 'ahandle_event' was never awaited")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_agent_hidden_deeper_is_stopped_before_its_first_request_and_its_call_is_answered():
    writer_model = scripted(Say("written"), name="small")
    box = Box(create_agent(writer_model, [], name="writer"))

    @tool
    async def ask_writer(q: str) -> str:
        """Ask the writer."""
        return (await box.get().ainvoke({"messages": [("user", q)]}))["messages"][-1].content

    graph, model = boss(ask_writer, script=(Say(calls=[("c1", "ask_writer", {"q": "x"})]), Say("done")))
    agent = guarded(graph)
    events = play(agent, permitted(agent))
    assert writer_model.requests == []
    results = [event for event in events if event.type is EventType.TOOL_CALL_RESULT]
    assert [(event.tool_call_id, event.content) for event in results] == [
        (
            "c1",
            "not_covered: subagent 'writer' is not among what was granted; it was stopped before its first step",
        )
    ]
    assert events[-1].type is EventType.RUN_FINISHED, "the parent goes on with the error as its answer"
    stored = graph.get_state({"configurable": {"thread_id": "t1"}}).values["messages"]
    assert [
        (message.tool_call_id, message.status) for message in stored if isinstance(message, ToolMessage)
    ] == [("c1", "error")]
    assert isinstance(model.requests[1].messages[-1], ToolMessage)


class Brings(AgentMiddleware):
    """Executes a tool that the agent was not built with."""

    def __init__(self, get):
        super().__init__()
        self.get = get

    def wrap_tool_call(self, request, handler):
        return handler(request.override(tool=self.get()) if request.tool is None else request)

    async def awrap_tool_call(self, request, handler):
        return await handler(request.override(tool=self.get()) if request.tool is None else request)


def test_a_tool_that_appears_at_run_time_is_answered_and_not_called():
    graph, _ = boss(
        middleware=[Brings(Box(shell).get)],
        script=(Say(calls=[("c1", "shell", {"command": "rm"}), ("c2", "search", {"q": "x"})]), Say("done")),
    )
    agent = guarded(graph, allow=["tools"])
    events = play(agent, permitted(agent))
    results = {
        event.tool_call_id: event.content for event in events if event.type is EventType.TOOL_CALL_RESULT
    }
    assert results == {
        "c1": "not_covered: this run may not use tool 'shell'; it was not called",
        "c2": "found x",
    }
    assert events[-1].type is EventType.RUN_FINISHED
    stored = graph.get_state({"configurable": {"thread_id": "t1"}}).values["messages"]
    calls = {
        call["id"] for message in stored if isinstance(message, AIMessage) for call in message.tool_calls
    }
    answers = {message.tool_call_id for message in stored if isinstance(message, ToolMessage)}
    assert calls == answers == {"c1", "c2"}


def test_what_a_subagent_uses_inside_is_its_own_matter():
    """No rights of a child are derived from its parent's: ann has no permission on what the writer uses."""
    graph, _, writer = with_an_agent_in_a_tool()
    rows = [("ann", "model", "big"), ("ann", "tool", "*"), ("ann", "subagent", "writer")]
    agent = guarded(graph, TableDecider(rows), allow=["ask_writer"])
    play(agent, permitted(agent))
    assert len(writer.requests) == 1


def test_whom_a_subagent_calls_is_its_own_matter():
    checker_model = scripted(Say("checked"), name="tiny")
    checker = create_agent(checker_model, [], name="checker")

    @tool
    async def ask_checker(q: str) -> str:
        """Ask the checker."""
        return (await checker.ainvoke({"messages": [("user", q)]}))["messages"][-1].content

    script = [Say(calls=[("c2", "ask_checker", {"q": "x"})]), Say("written")]
    writer = create_agent(scripted(*script, name="small"), [ask_checker], name="writer")

    @tool
    async def ask_writer(q: str) -> str:
        """Ask the writer."""
        return (await writer.ainvoke({"messages": [("user", q)]}))["messages"][-1].content

    graph, _ = boss(ask_writer, script=[Say(calls=[("c1", "ask_writer", {"q": "x"})]), Say("done")])
    rows = [("ann", "model", "big"), ("ann", "tool", "*"), ("ann", "subagent", "writer")]
    agent = guarded(graph, TableDecider(rows), allow=["ask_writer"])
    events = play(agent, permitted(agent))
    assert len(checker_model.requests) == 1
    results = [event for event in events if event.type is EventType.TOOL_CALL_RESULT]
    assert [(event.tool_call_id, event.content) for event in results] == [
        ("c2", "checked"),
        ("c1", "written"),
    ]


def test_a_supervisor_that_is_a_graph_itself_is_held_to_the_grant():
    ana = create_agent(scripted(Say("ana says"), name="tiny"), [], name="ana")
    model = scripted(
        Say(calls=[("c1", "shell", {"command": "rm"})]),
        Say(calls=[("c2", "transfer_to_ana", {})]),
        Say("done"),
    )
    graph = create_supervisor([ana], model=model).compile(name="boss")
    agent = guarded(graph)
    events = play(agent, permitted(agent))
    results = {
        event.tool_call_id: event.content for event in events if event.type is EventType.TOOL_CALL_RESULT
    }
    assert results == {
        "c1": "not_covered: this run may not use tool 'shell'; it was not called",
        "c2": "Successfully transferred to ana",
    }
    assert events[-1].type is EventType.RUN_FINISHED
    small = guarded(graph, TableDecider([("*", "model", "*"), ("*", "tool", "*")]))
    with pytest.raises(DeniedError, match="subagent 'ana'"):
        permitted(small)


def test_the_app_itself_is_not_changed():
    graph, _ = boss()
    before = (graph.nodes["tools"].bound, graph.nodes["model"].bound, dict(graph.nodes))
    agent = guarded(graph)
    play(agent, permitted(agent))
    assert (graph.nodes["tools"].bound, graph.nodes["model"].bound, dict(graph.nodes)) == before


def test_a_native_call_is_held_to_its_grant():
    graph, model = boss()
    agent = guarded(graph)
    config = {"configurable": {"thread_id": "t1"}}
    with pytest.raises(BadSignatureError):
        asyncio.run(read(agent.stream({"messages": [("user", "go")]}, config)))
    nothing_ran(graph, model)
    run = agent.stream({"messages": [("user", "go")]}, config)
    permit = permitted(agent, run_id=run.run_id)
    asyncio.run(
        read(agent.stream({"messages": [("user", "go")]}, config | {"run_id": run.run_id}, permit=permit))
    )
    assert len(model.requests) == 1


# ---------------------------------------------------------------------------------- a grant for each subagent's inside


def two_levels():
    """A supervisor, ana below it, and what ana uses: a model of her own and a tool."""
    ana = create_agent(scripted(Say("ana says"), name="tiny"), [shell], name="ana")
    model = scripted(Say(calls=[("c1", "transfer_to_ana", {})]), Say("done"))
    return create_supervisor([ana], model=model).compile(name="boss"), model


OUTSIDE = [("ann", "model", "big"), ("ann", "tool", "transfer_to_ana"), ("ann", "subagent", "ana")]


def test_a_subagent_is_trusted_with_what_it_uses_unless_grants_are_required():
    graph, _ = two_levels()
    agent = guarded(graph, TableDecider(OUTSIDE))
    assert play(agent, permitted(agent))[-1].type is EventType.RUN_FINISHED
    with pytest.raises(DeniedError) as raised:
        permitted(guarded(graph, TableDecider(OUTSIDE), nested="require"))
    assert raised.value.resources == (Resource("model", "tiny"), Resource("tool", "shell"))


def test_with_grants_required_every_subagent_has_one_of_its_own():
    graph, model = two_levels()
    agent = guarded(graph, nested="require")
    permit = permitted(agent)
    assert list(permit.nested) == ["ana"]
    for wrong in ({}, {"ana": permit.token}, {"bea": permit.nested["ana"]}):
        with pytest.raises((BadSignatureError, ParentMismatchError)):
            play(agent, type(permit)("ann", permit.token, permit.mode, wrong))
    assert model.requests == []
    assert play(agent, permit)[-1].type is EventType.RUN_FINISHED
    with pytest.raises(ReplayedError):
        play(agent, permit)


def test_what_was_added_inside_a_subagent_is_refused_with_grants_required():
    graph, model = two_levels()
    agent = guarded(graph, nested="require")
    permit = permitted(agent)
    ana = graph.nodes["ana"].subgraphs[0]
    ana.nodes["tools"].bound._tools_by_name["search"] = search
    with pytest.raises(NotCoveredError) as raised:
        play(agent, permit)
    assert raised.value.resources == (Resource("tool", "search"),)
    assert model.requests == []


def test_another_word_for_nested_is_refused():
    graph, _ = two_levels()
    with pytest.raises(InputError, match="expected 'trust' or 'require'"):
        guarded(graph, nested="maybe")
