"""byline for Google ADK: existing runners, apps and agents as sources of attributed AG-UI events."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._observer import BylinePlugin

__all__ = ["BylinePlugin"]


def __getattr__(name: str) -> Any:
    # ADK takes half a second to import: only who asks for the plugin pays for it.
    if name == "BylinePlugin":
        from ._observer import BylinePlugin

        return BylinePlugin
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
