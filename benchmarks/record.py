"""What recording costs: CPU of `graph.astream(stream_mode="messages")` with and without it, in one process.

    python benchmarks/record.py [rounds]

What the imports left in memory is frozen first.  Else a full garbage collection, which takes longer than all that is
measured, falls into every round that allocates a little more than the others, and into none of those.

The team is a supervisor with two subagents in parallel and models that stream 200 words each; CPU time of the whole
process, the recorder's own thread included, best of several rounds taken in turn.
"""

import asyncio
import contextlib
import gc
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

# Run as a script, this folder comes first on the path, and a file beside this one is called like a package it needs.
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]

from byline import record
from byline_langgraph.scripted import Say, ScriptedModel
from langchain.agents import create_agent
from langchain_core.tools import tool

WORDS = " ".join(["word"] * 200)
RUNS = 10


def team() -> Any:
    workers = {name: create_agent(ScriptedModel(script=[Say(WORDS)]), [], name=name) for name in ("a", "b")}

    @tool
    async def delegate(name: str) -> str:
        """Delegate."""
        out = await workers[name].ainvoke({"messages": [("user", "go")]})
        return str(out["messages"][-1].content)

    calls = [("c1", "delegate", {"name": "a"}), ("c2", "delegate", {"name": "b"})]
    return create_agent(ScriptedModel(script=[Say(calls=calls), Say(WORDS)]), [delegate], name="main")


async def streamed(app: Any) -> None:
    async for _ in app.astream({"messages": [("user", "hi")]}, stream_mode="messages", subgraphs=True):
        pass


async def invoked(app: Any) -> None:
    await app.ainvoke({"messages": [("user", "hi")]})


def cpu(job: Callable[[Any], Awaitable[None]], path: Path | None) -> float:
    app = team()  # a new one: LangChain dumps the scripted model, with all it was ever asked, on every call

    async def go() -> None:
        for _ in range(RUNS):
            await job(app)

    with contextlib.ExitStack() as stack:
        if path is not None:
            stack.enter_context(record(path))  # once per process: finding the plugins is not counted
        began = time.process_time()
        asyncio.run(go())
        stack.close()  # writing what is left is
    return (time.process_time() - began) / RUNS


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for job in (streamed, invoked):
            path = Path(folder) / f"{job.__name__}.jsonl"
            bare, recorded = [], []
            cpu(job, path)
            gc.collect()
            gc.freeze()
            for _ in range(rounds):
                bare.append(cpu(job, None))
                recorded.append(cpu(job, path))
            added = 100 * (min(recorded) / min(bare) - 1)
            print(
                f"{job.__name__}: {min(bare) * 1e3:.1f} ms, recorded {min(recorded) * 1e3:.1f} ms: +{added:.1f} %"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
