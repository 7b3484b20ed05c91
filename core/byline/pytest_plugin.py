"""The pytest plugin: hold the streams of a test to the law.

    from byline.pytest_plugin import assert_attributed

    def test_recorded_run():
        assert_attributed(Path("run.jsonl").read_bytes().splitlines())

    async def test_my_agent(attributed):
        events = await attributed.acollect(agent.run(run_input))
        assert events[-1].type == "RUN_FINISHED"

A test that uses the `attributed` fixture fails with the findings of what it collected, even where it asserts
nothing itself.  `@pytest.mark.attributed(profile="consumer", ignore=["custom-name"])` says how to judge.  Nothing
of byline is imported before a test asks for it, because pytest loads this module in every run.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from byline.events import BaseEvent
    from byline.rules import Level, Profile
    from byline.validator import Finding

    Fed = bytes | str | Mapping[str, Any] | BaseEvent

__all__ = ["Attributed", "assert_attributed"]

_RANK: Final = ("error", "warning", "info")
_SHOWN: Final = 20


def assert_attributed(
    events: Iterable[Fed],
    *,
    profile: Profile = "producer",
    fail_on: Level = "error",
    ignore: Sequence[str] = (),
) -> None:
    """Raise `AssertionError` with the findings, if there are any at `fail_on` or above, about `events`, one stream.

    An event is bytes, str, a mapping or a typed `ag_ui.core` event; `ignore` names rules that do not count.
    """
    __tracebackhide__ = True
    kept = list(events)
    found = _findings(kept, profile, fail_on, ignore)
    if found:
        raise AssertionError(_report(kept, found, profile))


class Attributed:
    """What the `attributed` fixture gives: collects streams, each to be judged when the test is over."""

    def __init__(
        self, profile: Profile = "producer", fail_on: Level = "error", ignore: Sequence[str] = ()
    ) -> None:
        self.profile = profile
        self.fail_on = fail_on
        self.ignore = ignore
        self.streams: list[list[Any]] = []

    def collect(self, *streams: Iterable[Any]) -> list[Any]:
        """Read `streams` to their ends and return their events; several are judged as one, as runs of a thread."""
        events = self._new()
        for stream in streams:
            for event in stream:
                events.append(event)
        return events

    async def acollect(self, *streams: AsyncIterable[Any]) -> list[Any]:
        """Read asynchronous `streams` to their ends; as `collect`."""
        events = self._new()
        for stream in streams:
            async for event in stream:
                events.append(event)
        return events

    def _new(self) -> list[Any]:
        self.streams.append([])
        return self.streams[-1]

    def check(self) -> None:
        """Judge what was collected, now; raises `AssertionError` with the findings."""
        __tracebackhide__ = True
        streams, self.streams = self.streams, []
        for events in streams:
            assert_attributed(events, profile=self.profile, fail_on=self.fail_on, ignore=self.ignore)


def _findings(
    events: Sequence[Fed], profile: Profile, fail_on: Level, ignore: Sequence[str]
) -> list[Finding]:
    from byline.rules import RULES
    from byline.validator import Validator

    unknown = [rule for rule in ignore if rule not in RULES]
    if unknown or fail_on not in _RANK:
        raise ValueError(f"there is no {'rule ' + repr(unknown[0]) if unknown else 'level ' + repr(fail_on)}")
    judge = Validator(profile)
    found = [finding for event in events for finding in judge.feed(event)] + judge.finish()
    counted = _RANK[: _RANK.index(fail_on) + 1]
    return [finding for finding in found if finding.level in counted and finding.rule not in ignore]


def _report(events: Sequence[Any], found: Sequence[Finding], profile: str) -> str:
    lines = [f"the stream breaks the law ({profile} profile, {len(found)} finding{'s' * (len(found) != 1)}):"]
    for finding in found[:_SHOWN]:
        at = "at the end" if finding.event is None else f"event {finding.event}"
        pointer = f" {finding.pointer}" if finding.pointer else ""
        lines.append(f"{finding.level} {finding.rule}, {at}{pointer}: {finding.message}")
        places = {index for index in (finding.related, finding.event) if index is not None}
        lines.extend(f"    {index}: {_excerpt(events[index])}" for index in sorted(places))
        lines.append(f"    the text: {finding.law}")
        lines.append(f"    to mend:  {finding.hint}")
    if len(found) > _SHOWN:
        lines.append(f"... and {len(found) - _SHOWN} more")
    return "\n".join(lines)


def _excerpt(event: Any, width: int = 160) -> str:
    if isinstance(event, bytes):
        text = event.decode("utf-8", "backslashreplace")
    elif isinstance(event, str):
        text = event
    elif isinstance(event, Mapping):
        text = json.dumps(dict(event), default=repr)
    else:
        text = event.model_dump_json(by_alias=True, warnings=False)
    return text if len(text) <= width else text[:width] + "…"


_COLLECTED: Final = pytest.StashKey[Attributed]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the conformance suite, `pytest --pyargs byline.testing`."""
    add = parser.getgroup("byline", "byline's conformance suite").addoption
    add(
        "--byline-host",
        action="append",
        default=[],
        metavar="MODULE:HOST",
        help="a host to hold to the scenarios; without it, those of the installed plugins",
    )
    add("--byline-limit", type=float, default=30.0, metavar="SECONDS", help="what a scenario may take")
    add(
        "--byline-client",
        metavar="DIRECTORY",
        help="where node_modules with @ag-ui/client is, for the JavaScript judge",
    )
    add("--byline-report", metavar="FILE", help="write what every cell came to, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line(
        "markers",
        "attributed(profile='producer', fail_on='error', ignore=()): how the attributed fixture judges",
    )


@pytest.fixture
def attributed(request: pytest.FixtureRequest) -> Attributed:
    """Collect the streams of a test, which fails with the findings about them."""
    marker = request.node.get_closest_marker("attributed")
    collected = Attributed(*(marker.args if marker else ()), **(marker.kwargs if marker else {}))
    request.node.stash[_COLLECTED] = collected
    return collected


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Judge what a test has collected once it has passed, as part of the test."""
    __tracebackhide__ = True
    result = yield
    collected = item.stash.get(_COLLECTED, None)
    if collected is not None:
        collected.check()
    return result
