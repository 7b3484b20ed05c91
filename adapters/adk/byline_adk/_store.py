"""ADK's own artifact service as the place where artifacts are kept."""

import asyncio
import hashlib
import json
import threading
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from byline.artifacts import Artifact, ArtifactFact, Counts
from byline.errors import StoreError
from google.adk.artifacts.base_artifact_service import BaseArtifactService
from google.genai import types

__all__ = ["ServiceStore"]

# A service keeps versions of files by app, user and session.  In an app of our own, apart from the files that agents make
# (which `load_artifacts` would offer to every model), stand:
_BODIES: Final = "artifacts"  # a session for each artifact, with the artifact itself
_THREADS: Final = "threads"  # a session for each user's thread, with a file for each artifact of it
_FACTS: Final = (
    "facts"  # a session for each artifact; every version of a file is one more of what it is named after
)

_FILE: Final = "artifact"


class ServiceStore:
    """Keeps artifacts in an ADK artifact service: `Artifacts(ServiceStore(service))`.

    `app_name` is the app that they are kept under, which should be no app of yours; `limit` are the seconds that one
    call of the service may take.  The service is called in an event loop of its own, so that it may be asked from any
    thread: one that is bound to another loop cannot be used.
    """

    def __init__(
        self, service: BaseArtifactService, *, app_name: str = "byline", limit: float = 30.0
    ) -> None:
        self._service: Final = service
        self._app: Final = app_name
        self._limit: Final = limit
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock: Final = threading.Lock()

    def put(self, artifacts: Sequence[Artifact]) -> None:
        """Keep artifacts; one that is there stays as it is, but for the invocation if it was not known."""
        for artifact in artifacts:
            known = self._load(_BODIES, artifact.id, _FILE)
            if known is not None and (known["invocation"] is not None or artifact.invocation is None):
                continue
            if known is None:
                place = {"source": artifact.source, "ordinal": artifact.ordinal}
                self._save(_THREADS, _scope(artifact.thread, artifact.user), artifact.id, place)
            self._save(_BODIES, artifact.id, _FILE, asdict(artifact))

    def get(self, id: str) -> Artifact | None:  # noqa: A002
        """Return an artifact with its body."""
        if not (id.isascii() and id.replace("_", "").isalnum()):
            return None  # none of ours, and a service may make a path of it
        known = self._load(_BODIES, id, _FILE)
        return None if known is None else Artifact(**known)

    def ids(self, thread: str, user: str) -> list[str]:
        """Return the ids of a user's artifacts of a thread, in the order of source and position."""
        scope = _scope(thread, user)
        names: Iterable[str] = self._call("list_artifact_keys", _THREADS, scope)
        places = {name: self._load(_THREADS, scope, name) or {} for name in names}
        return sorted(
            places, key=lambda name: (places[name].get("source", ""), places[name].get("ordinal", 0))
        )

    def count(self, ids: Sequence[str], fact: ArtifactFact) -> None:
        """Note once more that each was looked up, or that its placeholder was sent."""
        for id_ in dict.fromkeys(ids):
            if self._load(_BODIES, id_, _FILE) is not None:
                self._save(_FACTS, id_, fact, {"artifact": id_})

    def counts(self, id: str) -> Counts:  # noqa: A002
        """Return how often each of it happened."""
        return Counts(
            *(
                len(self._call("list_versions", _FACTS, id, filename=fact))
                for fact in ("placeholder", "lookup")
            )
        )

    def _load(self, kind: str, session: str, name: str) -> dict[str, Any] | None:
        part = self._call("load_artifact", kind, session, filename=name)
        if part is None:
            return None
        try:
            return dict(json.loads(part.inline_data.data))
        except (AttributeError, TypeError, ValueError) as fault:
            raise StoreError(f"{name!r} of the artifact service is nothing that was kept there") from fault

    def _save(self, kind: str, session: str, name: str, value: Mapping[str, Any]) -> None:
        # ASCII: a body may hold what no file or database takes as text, a zero, or half of a surrogate pair.
        raw = json.dumps(value, ensure_ascii=True).encode("ascii")
        part = types.Part.from_bytes(data=raw, mime_type="application/json")
        self._call("save_artifact", kind, session, filename=name, artifact=part)

    def _call(self, method: str, kind: str, session: str, **arguments: Any) -> Any:
        name = type(self._service).__name__
        try:
            asked: Coroutine[Any, Any, Any] = getattr(self._service, method)(
                app_name=self._app, user_id=kind, session_id=session, **arguments
            )
            answer = asyncio.run_coroutine_threadsafe(asked, self._running())
        except Exception as fault:
            raise StoreError(f"the artifact service {name} failed: {type(fault).__name__}") from fault
        try:
            return answer.result(self._limit)
        except TimeoutError as fault:
            answer.cancel()
            raise StoreError(
                f"the artifact service {name} did not answer within {self._limit:g} s"
            ) from fault
        except Exception as fault:
            raise StoreError(f"the artifact service {name} failed: {type(fault).__name__}") from fault

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(
                    target=self._loop.run_forever, name="byline artifact service", daemon=True
                ).start()
            return self._loop


def _scope(thread: str, user: str) -> str:
    """Return the name of a user's thread among the sessions, where no text of theirs can be a path."""
    digest = hashlib.blake2b(digest_size=16)
    for part in (user, thread):
        raw = part.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "big") + raw)
    return digest.hexdigest()
