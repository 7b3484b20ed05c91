"""The durable stores, on SQLite and on a real PostgreSQL: the same tests for both."""

import asyncio
import contextlib
import json
import multiprocessing
import os
import subprocess
import sys
import time
from itertools import chain
from pathlib import Path

import pytest
from byline.artifacts import Artifact, Artifacts, Counts, UnknownArtifactError
from byline.errors import StoreError
from byline.grants import FORGET_AFTER, Grants, StoreUnavailableError, TableDecider
from byline.stores import open_store
from byline.team import AgentRecord, LinksInvalidError, Team, TeamError

pytest.importorskip("sqlalchemy", reason="durable stores need an extra: pip install 'byline[store]'")

from sqlalchemy import event

from . import spender

LATER = 4_000_000_000

_opened: list = []


@pytest.fixture(autouse=True)
def _close_what_was_opened():
    yield
    while _opened:
        _opened.pop().close()


def opened(url: str, **more):
    """Open a store that is closed after the test."""
    _opened.append(open_store(url, **more))
    return _opened[-1]


def processes(count: int, *arguments: object) -> list:
    """Run the spender in several processes that begin at once; returns what each printed."""
    script = Path(spender.__file__)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    running = [
        subprocess.Popen(
            [sys.executable, script, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for _ in range(count)
    ]
    for process in running:
        assert process.stdout.readline() == "ready\n"
    for process in running:
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [json.loads(process.communicate(timeout=100)[0]) for process in running]
    assert [answer["faults"] for answer in answers] == [[]] * count
    return [answer["result"] for answer in answers]


# ------------------------------------------------------------------------------------------------- all at the same time


def test_of_32_threads_in_each_of_4_processes_exactly_one_spends_a_grant(url):
    service = Grants(spender.SECRET, TableDecider([]))
    tokens = [asyncio.run(service.issue(spender.ATTEMPT)) for _ in range(10)]
    won = processes(4, "spend", url, 32, *tokens)
    assert sorted([*chain.from_iterable(won)]) == list(range(10)), "each grant once, over all processes"


def test_64_first_users_at_once_find_a_database(url):
    done = processes(4, "first", url, 16)
    assert [len(one) for one in done] == [16] * 4
    assert [*chain.from_iterable(done)].count(True) == 1


def test_saves_at_once_never_make_a_cycle(url):
    team = Team(opened(url).teams)
    names = ["a", "b", "c", "d"]
    for name in names:
        team.add(AgentRecord(name, "ann"), caller="ann")
    refused = processes(2, "link", url, 8, *names)
    assert {*chain.from_iterable(refused)} == {"cycle"}
    links = [team.get(name).subagents for name in names]
    assert links.count(()) == 1, "the circle lacks exactly one link"


def test_an_agent_added_at_once_is_there_once(url):
    added = processes(2, "add", url, 8, "a", "b", "c")
    assert sorted([*chain.from_iterable(added)]) == ["a", "b", "c"]


# ---------------------------------------------------------------------------------------------------------- the teams


def test_a_team_survives_the_process(url):
    team = Team(opened(url).teams)
    team.add(AgentRecord("a", "ann"), caller="ann")
    team.add(AgentRecord("b", "ann", kind="super", archived=True), caller="ann")
    team.add(AgentRecord("boss", "ann", subagents=("a",)), caller="ann")
    again = Team(opened(url).teams)
    assert [again.get(name) for name in ("a", "b", "boss")] == [
        AgentRecord("a", "ann"),
        AgentRecord("b", "ann", "super", True),
        AgentRecord("boss", "ann", subagents=("a",)),
    ]
    again.delete("a", caller="ann")
    with pytest.raises(TeamError, match="no agent 'a'"):
        team.get("a")


def test_a_refused_save_changes_nothing(url):
    team = Team(opened(url).teams)
    for agent in (
        AgentRecord("a", "ann"),
        AgentRecord("boss", "ann", subagents=("a",)),
        AgentRecord("z", "ann", archived=True),
    ):
        team.add(agent, caller="ann")
    with pytest.raises(LinksInvalidError) as raised:
        team.save("boss", ["a", "z", "boss"], caller="ann")
    assert [reason.code for reason in raised.value.reasons] == ["archived", "self_reference"]
    assert team.get("boss").subagents == ("a",)
    with pytest.raises(LinksInvalidError) as raised:
        team.save("a", ["boss"], caller="ann")
    assert raised.value.reasons[0].cycle == ("a", "boss", "a")


def test_names_in_any_script_are_kept(url):
    team = Team(opened(url).teams)
    name = "에이전트 'x' \"y\" %s :z \U0001f600"
    team.add(AgentRecord(name, "소유자"), caller="소유자")
    assert team.get(name).owner == "소유자"


@pytest.mark.parametrize("name", ["half \ud800 pair"])
def test_a_name_that_no_database_takes_is_refused(url, name):
    with pytest.raises(StoreError):
        Team(opened(url).teams).add(AgentRecord(name, "ann"), caller="ann")


# --------------------------------------------------------------------------------------------------------- the grants


def test_a_grant_is_spent_once_also_by_another_store(url):
    assert opened(url).grants.spend("g", LATER) is True
    assert opened(url).grants.spend("g", LATER) is False
    assert opened(url).grants.spend("h", LATER) is True


def test_expired_grants_are_purged_and_stay_refused(url):
    store = opened(url)
    now = [1_000_000.0]
    store.grants._clock = lambda: now[0]
    assert store.grants.spend("old", 1_000_300)
    assert store.grants.spend("new", 1_000_300 + 2 * FORGET_AFTER)
    assert store.grants.purge() == 0
    now[0] += FORGET_AFTER + 301
    assert store.grants.purge() == 1
    assert store.grants.spend("new", 1_000_300 + 2 * FORGET_AFTER) is False
    now[0] = 1_000_001.0  # the clock jumps back to where the grant was good
    assert store.grants.spend("old", 1_000_300) is False
    assert store.grants.spend("another", 1_000_000 + FORGET_AFTER)


def test_purging_happens_by_itself(url):
    store = opened(url)
    now = [1_000_000.0]
    store.grants._clock = lambda: now[0]
    for number in range(5):
        assert store.grants.spend(f"g{number}", int(now[0]) + 300)
        now[0] += FORGET_AFTER
    with store._database.read() as connection:
        left = connection.exec_driver_sql("SELECT count(*) FROM byline_spent_grants").scalar()
    assert left == 2, "the last two; what expired before them is forgotten"


# ------------------------------------------------------------------------------------------------------ the artifacts

REPORT = '<artifact identifier="q3" type="text/html" title="Q3"><p>전부.</p></artifact>'
WHERE = {"thread": "t1", "user": "ann", "source": "call-1"}


def test_an_artifact_survives_the_process(url):
    kept = Artifacts(opened(url).artifacts).keep(REPORT, invocation="writer-1", **WHERE)
    again = Artifacts(opened(url).artifacts)
    (artifact,) = kept.artifacts
    assert again.store.get(artifact.id) == Artifact(
        id=artifact.id,
        thread="t1",
        user="ann",
        source="call-1",
        ordinal=0,
        tag="artifact",
        body="<p>전부.</p>",
        type="text/html",
        title="Q3",
        identifier="q3",
        invocation="writer-1",
    )
    assert again.look_up(artifact.id, thread="t1", user="ann") == "<p>전부.</p>"
    for thread, user in (("t2", "ann"), ("t1", "bob")):
        with pytest.raises(UnknownArtifactError):
            again.look_up(artifact.id, thread=thread, user=user)
    again.sent(kept.artifacts)
    again.sent(kept.artifacts)
    assert again.counts(artifact.id) == Counts(2, 1)
    assert again.counts("art_nobody") == Counts(0, 0)


def test_the_invocation_is_filled_in_and_never_changed(url):
    artifacts = Artifacts(opened(url).artifacts)
    (artifact,) = artifacts.abbreviate(REPORT, **WHERE).artifacts
    assert artifacts.store.get(artifact.id).invocation is None
    for invocation in ("writer-1", "somebody-else"):
        artifacts.keep(REPORT, invocation=invocation, **WHERE)
    assert artifacts.store.get(artifact.id).invocation == "writer-1"
    artifacts.sent([artifact])
    artifacts.keep(REPORT, invocation="again", **WHERE)
    assert artifacts.counts(artifact.id) == Counts(1, 0), "kept again, it keeps its counts"


def test_artifacts_are_listed_by_thread_and_user(url):
    artifacts = Artifacts(opened(url).artifacts)
    two = [one.id for one in artifacts.keep(REPORT + REPORT, **WHERE).artifacts]
    artifacts.keep(REPORT, thread="t1", user="bob", source="call-1")
    artifacts.keep(REPORT, thread="t2", user="ann", source="call-1")
    assert artifacts.store.ids("t1", "ann") == two


def test_a_body_that_is_no_valid_text_is_kept_as_it_is(url):
    artifacts = Artifacts(opened(url).artifacts)
    (artifact,) = artifacts.keep(
        "<artifact title='a\x00b'>zero \x00 half \ud83d end</artifact>", **WHERE
    ).artifacts
    assert artifacts.look_up(artifact.id, thread="t1", user="ann") == "zero \x00 half \ud83d end"


def test_a_body_of_five_megabytes_is_kept(url):
    artifacts = Artifacts(opened(url).artifacts)
    body = "<td>값</td>" * 500_000
    (artifact,) = artifacts.keep(f"<artifact>{body}</artifact>", **WHERE).artifacts
    assert artifacts.store.get(artifact.id).body == body


def test_the_memory_default_answers_like_the_database(url):
    for artifacts in (Artifacts(), Artifacts(opened(url).artifacts)):
        ids = [one.id for one in artifacts.keep(REPORT + REPORT, invocation=None, **WHERE).artifacts]
        artifacts.keep(REPORT, invocation="late", **WHERE)
        artifacts.store.count([ids[0], ids[0], "unknown"], "lookup")
        assert artifacts.store.ids("t1", "ann") == ids
        assert [artifacts.store.get(one).invocation for one in ids] == ["late", None]
        assert [artifacts.store.counts(one) for one in ids] == [Counts(0, 1), Counts(0, 0)]


# ----------------------------------------------------------------------------------------------------------- the schema


def test_an_empty_database_is_brought_up_to_date_once(url):
    for _ in range(2):
        opened(url).grants.spend("g", LATER)
    with opened(url)._database.read() as connection:
        assert connection.exec_driver_sql("SELECT version FROM byline_schema").all() == [(1,), (2,), (3,)]


def test_a_database_of_an_older_byline_is_brought_up_to_date(url, monkeypatch):
    from byline.history import Part
    from byline.stores import _database

    monkeypatch.setattr(_database, "MIGRATIONS", _database.MIGRATIONS[:1])
    assert opened(url).grants.spend("g", LATER)
    monkeypatch.undo()
    store = opened(url)
    part = Part("t", "r", 1, 0, None, "{}")
    store.threads.append(part)
    assert store.threads.read("t") == [part]
    assert not store.grants.spend("g", LATER)  # what was there is there


def test_a_database_of_a_newer_byline_is_refused(url):
    opened(url).grants.spend("g", LATER)
    with opened(url)._database.write() as connection:
        connection.exec_driver_sql("INSERT INTO byline_schema (version) VALUES (99)")
    with pytest.raises(StoreError, match="schema 99, this byline knows 3"):
        opened(url).grants.spend("h", LATER)


def test_what_fails_in_a_migration_leaves_nothing_behind(url, monkeypatch):
    from byline.stores import _database

    monkeypatch.setattr(_database, "MIGRATIONS", (*_database.MIGRATIONS, ("CREATE TABLE broken (",)))
    with pytest.raises(StoreError):
        opened(url).grants.spend("g", LATER)
    monkeypatch.undo()
    assert opened(url).grants.spend("g", LATER)


def test_a_store_goes_through_a_fork(url):
    store = opened(url)
    assert store.grants.spend("before", LATER)
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(
        target=lambda: queue.put([store.grants.spend(g, LATER) for g in ("before", "child")])
    )
    child.start()
    child.join(30)
    assert queue.get() == [False, True]
    assert [store.grants.spend(g, LATER) for g in ("child", "after")] == [False, True]


# ----------------------------------------------------------------------------------------------------- down, or full


def test_a_full_disk_refuses_and_loses_nothing(tmp_path, caplog):
    url = f"sqlite:///{tmp_path / 'small.db'}"
    opened(url).grants.spend("g", LATER)
    store = opened(url)
    engine = store._database._ready()
    engine.dispose()
    event.listen(engine, "connect", lambda raw, _: raw.execute("PRAGMA max_page_count = 20"))
    secret = "not for the log " * 10_000
    text = f"<artifact>{secret}</artifact>"
    assert Artifacts(store.artifacts).abbreviate(text, **WHERE).text == text
    assert "not for the log" not in caplog.text
    with pytest.raises(StoreError, match="full"):
        store.artifacts.put(Artifacts().keep(text, **WHERE).artifacts)
    service = Grants(spender.SECRET, TableDecider([]), ledger=store.grants)
    codes = set()
    for _ in range(3_000):
        try:
            service.admit(asyncio.run(service.issue(spender.ATTEMPT)), spender.ATTEMPT)
        except StoreUnavailableError as fault:
            codes.add(fault.code)
            break
    assert codes == {"store_unavailable"}


def test_a_store_that_is_down_refuses_the_run_and_says_no_password():
    service = Grants(
        spender.SECRET,
        TableDecider([]),
        ledger=opened("postgresql://byline:hunter2@127.0.0.1:1/nothing", timeout=2).grants,
    )
    pytest.importorskip("psycopg")
    token = asyncio.run(service.issue(spender.ATTEMPT))
    with pytest.raises(StoreUnavailableError) as raised:
        service.admit(token, spender.ATTEMPT)
    assert raised.value.code == "store_unavailable"
    assert "hunter2" not in str(raised.value)


def test_a_database_that_is_locked_is_waited_for_no_longer_than_the_timeout(tmp_path):
    path = tmp_path / "byline.db"
    store = opened(f"sqlite:///{path}", timeout=0.2)
    store.grants.spend("g", LATER)
    import sqlite3

    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        with pytest.raises(StoreError, match="locked"):
            store.grants.spend("h", LATER)
        assert time.monotonic() - began < 5
        assert Team(opened(f"sqlite:///{path}", timeout=0.2).teams) is not None
        with store._database.read() as connection:  # readers do not wait for a writer
            assert connection.exec_driver_sql("SELECT count(*) FROM byline_spent_grants").scalar() == 1
        other.execute("ROLLBACK")
    assert store.grants.spend("h", LATER)


def test_a_file_that_is_no_database_is_refused(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("These are notes, not a database. " * 100)
    with pytest.raises(StoreError, match="not a database"):
        opened(f"sqlite:///{path}", timeout=0.2).grants.spend("g", LATER)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("", "cannot be read"),
        ("no url", "cannot be read"),
        ("mysql://host/name", "not supported"),
        ("sqlite://", "memory is the default"),
        ("sqlite:///:memory:", "memory is the default"),
        ("postgresql+nothing://host/name", "is unknown"),
    ],
)
def test_a_url_that_cannot_be_used_is_refused(url, why):
    with pytest.raises(StoreError, match=why):
        opened(url)
