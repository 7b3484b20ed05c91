"""Delegation by a call: the caller's model calls, the subagent works, the result goes back to the caller."""

from byline.testing.scenario import Agent, Call, Prompt, Run, Scenario, Tool, Truth, Turn

__all__ = ["CALLS"]


def _main(*turns: Turn, delegates: tuple[str, ...] = (), tools: tuple[Tool, ...] = ()) -> Agent:
    return Agent("main", turns, delegates=delegates, tools=tools)


PARENT_ONLY = Scenario(
    "parent-only",
    "an agent that delegates nothing: no invocation, no tag",
    ("call", "supervisor", "transfer"),
    agents={"main": _main(Turn("main answers you"))},
    root="main",
    prompts={"main": Prompt(["You are main."])},
    runs=[
        Run(
            text="go",
            truth=Truth(
                {"run": ["start", "end"], "main": ["says 'main answers you'"]},
                requests={"main": [["user: go"]]},
            ),
        )
    ],
)

ONE = Scenario(
    "one-delegate",
    "one subagent, called once: it sees its task and nothing else, the parent its result and nothing else",
    ("call",),
    agents={
        "main": _main(
            Turn("main asks", [Call("alpha", task="look at it")]), Turn("main is done"), delegates=("alpha",)
        ),
        "alpha": Agent("alpha", [Turn("alpha answers")]),
    },
    root="main",
    prompts={"main": Prompt(["You are main."], ["-> alpha"]), "alpha": Prompt(["You are alpha."])},
    fork_prompts={"alpha": Prompt(["You are main."], ["-> alpha"])},
    runs=[
        Run(
            text="go",
            truth=Truth(
                {
                    "run": ["start", "end"],
                    "main": [
                        "says 'main asks'",
                        "calls 1: alpha 'look at it'",
                        "hears 1: 'alpha answers'",
                        "says 'main is done'",
                    ],
                    "alpha#1": ["opens for main, call 1", "says 'alpha answers'", "returns 'alpha answers'"],
                },
                order=[("alpha#1 returns 'alpha answers'", "main hears 1: 'alpha answers'")],
                requests={
                    "main": [
                        ["user: go"],
                        ["user: go", "said: main asks", "called: alpha 'look at it'", "heard: alpha answers"],
                    ],
                    "alpha": [["user: look at it"]],
                },
                forked={"alpha": [["user: go", "user: look at it"]]},
            ),
        )
    ],
)

TWO_PARALLEL = Scenario(
    "two-in-parallel",
    "two subagents called at once: their words never share a message, and neither sees the other",
    ("call",),
    agents={
        "main": _main(
            Turn("main asks both", [Call("alpha", task="first half"), Call("beta", task="second half")]),
            Turn("main is done"),
            delegates=("alpha", "beta"),
        ),
        "alpha": Agent("alpha", [Turn("alpha says one two three four")]),
        "beta": Agent("beta", [Turn("beta says five six seven eight")]),
    },
    root="main",
    runs=[
        Run(
            text="go",
            truth=Truth(
                {
                    "run": ["start", "end"],
                    "main": [
                        "says 'main asks both'",
                        "calls 1: alpha 'first half'",
                        "calls 2: beta 'second half'",
                        "hears 1: 'alpha says one two three four'",
                        "hears 2: 'beta says five six seven eight'",
                        "says 'main is done'",
                    ],
                    "alpha#1": [
                        "opens for main, call 1",
                        "says 'alpha says one two three four'",
                        "returns 'alpha says one two three four'",
                    ],
                    "beta#1": [
                        "opens for main, call 2",
                        "says 'beta says five six seven eight'",
                        "returns 'beta says five six seven eight'",
                    ],
                },
                requests={
                    "main": [
                        ["user: go"],
                        [
                            "user: go",
                            "said: main asks both",
                            "called: alpha 'first half'",
                            "called: beta 'second half'",
                            "heard: alpha says one two three four",
                            "heard: beta says five six seven eight",
                        ],
                    ],
                    "alpha": [["user: first half"]],
                    "beta": [["user: second half"]],
                },
                forked={
                    "alpha": [["user: go", "user: first half"]],
                    "beta": [["user: go", "user: second half"]],
                },
            ),
        )
    ],
)

SAME_TWICE = Scenario(
    "same-agent-twice",
    "one subagent in two calls at once: two invocations, each with its own words",
    ("call",),
    agents={
        "main": _main(
            Turn("main asks twice", [Call("alpha", task="the north"), Call("alpha", task="the south")]),
            Turn("main is done"),
            delegates=("alpha",),
        ),
        "alpha": Agent(
            "alpha",
            [Turn("alpha is lost")],
            on={"north": [Turn("alpha went up and up")], "south": [Turn("alpha went down and down")]},
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
                        "says 'main asks twice'",
                        "calls 1: alpha 'the north'",
                        "calls 2: alpha 'the south'",
                        "hears 1: 'alpha went up and up'",
                        "hears 2: 'alpha went down and down'",
                        "says 'main is done'",
                    ],
                    "alpha#1": [
                        "opens for main, call 1",
                        "says 'alpha went up and up'",
                        "returns 'alpha went up and up'",
                    ],
                    "alpha#2": [
                        "opens for main, call 2",
                        "says 'alpha went down and down'",
                        "returns 'alpha went down and down'",
                    ],
                },
                requests={"alpha": [["user: the north"], ["user: the south"]]},
                forked={
                    "alpha": [
                        ["user: go", "user: the north"],
                        ["user: go", "user: the south"],
                    ]
                },
            ),
        )
    ],
)

SAME_AGAIN = Scenario(
    "same-agent-again",
    "one subagent called again after it answered: another invocation, which remembers nothing",
    ("call",),
    agents={
        "main": _main(
            Turn("main asks once", [Call("alpha", task="the north")]),
            Turn("main asks again", [Call("alpha", task="the south")]),
            Turn("main is done"),
            delegates=("alpha",),
        ),
        "alpha": Agent(
            "alpha",
            [Turn("alpha is lost")],
            on={"north": [Turn("alpha went up")], "south": [Turn("alpha went down")]},
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
                        "says 'main asks once'",
                        "calls 1: alpha 'the north'",
                        "hears 1: 'alpha went up'",
                        "says 'main asks again'",
                        "calls 2: alpha 'the south'",
                        "hears 2: 'alpha went down'",
                        "says 'main is done'",
                    ],
                    "alpha#1": ["opens for main, call 1", "says 'alpha went up'", "returns 'alpha went up'"],
                    "alpha#2": [
                        "opens for main, call 2",
                        "says 'alpha went down'",
                        "returns 'alpha went down'",
                    ],
                },
                order=[("alpha#1 returns 'alpha went up'", "alpha#2 opens for main, call 2")],
                requests={"alpha": [["user: the north"], ["user: the south"]]},
                forked={
                    "alpha": [
                        ["user: go", "user: the north"],
                        [
                            "user: go",
                            "said: main asks once",
                            "called: alpha 'the north'",
                            "heard: alpha went up",
                            "user: the south",
                        ],
                    ]
                },
            ),
        )
    ],
)

NESTED = Scenario(
    "nested-three-deep",
    "a subagent's subagent's subagent: each is its caller's, and every result goes one step up",
    ("call",),
    agents={
        "main": _main(
            Turn("main asks", [Call("alpha", task="task a")]), Turn("main is done"), delegates=("alpha",)
        ),
        "alpha": Agent(
            "alpha",
            [Turn("alpha asks", [Call("beta", task="task b")]), Turn("alpha is done")],
            delegates=("beta",),
        ),
        "beta": Agent(
            "beta",
            [Turn("beta asks", [Call("gamma", task="task c")]), Turn("beta is done")],
            delegates=("gamma",),
        ),
        "gamma": Agent("gamma", [Turn("gamma is done")]),
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
                        "calls 1: alpha 'task a'",
                        "hears 1: 'alpha is done'",
                        "says 'main is done'",
                    ],
                    "alpha#1": [
                        "opens for main, call 1",
                        "says 'alpha asks'",
                        "calls 1: beta 'task b'",
                        "hears 1: 'beta is done'",
                        "says 'alpha is done'",
                        "returns 'alpha is done'",
                    ],
                    "beta#1": [
                        "opens for alpha#1, call 1",
                        "says 'beta asks'",
                        "calls 1: gamma 'task c'",
                        "hears 1: 'gamma is done'",
                        "says 'beta is done'",
                        "returns 'beta is done'",
                    ],
                    "gamma#1": [
                        "opens for beta#1, call 1",
                        "says 'gamma is done'",
                        "returns 'gamma is done'",
                    ],
                },
                requests={
                    "main": [
                        ["user: go"],
                        ["user: go", "said: main asks", "called: alpha 'task a'", "heard: alpha is done"],
                    ],
                    "alpha": [
                        ["user: task a"],
                        ["user: task a", "said: alpha asks", "called: beta 'task b'", "heard: beta is done"],
                    ],
                    "beta": [
                        ["user: task b"],
                        ["user: task b", "said: beta asks", "called: gamma 'task c'", "heard: gamma is done"],
                    ],
                    "gamma": [["user: task c"]],
                },
                forked={
                    "alpha": [
                        ["user: go", "user: task a"],
                        [
                            "user: go",
                            "user: task a",
                            "said: alpha asks",
                            "called: beta 'task b'",
                            "heard: beta is done",
                        ],
                    ],
                    "beta": [
                        ["user: go", "user: task a", "user: task b"],
                        [
                            "user: go",
                            "user: task a",
                            "user: task b",
                            "said: beta asks",
                            "called: gamma 'task c'",
                            "heard: gamma is done",
                        ],
                    ],
                    "gamma": [["user: go", "user: task a", "user: task b", "user: task c"]],
                },
            ),
        )
    ],
)

PLAIN_TOOL = Scenario(
    "a-tool-of-a-subagent",
    "a subagent calls an ordinary tool: the call, its arguments and its answer are the subagent's",
    ("call",),
    agents={
        "main": _main(
            Turn("main asks", [Call("alpha", task="find it")]), Turn("main is done"), delegates=("alpha",)
        ),
        "alpha": Agent(
            "alpha",
            [Turn("alpha looks", [Call("look_up", {"q": "lighthouse"})]), Turn("alpha knows")],
            tools=(Tool("look_up", "it burned down"),),
        ),
    },
    root="main",
    prompts={
        "main": Prompt(["You are main."], ["-> alpha"]),
        "alpha": Prompt(["You are alpha."], ["look_up"]),
    },
    fork_prompts={"alpha": Prompt(["You are main."], ["-> alpha", "look_up"])},
    runs=[
        Run(
            text="go",
            truth=Truth(
                {
                    "run": ["start", "end"],
                    "main": [
                        "says 'main asks'",
                        "calls 1: alpha 'find it'",
                        "hears 1: 'alpha knows'",
                        "says 'main is done'",
                    ],
                    "alpha#1": [
                        "opens for main, call 1",
                        "says 'alpha looks'",
                        'calls 1: look_up {"q": "lighthouse"}',
                        "hears 1: 'it burned down'",
                        "says 'alpha knows'",
                        "returns 'alpha knows'",
                    ],
                },
                requests={
                    "alpha": [
                        ["user: find it"],
                        [
                            "user: find it",
                            "said: alpha looks",
                            'called: look_up {"q": "lighthouse"}',
                            "heard: it burned down",
                        ],
                    ]
                },
                forked={
                    "alpha": [
                        ["user: go", "user: find it"],
                        [
                            "user: go",
                            "user: find it",
                            "said: alpha looks",
                            'called: look_up {"q": "lighthouse"}',
                            "heard: it burned down",
                        ],
                    ]
                },
            ),
        )
    ],
)

MODEL_IN_TOOL = Scenario(
    "a-tool-that-calls-a-model",
    "a tool that merely asks a model is no subagent: what the model says is its caller's",
    ("call",),
    agents={
        "main": _main(
            Turn("main rephrases", [Call("rephrase", {"q": "this"})]),
            Turn("main is done"),
            tools=(Tool("rephrase", model="helper words"),),
        )
    },
    root="main",
    runs=[
        Run(
            text="go",
            truth=Truth(
                {
                    "run": ["start", "end"],
                    "main": [
                        "says 'main rephrases'",
                        'calls 1: rephrase {"q": "this"}',
                        "says 'helper words'",
                        "hears 1: 'helper words'",
                        "says 'main is done'",
                    ],
                }
            ),
        )
    ],
)

FAN_OUT_CALLS = Scenario(
    "fan-out-by-calls",
    "three subagents at once: the parent goes on only when all have ended",
    ("call",),
    agents={
        "main": _main(
            Turn(
                "main asks three", [Call("alpha", task="a"), Call("beta", task="b"), Call("gamma", task="c")]
            ),
            Turn("main is done"),
            delegates=("alpha", "beta", "gamma"),
        ),
        "alpha": Agent("alpha", [Turn("alpha answers")]),
        "beta": Agent("beta", [Turn("beta answers at some length")]),
        "gamma": Agent("gamma", [Turn("gamma answers at even greater length than beta")]),
    },
    root="main",
    runs=[
        Run(
            text="go",
            truth=Truth(
                {
                    "run": ["start", "end"],
                    "main": [
                        "says 'main asks three'",
                        "calls 1: alpha 'a'",
                        "calls 2: beta 'b'",
                        "calls 3: gamma 'c'",
                        "hears 1: 'alpha answers'",
                        "hears 2: 'beta answers at some length'",
                        "hears 3: 'gamma answers at even greater length than beta'",
                        "says 'main is done'",
                    ],
                    "alpha#1": ["opens for main, call 1", "says 'alpha answers'", "returns 'alpha answers'"],
                    "beta#1": [
                        "opens for main, call 2",
                        "says 'beta answers at some length'",
                        "returns 'beta answers at some length'",
                    ],
                    "gamma#1": [
                        "opens for main, call 3",
                        "says 'gamma answers at even greater length than beta'",
                        "returns 'gamma answers at even greater length than beta'",
                    ],
                },
                order=[
                    ("alpha#1 returns 'alpha answers'", "main says 'main is done'"),
                    ("beta#1 returns 'beta answers at some length'", "main says 'main is done'"),
                    (
                        "gamma#1 returns 'gamma answers at even greater length than beta'",
                        "main says 'main is done'",
                    ),
                ],
            ),
        )
    ],
)

TWO_TURNS = Scenario(
    "two-user-turns",
    "the second message of a conversation: new invocations, under new ids",
    ("call",),
    agents={
        "main": Agent(
            "main",
            [Turn("main asks", [Call("alpha", task="the north")]), Turn("main is done")],
            on={
                "more": [
                    Turn("main asks more", [Call("alpha", task="the south")]),
                    Turn("main is done again"),
                ]
            },
            delegates=("alpha",),
        ),
        "alpha": Agent(
            "alpha",
            [Turn("alpha is lost")],
            on={"north": [Turn("alpha went up")], "south": [Turn("alpha went down")]},
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
                        "calls 1: alpha 'the north'",
                        "hears 1: 'alpha went up'",
                        "says 'main is done'",
                    ],
                    "alpha#1": ["opens for main, call 1", "says 'alpha went up'", "returns 'alpha went up'"],
                }
            ),
        ),
        Run(
            text="more",
            truth=Truth(
                {
                    "run": ["start", "end"],
                    "main": [
                        "says 'main asks more'",
                        "calls 2: alpha 'the south'",
                        "hears 2: 'alpha went down'",
                        "says 'main is done again'",
                    ],
                    "alpha#2": [
                        "opens for main, call 2",
                        "says 'alpha went down'",
                        "returns 'alpha went down'",
                    ],
                },
                requests={"alpha": [["user: the south"]]},
                forked={
                    "alpha": [
                        [
                            "user: go",
                            "said: main asks",
                            "called: alpha 'the north'",
                            "heard: alpha went up",
                            "said: main is done",
                            "user: more",
                            "user: the south",
                        ]
                    ]
                },
            ),
        ),
    ],
)

NAMES = Scenario(
    "names-that-begin-alike",
    "agents named a_1 and a_10: neither is taken for the other",
    ("call",),
    agents={
        "main": _main(
            Turn("main asks", [Call("a_1", task="one"), Call("a_10", task="ten")]),
            Turn("main is done"),
            delegates=("a_1", "a_10"),
        ),
        "a_1": Agent("a_1", [Turn("a_1 speaks")]),
        "a_10": Agent("a_10", [Turn("a_10 speaks")]),
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
                        "calls 1: a_1 'one'",
                        "calls 2: a_10 'ten'",
                        "hears 1: 'a_1 speaks'",
                        "hears 2: 'a_10 speaks'",
                        "says 'main is done'",
                    ],
                    "a_1#1": ["opens for main, call 1", "says 'a_1 speaks'", "returns 'a_1 speaks'"],
                    "a_10#1": ["opens for main, call 2", "says 'a_10 speaks'", "returns 'a_10 speaks'"],
                }
            ),
        )
    ],
)

COLLIDING = Scenario(
    "colliding-call-ids",
    "three models give their calls the same id: each answer finds its call",
    ("call",),
    agents={
        "main": _main(
            Turn("main asks", [Call("alpha", task="a", id="call_0"), Call("beta", task="b", id="call_1")]),
            Turn("main is done"),
            delegates=("alpha", "beta"),
        ),
        "alpha": Agent(
            "alpha",
            [Turn("alpha looks", [Call("look_up", {"q": "x"}, id="call_0")]), Turn("alpha knows")],
            tools=(Tool("look_up", "found"),),
        ),
        "beta": Agent(
            "beta",
            [Turn("beta checks", [Call("check", {"q": "y"}, id="call_0")]), Turn("beta knows")],
            tools=(Tool("check", "checked"),),
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
                        "calls 1: alpha 'a'",
                        "calls 2: beta 'b'",
                        "hears 1: 'alpha knows'",
                        "hears 2: 'beta knows'",
                        "says 'main is done'",
                    ],
                    "alpha#1": [
                        "opens for main, call 1",
                        "says 'alpha looks'",
                        'calls 1: look_up {"q": "x"}',
                        "hears 1: 'found'",
                        "says 'alpha knows'",
                        "returns 'alpha knows'",
                    ],
                    "beta#1": [
                        "opens for main, call 2",
                        "says 'beta checks'",
                        'calls 1: check {"q": "y"}',
                        "hears 1: 'checked'",
                        "says 'beta knows'",
                        "returns 'beta knows'",
                    ],
                }
            ),
        )
    ],
)

FIFTY = Scenario(
    "fifty-at-once",
    "fifty subagents in one turn: fifty invocations, none of them mixed up",
    ("call",),
    agents={
        "main": _main(
            Turn("main asks fifty", [Call(f"w{i}", task=f"part {i}") for i in range(1, 51)]),
            Turn("main is done"),
            delegates=tuple(f"w{i}" for i in range(1, 51)),
        ),
        **{f"w{i}": Agent(f"w{i}", [Turn(f"w{i} did its part")]) for i in range(1, 51)},
    },
    root="main",
    runs=[
        Run(
            text="go",
            truth=Truth(
                {
                    "run": ["start", "end"],
                    "main": [
                        "says 'main asks fifty'",
                        *(f"calls {i}: w{i} 'part {i}'" for i in range(1, 51)),
                        *(f"hears {i}: 'w{i} did its part'" for i in range(1, 51)),
                        "says 'main is done'",
                    ],
                    **{
                        f"w{i}#1": [
                            f"opens for main, call {i}",
                            f"says 'w{i} did its part'",
                            f"returns 'w{i} did its part'",
                        ]
                        for i in range(1, 51)
                    },
                },
            ),
        )
    ],
)

CALLS = (
    PARENT_ONLY,
    ONE,
    TWO_PARALLEL,
    SAME_TWICE,
    SAME_AGAIN,
    NESTED,
    PLAIN_TOOL,
    MODEL_IN_TOOL,
    FAN_OUT_CALLS,
    TWO_TURNS,
    NAMES,
    COLLIDING,
    FIFTY,
)
