"""The demo: a real LangGraph supervisor with scripted models, no key and no network.

An editor hands a story to two subagents at once.  The researcher delegates further, to an archivist; the publisher
may only publish with approval, and asks for it, so the run ends with an interrupt and the next one continues.
"""

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from ag_ui.core import ResumeEntry, RunAgentInput, UserMessage
from byline.events import Interrupt
from byline.hooks import Demo
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Send, interrupt

from .scripted import Say, ScriptedModel

__all__ = ["build", "demo"]


def demo() -> Demo:
    """Return the LangGraph demo."""
    return Demo(
        name="langgraph",
        summary="an editor with two parallel subagents: one delegates further, one asks for approval",
        build=build,
        first=_first,
        answer=_answer,
    )


def _first() -> RunAgentInput:
    question = "What happened to the old lighthouse? Publish what you find."
    return RunAgentInput(
        thread_id=f"demo-{uuid4().hex[:8]}",
        run_id="run-1",
        messages=[UserMessage(id="question", role="user", content=question)],
    )


def _answer(last: RunAgentInput, interrupts: Sequence[Interrupt]) -> RunAgentInput | None:
    """Approve whatever was asked."""
    if not interrupts:
        return None
    entries = [ResumeEntry(interrupt_id=one.id, status="resolved", payload="approved") for one in interrupts]
    return last.model_copy(update={"run_id": f"run-{int(last.run_id[4:]) + 1}", "resume": entries})


def build(pause: float = 0.0) -> Any:
    """Return the team as one compiled graph; its models wait `pause` seconds before each word."""

    def model(name: str, *turns: Say) -> ScriptedModel:
        paced = [Say(turn.text, turn.calls, turn.reasoning, turn.usage, pause=pause) for turn in turns]
        return ScriptedModel(script=paced, model_name=f"{name}-model", requests=[])

    archivist = _agent(
        "archivist",
        model(
            "archivist",
            Say("archivist: the log of 1911 says it was struck by lightning.", usage=_usage(40, 12)),
        ),
        [],
    )

    @tool
    async def ask_archivist(question: str) -> str:
        """Look something up in the archive."""
        return await _ask(archivist, question)

    researcher = _agent(
        "researcher",
        model(
            "researcher",
            Say(
                "",
                [("call_0", "ask_archivist", {"question": "lighthouse, 1911"})],
                reasoning="Who would know?",
            ),
            Say(
                "researcher: lightning, in 1911; the keeper's log confirms it.",
                usage=_usage(120, 15, cached=64),
            ),
        ),
        [ask_archivist],
    )

    @tool
    def publish(headline: str) -> str:
        """Publish a story."""
        answer = interrupt({"reason": "approval", "message": f"May I publish {headline!r}?"})
        return f"published ({answer})"

    publisher = _agent(
        "publisher",
        model(
            "publisher",
            Say(
                "publisher: this one needs a yes.",
                [("call_0", "publish", {"headline": "Struck by lightning"})],
            ),
            Say("publisher: it is out.", usage=_usage(80, 6)),
        ),
        [publish],
    )

    @tool
    async def ask_researcher(task: str) -> str:
        """Give the researcher a task."""
        return await _ask(researcher, task)

    @tool
    async def ask_publisher(task: str) -> str:
        """Give the publisher a task."""
        return await _ask(publisher, task)

    return _agent(
        "editor",
        model(
            "editor",
            Say(
                "editor: two of us will see to it.",
                [
                    ("call_0", "ask_researcher", {"task": "find out what happened"}),
                    ("call_1", "ask_publisher", {"task": "prepare the story"}),
                ],
            ),
            Say(
                "editor: the lighthouse was struck by lightning in 1911, and the story is out.",
                usage=_usage(200, 18),
            ),
        ),
        [ask_researcher, ask_publisher],
        checkpointer=InMemorySaver(),
    )


def _agent(name: str, model: ScriptedModel, tools: Sequence[BaseTool], checkpointer: Any = None) -> Any:
    """Return the agent loop as LangGraph users write it: a model, its tools each in a task of its own."""
    bound = model.bind_tools(tools)

    async def think(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await bound.ainvoke(state["messages"])]}

    def act(state: MessagesState) -> list[Send]:
        last = state["messages"][-1]
        calls = last.tool_calls if isinstance(last, AIMessage) else []
        return [Send("tools", [call]) for call in calls]

    builder = StateGraph(MessagesState)
    builder.add_node("model", think)
    builder.add_edge(START, "model")
    if tools:
        builder.add_node("tools", ToolNode(list(tools)))
        builder.add_conditional_edges("model", act, ["tools"])
        builder.add_edge("tools", "model")
    return builder.compile(name=name, checkpointer=checkpointer)


async def _ask(agent: Any, task: str) -> str:
    result = await agent.ainvoke({"messages": [("user", task)]})
    return str(result["messages"][-1].text)


def _usage(inputs: int, outputs: int, cached: int = 0) -> dict[str, Any]:
    usage: dict[str, Any] = {
        "input_tokens": inputs,
        "output_tokens": outputs,
        "total_tokens": inputs + outputs,
    }
    if cached:
        usage["input_token_details"] = {"cache_read": cached}
    return usage
