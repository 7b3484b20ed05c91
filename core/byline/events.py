"""The AG-UI 1.0 vocabulary.

Nothing is defined here: every type comes from `ag_ui.core`, and what is said *about* the types (which of them
may carry a `subagentRunId`, which class belongs to a `type` string) is read off the official models, so that a
newer `ag-ui-protocol` moves this module without an edit.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, get_args

from ag_ui.core import (
    PROTOCOL_VERSION,
    ActivityDeltaEvent,
    ActivitySnapshotEvent,
    AssistantMessage,
    BaseEvent,
    Context,
    CustomEvent,
    Event,
    EventType,
    Interrupt,
    Message,
    MessagesSnapshotEvent,
    RawEvent,
    ReasoningEncryptedValueEvent,
    ReasoningEndEvent,
    ReasoningMessageChunkEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    ResumeEntry,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    StepFinishedEvent,
    StepStartedEvent,
    SubagentErrorEvent,
    SubagentFinishedEvent,
    SubagentFinishedSuccessOutcome,
    SubagentFinishedSuspendedOutcome,
    SubagentStartedEvent,
    TextMessageChunkEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    TokenUsage,
    Tool,
    ToolCallArgsEvent,
    ToolCallChunkEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    ToolMessage,
)

__all__ = [
    "ATTRIBUTABLE",
    "EVENT_CLASSES",
    "PROTOCOL_VERSION",
    "ActivityDeltaEvent",
    "ActivitySnapshotEvent",
    "AssistantMessage",
    "BaseEvent",
    "Context",
    "CustomEvent",
    "Event",
    "EventType",
    "Interrupt",
    "Message",
    "MessagesSnapshotEvent",
    "RawEvent",
    "ReasoningEncryptedValueEvent",
    "ReasoningEndEvent",
    "ReasoningMessageChunkEvent",
    "ReasoningMessageContentEvent",
    "ReasoningMessageEndEvent",
    "ReasoningMessageStartEvent",
    "ReasoningStartEvent",
    "ResumeEntry",
    "RunAgentInput",
    "RunErrorEvent",
    "RunFinishedCancelledOutcome",
    "RunFinishedEvent",
    "RunFinishedInterruptOutcome",
    "RunFinishedSuccessOutcome",
    "RunStartedEvent",
    "StateDeltaEvent",
    "StateSnapshotEvent",
    "StepFinishedEvent",
    "StepStartedEvent",
    "SubagentErrorEvent",
    "SubagentFinishedEvent",
    "SubagentFinishedSuccessOutcome",
    "SubagentFinishedSuspendedOutcome",
    "SubagentStartedEvent",
    "TextMessageChunkEvent",
    "TextMessageContentEvent",
    "TextMessageEndEvent",
    "TextMessageStartEvent",
    "TokenUsage",
    "Tool",
    "ToolCallArgsEvent",
    "ToolCallChunkEvent",
    "ToolCallEndEvent",
    "ToolCallResultEvent",
    "ToolCallStartEvent",
    "ToolMessage",
    "encode",
]


def _classes() -> dict[str, type[BaseEvent]]:
    union = get_args(Event)[0] if hasattr(Event, "__metadata__") else Event
    return {cls.model_fields["type"].default.value: cls for cls in get_args(union)}


EVENT_CLASSES: Final[Mapping[str, type[BaseEvent]]] = MappingProxyType(_classes())
"""The official model of each wire `type`."""

_LIFECYCLE = frozenset({"SUBAGENT_STARTED", "SUBAGENT_FINISHED", "SUBAGENT_ERROR"})

ATTRIBUTABLE: Final[frozenset[str]] = frozenset(
    name
    for name, cls in EVENT_CLASSES.items()
    if "subagent_run_id" in cls.model_fields and name not in _LIFECYCLE
)
"""The types that may carry a `subagentRunId` as attribution ("the schema decides").

The three lifecycle types are not among them: there the id is what the event is about.
"""


def encode(event: BaseEvent) -> str:
    """Return `event` as one line of wire JSON: camelCase names, absent where there is no value, never `null`."""
    return event.model_dump_json(by_alias=True)
