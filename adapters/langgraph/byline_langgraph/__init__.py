"""byline for LangGraph: existing graphs as sources of attributed AG-UI events."""

from typing import Any

__all__ = ["GraphStore", "lookup_tool"]


def __getattr__(name: str) -> Any:  # the plugin is loaded without LangGraph, too
    if name == "lookup_tool":
        from ._artifacts import lookup_tool

        return lookup_tool
    if name == "GraphStore":
        from ._store import GraphStore

        return GraphStore
    raise AttributeError(name)
