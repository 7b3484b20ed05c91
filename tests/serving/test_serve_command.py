"""`byline serve` as a process: what goes wrong is said, and a signal ends every stream legally."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from byline.cli import main
from click.testing import CliRunner
from serving_kit import Stream, asked, client, frames, run

SHOP = """
from byline import attribute
from serving_kit import team

shop = team()
slow = team(pause=0.3)
attributed = attribute(team(), visibility="inline")
number = 7

def factory():
    return team()

def broken():
    raise ValueError("no key")

def ends():
    raise SystemExit("bye")

async def later():
    return team()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "shop_app.py").write_text(SHOP)
    (tmp_path / "shop_bad.py").write_text("import not_there_at_all\n")
    (tmp_path / "shop_syntax.py").write_text("def (\n")
    (tmp_path / "shop_ends.py").write_text("raise SystemExit(3)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    for name in ("shop_app", "shop_bad", "shop_syntax", "shop_ends"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("target", "code", "said"),
    [
        ("shop_app", 2, "'shop_app' names no target: expected MODULE:TARGET"),
        ("nowhere:app", 1, "there is no module 'nowhere': run this in the folder that holds it"),
        ("shop_bad:app", 1, "module 'shop_bad' cannot be imported: it needs 'not_there_at_all'"),
        ("shop_syntax:app", 1, "module 'shop_syntax' cannot be imported: SyntaxError"),
        ("shop_app:nothing", 1, "module 'shop_app' has no 'nothing'"),
        ("shop_app:broken()", 1, "shop_app:broken() failed: ValueError: no key"),
        ("shop_app:number", 1, "no adapter takes builtins.int"),
        ("shop_app.py:shop", 2, "'shop_app.py:shop' names a file: expected a module, shop_app:shop say"),
        ("./shop/agents.py:shop", 2, "names a file: expected a module, shop.agents:shop say"),
        ("shop_ends:app", 1, "module 'shop_ends' cannot be imported: SystemExit: 3"),
        ("shop_app:ends()", 1, "shop_app:ends() failed: SystemExit: bye"),
        ("shop_app:later()", 1, "shop_app:later() is an async function: expected one that returns the app"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_target_that_cannot_be_served(target: str, code: int, said: str):
    result = CliRunner().invoke(main, ["serve", target])
    assert result.exit_code == code
    assert said in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--grace", "nan"], "grace is nan, expected a number from 0"),
        (["--grace", "inf"], "grace is inf, expected a number from 0"),
        (["--cors", "localhost:3000"], "'localhost:3000' is no origin: expected scheme and host"),
        (["--cors", "http://localhost:3000/"], "'http://localhost:3000/' is no origin"),
        (["--path", "agent"], "path is 'agent', expected one that begins with /"),
        (["--store", "mysql://x"], "a store on 'mysql' is not supported"),
        (
            ["--store", "sqlite:////nowhere/at/all.db"],
            "sqlite:////nowhere/at/all.db cannot be used: unable to",
        ),
    ],
)
@pytest.mark.usefixtures("folder")
def test_an_option_that_cannot_be(options: list[str], said: str):
    result = CliRunner().invoke(main, ["serve", "shop_app:shop", *options])
    assert result.exit_code == 1
    assert said in result.output
    assert "Traceback" not in result.output


@pytest.mark.usefixtures("folder")
def test_a_port_in_use():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = CliRunner().invoke(main, ["serve", "shop_app:shop", "--port", str(port)])
    assert result.exit_code == 1
    assert f"cannot listen on 127.0.0.1 port {port}: Address already in use; choose another" in result.output


def start(folder: Path, target: str, *options: str) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "byline.cli", "serve", target, "--port", "0", *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.fullmatch(rf"serving {re.escape(target)} at (http://127\.0\.0\.1:\d+)/ .*\n", line)
    assert found is not None, line + (process.stderr.read() if process.stderr and not line else "")
    return process, found[1]


def stop(process: subprocess.Popen[str]) -> tuple[int, str]:
    process.terminate()
    _out, err = process.communicate(timeout=20)
    return process.returncode, err


@pytest.mark.parametrize("target", ["shop_app:factory()", "shop_app:attributed"])
def test_a_process_serves_runs(folder: Path, target: str):
    async def go(url: str) -> Any:
        async with client(url) as http:
            return await run(http, asked("t"))

    process, url = start(folder, target)
    try:
        stream = asyncio.run(go(url))
    finally:
        _code, err = stop(process)
    assert stream.types[-1] == "RUN_FINISHED"
    assert ("SUBAGENT_STARTED" in stream.types) == (target != "shop_app:attributed")
    assert err == ""


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_every_stream_legally(folder: Path, sent: signal.Signals):
    async def go(url: str, process: subprocess.Popen[str]) -> list[Stream]:
        async def one(http: httpx.AsyncClient, thread: str) -> Stream:
            stream = Stream(200, httpx.Headers())
            async with http.stream("POST", "/", json=asked(thread)) as response:
                async for _ in frames(response, stream):
                    if len(stream.events) == 6:
                        ready.append(thread)
                        if len(ready) == 5:
                            process.send_signal(sent)
            return stream

        ready: list[str] = []
        async with client(url) as http:
            return await asyncio.gather(*(one(http, f"t{number}") for number in range(5)))

    process, url = start(folder, "shop_app:slow")
    try:
        streams = asyncio.run(go(url, process))
        _out, err = process.communicate(timeout=20)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, err) == (0 if sent == signal.SIGINT else -sent, "")
    assert [stream.events[-1]["outcome"] for stream in streams] == [{"type": "cancelled"}] * 5
    assert [stream.faults() for stream in streams] == [[]] * 5
