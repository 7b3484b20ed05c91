"""`byline inspect` on plain LangGraph: nodes, agents, supervisors, swarms, and where each value was read."""

from importlib.metadata import EntryPoint, version

import graphs
import pytest
from byline.cli import main
from byline.inspection import describe
from byline_langgraph import _private
from click.testing import CliRunner

PRIVATE_PROMPT = "  [private; as the agent was built; middleware may add to it]"
SET = "  [private; a set: neither their order nor those with only tools or state can be read]"
TOOL = "contract: mode tool, context isolated, interaction none, approvals true, returns automatic, concurrency parallel"
MODEL = "ScriptedModel:scripted  [private]"


@pytest.fixture(autouse=True)
def _adapter(monkeypatch):
    """Make the adapter known as an installation does."""
    monkeypatch.setattr(
        "byline.hooks.entry_points",
        lambda group: [EntryPoint("langgraph", "byline_langgraph._plugin", group)],
    )


def inspect(target, *options):
    done = CliRunner().invoke(main, ["inspect", target, *options])
    assert done.exit_code == 0, done.output
    return done.output


def tree(output):
    """The lines of the tree: without the version above it and what stands below it."""
    return output.split("\n\n")[0].splitlines()[1:]


def test_a_plain_graph():
    output = inspect("graphs:plain()")
    assert output.splitlines()[0] == f"langgraph {version('langgraph')}"
    assert tree(output) == [
        "plain  (graph)",
        "│ nodes: lead, tidy  [public]",
        "└─ lead  (agent)  via node lead",
        "   │ contract: mode subgraph, context shared, interaction none, approvals true, returns onward",
        f"   │ model: {MODEL}",
        f"   │ prompt: Lead.{PRIVATE_PROMPT}",
        "   │ tools: ask_helper, send  [private]",
        f"   │ middleware: (none){SET}",
        "   └─ helper  (agent)  via tool ask_helper",
        f"        {TOOL}",
        f"        model: {MODEL}",
        f"        prompt: (none){PRIVATE_PROMPT}",
        "        tools: (none)  [private]",
        f"        middleware: (none){SET}",
    ]


def test_a_supervisor():
    handoff = "contract: mode handoff, context shared, interaction full, approvals true, returns automatic, concurrency serial"
    output = inspect("graphs:supervised()")
    for pair in (
        ("transfer_to_beta", "transfer_to_alpha"),
        ("beta", "alpha"),
    ):  # the library makes them of a set
        output = output.replace(f": {pair[0]}, {pair[1]}", f": {pair[1]}, {pair[0]}")
    assert tree(output) == [
        "supervised  (graph)",
        "│ nodes: supervisor, alpha, beta  [public]",
        "├─ supervisor  (supervisor)  via node supervisor",
        f"│    model: {MODEL}",
        "│    prompt: [opaque: create_react_agent folds it into the model]",
        "│    tools: transfer_to_alpha, transfer_to_beta  [public]",
        "│    middleware: (none)  [public]",
        "│    handoffs: alpha, beta  [public]",
        "├─ alpha  (agent)  via hand-off",
        f"│    {handoff}",
        f"│    model: {MODEL}",
        f"│    prompt: (none){PRIVATE_PROMPT}",
        "│    tools: (none)  [private]",
        f"│    middleware: (none){SET}",
        "└─ beta  (agent)  via hand-off",
        f"     {handoff}",
        f"     model: {MODEL}",
        f"     prompt: (none){PRIVATE_PROMPT}",
        "     tools: send  [private]",
        f"     middleware: (none){SET}",
    ]


def test_a_swarm():
    team = describe(graphs.swarm())
    assert [
        (one.name, one.via, one.contract["returns"], one.value("handoffs")) for one in team.root.members
    ] == [
        ("alpha", "hand-off", "manual", ["beta"]),
        ("beta", "hand-off", "manual", ["alpha"]),
    ]


@pytest.mark.parametrize("path", _private.PATHS)
def test_every_private_path_is_there(path):
    subgraphs = dict(graphs.supervised().get_subgraphs())
    graph = subgraphs["supervisor"] if '"agent"' in path else graphs.guarded()
    assert _private.read(path, graph) is not None


def test_approvals_and_middleware():
    team = describe(graphs.guarded())
    assert team.root.value("approvals") == {
        "send": ["approve", "edit", "reject", "respond"]
    } or team.root.value("approvals") == {"send": ["approve", "edit", "reject"]}
    assert team.root.value("middleware") == ["HumanInTheLoopMiddleware", "forgiving", "patient"]


def test_a_path_that_is_gone_leaves_what_is_public(monkeypatch):
    gone = 'nodes["model"].bound.func: cell default_tools'
    monkeypatch.setitem(_private.PATHS, gone, lambda graph: {}["gone"])
    team = describe(graphs.guarded())
    assert team.gaps == (gone,)
    assert (team.root.value("tools"), team.root.facts["tools"].source) == (["send"], "public")


def test_what_a_graph_is_not():
    from langgraph.graph import START, MessagesState, StateGraph

    inner = StateGraph(MessagesState).add_node("only", lambda state: {}).add_edge(START, "only").compile()
    outer = StateGraph(MessagesState).add_node("inner", inner).add_edge(START, "inner").compile(name="outer")
    team = describe(outer)
    assert [(one.name, one.kind, sorted(one.facts)) for one, _ in team.root.walk()] == [
        ("outer", "graph", ["nodes"]),
        ("inner", "graph", ["nodes"]),
    ]
