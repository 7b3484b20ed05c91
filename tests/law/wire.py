"""Hypothesis strategies for events, read off the strict schema, and every way to spoil one of their members."""

import json
from pathlib import Path

from byline.schema import _ANY, _WIRE
from hypothesis import strategies as st

DATA = Path(__file__).parent.parent / "data" / "law"

TYPES = tuple(_WIRE["choices"])
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
POINTERS = st.lists(st.sampled_from(["a", "b", "0", "-", "~0", "~1", ""]), max_size=3).map(
    lambda parts: "".join("/" + part for part in parts)
)


def values(schema):
    """Return a strategy for the values that `schema` accepts."""
    match schema:
        case {"custom_error_type": "not_null"}:
            return JSON.filter(lambda value: value is not None)
        case {"custom_error_type": "whole_number", "choices": [whole, _]}:
            return st.integers(whole.get("ge"), whole.get("le"))
        case {"type": "tagged-union"}:
            by = schema["discriminator"]
            return st.one_of(
                values(choice).map(lambda v, tag=tag: {**v, by: tag})
                for tag, choice in schema["choices"].items()
            )
        case {"type": "union"}:
            return st.one_of(values(choice) for choice, _ in schema["choices"])
        case {"type": "typed-dict"}:
            required = {
                name: values(field["schema"]) for name, field in schema["fields"].items() if field["required"]
            }
            optional = {
                name: values(field["schema"])
                for name, field in schema["fields"].items()
                if not field["required"]
            }
            return st.fixed_dictionaries(required, optional=optional)
        case {"type": "list"}:
            return st.lists(values(schema["items_schema"]), min_size=schema.get("min_length", 0), max_size=2)
        case {"type": "literal"}:
            return st.sampled_from(schema["expected"])
        case {"type": "str", "pattern": _}:
            return POINTERS
        case {"type": "dict"}:
            return st.dictionaries(TEXT, JSON, max_size=2)
        case {"type": "str"}:
            return TEXT
        case {"type": "bool"}:
            return st.booleans()
        case _ if schema is _ANY:
            return JSON
    raise NotImplementedError(schema)


def events(type_):
    """Return a strategy for the good events of a type."""
    return values(_WIRE["choices"][type_])


def snake(name):
    """Return the Python name of a member."""
    return "".join("_" + char.lower() if char.isupper() else char for char in name)


def spoilt(event):
    """Yield the name of a way to change one member and the event so changed, for every member and every way."""
    for name in [*event]:
        rest = {key: value for key, value in event.items() if key != name}
        yield f"{name} is missing", rest
        if snake(name) != name:
            yield f"{name} in Python's spelling", {**rest, snake(name): event[name]}
        for value in (None, True, 0, -1, 1.5, 10**400, 2**53, "", "x", "~2", [], [None], {}, {"type": "x"}):
            yield f"{name} is {json.dumps(value)[:20]}", {**event, name: value}
    for name in ("foo", "subagentRunId", "usage", "timestamp", "metadata", "rawEvent"):
        if name not in event:
            yield f"{name} is added", {**event, name: "x"}
            yield f"{name} is added as null", {**event, name: None}


def legal_streams():
    """Return every legal example of the law, each as its lines."""
    return [path.read_bytes().splitlines() for path in sorted(DATA.glob("*/legal-*.jsonl"))]
