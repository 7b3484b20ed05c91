"""Who is asked for permission, and how: with a time limit, and a bound on those who never answer."""

import asyncio
import contextvars
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol

from byline.errors import InputError

from ._failures import KINDS, DecisionFailedError, DecisionTimedOutError, Resource

__all__ = ["CAN_USE", "AccessRequest", "Decider", "Desk", "HookDecider", "TableDecider"]

CAN_USE: Final = "RESOURCE_CAN_USE"
"""The one permission that a run needs on each resource."""


@dataclass(frozen=True, slots=True)
class AccessRequest:
    """One question to a decider: may `user` use `resource` in this run."""

    user: str
    resource: Resource
    run_id: str
    parent_agent_id: str
    thread_id: str
    mode: str
    permission: str = CAN_USE


class Decider(Protocol):
    """Whoever knows the policy.

    Only `True` is a permission.  The method may be `async def`: then it is awaited in the loop of the caller; a
    plain one is called in a worker thread, one request after the other.  One with a time limit of its own raises
    `DecisionTimedOutError` when it is over.
    """

    def can_use(self, request: AccessRequest) -> bool | Awaitable[bool]:
        """Return whether the permission `request.permission` is there."""


class TableDecider:
    """A decider that looks it up: rows of (user, kind, name), where `"*"` stands for any.

    >>> TableDecider([("ann", "tool", "search"), ("*", "model", "small")])
    """

    def __init__(self, rows: Iterable[tuple[str, str, str]]) -> None:
        self._rows: Final = frozenset(rows)
        for row in self._rows:
            if len(row) != 3 or row[1] not in (*KINDS, "*"):
                raise InputError(
                    f"{row!r} is no row of (user, kind, name); kinds are {', '.join(KINDS)} and *"
                )

    def can_use(self, request: AccessRequest) -> bool:
        """Return whether a row allows it."""
        kind, name = request.resource
        return any(
            (user, a_kind, a_name) in self._rows
            for user in (request.user, "*")
            for a_kind in (kind, "*")
            for a_name in (name, "*")
        )

    def __repr__(self) -> str:
        return f"TableDecider({sorted(self._rows)})"


class HookDecider:
    """Asks the plugins (`byline_decide`): the first answer wins, and no answer is no permission."""

    def __init__(self, plugins: Any) -> None:
        self._plugins: Final = plugins

    def can_use(self, request: AccessRequest) -> Any:
        """Return the plugins' answer; unlike with other hooks a fault in one is not passed over."""
        answer = self._plugins.demand("byline_decide", request=request)
        return False if answer is None else answer


class Desk:
    """Where deciders are asked.  One that hangs is left behind, its late answer ignored; their number is bounded.

    Threads of our own and not an executor's: an executor waits for its threads when the interpreter ends.
    """

    def __init__(self, places: int) -> None:
        self.places: Final = places
        self.lock: Final = threading.Lock()
        self.busy = 0

    async def decide(self, decider: Decider, requests: Sequence[AccessRequest], limit: float) -> list[bool]:
        """Return the answers in order.

        Raises `DecisionTimedOutError` when one is missing after `limit` seconds, `DecisionFailedError` when the
        decider raises or answers anything but `True` and `False`.
        """
        if not requests:
            return []
        until = time.monotonic() + limit
        place = await self._sit_down(until, limit)
        work = asyncio.ensure_future(_ask(decider, requests, place))
        work.add_done_callback(place.work_over)
        try:
            await asyncio.wait({work}, timeout=max(0.0, until - time.monotonic()))
        finally:
            over = work.done()
            if not over:
                work.cancel()
        if not over:
            raise DecisionTimedOutError(
                f"the decider did not answer within {limit:g} s: try again, or ask who runs it"
            )
        if work.cancelled() or (fault := work.exception()) is not None:
            fault = None if work.cancelled() else work.exception()
            if isinstance(fault, DecisionFailedError | DecisionTimedOutError):
                raise fault  # said by the decider itself, or by us of its answer
            name = "a cancellation" if fault is None else type(fault).__name__
            raise DecisionFailedError(
                f"the decider failed with {name}, which permits nothing: ask who runs it"
            ) from fault
        return work.result()

    async def _sit_down(self, until: float, limit: float) -> "_Place":
        while True:
            with self.lock:
                if self.busy < self.places:
                    self.busy += 1
                    return _Place(self)
            if time.monotonic() >= until:
                raise DecisionTimedOutError(
                    f"no decider was free for {limit:g} s: {self.places} decisions hang, and no more are begun"
                )
            await asyncio.sleep(min(0.05, limit / 10))


class _Place:
    """One decision's place: free again when its work is over and no thread of it is left behind."""

    def __init__(self, desk: Desk) -> None:
        self._desk: Final = desk
        self._open = 1

    def work_over(self, work: "asyncio.Future[list[bool]]") -> None:
        if not work.cancelled():
            work.exception()  # taken note of, also where nobody waits for it any more
        self._left()

    async def in_thread(self, call: Callable[[], Any]) -> Any:
        """Return what `call` returns in a thread; whoever waits may go away, the thread cannot."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
        context = contextvars.copy_context()

        def deliver(result: tuple[Any, BaseException | None]) -> None:
            if not answer.done():
                answer.set_result(result)

        def work() -> None:
            try:
                result: tuple[Any, BaseException | None] = (context.run(call), None)
            except BaseException as fault:
                result = (None, fault)
            self._left()
            with suppress(RuntimeError):  # the loop is closed: the answer came too late for anybody
                loop.call_soon_threadsafe(deliver, result)

        with self._desk.lock:
            self._open += 1
        threading.Thread(target=work, name="byline decider", daemon=True).start()
        value, fault = await answer
        if isinstance(fault, DecisionFailedError | DecisionTimedOutError):
            raise fault
        if fault is not None:
            raise RuntimeError(f"{type(fault).__name__}: {fault}") from fault
        return value

    def _left(self) -> None:
        with self._desk.lock:
            self._open -= 1
            if not self._open:
                self._desk.busy -= 1


async def _ask(decider: Decider, requests: Sequence[AccessRequest], place: _Place) -> list[bool]:
    answers: list[bool] = []
    native = inspect.iscoroutinefunction(decider.can_use)
    for request in requests:
        answer: Any
        if native:
            answer = decider.can_use(request)
        else:
            answer = await place.in_thread(lambda request=request: decider.can_use(request))  # type: ignore[misc]
        if inspect.isawaitable(answer):  # a plain function may return one, too
            answer = await answer
        if not isinstance(answer, bool):
            raise DecisionFailedError(
                f"the decider answered {answer!r} for {request.resource}, expected True or False"
            )
        answers.append(answer)
    return answers
