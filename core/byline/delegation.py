"""The contract of a delegation: what a framework's way of delegating promises about context and control.

One table for all frameworks (`MODES`).  A contract travels as `SUBAGENT_STARTED.metadata["byline"]`; an axis is
written only when the run showed it or the framework fixes it, otherwise it is absent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

__all__ = ["MODES", "Approvals", "Concurrency", "ContextMode", "Contract", "Interaction", "Returns"]

ContextMode: TypeAlias = Literal["isolated", "fork", "shared"]
"""What it starts from: only the task; the parent's conversation and state, then the task; the same conversation."""
Interaction: TypeAlias = Literal["none", "clarify", "full"]
"""Whether it may talk with the user: not at all, to ask back, as it likes."""
Approvals: TypeAlias = bool
"""Whether it may pause for a tool approval."""
Returns: TypeAlias = Literal["automatic", "manual", "onward"]
"""Where control goes: back to the caller with the result; back only by a hand-off; on through the graph."""
Concurrency: TypeAlias = Literal["parallel", "serial"]
"""Whether siblings may run at the same time."""


@dataclass(frozen=True, slots=True)
class Contract:
    """What is known of one delegation; `None` is "not known"."""

    framework: str | None = None
    mode: str | None = None
    context: ContextMode | None = None
    interaction: Interaction | None = None
    approvals: Approvals | None = None
    returns: Returns | None = None
    concurrency: Concurrency | None = None
    leaf: bool | None = None

    def metadata(self) -> dict[str, Any]:
        """Return the axes that are known, as they stand in `metadata["byline"]`."""
        return {axis: value for axis in self.__slots__ if (value := getattr(self, axis)) is not None}


_ALL: Final = (
    #         framework     mode          context     interaction  approvals  returns      concurrency  leaf
    Contract("deepagents", "isolated", "isolated", "none", True, "automatic", "parallel", None),
    Contract("deepagents", "fork", "fork", "none", True, "automatic", "parallel", True),
    Contract("adk", "chat", "shared", "full", True, "manual", "serial", None),
    Contract("adk", "task", "isolated", "clarify", True, "automatic", "serial", None),
    Contract("adk", "single_turn", "isolated", "none", None, "automatic", "parallel", None),
    Contract("langgraph", "tool", "isolated", "none", True, "automatic", "parallel", None),
    Contract("langgraph", "subgraph", "shared", "none", True, "onward", None, None),
    Contract("langgraph", "handoff", "shared", "full", True, "manual", "serial", None),
)

MODES: Final[Mapping[tuple[str, str], Contract]] = MappingProxyType(
    {(str(contract.framework), str(contract.mode)): contract for contract in _ALL}
)
"""The contract that each framework's mode fixes; an adapter adds what the run showed (`dataclasses.replace`)."""
