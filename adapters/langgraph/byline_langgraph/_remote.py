"""Remote graphs that are nodes: what runs in another process gives no callbacks.

Measured: a `RemoteGraph` in a node hands what its server streams to the graph around it, as parts of that graph's
own stream, under the namespace of the node's task and, below it, the namespaces of the remote graph's own subgraphs.
Messages arrive as plain mappings, which is how they are told from a local model's.  So the node's run opens and ends
the invocation, and the parts say what it did.  The parts trail the callbacks, but those of one task come before the
next `values` part of the graph around it: until then an ended invocation is kept open.

A remote graph that is called inside a tool or a function cannot be found by looking at the graph: of it only the tool
call is seen.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from ag_ui.core import token_usage_from_langchain_metadata
from byline import signals as s
from byline.agent import Sink
from byline.delegation import MODES

from ._content import invocation_id, parts_of, pieces

__all__ = ["Remotes"]


class _Remote:
    """One remote invocation."""

    __slots__ = ("calls", "heard", "owner", "speaking")

    def __init__(self, owner: str) -> None:
        self.owner: Final = owner
        self.heard: set[str] = set()  # messages and calls, which come again as a whole when they are complete
        self.speaking: str | None = None  # the open message
        self.calls: dict[Any, str] = {}  # of the open message, by the chunks' index


class Remotes:
    """The remote invocations of one run, by namespace."""

    def __init__(self, sink: Sink) -> None:
        self.nodes: Mapping[str, str] = {}
        """The nodes that are remote, as `_walk.remote_nodes` gives them."""
        self._sink: Final = sink
        self._open: Final[dict[str, _Remote]] = {}
        self._ended: list[tuple[str, s.Signal]] = []

    def entered(self, ns: str, parent: str | None, run_id: str) -> None:
        """A node's run began in the task `ns`: open the remote graph that it is, if it is one."""
        if not self.nodes:
            return
        name = self.nodes.get("|".join(part.partition(":")[0] for part in ns.split("|")))
        if name is not None:
            self.settle()  # an attempt before this one, if there was one
            self._announce(ns, name, parent, run_id)

    def owner(self, ns: str) -> str | None:
        """Return the remote invocation that this namespace belongs to; `None` when it is no remote one."""
        remote = self._find(ns)
        return None if remote is None else remote.owner

    def left(self, ns: str, ending: s.Signal | None) -> None:
        """The node's run is over: end its invocation, by `ending` if it did not stop to ask, when its parts have come."""
        if ns in self._open and ending is not None:
            self._ended.append((ns, ending))

    def settle(self) -> None:
        """All parts of what has ended have come."""
        for ended, ending in self._ended:
            below = [ns for ns in self._open if ns.startswith(f"{ended}|")]
            for ns in sorted(below, key=len, reverse=True):
                self._sink.report(s.Closed(self._open.pop(ns).owner))
            self._open.pop(ended, None)
            self._sink.report(ending)
        self._ended = []

    def message(self, ns: str, message: Mapping[str, Any]) -> None:
        """Take a message, or a piece of one, in the server's spelling."""
        remote = self._find(ns)
        if remote is None:
            return
        kind = message.get("type")
        if kind == "tool":
            self._over(remote)
            content = parts_of(message.get("content") or "")
            self._sink.report(s.Result(remote.owner, str(message.get("tool_call_id")), content))
        elif kind in ("ai", "AIMessageChunk"):
            self._said(remote, message, str(message.get("id")), whole=kind == "ai")

    def _find(self, ns: str) -> _Remote | None:
        """Return whose part this is; a namespace below a remote graph's is one of its own subgraphs."""
        if ns in self._open or "|" not in ns:
            return self._open.get(ns)
        outer, _, last = ns.rpartition("|")
        parent = self._find(outer)
        if parent is None or last.isdigit():  # a number is a further graph of the same task
            return parent
        return self._announce(ns, last.partition(":")[0], parent.owner, ns)

    def _announce(self, ns: str, name: str, parent: str | None, key: str) -> _Remote:
        remote = self._open[ns] = _Remote(key)
        metadata = MODES[("langgraph", "subgraph")].metadata()
        self._sink.report(s.Opened(key, name, id=invocation_id(name, ns), parent=parent, metadata=metadata))
        return remote

    def _said(self, remote: _Remote, message: Mapping[str, Any], id_: str, *, whole: bool) -> None:
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
            self._used(owner, message)
        remote.heard.add(id_)
        for part in message.get("tool_call_chunks") or ():
            self._called(remote, part)
        if whole:
            for call in message.get("tool_calls") or ():
                if call.get("id") not in remote.heard:
                    self._called(remote, {**call, "args": json.dumps(call.get("args") or {})})
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

    def _used(self, owner: str, message: Mapping[str, Any]) -> None:
        known = message.get("response_metadata") or {}
        usage = token_usage_from_langchain_metadata(
            message.get("usage_metadata"), provider=known.get("model_provider"), model=known.get("model_name")
        )
        if usage is not None:
            self._sink.report(s.Usage(owner, usage))
