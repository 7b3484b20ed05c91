"""A team before it runs: its agents as a tree of frozen values, each saying where it was read.

An adapter's `describe` fills it in; `byline.advice` reads it; `byline inspect` shows it.  Nothing is guessed: what
cannot be read stands there as `opaque`, with the reason.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

__all__ = ["FACTS", "ROLES", "AgentView", "Doubt", "Fact", "Role", "Source", "TeamView", "opaque"]

Source: TypeAlias = Literal["public", "private", "declared", "opaque"]
"""Where a value comes from: an attribute anybody may read; a closure cell or an underscore attribute, which the next
release may move; the user, who said so; nowhere, because it cannot be read."""

Role: TypeAlias = Literal["worker", "verifier", "researcher", "memory"]
"""What a subagent is there for: carries on the work; judges it; answers a question; keeps what should last."""

ROLES: Final[tuple[Role, ...]] = ("worker", "verifier", "researcher", "memory")

FACTS: Final = (
    "model",
    "prompt",
    "tools",
    "middleware",
    "skills",
    "permissions",
    "approvals",
    "handoffs",
    "nodes",
)
"""The keys of `AgentView.facts`, in the order they are shown in; one that does not apply is absent."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A value and where it was read."""

    value: Any
    source: Source
    where: str | None = None
    """The attribute or closure cell."""
    reason: str | None = None
    """Why it cannot be read, or what the value leaves out."""


def opaque(reason: str, where: str | None = None) -> Fact:
    """Return the fact that there is a value and that it cannot be read."""
    return Fact(None, "opaque", where, reason)


@dataclass(frozen=True, slots=True)
class AgentView:
    """One agent of a team, and those it delegates to."""

    name: str
    kind: str
    """`deep agent`, `subagent`, `compiled subagent`, `async subagent`, `agent`, `graph`, …"""
    via: str | None = None
    """How its caller reaches it: `task`, `tool ask_alpha`, `node research`, `hand-off`; `None` for the first."""
    description: str | None = None
    facts: Mapping[str, Fact] = field(default_factory=dict)
    contract: Mapping[str, Any] = field(default_factory=dict)
    """What the way it is called promises (`byline.delegation`), as far as it is fixed before a run."""
    role: Fact | None = None
    members: tuple["AgentView", ...] = ()

    def value(self, fact: str) -> Any:
        """Return the value of a fact, or `None` where it is not known."""
        known = self.facts.get(fact)
        return None if known is None else known.value

    def walk(self, caller: "AgentView | None" = None) -> Iterator[tuple["AgentView", "AgentView | None"]]:
        """Yield this agent and all below it with their callers, callers first."""
        yield self, caller
        for member in self.members:
            yield from member.walk(self)


@dataclass(frozen=True, slots=True)
class Doubt:
    """What the framework accepts and then does not do: a rule of `byline.advice` that an adapter has applied."""

    rule: str
    agent: str
    message: str
    cure: str


@dataclass(frozen=True, slots=True)
class TeamView:
    """A team and what could not be seen of it."""

    framework: str
    version: str
    root: AgentView
    gaps: tuple[str, ...] = ()
    """Private paths that this version of the framework does not have: what was to be read there is missing."""
    limits: tuple[str, ...] = ()
    """What no inspection can see in a team of this kind."""
    doubts: tuple[Doubt, ...] = ()
    """What of it will not run as it was written; shown with the advice."""

    def with_roles(self, roles: Mapping[str, Fact]) -> "TeamView":
        """Return the team with the roles of its subagents, by name."""

        def cast(agent: AgentView) -> AgentView:
            members = tuple(cast(member) for member in agent.members)
            return replace(agent, role=roles.get(agent.name, agent.role), members=members)

        return replace(self, root=cast(self.root))

    def to_json(self) -> dict[str, Any]:
        """Return the team as plain JSON values; members without a value are absent."""
        return {
            "framework": self.framework,
            "version": self.version,
            "team": _plain(self.root),
            "gaps": list(self.gaps),
            "limits": list(self.limits),
        }


def _plain(agent: AgentView) -> dict[str, Any]:
    told: dict[str, Any] = {"name": agent.name, "kind": agent.kind}
    told |= {} if agent.via is None else {"via": agent.via}
    told |= {} if agent.description is None else {"description": agent.description}
    told |= {} if agent.role is None else {"role": _fact(agent.role)}
    told["facts"] = {key: _fact(agent.facts[key]) for key in FACTS if key in agent.facts}
    told |= {"contract": dict(agent.contract)} if agent.contract else {}
    told |= {"members": [_plain(member) for member in agent.members]} if agent.members else {}
    return told


def _fact(fact: Fact) -> dict[str, Any]:
    return {key: value for key, value in asdict(fact).items() if value is not None or key == "value"}
