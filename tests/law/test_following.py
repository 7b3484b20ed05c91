"""What the validator follows: what snapshots restate, what is reopened, what refused events leave behind."""

import json

import pytest
from byline.validator import Validator
from byline.validator._alone import read_alone
from byline.validator._book import key_of, named
from test_findings import (
    FINISHED,
    SECOND,
    SECOND_FINISHED,
    STARTED,
    activity,
    amends,
    announced,
    answer,
    by,
    call,
    call_ends,
    chunk,
    closed,
    ends,
    in_a_run,
    says,
    span,
    span_ends,
    step,
    step_ends,
    text,
    thought,
    thought_ends,
    told,
    value,
)


def places(*events, **options):
    """Return rule, event and related event of what is told of a run of `events`."""
    return [(rule, event, related) for rule, event, _, related, _ in in_a_run(*events, **options)]


def snapshot(*messages):
    return {"type": "MESSAGES_SNAPSHOT", "messages": list(messages)}


def tool_call(id_, name="f"):
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": "{}"}}


def echoing(*messages, state=None, start=STARTED):
    echoed = {"threadId": start["threadId"], "runId": start["runId"], "messages": list(messages), "tools": []}
    return {**start, "input": {**echoed, "context": [], "forwardedProps": {}}}


# --- what a snapshot says of a message is so from then on --------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "reopened", "found"),
    [
        (
            {"role": "user", "content": "x"},
            {},
            "role is 'assistant', but event 1 opened text message 'm' with 'user'",
        ),
        ({"role": "user", "content": "x"}, {"role": "user"}, None),
        (
            {"role": "assistant", "name": "ann"},
            {},
            "name is null, but event 1 opened text message 'm' with 'ann'",
        ),
        ({"role": "assistant", "name": "ann"}, {"name": "ann"}, None),
        ({"role": "assistant"}, {}, None),
        (
            {"role": "assistant"},
            {"name": "ann"},
            "name is 'ann', but event 1 opened text message 'm' with null",
        ),
    ],
)
def test_a_snapshot_says_how_a_message_is_opened_again(message, reopened, found):
    events = [snapshot({"id": "m", **message}), text("m", **reopened), ends("m")]
    rule = "text-reopened-differently"
    pointer = "/role" if message["role"] == "user" else "/name"
    assert in_a_run(*events) == ([] if found is None else [(rule, 2, pointer, 1, found)])


def test_a_snapshot_forgets_how_a_message_was_opened():
    assert (
        in_a_run(
            text("m", role="user"),
            ends("m"),
            snapshot({"id": "m", "role": "assistant"}),
            text("m"),
            ends("m"),
        )
        == []
    )


@pytest.mark.parametrize(
    ("role", "more", "noun"),
    [
        ("reasoning", {"content": "x"}, "a reasoning message"),
        ("activity", {"activityType": "plan", "content": {}}, "an activity"),
        ("tool", {"toolCallId": "c", "content": "x"}, "a tool result"),
    ],
)
def test_a_snapshot_says_what_an_id_names(role, more, noun):
    assert in_a_run(snapshot({"id": "m", "role": role, **more}), text("m"), ends("m")) == [
        (
            "message-id-reused",
            2,
            "/messageId",
            1,
            f"TEXT_MESSAGE_START opens 'm', an id that names {noun} since event 1",
        )
    ]


def test_a_snapshot_in_the_middle_of_items_says_whose_they_are():
    mine = {"role": "assistant", "subagentRunId": "a"}
    assert (
        places(
            text("m", "b"),
            thought("g", "b"),
            call("c", "b"),
            snapshot(
                {"id": "m", **mine, "toolCalls": [tool_call("c")]},
                {"id": "g", "role": "reasoning", "content": "", "subagentRunId": "a"},
            ),
            says("m", "a"),
            ends("m", "a"),
            thought_ends("g", "a"),
            call_ends("c", "a"),
            answer("c", "a"),
        )
        == []
    )
    assert in_a_run(
        call("c", "b"),
        snapshot({"id": "m", **mine, "toolCalls": [tool_call("c")]}),
        call_ends("c", "b"),
        answer("c", "a"),
    ) == [
        (
            "call-owner",
            3,
            "/subagentRunId",
            1,
            "TOOL_CALL_END of tool call 'c' is tagged subagent 'b', but event 1 opened it for subagent 'a'",
        )
    ]


def test_a_snapshot_says_which_calls_there_are_and_answers_them():
    holder = {"id": "m", "role": "assistant", "toolCalls": [tool_call("c", "search")]}
    result = {"id": "r", "role": "tool", "toolCallId": "c", "content": "x"}
    unknown = {"id": "q", "role": "tool", "toolCallId": "zz", "content": "x"}
    assert in_a_run(call("c", name="search"), call_ends("c"), snapshot(holder, result, unknown)) == []
    assert in_a_run(
        snapshot(holder), call("c", name="fetch", parentMessageId="n"), call_ends("c"), answer("c")
    ) == [
        (
            "call-reopened-differently",
            2,
            "/toolCallName",
            1,
            "toolCallName is 'fetch', but event 1 opened tool call 'c' with 'search'",
        )
    ]
    assert in_a_run(
        snapshot(holder), call("c", name="search", parentMessageId="n"), call_ends("c"), answer("c")
    ) == [
        (
            "call-reopened-differently",
            2,
            "/parentMessageId",
            1,
            "parentMessageId is 'n', but event 1 opened tool call 'c' with 'm'",
        )
    ]


def test_a_call_that_was_reopened_tagged_may_leave_out_its_message():
    assert (
        in_a_run(call("c", parentMessageId="m"), call_ends("c"), call("c"), call_ends("c"), answer("c")) == []
    )


# --- what the echoed input says is of this run ------------------------------------------------------------------


def test_what_the_input_shows_has_its_owner_in_the_run():
    plan = {"id": "v", "role": "activity", "activityType": "plan", "content": {"n": 1}, "subagentRunId": "a"}
    holder = {"id": "m", "role": "assistant", "subagentRunId": "a", "toolCalls": [tool_call("c")]}

    def whole(*events, outcome=None):
        finished = FINISHED if outcome is None else {**FINISHED, "outcome": outcome}
        return told(echoing(plan, holder), *events, finished)

    assert whole(amends("v", "b")) == [
        (
            "activity-owner",
            1,
            "/subagentRunId",
            0,
            "ACTIVITY_DELTA of activity 'v' is tagged subagent 'b', but event 0 gave it to subagent 'a'",
        )
    ]
    assert whole(activity("v", "b", replace=False)) == [
        (
            "activity-kept-owner",
            1,
            "/subagentRunId",
            0,
            "activity 'v' stays subagent 'a''s, but the snapshot is tagged subagent 'b'",
        )
    ]
    assert whole(value("c", "b", "tool-call")) == [
        (
            "call-owner",
            1,
            "/subagentRunId",
            0,
            "the value for 'c' is tagged subagent 'b', but event 0 gave that to subagent 'a'",
        )
    ]
    assert whole(call("c", "b"), call_ends("c"), answer("c")) == [
        (
            "call-owner",
            1,
            "/subagentRunId",
            0,
            "TOOL_CALL_START reopens tool call 'c' for subagent 'b'; event 0 gave it to subagent 'a'",
        )
    ]
    assert whole(call("c"), call_ends("c", "a"), answer("c")) == []
    assert whole(call("d", "b", parentMessageId="m"), call_ends("d"), answer("d")) == [
        (
            "call-message-owner",
            1,
            "/parentMessageId",
            0,
            "tool call 'd' of subagent 'b' is in message 'm', which event 0 gave to subagent 'a'",
        )
    ]
    interrupt = {"id": "i", "reason": "x", "toolCallId": "c"}
    assert whole(outcome={"type": "interrupt", "interrupts": [interrupt]}) == [
        (
            "interrupt-call-owner",
            1,
            "/outcome/interrupts/0",
            0,
            "interrupt 'i' of the parent agent is about a tool call that event 0 gave to subagent 'a'",
        )
    ]


# --- calls and the messages that hold them ----------------------------------------------------------------------


def test_a_call_without_a_message_makes_one_under_its_own_id():
    call_in_it = call("d", parentMessageId="c")
    assert (
        in_a_run(
            call("c", "a"),
            call_ends("c"),
            call_in_it,
            call_ends("d", "a"),
            answer("c"),
            answer("d", message="a2"),
        )
        == []
    )
    assert in_a_run(call("c"), call_ends("c"), answer("c", message="c")) == [
        (
            "message-id-reused",
            3,
            "/messageId",
            1,
            "TOOL_CALL_RESULT makes message 'c', an id that names the message of a tool call since event 1",
        )
    ]
    assert in_a_run(call("c", parentMessageId="m"), call_ends("c"), answer("c", message="c")) == []


def test_a_result_may_be_sent_again_under_its_id_and_not_under_another_messages():
    assert in_a_run(call("c"), call_ends("c"), answer("c"), answer("c")) == [
        ("result-repeated", 4, "/toolCallId", 3, "tool call 'c' has its result at event 3 already")
    ]


def test_a_call_reopened_without_tag_or_message_stays_whose_it_is():
    assert (
        in_a_run(
            text("m", "a"),
            ends("m"),
            call("c", "a", parentMessageId="m"),
            call_ends("c"),
            call("c"),
            call_ends("c", "a"),
            answer("c"),
        )
        == []
    )


def test_ownership_of_messages_is_not_tracked_over_runs():
    assert (
        told(
            STARTED,
            text("m", "a"),
            ends("m"),
            FINISHED,
            SECOND,
            call("c", "b", parentMessageId="m"),
            call_ends("c", "b"),
            answer("c"),
            SECOND_FINISHED,
        )
        == []
    )


def test_a_caller_that_gave_control_away_may_not_call_either():
    manual = {"byline": {"returns": "manual"}}
    found = in_a_run(
        announced("p"),
        announced("a", parentSubagentRunId="p", metadata=manual),
        call("c", "p"),
        call_ends("c"),
        answer("c"),
        closed("a"),
        closed("p"),
    )
    assert found == [
        (
            "contract-control",
            3,
            "",
            2,
            "TOOL_CALL_START of subagent 'p' while subagent 'a' has control since event 2",
        )
    ]


# --- messages and values ----------------------------------------------------------------------------------------


def test_an_id_that_names_something_else_is_said_once_and_stays_what_it_was():
    assert in_a_run(
        text("m"), ends("m"), thought("m"), thought_ends("m"), thought("m"), thought_ends("m"), says("m")
    ) == [
        (
            "message-id-reused",
            3,
            "/messageId",
            1,
            "REASONING_MESSAGE_START opens 'm', an id that names a text message since event 1",
        ),
        (
            "text-not-open",
            7,
            "/messageId",
            None,
            "TEXT_MESSAGE_CONTENT names text message 'm', which is not open",
        ),
    ]


def test_a_message_that_was_reopened_twice_at_once_is_still_its_owners():
    assert places(text("m", "a"), text("m", "b"), text("n", "a"), ends("m", "a"), ends("n")) == [
        ("text-already-open", 2, 1)
    ]


def test_over_runs_a_message_is_whoever_reopens_its():
    assert told(
        STARTED,
        text("m", "a"),
        ends("m"),
        FINISHED,
        SECOND,
        text("m"),
        ends("m", "a"),
        SECOND_FINISHED,
    ) == [
        (
            "text-owner",
            6,
            "/subagentRunId",
            5,
            "TEXT_MESSAGE_END of text message 'm' is tagged subagent 'a', but event 5 opened it for the parent agent",
        )
    ]


def test_a_value_is_for_what_can_hold_one():
    assert in_a_run(
        value("zz", subtype="tool-call"),
        text("m"),
        ends("m"),
        value("m", subtype="tool-call"),
        call("c"),
        call_ends("c"),
        value("c", subtype="tool-call"),
        value("c"),
        answer("c"),
    ) == [
        (
            "encrypted-value-unknown",
            1,
            "/entityId",
            None,
            "tool call 'zz' is not known, or cannot hold a value",
        ),
        (
            "encrypted-value-unknown",
            4,
            "/entityId",
            None,
            "tool call 'm' is not known, or cannot hold a value",
        ),
    ]


# --- chunks -----------------------------------------------------------------------------------------------------


def test_of_several_lanes_an_untagged_chunk_fits_to_it_is_said_once_which():
    events = [
        chunk("TEXT_MESSAGE", "a", messageId="m"),
        chunk("TEXT_MESSAGE", "b", messageId="n"),
        chunk("TEXT_MESSAGE", delta="x"),
        chunk("TEXT_MESSAGE", delta="y"),
    ]
    assert in_a_run(*events) == [
        (
            "chunk-ambiguous",
            3,
            "",
            1,
            "TEXT_MESSAGE_CHUNK has neither messageId nor tag, and 2 subagents have a text message open",
        )
    ]


def test_a_lane_that_opened_at_last_may_be_wrong_again():
    assert [
        one[:2]
        for one in in_a_run(
            chunk("TEXT_MESSAGE"),
            chunk("TEXT_MESSAGE"),
            chunk("TEXT_MESSAGE", messageId="m"),
            by(None, "CUSTOM", name="x.y", value=1),
            chunk("TEXT_MESSAGE"),
        )
    ] == [("chunk-first", 1), ("chunk-first", 5)]


def test_a_lane_closes_its_item_and_one_that_is_mixed_is_said_once():
    assert [
        one[:2]
        for one in in_a_run(
            text("m"),
            chunk("TEXT_MESSAGE", messageId="m"),
            chunk("TEXT_MESSAGE", messageId="m"),
            ends("m"),
        )
    ] == [("chunk-mixed", 2)]
    assert [
        one[:2]
        for one in in_a_run(
            chunk("TEXT_MESSAGE", "a", messageId="m"),
            says("m", "a"),
            ends("m", "a"),
            chunk("TEXT_MESSAGE", "a"),
        )
    ] == [("chunk-mixed", 2), ("chunk-first", 4)]


def test_a_chunk_that_reopens_a_message_continues_it_for_its_owner():
    assert in_a_run(
        text("m", "a"),
        ends("m"),
        chunk("TEXT_MESSAGE", messageId="m"),
        chunk("TEXT_MESSAGE", "a", messageId="m"),
        chunk("TEXT_MESSAGE", "b", messageId="m"),
    ) == [
        (
            "text-owner",
            5,
            "/subagentRunId",
            3,
            "TEXT_MESSAGE_CHUNK of text message 'm' is tagged subagent 'b', but event 3 opened it for subagent 'a'",
        )
    ]


# --- the end of a run -------------------------------------------------------------------------------------------


def test_every_interrupt_of_a_suspended_one_is_looked_at():
    suspended = {"type": "suspended", "interruptIds": ["i8", "i9"]}
    found = told(STARTED, announced("a"), closed("a", outcome=suspended), FINISHED)
    assert found == [
        (
            "suspended-without-interrupt",
            2,
            f"/outcome/interruptIds/{position}",
            None,
            f"subagent 'a' waits for interrupt '{id_}', which the run does not end with",
        )
        for position, id_ in enumerate(["i8", "i9"])
    ]


def test_an_interrupt_of_one_that_failed_is_nobodys():
    interrupts = [{"id": "i", "reason": "x", "subagentRunId": "a"}] * 3
    failed = {"type": "SUBAGENT_ERROR", "subagentRunId": "a", "message": "no"}
    outcome = {"type": "interrupt", "interrupts": interrupts}
    found = told(STARTED, announced("a"), failed, {**FINISHED, "outcome": outcome})
    owner = "interrupt 'i' is tagged subagent 'a', which failed at event 2"
    assert found == [
        *(("interrupt-owner", 3, f"/outcome/interrupts/{n}/subagentRunId", 2, owner) for n in range(3)),
        (
            "interrupt-id-repeated",
            3,
            "/outcome/interrupts/1/id",
            None,
            "interrupts 0 and 1 have the same id 'i'",
        ),
    ]


# --- patches ----------------------------------------------------------------------------------------------------


def test_a_patch_is_refused_where_it_is_wrong():
    state = {"type": "STATE_SNAPSHOT", "snapshot": {"a": 1}}

    def delta(**operation):
        return {"type": "STATE_DELTA", "delta": [operation]}

    assert [one[2] for one in in_a_run(state, delta(op="test", path="/a", value=2))] == ["/delta/0/value"]
    assert [one[2] for one in in_a_run(state, delta(op="copy", path="/b", **{"from": "/z"}))] == [
        "/delta/0/from"
    ]
    assert [one[2] for one in in_a_run(state, delta(op="remove", path="/z"))] == ["/delta/0/path"]


# --- what a refused event says --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "events",
    [
        [{**step("s", "a"), "timestamp": "x"}, step_ends("s", "a"), step_ends("s", "a")],
        [{**step("s" * 100, "a" * 100), "timestamp": "x"}, step_ends("s" * 100, "a" * 100)],
        [{**span("g"), "timestamp": "x"}, span_ends("g")],
        [{**thought("g"), "timestamp": "x"}, thought_ends("g")],
        [{**call("c"), "timestamp": "x"}, call_ends("c")],
        [{**activity("v"), "timestamp": "x"}, amends("v")],
        [{**announced("a"), "timestamp": "x"}, closed("a"), announced("a"), closed("a")],
    ],
    ids=["step", "long names", "span", "reasoning", "call", "activity", "subagent"],
)
def test_what_a_refused_event_names_is_not_mentioned_again(events):
    assert places(*events) == [("wrong-value", 1, None)]


@pytest.mark.parametrize(
    "refused",
    [
        {**step("s"), "stepName": 5},
        {**step("s"), "subagentRunId": 5},
        {**text("m"), "messageId": 5},
        {**announced("a"), "subagentRunId": 5},
    ],
    ids=["step", "step of nobody", "text", "subagent"],
)
def test_after_a_refused_event_that_names_nothing_it_is_not_known_what_was_opened(refused):
    assert places(refused, step_ends("t"), ends("n"), closed("b")) == [("wrong-value", 1, None)]


def test_a_refused_custom_event_changes_nothing():
    assert places({"type": "CUSTOM", "name": 5, "value": 1}, ends("n")) == [
        ("wrong-value", 1, None),
        ("text-not-open", 2, None),
    ]


def test_an_event_of_an_unknown_type_may_have_changed_anything_for_a_producer_and_nothing_for_a_consumer():
    events = [{"type": "TEXT_MESSAGE_PAUSED"}, ends("m")]
    assert places(*events) == [("unknown-type", 1, None)]
    assert places(*events, profile="consumer") == [("unknown-type", 1, None), ("text-not-open", 2, None)]


def test_after_an_unreadable_record_the_state_is_not_known():
    state = {"type": "STATE_SNAPSHOT", "snapshot": {"a": 1}}
    delta = {"type": "STATE_DELTA", "delta": [{"op": "remove", "path": "/z"}]}
    assert [
        one[:2] for one in in_a_run(state, b"{", delta, activity("v"), b"{", amends("v", path="/zz"))
    ] == [
        ("not-json", 2),
        ("not-json", 5),
    ]


# --- what is kept -----------------------------------------------------------------------------------------------


def test_an_id_is_kept_as_it_is_and_a_long_one_as_its_beginning_and_a_digest():
    assert key_of("m" * 64) == "m" * 64
    assert key_of("m" * 65) == "mmmmmmmmmmmmmmmmmmmmmmmm…a73eb8b9e00eae08b6f4622159392d55"
    assert key_of("\ud800" * 65) == "\ud800" * 24 + "…a95be69a72c13a60cd8f0ac35545dd91"


def test_an_owner_is_named_shortly():
    assert named(None) == "the parent agent"
    assert named("s" * 60) == f"subagent '{'s' * 39}…"


def test_a_good_event_is_read_once(monkeypatch):
    def never(_text):
        raise AssertionError("looked at twice")

    monkeypatch.setattr("byline.validator.parse", never)
    events = [
        echoing({"id": "m", "role": "user", "content": "x"}),
        announced("a", metadata={"byline": {"mode": "tool"}}),
        text("n", "a"),
        {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "m", "role": "user", "content": "x"}]},
        ends("n"),
        closed("a", result=[1]),
        {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/x", "value": 1}]},
        FINISHED,
    ]
    assert told(*(json.dumps(event) for event in events)) == []
    monkeypatch.setattr("byline.validator._alone.parse", never)
    assert read_alone(json.dumps(FINISHED)) == (FINISHED, None)


def test_a_validator_knows_its_profile():
    assert [Validator(profile).profile for profile in ("producer", "consumer")] == ["producer", "consumer"]


def test_what_is_left_open_is_told_one_by_one_and_then_as_a_number():
    def left(count):
        return [one[4] for one in in_a_run(*(text(f"m{n}") for n in range(count)))]

    assert len(left(20)) == 20
    assert left(20)[-1] == "text message 'm19' of the parent agent is still open when the run finishes"
    assert left(22)[20:] == ["and 2 more of this kind are still open"]


def test_what_had_its_error_does_not_keep_the_rest_from_being_told():
    assert [one[:2] for one in in_a_run(text("m"), text("m"), text("n"))] == [
        ("text-already-open", 2),
        ("text-left-open", 4),
    ]


def test_what_a_suspended_one_says_is_told_once_and_not_at_all_after_an_error():
    waits = closed("a", outcome={"type": "suspended"})
    assert [one[:2] for one in in_a_run(announced("a"), waits, text("m", "a"), ends("m", "a"))] == [
        ("output-after-suspension", 3),
        ("suspended-in-success", 2),
    ]
    assert [
        one[:2] for one in in_a_run(announced("a"), waits, announced("a"), text("m", "a"), ends("m"))
    ] == [
        ("subagent-id-reused", 3),
        ("suspended-in-success", 2),
    ]


def test_names_are_not_mistaken_for_each_other():
    twice = [call("d", name="fetch"), call_ends("d")]
    assert (
        in_a_run(
            call("c", name="search"), call_ends("c"), *twice, *twice, answer("c"), answer("d", message="a2")
        )
        == []
    )


def test_unanswered_calls_are_named_up_to_five():
    def unlisted(count):
        return [
            one[4]
            for one in in_a_run(
                *(event for n in range(count) for event in (call(f"c{n}"), call_ends(f"c{n}")))
            )
        ]

    five = "the run leaves 'c0', 'c1', 'c2', 'c3', 'c4'"
    assert unlisted(5) == [f"{five} unanswered and does not list them"]
    assert unlisted(6) == [f"{five} and 1 more unanswered and does not list them"]
    assert unlisted(7) == [f"{five} and 2 more unanswered and does not list them"]


def test_a_call_listed_twice_as_pending_is_wrong_once():
    outcome = {"type": "success", "pendingToolCallIds": ["z", "z"]}
    found = told(STARTED, {**FINISHED, "outcome": outcome})
    assert [one[:3] for one in found] == [("pending-calls-wrong", 1, "/outcome/pendingToolCallIds/0")]


def test_a_message_is_reopened_in_the_role_that_it_had():
    assert in_a_run(text("m", role="user"), ends("m"), text("m"), ends("m")) == [
        (
            "text-reopened-differently",
            3,
            "/role",
            1,
            "role is 'assistant', but event 1 opened text message 'm' with 'user'",
        )
    ]


def test_whoever_reopens_a_message_of_an_earlier_run_has_it_in_this_one():
    events = [text("m", "a"), ends("m"), FINISHED, SECOND, text("m"), ends("m"), text("m", "a"), ends("m")]
    assert [one[:2] for one in told(STARTED, *events, SECOND_FINISHED)] == [("text-owner", 7)]


def test_steps_that_are_over_do_not_count_against_the_limit():
    over = [event for name in "abc" for event in (step(name), step_ends(name))]
    two = [step("x"), step("y"), step_ends("x"), step_ends("y")]
    assert in_a_run(*over, *two, max_open=2) == []
    assert [one[:2] for one in in_a_run(*over, step("x"), step("y"), step("z"), max_open=2)] == [
        ("beyond-limits", 9)
    ]


def test_how_many_faults_of_an_event_are_not_told():
    def last(count):
        return in_a_run({**step("s"), **{f"x{n}": 1 for n in range(count)}}, step_ends("s"))[-1][4]

    assert last(9) == "the schema has no x8 here"
    assert last(10) == "the schema has no x9 here"
    assert last(11) == "the schema has no x9 here; and 1 more in this event"


@pytest.mark.parametrize(
    "refused",
    [{**step("s"), "timestamp": "x"}, {"type": "STATE_DELTA", "delta": 5}],
    ids=["step", "state"],
)
def test_a_refused_event_that_is_about_one_thing_leaves_the_others_known(refused):
    assert places(refused, ends("n")) == [("wrong-value", 1, None), ("text-not-open", 2, None)]
