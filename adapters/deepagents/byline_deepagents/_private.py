"""Every place where deepagents' private attributes are read: closure cells and underscore names.

Measured the same on deepagents 0.7.12 to 0.7.32.  A path that a release has moved raises `MissingError`, and the
inspection goes on with what is public.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from byline_langgraph._private import MissingError, variables

__all__ = ["AGENT_MAP", "GRAPHS", "PATHS", "PERMISSIONS", "SPECS", "read"]

GRAPHS: Final = 'tools_by_name["task"].func: cell subagent_graphs'
SPECS: Final = 'tools_by_name["task"].func: cell _validate_and_prepare_state: cell subagents_by_name'
AGENT_MAP: Final = 'tools_by_name["start_async_task"].func: cell agent_map'
PERMISSIONS: Final = "FilesystemMiddleware._permissions"

PATHS: Final[Mapping[str, Callable[[Any], Any]]] = {
    GRAPHS: lambda task: variables(task.func)["subagent_graphs"],
    SPECS: lambda task: variables(variables(task.func)["_validate_and_prepare_state"])["subagents_by_name"],
    AGENT_MAP: lambda start: variables(start.func)["agent_map"],
    PERMISSIONS: lambda middleware: middleware._permissions,  # noqa: SLF001
}
"""The paths by how they are written; each takes the tool or the middleware it begins with."""


def read(path: str, start: Any) -> Any:
    """Return what stands at `path`; raises `MissingError`."""
    try:
        return PATHS[path](start)
    except Exception as fault:
        raise MissingError(path) from fault
