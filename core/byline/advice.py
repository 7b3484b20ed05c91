"""What is worth changing in a team: named rules about context modes, before a run or from a recording of one.

The question behind all of them is what a subagent should start from.  One that *carries on* the work needs what its
caller knows, and a fork continues the caller's prompt cache as long as model, tools and system prompt are the same.
One that *judges* or *answers a question* is better off, and cheaper, without.

Two sources give the same advice under the same name: what a team is made of (`advise`), and what a run of it did
(`advise_from`), which counts.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from .team_view import AgentView, Role, TeamView

if TYPE_CHECKING:
    from .ledger import Ledger

__all__ = ["RULES", "Advice", "Rule", "advise", "advise_from", "guess_role"]


class Rule(NamedTuple):
    """One piece of advice: why, and what to do."""

    level: Literal["warning", "info"]
    why: str
    cure: str


RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        "fork-own-model": Rule(
            "warning",
            "A prompt cache belongs to one model: a fork on another model reads the whole conversation again.",
            "let the fork use its parent's model, or isolate it",
        ),
        "fork-own-tools": Rule(
            "warning",
            "Tools come before everything else in a prompt: a fork whose tools differ loses the whole cache.",
            "give the parent the same tools, or isolate the subagent",
        ),
        "fork-own-prompt": Rule(
            "warning",
            "The system prompt comes before the messages: a fork with its own reads the conversation again.",
            "put what is special into the description of the task, or isolate the subagent",
        ),
        "compiled-fork": Rule(
            "warning",
            "A compiled fork inherits the conversation and not the prompt: its own tools or prompt lose the cache.",
            "declare the subagent instead of compiling it, or isolate it",
        ),
        "async-beside-fork": Rule(
            "warning",
            "Async subagents give the parent tools that its forks lack, so every fork loses the cache.",
            "keep async subagents and forks in different agents",
        ),
        "verifier-forks": Rule(
            "warning",
            "A verifier that inherits the conversation inherits the reasoning it is there to judge.",
            "isolate it and hand it what it should judge",
        ),
        "researchers-fork": Rule(
            "warning",
            "Researchers that fork in parallel each carry the whole history, though each has only its own question.",
            "isolate them",
        ),
        "worker-isolated": Rule(
            "info",
            "A worker that starts with the task alone has to gather again what its parent has already read.",
            "let it fork, or put what is known into the description of the task",
        ),
        "memory-isolated": Rule(
            "warning",
            "A memory agent that does not fork does not see the conversation it should remember.",
            "let it fork",
        ),
        "memory-unlimited": Rule(
            "warning",
            "A memory agent without limits on writing may edit anything.",
            "give it permissions that allow writing in one place",
        ),
        "mode-on-root": Rule(
            "warning",
            "A mode says how an agent is called, and nobody calls the root: ADK refuses the run.",
            "leave mode out, and give it to the subagents",
        ),
        "mode-without-caller": Rule(
            "warning",
            "A mode says how a model calls an agent; one without a model runs its sub-agents whatever their mode.",
            "make it a node of a Workflow, or leave mode out",
        ),
        "call-without-scheduler": Rule(
            "warning",
            "Tasks and single turns are scheduled by an LlmAgent or Workflow root; elsewhere the call comes to nothing.",
            "use a Workflow, or an LlmAgent as the root",
        ),
        "task-after-transfer": Rule(
            "warning",
            "A task is scheduled by who runs the delegating agent; after a transfer nobody does.",
            "give the task to the root, or make its caller a task as well",
        ),
        "task-in-task": Rule(
            "warning",
            "Before google-adk 2.12 a task cannot delegate a task.",
            "upgrade, or let the root delegate both",
        ),
        "role-guessed": Rule(
            "info",
            "A role was guessed from a name; what is said about it is only as good as the guess.",
            "declare it: --role NAME=ROLE",
        ),
        "path-missing": Rule(
            "info",
            "This version of the framework keeps something elsewhere; what was to be read there is not shown.",
            "the public facts are right; please report the version",
        ),
    }
)
"""The rules by name."""

_GUESSES: Final[tuple[tuple[Role, str], ...]] = (
    ("memory", r"memor"),
    ("verifier", r"verif|review|critic|audit|judge|grader|checker"),
    ("researcher", r"research|search|explor|investigat|scout"),
    ("worker", r"work|fix|implement|cod(?:e|er|ing)|build|refactor"),
)

_ASYNC_TOOLS: Final = frozenset(
    {"start_async_task", "check_async_task", "update_async_task", "cancel_async_task", "list_async_tasks"}
)

_WRITES: Final = frozenset({"write_file", "edit_file", "delete", "execute"})


@dataclass(frozen=True, slots=True)
class Advice:
    """One rule applied to one agent."""

    rule: str
    level: Literal["warning", "info"]
    agent: str
    message: str
    cure: str
    measured: bool = False
    """Whether it rests on a recording."""

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {
            name: getattr(self, name) for name in ("rule", "level", "agent", "message", "cure", "measured")
        }


def guess_role(agent: AgentView) -> Role | None:
    """Return what an agent's name, and where that says nothing its description, sounds like."""
    for text in (agent.name, agent.description or ""):
        for role, words in _GUESSES:
            if re.search(words, text, re.IGNORECASE):
                return role
    return None


def advise(team: TeamView) -> list[Advice]:
    """Return the advice that a team's make-up gives rise to, in the order of its tree."""
    found = [_advice("path-missing", team.root.name, f"cannot read {gap}") for gap in team.gaps]
    found += [
        Advice(doubt.rule, RULES[doubt.rule].level, doubt.agent, doubt.message, doubt.cure)
        for doubt in team.doubts
    ]
    for agent, caller in team.root.walk():
        if caller is None:
            continue
        for rule in _STATIC:
            found += rule(agent, caller)
    return found


def advise_from(team: TeamView, ledger: "Ledger") -> list[Advice]:
    """Return the advice that a recorded run of `team` gives rise to."""
    names = {agent.name: agent for agent, _ in team.root.walk()}
    invocations = {branch.invocation.id: branch.invocation for branch in ledger.tree()}
    caches: dict[str, list[Mapping[str, Any]]] = {}
    for run in ledger.runs:
        for entry in run.observed.get("promptCache", ()):
            caches.setdefault(str(entry.get("subagentRunId")), []).append(entry)
    found: list[Advice] = []
    for name in dict.fromkeys(invocation.name or "" for invocation in invocations.values()):
        mine = [one for one in invocations.values() if one.name == name]
        entries = [entry for one in mine for entry in caches.get(one.id, ())]
        agent = names.get(name, AgentView(name, "subagent"))
        found += _from_prefixes(agent, mine, entries)
        found += _from_history(agent, mine)
        found += _from_repetition(agent, mine, entries)
    return found


def _advice(rule: str, agent: str, message: str, *, measured: bool = False, guessed: bool = False) -> Advice:
    known = RULES[rule]
    level = "info" if guessed else known.level
    return Advice(rule, level, agent, message, known.cure, measured)


# ------------------------------------------------------------------ make-up


def _forks(agent: AgentView) -> bool:
    return agent.contract.get("context") == "fork"


def _prefix(agent: AgentView, caller: AgentView) -> Iterator[Advice]:
    """What a fork has of its own, compared with what its caller really has."""
    if not _forks(agent):
        return
    own, theirs = agent.value("tools"), caller.value("tools")
    told: list[tuple[str, str]] = []
    if isinstance(own, Sequence) and isinstance(theirs, Sequence) and list(own) != list(theirs):
        missing = [name for name in theirs if name not in own]
        added = [name for name in own if name not in theirs]
        what = f"{_listed('lacks', missing)}{' and ' if missing and added else ''}{_listed('adds', added)}"
        what = what or "has them in another order"
        only_async = bool(missing) and set(missing) <= _ASYNC_TOOLS and not added
        told.append(("async-beside-fork" if only_async else "fork-own-tools", f"its tools differ: {what}"))
    if None not in (agent.value("prompt"), caller.value("prompt")) and agent.value("prompt") != caller.value(
        "prompt"
    ):
        told.append(("fork-own-prompt", "its system prompt differs from its parent's"))
    if None not in (agent.value("model"), caller.value("model")) and agent.value("model") != caller.value(
        "model"
    ):
        told.append(
            ("fork-own-model", f"it runs on {agent.value('model')}, its parent on {caller.value('model')}")
        )
    if agent.kind == "compiled subagent":
        told = [("compiled-fork", "; ".join(text for _, text in told))] if told else []
    for rule, text in told:
        yield _advice(rule, agent.name, text)


def _listed(verb: str, names: Sequence[str]) -> str:
    return f"{verb} {', '.join(names)}" if names else ""


def _role_fits(agent: AgentView, caller: AgentView) -> Iterator[Advice]:
    role, guessed = _role_of(agent)
    if role is None or agent.kind == "async subagent":
        return
    if "context" not in agent.contract:
        return
    fork = _forks(agent)
    told: list[tuple[str, str]] = []
    if role == "verifier" and fork:
        told.append(("verifier-forks", "it judges, and it inherits the conversation it judges"))
    if role == "researcher" and fork:
        others = [
            one.name
            for one in caller.members
            if one is not agent and _forks(one) and _role_of(one)[0] == role
        ]
        if others:
            told.append(
                (
                    "researchers-fork",
                    f"it researches beside {', '.join(others)}, and each carries the history",
                )
            )
    if role == "worker" and not fork:
        told.append(("worker-isolated", "it carries on the work, and starts without what was gathered"))
    if role == "memory":
        if not fork:
            told.append(("memory-isolated", "it should remember a conversation that it does not see"))
        writes = sorted(_WRITES & set(agent.value("tools") or ()))
        if writes and not agent.value("permissions"):
            told.append(("memory-unlimited", f"nothing limits {', '.join(writes)}"))
    if guessed and told:
        yield _advice("role-guessed", agent.name, f"taken for a {role} by its name or description")
    for rule, text in told:
        yield _advice(rule, agent.name, text, guessed=guessed)


def _role_of(agent: AgentView) -> tuple[Role | None, bool]:
    """Return an agent's role and whether it is only a guess."""
    if agent.role is not None:
        return agent.role.value, False
    return guess_role(agent), True


_STATIC: Final[tuple[Callable[[AgentView, AgentView], Iterable[Advice]], ...]] = (_prefix, _role_fits)


# ------------------------------------------------------------- a recording

_BROKEN: Final = {
    "model": "fork-own-model",
    "tools": "fork-own-tools",
    "system": "fork-own-prompt",
}


def _from_prefixes(
    agent: AgentView, mine: Sequence[Any], entries: Sequence[Mapping[str, Any]]
) -> Iterator[Advice]:
    forks = {one.id for one in mine if (one.contract or {}).get("context") == "fork"}
    parts: dict[str, list[Mapping[str, Any]]] = {}
    for entry in entries:
        difference = entry.get("firstDifference")
        if (
            entry.get("subagentRunId") in forks
            and entry.get("prefix") == "broken"
            and isinstance(difference, Mapping)
        ):
            parts.setdefault(str(difference.get("part")), []).append(entry)
    for part, broken in parts.items():
        rule = "compiled-fork" if agent.kind == "compiled subagent" else _BROKEN.get(part, "fork-own-prompt")
        first = [entry["firstRequest"] for entry in broken if isinstance(entry.get("firstRequest"), Mapping)]
        text = f"in {len(broken)} of {len(forks)} invocations the parent's prefix ended at the {part}"
        if first:
            read = sum(int(one.get("inputTokens", 0)) for one in first)
            cached = sum(int(one.get("cachedInputTokens", 0)) for one in first)
            text += f"; {cached} of {read} input tokens of their first requests came from the cache"
        yield _advice(rule, agent.name, text, measured=True)


def _from_history(agent: AgentView, mine: Sequence[Any]) -> Iterator[Advice]:
    role, guessed = _role_of(agent)
    carried = [int((one.contract or {}).get("inheritedMessages") or 0) for one in mine]
    forks = [count for count in carried if count]
    if role == "researcher" and len(forks) > 1:
        text = f"{len(forks)} forks carried {sum(forks)} inherited messages in all"
        yield _advice("researchers-fork", agent.name, text, measured=True, guessed=guessed)
    if role == "verifier" and forks:
        text = f"it inherited {sum(forks)} messages of the conversation it judged"
        yield _advice("verifier-forks", agent.name, text, measured=True, guessed=guessed)


def _from_repetition(
    agent: AgentView, mine: Sequence[Any], entries: Sequence[Mapping[str, Any]]
) -> Iterator[Advice]:
    repeated = [
        call for entry in entries for call in entry.get("repeatedCalls") or () if isinstance(call, Mapping)
    ]
    isolated = [one for one in mine if (one.contract or {}).get("context") == "isolated"]
    if repeated and isolated:
        names = sorted({str(call.get("name")) for call in repeated})
        text = f"it repeated {len(repeated)} calls that its parent had made with the same arguments: {', '.join(names)}"
        yield _advice("worker-isolated", agent.name, text, measured=True)
