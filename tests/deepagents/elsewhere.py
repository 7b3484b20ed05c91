"""Runs a guarded team up to its question in a process of its own: `python elsewhere.py DB`; prints what a client has."""

import asyncio
import json
import sys

from byline_langgraph.scripted import Say
from deepkit import Play, Trace, compiled, deep, sub, task
from kit import call
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver


@tool
def send(q: str) -> str:
    """Send."""
    return f"sent {q}"


def guarded(name, q="x", decisions=True, **spec):
    """A subagent that may not send without being asked."""
    turns = Say(f"{name} wants", calls=[call("call_S", "send", q)]), f"{name} done"
    return sub(name, *turns, tools=[send], interrupt_on={"send": decisions}, **spec)


def nested(**options):
    lead = deep(
        Say("lead asks", calls=[task("call_B", "alpha", "inner")]),
        "lead done",
        subagents=[guarded("alpha")],
        name="lead",
    )
    return deep(
        Say("go", calls=[task("call_A", "lead")]), "done", subagents=[compiled("lead", lead)], **options
    )


async def play(db: str, names: dict[str, str], **fields) -> Trace:
    """Let a client that has `names` already talk with the team."""
    async with AsyncSqliteSaver.from_conn_string(db) as saver:
        stage = Play(nested(checkpointer=saver))
        stage.runs = 1 if names else 0
        for native, short in names.items():
            assert stage.names.give(native, short.rstrip("0123456789#"), "#" if "#" in short else "") == short
        return await stage.arun(**fields)


if __name__ == "__main__":
    trace = asyncio.run(play(sys.argv[1], {}))
    lines = trace.lines
    print(json.dumps({"lines": lines, "names": trace.names.short, "history": trace.history}))
