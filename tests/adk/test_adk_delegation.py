"""Who did what, for every way in which an LlmAgent delegates."""

from collections import Counter

import pytest
from adk_kit import AT_ONCE, agent, ask, can, run, runner
from byline_adk.scripted import Say, ScriptedLlm
from google.adk.tools import AgentTool, FunctionTool
from pydantic import BaseModel

pytestmark = pytest.mark.anyio


def look(q: str) -> str:
    """Look it up."""
    return f"seen {q}"


def transfer(id_, name):
    return Say(calls=[(id_, "transfer_to_agent", {"agent_name": name})])


def finish(id_, **result):
    return Say(calls=[(id_, "finish_task", result or {"result": "booked"})])


def team():
    """Two single_turn agents; the coordinator calls one, the other, and the first again in one answer."""
    calls = [
        ("c1", "a", {"request": "one"}),
        ("c2", "b", {"request": "two"}),
        ("c3", "a", {"request": "three"}),
    ]
    return agent(
        "root",
        Say(calls=calls),
        Say("done"),
        sub_agents=[
            agent("a", Say("A says"), mode="single_turn"),
            agent("b", Say("B says"), mode="single_turn"),
        ],
    )


async def test_one_single_turn():
    child = agent("a", Say("A says"), mode="single_turn")
    root = agent(
        "root", Say("let me ask", calls=[("c1", "a", {"request": "one"})]), Say("done"), sub_agents=[child]
    )
    assert await run(runner(root), "hi") == [
        "-| RUN",
        "-| says m1",
        "-| m1 'let '",
        "-| m1 'me '",
        "-| m1 'ask'",
        "-| said m1",
        "-| calls c1 a in m1",
        '-| c1 {"request": "one"}',
        "-| called c1",
        "-| + c1 a (single_turn) by c1",
        "c1| says m2",
        "c1| m2 'A '",
        "c1| m2 'says'",
        "c1| said m2",
        "c1| .",
        "-| c1 -> 'A says'",
        "-| says m3",
        "-| m3 'done'",
        "-| said m3",
        "-| RUN SUCCESS",
    ]


async def test_parallel_and_the_same_agent_twice():
    assert await run(runner(team()), "hi", run_config=AT_ONCE) == [
        "-| RUN",
        "-| calls c1 a in m1",
        '-| c1 {"request": "one"}',
        "-| calls c2 b in m1",
        '-| c2 {"request": "two"}',
        "-| calls c3 a in m1",
        '-| c3 {"request": "three"}',
        "-| called c1",
        "-| called c2",
        "-| called c3",
        "-| + c1 a (single_turn) by c1",
        "-| + c2 b (single_turn) by c2",
        "-| + c3 a (single_turn) by c3",
        "c1| says m2",
        "c1| m2 'A says'",
        "c1| said m2",
        "c2| says m3",
        "c2| m3 'B says'",
        "c2| said m3",
        "c1| .",
        "c3| says m4",
        "c3| m4 'A says'",
        "c3| said m4",
        "c2| .",
        "c3| .",
        "-| c1 -> 'A says'",
        "-| c2 -> 'B says'",
        "-| c3 -> 'A says'",
        "-| says m5",
        "-| m5 'done'",
        "-| said m5",
        "-| RUN SUCCESS",
    ]


async def test_parallel_streams_do_not_mix():
    assert await run(runner(team()), "hi") == [
        "-| RUN",
        "-| calls c1 a in m1",
        '-| c1 {"request": "one"}',
        "-| calls c2 b in m1",
        '-| c2 {"request": "two"}',
        "-| calls c3 a in m1",
        '-| c3 {"request": "three"}',
        "-| called c1",
        "-| called c2",
        "-| called c3",
        "-| + c1 a (single_turn) by c1",
        "-| + c2 b (single_turn) by c2",
        "-| + c3 a (single_turn) by c3",
        "c1| says m2",
        "c1| m2 'A '",
        "c2| says m3",
        "c2| m3 'B '",
        "c3| says m4",
        "c3| m4 'A '",
        "c1| m2 'says'",
        "c1| said m2",
        "c2| m3 'says'",
        "c2| said m3",
        "c1| .",
        "c3| m4 'says'",
        "c3| said m4",
        "c2| .",
        "c3| .",
        "-| c1 -> 'A says'",
        "-| c2 -> 'B says'",
        "-| c3 -> 'A says'",
        "-| says m5",
        "-| m5 'done'",
        "-| said m5",
        "-| RUN SUCCESS",
    ]


async def test_nested_single_turn():
    leaf = agent("leaf", Say("deep"), mode="single_turn")
    mid = agent(
        "mid",
        Say(calls=[("m1", "leaf", {"request": "x"})]),
        Say("mid done"),
        mode="single_turn",
        sub_agents=[leaf],
    )
    root = agent("root", Say(calls=[("c1", "mid", {"request": "one"})]), Say("done"), sub_agents=[mid])
    assert await run(runner(root), "hi") == [
        "-| RUN",
        "-| calls c1 mid in m1",
        '-| c1 {"request": "one"}',
        "-| called c1",
        "-| + c1 mid (single_turn) by c1",
        "c1| calls m1 leaf in m2",
        'c1| m1 {"request": "x"}',
        "c1| called m1",
        "c1| + m1 leaf (single_turn) by m1",
        "m1| says m3",
        "m1| m3 'deep'",
        "m1| said m3",
        "m1| .",
        "c1| m1 -> 'deep'",
        "c1| says m4",
        "c1| m4 'mid '",
        "c1| m4 'done'",
        "c1| said m4",
        "c1| .",
        "-| c1 -> 'mid done'",
        "-| says m5",
        "-| m5 'done'",
        "-| said m5",
        "-| RUN SUCCESS",
    ]


async def test_names_that_begin_alike():
    one, ten = (agent(name, Say(f"I am {name}"), mode="single_turn") for name in ("agent_1", "agent_10"))
    calls = [("c1", "agent_10", {"request": "x"}), ("c10", "agent_1", {"request": "x"})]
    root = agent("root", Say(calls=calls), Say("done"), sub_agents=[one, ten])
    assert await run(runner(root), "hi", run_config=AT_ONCE) == [
        "-| RUN",
        "-| calls c1 agent_10 in m1",
        '-| c1 {"request": "x"}',
        "-| calls c10 agent_1 in m1",
        '-| c10 {"request": "x"}',
        "-| called c1",
        "-| called c10",
        "-| + c1 agent_10 (single_turn) by c1",
        "-| + c10 agent_1 (single_turn) by c10",
        "c1| says m2",
        "c1| m2 'I am agent_10'",
        "c1| said m2",
        "c10| says m3",
        "c10| m3 'I am agent_1'",
        "c10| said m3",
        "c1| .",
        "c10| .",
        "-| c1 -> 'I am agent_10'",
        "-| c10 -> 'I am agent_1'",
        "-| says m4",
        "-| m4 'done'",
        "-| said m4",
        "-| RUN SUCCESS",
    ]


async def test_ids_made_by_adk():
    child = agent("a", Say("A says"), mode="single_turn")
    calls = [(None, "a", {"request": "one"}), (None, "a", {"request": "two"})]
    root = agent("root", Say(calls=calls), Say("done"), sub_agents=[child])
    assert await run(runner(root), "hi", run_config=AT_ONCE) == [
        "-| RUN",
        "-| calls adk1 a in m1",
        '-| adk1 {"request": "one"}',
        "-| calls adk2 a in m1",
        '-| adk2 {"request": "two"}',
        "-| called adk1",
        "-| called adk2",
        "-| + adk1 a (single_turn) by adk1",
        "-| + adk2 a (single_turn) by adk2",
        "adk1| says m2",
        "adk1| m2 'A says'",
        "adk1| said m2",
        "adk2| says m3",
        "adk2| m3 'A says'",
        "adk2| said m3",
        "adk1| .",
        "adk2| .",
        "-| adk1 -> 'A says'",
        "-| adk2 -> 'A says'",
        "-| says m4",
        "-| m4 'done'",
        "-| said m4",
        "-| RUN SUCCESS",
    ]


async def test_ids_that_hold_every_separator():
    leaf = agent("leaf", Say("deep"), mode="single_turn")
    mid = agent(
        "mid",
        Say(calls=[("toolu-01/x.mid@c", "leaf", {"request": "x"})]),
        Say("mid done"),
        mode="single_turn",
        sub_agents=[leaf],
    )
    root = agent(
        "root", Say(calls=[("call_abc.1/mid@1", "mid", {"request": "one"})]), Say("done"), sub_agents=[mid]
    )
    assert await run(runner(root), "hi", run_config=AT_ONCE) == [
        "-| RUN",
        "-| calls call_abc.1/mid@1 mid in m1",
        '-| call_abc.1/mid@1 {"request": "one"}',
        "-| called call_abc.1/mid@1",
        "-| + call_abc.1/mid@1 mid (single_turn) by call_abc.1/mid@1",
        "call_abc.1/mid@1| calls toolu-01/x.mid@c leaf in m2",
        'call_abc.1/mid@1| toolu-01/x.mid@c {"request": "x"}',
        "call_abc.1/mid@1| called toolu-01/x.mid@c",
        "call_abc.1/mid@1| + toolu-01/x.mid@c leaf (single_turn) by toolu-01/x.mid@c",
        "toolu-01/x.mid@c| says m3",
        "toolu-01/x.mid@c| m3 'deep'",
        "toolu-01/x.mid@c| said m3",
        "toolu-01/x.mid@c| .",
        "call_abc.1/mid@1| toolu-01/x.mid@c -> 'deep'",
        "call_abc.1/mid@1| says m4",
        "call_abc.1/mid@1| m4 'mid done'",
        "call_abc.1/mid@1| said m4",
        "call_abc.1/mid@1| .",
        "-| call_abc.1/mid@1 -> 'mid done'",
        "-| says m5",
        "-| m5 'done'",
        "-| said m5",
        "-| RUN SUCCESS",
    ]


async def test_a_provider_that_uses_its_call_ids_again():
    """The second call has the id of the first, in the same run and in the next."""
    child = agent("a", Say("A says"), mode="single_turn")
    again = Say(calls=[("call_0", "a", {"request": "x"})])
    turns = iter([again, again, Say("done"), again, Say("fine")])
    root = agent("root", sub_agents=[child])
    root.model = ScriptedLlm(script=lambda _request: next(turns), requests=[])
    assert await ask(runner(root), "hi", "more", run_config=AT_ONCE) == [
        "-| RUN",
        "-| calls call_0 a in m1",
        '-| call_0 {"request": "x"}',
        "-| called call_0",
        "-| + call_0 a (single_turn) by call_0",
        "call_0| says m2",
        "call_0| m2 'A says'",
        "call_0| said m2",
        "call_0| .",
        "-| call_0 -> 'A says'",
        "-| calls call_0#2 a in m3",
        '-| call_0#2 {"request": "x"}',
        "-| called call_0#2",
        "-| + call_0#2 a (single_turn) by call_0#2",
        "call_0#2| says m4",
        "call_0#2| m4 'A says'",
        "call_0#2| said m4",
        "call_0#2| .",
        "-| call_0#2 -> 'A says'",
        "-| says m5",
        "-| m5 'done'",
        "-| said m5",
        "-| RUN SUCCESS",
        "-| RUN",
        "-| calls call_0#3 a in m6",
        '-| call_0#3 {"request": "x"}',
        "-| called call_0#3",
        "-| + call_0#3 a (single_turn) by call_0#3",
        "call_0#3| says m7",
        "call_0#3| m7 'A says'",
        "call_0#3| said m7",
        "call_0#3| .",
        "-| call_0#3 -> 'A says'",
        "-| says m8",
        "-| m8 'fine'",
        "-| said m8",
        "-| RUN SUCCESS",
    ]


async def test_siblings_whose_models_use_one_call_id():
    a, b = (
        agent(
            name,
            Say(calls=[("k", "look", {"q": name})]),
            Say(f"{name} done"),
            mode="single_turn",
            tools=[FunctionTool(look)],
        )
        for name in "ab"
    )
    root = agent(
        "root",
        Say(calls=[("c1", "a", {"request": "x"}), ("c2", "b", {"request": "y"})]),
        Say("done"),
        sub_agents=[a, b],
    )
    assert await run(runner(root), "hi", run_config=AT_ONCE) == [
        "-| RUN",
        "-| calls c1 a in m1",
        '-| c1 {"request": "x"}',
        "-| calls c2 b in m1",
        '-| c2 {"request": "y"}',
        "-| called c1",
        "-| called c2",
        "-| + c1 a (single_turn) by c1",
        "-| + c2 b (single_turn) by c2",
        "c1| calls k look in m2",
        'c1| k {"q": "a"}',
        "c1| called k",
        "c2| calls k@c2 look in m3",
        'c2| k@c2 {"q": "b"}',
        "c2| called k@c2",
        "c1| k -> 'seen a'",
        "c2| k@c2 -> 'seen b'",
        "c1| says m4",
        "c1| m4 'a done'",
        "c1| said m4",
        "c2| says m5",
        "c2| m5 'b done'",
        "c2| said m5",
        "c1| .",
        "c2| .",
        "-| c1 -> 'a done'",
        "-| c2 -> 'b done'",
        "-| says m6",
        "-| m6 'done'",
        "-| said m6",
        "-| RUN SUCCESS",
    ]


async def test_agent_tools_side_by_side_are_seen_live():
    inner = agent(
        "inner", Say("looking", calls=[("k1", "look", {"q": "x"})]), Say("found"), tools=[FunctionTool(look)]
    )
    calls = [("c1", "inner", {"request": "one"}), ("c2", "inner", {"request": "two"})]
    root = agent("root", Say(calls=calls), Say("done"), tools=[AgentTool(inner)])
    assert await run(runner(root), "hi") == [
        "-| RUN",
        "-| calls c1 inner in m1",
        '-| c1 {"request": "one"}',
        "-| calls c2 inner in m1",
        '-| c2 {"request": "two"}',
        "-| called c1",
        "-| called c2",
        "-| + c1 inner (agent_tool) by c1",
        "-| + c2 inner (agent_tool) by c2",
        "c1| says m2",
        "c1| m2 'looking'",
        "c1| said m2",
        "c1| calls k1 look in m2",
        'c1| k1 {"q": "x"}',
        "c1| called k1",
        "c2| says m3",
        "c2| m3 'looking'",
        "c2| said m3",
        "c2| calls k1@c2 look in m3",
        'c2| k1@c2 {"q": "x"}',
        "c2| called k1@c2",
        "c1| k1 -> 'seen x'",
        "c2| k1@c2 -> 'seen x'",
        "c1| says m4",
        "c1| m4 'found'",
        "c1| said m4",
        "c2| says m5",
        "c2| m5 'found'",
        "c2| said m5",
        "c1| .",
        "c2| .",
        "-| c1 -> 'found'",
        "-| c2 -> 'found'",
        "-| says m6",
        "-| m6 'done'",
        "-| said m6",
        "-| RUN SUCCESS",
    ]


async def test_agent_tool_in_an_agent_tool():
    deep = agent("deep", Say("deep words"))
    inner = agent(
        "inner", Say(calls=[("k1", "deep", {"request": "z"})]), Say("inner done"), tools=[AgentTool(deep)]
    )
    root = agent(
        "root", Say(calls=[("c1", "inner", {"request": "a"})]), Say("done"), tools=[AgentTool(inner)]
    )
    assert await run(runner(root), "hi") == [
        "-| RUN",
        "-| calls c1 inner in m1",
        '-| c1 {"request": "a"}',
        "-| called c1",
        "-| + c1 inner (agent_tool) by c1",
        "c1| calls k1 deep in m2",
        'c1| k1 {"request": "z"}',
        "c1| called k1",
        "c1| + k1@c1 deep (agent_tool) by k1",
        "k1@c1| says m3",
        "k1@c1| m3 'deep words'",
        "k1@c1| said m3",
        "k1@c1| .",
        "c1| k1 -> 'deep words'",
        "c1| says m4",
        "c1| m4 'inner done'",
        "c1| said m4",
        "c1| .",
        "-| c1 -> 'inner done'",
        "-| says m5",
        "-| m5 'done'",
        "-| said m5",
        "-| RUN SUCCESS",
    ]


async def test_an_agent_tool_whose_agent_has_a_team():
    """Two copies at once: what runs inside belongs to the copy it runs in."""
    leaf = agent("leaf", Say("leaf words"), mode="single_turn")
    inner = agent(
        "inner", Say(calls=[("k1", "leaf", {"request": "z"})]), Say("inner done"), sub_agents=[leaf]
    )
    calls = [("c1", "inner", {"request": "a"}), ("c2", "inner", {"request": "b"})]
    root = agent("root", Say(calls=calls), Say("done"), tools=[AgentTool(inner)])
    assert await run(runner(root), "hi", run_config=AT_ONCE) == [
        "-| RUN",
        "-| calls c1 inner in m1",
        '-| c1 {"request": "a"}',
        "-| calls c2 inner in m1",
        '-| c2 {"request": "b"}',
        "-| called c1",
        "-| called c2",
        "-| + c1 inner (agent_tool) by c1",
        "-| + c2 inner (agent_tool) by c2",
        "c1| calls k1 leaf in m2",
        'c1| k1 {"request": "z"}',
        "c1| called k1",
        "c2| calls k1@c2 leaf in m3",
        'c2| k1@c2 {"request": "z"}',
        "c2| called k1@c2",
        "c1| + k1@c1 leaf (single_turn) by k1",
        "c2| + k1@c2 leaf (single_turn) by k1@c2",
        "k1@c1| says m4",
        "k1@c1| m4 'leaf words'",
        "k1@c1| said m4",
        "k1@c2| says m5",
        "k1@c2| m5 'leaf words'",
        "k1@c2| said m5",
        "k1@c1| .",
        "k1@c2| .",
        "c1| k1 -> 'leaf words'",
        "c2| k1@c2 -> 'leaf words'",
        "c1| says m6",
        "c1| m6 'inner done'",
        "c1| said m6",
        "c2| says m7",
        "c2| m7 'inner done'",
        "c2| said m7",
        "c1| .",
        "c2| .",
        "-| c1 -> 'inner done'",
        "-| c2 -> 'inner done'",
        "-| says m8",
        "-| m8 'done'",
        "-| said m8",
        "-| RUN SUCCESS",
    ]


async def test_task_without_a_question():
    booker = agent("booker", finish("f1"), mode="task")
    root = agent("root", Say(calls=[("c1", "booker", {"request": "book"})]), Say("done"), sub_agents=[booker])
    assert await run(runner(root), "hi") == [
        "-| RUN",
        "-| calls c1 booker in m1",
        '-| c1 {"request": "book"}',
        "-| called c1",
        "-| + c1 booker (task) by c1",
        'c1| . {"result": "booked"}',
        "-| c1 -> 'booked'",
        "-| says m2",
        "-| m2 'done'",
        "-| said m2",
        "-| RUN SUCCESS",
    ]


async def test_task_that_asks_back():
    """Suspended without interrupts in a run that succeeds; the next words continue the same invocation."""
    booker = agent("booker", Say("Which city?"), Say("ok", calls=finish("f1").calls), mode="task")
    root = agent(
        "root", Say(calls=[("c1", "booker", {"request": "book"})]), Say("All booked"), sub_agents=[booker]
    )
    assert await ask(runner(root), "hi", "Seoul") == [
        "-| RUN",
        "-| calls c1 booker in m1",
        '-| c1 {"request": "book"}',
        "-| called c1",
        "-| + c1 booker (task) by c1",
        "c1| says m2",
        "c1| m2 'Which '",
        "c1| m2 'city?'",
        "c1| said m2",
        "c1| ~",
        "-| RUN SUCCESS pending c1",
        "-| RUN",
        "-| + c1 booker (task) by c1",
        "c1| says m3",
        "c1| m3 'ok'",
        "c1| said m3",
        'c1| . {"result": "booked"}',
        "-| c1 -> 'booked'",
        "-| says m4",
        "-| m4 'All '",
        "-| m4 'booked'",
        "-| said m4",
        "-| RUN SUCCESS",
    ]


class FlightInput(BaseModel):
    origin: str
    seats: int


class FlightResult(BaseModel):
    flight: str
    price: int


async def test_schemas_and_a_refused_finish():
    """Typed arguments on the call; a `finish_task` that ADK refuses is repeated inside one invocation."""
    booker = agent(
        "booker",
        finish("f1", flight="KE1"),
        finish("f2", flight="KE1", price=100),
        mode="task",
        input_schema=FlightInput,
        output_schema=FlightResult,
    )
    root = agent(
        "root", Say(calls=[("c1", "booker", {"origin": "ICN", "seats": 2})]), Say("done"), sub_agents=[booker]
    )
    assert await run(runner(root), "hi") == [
        "-| RUN",
        "-| calls c1 booker in m1",
        '-| c1 {"origin": "ICN", "seats": 2}',
        "-| called c1",
        "-| + c1 booker (task) by c1",
        'c1| . {"flight": "KE1", "price": 100}',
        '-| c1 -> \'{"flight": "KE1", "price": 100}\'',
        "-| says m2",
        "-| m2 'done'",
        "-| said m2",
        "-| RUN SUCCESS",
    ]


async def test_a_structured_single_turn_result():
    child = agent("a", Say('{"flight": "KE1", "price": 7}'), mode="single_turn", output_schema=FlightResult)
    root = agent("root", Say(calls=[("c1", "a", {"request": "x"})]), Say("done"), sub_agents=[child])
    assert await run(runner(root), "hi", run_config=AT_ONCE) == [
        "-| RUN",
        "-| calls c1 a in m1",
        '-| c1 {"request": "x"}',
        "-| called c1",
        "-| + c1 a (single_turn) by c1",
        "c1| says m2",
        'c1| m2 \'{"flight": "KE1", "price": 7}\'',
        "c1| said m2",
        'c1| . {"flight": "KE1", "price": 7}',
        '-| c1 -> \'{"flight": "KE1", "price": 7}\'',
        "-| says m3",
        "-| m3 'done'",
        "-| said m3",
        "-| RUN SUCCESS",
    ]


async def test_two_tasks_in_one_answer():
    x = agent("x", finish("f1"), mode="task")
    y = agent("y", Say("y?"), finish("f2"), mode="task")
    calls = [("c1", "x", {"request": "x"}), ("c2", "y", {"request": "y"})]
    root = agent("root", Say(calls=calls), Say("done"), sub_agents=[x, y])
    assert await ask(runner(root), "hi", "there") == [
        "-| RUN",
        "-| calls c1 x in m1",
        '-| c1 {"request": "x"}',
        "-| calls c2 y in m1",
        '-| c2 {"request": "y"}',
        "-| called c1",
        "-| called c2",
        "-| + c1 x (task) by c1",
        'c1| . {"result": "booked"}',
        "-| c1 -> 'booked'",
        "-| + c2 y (task) by c2",
        "c2| says m2",
        "c2| m2 'y?'",
        "c2| said m2",
        "c2| ~",
        "-| RUN SUCCESS pending c2",
        "-| RUN",
        "-| + c2 y (task) by c2",
        'c2| . {"result": "booked"}',
        "-| c2 -> 'booked'",
        "-| says m3",
        "-| m3 'done'",
        "-| said m3",
        "-| RUN SUCCESS",
    ]


async def test_a_task_and_a_single_turn_in_one_answer():
    booker = agent("booker", Say("where?"), finish("f1"), mode="task")
    checker = agent("checker", Say("sunny"), mode="single_turn")
    calls = [("c1", "booker", {"request": "x"}), ("c2", "checker", {"request": "y"})]
    root = agent("root", Say(calls=calls), Say("done"), sub_agents=[booker, checker])
    seen = await ask(runner(root), "hi", "there")
    if can("mixed_turn"):
        assert seen == [
            "-| RUN",
            "-| calls c1 booker in m1",
            '-| c1 {"request": "x"}',
            "-| calls c2 checker in m1",
            '-| c2 {"request": "y"}',
            "-| called c1",
            "-| called c2",
            "-| + c2 checker (single_turn) by c2",
            "c2| says m2",
            "c2| m2 'sunny'",
            "c2| said m2",
            "c2| .",
            "-| c2 -> 'sunny'",
            "-| + c1 booker (task) by c1",
            "c1| says m3",
            "c1| m3 'where?'",
            "c1| said m3",
            "c1| ~",
            "-| RUN SUCCESS pending c1",
            "-| RUN",
            "-| + c1 booker (task) by c1",
            'c1| . {"result": "booked"}',
            "-| c1 -> 'booked'",
            "-| says m4",
            "-| m4 'done'",
            "-| said m4",
            "-| RUN SUCCESS",
        ]
    else:
        assert seen == [
            "-| RUN",
            "-| calls c1 booker in m1",
            '-| c1 {"request": "x"}',
            "-| calls c2 checker in m1",
            '-| c2 {"request": "y"}',
            "-| called c1",
            "-| called c2",
            "-| + c1 booker (task) by c1",
            "c1| says m2",
            "c1| m2 'where?'",
            "c1| said m2",
            "c1| ~",
            "-| RUN SUCCESS pending c1 c2",
            "-| RUN",
            "-| + c1 booker (task) by c1",
            'c1| . {"result": "booked"}',
            "-| c1 -> 'booked'",
            "-| says m3",
            "-| m3 'done'",
            "-| said m3",
            "-| RUN SUCCESS",
        ]


async def test_a_task_that_delegates_a_task():
    lower = agent("lower", Say("deep q?"), finish("f2", result="deep"), mode="task")
    upper = agent(
        "upper",
        Say(calls=[("d1", "lower", {"request": "x"})]),
        finish("f1", result="up"),
        mode="task",
        sub_agents=[lower],
    )
    root = agent("root", Say(calls=[("c1", "upper", {"request": "x"})]), Say("done"), sub_agents=[upper])
    seen = await ask(runner(root), "hi", "there")
    if can("nested_task"):
        assert seen == [
            "-| RUN",
            "-| calls c1 upper in m1",
            '-| c1 {"request": "x"}',
            "-| called c1",
            "-| + c1 upper (task) by c1",
            "c1| calls d1 lower in m2",
            'c1| d1 {"request": "x"}',
            "c1| called d1",
            "c1| + d1 lower (task) by d1",
            "d1| says m3",
            "d1| m3 'deep '",
            "d1| m3 'q?'",
            "d1| said m3",
            "d1| ~",
            "c1| ~",
            "-| RUN SUCCESS pending c1 d1",
            "-| RUN",
            "-| + c1 upper (task) by c1",
            "c1| + d1 lower (task) by d1",
            'd1| . {"result": "deep"}',
            "c1| d1 -> 'deep'",
            'c1| . {"result": "up"}',
            "-| c1 -> 'up'",
            "-| says m4",
            "-| m4 'done'",
            "-| said m4",
            "-| RUN SUCCESS",
        ]
    else:
        assert seen == [
            "-| RUN",
            "-| calls c1 upper in m1",
            '-| c1 {"request": "x"}',
            "-| called c1",
            "-| + c1 upper (task) by c1",
            "c1| calls d1 lower in m2",
            'c1| d1 {"request": "x"}',
            "c1| called d1",
            'c1| . {"result": "up"}',
            "-| c1 -> 'up'",
            "-| says m3",
            "-| m3 'done'",
            "-| said m3",
            "-| RUN SUCCESS pending d1",
            "-| RUN",
            "-| says m4",
            "-| m4 'done'",
            "-| said m4",
            "-| RUN SUCCESS",
        ]


async def test_chat_there_and_back():
    helper = agent("helper", Say("hello from helper"), transfer("t2", "root"))
    root = agent("root", transfer("t1", "helper"), Say("back"), sub_agents=[helper])
    assert await ask(runner(root), "hi", "again", "more") == [
        "-| RUN",
        "-| calls t1 transfer_to_agent in m1",
        '-| t1 {"agent_name": "helper"}',
        "-| called t1",
        "-| t1 -> 'transferred to helper'",
        "-| + t1 helper (chat) by t1",
        "t1| says m2",
        "t1| m2 'hello '",
        "t1| m2 'from '",
        "t1| m2 'helper'",
        "t1| said m2",
        "t1| ~",
        "-| RUN SUCCESS",
        "-| RUN",
        "-| + t1 helper (chat) by t1",
        "t1| calls t2 transfer_to_agent in m3",
        't1| t2 {"agent_name": "root"}',
        "t1| called t2",
        "t1| t2 -> 'transferred to root'",
        "t1| .",
        "-| says m4",
        "-| m4 'back'",
        "-| said m4",
        "-| RUN SUCCESS",
        "-| RUN",
        "-| says m5",
        "-| m5 'back'",
        "-| said m5",
        "-| RUN SUCCESS",
    ]


async def test_chat_on_to_a_third():
    helper, third = (
        agent("helper", transfer("t2", "third")),
        agent("third", Say("third here"), transfer("t3", "root")),
    )
    root = agent("root", transfer("t1", "helper"), Say("back"), sub_agents=[helper, third])
    assert await ask(runner(root), "hi", "again") == [
        "-| RUN",
        "-| calls t1 transfer_to_agent in m1",
        '-| t1 {"agent_name": "helper"}',
        "-| called t1",
        "-| t1 -> 'transferred to helper'",
        "-| + t1 helper (chat) by t1",
        "t1| calls t2 transfer_to_agent in m2",
        't1| t2 {"agent_name": "third"}',
        "t1| called t2",
        "t1| t2 -> 'transferred to third'",
        "t1| .",
        "-| + t2 third (chat) by t2",
        "t2| says m3",
        "t2| m3 'third '",
        "t2| m3 'here'",
        "t2| said m3",
        "t2| ~",
        "-| RUN SUCCESS",
        "-| RUN",
        "-| + t2 third (chat) by t2",
        "t2| calls t3 transfer_to_agent in m4",
        't2| t3 {"agent_name": "root"}',
        "t2| called t3",
        "t2| t3 -> 'transferred to root'",
        "t2| .",
        "-| says m5",
        "-| m5 'back'",
        "-| said m5",
        "-| RUN SUCCESS",
    ]


async def test_chat_down_and_up_again():
    """Down into the own subtree the caller stays open; back to it, it goes on under its id."""
    leaf = agent("leaf", Say("leaf here"), transfer("t3", "mid"))
    mid = agent("mid", transfer("t2", "leaf"), Say("mid again"), transfer("t4", "root"), sub_agents=[leaf])
    root = agent("root", transfer("t1", "mid"), Say("root back"), sub_agents=[mid])
    assert await ask(runner(root), "hi", "again", "more") == [
        "-| RUN",
        "-| calls t1 transfer_to_agent in m1",
        '-| t1 {"agent_name": "mid"}',
        "-| called t1",
        "-| t1 -> 'transferred to mid'",
        "-| + t1 mid (chat) by t1",
        "t1| calls t2 transfer_to_agent in m2",
        't1| t2 {"agent_name": "leaf"}',
        "t1| called t2",
        "t1| t2 -> 'transferred to leaf'",
        "t1| + t2 leaf (chat) by t2",
        "t2| says m3",
        "t2| m3 'leaf '",
        "t2| m3 'here'",
        "t2| said m3",
        "t2| ~",
        "t1| ~",
        "-| RUN SUCCESS",
        "-| RUN",
        "-| + t1 mid (chat) by t1",
        "t1| + t2 leaf (chat) by t2",
        "t2| calls t3 transfer_to_agent in m4",
        't2| t3 {"agent_name": "mid"}',
        "t2| called t3",
        "t2| t3 -> 'transferred to mid'",
        "t2| .",
        "t1| says m5",
        "t1| m5 'mid '",
        "t1| m5 'again'",
        "t1| said m5",
        "t1| ~",
        "-| RUN SUCCESS",
        "-| RUN",
        "-| + t1 mid (chat) by t1",
        "t1| calls t4 transfer_to_agent in m6",
        't1| t4 {"agent_name": "root"}',
        "t1| called t4",
        "t1| t4 -> 'transferred to root'",
        "t1| .",
        "-| says m7",
        "-| m7 'root '",
        "-| m7 'back'",
        "-| said m7",
        "-| RUN SUCCESS",
    ]


async def test_chat_that_may_not_go_back_is_over_at_the_end_of_the_turn():
    """ADK routes the next words to the root: the agent is not in control any more."""
    helper = agent("helper", Say("bye"), disallow_transfer_to_parent=True)
    root = agent("root", transfer("t1", "helper"), Say("root here"), sub_agents=[helper])
    assert await ask(runner(root), "hi", "again", run_config=AT_ONCE) == [
        "-| RUN",
        "-| calls t1 transfer_to_agent in m1",
        '-| t1 {"agent_name": "helper"}',
        "-| called t1",
        "-| t1 -> 'transferred to helper'",
        "-| + t1 helper (chat) by t1",
        "t1| says m2",
        "t1| m2 'bye'",
        "t1| said m2",
        "t1| .",
        "-| RUN SUCCESS",
        "-| RUN",
        "-| says m3",
        "-| m3 'root here'",
        "-| said m3",
        "-| RUN SUCCESS",
    ]


async def test_single_turn_that_transfers_to_its_parent():
    """ADK then runs the root inside the child's branch: an invocation of its own there."""
    child = agent("a", transfer("t1", "root"), mode="single_turn")
    turns = iter(
        [Say(calls=[("c1", "a", {"request": "x"})]), Say("root inside"), Say("root again"), Say("done")]
    )
    root = agent("root", sub_agents=[child])
    root.model = ScriptedLlm(script=lambda _request: next(turns), requests=[])
    assert await run(runner(root), "hi", run_config=AT_ONCE) == [
        "-| RUN",
        "-| calls c1 a in m1",
        '-| c1 {"request": "x"}',
        "-| called c1",
        "-| + c1 a (single_turn) by c1",
        "c1| calls t1 transfer_to_agent in m2",
        'c1| t1 {"agent_name": "root"}',
        "c1| called t1",
        "c1| t1 -> 'transferred to root'",
        "c1| + t1 root (chat) by t1",
        "t1| says m3",
        "t1| m3 'root inside'",
        "t1| said m3",
        "t1| says m4",
        "t1| m4 'root again'",
        "t1| said m4",
        "t1| .",
        "c1| .",
        "-| c1 -> ''",
        "-| says m5",
        "-| m5 'done'",
        "-| said m5",
        "-| RUN SUCCESS",
    ]


@pytest.mark.parametrize(
    ("second", "other", "call"),
    [("t1", "t1#2", "t1@c2"), ("t2", "t2", "t2")],
    ids=["of one call id", "of two"],
)
async def test_two_lanes_that_hand_over_to_one_agent(second, other, call):
    """Each goes on where its own call handed it, also when it is run again: ADK asks the expert of a lane twice."""
    expert = agent("expert", Say("an expert"))
    desk = agent("desk", mode="single_turn", sub_agents=[expert])
    desk.model.script = lambda request: Say(
        calls=[
            (
                second if "pears" in str(request.contents[-1]) else "t1",
                "transfer_to_agent",
                {"agent_name": "expert"},
            )
        ]
    )
    calls = [("c1", "desk", {"request": "apples"}), ("c2", "desk", {"request": "pears"})]
    target = runner(agent("root", Say(calls=calls), Say("done"), sub_agents=[desk]))
    seen = await run(target, "hi", run_config=AT_ONCE)
    assert [line for line in seen if " + " in line] == [
        "-| + c1 desk (single_turn) by c1",
        "-| + c2 desk (single_turn) by c2",
        "c1| + t1 expert (chat) by t1",
        f"c2| + {other} expert (chat) by {call}",
    ]
    assert Counter(line.split("|")[0] for line in seen if "'an expert'" in line) == {"t1": 2, other: 2}
    session = await target.session_service.get_session(app_name="team", user_id="user", session_id="t")
    spoken = [event.branch for event in session.events if event.author == "expert" and event.content]
    assert Counter(spoken) == {"desk@c1": 2, "desk@c2": 2}
