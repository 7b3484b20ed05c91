"""The ledger, held to streams that were written by hand and to what must come out of them."""

import json
from pathlib import Path

import pytest
from byline.events import (
    RunFinishedEvent,
    RunStartedEvent,
    StateSnapshotEvent,
    SubagentFinishedEvent,
    SubagentStartedEvent,
)
from byline.ledger import (
    Activity,
    Answer,
    Call,
    Custom,
    Failure,
    Invocation,
    Ledger,
    Mark,
    Raw,
    Reasoning,
    Run,
    Segment,
    StateChange,
    Step,
    Text,
    Work,
)

DATA = Path(__file__).parent.parent / "data" / "ledger"


def lines(name):
    return (DATA / f"{name}.jsonl").read_bytes().splitlines()


def read(name):
    ledger = Ledger.read(lines(name))
    assert ledger.refusals == ()
    return ledger


def fed(*events):
    ledger = Ledger()
    for event in events:
        ledger.feed(event)
    return ledger


def start(run="r1"):
    return {"type": "RUN_STARTED", "threadId": "t", "runId": run, "protocolVersion": "1.0"}


def finish(run="r1", **more):
    return {"type": "RUN_FINISHED", "threadId": "t", "runId": run, **more}


# -- who did what -------------------------------------------------------------------------------------------------


def test_the_tree_of_a_delegation():
    ledger = read("delegation")
    assert [(b.depth, b.invocation.id, b.invocation.name, b.invocation.status) for b in ledger.tree()] == [
        (0, "ulm", "researcher", "finished"),
        (1, "atlas", "atlas", "finished"),
        (0, "linz", "researcher", "finished"),
    ]
    assert ledger.invocations == (
        Invocation(
            id="ulm",
            announced=True,
            name="researcher",
            description="reads about a town",
            children=("atlas",),
            spawning_call="c1",
            spawning_message="m1",
            status="finished",
            contract={"framework": "langgraph", "mode": "tool", "context": "isolated"},
            metadata={"byline": {"framework": "langgraph", "mode": "tool", "context": "isolated"}},
            segments=(Segment(0, Mark(13, 1013), Mark(40, 1043)),),
        ),
        Invocation(
            id="linz",
            announced=True,
            name="researcher",
            spawning_call="c2",
            status="finished",
            result="On the Danube.",
            segments=(Segment(0, Mark(14, 1014), Mark(39, 1039)),),
        ),
        Invocation(
            id="atlas",
            announced=True,
            name="atlas",
            parent="ulm",
            spawning_call="c3",
            status="finished",
            result={"lat": 48.4},
            segments=(Segment(0, Mark(26, 1026), Mark(30, 1030)),),
        ),
    )
    assert ledger.unannounced == ()
    assert [invocation.duration for invocation in ledger.invocations] == [30, 25, 4]


def test_what_a_subagent_did():
    ledger = read("delegation")
    assert ledger.work("ulm") == Work(
        reasoning=(Reasoning(id="g1", text="Where is it?", start=Mark(16, 1016), end=Mark(20, 1020)),),
        calls=(
            Call(
                id="c3",
                name="atlas",
                arguments="Ulm?",
                message="c3",
                answer=Answer(message="a3", content="48.4 N", owner="ulm", at=Mark(31, 1031)),
                start=Mark(23, 1023),
                end=Mark(25, 1025),
            ),
        ),
        activities=(
            Activity(id="y1", type="map", content={"zoom": 9}, start=Mark(33, 1033), changed=Mark(34, 1034)),
        ),
        steps=(Step(name="look-up", start=Mark(22, 1022), end=Mark(37, 1037)),),
        state_changes=(
            StateChange(
                kind="delta", value=[{"op": "add", "path": "/plan/-", "value": "Ulm read"}], at=Mark(32, 1032)
            ),
        ),
    )
    assert ledger.work("linz") == Work(
        texts=(
            Text(
                id="m3",
                role="assistant",
                name="Linz desk",
                text="On the Danube.",
                start=Mark(18, 1018),
                end=Mark(38, 1038),
            ),
        ),
        customs=(Custom(name="app.cost", value={"cents": 3}, at=Mark(35, 1035)),),
        raws=(Raw(event={"node": "x"}, source="langgraph", at=Mark(36, 1036)),),
    )
    assert [text.text for text in ledger.work("atlas").texts] == ["48.4 N"]


def test_what_the_parent_agent_did():
    work = read("delegation").work(None)
    assert [(text.id, text.role, text.text) for text in work.texts] == [
        ("u1", "user", "Compare the two towns."),
        ("m1", "assistant", "I ask two researchers."),
    ]
    assert [(call.id, call.name, call.arguments, call.answer.content) for call in work.calls] == [
        ("c1", "research", '{"town": "Ulm"}', "48.4 N"),
        ("c2", "research", '{"town": "Linz"}', "On the Danube."),
    ]
    assert work.steps == (Step(name="supervisor", start=Mark(1, 1001), end=Mark(43, 1046)),)


def test_whose_is_this():
    ledger = read("delegation")
    owners = {
        id_: ledger.owner_of_message(id_) for id_ in ("u1", "m1", "g1", "m3", "m4", "c3", "a3", "a1", "y1")
    }
    assert owners == {
        "u1": None,
        "m1": None,
        "g1": "ulm",
        "m3": "linz",
        "m4": "atlas",
        "c3": "ulm",  # the message that the call made
        "a3": "ulm",
        "a1": None,
        "y1": "ulm",
    }
    assert {id_: ledger.owner_of_call(id_) for id_ in ("c1", "c2", "c3")} == {
        "c1": None,
        "c2": None,
        "c3": "ulm",
    }


def test_what_is_not_in_the_stream_has_no_owner():
    ledger = read("delegation")
    for ask in (ledger.owner_of_message, ledger.owner_of_call, ledger.invocation, ledger.work):
        with pytest.raises(LookupError, match="'nobody' in the 45 records read"):
            ask("nobody")


def test_usage_is_the_run_s_and_split_where_the_stream_splits_it():
    assert read("delegation").runs == (
        Run(
            thread_id="t",
            run_id="r1",
            status="finished",
            usage=({"provider": "p", "model": "x", "inputTokens": 30, "outputTokens": 3, "totalTokens": 33},),
            usage_by_owner={
                None: ({"provider": "p", "model": "x", "inputTokens": 10, "outputTokens": 1},),
                "ulm": ({"provider": "p", "model": "x", "inputTokens": 20, "outputTokens": 2},),
            },
            start=Mark(0, 1000),
            end=Mark(44, 1047),
        ),
    )


# -- suspended, continued, failed ---------------------------------------------------------------------------------


def test_an_invocation_is_suspended_and_continues_under_its_id():
    records = lines("suspended-and-continued")
    ledger = fed(*records[:11])
    asked = {"id": "i1", "reason": "approval", "toolCallId": "c1", "subagentRunId": "teller"}
    assert ledger.pending_interrupts == {"teller": (asked,), None: ({"id": "i2", "reason": "question"},)}
    assert ledger.invocation("teller") == Invocation(
        id="teller",
        announced=True,
        name="teller",
        parent="clerk",
        status="suspended",
        interrupts=("i1",),
        segments=(Segment(0, Mark(2, 120), Mark(8, 130)),),
    )
    assert (ledger.invocation("clerk").status, ledger.invocation("clerk").interrupts) == ("suspended", ())
    assert ledger.runs[0].status == "interrupted"

    for record in records[11:]:
        ledger.feed(record)
    assert ledger.refusals == ()
    assert ledger.pending_interrupts == {}
    assert ledger.invocation("teller") == Invocation(
        id="teller",
        announced=True,
        name="teller",
        parent="clerk",
        status="finished",
        result="paid",
        segments=(Segment(0, Mark(2, 120), Mark(8, 130)), Segment(1, Mark(13, 5011), Mark(15, 5013))),
    )
    assert ledger.invocation("teller").duration == 12  # and not the time it waited
    assert ledger.invocation("clerk").children == ("teller",)
    assert ledger.work("teller").calls[0].answer == Answer(
        message="a1", content="paid", owner="teller", at=Mark(14, 5012)
    )
    assert [run.status for run in ledger.runs] == ["interrupted", "finished"]


def test_failures_are_told_apart():
    ledger = read("failures")
    assert [(i.id, i.status, i.failure) for i in ledger.invocations] == [
        ("one", "failed", Failure("the site is down", "http_503")),
        ("two", "cancelled", Failure("cut off", "cancelled")),
        ("three", "failed", Failure("its question was swallowed", "interrupt_lost")),
        ("four", "abandoned", None),
    ]
    assert ledger.invocation("two").end_metadata == {"byline": {"by": "user"}}
    assert ledger.invocation("four").segments == (Segment(0, Mark(7, None), Mark(11, None)),)
    assert [(run.run_id, run.status, run.failure) for run in ledger.runs] == [
        ("r1", "failed", Failure("out of memory", "oom")),
        ("r2", "cancelled", None),
    ]
    assert ledger.runs[0].usage == ({"model": "x", "inputTokens": 1},)


def test_what_a_failed_run_left_open_is_closed_for_the_next():
    ledger = read("failures")
    assert [(step.start.event, step.end) for step in ledger.work("four").steps] == [
        (10, None),
        (13, Mark(14, None)),
    ]
    assert ledger.work("four").texts == (
        Text(
            id="m1",
            role="assistant",
            name=None,
            text="half a sentence",
            start=Mark(8, None),
            end=Mark(17, None),
        ),
    )


def test_a_run_that_fails_before_it_began_is_a_run():
    ledger = fed({"type": "RUN_ERROR", "message": "no such thread"})
    assert ledger.runs == (
        Run(
            thread_id=None,
            run_id=None,
            status="failed",
            failure=Failure("no such thread"),
            start=Mark(0, None),
            end=Mark(0, None),
        ),
    )


def test_interrupts_wait_until_a_run_has_finished():
    interrupt = {"type": "interrupt", "interrupts": [{"id": "i", "reason": "x"}]}
    ledger = fed(start(), finish(outcome=interrupt), start("r2"))
    assert list(ledger.pending_interrupts) == [None]
    ledger.feed({"type": "RUN_ERROR", "message": "no"})
    assert list(ledger.pending_interrupts) == [None]
    ledger.feed(start("r3"))
    ledger.feed(finish("r3"))
    assert ledger.pending_interrupts == {}


def test_a_stream_that_breaks_off_abandons_what_is_at_work():
    records = [start(), {"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "n"}]
    ledger = fed(*records)
    assert (ledger.invocation("s").status, ledger.runs[0].status) == ("running", "running")
    assert ledger.invocation("s").end is None
    ledger.finish()
    assert (ledger.invocation("s").status, ledger.runs[0].status) == ("abandoned", "abandoned")
    assert ledger.invocation("s").end == Mark(2, None)


# -- attribution without lifecycle --------------------------------------------------------------------------------


def test_attribution_without_lifecycle_is_accepted():
    ledger = read("unannounced")
    assert ledger.unannounced == ("a", "b", "", "c")
    assert ledger.invocation("a") == Invocation(id="a")
    assert [text.text for text in ledger.work("a").texts] == ["one two"]
    assert [text.text for text in ledger.work("b").texts] == ["eins zwei"]
    assert [(call.id, call.message) for call in ledger.work("a").calls] == [("c1", "m1")]
    assert ledger.work("").steps == (Step(name="s", start=Mark(7, None), end=Mark(8, None)),)
    assert ledger.work("c") == Work()
    assert list(ledger.pending_interrupts) == ["c"]


def test_a_subagent_s_state_change_is_the_run_s():
    ledger = read("unannounced")
    assert ledger.state == {"by": "b"}
    assert ledger.work("b").state_changes == (
        StateChange(kind="snapshot", value={"by": "b"}, at=Mark(6, None)),
    )


# -- the messages -------------------------------------------------------------------------------------------------


def test_the_messages_as_a_consumer_builds_them():
    assert read("messages").messages == [
        {"id": "u1", "role": "user", "content": [{"type": "text", "text": "Hello"}]},
        {
            "id": "m1",
            "role": "assistant",
            "content": "Looking.",
            "subagentRunId": "s",
            "metadata": {"m": 1},
            "toolCalls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "find", "arguments": ""},
                    "metadata": {"a": 2, "b": 3},
                    "encryptedValue": "e2",
                },
                {"id": "c2", "type": "function", "function": {"name": "find", "arguments": "{"}},
            ],
        },
        {"id": "a1", "role": "tool", "toolCallId": "c1", "content": "one", "subagentRunId": "s"},
        {"id": "a2", "role": "tool", "toolCallId": "c2", "content": [{"type": "text", "text": "two"}]},
        {"id": "m2", "role": "user", "name": "Ann", "content": "And?"},
        {"id": "a0", "role": "tool", "toolCallId": "earlier", "content": "from before"},
        {"id": "g1", "role": "reasoning", "content": "Hm.", "subagentRunId": "s", "encryptedValue": "e1"},
        {
            "id": "y1",
            "role": "activity",
            "activityType": "map",
            "content": {"steps": [1, 2]},
            "metadata": {"k": 1, "l": 2},
            "subagentRunId": "s",
        },
        {"id": "y2", "role": "activity", "activityType": "plan", "content": {"n": 1}},
    ]


def test_a_snapshot_replaces_the_messages_and_forgets_nobody_s_words():
    records = lines("snapshots")
    ledger = fed(*records[:16])
    reasoning = {"id": "g1", "role": "reasoning", "content": "Too quiet.", "subagentRunId": "s"}
    assert ledger.messages == [
        reasoning,
        {"id": "y1", "role": "activity", "activityType": "map", "content": {"n": 1}, "subagentRunId": "s"},
        {"id": "h1", "role": "user", "content": "Go."},
        {"id": "p1", "role": "assistant", "content": "I send a scout."},
    ]
    ledger.feed(records[16])
    assert ledger.refusals == ()
    assert ledger.messages == [
        reasoning,
        {
            "id": "y1",
            "role": "activity",
            "activityType": "map",
            "content": {"n": 2},
            "subagentRunId": "other",
        },
        {
            "id": "p1",
            "role": "assistant",
            "content": "I sent a scout.",
            "toolCalls": [{"id": "c9", "type": "function", "function": {"name": "send", "arguments": "{}"}}],
        },
        {"id": "a9", "role": "tool", "toolCallId": "c9", "content": "sent"},
    ]
    # The snapshot knows nothing of the scout, whose work stays; the parent agent's it tells anew.
    assert [text.text for text in ledger.work("s").texts] == ["All is quiet."]
    assert [call.id for call in ledger.work("s").calls] == ["c1"]
    assert ledger.work("s").activities == ()
    assert [text.text for text in ledger.work(None).texts] == ["I sent a scout."]
    assert ledger.work(None).calls[0].answer.content == "sent"
    assert (ledger.owner_of_message("m2"), ledger.owner_of_call("c1")) == ("s", "s")
    assert ledger.unannounced == ("other",)


def test_a_second_call_inherits_the_owner_of_a_message_that_a_call_made():
    assert read("second-call-in-minted-message").owner_of_call("c2") == "s"


def test_state_lives_on_and_a_patch_that_fails_changes_nothing():
    ledger = fed(
        {**start(), "input": {"threadId": "t", "runId": "r1", "messages": [], "state": {"n": 1}}},
        {"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/n", "value": 2}]},
        finish(),
        start("r2"),
        {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/m", "value": 3}], "subagentRunId": "s"},
    )
    before = ledger.state
    refusal = ledger.feed(
        {
            "type": "STATE_DELTA",
            "delta": [{"op": "remove", "path": "/n"}, {"op": "remove", "path": "/x"}],
            "subagentRunId": "nobody",
        }
    )
    assert ledger.state is before
    assert ledger.state == {"n": 2, "m": 3}
    assert (refusal.event, refusal.rule) == (5, "state-patch")
    assert ledger.refusals == (refusal,)
    assert ledger.unannounced == ("s",)


def test_a_thread_that_the_stream_goes_on_with():
    known = {"id": "m1", "role": "assistant", "content": "Hello", "subagentRunId": "s", "toolCalls": []}
    ledger = Ledger(messages=[known], state={"n": 1})
    assert [text.text for text in ledger.work("s").texts] == ["Hello"]
    ledger.feed(start())
    ledger.feed({"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/n", "value": 2}]})
    ledger.feed({"type": "TEXT_MESSAGE_START", "messageId": "m1", "subagentRunId": "s"})
    ledger.feed({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": " there"})
    assert ledger.refusals == ()
    assert ledger.state == {"n": 2}
    assert ledger.messages == [
        {"id": "m1", "role": "assistant", "content": "Hello there", "subagentRunId": "s"}
    ]
    assert [text.start for text in ledger.work("s").texts] == [Mark(-1, None)]
    assert ledger.unannounced == ("s",)


def test_an_activity_patch_that_fails_changes_the_metadata_only():
    ledger = fed(
        start(),
        {"type": "ACTIVITY_SNAPSHOT", "messageId": "y", "activityType": "a", "content": {"n": 1}},
        {
            "type": "ACTIVITY_DELTA",
            "messageId": "y",
            "activityType": "b",
            "patch": [{"op": "remove", "path": "/x"}],
            "metadata": {"k": 1},
        },
        {
            "type": "ACTIVITY_DELTA",
            "messageId": "y",
            "activityType": "b",
            "patch": [{"op": "replace", "path": "", "value": 1}],
        },
    )
    assert ledger.messages == [
        {"id": "y", "role": "activity", "activityType": "a", "content": {"n": 1}, "metadata": {"k": 1}}
    ]
    assert [(refusal.event, refusal.rule) for refusal in ledger.refusals] == [
        (2, "activity-patch"),
        (3, "activity-not-object"),
    ]


# -- what it takes, and what it gives ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(path.stem for path in DATA.glob("*.jsonl")))
def test_text_bytes_and_mappings_are_the_same(name):
    from_bytes = read(name).to_json()
    assert Ledger.read(line.decode() for line in lines(name)).to_json() == from_bytes
    assert Ledger.read(json.loads(line) for line in lines(name)).to_json() == from_bytes


def test_typed_events():
    ledger = fed(
        RunStartedEvent(thread_id="t", run_id="r1", protocol_version="1.0"),
        SubagentStartedEvent(subagent_run_id="s", name="n"),
        StateSnapshotEvent(snapshot={"n": None}, subagent_run_id="s"),
        SubagentFinishedEvent(subagent_run_id="s"),
        RunFinishedEvent(thread_id="t", run_id="r1"),
    )
    assert (ledger.refusals, ledger.state, ledger.invocation("s").status) == ((), {"n": None}, "finished")


def test_the_caller_s_objects_stay_the_caller_s():
    snapshot = {"type": "STATE_SNAPSHOT", "snapshot": {"list": [1]}}
    ledger = fed(start(), snapshot)
    snapshot["snapshot"]["list"].append(2)
    assert ledger.state == {"list": [1]}
    ledger.feed(
        {
            "type": "MESSAGES_SNAPSHOT",
            "messages": [{"id": "u", "role": "user", "content": "x", "metadata": {}}],
        }
    )
    ledger.messages[0]["metadata"]["mine"] = True
    assert ledger.messages == [{"id": "u", "role": "user", "content": "x", "metadata": {}}]


def test_what_was_handed_out_does_not_change():
    records = lines("delegation")
    ledger = fed(*records[:30])
    work, tree, runs, messages = ledger.work("ulm"), ledger.tree(), ledger.runs, ledger.messages
    said = repr((work, tree, runs, messages))
    for record in records[30:]:
        ledger.feed(record)
    assert repr((work, tree, runs, messages)) == said


@pytest.mark.parametrize("name", sorted(path.stem for path in DATA.glob("*.jsonl")))
def test_it_can_be_read_after_every_event(name):
    """Reading on the way changes nothing of what is read in the end."""
    watched = Ledger()
    for line in lines(name):
        watched.feed(line)
        json.dumps(
            [watched.to_json(), watched.messages, watched.state, list(watched.pending_interrupts.items())]
        )
    watched.finish()
    assert watched.to_json() == read(name).to_json()
    assert watched.messages == read(name).messages


def test_the_tree_as_json():
    assert read("failures").to_json() == {
        "runs": [
            {
                "threadId": "t",
                "runId": "r1",
                "status": "failed",
                "failure": {"message": "out of memory", "code": "oom"},
                "usage": [{"model": "x", "inputTokens": 1}],
                "start": {"event": 0},
                "end": {"event": 11},
            },
            {
                "threadId": "t",
                "runId": "r2",
                "status": "cancelled",
                "start": {"event": 12},
                "end": {"event": 18},
            },
        ],
        "parent": {},
        "invocations": [
            {
                "id": "one",
                "announced": True,
                "name": "one",
                "status": "failed",
                "failure": {"message": "the site is down", "code": "http_503"},
                "segments": [{"run": 0, "start": {"event": 1}, "end": {"event": 2}}],
                "depth": 0,
                "work": {},
            },
            {
                "id": "two",
                "announced": True,
                "name": "two",
                "status": "cancelled",
                "failure": {"message": "cut off", "code": "cancelled"},
                "endMetadata": {"byline": {"by": "user"}},
                "segments": [{"run": 0, "start": {"event": 3}, "end": {"event": 4}}],
                "depth": 0,
                "work": {},
            },
            {
                "id": "three",
                "announced": True,
                "name": "three",
                "status": "failed",
                "failure": {"message": "its question was swallowed", "code": "interrupt_lost"},
                "segments": [{"run": 0, "start": {"event": 5}, "end": {"event": 6}}],
                "depth": 0,
                "work": {},
            },
            {
                "id": "four",
                "announced": True,
                "name": "four",
                "status": "abandoned",
                "segments": [{"run": 0, "start": {"event": 7}, "end": {"event": 11}}],
                "depth": 0,
                "work": {
                    "texts": [
                        {
                            "id": "m1",
                            "role": "assistant",
                            "text": "half a sentence",
                            "start": {"event": 8},
                            "end": {"event": 17},
                        }
                    ],
                    "steps": [
                        {"name": "writing", "start": {"event": 10}},
                        {"name": "writing", "start": {"event": 13}, "end": {"event": 14}},
                    ],
                },
            },
        ],
        "pendingInterrupts": [],
        "refusals": [],
    }
    assert read("delegation").to_json()["runs"][0]["usageByOwner"] == [
        {"provider": "p", "model": "x", "inputTokens": 10, "outputTokens": 1},
        {"subagentRunId": "ulm", "provider": "p", "model": "x", "inputTokens": 20, "outputTokens": 2},
    ]


def test_a_deep_tree_is_no_deep_recursion():
    events = [start()]
    for depth in range(3000):
        parent = {"parentSubagentRunId": f"s{depth - 1}"} if depth else {}
        events.append({"type": "SUBAGENT_STARTED", "subagentRunId": f"s{depth}", "name": "n", **parent})
    ledger = fed(*events)
    assert [branch.depth for branch in ledger.tree()] == list(range(3000))
    assert json.dumps(ledger.to_json())


def test_an_invocation_moves_below_the_parent_that_its_last_announcement_names():
    def announced(id_, **more):
        return {"type": "SUBAGENT_STARTED", "subagentRunId": id_, "name": "n", **more}

    def over(id_):
        return {"type": "SUBAGENT_FINISHED", "subagentRunId": id_}

    ledger = fed(
        start(),
        announced("a"),
        announced("b", parentSubagentRunId="a"),
        over("b"),
        over("a"),
        finish(),
        start("r2"),
        announced("b"),
        announced("a", parentSubagentRunId="b"),
    )
    assert ledger.refusals == ()
    assert [(branch.depth, branch.invocation.id) for branch in ledger.tree()] == [(0, "b"), (1, "a")]


def test_a_call_that_the_input_tells_in_another_message_stays_as_it_was_said():
    told = {
        "id": "a1",
        "role": "assistant",
        "toolCalls": [{"id": "c1", "type": "function", "function": {"name": "ask", "arguments": "{}"}}],
    }
    second = {"threadId": "t", "runId": "r2"}
    given = {**second, "messages": [told], "tools": [], "context": [], "state": {}, "forwardedProps": {}}
    ledger = Ledger.read(
        [
            {"type": "RUN_STARTED", "threadId": "t", "runId": "r1"},
            {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "ask"},
            {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": '{"q":1}'},
            {"type": "TOOL_CALL_END", "toolCallId": "c1"},
            {"type": "RUN_FINISHED", "threadId": "t", "runId": "r1"},
            {"type": "RUN_STARTED", **second, "input": given},
            {"type": "RUN_FINISHED", **second},
        ]
    )
    said = {"id": "c1", "type": "function", "function": {"name": "ask", "arguments": '{"q":1}'}}
    assert ledger.messages == [{"id": "c1", "role": "assistant", "toolCalls": [said]}, told]
