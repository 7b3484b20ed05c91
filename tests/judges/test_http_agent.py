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
            [node, str(script), str(Path(CLIENT).resolve()), f"{server.url}/"],
            capture_output=True,
            text=True,
            timeout=60,
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


def test_what_the_client_has_in_the_end(seen: dict[str, Any]):
    """Every message with its owner's name: what was said and thought, each call with its answer."""
    names = {
        event["subagentRunId"]: event["name"]
        for event in seen["events"]
        if event["type"] == "SUBAGENT_STARTED"
    }
    has: dict[str, list[str]] = {}
    for message in seen["messages"]:
        lines = has.setdefault(names.get(message.get("subagentRunId"), "editor"), [])
        if message.get("content"):
            lines.append(f"{message['role']}: {message['content']}")
        for call in message.get("toolCalls", ()):
            lines.append(f"call: {call['function']['name']} {call['function']['arguments']}")
    # Within one owner the order is certain; the answers of the two that work at once stand beneath their calls.
    assert has == {
        "editor": [
            "user: go",
            "assistant: editor: two of us will see to it.",
            'call: ask_researcher {"task": "find out what happened"}',
            'call: ask_publisher {"task": "prepare the story"}',
            "tool: researcher: lightning, in 1911; the keeper's log confirms it.",
            "tool: publisher: it is out.",
            "assistant: editor: the lighthouse was struck by lightning in 1911, and the story is out.",
        ],
        "researcher": [
            "reasoning: Who would know?",
            'call: ask_archivist {"question": "lighthouse, 1911"}',
            "tool: archivist: the log of 1911 says it was struck by lightning.",
            "assistant: researcher: lightning, in 1911; the keeper's log confirms it.",
        ],
        "archivist": ["assistant: archivist: the log of 1911 says it was struck by lightning."],
        "publisher": [
            "assistant: publisher: this one needs a yes.",
            'call: publish {"headline": "Struck by lightning"}',
            "tool: published (approved)",
            "assistant: publisher: it is out.",
        ],
    }


def test_the_approval_is_the_publishers_and_resumes_it(seen: dict[str, Any]):
    [asked] = seen["outcomes"][0]["interrupts"]
    begun = [event for event in seen["events"] if event["type"] == "SUBAGENT_STARTED"]
    ended = [event for event in seen["events"] if event["type"] == "SUBAGENT_FINISHED"]
    publisher = asked["subagentRunId"]
    assert asked["message"] == "May I publish 'Struck by lightning'?"
    assert [event["name"] for event in begun if event["subagentRunId"] == publisher] == ["publisher"] * 2
    assert [event.get("outcome") for event in ended if event["subagentRunId"] == publisher] == [
        {"type": "suspended", "interruptIds": [asked["id"]]},
        None,  # success
    ]
    assert sorted(event["name"] for event in begun) == ["archivist", "publisher", "publisher", "researcher"]
