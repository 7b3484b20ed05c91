"""The endpoint over real connections."""

import asyncio
import json
from typing import Any

import httpx
import pytest
from serving_kit import Stream as _Stream
from serving_kit import again, asked, client, frames, read, run, served, team

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


def test_a_run_is_streamed_with_its_owners():
    async def go(url: str) -> Any:
        async with client(url) as http:
            return await run(http, asked("t"))

    with served(team()) as server:
        stream = asyncio.run(go(server.url))
        left = server.tasks()
    assert stream.status == 200
    assert stream.headers["content-type"].startswith("text/event-stream")
    assert stream.headers["cache-control"] == "no-cache, no-transform"
    assert stream.headers["content-location"] == "/threads/t/runs/r"
    assert stream.ids == list(range(len(stream.events)))
    assert (stream.types[0], stream.types[-1]) == ("RUN_STARTED", "RUN_FINISHED")
    assert (stream.text("alpha"), stream.text("beta")) == ("alpha: sub says hello", "beta: sub says hello")
    assert stream.faults() == []
    assert left == []


def test_interrupt_and_resume():
    async def go(url: str) -> Any:
        async with client(url) as http:
            first = await run(http, asked("t", "r1"))
            open_ = first.events[-1]["outcome"]["interrupts"]
            resume = [
                {"interruptId": one["id"], "status": "resolved", "payload": one["subagentRunId"]}
                for one in open_
            ]
            second = await run(http, asked("t", "r2", resume=resume))
            return first, second

    with served(team(approval=True)) as server:
        first, second = asyncio.run(go(server.url))
    assert first.events[-1]["outcome"]["type"] == "interrupt"
    started = {one["name"]: one["subagentRunId"] for one in first.events if one["type"] == "SUBAGENT_STARTED"}
    again_ = {one["name"]: one["subagentRunId"] for one in second.events if one["type"] == "SUBAGENT_STARTED"}
    assert started == again_
    answers = {
        one["subagentRunId"]: one["content"]
        for one in second.events
        if one["type"] == "TOOL_CALL_RESULT" and "subagentRunId" in one
    }
    assert answers == {tag: tag for tag in started.values()}  # each got the answer meant for it
    assert second.events[-1]["outcome"]["type"] == "success"
    both = _Stream(200, httpx.Headers(), first.events + second.events)
    assert both.faults() == []


@pytest.mark.parametrize(
    ("content", "kind", "status", "code", "said"),
    [
        (b"{", "application/json", 400, "not_json", "the request is no JSON"),
        (b"", "application/json", 400, "not_json", "the request is no JSON"),
        (b"[]", "application/json", 422, "bad_input", "not a RunAgentInput: input:"),
        (b"{}", "application/json", 422, "bad_input", "threadId: Field required"),
        (b"{}", "text/plain", 415, "not_json", "the content type is text/plain, expected application/json"),
        (b"[" * 100_000, "application/json", 400, "not_json", "the request is no JSON"),
        (b'{"x":"' + b"y" * 3000 + b'"}', "application/json", 413, "too_large", "larger than 2000 bytes"),
        (
            json.dumps(asked("t", resume=[{"interruptId": "nothing", "status": "resolved"}])).encode(),
            "application/json",
            409,
            "bad_resume",
            "nothing",
        ),
        (
            json.dumps(asked("t", state=[1])).encode(),
            "application/json",
            422,
            "bad_input",
            "state is list, expected an object",
        ),
    ],
)
def test_what_cannot_be_run_is_a_json_error(content: bytes, kind: str, status: int, code: str, said: str):
    limit = 2000 if code == "too_large" else 1_000_000
    with served(team(), max_body=limit) as server:
        answer = httpx.post(server.url, content=content, headers={"content-type": kind}, trust_env=False)
        assert server.tasks() == []
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json"
    error = answer.json()["error"]
    assert error["code"] == code
    assert said in error["message"]


def test_fifty_megabytes_are_refused_before_they_are_read():
    def endless() -> Any:
        while True:
            yield b"x" * 65536

    with served(team(), max_body=1_000_000) as server:
        for content in (b" " * 50_000_000, endless()):
            try:
                answer = httpx.post(
                    server.url,
                    content=content,
                    headers={"content-type": "application/json"},
                    trust_env=False,
                    timeout=20,
                )
                assert answer.status_code == 413
            except httpx.TransportError:
                pass  # the connection was closed while we were still sending
        assert httpx.get(f"{server.url}/health", trust_env=False).json()["status"] == "ok"


def test_other_addresses():
    with served(team(), path="/agent") as server, httpx.Client(base_url=server.url, trust_env=False) as http:
        assert http.get("/agent/health").json() == {"status": "ok", "runs": 0, "protocolVersion": "1.0"}
        assert http.get("/agent/capabilities").json() == {
            "transport": {"streaming": True, "resumable": True},
            "multiAgent": {
                "supported": True,
                "delegation": True,
                "subagents": [{"name": "alpha"}, {"name": "beta"}],
            },
        }
        assert http.post("/agent", json=asked("t")).status_code == 200
        for method, path, status in (
            ("GET", "/agent", 405),
            ("GET", "/nothing", 404),
            ("GET", "/agent/threads/nobody", 404),
            ("GET", "/agent/threads/t/r", 404),
            ("GET", "/agent/threads/t/runs/none", 404),
            ("DELETE", "/agent/threads/t/runs/none", 404),
        ):
            answer = http.request(method, path)
            assert (answer.status_code, list(answer.json())) == (status, ["error"])
        bad = http.get("/agent/threads/t/runs/r", headers={"Last-Event-ID": "x"})
        assert (bad.status_code, bad.json()["error"]["code"]) == (400, "bad_event_id")


def test_ids_with_anything_in_them():
    async def go(url: str) -> Any:
        async with client(url) as http:
            first = await run(http, asked("a/b c?#ü", "r/1 %"))
            address = first.headers["content-location"]
            async with http.stream("GET", address) as response:
                return address, first, await read(response)

    with served(team()) as server:
        address, first, second = asyncio.run(go(server.url))
    assert address == "/threads/a%2Fb%20c%3F%23%C3%BC/runs/r%2F1%20%25"
    assert second.events == first.events


def test_one_run_per_thread_at_a_time():
    async def go(url: str) -> Any:
        async with client(url) as http:
            async with http.stream("POST", "/", json=asked("t", "r1")) as response:
                stream = _Stream(200, response.headers)
                following = frames(response, stream)
                await anext(following)
                busy = await http.post("/", json=asked("t", "r2"))
                other = await run(http, asked("u", "r2"))
                async for _ in following:
                    pass
            repeated = await http.post("/", json=asked("t", "r1"))
            return busy, other, stream, repeated

    with served(team(pause=0.05)) as server:
        busy, other, stream, repeated = asyncio.run(go(server.url))
    assert (busy.status_code, busy.json()["error"]["code"], busy.json()["error"]["runId"]) == (
        409,
        "thread_busy",
        "r1",
    )
    assert (other.status, other.types[-1]) == (200, "RUN_FINISHED")
    assert stream.types[-1] == "RUN_FINISHED"
    assert (repeated.status_code, repeated.json()["error"]["code"]) == (409, "run_exists")


def test_an_answer_may_come_under_the_id_of_the_run_that_asked():
    """CopilotKit answers interrupts so; another user's run, or anything that is no answer, keeps the id its own."""

    async def go(url: str) -> Any:
        ann, bob = {"x-user": "ann"}, {"x-user": "bob"}
        async with client(url) as http:
            first = await run(http, asked("t"), headers=ann)
            open_ = first.events[-1]["outcome"]["interrupts"]
            resume = [{"interruptId": one["id"], "status": "resolved", "payload": "yes"} for one in open_]
            unasked = await http.post("/", json=asked("t"), headers=ann)
            foreign = await http.post("/", json=asked("t", resume=resume), headers=bob)
            await asyncio.sleep(0.6)
            second = await run(http, asked("t", resume=resume), headers=ann)
            await asyncio.sleep(0.6)  # the grace of the first ends, not that of the second
            last = await http.get("/threads/t/runs/r", headers=ann)
            return first, unasked, foreign, second, last

    agent = team(approval=True)
    with served(agent, user=lambda request: request.headers["x-user"], grace=1.0) as server:
        first, unasked, foreign, second, last = asyncio.run(go(server.url))
    assert first.events[-1]["outcome"]["type"] == "interrupt"
    for refused in (unasked, foreign):
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "run_exists")
    assert second.faults() == []
    assert second.events[-1]["outcome"] == {"type": "success"}
    assert (second.text("alpha"), second.text("beta")) == ("alpha: sub says hello", "beta: sub says hello")
    assert last.text.count("data: ") == len(second.events)


def test_a_refused_input_does_not_take_its_id():
    async def go(url: str) -> Any:
        async with client(url) as http:
            refused = await http.post(
                "/", json=asked("t", resume=[{"interruptId": "x", "status": "resolved"}])
            )
            return refused.status_code, await run(http, asked("t"))

    with served(team()) as server:
        status, stream = asyncio.run(go(server.url))
    assert (status, stream.types[-1]) == (409, "RUN_FINISHED")


def test_a_client_that_comes_back_gets_what_it_missed():
    async def go(url: str) -> Any:
        async with client(url) as http:
            first = _Stream(200, httpx.Headers())
            async with http.stream("POST", "/", json=asked("t")) as response:
                async for _ in frames(response, first):
                    if len(first.events) == 7:
                        break
            await asyncio.sleep(0.1)
            rest = await again(http, "t", "r", first.ids[-1])
            whole = await again(http, "t", "r")
            return first, rest, whole

    with served(team(pause=0.03)) as server:
        first, rest, whole = asyncio.run(go(server.url))
        assert server.tasks() == []
    assert rest.ids[0] == first.ids[-1] + 1
    assert first.events + rest.events == whole.events
    assert whole.types[-1] == "RUN_FINISHED"
    assert whole.events[-1]["outcome"]["type"] == "success"
    assert whole.faults() == []


def test_a_client_that_does_not_come_back_ends_its_run():
    async def go(url: str) -> Any:
        async with client(url) as http:
            stream = _Stream(200, httpx.Headers())
            async with http.stream("POST", "/", json=asked("t")) as response:
                async for _ in frames(response, stream):
                    if len(stream.events) == 7:
                        break
            await asyncio.sleep(0.8)
            late = await again(http, "t", "r")
            await asyncio.sleep(0.6)
            gone = await again(http, "t", "r")
            free = await run(http, asked("t", "r2"))
            return late, gone, free

    with served(team(pause=0.2), grace=0.5) as server:
        late, gone, free = asyncio.run(go(server.url))
        assert server.tasks() == []
    assert late.events[-1]["outcome"] == {"type": "cancelled"}
    assert [one["code"] for one in late.events if one["type"] == "SUBAGENT_ERROR"] == [
        "cancelled",
        "cancelled",
    ]
    assert late.faults() == []
    assert (gone.status, gone.events[0]["error"]["code"]) == (404, "no_such_run")
    assert free.types[-1] == "RUN_FINISHED"


def test_a_run_can_be_stopped():
    async def go(url: str) -> Any:
        async with client(url) as http, http.stream("POST", "/", json=asked("t")) as response:
            stream = _Stream(200, httpx.Headers())
            following = frames(response, stream)
            await anext(following)
            stopped = await http.delete("/threads/t/runs/r")
            async for _ in following:
                pass
            return stopped, stream

    with served(team(pause=0.3)) as server:
        stopped, stream = asyncio.run(go(server.url))
    assert stopped.status_code == 202
    assert stream.events[-1]["outcome"] == {"type": "cancelled"}


def test_silence_is_kept_alive():
    async def go(url: str) -> Any:
        async with client(url) as http:
            return await run(http, asked("t"))

    with served(team(pause=0.25), keep_alive=0.05) as server:
        stream = asyncio.run(go(server.url))
    assert stream.comments > 3
    assert stream.types[-1] == "RUN_FINISHED"


def test_as_many_runs_as_may_be_open():
    async def go(url: str) -> Any:
        async with client(url) as http, http.stream("POST", "/", json=asked("one")) as response:
            following = frames(response, _Stream(200, httpx.Headers()))
            await anext(following)
            refused = await http.post("/", json=asked("two"))
            health = (await http.get("/health")).json()["runs"]
            async for _ in following:
                pass
            return refused, health, await run(http, asked("two"))

    with served(team(pause=0.05), max_runs=1) as server:
        refused, health, later = asyncio.run(go(server.url))
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "too_many_runs")
    assert refused.headers["retry-after"] == "1"
    assert health == 1
    assert later.types[-1] == "RUN_FINISHED"


def test_a_slow_reader_holds_the_run_and_loses_nothing():
    """The log holds 20 kB, the run makes far more; a reader that sleeps gets every event."""

    async def go(url: str) -> Any:
        async with client(url) as http, http.stream("POST", "/", json=asked("t")) as response:
            stream = _Stream(200, httpx.Headers())
            async for _ in frames(response, stream):
                if len(stream.events) == 5:
                    await asyncio.sleep(1)
            late = await again(http, "t", "r", 0)
            return stream, late

    words = " ".join(["word"] * 3000)
    with served(team(words=words), max_log=20_000) as server:
        stream, late = asyncio.run(go(server.url))
    assert stream.text("alpha") == f"alpha: {words}"
    assert stream.text("beta") == f"beta: {words}"
    assert stream.faults() == []
    assert (late.status, late.events[0]["error"]["code"]) == (410, "events_gone")


def test_who_asks():
    async def who(request: Any) -> str | None:
        name = request.headers.get("x-user")
        if name is None:
            raise PermissionError("sign in first")
        return name

    from byline.user import current_user
    from langchain_core.messages import AIMessage
    from langgraph.graph import END, START, MessagesState, StateGraph

    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(f"you are {current_user()}")]}

    builder = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.add_edge("node", END)

    async def go(url: str) -> Any:
        async with client(url) as http:
            unknown = await http.post("/", json=asked("t"))
            ann = await run(http, asked("t"), headers={"x-user": "ann"})
            bob = await http.get("/threads/t/runs/r", headers={"x-user": "bob"})
            return unknown, ann, bob

    with served(builder.compile(), user=who) as server:
        unknown, ann, bob = asyncio.run(go(server.url))
    assert (unknown.status_code, unknown.json()["error"]["message"]) == (401, "sign in first")
    said = [one["delta"] for one in ann.events if one["type"] == "TEXT_MESSAGE_CONTENT"]
    assert said == ["you are ann"]
    assert bob.status_code == 404


@pytest.mark.parametrize(
    ("how", "logged"),
    [("fails", "ValueError: the key is 1234"), ("number", "TypeError: user= returned int, expected a name")],
)
def test_a_user_callable_that_is_broken(how: str, logged: str, caplog: pytest.LogCaptureFixture):
    """Nothing runs, nothing of the fault is told, and a page that may call can read that."""

    def who(request: Any) -> Any:
        if how == "fails":
            raise ValueError("the key is 1234")
        return 7

    with served(team(), user=who, cors=["http://shop.example"]) as server:
        headers = {"origin": "http://shop.example"}
        answer = httpx.post(server.url, json=asked("t"), headers=headers, trust_env=False)
        assert server.tasks() == []
    assert answer.status_code == 500
    assert answer.json() == {"error": {"code": "internal", "message": "the server failed; see its log"}}
    assert answer.headers["access-control-allow-origin"] == "http://shop.example"
    assert [record.name for record in caplog.records] == ["byline"]
    assert logged in caplog.text


def test_a_browser_may_call_from_where_it_was_allowed():
    preflight = {"origin": "http://shop.example", "access-control-request-method": "POST"}
    with served(team(), cors=["http://shop.example"]) as server:
        allowed = httpx.options(server.url, headers=preflight, trust_env=False)
        other = httpx.options(
            server.url, headers={**preflight, "origin": "http://evil.example"}, trust_env=False
        )
    assert allowed.headers["access-control-allow-origin"] == "http://shop.example"
    assert "access-control-allow-origin" not in other.headers


def test_an_app_that_fails_ends_its_stream():
    from byline_langgraph.scripted import Say, ScriptedModel
    from langchain.agents import create_agent

    app = create_agent(ScriptedModel(script=[Say("so far", fails=ValueError("boom"))], requests=[]), [])

    async def go(url: str) -> Any:
        async with client(url) as http:
            return await run(http, asked("t"))

    with served(app) as server:
        stream = asyncio.run(go(server.url))
    assert stream.status == 200
    last = stream.events[-1]
    assert (last["type"], last["message"], last["code"]) == ("RUN_ERROR", "boom", "ValueError")
    assert stream.faults() == []


def test_two_hundred_clients_at_once():
    async def go(url: str) -> Any:
        async with client(url) as http:
            streams = await asyncio.gather(*(run(http, asked(f"t{n}", f"r{n}")) for n in range(200)))
            # And two hundred that are killed in the middle.
            await asyncio.gather(*(_cut(http, f"k{n}") for n in range(200)))
            return streams

    async def _cut(http: httpx.AsyncClient, thread: str) -> None:
        async with http.stream("POST", "/", json=asked(thread)) as response:
            async for _ in response.aiter_lines():
                break

    with served(team(pause=0.001), grace=0.2) as server:
        streams = asyncio.run(go(server.url))

        async def settle() -> list[str]:
            for _ in range(100):
                if not server.tasks():
                    break
                await asyncio.sleep(0.1)
            return server.tasks()

        assert asyncio.run(settle()) == []
        assert server.app.state.runs.open == 0
    for number, stream in enumerate(streams):
        assert stream.status == 200
        assert (stream.events[0]["threadId"], stream.events[0]["runId"]) == (f"t{number}", f"r{number}")
        assert stream.events[-1]["outcome"] == {"type": "success"}
        assert stream.text("alpha") == "alpha: sub says hello"
        assert stream.text("beta") == "beta: sub says hello"
        assert stream.faults() == []


def test_subagents_that_cannot_be_seen_beforehand_are_known_once_they_ran():
    from langchain_core.runnables import RunnableLambda
    from langgraph.graph import END, START, MessagesState, StateGraph

    class Holder:
        """Out of sight of whoever reads the graph."""

        def __init__(self) -> None:
            self.agent = team()

    holders = [Holder()]

    async def node(state: MessagesState) -> dict[str, Any]:
        out = await holders[0].agent.ainvoke(state, {"configurable": {"thread_id": "x"}})
        return {"messages": out["messages"][-1:]}

    builder = StateGraph(MessagesState)
    builder.add_node("node", RunnableLambda(node))
    builder.add_edge(START, "node")
    builder.add_edge("node", END)
    with served(builder.compile()) as server, httpx.Client(base_url=server.url, trust_env=False) as http:
        before = http.get("/capabilities").json()["multiAgent"]["subagents"]
        assert http.post("/", json=asked("t")).status_code == 200
        after = [one["name"] for one in http.get("/capabilities").json()["multiAgent"]["subagents"]]
    assert before == []
    assert after == ["alpha", "beta", "main"]
