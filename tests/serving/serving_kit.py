"""A real server (uvicorn in a thread), real connections, and a team whose models speak as slowly as a test wants."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import byline.serve
import httpx
import uvicorn
from byline.validator import Validator
from byline_langgraph.scripted import Say, ScriptedModel
from langchain.agents import create_agent
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import interrupt


def team(*, pause: float = 0.0, words: str = "sub says hello", approval: bool = False) -> Any:
    """A main agent that delegates to two parallel subagents; one of them may ask for approval."""

    @tool
    def ask(question: str) -> str:
        """Ask the user."""
        return str(interrupt({"question": question}))

    first = [Say(calls=[("c1", "ask", {"question": "ok?"})], pause=pause)] if approval else []
    subs = {
        name: create_agent(
            ScriptedModel(script=[*first, Say(f"{name}: {words}", pause=pause)], requests=[]),
            [ask],
            name=name,
        )
        for name in ("alpha", "beta")
    }

    @tool
    async def delegate(name: str) -> str:
        """Give a task to a subagent."""
        out = await subs[name].ainvoke({"messages": [("user", "go")]})
        return str(out["messages"][-1].content)

    calls = [("m1", "delegate", {"name": "alpha"}), ("m2", "delegate", {"name": "beta"})]
    return create_agent(
        ScriptedModel(script=[Say(calls=calls), Say("all done")], requests=[]),
        [delegate],
        name="main",
        checkpointer=InMemorySaver(),
    )


def asked(thread: str, run: str = "r", **more: Any) -> dict[str, Any]:
    return {
        "threadId": thread,
        "runId": run,
        "messages": [{"id": f"u-{thread}", "role": "user", "content": "hi"}],
        "tools": [],
        "context": [],
        "state": {},
        "forwardedProps": {},
        **more,
    }


@dataclass
class Served:
    url: str
    app: Any
    loop: asyncio.AbstractEventLoop

    def tasks(self) -> list[str]:
        """The names of byline's own tasks that are alive in the server."""
        return [
            task.get_name() for task in asyncio.all_tasks(self.loop) if task.get_name().startswith("byline")
        ]


@contextmanager
def served(agent: Any, **options: Any) -> Iterator[Served]:
    application = byline.serve.app(agent, **options)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(application, log_level="error", timeout_graceful_shutdown=2, lifespan="on")
    )
    loops: list[asyncio.AbstractEventLoop] = []

    async def main() -> None:
        loops.append(asyncio.get_running_loop())
        await server.serve(sockets=[listening])

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield Served(f"http://127.0.0.1:{listening.getsockname()[1]}", application, loops[0])
    finally:
        server.should_exit = True
        thread.join(20)
        listening.close()


@dataclass
class Stream:
    status: int
    headers: httpx.Headers
    events: list[dict[str, Any]] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    comments: int = 0

    @property
    def types(self) -> list[str]:
        return [event["type"] for event in self.events]

    def text(self, name: str) -> str:
        """What a subagent said."""
        tags = {
            one["subagentRunId"]
            for one in self.events
            if one["type"] == "SUBAGENT_STARTED" and one["name"] == name
        }
        return "".join(
            one["delta"]
            for one in self.events
            if one["type"] == "TEXT_MESSAGE_CONTENT" and one.get("subagentRunId") in tags
        )

    def faults(self) -> list[str]:
        judge = Validator()
        found = [one for event in self.events for one in judge.feed(event)] + list(judge.finish())
        return [f"{one.rule}: {one.message}" for one in found if one.level == "error"]


async def frames(response: httpx.Response, into: Stream) -> AsyncIterator[dict[str, Any]]:
    async for line in response.aiter_lines():
        if line.startswith("id: "):
            into.ids.append(int(line[4:]))
        elif line.startswith("data: "):
            into.events.append(json.loads(line[6:]))
            yield into.events[-1]
        elif line.startswith(":"):
            into.comments += 1


async def read(response: httpx.Response) -> Stream:
    stream = Stream(response.status_code, response.headers)
    async for _ in frames(response, stream):
        pass
    return stream


@asynccontextmanager
async def client(url: str) -> AsyncIterator[httpx.AsyncClient]:
    # No connection is used twice: the server may close one that has been idle just when it is used again.
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    async with httpx.AsyncClient(base_url=url, timeout=60, limits=limits, trust_env=False) as http:
        yield http


async def run(http: httpx.AsyncClient, wire: dict[str, Any], **kwargs: Any) -> Stream:
    async with http.stream("POST", "/", json=wire, **kwargs) as response:
        return await read(response)


async def again(http: httpx.AsyncClient, thread: str, run_id: str, last: int | None = None) -> Stream:
    headers = {} if last is None else {"Last-Event-ID": str(last)}
    async with http.stream("GET", f"/threads/{thread}/runs/{run_id}", headers=headers) as response:
        if response.status_code != 200:
            await response.aread()
            return Stream(response.status_code, response.headers, [response.json()])
        return await read(response)
