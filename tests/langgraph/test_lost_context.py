"""Agents in threads that do not know their caller: noticed, told once in a run, with the cure."""

import asyncio
import contextvars
import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from byline_langgraph import _lost
from byline_langgraph.scripted import Say
from kit import Play, agent, call, human, said
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool


def asking(how, times=1):
    calls = [call(f"call_{number}", "ask_alpha") for number in range(times)]
    return agent("boss", Say("go", calls=calls), "done", tools=[how])


def told(trace):
    return [event.value for event in trace.events if event.type == "CUSTOM"]


def test_a_subagent_in_a_thread_without_the_context(caplog):
    alpha = agent("alpha", "alpha answers")

    @tool
    def ask_alpha(q: str) -> str:
        """Ask."""
        with ThreadPoolExecutor(1, thread_name_prefix="pool") as pool:
            return said(pool.submit(alpha.invoke, human(q)).result())

    with caplog.at_level(logging.WARNING, "byline"):
        trace = Play(asking(ask_alpha)).run()
    assert trace.lines == [
        "start",
        "main says m1: 'go'",
        'main calls call_0 in m1: ask_alpha {"q": ""}',
        f'main custom byline.lost-context: {{"name": "alpha", "thread": "pool_0", "cure": "{_lost.CURE}"}}',
        "main hears call_0: 'alpha answers'",
        "main says m2: 'done'",
        "end",
    ]
    [record] = [record for record in caplog.records if record.name == "byline"]
    assert "alpha started in thread pool_0 without the context of its caller" in record.getMessage()


def test_it_is_told_once_in_a_run():
    alpha = agent("alpha", "alpha answers")

    @tool
    async def ask_alpha(q: str) -> str:
        """Ask."""
        return said(await asyncio.get_running_loop().run_in_executor(None, alpha.invoke, human(q)))

    play = Play(asking(ask_alpha, times=3))
    assert len(told(play.run())) == 1
    assert len(told(play.run())) == 1


def _copied(alpha, q, config):
    context = contextvars.copy_context()
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(context.run, alpha.invoke, human(q)).result()


def _configured(alpha, q, config):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(alpha.invoke, human(q), config).result()


@pytest.mark.parametrize("cure", [_copied, _configured])
def test_the_cures_work(cure):
    alpha = agent("alpha", "alpha answers")

    @tool
    def ask_alpha(q: str, config: RunnableConfig) -> str:
        """Ask."""
        return said(cure(alpha, q, config))

    trace = Play(asking(ask_alpha)).run()
    assert told(trace) == []
    assert "alpha#1 says m2: 'alpha answers'" in trace.lines


def test_work_that_belongs_to_nobody_is_left_alone():
    """What runs in a thread when no run is under way is none of our business."""
    alpha = agent("alpha", "alpha answers")
    answers = []
    thread = threading.Thread(target=lambda: answers.append(said(alpha.invoke(human("q")))))
    thread.start()
    thread.join()
    assert answers == ["alpha answers"]
    assert _lost._active == {}


def test_two_runs_at_once_are_not_told_what_nobody_can_know(caplog):
    alpha = agent("alpha", "alpha answers")
    both = threading.Barrier(2, timeout=10)

    @tool
    def ask_alpha(q: str) -> str:
        """Ask."""
        both.wait()
        with ThreadPoolExecutor(1) as pool:
            answer = said(pool.submit(alpha.invoke, human(q)).result())
        both.wait()
        return answer

    play = Play(asking(ask_alpha))

    async def twice():
        return await asyncio.gather(play.arun(), play.arun())

    with caplog.at_level(logging.WARNING, "byline"):
        traces = asyncio.run(twice())
    assert [told(trace) for trace in traces] == [[], []]
    assert len([record for record in caplog.records if record.name == "byline"]) == 1
