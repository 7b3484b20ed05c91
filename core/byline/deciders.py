"""Deciders that ask somebody else's policy engine; examples to start from, each behind an extra of its own."""

from typing import Any, Final

from .errors import InputError
from .grants import AccessRequest

__all__ = ["CedarDecider"]

_TYPES: Final = {
    "model": "Model",
    "tool": "Tool",
    "middleware": "Middleware",
    "skill": "Skill",
    "subagent": "Subagent",
}


class CedarDecider:
    """Asks Cedar policies, in this process and without a network: `pip install 'byline[cedar]'`.

    A request is `User::"ann"`, `Action::"RESOURCE_CAN_USE"` and `Tool::"search"` (or `Model`, `Middleware`, `Skill`,
    `Subagent`), with the context `run`, `parentAgent`, `thread` and `mode`.  `entities` are Cedar's own: groups and
    attributes.  A policy that cannot be evaluated fails the decision, and permits nothing.

    Raises `InputError` for policies that cannot be read, and when the extra is missing.
    """

    def __init__(self, policies: str, entities: Any = ()) -> None:
        try:
            import cedarpy
        except ModuleNotFoundError as missing:
            raise InputError("Cedar is not installed: pip install 'byline[cedar]'") from missing
        self._cedar: Final[Any] = cedarpy
        try:
            cedarpy.format_policies(policies)
        except ValueError as fault:
            raise InputError(f"the policies cannot be read as Cedar: {fault}") from fault
        self._policies: Final = policies
        self._entities: Final = entities if isinstance(entities, str) else list(entities)

    def can_use(self, request: AccessRequest) -> bool:
        """Return whether the policies allow it.  Raises `RuntimeError` when one of them cannot be evaluated."""
        # As type and id, never as text that would have to be quoted: a name is the caller's.
        asked = {
            "principal": {"type": "User", "id": request.user},
            "action": {"type": "Action", "id": request.permission},
            "resource": {"type": _TYPES[request.resource.kind], "id": request.resource.name},
            "context": {
                "run": request.run_id,
                "parentAgent": request.parent_agent_id,
                "thread": request.thread_id,
                "mode": request.mode,
            },
        }
        result = self._cedar.is_authorized(asked, self._policies, self._entities)
        if result.diagnostics.errors:
            raise RuntimeError("; ".join(map(str, result.diagnostics.errors)))
        return result.allowed is True
