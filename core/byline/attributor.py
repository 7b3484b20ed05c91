"""Signals in, attributed AG-UI events out.

The promise
-----------
Any sequence of signals, however late or out of order, gives a stream that the producer profile of the validator
accepts, and every character reported before the run's end arrives once, in order, under its owner.

Five ideas carry it:

* **A lane per invocation.**  The parent agent is the lane without a tag; every invocation has its own.  A lane
  is announced (`SUBAGENT_STARTED`) by whatever names it first: its own opening, a word of its model, a child.
* **A message per model run**, never per lane: two models that speak at once under one owner cannot be glued
  together.  Of text and reasoning one part is open at a time; the tool calls of the run stay open beside it; all
  end with the run.
* **What ended may be reopened.**  Text that arrives after its message or even its owner has ended reopens the
  message under that owner, which the protocol allows, and is closed again before the run ends.
* **One space of public ids.**  The framework's ids are kept while they are free; one that is taken gets the
  owner added (`call_0@writer-1`), then a number (`call_0#2`), and every later mention follows it.
* **The end closes everything**, deepest first, and says how: see `byline._ending`.

Sans-IO and synchronous: no clock, no random ids, no task.  One attributor serves one run.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

from ag_ui.core import ContentPart
from pydantic import TypeAdapter, ValidationError

from . import events
from . import signals as s
from ._ending import CANCELLED, INTERRUPT_LOST, Account, byline, how_it_ended
from ._lanes import REASONING, TEXT, Ids, Lane, Message, ToolCall, native_ids
from ._words import word
from .events import (
    PROTOCOL_VERSION,
    ActivitySnapshotEvent,
    BaseEvent,
    CustomEvent,
    Interrupt,
    RawEvent,
    ReasoningEndEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    StepFinishedEvent,
    StepStartedEvent,
    SubagentErrorEvent,
    SubagentFinishedEvent,
    SubagentFinishedSuspendedOutcome,
    SubagentStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)
from .plain import clean_text, plain

__all__ = ["CANCELLED", "INTERRUPT_LOST", "Attributor", "native_ids"]

_PARTS: Final = TypeAdapter(list[ContentPart])


class Attributor:
    """Turns the signals of one run into its stream.

    `history` are the messages the client already has (`RunAgentInput.messages`): their ids are taken, and a call
    among them that is still unanswered is known under its owner.  `clock` gives the `timestamp` of each event in
    milliseconds; without one, events carry none.

    `feed` returns the events that a signal gives, oldest first; the first call also returns `RUN_STARTED`, as does
    `start`.  After the run's end signals are dropped and counted in `dropped`.
    """

    def __init__(
        self,
        thread_id: str,
        run_id: str,
        *,
        parent_run_id: str | None = None,
        history: Iterable[events.Message] = (),
        clock: Callable[[], int] | None = None,
    ) -> None:
        self.thread_id: Final = thread_id
        self.run_id: Final = run_id
        self.over = False
        self.dropped = 0
        self._now: Final[Callable[[], int | None]] = clock or _no_clock
        self._root: Final = Lane(None, None)
        self._lanes: dict[str | None, Lane] = {None: self._root}
        self._tags: Final = Ids()
        self._ids: Final = Ids()
        self._messages: dict[tuple[str | None, str], Message] = {}
        self._calls: dict[tuple[str | None, str, str], ToolCall] = {}
        self._by_native: dict[tuple[str | None, str], list[ToolCall]] = {}
        self._inherited: dict[str, list[tuple[str, ToolCall]]] = {}
        self._activities: dict[tuple[str | None, str], str] = {}
        self._questions: dict[str, tuple[Lane, s.Question]] = {}
        self._spent: Final = Account()
        self._state: set[str] | None = None
        self._out: list[BaseEvent] = []
        self._learn(history)
        self._out.append(
            RunStartedEvent(
                thread_id=thread_id,
                run_id=run_id,
                parent_run_id=parent_run_id,
                protocol_version=PROTOCOL_VERSION,
                timestamp=self._now(),
            )
        )

    def start(self) -> list[BaseEvent]:
        """Return `RUN_STARTED` if it was not returned yet."""
        return self._flush()

    def feed(self, signal: s.Signal) -> list[BaseEvent]:
        """Take one signal and return the events it gives, which may be none."""
        if self.over:
            self.dropped += 1
            return []
        self._HANDLERS[type(signal)](self, signal)
        out, self._out = self._out, []
        return out

    def feed_words(
        self, said: Iterable[s.Words], failed: Callable[[type, Exception], object]
    ) -> list[BaseEvent]:
        """Take what models said in one moment, and return the events it gives: those of `feed`.

        Most words go on with the message of the word before; then there is nothing to look up, not even the time.
        `failed` is told of a word that is a fault, by its kind of signal, and the others count.
        """
        if self.over:
            self.dropped += sum(len(words.deltas) for words in said)
            return []
        now: int | None = None
        for kind, owner, run, deltas in said:
            message: Message | None = None
            for delta in deltas:
                try:
                    if message is not None and delta:
                        text = delta if delta.isascii() else clean_text(delta)
                        self._out.append(
                            word(TextMessageContentEvent, message.id, text, message.lane.id, now)
                        )
                        continue
                    self._HANDLERS[kind](self, kind(owner, run, delta))
                    now = self._now()
                    message = self._messages.get((owner, run)) if kind is s.Text else None
                    if message is not None and message.part is not TEXT:
                        message = None
                except Exception as fault:
                    failed(kind, fault)
        return self._flush()

    def public_call(self, owner: str | None, call: str) -> str:
        """Return the public id of a tool call that the framework knows as `call`."""
        return self._call_of(owner, call).id

    def subagent_run_id(self, owner: str | None) -> str | None:
        """Return the `subagentRunId` that `owner` was announced with; `None` for the parent agent or one unknown."""
        lane = self._lanes.get(owner)
        return None if lane is None else lane.id

    def _flush(self) -> list[BaseEvent]:
        out, self._out = self._out, []
        return out

    # ------------------------------------------------------------------ ids

    def _learn(self, history: Iterable[events.Message]) -> None:
        """Take the ids of what the client already has, and know its calls and which of them were answered.

        A framework that runs a task again after an interrupt answers again what was answered before.
        """
        answered: set[str] = set()
        calls: list[tuple[str | None, ToolCall]] = []
        for message in history:
            self._ids.take(message.id)
            if message.role == "tool":
                answered.add(message.tool_call_id)
            elif message.role == "assistant":
                for call in message.tool_calls or ():
                    self._ids.take(call.id)
                    calls.append((message.subagent_run_id, ToolCall(call.id, call.function.name, message.id)))
        for tag, known in calls:
            known.answered = known.id in answered
            for native in native_ids(known.id):
                if tag is None:
                    self._by_native.setdefault((None, native), []).append(known)
                else:
                    self._inherited.setdefault(tag, []).append((native, known))

    def _call_of(self, owner: str | None, native: str) -> ToolCall:
        """Return the call that `owner` means by `native`: the newest unanswered one, else the newest.

        One that nobody reported (a call of an earlier run) is given an id here, so that all who speak of it
        speak of the same one.
        """
        lane = self._lane(owner)
        calls = self._by_native.setdefault((owner, native), [])
        for call in reversed(calls):
            if not call.answered:
                return call
        if calls:
            return calls[-1]
        call = ToolCall(self._ids.claim(native, lane.id), "", None)
        calls.append(call)
        return call

    # ---------------------------------------------------------- invocations

    def _lane(self, owner: str | None) -> Lane:
        lane = self._lanes.get(owner)
        if lane is None:
            # Overtook its opening.  The key is all that is known of it; a name is required.
            lane = self._announce(s.Opened(str(owner), str(owner)))
        return lane

    def _opened(self, signal: s.Opened) -> None:
        if signal.owner not in self._lanes:
            self._announce(signal)

    def _announce(self, signal: s.Opened) -> Lane:
        owner = signal.owner
        parent = self._root if signal.parent == owner else self._lane(signal.parent)
        spawned = signal.spawned_by
        call: ToolCall | None = None
        call_id: str | None = None
        if isinstance(spawned, str):
            call_id = clean_text(spawned)
        elif spawned is not None and spawned.owner != owner:
            call = self._call_of(*spawned)
            call_id = call.id
        wanted = signal.id if signal.id is not None else owner
        tag = self._tags.claim(wanted)
        lane = self._lanes[owner] = Lane(tag, parent)
        for native, waiting in self._inherited.pop(tag, ()):
            self._by_native.setdefault((owner, native), []).append(waiting)
        self._out.append(
            SubagentStartedEvent(
                subagent_run_id=tag,
                name=clean_text(signal.name),
                description=None if signal.description is None else clean_text(signal.description),
                parent_subagent_run_id=parent.id,
                parent_tool_call_id=call_id,
                parent_message_id=None if call is None else call.message,
                metadata=byline(signal.metadata),
                timestamp=self._now(),
            )
        )
        return lane

    def _closed(self, signal: s.Closed) -> None:
        lane = self._lane(signal.owner)
        if lane.open:
            self._close_lane(
                lane,
                SubagentFinishedEvent(
                    subagent_run_id=str(lane.id),
                    result=None if signal.result is s.ABSENT else plain(signal.result),
                    metadata=byline(signal.metadata),
                ),
            )

    def _failed(self, signal: s.Failed) -> None:
        lane = self._lane(signal.owner)
        if lane.open:
            self._fail_lane(lane, signal.message, signal.code, signal.metadata)

    def _suspended(self, signal: s.Suspended) -> None:
        self._lane(signal.owner).suspended = True

    def _fail_lane(
        self, lane: Lane, message: str, code: str | None, metadata: Mapping[str, Any] | None = None
    ) -> None:
        self._close_lane(
            lane,
            SubagentErrorEvent(
                subagent_run_id=str(lane.id),
                message=clean_text(message),
                code=None if code is None else clean_text(code),
                metadata=byline(metadata),
            ),
        )

    def _close_lane(self, lane: Lane, ending: SubagentFinishedEvent | SubagentErrorEvent) -> None:
        self._close_items(lane)
        lane.open = False
        ending.timestamp = self._now()
        self._out.append(ending)

    def _close_items(self, lane: Lane) -> None:
        """Close what is open under `lane`: its messages as they were opened, its steps inside out."""
        for message in list(lane.messages):
            self._close_message(message)
        for name in reversed(lane.steps):
            self._out.append(
                StepFinishedEvent(step_name=name, subagent_run_id=lane.id, timestamp=self._now())
            )
        lane.steps.clear()

    # ------------------------------------------------------------- messages

    def _message(self, owner: str | None, run: str) -> Message:
        lane = self._lane(owner)
        message = self._messages.get((owner, run))
        if message is None:
            message = self._messages[(owner, run)] = Message(lane, self._ids.claim(run, lane.id))
        lane.messages.setdefault(message)
        return message

    def _text(self, signal: s.Text) -> None:
        owner, run, delta = signal
        if not delta:
            return
        message = self._messages.get((owner, run))
        if message is None or message.part is not TEXT:
            message = self._message(owner, run)
            self._close_part(message)
            message.part = TEXT
            self._out.append(
                TextMessageStartEvent(
                    message_id=message.id,
                    role="assistant",
                    subagent_run_id=message.lane.id,
                    timestamp=self._now(),
                )
            )
        self._out.append(
            word(
                TextMessageContentEvent,
                message.id,
                delta if delta.isascii() else clean_text(delta),
                message.lane.id,
                self._now(),
            )
        )

    def _reasoning(self, signal: s.Reasoning) -> None:
        owner, run, delta = signal
        if not delta:
            return
        message = self._messages.get((owner, run))
        if message is None or message.part is not REASONING:
            message = self._message(owner, run)
            self._open_reasoning(message)
        self._out.append(
            word(
                ReasoningMessageContentEvent,
                message.thought,
                delta if delta.isascii() else clean_text(delta),
                message.lane.id,
                self._now(),
            )
        )

    def _open_reasoning(self, message: Message) -> None:
        self._close_part(message)
        message.part = REASONING
        message.thoughts += 1
        tag = message.lane.id
        number = "" if message.thoughts == 1 else f"-{message.thoughts}"
        message.thought = self._ids.claim(f"{message.id}:reasoning{number}")
        self._out += (
            ReasoningStartEvent(message_id=message.thought, subagent_run_id=tag, timestamp=self._now()),
            ReasoningMessageStartEvent(
                message_id=message.thought, subagent_run_id=tag, timestamp=self._now()
            ),
        )

    def _close_part(self, message: Message) -> None:
        tag = message.lane.id
        if message.part is TEXT:
            self._out.append(
                TextMessageEndEvent(message_id=message.id, subagent_run_id=tag, timestamp=self._now())
            )
        elif message.part is REASONING:
            self._out += (
                ReasoningMessageEndEvent(
                    message_id=message.thought, subagent_run_id=tag, timestamp=self._now()
                ),
                ReasoningEndEvent(message_id=message.thought, subagent_run_id=tag, timestamp=self._now()),
            )
        message.part = None

    def _call(self, signal: s.Call) -> None:
        owner, run, native, name = signal
        if (owner, run, native) in self._calls:
            return
        message = self._message(owner, run)
        self._close_part(message)
        public = self._ids.claim(native, message.lane.id)
        call = self._calls[(owner, run, native)] = ToolCall(public, clean_text(name), message.id)
        self._by_native.setdefault((owner, native), []).append(call)
        self._start_call(message, call)

    def _start_call(self, message: Message, call: ToolCall) -> None:
        call.held_by = message
        message.calls[call] = None
        self._out.append(
            ToolCallStartEvent(
                tool_call_id=call.id,
                tool_call_name=call.name,
                parent_message_id=call.message,
                subagent_run_id=message.lane.id,
                timestamp=self._now(),
            )
        )

    def _arguments(self, signal: s.Arguments) -> None:
        owner, run, native, delta = signal
        if not delta:
            return
        call = self._calls.get((owner, run, native))
        if call is None:  # overtook its call, whose name nobody has said
            self._call(s.Call(owner, run, native, ""))
            call = self._calls[(owner, run, native)]
        message = self._messages[(owner, run)]
        if call.held_by is None:  # after its end: reopened, as the protocol allows
            message.lane.messages.setdefault(message)
            self._start_call(message, call)
        self._out.append(
            ToolCallArgsEvent(
                tool_call_id=call.id,
                delta=delta if delta.isascii() else clean_text(delta),
                subagent_run_id=message.lane.id,
                timestamp=self._now(),
            )
        )

    def _model_over(self, signal: s.ModelOver) -> None:
        message = self._messages.get((signal.owner, signal.run))
        if message is not None:
            self._close_message(message)

    def _close_message(self, message: Message) -> None:
        self._close_part(message)
        for call in list(message.calls):
            self._end_call(call)
        message.lane.messages.pop(message, None)

    def _end_call(self, call: ToolCall) -> None:
        message, call.held_by = call.held_by, None
        if message is not None:
            del message.calls[call]
            self._out.append(
                ToolCallEndEvent(tool_call_id=call.id, subagent_run_id=message.lane.id, timestamp=self._now())
            )

    def _result(self, signal: s.Result) -> None:
        call = self._call_of(signal.owner, signal.call)
        if call.answered:
            return
        call.answered = True
        self._end_call(call)  # it ran, so its arguments are complete
        lane = self._lane(signal.owner)
        self._out.append(
            ToolCallResultEvent(
                message_id=self._ids.claim(f"{call.id}:result"),
                tool_call_id=call.id,
                content=_content(signal.content),
                role="tool",
                subagent_run_id=lane.id,
                timestamp=self._now(),
            )
        )

    # ------------------------------------------------- the rest of an owner

    def _activity(self, signal: s.Activity) -> None:
        lane = self._lane(signal.owner)
        public = self._activities.get((signal.owner, signal.id))
        if public is None:
            public = self._activities[(signal.owner, signal.id)] = self._ids.claim(signal.id, lane.id)
        self._out.append(
            ActivitySnapshotEvent(
                message_id=public,
                activity_type=clean_text(signal.kind),
                content=plain(signal.content),
                subagent_run_id=lane.id,
                timestamp=self._now(),
            )
        )

    def _step_started(self, signal: s.StepStarted) -> None:
        lane = self._lane(signal.owner)
        name = clean_text(signal.name)
        lane.steps[name] = lane.steps.get(name, 0) + 1
        if lane.steps[name] == 1:
            self._out.append(StepStartedEvent(step_name=name, subagent_run_id=lane.id, timestamp=self._now()))

    def _step_finished(self, signal: s.StepFinished) -> None:
        lane = self._lane(signal.owner)
        name = clean_text(signal.name)
        if name not in lane.steps:
            return
        lane.steps[name] -= 1
        if not lane.steps[name]:
            del lane.steps[name]
            self._out.append(
                StepFinishedEvent(step_name=name, subagent_run_id=lane.id, timestamp=self._now())
            )

    def _state_is(self, signal: s.StateIs) -> None:
        state = plain(signal.state)
        self._state = set(state) if isinstance(state, dict) else None
        self._out.append(
            StateSnapshotEvent(
                snapshot=state, subagent_run_id=self._lane(signal.owner).id, timestamp=self._now()
            )
        )

    def _state_changed(self, signal: s.StateChanged) -> None:
        changes = plain(signal.changes)
        if not changes:
            return
        if self._state is None:  # nothing that a patch could apply to
            self._state_is(s.StateIs(signal.owner, changes))
            return
        self._state.update(changes)
        delta = [{"op": "add", "path": "/" + _pointer(key), "value": value} for key, value in changes.items()]
        self._out.append(
            StateDeltaEvent(
                delta=delta,  # type: ignore[arg-type]  # pydantic makes the operations of the mappings
                subagent_run_id=self._lane(signal.owner).id,
                timestamp=self._now(),
            )
        )

    def _custom(self, signal: s.Custom) -> None:
        self._out.append(
            CustomEvent(
                name=clean_text(signal.name),
                value=plain(signal.value),
                subagent_run_id=self._lane(signal.owner).id,
                timestamp=self._now(),
            )
        )

    def _raw(self, signal: s.Raw) -> None:
        self._out.append(
            RawEvent(
                event=plain(signal.event),
                source=None if signal.source is None else clean_text(signal.source),
                subagent_run_id=self._lane(signal.owner).id,
                timestamp=self._now(),
            )
        )

    def _add_usage(self, signal: s.Usage) -> None:
        self._spent.add(self._lane(signal.owner).id, signal.usage)

    def _note(self, signal: s.Observed) -> None:
        self._spent.note(self._lane(signal.owner).id, signal.kind, signal.facts)

    def _question(self, signal: s.Question) -> None:
        if signal.id in self._questions:
            return
        lane = self._lane(signal.owner)
        if signal.call is not None:
            self._call_of(signal.owner, signal.call)
        self._questions[signal.id] = (lane, signal)
        lane.questions.append(signal.id)

    # --------------------------------------------------------------- the end

    def _run_finished(self, signal: s.RunFinished) -> None:
        asked = list(dict.fromkeys(signal.asked))
        interrupts = [self._interrupt(id_) for id_ in asked]
        self._end_lanes(how_it_ended(list(self._lanes.values()), interrupted=bool(asked)), frozenset(asked))
        if interrupts:
            outcome: Any = RunFinishedInterruptOutcome(interrupts=interrupts)
        else:
            pending = [call.id for call in self._calls.values() if not call.answered]
            outcome = RunFinishedSuccessOutcome(pending_tool_call_ids=pending or None)
        result = None if signal.result is s.ABSENT else plain(signal.result)
        self._end(self._finished(outcome, result, signal.metadata))

    def _run_cancelled(self, signal: s.RunCancelled) -> None:
        self._end_lanes(lambda _lane: (CANCELLED, signal.reason))
        self._end(self._finished(RunFinishedCancelledOutcome(), None, None))

    def _run_failed(self, signal: s.RunFailed) -> None:
        self._end_lanes(lambda _lane: (CANCELLED, "cut off because the run failed"))
        usage, metadata = self._spent.terminal()
        self._end(
            RunErrorEvent(
                message=clean_text(signal.message),
                code=None if signal.code is None else clean_text(signal.code),
                usage=usage,
                metadata=metadata,
                timestamp=self._now(),
            )
        )

    def _end_lanes(
        self, ending: "Callable[[Lane], tuple[str, str] | None]", asked: frozenset[str] = frozenset()
    ) -> None:
        """Close all that is open, deepest first; `ending` gives code and message, or `None` for a suspension."""
        for lane in sorted(self._lanes.values(), key=lambda lane: -lane.depth):
            if not lane.open:
                self._close_items(lane)  # the parent agent's own, and what came late under one that had ended
                continue
            how = ending(lane)
            if how is not None:
                self._fail_lane(lane, how[1], how[0])
                continue
            own = [clean_text(id_) for id_ in lane.questions if id_ in asked]
            outcome = SubagentFinishedSuspendedOutcome(interrupt_ids=own or None)
            self._close_lane(lane, SubagentFinishedEvent(subagent_run_id=str(lane.id), outcome=outcome))

    def _interrupt(self, id_: str) -> Interrupt:
        known = self._questions.get(id_)
        if known is None:  # the framework waits for it although nobody saw it raised
            return Interrupt(id=clean_text(id_), reason="interrupt")
        lane, question = known
        return Interrupt(
            id=clean_text(id_),
            reason=clean_text(question.reason),
            message=None if question.message is None else clean_text(question.message),
            tool_call_id=None if question.call is None else self._call_of(question.owner, question.call).id,
            response_schema=plain(question.schema),
            expires_at=question.expires_at,
            metadata=plain(question.metadata),
            subagent_run_id=lane.id,
        )

    def _finished(self, outcome: Any, result: Any, extra: Mapping[str, Any] | None) -> RunFinishedEvent:
        usage, metadata = self._spent.terminal(extra)
        return RunFinishedEvent(
            thread_id=self.thread_id,
            run_id=self.run_id,
            outcome=outcome,
            result=result,
            usage=usage,
            metadata=metadata,
            timestamp=self._now(),
        )

    def _end(self, event: BaseEvent) -> None:
        self._out.append(event)
        self.over = True

    _HANDLERS: ClassVar[Mapping[type, Callable[..., None]]] = {
        s.Opened: _opened,
        s.Closed: _closed,
        s.Failed: _failed,
        s.Suspended: _suspended,
        s.Text: _text,
        s.Reasoning: _reasoning,
        s.Call: _call,
        s.Arguments: _arguments,
        s.ModelOver: _model_over,
        s.Result: _result,
        s.Activity: _activity,
        s.StepStarted: _step_started,
        s.StepFinished: _step_finished,
        s.StateIs: _state_is,
        s.StateChanged: _state_changed,
        s.Usage: _add_usage,
        s.Observed: _note,
        s.Question: _question,
        s.Custom: _custom,
        s.Raw: _raw,
        s.RunFinished: _run_finished,
        s.RunCancelled: _run_cancelled,
        s.RunFailed: _run_failed,
    }
    """What each signal does: the one place where a signal meets its meaning."""


def _content(content: str | Sequence[Any]) -> Any:
    """Return a result's content as the protocol has it: text, a list of content parts, or else JSON text."""
    if isinstance(content, str):
        return clean_text(content)
    parts = plain(content)
    try:
        return _PARTS.validate_python(parts)
    except ValidationError:
        return json.dumps(parts, ensure_ascii=False)


def _pointer(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _no_clock() -> None:
    return None
