"""Plugins that say what of an ADK app is a subagent."""

import pytest
from adk_kit import AT_ONCE, agent, ask, can, run, runner
from byline import hookimpl
from byline_adk.scripted import Say
from google.adk.agents import SequentialAgent
from google.adk.tools import AgentTool
from google.adk.workflow import START, Workflow

pytestmark = pytest.mark.anyio


class Helpers:
    """Says which agents are no subagents, and keeps what it was asked."""

    def __init__(self, *helpers):
        self.helpers = helpers
        self.asked = []

    @hookimpl
    def byline_is_subagent(self, candidate):
        known = (candidate.framework, candidate.name, candidate.node, candidate.tool, candidate.parent)
        self.asked.append(known)
        return False if candidate.name in self.helpers else None


async def test_what_a_transparent_agent_does_is_its_callers():
    leaf = agent("leaf", Say("leaf says"), mode="single_turn")
    mid = agent(
        "mid",
        Say("mid asks", calls=[("m1", "leaf", {"request": "x"})]),
        Say("mid says"),
        mode="single_turn",
        sub_agents=[leaf],
    )
    root = agent("root", Say(calls=[("c1", "mid", {"request": "x"})]), Say("done"), sub_agents=[mid])
    hook = Helpers("mid")
    assert await run(runner(root), "hi", run_config=AT_ONCE, plugins=[hook]) == [
        "-| RUN",
        "-| calls c1 mid in m1",
        '-| c1 {"request": "x"}',
        "-| called c1",
        "-| says m2",
        "-| m2 'mid asks'",
        "-| said m2",
        "-| calls m1 leaf in m2",
        '-| m1 {"request": "x"}',
        "-| called m1",
        "-| + m1 leaf (single_turn) by m1",
        "m1| says m3",
        "m1| m3 'leaf says'",
        "m1| said m3",
        "m1| .",
        "-| m1 -> 'leaf says'",
        "-| says m4",
        "-| m4 'mid says'",
        "-| said m4",
        "-| c1 -> 'mid says'",
        "-| says m5",
        "-| m5 'done'",
        "-| said m5",
        "-| RUN SUCCESS",
    ]
    assert hook.asked == [("adk", "mid", None, "mid", None), ("adk", "leaf", None, "leaf", None)]


async def test_each_is_asked_about_once():
    """A coordinator begins again after each delegation, and streams: it is asked about when it is announced."""
    inner = agent("inner", Say("inner says one two three"))
    steps = SequentialAgent(name="steps", sub_agents=[agent("a", Say("A says")), agent("b", Say("B says"))])
    flow = Workflow(
        name="flow",
        edges=[
            (
                START,
                agent(
                    "first",
                    Say(calls=[("c1", "inner", {"request": "x"})]),
                    Say("so"),
                    tools=[AgentTool(inner)],
                ),
                steps,
            )
        ],
    )
    hook = Helpers("steps")
    await run(runner(flow), "hi", plugins=[hook])
    assert hook.asked == [
        ("adk", "first", "first", None, None),
        ("adk", "inner", None, "inner", "first"),
        ("adk", "steps", "steps" if can("node_path") else None, None, None),
        ("adk", "a", None, None, None),
        ("adk", "b", None, None, None),
    ]


async def test_a_transparent_agent_that_keeps_control():
    """The next words go to it, and what it answers is the parent agent's."""
    helper = agent("helper", Say("helper here"), Say("still here"))
    root = agent(
        "root", Say(calls=[("t1", "transfer_to_agent", {"agent_name": "helper"})]), sub_agents=[helper]
    )
    seen = await ask(runner(root), "hi", "and?", run_config=AT_ONCE, plugins=[Helpers("helper")])
    assert seen == [
        "-| RUN",
        "-| calls t1 transfer_to_agent in m1",
        '-| t1 {"agent_name": "helper"}',
        "-| called t1",
        "-| t1 -> 'transferred to helper'",
        "-| says m2",
        "-| m2 'helper here'",
        "-| said m2",
        "-| RUN SUCCESS",
        "-| RUN",
        "-| says m3",
        "-| m3 'still here'",
        "-| said m3",
        "-| RUN SUCCESS",
    ]
