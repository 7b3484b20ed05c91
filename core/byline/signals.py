"""What an adapter reports: the framework-neutral vocabulary between a framework and the stream.

A signal says what happened, never how AG-UI spells it; `byline.attributor` turns signals into events and is free
to reorder nothing and lose nothing.  Signals are named tuples because one is made per token: they are immutable
and cost half of what a frozen dataclass costs.

Three kinds of name run through all of them:

`owner`
    Who did it: the adapter's key of an invocation (any string that is unique while the run lasts, a run id of
    the framework, say), or `None` for the parent agent.  The public `subagentRunId` is another thing: the
    adapter proposes it once, in `Opened.id`.
`run`
    One model run, which is one message: text, reasoning and tool calls of one answer of one model.
`call`
    The framework's own id of a tool call.  It need not be unique; the attributor gives out public ids.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from .events import TokenUsage

__all__ = [
    "ABSENT",
    "Activity",
    "Arguments",
    "Call",
    "CallRef",
    "Closed",
    "Custom",
    "Failed",
    "ModelOver",
    "Observed",
    "Opened",
    "Question",
    "Raw",
    "Reasoning",
    "Result",
    "RunCancelled",
    "RunFailed",
    "RunFinished",
    "Signal",
    "StateChanged",
    "StateIs",
    "StepFinished",
    "StepStarted",
    "Suspended",
    "Text",
    "Usage",
]


class _Absent:
    """The one value that stands for "no value", where `None` is a value."""

    def __repr__(self) -> str:
        return "ABSENT"

    def __bool__(self) -> bool:
        return False


ABSENT: Final[Any] = _Absent()


class CallRef(NamedTuple):
    """A tool call as its owner knows it."""

    owner: str | None
    call: str


class Opened(NamedTuple):
    """An invocation of a subagent began, or continues in this run after a suspension."""

    owner: str
    name: str
    id: str | None = None
    """The `subagentRunId` to give it; the key itself where the framework has nothing more lasting."""
    parent: str | None = None
    spawned_by: CallRef | str | None = None
    """The call that spawned it; a text is the public id of one that an earlier run reported."""
    description: str | None = None
    metadata: Mapping[str, Any] | None = None
    """Goes to `SUBAGENT_STARTED.metadata["byline"]`: the contract and the ids of traces."""


class Closed(NamedTuple):
    """An invocation ended and its result, if there is one, went to whoever called it."""

    owner: str
    result: Any = ABSENT
    metadata: Mapping[str, Any] | None = None


class Failed(NamedTuple):
    """An invocation ended without a result.  The run may go on."""

    owner: str
    message: str
    code: str | None = None
    metadata: Mapping[str, Any] | None = None


class Suspended(NamedTuple):
    """An invocation waits for something from outside and a later run may continue it.

    Only for what suspends without a `Question`: whatever is open when a run ends with an interrupt is suspended
    anyway.  Nothing is written before the run ends.
    """

    owner: str


class Text(NamedTuple):
    """A piece of what a model said."""

    owner: str | None
    run: str
    delta: str


class Reasoning(NamedTuple):
    """A piece of what a model thought."""

    owner: str | None
    run: str
    delta: str


class Words(NamedTuple):
    """Pieces of text, or of thought, that came one after the other: the same as each as a signal of its own."""

    kind: type[Text] | type[Reasoning]
    owner: str | None
    run: str
    deltas: list[str]


class Call(NamedTuple):
    """A model called a tool; the arguments may follow."""

    owner: str | None
    run: str
    call: str
    name: str


class Arguments(NamedTuple):
    """A piece of a tool call's arguments, which are JSON text."""

    owner: str | None
    run: str
    call: str
    delta: str


class ModelOver(NamedTuple):
    """A model run is over: the message, and the calls it holds, are complete."""

    owner: str | None
    run: str


class Result(NamedTuple):
    """A tool answered.  The first answer to a call is the answer; `owner` is who made the call."""

    owner: str | None
    call: str
    content: str | Sequence[Any]
    """Text, or AG-UI content parts."""


class Activity(NamedTuple):
    """A structured thing to show beside the messages: created, or replaced when its id is known."""

    owner: str | None
    id: str
    kind: str
    content: Mapping[str, Any]


class StepStarted(NamedTuple):
    """A named phase began.  Counted: a phase entered three times is over when it was left three times."""

    owner: str | None
    name: str


class StepFinished(NamedTuple):
    """A named phase was left."""

    owner: str | None
    name: str


class StateIs(NamedTuple):
    """The run's whole state."""

    owner: str | None
    state: Any


class StateChanged(NamedTuple):
    """Some top-level values of the run's state were set."""

    owner: str | None
    changes: Mapping[str, Any]


class Usage(NamedTuple):
    """What one model run of `owner` cost, in tokens, in the protocol's accounting (totals and parts of them)."""

    owner: str | None
    usage: TokenUsage


class Observed(NamedTuple):
    """Something found out about what `owner` did, for those who look at the run as a whole.

    It becomes an entry of the list `metadata["byline"][kind]` of the run's terminal event, whichever that is; a later
    one of the same kind replaces it.
    """

    owner: str | None
    kind: str
    facts: Mapping[str, Any]


class Question(NamedTuple):
    """An interrupt was raised inside `owner`.  The same id may be reported again on its way up; the first counts."""

    owner: str | None
    id: str
    reason: str
    message: str | None = None
    call: str | None = None
    """The tool call that waits for the answer; made by `owner`."""
    schema: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] | None = None
    expires_at: str | None = None


class Custom(NamedTuple):
    """An event of the app's own."""

    owner: str | None
    name: str
    value: Any


class Raw(NamedTuple):
    """A framework's event passed through."""

    owner: str | None
    event: Any
    source: str | None = None


class RunFinished(NamedTuple):
    """The framework's run ended by itself.

    `asked` are the ids of the questions that the framework now waits for an answer to; with none, the run
    succeeded.
    """

    result: Any = ABSENT
    asked: Sequence[str] = ()
    metadata: Mapping[str, Any] | None = None


class RunCancelled(NamedTuple):
    """The run was stopped on purpose before it was over."""

    reason: str = "the run was cancelled"


class RunFailed(NamedTuple):
    """The run ended with an error that nobody handled."""

    message: str
    code: str | None = None


Signal: TypeAlias = (
    Opened
    | Closed
    | Failed
    | Suspended
    | Text
    | Reasoning
    | Call
    | Arguments
    | ModelOver
    | Result
    | Activity
    | StepStarted
    | StepFinished
    | StateIs
    | StateChanged
    | Usage
    | Observed
    | Question
    | Custom
    | Raw
    | RunFinished
    | RunCancelled
    | RunFailed
)
