"""What goes wrong in a subagent: caught, fatal, in the middle of a word, tried again, cut off."""

import asyncio

import kit
from byline_langgraph.scripted import Say
from deepkit import Play, Trace, compiled, deep, sub, task
from kit import Relay, call
from langchain.agents.middleware import ToolRetryMiddleware, wrap_tool_call
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool


@tool
def explode(q: str) -> str:
    """Explode."""
    raise ValueError(f"boom {q}")


@wrap_tool_call
async def forgiving(request, handler):
    try:
        return await handler(request)
    except ValueError as error:
        return ToolMessage(f"it failed: {error}", tool_call_id=request.tool_call["id"], status="error")


def exploding(**spec):
    return sub(
        "alpha", Say("trying", calls=[call("call_X", "explode", "x")]), "alpha done", tools=[explode], **spec
    )


def team(alpha, *more, **options):
    return deep(Say("go", calls=[task("call_A", "alpha")]), "done", subagents=[alpha, *more], **options)


UP_TO_THE_CALL = [
    "start",
    'main state {"files": {}}',
    "main says m1: 'go'",
    'main calls call_A in m1: task {"description": "do it", "subagent_type": "alpha"}',
    "alpha#1 opens as isolated for main, call call_A in m1, 'do it'",
    "alpha#1 says m2: 'trying'",
    'alpha#1 calls call_X in m2: explode {"q": "x"}',
]


def test_a_tool_error_that_nobody_catches():
    assert Play(team(exploding())).run().lines == [
        *UP_TO_THE_CALL,
        "alpha#1 fails ValueError: boom x",
        "run fails ValueError: boom x",
    ]


def test_a_tool_error_that_the_caller_catches():
    assert Play(team(exploding(), middleware=[forgiving])).run().lines == [
        *UP_TO_THE_CALL,
        "alpha#1 fails ValueError: boom x",
        "main hears call_A: 'it failed: boom x'",
        "main says m3: 'done'",
        "end pending call_X",  # the law: exactly the calls that got no result in the run
    ]


def test_a_tool_error_that_the_subagent_catches():
    assert Play(team(exploding(middleware=[forgiving]))).run().lines == [
        *UP_TO_THE_CALL,
        "alpha#1 hears call_X: 'it failed: boom x'",
        "alpha#1 says m3: 'alpha done'",
        "alpha#1 returns 'alpha done'",
        "main hears call_A: 'alpha done'",
        "main says m4: 'done'",
        "end",
    ]


def test_a_model_that_fails_in_the_middle_of_its_answer():
    alpha = sub("alpha", Say("half an", fails=RuntimeError("the line is down")))
    assert Play(team(alpha)).run().lines[4:] == [
        "alpha#1 opens as isolated for main, call call_A in m1, 'do it'",
        "alpha#1 says m2: 'half an'",
        "alpha#1 fails RuntimeError: the line is down",
        "run fails RuntimeError: the line is down",
    ]


def test_what_a_failure_cuts_off_beside_it():
    relay = Relay("alpha beta beta . alpha .")
    alpha = sub("alpha", Say("alpha fails", fails=RuntimeError("down")), relay=relay)
    beta = sub("beta", "beta is not done yet", relay=relay)
    calls = [task("call_A", "alpha", "a"), task("call_B", "beta", "b")]
    assert Play(deep(Say("go", calls=calls), "done", subagents=[alpha, beta])).run().lines[7:] == [
        "alpha#1 opens as isolated for main, call call_A in m1, 'a'",
        "beta#1 opens as isolated for main, call call_B in m1, 'b'",
        "alpha#1 says m2+: 'alpha '",
        "beta#1 says m3+: 'beta is '",
        "alpha#1 says +m2: 'fails'",
        "alpha#1 fails RuntimeError: down",
        "beta#1 says +m3: ''",
        "beta#1 fails cancelled: cancelled before it was over",
        "run fails RuntimeError: down",
    ]


def test_another_attempt_is_another_invocation():
    tries = []

    @tool
    def flaky(q: str) -> str:
        """Work the second time."""
        tries.append(q)
        if len(tries) == 1:
            raise ValueError("not yet")
        return "now"

    alpha = sub("alpha", Say("trying", calls=[call("call_X", "flaky", "x")]), "alpha done", tools=[flaky])
    retry = ToolRetryMiddleware(max_retries=1, tools=["task"], initial_delay=0, jitter=False)
    assert Play(team(alpha, middleware=[retry])).run().lines[4:] == [
        "alpha#1 opens as isolated for main, call call_A in m1, 'do it'",
        "alpha#1 says m2: 'trying'",
        'alpha#1 calls call_X in m2: flaky {"q": "x"}',
        "alpha#1 fails ValueError: not yet",
        "alpha#2 opens as isolated for main, call call_A in m1, 'do it'",
        "alpha#2 says m3: 'trying'",
        'alpha#2 calls call_X@alpha#2 in m3: flaky {"q": "x"}',
        "alpha#2 hears call_X@alpha#2: 'now'",
        "alpha#2 says m4: 'alpha done'",
        "alpha#2 returns 'alpha done'",
        "main hears call_A: 'alpha done'",
        "main says m5: 'done'",
        "end pending call_X",
    ]


def test_a_result_that_cannot_be_used():
    # deepagents wants a state with messages back; what the subagent did was for nothing, and so the invocation fails.
    broken = compiled("alpha", RunnableLambda(lambda state: {"answer": len(state["messages"])}))
    opened, failed, ended = Play(team(broken)).run().lines[4:]
    assert opened == "alpha#1 opens as isolated for main, call call_A in m1, 'do it'"
    assert failed.startswith(
        "alpha#1 fails ValueError: CompiledSubAgent must return a state containing a 'messages' key"
    )
    assert ended.startswith("run fails ValueError: CompiledSubAgent must return")


def test_a_run_that_is_stopped():
    alpha = sub("alpha", Say("word after word", pause=0.05))
    play = Play(team(alpha))

    async def stop():
        run = play.agent.run(play.input())
        trace = Trace(play.names, run)
        async for event in run:
            play.names.meet(event)
            trace.add(event)
            if getattr(event, "delta", "") == "word ":
                await run.cancel()
        kit.judge(trace.events)
        return trace

    assert asyncio.run(stop()).lines[4:] == [
        "alpha#1 opens as isolated for main, call call_A in m1, 'do it'",
        "alpha#1 says m2: 'word '",
        "alpha#1 fails cancelled: cancelled before it was over",
        "cancelled",
    ]


def test_nothing_is_kept_of_what_is_over():
    calls = [task("call_A", "alpha"), task("call_B", "beta")]
    go = deep(
        Say("go", calls=calls),
        "done",
        subagents=[exploding(), sub("beta", "beta answers")],
        middleware=[forgiving],
    )
    trace = Play(go).run()
    assert trace.lines[-1] == "end pending call_X"
    handler = trace.run._session.handler
    kept = (handler._runs, handler._models, handler._tasks, handler._at_work, handler._in_node)
    assert kept == ({}, {}, {}, {}, {})
    assert list(handler._prompts) == [None]  # the parent's own
