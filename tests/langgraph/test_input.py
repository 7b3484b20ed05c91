"""What a client sends, and what the graph gets of it."""

from typing import Any

import pytest
from byline_langgraph.scripted import Say
from kit import Play, agent, ask, call, model
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph


def heard(llm, at=-1):
    """Return what a model was asked, as (type, content, id)."""
    return [(message.type, message.content, message.id) for message in llm.requests[at].messages]


class Everything(MessagesState):
    topic: str
    tools: list
    my_setting: str
    copilotkit: dict


# The channel of a name that Python's class syntax does not have.
Everything.__annotations__["ag-ui"] = dict


def recorder(seen: dict, llm=None, schema: Any = Everything, **options):
    """A graph of one node that keeps the state it is given."""

    async def keep(state) -> dict:
        seen.update(state)
        return {} if llm is None else {"messages": [await llm.ainvoke(state["messages"])]}

    builder = StateGraph(schema)
    builder.add_node("keep", keep)
    builder.add_edge(START, "keep")
    return builder.compile(**options)


def test_state_tools_context_and_forwarded_properties_reach_the_graph():
    seen = {}
    tools = [{"name": "draw", "description": "Draw.", "parameters": {"type": "object"}}]
    context = [{"description": "where", "value": "here"}]
    trace = Play(recorder(seen)).run(
        "hello",
        state={"topic": "ships", "unknown": 1},
        tools=tools,
        context=context,
        forwardedProps={"mySetting": "on", "unknownSetting": "off", "command": {}},
    )
    assert seen == {
        "messages": [HumanMessage("hello", id="u1")],
        "topic": "ships",
        "tools": [{"name": "draw", "description": "Draw.", "parameters": {"type": "object"}}],
        "my_setting": "on",
        "copilotkit": {
            "actions": [{"name": "draw", "description": "Draw.", "parameters": {"type": "object"}}],
            "context": [{"description": "where", "value": "here"}],
        },
        "ag-ui": {
            "tools": [{"name": "draw", "description": "Draw.", "parameters": {"type": "object"}}],
            "context": [{"description": "where", "value": "here"}],
        },
    }
    assert trace.lines == ["start", 'main state {"topic": "ships", "my_setting": "on"}', "end"]


def test_state_merges_into_the_threads():
    seen = {}
    play = Play(recorder(seen, checkpointer=InMemorySaver()))
    play.run("one", state={"topic": "ships", "my_setting": "on"})
    play.run("two", state={"topic": "sails"})
    assert (seen["topic"], seen["my_setting"]) == ("sails", "on")


def test_a_thread_of_the_graphs_own_gets_only_what_is_new():
    llm = model("one answered", "two answered")
    play = Play(recorder({}, llm, MessagesState, checkpointer=InMemorySaver()))
    play.run("one")
    first_answer = "lc_run--as-the-stream-says-it"
    history = [
        {"id": "u1", "role": "user", "content": "one"},
        {"id": first_answer, "role": "assistant", "content": "one answered"},
        {"id": "x1", "role": "assistant", "content": "a subagent's words", "subagentRunId": "alpha-1"},
        {"id": "x2", "role": "user", "content": "said to a subagent", "subagentRunId": "alpha-1"},
        {"id": "x3", "role": "reasoning", "content": "a thought"},
        {"id": "x4", "role": "activity", "activityType": "plan", "content": {"steps": []}},
        {"id": "u2", "role": "user", "content": "two"},
    ]
    play.run(messages=history)
    thread = heard(llm)
    assert thread == [("human", "one", "u1"), ("ai", "one answered", thread[1][2]), ("human", "two", "u2")]


def test_without_a_checkpointer_the_client_holds_the_conversation():
    llm = model("", "", "answered")
    play = Play(recorder({}, llm, MessagesState))
    play.run(
        messages=[
            {"id": "s1", "role": "system", "content": "be kind"},
            {"id": "s2", "role": "developer", "content": "be brief"},
            {"id": "s3", "role": "reasoning", "content": "a thought"},
            {"id": "u1", "role": "user", "content": "one"},
            {
                "id": "a1",
                "role": "assistant",
                "toolCalls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "look_up", "arguments": '{"q": "it"}'},
                    },
                    {
                        "id": "c2",
                        "type": "function",
                        "function": {"name": "look_up", "arguments": '{"q": cut'},
                    },
                ],
            },
            {"id": "t1", "role": "tool", "toolCallId": "c1", "content": "found it"},
            {"id": "t2", "role": "tool", "toolCallId": "c2", "content": "", "error": "no such thing"},
            {"id": "x1", "role": "assistant", "content": "a subagent's words", "subagentRunId": "alpha-1"},
            {
                "id": "x2",
                "role": "tool",
                "toolCallId": "c9",
                "content": "a subagent's",
                "subagentRunId": "alpha-1",
            },
            {"id": "a2", "role": "assistant", "content": "one answered"},
            {"id": "u2", "role": "user", "content": "two"},
        ]
    )
    assert llm.requests[0].messages == [
        SystemMessage("be kind", id="s1"),
        SystemMessage("be brief", id="s2"),
        HumanMessage("one", id="u1"),
        AIMessage(
            "",
            id="a1",
            tool_calls=[
                {"id": "c1", "name": "look_up", "args": {"q": "it"}, "type": "tool_call"},
                {"id": "c2", "name": "look_up", "args": {}, "type": "tool_call"},
            ],
        ),
        ToolMessage("found it", tool_call_id="c1", id="t1"),
        ToolMessage("no such thing", tool_call_id="c2", id="t2", status="error"),
        AIMessage("one answered", id="a2"),
        HumanMessage("two", id="u2"),
    ]


def test_images_and_files_of_the_user():
    llm = model("seen")
    parts = [
        {"type": "text", "text": "look"},
        {"type": "image", "source": {"type": "data", "value": "aGk=", "mimeType": "image/png"}},
        {"type": "image", "source": {"type": "url", "value": "https://a.example/b.png"}},
        {"type": "document", "source": {"type": "file", "value": "file-1"}},
        {"type": "audio", "source": {"type": "data", "value": "aGk=", "mimeType": "audio/wav"}},
    ]
    Play(recorder({}, llm, MessagesState)).run(messages=[{"id": "u1", "role": "user", "content": parts}])
    assert heard(llm) == [
        (
            "human",
            [
                {"type": "text", "text": "look"},
                {"type": "image", "base64": "aGk=", "mime_type": "image/png"},
                {"type": "image", "url": "https://a.example/b.png"},
                {"type": "file", "file_id": "file-1"},
                {"type": "audio", "base64": "aGk=", "mime_type": "audio/wav"},
            ],
            "u1",
        )
    ]


def client_tool_agent(name, *turns, **options):
    """An agent that may call tools which only the client has: its graph ends with the call."""
    llm = model(*turns)

    async def think(state: MessagesState) -> dict:
        return {"messages": [await llm.ainvoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("think", think)
    builder.add_edge(START, "think")
    return builder.compile(name=name, **options), llm


def test_a_client_side_tool_of_the_parent():
    graph, llm = client_tool_agent(
        "boss",
        Say("draw it", calls=[("call_0", "draw", {"what": "ship"})]),
        "drawn",
        checkpointer=InMemorySaver(),
    )
    play = Play(graph)
    assert play.run("please").lines == [
        "start",
        "main says m1: 'draw it'",
        'main calls call_0 in m1: draw {"what": "ship"}',
        "end pending call_0",
    ]
    second = play.run(
        messages=[
            {"id": "u1", "role": "user", "content": "please"},
            {
                "id": play.names.native("m1"),
                "role": "assistant",
                "content": "draw it",
                "toolCalls": [
                    {
                        "id": "call_0",
                        "type": "function",
                        "function": {"name": "draw", "arguments": '{"what": "ship"}'},
                    }
                ],
            },
            {"id": "t1", "role": "tool", "toolCallId": "call_0", "content": "a ship"},
        ]
    )
    assert [(m.type, m.content) for m in llm.requests[-1].messages] == [
        ("human", "please"),
        ("ai", "draw it"),
        ("tool", "a ship"),
    ]
    assert second.lines == ["start", "main says m2: 'drawn'", "end"]


def test_a_client_side_tool_of_a_subagent():
    alpha, _ = client_tool_agent("alpha", Say("alpha draws", calls=[("call_0", "draw", {"what": "ship"})]))
    boss = agent(
        "boss",
        Say("", calls=[call("call_A", "ask_alpha", "qa")]),
        "boss done",
        tools=[ask(alpha, "ask_alpha")],
    )
    assert Play(boss).run().lines == [
        "start",
        'main calls call_A in m1: ask_alpha {"q": "qa"}',
        "alpha#1 opens as tool for main, call call_A in m1",
        "alpha#1 says m2: 'alpha draws'",
        'alpha#1 calls call_0 in m2: draw {"what": "ship"}',
        "alpha#1 returns 'alpha draws'",
        "main hears call_A: 'alpha draws'",
        "main says m3: 'boss done'",
        "end pending call_0",
    ]


def test_the_next_run_answers_a_client_side_tool_of_a_subgraph():
    alpha, llm = client_tool_agent(
        "alpha", Say("alpha draws", calls=[("call_0", "draw", {"what": "ship"})]), "drawn"
    )
    builder = StateGraph(MessagesState)
    builder.add_node("alpha", alpha)
    builder.add_edge(START, "alpha")
    play = Play(builder.compile(checkpointer=InMemorySaver()))
    assert play.run("please").lines == [
        "start",
        "alpha#1 opens as subgraph for main",
        "alpha#1 says m1: 'alpha draws'",
        'alpha#1 calls call_0 in m1: draw {"what": "ship"}',
        "alpha#1 returns 'alpha draws'",
        "end pending call_0",
    ]
    answer = {"id": "t1", "role": "tool", "toolCallId": "call_0", "content": "a ship"}
    assert play.run(messages=[answer]).lines == [
        "start",
        "alpha#2 opens as subgraph for main",
        "alpha#2 says m2: 'drawn'",
        "alpha#2 returns 'drawn'",
        "end",
    ]
    assert [(m.type, m.content) for m in llm.requests[-1].messages] == [
        ("human", "please"),
        ("ai", "alpha draws"),
        ("tool", "a ship"),
    ]


def test_the_clients_answer_finds_the_call_whose_id_had_to_be_changed():
    """Both the parent and a subagent say `call_0`; the second one got another public id."""
    alpha, _ = client_tool_agent("alpha", Say("", calls=[("call_0", "draw", {"what": "sail"})]))
    builder = StateGraph(MessagesState)
    llm = model(Say("", calls=[("call_0", "draw", {"what": "ship"})]), "drawn")

    async def boss(state: MessagesState) -> dict:
        if not any(isinstance(message, ToolMessage) for message in state["messages"]):
            await alpha.ainvoke({"messages": [HumanMessage("sail")]})
        return {"messages": [await llm.ainvoke(state["messages"])]}

    builder.add_node("boss", boss)
    builder.add_edge(START, "boss")
    play = Play(builder.compile(checkpointer=InMemorySaver()))
    assert play.run("please").lines == [
        "start",
        "alpha#1 opens as subgraph for main",
        'alpha#1 calls call_0 in m1: draw {"what": "sail"}',
        "alpha#1 returns ''",
        'main calls call_0#2 in m2: draw {"what": "ship"}',
        "end pending call_0, call_0#2",
    ]
    play.run(messages=[{"id": "t1", "role": "tool", "toolCallId": "call_0#2", "content": "a ship"}])
    assert [(m.type, m.content, getattr(m, "tool_call_id", None)) for m in llm.requests[-1].messages] == [
        ("human", "please", None),
        ("ai", "", None),
        ("tool", "a ship", "call_0"),
    ]


def looker(name, *, checkpointer=None):
    @tool
    def look_up(q: str) -> str:
        """Look up."""
        return f"{name} found {q}"

    return agent(
        name,
        Say("", calls=[call("call_0", "look_up", "one")]),
        Say("", calls=[call("call_0", "look_up", "two")]),
        f"{name} knows",
        Say("", calls=[call("call_0", "look_up", "three")]),
        f"{name} knows more",
        tools=[look_up],
        checkpointer=checkpointer,
    )


def test_call_ids_that_collide_within_one_agent_and_over_two_runs():
    play = Play(looker("main", checkpointer=InMemorySaver()))
    first = play.run("a")
    assert first.lines == [
        "start",
        'main calls call_0 in m1: look_up {"q": "one"}',
        "main hears call_0: 'main found one'",
        'main calls call_0#2 in m2: look_up {"q": "two"}',
        "main hears call_0#2: 'main found two'",
        "main says m3: 'main knows'",
        "end",
    ]
    asked = [
        {
            "id": play.names.native(message),
            "role": "assistant",
            "toolCalls": [
                {"id": id_, "type": "function", "function": {"name": "look_up", "arguments": args}}
            ],
        }
        for message, id_, args in (("m1", "call_0", '{"q": "one"}'), ("m2", "call_0#2", '{"q": "two"}'))
    ]
    history = [
        {"id": "u1", "role": "user", "content": "a"},
        asked[0],
        {"id": "call_0:result", "role": "tool", "toolCallId": "call_0", "content": "main found one"},
        asked[1],
        {"id": "call_0#2:result", "role": "tool", "toolCallId": "call_0#2", "content": "main found two"},
        {"id": play.names.native("m3"), "role": "assistant", "content": "main knows"},
        {"id": "u2", "role": "user", "content": "b"},
    ]
    assert play.run(messages=history).lines == [
        "start",
        'main calls call_0#3 in m4: look_up {"q": "three"}',
        "main hears call_0#3: 'main found three'",
        "main says m5: 'main knows more'",
        "end",
    ]


def test_call_ids_that_collide_between_subagents():
    alpha, beta = looker("alpha"), looker("beta")
    boss = agent(
        "boss",
        Say("", calls=[call("call_0", "ask_alpha", "qa")]),
        Say("", calls=[call("call_0", "ask_beta", "qb")]),
        "boss done",
        tools=[ask(alpha, "ask_alpha"), ask(beta, "ask_beta")],
    )
    assert Play(boss).run().lines == [
        "start",
        'main calls call_0 in m1: ask_alpha {"q": "qa"}',
        "alpha#1 opens as tool for main, call call_0 in m1",
        'alpha#1 calls call_0@alpha#1 in m2: look_up {"q": "one"}',
        "alpha#1 hears call_0@alpha#1: 'alpha found one'",
        'alpha#1 calls call_0@alpha#1#2 in m3: look_up {"q": "two"}',
        "alpha#1 hears call_0@alpha#1#2: 'alpha found two'",
        "alpha#1 says m4: 'alpha knows'",
        "alpha#1 returns 'alpha knows'",
        "main hears call_0: 'alpha knows'",
        'main calls call_0#2 in m5: ask_beta {"q": "qb"}',
        "beta#1 opens as tool for main, call call_0#2 in m5",
        'beta#1 calls call_0@beta#1 in m6: look_up {"q": "one"}',
        "beta#1 hears call_0@beta#1: 'beta found one'",
        'beta#1 calls call_0@beta#1#2 in m7: look_up {"q": "two"}',
        "beta#1 hears call_0@beta#1#2: 'beta found two'",
        "beta#1 says m8: 'beta knows'",
        "beta#1 returns 'beta knows'",
        "main hears call_0#2: 'beta knows'",
        "main says m9: 'boss done'",
        "end",
    ]


@pytest.mark.parametrize("state", [None, {}])
def test_no_state_changes_nothing(state):
    seen = {}
    Play(recorder(seen)).run("hello", **({} if state is None else {"state": state}))
    assert seen == {"messages": [HumanMessage("hello", id="u1")]}
