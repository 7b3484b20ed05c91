"""Several workers behind one address: real processes on one PostgreSQL, and on one SQLite file."""

import asyncio
import itertools
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from permit.conftest import cluster, url  # noqa: F401 - fixtures
from serving_kit import Stream, again, asked, client, frames, run
from workers_kit import began, launch, workers

WORDS = " ".join(f"word{number}" for number in range(60))


def said(stream: Stream) -> str:
    return "".join(one["delta"] for one in stream.events if one["type"] == "TEXT_MESSAGE_CONTENT")


async def cut_off(address: str, thread: str, after: int, **kwargs: Any) -> Stream:
    """Begin a run and cut the connection after so many events."""
    stream = Stream(0, httpx.Headers())
    async with client(address) as http, http.stream("POST", "/", json=asked(thread), **kwargs) as response:
        async for _ in frames(response, stream):
            if len(stream.events) == after:
                break
    return stream


async def follow(address: str, thread: str, last: int, arrived: list[float]) -> Stream:
    """Read the rest of a run; `arrived` gets the time of each event."""
    stream = Stream(0, httpx.Headers())
    async with client(address) as http:
        headers = {"Last-Event-ID": str(last)}
        async with http.stream("GET", f"/threads/{thread}/runs/r", headers=headers) as response:
            assert response.status_code == 200
            async for _ in frames(response, stream):
                arrived.append(time.monotonic())
    return stream


def test_a_run_is_followed_to_its_end_on_another_worker(tmp_path: Path, url: str):  # noqa: F811
    async def go(one: str, two: str) -> Any:
        first = await cut_off(one, "t", 12)
        arrived: list[float] = []
        rest = await follow(two, "t", first.ids[-1], arrived)
        async with client(two) as http:
            whole = await again(http, "t", "r")
            history = (await http.get("/threads/t")).json()
        async with client(one) as http:
            whole_there = await again(http, "t", "r")
        return first, rest, arrived, whole, whole_there, history

    # The grace is shorter than the run: it goes on because somebody reads it, at the other worker.
    with workers(tmp_path, "slow", url, 2, "--grace", "3") as (one, two):
        first, rest, arrived, whole, whole_there, history = asyncio.run(go(one.url, two.url))
        errors = one.errors() + two.errors()
    both = Stream(200, httpx.Headers(), first.events + rest.events, first.ids + rest.ids)
    assert both.ids == list(range(len(both.ids)))
    assert said(both) == WORDS
    assert both.faults() == []
    assert both.events[-1]["outcome"]["type"] == "success"
    assert whole.events == whole_there.events == both.events
    # Live: what came in over some seconds came in pieces, none of them long after it was written.
    gaps = [after - before for before, after in itertools.pairwise(arrived)]
    assert arrived[-1] - arrived[0] > 3
    assert max(gaps) < (2.0 if url.startswith("sqlite") else 1.0)
    assert history["messages"][-1]["content"] == WORDS
    assert began(tmp_path) == 1
    assert errors == ""


def test_two_starts_of_each_of_fifty_threads_give_one_run_each(tmp_path: Path, url: str):  # noqa: F811
    async def start(http: httpx.AsyncClient, thread: str, run_id: str) -> tuple[str, Any]:
        async with http.stream("POST", "/", json=asked(thread, run_id)) as response:
            if response.status_code != 200:
                await response.aread()
                return "refused", (response.status_code, response.json()["error"])
            stream = Stream(200, response.headers)
            async for _ in frames(response, stream):
                pass
            return "ran", stream

    async def go(one: str, two: str) -> list[Any]:
        async with client(one) as first, client(two) as second:
            return await asyncio.gather(
                *(
                    start(http, f"t{number}", run_id)
                    for number in range(50)
                    for http, run_id in ((first, "a"), (second, "b"))
                )
            )

    with workers(tmp_path, "slow", url) as (one, two):
        answers = asyncio.run(go(one.url, two.url))
        errors = one.errors() + two.errors()
    for number in range(50):
        of_a, of_b = answers[2 * number : 2 * number + 2]
        won, lost, winner = (of_a[1], of_b, "a") if of_a[0] == "ran" else (of_b[1], of_a, "b")
        assert (won.events[0]["runId"], said(won), won.faults()) == (winner, WORDS, [])
        assert lost == (
            "refused",
            (
                409,
                {
                    "code": "thread_busy",
                    "message": f"thread 't{number}' has a run under way",
                    "runId": winner,
                },
            ),
        )
    assert began(tmp_path) == 50
    assert errors == ""


def test_a_worker_that_is_killed(tmp_path: Path, url: str):  # noqa: F811
    """Its run ends as an error for who reads it, in the history too, and the thread can run again."""

    async def go(one: Any, two: str) -> Any:
        first = await cut_off(one.url, "t", 12)
        following = asyncio.create_task(follow(two, "t", first.ids[-1], []))
        await asyncio.sleep(1)
        async with client(two) as http:
            busy = await http.post("/", json=asked("t", "r2"))
        one.kill()
        killed = time.monotonic()
        rest = await following
        took = time.monotonic() - killed
        async with client(two) as http:
            history = (await http.get("/threads/t")).json()
            async with http.stream("POST", "/", json=asked("t", "r3")) as response:
                async for _ in frames(response, Stream(0, httpx.Headers())):
                    break
            status = response.status_code
            await http.delete("/threads/t/runs/r3")
            last = await again(http, "t", "r3")
        return first, rest, took, busy, history, status, last

    with workers(tmp_path, "endless", url) as (one, two):
        first, rest, took, busy, history, status, last = asyncio.run(go(one, two.url))
        errors = two.errors()
    both = Stream(200, httpx.Headers(), first.events + rest.events, first.ids + rest.ids)
    assert both.ids == list(range(len(both.ids)))
    assert (both.events[-1]["type"], both.events[-1]["code"]) == ("RUN_ERROR", "worker_lost")
    assert both.faults() == []
    assert took < 30
    assert (busy.status_code, busy.json()["error"]["runId"]) == (409, "r")
    assert [(one["runId"], one["status"]) for one in history["runs"]] == [("r", "failed")]
    assert status == 200
    assert last.events[-1]["outcome"] == {"type": "cancelled"}
    assert errors == ""


def test_a_thread_of_a_killed_worker_runs_again_at_one_that_starts_later(tmp_path: Path, url: str):  # noqa: F811
    async def begin(address: str) -> int:
        async with client(address) as http, http.stream("POST", "/", json=asked("t", "r2")) as response:
            return response.status_code

    with workers(tmp_path, "endless", url, 1) as (one,):
        asyncio.run(cut_off(one.url, "t", 8))
        one.kill()
        killed = time.monotonic()
        later = launch(tmp_path, "endless", url, "later")
        try:
            while (status := asyncio.run(begin(later.url))) == 409:
                assert time.monotonic() - killed < 30
                time.sleep(0.5)
        finally:
            later.process.terminate()
            later.process.communicate(timeout=20)
    assert status == 200


def test_a_run_is_stopped_and_left_alone_across_workers(tmp_path: Path, url: str):  # noqa: F811
    async def go(one: str, two: str) -> Any:
        await cut_off(one, "stopped", 8)
        await cut_off(one, "left", 8)
        async with client(two) as http:
            answer = await http.delete("/threads/stopped/runs/r")
            stopped = await again(http, "stopped", "r")
            nobody = await again(http, "stopped", "nothing")
        # Nobody comes back for the other one, at neither worker: it ends after its grace.  Only then it is looked at:
        # whoever reads a run, at whichever worker, keeps it going.
        async with client(one) as http:
            while (await http.get("/health")).json()["runs"]:
                await asyncio.sleep(0.1)
        async with client(two) as http:
            left = await again(http, "left", "r")
            busy = await http.post("/", json=asked("left", "r"))
        return answer.status_code, stopped, nobody, left, busy

    with workers(tmp_path, "endless", url, 2, "--grace", "2") as (one, two):
        answer, stopped, nobody, left, busy = asyncio.run(go(one.url, two.url))
    assert answer == 202
    assert (stopped.events[-1]["outcome"], stopped.faults()) == ({"type": "cancelled"}, [])
    assert nobody.status == 404
    assert (left.events[-1]["outcome"], left.faults()) == ({"type": "cancelled"}, [])
    assert busy.json()["error"]["code"] == "run_exists"


def test_an_answer_under_the_id_of_the_run_that_asked_at_another_worker(url: str):  # noqa: F811
    from byline.stores import open_store
    from serving_kit import served, team

    async def go(one: str, two: str) -> Any:
        async with client(one) as there, client(two) as here:
            first = await run(there, asked("t"))
            resume = [
                {"interruptId": asked_["id"], "status": "resolved", "payload": "yes"}
                for asked_ in first.events[-1]["outcome"]["interrupts"]
            ]
            unasked = await here.post("/", json=asked("t"))
            second = await run(here, asked("t", resume=resume))
            kept = await again(here, "t", "r")
            history = (await there.get("/threads/t")).json()
        return unasked, second, kept, history

    agent = team(approval=True)  # both have the one checkpointer
    with (
        open_store(url) as store,
        open_store(url) as other,
        served(agent, store=store) as one,
        served(agent, store=other) as two,
    ):
        unasked, second, kept, history = asyncio.run(go(one.url, two.url))
    assert (unasked.status_code, unasked.json()["error"]["code"]) == (409, "run_exists")
    assert second.events[-1]["outcome"] == {"type": "success"}
    assert kept.events == second.events
    assert [(one["runId"], one["status"]) for one in history["runs"]] == [
        ("r", "interrupted"),
        ("r", "finished"),
    ]


@pytest.mark.parametrize("who", ["ann", "bob"])
def test_a_run_of_another_user_is_not_there(tmp_path: Path, who: str):
    from byline.stores import open_store
    from serving_kit import served, team

    def user(request: Any) -> str:
        return str(request.headers["x-user"])

    async def go(one: str, two: str) -> Any:
        first = await cut_off(one, "t", 3, headers={"x-user": "ann"})
        async with client(two) as http:
            response = await http.get("/threads/t/runs/r", headers={"x-user": who})
            busy = await http.post("/", json=asked("t", "r2"), headers={"x-user": who})
        return first, response, busy

    address = f"sqlite:///{tmp_path / 'byline.db'}"
    with (
        open_store(address) as store,
        open_store(address) as other,
        served(team(pause=0.5), store=store, user=user) as one,
        served(team(pause=0.5), store=other, user=user) as two,
    ):
        _first, response, busy = asyncio.run(go(one.url, two.url))
    assert response.status_code == (200 if who == "ann" else 404)
    if who == "bob":
        assert busy.json()["error"] == {"code": "thread_busy", "message": "thread 't' has a run under way"}


def test_an_input_that_is_refused_leaves_its_thread_and_its_id_free(tmp_path: Path):
    from byline.stores import open_store
    from serving_kit import served, team

    bad = asked("t", resume=[{"interruptId": "nothing", "status": "resolved"}])

    async def go(address: str) -> Any:
        async with client(address) as http:
            codes = [(await http.post("/", json=bad)).status_code for _ in range(2)]
            nul = await http.post("/", json=asked("t\0"))
            return codes, nul.status_code, await run(http, asked("t"))

    with (
        open_store(f"sqlite:///{tmp_path / 'byline.db'}") as store,
        served(team(), store=store) as server,
    ):
        codes, nul, stream = asyncio.run(go(server.url))
    assert (codes, nul) == ([409, 409], 422)
    assert stream.types[-1] == "RUN_FINISHED"
