"""What a ledger hands out: frozen values, made when they are asked for.

What the protocol defines (messages, interrupts, token usage) is handed out as it is on the wire, in mappings with the
wire's names; what the ledger adds has the types below.  A `Mark` says where in the stream, and when.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Literal, TypeAlias

from byline.chunks import Wire
from byline.ledger._items import Mark
from byline.state import Json

__all__ = [
    "Activity",
    "Answer",
    "Branch",
    "Call",
    "Custom",
    "Failure",
    "Invocation",
    "Mark",
    "Raw",
    "Reasoning",
    "Refusal",
    "Run",
    "RunStatus",
    "Segment",
    "StateChange",
    "Status",
    "Step",
    "Text",
    "Work",
    "plain",
]

Status: TypeAlias = Literal["running", "finished", "suspended", "failed", "cancelled", "abandoned"]
"""What became of an invocation.

`running` since its announcement; `finished`, `suspended` (waits for something from outside; a later run may continue
it) or `failed` as its producer reported; `cancelled` is a failure with the code `cancelled`; `abandoned` when its run
ended in `RUN_ERROR`, or the stream ended, and nobody said how it ended.
"""

RunStatus: TypeAlias = Literal["running", "finished", "interrupted", "failed", "cancelled", "abandoned"]
"""What became of a run; `abandoned` when its stream ended, or another run began, before it did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text message: what its owner said, or was told."""

    id: str
    role: str
    name: str | None
    text: str
    start: Mark
    end: Mark | None
    """`None` while it is being written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning:
    """A reasoning message."""

    id: str
    text: str
    start: Mark
    end: Mark | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a tool answered; `owner` is the answer's own, which need not be that of the call."""

    message: str
    content: Json
    owner: str | None
    at: Mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call; `message` is the message that holds it, `answer` the first answer to it."""

    id: str
    name: str
    arguments: str
    """As sent: text that is meant to be JSON and need not be."""
    message: str
    answer: Answer | None
    start: Mark
    end: Mark | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """A structured thing shown beside the messages, as it is now."""

    id: str
    type: str
    content: Json
    start: Mark
    changed: Mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A named phase."""

    name: str
    start: Mark
    end: Mark | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """A change of the run's state: a whole new state (`snapshot`) or a JSON Patch that was applied (`delta`)."""

    kind: Literal["snapshot", "delta"]
    value: Json
    at: Mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Custom:
    """An event of the app's own."""

    name: str
    value: Json
    at: Mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """A framework's event, passed through."""

    event: Json
    source: str | None
    at: Mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one owner did, each kind in the order of the stream.  A mark puts one kind between the others."""

    texts: tuple[Text, ...] = ()
    reasoning: tuple[Reasoning, ...] = ()
    calls: tuple[Call, ...] = ()
    activities: tuple[Activity, ...] = ()
    steps: tuple[Step, ...] = ()
    state_changes: tuple[StateChange, ...] = ()
    customs: tuple[Custom, ...] = ()
    raws: tuple[Raw, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an invocation or a run failed."""

    message: str
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Segment:
    """One stretch of an invocation: within one run, from its announcement to its end in that run."""

    run: int
    """Which of `Ledger.runs`."""
    start: Mark
    end: Mark | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One invocation of a subagent: who it is and what became of it.  What it did is `Ledger.work(id)`."""

    id: str
    announced: bool = False
    """Whether its lifecycle was reported.  If not, all that is known of it is what carries its id."""
    name: str | None = None
    description: str | None = None
    parent: str | None = None
    """The invocation that made it; `None` for the parent agent, and where nothing is known."""
    children: tuple[str, ...] = ()
    spawning_call: str | None = None
    """The tool call that made it."""
    spawning_message: str | None = None
    status: Status | None = None
    """`None` for one that was never announced."""
    result: Json = None
    failure: Failure | None = None
    interrupts: tuple[str, ...] = ()
    """The interrupts that it said it is suspended for."""
    contract: Mapping[str, Json] | None = None
    """The contract of the delegation, where the stream has one: `metadata["byline"]` of its announcement."""
    metadata: Mapping[str, Json] = field(default_factory=dict)
    """Of its announcement."""
    end_metadata: Mapping[str, Json] = field(default_factory=dict)
    """Of its end."""
    segments: tuple[Segment, ...] = ()

    @property
    def start(self) -> Mark | None:
        """Where it was first announced."""
        return self.segments[0].start if self.segments else None

    @property
    def end(self) -> Mark | None:
        """Where it ended last; `None` while it runs."""
        return self.segments[-1].end if self.segments else None

    @property
    def duration(self) -> int | None:
        """How long it was at work, waiting between runs not counted, in the unit of `timestamp` (milliseconds).

        `None` while it runs and where a timestamp is missing.
        """
        total = 0
        for segment in self.segments:
            if segment.end is None or segment.end.timestamp is None or segment.start.timestamp is None:
                return None
            total += segment.end.timestamp - segment.start.timestamp
        return total if self.segments else None


@dataclass(frozen=True, slots=True)
class Branch:
    """An invocation in the tree of who made whom; `depth` 0 was made by the parent agent."""

    invocation: Invocation
    work: Work
    depth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of the thread."""

    thread_id: str | None
    """`None` for a run of which only a `RUN_ERROR` arrived."""
    run_id: str | None
    parent_run_id: str | None = None
    status: RunStatus = "running"
    result: Json = None
    failure: Failure | None = None
    interrupts: tuple[Wire, ...] = ()
    """What it waits for an answer to, if it was interrupted."""
    usage: tuple[Wire, ...] = ()
    """Token usage of the whole run, subagents included, one entry per provider and model."""
    usage_by_owner: Mapping[str | None, tuple[Wire, ...]] = field(default_factory=dict)
    """The same by invocation (`None`: the parent agent), where `metadata["byline"]["usage"]` of its end has it."""
    observed: Mapping[str, tuple[Wire, ...]] = field(default_factory=dict)
    """What else its end says of invocations, by kind (`promptCache`); each entry names its `subagentRunId`."""
    start: Mark
    end: Mark | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """A record that a consumer must not accept, or could not apply.  It changed nothing else."""

    event: int
    """Which record, counted from 0."""
    rule: str
    """The rule it breaks, by the id that the validator gives it."""
    message: str
    record: Json
    """What was fed."""


def plain(value: object) -> Json:
    """Return a view as plain JSON values: the wire's style of names, and no member that has no value."""
    if isinstance(value, Mark):
        return {name: part for name, part in value._asdict().items() if part is not None}
    if is_dataclass(value):
        members = ((_camel(member.name), getattr(value, member.name)) for member in fields(value))
        return {name: plain(part) for name, part in members if part is not None and part not in ((), {})}
    if isinstance(value, tuple | list):
        return [plain(part) for part in value]
    if isinstance(value, Mapping):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)
