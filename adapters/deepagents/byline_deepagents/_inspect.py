"""The team behind a deep agent, read off its graph: `byline inspect` for deepagents."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.metadata import version
from typing import Any, Final

from byline.delegation import MODES
from byline.plain import plain
from byline.team_view import AgentView, Fact, TeamView, opaque
from byline_langgraph import _inspect as langgraph
from byline_langgraph._private import MissingError

from . import _private
from ._session import is_deep_agent

__all__ = ["LIMITS", "describe"]

LIMITS: Final = (
    *langgraph.LIMITS,
    "the names of skills, which are read from their sources when a run begins",
    "what an async subagent is made of: it runs on a server",
)
"""What stays out of sight, whatever the version."""

_FORK_NOTE: Final = "(inherits your full conversation"
"""What the description of `task` says of a fork, unless it was replaced."""


def describe(graph: Any) -> TeamView:
    """Return the team behind `graph`; never runs it."""
    inspector = Inspector()
    root = inspector.agent(graph, graph.name)
    if not any(agent.kind == "deep agent" or agent.via == "task" for agent, _ in root.walk()):
        return langgraph.describe(graph)
    return TeamView("deepagents", version("deepagents"), root, tuple(dict.fromkeys(inspector.gaps)), LIMITS)


class Inspector(langgraph.Inspector):
    """LangGraph's, and on top of it subagents, skills and permissions."""

    def __init__(self) -> None:
        super().__init__()
        self._forks: list[Any] = []  # their `task` tool only mirrors their parent's, and refuses

    def agent(self, graph: Any, name: str, *, kind: str | None = None, **more: Any) -> AgentView:
        """Return the view of one graph and of what it delegates to."""
        return super().agent(
            graph, name, kind=kind or ("deep agent" if is_deep_agent(graph) else None), **more
        )

    def facts(self, graph: Any) -> dict[str, Fact]:
        """Return what is known of the agent that `graph` is."""
        facts = super().facts(graph)
        if "model" not in facts:
            return facts
        for middleware in self.middleware(graph):
            sources = getattr(middleware, "sources", None)
            if type(middleware).__name__ == "SkillsMiddleware" and sources is not None:
                facts["skills"] = Fact(
                    plain(sources), "public", "SkillsMiddleware.sources", "sources, not names"
                )
            if type(middleware).__name__ == "FilesystemMiddleware":
                permissions = self._read(_private.PERMISSIONS, middleware)
                if permissions:
                    facts["permissions"] = Fact(plain(permissions), "private", _private.PERMISSIONS)
        return facts

    def members(self, graph: Any) -> Iterator[AgentView]:
        """Yield subagents, async ones, then what any LangGraph agent may delegate to."""
        tools = self.tools(graph)
        if "task" in tools and not any(graph is fork for fork in self._forks):
            yield from self._subagents(tools["task"])
        if "start_async_task" in tools:
            yield from self._async_subagents(tools["start_async_task"])
        yield from super().members(graph)

    def _subagents(self, task: Any) -> Iterator[AgentView]:
        graphs = self._read(_private.GRAPHS, task)
        if not isinstance(graphs, Mapping):
            return  # an ordinary tool of this name
        specs = self._read(_private.SPECS, task)
        for name, graph in graphs.items():
            spec: Mapping[str, Any] = (specs or {}).get(name, {})
            compiled = "runnable" in spec
            forked = spec.get("mode") == "fork" if spec else _is_noted_as_fork(task, name)
            contract = MODES["deepagents", "fork" if forked else "isolated"]
            if forked and compiled:
                contract = replace(contract, leaf=None)
            if forked and not compiled:
                self._forks.append(graph)
            yield self.agent(
                graph,
                str(name),
                kind="compiled subagent" if compiled else "subagent",
                via="task",
                contract=contract.metadata(),
                description=spec.get("description"),
            )

    def _async_subagents(self, start: Any) -> Iterator[AgentView]:
        for name, spec in (self._read(_private.AGENT_MAP, start) or {}).items():
            contract: dict[str, Any] = {"framework": "deepagents", "mode": "async", "concurrency": "parallel"}
            if spec.get("mode") in ("fork", "isolated"):
                contract["context"] = spec["mode"]
            note = opaque(
                f"graph {spec.get('graph_id')!r} at {spec.get('url') or 'the same server'} runs by itself"
            )
            yield AgentView(
                str(name),
                "async subagent",
                "start_async_task",
                spec.get("description"),
                {"nodes": note},
                contract,
            )

    def _read(self, path: str, start: Any) -> Any:
        try:
            return _private.read(path, start)
        except MissingError:
            self.gaps.append(path)
            return None


def _is_noted_as_fork(task: Any, name: str) -> bool:
    """Return what the description of `task` says of one subagent, where its spec cannot be read."""
    lines = str(getattr(task, "description", "")).splitlines()
    return any(line.startswith(f"- {name}:") and _FORK_NOTE in line for line in lines)
