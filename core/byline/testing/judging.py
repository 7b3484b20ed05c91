"""Plays a scenario on a host, and judges what came: one cell of the matrix.

Whatever the host does, hang, leak, raise, yield nothing, go on after the end, becomes a finding, within the time limit.
"""

import asyncio
import re
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import ndiff
from typing import Any, Final, Literal, TypeAlias
from uuid import uuid4

from byline.events import BaseEvent, RunAgentInput
from byline.ledger import Ledger
from byline.validator import Validator

from .host import Declared, Host, Request, Stage
from .scenario import Prompt, Run, Scenario, Truth
from .telling import Telling, Told, Wire, wire

__all__ = ["LIMIT", "Cell", "examine", "takes_part"]

LIMIT: Final = 30.0
"""Seconds that a scenario may take."""

_GRACE: Final = 0.5
"""Seconds that a host has to let its tasks end after the last run."""

Status: TypeAlias = Literal["right", "declared", "wrong"]
_ENDS: Final = ("RUN_FINISHED", "RUN_ERROR")


@dataclass
class Cell:
    """What one scenario came to on one host."""

    host: str
    scenario: str
    status: Status = "right"
    findings: list[str] = field(default_factory=list)
    """What is wrong, each with the judge that says so: a line or a few."""
    reason: str = ""
    """Why the cell is declared."""
    stream: list[Wire] = field(default_factory=list)
    messages: list[dict[str, Any]] | None = None
    """The ledger's messages, for the JavaScript client to agree with; `None` of a play that was broken off."""
    others: list[str] = field(default_factory=list)
    """What `ag-ui-validate` says; it is reported and decides nothing."""
    seconds: float = 0.0

    def wrong(self, judge: str, *lines: str) -> None:
        """Keep a finding."""
        self.status = "wrong"
        self.findings.append(f"{judge}: " + "\n    ".join(lines))


class _BrokenError(Exception):
    """A host that did not keep to the protocol; what was seen is the message."""


def takes_part(host: Host, scenario: Scenario) -> bool:
    """Return whether `host` has a form in which `scenario` can be built."""
    return any(form in host.forms for form in scenario.forms)


def examine(host: Host, scenario: Scenario, limit: float = LIMIT) -> Cell:
    """Play and judge one cell, within `limit` seconds and a moment.  Never raises."""
    cell = Cell(host.name, scenario.name)
    declared = host.declared.get(scenario.name)
    if declared is not None:
        cell.reason = declared.reason
    began = time.monotonic()
    _in_a_thread(_Play(host, scenario, declared, cell), cell, limit)
    cell.seconds = time.monotonic() - began
    if declared is None:
        return cell
    if not declared.names_a_source:
        cell.wrong("declared", f"the reason names no issue, page or source line: {declared.reason!r}")
    elif declared.truth is None:
        _expect_wrong(cell)
    elif cell.status == "right":
        cell.status = "declared"
    return cell


def _expect_wrong(cell: Cell) -> None:
    if cell.status == "right":
        cell.wrong("declared", "the cell is right: take the declaration away")
    else:
        cell.status = "declared"  # what was seen stays in the findings


def _in_a_thread(play: "_Play", cell: Cell, limit: float) -> None:
    """Run a play in a thread of its own, so that also a host that blocks does not stop the suite."""

    def go() -> None:
        try:
            asyncio.run(asyncio.wait_for(play.play(), limit))
        except TimeoutError:
            cell.wrong("host", f"did not end within {limit:g} s; {play.where()}")
        except _BrokenError as fault:
            cell.wrong("host", f"{fault}; {play.where()}")
        except BaseException as fault:
            cell.wrong("host", f"raised {type(fault).__name__}: {fault}; {play.where()}")

    thread = threading.Thread(target=go, name=f"{cell.host} {cell.scenario}", daemon=True)
    thread.start()
    thread.join(limit + 2 * _GRACE)
    if thread.is_alive():
        cell.wrong(
            "host", f"blocks: it did not even stop when it was cancelled after {limit:g} s; {play.where()}"
        )


class _Play:
    """One scenario on one host."""

    def __init__(self, host: Host, scenario: Scenario, declared: Declared | None, cell: Cell) -> None:
        self.host: Final = host
        self.scenario: Final = scenario
        self.truths: Final = (declared and declared.truth) or [run.truth for run in scenario.runs]
        self.cell: Final = cell
        self.thread: Final = f"{scenario.name}-{uuid4().hex[:12]}"
        self.run = 0
        self.events: list[Wire] = []

    def where(self) -> str:
        """Say how far the play has come."""
        if not self.run:
            return "it was being built"
        last = f", the last {self.events[-1].get('type')}" if self.events else ""
        return f"in run {self.run}, after {len(self.events)} events{last}"

    async def play(self) -> None:
        """Build the scenario, play all of its runs, and judge them."""
        before = asyncio.all_tasks()
        stage = self.host.build(self.scenario)
        ledger, telling = Ledger(), Telling(self.host)
        validator = Validator(profile="producer")
        told: Told | None = None
        known = 0
        # A declaration may tell fewer runs: what comes after them is not there to be told.
        for run, truth in zip(self.scenario.runs, self.truths, strict=False):
            self.run, self.events = self.run + 1, []
            await self._read(stage, run, ledger, told)
            self.cell.stream += self.events
            self._judge_law(validator)
            told = self._tell(telling)
            self._judge_truth(truth, told, ledger)
            received = list(stage.requests())
            self._judge_requests(truth, received[known:])
            known = len(received)
        self._say("the law", [_finding(one) for one in validator.finish() if one.level != "info"])
        ledger.finish()
        self.cell.messages = ledger.messages
        self.cell.others = _ag_ui_validate(self.cell.stream)
        await self._judge_tasks(before)

    # -- playing -----------------------------------------------------------------------------------------------------

    async def _read(self, stage: Stage, run: Run, ledger: Ledger, told: Told | None) -> None:
        stream = stage.run(self._input(run, ledger, told))
        if not hasattr(stream, "__aiter__"):
            raise _BrokenError(f"run() gave {type(stream).__name__}, which is no stream of events")
        said, stopped, over = "", False, False
        async for event in stream:
            if not isinstance(event, BaseEvent | Mapping):
                raise _BrokenError(f"yielded {type(event).__name__} {event!r:.80}, which is no event")
            seen = wire(event)
            if over:
                self.cell.wrong("host", f"yielded {seen.get('type')} after the end of run {self.run}")
            over = over or seen.get("type") in _ENDS
            self.events.append(seen)
            ledger.feed(seen)
            said += str(seen.get("delta", ""))
            if run.stop_at is not None and run.stop_at in said and not stopped:
                stopped = True
                if not hasattr(stream, "cancel"):
                    raise _BrokenError(f"{type(stream).__name__} has no cancel(): the run cannot be stopped")
                await stream.cancel()
        if not self.events:
            raise _BrokenError("yielded no events")

    def _input(self, run: Run, ledger: Ledger, told: Told | None) -> RunAgentInput:
        messages = ledger.messages
        if run.text is not None:
            messages.append({"id": f"user-{self.run}", "role": "user", "content": run.text})
        resume = [
            {
                "interruptId": one["id"],
                "status": "resolved",
                "payload": self.host.payload(answer.value, one),
            }
            for answer in run.answers
            for party, one in (told.interrupts if told else ())
            if party == answer.party
        ]
        if len(resume) != len(run.answers):
            asked = ", ".join(party for party, _ in (told.interrupts if told else ())) or "nobody"
            raise _BrokenError(f"the answer to {run.answers[0].party} finds no question; asked has {asked}")
        given: dict[str, Any] = {
            "threadId": self.thread,
            "runId": f"run-{self.run}",
            "messages": messages,
            "tools": [],
            "context": [],
            "state": None if ledger.state in (None, {}) else ledger.state,
            "forwardedProps": {},
        }
        if resume:
            given["resume"] = resume
        return RunAgentInput.model_validate(given)

    def _tell(self, telling: Telling) -> Told:
        try:
            return telling.tell(self.events)
        except (KeyError, TypeError, ValueError, AttributeError) as fault:  # what the law has named already
            self._say("truth", [f"the stream cannot be told: {type(fault).__name__}: {fault}"])
            return Told()

    # -- judging -----------------------------------------------------------------------------------------------------

    def _say(self, judge: str, findings: Sequence[str]) -> None:
        if findings:
            self.cell.wrong(f"{judge}, run {self.run}", *findings[:12])

    def _judge_law(self, validator: Validator) -> None:
        findings = [one for event in self.events for one in validator.feed(event) if one.level != "info"]
        faults = [event["value"] for event in self.events if event.get("name") == "byline.fault"]
        self._say(
            "the law", [_finding(one) for one in findings] + [f"a fault of byline: {one}" for one in faults]
        )

    def _judge_truth(self, truth: Truth, told: Told, ledger: Ledger) -> None:
        lanes = {party: [self._end(line) for line in lane] for party, lane in truth.lanes.items()}
        seen_lanes = {party: [self._end(line) for line in lane] for party, lane in told.lanes.items()}
        self._say("truth", _difference(lanes, seen_lanes))
        places = {self._end(line): place for line, place in told.places.items()}
        pairs = [(self._end(first), self._end(second)) for first, second in truth.order]
        self._say("order", [f"{a} | must come before | {b}" for a, b in pairs if not _before(a, b, places)])
        if truth.usage is not None and told.usage != list(truth.usage):
            self._say("usage", [f"expected {list(truth.usage)}", f"seen {told.usage}"])
        if truth.state is not None:
            state = ledger.state if isinstance(ledger.state, Mapping) else {}
            seen = {key: state.get(key) for key in truth.state}
            if seen != dict(truth.state):
                self._say("state", [f"expected {dict(truth.state)}", f"seen {seen}"])
        self._judge_contracts(told)

    def _end(self, line: str) -> str:
        """Return a line without the result of an end, where the host's ends carry none."""
        return line if self.host.results else _RETURNS.sub(r"\1returns", line)

    def _judge_contracts(self, told: Told) -> None:
        for party, contract in told.contracts.items():
            agent = self.scenario.agents.get(party.rpartition("#")[0])
            expected = None if agent is None else self.host.contract(agent)
            # How much was inherited is judged by what the models received.
            seen = {k: v for k, v in contract.items() if not k.startswith("inherited")}
            if expected is not None and seen != expected:
                self._say("contract", [f"{party}: expected {expected}", f"seen {seen}"])

    def _judge_requests(self, truth: Truth, received: Sequence[Request]) -> None:
        expected = {**truth.requests, **(truth.forked if self.host.fork else {})}
        prompts = {**self.scenario.prompts, **(self.scenario.fork_prompts if self.host.fork else {})}
        for agent, conversations in expected.items():
            seen = sorted(list(one.lines) for one in received if one.agent == agent)
            wanted = sorted(list(lines) for lines in conversations)
            if seen != wanted:
                self._say(f"requests of {agent}", _difference(_numbered(wanted), _numbered(seen)))
        for one in received:
            prompt = prompts.get(one.agent)
            if (
                prompt is not None
                and prompt != Prompt(tuple(one.system), tuple(one.tools))
                and not _same(prompt, one)
            ):
                self._say(f"prompt of {one.agent}", [f"expected {prompt}", f"seen {one.system}, {one.tools}"])

    async def _judge_tasks(self, before: set[asyncio.Task[Any]]) -> None:
        left = [one for one in asyncio.all_tasks() - before if one is not asyncio.current_task()]
        if left:
            _, pending = await asyncio.wait(left, timeout=_GRACE)
            self._say("host", [f"left a task behind: {one.get_name()}" for one in pending])


def _same(prompt: Prompt, request: Request) -> bool:
    return list(prompt.system) == list(request.system) and sorted(prompt.tools) == sorted(request.tools)


def _finding(finding: Any) -> str:
    return f"event {finding.event}: {finding.level} {finding.rule}: {finding.message}"


def _numbered(conversations: Sequence[Sequence[str]]) -> dict[str, list[str]]:
    return {f"request {number}": list(lines) for number, lines in enumerate(conversations, 1)}


def _before(first: str, second: str, places: Mapping[str, tuple[int, int]]) -> bool:
    if first not in places or second not in places:
        return True  # what is missing was said already
    return places[first][1] < places[second][0]


_RETURNS: Final = re.compile(r"^((?:\S+ )?)returns .*$", re.DOTALL)


def _difference(expected: Mapping[str, list[str]], seen: Mapping[str, list[str]]) -> list[str]:
    """Return the lanes that differ: `-` was expected, `+` came."""
    lines: list[str] = []
    for party in [*expected, *(party for party in seen if party not in expected)]:
        wanted, came = expected.get(party, []), seen.get(party, [])
        if wanted != came:
            lines.append(f"{party}:")
            lines += [f"  {line:.300}" for line in ndiff(wanted, came) if not line.startswith("?")]
    return lines


def _ag_ui_validate(stream: Iterable[Wire]) -> list[str]:
    try:
        from ag_ui_validate import create_validator  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return []
    validator = create_validator()
    found = [one for event in stream for one in validator.feed(dict(event))]
    found += validator.finalize()
    return [f"{one.rule} {one.severity}: {one.message}" for one in found if one.severity == "error"]
