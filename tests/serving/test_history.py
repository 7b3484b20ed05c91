"""A thread after a reload and after a restart: from the store, in memory, on SQLite and PostgreSQL, or the checkpoint."""

import asyncio
from typing import Any

import httpx
import pytest
from byline import MemoryThreads, attribute
from byline.events import RunAgentInput
from byline.history import Part
from byline.stores import open_store
from permit.conftest import cluster, url  # noqa: F401 - fixtures
from serving_kit import asked, client, run, served, team


def plain(messages: Any, names: dict[str, str]) -> list[tuple[Any, ...]]:
    """Who, as what, said or called what."""
    lines = []
    for message in messages:
        wire = message if isinstance(message, dict) else message.model_dump(mode="json", by_alias=True)
        owner = names.get(wire.get("subagentRunId", ""), "-")
        calls = [call["function"]["name"] for call in wire.get("toolCalls") or ()]
        lines.append((owner, wire["role"], wire.get("content") or calls))
    return lines


async def events_of(agent: Any, wire: dict[str, Any]) -> list[Any]:
    return [event async for event in agent.run(RunAgentInput.model_validate(wire))]


FIRST = [
    ("-", "user", "hi"),
    ("-", "assistant", ["delegate", "delegate"]),
    ("alpha", "assistant", ["ask"]),
    ("beta", "assistant", ["ask"]),
]
SECOND = [
    ("-", "tool", "alpha: sub says hello"),
    ("-", "tool", "beta: sub says hello"),
    ("alpha", "tool", "yes"),
    ("alpha", "assistant", "alpha: sub says hello"),
    ("beta", "tool", "yes"),
    ("beta", "assistant", "beta: sub says hello"),
    ("-", "assistant", "all done"),
]


async def two_runs(threads: Any) -> None:
    agent = attribute(team(approval=True), threads=threads)
    first = await events_of(agent, asked("t", "r1"))
    history = await agent.history("t")
    names = {one.id: one.name for one in history.ledger.invocations}
    assert sorted(map(str, plain(history.messages, names))) == sorted(map(str, FIRST))
    assert plain(history.messages, names)[:2] == FIRST[:2]
    assert {one.status for one in history.ledger.invocations} == {"suspended"}
    assert sorted(names[owner] for owner in history.ledger.pending_interrupts) == ["alpha", "beta"]
    resume = [
        {"interruptId": one.id, "status": "resolved", "payload": "yes"}
        for one in first[-1].outcome.interrupts
    ]
    await events_of(agent, asked("t", "r2", resume=resume))


async def check(threads: Any) -> None:
    """Another process would see this: an agent that has run nothing."""
    agent = attribute(team(approval=True), threads=threads)
    history = await agent.history("t")
    names = {one.id: one.name for one in history.ledger.invocations}
    assert sorted(map(str, plain(history.messages, names))) == sorted(map(str, FIRST + SECOND))
    assert plain(history.messages, names)[0] == FIRST[0]
    assert plain(history.messages, names)[-1] == SECOND[-1]
    assert [(one.name, one.status) for one in history.ledger.invocations] == [
        (name, "finished") for name in names.values()
    ]
    assert history.ledger.refusals == ()
    assert history.snapshot().messages == list(history.messages)
    assert await agent.history("nobody") is None


def test_in_memory():
    threads = MemoryThreads()
    asyncio.run(two_runs(threads))
    asyncio.run(check(threads))
    threads.forget("t")
    assert threads.read("t") == []


def test_memory_forgets_the_threads_that_were_not_used_for_longest():
    threads = MemoryThreads(limit=25)
    for thread, number in (("a", 0), ("b", 0), ("a", 1), ("c", 0)):
        threads.append(Part(thread, "r", 1, number, None, "x" * 8))
    assert {thread: len(threads.read(thread)) for thread in "abc"} == {"a": 2, "b": 0, "c": 1}


def test_in_a_database(url: str):  # noqa: F811
    with open_store(url) as store:
        asyncio.run(two_runs(store.threads))
    with open_store(url) as store:  # a restart
        asyncio.run(check(store.threads))
        store.threads.forget("t")
        assert store.threads.read("t") == []


def test_from_the_checkpoint_where_nothing_was_kept():
    async def go() -> Any:
        agent = attribute(team())
        await events_of(agent, asked("t"))
        return await agent.history("t"), await agent.history("nobody")

    history, unknown = asyncio.run(go())
    assert unknown is None
    assert history.ledger is None
    assert plain(history.messages, {}) == [
        ("-", "user", "hi"),
        ("-", "assistant", ["delegate", "delegate"]),
        ("-", "tool", "alpha: sub says hello"),
        ("-", "tool", "beta: sub says hello"),
        ("-", "assistant", "all done"),
    ]


def test_what_a_client_does_not_see_is_not_in_its_history():
    async def go() -> Any:
        agent = attribute(team(), threads=MemoryThreads(), visibility={"alpha": "hidden"})
        await events_of(agent, asked("t"))
        return await agent.history("t")

    history = asyncio.run(go())
    assert [one.name for one in history.ledger.invocations] == ["beta"]


def test_a_store_that_fails_does_not_fail_the_run(caplog: pytest.LogCaptureFixture):
    class Broken:
        def append(self, part: Any) -> None:
            raise OSError("disk full")

        def read(self, thread_id: str) -> Any:
            return []

        def forget(self, thread_id: str) -> None: ...

    async def go() -> Any:
        agent = attribute(team(), threads=Broken())
        events = await events_of(agent, asked("t"))
        return events, await agent.history("t")

    events, history = asyncio.run(go())
    assert events[-1].outcome.type == "success"
    assert history.ledger is None  # the checkpoint's
    assert "could not be kept for its history" in caplog.text


def test_over_http_and_only_to_its_user():
    async def go(address: str) -> Any:
        async with client(address) as http:
            ann = {"x-user": "ann"}
            stream = await run(http, asked("t"), headers=ann)
            mine = await http.get("/threads/t", headers=ann)
            theirs = await http.get("/threads/t", headers={"x-user": "bob"})
            unknown = await http.get("/threads/u", headers=ann)
            return stream, mine, theirs, unknown

    with served(team(), threads=MemoryThreads(), user=lambda request: request.headers["x-user"]) as server:
        stream, mine, theirs, unknown = asyncio.run(go(server.url))
    body = mine.json()
    assert body["threadId"] == "t"
    names = {one["id"]: one["name"] for one in body["invocations"]}
    assert sorted(names.values()) == ["alpha", "beta"]
    assert plain(body["messages"], names)[0] == ("-", "user", "hi")
    assert body["runs"][0]["status"] == "finished"
    assert (theirs.status_code, theirs.json()["error"]["code"]) == (404, "no_such_thread")
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "no_such_thread")
    assert stream.types[-1] == "RUN_FINISHED"


def test_a_checkpoint_is_given_only_where_there_are_no_users():
    with served(team()) as server:
        httpx.post(server.url, json=asked("t"), trust_env=False)
        assert httpx.get(f"{server.url}/threads/t", trust_env=False).json()["threadId"] == "t"
    with served(team(), user=lambda request: "ann") as server:
        httpx.post(server.url, json=asked("t"), trust_env=False)
        assert httpx.get(f"{server.url}/threads/t", trust_env=False).status_code == 404
