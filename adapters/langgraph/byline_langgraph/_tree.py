"""The tree of LangChain runs, and what a place in it says: whose it is, what called it, what it is named.

A scope is what runs inside one graph.  Runs are LangChain's: graphs, their steps, tools.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from byline import signals as s

from ._content import invocation_id

__all__ = [
    "DEFAULT_NAME",
    "STEP",
    "Run",
    "Scope",
    "between",
    "is_pushed",
    "is_step",
    "name_of",
    "owner_of",
    "stable_id",
    "up",
]

DEFAULT_NAME: Final = "LangGraph"
"""What LangGraph calls a graph that was given no name."""

STEP: Final = "graph:step:"
"""How the tag begins that LangGraph gives to the steps of a graph."""

_PUSHED: Final = ("__pregel_push",)


class Scope:
    """What runs inside one graph: an invocation, the parent agent, or something transparent inside one of them."""

    __slots__ = ("_handed", "_handoffs", "asked", "id", "name", "ns", "outer", "owner", "transparent")

    def __init__(
        self, outer: "Scope | None", owner: str | None, name: str, ns: str, *, transparent: bool = False
    ) -> None:
        self.outer: Final = outer
        self.owner: Final = owner
        self.name: Final = name  # the agent's
        self.ns: Final = ns
        self.transparent: Final = transparent
        self.id = ""  # of an invocation: the same in every run
        self.asked = False  # whether one of its steps stopped with a question, which stops the graph
        self._handoffs: dict[str, s.CallRef] = {}  # by the node that control was handed to
        self._handed: dict[str, s.CallRef] = {}  # by the task that took it, for its retries

    @property
    def invocation(self) -> str | None:
        """The owner that begins and ends with this graph, if it is an invocation's own."""
        return None if self.transparent else self.owner

    def hand_over(self, node: str, call: s.CallRef) -> None:
        """Note that `call` handed control to `node` of this graph."""
        self._handoffs[node] = call

    def handed_to(self, node: str | None, task: str) -> s.CallRef | None:
        """Return the call that handed control to `node`, for the task that runs it now."""
        if node in self._handoffs:
            self._handed[task] = self._handoffs.pop(node)
        return self._handed.get(task)

    def enclosing(self) -> Iterator["Scope"]:
        """Yield the scopes around this one, innermost first."""
        scope = self.outer
        while scope is not None:
            yield scope
            scope = scope.outer


class Run:
    """One LangChain run while it is open."""

    __slots__ = (
        "agent_name",
        "call",
        "id",
        "inputs",
        "inside",
        "is_graph",
        "is_step",
        "is_tool",
        "name",
        "node",
        "ns",
        "parent",
        "tools",
        "worked",
    )

    def __init__(
        self, run_id: UUID, parent: "Run | None", name: str, metadata: Mapping[str, Any], inputs: Any
    ) -> None:
        self.id: Final = run_id
        self.parent: Final = parent
        self.name: Final = name
        self.agent_name: Final[str | None] = metadata.get("lc_agent_name")
        self.ns: Final[str] = metadata.get("langgraph_checkpoint_ns") or ""
        self.inside: Scope | None = None if parent is None else parent.inside
        self.is_graph = False
        self.is_step = False
        self.is_tool = False
        self.node: str | None = None  # set for a step of a graph
        self.call: str | None = None  # the tool call id, for a tool run
        self.inputs: Any = inputs
        self.tools: list[Run] = []  # the open tool runs that it began itself
        self.worked = False  # whether a model or a graph ran inside

    @property
    def opened(self) -> Scope | None:
        """What runs inside it, if it is a graph."""
        return self.inside if self.is_graph else None


def up(run: Run | None) -> Iterator[Run]:
    """Yield a run and those around it, innermost first."""
    while run is not None:
        yield run
        run = run.parent


def is_step(tags: Sequence[str] | None) -> bool:
    """Return whether a run with these tags is a step of a graph."""
    for tag in tags or ():  # noqa: SIM110 - asked of every run, and a generator costs three times as much
        if tag.startswith(STEP):
            return True
    return False


def is_pushed(run: Run, parent: Run, metadata: Mapping[str, Any]) -> bool:
    """Return whether this is a `@task` of the functional API.

    It runs inside the node that called it and has no step tag, but a task namespace of its own.
    """
    return run.ns != parent.ns and metadata.get("langgraph_triggers") == _PUSHED and parent.inside is not None


def owner_of(run: Run) -> str | None:
    """Return the invocation that a run belongs to; `None` for the parent agent."""
    return None if run.inside is None else run.inside.owner


def between(graph: Run) -> tuple[Run | None, str | None]:
    """Return the tool run, and the node, that stand between a graph and the graph that encloses it.

    A subagent that was called in a thread of the tool's own, with the tool's config handed over, has the node as
    its parent; when just one tool is at work in that node, it is the one.
    """
    node: Run | None = None
    tool: Run | None = None
    for run in up(graph.parent):
        if run.is_graph:
            break
        if tool is None and run.call is not None:
            tool = run
        if run.node is not None:
            node = run
            break
    if tool is None and node is not None and len(node.tools) == 1:
        tool = node.tools[0]
    return tool, None if node is None else node.node


def name_of(graph: Run, tool: Run | None, node: str | None) -> str:
    """Return the agent's own name; where it has none, that of the tool that called it, else the node's.

    `lc_agent_name` is inherited by whatever runs inside an agent, so it counts only where it changes.
    """
    inherited = None if graph.parent is None else graph.parent.agent_name
    for own in (graph.agent_name if graph.agent_name != inherited else None, graph.name):
        if own and own != DEFAULT_NAME:
            return own
    if tool is not None and tool.name:
        return tool.name
    return node or graph.name


def stable_id(name: str, task_ns: str, tool: Run | None, own_ns: str) -> str:
    """Return the `subagentRunId`: the same when the invocation is resumed, another when it is retried.

    Made of the enclosing task's namespace, the spawning call, and the numeric tail of the graph's own namespace:
    LangGraph's count of the graphs that one task has started.
    """
    tail = own_ns.rpartition("|")[2]
    ordinal = tail if tail.isdigit() else ""
    call = "" if tool is None else tool.call or ""
    return invocation_id(name, task_ns, call, ordinal)
