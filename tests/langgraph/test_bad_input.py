"""What cannot be used is refused before the graph is called, with the value and the cure."""

from importlib.metadata import version

import pytest
from byline.errors import InputError, NoAdapterError, UnsupportedVersionError
from byline_langgraph import _compat
from kit import Play, agent, attribute_plugins, human
from langgraph.graph import START, MessagesState, StateGraph

from byline import attribute


def refused(target, error, **options):
    with pytest.raises(error) as caught:
        attribute(target, plugins=attribute_plugins(), **options)
    return str(caught.value)


def builder():
    graph = StateGraph(MessagesState)
    graph.add_node("keep", lambda state: {})
    graph.add_edge(START, "keep")
    return graph


def test_a_target_that_no_adapter_takes():
    assert refused(42, NoAdapterError) == "no adapter takes builtins.int; asked: langgraph"


def test_a_graph_that_was_not_compiled():
    assert refused(builder(), NoAdapterError) == (
        "no adapter takes langgraph.graph.state.StateGraph; "
        "a graph has to be compiled first: attribute(builder.compile()); asked: langgraph"
    )


def test_a_visibility_that_there_is_not():
    assert refused(agent(None, "x"), InputError, visibility="secret") == (
        "visibility 'secret' is unknown: expected one of attributed, inline, hidden"
    )


def test_a_langgraph_that_is_too_old(monkeypatch):
    monkeypatch.setattr(_compat, "version", lambda name: "1.0.5")
    assert refused(agent(None, "x"), UnsupportedVersionError) == (
        "langgraph 1.0.5 is installed, byline supports 1.1 up to but not including 2.0: pip install 'byline[langgraph]'"
    )


def test_a_langgraph_that_is_too_new(monkeypatch):
    monkeypatch.setattr(_compat, "version", lambda name: "2.0.0rc1")
    assert refused(agent(None, "x"), UnsupportedVersionError) == (
        "langgraph 2.0.0rc1 is installed, byline supports 1.1 up to but not including 2.0: "
        "pip install 'byline[langgraph]'"
    )


def test_the_installed_langgraph_is_supported():
    assert _compat.OLDEST <= tuple(int(part) for part in version("langgraph").split(".")[:2]) < _compat.BEYOND


def message(play, run):
    with pytest.raises(InputError) as caught:
        run(play)
    assert play.llm_requests == []
    return str(caught.value)


def play():
    graph = agent(None, "never")
    stage = Play(graph)
    stage.llm_requests = graph.nodes["model"].bound.func.__closure__ and []
    return stage


def test_an_input_that_is_none():
    assert message(play(), lambda stage: stage.agent.run([human("go")])) == (
        "expected a RunAgentInput or its wire form, got list: "
        "build one with ag_ui.core.RunAgentInput, or call stream() with the framework's own arguments"
    )


def test_an_input_without_what_it_needs():
    assert message(play(), lambda stage: stage.agent.run({"threadId": "t", "messages": [{"role": "nobody"}]})) == (
        "not a RunAgentInput: runId: Field required; messages.0: Input tag 'nobody' found using 'role' does not match "
        "any of the expected tags: 'developer', 'system', 'assistant', 'user', 'tool', 'activity', 'reasoning'"
    )


def test_a_state_that_is_no_object():
    assert message(play(), lambda stage: stage.run(state=[1, 2])) == (
        "state is list, expected an object: a graph's state has names, so its values need them"
    )


def test_a_stream_mode_of_the_callers_own():
    assert message(play(), lambda stage: stage.agent.stream(human("go"), stream_mode="values", version="v2")) == (
        "stream() was given stream_mode, version: it brings its own, because the events are made of them; "
        "leave them out, the graph's values are in the run's `result`"
    )


def test_a_config_that_is_none():
    assert message(play(), lambda stage: stage.agent.stream(human("go"), "thread-1")) == (
        "config is str, expected a mapping: stream(native_input, {'configurable': {'thread_id': ...}})"
    )
