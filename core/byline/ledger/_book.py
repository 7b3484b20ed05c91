"""Runs, invocations, state and everything else that is no message: what a ledger writes down."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, Literal

from byline import state
from byline.chunks import Wire
from byline.ledger._items import Mark, Place, RejectedError
from byline.ledger._views import (
    Custom,
    Failure,
    Invocation,
    Raw,
    Run,
    RunStatus,
    Segment,
    StateChange,
    Step,
)
from byline.schema import shown
from byline.state import Json

__all__ = ["Account", "Book"]

_RUN_STATUS: Final[Mapping[str, RunStatus]] = {
    "success": "finished",
    "interrupt": "interrupted",
    "cancelled": "cancelled",
}


@dataclass(slots=True)
class Account:
    """What is written down under one owner, besides its messages."""

    invocation: Invocation
    """What is known of it, but for its children."""
    children: dict[str, None] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    changes: list[StateChange] = field(default_factory=list)
    customs: list[Custom] = field(default_factory=list)
    raws: list[Raw] = field(default_factory=list)


class Book:
    """Takes wire events without chunks, in order; expects events that a consumer may accept."""

    def __init__(self) -> None:
        self.accounts: dict[str | None, Account] = {None: Account(Invocation(id=""))}
        """By owner, the parent agent's first and then in the order in which their ids appeared."""
        self.runs: list[Run] = []
        self.state: Json = {}
        self.interrupts: tuple[Wire, ...] = ()
        """What the last run that finished waits for; a run that fails has answered nothing."""
        self._active: dict[str, None] = {}
        self._open_steps: dict[tuple[str | None, str], int] = {}

    def apply(self, event: Wire, place: Place) -> None:
        """Write down what `event` says.

        Raises `RejectedError` for one that has no place here, and `state.PatchError` for a `STATE_DELTA` that does
        not apply: the state stays as it was.
        """
        handler = self._HANDLERS.get(event["type"])
        if handler is not None:
            handler(self, event, Mark(*place))
        elif "subagentRunId" in event:
            self._account(event["subagentRunId"])

    def check_phase(self, event: Wire) -> None:
        """Raise `RejectedError` unless the stream is where `event` may come: in a run, or between two."""
        type_, last = event["type"], self.runs[-1].status if self.runs else None
        if last == "running":
            if type_ == "RUN_STARTED":
                raise RejectedError("run-nested", f"run {self.runs[-1].run_id!r} is still under way")
        elif type_ != "RUN_STARTED" and (type_ != "RUN_ERROR" or last == "failed"):
            rule = {None: "first-event", "failed": "after-error"}.get(last, "after-finished")
            raise RejectedError(rule, f"{type_} belongs to no run: none is under way")

    def check_all_closed(self) -> None:
        """Raise `RejectedError` while something is open, as at the end of a run nothing may be."""
        for _, name in self._open_steps:
            raise RejectedError("step-left-open", f"step {shown(name)} is still open")
        for id_ in self._active:
            raise RejectedError("subagent-left-open", f"subagent {shown(id_)} is still active")

    def leave_run(self, mark: Mark, status: RunStatus, **facts: Any) -> None:
        """End the run that is under way, if one is; what is still at work in it has no more to say."""
        for id_ in tuple(self._active):
            self._end_invocation(id_, mark, status="abandoned")
        self._open_steps.clear()
        if self._under_way():
            self.runs[-1] = replace(self.runs[-1], status=status, end=mark, **facts)

    def _under_way(self) -> bool:
        return bool(self.runs) and self.runs[-1].status == "running"

    def _account(self, owner: str | None) -> Account:
        account = self.accounts.get(owner)
        if account is None:
            account = self.accounts[owner] = Account(Invocation(id=owner or ""))
        return account

    def _author(self, event: Wire) -> Account:
        return self._account(event.get("subagentRunId"))

    def learn(self, attributed: Iterable[Wire]) -> None:
        """Open an account for everyone whose tag is on a message or an interrupt."""
        for thing in attributed:
            self._author(thing)

    # -- runs -----------------------------------------------------------------------------------------------------

    def _run_started(self, event: Wire, mark: Mark) -> None:
        given = event.get("input", {})
        if "state" in given:
            self.state = given["state"]
        self.learn(given.get("messages", ()))
        self.runs.append(
            Run(
                thread_id=event["threadId"],
                run_id=event["runId"],
                parent_run_id=event.get("parentRunId"),
                start=mark,
            )
        )

    def _run_finished(self, event: Wire, mark: Mark) -> None:
        outcome = event.get("outcome", {})
        self.interrupts = tuple(outcome.get("interrupts", ()))
        self.learn(self.interrupts)
        self.leave_run(
            mark,
            _RUN_STATUS.get(outcome.get("type"), "finished"),
            result=event.get("result"),
            interrupts=self.interrupts,
            **_usage(event),
        )

    def _run_error(self, event: Wire, mark: Mark) -> None:
        if not self._under_way():
            self.runs.append(Run(thread_id=None, run_id=None, start=mark))
        failure = Failure(event["message"], event.get("code"))
        self.leave_run(mark, "failed", failure=failure, **_usage(event))

    def _messages_snapshot(self, event: Wire, _mark: Mark) -> None:
        self.learn(event["messages"])

    # -- invocations ----------------------------------------------------------------------------------------------

    def _subagent_started(self, event: Wire, mark: Mark) -> None:
        id_, parent = event["subagentRunId"], event.get("parentSubagentRunId")
        metadata = event.get("metadata", {})
        contract = metadata.get("byline")
        if id_ in self._active:
            raise RejectedError("subagent-already-active", f"subagent {shown(id_)} is active already")
        if self._announced_in_this_run(id_):
            raise RejectedError("subagent-id-reused", f"subagent {shown(id_)} has ended in this run")
        if parent is not None and not self._announced_in_this_run(parent):
            raise RejectedError(
                "subagent-parent-unknown", f"no subagent {shown(parent)} was announced in this run"
            )
        account = self._account(id_)
        self._account(account.invocation.parent).children.pop(id_, None)
        self._account(parent).children[id_] = None
        account.invocation = replace(
            account.invocation,
            announced=True,
            name=event["name"],
            description=event.get("description"),
            parent=parent,
            spawning_call=event.get("parentToolCallId"),
            spawning_message=event.get("parentMessageId"),
            status="running",
            contract=contract if isinstance(contract, Mapping) else None,
            metadata=metadata,
            segments=(*account.invocation.segments, Segment(len(self.runs) - 1, mark)),
        )
        self._active[id_] = None

    def _announced_in_this_run(self, id_: str) -> bool:
        account = self.accounts.get(id_)
        segments = () if account is None else account.invocation.segments
        return bool(segments) and segments[-1].run == len(self.runs) - 1

    def _subagent_finished(self, event: Wire, mark: Mark) -> None:
        outcome = event.get("outcome", {})
        suspended = outcome.get("type") == "suspended"
        self._end_invocation(
            event["subagentRunId"],
            mark,
            status="suspended" if suspended else "finished",
            result=event.get("result"),
            failure=None,
            interrupts=tuple(outcome.get("interruptIds", ())) if suspended else (),
            end_metadata=event.get("metadata", {}),
        )

    def _subagent_error(self, event: Wire, mark: Mark) -> None:
        self._end_invocation(
            event["subagentRunId"],
            mark,
            status="cancelled" if event.get("code") == "cancelled" else "failed",
            result=None,
            failure=Failure(event["message"], event.get("code")),
            interrupts=(),
            end_metadata=event.get("metadata", {}),
        )

    def _end_invocation(self, id_: str, mark: Mark, **facts: Any) -> None:
        if id_ not in self._active:
            ended = self._announced_in_this_run(id_)
            rule = "subagent-already-ended" if ended else "subagent-not-announced"
            raise RejectedError(rule, f"subagent {shown(id_)} is not active in this run")
        del self._active[id_]
        account = self._account(id_)
        segments = account.invocation.segments
        ended_segments = (*segments[:-1], replace(segments[-1], end=mark))
        account.invocation = replace(account.invocation, segments=ended_segments, **facts)

    # -- what an owner does besides messages ----------------------------------------------------------------------

    def _step_started(self, event: Wire, mark: Mark) -> None:
        key = (event.get("subagentRunId"), event["stepName"])
        if key in self._open_steps:
            raise RejectedError("step-already-open", f"step {shown(key[1])} of this owner is open already")
        steps = self._author(event).steps
        self._open_steps[key] = len(steps)
        steps.append(Step(name=key[1], start=mark, end=None))

    def _step_finished(self, event: Wire, mark: Mark) -> None:
        key = (event.get("subagentRunId"), event["stepName"])
        if key not in self._open_steps:
            others = any(name == key[1] for _, name in self._open_steps)
            rule = "step-owner" if others else "step-not-open"
            raise RejectedError(rule, f"step {shown(key[1])} of this owner is not open")
        at, steps = self._open_steps.pop(key), self._author(event).steps
        steps[at] = replace(steps[at], end=mark)

    def _state_snapshot(self, event: Wire, mark: Mark) -> None:
        self.state = event["snapshot"]
        self._changed(event, "snapshot", event["snapshot"], mark)

    def _state_delta(self, event: Wire, mark: Mark) -> None:
        self.state = state.apply(self.state, event["delta"])
        self._changed(event, "delta", event["delta"], mark)

    def _changed(self, event: Wire, kind: Literal["snapshot", "delta"], value: Json, mark: Mark) -> None:
        change = StateChange(kind=kind, value=value, at=mark)
        self._author(event).changes.append(change)

    def _custom(self, event: Wire, mark: Mark) -> None:
        custom = Custom(name=event["name"], value=event["value"], at=mark)
        self._author(event).customs.append(custom)

    def _raw(self, event: Wire, mark: Mark) -> None:
        raw = Raw(event=event["event"], source=event.get("source"), at=mark)
        self._author(event).raws.append(raw)

    _HANDLERS: ClassVar[Mapping[str, Callable[["Book", Wire, Mark], None]]] = {
        "RUN_STARTED": _run_started,
        "RUN_FINISHED": _run_finished,
        "RUN_ERROR": _run_error,
        "MESSAGES_SNAPSHOT": _messages_snapshot,
        "SUBAGENT_STARTED": _subagent_started,
        "SUBAGENT_FINISHED": _subagent_finished,
        "SUBAGENT_ERROR": _subagent_error,
        "STEP_STARTED": _step_started,
        "STEP_FINISHED": _step_finished,
        "STATE_SNAPSHOT": _state_snapshot,
        "STATE_DELTA": _state_delta,
        "CUSTOM": _custom,
        "RAW": _raw,
    }
    """What each event does to the book; what it does to the messages is `Conversation`'s table."""


def _usage(event: Wire) -> dict[str, Any]:
    """Return the run's usage, and what byline's own metadata has by owner: its split, and what else was observed."""
    facts: dict[str, Any] = {"usage": tuple(event.get("usage", ()))}
    byline = event.get("metadata", {}).get("byline")
    lists = (
        {kind: told for kind, told in byline.items() if isinstance(told, list)}
        if isinstance(byline, Mapping)
        else {}
    )
    by_owner: dict[str | None, list[Wire]] = {}
    observed: dict[str, tuple[Wire, ...]] = {}
    for kind, told in lists.items():
        entries = [
            entry
            for entry in told
            if isinstance(entry, Mapping) and isinstance(entry.get("subagentRunId"), str | None)
        ]
        if kind != "usage":
            observed[kind] = tuple(entries)
            continue
        for entry in entries:
            counts = {member: count for member, count in entry.items() if member != "subagentRunId"}
            by_owner.setdefault(entry.get("subagentRunId"), []).append(counts)
    facts["usage_by_owner"] = {owner: tuple(entries) for owner, entries in by_owner.items()}
    facts["observed"] = observed
    return facts
