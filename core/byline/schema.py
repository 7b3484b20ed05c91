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
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    `variant` (a member of a union that the schema has not: an event type, an outcome, an operation),
    `value`, or `many`, where there are too many to tell.
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

_STR: Final[_Schema] = {"type": "str", "strict": True}
_ANY: Final[_Schema] = {"type": "any"}
_NOT_NULL: Final[_Schema] = {
    "type": "union",
    "mode": "left_to_right",
    "choices": [{"type": kind, "strict": True} for kind in ("str", "dict", "list", "bool", "int", "float")],
    "custom_error_type": "not_null",
    "custom_error_message": "any value but null",
}


class _Rewriter:
    """Makes the core schema of the official models strict; one method per kind of schema, named after it."""

    def __init__(self) -> None:
        self._definitions: dict[str, Any] = {}

    def rewrite(self, schema: Any) -> _Schema:
        """Return the strict form of any schema that the models use."""
        kind = schema["type"]
        method = getattr(
            self, "_definitions_" if kind == "definitions" else "_" + kind.replace("-", "_"), None
        )
        if method is None:  # a construct that the models did not have when this was written
            raise NotImplementedError(
                f"byline cannot make a {kind!r} schema strict; its version and those of pydantic and ag-ui-protocol do not fit"
            )
        strict: _Schema = method(schema)
        return strict

    def _definitions_(self, schema: Any) -> _Schema:
        self._definitions.update((one["ref"], one) for one in schema["definitions"])
        return self.rewrite(schema["schema"])

    def _definition_ref(self, schema: Any) -> _Schema:  # the models are not recursive
        return self.rewrite(self._definitions[schema["schema_ref"]])

    def _model(self, schema: Any, *, open_: bool = False) -> _Schema:
        if schema["type"] == "definition-ref":
            schema = self._definitions[schema["schema_ref"]]
        fields = {
            field["validation_alias"]: self._field(field["schema"])
            for field in schema["schema"]["fields"].values()
        }
        return {"type": "typed-dict", "fields": fields, "extra_behavior": "allow" if open_ else "forbid"}

    def _field(self, schema: Any) -> _Schema:
        if schema["type"] != "default":
            return {"type": "typed-dict-field", "required": True, "schema": self.rewrite(schema)}
        required, schema = schema["default"] is not None, schema["schema"]
        if not required and schema["type"] == "nullable":
            schema = schema["schema"]
            if schema["type"] == "any":
                return {"type": "typed-dict-field", "required": False, "schema": _NOT_NULL}
        return {"type": "typed-dict-field", "required": required, "schema": self.rewrite(schema)}

    def _tagged_union(self, schema: Any) -> _Schema:
        # An `op` tells the operations of RFC 6902 apart, whose objects are open (see the module's text).
        open_ = schema["discriminator"] == "op"
        choices = {
            str(getattr(tag, "value", tag)): self._model(choice, open_=open_)
            for tag, choice in schema["choices"].items()
        }
        return {"type": "tagged-union", "choices": choices, "discriminator": schema["discriminator"]}

    def _union(self, schema: Any) -> _Schema:
        # Labelled by type, so that an error's `loc` tells which branch it is about.
        choices = [
            self.rewrite(choice[0] if isinstance(choice, tuple) else choice) for choice in schema["choices"]
        ]
        return {"type": "union", "choices": [(choice, choice["type"]) for choice in choices]}

    def _nullable(self, schema: Any) -> _Schema:
        return {"type": "nullable", "schema": self.rewrite(schema["schema"])}

    def _literal(self, schema: Any) -> _Schema:
        return {
            "type": "literal",
            "expected": [getattr(value, "value", value) for value in schema["expected"]],
        }

    def _int(self, schema: Any) -> _Schema:
        bounds = _kept(schema, "ge", "le", "gt", "lt")
        whole = {"type": "float", "strict": True, "allow_inf_nan": False, "multiple_of": 1.0, **bounds}
        within = "".join(
            f" {sign} {bounds[name]}" for name, sign in (("ge", ">="), ("le", "<=")) if name in bounds
        )
        return {
            "type": "union",
            "mode": "left_to_right",
            "choices": [{"type": "int", "strict": True, **bounds}, whole],
            "custom_error_type": "whole_number",
            "custom_error_message": f"a whole number{within}",
        }

    def _list(self, schema: Any) -> _Schema:
        items = self.rewrite(schema["items_schema"])
        return {
            **_kept(schema, "min_length", "max_length"),
            "type": "list",
            "strict": True,
            "items_schema": items,
        }

    def _dict(self, _: Any) -> _Schema:
        return {"type": "dict", "strict": True, "keys_schema": {"type": "str"}}

    def _str(self, schema: Any) -> _Schema:
        return {**_STR, **_kept(schema, "pattern", "min_length", "max_length")}

    def _bool(self, _: Any) -> _Schema:
        return {"type": "bool", "strict": True}

    def _any(self, _: Any) -> _Schema:
        return _ANY


def _kept(schema: Any, *names: str) -> _Schema:
    return {name: schema[name] for name in names if name in schema}


_WIRE: Final = _Rewriter().rewrite(TypeAdapter(Event).core_schema)
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
    if schema == _STR:
        return "{0}.__class__ is str"
    if schema.get("custom_error_type") == "whole_number":
        whole = schema["choices"][0]
        bounds = [
            f"{{0}} {sign} {whole[name]}" for name, sign in (("ge", ">="), ("le", "<=")) if name in whole
        ]
        return " and ".join(["{0}.__class__ is int", *bounds])
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
    except Exception as error:  # other people's objects: whatever they raise, they are no JSON
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

_MANY: Final = 1000
"""With more faults than this in one event, they are not told one by one."""

_EXPECTED: Final = {
    "string_type": "a string",
    "dict_type": "an object",
    "typed_dict_type": "an object",
    "list_type": "an array",
    "bool_type": "true or false",
    "too_short": "an array with at least one element",
    "string_pattern_mismatch": "a JSON Pointer",
}


def problems(document: Any) -> list[Problem]:
    """Return what the schema refuses about `document`, a parsed JSON value; empty for an event that it accepts.

    One entry per place, in the order of the schema; one for all where there are more than are worth telling.
    """
    try:
        _VALIDATOR.validate_python(document)
    except ValidationError as error:
        if error.error_count() > _MANY:
            return [
                Problem(
                    "many",
                    (),
                    f"the event has {error.error_count()} members or values that the schema refuses",
                )
            ]
        found: dict[tuple[str | int, ...], Problem] = {}
        for detail in error.errors(include_url=False):
            problem = _explain(document, detail)
            if problem is not None:
                found.setdefault(problem.path, problem)
        return list(found.values())
    return []


def _explain(document: Any, detail: Any) -> Problem | None:
    """Return what a pydantic error means, or `None` for one about a branch that the document did not choose."""
    place = _follow(document, detail["loc"])
    if place is None:
        return None
    path, node, optional = place
    kind, value = detail["type"], detail["input"]
    if kind == "missing":
        return Problem("missing", path, f"{_name(path)} is missing")
    if kind == "extra_forbidden":
        return Problem("unknown", path, f"the schema has no {_name(path)} here")
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        return _explain_tag(path, node, value)
    if value is None and optional:
        return Problem("null", path, f"{_name(path)} is null, which does not stand for absence")
    expected = _EXPECTED.get(kind) or detail["msg"].removeprefix("Input should be ")
    return Problem("value", path, f"{_name(path)} is {shown(value)}, where the schema has {expected}")


def _explain_tag(path: tuple[str | int, ...], node: _Schema, value: Any) -> Problem:
    by = node["discriminator"]
    path = (*path, by)
    if by not in value:
        return Problem("missing", path, f"{_name(path)} is missing")
    if not isinstance(value[by], str):
        return Problem("value", path, f"{_name(path)} is {shown(value[by])}, where the schema has a string")
    known = "no such type" if node is _WIRE else ", ".join(node["choices"])
    return Problem("variant", path, f"{_name(path)} is {shown(value[by])}; the schema describes {known}")


def _follow(document: Any, loc: tuple[str | int, ...]) -> tuple[tuple[str | int, ...], _Schema, bool] | None:
    """Follow a pydantic `loc`, which also names the branches of unions, through schema and document.

    Returns the path in the document, the schema there, and whether the place may be absent; or `None` where `loc`
    takes a branch of a `string | array` union that is not the one the document's value took.
    """
    path: tuple[str | int, ...] = ()
    node, value, optional = _WIRE, document, False
    for part in loc:
        kind = node["type"]
        if kind == "tagged-union":
            node = node["choices"][part]
        elif kind == "union":
            node = next(choice for choice, label in node["choices"] if label == part)
            if (node["type"] == "list") != isinstance(value, list):
                return None
        else:
            field = node["fields"].get(part) if kind == "typed-dict" else None
            node = field["schema"] if field else node.get("items_schema", _ANY)
            optional = field is not None and not field["required"]
            path = (*path, part)
            value = _child(value, part)
    return path, node, optional


def _child(value: Any, part: str | int) -> Any:
    try:
        return value[part]
    except (LookupError, TypeError):
        return None


def _name(path: Sequence[str | int]) -> str:
    """Name a member as its reader would: `outcome.interrupts[0].id`."""
    if not path:
        return "the event"
    return "".join(f"[{part}]" if isinstance(part, int) else "." + shown_name(part) for part in path)[1:]


def shown_name(name: str, limit: int = 40) -> str:
    """Return an untrusted member name for a message."""
    plain = name if name.isidentifier() else repr(name)
    return plain if len(plain) <= limit else plain[:limit] + "…"


def shown(value: object, limit: int = 60) -> str:
    """Return a short form of an untrusted value, for a message."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value[: limit + 1] if isinstance(value, str | bytes) else value)
    return text if len(text) <= limit + 2 else text[:limit] + "…"


def without(document: Any, paths: Iterable[tuple[str | int, ...]]) -> Any:
    """Return a copy of `document`, a JSON value, that lacks what `paths` lead to."""
    copy = json.loads(json.dumps(document))
    for path in sorted(
        paths, key=_depth_and_position, reverse=True
    ):  # so that what is left to cut stays in place
        node = copy
        for part in path[:-1]:
            node = node[part]
        del node[path[-1]]
    return copy


def _depth_and_position(path: tuple[str | int, ...]) -> tuple[int, list[int]]:
    return len(path), [part if isinstance(part, int) else -1 for part in path]
