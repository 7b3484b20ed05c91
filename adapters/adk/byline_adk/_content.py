"""What ADK's values say, as the protocol has it: results, usage, questions, streamed arguments."""

import json
from collections.abc import Mapping
from typing import Any, Final

from byline import signals as s
from byline.events import TokenUsage
from byline.plain import plain

__all__ = [
    "PLUMBING",
    "StreamedArguments",
    "auth_config",
    "completed",
    "question",
    "result",
    "to_json",
    "usage",
]

CONFIRMATION: Final = "adk_request_confirmation"
INPUT: Final = "adk_request_input"
CREDENTIAL: Final = "adk_request_credential"
FINISH_TASK: Final = "finish_task"

PEER_INPUT: Final = "mock_function_call_for_required_user_input"
PEER_AUTH: Final = "mock_function_call_for_required_user_auth"
"""What ADK calls by itself where a remote agent's A2A task waits for words, or for a sign-in."""

PLUMBING: Final = frozenset(
    {CONFIRMATION, INPUT, CREDENTIAL, FINISH_TASK, "set_model_response", PEER_INPUT, PEER_AUTH}
)
"""Calls that ADK makes its own work of: shown as what they mean, a result or an interrupt, never as a tool call."""

_CONFIRMATION_SCHEMA: Final = {
    "type": "object",
    "properties": {"confirmed": {"type": "boolean"}, "payload": {}},
    "required": ["confirmed"],
}


_CREDENTIAL_SCHEMA: Final = {
    "type": "object",
    "properties": {"exchangedAuthCredential": {"type": "object"}},
    "required": ["exchangedAuthCredential"],
}

_TOLD_OF_CREDENTIALS: Final = frozenset(
    {
        "authtype",
        "oauth2",
        "clientid",
        "authuri",
        "state",
        "redirecturi",
        "tokenendpointauthmethod",
        "http",
        "scheme",
    }
)
"""What of a credential is told: what a client needs to send its user to sign in, and no secret by any name."""


def auth_config(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `AuthConfig` that a request for a credential asks to complete."""
    config = args.get("authConfig", args.get("auth_config"))
    return plain(config) if isinstance(config, Mapping) else {}


def _without_secrets(config: Mapping[str, Any]) -> dict[str, Any]:
    def told(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {
            key: told(inner)
            for key, inner in value.items()
            if key.replace("_", "").lower() in _TOLD_OF_CREDENTIALS
        }

    return {
        key: told(value) if key.lower().endswith("credential") else value for key, value in config.items()
    }


def completed(config: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return an `AuthConfig` with what a client gave; what it was not told it need not give."""
    out = dict(config)
    for key, value in given.items():
        known = out.get(key)
        out[key] = (
            completed(known, value) if isinstance(known, Mapping) and isinstance(value, Mapping) else value
        )
    return out


def to_json(value: Any) -> str:
    """Return JSON text."""
    return json.dumps(plain(value), ensure_ascii=False)


def result(response: Any) -> str:
    """Return what a tool answered as text; ADK wraps what is no object as `{"result": value}`."""
    if isinstance(response, Mapping) and len(response) == 1 and "result" in response:
        response = response["result"]
        if response is None:
            return ""
    return response if isinstance(response, str) else to_json(response)


def usage(metadata: Any, provider: str | None, model: str | None) -> TokenUsage | None:
    """Return what a model run cost.

    The prompt's count holds the cached part already; the thoughts' count is not in the candidates'.
    """
    if metadata is None:
        return None
    asked, answered = metadata.prompt_token_count, metadata.candidates_token_count
    thoughts, cached = metadata.thoughts_token_count, metadata.cached_content_token_count
    if asked is None and answered is None and thoughts is None:
        return None
    # What the prompt's tool results cost is not in the prompt's count.
    asked = _sum(asked, metadata.tool_use_prompt_token_count)
    return TokenUsage(
        provider=provider,
        model=model,
        input_tokens=asked,
        output_tokens=_sum(answered, thoughts),
        reasoning_tokens=thoughts,
        cached_input_tokens=cached,
    )


def _sum(one: int | None, other: int | None) -> int | None:
    return one if other is None else other if one is None else one + other


def question(owner: str | None, call: Any, pending: Any = s.ABSENT) -> s.Question:
    """Return what a long-running call asks; `pending` is what the tool returned in the meantime."""
    args: Mapping[str, Any] = call.args or {}
    if call.name == CONFIRMATION:
        original = args.get("originalFunctionCall") or {}
        hint = (args.get("toolConfirmation") or {}).get("hint")
        payload = (args.get("toolConfirmation") or {}).get("payload")
        return s.Question(
            owner,
            call.id,
            "confirmation",
            message=hint or None,
            call=original.get("id"),
            schema=_CONFIRMATION_SCHEMA,
            metadata=None if payload is None else {"adk": {"payload": payload}},
        )
    if call.name == INPUT:
        schema = args.get("response_schema", args.get("responseSchema"))
        payload = args.get("payload")
        return s.Question(
            owner,
            call.id,
            "input_required",
            message=args.get("message"),
            schema=schema if isinstance(schema, Mapping) else None,
            metadata=None if payload is None else {"adk": {"payload": payload}},
        )
    if call.name in (PEER_INPUT, PEER_AUTH):
        reason, name = (
            ("input_required", "input_required")
            if call.name == PEER_INPUT
            else ("authentication", "auth_required")
        )
        asked = args.get(name)
        return s.Question(owner, call.id, reason, message=asked if isinstance(asked, str) else None)
    if call.name == CREDENTIAL:
        return s.Question(
            owner,
            call.id,
            "authentication",
            call=args.get("functionCallId", args.get("function_call_id")),
            schema=_CREDENTIAL_SCHEMA,
            metadata={"adk": {"authConfig": _without_secrets(auth_config(args))}},
        )
    return s.Question(
        owner,
        call.id,
        "tool_call",
        message=None,
        call=call.id,
        metadata=None if pending is s.ABSENT else {"adk": {"pending": pending}},
    )


class StreamedArguments:
    """Fragments of one call's arguments as pieces of JSON text.

    A fragment is passed on while fragments arrive in the order of the document: whole values and pieces of strings
    under the names of the object itself.  With the first that does not, the rest waits for the whole, which
    `rest` writes behind what was said; if nothing was said yet, that is all of it.
    """

    __slots__ = ("_broken", "_open", "_said")

    def __init__(self) -> None:
        self._said: dict[str, Any] = {}
        self._open: str | None = None
        self._broken = False

    def feed(self, fragment: Any) -> str:
        """Take a `PartialArg` and return the JSON text it gives."""
        path: str = fragment.json_path or ""
        name = path[2:]
        if self._broken or not path.startswith("$.") or not name or any(mark in name for mark in ".[]'\""):
            self._broken = True
            return ""
        if fragment.string_value is None:
            return self._whole(name, fragment)
        if name == self._open:
            self._said[name] += fragment.string_value
            text = json.dumps(fragment.string_value, ensure_ascii=False)[1:-1]
        elif name in self._said:
            self._broken = True
            return ""
        else:
            text = self._name(name) + json.dumps(fragment.string_value, ensure_ascii=False)[:-1]
            self._said[name] = fragment.string_value
            self._open = name
        if fragment.will_continue is False:
            self._open = None
            text += '"'
        return text

    def rest(self, args: Mapping[str, Any]) -> str:
        """Return what is still missing of `args`, which are the whole."""
        args = plain(args)
        if not self._said:
            return to_json(args)
        text = ""
        if self._open is not None:
            said, whole = self._said[self._open], args.get(self._open)
            if isinstance(whole, str) and whole.startswith(said):
                text += json.dumps(whole[len(said) :], ensure_ascii=False)[1:-1]
            text += '"'
            self._open = None
        for name, value in args.items():
            if name not in self._said:
                text += self._name(name) + json.dumps(value, ensure_ascii=False)
                self._said[name] = value
        return text + "}"

    def _whole(self, name: str, fragment: Any) -> str:
        if fragment.number_value is not None:
            number = fragment.number_value
            value: Any = int(number) if float(number).is_integer() else number
        elif fragment.bool_value is not None:
            value = fragment.bool_value
        elif fragment.null_value is not None:
            value = None
        else:
            return ""  # opens something, and says nothing yet
        if name in self._said or self._open is not None:
            self._broken = True
            return ""
        text = self._name(name) + json.dumps(value)
        self._said[name] = value
        return text

    def _name(self, name: str) -> str:
        before = ('"' if self._open is not None else "") + (", " if self._said else "{")
        self._open = None
        return f"{before}{json.dumps(name, ensure_ascii=False)}: "
