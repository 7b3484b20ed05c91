"""What a host brings: how a framework builds a scenario, and how it says what byline says."""

import importlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from byline.errors import BylineError
from byline.events import BaseEvent, RunAgentInput
from byline.hooks import Plugins

from .scenario import Agent, Form, Scenario, Truth

__all__ = ["Declared", "Host", "HostError", "Request", "Stage", "find_hosts", "instructions"]

_SOURCE: Final = re.compile(r"https?://\S+|\b[\w/.-]+#\d+|\b[\w/.-]+\.(?:py|md)(?::\d+)?\b")


class HostError(BylineError):
    """A host that cannot be found, or one that is not what it has to be."""


@dataclass(frozen=True)
class Request:
    """What a model received: who asked, the lines of the conversation, the instructions, the tools.

    The lines are written as in `byline.testing.scenario.Requests`; framing that only the framework adds is left out.
    """

    agent: str
    lines: Sequence[str]
    system: Sequence[str]
    tools: Sequence[str]


@dataclass(frozen=True)
class Declared:
    """A cell that is not as the scenario says, and why.

    `reason` names the framework's issue or the line of its source.  `truth` has what comes instead, run by run, as far as it comes;
    without it the scenario cannot be told here.  `reproduce` shows the framework's behaviour without byline: it returns what it saw,
    and raises `AssertionError` when the framework does not behave like that any more.  A declaration without one fails the suite.
    """

    reason: str
    truth: Sequence[Truth] | None = None
    reproduce: Callable[[], Awaitable[object]] | None = None

    @property
    def names_a_source(self) -> bool:
        """Whether the reason names an issue, a page or a line of source."""
        return bool(_SOURCE.search(self.reason))


class Stage(Protocol):
    """One scenario, built and ready to be run, several times on one thread."""

    def run(self, run_input: RunAgentInput) -> AsyncIterator[BaseEvent | Mapping[str, Any]]:
        """Return the events of a run.  What it returns may have `cancel()`, a coroutine that stops the run."""

    def requests(self) -> Sequence[Request]:
        """Return what all models received so far, in order."""


class Host(Protocol):
    """A framework, in one of its ways to delegate."""

    @property
    def name(self) -> str:
        """The column of the matrix."""

    @property
    def forms(self) -> frozenset[Form]:
        """What it can do."""

    def contract(self, agent: Agent) -> Mapping[str, Any] | None:
        """Return what each announcement of `agent` must say in `metadata["byline"]`, but for ids.

        `None`: it is not judged.
        """

    @property
    def fork(self) -> bool:
        """Whether a delegation forks the caller's conversation."""

    @property
    def results(self) -> bool:
        """Whether an invocation's end carries its last words as the result: where it does not, they are not missed."""

    @property
    def declared(self) -> Mapping[str, Declared]:
        """The cells that are not as the scenario says, by the scenario's name."""

    @property
    def versions(self) -> Mapping[str, str]:
        """The versions of what it runs on."""

    def build(self, scenario: Scenario) -> Stage:
        """Build the scenario natively, with models that follow its script."""

    def delegation(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, str | None] | None:
        """Return the agent that a call delegates to, with the task (`None` for a hand-off); `None` for a tool's call."""

    def answer(self, content: Any) -> Any:
        """Return the words in a tool's or an invocation's result, where the framework wraps them."""

    def payload(self, value: Any, interrupt: Mapping[str, Any]) -> Any:
        """Return how this framework wants `value` as the answer to `interrupt`."""


_INSTRUCTION: Final = re.compile(r"You are ([\w-]+)\.(?=\s|$)")


def instructions(system: str) -> list[str]:
    """Return the scenario's instructions in a system prompt, in order."""
    return [hit.group() for hit in _INSTRUCTION.finditer(system)]


def find_hosts(names: Sequence[str] = (), plugins: Sequence[object] = ()) -> list[Host]:
    """Return the hosts called `module:attribute`, or with no names those of the installed plugins.

    Raises `HostError` for a name that leads nowhere.
    """
    if not names:
        return list(Plugins(plugins).collect("byline_hosts"))
    return [_host(name) for name in names]


def _host(name: str) -> Host:
    module, colon, path = name.partition(":")
    if not colon or not module or not path:
        raise HostError(f"host {name!r}: expected module:attribute, for example mypackage:Host")
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as fault:
        raise HostError(f"host {name!r} cannot be found: {fault}") from fault
    host = found() if isinstance(found, type) else found
    missing = [field_ for field_ in _members() if not hasattr(host, field_)]
    if missing:
        raise HostError(f"host {name!r} has no {', '.join(missing)}: see byline.testing.Host")
    return host  # type: ignore[no-any-return]


def _members() -> list[str]:
    return [name for name in vars(Host) if not name.startswith("_")]
