"""Questions, and reviews of tool calls: what LangChain's human-in-the-loop middleware asks, and what may be answered.

It pauses in one of two ways.  *Batched*, which is the default, raises one interrupt for all calls of a message that
need a decision and takes `{"decisions": [...]}`, one per call in their order; *per call*, from langchain 1.5 on,
raises one interrupt for each call and takes the decision itself.  Both values are plain data, and so is an answer:
this module needs no middleware to read them.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from byline import signals as s
from langchain_core.messages import AIMessage, BaseMessage

__all__ = ["Action", "Review", "misfit", "question", "review_of"]

DECISIONS: Final = ("approve", "edit", "reject", "respond")

_TEXT: Final = {"type": "string"}


class Action(NamedTuple):
    """One tool call that waits for a decision."""

    name: str
    args: Any
    decisions: Sequence[str]
    call: str | None
    """The framework's id of the call, where it can be told."""
    description: str | None


class Review(NamedTuple):
    """What an interrupt asks to decide."""

    actions: Sequence[Action]
    batched: bool

    @property
    def message(self) -> str | None:
        """What the middleware says about the calls."""
        return "\n\n".join(action.description for action in self.actions if action.description) or None

    def schema(self, given: Any = None) -> dict[str, Any]:
        """Return the JSON schema of an answer; `given` is the framework's own, where it brings one."""
        if isinstance(given, Mapping):
            return dict(given)
        answers = [_one_of(action) for action in self.actions]
        if not self.batched:
            return answers[0]
        same = all(answer == answers[0] for answer in answers)
        items: dict[str, Any] = {"items": answers[0]} if same else {"prefixItems": answers, "items": False}
        decisions = {"type": "array", **items, "minItems": len(answers), "maxItems": len(answers)}
        return {"type": "object", "properties": {"decisions": decisions}, "required": ["decisions"]}


def review_of(value: Any, messages: Iterable[BaseMessage] = (), schema: Any = None) -> Review | None:
    """Return the review that an interrupt's value asks for, or `None` when it asks for something else.

    `messages` are those of the agent that asked: the last answer of its model holds the calls.  A batched request
    does not name them; they stand in the order of the message, by name and arguments.  A request for one call leaves
    what may be decided to the `schema` of the answer.
    """
    if not isinstance(value, Mapping):
        return None
    if value.get("type") == "tool_approval" and "tool_call_id" in value:
        action = Action(
            str(value.get("name")),
            value.get("args"),
            _decisions(schema),
            str(value["tool_call_id"]),
            _text(value.get("description")),
        )
        return Review((action,), batched=False)
    requests, configs = value.get("action_requests"), value.get("review_configs")
    if (
        not isinstance(requests, list)
        or not requests
        or not all(isinstance(one, Mapping) for one in requests)
    ):
        return None
    allowed = {
        config.get("action_name"): config.get("allowed_decisions")
        for config in (configs if isinstance(configs, list) else ())
        if isinstance(config, Mapping)
    }
    calls = _calls(messages)
    actions = []
    for request in requests:
        name, args = str(request.get("name")), request.get("args")
        call = next((call for call in calls if call["name"] == name and call["args"] == args), None)
        if call is not None:
            calls.remove(call)
        actions.append(
            Action(
                name,
                args,
                tuple(allowed.get(name) or DECISIONS),
                None if call is None else call["id"],
                _text(request.get("description")),
            )
        )
    return Review(tuple(actions), batched=True)


def question(
    owner: str | None,
    interrupt: Any,
    call: str | None = None,
    *,
    messages: Iterable[BaseMessage] = (),
    public: Callable[[str], str] = str,
) -> s.Question:
    """Return a LangGraph interrupt as a question.

    Its value is anything.  A mapping may name the protocol's fields, in either spelling, as it may under the
    official bridge; the value itself always goes along in `metadata["langgraph"]["raw"]`.  A review of tool calls
    says more: which calls (of the asking agent's `messages`), and how to answer; `metadata["byline"]["toolCalls"]`
    lists them under their `public` ids, and `toolCallId` is the first.
    """
    value = interrupt.value
    fields: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
    given = getattr(interrupt, "response_schema", None)
    review = review_of(value, messages, given)

    def field(camel: str) -> Any:
        snake = re.sub(r"(?<!^)(?=[A-Z])", "_", camel).lower()
        return fields.get(camel, fields.get(snake))

    reason = fields.get("reason")
    message = value if isinstance(value, str) else fields.get("message")
    schema = field("responseSchema") or given
    expires = field("expiresAt")
    call = field("toolCallId") or call
    metadata: dict[str, Any] = {"langgraph": {"raw": value}}
    if review is not None:
        message = message or review.message
        schema = schema or review.schema(given)
        call = call or next((action.call for action in review.actions if action.call is not None), None)
        metadata["byline"] = {"toolCalls": [_reviewed(action, public) for action in review.actions]}
    return s.Question(
        owner,
        str(interrupt.id),
        str(reason) if reason is not None else "langgraph:interrupt" if review is None else "tool_call",
        message=None if message is None else str(message),
        call=call,
        schema=schema if isinstance(schema, Mapping) else None,
        metadata=metadata,
        expires_at=None if expires is None else str(expires),
    )


def _reviewed(action: Action, public: Callable[[str], str]) -> dict[str, Any]:
    known = {} if action.call is None else {"toolCallId": public(action.call)}
    return {**known, "name": action.name, "args": action.args, "decisions": list(action.decisions)}


def misfit(review: Review, answer: Any) -> str | None:
    """Return what is wrong with an answer to a review, in one sentence and with the cure, or `None`.

    The middleware would find out itself, but only after the agent was started again.
    """
    if not review.batched:
        return _misfit(review.actions[0], answer)
    decisions = answer.get("decisions") if isinstance(answer, Mapping) else None
    if not isinstance(decisions, list):
        return (
            f"the answer is {_shown(answer)}, expected an object with the list 'decisions', one per call: "
            f"{', '.join(action.name for action in review.actions)}"
        )
    if len(decisions) != len(review.actions):
        return (
            f"{len(decisions)} decisions were given for {len(review.actions)} calls "
            f"({', '.join(action.name for action in review.actions)}): send one for each, in this order"
        )
    for action, decision in zip(review.actions, decisions, strict=True):
        if (wrong := _misfit(action, decision)) is not None:
            return wrong
    return None


def _misfit(action: Action, decision: Any) -> str | None:
    kind = decision.get("type") if isinstance(decision, Mapping) else None
    allowed = ", ".join(repr(one) for one in action.decisions)
    if kind not in action.decisions:
        given = _shown(decision) if kind is None else repr(kind)
        return f"the decision about {action.name} is {given}, allowed are {allowed}"
    if kind == "respond" and not isinstance(decision.get("message"), str):
        return (
            f"the decision 'respond' about {action.name} needs 'message', the text that stands for the result"
        )
    edited = decision.get("edited_action")
    if kind == "edit" and not (
        isinstance(edited, Mapping)
        and isinstance(edited.get("name"), str)
        and isinstance(edited.get("args"), Mapping)
    ):
        return f"the decision 'edit' about {action.name} needs 'edited_action' with 'name' and 'args'"
    return None


def _decisions(schema: Any) -> Sequence[str]:
    """Return the decisions that the middleware's own schema of an answer takes: one, or several told by their type."""
    if not isinstance(schema, Mapping):
        return DECISIONS
    mapping = (schema.get("discriminator") or {}).get("mapping") or {}
    only = ((schema.get("properties") or {}).get("type") or {}).get("const")
    allowed = [only] if isinstance(only, str) else [str(one) for one in mapping]
    return tuple(one for one in DECISIONS if one in allowed) or DECISIONS


def _one_of(action: Action) -> dict[str, Any]:
    branches = [_branch(kind) for kind in action.decisions if kind in DECISIONS]
    return branches[0] if len(branches) == 1 else {"oneOf": branches}


def _branch(kind: str) -> dict[str, Any]:
    fields: dict[str, Any] = {"type": {"const": kind}}
    needs = ["type"]
    if kind == "edit":
        action = {"type": "object", "properties": {"name": _TEXT, "args": {"type": "object"}}}
        fields["edited_action"] = {**action, "required": ["name", "args"]}
        needs.append("edited_action")
    elif kind != "approve":
        fields["message"] = _TEXT
        needs += ["message"] if kind == "respond" else []
    return {"type": "object", "properties": fields, "required": needs}


def _calls(messages: Iterable[BaseMessage]) -> list[Any]:
    last = next((one for one in reversed(list(messages)) if isinstance(one, AIMessage)), None)
    return [] if last is None else list(last.tool_calls)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"
