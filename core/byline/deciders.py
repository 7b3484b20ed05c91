"""Deciders that ask somebody else's policy engine; examples to start from, each behind an extra of its own."""

import asyncio
from typing import Any, Final
from urllib.parse import quote, urlsplit

from .errors import InputError
from .grants import AccessRequest, DecisionTimedOutError

__all__ = ["CedarDecider", "OpenFgaDecider"]

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


class OpenFgaDecider:
    """Asks an OpenFGA server, one check for each resource: `pip install 'byline[openfga]'`.

    A check is `user:ann`, the relation (`can_use`) and `tool:search` (or `model`, `middleware`, `skill`, `subagent`),
    with the context `run`, `parentAgent`, `thread` and `mode` for the conditions of a model.  A name is spelled with
    percent signs where it is not of letters, digits and `_.-~` (`skill:%2Fskills%2Fpdf`): a user `ann#owner` or `*` is
    a name here, never a set of users.

    `limit` are the seconds that one check may take, the client's own retries included; `credentials` are
    `openfga_sdk.credentials.Credentials`.  Raises `InputError` for a URL or an id that cannot be used, and when the
    extra is missing.
    """

    def __init__(
        self,
        api_url: str,
        store_id: str,
        *,
        model_id: str | None = None,
        relation: str = "can_use",
        limit: float = 2.0,
        credentials: Any = None,
    ) -> None:
        try:
            import openfga_sdk
            from openfga_sdk.client.models import ClientCheckRequest
        except ModuleNotFoundError as missing:
            raise InputError("OpenFGA is not installed: pip install 'byline[openfga]'") from missing
        if not limit > 0:
            raise InputError(f"limit is {limit!r}, expected seconds, more than none")
        if urlsplit(api_url).scheme not in ("http", "https") or not urlsplit(api_url).hostname:
            raise InputError(
                f"OpenFGA cannot be asked at {api_url!r}: expected a URL as http://localhost:8080"
            )
        self._sdk: Final[Any] = openfga_sdk
        self._check: Final[Any] = ClientCheckRequest
        self._relation: Final = relation
        self._limit: Final = limit
        configuration: Any = openfga_sdk.ClientConfiguration
        self._configuration: Final = configuration(
            api_url=api_url, store_id=store_id, authorization_model_id=model_id, credentials=credentials
        )
        try:
            self._configuration.is_valid()
        except Exception as fault:
            raise InputError(
                f"OpenFGA cannot be asked at {api_url!r}, store {store_id!r}: {fault}"
            ) from fault

    async def can_use(self, request: AccessRequest) -> bool:
        """Return whether the server allows it.

        Raises `DecisionTimedOutError` after `limit` seconds, and the client's own exception for any other answer
        than yes or no.
        """
        check = self._check(
            user=f"user:{_spelled(request.user)}",
            relation=self._relation,
            object=f"{request.resource.kind}:{_spelled(request.resource.name)}",
            context={
                "run": request.run_id,
                "parentAgent": request.parent_agent_id,
                "thread": request.thread_id,
                "mode": request.mode,
            },
        )
        try:
            async with asyncio.timeout(self._limit):
                # A client belongs to the event loop it was first used in, and a service may have several.
                async with self._sdk.OpenFgaClient(self._configuration) as client:
                    answer = await client.check(check)
        except TimeoutError as late:
            raise DecisionTimedOutError(
                f"OpenFGA did not answer within {self._limit:g} s: try again, or ask who runs it"
            ) from late
        return answer.allowed is True


def _spelled(name: str) -> str:
    return quote(name, safe="", errors="surrogatepass")
