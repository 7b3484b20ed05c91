"""The app is not affected: its results, its state, its errors, its callbacks, other runs, and our own faults."""

import asyncio
import logging

import pytest
from byline import attribute, signals
from byline.attributor import Attributor
from byline_langgraph import _handler, _session, _speech
from byline_langgraph.scripted import Say, ScriptedModel, last_user_text
from kit import Play, Trace, agent, ask, attribute_plugins, call, human, judge, said
from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime


def team(**options):
    alpha = agent("alpha", "alpha answers")
    return agent(
        "boss",
        Say("boss asks", calls=[call("call_A", "ask_alpha", "qa")]),
        "boss done",
        tools=[ask(alpha, "ask_alpha")],
        **options,
    )


ONE = [
    "start",
    "main says m1: 'boss asks'",
    'main calls call_A in m1: ask_alpha {"q": "qa"}',
    "alpha#1 opens as tool for main, call call_A in m1",
    "alpha#1 says m2: 'alpha answers'",
    "alpha#1 returns 'alpha answers'",
    "main hears call_A: 'alpha answers'",
    "main says m3: 'boss done'",
    "end",
]


def shape(values):
    """Messages without the ids that differ from run to run."""
    return [
        (m.type, m.content, getattr(m, "tool_calls", None), getattr(m, "tool_call_id", None))
        for m in values["messages"]
    ]


def test_result_and_checkpoint_are_those_of_the_plain_graph():
    config = {"configurable": {"thread_id": "t"}}
    plain = team(checkpointer=InMemorySaver())
    expected = asyncio.run(plain.ainvoke(human("go"), config))
    watched = team(checkpointer=InMemorySaver())
    trace = Play(watched).stream(human("go"), config)
    assert trace.lines == ONE
    assert (
        shape(trace.run.result)
        == shape(expected)
        == [
            ("human", "go", None, None),
            (
                "ai",
                "boss asks",
                [{"name": "ask_alpha", "args": {"q": "qa"}, "id": "call_A", "type": "tool_call"}],
                None,
            ),
            ("tool", "alpha answers", None, "call_A"),
            ("ai", "boss done", [], None),
        ]
    )
    one, other = plain.get_state(config), watched.get_state(config)
    assert shape(one.values) == shape(other.values)
    assert (one.next, one.config["configurable"]["checkpoint_ns"]) == (
        other.next,
        other.config["configurable"]["checkpoint_ns"],
    )
    assert len(list(plain.get_state_history(config))) == len(list(watched.get_state_history(config)))


class Counter(BaseCallbackHandler):
    run_inline = True

    def __init__(self):
        self.heard = []

    def on_chain_start(self, serialized, inputs, *, run_id, parent_run_id=None, **kwargs):
        if parent_run_id is None:
            self.heard.append("run")

    def on_chat_model_start(self, serialized, messages, **kwargs):
        self.heard.append("model")

    def on_tool_start(self, serialized, input_str, **kwargs):
        self.heard.append("tool")

    def on_llm_new_token(self, token, **kwargs):
        if token:
            self.heard.append(token)


HEARD = ["run", "model", "boss ", "asks", "tool", "model", "alpha ", "answers", "model", "boss ", "done"]


def test_the_users_own_callbacks_in_the_call_are_called():
    counter = Counter()
    assert Play(team()).stream(human("go"), {"callbacks": [counter]}).lines == ONE
    assert counter.heard == HEARD


def test_the_users_own_callbacks_in_the_agents_config_are_called():
    counter = Counter()
    assert Play(team(), config={"callbacks": [counter]}).run().lines == ONE
    assert counter.heard == HEARD


def test_the_users_own_callbacks_on_the_graph_are_called():
    counter = Counter()
    assert Play(team().with_config(callbacks=[counter])).run().lines == ONE
    assert counter.heard == HEARD


def test_config_and_context_reach_the_graph():
    seen = {}

    async def keep(state: MessagesState, config: RunnableConfig, runtime: Runtime) -> dict:
        seen.update(tags=config["tags"], own=config["configurable"]["own"], context=runtime.context)
        return {}

    builder = StateGraph(MessagesState, context_schema=dict)
    builder.add_node("keep", keep)
    builder.add_edge(START, "keep")
    config = {"tags": ["mine"], "configurable": {"own": 1}}
    Play(builder.compile(), config=config, context={"user": "me"}).run()
    assert seen == {"tags": ["mine"], "own": 1, "context": {"user": "me"}}
    seen.clear()
    Play(builder.compile()).stream(human("go"), config, context={"user": "you"})
    assert seen == {"tags": ["mine"], "own": 1, "context": {"user": "you"}}


def test_twenty_runs_at_once_on_one_agent_do_not_mix():
    class Parrot(ScriptedModel):
        def _turn(self, messages):
            turn = super()._turn(messages)
            return Say(f"{turn.text} {last_user_text(messages)}", calls=turn.calls, pause=0.001)

    alpha = create_agent(Parrot(script=[Say("alpha hears")], requests=[]), [], name="alpha")
    consult = ask(alpha, "ask_alpha")
    boss = create_agent(
        Parrot(
            script=[Say("boss asks", calls=[call("call_A", "ask_alpha", "who")]), Say("boss done")],
            requests=[],
        ),
        [consult],
        name="boss",
        checkpointer=InMemorySaver(),
    )
    one = attribute(boss, plugins=attribute_plugins(), clock=None)

    async def play():
        async def single(n):
            stage = Play(boss, thread=f"t{n}")
            trace = Trace(stage.names)
            async for event in one.run(stage.input(f"n{n}")):
                trace.add(event)
                stage.names.meet(event)
            return trace

        return await asyncio.gather(*[single(n) for n in range(20)])

    for n, trace in enumerate(asyncio.run(play())):
        judge(trace.events)
        assert trace.lines == [
            "start",
            f"main says m1: 'boss asks n{n}'",
            'main calls call_A in m1: ask_alpha {"q": "who"}',
            "alpha#1 opens as tool for main, call call_A in m1",
            "alpha#1 says m2: 'alpha hears who'",
            "alpha#1 returns 'alpha hears who'",
            "main hears call_A: 'alpha hears who'",
            f"main says m3: 'boss done n{n}'",
            "end",
        ]


FAULTS = [
    "on_chain_start",
    "on_chain_end",
    "on_tool_start",
    "on_tool_end",
    "on_chat_model_start",
    "on_llm_new_token",
    "on_llm_end",
]


@pytest.mark.parametrize("callback", FAULTS)
def test_a_fault_of_ours_changes_nothing_for_the_app(callback, monkeypatch, caplog):
    caplog.set_level(logging.CRITICAL, "byline")

    def broken(self, *args, run_id, **kwargs):
        assert isinstance(self, _handler.Handler)
        raise ZeroDivisionError("a bug of ours")

    broken.__name__ = callback
    monkeypatch.setattr(_handler.Handler, callback, _handler.guarded(broken))
    trace = Play(team()).run()
    assert shape(trace.run.result) == [
        ("human", "go", None, None),
        (
            "ai",
            "boss asks",
            [{"name": "ask_alpha", "args": {"q": "qa"}, "id": "call_A", "type": "tool_call"}],
            None,
        ),
        ("tool", "alpha answers", None, "call_A"),
        ("ai", "boss done", [], None),
    ]
    assert trace.run.error is None
    assert [line for line in trace.lines if "byline.fault" in line] == [
        'main custom byline.fault: {"where": "' + callback + '", "error": "ZeroDivisionError: a bug of ours"}'
    ]


def test_a_fault_of_ours_in_the_attributor_changes_nothing_for_the_app(monkeypatch, caplog):
    caplog.set_level(logging.CRITICAL, "byline")

    def broken(self, signal):
        raise ZeroDivisionError("a bug of ours")

    monkeypatch.setattr(Attributor, "_HANDLERS", {**Attributor._HANDLERS, signals.Text: broken})
    trace = Play(team()).run()
    assert said(trace.run.result) == "boss done"
    assert trace.lines == [
        "start",
        'main custom byline.fault: {"where": "signal Text", "error": "ZeroDivisionError: a bug of ours"}',
        'main calls call_A in m1: ask_alpha {"q": "qa"}',
        "alpha#1 opens as tool for main, call call_A in m1",
        "alpha#1 returns 'alpha answers'",
        "main hears call_A: 'alpha answers'",
        "end",
    ]


def test_a_fault_of_ours_leaves_the_apps_own_exception_as_it_was(monkeypatch, caplog):
    caplog.set_level(logging.CRITICAL, "byline")

    def broken(self, error, **kwargs):
        raise ZeroDivisionError("a bug of ours")

    broken.__name__ = "on_chain_error"
    monkeypatch.setattr(_handler.Handler, "on_chain_error", _handler.guarded(broken))
    trace = Play(agent(None, Say("main has half a", fails=RuntimeError("provider gone")))).run()
    assert (type(trace.run.error), str(trace.run.error)) == (RuntimeError, "provider gone")
    assert trace.lines == [
        "start",
        "main says m1: 'main has half a'",
        'main custom byline.fault: {"where": "on_chain_error", "error": "ZeroDivisionError: a bug of ours"}',
        "run fails RuntimeError: provider gone",
    ]


def test_a_fault_of_ours_in_reading_the_stream(monkeypatch, caplog):
    caplog.set_level(logging.CRITICAL, "byline")

    def broken(value):
        raise ZeroDivisionError("a bug of ours")

    monkeypatch.setattr(_session, "plain", broken)
    trace = Play(team()).stream(human("go"))
    assert said(trace.run.result) == "boss done"
    assert trace.lines == [
        "start",
        'main custom byline.fault: {"where": "values", "error": "ZeroDivisionError: a bug of ours"}',
        *ONE[1:],
    ]


def test_an_observer_that_fails_is_not_called_again(caplog):
    caplog.set_level(logging.CRITICAL, "byline")
    seen = []

    def fragile(event):
        seen.append(event.type.value)
        raise RuntimeError("full disk")

    assert Play(team(), observers=[fragile]).run().lines == ONE
    assert seen == ["RUN_STARTED"]


def test_the_graphs_own_objects_are_not_shared_with_the_stream():
    class Noted(MessagesState):
        notes: list

    notes = [{"a": 1}]

    async def keep(state: Noted) -> dict:
        return {"notes": notes}

    builder = StateGraph(Noted)
    builder.add_node("keep", keep)
    builder.add_edge(START, "keep")
    trace = Play(builder.compile()).run()
    notes[0]["a"] = 2
    assert trace.lines == ["start", 'main state {"notes": [{"a": 1}]}', "end"]
    assert trace.run.result["messages"] == [HumanMessage("go", id="u1")]


def test_a_run_inside_a_run_of_another_agent():
    """The inner one is a run of its own; the outer one sees the same graph as a subagent."""
    inner = Play(agent("alpha", "alpha answers"), thread="inner")
    traces = []

    @tool
    async def ask_alpha(q: str) -> str:
        """Ask."""
        traces.append(await inner.arun(q))
        return said(traces[0].run.result)

    outer = agent(
        "boss", Say("boss asks", calls=[call("call_A", "ask_alpha", "qa")]), "boss done", tools=[ask_alpha]
    )
    assert Play(outer).run().lines == ONE
    assert traces[0].lines == ["start", "main says m1: 'alpha answers'", "end"]


FAILING = {
    "on_chain_start": ["main says m1: 'main tries'", 'main calls call_T in m1: break_it {"q": "it"}'],
    "on_chat_model_start": [],
    "on_tool_start": ["main says m1: 'main tries'", 'main calls call_T in m1: break_it {"q": "it"}'],
}


@pytest.mark.parametrize("callback", FAILING)
def test_what_a_fault_of_ours_kept_from_beginning_is_no_fault_when_it_fails(callback, monkeypatch, caplog):
    caplog.set_level(logging.CRITICAL, "byline")

    def broken(self, *args, run_id, **kwargs):
        assert isinstance(self, _handler.Handler)
        raise ZeroDivisionError("a bug of ours")

    @tool
    def break_it(q: str) -> str:
        """Break."""
        raise RuntimeError("provider gone")

    broken.__name__ = callback
    monkeypatch.setattr(_handler.Handler, callback, _handler.guarded(broken))
    calls = Say("main tries", calls=[call("call_T", "break_it", "it")])
    breaks = Say(fails=RuntimeError("provider gone"))
    team = agent(None, breaks if callback == "on_chat_model_start" else calls, tools=[break_it])
    lines = Play(team).run().lines
    told = (
        'main custom byline.fault: {"where": "' + callback + '", "error": "ZeroDivisionError: a bug of ours"}'
    )
    assert lines.count(told) == 1
    lines.remove(told)
    assert lines == ["start", *FAILING[callback], "run fails RuntimeError: provider gone"]


def test_a_fault_of_ours_in_telling_a_token(monkeypatch, caplog):
    caplog.set_level(logging.CRITICAL, "byline")

    def broken(self, model, token, chunk):
        raise ZeroDivisionError("a bug of ours")

    monkeypatch.setattr(_speech.Speech, "token", broken)
    assert Play(agent(None, "main answers")).run().lines == [
        "start",
        'main custom byline.fault: {"where": "on_llm_new_token", "error": "ZeroDivisionError: a bug of ours"}',
        "main says m1: 'main answers'",
        "end",
    ]
