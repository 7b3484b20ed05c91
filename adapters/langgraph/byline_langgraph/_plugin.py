"""The entry point: recognises a target by the module of its type, and imports the adapter only then."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from byline.hooks import Demo, Plugins, hookimpl

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from byline.agent import Adapter, Bound
    from byline.recording import Observation
    from byline.team_view import TeamView
    from byline.testing import Host

__all__ = [
    "LangGraphAdapter",
    "RemoteGraphAdapter",
    "byline_adapters",
    "byline_demos",
    "byline_hosts",
    "byline_observe",
]


class LangGraphAdapter:
    """Takes compiled LangGraph graphs: `StateGraph.compile()`, `create_agent`, `@entrypoint`, supervisors, swarms."""

    name = "langgraph"
    extra = "langgraph"
    requires: Sequence[str] = ("langgraph",)
    refines: Sequence[str] = ()

    def takes(self, target: object) -> bool:
        """Return whether `target` is a Pregel graph; any of its base classes tells."""
        return any(
            base.__module__.startswith("langgraph.pregel") and base.__name__ == "Pregel"
            for base in type(target).__mro__
        )

    def hint(self, target: object) -> str | None:
        """Say what is missing when `target` is nearly a graph."""
        if any(base.__module__.startswith("langgraph.graph") for base in type(target).__mro__):
            return "a graph has to be compiled first: attribute(builder.compile())"
        if callable(target) and hasattr(target, "__wrapped__"):
            return "a factory was given: attribute what it returns"
        return None

    def bind(self, target: Any, plugins: Plugins, **options: Any) -> "Bound":
        """Take hold of a graph; options: `config`, `context`, `transparent`."""
        from ._session import bind

        return bind(target, plugins, **options)

    def describe(self, target: Any) -> "TeamView":
        """Return the team behind a graph."""
        from ._inspect import describe

        return describe(target)


class RemoteGraphAdapter(LangGraphAdapter):
    """Takes a `RemoteGraph`: what LangGraph has of a graph that another process runs."""

    name = "langgraph-remote"

    def takes(self, target: object) -> bool:
        """Return whether `target` is a remote graph; any of its base classes tells."""
        return any(
            base.__module__ == "langgraph.pregel.remote" and base.__name__ == "RemoteGraph"
            for base in type(target).__mro__
        )

    def hint(self, target: object) -> str | None:  # noqa: ARG002
        """Leave the advice to the adapter of local graphs."""
        return None

    def bind(self, target: Any, plugins: Plugins, **options: Any) -> "Bound":
        """Take hold of a remote graph; options: `config`, `context`."""
        from ._remote_session import bind

        return bind(target, plugins, **options)


@hookimpl
def byline_adapters() -> "Sequence[Adapter]":
    """Bring the LangGraph adapters."""
    return [LangGraphAdapter(), RemoteGraphAdapter()]


@hookimpl
def byline_observe(observation: "Observation", target: Any) -> "AbstractContextManager[None] | None":
    """Watch every graph that is run inside the recording; a graph that was given is one of them."""
    import importlib.util

    if importlib.util.find_spec("langgraph") is None:
        return None
    if target is not None and not LangGraphAdapter().takes(target):
        return None
    from ._record import observing

    return observing(observation)


@hookimpl
def byline_demos() -> Sequence[Demo]:
    """Bring the LangGraph demo."""
    import importlib.util

    if importlib.util.find_spec("langgraph") is None:
        return []
    from ._demo import demo

    return [demo()]


@hookimpl
def byline_hosts() -> "Sequence[Host]":
    """Bring the hosts of the conformance suite; they build their agents with LangChain."""
    import importlib.util

    if any(importlib.util.find_spec(name) is None for name in ("langgraph", "langchain")):
        return []
    from .conformance import hosts

    return hosts()
