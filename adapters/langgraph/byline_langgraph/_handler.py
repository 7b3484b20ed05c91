"""The one source of identity: a synchronous callback handler that keeps the tree of LangChain runs.

Measured on langgraph 1.1.6 to 1.2.24, and what this module rests on:

* A graph run is any run that is the parent of a run tagged `graph:step:N`.  Neither its name nor its `serialized`
  tells it from a node.  It is known one step late, and nothing attributable happens before.  A graph that is
  resumed with nothing left to do never gets a step, and so never seems to start.
* `on_tool_start` carries the model's `tool_call_id`; the first tool run between an invocation and the graph that
  encloses it is the call that spawned it.
* A resumed graph has new run ids everywhere.  What stays is the namespace of the enclosing *task*, which LangGraph
  derives from the checkpoint and the path; the id of an invocation is made of that (`_stable_id`).
* A hand-off ends with `ParentCommand`, which looks like an error and is none; `GraphInterrupt` is a suspension, and
  passes every graph on its way up: the first, which is the deepest, is whose question it is.
* Sync tools run in worker threads; a cancelled one goes on reporting after its run has ended.
* A model whose sibling fails is never told: its run ends without a callback.

The handler must be synchronous and inline.  Anything else is run in another thread or loop by LangChain, and the
order of what happened is lost.
"""

import functools
import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar, cast
from uuid import UUID

from ag_ui.core import token_usage_from_langchain_metadata
from byline import signals as s
from byline.agent import Sink
from byline.attributor import CANCELLED
from byline.delegation import MODES
from byline.hooks import Candidate, Invocation
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, GenerationChunk, LLMResult
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.types import Command, Send

from . import _compat
from ._bridge import PREDICT_STATE, predicts, quiet, spelled_out
from ._content import invocation_id, open_calls, parts_of, pieces, sent_along
from ._remote import Remotes
from ._review import Action, review_of

__all__ = ["Handler", "Scope"]

DEFAULT_NAME: Final = "LangGraph"
"""What LangGraph calls a graph that was given no name."""

_STEP: Final = "graph:step:"
_PUSHED: Final = ("__pregel_push",)
_MUTED: Final = "nostream"

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


class Scope:
    """What runs inside one graph: an invocation, the parent agent, or something transparent inside one of them."""

    __slots__ = ("_handed", "_handoffs", "asked", "id", "name", "ns", "outer", "owner", "transparent")

    def __init__(
        self, outer: "Scope | None", owner: str | None, name: str, ns: str, *, transparent: bool
    ) -> None:
        self.outer: Final = outer
        self.owner: Final = owner
        self.name: Final = name
        self.ns: Final = ns
        self.transparent: Final = transparent
        self.id = ""  # of an invocation: the same in every run
        self.asked = False  # whether one of its steps stopped with a question, which stops the graph
        self._handoffs: dict[str, s.CallRef] = {}  # by the node that control was handed to
        self._handed: dict[str, s.CallRef] = {}  # by the task that took it, for its retries

    def hand_over(self, node: str, call: s.CallRef) -> None:
        """Note that `call` handed control to `node` of this graph."""
        self._handoffs[node] = call

    def handed_to(self, node: str | None, task: str) -> s.CallRef | None:
        """Return the call that handed control to `node`, for the task that runs it now."""
        if node in self._handoffs:
            self._handed[task] = self._handoffs.pop(node)
        return self._handed.get(task)

    def enclosing(self) -> Iterator["Scope"]:
        """Yield the scopes around this one, innermost first."""
        scope = self.outer
        while scope is not None:
            yield scope
            scope = scope.outer


class _Run:
    """One LangChain run while it is open."""

    __slots__ = (
        "agent_name",
        "call",
        "id",
        "inputs",
        "inside",
        "is_graph",
        "is_step",
        "name",
        "node",
        "ns",
        "parent",
        "tools",
        "worked",
    )

    def __init__(
        self, run_id: UUID, parent: "_Run | None", name: str, metadata: Mapping[str, Any], inputs: Any
    ) -> None:
        self.id: Final = run_id
        self.parent: Final = parent
        self.name: Final = name
        self.agent_name: Final[str | None] = metadata.get("lc_agent_name")
        self.ns: Final[str] = metadata.get("langgraph_checkpoint_ns") or ""
        self.inside: Scope | None = None if parent is None else parent.inside
        self.is_graph = False
        self.is_step = False
        self.node: str | None = None  # set for a step of a graph
        self.call: str | None = None  # the tool call id, for a tool run
        self.inputs: Any = inputs
        self.tools: list[_Run] = []  # the open tool runs of a node
        self.worked = False  # whether a model or a graph ran inside


class _Model:
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


def _guarded(callback: F) -> F:
    """Keep a fault of ours from the app, and all callbacks of one run in one order."""

    @functools.wraps(callback)
    def call(self: "Handler", *args: Any, **kwargs: Any) -> None:
        try:
            with self.sink.lock:
                callback(self, *args, **kwargs)
        except Exception as fault:
            self.sink.fault(callback.__name__, fault)

    return cast("F", call)


class Handler(BaseCallbackHandler):
    """Turns the callbacks of one run of one graph into signals.

    `transparent` names the nested graphs that are no invocation of their own when no tool call stands between
    them and their caller: what a supervisor that is itself a graph does is done by the agent it belongs to.
    """

    run_inline = True
    raise_error = False
    ignore_retriever = True  # not ignore_agent: that one silences the tools
    ignore_retry = True

    def __init__(self, sink: Sink, transparent: frozenset[str]) -> None:
        super().__init__()
        self.sink: Final = sink
        self.scopes: Final[dict[str, Scope]] = {}
        """The newest scope of each namespace, for the stream parts that carry nothing else."""
        self.root_ns = ""
        """The namespace of the observed graph: not empty when it runs inside a task of another one."""
        self.remotes: Final = Remotes(sink)
        self.handoffs: Mapping[str, str] = {}
        """The tools that hand control to a node, with that node."""
        self._transparent: Final = transparent
        self.state_was_set = False
        """Whether the client was given a state that is not the graph's own: the next one of the graph corrects it."""
        self._quiet: Final[set[tuple[str | None, str]]] = set()  # calls that the app keeps from the stream
        self._runs: Final[dict[UUID, _Run]] = {}
        self._models: Final[dict[UUID, _Model]] = {}
        self._waiting: Final[
            dict[str, list[str]]
        ] = {}  # owners that ended with a question of their own, by their id
        self._unanswered: Final[dict[str | None, set[str]]] = {}  # calls, by who made them
        self._answered: Final[dict[str | None, set[str]]] = {}
        self._seen: Final[set[str]] = set()  # message ids that were said in this run
        self._spawned: Final[dict[str, str]] = {}  # the invocation that a call of the parent's made
        self._nameless: Final[list[AIMessage]] = []  # and messages that had no id when they were

    def owner_of(self, run_id: UUID) -> str | None:
        """Return whose the LangChain run `run_id` is, while it is open; `None` for the parent agent."""
        model = self._models.get(run_id)
        if model is not None:
            return model.owner
        run = self._runs.get(run_id)
        return None if run is None else _owner(run)

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
        run = None if run_id is None else self._runs.get(run_id)
        return run is None or _owner(run) is None

    def invocation_of(self, call: str) -> str | None:
        """Return the `subagentRunId` that a call of the parent's spawned, if it did."""
        return self._spawned.get(call)

    # --------------------------------------------------------------- graphs

    @_guarded
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
        parent = None if parent_run_id is None else self._runs.get(parent_run_id)
        run = _Run(run_id, parent, kwargs.get("name") or "", metadata or {}, inputs)
        run.is_step = any(tag.startswith(_STEP) for tag in tags or ())
        if parent is not None and run.is_step and not parent.is_graph:
            self._open(parent, run)
        if parent is not None and (run.is_step or _is_pushed(run, parent, metadata or {})):
            run.inside = parent.inside
            run.node = str((metadata or {}).get("langgraph_node") or run.name)
            if not run.node.startswith("__"):
                self.sink.report(s.StepStarted(_owner(run), run.node))
            self.remotes.entered(run.ns, _owner(run), str(run.id))
        self._runs[run_id] = run

    @_guarded
    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        run = self._runs.pop(run_id, None)
        if run is None:
            return
        if run.node is not None:
            self._left_node(run, outputs)
            self.remotes.left(run.ns, s.Closed(str(run.id), _result(outputs)))
        if run.is_graph and run.inside is not None and run.inside.outer is not None:
            self._close(run.inside, outputs)

    @_guarded
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
            self.remotes.left(run.ns, _ending(str(run.id), error))
        if not run.is_graph or scope is None or scope.outer is None or scope.transparent:
            return
        ending = _ending(cast("str", scope.owner), error)
        if ending is not None:
            self.sink.report(ending)

    def _open(self, graph: _Run, step: _Run) -> None:
        """A run turns out to be a graph, with its first step: open what it is an invocation of."""
        outer = graph.inside
        graph.is_graph = True
        own_ns = step.ns.rpartition("|")[0]
        for enclosing in _up(graph.parent):
            enclosing.worked = True
        if outer is None:
            if not self.scopes:
                self.root_ns = own_ns
            graph.inside = self._enter(Scope(None, None, graph.name, own_ns, transparent=False))
            return
        tool, node = _between(graph)
        spawned = None if tool is None or tool.call is None else s.CallRef(outer.owner, tool.call)
        spawned = None if spawned in self._quiet else spawned  # a call that is not shown leads nowhere
        handed = outer.handed_to(node, graph.ns) if tool is None else None
        if tool is None and handed is None:
            handed = self._handed_before(graph, outer, node)
        name = _name(graph, tool, node)
        if not self._is_subagent(graph, outer, tool, node, name):
            graph.inside = self._enter(Scope(outer, outer.owner, name, own_ns, transparent=True))
            return
        id_ = _stable_id(name, graph.ns, tool, own_ns)
        if waiting := self._waiting.get(
            id_
        ):  # the caller answered the question itself: the same invocation goes on
            graph.inside = self._enter(Scope(outer, waiting.pop(0), name, own_ns, transparent=False))
            graph.inside.id = id_
            return
        owner = str(graph.id)
        scope = graph.inside = self._enter(Scope(outer, owner, name, own_ns, transparent=False))
        scope.id = id_
        opened = s.Opened(
            owner,
            name,
            id=id_,
            parent=outer.owner,
            spawned_by=spawned or (handed if handed is not None and handed.call else None),
            metadata=self._describe(graph, outer, tool, handed),
        )
        self.sink.report(self._with_contract(self._refined(opened, scope, graph, tool)))
        if spawned is not None and spawned.owner is None:
            self._spawned[spawned.call] = opened.id or owner
        graph.inputs = None

    def _refined(self, opened: s.Opened, scope: Scope, graph: _Run, tool: _Run | None) -> s.Opened:
        """Return what to announce an invocation with: for an adapter that knows more of it than LangGraph does."""
        return opened

    def _enter(self, scope: Scope) -> Scope:
        # A graph with a thread of its own has the root's namespace, and graphs with `checkpointer=True` share one:
        # there the namespace tells no more than the caller.
        self.scopes[scope.ns] = scope if scope.ns not in self.scopes or scope.outer is None else scope.outer
        if scope.ns == "" and scope.outer is not None:
            self.scopes[""] = next(outer for outer in scope.enclosing() if outer.outer is None)
        return scope

    def _is_subagent(self, graph: _Run, outer: Scope, tool: _Run | None, node: str | None, name: str) -> bool:
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

    def _handed_before(self, graph: _Run, outer: Scope, node: str | None) -> s.CallRef | None:
        """Return the call that handed control to `node` in an earlier run, which this one continues.

        The conversation still ends with the answer of the hand-off tool.  Whose call it was is known of a supervisor,
        which is its caller; another agent's (a swarm's) was an invocation of that run, and there is no call to name.
        """
        messages = list(_messages(graph.inputs)) if self.handoffs else []
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
        return s.CallRef("", "")

    def _describe(
        self, graph: _Run, outer: Scope, tool: _Run | None, handed: s.CallRef | None
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
        invocation = Invocation(
            framework=(opened.metadata or {}).get("framework", "langgraph"),
            name=opened.name,
            id=opened.id or opened.owner,
            parent_id=self.sink.attributor.subagent_run_id(opened.parent),
            description=opened.description,
            metadata=opened.metadata or {},
        )
        answer = self.sink.plugins.ask("byline_contract", invocation=invocation)
        if answer is None:
            return opened
        known = answer if isinstance(answer, Mapping) else answer.metadata()
        return opened._replace(metadata={**(opened.metadata or {}), **known})

    def _close(self, scope: Scope, outputs: Any) -> None:
        if scope.transparent:
            return
        owner = cast("str", scope.owner)
        if scope.asked:
            # A graph with a thread of its own keeps its question to itself and returns what it has.  It waits on its
            # thread, and only its caller can answer; whether it did, the end of the run will tell.
            self._waiting.setdefault(scope.id, []).append(owner)
        else:
            self.sink.report(s.Closed(owner, _result(outputs)))

    def _left_node(self, run: _Run, outputs: Any) -> None:
        """A step is over: what its output says that no callback said, and the step itself."""
        owner = _owner(run)
        messages = list(_messages(outputs))
        for message in messages:
            if isinstance(message, ToolMessage) and self._waits(owner, message.tool_call_id, run.inputs):
                # Caught errors and refused calls end no tool run; their answer stands in the node's output only.
                self._answer(owner, message.tool_call_id, message)
        if not run.worked:
            self._said_without_a_model(owner, messages, run.inputs)
        if run.node is not None and not run.node.startswith("__"):
            self.sink.report(s.StepFinished(owner, run.node))

    def _waits(self, owner: str | None, call: str, inputs: Any) -> bool:
        """Return whether `call` is without an answer: made in this run, or in an earlier one that was suspended."""
        if call in self._unanswered.get(owner, ()):
            return True
        if call in self._answered.get(owner, ()) or not isinstance(inputs, Mapping):
            return False
        return call in open_calls(list(_messages(inputs.get("state", inputs))))

    def _said_without_a_model(self, owner: str | None, messages: Sequence[BaseMessage], inputs: Any) -> None:
        """A node that ran neither a model nor a graph and returned a new AI message said it itself."""
        if not any(isinstance(message, AIMessage) for message in messages):
            return
        known = {message.id for message in _messages(inputs)}
        for message in messages:
            if not isinstance(message, AIMessage) or any(message is other for other in self._nameless):
                continue
            if message.id is None:
                self._nameless.append(message)
            if message.id is None or (message.id not in known and message.id not in self._seen):
                id_ = message.id or f"said-{len(self._nameless)}"
                self._seen.add(id_)
                model = _Model(UUID(int=0), owner, {}, muted=False)
                self._say_whole(model, message, run=id_)
                self.sink.report(s.ModelOver(owner, id_))

    def _asked(self, run: _Run, error: GraphInterrupt) -> None:
        owner = self.remotes.owner(run.ns) or _owner(run)
        for interrupt in _interrupts(error):
            self.sink.report(
                question(
                    owner,
                    interrupt,
                    run.call,
                    messages=_messages(run.inputs),
                    public=lambda call: self.sink.attributor.public_call(owner, call),
                )
            )

    # ---------------------------------------------------------------- tools

    @_guarded
    def on_tool_start(
        self,
        serialized: dict[str, Any] | None,
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        parent = None if parent_run_id is None else self._runs.get(parent_run_id)
        name = kwargs.get("name") or (serialized or {}).get("name") or ""
        run = self._runs[run_id] = _Run(run_id, parent, name, metadata or {}, kwargs.get("inputs"))
        run.call = kwargs.get("tool_call_id")
        if parent is not None and parent.node is not None:
            parent.tools.append(run)

    @_guarded
    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        run = self._end_tool(run_id)
        if run is None or run.call is None:
            return
        owner = _owner(run)
        self._handed_over(run, output)
        for message in (*_messages(output), *sent_along(output)):
            if isinstance(message, ToolMessage) and message.tool_call_id == run.call:
                self._answer(owner, run.call, message)
                return
        if not isinstance(output, Command):
            self._answer(owner, run.call, output)
        elif not isinstance(output.graph, str):
            self._answer(owner, run.call, "")  # a command without a message answers the call with nothing

    @_guarded
    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        run = self._end_tool(run_id)
        if run is not None and isinstance(error, GraphInterrupt):
            self._asked(run, error)

    def _end_tool(self, run_id: UUID) -> _Run | None:
        run = self._runs.pop(run_id, None)
        if run is not None and run.parent is not None and run in run.parent.tools:
            run.parent.tools.remove(run)
        return run

    def _handed_over(self, run: _Run, output: Any) -> None:
        """Remember which call handed control to which node of the enclosing graph."""
        scope = run.inside
        for command in output if isinstance(output, list) else (output,):
            if not isinstance(command, Command) or command.graph != Command.PARENT or scope is None:
                continue
            goto = command.goto if isinstance(command.goto, list | tuple) else (command.goto,)
            for target in goto:
                node = target.node if isinstance(target, Send) else str(target)
                if scope.outer is not None and run.call is not None:
                    scope.outer.hand_over(node, s.CallRef(scope.owner, run.call))

    def _answer(self, owner: str | None, call: str, output: Any) -> None:
        self._unanswered.get(owner, set()).discard(call)
        if (owner, call) in self._quiet:
            return
        self._answered.setdefault(owner, set()).add(call)
        content = output.content if isinstance(output, ToolMessage) else output
        if not isinstance(content, str | list):
            content = str(content)
        self.sink.report(s.Result(owner, call, parts_of(content)))

    # --------------------------------------------------------------- models

    @_guarded
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
        parent = None if parent_run_id is None else self._runs.get(parent_run_id)
        metadata = metadata or {}
        muted = _MUTED in (tags or ()) or bool(metadata.get("lc_internal_call"))
        owner = None if parent is None else _owner(parent)
        self._models[run_id] = _Model(run_id, owner, metadata, muted=muted)
        for enclosing in _up(parent):
            enclosing.worked = True
            if enclosing.node is not None:
                break

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
            self._token(model, token, chunk)
        except Exception as fault:
            self.sink.fault("on_llm_new_token", fault)

    def _token(self, model: _Model, token: Any, chunk: GenerationChunk | ChatGenerationChunk | None) -> None:
        if not isinstance(chunk, ChatGenerationChunk):
            self._say(model, model.message, token)
            return
        message = chunk.message
        content = message.content
        if isinstance(content, str) and not message.additional_kwargs:
            if content and not model.no_text:
                model.said = True
                self.sink.report(s.Text(model.owner, model.message, content))
        else:
            self._say(model, model.message, content, message.additional_kwargs)
        for part in getattr(message, "tool_call_chunks", ()):
            self._call_chunk(model, part)

    @_guarded
    def catch_up(self, run_id: UUID, heard: Sequence[tuple[Any, Any]]) -> None:
        """Take several tokens of one model run, each with its chunk; plain text is told in one piece."""
        model = self._models.get(run_id)
        if model is None or model.muted:
            return
        text: list[str] = []
        for token, chunk in heard:
            message: Any = getattr(chunk, "message", None)
            content = getattr(message, "content", None)
            if (
                isinstance(content, str)
                and not message.additional_kwargs
                and not getattr(message, "tool_call_chunks", ())
            ):
                text.append(content)
                continue
            self._tell(model, text)
            self.on_llm_new_token(token, chunk=chunk, run_id=run_id)
        self._tell(model, text)

    def _tell(self, model: _Model, text: list[str]) -> None:
        if whole := "".join(text):
            model.said = True
            self.sink.report(s.Text(model.owner, model.message, whole))
        text.clear()

    @_guarded
    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        model = self._models.pop(run_id, None)
        if model is None:
            return
        generation = response.generations[0][0] if response.generations and response.generations[0] else None
        message = generation.message if isinstance(generation, ChatGeneration) else None
        if message is not None and message.id:
            self._seen.add(message.id)
        if not model.muted:
            if isinstance(message, AIMessage):
                self._say_whole(model, message, run=model.message)
            elif generation is not None and not model.said:
                self._say(model, model.message, generation.text)
            self.sink.report(s.ModelOver(model.owner, model.message))
        usage = token_usage_from_langchain_metadata(
            getattr(message, "usage_metadata", None),
            provider=model.metadata.get("ls_provider"),
            model=getattr(message, "response_metadata", {}).get("model_name")
            or model.metadata.get("ls_model_name"),
        )
        if usage is not None:
            self.sink.report(s.Usage(model.owner, usage))

    @_guarded
    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        model = self._models.pop(run_id, None)
        if model is not None and not model.muted:
            self.sink.report(s.ModelOver(model.owner, model.message))

    def _say(
        self, model: _Model, run: str, content: Any, additional: Mapping[str, Any] | None = None
    ) -> None:
        for kind, value in pieces(content, additional):
            if not value or model.no_text:
                continue
            if kind == "text":
                model.said = True
                self.sink.report(s.Text(model.owner, run, value))
            elif kind == "reasoning":
                model.said = True
                self.sink.report(s.Reasoning(model.owner, run, value))
            else:
                model.media += 1
                activity = f"{run}:media-{model.media}"
                self.sink.report(s.Activity(model.owner, activity, "media", {"part": value}))

    def _say_whole(self, model: _Model, message: AIMessage, *, run: str) -> None:
        """Say what of a finished answer was not streamed: all of it, or the calls that came only with the end."""
        if not model.said:
            self._say(model, run, message.content, message.additional_kwargs)
        if model.no_calls:
            self._quiet.update((model.owner, str(call["id"])) for call in message.tool_calls)
            return
        started = set(model.calls.values())
        for index, call in enumerate([*message.tool_calls, *message.invalid_tool_calls]):
            id_ = call["id"] or f"{run}:call-{index}"
            if id_ in started:
                continue
            self._called(model, run, id_, call["name"] or "")
            args = call["args"]
            text = args if isinstance(args, str) else json.dumps(args, ensure_ascii=False, default=str)
            self.sink.report(s.Arguments(model.owner, run, id_, text))

    def _call_chunk(self, model: _Model, part: Mapping[str, Any]) -> None:
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
            self.sink.report(s.Arguments(model.owner, model.message, model.calls[index], text))

    def _called(self, model: _Model, run: str, id_: str, name: str) -> None:
        self._unanswered.setdefault(model.owner, set()).add(id_)
        self._answered.get(model.owner, set()).discard(id_)
        predicted = predicts(model.metadata, name)
        if predicted is not None:
            self.sink.report(s.Custom(model.owner, PREDICT_STATE, predicted))
        self.sink.report(s.Call(model.owner, run, id_, name))

    # --------------------------------------------------------------- custom

    @_guarded
    def on_custom_event(self, name: str, data: Any, *, run_id: UUID, **kwargs: Any) -> None:
        run = self._runs.get(run_id)
        owner = None if run is None else _owner(run)
        for signal in spelled_out(owner, name, data):
            self.sink.report(signal)
            self.state_was_set = self.state_was_set or isinstance(signal, s.StateIs)
        self.sink.report(s.Custom(owner, name, data))


def _interrupts(error: GraphInterrupt) -> Sequence[Any]:
    return error.args[0] if error.args else ()


def question(
    owner: str | None,
    interrupt: Any,
    call: str | None = None,
    *,
    messages: Iterable[BaseMessage] = (),
    public: Callable[[str], str] = str,
) -> s.Question:
    """Return a LangGraph interrupt as a question.

    Its value is anything.  A mapping may name the protocol's fields, in either spelling, as it may under the
    official bridge; the value itself always goes along in `metadata["langgraph"]["raw"]`.  A review of tool calls
    says more: which calls (of the asking agent's `messages`), and how to answer; `metadata["byline"]["toolCalls"]`
    lists them under their `public` ids, and `toolCallId` is the first.
    """
    value = interrupt.value
    fields: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
    review = review_of(value, messages)

    def field(camel: str) -> Any:
        snake = re.sub(r"(?<!^)(?=[A-Z])", "_", camel).lower()
        return fields.get(camel, fields.get(snake))

    reason = fields.get("reason")
    message = value if isinstance(value, str) else fields.get("message")
    schema = field("responseSchema")
    expires = field("expiresAt")
    call = field("toolCallId") or call
    metadata: dict[str, Any] = {"langgraph": {"raw": value}}
    if review is not None:
        message = message or review.message
        schema = schema or review.schema(getattr(interrupt, "response_schema", None))
        call = call or next((action.call for action in review.actions if action.call is not None), None)
        metadata["byline"] = {"toolCalls": [_reviewed(action, public) for action in review.actions]}
    return s.Question(
        owner,
        str(interrupt.id),
        str(reason) if reason is not None else "langgraph:interrupt" if review is None else "tool_call",
        message=None if message is None else str(message),
        call=call,
        schema=schema if isinstance(schema, Mapping) else None,
        metadata=metadata,
        expires_at=None if expires is None else str(expires),
    )


def _reviewed(action: Action, public: Callable[[str], str]) -> dict[str, Any]:
    known = {} if action.call is None else {"toolCallId": public(action.call)}
    return {**known, "name": action.name, "args": action.args, "decisions": list(action.decisions)}


def _up(run: _Run | None) -> Iterator[_Run]:
    while run is not None:
        yield run
        run = run.parent


def _is_pushed(run: _Run, parent: _Run, metadata: Mapping[str, Any]) -> bool:
    """Return whether this is a `@task` of the functional API.

    It runs inside the node that called it and has no step tag, but a task namespace of its own.
    """
    return run.ns != parent.ns and metadata.get("langgraph_triggers") == _PUSHED and parent.inside is not None


def _owner(run: _Run) -> str | None:
    return None if run.inside is None else run.inside.owner


def _between(graph: _Run) -> tuple[_Run | None, str | None]:
    """Return the tool run, and the node, that stand between a graph and the graph that encloses it.

    A subagent that was called in a thread of the tool's own, with the tool's config handed over, has the node as
    its parent; when just one tool is at work in that node, it is the one.
    """
    node: _Run | None = None
    tool: _Run | None = None
    for run in _up(graph.parent):
        if run.is_graph:
            break
        if tool is None and run.call is not None:
            tool = run
        if run.node is not None:
            node = run
            break
    if tool is None and node is not None and len(node.tools) == 1:
        tool = node.tools[0]
    return tool, None if node is None else node.node


def _name(graph: _Run, tool: _Run | None, node: str | None) -> str:
    """Return the agent's own name; where it has none, that of the tool that called it, else the node's.

    `lc_agent_name` is inherited by whatever runs inside an agent, so it counts only where it changes.
    """
    inherited = None if graph.parent is None else graph.parent.agent_name
    for own in (graph.agent_name if graph.agent_name != inherited else None, graph.name):
        if own and own != DEFAULT_NAME:
            return own
    if tool is not None and tool.name:
        return tool.name
    return node or graph.name


def _stable_id(name: str, task_ns: str, tool: _Run | None, own_ns: str) -> str:
    """Return the `subagentRunId`: the same when the invocation is resumed, another when it is retried.

    Made of the enclosing task's namespace, the spawning call, and the numeric tail of the graph's own namespace:
    LangGraph's count of the graphs that one task has started.
    """
    tail = own_ns.rpartition("|")[2]
    ordinal = tail if tail.isdigit() else ""
    call = "" if tool is None else tool.call or ""
    return invocation_id(name, task_ns, call, ordinal)


def _messages(value: Any) -> Iterator[BaseMessage]:
    """Yield the messages that a node or a tool returned, in whatever it returned them."""
    if isinstance(value, BaseMessage):
        yield value
    elif isinstance(value, Command):
        yield from _messages(value.update)
    elif isinstance(value, Mapping):
        yield from _messages(value.get("messages"))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _messages(item)


def _result(outputs: Any) -> Any:
    """Return what the caller gets to read: the text of the last message, else the graph's output."""
    if isinstance(outputs, Mapping) and "messages" in outputs:
        last = outputs["messages"][-1] if outputs["messages"] else None
        if isinstance(last, Mapping):  # from a remote graph
            return parts_of(last.get("content") or "")
        return parts_of(last.content) if isinstance(last, BaseMessage) else s.ABSENT
    return s.ABSENT if outputs is None else outputs


def _ending(owner: str, error: BaseException) -> s.Closed | s.Failed | s.Suspended | None:
    """Return how an invocation ended with `error`; `None` if it asked, which the end of the run has to tell."""
    if isinstance(error, GraphInterrupt):
        # A breakpoint asks nothing: the next run goes on from there.
        return None if _interrupts(error) else s.Suspended(owner)
    if isinstance(error, GraphBubbleUp):
        return s.Closed(owner)  # control was handed on
    return s.Failed(owner, *_cause(error))


def _cause(error: BaseException) -> tuple[str, str]:
    if type(error).__name__ == "CancelledError":
        return "cancelled before it was over", CANCELLED
    return str(error) or type(error).__name__, type(error).__name__
