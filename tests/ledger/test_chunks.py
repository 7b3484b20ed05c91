"""Chunks by lanes: by hand, and against the same conversation sent in full."""

import pytest
from byline.chunks import ChunkError, Expander, expand
from byline.events import (
    StateDeltaEvent,
    TextMessageChunkEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
)
from hypothesis import given
from hypothesis import strategies as st


def text(**members):
    return {"type": "TEXT_MESSAGE_CHUNK", **members}


def call(**members):
    return {"type": "TOOL_CALL_CHUNK", **members}


def reasoning(**members):
    return {"type": "REASONING_MESSAGE_CHUNK", **members}


def start(**members):
    return {"type": "TEXT_MESSAGE_START", **members}


def content(message, delta, **members):
    return {"type": "TEXT_MESSAGE_CONTENT", "messageId": message, "delta": delta, **members}


def end(message, **members):
    return {"type": "TEXT_MESSAGE_END", "messageId": message, **members}


def s1(event):
    return {**event, "subagentRunId": "s1"}


def s2(event):
    return {**event, "subagentRunId": "s2"}


def test_what_a_chunk_carries_is_kept():
    assert list(
        expand(
            [
                text(
                    messageId="m",
                    role="user",
                    name="N",
                    delta="a",
                    timestamp=1,
                    metadata={"x": 1},
                    rawEvent={"r": 1},
                ),
                text(messageId="m", delta="b", timestamp=2, rawEvent={"r": 2}),
                text(metadata={"y": 1}, timestamp=3),
                text(timestamp=4),
                text(delta=""),
                {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"},
            ]
        )
    ) == [
        start(messageId="m", role="user", name="N", timestamp=1, metadata={"x": 1}, rawEvent={"r": 1}),
        content("m", "a", timestamp=1),
        content("m", "b", timestamp=2, rawEvent={"r": 2}),
        content("m", "", timestamp=3, metadata={"y": 1}),
        content("m", ""),
        end("m"),
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"},
    ]


def test_a_chunk_without_delta_only_opens():
    assert Expander().feed(text(messageId="m")) == [start(messageId="m")]


def test_tool_calls():
    expander = Expander()
    assert expander.feed(s1(call(toolCallId="c", toolCallName="n", parentMessageId="p", delta="{"))) == [
        s1({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "n", "parentMessageId": "p"}),
        s1({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{"}),
    ]
    assert expander.feed(call(toolCallId="c", toolCallName="n", parentMessageId="p", delta="}")) == [
        s1({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "}"}),
    ]
    assert expander.finish() == [s1({"type": "TOOL_CALL_END", "toolCallId": "c"})]
    assert expander.finish() == []


def test_reasoning_gets_the_role_that_a_chunk_cannot_carry():
    expander = Expander()
    assert expander.feed(reasoning(messageId="r", delta="")) == [
        {"type": "REASONING_MESSAGE_START", "messageId": "r", "role": "reasoning"},
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": "r", "delta": ""},
    ]
    assert expander.feed(reasoning(delta="x")) == [
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": "r", "delta": "x"}
    ]


def test_lanes_run_in_parallel():
    expander = Expander()
    expander.feed(text(messageId="m0", delta="a"))
    expander.feed(s1(text(messageId="m1", delta="b")))
    expander.feed(s2(call(toolCallId="c", toolCallName="n")))
    assert expander.feed(s1(text(delta="c"))) == [s1(content("m1", "c"))]
    assert expander.feed(text(messageId="m1", delta="d")) == [s1(content("m1", "d"))]
    assert expander.feed(text(delta="e")) == [content("m0", "e")]
    assert expander.feed(call(delta="f")) == [s2({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "f"})]
    assert expander.finish() == [
        end("m0"),
        s1(end("m1")),
        s2({"type": "TOOL_CALL_END", "toolCallId": "c"}),
    ]


def test_a_new_item_ends_the_one_before_in_its_own_lane():
    expander = Expander()
    expander.feed(s1(text(messageId="m1")))
    expander.feed(text(messageId="m0"))
    assert expander.feed(call(toolCallId="c", toolCallName="n")) == [
        end("m0"),
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "n"},
    ]
    assert expander.feed(text(delta="x")) == [s1(content("m1", "x"))]  # the only text that is open


def test_an_ended_item_may_be_opened_again():
    expander = Expander()
    expander.feed(text(messageId="m", delta="a"))
    expander.feed({"type": "CUSTOM", "name": "n", "value": 1})
    assert expander.feed(text(messageId="m", delta="b")) == [start(messageId="m"), content("m", "b")]


@pytest.mark.parametrize(
    "event",
    [
        {"type": "RAW", "event": 1},
        {"type": "ACTIVITY_SNAPSHOT", "messageId": "a", "activityType": "t", "content": {}},
        {"type": "ACTIVITY_DELTA", "messageId": "a", "activityType": "t", "patch": []},
        {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "m", "encryptedValue": "e"},
        {"type": "SUBAGENT_STARTED", "subagentRunId": "s1", "name": "n"},
    ],
    ids=lambda event: event["type"],
)
def test_what_ends_nothing(event):
    expander = Expander()
    expander.feed(text(messageId="m0"))
    expander.feed(s1(text(messageId="m1")))
    assert expander.feed(event) == [event]
    assert expander.feed(s1(event)) == [s1(event)]
    assert expander.finish() == [end("m0"), s1(end("m1"))]


@pytest.mark.parametrize(
    "event",
    [
        start(messageId="x"),
        content("x", "y"),
        end("x"),
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "n"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": ""},
        {"type": "TOOL_CALL_END", "toolCallId": "c"},
        {"type": "TOOL_CALL_RESULT", "messageId": "x", "toolCallId": "c", "content": ""},
        {"type": "REASONING_START", "messageId": "x"},
        {"type": "REASONING_END", "messageId": "x"},
        {"type": "REASONING_MESSAGE_START", "messageId": "x", "role": "reasoning"},
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": "x", "delta": ""},
        {"type": "REASONING_MESSAGE_END", "messageId": "x"},
        {"type": "STATE_SNAPSHOT", "snapshot": None},
        {"type": "STATE_DELTA", "delta": []},
        {"type": "STEP_STARTED", "stepName": "s"},
        {"type": "STEP_FINISHED", "stepName": "s"},
        {"type": "CUSTOM", "name": "n", "value": None},
    ],
    ids=lambda event: event["type"],
)
def test_what_ends_the_lane_of_its_owner(event):
    expander = Expander()
    expander.feed(text(messageId="m0"))
    expander.feed(s1(text(messageId="m1")))
    assert expander.feed(s2(event)) == [s2(event)]
    assert expander.feed(event) == [end("m0"), event]
    assert expander.feed(s1(event)) == [s1(end("m1")), s1(event)]


@pytest.mark.parametrize("ending", ["SUBAGENT_FINISHED", "SUBAGENT_ERROR"])
def test_an_invocation_ends_its_own_lane_with_itself(ending):
    expander = Expander()
    expander.feed(s1(text(messageId="m1")))
    expander.feed(s2(text(messageId="m2")))
    assert expander.feed(s1({"type": ending})) == [s1(end("m1")), s1({"type": ending})]
    assert expander.finish() == [s2(end("m2"))]


@pytest.mark.parametrize(
    "event",
    [
        {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"},
        {"type": "RUN_ERROR", "message": "m"},
        {"type": "MESSAGES_SNAPSHOT", "messages": []},
    ],
    ids=lambda event: event["type"],
)
def test_what_ends_every_lane(event):
    expander = Expander()
    expander.feed(text(messageId="m0"))
    expander.feed(s1(text(messageId="m1")))
    assert expander.feed(event) == [end("m0"), s1(end("m1")), event]


ILLEGAL = {
    "first text without id": ([], text(delta="a"), "first", "messageId"),
    "first reasoning without id": ([], reasoning(delta="a"), "first", "messageId"),
    "first call without id": ([], call(toolCallName="n"), "first", "toolCallId"),
    "first call without name": ([], call(toolCallId="c"), "first", "toolCallName"),
    "the tag's lane is empty": ([text(messageId="m")], s1(text(delta="a")), "first", "messageId"),
    "the tag's lane has another kind": (
        [s1(call(toolCallId="c", toolCallName="n"))],
        s1(text(delta="a")),
        "first",
        "messageId",
    ),
    "after the lane was left": (
        [text(messageId="m"), {"type": "CUSTOM", "name": "n", "value": 1}],
        text(delta="a"),
        "first",
        "messageId",
    ),
    "two lanes could be meant": (
        [s1(text(messageId="m1")), s2(text(messageId="m2"))],
        text(delta="a"),
        "ambiguous",
        "messageId",
    ),
    "another owner's tag": ([s1(text(messageId="m"))], s2(text(messageId="m")), "owner", "subagentRunId"),
    "a tag on the parent's": (
        [text(messageId="m")],
        s1(text(messageId="m", delta="a")),
        "owner",
        "subagentRunId",
    ),
    "the empty tag is an owner": (
        [text(messageId="m")],
        text(messageId="m", subagentRunId=""),
        "owner",
        "subagentRunId",
    ),
    "another role": ([text(messageId="m", role="user")], text(role="assistant"), "repeat", "role"),
    "another role than the default": ([text(messageId="m")], text(role="user"), "repeat", "role"),
    "another name": ([text(messageId="m", name="a")], text(name="b"), "repeat", "name"),
    "a name where none was": ([text(messageId="m")], text(name="b"), "repeat", "name"),
    "another tool": (
        [call(toolCallId="c", toolCallName="n")],
        call(toolCallName="o"),
        "repeat",
        "toolCallName",
    ),
    "another message": (
        [call(toolCallId="c", toolCallName="n", parentMessageId="p")],
        call(parentMessageId="q"),
        "repeat",
        "parentMessageId",
    ),
}


@pytest.mark.parametrize(("before", "chunk", "kind", "member"), ILLEGAL.values(), ids=ILLEGAL)
def test_an_illegal_chunk_changes_nothing(before, chunk, kind, member):
    expander, undisturbed = Expander(), Expander()
    for event in before:
        expander.feed(event)
        undisturbed.feed(event)
    with pytest.raises(ChunkError) as caught:
        expander.feed(chunk)
    assert (caught.value.kind, caught.value.member) == (kind, member)
    assert expander.finish() == undisturbed.finish()


def test_a_plan_changes_nothing_until_it_is_committed_to():
    expander = Expander()
    expander.feed(text(messageId="m", delta="a"))
    opening = text(messageId="n", delta="b")
    plan = expander.plan(opening)
    assert plan.events == [end("m"), start(messageId="n"), content("n", "b")]
    assert expander.assembles(content("m", "x"))
    assert expander.plan(opening) == plan
    expander.commit(plan)
    assert not expander.assembles(content("m", "x"))
    assert expander.assembles(end("n"))
    assert expander.finish() == [end("n")]


def test_messages_of_errors_name_the_owners():
    with pytest.raises(ChunkError) as caught:
        list(expand([text(messageId="m"), s1(text(messageId="m"))]))
    assert str(caught.value) == (
        "TEXT_MESSAGE_CHUNK continues the text message 'm' of the parent agent with the tag of subagent 's1'; "
        "a continuation has its opener's tag or none"
    )


def test_repeating_the_default_role_is_no_change():
    assert list(expand([text(messageId="m"), text(role="assistant", delta="a")])) == [
        start(messageId="m"),
        content("m", "a"),
    ]


def test_typed_events_stay_typed():
    ending = TextMessageEndEvent(message_id="x")
    assert list(
        expand([TextMessageChunkEvent(message_id="m", delta="a"), ending, StateDeltaEvent(delta=[])]),
    ) == [
        TextMessageStartEvent(message_id="m"),
        TextMessageContentEvent(message_id="m", delta="a"),
        TextMessageEndEvent(message_id="m"),
        ending,
        StateDeltaEvent(delta=[]),
    ]


# -- the same conversation, in full and in chunks -----------------------------------------------------------------

KINDS = {
    "text": ("TEXT_MESSAGE", "CONTENT", "messageId", {}),
    "call": ("TOOL_CALL", "ARGS", "toolCallId", {"toolCallName": "n"}),
    "reasoning": ("REASONING_MESSAGE", "CONTENT", "messageId", {"role": "reasoning"}),
}
items = st.tuples(
    st.sampled_from(list(KINDS)), st.lists(st.sampled_from(["", "a", "b"]), min_size=1, max_size=3)
)


@given(
    st.dictionaries(st.sampled_from([None, "s1", "s2", ""]), st.lists(items, max_size=3), min_size=1),
    st.data(),
)
def test_chunks_say_what_the_events_in_full_say(work, data):
    """Every owner's events, in order, are those it would have sent in full, however the owners interleave."""
    in_full = {owner: [] for owner in work}
    chunks = {owner: [] for owner in work}
    for owner, todo in work.items():
        tag = {} if owner is None else {"subagentRunId": owner}
        for number, (kind, deltas) in enumerate(todo):
            prefix, part, member, extra = KINDS[kind]
            name = {member: f"{owner}-{number}", **tag}
            in_full[owner] += [
                {"type": f"{prefix}_START", **name, **extra},
                *({"type": f"{prefix}_{part}", **name, "delta": delta} for delta in deltas),
                {"type": f"{prefix}_END", **name},
            ]
            opening = {} if kind == "reasoning" else extra
            for at, delta in enumerate(deltas):
                repeat = (
                    name
                    if at == 0
                    else data.draw(st.sampled_from([name, {member: name[member]}, tag or name]))
                )
                chunks[owner].append(
                    {"type": f"{prefix}_CHUNK", "delta": delta, **repeat, **(opening if at == 0 else {})}
                )
    expander, said = Expander(), []
    while left := [owner for owner, rest in chunks.items() if rest]:
        said += expander.feed(chunks[data.draw(st.sampled_from(left))].pop(0))
    said += expander.finish()
    assert {owner: [e for e in said if e.get("subagentRunId") == owner] for owner in work} == in_full
