"""Records out of bytes: every form, cut at every place, and what is done with bad input."""

import gzip
import io
import json

import pytest
from byline.reading import ReadError, records, source
from hypothesis import given
from hypothesis import strategies as st

EVENTS = [
    {"type": "A", "text": "one\ntwo"},
    {"type": "B", "n": [1, {"x": "]}"}]},
    {"type": "C", "text": "ü\u2028"},
]
LINES = [json.dumps(event, ensure_ascii=False).encode() for event in EVENTS]

JSONL = b"\n".join(LINES) + b"\n"
ARRAY = b"[\n  " + b",\n  ".join(LINES) + b"\n]\n"
SSE = b": hello\n\n" + b"".join(b"event: message\nid: 1\ndata: " + line + b"\n\n" for line in LINES)


def read(data, size=65536, **options):
    chunks = (data[at : at + size] for at in range(0, len(data), size))
    return [(record.data, record.line) for record in records(chunks, **options)]


def parsed(found):
    return [json.loads(data) for data, _ in found]


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (JSONL, [1, 2, 3]),
        (JSONL.rstrip(b"\n"), [1, 2, 3]),
        (JSONL.replace(b"\n", b"\r\n"), [1, 2, 3]),
        (b"\n\n" + JSONL.replace(b"\n", b"\n \n"), [3, 5, 7]),
        (ARRAY, [2, 3, 4]),
        (ARRAY.replace(b"\n", b"\r\n"), [2, 3, 4]),
        (json.dumps(EVENTS).encode(), [1, 1, 1]),
        (SSE, [5, 9, 13]),
        (SSE.replace(b"\n", b"\r\n"), [5, 9, 13]),
        (SSE.replace(b"\n", b"\r"), [5, 9, 13]),
        (SSE.rstrip(b"\n"), [5, 9, 13]),
        (b"".join(b"data:" + line + b"\n\n" for line in LINES), [1, 3, 5]),
        (b'data: {"type":"A",\ndata: "text":"one\\ntwo"}\n\n' + SSE[SSE.index(LINES[1]) - 6 :], [1, 4, 8]),
    ],
    ids=["lines", "no last newline", "crlf", "blank lines", "array", "array crlf", "array in one line", "sse", "sse crlf",
         "sse cr", "sse without a last blank", "bare data", "data over two lines"],
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 2, 3, 7, 65536])
def test_every_form_gives_the_same_records(data, lines, size):
    found = read(data, size)
    assert parsed(found) == EVENTS
    assert [line for _, line in found] == lines


@pytest.mark.parametrize("data", [JSONL, ARRAY, SSE], ids=["lines", "array", "sse"])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_files_are_told_apart_by_their_first_bytes(tmp_path, data, packed):
    path = tmp_path / "run"
    path.write_bytes(gzip.compress(data) if packed else b"\xef\xbb\xbf" + data)
    with source(str(path)) as chunks:
        assert [json.loads(record.data) for record in records(chunks)] == EVENTS


def test_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(JSONL)))
    with source("-") as chunks:
        assert len(list(records(chunks))) == 3


def test_nothing_has_no_records():
    assert read(b"") == read(b"\n \n") == read(b"[]") == read(b" [ \n ] ") == read(b": nothing yet\n\n") == []


def test_a_line_that_is_no_json_is_a_record():
    assert read(b'{"a":1}\nERROR: out of quota\n{"a":') == [
        (b'{"a":1}', 1),
        (b"ERROR: out of quota", 2),
        (b'{"a":', 3),
    ]


def test_a_line_beyond_the_limit_is_a_record_without_data():
    data = b'{"a":1}\n' + b"x" * 100 + b'\n{"b":2}\n'
    expected = [(b'{"a":1}', 1), (None, 2), (b'{"b":2}', 3)]
    assert read(data, max_record=20) == read(data, 7, max_record=20) == expected
    assert read(b"x" * 100, max_record=20) == [(None, 1)]
    event = b"data: 1\n\ndata: " + b"x" * 100 + b"\n\ndata: 2\n\n"
    assert read(event, 7, max_record=20) == [(b"1", 1), (None, 3), (b"2", 5)]


@pytest.mark.parametrize(
    ("data", "said", "line"),
    [
        (b'[{"a":1}', "the array breaks off", 1),
        (b'[{"a":1},\n', "the array breaks off", 1),
        (b'[{"a":1},\n{"a":]', "no JSON", 2),
        (b'[{"a":1}\n{"a":2}]', "',' or ']' was expected", 2),
        (b'[{"a":1}]\n[]', "something follows", 2),
        (b"[\n" + b"[" * 100_000, "nested too deeply", 2),
        (b'[{"a":"\xff"}]', "not UTF-8", 1),
    ],
    ids=["cut", "cut after comma", "broken element", "no comma", "more", "deep", "no utf-8"],
)
def test_an_array_that_is_none_is_refused_with_its_line(data, said, line):
    with pytest.raises(ReadError, match=said) as error:
        read(data)
    assert error.value.line == line


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "binary"),
        ("[1]".encode("utf-16"), "UTF-16"),
        (gzip.compress(JSONL * 1000)[:-100], "gzip data breaks off"),
        (gzip.compress(JSONL)[:12] + b"garbage!" * 10, "gzip data breaks off or is damaged"),
    ],
    ids=["png", "utf-16", "cut gzip", "damaged gzip"],
)
def test_a_file_that_is_no_text_is_refused(tmp_path, data, said):
    path = tmp_path / "run"
    path.write_bytes(data)
    with pytest.raises(ReadError, match=said), source(str(path)) as chunks:
        list(records(chunks))


def test_a_gzip_of_two_members_is_one_stream(tmp_path):
    path = tmp_path / "run.gz"
    path.write_bytes(gzip.compress(LINES[0] + b"\n") + gzip.compress(LINES[1]))
    with source(str(path)) as chunks:
        assert [json.loads(record.data) for record in records(chunks)] == EVENTS[:2]


@pytest.mark.parametrize("name", ["missing.jsonl", ".", "http://127.0.0.1:1/", "http://[bad/"])
def test_what_cannot_be_opened_is_named(name):
    with pytest.raises(ReadError, match="cannot open"), source(name) as chunks:
        list(chunks)


@given(data=st.binary(max_size=200), size=st.integers(1, 50))
def test_any_bytes_are_records_or_refused(data, size):
    try:
        found = read(data, size, max_record=30)
    except ReadError:
        return
    assert all(line >= 1 for _, line in found)
    assert [line for _, line in found] == sorted(line for _, line in found)
