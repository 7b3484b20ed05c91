"""Strict reading of wire data, derived from the official models.

The models of `ag_ui.core` are made for ergonomics: both spellings of a name populate them, an optional field may
be `null`, unknown members are kept, numbers may be strings.  The text allows none of that on the wire.  So the
validator here is built from the models' *own* core schema, rewritten by `_Rewriter`; no field, type or bound is
written down a second time, and a newer `ag-ui-protocol` moves this module without an edit.

What the rewriting does, and why:

- a model becomes a typed dict whose only names are the wire's aliases, closed to any other member.  The one
  exception is RFC 6902: an operation ignores members it does not define, so those objects stay open;
- a field whose default is `None` is optional, and optional means *absent*: its `nullable` is unwrapped.  A field
  with another default (`type`, `role`, `op`) is one whose value the class knows; the wire has to carry it;
- `any` under such a `nullable` (`rawEvent`, `result`, `forwardedProps`) becomes "any value but null";
- every leaf is `strict`, because a typed dict ignores a `strict` of its own: a timestamp of `true` or `"1700"`
  would pass.  An integer may be written `1.0`: JSON Schema and every reader in JavaScript take it for 1.

`pydantic_core` reads `1e400` and, under `any`, `NaN` as floats that no JSON can carry; `read` refuses both.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from pydantic import TypeAdapter
from pydantic_core import SchemaValidator, ValidationError, from_json

from byline.events import BaseEvent, Event

__all__ = [
    "MAX_DEPTH",
    "QUICK",
    "Check",
    "Problem",
    "UnreadableError",
    "WireEvent",
    "accepts",
    "parse",
    "pointer",
    "problems",
    "read",
    "shown",
    "wire",
    "without",
]

WireEvent: TypeAlias = dict[str, Any]
"""An event as it is on the wire: plain JSON values under the wire's own names."""

MAX_DEPTH: Final = 200
"""How deep JSON may be nested before it is refused unread (the limit of `pydantic_core`'s parser)."""

_Schema: TypeAlias = dict[str, Any]


class UnreadableError(Exception):
    """The record is no JSON value, or none that is read here (`limit`); the message says what was met and where."""

    def __init__(self, message: str, *, limit: bool = False) -> None:
        super().__init__(message)
        self.limit = limit


@dataclass(frozen=True, slots=True)
class Problem:
    """One place of a document that the schema refuses.

    `kind` is `missing`, `unknown` (a member the schema has not), `null` (an optional field spelled null),
    `variant` (a member of a union that the schema has not: an event type, an outcome, an operation) or `value`.
    `path` leads to the place from the top of the document; of a missing member it ends with its name.
    """

    kind: str
    path: tuple[str | int, ...]
    message: str

    @property
    def pointer(self) -> str:
        """The place as a JSON Pointer that resolves; for a missing member, the object that lacks it."""
        return pointer(self.path[:-1] if self.kind == "missing" else self.path)


def pointer(path: Sequence[str | int]) -> str:
    """Return `path` as a JSON Pointer (RFC 6901)."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


# --- the rewriting ---------------------------------------------------------------------------------------------

_NOT_NULL: Final[_Schema] = {
    "type": "union",
    "mode": "left_to_right",
    "choices": [
        {"type": "str", "strict": True},
        {"type": "dict", "strict": True},
        {"type": "list", "strict": True},
        {"type": "bool", "strict": True},
        {"type": "int", "strict": True},
        {"type": "float", "strict": True},
    ],
    "custom_error_type": "not_null",
    "custom_error_message": "Input should be any JSON value but null",
}


def _rewrite(schema: Any) -> _Schema:
    kind = schema["type"]
    rewriter: Callable[[Any], _Schema] | None = _REWRITERS.get(kind)
    if rewriter is None:  # a construct that the models did not have when this was written
        raise NotImplementedError(
            f"the models of ag_ui.core use a core schema {kind!r} that byline cannot make strict"
        )
    return rewriter(schema)


def _model(schema: Any, *, open_: bool = False) -> _Schema:
    fields = {}
    for field in schema["schema"]["fields"].values():
        inner = field["schema"]
        required = inner["type"] != "default" or inner["default"] is not None
        if inner["type"] == "default":
            inner = inner["schema"]
            if not required and inner["type"] == "nullable":
                inner = inner["schema"]
                inner = _NOT_NULL if inner["type"] == "any" else inner
        fields[field["validation_alias"]] = {
            "type": "typed-dict-field",
            "required": required,
            "schema": inner if inner is _NOT_NULL else _rewrite(inner),
        }
    return {
        "type": "typed-dict",
        "fields": fields,
        "extra_behavior": "allow" if open_ else "forbid",
        "total": False,
    }


def _int(schema: Any) -> _Schema:
    bounds = {name: schema[name] for name in ("ge", "le", "gt", "lt") if name in schema}
    whole = {"type": "float", "strict": True, "allow_inf_nan": False, "multiple_of": 1.0, **bounds}
    return {
        "type": "union",
        "mode": "left_to_right",
        "choices": [{"type": "int", "strict": True, **bounds}, whole],
        "custom_error_type": "whole_number",
        "custom_error_message": "Input should be a whole number"
        + "".join(f" {sign} {bounds[name]}" for name, sign in (("ge", ">="), ("le", "<=")) if name in bounds),
    }


def _tagged(schema: Any) -> _Schema:
    # An `op` tells the operations of RFC 6902 apart, whose objects are open (see the module's text).
    discriminator = schema["discriminator"]
    choices = {
        str(getattr(tag, "value", tag)): _model(choice, open_=discriminator == "op")
        for tag, choice in schema["choices"].items()
    }
    return {"type": "tagged-union", "choices": choices, "discriminator": discriminator}


def _union(schema: Any) -> _Schema:
    # Labelled by type, so that an error's `loc` tells which branch it is about.
    choices = [_rewrite(choice[0] if isinstance(choice, tuple) else choice) for choice in schema["choices"]]
    return {"type": "union", "choices": [(choice, choice["type"]) for choice in choices]}


def _literal(schema: Any) -> _Schema:
    return {"type": "literal", "expected": [getattr(value, "value", value) for value in schema["expected"]]}


_REWRITERS: Final[Mapping[str, Any]] = {
    "model": _model,
    "tagged-union": _tagged,
    "union": _union,
    "literal": _literal,
    "int": _int,
    "list": lambda s: {
        **_kept(s, "min_length", "max_length"),
        "type": "list",
        "strict": True,
        "items_schema": _rewrite(s["items_schema"]),
    },
    "dict": lambda _: {"type": "dict", "strict": True, "keys_schema": {"type": "str"}},
    "str": lambda s: {**_kept(s, "pattern", "min_length", "max_length"), "type": "str", "strict": True},
    "bool": lambda _: {"type": "bool", "strict": True},
    "any": lambda _: {"type": "any"},
}


def _kept(schema: Any, *names: str) -> _Schema:
    return {name: schema[name] for name in names if name in schema}


_WIRE: Final = _rewrite(TypeAdapter(Event).core_schema)
_VALIDATOR: Final = SchemaValidator(_WIRE)


# --- the quick look ----------------------------------------------------------------------------------------------

Check: TypeAlias = Callable[[WireEvent], bool]


def _quick(event: _Schema) -> Check:
    """Compile, from an event's schema, a check that says yes to most good events and never to a bad one.

    It knows the members that are decided by their JSON type alone, and a whole number's bounds.  An event that has
    any other member (`metadata`, a role, a patch) is not for it: it says no, and the full validator is asked.
    Written as source and compiled, as `dataclasses` does: this line of code runs once per event.
    """
    required, optional = [], []
    for name, field in event["fields"].items():
        test = _quick_test(field["schema"])
        if name == "type":
            continue  # looked up by it
        if field["required"]:
            required.append(test.format(f"e[{name!r}]") if test else "False")
        elif test:
            optional.append(
                f"    v = e.get({name!r})\n"
                f"    if v is not None:\n"
                f"        if not ({test.format('v')}): return False\n"
                f"        n += 1"
            )
    source = "\n".join(
        (
            "def check(e):",
            f"    if not ({' and '.join(required) or 'True'}): return False",
            f"    n = {len(required) + 1}",
            *optional,
            "    return n == len(e)",
        )
    )
    scope: dict[str, Any] = {}
    exec(source, scope)  # noqa: S102 - made of the models' own field names
    check: Check = scope["check"]
    return check


def _quick_test(schema: _Schema) -> str | None:
    if schema == {"type": "str", "strict": True}:
        return "{0}.__class__ is str"
    if schema.get("custom_error_type") == "whole_number":
        whole = schema["choices"][0]
        return (
            f"{{0}}.__class__ is int and {whole.get('ge', '-1e999')} <= {{0}} <= {whole.get('le', '1e999')}"
        )
    return None


QUICK: Final[Mapping[str, Check]] = {name: _quick(event) for name, event in _WIRE["choices"].items()}
"""The quick look for each event type; what it declines goes to `accepts`."""


# --- reading ---------------------------------------------------------------------------------------------------


def accepts(event: Any) -> bool:
    """Whether the schema accepts `event`, a parsed JSON value, with nothing in it that JSON cannot carry."""
    return _VALIDATOR.isinstance_python(event) and _no_number(event) is None


def read(record: bytes | str) -> WireEvent | None:
    """Return the event that `record` is, or `None`; `parse` and `problems` then say why.

    The validator does the same in place, to save a call per event.
    """
    try:
        event: WireEvent = from_json(record, allow_inf_nan=False, cache_strings="keys")
        return event if QUICK[event["type"]](event) or accepts(event) else None
    except (ValueError, TypeError, LookupError):
        return None


def parse(record: bytes | str) -> Any:
    """Return the JSON value that `record` is; raise `UnreadableError` with what was met and where."""
    try:
        value = from_json(record, allow_inf_nan=False)
    except (TypeError, UnicodeError):  # pydantic_core says either, by version
        raise UnreadableError("the text holds a lone surrogate, which no UTF-8 has") from None
    except ValueError as error:
        said = str(error)
        if said.startswith("recursion limit exceeded"):
            raise UnreadableError(f"it is nested more than {MAX_DEPTH} levels deep", limit=True) from None
        raise UnreadableError(said) from None
    beyond = _no_number(value)
    if beyond is not None:
        raise UnreadableError(f"the number at {pointer(beyond) or 'the top'} is beyond the range of a double")
    return value


def wire(event: BaseEvent | Mapping[str, Any]) -> str:
    """Return a typed event or a mapping as the JSON it would be sent as; raise `UnreadableError` if it has none."""
    try:
        if isinstance(event, BaseEvent):
            return event.model_dump_json(by_alias=True, warnings=False)
        return json.dumps(event if isinstance(event, dict) else dict(event))
    except RecursionError:
        raise UnreadableError(f"it is nested more than {MAX_DEPTH} levels deep", limit=True) from None
    except Exception as error:  # noqa: BLE001 - other people's objects: whatever they raise, they are no JSON
        raise UnreadableError(f"it cannot be written as JSON: {type(error).__name__}: {error}") from None


def _no_number(value: Any) -> tuple[str | int, ...] | None:
    """Return the way to the first NaN or infinity in `value`, which JSON cannot carry."""
    stack: list[tuple[Any, tuple[str | int, ...]]] = [(value, ())]
    while stack:
        node, path = stack.pop()
        if isinstance(node, dict):
            stack.extend((item, (*path, key)) for key, item in node.items())
        elif isinstance(node, list):
            stack.extend((item, (*path, index)) for index, item in enumerate(node))
        elif isinstance(node, float) and not math.isfinite(node):
            return path
    return None


# --- explaining ------------------------------------------------------------------------------------------------


def problems(document: Any) -> list[Problem]:
    """Return everything the schema refuses about `document`, a parsed JSON object with a known `type` or not.

    One entry per place, in the order of the document's own schema; empty for an event that `read` accepts.
    """
    try:
        _VALIDATOR.validate_python(document)
    except ValidationError as error:
        found: dict[tuple[str | int, ...], Problem] = {}
        for detail in error.errors(include_url=False, include_context=True):
            problem = _explain(document, detail)
            if problem is not None:
                found.setdefault(problem.path, problem)
        return list(found.values())
    return []


def _explain(document: Any, detail: Any) -> Problem | None:
    path, node, optional, fits = _follow(document, detail["loc"])
    if not fits:
        return None
    kind, value = detail["type"], detail["input"]
    if kind == "missing":
        return Problem("missing", path, f"{_name(path)} is missing")
    if kind == "extra_forbidden":
        return Problem("unknown", path, f"the schema has no {_name(path)} here")
    if kind == "union_tag_not_found":
        by = _tag_of(node)
        return Problem("missing", (*path, by), f"{_name((*path, by))} is missing")
    if kind == "union_tag_invalid":
        by = _tag_of(node)
        known = ", ".join(node["choices"])
        said = value.get(by) if isinstance(value, dict) else None
        if isinstance(said, str):
            what = f"{_name((*path, by))} is {shown(said)}; the schema describes {known if len(known) < 120 else 'no such type'}"
            return Problem("variant", (*path, by), what)
        return Problem("value", (*path, by), f"{_name((*path, by))} is {shown(said)}, which is no string")
    if value is None and optional:
        return Problem("null", path, f"{_name(path)} is null, which does not stand for absence")
    return Problem("value", path, f"{_name(path)} is {shown(value)}: {_lower(detail['msg'])}")


def _follow(document: Any, loc: tuple[str | int, ...]) -> tuple[tuple[str | int, ...], _Schema, bool, bool]:
    """Follow a pydantic `loc`, which also names the branches of unions, through the schema.

    Returns the path in the document, the schema there, whether the place may be absent, and whether the union
    branches on the way are the ones that the document's own values chose.
    """
    path: tuple[str | int, ...] = ()
    node, value, optional, fits = _WIRE, document, False, True
    for part in loc:
        kind = node["type"]
        if kind == "tagged-union":
            node = node["choices"][part]
            continue
        if kind == "union":
            node = next(choice for choice, label in node["choices"] if label == part)
            fits = fits and (node["type"] == "list") == isinstance(value, list)
            continue
        optional = False
        if kind == "typed-dict":
            field = node["fields"].get(part)
            node, optional = (field["schema"], not field["required"]) if field else ({"type": "any"}, True)
        else:
            node = node.get("items_schema", {"type": "any"})
        path = (*path, part)
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            value = None
    return path, node, optional, fits


def _tag_of(node: _Schema) -> str:
    return str(node["discriminator"])


def _name(path: Sequence[str | int]) -> str:
    """Name a member as its reader would: the last name, with the number of its element where it is in a list."""
    if not path:
        return "the event"
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def shown(value: object, limit: int = 60) -> str:
    """Return a short form of an untrusted value, for a message."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value[: limit + 1] if isinstance(value, str | bytes) else value)
    return text if len(text) <= limit + 2 else text[:limit] + "…"


def _lower(message: str) -> str:
    return message.removeprefix("Input should be ").removeprefix("String should ").strip()


def without(document: Any, paths: Iterator[tuple[str | int, ...]]) -> Any:
    """Return a copy of `document` that lacks what `paths` lead to."""
    copy = json.loads(json.dumps(document))
    for path in sorted(paths, key=len, reverse=True):
        node = copy
        for part in path[:-1]:
            node = node[part]
        del node[path[-1]]
    return copy
