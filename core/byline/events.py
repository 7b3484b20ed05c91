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
from pydantic_core import to_json

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


def _wire_names(cls: type[BaseEvent]) -> tuple[tuple[str, str, bool], ...] | None:
    """Return name, wire name, and whether it is written when it is `None`, of each field; `None` if unlike the rest."""
    omits, *others = cls.__pydantic_decorators__.model_serializers
    if omits != "_omit_fields_without_value" or others or cls.__pydantic_decorators__.field_serializers:
        return None
    return tuple(
        (name, field.serialization_alias or name, field.is_required() or field.default is not None)
        for name, field in cls.model_fields.items()
    )


_WIRE_NAMES: Final = {cls: names for cls in EVENT_CLASSES.values() if (names := _wire_names(cls)) is not None}


def encode(event: BaseEvent) -> str:
    """Return `event` as one line of wire JSON: camelCase names, absent where there is no value, never `null`."""
    names = _WIRE_NAMES.get(type(event))
    if names is None or event.__pydantic_extra__:
        return event.model_dump_json(by_alias=True)
    # What `model_dump_json` returns, at a third of its cost: the official models leave out what has no value with
    # a serializer in Python.
    fields = event.__dict__
    wire = {alias: value for name, alias, always in names if (value := fields[name]) is not None or always}
    return to_json(wire, by_alias=True, inf_nan_mode="null").decode()
