"""What apps that were built on the official AG-UI bridge say to it, understood here too.

* Custom events: `manually_emit_message`, `manually_emit_tool_call`, `manually_emit_state`.  Each becomes what it asks
  for, attributed to whoever dispatched it, and still passes as a `CUSTOM` event, as it does there.
* Metadata of a model's config: `predict_state` announces, with a `CUSTOM` event `PredictState`, that the arguments of
  a call foretell a value of the state; `emit-messages` and `emit-tool-calls` set to `False` keep a model's words, or
  its calls and what they are answered with, from the stream.  CopilotKit spells the last two with a prefix.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from byline import signals as s

__all__ = ["PREDICT_STATE", "predicts", "quiet", "spelled_out"]

PREDICT_STATE: Final = "PredictState"
"""The name of the `CUSTOM` event."""

_QUIET: Final = {what: (f"emit-{what}", f"copilotkit:emit-{what}") for what in ("messages", "tool-calls")}
"""The keys that say so: spelled out, for they are looked up at every model run."""


def quiet(metadata: Mapping[str, Any], what: str) -> bool:
    """Return whether a model's config keeps `messages` or `tool-calls` from the stream."""
    own, copilotkit = _QUIET[what]
    return metadata.get(own) is False or metadata.get(copilotkit) is False


def predicts(metadata: Mapping[str, Any], tool: str) -> Any:
    """Return the predictions of a model's config if one of them is about `tool`, else `None`."""
    told = metadata.get("predict_state")
    if not isinstance(told, list):
        return None
    return told if any(isinstance(one, Mapping) and one.get("tool") == tool for one in told) else None


def spelled_out(owner: str | None, name: str, data: Any) -> Iterator[s.Signal]:
    """Yield what a custom event of the bridge's asks for; nothing for any other, or for one that is malformed."""
    if name == "manually_emit_state":
        yield s.StateIs(owner, data)
    if not isinstance(data, Mapping):
        return
    if name == "manually_emit_message" and isinstance(data.get("message_id"), str):
        yield s.Text(owner, data["message_id"], str(data.get("message") or ""))
        yield s.ModelOver(owner, data["message_id"])
    elif name == "manually_emit_tool_call" and isinstance(data.get("id"), str):
        run, call, args = f"{data['id']}:message", data["id"], data.get("args")
        yield s.Call(owner, run, call, str(data.get("name") or ""))
        yield s.Arguments(owner, run, call, args if isinstance(args, str) else json.dumps(args, default=str))
        yield s.ModelOver(owner, run)
