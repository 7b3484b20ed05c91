"""The team behind a runner, an app or an agent: `byline inspect` for ADK, whose objects are nearly all public."""

from collections.abc import Iterator
from importlib.metadata import version
from typing import Any, Final

from byline.team_view import AgentView, Fact, TeamView, opaque
from google.adk.agents.base_agent import BaseAgent
from google.adk.tools.base_toolset import BaseToolset

from ._contract import AGENT_TOOL, WORKFLOW_TOOL, contract
from ._doubts import doubts
from ._identity import Invocation, Kind

__all__ = ["LIMITS", "describe"]

LIMITS: Final = (
    "an agent that a function, a custom agent or a function node reaches by itself (ctx.run_node)",
    "what a toolset holds, before it is asked",
    "what a callback or a plugin changes in a request, and what another application's remote agent is made of",
)
"""What stays out of sight, whatever the version."""


def describe(target: Any) -> TeamView:
    """Return the team behind a `Runner`, an `App`, an agent or a `Workflow`; never runs it."""
    root = getattr(target, "agent", None) or getattr(target, "root_agent", None)
    if isinstance(target, BaseAgent) or root is None:
        root = target
    manager = getattr(target, "plugin_manager", target)
    plugins = [plugin.name for plugin in getattr(manager, "plugins", None) or () if not _is_ours(plugin)]
    view = _view(root, None, None, (), plugins)
    return TeamView("adk", version("google-adk"), view, (), LIMITS, tuple(doubts(root)))


def _is_ours(plugin: Any) -> bool:
    return type(plugin).__module__.partition(".")[0] == "byline_adk"


def _view(
    agent: Any, via: str | None, promised: Any, above: tuple[Any, ...], plugins: list[str] | None = None
) -> AgentView:
    kind = "agent" if _thinks(agent) else type(agent).__name__
    told = {} if promised is None else promised.metadata()
    description = getattr(agent, "description", None) or None
    if any(agent is one for one in above):
        note = opaque("it is further up in this tree: the team calls itself")
        return AgentView(agent.name, kind, via, description, {"nodes": note}, told)
    facts = _facts(agent)
    if plugins:
        own = list(facts["middleware"].value) if "middleware" in facts else []
        facts["middleware"] = Fact([*plugins, *own], "public", "plugins and *_callback")
    members = tuple(_members(agent, (*above, agent)))
    return AgentView(agent.name, kind, via, description, facts, told, members=members)


def _thinks(agent: Any) -> bool:
    """Return whether an agent has a model of its own to ask."""
    return hasattr(agent, "canonical_model")


# ------------------------------------------------------------------- facts


def _facts(agent: Any) -> dict[str, Fact]:
    facts: dict[str, Fact] = {}
    if _thinks(agent):
        facts |= {"model": _model(agent), "prompt": _prompt(agent), "tools": _tools(agent)}
        if asked := _approvals(agent):
            facts["approvals"] = asked
        targets = [child.name for child in agent.sub_agents if _mode(child) in (None, "chat")]
        if targets:
            facts["handoffs"] = Fact(targets, "public", "sub_agents")
    elif type(agent).__name__ == "RemoteA2aAgent":
        facts["nodes"] = opaque("another application runs it; its events say what it does")
    elif getattr(agent, "graph", None) is not None:
        facts["nodes"] = Fact([node.name for node in _nodes(agent)], "public", "graph.nodes")
    else:
        children = [child.name for child in getattr(agent, "sub_agents", None) or ()]
        facts["nodes"] = Fact(children, "public", "sub_agents")
    fields = type(agent).model_fields
    callbacks = [name for name in fields if name.endswith("_callback") and getattr(agent, name, None)]
    if callbacks:
        facts["middleware"] = Fact(callbacks, "public", "*_callback")
    return facts


def _model(agent: Any) -> Fact:
    try:
        model = agent.canonical_model
    except Exception as fault:  # no model on it nor on any agent above
        return opaque(str(fault), "canonical_model")
    own = bool(agent.model)
    return Fact(
        f"{type(model).__name__}:{model.model}",
        "public",
        "model" if own else "canonical_model",
        None if own else "not its own: from the agent above, or ADK's default",
    )


def _prompt(agent: Any) -> Fact:
    if callable(agent.instruction):
        return opaque("a function makes it anew for each request", "instruction")
    notes = []
    if agent.static_instruction is not None:
        notes.append("static_instruction stands before it")
    if getattr(agent.root_agent, "global_instruction", ""):
        notes.append("the root's global_instruction stands before it")
    if "{" in agent.instruction:
        notes.append("names in braces are filled in from the session's state")
    return Fact(agent.instruction, "public", "instruction", "; ".join(notes) or None)


def _tools(agent: Any) -> Fact:
    sets = sorted({type(tool).__name__ for tool in agent.tools if isinstance(tool, BaseToolset)})
    names = [_name(tool) for tool in agent.tools if not isinstance(tool, BaseToolset)]
    reason = f"without what is in {', '.join(sets)}, which is known when it is asked" if sets else None
    return Fact(names, "public", "tools", reason)


def _name(tool: Any) -> str:
    return str(getattr(tool, "name", None) or getattr(tool, "__name__", None) or type(tool).__name__)


def _approvals(agent: Any) -> Fact | None:
    where = "tools: _require_confirmation"
    asked = {_name(tool): getattr(tool, "_require_confirmation", False) for tool in agent.tools}
    told = {
        name: "decided for each call" if callable(how) else "always" for name, how in asked.items() if how
    }
    return Fact(told, "private", where) if told else None


# ----------------------------------------------------------------- members


def _members(agent: Any, line: tuple[Any, ...]) -> Iterator[AgentView]:
    """Yield what an agent delegates to: sub-agents, the agents and workflows among its tools, a workflow's nodes."""
    for child in getattr(agent, "sub_agents", None) or ():
        kind, via = _way(agent, child)
        yield _view(child, via, _promise(kind, child), line)
    children = [id(child) for child in getattr(agent, "sub_agents", None) or ()]
    for tool in getattr(agent, "tools", None) or ():
        inner = getattr(tool, "agent", None)
        if inner is not None and id(inner) not in children:
            yield _view(inner, f"AgentTool {_name(tool)}", AGENT_TOOL, line)
        elif type(tool).__name__ == "NodeTool":
            yield _view(tool.node, f"tool {_name(tool)}", WORKFLOW_TOOL, line)
    for node in _nodes(agent):
        if isinstance(node, BaseAgent) or getattr(node, "graph", None) is not None or _thinks(node):
            yield _view(node, f"node {node.name}", _promise(Kind.NODE, node), line)


def _nodes(agent: Any) -> list[Any]:
    nodes = getattr(getattr(agent, "graph", None), "nodes", None) or ()
    return [node for node in nodes if not node.name.startswith("__")]


def _mode(agent: Any) -> str | None:
    mode: str | None = getattr(agent, "mode", None)
    return mode


def _way(caller: Any, child: Any) -> tuple[Kind, str]:
    if not _thinks(caller):
        return Kind.PART, f"sub_agents of {type(caller).__name__}"
    if _mode(child) in ("task", "single_turn"):
        return (Kind.TASK if _mode(child) == "task" else Kind.CALL), f"tool {child.name}"
    return Kind.CHAT, "transfer_to_agent"


def _promise(kind: Kind, agent: Any) -> Any:
    return contract(Invocation(kind, agent.name, agent=agent))
