"""Records out of bytes: JSON lines, a JSON array, or a capture of server-sent events, plain or gzip.

    with source("run.jsonl") as chunks:
        for record in records(chunks):
            judge.feed(record.data)

The format is told by the first byte that is not white space: `[` is an array; a field name of SSE or a `:` is a
capture; anything else is one record per line, where a line that is no JSON is a record too.  A record knows the
line it begins on, counted from 1.  Nothing here needs more memory than the longest record, except an array, which
is read whole: a line beyond `MAX_RECORD` is skipped to its end and yields a record without data.
"""

import gzip
import io
import json
import re
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from byline.errors import BylineError

__all__ = ["MAX_ARRAY", "MAX_RECORD", "ReadError", "Record", "records", "source"]

MAX_RECORD: Final = 64 * 1024 * 1024
"""The longest record, in bytes, that is read; a longer one is reported and skipped."""

MAX_ARRAY: Final = 256 * 1024 * 1024
"""The largest file with a JSON array, in bytes; an array is one value, and is held whole."""

_CHUNK: Final = 64 * 1024
_GZIP: Final = b"\x1f\x8b"
_BOM: Final = b"\xef\xbb\xbf"
_SSE_FIELD: Final = re.compile(rb"(?:data|event|id|retry)[ \t]*:|:")
_SPACE: Final = b" \t\r\n"
_SAID: Final = 300
"""Bytes that are shown of what an endpoint says of a fault."""


class ReadError(BylineError):
    """The input cannot be read, or not beyond `line`; the message says why and names the place."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class Record(NamedTuple):
    """One record: its bytes as they were, or `None` where it is too long, and the 1-based line it begins on."""

    data: bytes | None
    line: int


# --- where bytes come from ---------------------------------------------------------------------------------------


@contextmanager
def source(
    name: str, *, body: bytes | None = None, headers: Mapping[str, str] | None = None, timeout: float = 60.0
) -> Iterator[Iterator[bytes]]:
    """Open a path, `-` for standard input, or a URL to post `body` to, and give its bytes in chunks.

    A URL answers with a stream, which is given as it arrives; `timeout` is how many seconds it may be silent.
    Gzip is recognised by its first bytes and unpacked.  Raises `ReadError` for what cannot be opened or read.
    """
    try:
        stream = _open(name, body, headers or {}, timeout)
    except HTTPError as error:
        with closing(error):
            said = _said(error)
        raise ReadError(
            f"{name} answered {error.code} {error.reason}{said}; a stream of events was expected"
        ) from error
    except (OSError, HTTPException, ValueError) as error:
        reason = error.reason if isinstance(error, URLError) else getattr(error, "strerror", None) or error
        raise ReadError(f"cannot open {name}: {reason}") from error
    if name == "-":
        yield _chunks(stream)
    else:
        with closing(stream):
            yield _chunks(stream)


def _said(error: HTTPError) -> str:
    """Return what an answer says of its fault, on one line and short."""
    try:
        text = error.read(_SAID).decode("utf-8", "replace")
    except (OSError, HTTPException):
        return ""
    text = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return f": {text}" if text else ""


def _open(name: str, body: bytes | None, headers: Mapping[str, str], timeout: float) -> BinaryIO:
    if name == "-":
        return sys.stdin.buffer
    if not name.startswith(("http://", "https://")):
        return Path(name).open("rb")
    accepted = {"Content-Type": "application/json", "Accept": "text/event-stream", **headers}
    request = Request(name, data=body, headers=accepted, method="POST")  # noqa: S310 - http or https, tested above
    answer: BinaryIO = build_opener(_NoRedirect).open(request, timeout=timeout)
    return answer


class _NoRedirect(HTTPRedirectHandler):
    """A redirected POST would become a GET; better to say where the endpoint has gone."""

    def redirect_request(self, *_: object) -> None:
        return None


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    read = getattr(stream, "read1", stream.read)  # what there is, without waiting for a full chunk
    first = read(_CHUNK)
    while len(first) < 3 and (more := read(_CHUNK)):
        first += more
    if first.startswith(_GZIP):
        packed = _Rest(first, read)
        with gzip.GzipFile(fileobj=io.BufferedReader(packed)) as unpacked:
            while chunk := unpacked.read1(_CHUNK):
                yield chunk
        return
    if first.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ReadError("the input is UTF-16; JSON is exchanged as UTF-8", 1)
    first = first.removeprefix(_BOM)
    if b"\0" in first:
        raise ReadError("the input is binary; JSON lines, a JSON array or an SSE capture was expected", 1)
    while first:
        yield first
        first = read(_CHUNK)


class _Rest(io.RawIOBase):
    """A stream whose first bytes have been looked at already."""

    def __init__(self, first: bytes, read: object) -> None:
        self._first = first
        self._read = read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        data, self._first = (self._first or self._read(len(view))), b""  # type: ignore[operator]
        taken, self._first = data[: len(view)], data[len(view) :]
        view[: len(taken)] = taken
        return len(taken)


# --- what is in them ---------------------------------------------------------------------------------------------


def records(chunks: Iterable[bytes], *, max_record: int = MAX_RECORD) -> Iterator[Record]:
    """Yield the records in `chunks`; raise `ReadError` where the input itself breaks off or cannot be told apart."""
    lines = _Lines(chunks, max_record)
    try:
        first = next((line for line in lines if line is None or line.strip(_SPACE)), b"")
        head = b"" if first is None else first.lstrip(_SPACE)
        if head.startswith(b"["):
            yield from _array(lines, head)
        elif _SSE_FIELD.match(head):
            yield from _events(lines, head)
        elif head or first is None:
            yield Record(None if first is None else head.rstrip(_SPACE), lines.number)
            for line in lines:
                if line is None:
                    yield Record(None, lines.number)
                elif line := line.strip(_SPACE):
                    yield Record(line, lines.number)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ReadError(
            f"the gzip data breaks off or is damaged after line {lines.number}", lines.number
        ) from error
    except (OSError, HTTPException) as error:
        raise ReadError(
            f"the input broke off after line {lines.number}: {getattr(error, 'strerror', None) or error}",
            lines.number,
        ) from error


class _Lines:
    """The lines of a stream, each without its line feed; `None` for one that is longer than is read."""

    def __init__(self, chunks: Iterable[bytes], limit: int) -> None:
        self.number = 0
        self.limit = limit
        self._chunks = iter(chunks)
        self._lines = self._split()

    def __iter__(self) -> Iterator[bytes | None]:
        return self._lines

    def _split(self) -> Iterator[bytes | None]:
        parts: list[bytes] = []  # of the line that is not complete
        size = 0
        for chunk in self._chunks:
            *whole, rest = chunk.split(b"\n")
            for piece in whole:
                self.number += 1
                size += len(piece)
                yield b"".join((*parts, piece)) if size <= self.limit else None
                parts.clear()
                size = 0
            size += len(rest)
            if size <= self.limit:
                parts.append(rest)
            else:
                parts.clear()
        if size:
            self.number += 1
            yield b"".join(parts) if size <= self.limit else None


def _events(lines: _Lines, head: bytes) -> Iterator[Record]:
    """Yield the `data` of each server-sent event, its lines joined; other fields and comments say nothing here."""
    data: list[bytes] = []
    begins = size = 0
    for number, line in _sse_lines(lines, head):
        if line is None:
            yield Record(None, number)
            data.clear()
        elif not line:
            if data:
                yield Record(b"\n".join(data) if size <= lines.limit else None, begins)
            data.clear()
        elif line.startswith(b"data"):
            field, _, value = line.partition(b":")
            if field != b"data":
                continue
            if not data:
                begins, size = number, 0
            size += len(value)
            data.append(value.removeprefix(b" ") if size <= lines.limit else b"")
    if data:  # a capture that was cut after its last event
        yield Record(b"\n".join(data) if size <= lines.limit else None, begins)


def _sse_lines(lines: _Lines, head: bytes) -> Iterator[tuple[int, bytes | None]]:
    """Yield the lines of a capture, which may end in a line feed, a carriage return, or both."""
    extra = 0
    for line in _chain(head, lines):
        number = lines.number + extra
        if line is None:
            yield number, None
            continue
        for offset, part in enumerate(line.removesuffix(b"\r").split(b"\r")):
            extra += bool(offset)
            yield lines.number + extra, part


def _chain(head: bytes, lines: _Lines) -> Iterator[bytes | None]:
    yield head
    yield from lines


def _array(lines: _Lines, head: bytes) -> Iterator[Record]:
    """Yield the elements of one JSON array, cut out of its text as they are written."""
    begins = lines.number
    rest = list(_bounded(lines, head))
    try:
        text = b"\n".join(rest).decode()
    except UnicodeDecodeError as error:
        raise ReadError(f"the array is not UTF-8: {error.reason}", begins) from error
    decoder, place = json.JSONDecoder(), _Place(text, begins)
    at = place.at(_end_of_space(text, 1))
    while not text.startswith("]", at):
        try:
            _, end = decoder.raw_decode(text, at)
        except RecursionError:
            raise ReadError(f"line {place.line}: an element is nested too deeply", place.line) from None
        except ValueError as error:
            place.at(min(getattr(error, "pos", at), len(text)))
            said = (
                "the array breaks off"
                if at >= len(text)
                else f"this is no JSON: {getattr(error, 'msg', error)}"
            )
            raise ReadError(f"line {place.line}: {said}", place.line) from error
        yield Record(text[at:end].encode("utf-8", "surrogatepass"), place.line)
        at = place.at(_end_of_space(text, end))
        if text.startswith(",", at):
            at = place.at(_end_of_space(text, at + 1))
        elif not text.startswith("]", at):
            said = "the array breaks off" if at >= len(text) else "',' or ']' was expected after an element"
            raise ReadError(f"line {place.line}: {said}", place.line)
    after = place.at(_end_of_space(text, at + 1))
    if after < len(text):
        raise ReadError(f"line {place.line}: something follows the array", place.line)


class _Place:
    """A position in a text that only moves on, and the line it is on."""

    def __init__(self, text: str, line: int) -> None:
        self.line = line
        self._text = text
        self._at = 0

    def at(self, position: int) -> int:
        """Move to `position`, and return it."""
        self.line += self._text.count("\n", self._at, position)
        self._at = position
        return position


def _bounded(lines: _Lines, head: bytes) -> Iterator[bytes]:
    size = 0
    for line in _chain(head, lines):
        size += MAX_ARRAY if line is None else len(line)
        if line is None or size > MAX_ARRAY:
            raise ReadError(
                f"the array is larger than {MAX_ARRAY >> 20} MB; write one event per line", lines.number
            )
        yield line


def _end_of_space(text: str, at: int) -> int:
    match = _SPACES.match(text, at)
    return match.end() if match else at


_SPACES: Final = re.compile(r"[ \t\r\n]*")
