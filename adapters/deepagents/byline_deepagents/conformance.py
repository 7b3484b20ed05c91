"""deepagents as hosts of the conformance suite: isolated subagents and forks, called with `task`."""

import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from byline.hooks import Plugins
from byline.testing.scenario import Agent, Call, Form, Scenario
from byline_langgraph.conformance import Builder, Notes
from deepagents import create_deep_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core._api.beta_decorator import LangChainBetaWarning
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphBubbleUp

__all__ = ["ForkHost", "IsolatedHost", "hosts"]

_DELEGATED: Final = {
    "framework": "deepagents",
    "interaction": "none",
    "approvals": True,
    "returns": "automatic",
    "concurrency": "parallel",
}
_FRAMING: Final = re.compile(r"^\[The messages above are .*?\]\s*", re.DOTALL)
_OFFERED: Final = re.compile(r"^- ([\w-]+):", re.MULTILINE)


class KeepsNotes(AgentMiddleware):
    """Gives an agent the state of the teams that keep notes."""

    state_schema = Notes


class Copes(AgentMiddleware):
    """Makes an answer of a tool's failure."""

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        """Run the tool."""
        try:
            return await handler(request)
        except GraphBubbleUp:
            raise
        except Exception as fault:
            return ToolMessage(f"failed: {fault}", tool_call_id=request.tool_call["id"])


class IsolatedHost(Builder):
    """Subagents that see their task and nothing else."""

    name = "deepagents isolated"
    forms: frozenset[Form] = frozenset({"call", "question"})
    contracts: Mapping[str, Any] = {**_DELEGATED, "mode": "isolated", "context": "isolated"}
    packages: ClassVar[Sequence[str]] = ("deepagents", *Builder.packages)
    ignored_tools = frozenset(
        ["write_todos", "ls", "read_file", "write_file", "edit_file", "glob", "grep", "execute", "delete"]
    )

    def plugins(self) -> list[object]:
        """Return the adapters, where they were not installed as plugins."""
        from . import _plugin

        return [*super().plugins(), *([] if "deepagents" in Plugins().names else [_plugin])]

    def native(self, call: Call) -> tuple[str, dict[str, Any]]:
        """Delegations are calls of `task`."""
        if call.task is not None:
            return "task", {"description": call.task, "subagent_type": call.name}
        return super().native(call)

    def delegation(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, str | None] | None:
        """Tell a delegation from a call of a tool."""
        if name == "task" and "subagent_type" in arguments:
            return str(arguments["subagent_type"]), arguments.get("description")
        return None

    def task(self, text: str) -> str:
        """Take off what deepagents puts before a fork's task."""
        return _FRAMING.sub("", text)

    def offered(self, tool: str, description: str) -> list[str]:
        """Return a tool's name, or the agents that `task` offers; the general-purpose one is deepagents' own."""
        if tool == "task":
            return [f"-> {name}" for name in _OFFERED.findall(description) if name != "general-purpose"]
        return super().offered(tool, description)

    def graph(self, scenario: Scenario) -> tuple[Any, list[Any]]:
        """Return the native graph, and the list that its models' requests go to."""
        log: list[Any] = []
        root = scenario.agents[str(scenario.root)]
        return self._deep(root, scenario, log, checkpointer=InMemorySaver()), log

    def _deep(self, agent: Agent, scenario: Scenario, log: list[Any], **options: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LangChainBetaWarning)  # forks are in beta
            return create_deep_agent(
                self.model(agent, log),
                self.tools(agent, log),
                system_prompt=f"You are {agent.name}.",
                subagents=[self._subagent(scenario.agents[name], scenario, log) for name in agent.delegates],
                middleware=[KeepsNotes(), *([Copes()] if agent.copes else [])],
                name=agent.name,
                **options,
            )

    def _subagent(self, agent: Agent, scenario: Scenario, log: list[Any]) -> Any:
        described = {"name": agent.name, "description": f"Does {agent.name}."}
        if agent.delegates:
            return {**described, "runnable": self._deep(agent, scenario, log)}
        return {
            **described,
            "system_prompt": f"You are {agent.name}.",
            "model": self.model(agent, log),
            "tools": self.tools(agent, log),
            "middleware": [KeepsNotes()],
        }


class ForkHost(IsolatedHost):
    """Subagents that see their caller's conversation, then their task."""

    name = "deepagents fork"
    contracts: Mapping[str, Any] = {**_DELEGATED, "mode": "fork", "context": "fork"}
    fork = True

    def contract(self, agent: Agent) -> Mapping[str, Any] | None:
        """A fork cannot delegate, unless it was compiled, as those that have subagents of their own are."""
        return self.contracts if agent.delegates else {**self.contracts, "leaf": True}

    def _subagent(self, agent: Agent, scenario: Scenario, log: list[Any]) -> Any:
        spec = super()._subagent(agent, scenario, log)
        spec.pop("system_prompt", None)  # it has its caller's
        spec["mode"] = "fork"
        return spec


def hosts() -> list[Builder]:
    """Return the hosts."""
    return [IsolatedHost(), ForkHost()]
