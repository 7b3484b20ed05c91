"""Whose is this?  The consumer's book of a thread, built from its stream and nothing else.

ledger = Ledger.read(lines)
for branch in ledger.tree():
    print("  " * branch.depth, branch.invocation.name, branch.invocation.status)
ledger.owner_of_message("m7")      # "researcher-2", or None for the parent agent
"""

from byline.ledger._conversation import Conversation
from byline.ledger._items import Mark
from byline.ledger._ledger import Ledger, Record
from byline.ledger._views import (
    Activity,
    Answer,
    Branch,
    Call,
    Custom,
    Failure,
    Invocation,
    Raw,
    Reasoning,
    Refusal,
    Run,
    RunStatus,
    Segment,
    StateChange,
    Status,
    Step,
    Text,
    Work,
)

__all__ = [
    "Activity",
    "Answer",
    "Branch",
    "Call",
    "Conversation",
    "Custom",
    "Failure",
    "Invocation",
    "Ledger",
    "Mark",
    "Raw",
    "Reasoning",
    "Record",
    "Refusal",
    "Run",
    "RunStatus",
    "Segment",
    "StateChange",
    "Status",
    "Step",
    "Text",
    "Work",
]
