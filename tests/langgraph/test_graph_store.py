"""LangGraph's own stores as the place where artifacts are kept: in memory, and on SQLite."""

import pytest
from byline.artifacts import Artifact, Artifacts, Counts, UnknownArtifactError
from byline.errors import StoreError
from byline_langgraph import GraphStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

REPORT = '<artifact identifier="q3" type="text/html" title="Q3"><p>전부.</p></artifact>'
WHERE = {"thread": "t.1", "user": "ann", "source": "call-1"}


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    if request.param == "memory":
        yield InMemoryStore()
    else:
        with SqliteStore.from_conn_string(str(tmp_path / "graph.db")) as store:
            store.setup()
            yield store


def test_artifacts_are_kept_and_found_again(store):
    (artifact,) = Artifacts(GraphStore(store)).keep(REPORT, invocation="writer-1", **WHERE).artifacts
    again = Artifacts(GraphStore(store))
    assert again.store.get(artifact.id) == Artifact(
        id=artifact.id,
        thread="t.1",
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
    assert again.look_up(artifact.id, thread="t.1", user="ann") == "<p>전부.</p>"
    with pytest.raises(UnknownArtifactError):
        again.look_up(artifact.id, thread="t.1", user="bob")
    assert again.store.get("art_nobody") is None


def test_facts_are_counted_per_artifact(store):
    artifacts = Artifacts(GraphStore(store))
    one, two = artifacts.keep(REPORT + REPORT, **WHERE).artifacts
    artifacts.sent([one, two])
    artifacts.sent([one])
    artifacts.look_up(two.id, thread="t.1", user="ann")
    artifacts.store.count(["art_nobody"], "lookup")
    assert [artifacts.counts(id_) for id_ in (one.id, two.id, "art_nobody")] == [
        Counts(2, 0),
        Counts(1, 1),
        Counts(0, 0),
    ]


def test_the_invocation_is_filled_in_and_never_changed(store):
    artifacts = Artifacts(GraphStore(store))
    (artifact,) = artifacts.abbreviate(REPORT, **WHERE).artifacts
    for invocation in ("writer-1", "somebody-else"):
        artifacts.keep(REPORT, invocation=invocation, **WHERE)
    assert artifacts.store.get(artifact.id).invocation == "writer-1"


def test_more_artifacts_than_a_page_are_listed_in_order(store):
    artifacts = Artifacts(GraphStore(store))
    kept = artifacts.keep(REPORT * 130, **WHERE).artifacts
    artifacts.keep(REPORT, thread="t.2", user="ann", source="call-1")
    artifacts.keep(REPORT, thread="t.1", user="bob", source="call-1")
    assert artifacts.store.ids("t.1", "ann") == [artifact.id for artifact in kept]


def test_a_body_that_is_no_valid_text_is_kept_as_it_is(store):
    artifacts = Artifacts(GraphStore(store))
    (artifact,) = artifacts.keep("<artifact>zero \x00 half \ud83d</artifact>", **WHERE).artifacts
    assert artifacts.store.get(artifact.id).body == "zero \x00 half \ud83d"


def test_a_store_that_fails_loses_nothing():
    class Down(InMemoryStore):
        def batch(self, ops):
            raise ConnectionError("gone")

    artifacts = Artifacts(GraphStore(Down()))
    assert artifacts.abbreviate(REPORT, **WHERE).text == REPORT
    with pytest.raises(StoreError, match="the graph's store Down failed: ConnectionError"):
        artifacts.store.get("x")
