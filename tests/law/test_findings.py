"""Findings whole, where one stream per rule does not reach: what is said once, of whom, at which place, and no more."""

import pytest
from byline.validator import Validator

STARTED = {"type": "RUN_STARTED", "threadId": "t1", "runId": "r1", "protocolVersion": "1.0"}
FINISHED = {"type": "RUN_FINISHED", "threadId": "t1", "runId": "r1"}
SECOND = {**STARTED, "runId": "r2"}
SECOND_FINISHED = {**FINISHED, "runId": "r2"}


def told(*events, profile="producer", **options):
    """Return rule, event, pointer, related event and message of every finding."""
    judge = Validator(profile, **options)
    found = [finding for event in events for finding in judge.feed(event)] + judge.finish()
    return [(one.rule, one.event, one.pointer, one.related, one.message) for one in found]


def in_a_run(*events, **options):
    return told(STARTED, *events, FINISHED, **options)


def by(tag, type_, **members):
    return {"type": type_, **members, **({} if tag is None else {"subagentRunId": tag})}


def text(id_, tag=None, **more):
    return by(tag, "TEXT_MESSAGE_START", messageId=id_, **more)


def says(id_, tag=None):
    return by(tag, "TEXT_MESSAGE_CONTENT", messageId=id_, delta="x")


def ends(id_, tag=None):
    return by(tag, "TEXT_MESSAGE_END", messageId=id_)


def span(id_, tag=None):
    return by(tag, "REASONING_START", messageId=id_)


def span_ends(id_, tag=None):
    return by(tag, "REASONING_END", messageId=id_)


def thought(id_, tag=None):
    return by(tag, "REASONING_MESSAGE_START", messageId=id_, role="reasoning")


def thought_ends(id_, tag=None):
    return by(tag, "REASONING_MESSAGE_END", messageId=id_)


def call(id_, tag=None, name="f", **more):
    return by(tag, "TOOL_CALL_START", toolCallId=id_, toolCallName=name, **more)


def call_ends(id_, tag=None):
    return by(tag, "TOOL_CALL_END", toolCallId=id_)


def answer(call_id, tag=None, message="a1"):
    return by(tag, "TOOL_CALL_RESULT", messageId=message, toolCallId=call_id, content="x")


def step(name, tag=None):
    return by(tag, "STEP_STARTED", stepName=name)


def step_ends(name, tag=None):
    return by(tag, "STEP_FINISHED", stepName=name)


def activity(id_, tag=None, content=None, **more):
    return by(
        tag, "ACTIVITY_SNAPSHOT", messageId=id_, activityType="plan", content=content or {"n": 1}, **more
    )


def amends(id_, tag=None, path="/n", value=2):
    patch = [{"op": "replace", "path": path, "value": value}]
    return by(tag, "ACTIVITY_DELTA", messageId=id_, activityType="plan", patch=patch)


def announced(tag, **more):
    return {"type": "SUBAGENT_STARTED", "subagentRunId": tag, "name": "worker", **more}


def closed(tag, **more):
    return {"type": "SUBAGENT_FINISHED", "subagentRunId": tag, **more}


def value(entity, tag=None, subtype="message"):
    return by(tag, "REASONING_ENCRYPTED_VALUE", entityId=entity, subtype=subtype, encryptedValue="x")


def chunk(kind, tag=None, **members):
    return by(tag, f"{kind}_CHUNK", **members)


# --- an item that had its error is not mentioned again, whichever way it is wrong next -----------------------------


@pytest.mark.parametrize(
    ("events", "first"),
    [
        pytest.param(
            [text("m", "a"), text("m", "a"), text("m", "b"), says("m", "b"), ends("m", "b"), ends("m")],
            (
                "text-already-open",
                2,
                "/messageId",
                1,
                "TEXT_MESSAGE_START opens text message 'm', which event 1 opened and nothing closed",
            ),
            id="text, opened twice",
        ),
        pytest.param(
            [text("m", "a"), ends("m"), text("m", "b"), ends("m"), text("m", "c"), ends("m"), ends("m")],
            (
                "text-owner",
                3,
                "/subagentRunId",
                1,
                "TEXT_MESSAGE_START reopens text message 'm' for subagent 'b'; event 1 gave it to subagent 'a'",
            ),
            id="text, reopened for others",
        ),
        pytest.param(
            [
                text("m"),
                ends("m"),
                text("m", role="user"),
                ends("m"),
                text("m", name="ann"),
                ends("m"),
                says("m"),
            ],
            (
                "text-reopened-differently",
                3,
                "/role",
                1,
                "role is 'user', but event 1 opened text message 'm' with 'assistant'",
            ),
            id="text, reopened differently",
        ),
        pytest.param(
            [
                span("m", "a"),
                span("m", "a"),
                span("m", "b"),
                span_ends("m", "b"),
                span_ends("m"),
                span_ends("m"),
            ],
            (
                "span-already-open",
                2,
                "/messageId",
                1,
                "REASONING_START opens reasoning span 'm', which event 1 opened and nothing closed",
            ),
            id="span, opened twice",
        ),
        pytest.param(
            [span_ends("m"), span("m"), span("m"), span_ends("m")],
            (
                "span-not-open",
                1,
                "/messageId",
                None,
                "REASONING_END names reasoning span 'm', which is not open",
            ),
            id="span, closed before it was opened",
        ),
        pytest.param(
            [
                call("c", "a"),
                call("c", "a"),
                call("c", "b"),
                call_ends("c", "b"),
                call_ends("c"),
                call_ends("c"),
            ],
            (
                "call-already-open",
                2,
                "/toolCallId",
                1,
                "TOOL_CALL_START opens tool call 'c', which event 1 opened and nothing closed",
            ),
            id="call, opened twice",
        ),
        pytest.param(
            [call_ends("c"), call("c"), call("c"), call_ends("c")],
            ("call-not-open", 1, "/toolCallId", None, "TOOL_CALL_END names tool call 'c', which is not open"),
            id="call, closed before it was opened",
        ),
        pytest.param(
            [
                call("c", "a"),
                call_ends("c"),
                call("c", "b"),
                call_ends("c"),
                call("c", "c"),
                call_ends("c"),
                call_ends("c"),
            ],
            (
                "call-owner",
                3,
                "/subagentRunId",
                1,
                "TOOL_CALL_START reopens tool call 'c' for subagent 'b'; event 1 gave it to subagent 'a'",
            ),
            id="call, reopened for others",
        ),
        pytest.param(
            [call_ends("c"), call("c"), call_ends("c"), call("c", name="g"), call_ends("c")],
            ("call-not-open", 1, "/toolCallId", None, "TOOL_CALL_END names tool call 'c', which is not open"),
            id="call, reopened differently after an error",
        ),
        pytest.param(
            [step("s", "a"), step("s", "a"), step("s", "a"), step_ends("s", "a"), step_ends("s", "a")],
            ("step-already-open", 2, "/stepName", 1, "step 's' of subagent 'a' is open since event 1"),
            id="step, opened twice",
        ),
        pytest.param(
            [
                step("s", "a"),
                step_ends("s", "b"),
                step_ends("s", "b"),
                step("s", "b"),
                step("s", "b"),
                step_ends("s", "b"),
                step_ends("s", "b"),
            ],
            (
                "step-owner",
                2,
                "/subagentRunId",
                1,
                "step 's' is finished for subagent 'b'; it is subagent 'a' that has it open",
            ),
            id="step, finished by another, who has it open later",
        ),
        pytest.param(
            [step("s", "a"), step_ends("s"), step_ends("s"), step_ends("s", "a"), step_ends("s", "a")],
            (
                "step-owner",
                2,
                "",
                1,
                "step 's' is finished for the parent agent; it is subagent 'a' that has it open",
            ),
            id="step, finished by the parent agent",
        ),
        pytest.param(
            [step_ends("s", "a"), step_ends("s", "a"), step("s", "a"), step("s", "a"), step_ends("s", "a")],
            ("step-not-open", 1, "/stepName", None, "step 's' of subagent 'a' is not open"),
            id="step, never opened",
        ),
        pytest.param(
            [activity("v", "a"), amends("v", "b"), amends("v", "c"), amends("v", "c", "/zz")],
            (
                "activity-owner",
                2,
                "/subagentRunId",
                1,
                "ACTIVITY_DELTA of activity 'v' is tagged subagent 'b', but event 1 gave it to subagent 'a'",
            ),
            id="activity, amended by others",
        ),
        pytest.param(
            [activity("v"), amends("v", path="/zz"), activity("v"), amends("v", path="/zz"), amends("v")],
            (
                "activity-patch",
                2,
                "/patch/0/path",
                None,
                "the patch does not apply: operation 0: there is no '/zz': no member 'zz'",
            ),
            id="activity, patched where nothing is",
        ),
        pytest.param(
            [
                activity("v"),
                amends("v", path="", value=5),
                amends("v", path="/zz"),
                activity("v"),
                amends("v", path="", value=6),
            ],
            ("activity-not-object", 2, "/patch", 1, "the patch makes the content of activity 'v' 5"),
            id="activity, made a number",
        ),
        pytest.param(
            [amends("v"), amends("v"), activity("v"), amends("v", path="/zz")],
            (
                "activity-no-snapshot",
                1,
                "/messageId",
                None,
                "ACTIVITY_DELTA amends activity 'v', which was never made",
            ),
            id="activity, never made",
        ),
        pytest.param(
            [text("v"), ends("v"), activity("v"), amends("v"), activity("v")],
            (
                "message-id-reused",
                3,
                "/messageId",
                1,
                "ACTIVITY_SNAPSHOT makes message 'v', an id that names a text message since event 1",
            ),
            id="activity, under the id of a text",
        ),
        pytest.param(
            [
                activity("v", "a"),
                activity("v", "b", replace=False),
                amends("v", "b"),
                activity("v", "c", replace=False),
            ],
            (
                "activity-kept-owner",
                2,
                "/subagentRunId",
                1,
                "activity 'v' stays subagent 'a''s, but the snapshot is tagged subagent 'b'",
            ),
            id="activity, kept by its owner",
        ),
        pytest.param(
            [
                text("a1"),
                ends("a1"),
                call("c"),
                call_ends("c"),
                answer("c"),
                call("d"),
                call_ends("d"),
                answer("d"),
            ],
            (
                "message-id-reused",
                5,
                "/messageId",
                1,
                "TOOL_CALL_RESULT makes message 'a1', an id that names a text message since event 1",
            ),
            id="results, twice under the id of a text",
        ),
        pytest.param(
            [closed("a"), announced("a"), announced("a"), closed("a"), closed("a")],
            (
                "subagent-not-announced",
                1,
                "/subagentRunId",
                None,
                "SUBAGENT_FINISHED closes subagent 'a', which this run has not announced",
            ),
            id="subagent, closed before it was announced",
        ),
        pytest.param(
            [
                announced("a", parentSubagentRunId="zz"),
                announced("a"),
                closed("a"),
                closed("a"),
                announced("a"),
            ],
            (
                "subagent-parent-unknown",
                1,
                "/parentSubagentRunId",
                None,
                "subagent 'a' names as its parent subagent 'zz', which this run has not announced",
            ),
            id="subagent, of an unknown parent",
        ),
        pytest.param(
            [text("m", "a"), ends("m"), announced("a"), announced("a"), closed("a"), closed("a")],
            (
                "announced-late",
                1,
                "/subagentRunId",
                3,
                "this event carries the tag of subagent 'a', which event 3 announces only later",
            ),
            id="subagent, announced late",
        ),
        pytest.param(
            [text("m", "a"), value("m", "b"), value("m", "c"), says("m", "b"), ends("m", "b"), ends("m")],
            (
                "reasoning-owner",
                2,
                "/subagentRunId",
                1,
                "the value for 'm' is tagged subagent 'b', but event 1 gave that to subagent 'a'",
            ),
            id="text, value of another",
        ),
        pytest.param(
            [thought("m", "a"), value("m", "b"), value("m", "c"), thought_ends("m", "b"), thought_ends("m")],
            (
                "reasoning-owner",
                2,
                "/subagentRunId",
                1,
                "the value for 'm' is tagged subagent 'b', but event 1 gave that to subagent 'a'",
            ),
            id="reasoning, value of another",
        ),
        pytest.param(
            [
                call("c", "a"),
                value("c", "b", "tool-call"),
                value("c", "c", "tool-call"),
                call_ends("c", "b"),
                call_ends("c"),
            ],
            (
                "call-owner",
                2,
                "/subagentRunId",
                1,
                "the value for 'c' is tagged subagent 'b', but event 1 gave that to subagent 'a'",
            ),
            id="call, value of another",
        ),
        pytest.param(
            [by(None, "CUSTOM", name="bare", value=1), by(None, "CUSTOM", name="bare", value=1)],
            ("custom-name", 1, "/name", None, "CUSTOM is named 'bare', without a prefix"),
            id="custom, twice",
        ),
        pytest.param(
            [
                chunk("TEXT_MESSAGE", messageId="m"),
                chunk("TEXT_MESSAGE", messageId="m", role="user"),
                chunk("TEXT_MESSAGE", messageId="m", role="system"),
            ],
            (
                "chunk-repeat",
                2,
                "/role",
                1,
                "role is 'user', but the first chunk, event 1, opened text message 'm' with role 'assistant'",
            ),
            id="chunk, differing twice",
        ),
        pytest.param(
            [
                chunk("TOOL_CALL", toolCallId="c", toolCallName="f"),
                chunk("TOOL_CALL", toolCallId="c", parentMessageId="m"),
                call_ends("c"),
                call("c"),
                call("c"),
                call_ends("c"),
            ],
            (
                "chunk-repeat",
                2,
                "/parentMessageId",
                1,
                "parentMessageId is 'm', but the first chunk, event 1, opened tool call 'c' with no parentMessageId",
            ),
            id="chunk, naming a message late",
        ),
        pytest.param(
            [chunk("TEXT_MESSAGE"), chunk("TEXT_MESSAGE")],
            (
                "chunk-first",
                1,
                "",
                None,
                "TEXT_MESSAGE_CHUNK continues nothing that the parent agent has open, and has no messageId",
            ),
            id="chunk, of nothing, twice",
        ),
        pytest.param(
            [chunk("TOOL_CALL")],
            (
                "chunk-first",
                1,
                "",
                None,
                "TOOL_CALL_CHUNK continues nothing that the parent agent has open, and has no toolCallId and no toolCallName",
            ),
            id="chunk, of no call",
        ),
        pytest.param(
            [
                {
                    "type": "MESSAGES_SNAPSHOT",
                    "messages": [{"id": "m", "role": "user", "content": str(n)} for n in range(3)],
                }
            ],
            (
                "message-id-reused",
                1,
                "/messages/1/id",
                None,
                "messages 0 and 1 of the snapshot have the same id 'm'",
            ),
            id="snapshot, one id three times",
        ),
        pytest.param(
            [
                {
                    "type": "MESSAGES_SNAPSHOT",
                    "messages": [
                        {
                            "id": f"m{tag}",
                            "role": "assistant",
                            "toolCalls": [
                                {"id": id_, "type": "function", "function": {"name": "f", "arguments": ""}}
                                for id_ in (f"mine-{tag}", "c")
                            ],
                            "subagentRunId": tag,
                        }
                        for tag in "abc"
                    ],
                },
                call("c", "z"),
                call_ends("c"),
            ],
            (
                "call-message-owner",
                1,
                "/messages/1/toolCalls/1/id",
                None,
                "tool call 'c' is in message 0 of subagent 'a' and in message 1 of subagent 'b'",
            ),
            id="snapshot, one call of three owners",
        ),
    ],
)
def test_one_item_has_one_error(events, first):
    found = [one for one in in_a_run(*events) if one[0] not in ("pending-calls-unlisted", "result-repeated")]
    assert found == [first]


# --- who is late, whatever carried the tag ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "event",
    [
        by("a", "RAW", event=1),
        by("a", "CUSTOM", name="x.y", value=1),
        by("a", "STATE_SNAPSHOT", snapshot={}),
        by("a", "STATE_DELTA", delta=[{"op": "add", "path": "/x", "value": 1}]),
        step("s", "a"),
        span("m", "a"),
        thought("m", "a"),
        text("m", "a"),
        call("c", "a"),
        answer("c", "a"),
        activity("v", "a"),
        amends("v", "a"),
        value("m", "a"),
        chunk("TEXT_MESSAGE", "a", messageId="m"),
        chunk("REASONING_MESSAGE", "a", messageId="m"),
        chunk("TOOL_CALL", "a", toolCallId="c", toolCallName="f"),
    ],
    ids=lambda event: event["type"],
)
def test_whatever_carries_a_tag_before_its_announcement_is_too_early(event):
    message = "this event carries the tag of subagent 'a', which event 2 announces only later"
    late = ("announced-late", 1, "/subagentRunId", 2, message)
    assert told(STARTED, event, announced("a"))[-2] == late


# --- what a later run may, and what it may not ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (
            [activity("v", "a")],
            [amends("v", "b")],
            (
                "owner-changed-across-runs",
                4,
                "/subagentRunId",
                1,
                "ACTIVITY_DELTA of activity 'v' is tagged subagent 'b', but event 1 gave it to subagent 'a'",
            ),
        ),
        (
            [thought("m", "a"), thought_ends("m")],
            [thought("m", "b"), thought_ends("m")],
            (
                "owner-changed-across-runs",
                5,
                "/subagentRunId",
                1,
                "REASONING_MESSAGE_START reopens reasoning message 'm' for subagent 'b'; event 1 gave it to subagent 'a'",
            ),
        ),
        (
            [call("c", "a"), call_ends("c"), answer("c")],
            [call("c"), call_ends("c"), answer("c", message="a2")],
            (
                "owner-changed-across-runs",
                6,
                "",
                1,
                "TOOL_CALL_START reopens tool call 'c' for the parent agent; event 1 gave it to subagent 'a'",
            ),
        ),
    ],
    ids=["activity", "reasoning", "call"],
)
def test_across_runs_another_owner_is_worth_a_word(before, after, found):
    assert told(STARTED, *before, FINISHED, SECOND, *after, SECOND_FINISHED) == [found]


def test_across_runs_a_value_and_an_interrupt_may_name_what_was_anothers():
    question = {"id": "i", "reason": "x", "toolCallId": "c", "subagentRunId": "b"}
    outcome = {"type": "interrupt", "interrupts": [question]}
    assert told(
        STARTED,
        call("c", "a"),
        call_ends("c"),
        answer("c", "a"),
        FINISHED,
        SECOND,
        value("c", "b", "tool-call"),
        announced("b"),
        {**SECOND_FINISHED, "outcome": outcome},
        profile="consumer",
    ) == [
        (
            "announced-late",
            6,
            "/subagentRunId",
            7,
            "this event carries the tag of subagent 'b', which event 7 announces only later",
        ),
        ("subagent-left-open", 8, "", 7, "subagent 'b' is still active when the run finishes"),
    ]


# --- what cannot be read, or not all of it ----------------------------------------------------------------------


def test_a_run_that_does_not_say_who_it_is_is_held_to_nothing_that_it_did_not_say():
    def wrong(event, member):
        return ("wrong-value", event, f"/{member}", None, f"{member} is 5, where the schema has a string")

    for member in ("threadId", "runId"):
        assert told({**STARTED, member: 5}, FINISHED, SECOND, SECOND_FINISHED) == [wrong(0, member)]
        assert told(STARTED, {**FINISHED, member: 5}, SECOND, SECOND_FINISHED) == [wrong(1, member)]
        assert told(STARTED, FINISHED, {**SECOND, member: 5}, SECOND_FINISHED) == [wrong(2, member)]


def test_what_a_refused_beginning_does_say_counts_for_the_runs_after_it():
    found = told({**STARTED, "protocolVersion": 5}, FINISHED, STARTED, FINISHED)
    assert found == [
        ("wrong-value", 0, "/protocolVersion", None, "protocolVersion is 5, where the schema has a string"),
        ("run-id-reused", 2, "/runId", 0, "runId 'r1' was used by the run that began at event 0"),
    ]
    found = told({**STARTED, "protocolVersion": 5}, FINISHED, {**SECOND, "threadId": "t2"})[1:2]
    assert found == [
        ("thread-changed", 2, "/threadId", 0, "run 'r2' is on thread 't2'; the stream's thread is 't1'")
    ]


def test_a_refused_end_ends_the_run_all_the_same():
    left = (
        "text-left-open",
        2,
        "",
        1,
        "text message 'm' of the parent agent is still open when the run finishes",
    )
    assert told(STARTED, {**FINISHED, "timestamp": "x"}, says("m"))[1:] == [
        (
            "after-finished",
            2,
            "",
            None,
            "TEXT_MESSAGE_CONTENT follows RUN_FINISHED of the run that began at event 0",
        )
    ]
    assert told(STARTED, {"type": "RUN_ERROR", "message": 5}, says("m"))[1:] == [
        (
            "after-error",
            2,
            "",
            None,
            "TEXT_MESSAGE_CONTENT follows RUN_ERROR of the run that began at event 0",
        )
    ]
    assert told(STARTED, text("m"), {**FINISHED, "zz": 1}, profile="consumer")[1:] == [left]


def test_what_a_refused_event_may_have_changed_is_not_known():
    bad_state = {"type": "STATE_DELTA", "delta": 5}
    delta = {"type": "STATE_DELTA", "delta": [{"op": "remove", "path": "/zz"}]}
    state = {"type": "STATE_SNAPSHOT", "snapshot": {"a": 1}}
    assert [one[:2] for one in in_a_run(state, bad_state, delta)] == [("wrong-value", 2)]
    bad_activity = {**amends("v"), "patch": 5}
    assert [one[:2] for one in in_a_run(activity("v"), bad_activity, amends("v", path="/zz"))] == [
        ("wrong-value", 2)
    ]
    assert [one[:2] for one in in_a_run({**activity("v"), "content": 5}, amends("v", path="/zz"))] == [
        ("wrong-value", 1)
    ]
    assert [one[:2] for one in in_a_run({**activity("v"), "content": 5}, text("v"), ends("v"))] == [
        ("wrong-value", 1),
        ("message-id-reused", 2),
    ]


def test_a_refused_end_of_an_invocation_is_its_end():
    bad = {**closed("a"), "timestamp": "x"}
    assert [one[:2] for one in in_a_run(announced("a"), bad, text("m", "a"), ends("m"))] == [
        ("wrong-value", 2)
    ]
    assert [one[:2] for one in in_a_run(bad, announced("b", parentSubagentRunId="a"), closed("b"))] == [
        ("wrong-value", 1),
    ]
    returns = told(
        STARTED, announced("a"), bad, FINISHED, SECOND, announced("a"), closed("a"), SECOND_FINISHED
    )
    assert returns[1:] == [
        (
            "subagent-id-returns",
            5,
            "/subagentRunId",
            None,
            "subagent 'a' comes back; in an earlier run it was closed, not suspended",
        )
    ]


def test_a_refused_beginning_of_an_invocation_is_its_beginning():
    bad = {**announced("a"), "name": 5}
    assert [
        one[:2] for one in in_a_run(bad, announced("b", parentSubagentRunId="a"), closed("b"), closed("a"))
    ] == [("wrong-value", 1)]


def test_a_record_may_be_skipped_and_counts():
    judge = Validator()
    judge.feed(STARTED)
    judge.feed({"type": "STATE_SNAPSHOT", "snapshot": {}})
    (finding,) = judge.skip("it is too long")
    assert (finding.rule, finding.event, finding.message) == (
        "beyond-limits",
        2,
        "the record cannot be read: it is too long",
    )
    assert judge.events == 3
    assert judge.feed({"type": "STATE_DELTA", "delta": [{"op": "remove", "path": "/zz"}]}) == []
    assert judge.feed(FINISHED) == judge.finish() == []


def test_beyond_the_limit_the_run_is_not_followed_and_one_finding_says_so():
    assert in_a_run(text("m1"), text("m2"), text("m3"), span("s1"), span("s2"), max_open=1) == [
        (
            "beyond-limits",
            2,
            "",
            None,
            "more than 1 items of one kind are open at once; the rest of the run is not fully judged",
        )
    ]


def test_a_name_that_only_python_uses_is_said_once_and_the_missing_one_with_it():
    def member(path):
        return {
            "type": "MESSAGES_SNAPSHOT",
            "messages": [{"id": "m", "role": "tool", "content": "x", **path}],
        }

    assert in_a_run(member({"tool_call_id": "c"})) == [
        (
            "unknown-member",
            1,
            "/messages/0/tool_call_id",
            None,
            "the schema has no messages[0].tool_call_id here; on the wire it is 'toolCallId'",
        )
    ]
    assert in_a_run({**member({}), "tool_call_id": "c"}) == [
        ("missing-member", 1, "/messages/0", None, "messages[0].toolCallId is missing"),
        (
            "unknown-member",
            1,
            "/tool_call_id",
            None,
            "the schema has no tool_call_id here; on the wire it is 'toolCallId'",
        ),
    ]
    assert in_a_run({"type": "SUBAGENT_FINISHED", "subagent_run_id": "a", "_x": 1}) == [
        (
            "unknown-member",
            1,
            "/subagent_run_id",
            None,
            "the schema has no subagent_run_id here; on the wire it is 'subagentRunId'",
        ),
        ("unknown-member", 1, "/_x", None, "the schema has no _x here"),
    ]


# --- contracts --------------------------------------------------------------------------------------------------


def contracted(tag, *, parent=None, **contract):
    more = {} if parent is None else {"parentSubagentRunId": parent}
    return announced(tag, metadata={"byline": contract}, **more)


def test_an_isolated_one_has_neither_messages_nor_state():
    assert in_a_run(
        contracted("a", context="isolated", inheritedMessages=1, inheritedState=["k"]), closed("a")
    ) == [
        (
            "contract-isolated",
            1,
            f"/metadata/byline/{member}",
            None,
            f"subagent 'a' is declared isolated and has {member}",
        )
        for member in ("inheritedMessages", "inheritedState")
    ]


def test_serial_is_among_the_children_of_one_parent():
    serial = {"concurrency": "serial"}
    assert in_a_run(
        announced("p"),
        contracted("a", **serial),
        contracted("b", parent="p", **serial),
        contracted("c", parent="p", **serial),
        *(closed(tag) for tag in "cbap"),
    ) == [
        (
            "contract-serial",
            4,
            "/metadata/byline/concurrency",
            3,
            "subagent 'c' is announced while its sibling subagent 'b' is active, both declared serial",
        )
    ]


def test_a_caller_that_gave_control_away_is_told_once_per_hand_off():
    events = (
        announced("p"),
        contracted("a", parent="p", returns="manual"),
        text("m", "p"),
        ends("m"),
        call("c", "p"),
        call_ends("c"),
        closed("a"),
        text("n", "p"),
        ends("n"),
        closed("p"),
    )
    assert [one for one in in_a_run(*events) if one[0] != "pending-calls-unlisted"] == [
        (
            "contract-control",
            3,
            "",
            2,
            "TEXT_MESSAGE_START of subagent 'p' while subagent 'a' has control since event 2",
        )
    ]


# --- snapshots and the echoed input -----------------------------------------------------------------------------


def test_a_snapshot_with_activities_says_which_there_are():
    plan = {"id": "v", "role": "activity", "activityType": "plan", "content": {"m": 1}}
    user = {"id": "u", "role": "user", "content": "x"}
    lost = amends("w", path="/zz")
    refused = (
        "activity-patch",
        "/patch/0/path",
        None,
        "the patch does not apply: operation 0: there is no '/zz': no member 'zz'",
    )
    assert in_a_run(activity("w"), {"type": "MESSAGES_SNAPSHOT", "messages": [user, plan]}, lost) == []
    assert in_a_run(activity("w"), {"type": "MESSAGES_SNAPSHOT", "messages": [user]}, lost) == [
        (refused[0], 3, *refused[1:])
    ]
    assert in_a_run(
        {"type": "MESSAGES_SNAPSHOT", "messages": [plan]}, amends("v", path="/m"), amends("v", path="/zz")
    ) == [(refused[0], 3, *refused[1:])]


def test_the_input_of_a_run_says_what_the_state_is_and_none_is_empty_only_in_the_first():
    def echoing(start, **more):
        ids = {"threadId": start["threadId"], "runId": start["runId"]}
        return {
            **start,
            "input": {**ids, "messages": [], "tools": [], "context": [], "forwardedProps": {}, **more},
        }

    remove = {"type": "STATE_DELTA", "delta": [{"op": "remove", "path": "/a"}]}
    assert told(echoing(STARTED, state={"a": 1}), remove, FINISHED) == []
    assert [one[:2] for one in told(echoing(STARTED), remove, FINISHED)] == [("state-patch", 1)]
    state = {"type": "STATE_SNAPSHOT", "snapshot": {"a": 1}}
    assert told(STARTED, state, FINISHED, echoing(SECOND), remove, SECOND_FINISHED) == []
    assert told(STARTED, FINISHED, echoing(SECOND), remove, SECOND_FINISHED) == []


def test_an_error_between_runs_takes_back_what_was_asked():
    question = {"type": "interrupt", "interrupts": [{"id": "i", "reason": "x"}]}
    echoed = {
        "threadId": "t1",
        "runId": "r2",
        "messages": [],
        "tools": [],
        "context": [],
        "forwardedProps": {},
    }
    second = {**SECOND, "input": echoed}
    error = {"type": "RUN_ERROR", "message": "no"}
    asked = {**FINISHED, "outcome": question}
    assert told(STARTED, asked, error, second, SECOND_FINISHED) == []
    assert [one[:2] for one in told(STARTED, asked, second, SECOND_FINISHED)] == [("resume-absent", 2)]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_json_has_not_makes_no_record(number):
    raw = '{"type":"RAW","event":' + number + "}"
    found = told(STARTED, raw, FINISHED)
    assert [(rule, event) for rule, event, *_ in found] == [("not-json", 1)]
