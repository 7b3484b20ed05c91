"""A copy of a compiled graph whose tool nodes and model nodes pass by us.  The graph itself stays as it is.

* `Pregel.copy` and `PregelNode.copy` replace a node; the channels, the checkpointer and the rest are shared.
* `copy.copy` of a `ToolNode` keeps its functions bound to the original, so it is built anew with what it was built
  with, and its own wrappers inside of ours.
* A node is wrapped in a plain `Runnable`, which traces nothing: the tree of callbacks stays as it was.
"""

import asyncio
import copy
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol, TypeAlias

from langchain_core.messages import ToolMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.prebuilt import ToolNode
from langgraph.pregel import Pregel

from ._inventory import own_graphs

__all__ = ["Call", "Interceptor", "ModelNode", "rewire"]

Call: TypeAlias = Any  # langgraph's ToolCallRequest, which 1.1 keeps in another module
Answer: TypeAlias = Any  # a ToolMessage or a Command

MODEL_NODES: Final = ("model", "agent")
"""What the model node is called by `create_agent`, and by `create_react_agent`."""


class Interceptor(Protocol):
    """Stands around every tool call of an agent; asked in a worker thread, because it may ask a store."""

    def enter(self, call: Call) -> "Call | ToolMessage":
        """Return the call to make, or the answer that stands in for it."""

    def failed(self, call: Call, fault: Exception) -> ToolMessage | None:
        """Return the answer that stands in for a call that raised, or `None` to let it raise."""

    def left(self, call: Call, answer: Answer) -> None:
        """Take note of an answer."""


ModelNode: TypeAlias = Callable[[Any], tuple[Any, Callable[[Any], Any]]]
"""Takes the state that a model node is given; returns the state to give it, and what to make of its output."""


def rewire(
    graph: Pregel[Any, Any, Any, Any],
    interceptors: Sequence[Interceptor],
    model_nodes: Sequence[ModelNode],
    transparent: frozenset[str],
    answered: Callable[[ToolMessage], object],
) -> Pregel[Any, Any, Any, Any]:
    """Return a copy of `graph`, and of the transparent graphs in it, with everybody in their places.

    `answered` hears of every answer that stands in for a call: no tool run tells of it, and a hand-off beside it keeps
    the node from returning it.
    """
    mine = {id(own) for own in own_graphs(graph, transparent)}
    nodes = dict(graph.nodes)
    for name, node in graph.nodes.items():
        bound = node.bound
        if isinstance(bound, ToolNode):
            nodes[name] = node.copy({"bound": _tool_node(bound, interceptors, answered)})
        elif isinstance(bound, Pregel) and id(bound) in mine:
            inner = rewire(bound, interceptors, model_nodes, transparent, answered)
            subgraphs = [inner if one is bound else one for one in node.subgraphs or ()]
            nodes[name] = node.copy({"bound": inner, "subgraphs": subgraphs})
        elif model_nodes and name in MODEL_NODES and not node.subgraphs:
            nodes[name] = node.copy({"bound": _Around(bound, model_nodes)})
    return graph.copy({"nodes": nodes})


def _tool_node(
    node: ToolNode, interceptors: Sequence[Interceptor], answered: Callable[[ToolMessage], object]
) -> ToolNode:
    sync: Any = node._wrap_tool_call  # noqa: SLF001
    native: Any = node._awrap_tool_call  # noqa: SLF001

    def told(answer: ToolMessage) -> ToolMessage:
        answered(answer)
        return answer

    def wrap(call: Call, execute: Callable[[Call], Answer]) -> Answer:
        call = _enter(interceptors, call)
        if isinstance(call, ToolMessage):
            return told(call)
        try:
            answer = execute(call) if sync is None else sync(call, execute)
        except Exception as fault:
            return told(_failed(interceptors, call, fault))
        return _left(interceptors, call, answer)

    async def awrap(call: Call, execute: Callable[[Call], Awaitable[Answer]]) -> Answer:
        call = await asyncio.to_thread(_enter, interceptors, call)
        if isinstance(call, ToolMessage):
            return told(call)
        try:
            answer = await (execute(call) if native is None else native(call, execute))
        except Exception as fault:
            return told(_failed(interceptors, call, fault))
        return await asyncio.to_thread(_left, interceptors, call, answer)

    # Where the app has a sync wrapper only, LangGraph calls that one in async runs too, with a sync `execute`.
    both = {"wrap_tool_call": wrap, "awrap_tool_call": None if sync is not None and native is None else awrap}
    if type(node) is ToolNode:
        return ToolNode(
            list(node.tools_by_name.values()),
            name=node.name or "tools",
            tags=None if node.tags is None else list(node.tags),
            handle_tool_errors=node._handle_tool_errors,  # noqa: SLF001
            messages_key=node._messages_key,  # noqa: SLF001
            **both,  # type: ignore[arg-type]
        )
    clone: Any = copy.copy(node)  # an app's own kind, whose constructor we do not know
    clone._wrap_tool_call, clone._awrap_tool_call = both.values()  # noqa: SLF001
    clone.func, clone.afunc = clone._func, clone._afunc  # noqa: SLF001 - these were bound to the original
    return clone  # type: ignore[no-any-return]


def _enter(interceptors: Sequence[Interceptor], call: Call) -> Call | ToolMessage:
    for one in interceptors:
        call = one.enter(call)
        if isinstance(call, ToolMessage):
            return call
    return call


def _failed(interceptors: Sequence[Interceptor], call: Call, fault: Exception) -> ToolMessage:
    for one in interceptors:
        if (answer := one.failed(call, fault)) is not None:
            return answer
    raise fault


def _left(interceptors: Sequence[Interceptor], call: Call, answer: Answer) -> Answer:
    for one in interceptors:
        one.left(call, answer)
    return answer


class _Around(Runnable[Any, Any]):
    """A model node that is given another state than the graph holds."""

    def __init__(self, bound: Any, model_nodes: Sequence[ModelNode]) -> None:
        self._bound: Final = bound
        self._model_nodes: Final = model_nodes

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002
        given, afterwards = self._before(input)
        return self._after(self._bound.invoke(given, config, **kwargs), afterwards)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002
        given, afterwards = await asyncio.to_thread(self._before, input)
        return self._after(await self._bound.ainvoke(given, config, **kwargs), afterwards)

    def _before(self, state: Any) -> tuple[Any, list[Callable[[Any], Any]]]:
        afterwards = []
        for one in self._model_nodes:
            state, after = one(state)
            afterwards.append(after)
        return state, afterwards

    def _after(self, output: Any, afterwards: Sequence[Callable[[Any], Any]]) -> Any:
        for after in reversed(afterwards):
            output = after(output)
        return output
