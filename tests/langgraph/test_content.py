"""What models and tools say, in every spelling."""

import pytest
from byline_langgraph.scripted import Say
from kit import Play, agent, ask, call, model, raw
from langchain.agents import create_agent
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command


def speak(llm):
    """A graph of one node that asks one model."""

    async def think(state: MessagesState) -> dict:
        return {"messages": [await llm.ainvoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("think", think)
    builder.add_edge(START, "think")
    return builder.compile()


@tool
def look_up(q: str) -> str:
    """Look up."""
    return f"found {q}"


LOOKED_UP = [
    "start",
    "main says m1: 'main looks'",
    'main calls call_L in m1: look_up {"q": "it"}',
    "main hears call_L: 'found it'",
    "main says m2: 'main knows'",
    "end",
]


@pytest.mark.parametrize("arguments", ["many", "one", "first"])
def test_arguments_in_many_chunks_in_one_and_in_the_first(arguments):
    turn = Say("main looks", calls=[call("call_L", "look_up", "it")], arguments=arguments)
    assert Play(agent(None, turn, "main knows", tools=[look_up])).run().lines == LOOKED_UP


@pytest.mark.parametrize("options", [{"streams": False}, {"disable_streaming": True}])
def test_a_model_that_does_not_stream(options):
    turn = Say("main looks", calls=[call("call_L", "look_up", "it")])
    graph = agent(None, turn, "main knows", tools=[look_up], model_options=options)
    assert Play(graph).run().lines == LOOKED_UP


def test_a_subagents_model_that_does_not_stream():
    alpha = agent(
        "alpha", Say("alpha answers", reasoning="alpha thinks"), model_options={"disable_streaming": True}
    )
    team = agent(
        "boss",
        Say("", calls=[call("call_A", "ask_alpha", "qa")]),
        "boss done",
        tools=[ask(alpha, "ask_alpha")],
    )
    assert Play(team).run().lines == [
        "start",
        'main calls call_A in m1: ask_alpha {"q": "qa"}',
        "alpha#1 opens as tool for main, call call_A in m1",
        "alpha#1 thinks m2:reasoning: 'alpha thinks'",
        "alpha#1 says m2: 'alpha answers'",
        "alpha#1 returns 'alpha answers'",
        "main hears call_A: 'alpha answers'",
        "main says m3: 'boss done'",
        "end",
    ]


THOUGHTS = {
    "langchain": [
        {"content": [{"type": "reasoning", "reasoning": "it "}]},
        {"content": [{"type": "reasoning", "reasoning": "thinks"}]},
        {"content": [{"type": "text", "text": "it says"}]},
    ],
    "openai": [
        {"content": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "it "}]}]},
        {"content": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "thinks"}]}]},
        {"content": [{"type": "text", "text": "it says"}]},
    ],
    "anthropic": [
        {"content": [{"type": "thinking", "thinking": "it "}]},
        {"content": [{"type": "thinking", "thinking": "thinks"}]},
        {"content": [{"type": "thinking", "signature": "c2lnbmVk"}]},
        {"content": [{"type": "text", "text": "it says"}]},
    ],
    "bedrock": [
        {"content": [{"type": "reasoning_content", "reasoning_content": {"text": "it "}}]},
        {"content": [{"type": "reasoning_content", "reasoning_content": {"text": "thinks"}}]},
        {"content": [{"type": "text", "text": "it says"}]},
    ],
    "deepseek": [
        {"content": "", "additional_kwargs": {"reasoning_content": "it "}},
        {"content": "", "additional_kwargs": {"reasoning_content": "thinks"}},
        {"content": "it says"},
    ],
    "google": [
        {"content": [{"type": "thinking", "thinking": "it thinks", "signature": "c2ln"}]},
        {"content": "it says"},
    ],
}


@pytest.mark.parametrize("spelling", THOUGHTS)
def test_reasoning_beside_text(spelling):
    assert Play(speak(raw(*THOUGHTS[spelling]))).run().lines == [
        "start",
        "main thinks m1:reasoning: 'it thinks'",
        "main says m1: 'it says'",
        "end",
    ]


@pytest.mark.parametrize("spelling", THOUGHTS)
def test_reasoning_of_a_model_that_does_not_stream(spelling):
    assert Play(speak(raw(*THOUGHTS[spelling], disable_streaming=True))).run().lines == [
        "start",
        "main thinks m1:reasoning: 'it thinks'",
        "main says m1: 'it says'",
        "end",
    ]


def test_thoughts_between_words():
    chunks = [
        {"content": [{"type": "reasoning", "reasoning": "first thought"}]},
        {"content": [{"type": "text", "text": "first "}]},
        {"content": [{"type": "reasoning", "reasoning": "second thought"}]},
        {"content": [{"type": "text", "text": "second"}]},
    ]
    assert Play(speak(raw(*chunks))).run().lines == [
        "start",
        "main thinks m1:reasoning: 'first thought'",
        "main says m1: 'first '",
        "main thinks m1:reasoning-2: 'second thought'",
        "main says m1: 'second'",
        "end",
    ]


def test_media_in_an_answer():
    chunks = [
        {"content": [{"type": "text", "text": "look"}]},
        {"content": [{"type": "image", "base64": "aGk=", "mime_type": "image/png"}]},
        {"content": [{"type": "image_url", "image_url": {"url": "data:image/gif;base64,aGk="}}]},
        {"content": [{"type": "audio", "url": "https://a.example/b.mp3", "mime_type": "audio/mpeg"}]},
        {"content": [{"type": "file", "file_id": "file-1"}]},
    ]
    assert Play(speak(raw(*chunks))).run().lines == [
        "start",
        "main says m1+: 'look'",
        (
            'main activity m1:media-1 media: {"part": {"type": "image", "source": '
            '{"type": "data", "value": "aGk=", "mimeType": "image/png"}}}'
        ),
        (
            'main activity m1:media-2 media: {"part": {"type": "image", "source": '
            '{"type": "data", "value": "aGk=", "mimeType": "image/gif"}}}'
        ),
        (
            'main activity m1:media-3 media: {"part": {"type": "audio", "source": '
            '{"type": "url", "value": "https://a.example/b.mp3", "mimeType": "audio/mpeg"}}}'
        ),
        (
            'main activity m1:media-4 media: {"part": {"type": "document", "source": '
            '{"type": "file", "value": "file-1"}}}'
        ),
        "main says +m1: ''",
        "end",
    ]


def answers(function):
    """Return what is told of a tool's answer."""
    turn = Say("", calls=[call("call_T", "use", "it")])
    lines = Play(agent(None, turn, "main done", tools=[tool("use")(function)])).run().lines
    assert lines[:2] + lines[-2:] == [
        "start",
        'main calls call_T in m1: use {"q": "it"}',
        "main says m2: 'main done'",
        "end",
    ]
    return lines[2:-2]


def test_a_tool_that_returns_text():
    def use(q: str) -> str:
        """Use."""
        return f"text of {q}"

    assert answers(use) == ["main hears call_T: 'text of it'"]


def test_a_tool_that_returns_data():
    def use(q: str) -> dict:
        """Use."""
        return {"of": q, "n": [1, 2]}

    assert answers(use) == ['main hears call_T: \'{"of": "it", "n": [1, 2]}\'']


def test_a_tool_that_returns_a_command():
    def use(q: str) -> Command:
        """Use."""
        return Command(update={"messages": [ToolMessage(f"command of {q}", tool_call_id="call_T")]})

    assert answers(use) == ["main hears call_T: 'command of it'"]


def test_a_tool_that_returns_content_with_an_image():
    def use(q: str) -> list:
        """Use."""
        return [
            {"type": "text", "text": f"picture of {q}"},
            {"type": "image", "base64": "aGk=", "mime_type": "image/png"},
        ]

    assert answers(use) == [
        (
            'main hears call_T: [{"type": "text", "text": "picture of it"}, {"type": "image", "source": '
            '{"type": "data", "value": "aGk=", "mimeType": "image/png"}}]'
        )
    ]


def test_a_tool_with_an_artifact_tells_its_content():
    @tool(response_format="content_and_artifact")
    def use(q: str) -> tuple[str, dict]:
        """Use."""
        return f"content of {q}", {"artifact": True}

    turn = Say("", calls=[call("call_T", "use", "it")])
    assert Play(agent(None, turn, "main done", tools=[use])).run().lines == [
        "start",
        'main calls call_T in m1: use {"q": "it"}',
        "main hears call_T: 'content of it'",
        "main says m2: 'main done'",
        "end",
    ]


def test_usage_of_the_run_and_whose_it_was():
    cheap = {
        "input_tokens": 10,
        "output_tokens": 2,
        "total_tokens": 12,
        "input_token_details": {"cache_read": 8, "cache_creation": 1},
        "output_token_details": {"reasoning": 1},
    }
    dear = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120}
    alpha = agent(
        "alpha", Say("alpha answers", usage=cheap), model_options={"model_name": "small", "provider": "a"}
    )
    boss = create_agent(
        model(
            Say("", calls=[call("call_A", "ask_alpha", "qa")], usage=dear),
            Say("boss done", usage=dear),
            model_name="large",
            provider="b",
        ),
        [ask(alpha, "ask_alpha")],
        name="boss",
    )
    assert Play(boss).run().lines[-1] == (
        'end usage {"provider": "b", "model": "large", "inputTokens": 200, "outputTokens": 40, "totalTokens": 240}'
        ' usage {"provider": "a", "model": "small", "inputTokens": 10, "outputTokens": 2, "totalTokens": 12, '
        '"reasoningTokens": 1, "cachedInputTokens": 8, "cacheWriteInputTokens": 1}'
        ' of {"provider": "b", "model": "large", "inputTokens": 200, "outputTokens": 40, "totalTokens": 240}'
        ' of {"subagentRunId": "alpha#1", "provider": "a", "model": "small", "inputTokens": 10, "outputTokens": 2, '
        '"totalTokens": 12, "reasoningTokens": 1, "cachedInputTokens": 8, "cacheWriteInputTokens": 1}'
    )


def test_a_muted_model_is_not_heard_but_counted():
    quiet = model(
        Say("summary", usage={"input_tokens": 3, "output_tokens": 1, "total_tokens": 4})
    ).with_config(tags=["nostream"])

    async def think(state: MessagesState) -> dict:
        await quiet.ainvoke("sum up")
        return {}

    builder = StateGraph(MessagesState)
    builder.add_node("think", think)
    builder.add_edge(START, "think")
    assert Play(builder.compile()).run().lines == [
        "start",
        'end usage {"provider": "byline", "model": "scripted", "inputTokens": 3, "outputTokens": 1, "totalTokens": 4}',
    ]
