"""A `RemoteGraph` in a node: an agent on a server, seen through stream parts alone.

It calls no callbacks here.  Its parts come through the stream of the graph around it, under the namespace of the
node's task, and carry messages as plain dictionaries, which is how they are told from local ones.  They trail the
node: what is opened by them is closed after the superstep, when the graph's next values arrive.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from byline import signals as s
from byline.delegation import MODES
from langchain_core.messages import AIMessageChunk, ToolMessage, convert_to_messages

if TYPE_CHECKING:
    from ._handler import Handler, _Model, _Run

__all__ = ["RemoteLanes", "has_remote"]

_SEPARATOR: Final = "|"


def has_remote(graph: Any) -> bool:
    """Return whether a node of `graph`, or of a subgraph of it, is a `RemoteGraph`."""
    nodes = getattr(graph, "nodes", {})
    if any(type(getattr(node, "bound", None)).__name__ == "RemoteGraph" for node in nodes.values()):
        return True
    return (
        any(has_remote(inner) for _, inner in graph.get_subgraphs())
        if hasattr(graph, "get_subgraphs")
        else False
    )


class _Place(NamedTuple):
    """A local node that something remote may run in."""

    node: "_Run"
    owners: dict[str, None]


class RemoteLanes:
    """Turns the parts of remote graphs into signals, for one run."""

    def __init__(self, handler: "Handler") -> None:
        self._handler: Final = handler
        self._places: Final[dict[str, _Place]] = {}
        self._left: Final[dict[str, s.Closed | s.Failed | None]] = {}
        self._models: Final[dict[tuple[str, str], _Model]] = {}
        self._speaking: Final[dict[str, str]] = {}

    def entered(self, node: "_Run") -> None:
        """Note that a local node began."""
        self._places[node.ns] = _Place(node, {})

    def left(self, node: "_Run", ending: s.Closed | s.Failed | None) -> None:
        """Note how a local node ended; `None` when it waits for an answer."""
        if node.ns in self._places:
            self._left[node.ns] = ending

    def message(self, ns: Sequence[str], data: Any) -> None:
        """Take a part of the mode `messages`; local ones have been told by callbacks."""
        message, metadata = data
        if not isinstance(message, Mapping):
            return
        owner = self._owner(ns, metadata if isinstance(metadata, Mapping) else {})
        if owner is None:
            return
        report = self._handler.sink.report
        kind = message.get("type")
        if kind == "tool":
            [answer] = convert_to_messages([dict(message)])
            if isinstance(answer, ToolMessage):
                self._over(owner)
                report(s.Result(owner, answer.tool_call_id, self._handler.content(answer.content)))
        elif kind in ("AIMessageChunk", "ai"):
            id_ = str(message.get("id") or f"{owner}:said")
            if self._speaking.get(owner) != id_:
                self._over(owner)
                self._speaking[owner] = id_
            model = self._models.setdefault((owner, id_), self._handler.speaker(owner, id_))
            fields = {name: message[name] for name in _FIELDS if message.get(name)}
            chunk = AIMessageChunk(content=message.get("content") or "", id=id_, **fields)
            self._handler.speak(model, chunk, whole=kind == "ai")

    def settle(self) -> None:
        """A superstep is over: close what ran in the nodes that have ended."""
        for ns, ending in self._left.items():
            owners = list(self._places.pop(ns).owners)
            for owner in reversed(owners):
                self._over(owner)
                if ending is not None:
                    outermost = owner == owners[0]
                    self._handler.sink.report(
                        ending._replace(owner=owner)
                        if outermost or isinstance(ending, s.Failed)
                        else s.Closed(owner)
                    )
        self._left.clear()

    def _over(self, owner: str) -> None:
        id_ = self._speaking.pop(owner, None)
        if id_ is not None:
            self._handler.sink.report(s.ModelOver(owner, id_))

    def _owner(self, ns: Sequence[str], metadata: Mapping[str, Any]) -> str | None:
        """Return who speaks in a namespace: the node's remote graph, or a subgraph in it; announce whoever is new."""
        depth = next((k for k in range(len(ns), 0, -1) if _SEPARATOR.join(ns[:k]) in self._places), 0)
        if not depth:
            return None
        place = self._places[_SEPARATOR.join(ns[:depth])]
        parent = None if place.node.inside is None else place.node.inside.owner
        name = str(place.node.node)
        for end in range(depth, len(ns) + 1):
            path = _SEPARATOR.join(ns[:end])
            owner = f"remote:{path}"
            if end > depth:
                agent = metadata.get("lc_agent_name") if end == len(ns) else None
                name = str(agent or ns[end - 1].partition(":")[0])
            if owner not in place.owners:
                place.owners[owner] = None
                known = {**MODES["langgraph", "subgraph"].metadata(), "remote": True}
                id_ = self._handler.stable_id(name, path)
                self._handler.sink.report(s.Opened(owner, name, id=id_, parent=parent, metadata=known))
            parent = owner
        return parent


_FIELDS: Final = ("tool_call_chunks", "tool_calls", "additional_kwargs")
