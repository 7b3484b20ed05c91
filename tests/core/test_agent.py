"""attribute(): who is asked, what a run is, and what happens when something goes wrong."""

import asyncio
import gc
import json
import logging
import threading

import pytest
from byline import HookError, InputError, NoAdapterError, attribute, hookimpl
from byline import signals as s
from byline.attributor import CANCELLED
from byline.events import RunAgentInput, encode
from fake import INPUT, App, plugin, scripted, two_at_once


def agent(app, **options):
    return attribute(app, plugins=[plugin, *options.pop("plugins", ())], clock=None, **options)


async def collect(run):
    return [json.loads(encode(event)) async for event in run]


def kinds(events):
    return [event["type"] for event in events]


def test_a_target_that_nobody_takes_is_refused_with_who_was_asked_and_what_is_missing():
    class Missing:
        name, extra, requires = "missing", "missing", ("no_such_module.inner",)

        def takes(self, target):
            return False

        def hint(self, target):
            return None

    class Brings:
        @hookimpl
        def byline_adapters(self):
            return [Missing()]

    with pytest.raises(NoAdapterError) as error:
        attribute(App, plugins=[plugin, Brings()])
    message = str(error.value)
    assert message.startswith("no adapter takes builtins.type; call it first; asked: ")
    assert "fake" in message.split("; ")[2]
    assert message.split("; ")[3] == "not installed: missing (pip install 'byline[missing]')"


def test_an_input_that_is_none_is_refused_before_anything_runs():
    wrapped = agent(scripted())
    with pytest.raises(InputError, match=r"expected a RunAgentInput or its wire form, got str"):
        wrapped.run("hello")
    with pytest.raises(
        InputError, match=r"not a RunAgentInput: runId: Field required; messages: Field required"
    ):
        wrapped.run({"threadId": "t"})
    with pytest.raises(
        InputError, match=r"visibility 'invisible' is unknown: expected one of attributed, inline"
    ):
        agent(scripted(), visibility="invisible")


def test_a_run_gives_the_attributed_events_and_the_apps_own_result():
    async def main():
        run = agent(scripted(s.Text(None, "m", "hi"))).run(RunAgentInput.model_validate(INPUT))
        events = await collect(run)
        return events, run.result, run.error

    assert asyncio.run(main()) == (
        [
            {"type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0"},
            {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"},
            {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "hi"},
            {"type": "TEXT_MESSAGE_END", "messageId": "m"},
            {"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": {"type": "success"}},
        ],
        "the app's own",
        None,
    )


def test_a_run_is_read_once():
    async def main():
        run = agent(scripted()).run(INPUT)
        await collect(run)
        with pytest.raises(RuntimeError, match="a run is read once"):
            await collect(run)

    asyncio.run(main())


def test_a_fault_of_the_input_raises_before_the_first_event():
    async def main():
        with pytest.raises(InputError, match="not now"):
            await collect(agent(scripted(), refuse=InputError("not now")).run(INPUT))

    asyncio.run(main())


def test_the_apps_own_exception_ends_the_stream_and_stays_its_own():
    async def boom(sink):
        sink.report(s.Opened("a", "alpha"))
        sink.report(s.Text("a", "m", "half a sen"))
        raise LookupError("no such thing")

    async def main():
        run = agent(App(boom)).run(INPUT)
        return await collect(run), run.error

    events, error = asyncio.run(main())
    assert events[1:] == [
        {"type": "SUBAGENT_STARTED", "subagentRunId": "a", "name": "alpha"},
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant", "subagentRunId": "a"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "half a sen", "subagentRunId": "a"},
        {"type": "TEXT_MESSAGE_END", "messageId": "m", "subagentRunId": "a"},
        {
            "type": "SUBAGENT_ERROR",
            "subagentRunId": "a",
            "message": "cut off because the run failed",
            "code": CANCELLED,
        },
        {"type": "RUN_ERROR", "message": "no such thing", "code": "LookupError"},
    ]
    assert repr(error) == "LookupError('no such thing')"


def test_an_exit_inside_the_app_is_reported_and_handed_on():
    async def leave(sink):
        raise SystemExit(3)

    seen = []

    async def main():
        async for event in agent(App(leave)).run(INPUT):
            seen.append(event.type.value)

    with pytest.raises(SystemExit):
        asyncio.run(main())
    assert seen == ["RUN_STARTED", "RUN_ERROR"]


def endless(stopped):
    async def work(sink):
        sink.report(s.Opened("a", "alpha"))
        try:
            for number in range(10_000):
                sink.report(s.Text("a", "m", f"{number} "))
                await sink.drained()
        finally:
            stopped.append(True)

    return App(work)


def test_a_run_that_is_cancelled_ends_with_the_outcome_cancelled():
    async def main():
        stopped = []
        run = agent(endless(stopped)).run(INPUT)
        events = []
        async for event in run:
            events.append(json.loads(encode(event)))
            if len(events) == 5:
                await run.cancel("enough")
        return events, stopped

    events, stopped = asyncio.run(main())
    assert events[-3:] == [
        {"type": "TEXT_MESSAGE_END", "messageId": "m", "subagentRunId": "a"},
        {"type": "SUBAGENT_ERROR", "subagentRunId": "a", "message": "enough", "code": "cancelled"},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": {"type": "cancelled"}},
    ]
    assert stopped == [True]


async def leave_by_break(run):
    async for _ in run:
        break
    gc.collect()
    for _ in range(500):  # the loop's finaliser stops the run, in its own time
        await asyncio.sleep(0.01)
        if len(asyncio.all_tasks()) == 1:
            break


async def leave_by_aclose(run):
    await anext(run)
    await anext(run)
    await run.aclose()


async def leave_by_cancelled_task(run):
    task = asyncio.create_task(collect(run))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("leave", [leave_by_break, leave_by_aclose, leave_by_cancelled_task])
def test_when_the_consumer_goes_the_app_stops_and_the_observers_see_how_it_ended(leave):
    async def main():
        stopped, seen = [], []
        await leave(agent(endless(stopped), observers=[seen.append]).run(INPUT))
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        return stopped, tasks, kinds([json.loads(encode(event)) for event in seen])[-3:]

    assert asyncio.run(main()) == ([True], [], ["TEXT_MESSAGE_END", "SUBAGENT_ERROR", "RUN_FINISHED"])


def test_a_run_that_is_closed_before_the_app_began_still_ends_for_the_observers():
    async def main():
        stopped, seen = [], []
        run = agent(endless(stopped), observers=[seen.append]).run(INPUT)
        await anext(run)
        await run.aclose()
        return stopped, [json.loads(encode(event)) for event in seen]

    assert asyncio.run(main()) == (
        [],
        [
            {"type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0"},
            {"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": {"type": "cancelled"}},
        ],
    )


def test_lock_step_the_app_goes_on_only_when_the_consumer_asks_for_more():
    async def main():
        order = []

        async def work(sink):
            for number in range(3):
                sink.report(s.Custom(None, "n", number))
                await sink.drained()
                order.append(f"went on after {number}")

        async for event in agent(App(work)).run(INPUT):
            if event.type.value == "CUSTOM":
                await asyncio.sleep(0.01)
                order.append(f"saw {event.value}")
        return order

    assert asyncio.run(main()) == [
        "saw 0",
        "went on after 0",
        "saw 1",
        "went on after 1",
        "saw 2",
        "went on after 2",
    ]


def test_words_of_one_burst_are_read_when_it_is_over_without_another_word():
    async def main():
        seen = []

        async def work(sink):
            for word in ("one ", "two ", "three "):
                sink.report(s.Text("a", "m", word))
            while "three " not in seen:  # until the consumer has it, nothing more is reported
                await asyncio.sleep(0.001)

        async with asyncio.timeout(5):
            async for event in agent(App(work)).run(INPUT):
                seen.append(getattr(event, "delta", event.type.value))
        return seen

    assert asyncio.run(main()) == [
        "RUN_STARTED",
        "SUBAGENT_STARTED",
        "TEXT_MESSAGE_START",
        "one ",
        "two ",
        "three ",
        "TEXT_MESSAGE_END",
        "SUBAGENT_ERROR",
        "RUN_FINISHED",
    ]


def test_words_that_wait_come_before_whatever_is_reported_next():
    async def main():
        async def work(sink):
            for number in range(3):
                sink.report(s.Text("a", "m", f"{number} "))
                sink.report(s.Reasoning("b", "n", f"{number} "))
            sink.report(s.Call("a", "m", "c", "look"))
            sink.report(s.Text(None, "o", "then "))
            sink.report(s.Text(None, "o", "this"))
            assert sink.attributor.public_call("a", "c") == "c"
            await sink.drained()
            sink.report(s.Text(None, "o", "."))

        return await collect(agent(App(work)).run(INPUT))

    events = [
        (event.get("subagentRunId"), event["type"], event.get("delta")) for event in asyncio.run(main())
    ]
    assert events == [
        (None, "RUN_STARTED", None),
        ("a", "SUBAGENT_STARTED", None),
        ("a", "TEXT_MESSAGE_START", None),
        ("a", "TEXT_MESSAGE_CONTENT", "0 "),
        ("b", "SUBAGENT_STARTED", None),
        ("b", "REASONING_START", None),
        ("b", "REASONING_MESSAGE_START", None),
        ("b", "REASONING_MESSAGE_CONTENT", "0 "),
        ("a", "TEXT_MESSAGE_CONTENT", "1 "),
        ("b", "REASONING_MESSAGE_CONTENT", "1 "),
        ("a", "TEXT_MESSAGE_CONTENT", "2 "),
        ("b", "REASONING_MESSAGE_CONTENT", "2 "),
        ("a", "TEXT_MESSAGE_END", None),
        ("a", "TOOL_CALL_START", None),
        (None, "TEXT_MESSAGE_START", None),
        (None, "TEXT_MESSAGE_CONTENT", "then "),
        (None, "TEXT_MESSAGE_CONTENT", "this"),
        (None, "TEXT_MESSAGE_CONTENT", "."),
        ("a", "TOOL_CALL_END", None),
        ("a", "SUBAGENT_ERROR", None),
        ("b", "REASONING_MESSAGE_END", None),
        ("b", "REASONING_END", None),
        ("b", "SUBAGENT_ERROR", None),
        (None, "TEXT_MESSAGE_END", None),
        (None, "RUN_FINISHED", None),
    ]


def test_whoever_says_words_that_wait_may_go_on_until_anything_else_is_reported(monkeypatch):
    monkeypatch.setattr("byline.channel.BURST", 2.0)  # else a slow machine could look in between

    async def main():
        heard = []

        async def work(sink):
            sink.report(s.Text("a", "m", "said "))
            heard.append(sink.hears)  # the consumer looks at once: nothing waits
            await sink.drained()
            sink.report(s.Text("a", "m", "one "))
            words = sink.hears
            with sink.lock:
                words += ["two ", "", "\ud83d", "three "]
            sink.report(s.Text("a", "m", "four "))
            heard.append(sink.hears is words)
            sink.report(s.Text("b", "m", "five "))
            heard.append(sink.hears is words)
            sink.report(s.Reasoning("b", "n", "six "))
            sink.hears.append("seven ")
            sink.report(s.ModelOver("a", "m"))
            heard.append(sink.hears)

        events = await collect(agent(App(work)).run(INPUT))
        return heard, [(event.get("subagentRunId"), event["delta"]) for event in events if "delta" in event]

    assert asyncio.run(main()) == (
        [None, True, False, None],
        [
            ("a", "said "),
            ("a", "one "),
            ("a", "two "),
            ("a", "\ufffd"),
            ("a", "three "),
            ("a", "four "),
            ("b", "five "),
            ("b", "six "),
            ("b", "seven "),
        ],
    )


def test_words_that_wait_when_the_consumer_goes_reach_the_observers():
    watched, reported = [], []

    async def main():
        async def work(sink):
            await asyncio.sleep(0)
            for word in ("one ", "two ", "three "):
                sink.report(s.Text(None, "m", word))
            reported.append(True)
            await asyncio.sleep(60)

        def watch(event):
            watched.append(getattr(event, "delta", event.type.value))

        run = agent(App(work), observers=[watch]).run(INPUT)
        await anext(run)
        reading = asyncio.ensure_future(anext(run))
        while not reported:
            await asyncio.sleep(0)
        reading.cancel()
        await asyncio.wait([reading])
        await run.aclose()

    asyncio.run(main())
    assert watched == [
        "RUN_STARTED",
        "TEXT_MESSAGE_START",
        "one ",
        "two ",
        "three ",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]


def test_signals_from_many_threads_keep_the_order_of_each():
    async def main():
        async def work(sink):
            def talk(name):
                for number in range(200):
                    sink.report(s.Text(name, f"m-{name}", f"{number} "))

            threads = [threading.Thread(target=talk, args=(name,)) for name in "abcd"]
            for thread in threads:
                thread.start()
            while any(thread.is_alive() for thread in threads):
                await asyncio.sleep(0.001)

        return await collect(agent(App(work)).run(INPUT))

    heard = {}
    for event in asyncio.run(main()):
        if event["type"] == "TEXT_MESSAGE_CONTENT":
            heard[event["subagentRunId"]] = heard.get(event["subagentRunId"], "") + event["delta"]
    whole = "".join(f"{number} " for number in range(200))
    assert heard == {"a": whole, "b": whole, "c": whole, "d": whole}


def test_twenty_runs_of_one_agent_never_mix():
    async def work(sink):
        for number in range(20):
            sink.report(s.Text("a", "m", f"{sink.attributor.run_id}-{number} "))
            await asyncio.sleep(0)

    async def main():
        wrapped = agent(App(work))
        runs = [wrapped.run({**INPUT, "runId": f"r{n}"}) for n in range(20)]
        return await asyncio.gather(*(collect(run) for run in runs))

    for number, events in enumerate(asyncio.run(main())):
        said = "".join(event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT")
        assert said == "".join(f"r{number}-{n} " for n in range(20))
        assert events[0]["runId"] == events[-1]["runId"] == f"r{number}"


def test_a_fault_of_ours_is_logged_and_shown_once_and_changes_nothing_else(caplog, monkeypatch):
    from byline.attributor import Attributor

    def broken(self, signal):
        raise ZeroDivisionError("ours")

    monkeypatch.setitem(Attributor._HANDLERS, s.StateIs, broken)
    with caplog.at_level(logging.ERROR, "byline"):
        app = scripted(s.StateIs(None, 1), s.Text(None, "m", "hi"), s.StateIs(None, 2))
        events = asyncio.run(collect(agent(app).run(INPUT)))
    assert events[1:] == [
        {
            "type": "CUSTOM",
            "name": "byline.fault",
            "value": {"where": "signal StateIs", "error": "ZeroDivisionError: ours"},
        },
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "hi"},
        {"type": "TEXT_MESSAGE_END", "messageId": "m"},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": {"type": "success"}},
    ]
    assert [record.message for record in caplog.records] == [
        "byline failed in signal StateIs; the app is not affected"
    ] * 2


def test_a_fault_that_cannot_even_be_shown_does_not_reach_the_app(caplog, monkeypatch):
    from byline.attributor import Attributor

    def broken(self, signal):
        raise ZeroDivisionError("ours")

    for kind in (s.Text, s.Custom):
        monkeypatch.setitem(Attributor._HANDLERS, kind, broken)
    events = asyncio.run(collect(agent(scripted(s.Text(None, "m", "hi"))).run(INPUT)))
    assert kinds(events) == ["RUN_STARTED", "RUN_FINISHED"]


def test_a_faulty_observer_is_not_called_again_and_the_others_see_everything(caplog):
    seen, calls = [], []

    def faulty(event):
        calls.append(event)
        raise ValueError

    app = scripted(*two_at_once())
    with caplog.at_level(logging.WARNING, "byline"):
        events = asyncio.run(collect(agent(app, observers=[faulty, seen.append]).run(INPUT)))
    assert len(calls) == 1
    assert [json.loads(encode(event)) for event in seen] == events


def test_watchers_see_runs_start_and_end_and_their_faults_change_nothing(caplog):
    order = []

    class Watcher:
        @hookimpl
        def byline_run_started(self, run):
            order.append(("started", run.run_id))
            raise ValueError("mine")

        @hookimpl
        def byline_run_finished(self, run, ledger):
            order.append(("finished", run.result))
            order.extend((one.name, one.status) for one in ledger.invocations)

    app = scripted(*two_at_once())
    events = asyncio.run(collect(agent(app, plugins=[Watcher()], visibility="hidden").run(INPUT)))
    assert kinds(events) == [
        "RUN_STARTED",
        "TOOL_CALL_START",
        "TOOL_CALL_END",
        "TOOL_CALL_RESULT",
        "RUN_FINISHED",
    ]
    assert order == [
        ("started", "r"),
        ("finished", "the app's own"),
        ("alpha", "finished"),
        ("beta", "finished"),
        ("leaf", "finished"),
    ]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "def byline_visibility(self, invocation, mood): ...",
            "byline_visibility(invocation, mood); the hook gives (invocation)",
        ),
        ("def byline_unheard_of(self, run): ...", "byline_unheard_of(run); the hooks are byline_adapters, "),
    ],
)
def test_a_hook_that_cannot_be_called_is_refused_with_its_own_signature(source, message):
    space = {}
    exec(f"class Wrong:\n    {source}", space)
    wrong = space["Wrong"]
    name = next(name for name in vars(wrong) if name.startswith("byline_"))
    setattr(wrong, name, hookimpl(vars(wrong)[name]))
    with pytest.raises(HookError) as error:
        agent(scripted(), plugins=[wrong()])
    assert str(error.value).startswith("Wrong cannot be used as a plugin: ")
    assert message in str(error.value)


def test_a_hook_may_take_fewer_arguments_than_it_is_given():
    class Brief:
        @hookimpl
        def byline_run_started(self):
            order.append("started")

    order = []
    asyncio.run(collect(agent(scripted(), plugins=[Brief()]).run(INPUT)))
    assert order == ["started"]
