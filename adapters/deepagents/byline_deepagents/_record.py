"""Recording a deep agent that is called as ever: LangGraph's recorder with this adapter's observer."""

from contextlib import AbstractContextManager
from typing import Any

from byline.recording import Observation, ObservedRun
from byline_langgraph import _record as langgraph
from langgraph.types import Command

from . import _compat
from ._handler import TaskHandler

__all__ = ["observing"]


def observing(observation: Observation) -> AbstractContextManager[None]:
    """Report what LangChain runs in this context to `observation`."""
    return langgraph.observing(observation, _observer if _compat.supported() else None)


def _observer(run: ObservedRun, transparent: frozenset[str], inputs: Any) -> TaskHandler:
    handler = TaskHandler(run, transparent)
    handler.resumes = isinstance(inputs, Command)
    return handler
