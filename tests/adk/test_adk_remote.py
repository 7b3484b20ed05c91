"""Agents elsewhere: a `RemoteA2aAgent` here, and over loopback a real A2A server that another ADK app runs."""

import gc

import pytest
from adk_kit import agent, answer, ask, attribute, can, collect, runner, user
from byline_adk.scripted import Say
from google.adk.tools import AgentTool, LongRunningFunctionTool
from google.adk.workflow import START, Workflow

a2a = pytest.importorskip(
    "a2a_kit", reason="an A2A server is needed: pip install 'google-adk[a2a]' 'a2a-sdk[http-server]' uvicorn"
)

# The A2A server leaves connections of its streams to the garbage collector.
pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")]


@pytest.fixture(autouse=True)
def _collect_what_the_server_leaves():
    yield
    gc.collect()


def look(q: str) -> str:
    """Look something up."""
    return f"found {q}"


def ask_human(q: str):
    """Ask a human."""
    return


def expert(**options):
    return agent(
        "expert",
        Say("I look it up", calls=[("f1", "look", {"q": "x"})], thought="hmm well"),
        Say("it is x", thought="so then"),
        tools=[look],
        **options,
    )


def transfers_to(child):
    call = ("t1", "transfer_to_agent", {"agent_name": child.name})
    return agent("root", Say(calls=[call]), Say("root again"), sub_agents=[child])


async def test_a_transfer_and_back_to_the_root():
    """What it says is told once: ADK has it as a thought, from the status, and once more from the artifact."""
    async with a2a.served(expert()) as remote:
        assert await ask(runner(transfers_to(remote())), "hi", "more") == [
            "-| RUN",
            "-| calls t1 transfer_to_agent in m1",
            '-| t1 {"agent_name": "expert"}',
            "-| called t1",
            "-| t1 -> 'transferred to expert'",
            "-| + t1 expert (remote) by t1",
            "t1| thinks m2:reasoning",
            "t1| thought m2:reasoning",
            "t1| m2:reasoning 'hmm well'",
            "t1| thought m2:reasoning over",
            "t1| thinks m2:reasoning over",
            "t1| says m2",
            "t1| m2 'I look it up'",
            "t1| said m2",
            "t1| calls f1 look in m2",
            't1| f1 {"q": "x"}',
            "t1| called f1",
            "t1| f1 -> 'found x'",
            "t1| thinks m3:reasoning",
            "t1| thought m3:reasoning",
            "t1| m3:reasoning 'so then'",
            "t1| thought m3:reasoning over",
            "t1| thinks m3:reasoning over",
            "t1| says m3",
            "t1| m3 'it is x'",
            "t1| said m3",
            "t1| .",
            "-| RUN SUCCESS",
            "-| RUN",
            "-| says m4",
            "-| m4 'root '",
            "-| m4 'again'",
            "-| said m4",
            "-| RUN SUCCESS",
        ]


async def test_which_a2a_task_it_is():
    async with a2a.served(expert()) as remote:
        found = runner(transfers_to(remote()))
        events = await collect(attribute(found).run(user("hi")))
        session = await found.session_service.get_session(app_name="team", user_id="user", session_id="t")
    started = next(event for event in events if event.type.value == "SUBAGENT_STARTED")
    stored = session.events[-1]
    assert started.metadata == {
        "byline": {
            "framework": "adk",
            "mode": "remote",
            "invocationId": stored.invocation_id,
            "a2a": {
                "taskId": stored.custom_metadata["a2a:task_id"],
                "contextId": stored.custom_metadata["a2a:context_id"],
            },
        }
    }


async def test_a_peer_that_streams():
    async with a2a.served(expert(), streams=True) as remote:
        assert await ask(runner(transfers_to(remote())), "hi") == [
            "-| RUN",
            "-| calls t1 transfer_to_agent in m1",
            '-| t1 {"agent_name": "expert"}',
            "-| called t1",
            "-| t1 -> 'transferred to expert'",
            "-| + t1 expert (remote) by t1",
            "t1| thinks m2:reasoning",
            "t1| thought m2:reasoning",
            "t1| m2:reasoning 'hmm '",
            "t1| m2:reasoning 'well'",
            "t1| thought m2:reasoning over",
            "t1| thinks m2:reasoning over",
            "t1| says m2",
            "t1| m2 'I '",
            "t1| m2 'look '",
            "t1| m2 'it '",
            "t1| m2 'up'",
            "t1| said m2",
            "t1| calls f1 look in m2",
            't1| f1 {"q": "x"}',
            "t1| called f1",
            "t1| f1 -> 'found x'",
            "t1| thinks m3:reasoning",
            "t1| thought m3:reasoning",
            "t1| m3:reasoning 'so '",
            "t1| m3:reasoning 'then'",
            "t1| thought m3:reasoning over",
            "t1| thinks m3:reasoning over",
            "t1| says m3",
            "t1| m3 'it '",
            "t1| m3 'is '",
            "t1| m3 'x'",
            "t1| said m3",
            "t1| .",
            "-| RUN SUCCESS",
        ]


async def test_as_a_tool_with_the_extension():
    """With it, answers are artifacts that come in pieces and whole, under one event id."""
    async with a2a.served(expert(), streams=True) as remote:
        root = agent(
            "root",
            Say(calls=[("c1", "expert", {"request": "x"})]),
            Say("done"),
            tools=[AgentTool(remote(use_legacy=False))],
        )
        assert await ask(runner(root), "hi") == [
            "-| RUN",
            "-| calls c1 expert in m1",
            '-| c1 {"request": "x"}',
            "-| called c1",
            "-| + c1 expert (agent_tool) by c1",
            "c1| thinks m2:reasoning",
            "c1| thought m2:reasoning",
            "c1| m2:reasoning 'hmm '",
            "c1| m2:reasoning 'well'",
            "c1| thought m2:reasoning over",
            "c1| thinks m2:reasoning over",
            "c1| says m2",
            "c1| m2 'I '",
            "c1| m2 'look '",
            "c1| m2 'it '",
            "c1| m2 'up'",
            "c1| said m2",
            "c1| calls f1 look in m2",
            'c1| f1 {"q": "x"}',
            "c1| called f1",
            "c1| f1 -> 'found x'",
            "c1| thinks m3:reasoning",
            "c1| thought m3:reasoning",
            "c1| m3:reasoning 'so '",
            "c1| m3:reasoning 'then'",
            "c1| thought m3:reasoning over",
            "c1| thinks m3:reasoning over",
            "c1| says m3",
            "c1| m3 'it '",
            "c1| m3 'is '",
            "c1| m3 'x'",
            "c1| said m3",
            "c1| .",
            "-| c1 -> 'it is x'",
            "-| says m4",
            "-| m4 'done'",
            "-| said m4",
            "-| RUN SUCCESS",
        ]


async def test_as_a_node_of_a_workflow():
    async with a2a.served(expert()) as remote:
        flow = Workflow(name="flow", edges=[(START, remote(), agent("closer", Say("that was it")))])
        assert await ask(runner(flow), "hi") == [
            "-| RUN",
            "-| + e1:flow@1/expert@1 expert (remote) by no call",
            "e1:flow@1/expert@1| thinks m1:reasoning",
            "e1:flow@1/expert@1| thought m1:reasoning",
            "e1:flow@1/expert@1| m1:reasoning 'hmm well'",
            "e1:flow@1/expert@1| thought m1:reasoning over",
            "e1:flow@1/expert@1| thinks m1:reasoning over",
            "e1:flow@1/expert@1| says m1",
            "e1:flow@1/expert@1| m1 'I look it up'",
            "e1:flow@1/expert@1| said m1",
            "e1:flow@1/expert@1| calls f1 look in m1",
            'e1:flow@1/expert@1| f1 {"q": "x"}',
            "e1:flow@1/expert@1| called f1",
            "e1:flow@1/expert@1| f1 -> 'found x'",
            "e1:flow@1/expert@1| thinks m2:reasoning",
            "e1:flow@1/expert@1| thought m2:reasoning",
            "e1:flow@1/expert@1| m2:reasoning 'so then'",
            "e1:flow@1/expert@1| thought m2:reasoning over",
            "e1:flow@1/expert@1| thinks m2:reasoning over",
            "e1:flow@1/expert@1| says m2",
            "e1:flow@1/expert@1| m2 'it is x'",
            "e1:flow@1/expert@1| said m2",
            "e1:flow@1/expert@1| .",
            "-| + e1:flow@1/closer@1 closer (single_turn) by no call",
            "e1:flow@1/closer@1| says m3",
            "e1:flow@1/closer@1| m3 'that '",
            "e1:flow@1/closer@1| m3 'was '",
            "e1:flow@1/closer@1| m3 'it'",
            "e1:flow@1/closer@1| said m3",
            "e1:flow@1/closer@1| .",
            "-| RUN SUCCESS",
        ]


async def test_a_question_of_the_peers_agent():
    asks = agent(
        "expert",
        Say("I ask", calls=[("h1", "ask_human", {"q": "x"})]),
        Say("thanks"),
        tools=[LongRunningFunctionTool(ask_human)],
    )
    async with a2a.served(asks) as remote:
        seen = await ask(runner(transfers_to(remote())), "hi", lambda _: answer(("h1", "yes")))
    assert seen == [
        "-| RUN",
        "-| calls t1 transfer_to_agent in m1",
        '-| t1 {"agent_name": "expert"}',
        "-| called t1",
        "-| t1 -> 'transferred to expert'",
        "-| + t1 expert (remote) by t1",
        "t1| says m2",
        "t1| m2 'I ask'",
        "t1| said m2",
        "t1| calls h1 ask_human in m2",
        't1| h1 {"q": "x"}',
        "t1| called h1",
        "t1| ~ h1",
        "-| RUN ASKS t1 tool_call h1 call=h1",
        "-| RUN",
        "-| + t1 expert (remote) by t1",
        "t1| h1 -> 'yes'",
        *(["t1| says m3", "t1| m3 'thanks'", "t1| said m3"] if can("remote_resume") else []),
        "t1| .",
        "-| RUN SUCCESS",
    ]


async def test_an_agent_that_fails_elsewhere():
    breaks = agent(
        "expert",
        Say("I look", calls=[("f1", "look", {"q": "x"})]),
        Say(fails=RuntimeError("boom")),
        tools=[look],
    )
    async with a2a.served(breaks) as remote:
        assert await ask(runner(transfers_to(remote())), "hi") == [
            "-| RUN",
            "-| calls t1 transfer_to_agent in m1",
            '-| t1 {"agent_name": "expert"}',
            "-| called t1",
            "-| t1 -> 'transferred to expert'",
            "-| + t1 expert (remote) by t1",
            "t1| says m2",
            "t1| m2 'I look'",
            "t1| said m2",
            "t1| calls f1 look in m2",
            't1| f1 {"q": "x"}',
            "t1| called f1",
            "t1| f1 -> 'found x'",
            "t1| ! RuntimeError: boom",
            "-| RUN SUCCESS",
        ]


async def test_nobody_there():
    child = a2a.RemoteA2aAgent(name="expert", description="knows", agent_card="http://127.0.0.1:1/card.json")
    seen = await ask(runner(transfers_to(child)), "hi")
    await child.cleanup()
    seen[6] = f"{seen[6][:49]} ..."  # the rest is the network's own words
    assert seen == [
        "-| RUN",
        "-| calls t1 transfer_to_agent in m1",
        '-| t1 {"agent_name": "expert"}',
        "-| called t1",
        "-| t1 -> 'transferred to expert'",
        "-| + t1 expert (remote) by t1",
        "t1| ! None: Failed to initialize remote A2A agent ...",
        "-| RUN SUCCESS",
    ]


async def test_a_peer_that_is_no_adk():
    def in_seoul(events):
        return answer((events[-1].outcome.interrupts[0].id, "Seoul"))

    async with a2a.served(expert(), executor=lambda _: a2a.Guide()) as remote:
        seen = await ask(runner(transfers_to(remote())), "hi", in_seoul)
    assert seen[:14] == [
        "-| RUN",
        "-| calls t1 transfer_to_agent in m1",
        '-| t1 {"agent_name": "expert"}',
        "-| called t1",
        "-| t1 -> 'transferred to expert'",
        "-| + t1 expert (remote) by t1",
        "t1| thinks m2:reasoning",
        "t1| thought m2:reasoning",
        "t1| m2:reasoning 'searching'",
        "t1| thought m2:reasoning over",
        "t1| thinks m2:reasoning over",
        "t1| ~ m3",
        "-| RUN ASKS t1 input_required m3 'Which city?'",
        "-| RUN",
    ]
    if can("remote_resume"):
        assert seen[14:] == [
            "-| + t1 expert (remote) by t1",
            "t1| thinks m4:reasoning",
            "t1| thought m4:reasoning",
            "t1| m4:reasoning 'searching'",
            "t1| thought m4:reasoning over",
            "t1| thinks m4:reasoning over",
            "t1| says m5",
            "t1| m5 'the palace'",
            "t1| said m5",
            "t1| .",
            "-| RUN SUCCESS",
        ]
    else:  # the answer goes to the root, which has no answer to it
        assert seen[14:] == ["-| RUN SUCCESS"]


@pytest.mark.parametrize("legacy", [True, False], ids=["plain", "extension"])
async def test_a_task_elsewhere(legacy):
    """It asks in plain text, goes on with the user's next words, and its result is that of the call."""
    if "mode" not in a2a.RemoteA2aAgent.model_fields:
        pytest.skip("a remote agent has no mode in this google-adk")
    done = Say("ok", calls=[("f1", "finish_task", {"result": "booked"})])
    async with a2a.served(agent("expert", Say("Which city?"), done, mode="task")) as remote:
        call = ("c1", "expert", {"request": "x"})
        child = remote(mode="task", use_legacy=legacy)
        root = agent("root", Say(calls=[call]), Say("done"), sub_agents=[child])
        assert await ask(runner(root), "hi", "Seoul") == [
            "-| RUN",
            "-| calls c1 expert in m1",
            '-| c1 {"request": "x"}',
            "-| called c1",
            "-| + c1 expert (task) by c1",
            "c1| says m2",
            "c1| m2 'Which city?'",
            "c1| said m2",
            "c1| ~",
            "-| RUN SUCCESS pending c1",
            "-| RUN",
            "-| + c1 expert (task) by c1",
            "c1| says m3",
            "c1| m3 'ok'",
            "c1| said m3",
            'c1| . {"result": "booked"}',
            "-| c1 -> 'booked'",
            "-| says m4",
            "-| m4 'done'",
            "-| said m4",
            "-| RUN SUCCESS",
        ]
