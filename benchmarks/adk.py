"""What the whole event stream costs over `run_async`.

    python benchmarks/adk.py

One agent that streams two thousand words; a scripted model, so that nothing but the framework and the observer costs
anything.  Measured are, in one process and in turns, the CPU time of

* `runner.run_async(...)`, its events thrown away,
* `attribute(runner).run(...)`, every event of the run, attributed,
* `ADKAgent.run(...)` of ag-ui-adk, where it is installed, which attributes nothing.

The ratios are those of the best of several rounds.  The target of the second: at most 1.05, before google-adk 2.7
(where a model run has to be stamped) 1.10.
"""

import asyncio
import gc
import importlib.util
import logging
import sys
import time
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

# Run as a script, this folder comes first on the path.
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]
warnings.simplefilter("ignore")

from ag_ui.core import RunAgentInput
from byline import attribute
from byline_adk.scripted import Say, ScriptedLlm
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

WORDS = 2000
ROUNDS = 25

logging.disable(logging.WARNING)


def root() -> LlmAgent:
    text = " ".join(f"word{number}" for number in range(WORDS))
    return LlmAgent(name="root", model=ScriptedLlm(script=[Say(text)], requests=[]))


def runner() -> Runner:
    return Runner(app_name="bench", agent=root(), session_service=InMemorySessionService())


def run_input(thread: str) -> RunAgentInput:
    return RunAgentInput.model_validate(
        {
            "threadId": thread,
            "runId": f"run-{thread}",
            "state": {},
            "messages": [{"id": f"u-{thread}", "role": "user", "content": "go"}],
            "tools": [],
            "context": [],
            "forwardedProps": {},
        }
    )


async def plain(target: Runner, thread: str) -> int:
    await target.session_service.create_session(app_name="bench", user_id="user", session_id=thread)
    message = types.Content(role="user", parts=[types.Part(text="go")])
    config = RunConfig(streaming_mode=StreamingMode.SSE)
    count = 0
    async for _ in target.run_async(
        user_id="user", session_id=thread, new_message=message, run_config=config
    ):
        count += 1
    return count


async def attributed(agent: Any, thread: str) -> int:
    count = 0
    async for _ in agent.run(run_input(thread)):
        count += 1
    return count


def ours() -> Callable[[str], Awaitable[int]]:
    agent = attribute(runner())
    return lambda thread: attributed(agent, thread)


def official() -> Callable[[str], Awaitable[int]] | None:
    if importlib.util.find_spec("ag_ui_adk") is None:
        return None
    from ag_ui_adk import ADKAgent

    agent = ADKAgent(adk_agent=root(), app_name="bench", user_id="user", use_in_memory_services=True)
    return lambda thread: attributed(agent, thread)


def measure(ways: dict[str, Callable[[str], Awaitable[int]]]) -> dict[str, tuple[float, int]]:
    """Return the least CPU seconds of each way, and how many events it gave."""
    best: dict[str, tuple[float, int]] = {}
    for round_ in range(ROUNDS + 1):
        for name, way in ways.items():
            gc.collect()
            begin = time.process_time()
            count = asyncio.run(_whole(way, f"{name}-{round_}"))
            spent = time.process_time() - begin
            if round_ and (name not in best or spent < best[name][0]):  # the first round warms up
                best[name] = (spent, count)
    return best


async def _whole(way: Callable[[str], Awaitable[int]], thread: str) -> int:
    return await way(thread)


def main() -> None:
    target = runner()
    ways: dict[str, Callable[[str], Awaitable[int]]] = {
        "run_async": lambda thread: plain(target, thread),
        "byline": ours(),
    }
    other = official()
    if other is not None:
        ways["ag-ui-adk"] = other
    best = measure(ways)
    base = best["run_async"][0]
    print(f"{'':12}{'CPU ms':>9}{'ratio':>8}{'us/word':>9}{'events':>8}")
    for name, (spent, count) in best.items():
        print(f"{name:12}{spent * 1e3:9.1f}{spent / base:8.3f}{spent / WORDS * 1e6:9.1f}{count:8}")


if __name__ == "__main__":
    main()
