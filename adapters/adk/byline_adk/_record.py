"""Recording an ADK app that is called as ever: a plugin of ours in its runner while the recording lasts.

ADK has no process-wide hook, so the runner has to be given.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, cast
from uuid import uuid4

from byline import signals as s
from byline.agent import RunEnd, Sink
from byline.recording import Observation, ObservedRun

from ._observer import BylinePlugin

__all__ = ["Recorder", "observing"]


class Recorder(BylinePlugin):
    """Reports each run of a runner to a recording."""

    def __init__(self, observation: Observation) -> None:
        super().__init__(_nobody, name="byline_recording")
        self._observation: Final = observation

    def _begun(self, thread_id: str) -> Sink:
        return self._observation.begin(thread_id, str(uuid4()))

    def _ended(self, sink: Sink, how: s.Signal) -> None:
        cast("ObservedRun", sink).end(cast("RunEnd", how))


@contextmanager
def observing(observation: Observation, runner: Any) -> Iterator[None]:
    """Report the runs of `runner` to `observation`."""
    plugins = runner.plugin_manager.plugins
    ours = Recorder(observation)
    plugins.insert(0, ours)
    try:
        yield
    finally:
        with suppress(ValueError):
            plugins.remove(ours)


def _nobody(_event: object) -> None:
    """Take an event that goes to the recording anyway."""
