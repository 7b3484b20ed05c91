"""Every place where LangGraph's and LangChain's private attributes are read: closure cells and underscore names.

Measured the same on langgraph 1.1.6 with langchain 1.2.15 and on 1.2.24 with 1.5.2.  A path that a release has moved
raises `MissingError`, and the inspection goes on with what is public.
"""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from langgraph.pregel import Pregel

__all__ = ["PATHS", "MissingError", "agents_in", "instances_in", "read", "variables"]


class MissingError(LookupError):
    """A private path is not there in this version."""


def variables(function: Any) -> dict[str, Any]:
    """Return what a function has closed over; empty for what is no Python function."""
    function = getattr(function, "__func__", function)
    cells = getattr(function, "__closure__", None) or ()
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    found = {}
    for name, cell in zip(names, cells, strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return found


def _of_model_node(name: str) -> Callable[[Pregel[Any, Any, Any, Any]], Any]:
    def reader(graph: Pregel[Any, Any, Any, Any]) -> Any:
        bound: Any = graph.nodes["model"].bound
        return variables(bound.func or bound.afunc)[name]

    return reader


def _of_react_node(name: str) -> Callable[[Pregel[Any, Any, Any, Any]], Any]:
    def reader(graph: Pregel[Any, Any, Any, Any]) -> Any:
        bound: Any = graph.nodes["agent"].bound
        return variables(bound.func or bound.afunc)[name]

    return reader


PATHS: Final[Mapping[str, Callable[[Pregel[Any, Any, Any, Any]], Any]]] = {
    'nodes["model"].bound.func: cell model': _of_model_node("model"),
    'nodes["model"].bound.func: cell system_message': _of_model_node("system_message"),
    'nodes["model"].bound.func: cell default_tools': _of_model_node("default_tools"),
    'nodes["model"].bound.func: cell wrap_model_call_handler': _of_model_node("wrap_model_call_handler"),
    'nodes["agent"].bound.func: cell static_model': _of_react_node("static_model"),
    'nodes["tools"].bound._wrap_tool_call': lambda graph: graph.nodes["tools"].bound._wrap_tool_call,  # type: ignore[attr-defined]  # noqa: SLF001
}
"""The paths by how they are written; each takes a graph that has the node."""


def read(path: str, graph: Pregel[Any, Any, Any, Any]) -> Any:
    """Return what stands at `path`; raises `MissingError`."""
    try:
        return PATHS[path](graph)
    except Exception as fault:
        raise MissingError(path) from fault


def agents_in(function: Any) -> Iterator[tuple[str, Pregel[Any, Any, Any, Any]]]:
    """Yield the graphs that a function names directly: in its closure, or as globals."""
    function = inspect.unwrap(getattr(function, "__func__", function))
    code = getattr(function, "__code__", None)
    names: dict[str, Any] = variables(function)
    module: Mapping[str, Any] = getattr(function, "__globals__", {})
    names |= {name: module[name] for name in getattr(code, "co_names", ()) if name in module}
    for name, value in names.items():
        if isinstance(value, Pregel):
            yield name, value


def instances_in(function: Any, depth: int = 40) -> Iterator[Any]:
    """Yield the objects whose methods a chain of composed functions ends in: the middleware behind a handler."""
    if function is None or depth == 0:
        return
    if isinstance(function, functools.partial):
        yield from instances_in(function.func, depth - 1)
        return
    owner = getattr(function, "__self__", None)
    if owner is not None and not inspect.ismodule(owner):
        yield owner
        return
    inner = getattr(function, "__wrapped__", None)
    if inner is not None:
        yield from instances_in(inner, depth - 1)
    for value in variables(function).values():
        if callable(value) and not isinstance(value, type):
            yield from instances_in(value, depth - 1)
        elif isinstance(value, list | tuple):
            for item in value:
                if callable(item) and not isinstance(item, type):
                    yield from instances_in(item, depth - 1)
