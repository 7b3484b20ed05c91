"""Hosts that misbehave: the suite says which scenario and what was seen, within its time limit, and goes on."""

import asyncio
import time

import pytest
from byline.events import (
    PROTOCOL_VERSION,
    RunFinishedEvent,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
)
from byline.testing import SCENARIOS, Declared, HostError, Truth, examine, find_hosts, takes_part
from byline.testing.host import Request

PARENT_ONLY = next(one for one in SCENARIOS if one.name == "parent-only")
ASKED = Request("main", ["user: go"], ["You are main."], [])


def right(run_input):
    return [
        RunStartedEvent(
            thread_id=run_input.thread_id, run_id=run_input.run_id, protocol_version=PROTOCOL_VERSION
        ),
        TextMessageStartEvent(message_id="m", role="assistant"),
        TextMessageContentEvent(message_id="m", delta="main answers you"),
        TextMessageEndEvent(message_id="m"),
        end(run_input),
    ]


def end(run_input):
    return RunFinishedEvent(
        thread_id=run_input.thread_id, run_id=run_input.run_id, outcome=RunFinishedSuccessOutcome()
    )


class Host:
    """A host that is right; `stream` makes it another."""

    name = "bad"
    forms = frozenset({"call"})
    fork = False
    results = True
    versions = {}

    def __init__(self, stream=None, declared=None, asked=ASKED):
        self.declared = declared or {}
        self.stream = stream or self.tell
        self.asked = asked

    async def tell(self, run_input):
        for event in right(run_input):
            yield event

    def build(self, scenario):
        return self

    def run(self, run_input):
        return self.stream(run_input)

    def requests(self):
        return [self.asked]

    def contract(self, agent):
        return None

    def delegation(self, name, arguments):
        return None

    def answer(self, content):
        return content

    def payload(self, value, interrupt):
        return value


def seen(host, limit=5.0):
    cell = examine(host, PARENT_ONLY, limit)
    return cell.status, cell.findings


def test_a_host_that_is_right():
    assert seen(Host()) == ("right", [])


def test_one_that_hangs():
    async def hang(run_input):
        for event in right(run_input)[:3]:
            yield event
        await asyncio.Event().wait()

    began = time.monotonic()
    assert seen(Host(hang), 0.2) == (
        "wrong",
        ["host: did not end within 0.2 s; in run 1, after 3 events, the last TEXT_MESSAGE_CONTENT"],
    )
    assert time.monotonic() - began < 3


def test_one_that_blocks():
    async def block(run_input):
        yield right(run_input)[0]
        time.sleep(3)

    began = time.monotonic()
    blocks = "host: blocks: it did not even stop when it was cancelled after 0.2 s"
    assert seen(Host(block), 0.2) == ("wrong", [f"{blocks}; in run 1, after 1 events, the last RUN_STARTED"])
    assert time.monotonic() - began < 2.5


def test_one_that_leaks_a_task():
    kept = []

    async def leak(run_input):
        kept.append(asyncio.create_task(asyncio.Event().wait(), name="a forgotten one"))
        for event in right(run_input):
            yield event

    assert seen(Host(leak)) == ("wrong", ["host, run 1: left a task behind: a forgotten one"])


def test_one_that_raises_while_it_runs():
    async def fail(run_input):
        yield right(run_input)[0]
        raise RuntimeError("no more")

    assert seen(Host(fail)) == (
        "wrong",
        ["host: raised RuntimeError: no more; in run 1, after 1 events, the last RUN_STARTED"],
    )


def test_one_that_exits():
    async def leave(run_input):
        raise SystemExit(3)
        yield

    assert seen(Host(leave)) == ("wrong", ["host: raised SystemExit: 3; in run 1, after 0 events"])


def test_one_that_cannot_be_built():
    class Unbuilt(Host):
        def build(self, scenario):
            raise NotImplementedError(scenario.name)

    assert seen(Unbuilt()) == ("wrong", ["host: raised NotImplementedError: parent-only; it was being built"])


def test_one_that_gives_no_stream():
    assert seen(Host(lambda run_input: right(run_input))) == (
        "wrong",
        ["host: run() gave list, which is no stream of events; in run 1, after 0 events"],
    )


def test_one_that_yields_no_events():
    async def nothing(run_input):
        for event in ():
            yield event

    assert seen(Host(nothing)) == ("wrong", ["host: yielded no events; in run 1, after 0 events"])


def test_one_that_yields_what_is_no_event():
    async def words(run_input):
        yield "main answers you"

    assert seen(Host(words)) == (
        "wrong",
        ["host: yielded str 'main answers you', which is no event; in run 1, after 0 events"],
    )


def test_one_that_goes_on_after_the_end():
    async def late(run_input):
        for event in [*right(run_input), end(run_input)]:
            yield event

    status, findings = seen(Host(late))
    assert status == "wrong"
    assert findings[0] == "host: yielded RUN_FINISHED after the end of run 1"


def test_one_whose_events_have_no_type():
    async def odd(run_input):
        yield {"kind": "hello"}

    status, findings = seen(Host(odd))
    assert status == "wrong"
    assert any(finding.startswith("the law, run 1: event 0: ") for finding in findings), findings


def test_words_of_another():
    async def other(run_input):
        for event in right(run_input):
            yield event.model_copy(update={"delta": "main answers me"}) if hasattr(event, "delta") else event

    assert seen(Host(other)) == (
        "wrong",
        ["truth, run 1: main:\n      - says 'main answers you'\n      + says 'main answers me'"],
    )


def test_a_model_that_received_too_much():
    asked = Request("main", ["user: before", "user: go"], ["You are main."], [])
    assert seen(Host(asked=asked)) == (
        "wrong",
        ["requests of main, run 1: request 1:\n      + user: before\n        user: go"],
    )


def test_a_model_with_the_prompt_of_another():
    status, findings = seen(Host(asked=Request("main", ["user: go"], ["You are alpha."], [])))
    assert status == "wrong"
    assert findings[0].startswith("prompt of main, run 1: expected")


def silent(run_input):
    async def tell():
        yield right(run_input)[0]
        yield end(run_input)

    return tell()


def test_a_declared_cell():
    declared = {"parent-only": Declared("it never speaks: https://example.org/issues/1")}
    assert seen(Host(silent, declared))[0] == "declared"


def test_a_declared_cell_with_another_truth():
    truth = Truth({"run": ["start", "end"]})
    declared = {"parent-only": Declared("it never speaks: example#1", truth=[truth])}
    assert seen(Host(silent, declared)) == ("declared", [])
    assert seen(Host(None, declared))[0] == "wrong"


def test_a_declared_cell_that_is_right():
    declared = {"parent-only": Declared("it never speaks: example#1")}
    assert seen(Host(None, declared)) == (
        "wrong",
        ["declared: the cell is right: take the declaration away"],
    )


@pytest.mark.parametrize("reason", ["", "it is like that", "a bug in the framework"])
def test_a_declaration_without_a_source(reason):
    status, findings = seen(Host(silent, {"parent-only": Declared(reason)}))
    assert status == "wrong"
    assert findings[-1] == f"declared: the reason names no issue, page or source line: {reason!r}"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nothing", "expected module:attribute"),
        ("no_such_module:Host", "cannot be found: No module named"),
        ("byline.testing:Nobody", "cannot be found"),
        ("byline.testing:Turn", "has no name, forms"),
    ],
)
def test_a_host_that_cannot_be_found(name, said):
    with pytest.raises((HostError, TypeError), match=said):
        find_hosts([name])


def test_every_scenario_has_a_host_that_could_take_part():
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)
    assert all(takes_part(Host(), scenario) == ("call" in scenario.forms) for scenario in SCENARIOS)
