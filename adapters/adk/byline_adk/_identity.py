"""Who is this event's: the book of calls and invocations of one session, and the run that goes on in it.

No field of an ADK event identifies an invocation.  `author` is the parent's or the user's on synthesized and on
error events, `branch` leaks out of a ParallelAgent, and two single_turn calls of one agent share `node_info.path`.
What does identify one is *how it was called*, so the book keeps every function call with its owner, and finds an
invocation through the call that spawned it:

========================  ======================================================================================
how it was called         how its `before_agent` is known
========================  ======================================================================================
task, single_turn         its branch ends in a known call of the agent's name
transfer                  the transfer that was seen last, in this run or in the session
AgentTool, other tools    a context variable set in `before_tool`: the first agent to begin in it was spawned by it
workflow node, run_node   no call: its node path and ADK invocation id
Sequential, Parallel,     no call and no path of its own: name and ordinal under the agent that encloses it
Loop, custom agents
========================  ======================================================================================

Branches and paths are never split: ids come from providers and may hold any separator.  They are compared whole, or
with the end that a known call would give them.

The same book is written from the stored session before a run (`replay`), so that what a later run continues gets
the id it had, also in another process.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final

from ag_ui.core import FunctionCall, ToolCall
from byline._lanes import Ids
from byline.events import AssistantMessage, Message, ToolMessage

from ._compat import can
from ._remote import only_asks, task_of

__all__ = ["HERE", "SPAWN", "Book", "Invocation", "Kind", "Spawn", "ToolUse", "depth_first", "is_placeholder"]


class Kind(Enum):
    """How an invocation came about."""

    ROOT = auto()
    CALL = auto()
    """By a tool call that gets its result: single_turn, AgentTool, a workflow as a tool."""
    TASK = auto()
    CHAT = auto()
    """By a transfer of control."""
    NODE = auto()
    """By a workflow, or by `ctx.run_node`."""
    PART = auto()
    """By an agent that runs its sub-agents itself: Sequential, Parallel, Loop, custom."""


@dataclass(eq=False, slots=True)
class Invocation:
    """One run of one agent; the parent agent of the stream is the one of kind ROOT."""

    kind: Kind
    name: str
    parent: "Invocation | None" = None
    id: str | None = None
    """The `subagentRunId`; `None` as long as it is not known."""
    key: str | None = None
    """The owner in signals."""
    call: "ToolUse | None" = None
    """What spawned it."""
    agent: Any = None
    course: str = ""
    """The ADK invocation id it runs under."""
    branch: str | None = None
    path: str = ""
    opened: bool = False
    transparent: bool = False
    """A plugin says that it is no subagent: what it does is its parent's, whose key it has."""
    over: bool = False
    left: bool = False
    """`after_agent` was called, for a reason that is not a cancellation."""
    speaking: bool = False
    """Its model was asked and the answer has not been delivered whole."""
    failure: tuple[str, str | None] | None = None
    """Message and code: it failed, and that is written at its place in the stream."""
    gave: bool = False
    """It is a workflow, and its output was given: it is over with the node that gave it."""
    done: bool = False
    """It returned; closed as soon as nothing of it is on the way any more."""
    result: Any = None
    model: str | None = None
    """The model it asked last."""
    provider: str | None = None
    """Whose that model is."""
    peer: Mapping[str, str] | None = None
    """The A2A task and context that it is elsewhere, once they are known."""

    @property
    def mode(self) -> str | None:
        """The mode of its agent; `None` for one that has no modes."""
        mode: str | None = getattr(self.agent, "mode", None)
        return mode

    @property
    def asks_back(self) -> bool:
        """Whether it is a task that ADK keeps open until `finish_task`: delegated, or a node of a workflow."""
        return self.kind is Kind.TASK or (self.kind is Kind.NODE and self.mode == "task")

    def up(self) -> "Iterator[Invocation]":
        """Yield itself, its parent, and so on."""
        one: Invocation | None = self
        while one is not None:
            yield one
            one = one.parent

    def depth(self) -> int:
        """Return how many enclose it."""
        return sum(1 for _ in self.up()) - 1


@dataclass(eq=False, slots=True)
class ToolUse:
    """One function call of one model."""

    id: str
    name: str
    owner: Invocation
    tag: str
    """What an invocation that it spawns is called."""
    args: Mapping[str, Any] = field(default_factory=dict)
    course: str = ""
    long_running: bool = False
    answered: bool = False
    past: bool = False
    """It was made before this run."""
    public: str = ""
    """The id that the stream of its run gave it."""
    spawned: Invocation | None = None


@dataclass(eq=False, slots=True)
class Spawn:
    """A tool that is running: the first agent to begin inside was spawned by its call."""

    use: ToolUse
    taken: bool = False


SPAWN: Final[ContextVar[Spawn | None]] = ContextVar("byline_adk_spawn", default=None)
HERE: Final[ContextVar[Invocation | None]] = ContextVar("byline_adk_here", default=None)
"""The agent that began last in this context.  It leaks from one sibling to the next, so `Book._enclosing` walks up."""


class Book:
    """All calls and invocations of a session that matter to a run of it."""

    def __init__(self, root: Any) -> None:
        self.root: Final = Invocation(Kind.ROOT, root.name, agent=root, path=f"{root.name}@1", opened=True)
        self.live: Final[list[Invocation]] = []
        """Those that this run has entered or announced, oldest first."""
        self.courses: Final[dict[str, Invocation]] = {}
        """ADK invocation id -> whose it is, where not the root's: an `AgentTool` runs its agent under one of its own."""
        self.resumed: Final[dict[str, Invocation]] = {}
        """Name -> what an answer that this run brings lets continue."""
        self._uses: Final[dict[str, list[ToolUse]]] = {}
        self._counted: Final[Counter[str]] = Counter()
        self._nodes: Final[dict[tuple[str, str], Invocation]] = {}
        self._finals: Final[Counter[tuple[str, str]]] = Counter()
        self._parts: Final[Counter[tuple[str, str | None, str]]] = Counter()
        self._past_parts: Final[dict[tuple[str, str, int], Invocation]] = {}
        self._leaves: Final[dict[str, list[ToolUse]]] = {}
        self._ids: Final = Ids()
        self._expected: Final[dict[tuple[str, str, str], Invocation]] = {}
        self._in_control: Final[dict[tuple[str, str], Invocation]] = {}
        """Branch and name -> who was handed control there."""
        self._serial = 0
        self._paths_known: Final = can("node_path")
        self.nests: Final = any(True for _ in _nested(root))
        """Whether the app is a workflow with workflows among its nodes."""

    # ------------------------------------------------------------------ calls

    def note_use(
        self, owner: Invocation, call: Any, course: str, *, stored: bool, long_running: bool = False
    ) -> ToolUse:
        """Write down a function call.

        A provider may use an id again: the n-th use in the session is `id#n`.  What an AgentTool does inside is
        not stored and cannot be counted by the next process; its calls are told apart by their owner.
        """
        if stored:
            self._counted[call.id] += 1
            number = self._counted[call.id]
            tag = call.id if number == 1 else f"{call.id}#{number}"
        else:
            tag = f"{call.id}@{owner.id}"
        use = ToolUse(
            call.id,
            call.name or "",
            owner,
            tag,
            args=call.args or {},
            course=course,
            long_running=long_running,
        )
        use.public = self._ids.claim(call.id, owner.id)
        self._uses.setdefault(call.id, []).append(use)
        self._leaves.setdefault(f"{use.name}@{use.id}", []).append(use)
        return use

    def use(self, id_: str | None, near: Any = None) -> ToolUse | None:
        """Return the call that an answer with `id_` answers; `near` is the event or owner that says where."""
        uses = self._uses.get(id_ or "", [])
        if len(uses) > 1 and near is not None:
            if isinstance(near, Invocation):
                close = [use for use in uses if use.owner is near]
            else:
                close = [use for use in uses if _near(use, near)]
            uses = (
                close or uses
            )  # answered already or not: a transfer asks for the call that it has just answered
        waiting = [use for use in uses if not use.answered] or uses
        return waiting[-1] if waiting else None

    def waiting(self) -> list[ToolUse]:
        """Return the long-running calls that nobody has answered."""
        return [use for uses in self._uses.values() for use in uses if use.long_running and not use.answered]

    def history(self) -> list[Message]:
        """Return the past calls as messages: their public ids are taken, and the waiting ones are known."""
        out: list[Message] = []
        for uses in self._uses.values():
            for use in uses:
                function = FunctionCall(name=use.name, arguments="{}")
                made = ToolCall(id=use.public, function=function)
                held = f"{use.public}:call"
                out.append(AssistantMessage(id=held, tool_calls=[made], subagent_run_id=use.owner.id))
                if use.answered:
                    out.append(ToolMessage(id=f"{held}:result", tool_call_id=use.public, content=""))
        return out

    # ------------------------------------------------------------ invocations

    def enter(self, agent: Any, branch: str | None, path: str, course: str) -> Invocation:
        """Return the invocation that begins, or begins again, with a `before_agent`."""
        found = self._who(agent, branch, path, course)
        found.agent, found.course, found.left = agent, course, False
        if found.kind is not Kind.ROOT:
            found.branch, found.path = branch, path
        if found not in self.live:
            self.live.append(found)
        HERE.set(found)
        return found

    def _who(self, agent: Any, branch: str | None, path: str, course: str) -> Invocation:
        name = agent.name
        spawn = SPAWN.get()
        if spawn is not None and not spawn.taken:
            spawn.taken = True
            found = self.spawned_by(spawn.use, Kind.CALL, name)
            if course != spawn.use.course:
                self.courses[course] = found
            return found
        use = self._lane_of(branch or "")
        if use is not None and use.name == name:
            kind = Kind.TASK if getattr(agent, "mode", None) == "task" else Kind.CALL
            return self.spawned_by(use, kind, name)
        expected = self._expected.pop((course, branch or "", name), None)
        if expected is not None:
            return expected
        home = self.courses.get(course, self.root)
        if name == home.name and (agent.parent_agent is None or home.kind is Kind.CALL) and not branch:
            return home
        for known in (
            self._nodes.get((course, path)),
            self.resumed.get(name),
            self._in_control.get((branch or "", name)),
        ):
            if known is not None and not known.over and known.name == name:
                return known
        parent = self._enclosing(agent, path, home)
        if self.nests:
            parent = self.workflow_of(path, course, parent)
        outer = agent.parent_agent
        inside = outer is not None and not hasattr(outer, "mode")  # run by an agent that has no model
        unknown = not (path or self._paths_known or inside)  # its first event tells which of the two it is
        if unknown or _is_node(name, path):
            return self._node(name, path, course, parent)
        return self._part(name, course, parent)

    def spawned_by(self, use: ToolUse, kind: Kind, name: str) -> Invocation:
        """Return the invocation that a call spawned, a new one if there is none or the last one is over."""
        if use.spawned is None or use.spawned.over:
            tag = use.tag
            if use.spawned is not None:  # over and called again: a retry
                self._counted[use.id] += 1
                tag = f"{use.id}#{self._counted[use.id]}"
            use.spawned = self._new(kind, name, use.owner, tag, use, use.course)
        return use.spawned

    def _node(self, name: str, path: str, course: str, parent: Invocation) -> Invocation:
        """Return a node; where callbacks do not know their path, it gets its id with its first event."""
        node = self._new(Kind.NODE, name, parent, None, None, course)
        node.path = path
        if path:
            self._nodes[course, path] = node
            node.id = f"{course}:{path}"
        return node

    def workflow_of(self, path: str, course: str, around: Invocation) -> Invocation:
        """Return the innermost workflow that a node with `path` is in, from `around` inwards.

        A workflow that is a node has no callbacks, and its nodes' contexts do not name it.  Its place is in their paths, and
        what is a workflow is in the graph; one that `ctx.run_node` was given is in no graph, and not told from a function.
        """
        for node in _nested(around.agent):
            found = re.match(rf"{re.escape(around.path)}/{re.escape(node.name)}@\d+(?=/)", path)
            if found is None:
                continue
            one = self._nodes.get((course, found[0])) or self._node(node.name, found[0], course, around)
            one.agent = node
            return self.workflow_of(path, course, one)
        return around

    def _part(self, name: str, course: str, parent: Invocation) -> Invocation:
        part = self._new(Kind.PART, name, parent, None, None, course)
        self._number(part)
        return part

    def _number(self, part: Invocation) -> None:
        """Give an id to what has neither call nor path: an ordinal, counted on from the session's final texts."""
        place = (part.course, part.parent.key if part.parent else None, part.name)
        self._parts[place] += 1
        number = self._finals[part.course, part.name] + self._parts[place]
        inside = f"{part.parent.id}/" if part.parent is not None and part.parent.id else f"{part.course}:"
        part.id = f"{inside}{part.name}#{number}"

    def _new(
        self,
        kind: Kind,
        name: str,
        parent: Invocation,
        id_: str | None,
        call: ToolUse | None,
        course: str,
    ) -> Invocation:
        self._serial += 1
        one = Invocation(kind, name, parent, id_, f"{name}/{self._serial}", call, course=course)
        one.agent = self._agent(name)
        return one

    def _agent(self, name: str) -> Any:
        """Return the app's agent of a name; the one that really runs is known when it begins."""
        root = self.root.agent
        return root.find_agent(name) if hasattr(root, "find_agent") else None

    def place(self, one: Invocation, event: Any) -> None:
        """Give an id to what was entered without a path, from its first event (`None`: it has none)."""
        path = event.node_info.path if event is not None else ""
        if path and _is_node(one.name, path):
            one.path, one.id = path, f"{one.course}:{path}"
            if self.nests and one.parent is not None:
                one.parent = self.workflow_of(path, one.course, one.parent)
            self._nodes.setdefault((one.course, path), one)
        else:
            one.kind = Kind.PART
            self._number(one)

    def _enclosing(self, agent: Any, path: str, home: Invocation) -> Invocation:
        outer = agent.parent_agent.name if agent.parent_agent is not None else None
        here = HERE.get()
        if here is None or here is home:
            return home
        for one in here.up():
            if one is home:
                break
            if one.name == outer or (path and one.path and path.startswith(one.path + "/")):
                return one
        return home

    # --------------------------------------------------------------- transfers

    def hand_off(self, source: Invocation, use: ToolUse | None, target: str, event: Any) -> list[Invocation]:
        """Move control to `target`; returns the invocations that it leaves, innermost first.

        Down into the own subtree the caller stays; back to one that is open, that one continues; else all are left
        up to the target's parent.
        """
        line: list[Invocation] = []
        for one in source.up():
            line.append(one)
            if one.kind is not Kind.CHAT:
                break
        anchor = line[-1]
        root = getattr(source.agent, "root_agent", None)  # a workflow has none, the agents in its nodes have
        agent = None if root is None else root.find_agent(target)
        above = agent.parent_agent.name if agent is not None and agent.parent_agent is not None else None
        continued = next((one for one in line if one.name == target), None)
        if continued is None:
            parent = next((one for one in line if one.name == above), anchor)
            left = line[: line.index(parent)]
            # Without a call the transfer was made by the app's code: there is no id but the event's own.
            tag = use.tag if use is not None else event.id
            continued = self._new(Kind.CHAT, target, parent, tag, use, event.invocation_id)
            continued.agent = agent or continued.agent
            if use is not None:
                use.spawned = continued
        else:
            left = line[: line.index(continued)]
        branch = event.branch or ""
        for one in left:
            self._in_control.pop((branch, one.name), None)
        if continued.kind is Kind.CHAT:
            self._in_control[branch, target] = continued
        if continued is not self.root or branch:
            self._expected[event.invocation_id, branch, target] = continued
        return left

    # ------------------------------------------------------- whose is an event

    def owner(self, event: Any) -> Invocation:
        """Return whose an event is that no model made, from where it stands."""
        home = self.courses.get(event.invocation_id, self.root)
        failed = event.error_code and not event.content
        best, best_score = home, 0
        for one in self.live:
            if one.course != event.invocation_id or one.over:
                continue
            # An error event may carry its parent's name: there the place says more than the name.
            named = 0 if one.name != event.author else 1 if failed else 4
            place = 2 if one.path and one.path == event.node_info.path else 0
            lane = 1 if one.branch == event.branch else 0
            broken = 4 if failed and one.failure is not None else 0
            if not (named or broken or (place and lane)):
                continue
            score = named + place + lane + broken
            if score >= best_score:
                best, best_score = one, score
        if event.author in (home.name, "user") and best_score < 4:
            return home
        return best

    # ---------------------------------------------------------------- the past

    def replay(self, events: Iterable[Any]) -> None:
        """Write down what the session holds."""
        for event in events:
            owner = self.past_owner(event)
            long_running = event.long_running_tool_ids or ()
            for call in event.get_function_calls():
                if call.id and not (task_of(event) and self._asked_again(owner, call.id)):
                    self.note_use(
                        owner, call, event.invocation_id, stored=True, long_running=call.id in long_running
                    ).past = True
            for response in event.get_function_responses():
                self._past_answer(event, response)
            if event.actions.transfer_to_agent:
                self._past_transfer(owner, event)
            if event.error_code and not event.content and owner.kind is Kind.TASK:
                owner.over = True
                if owner.call is not None:
                    owner.call.answered = False
            self.count_final(event)
        self._expected.clear()

    def count_final(self, event: Any) -> None:
        """Count a stored final text: the ordinals of later runs go on from there."""
        if event.is_final_response() and event.content:
            self._finals[event.invocation_id, event.author] += 1

    def turn_over(self) -> None:
        """Take all that this run has written for the past of the next one."""
        for uses in self._uses.values():
            for use in uses:
                use.past = True
        for one in self.live:
            one.opened = one.left = one.done = one.speaking = False
        self.live.clear()
        self.resumed.clear()
        self._expected.clear()

    def _asked_again(self, owner: Invocation, id_: str) -> bool:
        """Return whether a remote agent's call is one that waits: it comes again with the status that says so."""
        return any(use.owner is owner and not use.answered for use in self._uses.get(id_, ()))

    def _past_answer(self, event: Any, response: Any) -> None:
        use = self.use(response.id, event)
        if use is None or is_placeholder(event, response):
            return
        if use.long_running and event.author != "user":
            return  # what a long-running tool returned at once is a pending result
        use.answered = True
        if use.spawned is not None and use.spawned.kind is not Kind.CHAT:
            use.spawned.over = True

    def _past_transfer(self, owner: Invocation, event: Any) -> None:
        use = next(
            (
                self.use(response.id, event)
                for response in event.get_function_responses()
                if response.name == "transfer_to_agent"
            ),
            None,
        )
        for one in self.hand_off(owner, use, event.actions.transfer_to_agent, event):
            one.over = True

    def past_owner(self, event: Any) -> Invocation:
        """Return whose a stored event is, from where it stands and what was stored before it."""
        author = event.author
        anchor = self.root
        use = self._lane_of(event.branch or "")
        if use is not None:
            kind = Kind.TASK if event.isolation_scope == use.id else Kind.CALL
            anchor = self.spawned_by(use, kind, use.name)
            anchor.branch = event.branch
        if author in (anchor.name, self.root.name):
            return anchor
        known = self._in_control.get((event.branch or "", author))
        if known is not None and not known.over:
            return known
        path = event.node_info.path
        node = self._nodes.get((event.invocation_id, path))
        if node is not None and node.name == author:
            return node
        if self.nests:
            anchor = self.workflow_of(path, event.invocation_id, anchor)
        if _is_node(author, path):
            return self._node(author, path, event.invocation_id, anchor)
        if event.long_running_tool_ids or event.get_function_calls():
            return self._past_part(author, event, anchor)
        return anchor

    def _lane_of(self, branch: str) -> ToolUse | None:
        """Return the call that a branch ends in: its end is compared with those that known calls give."""
        start = 0
        while True:
            uses = self._leaves.get(branch[start:])
            if uses:
                return next((use for use in reversed(uses) if not use.answered), uses[-1])
            start = branch.find(".", start) + 1
            if not start:
                return None

    def _past_part(self, name: str, event: Any, anchor: Invocation) -> Invocation:
        place = (event.invocation_id, name, self._finals[event.invocation_id, name])
        if place not in self._past_parts:
            self._past_parts[place] = self._part(name, event.invocation_id, anchor)
            self._parts.clear()  # counted by its final text, like all that is past
        return self._past_parts[place]


def _nested(workflow: Any) -> Iterator[Any]:
    """Yield the workflows among the nodes of a workflow; nothing is yielded for what is none."""
    for node in getattr(getattr(workflow, "graph", None), "nodes", None) or ():
        if getattr(node, "graph", None) is not None:
            yield node


def depth_first(invocations: Iterable[Invocation]) -> list[Invocation]:
    """Return them deepest first."""
    return sorted(invocations, key=lambda one: -one.depth())


def is_placeholder(event: Any, response: Any) -> bool:
    """Return whether a function response only stands for one: the call waits for a confirmation or a credential."""
    actions = event.actions
    if response.id in actions.requested_tool_confirmations or response.id in actions.requested_auth_configs:
        return True
    return bool(event.custom_metadata) and only_asks(event, response.id)


def _near(use: ToolUse, event: Any) -> bool:
    owner = use.owner
    return use.course == event.invocation_id and (owner.branch or None) == (event.branch or None)


def _is_node(name: str, path: str) -> bool:
    return re.search(rf"(?:^|/){re.escape(name)}@\d+$", path) is not None
