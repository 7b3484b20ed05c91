"""How a run ends: what becomes of each invocation that is still open, and what the run has cost."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from ag_ui.core import aggregate_token_usage

from ._lanes import Lane
from .events import TokenUsage
from .plain import plain

__all__ = ["CANCELLED", "INTERRUPT_LOST", "Account", "byline", "how_it_ended"]

CANCELLED: Final = "cancelled"
"""`SUBAGENT_ERROR.code` of an invocation that was cut off: with its run, or with what failed beside it."""

INTERRUPT_LOST: Final = "interrupt_lost"
"""`SUBAGENT_ERROR.code` of an invocation whose question never reached the user although the run went on."""


def how_it_ended(lanes: Sequence[Lane], *, interrupted: bool) -> Callable[[Lane], tuple[str, str] | None]:
    """Return how to end each invocation that is open when the run finished by itself.

    Suspended: all of them when the run waits for an answer; else those that wait for the user's next words, and
    their ancestors.  Otherwise a question that was raised in one, or below it, has been swallowed on its way up.
    What is left was still at work: it outlived the run.
    """
    waiting: set[Lane] = set()
    lost: set[Lane] = set()
    for lane in lanes:
        for marked, belongs in ((waiting, lane.suspended), (lost, bool(lane.questions))):
            ancestor: Lane | None = lane if belongs and lane.open else None
            while ancestor is not None and ancestor not in marked:
                marked.add(ancestor)
                ancestor = ancestor.parent

    def ending(lane: Lane) -> tuple[str, str] | None:
        if interrupted or lane in waiting:
            return None
        if lane in lost:
            return (
                INTERRUPT_LOST,
                "its question was swallowed by the caller, and the run went on without an answer",
            )
        return CANCELLED, "still at work when the run ended"

    return ending


class Account:
    """What the run's model calls cost, and what else was observed, by whose it was (`None`: the parent agent)."""

    def __init__(self) -> None:
        self._spent: Final[dict[str | None, list[TokenUsage]]] = {}
        self._noted: Final[dict[str, dict[tuple[str | None, str], Any]]] = {}

    def add(self, tag: str | None, usage: TokenUsage) -> None:
        """Add one model call."""
        self._spent[tag] = aggregate_token_usage([*self._spent.get(tag, ()), usage])

    def note(self, tag: str | None, kind: str, facts: Mapping[str, Any], key: str) -> None:
        """Keep an observation; a later one of its kind and key replaces it."""
        self._noted.setdefault(kind, {})[tag, key] = plain(facts)

    def terminal(
        self, extra: Mapping[str, Any] | None = None
    ) -> tuple[list[TokenUsage] | None, dict[str, Any] | None]:
        """Return `usage` and `metadata` of the run's terminal event.

        "A subagent's calls are the run's": one entry per provider and model, subagents included.  Whose they were is
        said in the metadata, where there was more than the parent agent.
        """
        total = _totals(aggregate_token_usage([one for many in self._spent.values() for one in many]))
        more = dict(extra or {})
        for kind, noted in self._noted.items():
            more[kind] = [{**_tagged(tag), **facts} for (tag, _), facts in noted.items()]
        if any(tag is not None for tag in self._spent):
            more["usage"] = [
                {**_tagged(tag), **one.model_dump(by_alias=True)}
                for tag, many in self._spent.items()
                for one in _totals(many)
            ]
        return total or None, byline(more)


def byline(metadata: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return what byline has to say of an event as its `metadata`; nothing where there is nothing to say."""
    return {"byline": plain(metadata)} if metadata else None


def _tagged(tag: str | None) -> dict[str, str]:
    return {} if tag is None else {"subagentRunId": tag}


def _totals(entries: Iterable[TokenUsage]) -> list[TokenUsage]:
    """Compute the totals, "`inputTokens` plus `outputTokens`": providers count theirs differently."""
    return [
        entry.model_copy(
            update={
                "total_tokens": None
                if entry.input_tokens is None or entry.output_tokens is None
                else entry.input_tokens + entry.output_tokens
            }
        )
        for entry in entries
    ]
