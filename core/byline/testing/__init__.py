"""The conformance suite: hold an adapter, byline's or your own, to ground truth.

A `Scenario` says what a team does and, by hand, what must be seen of it.  A `Host` builds scenarios natively in one
framework.  `examine` plays a scenario on a host and judges the stream.

    pytest --pyargs byline.testing --byline-host mypackage:Host
"""

from .host import Declared, Host, HostError, Request, Stage, find_hosts, instructions
from .judging import LIMIT, Cell, examine, takes_part
from .scenario import (
    Agent,
    Answer,
    Call,
    Chain,
    Cost,
    Form,
    Loop,
    Parallel,
    Prompt,
    Run,
    Scenario,
    Tool,
    Truth,
    Turn,
)
from .scenarios import SCENARIOS

__all__ = [
    "LIMIT",
    "SCENARIOS",
    "Agent",
    "Answer",
    "Call",
    "Cell",
    "Chain",
    "Cost",
    "Declared",
    "Form",
    "Host",
    "HostError",
    "Loop",
    "Parallel",
    "Prompt",
    "Request",
    "Run",
    "Scenario",
    "Stage",
    "Tool",
    "Truth",
    "Turn",
    "examine",
    "find_hosts",
    "instructions",
    "takes_part",
]
