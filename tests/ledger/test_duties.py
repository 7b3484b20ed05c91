"""What the chapter demands of a reader, one test for each rule that a stream alone cannot show."""

import pytest
from byline.ledger import Failure, Ledger
from byline.rules import RULES

START = {"type": "RUN_STARTED", "threadId": "t", "runId": "r1", "protocolVersion": "1.0"}
FINISH = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r1"}
DUTIES = {}


def duty(rule):
    def keep(test):
        DUTIES[rule] = test
        return test

    return keep


def fed(*events):
    ledger = Ledger()
    for event in (START, *events):
        ledger.feed(event)
    assert ledger.refusals == ()
    return ledger


def by(owner, type_, **members):
    return {"type": type_, **members, "subagentRunId": owner}


def begin(owner, message):
    return by(owner, "TEXT_MESSAGE_START", messageId=message)


def say(owner, message, delta):
    return by(owner, "TEXT_MESSAGE_CONTENT", messageId=message, delta=delta)


def end(owner, message):
    return by(owner, "TEXT_MESSAGE_END", messageId=message)


def announce(owner, **more):
    return by(owner, "SUBAGENT_STARTED", name=owner, **more)


def texts(ledger, owner):
    return [text.text for text in ledger.work(owner).texts]


@duty("accept-unannounced")
def attribution_groups_by_itself():
    ledger = fed(announce("a"), begin("b", "m"), say("b", "m", "hello"), end("b", "m"))
    assert (texts(ledger, "b"), ledger.invocation("b").status) == (["hello"], None)
    assert ledger.unannounced == ("b",)
    assert ledger.invocation("a").status == "running"


@duty("error-ends-invocation")
def the_run_goes_on_after_a_subagent_s_error():
    ledger = fed(
        announce("a"),
        announce("b"),
        by("a", "SUBAGENT_ERROR", message="no"),
        by("b", "SUBAGENT_FINISHED"),
        {"type": "STATE_SNAPSHOT", "snapshot": {"n": 1}},
        FINISH,
    )
    assert (ledger.invocation("a").status, ledger.invocation("a").failure) == ("failed", Failure("no"))
    assert ledger.invocation("b").status == "finished"
    assert (ledger.runs[0].status, ledger.state) == ("finished", {"n": 1})


@duty("no-contiguity")
def owners_interleave_as_they_like():
    ledger = fed(
        announce("a"),
        announce("b"),
        begin("a", "m1"),
        begin("b", "m2"),
        say("a", "m1", "one "),
        say("b", "m2", "eins "),
        {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m0", "delta": "un "},
        by("a", "TOOL_CALL_CHUNK", toolCallId="c", toolCallName="n", delta="{"),
        say("a", "m1", "two"),
        say("b", "m2", "zwei"),
        {"type": "TEXT_MESSAGE_CHUNK", "delta": "deux"},
    )
    assert [texts(ledger, owner) for owner in ("a", "b", None)] == [["one two"], ["eins zwei"], ["un deux"]]
    assert ledger.work("a").calls[0].arguments == "{"


@duty("own-items-only")
def one_s_end_closes_nothing_of_another():
    ledger = fed(
        announce("a"),
        announce("b"),
        begin("b", "m"),
        by("b", "STEP_STARTED", stepName="s"),
        by("a", "SUBAGENT_FINISHED"),
        say("b", "m", "still here"),
    )
    assert ledger.work("b").texts[0].end is None
    assert ledger.work("b").steps[0].end is None
    ledger.feed(by("b", "SUBAGENT_FINISHED"))
    ledger.feed(say("b", "m", ", and after my end"))  # an item may outlive its invocation within the run
    ledger.feed(end("b", "m"))
    assert ledger.refusals == ()
    assert texts(ledger, "b") == ["still here, and after my end"]


@duty("apply-state")
def a_subagent_s_state_event_updates_the_run_s():
    ledger = fed(
        by("a", "STATE_SNAPSHOT", snapshot={"n": 1}),
        {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/m", "value": 2}]},
        by("b", "STATE_DELTA", delta=[{"op": "replace", "path": "/n", "value": 3}]),
    )
    assert ledger.state == {"n": 3, "m": 2}


@duty("no-private-state")
def the_tag_of_a_state_event_only_says_who():
    ledger = fed(
        announce("a"),
        by("a", "STATE_SNAPSHOT", snapshot={"n": 1}),
        by("a", "SUBAGENT_ERROR", message="no"),
        by("never-seen", "STATE_DELTA", delta=[{"op": "replace", "path": "/n", "value": 2}]),
    )
    assert ledger.state == {"n": 2}
    assert [len(ledger.work(owner).state_changes) for owner in ("a", "never-seen", None)] == [1, 1, 0]


@duty("abandon-on-error")
def what_is_open_when_a_run_errors_is_abandoned():
    ledger = fed(
        announce("a"),
        announce("b", parentSubagentRunId="a"),
        announce("c"),
        by("c", "SUBAGENT_FINISHED"),
        {"type": "RUN_ERROR", "message": "no"},
    )
    assert [ledger.invocation(id_).status for id_ in "abc"] == ["abandoned", "abandoned", "finished"]
    ledger.feed({**START, "runId": "r2"})
    ledger.feed(announce("a"))
    assert ledger.refusals == ()
    assert ledger.invocation("a").status == "running"


@duty("interrupt-attribution")
def an_interrupt_is_whose_tag_it_has():
    suspended = {"type": "suspended", "interruptIds": ["i1"]}
    asked = [{"id": "i1", "reason": "x", "subagentRunId": "b"}, {"id": "i2", "reason": "y"}]
    ledger = fed(
        announce("a"),
        announce("b", parentSubagentRunId="a"),
        by("b", "SUBAGENT_FINISHED", outcome=suspended),
        by("a", "SUBAGENT_FINISHED", outcome={"type": "suspended"}),
        {**FINISH, "outcome": {"type": "interrupt", "interrupts": asked}},
    )
    assert ledger.pending_interrupts == {"b": (asked[0],), None: (asked[1],)}
    assert [ledger.invocation(id_).interrupts for id_ in "ab"] == [(), ("i1",)]
    assert [ledger.invocation(id_).status for id_ in "ab"] == ["suspended", "suspended"]


@pytest.mark.parametrize("rule", DUTIES)
def test_the_ledger_does_its_duty(rule):
    DUTIES[rule]()


def test_every_duty_has_its_test():
    assert set(DUTIES) == {rule.id for rule in RULES.values() if rule.shown == "ledger"}
