"""One run of an ADK app."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, TypeAlias
from uuid import uuid4

from byline import signals as s
from byline.agent import Sink
from byline.artifacts import Artifacts
from byline.errors import InputError, ResumeError
from byline.events import Message, RunAgentInput
from byline.grants import Grant, Grants, Guard, Inventory, Nested, Permit
from byline.hooks import Plugins
from byline.plain import plain
from byline.user import current_user
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.run_config import RunConfig, StreamingMode  # type: ignore[attr-defined,unused-ignore]
from google.adk.apps.app import App
from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
from google.adk.memory.in_memory_memory_service import InMemoryMemoryService
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types

from . import _compat
from ._artifacts import CARRIER, Carrier, carry
from ._client_tools import OFFERED, offer
from ._doubts import doubts
from ._history import PastRun, past_runs
from ._identity import Book
from ._input import Answer, Turn, turns
from ._observer import WATCH, observe
from ._permit import GRANT, guard_runs, inventory
from ._watch import Watch

__all__ = ["AdkSession", "BoundRunner", "UserId", "bind"]

UserId: TypeAlias = str | Callable[[RunAgentInput], str]

_log = logging.getLogger("byline")

DEFAULT_USER: Final = "user"

CONTEXT: Final = "_ag_ui_context"
"""The key of the session's state that holds the input's `context`: the one that ag-ui-adk uses."""

FORWARDED_PROPS: Final = "_ag_ui_forwarded_props"
"""The key of the session's state that holds the input's `forwardedProps`, where they are an object."""


def bind(target: Any, plugins: Plugins, **options: Any) -> "BoundRunner":
    """Take hold of a runner, an app or a root agent; raises `UnsupportedVersionError`."""
    _compat.check()
    runner = _runner(target)
    for doubt in doubts(runner.agent):
        _log.warning("%s; %s", doubt.message, doubt.cure)
    return BoundRunner(runner, plugins, **options)


def _beside(run_input: RunAgentInput) -> dict[str, Any]:
    """Return what an input brings beside messages, tools and state, by its key in the session's state."""
    context = [{"description": one.description, "value": one.value} for one in run_input.context or ()]
    props = run_input.forwarded_props
    return {CONTEXT: context, FORWARDED_PROPS: plain(props) if isinstance(props, Mapping) else {}}


def _runner(target: Any) -> Runner:
    """Return the runner of a target; one that is none gets in-memory services."""
    if isinstance(target, Runner):
        return target
    services: dict[str, Any] = {
        "session_service": InMemorySessionService(),
        "artifact_service": InMemoryArtifactService(),
        "memory_service": InMemoryMemoryService(),
    }
    if isinstance(target, App):
        return Runner(app=target, **services)
    if isinstance(target, BaseAgent):
        return Runner(app_name="byline", agent=target, **services)
    return Runner(app=App(name="byline", root_agent=target), **services)


class BoundRunner:
    """A runner in our hands.

    `user_id` says whose sessions `run()` uses, a value or a callable of the input.  `run_config` goes to every run;
    `run()` streams (`StreamingMode.SSE`) without one.  With `grants` no run starts without a grant for `agent_id` (the
    root agent's name, if it is not given) that covers what the app uses; `allow` names the tools and toolsets that
    may hide what they use.  With `artifacts` the root's model gets placeholders for the artifacts in its subagents'
    results, and a tool to look them up.
    """

    def __init__(
        self,
        runner: Runner,
        plugins: Plugins,
        *,
        user_id: UserId = DEFAULT_USER,
        run_config: RunConfig | None = None,
        grants: Grants | None = None,
        agent_id: str | None = None,
        allow: Iterable[str] = (),
        nested: Nested = "trust",
        artifacts: Artifacts | None = None,
    ) -> None:
        self.runner: Final = runner
        self.plugins: Final = plugins
        self.user_id: Final = user_id
        self.run_config: Final = run_config
        self.guard: Final = (
            None if grants is None else Guard(grants, agent_id or runner.agent.name, allow, nested)
        )
        self.artifacts: Final = artifacts

    def uses(self) -> Inventory:
        """Return what a run of the app uses, as it is now."""
        return inventory(self.runner)

    async def past(self, thread_id: str) -> tuple[Iterable[PastRun] | None, str | None]:
        """Return the runs of a thread as its session has them, and whom they were for if that was told apart.

        A callable `user_id` is asked with an input that has nothing but the thread's id.
        """
        runner = self.runner
        user = self._user(
            RunAgentInput(
                thread_id=thread_id,
                run_id="",
                messages=[],
                tools=[],
                context=[],
                state={},
                forwarded_props={},
            )
        )
        session = await runner.session_service.get_session(
            app_name=runner.app_name, user_id=user, session_id=thread_id
        )
        if session is None:
            return None, None
        whose = user if user == current_user() else None
        return past_runs(thread_id, runner.agent, session), whose

    def _user(self, run_input: RunAgentInput) -> str:
        user = self.user_id(run_input) if callable(self.user_id) else self.user_id
        if not isinstance(user, str) or not user:
            raise InputError(f"user_id gave {user!r}, expected a text that is not empty")
        return user

    def open(self, run_input: RunAgentInput) -> "AdkSession":
        """Return the session of an AG-UI input."""
        user = self._user(run_input)
        if run_input.state is not None and not isinstance(run_input.state, Mapping):
            raise InputError(
                f"state is {type(run_input.state).__name__}, expected an object: a session's state has names"
            )
        config = self.run_config or RunConfig(streaming_mode=StreamingMode.SSE)
        session = AdkSession(self, user, run_input.thread_id, {"run_config": config})
        session.run_id, session.parent_run_id = run_input.run_id, run_input.parent_run_id
        session.history = run_input.messages
        session.run_input = run_input
        return session

    def open_native(
        self, *, user_id: str, session_id: str, new_message: types.Content | None = None, **kwargs: Any
    ) -> "AdkSession":
        """Return the session of `runner.run_async(user_id=..., session_id=..., new_message=..., **kwargs)`."""
        if "live_request_queue" in kwargs:
            raise InputError(
                "run_live is not supported: a live session has no turns that a run could be; "
                "leave live_request_queue out and send text with new_message"
            )
        if self.run_config is not None:
            kwargs.setdefault("run_config", self.run_config)
        session = AdkSession(self, user_id, session_id, kwargs)
        session.run_id = str(uuid4())
        session.native_message = new_message
        return session


class AdkSession:
    """Runs the app once and reports what happens."""

    def __init__(self, bound: BoundRunner, user_id: str, session_id: str, kwargs: dict[str, Any]) -> None:
        self.thread_id = session_id
        self.run_id = ""
        self.parent_run_id: str | None = None
        self.history: Sequence[Message] = ()
        self.result: Any = None
        self.run_input: RunAgentInput | None = None
        self.native_message: types.Content | None = None
        self._bound: Final = bound
        self._where: Final[dict[str, Any]] = {"user_id": user_id, "session_id": session_id}
        self._kwargs: Final = kwargs
        self._book: Final = Book(bound.runner.agent)
        self._state: dict[str, Any] = {}
        self._turns: list[Turn] = []
        self.permit: Permit | None = None
        self._grants: list[Grant] = []

    async def prepare(self) -> None:
        """Hold the run to its grant, read the session, and make ADK's messages of the input.

        Raises a `GrantError` for a run that is not permitted, `ResumeError` for an answer that nothing waits for, `InputError` for a session that is not there.
        """
        runner = self._bound.runner
        guard = self._bound.guard
        if guard is not None:
            self._grants = guard.check(self.permit, self.run_id, self.thread_id, self._bound.uses())
        service = runner.session_service
        session = await service.get_session(app_name=runner.app_name, **self._where)
        if session is not None:
            self._book.replay(session.events)
            self._state = dict(session.state)
            self.history = [*self.history, *self._book.history()]
        elif self.run_input is None and not runner.auto_create_session:
            raise InputError(
                f"there is no session {self.thread_id!r} of user {self._where['user_id']!r} in app "
                f"{runner.app_name!r}: create it with session_service.create_session, or check whose it is"
            )
        elif self.run_input is not None and self.run_input.resume:
            raise ResumeError(
                f"resume: there is no session {self.thread_id!r} of user {self._where['user_id']!r} in app "
                f"{runner.app_name!r}, so nothing waits for an answer: check whose it is"
            )
        self._turns = [self._native_turn()] if self.run_input is None else turns(self.run_input, self._book)
        if guard is not None:
            for grant in self._grants:
                await asyncio.to_thread(guard.grants.spend, grant)  # last, but before anything is written
        if self.run_input is None:
            return
        changes = {
            key: value
            for key, value in (self.run_input.state or {}).items()
            if key not in self._state or plain(self._state[key]) != value
        }
        changes |= {
            key: value
            for key, value in _beside(self.run_input).items()
            if value != self._state.get(key, type(value)())
        }
        if session is None and not runner.auto_create_session:
            await service.create_session(app_name=runner.app_name, state=changes, **self._where)
            self._state.update(changes)
        elif changes:
            self._kwargs["state_delta"] = changes
            self._state.update(changes)

    def _native_turn(self) -> Turn:
        message = self.native_message
        answers = []
        for part in (message.parts if message is not None else None) or ():
            response = part.function_response
            use = self._book.use(response.id) if response is not None else None
            if use is not None and response is not None:
                answers.append(Answer(use, dict(response.response or {}), shown=False))
        return Turn(message or types.Content(), answers)

    async def drive(self, sink: Sink) -> s.RunFinished | s.RunCancelled | s.RunFailed:
        """Run the app under observation.

        In lock-step: ADK's agents wait for an event of theirs that is not partial to be taken, and it is taken
        again only when the consumer has read what it gave.  So no tool runs before its call was seen.
        """
        runner = self._bound.runner
        known = self.run_input.state if self.run_input is not None else None
        observe(runner)
        if self._grants:
            guard_runs(runner)
        GRANT.set(self._grants[0] if self._grants else None)
        CARRIER.set(self._carrier())
        if self.run_input is not None and self.run_input.tools:
            offer(runner)
            OFFERED.set(tuple(self.run_input.tools))
        watch = Watch(
            sink,
            self._book,
            state=self._state,
            known=known,
            client_tools=[tool.name for tool in OFFERED.get()],
        )
        WATCH.set(watch)
        try:
            for turn in self._turns:
                await self._send(sink, watch, turn)
        except BaseException:
            watch.fail_what_failed()
            raise
        end = watch.end()
        if isinstance(end, s.RunFinished) and end.result is not s.ABSENT:
            self.result = end.result
        return end

    def _carrier(self) -> Carrier | None:
        bound = self._bound
        if bound.artifacts is None:
            return None
        carry(bound.runner)
        user = self._where["user_id"] if self.permit is None else self.permit.user
        return Carrier(bound.artifacts, self.thread_id, user, self._book, bound.uses().named("subagent"))

    async def _send(self, sink: Sink, watch: Watch, turn: Turn) -> None:
        for answer in turn.answers:
            watch.answer(answer.use.id, answer.response, show=not answer.shown)
        arguments = {**self._where, **self._kwargs}
        if turn.message.parts:
            arguments["new_message"] = turn.message
        carrier = CARRIER.get()
        async with aclosing(self._bound.runner.run_async(**arguments)) as events:
            async for event in events:
                whole = True
                try:
                    whole = watch.event(event)
                    if carrier is not None:
                        await asyncio.to_thread(carrier.take, event)
                except Exception as fault:
                    sink.fault("event", fault)
                if whole:
                    await sink.drained()
        self._kwargs.pop("state_delta", None)
