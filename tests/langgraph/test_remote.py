"""Remote graphs as nodes: the graph is real, its server is a script of what a server streams."""

from kit import Play, agent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState
from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk.schema import StreamPart
from test_nodes import chain


class Server:
    """Stands for the client of LangGraph's SDK: streams the next script, and notes what it was asked."""

    def __init__(self, *scripts):
        self.runs = self
        self.scripts = list(scripts)
        self.asked = []

    async def stream(self, **request):
        self.asked.append((request["input"], request["command"]))
        for event, data in self.scripts.pop(0):
            yield StreamPart(event, data)


def remote(*scripts, name="far"):
    server = Server(*scripts)
    return RemoteGraph("assistant", name=name, client=server), server


def chunk(id_, content="", **more):
    return [{"type": "AIMessageChunk", "id": id_, "content": content, **more}, {"langgraph_node": "model"}]


def message(kind, id_, content="", **more):
    return {"type": kind, "id": id_, "content": content, **more}


def piece(index, args, id_=None, name=None):
    return [{"index": index, "args": args, "id": id_, "name": name}]


USAGE = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}


def test_what_a_remote_graph_streams_is_its_own():
    far, _ = remote(
        [
            ("messages", chunk("f1", "far ")),
            ("messages", chunk("f1", "asks")),
            ("messages", chunk("f1", tool_call_chunks=piece(0, "", "call_F", "look"))),
            ("messages", chunk("f1", tool_call_chunks=piece(0, '{"q": 1}'))),
            ("messages", [message("tool", "t1", "found", tool_call_id="call_F"), {}]),
            ("custom", {"name": "app.progress", "value": 1}),
            ("messages|deep:1", chunk("f2", "deep words")),
            ("messages", chunk("f3", [{"type": "reasoning", "reasoning": "far thinks"}])),
            (
                "messages",
                chunk("f3", "far answers", usage_metadata=USAGE, response_metadata={"model_name": "m"}),
            ),
            ("values", {"messages": [message("ai", "f3", "far answers")]}),
        ]
    )
    near = agent("near", "", "near answers")
    assert Play(chain(remote=far, local=near).compile()).run().lines == [
        "start",
        "far#1 opens as subgraph for main",
        "far#1 says f1: 'far asks'",
        'far#1 calls call_F in f1: look {"q": 1}',
        "far#1 hears call_F: 'found'",
        "far#1 custom app.progress: 1",
        "deep#1 opens as something for far#1",
        "deep#1 says f2+: 'deep words'",
        "far#1 thinks f3:reasoning: 'far thinks'",
        "far#1 says f3+: 'far answers'",
        "deep#1 says +f2: ''",
        "deep#1 returns None",
        "far#1 says +f3: ''",
        "far#1 returns 'far answers'",
        "near#1 opens as subgraph for main",
        "near#1 says m1: 'near answers'",
        "near#1 returns 'near answers'",
        (
            "end"
            ' usage {"model": "m", "inputTokens": 5, "outputTokens": 2, "totalTokens": 7}'
            ' of {"subagentRunId": "far#1", "model": "m", "inputTokens": 5, "outputTokens": 2, "totalTokens": 7}'
        ),
    ]


def test_whole_messages_are_told_once():
    answer = message("ai", "f1", "far looks", tool_calls=[{"id": "call_F", "name": "look", "args": {"q": 1}}])
    far, _ = remote(
        [
            ("messages", [answer, {}]),
            ("messages", [answer, {}]),
            ("messages", [message("tool", "t1", "found", tool_call_id="call_F"), {}]),
            ("values", {"messages": [answer, message("tool", "t1", "found", tool_call_id="call_F")]}),
        ]
    )
    assert Play(chain(remote=far).compile()).run().lines == [
        "start",
        "far#1 opens as subgraph for main",
        "far#1 says f1: 'far looks'",
        'far#1 calls call_F in f1: look {"q": 1}',
        "far#1 hears call_F: 'found'",
        "far#1 returns 'found'",
        "end",
    ]


def test_a_question_of_a_remote_graph():
    far, _ = remote(
        [
            ("messages", chunk("f1", "far asks")),
            ("updates", {"__interrupt__": [{"value": "far?", "id": "0" * 32}]}),
        ],
        [
            ("messages", chunk("f2", "far knows")),
            ("values", {"messages": [message("ai", "f2", "far knows")]}),
        ],
    )
    # Its question names no call, and a subgraph node is not foreseen to ask.
    play = Play(chain(remote=far).compile(checkpointer=InMemorySaver()), accepts=["contract-interaction"])
    assert play.run().lines == [
        "start",
        "far#1 opens as subgraph for main",
        "far#1 says f1: 'far asks'",
        "far#1 suspends i1",
        "waits [i1 far#1 langgraph:interrupt 'far?']",
    ]
    assert play.resume({"i1": "yes"}).lines == [
        "start",
        "far#1 opens as subgraph for main",
        "far#1 says f2: 'far knows'",
        "far#1 returns 'far knows'",
        "end",
    ]


def test_a_remote_graph_that_fails():
    far, _ = remote([("messages", chunk("f1", "far has half a")), ("error", {"error": "gone"})])
    trace = Play(chain(remote=far).compile()).run()
    assert trace.lines == [
        "start",
        "far#1 opens as subgraph for main",
        "far#1 says f1: 'far has half a'",
        "far#1 fails RemoteException: {'error': 'gone'}",
        "run fails RemoteException: {'error': 'gone'}",
    ]


def test_a_remote_graph_within_a_subgraph():
    far, _ = remote([("messages", chunk("f1", "far answers")), ("values", {"messages": []})])
    inner = chain(remote=far).compile(name="inner")
    lines = Play(chain(inner=inner).compile()).run().lanes
    assert lines == {
        "run": ["start", "end"],
        "far#1": ["opens as subgraph for inner#1", "says f1: 'far answers'", "returns None"],
        "inner#1": ["opens as subgraph for main", "returns 'go'"],
    }


def test_a_graph_that_calls_itself_is_no_trouble():
    async def again(state: MessagesState) -> dict:
        if len(state["messages"]) < 2:
            await itself.ainvoke({"messages": [*state["messages"], ("ai", "deeper")]})
        return {}

    itself = chain(again=again).compile(name="itself")
    assert Play(itself).run().lines == [
        "start",
        "itself#1 opens as subgraph for main",
        "itself#1 returns 'deeper'",
        "end",
    ]
