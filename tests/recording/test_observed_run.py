"""A run that is observed: its events are made in a moment, and say what was so when it was reported."""

import itertools
import threading
from typing import Any

from byline import signals as s
from byline._tape import Tape, outlet
from byline.hooks import Plugins
from byline.recording import Observation


def observation(sink: Any, *, buffer: int = 1000, patience: float = 0.2) -> tuple[Observation, Tape]:
    tape = Tape(outlet(sink, redact=None, append=True), buffer=buffer, patience=patience)
    ticks = itertools.count(100)
    return Observation(tape, Plugins(()), raw=False, clock=lambda: next(ticks)), tape


def told(taken: list[Any]) -> list[tuple[str, int]]:
    return [(event.type.value, event.timestamp) for event in taken]


def test_events_have_the_time_of_what_they_report():
    taken: list[Any] = []
    observed, tape = observation(taken.append)
    run = observed.begin("t", "r")
    with run.lock:  # the recorder's thread cannot get at it yet
        run.report(s.StepStarted(None, "model"))
        run.report(s.Text(None, "m", "hello"))
        run.report(s.ModelOver(None, "m"))
        run.report(s.StepFinished(None, "model"))
        run.end(s.RunFinished())
        assert taken == []
    observed.close()
    tape.close()
    assert told(taken) == [
        ("RUN_STARTED", 100),
        ("STEP_STARTED", 101),
        ("TEXT_MESSAGE_START", 102),
        ("TEXT_MESSAGE_CONTENT", 102),
        ("TEXT_MESSAGE_END", 103),
        ("STEP_FINISHED", 104),
        ("RUN_FINISHED", 105),
    ]


def test_what_the_app_changes_afterwards_is_recorded_as_it_was():
    taken: list[Any] = []
    observed, tape = observation(taken.append)
    run = observed.begin("t", "r")
    state, result, answer = {"a": [1]}, {"b": [1]}, [{"type": "text", "text": "yes"}]
    with run.lock:
        run.report(s.Opened("x", "alpha"))
        run.report(s.Call(None, "m", "c", "ask"))
        run.report(s.Result(None, "c", answer))
        run.report(s.Closed("x", result))
        run.report(s.StateIs(None, state))
        state["a"].append(2)
        result["b"].append(2)
        answer[0]["text"] = "no"
        run.end(s.RunFinished(result := {"c": 1}))
        result["c"] = 2
    observed.close()
    tape.close()
    assert next(e.result for e in taken if e.type == "SUBAGENT_FINISHED") == {"b": [1]}
    assert next(e.snapshot for e in taken if e.type == "STATE_SNAPSHOT") == {"a": [1]}
    assert next(e.content[0].text for e in taken if e.type == "TOOL_CALL_RESULT") == "yes"
    assert next(e.result for e in taken if e.type == "RUN_FINISHED") == {"c": 1}


def test_public_ids_are_those_of_all_that_was_reported():
    observed, tape = observation(lambda _event: None)
    run = observed.begin("t", "r")
    with run.lock:
        run.report(s.Opened("x", "alpha"))
        run.report(s.Call(None, "m", "call_0", "ask"))
        run.report(s.Call("x", "n", "call_0", "ask"))
        assert run.attributor.public_call("x", "call_0") == "call_0@x"
    observed.close()
    tape.close()


def test_what_waits_for_a_slow_sink_does_not_grow():
    go = threading.Event()
    observed, tape = observation(lambda _event: go.wait(30), buffer=5)
    run = observed.begin("t", "r")
    for number in range(3000):
        run.report(s.Text(None, "m", str(number)))
    assert tape.lost > 1900  # two thousand and more were made into events, and found no room
    go.set()
    observed.close()
    tape.close()


def test_what_has_its_own_time_is_gathered_until_something_has_not(monkeypatch):
    monkeypatch.setattr("byline._tape._MOMENT", 0.002)
    monkeypatch.setattr(
        "byline._tape._GATHER", 1_000_000
    )  # else a quarter of a second would be over some time
    taken: list[Any] = []
    observed, tape = observation(taken.append)
    run = observed.begin("t", "r")
    run.report(s.StepStarted(None, "model"))
    moments = threading.Event()
    moments.wait(0.1)
    assert taken == []
    observed.later(moments.set, soon=True)
    assert moments.wait(30)
    run.end(s.RunFinished())
    observed.close()
    tape.close()
    assert told(taken) == [
        ("RUN_STARTED", 100),
        ("STEP_STARTED", 101),
        ("STEP_FINISHED", 102),
        ("RUN_FINISHED", 102),
    ]


def test_nothing_is_recorded_after_the_recording():
    taken: list[Any] = []
    observed, tape = observation(taken.append)
    open_, silent, none = (observed.begin("t", name) for name in ("open", "silent", "none"))
    open_.report(s.StepStarted(None, "model"))
    none.forget()
    observed.close()
    for run in (open_, silent, none):
        run.report(s.Text(None, "m", "late"))
        run.end(s.RunFinished())
        run.settle()
    tape.close()
    assert [event.type.value for event in taken] == [
        "RUN_STARTED",
        "STEP_STARTED",
        "STEP_FINISHED",
        "RUN_FINISHED",
    ]
    assert taken[-1].outcome.type == "cancelled"
    assert taken[0].run_id == "open"
