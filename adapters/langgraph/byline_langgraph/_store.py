"""LangGraph's own store as the place where artifacts are kept."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final
from uuid import uuid4

from byline.artifacts import Artifact, ArtifactFact, Counts
from byline.errors import StoreError
from langgraph.store.base import BaseStore

__all__ = ["GraphStore"]

_ARTIFACTS: Final = ("byline", "artifacts")
_FACTS: Final = ("byline", "artifact_facts")
_PAGE: Final = 100


class GraphStore:
    """Keeps artifacts in a LangGraph `BaseStore`: `Artifacts(GraphStore(store))`.

    Such a store has no counter that two processes could raise at once, so every fact is an item of its own.
    """

    def __init__(self, store: BaseStore) -> None:
        self._store: Final = store

    def put(self, artifacts: Sequence[Artifact]) -> None:
        """Keep artifacts; one that is there stays as it is, but for the invocation if it was not known."""
        for artifact in artifacts:
            known = self._value(artifact.id)
            if known is None or (known["invocation"] is None and artifact.invocation is not None):
                value = {**asdict(artifact), "body": None, "body64": _packed(artifact.body)}
                self._guarded("put", _ARTIFACTS, artifact.id, value, index=False)

    def get(self, id: str) -> Artifact | None:  # noqa: A002
        """Return an artifact with its body."""
        known = self._value(id)
        if known is None:
            return None
        fields = {name: value for name, value in known.items() if name != "body64"}
        return Artifact(**{**fields, "body": _unpacked(known["body64"])})

    def ids(self, thread: str, user: str) -> list[str]:
        """Return the ids of a user's artifacts of a thread, in the order of source and position."""
        mine = [item.value for item in self._all(_ARTIFACTS, {"thread": thread, "user": user})]
        return [one["id"] for one in sorted(mine, key=lambda one: (one["source"], one["ordinal"]))]

    def count(self, ids: Sequence[str], fact: ArtifactFact) -> None:
        """Note once more that each was looked up, or that its placeholder was sent."""
        for id_ in dict.fromkeys(ids):
            if self._value(id_) is not None:
                value = {"artifact": id_, "fact": fact}
                self._guarded("put", _FACTS, uuid4().hex, value, index=False)

    def counts(self, id: str) -> Counts:  # noqa: A002
        """Return how often each of it happened."""
        facts = [item.value["fact"] for item in self._all(_FACTS, {"artifact": id})]
        return Counts(facts.count("placeholder"), facts.count("lookup"))

    def _value(self, id_: str) -> Mapping[str, Any] | None:
        item = self._guarded("get", _ARTIFACTS, id_)
        return None if item is None else item.value

    def _all(self, namespace: tuple[str, ...], wanted: dict[str, Any]) -> Iterator[Any]:
        offset = 0
        while page := self._guarded("search", namespace, filter=wanted, limit=_PAGE, offset=offset):
            yield from page
            offset += len(page)

    def _guarded(self, method: str, *arguments: Any, **options: Any) -> Any:
        try:
            return getattr(self._store, method)(*arguments, **options)
        except Exception as fault:
            kind = type(self._store).__name__
            raise StoreError(f"the graph's store {kind} failed: {type(fault).__name__}") from fault


def _packed(body: str) -> str:
    # A body may hold what a database takes neither as text nor as JSON: a zero, or half of a surrogate pair.
    return base64.b64encode(body.encode("utf-8", "surrogatepass")).decode("ascii")


def _unpacked(packed: str) -> str:
    return base64.b64decode(packed).decode("utf-8", "surrogatepass")
