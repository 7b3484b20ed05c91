"""Scenarios as data: what each agent says and does, and beside it, written by hand, what must be seen of it.

Nothing here knows a framework, and no expectation is computed from the scenario.

How the truth is written.  A *lane* is what one party did, line by line; parties are `main` (the parent agent), each
invocation (`alpha#1` is the first invocation of `alpha`), and `run`:

    ==========================================  ========================================================
    ``opens for main, call 1``                  announced; works under `main`, spawned by its first call
    ``opens for main``                          announced; no call spawned it
    ``says 'words'``  ``thinks 'words'``        one whole message
    ``calls 1: alpha 'task'``                   the party's first call delegates `task` to `alpha`
    ``calls 2: look_up {"q": "it"}``            its second call is one of an ordinary tool
    ``hears 1: 'words'``                        the answer to its first call
    ``returns 'words'``  ``returns``            it ended, with a result or without
    ``fails: message``  ``cancelled``           it ended without one
    ``suspends, asking 1``  ``suspends``        it waits; so many questions are its own
    ``start``  ``end``  ``cancelled``           of the run
    ``fails: message``                          of the run
    ``waits for alpha#1, call 1``               of the run: one line for each question
    ==========================================  ========================================================

Invocations of one agent are counted in the order of the calls that spawned them, else of their announcements.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

__all__ = [
    "Agent",
    "Answer",
    "Call",
    "Chain",
    "Cost",
    "Form",
    "Loop",
    "Parallel",
    "Prompt",
    "Run",
    "Scenario",
    "Tool",
    "Truth",
    "Turn",
]

Form: TypeAlias = Literal["call", "graph", "supervisor", "swarm", "transfer", "question", "ask"]
"""A way to delegate, or something a way to delegate can do:

`call` the caller gets the result of a call; `graph` agents are nodes; `supervisor` a hand-off that comes back by itself;
`swarm` hand-offs between peers; `transfer` a hand-off that comes back by another; `question` a subagent that is called can
put a question to the user with a tool; `ask` it can ask in plain words.
"""


@dataclass(frozen=True)
class Call:
    """A call in a turn: of a tool with `arguments`, or of an agent with a `task` (a hand-off has none)."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    task: str | None = None
    handoff: bool = False
    id: str | None = None
    """The id that the model gives the call; a host makes a unique one where it is `None`."""


@dataclass(frozen=True)
class Cost:
    """What a turn costs in tokens: `cached` of `input`, `output` with everything the model wrote."""

    input: int
    output: int
    cached: int = 0


@dataclass(frozen=True)
class Turn:
    """One turn of a model: it thinks, then speaks, then calls.  With `fails` it raises after it spoke."""

    text: str = ""
    calls: Sequence[Call] = ()
    reasoning: str = ""
    cost: Cost | None = None
    fails: str | None = None
    arguments: Literal["many", "first"] = "many"
    """How arguments stream: piece by piece, or whole in the chunk that names the call."""
    question: bool = False
    """Its text is a question to the user, in plain words."""
    hangs: bool = False
    """It never ends after it spoke; the run will be stopped."""


@dataclass(frozen=True)
class Tool:
    """A tool that takes `q` (a text) and answers `answer`."""

    name: str
    answer: str = ""
    approval: bool = False
    """It runs only when the user approves."""
    asks: str | None = None
    """It puts this question to the user and answers what the user said."""
    model: str | None = None
    """It has a model say these words, and answers them."""
    writes: Mapping[str, str] = field(default_factory=dict)
    """What it writes into the state."""


@dataclass(frozen=True)
class Agent:
    """An agent: the turns of its model, in order, the last one repeated; `on` has other turns for some tasks."""

    name: str
    turns: Sequence[Turn]
    on: Mapping[str, Sequence[Turn]] = field(default_factory=dict)
    tools: Sequence[Tool] = ()
    delegates: Sequence[str] = ()
    streams: bool = True
    model: str = "scripted"
    provider: str = "byline"
    copes: bool = False
    """It handles the failures of its delegates: it hears `failed: ` and the message, and goes on."""


@dataclass(frozen=True)
class Parallel:
    """Agents that start at once; what follows starts when all have ended."""

    agents: Sequence[str]


@dataclass(frozen=True)
class Loop:
    """An agent that runs so many times."""

    agent: str
    times: int


@dataclass(frozen=True)
class Chain:
    """A graph: its nodes run one after the other."""

    nodes: Sequence[str | Parallel | Loop]


@dataclass(frozen=True)
class Answer:
    """The user's answer to the question of one party."""

    party: str
    value: Any = True


@dataclass(frozen=True)
class Prompt:
    """What frames each request of an agent: the instructions that it was given, in order, and the tools offered.

    The instruction of `alpha` is `You are alpha.`; an agent offered as a tool stands as `-> alpha`.
    """

    system: Sequence[str]
    tools: Sequence[str] = ()


Requests: TypeAlias = Mapping[str, Sequence[Sequence[str]]]
"""For each agent the requests that its model received; each the lines of its conversation.

`user: words`, `said: words` (an agent's), `called: alpha 'task'`, `heard: words` (a tool's answer).
"""


@dataclass(frozen=True)
class Truth:
    """What one run must come to."""

    lanes: Mapping[str, Sequence[str]]
    order: Sequence[tuple[str, str]] = ()
    """Pairs of `party line`: the first must stand before the second in the stream."""
    state: Mapping[str, Any] | None = None
    """These keys of the state after the run."""
    usage: Sequence[str] | None = None
    """The run's usage, an entry a line: `provider/model 10 in, 2 out, 4 cached`, sorted."""
    requests: Requests = field(default_factory=dict)
    """What the models received in this run."""
    forked: Requests = field(default_factory=dict)
    """What stands instead for those agents where a delegation forks the caller's conversation.

    A fork begins with what its caller's model had received, without the turn that delegates: its calls have no answer yet.
    """


@dataclass(frozen=True)
class Run:
    """What the user does: says `text`, or gives `answers`; `stop_at` stops the run when these words were seen."""

    truth: Truth
    text: str | None = None
    answers: Sequence[Answer] = ()
    stop_at: str | None = None


@dataclass(frozen=True)
class Scenario:
    """A team, what the user does with it, and what must be seen."""

    name: str
    says: str
    """What it shows, in one sentence."""
    forms: Sequence[Form]
    """The forms that it can be built in: a host that has one of them takes part."""
    agents: Mapping[str, Agent]
    root: str | Chain
    runs: Sequence[Run]
    prompts: Mapping[str, Prompt] = field(default_factory=dict)
    fork_prompts: Mapping[str, Prompt] = field(default_factory=dict)
    visibility: Mapping[str, Literal["attributed", "inline", "hidden"]] = field(default_factory=dict)
