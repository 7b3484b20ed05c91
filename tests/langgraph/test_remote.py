"""A RemoteGraph as a node: what its server streams, attributed to it.  The server is a stand-in; the client is real."""

from types import SimpleNamespace

import pytest
from byline_langgraph.scripted import Say
from kit import Play, agent, ask, call
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk.schema import StreamPart


class Runs:
    """The part of the SDK's client that a RemoteGraph streams from."""

    def __init__(self, *parts):
        self.parts = parts
        self.asked = []

    async def stream(self, **asked):
        self.asked.append(asked)
        for event, data in self.parts:
            yield StreamPart(event, data)


def piece(id_, text, **more):
    return [{"type": "AIMessageChunk", "id": id_, "content": text, **more}, {"langgraph_node": "model"}]


def whole(id_, text):
    return {"type": "ai", "id": id_, "content": text, "tool_calls": []}


def remote(*parts):
    runs = Runs(*parts)
    return RemoteGraph(
        "far", client=SimpleNamespace(runs=runs), sync_client=SimpleNamespace(runs=runs), name="far"
    )


def around(far):
    graph = StateGraph(MessagesState).add_node("before", agent("near", "near words")).add_node("far", far)
    return graph.add_edge(START, "before").add_edge("before", "far").compile(name="main")


REMOTE = (
    'opens as {"framework": "langgraph", "mode": "subgraph", "context": "shared", "interaction": "none", '
    '"approvals": true, "returns": "onward", "remote": true}'
)


def test_its_words():
    far = remote(
        ("messages", piece("msg_1", "far ")),
        ("messages", piece("msg_1", "words")),
        ("values", {"messages": [whole("msg_1", "far words")]}),
    )
    assert Play(around(far)).run().lines == [
        "start",
        "near#1 opens as subgraph for main",
        "near#1 says m1: 'near words'",
        "near#1 returns 'near words'",
        f"far#1 {REMOTE} for main",
        "far#1 says msg_1: 'far words'",
        "far#1 returns 'far words'",
        "end",
    ]


def test_its_calls_and_a_subgraph_of_it():
    chunk = {"name": "look", "args": '{"q": "x"}', "id": "call_R", "index": 0, "type": "tool_call_chunk"}
    answer = {"type": "tool", "id": "t1", "content": "seen x", "tool_call_id": "call_R", "name": "look"}
    inner = [
        {"type": "AIMessageChunk", "id": "msg_2", "content": "deep words"},
        {"langgraph_node": "model", "lc_agent_name": "deep"},
    ]
    far = remote(
        ("messages", piece("msg_1", "looking", tool_call_chunks=[chunk])),
        ("messages", [answer, {"langgraph_node": "tools"}]),
        ("messages|inner:0b5e", inner),
        ("values", {"messages": [whole("msg_3", "done")]}),
    )
    lines = Play(around(far)).run().lines
    assert [line for line in lines if "far#1" in line or "deep#1" in line][1:] == [
        "far#1 says msg_1: 'looking'",
        'far#1 calls call_R in msg_1: look {"q": "x"}',
        "far#1 hears call_R: 'seen x'",
        f"deep#1 {REMOTE} for far#1",
        "deep#1 says msg_2: 'deep words'",
        "deep#1 returns None",
        "far#1 returns 'done'",
    ]


def test_an_answer_that_was_not_streamed():
    said = [whole("msg_1", "all at once"), {"langgraph_node": "model"}]
    far = remote(("messages", said), ("values", {"messages": [whole("msg_1", "all at once")]}))
    assert "far#1 says msg_1: 'all at once'" in Play(around(far)).run().lines


def test_it_fails():
    far = remote(
        ("messages", piece("msg_1", "far ")), ("error", {"error": "down", "message": "the server is down"})
    )
    lines = Play(around(far)).run().lines
    assert "far#1 says msg_1: 'far '" in lines
    assert [line.split(":")[0] for line in lines[-2:]] == [
        "far#1 fails RemoteException",
        "run fails RemoteException",
    ]


def test_called_in_a_tool_it_is_a_tool_call():
    """Nothing of it reaches us there, and nothing is made up."""
    far = remote(("values", {"messages": [whole("msg_1", "far words")]}))

    from langchain_core.tools import tool

    @tool
    async def ask_far(q: str) -> str:
        """Ask."""
        return (await far.ainvoke({"messages": [("user", q)]}))["messages"][-1]["content"]

    boss = agent("boss", Say("go", calls=[call("call_A", "ask_far")]), "done", tools=[ask_far])
    assert Play(boss).run().lines == [
        "start",
        "main says m1: 'go'",
        'main calls call_A in m1: ask_far {"q": ""}',
        "main hears call_A: 'far words'",
        "main says m2: 'done'",
        "end",
    ]


@pytest.mark.parametrize("local", [agent("alpha", "alpha answers")])
def test_a_graph_without_one_costs_no_message_parts(local):
    play = Play(
        agent("boss", Say("go", calls=[call("call_A", "ask_alpha")]), "done", tools=[ask(local, "ask_alpha")])
    )
    assert play.agent._bound.has_remote is False
