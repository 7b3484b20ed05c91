"""The runs of several servers on one database: who runs what, what it has said so far, and who still lives.

Three facts carry it:

* A run belongs to one thread, and a partial unique index lets a thread have only one that has not ended: whoever gets
  its row in has the thread.
* A worker has one row with the time until which it is to be taken for alive, by the database's clock.  A run whose
  worker's time is up may be ended by anybody, once: the same update that ends it keeps the worker, should it live after
  all, from writing another frame.
* Each row is changed by one party in one short transaction (readers have a table of their own), so nobody can
  deadlock.

Nothing here waits for news but `changes`, which gives the tokens of runs there is something new of: on PostgreSQL as
they are notified, on SQLite once a second when another connection has written anything.
"""

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

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
    bindparam,
    delete,
    exists,
    false,
    func,
    literal,
    literal_column,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from ._database import Database

__all__ = ["Claim", "Kept", "Known", "LastFrame", "News", "SqlRuns", "Written"]

_CHANNEL: Final = "byline_runs"
_STOP: Final = "!"
"""What is in front of the token when the news is that somebody wants the run stopped."""
_CHECK: Final = 1.0
"""Seconds between two looks at a SQLite file, and after which a listener sees that it was stopped."""
_STRETCHES: Final = 50
"""Stretches of frames that are read at once."""
_FORGOTTEN: Final = 600_000
"""Milliseconds after which the row of a worker that is no more is dropped."""

_META: Final = MetaData()
_WORKERS: Final = Table(
    "byline_workers", _META, Column("worker", Text, primary_key=True), Column("lease", BigInteger)
)
_RUNS: Final = Table(
    "byline_runs",
    _META,
    Column("token", Text, primary_key=True),
    Column("thread_id", Text),
    Column("run_id", Text),
    Column("user_id", Text),
    Column("worker", Text),
    Column("frames", BigInteger),
    Column("ended", Integer),
    Column("kept_until", BigInteger),
    Column("stop", Text),
)
_FRAMES: Final = Table(
    "byline_run_frames",
    _META,
    Column("token", Text, primary_key=True),
    Column("first", BigInteger, primary_key=True),
    Column("body", LargeBinary),
)
_READERS: Final = Table(
    "byline_run_readers",
    _META,
    Column("token", Text, primary_key=True),
    Column("worker", Text, primary_key=True),
    Column("until", BigInteger),
)


class Known(NamedTuple):
    """A run that some worker has, or had a moment ago."""

    token: str
    """Which start it is: an id of its own, never used again."""
    run_id: str
    user: str | None
    ended: bool


class Claim(NamedTuple):
    """What came of wanting a thread: the token of the new run, or the run that is in its way."""

    token: str | None
    in_the_way: Known | None = None


class Written(NamedTuple):
    """Frames to be added to a run's log, all at once."""

    token: str
    first: int
    """The number of the first frame."""
    frames: int
    """How many."""
    body: bytes
    ended: bool
    """Whether they are its last."""


class Kept(NamedTuple):
    """What a log holds from frame `following` on."""

    following: int
    """What was asked for; less where a worker died with frames unwritten that a reader has: then the last frame."""
    stretches: Sequence[tuple[int, bytes]] = ()
    """Each with the number of its first frame; the first of them may begin earlier than was asked."""
    ended: bool = False


class News(NamedTuple):
    """There is something new of a run, or, where `token` is `None`, of any run."""

    token: str | None
    stop: bool = False
    """Whether it may be that somebody wants it stopped."""


class SqlRuns:
    """The runs of several servers; every method is one short transaction, called from any thread."""

    def __init__(self, database: Database) -> None:
        self._database: Final = database

    # --------------------------------------------------------------- workers

    def beat(self, worker: str, lease: float) -> None:
        """Say that a worker lives, and will for `lease` seconds."""
        with self._database.write() as connection:
            self._alive(connection, worker, lease)

    def leave(self, worker: str) -> None:
        """A worker is no more: what it has not ended may be ended by others now."""
        with self._database.write() as connection:
            connection.execute(delete(_READERS).where(_READERS.c.worker == worker))
            connection.execute(delete(_WORKERS).where(_WORKERS.c.worker == worker))

    def _alive(self, connection: Connection, worker: str, lease: float) -> None:
        until = self._now(lease)
        statement = self._inserting(_WORKERS).values(worker=worker, lease=until)
        connection.execute(statement.on_conflict_do_update(index_elements=["worker"], set_={"lease": until}))

    # --------------------------------------------------------------- the owner's side

    def claim(
        self,
        worker: str,
        lease: float,
        thread_id: str,
        run_id: str,
        user: str | None,
        last: "LastFrame",
        *,
        again: bool = False,
    ) -> Claim:
        """Take a thread for a new run, unless it has one that lives; one whose worker has died is ended by `last`.

        With `again`, a run of the same id and user that has ended is forgotten for the new one.
        """
        token = uuid.uuid4().hex
        over = and_(_RUNS.c.ended == 1, _RUNS.c.user_id.is_not_distinct_from(user)) if again else false()
        same = and_(_RUNS.c.thread_id == thread_id, _RUNS.c.run_id == run_id)
        stale = and_(same, or_(over, self._forgotten()))
        row = {
            "token": token,
            "thread_id": thread_id,
            "run_id": run_id,
            "user_id": user,
            "worker": worker,
            "frames": 0,
            "ended": 0,
            "kept_until": 0,
        }
        statement = self._inserting(_RUNS).values(row).on_conflict_do_nothing().returning(_RUNS.c.token)
        for _ in range(2):
            with self._database.write() as connection:
                self._alive(connection, worker, lease)  # or one that was asleep would begin as a dead one
                self._forget(connection, stale)
                if connection.execute(statement).first() is not None:
                    return Claim(token)
            if not self._end_orphans(and_(_RUNS.c.thread_id == thread_id, self._orphaned()), last):
                break
        with self._database.read() as connection:
            busy = and_(_RUNS.c.thread_id == thread_id, _RUNS.c.ended == 0)
            found = connection.execute(select(_RUNS).where(busy)).first()
            found = found or connection.execute(select(_RUNS).where(same)).first()
        return Claim(None, None if found is None else _known(found))

    def release(self, token: str) -> None:
        """Let go of a run that never began."""
        with self._database.write() as connection:
            self._forget(connection, _RUNS.c.token == token)

    def append(self, written: Sequence[Written], keep: float) -> set[str]:
        """Add frames to the logs of runs, in one transaction; those that end are kept for `keep` seconds more.

        Returns the tokens of the runs that are not ours any more: somebody else has ended them.
        """
        mine = _RUNS.c.token.in_(one.token for one in written), _RUNS.c.ended == 0
        held = select(_RUNS.c.token, _RUNS.c.frames).where(*mine).order_by(_RUNS.c.token)
        with self._database.write() as connection:  # five statements, however many runs there are
            if not self._database.is_sqlite:
                held = held.with_for_update()
            frames = {row.token: row.frames for row in connection.execute(held)}
            good = [one for one in written if frames.get(one.token) == one.first]
            for ended, values in ((False, {}), (True, {"ended": 1, "kept_until": self._now(keep)})):
                some = [one for one in good if one.ended == ended]
                change = update(_RUNS).where(_RUNS.c.token == bindparam("which"))
                change = change.values(frames=bindparam("upto"), **values)
                if some:
                    connection.execute(
                        change, [{"which": one.token, "upto": one.first + one.frames} for one in some]
                    )
            rows = [{"token": one.token, "first": one.first, "body": one.body} for one in good if one.frames]
            if rows:
                connection.execute(_FRAMES.insert(), rows)
            self._notify(connection, *(one.token for one in good))
            return {one.token for one in written if one not in good and not self._is_there(connection, one)}

    def _is_there(self, connection: Connection, one: Written) -> bool:
        """Return whether frames were written before: their commit went through, and we did not hear of it."""
        same = and_(_FRAMES.c.token == one.token, _FRAMES.c.first == one.first, _FRAMES.c.body == one.body)
        return connection.execute(select(_FRAMES.c.token).where(same)).first() is not None

    def stops(self, worker: str) -> dict[str, str]:
        """Return which of a worker's runs somebody wants stopped, and why."""
        wanted = and_(_RUNS.c.worker == worker, _RUNS.c.ended == 0, _RUNS.c.stop.is_not(None))
        with self._database.read() as connection:
            return {row.token: row.stop for row in connection.execute(select(_RUNS).where(wanted))}

    def attended(self, token: str) -> float:
        """Return for how many seconds from now readers elsewhere want the run to go on; 0 or less: not at all."""
        latest = select(func.max(_READERS.c.until) - self._now()).where(_READERS.c.token == token)
        with self._database.read() as connection:
            left = connection.execute(latest).scalar()
        return 0.0 if left is None else int(left) / 1000

    # --------------------------------------------------------------- the readers' side

    def find(self, thread_id: str, run_id: str) -> Known | None:
        """Return a run that is under way or still kept."""
        wanted = and_(_RUNS.c.thread_id == thread_id, _RUNS.c.run_id == run_id, ~self._forgotten())
        with self._database.read() as connection:
            row = connection.execute(select(_RUNS).where(wanted)).first()
        return None if row is None else _known(row)

    def read(self, token: str, following: int) -> Kept | None:
        """Return what a run's log holds from frame `following` on, a part of it where it is long."""
        with self._database.read() as connection:
            run = connection.execute(select(_RUNS).where(_RUNS.c.token == token)).first()
            if run is None:
                return None
            if run.ended and following > run.frames:
                following = run.frames - 1
            if following >= run.frames:
                return Kept(following, ended=bool(run.ended))
            begins = select(func.max(_FRAMES.c.first)).where(
                _FRAMES.c.token == token, _FRAMES.c.first <= following
            )
            wanted = _FRAMES.c.token == token, _FRAMES.c.first >= func.coalesce(begins.scalar_subquery(), 0)
            rows = connection.execute(
                select(_FRAMES).where(*wanted).order_by(_FRAMES.c.first).limit(_STRETCHES)
            ).all()
        return Kept(following, [(row.first, bytes(row.body)) for row in rows], bool(run.ended))

    def attend(self, token: str, worker: str, patience: float) -> None:
        """Somebody reads a run at `worker`: it shall go on, or be kept, for `patience` seconds from now."""
        until = self._now(patience)
        statement = self._inserting(_READERS).values(token=token, worker=worker, until=until)
        with self._database.write() as connection:
            connection.execute(
                statement.on_conflict_do_update(index_elements=["token", "worker"], set_={"until": until})
            )

    def stop(self, token: str, reason: str) -> None:
        """Ask whoever has a run to stop it."""
        mine = and_(_RUNS.c.token == token, _RUNS.c.ended == 0)
        with self._database.write() as connection:
            connection.execute(update(_RUNS).where(mine).values(stop=reason))
            self._notify(connection, _STOP + token)

    # --------------------------------------------------------------- everybody's side

    def tidy(self, last: "LastFrame") -> list[str]:
        """End the runs whose workers have died, and drop what is not kept any more; returns the tokens of the former.

        `last` makes of a frame's number the frame that ends such a run.
        """
        ended = self._end_orphans(self._orphaned(), last)
        with self._database.read() as connection:
            idle = connection.execute(select(_RUNS.c.token).where(self._forgotten()).limit(1)).first() is None
        if not idle:
            with self._database.write(alone=True) as connection:
                self._forget(connection, self._forgotten())
                connection.execute(delete(_WORKERS).where(_WORKERS.c.lease < self._now(-_FORGOTTEN / 1000)))
        return ended

    def changes(self, stopped: Callable[[], bool]) -> Iterator[News]:
        """Yield whatever news there is, until `stopped`.

        Of any run is all that SQLite tells, and PostgreSQL after a new connection.
        Raises `StoreError` or the driver's own errors when the database goes away; call it again then.
        """
        return self._checks(stopped) if self._database.is_sqlite else self._notices(stopped)

    def _notices(self, stopped: Callable[[], bool]) -> Iterator[News]:
        import psycopg

        with psycopg.connect(self._database.address, autocommit=True) as connection:
            connection.execute(f"LISTEN {_CHANNEL}")
            yield News(None, stop=True)  # what was told while nobody listened
            while not stopped():
                for notice in connection.notifies(timeout=_CHECK, stop_after=1):
                    yield News(notice.payload.removeprefix(_STOP), notice.payload.startswith(_STOP))

    def _checks(self, stopped: Callable[[], bool]) -> Iterator[News]:
        with self._database.raw() as connection:
            seen = None
            while not stopped():
                (version,) = connection.cursor().execute("PRAGMA data_version").fetchone()
                if version != seen:
                    seen = version
                    yield News(None, stop=True)
                time.sleep(_CHECK)

    # --------------------------------------------------------------- the statements' parts

    def _now(self, ahead: float = 0.0) -> Any:
        """The time `ahead` seconds from now, in milliseconds: the database's, for workers' clocks may differ."""
        more = int(ahead * 1000)
        if self._database.is_sqlite:  # one file, one host, one clock
            return literal(time.time_ns() // 1_000_000 + more, BigInteger)
        return literal_column(
            f"((extract(epoch from clock_timestamp()) * 1000)::bigint + ({more}))", BigInteger
        )

    def _orphaned(self) -> Any:
        alive = exists().where(_WORKERS.c.worker == _RUNS.c.worker, _WORKERS.c.lease >= self._now())
        return and_(_RUNS.c.ended == 0, ~alive)

    def _forgotten(self) -> Any:
        read = exists().where(_READERS.c.token == _RUNS.c.token, _READERS.c.until >= self._now())
        return and_(_RUNS.c.ended == 1, _RUNS.c.kept_until < self._now(), ~read)

    def _end_orphans(self, which: Any, last: "LastFrame") -> list[str]:
        with self._database.read() as connection:
            tokens = [row.token for row in connection.execute(select(_RUNS.c.token).where(which))]
        ended = []
        for token in tokens:
            change = update(_RUNS).where(_RUNS.c.token == token, self._orphaned())
            with self._database.write() as connection:
                values = {"ended": 1, "frames": _RUNS.c.frames + 1, "kept_until": self._now(last.keep)}
                row = connection.execute(change.values(values).returning(_RUNS)).first()
                if row is None:  # somebody was quicker, or it lives after all
                    continue
                number = row.frames - 1
                frame = {"token": token, "first": number, "body": last.frame(number)}
                connection.execute(_FRAMES.insert().values(frame))
                self._notify(connection, token)
            ended.append(token)
            last.ended(row.thread_id, row.run_id, row.user_id)
        return ended

    def _forget(self, connection: Connection, which: Any) -> None:
        gone = [row.token for row in connection.execute(select(_RUNS.c.token).where(which).limit(500))]
        for table in (_FRAMES, _READERS, _RUNS):
            connection.execute(delete(table).where(table.c.token.in_(gone)))

    def _notify(self, connection: Connection, *payloads: str) -> None:
        if payloads and not self._database.is_sqlite:
            every = {"channel": _CHANNEL, "payloads": list(payloads)}
            connection.execute(text("SELECT pg_notify(:channel, unnest(CAST(:payloads AS text[])))"), every)

    def _inserting(self, table: Table) -> Any:
        """Return the dialect's own INSERT: only that one knows ON CONFLICT."""
        return (sqlite if self._database.is_sqlite else postgresql).insert(table)


class LastFrame(NamedTuple):
    """How a run ends whose worker has died."""

    frame: Callable[[int], bytes]
    """Makes its last frame, with that number."""
    ended: Callable[[str, str, str | None], object]
    """Called with thread, run and user afterwards, by the one that has ended it."""
    keep: float
    """Seconds for which it can be read then."""


def _known(row: Any) -> Known:
    return Known(row.token, row.run_id, row.user_id, bool(row.ended))
