"""Runs apps under attribution and renders whole streams as literal lines.

One line per event, `owner| what`, `-` being the parent agent.  Ids that differ from run to run (ADK's own, all with
a UUID in them) become `m1`, `e1`, `adk1` in the order of their appearance; all others stand as they are.
"""

import json
import re
from collections.abc import AsyncIterator, Iterable
from typing import Any

from byline import attribute
from byline.agent import Run
from byline.events import BaseEvent, RunAgentInput
from byline.validator import Validator
from byline_adk import _compat
from byline_adk.scripted import Say, ScriptedLlm
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps import App
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService

__all__ = [
    "AT_ONCE",
    "SSE",
    "agent",
    "answer",
    "ask",
    "can",
    "collect",
    "judge",
    "llm",
    "run",
    "runner",
    "show",
    "user",
]

can = _compat.can

AT_ONCE = RunConfig(streaming_mode=StreamingMode.NONE)
SSE = RunConfig(streaming_mode=StreamingMode.SSE)

_UUID = re.compile(r"(adk-|e-)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def llm(*script: Say) -> ScriptedLlm:
    return ScriptedLlm(script=list(script), requests=[])


def agent(name: str, *script: Say, **options: Any) -> LlmAgent:
    return LlmAgent(name=name, description=f"does {name}", model=llm(*script), **options)


def runner(root: Any, **services: Any) -> Runner:
    services = {"session_service": InMemorySessionService(), **services}
    app = root if isinstance(root, App) else App(name="team", root_agent=root)
    return Runner(app=app, **services)


def user(text: str, **more: Any) -> RunAgentInput:
    """Return an input with one user message."""
    message = {"id": "u1", "role": "user", "content": text}
    return RunAgentInput.model_validate({"threadId": "t", "runId": "r", "messages": [message], **more})


def answer(*entries: tuple[str, Any], **more: Any) -> RunAgentInput:
    """Return an input that answers interrupts; a payload of `...` abandons one."""
    resume = [
        {"interruptId": id_, "status": "cancelled"}
        if payload is ...
        else {"interruptId": id_, "status": "resolved", "payload": payload}
        for id_, payload in entries
    ]
    return RunAgentInput.model_validate(
        {"threadId": "t", "runId": "r", "messages": [], "resume": resume, **more}
    )


async def collect(run: Run | AsyncIterator[BaseEvent]) -> list[BaseEvent]:
    events = [event async for event in run]
    judge(events)
    return events


def judge(events: Iterable[BaseEvent]) -> None:
    """Hold a stream to the producer profile: no errors; and no fault of ours in it."""
    validator = Validator(profile="producer")
    findings = [finding for event in events for finding in validator.feed(event)]
    findings += validator.finish()
    assert [finding for finding in findings if finding.level == "error"] == []
    assert [event for event in events if getattr(event, "name", None) == "byline.fault"] == []


async def run(target: Any, run_input: RunAgentInput | str, **options: Any) -> list[str]:
    """Run a target once and return its stream, rendered."""
    options.setdefault("clock", None)
    found = attribute(target, **options).run(user(run_input) if isinstance(run_input, str) else run_input)
    return show(await collect(found))


async def ask(target: Any, *turns: Any, **options: Any) -> list[str]:
    """Run a target turn by turn; returns all streams, rendered together."""
    options.setdefault("clock", None)
    attributed = attribute(target, **options)
    events = []
    for turn in turns:
        run_input = user(turn) if isinstance(turn, str) else turn(events) if callable(turn) else turn
        events += await collect(attributed.run(run_input))
    return show(events)


def show(events: Iterable[BaseEvent]) -> list[str]:
    """Render a stream."""
    names = _Names()
    return [names.short(_line(event)) for event in events]


class _Names:
    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def short(self, line: str) -> str:
        return _UUID.sub(self._name, line)

    def _name(self, match: re.Match[str]) -> str:
        kind = {"adk-": "adk", "e-": "e", None: "m"}[match[1]]
        if match[0] not in self._known:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._known[match[0]] = f"{kind}{self._counts[kind]}"
        return self._known[match[0]]


def _line(event: Any) -> str:
    kind = event.type.value
    owner = getattr(event, "subagent_run_id", None) or "-"
    if kind.startswith("SUBAGENT_"):
        return f"{_LIFECYCLE[kind](event)}"
    return f"{owner}| {_REST[kind](event)}"


def _started(event: Any) -> str:
    mode = ((event.metadata or {}).get("byline") or {}).get("mode")
    parent = event.parent_subagent_run_id or "-"
    call = event.parent_tool_call_id or "no call"
    return f"{parent}| + {event.subagent_run_id} {event.name} ({mode}) by {call}"


def _finished(event: Any) -> str:
    outcome = event.outcome
    if outcome is not None and outcome.type == "suspended":
        asked = " ".join(outcome.interrupt_ids or ())
        return f"{event.subagent_run_id}| ~ {asked}".rstrip()
    said = "" if event.result is None else f" {json.dumps(event.result)}"
    return f"{event.subagent_run_id}| .{said}"


def _error(event: Any) -> str:
    return f"{event.subagent_run_id}| ! {event.code}: {event.message}"


_LIFECYCLE = {"SUBAGENT_STARTED": _started, "SUBAGENT_FINISHED": _finished, "SUBAGENT_ERROR": _error}


def _run_finished(event: Any) -> str:
    said = "" if event.result is None else f" {json.dumps(event.result)}"
    outcome = event.outcome
    if outcome.type == "interrupt":
        asked = "; ".join(_interrupt(one) for one in outcome.interrupts)
        return f"RUN ASKS{said} {asked}"
    pending = getattr(outcome, "pending_tool_call_ids", None)
    waiting = f" pending {' '.join(pending)}" if pending else ""
    return f"RUN {outcome.type.upper()}{said}{waiting}"


def _interrupt(one: Any) -> str:
    parts = [one.subagent_run_id or "-", one.reason, one.id]
    parts += [f"call={one.tool_call_id}"] if one.tool_call_id else []
    parts += [repr(one.message)] if one.message else []
    parts += [json.dumps(one.response_schema)] if one.response_schema else []
    parts += [json.dumps(one.metadata)] if one.metadata else []
    return " ".join(parts)


_REST = {
    "RUN_STARTED": lambda e: "RUN",
    "RUN_FINISHED": _run_finished,
    "RUN_ERROR": lambda e: f"RUN ERROR {e.code}: {e.message}",
    "TEXT_MESSAGE_START": lambda e: f"says {e.message_id}",
    "TEXT_MESSAGE_CONTENT": lambda e: f"{e.message_id} {e.delta!r}",
    "TEXT_MESSAGE_END": lambda e: f"said {e.message_id}",
    "REASONING_START": lambda e: f"thinks {e.message_id}",
    "REASONING_MESSAGE_START": lambda e: f"thought {e.message_id}",
    "REASONING_MESSAGE_CONTENT": lambda e: f"{e.message_id} {e.delta!r}",
    "REASONING_MESSAGE_END": lambda e: f"thought {e.message_id} over",
    "REASONING_END": lambda e: f"thinks {e.message_id} over",
    "TOOL_CALL_START": lambda e: f"calls {e.tool_call_id} {e.tool_call_name} in {e.parent_message_id}",
    "TOOL_CALL_ARGS": lambda e: f"{e.tool_call_id} {e.delta}",
    "TOOL_CALL_END": lambda e: f"called {e.tool_call_id}",
    "TOOL_CALL_RESULT": lambda e: f"{e.tool_call_id} -> {e.content!r}",
    "STATE_SNAPSHOT": lambda e: f"state {json.dumps(e.snapshot)}",
    "STATE_DELTA": lambda e: "patch " + json.dumps([op.model_dump(exclude_none=True) for op in e.delta]),
    "ACTIVITY_SNAPSHOT": lambda e: f"shows {e.message_id} {e.activity_type} {json.dumps(e.content)}",
    "CUSTOM": lambda e: f"custom {e.name} {json.dumps(e.value)}",
}
