"""Look at a team before it runs, and say what is worth changing in it."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from .agent import adapter_of
from .errors import InputError, NoAdapterError
from .hooks import Plugins
from .team_view import ROLES, Fact, TeamView

__all__ = ["Describes", "describe"]


class Describes(Protocol):
    """What an adapter has that can describe the team behind a target."""

    def describe(self, target: Any) -> TeamView:
        """Return the team; never runs it, never raises for something that cannot be read."""


def describe(
    target: Any, *, plugins: Iterable[object] = (), roles: Mapping[str, str] | None = None
) -> TeamView:
    """Return the team behind an app, without running it.

    `roles` says what subagents are there for, by name (see `byline.team_view.ROLES`); the hook `byline_role` answers
    for those that it leaves out.  Raises `NoAdapterError` when no adapter takes the target or the one that does cannot
    describe it, `InputError` for a role or a name that there is not.
    """
    known = Plugins(plugins)
    adapter = adapter_of(target, known)
    if not hasattr(adapter, "describe"):
        raise NoAdapterError(
            f"the adapter {adapter.name} cannot describe a team: it has no method describe(target)"
        )
    team: TeamView = adapter.describe(target)
    return team.with_roles(_roles(team, known, roles or {}))


def _roles(team: TeamView, plugins: Plugins, given: Mapping[str, str]) -> dict[str, Fact]:
    agents = {agent.name: agent for agent, _ in team.root.walk()}
    for name, role in given.items():
        if role not in ROLES:
            raise InputError(f"role {role!r} of {name!r} is unknown: expected one of {', '.join(ROLES)}")
        if name not in agents:
            raise InputError(
                f"{name!r} was given a role and is not in the team: there are {', '.join(agents)}"
            )
    roles = {name: Fact(role, "declared", "roles") for name, role in given.items()}
    if plugins.implements("byline_role"):
        for name, agent in agents.items():
            answer = None if name in roles else plugins.ask("byline_role", agent=agent)
            if answer in ROLES:
                roles[name] = Fact(answer, "declared", "byline_role")
    return roles
