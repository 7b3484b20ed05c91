"""The official JavaScript client runs the demo team over HTTP, and sees what the ledger sees."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from byline.ledger import Ledger
from byline.validator import Validator
from serving_kit import served

CLIENT = os.environ.get("BYLINE_AGUI_CLIENT", "")
"""A folder with `node_modules/@ag-ui/client`."""


@pytest.fixture(scope="module")
def seen() -> dict[str, Any]:
    node = shutil.which("node")
    if node is None or not CLIENT:
        pytest.skip("needs node, and BYLINE_AGUI_CLIENT: a folder where @ag-ui/client 1.0.0 is installed")
    from byline_langgraph._demo import build

    script = Path(__file__).with_name("http_agent.mjs")
    with served(build()) as server:
        done = subprocess.run(
            [node, str(script), CLIENT, f"{server.url}/"], capture_output=True, text=True, timeout=60
        )
        assert server.tasks() == []
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_runs_end_as_they_should(seen: dict[str, Any]):
    assert [outcome["type"] for outcome in seen["outcomes"]] == ["interrupt", "success"]


def test_the_clients_messages_are_the_ledgers(seen: dict[str, Any]):
    ledger = Ledger.read(seen["events"])
    assert ledger.refusals == ()
    ours = [message for message in ledger.messages if message["id"] != "question"]
    theirs = [message for message in seen["messages"] if message["id"] != "question"]
    assert theirs == ours
    owners = {message.get("subagentRunId") for message in theirs}
    names = {
        event["subagentRunId"]: event["name"]
        for event in seen["events"]
        if event["type"] == "SUBAGENT_STARTED"
    }
    assert sorted(names[owner] for owner in owners if owner is not None) == [
        "archivist",
        "publisher",
        "researcher",
    ]


def test_what_the_client_was_told_is_legal(seen: dict[str, Any]):
    judge = Validator()
    found = [one for event in seen["events"] for one in judge.feed(event)] + list(judge.finish())
    assert [f"{one.rule}: {one.message}" for one in found if one.level == "error"] == []


def test_parallel_subagents_are_not_mixed(seen: dict[str, Any]):
    said = sorted(
        message["content"]
        for message in seen["messages"]
        if message["role"] == "assistant" and message.get("subagentRunId") and message.get("content")
    )
    assert said == [
        "archivist: the log of 1911 says it was struck by lightning.",
        "publisher: it is out.",
        "publisher: this one needs a yes.",
        "researcher: lightning, in 1911; the keeper's log confirms it.",
    ]
