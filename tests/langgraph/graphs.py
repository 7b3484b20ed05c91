"""Graphs to inspect."""

import warnings

from kit import agent, ask, model
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, wrap_model_call, wrap_tool_call
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph_supervisor import create_supervisor
from langgraph_swarm import create_handoff_tool, create_swarm


@tool
def send(q: str) -> str:
    """Send."""
    return f"sent {q}"


def plain():
    """A graph with an agent in a node, whose tool asks another."""
    helper = agent("helper", "x")
    lead = create_agent(model("x"), [ask(helper, "ask_helper"), send], name="lead", system_prompt="Lead.")
    graph = StateGraph(MessagesState).add_node("lead", lead).add_node("tidy", lambda state: {})
    return graph.add_edge(START, "lead").add_edge("lead", "tidy").compile(name="plain")


def supervised():
    team = [agent("alpha", "x"), agent("beta", "x", tools=[send])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is built with what LangGraph has moved
        return create_supervisor(team, model=model("x"), prompt="Boss.").compile(name="supervised")


def swarm():
    def one(name, other):
        return create_agent(model("x"), [create_handoff_tool(agent_name=other)], name=name)

    return create_swarm([one("alpha", "beta"), one("beta", "alpha")], default_active_agent="alpha").compile(
        name="swarm"
    )


def guarded():
    """An agent with every kind of middleware that a path leads to."""

    @wrap_model_call
    def patient(request, handler):
        return handler(request)

    @wrap_tool_call
    def forgiving(request, handler):
        return handler(request)

    review = HumanInTheLoopMiddleware(interrupt_on={"send": True})
    return create_agent(
        model("x"), [send], name="guarded", system_prompt="Guard.", middleware=[patient, forgiving, review]
    )
