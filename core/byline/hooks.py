"""Where plugins join: pluggy specifications, and the manager that finds the plugins.

A plugin is any object or module with functions marked `@byline.hookimpl`.  It is found through the entry-point
group `byline`, or given to `attribute(..., plugins=[...])`.  Hooks are called once per run or once per
invocation, never per token.

An implementation may take fewer arguments than the specification.  A wrong one is refused with its own signature
in the message.  A fault inside one is logged and counts as no answer.
"""

import inspect
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

import pluggy

from .errors import HookError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from .agent import Adapter, Run
    from .delegation import Contract
    from .grants import AccessRequest
    from .ledger import Ledger
    from .recording import Observation
    from .team_view import AgentView, Role
    from .testing import Host

__all__ = ["Candidate", "Demo", "Invocation", "Plugins", "Specs", "Visibility", "hookimpl", "hookspec"]

GROUP: Final = "byline"

hookspec: Final = pluggy.HookspecMarker(GROUP)
hookimpl: Final = pluggy.HookimplMarker(GROUP)

Visibility: TypeAlias = Literal["attributed", "inline", "hidden"]

_log = logging.getLogger("byline")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A native thing that may be an invocation of a subagent."""

    framework: str
    name: str
    """The name the stream would give it."""
    native_name: str
    """The name the framework gives it: for LangGraph the run name of the graph."""
    node: str | None = None
    """The node of the enclosing graph it runs in."""
    tool: str | None = None
    """The tool it was called in; `None` when no tool call stands between it and its caller."""
    parent: str | None = None
    """The name of the invocation it runs in; `None` for the parent agent."""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Invocation:
    """An invocation as it is about to be announced."""

    framework: str
    name: str
    id: str
    parent_id: str | None = None
    description: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What `metadata["byline"]` will say, the contract among it."""


@dataclass(frozen=True, slots=True)
class Demo:
    """Something `byline demo NAME` can run: `runs` gives the inputs of its runs one by one.

    `answer` is called with the interrupts that a run ended with and gives the next run's input, or `None` when
    the demo is over.
    """

    name: str
    summary: str
    build: Any
    """A callable without arguments that returns the target for `attribute`."""
    first: Any
    """A callable without arguments that returns the first `RunAgentInput`."""
    answer: Any
    """A callable of (input, interrupts) that returns the next `RunAgentInput` or `None`."""


class Specs:
    """The hooks."""

    @hookspec
    def byline_adapters(self) -> "Sequence[Adapter]":  # type: ignore[empty-body]
        """Return the adapters that this plugin brings."""

    @hookspec(firstresult=True)
    def byline_observe(self, observation: "Observation", target: Any) -> "AbstractContextManager[Any] | None":
        """Return a context manager under which the runs that the app starts itself are reported to `observation`.

        `target` is the one thing to watch, or `None`: then whatever is called inside the context manager, which
        only a framework with a process-wide hook can do.  Each run is `observation.begin(...)`, its signals go to
        `report` of what that returns and its end to `end`.  Return `None` for a target that is not yours; an
        adapter that builds on another one is asked before it with `@hookimpl(tryfirst=True)`.
        """

    @hookspec(firstresult=True)
    def byline_is_subagent(self, candidate: Candidate) -> bool | None:
        """Return whether `candidate` is an invocation of a subagent (`True`) or transparent (`False`).

        What a transparent thing does belongs to whoever encloses it: a supervisor that is itself a nested graph, a
        helper graph.  The first answer that is not `None` wins.
        """

    @hookspec(firstresult=True)
    def byline_contract(self, invocation: Invocation) -> "Contract | Mapping[str, Any] | None":
        """Return what is known of the delegation contract where the framework cannot tell; the first answer wins."""

    @hookspec(firstresult=True)
    def byline_visibility(self, invocation: Invocation) -> Visibility | None:
        """Return how a client gets to see `invocation`; the first answer wins."""

    @hookspec(firstresult=True)
    def byline_decide(self, request: "AccessRequest") -> Any:
        """Return whether `request.user` may use `request.resource` (`True`, `False`); the first answer wins.

        `None` is no answer, and no answer is no permission.  A coroutine is awaited.  A fault in an implementation
        refuses the run.
        """

    @hookspec
    def byline_run_started(self, run: "Run") -> None:
        """Watch a run begin."""

    @hookspec
    def byline_run_finished(self, run: "Run", ledger: "Ledger") -> None:
        """Watch a run end, with the book of all that it did; without `ledger` in the signature none is kept."""

    @hookspec(firstresult=True)
    def byline_role(self, agent: "AgentView") -> "Role | None":
        """Return what a subagent is there for (`byline.team_view.ROLES`), for the advice on its team."""

    @hookspec
    def byline_demos(self) -> Sequence[Demo]:  # type: ignore[empty-body]
        """Return what `byline demo NAME` can run."""

    @hookspec
    def byline_hosts(self) -> "Sequence[Host]":  # type: ignore[empty-body]
        """Return the hosts of the conformance suite that this plugin brings."""


class Plugins:
    """The plugins of one agent: the installed ones, and those it was given.

    `extra` are registered after the installed ones and therefore asked first.  Raises `HookError` for one that
    cannot be used.  An *installed* plugin that cannot be loaded breaks nobody: it is named in `broken`.
    """

    def __init__(self, extra: Iterable[object] = ()) -> None:
        self.broken: Final[dict[str, str]] = {}
        self._manager: Final = pluggy.PluginManager(GROUP)
        self._manager.add_hookspecs(Specs)
        for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
            self._load(entry)
        for plugin in extra:
            self.register(plugin)

    def register(self, plugin: object, name: str | None = None) -> None:
        """Add a plugin; raises `HookError` when one of its hooks is unknown or takes what the hook does not give."""
        try:
            self._manager.register(plugin, name)
            self._manager.check_pending()
        except pluggy.PluginValidationError as fault:
            if self._manager.is_registered(plugin):
                self._manager.unregister(plugin)
            raise HookError(
                f"{_offender(plugin)} cannot be used as a plugin: {_detail(plugin, fault)}"
            ) from fault
        except ValueError as fault:  # registered twice
            raise HookError(f"{_offender(plugin)} was given twice: {fault}") from fault

    @property
    def names(self) -> list[str]:
        """The names of the plugins, in the order of their registration."""
        return [name for name, _ in self._manager.list_name_plugin()]

    def collect(self, hook: str) -> list[Any]:
        """Return the items of all lists that the implementations of `hook` return, in order of registration."""
        found: list[Any] = []
        for implementation in getattr(self._manager.hook, hook).get_hookimpls():
            try:
                found += implementation.function() or ()
            except Exception as fault:
                self.broken[implementation.plugin_name] = f"{hook}: {type(fault).__name__}: {fault}"
                _log.warning("hook %s of plugin %s failed", hook, implementation.plugin_name, exc_info=True)
        return found

    def implements(self, hook: str) -> bool:
        """Return whether anybody answers `hook`: asking nobody is free."""
        return bool(getattr(self._manager.hook, hook).get_hookimpls())

    def takes(self, hook: str, argument: str) -> bool:
        """Return whether some implementation of `hook` takes `argument`: what nobody takes need not be made."""
        return any(argument in one.argnames for one in getattr(self._manager.hook, hook).get_hookimpls())

    def ask(self, hook: str, **arguments: Any) -> Any:
        """Call `hook` and return its answer; a fault in an implementation is logged and counts as no answer."""
        if not self.implements(hook):
            return None
        try:
            return getattr(self._manager.hook, hook)(**arguments)
        except Exception:
            _log.warning("hook %s failed and was ignored", hook, exc_info=True)
            return None

    def demand(self, hook: str, **arguments: Any) -> Any:
        """Call `hook` and return its answer; unlike in `ask`, a fault in an implementation comes through."""
        return getattr(self._manager.hook, hook)(**arguments)

    def _load(self, entry: EntryPoint) -> None:
        # pluggy's own loader lets one broken plugin take all the others with it.
        try:
            self.register(entry.load(), entry.name)
        except Exception as fault:
            self.broken[entry.name] = f"{type(fault).__name__}: {fault}"
            _log.debug("plugin %s could not be loaded", entry.name, exc_info=True)


def _offender(plugin: object) -> str:
    return cast("str", getattr(plugin, "__name__", None) or type(plugin).__name__)


def _detail(plugin: object, fault: pluggy.PluginValidationError) -> str:
    """Say what pluggy found, with the signature of the hook as the plugin wrote it."""
    text = " ".join(str(fault).split())
    for name in dir(plugin):
        if name.startswith("byline_") and name in text:
            function = getattr(plugin, name)
            wanted = getattr(Specs, name, None)
            text += f"; it has {name}{inspect.signature(function)}"
            if wanted is None:
                known = ", ".join(sorted(known for known in vars(Specs) if known.startswith("byline_")))
                return f"{text}; the hooks are {known}"
            names = ", ".join(n for n in inspect.signature(wanted).parameters if n != "self")
            return f"{text}; the hook gives ({names})"
    return text
