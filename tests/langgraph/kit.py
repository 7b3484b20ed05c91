"""Runs a graph under attribution and renders the whole stream as a few literal lines.

    start
    main says m1: 'main thinking'
    main calls call_A in m1: ask_alpha {"q": "qa"}
    alpha#1 opens as tool for main, call call_A in m1
    alpha#1 says m2: 'alpha answers'
    alpha#1 returns 'alpha answers'
    main hears call_A: 'alpha answers'
    main says m3: 'main done'
    end

One line is one item.  An item that is not told in one piece, because another spoke in between, is told in several:
`m2+` is still open, `+m2+` goes on and stays open, `+m2` goes on and ends.  What a run makes up is renamed in the
order of its appearance: message ids `m1`, `m2`, interrupts `i1`, invocations `alpha#1`, `alpha#2`.  Everything else
is told as it is, so that an expectation is one literal list, compared for equality.
"""

import asyncio
import json
import re
from collections.abc import Iterable
from typing import Any

import pytest
from ag_ui.core import BaseEvent, EventType, RunAgentInput
from byline import attribute
from byline.validator import Validator
from byline_langgraph import _plugin
from byline_langgraph.scripted import Say, ScriptedModel
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import tool as as_tool
from langgraph.types import Command

CONTRACTS = {
    "something": {"framework": "langgraph"},
    "tool": {
        "framework": "langgraph",
        "mode": "tool",
        "context": "isolated",
        "interaction": "none",
        "approvals": True,
        "returns": "automatic",
        "concurrency": "parallel",
    },
    "subgraph": {
        "framework": "langgraph",
        "mode": "subgraph",
        "context": "shared",
        "interaction": "none",
        "approvals": True,
        "returns": "onward",
    },
    "handoff": {
        "framework": "langgraph",
        "mode": "handoff",
        "context": "shared",
        "interaction": "full",
        "approvals": True,
        "returns": "manual",
        "concurrency": "serial",
    },
    "handoff and back": {
        "framework": "langgraph",
        "mode": "handoff",
        "context": "shared",
        "interaction": "full",
        "approvals": True,
        "returns": "automatic",
        "concurrency": "serial",
    },
}


class Names:
    """Short names for ids that differ from run to run, kept over all runs of one play."""

    def __init__(self) -> None:
        self.short: dict[str, str] = {}
        self.count: dict[str, int] = {}

    def give(self, native: str, stem: str, mark: str = "") -> str:
        if native not in self.short:
            self.count[stem] = self.count.get(stem, 0) + 1
            self.short[native] = f"{stem}{mark}{self.count[stem]}"
        return self.short[native]

    def meet(self, event: BaseEvent) -> None:
        """Name what `event` announces."""
        if event.type is EventType.SUBAGENT_STARTED:
            self.give(event.subagent_run_id, event.name, "#")
        for one in getattr(getattr(event, "outcome", None), "interrupts", None) or ():
            self.give(one.id, "i")

    def native(self, short: str) -> str:
        return next(native for native, given in self.short.items() if given == short)

    def rename(self, line: str) -> str:
        line = re.sub(r"lc_run--[0-9a-f-]{36}(-\d)?", lambda hit: self.give(hit.group(), "m"), line)
        for native in sorted(self.short, key=len, reverse=True):
            line = line.replace(native, self.short[native])
        return line


def value(it: Any) -> str:
    return json.dumps(it, ensure_ascii=False) if isinstance(it, dict | list) else repr(it)


class Trace:
    """One run: its events as lines."""

    def __init__(self, names: Names, run: Any = None) -> None:
        self.names = names
        self.run = run
        self.events: list[BaseEvent] = []
        self.left_out = {EventType.STEP_STARTED, EventType.STEP_FINISHED}

    def add(self, event: BaseEvent) -> None:
        self.events.append(event)

    @property
    def lines(self) -> list[str]:
        """Every event but the steps."""
        return self.tell(event for event in self.events if event.type not in self.left_out)

    @property
    def all(self) -> list[str]:
        """Every event."""
        return self.tell(self.events)

    @property
    def lanes(self) -> dict[str, list[str]]:
        """The lines by who did it, for what really runs at the same time; the run's own stand under `run`.

        Messages are numbered owner by owner: the parent's, then the subagents' in the order of their names.
        """
        by: dict[str, list[str]] = {}
        owners = [self.owner_of(event) for event in self.events]
        for owner in sorted(set(owners), key=lambda owner: (owner not in ("run", "main"), owner)):
            mine = [
                event
                for event, whose in zip(self.events, owners, strict=True)
                if whose == owner and event.type not in self.left_out
            ]
            if mine:
                by[owner] = [line.removeprefix(owner + " ") for line in self.tell(mine)]
        return by

    def owner_of(self, event: BaseEvent) -> str:
        if event.type in (EventType.RUN_STARTED, EventType.RUN_FINISHED, EventType.RUN_ERROR):
            return "run"
        tag = getattr(event, "subagent_run_id", None)
        return "main" if tag is None else self.names.short[tag]

    def tell(self, events: Iterable[BaseEvent]) -> list[str]:
        lines: list[str] = []
        item: Item | None = None
        for event in events:
            wire = event.model_dump(by_alias=True, mode="json", exclude_none=True)
            key = Item.key(wire)
            if item is not None and item.it != key:
                lines.append(item.line())
                item = None
            if key is None:
                lines.append(self.line(wire))
            else:
                item = item or Item(key, wire)
                item.add(wire)
        if item is not None:
            lines.append(item.line())
        return [self.names.rename(line) for line in lines]

    def line(self, e: dict[str, Any]) -> str:
        kind, who = e["type"], e.get("subagentRunId", "main")
        match kind:
            case "RUN_STARTED":
                return "start"
            case "RUN_FINISHED":
                return self.end(e)
            case "RUN_ERROR":
                return f"run fails {e.get('code')}: {e['message']}" + self.account(e)
            case "SUBAGENT_STARTED":
                return f"{who} opens {self.opening(e)}"
            case "SUBAGENT_FINISHED":
                if e.get("outcome", {}).get("type") == "suspended":
                    return f"{who} suspends " + ", ".join(
                        e["outcome"].get("interruptIds", ["without asking"])
                    )
                return f"{who} returns {value(e.get('result'))}"
            case "SUBAGENT_ERROR":
                return f"{who} fails {e.get('code')}: {e['message']}"
            case "TOOL_CALL_RESULT":
                own = "" if e["messageId"] == e["toolCallId"] + ":result" else f" as {e['messageId']}"
                return f"{who} hears {e['toolCallId']}{own}: {value(e['content'])}"
            case "STEP_STARTED":
                return f"{who} step +{e['stepName']}"
            case "STEP_FINISHED":
                return f"{who} step -{e['stepName']}"
            case "STATE_SNAPSHOT":
                return f"{who} state {value(e['snapshot'])}"
            case "STATE_DELTA":
                return f"{who} patch {value(e['delta'])}"
            case "CUSTOM":
                return f"{who} custom {e['name']}: {value(e['value'])}"
            case "ACTIVITY_SNAPSHOT":
                return f"{who} activity {e['messageId']} {e['activityType']}: {value(e['content'])}"
        return f"{who} {kind} {value(e)}"

    def opening(self, e: dict[str, Any]) -> str:
        contract = dict(e.get("metadata", {}).get("byline", {}))
        contract.pop("langchainRunId", None)
        known = [name for name, axes in CONTRACTS.items() if axes == contract]
        text = f"as {known[0] if known else value(contract)}"
        text += f" for {e.get('parentSubagentRunId', 'main')}"
        if "parentToolCallId" in e:
            text += f", call {e['parentToolCallId']} in {e.get('parentMessageId')}"
        if "description" in e:
            text += f", {e['description']!r}"
        return text

    def end(self, e: dict[str, Any]) -> str:
        outcome = e["outcome"]
        text = {"success": "end", "cancelled": "cancelled", "interrupt": "waits"}[outcome["type"]]
        if "pendingToolCallIds" in outcome:
            text += " pending " + ", ".join(outcome["pendingToolCallIds"])
        for one in outcome.get("interrupts", ()):
            text += f" [{one['id']} {one.get('subagentRunId', 'main')} {one['reason']}"
            text += f" {one['message']!r}" if "message" in one else ""
            text += f" on {one['toolCallId']}" if "toolCallId" in one else ""
            text += "]"
        if "result" in e:
            text += f" result {value(e['result'])}"
        return text + self.account(e)

    def account(self, e: dict[str, Any]) -> str:
        text = "".join(f" usage {value(one)}" for one in e.get("usage", ()))
        text += "".join(
            f" of {value(one)}" for one in e.get("metadata", {}).get("byline", {}).get("usage", ())
        )
        return text


class Item:
    """Adjacent events of one message, one thought or one call."""

    FAMILIES = {"TEXT_MESSAGE": "says", "REASONING": "thinks", "TOOL_CALL": "calls"}

    def __init__(self, it: tuple[str, str], wire: dict[str, Any]) -> None:
        self.it = it
        self.who = wire.get("subagentRunId", "main")
        self.text = ""
        self.head = ""
        self.opened = self.closed = False

    @staticmethod
    def key(wire: dict[str, Any]) -> tuple[str, str] | None:
        kind = wire["type"]
        if kind == "TOOL_CALL_RESULT":
            return None
        for prefix, verb in Item.FAMILIES.items():
            if kind.startswith(prefix):
                # A message that ended and goes on is another piece, not the same one.
                return verb, wire.get("messageId") or wire["toolCallId"]
        return None

    def add(self, wire: dict[str, Any]) -> None:
        kind = wire["type"]
        self.text += wire.get("delta", "")
        self.opened = self.opened or kind in ("TEXT_MESSAGE_START", "TOOL_CALL_START", "REASONING_START")
        self.closed = kind in ("TEXT_MESSAGE_END", "TOOL_CALL_END", "REASONING_END")
        if kind == "TOOL_CALL_START":
            self.head = f" in {wire.get('parentMessageId')}: {wire['toolCallName']}"

    def line(self) -> str:
        verb, id_ = self.it
        name = f"{'' if self.opened else '+'}{id_}{'' if self.closed else '+'}"
        if verb == "calls":
            return f"{self.who} calls {name}{self.head}{' ' + self.text if self.text else ''}"
        return f"{self.who} {verb} {name}: {self.text!r}"


CANCEL = object()
"""The answer of a client that abandons an interrupt."""


class Play:
    """A target under attribution, and a client that talks with it on one thread."""

    def __init__(
        self,
        target: Any,
        *,
        thread: str = "t",
        plugins: Iterable[Any] = (),
        accepts: Iterable[str] = (),
        **options: Any,
    ) -> None:
        options.setdefault("clock", None)
        # Without an installation there are no entry points, and the adapter has to be brought.
        found = attribute_plugins()
        self.agent = attribute(target, plugins=[*found, *plugins], **options)
        self.thread = thread
        self.accepts = accepts
        self.names = Names()
        self.runs = 0

    def input(
        self, text: str | None = "go", *, resume: dict[str, Any] | None = None, **fields: Any
    ) -> RunAgentInput:
        self.runs += 1
        messages = fields.pop("messages", None)
        if messages is None:
            messages = [] if text is None else [{"id": f"u{self.runs}", "role": "user", "content": text}]
        if resume is not None:
            fields["resume"] = [self.answer(short, payload) for short, payload in resume.items()]
        if "resume_entries" in fields:
            fields["resume"] = fields.pop("resume_entries")
        wire = {"threadId": self.thread, "runId": f"r{self.runs}", "messages": messages, **fields}
        return RunAgentInput.model_validate(wire)

    def answer(self, short: str, payload: Any) -> dict[str, Any]:
        native = self.names.native(short)
        if payload is CANCEL:
            return {"interruptId": native, "status": "cancelled"}
        return {"interruptId": native, "status": "resolved", "payload": payload}

    def run(self, text: str | None = "go", **fields: Any) -> Trace:
        """Let the client say `text` and return what it gets to see."""
        return asyncio.run(self.arun(text, **fields))

    def resume(self, answers: dict[str, Any], **fields: Any) -> Trace:
        """Let the client answer interrupts by their short names."""
        return self.run(None, resume=answers, **fields)

    def stream(self, *args: Any, **kwargs: Any) -> Trace:
        """Run the target with LangGraph's own arguments."""

        async def go() -> Trace:
            return await self.read(self.agent.stream(*args, **kwargs))

        return asyncio.run(go())

    async def arun(self, text: str | None = "go", **fields: Any) -> Trace:
        return await self.read(self.agent.run(self.input(text, **fields)))

    async def read(self, run: Any) -> Trace:
        trace = Trace(self.names, run)
        async for event in run:
            trace.add(event)
            self.names.meet(event)
        judge(trace.events, self.accepts)
        return trace


def attribute_plugins() -> list[Any]:
    from byline.hooks import Plugins

    return [] if "langgraph" in Plugins().names else [_plugin]


def judge(events: Iterable[BaseEvent], accepts: Iterable[str] = ()) -> None:
    """Hold a stream to everything the protocol asks of a producer, and to the contracts it declared.

    `accepts` are warnings that the app itself brings about.
    """
    validator = Validator("producer")
    findings = [finding for event in events for finding in validator.feed(event)]
    findings += validator.finish()
    told = [
        f"{one.event} {one.rule}: {one.message}"
        for one in findings
        if one.level == "error" or (one.level == "warning" and one.rule not in accepts)
    ]
    assert not told, told


# ------------------------------------------------------------------ the cast


class Relay:
    """The order in which models may say their next piece: `Relay("alpha beta beta alpha")`.

    A `.` is a rest, in which whatever has just ended gets to say so.
    """

    def __init__(self, order: str) -> None:
        self.order = order.split()
        self.moved = asyncio.Condition()
        self.rests: set[asyncio.Task[None]] = set()

    async def turn(self, name: str) -> None:
        async with self.moved:
            await self.moved.wait_for(lambda: not self.order or self.order[0] == name)
            if self.order:
                self.order.pop(0)
            if self.order and self.order[0] == ".":
                self.rests.add(asyncio.create_task(self.rest()))
            self.moved.notify_all()

    async def rest(self) -> None:
        await asyncio.sleep(0.1)
        async with self.moved:
            self.order.pop(0)
            self.moved.notify_all()


class PacedModel(ScriptedModel):
    """A scripted model that waits for its turn before each piece."""

    who: str
    relay: Any

    async def _astream(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        for chunk in self._pieces(self._turn(messages)):
            if chunk.message.content or chunk.message.tool_call_chunks:
                await self.relay.turn(self.who)
            if run_manager:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk


class RawModel(ScriptedModel):
    """A model whose first turn is given chunk by chunk, in a provider's own spelling."""

    raw: list[Any]

    def _pieces(self, turn: Say) -> Any:
        if turn is not self.script[0]:
            yield from super()._pieces(turn)
            return
        for chunk in self.raw:
            yield ChatGenerationChunk(message=AIMessageChunk(**chunk))

    def _message(self, turn: Say) -> AIMessage:
        if turn is not self.script[0]:
            return super()._message(turn)
        first, *rest = [AIMessageChunk(**chunk) for chunk in self.raw]
        whole = sum(rest, first)
        return AIMessage(
            content=whole.content, additional_kwargs=whole.additional_kwargs, tool_calls=whole.tool_calls
        )


def raw(*chunks: dict[str, Any], **options: Any) -> RawModel:
    return RawModel(script=[Say(), Say("later")], requests=[], raw=list(chunks), **options)


def model(*turns: Say | str, **options: Any) -> ScriptedModel:
    script = [Say(turn) if isinstance(turn, str) else turn for turn in turns]
    kind = PacedModel if "relay" in options else ScriptedModel
    return kind(script=script, requests=[], **options)


def agent(
    name: str | None, *turns: Say | str, tools: Iterable[Any] = (), model_options: Any = None, **options: Any
) -> Any:
    """A `create_agent` agent that follows a script."""
    options |= {} if name is None else {"name": name}
    return create_agent(model(*turns, **(model_options or {})), list(tools), **options)


def call(id_: str, name: str, q: str = "") -> tuple[str, str, dict[str, Any]]:
    return (id_, name, {"q": q})


def human(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def said(state: Any) -> str:
    return str(state["messages"][-1].text)


def ask(subagent: Any, name: str, *, sync: bool = False, config: Any = None) -> Any:
    """A tool that asks `subagent` and returns its last words."""

    def ask_sync(q: str) -> str:
        """Ask."""
        return said(subagent.invoke(human(q), config))

    async def ask_async(q: str) -> str:
        """Ask."""
        return said(await subagent.ainvoke(human(q), config))

    return as_tool(name)(ask_sync if sync else ask_async)


@as_tool
def _lists(q: str) -> list:
    """Return a command in a list."""
    return [Command()]


takes_lists = pytest.mark.skipif(
    not isinstance(
        _lists.invoke({"name": "_lists", "args": {"q": ""}, "id": "c", "type": "tool_call"}), list
    ),
    reason="a list of commands that a tool returns is but text to this langchain-core",
)
