"""Legal streams, spoilt: the validator never raises, and what it says always points at something."""

import json

from byline.rules import PROFILES, RULES, levels
from byline.validator import Validator
from hypothesis import given
from hypothesis import strategies as st
from wire import JSON, TYPES, events, legal_streams, spoilt

STREAMS = legal_streams()
GARBAGE = (
    b"",
    b"{",
    b"null",
    b'"x"',
    b"[]",
    b"{}",
    b'{"type":null}',
    b'{"type":"X"}',
    b"\xff\xfe",
    b'{"type":[]}',
    b"[" * 500,
)
TAGS = ("s1", "s2", "", "r1", "x" * 500)
IDS = ("m1", "c1", "g1", "a1", "s1", "")


@st.composite
def changed(draw):
    """Return a legal stream with some of its lines changed, and lines of other streams and of none among them."""
    lines = [*draw(st.sampled_from(STREAMS))]
    if draw(st.booleans()):
        lines += draw(st.sampled_from(STREAMS))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(lines))) if lines else 0
        what = draw(
            st.sampled_from(
                ["drop", "repeat", "swap", "garbage", "cut", "spoil", "retag", "rename", "insert"]
            )
        )
        if what == "garbage":
            lines.insert(at, draw(st.sampled_from(GARBAGE) | st.binary(max_size=20)))
        elif what == "insert":
            lines.insert(at, json.dumps(draw(st.sampled_from(TYPES).flatmap(events))).encode())
        elif at < len(lines):
            lines[at : at + 1] = _changed(draw, what, lines, at)
    return lines


def _changed(draw, what, lines, at):
    line = lines[at]
    if what == "drop":
        return []
    if what == "repeat":
        return [line] * draw(st.integers(2, 4))
    if what == "swap":
        other = draw(st.integers(0, len(lines) - 1))
        lines[other], line = line, lines[other]
        return [line]
    if what == "cut":
        return [line[: draw(st.integers(0, len(line)))]]
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return [line]
    if not isinstance(event, dict):
        return [line]
    if what == "spoil":
        event = draw(st.sampled_from([one for _, one in spoilt(event)]))
    elif what == "retag":
        event["subagentRunId"] = draw(st.sampled_from(TAGS) | JSON)
    else:
        for member in (
            "messageId",
            "toolCallId",
            "stepName",
            "subagentRunId",
            "parentMessageId",
            "parentSubagentRunId",
        ):
            if member in event:
                event[member] = draw(st.sampled_from(IDS))
    return [json.dumps(event).encode()]


def resolve(document, pointer):
    for part in pointer.split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        document = document[int(part) if isinstance(document, list) else part]


def judged(lines, profile, as_=lambda line: line, **options):
    judge = Validator(profile, **options)
    found = [finding for line in lines for finding in judge.feed(as_(line))]
    assert judge.events == len(lines)
    return found + judge.finish()


@given(lines=changed(), profile=st.sampled_from(PROFILES))
def test_whatever_is_fed_findings_come_out(lines, profile):
    known = levels(profile)
    for finding in judged(lines, profile):
        assert finding.level == known[finding.rule]
        assert (finding.law, finding.hint) == (RULES[finding.rule].law, RULES[finding.rule].hint)
        assert finding.event is None or 0 <= finding.event < len(lines)
        assert finding.related is None or 0 <= finding.related < len(lines)
        assert finding.related is None or finding.related != finding.event
        assert finding.message.isprintable()
        assert len(finding.message) < 1000
        if finding.pointer:
            resolve(json.loads(lines[finding.event]), finding.pointer)


@given(lines=changed(), profile=st.sampled_from(PROFILES))
def test_it_does_not_matter_how_an_event_is_fed(lines, profile):
    def as_text(line):
        try:
            return line.decode()
        except UnicodeDecodeError:
            return line

    def as_mapping(line):
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            return line
        return event if isinstance(event, dict) else line

    expected = judged(lines, profile)
    assert judged(lines, profile, as_text) == expected
    assert judged(lines, profile, as_mapping) == expected


@given(lines=changed())
def test_the_producer_profile_is_the_stricter_one(lines):
    def places(profile):
        return {(one.rule, one.event, one.pointer) for one in judged(lines, profile) if one.level == "error"}

    errors = {(one.event, one.rule) for one in judged(lines, "producer") if one.level == "error"}
    assert errors or not places("consumer")


@given(lines=changed(), limit=st.integers(1, 3))
def test_few_items_may_be_open(lines, limit):
    judged(lines, "producer", max_open=limit)


@given(data=st.lists(st.binary(max_size=40) | JSON.map(lambda value: json.dumps(value).encode()), max_size=5))
def test_bytes_that_are_no_events(data):
    found = judged(data, "producer")
    assert {one.rule for one in found} <= {
        "not-json",
        "not-an-event",
        "unknown-type",
        "empty-stream",
        "beyond-limits",
    }
    assert len(found) == max(1, len(data))
