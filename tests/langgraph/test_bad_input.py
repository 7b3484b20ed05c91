"""What cannot be used is refused before the graph is called, with the value and the cure."""

from importlib.metadata import version

import pytest
from byline import attribute
from byline.errors import InputError, NoAdapterError, ResumeError, UnsupportedVersionError
from byline_langgraph import _compat
from byline_langgraph.scripted import Say
from kit import Play, agent, attribute_plugins, call, human, model
from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from test_interrupts import confirm


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
    # Who was asked depends on what is installed.
    assert refused(42, NoAdapterError).partition("; asked: ")[0] == "no adapter takes builtins.int"


def test_a_graph_that_was_not_compiled():
    assert refused(builder(), NoAdapterError).partition("; asked: ")[0] == (
        "no adapter takes langgraph.graph.state.StateGraph; "
        "a graph has to be compiled first: attribute(builder.compile())"
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


def message(run):
    """Return why a run is refused; the graph must not have been called."""
    llm = model("never")
    with pytest.raises(InputError) as caught:
        run(Play(create_agent(llm, [])))
    assert llm.requests == []
    return str(caught.value)


def test_an_input_that_is_none():
    assert message(lambda stage: stage.agent.run([human("go")])) == (
        "expected a RunAgentInput or its wire form, got list: "
        "build one with ag_ui.core.RunAgentInput, or call stream() with the framework's own arguments"
    )


def test_an_input_without_what_it_needs():
    assert message(lambda stage: stage.agent.run({"threadId": "t", "messages": [{"role": "nobody"}]})) == (
        "not a RunAgentInput: runId: Field required; messages.0: Input tag 'nobody' found using 'role' does not match "
        "any of the expected tags: 'developer', 'system', 'assistant', 'user', 'tool', 'activity', 'reasoning'"
    )


def test_a_state_that_is_no_object():
    assert message(lambda stage: stage.run(state=[1, 2])) == (
        "state is list, expected an object: a graph's state has names, so its values need them"
    )


def test_a_stream_mode_of_the_callers_own():
    assert message(lambda stage: stage.agent.stream(human("go"), stream_mode="values", version="v2")) == (
        "stream() was given stream_mode, version: it brings its own, because the events are made of them; "
        "leave them out, the graph's values are in the run's `result`"
    )


def test_a_config_that_is_none():
    assert message(lambda stage: stage.agent.stream(human("go"), "thread-1")) == (
        "config is str, expected a mapping: stream(native_input, {'configurable': {'thread_id': ...}})"
    )


def no(play_and_llm, *args, **fields):
    """Return why a run is refused; the graph must not have been called."""
    play, llm = play_and_llm
    calls = len(llm.requests)
    with pytest.raises(ResumeError) as caught:
        play.run(*args, **fields)
    assert len(llm.requests) == calls
    return play.names.rename(str(caught.value))


def asking(**options):
    """A play of an agent that asks, and the model that must not be called."""
    llm = model(Say("main asks", calls=[call("call_C", "confirm", "sure")]), "main done")
    return Play(create_agent(llm, [confirm], **options)), llm


def test_an_answer_to_an_unknown_interrupt():
    play, llm = asking(checkpointer=InMemorySaver())
    play.run()
    resume = [{"interruptId": "nobody", "status": "resolved", "payload": 1}]
    assert no((play, llm), None, resume_entries=resume) == (
        "resume answers interrupt 'nobody', which is not open on thread 't': it is unknown or already answered; "
        "open are 'i1'"
    )


def test_an_answer_to_an_interrupt_that_has_been_answered():
    play, llm = asking(checkpointer=InMemorySaver())
    play.run()
    play.resume({"i1": "yes"})
    assert no((play, llm), None, resume={"i1": "again"}) == (
        "resume answers interrupt 'i1', which is not open on thread 't': it is unknown or already answered; "
        "open are none"
    )


def test_two_answers_to_one_interrupt():
    play, llm = asking(checkpointer=InMemorySaver())
    play.run()
    native = play.names.native("i1")
    twice = [{"interruptId": native, "status": "resolved", "payload": n} for n in (1, 2)]
    assert no((play, llm), None, resume_entries=twice) == (
        "resume answers interrupt 'i1' twice: send one entry per interrupt"
    )


def test_a_resume_without_a_checkpointer():
    play, llm = asking()
    resume = [{"interruptId": "any", "status": "resolved", "payload": 1}]
    assert no((play, llm), None, resume_entries=resume) == (
        "resume needs a checkpointer, and this graph was compiled without one: "
        "compile(checkpointer=...) keeps what an interrupt has to continue"
    )


def test_a_run_that_would_pass_over_an_open_interrupt():
    play, llm = asking(checkpointer=InMemorySaver())
    play.run()
    assert no((play, llm), "and now?") == (
        "thread 't' waits for an answer to 'i1': send a resume entry for each, with status 'cancelled' to abandon it"
    )
