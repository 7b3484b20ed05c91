"""`byline tree`: who did what in a recorded stream."""

import json
import shutil
import sys
from array import array
from collections.abc import Iterator, Sequence
from typing import Any, Final

import click

from byline.cli._reports import _printable as printable
from byline.cli._reports import own_version
from byline.ledger import Branch, Ledger, Run, Work
from byline.reading import ReadError, records, source

__all__ = ["tree"]

_COLOURS: Final = {
    "running": "blue",
    "finished": "green",
    "suspended": "yellow",
    "interrupted": "yellow",
    "failed": "red",
    "cancelled": "magenta",
    "abandoned": "red",
}
_COUNTED: Final = (
    ("texts", "text"),
    ("reasoning", "thought"),
    ("calls", "call"),
    ("activities", "activity"),
    ("steps", "step"),
    ("state_changes", "state change"),
    ("customs", "custom event"),
    ("raws", "raw event"),
)
_DEEPEST: Final = 12
"""How deep the tree is drawn as one; below that the depth is written out."""
_REFUSALS: Final = 10
"""How many refused records are named."""


@click.command()
@click.argument("file", metavar="FILE | -")
@click.option("--json", "as_json", is_flag=True, help="Everything there is to know, as one JSON document.")
@click.option(
    "--follow", is_flag=True, help="Draw a file that is still being written as it grows, until Ctrl+C."
)
def tree(file: str, *, as_json: bool, follow: bool) -> None:
    """Show who did what in a stream of AG-UI events.

    FILE is JSON lines, a JSON array or a capture of server-sent events, plain or gzip; `-` is standard input.

    Each invocation of a subagent is shown below the one that made it, with how it ended, how long it was at work, what
    it did, and its own words.  What a consumer must not accept is left out and named at the end.

    Exit code: 2 when the input could not be read, else 0.
    """
    if follow:
        _follow(file, as_json=as_json)
        return
    ledger, lines, error = _read(file)
    if as_json:
        click.echo(json.dumps(_document(file, ledger, lines, error)))
    else:
        for line in _shown(ledger, lines):
            click.echo(line)
    if error is not None:
        click.echo(f"{printable(file)}: {printable(str(error))}", err=True)
        sys.exit(2)


def _follow(file: str, *, as_json: bool) -> None:
    from byline.cli import _follow as following

    if as_json or file == "-":
        raise click.UsageError("--follow draws a file as it grows; it goes neither with --json nor with -")
    try:
        following.follow(file, _shown)
    except ReadError as error:
        click.echo(f"{printable(file)}: {printable(str(error))}", err=True)
        sys.exit(2)


def _read(file: str) -> tuple[Ledger, Sequence[int], ReadError | None]:
    """Return the ledger of a file, the line of each of its records, and what kept it from being read to its end."""
    ledger, lines = Ledger(), array("Q")
    error = None
    try:
        with source(file) as chunks:
            for record in records(chunks):
                lines.append(record.line)
                ledger.feed(record.data or b"")
    except ReadError as unreadable:
        error = unreadable
    ledger.finish()
    return ledger, lines, error


def _document(file: str, ledger: Ledger, lines: Sequence[int], error: ReadError | None) -> dict[str, Any]:
    document = ledger.to_json()
    for refusal in document["refusals"]:
        refusal["line"] = lines[refusal["event"]]
    return {
        "version": own_version(),
        "file": file,
        "events": len(lines),
        "error": None if error is None else {"line": error.line, "message": str(error)},
        **document,
    }


# -- as text ------------------------------------------------------------------------------------------------------


def _shown(ledger: Ledger, lines: Sequence[int]) -> Iterator[str]:
    width = max(shutil.get_terminal_size().columns, 40)
    for run in ledger.runs:
        yield _run(run)
    yield f"{click.style('the parent agent', bold=True)}{_counts(ledger.work(None))}"
    branches = ledger.tree()
    yield from _words(ledger.work(None), "│  " if branches else "   ", width)
    for branch, guide, below in zip(branches, *_guides(branches), strict=True):
        yield guide + _invocation(branch)
        failure = branch.invocation.failure
        if failure is not None:
            code = "" if failure.code is None else f" ({printable(failure.code)})"
            yield _cut(f"{below}why: {printable(failure.message)}{code}", width)
        yield from _words(branch.work, below, width)
    for owner, interrupts in ledger.pending_interrupts.items():
        for interrupt in interrupts:
            who = "the parent agent" if owner is None else printable(owner)
            yield _cut(f"waiting: {who}: {printable(interrupt.get('message', interrupt['reason']))}", width)
    yield from _refusals(ledger, lines, width)


def _run(run: Run) -> str:
    name = "a run without a start" if run.run_id is None else f"run {printable(run.run_id)}"
    spent = [
        f"{printable('/'.join(str(use[key]) for key in ('provider', 'model') if key in use) or 'model')} "
        f"{use.get('inputTokens', '?')} in, {use.get('outputTokens', '?')} out"
        for use in run.usage
    ]
    times = (run.start.timestamp, None if run.end is None else run.end.timestamp)
    took = "" if None in times else f", {_duration(times[1] - times[0])}"  # type: ignore[operator]
    why = "" if run.failure is None else f": {printable(run.failure.message)}"
    return "; ".join([f"{name} {_coloured(run.status)}{took}{why}", *spent])


def _invocation(branch: Branch) -> str:
    invocation = branch.invocation
    name = click.style(printable(_cut(invocation.name or "(no name)", 60)), bold=True)
    status = "never announced" if invocation.status is None else _coloured(invocation.status)
    took = "" if invocation.duration is None else f", {_duration(invocation.duration)}"
    again = f", {len(invocation.segments)} runs" if len(invocation.segments) > 1 else ""
    id_ = (
        ""
        if invocation.id == invocation.name
        else " " + click.style(printable(_cut(invocation.id, 40)), dim=True)
    )
    return f"{name}{id_} {status}{took}{again}{_counts(branch.work)}"


def _counts(work: Work) -> str:
    counts = [(len(getattr(work, member)), noun) for member, noun in _COUNTED]
    plural = {"activity": "activities"}
    said = [f"{n} {noun if n == 1 else plural.get(noun, noun + 's')}" for n, noun in counts if n]
    return f" - {', '.join(said)}" if said else ""


def _words(work: Work, below: str, width: int) -> Iterator[str]:
    """Yield what the owner said, on one line."""
    said = " / ".join(text.text for text in work.texts if text.role == "assistant" and text.text)
    if said:
        yield _cut(f"{below}“{printable(' '.join(said[: 4 * width].split()))}”", width)


def _refusals(ledger: Ledger, lines: Sequence[int], width: int) -> Iterator[str]:
    refusals = ledger.refusals
    if refusals:
        yield click.style(f"{len(refusals)} record{'s' * (len(refusals) != 1)} not accepted", fg="red")
    for refusal in refusals[:_REFUSALS]:
        place = f"line {lines[refusal.event]}, event {refusal.event}"
        yield _cut(f"  {place}: {refusal.rule}: {printable(refusal.message)}", width)
    if len(refusals) > _REFUSALS:
        yield f"  and {len(refusals) - _REFUSALS} more; `byline check --profile consumer` explains them"


def _guides(branches: Sequence[Branch]) -> tuple[list[str], list[str]]:
    """Return for each branch what is drawn before it, and before the lines below it."""
    last: list[bool] = []
    later: list[bool] = []  # by depth: whether a sibling is still to come, as seen from the end
    for branch in reversed(branches):
        del later[branch.depth + 1 :]
        later.extend([False] * (branch.depth + 1 - len(later)))
        last.append(not later[branch.depth])
        later[branch.depth] = True
    last.reverse()
    before, below, rails = [], [], [""]
    for at, branch in enumerate(branches):
        deep = f"… {branch.depth} deep: " if branch.depth >= _DEEPEST else ""
        del rails[min(branch.depth, _DEEPEST) + 1 :]
        before.append(rails[-1] + ("└─ " if last[at] else "├─ ") + deep)
        rails.append(rails[-1] + ("   " if last[at] else "│  "))
        inside = at + 1 < len(branches) and branches[at + 1].depth > branch.depth
        below.append(rails[-1] + ("│  " if inside else "   "))
    return before, below


def _coloured(status: str) -> str:
    return click.style(status, fg=_COLOURS[status])


def _duration(milliseconds: int) -> str:
    if abs(milliseconds) < 1000:
        return f"{milliseconds} ms"
    seconds = milliseconds / 1000
    return f"{seconds:.1f} s" if abs(seconds) < 120 else f"{seconds / 60:.1f} min"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
