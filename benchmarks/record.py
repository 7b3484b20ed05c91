"""What recording costs: CPU of `graph.astream(stream_mode="messages")` with and without it, in one process.

    python benchmarks/record.py [rounds]

What the imports left in memory is frozen first.  Else a full garbage collection, which takes longer than all that is
measured, falls into every round that allocates a little more than the others, and into none of those.

The team is a supervisor with two subagents in parallel and models that say 200 words each, twice: with `scripted` models
that do no work at all, the hardest case there is for a ratio, and with a `real client`, LangChain's for OpenAI, whose
provider is a process of its own on loopback and costs nothing here.  Measured is the CPU time of the whole process, the
recorder's own thread and the end of the recording included, in rounds taken in turn.  `nothing` is a handler that does
nothing at all: what LangChain itself spends on handing every event to one more.  A ratio is that of the best rounds,
and, behind it, the median of the ratios within a turn.
"""

import asyncio
import contextlib
import gc
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar, copy_context
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

# Run as a script, this folder comes first on the path, and a file beside this one is called like a package it needs.
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]

from byline import record
from byline_langgraph.scripted import Say, ScriptedModel
from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tools import tool
from langchain_core.tracers.context import register_configure_hook
from langchain_openai import ChatOpenAI

COUNT = 200
WORDS = " ".join(["word"] * COUNT)
RUNS = 10

Model = Callable[[list[Say]], Any]
"""Makes a model of its script."""


def scripted(script: list[Say]) -> Any:
    return ScriptedModel(script=script)


@contextlib.contextmanager
def provider() -> Iterator[Model]:
    """Yield what makes real clients of a provider that knows the script by heart."""
    file = Path(__file__).with_name("provider.py")
    with subprocess.Popen([sys.executable, file, str(COUNT)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        try:
            yield lambda _script: ChatOpenAI(base_url=url, api_key="none", model="scripted")
        finally:
            process.kill()


def team(model: Model) -> Any:
    workers = {name: create_agent(model([Say(WORDS)]), [], name=name) for name in ("a", "b")}

    @tool
    async def delegate(name: str) -> str:
        """Delegate."""
        out = await workers[name].ainvoke({"messages": [("user", "go")]})
        return str(out["messages"][-1].content)

    calls = [("c1", "delegate", {"name": "a"}), ("c2", "delegate", {"name": "b"})]
    return create_agent(model([Say(calls=calls), Say(WORDS)]), [delegate], name="main")


async def streamed(app: Any) -> None:
    async for _ in app.astream({"messages": [("user", "hi")]}, stream_mode="messages", subgraphs=True):
        pass


async def invoked(app: Any) -> None:
    await app.ainvoke({"messages": [("user", "hi")]})


class Nothing(BaseCallbackHandler):
    """A handler as cheap as one can be."""

    run_inline = True
    ignore_retriever = ignore_retry = True
    ignore_llm = ignore_chat_model = ignore_chain = ignore_agent = ignore_custom_event = False

    def on_chat_model_start(self, *_args: Any, **_kwargs: Any) -> None:
        """Else LangChain falls back to `on_llm_start`."""


_nothing: ContextVar[Any] = ContextVar("nothing", default=None)
register_configure_hook(_nothing, inheritable=True)


@contextlib.contextmanager
def nothing() -> Iterator[None]:
    token = _nothing.set(Nothing())
    try:
        yield
    finally:
        _nothing.reset(token)


def cpu(
    loop: asyncio.Runner,
    job: Callable[[Any], Awaitable[None]],
    model: Model,
    observed: AbstractContextManager[Any],
) -> float:
    app = team(
        model
    )  # a new one: LangChain dumps the scripted model, with all it was ever asked, on every call

    async def go() -> None:
        for _ in range(RUNS):
            await job(app)

    with contextlib.ExitStack() as stack:
        stack.enter_context(observed)  # once per process: finding the plugins is not counted
        began = time.process_time()
        loop.run(go(), context=copy_context())  # else it is the loop's, which knows of no observer
        stack.close()  # writing what is left is
    return (time.process_time() - began) / RUNS


def compare(
    loop: asyncio.Runner,
    job: Callable[[Any], Awaitable[None]],
    kind: str,
    model: Model,
    rounds: int,
    folder: Path,
) -> None:
    ways: dict[str, Callable[[], AbstractContextManager[Any]]] = {
        "bare": contextlib.nullcontext,
        "nothing": nothing,
        "recorded": partial(record, folder / "run.jsonl"),
    }
    took: dict[str, list[float]] = {way: [] for way in ways}
    for observed in ways.values():
        cpu(loop, job, model, observed())
    gc.collect()
    gc.freeze()
    for number in range(rounds):
        for way in list(ways)[:: 1 if number % 2 else -1]:
            took[way].append(cpu(loop, job, model, ways[way]()))
    bare = took.pop("bare")
    print(f"{job.__name__}, {kind}: {min(bare) * 1e3:.1f} ms")
    for way, times in took.items():
        best = min(times) / min(bare) - 1
        middle = median(one / other for one, other in zip(times, bare, strict=True)) - 1
        print(f"  {way:10}{min(times) * 1e3:6.1f} ms {best:+7.1%} {middle:+8.1%}")


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder, provider() as real, asyncio.Runner() as loop:
        for job in (streamed, invoked):
            compare(loop, job, "scripted", scripted, rounds, Path(folder))
            compare(loop, job, "real client", real, rounds, Path(folder))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 25)
