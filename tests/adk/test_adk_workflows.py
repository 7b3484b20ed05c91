"""Who did what inside workflows: graphs, and the agents that run their sub-agents themselves."""

import pytest
from adk_kit import AT_ONCE, agent, ask, attribute, can, collect, run, runner, user
from byline_adk.scripted import Say, ScriptedLlm
from google.adk.agents import BaseAgent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.events.event import Event
from google.adk.workflow import START, JoinNode, Workflow, node
from google.genai import types
from pydantic import BaseModel

pytestmark = pytest.mark.anyio


def step(node_input):
    return f"step saw {len(str(node_input)) > 0}"


async def test_sequential():
    root = SequentialAgent(name="seq", sub_agents=[agent("a", Say("A says")), agent("b", Say("B says"))])
    assert await run(runner(root), "hi") == [
        "-| RUN",
        "-| + e1:a#1 a (workflow_agent) by no call",
        "e1:a#1| says m1",
        "e1:a#1| m1 'A '",
        "e1:a#1| m1 'says'",
        "e1:a#1| said m1",
        "e1:a#1| .",
        "-| + e1:b#1 b (workflow_agent) by no call",
        "e1:b#1| says m2",
        "e1:b#1| m2 'B '",
        "e1:b#1| m2 'says'",
        "e1:b#1| said m2",
        "e1:b#1| .",
        "-| RUN SUCCESS",
    ]


async def test_parallel():
    root = ParallelAgent(name="par", sub_agents=[agent("a", Say("A says")), agent("b", Say("B says"))])
    assert await run(runner(root), "hi") == [
        "-| RUN",
        "-| + e1:a#1 a (workflow_agent) by no call",
        "-| + e1:b#1 b (workflow_agent) by no call",
        "e1:a#1| says m1",
        "e1:a#1| m1 'A '",
        "e1:b#1| says m2",
        "e1:b#1| m2 'B '",
        "e1:a#1| m1 'says'",
        "e1:b#1| m2 'says'",
        "e1:a#1| said m1",
        "e1:b#1| said m2",
        "e1:a#1| .",
        "e1:b#1| .",
        "-| RUN SUCCESS",
    ]


async def test_loop_each_iteration_is_an_invocation():
    loop = LoopAgent(
        name="loop",
        description="l",
        max_iterations=2,
        sub_agents=[agent("a", Say("A says")), agent("b", Say("B says"))],
    )
    root = agent("root", Say(calls=[("t1", "transfer_to_agent", {"agent_name": "loop"})]), sub_agents=[loop])
    assert await run(runner(root), "hi", run_config=AT_ONCE) == [
        "-| RUN",
        "-| calls t1 transfer_to_agent in m1",
        '-| t1 {"agent_name": "loop"}',
        "-| called t1",
        "-| t1 -> 'transferred to loop'",
        "-| + t1 loop (workflow_agent) by t1",
        "t1| + t1/a#1 a (workflow_agent) by no call",
        "t1/a#1| says m2",
        "t1/a#1| m2 'A says'",
        "t1/a#1| said m2",
        "t1/a#1| .",
        "t1| + t1/b#1 b (workflow_agent) by no call",
        "t1/b#1| says m3",
        "t1/b#1| m3 'B says'",
        "t1/b#1| said m3",
        "t1/b#1| .",
        "t1| + t1/a#2 a (workflow_agent) by no call",
        "t1/a#2| says m4",
        "t1/a#2| m4 'A says'",
        "t1/a#2| said m4",
        "t1/a#2| .",
        "t1| + t1/b#2 b (workflow_agent) by no call",
        "t1/b#2| says m5",
        "t1/b#2| m5 'B says'",
        "t1/b#2| said m5",
        "t1/b#2| .",
        "t1| .",
        "-| RUN SUCCESS",
    ]


async def test_containers_in_containers():
    """ADK leaks the parallel branch into what follows; nobody is credited for it."""
    par = ParallelAgent(name="par", sub_agents=[agent("b", Say("B says")), agent("c", Say("C says"))])
    loop = LoopAgent(name="loop", max_iterations=2, sub_agents=[agent("d", Say("D says"))])
    seq = SequentialAgent(name="seq", description="s", sub_agents=[par, loop])
    root = agent("root", Say(calls=[("t1", "transfer_to_agent", {"agent_name": "seq"})]), sub_agents=[seq])
    assert await run(runner(root), "hi", run_config=AT_ONCE) == [
        "-| RUN",
        "-| calls t1 transfer_to_agent in m1",
        '-| t1 {"agent_name": "seq"}',
        "-| called t1",
        "-| t1 -> 'transferred to seq'",
        "-| + t1 seq (workflow_agent) by t1",
        "t1| + t1/par#1 par (workflow_agent) by no call",
        "t1/par#1| + t1/par#1/b#1 b (workflow_agent) by no call",
        "t1/par#1| + t1/par#1/c#1 c (workflow_agent) by no call",
        "t1/par#1/b#1| says m2",
        "t1/par#1/b#1| m2 'B says'",
        "t1/par#1/b#1| said m2",
        "t1/par#1/b#1| .",
        "t1/par#1/c#1| says m3",
        "t1/par#1/c#1| m3 'C says'",
        "t1/par#1/c#1| said m3",
        "t1/par#1/c#1| .",
        "t1/par#1| .",
        "t1| + t1/loop#1 loop (workflow_agent) by no call",
        "t1/loop#1| + t1/loop#1/d#1 d (workflow_agent) by no call",
        "t1/loop#1/d#1| says m4",
        "t1/loop#1/d#1| m4 'D says'",
        "t1/loop#1/d#1| said m4",
        "t1/loop#1/d#1| .",
        "t1/loop#1| + t1/loop#1/d#2 d (workflow_agent) by no call",
        "t1/loop#1/d#2| says m5",
        "t1/loop#1/d#2| m5 'D says'",
        "t1/loop#1/d#2| said m5",
        "t1/loop#1/d#2| .",
        "t1/loop#1| .",
        "t1| .",
        "-| RUN SUCCESS",
    ]


class Custom(BaseAgent):
    """Speaks itself, and runs its sub-agent twice."""

    async def _run_async_impl(self, ctx):
        for round_ in (1, 2):
            said = types.Content(role="model", parts=[types.Part(text=f"round {round_}")])
            yield Event(author=self.name, invocation_id=ctx.invocation_id, content=said)
            async for event in self.sub_agents[0].run_async(ctx):
                yield event


async def test_a_custom_root():
    root = Custom(name="boss", sub_agents=[agent("a", Say("A says"))])
    assert await run(runner(root), "hi", run_config=AT_ONCE) == [
        "-| RUN",
        "-| says m1",
        "-| m1 'round 1'",
        "-| said m1",
        "-| + e1:a#1 a (workflow_agent) by no call",
        "e1:a#1| says m2",
        "e1:a#1| m2 'A says'",
        "e1:a#1| said m2",
        "e1:a#1| .",
        "-| says m3",
        "-| m3 'round 2'",
        "-| said m3",
        "-| + e1:a#2 a (workflow_agent) by no call",
        "e1:a#2| says m4",
        "e1:a#2| m4 'A says'",
        "e1:a#2| said m4",
        "e1:a#2| .",
        "-| RUN SUCCESS",
    ]


async def test_a_custom_agent_in_a_sequence():
    boss = Custom(name="boss", sub_agents=[agent("a", Say("A says"))])
    root = SequentialAgent(name="seq", sub_agents=[boss, agent("z", Say("Z says"))])
    assert await run(runner(root), "hi", run_config=AT_ONCE) == [
        "-| RUN",
        "-| + e1:boss#1 boss (workflow_agent) by no call",
        "e1:boss#1| says m1",
        "e1:boss#1| m1 'round 1'",
        "e1:boss#1| said m1",
        "e1:boss#1| + e1:boss#1/a#1 a (workflow_agent) by no call",
        "e1:boss#1/a#1| says m2",
        "e1:boss#1/a#1| m2 'A says'",
        "e1:boss#1/a#1| said m2",
        "e1:boss#1/a#1| .",
        "e1:boss#1| says m3",
        "e1:boss#1| m3 'round 2'",
        "e1:boss#1| said m3",
        "e1:boss#1| + e1:boss#1/a#2 a (workflow_agent) by no call",
        "e1:boss#1/a#2| says m4",
        "e1:boss#1/a#2| m4 'A says'",
        "e1:boss#1/a#2| said m4",
        "e1:boss#1/a#2| .",
        "e1:boss#1| .",
        "-| + e1:z#1 z (workflow_agent) by no call",
        "e1:z#1| says m5",
        "e1:z#1| m5 'Z says'",
        "e1:z#1| said m5",
        "e1:z#1| .",
        "-| RUN SUCCESS",
    ]


async def test_graph_with_functions_fan_out_and_join():
    graph = Workflow(
        name="wf",
        edges=[
            (
                START,
                step,
                (agent("a", Say("A says")), agent("b", Say("B says"))),
                JoinNode(name="j"),
                agent("c", Say("C says")),
            )
        ],
    )
    seen = await run(runner(graph), "hi", run_config=AT_ONCE)
    if can("node_path"):
        assert seen == [
            "-| RUN",
            "-| + e1:wf@1/a@1 a (single_turn) by no call",
            "-| + e1:wf@1/b@1 b (single_turn) by no call",
            "e1:wf@1/a@1| says m1",
            "e1:wf@1/a@1| m1 'A says'",
            "e1:wf@1/a@1| said m1",
            "e1:wf@1/b@1| says m2",
            "e1:wf@1/b@1| m2 'B says'",
            "e1:wf@1/b@1| said m2",
            "e1:wf@1/a@1| .",
            "e1:wf@1/b@1| .",
            "-| + e1:wf@1/c@1 c (single_turn) by no call",
            "e1:wf@1/c@1| says m3",
            "e1:wf@1/c@1| m3 'C says'",
            "e1:wf@1/c@1| said m3",
            "e1:wf@1/c@1| .",
            "-| RUN SUCCESS",
        ]
    else:  # a node has its id, and is announced, with its first event
        assert seen == [
            "-| RUN",
            "-| + e1:wf@1/a@1 a (single_turn) by no call",
            "e1:wf@1/a@1| says m1",
            "e1:wf@1/a@1| m1 'A says'",
            "e1:wf@1/a@1| said m1",
            "-| + e1:wf@1/b@1 b (single_turn) by no call",
            "e1:wf@1/b@1| says m2",
            "e1:wf@1/b@1| m2 'B says'",
            "e1:wf@1/b@1| said m2",
            "e1:wf@1/a@1| .",
            "e1:wf@1/b@1| .",
            "-| + e1:wf@1/c@1 c (single_turn) by no call",
            "e1:wf@1/c@1| says m3",
            "e1:wf@1/c@1| m3 'C says'",
            "e1:wf@1/c@1| said m3",
            "e1:wf@1/c@1| .",
            "-| RUN SUCCESS",
        ]


async def test_function_nodes_speak_for_their_workflow():
    def talk(node_input):
        return Event(message="working on it")

    graph = Workflow(name="wf", edges=[(START, talk, agent("a", Say("A says")))])
    assert await run(runner(graph), "hi", run_config=AT_ONCE) == [
        "-| RUN",
        "-| says m1",
        "-| m1 'working on it'",
        "-| said m1",
        "-| + e1:wf@1/a@1 a (single_turn) by no call",
        "e1:wf@1/a@1| says m2",
        "e1:wf@1/a@1| m2 'A says'",
        "e1:wf@1/a@1| said m2",
        "e1:wf@1/a@1| .",
        "-| RUN SUCCESS",
    ]


async def test_parallel_workers():
    def split(node_input):
        return ["p", "q"]

    graph = Workflow(name="wf", edges=[(START, split, node(agent("w", Say("W says")), parallel_worker=True))])
    seen = await run(runner(graph), "hi", run_config=AT_ONCE)
    if can("node_path"):
        assert seen == [
            "-| RUN",
            "-| + e1:wf@1/w@1/w@1 w (single_turn) by no call",
            "-| + e1:wf@1/w@1/w@2 w (single_turn) by no call",
            "e1:wf@1/w@1/w@1| says m1",
            "e1:wf@1/w@1/w@1| m1 'W says'",
            "e1:wf@1/w@1/w@1| said m1",
            "e1:wf@1/w@1/w@2| says m2",
            "e1:wf@1/w@1/w@2| m2 'W says'",
            "e1:wf@1/w@1/w@2| said m2",
            "e1:wf@1/w@1/w@1| .",
            "e1:wf@1/w@1/w@2| .",
            '-| RUN SUCCESS ["W says", "W says"]',
        ]
    else:
        assert seen == [
            "-| RUN",
            "-| + e1:wf@1/w@1/w@1 w (single_turn) by no call",
            "e1:wf@1/w@1/w@1| says m1",
            "e1:wf@1/w@1/w@1| m1 'W says'",
            "e1:wf@1/w@1/w@1| said m1",
            "-| + e1:wf@1/w@1/w@2 w (single_turn) by no call",
            "e1:wf@1/w@1/w@2| says m2",
            "e1:wf@1/w@1/w@2| m2 'W says'",
            "e1:wf@1/w@1/w@2| said m2",
            "e1:wf@1/w@1/w@1| .",
            "e1:wf@1/w@1/w@2| .",
            '-| RUN SUCCESS ["W says", "W says"]',
        ]


async def test_dynamic_nodes():
    b = agent("b", Say("B says"))

    async def orchestrate(ctx, node_input):
        first = await ctx.run_node(b, node_input="x")
        second = await ctx.run_node(b, node_input="y")
        return {"first": first, "second": second}

    graph = Workflow(name="wf", edges=[(START, node(orchestrate, rerun_on_resume=True))])
    assert await run(runner(graph), "hi") == [
        "-| RUN",
        "-| + e1:wf@1/orchestrate@1/b@1 b (single_turn) by no call",
        "e1:wf@1/orchestrate@1/b@1| says m1",
        "e1:wf@1/orchestrate@1/b@1| m1 'B '",
        "e1:wf@1/orchestrate@1/b@1| m1 'says'",
        "e1:wf@1/orchestrate@1/b@1| said m1",
        "e1:wf@1/orchestrate@1/b@1| .",
        "-| + e1:wf@1/orchestrate@1/b@2 b (single_turn) by no call",
        "e1:wf@1/orchestrate@1/b@2| says m2",
        "e1:wf@1/orchestrate@1/b@2| m2 'B '",
        "e1:wf@1/orchestrate@1/b@2| m2 'says'",
        "e1:wf@1/orchestrate@1/b@2| said m2",
        "e1:wf@1/orchestrate@1/b@2| .",
        '-| RUN SUCCESS {"first": "B says", "second": "B says"}',
    ]


async def test_a_graph_in_a_graph():
    inner = Workflow(name="inner", edges=[(START, agent("a", Say("A says")))])
    graph = Workflow(name="wf", edges=[(START, inner, agent("b", Say("B says")))])
    assert await run(runner(graph), "hi") == [
        "-| RUN",
        "-| + e1:wf@1/inner@1 inner (workflow) by no call",
        "e1:wf@1/inner@1| + e1:wf@1/inner@1/a@1 a (single_turn) by no call",
        "e1:wf@1/inner@1/a@1| says m1",
        "e1:wf@1/inner@1/a@1| m1 'A '",
        "e1:wf@1/inner@1/a@1| m1 'says'",
        "e1:wf@1/inner@1/a@1| said m1",
        "e1:wf@1/inner@1/a@1| .",
        "e1:wf@1/inner@1| .",
        "-| + e1:wf@1/b@1 b (single_turn) by no call",
        "e1:wf@1/b@1| says m2",
        "e1:wf@1/b@1| m2 'B '",
        "e1:wf@1/b@1| m2 'says'",
        "e1:wf@1/b@1| said m2",
        "e1:wf@1/b@1| .",
        "-| RUN SUCCESS",
    ]


class Ask(BaseModel):
    request: str


async def test_a_graph_as_a_tool_twice_at_once():
    graph = Workflow(
        name="wf",
        description="works",
        input_schema=Ask,
        edges=[(START, agent("a", Say("A says")), agent("b", Say("B says")))],
    )
    calls = [("c1", "wf", {"request": "go"}), ("c2", "wf", {"request": "go"})]
    root = agent("root", Say(calls=calls), Say("done"), tools=[graph])
    seen = await run(runner(root), "hi", run_config=AT_ONCE)
    if can("node_path"):
        assert seen == [
            "-| RUN",
            "-| calls c1 wf in m1",
            '-| c1 {"request": "go"}',
            "-| calls c2 wf in m1",
            '-| c2 {"request": "go"}',
            "-| called c1",
            "-| called c2",
            "-| + c1 wf (workflow_tool) by c1",
            "-| + c2 wf (workflow_tool) by c2",
            "c1| + e1:root@1/wf@c1/a@1 a (single_turn) by no call",
            "c2| + e1:root@1/wf@c2/a@1 a (single_turn) by no call",
            "e1:root@1/wf@c1/a@1| says m2",
            "e1:root@1/wf@c1/a@1| m2 'A says'",
            "e1:root@1/wf@c1/a@1| said m2",
            "e1:root@1/wf@c2/a@1| says m3",
            "e1:root@1/wf@c2/a@1| m3 'A says'",
            "e1:root@1/wf@c2/a@1| said m3",
            "e1:root@1/wf@c1/a@1| .",
            "e1:root@1/wf@c2/a@1| .",
            "c1| + e1:root@1/wf@c1/b@1 b (single_turn) by no call",
            "c2| + e1:root@1/wf@c2/b@1 b (single_turn) by no call",
            "e1:root@1/wf@c1/b@1| says m4",
            "e1:root@1/wf@c1/b@1| m4 'B says'",
            "e1:root@1/wf@c1/b@1| said m4",
            "e1:root@1/wf@c2/b@1| says m5",
            "e1:root@1/wf@c2/b@1| m5 'B says'",
            "e1:root@1/wf@c2/b@1| said m5",
            "e1:root@1/wf@c1/b@1| .",
            "e1:root@1/wf@c2/b@1| .",
            "c1| .",
            "c2| .",
            "-| c1 -> 'B says'",
            "-| c2 -> 'B says'",
            "-| says m6",
            "-| m6 'done'",
            "-| said m6",
            "-| RUN SUCCESS",
        ]
    else:
        assert seen == [
            "-| RUN",
            "-| calls c1 wf in m1",
            '-| c1 {"request": "go"}',
            "-| calls c2 wf in m1",
            '-| c2 {"request": "go"}',
            "-| called c1",
            "-| called c2",
            "-| + c1 wf (workflow_tool) by c1",
            "-| + c2 wf (workflow_tool) by c2",
            "-| + e1:wf@1/a@1 a (single_turn) by no call",
            "e1:wf@1/a@1| says m2",
            "e1:wf@1/a@1| m2 'A says'",
            "e1:wf@1/a@1| said m2",
            "-| + e1:wf@1/a@1#2 a (single_turn) by no call",
            "e1:wf@1/a@1#2| says m3",
            "e1:wf@1/a@1#2| m3 'A says'",
            "e1:wf@1/a@1#2| said m3",
            "e1:wf@1/a@1| .",
            "e1:wf@1/a@1#2| .",
            "-| + e1:wf@1/b@1 b (single_turn) by no call",
            "e1:wf@1/b@1| says m4",
            "e1:wf@1/b@1| m4 'B says'",
            "e1:wf@1/b@1| said m4",
            "c2| .",
            "e1:wf@1/b@1| .",
            "c1| .",
            "-| says m5",
            "-| m5 'done'",
            "-| said m5",
            '-| RUN ASKS - tool_call c1 call=c1 {"adk": {"pending": {"result": "B says"}}}; - tool_call c2 call=c2 {"adk": {"pending": {"result": "B says"}}}',
        ]


def booker():
    return agent(
        "booker", Say("which city?"), Say(calls=[("f1", "finish_task", {"result": "booked"})]), mode="task"
    )


async def test_a_task_as_a_node_goes_on_to_the_next():
    graph = Workflow(name="wf", edges=[(START, booker(), agent("c", Say("C says")))])
    assert await ask(runner(graph), "hi", "Seoul") == [
        "-| RUN",
        "-| + e1:wf@1/booker@1 booker (task) by no call",
        "e1:wf@1/booker@1| says m1",
        "e1:wf@1/booker@1| m1 'which '",
        "e1:wf@1/booker@1| m1 'city?'",
        "e1:wf@1/booker@1| said m1",
        "e1:wf@1/booker@1| ~",
        "-| RUN SUCCESS",
        "-| RUN",
        "-| + e1:wf@1/booker@1 booker (task) by no call",
        'e1:wf@1/booker@1| . {"result": "booked"}',
        "-| + e1:wf@1/c@1 c (single_turn) by no call",
        "e1:wf@1/c@1| says m2",
        "e1:wf@1/c@1| m2 'C '",
        "e1:wf@1/c@1| m2 'says'",
        "e1:wf@1/c@1| said m2",
        "e1:wf@1/c@1| .",
        "-| RUN SUCCESS",
    ]


async def test_the_same_task_under_an_llm_agent_returns():
    root = agent("root", Say(calls=[("c1", "booker", {"request": "x"})]), Say("done"), sub_agents=[booker()])
    assert await ask(runner(root), "hi", "Seoul", run_config=AT_ONCE) == [
        "-| RUN",
        "-| calls c1 booker in m1",
        '-| c1 {"request": "x"}',
        "-| called c1",
        "-| + c1 booker (task) by c1",
        "c1| says m2",
        "c1| m2 'which city?'",
        "c1| said m2",
        "c1| ~",
        "-| RUN SUCCESS pending c1",
        "-| RUN",
        "-| + c1 booker (task) by c1",
        'c1| . {"result": "booked"}',
        "-| c1 -> 'booked'",
        "-| says m3",
        "-| m3 'done'",
        "-| said m3",
        "-| RUN SUCCESS",
    ]


async def test_delegation_from_a_node():
    helper = agent("helper", Say("helped"), mode="single_turn")
    boss = agent(
        "boss",
        Say(calls=[("c1", "helper", {"request": "x"})]),
        Say("boss done"),
        mode="single_turn",
        sub_agents=[helper],
    )
    graph = Workflow(name="wf", edges=[(START, boss)])
    seen = await run(runner(graph), "hi", run_config=AT_ONCE)
    if can("shared_actions"):
        assert seen == [
            "-| RUN",
            "-| + e1:wf@1/boss@1 boss (single_turn) by no call",
            "e1:wf@1/boss@1| calls c1 helper in m1",
            'e1:wf@1/boss@1| c1 {"request": "x"}',
            "e1:wf@1/boss@1| called c1",
            "e1:wf@1/boss@1| + c1 helper (single_turn) by c1",
            "c1| says m2",
            "c1| m2 'helped'",
            "c1| said m2",
            "c1| .",
            "e1:wf@1/boss@1| c1 -> 'helped'",
            "e1:wf@1/boss@1| says m3",
            "e1:wf@1/boss@1| m3 'boss done'",
            "e1:wf@1/boss@1| said m3",
            "e1:wf@1/boss@1| .",
            "-| RUN SUCCESS",
        ]
    else:  # ADK loses the call from the node's history
        assert seen == [
            "-| RUN",
            "-| + e1:wf@1/boss@1 boss (single_turn) by no call",
            "e1:wf@1/boss@1| calls c1 helper in m1",
            'e1:wf@1/boss@1| c1 {"request": "x"}',
            "e1:wf@1/boss@1| called c1",
            "e1:wf@1/boss@1| + c1 helper (single_turn) by c1",
            "c1| says m2",
            "c1| m2 'helped'",
            "c1| said m2",
            "c1| .",
            "e1:wf@1/boss@1| c1 -> 'helped'",
            "e1:wf@1/boss@1| ! ValueError: No function call event found for function responses ids: {'c1'}",
            "-| RUN ERROR ValueError: No function call event found for function responses ids: {'c1'}",
        ]


async def test_what_a_sequential_root_cannot_run_is_told_as_it_is():
    """ADK cannot run a single_turn agent under such a root: it begins, fails, and its call gets the error."""
    boss = agent(
        "boss",
        Say(calls=[("c1", "helper", {"request": "x"})]),
        Say("boss done"),
        sub_agents=[agent("helper", Say("helped"), mode="single_turn")],
    )
    root = SequentialAgent(name="seq", sub_agents=[boss, agent("z", Say("Z says"))])
    assert await run(runner(root), "hi", run_config=AT_ONCE) == [
        "-| RUN",
        "-| + e1:boss#1 boss (workflow_agent) by no call",
        "e1:boss#1| calls c1 helper in m1",
        'e1:boss#1| c1 {"request": "x"}',
        "e1:boss#1| called c1",
        "e1:boss#1| + c1 helper (single_turn) by c1",
        "c1| ! None: _enqueue_event called but _event_queue is not set. Ensure the Runner initialises _event_queue on InvocationContext.",
        "e1:boss#1| c1 -> 'Error running sub-agent: _enqueue_event called but _event_queue is not set. Ensure the Runner initialises _event_queue on InvocationContext.'",
        "e1:boss#1| says m2",
        "e1:boss#1| m2 'boss done'",
        "e1:boss#1| said m2",
        "e1:boss#1| .",
        "-| + e1:z#1 z (workflow_agent) by no call",
        "e1:z#1| says m3",
        "e1:z#1| m3 'Z says'",
        "e1:z#1| said m3",
        "e1:z#1| .",
        "-| RUN SUCCESS",
    ]


async def test_a_task_call_under_a_sequential_root_is_never_answered():
    clerk = agent("clerk", Say("hm"), mode="task")
    turns = iter([Say(calls=[("c2", "clerk", {"request": "x"})]), Say("teller done")])
    teller = agent("teller", sub_agents=[clerk])
    teller.model = ScriptedLlm(script=lambda _request: next(turns), requests=[])
    root = SequentialAgent(name="seq", sub_agents=[teller, agent("z", Say("Z says"))])
    assert await run(runner(root), "hi", run_config=AT_ONCE) == [
        "-| RUN",
        "-| + e1:teller#1 teller (workflow_agent) by no call",
        "e1:teller#1| calls c2 clerk in m1",
        'e1:teller#1| c2 {"request": "x"}',
        "e1:teller#1| called c2",
        "e1:teller#1| says m2",
        "e1:teller#1| m2 'teller done'",
        "e1:teller#1| said m2",
        "e1:teller#1| .",
        "-| + e1:z#1 z (workflow_agent) by no call",
        "e1:z#1| says m3",
        "e1:z#1| m3 'Z says'",
        "e1:z#1| said m3",
        "e1:z#1| .",
        "-| RUN SUCCESS pending c2",
    ]


async def test_a_task_in_a_sequence_is_run_as_if_it_were_none():
    """ADK's `finish_task` ends nothing there: the agent goes on, and so does the sequence."""
    clerk = agent("clerk", Say(calls=[("f1", "finish_task", {"result": "r"})]), Say("and so on"), mode="task")
    root = SequentialAgent(name="seq", sub_agents=[clerk, agent("z", Say("Z says"))])
    assert await run(runner(root), "hi", run_config=AT_ONCE) == [
        "-| RUN",
        "-| + e1:clerk#1 clerk (workflow_agent) by no call",
        "e1:clerk#1| says m1",
        "e1:clerk#1| m1 'and so on'",
        "e1:clerk#1| said m1",
        "e1:clerk#1| .",
        "-| + e1:z#1 z (workflow_agent) by no call",
        "e1:z#1| says m2",
        "e1:z#1| m2 'Z says'",
        "e1:z#1| said m2",
        "e1:z#1| .",
        "-| RUN SUCCESS",
    ]


def nested():
    """A workflow with a workflow among its nodes, which has one among its own."""
    inmost = Workflow(name="inmost", edges=[(START, agent("b", Say("B")), node(shout))])
    inner = Workflow(name="inner", edges=[(START, agent("a", Say("A")), inmost)])
    return Workflow(name="outer", edges=[(START, inner, agent("last", Say("last")))])


def shout(node_input):
    return str(node_input) + "!"


async def test_a_workflow_among_the_nodes_of_a_workflow():
    """It is over with the node that gave its output, which may be a function that nobody hears."""
    assert await run(runner(nested()), "hi", run_config=AT_ONCE) == [
        "-| RUN",
        "-| + e1:outer@1/inner@1 inner (workflow) by no call",
        "e1:outer@1/inner@1| + e1:outer@1/inner@1/a@1 a (single_turn) by no call",
        "e1:outer@1/inner@1/a@1| says m1",
        "e1:outer@1/inner@1/a@1| m1 'A'",
        "e1:outer@1/inner@1/a@1| said m1",
        "e1:outer@1/inner@1/a@1| .",
        "e1:outer@1/inner@1| + e1:outer@1/inner@1/inmost@1 inmost (workflow) by no call",
        "e1:outer@1/inner@1/inmost@1| + e1:outer@1/inner@1/inmost@1/b@1 b (single_turn) by no call",
        "e1:outer@1/inner@1/inmost@1/b@1| says m2",
        "e1:outer@1/inner@1/inmost@1/b@1| m2 'B'",
        "e1:outer@1/inner@1/inmost@1/b@1| said m2",
        "e1:outer@1/inner@1/inmost@1/b@1| .",
        'e1:outer@1/inner@1/inmost@1| . "B!"',
        "e1:outer@1/inner@1| .",
        "-| + e1:outer@1/last@1 last (single_turn) by no call",
        "e1:outer@1/last@1| says m3",
        "e1:outer@1/last@1| m3 'last'",
        "e1:outer@1/last@1| said m3",
        "e1:outer@1/last@1| .",
        "-| RUN SUCCESS",
    ]


async def test_a_workflow_in_a_workflow_whose_node_fails():
    inner = Workflow(name="inner", edges=[(START, agent("a", Say("A tries", fails=RuntimeError("A broke"))))])
    outer = Workflow(name="outer", edges=[(START, inner, agent("last", Say("last")))])
    assert await run(runner(outer), "hi", run_config=AT_ONCE) == [
        "-| RUN",
        "-| + e1:outer@1/inner@1 inner (workflow) by no call",
        "e1:outer@1/inner@1| + e1:outer@1/inner@1/a@1 a (single_turn) by no call",
        "e1:outer@1/inner@1/a@1| ! RuntimeError: A broke",
        "e1:outer@1/inner@1| ! cancelled: cut off because the run failed",
        "-| RUN ERROR RuntimeError: A broke",
    ]


async def test_a_workflow_in_a_workflow_from_the_session():
    found = attribute(runner(nested()), run_config=AT_ONCE)
    await collect(found.run(user("hi")))
    history = await found.history("t")
    names = {one.id: one.name for one in history.ledger.invocations}
    assert [(one.name, names.get(one.parent), one.status) for one in history.ledger.invocations] == [
        ("inner", None, "finished"),
        ("a", "inner", "finished"),
        ("inmost", "inner", "finished"),
        ("b", "inmost", "finished"),
        ("last", None, "finished"),
    ]
