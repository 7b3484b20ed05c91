"""A model that says what a script tells it: for demos and tests, without a key or a network.

A script is a list of turns.  Which turn is next is read off the conversation (how many answers of the model it
already holds), not counted in the model, so that one model serves parallel invocations, and a conversation that is
resumed in another process goes on where it stopped.  A script may also be a function of the request.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

__all__ = ["Say", "Script", "ScriptedLlm", "last_text"]


@dataclass(frozen=True)
class Say:
    """One turn of a model."""

    text: str = ""
    calls: Sequence[tuple[str | None, str, dict[str, Any]]] = ()
    """Function calls: id (`None`: ADK makes one), name, arguments."""
    thought: str = ""
    usage: tuple[int, int] | types.GenerateContentResponseUsageMetadata | None = None
    """Prompt and answer tokens, or the whole of it."""
    fails: Exception | None = None
    """Raised after the text was streamed."""
    error: tuple[str, str] | None = None
    """Code and message of an answer that is an error, without an exception."""
    arguments: Literal["whole", "pieces"] = "whole"
    """How arguments stream: not at all, or as `partial_args`."""
    pause: float = 0.0
    """Seconds before each piece."""
    aggregate: bool = True
    """Whether a streamed answer is repeated whole at the end, as Gemini's is."""
    before: Callable[[], Any] | None = None
    """Awaited before anything is said: lets a test hold a model until another has spoken."""


Script: TypeAlias = Sequence[Say] | Callable[[LlmRequest], Say]


class ScriptedLlm(BaseLlm):
    """A model that follows a script; the turn after the last repeats the last."""

    model: str = "scripted"
    provider: str | None = None
    """Whose model it plays, for the usage; `None`: nobody says."""
    script: Any
    """A `Script`."""
    requests: list[Any] = []
    """What it was asked, in order; give each model a list of its own."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Say the turn that the conversation has come to, in pieces if `stream`."""
        self.requests.append(llm_request)
        say = self._turn(llm_request)
        if say.before is not None:
            await say.before()
        usage = _usage(say.usage)
        if stream:
            for part in _pieces(say):
                await asyncio.sleep(say.pause)
                yield LlmResponse(content=types.Content(role="model", parts=[part]), partial=True)
        elif say.pause:
            await asyncio.sleep(say.pause)
        if say.fails is not None:
            raise say.fails
        if say.error is not None:
            code, message = say.error
            yield LlmResponse(error_code=code, error_message=message, usage_metadata=usage)
        elif say.aggregate or not stream:
            yield LlmResponse(
                content=types.Content(role="model", parts=_whole(say)), partial=False, usage_metadata=usage
            )

    def _turn(self, request: LlmRequest) -> Say:
        if callable(self.script):
            return self.script(request)  # type: ignore[no-any-return]
        said = sum(1 for content in request.contents if content.role == "model")
        turn: Say = self.script[min(said, len(self.script) - 1)]
        return turn


def last_text(request: LlmRequest) -> str:
    """Return the last text that somebody said to the model."""
    for content in reversed(request.contents):
        text = "".join(part.text or "" for part in content.parts or ())
        if content.role == "user" and text:
            return text
    return ""


def _whole(say: Say) -> list[types.Part]:
    parts: list[types.Part] = []
    if say.thought:
        parts.append(types.Part(text=say.thought, thought=True))
    if say.text:
        parts.append(types.Part(text=say.text))
    for id_, name, args in say.calls:
        parts.append(types.Part(function_call=types.FunctionCall(id=id_, name=name, args=args)))
    return parts


def _pieces(say: Say) -> Iterator[types.Part]:
    for word in _words(say.thought):
        yield types.Part(text=word, thought=True)
    for word in _words(say.text):
        yield types.Part(text=word)
    if say.arguments == "pieces":
        for id_, name, args in say.calls:
            yield types.Part(function_call=types.FunctionCall(id=id_, name=name, will_continue=True))
            for key, value in args.items():
                yield from _argument(id_, key, value)
            yield types.Part(function_call=types.FunctionCall(id=id_, will_continue=False))


def _argument(id_: str | None, key: str, value: Any) -> Iterator[types.Part]:
    path = f"$.{key}"
    if isinstance(value, str):
        half = (len(value) + 1) // 2
        values: list[types.PartialArg] = [
            types.PartialArg(json_path=path, string_value=value[:half], will_continue=True),
            types.PartialArg(json_path=path, string_value=value[half:], will_continue=False),
        ]
    elif isinstance(value, bool):
        values = [types.PartialArg(json_path=path, bool_value=value)]
    elif isinstance(value, int | float):
        values = [types.PartialArg(json_path=path, number_value=value)]
    else:
        values = [types.PartialArg(json_path=path, null_value="NULL_VALUE")]
    for partial in values:
        yield types.Part(function_call=types.FunctionCall(id=id_, partial_args=[partial], will_continue=True))


def _words(text: str) -> list[str]:
    words = text.split(" ")
    return [word + " " for word in words[:-1]] + [words[-1]] if text else []


def _usage(
    usage: tuple[int, int] | types.GenerateContentResponseUsageMetadata | None,
) -> types.GenerateContentResponseUsageMetadata | None:
    if isinstance(usage, tuple):
        asked, answered = usage
        return types.GenerateContentResponseUsageMetadata(
            prompt_token_count=asked, candidates_token_count=answered, total_token_count=asked + answered
        )
    return usage
