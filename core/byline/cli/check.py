"""`byline check`: judge streams from files, standard input or a live endpoint."""

import sys
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import click
from pydantic import ValidationError

from byline.cli import _reports
from byline.events import RunAgentInput
from byline.reading import MAX_RECORD, ReadError, records, source
from byline.rules import PROFILES, RULES, Profile
from byline.validator import MAX_OPEN, Finding, Validator

__all__ = ["FileReport", "check"]

_TOO_LONG: Final = f"it is longer than {MAX_RECORD >> 20} MB"
_RANK: Final = {"error": 0, "warning": 1, "info": 2}
_NO_INPUT: Final = b'{"threadId":"byline-check","runId":"byline-check","messages":[],"tools":[],"context":[],"state":{},"forwardedProps":{},"protocolVersion":"1.0"}'


@dataclass(slots=True)
class FileReport:
    """What was found in one input.

    `lines` has the 1-based line of each record; `findings` at most as many as were asked for, errors first in the
    choice and then in the order of the stream; `counts` counts all of them by level.
    """

    file: str
    lines: "array[int]" = field(default_factory=lambda: array("Q"))
    findings: list[Finding] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_RANK, 0))
    error: ReadError | None = None
    excerpts: dict[int, str] = field(default_factory=dict)

    @property
    def events(self) -> int:
        """How many records there were, unreadable ones included."""
        return len(self.lines)

    @property
    def truncated(self) -> bool:
        """Whether there were more findings than are listed."""
        return sum(self.counts.values()) > len(self.findings)

    def line(self, event: int | None) -> int | None:
        """Return the line of an event; of the end of the stream, the line of the last."""
        if not self.lines:
            return None
        return self.lines[-1] if event is None else self.lines[event]


class _Collected:
    """Findings up to a number: the first ones, and an error rather than anything less."""

    def __init__(self, report: FileReport, rules: frozenset[str], limit: int) -> None:
        self.report = report
        self.rules = rules
        self.limit = limit
        self._kept: dict[str, list[Finding]] = {level: [] for level in _RANK}

    def add(self, found: Sequence[Finding]) -> list[Finding]:
        """Count findings of the rules that were chosen; keep them while there is room, and return those."""
        kept = []
        for finding in found:
            if finding.rule in self.rules:
                self.report.counts[finding.level] += 1
                if len(self._kept[finding.level]) < self.limit:
                    self._kept[finding.level].append(finding)
                    kept.append(finding)
        return kept

    def done(self) -> None:
        """Hand over what is kept, in the order of the stream."""
        chosen = [finding for level in _RANK for finding in self._kept[level]][: self.limit]
        end = self.report.events
        chosen.sort(key=lambda one: (end if one.event is None else one.event, _RANK[one.level]))
        self.report.findings = chosen


def _rules(_: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> frozenset[str]:
    names = [name for one in value for name in one.split(",") if name]
    for name in names:
        if name not in RULES:
            near = get_close_matches(name, RULES, n=1)
            raise click.BadParameter(
                f"there is no rule {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""),
                param=parameter,
            )
    return frozenset(names)


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE... | - | URL")
@click.option(
    "--profile",
    type=click.Choice(PROFILES),
    default="producer",
    show_default=True,
    help="Whose duties count: everything the text demands of who writes a stream, or what a reader must reject.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json", "sarif", "junit"]),
    default="text",
    show_default=True,
)
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "none"]),
    default="error",
    show_default=True,
    help="Exit 1 for findings at this level or above.",
)
@click.option(
    "--select",
    multiple=True,
    callback=_rules,
    metavar="RULE",
    help="Only these rules (repeatable, or with commas).",
)
@click.option(
    "--ignore",
    multiple=True,
    callback=_rules,
    metavar="RULE",
    help="All but these rules; changes the exit code too.",
)
@click.option(
    "--max-findings",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    metavar="N",
    help="Findings to list per file.",
)
@click.option(
    "--max-open",
    type=click.IntRange(min=1),
    default=MAX_OPEN,
    show_default=True,
    metavar="N",
    help="Items of one kind that may be open at once.",
)
@click.option(
    "--input",
    "input_",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="The RunAgentInput to post to a URL.",
)
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="'NAME: VALUE'",
    help="A header for the request to a URL (repeatable).",
)
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), default=60.0, show_default=True, metavar="SECONDS", help="How long a URL may be silent.")  # fmt: skip
def check(
    files: tuple[str, ...],
    profile: Profile,
    format_: str,
    fail_on: str,
    select: frozenset[str],
    ignore: frozenset[str],
    max_findings: int,
    max_open: int,
    input_: str | None,
    headers: tuple[str, ...],
    timeout: float,
) -> None:
    """Judge streams of AG-UI events.

    Each FILE is JSON lines, a JSON array or a capture of server-sent events, plain or gzip; `-` is standard input.
    A URL is posted a RunAgentInput and its stream is judged as it arrives.

    Exit code: 2 when an input could not be read, 1 for findings at or above --fail-on, else 0.
    """
    rules = (select or frozenset(RULES)) - ignore
    request = {"body": _input(input_), "headers": dict(map(_header, headers)), "timeout": timeout}
    reports = []
    for name in files:
        report = FileReport(name)
        _judge(
            report, Validator(profile, max_open=max_open), _Collected(report, rules, max_findings), request
        )
        if format_ == "text":
            _excerpt(report)
        reports.append(report)
    click.echo(_reports.FORMATS[format_](reports, profile), nl=False)
    sys.exit(_exit_code(reports, fail_on))


def _judge(report: FileReport, judge: Validator, collected: _Collected, request: dict[str, Any]) -> None:
    recent = _Recent() if report.file == "-" or "://" in report.file else None
    try:
        with source(report.file, **request) as chunks, _progress(report.file) as advance:
            for record in records(chunks):
                report.lines.append(record.line)
                found = judge.skip(_TOO_LONG) if record.data is None else judge.feed(record.data)
                if recent is not None:
                    recent.add(record.data)
                if found:
                    kept = collected.add(found)
                    if recent is not None:
                        recent.show(kept, report.excerpts)
                advance()
    except ReadError as error:
        report.error = error
    if report.error is None or report.events:
        collected.add(judge.finish())
    collected.done()


class _Recent:
    """The beginnings of the last records of an input that cannot be read a second time."""

    _RECORDS: Final = 1000
    _BYTES: Final = 2000

    def __init__(self) -> None:
        self._count = 0
        self._kept: dict[int, bytes] = {}

    def add(self, data: bytes | None) -> None:
        """Keep the next record, and forget the oldest."""
        self._kept[self._count] = (data or b"")[: self._BYTES]
        self._kept.pop(self._count - self._RECORDS, None)
        self._count += 1

    def show(self, findings: Sequence[Finding], excerpts: dict[int, str]) -> None:
        """Put what `findings` point at, as far as it is here, into `excerpts`."""
        for finding in findings:
            for index in (finding.related, finding.event):
                if index is not None and self._kept.get(index):
                    excerpts[index] = _short(self._kept[index], finding.pointer)


def _excerpt(report: FileReport) -> None:
    """Read once more what the findings point at, to show it."""
    wanted = {
        index: one.pointer
        for one in report.findings
        for index in (one.related, one.event)
        if index is not None
    }
    if not wanted or report.excerpts:
        return
    try:
        with source(report.file) as chunks:
            last = max(wanted)
            for index, record in enumerate(records(chunks)):
                if index in wanted and record.data is not None:
                    report.excerpts[index] = _short(record.data, wanted[index])
                if index >= last:
                    break
    except ReadError:
        return  # said already


def _short(data: bytes, pointer: str, width: int = 160) -> str:
    """Return the part of a record that a pointer names, as one printable line."""
    text = data.decode("utf-8", "backslashreplace")
    name = pointer.rpartition("/")[2]
    at = text.find(f'"{name}"') if name else 0
    begin = 0 if len(text) <= width else max(0, min(at, len(text) - width) - 20)
    piece = text[begin : begin + width]
    printable = "".join(char if char.isprintable() else repr(char)[1:-1] for char in piece)
    return ("…" if begin else "") + printable + ("…" if begin + width < len(text) else "")


@contextmanager
def _progress(name: str) -> Iterator[Any]:
    """Show on a terminal how many events were read, and nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn

    counted = 0
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TextColumn("{task.completed:,.0f} events"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(name.replace("[", r"\["), total=None)

        def advance() -> None:
            nonlocal counted
            counted += 1
            if counted % 5000 == 0:
                progress.update(task, completed=counted)

        yield advance


def _input(path: str | None) -> bytes:
    if path is None:
        return _NO_INPUT
    try:
        body = Path(path).read_bytes()
        RunAgentInput.model_validate_json(body)
    except OSError as error:
        raise click.BadParameter(f"cannot read {path}: {error.strerror}", param_hint="--input") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "it"
        raise click.BadParameter(
            f"{path} is no RunAgentInput: {where}: {first['msg']}", param_hint="--input"
        ) from error
    return body


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise click.BadParameter(f"{text!r} is no header; write 'NAME: VALUE'", param_hint="--header")
    return name.strip(), value.strip()


def _exit_code(reports: Sequence[FileReport], fail_on: str) -> int:
    if any(report.error for report in reports):
        return 2
    counted = {"error": ("error",), "warning": ("error", "warning"), "none": ()}[fail_on]
    return int(any(report.counts[level] for report in reports for level in counted))
