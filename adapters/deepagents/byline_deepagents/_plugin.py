"""The entry point: recognises a deep agent without importing deepagents, and imports the adapter only then."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from byline.hooks import Plugins, hookimpl
from byline_langgraph._plugin import LangGraphAdapter

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from byline.agent import Adapter, Bound
    from byline.recording import Observation
    from byline.team_view import TeamView
    from byline.testing import Host

__all__ = ["DeepAgentsAdapter", "byline_adapters", "byline_hosts", "byline_observe"]


class DeepAgentsAdapter(LangGraphAdapter):
    """Takes what `create_deep_agent` made, and any other graph that may call one.

    A graph cannot be searched for the agents that its functions call.  But a process that never imported
    deepagents has no deep agent, and in one that did, this adapter reads every other graph just as LangGraph's does.
    """

    name = "deepagents"
    extra = "deepagents"
    requires: Sequence[str] = ("langgraph", "deepagents")
    refines: Sequence[str] = ("langgraph",)

    def takes(self, target: object) -> bool:
        """Return whether `target` is a Pregel graph in a process that has imported deepagents."""
        return "deepagents" in sys.modules and super().takes(target)

    def hint(self, target: object) -> str | None:  # noqa: ARG002
        """Leave the advice to LangGraph's adapter."""
        return None

    def bind(self, target: Any, plugins: Plugins, **options: Any) -> "Bound":
        """Take hold of a graph; options: `config`, `context`, `transparent`."""
        from ._session import bind

        return bind(target, plugins, **options)

    def describe(self, target: Any) -> "TeamView":
        """Return the team behind a graph."""
        from ._inspect import describe

        return describe(target)


@hookimpl
def byline_adapters() -> "Sequence[Adapter]":
    """Bring the deepagents adapter."""
    return [DeepAgentsAdapter()]


@hookimpl
def byline_hosts() -> "Sequence[Host]":
    """Bring the hosts of the conformance suite."""
    import importlib.util

    if importlib.util.find_spec("deepagents") is None:
        return []
    from .conformance import hosts

    return hosts()


@hookimpl(tryfirst=True)
def byline_observe(observation: "Observation", target: Any) -> "AbstractContextManager[None] | None":
    """Watch every graph that is run inside the recording, as this adapter reads them."""
    import importlib.util

    if any(importlib.util.find_spec(module) is None for module in DeepAgentsAdapter.requires):
        return None
    if target is not None and not LangGraphAdapter().takes(target):
        return None
    from ._record import observing

    return observing(observation)
