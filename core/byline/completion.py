"""Whether a team is complete: the links that an app really has, and the text's list of what to confirm.

"When you judge that the configuration of a multi-agent is complete, confirm each of the following."  Each point is one
line with its evidence.  What a team and a recording cannot show is unknown, and said to be: that is no yes.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from .artifacts import LOOKUP, Artifacts
from .grants import Grant
from .ledger import Ledger
from .team import AgentRecord, Reason, broken_links
from .team_view import AgentView, TeamView

__all__ = ["Point", "completion", "link_violations", "links"]

_APP: Final = "the app"
"""The one owner of all agents of an app: who may link what is a question of stored teams."""


class Point(NamedTuple):
    """One point of the list."""

    point: str
    holds: bool | None
    """`None`: neither the team nor the recording can tell."""
    evidence: str


def links(team: TeamView) -> dict[str, tuple[str, ...]]:
    """Return the direct subagents of every agent that has some, by name and in the app's order."""
    return {agent.name: _members(agent) for agent, _ in team.root.walk() if agent.members}


def link_violations(team: TeamView) -> list[Reason]:
    """Return what of an app's own links could not be saved as a list of references (see `byline.team`).

    In an app a cycle is an agent that comes again below itself, by its name; it is told once.
    """
    agents: dict[str, AgentView] = {}
    for agent, _ in team.root.walk():
        agents.setdefault(agent.name, agent)  # the topmost: what comes again below itself is cut off there
    known = {name: AgentRecord(name or "?", _APP, subagents=_members(one)) for name, one in agents.items()}
    found: list[Reason] = []
    circles: set[frozenset[str]] = set()
    for name, record in known.items():
        for reason in broken_links(record, _members(agents[name]), _APP, known.get):
            circle = frozenset(reason.cycle)
            if not circle or circle not in circles:
                found.append(reason)
            circles.add(circle)
    return found


def _members(agent: AgentView) -> tuple[str, ...]:
    return tuple(member.name or "?" for member in agent.members)


def completion(
    team: TeamView,
    ledger: Ledger | None = None,
    grant: Grant | None = None,
    artifacts: Artifacts | None = None,
    *,
    user: str | None = None,
) -> list[Point]:
    """Return the points of the list.

    `ledger` holds a recording of the team, `grant` what one of its runs had, `artifacts` the store with what its
    parent's model was told; they are `user`'s, or whose the grant is.  Raises `StoreError`.
    """
    whose = user if user is not None else "" if grant is None else grant.user
    return [
        _intended(team, ledger),
        _no_circle(team),
        _permitted(grant),
        _granted(team, grant),
        _apart(ledger, artifacts, whose),
        _looked_up(ledger, LOOKUP if artifacts is None else artifacts.lookup or LOOKUP),
    ]


def _intended(team: TeamView, ledger: Ledger | None) -> Point:
    point = "the parent's list of subagents is the intended one"
    listed = {name for members in links(team).values() for name in members}
    told = (
        "; ".join(f"{name} -> {', '.join(members)}" for name, members in links(team).items())
        or "no subagents"
    )
    strangers = _unique(one.name for one in ledger.invocations if one.name not in listed) if ledger else ()
    if strangers:
        return Point(point, False, f"{told}; the recording also has {', '.join(strangers)}")
    return Point(point, None, f"{told}: compare it with what you meant")


def _no_circle(team: TeamView) -> Point:
    found = link_violations(team)
    text = "; ".join(map(str, found)) or "every agent's links hold"
    return Point("no agent refers to itself, and there is no cycle", not found, text)


def _permitted(grant: Grant | None) -> Point:
    point = "the user may use the parent and what is directly connected"
    if grant is None:
        return Point(
            point, None, "a recording does not hold it: ask agent.permit(...), or give the run's --grant"
        )
    count = len(grant.resources)
    return Point(
        point, None, f"the grant of {grant.user!r} names {count} resources; byline grant inspect checks it"
    )


def _granted(team: TeamView, grant: Grant | None) -> Point:
    point = "the check before the run has the direct subagents on its list"
    if grant is None:
        return Point(point, None, "a recording does not hold it: give the run's --grant")
    names = {resource.name for resource in grant.resources if resource.kind == "subagent"}
    missing = [name for name in _unique(_members(team.root)) if name not in names]
    if missing:
        return Point(point, False, f"the grant does not name {', '.join(missing)}")
    return Point(
        point,
        True,
        f"the grant names {', '.join(_unique(_members(team.root))) or 'nobody, as there is nobody'}",
    )


def _apart(ledger: Ledger | None, artifacts: Artifacts | None, user: str) -> Point:
    point = "the original that the user saw and the placeholder of the parent can be told apart"
    if ledger is None:
        return Point(point, None, "give a recording with --run")
    if twice := ledger.shown_twice(artifacts):
        return Point(point, False, "; ".join(one.message for one in twice))
    fates = [
        (fate, one)
        for fate in ledger.artifacts(artifacts, user=user)
        for one in fate.shown
        if one.owner is None and one.closed
    ]
    if not fates:
        return Point(point, None, "the recording shows no artifact")
    places = ", ".join(f"{one.title or 'untitled'} in {one.message}" for _, one in fates)
    text = f"{len(fates)} shown, each once: {places}"
    if artifacts is None:
        return Point(point, None, f"{text}; what the parent was told is in the store: give --artifacts")
    told = [f"{fate.counts.placeholders} of {fate.id}" for fate, _ in fates if fate.counts is not None]
    if told:
        text += f"; placeholders sent: {', '.join(told)}"
    if missing := [one.message for fate, one in fates if fate.counts is None]:
        return Point(point, None, f"{text}; not kept for user {user!r}: {', '.join(missing)}")
    return Point(point, True, text)


def _looked_up(ledger: Ledger | None, lookup: str) -> Point:
    point = "the way to the originals is the parent's alone, and taken only where it is needed"
    if ledger is None:
        return Point(point, None, "give a recording with --run")
    calls = [
        (message.get("subagentRunId"), call)
        for message in ledger.messages
        for call in message.get("toolCalls") or ()
        if call["function"]["name"] == lookup
    ]
    if strangers := [owner for owner, _ in calls if owner is not None]:
        return Point(point, False, f"{lookup} was called by {', '.join(_unique(strangers))}")
    ids = ", ".join(call["id"] for _, call in calls)
    return Point(
        point, None if calls else True, f"{len(calls)} look-ups: {ids}" if calls else "nothing was looked up"
    )


def _unique(names: Iterable[Any] | Sequence[Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(name) for name in names))
