"""LangGraph as hosts of the conformance suite: agents in tools, subgraph nodes, a supervisor, a swarm.

Every scenario becomes the graph that a LangGraph user would write, with models that follow the script.
"""

import asyncio
import functools
import importlib.util
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from importlib.metadata import version
from typing import Annotated, Any, ClassVar, Final, NotRequired
from uuid import uuid4

from byline import attribute
from byline.agent import Agent as Attributed
from byline.agent import Run
from byline.events import RunAgentInput
from byline.hooks import Plugins
from byline.testing.host import Declared, Request, instructions
from byline.testing.scenario import Agent, Call, Chain, Form, Loop, Parallel, Scenario, Tool, Turn
from langchain.agents import AgentState, create_agent
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphBubbleUp
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from .scripted import Say, ScriptedModel

__all__ = ["Builder", "GraphStage", "SubgraphHost", "SupervisorHost", "SwarmHost", "ToolHost", "hosts"]


class ScenarioModel(ScriptedModel):
    """Follows an agent of a scenario: the next of its turns that the conversation does not hold yet."""

    agent: Any
    log: Any
    """Where every request goes, as (agent, messages, tools)."""
    native: Any
    """How the framework spells a call: a function of the scenario's call that gives name and arguments."""
    hangs: bool = False

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:  # noqa: ARG002
        """Take note of the tools: names and descriptions."""
        return self.model_copy(update={"tool_names": [f"{one.name}\0{one.description}" for one in tools]})

    def _turn(self, messages: list[BaseMessage]) -> Say:
        self.log.append((self.agent.name, list(messages), list(self.tool_names)))
        return self._say(next_turn(self.agent, self.native, messages))

    def _say(self, turn: Turn) -> Say:
        calls = []
        for call in turn.calls:
            name, arguments = self.native(call)
            calls.append((call.id or f"{self.agent.name}-{uuid4().hex[:12]}", name, arguments))
        usage = None
        if turn.cost is not None:
            cost = turn.cost
            usage = {
                "input_tokens": cost.input,
                "output_tokens": cost.output,
                "total_tokens": cost.input + cost.output,
                "input_token_details": {"cache_read": cost.cached},
            }
        fails = None if turn.fails is None else RuntimeError(turn.fails)
        return Say(turn.text, calls, turn.reasoning, usage, fails, turn.arguments)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        hangs = next_turn(self.agent, self.native, messages).hangs
        async for chunk in super()._astream(messages, stop, run_manager, **kwargs):
            if hangs and not chunk.text:
                await asyncio.Event().wait()
            yield chunk


def next_turn(agent: Agent, native: Any, messages: Sequence[BaseMessage]) -> Turn:
    """Return the turn that a conversation has come to."""
    asked = next((one.text for one in reversed(messages) if isinstance(one, HumanMessage)), "")
    turns = next((turns for key, turns in agent.on.items() if key in asked), agent.turns)
    own = [(turn.text, [native(call)[0] for call in turn.calls]) for turn in turns]
    said = sum(
        (one.text, [call["name"] for call in one.tool_calls]) in own
        for one in messages
        if isinstance(one, AIMessage)
    )
    return turns[min(said, len(turns) - 1)]


class Notes(AgentState[Any]):
    """The state of teams that keep notes."""

    topic: NotRequired[str]


class GraphStage:
    """A graph under attribution."""

    def __init__(
        self, target: Any, log: list[Any], host: "Builder", scenario: Scenario, **options: Any
    ) -> None:
        self.agent: Final[Attributed] = attribute(
            target, plugins=host.plugins(), visibility=dict(scenario.visibility), **options
        )
        self._log: Final = log
        self._host: Final = host

    def run(self, run_input: RunAgentInput) -> Run:
        """Run the graph."""
        return self.agent.run(run_input)

    def requests(self) -> Sequence[Request]:
        """Return what the models received."""
        return [self._host.request(*entry) for entry in self._log]


class Builder:
    """What the hosts share: how models, tools and agents are made, and how calls are spelled."""

    name: str
    forms: frozenset[Form]
    contracts: Mapping[str, Any] | None = None
    """What an announcement says of the delegation; `None` where that differs within a scenario."""
    fork = False
    results = True
    declared: Mapping[str, Declared] = {}
    packages: ClassVar[Sequence[str]] = ("langgraph", "langchain", "langchain-core")
    ignored_tools: frozenset[str] = frozenset()
    """Tools that the framework gives its agents by itself."""

    def graph(self, scenario: Scenario) -> tuple[Any, list[Any]]:
        """Return the native graph, and the list that its models' requests go to."""
        raise NotImplementedError(f"{type(self).__name__} builds no graph of {scenario.name}")

    def build(self, scenario: Scenario) -> GraphStage:
        """Build the graph, and put it under attribution."""
        return GraphStage(*self.graph(scenario), self, scenario)

    @property
    def versions(self) -> Mapping[str, str]:
        """The versions of what it runs on."""
        return {name: version(name) for name in self.packages}

    def plugins(self) -> list[object]:
        """Return the adapter, where it was not installed as a plugin."""
        from . import _plugin

        return [] if "langgraph" in Plugins().names else [_plugin]

    def contract(self, agent: Agent) -> Mapping[str, Any] | None:  # noqa: ARG002
        """Return what an announcement says."""
        return self.contracts

    # -- the dialect -------------------------------------------------------------------------------------------------

    def native(self, call: Call) -> tuple[str, dict[str, Any]]:
        """Return how a call of the scenario is made here."""
        if call.handoff:
            return f"transfer_to_{call.name}", {}
        if call.task is not None:
            return f"ask_{call.name}", {"task": call.task}
        return call.name, dict(call.arguments)

    def delegation(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, str | None] | None:
        """Tell a delegation from a call of a tool."""
        if name.startswith("transfer_to_"):
            return name.removeprefix("transfer_to_"), None
        if name.startswith("ask_") and set(arguments) == {"task"}:
            return name.removeprefix("ask_"), arguments["task"]
        return None

    def answer(self, content: Any) -> Any:
        """Results are the words themselves."""
        return content

    def payload(self, value: Any, interrupt: Mapping[str, Any]) -> Any:  # noqa: ARG002
        """Answers are the values themselves."""
        return value

    def request(self, agent: str, messages: Sequence[BaseMessage], tools: Sequence[str]) -> Request:
        """Tell what a model received in the scenario's words."""
        lines: list[str] = []
        system = ""
        for message in messages:
            if isinstance(message, SystemMessage):
                system += message.text
            elif isinstance(message, HumanMessage):
                lines.append(f"user: {self.task(message.text)}")
            elif isinstance(message, ToolMessage):
                lines.append(f"heard: {message.text}")
            elif isinstance(message, AIMessage):
                lines += [f"said: {message.text}"] if message.text else []
                lines += [f"called: {self._call(one['name'], one['args'])}" for one in message.tool_calls]
        offered = [name for tool in tools for name in self.offered(*tool.split("\0", 1))]
        return Request(agent, lines, instructions(system), offered)

    def offered(self, tool: str, description: str) -> list[str]:  # noqa: ARG002
        """Return a tool's name, or the agents behind it."""
        if tool in self.ignored_tools:
            return []
        return (
            [f"-> {tool.removeprefix('ask_')}"] if tool.startswith("ask_") and tool != "ask_user" else [tool]
        )

    def task(self, text: str) -> str:
        """Return a user's words without the framework's framing."""
        return text

    def _call(self, name: str, arguments: Mapping[str, Any]) -> str:
        delegation = self.delegation(name, arguments)
        if delegation is None:
            return f"{name} {json.dumps(arguments, ensure_ascii=False)}"
        agent, task = delegation
        return f"hand over to {agent}" if task is None else f"{agent} {task!r}"

    # -- parts -------------------------------------------------------------------------------------------------------

    def model(self, agent: Agent, log: list[Any]) -> ScenarioModel:
        """Return the model that follows `agent`."""
        return ScenarioModel(
            script=[],
            model_name=agent.model,
            provider=agent.provider,
            streams=agent.streams,
            agent=agent,
            log=log,
            native=self.native,
        )

    def tool(self, tool: Tool, log: list[Any]) -> BaseTool:
        """Return a tool of the scenario."""

        async def run(q: str, call: Annotated[str, InjectedToolCallId]) -> Any:
            if tool.approval:
                interrupt({"reason": "approval", "message": f"May {tool.name} run?"})
            if tool.asks is not None:
                return str(interrupt(tool.asks))
            if tool.model is not None:
                helper = self.model(Agent("helper", [Turn(tool.model)]), log)
                return (await helper.ainvoke(q)).text
            if tool.writes:
                done = ToolMessage(tool.answer, tool_call_id=call)
                return Command(update={**tool.writes, "messages": [done]})
            return tool.answer

        return StructuredTool.from_function(coroutine=run, name=tool.name, description=tool.name)

    def tools(self, agent: Agent, log: list[Any]) -> list[BaseTool]:
        """Return the ordinary tools of an agent."""
        return [self.tool(tool, log) for tool in agent.tools]

    def agent(self, agent: Agent, tools: Sequence[BaseTool], log: list[Any], **options: Any) -> Any:
        """Return an agent as `create_agent` makes it."""
        prompt = f"You are {agent.name}."
        return create_agent(
            self.model(agent, log),
            list(tools),
            name=agent.name,
            system_prompt=prompt,
            state_schema=Notes,
            **options,
        )


_CALLED: Final = {
    "framework": "langgraph",
    "mode": "tool",
    "context": "isolated",
    "interaction": "none",
    "approvals": True,
    "returns": "automatic",
    "concurrency": "parallel",
}


class ToolHost(Builder):
    """Agents that are called in tools."""

    name = "langgraph tool"
    forms: frozenset[Form] = frozenset({"call", "question"})
    contracts = _CALLED

    def graph(self, scenario: Scenario) -> tuple[Any, list[Any]]:
        """Return the native graph, and the list that its models' requests go to."""
        log: list[Any] = []
        root = scenario.agents[str(scenario.root)]
        return self._team(root, scenario, log, checkpointer=InMemorySaver()), log

    def _team(self, agent: Agent, scenario: Scenario, log: list[Any], **options: Any) -> Any:
        delegates = [
            self._ask(self._team(scenario.agents[name], scenario, log), name, copes=agent.copes)
            for name in agent.delegates
        ]
        return self.agent(agent, [*delegates, *self.tools(agent, log)], log, **options)

    def _ask(self, subagent: Any, name: str, *, copes: bool) -> BaseTool:
        async def ask(task: str, call: Annotated[str, InjectedToolCallId]) -> Any:
            try:
                result = await subagent.ainvoke({"messages": [HumanMessage(task)]})
            except GraphBubbleUp:
                raise
            except Exception as fault:
                if not copes:
                    raise
                return f"failed: {fault}"
            answer = result["messages"][-1].text
            if "topic" in result:
                done = ToolMessage(answer, tool_call_id=call)
                return Command(update={"topic": result["topic"], "messages": [done]})
            return answer

        return StructuredTool.from_function(coroutine=ask, name=f"ask_{name}", description=f"Ask {name}.")


class SubgraphHost(Builder):
    """Agents that are nodes of a graph."""

    name = "langgraph subgraph"
    forms: frozenset[Form] = frozenset({"graph"})
    contracts: Mapping[str, Any] = {
        "framework": "langgraph",
        "mode": "subgraph",
        "context": "shared",
        "interaction": "none",
        "approvals": True,
        "returns": "onward",
    }

    def graph(self, scenario: Scenario) -> tuple[Any, list[Any]]:
        """Return the native graph, and the list that its models' requests go to."""
        log: list[Any] = []
        builder = StateGraph(MessagesState)
        for name, agent in scenario.agents.items():
            builder.add_node(name, self.agent(agent, self.tools(agent, log), log))
        assert isinstance(scenario.root, Chain)  # noqa: S101
        last: list[str] = [START]
        entrances = [*map(_entrance, scenario.root.nodes[1:]), [END]]
        for node, after in zip(scenario.root.nodes, entrances, strict=True):
            names = _entrance(node)
            for name in names if last else ():
                builder.add_edge(last if last != [START] else START, name)
            last = names
            if isinstance(node, Loop):
                again = functools.partial(_again, node=node, after=after[0])
                builder.add_conditional_edges(node.agent, again, [node.agent, after[0]])
                last = []
        for name in last:
            builder.add_edge(name, END)
        return builder.compile(checkpointer=InMemorySaver()), log


def _entrance(node: str | Parallel | Loop) -> list[str]:
    if isinstance(node, Parallel):
        return list(node.agents)
    return [node.agent if isinstance(node, Loop) else node]


def _again(state: MessagesState, node: Loop, after: str) -> str:
    rounds = sum(isinstance(one, AIMessage) and one.name == node.agent for one in state["messages"])
    return node.agent if rounds < node.times else after


_HANDOFF: Final = {
    "framework": "langgraph",
    "mode": "handoff",
    "context": "shared",
    "interaction": "full",
    "approvals": True,
    "concurrency": "serial",
}


class SupervisorHost(Builder):
    """langgraph-supervisor: hand-offs that come back by themselves."""

    name = "langgraph supervisor"
    forms: frozenset[Form] = frozenset({"supervisor"})
    contracts: Mapping[str, Any] = {**_HANDOFF, "returns": "automatic"}
    packages = (*Builder.packages, "langgraph-supervisor")

    def graph(self, scenario: Scenario) -> tuple[Any, list[Any]]:
        """Return the native graph, and the list that its models' requests go to."""
        import warnings

        from langgraph_supervisor import create_supervisor

        log: list[Any] = []
        root = scenario.agents[str(scenario.root)]
        members = [scenario.agents[name] for name in root.delegates]
        agents = [self.agent(member, self.tools(member, log), log) for member in members]
        with warnings.catch_warnings():
            # It builds its supervisor with a function that LangGraph calls outdated.
            warnings.simplefilter("ignore", DeprecationWarning)
            graph = create_supervisor(agents, model=self.model(root, log), prompt="You are main.")
        return graph.compile(checkpointer=InMemorySaver()), log


class SwarmHost(Builder):
    """langgraph-swarm: hand-offs between peers."""

    name = "langgraph swarm"
    forms: frozenset[Form] = frozenset({"swarm"})
    contracts = None  # the first agent is a node, the others are handed over to: the scenario has both
    packages = (*Builder.packages, "langgraph-swarm")

    def graph(self, scenario: Scenario) -> tuple[Any, list[Any]]:
        """Return the native graph, and the list that its models' requests go to."""
        from langgraph_swarm import create_handoff_tool, create_swarm

        log: list[Any] = []
        agents = [
            self.agent(
                one,
                [*(create_handoff_tool(agent_name=name) for name in one.delegates), *self.tools(one, log)],
                log,
            )
            for one in scenario.agents.values()
        ]
        graph = create_swarm(agents, default_active_agent=str(scenario.root))
        return graph.compile(checkpointer=InMemorySaver()), log


def hosts() -> list[Builder]:
    """Return the hosts whose packages are installed."""
    found: list[Builder] = [ToolHost(), SubgraphHost()]
    if importlib.util.find_spec("langgraph_supervisor") is not None:
        found.append(SupervisorHost())
    if importlib.util.find_spec("langgraph_swarm") is not None:
        found.append(SwarmHost())
    return found
