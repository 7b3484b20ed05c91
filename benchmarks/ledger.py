"""How fast a `Ledger` takes events, and whether its rate holds as the conversation grows.

    python benchmarks/ledger.py

Each row is the best of three runs, in CPU time.  The last column is the rate relative to the shortest stream of its
kind: 1.00 means that the ten-thousandth message costs what the first one does.
"""

import json
import time
from collections.abc import Callable, Iterator

from byline.ledger import Ledger

SIZES = (8_000, 16_000, 32_000, 64_000)
SUBAGENTS = 8


def line(**event: object) -> bytes:
    return json.dumps(event).encode()


def triads(events: int, deltas: int) -> Iterator[bytes]:
    """Yield about `events` events: subagents that write in turns, with a tool call and its answer per message."""
    yield line(type="RUN_STARTED", threadId="t", runId="r", protocolVersion="1.0")
    tags = [f"subagent-{number}" for number in range(SUBAGENTS)]
    for tag in tags:
        yield line(type="SUBAGENT_STARTED", subagentRunId=tag, name="worker")
    for turn in range(events // (SUBAGENTS * (deltas + 6)) or 1):
        for tag in tags:
            yield line(type="TEXT_MESSAGE_START", messageId=f"{tag}-{turn}", subagentRunId=tag)
        for _ in range(deltas):
            for tag in tags:
                yield line(
                    type="TEXT_MESSAGE_CONTENT",
                    messageId=f"{tag}-{turn}",
                    delta="some words ",
                    subagentRunId=tag,
                )
        for tag in tags:
            message, call = f"{tag}-{turn}", f"call-{tag}-{turn}"
            yield line(type="TEXT_MESSAGE_END", messageId=message, subagentRunId=tag)
            yield line(
                type="TOOL_CALL_START",
                toolCallId=call,
                toolCallName="look",
                parentMessageId=message,
                subagentRunId=tag,
            )
            yield line(type="TOOL_CALL_ARGS", toolCallId=call, delta='{"q": 1}', subagentRunId=tag)
            yield line(type="TOOL_CALL_END", toolCallId=call, subagentRunId=tag)
            yield line(
                type="TOOL_CALL_RESULT",
                messageId=f"r-{call}",
                toolCallId=call,
                content="found",
                subagentRunId=tag,
            )


def chunks(events: int) -> Iterator[bytes]:
    """Yield about `events` chunks of subagents that write in turns."""
    yield line(type="RUN_STARTED", threadId="t", runId="r", protocolVersion="1.0")
    for turn in range(events // (SUBAGENTS * 8)):
        for _ in range(8):
            for number in range(SUBAGENTS):
                tag = f"subagent-{number}"
                yield line(
                    type="TEXT_MESSAGE_CHUNK",
                    messageId=f"{tag}-{turn}",
                    delta="some words ",
                    subagentRunId=tag,
                )


def patches(events: int) -> Iterator[bytes]:
    """Yield state changes, of a state that stays as large as it is."""
    yield line(type="RUN_STARTED", threadId="t", runId="r", protocolVersion="1.0")
    yield line(type="STATE_SNAPSHOT", snapshot={"done": 0, "plan": {f"step-{n}": "open" for n in range(100)}})
    for number in range(events):
        step = {"op": "add", "path": f"/plan/step-{number % 100}", "value": {"by": number}}
        yield line(type="STATE_DELTA", delta=[{"op": "replace", "path": "/done", "value": number}, step])


STREAMS: dict[str, Callable[[int], Iterator[bytes]]] = {
    "long messages": lambda events: triads(events, 48),
    "short messages": lambda events: triads(events, 1),
    "chunks": chunks,
    "state patches": patches,
}


def seconds(records: list[bytes]) -> float:
    best = float("inf")
    for _ in range(3):
        begin = time.process_time()
        ledger = Ledger.read(records)
        best = min(best, time.process_time() - begin)
        if ledger.refusals:
            raise SystemExit(f"the ledger refused an event of the benchmark: {ledger.refusals[0]}")
    return best


def main() -> None:
    for name, stream in STREAMS.items():
        first = 0.0
        for size in SIZES:
            records = list(stream(size))
            rate = len(records) / seconds(records)
            first = first or rate
            print(f"{name:16} {len(records):7} events  {rate:9,.0f} events/s  {rate / first:5.2f}")


if __name__ == "__main__":
    main()
