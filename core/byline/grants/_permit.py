"""What a run brings along to be permitted, and what is found to be used by it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ._failures import NotCoveredError, Resource
from ._grants import Grants
from ._token import Attempt, Grant

__all__ = ["Guard", "Inventory", "Opaque", "Permit"]


@dataclass(frozen=True, slots=True)
class Permit:
    """Who runs, in which mode, with which sealed grant."""

    user: str
    token: str | None = field(default=None, repr=False)
    mode: str = "default"


class Opaque(NamedTuple):
    """Something that may use more than can be seen, and why."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Inventory:
    """What a run of a target will use, read off the framework's own objects."""

    resources: frozenset[Resource] = frozenset()
    opaque: tuple[Opaque, ...] = ()

    def named(self, kind: str) -> frozenset[str]:
        """Return the names of the resources of one kind."""
        return frozenset(resource.name for resource in self.resources if resource.kind == kind)


class Guard:
    """The grants of one attributed target: `agent_id` is the parent agent that a grant has to name.

    `allow` are the names of tools and nodes that may be opaque: the app vouches for what they hide.
    """

    def __init__(self, grants: Grants, agent_id: str, allow: Iterable[str] = ()) -> None:
        self.grants: Final = grants
        self.agent_id: Final = agent_id
        self.allow: Final = frozenset([allow] if isinstance(allow, str) else allow)

    def attempt(self, permit: Permit, run_id: str, thread_id: str, used: Inventory) -> Attempt:
        """Return what is about to be run.  Raises `NotCoveredError` for what is opaque and not allowed."""
        if hidden := [one for one in used.opaque if one.name not in self.allow]:
            lines = "; ".join(f"{one.name!r}: {one.why}" for one in hidden)
            names = ", ".join(repr(one.name) for one in hidden)
            raise NotCoveredError(
                f"what these use cannot be seen before they run: {lines}. Say that you trust them: allow=[{names}]"
            )
        return Attempt(permit.user, run_id, self.agent_id, thread_id, permit.mode, used.resources)

    def check(self, permit: Permit | None, run_id: str, thread_id: str, used: Inventory) -> Grant:
        """Return the grant with which the run may start; it is not spent yet.  Raises a `GrantError`."""
        permit = permit or Permit("")
        return self.grants.check(permit.token, self.attempt(permit, run_id, thread_id, used))
