"""Apps for the recording tests, as a user would have them: nothing in here knows byline."""

from typing import Any

from byline_langgraph.scripted import Say, ScriptedModel
from langchain.agents import create_agent
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import interrupt


def team(*, approval: bool = False, fails: Exception | None = None, words: str = "sub says hello") -> Any:
    """A main agent that delegates to `sub` in a tool; `sub` asks for approval or fails when told to."""

    @tool
    def ask(question: str) -> str:
        """Ask the user."""
        return str(interrupt({"question": question}))

    first = (
        [Say(calls=[("c1", "ask", {"question": "ok?"})])]
        if approval
        else ([Say("so far", fails=fails)] if fails else [])
    )
    sub = create_agent(ScriptedModel(script=[*first, Say(words)]), [ask], name="sub")

    @tool
    async def delegate(task: str) -> str:
        """Give a task to the subagent."""
        out = await sub.ainvoke({"messages": [("user", task)]})
        return str(out["messages"][-1].content)

    @tool("delegate")
    def delegate_sync(task: str) -> str:
        """Give a task to the subagent."""
        return str(sub.invoke({"messages": [("user", task)]})["messages"][-1].content)

    delegate_sync.coroutine = delegate.coroutine
    script = [Say(calls=[("m1", "delegate", {"task": "go"})]), Say("all done")]
    return create_agent(
        ScriptedModel(script=script), [delegate_sync], name="main", checkpointer=InMemorySaver()
    )


def asked(thread: str) -> tuple[Any, Any]:
    """A call's input and config."""
    return {"messages": [("user", "hi")]}, {"configurable": {"thread_id": thread}}
