"""What a run brings along to be permitted, and what is found to be used by it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple, TypeAlias, cast

from byline.errors import InputError

from ._decide import Decider
from ._failures import NotCoveredError, Resource
from ._grants import Grants
from ._token import Attempt, Grant

__all__ = ["Guard", "Inventory", "Nested", "Opaque", "Permit"]

Nested: TypeAlias = Literal["trust", "require"]
"""What a subagent uses inside: its own matter, or under a grant of its own."""


@dataclass(frozen=True, slots=True)
class Permit:
    """Who runs, in which mode, with which sealed grant."""

    user: str
    token: str | None = field(default=None, repr=False)
    mode: str = "default"
    nested: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The grants of subagents, by their names, where each needs one of its own (`Guard(nested="require")`)."""


class Opaque(NamedTuple):
    """Something that may use more than can be seen, and why."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Inventory:
    """What a run of a target will use, read off the framework's own objects."""

    resources: frozenset[Resource] = frozenset()
    opaque: tuple[Opaque, ...] = ()
    inside: "Mapping[str, Inventory]" = field(default_factory=dict)
    """What direct subagents use inside, by their names, as far as it can be seen."""

    def __or__(self, other: "Inventory") -> "Inventory":
        """Return what two agents of one name use together: a name is all that a grant has of either."""
        shared = self.inside.keys() & other.inside.keys()
        return Inventory(
            self.resources | other.resources,
            tuple(dict.fromkeys(self.opaque + other.opaque)),
            {
                **self.inside,
                **other.inside,
                **{name: self.inside[name] | other.inside[name] for name in shared},
            },
        )

    def named(self, kind: str) -> frozenset[str]:
        """Return the names of the resources of one kind."""
        return frozenset(resource.name for resource in self.resources if resource.kind == kind)


class Guard:
    """The grants of one attributed target: `agent_id` is the parent agent that a grant has to name.

    `allow` are the names of tools, nodes and subagents that may be opaque: the app vouches for what they hide.  With
    `nested="require"` every subagent needs a grant of its own for what it uses inside, as parent agent under its own
    name; the default is to trust it with that.
    """

    def __init__(
        self, grants: Grants, agent_id: str, allow: Iterable[str] = (), nested: Nested = "trust"
    ) -> None:
        if nested not in ("trust", "require"):
            raise InputError(f"nested is {nested!r}, expected 'trust' or 'require'")
        self.nested: Final = nested
        self.grants: Final = grants
        self.agent_id: Final = agent_id
        self.allow: Final = frozenset([allow] if isinstance(allow, str) else allow)

    async def issue(
        self, permit: Permit, run_id: str, thread_id: str, used: Inventory, decider: Decider | None = None
    ) -> Permit:
        """Return `permit` with the grants that the run needs.  Raises a `GrantError`."""
        tokens = {
            name: await self.grants.issue(attempt, decider)
            for name, attempt in self.attempts(permit, run_id, thread_id, used).items()
        }
        return replace(permit, token=tokens.pop(None), nested=cast("dict[str, str]", tokens))

    def check(self, permit: Permit | None, run_id: str, thread_id: str, used: Inventory) -> list[Grant]:
        """Return the grants with which the run may start, the parent's first; none is spent yet.

        Raises the first `GrantError`.
        """
        permit = permit or Permit("")
        return [
            self.grants.check(permit.token if name is None else permit.nested.get(name), attempt)
            for name, attempt in self.attempts(permit, run_id, thread_id, used).items()
        ]

    def attempts(
        self, permit: Permit, run_id: str, thread_id: str, used: Inventory
    ) -> dict[str | None, Attempt]:
        """Return what is about to be run: the parent's under `None`, then each subagent's that needs its own."""
        inner: dict[str, Inventory] = {}
        unseen: set[str] = set()
        waiting = [used] if self.nested == "require" else []
        while waiting:
            outer = waiting.pop()
            unseen |= outer.named("subagent") - outer.inside.keys()
            for name, inside in outer.inside.items():
                inner[name] = inner.get(name, Inventory()) | inside  # one name, wherever it stands
                waiting.append(inside)
        if hidden := sorted(unseen - self.allow):
            raise NotCoveredError(
                f"what subagent {hidden[0]!r} uses cannot be seen, and every subagent needs a grant of its own. "
                f"Say that you trust it: allow=[{hidden[0]!r}]",
                [Resource("subagent", name) for name in hidden],
            )
        found: dict[str | None, Attempt] = {None: self.attempt(permit, run_id, thread_id, used)}
        found |= {name: self.attempt(permit, run_id, thread_id, inner[name], name) for name in sorted(inner)}
        return found

    def attempt(
        self, permit: Permit, run_id: str, thread_id: str, used: Inventory, agent_id: str | None = None
    ) -> Attempt:
        """Return what one agent is about to run.  Raises `NotCoveredError` for what is opaque and not allowed."""
        if hidden := [one for one in used.opaque if one.name not in self.allow]:
            lines = "; ".join(f"{one.name!r}: {one.why}" for one in hidden)
            names = ", ".join(repr(one.name) for one in hidden)
            raise NotCoveredError(
                f"what these use cannot be seen before they run: {lines}. Say that you trust them: allow=[{names}]"
            )
        return Attempt(permit.user, run_id, agent_id or self.agent_id, thread_id, permit.mode, used.resources)
