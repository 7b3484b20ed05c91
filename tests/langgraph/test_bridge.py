"""What apps that were built on the official bridge say: custom events and metadata, attributed to who says them."""

import kit
from byline_langgraph.scripted import Say
from kit import agent, ask, call
from langchain_core.callbacks import adispatch_custom_event
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph


class Play(kit.Play):
    """The kit's play, where the names of custom events are the bridge's and not byline's to choose."""

    def __init__(self, target):
        super().__init__(target, accepts=["custom-name"])


def boss(*turns, tools, **options):
    return agent("boss", *turns, tools=tools, **options)


def asking(sub):
    return boss(Say("go", calls=[call("call_A", "ask_alpha")]), "done", tools=[ask(sub, "ask_alpha")])


def emitting(name, data):
    """A subagent whose one node dispatches a custom event."""

    async def work(state):
        await adispatch_custom_event(name, data)
        return {"messages": [("ai", "worked")]}

    return StateGraph(MessagesState).add_node("work", work).add_edge(START, "work").compile(name="alpha")


OPENS = "alpha#1 opens as tool for main, call call_A in m1"


def test_a_message():
    lines = (
        Play(asking(emitting("manually_emit_message", {"message_id": "mine", "message": "by hand"})))
        .run()
        .lines
    )
    assert lines[3:8] == [
        OPENS,
        "alpha#1 says mine: 'by hand'",
        'alpha#1 custom manually_emit_message: {"message_id": "mine", "message": "by hand"}',
        "alpha#1 says said-1: 'worked'",
        "alpha#1 returns 'worked'",
    ]


def test_a_message_that_the_node_returns_too_is_said_once():
    async def work(state: MessagesState) -> dict:
        await adispatch_custom_event("manually_emit_message", {"message_id": "mine", "message": "by hand"})
        return {"messages": [AIMessage("by hand", id="mine")]}

    graph = StateGraph(MessagesState).add_node("work", work).add_edge(START, "work").compile()
    assert Play(graph).run().lines == [
        "start",
        "main says mine: 'by hand'",
        'main custom manually_emit_message: {"message_id": "mine", "message": "by hand"}',
        "end",
    ]


def test_a_tool_call():
    data = {"id": "call_M", "name": "paint", "args": {"colour": "red"}}
    assert Play(asking(emitting("manually_emit_tool_call", data))).run().lines[3:6] == [
        OPENS,
        'alpha#1 calls call_M in call_M:message: paint {"colour": "red"}',
        'alpha#1 custom manually_emit_tool_call: {"id": "call_M", "name": "paint", "args": {"colour": "red"}}',
    ]


def test_a_state_which_the_graphs_own_then_corrects():
    class State(MessagesState):
        count: int

    async def work(state):
        await adispatch_custom_event("manually_emit_state", {"count": 50})
        return {"count": 100}

    graph = StateGraph(State).add_node("work", work).add_edge(START, "work").compile(name="boss")
    assert Play(graph).run(state={"count": 1}).lines == [
        "start",
        'main state {"count": 50}',
        'main custom manually_emit_state: {"count": 50}',
        'main state {"count": 100}',
        "end",
    ]


def test_a_state_that_was_set_by_hand_and_does_not_come_true():
    class State(MessagesState):
        count: int

    async def work(state):
        await adispatch_custom_event("manually_emit_state", {"count": 50})
        return {"count": 1}

    graph = StateGraph(State).add_node("work", work).add_edge(START, "work").compile(name="boss")
    assert Play(graph).run(state={"count": 1}).lines[1:4:2] == [
        'main state {"count": 50}',
        'main state {"count": 1}',
    ]


def test_malformed_ones_are_custom_events_and_nothing_else():
    for name, data in [
        ("manually_emit_message", "no mapping"),
        ("manually_emit_message", {"message": "no id"}),
        ("manually_emit_tool_call", {"id": 7}),
    ]:
        lines = Play(asking(emitting(name, data))).run().lines
        assert lines[4].startswith(f"alpha#1 custom {name}: ")


def configured(metadata, *turns, tools=()):
    """A subagent whose model has metadata."""
    return agent("alpha", *turns, tools=tools, model_options={"metadata": metadata})


@tool
def write(q: str) -> str:
    """Write."""
    return f"wrote {q}"


def test_a_prediction_of_state():
    told = [{"state_key": "document", "tool": "write", "tool_argument": "q"}]
    alpha = configured(
        {"predict_state": told}, Say("writing", calls=[call("call_W", "write", "x")]), "ok", tools=[write]
    )
    assert Play(asking(alpha)).run().lines[3:9] == [
        OPENS,
        "alpha#1 says m2+: 'writing'",
        'alpha#1 custom PredictState: [{"state_key": "document", "tool": "write", "tool_argument": "q"}]',
        "alpha#1 says +m2: ''",
        'alpha#1 calls call_W in m2: write {"q": "x"}',
        "alpha#1 hears call_W: 'wrote x'",
    ]


def test_words_that_the_app_keeps_from_the_stream():
    for key in ("emit-messages", "copilotkit:emit-messages"):
        alpha = configured(
            {key: False}, Say("secret", calls=[call("call_W", "write", "x")]), "secret", tools=[write]
        )
        assert Play(asking(alpha)).run().lines[3:7] == [
            OPENS,
            'alpha#1 calls call_W in m2: write {"q": "x"}',
            "alpha#1 hears call_W: 'wrote x'",
            "alpha#1 returns 'secret'",
        ]


def test_calls_that_the_app_keeps_from_the_stream():
    helper = ask(agent("helper", "helper answers"), "ask_helper")
    turn = Say("asking", calls=[call("call_W", "write", "x"), call("call_H", "ask_helper", "y")])
    alpha = configured({"emit-tool-calls": False}, turn, "ok", tools=[write, helper])
    lanes = Play(asking(alpha)).run().lanes
    assert lanes["alpha#1"] == [
        "opens as tool for main, call call_A in m1",
        "says m3: 'asking'",
        "says m4: 'ok'",
        "returns 'ok'",
    ]
    assert lanes["helper#1"][0] == "opens as tool for alpha#1"


def test_what_is_quiet_is_counted():
    usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    alpha = configured({"emit-messages": False}, Say("secret", usage=usage))
    last = Play(asking(alpha)).run().events[-1]
    assert [(one.input_tokens, one.output_tokens) for one in last.usage] == [(3, 4)]
