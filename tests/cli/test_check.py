"""`byline check` from the outside: forms, exit codes, choices, bad input, a live endpoint."""

import gzip
import json
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from byline.cli import main
from click.testing import CliRunner

DATA = Path(__file__).parent.parent / "data" / "law"
LEGAL = DATA / "text-owner" / "legal-two-in-parallel.jsonl"
ILLEGAL = DATA / "text-owner" / "illegal-content.jsonl"
LATE = DATA / "announced-late" / "illegal-text.jsonl"
WARNED = DATA / "pending-calls-unlisted" / "illegal-unlisted.jsonl"


def check(*arguments, stdin=None):
    return CliRunner().invoke(main, ["check", *map(str, arguments)], input=stdin, catch_exceptions=False)


def report(*arguments, stdin=None):
    return json.loads(check("--format", "json", *arguments, stdin=stdin).stdout)


def write(tmp_path, *lines, name="run.jsonl"):
    path = tmp_path / name
    path.write_bytes(
        b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    )
    return path


STARTED = {"type": "RUN_STARTED", "threadId": "t1", "runId": "r1", "protocolVersion": "1.0"}
FINISHED = {"type": "RUN_FINISHED", "threadId": "t1", "runId": "r1"}


# --- what it says ------------------------------------------------------------------------------------------------


def test_text_shows_the_place_the_lines_the_law_and_the_cure():
    result = check(ILLEGAL)
    assert result.exit_code == 1
    assert result.stdout == (
        f"{ILLEGAL}:5: error text-owner: TEXT_MESSAGE_CONTENT of text message 'm1' is tagged subagent 's2', but event 3 "
        "opened it for subagent 's1' (event 4, /subagentRunId)\n"
        '         4 | {"type":"TEXT_MESSAGE_START","messageId":"m1","role":"assistant","subagentRunId":"s1"}\n'
        '  >      5 | {"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"Paris","subagentRunId":"s2"}\n'
        "    the text: TEXT_MESSAGE_CONTENT, TEXT_MESSAGE_END and a reopening start MUST NOT carry a subagentRunId that "
        "disagrees with the message's opener; they MAY omit it.\n"
        "    to mend:  tag the event as the opener is tagged, or leave the tag out\n"
        "\n"
        "1 file, 9 events, producer profile: 1 error\n"
    )


def test_the_documentation_shows_what_comes_out(tmp_path, monkeypatch):
    (tmp_path / "run.jsonl").write_bytes(ILLEGAL.read_bytes())
    monkeypatch.chdir(tmp_path)
    page = (DATA.parent.parent.parent / "docs" / "check.md").read_text()
    assert f"```console\n$ byline check run.jsonl\n{check('run.jsonl').stdout}```\n" in page


def test_text_of_a_good_stream():
    result = check(LEGAL)
    assert (result.exit_code, result.stdout) == (0, "1 file, 13 events, producer profile: nothing found\n")


def test_json_has_exactly_this_shape():
    document = report(LATE)
    assert isinstance(document.pop("version"), str)
    assert document == {
        "profile": "producer",
        "protocol": "1.0",
        "summary": {"files": 1, "events": 6, "errors": 1, "warnings": 0, "infos": 0, "unreadable": 0},
        "files": [
            {
                "file": str(LATE),
                "events": 6,
                "error": None,
                "truncated": False,
                "findings": [
                    {
                        "rule": "announced-late",
                        "level": "error",
                        "event": 1,
                        "line": 2,
                        "pointer": "/subagentRunId",
                        "related": 2,
                        "message": "this event carries the tag of subagent 's1', which event 2 announces only later",
                        "law": "A producer that announces an invocation MUST do so before any event attributed to it.",
                        "hint": "send SUBAGENT_STARTED before the first event that carries its id",
                    }
                ],
            }
        ],
    }


def test_events_count_records_and_lines_count_lines(tmp_path):
    path = write(tmp_path, b"", STARTED, b"", b"{oops", b"", FINISHED, b"")
    (file,) = report(path)["files"]
    assert file["events"] == 3
    assert [(one["rule"], one["event"], one["line"]) for one in file["findings"]] == [("not-json", 1, 4)]
    sse = b": hi\n\ndata: " + json.dumps(STARTED).encode() + b"\r\n\r\nevent: x\r\ndata: {oops\r\n\r\n"
    (file,) = report("-", stdin=sse)["files"]
    assert file["file"] == "-"
    assert [(one["rule"], one["event"], one["line"]) for one in file["findings"]] == [("not-json", 1, 6)]


def test_the_end_of_the_stream_has_the_last_line(tmp_path):
    (file,) = report(write(tmp_path, STARTED))["files"]
    assert [(one["rule"], one["event"], one["line"]) for one in file["findings"]] == [
        ("run-truncated", None, 1)
    ]
    (file,) = report("-", stdin="")["files"]
    assert [(one["rule"], one["event"], one["line"]) for one in file["findings"]] == [
        ("empty-stream", None, None)
    ]


def test_sarif():
    document = json.loads(check("--format", "sarif", LATE, LEGAL).stdout)
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    (result,) = run["results"]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "announced-late"
    assert result["level"] == "error"
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 2}
    assert result["relatedLocations"][0]["physicalLocation"]["region"] == {"startLine": 3}
    assert run["invocations"] == [{"executionSuccessful": True, "toolExecutionNotifications": []}]


def test_junit(tmp_path):
    broken = tmp_path / "broken.json"
    broken.write_text('[{"type":')
    root = ET.fromstring(check("--format", "junit", ILLEGAL, WARNED, LEGAL, broken).stdout)
    suites = [
        (suite.get("tests"), suite.get("failures"), suite.get("skipped"), suite.get("errors"))
        for suite in root
    ]
    assert suites == [("1", "1", "0", "0"), ("1", "0", "1", "0"), ("1", "0", "0", "0"), ("1", "0", "0", "1")]
    assert root[0][0][0].get("type") == "text-owner"


# --- exit codes and choices --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "options", "code"),
    [
        (LEGAL, [], 0),
        (ILLEGAL, [], 1),
        (ILLEGAL, ["--fail-on", "none"], 0),
        (WARNED, [], 0),
        (WARNED, ["--fail-on", "warning"], 1),
        (WARNED, ["--fail-on", "warning", "--ignore", "pending-calls-unlisted"], 0),
        (ILLEGAL, ["--ignore", "text-owner"], 0),
        (ILLEGAL, ["--select", "text-owner"], 1),
        (ILLEGAL, ["--select", "state-patch,step-owner"], 0),
        (ILLEGAL, ["--profile", "consumer"], 1),
        (LATE, ["--profile", "consumer"], 0),
        ("missing.jsonl", [], 2),
        ("missing.jsonl", ["--fail-on", "none"], 2),
    ],
)
def test_exit_codes(path, options, code):
    assert check(path, *options).exit_code == code


def test_several_files_have_one_exit_code(tmp_path):
    assert check(LEGAL, ILLEGAL).exit_code == 1
    result = check(LEGAL, ILLEGAL, tmp_path / "missing")
    assert result.exit_code == 2
    assert (
        f"{tmp_path / 'missing'}: cannot be read: cannot open {tmp_path / 'missing'}: No such file or directory"
        in result.stdout
    )
    assert "3 files, 22 events, producer profile: 1 error; 1 input could not be read" in result.stdout


def test_a_rule_that_there_is_not_is_refused_with_a_suggestion():
    result = check(LEGAL, "--ignore", "text-owners")
    assert result.exit_code == 2
    assert "there is no rule 'text-owners'; did you mean 'text-owner'?" in result.output


def test_findings_are_cut_and_the_exit_code_is_not(tmp_path):
    warnings = [{"type": "CUSTOM", "name": f"bare{number}", "value": 1} for number in range(10)]
    path = write(tmp_path, STARTED, *warnings, {"type": "STEP_FINISHED", "stepName": "a"}, FINISHED)
    document = report(path, "--max-findings", 3)
    (file,) = document["files"]
    assert file["truncated"]
    assert [(one["rule"], one["event"]) for one in file["findings"]] == [
        ("custom-name", 1),
        ("custom-name", 2),
        ("step-not-open", 11),
    ]
    assert document["summary"] == {
        "files": 1,
        "events": 13,
        "errors": 1,
        "warnings": 10,
        "infos": 0,
        "unreadable": 0,
    }
    assert "and 8 more (--max-findings)" in check(path, "--max-findings", 3).stdout


# --- input -------------------------------------------------------------------------------------------------------


def test_every_form_is_judged_alike(tmp_path):
    lines = ILLEGAL.read_bytes().splitlines()
    forms = {
        "lines.jsonl": ILLEGAL.read_bytes(),
        "array.json": b"[" + b",".join(lines) + b"]",
        "capture.sse": b"".join(b"data: " + line + b"\r\n\r\n" for line in lines),
        "lines.jsonl.gz": gzip.compress(ILLEGAL.read_bytes()),
    }
    for name, data in forms.items():
        (tmp_path / name).write_bytes(data)
    files = report(*(tmp_path / name for name in forms))["files"]
    assert [[(one["rule"], one["event"]) for one in file["findings"]] for file in files] == [
        [("text-owner", 4)]
    ] * 4
    (file,) = report("-", stdin=forms["array.json"])["files"]
    assert [(one["rule"], one["event"]) for one in file["findings"]] == [("text-owner", 4)]
    shown = check("-", stdin=forms["lines.jsonl"]).stdout
    assert '         4 | {"type":"TEXT_MESSAGE_START"' in shown
    assert '  >      5 | {"type":"TEXT_MESSAGE_CONTENT"' in shown


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        (b'{"type":"CUSTOM","name":"a.b","value":' + b"[" * 10_000 + b"]" * 10_000 + b"}", "beyond-limits"),
        (b'{"type":"CUSTOM","name":"a.b","value":NaN}', "not-json"),
        (b'{"type":"CUSTOM","name":"a.b","value":1e400}', "not-json"),
        (b'{"type":"CUSTOM","name":"a.b","value":Infinity}', "not-json"),
        (b'{"type":"CUSTOM","name":"\\udc00.b","value":1}', "not-json"),
        (b'{"type":"CUSTOM","name":"\xed\xa0\x80.b","value":1}', "not-json"),
        (b'{"type":"TEXT_MESSAGE_END","messageId":"' + b"m" * 1_000_000 + b'"}', "text-not-open"),
        (b'{"type":"TEXT_MESSAGE_START","messageId":"m1","' + b"x" * 1_000_000 + b'":1}', "unknown-member"),
        (b'{"type":"\x1b[31mRED","messageId":"m1"}', "not-json"),
        (b'{"type":"\\u001b[31mRED\\u202e","messageId":"m1"}', "unknown-type"),
    ],
    ids=["deep", "nan", "1e400", "infinity", "escaped surrogate", "raw surrogate", "long id", "long member", "control", "escape"],
)  # fmt: skip
def test_bad_input_is_a_finding_with_its_place(tmp_path, line, rule):
    path = write(tmp_path, STARTED, line, FINISHED)
    (file,) = report(path)["files"]
    assert [(one["rule"], one["event"], one["line"]) for one in file["findings"]] == [(rule, 1, 2)]
    shown = check(path).stdout
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert len(shown) < 3000
    for format_ in ("sarif", "junit"):
        assert check("--format", format_, path).exit_code == 1


def test_a_truncated_last_line(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_bytes(json.dumps(STARTED).encode() + b"\n" + b'{"type":"TEXT_MESS')
    (file,) = report(path)["files"]
    assert [(one["rule"], one["event"], one["line"]) for one in file["findings"]] == [("not-json", 1, 2)]


def test_a_hundred_megabytes_in_one_line(tmp_path):
    path = tmp_path / "run.jsonl"
    with path.open("wb") as file:
        file.write(json.dumps(STARTED).encode() + b"\n")
        for _ in range(100):
            file.write(b"x" * 1_000_000)
        file.write(b"\n" + json.dumps(FINISHED).encode() + b"\n")
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, "check", "--format", "json", path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    (file,) = json.loads(done.stdout)["files"]
    assert [(one["rule"], one["event"], one["line"]) for one in file["findings"]] == [("beyond-limits", 1, 2)]


LIMITED = """
import resource, sys
from byline.cli import main
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 300_000_000,) * 2)
main(sys.argv[1:])
"""
"""The command with 300 MB of address space beyond what its imports take."""


def test_max_open(tmp_path):
    starts = [{"type": "TEXT_MESSAGE_START", "messageId": f"m{number}"} for number in range(4)]
    ends = [{"type": "TEXT_MESSAGE_END", "messageId": f"m{number}"} for number in range(4)]
    path = write(tmp_path, STARTED, *starts, *ends, FINISHED)
    assert check(path).exit_code == 0
    (file,) = report(path, "--max-open", 3)["files"]
    assert [(one["rule"], one["event"]) for one in file["findings"]] == [("beyond-limits", 4)]


def test_input_that_breaks_off_keeps_what_was_found(tmp_path):
    path = tmp_path / "run.json"
    path.write_text(f'[{json.dumps(STARTED)},\n{{"type":"STEP_FINISHED","stepName":"a"}},\n{{oops')
    result = check("--format", "json", path)
    assert result.exit_code == 2
    (file,) = json.loads(result.stdout)["files"]
    assert file["error"]["line"] == 3
    assert [one["rule"] for one in file["findings"]] == ["step-not-open", "run-truncated"]


# --- a live endpoint ---------------------------------------------------------------------------------------------


class Endpoint(BaseHTTPRequestHandler):
    """Answers with the events of `lines`, and keeps what it was asked."""

    lines = ()
    status = 200
    asked = None

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        type(self).asked = (json.loads(body), dict(self.headers))
        self.send_response(self.status)
        if self.status == 307:
            self.send_header("Location", "/elsewhere")
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for line in self.lines:
            self.wfile.write(b"data: " + line + b"\n\n")
            self.wfile.flush()

    def log_message(self, *_):
        pass


@contextmanager
def endpoint(lines=(), status=200):
    handler = type("Answer", (Endpoint,), {"lines": lines, "status": status})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/agent", handler
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_url_is_posted_an_input_and_its_stream_judged(tmp_path):
    input_ = {"threadId": "t1", "runId": "r1", "messages": [{"id": "u1", "role": "user", "content": "hi"}]}
    (tmp_path / "input.json").write_text(json.dumps(input_))
    with endpoint(ILLEGAL.read_bytes().splitlines()) as (url, handler):
        result = check(url, "--input", tmp_path / "input.json", "--header", "Authorization: Bearer x")
    assert result.exit_code == 1
    assert "text-owner" in result.stdout
    assert "  >     13 | " not in result.stdout
    assert '{"type":"TEXT_MESSAGE_CONTENT"' in result.stdout
    body, headers = handler.asked
    assert body == input_
    assert headers["Accept"] == "text/event-stream"
    assert headers["Authorization"] == "Bearer x"


def test_without_an_input_a_small_one_is_posted():
    with endpoint(LEGAL.read_bytes().splitlines()) as (url, handler):
        assert check(url).exit_code == 0
    assert handler.asked[0]["messages"] == []


@pytest.mark.parametrize(
    ("status", "said"), [(500, "answered 500"), (404, "answered 404"), (307, "answered 307")]
)
def test_an_endpoint_that_answers_otherwise_cannot_be_read(status, said):
    with endpoint(status=status) as (url, _):
        result = check(url)
    assert result.exit_code == 2
    assert said in result.stdout


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot read"),
        ("{", "is no RunAgentInput"),
        ('{"threadId": "t"}', "is no RunAgentInput: runId: Field required"),
    ],
)
def test_an_input_that_is_none_is_refused(tmp_path, content, said):
    path = tmp_path / "input.json"
    if content is not None:
        path.write_text(content)
    result = check("http://127.0.0.1:1/", "--input", path)
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


def test_a_header_that_is_none_is_refused():
    result = check(LEGAL, "--header", "nonsense")
    assert result.exit_code == 2
    assert "write 'NAME: VALUE'" in result.output


def test_help_names_every_choice():
    said = CliRunner().invoke(main, ["check", "--help"]).stdout
    for word in (
        "--profile",
        "--format",
        "--fail-on",
        "--select",
        "--ignore",
        "--max-findings",
        "--max-open",
        "--input",
    ):
        assert word in said
    assert "check" in CliRunner().invoke(main, ["--help"]).stdout
