"""What can stand in the way of a run: one type for each cause, each with a code that never changes."""

from collections.abc import Iterable, Mapping
from typing import ClassVar, Final, Literal, NamedTuple, TypeAlias

from byline.errors import BylineError

__all__ = [
    "CODES",
    "KINDS",
    "BadSignatureError",
    "DecisionFailedError",
    "DecisionTimedOutError",
    "DeniedError",
    "ExpiredError",
    "GrantError",
    "NotCoveredError",
    "NotYetValidError",
    "ParentMismatchError",
    "ReplayedError",
    "Resource",
    "ResourceKind",
    "RunMismatchError",
    "ScopeMismatchError",
    "StoreUnavailableError",
    "UserMismatchError",
    "listed",
]

ResourceKind: TypeAlias = Literal["model", "tool", "middleware", "skill", "subagent"]

KINDS: Final[tuple[ResourceKind, ...]] = ("model", "tool", "middleware", "skill", "subagent")


class Resource(NamedTuple):
    """Something a run uses: a skill is named by its source, everything else by its own name."""

    kind: ResourceKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}"


def listed(resources: Iterable[Resource]) -> str:
    """Return resources as a message names them: the first ten, and how many more."""
    resources = list(resources)
    shown = ", ".join(map(str, resources[:10]))
    return shown if len(resources) <= 10 else f"{shown} and {len(resources) - 10} more"


class GrantError(BylineError):
    """A run is not permitted, and did not start.  `code` is stable; `resources` are those at fault, if any."""

    code: ClassVar[str]

    def __init__(self, message: str, resources: Iterable[Resource] = ()) -> None:
        if type(self) is GrantError:
            raise TypeError("GrantError is a base class: raise one of its kinds")
        self.resources: Final = tuple(resources)
        super().__init__(f"{self.code}: {message}")


class DeniedError(GrantError):
    """The user may not use some of the resources."""

    code = "denied"


class DecisionTimedOutError(GrantError):
    """The decider did not answer in time."""

    code = "decision_timeout"


class DecisionFailedError(GrantError):
    """The decider raised, or answered neither yes nor no: that is no permission, and no denial either."""

    code = "decision_failed"


class BadSignatureError(GrantError):
    """The token is not one that was sealed with a key of ours."""

    code = "bad_signature"


class ExpiredError(GrantError):
    """The grant's time is over."""

    code = "expired"


class NotYetValidError(GrantError):
    """The grant's time has not begun: the clocks of two machines differ, or one has jumped."""

    code = "not_yet_valid"


class UserMismatchError(GrantError):
    """The grant was made for another user."""

    code = "user_mismatch"


class RunMismatchError(GrantError):
    """The grant was made for another run."""

    code = "run_mismatch"


class ParentMismatchError(GrantError):
    """The grant was made for another parent agent."""

    code = "parent_mismatch"


class ScopeMismatchError(GrantError):
    """The grant was made for another thread or another run mode."""

    code = "scope_mismatch"


class NotCoveredError(GrantError):
    """The run uses resources that the grant does not name."""

    code = "not_covered"


class ReplayedError(GrantError):
    """The grant was used before."""

    code = "replayed"


class StoreUnavailableError(GrantError):
    """Whether the grant was used before cannot be told, because the ledger does not answer."""

    code = "store_unavailable"


CODES: Final[Mapping[str, type[GrantError]]] = {kind.code: kind for kind in GrantError.__subclasses__()}
"""Every failure by its code.  A code is never renamed; new ones may be added."""
