"""The tape and its sinks: slow ones, broken ones, half-written files, a killed process."""

import asyncio
import gzip
import json
import queue
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from byline import record
from byline._tape import Tape, outlet
from byline.errors import InputError, NoAdapterError
from byline.events import RunFinishedEvent, RunStartedEvent, TextMessageContentEvent
from recording_apps import asked, team
from recording_kit import events, told

STARTED = RunStartedEvent(thread_id="t", run_id="r")
FINISHED = RunFinishedEvent(thread_id="t", run_id="r")


def word(text: str) -> TextMessageContentEvent:
    return TextMessageContentEvent(message_id="m", delta=text)


class Slow:
    """A sink that takes nothing before it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.taken: list[Any] = []

    def __call__(self, event: Any) -> None:
        self.go.wait(30)
        self.taken.append(event)


def test_a_slow_sink_costs_the_app_its_patience_and_not_more():
    sink = Slow()
    tape = Tape(outlet(sink, redact=None, append=True), buffer=5, patience=0.3)
    began = time.monotonic()
    for number in range(200):
        tape.put("run", [STARTED if number == 0 else word(str(number))])
    tape.put("run", [FINISHED])
    waited = time.monotonic() - began
    assert 0.2 < waited < 5
    sink.go.set()
    tape.close()
    kinds = [event.type.value for event in sink.taken]
    assert kinds == ["RUN_STARTED", *["TEXT_MESSAGE_CONTENT"] * 4, "CUSTOM", "RUN_FINISHED"]
    gap = sink.taken[-2]
    assert (gap.name, gap.value) == ("byline.gap", {"events": 195})
    assert tape.lost == 195


def test_a_streaming_app_and_a_slow_sink_do_not_wait_for_each_other():
    sink = Slow()
    words = " ".join(["word"] * 400)
    began = time.monotonic()
    with record(sink, buffer=5, patience=0.5) as recording:
        stream = team(words=words).stream(*asked("t"), stream_mode="messages", subgraphs=True)
        said = list(stream)
        app = time.monotonic() - began
    sink.go.set()
    assert len(said) > 400
    assert app < 10
    assert recording.lost > 0


def test_a_sink_that_never_comes_back_does_not_keep_the_app(caplog: pytest.LogCaptureFixture):
    sink = Slow()
    tape = Tape(outlet(sink, redact=None, append=True), buffer=5, patience=0.2)
    tape.put("run", [STARTED])
    began = time.monotonic()
    tape.close()
    assert time.monotonic() - began < 5
    assert "the recording is incomplete: 1 events were lost" in caplog.text
    sink.go.set()


def test_a_sink_that_fails_is_left_alone(caplog: pytest.LogCaptureFixture):
    def broken(event: Any) -> None:
        raise OSError("disk full")

    with record(broken) as recording:
        out = team().invoke(*asked("t"))
    assert out["messages"][-1].content == "all done"
    assert recording.lost > 0
    assert "the sink failed and is not written to any more" in caplog.text


def test_queues_of_threads_and_of_the_loop():
    taken: queue.Queue[Any] = queue.Queue()
    with record(taken):
        team().invoke(*asked("t"))
    assert [taken.get().type.value, taken.queue[-1].type.value] == ["RUN_STARTED", "RUN_FINISHED"]

    async def go() -> list[str]:
        channel: asyncio.Queue[Any] = asyncio.Queue()
        async with record(channel):
            await team().ainvoke(*asked("t"))
        await asyncio.sleep(0)
        return [channel.get_nowait().type.value for _ in range(channel.qsize())]

    kinds = asyncio.run(go())
    assert (kinds[0], kinds[-1]) == ("RUN_STARTED", "RUN_FINISHED")


def test_an_asyncio_queue_needs_its_loop():
    with pytest.raises(InputError, match="outside of an event loop"), record(asyncio.Queue()):
        pass


@pytest.mark.parametrize(
    ("sink", "said"),
    [
        (7, "the sink is int, expected a path, a callable or a queue"),
        ("/nowhere/at/all/run.jsonl", "cannot record to '/nowhere/at/all/run.jsonl': No such file"),
    ],
)
def test_what_cannot_be_written_to_is_said_before_the_app_runs(sink: Any, said: str):
    with pytest.raises(InputError, match=said), record(sink):
        raise AssertionError("entered")


def test_a_coroutine_function_is_no_sink():
    async def sink(event: Any) -> None: ...

    with pytest.raises(InputError, match="coroutine function"), record(sink):
        pass


def test_a_target_that_nobody_can_watch():
    with (
        pytest.raises(NoAdapterError, match=r"no adapter can watch builtins\.int; a LangGraph app needs no"),
        record(print, 7),
    ):
        pass


def test_a_recording_is_entered_once_at_a_time():
    recording = record([].append)
    with recording, pytest.raises(RuntimeError, match="under way already"), recording:
        pass


def test_a_redaction_that_fails_writes_nothing_in_clear(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    path = tmp_path / "run.jsonl"

    def redact(event: dict[str, Any]) -> dict[str, Any] | None:
        if event["type"] == "TEXT_MESSAGE_CONTENT":
            raise ValueError(event)
        return None if event["type"].startswith("STEP_") else event

    with record(path, redact=redact):
        team().invoke(*asked("t"))
    kinds = {event["type"] for event in events(path)}
    assert kinds & {"TEXT_MESSAGE_CONTENT", "STEP_STARTED"} == set()
    assert "RUN_FINISHED" in kinds
    assert "redact failed; the TEXT_MESSAGE_CONTENT event is not recorded" in caplog.text


def test_a_second_recording_continues_the_file_and_a_new_one_begins_it(tmp_path: Path):
    for name in ("run.jsonl", "run.jsonl.gz"):
        path = tmp_path / name
        for thread in ("one", "two"):
            with record(path):
                team().invoke(*asked(thread))
        assert [line for line in told(events(path)) if "STARTED t" in line or "STARTED o" in line] == [
            "- RUN_STARTED one",
            "- RUN_STARTED two",
        ]
        with record(path, append=False):
            team().invoke(*asked("three"))
        assert [line for line in told(events(path)) if " RUN_STARTED" in line] == ["- RUN_STARTED three"]


def test_a_half_written_file_is_continued_on_a_new_line(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    path.write_text('{"type":"RUN_STARTED"}\n{"type":"TEXT_MES')
    with record(path):
        team().invoke(*asked("t"))
    lines = path.read_text().splitlines()
    assert lines[:2] == ['{"type":"RUN_STARTED"}', '{"type":"TEXT_MES']
    assert json.loads(lines[2])["type"] == "RUN_STARTED"


@pytest.mark.parametrize("cut", [12, 40])
def test_a_half_written_compressed_file_is_mended(tmp_path: Path, cut: int):
    path = tmp_path / "run.jsonl.gz"
    whole = gzip.compress(b'{"number":1}\n') + gzip.compress(
        b"".join(b'{"number":%d}\n' % n for n in range(2, 300))
    )
    path.write_bytes(whole[:-cut])
    with record(path):
        team().invoke(*asked("t"))
    with gzip.open(path, "rt") as file:
        lines = file.read().splitlines()
    assert lines[0] == '{"number":1}'
    assert json.loads(lines[-1])["type"] == "RUN_FINISHED"
    assert [line for line in lines if line.startswith('{"type":"RUN_STARTED"')] != []
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["run.jsonl", "run.jsonl.gz"])
def test_a_killed_process_leaves_a_file_that_can_be_read(tmp_path: Path, name: str):
    path = tmp_path / name
    script = textwrap.dedent(f"""
        import sys, time
        sys.path[:0] = {sys.path!r}
        from recording_apps import asked, team
        from byline import record
        with record({str(path)!r}):
            app = team()
            stream = app.stream(*asked("t"), stream_mode="updates")
            next(stream)
            time.sleep(0.5)
            print("now", flush=True)
            time.sleep(60)
    """)
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"now\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    data = path.read_bytes()
    if name.endswith(".gz"):
        import zlib

        data = zlib.decompressobj(wbits=31).decompress(data)
    assert told([json.loads(line) for line in data.splitlines()]) == [
        "- RUN_STARTED t",
        "- TOOL_CALL_START m1 delegate",
        '- TOOL_CALL_ARGS {"task": "go"}',
    ]


def test_an_interpreter_that_ends_inside_a_recording_closes_it(tmp_path: Path):
    path = tmp_path / "run.jsonl.gz"
    script = textwrap.dedent(f"""
        import sys
        sys.path[:0] = {sys.path!r}
        from recording_apps import asked, team
        from byline import record
        kept = record({str(path)!r})
        kept.__enter__()
        team().invoke(*asked("t"))
    """)
    subprocess.run([sys.executable, "-c", script], check=True)
    assert told(events(path))[-1] == "- RUN_FINISHED success"


def test_runs_that_wait_for_their_turn_cost_no_time():
    """A buffer full of events that cannot be written yet is waited for, not turned over."""
    taken: list[Any] = []
    tape = Tape(outlet(taken.append, redact=None, append=True), buffer=3, patience=0.1)
    tape.put("one", [STARTED])
    for _ in range(5):
        tape.put("two", [STARTED])
    time.sleep(0.2)
    began = time.process_time()
    time.sleep(0.6)
    assert time.process_time() - began < 0.3
    tape.put("one", [FINISHED])
    tape.put("two", [FINISHED])
    tape.close()
    assert [event.type.value for event in taken[:2]] == ["RUN_STARTED", "RUN_FINISHED"]
    assert taken[-1].type.value == "RUN_FINISHED"
