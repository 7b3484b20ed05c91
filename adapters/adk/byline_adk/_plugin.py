"""The entry point: recognises a target by the module of its type, and imports the adapter only then."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from byline.hooks import Demo, Plugins, hookimpl

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from byline.agent import Adapter, Bound
    from byline.recording import Observation
    from byline.team_view import TeamView
    from byline.testing import Host

__all__ = ["AdkAdapter", "byline_adapters", "byline_demos", "byline_hosts", "byline_observe"]

_RUNNER: Final = ("google.adk.runners", "Runner")

_TAKEN: Final = frozenset(
    {
        _RUNNER,
        ("google.adk.apps.app", "App"),
        ("google.adk.agents.base_agent", "BaseAgent"),
        ("google.adk.workflow._base_node", "BaseNode"),
    }
)


class AdkAdapter:
    """Takes a `Runner`, an `App`, a root agent or a `Workflow`."""

    name = "adk"
    extra = "adk"
    requires: Sequence[str] = ("google.adk",)
    refines: Sequence[str] = ()

    def takes(self, target: object) -> bool:
        """Return whether `target` is one of ADK's; any of its base classes tells."""
        return any((base.__module__, base.__name__) in _TAKEN for base in type(target).__mro__)

    def hint(self, target: object) -> str | None:
        """Say what is missing when `target` is nearly an agent."""
        if isinstance(target, type) and any(
            (base.__module__, base.__name__) in _TAKEN for base in target.__mro__
        ):
            return f"a class was given: attribute an instance of {target.__name__}"
        if type(target).__name__ == "module" and hasattr(target, "root_agent"):
            return "a module was given: attribute(module.root_agent)"
        return None

    def bind(self, target: Any, plugins: Plugins, **options: Any) -> "Bound":
        """Take hold of a target; options: `user_id`, `run_config`."""
        from ._session import bind

        return bind(target, plugins, **options)

    def describe(self, target: Any) -> "TeamView":
        """Return the team behind a target."""
        from . import _compat
        from ._inspect import describe

        _compat.check()
        return describe(target)


@hookimpl
def byline_adapters() -> "Sequence[Adapter]":
    """Bring the ADK adapter."""
    return [AdkAdapter()]


@hookimpl
def byline_observe(observation: "Observation", target: Any) -> "AbstractContextManager[None] | None":
    """Watch the runs of a `Runner`; ADK has no process-wide hook, so it has to be given."""
    if not any((base.__module__, base.__name__) == _RUNNER for base in type(target).__mro__):
        return None
    from ._record import recording

    return recording(observation, target)


@hookimpl
def byline_demos() -> Sequence[Demo]:
    """Bring the ADK demo."""
    if not _installed():
        return []
    from ._demo import demo

    return [demo()]


@hookimpl
def byline_hosts() -> "Sequence[Host]":
    """Bring the hosts of the conformance suite."""
    if not _installed():
        return []
    from .conformance import hosts

    return hosts()


def _installed() -> bool:
    import importlib.util

    try:
        return importlib.util.find_spec("google.adk") is not None
    except ModuleNotFoundError:  # no package google at all
        return False
