"""What an event says, once it is known whose it is: words, thoughts, calls, state, artifacts, cost."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from byline import signals as s
from byline.agent import Sink
from byline.plain import plain

from . import _content as content
from ._identity import Invocation

__all__ = ["Said", "Voice", "is_plumbing", "kept"]


def is_plumbing(owner: Invocation, name: str) -> bool:
    """Return whether a call of `owner` is ADK's own work, and shown as what it means."""
    if name == content.FINISH_TASK:
        return owner.mode == "task"  # else the app's own tool has that name
    return name in content.PLUMBING


class Said:
    """What was streamed of one answer of one model."""

    __slots__ = ("arguments", "heard", "text", "thought")

    def __init__(self) -> None:
        self.text: list[str] = []
        self.thought: list[str] = []
        self.arguments: dict[str, content.StreamedArguments] = {}
        self.heard: list[str] | None = None  # where the sink takes more of the text, as long as it `hears` it


class Voice:
    """Turns events and their owners into signals of what was said.

    With streaming every answer comes twice, in pieces and then whole; both have one event id, and what was said in
    pieces is not said again.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink: Final = sink
        self._say: Final[Callable[[s.Signal], None]] = sink.report
        self._streams: Final[dict[str, Said]] = {}
        self._state: Final[dict[str, Any]] = {}
        self._state_told = False
        self._forwarded: Final[dict[str, Any]] = {}

    def begin(self, state: Mapping[str, Any], known: Any) -> None:
        """Take the session's state; `known` is what the client has of it."""
        self._state.update(plain(kept(state)))
        if self._state and self._state != (plain(known) or {}):
            self._state_told = True
            self._say(s.StateIs(None, dict(self._state)))

    # ----------------------------------------------------------------- content

    def piece(self, owner: Invocation, run: str, parts: Sequence[Any]) -> Said:
        """Say a piece of an answer; returns all that was said of it."""
        key = owner.key
        stream = self._streams.get(run)
        if stream is None:
            stream = self._streams[run] = Said()
        for part in parts:
            text = part.text
            if text:
                if part.thought:
                    stream.thought.append(text)
                    self._say(s.Reasoning(key, run, text))
                else:
                    stream.text.append(text)
                    self._say(s.Text(key, run, text))
                    stream.heard = self._sink.hears
            elif part.function_call is not None:
                self._fragment(owner, run, stream, part.function_call)
        return stream

    def _fragment(self, owner: Invocation, run: str, stream: Said, call: Any) -> None:
        # Only the first fragment has the name; one without an id belongs to the call that was named last.
        id_ = call.id or next(reversed(stream.arguments), None)
        if call.name and call.id and call.id not in stream.arguments and not is_plumbing(owner, call.name):
            stream.arguments[call.id] = content.StreamedArguments()
            self._say(s.Call(owner.key, run, call.id, call.name))
        arguments = stream.arguments.get(id_ or "")
        if arguments is None or id_ is None:
            return
        for fragment in call.partial_args or ():
            if text := arguments.feed(fragment):
                self._say(s.Arguments(owner.key, run, id_, text))

    def answer(self, owner: Invocation, event: Any) -> None:
        """Say a whole answer, but for what was said in pieces."""
        stream = self._streams.pop(event.id, None) or Said()
        key, run, parts = owner.key, event.id, event.content.parts
        text = "".join(part.text for part in parts if part.text and not part.thought)
        thought = "".join(part.text for part in parts if part.text and part.thought)
        if stream.text and text != "".join(stream.text):
            # Something between the model and here replaced the answer: then it is another message.
            self._say(s.ModelOver(key, run))
            run, stream = f"{run}#2", Said()
        text_said, thought_said = text == "".join(stream.text), thought == "".join(stream.thought)
        for part in parts:
            if part.text and part.thought:
                if not thought_said:
                    self._say(s.Reasoning(key, run, part.text))
            elif part.text:
                if not text_said:
                    self._say(s.Text(key, run, part.text))
            elif part.function_call is not None:
                self._call(owner, run, stream, part.function_call)
            elif part.executable_code is not None:
                self._code(owner, "adk.code", part.executable_code)
            elif part.code_execution_result is not None:
                self._code(owner, "adk.code_result", part.code_execution_result)
        self._say(s.ModelOver(key, run))

    def over(self, owner: Invocation, run: str) -> None:
        """Say that no more of an answer comes."""
        self._streams.pop(run, None)
        self._say(s.ModelOver(owner.key, run))

    def _call(self, owner: Invocation, run: str, stream: Said, call: Any) -> None:
        if is_plumbing(owner, call.name):
            return
        args = call.args or {}
        arguments = stream.arguments.get(call.id)
        self._say(s.Call(owner.key, run, call.id, call.name))
        rest = content.to_json(args) if arguments is None else arguments.rest(args)
        self._say(s.Arguments(owner.key, run, call.id, rest))

    def _code(self, owner: Invocation, name: str, value: Any) -> None:
        self._say(s.Custom(owner.key, name, value.model_dump(mode="json", exclude_none=True)))

    # ------------------------------------------------------------ beside it

    def around(self, owner: Invocation, event: Any, *, inside: bool) -> None:
        """Report what a whole event carries beside its content; `inside` an AgentTool's own runner."""
        if event.usage_metadata is not None:
            cost = content.usage(event.usage_metadata, owner.provider, event.model_version or owner.model)
            if cost is not None:
                self._say(s.Usage(owner.key, cost))
        actions = event.actions
        if actions.state_delta:
            self._state_delta(owner, plain(kept(actions.state_delta)), inside=inside)
        for name, number in actions.artifact_delta.items():
            value = {"filename": name, "version": number}
            self._say(s.Activity(owner.key, f"artifact:{name}", "artifact", value))

    def _state_delta(self, owner: Invocation, delta: dict[str, Any], *, inside: bool) -> None:
        if inside:
            self._forwarded.update(delta)
        else:  # what an AgentTool's agent changed comes once more, with the tool's response
            for key in [key for key in delta if key in self._forwarded]:
                if self._forwarded.pop(key) == delta[key]:
                    del delta[key]
        if not delta:
            return
        self._state.update(delta)
        if self._state_told:
            self._say(s.StateChanged(owner.key, delta))
        else:  # a change needs something to change
            self._state_told = True
            self._say(s.StateIs(owner.key, dict(self._state)))


def kept(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a state is the client's: not what lasts for one run, and not what it said beside its state."""
    return {key: value for key, value in state.items() if not key.startswith(("temp:", "_ag_ui_"))}
