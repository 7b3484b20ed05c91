"""A thread that was not kept, from what the framework itself has stored of it: its runs, told again."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from pydantic import TypeAdapter

from .agent import RunEnd, Sink, Unread
from .attributor import Attributor
from .events import BaseEvent, Message, RunAgentInput, RunStartedEvent, SubagentStartedEvent
from .history import History
from .hooks import Plugins, Visibility
from .ledger import Ledger
from .visibility import Lens

__all__ = ["PastRun", "retold"]

_MESSAGES = TypeAdapter(list[Message])


class PastRun(Protocol):
    """A run of which the framework has stored what happened."""

    run_id: str
    said: RunAgentInput
    """With what the user said in it."""
    history: Sequence[Message]
    """What the client had before it: the ids that are taken, the calls that wait."""

    def clock(self) -> int:
        """Return when what is told just now happened, in milliseconds since the epoch."""

    def tell(self, sink: Sink) -> RunEnd:
        """Report what happened, and return how it ended."""


def retold(
    thread_id: str,
    runs: Iterable[PastRun],
    user: str | None,
    plugins: Plugins,
    how: Callable[[SubagentStartedEvent], Visibility],
) -> History:
    """Return the history of a thread: what a client would have seen of its runs, as a ledger keeps it.

    Each run is told before the next is asked for.
    """
    ledger = Ledger()
    for run in runs:
        shown: list[BaseEvent] = []
        attributor = Attributor(thread_id, run.run_id, history=run.history, clock=run.clock)
        sink = Sink(attributor, Unread(), Lens(how), (), plugins, shown.append)
        sink.start()
        sink.report(run.tell(sink))
        for event in shown:
            told = event
            if isinstance(event, RunStartedEvent):
                told = event.model_copy(update={"input": run.said})
            ledger.feed(told)
    ledger.finish()
    return History(thread_id, _MESSAGES.validate_python(ledger.messages), ledger, user)
