"""Recording LangGraph apps: every way of calling one, and that the app cannot tell."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from byline import record
from langchain_core.messages import BaseMessage
from langgraph.types import Command
from recording_apps import asked, team
from recording_kit import events, faults, joined, told

PLAIN = [
    "- RUN_STARTED t",
    "- TOOL_CALL_START m1 delegate",
    '- TOOL_CALL_ARGS {"task": "go"}',
    "sub SUBAGENT_STARTED sub m1",
    "sub TEXT_MESSAGE_CONTENT sub says hello",
    "sub SUBAGENT_FINISHED sub says hello",
    "- TOOL_CALL_RESULT m1 sub says hello",
    "- TEXT_MESSAGE_CONTENT all done",
    "- RUN_FINISHED success",
]
STREAMED = PLAIN
"""Pieces that came within a moment are recorded together, so how many there are is a matter of time."""


def by_invoke(app: Any) -> None:
    app.invoke(*asked("t"))


def by_stream(app: Any) -> None:
    for _ in app.stream(*asked("t"), stream_mode="values"):
        pass


def by_batch(app: Any) -> None:
    given, config = asked("t")
    app.batch([given], [config])


def by_stream_messages(app: Any) -> None:
    for _ in app.stream(*asked("t"), stream_mode="messages", subgraphs=True):
        pass


def by_ainvoke(app: Any) -> None:
    asyncio.run(app.ainvoke(*asked("t")))


def by_astream_messages(app: Any) -> None:
    async def go() -> None:
        async for _ in app.astream(*asked("t"), stream_mode="messages"):
            pass

    asyncio.run(go())


def by_astream_events(app: Any) -> None:
    async def go() -> None:
        async for _ in app.astream_events(*asked("t"), version="v2"):
            pass

    asyncio.run(go())


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (by_invoke, PLAIN),
        (by_stream, PLAIN),
        (by_batch, PLAIN),
        (by_ainvoke, PLAIN),
        (by_stream_messages, STREAMED),
        (by_astream_messages, STREAMED),
        (by_astream_events, STREAMED),
    ],
)
def test_every_way_of_calling_is_recorded_as_it_happened(call: Any, expected: list[str], tmp_path: Path):
    """What the app does not stream is not streamed for the recording's sake."""
    path = tmp_path / "run.jsonl"
    with record(path):
        call(team())
    assert told(joined(events(path))) == expected
    assert faults(events(path)) == []


def test_tokens_are_written_while_the_model_speaks(tmp_path: Path):
    """A model that hangs after its first words leaves them in the file."""
    from byline_langgraph.scripted import Say, ScriptedModel
    from langchain.agents import create_agent

    path = tmp_path / "run.jsonl"
    app = create_agent(ScriptedModel(script=[Say("one two three", pause=0.2)]), [], name="main")
    seen: list[list[str]] = []

    async def go() -> None:
        with record(path):
            async for _ in app.astream(*asked("t"), stream_mode="messages"):
                await asyncio.sleep(0.1)
                seen.append([line for line in told(events(path)) if "TEXT" in line])

    asyncio.run(go())
    assert seen[:3] == [
        ["- TEXT_MESSAGE_CONTENT one "],
        ["- TEXT_MESSAGE_CONTENT one ", "- TEXT_MESSAGE_CONTENT two "],
        ["- TEXT_MESSAGE_CONTENT one ", "- TEXT_MESSAGE_CONTENT two ", "- TEXT_MESSAGE_CONTENT three"],
    ]


def test_a_question_and_its_answer_are_two_runs_of_one_invocation(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    app = team(approval=True)
    given, config = asked("t")
    with record(path):
        app.invoke(given, config)
        app.invoke(Command(resume="yes"), config)
    recorded = events(path)
    assert told(recorded) == [
        "- RUN_STARTED t",
        "- TOOL_CALL_START m1 delegate",
        '- TOOL_CALL_ARGS {"task": "go"}',
        "sub SUBAGENT_STARTED sub m1",
        "sub TOOL_CALL_START c1 ask",
        'sub TOOL_CALL_ARGS {"question": "ok?"}',
        "sub SUBAGENT_FINISHED suspended",
        "- RUN_FINISHED interrupt",
        "- RUN_STARTED t",
        "sub SUBAGENT_STARTED sub m1",
        "sub TOOL_CALL_RESULT c1 yes",
        "sub TEXT_MESSAGE_CONTENT sub says hello",
        "sub SUBAGENT_FINISHED sub says hello",
        "- TOOL_CALL_RESULT m1 sub says hello",
        "- TEXT_MESSAGE_CONTENT all done",
        "- RUN_FINISHED success",
    ]
    ids = {event["subagentRunId"] for event in recorded if "subagentRunId" in event}
    assert len(ids) == 1
    interrupts = next(event for event in recorded if event["type"] == "RUN_FINISHED")["outcome"]["interrupts"]
    assert [(one["subagentRunId"], one["toolCallId"]) for one in interrupts] == [(ids.pop(), "c1")]
    assert faults(recorded) == []


def test_the_apps_own_exception_comes_through(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    with pytest.raises(ValueError, match=r"^no such thing"), record(path):
        team(fails=ValueError("no such thing")).invoke(*asked("t"))
    assert told(events(path)) == [
        "- RUN_STARTED t",
        "- TOOL_CALL_START m1 delegate",
        '- TOOL_CALL_ARGS {"task": "go"}',
        "sub SUBAGENT_STARTED sub m1",
        "sub SUBAGENT_ERROR ValueError no such thing",
        "- RUN_ERROR ValueError no such thing",
    ]
    assert faults(events(path)) == []


def test_a_consumer_that_stops_reading_cancels_the_run(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    with record(path):
        stream = team().stream(*asked("t"), stream_mode="updates")
        next(stream)
        stream.close()
    assert told(events(path)) == [
        "- RUN_STARTED t",
        "- TOOL_CALL_START m1 delegate",
        '- TOOL_CALL_ARGS {"task": "go"}',
        "- RUN_FINISHED cancelled",
    ]


def test_a_run_that_outlives_the_recording_ends_with_it(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    with record(path):
        stream = team().stream(*asked("t"), stream_mode="updates")
        next(stream)
    assert len(list(stream)) == 2  # the app goes on
    assert told(events(path))[-1] == "- RUN_FINISHED cancelled"
    assert faults(events(path)) == []


def _without_made_up_ids(value: Any) -> Any:
    if isinstance(value, BaseMessage):
        return (value.type, value.content, getattr(value, "tool_calls", None), value.response_metadata)
    if isinstance(value, dict):
        return {key: _without_made_up_ids(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_made_up_ids(item) for item in value]
    return value


def test_results_and_stored_state_are_the_same_as_without():
    results, states, histories, requests = [], [], [], []
    for recorded in (False, True):
        app = team()
        given, config = asked("t")
        taken: list[Any] = []
        if recorded:
            with record(taken.append):
                results.append(_without_made_up_ids(app.invoke(given, config)))
        else:
            results.append(_without_made_up_ids(app.invoke(given, config)))
        states.append(_without_made_up_ids(app.get_state(config).values))
        histories.append([(one.metadata, one.next) for one in app.get_state_history(config)])
        requests.append(len(taken) > 0)
    assert requests == [False, True]
    assert results[0] == results[1]
    assert states[0] == states[1]
    assert histories[0] == histories[1]


def test_runs_that_happen_at_once_are_written_one_after_the_other(tmp_path: Path):
    path = tmp_path / "run.jsonl"

    async def go() -> None:
        app = team()
        async with record(path):
            await asyncio.gather(*(app.ainvoke(*asked(f"t{number}")) for number in range(4)))

    asyncio.run(go())
    recorded = events(path)
    expected = [[line.replace("RUN_STARTED t", f"RUN_STARTED t{n}") for line in PLAIN] for n in range(4)]
    assert told(recorded) == [line for run in expected for line in run]
    assert faults(recorded) == []


def test_recordings_inside_recordings_see_what_is_theirs(tmp_path: Path):
    outer, inner = tmp_path / "outer.jsonl", tmp_path / "inner.jsonl"
    app = team()
    with record(outer):
        app.invoke(*asked("one"))
        with record(inner):
            app.invoke(*asked("two"))
        app.invoke(*asked("three"))
    assert [line for line in told(events(outer)) if "RUN_STARTED" in line] == [
        "- RUN_STARTED one",
        "- RUN_STARTED two",
        "- RUN_STARTED three",
    ]
    assert told(events(inner)) == [line.replace("RUN_STARTED t", "RUN_STARTED two") for line in PLAIN]
    assert faults(events(outer)) == faults(events(inner)) == []


def test_a_recording_begun_inside_a_run_sees_the_rest_of_it_as_its_own(tmp_path: Path):
    from byline_langgraph.scripted import Say, ScriptedModel
    from langchain.agents import create_agent
    from langchain_core.tools import tool

    outer, inner = tmp_path / "outer.jsonl", tmp_path / "inner.jsonl"
    sub = create_agent(ScriptedModel(script=[Say("sub says hello")]), [], name="sub")

    @tool
    def delegate(task: str) -> str:
        """Delegate under a recording of its own."""
        with record(inner):
            return str(sub.invoke({"messages": [("user", task)]})["messages"][-1].content)

    script = [Say(calls=[("m1", "delegate", {"task": "go"})]), Say("all done")]
    app = create_agent(ScriptedModel(script=script), [delegate], name="main")
    with record(outer):
        app.invoke(*asked("t"))
    assert told(events(outer)) == PLAIN
    assert [line for line in told(events(inner)) if "TEXT" in line] == [
        "- TEXT_MESSAGE_CONTENT sub says hello"
    ]
    assert told(events(inner))[-1] == "- RUN_FINISHED success"


def test_decorated_functions_of_all_four_kinds(tmp_path: Path):
    app = team()
    paths = [tmp_path / f"{number}.jsonl" for number in range(4)]

    @record(paths[0])
    def plain(thread: str) -> str:
        return str(app.invoke(*asked(thread))["messages"][-1].content)

    @record(paths[1])
    async def coroutine(thread: str) -> str:
        return str((await app.ainvoke(*asked(thread)))["messages"][-1].content)

    @record(paths[2])
    def generator(thread: str) -> Any:
        yield from app.stream(*asked(thread), stream_mode="updates")
        return "over"

    @record(paths[3])
    async def async_generator(thread: str) -> Any:
        async for part in app.astream(*asked(thread), stream_mode="updates"):
            yield part

    async def read() -> int:
        return len([part async for part in async_generator("t3")])

    assert plain("t0") == "all done"
    assert plain("t0b") == "all done"
    assert asyncio.run(coroutine("t1")) == "all done"
    assert len(list(generator("t2"))) == 3
    assert asyncio.run(read()) == 3
    assert [[line for line in told(events(path)) if "RUN_" in line] for path in paths] == [
        ["- RUN_STARTED t0", "- RUN_FINISHED success", "- RUN_STARTED t0b", "- RUN_FINISHED success"],
        ["- RUN_STARTED t1", "- RUN_FINISHED success"],
        ["- RUN_STARTED t2", "- RUN_FINISHED success"],
        ["- RUN_STARTED t3", "- RUN_FINISHED success"],
    ]
    assert (plain.__name__, coroutine.__name__) == ("plain", "coroutine")


def test_nothing_is_recorded_of_what_says_nothing(tmp_path: Path):
    from langchain_core.runnables import RunnableLambda

    path = tmp_path / "run.jsonl"
    with record(path):
        assert RunnableLambda(lambda given: given + 1).invoke(1) == 2
    assert path.read_text() == ""


def test_raw_events_come_when_asked_for_and_redaction_goes_over_them(tmp_path: Path):
    path = tmp_path / "run.jsonl"

    def redact(event: dict[str, Any]) -> dict[str, Any] | None:
        return json.loads(json.dumps(event).replace("hello", "█████"))

    with record(path, raw=True, redact=redact):
        team().invoke(*asked("t"))
    recorded = events(path)
    assert "hello" not in path.read_text()
    raws = [event for event in recorded if event["type"] == "RAW"]
    assert {event["source"] for event in raws} == {"langchain"}
    assert raws[0]["event"]["callback"] == "on_chain_start"
    assert raws[-1]["event"]["callback"] == "on_chain_end"
    names = {
        event["subagentRunId"]: event["name"] for event in recorded if event["type"] == "SUBAGENT_STARTED"
    }
    assert [
        (names.get(event.get("subagentRunId")), event["event"]["callback"])
        for event in raws
        if event["event"]["callback"] in ("on_chat_model_start", "on_llm_end")
    ] == [
        (None, "on_chat_model_start"),
        (None, "on_llm_end"),
        ("sub", "on_chat_model_start"),
        ("sub", "on_llm_end"),
        (None, "on_chat_model_start"),
        (None, "on_llm_end"),
    ]
    rest = [event for event in recorded if event["type"] != "RAW"]
    assert told(rest) == [line.replace("hello", "█████") for line in PLAIN]
    assert faults(recorded) == []


def test_the_state_the_graph_returned_is_recorded(tmp_path: Path):
    from typing import TypedDict

    from langgraph.graph import END, START, StateGraph

    class State(TypedDict):
        count: int

    builder = StateGraph(State)
    builder.add_node("add", lambda state: {"count": state["count"] + 1})
    builder.add_edge(START, "add")
    builder.add_edge("add", END)
    path = tmp_path / "run.jsonl"
    with record(path):
        builder.compile().invoke({"count": 1}, {"configurable": {"thread_id": "t"}})
    assert told(events(path)) == [
        "- RUN_STARTED t",
        "- STATE_SNAPSHOT {'count': 2}",
        "- RUN_FINISHED success",
    ]


def test_the_words_of_a_muted_model_are_not_recorded(tmp_path: Path):
    from byline_langgraph.scripted import Say, ScriptedModel
    from langgraph.graph import START, MessagesState, StateGraph

    quiet = ScriptedModel(script=[Say("a summary nobody should read")]).with_config(tags=["nostream"])

    async def think(state: MessagesState) -> dict[str, Any]:
        async for _ in quiet.astream("sum up"):
            pass
        return {}

    path = tmp_path / "run.jsonl"
    app = StateGraph(MessagesState).add_node("think", think).add_edge(START, "think").compile()
    with record(path):
        asyncio.run(app.ainvoke(*asked("t")))
    assert told(events(path)) == ["- RUN_STARTED t", "- RUN_FINISHED success"]
    assert faults(events(path)) == []
