"""JSON Patch on run-scoped state: what a `STATE_DELTA` or an `ACTIVITY_DELTA` does to a document.

    apply({"n": 1}, [{"op": "replace", "path": "/n", "value": 2}])   ->   {"n": 2}

A document is any JSON value and is never changed: `apply` returns a new one which shares with the old one every
part that the patch did not touch.  So a patch costs what it touches and not what the state holds, a failed
patch leaves the state as it was because nothing has happened to it, and whoever keeps an old document keeps it.
Nothing of the patch is shared: its values are copied on the way in.

`jsonpatch` carries the operations out.  Measured (1.33 and 1.48, with `jsonpointer` 1.9 to 3.12) it needs help with:

- equality: `test` of 1.33 took `true` for `1`; RFC 6902 §4.6 compares by JSON type, numbers by value
  (`1` is `1.0`, neither is `true`);
- pointers: `jsonpointer` 1.9 took `/a/01` for `/a/1` and looked for `/s/0` inside a string; a `from` that ended
  in `-` was a `TypeError` in 1.33;
- `move` into its own child was noticed by 1.33 at an object and not at an array (§4.4);
- `replace` of an object's member named `-` was refused by 1.33;
- values: `add` and `replace` kept the patch's own objects in 1.33; 1.48 copies them, and with them what `copy`
  names.  Here a copy is shared until somebody changes it.  Forty times "copy the document into itself" would still
  fill any memory of whoever writes it down, so a document grows by copies to `LARGEST` values and no further, and
  is never nested deeper than `DEEPEST`;
- `remove` of the whole document is refused by it and allowed by the RFC.  As at the official client, `null` is
  left: a state is any JSON value, and there is no run without one.

So every pointer is resolved here first, strictly, and the containers on its way are made ours; then `jsonpatch`
acts on them in place.  It is asked for `add` and `remove` only: the RFC defines `replace`, `move` and `copy` by these.
"""

import math
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import jsonpatch
import jsonpointer

from byline.errors import BylineError

__all__ = ["DEEPEST", "LARGEST", "Json", "MalformedPatchError", "PatchError", "apply", "check", "copied"]

Json: TypeAlias = Any
"""A JSON value as Python reads it: dict, list, str, int, float, bool or None."""

LARGEST: Final = 100_000
"""How many values a document may have for a patch with a `copy` to be applied to it."""

DEEPEST: Final = 200
"""How deep a patch may nest a document; no record is read that is deeper."""

_MEMBERS: Final = MappingProxyType(
    {
        "add": ("path", "value"),
        "remove": ("path",),
        "replace": ("path", "value"),
        "move": ("from", "path"),
        "copy": ("from", "path"),
        "test": ("path", "value"),
    }
)
"""What each operation must have; members it does not define are ignored (RFC 6902 §4)."""

_POINTER: Final = re.compile(r"(?:/(?:[^/~]++|~[01])*+)*+")
"""RFC 6901; possessive, so that a pointer of 1 MB is matched without keeping 1 MB of ways back."""
_INDEX: Final = re.compile(r"0|[1-9][0-9]*")


class PatchError(BylineError):
    """A patch cannot be applied to this document; the document is unchanged.

    `op_index` is the 0-based operation at fault (`None`: the patch as a whole), `member` which of its members is
    (`"op"`, `"path"`, `"from"`, `"value"`, or `None` for the operation itself), `pointer` the JSON Pointer it
    names, if it got that far, and `reason` one sentence.
    """

    def __init__(
        self, op_index: int | None, pointer: str | None, reason: str, *, member: str | None = None
    ) -> None:
        place = "the patch" if op_index is None else f"operation {op_index}"
        super().__init__(f"{place}: {reason}")
        self.op_index = op_index
        self.pointer = pointer
        self.reason = reason
        self.member = member


class MalformedPatchError(PatchError):
    """The patch is none in the first place, whatever the document: RFC 6902 and RFC 6901 do not know its shape."""


def check(operations: object) -> None:
    """Raise `MalformedPatchError` unless `operations` is a well-formed JSON Patch ("any document would do")."""
    if not isinstance(operations, Sequence) or isinstance(operations, str | bytes):
        raise MalformedPatchError(
            None, None, f"a JSON Patch is an array of operations, not {_shown(operations)}"
        )
    for index, operation in enumerate(operations):
        _check_operation(index, operation)


def apply(document: Json, operations: Sequence[Mapping[str, Json]]) -> Json:
    """Return what `document` becomes under `operations`, a JSON Patch (RFC 6902), all of them or none.

    Neither argument is changed and nothing of `operations` is kept.  Raises `MalformedPatchError` for a patch
    that is none and `PatchError` for one that does not apply: a target of `remove`, `replace`, `test` or a
    `from` that does not exist, an index outside its array, a `test` that fails, a `move` into its own child, or a
    document that would grow beyond `LARGEST` by copies, or become deeper than `DEEPEST`.
    """
    check(operations)
    patching = _Patching(document)
    for index, operation in enumerate(operations):
        try:
            patching.perform(operation)
        except _Refusal as refusal:
            raise PatchError(index, refusal.pointer, refusal.reason, member=refusal.member) from None
    return patching.document


def _check_operation(index: int, operation: object) -> None:
    if not isinstance(operation, Mapping):
        raise MalformedPatchError(index, None, f"an operation is an object, not {_shown(operation)}")
    op = operation.get("op")
    if not isinstance(op, str) or op not in _MEMBERS:
        known = ", ".join(_MEMBERS)
        said = f"op {_shown(op)} is unknown" if "op" in operation else "op is missing"
        raise MalformedPatchError(index, None, f"{said}; RFC 6902 has {known}", member="op")
    for member in _MEMBERS[op]:
        if member not in operation:
            raise MalformedPatchError(index, None, f"{op} needs {member!r}", member=member)
        pointer = operation[member]
        if member != "value" and not (isinstance(pointer, str) and _POINTER.fullmatch(pointer)):
            raise MalformedPatchError(
                index,
                pointer if isinstance(pointer, str) else None,
                f"{member} {_shown(pointer)} is no JSON Pointer: it is empty or starts with '/', "
                "and writes '~' as '~0' and '/' as '~1'",
                member=member,
            )


class _Refusal(Exception):  # noqa: N818 - it never leaves this module
    def __init__(self, member: str, pointer: str, reason: str) -> None:
        self.member = member
        self.pointer = pointer
        self.reason = reason


class _Add(jsonpatch.AddOperation):
    """`add` that puts in the value it was given: `_Patching` knows what has to be copied and what may be shared."""

    def apply(self, obj: Json) -> Json:
        container, key = self.pointer.to_last(obj)
        if key is None:
            return self.operation["value"]
        if isinstance(container, dict):
            container[key] = self.operation["value"]
        else:
            container.insert(len(container) if key == "-" else key, self.operation["value"])
        return obj


class _Patching:
    """One patch at work: the document so far, and which of its containers are ours to change."""

    def __init__(self, document: Json) -> None:
        self.document = document
        self._ours: dict[int, Json] = {}  # by id, and held, so that no id is given out twice

    def perform(self, operation: Mapping[str, Json]) -> None:
        """Carry out one well-formed operation, or raise `_Refusal`."""
        op, path = operation["op"], operation["path"]
        if op == "test":
            if not _equal(self._find("path", path), operation["value"]):
                raise _Refusal("value", path, f"the test failed: {_shown(path)} holds something else")
        elif op == "add":
            self._add(path, self._taken(path, operation["value"]))
        elif op == "remove":
            self._find("path", path)
            self._remove(path)
        elif op == "replace":
            self._replace(path, self._taken(path, operation["value"]))
        elif op == "copy":
            value = self._find("from", operation["from"])
            self._ours.clear()  # what is in `value` is now in two places, so it is nobody's
            self._add(path, value)
            _measure("from", path, self.document, DEEPEST, LARGEST)
        else:
            self._move(operation["from"], path)

    def _taken(self, path: str, value: Json) -> Json:
        _measure("value", path, value, DEEPEST - path.count("/"))
        return copied(value)

    def _replace(self, path: str, value: Json) -> None:
        self._find("path", path)
        if path and isinstance(self._find("path", path.rpartition("/")[0]), list | tuple):
            self._remove(path)  # at an array `add` would insert
        self._add(path, value)

    def _move(self, source: str, path: str) -> None:
        value = self._find("from", source)
        if path == source:
            return
        if path.startswith(source + "/"):
            raise _Refusal(
                "path", path, f"{_shown(source)} cannot be moved into its own child {_shown(path)}"
            )
        _measure("path", path, value, DEEPEST - path.count("/"))
        self._remove(source)
        self._add(path, value)

    def _add(self, path: str, value: Json) -> None:
        self._find("path", path, for_add=True)
        self._act(_Add, {"op": "add", "path": path, "value": value})

    def _remove(self, path: str) -> None:
        if path:
            self._act(jsonpatch.RemoveOperation, {"op": "remove", "path": path})
        else:
            self.document = None

    def _act(self, kind: type[jsonpatch.PatchOperation], operation: dict[str, Json]) -> None:
        self._own(operation["path"])
        try:
            self.document = kind(operation).apply(self.document)
        except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException) as refused:
            raise _Refusal("path", operation["path"], str(refused)) from refused

    def _own(self, path: str) -> None:
        """Make every container on the way to the target of `path` one that nobody else holds."""
        parts = _parts(path)
        if not parts:
            return
        container = self.document = self._owned(self.document)
        for part in parts[:-1]:
            key = part if isinstance(container, dict) else int(part)
            container[key] = self._owned(container[key])
            container = container[key]

    def _owned(self, container: Json) -> Json:
        if id(container) in self._ours:
            return container
        mine = dict(container) if isinstance(container, Mapping) else list(container)
        self._ours[id(mine)] = mine
        return mine

    def _find(self, member: str, pointer: str, *, for_add: bool = False) -> Json:
        """Return the value at `pointer`; with `for_add`, only see to it that something may be put there."""
        value = self.document
        parts = _parts(pointer)
        for depth, part in enumerate(parts):
            adding = for_add and depth == len(parts) - 1
            if isinstance(value, Mapping):
                if adding:
                    return None
                if part not in value:
                    raise _Refusal(
                        member, pointer, f"there is no {_shown(pointer)}: no member {_shown(part)}"
                    )
                value = value[part]
            elif isinstance(value, list | tuple):
                if adding and part == "-":
                    return None
                position = _position(member, pointer, part, len(value) + adding)
                value = None if adding else value[position]
            else:
                raise _Refusal(
                    member,
                    pointer,
                    f"there is no {_shown(pointer)}: {_shown(part)} is looked for in a scalar",
                )
        return value


def _position(member: str, pointer: str, part: str, length: int) -> int:
    if not _INDEX.fullmatch(part):
        raise _Refusal(
            member, pointer, f"there is no {_shown(pointer)}: {_shown(part)} is not the index of an element"
        )
    if len(part) > 18 or int(part) >= length:  # 18 digits: more than any array, less than int() refuses
        raise _Refusal(
            member, pointer, f"there is no {_shown(pointer)}: index {_shown(part)} is outside the array"
        )
    return int(part)


def _parts(pointer: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _measure(member: str, path: str, value: Json, levels: int, most: float = math.inf) -> None:
    """Refuse a value that holds more than `most` values, or objects and arrays on more than `levels` levels."""
    count, stack = 0, [(value, levels)]
    while stack:
        value, levels = stack.pop()
        if not isinstance(value, Mapping | list | tuple):
            continue
        count += len(value)
        if count > most:
            raise _Refusal(member, path, f"the document would have more than {most:,} values")
        if levels <= 0:
            raise _Refusal(member, path, f"the document would be nested more than {DEEPEST} levels deep")
        inside = value.values() if isinstance(value, Mapping) else value
        stack.extend((item, levels - 1) for item in inside if isinstance(item, Mapping | list | tuple))


def _equal(left: Json, right: Json) -> bool:
    """RFC 6902 §4.6: equal as JSON, so a boolean is never a number, and `1` equals `1.0`."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return len(left) == len(right) and all(key in right and _equal(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(_equal, left, right))
    return bool(left == right)


def copied(value: Json) -> Json:
    """Return a copy of a JSON value, its objects and arrays as dicts and lists."""
    if isinstance(value, Mapping):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [copied(item) for item in value]
    return value


def _shown(value: object) -> str:
    """Return a short form of an untrusted value, for a message."""
    if isinstance(value, Mapping | list | tuple):
        return "an object" if isinstance(value, Mapping) else "an array"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value[:61] if isinstance(value, str | bytes) else value)
    return text if len(text) <= 60 else text[:59] + "…"
