"""A thread after a restart, from the session that ADK stored: its messages, with the owners that the stream gave them."""

from contextlib import asynccontextmanager

import pytest
from adk_kit import agent, answer, attribute, collect, runner, user
from byline.ledger import Ledger
from byline.user import as_user, current_user
from byline_adk.scripted import Say
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools import AgentTool, FunctionTool

pytestmark = pytest.mark.anyio


def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def team():
    def call(id_, name):
        return (id_, name, {"request": name})

    checker = agent("checker", Say("sunny", thought="hmm"), mode="single_turn")
    booked = Say("ok", calls=[("f1", "finish_task", {"result": "booked"})])
    booker = agent("booker", Say("Which city?"), booked, mode="task")
    helper = agent("helper", Say("helper here"), Say("still helper"))
    inner = agent("inner", Say("inner words"))
    tool = FunctionTool(pay, require_confirmation=True)
    return agent(
        "root",
        Say("I check", calls=[call("c1", "checker"), call("c2", "inner")]),
        Say(calls=[call("c3", "booker")]),
        Say("booked"),
        Say(calls=[("p1", "pay", {"amount": 5})]),
        Say("paid"),
        Say(calls=[("t1", "transfer_to_agent", {"agent_name": "helper"})]),
        sub_agents=[checker, booker, helper],
        tools=[AgentTool(inner), tool],
    )


# A tool message stands behind its call, wherever it came.
TOLD = [
    ("-", "user", "hi"),
    ("-", "assistant", "I check", "checker", "inner"),
    ("-", "tool", "sunny"),
    ("-", "tool", "inner words"),
    ("checker", "reasoning", "hmm"),
    ("checker", "assistant", "sunny"),
    ("-", "assistant", None, "booker"),
    ("-", "tool", "booked"),
    ("booker", "assistant", "Which city?"),
    ("-", "user", "Seoul"),
    ("booker", "assistant", "ok"),
    ("-", "assistant", "booked"),
    ("-", "user", "pay"),
    ("-", "assistant", None, "pay"),
    ("-", "tool", "paid 5"),
    ("-", "assistant", "paid"),
    ("-", "user", "help"),
    ("-", "assistant", None, "transfer_to_agent"),
    ("-", "tool", "transferred to helper"),
    ("helper", "assistant", "helper here"),
]


def plain(messages, names):
    """Who, as what, said what and called what."""
    lines = []
    for message in messages:
        wire = message if isinstance(message, dict) else message.model_dump(mode="json", by_alias=True)
        calls = [call["function"]["name"] for call in wire.get("toolCalls") or ()]
        owner = names.get(wire.get("subagentRunId"), "-")
        lines.append((owner, wire["role"], wire.get("content"), *calls))
    return lines


def tree(ledger):
    return [(one.id, one.name, one.parent, one.spawning_call, one.status) for one in ledger.invocations]


async def lived(service):
    """Run the team over four turns; returns the ledger of its stream."""
    found = attribute(runner(team(), session_service=service))
    events = []
    for turn in ("hi", "Seoul", "pay", None, "help"):
        asked = events[-1].outcome.interrupts[0].id if turn is None else None
        events += await collect(found.run(answer((asked, True)) if turn is None else user(turn)))
    ledger = Ledger.read(events)
    assert ledger.refusals == ()
    return ledger


@asynccontextmanager
async def sqlite(path):
    yield SqliteSessionService(str(path / "sessions.db"))


def database(path):
    pytest.importorskip(
        "greenlet", reason="ADK keeps sessions in a database with it: pip install 'google-adk[db]'"
    )
    from google.adk.sessions.database_session_service import DatabaseSessionService

    return DatabaseSessionService(f"sqlite+aiosqlite:///{path / 'sessions.db'}")


@pytest.mark.parametrize("open_service", [sqlite, database])
async def test_after_a_restart(tmp_path, open_service):
    async with open_service(tmp_path) as service:
        stream = await lived(service)
    async with open_service(tmp_path) as service:
        history = await attribute(runner(team(), session_service=service)).history("t")
    assert tree(history.ledger) == [
        ("c1", "checker", None, "c1", "finished"),
        ("c3", "booker", None, "c3", "finished"),
        ("t1", "helper", None, "t1", "suspended"),
    ]
    names = {one.id: one.name for one in history.ledger.invocations}
    assert plain(history.messages, names) == TOLD
    # What the AgentTool's agent did is in no session; the user's words are in no stream.
    outer = [message for message in stream.messages if message.get("subagentRunId") != "c2"]
    assert [message for message in history.ledger.messages if message["role"] != "user"] == outer
    assert history.ledger.invocation("c3").result == {"result": "booked"}


async def test_a_thread_that_waits():
    found = attribute(runner(team()))
    for turn in ("hi", "Seoul", "pay"):
        await collect(found.run(user(turn)))
    history = await found.history("t")
    (waits,) = history.ledger.pending_interrupts[None]
    assert (waits["reason"], waits["toolCallId"]) == ("confirmation", "p1")
    assert await found.history("another") is None


async def test_whose_session_it_is():
    """Where users are told apart a thread is looked for among the sessions of the one who asks."""
    found = attribute(runner(team()), user_id=lambda _: current_user() or "nobody")
    with as_user("ada"):
        await collect(found.run(user("hi")))
        mine = await found.history("t")
    with as_user("eve"):
        assert await found.history("t") is None
    assert (mine.user, len(mine.messages)) == ("ada", 8)


async def test_what_is_hidden_stays_hidden():
    found = attribute(runner(team()), visibility={"checker": "hidden"})
    await collect(found.run(user("hi")))
    history = await found.history("t")
    assert plain(history.messages, {"c3": "booker"}) == [
        ("-", "user", "hi"),
        ("-", "assistant", "I check", "checker", "inner"),
        ("-", "tool", "sunny"),
        ("-", "tool", "inner words"),
        ("-", "assistant", None, "booker"),
        ("booker", "assistant", "Which city?"),
    ]
