"""A walk over the graphs that a compiled graph shows, and what the observer has to know of them beforehand."""

from collections.abc import Iterator
from typing import Any, Final

__all__ = ["handoff_tools", "remote_nodes"]

_REMOTE: Final = (
    "langgraph.pregel.remote"  # not imported: it brings an HTTP client, and few have a remote graph
)
_DESTINATION: Final = "__handoff_destination"  # langgraph-supervisor and langgraph-swarm


def remote_nodes(graph: Any) -> dict[str, str]:
    """Return the nodes that are remote graphs, as their path of node names (`outer|inner`), with the graphs' names."""
    return {
        path: str(getattr(found, "name", None) or path.rpartition("|")[2])
        for path, found in _walk(graph, "", (id(graph),))
        if type(found).__module__ == _REMOTE
    }


def handoff_tools(graph: Any) -> dict[str, str]:
    """Return the tools that hand control to a node, by their names, with the node's name."""
    destinations: dict[str, str] = {}
    for _, found in [("", graph), *_walk(graph, "", (id(graph),))]:
        for node in getattr(found, "nodes", {}).values():
            for name, tool in getattr(getattr(node, "bound", None), "tools_by_name", {}).items():
                target = (getattr(tool, "metadata", None) or {}).get(_DESTINATION)
                if target:
                    destinations[name] = str(target)
    return destinations


def _walk(graph: Any, path: str, above: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    # Not by LangGraph's own recursion, which never ends in a graph that calls itself.
    for node, found in graph.get_subgraphs() if hasattr(graph, "channels") else ():
        yield path + node, found
        if id(found) not in above:
            yield from _walk(found, f"{path}{node}|", (*above, id(found)))
