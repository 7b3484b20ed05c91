"""Shown to the user, told to the parent, looked up: three facts that the ledger answers separately."""

import hashlib

import pytest
from byline.ledger import Ledger

from .test_completion import call, message

REPORT = '<artifact title="Q3" type="text/html">all of it</artifact>'
OTHER = '<artifact title="Q4">the rest</artifact>'


def digest(body):
    return hashlib.blake2b(body.encode(), digest_size=16).hexdigest()


def entry(id_, body, placeholders=0, lookups=0, **more):
    return {
        "id": id_,
        "characters": len(body),
        "digest": digest(body),
        "placeholders": placeholders,
        "lookups": lookups,
        **more,
    }


def a_run(run_id, *events, told=()):
    byline = {"byline": {"artifacts": list(told)}}
    return [
        {"type": "RUN_STARTED", "threadId": "t", "runId": run_id, "protocolVersion": "1.0"},
        *events,
        {"type": "RUN_FINISHED", "threadId": "t", "runId": run_id, "metadata": byline},
    ]


def told(ledger):
    return [
        (
            fate.id,
            fate.title,
            [(one.message, one.place) for one in fate.shown],
            fate.placeholders,
            fate.lookups,
        )
        for fate in ledger.artifacts()
    ]


SHOWN = [*message("m1"), *call("c1", "ask", REPORT)]


@pytest.mark.parametrize(
    ("events", "entries", "expected"),
    [
        pytest.param(SHOWN, [], [(None, "Q3", [("c1:result", "result")], 0, 0)], id="shown and not told"),
        pytest.param(
            SHOWN,
            [entry("art_1", "all of it", 2, title="Q3")],
            [("art_1", "Q3", [("c1:result", "result")], 2, 0)],
            id="shown and told",
        ),
        pytest.param(
            [], [entry("art_1", "all of it", 1, 1)], [("art_1", None, [], 1, 1)], id="told and not shown here"
        ),
        pytest.param(
            [*SHOWN, *message("m2"), *call("c2", "lookup_artifact", "all of it", "m2")],
            [entry("art_1", "all of it", 1, 1)],
            [("art_1", None, [("c1:result", "result")], 1, 1)],
            id="looked up without tags",
        ),
        pytest.param(
            [*message("m1"), *call("c1", "ask", REPORT + OTHER)],
            [entry("art_2", "the rest", 3), entry("art_1", "all of it", 1)],
            [
                ("art_1", None, [("c1:result", "result")], 1, 0),
                ("art_2", None, [("c1:result", "result")], 3, 0),
            ],
            id="in the order of the screen",
        ),
    ],
)
def test_the_facts_are_kept_apart(events, entries, expected):
    assert told(Ledger.read(a_run("r", *events, told=entries))) == expected


def test_the_runs_of_a_thread_are_added_up():
    first = a_run("r1", *SHOWN, told=[entry("art_1", "all of it", 1)])
    second = a_run("r2", *message("m5"), told=[entry("art_1", "all of it", 2, 1)])
    assert told(Ledger.read([*first, *second])) == [("art_1", None, [("c1:result", "result")], 3, 1)]


def test_what_was_shown_twice_has_its_reason_and_both_stay():
    again = [*SHOWN, *message("m2"), *call("c2", "lookup_artifact", REPORT, "m2"), *message("m3", REPORT)]
    ledger = Ledger.read(a_run("r", *again, told=[entry("art_1", "all of it", 1, 1)]))
    assert [(one.first.message, one.again.message, one.code) for one in ledger.shown_twice()] == [
        ("c1:result", "c2:result", "lookup_with_tags"),
        ("c1:result", "m3", "repeated_by_parent"),
    ]
    assert told(ledger) == [
        ("art_1", None, [("c1:result", "result"), ("c2:result", "result"), ("m3", "words")], 1, 1)
    ]


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"id": 1, "digest": digest("all of it")},
        {"id": "art_1"},
        {"id": "art_1", "digest": ["x"]},
        {"id": "art_1", "digest": digest("all of it"), "placeholders": "many", "lookups": True, "title": {}},
        {"id": "art_1", "digest": digest("all of it"), "placeholders": -1, "characters": 1e9, "type": 7},
    ],
)
def test_what_a_stream_says_wrongly_counts_as_nothing(bad):
    [fate] = Ledger.read(a_run("r", *SHOWN, told=[bad])).artifacts()
    assert (len(fate.shown), fate.placeholders, fate.lookups) == (1, 0, 0)


def test_tags_of_the_apps_own_are_an_option():
    events = [*message("m1"), *call("c1", "ask", '<card title="Q3">all of it</card>')]
    ledger = Ledger.read(a_run("r", *events))
    assert ledger.artifacts() == []
    assert [fate.title for fate in ledger.artifacts(tags=["card"])] == ["Q3"]
