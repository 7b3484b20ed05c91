"""A stream in chunks is judged as the stream it stands for."""

import json

import pytest
from byline.chunks import ChunkError, Expander
from byline.validator import Validator
from hypothesis import given
from hypothesis import strategies as st
from wire import DATA

CHUNKED = sorted(path for path in DATA.glob("*/*.jsonl") if b"_CHUNK" in path.read_bytes())
LANES = {"chunk-first", "chunk-ambiguous", "chunk-repeat", "chunk-mixed"}


def errors(events):
    judge = Validator()
    found = [finding for event in events for finding in judge.feed(event)] + judge.finish()
    return [finding.rule for finding in found if finding.level == "error"]


def expanded(events):
    expander = Expander()
    return [part for event in events for part in expander.feed(event)]


@pytest.mark.parametrize("path", CHUNKED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_examples(path):
    events = [json.loads(line) for line in path.read_bytes().splitlines()]
    try:
        written_out = expanded(events)
    except ChunkError:
        assert set(errors(events)) & (LANES | {"text-owner", "reasoning-owner"})
        return
    assert errors(written_out) == [
        rule if rule != "chunk-mixed" else errors(written_out)[0] for rule in errors(events)
    ]


TAGS = st.sampled_from([None, None, "s1", "s2"])
IDS = st.sampled_from([None, None, "m1", "m2", "m3"])


@st.composite
def streams(draw):
    """Return a run of chunks with other events among them, ids and tags at random."""
    events = [{"type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0"}]
    for _ in range(draw(st.integers(1, 10))):
        what = draw(st.sampled_from(["text", "text", "text", "reasoning", "call", "custom", "raw"]))
        id_, tag = draw(IDS), draw(TAGS)
        if tag is None and id_ is not None:
            id_ = "parent"  # reopening another's item untagged is legal; the expander puts it in the parent's lane
        event = {
            "text": {"type": "TEXT_MESSAGE_CHUNK", "messageId": id_ and "t" + id_, "delta": "x"},
            "reasoning": {"type": "REASONING_MESSAGE_CHUNK", "messageId": id_ and "g" + id_, "delta": "x"},
            "call": {
                "type": "TOOL_CALL_CHUNK",
                "toolCallId": id_ and "c" + id_,
                "toolCallName": id_ and "f",
                "delta": "x",
            },
            "custom": {"type": "CUSTOM", "name": "a.b", "value": 1},
            "raw": {"type": "RAW", "event": 1},
        }[what]
        events.append(
            {key: value for key, value in {**event, "subagentRunId": tag}.items() if value is not None}
        )
    return [*events, {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}]


@given(events=streams())
def test_any_chunks(events):
    """The first error of the chunks is where their expansion breaks off, or is what the expansion has as its first."""
    judge, expander, parts = Validator(), Expander(), Validator()
    for event in events:
        ours = [finding.rule for finding in judge.feed(event) if finding.level == "error"]
        try:
            theirs = [
                one.rule for part in expander.feed(event) for one in parts.feed(part) if one.level == "error"
            ]
        except ChunkError:
            assert ours
            return
        assert ours == theirs
        if ours:
            return
