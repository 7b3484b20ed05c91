"""Recording teams that are called synchronously: `invoke` and `stream`, with no event loop anywhere."""

from pathlib import Path

import pytest
from byline import record
from byline_langgraph.scripted import Say, ScriptedModel
from langchain.agents import create_agent
from langgraph_supervisor import create_supervisor
from recording_kit import events, faults, joined, told


def model(*turns: Say) -> ScriptedModel:
    return ScriptedModel(script=list(turns), requests=[])


HI = {"messages": [("user", "hi")]}
THREAD = {"configurable": {"thread_id": "t"}}


def by_invoke(graph):
    return graph.invoke(HI, THREAD)["messages"][-1].text


def by_stream(graph):
    *_, last = graph.stream(HI, THREAD, stream_mode="values")
    return last["messages"][-1].text


def by_stream_messages(graph):
    parts = list(graph.stream(HI, THREAD, stream_mode=["messages", "values"], subgraphs=True))
    return parts[-1][2]["messages"][-1].text


WAYS = pytest.mark.parametrize("way", [by_invoke, by_stream, by_stream_messages])


@WAYS
@pytest.mark.filterwarnings("ignore::langgraph.warnings.LangGraphDeprecatedSinceV10")
def test_a_supervisor(way, tmp_path: Path):
    alpha = create_agent(model(Say(""), Say("alpha answers")), [], name="alpha")
    boss = model(
        Say("over to alpha", calls=[("h1", "transfer_to_alpha", {})]), Say(""), Say(""), Say("all done")
    )
    graph = create_supervisor([alpha], model=boss).compile()
    path = tmp_path / "run.jsonl"
    with record(path):
        assert way(graph) == "all done"
    recorded = joined(events(path))
    assert told(recorded) == [
        "- RUN_STARTED t",
        "- TEXT_MESSAGE_CONTENT over to alpha",
        "- TOOL_CALL_START h1 transfer_to_alpha",
        "- TOOL_CALL_ARGS {}",
        "- TOOL_CALL_RESULT h1 Successfully transferred to alpha",
        "alpha SUBAGENT_STARTED alpha h1",
        "alpha TEXT_MESSAGE_CONTENT alpha answers",
        "alpha SUBAGENT_FINISHED alpha answers",
        "- TEXT_MESSAGE_CONTENT all done",
        "- RUN_FINISHED success",
    ]
    assert faults(recorded) == []


@WAYS
def test_a_deep_agent(way, tmp_path: Path):
    deepagents = pytest.importorskip("deepagents", reason="needs deepagents")
    delegate = [("t1", "task", {"description": "look", "subagent_type": "looker"})]
    ask = [("t2", "task", {"description": "dig", "subagent_type": "digger"})]
    digger = create_agent(model(Say("dug")), [], name="digger")
    looker = deepagents.create_deep_agent(
        model=model(Say("looker asks", calls=ask), Say("looked")),
        subagents=[{"name": "digger", "description": "digs", "runnable": digger}],
        name="looker",
    )
    agent = deepagents.create_deep_agent(
        model=model(Say("main asks", calls=delegate), Say("all done")),
        subagents=[{"name": "looker", "description": "looks", "runnable": looker}],
    )
    path = tmp_path / "run.jsonl"
    with record(path):
        assert way(agent) == "all done"
    recorded = joined(events(path))
    assert told(recorded) == [
        "- RUN_STARTED t",
        "- TEXT_MESSAGE_CONTENT main asks",
        "- TOOL_CALL_START t1 task",
        '- TOOL_CALL_ARGS {"description": "look", "subagent_type": "looker"}',
        "looker SUBAGENT_STARTED looker t1",
        "looker TEXT_MESSAGE_CONTENT looker asks",
        "looker TOOL_CALL_START t2 task",
        'looker TOOL_CALL_ARGS {"description": "dig", "subagent_type": "digger"}',
        "digger SUBAGENT_STARTED digger t2",
        "digger TEXT_MESSAGE_CONTENT dug",
        "digger SUBAGENT_FINISHED dug",
        "looker TOOL_CALL_RESULT t2 dug",
        "looker TEXT_MESSAGE_CONTENT looked",
        "looker SUBAGENT_FINISHED looked",
        "- TOOL_CALL_RESULT t1 looked",
        "- TEXT_MESSAGE_CONTENT all done",
        "- STATE_SNAPSHOT {'files': {}}",
        "- RUN_FINISHED success",
    ]
    assert faults(recorded) == []
