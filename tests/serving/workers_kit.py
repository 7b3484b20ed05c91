"""Real workers: `byline serve` processes on one store, and an app that writes down what it really ran."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

APP = """
import os
import time
from langchain.agents import create_agent
from langchain_core.tools import tool
from serving_kit import ScriptedModel, Say

@tool
async def begin(name: str) -> str:
    "Say in a file that a run has begun."
    with open("began.txt", "a") as file:
        file.write(f"{os.getpid()}\\n")
    return "begun"

def app(words, pause):
    script = [Say(calls=[("b1", "begin", {"name": "x"})]), Say(words, pause=pause)]
    return create_agent(ScriptedModel(script=script, requests=[]), [begin], name="main")

quick = app("one two three", 0.05)
slow = app(" ".join(f"word{number}" for number in range(60)), 0.1)
endless = app(" ".join(f"word{number}" for number in range(3000)), 0.1)
"""

SERVE = [sys.executable, "-m", "byline.cli", "serve"]


class Worker:
    def __init__(self, process: "subprocess.Popen[str]", url: str, errors: Path) -> None:
        self.process = process
        self.url = url
        self._errors = errors

    def kill(self) -> None:
        """End it as a host that loses power does."""
        self.process.kill()
        self.process.wait(10)

    def errors(self) -> str:
        return self._errors.read_text()


def launch(folder: Path, target: str, store: str, name: str, *options: str) -> Worker:
    errors = folder / f"{name}.err"
    with errors.open("w") as file:
        process = subprocess.Popen(
            [*SERVE, f"workers_app:{target}", "--port", "0", "--store", store, *options],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
            bufsize=1,
        )
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.search(r"http://127\.0\.0\.1:\d+", line)
    assert found is not None, line + errors.read_text()
    return Worker(process, found[0], errors)


@contextmanager
def workers(folder: Path, target: str, store: str, count: int = 2, *options: str) -> Iterator[list[Worker]]:
    (folder / "workers_app.py").write_text(APP)
    started: list[Worker] = []
    try:
        started += [launch(folder, target, store, f"worker{number}", *options) for number in range(count)]
        yield started
    finally:
        for worker in started:
            worker.process.terminate()
        for worker in started:
            worker.process.communicate(timeout=20)


def began(folder: Path) -> int:
    """How many runs have really been under way, over all workers."""
    return len((folder / "began.txt").read_text().splitlines())
