"""The consumer's book of a thread: who did what, for whom, and how it ended."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Self, TypeAlias

from byline.chunks import ChunkError, Expander, Plan, Wire
from byline.events import BaseEvent
from byline.ledger._book import Account, Book
from byline.ledger._conversation import Conversation
from byline.ledger._items import Mark, Message, Place, RejectedError, ToolCall
from byline.ledger._views import (
    Activity,
    Answer,
    Branch,
    Call,
    Invocation,
    Reasoning,
    Refusal,
    Run,
    Text,
    Work,
    plain,
)
from byline.schema import shown
from byline.state import Json, PatchError, copied
from byline.validator._alone import read_alone

if TYPE_CHECKING:
    from byline._fates import Fate
    from byline.artifacts import Artifacts, ShownTwice

__all__ = ["Ledger", "Record"]

Record: TypeAlias = bytes | str | Wire | BaseEvent
"""One event: JSON text, a mapping with the wire's names, or a typed event."""

_CHUNKS: Final = {
    "TEXT_MESSAGE_CHUNK": "text",
    "TOOL_CALL_CHUNK": "call",
    "REASONING_MESSAGE_CHUNK": "reasoning",
}
_TEXT_ROLES: Final = frozenset({"assistant", "user", "system", "developer"})


class Ledger:
    """Reads the stream of a thread, one run or several, and knows whose everything is.

    Feed it records as they arrive.  All that can be read is up to date after each one, so it may be read while the
    run goes on; what it hands out does not change afterwards.  `messages` and `state` are what the thread had before
    the stream, for a stream that does not say so itself in `RUN_STARTED.input`.

    It holds the stream to the consumer profile of the validator, whose rules it names: what a consumer must reject is
    kept as a `Refusal` and changes nothing else.  (The validator follows a stream beyond its faults and mentions an item
    once; a consumer has to refuse each event.  So the ledger asks its own records, and tests hold the two together.)
    Attribution without lifecycle is accepted ("a producer MAY attach attribution without announcing
    anything; consumers MUST accept it").  State is the run's, whoever sent the change ("consumers MUST NOT withhold
    an update from the run's state because a subagent sent it"), and lives on from run to run.  A run that fails leaves
    what was open in it abandoned ("consumers MUST treat every open invocation as abandoned").
    """

    def __init__(self, *, messages: Iterable[Wire] = (), state: Json = None) -> None:
        self._fed = 0
        self._expander = Expander()
        self._conversation = Conversation()
        self._book = Book()
        self._refusals: list[Refusal] = []
        known = list(messages)
        self._conversation.start_from(known)
        self._book.learn(known)
        if state is not None:
            self._book.state = copied(state)

    @classmethod
    def read(cls, records: Iterable[Record]) -> Self:
        """Return the ledger of a stream that is over."""
        ledger = cls()
        for record in records:
            ledger.feed(record)
        ledger.finish()
        return ledger

    # -- writing --------------------------------------------------------------------------------------------------

    def feed(self, record: Record) -> Refusal | None:
        """Take the next record; return why it was refused, or `None` when it was accepted.  Never raises."""
        index, self._fed = self._fed, self._fed + 1
        event, finding = read_alone(record)
        refusal = None
        if finding is not None:
            refusal = Refusal(index, finding.rule, finding.message, record)
        elif event is not None:
            refusal = self._apply(index, event, record)
        if refusal is not None:
            self._refusals.append(refusal)
        return refusal

    def finish(self) -> None:
        """Say that the stream is over: a run or an invocation that is still at work in it is abandoned."""
        self._book.leave_run(Mark(self._fed, None), "abandoned")

    def _apply(self, index: int, event: Wire, record: Record) -> Refusal | None:
        try:
            self._book.check_phase(event)
            plan = self._expander.plan(event)
            self._check_form(event, plan)
            self._take(plan, (index, event.get("timestamp")))
        except RejectedError as error:
            return Refusal(index, error.rule, str(error), record)
        except ChunkError as error:
            rule = f"{_CHUNKS[event['type']]}-owner" if error.kind == "owner" else f"chunk-{error.kind}"
            return Refusal(index, rule, str(error), record)
        except PatchError as error:  # no reason to reject the event, which just has no effect
            self._expander.commit(plan)
            rule = "state-patch" if event["type"] == "STATE_DELTA" else "activity-patch"
            return Refusal(index, rule, str(error), record)
        self._expander.commit(plan)
        return None

    def _check_form(self, event: Wire, plan: Plan) -> None:
        """Raise `RejectedError` for an event that continues in one form what was opened in the other."""
        if plan.opened is None:
            mixed = self._expander.assembles(event)
        else:
            start = plan.events[len(plan.ended)]
            mixed = self._conversation.open_item(start) is not None
        if mixed:
            raise RejectedError(
                "chunk-mixed", f"{event['type']} continues an item that was opened in the other form"
            )

    def _take(self, plan: Plan, place: Place) -> None:
        """Apply what an event comes to; an event that is rejected ends no chunked item either."""
        ends = plan.events[: len(plan.ended)] if plan.ended else []
        items = [self._conversation.open_item(end) for end in ends]
        try:
            for event in plan.events:
                if event["type"] == "RUN_FINISHED":
                    self._book.check_all_closed()
                    self._conversation.check_all_closed()
                self._conversation.apply(event, place)
                self._book.apply(event, place)
        except RejectedError:
            for end, item in zip(ends, items, strict=True):
                if item is not None:
                    self._conversation.put_back(end, item)
            raise

    # -- reading: invocations -------------------------------------------------------------------------------------

    @property
    def invocations(self) -> tuple[Invocation, ...]:
        """Every invocation, announced or not, in the order in which their ids appeared."""
        return tuple(_seen(account) for owner, account in self._book.accounts.items() if owner is not None)

    @property
    def unannounced(self) -> tuple[str, ...]:
        """The ids that something was attributed to and that were never announced."""
        return tuple(invocation.id for invocation in self.invocations if not invocation.announced)

    def invocation(self, id_: str) -> Invocation:
        """Return who the invocation is and what became of it; raise `LookupError` for an id that is not in the stream."""
        return _seen(self._account(id_))

    def work(self, owner: str | None) -> Work:
        """Return what an invocation, or with `None` the parent agent, did so far.

        Raises `LookupError` for an id that is not in the stream.
        """
        account = self._account(owner)
        messages = self._conversation.of_owner.get(owner, ())
        return Work(
            texts=tuple(_text(message) for message in messages if _has_text(message)),
            reasoning=tuple(_reasoning(message) for message in messages if message.role == "reasoning"),
            calls=tuple(_call(call) for message in messages for call in message.calls),
            activities=tuple(_activity(message) for message in messages if message.role == "activity"),
            steps=tuple(account.steps),
            state_changes=tuple(account.changes),
            customs=tuple(account.customs),
            raws=tuple(account.raws),
        )

    def tree(self) -> tuple[Branch, ...]:
        """Return every invocation with its work, each below the one that made it, in the order of their ids.

        The depth says who is below whom: a branch belongs to the nearest branch before it that is less deep.
        """
        accounts = self._book.accounts
        made = {child for account in accounts.values() for child in account.children}
        branches: list[Branch] = []
        roots = [owner for owner in accounts if owner is not None and owner not in made]
        stack = [(id_, 0) for id_ in reversed([*accounts[None].children, *roots])]
        while stack:
            id_, depth = stack.pop()
            branches.append(Branch(self.invocation(id_), self.work(id_), depth))
            stack.extend((child, depth + 1) for child in reversed(accounts[id_].children))
        return tuple(branches)

    # -- reading: owners, messages, state, runs -------------------------------------------------------------------

    def owner_of_message(self, id_: str) -> str | None:
        """Return whose the message is (`None`: the parent agent's), also one that a snapshot has dropped.

        Raises `LookupError` for an id that is not in the stream.
        """
        message = self._conversation.message(id_)
        if message is None:
            raise LookupError(f"no message {shown(id_)} in the {self._fed} records read")
        return message.owner

    def owner_of_call(self, id_: str) -> str | None:
        """Return whose the tool call is: "a tool call inherits the attribution of the message that carries it".

        Raises `LookupError` for an id that is not in the stream.
        """
        call = self._conversation.call(id_)
        if call is None:
            raise LookupError(f"no tool call {shown(id_)} in the {self._fed} records read")
        return call.message.owner

    @property
    def messages(self) -> list[dict[str, Json]]:
        """The messages as a consumer must build them, as they would be in a `MESSAGES_SNAPSHOT`; yours to keep."""
        return [message.wire() for message in self._conversation]

    @property
    def state(self) -> Json:
        """The run's state.  It is never changed by the ledger, which puts another in its place; do not change it."""
        return self._book.state

    @property
    def pending_interrupts(self) -> dict[str | None, tuple[Wire, ...]]:
        """What the thread waits for an answer to, by the invocation that asked (`None`: the parent agent).

        It is what the last run that finished asked.  A run that is under way, or that failed, has not answered it.
        """
        by_owner: dict[str | None, list[Wire]] = {}
        for interrupt in self._book.interrupts:
            by_owner.setdefault(interrupt.get("subagentRunId"), []).append(interrupt)
        return {owner: tuple(interrupts) for owner, interrupts in by_owner.items()}

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs of the thread, with the token usage of each."""
        return tuple(self._book.runs)

    def artifacts(self, artifacts: "Artifacts | None" = None, *, user: str = "") -> "list[Fate]":
        """Return what became of each artifact: shown to the user, told to the parent, looked up.

        Where it was shown, and by which calls it was looked up, stands in the messages.  How often its placeholder went to the
        parent's model stands in no stream: the store of `artifacts` knows, for the artifacts of `user` in this thread.
        "That a subagent's result was on the screen and that the parent's next answer has it are confirmed separately."
        `artifacts` also says the tags and the look-up's name, where they are not the common ones.  Raises `StoreError`.
        """
        from byline._fates import fates, kept

        if artifacts is None:
            return fates(self.messages)
        threads = dict.fromkeys(run.thread_id for run in self._book.runs if run.thread_id is not None)
        return fates(self.messages, kept(artifacts, threads, user), artifacts)

    def shown_twice(self, artifacts: "Artifacts | None" = None) -> "list[ShownTwice]":
        """Return which artifacts the user was shown twice, and why; `artifacts` says the tags and the look-up's name.

        "The composition of the screen does not cover the problem up": both stay in `messages`.
        """
        from byline.artifacts import LOOKUP, TAGS, showings, shown_twice

        tags, lookup = (TAGS, LOOKUP) if artifacts is None else (artifacts.tags, artifacts.lookup or LOOKUP)
        return shown_twice(showings(self.messages, tags=tags), lookup=lookup)

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """What was not accepted."""
        return tuple(self._refusals)

    def to_json(self) -> dict[str, Json]:
        """Return the tree, the parent agent's work, the runs and the refusals as plain JSON values.

        Members that have no value are absent, but for the five of the top.  The invocations are a flat list in the order of `tree()`.
        """
        return {
            "runs": [
                {**plain(run), **({"usageByOwner": _split(run)} if run.usage_by_owner else {})}
                for run in self.runs
            ],
            "parent": plain(self.work(None)),
            "invocations": [
                {**plain(branch.invocation), "depth": branch.depth, "work": plain(branch.work)}
                for branch in self.tree()
            ],
            "pendingInterrupts": [copied(interrupt) for interrupt in self._book.interrupts],
            "refusals": [
                {"event": refusal.event, "rule": refusal.rule, "message": refusal.message}
                for refusal in self._refusals
            ],
        }

    def _account(self, owner: str | None) -> Account:
        account = self._book.accounts.get(owner)
        if account is None:
            raise LookupError(f"no invocation {shown(owner)} in the {self._fed} records read")
        return account


def _seen(account: Account) -> Invocation:
    if not account.children:
        return account.invocation
    return replace(account.invocation, children=tuple(account.children))


def _split(run: Run) -> list[Json]:
    return [
        {**({} if owner is None else {"subagentRunId": owner}), **copied(entry)}
        for owner, entries in run.usage_by_owner.items()
        for entry in entries
    ]


def _has_text(message: Message) -> bool:
    return (
        message.role in _TEXT_ROLES
        and message.content is not None
        and bool(message.content or not message.calls)
    )


def _text(message: Message) -> Text:
    content = message.content
    if not isinstance(content, str):  # content parts
        content = "".join(part["text"] for part in content if part["type"] == "text")
    return Text(
        id=message.id,
        role=message.role,
        name=message.fields.get("name"),
        text=content,
        start=Mark(*message.start),
        end=_mark(message.end),
    )


def _reasoning(message: Message) -> Reasoning:
    return Reasoning(id=message.id, text=message.content, start=Mark(*message.start), end=_mark(message.end))


def _call(call: ToolCall) -> Call:
    answer = call.answer
    return Call(
        id=call.id,
        name=call.name,
        arguments=call.arguments,
        message=call.message.id,
        answer=None
        if answer is None
        else Answer(
            message=answer.id,
            content=copied(answer.content),
            owner=answer.owner,
            at=Mark(*answer.start),
        ),
        start=Mark(*call.start),
        end=_mark(call.end),
    )


def _activity(message: Message) -> Activity:
    return Activity(
        id=message.id,
        type=message.fields["activityType"],
        content=copied(message.content),
        start=Mark(*message.start),
        changed=Mark(*(message.end or message.start)),
    )


def _mark(place: Place | None) -> Mark | None:
    return None if place is None else Mark(*place)
