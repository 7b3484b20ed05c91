"""What became of each artifact: shown to the user, told to the parent, looked up.  Three facts, and none implies another.

A stream is the same, byte for byte, whether artifacts are on or off.  So each fact is read where it stands:

* Shown: in the messages of the stream.
* Looked up: in the stream as well, as a call of the parent's that was answered with the artifact's text.
* Told: in the requests of the parent's model, of which no stream has anything.  The store that keeps the artifacts counts
  them, over all runs and processes of a thread; where no store is asked, nobody knows.

The words of an artifact join the three: its id has the user in it, whom a stream does not name.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from .artifacts import LOOKUP, Artifact, Artifacts, Counts, Showing, showings, text_of

__all__ = ["Fate", "fates", "kept"]

_LONGEST: Final = 4_096
"""Characters of a look-up's arguments; an id is far shorter."""


class Fate(NamedTuple):
    """What became of one artifact."""

    id: str | None
    """`None` where nothing names it: no store that knows it was asked, and nobody looked it up."""
    type: str | None
    title: str | None
    characters: int
    shown: tuple[Showing, ...]
    """Where it was shown to the user, in the order of the messages; one with an owner stands in that subagent's own lane."""
    lookups: tuple[str, ...]
    """The calls in the messages by which the parent looked it up, by their ids."""
    counts: Counts | None
    """What the store has counted in all runs: requests with its placeholder, and look-ups.  `None` where no store was asked, or
    it does not know the artifact."""


def kept(artifacts: Artifacts, threads: Iterable[str], user: str) -> Iterator[tuple[Artifact, Counts]]:
    """Yield what a store keeps of a user's threads, one body at a time.  Raises `StoreError`."""
    for thread in threads:
        for id_ in artifacts.store.ids(thread, user):
            artifact = artifacts.store.get(id_)
            if artifact is not None:
                yield artifact, artifacts.store.counts(id_)


def fates(
    messages: Iterable[Any],
    known: Iterable[tuple[Artifact, Counts]] = (),
    artifacts: Artifacts | None = None,
) -> list[Fate]:
    """Return what became of every artifact: in the order of the messages, then those not shown.

    `messages` are a thread's AG-UI messages, `known` what a store keeps of it; `artifacts` says the tags and the name of the
    look-up.  Two artifacts of the same words share their showings.
    """
    ways = artifacts or Artifacts()
    wire = [one if isinstance(one, Mapping) else one.model_dump(by_alias=True) for one in messages]
    shown: dict[str, list[Showing]] = {}
    for one in showings(wire, tags=ways.tags):
        shown.setdefault(_digest(one.body), []).append(one)
    asked = list(_lookups(wire, ways.lookup or LOOKUP))

    def looked_up(id_: str, body: str) -> tuple[str, ...]:
        text = _digest(ways.tags.strip(body))
        return tuple(call for call, wanted, answer in asked if (wanted, answer) == (id_, text))

    by_digest: dict[str, list[Fate]] = {}
    named: set[str] = set()
    for artifact, counts in known:
        named.add(artifact.id)
        digest = _digest(artifact.body)
        by_digest.setdefault(digest, []).append(
            Fate(
                artifact.id,
                artifact.type,
                artifact.title,
                len(artifact.body),
                tuple(shown.get(digest, ())),
                looked_up(artifact.id, artifact.body),
                counts,
            )
        )
    found: list[Fate] = []
    for digest, places in shown.items():
        first = places[0]
        bare = Fate(None, None, first.title, len(first.body), tuple(places), (), None)
        if digest not in by_digest and asked:
            text = _digest(ways.tags.strip(first.body))
            ids = dict.fromkeys(wanted for _, wanted, answer in asked if answer == text)
            by_digest[digest] = [
                bare._replace(id=id_, lookups=looked_up(id_, first.body)) for id_ in ids if id_ not in named
            ]
        found += by_digest.pop(digest, []) or [bare]
    return found + [fate for rest in by_digest.values() for fate in rest]


def _lookups(messages: Iterable[Mapping[str, Any]], lookup: str) -> Iterator[tuple[str, str, str]]:
    """Yield the parent's answered look-ups: the call's id, the artifact's, and a digest of the answer."""
    wanted: dict[str, str] = {}
    for message in messages:
        if message.get("subagentRunId") is not None:
            continue
        for call in message.get("toolCalls") or ():
            if call["function"]["name"] == lookup and (id_ := _id_in(call["function"]["arguments"])):
                wanted[call["id"]] = id_
        id_ = wanted.get(str(message.get("toolCallId")))
        if message.get("role") == "tool" and id_ is not None:
            yield str(message["toolCallId"]), id_, _digest(text_of(message.get("content")))


def _id_in(arguments: str) -> str | None:
    try:
        value = json.loads(arguments) if len(arguments) <= _LONGEST else None
    except (ValueError, RecursionError):
        return None
    id_ = value.get("id") if isinstance(value, dict) else None
    return id_ if isinstance(id_, str) else None


def _digest(body: str) -> str:
    return hashlib.blake2b(body.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
