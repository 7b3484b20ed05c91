"""One database: connections, transactions, and a schema that is brought up to date by its first user.

Measured, and what this module rests on:

* SQLite under a deferred `BEGIN` fails a read that turns into a write at once, whatever the timeout: every writing
  transaction is `BEGIN IMMEDIATE`, which waits.  Going over to WAL does not wait either, so that is tried again.
* On both databases "create if it is not there" races.  SQLite's writing transaction excludes everybody; PostgreSQL
  needs an advisory lock.
* PostgreSQL has to stay at READ COMMITTED: stricter levels answer a lost race with a serialization failure.
* A pool of connections does not survive a fork: the child starts with a new one.
"""

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any, Final

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, OperationalError, SQLAlchemyError

from byline.errors import StoreError

__all__ = ["Database"]

_LOCK: Final = 0x62796C696E65
"""PostgreSQL's advisory lock for everything that only one may do at a time: "byline" in ASCII."""

_READING: Final = "byline_reading"

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        """CREATE TABLE byline_agents (
            id TEXT PRIMARY KEY,
            owner TEXT NOT NULL,
            kind TEXT NOT NULL,
            archived INTEGER NOT NULL,
            subagents TEXT NOT NULL)""",
        """CREATE TABLE byline_spent_grants (
            jti TEXT PRIMARY KEY,
            expires_at BIGINT NOT NULL)""",
        "CREATE INDEX byline_spent_grants_by_expiry ON byline_spent_grants (expires_at)",
        "CREATE TABLE byline_forgotten_grants (before BIGINT NOT NULL)",
        "INSERT INTO byline_forgotten_grants (before) VALUES (0)",
        """CREATE TABLE byline_artifacts (
            id TEXT PRIMARY KEY,
            thread_id TEXT NOT NULL,
            user_id TEXT NOT NULL,
            source TEXT NOT NULL,
            ordinal INTEGER NOT NULL,
            invocation TEXT,
            tag TEXT NOT NULL,
            type TEXT,
            title TEXT,
            identifier TEXT,
            language TEXT,
            body {blob} NOT NULL,
            placeholders BIGINT NOT NULL,
            lookups BIGINT NOT NULL)""",
        "CREATE INDEX byline_artifacts_by_thread ON byline_artifacts (thread_id, user_id)",
    ),
    (
        """CREATE TABLE byline_thread_parts (
            thread_id TEXT NOT NULL,
            run_id TEXT NOT NULL,
            began BIGINT NOT NULL,
            part INTEGER NOT NULL,
            user_id TEXT,
            lines {blob} NOT NULL,
            PRIMARY KEY (thread_id, run_id, began, part))""",
    ),
    (
        "CREATE TABLE byline_workers (worker TEXT PRIMARY KEY, lease BIGINT NOT NULL)",
        """CREATE TABLE byline_runs (
            token TEXT PRIMARY KEY,
            thread_id TEXT NOT NULL,
            run_id TEXT NOT NULL,
            user_id TEXT,
            worker TEXT NOT NULL,
            frames BIGINT NOT NULL,
            ended INTEGER NOT NULL,
            kept_until BIGINT NOT NULL,
            stop TEXT,
            UNIQUE (thread_id, run_id))""",
        "CREATE UNIQUE INDEX byline_runs_one_per_thread ON byline_runs (thread_id) WHERE ended = 0",
        """CREATE TABLE byline_run_frames (
            token TEXT NOT NULL,
            first BIGINT NOT NULL,
            body {blob} NOT NULL,
            PRIMARY KEY (token, first))""",
        """CREATE TABLE byline_run_readers (
            token TEXT NOT NULL,
            worker TEXT NOT NULL,
            until BIGINT NOT NULL,
            PRIMARY KEY (token, worker))""",
    ),
)
"""What each version of the schema adds to the one before.  Never change one that was released: append."""


_ALL: Final["weakref.WeakSet[Database]"] = weakref.WeakSet()


class Database:
    """An engine that is made when it is first needed; safe to share between threads and to take through a fork."""

    def __init__(self, url: str, timeout: float) -> None:
        self._url: Final = _checked(url)
        self._timeout: Final = timeout
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        _ALL.add(self)
        self.is_sqlite: Final = self._url.get_backend_name() == "sqlite"

    @contextmanager
    def write(self, *, alone: bool = False) -> Iterator[Connection]:
        """Enter a writing transaction; `alone` keeps every other such transaction waiting (SQLite: all of them are)."""
        with self._named_faults(), self._ready().begin() as connection:
            if alone:
                self._exclude(connection)
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Enter a transaction that sees one state of the database and changes nothing."""
        options: dict[str, Any] = {_READING: True}
        if not self.is_sqlite:
            options["isolation_level"] = "REPEATABLE READ"
        with (
            self._named_faults(),
            self._ready().connect().execution_options(**options) as connection,
            connection.begin(),
        ):
            yield connection

    def share(self, connection: Connection) -> None:
        """Let other writers go on, but nobody who wants to be alone; for the rest of the transaction."""
        if not self.is_sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock_shared(:key)"), {"key": _LOCK})

    @property
    def address(self) -> str:
        """The database as the PostgreSQL driver takes it, for a connection of one's own; password included."""
        return self._url.set(drivername="postgresql").render_as_string(hide_password=False)

    @contextmanager
    def raw(self) -> Iterator[Any]:
        """Give one of the driver's own connections, for what is asked of the same one again and again."""
        with self._named_faults(), closing(self._ready().raw_connection()) as connection:
            yield connection

    def close(self) -> None:
        """Close the connections; the next use opens new ones."""
        with self._lock:
            engine, self._engine = self._engine, None
        if engine is not None:
            engine.dispose()

    def forked(self) -> None:
        """Start anew in a child process: the connections, and who holds the lock, are the parent's."""
        engine, self._engine, self._lock = self._engine, None, threading.Lock()
        if engine is not None:
            engine.dispose(close=False)

    def _exclude(self, connection: Connection) -> None:
        if not self.is_sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})

    def _ready(self) -> Engine:
        with self._lock:
            if self._engine is None:
                engine = self._connectable()
                try:
                    self._migrate(engine)
                except BaseException:
                    engine.dispose()
                    raise
                self._engine = engine
            return self._engine

    def _connectable(self) -> Engine:
        if self.is_sqlite:
            # Every thread may have a connection: SQLite's own lock makes them wait, not a pool.
            engine = create_engine(
                self._url, connect_args={"timeout": self._timeout}, max_overflow=-1, hide_parameters=True
            )
            event.listen(engine, "connect", _sqlite_connected)
            event.listen(engine, "begin", _sqlite_begins)
            return engine
        limit = max(1, int(self._timeout * 1000))
        arguments: dict[str, Any] = {"connect_timeout": max(1, int(self._timeout))}
        if "options" not in self._url.query:
            arguments["options"] = f"-c statement_timeout={limit} -c lock_timeout={limit}"
        return create_engine(
            self._url,
            connect_args=arguments,
            isolation_level="READ COMMITTED",
            hide_parameters=True,  # a fault ends up in a log, and artifacts do not belong there
            pool_pre_ping=True,
            pool_timeout=self._timeout,
        )

    def _migrate(self, engine: Engine) -> None:
        if self.is_sqlite:
            self._to_wal(engine)
        with engine.begin() as connection:
            self._exclude(connection)
            connection.execute(text("CREATE TABLE IF NOT EXISTS byline_schema (version INTEGER NOT NULL)"))
            version = connection.execute(text("SELECT max(version) FROM byline_schema")).scalar() or 0
            if version > len(MIGRATIONS):
                raise StoreError(
                    f"the database has schema {version}, this byline knows {len(MIGRATIONS)}: use a newer byline"
                )
            blob = "BLOB" if self.is_sqlite else "BYTEA"
            for number, statements in enumerate(MIGRATIONS[version:], version + 1):
                for statement in statements:
                    connection.execute(text(statement.replace("{blob}", blob)))
                connection.execute(text("INSERT INTO byline_schema (version) VALUES (:n)"), {"n": number})

    def _to_wal(self, engine: Engine) -> None:
        until = time.monotonic() + self._timeout
        while True:
            try:
                with closing(engine.raw_connection()) as raw:
                    raw.cursor().execute(
                        "PRAGMA journal_mode = WAL"
                    )  # nothing happens where it is that already
                break
            except sqlite3.OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.01)

    @contextmanager
    def _named_faults(self) -> Iterator[None]:
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error, UnicodeError) as fault:
            place = self._url.render_as_string(hide_password=True)
            cause = fault.__cause__ if isinstance(fault, OperationalError) and fault.__cause__ else fault
            reason = " ".join(str(cause).split())[:300]
            raise StoreError(f"the store {place} cannot be used: {reason}") from fault


def _checked(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise StoreError(
            "the URL of the store cannot be read, expected one like sqlite:///byline.db"
        ) from None
    if parsed.drivername in ("postgresql", "postgres"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() not in ("sqlite", "postgresql"):
        raise StoreError(f"a store on {parsed.drivername!r} is not supported: use sqlite or postgresql")
    if parsed.get_backend_name() == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise StoreError("a database in memory is nobody else's: leave the store out, memory is the default")
    with suppress(ArgumentError):
        parsed.get_dialect()
        return parsed
    raise StoreError(
        f"the driver of {parsed.drivername!r} is unknown: write postgresql://... or sqlite:///..."
    )


def _sqlite_connected(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # the driver begins nothing by itself: we say when, and how
    connection.execute("PRAGMA synchronous = NORMAL")


def _sqlite_begins(connection: Connection) -> None:
    reading = connection.get_execution_options().get(_READING)
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")


def _forked() -> None:
    for database in list(_ALL):
        database.forked()


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=_forked)
