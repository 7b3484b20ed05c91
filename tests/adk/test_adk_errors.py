"""Failures and cuts: everything open is closed under its own owner, and nothing of the dead is continued."""

import asyncio

import pytest
from adk_kit import AT_ONCE, SSE, agent, ask, attribute, can, collect, judge, run, runner, show, user
from byline_adk.scripted import Say, ScriptedLlm
from google.adk.agents import ParallelAgent, SequentialAgent
from google.adk.agents.run_config import RunConfig
from google.adk.tools import AgentTool, FunctionTool
from google.adk.workflow import START, Workflow
from google.genai import types

pytestmark = pytest.mark.anyio


def broken():
    return Say("some words", fails=RuntimeError("model broke"))


def boom(q: str) -> str:
    """Break."""
    raise ValueError("tool broke")


def calling(name, *more, call="c1", **options):
    return agent("root", Say(calls=[(call, name, {"request": "x"})]), Say("root goes on"), **options)


async def test_a_single_turn_agent_whose_model_breaks():
    """The run goes on; the dead child's words end with it."""
    assert await run(runner(calling("a", sub_agents=[agent("a", broken(), mode="single_turn")])), "hi") == [
        "-| RUN",
        "-| calls c1 a in m1",
        '-| c1 {"request": "x"}',
        "-| called c1",
        "-| + c1 a (single_turn) by c1",
        "c1| says m2",
        "c1| m2 'some '",
        "c1| m2 'words'",
        "c1| said m2",
        "c1| ! RuntimeError: model broke",
        "-| c1 -> 'Error running sub-agent: Dynamic node a failed'",
        "-| says m3",
        "-| m3 'root '",
        "-| m3 'goes '",
        "-| m3 'on'",
        "-| said m3",
        "-| RUN SUCCESS",
    ]


async def test_a_single_turn_agent_whose_tool_breaks():
    """Its agent breaks with it: the call gets no answer in ADK, and none here."""
    child = agent(
        "a", Say(calls=[("k1", "boom", {"q": "x"})]), mode="single_turn", tools=[FunctionTool(boom)]
    )
    assert await run(runner(calling("a", sub_agents=[child])), "hi") == [
        "-| RUN",
        "-| calls c1 a in m1",
        '-| c1 {"request": "x"}',
        "-| called c1",
        "-| + c1 a (single_turn) by c1",
        "c1| calls k1 boom in m2",
        'c1| k1 {"q": "x"}',
        "c1| called k1",
        "c1| ! ValueError: tool broke",
        "-| c1 -> 'Error running sub-agent: Dynamic node a failed'",
        "-| says m3",
        "-| m3 'root '",
        "-| m3 'goes '",
        "-| m3 'on'",
        "-| said m3",
        "-| RUN SUCCESS pending k1",
    ]


async def test_a_task_whose_model_breaks():
    assert await run(runner(calling("a", sub_agents=[agent("a", broken(), mode="task")])), "hi") == [
        "-| RUN",
        "-| calls c1 a in m1",
        '-| c1 {"request": "x"}',
        "-| called c1",
        "-| + c1 a (task) by c1",
        "c1| says m2",
        "c1| m2 'some '",
        "c1| m2 'words'",
        "c1| said m2",
        "c1| ! RuntimeError: model broke",
        "-| RUN ERROR RuntimeError: model broke",
    ]


async def test_a_chat_agent_whose_model_breaks():
    root = agent(
        "root",
        Say(calls=[("t1", "transfer_to_agent", {"agent_name": "a"})]),
        sub_agents=[agent("a", broken())],
    )
    assert await run(runner(root), "hi") == [
        "-| RUN",
        "-| calls t1 transfer_to_agent in m1",
        '-| t1 {"agent_name": "a"}',
        "-| called t1",
        "-| t1 -> 'transferred to a'",
        "-| + t1 a (chat) by t1",
        "t1| says m2",
        "t1| m2 'some '",
        "t1| m2 'words'",
        "t1| said m2",
        "t1| ! RuntimeError: model broke",
        "-| RUN ERROR RuntimeError: model broke",
    ]


async def test_a_child_that_fails_beside_a_sibling():
    dead, alive = (
        agent("a", broken(), mode="single_turn"),
        agent("b", Say("B lives on", pause=0.02), mode="single_turn"),
    )
    root = agent(
        "root",
        Say(calls=[("c1", "a", {"request": "x"}), ("c2", "b", {"request": "y"})]),
        Say("root goes on"),
        sub_agents=[dead, alive],
    )
    assert await run(runner(root), "hi") == [
        "-| RUN",
        "-| calls c1 a in m1",
        '-| c1 {"request": "x"}',
        "-| calls c2 b in m1",
        '-| c2 {"request": "y"}',
        "-| called c1",
        "-| called c2",
        "-| + c1 a (single_turn) by c1",
        "-| + c2 b (single_turn) by c2",
        "c1| says m2",
        "c1| m2 'some '",
        "c1| m2 'words'",
        "c1| said m2",
        "c1| ! RuntimeError: model broke",
        "c2| says m3",
        "c2| m3 'B '",
        "c2| m3 'lives '",
        "c2| m3 'on'",
        "c2| said m3",
        "c2| .",
        "-| c1 -> 'Error running sub-agent: Dynamic node a failed'",
        "-| c2 -> 'B lives on'",
        "-| says m4",
        "-| m4 'root '",
        "-| m4 'goes '",
        "-| m4 'on'",
        "-| said m4",
        "-| RUN SUCCESS",
    ]


async def test_a_tool_that_fails_beside_a_child():
    """ADK cancels the child: it was cut off, and did not succeed."""
    child = agent("b", Say("B words", pause=0.02), mode="single_turn")
    root = agent(
        "root",
        Say(calls=[("k1", "boom", {"q": "x"}), ("c2", "b", {"request": "y"})]),
        sub_agents=[child],
        tools=[FunctionTool(boom)],
    )
    assert await run(runner(root), "hi", run_config=AT_ONCE) == [
        "-| RUN",
        "-| calls k1 boom in m1",
        '-| k1 {"q": "x"}',
        "-| calls c2 b in m1",
        '-| c2 {"request": "y"}',
        "-| called k1",
        "-| called c2",
        "-| + c2 b (single_turn) by c2",
        "c2| ! cancelled: cut off because the run failed",
        "-| RUN ERROR ValueError: tool broke",
    ]


async def test_an_agent_tool_whose_model_breaks():
    assert await run(runner(calling("a", tools=[AgentTool(agent("a", broken()))])), "hi") == [
        "-| RUN",
        "-| calls c1 a in m1",
        '-| c1 {"request": "x"}',
        "-| called c1",
        "-| + c1 a (agent_tool) by c1",
        "c1| ! RuntimeError: model broke",
        "-| RUN ERROR RuntimeError: model broke",
    ]


async def test_a_failure_two_levels_down():
    leaf = agent("leaf", broken(), mode="single_turn")
    mid = agent(
        "mid",
        Say(calls=[("m1", "leaf", {"request": "x"})]),
        Say("mid goes on"),
        mode="single_turn",
        sub_agents=[leaf],
    )
    assert await run(runner(calling("mid", sub_agents=[mid])), "hi", run_config=AT_ONCE) == [
        "-| RUN",
        "-| calls c1 mid in m1",
        '-| c1 {"request": "x"}',
        "-| called c1",
        "-| + c1 mid (single_turn) by c1",
        "c1| calls m1 leaf in m2",
        'c1| m1 {"request": "x"}',
        "c1| called m1",
        "c1| + m1 leaf (single_turn) by m1",
        "m1| ! RuntimeError: model broke",
        "c1| m1 -> 'Error running sub-agent: Dynamic node leaf failed'",
        "c1| says m3",
        "c1| m3 'mid goes on'",
        "c1| said m3",
        "c1| .",
        "-| c1 -> 'mid goes on'",
        "-| says m4",
        "-| m4 'root goes on'",
        "-| said m4",
        "-| RUN SUCCESS",
    ]


async def test_an_answer_that_is_an_error():
    """No exception: the caller gets nothing, the invocation failed with the model's own code."""
    child = agent("a", Say(error=("SAFETY", "blocked")), mode="single_turn")
    assert await run(runner(calling("a", sub_agents=[child])), "hi") == [
        "-| RUN",
        "-| calls c1 a in m1",
        '-| c1 {"request": "x"}',
        "-| called c1",
        "-| + c1 a (single_turn) by c1",
        "c1| ! SAFETY: blocked",
        "-| c1 -> ''",
        "-| says m2",
        "-| m2 'root '",
        "-| m2 'goes '",
        "-| m2 'on'",
        "-| said m2",
        "-| RUN SUCCESS",
    ]


async def test_a_root_whose_answer_is_an_error():
    assert await run(runner(agent("root", Say("some", error=("SAFETY", "blocked")))), "hi") == [
        "-| RUN",
        "-| says m1",
        "-| m1 'some'",
        "-| said m1",
        "-| RUN ERROR SAFETY: blocked",
    ]


async def test_a_node_that_fails_beside_another():
    graph = Workflow(
        name="wf", edges=[(START, (agent("a", broken()), agent("b", Say("B words", pause=0.05))))]
    )
    seen = await run(runner(graph), "hi")
    if can("node_path"):
        assert seen == [
            "-| RUN",
            "-| + e1:wf@1/a@1 a (single_turn) by no call",
            "-| + e1:wf@1/b@1 b (single_turn) by no call",
            "e1:wf@1/a@1| says m1",
            "e1:wf@1/a@1| m1 'some '",
            "e1:wf@1/a@1| m1 'words'",
            "e1:wf@1/a@1| said m1",
            "e1:wf@1/a@1| ! RuntimeError: model broke",
            "e1:wf@1/b@1| ! cancelled: cut off because the run failed",
            "-| RUN ERROR RuntimeError: model broke",
        ]
    else:
        assert seen == [
            "-| RUN",
            "-| + e1:wf@1/a@1 a (single_turn) by no call",
            "e1:wf@1/a@1| says m1",
            "e1:wf@1/a@1| m1 'some '",
            "e1:wf@1/a@1| m1 'words'",
            "e1:wf@1/a@1| said m1",
            "e1:wf@1/a@1| ! RuntimeError: model broke",
            "-| + e1:b#1 b (workflow_agent) by no call",
            "e1:b#1| ! cancelled: cut off because the run failed",
            "-| RUN ERROR RuntimeError: model broke",
        ]


async def test_a_parallel_agent_of_which_one_fails():
    root = ParallelAgent(
        name="par", sub_agents=[agent("a", broken()), agent("b", Say("B words", pause=0.05))]
    )
    seen = await run(runner(root), "hi")
    if can("node_path"):
        assert seen == [
            "-| RUN",
            "-| + e1:a#1 a (workflow_agent) by no call",
            "-| + e1:b#1 b (workflow_agent) by no call",
            "e1:a#1| says m1",
            "e1:a#1| m1 'some '",
            "e1:a#1| m1 'words'",
            "e1:a#1| said m1",
            "e1:a#1| ! RuntimeError: model broke",
            "e1:b#1| ! cancelled: cut off because the run failed",
            "-| RUN ERROR RuntimeError: model broke",
        ]
    else:
        assert seen == [
            "-| RUN",
            "-| + e1:a#1 a (workflow_agent) by no call",
            "-| + e1:b#1 b (workflow_agent) by no call",
            "e1:a#1| says m1",
            "e1:a#1| m1 'some '",
            "e1:a#1| m1 'words'",
            "e1:a#1| said m1",
            "e1:a#1| ! RuntimeError: model broke",
            "e1:b#1| ! cancelled: cut off because the run failed",
            "-| RUN ERROR ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)",
        ]


async def test_a_sequence_that_stops():
    root = SequentialAgent(name="seq", sub_agents=[agent("a", broken()), agent("b", Say("never"))])
    assert await run(runner(root), "hi") == [
        "-| RUN",
        "-| + e1:a#1 a (workflow_agent) by no call",
        "e1:a#1| says m1",
        "e1:a#1| m1 'some '",
        "e1:a#1| m1 'words'",
        "e1:a#1| said m1",
        "e1:a#1| ! RuntimeError: model broke",
        "-| RUN ERROR RuntimeError: model broke",
    ]


async def test_the_call_limit():
    root = calling("a", sub_agents=[agent("a", Say("never"), mode="single_turn")])
    assert await run(runner(root), "hi", run_config=RunConfig(max_llm_calls=1)) == [
        "-| RUN",
        "-| calls c1 a in m1",
        '-| c1 {"request": "x"}',
        "-| called c1",
        "-| + c1 a (single_turn) by c1",
        "c1| ! LlmCallsLimitExceededError: Max number of llm calls limit of `1` exceeded",
        "-| c1 -> 'Error running sub-agent: Dynamic node a failed'",
        "-| RUN ERROR LlmCallsLimitExceededError: Max number of llm calls limit of `1` exceeded",
    ]


async def test_the_apps_own_exception_is_kept():
    one = attribute(runner(agent("root", broken()))).run(user("hi"))
    judge([event async for event in one])
    assert isinstance(one.error, RuntimeError)
    assert str(one.error) == "model broke"


def slow_child():
    return calling("a", sub_agents=[agent("a", Say("one two three four", pause=0.02), mode="single_turn")])


async def stop_at_words(one, how):
    async for event in one:
        if event.type.value == "TEXT_MESSAGE_CONTENT":
            await how()
            break


CUT = [
    "-| RUN",
    "-| calls c1 a in m1",
    '-| c1 {"request": "x"}',
    "-| called c1",
    "-| + c1 a (single_turn) by c1",
    "c1| says m2",
    "c1| m2 'one '",
    "c1| said m2",
    "c1| ! cancelled: the consumer went away",
    "-| RUN CANCELLED",
]


async def test_a_consumer_that_breaks_out():
    seen = []
    one = attribute(runner(slow_child()), clock=None, observers=[seen.append]).run(user("hi"))
    await stop_at_words(one, lambda: asyncio.sleep(0))
    await asyncio.sleep(0.1)
    judge(seen)
    assert show(seen) == CUT


async def test_a_consumer_that_is_cancelled():
    seen = []

    async def consume():
        async for _ in attribute(runner(slow_child()), clock=None, observers=[seen.append]).run(user("hi")):
            pass

    task = asyncio.create_task(consume())
    while not any(event.type.value == "TEXT_MESSAGE_CONTENT" for event in seen):
        await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    judge(seen)
    assert show(seen) == CUT


async def test_the_abort_signal():
    if not can("abort"):
        pytest.skip("run_async takes an abort_signal since 2.11")
    signal, target = asyncio.Event(), runner(slow_child())
    await target.session_service.create_session(app_name="team", user_id="u", session_id="t")
    message = types.Content(role="user", parts=[types.Part(text="hi")])
    events = []
    one = attribute(target, clock=None).stream(
        user_id="u", session_id="t", new_message=message, run_config=SSE, abort_signal=signal
    )
    async for event in one:
        events.append(event)
        if event.type.value == "TEXT_MESSAGE_CONTENT":
            signal.set()
    judge(events)
    assert show(events) == [
        "-| RUN",
        "-| calls c1 a in m1",
        '-| c1 {"request": "x"}',
        "-| called c1",
        "-| + c1 a (single_turn) by c1",
        "c1| says m2",
        "c1| m2 'one '",
        '-| c1 -> \'{"error": "Invocation was aborted by client."}\'',
        "c1| said m2",
        "c1| ! cancelled: the run was aborted",
        "-| RUN CANCELLED",
    ]


async def test_after_a_cut_the_thread_goes_on():
    turns = iter([Say(calls=[("c1", "a", {"request": "x"})]), Say("here again")])
    root = slow_child()
    root.model = ScriptedLlm(script=lambda _request: next(turns), requests=[])
    target = attribute(runner(root), clock=None)
    await stop_at_words(target.run(user("hi")), lambda: asyncio.sleep(0))
    await asyncio.sleep(0.1)
    assert show(await collect(target.run(user("still there?")))) == [
        "-| RUN",
        "-| says m1",
        "-| m1 'here '",
        "-| m1 'again'",
        "-| said m1",
        "-| RUN SUCCESS",
    ]


async def test_a_failure_of_ours_never_kills_the_run(monkeypatch, caplog):
    from byline_adk._watch import Watch

    def fail(*_args):
        raise KeyError("ours")

    monkeypatch.setattr(Watch, "begin_agent", fail)
    events = [
        event
        async for event in attribute(
            runner(agent("root", Say("all is well"))), clock=None, run_config=AT_ONCE
        ).run(user("hi"))
    ]
    assert show(events) == [
        "-| RUN",
        '-| custom byline.fault {"where": "before_agent", "error": "KeyError: \'ours\'"}',
        "-| says m1",
        "-| m1 'all is well'",
        "-| said m1",
        "-| RUN SUCCESS",
    ]
    assert "byline failed in before_agent" in caplog.text


async def test_a_run_that_fails_leaves_the_next_alone():
    turns = iter([broken(), Say("fine")])
    root = agent("root")
    root.model = ScriptedLlm(script=lambda _request: next(turns), requests=[])
    assert await ask(runner(root), "hi", "again", run_config=AT_ONCE) == [
        "-| RUN",
        "-| RUN ERROR RuntimeError: model broke",
        "-| RUN",
        "-| says m1",
        "-| m1 'fine'",
        "-| said m1",
        "-| RUN SUCCESS",
    ]
