"""byline for LangGraph: existing graphs as sources of attributed AG-UI events."""

from typing import Any

from byline.errors import InputError

__all__ = ["ArtifactMiddleware", "GraphStore", "lookup_tool"]


def __getattr__(name: str) -> Any:  # the plugin is loaded without LangGraph, too
    if name == "lookup_tool":
        from ._artifacts import lookup_tool

        return lookup_tool
    if name == "ArtifactMiddleware":
        try:
            from ._middleware import ArtifactMiddleware
        except ModuleNotFoundError as missing:
            if missing.name != "langchain":
                raise
            raise InputError(
                "middleware is LangChain's, which is not installed: pip install langchain"
            ) from missing
        return ArtifactMiddleware
    if name == "GraphStore":
        from ._store import GraphStore

        return GraphStore
    raise AttributeError(name)
