"""What the agents of one run say and call, and what their calls are answered with."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias
from uuid import UUID

from ag_ui.core import token_usage_from_langchain_metadata
from byline import signals as s
from byline.agent import Sink
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, GenerationChunk, LLMResult

from ._bridge import PREDICT_STATE, predicts, quiet
from ._content import open_calls, parts_of, pieces
from ._outputs import messages_in, spelled_in

__all__ = ["Model", "Piece", "Speech"]

Piece: TypeAlias = str | tuple[Any, Any]
"""A token of a model: its text where it is nothing but text, else the token with its chunk."""


class Model:
    """One model run while it is open."""

    __slots__ = (
        "calls",
        "held",
        "media",
        "message",
        "metadata",
        "muted",
        "no_calls",
        "no_text",
        "owner",
        "said",
    )

    def __init__(self, run_id: UUID, owner: str | None, metadata: Mapping[str, Any], *, muted: bool) -> None:
        self.owner: Final = owner
        self.message: Final = f"lc_run--{run_id}"
        self.metadata: Final = metadata
        self.muted: Final = muted
        self.no_text: Final = quiet(metadata, "messages")
        self.no_calls: Final = quiet(metadata, "tool-calls")
        self.said = False
        self.media = 0
        self.calls: dict[Any, str] = {}  # by the chunk's index
        self.held: dict[Any, list[str]] = {}  # arguments that came before the call's name


class Speech:
    """What one run of a graph says, of which some comes twice: streamed, whole at the end, and in a node's output."""

    def __init__(self, sink: Sink) -> None:
        self._sink: Final = sink
        self._quiet: Final[set[tuple[str | None, str]]] = set()  # calls that the app keeps from the stream
        self._unanswered: Final[dict[str | None, set[str]]] = {}  # calls, by who made them
        self._answered: Final[dict[str | None, set[str]]] = {}
        self._seen: Final[dict[str, str | None]] = {}  # ids of messages that were said in this run, by whom
        self._nameless: Final[list[AIMessage]] = []  # and messages that had no id when they were
        self._said = 0  # how many had none

    def keeps_quiet(self, owner: str | None, call: str) -> bool:
        """Return whether the app keeps a call from the stream."""
        return (owner, call) in self._quiet

    def was_said(self, message: str, owner: str | None) -> None:
        """Note a message that somebody else has told: a node that returns it says nothing new."""
        self._seen[message] = owner

    def speaker(self, message: str) -> str | None:
        """Return who said a message in this run; `None` for the parent agent, and where it is not known."""
        return self._seen.get(message)

    # --------------------------------------------------------------- models

    def token(self, model: Model, token: Any, chunk: GenerationChunk | ChatGenerationChunk | None) -> None:
        """Take one piece of a model's answer."""
        if not isinstance(chunk, ChatGenerationChunk):
            self._say(model, model.message, token)
            return
        message = chunk.message
        content = message.content
        if isinstance(content, str) and not message.additional_kwargs:
            if content and not model.no_text:
                model.said = True
                self._sink.report(s.Text(model.owner, model.message, content))
        else:
            self._say(model, model.message, content, message.additional_kwargs)
        for part in getattr(message, "tool_call_chunks", ()):
            self._call_chunk(model, part)

    def tokens(self, model: Model, heard: Sequence[Piece]) -> None:
        """Take several tokens of one model run; plain text that stands together is told in one piece."""
        try:
            text = ["".join(heard)]  # type: ignore[arg-type]
            heard = ()
        except TypeError:  # there is more than text
            text = []
        for piece in heard:
            if isinstance(piece, str):
                text.append(piece)
                continue
            self._tell(model, text)
            try:
                self.token(model, *piece)
            except Exception as fault:  # of this piece: the others are told all the same
                self._sink.fault("on_llm_new_token", fault)
        self._tell(model, text)

    def _tell(self, model: Model, text: list[str]) -> None:
        if (whole := "".join(text)) and not model.no_text:
            model.said = True
            self._sink.report(s.Text(model.owner, model.message, whole))
        text.clear()

    def over(self, model: Model, response: LLMResult | None) -> None:
        """A model is done, with `response` unless it failed: say what was not streamed, and what it used."""
        generation = None
        if response is not None and response.generations and response.generations[0]:
            generation = response.generations[0][0]
        message = generation.message if isinstance(generation, ChatGeneration) else None
        if message is not None and message.id:
            self._seen[message.id] = model.owner
        if not model.muted:
            if isinstance(message, AIMessage):
                self.whole(model, message, run=model.message)
            elif generation is not None and not model.said:
                self._say(model, model.message, generation.text)
            self._sink.report(s.ModelOver(model.owner, model.message))
        used = getattr(message, "usage_metadata", None)
        if not used:
            return
        usage = token_usage_from_langchain_metadata(
            used,
            provider=model.metadata.get("ls_provider"),
            model=getattr(message, "response_metadata", {}).get("model_name")
            or model.metadata.get("ls_model_name"),
        )
        if usage is not None:
            self._sink.report(s.Usage(model.owner, usage))

    def _say(self, model: Model, run: str, content: Any, additional: Mapping[str, Any] | None = None) -> None:
        for kind, value in pieces(content, additional):
            if not value or model.no_text:
                continue
            if kind == "text":
                model.said = True
                self._sink.report(s.Text(model.owner, run, value))
            elif kind == "reasoning":
                model.said = True
                self._sink.report(s.Reasoning(model.owner, run, value))
            else:
                model.media += 1
                activity = f"{run}:media-{model.media}"
                self._sink.report(s.Activity(model.owner, activity, "media", {"part": value}))

    def whole(self, model: Model, message: AIMessage, *, run: str) -> None:
        """Say what of a finished answer was not streamed: all of it, or the calls that came only with the end."""
        if not model.said:
            self._say(model, run, message.content, message.additional_kwargs)
        if model.no_calls:
            self._quiet.update((model.owner, str(call["id"])) for call in message.tool_calls)
            return
        calls = [*message.tool_calls, *message.invalid_tool_calls]
        if not calls:
            return
        started = set(model.calls.values())
        for index, call in enumerate(calls):
            id_ = call["id"] or f"{run}:call-{index}"
            if id_ in started:
                continue
            self._called(model, run, id_, call["name"] or "")
            args = call["args"]
            text = args if isinstance(args, str) else json.dumps(args, ensure_ascii=False, default=str)
            self._sink.report(s.Arguments(model.owner, run, id_, text))

    def _call_chunk(self, model: Model, part: Mapping[str, Any]) -> None:
        """One piece of a tool call: the first names it, the others are told by their index."""
        if model.no_calls:
            return
        index, text = part.get("index"), part.get("args") or ""
        if part.get("name") and (part.get("id") or index not in model.calls):
            id_ = part.get("id") or f"{model.message}:call-{len(model.calls)}"
            model.calls[index] = id_
            self._called(model, model.message, id_, str(part["name"]))
            text = "".join(model.held.pop(index, ())) + text
        elif index not in model.calls:
            if text:
                model.held.setdefault(index, []).append(text)
            return
        if text:
            self._sink.report(s.Arguments(model.owner, model.message, model.calls[index], text))

    def _called(self, model: Model, run: str, id_: str, name: str) -> None:
        self._unanswered.setdefault(model.owner, set()).add(id_)
        self._answered.get(model.owner, set()).discard(id_)
        predicted = predicts(model.metadata, name)
        if predicted is not None:
            self._sink.report(s.Custom(model.owner, PREDICT_STATE, predicted))
        self._sink.report(s.Call(model.owner, run, id_, name))

    # -------------------------------------------------------------- answers

    def answer(self, owner: str | None, call: str, output: Any) -> None:
        """Take what a call was answered with: a tool message, or anything else that a tool returns."""
        self._unanswered.get(owner, set()).discard(call)
        if (owner, call) in self._quiet:
            return
        self._answered.setdefault(owner, set()).add(call)
        content = output.content if isinstance(output, ToolMessage) else output
        if not isinstance(content, str | list):
            content = str(content)
        self._sink.report(s.Result(owner, call, parts_of(content)))

    def waits(self, owner: str | None, call: str, inputs: Any) -> bool:
        """Return whether `call` is without an answer: made in this run, or in an earlier one that was suspended."""
        if call in self._unanswered.get(owner, ()):
            return True
        if call in self._answered.get(owner, ()):
            return False
        if isinstance(inputs, list):  # a tools node that was given just the calls to run
            return any(isinstance(one, Mapping) and one.get("id") == call for one in inputs)
        if not isinstance(inputs, Mapping):
            return False
        return call in open_calls(list(messages_in(inputs.get("state", inputs))))

    def without_a_model(self, owner: str | None, outputs: Any, inputs: Any) -> None:
        """A node that ran neither a model nor a graph and returned a new AI message said it itself."""
        messages = [(raw, one) for raw, one in spelled_in(outputs) if isinstance(one, AIMessage)]
        if not messages:
            return
        before = list(spelled_in(inputs))
        known = {message.id for _, message in before if message.id is not None}
        for raw, message in messages:
            if message.id is None:
                # LangGraph gives the object an id when it is first returned; a mapping or a tuple stays as it is.
                if any(raw is other for other in self._nameless) or any(raw is other for other, _ in before):
                    continue
                if raw is message:
                    self._nameless.append(message)
                self._said += 1
                id_ = f"said-{self._said}"
            elif (
                message.id in known
                or message.id in self._seen
                or any(raw is other for other in self._nameless)
            ):
                continue
            else:
                id_ = message.id
            self._seen[id_] = owner
            model = Model(UUID(int=0), owner, {}, muted=False)
            self.whole(model, message, run=id_)
            self._sink.report(s.ModelOver(owner, id_))
