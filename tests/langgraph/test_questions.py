"""Harder questions: several in one task, swallowed ones, another process."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

from byline_langgraph.scripted import Say
from kit import Play, agent, ask, call, human, model, said
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphInterrupt
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import interrupt
from test_interrupts import boss, confirm, confirmer


def test_the_same_agent_twice_asks_twice():
    alpha = confirmer("alpha")
    play = Play(
        boss(
            call("call_A", "ask_alpha", "qa"),
            call("call_B", "ask_alpha", "qb"),
            tools=[ask(alpha, "ask_alpha")],
        )
    )
    assert play.run().lanes == {
        "run": [
            "start",
            (
                "waits [i1 alpha#1 langgraph:interrupt 'sure?' on call_alpha]"
                " [i2 alpha#2 langgraph:interrupt 'sure?' on call_alpha@alpha#2]"
            ),
        ],
        "main": [
            "says m1: 'boss asks'",
            'calls call_A+ in m1: ask_alpha {"q": "qa"}',
            'calls call_B+ in m1: ask_alpha {"q": "qb"}',
            "calls +call_A",
            "calls +call_B",
        ],
        "alpha#1": [
            "opens as tool for main, call call_A in m1",
            "says m2: 'alpha asks'",
            'calls call_alpha in m2: confirm {"q": "sure"}',
            "suspends i1",
        ],
        "alpha#2": [
            "opens as tool for main, call call_B in m1",
            "says m3: 'alpha asks'",
            'calls call_alpha@alpha#2 in m3: confirm {"q": "sure"}',
            "suspends i2",
        ],
    }
    # Whose `call_alpha` has which public id, only the client's history can tell the next run.
    history = [
        {
            "id": play.names.native(message),
            "role": "assistant",
            "subagentRunId": play.names.native(owner),
            "toolCalls": [
                {"id": id_, "type": "function", "function": {"name": "confirm", "arguments": '{"q": "sure"}'}}
            ],
        }
        for message, owner, id_ in (
            ("m2", "alpha#1", "call_alpha"),
            ("m3", "alpha#2", "call_alpha@" + play.names.native("alpha#2")),
        )
    ]
    assert play.resume({"i2": "second"}, messages=history).lanes == {
        "run": ["start", "waits [i1 alpha#1 langgraph:interrupt 'sure?' on call_alpha]"],
        "main": ["hears call_B: 'alpha knows'"],
        "alpha#1": ["opens as tool for main, call call_A in None", "suspends i1"],
        "alpha#2": [
            "opens as tool for main, call call_B in None",
            "hears call_alpha@alpha#2: 'confirmed: second'",
            "says m4: 'alpha knows'",
            "returns 'alpha knows'",
        ],
    }


def test_one_finishes_while_the_other_asks():
    """The one that has finished is not started again, and the other keeps its id."""
    beta = agent("beta", "beta answers")
    alpha = confirmer("alpha")

    @tool
    async def ask_both(q: str) -> str:
        """Ask."""
        first = said(await beta.ainvoke(human(q)))
        return first + " + " + said(await alpha.ainvoke(human(q)))

    play = Play(boss(call("call_A", "ask_both", "qa"), tools=[ask_both]))
    assert play.run().lines == [
        "start",
        "main says m1: 'boss asks'",
        'main calls call_A in m1: ask_both {"q": "qa"}',
        "beta#1 opens as tool for main, call call_A in m1",
        "beta#1 says m2: 'beta answers'",
        "beta#1 returns 'beta answers'",
        "alpha#1 opens as tool for main, call call_A in m1",
        "alpha#1 says m3: 'alpha asks'",
        'alpha#1 calls call_alpha in m3: confirm {"q": "sure"}',
        "alpha#1 suspends i1",
        "waits [i1 alpha#1 langgraph:interrupt 'sure?' on call_alpha]",
    ]
    assert play.resume({"i1": "yes"}).lines == [
        "start",
        "alpha#1 opens as tool for main, call call_A in None",
        "alpha#1 hears call_alpha: 'confirmed: yes'",
        "alpha#1 says m4: 'alpha knows'",
        "alpha#1 returns 'alpha knows'",
        "main hears call_A: 'beta answers + alpha knows'",
        "main says m5: 'boss done'",
        "end",
    ]


def test_a_nested_question_suspends_its_ancestors():
    gamma = confirmer("gamma")
    beta = agent(
        "beta",
        Say("beta asks", calls=[call("call_C", "ask_gamma", "qc")]),
        "beta knows",
        tools=[ask(gamma, "ask_gamma")],
    )
    alpha = agent(
        "alpha",
        Say("alpha asks", calls=[call("call_B", "ask_beta", "qb")]),
        "alpha knows",
        tools=[ask(beta, "ask_beta")],
    )
    play = Play(boss(call("call_A", "ask_alpha", "qa"), tools=[ask(alpha, "ask_alpha")]))
    assert play.run().lines == [
        "start",
        "main says m1: 'boss asks'",
        'main calls call_A in m1: ask_alpha {"q": "qa"}',
        "alpha#1 opens as tool for main, call call_A in m1",
        "alpha#1 says m2: 'alpha asks'",
        'alpha#1 calls call_B in m2: ask_beta {"q": "qb"}',
        "beta#1 opens as tool for alpha#1, call call_B in m2",
        "beta#1 says m3: 'beta asks'",
        'beta#1 calls call_C in m3: ask_gamma {"q": "qc"}',
        "gamma#1 opens as tool for beta#1, call call_C in m3",
        "gamma#1 says m4: 'gamma asks'",
        'gamma#1 calls call_gamma in m4: confirm {"q": "sure"}',
        "gamma#1 suspends i1",
        "beta#1 suspends without asking",
        "alpha#1 suspends without asking",
        "waits [i1 gamma#1 langgraph:interrupt 'sure?' on call_gamma]",
    ]
    assert play.resume({"i1": "yes"}).lines == [
        "start",
        "alpha#1 opens as tool for main, call call_A in None",
        "beta#1 opens as tool for alpha#1, call call_B in None",
        "gamma#1 opens as tool for beta#1, call call_C in None",
        "gamma#1 hears call_gamma: 'confirmed: yes'",
        "gamma#1 says m5: 'gamma knows'",
        "gamma#1 returns 'gamma knows'",
        "beta#1 hears call_C: 'gamma knows'",
        "beta#1 says m6: 'beta knows'",
        "beta#1 returns 'beta knows'",
        "alpha#1 hears call_B: 'beta knows'",
        "alpha#1 says m7: 'alpha knows'",
        "alpha#1 returns 'alpha knows'",
        "main hears call_A: 'alpha knows'",
        "main says m8: 'boss done'",
        "end",
    ]


def test_a_question_of_a_subgraph_node():
    builder = StateGraph(MessagesState)
    builder.add_node("first", confirmer("alpha"))
    builder.add_edge(START, "first")
    play = Play(builder.compile(checkpointer=InMemorySaver()))
    assert play.run().lines == [
        "start",
        "alpha#1 opens as subgraph for main",
        "alpha#1 says m1: 'alpha asks'",
        'alpha#1 calls call_alpha in m1: confirm {"q": "sure"}',
        "alpha#1 suspends i1",
        "waits [i1 alpha#1 langgraph:interrupt 'sure?' on call_alpha]",
    ]
    assert play.resume({"i1": "yes"}).lines == [
        "start",
        "alpha#1 opens as subgraph for main",
        "alpha#1 hears call_alpha: 'confirmed: yes'",
        "alpha#1 says m2: 'alpha knows'",
        "alpha#1 returns 'alpha knows'",
        "end",
    ]


def test_two_that_ask_at_once_in_one_tool_call():
    """LangGraph lists one question of a task at a time; the other one comes with the next run."""
    alpha, beta = confirmer("alpha", "a"), confirmer("beta", "b")

    @tool
    async def ask_both(q: str) -> str:
        """Ask."""
        both = await asyncio.gather(alpha.ainvoke(human(q)), beta.ainvoke(human(q)))
        return " + ".join(said(one) for one in both)

    play = Play(boss(call("call_A", "ask_both", "qa"), tools=[ask_both]))
    assert play.run().lanes == {
        "run": ["start", "waits [i1 alpha#1 langgraph:interrupt 'a?' on call_alpha]"],
        "main": ["says m1: 'boss asks'", 'calls call_A in m1: ask_both {"q": "qa"}'],
        "alpha#1": [
            "opens as tool for main, call call_A in m1",
            "says m2: 'alpha asks'",
            'calls call_alpha in m2: confirm {"q": "a"}',
            "suspends i1",
        ],
        "beta#1": [
            "opens as tool for main, call call_A in m1",
            "says m3: 'beta asks'",
            'calls call_beta in m3: confirm {"q": "b"}',
            "suspends without asking",
        ],
    }
    assert play.resume({"i1": "yes"}).lanes == {
        "run": ["start", "waits [i2 beta#1 langgraph:interrupt 'b?' on call_beta]"],
        "alpha#1": [
            "opens as tool for main, call call_A in None",
            "hears call_alpha: 'confirmed: yes'",
            "says m4: 'alpha knows'",
            "returns 'alpha knows'",
        ],
        "beta#1": ["opens as tool for main, call call_A in None", "suspends i2"],
    }
    assert play.resume({"i2": "no"}).lanes == {
        "run": ["start", "end"],
        "main": ["hears call_A: 'alpha knows + beta knows'", "says m5: 'boss done'"],
        "beta#1": [
            "opens as tool for main, call call_A in None",
            "hears call_beta: 'confirmed: no'",
            "says m6: 'beta knows'",
            "returns 'beta knows'",
        ],
    }


def test_two_calls_in_one_task_of_which_one_asks():
    """The task runs again as a whole, and the call that was answered is answered again.

    A client that sends what it has is not told twice.
    """
    llm = model(
        Say("boss asks", calls=[call("call_A", "ask_alpha", "qa"), call("call_B", "ask_beta", "qb")]),
        "boss done",
    )

    async def think(state: MessagesState) -> dict:
        return {"messages": [await llm.ainvoke(state["messages"])]}

    tools = [ask(confirmer("alpha"), "ask_alpha"), ask(agent("beta", "beta answers"), "ask_beta")]
    builder = StateGraph(MessagesState)
    builder.add_node("think", think)
    builder.add_node("tools", ToolNode(tools))
    builder.add_edge(START, "think")
    builder.add_conditional_edges("think", tools_condition)
    builder.add_edge("tools", "think")
    play = Play(builder.compile(checkpointer=InMemorySaver()))
    assert play.run().lanes == {
        "run": ["start", "waits [i1 alpha#1 langgraph:interrupt 'sure?' on call_alpha]"],
        "main": [
            "says m1: 'boss asks'",
            'calls call_A+ in m1: ask_alpha {"q": "qa"}',
            'calls call_B+ in m1: ask_beta {"q": "qb"}',
            "calls +call_A",
            "calls +call_B",
            "hears call_B: 'beta answers'",
        ],
        "alpha#1": [
            "opens as tool for main, call call_A in m1",
            "says m2: 'alpha asks'",
            'calls call_alpha in m2: confirm {"q": "sure"}',
            "suspends i1",
        ],
        "beta#1": [
            "opens as tool for main, call call_B in m1",
            "says m3: 'beta answers'",
            "returns 'beta answers'",
        ],
    }
    history = [
        {
            "id": play.names.native("m1"),
            "role": "assistant",
            "content": "boss asks",
            "toolCalls": [
                {
                    "id": "call_A",
                    "type": "function",
                    "function": {"name": "ask_alpha", "arguments": '{"q": "qa"}'},
                },
                {
                    "id": "call_B",
                    "type": "function",
                    "function": {"name": "ask_beta", "arguments": '{"q": "qb"}'},
                },
            ],
        },
        {"id": "call_B:result", "role": "tool", "toolCallId": "call_B", "content": "beta answers"},
    ]
    assert play.resume({"i1": "yes"}, messages=history).lanes == {
        "run": ["start", "end"],
        "main": ["hears call_A: 'alpha knows'", "says m4: 'boss done'"],
        "alpha#1": [
            "opens as tool for main, call call_A in m1",
            "hears call_alpha: 'confirmed: yes'",
            "says m5: 'alpha knows'",
            "returns 'alpha knows'",
        ],
    }


def test_a_question_that_the_caller_swallows():
    alpha = confirmer("alpha")

    @tool
    async def ask_alpha(q: str) -> str:
        """Ask."""
        try:
            return said(await alpha.ainvoke(human(q)))
        except Exception:
            return "alpha is no help"

    assert Play(boss(call("call_A", "ask_alpha", "qa"), tools=[ask_alpha])).run().lines == [
        "start",
        "main says m1: 'boss asks'",
        'main calls call_A in m1: ask_alpha {"q": "qa"}',
        "alpha#1 opens as tool for main, call call_A in m1",
        "alpha#1 says m2: 'alpha asks'",
        'alpha#1 calls call_alpha in m2: confirm {"q": "sure"}',
        "main hears call_A: 'alpha is no help'",
        "main says m3: 'boss done'",
        "alpha#1 fails interrupt_lost: its question was swallowed by the caller, and the run went on without an answer",
        "end pending call_alpha",
    ]


def test_a_client_that_sends_its_history_learns_which_message_the_call_was_in():
    play = Play(boss(call("call_A", "ask_alpha", "qa"), tools=[ask(confirmer("alpha"), "ask_alpha")]))
    first = play.run()
    assert first.lines[:3] == [
        "start",
        "main says m1: 'boss asks'",
        'main calls call_A in m1: ask_alpha {"q": "qa"}',
    ]
    history = [
        {"id": "u1", "role": "user", "content": "go"},
        {
            "id": play.names.native("m1"),
            "role": "assistant",
            "content": "boss asks",
            "toolCalls": [
                {
                    "id": "call_A",
                    "type": "function",
                    "function": {"name": "ask_alpha", "arguments": '{"q": "qa"}'},
                }
            ],
        },
        {
            "id": play.names.native("m2"),
            "role": "assistant",
            "content": "alpha asks",
            "subagentRunId": play.names.native("alpha#1"),
            "toolCalls": [
                {
                    "id": "call_alpha",
                    "type": "function",
                    "function": {"name": "confirm", "arguments": '{"q": "sure"}'},
                }
            ],
        },
    ]
    assert play.resume({"i1": "yes"}, messages=history).lines == [
        "start",
        "alpha#1 opens as tool for main, call call_A in m1",
        "alpha#1 hears call_alpha: 'confirmed: yes'",
        "alpha#1 says m3: 'alpha knows'",
        "alpha#1 returns 'alpha knows'",
        "main hears call_A: 'alpha knows'",
        "main says m4: 'boss done'",
        "end",
    ]


ANOTHER_PROCESS = """
import asyncio, json, sys
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from kit import Play, agent, ask, call
from test_interrupts import confirmer

async def main(path, answers):
    async with AsyncSqliteSaver.from_conn_string(path) as saver:
        boss = agent(
            "boss",
            __import__("kit").Say("boss asks", calls=[call("call_A", "ask_alpha", "qa")]),
            "boss done",
            tools=[ask(confirmer("alpha"), "ask_alpha")],
            checkpointer=saver,
        )
        play = Play(boss)
        play.names.short = json.loads(answers)["names"]
        play.names.count = json.loads(answers)["count"]
        answers = json.loads(answers)["answers"]
        trace = await (play.arun(None, resume=answers) if answers else play.arun())
        print(json.dumps({"lines": trace.lines, "names": play.names.short, "count": play.names.count}))

asyncio.run(main(*sys.argv[1:]))
"""


def another_process(path, **answers):
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", ANOTHER_PROCESS, str(path), json.dumps(answers)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(here), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_new_process_continues_the_same_invocation(tmp_path):
    first = another_process(tmp_path / "thread.db", answers={}, names={}, count={})
    assert first["lines"] == [
        "start",
        "main says m1: 'boss asks'",
        'main calls call_A in m1: ask_alpha {"q": "qa"}',
        "alpha#1 opens as tool for main, call call_A in m1",
        "alpha#1 says m2: 'alpha asks'",
        'alpha#1 calls call_alpha in m2: confirm {"q": "sure"}',
        "alpha#1 suspends i1",
        "waits [i1 alpha#1 langgraph:interrupt 'sure?' on call_alpha]",
    ]
    second = another_process(
        tmp_path / "thread.db", answers={"i1": "yes"}, names=first["names"], count=first["count"]
    )
    assert second["lines"] == [
        "start",
        "alpha#1 opens as tool for main, call call_A in None",
        "alpha#1 hears call_alpha: 'confirmed: yes'",
        "alpha#1 says m3: 'alpha knows'",
        "alpha#1 returns 'alpha knows'",
        "main hears call_A: 'alpha knows'",
        "main says m4: 'boss done'",
        "end",
    ]


def test_the_answer_of_a_client_older_than_resume():
    play = Play(
        agent(
            None,
            Say("main asks", calls=[call("call_C", "confirm", "sure")]),
            "main done",
            tools=[confirm],
            checkpointer=InMemorySaver(),
        )
    )
    play.run()
    assert play.run(None, forwardedProps={"command": {"resume": "yes"}}).lines == [
        "start",
        "main hears call_C: 'confirmed: yes'",
        "main says m1: 'main done'",
        "end",
    ]


def test_a_subagent_that_swallows_its_own_question_has_answered_all_the_same():
    async def think(state: MessagesState) -> dict:
        try:
            await RunnableLambda(lambda _: interrupt("sure?")).ainvoke(None)
        except GraphInterrupt:
            return {"messages": [AIMessage("alpha goes on", id="a1")]}

    alpha = StateGraph(MessagesState).add_node("think", think).add_edge(START, "think").compile(name="alpha")
    team = boss(call("call_A", "ask_alpha", "qa"), tools=[ask(alpha, "ask_alpha")])
    assert Play(team).run().lines == [
        "start",
        "main says m1: 'boss asks'",
        'main calls call_A in m1: ask_alpha {"q": "qa"}',
        "alpha#1 opens as tool for main, call call_A in m1",
        "alpha#1 says a1: 'alpha goes on'",
        "alpha#1 returns 'alpha goes on'",
        "main hears call_A: 'alpha goes on'",
        "main says m2: 'boss done'",
        "end",
    ]
