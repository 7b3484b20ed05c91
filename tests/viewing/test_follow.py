"""`byline tree --follow` on a file that is written while it is read, and `byline view --live` on an endpoint."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from byline.cli import main
from click.testing import CliRunner
from serving_kit import served, team
from test_page_model import RUN_1, RUN_2


def append(path: Path, events: list[dict[str, Any]]) -> None:
    with path.open("a") as file:
        file.write("".join(json.dumps(event) + "\n" for event in events))


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "TERM": "xterm"}


def test_each_run_is_shown_when_it_has_ended(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    append(path, RUN_1[:6])
    process = subprocess.Popen(
        [sys.executable, "-m", "byline.cli", "tree", "--follow", str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert process.stdout is not None
    try:
        time.sleep(0.6)
        append(path, RUN_1[6:])
        first = process.stdout.readline()
        assert "r1" in first
        assert "interrupted" in first
        append(path, RUN_2)
        while "gave up (tired)" not in (line := process.stdout.readline()):
            assert line
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    assert process.returncode == 0


def test_on_a_terminal_the_picture_grows(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    append(path, RUN_1[:6])
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "byline.cli", "tree", "--follow", str(path)],
        stdout=theirs,
        stdin=theirs,
        env=environment(),
    )
    os.close(theirs)

    def read_until(wanted: str) -> None:
        seen, deadline = "", time.monotonic() + 20
        while wanted not in seen:
            assert time.monotonic() < deadline, seen
            if select.select([ours], [], [], 0.2)[0]:
                seen += os.read(ours, 65536).decode(errors="replace")

    try:
        read_until("running")
        append(path, RUN_1[6:])
        read_until("suspended")
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)
        os.close(ours)
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "content", "code", "said"),
    [
        (["missing.jsonl"], None, 2, "cannot read missing.jsonl: No such file or directory"),
        (["run.gz"], b"\x1f\x8b\x08", 2, "it cannot be followed while it is written"),
        (["run.gz", "--json"], b"", 2, "--follow draws a file as it grows"),
        (["-"], None, 2, "--follow draws a file as it grows"),
    ],
)
def test_what_cannot_be_followed(
    tmp_path: Path, monkeypatch, arguments: list[str], content: bytes | None, code: int, said: str
):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / arguments[0]).write_bytes(content)
    result = CliRunner().invoke(main, ["tree", "--follow", *arguments])
    assert result.exit_code == code
    assert said in result.output


def test_a_live_endpoint_is_followed(tmp_path: Path):
    given = tmp_path / "input.json"
    wire = {"threadId": "t", "runId": "r", "messages": [{"id": "u", "role": "user", "content": "hi"}]}
    given.write_text(json.dumps({**wire, "tools": [], "context": [], "state": {}, "forwardedProps": {}}))
    with served(team()) as server:
        result = CliRunner().invoke(main, ["view", "--live", f"{server.url}/", "--input", str(given)])
        assert result.exit_code == 0, result.output
        for part in ("✓ parent agent", "✓ alpha  finished  alpha: sub says hello", "✓ beta  finished"):
            assert part in result.output
        again = CliRunner().invoke(main, ["view", "--live", f"{server.url}/", "--input", str(given)])
    assert again.exit_code == 1
    assert "409 Conflict: {" in again.output
    assert "a new run needs a new id" in again.output
    assert "parent agent" not in again.output  # nothing was there to see


def test_a_live_endpoint_that_is_none(tmp_path: Path):
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    for arguments, code, said in (
        (["http://127.0.0.1:9/"], 1, "cannot open http://127.0.0.1:9/"),
        (["http://127.0.0.1:9/", "--input", str(bad)], 2, "is no RunAgentInput: threadId: Field required"),
    ):
        result = CliRunner().invoke(main, ["view", "--live", *arguments])
        assert result.exit_code == code
        assert said in result.output
