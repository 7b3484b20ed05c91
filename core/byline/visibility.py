"""What of a run a client gets to see.

`attributed`
    Everything.
`inline`
    The invocation's output as its caller's own: no lifecycle, no tag.  For clients older than 1.0, which die on
    types they do not know.  Messages keep their own ids, so parallel texts still never share one.
`hidden`
    Its words, calls and lifecycle stay out; the call that spawned it and that call's result stay, being the
    caller's.

State, usage and interrupts pass in every visibility, tagged with the nearest ancestor that was announced; a child
of an invocation that is not announced names that ancestor as its parent.  Recorders, ledgers and watchers see the
stream before this module: hiding a subagent blinds nobody but the client.
"""

from collections.abc import Callable
from typing import Any, Final

from .events import (
    BaseEvent,
    EventType,
    Interrupt,
    RunErrorEvent,
    RunFinishedEvent,
    StepFinishedEvent,
    StepStartedEvent,
    SubagentFinishedEvent,
    SubagentFinishedSuspendedOutcome,
    SubagentStartedEvent,
)
from .hooks import Visibility

__all__ = ["Lens"]

_STATE: Final = frozenset({EventType.STATE_SNAPSHOT, EventType.STATE_DELTA})
_STEPS: Final = frozenset({EventType.STEP_STARTED, EventType.STEP_FINISHED})
_KEPT_TRACK_OF: Final = frozenset({SubagentStartedEvent, StepStartedEvent, StepFinishedEvent})
"""What changes what is known here, also while everything is shown as it is."""
_ENDS: Final = frozenset({EventType.SUBAGENT_FINISHED, EventType.SUBAGENT_ERROR})


class _Shown:
    """How one invocation is shown, and as whose."""

    __slots__ = ("as_", "call", "hidden", "interrupts", "message")

    def __init__(self, as_: str | None, *, hidden: bool, call: str | None, message: str | None) -> None:
        self.as_ = as_
        self.hidden = hidden
        self.call = call
        self.message = message
        self.interrupts: list[str] = []


class Lens:
    """Turns the attributed stream of one run into what the client sees.

    `decide` is asked once per invocation, with its `SUBAGENT_STARTED`.
    """

    def __init__(self, decide: Callable[[SubagentStartedEvent], Visibility]) -> None:
        self._decide: Final = decide
        self._changed: Final[dict[str, _Shown]] = {}  # the invocations that are not shown as they are
        self._interrupts: Final[dict[str, list[str]]] = {}  # of those, by the ancestor they pass to
        self._out_of_sight: Final[set[str]] = set()  # tool calls that were not shown
        self._steps: Final[dict[tuple[str | None, str], int]] = {}

    def view(self, events: list[BaseEvent]) -> list[BaseEvent]:
        """Return what the client sees of `events`."""
        if not self._changed and _KEPT_TRACK_OF.isdisjoint(map(type, events)):
            return events  # words, most of the time
        see = self.see
        return [seen for event in events if (seen := see(event)) is not None]

    def see(self, event: BaseEvent) -> BaseEvent | None:
        """Return what the client sees of `event`: the event, a changed copy, or nothing."""
        if not self._changed and type(event) not in _KEPT_TRACK_OF:
            return event
        if isinstance(event, SubagentStartedEvent):
            return self._announced(event)
        if not self._changed:
            return self._step(event) if event.type in _STEPS else event
        if isinstance(event, RunFinishedEvent):
            return self._finished(event)
        if isinstance(event, RunErrorEvent):
            return event.model_copy(update=self._account(event.metadata))
        tag = getattr(event, "subagent_run_id", None)
        shown = None if tag is None else self._changed.get(tag)
        if shown is None:
            if isinstance(event, SubagentFinishedEvent):
                return self._suspended(event)
            return self._step(event) if event.type in _STEPS else event
        if event.type in _ENDS:
            if isinstance(event, SubagentFinishedEvent) and shown.as_ is not None:
                ids = getattr(event.outcome, "interrupt_ids", None) or []
                self._interrupts.setdefault(shown.as_, []).extend(ids)
            return None
        if shown.hidden and event.type not in _STATE:
            if event.type is EventType.TOOL_CALL_START:
                self._out_of_sight.add(event.tool_call_id)  # type: ignore[attr-defined]
            return None
        event = event.model_copy(update={"subagent_run_id": shown.as_})
        return self._step(event) if event.type in _STEPS else event

    def _announced(self, event: SubagentStartedEvent) -> BaseEvent | None:
        parent = (
            None if event.parent_subagent_run_id is None else self._changed.get(event.parent_subagent_run_id)
        )
        ancestor = event.parent_subagent_run_id if parent is None else parent.as_
        call, message = event.parent_tool_call_id, event.parent_message_id
        if (
            call in self._out_of_sight and parent is not None
        ):  # what the client can see is the hidden one's own call
            call, message = parent.call, parent.message
        visibility = self._decide(event)
        if visibility != "attributed":
            self._changed[event.subagent_run_id] = _Shown(
                ancestor, hidden=visibility == "hidden", call=call, message=message
            )
            return None
        if parent is None:
            return event
        return event.model_copy(
            update={
                "parent_subagent_run_id": ancestor,
                "parent_tool_call_id": call,
                "parent_message_id": message,
            }
        )

    def _step(self, event: BaseEvent) -> BaseEvent | None:
        """Count steps under the owner they are shown with: two owners shown as one may be in the same step."""
        if isinstance(event, StepStartedEvent):
            key = (event.subagent_run_id, event.step_name)
            self._steps[key] = self._steps.get(key, 0) + 1
            return event if self._steps[key] == 1 else None
        if isinstance(event, StepFinishedEvent):
            key = (event.subagent_run_id, event.step_name)
            self._steps[key] = self._steps.get(key, 1) - 1
            if self._steps[key]:
                return None
            del self._steps[key]
        return event

    def _suspended(self, event: SubagentFinishedEvent) -> BaseEvent:
        """A shown ancestor takes over the interrupts of what is not shown below it."""
        taken = self._interrupts.pop(event.subagent_run_id, None)
        if not taken or not isinstance(event.outcome, SubagentFinishedSuspendedOutcome):
            return event
        own = event.outcome.interrupt_ids or []
        outcome = SubagentFinishedSuspendedOutcome(interrupt_ids=[*own, *taken])
        return event.model_copy(update={"outcome": outcome})

    def _finished(self, event: RunFinishedEvent) -> BaseEvent:
        update: dict[str, Any] = {}
        outcome = event.outcome
        pending = getattr(outcome, "pending_tool_call_ids", None)
        if pending and outcome is not None:
            seen = [call for call in pending if call not in self._out_of_sight]
            update["outcome"] = outcome.model_copy(update={"pending_tool_call_ids": seen or None})
        interrupts = getattr(outcome, "interrupts", None)
        if interrupts and outcome is not None:
            update["outcome"] = outcome.model_copy(
                update={"interrupts": [self._interrupt(one) for one in interrupts]}
            )
        update |= self._account(event.metadata)
        return event.model_copy(update=update)

    def _account(self, metadata: dict[str, Any] | None) -> dict[str, Any]:
        """Return the change to the lists of the terminal event that have an entry per invocation.

        What one cost was spent on behalf of the ancestor it is shown as; what else was observed of it is its alone.
        """
        byline = (metadata or {}).get("byline", {})
        if not byline:
            return {}
        shown: dict[str, Any] = {}
        for kind, entries in byline.items():
            if kind == "usage":
                shown[kind] = [self._usage(entry) for entry in entries]
            elif not isinstance(entries, list):
                shown[kind] = entries
            elif seen := [entry for entry in entries if not self._is_of_unseen(entry)]:
                shown[kind] = seen
        return {"metadata": {**(metadata or {}), "byline": shown}}

    def _is_of_unseen(self, entry: Any) -> bool:
        return isinstance(entry, dict) and entry.get("subagentRunId") in self._changed

    def _interrupt(self, interrupt: Interrupt) -> Interrupt:
        shown = self._changed.get(interrupt.subagent_run_id or "")
        if shown is None:
            return interrupt
        update: dict[str, Any] = {"subagent_run_id": shown.as_}
        if shown.hidden and interrupt.tool_call_id is not None:
            update["tool_call_id"] = shown.call  # what the client can see of it
        return interrupt.model_copy(update=update)

    def _usage(self, entry: dict[str, Any]) -> dict[str, Any]:
        shown = self._changed.get(entry.get("subagentRunId", ""))
        if shown is None:
            return entry
        rest = {key: value for key, value in entry.items() if key != "subagentRunId"}
        return rest if shown.as_ is None else {"subagentRunId": shown.as_, **rest}
