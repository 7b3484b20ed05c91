"""A chat model that says what a script tells it: for demos and tests, without a key or a network.

A script is a list of turns.  Which turn is next is read off the conversation (how many AI messages it already
holds), not counted in the model, so that one model serves parallel invocations, and a conversation that is resumed
in another process goes on where it stopped.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import Field

__all__ = ["Say", "ScriptedModel"]


@dataclass(frozen=True)
class Say:
    """One turn of a model."""

    text: str = ""
    calls: Sequence[tuple[str, str, dict[str, Any]]] = ()
    """Tool calls: id, name, arguments."""
    reasoning: str = ""
    usage: dict[str, Any] | None = None
    """LangChain's `usage_metadata`."""
    fails: Exception | None = None
    """Raised after the text was said."""
    arguments: Literal["many", "one", "first"] = "many"
    """How the arguments stream: piece by piece, whole in one later chunk, whole in the chunk that names the call."""
    pause: float = 0.0
    """Seconds before each piece, when streamed asynchronously."""


@dataclass
class Request:
    """What the model received."""

    messages: list[BaseMessage]
    tools: list[str] = field(default_factory=list)


class ScriptedModel(BaseChatModel):
    """A chat model that follows a script; the turn after the last repeats the last."""

    script: list[Say]
    model_name: str = "scripted"
    provider: str = "byline"
    streams: bool = True
    """Whether it can stream at all."""
    requests: list[Any] = Field(default_factory=list, repr=False)  # LangChain takes the repr on every call
    """What it was asked, in order; give each model a list of its own."""
    tool_names: list[str] = []

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> Any:
        return {
            **super()._get_ls_params(stop, **kwargs),
            "ls_provider": self.provider,
            "ls_model_name": self.model_name,
        }

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        """Take note of the tools' names; what is called is up to the script."""
        names = [
            tool.get("name") or tool.get("function", {}).get("name", "")
            if isinstance(tool, dict)
            else getattr(tool, "name", getattr(tool, "__name__", ""))
            for tool in tools
        ]
        return self.model_copy(update={"tool_names": names})

    def _turn(self, messages: list[BaseMessage]) -> Say:
        said = 0
        for message in messages:
            if isinstance(message, AIMessage):
                said += 1
        self.requests.append(Request(list(messages), list(self.tool_names)))
        return self.script[min(said, len(self.script) - 1)]

    def _message(self, turn: Say) -> AIMessage:
        content: Any = turn.text
        if turn.reasoning:
            content = [
                {"type": "reasoning", "reasoning": turn.reasoning},
                {"type": "text", "text": turn.text},
            ]
        return AIMessage(
            content=content,
            tool_calls=[{"id": i, "name": n, "args": a, "type": "tool_call"} for i, n, a in turn.calls],
            usage_metadata=turn.usage,
            response_metadata={"model_name": self.model_name},
        )

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        turn = self._turn(messages)
        if turn.fails is not None:
            raise turn.fails
        return ChatResult(generations=[ChatGeneration(message=self._message(turn))])

    def _pieces(self, turn: Say) -> Iterator[ChatGenerationChunk]:
        for word in _words(turn.reasoning):
            yield _chunk([{"type": "reasoning", "reasoning": word, "index": 0}])
        for word in _words(turn.text):
            yield _chunk([{"type": "text", "text": word, "index": 1}] if turn.reasoning else word)
        for index, (id_, name, args) in enumerate(turn.calls):
            text = json.dumps(args)
            parts: list[tuple[str | None, str | None, str]]
            if turn.arguments == "first":
                parts = [(id_, name, text)]
            elif turn.arguments == "one":
                parts = [(id_, name, ""), (None, None, text)]
            else:
                parts = [(id_, name, "")] + [(None, None, text[at : at + 5]) for at in range(0, len(text), 5)]
            for part_id, part_name, part in parts:
                yield _chunk(
                    "", tool_call_chunks=[tool_call_chunk(name=part_name, args=part, id=part_id, index=index)]
                )
        if turn.fails is not None:
            raise turn.fails
        yield _chunk("", usage_metadata=turn.usage, response_metadata={"model_name": self.model_name})

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        if not self.streams:
            raise NotImplementedError
        for chunk in self._pieces(self._turn(messages)):
            if run_manager:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        if not self.streams:
            raise NotImplementedError
        turn = self._turn(messages)
        for chunk in self._pieces(turn):
            await asyncio.sleep(turn.pause)
            if run_manager:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    def _should_stream(self, **kwargs: Any) -> bool:
        return self.streams and super()._should_stream(**kwargs)


def last_user_text(messages: Sequence[BaseMessage]) -> str:
    """Return what the user, or the caller, said last."""
    return next((str(m.content) for m in reversed(messages) if isinstance(m, HumanMessage)), "")


def _words(text: str) -> list[str]:
    words = text.split(" ")
    return [word + " " for word in words[:-1]] + [words[-1]] if text else []


def _chunk(content: Any, **kwargs: Any) -> ChatGenerationChunk:
    return ChatGenerationChunk(message=AIMessageChunk(content=content, **kwargs))
