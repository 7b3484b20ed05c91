"""JSON Patch, held to RFC 6902 by hand and then by a slow applier that knows nothing of sharing."""

import copy
import json

import pytest
from byline.errors import BylineError
from byline.state import MalformedPatchError, PatchError, apply, check
from hypothesis import given, settings
from hypothesis import strategies as st


def op(name, path, **more):
    return {"op": name, "path": path, **more}


def move(source, path):
    return {"op": "move", "from": source, "path": path}


def duplicate(source, path):
    return {"op": "copy", "from": source, "path": path}


APPLIES = {
    "add to an object": ({"a": 1}, [op("add", "/b", value=2)], {"a": 1, "b": 2}),
    "add replaces a member": ({"a": 1}, [op("add", "/a", value=2)], {"a": 2}),
    "add inserts into an array": ([1, 3], [op("add", "/1", value=2)], [1, 2, 3]),
    "add at the length appends": ([1], [op("add", "/1", value=2)], [1, 2]),
    "add at - appends": ([1], [op("add", "/-", value=2)], [1, 2]),
    "add replaces the whole document": ({"a": 1}, [op("add", "", value=None)], None),
    "- is a name in an object": ({"-": 1}, [op("replace", "/-", value=2)], {"-": 2}),
    "01 is a name in an object": ({"01": 1}, [op("replace", "/01", value=2)], {"01": 2}),
    "remove from an array closes the gap": ([1, 2, 3], [op("remove", "/1")], [1, 3]),
    "remove the whole document": ({"a": 1}, [op("remove", "")], None),
    "replace keeps the place": ([1, 2, 3], [op("replace", "/1", value=9)], [1, 9, 3]),
    "replace keeps the order of members": (
        {"a": 1, "b": 2},
        [op("replace", "/a", value=9)],
        {"a": 9, "b": 2},
    ),
    "escapes": (
        {"a/b": 1, "~1": 2},
        [op("replace", "/a~1b", value=3), op("replace", "/~01", value=4)],
        {"a/b": 3, "~1": 4},
    ),
    "the empty name": ({"": 1}, [op("replace", "/", value=2)], {"": 2}),
    "move up": ({"a": {"b": 1}}, [move("/a/b", "/a")], {"a": 1}),
    "move to the root": ({"a": {"b": 1}}, [move("/a/b", "")], 1),
    "move within an array": ([1, 2, 3], [move("/0", "/2")], [2, 3, 1]),
    "move resolves its path after the removal": (
        [0, {"n": 1}, {"n": 2}],
        [move("/0", "/1/x")],
        [{"n": 1}, {"n": 2, "x": 0}],
    ),
    "move onto itself": ({"a": 1}, [move("/a", "/a")], {"a": 1}),
    "move to a longer name that starts alike": ({"a": 1, "ab": {}}, [move("/a", "/ab/c")], {"ab": {"c": 1}}),
    "copy the document into itself": ({"a": 1}, [duplicate("", "/b")], {"a": 1, "b": {"a": 1}}),
    "a copy is a copy": (
        {"a": {"n": 1}},
        [duplicate("/a", "/b"), op("replace", "/b/n", value=2), op("add", "/a/m", value=3)],
        {"a": {"n": 1, "m": 3}, "b": {"n": 2}},
    ),
    "numbers are equal by value": ({"a": 1}, [op("test", "/a", value=1.0)], {"a": 1}),
    "objects are equal in any order": (
        {"a": {"x": 1, "y": [True]}},
        [op("test", "/a", value={"y": [True], "x": 1})],
        {"a": {"x": 1, "y": [True]}},
    ),
    "members that an operation does not define": ({"a": 1}, [op("remove", "/a", value=3, note="x")], {}),
    "no operations": ({"a": 1}, [], {"a": 1}),
}


@pytest.mark.parametrize(("document", "patch", "after"), APPLIES.values(), ids=APPLIES)
def test_applies(document, patch, after):
    assert apply(document, patch) == after
    assert list(after) == list(apply(document, patch)) if isinstance(after, dict) else True


# document, patch, and where it fails: operation, member, pointer
REFUSED = {
    "remove what is not there": ({}, [op("remove", "/a")], (0, "path", "/a")),
    "replace what is not there": ({}, [op("replace", "/a", value=1)], (0, "path", "/a")),
    "no parent": ({}, [op("add", "/a/b", value=1)], (0, "path", "/a/b")),
    "below a scalar": ({"a": 1}, [op("add", "/a/b", value=1)], (0, "path", "/a/b")),
    "below null": (None, [op("add", "/a", value=1)], (0, "path", "/a")),
    "inside a string": ({"a": "xyz"}, [op("test", "/a/0", value="x")], (0, "path", "/a/0")),
    "beyond the array": ([1], [op("add", "/2", value=1)], (0, "path", "/2")),
    "at the length": ([1], [op("replace", "/1", value=1)], (0, "path", "/1")),
    "- is nothing to remove": ([1], [op("remove", "/-")], (0, "path", "/-")),
    "- is nothing to replace": ([1], [op("replace", "/-", value=1)], (0, "path", "/-")),
    "- is nothing to test": ([None], [op("test", "/-", value=None)], (0, "path", "/-")),
    "- is nothing to move": ({"a": [1]}, [move("/a/-", "/b")], (0, "from", "/a/-")),
    "- is nothing to copy": ({"a": [1]}, [duplicate("/a/-", "/b")], (0, "from", "/a/-")),
    "- holds nothing": ({"a": [1]}, [op("add", "/a/-/b", value=1)], (0, "path", "/a/-/b")),
    "leading zero": ([1, 2], [op("replace", "/01", value=1)], (0, "path", "/01")),
    "plus sign": ([1, 2], [op("replace", "/+1", value=1)], (0, "path", "/+1")),
    "minus sign": ([1, 2], [op("replace", "/-1", value=1)], (0, "path", "/-1")),
    "digits of other scripts": ([1, 2], [op("replace", "/\u0661", value=1)], (0, "path", "/\u0661")),
    "newline after the index": ([1, 2], [op("replace", "/1\n", value=1)], (0, "path", "/1\n")),
    "no index": ([1, 2], [op("add", "/", value=1)], (0, "path", "/")),
    "an index of 5000 digits": ([1], [op("add", "/" + "9" * 5000, value=1)], (0, "path", "/" + "9" * 5000)),
    "move into its own child": ({"a": {"b": 1}}, [move("/a", "/a/b")], (0, "path", "/a/b")),
    "move into its own child, array": ([[1], [2]], [move("/0", "/0/0")], (0, "path", "/0/0")),
    "move the document into itself": ({"a": 1}, [move("", "/b")], (0, "path", "/b")),
    "move what is not there onto itself": ({}, [move("/a", "/a")], (0, "from", "/a")),
    "move leaves one element less": ([1, 2, 3], [move("/0", "/3")], (0, "path", "/3")),
    "true is not 1": ({"a": True}, [op("test", "/a", value=1)], (0, "value", "/a")),
    "0 is not false": ({"a": [{"b": 0}]}, [op("test", "/a", value=[{"b": False}])], (0, "value", "/a")),
    "a part is not the whole": ({"a": [1, 2]}, [op("test", "/a", value=[1])], (0, "value", "/a")),
    "absent is not null": ({}, [op("test", "/a", value=None)], (0, "path", "/a")),
    "the second operation": ({"a": 1}, [op("remove", "/a"), op("remove", "/a")], (1, "path", "/a")),
}


@pytest.mark.parametrize(("document", "patch", "place"), REFUSED.values(), ids=REFUSED)
def test_refuses_and_leaves_the_document_alone(document, patch, place):
    before = copy.deepcopy(document)
    with pytest.raises(PatchError) as caught:
        apply(document, patch)
    assert (caught.value.op_index, caught.value.member, caught.value.pointer) == place
    assert not isinstance(caught.value, MalformedPatchError)
    assert document == before


MALFORMED = {
    "null": (None, (None, None, None)),
    "an object": (op("add", "/a", value=1), (None, None, None)),
    "a string": ("[]", (None, None, None)),
    "not an operation": ([7], (0, None, None)),
    "no op": ([{"path": "/a"}], (0, "op", None)),
    "unknown op": ([op("append", "/a", value=1)], (0, "op", None)),
    "op of a wrong type": ([{"op": ["add"], "path": "/a"}], (0, "op", None)),
    "no path": ([{"op": "remove"}], (0, "path", None)),
    "path is null": ([op("remove", None)], (0, "path", None)),
    "no value": ([op("remove", "/a"), op("add", "/a")], (1, "value", None)),
    "no from": ([op("move", "/a")], (0, "from", None)),
    "no slash": ([op("remove", "a")], (0, "path", "a")),
    "fragment": ([op("remove", "#/a")], (0, "path", "#/a")),
    "tilde two": ([op("remove", "/~2")], (0, "path", "/~2")),
    "tilde at the end": ([move("/a~", "/b")], (0, "from", "/a~")),
}


@pytest.mark.parametrize(("patch", "place"), MALFORMED.values(), ids=MALFORMED)
def test_malformed(patch, place):
    for attempt in (check, lambda patch: apply({"a": 1, "~2": 1}, patch)):
        with pytest.raises(MalformedPatchError) as caught:
            attempt(patch)
        assert (caught.value.op_index, caught.value.member, caught.value.pointer) == place


def test_a_malformed_operation_is_found_before_anything_is_applied():
    with pytest.raises(MalformedPatchError) as caught:
        apply({}, [op("remove", "/missing"), op("add", "/a")])
    assert caught.value.op_index == 1


def test_the_message_names_operation_pointer_and_fault():
    with pytest.raises(BylineError) as caught:
        apply({"a": [1]}, [op("add", "/b", value=1), op("replace", "/a/01", value=1)])
    assert str(caught.value) == "operation 1: there is no '/a/01': '01' is not the index of an element"


def test_a_message_stays_short_whatever_the_pointer():
    with pytest.raises(PatchError) as caught:
        apply({}, [op("remove", "/" + "x" * 1_000_000)])
    assert len(str(caught.value)) < 300


def test_the_document_shares_nothing_with_the_patch():
    value = {"list": [1]}
    document = apply({}, [op("add", "/a", value=value), op("replace", "", value={"b": value})])
    value["list"].append(2)
    assert document == {"b": {"list": [1]}}


def test_an_untouched_part_is_shared_and_a_touched_one_is_not():
    before = {"touched": {"n": 1}, "big": [0] * 1000}
    after = apply(before, [op("replace", "/touched/n", value=2)])
    assert after["big"] is before["big"]
    assert before == {"touched": {"n": 1}, "big": [0] * 1000}


def test_copies_are_shared_until_they_are_changed():
    document = {"n": 0}
    for _ in range(10):
        document = apply(document, [duplicate("", "/again")])
    changed = apply(document, [op("replace", "/again/again/n", value=1)])
    assert changed["again"]["n"] == 0
    assert changed["again"]["again"]["n"] == 1
    assert changed["again"]["again"]["again"]["n"] == 0
    assert document["again"]["again"]["n"] == 0


def grown(document, patches):
    """Return the document at the first patch that is refused, and why it is."""
    for patch in patches:
        try:
            document = apply(document, patch)
        except PatchError as refused:
            return document, str(refused)
    raise AssertionError("nothing was refused")


def test_copying_the_document_into_itself_comes_to_an_end():
    doubled = [duplicate("/list", "/list/-"), duplicate("/list", "/list/-")]
    document, why = grown({"list": [0]}, [doubled] * 100)  # 2 ** 100 values, were it let
    assert why == "operation 1: the document would have more than 100,000 values"
    assert len(json.dumps(document)) < 1_000_000


def test_what_is_sent_may_be_as_large_as_it_is():
    large = list(range(150_000))
    document = apply({}, [op("add", "/large", value=large), move("/large", "/moved")])
    assert document == {"moved": large}


def test_growing_deeper_comes_to_an_end():
    too_deep = "operation 0: the document would be nested more than 200 levels deep"
    document, why = grown({}, [[op("add", "/a" * depth, value={})] for depth in range(1, 300)])
    assert why == too_deep
    assert grown(document, [[duplicate("", "/b")]])[1] == too_deep
    assert grown({"b": [], **document}, [[move("/b", "/a" * 199 + "/b")]])[1] == too_deep
    assert apply({"b": 1, **document}, [move("/b", "/a" * 199 + "/b")])


def test_nesting_deeper_than_python_recurses_is_refused():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(
        PatchError, match="operation 0: the document would be nested more than 200 levels deep"
    ):
        apply({}, [op("add", "/a", value=deep)])


# -- against a slow oracle ------------------------------------------------------------------------------------


class DoesNotApplyError(Exception):
    pass


def slow_apply(document, patch):
    """RFC 6902 read aloud, on a deep copy, without any library."""
    document = {"root": copy.deepcopy(document)}

    def place(pointer):
        parts = ["root"] + [p.replace("~1", "/").replace("~0", "~") for p in pointer.split("/")[1:]]
        at = document
        for part in parts[:-1]:
            at = read(at, part)
        return at, parts[-1]

    def number(array, part, limit):
        if part == "-" or str(int(part) if part.isascii() and part.isdigit() else None) != part:
            raise DoesNotApplyError
        if int(part) >= limit:
            raise DoesNotApplyError
        return int(part)

    def read(at, part):
        if isinstance(at, dict) and part in at:
            return at[part]
        if isinstance(at, list):
            return at[number(at, part, len(at))]
        raise DoesNotApplyError

    def put(pointer, value):
        at, part = place(pointer)
        if isinstance(at, dict):
            at[part] = value
        elif isinstance(at, list):
            at.insert(len(at) if part == "-" else number(at, part, len(at) + 1), value)
        else:
            raise DoesNotApplyError

    def take(pointer):
        at, part = place(pointer)
        value = read(at, part)
        if pointer == "":
            document["root"] = None
        elif isinstance(at, dict):
            del at[part]
        else:
            del at[int(part)]
        return value

    for step in patch:
        match step["op"]:
            case "add":
                put(step["path"], copy.deepcopy(step["value"]))
            case "remove":
                take(step["path"])
            case "replace":
                take(step["path"])
                put(step["path"], copy.deepcopy(step["value"]))
            case "copy":
                put(step["path"], copy.deepcopy(read(*place(step["from"]))))
            case "move":
                value = read(*place(step["from"]))
                if step["path"].startswith(step["from"] + "/"):
                    raise DoesNotApplyError
                if step["path"] != step["from"]:
                    take(step["from"])
                    put(step["path"], value)
            case "test":
                found = read(*place(step["path"]))
                if json.dumps(found, sort_keys=True) != json.dumps(step["value"], sort_keys=True):
                    raise DoesNotApplyError
    return document["root"]


values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "a"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "0", "-"]), inner, max_size=3)
    ),
    max_leaves=8,
)
pointers = st.lists(st.sampled_from(["a", "b", "0", "1", "01", "-"]), max_size=3).map(
    lambda parts: "".join("/" + part for part in parts)
)
operations = st.one_of(
    st.builds(op, st.sampled_from(["add", "replace", "test"]), pointers, value=values),
    st.builds(op, st.just("remove"), pointers),
    st.builds(move, pointers, pointers),
    st.builds(duplicate, pointers, pointers),
)


@settings(max_examples=500)
@given(values, st.lists(operations, max_size=4))
def test_agrees_with_the_slow_applier(document, patch):
    before = copy.deepcopy((document, patch))
    try:
        expected = slow_apply(document, patch)
    except DoesNotApplyError:
        with pytest.raises(PatchError):
            apply(document, patch)
    else:
        assert json.dumps(apply(document, patch), sort_keys=True) == json.dumps(expected, sort_keys=True)
    assert (document, patch) == before
