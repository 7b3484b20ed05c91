"""What an app will really use, and holding its run to its grant.

ADK's own objects are public.  Its delegation tools carry the agent they lead to, and stand in `tools` beside
`sub_agents`.  Measured, and what the gate rests on:

* `before_tool` is not called in a pure task turn, and a model may call what was not declared to it.  What holds in
  every turn, streamed or not, is to rename a call in the answer of the model to one of ours, with the same id, for
  which a stand-in waits among the request's tools.
* A plugin that *returns* a response keeps the agent's own callback from being called: the answer is changed in place.
"""

from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from typing import Any, Final

from byline.grants import Grant, Inventory, NotCoveredError, Opaque, Resource, held
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.loop_agent import LoopAgent
from google.adk.agents.parallel_agent import ParallelAgent
from google.adk.agents.sequential_agent import SequentialAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.workflow import BaseNode, FunctionNode, JoinNode

from ._client_tools import ClientTools, is_client_tool
from ._identity import Kind
from ._observer import WATCH, Observer

__all__ = ["GRANT", "Gate", "guard_runs", "inventory", "is_the_parents"]

GRANT: Final[ContextVar[Grant | None]] = ContextVar("byline_adk_grant", default=None)
"""The grant of the run in this context."""

_TOOLS: Final[ContextVar[Mapping[str, Any] | None]] = ContextVar("byline_adk_tools", default=None)

_REFUSED: Final = "byline_refused"
_OWN_WAYS: Final = frozenset({_REFUSED, "set_model_response", "finish_task"})
"""Calls that are ADK's or our own way of speaking and use nothing."""

_DEPTH: Final = 8

_SHELLS: Final = (SequentialAgent, ParallelAgent, LoopAgent)
"""Agents that use nothing but their sub-agents."""


def inventory(runner: Runner) -> Inventory:
    """Return what a run uses: the root agent's model and tools, its direct subagents, and the app's plugins.

    What a subagent uses inside stands in `inside`.
    """
    seen = _look(runner.agent, ())
    plugins = {
        Resource("middleware", plugin.name)
        for plugin in runner.plugin_manager.plugins
        if not isinstance(plugin, Observer | ClientTools | Gate) and not plugin.name.startswith("byline_")
    }
    return Inventory(seen.resources | plugins, seen.opaque, seen.inside)


def _look(root: Any, above: tuple[int, ...]) -> Inventory:
    resources: set[Resource] = set()
    opaque: list[Opaque] = []
    agents: list[Any] = list(getattr(root, "sub_agents", None) or ())
    for node in getattr(getattr(root, "graph", None), "nodes", None) or ():
        agents += _node(node, resources, opaque)
    if hasattr(root, "canonical_model"):
        resources.add(Resource("model", str(root.canonical_model.model)))
    for tool in getattr(root, "tools", None) or ():
        agents += _tool(tool, resources, opaque)
    resources.update(Resource("subagent", str(one.name)) for one in agents)
    line = (*above, id(root))
    if not above and not _is_open(root):
        opaque.append(Opaque(str(root.name), f"a {type(root).__name__} may use anything"))
    inside: dict[str, Inventory] = {}
    hidden = {str(one.name) for one in agents if not _is_open(one)}
    for one in {id(one): one for one in agents}.values():
        if (name := str(one.name)) not in hidden:  # one below itself is looked at where it first stands
            inside[name] = inside.get(name, Inventory()) | (
                Inventory() if id(one) in line else _look(one, line)
            )
    return Inventory(frozenset(resources), tuple(opaque), inside)


def _is_open(one: Any) -> bool:
    """Return whether all that an agent or a workflow uses can be read off it; an app's own kind may do anything."""
    return hasattr(one, "canonical_model") or hasattr(one, "graph") or type(one) in _SHELLS


def _node(node: Any, resources: set[Resource], opaque: list[Opaque]) -> list[Any]:
    """Look at a workflow's node: a function or a tool is a tool, whatever else works is a subagent."""
    while isinstance(inner := getattr(node, "_node", None), BaseNode):
        node = inner  # a parallel worker, which says nowhere in public what it runs for each item
    name = str(getattr(node, "name", None) or "__")
    if name.startswith("__") or isinstance(node, JoinNode):
        return []
    if (tool := getattr(node, "tool", None)) is not None:
        return _tool(tool, resources, opaque)
    if isinstance(node, FunctionNode):
        return _tool(node, resources, opaque)
    return [node]


def _tool(tool: Any, resources: set[Resource], opaque: list[Opaque]) -> list[Any]:
    """Look at a tool; returns the agent it leads to."""
    name = str(getattr(tool, "name", None) or getattr(tool, "__name__", None) or type(tool).__name__)
    if isinstance(tool, BaseToolset):
        opaque.append(Opaque(type(tool).__name__, "what is in a toolset is known when it is asked"))
        return []
    if (agent := getattr(tool, "agent", None)) is not None:
        return [agent]
    resources.add(Resource("tool", name))
    found = list(_reach([getattr(tool, "func", None) or getattr(tool, "_func", tool)]))
    agents = sorted(
        {str(getattr(one, "name", None) or one.agent.name) for one in found if not isinstance(one, BaseLlm)}
    )
    models = sorted({str(one.model) for one in found if isinstance(one, BaseLlm)})
    if found:
        parts = [*(f"agent {agent!r}" for agent in agents), *(f"model {model!r}" for model in models)]
        opaque.append(Opaque(name, f"the tool holds {', '.join(parts)}"))
    return []


def _reach(roots: Iterable[Any]) -> Iterable[Any]:
    seen: set[int] = set()
    waiting = [(root, 0) for root in roots]
    while waiting:
        one, depth = waiting.pop()
        if one is None or id(one) in seen or depth > _DEPTH:
            continue
        seen.add(id(one))
        if isinstance(one, BaseAgent | BaseLlm | Runner):
            yield one
        else:
            waiting += ((part, depth + 1) for part in held(one) or ())


class _Refused(BaseTool):  # type: ignore[misc,unused-ignore]
    """Answers a call that is not made."""

    def __init__(self) -> None:
        super().__init__(name=_REFUSED, description="Answers what a run may not call.")

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        """Return why."""
        return {"error": str(args.get("why"))}


class _Held(LlmRequest):  # type: ignore[misc,unused-ignore]
    """A request whose model stays a granted one: the agent's own callbacks may change it after every plugin."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "model":
            _require(value)
        super().__setattr__(name, value)


def _require(model: Any) -> None:
    grant = GRANT.get()
    needed = Resource("model", str(model))
    if grant is not None and needed not in grant.resources:
        raise NotCoveredError(f"model {model!r} is not among what was granted; it was not asked", [needed])


class Gate(BasePlugin):  # type: ignore[misc,unused-ignore]
    """Holds the parent agent of a run to its grant; there after a run has needed one, and idle in others."""

    def __init__(self) -> None:
        super().__init__(name="byline_gate")

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        """Stop a model that is not covered before its request; let the stand-in wait among the tools."""
        grant = GRANT.get()
        if grant is None or not is_the_parents(callback_context):
            return
        _require(llm_request.model)
        object.__setattr__(llm_request, "__class__", _Held)
        llm_request.tools_dict[_REFUSED] = _Refused()
        _TOOLS.set(llm_request.tools_dict)

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
        """Rename every call that is not covered to the stand-in's."""
        grant = GRANT.get()
        if grant is None or llm_response.content is None or not is_the_parents(callback_context):
            return
        for part in llm_response.content.parts or ():
            call = part.function_call
            if call is None or call.name is None:
                continue
            needed = _needed(call.name, call.args or {})
            if needed is not None and needed not in grant.resources:
                call.args = {"call": call.name, "why": _why(needed)}
                call.name = _REFUSED

    async def before_tool_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any
    ) -> dict[str, Any] | None:
        """Answer for a tool that is not covered, where its call came after `after_model`: from a callback of the agent's."""
        grant = GRANT.get()
        if grant is None or not is_the_parents(tool_context):
            return None
        needed = _needed(tool.name, tool_args, tool)
        return None if needed is None or needed in grant.resources else {"error": _why(needed)}


def _why(needed: Resource) -> str:
    return f"{NotCoveredError.code}: this run may not use {needed}; it was not called"


def _needed(name: str, arguments: Mapping[str, Any], tool: Any = None) -> Resource | None:
    """Return what a call of the model uses, or `None` for one that uses nothing of the app's."""
    if name in _OWN_WAYS:
        return None
    if name == "transfer_to_agent":
        return Resource("subagent", str(arguments.get("agent_name")))
    tool = (_TOOLS.get() or {}).get(name) if tool is None else tool
    if is_client_tool(tool) or getattr(tool, "byline_brings_it", False):
        return None
    agent = getattr(tool, "agent", None)
    return Resource("tool", name) if agent is None else Resource("subagent", str(agent.name))


def is_the_parents(ctx: Any) -> bool:
    """Return whether the root agent is at work in a context; so it is taken where nobody can tell."""
    watch = WATCH.get()
    one = None if watch is None else watch.who(ctx)
    return one is None or one.kind is Kind.ROOT


def guard_runs(runner: Runner) -> None:
    """Put the gate behind the observer, if there is none: before any plugin that may answer for a model."""
    plugins = runner.plugin_manager.plugins
    if not any(type(plugin) is Gate for plugin in plugins):
        plugins.insert(1, Gate())
