"""Remote graphs, as nodes and as the observed graph itself: what runs in another process gives no callbacks.

Measured: a `RemoteGraph` in a node hands what its server streams to the graph around it, as parts of that graph's
own stream, under the namespace of the node's task and, below it, the namespaces of the remote graph's own subgraphs.
Messages arrive as plain mappings, which is how they are told from a local model's.  So the node's run opens and ends
the invocation, and the parts say what it did.  The parts trail the callbacks, but those of one task come before the
next `values` part of the graph around it: until then an ended invocation is kept open.

A remote graph that is called inside a tool or a function cannot be found by looking at the graph: of it only the tool
call is seen.

Under a remote graph's own namespace each further one is a graph that ran in one of its tasks: an invocation, of which
the parts tell no more than the namespace and, with a message, the agent's name.  The second graph of one task has a
number behind the namespace of the first, and is its sibling.  `values` of a graph come when a step of it is over, and
with the step all that ran in it.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ag_ui.core import token_usage_from_langchain_metadata
from byline import signals as s
from byline.agent import Sink
from byline.delegation import MODES

from ._content import invocation_id, parts_of, pieces
from ._outputs import messages_in, result_of
from ._review import question

__all__ = ["Remotes"]


class _Remote:
    """One remote invocation."""

    __slots__ = ("agent", "asked", "calls", "heard", "owner", "speaking")

    def __init__(self, owner: str | None) -> None:
        self.owner: Final = owner
        self.agent: str | None = None  # the name that its messages come with
        self.asked = False  # whether it, or one below it, waits for an answer
        self.heard: set[str] = set()  # messages and calls, which come again as a whole when they are complete
        self.speaking: str | None = None  # the open message
        self.calls: dict[Any, str] = {}  # of the open message, by the chunks' index


def _path(ns: str) -> tuple[str, ...]:
    """Return the graphs on the way to the one at `ns`: a number belongs to the segment before it."""
    path: list[str] = []
    for part in ns.split("|") if ns else ():
        if part.isdigit() and path:
            path[-1] += f"|{part}"
        else:
            path.append(part)
    return tuple(path)


class Remotes:
    """The remote invocations of one run, by namespace."""

    def __init__(self, sink: Sink) -> None:
        self.nodes: Mapping[str, str] = {}
        """The nodes that are remote, as `_walk.remote_nodes` gives them."""
        self._sink: Final = sink
        self._open: Final[dict[str, _Remote]] = {}
        self._ended: list[tuple[str, s.Signal]] = []
        self._values: Final[dict[str, Any]] = {}  # the newest of each graph

    def begin(self) -> None:
        """The observed graph itself is remote."""
        self._open[""] = _Remote(None)

    def entered(self, ns: str, parent: str | None, run_id: str) -> None:
        """A node's run began in the task `ns`: open the remote graph that it is, if it is one."""
        if not self.nodes:
            return
        name = self.nodes.get("|".join(part.partition(":")[0] for part in ns.split("|")))
        if name is not None:
            self.settle()  # an attempt before this one, if there was one
            self._announce(ns, name, parent, run_id, MODES[("langgraph", "subgraph")].metadata())

    def owner(self, ns: str) -> str | None:
        """Return the remote invocation that this namespace belongs to; `None` when it is no remote one."""
        remote = self._find(ns) if self._open else None
        return None if remote is None else remote.owner

    def left(self, ns: str, ending: s.Signal | None) -> None:
        """The node's run is over: end its invocation, by `ending` if it did not stop to ask, when its parts have come."""
        if ns in self._open and ending is not None:
            self._ended.append((ns, ending))

    def settle(self) -> None:
        """All parts of what has ended have come."""
        for ended, ending in self._ended:
            self.step_over(ended)
            self._open.pop(ended, None)
            self._sink.report(ending)
        self._ended = []

    def step_over(self, ns: str) -> None:
        """A step of the graph at `ns` is over: whatever ran in it has ended, but for what asked."""
        above = _path(ns)
        self._end(
            one for one in {**self._open, **self._values} if _path(one)[: len(above)] == above != _path(one)
        )
        remote = self._open.get(ns)
        if remote is not None:
            self._over(remote)

    def _task_over(self, ns: str, task: str) -> None:
        """The node's run `task` in the graph at `ns` is over, and with it the graphs that it called."""
        of = len(_path(ns))
        inner = f"{ns}|{task}" if ns else task
        self._end(
            one
            for one in {**self._open, **self._values}
            if len(_path(one)) > of and (one == inner or one.startswith(f"{inner}|"))
        )

    def _end(self, which: Iterable[str]) -> None:
        for one in sorted(which, key=lambda ns: -len(_path(ns))):
            remote = self._find(one)
            if remote is None or remote.owner is None or remote.asked:
                continue
            self._over(remote)
            self._sink.report(s.Closed(remote.owner, result_of(self._values.pop(one, None))))
            del self._open[one]

    def values(self, ns: str, values: Any) -> None:
        """Take the state of the graph at `ns` after a step.  It may still be unnamed: its first message names it."""
        self.step_over(ns)
        self._values[ns] = values

    def asked(self, ns: str, interrupt: Any) -> None:
        """Take an interrupt that stopped the graph at `ns`; it comes again from each graph around that one."""
        for depth in range(len(_path(ns)) + 1):
            remote = self._find("|".join(_path(ns)[:depth]))
            if remote is not None:
                remote.asked = True
        owner = self.owner(ns)
        self._sink.report(
            question(
                owner,
                interrupt,
                messages=messages_in(self._values.get(ns)),
                public=lambda call: self._sink.attributor.public_call(owner, call),
            )
        )

    def message(self, ns: str, message: Mapping[str, Any], metadata: Any = None) -> None:
        """Take a message, or a piece of one, in the server's spelling."""
        known: Mapping[str, Any] = metadata if isinstance(metadata, Mapping) else {}
        agent = known.get("lc_agent_name")
        remote = self._find(ns, agent if isinstance(agent, str) else None)
        if remote is None:
            return
        remote.agent = remote.agent or agent
        kind = message.get("type")
        if kind == "tool":
            self._over(remote)
            if task := str(known.get("langgraph_checkpoint_ns") or "").rpartition("|")[2]:
                self._task_over(ns, task)
            content = parts_of(message.get("content") or "")
            self._sink.report(s.Result(remote.owner, str(message.get("tool_call_id")), content))
        elif kind in ("ai", "AIMessageChunk"):
            self._said(remote, message, known, whole=kind == "ai")

    def _find(self, ns: str, agent: str | None = None) -> _Remote | None:
        """Return whose part this is; a namespace below a remote graph's is one of its own subgraphs.

        It has the name that its messages come with, unless that is inherited from the agent around it.
        """
        path = _path(ns)
        if ns in self._open or not path:
            return self._open.get(ns)
        parent = self._find("|".join(path[:-1]))
        if parent is None:
            return None
        name = agent if agent and agent != parent.agent else path[-1].partition(":")[0]
        # A subgraph node or an agent called in a tool: the parts do not tell, and so nothing is said of its contract.
        return self._announce(ns, name, parent.owner, ns, {"framework": "langgraph"})

    def _announce(
        self, ns: str, name: str, parent: str | None, key: str, metadata: Mapping[str, Any]
    ) -> _Remote:
        remote = self._open[ns] = _Remote(key)
        self._sink.report(
            s.Opened(key, name, id=invocation_id(name, ns), parent=parent, metadata=dict(metadata))
        )
        return remote

    def _said(
        self, remote: _Remote, message: Mapping[str, Any], metadata: Mapping[str, Any], *, whole: bool
    ) -> None:
        id_ = str(message.get("id"))
        if remote.speaking not in (None, id_):
            self._over(remote)
        owner = remote.owner
        remote.speaking = id_
        if not (whole and id_ in remote.heard):
            for kind, value in pieces(message.get("content"), message.get("additional_kwargs")):
                if kind == "media":
                    self._sink.report(s.Activity(owner, f"{id_}:media", "media", {"part": value}))
                else:
                    self._sink.report((s.Text if kind == "text" else s.Reasoning)(owner, id_, value))
            self._used(owner, message, metadata)
        remote.heard.add(id_)
        last = whole or message.get("chunk_position") == "last"
        for part in message.get("tool_call_chunks") or ():
            self._called(remote, part)
        for call in (message.get("tool_calls") or ()) if whole else ():
            if call.get("id") not in remote.heard:
                self._called(remote, {**call, "args": json.dumps(call.get("args") or {})})
        if last:
            self._over(remote)

    def _called(self, remote: _Remote, part: Mapping[str, Any]) -> None:
        run, index = str(remote.speaking), part.get("index")
        if part.get("id") and part.get("name"):
            call = remote.calls[index] = str(part["id"])
            remote.heard.add(call)
            self._sink.report(s.Call(remote.owner, run, call, str(part["name"])))
        if part.get("args") and index in remote.calls:
            self._sink.report(s.Arguments(remote.owner, run, remote.calls[index], str(part["args"])))

    def _over(self, remote: _Remote) -> None:
        if remote.speaking is not None:
            self._sink.report(s.ModelOver(remote.owner, remote.speaking))
        remote.speaking = None
        remote.calls.clear()

    def _used(self, owner: str | None, message: Mapping[str, Any], metadata: Mapping[str, Any]) -> None:
        known = message.get("response_metadata") or {}
        usage = token_usage_from_langchain_metadata(
            message.get("usage_metadata"),
            provider=known.get("model_provider") or metadata.get("ls_provider"),
            model=known.get("model_name") or metadata.get("ls_model_name"),
        )
        if usage is not None:
            self._sink.report(s.Usage(owner, usage))
