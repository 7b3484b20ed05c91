"""What deepagents adds to LangGraph's run tree: the `task` tool, and what it hands to a subagent.

Measured on deepagents 0.7.12 to 0.7.32, and what this module rests on:

* `task` is a fixed name with two arguments, `description` and `subagent_type`.  A call is refused with a text (an
  unknown type, a fork that tries to delegate) or a validation error, and nothing runs below it.  What runs below it
  directly is the subagent.
* An isolated subagent starts from one message, the description, and from the parent's state without what is private.
  A fork starts from the parent's messages, without the one that holds the call, and one more with a preamble and the
  description; a declarative one carries the private mark `_deepagents_forked_context`, a compiled one does not.
* Inherited messages keep their ids, and no callback repeats them: nothing has to be done to keep them out.
* A subagent resumes with the inputs it was started with.
* The result is made by the tool, after the subagent: the structured response, or the last text, in a `ToolMessage`;
  the tools node may still change it (an oversized one is moved to a file).  Where the node runs this call alone, as
  `create_agent`'s does, its output is what the parent receives.
* A runnable that is no graph has no steps; anything else that runs below it gives it away.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from byline import signals as s
from byline.agent import Sink
from byline.delegation import MODES
from byline_langgraph._content import parts_of
from byline_langgraph._handler import Handler, guarded
from byline_langgraph._outputs import cause_of, messages_in, result_of
from byline_langgraph._speech import Model
from byline_langgraph._tree import Run, Scope, up
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langgraph.types import Command

from ._cache import Asked, calls_of, first_difference

__all__ = ["FORK_MARK", "TaskHandler"]

FORK_MARK: Final = "_deepagents_forked_context"
"""The private state key that a declarative fork starts with."""

PROMPT_CACHE: Final = "promptCache"
"""The key in the terminal event's `metadata["byline"]`."""


class _Task:
    """A `task` call whose subagent runs, until the call has its result."""

    __slots__ = ("call", "ended", "owner", "parent", "result", "structured")

    def __init__(self, owner: str, parent: str | None, call: str | None) -> None:
        self.owner: Final = owner
        self.parent: Final = parent
        self.call: Final = call
        self.ended = False  # the subagent is over, and did not fail
        self.result: Any = s.ABSENT
        self.structured: Any = None


class _Prompts:
    """What is known of the model requests of one owner."""

    __slots__ = (
        "before",
        "cached",
        "difference",
        "first",
        "last",
        "read",
        "repeated",
        "requests",
        "shown",
        "theirs",
    )

    def __init__(self, before: Asked | None, *, shown: bool) -> None:
        self.before: Final = before
        """What the parent's model was asked last when this one began."""
        self.shown: Final = shown
        self.theirs: Final = (
            {call[:2] for call in calls_of(before.request().messages)}
            if shown and before is not None
            else set()
        )
        self.last: Asked | None = None
        self.difference: dict[str, Any] | None = None
        self.requests = 0
        self.repeated: list[dict[str, Any]] = []
        self.read = self.cached = 0
        self.first: dict[str, int] | None = None

    def facts(self) -> dict[str, Any]:
        """Return what goes to the terminal event."""
        broken = self.difference is not None
        facts: dict[str, Any] = {
            "prefix": "unknown" if self.before is None else "broken" if broken else "intact",
            "requests": self.requests,
        }
        if broken:
            facts["firstDifference"] = self.difference
        if self.first is not None:
            facts["firstRequest"] = self.first
            facts["inputTokens"] = self.read
            facts["cachedInputTokens"] = self.cached
        if self.repeated:
            facts["repeatedCalls"] = list(self.repeated)
        return facts


class TaskHandler(Handler):
    """LangGraph's observer, and on top of it what is said of `task` and of prompts."""

    def __init__(self, sink: Sink, transparent: frozenset[str]) -> None:
        super().__init__(sink, transparent)
        self.resumes = False
        """Whether the run continues an earlier one: what is over by then may pass by once more."""
        self._tasks: Final[dict[UUID, _Task]] = {}  # by the run of the tool
        self._at_work: Final[dict[str, _Task]] = {}  # by the owner
        self._in_node: Final[
            dict[UUID, tuple[_Task, Any]]
        ] = {}  # those whose node is not over, with the tool's output
        self._prompts: Final[dict[str | None, _Prompts]] = {None: _Prompts(None, shown=False)}
        self._written: list[tuple[str, Mapping[str, Any]]] = []

    def take_written(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Return what subagents have written back to the root's state since the last time, in that order."""
        written, self._written = self._written, []
        return written

    # ----------------------------------------------------------- subagents

    def _runs_no_step(self, run: Run) -> None:
        self._give_away(run)

    def _ends(self, run: Run) -> None:
        if not self.resumes:
            self._give_away(run)

    @guarded
    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        run = self._runs.get(run_id)
        super().on_chain_error(error, run_id=run_id)
        if run is not None and run.opened is not None:
            self._forget(run.opened)

    def _give_away(self, run: Run) -> None:
        """Show that a run is no graph: if `task` started it, it is a subagent all the same, and begins here."""
        if not run.is_graph and run.parent is not None and _asked_for(run.parent):
            self._open(run, run)

    def _refined(self, opened: s.Opened, graph: Run, tool: Run | None) -> s.Opened:
        asked = None if tool is None or graph.parent is not tool else _asked_for(tool)
        caller = self._prompts.get(opened.parent)
        before = None if caller is None else caller.last
        self._prompts[opened.owner] = _Prompts(before, shown=asked is not None)
        if tool is None or asked is None:
            return opened
        task = _Task(opened.owner, opened.parent, tool.call)
        self._tasks[tool.id] = self._at_work[opened.owner] = task
        name, description = asked
        known = {**_contract(graph.inputs, description), "langchainRunId": str(graph.id)}
        return opened._replace(name=name, description=description, metadata=known)

    def _close(self, scope: Scope, outputs: Any) -> None:
        task = None if scope.invocation is None else self._at_work.get(scope.invocation)
        self._forget(scope)
        if task is None:
            super()._close(scope, outputs)
            return
        task.ended = True  # what its caller receives is known when the tool ends
        task.result = result_of(outputs)
        if isinstance(outputs, Mapping):
            task.structured = outputs.get("structured_response")

    def _forget(self, scope: Scope) -> None:
        """Let go of the prompts of what is over."""
        if scope.invocation is not None:
            self._prompts.pop(scope.invocation, None)

    # ---------------------------------------------------------------- tools

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        if run_id in self._tasks:
            self._task_ended(output, run_id=run_id)
        else:
            super().on_tool_end(output, run_id=run_id)

    @guarded
    def _task_ended(self, output: Any, *, run_id: UUID) -> None:
        run, task = self._runs[run_id], self._tasks.pop(run_id)
        if task.parent is None and isinstance(output, Command) and isinstance(output.update, Mapping):
            self._written.append((task.owner, {k: v for k, v in output.update.items() if k != "messages"}))
        node = next((run for run in up(run) if run.node is not None), None)
        if node is None or not _runs_one_call(node.inputs):
            self._received(task, _answer_to(task.call, output))
            super().on_tool_end(output, run_id=run_id)
            return
        self._end_tool(run_id)
        if node.id in self._in_node:  # a middleware did not like the first answer and calls again
            self._received(*self._in_node.pop(node.id))
        self._in_node[node.id] = (task, _answer_to(task.call, output))

    def _left_node(self, run: Run, outputs: Any) -> None:
        task, given = self._in_node.pop(run.id, (None, None))
        if task is not None:
            answer = _answer_to(task.call, outputs)
            if answer is not None and given is not None and answer.content != given.content:
                task.structured = None  # it received something else
            self._received(task, answer or given)
        super()._left_node(run, outputs)

    def _received(self, task: _Task, answer: ToolMessage | None) -> None:
        """Close an invocation with what its caller received."""
        del self._at_work[task.owner]
        result = task.result if answer is None else parts_of(answer.content)
        self.sink.report(s.Closed(task.owner, result if task.structured is None else task.structured))

    @guarded
    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        task = self._tasks.pop(run_id, None)
        super().on_tool_error(error, run_id=run_id)
        if task is None:
            return
        del self._at_work[task.owner]
        if task.ended:  # what it returned could not be used
            self.sink.report(s.Failed(task.owner, *cause_of(error)))

    # -------------------------------------------------------------- prompts

    def _requested(self, model: Model, messages: Any, params: Mapping[str, Any]) -> None:
        prompts = self._prompts.get(model.owner)
        if model.muted or prompts is None or not messages or isinstance(messages[0], str):
            return  # a model that takes plain text is none of an agent's
        prompts.requests += 1
        prompts.last = Asked(list(messages[0]), model.metadata, params)
        if not prompts.shown:
            return
        if prompts.requests == 1 and prompts.before is not None:
            prompts.difference = first_difference(prompts.last.request(), prompts.before.request())
        self.sink.report(s.Observed(model.owner, PROMPT_CACHE, prompts.facts()))

    def _answered(self, model: Model, response: LLMResult) -> None:
        prompts = None if model.muted else self._prompts.get(model.owner)
        if prompts is None or not prompts.shown:
            return
        generation = response.generations[0][0] if response.generations and response.generations[0] else None
        message = generation.message if isinstance(generation, ChatGeneration) else None
        if not isinstance(message, AIMessage):
            return
        if usage := message.usage_metadata:
            cached = usage.get("input_token_details", {}).get("cache_read") or 0
            prompts.read += usage["input_tokens"]
            prompts.cached += cached
            if prompts.first is None and prompts.requests == 1:
                prompts.first = {"inputTokens": usage["input_tokens"], "cachedInputTokens": cached}
        for name, args, call in calls_of([message]):
            if (name, args) in prompts.theirs and call is not None:
                public = self.sink.attributor.public_call(model.owner, call)
                prompts.repeated.append({"name": name, "toolCallId": public})
        self.sink.report(s.Observed(model.owner, PROMPT_CACHE, prompts.facts()))


def _asked_for(tool: Run) -> tuple[str, str] | None:
    """Return the type and the description of a `task` call, or `None` for any other tool, of this name or not."""
    inputs = tool.inputs
    if tool.call is None or tool.name != "task" or not isinstance(inputs, Mapping):
        return None
    name, description = inputs.get("subagent_type"), inputs.get("description")
    return (name, description) if isinstance(name, str) and isinstance(description, str) else None


def _contract(inputs: Mapping[str, Any], description: str) -> dict[str, Any]:
    """Return the context mode, as the subagent's own inputs show it, and what it inherited.

    The parent's messages are told by their number: an isolated subagent has one message, and it is the description.
    """
    isolated, fork = MODES["deepagents", "isolated"], MODES["deepagents", "fork"]
    messages = list(messages_in(inputs))
    marked = bool(inputs.get(FORK_MARK))
    if not marked and len(messages) == 1 and messages[0].content == description:
        return isolated.metadata()
    contract = (
        fork if marked else replace(fork, leaf=None)
    )  # the guard against delegating is the declarative fork's
    return {
        **contract.metadata(),
        "inheritedMessages": len(messages) - 1,
        "inheritedState": sorted(str(key) for key in inputs if key not in ("messages", FORK_MARK)),
    }


def _runs_one_call(inputs: Any) -> bool:
    """Return whether a tools node was given one call to run, which is how `create_agent` does it."""
    if isinstance(inputs, Mapping):
        return "tool_call" in inputs
    return (
        isinstance(inputs, list)
        and len(inputs) == 1
        and isinstance(inputs[0], Mapping)
        and "args" in inputs[0]
    )


def _answer_to(call: str | None, output: Any) -> ToolMessage | None:
    return next(
        (one for one in messages_in(output) if isinstance(one, ToolMessage) and one.tool_call_id == call),
        None,
    )
