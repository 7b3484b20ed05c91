"""The law as a table: one row per rule, and everything else reads it.

A rule has a stable id.  `level` is what breaking it means to the producer profile, `consumer` what it means to the
consumer profile: `error` where the text says MUST, `warning` for a SHOULD, a declared contract, or a place where
the text is silent and this library decided, `info` for a note, `None` where that profile says nothing.  (A
consumer strips unknown material and goes on, so what is an error to write is often only a warning to read.)

`shown` says how a row is held to its word: `streams` rows have a legal and an illegal stream under
`tests/data/law/<id>`, `ledger` rows are duties of a reader and name the test that holds the `Ledger` to them,
`unobservable` rows cannot be seen in a stream and say why; either is in `note`.  `covers` names the sentences of the Subagents chapter, numbered in
`tests/data/law/sentences.txt`, that the row stands for.

    python -m byline.rules > docs/rules.md
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

__all__ = ["PROFILES", "RULES", "Level", "Profile", "Rule", "Side", "levels", "page"]

Level: TypeAlias = Literal["error", "warning", "info"]
Profile: TypeAlias = Literal["producer", "consumer"]
Side: TypeAlias = Literal["producer", "consumer", "both"]

PROFILES: Final[tuple[Profile, ...]] = ("producer", "consumer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule: what it says (`law`), where (`section`), whom it binds (`side`), and how to mend a breach (`hint`)."""

    id: str
    level: Level | None
    consumer: Level | None
    side: Side
    section: str
    law: str
    hint: str
    shown: Literal["streams", "ledger", "unobservable"] = "streams"
    note: str = ""
    covers: tuple[str, ...] = ()


_READING = "Transports and processing"
_SCHEMA = "Schema"
_RUNS = "Runs and steps"
_INPUT = "Run input"
_TEXT = "Text messages"
_CALLS = "Tool calls"
_REASONING = "Reasoning"
_STREAMING = "Streaming, chunked form"
_STATE = "State"
_ACTIVITY = "Activity"
_INTERRUPTS = "Interrupts and resume"
_VERSIONS = "Versioning"
_ATTRIBUTION = "Subagents: attribution"
_LIFECYCLE = "Subagents: lifecycle"
_OWNERSHIP = "Subagents: ownership"
_NESTING = "Subagents: nesting and parallelism"
_SHARED_STATE = "Subagents: state"
_TERMINATION = "Subagents: termination"
_CONTRACT = "Delegation contract (byline's own)"
_ARTIFACTS = "Artifacts (byline's own)"
_SILENT = "The text is silent; byline decided"


def _error(
    id_: str,
    section: str,
    law: str,
    hint: str,
    consumer: Level | None = "error",
    *,
    covers: tuple[str, ...] = (),
) -> Rule:
    side: Side = "both" if consumer == "error" else "producer"
    return Rule(
        id=id_,
        level="error",
        consumer=consumer,
        side=side,
        section=section,
        law=law,
        hint=hint,
        covers=covers,
    )


def _warning(
    id_: str,
    section: str,
    law: str,
    hint: str,
    consumer: Level | None = "warning",
    *,
    covers: tuple[str, ...] = (),
) -> Rule:
    return Rule(
        id=id_,
        level="warning",
        consumer=consumer,
        side="producer",
        section=section,
        law=law,
        hint=hint,
        covers=covers,
    )


def _note(id_: str, section: str, law: str, hint: str) -> Rule:
    return Rule(id=id_, level="info", consumer="info", side="producer", section=section, law=law, hint=hint)


def _duty(id_: str, section: str, law: str, hint: str, test: str, covers: tuple[str, ...]) -> Rule:
    return Rule(
        id=id_, level=None, consumer=None, side="consumer", section=section, law=law, hint=hint,
        shown="ledger", note=test, covers=covers,
    )  # fmt: skip


def _unseen(id_: str, section: str, law: str, note: str, covers: tuple[str, ...]) -> Rule:
    return Rule(
        id=id_, level=None, consumer=None, side="producer", section=section, law=law, hint="",
        shown="unobservable", note=note, covers=covers,
    )  # fmt: skip


_ROWS: Final[tuple[Rule, ...]] = (
    # --- reading --------------------------------------------------------------------------------------------
    _error("not-json", _READING,
        "Every record is one JSON value; NaN, Infinity, numbers beyond a double and lone surrogates are none.",
        "write the event with a JSON encoder that refuses what JSON has not"),
    _error("not-an-event", _READING,
        "An event is a JSON object with a string `type`.",
        "send one event per record, as an object"),
    _error("beyond-limits", _READING,
        "A record is at most as long and as deep, and as many items are open at once, as this reader follows.",
        "split what grows without end, or raise the limit (`--max-open`)"),
    # --- schema ---------------------------------------------------------------------------------------------
    _error("unknown-type", _SCHEMA,
        "A producer MUST NOT send an event type that the protocol does not describe; a consumer drops it.",
        "use CUSTOM or RAW for what the protocol has no event for", consumer="warning"),
    _error("unknown-member", _SCHEMA,
        "The protocol's objects are closed: a member the schema does not describe is not sent; a consumer strips it.",
        "leave the member out, or carry it in `metadata`", consumer="warning"),
    _error("unknown-variant", _SCHEMA,
        "A producer sends only the variants the schema describes (content parts, patch operations, message roles); "
        "a consumer strips the others.",
        "use one of the variants named in the message", consumer="warning"),
    _error("missing-member", _SCHEMA,
        "A required member is present.",
        "add the member"),
    _error("null-member", _SCHEMA,
        "An optional member without a value MUST be omitted, not sent as null.",
        "leave the member out"),
    _error("wrong-value", _SCHEMA,
        "A known member carries a value of the type and range that the schema gives it; a consumer MUST fail on any other.",
        "send the value in the type the schema asks for"),
    _error("null-tag", _ATTRIBUTION,
        "An absent subagentRunId means the parent agent and MUST NOT be spelled as null.",
        "leave `subagentRunId` out for the parent agent's own events", covers=("A2",)),
    _error("tag-not-allowed", _ATTRIBUTION,
        "The schema decides what may carry attribution: run events, MESSAGES_SNAPSHOT and tool calls may not.",
        "remove the tag; messages, interrupts and attributable events carry their own", consumer="warning", covers=("A5",)),
    _error("tag-missing", _LIFECYCLE,
        "SUBAGENT_STARTED, SUBAGENT_FINISHED and SUBAGENT_ERROR carry the subagentRunId they concern; it MUST NOT be omitted.",
        "write the invocation's id on its lifecycle events", covers=("L1",)),
    _error("usage-on-subagent", _LIFECYCLE,
        "No subagent event carries token usage: a subagent's model calls are the run's, reported on its terminal event.",
        "add the usage to the run's RUN_FINISHED or RUN_ERROR", consumer="warning", covers=("L10",)),
    _error("unknown-outcome", _LIFECYCLE,
        "A producer MUST NOT send an outcome that the schema does not describe; a consumer strips it and reads success.",
        "use success or suspended for an invocation, success, interrupt or cancelled for a run",
        consumer="warning", covers=("L13",)),
    _error("success-with-interrupts", _LIFECYCLE,
        "A producer MUST NOT attach interrupt ids to a success outcome.",
        "report the invocation as suspended, or drop the ids", consumer="warning", covers=("L14",)),
    _error("version-missing", _VERSIONS,
        "A producer of this version MUST declare protocolVersion on RUN_STARTED; absence means an older peer.",
        'add "protocolVersion": "1.0"', consumer=None),
    _warning("version-unknown", _VERSIONS,
        "protocolVersion is MAJOR.MINOR; for one that is newer or cannot be read, a consumer proceeds and SHOULD warn.",
        "declare the version the stream speaks"),
    # --- runs -----------------------------------------------------------------------------------------------
    _error("first-event", _RUNS,
        "A stream MUST begin with RUN_STARTED or RUN_ERROR.",
        "send RUN_STARTED before anything else"),
    _error("run-nested", _RUNS,
        "A producer MUST close the current run before it opens the next.",
        "send RUN_FINISHED or RUN_ERROR first"),
    _error("after-finished", _RUNS,
        "After RUN_FINISHED nothing may follow but RUN_STARTED or RUN_ERROR.",
        "send the event before the run finishes, or open a new run"),
    _error("after-error", _TERMINATION,
        "RUN_ERROR ends everything: nothing may follow but RUN_STARTED, and no closing event is expected.",
        "close what you can before RUN_ERROR; send nothing after it", covers=("T3",)),
    _error("run-truncated", _RUNS,
        "A run ends with RUN_FINISHED or RUN_ERROR; a stream that breaks off has not succeeded.",
        "end every run, also on the failure path"),
    _warning("empty-stream", _SILENT,
        "A stream with no event at all says nothing; the text does not speak of it.",
        "look at what wrote the stream"),
    _error("run-id-mismatch", _INPUT,
        "A run's RUN_STARTED and RUN_FINISHED MUST agree on threadId and runId.",
        "repeat the ids of RUN_STARTED", consumer="warning"),
    _error("run-id-reused", _INPUT,
        "A runId MUST NOT be used for another run of the same thread.",
        "mint a new runId for each run", consumer="warning"),
    _error("thread-changed", _INPUT,
        "Every run on a stream carries the same threadId.",
        "use one stream per thread", consumer="warning"),
    _warning("input-mismatch", _SILENT,
        "An input echoed on RUN_STARTED names the thread and the run it is echoed on.",
        "echo the input of this run"),
    _warning("usage-sums", _RUNS,
        "totalTokens is inputTokens plus outputTokens, and cached, cache-written and reasoning tokens are parts of these.",
        "translate the provider's counts into the protocol's accounting", consumer=None),
    _error("pending-calls-wrong", _CALLS,
        "pendingToolCallIds, when sent, MUST contain exactly the calls the run started and did not answer.",
        "list the calls without a TOOL_CALL_RESULT, all of them and no others", consumer="warning"),
    _warning("pending-calls-unlisted", _CALLS,
        "A producer SHOULD name the calls a run leaves unanswered in pendingToolCallIds.",
        "add outcome.pendingToolCallIds, or send the results", consumer=None),
    # --- text messages --------------------------------------------------------------------------------------
    _error("text-already-open", _TEXT,
        "A producer MUST NOT open a text message that is open.",
        "end the message first, or use a new messageId"),
    _error("text-not-open", _TEXT,
        "A producer MUST NOT continue or end a text message that is not open.",
        "send TEXT_MESSAGE_START first"),
    _error("text-left-open", _TEXT,
        "Every text message a producer opens MUST be closed before the run finishes.",
        "send TEXT_MESSAGE_END before RUN_FINISHED"),
    _error("text-owner", _OWNERSHIP,
        "TEXT_MESSAGE_CONTENT, TEXT_MESSAGE_END and a reopening start MUST NOT carry a subagentRunId that disagrees with "
        "the message's opener; they MAY omit it.",
        "tag the event as the opener is tagged, or leave the tag out", covers=("O1", "O2", "O3", "O7", "O8")),
    _error("text-reopened-differently", _TEXT,
        "A TEXT_MESSAGE_START that reopens a message MUST agree with it about role and name.",
        "repeat the role and name of the first start, or use a new messageId", consumer=None),
    _error("message-id-reused", _TEXT,
        "A messageId is unique within its thread: it names one message of one kind (text, reasoning, activity, tool result).",
        "mint an id per message", consumer="warning"),
    _warning("owner-changed-across-runs", _SILENT,
        "A message or call reopened in a later run agrees with its owner; no consumer has to notice.",
        "use a new id, or the owner of the earlier run", consumer=None),
    # --- tool calls -----------------------------------------------------------------------------------------
    _error("call-already-open", _CALLS,
        "A producer MUST NOT open a tool call that is open.",
        "end the call first, or use a new toolCallId"),
    _error("call-not-open", _CALLS,
        "A producer MUST NOT continue or end a tool call that is not open.",
        "send TOOL_CALL_START first"),
    _error("call-left-open", _CALLS,
        "Every tool call a producer opens MUST be closed before the run finishes.",
        "send TOOL_CALL_END before RUN_FINISHED"),
    _error("call-owner", _OWNERSHIP,
        "TOOL_CALL_ARGS, TOOL_CALL_END, a reopening start and an encrypted value MUST agree with the owner of the call.",
        "tag the event as the call's start is tagged, or leave the tag out", covers=("O1", "O4", "O7", "O8")),
    _error("call-message-owner", _OWNERSHIP,
        "A tool call inherits the attribution of the message that holds it; a producer MUST NOT attribute the call to one "
        "owner and the message to another.",
        "give the call the owner of its parentMessageId, or name a message of its own owner", covers=("O9", "O10")),
    _error("call-reopened-differently", _CALLS,
        "A TOOL_CALL_START that reopens a call MUST agree with it about toolCallName and parentMessageId.",
        "repeat the values of the first start, or use a new toolCallId", consumer=None),
    _note("result-unknown-call", _SILENT,
        "A TOOL_CALL_RESULT may answer a call that this stream has not shown.",
        "none needed when the call is part of the conversation's history"),
    _warning("result-repeated", _SILENT,
        "A call is answered once.",
        "send one TOOL_CALL_RESULT per call"),
    _warning("result-before-end", _SILENT,
        "A call is answered after TOOL_CALL_END, which says that its arguments are complete.",
        "send TOOL_CALL_END before TOOL_CALL_RESULT"),
    # --- reasoning ------------------------------------------------------------------------------------------
    _error("reasoning-already-open", _REASONING,
        "A producer MUST NOT open a reasoning message that is open.",
        "end the message first, or use a new messageId"),
    _error("reasoning-not-open", _REASONING,
        "A producer MUST NOT continue or end a reasoning message that is not open; a span opens none.",
        "send REASONING_MESSAGE_START first"),
    _error("reasoning-left-open", _REASONING,
        "Every reasoning message a producer opens MUST be closed before the run finishes.",
        "send REASONING_MESSAGE_END before RUN_FINISHED"),
    _error("reasoning-owner", _OWNERSHIP,
        "What continues or ends a reasoning message or span, and an encrypted value for a message, MUST agree with its owner.",
        "tag the event as the opener is tagged, or leave the tag out", covers=("O1", "O4", "O7", "O8")),
    _error("span-already-open", _REASONING,
        "A producer MUST NOT open a reasoning span that is open.",
        "send REASONING_END first, or use a new messageId"),
    _error("span-not-open", _REASONING,
        "A producer MUST NOT close a reasoning span that it did not open.",
        "send REASONING_START first"),
    _error("span-left-open", _REASONING,
        "Every reasoning span MUST be closed before the run finishes.",
        "send REASONING_END before RUN_FINISHED"),
    _warning("encrypted-value-unknown", _REASONING,
        "REASONING_ENCRYPTED_VALUE names a message or call that is known and can hold it; otherwise a consumer SHOULD warn.",
        "name the id of the message or call the value belongs to"),
    # --- steps ----------------------------------------------------------------------------------------------
    _error("step-already-open", _RUNS,
        "A producer MUST NOT open a step that its owner has open; parent and subagents may share a name.",
        "finish the step first, or name it differently", covers=("O6",)),
    _error("step-not-open", _RUNS,
        "A producer MUST NOT finish a step that was not opened.",
        "send STEP_STARTED first"),
    _error("step-left-open", _RUNS,
        "Every step a producer opens MUST be closed before the run finishes.",
        "send STEP_FINISHED before RUN_FINISHED"),
    _error("step-owner", _OWNERSHIP,
        "STEP_FINISHED MUST carry the same attribution as the STEP_STARTED it closes: steps are per owner.",
        "give STEP_FINISHED the tag of its STEP_STARTED, or none where that has none", covers=("O5",)),
    # --- chunks ---------------------------------------------------------------------------------------------
    _error("chunk-first", _STREAMING,
        "The first chunk of an item MUST carry what opens it: messageId, or toolCallId and toolCallName.",
        "put the id (and the tool's name) on the first chunk; nothing is open that this one could continue"),
    _error("chunk-ambiguous", _STREAMING,
        "A chunk with neither id nor tag, with several subagents' streams of its kind open, has no referent and MUST be rejected.",
        "tag the continuations of parallel subagents"),
    _error("chunk-repeat", _STREAMING,
        "A continuation chunk may repeat what its opener established only with the same value; an absent role is assistant.",
        "repeat the opener's value, or leave the member out"),
    _error("chunk-mixed", _STREAMING,
        "The chunked and the explicit form do not mix within one item.",
        "continue and end the item in the form that opened it"),
    # --- state and activity ---------------------------------------------------------------------------------
    _error("state-patch", _STATE,
        "A STATE_DELTA applies to the run's state as the stream has made it, atomically; a consumer warns and keeps its value.",
        "compute the patch against the run's state, or send a STATE_SNAPSHOT", consumer="warning"),
    _error("activity-no-snapshot", _ACTIVITY,
        "A producer MUST NOT send an ACTIVITY_DELTA for an activity it has not created with a snapshot.",
        "send ACTIVITY_SNAPSHOT first", consumer="warning"),
    _error("activity-patch", _ACTIVITY,
        "An ACTIVITY_DELTA applies to the activity's content as the stream has made it.",
        "compute the patch against the activity's content, or send a new snapshot", consumer="warning"),
    _error("activity-not-object", _ACTIVITY,
        "The patched content of an activity MUST still be an object.",
        "patch members of the content, not the whole", consumer="warning"),
    _error("activity-owner", _OWNERSHIP,
        "An ACTIVITY_DELTA MUST agree with the owner that the activity's snapshot gave it.",
        "tag the delta as its snapshot is tagged, or leave the tag out", covers=("O1", "O4", "O7", "O8")),
    _error("activity-kept-owner", _ACTIVITY,
        "A snapshot with replace: false leaves the activity its owner, and its own attribution MUST agree.",
        "tag the snapshot as the activity's owner", consumer="warning", covers=("O4",)),
    # --- subagents ------------------------------------------------------------------------------------------
    _error("announced-late", _LIFECYCLE,
        "A producer that announces an invocation MUST do so before any event attributed to it.",
        "send SUBAGENT_STARTED before the first event that carries its id", consumer="warning", covers=("L2",)),
    _error("subagent-already-active", _LIFECYCLE,
        "A producer MUST NOT announce an invocation whose id is active.",
        "give the second invocation an id of its own", covers=("L3",)),
    _error("subagent-id-reused", _ATTRIBUTION,
        "A producer MUST NOT reuse the id of an invocation that has ended in this run, even for the same subagent.",
        "give the second invocation an id of its own", covers=("A3", "L4")),
    _error("subagent-not-announced", _LIFECYCLE,
        "SUBAGENT_FINISHED and SUBAGENT_ERROR close an invocation that this run has announced.",
        "announce it with SUBAGENT_STARTED, in every run in which it is closed"),
    _error("subagent-already-ended", _LIFECYCLE,
        "An invocation is closed once, by SUBAGENT_FINISHED or SUBAGENT_ERROR.",
        "send one closing event per invocation"),
    _error("subagent-left-open", _TERMINATION,
        "Every announced invocation MUST be closed before the run finishes; a run MUST NOT end while one is active.",
        "send SUBAGENT_FINISHED or SUBAGENT_ERROR before RUN_FINISHED", covers=("L5", "T1")),
    _error("subagent-parent-unknown", _NESTING,
        "A producer MUST NOT name a parent invocation that has not been announced in this run.",
        "announce the parent first, in the run that names it", covers=("N2",)),
    _warning("subagent-id-returns", _SILENT,
        "An id may return in a later run when a suspended invocation continues; the text grants it to no other.",
        "mint a new id, unless the invocation was suspended", consumer="info", covers=("A4", "L12")),
    _note("subagent-id-is-run-id", _SILENT,
        "A subagentRunId that equals the runId is legal, and likely a mistake.",
        "mint ids for invocations"),
    _note("output-after-suspension", _SILENT,
        "An invocation that is suspended produces nothing more in this run.",
        "suspend the invocation after its last event"),
    _note("spawning-call", _SILENT,
        "parentToolCallId names a call that the stream has shown, usually the parent invocation's own.",
        "none needed after a hand-off, where caller and parent differ"),
    # --- interrupts -----------------------------------------------------------------------------------------
    _error("interrupt-id-repeated", _INTERRUPTS,
        "Each interrupt's id MUST be unique within the run.",
        "mint an id per interrupt", consumer="warning"),
    _warning("suspended-without-interrupt", _SILENT,
        "Interrupt ids of a suspended invocation are among the interrupts the run ends with.",
        "list only interrupts that RUN_FINISHED carries, and end the run with the interrupt outcome"),
    _warning("interrupt-owner", _SILENT,
        "An interrupt is tagged with the invocation that raised it, which is the one that lists it and was suspended by it.",
        "tag the interrupt with the suspended invocation that lists its id"),
    _note("interrupt-tag-unknown", _SILENT,
        "An interrupt's tag usually names an invocation that the run has shown.",
        "none needed where invocations are not announced"),
    _warning("interrupt-call-owner", _SILENT,
        "An interrupt about a tool call belongs to the owner of that call.",
        "tag the interrupt as the call is tagged"),
    _note("suspended-in-success", _SILENT,
        "An invocation may be suspended in a run that succeeds: it waits for the user's next words.",
        "none needed"),
    _error("resume-uncovered", _INTERRUPTS,
        "The resume list MUST cover every interrupt of the run being continued.",
        "add an entry per interrupt; abandon with status cancelled", consumer="warning"),
    _warning("resume-absent", _SILENT,
        "An input that follows an interrupted run has a resume list.",
        "answer or abandon the interrupts in `resume`", consumer=None),
    _error("resume-unknown", _INTERRUPTS,
        "Each resume entry MUST name an interrupt of the run being continued.",
        "name only interrupts that the interrupted run carried", consumer="warning"),
    # --- contracts ------------------------------------------------------------------------------------------
    _warning("contract-interaction", _CONTRACT,
        "An invocation declared interaction: none is suspended only for an approval or a descendant.",
        "declare clarify or full, or let the caller ask"),
    _warning("contract-approvals", _CONTRACT,
        "An invocation declared approvals: false is not suspended for an approval.",
        "declare approvals: true"),
    _warning("contract-serial", _CONTRACT,
        "Siblings declared concurrency: serial do not overlap.",
        "declare parallel, or close one before the next is announced"),
    _warning("contract-leaf", _CONTRACT,
        "An invocation declared a leaf does not delegate.",
        "drop leaf from the contract"),
    _warning("contract-isolated", _CONTRACT,
        "An invocation declared context: isolated inherits neither messages nor state.",
        "declare fork or shared"),
    _warning("contract-result", _CONTRACT,
        "An invocation declared returns: automatic that succeeds gives its spawning call a result.",
        "send TOOL_CALL_RESULT for parentToolCallId, or declare onward or manual"),
    _warning("contract-control", _CONTRACT,
        "While an invocation declared returns: manual has control, its caller says nothing.",
        "close the invocation when control comes back"),
    # --- notes on style -------------------------------------------------------------------------------------
    _warning("custom-name", "Raw and custom events",
        "Producers SHOULD prefix the names of CUSTOM events; names without a prefix are the protocol's.",
        "name it `vendor.event`", consumer=None),
    # --- duties of a reader ---------------------------------------------------------------------------------
    _duty("accept-unannounced", _LIFECYCLE,
        "A consumer MUST accept attribution without announcement.",
        "group by the tag alone",
        "ledger/test_ledger.py::test_attribution_without_lifecycle_is_accepted", ("L6", "L7")),
    _duty("error-ends-invocation", _LIFECYCLE,
        "SUBAGENT_ERROR ends the invocation and not the run; an absent outcome of SUBAGENT_FINISHED means success.",
        "let the run go on",
        "ledger/test_ledger.py::test_failures_are_told_apart", ("L9", "L11")),
    _duty("no-contiguity", _NESTING,
        "Invocations run in parallel and interleave: a consumer MUST NOT assume that one's events are contiguous.",
        "keep open items by id and owner",
        "ledger/test_chunks.py::test_lanes_run_in_parallel", ("N1", "N3", "N4")),
    _duty("own-items-only", _NESTING,
        "A consumer MUST NOT close one invocation's items because another ended.",
        "close by id, and chunk streams by owner",
        "ledger/test_chunks.py::test_an_invocation_ends_its_own_lane_with_itself", ("N5",)),
    _duty("apply-state", _SHARED_STATE,
        "A subagent's state event updates the run's state as the parent's does; a consumer MUST apply it so.",
        "keep one state per run",
        "ledger/test_ledger.py::test_a_subagent_s_state_change_is_the_run_s", ("S1", "A6")),
    _duty("no-private-state", _SHARED_STATE,
        "The tag of a state event is provenance; a consumer MUST NOT withhold the update because a subagent sent it.",
        "keep one state per run",
        "ledger/test_ledger.py::test_a_subagent_s_state_change_is_the_run_s", ("S2",)),
    _duty("abandon-on-error", _TERMINATION,
        "When a run errors a consumer MUST treat every open invocation as abandoned and expect no closing event.",
        "mark what is open as abandoned",
        "ledger/test_ledger.py::test_failures_are_told_apart", ("T2", "T3")),
    _duty("interrupt-attribution", _TERMINATION,
        "A tagged interrupt was raised inside that invocation, an untagged one is the parent agent's; a suspended outcome "
        "may list none.",
        "read the interrupt's own tag",
        "ledger/test_ledger.py::test_an_invocation_is_suspended_and_continues_under_its_id", ("T4", "T5")),
    # --- artifacts --------------------------------------------------------------------------------------------
    _note("artifact-shown-twice", _ARTIFACTS,
        "A tagged artifact that a result has shown is not shown again in the parent agent's lane; a repetition stays in view, as one more card.",
        "take the display tags off what a look-up returns; have the parent name an artifact and not repeat it"),
    # --- what no stream can show ----------------------------------------------------------------------------
    _unseen("truthful-attribution", _ATTRIBUTION,
        "Events a subagent produces carry its id, and the parent agent's carry none.",
        "a stream says who claims an event, not who made it; the conformance suite compares with ground truth", ("A1",)),
    _unseen("report-lifecycle", _LIFECYCLE,
        "A producer that can report the lifecycle of its invocations SHOULD.",
        "a stream does not show what its producer could have reported", ("L8",)),
)  # fmt: skip

RULES: Final[Mapping[str, Rule]] = MappingProxyType({rule.id: rule for rule in _ROWS})
"""Every rule by its id, in the order of the rule page."""


def levels(profile: Profile) -> dict[str, Level]:
    """Return the level at which `profile` reports each rule that it reports at all."""
    chosen = {rule.id: rule.level if profile == "producer" else rule.consumer for rule in _ROWS}
    return {id_: level for id_, level in chosen.items() if level is not None}


def page() -> str:
    """Return the rule page of the documentation, in Markdown."""
    out = [_PAGE]
    for section in dict.fromkeys(rule.section for rule in _ROWS):
        out.append(f"## {section}\n")
        for rule in _ROWS:
            if rule.section == section:
                out.append(f"### `{rule.id}`\n")
                out.append(f"{rule.law}\n")
                out.append(f"{_reported(rule)}\n")
                if rule.hint and rule.shown == "streams":
                    out.append(f"To mend: {rule.hint}.\n")
    return "\n".join(out)


def _reported(rule: Rule) -> str:
    if rule.shown == "unobservable":
        return f"Not judged: {rule.note}."
    if rule.shown == "ledger":
        return f"Binds who reads, and is what the `Ledger` does: `tests/{rule.note}`."
    if rule.level == rule.consumer:
        return f"{str(rule.level).capitalize()} in both profiles."
    return f"{str(rule.level).capitalize()} in the producer profile, {rule.consumer or 'silent'} in the consumer profile."


_PAGE: Final = """\
# The rules

Every rule that `byline check`, the `Validator` and the pytest plugin know, by its stable id. This page is written
from the table in `byline.rules` (`python -m byline.rules > docs/rules.md`).

*Error*: a MUST is broken. *Warning*: a SHOULD is, or a declared contract, or the text is silent and this library
decided. *Info*: a note. The **producer** profile holds a stream to everything the text demands of who writes it;
the **consumer** profile reports as an error only what a reader must reject. Every judged rule has streams that keep
it and streams that break it under `tests/data/law`.
"""


if __name__ == "__main__":
    sys.stdout.write(page())
