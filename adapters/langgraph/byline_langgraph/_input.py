"""What a client sends, as what the graph takes.

The thread is the graph's own when it has a checkpointer: then only what is new goes in, the user's words and the
answers to tool calls, and never an assistant's message again (ids do not de-duplicate them: the stream says
`lc_run--…` where the state may say the provider's id).  Without a checkpointer the client holds the conversation,
and all of it goes in, but for what subagents said: their messages came from the client's copy of the stream and
were never part of the parent's conversation.

State, tools, context and forwarded properties reach the graph under the names that the official bridge uses, so
that an app can move over: `tools`, `ag-ui`, `copilotkit`, and each forwarded property under its own name in snake
case, where the graph has a channel of that name.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from byline.attributor import native_ids
from byline.errors import InputError, ResumeError
from byline.events import Message, ResumeEntry, RunAgentInput
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.types import Command

from ._content import open_calls, to_blocks
from ._review import Action, Review, misfit, review_of

__all__ = [
    "conversation",
    "edited_message",
    "forwarded_names",
    "graph_input",
    "new_messages",
    "resume_command",
]

CANCELLED_KEY: Final = "__agui_cancelled__"
"""What the official bridge resumes a graph with when the client abandons an interrupt."""

_SPOKEN: Final = frozenset({"system", "developer", "user", "assistant", "tool"})
"""The roles that make up a conversation; reasoning and activities are for the client's eyes."""

_NOT_STATE: Final = frozenset({"command", "node_name", "stream_subgraphs"})


def graph_input(
    run_input: RunAgentInput, messages: Sequence[BaseMessage], channels: Iterable[str]
) -> dict[str, Any]:
    """Return the input of the graph: messages, and of the rest what the graph has a channel for."""
    channels = set(channels)
    state = run_input.state
    if state is not None and not isinstance(state, Mapping):
        raise InputError(
            f"state is {type(state).__name__}, expected an object: a graph's state has names, so its values need them"
        )
    tools = [tool.model_dump(by_alias=True) for tool in run_input.tools or ()]
    context = [entry.model_dump(by_alias=True) for entry in run_input.context or ()]
    offered: dict[str, Any] = {}
    forwarded = run_input.forwarded_props
    if isinstance(forwarded, Mapping):
        offered |= {_snake(key): forwarded[key] for key in forwarded if key not in _NOT_STATE}
    offered |= {key: value for key, value in (state or {}).items() if key != "messages"}
    if tools or context:
        # Only when the client sent some: an empty list would overwrite what the thread has.
        offered["tools"] = tools
        offered["ag-ui"] = {"tools": tools, "context": context}
        offered["copilotkit"] = {
            **_mapping((state or {}).get("copilotkit")),
            "actions": tools,
            "context": context,
        }
    if is_functional(channels):
        return {**offered, "messages": list(messages)}
    values = {key: value for key, value in offered.items() if key in channels}
    if "messages" in channels:
        values["messages"] = list(messages)
    return values


def forwarded_names(run_input: RunAgentInput) -> list[str]:
    """Return the names under which the forwarded properties reach the graph."""
    forwarded = run_input.forwarded_props
    return (
        [_snake(key) for key in forwarded if key not in _NOT_STATE] if isinstance(forwarded, Mapping) else []
    )


def is_functional(channels: Iterable[str]) -> bool:
    """Return whether these are the channels of an `@entrypoint`, which takes one value and declares no names."""
    return "__previous__" in channels and "__end__" in channels


def new_messages(messages: Sequence[Message], thread: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return what `messages` add to a thread: user messages it does not have, answers to calls it waits for."""
    known = {message.id for message in thread}
    waiting = open_calls(thread)
    fresh: list[BaseMessage] = []
    for message in messages:
        if message.role == "user" and message.id not in known and message.subagent_run_id is None:
            fresh.append(_to_langchain(message, message.id))
        elif message.role == "tool":
            native = next((id_ for id_ in native_ids(message.tool_call_id) if id_ in waiting), None)
            if native is not None:
                waiting.discard(native)
                fresh.append(_tool_message(message, native))
    return fresh


def edited_message(messages: Sequence[Message], thread: Sequence[BaseMessage]) -> str | None:
    """Return the id of the thread's user message that the client went back before, or `None` when it goes on.

    It goes back by sending a message it had sent before with other words; by leaving messages out at the end and
    saying something else, or nothing, after an answer that the thread knows.  A client that leaves out what is older
    has only shortened its copy, and one that sends nothing the thread knows sends only what is new: both go on.
    """
    mine = [one for one in messages if one.subagent_run_id is None and one.role in ("user", "assistant")]
    place = {one.id: index for index, one in enumerate(thread)}
    said = {
        str(one.text): index for index, one in enumerate(thread) if isinstance(one, AIMessage) and one.text
    }
    asked = [index for index, one in enumerate(thread) if isinstance(one, HumanMessage)]
    kept = -1  # how far the client's copy goes along with the thread
    for message in mine:
        at = place.get(message.id)
        if message.role == "assistant":
            text = message.content if isinstance(message.content, str) else None
            at = said.get(text or "") if at is None else at
        elif at is not None and to_blocks(message.content) != thread[at].content:
            return message.id
        kept = kept if at is None else max(kept, at)
    if kept < 0 or not mine:
        return None
    after = [index for index in asked if index > kept]
    answer = isinstance(thread[kept], AIMessage)
    if answer and after and mine[-1].role == "user":
        return thread[after[0]].id
    if asked and kept == asked[-1] and mine[-1].id == thread[kept].id and _answered(thread, kept):
        return thread[kept].id
    return None


def _answered(thread: Sequence[BaseMessage], at: int) -> bool:
    """Return whether the turn that began at `at` came to an answer."""
    last = thread[-1]
    return len(thread) - 1 > at and isinstance(last, AIMessage) and not last.tool_calls


def conversation(messages: Sequence[Message]) -> list[BaseMessage]:
    """Return the whole conversation, without what subagents said."""
    return [
        _tool_message(message, message.tool_call_id)
        if message.role == "tool"
        else _to_langchain(message, message.id)
        for message in messages
        if message.subagent_run_id is None and message.role in _SPOKEN
    ]


def resume_command(
    entries: Sequence[ResumeEntry],
    pending: Mapping[str, Any],
    thread_id: str,
    whose: Mapping[str, str] | None = None,
) -> Command[Any]:
    """Return the command that answers `entries`; `pending` are the open interrupts by their id.

    `whose` names, for the message, the subagents that asked, as far as they are known.

    Raises `ResumeError` for an answer to an interrupt that is not open, and for two answers to one.
    """
    answers: dict[str, Any] = {}
    for entry in entries:
        if entry.interrupt_id not in pending:
            raise ResumeError(
                f"resume answers interrupt {entry.interrupt_id!r}, which is not open on thread {thread_id!r}: "
                f"it is unknown or already answered; open are {_listed(pending)}"
            )
        if entry.interrupt_id in answers:
            raise ResumeError(
                f"resume answers interrupt {entry.interrupt_id!r} twice: send one entry per interrupt"
            )
        cancelled = entry.status != "resolved"
        review = None if cancelled else _review(pending[entry.interrupt_id])
        if review is not None and (wrong := misfit(review, entry.payload)) is not None:
            asker = (whose or {}).get(entry.interrupt_id)
            of = "" if asker is None else f" of subagent {asker!r}"
            raise ResumeError(f"resume of interrupt {entry.interrupt_id!r}{of}: {wrong}")
        answers[entry.interrupt_id] = (
            _abandoned(entry.interrupt_id, pending[entry.interrupt_id]) if cancelled else entry.payload
        )
    return Command(resume=answers)


def open_without_answer(pending: Mapping[str, Any], thread_id: str) -> ResumeError:
    """Return the error of a run that would pass over open interrupts: omission is not abandonment."""
    return ResumeError(
        f"thread {thread_id!r} waits for an answer to {_listed(pending)}: send a resume entry for each, "
        "with status 'cancelled' to abandon it"
    )


def _review(interrupt: Any) -> Review | None:
    return review_of(interrupt.value, schema=getattr(interrupt, "response_schema", None))


def _abandoned(id_: str, interrupt: Any) -> Any:
    """Say no in the way the interrupt understands: a review of tool calls wants a decision for each."""
    review = _review(interrupt)
    if review is None:
        return {CANCELLED_KEY: True, "interrupt_id": id_}
    answers = [_refusal(action) for action in review.actions]
    return {"decisions": answers} if review.batched else answers[0]


def _refusal(action: Action) -> dict[str, Any]:
    """Return a decision against a call: to reject it, or to answer in its stead where rejecting is not allowed."""
    kind = "respond" if "reject" not in action.decisions and "respond" in action.decisions else "reject"
    return {"type": kind, "message": "The user cancelled."}


def _to_langchain(message: Any, id_: str) -> BaseMessage:
    if message.role == "user":
        return HumanMessage(content=to_blocks(message.content), id=id_, name=message.name)
    if message.role in ("system", "developer"):
        return SystemMessage(content=message.content, id=id_, name=message.name)
    calls = [
        {
            "id": call.id,
            "name": call.function.name,
            "args": _arguments(call.function.arguments),
            "type": "tool_call",
        }
        for call in message.tool_calls or ()
    ]
    return AIMessage(content=message.content or "", id=id_, name=message.name, tool_calls=calls)


def _tool_message(message: Any, call: str) -> ToolMessage:
    content: Any = to_blocks(message.content)
    if message.error and not content:
        content = message.error
    return ToolMessage(
        content=content, tool_call_id=call, id=message.id, status="error" if message.error else "success"
    )


def _arguments(text: str) -> dict[str, Any]:
    # The client's own text, which may have been cut off: a history that cannot be parsed must not kill the thread.
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _listed(ids: Iterable[str]) -> str:
    return ", ".join(repr(id_) for id_ in ids) or "none"
