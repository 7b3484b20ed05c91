"""What is said: text, thoughts, arguments, state, artifacts, usage."""

import pytest
from adk_kit import AT_ONCE, agent, ask, attribute, collect, run, runner, user
from byline_adk._provider import provider_of
from byline_adk.scripted import Say, ScriptedLlm
from google.adk.agents import LlmAgent
from google.adk.artifacts import InMemoryArtifactService
from google.adk.models.google_llm import Gemini
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools import AgentTool, FunctionTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

pytestmark = pytest.mark.anyio


def look(q: str, n: int = 0) -> str:
    """Look it up."""
    return f"seen {q}"


def remember(tool_context: ToolContext) -> str:
    """Write state."""
    tool_context.state["k"] = 1
    tool_context.state["user:name"] = "Ada"
    tool_context.state["app:a/b"] = [1]
    tool_context.state["temp:scratch"] = 3
    return "remembered"


async def save(tool_context: ToolContext) -> str:
    """Write an artifact."""
    await tool_context.save_artifact("notes.txt", types.Part(text="x"))
    return "saved"


async def test_thoughts_text_and_streamed_arguments():
    said = Say(
        "text here",
        thought="hmm well",
        calls=[("k1", "look", {"q": 'hello "x"', "n": 3})],
        arguments="pieces",
    )
    root = agent("root", said, Say("done"), tools=[FunctionTool(look)])
    assert await run(runner(root), "hi") == [
        "-| RUN",
        "-| thinks m1:reasoning",
        "-| thought m1:reasoning",
        "-| m1:reasoning 'hmm '",
        "-| m1:reasoning 'well'",
        "-| thought m1:reasoning over",
        "-| thinks m1:reasoning over",
        "-| says m1",
        "-| m1 'text '",
        "-| m1 'here'",
        "-| said m1",
        "-| calls k1 look in m1",
        '-| k1 {"q": "hello',
        '-| k1  \\"x\\""',
        '-| k1 , "n": 3',
        "-| k1 }",
        "-| called k1",
        "-| k1 -> 'seen hello \"x\"'",
        "-| says m2",
        "-| m2 'done'",
        "-| said m2",
        "-| RUN SUCCESS",
    ]


async def test_the_same_without_streaming():
    said = Say("text here", thought="hmm well", calls=[("k1", "look", {"q": 'hello "x"', "n": 3})])
    root = agent("root", said, Say("done"), tools=[FunctionTool(look)])
    assert await run(runner(root), "hi", run_config=AT_ONCE) == [
        "-| RUN",
        "-| thinks m1:reasoning",
        "-| thought m1:reasoning",
        "-| m1:reasoning 'hmm well'",
        "-| thought m1:reasoning over",
        "-| thinks m1:reasoning over",
        "-| says m1",
        "-| m1 'text here'",
        "-| said m1",
        "-| calls k1 look in m1",
        '-| k1 {"q": "hello \\"x\\"", "n": 3}',
        "-| called k1",
        "-| k1 -> 'seen hello \"x\"'",
        "-| says m2",
        "-| m2 'done'",
        "-| said m2",
        "-| RUN SUCCESS",
    ]


async def test_thoughts_of_two_at_once_do_not_mix():
    a, b = (agent(name, Say(f"{name} says", thought=f"{name} thinks"), mode="single_turn") for name in "ab")
    root = agent(
        "root",
        Say(calls=[("c1", "a", {"request": "x"}), ("c2", "b", {"request": "y"})]),
        Say("done"),
        sub_agents=[a, b],
    )
    assert await run(runner(root), "hi") == [
        "-| RUN",
        "-| calls c1 a in m1",
        '-| c1 {"request": "x"}',
        "-| calls c2 b in m1",
        '-| c2 {"request": "y"}',
        "-| called c1",
        "-| called c2",
        "-| + c1 a (single_turn) by c1",
        "-| + c2 b (single_turn) by c2",
        "c1| thinks m2:reasoning",
        "c1| thought m2:reasoning",
        "c1| m2:reasoning 'a '",
        "c2| thinks m3:reasoning",
        "c2| thought m3:reasoning",
        "c2| m3:reasoning 'b '",
        "c1| m2:reasoning 'thinks'",
        "c2| m3:reasoning 'thinks'",
        "c1| thought m2:reasoning over",
        "c1| thinks m2:reasoning over",
        "c1| says m2",
        "c1| m2 'a '",
        "c2| thought m3:reasoning over",
        "c2| thinks m3:reasoning over",
        "c2| says m3",
        "c2| m3 'b '",
        "c1| m2 'says'",
        "c1| said m2",
        "c2| m3 'says'",
        "c2| said m3",
        "c1| .",
        "c2| .",
        "-| c1 -> 'a says'",
        "-| c2 -> 'b says'",
        "-| says m4",
        "-| m4 'done'",
        "-| said m4",
        "-| RUN SUCCESS",
    ]


async def test_a_model_that_never_repeats_what_it_streamed():
    """Without an aggregate: a node's last words come after its callbacks, and still under its name."""
    child = agent("a", Say("A says this", aggregate=False), mode="single_turn")
    root = agent("root", Say(calls=[("c1", "a", {"request": "x"})]), Say("done"), sub_agents=[child])
    assert await run(runner(root), "hi") == [
        "-| RUN",
        "-| calls c1 a in m1",
        '-| c1 {"request": "x"}',
        "-| called c1",
        "-| + c1 a (single_turn) by c1",
        "c1| says m2",
        "c1| m2 'A '",
        "c1| m2 'says '",
        "c1| m2 'this'",
        "c1| said m2",
        "c1| .",
        "-| c1 -> ''",
        "-| says m3",
        "-| m3 'done'",
        "-| said m3",
        "-| RUN SUCCESS",
    ]


async def test_an_agents_own_callback_replaces_the_answer():
    """What was streamed was said; what replaced it is a message of its own."""

    def shout(callback_context, llm_response):
        if llm_response.partial:
            return None
        return LlmResponse(content=types.Content(role="model", parts=[types.Part(text="CENSORED")]))

    child = agent("a", Say("A says"), mode="single_turn", after_model_callback=shout)
    root = agent("root", Say(calls=[("c1", "a", {"request": "x"})]), Say("done"), sub_agents=[child])
    assert await run(runner(root), "hi") == [
        "-| RUN",
        "-| calls c1 a in m1",
        '-| c1 {"request": "x"}',
        "-| called c1",
        "-| + c1 a (single_turn) by c1",
        "c1| says m2",
        "c1| m2 'A '",
        "c1| m2 'says'",
        "c1| said m2",
        "c1| says m2#2",
        "c1| m2#2 'CENSORED'",
        "c1| said m2#2",
        "c1| .",
        "-| c1 -> 'CENSORED'",
        "-| says m3",
        "-| m3 'done'",
        "-| said m3",
        "-| RUN SUCCESS",
    ]


async def test_a_callback_answers_in_the_models_place():
    def cached(callback_context, llm_request):
        return LlmResponse(content=types.Content(role="model", parts=[types.Part(text="from the cache")]))

    children = [agent(name, Say("never"), mode="single_turn", before_model_callback=cached) for name in "ab"]
    root = agent(
        "root",
        Say(calls=[("c1", "a", {"request": "x"}), ("c2", "b", {"request": "y"})]),
        Say("done"),
        sub_agents=children,
    )
    assert await run(runner(root), "hi", run_config=AT_ONCE) == [
        "-| RUN",
        "-| calls c1 a in m1",
        '-| c1 {"request": "x"}',
        "-| calls c2 b in m1",
        '-| c2 {"request": "y"}',
        "-| called c1",
        "-| called c2",
        "-| + c1 a (single_turn) by c1",
        "-| + c2 b (single_turn) by c2",
        "c1| says m2",
        "c1| m2 'from the cache'",
        "c1| said m2",
        "c2| says m3",
        "c2| m3 'from the cache'",
        "c2| said m3",
        "c1| .",
        "c2| .",
        "-| c1 -> 'from the cache'",
        "-| c2 -> 'from the cache'",
        "-| says m4",
        "-| m4 'done'",
        "-| said m4",
        "-| RUN SUCCESS",
    ]


async def test_another_plugin_replaces_events():
    class Upper(BasePlugin):
        async def on_event_callback(self, *, invocation_context, event):
            if event.author != "a" or not event.content:
                return None
            parts = [types.Part(text=part.text.upper()) for part in event.content.parts]
            return event.model_copy(update={"content": types.Content(role="model", parts=parts)})

    child = agent("a", Say("A says"), mode="single_turn")
    target = runner(
        agent("root", Say(calls=[("c1", "a", {"request": "x"})]), Say("done"), sub_agents=[child])
    )
    target.plugin_manager.register_plugin(Upper(name="upper"))
    assert await run(target, "hi") == [
        "-| RUN",
        "-| calls c1 a in m1",
        '-| c1 {"request": "x"}',
        "-| called c1",
        "-| + c1 a (single_turn) by c1",
        "c1| says m2",
        "c1| m2 'A '",
        "c1| m2 'SAYS'",
        "c1| said m2",
        "c1| .",
        "-| c1 -> 'A says'",
        "-| says m3",
        "-| m3 'done'",
        "-| said m3",
        "-| RUN SUCCESS",
    ]


async def test_state_of_the_run_and_whose_change_it_was():
    """Prefixes stay, `temp:` goes; what an AgentTool's agent changed comes once, under its own name."""
    inner = agent(
        "inner",
        Say(calls=[("k2", "remember", {})]),
        Say("inner done"),
        tools=[FunctionTool(remember)],
        output_key="inner_said",
    )
    child = agent("a", Say("A says"), mode="single_turn", output_key="a_said")
    root = agent(
        "root",
        Say(calls=[("c1", "a", {"request": "x"})]),
        Say(calls=[("c2", "inner", {"request": "y"})]),
        Say("done"),
        sub_agents=[child],
        tools=[AgentTool(inner)],
    )
    assert await ask(runner(root), "hi", "again", run_config=AT_ONCE) == [
        "-| RUN",
        "-| calls c1 a in m1",
        '-| c1 {"request": "x"}',
        "-| called c1",
        "-| + c1 a (single_turn) by c1",
        "c1| says m2",
        "c1| m2 'A says'",
        "c1| said m2",
        'c1| state {"a_said": "A says"}',
        "c1| .",
        "-| c1 -> 'A says'",
        "-| calls c2 inner in m3",
        '-| c2 {"request": "y"}',
        "-| called c2",
        "-| + c2 inner (agent_tool) by c2",
        "c2| calls k2 remember in m4",
        "c2| k2 {}",
        "c2| called k2",
        "c2| k2 -> 'remembered'",
        'c2| patch [{"op": "add", "path": "/k", "value": 1}, {"op": "add", "path": "/user:name", "value": "Ada"}, {"op": "add", "path": "/app:a~1b", "value": [1]}]',
        "c2| says m5",
        "c2| m5 'inner done'",
        "c2| said m5",
        'c2| patch [{"op": "add", "path": "/inner_said", "value": "inner done"}]',
        "c2| .",
        "-| c2 -> 'inner done'",
        "-| says m6",
        "-| m6 'done'",
        "-| said m6",
        "-| RUN SUCCESS",
        "-| RUN",
        '-| state {"a_said": "A says", "k": 1, "inner_said": "inner done", "app:a/b": [1], "user:name": "Ada"}',
        "-| says m7",
        "-| m7 'done'",
        "-| said m7",
        "-| RUN SUCCESS",
    ]


async def test_state_that_the_client_holds_and_changes():
    root = agent("root", Say(calls=[("k", "remember", {})]), Say("done"), tools=[FunctionTool(remember)])
    target = runner(root)
    first = user("hi", state={"k": 0, "mine": True})
    assert await run(target, first, run_config=AT_ONCE) == [
        "-| RUN",
        "-| calls k remember in m1",
        "-| k {}",
        "-| called k",
        "-| k -> 'remembered'",
        '-| state {"k": 1, "mine": true, "user:name": "Ada", "app:a/b": [1]}',
        "-| says m2",
        "-| m2 'done'",
        "-| said m2",
        "-| RUN SUCCESS",
    ]
    session = await target.session_service.get_session(app_name="team", user_id="user", session_id="t")
    assert session.state == {"k": 1, "mine": True, "user:name": "Ada", "app:a/b": [1]}


async def test_artifacts():
    child = agent(
        "a", Say(calls=[("k", "save", {})]), Say("A says"), mode="single_turn", tools=[FunctionTool(save)]
    )
    root = agent("root", Say(calls=[("c1", "a", {"request": "x"})]), Say("done"), sub_agents=[child])
    assert await run(runner(root, artifact_service=InMemoryArtifactService()), "hi", run_config=AT_ONCE) == [
        "-| RUN",
        "-| calls c1 a in m1",
        '-| c1 {"request": "x"}',
        "-| called c1",
        "-| + c1 a (single_turn) by c1",
        "c1| calls k save in m2",
        "c1| k {}",
        "c1| called k",
        "c1| k -> 'saved'",
        'c1| shows artifact:notes.txt artifact {"filename": "notes.txt", "version": 0}',
        "c1| says m3",
        "c1| m3 'A says'",
        "c1| said m3",
        "c1| .",
        "-| c1 -> 'A says'",
        "-| says m4",
        "-| m4 'done'",
        "-| said m4",
        "-| RUN SUCCESS",
    ]


def cost(asked, answered, thoughts=None, cached=None):
    return types.GenerateContentResponseUsageMetadata(
        prompt_token_count=asked,
        candidates_token_count=answered,
        thoughts_token_count=thoughts,
        cached_content_token_count=cached,
        total_token_count=asked + answered + (thoughts or 0),
    )


@pytest.mark.parametrize("config", [AT_ONCE, None])
async def test_usage_is_counted_once_inner_runs_included(config):
    child = agent("a", Say("A says", usage=cost(100, 10)), mode="single_turn")
    inner = agent("inner", Say("inner says", usage=cost(1000, 100)))
    root = agent(
        "root",
        Say(calls=[("c1", "a", {"request": "x"})], usage=cost(10, 1)),
        Say(calls=[("c2", "inner", {"request": "y"})], usage=cost(20, 2, thoughts=5, cached=7)),
        Say("done", usage=cost(30, 3)),
        sub_agents=[child],
        tools=[AgentTool(inner)],
    )
    events = await collect(attribute(runner(root), run_config=config).run(user("hi")))
    (total,) = events[-1].usage
    assert total.model_dump(exclude_none=True) == {
        "model": "scripted",
        "input_tokens": 1160,
        "output_tokens": 121,
        "total_tokens": 1281,
        "reasoning_tokens": 5,
        "cached_input_tokens": 7,
    }
    assert [
        (one.get("subagentRunId"), one["inputTokens"], one["outputTokens"])
        for one in events[-1].metadata["byline"]["usage"]
    ] == [
        (None, 60, 11),
        ("c1", 100, 10),
        ("c2", 1000, 100),
    ]


class OfGoogle(ScriptedLlm, Gemini):
    """Not asked over the network."""


class LiteLlm(ScriptedLlm):
    """Named like ADK's own, which needs a package that is not installed here."""


class OfOurs(ScriptedLlm):
    provider: str = "ours"


async def test_whose_models_were_paid_for():
    """Gemini is Google's, LiteLLM says it before the model's name, a model of the app's may; nobody else is guessed."""

    def child(name, model):
        return LlmAgent(name=name, description=name, model=model, mode="single_turn")

    def says(kind, model):
        return kind(model=model, script=[Say("so", usage=cost(10, 1))], requests=[])

    children = [
        child("a", says(OfGoogle, "gemini-2.5-flash")),
        child("b", says(LiteLlm, "openai/gpt-4o")),
        child("c", says(LiteLlm, "gpt-4o-mini")),
        child("d", says(OfOurs, "seven")),
    ]
    calls = [(f"c{number}", one.name, {"request": "x"}) for number, one in enumerate(children)]
    root = agent("root", Say(calls=calls, usage=cost(5, 5)), Say("done"), sub_agents=children)
    events = await collect(attribute(runner(root)).run(user("hi")))
    found = sorted((one.provider or "", one.model, one.total_tokens) for one in events[-1].usage)
    assert found == [
        ("", "gpt-4o-mini", 11),
        ("", "scripted", 10),
        ("google", "gemini-2.5-flash", 11),
        ("openai", "gpt-4o", 11),
        ("ours", "seven", 11),
    ]


def test_whose_a_model_is_that_is_only_named():
    """ADK makes it of its name, and an agent without one has that of the agent above it."""
    inner = LlmAgent(name="inner")
    outer = LlmAgent(name="outer", model="gemini-2.5-pro", sub_agents=[inner])
    assert [provider_of(one, "gemini-2.5-pro") for one in (outer, inner)] == ["google", "google"]
    assert provider_of(LlmAgent(name="odd", model="no-such-model"), "no-such-model") is None


def test_whose_a_claude_is():
    pytest.importorskip("anthropic", reason="ADK's Claude models need it: pip install anthropic")
    from google.adk.models.anthropic_llm import AnthropicLlm, Claude

    named = LlmAgent(name="named", model="claude-sonnet-4-5")
    made = [LlmAgent(name="made", model=kind(model="claude-sonnet-4-5")) for kind in (AnthropicLlm, Claude)]
    assert [provider_of(one, "claude-sonnet-4-5") for one in (named, *made)] == ["anthropic"] * 3


async def test_code_that_a_model_ran():
    parts = [
        types.Part(executable_code=types.ExecutableCode(code="1+1", language="PYTHON")),
        types.Part(code_execution_result=types.CodeExecutionResult(outcome="OUTCOME_OK", output="2")),
        types.Part(text="it is 2"),
    ]

    class Coder(ScriptedLlm):
        async def generate_content_async(self, llm_request, stream=False):
            yield LlmResponse(content=types.Content(role="model", parts=parts), partial=False)

    child = agent("a", mode="single_turn")
    child.model = Coder(script=[], requests=[])
    root = agent("root", Say(calls=[("c1", "a", {"request": "x"})]), Say("done"), sub_agents=[child])
    assert await run(runner(root), "hi", run_config=AT_ONCE) == [
        "-| RUN",
        "-| calls c1 a in m1",
        '-| c1 {"request": "x"}',
        "-| called c1",
        "-| + c1 a (single_turn) by c1",
        'c1| custom adk.code {"code": "1+1", "language": "PYTHON"}',
        'c1| custom adk.code_result {"outcome": "OUTCOME_OK", "output": "2"}',
        "c1| says m2",
        "c1| m2 'it is 2'",
        "c1| said m2",
        "c1| .",
        "-| c1 -> 'it is 2'",
        "-| says m3",
        "-| m3 'done'",
        "-| said m3",
        "-| RUN SUCCESS",
    ]
