"""The cells of the conformance matrix in which ADK does something else than the scenarios say.

Each names the line of ADK that is so, says what comes instead, and can be reproduced without byline.  Where 2.6 does
something else than 2.13 the table asks `can`.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from byline.testing.host import Declared
from byline.testing.scenario import Truth

from ._compat import can

__all__ = ["agent_tool", "nothing", "single_turn", "task", "workflow", "workflow_agents"]

Native = Callable[..., Awaitable["tuple[list[Any], BaseException | None]"]]
"""Runs the first turn of a scenario without byline: the events, and what was raised.

With the name of an agent, the turn after it, in which what that agent asked for is approved.
"""

_ASKS: Final = ["says 'main asks'", "calls 1: alpha 'do it'"]
_CAREFULLY: Final = ["says 'main asks'", "calls 1: alpha 'carefully'"]
_BROKE: Final = ["opens for main, call 1", "fails: alpha broke"]
_SWALLOWED: Final = "fails: its question was swallowed by the caller, which went on without an answer"
_ERROR: Final = "Error running sub-agent: Dynamic node alpha failed"
_END: Final = ["start", "end"]


def _heard(events: list[Any], name: str) -> list[Any]:
    """Return what calls of `name` were answered, as ADK keeps it in its events."""
    parts = [part for event in events for part in (event.content.parts if event.content else None) or ()]
    answers = [part.function_response for part in parts if part.function_response is not None]
    return [answer.response for answer in answers if answer.name == name]


def _said(events: list[Any]) -> list[tuple[str, str]]:
    """Return who said what, as ADK keeps it in its events."""
    return [
        (event.author, part.text)
        for event in events
        if not event.partial
        for part in (event.content.parts if event.content else None) or ()
        if part.text
    ]


def _shows(
    native: Native, scenario: str, sees: Callable[[list[Any], BaseException | None], bool], *approve: str
) -> Any:
    async def reproduce() -> object:
        events, fault = await native(scenario, *approve)
        if not sees(events, fault):
            raise AssertionError(
                f"ADK does not behave like that any more: {scenario}, {_said(events)}, {fault!r}"
            )
        return events

    return reproduce


def _asks_again(call: str) -> Callable[[list[Any], BaseException | None], bool]:
    """Return whether, after it was confirmed, `call` was made anew and waits for a confirmation again."""

    def asks_again(events: list[Any], fault: BaseException | None) -> bool:
        wants = [{"error": "This tool call requires confirmation, please approve or reject."}]
        return fault is None and _heard(events, call) == wants

    return asks_again


def _helper(native: Native) -> Declared:
    return Declared(
        "a model that a tool calls by itself has no plugin callback and no event: google/adk/models/base_llm.py:36",
        [
            Truth(
                {
                    "run": _END,
                    "main": [
                        "says 'main rephrases'",
                        'calls 1: rephrase {"q": "this"}',
                        "hears 1: 'helper words'",
                        "says 'main is done'",
                    ],
                }
            )
        ],
        _shows(
            native,
            "a-tool-that-calls-a-model",
            lambda events, _: ("main", "helper words") not in _said(events),
        ),
    )


def nothing(native: Native) -> Mapping[str, Declared]:  # noqa: ARG001
    """Return no declared cells."""
    return {}


def single_turn(native: Native) -> Mapping[str, Declared]:
    """Return the declared cells of single_turn sub-agents."""
    swallows = "a sub-agent's failure becomes its answer: google/adk/tools/agent_tool.py:516"

    def failed(events: list[Any], fault: BaseException | None) -> bool:
        return fault is None and _heard(events, "alpha")[0] == {"result": _ERROR}

    def swallowed(events: list[Any], fault: BaseException | None) -> bool:
        return fault is None and _heard(events, "alpha") == [{"result": None}]

    cells = {
        "a-tool-that-calls-a-model": _helper(native),
        "a-handled-failure": Declared(
            swallows,
            [
                Truth(
                    {
                        "run": _END,
                        "main": [*_CAREFULLY, f"hears 1: {_ERROR!r}", "says 'main copes'"],
                        "alpha#1": _BROKE,
                    }
                )
            ],
            _shows(native, "a-handled-failure", failed),
        ),
        "a-fatal-failure": Declared(
            swallows,
            [
                Truth(
                    {
                        "run": _END,
                        "main": [*_ASKS, f"hears 1: {_ERROR!r}", "says 'main is done'"],
                        "alpha#1": _BROKE,
                    }
                )
            ],
            _shows(native, "a-fatal-failure", failed),
        ),
        "failure-in-the-middle-of-a-sentence": Declared(
            swallows,
            [
                Truth(
                    {
                        "run": _END,
                        "main": [*_CAREFULLY, f"hears 1: {_ERROR!r}", "says 'main copes'"],
                        "alpha#1": [
                            "opens for main, call 1",
                            "says 'alpha was just about'",
                            "fails: alpha broke",
                        ],
                    }
                )
            ],
            _shows(native, "failure-in-the-middle-of-a-sentence", failed),
        ),
        "a-retry": Declared(
            swallows,
            [
                Truth(
                    {
                        "run": _END,
                        "main": [
                            "says 'main asks'",
                            "calls 1: alpha 'carefully, at first'",
                            f"hears 1: {_ERROR!r}",
                            "says 'main asks again'",
                            "calls 2: alpha 'carefully, once more'",
                            "hears 2: 'alpha managed'",
                            "says 'main is done'",
                        ],
                        "alpha#1": _BROKE,
                        "alpha#2": [
                            "opens for main, call 2",
                            "says 'alpha managed'",
                            "returns 'alpha managed'",
                        ],
                    }
                )
            ],
            _shows(native, "a-retry", failed),
        ),
        "approval-two-deep": Declared(
            "a caller that is itself called goes on without the answer: google/adk/tools/agent_tool.py:485",
            [
                Truth(
                    {
                        "run": _END,
                        "main": [*_ASKS, "hears 1: ''", "says 'main is done'"],
                        "alpha#1": [
                            "opens for main, call 1",
                            "says 'alpha asks'",
                            "calls 1: beta 'b'",
                            "returns",
                        ],
                        "beta#1": [
                            "opens for alpha#1, call 1",
                            "says 'beta wants to'",
                            'calls 1: publish {"q": "beta"}',
                            _SWALLOWED,
                        ],
                    }
                )
            ],
            _shows(native, "approval-two-deep", swallowed),
        ),
        "two-approvals-one-by-one": Declared(
            "a call that waits cancels its siblings, which run again from the beginning: "
            "google/adk/flows/llm_flows/tools/_batch_executor.py:194",
            reproduce=_shows(
                native,
                "two-approvals-one-by-one",
                lambda events, _: ("alpha", "alpha wants to") in _said(events),
                "beta",
            ),
        ),
    }
    if not can("approval"):
        cells["approval-in-a-subagent"] = Declared(
            "before 2.13 a confirmation makes the sub-agent begin again, without its caller: google/adk/runners.py",
            [
                Truth(
                    {
                        "run": ["start", "waits for alpha#1, call 1"],
                        "main": _ASKS,
                        "alpha#1": [
                            "opens for main, call 1",
                            "says 'alpha wants to'",
                            'calls 1: publish {"q": "alpha"}',
                            "suspends, asking 1",
                        ],
                    }
                ),
                Truth(
                    {
                        "run": ["start", "waits for alpha#1, call 2"],
                        "alpha#1": [
                            "opens for main, call 1",
                            "says 'alpha wants to'",
                            'calls 2: publish {"q": "alpha"}',
                            "suspends, asking 1",
                        ],
                    }
                ),
            ],
            _shows(native, "approval-in-a-subagent", _asks_again("publish"), "alpha"),
        )
    return cells


def task(native: Native) -> Mapping[str, Declared]:
    """Return the declared cells of task sub-agents."""
    fails = "a task's failure fails the run: google/adk/workflow/_dynamic_node_scheduler.py:841"

    def failed(events: list[Any], fault: BaseException | None) -> bool:
        return fault is not None and not _heard(events, "alpha")

    def one_by_one(events: list[Any], _: BaseException | None) -> bool:
        return ("beta", "beta wants to") not in _said(events)

    cells = {
        "a-tool-that-calls-a-model": _helper(native),
        "a-handled-failure": Declared(
            fails,
            [Truth({"run": ["start", "fails: alpha broke"], "main": _CAREFULLY, "alpha#1": _BROKE})],
            _shows(native, "a-handled-failure", failed),
        ),
        "failure-in-the-middle-of-a-sentence": Declared(
            fails,
            [
                Truth(
                    {
                        "run": ["start", "fails: alpha broke"],
                        "main": _CAREFULLY,
                        "alpha#1": [
                            "opens for main, call 1",
                            "says 'alpha was just about'",
                            "fails: alpha broke",
                        ],
                    }
                )
            ],
            _shows(native, "failure-in-the-middle-of-a-sentence", failed),
        ),
        "a-retry": Declared(
            fails,
            [
                Truth(
                    {
                        "run": ["start", "fails: alpha broke"],
                        "main": ["says 'main asks'", "calls 1: alpha 'carefully, at first'"],
                        "alpha#1": _BROKE,
                    }
                )
            ],
            _shows(native, "a-retry", failed),
        ),
        "two-approvals-one-by-one": Declared(
            "tasks of one turn run one after the other, so the second never asks: google/adk/workflow/_llm_agent_wrapper.py:577",
            [
                Truth(
                    {
                        "run": ["start", "waits for alpha#1, call 1"],
                        "main": ["says 'main asks'", "calls 1: alpha 'a'", "calls 2: beta 'b'"],
                        "alpha#1": [
                            "opens for main, call 1",
                            "says 'alpha wants to'",
                            'calls 1: publish {"q": "alpha"}',
                            "suspends, asking 1",
                        ],
                    }
                )
            ],
            _shows(native, "two-approvals-one-by-one", one_by_one),
        ),
    }
    if not can("nested_task"):
        leaf = "before 2.12 what a task delegates is never run: google/adk/workflow/_llm_agent_wrapper.py"

        def unanswered(events: list[Any], fault: BaseException | None) -> bool:
            return (
                fault is None and not _heard(events, "beta") and ("alpha", "alpha is done") in _said(events)
            )

        for scenario, asked, sub in (
            ("nested-three-deep", "task a", "task b"),
            ("approval-two-deep", "do it", "b"),
        ):
            cells[scenario] = Declared(
                leaf,
                [
                    Truth(
                        {
                            "run": _END,
                            "main": [
                                "says 'main asks'",
                                f"calls 1: alpha {asked!r}",
                                "hears 1: 'alpha is done'",
                                "says 'main is done'",
                            ],
                            "alpha#1": [
                                "opens for main, call 1",
                                "says 'alpha asks'",
                                f"calls 1: beta {sub!r}",
                                "says 'alpha is done'",
                                "returns 'alpha is done'",
                            ],
                        }
                    )
                ],
                _shows(native, scenario, unanswered),
            )
    return cells


def agent_tool(native: Native) -> Mapping[str, Declared]:
    """Return the declared cells of agents called with AgentTool."""
    alone = "an AgentTool's agent cannot wait for the user: google/adk/tools/agent_tool.py:422"

    def stopped(name: str) -> str:
        if not can("approval"):
            return "''"
        what = f"Error: agent {name!r} stopped waiting on unresolved long-running tool call(s) "
        return repr(what + "(pending call ids: ['adk-...']), which AgentTool cannot resume.")

    def went_on(events: list[Any], fault: BaseException | None) -> bool:
        return fault is None and ("main", "main is done") in _said(events)

    def silent(events: list[Any], _: BaseException | None) -> bool:
        return "just about" not in str(events)

    return {
        "a-tool-that-calls-a-model": _helper(native),
        "approval-in-a-subagent": Declared(
            alone,
            [
                Truth(
                    {
                        "run": _END,
                        "main": [*_ASKS, f"hears 1: {stopped('alpha')}", "says 'main is done'"],
                        "alpha#1": [
                            "opens for main, call 1",
                            "says 'alpha wants to'",
                            'calls 1: publish {"q": "alpha"}',
                            _SWALLOWED,
                        ],
                    }
                )
            ],
            _shows(native, "approval-in-a-subagent", went_on),
        ),
        "two-approvals-one-by-one": Declared(
            alone,
            [
                Truth(
                    {
                        "run": _END,
                        "main": [
                            "says 'main asks'",
                            "calls 1: alpha 'a'",
                            "calls 2: beta 'b'",
                            f"hears 1: {stopped('alpha')}",
                            f"hears 2: {stopped('beta')}",
                            "says 'main is done'",
                        ],
                        "alpha#1": [
                            "opens for main, call 1",
                            "says 'alpha wants to'",
                            'calls 1: publish {"q": "alpha"}',
                            _SWALLOWED,
                        ],
                        "beta#1": [
                            "opens for main, call 2",
                            "says 'beta wants to'",
                            'calls 1: send {"q": "beta"}',
                            _SWALLOWED,
                        ],
                    }
                )
            ],
            _shows(native, "two-approvals-one-by-one", went_on),
        ),
        "approval-two-deep": Declared(
            alone,
            [
                Truth(
                    {
                        "run": _END,
                        "main": [*_ASKS, "hears 1: 'alpha is done'", "says 'main is done'"],
                        "alpha#1": [
                            "opens for main, call 1",
                            "says 'alpha asks'",
                            "calls 1: beta 'b'",
                            f"hears 1: {stopped('beta')}",
                            "says 'alpha is done'",
                            "returns",
                        ],
                        "beta#1": [
                            "opens for alpha#1, call 1",
                            "says 'beta wants to'",
                            'calls 1: publish {"q": "beta"}',
                            _SWALLOWED,
                        ],
                    }
                )
            ],
            _shows(native, "approval-two-deep", went_on),
        ),
        "failure-in-the-middle-of-a-sentence": Declared(
            "an AgentTool's agent does not stream, so half a sentence is never heard: google/adk/tools/agent_tool.py:343",
            [
                Truth(
                    {
                        "run": _END,
                        "main": [*_CAREFULLY, "hears 1: 'failed: alpha broke'", "says 'main copes'"],
                        "alpha#1": _BROKE,
                    }
                )
            ],
            _shows(native, "failure-in-the-middle-of-a-sentence", silent),
        ),
    }


def workflow_agents(native: Native) -> Mapping[str, Declared]:
    """Return the declared cells of Sequential-, Parallel- and LoopAgents."""

    def own(container: str) -> str:
        return f"the container is an agent of its own, and so an invocation: google/adk/agents/{container}.py"

    return {
        "fan-out-of-three": Declared(
            own("parallel_agent"),
            [
                Truth(
                    {
                        "run": _END,
                        "at_once#1": ["opens for main", "returns"],
                        "alpha#1": ["opens for at_once#1", "says 'alpha says one two three'", "returns"],
                        "beta#1": ["opens for at_once#1", "says 'beta says four five six'", "returns"],
                        "gamma#1": ["opens for at_once#1", "says 'gamma says seven eight nine'", "returns"],
                        "delta#1": ["opens for main", "says 'delta sums up'", "returns"],
                    },
                    order=[("at_once#1 returns", "delta#1 opens for main")],
                    requests={"alpha": [["user: go"]], "beta": [["user: go"]], "gamma": [["user: go"]]},
                )
            ],
            _shows(
                native,
                "fan-out-of-three",
                lambda events, _: any("at_once" in (e.branch or "") for e in events),
            ),
        ),
        "a-loop-of-two": Declared(
            own("loop_agent"),
            [
                Truth(
                    {
                        "run": _END,
                        "again#1": ["opens for main", "returns"],
                        "alpha#1": ["opens for again#1", "says 'alpha in round one'", "returns"],
                        "alpha#2": ["opens for again#1", "says 'alpha in round two'", "returns"],
                        "beta#1": ["opens for main", "says 'beta closes'", "returns"],
                    },
                    order=[
                        ("alpha#1 returns", "alpha#2 opens for again#1"),
                        ("again#1 returns", "beta#1 opens for main"),
                    ],
                )
            ],
            _shows(
                native,
                "a-loop-of-two",
                lambda events, _: [who for who, _ in _said(events)] == ["alpha", "alpha", "beta"],
            ),
        ),
    }


def workflow(native: Native) -> Mapping[str, Declared]:
    """Return the declared cells of Workflows."""
    older = {}
    if not can("approval"):
        older["approval-in-a-node"] = Declared(
            "before 2.13 a confirmation makes the node begin again: google/adk/workflow/_workflow.py",
            [
                Truth(
                    {
                        "run": ["start", "waits for alpha#1, call 1"],
                        "alpha#1": [
                            "opens for main",
                            "says 'alpha wants to'",
                            'calls 1: publish {"q": "it"}',
                            "suspends, asking 1",
                        ],
                    }
                ),
                Truth(
                    {
                        "run": ["start", "waits for alpha#1, call 2"],
                        "alpha#1": [
                            "opens for main",
                            "says 'alpha wants to'",
                            'calls 2: publish {"q": "it"}',
                            "suspends, asking 1",
                        ],
                    }
                ),
            ],
            _shows(native, "approval-in-a-node", _asks_again("publish"), "alpha"),
        )
    own = "a node's agent sees what the node before it gave, not the conversation: google/adk/workflow/_llm_agent_wrapper.py:367"

    def forgets(events: list[Any], _: BaseException | None) -> bool:
        return [text for _, text in _said(events)].count("alpha in round one") == 2

    return {
        **older,
        "nodes-in-sequence": Declared(
            own,
            [
                Truth(
                    {
                        "run": _END,
                        "alpha#1": ["opens for main", "says 'alpha drafts'", "returns"],
                        "beta#1": ["opens for main", "says 'beta reviews'", "returns"],
                    },
                    order=[("alpha#1 returns", "beta#1 opens for main")],
                    requests={"alpha": [["user: go"]], "beta": [["user: alpha drafts"]]},
                )
            ],
            _shows(native, "nodes-in-sequence", lambda events, _: len(_said(events)) == 2),
        ),
        "a-loop-of-two": Declared(
            own,
            [
                Truth(
                    {
                        "run": _END,
                        "alpha#1": ["opens for main", "says 'alpha in round one'", "returns"],
                        "alpha#2": ["opens for main", "says 'alpha in round one'", "returns"],
                        "beta#1": ["opens for main", "says 'beta closes'", "returns"],
                    },
                    order=[
                        ("alpha#1 returns", "alpha#2 opens for main"),
                        ("alpha#2 returns", "beta#1 opens for main"),
                    ],
                    requests={"alpha": [["user: go"], ["user: alpha in round one"]]},
                )
            ],
            _shows(native, "a-loop-of-two", forgets),
        ),
    }
