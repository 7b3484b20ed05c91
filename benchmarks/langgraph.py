"""What the whole event stream costs over the graph's own message stream.

    python benchmarks/langgraph.py

One supervisor with four parallel subagents that say two thousand words; scripted models, so that nothing but the
framework and the observer costs anything.  Measured are, in one process and in turns, the CPU time of

* `graph.astream(..., stream_mode="messages", subgraphs=True)`, the cheapest way to see the words at all,
* `attribute(graph).run(...)`, every event of the run, attributed,
* `LangGraphAgent.run(...)` of ag-ui-langgraph, where it is installed, with subagents attributed and without raw
  events, which is its cheapest setting that says whose words they are.

The ratios are those of the best of several rounds.  The first column is the target: at most 1.05.
"""

import asyncio
import gc
import importlib.util
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

# Run as a script, this folder comes first on the path, and this file is called like the package that it measures.
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]

from ag_ui.core import RunAgentInput
from byline import attribute
from byline_langgraph import _plugin
from byline_langgraph.scripted import Say, ScriptedModel
from langchain.agents import create_agent
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

SUBAGENTS = 4
WORDS = 500
ROUNDS = 9


def subagent(name: str) -> Any:
    text = " ".join(f"{name}{number}" for number in range(WORDS))
    worker = create_agent(ScriptedModel(script=[Say(text)]), [], name=name)

    @tool(f"ask_{name}")
    async def ask(q: str) -> str:
        """Ask."""
        return (await worker.ainvoke({"messages": [("user", q)]}))["messages"][-1].text

    return ask


def supervisor() -> Any:
    names = [f"worker{number}" for number in range(SUBAGENTS)]
    calls = [(f"call_{name}", f"ask_{name}", {"q": "go"}) for name in names]
    llm = ScriptedModel(script=[Say("asking", calls=calls), Say("done")])
    return create_agent(llm, [subagent(name) for name in names], name="boss", checkpointer=InMemorySaver())


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


async def plain(graph: Any, thread: str) -> int:
    config = {"configurable": {"thread_id": thread}}
    count = 0
    async for _ in graph.astream(
        {"messages": [("user", "go")]}, config, stream_mode="messages", subgraphs=True
    ):
        count += 1
    return count


async def attributed(agent: Any, thread: str) -> int:
    count = 0
    async for _ in agent.run(run_input(thread)):
        count += 1
    return count


def contenders() -> dict[str, Callable[[str], Awaitable[int]]]:
    graph = supervisor()
    agent = attribute(graph, plugins=[] if _installed() else [_plugin])
    found: dict[str, Callable[[str], Awaitable[int]]] = {
        "astream(messages)": lambda thread: plain(graph, thread),
        "byline": lambda thread: attributed(agent, thread),
    }
    if importlib.util.find_spec("ag_ui_langgraph") and importlib.util.find_spec("fastapi"):
        from ag_ui_langgraph import LangGraphAgent

        other = LangGraphAgent(
            name="boss", graph=graph, subagent_visibility="attributed", emit_raw_events=False
        )
        found["ag-ui-langgraph"] = lambda thread: attributed(other, thread)
    return found


def _installed() -> bool:
    from byline.hooks import Plugins

    return "langgraph" in Plugins().names


def main() -> None:
    found = contenders()
    best = dict.fromkeys(found, float("inf"))
    events = dict.fromkeys(found, 0)
    for number in range(ROUNDS):
        for name, contender in found.items():
            gc.collect()
            began = time.process_time()
            events[name] = asyncio.run(contender(f"{name}-{number}"))
            best[name] = min(best[name], time.process_time() - began)
    base = best["astream(messages)"]
    print(f"{SUBAGENTS} parallel subagents, {SUBAGENTS * WORDS} words, best of {ROUNDS}, CPU time\n")
    print(f"{'':20}{'ratio':>8}{'ms':>10}{'items':>8}")
    for name in found:
        print(f"{name:20}{best[name] / base:8.2f}{best[name] * 1000:10.1f}{events[name]:8}")


if __name__ == "__main__":
    main()
