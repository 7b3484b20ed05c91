"""Artifacts: a subagent's result is shown whole, and the parent's model is told where to find it.

"The user's screen shows the original task result.  The parent model's next request gets a short placeholder instead
of the same artifact."

A result may hold tagged artifacts, `<artifact type="text/html" title="Report">...</artifact>` and its relatives
(`tags` is an option).  `Artifacts.keep` stores them, `Artifacts.abbreviate` puts a placeholder where each one stands,
and `Artifacts.look_up` returns the body "with the display tags taken off", so that it is not shown as a card again.
Not looking up is the default; how often it happened is counted.

Three facts are kept apart: that it was shown to the user (`showings`, read off the messages of the stream), that its
placeholder was sent to the parent, and that it was looked up (`Artifacts.counts`, which the store keeps over all runs).
None of it is in the stream: "the user's screen" is the same with artifacts and without.

An artifact's id is ours, because the one in the tag is the model's and comes again.  It is made of where the result
stands and what it says, so that every later request, in any process, gets the same one without asking anybody.
"""

import hashlib
import html
import json
import logging
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, NamedTuple, Protocol, TypeAlias

from ._tags import TAGS, Tagged, Tags
from .errors import BylineError, StoreError
from .plain import clean_text

__all__ = [
    "LOOKUP",
    "MAX_BODY",
    "REASONS",
    "TAGS",
    "Abbreviated",
    "Artifact",
    "ArtifactError",
    "ArtifactFact",
    "ArtifactStore",
    "Artifacts",
    "Counts",
    "Kept",
    "MemoryArtifacts",
    "NotTheParentError",
    "Refused",
    "Repetition",
    "Showing",
    "ShownTwice",
    "Tagged",
    "Tags",
    "UnknownArtifactError",
    "reason_of",
    "showings",
    "shown_twice",
    "text_of",
]

LOOKUP: Final = "lookup_artifact"
"""The name of the parent's look-up tool."""

MAX_BODY: Final = 8_000_000
"""Characters of a body; a larger one is not stored, and stays where it is."""

_TITLE: Final = 120
"""Characters of a title, a type or a name that a placeholder repeats."""

ArtifactFact: TypeAlias = Literal["placeholder", "lookup"]

_log = logging.getLogger("byline")


class ArtifactError(BylineError):
    """A look-up that is refused.  `code` is stable."""

    code: ClassVar[str] = "artifact"


class UnknownArtifactError(ArtifactError):
    """There is no artifact of that id in this thread of this user, whoever else may have one."""

    code = "unknown_artifact"


class NotTheParentError(ArtifactError):
    """A subagent asked: the way to the originals is the parent's alone."""

    code = "not_the_parent"


@dataclass(frozen=True, slots=True)
class Artifact:
    """One artifact of one result."""

    id: str
    thread: str
    user: str
    source: str
    """What it came in: the framework's id of the tool call that was answered, or of the message."""
    ordinal: int
    """Its place among the artifacts of that result, from 0."""
    tag: str
    body: str
    type: str | None = None
    title: str | None = None
    identifier: str | None = None
    """The name that the model gave it; it need not be unique."""
    language: str | None = None
    invocation: str | None = None
    """The `subagentRunId` of the invocation that made it, where it is known."""


class Counts(NamedTuple):
    """How often its placeholder went to the parent's model, and how often it was looked up."""

    placeholders: int
    lookups: int


class Refused(NamedTuple):
    """A tag that is no artifact to keep; its text stays where it is."""

    code: Literal["unclosed", "too_large", "store_unavailable"]
    message: str


class Kept(NamedTuple):
    """What `Artifacts.keep` made of a result."""

    artifacts: tuple[Artifact, ...]
    refused: tuple[Refused, ...]


class Abbreviated(NamedTuple):
    """A result as the parent's model gets to read it."""

    text: str
    artifacts: tuple[Artifact, ...]
    """What stands behind the placeholders, in order."""


class ArtifactStore(Protocol):
    """Where artifacts are kept."""

    def put(self, artifacts: Sequence[Artifact]) -> None:
        """Keep artifacts; one that is there stays as it is, but for the invocation if it was not known."""

    def get(self, id: str) -> Artifact | None:  # noqa: A002 - it is one
        """Return an artifact with its body."""

    def ids(self, thread: str, user: str) -> list[str]:
        """Return the ids of a user's artifacts of a thread."""

    def count(self, ids: Sequence[str], fact: ArtifactFact) -> None:
        """Note once more that each was looked up, or that its placeholder was sent."""

    def counts(self, id: str) -> Counts:  # noqa: A002 - it is one
        """Return how often each of it happened."""


class MemoryArtifacts:
    """Artifacts in memory: for one process, and gone with it."""

    def __init__(self) -> None:
        self._lock: Final = threading.Lock()
        self._artifacts: Final[dict[str, Artifact]] = {}
        self._counts: Final[dict[str, Counts]] = {}

    def put(self, artifacts: Sequence[Artifact]) -> None:
        """Keep artifacts."""
        with self._lock:
            for artifact in artifacts:
                known = self._artifacts.get(artifact.id)
                if known is None or known.invocation is None:
                    self._artifacts[artifact.id] = artifact
                self._counts.setdefault(artifact.id, Counts(0, 0))

    def get(self, id: str) -> Artifact | None:  # noqa: A002
        """Return an artifact with its body."""
        return self._artifacts.get(id)

    def ids(self, thread: str, user: str) -> list[str]:
        """Return the ids of a user's artifacts of a thread, in the order of source and position."""
        with self._lock:
            mine = [one for one in self._artifacts.values() if (one.thread, one.user) == (thread, user)]
        return [one.id for one in sorted(mine, key=lambda one: (one.source, one.ordinal))]

    def count(self, ids: Sequence[str], fact: ArtifactFact) -> None:
        """Note once more that each was looked up, or that its placeholder was sent."""
        with self._lock:
            for id_ in set(ids) & self._counts.keys():
                sent, looked_up = self._counts[id_]
                self._counts[id_] = Counts(sent + (fact == "placeholder"), looked_up + (fact == "lookup"))

    def counts(self, id: str) -> Counts:  # noqa: A002
        """Return how often each of it happened."""
        return self._counts.get(id, Counts(0, 0))


class Artifacts:
    """What an app does with tagged artifacts.

    `tags` are the names of the elements (and, after `:::`, of the directives) that hold one; `lookup` is the name of
    the parent's look-up tool, or `False` for an app without one; `limit` are the characters a body may have.
    """

    def __init__(
        self,
        store: ArtifactStore | None = None,
        *,
        tags: Iterable[str] = TAGS,
        lookup: str | Literal[False] = LOOKUP,
        limit: int = MAX_BODY,
    ) -> None:
        self.store: Final[ArtifactStore] = MemoryArtifacts() if store is None else store
        self.tags: Final = Tags(tags)
        self.lookup: Final = lookup
        self.limit: Final = limit
        self._kept: Final[
            dict[str, None]
        ] = {}  # what is in the store for sure, so that it is not asked each time

    def keep(self, text: str, *, thread: str, user: str, source: str, invocation: str | None = None) -> Kept:
        """Store the artifacts of a result; never raises for what the text says or the store does.

        An unclosed tag and a body over the limit are refused, and so is everything when the store fails: the text
        is whole where it stands, and `abbreviate` leaves it there.
        """
        found: list[Artifact] = []
        refused: list[Refused] = []
        for ordinal, tagged in enumerate(self.tags.find(text)):
            fault = self._fault(tagged)
            if fault is None:
                found.append(_artifact(tagged, thread, user, source, ordinal, invocation))
            else:
                refused.append(fault)
        try:
            self._put(found, known=invocation is not None)
        except StoreError as fault:
            _log.warning("artifacts of %s were not stored and stay in the text", source, exc_info=True)
            refused += [Refused("store_unavailable", str(fault)) for _ in found]
            found = []
        return Kept(tuple(found), tuple(refused))

    def abbreviate(
        self, text: str, *, thread: str, user: str, source: str, known: Collection[str] | None = None
    ) -> Abbreviated:
        """Return `text` with a placeholder for every artifact that can be looked up; other text is unchanged.

        What was not stored yet is stored first; what cannot be stored stays in the text, so that nothing is lost.
        With `known`, only the artifacts with these ids are replaced, and nothing is stored.
        """
        pieces: list[str] = []
        artifacts: list[Artifact] = []
        at = 0
        for ordinal, tagged in enumerate(self.tags.find(text)):
            if self._fault(tagged) is None:
                artifact = _artifact(tagged, thread, user, source, ordinal, None)
                if known is not None and artifact.id not in known:
                    continue
                artifacts.append(artifact)
                pieces += (text[at : tagged.start], self.placeholder(artifact))
                at = tagged.end
        if not artifacts:
            return Abbreviated(text, ())
        try:
            self._put(artifacts, known=False)
        except StoreError:
            _log.warning(
                "artifacts of %s cannot be stored: the model gets the original", source, exc_info=True
            )
            return Abbreviated(text, ())
        return Abbreviated("".join((*pieces, text[at:])), tuple(artifacts))

    def placeholder(self, artifact: Artifact) -> str:
        """Return what the parent's model reads instead of the artifact: id, type, title, size, and where it is."""
        kind = "" if artifact.type is None else f" of type {_quoted(artifact.type)}"
        title = artifact.title or artifact.identifier
        named = "" if title is None else f" with title {_quoted(title)}"
        how = (
            f"Call {self.lookup} with this id only if you need the text itself."
            if self.lookup
            else "It cannot be looked up from here."
        )
        size = f"{len(artifact.body)} characters"
        return f"[artifact {artifact.id}{kind}{named}, {size}, is not repeated here. {how}]"

    def sent(self, artifacts: Iterable[Artifact]) -> None:
        """Note that the placeholders of these artifacts were sent to the parent's model."""
        self._note([artifact.id for artifact in artifacts], "placeholder")

    def look_up(self, id: str, *, thread: str, user: str) -> str:  # noqa: A002
        """Return the body of an artifact without its display tags, and count it.

        Raises `UnknownArtifactError` for an id that is not of this thread and user, `StoreError` when the store
        fails.
        """
        found = self.store.get(id) if isinstance(id, str) and len(id) < 200 else None
        if found is None or (found.thread, found.user) != (thread, user):
            raise UnknownArtifactError(
                f"there is no artifact {str(id)[:60]!r} in this conversation: use an id from a placeholder"
            )
        self._note([found.id], "lookup")
        return self.tags.strip(found.body)

    def counts(self, id: str) -> Counts:  # noqa: A002
        """Return how often the placeholder was sent and how often the artifact was looked up."""
        return self.store.counts(id)

    def _fault(self, tagged: Tagged) -> Refused | None:
        if not tagged.closed:
            return Refused("unclosed", f"<{tagged.tag}> at character {tagged.start} is never closed")
        if len(tagged.body) > self.limit:
            size = len(tagged.body)
            return Refused("too_large", f"an artifact has {size} characters, the limit is {self.limit}")
        return None

    def _put(self, artifacts: Sequence[Artifact], *, known: bool) -> None:
        fresh = [artifact for artifact in artifacts if known or artifact.id not in self._kept]
        if fresh:
            self.store.put(fresh)
            self._kept.update(dict.fromkeys(artifact.id for artifact in fresh))
            for old in list(self._kept)[:-10_000]:
                del self._kept[old]

    def _note(self, ids: Sequence[str], fact: ArtifactFact) -> None:
        try:
            self.store.count(ids, fact)
        except StoreError:  # a count is no reason to stop a run
            _log.warning("could not count a %s of %s", fact, ", ".join(ids), exc_info=True)


def _artifact(
    tagged: Tagged, thread: str, user: str, source: str, ordinal: int, invocation: str | None
) -> Artifact:
    digest = hashlib.blake2b(digest_size=12)
    for part in (user, thread, source, str(ordinal), tagged.body):
        raw = part.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "big") + raw)
    attributes = {name: _clean(value) for name, value in tagged.attributes.items()}
    return Artifact(
        id=f"art_{digest.hexdigest()}",
        thread=thread,
        user=user,
        source=source,
        ordinal=ordinal,
        tag=tagged.tag,
        body=tagged.body,
        type=attributes.get("type"),
        title=attributes.get("title"),
        identifier=attributes.get("identifier") or attributes.get("id"),
        language=attributes.get("language"),
        invocation=invocation,
    )


def _clean(value: str) -> str | None:
    """Return an attribute's value as text to show: entities resolved, no control characters."""
    text = clean_text(html.unescape(value))
    return "".join(c if c.isprintable() else " " for c in text).strip() or None


def _quoted(text: str) -> str:
    # The text is the subagent's: it must not end the placeholder, start a tag, or become a line of its own.
    short = text if len(text) <= _TITLE else f"{text[: _TITLE - 1]}…"
    escaped = (
        short.replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace("[", "(")
        .replace("]", ")")
    )
    return json.dumps(escaped, ensure_ascii=False)


# ------------------------------------------------------------------------------------------------ what the user saw


class Showing(NamedTuple):
    """One place where a stream showed an artifact to the user."""

    message: str
    """The id of the message."""
    place: Literal["result", "words"]
    """In the result of a tool call, or in what an agent said."""
    owner: str | None
    """The `subagentRunId` of whoever's message it is; `None` for the parent agent."""
    call: str | None
    """The tool call that was answered."""
    tool: str | None
    """The tool's name, where the call is among the messages."""
    ordinal: int
    title: str | None
    body: str
    closed: bool


Repetition: TypeAlias = Literal["lookup_with_tags", "repeated_by_parent", "result_again"]

REASONS: Final[Mapping[Repetition, str]] = {
    "lookup_with_tags": "the look-up returned it with its display tags, which must be taken off",
    "repeated_by_parent": "the parent agent repeated it with its tags",
    "result_again": "another tool result holds it with its tags",
}
"""Why an artifact is shown twice."""


class ShownTwice(NamedTuple):
    """One artifact that the user saw twice, and why; both stay in view."""

    first: Showing
    again: Showing
    code: Repetition
    message: str


def showings(messages: Iterable[Any], *, tags: Iterable[str] | Tags = TAGS) -> list[Showing]:
    """Return every artifact that the messages of a thread show, in order.

    `messages` are AG-UI messages, as models or as their wire form (`ledger.messages`, or a client's own copy); a
    tool's name is known when the message with its call is among them.
    """
    known = tags if isinstance(tags, Tags) else Tags(tags)
    tools: dict[str, str] = {}
    found: list[Showing] = []
    for message in messages:
        wire = (
            message if isinstance(message, Mapping) else message.model_dump(by_alias=True, exclude_none=True)
        )
        for call in wire.get("toolCalls") or ():
            tools[str(call["id"])] = str(call["function"]["name"])
        if wire.get("role") not in ("assistant", "tool"):
            continue
        call_id = wire.get("toolCallId")
        for ordinal, tagged in enumerate(known.find(text_of(wire.get("content")))):
            found.append(
                Showing(
                    str(wire["id"]),
                    "words" if call_id is None else "result",
                    wire.get("subagentRunId"),
                    call_id,
                    tools.get(call_id or ""),
                    ordinal,
                    _clean(tagged.attributes.get("title", "")),
                    tagged.body,
                    tagged.closed,
                )
            )
    return found


def shown_twice(shown: Iterable[Showing], *, lookup: str = LOOKUP) -> list[ShownTwice]:
    """Return what was shown again, with the reason.

    An agent's words and the result of the call that it answers are one artifact in two lanes and no repetition:
    what counts is what the parent agent's own lane shows.
    """
    first: dict[str, Showing] = {}
    found: list[ShownTwice] = []
    for one in shown:
        if one.owner is not None or not one.closed:
            continue
        before = first.setdefault(one.body, one)
        if before is not one:
            name = "without a title" if one.title is None else repr(one.title)
            where = (
                f"the artifact {name} of message {before.message!r} is shown again in message {one.message!r}"
            )
            code = reason_of(one, lookup)
            found.append(ShownTwice(before, one, code, f"{where}: {REASONS[code]}"))
    return found


def reason_of(again: Showing, lookup: str = LOOKUP) -> Repetition:
    """Return why something was shown again, from where."""
    if again.place == "words":
        return "repeated_by_parent"
    return "lookup_with_tags" if again.tool == lookup else "result_again"


def text_of(content: Any) -> str:
    """Return the text of a message's content, whichever form it has."""
    if isinstance(content, str):
        return content
    parts = (part.get("text") for part in content or () if isinstance(part, Mapping))
    return "".join(part for part in parts if isinstance(part, str))
