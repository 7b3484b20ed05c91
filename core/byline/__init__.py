"""byline: every event of a multi-agent run carries its byline.

Which invocation of which subagent made it, who called it, and how it ended.

>>> from byline import attribute
>>> agent = attribute(graph)            # an existing app, unchanged  # doctest: +SKIP
>>> async for event in agent.run(run_input): ...                      # doctest: +SKIP
"""

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
from .hooks import Candidate, Demo, Invocation, hookimpl
from .recording import Recording, record

__all__ = [
    "MODES",
    "Agent",
    "BylineError",
    "Candidate",
    "Contract",
    "Demo",
    "HookError",
    "InputError",
    "Invocation",
    "NoAdapterError",
    "Recording",
    "ResumeError",
    "Run",
    "UnsupportedVersionError",
    "attribute",
    "hookimpl",
    "record",
]
