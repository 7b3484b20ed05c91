"""A target that is built anew for every run, and only for a run that may have it.

"If a check fails, the run is stopped before the graph is built or called."

Before it is built nobody can see what it will use, so the app declares it.  The grant is held against what was declared
before the factory is called, and against the real objects before they are.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from .errors import InputError
from .events import Message, RunAgentInput
from .grants import Guard, Inventory, Permit, Resource
from .hooks import Plugins

if TYPE_CHECKING:
    from .agent import RunEnd, Session, Sink

__all__ = ["Factory", "FactoryAdapter"]


class Factory:
    """What builds a target: `attribute(Factory(build, [Resource("model", "small"), ...]), grants=..., agent_id=...)`.

    `build` takes nothing and returns what `attribute` would take, or is `async`.  It is called once for each run, so
    what has to outlast a run (a checkpointer, a session service) is made outside of it.  `uses` is the team as it is
    declared: an `Inventory`, or the resources; without grants it is of no consequence.
    """

    def __init__(
        self, build: Callable[[], Any | Awaitable[Any]], uses: Inventory | Iterable[Resource] = ()
    ) -> None:
        if not callable(build):
            raise InputError(f"a factory is a function without arguments, got {type(build).__name__}")
        self.build: Final = build
        self.uses: Final = uses if isinstance(uses, Inventory) else Inventory(frozenset(uses))

    def __repr__(self) -> str:
        return f"Factory({getattr(self.build, '__qualname__', self.build)!s})"


class FactoryAdapter:
    """Takes a `Factory`; what it builds is then the matter of the adapter that takes it."""

    name = "factory"
    extra = ""
    requires: Sequence[str] = ()
    refines: Sequence[str] = ()

    def takes(self, target: object) -> bool:
        """Return whether `target` is a factory."""
        return isinstance(target, Factory)

    def hint(self, target: object) -> str | None:  # noqa: ARG002 - the protocol's
        """Say nothing: a factory says itself that it is one."""
        return None

    def bind(self, target: Factory, plugins: Plugins, **options: Any) -> "_BoundFactory":
        """Take hold of a factory; the options are those of whoever takes what it builds."""
        return _BoundFactory(target, plugins, options)


class _BoundFactory:
    """A factory in our hands."""

    def __init__(self, factory: Factory, plugins: Plugins, options: dict[str, Any]) -> None:
        self.factory: Final = factory
        self.plugins: Final = plugins
        self.options: Final = options
        self.guard: Final = self._guard()

    def _guard(self) -> Guard | None:
        grants, agent_id = self.options.get("grants"), self.options.get("agent_id")
        if grants is None:
            return None
        if not agent_id:
            raise InputError(
                "a factory's agent has no name before it is built: say agent_id='...' with grants"
            )
        return Guard(grants, agent_id, self.options.get("allow", ()), self.options.get("nested", "trust"))

    def uses(self) -> Inventory:
        """Return what was declared."""
        return self.factory.uses

    def open(self, run_input: RunAgentInput) -> "_FactorySession":
        """Return the session of an AG-UI input."""
        return _FactorySession(self, run_input)

    def open_native(self, *_args: Any, **_kwargs: Any) -> "Session":
        """Refuse: thread and run of such a call are the framework's to tell, and there is none yet."""
        raise InputError(
            "stream() needs the framework's objects, and a factory has not built them yet: "
            "use run() with an AG-UI input, or build the target and attribute that"
        )


class _FactorySession:
    """Builds the target of one run, and runs it."""

    def __init__(self, bound: _BoundFactory, run_input: RunAgentInput) -> None:
        self.thread_id = run_input.thread_id
        self.run_id = run_input.run_id
        self.parent_run_id = run_input.parent_run_id
        self.history: Sequence[Message] = run_input.messages
        self.result: Any = None
        self.permit: Permit | None = None
        self._bound: Final = bound
        self._run_input: Final = run_input
        self._inner: Session | None = None

    async def prepare(self) -> None:
        """Hold the declared team to the grant, build it, and let the real one be held to it.

        The grant is spent by the second check, so a factory that fails burns none.  Raises a `GrantError`, what the
        factory raises, and what `attribute` raises for what it returned.
        """
        from .agent import adapter_of

        bound = self._bound
        if bound.guard is not None:
            bound.guard.check(self.permit, self.run_id, self.thread_id, bound.factory.uses)
        target = bound.factory.build()
        if inspect.isawaitable(target):
            target = await target
        if isinstance(target, Factory):
            raise InputError(f"{bound.factory!r} built another factory: let it return the target itself")
        inner = (
            adapter_of(target, bound.plugins)
            .bind(target, bound.plugins, **bound.options)
            .open(self._run_input)
        )
        if self.permit is not None:
            inner.permit = self.permit
        await inner.prepare()
        self._inner, self.history = inner, inner.history

    async def drive(self, sink: "Sink") -> "RunEnd":
        """Run what was built."""
        if self._inner is None:
            raise RuntimeError("a run is driven after it was prepared")
        try:
            return await self._inner.drive(sink)
        finally:
            self.result = self._inner.result
