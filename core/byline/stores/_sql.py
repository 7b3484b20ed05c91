"""Teams, spent grants and artifacts on one database."""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Self

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    and_,
    delete,
    exists,
    func,
    literal,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from byline.artifacts import Artifact, ArtifactFact, Counts
from byline.errors import StoreError
from byline.grants import FORGET_AFTER
from byline.history import Part
from byline.team import AgentRecord, TeamChange

from ._database import Database
from ._runs import SqlRuns

__all__ = ["SqlArtifacts", "SqlGrants", "SqlStore", "SqlTeams", "SqlThreads"]

_log = logging.getLogger("byline")

_META: Final = MetaData()

_AGENTS: Final = Table(
    "byline_agents",
    _META,
    Column("id", Text, primary_key=True),
    Column("owner", Text),
    Column("kind", Text),
    Column("archived", Integer),
    Column("subagents", Text),
)
_SPENT: Final = Table(
    "byline_spent_grants",
    _META,
    Column("jti", Text, primary_key=True),
    Column("expires_at", BigInteger),
)
_FORGOTTEN: Final = Table("byline_forgotten_grants", _META, Column("before", BigInteger))
_ARTIFACTS: Final = Table(
    "byline_artifacts",
    _META,
    Column("id", Text, primary_key=True),
    Column("thread_id", Text),
    Column("user_id", Text),
    Column("source", Text),
    Column("ordinal", Integer),
    Column("invocation", Text),
    Column("tag", Text),
    Column("type", Text),
    Column("title", Text),
    Column("identifier", Text),
    Column("language", Text),
    Column("body", LargeBinary),
    Column("placeholders", BigInteger),
    Column("lookups", BigInteger),
)
_PARTS: Final = Table(
    "byline_thread_parts",
    _META,
    Column("thread_id", Text, primary_key=True),
    Column("run_id", Text, primary_key=True),
    Column("began", BigInteger, primary_key=True),
    Column("part", Integer, primary_key=True),
    Column("user_id", Text),
    Column("lines", LargeBinary),
)


class SqlStore:
    """The stores of one database: for `Team`, `Grants`, `Artifacts`, the history of threads and `serve`."""

    def __init__(self, url: str, *, timeout: float = 30.0) -> None:
        self._database: Final = Database(url, timeout)
        self.teams: Final = SqlTeams(self._database)
        self.grants: Final = SqlGrants(self._database)
        self.artifacts: Final = SqlArtifacts(self._database)
        self.threads: Final = SqlThreads(self._database)
        self.runs: Final = SqlRuns(self._database)

    def ready(self) -> None:
        """Connect, and bring the tables up to date, which the first use does else; raises `StoreError`."""
        with self._database.read():
            pass

    def close(self) -> None:
        """Close the connections; the next use opens new ones."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_fault: object) -> None:
        self.close()


class SqlThreads:
    """The streams of threads, for `attribute(target, threads=...)`."""

    def __init__(self, database: Database) -> None:
        self._database: Final = database

    def append(self, part: Part) -> None:
        """Keep one more stretch of a run."""
        row = {
            "thread_id": part.thread_id,
            "run_id": part.run_id,
            "began": part.began,
            "part": part.number,
            "user_id": part.user,
            "lines": part.lines.encode(),
        }
        with self._database.write() as connection:
            connection.execute(_PARTS.insert().values(row))

    def read(self, thread_id: str) -> Sequence[Part]:
        """Return all stretches of a thread, in the order of its runs."""
        wanted = select(_PARTS).where(_PARTS.c.thread_id == thread_id)
        with self._database.read() as connection:
            rows = connection.execute(wanted.order_by(_PARTS.c.began, _PARTS.c.run_id, _PARTS.c.part)).all()
        return [
            Part(row.thread_id, row.run_id, row.began, row.part, row.user_id, bytes(row.lines).decode())
            for row in rows
        ]

    def forget(self, thread_id: str) -> None:
        """Keep nothing of a thread any more."""
        with self._database.write() as connection:
            connection.execute(delete(_PARTS).where(_PARTS.c.thread_id == thread_id))


class _TeamChange:
    def __init__(self, database: Database, connection: Connection) -> None:
        self._upsert: Final = _inserting(database, _AGENTS)
        self._connection: Final = connection
        self._known: Final[dict[str, AgentRecord | None]] = {}

    def get(self, id: str) -> AgentRecord | None:  # noqa: A002
        if id not in self._known:
            row = self._connection.execute(select(_AGENTS).where(_AGENTS.c.id == id)).first()
            self._known[id] = None if row is None else _agent(row)
        return self._known[id]

    def put(self, agent: AgentRecord) -> None:
        values = {
            "owner": agent.owner,
            "kind": agent.kind,
            "archived": int(agent.archived),
            "subagents": json.dumps(agent.subagents),
        }
        statement = self._upsert.values(id=agent.id, **values)
        self._connection.execute(statement.on_conflict_do_update(index_elements=["id"], set_=values))
        self._known[agent.id] = agent

    def drop(self, id: str) -> None:  # noqa: A002
        self._connection.execute(delete(_AGENTS).where(_AGENTS.c.id == id))
        self._known[id] = None


class SqlTeams:
    """Agents and their links; one change at a time, over all processes."""

    def __init__(self, database: Database) -> None:
        self._database: Final = database

    @contextmanager
    def change(self) -> Iterator[TeamChange]:
        """Enter the only change that is under way."""
        with self._database.write(alone=True) as connection:
            yield _TeamChange(self._database, connection)

    @contextmanager
    def look(self) -> Iterator[TeamChange]:
        """Enter a consistent view."""
        with self._database.read() as connection:
            yield _TeamChange(self._database, connection)


class SqlGrants:
    """The ids of spent grants; kept until they have been expired for `FORGET_AFTER` seconds.

    A clock that jumped ahead may have made us forget a grant that is good again when it has jumped back.  So what
    was forgotten is remembered as a time, and a grant that expires before it cannot be spent any more.
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self._database: Final = database
        self._clock: Final = clock
        self._next_purge = 0.0
        self._purging: Final = threading.Lock()

    def spend(self, jti: str, until: int) -> bool:
        """Return whether this call, and no other, is the one that spends `jti`, a grant that expires at `until`.

        "The same grant is not used again."  One short transaction of its own: the winner gets the row back.
        (`rowcount` would not do: it is -1 on PostgreSQL.)
        """
        forgotten = exists().where(_FORGOTTEN.c.before > until)
        row = select(literal(jti, Text), literal(until, BigInteger)).where(~forgotten)
        statement = _inserting(self._database, _SPENT).from_select(["jti", "expires_at"], row)
        statement = statement.on_conflict_do_nothing(index_elements=["jti"]).returning(_SPENT.c.jti)
        with self._database.write() as connection:
            self._database.share(connection)
            won = connection.execute(statement).first() is not None
        self._purge_sometimes()
        return won

    def purge(self) -> int:
        """Forget the grants that expired long ago; returns how many."""
        before = int(self._clock()) - FORGET_AFTER
        with self._database.write(alone=True) as connection:
            connection.execute(update(_FORGOTTEN).where(_FORGOTTEN.c.before < before).values(before=before))
            gone = delete(_SPENT).where(_SPENT.c.expires_at < before).returning(_SPENT.c.jti)
            return len(connection.execute(gone).all())

    def _purge_sometimes(self) -> None:
        if self._clock() < self._next_purge or not self._purging.acquire(blocking=False):
            return
        try:
            self._next_purge = self._clock() + 60
            self.purge()
        except StoreError:
            # The grant is spent all the same; what could not be purged now is purged later.
            _log.warning("expired grants could not be purged", exc_info=True)
        finally:
            self._purging.release()


class SqlArtifacts:
    """Artifacts with their bodies, and what became of them."""

    def __init__(self, database: Database) -> None:
        self._database: Final = database

    def put(self, artifacts: Sequence[Artifact]) -> None:
        """Keep artifacts; one that is there stays as it is, but for the invocation if it was not known."""
        if not artifacts:
            return
        with self._database.write() as connection:
            for artifact in artifacts:
                values = _artifact_row(artifact)
                statement = _inserting(self._database, _ARTIFACTS).values(**values)
                known = func.coalesce(_ARTIFACTS.c.invocation, statement.excluded.invocation)
                connection.execute(
                    statement.on_conflict_do_update(index_elements=["id"], set_={"invocation": known})
                )

    def get(self, id: str) -> Artifact | None:  # noqa: A002
        """Return an artifact with its body."""
        with self._database.read() as connection:
            row = connection.execute(select(_ARTIFACTS).where(_ARTIFACTS.c.id == id)).first()
        return None if row is None else _artifact(row)

    def ids(self, thread: str, user: str) -> list[str]:
        """Return the ids of a user's artifacts of a thread, in the order of source and position."""
        mine = and_(_ARTIFACTS.c.thread_id == thread, _ARTIFACTS.c.user_id == user)
        query = select(_ARTIFACTS.c.id).where(mine).order_by(_ARTIFACTS.c.source, _ARTIFACTS.c.ordinal)
        with self._database.read() as connection:
            return [str(row.id) for row in connection.execute(query)]

    def count(self, ids: Sequence[str], fact: ArtifactFact) -> None:
        """Note once more, for each artifact, that it was looked up or that its placeholder was sent."""
        column = _ARTIFACTS.c.lookups if fact == "lookup" else _ARTIFACTS.c.placeholders
        if not ids:
            return
        with self._database.write() as connection:
            connection.execute(
                update(_ARTIFACTS).where(_ARTIFACTS.c.id.in_(sorted(ids))).values({column: column + 1})
            )

    def counts(self, id: str) -> Counts:  # noqa: A002
        """Return how often each of it happened; zeros for an artifact that is not there."""
        query = select(_ARTIFACTS.c.placeholders, _ARTIFACTS.c.lookups).where(_ARTIFACTS.c.id == id)
        with self._database.read() as connection:
            row = connection.execute(query).first()
        return Counts(0, 0) if row is None else Counts(int(row.placeholders), int(row.lookups))


def _inserting(database: Database, table: Table) -> Any:
    """Return the dialect's own INSERT: only that one knows ON CONFLICT."""
    return (sqlite if database.is_sqlite else postgresql).insert(table)


def _agent(row: Any) -> AgentRecord:
    return AgentRecord(row.id, row.owner, row.kind, bool(row.archived), tuple(json.loads(row.subagents)))


def _artifact_row(artifact: Artifact) -> dict[str, Any]:
    return {
        "id": artifact.id,
        "thread_id": artifact.thread,
        "user_id": artifact.user,
        "source": artifact.source,
        "ordinal": artifact.ordinal,
        "invocation": artifact.invocation,
        "tag": artifact.tag,
        "type": artifact.type,
        "title": artifact.title,
        "identifier": artifact.identifier,
        "language": artifact.language,
        # Bytes: a body may hold what neither database takes as text, a zero or half of a surrogate pair.
        "body": artifact.body.encode("utf-8", "surrogatepass"),
        "placeholders": 0,
        "lookups": 0,
    }


def _artifact(row: Any) -> Artifact:
    return Artifact(
        id=row.id,
        thread=row.thread_id,
        user=row.user_id,
        source=row.source,
        ordinal=row.ordinal,
        invocation=row.invocation,
        tag=row.tag,
        type=row.type,
        title=row.title,
        identifier=row.identifier,
        language=row.language,
        body=bytes(row.body).decode("utf-8", "surrogatepass"),
    )
