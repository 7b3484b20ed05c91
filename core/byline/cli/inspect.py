"""`byline inspect`: a team before it runs, and what is worth changing in it."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import click

from byline.advice import RULES, Advice, advise, advise_from
from byline.artifacts import Artifacts
from byline.cli._target import load
from byline.completion import Point, completion, links
from byline.errors import BylineError
from byline.grants import peek
from byline.inspection import describe
from byline.ledger import Ledger
from byline.reading import ReadError, records, source
from byline.stores import open_store
from byline.team_view import FACTS, ROLES, AgentView, Fact, TeamView

__all__ = ["inspect", "mermaid", "text"]

_WIDTH: Final = 100
"""How much of a value is shown, in characters."""


@click.command()
@click.argument("target", metavar="MODULE:TARGET")
@click.option(
    "--format", "form", default="text", show_default=True, type=click.Choice(["text", "json", "mermaid"])
)
@click.option(
    "--role",
    "roles",
    multiple=True,
    metavar="NAME=ROLE",
    help=f"What a subagent is there for: {', '.join(ROLES)} (repeatable).",
)
@click.option(
    "--run",
    "recording",
    metavar="FILE",
    help="A recording of the team: the advice then also rests on what happened in it.",
)
@click.option(
    "--grant", "token", metavar="TOKEN", help="The grant of that run, which says who was permitted what."
)
@click.option(
    "--artifacts",
    "store",
    metavar="URL",
    help="The store with what the parent of that run was told: sqlite:///FILE or postgresql://...",
)
@click.option("--user", metavar="NAME", help="Whose artifacts; without it, whose the grant is.")
def inspect(
    target: str,
    form: str,
    roles: Sequence[str],
    recording: str | None,
    token: str | None,
    store: str | None,
    user: str | None,
) -> None:
    """Show the team behind MODULE:TARGET as a tree, without running it.

    Agents, models, tools, middleware, skills, permissions, and how each is called.  Every value says where it was
    read: public, private, declared by you, or opaque with the reason.
    """
    try:
        team = describe(load(target), roles=_roles(roles))
        advice = advise(team)
        ledger = None if recording is None else _ledger(recording)
        if ledger is not None:
            advice = [*advise_from(team, ledger), *advice]
        grant = None if token is None else peek(token)
        points = completion(team, ledger, grant, None if store is None else _artifacts(store), user=user)
        if ledger is None and token is None:
            points = points[:2]  # the links themselves; the rest is about a run
    except BylineError as fault:
        raise click.ClickException(str(fault)) from fault
    if form == "json":
        told = {**team.to_json(), "advice": [one.to_json() for one in advice]}
        told["links"] = {name: list(members) for name, members in links(team).items()}
        told["complete"] = [point._asdict() for point in points]
        click.echo(json.dumps(told, indent=2, ensure_ascii=False))
    else:
        lines = [*text(team, advice), *_complete(points)] if form == "text" else mermaid(team, advice)
        click.echo("\n".join(lines))


def _roles(given: Sequence[str]) -> dict[str, str]:
    roles = {}
    for one in given:
        name, _, role = one.rpartition("=")
        if not name or not role:
            raise click.UsageError(f"{one!r} declares no role: expected NAME=ROLE, as in reviewer=verifier")
        roles[name] = role
    return roles


def _artifacts(url: str) -> Artifacts:
    scheme, _, file = url.partition(":///")
    if scheme.startswith("sqlite") and not Path(file).is_file():  # a look at it must not make one
        raise click.ClickException(f"there is no store {url}: give the URL that open_store() was given")
    return Artifacts(open_store(url).artifacts)


def _ledger(recording: str) -> Ledger:
    ledger = Ledger()
    try:
        with source(recording) as chunks:
            for record in records(chunks):
                if record.data is not None:
                    ledger.feed(record.data)
    except ReadError as fault:
        raise click.ClickException(str(fault)) from fault
    if not ledger.runs:
        raise click.ClickException(
            f"{Path(recording).name} has no run in it: expected a recording of AG-UI events"
        )
    return ledger


# ------------------------------------------------------------------- text


def text(team: TeamView, advice: Sequence[Advice]) -> Iterator[str]:
    """Yield the lines of the tree, the advice below it, and what could not be seen."""
    yield f"{team.framework} {team.version}"
    yield from _tree(team.root, "", "")
    for heading, measured in (("from the recording", True), ("advice", False)):
        chosen = [one for one in advice if one.measured is measured]
        if chosen:
            yield ""
            yield f"{heading}:"
        for one in chosen:
            yield f"  {one.level}  {one.rule}  {_line(one.agent)}: {_line(one.message)}"
            yield f"      {RULES[one.rule].why}"
            yield f"      {one.cure}"
    yield ""
    yield "not to be seen in any team of this kind:"
    for limit in team.limits:
        yield f"  {limit}"


def _complete(points: Sequence[Point]) -> Iterator[str]:
    """Yield the list of what to confirm: what holds, what does not, and what cannot be told from here."""
    yield ""
    yield "links:" if len(points) == 2 else "complete?"
    for point in points:
        sign = {True: "yes", False: "no", None: "?"}[point.holds]
        yield f"  {sign:<4}{point.point}"
        yield f"      {_line(point.evidence)}"


def _tree(agent: AgentView, first: str, rest: str) -> Iterator[str]:
    via = "" if agent.via is None else f"  via {_line(agent.via)}"
    role = "" if agent.role is None else f"  role {agent.role.value} ({agent.role.source})"
    yield f"{first}{_line(agent.name)}  ({agent.kind}){via}{role}"
    inner = rest + ("│ " if agent.members else "  ")
    if agent.contract:
        axes = [f"{axis} {_value(value)}" for axis, value in agent.contract.items() if axis != "framework"]
        yield f"{inner}contract: {', '.join(axes)}"
    if agent.description:
        yield f"{inner}description: {_line(agent.description)}"
    for key in FACTS:
        if key in agent.facts:
            yield f"{inner}{key}: {_told(agent.facts[key])}"
    for index, member in enumerate(agent.members):
        last = index == len(agent.members) - 1
        yield from _tree(member, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))


def _told(fact: Fact) -> str:
    if fact.source == "opaque":
        return f"[opaque: {_line(fact.reason or 'no reason given')}]"
    reason = f"; {_line(fact.reason)}" if fact.reason else ""
    return f"{_value(fact.value)}  [{fact.source}{reason}]"


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _line(value) or "(none)"
    if isinstance(value, list):
        return _line(", ".join(map(_value, value))) or "(none)"
    return _line(json.dumps(value, ensure_ascii=False))


def _line(value: str) -> str:
    """Return other people's text as part of one line: no line breaks, no control characters, not too long."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in value).split())
    return plain if len(plain) <= _WIDTH else f"{plain[: _WIDTH - 1]}…"


# ---------------------------------------------------------------- mermaid


def mermaid(team: TeamView, advice: Sequence[Advice]) -> Iterator[str]:
    """Yield the lines of a flowchart: one node an agent, one arrow a way of delegating; what has a warning is marked."""
    warned = {one.agent for one in advice if one.level == "warning"}
    yield "flowchart TD"
    ids: dict[int, str] = {}
    for agent, caller in team.root.walk():
        ids[id(agent)] = own = f"a{len(ids)}"
        model = agent.value("model")
        label = "<br/>".join(_safe(part) for part in (agent.name, agent.kind, model) if part)
        yield f'  {own}["{label}"]' + (":::warned" if agent.name in warned else "")
        if caller is not None:
            mode = agent.contract.get("mode", "")
            yield f'  {ids[id(caller)]} -- "{_safe(" ".join(filter(None, (agent.via, mode))))}" --> {own}'
    if warned:
        yield "  classDef warned stroke:#c00,stroke-width:2px"


def _safe(text: str) -> str:
    """Return other people's text as part of a label: nothing in it can end the label or become markup."""
    return "".join(c if c.isalnum() or c in " _-.:,/()" else f"#{ord(c)};" for c in _line(text))
