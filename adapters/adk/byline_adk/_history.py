"""A stored session, told again: the runs that a thread had, with the owners they had.

A session holds every event of its runs but those of an `AgentTool`'s own runner, whose agent is therefore not told of:
there is its call and the answer.  Nor does it say when an agent began and ended; what only callbacks tell is told at
the end of a run.
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ag_ui.core import UserMessage
from byline import signals as s
from byline.agent import RunEnd, Sink
from byline.events import Message, RunAgentInput

from ._identity import Book, Invocation
from ._voice import kept
from ._watch import Watch

__all__ = ["PastRun", "past_runs"]

_KINDS: Final = ("image", "audio", "video")


class _PastBook(Book):
    """A book that is written while a session is told: no callback says who is at work, the events have to."""

    def owner(self, event: Any) -> Invocation:
        """Return whose an event is that was stored."""
        return self.past_owner(event)


class _PastWatch(Watch):
    """A watch that sees events alone."""

    def _speaker(self, event: Any) -> Invocation | None:
        if event.error_code or event.get_function_responses():
            return None
        return self.book.owner(event)


class PastRun:
    """From one thing the user said to the next."""

    def __init__(
        self, thread_id: str, book: Book, events: Sequence[Any], state: dict[str, Any], *, first: bool
    ) -> None:
        self.run_id: str = events[0].id
        self.history: Final[Sequence[Message]] = book.history()
        self._book: Final = book
        self._said: Final = [event for event in events if _is_said(event)]
        self._events: Final = [event for event in events if not _is_said(event)]
        self._state: Final = state
        self._known: Final = None if first else dict(state)
        self._now = int(events[0].timestamp * 1000)
        messages = [message for event in self._said for message in _user_message(event)]
        self.said: Final = RunAgentInput(
            thread_id=thread_id,
            run_id=self.run_id,
            messages=messages,
            tools=[],
            context=[],
            state={},
            forwarded_props={},
        )

    def clock(self) -> int:
        """Return the time of the event that is told."""
        return self._now

    def tell(self, sink: Sink) -> RunEnd:
        """Report what happened, and return how it ended."""
        watch = _PastWatch(sink, self._book, state=self._state, known=self._known)
        for event in self._said:
            for response in event.get_function_responses():
                watch.answer(response.id, response.response)
        for event in self._events:
            self._now = int(event.timestamp * 1000)
            watch.event(event)
            self._book.count_final(event)
            self._state.update(kept(event.actions.state_delta))
        last = self._events[-1] if self._events else None
        if last is not None and last.error_code and not last.content:  # nobody went on after it
            watch.fail_what_failed()
            end: RunEnd = s.RunFailed(last.error_message or last.error_code, last.error_code)
        else:
            end = watch.end()
        self._book.turn_over()
        return end


def past_runs(thread_id: str, root: Any, session: Any) -> Iterator[PastRun]:
    """Yield the runs of a session, each to be told before the next is asked for."""
    book = _PastBook(root)
    later = {key for event in session.events for key in event.actions.state_delta}
    state = {key: value for key, value in kept(session.state).items() if key not in later}
    turns: list[list[Any]] = []
    for event in session.events:
        if not turns or (_is_said(event) and not _is_said(turns[-1][-1])):
            turns.append([])
        turns[-1].append(event)
    for number, turn in enumerate(turns):
        yield PastRun(thread_id, book, turn, state, first=number == 0)


def _is_said(event: Any) -> bool:
    """Return whether the user said it: what ADK says in the user's name has a place in the tree."""
    return event.author == "user" and not event.node_info.path


def _user_message(event: Any) -> Iterator[Message]:
    parts = [
        known for part in (event.content.parts if event.content else None) or () if (known := _part(part))
    ]
    if not parts:
        return
    texts = [str(part["text"]) for part in parts if part["type"] == "text"]
    content: Any = "".join(texts) if len(texts) == len(parts) else parts
    yield UserMessage.model_validate({"id": event.id, "role": "user", "content": content})


def _part(part: Any) -> Mapping[str, Any] | None:
    """Return a part of what the user said as the protocol has it; `None` for an answer to a call."""
    if part.text:
        return {"type": "text", "text": part.text}
    blob, file = part.inline_data, part.file_data
    if blob is None and file is None:
        return None
    mime = (blob or file).mime_type or "application/octet-stream"
    kind = mime.partition("/")[0]
    if blob is not None:
        data = base64.b64encode(blob.data or b"").decode("ascii")
        source = {"type": "data", "value": data, "mimeType": mime}
    else:
        source = {"type": "url", "value": file.file_uri or "", "mimeType": mime}
    return {"type": kind if kind in _KINDS else "document", "source": source}
