"""The one source of identity: a synchronous callback handler that keeps the tree of LangChain runs.

Measured on langgraph 1.1.6 to 1.2.24, and what this module rests on:

* A graph run is any run that is the parent of a run tagged `graph:step:N`.  Neither its name nor its `serialized`
  tells it from a node.  It is known one step late, and nothing attributable happens before.  A graph that is
  resumed with nothing left to do never gets a step, and so never seems to start.
* `on_tool_start` carries the model's `tool_call_id`; the first tool run between an invocation and the graph that
  encloses it is the call that spawned it.
* A resumed graph has new run ids everywhere.  What stays is the namespace of the enclosing *task*, which LangGraph
  derives from the checkpoint and the path; the id of an invocation is made of that (`stable_id`).
* A hand-off ends with `ParentCommand`, which looks like an error and is none; `GraphInterrupt` is a suspension, and
  passes every graph on its way up: the first, which is the deepest, is whose question it is.
* Sync tools run in worker threads; a cancelled one goes on reporting after its run has ended.
* A model whose sibling fails is never told: its run ends without a callback.

The handler must be synchronous and inline.  Anything else is run in another thread or loop by LangChain, and the
order of what happened is lost.
"""

import functools
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar
from uuid import UUID

from byline import signals as s
from byline.agent import Sink
from byline.delegation import MODES
from byline.hooks import Candidate, Invocation
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGenerationChunk, GenerationChunk, LLMResult
from langgraph.errors import GraphInterrupt
from langgraph.types import Command, Send

from . import _compat
from ._bridge import spelled_out
from ._content import sent_along
from ._outputs import ending_of, interrupts_of, messages_in, result_of
from ._remote import Remotes
from ._review import question
from ._speech import Model, Piece, Speech
from ._tree import Run, Scope, between, is_pushed, is_step, name_of, owner_of, stable_id, up

__all__ = ["Handler", "guarded"]

_MUTED: Final = "nostream"

_ELSEWHERE: Final = s.CallRef("", "")
"""A hand-off whose call there is no naming: it was an invocation's of an earlier run."""

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def guarded(callback: F) -> F:
    """Keep a fault of ours from the app, and all callbacks of one run in one order."""

    @functools.wraps(callback)
    def call(self: "Handler", *args: Any, **kwargs: Any) -> None:
        try:
            with self.sink.lock:
                callback(self, *args, **kwargs)
        except Exception as fault:
            self.sink.fault(callback.__name__, fault)

    return call  # type: ignore[return-value]  # the same signature


class Handler(BaseCallbackHandler):
    """Turns the callbacks of one run of one graph into signals.

    `transparent` names the nested graphs that are no invocation of their own when no tool call stands between
    them and their caller: what a supervisor that is itself a graph does is done by the agent it belongs to.
    """

    run_inline = True
    raise_error = False
    ignore_retriever = True  # not ignore_agent: that one silences the tools
    ignore_retry = True
    # Of these the base class makes properties, which LangChain asks at every callback: a plain `False` is cheaper.
    ignore_llm = False
    ignore_chat_model = False
    ignore_chain = False
    ignore_agent = False
    ignore_custom_event = False

    def __init__(self, sink: Sink, transparent: frozenset[str]) -> None:
        super().__init__()
        self.sink: Final = sink
        self.scopes: Final[dict[str, Scope]] = {}
        """The newest scope of each namespace, for the stream parts that carry nothing else."""
        self.root_ns = ""
        """The namespace of the observed graph: not empty when it runs inside a task of another one."""
        self.speech: Final = Speech(sink)
        self.remotes: Final = Remotes(sink)
        self.handoffs: Mapping[str, str] = {}
        """The tools that hand control to a node, with that node."""
        self._transparent: Final = transparent
        self.state_was_set = False
        """Whether the client was given a state that is not the graph's own: the next one of the graph corrects it."""
        self._runs: Final[dict[UUID | None, Run]] = {}  # none is under None, which is nobody's parent
        self._models: Final[dict[UUID, Model]] = {}
        self._waiting: Final[
            dict[str, list[str]]
        ] = {}  # owners that ended with a question of their own, by their id
        self._spawned: Final[dict[str, str]] = {}  # the owner that a call of the parent's made

    def owner_of(self, run_id: UUID) -> str | None:
        """Return whose the LangChain run `run_id` is, while it is open; `None` for the parent agent."""
        model = self._models.get(run_id)
        if model is not None:
            return model.owner
        run = self._runs.get(run_id)
        return None if run is None else owner_of(run)

    # LangChain streams a model when some handler is a "streaming callback handler", which is a matter of having
    # these two methods; without one, `invoke` inside a tool gives no tokens.

    if _compat.has("taps"):

        def tap_output_aiter(self, run_id: UUID, output: AsyncIterator[T]) -> AsyncIterator[T]:
            return output

        def tap_output_iter(self, run_id: UUID, output: Iterator[T]) -> Iterator[T]:
            return output

    # ------------------------------------------------------ for whoever asks

    def direct_subagent(self, run_id: UUID) -> str | None:
        """Return the name of the parent's direct subagent that a run is a step of, if it is one."""
        run = self._runs.get(run_id)
        scope = None if run is None else run.inside
        if scope is None or scope.owner is None or scope.outer is None or scope.outer.owner is not None:
            return None
        return scope.name

    def is_the_parents(self, run_id: UUID | None) -> bool:
        """Return whether what runs under `run_id` is done by the parent agent."""
        run = self._runs.get(run_id)
        return run is None or owner_of(run) is None

    def calls_a_tool(self, run_id: UUID | None) -> bool:
        """Return whether a tool that starts under `run_id` is called by a node of the parent's, and not by another tool."""
        return self.is_the_parents(run_id) and not any(run.is_tool for run in up(self._runs.get(run_id)))

    def invocation_of(self, call: str) -> str | None:
        """Return the `subagentRunId` that a call of the parent's spawned, if it did."""
        return self.sink.attributor.subagent_run_id(self._spawned.get(call))

    def speaker_of(self, message: str) -> str | None:
        """Return the `subagentRunId` of who said a message in this run, if a subagent did."""
        return self.sink.attributor.subagent_run_id(self.speech.speaker(message))

    @guarded
    def stood_in(self, answer: ToolMessage) -> None:
        """Take an answer that was given in the place of a call of the parent's."""
        self.speech.answer(None, answer.tool_call_id, answer)

    # --------------------------------------------------------------- graphs

    @guarded
    def on_chain_start(
        self,
        serialized: dict[str, Any] | None,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        parent = self._runs.get(parent_run_id)
        metadata = metadata or {}
        a_step = is_step(tags)
        if parent is not None and not a_step:
            self._runs_no_step(parent)
        run = Run(run_id, parent, kwargs.get("name") or "", metadata, inputs)
        run.is_step = a_step
        if parent is not None and a_step and not parent.is_graph:
            self._open(parent, run)
        if parent is not None and (a_step or is_pushed(run, parent, metadata)):
            run.inside = parent.inside
            run.node = run.name
            if not run.node.startswith("__"):
                self.sink.report(s.StepStarted(owner_of(run), run.node))
            if self.remotes.nodes:  # it would find out itself
                self.remotes.entered(run.ns, owner_of(run), str(run.id))
        self._runs[run_id] = run

    @guarded
    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        run = self._runs.pop(run_id, None)
        if run is None:
            return
        self._ends(run)
        if run.node is not None:
            self._left_node(run, outputs)
            if self.remotes.owner(run.ns) is not None:
                self.remotes.left(run.ns, s.Closed(str(run.id), result_of(outputs)))
        if run.opened is not None:
            self._close(run.opened, outputs)

    @guarded
    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        run = self._runs.pop(run_id, None)
        if run is None:
            return
        scope = run.inside
        if isinstance(error, GraphInterrupt):
            self._asked(run, error)
            if scope is not None and run.is_step:
                scope.asked = True
        if run.node is not None:
            self._left_node(run, None)
            self.remotes.left(run.ns, ending_of(str(run.id), error))
        owner = None if run.opened is None else run.opened.invocation
        ending = None if owner is None else ending_of(owner, error)
        if ending is not None:
            self.sink.report(ending)

    def _open(self, graph: Run, step: Run) -> None:
        """A run turns out to be a graph, with its first step: open what it is an invocation of."""
        outer = graph.inside
        graph.is_graph = True
        own_ns = step.ns.rpartition("|")[0]
        for enclosing in up(graph.parent):
            enclosing.worked = True
        if outer is None:
            if not self.scopes:
                self.root_ns = own_ns
            graph.inside = self._enter(Scope(None, None, graph.name, own_ns))
            return
        tool, node = between(graph)
        spawned = None if tool is None or tool.call is None else s.CallRef(outer.owner, tool.call)
        if spawned is not None and self.speech.keeps_quiet(spawned.owner, spawned.call):
            spawned = None  # a call that is not shown leads nowhere
        handed = outer.handed_to(node, graph.ns) if tool is None else None
        if tool is None and handed is None:
            handed = self._handed_before(graph, outer, node)
        name = name_of(graph, tool, node)
        if not self._is_subagent(graph, outer, tool, node, name):
            graph.inside = self._enter(Scope(outer, outer.owner, outer.name, own_ns, transparent=True))
            return
        id_ = stable_id(name, graph.ns, tool, own_ns)
        if waiting := self._waiting.get(
            id_
        ):  # the caller answered the question itself: the same invocation goes on
            graph.inside = self._enter(Scope(outer, waiting.pop(0), name, own_ns))
            graph.inside.id = id_
            return
        owner = str(graph.id)
        scope = graph.inside = self._enter(Scope(outer, owner, name, own_ns))
        scope.id = id_
        opened = s.Opened(
            owner,
            name,
            id=id_,
            parent=outer.owner,
            spawned_by=spawned or (handed if handed is not None and handed.call else None),
            metadata=self._describe(graph, outer, tool, handed),
        )
        self.sink.report(self._with_contract(self._refined(opened, graph, tool)))
        if spawned is not None and spawned.owner is None:
            self._spawned[spawned.call] = owner
        graph.inputs = None

    # What an adapter that knows more than LangGraph does may say in between, within the guard of a callback.

    def _runs_no_step(self, run: Run) -> None:
        """Something that is no step of a graph is about to begin in `run`."""

    def _ends(self, run: Run) -> None:
        """A chain is about to end."""

    def _requested(self, model: Model, messages: Any, params: Mapping[str, Any]) -> None:
        """A model was asked."""

    def _answered(self, model: Model, response: LLMResult) -> None:
        """A model has answered."""

    def _refined(self, opened: s.Opened, graph: Run, tool: Run | None) -> s.Opened:
        """Return what to announce an invocation with."""
        return opened

    def _enter(self, scope: Scope) -> Scope:
        # A graph with a thread of its own has the root's namespace, and graphs with `checkpointer=True` share one:
        # there the namespace tells no more than the caller.
        self.scopes[scope.ns] = scope if scope.ns not in self.scopes or scope.outer is None else scope.outer
        if scope.ns == "" and scope.outer is not None:
            self.scopes[""] = next(outer for outer in scope.enclosing() if outer.outer is None)
        return scope

    def _is_subagent(self, graph: Run, outer: Scope, tool: Run | None, node: str | None, name: str) -> bool:
        if self.sink.plugins.implements("byline_is_subagent"):
            candidate = Candidate(
                framework="langgraph",
                name=name,
                native_name=graph.name,
                node=node,
                tool=None if tool is None else tool.name,
                parent=None if outer.owner is None else outer.name,
            )
            answer = self.sink.plugins.ask("byline_is_subagent", candidate=candidate)
            if answer is not None:
                return bool(answer)
        return tool is not None or name not in self._transparent

    def _handed_before(self, graph: Run, outer: Scope, node: str | None) -> s.CallRef | None:
        """Return the call that handed control to `node` in an earlier run, which this one continues.

        The conversation still ends with the answer of the hand-off tool.  Whose call it was is known of a supervisor,
        which is its caller; another agent's (a swarm's) was an invocation of that run, and there is no call to name.
        """
        messages = list(messages_in(graph.inputs)) if self.handoffs else []
        answer = messages[-1] if messages else None
        if (
            not isinstance(answer, ToolMessage)
            or node is None
            or self.handoffs.get(answer.name or "") != node
        ):
            return None
        made = (
            m.name
            for m in messages
            if isinstance(m, AIMessage)
            for c in m.tool_calls
            if c["id"] == answer.tool_call_id
        )
        if next(made, None) in self._transparent:
            return s.CallRef(outer.owner, answer.tool_call_id)
        return _ELSEWHERE

    def _describe(
        self, graph: Run, outer: Scope, tool: Run | None, handed: s.CallRef | None
    ) -> dict[str, Any]:
        """Return `metadata["byline"]`: the contract of this way of delegating, and the ids that lead to a trace."""
        mode = "tool" if tool is not None else "subgraph" if handed is None else "handoff"
        described = MODES[("langgraph", mode)].metadata()
        if handed is not None and handed.owner == outer.owner:
            described["returns"] = "automatic"  # a supervisor handed it the task and gets control back
        described["langchainRunId"] = str(graph.id)
        return described

    def _with_contract(self, opened: s.Opened) -> s.Opened:
        if not self.sink.plugins.implements("byline_contract"):
            return opened
        contract = opened.metadata or {}
        invocation = Invocation(
            framework=contract["framework"],
            name=opened.name,
            id=opened.id or opened.owner,
            parent_id=self.sink.attributor.subagent_run_id(opened.parent),
            description=opened.description,
            metadata=contract,
        )
        answer = self.sink.plugins.ask("byline_contract", invocation=invocation)
        if answer is None:
            return opened
        known = answer if isinstance(answer, Mapping) else answer.metadata()
        return opened._replace(metadata={**contract, **known})

    def _close(self, scope: Scope, outputs: Any) -> None:
        owner = scope.invocation
        if owner is None:
            return
        if scope.asked:
            # A graph with a thread of its own keeps its question to itself and returns what it has.  It waits on its
            # thread, and only its caller can answer; whether it did, the end of the run will tell.
            self._waiting.setdefault(scope.id, []).append(owner)
        else:
            self.sink.report(s.Closed(owner, result_of(outputs)))

    def _left_node(self, run: Run, outputs: Any) -> None:
        """A step is over: what its output says that no callback said, and the step itself."""
        owner = owner_of(run)
        for message in messages_in(outputs):
            if isinstance(message, ToolMessage) and self.speech.waits(
                owner, message.tool_call_id, run.inputs
            ):
                # Caught errors and refused calls end no tool run; their answer stands in the node's output only.
                self.speech.answer(owner, message.tool_call_id, message)
        if not run.worked and self.remotes.owner(run.ns) is None:
            self.speech.without_a_model(owner, outputs, run.inputs)
        if run.node is not None:
            self.sink.report(s.StepFinished(owner, run.node))

    def _asked(self, run: Run, error: GraphInterrupt) -> None:
        owner = self.remotes.owner(run.ns) or owner_of(run)
        for interrupt in interrupts_of(error):
            self.sink.report(
                question(
                    owner,
                    interrupt,
                    run.call,
                    messages=messages_in(run.inputs),
                    public=lambda call: self.sink.attributor.public_call(owner, call),
                )
            )

    # ---------------------------------------------------------------- tools

    @guarded
    def on_tool_start(
        self,
        serialized: dict[str, Any],
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        parent = self._runs.get(parent_run_id)
        if parent is not None:
            self._runs_no_step(parent)
        # Not the `name` of the callback: that is the run's, which a config may give.
        name = serialized["name"]
        run = self._runs[run_id] = Run(run_id, parent, name, metadata or {}, kwargs.get("inputs"))
        run.call = kwargs.get("tool_call_id")
        run.is_tool = True
        if parent is not None:
            parent.tools.append(run)

    @guarded
    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        run = self._end_tool(run_id)
        if run is None or run.call is None:
            return
        owner = owner_of(run)
        commands = [
            one for one in (output if isinstance(output, list) else (output,)) if isinstance(one, Command)
        ]
        self._handed_over(run, s.CallRef(owner, run.call), commands)
        for message in (*messages_in(output), *sent_along(commands)):
            if isinstance(message, ToolMessage) and message.tool_call_id == run.call:
                self.speech.answer(owner, run.call, message)
                return
        # Commands without a message answer a call with nothing, and one that goes to another graph not at all.
        if not any(isinstance(command.graph, str) for command in commands):
            self.speech.answer(owner, run.call, "" if commands else output)

    @guarded
    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        run = self._end_tool(run_id)
        if run is not None and isinstance(error, GraphInterrupt):
            self._asked(run, error)

    def _end_tool(self, run_id: UUID) -> Run | None:
        run = self._runs.pop(run_id, None)
        if run is not None and run.parent is not None:
            run.parent.tools.remove(run)
        return run

    def _handed_over(self, run: Run, call: s.CallRef, commands: Sequence[Command[Any]]) -> None:
        """Remember which call handed control to which node of the enclosing graph."""
        outer = None if run.inside is None else run.inside.outer
        if outer is None:
            return
        for command in commands:
            if command.graph == Command.PARENT:
                goto = command.goto if isinstance(command.goto, list | tuple) else (command.goto,)
                for target in goto:
                    outer.hand_over(target.node if isinstance(target, Send) else str(target), call)

    # --------------------------------------------------------------- models

    @guarded
    def on_chat_model_start(
        self,
        serialized: dict[str, Any] | None,
        messages: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        parent = self._runs.get(parent_run_id)
        if parent is not None:
            self._runs_no_step(parent)
        metadata = metadata or {}
        muted = _is_internal(tags or (), metadata)
        owner = None if parent is None else owner_of(parent)
        model = self._models[run_id] = Model(run_id, owner, metadata, muted=muted)
        for enclosing in up(parent):
            enclosing.worked = True
        self._requested(model, messages, kwargs.get("invocation_params") or {})

    on_llm_start = on_chat_model_start  # type: ignore[assignment]  # the prompts are of no interest

    def on_llm_new_token(
        self,
        token: Any,
        *,
        chunk: GenerationChunk | ChatGenerationChunk | None = None,
        run_id: UUID,
        **kwargs: Any,
    ) -> None:
        # Called per token, so guarded by hand.  It needs no lock of its own: one model run is one sequence.
        model = self._models.get(run_id)
        if model is None or model.muted:
            return
        try:
            self.speech.token(model, token, chunk)
        except Exception as fault:
            self.sink.fault("on_llm_new_token", fault)

    @guarded
    def catch_up(self, run_id: UUID, heard: Sequence[Piece]) -> None:
        """Take several tokens of one model run."""
        model = self._models.get(run_id)
        if model is not None and not model.muted:
            self.speech.tokens(model, heard)

    @guarded
    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        model = self._models.pop(run_id, None)
        if model is not None:
            self.speech.over(model, response)
            self._answered(model, response)

    @guarded
    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        model = self._models.pop(run_id, None)
        if model is not None:
            self.speech.over(model, None)

    # --------------------------------------------------------------- custom

    @guarded
    def on_custom_event(self, name: str, data: Any, *, run_id: UUID, **kwargs: Any) -> None:
        owner = self.owner_of(run_id)
        for signal in spelled_out(owner, name, data):
            self.sink.report(signal)
            self.state_was_set = self.state_was_set or isinstance(signal, s.StateIs)
            if isinstance(signal, s.Text):
                self.speech.was_said(signal.run, owner)
        self.sink.report(s.Custom(owner, name, data))


def _is_internal(tags: Sequence[str], metadata: Mapping[str, Any]) -> bool:
    """Return whether a model is asked by middleware for itself: its tokens count, its words are not for the user.

    langchain before 1.3 marks its summaries by their source only, and LangGraph streams them as the agent's own.
    """
    return (
        _MUTED in tags
        or bool(metadata.get("lc_internal_call"))
        or metadata.get("lc_source") == "summarization"
    )
