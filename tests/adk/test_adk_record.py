"""`byline.record(sink, runner)`: an ADK app that is called as ever."""

import asyncio
import queue
from typing import Any

import pytest
from adk_kit import agent, judge, runner, show
from byline import record
from byline.errors import NoAdapterError
from byline_adk.scripted import Say
from google.genai import types

pytestmark = pytest.mark.anyio


def root() -> Any:
    child = agent("a", Say("child words"), mode="single_turn")
    return agent("root", Say(calls=[("c1", "a", {"request": "x"})]), Say("done"), sub_agents=[child])


async def call(target: Any, session: str) -> list[str]:
    content = types.Content(role="user", parts=[types.Part(text="hi")])
    await target.session_service.create_session(app_name=target.app_name, user_id="u", session_id=session)
    said = []
    async for event in target.run_async(user_id="u", session_id=session, new_message=content):
        said += [part.text for part in (event.content.parts if event.content else ()) if part.text]
    return said


def runs(taken: "queue.Queue[Any]") -> list[list[Any]]:
    found: list[list[Any]] = []
    while not taken.empty():
        event = taken.get()
        if event.type.value == "RUN_STARTED":
            found.append([])
        found[-1].append(event)
    return found


async def test_runs_of_a_runner_are_recorded_one_after_the_other():
    target = runner(root())
    before = list(target.plugin_manager.plugins)
    taken: queue.Queue[Any] = queue.Queue()
    unrecorded = await call(target, "s0")
    async with record(taken, target, clock=None):
        results = await asyncio.gather(call(target, "s1"), call(target, "s2"))
    assert target.plugin_manager.plugins == before
    assert await call(target, "s3") == unrecorded
    assert results == [unrecorded, unrecorded]
    found = runs(taken)
    assert sorted(events[0].thread_id for events in found) == ["s1", "s2"]
    for events in found:
        judge(events)
        lines = show(events)
        assert [line for line in lines if "'" in line and "->" not in line] == [
            "c1| m2 'child words'",
            "-| m3 'done'",
        ]
        assert lines[-1] == "-| RUN SUCCESS"


async def test_an_agent_alone_runs_nothing():
    with pytest.raises(NoAdapterError, match=r"for ADK give the runner"), record([].append, root()):
        pass
