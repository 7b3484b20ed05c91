"""The endpoints: an AG-UI agent over HTTP.

Every fault before the stream begins is a JSON error with a status; after it, a `RUN_ERROR` in the stream.
"""

import asyncio
import inspect
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import quote, unquote_to_bytes

from ag_ui.core import AgentCapabilities, MultiAgentCapabilities, SubagentInfo, TransportCapabilities
from ag_ui.encoder import EventEncoder
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from byline.agent import Agent
from byline.errors import BylineError, InputError, ResumeError, StoreError
from byline.events import PROTOCOL_VERSION, BaseEvent, RunAgentInput, SubagentStartedEvent
from byline.grants import GrantError, Permit
from byline.serve._runs import Limits, LiveRun, RefusedError, Runs
from byline.team import LinksForbiddenError, LinksRefusedError
from byline.user import as_user

if TYPE_CHECKING:
    from byline.serve._shared import FollowedRun, Sharing

__all__ = ["UserOf", "build"]

UserOf: TypeAlias = Callable[[Request], "str | Awaitable[str | None] | None"]
"""Says who asks.  Raise `PermissionError` for nobody we know (401); return `None` for anonymous."""

_BODY_TIMEOUT: Final = 30.0
"""How many seconds a request may take to arrive."""

_UNREAD: Final = frozenset({408, 413, 415})
"""The refusals that come before the request was read to its end."""

_SEEN: Final = 1000
"""How many subagents are remembered for `capabilities`."""

_log = logging.getLogger("byline")


class EventStream(Response):
    """The stream of a run, from one frame on, until its end or until the client goes away."""

    media_type = EventEncoder().get_content_type()

    def __init__(
        self, live: "LiveRun | FollowedRun", following: int, keep_alive: float, address: str
    ) -> None:
        super().__init__(
            headers={
                "cache-control": "no-cache, no-transform",
                "x-accel-buffering": "no",  # nginx would hold the events back
                "content-location": address,
            }
        )
        del self.headers["content-length"]
        self._live: Final = live
        self._following: Final = following
        self._keep_alive: Final = keep_alive

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Answer the request."""
        async with self._live.reading(self._following) as reader:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            watching = asyncio.create_task(_until_gone(receive, reader.leave))
            try:
                while (data := await reader.read(self._keep_alive)) is not None:
                    body = data or b": keep-alive\n\n"
                    await send({"type": "http.response.body", "body": body, "more_body": True})
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            except OSError:
                pass  # gone while we wrote
            finally:
                watching.cancel()


async def _until_gone(receive: Receive, leave: Callable[[], None]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    leave()


class Service:
    """The endpoints of one agent."""

    def __init__(
        self, agent: Agent, runs: Runs, user: UserOf | None, path: str, seen: Mapping[str, str | None]
    ) -> None:
        self._agent: Final = agent
        self._runs: Final = runs
        self._user: Final = user
        self._path: Final = path
        self._seen: Final = seen

    def routes(self) -> list[Route]:
        """Return the routes."""
        base = self._path.rstrip("/")
        return [
            Route(self._path, self.run, methods=["POST"]),
            Route(f"{base}/threads/{{rest:path}}", self.thread, methods=["GET", "DELETE"]),
            Route(f"{base}/capabilities", self.capabilities, methods=["GET"]),
            Route(f"{base}/health", self.health, methods=["GET"]),
        ]

    async def run(self, request: Request) -> Response:
        """Begin a run and stream it."""
        user = await self._who(request)
        run_input = _parsed(await _body(request, self._runs.limits.max_body))
        live = await self._runs.begin(run_input, user, await self._permit(run_input, user))
        address = self._address(live)
        response = EventStream(live, 0, self._runs.limits.keep_alive, address)
        async with live.reading():  # the grace begins when the client has gone, not before it got an answer
            await live.begun()
        return response

    async def thread(self, request: Request) -> Response:
        """Read a run again, or stop it."""
        user = await self._who(request)
        match _segments(request, f"{self._path.rstrip('/')}/threads/"):
            case [thread] if request.method == "GET":
                return await self._history(thread, user)
            case [thread, "runs", run_id]:
                following = None if request.method == "DELETE" else _following(request)
                live = await self._runs.find(thread, run_id, user, following)
            case _:
                raise RefusedError(404, "not_found", "expected threads/THREAD or threads/THREAD/runs/RUN")
        if following is None:
            await live.stop("the client stopped the run")
            return JSONResponse({"status": "stopping"}, status_code=202)
        return EventStream(live, following, self._runs.limits.keep_alive, self._address(live))

    async def _history(self, thread: str, user: str | None) -> Response:
        """Give a thread's messages with their owners, and its invocation tree, as far as they are kept."""
        with as_user(user):  # a session of ADK's is looked for among this user's
            known = await self._agent.history(thread)
        # A checkpoint does not say whose a thread is; where users are told apart it stays closed.
        mine = known is not None and (known.user == user if known.ledger is not None else self._user is None)
        if known is None or not mine:
            raise RefusedError(404, "no_such_thread", f"nothing is known of thread {thread!r}")
        body = await asyncio.to_thread(lambda: json.dumps(known.to_json()))
        return Response(body, media_type="application/json")

    async def _permit(self, run_input: RunAgentInput, user: str | None) -> Permit | None:
        """Ask whether the user may run this agent, where its runs need that."""
        if not self._agent.guarded:
            return None
        if user is None:
            raise RefusedError(401, "unauthorized", "this agent runs only for users that are known")
        return await self._agent.permit(user, run_id=run_input.run_id, thread_id=run_input.thread_id)

    async def capabilities(self, request: Request) -> Response:
        """Say what the agent can do, its subagents among it."""
        await self._who(request)
        known = {**_described(self._agent), **self._seen}
        subagents = [SubagentInfo(name=name, description=about) for name, about in sorted(known.items())]
        what = AgentCapabilities(
            transport=TransportCapabilities(streaming=True, resumable=True),
            multi_agent=MultiAgentCapabilities(supported=True, delegation=True, subagents=subagents),
        )
        return Response(what.model_dump_json(by_alias=True), media_type="application/json")

    async def health(self, request: Request) -> Response:  # noqa: ARG002
        """Say that the server is there, and how busy."""
        closing = self._runs.closing
        return JSONResponse(
            {
                "status": "closing" if closing else "ok",
                "runs": self._runs.open,
                "protocolVersion": PROTOCOL_VERSION,
            },
            status_code=503 if closing else 200,
        )

    def _address(self, live: "LiveRun | FollowedRun") -> str:
        thread, run = (quote(part, safe="") for part in live.key)
        return f"{self._path.rstrip('/')}/threads/{thread}/runs/{run}"

    async def _who(self, request: Request) -> str | None:
        if self._user is None:
            return None
        try:
            answer = self._user(request)
            name = await answer if inspect.isawaitable(answer) else answer
        except PermissionError as fault:
            raise RefusedError(401, "unauthorized", str(fault) or "who asks is not known") from fault
        if name is not None and not isinstance(name, str):
            raise TypeError(f"user= returned {type(name).__name__}, expected a name (str) or None")
        return name


def _described(agent: Agent) -> dict[str, str | None]:
    """Return the names of the team's subagents, where the adapter can tell them before a run."""
    try:
        return dict.fromkeys(agent.uses().named("subagent"))
    except BylineError:
        return {}


async def _body(request: Request, limit: int) -> bytes:
    """Return the request's body; the content type is asked for because a foreign page cannot send it unasked."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RefusedError(
            415, "not_json", f"the content type is {kind or 'absent'}, expected application/json"
        )
    declared = request.headers.get("content-length", "")
    too_large = RefusedError(413, "too_large", f"the request is larger than {limit} bytes")
    if declared.isdigit() and int(declared) > limit:
        raise too_large
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(_BODY_TIMEOUT):
            async for part in request.stream():
                size += len(part)
                if size > limit:
                    raise too_large
                parts.append(part)
    except TimeoutError as fault:
        raise RefusedError(408, "too_slow", f"the request took longer than {_BODY_TIMEOUT:g} s") from fault
    return b"".join(parts)


def _parsed(body: bytes) -> RunAgentInput:
    try:
        return RunAgentInput.model_validate_json(body)
    except ValidationError as fault:
        errors = fault.errors(include_url=False, include_input=False, include_context=False)
        if errors[0]["type"] == "json_invalid":
            raise RefusedError(400, "not_json", f"the request is no JSON: {errors[0]['msg']}") from fault
        said = "; ".join(
            f"{'.'.join(map(str, error['loc'])) or 'input'}: {error['msg']}" for error in errors[:5]
        )
        raise RefusedError(422, "bad_input", f"not a RunAgentInput: {said}") from fault


def _segments(request: Request, before: str) -> list[str]:
    """Return the decoded parts of the path: an id may hold anything, a slash too."""
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    rest = raw.partition(b"?")[0].decode("ascii", "replace").partition(before)[2]
    return [unquote_to_bytes(part).decode("utf-8", "replace") for part in rest.split("/")]


def _following(request: Request) -> int:
    last = request.headers.get("last-event-id") or request.query_params.get("lastEventId") or ""
    if not last:
        return 0
    if not (last.isascii() and last.isdigit() and len(last) < 16):
        raise RefusedError(400, "bad_event_id", f"Last-Event-ID is {last[:40]!r}, expected a number we sent")
    return int(last) + 1


async def _refused(request: Request, fault: Exception) -> Response:  # noqa: ARG001
    assert isinstance(fault, RefusedError)  # noqa: S101 - registered for it alone
    headers = {"retry-after": "1"} if fault.status == 503 else {}
    if fault.status in _UNREAD:
        headers["connection"] = "close"  # the rest of the request would be taken for the next one
    return _error(fault.status, fault.code, str(fault), headers, **fault.more)


async def _bad_input(request: Request, fault: Exception) -> Response:  # noqa: ARG001
    if isinstance(fault, GrantError | LinksForbiddenError):
        return _error(403, "denied", str(fault))
    if isinstance(fault, LinksRefusedError):
        return _error(409, "bad_links", str(fault))
    if isinstance(fault, StoreError):
        _log.error("the store cannot be used", exc_info=fault)
        return _error(503, "store", "the server's store cannot be used now", {"retry-after": "1"})
    if isinstance(fault, ResumeError):
        return _error(409, "bad_resume", str(fault))
    return _error(422 if isinstance(fault, InputError) else 500, "bad_input", str(fault))


async def _http_error(request: Request, fault: Exception) -> Response:  # noqa: ARG001
    assert isinstance(fault, HTTPException)  # noqa: S101 - registered for it alone
    return _error(fault.status_code, "http", str(fault.detail), dict(fault.headers or {}))


async def _gone(request: Request, fault: Exception) -> Response:  # noqa: ARG001
    return _error(400, "client_gone", "the client went away before its request was read")


class _Faults:
    """Answers what nothing else caught.  Starlette does it outside of CORS, where no page could read the answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app: Final = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except Exception as fault:
            if begun or scope["type"] != "http":
                raise
            _log.error("%s %s failed", scope["method"], scope["path"], exc_info=fault)
            await _error(500, "internal", "the server failed; see its log")(scope, receive, send)


def _error(
    status: int, code: str, message: str, headers: dict[str, str] | None = None, **more: str
) -> Response:
    body = json.dumps({"error": {"code": code, "message": message, **more}})
    return Response(body, status, headers, media_type="application/json")


def build(
    agent_for: Callable[[Callable[[BaseEvent], object]], Agent],
    *,
    path: str,
    user: UserOf | None,
    cors: Sequence[str],
    limits: Limits,
    sharing: "Sharing | None" = None,
) -> Starlette:
    """Return the application; `agent_for` is given the observer that the service adds to the agent."""
    # What `capabilities` tells where nobody can say it beforehand: the subagents that runs have shown.
    seen: dict[str, str | None] = {}

    def watch(event: BaseEvent) -> None:
        if isinstance(event, SubagentStartedEvent) and len(seen) < _SEEN:
            seen.setdefault(event.name, event.description)

    agent = agent_for(watch)
    runs = Runs(agent, limits, sharing)
    service = Service(agent, runs, user, path, seen)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        runs.start()
        yield
        await runs.close()

    middleware = []
    if cors:
        middleware.append(
            Middleware(
                CORSMiddleware,
                allow_origins=list(cors),
                allow_methods=["GET", "POST", "DELETE"],
                allow_headers=["*"],
                expose_headers=["content-location"],
            )
        )
    middleware.append(Middleware(_Faults))
    handlers: dict[Any, Any] = {
        RefusedError: _refused,
        BylineError: _bad_input,
        HTTPException: _http_error,
        ClientDisconnect: _gone,
    }
    application = Starlette(
        routes=service.routes(), middleware=middleware, exception_handlers=handlers, lifespan=lifespan
    )
    application.state.runs = runs
    return application
