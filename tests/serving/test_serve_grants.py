"""An agent with grants behind the endpoint: the user who asks is the one who has to be allowed."""

import asyncio
from typing import Any

import pytest
from byline import attribute
from serving_kit import asked, client, run, served, team

pytest.importorskip("jwt", reason="needs the extra grants")

from byline.grants import Grants, TableDecider
from byline.team import AgentRecord, Links, Team


def test_only_who_may_run_it_runs_it():
    decider = TableDecider([("ann", "*", "*"), ("bob", "tool", "*")])
    agent = attribute(
        team(),
        grants=Grants(b"0123456789abcdef0123456789abcdef", decider),
        agent_id="main",
        allow=["delegate"],
    )

    async def go(url: str) -> Any:
        async with client(url) as http:
            return (
                await run(http, asked("t1"), headers={"x-user": "ann"}),
                await http.post("/", json=asked("t2"), headers={"x-user": "bob"}),
                await http.post("/", json=asked("t3")),
                await http.get("/capabilities"),
                await run(http, asked("t2"), headers={"x-user": "ann"}),
            )

    with served(agent, user=lambda request: request.headers.get("x-user")) as server:
        ann, bob, nobody, capabilities, later = asyncio.run(go(server.url))
    assert ann.events[-1]["outcome"] == {"type": "success"}
    assert (bob.status_code, bob.json()["error"]["code"]) == (403, "denied")
    assert (nobody.status_code, nobody.json()["error"]["code"]) == (401, "unauthorized")
    assert {one["name"] for one in capabilities.json()["multiAgent"]["subagents"]} == {"alpha", "beta"}
    assert later.events[-1]["outcome"] == {"type": "success"}


def test_a_run_whose_links_do_not_hold_is_refused_by_its_kind():
    saved = Team()
    for id_ in ("main", "alpha", "beta"):
        saved.add(AgentRecord(id_, owner="ann"), caller="ann")
    saved.save("main", ["alpha", "beta"], caller="ann")
    agent = attribute(team(), links=Links(saved, "main"))

    async def go(url: str) -> Any:
        async with client(url) as http:
            held = await run(http, asked("t1"))
            saved.change("alpha", caller="ann", archived=True)
            archived = await http.post("/", json=asked("t2"))
            saved.change("alpha", caller="ann", archived=False)
            saved.change("beta", caller="ann", owner="bob")
            given = await http.post("/", json=asked("t3"))
            return held, archived, given

    with served(agent) as server:
        held, archived, given = asyncio.run(go(server.url))
    assert held.events[-1]["outcome"] == {"type": "success"}
    assert (archived.status_code, archived.json()["error"]["code"]) == (409, "bad_links")
    assert (given.status_code, given.json()["error"]["code"]) == (403, "denied")
