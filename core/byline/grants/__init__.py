"""Grants: permission for one run, asked for before it and checked again where it runs.

"The service layer collects the resources that belong to the parent agent, the chosen thread and the run mode, and
evaluates the permissions.  What was allowed is kept as the run's bundle of permissions and handed to the runtime."

That bundle is a `Grant`: who runs what, where, with which resources, until when, once.  `Grants.issue` asks a
`Decider` for every resource and seals the answer as a token (a JWT of PyJWT's); `Grants.admit` opens it where the
run is about to start, and holds it against what the run *really* uses (`Attempt`, which an adapter collects from the
framework's own objects).  The checks go from cheap to costly, and each has one cause:

    signature, time, user, run id, parent agent, thread and mode, coverage, spending

Spending comes last, so that a request that does not match burns nobody's good grant.  Every failure is a type of its
own with a stable `code`, and all of them come before anything runs.  No rights of a subagent are derived from those
of its parent: a grant names the parent's *direct* subagents, and what one of them uses is its own matter.
"""

from ._decide import CAN_USE, AccessRequest, Decider, HookDecider, TableDecider
from ._failures import (
    CODES,
    KINDS,
    BadSignatureError,
    DecisionFailedError,
    DecisionTimedOutError,
    DeniedError,
    ExpiredError,
    GrantError,
    NotCoveredError,
    NotYetValidError,
    ParentMismatchError,
    ReplayedError,
    Resource,
    ResourceKind,
    RunMismatchError,
    ScopeMismatchError,
    StoreUnavailableError,
    UserMismatchError,
)
from ._grants import FORGET_AFTER, Check, Grants, MemoryLedger, SpendLedger
from ._permit import Guard, Inventory, Nested, Opaque, Permit
from ._reach import held
from ._token import MAX_TOKEN, Attempt, Grant, Key, KeyRing, peek

__all__ = [
    "CAN_USE",
    "CODES",
    "FORGET_AFTER",
    "KINDS",
    "MAX_TOKEN",
    "AccessRequest",
    "Attempt",
    "BadSignatureError",
    "Check",
    "Decider",
    "DecisionFailedError",
    "DecisionTimedOutError",
    "DeniedError",
    "ExpiredError",
    "Grant",
    "GrantError",
    "Grants",
    "Guard",
    "HookDecider",
    "Inventory",
    "Key",
    "KeyRing",
    "MemoryLedger",
    "Nested",
    "NotCoveredError",
    "NotYetValidError",
    "Opaque",
    "ParentMismatchError",
    "Permit",
    "ReplayedError",
    "Resource",
    "ResourceKind",
    "RunMismatchError",
    "ScopeMismatchError",
    "SpendLedger",
    "StoreUnavailableError",
    "TableDecider",
    "UserMismatchError",
    "held",
    "peek",
]
