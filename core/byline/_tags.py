"""Finding tagged artifacts in text, in one pass.

What the products that write such tags agree on, and what is decided here where they do not:

* An element `<name attr="..." ...>body</name>` or a directive `:::name{attr="..."}` ... `:::`, each on lines of
  its own.  Attributes in any order, with either quote, with `>` inside of quotes; CR LF as well as LF.
* A tag inside a code fence or a code span of the *surrounding* text is text about tags, not an artifact.
* Inside a body nothing but the body's own end counts.  Elements of the same name nest; a code fence hides the tags
  in it when the fence is closed, and is not a fence when it is not.
* A tag that is never closed reaches to the end of the text.  It can be shown, and is not to be stored.

Regular expressions find the candidates only: no quantifier runs over a body, so the time is linear in the text.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from .errors import InputError

__all__ = ["TAGS", "Tagged", "Tags"]

TAGS: Final = ("antArtifact", "lobeArtifact", "reflyArtifact", "pfcArtifact", "artifact", ":::artifact")
"""The tags in common use: elements, and after `:::` directives."""

_MAX_TAG: Final = 4_096
"""Characters of an opening tag.  Quotes that never close would otherwise be looked for to the end, each time."""

_ATTRIBUTE: Final = re.compile(
    r"""\s*([^\s"'<>/={}`]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'=<>{}`]+)))?"""
)
_ELEMENT_END: Final = re.compile(r"\s*(/?)>")
_ELEMENT_TAIL: Final = re.compile(r"""(?:[^<>"']+|"[^"]*"|'[^']*')*+>""")
_DIRECTIVE_END: Final = re.compile(r"\s*\}[^\n]*(?:\n|$)")
_TO_LINE_END: Final = re.compile(r"[ \t\r]*(?:\n|$)")
_TICKS: Final = re.compile("`+")


@dataclass(frozen=True, slots=True)
class Tagged:
    """One tagged artifact: `text[start:end]` is all of it, `body` what stands between the tags."""

    start: int
    end: int
    tag: str
    body: str
    closed: bool = True
    attributes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """As written, entities and all; of an attribute given twice the first counts."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # "open", "close" (elements); "begin", "over" (directives); "fence"; "ticks"
    start: int
    end: int
    name: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)
    empty: bool = False  # an element that closes itself
    size: int = 0  # of a fence or of ticks
    bare: bool = False  # a fence line with nothing after it: one that can close


class Tags:
    """A set of tags to look for.  Raises `InputError` for a name that cannot be a tag's."""

    def __init__(self, names: Iterable[str] = TAGS) -> None:
        self.names: Final = (names,) if isinstance(names, str) else tuple(names)
        for name in self.names:
            if not re.fullmatch(r"(:::)?[A-Za-z][\w.-]*", name):
                raise InputError(f"{name!r} is no tag: write 'artifact', or ':::artifact' for a directive")
        elements = sorted((name for name in self.names if name[0] != ":"), key=len, reverse=True)
        self._directives: Final = frozenset(name[3:] for name in self.names if name[0] == ":")
        self._hints: Final = tuple(f"<{name}" for name in elements) + tuple(
            f":::{name}" for name in self._directives
        )
        any_element = "|".join(map(re.escape, elements)) or r"(?!)"
        self._candidate: Final = re.compile(
            rf"<(?P<open>{any_element})(?=[\s>/])|</(?P<close>{any_element})\s*>|`+|~{{3,}}|:{{3,}}(?P<directive>[\w-]*)"
        )
        self._leftover: Final = re.compile(rf"<(?=/?(?:{any_element})(?:[\s>/]|\Z))")
        any_directive = "|".join(map(re.escape, sorted(self._directives))) or r"(?!)"
        self._revived: Final = re.compile(rf"^([ \t]*)(?=:{{3,}}(?:{any_directive})(?![\w-]))", re.MULTILINE)

    def find(self, text: str) -> list[Tagged]:
        """Return the artifacts of `text` in order; none overlaps another."""
        if not any(hint in text for hint in self._hints):
            return []
        tokens = self._tokens(text)
        closers = _closers(tokens)
        spans = _Spans(text)
        found: list[Tagged] = []
        index = 0
        while index < len(tokens):
            token = tokens[index]
            index += 1
            if token.kind == "fence":
                closer = closers[index - 1]
                if closer is None:
                    break  # a fence that is never closed reaches to the end
                index = closer + 1
            elif token.kind == "ticks":
                end = spans.end(token)
                while index < len(tokens) and tokens[index].start < end:
                    index += 1
            elif token.kind == "open" and token.empty:
                found.append(Tagged(token.start, token.end, token.name, "", True, token.attributes))
            elif token.kind in ("open", "begin") and self._starts(token):
                last = _closing(tokens, closers, index)
                body = text[token.end : len(text) if last is None else tokens[last].start]
                end = len(text) if last is None else tokens[last].end
                found.append(Tagged(token.start, end, token.name, body, last is not None, token.attributes))
                index = len(tokens) if last is None else last + 1
        return found

    def strip(self, text: str) -> str:
        """Return `text` without display tags: no renderer takes what is left for an artifact.

        Nothing has to be well-formed or closed for that, and what only comes about when other tags are taken away
        is disarmed as well.
        """
        pieces: list[str] = []
        at = 0
        ours: list[bool] = []  # of the directives that are open, which are tags of ours
        for match in self._candidate.finditer(text):
            start, end = match.span()
            if start < at:
                continue
            if match["open"] is not None:
                tail = _ELEMENT_TAIL.match(text, end, end + _MAX_TAG)
                if tail is None:
                    continue
                end = tail.end()
            elif text[start] == ":" and _begins_line(text, start):
                if match["directive"]:
                    ours.append(match["directive"] in self._directives)
                    if not ours[-1]:
                        continue
                elif not ours or not ours.pop():
                    continue
                end = text.find("\n", end) + 1 or len(text)
            elif match["close"] is None:
                continue
            pieces.append(text[at:start])
            at = end
        left = self._leftover.sub("&lt;", "".join((*pieces, text[at:])))
        return self._revived.sub(r"\1\\", left)

    def _starts(self, token: _Token) -> bool:
        return token.kind == "open" or token.name in self._directives

    def _tokens(self, text: str) -> list[_Token]:
        tokens: list[_Token] = []
        inside = 0  # the end of the last opening tag: what stands in its attributes is no token
        for match in self._candidate.finditer(text):
            token = None if match.start() < inside else self._token(text, match)
            if token is not None:
                tokens.append(token)
                inside = token.end if token.kind in ("open", "begin") else 0
        return tokens

    def _token(self, text: str, match: re.Match[str]) -> _Token | None:
        start, end = match.span()
        if (name := match["close"]) is not None:
            return _Token("close", start, end, name)
        if (name := match["open"]) is not None:
            attributes, at = _attributes(text, end)
            over = _ELEMENT_END.match(text, at, end + _MAX_TAG)
            return (
                None if over is None else _Token("open", start, over.end(), name, attributes, bool(over[1]))
            )
        first, line_start = text[start], _begins_line(text, start)
        if first == ":":
            return self._directive(text, match) if line_start else None
        size = end - start
        if line_start and size >= 3:
            line_end = text.find("\n", end)
            line_end = len(text) if line_end < 0 else line_end
            if first == "~" or "`" not in text[end:line_end]:
                bare = not text[end:line_end].strip()
                return _Token("fence", start, line_end, first, size=size, bare=bare)
        return _Token("ticks", start, end, size=size) if first == "`" else None

    def _directive(self, text: str, match: re.Match[str]) -> _Token | None:
        start, end = match.span()
        if not (name := match["directive"]):
            over = _TO_LINE_END.match(text, end)
            return None if over is None else _Token("over", start, over.end())
        if not text.startswith("{", end):
            over = _TO_LINE_END.match(text, end)
            return None if over is None else _Token("begin", start, over.end(), name)
        attributes, at = _attributes(text, end + 1)
        over = _DIRECTIVE_END.match(text, at, end + _MAX_TAG)
        return None if over is None else _Token("begin", start, over.end(), name, attributes)


def _attributes(text: str, at: int) -> tuple[Mapping[str, str], int]:
    """Return the attributes that begin at `at`, and where they end."""
    limit = at + _MAX_TAG
    attributes: dict[str, str] = {}
    while (match := _ATTRIBUTE.match(text, at, limit)) is not None:
        name, *values = match.groups()
        value = next((value for value in values if value is not None), "")
        attributes.setdefault(name, value)
        at = match.end()
    return MappingProxyType(attributes), at


def _begins_line(text: str, at: int) -> bool:
    """Return whether nothing but up to three spaces stands before `at` in its line."""
    for back in range(4):
        if at - back == 0 or text[at - back - 1] == "\n":
            return True
        if text[at - back - 1] != " ":
            return False
    return False


def _closers(tokens: list[_Token]) -> list[int | None]:
    """Return for each fence the token that closes it: the next bare one of its kind that is as long or longer.

    Read from the end.  Of the fences behind only those count that are longer than all before them, so their sizes
    are in order and the one to take is found by bisection.
    """
    closers: list[int | None] = [None] * len(tokens)
    behind: dict[str, tuple[list[int], list[int]]] = {
        "`": ([], []),
        "~": ([], []),
    }  # sizes, negative, and tokens
    for index in range(len(tokens) - 1, -1, -1):
        token = tokens[index]
        if token.kind != "fence":
            continue
        sizes, indices = behind[token.name]
        if place := bisect_right(sizes, -token.size):
            closers[index] = indices[place - 1]
        if token.bare:
            while sizes and -sizes[-1] <= token.size:
                sizes.pop()
                indices.pop()
            sizes.append(-token.size)
            indices.append(index)
    return closers


def _closing(tokens: list[_Token], closers: list[int | None], index: int) -> int | None:
    """Return the token that closes the artifact whose body begins at token `index`."""
    opening = tokens[index - 1]
    again, over = ("open", "close") if opening.kind == "open" else ("begin", "over")
    depth = 1
    while index < len(tokens):
        token = tokens[index]
        if token.kind == "fence":
            index = closers[index] or index  # one that is never closed hides nothing
        elif token.kind == again and not token.empty and opening.kind in ("begin", _same(opening, token)):
            depth += 1
        elif token.kind == over and (over == "over" or token.name == opening.name):
            depth -= 1
            if not depth:
                return index
        index += 1
    return None


def _same(opening: _Token, token: _Token) -> str:
    return opening.kind if token.name == opening.name else ""


class _Spans:
    """Where code spans end: ticks are closed by as many ticks in the same line.  Each line is read once."""

    def __init__(self, text: str) -> None:
        self._text: Final = text
        self._line_end = -1
        self._starts: dict[int, list[int]] = {}

    def end(self, ticks: _Token) -> int:
        """Return where the span that `ticks` opens ends; the end of the ticks themselves if nothing closes them."""
        if ticks.start > self._line_end:
            end = self._text.find("\n", ticks.start)
            self._line_end = len(self._text) if end < 0 else end
            self._starts = {}
            for match in _TICKS.finditer(self._text, ticks.start, self._line_end):
                self._starts.setdefault(len(match[0]), []).append(match.start())
            for starts in self._starts.values():
                starts.reverse()  # the nearest last, to be taken off
        starts = self._starts.get(ticks.size, [])
        while starts and starts[-1] <= ticks.start:
            starts.pop()
        return starts.pop() + ticks.size if starts else ticks.end
