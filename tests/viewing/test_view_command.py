"""`byline view` as a user calls it."""

import gzip
import json
from pathlib import Path

import pytest
from byline.cli import main
from click.testing import CliRunner
from test_page_model import RUN_1


def recording(path: Path) -> Path:
    text = "".join(json.dumps(event) + "\n" for event in RUN_1).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@pytest.mark.parametrize(("name", "page"), [("run.jsonl", "run.html"), ("a.b.jsonl.gz", "a.b.html")])
def test_the_page_gets_the_name_of_the_recording(tmp_path: Path, monkeypatch, name: str, page: str):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["view", str(recording(tmp_path / name))])
    assert (result.exit_code, result.output) == (0, f"{page}\n")
    assert f"<title>byline: {name}</title>" in (tmp_path / page).read_text()


def test_standard_input_to_standard_output():
    text = "".join(json.dumps(event) + "\n" for event in RUN_1)
    result = CliRunner().invoke(main, ["view", "-", "-o", "-"], input=text)
    assert result.exit_code == 0
    assert result.output.startswith("<!doctype html>")


def test_open_hands_the_page_to_a_browser(tmp_path: Path, monkeypatch):
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda uri: opened.append(uri) or True)
    result = CliRunner().invoke(main, ["view", str(recording(tmp_path / "run.jsonl")), "--open"])
    assert result.exit_code == 0
    assert opened[0].startswith("file:///")
    assert opened[0].endswith("/run.html")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "give the recording to show, - for standard input, or --live URL"),
        (["missing.jsonl"], 1, "cannot open missing.jsonl: No such file or directory"),
        (["run.jsonl", "-o", "/nowhere/x.html"], 1, "cannot write /nowhere/x.html: No such file"),
        (["run.jsonl", "--live", "http://x"], 2, "--live follows an endpoint in the terminal"),
        (["--live", "ftp://x"], 2, "--live 'ftp://x' is no address"),
        (["binary"], 1, "the input is binary"),
    ],
)
def test_what_goes_wrong_is_said(tmp_path: Path, monkeypatch, arguments: list[str], code: int, said: str):
    monkeypatch.chdir(tmp_path)
    recording(tmp_path / "run.jsonl")
    (tmp_path / "binary").write_bytes(b"\x00\x01\x02" * 20)
    result = CliRunner().invoke(main, ["view", *arguments])
    assert result.exit_code == code
    assert said in result.output
    assert "Traceback" not in result.output


def test_a_half_written_recording_is_shown(tmp_path: Path):
    whole = gzip.compress("".join(json.dumps(event) + "\n" for event in RUN_1 * 200).encode())
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes(whole[: len(whole) // 2])
    result = CliRunner().invoke(main, ["view", str(path), "-o", "-"])
    assert result.exit_code == 0
    assert "the gzip data breaks off or is damaged after line" in result.output
