"""What the installed LangGraph can do: the one place where versions are asked for."""

from collections.abc import Mapping
from importlib.metadata import version
from types import MappingProxyType
from typing import Final

from byline.errors import UnsupportedVersionError
from langchain_core.callbacks import BaseCallbackHandler

__all__ = ["BEYOND", "FIRST", "OLDEST", "check", "companions", "has"]

OLDEST: Final = (1, 1)
"""The first release whose stream has `version="v2"` parts with a namespace and the interrupts of a step."""

BEYOND: Final = (2, 0)

FIRST: Final[Mapping[str, tuple[int, ...]]] = MappingProxyType(
    {
        # A handler with LangChain's two tap methods makes models stream.  Before this release LangGraph took it for
        # one of its own and ran every node with `astream`, in which a `@task` that calls a graph returns None: we
        # would change the app's result.  There a deaf one of LangGraph's own kind stands beside ours.
        "taps": (1, 2, 19),
        # The callbacks of a call are added to those of `graph.with_config(callbacks=...)`.  Before this release they
        # replaced them, and ours would silence the user's.
        "merged callbacks": (1, 2, 3),
    }
)
"""Capability: the first release that has it."""


def _installed() -> tuple[int, ...]:
    numbers = []
    for part in version("langgraph").split(".")[:3]:
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        numbers.append(int(digits or 0))
    return tuple(numbers)


def has(capability: str) -> bool:
    """Return whether the installed LangGraph has `capability`, a key of `FIRST`."""
    return _installed() >= FIRST[capability]


def companions() -> list[BaseCallbackHandler]:
    """Return the handlers that make models stream, where ours may not do it itself."""
    if has("taps"):
        return []
    from langgraph.pregel._messages import StreamMessagesHandler

    class Deaf(StreamMessagesHandler):
        ignore_llm = ignore_chat_model = ignore_chain = True

    return [Deaf(lambda _: None, subgraphs=True)]


def check() -> None:
    """Raise `UnsupportedVersionError` for a LangGraph outside the supported range."""
    if not OLDEST <= _installed() < BEYOND:
        raise UnsupportedVersionError(
            f"langgraph {version('langgraph')} is installed, byline supports 1.1 up to but not including 2.0: "
            "pip install 'byline[langgraph]'"
        )
