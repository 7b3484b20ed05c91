"""Links: which subagents a parent agent refers to, and who may say so.

"A subagent link is stored as a list of references in the settings of the agent."  Saving one is configuration and
nothing else: that a list could be saved says nothing about whether a run is permitted (see `byline.grants`).

A save has a caller.  It is refused as a whole, with every reason at once, in the order of `CODES`; what was saved
before stays as it was.  A reason of permission and a reason of input are two types, because the cures differ: for
the one somebody has to be allowed something, for the other the list has to be changed.

Two saves at once never make a cycle: a store runs one change at a time (`TeamStore.change`), and the rules are
asked inside of it.  A saved link is checked again when a run starts, because the target may have been archived,
given away or deleted since.
"""

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Final, Literal, Protocol, TypeAlias

from .errors import BylineError

__all__ = [
    "CODES",
    "AgentKind",
    "AgentRecord",
    "InputReason",
    "Links",
    "LinksForbiddenError",
    "LinksInvalidError",
    "LinksRefusedError",
    "MemoryTeams",
    "PermissionReason",
    "Reason",
    "Team",
    "TeamChange",
    "TeamError",
    "TeamStore",
    "broken_links",
]

AgentKind: TypeAlias = Literal["general", "super"]
"""A general agent can be linked as a subagent, a Super Agent cannot."""

_KINDS: Final = ("general", "super")


class TeamError(BylineError):
    """An agent is unknown or known already, or its values cannot be used."""


class LinksRefusedError(BylineError):
    """A list of references was refused; `reasons` says all that is wrong with it, in the order of `CODES`."""

    def __init__(self, parent: str, reasons: "Sequence[Reason]") -> None:
        self.parent: Final = parent
        self.reasons: Final = tuple(reasons)
        lines = "; ".join(str(reason) for reason in self.reasons)
        super().__init__(f"the subagents of {parent!r} were refused: {lines}")

    @property
    def permission(self) -> "tuple[PermissionReason, ...]":
        """The reasons that are a matter of permission."""
        return tuple(reason for reason in self.reasons if isinstance(reason, PermissionReason))

    @property
    def input(self) -> "tuple[InputReason, ...]":
        """The reasons that are a matter of the list itself."""
        return tuple(reason for reason in self.reasons if isinstance(reason, InputReason))


class LinksForbiddenError(LinksRefusedError):
    """Refused for want of permission, whatever else may be wrong."""


class LinksInvalidError(LinksRefusedError):
    """Refused for what the list says; no permission would help."""


@dataclass(frozen=True, slots=True)
class AgentRecord:
    """An agent as configured: `subagents` are the ids it refers to, in order.

    Raises `TeamError` for an empty id or owner and for a kind that is none.
    """

    id: str
    owner: str
    kind: AgentKind = "general"
    archived: bool = False
    subagents: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, value in (("id", self.id), ("owner", self.owner)):
            if not isinstance(value, str) or not value:
                raise TeamError(f"{name} of an agent is {value!r}, expected a text that is not empty")
        if self.kind not in _KINDS:
            raise TeamError(
                f"kind of agent {self.id!r} is {self.kind!r}, expected one of {', '.join(_KINDS)}"
            )
        object.__setattr__(self, "subagents", _ids(self.subagents))


def _ids(references: Iterable[str]) -> tuple[str, ...]:
    # A lone text is iterable too, and would be read as a list of its letters.
    ids = () if isinstance(references, str) else tuple(references)
    if isinstance(references, str) or not all(isinstance(id_, str) and id_ for id_ in ids):
        raise TeamError(f"subagents are {references!r}, expected a list of agent ids")
    return ids


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a reference cannot be saved, or cannot be run."""

    code: str
    """Stable: an entry of `CODES`."""
    parent: str
    target: str | None
    """The reference at fault; `None` when it is the parent itself."""
    message: str
    cycle: tuple[str, ...] = ()
    """The way round, from the parent to the parent."""

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class PermissionReason(Reason):
    """The caller may not."""

    __slots__ = ()


class InputReason(Reason):
    """Nobody could: the list has to be changed."""

    __slots__ = ()


Lookup: TypeAlias = Callable[[str], AgentRecord | None]


def _not_yours(parent: AgentRecord, targets: Sequence[str], caller: str, find: Lookup) -> Iterator[Reason]:
    # Neither message names the other owner: that is none of the caller's business.
    if parent.owner != caller:
        text = f"{parent.id!r} does not belong to {caller!r}: ask its owner to link, or link an agent of your own"
        yield PermissionReason("not_owner", parent.id, None, text)
    for target in dict.fromkeys(targets):
        if target != parent.id and (found := find(target)) is not None and found.owner != caller:
            text = f"{target!r} does not belong to {caller!r}: link an agent of your own"
            yield PermissionReason("not_owner", parent.id, target, text)


def _unknown(parent: AgentRecord, targets: Sequence[str], _caller: str, find: Lookup) -> Iterator[Reason]:
    for target in dict.fromkeys(targets):
        if find(target) is None:
            yield InputReason(
                "unknown", parent.id, target, f"there is no agent {target!r}: take it off the list"
            )


def _archived(parent: AgentRecord, targets: Sequence[str], _caller: str, find: Lookup) -> Iterator[Reason]:
    for target in dict.fromkeys(targets):
        if (found := find(target)) is not None and found.archived:
            text = f"{target!r} is archived: bring it back, or link another agent"
            yield InputReason("archived", parent.id, target, text)


def _super(parent: AgentRecord, targets: Sequence[str], _caller: str, find: Lookup) -> Iterator[Reason]:
    for target in dict.fromkeys(targets):
        if (found := find(target)) is not None and found.kind == "super":
            text = f"{target!r} is a Super Agent, which is nobody's subagent: link a general agent"
            yield InputReason("super_agent", parent.id, target, text)


def _itself(parent: AgentRecord, targets: Sequence[str], _caller: str, _find: Lookup) -> Iterator[Reason]:
    if parent.id in targets:
        text = f"{parent.id!r} refers to itself: take it off the list"
        yield InputReason("self_reference", parent.id, parent.id, text)


def _twice(parent: AgentRecord, targets: Sequence[str], _caller: str, _find: Lookup) -> Iterator[Reason]:
    for target, times in Counter(targets).items():
        if times > 1:
            text = f"{target!r} is on the list {times} times: name it once"
            yield InputReason("duplicate", parent.id, target, text)


def _cycle(parent: AgentRecord, targets: Sequence[str], _caller: str, find: Lookup) -> Iterator[Reason]:
    for target in dict.fromkeys(targets):
        way = () if target == parent.id else _way(target, parent.id, find)
        if way:
            shown = " -> ".join((parent.id, *way))
            text = f"{target!r} leads back to {parent.id!r} ({shown}): break the circle at one of these links"
            yield InputReason("cycle", parent.id, target, text, (parent.id, *way))


_RULES: Final = (
    ("not_owner", _not_yours),
    ("unknown", _unknown),
    ("archived", _archived),
    ("super_agent", _super),
    ("self_reference", _itself),
    ("duplicate", _twice),
    ("cycle", _cycle),
)

CODES: Final = tuple(code for code, _ in _RULES)
"""The codes of all reasons, in the order in which they are looked for and told."""


def _way(start: str, goal: str, find: Lookup) -> tuple[str, ...]:
    """Return the shortest way along saved links from `start` to `goal`, both included, or nothing."""
    came_from: dict[str, str | None] = {start: None}
    waiting = deque([start])
    while waiting:
        here = waiting.popleft()
        found = find(here)
        for target in () if found is None else found.subagents:
            if target in came_from:
                continue
            came_from[target] = here
            if target == goal:
                back: list[str] = []
                step: str | None = target
                while step is not None:
                    back.append(step)
                    step = came_from[step]
                return tuple(reversed(back))
            waiting.append(target)
    return ()


def broken_links(parent: AgentRecord, targets: Sequence[str], caller: str, find: Lookup) -> list[Reason]:
    """Return every reason why `caller` cannot have `parent` refer to `targets`; nothing when they are right.

    `find` gives the agent of an id as it is saved.
    """
    return [reason for _, rule in _RULES for reason in rule(parent, targets, caller, find)]


def _refuse(parent: str, reasons: Sequence[Reason]) -> None:
    if any(isinstance(reason, PermissionReason) for reason in reasons):
        raise LinksForbiddenError(parent, reasons)
    if reasons:
        raise LinksInvalidError(parent, reasons)


class TeamChange(Protocol):
    """The saved agents, while nobody else can change them."""

    def get(self, id: str) -> AgentRecord | None:  # noqa: A002 - it is one
        """Return the agent, as changed so far."""

    def put(self, agent: AgentRecord) -> None:
        """Save an agent."""

    def drop(self, id: str) -> None:  # noqa: A002 - it is one
        """Delete an agent."""


class TeamStore(Protocol):
    """Where agents are kept."""

    def change(self) -> AbstractContextManager[TeamChange]:
        """Enter the only change that is under way; all of it is saved on leaving, nothing if an error leaves it."""

    def look(self) -> AbstractContextManager[TeamChange]:
        """Enter a consistent view that is only read."""


class _MemoryChange:
    def __init__(self, saved: dict[str, AgentRecord]) -> None:
        self._saved: Final = saved
        self.changed: Final[dict[str, AgentRecord | None]] = {}

    def get(self, id: str) -> AgentRecord | None:  # noqa: A002
        return self.changed[id] if id in self.changed else self._saved.get(id)

    def put(self, agent: AgentRecord) -> None:
        self.changed[agent.id] = agent

    def drop(self, id: str) -> None:  # noqa: A002
        self.changed[id] = None


class MemoryTeams:
    """Agents in memory: for one process, and gone with it."""

    def __init__(self, agents: Iterable[AgentRecord] = ()) -> None:
        self._agents: Final = {agent.id: agent for agent in agents}
        self._lock: Final = threading.Lock()

    @contextmanager
    def change(self) -> Iterator[TeamChange]:
        """Enter the only change that is under way."""
        with self._lock:
            change = _MemoryChange(self._agents)
            yield change
            for id_, agent in change.changed.items():
                if agent is None:
                    self._agents.pop(id_, None)
                else:
                    self._agents[id_] = agent

    @contextmanager
    def look(self) -> Iterator[TeamChange]:
        """Enter a consistent view."""
        with self._lock:
            yield _MemoryChange(self._agents)


class Team:
    """The agents of an installation and their links.

    Every change has a caller, and what is not the caller's cannot be changed.
    """

    def __init__(self, store: TeamStore | None = None) -> None:
        self._store: Final[TeamStore] = MemoryTeams() if store is None else store

    def get(self, id: str) -> AgentRecord:  # noqa: A002
        """Return a saved agent; raises `TeamError` when there is none."""
        with self._store.look() as saved:
            return _known(saved, id)

    def add(self, agent: AgentRecord, *, caller: str) -> AgentRecord:
        """Save a new agent of the caller's, links included.

        Raises `TeamError` when the id is taken, `LinksRefusedError` for links that cannot be.
        """
        with self._store.change() as saved:
            if saved.get(agent.id) is not None:
                raise TeamError(f"there is an agent {agent.id!r} already: choose another id")
            _refuse(agent.id, broken_links(agent, agent.subagents, caller, saved.get))
            saved.put(agent)
        return agent

    def save(self, parent: str, subagents: Iterable[str], *, caller: str) -> AgentRecord:
        """Save the list of a parent's references and return the parent as it is now.

        Raises `TeamError` for a parent that is not there, `LinksForbiddenError` or `LinksInvalidError` with every
        reason why not; then nothing has changed.
        """
        targets = _ids(subagents)
        with self._store.change() as saved:
            agent = _known(saved, parent)
            _refuse(parent, broken_links(agent, targets, caller, saved.get))
            agent = replace(agent, subagents=targets)
            saved.put(agent)
        return agent

    def change(
        self,
        id: str,  # noqa: A002
        *,
        caller: str,
        owner: str | None = None,
        kind: AgentKind | None = None,
        archived: bool | None = None,
    ) -> AgentRecord:
        """Give an agent away, archive it or bring it back, change its kind.

        The links of others to it stay as saved: they are refused when a run starts.  Raises `TeamError` for an
        agent that is not there, `LinksForbiddenError` for one that is not the caller's.
        """
        with self._store.change() as saved:
            agent = _owned(saved, id, caller)
            agent = replace(
                agent,
                owner=agent.owner if owner is None else owner,
                kind=agent.kind if kind is None else kind,
                archived=agent.archived if archived is None else archived,
            )
            saved.put(agent)
        return agent

    def delete(self, id: str, *, caller: str) -> None:  # noqa: A002
        """Delete an agent; raises as `change` does."""
        with self._store.change() as saved:
            _owned(saved, id, caller)
            saved.drop(id)

    def check(self, parent: str, *, caller: str | None = None) -> AgentRecord:
        """Return the parent if its saved links still hold; to be asked when a run starts.

        "That it could be saved does not mean that it can run."  Without a caller the links are held to the owner of
        the parent: whether the user of a run may use them is the business of `byline.grants`.  Raises as `save`
        does, and `LinksInvalidError` (`archived`) for a parent that is archived itself.
        """
        with self._store.look() as saved:
            agent = _known(saved, parent)
            reasons = broken_links(
                agent, agent.subagents, agent.owner if caller is None else caller, saved.get
            )
        if agent.archived:
            text = f"{agent.id!r} is archived: bring it back before it runs"
            reasons.append(InputReason("archived", agent.id, None, text))
        _refuse(agent.id, sorted(reasons, key=lambda reason: CODES.index(reason.code)))
        return agent


@dataclass(frozen=True, slots=True)
class Links:
    """The saved links that the runs of an app are held to: `attribute(app, links=Links(team, "boss"))`."""

    team: Team
    parent: str

    def check(self) -> None:
        """Refuse a run whose links do not hold any more.  Raises as `Team.check` does."""
        self.team.check(self.parent)


def _known(saved: TeamChange, id_: str) -> AgentRecord:
    agent = saved.get(id_)
    if agent is None:
        raise TeamError(f"there is no agent {id_!r}")
    return agent


def _owned(saved: TeamChange, id_: str, caller: str) -> AgentRecord:
    agent = _known(saved, id_)
    if agent.owner != caller:
        text = f"{id_!r} does not belong to {caller!r}: ask its owner"
        raise LinksForbiddenError(id_, [PermissionReason("not_owner", id_, None, text)])
    return agent
