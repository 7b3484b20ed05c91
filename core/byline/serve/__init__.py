"""An AG-UI endpoint for CopilotKit or any `HttpAgent`: `byline serve module:target`, or `byline.serve.app(agent)`.

>>> app = byline.serve.app(supervisor)          # any ASGI server takes it from here  # doctest: +SKIP

`POST` a `RunAgentInput` and read server-sent events.  The response's `Content-Location` is the run's address: `GET`
it with `Last-Event-ID` to get what was missed and then the rest, `DELETE` it to stop the run.  `GET` on the thread gives
its history.
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from byline.agent import Agent, attribute
from byline.errors import InputError

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from byline.events import BaseEvent
    from byline.history import Threads
    from byline.serve._http import UserOf
    from byline.stores._sql import SqlStore

__all__ = ["app"]

_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#\s]+")
"""What a browser sends as `Origin`: no path, no slash at its end."""


def app(
    agent: Any,
    *,
    path: str = "/",
    user: "UserOf | None" = None,
    cors: Sequence[str] = (),
    grace: float = 30.0,
    keep_alive: float = 15.0,
    max_runs: int = 1000,
    max_body: int = 10_000_000,
    max_log: int = 16_000_000,
    threads: "Threads | None" = None,
    store: "SqlStore | None" = None,
) -> "Starlette":
    """Return an ASGI application that serves `agent`, an `attribute()`d agent or what `attribute` takes.

    `path` is where runs are posted, the other endpoints are below it.  `user` says who asks: a callable of the
    request, sync or async, that returns a name, `None` for an anonymous one, or raises `PermissionError` (401);
    `byline.user.current_user()` gives it inside the run.  `cors` are the origins a browser may call from.

    `grace` is how many seconds a run goes on after its client went away, and how long a finished one can be read;
    `keep_alive` after how many seconds of silence a comment is sent; `max_runs` how many runs may be open,
    `max_body` the largest request in bytes, `max_log` how many bytes of one run are kept: beyond that it waits for
    its readers.  `threads` is where the streams are kept for `GET` on a thread, as in `attribute(..., threads=...)`;
    an agent that is attributed already may bring its own.

    `store`, as `byline.stores.open_store` returns it, makes several servers on one database one: a run can be read
    and stopped at any of them, a thread runs once at a time over all, and `threads` are the store's unless given.

    Raises `InputError` when Starlette is missing or an option is not what it should be, and what `attribute` raises.
    """
    try:
        from byline.serve._http import build
        from byline.serve._runs import Limits
    except ModuleNotFoundError as missing:
        raise InputError(
            f"serving needs {missing.name}, which is not installed: pip install 'byline[serve]'"
        ) from missing
    if not path.startswith("/"):
        raise InputError(f"path is {path!r}, expected one that begins with /")
    for name, limit, least in (
        ("grace", grace, 0.0),
        ("keep_alive", keep_alive, 0.001),
        ("max_runs", max_runs, 1),
        ("max_body", max_body, 1),
        ("max_log", max_log, 1),
    ):
        if not least <= limit < math.inf:
            raise InputError(f"{name} is {limit!r}, expected a number from {least:g}")
    for origin in cors:
        if origin not in {"*", "null"} and not _ORIGIN.fullmatch(origin):
            raise InputError(
                f"{origin!r} is no origin: expected scheme and host, as in http://localhost:3000, or *"
            )

    if store is not None and threads is None:
        threads = store.threads

    def observed(observer: "Callable[[BaseEvent], object]") -> Agent:
        known = agent if isinstance(agent, Agent) else attribute(agent)
        return known.observed_by(observer, threads=threads)

    limits = Limits(grace=grace, keep_alive=keep_alive, max_runs=max_runs, max_body=max_body, max_log=max_log)
    sharing = None
    if store is not None:
        from byline.serve._shared import Sharing  # it needs the extra `store`

        sharing = Sharing(store, limits, threads)
    return build(observed, path=path, user=user, cors=cors, limits=limits, sharing=sharing)
