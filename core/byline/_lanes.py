"""What the attributor keeps: a lane per invocation, a message per model run, the calls in it, and their public ids."""

from typing import Final

from .plain import clean_text

__all__ = ["REASONING", "TEXT", "Ids", "Lane", "Message", "ToolCall", "native_ids"]

TEXT: Final = "text"
REASONING: Final = "reasoning"


def native_ids(public: str) -> tuple[str, ...]:
    """Return the framework's ids that a public id may stand for, the likeliest first.

    A client answers a tool call under its public id; the framework knows it under its own.  Which of the two it
    is, only the framework's history can tell, so both are returned: the id itself, and what is left of it when
    the mark that a collision added is taken off.
    """
    head, _, number = public.rpartition("#")
    base = head if head and number.isdigit() else public
    native = base.partition("@")[0] or base
    return (public,) if native == public else (public, native)


class Ids:
    """The public ids of one run."""

    __slots__ = ("_taken",)

    def __init__(self) -> None:
        self._taken: Final[set[str]] = set()

    def take(self, public: str) -> None:
        """Keep `public` from being given out: somebody has it already."""
        self._taken.add(public)

    def claim(self, native: str, tag: str | None = None) -> str:
        """Give out a public id: the framework's own while it is free, then with its owner, then with a number."""
        native = clean_text(native)
        public = native
        if public in self._taken and tag is not None:
            public = native = f"{native}@{tag}"
        number = 2
        while public in self._taken:
            public = f"{native}#{number}"
            number += 1
        self._taken.add(public)
        return public


class Lane:
    """One invocation, or the parent agent."""

    __slots__ = ("depth", "id", "messages", "open", "parent", "questions", "steps", "suspended")

    def __init__(self, tag: str | None, parent: "Lane | None") -> None:
        self.id: Final = tag
        self.parent: Final = parent
        self.depth: Final[int] = 0 if parent is None else parent.depth + 1
        self.open = parent is not None  # the parent agent is never closed: its run ends
        self.suspended = False
        self.messages: dict[Message, None] = {}  # those with something open, in the order of their opening
        self.steps: dict[str, int] = {}
        self.questions: list[str] = []


class Message:
    """One model run.  Kept for the whole run, so that a late word finds its message again."""

    __slots__ = ("calls", "id", "lane", "part", "thought", "thoughts")

    def __init__(self, lane: Lane, public: str) -> None:
        self.lane: Final = lane
        self.id: Final = public
        self.part: str | None = None
        self.thought: str  # the id of its latest reasoning
        self.thoughts = 0
        self.calls: dict[ToolCall, None] = {}  # the open ones


class ToolCall:
    """One tool call."""

    __slots__ = ("answered", "held_by", "id", "message", "name")

    def __init__(self, public: str, name: str, message: str | None) -> None:
        self.id: Final = public
        self.name: Final = name
        self.message: Final = message
        self.held_by: Message | None = None  # while it is open
        self.answered = False
