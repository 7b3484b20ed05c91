"""Who a run is for: set once by whoever answers the request, read by whatever needs it.

The user comes from the request that was authenticated, never from what a client may write into its input.  It reaches
everything that runs inside the run: tools, grants, and an ADK runner through
`attribute(runner, user_id=lambda _input: current_user() or "anonymous")`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

__all__ = ["as_user", "current_user"]

_user: Final[ContextVar[str | None]] = ContextVar("byline_user", default=None)


def current_user() -> str | None:
    """Return whom the run at hand is for; `None` for an anonymous one."""
    return _user.get()


@contextmanager
def as_user(user: str | None) -> Iterator[None]:
    """Make `user` the one that runs begun in this context are for."""
    token = _user.set(user)
    try:
        yield
    finally:
        _user.reset(token)
