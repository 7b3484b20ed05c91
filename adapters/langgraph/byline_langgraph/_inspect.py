"""The team behind a compiled graph, read off the graph: `byline inspect` for LangGraph."""

from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from typing import Any, Final

from byline.delegation import MODES
from byline.plain import plain
from byline.team_view import AgentView, Fact, TeamView, opaque
from langgraph.pregel import Pregel

from . import _private

__all__ = ["LIMITS", "Inspector", "describe", "model_name"]

LIMITS: Final = (
    "an agent that a tool or a node reaches through an object, a registry or an import inside a function",
    "an agent called in a @task of an @entrypoint",
    "a model that middleware puts in the place of the agent's, and text that it adds to the prompt",
    "middleware that only adds tools or state, and the order of middleware",
)
"""What stays out of sight, whatever the version."""

_HOOKS: Final = ("before_agent", "before_model", "after_model", "after_agent")


def describe(graph: Pregel[Any, Any, Any, Any]) -> TeamView:
    """Return the team behind `graph`; never runs it."""
    inspector = Inspector()
    root = inspector.agent(graph, graph.name)
    return TeamView("langgraph", version("langgraph"), root, tuple(dict.fromkeys(inspector.gaps)), LIMITS)


class Inspector:
    """Reads agents off graphs, once each, and keeps what was missing."""

    def __init__(self) -> None:
        self.gaps: list[str] = []
        self._on_the_way: list[Any] = []

    def agent(
        self,
        graph: Any,
        name: str,
        *,
        kind: str | None = None,
        via: str | None = None,
        contract: Mapping[str, Any] | None = None,
        description: str | None = None,
    ) -> AgentView:
        """Return the view of one graph and of what it delegates to."""
        contract = contract or {}
        if not isinstance(graph, Pregel):
            reason = f"a {type(graph).__name__} is no graph that can be looked into"
            return AgentView(name, kind or "runnable", via, description, {"nodes": opaque(reason)}, contract)
        if any(graph is other for other in self._on_the_way):
            note = opaque("it is further up in this tree: the team calls itself")
            return AgentView(name, kind or "graph", via, description, {"nodes": note}, contract)
        self._on_the_way.append(graph)
        try:
            facts = self.facts(graph)
            members = tuple(self.members(graph))
        finally:
            self._on_the_way.pop()
        kind = kind or ("agent" if "model" in facts else "graph")
        return AgentView(name, kind, via, description, facts, contract, members=members)

    # ---------------------------------------------------------------- facts

    def facts(self, graph: Pregel[Any, Any, Any, Any]) -> dict[str, Fact]:
        """Return what is known of the agent that `graph` is; a graph that is none has only nodes."""
        nodes = [name for name in graph.nodes if not name.startswith("__")]
        model_node = next((name for name in ("model", "agent") if self._is_model_node(graph, name)), None)
        if model_node is None:
            return {"nodes": Fact(nodes, "public", "nodes")}
        tools = self.tools(graph)
        facts = {
            "model": self._model(graph, model_node),
            "prompt": self._prompt(graph, model_node),
            "tools": self._tools(graph, tools, model_node),
            "middleware": self._middleware(graph, model_node),
        }
        if approvals := self._approvals(graph):
            facts["approvals"] = approvals
        targets = [where for tool in tools.values() if (where := _hands_over_to(tool))]
        if targets:
            facts["handoffs"] = Fact(targets, "public", 'tool.metadata["__handoff_destination"]')
        return facts

    def tools(self, graph: Pregel[Any, Any, Any, Any]) -> Mapping[str, Any]:
        """Return the tools that a graph's `tools` node runs, by name."""
        node = graph.nodes.get("tools")
        found: Mapping[str, Any] = getattr(None if node is None else node.bound, "tools_by_name", {})
        return found

    def middleware(self, graph: Pregel[Any, Any, Any, Any]) -> list[Any]:
        """Return the middleware instances that can be reached, each once, public places first."""
        found = [owner for _, owner in _hook_owners(graph)]
        for path in (
            'nodes["model"].bound.func: cell wrap_model_call_handler',
            'nodes["tools"].bound._wrap_tool_call',
        ):
            if path.split('"')[1] in graph.nodes and "agent" not in graph.nodes:
                found += _private.instances_in(self.read(path, graph))
        unique: list[Any] = []
        for one in found:
            if not any(one is other for other in unique):
                unique.append(one)
        return unique

    def read(self, path: str, graph: Pregel[Any, Any, Any, Any], default: Any = None) -> Any:
        """Return what stands at a private path, or `default`, and keep that it is missing."""
        try:
            return _private.read(path, graph)
        except _private.MissingError:
            self.gaps.append(path)
            return default

    def _is_model_node(self, graph: Pregel[Any, Any, Any, Any], name: str) -> bool:
        node = graph.nodes.get(name)
        bound = None if node is None else node.bound
        function = getattr(bound, "func", None) or getattr(bound, "afunc", None)
        known = _private.variables(function)
        return "wrap_model_call_handler" in known or "static_model" in known

    def _model(self, graph: Pregel[Any, Any, Any, Any], node: str) -> Fact:
        cell = "model" if node == "model" else "static_model"
        path = f'nodes["{node}"].bound.func: cell {cell}'
        model = self.read(path, graph)
        if model is None:
            return opaque("the model is chosen anew for each call", path)
        return Fact(model_name(model), "private", path)

    def _prompt(self, graph: Pregel[Any, Any, Any, Any], node: str) -> Fact:
        if node != "model":
            return opaque("create_react_agent folds it into the model")
        path = 'nodes["model"].bound.func: cell system_message'
        message = self.read(path, graph, _UNREAD)
        if message is _UNREAD:
            return opaque("the path is missing", path)
        reason = "as the agent was built; middleware may add to it"
        return Fact("" if message is None else message.text, "private", path, reason)

    def _tools(self, graph: Pregel[Any, Any, Any, Any], known: Mapping[str, Any], node: str) -> Fact:
        if node != "model":
            return Fact(list(known), "public", 'nodes["tools"].bound.tools_by_name')
        path = 'nodes["model"].bound.func: cell default_tools'
        offered = self.read(path, graph)
        if not isinstance(offered, list):
            return Fact(
                list(known), "public", 'nodes["tools"].bound.tools_by_name', "without tools the provider runs"
            )
        return Fact([_tool_name(tool) for tool in offered], "private", path)

    def _middleware(self, graph: Pregel[Any, Any, Any, Any], node: str) -> Fact:
        names = sorted({name for name, _ in _hook_owners(graph)})
        if node != "model":
            return Fact(names, "public", "nodes")
        names = sorted({*names, *(_middleware_name(one) for one in self.middleware(graph))})
        path = 'nodes["model"].bound.func: cell wrap_model_call_handler'
        return Fact(
            names,
            "private",
            path,
            "a set: neither their order nor those with only tools or state can be read",
        )

    def _approvals(self, graph: Pregel[Any, Any, Any, Any]) -> Fact | None:
        for name, owner in _hook_owners(graph):
            asked = getattr(owner, "interrupt_on", None)
            if isinstance(asked, Mapping):
                told = {
                    str(tool): plain(config.get("allowed_decisions"))
                    if isinstance(config, Mapping)
                    else plain(config)
                    for tool, config in asked.items()
                }
                return Fact(told, "public", f'nodes["{name}.after_model"].bound.func.__self__.interrupt_on')
        return None

    # -------------------------------------------------------------- members

    def members(self, graph: Pregel[Any, Any, Any, Any]) -> Iterator[AgentView]:
        """Yield what a graph delegates to: its subgraph nodes, and the agents that its tools name."""
        subgraphs: dict[str, Any] = dict(graph.get_subgraphs())
        taken_over = {
            target
            for inner in (graph, *subgraphs.values())
            for tool in self.tools(inner).values()
            if (target := _hands_over_to(tool))
        }
        for name, inner in subgraphs.items():
            handed = name in taken_over
            if name == "supervisor" and any(map(_hands_over_to, self.tools(inner).values())):
                # What it does is done by the agent it is the head of.
                yield self.agent(inner, name, kind="supervisor", via="node supervisor")
                continue
            via = "hand-off" if handed else f"node {name}"
            contract = MODES["langgraph", "handoff" if handed else "subgraph"].metadata()
            if handed and "supervisor" in subgraphs:
                contract["returns"] = "automatic"
            own = name if inner.name in (None, "LangGraph") else str(inner.name)
            yield self.agent(inner, own, via=via, contract=contract)
        for name, tool in self.tools(graph).items():
            yield from self._behind(name, tool)

    def _behind(self, name: str, tool: Any) -> Iterator[AgentView]:
        seen: list[Any] = []
        for function in (getattr(tool, "func", None), getattr(tool, "coroutine", None)):
            for variable, inner in _private.agents_in(function) if function is not None else ():
                if not any(inner is other for other in seen):
                    seen.append(inner)
                    own = variable if inner.name in (None, "LangGraph") else str(inner.name)
                    yield self.agent(
                        inner, own, via=f"tool {name}", contract=MODES["langgraph", "tool"].metadata()
                    )


_UNREAD: Final = object()


def model_name(model: Any) -> str:
    """Return a model as `Class:name`, from its public attributes."""
    steps = getattr(model, "steps", None)
    model = steps[-1] if steps else model  # a prompt in front of it
    model = getattr(model, "bound", model)
    name = getattr(model, "model_name", None) or getattr(model, "model", None)
    kind = type(model).__name__
    return f"{kind}:{name}" if isinstance(name, str) else kind


def _hook_owners(graph: Pregel[Any, Any, Any, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the middleware that has a node of its own: its name, and the instance where it is a method's."""
    for node, spec in graph.nodes.items():
        name, _, hook = node.rpartition(".")
        if name and hook in _HOOKS:
            bound: Any = spec.bound
            function: Callable[..., Any] | None = getattr(bound, "func", None) or getattr(
                bound, "afunc", None
            )
            yield name, getattr(function, "__self__", None)


def _middleware_name(instance: Any) -> str:
    name = getattr(instance, "name", None)
    return name if isinstance(name, str) else type(instance).__name__


def _hands_over_to(tool: Any) -> str | None:
    target = (getattr(tool, "metadata", None) or {}).get("__handoff_destination")
    return target if isinstance(target, str) else None


def _tool_name(tool: Any) -> str:
    if isinstance(tool, Mapping):
        return str(tool.get("name") or tool.get("type") or (tool.get("function") or {}).get("name") or "")
    return str(getattr(tool, "name", type(tool).__name__))
