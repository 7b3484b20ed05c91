"""ADK's own artifact services as the place where artifacts are kept: in memory, and as files."""

import asyncio
import threading

import pytest
from adk_kit import runner, user
from byline.artifacts import Artifact, Artifacts, Counts, UnknownArtifactError
from byline.errors import StoreError
from byline_adk import ServiceStore
from byline_adk.scripted import Say
from google.adk.artifacts import InMemoryArtifactService
from test_adk_artifacts import BODY, play, read_by_the_model, team, the_only

pytestmark = pytest.mark.anyio

REPORT = '<artifact identifier="q3" type="text/html" title="Q3"><p>전부.</p></artifact>'
WHERE = {"thread": "../t.1", "user": "ann/..", "source": "call-1"}


@pytest.fixture(params=["memory", "files"])
def service(request, tmp_path):
    if request.param == "memory":
        return InMemoryArtifactService()
    from google.adk.artifacts import FileArtifactService

    return FileArtifactService(root_dir=tmp_path)


async def test_artifacts_are_kept_and_found_again(service):
    (artifact,) = Artifacts(ServiceStore(service)).keep(REPORT, invocation="ana-1", **WHERE).artifacts
    again = Artifacts(ServiceStore(service))
    assert again.store.get(artifact.id) == Artifact(
        id=artifact.id,
        thread="../t.1",
        user="ann/..",
        source="call-1",
        ordinal=0,
        tag="artifact",
        body="<p>전부.</p>",
        type="text/html",
        title="Q3",
        identifier="q3",
        invocation="ana-1",
    )
    assert again.look_up(artifact.id, thread="../t.1", user="ann/..") == "<p>전부.</p>"
    with pytest.raises(UnknownArtifactError):
        again.look_up(artifact.id, thread="../t.1", user="bob")


@pytest.mark.parametrize("id_", ["art_nobody", "../artifacts", "", "user:x", "앤", "a/b", "a\x00b"])
async def test_an_id_of_nobody_finds_nothing(service, id_):
    assert ServiceStore(service).get(id_) is None
    with pytest.raises(UnknownArtifactError):
        Artifacts(ServiceStore(service)).look_up(id_, thread="t", user="ann")


async def test_facts_are_counted_per_artifact(service):
    artifacts = Artifacts(ServiceStore(service))
    one, two = artifacts.keep(REPORT + REPORT, **WHERE).artifacts
    artifacts.sent([one, two])
    artifacts.sent([one])
    artifacts.look_up(two.id, thread="../t.1", user="ann/..")
    artifacts.store.count(["art_nobody"], "lookup")
    assert [artifacts.counts(id_) for id_ in (one.id, two.id, "art_nobody")] == [
        Counts(2, 0),
        Counts(1, 1),
        Counts(0, 0),
    ]


async def test_the_invocation_is_filled_in_and_never_changed(service):
    artifacts = Artifacts(ServiceStore(service))
    (artifact,) = artifacts.abbreviate(REPORT, **WHERE).artifacts
    for invocation in ("ana-1", "somebody-else"):
        artifacts.keep(REPORT, invocation=invocation, **WHERE)
    assert artifacts.store.get(artifact.id).invocation == "ana-1"


async def test_a_threads_artifacts_are_listed_in_order_and_nobody_elses(service):
    artifacts = Artifacts(ServiceStore(service))
    kept = artifacts.keep(REPORT * 12, **WHERE).artifacts
    artifacts.keep(REPORT, thread="t.2", user="ann/..", source="call-1")
    artifacts.keep(REPORT, thread="../t.1", user="bob", source="call-1")
    assert artifacts.store.ids("../t.1", "ann/..") == [artifact.id for artifact in kept]


async def test_a_body_that_is_no_valid_text_is_kept_as_it_is(service):
    artifacts = Artifacts(ServiceStore(service))
    (artifact,) = artifacts.keep("<artifact>zero \x00 half \ud83d</artifact>", **WHERE).artifacts
    assert artifacts.store.get(artifact.id).body == "zero \x00 half \ud83d"


async def test_a_run_keeps_its_artifacts_there_and_its_own_files_apart(service):
    artifacts = Artifacts(ServiceStore(service))
    boss = team("single_turn", Say("done"), Say("more"))
    a_runner = runner(boss)
    await play(a_runner, artifacts)
    artifact = the_only(artifacts)
    assert artifact.body == BODY
    await play(a_runner, Artifacts(ServiceStore(service)), user("and?", runId="r2"))
    assert artifacts.placeholder(artifact) in str(read_by_the_model(boss))
    assert await service.list_artifact_keys(app_name=a_runner.app_name, user_id="user", session_id="t") == []


class Down(InMemoryArtifactService):
    """A service whose host is gone."""

    async def load_artifact(self, **_):
        raise ConnectionError("gone")


class Hanging(InMemoryArtifactService):
    """A service that never answers."""

    async def load_artifact(self, **_):
        await asyncio.Event().wait()


async def test_a_service_that_fails_or_hangs_loses_nothing():
    for service, why in (
        (Down(), "the artifact service Down failed: ConnectionError"),
        (Hanging(), r"the artifact service Hanging did not answer within 0\.05 s"),
    ):
        artifacts = Artifacts(ServiceStore(service, limit=0.05))
        assert artifacts.abbreviate(REPORT, **WHERE).text == REPORT
        with pytest.raises(StoreError, match=why):
            artifacts.store.get("art_x")


async def test_many_threads_may_ask_at_once(service):
    artifacts = Artifacts(ServiceStore(service))
    (artifact,) = artifacts.keep(REPORT, **WHERE).artifacts
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(artifacts.store.get(artifact.id))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    assert found == [artifact] * 8
