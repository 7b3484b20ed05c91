"""How fast the validator is beside the others, and what it keeps of a long stream.

    python benchmarks/validator.py [EVENTS]

The same generated streams for all: eight subagents that write in turns, as triads (start, 48 deltas, end) and as
chunks.  Rates are events per CPU second, best of several runs in this process; node runs on its own and times itself
the same way.  byline checks schema, sequence and ownership from bytes; `ag-ui-validate` checks less, from text;
pydantic checks the schema leniently; node's `verifyEvents` checks the sequence of already parsed events.

Memory is what one million events with 333,320 messages leave behind, measured in a process of its own.
"""

import gc
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ag_ui.core import Event
from ag_ui_validate import create_validator
from byline.validator import Validator
from pydantic import TypeAdapter

SUBAGENTS = 8
DELTAS = 48
TIME = 1_700_000_000_000
NODE_CLIENT = "@ag-ui/client@1.0.0"

NODE = """
import { readFileSync } from "node:fs";
import { Subject } from "rxjs";
import { transformChunks, verifyEvents } from "@ag-ui/client";
const lines = readFileSync(process.argv[2], "utf8").split("\\n").filter(Boolean);
const chunks = process.argv[3] === "chunks";
let best = 0;
for (let round = 0; round < 5; round++) {
  const source = new Subject();
  let count = 0;
  const expanded = chunks ? transformChunks()(source) : source;
  verifyEvents()(expanded).subscribe({ next: () => count++, error: (e) => { console.error(String(e)); process.exit(1); } });
  const begin = process.cpuUsage();
  for (const line of lines) source.next(JSON.parse(line));
  const used = process.cpuUsage(begin);
  best = Math.max(best, lines.length / ((used.user + used.system) / 1e6));
}
console.log(best);
"""


def line(**event: object) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode()


def frame(body: Iterator[bytes]) -> Iterator[bytes]:
    tags = [f"sub-{number}" for number in range(SUBAGENTS)]
    yield line(type="RUN_STARTED", threadId="t", runId="r", protocolVersion="1.0", timestamp=TIME)
    for tag in tags:
        yield line(type="SUBAGENT_STARTED", subagentRunId=tag, name="worker", timestamp=TIME)
    yield from body
    for tag in tags:
        yield line(type="SUBAGENT_FINISHED", subagentRunId=tag, timestamp=TIME)
    yield line(type="RUN_FINISHED", threadId="t", runId="r", timestamp=TIME)


def in_turns(events: int, make: Callable[[int, str], dict[str, object]], per_message: int) -> Iterator[bytes]:
    """Yield the events of messages that the subagents write at the same time, one event each in turn."""
    for message in range(events // (SUBAGENTS * per_message)):
        for step in range(per_message):
            for number in range(SUBAGENTS):
                about = {"subagentRunId": f"sub-{number}", "timestamp": TIME + step}
                yield line(**make(step, f"msg-{number}-{message:06d}"), **about)


def triads(events: int, deltas: int = DELTAS) -> Iterator[bytes]:
    def make(step: int, id_: str) -> dict[str, object]:
        if step == 0:
            return {"type": "TEXT_MESSAGE_START", "messageId": id_, "role": "assistant"}
        if step == deltas + 1:
            return {"type": "TEXT_MESSAGE_END", "messageId": id_}
        return {"type": "TEXT_MESSAGE_CONTENT", "messageId": id_, "delta": "some words of text"}

    return frame(in_turns(events, make, deltas + 2))


def chunks(events: int) -> Iterator[bytes]:
    def make(step: int, id_: str) -> dict[str, object]:
        role = {"role": "assistant"} if step == 0 else {}
        return {"type": "TEXT_MESSAGE_CHUNK", "messageId": id_, **role, "delta": "some words of text"}

    return frame(in_turns(events, make, DELTAS + 1))


def rate(count: int, run: Callable[[], object], rounds: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        gc.collect()
        begin = time.process_time()
        run()
        best = min(best, time.process_time() - begin)
    return count / best


def of_byline(lines: list[bytes]) -> None:
    judge = Validator()
    feed = judge.feed
    for one in lines:
        if found := feed(one):
            raise SystemExit(f"the generated stream is not legal: {found[0]}")
    if found := judge.finish():
        raise SystemExit(f"the generated stream is not legal: {found[0]}")


def of_ag_ui_validate(texts: list[str]) -> None:
    judge = create_validator()
    feed = judge.feed
    for one in texts:
        feed(one)
    judge.finalize()


def of_pydantic(lines: list[bytes], adapter: TypeAdapter[object] = TypeAdapter(Event)) -> None:  # noqa: B008
    read = adapter.validate_json
    for one in lines:
        read(one)


def node_rate(lines: list[bytes], kind: str) -> float | str:
    """Return node's rate, or why there is none; the client is installed once, beside the temporary files."""
    if not shutil.which("node") or not shutil.which("npm"):
        return "node is not installed"
    home = Path(tempfile.gettempdir()) / "byline-bench-node"
    home.mkdir(exist_ok=True)
    if not (home / "node_modules" / "@ag-ui" / "client").exists():
        (home / "package.json").write_text('{"private": true, "type": "module"}')
        done = subprocess.run(
            ["npm", "install", "--silent", NODE_CLIENT], cwd=home, capture_output=True, text=True, check=False
        )
        if done.returncode:
            return f"npm could not install {NODE_CLIENT}: {done.stderr.strip()[-200:]}"
    (home / "verify.mjs").write_text(NODE)
    stream = home / f"{kind}.jsonl"
    stream.write_bytes(b"\n".join(lines))
    done = subprocess.run(
        ["node", "verify.mjs", str(stream), kind], cwd=home, capture_output=True, text=True, check=False
    )
    return float(done.stdout) if done.returncode == 0 else f"node failed: {done.stderr.strip()[-200:]}"


def memory() -> None:
    """Feed a million events and print what they leave behind, in MB over the start."""
    judge = Validator()
    stream = triads(1_000_000, deltas=1)
    for one, _ in zip(stream, range(1000), strict=False):
        judge.feed(one)
    gc.collect()
    before = resident()
    for one in stream:
        judge.feed(one)
    gc.collect()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(
        f"{judge.events:,} events, {333_320:,} messages: +{resident() - before:.1f} MB, peak +{peak - before:.1f} MB"
    )


def resident() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def main(events: int) -> None:
    for kind, generated in (("triads", triads(events)), ("chunks", chunks(events))):
        lines = list(generated)
        texts = [one.decode() for one in lines]
        print(f"{kind}: {len(lines):,} events, {sum(map(len, lines)) // len(lines)} bytes each")
        theirs = rate(len(lines), lambda texts=texts: of_ag_ui_validate(texts), 3)  # type: ignore[misc]
        ours = rate(len(lines), lambda lines=lines: of_byline(lines), 5)  # type: ignore[misc]
        rows: list[tuple[str, float | str]] = [
            ("byline, bytes, schema and sequence", ours),
            ("ag-ui-validate, feed(str)", theirs),
            (
                "pydantic, validate_json (lenient, no sequence)",
                rate(len(lines), lambda lines=lines: of_pydantic(lines), 3),
            ),  # type: ignore[misc]
            ("node, JSON.parse + verifyEvents (no schema)", node_rate(lines, kind)),
        ]
        for name, found in rows:
            shown = (
                found
                if isinstance(found, str)
                else f"{found:>11,.0f}/s   {found / theirs:5.2f} x ag-ui-validate"
            )
            print(f"  {name:<48} {shown}")
    subprocess.run([sys.executable, __file__, "memory"], check=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["memory"]:
        memory()
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else 100_000)
