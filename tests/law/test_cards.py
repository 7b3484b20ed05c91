"""Artifacts shown twice: the validator, which sees events, against the ledger, which has the messages."""

from itertools import pairwise

import pytest
from byline.artifacts import showings, shown_twice
from byline.ledger import Ledger
from byline.validator import Validator
from hypothesis import example, given
from hypothesis import strategies as st

BODIES = ("all of it", "<b>bold</b>", "", "a `tick` in it", "```\ncode\n```")
PIECES = st.one_of(
    st.builds("<artifact title='T'>{}</artifact>".format, st.sampled_from(BODIES)),
    st.builds(":::artifact{{title=T}}\n{}\n:::\n".format, st.sampled_from(BODIES)),
    st.sampled_from(["words ", "\n", "`", "```\n", "<artifact>never closed", "<", "</artifact>", ":::"]),
)
TEXTS = st.lists(PIECES, min_size=1, max_size=4).map("".join)
CUTS = st.lists(st.integers(0, 200), max_size=4)
SAYS = st.tuples(st.sampled_from(["text", "chunks", "result", "lookup", "sub"]), TEXTS, CUTS)


def cut(text, at):
    places = sorted({min(place, len(text)) for place in at} | {0, len(text)})
    return [text[one:other] for one, other in pairwise(places)]


def events_of(number, kind, text, at):
    id_ = f"m{number}"
    deltas = cut(text, at)
    if kind == "chunks":
        first, *rest = deltas
        yield {"type": "TEXT_MESSAGE_CHUNK", "messageId": id_, "role": "assistant", "delta": first}
        yield from ({"type": "TEXT_MESSAGE_CHUNK", "delta": delta} for delta in rest)
    elif kind in ("text", "sub"):
        tag = {"subagentRunId": "s1"} if kind == "sub" else {}
        yield {"type": "TEXT_MESSAGE_START", "messageId": id_, "role": "assistant", **tag}
        yield from (
            {"type": "TEXT_MESSAGE_CONTENT", "messageId": id_, "delta": delta, **tag} for delta in deltas
        )
        yield {"type": "TEXT_MESSAGE_END", "messageId": id_, **tag}
    else:
        tool = "lookup_artifact" if kind == "lookup" else "ask"
        # In a message of its own: in an earlier one its result would stand before what was said since.
        yield {
            "type": "TOOL_CALL_START",
            "toolCallId": id_,
            "toolCallName": tool,
            "parentMessageId": f"p{id_}",
        }
        yield {"type": "TOOL_CALL_END", "toolCallId": id_}
        yield {
            "type": "TOOL_CALL_RESULT",
            "messageId": f"{id_}:result",
            "toolCallId": id_,
            "content": text or " ",
        }


def a_run(said):
    return [
        {"type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0"},
        {"type": "SUBAGENT_STARTED", "subagentRunId": "s1", "name": "a"},
        *(event for number, one in enumerate(said) for event in events_of(number, *one)),
        {"type": "SUBAGENT_FINISHED", "subagentRunId": "s1"},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"},
    ]


def judged(events):
    validator = Validator("producer")
    found = [finding for event in events for finding in validator.feed(event)] + validator.finish()
    assert [one.rule for one in found if one.level == "error"] == []
    return [one for one in found if one.rule == "artifact-shown-twice"]


@example(
    [
        ("result", "<artifact title='T'>all of it</artifact>", []),
        ("text", "<artifact title='T'></artifact>", []),
        ("result", "<artifact title='T'></artifact>", []),
    ]
)
@given(st.lists(SAYS, max_size=6))
def test_the_validator_says_what_the_ledger_says(said):
    """Of what a result has shown: what the parent alone says twice is the ledger's to tell."""
    events = a_run(said)
    lane = [one for one in showings(Ledger.read(events).messages) if one.owner is None and one.closed]
    shown = [
        one
        for at, one in enumerate(lane)
        if any(other.place == "result" and other.body == one.body for other in lane[: at + 1])
    ]
    again = shown_twice(shown)
    assert sorted(one.message for one in judged(events)) == sorted(one.message for one in again)


def test_it_is_a_note_and_names_both_places_and_the_reason():
    card = '<artifact title="<b>Q3</b>">all of it</artifact>'
    (finding,) = judged(a_run([("result", card, []), ("lookup", card, [])]))
    assert (finding.level, finding.event, finding.related, finding.pointer) == ("info", 7, 4, "/content")
    assert finding.message == (
        "the artifact '<b>Q3</b>' of message 'm0:result' is shown again in message 'm1:result': "
        "the look-up returned it with its display tags, which must be taken off"
    )


def test_a_repetition_in_a_later_run_is_found():
    card = "<artifact>all of it</artifact>"
    first = a_run([("result", card, [])])
    second = a_run([("text", card, [])])
    second[0]["runId"] = second[-1]["runId"] = "r2"
    for event in second:  # its own ids
        event.update({key: f"x{event[key]}" for key in ("messageId", "subagentRunId") if key in event})
    assert [one.related for one in judged([*first, *second])] == [4]


def test_what_is_kept_of_open_messages_is_bounded(monkeypatch):
    monkeypatch.setattr("byline.validator._cards._MOST", 1_000)
    validator = Validator("producer")
    first = a_run([("result", "<artifact>all of it</artifact>", [])])[:-2]
    for event in first:
        validator.feed(event)
    for id_ in ("m1", "m2"):
        validator.feed({"type": "TEXT_MESSAGE_START", "messageId": id_, "role": "assistant"})
    sizes = []
    for number in range(40):
        id_ = f"m{number % 2 + 1}"
        validator.feed({"type": "TEXT_MESSAGE_CONTENT", "messageId": id_, "delta": "x" * 100})
        sizes.append(validator._cards.size)
    assert sizes[:14] == [100, 200, 300, 400, 500, 600, 700, 800, 900, 1_000, 500, 600, 600, 700]
    assert max(sizes) == 1_000
    for id_ in ("m1", "m2"):
        validator.feed({"type": "TEXT_MESSAGE_END", "messageId": id_})
    assert (validator._cards.size, validator._cards.open, len(validator._cards.first)) == (0, {}, 1)


@pytest.mark.parametrize("id_", ["m" * 65, "m" * 64, "\ud800", "앤"])
def test_any_id_can_be_a_messages(id_):
    card = "<artifact>all of it</artifact>"
    events = [
        {"type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0"},
        {"type": "TOOL_CALL_START", "toolCallId": "c0", "toolCallName": "ask"},
        {"type": "TOOL_CALL_END", "toolCallId": "c0"},
        {"type": "TOOL_CALL_RESULT", "messageId": "m0", "toolCallId": "c0", "content": card},
        {"type": "TEXT_MESSAGE_START", "messageId": id_, "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": id_, "delta": card},
        {"type": "TEXT_MESSAGE_END", "messageId": id_},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"},
    ]
    validator = Validator("producer")
    found = [one for event in events for one in validator.feed(event)]
    if "\ud800" not in id_:  # half of a surrogate pair is no text, and a fault of its own
        assert [(one.rule, one.event, one.related) for one in found] == [("artifact-shown-twice", 4, 3)]
