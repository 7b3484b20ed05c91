"""What sharing runs between servers costs: CPU of served runs with and without `--store`, in one process.

    python benchmarks/workers.py [postgresql://...]

Twenty runs at a time whose model streams 300 words, a word every 5 ms, read by one reader each; CPU time of the whole
process, the threads that write into the database included (the database server's own is not), best of several rounds
taken in turn.  SQLite in a temporary folder, and PostgreSQL where its address is given.
"""

import asyncio
import contextlib
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

# Run as a script, this folder comes first on the path, and a file beside this one is called like a package it needs.
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]

from byline.events import RunAgentInput
from byline.history import MemoryThreads
from byline.stores import open_store
from byline_langgraph.scripted import Say, ScriptedModel
from langchain.agents import create_agent

RUNS, WORDS, ROUNDS = 20, 300, 3


def team() -> Any:
    return create_agent(ScriptedModel(script=[Say(" ".join(["word"] * WORDS), pause=0.005)]), [], name="main")


def asked(thread: str) -> RunAgentInput:
    message = {"id": "u", "role": "user", "content": "hi"}
    wire = {"threadId": thread, "runId": "r", "messages": [message], "tools": [], "context": []}
    return RunAgentInput.model_validate({**wire, "state": {}, "forwardedProps": {}})


async def served(url: str | None) -> tuple[float, float, int]:
    """Return seconds of CPU, seconds, and how many writing transactions there were for the logs."""
    from byline.agent import attribute
    from byline.serve._runs import Limits, Runs
    from byline.serve._shared import Sharing

    limits = Limits()
    with contextlib.ExitStack() as stack:
        store = None if url is None else stack.enter_context(open_store(url))
        agent = attribute(team(), threads=MemoryThreads())
        runs = Runs(agent, limits, None if store is None else Sharing(store, limits, None))
        appends = 0
        if store is not None:
            store.runs.beat("benchmark", 1)  # making the schema is not counted
            write = store.runs.append

            def counted(*args: Any) -> set[str]:
                nonlocal appends
                appends += 1
                return write(*args)

            store.runs.append = counted  # type: ignore[method-assign]

        async def one(number: int) -> None:
            live = await runs.begin(asked(f"{time.time_ns()}-{number}"), None)
            async with live.reading() as reader:
                while await reader.read(15) is not None:
                    pass

        cpu, wall = time.process_time(), time.perf_counter()
        await asyncio.gather(*(one(number) for number in range(RUNS)))
        spent = time.process_time() - cpu, time.perf_counter() - wall, appends
        await runs.close()
    return spent


def main(postgresql: str | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        stores = {"in memory": None, "SQLite": f"sqlite:///{Path(folder) / 'byline.db'}"}
        if postgresql is not None:
            stores["PostgreSQL"] = postgresql
        taken: dict[str, list[tuple[float, float, int]]] = {name: [] for name in stores}
        for _ in range(ROUNDS):
            for name, url in stores.items():
                taken[name].append(asyncio.run(served(url)))
        bare = min(cpu for cpu, _, _ in taken["in memory"])
        for name, rounds in taken.items():
            cpu, wall, appends = min(rounds)
            print(
                f"{name}: {1e3 * cpu:.0f} ms of CPU, {wall:.2f} s, {appends} transactions for {RUNS} runs: "
                f"+{100 * (cpu / bare - 1):.1f} %, +{1e6 * (cpu - bare) / RUNS / WORDS:.1f} µs a token"
            )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
