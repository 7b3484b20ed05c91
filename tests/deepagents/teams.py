"""Teams to inspect."""

from deepkit import compiled, deep, fork, sub
from elsewhere import send
from kit import agent, model
from langgraph.graph import START, MessagesState, StateGraph

REMOTE = {
    "name": "remote",
    "description": "Works elsewhere.",
    "graph_id": "remote",
    "url": "http://127.0.0.1:1",
}


def shop():
    """A deep agent with one of each."""
    return deep(
        "done",
        name="shop",
        system_prompt="You run the shop.",
        tools=[send],
        subagents=[
            sub(
                "reviewer",
                "x",
                interrupt_on={"send": {"allowed_decisions": ["approve", "reject"]}},
                tools=[send],
            ),
            fork("fixer", "x"),
            compiled("counter", agent("whatever", "x", tools=[send])),
        ],
        skills=["/skills/shop/"],
        interrupt_on={"send": True},
    )


def loose():
    """Forks that lose the cache, each for another reason."""
    return deep(
        "done",
        name="loose",
        system_prompt="You run the shop.",
        tools=[send],
        subagents=[
            fork("own_prompt", "x", system_prompt="You are special."),
            fork("own_tools", "x", tools=[]),
            fork("own_model", "x") | {"model": model("x", model_name="another")},
            compiled("built", agent("whatever", "x", tools=[send]), mode="fork"),
            fork("good", "x"),
        ],
    )


def beside():
    """A fork beside an async subagent."""
    return deep("done", name="beside", subagents=[fork("good", "x"), REMOTE])


def roles():
    """Agents of every role, each started in the wrong way."""
    return deep(
        "done",
        name="roles",
        subagents=[
            fork("judge", "x"),
            fork("scout", "x"),
            fork("digger", "x"),
            sub("mason", "x"),
            sub("keeper", "x"),
        ],
    )


def around():
    """A plain graph around a deep agent."""
    graph = StateGraph(MessagesState).add_node("shop", shop())
    return graph.add_edge(START, "shop").compile(name="around")
