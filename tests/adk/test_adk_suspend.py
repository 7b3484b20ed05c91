"""Runs that wait: what asks, what is resumed, under which id."""

import asyncio

import pytest
from adk_kit import AT_ONCE, agent, answer, ask, attribute, can, collect, run, runner, show, user
from byline.errors import ResumeError
from byline_adk.scripted import Say
from google.adk.agents import SequentialAgent
from google.adk.apps.app import App, ResumabilityConfig
from google.adk.events.request_input import RequestInput
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools import AgentTool, FunctionTool, LongRunningFunctionTool
from google.adk.tools._request_input_tool import request_input
from google.adk.workflow import START, JoinNode, Workflow, node

pytestmark = pytest.mark.anyio


def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def ticket(q: str):
    """Open a ticket."""
    return {"status": "pending", "ticket": 7}


def ask_human(q: str):
    """Ask a human."""
    return


def payer(mode, last=None):
    """An agent that calls a tool which needs a confirmation."""
    last = last or (
        Say(calls=[("f1", "finish_task", {"result": "ok"})]) if mode == "task" else Say("it is paid")
    )
    tool = FunctionTool(pay, require_confirmation=True)
    return agent("payer", Say(calls=[("p1", "pay", {"amount": 5})]), last, mode=mode, tools=[tool])


def boss(*children, **options):
    call = ("c1", children[0].name, {"request": "x"})
    return agent("root", Say(calls=[call]), Say("done"), sub_agents=list(children), **options)


def open_interrupts(events):
    return [
        one.id
        for event in events
        if event.type.value == "RUN_FINISHED" and event.outcome.type == "interrupt"
        for one in event.outcome.interrupts
    ]


def yes(events):
    return answer((open_interrupts(events)[-1], {"confirmed": True}))


async def test_confirmation_in_a_single_turn_agent():
    seen = await ask(runner(boss(payer("single_turn"))), "hi", yes, run_config=AT_ONCE)
    if can("approval"):
        assert seen == [
            "-| RUN",
            "-| calls c1 payer in m1",
            '-| c1 {"request": "x"}',
            "-| called c1",
            "-| + c1 payer (single_turn) by c1",
            "c1| calls p1 pay in m2",
            'c1| p1 {"amount": 5}',
            "c1| called p1",
            "c1| ~ adk1",
            '-| RUN ASKS c1 confirmation adk1 call=p1 \'Please approve or reject the tool call pay() by responding with a FunctionResponse with an expected ToolConfirmation payload.\' {"type": "object", "properties": {"confirmed": {"type": "boolean"}, "payload": {}}, "required": ["confirmed"]}',
            "-| RUN",
            "-| + c1 payer (single_turn) by c1",
            "c1| p1 -> 'paid 5'",
            "c1| says m3",
            "c1| m3 'it is paid'",
            "c1| said m3",
            "c1| .",
            "-| c1 -> 'it is paid'",
            "-| says m4",
            "-| m4 'done'",
            "-| said m4",
            "-| RUN SUCCESS",
        ]
    else:  # the child goes on without the tool having run, and asks again; its caller never hears of it
        assert seen == [
            "-| RUN",
            "-| calls c1 payer in m1",
            '-| c1 {"request": "x"}',
            "-| called c1",
            "-| + c1 payer (single_turn) by c1",
            "c1| calls p1 pay in m2",
            'c1| p1 {"amount": 5}',
            "c1| called p1",
            "c1| ~ adk1",
            '-| RUN ASKS c1 confirmation adk1 call=p1 \'Please approve or reject the tool call pay() by responding with a FunctionResponse with an expected ToolConfirmation payload.\' {"type": "object", "properties": {"confirmed": {"type": "boolean"}, "payload": {}}, "required": ["confirmed"]}',
            "-| RUN",
            "-| + c1 payer (single_turn) by c1",
            "c1| calls p1@c1 pay in m3",
            'c1| p1@c1 {"amount": 5}',
            "c1| called p1@c1",
            "c1| ~ adk2",
            '-| RUN ASKS c1 confirmation adk2 call=p1@c1 \'Please approve or reject the tool call pay() by responding with a FunctionResponse with an expected ToolConfirmation payload.\' {"type": "object", "properties": {"confirmed": {"type": "boolean"}, "payload": {}}, "required": ["confirmed"]}',
        ]


async def test_confirmation_in_a_task():
    assert await ask(runner(boss(payer("task"))), "hi", yes, run_config=AT_ONCE) == [
        "-| RUN",
        "-| calls c1 payer in m1",
        '-| c1 {"request": "x"}',
        "-| called c1",
        "-| + c1 payer (task) by c1",
        "c1| calls p1 pay in m2",
        'c1| p1 {"amount": 5}',
        "c1| called p1",
        "c1| ~ adk1",
        '-| RUN ASKS c1 confirmation adk1 call=p1 \'Please approve or reject the tool call pay() by responding with a FunctionResponse with an expected ToolConfirmation payload.\' {"type": "object", "properties": {"confirmed": {"type": "boolean"}, "payload": {}}, "required": ["confirmed"]}',
        "-| RUN",
        "-| + c1 payer (task) by c1",
        "c1| p1 -> 'paid 5'",
        'c1| . {"result": "ok"}',
        "-| c1 -> 'ok'",
        "-| says m3",
        "-| m3 'done'",
        "-| said m3",
        "-| RUN SUCCESS",
    ]


async def test_confirmation_in_a_chat_agent():
    """It continues, and stays in control: the caller is not run again."""
    root = agent(
        "root", Say(calls=[("t1", "transfer_to_agent", {"agent_name": "payer"})]), sub_agents=[payer("chat")]
    )
    assert await ask(runner(root), "hi", yes, run_config=AT_ONCE) == [
        "-| RUN",
        "-| calls t1 transfer_to_agent in m1",
        '-| t1 {"agent_name": "payer"}',
        "-| called t1",
        "-| t1 -> 'transferred to payer'",
        "-| + t1 payer (chat) by t1",
        "t1| calls p1 pay in m2",
        't1| p1 {"amount": 5}',
        "t1| called p1",
        "t1| ~ adk1",
        '-| RUN ASKS t1 confirmation adk1 call=p1 \'Please approve or reject the tool call pay() by responding with a FunctionResponse with an expected ToolConfirmation payload.\' {"type": "object", "properties": {"confirmed": {"type": "boolean"}, "payload": {}}, "required": ["confirmed"]}',
        "-| RUN",
        "-| + t1 payer (chat) by t1",
        "t1| p1 -> 'paid 5'",
        "t1| says m3",
        "t1| m3 'it is paid'",
        "t1| said m3",
        "t1| ~",
        "-| RUN SUCCESS",
    ]


async def test_confirmation_in_the_root():
    tool = FunctionTool(pay, require_confirmation=True)
    root = agent("root", Say(calls=[("p1", "pay", {"amount": 5})]), Say("it is paid"), tools=[tool])
    assert await ask(runner(root), "hi", yes, run_config=AT_ONCE) == [
        "-| RUN",
        "-| calls p1 pay in m1",
        '-| p1 {"amount": 5}',
        "-| called p1",
        '-| RUN ASKS - confirmation adk1 call=p1 \'Please approve or reject the tool call pay() by responding with a FunctionResponse with an expected ToolConfirmation payload.\' {"type": "object", "properties": {"confirmed": {"type": "boolean"}, "payload": {}}, "required": ["confirmed"]}',
        "-| RUN",
        "-| p1 -> 'paid 5'",
        "-| says m2",
        "-| m2 'it is paid'",
        "-| said m2",
        "-| RUN SUCCESS",
    ]


async def test_a_refused_confirmation():
    tool = FunctionTool(pay, require_confirmation=True)
    root = agent("root", Say(calls=[("p1", "pay", {"amount": 5})]), Say("as you like"), tools=[tool])
    seen = await ask(
        runner(root), "hi", lambda events: answer((open_interrupts(events)[0], ...)), run_config=AT_ONCE
    )
    assert seen == [
        "-| RUN",
        "-| calls p1 pay in m1",
        '-| p1 {"amount": 5}',
        "-| called p1",
        '-| RUN ASKS - confirmation adk1 call=p1 \'Please approve or reject the tool call pay() by responding with a FunctionResponse with an expected ToolConfirmation payload.\' {"type": "object", "properties": {"confirmed": {"type": "boolean"}, "payload": {}}, "required": ["confirmed"]}',
        "-| RUN",
        '-| p1 -> \'{"error": "This tool call is rejected."}\'',
        "-| says m2",
        "-| m2 'as you like'",
        "-| said m2",
        "-| RUN SUCCESS",
    ]


async def test_a_confirmation_beside_a_sibling():
    """ADK cancels the sibling, and runs it again from the beginning when the run is resumed: the same invocation."""
    sibling = agent("w", Say("w words", pause=0.05), mode="single_turn")
    calls = [("c1", "payer", {"request": "x"}), ("w1", "w", {"request": "y"})]
    root = agent("root", Say(calls=calls), Say("done"), sub_agents=[payer("single_turn"), sibling])
    seen = await ask(runner(root), "hi", yes, run_config=AT_ONCE)
    if can("approval"):
        assert seen == [
            "-| RUN",
            "-| calls c1 payer in m1",
            '-| c1 {"request": "x"}',
            "-| calls w1 w in m1",
            '-| w1 {"request": "y"}',
            "-| called c1",
            "-| called w1",
            "-| + c1 payer (single_turn) by c1",
            "-| + w1 w (single_turn) by w1",
            "c1| calls p1 pay in m2",
            'c1| p1 {"amount": 5}',
            "c1| called p1",
            "c1| ~ adk1",
            "w1| ~",
            '-| RUN ASKS c1 confirmation adk1 call=p1 \'Please approve or reject the tool call pay() by responding with a FunctionResponse with an expected ToolConfirmation payload.\' {"type": "object", "properties": {"confirmed": {"type": "boolean"}, "payload": {}}, "required": ["confirmed"]}',
            "-| RUN",
            "-| + c1 payer (single_turn) by c1",
            "-| + w1 w (single_turn) by w1",
            "c1| p1 -> 'paid 5'",
            "c1| says m3",
            "c1| m3 'it is paid'",
            "c1| said m3",
            "c1| .",
            "w1| says m4",
            "w1| m4 'w words'",
            "w1| said m4",
            "w1| .",
            "-| c1 -> 'it is paid'",
            "-| w1 -> 'w words'",
            "-| says m5",
            "-| m5 'done'",
            "-| said m5",
            "-| RUN SUCCESS",
        ]
    else:
        assert seen == [
            "-| RUN",
            "-| calls c1 payer in m1",
            '-| c1 {"request": "x"}',
            "-| calls w1 w in m1",
            '-| w1 {"request": "y"}',
            "-| called c1",
            "-| called w1",
            "-| + c1 payer (single_turn) by c1",
            "-| + w1 w (single_turn) by w1",
            "c1| calls p1 pay in m2",
            'c1| p1 {"amount": 5}',
            "c1| called p1",
            "c1| ~ adk1",
            "w1| ~",
            '-| RUN ASKS c1 confirmation adk1 call=p1 \'Please approve or reject the tool call pay() by responding with a FunctionResponse with an expected ToolConfirmation payload.\' {"type": "object", "properties": {"confirmed": {"type": "boolean"}, "payload": {}}, "required": ["confirmed"]}',
            "-| RUN",
            "-| + c1 payer (single_turn) by c1",
            "c1| calls p1@c1 pay in m3",
            'c1| p1@c1 {"amount": 5}',
            "c1| called p1@c1",
            "c1| ~ adk2",
            '-| RUN ASKS c1 confirmation adk2 call=p1@c1 \'Please approve or reject the tool call pay() by responding with a FunctionResponse with an expected ToolConfirmation payload.\' {"type": "object", "properties": {"confirmed": {"type": "boolean"}, "payload": {}}, "required": ["confirmed"]}',
        ]


async def test_a_confirmation_two_levels_down_is_lost():
    """ADK lets the caller go on with nothing: the stream says so, and offers nothing to answer."""
    mid = agent(
        "mid",
        Say(calls=[("m1", "payer", {"request": "x"})]),
        Say("mid done"),
        mode="single_turn",
        sub_agents=[payer("single_turn")],
    )
    assert await run(runner(boss(mid)), "hi", run_config=AT_ONCE) == [
        "-| RUN",
        "-| calls c1 mid in m1",
        '-| c1 {"request": "x"}',
        "-| called c1",
        "-| + c1 mid (single_turn) by c1",
        "c1| calls m1 payer in m2",
        'c1| m1 {"request": "x"}',
        "c1| called m1",
        "c1| + m1 payer (single_turn) by m1",
        "m1| calls p1 pay in m3",
        'm1| p1 {"amount": 5}',
        "m1| called p1",
        "m1| ! interrupt_lost: its question was swallowed by the caller, which went on without an answer",
        "c1| .",
        "-| c1 -> ''",
        "-| says m4",
        "-| m4 'done'",
        "-| said m4",
        "-| RUN SUCCESS pending m1 p1",
    ]


async def test_a_confirmation_in_an_agent_tool_is_lost():
    root = agent(
        "root", Say(calls=[("c1", "payer", {"request": "x"})]), Say("done"), tools=[AgentTool(payer("chat"))]
    )
    seen = await run(runner(root), "hi", run_config=AT_ONCE)
    if can("approval"):
        assert seen == [
            "-| RUN",
            "-| calls c1 payer in m1",
            '-| c1 {"request": "x"}',
            "-| called c1",
            "-| + c1 payer (agent_tool) by c1",
            "c1| calls p1 pay in m2",
            'c1| p1 {"amount": 5}',
            "c1| called p1",
            "c1| ! interrupt_lost: its question was swallowed by the caller, which went on without an answer",
            "-| c1 -> \"Error: agent 'payer' stopped waiting on unresolved long-running tool call(s) (pending call ids: ['adk1']), which AgentTool cannot resume.\"",
            "-| says m3",
            "-| m3 'done'",
            "-| said m3",
            "-| RUN SUCCESS pending p1",
        ]
    else:
        assert seen == [
            "-| RUN",
            "-| calls c1 payer in m1",
            '-| c1 {"request": "x"}',
            "-| called c1",
            "-| + c1 payer (agent_tool) by c1",
            "c1| calls p1 pay in m2",
            'c1| p1 {"amount": 5}',
            "c1| called p1",
            "c1| ! interrupt_lost: its question was swallowed by the caller, which went on without an answer",
            "-| c1 -> ''",
            "-| says m3",
            "-| m3 'done'",
            "-| said m3",
            "-| RUN SUCCESS pending p1",
        ]


async def test_long_running_tools():
    """A pending result is no result: it goes to the interrupt, and the call stays open."""
    tools = [LongRunningFunctionTool(ticket), LongRunningFunctionTool(ask_human)]
    clerk = agent(
        "clerk",
        Say(calls=[("p1", "ticket", {"q": "x"}), ("p2", "ask_human", {"q": "y"})]),
        Say("I wait"),
        mode="task",
        tools=tools,
    )
    both = answer(("p1", {"status": "ok"}), ("p2", "yes"))
    assert await ask(runner(boss(clerk)), "hi", both, run_config=AT_ONCE) == [
        "-| RUN",
        "-| calls c1 clerk in m1",
        '-| c1 {"request": "x"}',
        "-| called c1",
        "-| + c1 clerk (task) by c1",
        "c1| calls p1 ticket in m2",
        'c1| p1 {"q": "x"}',
        "c1| calls p2 ask_human in m2",
        'c1| p2 {"q": "y"}',
        "c1| called p1",
        "c1| called p2",
        "c1| says m3",
        "c1| m3 'I wait'",
        "c1| said m3",
        "c1| ~ p1 p2",
        '-| RUN ASKS c1 tool_call p1 call=p1 {"adk": {"pending": {"status": "pending", "ticket": 7}}}; c1 tool_call p2 call=p2',
        "-| RUN",
        "-| + c1 clerk (task) by c1",
        'c1| p1 -> \'{"status": "ok"}\'',
        "c1| p2 -> 'yes'",
        "c1| says m4",
        "c1| m4 'I wait'",
        "c1| said m4",
        "c1| ~",
        "-| RUN SUCCESS",
    ]


async def test_a_long_running_tool_of_the_root():
    root = agent(
        "root",
        Say(calls=[("p1", "ticket", {"q": "x"})]),
        Say("I wait"),
        tools=[LongRunningFunctionTool(ticket)],
    )
    assert await ask(runner(root), "hi", answer(("p1", {"status": "ok"})), run_config=AT_ONCE) == [
        "-| RUN",
        "-| calls p1 ticket in m1",
        '-| p1 {"q": "x"}',
        "-| called p1",
        "-| says m2",
        "-| m2 'I wait'",
        "-| said m2",
        '-| RUN ASKS - tool_call p1 call=p1 {"adk": {"pending": {"status": "pending", "ticket": 7}}}',
        "-| RUN",
        '-| p1 -> \'{"status": "ok"}\'',
        "-| says m3",
        "-| m3 'I wait'",
        "-| said m3",
        "-| RUN SUCCESS",
    ]


async def test_input_requested_by_a_tool():
    clerk = agent(
        "clerk",
        Say(
            calls=[("p1", "adk_request_input", {"message": "Which?", "response_schema": {"type": "string"}})]
        ),
        Say(calls=[("f1", "finish_task", {"result": "r"})]),
        mode="task",
        tools=[request_input],
    )
    assert await ask(runner(boss(clerk)), "hi", answer(("p1", "red")), run_config=AT_ONCE) == [
        "-| RUN",
        "-| calls c1 clerk in m1",
        '-| c1 {"request": "x"}',
        "-| called c1",
        "-| + c1 clerk (task) by c1",
        "c1| ~ p1",
        '-| RUN ASKS c1 input_required p1 \'Which?\' {"type": "string"}',
        "-| RUN",
        "-| + c1 clerk (task) by c1",
        'c1| . {"result": "r"}',
        "-| c1 -> 'r'",
        "-| says m2",
        "-| m2 'done'",
        "-| said m2",
        "-| RUN SUCCESS",
    ]


async def how_many(ctx, node_input):
    if "q1" in ctx.resume_inputs:
        yield f"got {ctx.resume_inputs['q1']}"
    else:
        yield RequestInput(interrupt_id="q1", message="How many?", response_schema={"type": "integer"})


async def test_input_requested_by_a_node():
    graph = Workflow(
        name="wf", edges=[(START, node(how_many, rerun_on_resume=True), agent("a", Say("A says")))]
    )
    assert await ask(runner(graph), "hi", answer(("q1", 3)), run_config=AT_ONCE) == [
        "-| RUN",
        '-| RUN ASKS - input_required q1 \'How many?\' {"type": "integer"}',
        "-| RUN",
        "-| + e1:wf@1/a@1 a (single_turn) by no call",
        "e1:wf@1/a@1| says m1",
        "e1:wf@1/a@1| m1 'A says'",
        "e1:wf@1/a@1| said m1",
        "e1:wf@1/a@1| .",
        "-| RUN SUCCESS",
    ]


async def test_a_branch_that_waits_beside_one_that_does_not():
    asking = node(how_many, rerun_on_resume=True)
    graph = Workflow(
        name="wf",
        edges=[(START, (asking, agent("a", Say("A says"))), JoinNode(name="j"), agent("c", Say("C says")))],
    )
    assert await ask(runner(graph), "hi", answer(("q1", 3)), run_config=AT_ONCE) == [
        "-| RUN",
        "-| + e1:wf@1/a@1 a (single_turn) by no call",
        "e1:wf@1/a@1| says m1",
        "e1:wf@1/a@1| m1 'A says'",
        "e1:wf@1/a@1| said m1",
        "e1:wf@1/a@1| .",
        '-| RUN ASKS - input_required q1 \'How many?\' {"type": "integer"}',
        "-| RUN",
        "-| + e1:wf@1/c@1 c (single_turn) by no call",
        "e1:wf@1/c@1| says m2",
        "e1:wf@1/c@1| m2 'C says'",
        "e1:wf@1/c@1| said m2",
        "e1:wf@1/c@1| .",
        "-| RUN SUCCESS",
    ]


async def test_a_confirmation_in_a_sequence():
    first = agent(
        "a",
        Say(calls=[("p1", "pay", {"amount": 5})]),
        Say("a done"),
        tools=[FunctionTool(pay, require_confirmation=True)],
    )
    seq = SequentialAgent(name="seq", sub_agents=[first, agent("b", Say("B says"))])
    app = App(name="team", root_agent=seq, resumability_config=ResumabilityConfig(is_resumable=True))
    assert await ask(runner(app), "hi", yes, run_config=AT_ONCE) == [
        "-| RUN",
        "-| + e1:a#1 a (workflow_agent) by no call",
        "e1:a#1| calls p1 pay in m1",
        'e1:a#1| p1 {"amount": 5}',
        "e1:a#1| called p1",
        "e1:a#1| ~ adk1",
        '-| RUN ASKS e1:a#1 confirmation adk1 call=p1 \'Please approve or reject the tool call pay() by responding with a FunctionResponse with an expected ToolConfirmation payload.\' {"type": "object", "properties": {"confirmed": {"type": "boolean"}, "payload": {}}, "required": ["confirmed"]}',
        "-| RUN",
        "-| + e1:a#1 a (workflow_agent) by no call",
        "e1:a#1| p1 -> 'paid 5'",
        "e1:a#1| says m2",
        "e1:a#1| m2 'a done'",
        "e1:a#1| said m2",
        "e1:a#1| .",
        "-| + e1:b#1 b (workflow_agent) by no call",
        "e1:b#1| says m3",
        "e1:b#1| m3 'B says'",
        "e1:b#1| said m3",
        "e1:b#1| .",
        "-| RUN SUCCESS",
    ]


async def test_words_while_a_confirmation_is_pending():
    """The root answers; the child stays suspended and can still be answered."""
    child = payer("single_turn")
    turns = iter([Say(calls=[("c1", "payer", {"request": "x"})]), Say("please confirm first"), Say("done")])
    root = boss(child)
    root.model.script = lambda _request: next(turns)
    seen = await ask(runner(root), "hi", "hello?", yes, run_config=AT_ONCE)
    if can("approval"):
        assert seen == [
            "-| RUN",
            "-| calls c1 payer in m1",
            '-| c1 {"request": "x"}',
            "-| called c1",
            "-| + c1 payer (single_turn) by c1",
            "c1| calls p1 pay in m2",
            'c1| p1 {"amount": 5}',
            "c1| called p1",
            "c1| ~ adk1",
            '-| RUN ASKS c1 confirmation adk1 call=p1 \'Please approve or reject the tool call pay() by responding with a FunctionResponse with an expected ToolConfirmation payload.\' {"type": "object", "properties": {"confirmed": {"type": "boolean"}, "payload": {}}, "required": ["confirmed"]}',
            "-| RUN",
            "-| says m3",
            "-| m3 'please confirm first'",
            "-| said m3",
            "-| RUN SUCCESS",
            "-| RUN",
            "-| + c1 payer (single_turn) by c1",
            "c1| p1 -> 'paid 5'",
            "c1| says m4",
            "c1| m4 'it is paid'",
            "c1| said m4",
            "c1| .",
            "-| c1 -> 'it is paid'",
            "-| says m5",
            "-| m5 'done'",
            "-| said m5",
            "-| RUN SUCCESS",
        ]
    else:  # ADK routes the words to the waiting agent, by itself and in no branch
        assert seen == [
            "-| RUN",
            "-| calls c1 payer in m1",
            '-| c1 {"request": "x"}',
            "-| called c1",
            "-| + c1 payer (single_turn) by c1",
            "c1| calls p1 pay in m2",
            'c1| p1 {"amount": 5}',
            "c1| called p1",
            "c1| ~ adk1",
            '-| RUN ASKS c1 confirmation adk1 call=p1 \'Please approve or reject the tool call pay() by responding with a FunctionResponse with an expected ToolConfirmation payload.\' {"type": "object", "properties": {"confirmed": {"type": "boolean"}, "payload": {}}, "required": ["confirmed"]}',
            "-| RUN",
            "-| + e1:root@1/payer@1 payer (single_turn) by no call",
            "e1:root@1/payer@1| calls p1@e1:root@1/payer@1 pay in m3",
            'e1:root@1/payer@1| p1@e1:root@1/payer@1 {"amount": 5}',
            "e1:root@1/payer@1| called p1@e1:root@1/payer@1",
            "e1:root@1/payer@1| ~ adk2",
            '-| RUN ASKS e1:root@1/payer@1 confirmation adk2 call=p1@e1:root@1/payer@1 \'Please approve or reject the tool call pay() by responding with a FunctionResponse with an expected ToolConfirmation payload.\' {"type": "object", "properties": {"confirmed": {"type": "boolean"}, "payload": {}}, "required": ["confirmed"]}',
            "-| RUN",
            "-| + e1:root@1/payer@1 payer (single_turn) by no call",
            "e1:root@1/payer@1| calls p1@e1:root@1/payer@1#2 pay in m4",
            'e1:root@1/payer@1| p1@e1:root@1/payer@1#2 {"amount": 5}',
            "e1:root@1/payer@1| called p1@e1:root@1/payer@1#2",
            "e1:root@1/payer@1| ~ adk3",
            '-| RUN ASKS e1:root@1/payer@1 confirmation adk3 call=p1@e1:root@1/payer@1#2 \'Please approve or reject the tool call pay() by responding with a FunctionResponse with an expected ToolConfirmation payload.\' {"type": "object", "properties": {"confirmed": {"type": "boolean"}, "payload": {}}, "required": ["confirmed"]}',
        ]


async def test_a_new_process(tmp_path):
    """Every id comes from the stored session alone."""

    def process():
        target = runner(boss(payer("task")), session_service=SqliteSessionService(str(tmp_path / "s.db")))
        return attribute(target, clock=None, run_config=AT_ONCE)

    first = await collect(process().run(user("hi")))
    second = await collect(process().run(yes(first)))
    assert show(first + second) == [
        "-| RUN",
        "-| calls c1 payer in m1",
        '-| c1 {"request": "x"}',
        "-| called c1",
        "-| + c1 payer (task) by c1",
        "c1| calls p1 pay in m2",
        'c1| p1 {"amount": 5}',
        "c1| called p1",
        "c1| ~ adk1",
        '-| RUN ASKS c1 confirmation adk1 call=p1 \'Please approve or reject the tool call pay() by responding with a FunctionResponse with an expected ToolConfirmation payload.\' {"type": "object", "properties": {"confirmed": {"type": "boolean"}, "payload": {}}, "required": ["confirmed"]}',
        "-| RUN",
        "-| + c1 payer (task) by c1",
        "c1| p1 -> 'paid 5'",
        'c1| . {"result": "ok"}',
        "-| c1 -> 'ok'",
        "-| says m3",
        "-| m3 'done'",
        "-| said m3",
        "-| RUN SUCCESS",
    ]


async def test_a_question_answered_in_a_new_process(tmp_path):
    def process():
        booker = agent(
            "booker", Say("Which city?"), Say(calls=[("f1", "finish_task", {"result": "ok"})]), mode="task"
        )
        target = runner(boss(booker), session_service=SqliteSessionService(str(tmp_path / "s.db")))
        return attribute(target, clock=None)

    events = []
    for text in ("hi", "Seoul"):
        events += await collect(process().run(user(text)))
    assert show(events) == [
        "-| RUN",
        "-| calls c1 booker in m1",
        '-| c1 {"request": "x"}',
        "-| called c1",
        "-| + c1 booker (task) by c1",
        "c1| says m2",
        "c1| m2 'Which '",
        "c1| m2 'city?'",
        "c1| said m2",
        "c1| ~",
        "-| RUN SUCCESS pending c1",
        "-| RUN",
        "-| + c1 booker (task) by c1",
        'c1| . {"result": "ok"}',
        "-| c1 -> 'ok'",
        "-| says m3",
        "-| m3 'done'",
        "-| said m3",
        "-| RUN SUCCESS",
    ]


async def test_a_chat_agent_goes_on_in_a_new_process(tmp_path):
    def process():
        first = agent("first", Say(calls=[("t2", "transfer_to_agent", {"agent_name": "second"})]))
        second = agent("second", Say("second here"))
        root = agent(
            "root",
            Say(calls=[("t1", "transfer_to_agent", {"agent_name": "first"})]),
            sub_agents=[first, second],
        )
        return attribute(
            runner(root, session_service=SqliteSessionService(str(tmp_path / "s.db"))), clock=None
        )

    events = []
    for text in ("hi", "more"):
        events += await collect(process().run(user(text)))
    assert show(events) == [
        "-| RUN",
        "-| calls t1 transfer_to_agent in m1",
        '-| t1 {"agent_name": "first"}',
        "-| called t1",
        "-| t1 -> 'transferred to first'",
        "-| + t1 first (chat) by t1",
        "t1| calls t2 transfer_to_agent in m2",
        't1| t2 {"agent_name": "second"}',
        "t1| called t2",
        "t1| t2 -> 'transferred to second'",
        "t1| .",
        "-| + t2 second (chat) by t2",
        "t2| says m3",
        "t2| m3 'second '",
        "t2| m3 'here'",
        "t2| said m3",
        "t2| ~",
        "-| RUN SUCCESS",
        "-| RUN",
        "-| + t2 second (chat) by t2",
        "t2| says m4",
        "t2| m4 'second '",
        "t2| m4 'here'",
        "t2| said m4",
        "t2| ~",
        "-| RUN SUCCESS",
    ]


async def test_a_failed_task_that_runs_again_is_a_retry():
    fails = iter([True, False])
    clerk = agent("clerk", mode="task")

    def script(_request):
        if next(fails):
            return Say("I try", fails=RuntimeError("model broke"))
        return Say(calls=[("f1", "finish_task", {"result": "ok"})])

    clerk.model.script = script
    assert await ask(runner(boss(clerk)), "hi", "again") == [
        "-| RUN",
        "-| calls c1 clerk in m1",
        '-| c1 {"request": "x"}',
        "-| called c1",
        "-| + c1 clerk (task) by c1",
        "c1| says m2",
        "c1| m2 'I '",
        "c1| m2 'try'",
        "c1| said m2",
        "c1| ! RuntimeError: model broke",
        "-| RUN ERROR RuntimeError: model broke",
        "-| RUN",
        "-| + c1#2 clerk (task) by c1",
        'c1#2| . {"result": "ok"}',
        "-| c1 -> 'ok'",
        "-| says m3",
        "-| m3 'done'",
        "-| said m3",
        "-| RUN SUCCESS",
    ]


async def test_what_nothing_waits_for_is_refused_before_the_app_is_called():
    target = runner(boss(payer("task")))
    first = await collect(attribute(target, run_config=AT_ONCE).run(user("hi")))
    (id_,) = open_interrupts(first)
    agent_ = attribute(target, run_config=AT_ONCE)
    with pytest.raises(ResumeError, match=r"'nothing'.*unknown or already answered; open are"):
        await collect(agent_.run(answer(("nothing", 1))))
    with pytest.raises(ResumeError, match="twice"):
        await collect(agent_.run(answer((id_, True), (id_, False))))
    await collect(agent_.run(answer((id_, True))))
    with pytest.raises(ResumeError, match=f"{id_}.*open are none"):
        await collect(agent_.run(answer((id_, True))))
    with pytest.raises(ResumeError, match="no session 't' of user 'eve'"):
        await collect(attribute(target, user_id="eve").run(answer((id_, True))))


async def test_nothing_of_the_waiting_is_kept_in_memory():
    """Two agents over one runner, each with one half of the conversation."""
    target = runner(boss(payer("task")))
    first = await collect(attribute(target, clock=None, run_config=AT_ONCE).run(user("hi")))
    await asyncio.sleep(0)
    second = await collect(attribute(target, clock=None, run_config=AT_ONCE).run(yes(first)))
    assert [line for line in show(second) if "+" in line] == [
        "-| + c1 payer (task) by c1",
    ]
