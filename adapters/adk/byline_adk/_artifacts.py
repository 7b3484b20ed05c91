"""Placeholders for artifacts in what the root agent's model is sent; the session keeps the original.

Measured, and what this module rests on:

* A request shares the response of a call with the stored session (from 2.13): new parts are made, none is changed.
* ADK takes its own ids of calls off a request, so a result is known by the name of the call and what it says.
* What a chat agent said reaches the root as quoted text in a user's content that begins with "For context:".
* A tool that is appended to a request is declared and executed, for this request only: so the look-up is the root's
  alone, without a change to the app.
"""

import asyncio
import hashlib
import json
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final

from byline.artifacts import Artifact, ArtifactError, Artifacts, NotTheParentError
from byline.errors import StoreError
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.genai import types

from ._identity import Book, Kind
from ._permit import is_the_parents

__all__ = ["CARRIER", "Carrier", "carry"]

CARRIER: Final[ContextVar["Carrier | None"]] = ContextVar("byline_adk_carrier", default=None)
"""Who carries the artifacts of the run in this context."""

_SUBAGENTS_TOOLS: Final[ContextVar[dict[str, Any] | None]] = ContextVar("byline_adk_tools_of", default=None)
"""The tools of the request that is under way in this context, where it is a subagent's."""

_QUOTED: Final = "For context:"


class Carrier:
    """Keeps the artifacts of one run's subagents, and tells the root's model of them."""

    def __init__(
        self,
        artifacts: Artifacts,
        thread: str,
        user: str,
        book: Book,
        subagents: frozenset[str],
    ) -> None:
        self.artifacts: Final = artifacts
        self.where: Final = {"thread": thread, "user": user}
        self._book: Final = book
        self._subagents: Final = subagents
        self._known: set[str] | None = None

    def take(self, event: Any) -> None:
        """Keep the artifacts of a subagent's result, and of what a chat agent says: that is its result."""
        if event.partial or event.content is None:
            return
        maker = self._book.owner(event) if event.author in self._subagents else None
        for part in event.content.parts or ():
            if maker is not None and maker.kind is Kind.CHAT and part.text:
                self._keep(part.text, maker.name, maker.id)
            answer = part.function_response
            if answer is not None and answer.name in self._subagents:
                use = self._book.use(answer.id)
                spawned = None if use is None else use.spawned
                source = _source(answer.name, answer.response)
                for text in _texts(answer.response):
                    self._keep(text, source, None if spawned is None else spawned.id)

    def request(self, contents: list[Any]) -> list[Any]:
        """Return the contents of a request with placeholders."""
        sent: list[Artifact] = []
        fresh = [self._content(content, sent) for content in contents]
        self.artifacts.sent(sent)
        return fresh if sent else contents

    def _content(self, content: Any, sent: list[Artifact]) -> Any:
        parts = list(content.parts or ())
        quoted = content.role == "user" and bool(parts) and (parts[0].text or "").startswith(_QUOTED)
        fresh = [self._part(part, sent, quoted=quoted) for part in parts]
        changed = any(new is not old for new, old in zip(fresh, parts, strict=True))
        return content.model_copy(update={"parts": fresh}) if changed else content

    def _part(self, part: Any, sent: list[Artifact], *, quoted: bool) -> Any:
        answer = part.function_response
        before = len(sent)
        if answer is not None and answer.name in self._subagents:
            source = _source(answer.name, answer.response)
            response = _mapped(answer.response, lambda text: self._short(text, source, sent))
            if len(sent) > before:
                return part.model_copy(
                    update={"function_response": answer.model_copy(update={"response": response})}
                )
        elif quoted and part.text:
            text = part.text
            for name in sorted(name for name in self._subagents if f"[{name}]" in part.text):
                self._keep(text, name, None)
                text = self._short(text, name, sent)
            if len(sent) > before:
                return part.model_copy(update={"text": text})
        return part

    def _short(self, text: str, source: str, sent: list[Artifact]) -> str:
        short = self.artifacts.abbreviate(text, source=source, known=self._ids(), **self.where)
        sent += short.artifacts
        return short.text

    def _keep(self, text: str, source: str, invocation: str | None) -> None:
        kept = self.artifacts.keep(text, source=source, invocation=invocation, **self.where)
        self._ids().update(artifact.id for artifact in kept.artifacts)

    def _ids(self) -> set[str]:
        """Return the ids that can be looked up: only what was kept is replaced."""
        if self._known is None:
            try:
                self._known = set(self.artifacts.store.ids(**self.where))
            except StoreError:
                self._known = set()  # the originals stay
        return self._known


class _LookUp(BaseTool):  # type: ignore[misc,unused-ignore]
    """Gives the root the text behind a placeholder."""

    byline_brings_it = True

    def __init__(self, carrier: Carrier) -> None:
        super().__init__(
            name=str(carrier.artifacts.lookup),
            description=(
                "Get the full text of an artifact that the conversation only mentions, by the id in its "
                "placeholder. Only for work that needs the text itself: the user has it already."
            ),
        )
        self._carrier: Final = carrier

    def _get_declaration(self) -> types.FunctionDeclaration:
        schema = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=schema
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        """Return the text, or why there is none."""
        carrier = self._carrier
        try:
            text = await asyncio.to_thread(carrier.artifacts.look_up, str(args.get("id")), **carrier.where)
        except (ArtifactError, StoreError) as fault:
            return {"error": f"{getattr(fault, 'code', 'store_unavailable')}: {fault}"}
        return {"result": text}


class _NotTheParent(_LookUp):
    """Answers a subagent."""

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        """Return why there is nothing."""
        return {"error": f"{NotTheParentError.code}: only the parent agent can look an artifact up"}


class _Placeholders(BasePlugin):  # type: ignore[misc,unused-ignore]
    """Changes the root's requests; there after a run has had artifacts, and idle in others."""

    def __init__(self) -> None:
        super().__init__(name="byline_artifacts")

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        """Put the placeholders into the request, and the look-up among its tools."""
        carrier = CARRIER.get()
        _SUBAGENTS_TOOLS.set(None)
        if carrier is None:
            return
        if not is_the_parents(callback_context):
            _SUBAGENTS_TOOLS.set(llm_request.tools_dict)
            return
        llm_request.contents = await asyncio.to_thread(carrier.request, llm_request.contents)
        if carrier.artifacts.lookup:
            llm_request.append_tools([_LookUp(carrier)])

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
        """Let a stand-in answer a subagent that looks something up: nobody told it of the tool."""
        carrier, tools = CARRIER.get(), _SUBAGENTS_TOOLS.get()
        if carrier is None or tools is None or not carrier.artifacts.lookup or llm_response.content is None:
            return
        for part in llm_response.content.parts or ():
            if part.function_call is not None and part.function_call.name == carrier.artifacts.lookup:
                tools.setdefault(carrier.artifacts.lookup, _NotTheParent(carrier))


def carry(runner: Any) -> None:
    """Put the plugin behind the observer, if there is none."""
    plugins = runner.plugin_manager.plugins
    if not any(type(plugin) is _Placeholders for plugin in plugins):
        plugins.insert(1, _Placeholders())


def _source(name: str, response: Any) -> str:
    raw = json.dumps(response, sort_keys=True, default=str, ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )
    return f"{name}:{hashlib.blake2b(raw, digest_size=8).hexdigest()}"


def _texts(value: Any) -> list[str]:
    found: list[str] = []

    def see(text: str) -> str:
        found.append(text)
        return text

    _mapped(value, see)
    return found


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    """Return a copy of JSON data with every text in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _mapped(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_mapped(item, change) for item in value]
    return value
