"""Shown to the user, told to the parent, looked up: three facts that the ledger answers separately."""

import pytest
from byline.artifacts import Artifacts, Counts
from byline.errors import StoreError
from byline.ledger import Ledger

from .test_completion import call, invocation, message

REPORT = '<artifact title="Q3" type="text/html">all of it</artifact>'
OTHER = '<artifact title="Q4">the rest</artifact>'
Q3 = "art_b7e5c006e0a95c34fa00286c"
"""The id of ann's first artifact of call c1 in thread t."""


def a_run(run_id, *events, thread="t"):
    return [
        {"type": "RUN_STARTED", "threadId": thread, "runId": run_id, "protocolVersion": "1.0"},
        *events,
        {"type": "RUN_FINISHED", "threadId": thread, "runId": run_id},
    ]


def look_up(id_, answer, call_id="c2", message_id="m2", **tag):
    """A look-up and its answer, in a message of its own."""
    first, *rest = call(call_id, "lookup_artifact", answer, message_id, **tag)
    arguments = {"type": "TOOL_CALL_ARGS", "toolCallId": call_id, "delta": f'{{"id": "{id_}"}}', **tag}
    return [*message(message_id, **tag), first, arguments, *rest]


def told(fates):
    return [
        (
            fate.id,
            fate.title,
            [(one.message, one.place) for one in fate.shown],
            fate.lookups,
            fate.counts,
        )
        for fate in fates
    ]


SHOWN = [*message("m1"), *call("c1", "ask", REPORT)]


def stored(*results, sent=0, lookups=0, user="ann"):
    """What a run with artifacts leaves in a store: each result kept, the first one told and looked up so often."""
    artifacts = Artifacts()
    kept = [
        one
        for number, text in enumerate(results, 1)
        for one in artifacts.keep(
            text, thread="t", user=user, source=f"c{number}", invocation="i-1"
        ).artifacts
    ]
    for _ in range(sent):
        artifacts.sent(kept[:1])
    for _ in range(lookups):
        artifacts.look_up(kept[0].id, thread="t", user=user)
    return artifacts


def test_a_stream_alone_says_what_was_shown_and_what_was_looked_up():
    assert told(Ledger.read(a_run("r", *SHOWN)).artifacts()) == [
        (None, "Q3", [("c1:result", "result")], (), None)
    ]
    looked = [*SHOWN, *look_up(Q3, "all of it")]
    assert told(Ledger.read(a_run("r", *looked)).artifacts()) == [
        (Q3, "Q3", [("c1:result", "result")], ("c2",), None)
    ]


def test_what_the_parent_was_told_is_in_the_store():
    ledger = Ledger.read(a_run("r", *SHOWN))
    assert told(ledger.artifacts(stored(REPORT), user="ann")) == [
        (Q3, "Q3", [("c1:result", "result")], (), Counts(0, 0))
    ]
    assert told(ledger.artifacts(stored(REPORT, sent=2), user="ann")) == [
        (Q3, "Q3", [("c1:result", "result")], (), Counts(2, 0))
    ]
    [fate] = ledger.artifacts(stored(REPORT, sent=2), user="ann")
    assert (fate.type, fate.characters) == ("text/html", 9)


def test_none_of_the_three_follows_from_another():
    """Shown and not told, told and not shown here, looked up in this recording or in another one."""
    ledger = Ledger.read(a_run("r", *message("m1")))
    assert told(ledger.artifacts(stored(REPORT, sent=1, lookups=1), user="ann")) == [
        (Q3, "Q3", [], (), Counts(1, 1))
    ]
    ledger = Ledger.read(a_run("r", *SHOWN, *look_up(Q3, "all of it")))
    assert told(ledger.artifacts(stored(REPORT, sent=2, lookups=3), user="ann")) == [
        (Q3, "Q3", [("c1:result", "result")], ("c2",), Counts(2, 3))
    ]


def test_in_the_order_of_the_screen_and_then_what_was_not_shown():
    artifacts = stored("<artifact>unseen</artifact>", REPORT + OTHER)
    ledger = Ledger.read(a_run("r", *message("m1"), *call("c1", "ask", OTHER + REPORT)))
    place = [("c1:result", "result")]
    assert [one[1:] for one in told(ledger.artifacts(artifacts, user="ann"))] == [
        ("Q4", place, (), Counts(0, 0)),
        ("Q3", place, (), Counts(0, 0)),
        (None, [], (), Counts(0, 0)),
    ]


@pytest.mark.parametrize(("user", "thread"), [("bob", "t"), ("ann", "elsewhere"), ("", "t")])
def test_of_another_user_or_thread_nothing_is_known(user, thread):
    ledger = Ledger.read(a_run("r", *SHOWN, thread=thread))
    assert told(ledger.artifacts(stored(REPORT, sent=1), user=user)) == [
        (None, "Q3", [("c1:result", "result")], (), None)
    ]


def test_two_artifacts_of_the_same_words_are_told_apart_by_their_ids():
    artifacts = stored(REPORT, REPORT, sent=1)
    first, second = artifacts.store.ids("t", "ann")
    ledger = Ledger.read(a_run("r", *SHOWN, *look_up(second, "all of it")))
    places = [("c1:result", "result")]
    assert told(ledger.artifacts(artifacts, user="ann")) == [
        (first, "Q3", places, (), Counts(1, 0)),
        (second, "Q3", places, ("c2",), Counts(0, 0)),
    ]


@pytest.mark.parametrize(
    "events",
    [
        pytest.param(look_up(Q3, "unknown_artifact: there is none"), id="refused"),
        pytest.param(look_up(Q3, "something else"), id="another text"),
        pytest.param(look_up("", "all of it"), id="without an id"),
        pytest.param(look_up(f'{Q3}"', "all of it"), id="arguments that are no JSON"),
        pytest.param(look_up("x" * 5_000, "all of it"), id="an id that is none"),
        pytest.param([*message("m2"), *call("c2", "lookup_artifact", "all of it", "m2")], id="no arguments"),
        pytest.param(
            invocation("i-1", "a", *look_up(Q3, "all of it", subagentRunId="i-1")), id="by a subagent"
        ),
        pytest.param([*message("m2"), *call("c2", "search", "all of it", "m2")], id="another tool"),
    ],
)
def test_only_an_answered_call_of_the_parents_is_a_look_up(events):
    [fate] = Ledger.read(a_run("r", *SHOWN, *events)).artifacts()
    assert fate.lookups == ()
    [fate] = Ledger.read(a_run("r", *SHOWN, *events)).artifacts(stored(REPORT), user="ann")
    assert fate.lookups == ()


def test_the_runs_of_a_thread_are_read_together():
    first, second = a_run("r1", *SHOWN), a_run("r2", *look_up(Q3, "all of it"))
    assert told(Ledger.read([*first, *second]).artifacts(stored(REPORT, sent=3), user="ann")) == [
        (Q3, "Q3", [("c1:result", "result")], ("c2",), Counts(3, 0))
    ]


def test_what_was_shown_twice_has_its_reason_and_both_stay():
    again = [*SHOWN, *look_up(Q3, REPORT), *message("m3", REPORT)]
    ledger = Ledger.read(a_run("r", *again))
    assert [(one.first.message, one.again.message, one.code) for one in ledger.shown_twice()] == [
        ("c1:result", "c2:result", "lookup_with_tags"),
        ("c1:result", "m3", "repeated_by_parent"),
    ]
    assert told(ledger.artifacts()) == [
        (None, "Q3", [("c1:result", "result"), ("c2:result", "result"), ("m3", "words")], (), None)
    ]


def test_tags_and_the_look_ups_name_are_the_apps():
    card = '<card title="Q3">all of it</card>'
    events = [*message("m1"), *call("c1", "ask", card), *message("m2"), *call("c2", "open_card", card, "m2")]
    ledger, ways = Ledger.read(a_run("r", *events)), Artifacts(tags=["card"], lookup="open_card")
    assert ledger.artifacts() == []
    assert ledger.shown_twice() == []
    assert [fate.title for fate in ledger.artifacts(ways)] == ["Q3"]
    assert [one.code for one in ledger.shown_twice(ways)] == ["lookup_with_tags"]


def test_a_store_that_is_down_is_said_to_be():
    class Down:
        def ids(self, thread, user):
            raise StoreError("connection refused")

    ledger = Ledger.read(a_run("r", *SHOWN))
    with pytest.raises(StoreError, match="refused"):
        ledger.artifacts(Artifacts(Down()), user="ann")
