"""A remote graph as the observed one: the server's graph is real, only the wire between is replaced.

What crosses it is JSON, in the shapes of LangGraph's server: messages as mappings with their metadata, `values` with
the interrupts in it, `updates` with the interrupts of the step, a thread as `ThreadState`.
"""

import asyncio
import json

import httpx
import pytest
from byline import attribute
from byline.errors import InputError, ResumeError
from byline_langgraph import _plugin
from byline_langgraph.scripted import Say
from kit import Play, Relay, agent, ask, attribute_plugins, call, human, said
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.load import dumpd
from langchain_core.messages import BaseMessage
from langchain_core.tools import tool as as_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.pregel.remote import RemoteGraph
from langgraph.types import Command, Interrupt
from langgraph_sdk.schema import StreamPart
from test_interrupts import confirmer
from test_nodes import chain
from test_remote import chunk, remote

USAGE = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}


def wire(it):
    if isinstance(it, BaseMessage):
        return it.model_dump(mode="json")
    if isinstance(it, Interrupt):
        return {"value": it.value, "id": it.id}
    return dumpd(it)


class Wire:
    """Stands for the client of LangGraph's SDK, with the graph of the server at its other end."""

    def __init__(self, graph):
        self.runs = self.threads = self
        self.graph = graph
        self.asked = []

    async def stream(self, thread_id, *, command, config, stream_mode, context, **more):
        assert (more["stream_subgraphs"], more["if_not_exists"]) == (True, "create")
        given = Command(resume=command["resume"]) if command else more["input"]
        self.asked.append(json.loads(json.dumps(command or given)))
        config = {**config, "configurable": {**config.get("configurable", {}), "thread_id": thread_id}}
        if more.get("checkpoint_id"):
            config["configurable"]["checkpoint_id"] = more["checkpoint_id"]
        modes = [{"messages-tuple": "messages"}.get(mode, mode) for mode in stream_mode]
        stream = self.graph.astream(
            given, config, context=context, stream_mode=modes, subgraphs=True, version="v2"
        )
        async for part in stream:
            data = part["data"]
            if part["type"] == "values" and part.get("interrupts"):
                data = {**data, "__interrupt__": list(part["interrupts"])}
            yield StreamPart(
                "|".join([part["type"], *part["ns"]]), json.loads(json.dumps(data, default=wire))
            )

    async def get_state(self, thread_id, *, checkpoint, subgraphs, headers, params):
        return self.thread(await self.graph.aget_state({"configurable": {"thread_id": thread_id}}))

    async def get_history(self, thread_id, **more):
        config = {"configurable": {"thread_id": thread_id}}
        return [self.thread(one) async for one in self.graph.aget_state_history(config)]

    @staticmethod
    def thread(snapshot):
        if not snapshot.metadata:
            request = httpx.Request("GET", "http://far")
            raise httpx.HTTPStatusError("404", request=request, response=httpx.Response(404, request=request))
        configurable = {"checkpoint_id": None, "checkpoint_ns": "", **snapshot.config["configurable"]}
        tasks = [
            {
                "id": task.id,
                "name": task.name,
                "error": None,
                "interrupts": list(task.interrupts),
                "state": None,
                "checkpoint": None,
                "result": task.result,
            }
            for task in snapshot.tasks
        ]
        state = {
            "values": snapshot.values,
            "next": list(snapshot.next),
            "checkpoint": configurable,
            "metadata": {},
            "created_at": snapshot.created_at,
            "parent_checkpoint": None,
            "tasks": tasks,
        }
        return json.loads(json.dumps(state, default=wire))


def far(graph, **options):
    graph.checkpointer = InMemorySaver()  # the server's
    server = Wire(graph)
    return Play(RemoteGraph("assistant", name="far", client=server), **options), server


def test_a_remote_team():
    beta = agent("beta", "beta answers")
    alpha = agent(
        "alpha",
        Say("alpha asks", calls=[call("call_B", "ask_beta", "qb")]),
        Say("alpha answers", usage=USAGE),
        tools=[ask(beta, "ask_beta")],
    )
    boss = agent(
        "boss",
        Say("boss asks", calls=[call("call_A", "ask_alpha", "qa")]),
        "boss done",
        "boss again",
        tools=[ask(alpha, "ask_alpha")],
    )
    play, server = far(boss)
    assert play.run().lines == [
        "start",
        "main says m1: 'boss asks'",
        'main calls call_A in m1: ask_alpha {"q": "qa"}',
        "alpha#1 opens as something for main",
        "alpha#1 says m2: 'alpha asks'",
        'alpha#1 calls call_B in m2: ask_beta {"q": "qb"}',
        "beta#1 opens as something for alpha#1",
        "beta#1 says m3: 'beta answers'",
        "beta#1 returns 'beta answers'",
        "alpha#1 hears call_B: 'beta answers'",
        "alpha#1 says m4: 'alpha answers'",
        "alpha#1 returns 'alpha answers'",
        "main hears call_A: 'alpha answers'",
        "main says m5: 'boss done'",
        (
            'end usage {"provider": "byline", "model": "scripted", '
            '"inputTokens": 5, "outputTokens": 2, "totalTokens": 7}'
            ' of {"subagentRunId": "alpha#1", "provider": "byline", "model": "scripted", '
            '"inputTokens": 5, "outputTokens": 2, "totalTokens": 7}'
        ),
    ]
    assert play.run("more").lines == ["start", "main says m6: 'boss again'", "end"]
    assert server.asked == [
        {"messages": [{"content": "go", "type": "human", "id": "u1"}]},
        {"messages": [{"content": "more", "type": "human", "id": "u2"}]},
    ]


def test_the_frameworks_own_arguments_and_a_second_call_in_parallel():
    relay = Relay("alpha beta alpha . beta")
    team = [
        agent(name, f"{name} answers", model_options={"relay": relay, "who": name})
        for name in ("alpha", "beta")
    ]
    calls = [call("call_A", "ask_alpha", "qa"), call("call_B", "ask_beta", "qb")]
    boss = agent(
        "boss",
        Say("boss asks", calls=calls),
        "boss done",
        tools=[ask(one, f"ask_{one.name}") for one in team],
    )
    play, _ = far(boss)
    trace = play.stream(human("go"), {"configurable": {"thread_id": "t"}})
    assert trace.lanes == {
        "run": ["start", "end"],
        "main": [
            "says m1: 'boss asks'",
            'calls call_A+ in m1: ask_alpha {"q": "qa"}',
            'calls call_B+ in m1: ask_beta {"q": "qb"}',
            "calls +call_A",
            "calls +call_B",
            "hears call_A: 'alpha answers'",
            "hears call_B: 'beta answers'",
            "says m2: 'boss done'",
        ],
        "alpha#1": ["opens as something for main", "says m3: 'alpha answers'", "returns 'alpha answers'"],
        "beta#1": ["opens as something for main", "says m4: 'beta answers'", "returns 'beta answers'"],
    }
    assert [one["type"] for one in trace.run.result["messages"]] == ["human", "ai", "tool", "tool", "ai"]


def test_two_at_the_same_time_and_one_of_them_twice():
    alpha, beta = agent("alpha", "alpha one", "alpha two"), agent("beta", "beta answers")

    async def both(state: MessagesState) -> dict:
        first = said(await alpha.ainvoke(human("qa")))
        second = said(await alpha.ainvoke(human("qb")))
        return {"messages": [("ai", f"{first} and {second}")]}

    play, _ = far(chain(both=both, beta=beta).compile())
    assert play.run().lines == [
        "start",
        "alpha#1 opens as something for main",
        "alpha#1 says m1: 'alpha one'",
        "alpha#2 opens as something for main",
        "alpha#2 says m2: 'alpha one'",
        "alpha#1 returns 'alpha one'",
        "alpha#2 returns 'alpha one'",
        "beta#1 opens as something for main",
        "beta#1 says m3: 'beta answers'",
        "beta#1 returns 'beta answers'",
        "end",
    ]


def test_questions_of_a_remote_graph():
    boss = agent(
        "boss",
        Say("boss asks", calls=[call("call_A", "ask_alpha", "qa")]),
        "boss done",
        tools=[ask(confirmer("alpha"), "ask_alpha")],
    )
    play, server = far(boss)
    assert play.run().lines == [
        "start",
        "main says m1: 'boss asks'",
        'main calls call_A in m1: ask_alpha {"q": "qa"}',
        "alpha#1 opens as something for main",
        "alpha#1 says m2: 'alpha asks'",
        'alpha#1 calls call_alpha in m2: confirm {"q": "sure"}',
        "alpha#1 suspends i1",
        "waits [i1 alpha#1 langgraph:interrupt 'sure?']",
    ]
    with pytest.raises(ResumeError) as refused:
        play.run("hello?")
    interrupt = play.names.native("i1")
    assert str(refused.value) == (
        f"thread 't' waits for an answer to '{interrupt}': send a resume entry for each, with status 'cancelled' "
        "to abandon it"
    )
    assert play.resume({"i1": "yes"}).lines == [
        "start",
        "alpha#1 opens as something for main",
        "alpha#1 hears call_alpha: 'confirmed: yes'",
        "alpha#1 says m3: 'alpha knows'",
        "alpha#1 returns 'alpha knows'",
        "main hears call_A: 'alpha knows'",
        "main says m4: 'boss done'",
        "end",
    ]
    assert server.asked[1:] == [{"graph": None, "update": None, "resume": {interrupt: "yes"}, "goto": []}]


def test_an_approval_of_a_remote_subagent_names_its_call_and_the_schema_of_the_answer():
    @as_tool
    def send(q: str) -> str:
        """Send."""
        return f"sent {q}"

    review = HumanInTheLoopMiddleware(interrupt_on={"send": {"allowed_decisions": ["approve", "reject"]}})
    alpha = agent(
        "alpha",
        Say("alpha sends", calls=[call("call_S", "send", "x")]),
        "alpha did",
        tools=[send],
        middleware=[review],
    )
    boss = agent(
        "boss",
        Say("boss asks", calls=[call("call_A", "ask_alpha", "qa")]),
        "boss done",
        tools=[ask(alpha, "ask_alpha")],
    )
    play, _ = far(boss)
    trace = play.run()
    assert trace.lines[-2:] == [
        "alpha#1 suspends i1",
        (
            "waits [i1 alpha#1 tool_call"
            " \"Tool execution requires approval\\n\\nTool: send\\nArgs: {'q': 'x'}\" on call_S]"
        ),
    ]
    (interrupt,) = trace.events[-1].outcome.interrupts
    decisions = {"type": "object", "properties": {"type": {"const": "approve"}}, "required": ["type"]}
    rejection = {
        "type": "object",
        "properties": {"type": {"const": "reject"}, "message": {"type": "string"}},
        "required": ["type"],
    }
    assert interrupt.response_schema["properties"]["decisions"]["items"] == {"oneOf": [decisions, rejection]}
    assert interrupt.metadata["byline"] == {
        "toolCalls": [
            {
                "toolCallId": "call_S",
                "name": "send",
                "args": {"q": "x"},
                "decisions": ["approve", "reject"],
            }
        ]
    }
    with pytest.raises(
        ResumeError, match="the decision about send is 'edit', allowed are 'approve', 'reject'"
    ):
        play.resume({"i1": {"decisions": [{"type": "edit"}]}})
    assert play.resume({"i1": {"decisions": [{"type": "approve"}]}}).lines == [
        "start",
        "alpha#1 opens as something for main",
        "alpha#1 hears call_S: 'sent x'",
        "alpha#1 says m3: 'alpha did'",
        "alpha#1 returns 'alpha did'",
        "main hears call_A: 'alpha did'",
        "main says m4: 'boss done'",
        "end",
    ]


def test_a_message_that_was_edited():
    boss = agent("boss", "one", "two", "three")
    play, server = far(boss)
    play.run("first")
    play.run("second")
    edited = [{"id": "u2", "role": "user", "content": "second, edited"}]
    # The answer is the second one again: what came after the first is not part of this branch.
    assert play.run(messages=edited).lines == ["start", "main says m1: 'two'", "end"]
    assert server.asked[-1] == {"messages": [{"content": "second, edited", "type": "human", "id": "u2"}]}
    history = asyncio.run(play.agent.history("t"))
    assert [(one.role, one.content) for one in history.messages] == [
        ("user", "first"),
        ("assistant", "one"),
        ("user", "second, edited"),
        ("assistant", "two"),
    ]
    assert asyncio.run(play.agent.history("unknown")) is None


def test_state_and_what_a_remote_graph_writes():
    class Counted(MessagesState):
        count: int

    async def tick(state: Counted) -> dict:
        get_stream_writer()({"name": "app.progress", "value": state["count"]})
        return {"count": state["count"] + 1}

    inner = StateGraph(Counted).add_node("tick", tick).add_edge(START, "tick").compile(name="inner")
    outer = StateGraph(Counted).add_node("first", tick).add_node("inner", inner)
    outer.add_edge(START, "first").add_edge("first", "inner")
    play, server = far(outer.compile())
    assert play.run(state={"count": 1}, forwarded_props={"speedLimit": 3}).lines == [
        "start",
        "main custom app.progress: 1",
        'main state {"count": 2}',
        "inner#1 opens as something for main",
        "inner#1 custom app.progress: 2",
        "inner#1 returns 'go'",
        'main state {"count": 3}',
        "end",
    ]
    assert server.asked == [
        {
            "messages": [{"content": "go", "type": "human", "id": "u1"}],
            "count": 1,
            "speed_limit": 3,
        }
    ]


def test_a_server_that_fails_and_one_that_cannot_be_reached():
    graph, _ = remote([("messages", chunk("f1", "far has half a")), ("error", {"error": "gone"})])
    trace = Play(graph).stream(human("go"))
    assert trace.lines == [
        "start",
        "main says f1: 'far has half a'",
        "run fails RemoteException: {'error': 'gone'}",
    ]

    async def refuse(thread_id, **more):
        raise httpx.ConnectError("no route")

    graph, server = remote()
    server.threads = server
    server.get_state = refuse
    with pytest.raises(httpx.ConnectError, match="no route"):
        Play(graph).run()


def test_a_run_that_is_cancelled_stops_reading():
    seen = []

    async def words(**request):
        for number in range(100):
            seen.append(number)
            yield StreamPart("messages", chunk("f1", f"{number} "))
            await asyncio.sleep(0)

    graph, server = remote()
    server.stream = words
    play = Play(graph)

    async def go():
        run = play.agent.stream(human("go"))
        told = []
        async for event in run:
            told.append(event.type)
            if event.type == "TEXT_MESSAGE_CONTENT":
                await run.cancel()
        return told

    told = asyncio.run(go())
    assert (told[0], told[-2:]) == ("RUN_STARTED", ["TEXT_MESSAGE_END", "RUN_FINISHED"])
    assert len(seen) < 100


def test_what_only_the_server_can_do_is_refused():
    graph, _ = remote()
    with pytest.raises(InputError) as refused:
        attribute(graph, plugins=attribute_plugins(), transparent=["lead"])
    assert str(refused.value) == (
        "attribute() was given transparent for a remote graph: what it uses and whom it calls is known to its server "
        "only; wrap the graph there"
    )


def test_a_remote_team_is_opaque():
    graph, _ = remote()
    team = _plugin.RemoteGraphAdapter().describe(graph).to_json()["team"]
    assert team == {
        "name": "far",
        "kind": "runnable",
        "facts": {
            "nodes": {
                "value": None,
                "source": "opaque",
                "reason": "a RemoteGraph is no graph that can be looked into",
            }
        },
    }
