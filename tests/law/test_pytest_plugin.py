"""The pytest plugin, run in a pytest of its own."""

from pathlib import Path

import pytest
from byline.pytest_plugin import Attributed, assert_attributed

pytest_plugins = ["pytester"]

DATA = Path(__file__).parent.parent / "data" / "law"
LEGAL = (DATA / "text-owner" / "legal-two-in-parallel.jsonl").read_bytes().splitlines()
ILLEGAL = (DATA / "text-owner" / "illegal-content.jsonl").read_bytes().splitlines()
WARNED = (DATA / "custom-name" / "illegal-bare.jsonl").read_bytes().splitlines()


def test_a_good_stream_passes():
    assert_attributed(LEGAL)
    assert_attributed(line.decode() for line in LEGAL)
    assert_attributed(WARNED)
    assert_attributed(WARNED, profile="consumer", fail_on="info")


def test_a_bad_stream_fails_with_what_a_reader_needs():
    with pytest.raises(AssertionError) as error:
        assert_attributed(ILLEGAL)
    assert str(error.value).splitlines() == [
        "the stream breaks the law (producer profile, 1 finding):",
        (
            "error text-owner, event 4 /subagentRunId: TEXT_MESSAGE_CONTENT of text message 'm1' is tagged subagent 's2', "
            "but event 3 opened it for subagent 's1'"
        ),
        '    3: {"type":"TEXT_MESSAGE_START","messageId":"m1","role":"assistant","subagentRunId":"s1"}',
        '    4: {"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"Paris","subagentRunId":"s2"}',
        (
            "    the text: TEXT_MESSAGE_CONTENT, TEXT_MESSAGE_END and a reopening start MUST NOT carry a subagentRunId that "
            "disagrees with the message's opener; they MAY omit it."
        ),
        "    to mend:  tag the event as the opener is tagged, or leave the tag out",
    ]


def test_what_counts_can_be_chosen():
    assert_attributed(ILLEGAL, ignore=["text-owner"])
    with pytest.raises(AssertionError, match="custom-name"):
        assert_attributed(WARNED, fail_on="warning")
    with pytest.raises(ValueError, match="no rule 'text-ownr'"):
        assert_attributed(ILLEGAL, ignore=["text-ownr"])


def test_runs_collected_together_are_one_stream():
    collected = Attributed()
    collected.collect(LEGAL, LEGAL)
    with pytest.raises(AssertionError, match="run-id-reused"):
        collected.check()
    collected.collect(LEGAL)
    collected.collect(LEGAL)
    collected.check()


TESTS = """
import pytest

STARTED = {"type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0"}
FINISHED = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}
OPENED = {"type": "STEP_STARTED", "stepName": "a"}
BARE = {"type": "CUSTOM", "name": "bare", "value": 1}


def test_good(attributed):
    assert attributed.collect([STARTED, FINISHED]) == [STARTED, FINISHED]


def test_bad(attributed):
    attributed.collect(iter([STARTED, OPENED, FINISHED]))


def test_bad_and_failing(attributed):
    attributed.collect([STARTED, OPENED, FINISHED])
    assert False, "its own failure"


@pytest.mark.attributed(fail_on="warning", ignore=["step-left-open"])
def test_marked(attributed):
    attributed.collect([STARTED, OPENED, BARE, FINISHED])


def test_async(attributed):
    import asyncio

    async def run():
        for event in (STARTED, OPENED, FINISHED):
            yield event

    assert len(asyncio.run(attributed.acollect(run()))) == 3


def test_breaks_off(attributed):
    def run():
        yield STARTED
        raise RuntimeError("the app's own")

    with pytest.raises(RuntimeError):
        attributed.collect(run())


def test_not_used():
    pass
"""


@pytest.fixture
def plugin(request):
    installed = request.config.pluginmanager.has_plugin("byline")
    return () if installed else ("-p", "byline.pytest_plugin")


def test_the_fixture_fails_the_test_and_not_its_teardown(pytester, plugin, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    pytester.makepyfile(TESTS)
    result = pytester.runpytest_subprocess(*plugin, "-p", "no:cacheprovider", "-rA")
    result.assert_outcomes(passed=2, failed=5)
    result.stdout.re_match_lines_random(
        [
            "PASSED .*::test_good",
            "PASSED .*::test_not_used",
            "FAILED .*::test_bad - AssertionError: the stream breaks the law.*",
            "FAILED .*::test_bad_and_failing - AssertionError: its own failure",
            "FAILED .*::test_marked - AssertionError: the stream breaks the law.*",
            ".*error step-left-open, event 2: .*",
            ".*warning custom-name, event 2 /name: .*",
            ".*error run-truncated, at the end: .*",
        ]
    )


def test_the_marker_is_declared(pytester, plugin):
    result = pytester.runpytest_subprocess(*plugin, "--markers")
    result.stdout.fnmatch_lines(["@pytest.mark.attributed(profile='producer', fail_on='error', ignore=()):*"])


def test_it_costs_nothing_where_it_is_not_used(pytester, plugin):
    pytester.makepyfile(
        "def test_lazy():\n    import sys\n    assert 'byline.validator' not in sys.modules\n    assert 'ag_ui' not in sys.modules\n"
    )
    pytester.runpytest_subprocess(*plugin).assert_outcomes(passed=1)
