"""Artifacts on LangGraph: the user sees the original, the parent's model a placeholder; state keeps the original."""

import asyncio
import dataclasses
import json
import re

import pytest
from ag_ui.core import EventType, RunAgentInput
from byline import attribute
from byline.artifacts import Artifact, Artifacts, Counts, MemoryArtifacts, showings, shown_twice
from byline.errors import InputError, StoreError
from byline.grants import Permit
from byline.ledger import Ledger
from byline.user import as_user
from byline.validator import Validator
from byline_langgraph import lookup_tool
from byline_langgraph.scripted import Say, ScriptedModel
from kit import attribute_plugins
from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler, adispatch_custom_event
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import RetryPolicy, interrupt
from langgraph_supervisor import create_supervisor

pytestmark = pytest.mark.filterwarnings("ignore:create_react_agent has been moved")

BODY = "<p>" + "all of it " * 200 + "</p>"
RESULT = f'Here: <artifact identifier="q3" type="text/html" title="Q3">{BODY}</artifact> Done.'
CALL = Say(calls=[("c1", "ask_writer", {"q": "x"})])


def scripted(*script: Say) -> ScriptedModel:
    return ScriptedModel(script=list(script), requests=[])


def team(artifacts, *script, saver=None, result=RESULT, extra=(), lookup=True):
    """A parent that asks a writer in a tool."""
    writer = create_agent(scripted(Say(result)), [], name="writer")

    @tool
    async def ask_writer(q: str) -> str:
        """Ask the writer."""
        return (await writer.ainvoke({"messages": [("user", q)]}))["messages"][-1].content

    model = scripted(*script)
    tools = [ask_writer, *extra]
    if lookup and artifacts is not None:
        tools.append(lookup_tool(artifacts))
    return create_agent(model, tools, name="boss", checkpointer=saver or InMemorySaver()), model


def an_input(run_id="r1", text="go", thread="t1", **more) -> RunAgentInput:
    messages = [] if text is None else [{"id": f"u-{run_id}", "role": "user", "content": text}]
    return RunAgentInput.model_validate({"threadId": thread, "runId": run_id, "messages": messages, **more})


def play(graph, artifacts, run_input=None, user="ann", **options):
    async def go():
        agent = attribute(graph, plugins=attribute_plugins(), artifacts=artifacts, clock=None, **options)
        return [event async for event in agent.run(run_input or an_input(), permit=Permit(user))]

    events = asyncio.run(go())
    validator = Validator("producer")
    findings = [found for event in events for found in validator.feed(event)] + list(validator.finish())
    assert [found.rule for found in findings if found.level == "error"] == []
    return events


def results(events):
    return {event.tool_call_id: event.content for event in events if event.type is EventType.TOOL_CALL_RESULT}


def read_by_the_model(model, request=-1):
    return [
        message.content for message in model.requests[request].messages if isinstance(message, ToolMessage)
    ]


def stored(graph, thread="t1"):
    return graph.get_state({"configurable": {"thread_id": thread}}).values["messages"]


def the_only(artifacts, thread="t1", user="ann"):
    (id_,) = artifacts.store.ids(thread, user)
    return artifacts.store.get(id_)


# ------------------------------------------------------------------------------------------------ the two ways


def test_the_user_sees_the_original_and_the_parent_gets_a_placeholder():
    artifacts = Artifacts()
    graph, model = team(artifacts, CALL, Say("done"))
    events = play(graph, artifacts)
    assert results(events) == {"c1": RESULT}
    artifact = the_only(artifacts)
    assert read_by_the_model(model) == [f"Here: {artifacts.placeholder(artifact)} Done."]
    assert [message.content for message in stored(graph) if isinstance(message, ToolMessage)] == [RESULT]


def test_the_artifact_knows_the_invocation_that_made_it():
    artifacts = Artifacts()
    graph, _ = team(artifacts, CALL, Say("done"))
    events = play(graph, artifacts)
    (started,) = [event for event in events if event.type is EventType.SUBAGENT_STARTED]
    artifact = the_only(artifacts)
    assert (artifact.invocation, artifact.source) == (started.subagent_run_id, "c1")
    assert (artifact.type, artifact.title, artifact.identifier, artifact.body) == (
        "text/html",
        "Q3",
        "q3",
        BODY,
    )


class Tree(BaseCallbackHandler):
    """The tree of LangChain runs, a line each, deeper ones further in."""

    run_inline = True

    def __init__(self):
        self.depth, self.lines = {}, []

    def _start(self, kind, name, run_id, parent):
        self.depth[run_id] = self.depth.get(parent, -1) + 1
        self.lines.append("  " * self.depth[run_id] + f"{kind} {name}")

    def on_chain_start(self, serialized, inputs, *, run_id, parent_run_id=None, **kwargs):
        self._start("chain", kwargs.get("name"), run_id, parent_run_id)

    def on_chat_model_start(self, serialized, messages, *, run_id, parent_run_id=None, **kwargs):
        self._start("model", kwargs.get("name"), run_id, parent_run_id)

    def on_tool_start(self, serialized, input_str, *, run_id, parent_run_id=None, **kwargs):
        self._start("tool", kwargs.get("name"), run_id, parent_run_id)


def normal(text):
    """Number what LangChain draws anew for every run: its run ids, and the ids that are made of them."""
    names = {}
    return NATIVE.sub(lambda found: names.setdefault(found[0], f"id-{len(names)}"), text)


NATIVE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?<=writer-)[0-9a-f]{12}")


def test_with_and_without_artifacts_stream_conversation_and_callbacks_are_the_same():
    seen = []
    for artifacts in (Artifacts(), None):
        graph, model = team(Artifacts(), CALL, Say("done"))
        tree = Tree()
        events = play(graph, artifacts, config={"callbacks": [tree]})
        wire = normal("\n".join(event.model_dump_json(by_alias=True, exclude_none=True) for event in events))
        conversation = normal(json.dumps([message.model_dump(mode="json") for message in stored(graph)]))
        seen.append((wire, conversation, tree.lines, sum(len(text) for text in read_by_the_model(model))))
    (wire, conversation, tree, size), (plain_wire, plain_conversation, plain_tree, plain_size) = seen
    assert wire == plain_wire
    assert BODY in wire
    assert conversation == plain_conversation
    assert BODY in conversation
    assert tree == plain_tree
    assert len(tree) > 8
    placeholder = len(Artifacts().placeholder(dataclasses.replace(AN_ARTIFACT, body=BODY)))
    tagged = len(RESULT) - len("Here:  Done.")
    assert (plain_size, size) == (len(RESULT), len(RESULT) - tagged + placeholder), "smaller by the body"


AN_ARTIFACT = Artifact(f"art_{'0' * 24}", "t1", "ann", "c1", 0, "artifact", "", "text/html", "Q3", "q3")


def test_every_later_request_has_the_placeholder_next_turn_and_in_a_new_process():
    store = MemoryArtifacts()
    saver = InMemorySaver()
    artifacts = Artifacts(store)
    graph, _ = team(artifacts, CALL, Say("done"), saver=saver)
    play(graph, artifacts)
    again = Artifacts(store)  # another process: nothing is left but the stores
    graph, model = team(again, CALL, Say("done"), Say("more"), saver=saver)
    play(graph, again, an_input("r2"))
    placeholder = again.placeholder(the_only(again))
    assert read_by_the_model(model) == [f"Here: {placeholder} Done."]
    assert [message.content for message in stored(graph) if isinstance(message, ToolMessage)] == [RESULT]


def test_after_a_resume_in_a_new_process_the_placeholder_stands_there():
    @tool
    def confirm(q: str) -> str:
        """Ask the user."""
        return str(interrupt(q))

    store, saver = MemoryArtifacts(), InMemorySaver()
    script = (CALL, Say(calls=[("c2", "confirm", {"q": "sure?"})]), Say("done"))
    graph, _ = team(Artifacts(store), *script, saver=saver, extra=[confirm])
    events = play(graph, Artifacts(store))
    (asked,) = events[-1].outcome.interrupts
    again = Artifacts(store)
    graph, model = team(again, *script, saver=saver, extra=[confirm])
    play(
        graph,
        again,
        an_input("r2", None, resume=[{"interruptId": asked.id, "status": "resolved", "payload": "yes"}]),
    )
    assert read_by_the_model(model) == [f"Here: {again.placeholder(the_only(again))} Done.", "yes"]


def test_a_model_node_that_writes_the_history_back_writes_originals():
    """LangChain mends a call that could not be parsed by writing the whole history anew."""
    artifacts = Artifacts()
    saver = InMemorySaver()
    graph, _ = team(artifacts, CALL, Say("done"), saver=saver)
    play(graph, artifacts)
    broken = AIMessage(
        "",
        id="broken",
        invalid_tool_calls=[
            {"id": "c9", "name": "ask_writer", "args": "{", "error": "no JSON", "type": "invalid_tool_call"}
        ],
    )
    graph.update_state({"configurable": {"thread_id": "t1"}}, {"messages": [broken]})
    graph, model = team(artifacts, CALL, Say("done"), Say("more"), Say("more"), saver=saver)
    play(graph, artifacts, an_input("r2"))
    assert RESULT not in [message.content for message in model.requests[-1].messages]
    assert RESULT in [message.content for message in stored(graph)]


def test_text_without_a_tag_and_other_tools_results_pass_unchanged():
    @tool
    def fetch(q: str) -> str:
        """Fetch a page, which may hold anything."""
        return RESULT

    artifacts = Artifacts()
    script = (Say(calls=[("c1", "ask_writer", {"q": "x"}), ("c2", "fetch", {"q": "y"})]), Say("done"))
    graph, model = team(artifacts, *script, result="plain words", extra=[fetch])
    play(graph, artifacts)
    assert read_by_the_model(model) == ["plain words", RESULT]
    assert artifacts.store.ids("t1", "ann") == []


def test_an_unclosed_tag_is_shown_and_not_stored():
    artifacts = Artifacts()
    text = "Here: <artifact title='U'>half of it"
    graph, model = team(artifacts, CALL, Say("done"), result=text)
    events = play(graph, artifacts)
    assert results(events) == {"c1": text}
    assert read_by_the_model(model) == [text]
    assert artifacts.store.ids("t1", "ann") == []


def test_a_supervisors_agents_answer_with_ai_messages_which_are_covered():
    artifacts = Artifacts(lookup=False)
    ana = create_agent(scripted(Say(RESULT)), [], name="ana")
    model = scripted(Say(calls=[("c1", "transfer_to_ana", {})]), Say("done"))
    graph = create_supervisor([ana], model=model).compile(name="boss", checkpointer=InMemorySaver())
    play(graph, artifacts)
    placeholder = artifacts.placeholder(the_only(artifacts))
    texts = [message.content for message in model.requests[-1].messages]
    assert f"Here: {placeholder} Done." in texts
    assert RESULT not in texts
    assert RESULT in [message.content for message in stored(graph)]


# ------------------------------------------------------------------------------------------------------- look-up


def looking(artifacts, id_):
    return (CALL, Say(calls=[("c2", "lookup_artifact", {"id": id_})]), Say("done"))


def test_the_parent_looks_up_the_original_without_display_tags():
    artifacts = Artifacts()
    graph, _ = team(artifacts, CALL, Say("done"))
    play(graph, artifacts)
    artifact = the_only(artifacts)
    assert artifacts.counts(artifact.id) == Counts(1, 0), "not looking up is the default"
    graph, model = team(artifacts, *looking(artifacts, artifact.id))
    events = play(graph, artifacts)
    assert results(events) == {"c1": RESULT, "c2": BODY}
    assert read_by_the_model(model) == [f"Here: {artifacts.placeholder(artifact)} Done.", BODY]
    assert artifacts.counts(artifact.id) == Counts(3, 1)
    assert events[-1].metadata is None
    ledger = Ledger()
    for event in events:
        ledger.feed(event)
    shown = [one for one in showings(ledger.messages) if one.owner is None]
    assert [(one.place, one.tool) for one in shown] == [("result", "ask_writer")]
    assert shown_twice(showings(ledger.messages)) == [], "it is no card a second time"
    [fate] = ledger.artifacts(artifacts, user="ann")
    assert (fate.id, fate.type, fate.title, fate.characters) == (artifact.id, "text/html", "Q3", len(BODY))
    assert [(one.call, one.owner is None) for one in fate.shown] == [("c1", True), (None, False)]
    assert (fate.lookups, fate.counts) == (("c2",), Counts(3, 1))
    [fate] = ledger.artifacts()
    assert (fate.id, fate.lookups, fate.counts) == (artifact.id, ("c2",), None), "without the store"
    assert ledger.shown_twice() == []


@pytest.mark.parametrize(("thread", "user"), [("t2", "ann"), ("t1", "bob")])
def test_an_id_of_another_thread_or_user_is_refused(thread, user):
    artifacts = Artifacts()
    graph, _ = team(artifacts, CALL, Say("done"))
    play(graph, artifacts)
    id_ = the_only(artifacts).id
    graph, _ = team(artifacts, Say(calls=[("c2", "lookup_artifact", {"id": id_})]), Say("done"))
    events = play(graph, artifacts, an_input(thread=thread), user=user)
    (answer,) = results(events).values()
    assert answer.startswith(f"unknown_artifact: there is no artifact '{id_}' in this conversation")
    assert events[-1].type is EventType.RUN_FINISHED
    assert artifacts.counts(id_).lookups == 0


def test_a_look_up_without_an_id_is_refused():
    artifacts = Artifacts()
    graph, _ = team(artifacts, Say(calls=[("c2", "lookup_artifact", {})]), Say("done"))
    (answer,) = results(play(graph, artifacts)).values()
    assert answer.startswith("unknown_artifact: ")


def test_a_look_up_by_a_subagent_is_refused():
    artifacts = Artifacts()
    graph, _ = team(artifacts, CALL, Say("done"))
    play(graph, artifacts)
    id_ = the_only(artifacts).id
    spy = scripted(Say(calls=[("s1", "lookup_artifact", {"id": id_})]), Say("told"))
    writer = create_agent(spy, [lookup_tool(artifacts)], name="writer")

    @tool
    async def ask_writer(q: str) -> str:
        """Ask the writer."""
        return (await writer.ainvoke({"messages": [("user", q)]}))["messages"][-1].content

    boss = create_agent(scripted(CALL, Say("done")), [ask_writer, lookup_tool(artifacts)], name="boss")
    events = play(boss, artifacts)
    assert results(events) == {
        "s1": "not_the_parent: only the parent agent of an attributed run can look an artifact up",
        "c1": "told",
    }
    assert artifacts.counts(id_).lookups == 0


def test_an_agent_without_the_look_up_tool_is_refused_before_the_run_with_the_cure():
    artifacts = Artifacts()
    graph, model = team(artifacts, CALL, Say("done"), lookup=False)
    with pytest.raises(
        InputError, match=r"no tool 'lookup_artifact'.*lookup_tool\(artifacts\).*lookup=False"
    ):
        play(graph, artifacts)
    assert model.requests == []
    play(graph, Artifacts(lookup=False))
    assert "It cannot be looked up from here" in read_by_the_model(model)[0]
    with pytest.raises(InputError, match="have no look-up"):
        lookup_tool(Artifacts(lookup=False))


# ----------------------------------------------------------------------------------------------------- a store that fails


class Down(MemoryArtifacts):
    def put(self, artifacts):
        raise StoreError("the disk is full")


class Gone(MemoryArtifacts):
    def ids(self, thread, user):
        raise StoreError("connection refused")


@pytest.mark.parametrize("store", [Down, Gone])
def test_with_a_store_that_fails_nothing_is_lost(store):
    artifacts = Artifacts(store())
    graph, model = team(artifacts, CALL, Say("done"))
    events = play(graph, artifacts)
    assert results(events) == {"c1": RESULT}
    if store is Down:
        assert read_by_the_model(model) == [RESULT]
    assert events[-1].type is EventType.RUN_FINISHED


def test_the_artifact_of_a_second_attempt_knows_the_second_invocation():
    artifacts = Artifacts(lookup=False)
    writers = [
        create_agent(scripted(Say("half", fails=RuntimeError("gone"))), [], name="writer"),
        create_agent(scripted(Say(RESULT)), [], name="writer"),
    ]

    @tool
    async def ask_writer(q: str) -> str:
        """Ask the writer."""
        return (await writers.pop(0).ainvoke({"messages": [("user", q)]}))["messages"][-1].content

    model = scripted(CALL, Say("done"))

    async def think(state: MessagesState) -> dict:
        return {"messages": [await model.ainvoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("model", think)
    again = RetryPolicy(max_attempts=2, initial_interval=0.01, jitter=False, retry_on=RuntimeError)
    builder.add_node("tools", ToolNode([ask_writer], handle_tool_errors=False), retry_policy=again)
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "model")
    events = play(builder.compile(name="boss", checkpointer=InMemorySaver()), artifacts)
    first, second = [event for event in events if event.type is EventType.SUBAGENT_STARTED]
    assert first.subagent_run_id != second.subagent_run_id
    assert the_only(artifacts).invocation == second.subagent_run_id


def test_the_artifact_in_words_that_an_agent_told_by_itself_knows_its_invocation():
    artifacts = Artifacts(lookup=False)

    async def write(state: MessagesState) -> dict:
        await adispatch_custom_event("manually_emit_message", {"message_id": "mine", "message": RESULT})
        return {"messages": [AIMessage(RESULT, id="mine", name="ana")]}

    ana = StateGraph(MessagesState).add_node("write", write).add_edge(START, "write").compile(name="ana")
    model = scripted(Say(calls=[("c1", "transfer_to_ana", {})]), Say("done"))
    graph = create_supervisor([ana], model=model).compile(name="boss", checkpointer=InMemorySaver())
    events = play(graph, artifacts)
    (started,) = [event for event in events if event.type is EventType.SUBAGENT_STARTED]
    artifact = the_only(artifacts)
    assert (artifact.invocation, artifact.source) == (started.subagent_run_id, "mine")


def test_a_look_up_in_a_store_that_is_down_is_answered_with_its_code():
    class Lost(MemoryArtifacts):
        def get(self, id):  # noqa: A002
            raise StoreError("connection refused")

    artifacts = Artifacts(Lost())
    graph, _ = team(artifacts, Say(calls=[("c2", "lookup_artifact", {"id": "art_1"})]), Say("done"))
    events = play(graph, artifacts)
    assert results(events) == {"c2": "store_unavailable: connection refused"}
    assert events[-1].type is EventType.RUN_FINISHED


@pytest.mark.parametrize("args", [{"id": None}, {"id": 7}, {"id": ""}, {"id": "x" * 10_000}, {"id": ["art"]}])
def test_what_is_no_id_is_refused(args):
    artifacts = Artifacts()
    graph, _ = team(artifacts, Say(calls=[("c2", "lookup_artifact", args)]), Say("done"))
    (answer,) = results(play(graph, artifacts)).values()
    assert answer.startswith("unknown_artifact: there is no artifact ")
    assert len(answer) < 250


def test_a_body_of_ten_megabytes_is_shown_and_stays_in_the_request():
    artifacts = Artifacts()
    result = f"<artifact title='huge'>{'x' * 10_000_000}</artifact>"
    graph, model = team(artifacts, CALL, Say("done"), result=result)
    events = play(graph, artifacts)
    assert results(events) == {"c1": result}
    assert read_by_the_model(model) == [result]
    assert artifacts.store.ids("t1", "ann") == []


def test_a_title_with_markup_is_none_in_the_placeholder():
    artifacts = Artifacts()
    result = '<artifact title="&lt;artifact&gt;[x]&#10;now &quot;obey&quot;">all of it</artifact>'
    graph, model = team(artifacts, CALL, Say("done"), result=result)
    play(graph, artifacts)
    (read,) = read_by_the_model(model)
    assert read == artifacts.placeholder(the_only(artifacts))
    assert 'with title "&lt;artifact&gt;(x) now \\"obey\\"", 9 characters' in read


def test_without_a_permit_artifacts_are_of_the_user_that_the_run_is_for():
    artifacts = Artifacts()
    graph, _ = team(artifacts, CALL, Say("done"))

    async def go():
        agent = attribute(graph, plugins=attribute_plugins(), artifacts=artifacts, clock=None)
        return [event async for event in agent.run(an_input())]

    with as_user("eve"):
        asyncio.run(go())
    assert len(artifacts.store.ids("t1", "eve")) == 1
