"""Work that has lost its caller: a graph or a model that starts in a thread without the context of the run.

LangChain passes callbacks on in a context variable.  `threading.Thread`, a `ThreadPoolExecutor` and
`loop.run_in_executor` do not carry it over, so whatever runs there tells nobody: no word of it is in the stream, and
nobody can say later to which run it belonged.  All that can be done is to notice, and to name the cure.

LangChain asks its "configure hooks" at every start of a run whether they want to listen, and asks a context variable
for that; an object with the same one method is asked just as well.  It answers only where the context is missing, in
a thread that runs no loop (a task always inherits its context), while a run is under way.
"""

import asyncio
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, cast
from uuid import UUID

from byline import signals as s
from byline.agent import Sink
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tracers.context import register_configure_hook

__all__ = ["LOST_CONTEXT", "watched"]

LOST_CONTEXT: Final = "byline.lost-context"
"""The name of the `CUSTOM` event: once in a run."""

CURE: Final = (
    "hand the context over: contextvars.copy_context().run(...), asyncio.to_thread(...), LangChain's "
    "ContextThreadPoolExecutor, or pass the tool's config to the agent"
)

_log = logging.getLogger("byline")
_inside: ContextVar[bool] = ContextVar("byline_inside", default=False)
_lock: Final = threading.Lock()
_active: Final[dict[Sink, bool]] = {}
"""The runs under way, and whether each has been told."""


@contextmanager
def watched(sink: Sink) -> Iterator[None]:
    """Watch for lost work while the run that reports to `sink` is under way."""
    token = _inside.set(True)
    with _lock:
        _active[sink] = False
    try:
        yield
    finally:
        with _lock:
            del _active[sink]
        _inside.reset(token)


class _Lost(BaseCallbackHandler):
    """Hears the first start of each run without a context."""

    run_inline = True

    def on_chain_start(
        self, serialized: Any, inputs: Any, *, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        if parent_run_id is None:
            _tell(str(kwargs.get("name") or "a chain"))

    def on_chat_model_start(
        self, serialized: Any, messages: Any, *, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        if parent_run_id is None:
            _tell(str(kwargs.get("name") or "a model"))


_HANDLER: Final = _Lost()


class _Net:
    """What LangChain takes for a context variable."""

    def get(self) -> _Lost | None:
        """Return the handler where work is lost."""
        if not _active or _inside.get() or threading.current_thread() is threading.main_thread():
            return None
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return _HANDLER
        return None


def _tell(name: str) -> None:
    thread = threading.current_thread().name
    with _lock:
        fresh = [sink for sink, told in _active.items() if not told]
        alone = len(_active) == 1
        for sink in fresh:
            _active[sink] = True
    if not fresh:
        return
    _log.warning(
        "%s started in thread %s without the context of its caller, and is in no stream: %s",
        name,
        thread,
        CURE,
    )
    if alone:  # with several runs under way, nobody can say whose it is
        fresh[0].report(s.Custom(None, LOST_CONTEXT, {"name": name, "thread": thread, "cure": CURE}))


register_configure_hook(cast("ContextVar[Any]", _Net()), inheritable=False)
