"""Deep agents for the kit: teams, what their invocations declare, and a model that simulates a prompt cache.

A line of the kit tells a contract by its name: `isolated`, or `fork(3; files)` for a fork that inherited three
messages and the state key `files`.
"""

import json
import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import kit
from byline_deepagents import _plugin as deep_plugin
from byline_langgraph import _plugin as langgraph_plugin
from byline_langgraph.scripted import Say, ScriptedModel
from deepagents import create_deep_agent
from kit import model
from langchain_core._api.beta_decorator import LangChainBetaWarning

DELEGATED = {
    "framework": "deepagents",
    "interaction": "none",
    "approvals": True,
    "returns": "automatic",
    "concurrency": "parallel",
}


class Trace(kit.Trace):
    def add(self, event: Any) -> None:
        super().add(event)
        self.names.meet(event)

    def opening(self, e: dict[str, Any]) -> str:
        contract = dict(e["metadata"]["byline"])
        contract.pop("langchainRunId", None)
        inherited = contract.pop("inheritedMessages", None), contract.pop("inheritedState", None)
        mode = contract.pop("mode")
        leaf = contract.pop("leaf", None)
        if contract == {**DELEGATED, "context": mode}:
            name = mode if mode == "isolated" else f"{mode}({inherited[0]}; {' '.join(inherited[1])})"
            kit.CONTRACTS[name] = e["metadata"]["byline"]
            text = super().opening(e)
            del kit.CONTRACTS[name]
            given = {k: v for k, v in e["metadata"]["byline"].items() if k != "langchainRunId"}
            text = text.replace(f"as {kit.value(given)}", f"as {name}")
            return (
                text
                if leaf is (True if mode == "fork" else None)
                else text.replace(name, f"{name} that may delegate")
            )
        return super().opening(e)

    @property
    def caches(self) -> dict[str, Any]:
        """What the terminal event says of each invocation's prompts."""
        metadata = self.events[-1].metadata or {}
        entries = metadata.get("byline", {}).get("promptCache", [])
        return {
            self.names.short[one["subagentRunId"]]: {k: v for k, v in one.items() if k != "subagentRunId"}
            for one in entries
        }

    @property
    def interrupts(self) -> list[dict[str, Any]]:
        """The interrupts the run ended with, as on the wire, with short names."""
        wire = self.events[-1].model_dump(by_alias=True, mode="json", exclude_none=True)
        text = json.dumps(wire["outcome"].get("interrupts", []))
        return json.loads(self.names.rename(text))

    @property
    def history(self) -> list[dict[str, Any]]:
        """The messages that a client has made of the events."""
        messages: dict[str, dict[str, Any]] = {}
        for event in self.events:
            e = event.model_dump(by_alias=True, mode="json", exclude_none=True)
            tag = {"subagentRunId": e["subagentRunId"]} if "subagentRunId" in e else {}
            match e["type"]:
                case "TEXT_MESSAGE_START":
                    messages[e["messageId"]] = {
                        "id": e["messageId"],
                        "role": "assistant",
                        "content": "",
                        **tag,
                    }
                case "TEXT_MESSAGE_CONTENT":
                    messages[e["messageId"]]["content"] += e["delta"]
                case "TOOL_CALL_START":
                    held = messages.setdefault(
                        e["parentMessageId"], {"id": e["parentMessageId"], "role": "assistant", **tag}
                    )
                    function = {"name": e["toolCallName"], "arguments": ""}
                    held.setdefault("toolCalls", []).append(
                        {"id": e["toolCallId"], "type": "function", "function": function}
                    )
                case "TOOL_CALL_ARGS":
                    for message in messages.values():
                        for one in message.get("toolCalls", ()):
                            if one["id"] == e["toolCallId"]:
                                one["function"]["arguments"] += e["delta"]
                case "TOOL_CALL_RESULT":
                    messages[e["messageId"]] = {
                        "id": e["messageId"],
                        "role": "tool",
                        "toolCallId": e["toolCallId"],
                        "content": e["content"],
                        **tag,
                    }
        return list(messages.values())


class Play(kit.Play):
    """The kit's play, with the deepagents adapter."""

    def __init__(self, target: Any, *, plugins: Iterable[Any] = (), **options: Any) -> None:
        super().__init__(target, plugins=[*_plugins(), *plugins], **options)

    async def read(self, run: Any) -> Trace:
        trace = Trace(self.names, run)
        async for event in run:
            self.names.meet(event)
            trace.add(event)
        kit.judge(trace.events)
        return trace


def _plugins() -> list[Any]:
    from byline.hooks import Plugins

    known = Plugins().names
    return [] if "deepagents" in known else [deep_plugin]


assert langgraph_plugin  # the kit brings it


def deep(
    *turns: Say | str | ScriptedModel,
    subagents: Iterable[Any] = (),
    name: str | None = "main",
    **options: Any,
) -> Any:
    """A deep agent that follows a script."""
    given = turns[0] if turns and not isinstance(turns[0], Say | str) else model(*turns)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", LangChainBetaWarning
        )  # forks are in beta, which is not the tests' matter
        return create_deep_agent(given, subagents=list(subagents), name=name, **options)


def sub(name: str, *turns: Say | str, relay: Any = None, **spec: Any) -> dict[str, Any]:
    """An isolated subagent; with a relay, its words wait for their turn."""
    return {
        "name": name,
        "description": f"Does {name}.",
        "system_prompt": f"You are {name}.",
        "model": model(*turns, **_paced(name, relay)),
        "tools": [],
        **spec,
    }


def fork(name: str, *turns: Say | str, relay: Any = None, **spec: Any) -> dict[str, Any]:
    """A fork that changes nothing of what its parent has."""
    follows = model(*turns, **_paced(name, relay))
    return {"name": name, "description": f"Does {name}.", "mode": "fork", "model": follows, **spec}


def _paced(name: str, relay: Any) -> dict[str, Any]:
    return {} if relay is None else {"who": name, "relay": relay}


def compiled(name: str, runnable: Any, **spec: Any) -> dict[str, Any]:
    return {"name": name, "description": f"Does {name}.", "runnable": runnable, **spec}


def task(id_: str, kind: str, description: str = "do it") -> tuple[str, str, dict[str, Any]]:
    return (id_, "task", {"description": description, "subagent_type": kind})


class CachingModel(ScriptedModel):
    """A scripted model of a provider that caches prompts.

    It takes its tools as real ones do, with the request.  A request is read as a list of pieces: the model's name,
    each tool, the system prompt, each message; a word is a token, and what begins like an earlier request is cached.
    """

    earlier: Any
    """The requests so far, shared by the models of one provider."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        from langchain_core.utils.function_calling import convert_to_openai_tool

        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _spend(self, messages: Any, tools: Any) -> dict[str, Any]:
        pieces = [self.model_name, *map(json.dumps, tools)]
        pieces += [f"{one.type}: {one.text} {json.dumps(getattr(one, 'tool_calls', []))}" for one in messages]
        kept = 0
        for former in self.earlier:
            common = 0
            while common < min(len(pieces), len(former)) and pieces[common] == former[common]:
                common += 1
            kept = max(kept, common)
        self.earlier.append(pieces)
        count = [len(piece.split()) for piece in pieces]
        read = sum(count)
        details = {"cache_read": sum(count[:kept])}
        return {
            "input_tokens": read,
            "output_tokens": 1,
            "total_tokens": read + 1,
            "input_token_details": details,
        }

    async def _astream(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        turn = replace(self._turn(messages), usage=self._spend(messages, kwargs.get("tools") or []))
        for chunk in self._pieces(turn):
            if run_manager:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk


def caching(cache: list[Any], *turns: Say | str) -> CachingModel:
    return CachingModel(
        script=[Say(t) if isinstance(t, str) else t for t in turns], requests=[], earlier=cache
    )
