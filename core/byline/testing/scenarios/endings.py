"""How delegations end, other than well; and questions."""

from byline.testing.scenario import Agent, Answer, Call, Run, Scenario, Tool, Truth, Turn

__all__ = ["ENDINGS"]

_ASKS = Turn("main asks", [Call("alpha", task="do it")])
_MAIN = Agent("main", [_ASKS, Turn("main is done")], delegates=("alpha",))


def _publisher(name: str, tool: str) -> Agent:
    return Agent(
        name,
        [Turn(f"{name} wants to", [Call(tool, {"q": name})]), Turn(f"{name} did it")],
        tools=(Tool(tool, f"{tool} done", approval=True),),
    )


APPROVAL = Scenario(
    "approval-in-a-subagent",
    "a subagent's tool waits for approval; the next run goes on under the same id",
    ("call",),
    agents={"main": _MAIN, "alpha": _publisher("alpha", "publish")},
    root="main",
    runs=[
        Run(
            text="go",
            truth=Truth(
                {
                    "run": ["start", "waits for alpha#1, call 1"],
                    "main": ["says 'main asks'", "calls 1: alpha 'do it'"],
                    "alpha#1": [
                        "opens for main, call 1",
                        "says 'alpha wants to'",
                        'calls 1: publish {"q": "alpha"}',
                        "suspends, asking 1",
                    ],
                }
            ),
        ),
        Run(
            answers=[Answer("alpha#1")],
            truth=Truth(
                {
                    "run": ["start", "end"],
                    "main": ["hears 1: 'alpha did it'", "says 'main is done'"],
                    "alpha#1": [
                        "opens for main, call 1",
                        "hears 1: 'publish done'",
                        "says 'alpha did it'",
                        "returns 'alpha did it'",
                    ],
                },
            ),
        ),
    ],
)

TWO_APPROVALS = Scenario(
    "two-approvals-one-by-one",
    "two subagents wait at once; one is answered, the other waits on",
    ("call",),
    agents={
        "main": Agent(
            "main",
            [Turn("main asks", [Call("alpha", task="a"), Call("beta", task="b")]), Turn("main is done")],
            delegates=("alpha", "beta"),
        ),
        "alpha": _publisher("alpha", "publish"),
        "beta": _publisher("beta", "send"),
    },
    root="main",
    runs=[
        Run(
            text="go",
            truth=Truth(
                {
                    "run": ["start", "waits for alpha#1, call 1", "waits for beta#1, call 1"],
                    "main": ["says 'main asks'", "calls 1: alpha 'a'", "calls 2: beta 'b'"],
                    "alpha#1": [
                        "opens for main, call 1",
                        "says 'alpha wants to'",
                        'calls 1: publish {"q": "alpha"}',
                        "suspends, asking 1",
                    ],
                    "beta#1": [
                        "opens for main, call 2",
                        "says 'beta wants to'",
                        'calls 1: send {"q": "beta"}',
                        "suspends, asking 1",
                    ],
                }
            ),
        ),
        Run(
            answers=[Answer("beta#1")],
            truth=Truth(
                {
                    "run": ["start", "waits for alpha#1, call 1"],
                    "main": ["hears 2: 'beta did it'"],
                    "alpha#1": ["opens for main, call 1", "suspends, asking 1"],
                    "beta#1": [
                        "opens for main, call 2",
                        "hears 1: 'send done'",
                        "says 'beta did it'",
                        "returns 'beta did it'",
                    ],
                }
            ),
        ),
        Run(
            answers=[Answer("alpha#1")],
            truth=Truth(
                {
                    "run": ["start", "end"],
                    "main": ["hears 1: 'alpha did it'", "says 'main is done'"],
                    "alpha#1": [
                        "opens for main, call 1",
                        "hears 1: 'publish done'",
                        "says 'alpha did it'",
                        "returns 'alpha did it'",
                    ],
                }
            ),
        ),
    ],
)

NESTED_APPROVAL = Scenario(
    "approval-two-deep",
    "a subagent's subagent waits: both suspend, and only the one that asked says so",
    ("call",),
    agents={
        "main": _MAIN,
        "alpha": Agent(
            "alpha",
            [Turn("alpha asks", [Call("beta", task="b")]), Turn("alpha is done")],
            delegates=("beta",),
        ),
        "beta": _publisher("beta", "publish"),
    },
    root="main",
    runs=[
        Run(
            text="go",
            truth=Truth(
                {
                    "run": ["start", "waits for beta#1, call 1"],
                    "main": ["says 'main asks'", "calls 1: alpha 'do it'"],
                    "alpha#1": [
                        "opens for main, call 1",
                        "says 'alpha asks'",
                        "calls 1: beta 'b'",
                        "suspends",
                    ],
                    "beta#1": [
                        "opens for alpha#1, call 1",
                        "says 'beta wants to'",
                        'calls 1: publish {"q": "beta"}',
                        "suspends, asking 1",
                    ],
                },
                order=[("beta#1 suspends, asking 1", "alpha#1 suspends")],
            ),
        ),
        Run(
            answers=[Answer("beta#1")],
            truth=Truth(
                {
                    "run": ["start", "end"],
                    "main": ["hears 1: 'alpha is done'", "says 'main is done'"],
                    "alpha#1": [
                        "opens for main, call 1",
                        "hears 1: 'beta did it'",
                        "says 'alpha is done'",
                        "returns 'alpha is done'",
                    ],
                    "beta#1": [
                        "opens for alpha#1, call 1",
                        "hears 1: 'publish done'",
                        "says 'beta did it'",
                        "returns 'beta did it'",
                    ],
                },
                order=[("alpha#1 opens for main, call 1", "beta#1 opens for alpha#1, call 1")],
            ),
        ),
    ],
)

QUESTION = Scenario(
    "a-clarifying-question",
    "a subagent puts a question to the user with a tool, and goes on with the answer",
    ("question",),
    agents={
        "main": _MAIN,
        "alpha": Agent(
            "alpha",
            [Turn("alpha wonders", [Call("ask_user", {"q": "which city"})]), Turn("alpha books it")],
            tools=(Tool("ask_user", asks="which city"),),
        ),
    },
    root="main",
    runs=[
        Run(
            text="go",
            truth=Truth(
                {
                    "run": ["start", "waits for alpha#1, call 1"],
                    "main": ["says 'main asks'", "calls 1: alpha 'do it'"],
                    "alpha#1": [
                        "opens for main, call 1",
                        "says 'alpha wonders'",
                        'calls 1: ask_user {"q": "which city"}',
                        "suspends, asking 1",
                    ],
                }
            ),
        ),
        Run(
            answers=[Answer("alpha#1", "Seoul")],
            truth=Truth(
                {
                    "run": ["start", "end"],
                    "main": ["hears 1: 'alpha books it'", "says 'main is done'"],
                    "alpha#1": [
                        "opens for main, call 1",
                        "hears 1: 'Seoul'",
                        "says 'alpha books it'",
                        "returns 'alpha books it'",
                    ],
                }
            ),
        ),
    ],
)

ASK = Scenario(
    "a-question-in-plain-words",
    "a subagent asks the user in plain words; the user's next words continue the same invocation",
    ("ask",),
    agents={
        "main": _MAIN,
        "alpha": Agent(
            "alpha",
            [Turn("alpha asks: which city?", question=True), Turn("alpha books Seoul")],
        ),
    },
    root="main",
    runs=[
        Run(
            text="go",
            truth=Truth(
                {
                    "run": ["start", "end"],
                    "main": ["says 'main asks'", "calls 1: alpha 'do it'"],
                    "alpha#1": ["opens for main, call 1", "says 'alpha asks: which city?'", "suspends"],
                }
            ),
        ),
        Run(
            text="Seoul",
            truth=Truth(
                {
                    "run": ["start", "end"],
                    "main": ["hears 1: 'alpha books Seoul'", "says 'main is done'"],
                    "alpha#1": [
                        "opens for main, call 1",
                        "says 'alpha books Seoul'",
                        "returns 'alpha books Seoul'",
                    ],
                }
            ),
        ),
    ],
)

HANDLED = Scenario(
    "a-handled-failure",
    "a subagent fails and its caller goes on: an error of the subagent, a success of the run",
    ("call",),
    agents={
        "main": Agent(
            "main",
            [Turn("main asks", [Call("alpha", task="carefully")]), Turn("main copes")],
            delegates=("alpha",),
            copes=True,
        ),
        "alpha": Agent("alpha", [Turn(fails="alpha broke")]),
    },
    root="main",
    runs=[
        Run(
            text="go",
            truth=Truth(
                {
                    "run": ["start", "end"],
                    "main": [
                        "says 'main asks'",
                        "calls 1: alpha 'carefully'",
                        "hears 1: 'failed: alpha broke'",
                        "says 'main copes'",
                    ],
                    "alpha#1": ["opens for main, call 1", "fails: alpha broke"],
                }
            ),
        )
    ],
)

FATAL = Scenario(
    "a-fatal-failure",
    "a subagent fails, nobody handles it, and the run fails with it",
    ("call",),
    agents={"main": _MAIN, "alpha": Agent("alpha", [Turn(fails="alpha broke")])},
    root="main",
    runs=[
        Run(
            text="go",
            truth=Truth(
                {
                    "run": ["start", "fails: alpha broke"],
                    "main": ["says 'main asks'", "calls 1: alpha 'do it'"],
                    "alpha#1": ["opens for main, call 1", "fails: alpha broke"],
                },
            ),
        )
    ],
)

MID_SENTENCE = Scenario(
    "failure-in-the-middle-of-a-sentence",
    "what was said before the failure arrives, and belongs to whoever said it",
    ("call",),
    agents={
        "main": Agent(
            "main",
            [Turn("main asks", [Call("alpha", task="carefully")]), Turn("main copes")],
            delegates=("alpha",),
            copes=True,
        ),
        "alpha": Agent("alpha", [Turn("alpha was just about", fails="alpha broke")]),
    },
    root="main",
    runs=[
        Run(
            text="go",
            truth=Truth(
                {
                    "run": ["start", "end"],
                    "main": [
                        "says 'main asks'",
                        "calls 1: alpha 'carefully'",
                        "hears 1: 'failed: alpha broke'",
                        "says 'main copes'",
                    ],
                    "alpha#1": [
                        "opens for main, call 1",
                        "says 'alpha was just about'",
                        "fails: alpha broke",
                    ],
                }
            ),
        )
    ],
)

RETRY = Scenario(
    "a-retry",
    "a subagent that failed is called again: a new invocation, the failed one stays failed",
    ("call",),
    agents={
        "main": Agent(
            "main",
            [
                Turn("main asks", [Call("alpha", task="carefully, at first")]),
                Turn("main asks again", [Call("alpha", task="carefully, once more")]),
                Turn("main is done"),
            ],
            delegates=("alpha",),
            copes=True,
        ),
        "alpha": Agent(
            "alpha",
            [Turn("alpha is lost")],
            on={"at first": [Turn(fails="alpha broke")], "once more": [Turn("alpha managed")]},
        ),
    },
    root="main",
    runs=[
        Run(
            text="go",
            truth=Truth(
                {
                    "run": ["start", "end"],
                    "main": [
                        "says 'main asks'",
                        "calls 1: alpha 'carefully, at first'",
                        "hears 1: 'failed: alpha broke'",
                        "says 'main asks again'",
                        "calls 2: alpha 'carefully, once more'",
                        "hears 2: 'alpha managed'",
                        "says 'main is done'",
                    ],
                    "alpha#1": ["opens for main, call 1", "fails: alpha broke"],
                    "alpha#2": ["opens for main, call 2", "says 'alpha managed'", "returns 'alpha managed'"],
                }
            ),
        )
    ],
)

CANCEL = Scenario(
    "cancel",
    "the run is stopped while a subagent speaks: what was open is cancelled, nothing of it is a success",
    ("call",),
    agents={
        "main": _MAIN,
        "alpha": Agent("alpha", [Turn("alpha starts", hangs=True)]),
    },
    root="main",
    runs=[
        Run(
            text="go",
            stop_at="alpha starts",
            truth=Truth(
                {
                    "run": ["start", "cancelled"],
                    "main": ["says 'main asks'", "calls 1: alpha 'do it'"],
                    "alpha#1": ["opens for main, call 1", "says 'alpha starts'", "cancelled"],
                },
            ),
        )
    ],
)

ENDINGS = (
    APPROVAL,
    TWO_APPROVALS,
    NESTED_APPROVAL,
    QUESTION,
    ASK,
    HANDLED,
    FATAL,
    MID_SENTENCE,
    RETRY,
    CANCEL,
)
