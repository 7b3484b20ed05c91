"""Other people's objects as plain JSON.

State, results, custom events and metadata come out of the user's app and may hold anything: models, sets, NaN,
bytes, a lone surrogate, a reference to itself.  What leaves byline is JSON that every consumer can read, and it
is a copy, so that nothing of the app's can change after it was reported.
"""

from collections.abc import Collection, Mapping
from typing import Any

from pydantic_core import PydanticSerializationError, from_json, to_json

__all__ = ["clean_text", "plain"]

_DEPTH = 100
"""How deep the slow path follows: far deeper than real data, far below Python's own limit."""


def clean_text(text: str) -> str:
    """Return `text` with every lone surrogate replaced by U+FFFD: it could not be encoded as UTF-8."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def plain(value: Any) -> Any:
    """Return `value` as JSON data: dict, list, str, int, float, bool or None, sharing nothing with `value`.

    What JSON has no word for becomes what comes nearest: NaN and infinities `None`, bytes base64, models and
    dataclasses their fields, anything else its `str()`.  Never raises.
    """
    if value is None or value is True or value is False:
        return value
    try:
        return from_json(_dump(value))
    except (PydanticSerializationError, ValueError, RecursionError):
        return _slowly(value, _DEPTH)
    except Exception:
        return _slowly(value, _DEPTH)


def _dump(value: Any) -> bytes:
    return to_json(value, inf_nan_mode="null", bytes_mode="base64", serialize_unknown=True)


def _slowly(value: Any, depth: int) -> Any:
    """Convert part by part, so that one bad leaf does not cost the rest."""
    if isinstance(value, str):
        return clean_text(value)
    if depth and isinstance(value, Mapping):
        return {clean_text(str(key)): _slowly(item, depth - 1) for key, item in value.items()}
    if depth and isinstance(value, Collection) and not isinstance(value, bytes | bytearray):
        return [_slowly(item, depth - 1) for item in value]
    try:
        return from_json(_dump(value))
    except Exception:
        return f"<{type(value).__name__}>"
