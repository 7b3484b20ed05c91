"""Google ADK as hosts of the conformance suite: chat, task, single_turn, AgentTool, workflow agents, Workflow.

Every scenario becomes the app that an ADK user would write, with models that follow the script.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final

from byline import attribute
from byline.agent import Agent as Attributed
from byline.agent import Run
from byline.events import RunAgentInput
from byline.hooks import Plugins
from byline.testing.host import Declared, Request, instructions
from byline.testing.scenario import Agent, Call, Chain, Form, Loop, Parallel, Scenario, Tool, Turn
from byline.testing.scenarios import SCENARIOS
from google.adk.agents import LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.agents.run_config import RunConfig, StreamingMode  # type: ignore[attr-defined,unused-ignore]
from google.adk.apps import App
from google.adk.apps.app import ResumabilityConfig
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext
from google.adk.workflow import START, JoinNode, Workflow, node
from google.genai import types

from . import _declared
from ._compat import can
from .scripted import Say, ScriptedLlm

__all__ = [
    "AgentToolHost",
    "ChatHost",
    "SingleTurnHost",
    "TaskHost",
    "WorkflowAgentsHost",
    "WorkflowHost",
    "hosts",
]

_CONTEXT: Final = "For context:"
_SAID: Final = re.compile(r"^\[\w+\] said:\s(?:<<<\w+>>>\n)?(.*?)(?:\n<<<\w+>>>)?$", re.DOTALL)
_ID: Final = re.compile(r"adk-[0-9a-f-]{36}")
_OWN: Final = frozenset({"transfer_to_agent", "finish_task", "set_model_response"})


class ScenarioLlm(ScriptedLlm):
    """Follows an agent of a scenario: the next of its turns that the conversation does not hold yet."""

    agent: Any
    log: Any
    """Where every request goes, as (agent, request)."""
    say: Any
    """How the framework spells a turn: a function that makes a `Say` of it."""

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: FBT001, FBT002 - the signature is ADK's
    ) -> AsyncGenerator[LlmResponse, None]:
        """Say the turn that the conversation has come to."""
        self.log.append((self.agent, llm_request))
        turn = next_turn(self.agent, self.say, llm_request.contents)
        self.script = lambda _: self.say(turn)
        async for response in super().generate_content_async(llm_request, stream and self.agent.streams):
            if turn.hangs and stream and not response.partial:
                await asyncio.Event().wait()
            yield response
        if turn.hangs:
            await asyncio.Event().wait()


def next_turn(agent: Agent, say: Callable[[Turn], Say], contents: Sequence[types.Content]) -> Turn:
    """Return the turn that a conversation has come to."""
    asked = next((text for one in reversed(contents) if one.role == "user" and (text := _words(one))), "")
    turns = next((turns for key, turns in agent.on.items() if key in asked), agent.turns)
    own = [(turn.text, [name for _, name, _ in say(turn).calls]) for turn in turns]
    said = sum((_words(one), _calls(one)) in own for one in contents if one.role == "model")
    return turns[min(said, len(turns) - 1)]


def _words(content: types.Content) -> str:
    parts = [part.text for part in content.parts or () if part.text and not part.thought]
    return "" if parts and parts[0].startswith(_CONTEXT) else "".join(parts)


def _calls(content: types.Content) -> list[str | None]:
    return [part.function_call.name for part in content.parts or () if part.function_call]


class AdkStage:
    """An app under attribution."""

    def __init__(self, target: Any, log: list[Any], host: "Builder", scenario: Scenario) -> None:
        self.agent: Final[Attributed] = attribute(
            target, plugins=host.plugins(), visibility=dict(scenario.visibility)
        )
        self._log: Final = log
        self._host: Final = host
        self._scenario: Final = scenario

    def run(self, run_input: RunAgentInput) -> Run:
        """Run the app."""
        return self.agent.run(run_input)

    def requests(self) -> Sequence[Request]:
        """Return what the models received."""
        return [self._host.request(agent, request, self._scenario) for agent, request in self._log]


class Builder:
    """What the hosts share: how models, tools and agents are made, and how calls are spelled."""

    name: str
    forms: frozenset[Form]
    fork = False
    results = False  # an invocation has a result only where ADK has a value for it
    differs: Callable[[_declared.Native], Mapping[str, Declared]] = staticmethod(_declared.nothing)
    """What its declared cells are, of a function that runs a scenario without byline."""
    contracts: Mapping[str, Any] | None = None
    versions: Mapping[str, str] = {name: version(name) for name in ("google-adk", "google-genai")}

    @property
    def declared(self) -> Mapping[str, Declared]:
        """The cells that are not as the scenario says."""
        return self.differs(self.native_events)

    async def native_events(
        self, name: str, approve: str | None = None
    ) -> tuple[list[Any], BaseException | None]:
        """Run the first turn of a scenario without byline; return the events, and what was raised.

        With `approve`, also the turn after it, in which what that agent asked for is approved; its events alone.
        """
        runner, _ = self.runner(next(one for one in SCENARIOS if one.name == name))
        session = await runner.session_service.create_session(app_name="team", user_id="user")
        events, fault = await self._turn(runner, session.id, types.Part(text="go"))
        if approve is None:
            return events, fault
        asked = next(
            part.function_call
            for event in events
            if event.author == approve and event.content
            for part in event.content.parts or ()
            if part.function_call and part.function_call.name == "adk_request_confirmation"
        )
        given = types.FunctionResponse(id=asked.id, name=asked.name, response={"confirmed": True})
        return await self._turn(runner, session.id, types.Part(function_response=given))

    async def _turn(
        self, runner: Runner, session: str, part: types.Part
    ) -> tuple[list[Any], BaseException | None]:
        events: list[Any] = []
        config = RunConfig(streaming_mode=StreamingMode.SSE)
        message = types.Content(role="user", parts=[part])
        try:
            async for event in runner.run_async(
                user_id="user", session_id=session, new_message=message, run_config=config
            ):
                events.append(event)  # noqa: PERF401 - what came before a failure counts
        except Exception as fault:
            return events, fault
        return events, None

    def plugins(self) -> list[object]:
        """Return the adapter, where it was not installed as a plugin."""
        from . import _plugin

        return [] if "adk" in Plugins().names else [_plugin]

    def contract(self, agent: Agent) -> Mapping[str, Any] | None:  # noqa: ARG002
        """Return what an announcement says."""
        return self.contracts

    # -- the dialect -------------------------------------------------------------------------------------------------

    def native(self, call: Call) -> tuple[str, dict[str, Any]]:
        """Return how a call of the scenario is made here."""
        if call.handoff:
            return "transfer_to_agent", {"agent_name": call.name}
        if call.task is not None:
            return call.name, {"request": call.task}
        return call.name, dict(call.arguments)

    def delegation(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, str | None] | None:
        """Tell a delegation from a call of a tool."""
        if name == "transfer_to_agent":
            return str(arguments.get("agent_name")), None
        return (name, arguments["request"]) if set(arguments) == {"request"} else None

    def answer(self, content: Any) -> Any:
        """ADK wraps what is no object as `{"result": value}`; ids that differ from run to run are left out."""
        value = content["result"] if isinstance(content, Mapping) and set(content) == {"result"} else content
        return _ID.sub("adk-...", value) if isinstance(value, str) else value

    def payload(self, value: Any, interrupt: Mapping[str, Any]) -> Any:  # noqa: ARG002
        """An approval is a confirmation."""
        return {"confirmed": bool(value)}

    def request(self, agent: Agent, request: LlmRequest, scenario: Scenario) -> Request:
        """Tell what a model received in the scenario's words."""
        lines = [line for content in request.contents for line in self._lines(content)]
        system = request.config.system_instruction if request.config else ""
        tools = [name for name in request.tools_dict if name not in _OWN]
        offered = [f"-> {name}" if name in scenario.agents else name for name in tools]
        return Request(agent.name, lines, instructions(str(system or "")), offered)

    def _lines(self, content: types.Content) -> list[str]:
        lines: list[str] = []
        texts = [part.text for part in content.parts or () if part.text and not part.thought]
        if texts and texts[0].startswith(_CONTEXT):
            lines += [f"said: {found[1]}" for text in texts[1:] if (found := _SAID.match(text))]
        elif texts:
            lines.append(f"{'said' if content.role == 'model' else 'user'}: {_task(''.join(texts))}")
        for part in content.parts or ():
            if part.function_call is not None:
                lines.append(f"called: {self._call(part.function_call)}")
            if part.function_response is not None:
                lines.append(f"heard: {self.answer(part.function_response.response)}")
        return lines

    def _call(self, call: types.FunctionCall) -> str:
        arguments = call.args or {}
        delegation = self.delegation(str(call.name), arguments)
        if delegation is None:
            return f"{call.name} {json.dumps(arguments, ensure_ascii=False)}"
        agent, task = delegation
        return f"hand over to {agent}" if task is None else f"{agent} {task!r}"

    # -- parts -------------------------------------------------------------------------------------------------------

    def say(self, turn: Turn) -> Say:
        """Return a turn as the scripted model takes it."""
        usage = None
        if turn.cost is not None:
            usage = types.GenerateContentResponseUsageMetadata(
                prompt_token_count=turn.cost.input,
                candidates_token_count=turn.cost.output,
                cached_content_token_count=turn.cost.cached or None,
                total_token_count=turn.cost.input + turn.cost.output,
            )
        calls = [(call.id, *self.native(call)) for call in turn.calls]
        fails = None if turn.fails is None else RuntimeError(turn.fails)
        return Say(turn.text, calls, turn.reasoning, usage, fails)

    def model(self, agent: Agent, log: list[Any], say: Callable[[Turn], Say] | None = None) -> ScenarioLlm:
        """Return the model that follows `agent`."""
        return ScenarioLlm(
            model=agent.model, provider=agent.provider, script=None, agent=agent, log=log, say=say or self.say
        )

    def tool(self, tool: Tool, log: list[Any]) -> FunctionTool:
        """Return a tool of the scenario."""

        async def run(q: str, tool_context: ToolContext) -> str:
            if tool.model is None:
                for key, value in tool.writes.items():
                    tool_context.state[key] = value
                return tool.answer
            helper = self.model(Agent("helper", [Turn(tool.model)]), log)
            asked = types.Content(role="user", parts=[types.Part(text=q)])
            said = ""
            async for response in helper.generate_content_async(LlmRequest(contents=[asked])):
                said += _words(response.content) if response.content else ""
            return said

        run.__name__ = tool.name
        run.__doc__ = tool.name
        return FunctionTool(run, require_confirmation=tool.approval)

    def agent(
        self, agent: Agent, log: list[Any], say: Callable[[Turn], Say] | None = None, **options: Any
    ) -> LlmAgent:
        """Return an agent of ADK."""
        tools = [*(self.tool(tool, log) for tool in agent.tools), *options.pop("tools", ())]
        return LlmAgent(
            name=agent.name,
            description=f"Does {agent.name}.",
            instruction=f"You are {agent.name}.",
            model=self.model(agent, log, say),
            tools=tools,
            **options,
        )

    def root(self, scenario: Scenario, log: list[Any]) -> Any:
        """Return the native root of a scenario."""
        raise NotImplementedError(f"{type(self).__name__} has no root for {scenario.name}")

    def runner(self, scenario: Scenario) -> tuple[Runner, list[Any]]:
        """Return the native runner, and the list that its models' requests go to."""
        log: list[Any] = []
        app = App(name="team", root_agent=self.root(scenario, log), **self.app_options())
        return Runner(app=app, session_service=InMemorySessionService()), log

    def app_options(self) -> dict[str, Any]:
        """Return what else the app needs."""
        return {}

    def build(self, scenario: Scenario) -> AdkStage:
        """Build the app, and put it under attribution."""
        return AdkStage(*self.runner(scenario), self, scenario)


def _task(text: str) -> str:
    """Return a task without the JSON that a task agent gets it in."""
    try:
        given = json.loads(text)
    except ValueError:
        return text
    return str(given["request"]) if isinstance(given, dict) and set(given) == {"request"} else text


class SingleTurnHost(Builder):
    """Sub-agents that answer once."""

    differs = staticmethod(_declared.single_turn)
    name = "adk single_turn"
    forms: frozenset[Form] = frozenset({"call"})
    contracts: Mapping[str, Any] = {
        "framework": "adk",
        "mode": "single_turn",
        "context": "isolated",
        "interaction": "none",
        **({"approvals": True} if can("approval") else {}),
        "returns": "automatic",
        "concurrency": "parallel",
    }
    mode = "single_turn"

    def root(self, scenario: Scenario, log: list[Any]) -> Any:
        """Return the team from the root down."""
        return self._team(scenario.agents[str(scenario.root)], scenario, log)

    def _team(self, agent: Agent, scenario: Scenario, log: list[Any], **options: Any) -> LlmAgent:
        delegates = [self._delegate(scenario.agents[name], scenario, log) for name in agent.delegates]
        return self.agent(agent, log, sub_agents=delegates, **options)

    def _delegate(self, agent: Agent, scenario: Scenario, log: list[Any]) -> LlmAgent:
        return self._team(agent, scenario, log, mode=self.mode)


class TaskHost(SingleTurnHost):
    """Sub-agents that work until they say that they are done."""

    differs = staticmethod(_declared.task)
    name = "adk task"
    forms: frozenset[Form] = frozenset({"call", "ask"})
    contracts: Mapping[str, Any] = {
        "framework": "adk",
        "mode": "task",
        "context": "isolated",
        "interaction": "clarify",
        "approvals": True,
        "returns": "automatic",
        "concurrency": "serial",
        **({} if can("nested_task") else {"leaf": True}),
    }
    mode = "task"
    results = True

    def _delegate(self, agent: Agent, scenario: Scenario, log: list[Any]) -> LlmAgent:
        return self._team(agent, scenario, log, mode=self.mode, say=self._say_and_finish)

    def _say_and_finish(self, turn: Turn) -> Say:
        """A task ends with a call of `finish_task`; words alone are a question."""
        say = self.say(turn)
        if turn.calls or turn.question or turn.fails or turn.hangs:
            return say
        return Say(say.text, [(None, "finish_task", {"result": turn.text})], say.thought, say.usage)


class AgentToolHost(SingleTurnHost):
    """Agents that are called as tools, each in a session of its own."""

    differs = staticmethod(_declared.agent_tool)
    name = "adk AgentTool"
    contracts: Mapping[str, Any] = {
        "framework": "adk",
        "mode": "agent_tool",
        "context": "isolated",
        "interaction": "none",
        "approvals": False,
        "returns": "automatic",
        "concurrency": "parallel",
    }

    def _team(self, agent: Agent, scenario: Scenario, log: list[Any], **options: Any) -> LlmAgent:
        tools = [AgentTool(self._team(scenario.agents[name], scenario, log)) for name in agent.delegates]
        if agent.copes:
            options["on_tool_error_callback"] = _cope
        return self.agent(agent, log, tools=tools, **options)


def _cope(*, error: Exception, **_: Any) -> dict[str, str]:
    return {"result": f"failed: {error}"}


class ChatHost(SingleTurnHost):
    """Sub-agents that the conversation is handed over to."""

    differs = staticmethod(_declared.nothing)
    name = "adk chat"
    forms: frozenset[Form] = frozenset({"transfer"})
    contracts: Mapping[str, Any] = {
        "framework": "adk",
        "mode": "chat",
        "context": "shared",
        "interaction": "full",
        "approvals": True,
        "returns": "manual",
        "concurrency": "serial",
    }
    mode = "chat"


class WorkflowAgentsHost(Builder):
    """SequentialAgent, ParallelAgent and LoopAgent."""

    differs = staticmethod(_declared.workflow_agents)
    name = "adk workflow agents"
    contracts: Mapping[str, Any] = {
        "framework": "adk",
        "mode": "workflow_agent",
        "context": "shared",
        "returns": "onward",
    }
    forms: frozenset[Form] = frozenset({"graph"})

    def root(self, scenario: Scenario, log: list[Any]) -> Any:
        """Return a sequence of the nodes."""
        assert isinstance(scenario.root, Chain)  # noqa: S101
        made = {name: self.agent(agent, log) for name, agent in scenario.agents.items()}
        return SequentialAgent(name="team", sub_agents=[self._part(one, made) for one in scenario.root.nodes])

    def _part(self, part: str | Parallel | Loop, made: Mapping[str, LlmAgent]) -> Any:
        if isinstance(part, Parallel):
            return ParallelAgent(name="at_once", sub_agents=[made[name] for name in part.agents])
        if isinstance(part, Loop):
            return LoopAgent(name="again", max_iterations=part.times, sub_agents=[made[part.agent]])
        return made[part]

    def app_options(self) -> dict[str, Any]:
        """Without this a sequence does not go on after an approval."""
        return {"resumability_config": ResumabilityConfig(is_resumable=True)}


class WorkflowHost(Builder):
    """Nodes of a Workflow."""

    differs = staticmethod(_declared.workflow)
    name = "adk Workflow"
    contracts: Mapping[str, Any] = {
        "framework": "adk",
        "mode": "single_turn",
        "context": "isolated",
        "interaction": "none",
        **({"approvals": True} if can("approval") else {}),
        "returns": "onward",
    }
    forms: frozenset[Form] = frozenset({"graph"})

    def root(self, scenario: Scenario, log: list[Any]) -> Any:
        """Return a workflow of the nodes."""
        assert isinstance(scenario.root, Chain)  # noqa: S101
        made = {name: self.agent(agent, log) for name, agent in scenario.agents.items()}
        chain: list[Any] = [START]
        for part in scenario.root.nodes:
            chain += self._part(part, made)
        return Workflow(name="team", edges=[tuple(chain)])

    def _part(self, part: str | Parallel | Loop, made: Mapping[str, LlmAgent]) -> list[Any]:
        if isinstance(part, Parallel):
            return [tuple(made[name] for name in part.agents), JoinNode(name="join")]
        if isinstance(part, Loop):
            agent, times = made[part.agent], part.times

            async def again(ctx: Any, node_input: Any) -> Any:
                for _ in range(times):
                    node_input = await ctx.run_node(agent, node_input)
                return node_input

            return [node(again, rerun_on_resume=True)]
        return [made[part]]


def hosts() -> list[Builder]:
    """Return the hosts."""
    return [SingleTurnHost(), TaskHost(), AgentToolHost(), ChatHost(), WorkflowAgentsHost(), WorkflowHost()]
