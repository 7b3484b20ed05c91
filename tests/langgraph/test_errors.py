"""Failures, caught and fatal, retries and limits."""

import asyncio
import time

from byline_langgraph.scripted import Say
from kit import Play, agent, ask, call, human, model, said
from langchain.agents.middleware import ToolRetryMiddleware, wrap_tool_call
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import RetryPolicy


@tool
def break_it(q: str) -> str:
    """Break."""
    raise ValueError(f"{q} is broken")


def boss(*calls, tools, **options):
    return agent("boss", Say("boss asks", calls=calls), "boss done", tools=tools, **options)


def breaker():
    return agent("alpha", Say("alpha tries", calls=[call("call_T", "break_it", "it")]), tools=[break_it])


OPENED = [
    "start",
    "main says m1: 'boss asks'",
    'main calls call_A in m1: ask_alpha {"q": "qa"}',
    "alpha#1 opens as tool for main, call call_A in m1",
]


def test_a_subagents_tool_fails_and_nobody_catches_it():
    play = Play(boss(call("call_A", "ask_alpha", "qa"), tools=[ask(breaker(), "ask_alpha")]))
    trace = play.run()
    assert trace.lines == [
        *OPENED,
        "alpha#1 says m2: 'alpha tries'",
        'alpha#1 calls call_T in m2: break_it {"q": "it"}',
        "alpha#1 fails ValueError: it is broken",
        "run fails ValueError: it is broken",
    ]
    assert (type(trace.run.error), str(trace.run.error)) == (ValueError, "it is broken")


def test_a_subagents_model_fails_in_the_middle_of_a_sentence():
    alpha = agent("alpha", Say("alpha has half a", fails=RuntimeError("provider gone")))
    assert Play(boss(call("call_A", "ask_alpha", "qa"), tools=[ask(alpha, "ask_alpha")])).run().lines == [
        *OPENED,
        "alpha#1 says m2: 'alpha has half a'",
        "alpha#1 fails RuntimeError: provider gone",
        "run fails RuntimeError: provider gone",
    ]


def test_the_parents_model_fails_in_the_middle_of_a_sentence():
    graph = agent(None, Say("main has half a", fails=RuntimeError("provider gone")))
    assert Play(graph).run().lines == [
        "start",
        "main says m1: 'main has half a'",
        "run fails RuntimeError: provider gone",
    ]


def test_a_failure_cuts_off_what_runs_beside_it():
    slow = agent("beta", Say("beta is slow", pause=0.05), Say("never"), tools=[])
    alpha = agent("alpha", Say("", fails=RuntimeError("provider gone"), pause=0.02))
    team = boss(
        call("call_A", "ask_alpha", "qa"),
        call("call_B", "ask_beta", "qb"),
        tools=[ask(alpha, "ask_alpha"), ask(slow, "ask_beta")],
    )
    lanes = Play(team).run().lanes
    assert lanes == {
        "run": ["start", "fails RuntimeError: provider gone"],
        "main": [
            "says m1: 'boss asks'",
            'calls call_A+ in m1: ask_alpha {"q": "qa"}',
            'calls call_B+ in m1: ask_beta {"q": "qb"}',
            "calls +call_A",
            "calls +call_B",
        ],
        "alpha#1": ["opens as tool for main, call call_A in m1", "fails RuntimeError: provider gone"],
        "beta#1": [
            "opens as tool for main, call call_B in m1",
            "fails cancelled: cancelled before it was over",
        ],
    }


def test_a_tool_node_catches_the_failure():
    llm = model(Say("boss asks", calls=[call("call_A", "ask_alpha", "qa")]), "boss done")

    async def think(state: MessagesState) -> dict:
        return {"messages": [await llm.ainvoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("think", think)
    builder.add_node("tools", ToolNode([ask(breaker(), "ask_alpha")], handle_tool_errors="alpha could not"))
    builder.add_edge(START, "think")
    builder.add_conditional_edges("think", tools_condition)
    builder.add_edge("tools", "think")
    assert Play(builder.compile()).run().lines == [
        *OPENED,
        "alpha#1 says m2: 'alpha tries'",
        'alpha#1 calls call_T in m2: break_it {"q": "it"}',
        "alpha#1 fails ValueError: it is broken",
        "main hears call_A: 'alpha could not'",
        "main says m3: 'boss done'",
        "end pending call_T",
    ]


@wrap_tool_call
async def apologise(request, handler):
    """Turn a failure into an answer."""
    try:
        return await handler(request)
    except ValueError as fault:
        return ToolMessage(f"sorry: {fault}", tool_call_id=request.tool_call["id"], status="error")


def test_a_middleware_catches_the_failure():
    team = boss(
        call("call_A", "ask_alpha", "qa"), tools=[ask(breaker(), "ask_alpha")], middleware=[apologise]
    )
    assert Play(team).run().lines == [
        *OPENED,
        "alpha#1 says m2: 'alpha tries'",
        'alpha#1 calls call_T in m2: break_it {"q": "it"}',
        "alpha#1 fails ValueError: it is broken",
        "main hears call_A: 'sorry: it is broken'",
        "main says m3: 'boss done'",
        "end pending call_T",
    ]


def test_a_subagent_catches_its_own_tools_failure():
    alpha = agent(
        "alpha",
        Say("alpha tries", calls=[call("call_T", "break_it", "it")]),
        "alpha is sorry",
        tools=[break_it],
        middleware=[apologise],
    )
    assert Play(boss(call("call_A", "ask_alpha", "qa"), tools=[ask(alpha, "ask_alpha")])).run().lines == [
        *OPENED,
        "alpha#1 says m2: 'alpha tries'",
        'alpha#1 calls call_T in m2: break_it {"q": "it"}',
        "alpha#1 hears call_T: 'sorry: it is broken'",
        "alpha#1 says m3: 'alpha is sorry'",
        "alpha#1 returns 'alpha is sorry'",
        "main hears call_A: 'alpha is sorry'",
        "main says m4: 'boss done'",
        "end",
    ]


def test_a_call_of_a_tool_that_does_not_exist():
    team = boss(call("call_A", "ask_nobody", "qa"), tools=[ask(breaker(), "ask_alpha")])
    assert Play(team).run().lines == [
        "start",
        "main says m1: 'boss asks'",
        'main calls call_A in m1: ask_nobody {"q": "qa"}',
        "main hears call_A: 'Error: ask_nobody is not a valid tool, try one of [ask_alpha].'",
        "main says m2: 'boss done'",
        "end",
    ]


def fails_once():
    """Two agents of one name: the first attempt breaks off, the second one answers."""
    agents = [
        agent("alpha", Say("alpha has half a", fails=RuntimeError("provider gone"))),
        agent("alpha", "alpha answers"),
    ]
    return lambda: agents.pop(0)


def test_a_node_that_is_tried_again():
    attempt = fails_once()

    async def work(state: MessagesState) -> dict:
        return {"messages": [("ai", said(await attempt().ainvoke(human("qa"))))]}

    builder = StateGraph(MessagesState)
    policy = RetryPolicy(max_attempts=2, initial_interval=0.01, jitter=False, retry_on=RuntimeError)
    builder.add_node("work", work, retry_policy=policy)
    builder.add_edge(START, "work")
    assert Play(builder.compile()).run().all == [
        "start",
        "main step +work",
        "alpha#1 opens as subgraph for main",
        "alpha#1 step +model",
        "alpha#1 says m1: 'alpha has half a'",
        "alpha#1 step -model",
        "alpha#1 fails RuntimeError: provider gone",
        "main step -work",
        "main step +work",
        "alpha#2 opens as subgraph for main",
        "alpha#2 step +model",
        "alpha#2 says m2: 'alpha answers'",
        "alpha#2 step -model",
        "alpha#2 returns 'alpha answers'",
        "main step -work",
        "end",
    ]


def test_a_tool_that_is_tried_again():
    attempt = fails_once()

    @tool
    async def ask_alpha(q: str) -> str:
        """Ask."""
        return said(await attempt().ainvoke(human(q)))

    retry = ToolRetryMiddleware(max_retries=1, initial_delay=0.01, jitter=False)
    assert Play(
        boss(call("call_A", "ask_alpha", "qa"), tools=[ask_alpha], middleware=[retry])
    ).run().lines == [
        *OPENED,
        "alpha#1 says m2: 'alpha has half a'",
        "alpha#1 fails RuntimeError: provider gone",
        "alpha#2 opens as tool for main, call call_A in m1",
        "alpha#2 says m3: 'alpha answers'",
        "alpha#2 returns 'alpha answers'",
        "main hears call_A: 'alpha answers'",
        "main says m4: 'boss done'",
        "end",
    ]


def test_a_subagent_that_runs_into_its_recursion_limit():
    @tool
    def again(q: str) -> str:
        """Again."""
        return "again"

    alpha = agent("alpha", Say("alpha loops", calls=[call("call_L", "again", "it")]), tools=[again])
    team = boss(
        call("call_A", "ask_alpha", "qa"), tools=[ask(alpha, "ask_alpha", config={"recursion_limit": 2})]
    )
    limit = (
        "Recursion limit of 2 reached without hitting a stop condition. You can increase the limit by setting the "
        "`recursion_limit` config key.\nFor troubleshooting, visit: "
        "https://docs.langchain.com/oss/python/langgraph/errors/GRAPH_RECURSION_LIMIT"
    )
    assert Play(team).run().lines == [
        *OPENED,
        "alpha#1 says m2: 'alpha loops'",
        'alpha#1 calls call_L in m2: again {"q": "it"}',
        "alpha#1 hears call_L: 'again'",
        f"alpha#1 fails GraphRecursionError: {limit}",
        f"run fails GraphRecursionError: {limit}",
    ]


def test_a_child_that_outlives_the_call_it_was_started_in():
    children = []
    beta = agent("beta", Say("beta takes its time", pause=0.01))

    @tool
    async def start_beta(q: str) -> str:
        """Start."""
        children.append(asyncio.create_task(beta.ainvoke(human(q))))
        await asyncio.sleep(0.02)
        return "beta is on it"

    @tool
    async def wait_for_beta(q: str) -> str:
        """Wait."""
        await asyncio.gather(*children)
        return "beta is there"

    graph = agent(
        None,
        Say("", calls=[call("call_B", "start_beta", "qb")]),
        Say("", calls=[call("call_W", "wait_for_beta", "")]),
        "main done",
        tools=[start_beta, wait_for_beta],
    )
    assert Play(graph).run().lanes == {
        "run": ["start", "end"],
        "main": [
            'calls call_B in m1: start_beta {"q": "qb"}',
            "hears call_B: 'beta is on it'",
            'calls call_W in m2: wait_for_beta {"q": ""}',
            "hears call_W: 'beta is there'",
            "says m3: 'main done'",
        ],
        "beta#1": [
            "opens as tool for main, call call_B in m1",
            "says m4: 'beta takes its time'",
            "returns 'beta takes its time'",
        ],
    }


def test_a_child_that_nobody_waits_for_is_cut_off_with_the_run():
    async def play():
        children = []
        beta = agent("beta", Say("beta takes its time", pause=0.2))

        @tool
        async def start_beta(q: str) -> str:
            """Start."""
            children.append(asyncio.create_task(beta.ainvoke(human(q))))
            await asyncio.sleep(0.1)
            return "beta is on it"

        team = agent(
            None, Say("", calls=[call("call_B", "start_beta", "qb")]), "main done", tools=[start_beta]
        )
        trace = await Play(team).arun()
        children[0].cancel()
        await asyncio.gather(*children, return_exceptions=True)
        return trace

    assert asyncio.run(play()).lines == [
        "start",
        'main calls call_B in m1: start_beta {"q": "qb"}',
        "beta#1 opens as tool for main, call call_B in m1",
        "main hears call_B: 'beta is on it'",
        "main says m2: 'main done'",
        "beta#1 fails cancelled: still at work when the run ended",
        "end",
    ]


def test_the_time_a_sync_tool_takes_stops_nobody_else():
    """A sync subagent works in a thread, and what it says arrives in order under its name."""

    @tool
    def wait(q: str) -> str:
        """Wait."""
        time.sleep(0.05)
        return "waited"

    alpha = agent(
        "alpha", Say("alpha waits", calls=[call("call_W", "wait", "")]), "alpha answers", tools=[wait]
    )
    beta = agent("beta", "beta answers")
    team = boss(
        call("call_A", "ask_alpha", "qa"),
        call("call_B", "ask_beta", "qb"),
        tools=[ask(alpha, "ask_alpha", sync=True), ask(beta, "ask_beta", sync=True)],
    )
    lanes = Play(team).run().lanes
    assert lanes["alpha#1"] == [
        "opens as tool for main, call call_A in m1",
        "says m3: 'alpha waits'",
        'calls call_W in m3: wait {"q": ""}',
        "hears call_W: 'waited'",
        "says m4: 'alpha answers'",
        "returns 'alpha answers'",
    ]
    assert lanes["beta#1"] == [
        "opens as tool for main, call call_B in m1",
        "says m5: 'beta answers'",
        "returns 'beta answers'",
    ]
