"""byline: every event of a multi-agent run carries its byline.

Which invocation of which subagent made it, who called it, and how it ended.

>>> from byline import attribute
>>> agent = attribute(graph)            # an existing app, unchanged  # doctest: +SKIP
>>> async for event in agent.run(run_input): ...                      # doctest: +SKIP
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .agent import Agent, Run, attribute
    from .delegation import MODES, Contract
    from .errors import (
        BylineError,
        HookError,
        InputError,
        NoAdapterError,
        ResumeError,
        UnsupportedVersionError,
    )
    from .factory import Factory
    from .history import History, MemoryThreads
    from .hooks import Candidate, Demo, Invocation, hookimpl
    from .recording import Recording, record

__all__ = [
    "MODES",
    "Agent",
    "BylineError",
    "Candidate",
    "Contract",
    "Demo",
    "Factory",
    "History",
    "HookError",
    "InputError",
    "Invocation",
    "MemoryThreads",
    "NoAdapterError",
    "Recording",
    "ResumeError",
    "Run",
    "UnsupportedVersionError",
    "attribute",
    "hookimpl",
    "record",
]

_HOMES: Final = {
    **dict.fromkeys(("Agent", "Run", "attribute"), ".agent"),
    "Factory": ".factory",
    **dict.fromkeys(("MODES", "Contract"), ".delegation"),
    **dict.fromkeys(("Candidate", "Demo", "Invocation", "hookimpl"), ".hooks"),
    **dict.fromkeys(("History", "MemoryThreads"), ".history"),
    **dict.fromkeys(("Recording", "record"), ".recording"),
}
"""Where a name lives; it is imported when it is asked for, because pytest loads `byline.pytest_plugin` in every run."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, ".errors"), __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
