"""Strict reading: every type, every member spoilt one at a time, and the quick look against the full validator."""

import json

import pytest
from byline.events import ATTRIBUTABLE, EVENT_CLASSES
from byline.schema import QUICK, UnreadableError, _Rewriter, accepts, parse, problems, read, wire, without
from hypothesis import given
from hypothesis import strategies as st
from wire import TYPES, events, spoilt


def resolve(document, pointer):
    for part in pointer.split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        document = document[int(part) if isinstance(document, list) else part]
    return document


def agree(event):
    """Hold the ways of judging one event to each other, and return whether it is good."""
    good = accepts(event)
    found = problems(event)
    assert good == (found == []), found
    for problem in found:
        resolve(event, problem.pointer)
    type_ = event.get("type") if isinstance(event, dict) else None
    if isinstance(type_, str) and type_ in QUICK:
        try:
            quick = QUICK[type_](event)
        except (LookupError, TypeError):
            quick = False
        assert not quick or good
    assert (read(json.dumps(event)) == event) if good else (read(json.dumps(event)) is None)
    return good


@pytest.mark.parametrize("type_", TYPES)
@given(data=st.data())
def test_the_ways_of_judging_agree(type_, data):
    event = data.draw(events(type_))
    assert agree(event)
    for _, changed in spoilt(event):
        agree(changed)


@pytest.mark.parametrize("type_", TYPES)
@given(data=st.data())
def test_what_is_good_here_is_good_to_the_official_models(type_, data):
    event = data.draw(events(type_))
    model = EVENT_CLASSES[type_].model_validate(event)
    assert not model.model_extra
    assert agree(json.loads(wire(model)))


MINIMAL = {
    "TEXT_MESSAGE_START": {"messageId": "m"},
    "TEXT_MESSAGE_CONTENT": {"messageId": "m", "delta": ""},
    "TEXT_MESSAGE_END": {"messageId": "m"},
    "TEXT_MESSAGE_CHUNK": {},
    "TOOL_CALL_START": {"toolCallId": "c", "toolCallName": "f"},
    "TOOL_CALL_ARGS": {"toolCallId": "c", "delta": ""},
    "TOOL_CALL_END": {"toolCallId": "c"},
    "TOOL_CALL_CHUNK": {},
    "TOOL_CALL_RESULT": {"messageId": "m", "toolCallId": "c", "content": ""},
    "STATE_SNAPSHOT": {"snapshot": None},
    "STATE_DELTA": {"delta": []},
    "MESSAGES_SNAPSHOT": {"messages": []},
    "ACTIVITY_SNAPSHOT": {"messageId": "m", "activityType": "a", "content": {}},
    "ACTIVITY_DELTA": {"messageId": "m", "activityType": "a", "patch": []},
    "RAW": {"event": None},
    "CUSTOM": {"name": "n", "value": None},
    "RUN_STARTED": {"threadId": "t", "runId": "r"},
    "RUN_FINISHED": {"threadId": "t", "runId": "r"},
    "RUN_ERROR": {"message": ""},
    "STEP_STARTED": {"stepName": "s"},
    "STEP_FINISHED": {"stepName": "s"},
    "REASONING_START": {"messageId": "m"},
    "REASONING_MESSAGE_START": {"messageId": "m", "role": "reasoning"},
    "REASONING_MESSAGE_CONTENT": {"messageId": "m", "delta": ""},
    "REASONING_MESSAGE_END": {"messageId": "m"},
    "REASONING_MESSAGE_CHUNK": {},
    "REASONING_END": {"messageId": "m"},
    "REASONING_ENCRYPTED_VALUE": {"subtype": "message", "entityId": "e", "encryptedValue": ""},
    "SUBAGENT_STARTED": {"subagentRunId": "s", "name": ""},
    "SUBAGENT_FINISHED": {"subagentRunId": "s"},
    "SUBAGENT_ERROR": {"subagentRunId": "s", "message": ""},
}
"""What each type cannot do without, from the text."""


def test_the_protocol_has_these_types():
    assert set(TYPES) == set(MINIMAL)


@pytest.mark.parametrize("type_", TYPES)
def test_what_is_required_and_nothing_more(type_):
    event = {"type": type_, **MINIMAL[type_]}
    assert problems(event) == []
    for member in MINIMAL[type_]:
        found = problems({key: value for key, value in event.items() if key != member})
        assert [(problem.kind, problem.path) for problem in found] == [("missing", (member,))]


@pytest.mark.parametrize("type_", TYPES)
def test_who_may_carry_a_tag(type_):
    event = {"type": type_, **MINIMAL[type_], "subagentRunId": "s"}
    assert accepts(event) == (type_ in ATTRIBUTABLE or type_.startswith("SUBAGENT_"))
    assert not accepts({**event, "subagentRunId": None})


@pytest.mark.parametrize(
    ("value", "good"),
    [
        (0, True),
        (1.0, True),
        (-9007199254740991, True),
        (9007199254740992, False),
        (1.5, False),
        (True, False),
        ("1", False),
    ],
)
def test_a_timestamp_is_a_whole_number_however_it_is_written(value, good):
    assert accepts({"type": "RUN_ERROR", "message": "", "timestamp": value}) == good


def test_operations_are_open_and_other_objects_are_not():
    operation = {"op": "remove", "path": "/a", "value": 1, "why": "RFC 6902 §4"}
    assert problems({"type": "STATE_DELTA", "delta": [operation]}) == []
    outcome = {"type": "cancelled", "why": "no"}
    found = problems({"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": outcome})
    assert [(problem.kind, problem.pointer) for problem in found] == [("unknown", "/outcome/why")]


def test_pointers_lead_into_the_document_and_not_into_the_schema():
    parts = [{"type": "text", "text": "hi"}, {"type": "image", "source": {"type": "url", "value": 1}}]
    event = {"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "content": parts}
    assert [(one.kind, one.pointer) for one in problems(event)] == [("value", "/content/1/source/value")]
    assert [(one.kind, one.pointer) for one in problems({**event, "content": 5})] == [("value", "/content")]
    message = {
        "id": "m",
        "role": "assistant",
        "toolCalls": [{"id": "c", "function": {"name": "f", "arguments": ""}}],
    }
    snapshot = {"type": "MESSAGES_SNAPSHOT", "messages": [message]}
    assert [(one.kind, one.pointer) for one in problems(snapshot)] == [("missing", "/messages/0/toolCalls/0")]
    patch = {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/a~2", "value": 1, "add": {"path": 5}}]}
    assert [(one.kind, one.pointer) for one in problems(patch)] == [("value", "/delta/0/path")]
    odd = {"type": "RUN_ERROR", "message": "", "a/b~c": 1}
    assert [(one.kind, one.pointer) for one in problems(odd)] == [("unknown", "/a~1b~0c")]


def test_names_of_python_are_not_names_of_the_wire():
    found = problems({"type": "TEXT_MESSAGE_END", "message_id": "m"})
    assert [(one.kind, one.path) for one in found] == [
        ("missing", ("messageId",)),
        ("unknown", ("message_id",)),
    ]


def test_a_flood_of_faults_is_one_problem():
    event = {"type": "RUN_ERROR", "message": "", **{f"m{number}": 1 for number in range(5000)}}
    assert [(one.kind, one.path) for one in problems(event)] == [("many", ())]


def test_a_schema_kind_that_is_not_known_is_refused_and_not_ignored():
    with pytest.raises(NotImplementedError, match="'complex'"):
        _Rewriter().rewrite({"type": "complex"})


def test_definitions_are_followed():
    text = {"type": "str", "ref": "text"}
    model = {
        "type": "model",
        "ref": "model",
        "schema": {
            "type": "model-fields",
            "fields": {
                "a_b": {"validation_alias": "aB", "schema": {"type": "definition-ref", "schema_ref": "text"}},
                "c": {"validation_alias": "c", "schema": {"type": "nullable", "schema": {"type": "int"}}},
            },
        },
    }
    schema = {
        "type": "definitions",
        "definitions": [text, model],
        "schema": {"type": "definition-ref", "schema_ref": "model"},
    }
    rewritten = _Rewriter().rewrite(schema)
    assert rewritten["extra_behavior"] == "forbid"
    assert {name: field["schema"]["type"] for name, field in rewritten["fields"].items()} == {
        "aB": "str",
        "c": "nullable",
    }


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (b"", "EOF"),
        (b'{"type":', "EOF"),
        (b'{"a": NaN}', "expected value"),
        (b'{"a": -Infinity}', "invalid number"),
        (b'{"a": [1e400]}', "the number at /a/0 is beyond the range of a double"),
        (b'{"a": "\\ud800"}', "hex escape"),
        ('{"a": "\ud800"}', "lone surrogate"),
        (b'{"a": "\xff"}', "invalid unicode"),
        (b"[" * 10_000 + b"]" * 10_000, "nested more than 200 levels deep"),
    ],
    ids=["empty", "cut", "nan", "infinity", "1e400", "escaped surrogate", "surrogate", "no utf-8", "deep"],
)
def test_what_cannot_be_read_is_refused_with_its_place(record, said):
    assert read(record) is None
    with pytest.raises(UnreadableError, match=said):
        parse(record)


def test_numbers_that_no_json_has_are_refused_wherever_any_value_may_stand():
    assert read(b'{"type":"CUSTOM","name":"a.b","value":{"deep":[1e400]}}') is None
    assert read(b'{"type":"TEXT_MESSAGE_END","messageId":"m","metadata":{"n":1e400}}') is None
    assert read(b'{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a","value":1e400}]}') is None


def test_what_is_cut_out_leaves_the_rest_in_place():
    document = {"a": [0, {"b": 1, "c": 2}, 2, 3], "d": {"e": 1}}
    assert without(document, [("a", 1, "b"), ("a", 0), ("a", 2), ("d", "e")]) == {"a": [{"c": 2}, 3], "d": {}}
    assert document["a"][0] == 0
