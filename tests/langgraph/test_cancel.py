"""Runs that are stopped: by their handle, by a consumer that goes away, with work still in a thread."""

import asyncio
import threading

from byline_langgraph.scripted import Say
from kit import Play, Trace, agent, ask, call, human, judge, said
from langchain_core.tools import tool


def team(pause=0.05):
    alpha = agent("alpha", Say("alpha one two three four", pause=pause))
    return agent(
        "boss",
        Say("boss asks", calls=[call("call_A", "ask_alpha", "qa")]),
        "boss done",
        tools=[ask(alpha, "ask_alpha")],
    )


class Watched(Play):
    """A play that also keeps what the observers see."""

    def __init__(self, target, **options):
        self.seen = []
        super().__init__(target, observers=[self.seen.append], **options)

    def lines(self):
        judge(self.seen)
        trace = Trace(self.names)
        for event in self.seen:
            trace.add(event)
            self.names.meet(event)
        return trace.lines


SPOKEN = [
    "start",
    "main says m1: 'boss asks'",
    'main calls call_A in m1: ask_alpha {"q": "qa"}',
    "alpha#1 opens as tool for main, call call_A in m1",
    "alpha#1 says m2: 'alpha '",
]


def test_a_run_that_is_cancelled_says_so():
    async def play():
        stage = Watched(team())
        run = stage.agent.run(stage.input())
        trace = Trace(stage.names, run)
        async for event in run:
            trace.add(event)
            stage.names.meet(event)
            if getattr(event, "delta", "") == "alpha ":
                await run.cancel("the user said stop")
        judge(trace.events)
        return trace, stage

    trace, stage = asyncio.run(play())
    assert trace.lines == [*SPOKEN, "alpha#1 fails cancelled: cancelled before it was over", "cancelled"]
    assert stage.lines() == trace.lines
    assert trace.run.error is None


def test_closing_a_run_tells_the_observers_how_it_ended():
    async def play():
        stage = Watched(team())
        run = stage.agent.run(stage.input())
        while getattr(await anext(run), "delta", "") != "alpha ":
            pass
        await run.aclose()
        return stage

    assert asyncio.run(play()).lines() == [
        *SPOKEN,
        "alpha#1 fails cancelled: cancelled before it was over",
        "cancelled",
    ]


def test_breaking_out_of_the_loop_stops_the_run():
    async def play():
        stage = Watched(team())
        async for event in stage.agent.run(stage.input()):
            if getattr(event, "delta", "") == "alpha ":
                break
        await asyncio.sleep(0.2)
        return stage

    assert asyncio.run(play()).lines() == [
        *SPOKEN,
        "alpha#1 fails cancelled: cancelled before it was over",
        "cancelled",
    ]


def test_cancelling_the_consumers_task_stops_the_run():
    async def play():
        stage = Watched(team())
        spoke = asyncio.Event()

        async def consume():
            async for event in stage.agent.run(stage.input()):
                if getattr(event, "delta", "") == "alpha ":
                    spoke.set()

        consumer = asyncio.create_task(consume())
        await spoke.wait()
        consumer.cancel()
        done = await asyncio.gather(consumer, return_exceptions=True)
        return stage, done

    stage, (outcome,) = asyncio.run(play())
    assert type(outcome) is asyncio.CancelledError
    assert stage.lines() == [*SPOKEN, "alpha#1 fails cancelled: cancelled before it was over", "cancelled"]


def test_a_subagent_in_a_thread_goes_on_after_the_run_and_is_not_heard():
    released = threading.Event()
    finished = threading.Event()

    @tool
    def wait(q: str) -> str:
        """Wait."""
        released.wait(10)
        return "waited"

    alpha = agent(
        "alpha", Say("alpha waits", calls=[call("call_W", "wait", "")]), "alpha answers late", tools=[wait]
    )

    @tool
    def ask_alpha(q: str) -> str:
        """Ask."""
        answer = said(alpha.invoke(human(q)))
        finished.set()
        return answer

    async def play():
        stage = Watched(
            agent("boss", Say("boss asks", calls=[call("call_A", "ask_alpha", "qa")]), tools=[ask_alpha])
        )
        run = stage.agent.run(stage.input())
        trace = Trace(stage.names, run)
        async for event in run:
            trace.add(event)
            stage.names.meet(event)
            if event.type == "TOOL_CALL_END" and event.tool_call_id == "call_W":
                await run.cancel()
                released.set()
        await asyncio.to_thread(finished.wait, 10)
        judge(trace.events)
        return trace, stage

    trace, stage = asyncio.run(play())
    assert finished.is_set()
    assert trace.lines == [
        "start",
        "main says m1: 'boss asks'",
        'main calls call_A in m1: ask_alpha {"q": "qa"}',
        "alpha#1 opens as tool for main, call call_A in m1",
        "alpha#1 says m2: 'alpha waits'",
        'alpha#1 calls call_W in m2: wait {"q": ""}',
        "alpha#1 fails cancelled: the run was cancelled",
        "cancelled",
    ]
    assert stage.lines() == trace.lines


def test_a_run_that_was_never_read_has_not_called_the_graph():
    alpha = team()

    async def play():
        stage = Watched(alpha)
        run = stage.agent.run(stage.input())
        await run.cancel()
        await run.aclose()
        return stage

    assert asyncio.run(play()).seen == []
