"""What `task` starts: who it is, who called it, what it got, and what its caller received."""

import json
from typing import Any

import pytest
from byline import hookimpl
from byline_deepagents import _handler
from byline_langgraph.scripted import Say
from deepkit import Play, compiled, deep, fork, sub, task
from kit import Relay, agent, ask, call, human, model, said
from langchain.agents.middleware import wrap_tool_call
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from pydantic import BaseModel


def test_one_isolated_subagent():
    team = deep(
        Say("main asks", calls=[task("call_A", "alpha")]),
        "main done",
        subagents=[sub("alpha", "alpha answers")],
    )
    assert Play(team).run().lines == [
        "start",
        'main state {"files": {}}',
        "main says m1: 'main asks'",
        'main calls call_A in m1: task {"description": "do it", "subagent_type": "alpha"}',
        "alpha#1 opens as isolated for main, call call_A in m1, 'do it'",
        "alpha#1 says m2: 'alpha answers'",
        "alpha#1 returns 'alpha answers'",
        "main hears call_A: 'alpha answers'",
        "main says m3: 'main done'",
        "end",
    ]


def both(name_a, name_b):
    """How two calls in one message are told."""
    return [
        f'main calls call_A+ in m1: task {{"description": "a", "subagent_type": "{name_a}"}}',
        f'main calls call_B+ in m1: task {{"description": "b", "subagent_type": "{name_b}"}}',
        "main calls +call_A",
        "main calls +call_B",
    ]


def test_two_in_parallel():
    relay = Relay("alpha beta alpha beta alpha . beta .")
    calls = [task("call_A", "alpha", "a"), task("call_B", "beta", "b")]
    team = deep(
        Say("both", calls=calls),
        "done",
        subagents=[sub(name, f"{name} one two", relay=relay) for name in ("alpha", "beta")],
    )
    assert Play(team).run().lines == [
        "start",
        'main state {"files": {}}',
        "main says m1: 'both'",
        *both("alpha", "beta"),
        "alpha#1 opens as isolated for main, call call_A in m1, 'a'",
        "beta#1 opens as isolated for main, call call_B in m1, 'b'",
        "alpha#1 says m2+: 'alpha '",
        "beta#1 says m3+: 'beta '",
        "alpha#1 says +m2+: 'one '",
        "beta#1 says +m3+: 'one '",
        "alpha#1 says +m2: 'two'",
        "alpha#1 returns 'alpha one two'",
        "main hears call_A: 'alpha one two'",
        "beta#1 says +m3: 'two'",
        "beta#1 returns 'beta one two'",
        "main hears call_B: 'beta one two'",
        "main says m4: 'done'",
        "end",
    ]


def test_the_same_type_twice_in_parallel():
    relay = Relay("alpha alpha alpha alpha alpha . alpha .")
    calls = [task("call_A", "alpha", "a"), task("call_B", "alpha", "b")]
    team = deep(Say("both", calls=calls), "done", subagents=[sub("alpha", "one two three", relay=relay)])
    assert Play(team).run().lanes == {
        "run": ["start", "end"],
        "main": [
            'state {"files": {}}',
            "says m1: 'both'",
            *(line.removeprefix("main ") for line in both("alpha", "alpha")),
            "hears call_A: 'one two three'",
            "hears call_B: 'one two three'",
            "says m2: 'done'",
        ],
        "alpha#1": [
            "opens as isolated for main, call call_A in m1, 'a'",
            "says m3: 'one two three'",
            "returns 'one two three'",
        ],
        "alpha#2": [
            "opens as isolated for main, call call_B in m1, 'b'",
            "says m4: 'one two three'",
            "returns 'one two three'",
        ],
    }


def test_the_same_type_again_after_it_answered():
    team = deep(
        Say("once", calls=[task("call_A", "alpha")]),
        Say("again", calls=[task("call_B", "alpha")]),
        "done",
        subagents=[sub("alpha", "alpha answers")],
    )
    assert Play(team).run().lines == [
        "start",
        'main state {"files": {}}',
        "main says m1: 'once'",
        'main calls call_A in m1: task {"description": "do it", "subagent_type": "alpha"}',
        "alpha#1 opens as isolated for main, call call_A in m1, 'do it'",
        "alpha#1 says m2: 'alpha answers'",
        "alpha#1 returns 'alpha answers'",
        "main hears call_A: 'alpha answers'",
        "main says m3: 'again'",
        'main calls call_B in m3: task {"description": "do it", "subagent_type": "alpha"}',
        "alpha#2 opens as isolated for main, call call_B in m3, 'do it'",
        "alpha#2 says m4: 'alpha answers'",
        "alpha#2 returns 'alpha answers'",
        "main hears call_B: 'alpha answers'",
        "main says m5: 'done'",
        "end",
    ]


def test_the_general_purpose_agent():
    # It shares the parent's model, and so its script: in a new conversation the first turn comes first again.
    script = model(Say("go", calls=[task("call_A", "general-purpose")]), "done")
    helper = model("the answer")
    spec = {
        "name": "general-purpose",
        "description": "Helps.",
        "system_prompt": "Help.",
        "model": helper,
        "tools": [],
    }
    assert Play(deep(script, subagents=[spec])).run().lines[4:8] == [
        "general-purpose#1 opens as isolated for main, call call_A in m1, 'do it'",
        "general-purpose#1 says m2: 'the answer'",
        "general-purpose#1 returns 'the answer'",
        "main hears call_A: 'the answer'",
    ]


def test_the_general_purpose_agent_that_nobody_declared():
    calls = [task("call_A", "general-purpose")]
    team = deep(Say("go", calls=calls), Say("done"))
    # Its only model is the parent's: it says the same first words, and its own call is refused by nobody, for it has
    # no `task` tool of its own to call.
    lines = Play(team).run().lines
    assert lines[4] == "general-purpose#1 opens as isolated for main, call call_A in m1, 'do it'"
    assert "general-purpose#1 returns 'done'" in lines


def nested():
    inner = deep(
        Say("lead asks", calls=[task("call_B", "alpha", "inner")]),
        "lead done",
        subagents=[sub("alpha", "deep words")],
        name="lead",
    )
    return deep(
        Say("main asks", calls=[task("call_A", "lead", "outer")]),
        "main done",
        subagents=[compiled("lead", inner)],
    )


def test_nested():
    assert Play(nested()).run().lines == [
        "start",
        'main state {"files": {}}',
        "main says m1: 'main asks'",
        'main calls call_A in m1: task {"description": "outer", "subagent_type": "lead"}',
        "lead#1 opens as isolated for main, call call_A in m1, 'outer'",
        "lead#1 says m2: 'lead asks'",
        'lead#1 calls call_B in m2: task {"description": "inner", "subagent_type": "alpha"}',
        "alpha#1 opens as isolated for lead#1, call call_B in m2, 'inner'",
        "alpha#1 says m3: 'deep words'",
        "alpha#1 returns 'deep words'",
        "lead#1 hears call_B: 'deep words'",
        "lead#1 says m4: 'lead done'",
        "lead#1 returns 'lead done'",
        "main hears call_A: 'lead done'",
        "main says m5: 'main done'",
        "end",
    ]


def test_an_agent_called_in_a_tool_of_a_subagent():
    helper = ask(agent("helper", "helper answers"), "ask_helper")
    alpha = sub(
        "alpha", Say("alpha asks", calls=[call("call_B", "ask_helper", "q")]), "alpha done", tools=[helper]
    )
    team = deep(Say("main asks", calls=[task("call_A", "alpha")]), "main done", subagents=[alpha])
    assert Play(team).run().lines[4:13] == [
        "alpha#1 opens as isolated for main, call call_A in m1, 'do it'",
        "alpha#1 says m2: 'alpha asks'",
        'alpha#1 calls call_B in m2: ask_helper {"q": "q"}',
        "helper#1 opens as tool for alpha#1, call call_B in m2",
        "helper#1 says m3: 'helper answers'",
        "helper#1 returns 'helper answers'",
        "alpha#1 hears call_B: 'helper answers'",
        "alpha#1 says m4: 'alpha done'",
        "alpha#1 returns 'alpha done'",
    ]


def test_a_deep_agent_called_in_a_node_of_a_plain_graph():
    from langgraph.graph import START, MessagesState, StateGraph

    team = deep(
        Say("main asks", calls=[task("call_A", "alpha")]),
        "main done",
        subagents=[sub("alpha", "alpha answers")],
    )
    plain = StateGraph(MessagesState).add_node(
        "team", lambda state: {"messages": team.invoke(state)["messages"]}
    )
    assert Play(plain.add_edge(START, "team").compile()).run().lines == [
        "start",
        "main#1 opens as subgraph for main",
        "main#1 says m1: 'main asks'",
        'main#1 calls call_A in m1: task {"description": "do it", "subagent_type": "alpha"}',
        "alpha#1 opens as isolated for main#1, call call_A in m1, 'do it'",
        "alpha#1 says m2: 'alpha answers'",
        "alpha#1 returns 'alpha answers'",
        "main#1 hears call_A: 'alpha answers'",
        "main#1 says m3: 'main done'",
        "main#1 returns 'main done'",
        "end",
    ]


def test_a_fork_and_an_isolated_one_side_by_side():
    relay = Relay("alpha beta alpha . beta .")
    calls = [task("call_A", "alpha", "a"), task("call_B", "beta", "b")]
    subagents = [sub("alpha", "alpha answers", relay=relay), fork("beta", "beta answers", relay=relay)]
    assert Play(deep(Say("both", calls=calls), "done", subagents=subagents)).run().lines[3:] == [
        *both("alpha", "beta"),
        "alpha#1 opens as isolated for main, call call_A in m1, 'a'",
        "beta#1 opens as fork(1; files) for main, call call_B in m1, 'b'",
        "alpha#1 says m2+: 'alpha '",
        "beta#1 says m3+: 'beta '",
        "alpha#1 says +m2: 'answers'",
        "alpha#1 returns 'alpha answers'",
        "main hears call_A: 'alpha answers'",
        "beta#1 says +m3: 'answers'",
        "beta#1 returns 'beta answers'",
        "main hears call_B: 'beta answers'",
        "main says m4: 'done'",
        "end",
    ]


def test_a_fork_late_in_a_conversation_repeats_nothing():
    team = deep(
        Say("first", calls=[task("call_A", "alpha", "a")]),
        Say("then", calls=[task("call_B", "beta", "b")]),
        "done",
        subagents=[sub("alpha", "alpha answers"), fork("beta", "never said", "beta answers")],
    )
    # The fork starts from the user's words, the first call and its answer: three messages, none of them shown again.
    assert Play(team).run().lines[8:] == [
        "main says m3: 'then'",
        'main calls call_B in m3: task {"description": "b", "subagent_type": "beta"}',
        "beta#1 opens as fork(3; files) for main, call call_B in m3, 'b'",
        "beta#1 says m4: 'beta answers'",
        "beta#1 returns 'beta answers'",
        "main hears call_B: 'beta answers'",
        "main says m5: 'done'",
        "end",
    ]


def test_a_compiled_fork_is_told_without_the_private_mark():
    beta = compiled("beta", agent("whatever", "never said", "beta answers"), mode="fork")
    team = deep(
        Say("first", calls=[task("call_A", "alpha", "a")]),
        Say("then", calls=[task("call_B", "beta", "b")]),
        "done",
        subagents=[sub("alpha", "alpha answers"), beta],
    )
    assert Play(team).run().lines[10:13] == [
        "beta#1 opens as fork(3; files) that may delegate for main, call call_B in m3, 'b'",
        "beta#1 says m4: 'beta answers'",
        "beta#1 returns 'beta answers'",
    ]


def test_refused_calls_are_calls_and_no_invocations():
    calls = [task("call_A", "nobody"), ("call_B", "task", {"description": "no type"})]
    team = deep(Say("go", calls=calls), "done", subagents=[sub("alpha", "alpha answers")])
    lines = Play(team).run().lines
    assert [line for line in lines if "opens" in line] == []
    assert next(line for line in lines if "hears call_A" in line).startswith(
        "main hears call_A: 'We cannot invoke subagent nobody because it does not exist"
    )
    assert "Field required" in next(line for line in lines if "hears call_B" in line)
    assert lines[-2:] == ["main says m2: 'done'", "end"]


def test_a_fork_that_tries_to_delegate():
    beta = fork("beta", "never said", Say("beta tries", calls=[task("call_C", "alpha")]), "beta answers")
    team = deep(
        Say("go", calls=[task("call_A", "alpha")]),
        Say("on", calls=[task("call_B", "beta")]),
        "done",
        subagents=[sub("alpha", "alpha answers"), beta],
    )
    lines = Play(team).run().lines
    assert lines[10:13] == [
        "beta#1 opens as fork(3; files) for main, call call_B in m3, 'do it'",
        "beta#1 says m4: 'beta tries'",
        'beta#1 calls call_C in m4: task {"description": "do it", "subagent_type": "alpha"}',
    ]
    assert lines[13].startswith("beta#1 hears call_C: 'You are a subagent and cannot delegate")
    assert lines[14:] == [
        "beta#1 says m5: 'beta answers'",
        "beta#1 returns 'beta answers'",
        "main hears call_B: 'beta answers'",
        "main says m6: 'done'",
        "end",
    ]


def test_an_ordinary_tool_named_task():
    @tool
    async def task(q: str) -> str:
        """Ask."""
        return said(
            await agent("helper", "helper answers").ainvoke({"messages": [{"role": "user", "content": q}]})
        )

    boss = agent("boss", Say("go", calls=[call("call_A", "task", "q")]), "done", tools=[task])
    assert Play(boss).run().lines == [
        "start",
        "main says m1: 'go'",
        'main calls call_A in m1: task {"q": "q"}',
        "helper#1 opens as tool for main, call call_A in m1",
        "helper#1 says m2: 'helper answers'",
        "helper#1 returns 'helper answers'",
        "main hears call_A: 'helper answers'",
        "main says m3: 'done'",
        "end",
    ]


class Findings(BaseModel):
    summary: str
    sure: bool


def test_a_structured_response_is_the_result():
    answer = Say("", calls=[("call_F", "Findings", {"summary": "it is so", "sure": True})])
    team = deep(
        Say("go", calls=[task("call_A", "alpha")]),
        "done",
        subagents=[sub("alpha", answer, response_format=Findings)],
    )
    lines = Play(team).run().lines
    assert 'alpha#1 returns {"summary": "it is so", "sure": true}' in lines
    assert 'main hears call_A: \'{"summary":"it is so","sure":true}\'' in lines


def test_a_subagent_that_is_no_graph():
    def work(state):
        return {"messages": [AIMessage("worked without a model")]}

    team = deep(
        Say("go", calls=[task("call_A", "worker")]),
        "done",
        subagents=[compiled("worker", RunnableLambda(work))],
    )
    assert Play(team).run().lines[4:] == [
        "worker#1 opens as isolated for main, call call_A in m1, 'do it'",
        "worker#1 returns 'worked without a model'",
        "main hears call_A: 'worked without a model'",
        "main says m2: 'done'",
        "end",
    ]


def test_a_subagent_that_is_a_chain_with_a_model():
    answers = model("chain answers")

    async def work(state):
        return {"messages": [await answers.ainvoke(state["messages"])]}

    team = deep(
        Say("go", calls=[task("call_A", "worker")]),
        "done",
        subagents=[compiled("worker", RunnableLambda(work))],
    )
    assert Play(team).run().lines[4:8] == [
        "worker#1 opens as isolated for main, call call_A in m1, 'do it'",
        "worker#1 says m2: 'chain answers'",
        "worker#1 returns 'chain answers'",
        "main hears call_A: 'chain answers'",
    ]


def test_what_a_subagent_writes_back_is_its_own():
    write = ("call_W", "write_file", {"file_path": "/notes.txt", "content": "found"})
    team = deep(
        Say("go", calls=[task("call_A", "alpha")]),
        "done",
        subagents=[sub("alpha", Say("writing", calls=[write]), "written")],
    )
    lines = Play(team).run().lines
    patches = [line for line in lines if " patch " in line or " state " in line]
    assert patches[0] == 'main state {"files": {}}'
    assert len(patches) == 2
    assert patches[1].startswith(
        'alpha#1 patch [{"op": "add", "path": "/files", "value": {"/notes.txt": {"content": "found"'
    )


def test_two_that_write_at_the_same_time_are_credited_with_their_own_files():
    def write(name):
        return ("call_W", "write_file", {"file_path": f"/{name}.txt", "content": name})

    calls = [task("call_A", "alpha"), task("call_B", "beta")]
    team = deep(
        Say("go", calls=calls),
        "done",
        subagents=[sub(name, Say("writing", calls=[write(name)]), "written") for name in ("alpha", "beta")],
    )
    trace = Play(team).run()
    assert trace.lines[-1] == "end"
    final, wrote = {}, {}
    for event in trace.events:
        if event.type == "STATE_DELTA":
            [operation] = event.delta
            new = dict(operation.value)
            wrote[trace.names.short[event.subagent_run_id]] = sorted(set(new) - set(final))
            final = new
    assert wrote == {"alpha#1": ["/alpha.txt"], "beta#1": ["/beta.txt"]}


def test_an_oversized_result_is_told_as_its_caller_received_it():
    long = "word " * 25_000
    team = deep(Say("go", calls=[task("call_A", "alpha")]), "done", subagents=[sub("alpha", long.strip())])
    lines = Play(team).run().lines
    heard = next(line for line in lines if "main hears call_A" in line)
    returned = next(line for line in lines if "alpha#1 returns" in line)
    assert len(heard) < 20_000
    assert returned.removeprefix("alpha#1 returns ") == heard.removeprefix("main hears call_A: ")


@pytest.mark.parametrize("kind", ["runs", "plain"])
def test_deepagents_is_not_imported_to_recognise_a_target(kind):
    import subprocess
    import sys

    code = (
        "import sys; from byline_deepagents._plugin import DeepAgentsAdapter as A; a = A();"
        "assert not a.takes(object()); assert 'deepagents' not in sys.modules; assert 'langgraph' not in sys.modules"
        if kind == "plain"
        else "import sys, langgraph.graph as g; from byline_deepagents._plugin import DeepAgentsAdapter as A;"
        "b = g.StateGraph(g.MessagesState); b.add_node('n', lambda s: s); b.add_edge(g.START, 'n');"
        "assert not A().takes(b.compile()); assert 'deepagents' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_words_of_a_task_call_in_another_tools_are_no_task():
    helper = agent("helper", "helper answers")

    @tool
    async def assign(subagent_type: str, description: str) -> str:
        """Assign."""
        return said(await helper.ainvoke(human(description)))

    calls = [("call_A", "assign", {"subagent_type": "alpha", "description": "do it"})]
    team = deep(Say("go", calls=calls), "done", tools=[assign], subagents=[sub("alpha", "never said")])
    assert Play(team).run().lines[4:] == [
        "helper#1 opens as tool for main, call call_A in m1",
        "helper#1 says m2: 'helper answers'",
        "helper#1 returns 'helper answers'",
        "main hears call_A: 'helper answers'",
        "main says m3: 'done'",
        "end",
    ]


@pytest.mark.parametrize(
    "given",
    [{"q": "q"}, {"description": "do it", "subagent_type": 7}, {"description": 7, "subagent_type": "alpha"}],
)
def test_an_ordinary_tool_named_task_within_a_deep_agent(given):
    helper = agent("helper", "helper answers")

    @tool("task")
    async def ordinary(q: Any = None, description: Any = None, subagent_type: Any = None) -> str:
        """Ask."""
        return said(await helper.ainvoke(human("q")))

    alpha = sub("alpha", Say("alpha asks", calls=[("call_T", "task", given)]), "alpha done", tools=[ordinary])
    team = deep(Say("go", calls=[task("call_A", "alpha")]), "done", subagents=[alpha])
    assert Play(team).run().lines[4:] == [
        "alpha#1 opens as isolated for main, call call_A in m1, 'do it'",
        "alpha#1 says m2: 'alpha asks'",
        f"alpha#1 calls call_T in m2: task {json.dumps(given)}",
        "helper#1 opens as tool for alpha#1, call call_T in m2",
        "helper#1 says m3: 'helper answers'",
        "helper#1 returns 'helper answers'",
        "alpha#1 hears call_T: 'helper answers'",
        "alpha#1 says m4: 'alpha done'",
        "alpha#1 returns 'alpha done'",
        "main hears call_A: 'alpha done'",
        "main says m5: 'done'",
        "end",
    ]


def rewriting(make):
    """A middleware that makes something else of what `task` returned."""

    @wrap_tool_call
    async def rewrite(request, handler):
        if request.tool_call["name"] != "task":
            return await handler(request)
        return make(await handler(request), request.tool_call["id"])

    return rewrite


def structured_team(make):
    answer = Say("", calls=[("call_F", "Findings", {"summary": "it is so", "sure": True})])
    return deep(
        Say("go", calls=[task("call_A", "alpha")]),
        "done",
        subagents=[sub("alpha", answer, response_format=Findings)],
        middleware=[rewriting(make)],
    )


def test_what_a_middleware_makes_of_a_result_is_what_its_caller_received():
    shorter = structured_team(lambda _, id_: ToolMessage("in short: yes", tool_call_id=id_))
    lines = Play(shorter).run().lines
    assert [line for line in lines if "returns" in line or "main hears" in line] == [
        "alpha#1 returns 'in short: yes'",
        "main hears call_A: 'in short: yes'",
    ]


def test_a_middleware_that_only_copies_a_result_leaves_it_structured():
    def copied(output, id_):
        (message,) = output.update["messages"]
        return ToolMessage(message.content, tool_call_id=id_)

    lines = Play(structured_team(copied)).run().lines
    assert [line for line in lines if "alpha#1 returns" in line or "main hears" in line] == [
        'alpha#1 returns {"summary": "it is so", "sure": true}',
        """main hears call_A: '{"summary":"it is so","sure":true}'""",
    ]


def test_a_middleware_that_has_a_task_done_twice():
    @wrap_tool_call
    async def twice(request, handler):
        await handler(request)
        return await handler(request)

    alpha = compiled("alpha", agent("alpha", "alpha answers"))
    team = deep(Say("go", calls=[task("call_A", "alpha")]), "done", subagents=[alpha], middleware=[twice])
    assert Play(team).run().lines[4:] == [
        "alpha#1 opens as isolated for main, call call_A in m1, 'do it'",
        "alpha#1 says m2: 'alpha answers'",
        "alpha#2 opens as isolated for main, call call_A in m1, 'do it'",
        "alpha#2 says m3: 'alpha answers'",
        "alpha#1 returns 'alpha answers'",
        "alpha#2 returns 'alpha answers'",
        "main hears call_A: 'alpha answers'",
        "main says m4: 'done'",
        "end",
    ]


def test_two_tasks_that_one_node_of_a_hand_written_graph_runs():
    def named(name):
        return compiled(name, agent(name, f"{name} answers"))

    helped = deep("never said", subagents=[named("alpha"), named("beta")])
    tasks = helped.nodes["tools"].bound.tools_by_name["task"]
    llm = model(Say("lead asks", calls=[task("call_B", "alpha"), task("call_C", "beta")]), "lead done")

    async def think(state: MessagesState) -> dict:
        return {"messages": [await llm.ainvoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("think", think)
    builder.add_node("tools", ToolNode([tasks]))
    builder.add_edge(START, "think")
    builder.add_conditional_edges("think", tools_condition)
    builder.add_edge("tools", "think")
    team = deep(
        Say("go", calls=[task("call_A", "lead")]), "done", subagents=[compiled("lead", builder.compile())]
    )
    lanes = Play(team).run().lanes
    assert {owner: lines for owner, lines in lanes.items() if owner not in ("run", "main")} == {
        "alpha#1": [
            "opens as isolated for lead#1, call call_B in m3, 'do it'",
            "says m4: 'alpha answers'",
            "returns 'alpha answers'",
        ],
        "beta#1": [
            "opens as isolated for lead#1, call call_C in m3, 'do it'",
            "says m5: 'beta answers'",
            "returns 'beta answers'",
        ],
        "lead#1": [
            "opens as isolated for main, call call_A in m1, 'do it'",
            "says m3: 'lead asks'",
            'calls call_B+ in m3: task {"description": "do it", "subagent_type": "alpha"}',
            'calls call_C+ in m3: task {"description": "do it", "subagent_type": "beta"}',
            "calls +call_B",
            "calls +call_C",
            "hears call_B: 'alpha answers'",
            "hears call_C: 'beta answers'",
            "says m6: 'lead done'",
            "returns 'lead done'",
        ],
    }


def test_what_a_nested_one_writes_is_its_callers_until_that_hands_it_on():
    write = ("call_W", "write_file", {"file_path": "/notes.txt", "content": "found"})
    alpha = sub("alpha", Say("writing", calls=[write]), "written")
    lead = deep(
        Say("lead asks", calls=[task("call_B", "alpha")]), "lead done", subagents=[alpha], name="lead"
    )
    team = deep(Say("go", calls=[task("call_A", "lead")]), "done", subagents=[compiled("lead", lead)])
    trace = Play(team).run()
    wrote = [
        (trace.names.short[event.subagent_run_id], sorted(event.delta[0].value))
        for event in trace.events
        if event.type == "STATE_DELTA"
    ]
    assert wrote == [("lead#1", ["/notes.txt"])]


def test_a_subagent_that_is_no_graph_and_calls_tools():
    helper = agent("helper", "helper answers")

    @tool
    async def consult(q: str) -> str:
        """Ask."""
        return said(await helper.ainvoke(human(q)))

    async def work(state):
        made = {"name": "consult", "args": {"q": "q"}, "id": "call_H", "type": "tool_call"}
        return {"messages": [AIMessage((await consult.ainvoke(made)).content)]}

    team = deep(
        Say("go", calls=[task("call_A", "worker")]),
        "done",
        subagents=[compiled("worker", RunnableLambda(work))],
    )
    assert Play(team).run().lines[4:9] == [
        "worker#1 opens as isolated for main, call call_A in m1, 'do it'",
        "helper#1 opens as tool for worker#1, call call_H in None",
        "helper#1 says m2: 'helper answers'",
        "helper#1 returns 'helper answers'",
        "worker#1 hears call_H: 'helper answers'",
    ]


def test_a_plugin_is_told_of_a_task_as_it_is_announced():
    class Told:
        @hookimpl
        def byline_contract(self, invocation):
            told.append((invocation.framework, invocation.name, invocation.description))

    told = []
    team = deep(Say("go", calls=[task("call_A", "alpha")]), "done", subagents=[sub("alpha", "alpha answers")])
    assert Play(team, plugins=[Told()]).run().lines[-1] == "end"
    assert told == [("deepagents", "alpha", "do it")]


@pytest.mark.parametrize(
    ("inputs", "one"),
    [
        ({"tool_call": {"name": "task", "args": {}, "id": "c"}, "state": {}}, True),
        ([{"name": "task", "args": {}, "id": "c"}], True),
        ([{"name": "task", "args": {}, "id": "c"}, {"name": "task", "args": {}, "id": "d"}], False),
        (({"name": "task", "args": {}, "id": "c"},), False),
        ([{"name": "task"}], False),
        ([AIMessage("args")], False),
        ({"messages": [AIMessage("args")]}, False),
    ],
)
def test_whether_a_tools_node_was_given_one_call(inputs, one):
    assert _handler._runs_one_call(inputs) is one


def test_an_answer_is_that_to_the_call():
    given = {"messages": [ToolMessage("one", tool_call_id="c1"), ToolMessage("two", tool_call_id="c2")]}
    assert _handler._answer_to("c2", given) is given["messages"][1]
    assert _handler._answer_to("c3", given) is None


def test_who_has_more_than_the_description_is_a_fork():
    messages = [HumanMessage("do it"), AIMessage("more")]
    assert _handler._contract({"messages": messages[:1]}, "do it")["context"] == "isolated"
    fork = _handler._contract({"messages": messages, "files": {}}, "do it")
    assert (fork["context"], fork["inheritedMessages"], fork["inheritedState"]) == ("fork", 1, ["files"])
