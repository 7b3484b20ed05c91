"""The example of docs/conformance-suite.md, as a stranger runs it."""

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import byline
import pytest

DOCS = Path(__file__).parents[2] / "docs" / "conformance-suite.md"
FILES = ("crew.py", "crew_byline.py", "crew_host.py")


@pytest.fixture
def example(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    for name, block in zip(FILES, blocks, strict=True):
        (tmp_path / name).write_text(block, encoding="utf-8")
    return tmp_path


def suite(place, *options):
    installed = any(one.value == "byline.pytest_plugin" for one in entry_points(group="pytest11"))
    given = [] if installed else ["-p", "byline.pytest_plugin"]
    path = os.pathsep.join(
        [str(place), str(Path(byline.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--pyargs",
        "byline.testing",
        *given,
        *options,
        "-p",
        "no:cacheprovider",
    ]
    return subprocess.run(
        [*command, "-q", "-rfEx", "-W", "error"],
        cwd=place,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_the_framework_has_sixty_lines(example):
    lines = [line for line in (example / "crew.py").read_text().splitlines() if line.strip()]
    assert 50 <= len(lines) <= 70


def test_the_example_is_right(example):
    done = suite(example, "--byline-host", "crew_host:Host", "--byline-report", "report.json")
    assert done.returncode == 0, done.stdout + done.stderr
    # One test more passes where the JavaScript client is installed.
    assert re.search(r"(33 passed, 1 skipped|34 passed), 3 xfailed", done.stdout), done.stdout
    assert (example / "report.json").is_file()


def test_an_adapter_that_credits_the_wrong_agent_is_found(example):
    """Every stream of it is legal."""
    file = example / "crew_byline.py"
    text = file.read_text()
    assert text.count("yield s.Text(owner, str(turn), piece)") == 1
    # What several say at once becomes the parent's.
    file.write_text(
        text.replace("yield s.Text(owner, str(turn), piece)", "yield s.Text(None, str(turn), piece)")
    )
    done = suite(example, "--byline-host", "crew_host:Host", "-k", "two-in-parallel")
    assert done.returncode == 1
    assert "- says 'alpha says one two three four'" in done.stdout
    assert "+ says 'alpha says one two three four'" in done.stdout
    assert "the law" not in done.stdout


def test_a_declaration_that_shows_nothing_fails(example):
    file = example / "crew_host.py"
    text = file.read_text()
    assert text.count("    reproduce=begins_again,\n") == 1
    file.write_text(text.replace("    reproduce=begins_again,\n", ""))
    done = suite(example, "--byline-host", "crew_host:Host", "-k", "reproduced and deep")
    assert done.returncode == 1
    assert "approval-two-deep is declared, and `reproduce` does not show it without byline" in done.stdout


def test_a_host_that_is_not_there(example):
    done = suite(example, "--byline-host", "crew_host:Nobody")
    assert done.returncode != 0
    assert "host 'crew_host:Nobody' cannot be found" in done.stdout + done.stderr
