"""A recording as one page: self-contained, without a network, safe whatever the stream says.

The page is `page.html` with the recording as JSON inside.  Nothing of the stream ever becomes markup: the JSON cannot
close its element, the page's script makes text nodes of it and nothing else, and a content security policy lets no
other script run and nothing be fetched.
"""

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterable
from importlib.resources import files
from typing import Any, Final

from byline.reading import Record
from byline.render._model import model
from byline.rules import Profile

__all__ = ["page"]

_ESCAPES: Final = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}
_PART: Final = re.compile(r"<(style|script)>(.*?)</\1>", re.DOTALL)


def page(records: Iterable[Record], *, title: str, profile: Profile = "producer") -> str:
    """Return the page of a recording.

    When `records` breaks off with a `ReadError` the page holds what was read, and says so; when there was nothing
    before it, the error comes through.  `profile` is the
    validator's, whose findings stand beside the events they are about.
    """
    return _fill(model(records, profile=profile), title)


def _fill(data: dict[str, Any], title: str) -> str:
    template = files("byline.render").joinpath("page.html").read_text(encoding="utf-8")
    hashes = {kind: _hash(text) for kind, text in _PART.findall(template)}
    policy = (
        f"default-src 'none'; script-src {hashes['script']}; style-src {hashes['style']}; "
        "base-uri 'none'; form-action 'none'"
    )
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES)
    values = {"policy": policy, "title": html.escape(title), "data": text}
    whole = re.sub(r"\{\{(policy|title|data)\}\}", lambda hole: values[hole[1]], template)
    return whole.encode("utf-8", "replace").decode()


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
