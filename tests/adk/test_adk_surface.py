"""What a user does with it: targets, options, bad input, and what must not change in the app."""

import asyncio
import base64
import json
import subprocess
import sys

import pytest
from adk_kit import AT_ONCE, SSE, agent, attribute, can, collect, judge, llm, run, runner, show, user
from byline import record
from byline.errors import InputError, NoAdapterError, UnsupportedVersionError
from byline_adk import BylinePlugin, _compat
from byline_adk.scripted import Say, ScriptedLlm, last_text
from google.adk.agents import LlmAgent
from google.adk.apps.app import App
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import AgentTool, FunctionTool
from google.adk.workflow import START, Workflow
from google.genai import types

pytestmark = pytest.mark.anyio

HELLO = ["-| RUN", "-| says m1", "-| m1 'hello'", "-| said m1", "-| RUN SUCCESS"]


def said(text):
    return types.Content(role="user", parts=[types.Part(text=text)])


def hello():
    return agent("root", Say("hello"))


@pytest.mark.parametrize(
    "target",
    [
        lambda: runner(hello()),
        lambda: App(name="team", root_agent=hello()),
        hello,
    ],
    ids=["runner", "app", "agent"],
)
async def test_targets(target):
    assert await run(target(), "hi") == HELLO


async def test_a_workflow_is_a_target():
    graph = Workflow(name="wf", edges=[(START, agent("a", Say("A says")))])
    assert await run(graph, "hi", run_config=AT_ONCE) == [
        "-| RUN",
        "-| + e1:wf@1/a@1 a (single_turn) by no call",
        "e1:wf@1/a@1| says m1",
        "e1:wf@1/a@1| m1 'A says'",
        "e1:wf@1/a@1| said m1",
        "e1:wf@1/a@1| .",
        "-| RUN SUCCESS",
    ]


async def test_what_is_nearly_a_target():
    with pytest.raises(NoAdapterError, match="a class was given: attribute an instance of LlmAgent"):
        attribute(LlmAgent)


async def test_the_frameworks_own_arguments():
    target = runner(hello())
    await target.session_service.create_session(app_name="team", user_id="ada", session_id="s")
    one = attribute(target, clock=None).stream(
        user_id="ada", session_id="s", new_message=said("hi"), run_config=SSE
    )
    assert show(await collect(one)) == HELLO
    assert one.thread_id == "s"


async def test_a_session_that_is_not_there():
    target = runner(hello())
    await target.session_service.create_session(app_name="team", user_id="ada", session_id="s")
    one = attribute(target).stream(user_id="eve", session_id="s", new_message=said("hi"))
    with pytest.raises(InputError, match=r"no session 's' of user 'eve' in app 'team'.*create it"):
        await collect(one)


async def test_run_live_is_refused():
    with pytest.raises(InputError, match="run_live is not supported"):
        attribute(hello()).stream(user_id="u", session_id="s", live_request_queue=object())


async def test_whose_sessions():
    target = runner(hello())
    mine = attribute(target, user_id=lambda run_input: run_input.forwarded_props["user"], run_config=AT_ONCE)
    await collect(mine.run(user("hi", forwardedProps={"user": "ada"})))
    assert await target.session_service.get_session(app_name="team", user_id="ada", session_id="t")
    with pytest.raises(InputError, match="user_id gave 7, expected a text"):
        attribute(target, user_id=lambda _: 7).run(user("hi"))


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ({"state": [1]}, "state is list, expected an object"),
        ({"messages": []}, "nothing to send"),
        (
            {
                "messages": [
                    {
                        "id": "u",
                        "role": "user",
                        "content": [
                            {
                                "type": "image",
                                "source": {"type": "data", "value": "*", "mimeType": "image/png"},
                            }
                        ],
                    }
                ]
            },
            "the data of part 'image' is not base64",
        ),
    ],
)
async def test_bad_input_is_refused_before_the_app_is_called(more, match):
    root = hello()
    with pytest.raises(InputError, match=match):
        await collect(
            attribute(root).run(
                user("hi", **more) if "messages" not in more else {"threadId": "t", "runId": "r", **more}
            )
        )
    assert root.model.requests == []


async def test_an_unsupported_version(monkeypatch):
    monkeypatch.setattr(_compat, "version", lambda _name: "2.5.1")
    with pytest.raises(
        UnsupportedVersionError, match=r"google-adk 2\.5\.1 is installed, byline supports 2\.6"
    ):
        attribute(hello())


def test_the_table_of_capabilities(monkeypatch):
    monkeypatch.setattr(_compat, "version", lambda _name: "2.10.0")
    assert {name: _compat.can(name) for name in _compat.CAPABILITIES} == {
        "mixed_turn": True,
        "task_root": True,
        "shared_actions": True,
        "node_path": True,
        "abort": False,
        "nested_task": False,
        "remote_resume": False,
        "approval": False,
    }


def test_nobody_pays_for_adk_who_does_not_use_it():
    code = (
        "import sys, byline, byline_adk._plugin; byline.hooks.Plugins(); print('google.adk' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


async def test_the_contract_of_the_agent_that_ran():
    booker = agent("booker", Say(calls=[("f1", "finish_task", {"result": "x"})]), mode="task")
    checker = agent("checker", Say("sunny"), mode="single_turn")
    helper = agent("helper", Say("hello"))
    tool = agent("tool", Say("I am a tool"))
    turns = iter(
        [
            Say(calls=[("c1", "booker", {"request": "x"})]),
            Say(calls=[("c2", "checker", {"request": "x"})]),
            Say(calls=[("c3", "tool", {"request": "x"})]),
            Say(calls=[("c4", "transfer_to_agent", {"agent_name": "helper"})]),
        ]
    )
    root = agent("root", sub_agents=[booker, checker, helper], tools=[AgentTool(tool)])
    root.model = ScriptedLlm(script=lambda _request: next(turns), requests=[])
    events = await collect(attribute(runner(root), run_config=AT_ONCE).run(user("hi")))
    started = [event for event in events if event.type.value == "SUBAGENT_STARTED"]
    found = {event.name: dict(event.metadata["byline"]) for event in started}
    for known in found.values():
        assert known.pop("invocationId").startswith("e-")
    leaf = {} if can("nested_task") else {"leaf": True}
    assert found == {
        "booker": {
            "framework": "adk",
            "mode": "task",
            "context": "isolated",
            "interaction": "clarify",
            "approvals": True,
            "returns": "automatic",
            "concurrency": "serial",
            **leaf,
        },
        "checker": {
            "framework": "adk",
            "mode": "single_turn",
            "context": "isolated",
            "interaction": "none",
            **({"approvals": True} if can("approval") else {}),
            "returns": "automatic",
            "concurrency": "parallel",
        },
        "tool": {
            "framework": "adk",
            "mode": "agent_tool",
            "context": "isolated",
            "interaction": "none",
            "approvals": False,
            "returns": "automatic",
            "concurrency": "parallel",
        },
        "helper": {
            "framework": "adk",
            "mode": "chat",
            "context": "shared",
            "interaction": "full",
            "approvals": True,
            "returns": "manual",
            "concurrency": "serial",
        },
    }
    assert started[0].description == "does booker"


CLIENT_TOOL = {
    "name": "pick_color",
    "description": "Let the user pick.",
    "parameters": {"type": "object", "properties": {"of": {"type": "string"}}},
}


async def test_the_clients_own_tools():
    """Offered to the root; called, the run succeeds with the call pending; the client's next run answers it."""
    root = agent("root", Say(calls=[("k1", "pick_color", {"of": "the car"})]), Say("red it is"))
    target = attribute(runner(root), clock=None, run_config=AT_ONCE)
    first = await collect(target.run(user("hi", tools=[CLIENT_TOOL])))
    call = {"id": "k1", "type": "function", "function": {"name": "pick_color", "arguments": "{}"}}
    messages = [
        {"id": "u1", "role": "user", "content": "hi"},
        {"id": "a1", "role": "assistant", "toolCalls": [call]},
        {"id": "r1", "role": "tool", "toolCallId": "k1", "content": "red"},
    ]
    second = await collect(
        target.run({"threadId": "t", "runId": "r2", "messages": messages, "tools": [CLIENT_TOOL]})
    )
    assert show(first + second) == [
        "-| RUN",
        "-| calls k1 pick_color in m1",
        '-| k1 {"of": "the car"}',
        "-| called k1",
        "-| RUN SUCCESS pending k1",
        "-| RUN",
        "-| says m2",
        "-| m2 'red it is'",
        "-| said m2",
        "-| RUN SUCCESS",
    ]
    answered = root.model.requests[-1].contents[-1].parts[0].function_response
    assert (answered.name, answered.response) == ("pick_color", {"result": "red"})
    assert root.tools == []


async def test_images_and_files():
    root = hello()
    png = base64.b64encode(b"png").decode()
    parts = [
        {"type": "text", "text": "what is this?"},
        {"type": "image", "source": {"type": "data", "value": png, "mimeType": "image/png"}},
        {
            "type": "document",
            "source": {"type": "url", "value": "https://example.org/a.pdf", "mimeType": "application/pdf"},
        },
    ]
    message = {"id": "u1", "role": "user", "content": parts}
    await collect(attribute(root).run({"threadId": "t", "runId": "r", "messages": [message]}))
    sent = root.model.requests[0].contents[0].parts
    assert sent[0].text == "what is this?"
    assert (sent[1].inline_data.data, sent[1].inline_data.mime_type) == (b"png", "image/png")
    assert (sent[2].file_data.file_uri, sent[2].file_data.mime_type) == (
        "https://example.org/a.pdf",
        "application/pdf",
    )


@pytest.mark.parametrize("inside", [False, True], ids=["own tool", "inside an AgentTool"])
async def test_no_tool_runs_before_the_consumer_saw_its_call(inside):
    ran = []

    def look(q: str) -> str:
        """Look."""
        ran.append(q)
        return "seen"

    worker = agent("worker", Say(calls=[("k1", "look", {"q": "x"})]), Say("done"), tools=[FunctionTool(look)])
    root = (
        agent("root", Say(calls=[("c1", "worker", {"request": "x"})]), Say("fine"), tools=[AgentTool(worker)])
        if inside
        else worker
    )
    one = attribute(runner(root)).run(user("hi"))
    async for event in one:
        if event.type.value == "TOOL_CALL_END" and event.tool_call_id == "k1":
            await asyncio.sleep(0.05)
            assert ran == []
            break
    await asyncio.sleep(0.05)
    assert ran == []


def echoing():
    """A team whose members say whose thread they are in."""

    def speak(request):
        return Say(f"for {last_text(request)}", pause=0.001)

    def lead(request):
        if any(part.function_response for content in request.contents for part in content.parts or ()):
            return Say("done")
        text = last_text(request)
        return Say(calls=[("c1", "a", {"request": text}), ("c2", "b", {"request": text})], pause=0.001)

    inner = agent("b")
    inner.model = ScriptedLlm(script=speak, requests=[])
    child = agent("a", mode="single_turn")
    child.model = ScriptedLlm(script=speak, requests=[])
    root = agent("root", sub_agents=[child], tools=[AgentTool(inner)])
    root.model = ScriptedLlm(script=lead, requests=[])
    return runner(root)


async def test_twenty_runs_at_once_never_mix():
    target = attribute(echoing())

    async def one(number):
        events = await collect(
            target.run(user(f"thread-{number}").model_copy(update={"thread_id": f"t{number}"}))
        )
        texts = {}
        for event in events:
            if event.type.value == "TEXT_MESSAGE_CONTENT":
                texts[event.subagent_run_id] = texts.get(event.subagent_run_id, "") + event.delta
        return texts

    found = await asyncio.gather(*(one(number) for number in range(20)))
    assert found == [{"c1": f"for thread-{n}", "c2": f"for thread-{n}", None: "done"} for n in range(20)]


def team():
    def remember(tool_context):
        """Write state."""
        tool_context.state["k"] = 1
        return "ok"

    from google.adk.tools.tool_context import ToolContext

    remember.__annotations__["tool_context"] = ToolContext
    booker = agent(
        "booker", Say("Which city?"), Say(calls=[("f1", "finish_task", {"result": "x"})]), mode="task"
    )
    checker = agent("checker", Say("sunny", thought="hm"), mode="single_turn", output_key="weather")
    tool = agent(
        "tool", Say(calls=[("k1", "remember", {})]), Say("I am a tool"), tools=[FunctionTool(remember)]
    )
    helper = agent("helper", Say("hello"))
    turns = iter(
        [
            Say("first", calls=[("c2", "checker", {"request": "x"})], usage=(3, 4)),
            Say("second", calls=[("c3", "tool", {"request": "x"})], usage=(3, 4)),
            Say(calls=[("c1", "booker", {"request": "x"})]),
            Say(calls=[("c4", "transfer_to_agent", {"agent_name": "helper"})]),
            Say("the root again"),  # before 2.7 the words after a task go to the root
        ]
    )
    root = agent("root", sub_agents=[booker, checker, helper], tools=[AgentTool(tool)])
    root.model = ScriptedLlm(script=lambda _request: next(turns), requests=[])
    return runner(root)


async def stored(target):
    session = await target.session_service.get_session(app_name="team", user_id="u", session_id="s")
    names = {}

    def name(value):
        return names.setdefault(value, f"#{len(names)}")

    out = []
    for event in session.events:
        dumped = event.model_dump(mode="json", exclude={"timestamp"})
        dumped["id"], dumped["invocation_id"] = name(dumped["id"]), name(dumped["invocation_id"])
        out.append(dumped)
    return out, session.state


@pytest.mark.parametrize("config", [AT_ONCE, SSE], ids=["at once", "sse"])
async def test_the_stored_session_is_the_same_with_and_without(config):
    plain, watched = team(), team()
    for target in (plain, watched):
        await target.session_service.create_session(app_name="team", user_id="u", session_id="s")
    for text in ("hi", "Seoul", "more"):
        async for _ in plain.run_async(
            user_id="u", session_id="s", new_message=said(text), run_config=config
        ):
            pass
        await collect(
            attribute(watched).stream(user_id="u", session_id="s", new_message=said(text), run_config=config)
        )
    assert await stored(watched) == await stored(plain)
    assert [type(plugin).__name__ for plugin in watched.plugin_manager.plugins] == ["Observer"]


async def test_a_plugin_of_the_apps_own_stays_in_place():
    class Own(BasePlugin):
        pass

    target = Runner(
        app=App(name="team", root_agent=hello(), plugins=[Own(name="own")]),
        session_service=InMemorySessionService(),
    )
    for _ in range(2):
        await collect(attribute(target).run(user("hi")))
    assert [plugin.name for plugin in target.plugin_manager.plugins] == ["byline", "own"]


async def test_the_plugin_by_hand():
    """The user keeps the loop; the sink gets the stream of every run."""
    seen = []
    booker = agent(
        "booker", Say("Which city?"), Say(calls=[("f1", "finish_task", {"result": "x"})]), mode="task"
    )
    tool = agent("tool", Say("I am a tool"))
    root = agent(
        "root",
        Say(calls=[("c2", "tool", {"request": "x"})]),
        Say(calls=[("c1", "booker", {"request": "x"})]),
        Say("done"),
        sub_agents=[booker],
        tools=[AgentTool(tool)],
    )
    app = App(name="team", root_agent=root, plugins=[BylinePlugin(seen.append, clock=None)])
    target = Runner(app=app, session_service=InMemorySessionService())
    await target.session_service.create_session(app_name="team", user_id="u", session_id="s")
    for text in ("hi", "Seoul"):
        async for _ in target.run_async(user_id="u", session_id="s", new_message=said(text)):
            pass
    judge(seen)
    assert show(seen) == [
        "-| RUN",
        "-| calls c2 tool in m1",
        '-| c2 {"request": "x"}',
        "-| called c2",
        "-| + c2 tool (agent_tool) by c2",
        "c2| says m2",
        "c2| m2 'I am a tool'",
        "c2| said m2",
        "c2| .",
        "-| c2 -> 'I am a tool'",
        "-| calls c1 booker in m3",
        '-| c1 {"request": "x"}',
        "-| called c1",
        "-| + c1 booker (task) by c1",
        "c1| says m4",
        "c1| m4 'Which city?'",
        "c1| said m4",
        "c1| ~",
        "-| RUN SUCCESS pending c1",
        "-| RUN",
        "-| + c1 booker (task) by c1",
        'c1| . {"result": "x"}',
        "-| c1 -> 'x'",
        "-| says m5",
        "-| m5 'done'",
        "-| said m5",
        "-| RUN SUCCESS",
    ]


async def test_the_plugin_by_hand_when_the_run_fails():
    seen = []
    child = agent("a", Say("some words", fails=RuntimeError("model broke")), mode="task")
    root = agent("root", Say(calls=[("c1", "a", {"request": "x"})]), sub_agents=[child])
    app = App(name="team", root_agent=root, plugins=[BylinePlugin(seen.append, clock=None)])
    target = Runner(app=app, session_service=InMemorySessionService())
    await target.session_service.create_session(app_name="team", user_id="u", session_id="s")
    with pytest.raises(RuntimeError, match="model broke"):
        async for _ in target.run_async(user_id="u", session_id="s", new_message=said("hi")):
            pass
    judge(seen)
    assert show(seen)[-3:] == [
        "-| + c1 a (task) by c1",
        "c1| ! RuntimeError: model broke",
        "-| RUN ERROR RuntimeError: model broke",
    ]


async def test_a_task_root_returns_its_result():
    if not can("task_root"):
        pytest.skip("a root may be a task since 2.7")
    root = LlmAgent(
        name="root",
        mode="task",
        model=llm(Say("which?"), Say(calls=[("f1", "finish_task", {"result": "booked"})])),
    )
    target = attribute(runner(root), clock=None, run_config=AT_ONCE)
    first = await collect(target.run(user("hi")))
    one = target.run(user("that one"))
    assert show(first + await collect(one)) == [
        "-| RUN",
        "-| says m1",
        "-| m1 'which?'",
        "-| said m1",
        "-| RUN SUCCESS",
        "-| RUN",
        '-| RUN SUCCESS {"result": "booked"}',
    ]
    assert one.result == {"result": "booked"}


async def test_visibility():
    child = agent("a", Say("A says"), mode="single_turn")
    root = agent("root", Say(calls=[("c1", "a", {"request": "x"})]), Say("done"), sub_agents=[child])
    assert await run(runner(root), "hi", run_config=AT_ONCE, visibility="hidden") == [
        "-| RUN",
        "-| calls c1 a in m1",
        '-| c1 {"request": "x"}',
        "-| called c1",
        "-| c1 -> 'A says'",
        "-| says m2",
        "-| m2 'done'",
        "-| said m2",
        "-| RUN SUCCESS",
    ]


async def test_the_demo():
    from byline_adk._demo import demo

    found = demo()
    target = attribute(found.build(), clock=None, run_config=AT_ONCE)
    run_input = found.first()
    events = []
    while run_input is not None:
        more = await collect(target.run(run_input))
        events += more
        run_input = found.answer(run_input, getattr(more[-1].outcome, "interrupts", None) or [])
    assert show(events) == [
        "-| RUN",
        "-| says m1",
        "-| m1 'First the weather.'",
        "-| said m1",
        "-| calls call_checker weather_checker in m1",
        '-| call_checker {"request": "Lisbon in May"}',
        "-| called call_checker",
        "-| + call_checker weather_checker (single_turn) by call_checker",
        "call_checker| calls call_weather get_weather in m2",
        'call_checker| call_weather {"city": "Lisbon", "month": "May"}',
        "call_checker| called call_weather",
        'call_checker| call_weather -> \'{"city": "Lisbon", "month": "May", "high": 22, "low": 14, "sky": "mostly sunny"}\'',
        "call_checker| says m3",
        "call_checker| m3 'Mostly sunny in May, 14 to 22 degrees: pack a light jacket.'",
        "call_checker| said m3",
        "call_checker| .",
        "-| call_checker -> 'Mostly sunny in May, 14 to 22 degrees: pack a light jacket.'",
        "-| says m4",
        "-| m4 'Now the flight.'",
        "-| said m4",
        "-| calls call_booker flight_booker in m4",
        '-| call_booker {"origin": "ICN", "destination": "LIS", "date": "2027-05-14"}',
        "-| called call_booker",
        "-| + call_booker flight_booker (task) by call_booker",
        "call_booker| calls call_search search_flights in m5",
        'call_booker| call_search {"origin": "ICN", "destination": "LIS", "date": "2027-05-14"}',
        "call_booker| called call_search",
        'call_booker| call_search -> \'{"route": "ICN-LIS", "date": "2027-05-14", "flights": [{"id": "KE 921", "departs": "09:40"}, {"id": "TP 1080", "departs": "21:15"}]}\'',
        "call_booker| says m6",
        "call_booker| m6 'There is one in the morning and one in the evening. Which one, and where do you like to sit?'",
        "call_booker| said m6",
        "call_booker| ~",
        "-| RUN SUCCESS pending call_booker",
        "-| RUN",
        "-| + call_booker flight_booker (task) by call_booker",
        "call_booker| calls call_book book_flight in m7",
        'call_booker| call_book {"flight": "KE 921", "seat": "32A"}',
        "call_booker| called call_book",
        'call_booker| call_book -> \'{"confirmation": "Q7LX2M", "flight": "KE 921", "seat": "32A", "price_eur": 840}\'',
        'call_booker| . {"flight": "KE 921", "seat": "32A", "price_eur": 840}',
        '-| call_booker -> \'{"flight": "KE 921", "seat": "32A", "price_eur": 840}\'',
        "-| says m8",
        "-| m8 'All set: sunny days in Lisbon, and seat 32A on KE 921 in the morning.'",
        "-| said m8",
        "-| RUN SUCCESS",
    ]


async def test_a_recording_of_a_runner(tmp_path):
    """The user keeps the loop; the runner is as it was when the recording is over."""
    child = agent("a", Say("A says"), mode="single_turn")
    target = runner(
        agent("root", Say(calls=[("c1", "a", {"request": "x"})]), Say("done"), sub_agents=[child])
    )
    await target.session_service.create_session(app_name="team", user_id="u", session_id="s")
    path = tmp_path / "run.jsonl"
    with record(path, target):
        async for _ in target.run_async(user_id="u", session_id="s", new_message=said("hi")):
            pass
    assert target.plugin_manager.plugins == []
    kinds = [json.loads(line)["type"] for line in path.read_text().splitlines() if '"type"' in line]
    assert kinds == [
        "RUN_STARTED",
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "SUBAGENT_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "SUBAGENT_FINISHED",
        "TOOL_CALL_RESULT",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]
