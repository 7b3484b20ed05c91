"""What a `RemoteA2aAgent` hears from its peer, as the peer said it.  Needs no A2A package.

ADK makes an event of every A2A update and keeps the peer's answer beside it, in `custom_metadata`.  Measured with a peer
that `to_a2a` serves, on 2.6 and 2.13:

- Without the extension that `use_legacy=False` asks for, every event of the peer is a status update.  ADK marks all that is
  in one as a thought (`adk_thought` in a part's metadata tells the real ones), and its pieces are whole events: only
  `adk_event_id` in the peer's metadata says which of them are one answer.  Then comes the answer once more, as an
  artifact, and a question once more, with the status that waits for it.
- With the extension an answer is one artifact, in pieces and whole under one event id, like a model's own.
- A failure is a status with the peer's message as its text, or an event with nothing but `error_message`; nothing is raised.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from google.genai import types

if TYPE_CHECKING:
    from ._identity import Invocation

__all__ = ["Heard", "Peers", "is_remote", "only_asks", "task_of"]

_TASK: Final = "a2a:task_id"
_CONTEXT: Final = "a2a:context_id"
_RESPONSE: Final = "a2a:response"
_WORKING: Final = frozenset({"submitted", "working"})
_BROKEN: Final = frozenset({"failed", "rejected", "canceled"})


def is_remote(agent: Any) -> bool:
    """Return whether an agent runs elsewhere, and is asked over A2A."""
    return any(base.__name__ == "RemoteA2aAgent" for base in type(agent).__mro__)


def task_of(event: Any) -> dict[str, str] | None:
    """Return the A2A task and context that an event comes from, by their names in `metadata["byline"]["a2a"]`."""
    beside = event.custom_metadata or {}
    known = {"taskId": beside.get(_TASK), "contextId": beside.get(_CONTEXT)}
    return {name: value for name, value in known.items() if isinstance(value, str)} or None


class Heard(NamedTuple):
    """What is new in an event of a remote agent."""

    run: str
    """Which answer of the peer it belongs to."""
    parts: list[types.Part]
    piece: bool
    """Whether more of this answer may come."""
    failure: tuple[str, str | None] | None = None
    over: str | None = None
    """The answer before, which is over with this one."""


@dataclass(slots=True)
class _Answer:
    text: str = ""
    thought: str = ""
    whole: bool = False


@dataclass(slots=True)
class _Task:
    answers: dict[str, _Answer] = field(default_factory=dict)
    calls: set[str] = field(default_factory=set)


class Peers:
    """The A2A tasks of one run, and what of each was heard already."""

    def __init__(self) -> None:
        self._tasks: Final[dict[str, _Task]] = {}
        self._last: Final[dict[Invocation, str]] = {}

    def hear(self, owner: "Invocation", event: Any) -> Heard | None:
        """Return what is new in an event; `None` for one that no remote agent made."""
        beside = event.custom_metadata or {}
        if not is_remote(owner.agent) or not (event.error_message or beside.keys() & {_TASK, _CONTEXT}):
            return None
        heard = self._hear(event, beside)
        before, self._last[owner] = self._last.get(owner), heard.run
        return heard if before is None or before == heard.run else heard._replace(over=before)

    def _hear(self, event: Any, beside: Mapping[str, Any]) -> Heard:
        response = _mapping(beside.get(_RESPONSE))
        status = _mapping(response.get("status"))
        told = _mapping(_mapping(status.get("message")).get("metadata"))
        told_of_all = _mapping(response.get("metadata"))
        state = str(status.get("state", "")).removeprefix("TASK_STATE_").lower()
        parts = list(event.content.parts or ()) if event.content else []
        text = "".join(part.text for part in parts if part.text)
        failure: tuple[str, str | None] | None = None
        if event.error_message:
            failure = (event.error_message, event.error_code)
        elif state in _BROKEN:
            code = told.get("adk_error_code") or told_of_all.get("adk_error_code") or state
            failure = (text or f"the remote agent's task was {state}", str(code))
        if (
            failure is not None or "adk_error_code" in told
        ):  # its text says what went wrong, not what the agent said
            return Heard(event.id, [part for part in parts if not part.text], piece=False, failure=failure)
        return self._new(event, parts, told_of_all, state, str(beside.get(_TASK)))

    def _new(
        self, event: Any, parts: list[types.Part], told: Mapping[str, Any], state: str, task_id: str
    ) -> Heard:
        task = self._tasks.setdefault(task_id, _Task())
        run = told.get("adk_event_id")
        if not isinstance(
            run, str
        ):  # one event is one answer; or a peer that is no ADK: a status is its thought
            return Heard(event.id, self._unheard(task, parts), piece=False)
        parts = [_as_said(part) for part in parts]
        text = "".join(part.text for part in parts if part.text and not part.thought)
        thought = "".join(part.text for part in parts if part.text and part.thought)
        known = task.answers.setdefault(run, _Answer())
        again = bool(text or thought) and text == known.text and thought in ("", known.thought)
        if again and known.whole:
            parts = [part for part in parts if not part.text]
        elif not again:
            known.text += text
            known.thought += thought
        piece = state in _WORKING and not again and all(part.text for part in parts)
        known.whole = not piece
        return Heard(run, self._unheard(task, parts), piece)

    def _unheard(self, task: _Task, parts: list[types.Part]) -> list[types.Part]:
        """Leave out the calls that were heard: one that waits comes again with the status that says so."""
        new: list[types.Part] = []
        for part in parts:
            call = part.function_call
            if call is not None and call.id in task.calls:
                continue
            if call is not None and call.id:
                task.calls.add(call.id)
            new.append(part)
        return new


def only_asks(event: Any, call_id: str | None) -> bool:
    """Return whether the peer answered a call only to say that it waits for a confirmation.

    ADK lets no peer set an event's `actions`, but keeps what it wrote there.
    """
    response = _mapping((event.custom_metadata or {}).get(_RESPONSE))
    places = [response, *(response.get("artifacts") or ())[-1:]]
    actions = [_mapping(_mapping(_mapping(place).get("metadata")).get("adk_actions")) for place in places]
    return any(call_id in _mapping(one.get("requestedToolConfirmations")) for one in actions)


def _as_said(part: types.Part) -> types.Part:
    """Return a part of a status update with its own word on whether it is a thought."""
    if not part.thought or (part.part_metadata or {}).get("adk_thought"):
        return part
    return part.model_copy(update={"thought": None})


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
