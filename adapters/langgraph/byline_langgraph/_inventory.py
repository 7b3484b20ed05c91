"""What a graph will really use, read off its own objects.

Equal on langgraph 1.1.6 to 1.2.24 and langchain 1.2.15 to 1.5.2.  Tools, subgraphs and middleware are where they are
documented or nearly so; the models stand in closures only.  So everything that a node's function can reach is looked
through: closure cells, the globals it names, partials, bound methods, steps and branches of runnables, plain
containers, and the attributes of middleware.  A model that a *tool* can reach, or an agent, is no resource that could
be named: the tool is opaque, and refused unless it is allowed.

What cannot be seen from here: an agent behind an object of the app's own, or in a `@task` of an `@entrypoint`.  The
gate stops those when they run (`_gate`).
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias, cast

from byline.grants import Inventory, Opaque, Resource, held
from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolNode
from langgraph.pregel import Pregel

from ._tree import DEFAULT_NAME

__all__ = ["Delegates", "inventory", "model_name", "own_graphs", "subagents"]

Delegates: TypeAlias = Callable[[BaseTool], Mapping[str, Any] | None]
"""Gives the subagents behind a delegation tool by their names, or `None` for an ordinary tool."""

_DEPTH: Final = 8
_DYNAMIC: Final = ("is_dynamic_model", "is_async_dynamic_model")


def inventory(
    graph: Pregel[Any, Any, Any, Any],
    *,
    transparent: frozenset[str] = frozenset(),
    delegates: Delegates = lambda _tool: None,
) -> Inventory:
    """Return what a run of `graph` uses: models, tools, middleware, skills and direct subagents.

    What a subagent uses inside is its own matter, and stands in `inside` as far as it can be seen.  `transparent`
    subgraphs are the agent itself.
    """
    return _Look(transparent, delegates).at(graph, ())


class _Look:
    """One look at a graph and the graphs in it."""

    def __init__(self, transparent: frozenset[str], delegates: Delegates) -> None:
        self._transparent: Final = transparent
        self._delegates: Final = delegates

    def at(self, graph: Pregel[Any, Any, Any, Any], above: tuple[int, ...]) -> Inventory:
        resources: set[Resource] = set()
        opaque: list[Opaque] = []
        agents: list[tuple[str, Any]] = []
        for own in own_graphs(graph, self._transparent):
            for name, node in own.nodes.items():
                agents += subagents(own, name, self._transparent)
                if isinstance(node.bound, ToolNode):
                    for tool in node.bound.tools_by_name.values():
                        agents += self._tool(tool, resources, opaque)
                elif not isinstance(node.bound, Pregel) and not node.subgraphs:
                    agents += self._function(name, node.bound, resources, opaque)
        resources.update(Resource("subagent", name) for name, _ in agents)
        line = (*above, id(graph))
        inside: dict[str, Inventory] = {}
        for name, agent in agents:
            if isinstance(
                agent, Pregel
            ):  # one that comes again below itself is looked at where it first stands
                again = id(agent) in line
                inside[name] = inside.get(name, Inventory()) | (
                    Inventory() if again else self.at(agent, line)
                )
        hidden = {name for name, agent in agents if not isinstance(agent, Pregel)}
        seen = {name: one for name, one in inside.items() if name not in hidden}
        return Inventory(frozenset(resources), tuple(dict.fromkeys(opaque)), seen)

    def _tool(self, tool: BaseTool, resources: set[Resource], opaque: list[Opaque]) -> list[tuple[str, Any]]:
        """Look at a tool; returns the agents behind it."""
        resources.add(Resource("tool", tool.name))
        if (team := self._delegates(tool)) is not None:
            return [(str(name), _graph(agent)) for name, agent in team.items()]
        functions = [getattr(tool, name, None) for name in ("func", "coroutine")]
        hidden = list(_reach(functions if any(functions) else [type(tool), vars(tool)]))
        agents = [(_named(one, tool.name), one) for one in hidden if isinstance(one, Pregel)]
        models = sorted({model_name(one) for one in hidden if isinstance(one, BaseLanguageModel)})
        if agents or models:
            held_ = [
                *(f"agent {name!r}" for name in sorted({name for name, _ in agents})),
                *(f"model {name!r}" for name in models),
            ]
            opaque.append(Opaque(tool.name, f"the tool holds {', '.join(held_)}"))
        return agents  # allowed by the tool's name, they are still held to the grant

    def _function(
        self, name: str, bound: Any, resources: set[Resource], opaque: list[Opaque]
    ) -> list[tuple[str, Any]]:
        """Look at a node of the app's own, the model node of an agent, or a hook; returns the agents that it calls."""
        agents: list[tuple[str, Any]] = []
        for one in _reach([bound]):
            if isinstance(one, Pregel):
                agents.append((_named(one, name), one))
            elif isinstance(one, BaseLanguageModel):
                resources.add(Resource("model", model_name(one)))
            elif isinstance(one, BaseTool):
                agents += self._tool(one, resources, opaque)
            elif _is_middleware(one):
                resources.add(Resource("middleware", str(one.name)))
                resources.update(
                    Resource("skill", str(source)) for source in getattr(one, "sources", ()) or ()
                )
            elif isinstance(one, _Dynamic):
                opaque.append(Opaque(name, "its model is chosen at run time"))
            elif isinstance(one, _Provided):
                resources.add(Resource("tool", one.name))
        return agents


def own_graphs(
    graph: Pregel[Any, Any, Any, Any], transparent: frozenset[str]
) -> Iterator[Pregel[Any, Any, Any, Any]]:
    """Yield `graph` and the transparent graphs in it: what they do is done by the one agent."""
    yield graph
    for name, node in graph.nodes.items():
        if isinstance(node.bound, Pregel) and _named(node.bound, name) in transparent:
            yield from own_graphs(node.bound, transparent)


def subagents(
    graph: Pregel[Any, Any, Any, Any], name: str, transparent: frozenset[str]
) -> list[tuple[str, Any]]:
    """Return the agents that run as node `name` of `graph`, with their names."""
    node = graph.nodes[name]
    inside = [node.bound] if isinstance(node.bound, Pregel) else list(node.subgraphs or ())
    named = [(_named(one, name), one) for one in inside if isinstance(one, Pregel)]
    return [(one, agent) for one, agent in named if one not in transparent]


def model_name(model: BaseLanguageModel[Any]) -> str:
    """Return what a model is called: the provider's name of it, else that of its class."""
    try:
        named = cast("Any", model)._get_ls_params().get("ls_model_name")  # noqa: SLF001 - what its own runs carry as metadata
    except Exception:  # other people's code, and no reason not to run
        named = None
    return str(named or type(model).__name__)


def _named(graph: Pregel[Any, Any, Any, Any], node: str) -> str:
    return graph.name if graph.name and graph.name != DEFAULT_NAME else node


def _graph(agent: Any) -> Any:
    """Return the graph of an agent that was given a configuration, which wraps it."""
    while not isinstance(agent, Pregel) and isinstance(getattr(agent, "bound", None), Runnable):
        agent = agent.bound
    return agent


class _Dynamic:
    """Found: a model that is chosen at run time."""


class _Provided:
    """Found: a tool that the provider of the model brings, which is a mapping and no object."""

    def __init__(self, name: str) -> None:
        self.name: Final = name


def _reach(roots: Iterable[Any]) -> Iterator[Any]:
    """Yield every model, tool, graph and middleware that can be reached from `roots`, and what is worth knowing of them."""
    seen: set[int] = set()
    waiting = [(root, 0) for root in roots]
    while waiting:
        one, depth = waiting.pop()
        if one is None or id(one) in seen or depth > _DEPTH:
            continue
        seen.add(id(one))
        if isinstance(one, BaseLanguageModel | BaseTool | Pregel):
            yield one  # what is inside is its own matter, and tools answer for themselves
            continue
        if _is_middleware(one):
            yield one
        if inspect.isfunction(one):
            variables = inspect.getclosurevars(one)
            if any(variables.nonlocals.get(flag) for flag in _DYNAMIC):
                yield _Dynamic()
            for tool in variables.nonlocals.get("default_tools") or ():
                if isinstance(tool, Mapping):
                    yield _Provided(str(tool.get("name") or tool.get("type") or "?"))
        waiting += ((inner, depth + 1) for inner in _inside(one))


def _inside(one: Any) -> Iterable[Any]:
    if isinstance(one, ToolNode):
        return []  # a node of its own, whose tools are looked at there
    if isinstance(one, type):
        return [value for value in vars(one).values() if inspect.isfunction(value)] if _is_tool(one) else []
    if (parts := held(one)) is not None:
        return parts
    if isinstance(one, Runnable) or _is_middleware(one):
        return [value for name, value in vars(one).items() if name != "tools"]
    return []


def _is_tool(one: type) -> bool:
    return issubclass(one, BaseTool) and not one.__module__.startswith("langchain_core.")


def _is_middleware(one: Any) -> bool:
    return any(
        base.__name__ == "AgentMiddleware" and base.__module__.startswith("langchain.")
        for base in type(one).__mro__
    )
