"""The forms in which `byline check` reports: text, JSON, SARIF 2.1.0 and JUnit XML."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote
from xml.etree import ElementTree as ET

import click

from byline.events import PROTOCOL_VERSION
from byline.rules import RULES

if TYPE_CHECKING:
    from byline.cli.check import FileReport
    from byline.validator import Finding

__all__ = ["FORMATS", "own_version"]

_COLOURS: Final = {"error": "red", "warning": "yellow", "info": "blue"}


def own_version() -> str:
    """Return the version of byline that is installed."""
    try:
        return version("byline")
    except PackageNotFoundError:  # run from a source tree
        return "0+source"


def _text(reports: Sequence["FileReport"], profile: str) -> str:
    out = [part for report in reports for part in _text_of(report)]
    counts = {level: sum(report.counts[level] for report in reports) for level in _COLOURS}
    events = sum(report.events for report in reports)
    unread = sum(report.error is not None for report in reports)
    said = ", ".join(f"{count} {level}{'s' * (count != 1)}" for level, count in counts.items() if count)
    tail = f"; {unread} input{'s' * (unread != 1)} could not be read" if unread else ""
    files = f"{len(reports)} file{'s' * (len(reports) != 1)}, {events} event{'s' * (events != 1)}"
    out.append(f"{files}, {profile} profile: {said or 'nothing found'}{tail}")
    return "\n".join(out) + "\n"


def _text_of(report: "FileReport") -> list[str]:
    out = []
    for finding in report.findings:
        line = report.line(finding.event)
        place = f"{_printable(report.file)}:{line if line is not None else 0}"
        level = click.style(finding.level, fg=_COLOURS[finding.level], bold=True)
        at = "end of stream" if finding.event is None else f"event {finding.event}"
        pointer = f", {_printable(_cut(finding.pointer))}" if finding.pointer else ""
        out.append(
            f"{place}: {level} {click.style(finding.rule, bold=True)}: {_printable(finding.message)} ({at}{pointer})"
        )
        out.extend(_shown_lines(report, finding))
        out.append(f"    the text: {finding.law}")
        out.append(f"    to mend:  {finding.hint}")
        out.append("")
    if report.truncated:
        more = sum(report.counts.values()) - len(report.findings)
        out.append(f"{_printable(report.file)}: and {more} more (--max-findings)\n")
    if report.error is not None:
        out.append(
            f"{_printable(report.file)}: {click.style('cannot be read', fg='red', bold=True)}: {_printable(str(report.error))}\n"
        )
    return out


def _shown_lines(report: "FileReport", finding: "Finding") -> list[str]:
    """The line at fault and the one it conflicts with, in the order of the stream."""
    events = {finding.event, finding.related} - {None}
    return [
        f"  {'>' if event == finding.event else ' '} {report.line(event):>6} | {report.excerpts[event]}"
        for event in sorted(event for event in events if event is not None)
        if event in report.excerpts
    ]


def _cut(text: str, limit: int = 120) -> str:
    return text if len(text) <= limit else text[:limit] + "…"


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def _json(reports: Sequence["FileReport"], profile: str) -> str:
    document = {
        "version": own_version(),
        "profile": profile,
        "protocol": PROTOCOL_VERSION,
        "summary": {
            "files": len(reports),
            "events": sum(report.events for report in reports),
            **{f"{level}s": sum(report.counts[level] for report in reports) for level in _COLOURS},
            "unreadable": sum(report.error is not None for report in reports),
        },
        "files": [
            {
                "file": report.file,
                "events": report.events,
                "error": None
                if report.error is None
                else {"line": report.error.line, "message": str(report.error)},
                "truncated": report.truncated,
                "findings": [_finding(report, finding) for finding in report.findings],
            }
            for report in reports
        ],
    }
    return json.dumps(document, indent=2) + "\n"


def _finding(report: "FileReport", finding: "Finding") -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "level": finding.level,
        "event": finding.event,
        "line": report.line(finding.event),
        "pointer": finding.pointer,
        "related": finding.related,
        "message": finding.message,
        "law": finding.law,
        "hint": finding.hint,
    }


def _sarif(reports: Sequence["FileReport"], profile: str) -> str:
    rows = [rule for rule in RULES.values() if rule.shown == "streams"]
    numbers = {rule.id: number for number, rule in enumerate(rows)}
    levels = {"error": "error", "warning": "warning", "info": "note"}
    driver = {
        "name": "byline check",
        "version": own_version(),
        "rules": [
            {
                "id": rule.id,
                "shortDescription": {"text": rule.law},
                "help": {"text": rule.hint},
                "defaultConfiguration": {"level": levels[rule.level or "info"]},
                "properties": {"section": rule.section, "side": rule.side},
            }
            for rule in rows
        ],
    }
    results = [
        {
            "ruleId": finding.rule,
            "ruleIndex": numbers[finding.rule],
            "level": levels[finding.level],
            "message": {"text": finding.message},
            "locations": [_location(report, finding.event)],
            **(
                {"relatedLocations": [_location(report, finding.related)]}
                if finding.related is not None
                else {}
            ),
            "properties": {"event": finding.event, "pointer": finding.pointer, "profile": profile},
        }
        for report in reports
        for finding in report.findings
    ]
    notes = [
        {"level": "error", "message": {"text": f"{report.file}: {report.error}"}}
        for report in reports
        if report.error
    ]
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": not notes, "toolExecutionNotifications": notes}],
        "results": results,
    }
    document = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return json.dumps(document, indent=2) + "\n"


def _location(report: "FileReport", event: int | None) -> dict[str, Any]:
    uri = "stdin" if report.file == "-" else quote(report.file.replace("\\", "/"), safe="/:?&=%")
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": uri},
            "region": {"startLine": report.line(event) or 1},
        }
    }


_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _junit(reports: Sequence["FileReport"], profile: str) -> str:
    root = ET.Element("testsuites", name="byline check")
    for report in reports:
        name = _xml(report.file)
        errors = [finding for finding in report.findings if finding.level == "error"]
        suite = ET.SubElement(
            root, "testsuite", name=name, tests=str(len(report.findings) or 1), failures=str(len(errors)),
            errors=str(int(report.error is not None)), skipped=str(len(report.findings) - len(errors)),
        )  # fmt: skip
        for finding in report.findings:
            at = "end" if finding.event is None else f"event {finding.event}"
            case = ET.SubElement(suite, "testcase", classname=name, name=f"{finding.rule} at {at}")
            kind = "failure" if finding.level == "error" else "skipped"
            said = ET.SubElement(case, kind, message=_xml(finding.message))
            if kind == "failure":
                said.set("type", finding.rule)
            said.text = _xml(
                f"{name}:{report.line(finding.event)} {finding.pointer}\n{finding.law}\n{finding.hint}"
            )
        if report.error is not None:
            case = ET.SubElement(suite, "testcase", classname=name, name="read")
            ET.SubElement(case, "error", message=_xml(str(report.error)))
        elif not report.findings:
            ET.SubElement(suite, "testcase", classname=name, name=f"{profile} profile")
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _xml(text: str) -> str:
    return _NOT_XML.sub("�", text)


FORMATS: Final[Mapping[str, Callable[[Sequence["FileReport"], str], str]]] = {
    "text": _text,
    "json": _json,
    "sarif": _sarif,
    "junit": _junit,
}
"""How the reports of all files become what is written to standard output."""
