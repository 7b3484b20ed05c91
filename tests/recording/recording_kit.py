"""Reads a recording back as short literal lines: what a line leaves out is times and ids that a run makes up."""

import gzip
import json
from pathlib import Path
from typing import Any

from byline.validator import Validator

KEYS = {
    "RUN_STARTED": ("threadId",),
    "RUN_FINISHED": (),
    "RUN_ERROR": ("code", "message"),
    "TEXT_MESSAGE_CONTENT": ("delta",),
    "TOOL_CALL_START": ("toolCallId", "toolCallName"),
    "TOOL_CALL_ARGS": ("delta",),
    "TOOL_CALL_RESULT": ("toolCallId", "content"),
    "SUBAGENT_STARTED": ("name", "parentToolCallId"),
    "SUBAGENT_FINISHED": ("result",),
    "SUBAGENT_ERROR": ("code", "message"),
    "STATE_SNAPSHOT": ("snapshot",),
    "CUSTOM": ("name", "value"),
    "RAW": ("source",),
}
QUIET = {"STEP_STARTED", "STEP_FINISHED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_END", "TOOL_CALL_END"}


def events(path: Path) -> list[dict[str, Any]]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as file:
        return [json.loads(line) for line in file if line.strip()]


def told(recorded: list[dict[str, Any]]) -> list[str]:
    """One line per event that says something: owner, type, what it says."""
    names: dict[str, str] = {}
    lines = []
    for event in recorded:
        if event["type"] == "SUBAGENT_STARTED":
            names[event["subagentRunId"]] = event["name"]
        if event["type"] in QUIET:
            continue
        owner = names[event["subagentRunId"]] if "subagentRunId" in event else "-"
        said = [str(event[key]) for key in KEYS[event["type"]] if key in event]
        if outcome := event.get("outcome"):
            said.append(outcome["type"])
        lines.append(" ".join([owner, event["type"], *said]))
    return lines


def joined(recorded: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The recording with the pieces of one text, or of one call's arguments, put together."""
    out: list[dict[str, Any]] = []
    for event in recorded:
        same = out and all(
            event.get(key) == out[-1].get(key) for key in ("type", "messageId", "toolCallId", "subagentRunId")
        )
        if same and "delta" in event:
            out[-1] = {**out[-1], "delta": out[-1]["delta"] + event["delta"]}
        else:
            out.append(event)
    return out


def faults(recorded: list[dict[str, Any]]) -> list[str]:
    """What the validator says against a recording: run by run, because a file may hold several threads."""
    found: list[str] = []
    judges: dict[str, Validator] = {}
    judge = Validator()
    for event in recorded:
        if event["type"] == "RUN_STARTED":
            judge = judges.setdefault(event["threadId"], Validator())
        found += [f"{one.rule}: {one.message}" for one in judge.feed(event) if one.level == "error"]
    for judge in judges.values():
        found += [f"{one.rule}: {one.message}" for one in judge.finish() if one.level == "error"]
    return found
