"""What became of each artifact: shown to the user, told to the parent, looked up.  Three facts, and none implies another.

What was shown stands in the messages of a stream.  The other two happen where no message tells of them, in the requests of
the parent's model, so a run says them at its end: `metadata["byline"]["artifacts"]` of its terminal event, an entry for each
artifact with its id, type, title, size, a digest of its body, and the counts of that run.  The digest joins the two.
"""

import hashlib
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from .artifacts import TAGS, Artifact, Showing, Tags, showings

__all__ = ["ARTIFACTS", "Fate", "Told", "fates"]

ARTIFACTS: Final = "artifacts"
"""The name of the list in a terminal event's `metadata["byline"]`."""


class Fate(NamedTuple):
    """What became of one artifact in the runs of a recording."""

    id: str | None
    """`None` for one that was shown and of which no run says more: it was not kept, or artifacts were off."""
    type: str | None
    title: str | None
    characters: int
    shown: tuple[Showing, ...]
    """Where it was shown to the user, in the order of the messages; one with an owner stands in that subagent's own lane."""
    placeholders: int
    """In how many requests of the parent's model its placeholder stood."""
    lookups: int
    """How often the parent looked it up."""


class Told:
    """Counts what one run tells the parent's model of artifacts; `report` takes an id and its facts so far."""

    def __init__(self, report: Callable[[str, Mapping[str, Any]], object]) -> None:
        self._report: Final = report
        self._lock: Final = threading.Lock()
        self._facts: Final[dict[str, dict[str, Any]]] = {}

    def sent(self, artifacts: Iterable[Artifact]) -> None:
        """Note one request with the placeholders of these artifacts."""
        for artifact in {artifact.id: artifact for artifact in artifacts}.values():
            self._count(artifact, "placeholders")

    def looked_up(self, artifact: Artifact) -> None:
        """Note one look-up."""
        self._count(artifact, "lookups")

    def _count(self, artifact: Artifact, what: str) -> None:
        with self._lock:
            facts = self._facts.get(artifact.id)
            if facts is None:
                known = {"id": artifact.id, "type": artifact.type, "title": artifact.title}
                facts = {name: value for name, value in known.items() if value is not None}
                facts |= {"characters": len(artifact.body), "digest": _digest(artifact.body)}
                self._facts[artifact.id] = facts = {**facts, "placeholders": 0, "lookups": 0}
            facts[what] += 1
            facts = dict(facts)
        self._report(artifact.id, facts)


def fates(
    messages: Iterable[Any], told: Iterable[Mapping[str, Any]], *, tags: Iterable[str] | Tags = TAGS
) -> list[Fate]:
    """Return what became of every artifact: in the order of the messages, then those not shown.

    `messages` are a thread's AG-UI messages, `told` the entries of its runs.  Entries are whatever a stream says: what
    is not of their form counts as nothing.  Two artifacts of the same words share their showings.
    """
    shown: dict[str, list[Showing]] = {}
    for one in showings(messages, tags=tags):
        shown.setdefault(_digest(one.body), []).append(one)
    known: dict[tuple[str, str], Fate] = {}
    for entry in told:
        id_, digest = entry.get("id"), entry.get("digest")
        if not isinstance(id_, str) or not isinstance(digest, str):
            continue
        before = known.get((digest, id_)) or Fate(
            id_,
            _text(entry.get("type")),
            _text(entry.get("title")),
            _number(entry.get("characters")),
            tuple(shown.get(digest, ())),
            0,
            0,
        )
        known[digest, id_] = before._replace(
            placeholders=before.placeholders + _number(entry.get("placeholders")),
            lookups=before.lookups + _number(entry.get("lookups")),
        )
    by_digest: dict[str, list[Fate]] = {}
    for (digest, _), fate in known.items():
        by_digest.setdefault(digest, []).append(fate)
    found: list[Fate] = []
    for digest, places in shown.items():
        first = places[0]
        nobodys = Fate(None, None, first.title, len(first.body), tuple(places), 0, 0)
        found += by_digest.pop(digest, [nobodys])
    return found + [fate for rest in by_digest.values() for fate in rest]


def _digest(body: str) -> str:
    return hashlib.blake2b(body.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0
