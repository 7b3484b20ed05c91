"""byline for Google ADK: existing runners, apps and agents as sources of attributed AG-UI events."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._observer import BylinePlugin
    from ._store import ServiceStore

__all__ = ["BylinePlugin", "ServiceStore"]


def __getattr__(name: str) -> Any:
    # ADK takes half a second to import: only who asks for something pays for it.
    if name == "BylinePlugin":
        from ._observer import BylinePlugin

        return BylinePlugin
    if name == "ServiceStore":
        from ._store import ServiceStore

        return ServiceStore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
