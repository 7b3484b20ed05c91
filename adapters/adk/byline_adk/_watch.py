"""One run under observation: callbacks and events in, signals out.

Callbacks say who begins and who called whom; events say what happened, in the order of the stream.  Partial events
do not wait for their consumer, so a callback may come before words that were said before it: nothing is closed by a
callback as long as something of it is still on its way (`_settle`).
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from byline import signals as s
from byline.agent import Sink
from byline.attributor import INTERRUPT_LOST
from byline.hooks import Candidate
from byline.hooks import Invocation as Described
from google.genai import types

from . import _content as content
from ._compat import can
from ._contract import describe
from ._identity import HERE, SPAWN, Book, Invocation, Kind, Spawn, ToolUse, depth_first, is_placeholder
from ._provider import provider_of
from ._remote import Heard, Peers, is_remote, task_of
from ._voice import Said, Voice, is_plumbing

__all__ = ["STAMP", "Watch"]

STAMP: Final = "byline"
"""The key in `custom_metadata` that says whose a model run is, where its events do not share their `actions`."""

_ABORTED: Final = "INVOCATION_ABORTED"
_LOST: Final = "its question was swallowed by the caller, which went on without an answer"
_HIDDEN_FAILURE: Final = "Error running sub-agent: "


class Watch:
    """The signals of one run.

    `state` is the session's state, as the client may not know it yet; `known` is what it does know.
    """

    def __init__(
        self,
        sink: Sink,
        book: Book,
        *,
        state: Mapping[str, Any],
        known: Any = None,
        client_tools: Iterable[str] = (),
    ) -> None:
        self.sink: Final = sink
        self.book: Final = book
        self.result: Any = s.ABSENT
        self._say: Final[Callable[[s.Signal], None]] = sink.report
        self._frames: Final[dict[int, tuple[Any, Invocation]]] = {}
        self._speakers: Final[dict[int | str, tuple[Invocation, Any]]] = {}
        self._marks: Final[dict[Invocation, int | str]] = {}
        self.to_stamp: Final[set[Invocation]] = set()
        self._by_mark: Final[dict[str, Invocation]] = {}
        self._spawns: Final[dict[ToolUse, Spawn]] = {}
        self._asked: Final[dict[str, tuple[Invocation, Any]]] = {}
        self._pending: Final[dict[str, Any]] = {}
        self._error: tuple[str, str | None] | None = None
        self._aborted = False
        self._outside: Final[set[Invocation]] = set()
        self._client_tools: Final = frozenset(client_tools)
        self._stamps: Final = not can("shared_actions")
        self._peers: Final = Peers()
        self._voice: Final = Voice(sink)
        self._lock: Final = sink.lock
        # The answer that the last word was of, its run (`None`: the next word may be another's), and its mark.
        self._said = Said()
        self._run: str | None = None
        self._mark: int | str = 0
        self._voice.begin(state, known)

    # ---------------------------------------------------------------- callbacks

    def begin_agent(self, agent: Any, ctx: Any) -> None:
        """Note that an agent begins, or goes on after a delegation."""
        frame = ctx._invocation_context  # noqa: SLF001 - one object per run of an agent; nothing public is
        path = getattr(ctx, "node_path", None) or ""
        one = self.book.enter(agent, frame.branch, path, frame.invocation_id)
        self._frames[id(frame)] = (frame, one)
        if one.id is not None and not is_remote(
            agent
        ):  # that one says with its first event which A2A task it is
            self._open(one)

    def end_agent(self, ctx: Any) -> None:
        """Note that an agent has nothing more to do: it is over, asked something, or was cut off."""
        one = self._frame(ctx)
        task = asyncio.current_task()
        if one is None or (task is not None and task.cancelling()):
            return
        one.left = True
        if not one.opened and is_remote(one.agent):
            self._open(one)
        if one.kind in (Kind.NODE, Kind.PART) and not one.asks_back and not self._waits(one):
            one.done = True
            self._settle(one)
            self._end_workflows(one)

    def fail_agent(self, ctx: Any, error: BaseException) -> None:
        """Remember why an agent failed; its last words may still be on their way."""
        one = self._frame(ctx)
        if one is not None and one.kind is not Kind.ROOT and one.failure is None:
            one.failure = (str(error) or type(error).__name__, type(error).__name__)

    def who(self, ctx: Any) -> Invocation | None:
        """Return whose agent is at work in a context, where it is known."""
        return self._frame(ctx) or HERE.get()

    def ask_model(self, ctx: Any, model: str | None) -> None:
        """Note who asks a model: what it answers is his."""
        one = self._frame(ctx) or HERE.get()
        if one is None:
            return
        one.speaking = True
        one.provider = provider_of(ctx._invocation_context.agent, model)  # noqa: SLF001
        one.model = model.removeprefix(f"{one.provider}/") if model and one.provider else model
        if self._stamps:
            self.to_stamp.add(one)
        else:
            actions = ctx._event_actions  # noqa: SLF001 - the answer's events carry this very object
            self._speaks(one, id(actions), actions)

    def stamp(self, ctx: Any, response: Any) -> None:
        """Write on the first piece of an answer whose it is, where its events do not share their actions."""
        one = self._frame(ctx) or HERE.get()
        if one in self.to_stamp:
            self.to_stamp.remove(one)
            mark = str(id(one))
            self._by_mark[mark] = one
            response.custom_metadata = {**(response.custom_metadata or {}), STAMP: mark}

    def unstamp(self, event: Any) -> None:
        """Take the stamp off again before the event is stored; the rest of the answer has the event's id."""
        metadata = event.custom_metadata
        if metadata and STAMP in metadata:
            rest = {key: value for key, value in metadata.items() if key != STAMP}
            self._speaks(self._by_mark[metadata[STAMP]], event.id)
            event.custom_metadata = rest or None

    def _speaks(self, one: Invocation, mark: int | str, held: Any = None) -> None:
        """Remember by which mark the events of the model run that `one` began last are known."""
        self._speakers.pop(self._marks.get(one, ""), None)
        self._marks[one] = mark
        self._speakers[mark] = (one, held)  # what is held keeps its id
        self._run = None

    def begin_tool(self, tool: Any, ctx: Any) -> None:
        """Note that a call is at work: the agent that begins inside was spawned by it."""
        owner = self._frame(ctx)
        use = self.book.use(ctx.function_call_id, owner)
        if use is None:
            return
        spawn = self._spawns[use] = Spawn(use)
        SPAWN.set(spawn)
        if type(tool).__name__ == "NodeTool":  # a workflow: no callback of its own will say that it began
            spawn.taken = True
            one = self.book.spawned_by(use, Kind.CALL, tool.name)
            one.branch = f"{tool.name}@{use.id}"
            if use.owner.branch:
                one.branch = f"{use.owner.branch}.{one.branch}"
            if use.owner.path:
                one.path = f"{use.owner.path}/{tool.name}@{use.id}"
            HERE.set(one)
            self._open(one)

    def end_tool(self, ctx: Any, result: Any) -> None:
        """Note that a call is answered, and with it whom it spawned."""
        use = self.book.use(ctx.function_call_id, self._frame(ctx))
        spawn = self._spawns.pop(use, None) if use is not None else None
        if use is None or spawn is None:
            return
        spawn.taken = True
        self._returned(use, result)

    def fail_tool(self, ctx: Any, error: BaseException) -> None:
        """Note that a call failed, and with it whom it spawned.

        Where its agent fails with it ADK gives the call no answer, and so has it none here.
        """
        use = self.book.use(ctx.function_call_id, self._frame(ctx))
        spawn = self._spawns.pop(use, None) if use is not None else None
        if use is None or spawn is None or isinstance(error, asyncio.CancelledError):
            return
        spawn.taken = True
        failure = (str(error) or type(error).__name__, type(error).__name__)
        one = use.spawned
        if one is not None and one.opened and one.failure is None:
            one.failure = failure

    def is_inside(self, course: str) -> bool:
        """Return whether events of this ADK invocation are those of an AgentTool's own runner."""
        return course in self.book.courses

    def answer(self, id_: str, response: Any, *, show: bool = True) -> None:
        """Take an answer that this run brings to a call of an earlier one.

        ADK shows no event for it: with `show` its result is written here, under who made the call.
        """
        use = self.book.use(id_)
        if use is None:
            return
        use.answered = True
        for one in use.owner.up():
            if one.kind is not Kind.ROOT:
                self.book.resumed[one.name] = one
        if show and not is_plumbing(use.owner, use.name):
            self._open(use.owner)
            self._say(s.Result(use.owner.key, use.id, content.result(response)))

    # ------------------------------------------------------------------- events

    def event(self, event: Any, *, stored: bool = True) -> bool:
        """Take an event of the run, in the order of the stream; `stored` unless it is an AgentTool's inner one.

        Returns whether it was a whole one.
        """
        # A pydantic model has a `__getattr__`, which makes each of its attributes a slow look-up.
        fields = event.__dict__
        if not fields["partial"]:
            self._whole(event, stored=stored)
            return True
        said = fields["content"]
        parts = said.parts if said is not None else None
        if not parts:
            return False
        run = fields["id"]
        mark = run if self._stamps else id(fields["actions"])
        if run == self._run and mark == self._mark and len(parts) == 1:
            # The next word of the answer that the last one was of, and nothing in between: most of all events.
            part = parts[0].__dict__
            text = part["text"]
            if text and not part["thought"]:
                with self._lock:
                    heard = self.sink.hears
                    if heard is not None and heard is self._said.heard:
                        heard.append(text)
                        self._said.text.append(text)
                        return False
        known = self._speakers.get(mark)
        owner = known[0] if known is not None and known[0].opened else self._owner(event)
        self._said = self._voice.piece(owner, run, parts)
        self._run, self._mark = run if known is not None else None, mark
        return False

    def _speaker(self, event: Any) -> Invocation | None:
        """Return whose model said it; `None` for what no model said."""
        known = self._speakers.get(event.id if self._stamps else id(event.actions))
        return None if known is None else known[0]

    def _owner(self, event: Any) -> Invocation:
        owner = self._speaker(event)
        if owner is None:
            owner = self.book.owner(event)
        if not owner.opened:
            self._open(owner, event)
        return owner

    def _whole(self, event: Any, *, stored: bool) -> None:
        speaker = self._speaker(event)
        failed = bool(event.error_code) and not event.content
        if event.error_code == _ABORTED:
            self._aborted = True
        responses = event.get_function_responses()
        if event.author == "user" and not responses:
            return  # what the user said, or was made to say
        self._in_workflows(event)
        owner = speaker or (self._answered(event, responses) if responses else None) or self.book.owner(event)
        if not owner.opened:
            self._open(owner, event)
        heard = self._peers.hear(owner, event) if event.custom_metadata or event.error_message else None
        if heard is not None:
            event = self._heard(owner, event, heard, stored=stored)
        elif event.content and event.content.parts and event.author != "user":
            self._note_calls(owner, event, stored=stored)
            self._voice.answer(owner, event)
        for response in responses:
            self._response(owner, event, response)
        self._voice.around(owner, event, inside=self.is_inside(event.invocation_id))
        owner.speaking = False
        if speaker is self.book.root:
            self._error = None
        if failed and heard is None and not self._aborted:
            self._error_event(owner, event, speaker)
        if event.actions.transfer_to_agent:
            self._hand_off(owner, event, responses)
        if event.output is not None:
            self._output(owner, event)
        if owner is not self.book.root and owner.kind is not Kind.ROOT:
            self._settle(owner)
        self._end_workflows(owner)

    def _in_workflows(self, event: Any) -> None:
        """Note in which workflows of a workflow an event was made, and which of them gave their output with it."""
        path, course = event.node_info.path, event.invocation_id
        if not self.book.nests or self.is_inside(course):
            return
        for one in self.book.workflow_of(path, course, self.book.root).up():
            if one.kind is Kind.NODE and one not in self.book.live:
                self.book.live.append(one)
            if one.kind is Kind.NODE and one.path in (event.node_info.output_for or ()):
                one.gave = True

    def _end_workflows(self, owner: Invocation) -> None:
        """Close the workflows around `owner` that gave their output, once all is over in them."""
        for one in owner.up() if self.book.nests else ():
            inside = (each for each in self.book.live if each is not one and one in each.up())
            if one.gave and not one.over and all(each.over for each in inside):
                self._open(one)
                one.done = True
                self._settle(one)

    def _heard(self, owner: Invocation, event: Any, heard: Heard, *, stored: bool) -> Any:
        """Take a remote agent's event, of which only `heard` is new; returns what is left of it."""
        said = types.Content(role="model", parts=heard.parts)
        event = event.model_copy(update={"id": heard.run, "content": said})
        if heard.over is not None:
            self._voice.over(owner, heard.over)
        self._note_calls(owner, event, stored=stored)
        if heard.piece:
            self._voice.piece(owner, heard.run, heard.parts)
        elif heard.parts:
            self._voice.answer(owner, event)
        if heard.failure is not None and owner is self.book.root:
            self._error = heard.failure
        elif heard.failure is not None:
            owner.failure = heard.failure
        return event

    def _note_calls(self, owner: Invocation, event: Any, *, stored: bool) -> None:
        waiting = event.long_running_tool_ids or ()
        for call in event.get_function_calls():
            long_running = call.id in waiting
            self.book.note_use(owner, call, event.invocation_id, stored=stored, long_running=long_running)
            if long_running and call.name in self._client_tools:
                self._outside.add(owner)
            elif long_running:
                self._asked[call.id] = (owner, call)

    # ------------------------------------------------------------------ answers

    def _answered(self, event: Any, responses: list[Any]) -> Invocation | None:
        """Return whose calls the responses answer."""
        for response in responses:
            use = self.book.use(response.id, event)
            if use is not None:
                return use.owner
        return None

    def _response(self, owner: Invocation, event: Any, response: Any) -> None:
        use = self.book.use(response.id, event)
        name = response.name or (use.name if use is not None else "")
        if is_placeholder(event, response):
            return
        if use is not None and use.long_running and event.author != "user" and response.id in self._asked:
            self._pending[response.id] = (
                response.response
            )  # what a long-running tool returned in the meantime
            return
        if use is not None:
            if use.owner is not owner:
                owner = use.owner
                self._open(owner, event)
            if not self._aborted:  # else ADK answers in the place of who was cut off
                self._returned(use, response.response, by_event=True)
            use.answered = True
        if is_plumbing(owner, name):
            return
        text = content.result(response.response)
        if name == "transfer_to_agent" and event.actions.transfer_to_agent:
            text = f"transferred to {event.actions.transfer_to_agent}"
        self._say(s.Result(owner.key, response.id, text))

    def _returned(self, use: ToolUse, result: Any, *, by_event: bool = False) -> None:
        """Close whom a call spawned: it has its result."""
        one = use.spawned
        if one is None or not one.opened or one.over or one.kind not in (Kind.CALL, Kind.TASK):
            return
        if one.kind is Kind.TASK and not by_event:
            return  # in a mixed turn the tool "returns" before the task begins
        # Only who never came to its end and got this text has failed: anybody may say it.
        cut_off = one.failure is None and not one.left and isinstance(result, str)
        if cut_off and result.startswith(_HIDDEN_FAILURE):
            one.failure = (result.removeprefix(_HIDDEN_FAILURE), None)
        if one.result is None and one.kind is Kind.CALL and not isinstance(result, str) and not by_event:
            one.result = result
        one.done = True
        self._settle(one, at_once=by_event)

    # ------------------------------------------------------------ what is around

    def _error_event(self, owner: Invocation, event: Any, speaker: Invocation | None) -> None:
        failure = (event.error_message or event.error_code, event.error_code)
        if owner is self.book.root:
            self._error = failure if speaker is not None else None
            return
        raised = owner.failure is not None or speaker is None
        owner.failure = failure
        if raised:  # else the model answered with an error: its agent ends by itself
            owner.done = True
            self._settle(owner, at_once=True)

    def _output(self, owner: Invocation, event: Any) -> None:
        if event.node_info.message_as_output:
            return  # its text, which was said
        path = event.node_info.path
        outputs = event.node_info.output_for or [path]
        if self.book.root.path in outputs and not self.is_inside(event.invocation_id):
            self.result = event.output
        if owner.kind is Kind.ROOT:
            return
        finished = any(r.name == content.FINISH_TASK for r in event.get_function_responses())
        if finished and owner.asks_back:
            owner.result = event.output
            owner.done = True
            self._settle(owner)
        elif owner.path in outputs:
            owner.result = event.output

    def _hand_off(self, owner: Invocation, event: Any, responses: list[Any]) -> None:
        call = next((r for r in responses if r.name == "transfer_to_agent"), None)
        use = self.book.use(call.id, event) if call is not None else None
        for one in self.book.hand_off(owner, use, event.actions.transfer_to_agent, event):
            one.done = True
            self._settle(one, at_once=True)

    # ---------------------------------------------------------------- lifecycle

    def _frame(self, ctx: Any) -> Invocation | None:
        known = self._frames.get(id(ctx._invocation_context))  # noqa: SLF001 - see begin_agent
        return None if known is None else known[1]

    def _open(self, one: Invocation, event: Any = None) -> None:
        """Announce an invocation, after all that enclose it."""
        if one.opened:
            return
        if one.parent is not None:
            self._open(one.parent)
        if one.id is None:
            self.book.place(one, event)
            if one.parent is not None:  # its place may tell more of what encloses it
                self._open(one.parent)
        if event is not None and event.custom_metadata and one.peer is None:
            one.peer = task_of(event)
        one.opened = True
        if one not in self.book.live:
            self.book.live.append(one)
        agent, use = one.agent, one.call
        if self._is_transparent(one):
            one.transparent, one.key = True, one.parent.key if one.parent is not None else None
            return
        self._say(
            self._with_contract(
                s.Opened(
                    one.key or "",
                    one.name,
                    id=one.id,
                    parent=one.parent.key if one.parent is not None else None,
                    spawned_by=None if use is None else self._call_ref(use),
                    description=getattr(agent, "description", None) or None,
                    metadata=describe(one),
                )
            )
        )

    def _is_transparent(self, one: Invocation) -> bool:
        """Ask the plugins whether an invocation is a subagent's: once, before it is announced."""
        if not self.sink.plugins.implements("byline_is_subagent"):
            return False
        around = next((each for each in one.up() if each is not one and not each.transparent), self.book.root)
        candidate = Candidate(
            framework="adk",
            name=one.name,
            native_name=one.name,
            node=one.name if one.kind is Kind.NODE else None,
            tool=None if one.call is None else one.call.name,
            parent=None if around.kind is Kind.ROOT else around.name,
        )
        answer = self.sink.plugins.ask("byline_is_subagent", candidate=candidate)
        return answer is not None and not answer

    def _call_ref(self, use: ToolUse) -> s.CallRef | str:
        if use.past and (use.answered or not use.owner.opened):
            return use.public
        return s.CallRef(use.owner.key, use.id)

    def _with_contract(self, opened: s.Opened) -> s.Opened:
        if not self.sink.plugins.implements("byline_contract"):
            return opened
        described = Described("adk", opened.name, opened.id or "", metadata=opened.metadata or {})
        answer = self.sink.plugins.ask("byline_contract", invocation=described)
        if answer is None:
            return opened
        known = answer if isinstance(answer, Mapping) else answer.metadata()
        return opened._replace(metadata={**(opened.metadata or {}), **known})

    def _settle(self, one: Invocation, *, at_once: bool = False) -> None:
        """Close what is done, unless words of it are still on their way; with it, all that ran inside."""
        if not one.done or one.over or (one.speaking and not at_once):
            return
        for inner in depth_first(each for each in self.book.live if one in each.up()):
            if not inner.over and inner.opened:
                self._close(inner)

    def _close(self, one: Invocation) -> None:
        one.over = True
        if one.transparent:
            return
        if one.failure is None and any(
            owner is one and not self._is_answered(id_) for id_, (owner, _) in self._asked.items()
        ):
            one.failure = (_LOST, INTERRUPT_LOST)
        if one.failure is not None:
            self._say(s.Failed(one.key or "", *one.failure))
        elif one.result is None:
            self._say(s.Closed(one.key or ""))
        else:
            self._say(s.Closed(one.key or "", one.result))

    def _waits(self, one: Invocation) -> bool:
        """Return whether `one`, or what runs inside, asked something that nobody answered."""
        return any(
            one in owner.up() and not self._is_answered(id_) for id_, (owner, _) in self._asked.items()
        )

    def _is_answered(self, id_: str) -> bool:
        use = self.book.use(id_)
        return use is None or use.answered

    # ------------------------------------------------------------------ the end

    def end(self) -> s.RunFinished | s.RunCancelled | s.RunFailed:
        """Say how the run ended that ended by itself."""
        self.fail_what_failed()
        if self._aborted:
            return s.RunCancelled("the run was aborted")
        if self._error is not None:
            return s.RunFailed(*self._error)
        asked = []
        for id_, (owner, call) in self._asked.items():
            if not self._is_answered(id_) and not any(each.over for each in owner.up()):
                self._say(content.question(owner.key, call, self._pending.get(id_, s.ABSENT)))
                asked.append(id_)
        kept: set[Invocation] = set()
        for one in depth_first(each for each in self.book.live if each.opened and not each.over):
            if one.kind is Kind.ROOT or self._waits(one):
                continue
            waits = one.asks_back or one in self._outside
            if waits or (one.kind is Kind.CHAT and self._keeps(one)):
                kept.update(one.up())
                if one.key is not None:
                    self._say(s.Suspended(one.key))
            elif not asked and one not in kept and (one.done or one.kind is not Kind.CALL):
                self._close(one)
        return s.RunFinished(result=self.result, asked=asked)

    def crash(self, error: BaseException) -> s.RunFailed:
        """Say how the run ended that failed: what failed on the way says so before the rest is cut off."""
        self.fail_what_failed()
        return s.RunFailed(str(error) or type(error).__name__, type(error).__name__)

    def fail_what_failed(self) -> None:
        """Close with its cause what failed and is still open, deepest first; announce what never said a word."""
        for one in list(self.book.live):
            self._open(one)
        for one in depth_first(self.book.live):
            if one.failure is not None and one.opened and not one.over:
                self._close(one)

    def _keeps(self, one: Invocation) -> bool:
        """Return whether ADK routes the user's next text to this chat agent, or to one that runs inside it."""
        agent = one.agent
        while agent is not None:
            if getattr(agent, "disallow_transfer_to_parent", True):
                return False
            agent = agent.parent_agent
        return True
