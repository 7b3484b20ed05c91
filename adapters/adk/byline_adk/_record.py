"""`byline.record("run.jsonl", runner)`: the runs of a runner whose loop the user keeps, written down."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final
from uuid import uuid4

from byline.agent import RunEnd, Sink
from byline.events import Message
from byline.recording import Observation, ObservedRun

from . import _compat
from ._observer import Follower

__all__ = ["recording"]


class _Recorder(Follower):
    """Reports the runs of one runner to an observation."""

    def __init__(self, observation: Observation) -> None:
        super().__init__("byline_record")
        self._observation: Final = observation

    def open_sink(self, thread_id: str, history: Sequence[Message]) -> Sink:
        """Return a new run of the observation."""
        return self._observation.begin(thread_id, str(uuid4()), history=history)

    def close_sink(self, sink: Sink, end: RunEnd) -> None:
        """End it."""
        if isinstance(sink, ObservedRun):
            sink.end(end)


@contextmanager
def recording(observation: Observation, runner: Any) -> Iterator[None]:
    """Put the recorder at the front of a runner's plugins, and take it off again."""
    _compat.check()
    recorder = _Recorder(observation)
    plugins = runner.plugin_manager.plugins
    plugins.insert(0, recorder)
    try:
        yield
    finally:
        plugins.remove(recorder)
