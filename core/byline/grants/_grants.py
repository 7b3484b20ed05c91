"""The service: issues grants before a run, and admits the run where it starts."""

import hashlib
import hmac
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, Protocol

from byline.errors import InputError, StoreError

from ._decide import CAN_USE, AccessRequest, Decider, Desk
from ._failures import (
    BadSignatureError,
    DeniedError,
    ExpiredError,
    GrantError,
    NotCoveredError,
    NotYetValidError,
    ParentMismatchError,
    ReplayedError,
    RunMismatchError,
    ScopeMismatchError,
    StoreUnavailableError,
    UserMismatchError,
    listed,
)
from ._token import Attempt, Grant, Key, KeyRing, require_jwt, seal, unseal

__all__ = ["FORGET_AFTER", "Check", "Grants", "MemoryLedger", "SpendLedger"]

FORGET_AFTER: Final = 3_600
"""For how many seconds a ledger remembers a spent grant after it has expired: clocks differ, and jump."""


class SpendLedger(Protocol):
    """Who knows which grants were used."""

    def spend(self, jti: str, until: int) -> bool:
        """Return whether this call, and no other, is the one that spends `jti`, a grant that expires at `until`."""


class MemoryLedger:
    """A ledger for one process; the durable one is `byline.stores`."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock: Final = clock
        self._lock: Final = threading.Lock()
        self._spent: Final[dict[str, int]] = {}
        self._forgotten = 0
        self._next_purge = 0.0

    def spend(self, jti: str, until: int) -> bool:
        """Return whether this call is the one that spends `jti`."""
        with self._lock:
            now = self._clock()
            if now >= self._next_purge:
                self._next_purge = now + 60
                # A clock that jumped ahead makes us forget; what was forgotten stays refused when it jumps back.
                self._forgotten = max(self._forgotten, int(now) - FORGET_AFTER)
                for id_ in [id_ for id_, expires in self._spent.items() if expires < self._forgotten]:
                    del self._spent[id_]
            if jti in self._spent or until < self._forgotten:
                return False
            self._spent[jti] = until
            return True

    def __len__(self) -> int:
        return len(self._spent)


class Check(NamedTuple):
    """One line of `Grants.explain`."""

    what: str
    fault: GrantError | None


class Grants:
    """Issues grants and admits runs.

    `keys` is a ring, a key, or the bytes of one secret; `decider` is needed to issue only.  `limit` is the seconds
    that a decider has for all resources of a run together, `lifetime` the seconds that a grant is good for, `skew`
    how many seconds ahead the clock of the machine that issued it may be.  `workers` bounds how many decisions run
    at a time, those that hang and were left behind included.
    """

    def __init__(
        self,
        keys: KeyRing | Key | bytes,
        decider: Decider | None = None,
        *,
        ledger: SpendLedger | None = None,
        limit: float = 5.0,
        lifetime: float = 300.0,
        skew: float = 5.0,
        workers: int = 16,
        clock: Callable[[], float] = time.time,
    ) -> None:
        require_jwt()  # said here and not at the first run
        if isinstance(keys, bytes):
            keys = Key(hashlib.sha256(b"byline kid" + keys).hexdigest()[:8], keys)
        self.keys: Final = keys if isinstance(keys, KeyRing) else KeyRing(keys)
        self.decider: Final = decider
        self.ledger: Final[SpendLedger] = MemoryLedger(clock) if ledger is None else ledger
        self._limit: Final = limit
        self._lifetime: Final = lifetime
        self._skew: Final = skew
        self._clock: Final = clock
        self._desk: Final = Desk(workers)

    @property
    def undecided(self) -> int:
        """How many decisions are under way, those that were left behind included."""
        return self._desk.busy

    async def issue(self, attempt: Attempt, decider: Decider | None = None) -> str:
        """Ask for every resource of a run and return the sealed grant; `decider` instead of our own, if given.

        Raises `DeniedError` with all resources that were denied, `DecisionTimedOutError`, `DecisionFailedError`.
        """
        chosen = decider or self.decider
        if chosen is None:
            raise InputError("nobody to ask: Grants(keys, decider) needs a decider to issue grants")
        requests = [
            AccessRequest(
                attempt.user,
                resource,
                attempt.run_id,
                attempt.parent_agent_id,
                attempt.thread_id,
                attempt.mode,
            )
            for resource in sorted(attempt.resources)
        ]
        answers = await self._desk.decide(chosen, requests, self._limit)
        denied = [request.resource for request, yes in zip(requests, answers, strict=True) if not yes]
        if denied:
            raise DeniedError(f"{attempt.user!r} has no {CAN_USE} on {listed(denied)}", denied)
        now = int(self._clock())
        grant = Grant(
            id=uuid.uuid4().hex,
            user=attempt.user,
            run_id=attempt.run_id,
            parent_agent_id=attempt.parent_agent_id,
            thread_id=attempt.thread_id,
            mode=attempt.mode,
            resources=attempt.resources,
            issued_at=now,
            expires_at=now + max(1, int(self._lifetime)),
        )
        return seal(grant, self.keys.sealing)

    def check(self, token: object, attempt: Attempt) -> Grant:
        """Return the grant if a run may start with it; does not spend it.  Raises the first `GrantError` in order."""
        for check in self._checks(token, attempt):
            if check.fault is not None:
                raise check.fault
        return unseal(token, self.keys)

    def admit(self, token: object, attempt: Attempt) -> Grant:
        """Check a grant and spend it: the run may start now, and no other may with this token.

        Raises the first `GrantError` in order; a grant that does not match is not spent.
        """
        grant = self.check(token, attempt)
        self.spend(grant)
        return grant

    def spend(self, grant: Grant) -> None:
        """Spend a checked grant.  Raises `ReplayedError`, or `StoreUnavailableError` when nobody can tell."""
        try:
            won = self.ledger.spend(grant.id, grant.expires_at)
        except StoreError as fault:
            raise StoreUnavailableError(str(fault)) from fault
        except Exception as fault:
            raise StoreUnavailableError(f"the ledger failed: {type(fault).__name__}: {fault}") from fault
        if won is not True:
            raise ReplayedError("this grant was used before: ask for a new one for each run")

    def explain(self, token: object, attempt: Attempt | None = None) -> list[Check]:
        """Return every check in order with its fault, without spending; up to the signature if that is wrong.

        Without an attempt only the signature and the time are judged.
        """
        return list(self._checks(token, attempt))

    def _checks(self, token: object, attempt: Attempt | None) -> Iterator[Check]:
        try:
            grant = unseal(token, self.keys)
        except BadSignatureError as fault:
            yield Check("signature", fault)
            return
        yield Check("signature", None)
        yield Check("time", self._time_fault(grant))
        if attempt is None:
            return
        for what, mine, theirs, kind in (
            ("user", attempt.user, grant.user, UserMismatchError),
            ("run", attempt.run_id, grant.run_id, RunMismatchError),
            ("parent agent", attempt.parent_agent_id, grant.parent_agent_id, ParentMismatchError),
            ("thread", attempt.thread_id, grant.thread_id, ScopeMismatchError),
            ("mode", attempt.mode, grant.mode, ScopeMismatchError),
        ):
            # What the grant says is not told: the one who shows it may not be the one it was made for.
            same = hmac.compare_digest(_bytes(mine), _bytes(theirs))
            yield Check(what, None if same else kind(f"the grant was made for another {what} than {mine!r}"))
        missing = grant.missing(attempt.resources)
        text = f"the run uses {listed(missing)}, which the grant does not name: ask for a new one"
        yield Check("coverage", NotCoveredError(text, missing) if missing else None)

    def _time_fault(self, grant: Grant) -> GrantError | None:
        now = self._clock()
        if now >= grant.expires_at:
            return ExpiredError(
                f"the grant expired {_seconds(now - grant.expires_at)} ago: ask for a new one"
            )
        if now < grant.issued_at - self._skew:
            ahead = _seconds(grant.issued_at - now)
            return NotYetValidError(f"the grant begins in {ahead}: the clocks of two machines differ")
        return None


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s"
