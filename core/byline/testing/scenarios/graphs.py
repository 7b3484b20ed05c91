"""Agents that are nodes of a graph, and agents that hand over to each other."""

from byline.testing.scenario import (
    Agent,
    Answer,
    Call,
    Chain,
    Loop,
    Parallel,
    Prompt,
    Run,
    Scenario,
    Tool,
    Truth,
    Turn,
)

__all__ = ["GRAPHS"]

SEQUENCE = Scenario(
    "nodes-in-sequence",
    "two agents, one after the other, in one conversation",
    ("graph",),
    agents={
        "alpha": Agent("alpha", [Turn("alpha drafts")]),
        "beta": Agent("beta", [Turn("beta reviews")]),
    },
    root=Chain(["alpha", "beta"]),
    prompts={"alpha": Prompt(["You are alpha."]), "beta": Prompt(["You are beta."])},
    runs=[
        Run(
            text="go",
            truth=Truth(
                {
                    "run": ["start", "end"],
                    "alpha#1": ["opens for main", "says 'alpha drafts'", "returns 'alpha drafts'"],
                    "beta#1": ["opens for main", "says 'beta reviews'", "returns 'beta reviews'"],
                },
                order=[("alpha#1 returns 'alpha drafts'", "beta#1 opens for main")],
                requests={
                    "alpha": [["user: go"]],
                    "beta": [["user: go", "said: alpha drafts"]],
                },
            ),
        )
    ],
)

NODE_TOOL = Scenario(
    "a-tool-of-a-node",
    "a node's ordinary tool call is the node's",
    ("graph",),
    agents={
        "alpha": Agent(
            "alpha",
            [Turn("alpha looks", [Call("look_up", {"q": "it"})]), Turn("alpha knows")],
            tools=(Tool("look_up", "found"),),
        ),
        "beta": Agent("beta", [Turn("beta reviews")]),
    },
    root=Chain(["alpha", "beta"]),
    runs=[
        Run(
            text="go",
            truth=Truth(
                {
                    "run": ["start", "end"],
                    "alpha#1": [
                        "opens for main",
                        "says 'alpha looks'",
                        'calls 1: look_up {"q": "it"}',
                        "hears 1: 'found'",
                        "says 'alpha knows'",
                        "returns 'alpha knows'",
                    ],
                    "beta#1": ["opens for main", "says 'beta reviews'", "returns 'beta reviews'"],
                },
            ),
        )
    ],
)

FAN_OUT = Scenario(
    "fan-out-of-three",
    "three nodes at once; the next one starts when all have ended",
    ("graph",),
    agents={
        "alpha": Agent("alpha", [Turn("alpha says one two three")]),
        "beta": Agent("beta", [Turn("beta says four five six")]),
        "gamma": Agent("gamma", [Turn("gamma says seven eight nine")]),
        "delta": Agent("delta", [Turn("delta sums up")]),
    },
    root=Chain([Parallel(["alpha", "beta", "gamma"]), "delta"]),
    runs=[
        Run(
            text="go",
            truth=Truth(
                {
                    "run": ["start", "end"],
                    "alpha#1": [
                        "opens for main",
                        "says 'alpha says one two three'",
                        "returns 'alpha says one two three'",
                    ],
                    "beta#1": [
                        "opens for main",
                        "says 'beta says four five six'",
                        "returns 'beta says four five six'",
                    ],
                    "gamma#1": [
                        "opens for main",
                        "says 'gamma says seven eight nine'",
                        "returns 'gamma says seven eight nine'",
                    ],
                    "delta#1": ["opens for main", "says 'delta sums up'", "returns 'delta sums up'"],
                },
                order=[
                    ("alpha#1 returns 'alpha says one two three'", "delta#1 opens for main"),
                    ("beta#1 returns 'beta says four five six'", "delta#1 opens for main"),
                    ("gamma#1 returns 'gamma says seven eight nine'", "delta#1 opens for main"),
                ],
                requests={"alpha": [["user: go"]], "beta": [["user: go"]], "gamma": [["user: go"]]},
            ),
        )
    ],
)

LOOP = Scenario(
    "a-loop-of-two",
    "a node that runs twice is two invocations",
    ("graph",),
    agents={
        "alpha": Agent("alpha", [Turn("alpha in round one"), Turn("alpha in round two")]),
        "beta": Agent("beta", [Turn("beta closes")]),
    },
    root=Chain([Loop("alpha", 2), "beta"]),
    runs=[
        Run(
            text="go",
            truth=Truth(
                {
                    "run": ["start", "end"],
                    "alpha#1": [
                        "opens for main",
                        "says 'alpha in round one'",
                        "returns 'alpha in round one'",
                    ],
                    "alpha#2": [
                        "opens for main",
                        "says 'alpha in round two'",
                        "returns 'alpha in round two'",
                    ],
                    "beta#1": ["opens for main", "says 'beta closes'", "returns 'beta closes'"],
                },
                order=[
                    ("alpha#1 returns 'alpha in round one'", "alpha#2 opens for main"),
                    ("alpha#2 returns 'alpha in round two'", "beta#1 opens for main"),
                ],
            ),
        )
    ],
)

NODE_APPROVAL = Scenario(
    "approval-in-a-node",
    "a node waits for approval; the next run goes on under the same id, and with the nodes after it",
    ("graph",),
    agents={
        "alpha": Agent(
            "alpha",
            [Turn("alpha wants to", [Call("publish", {"q": "it"})]), Turn("alpha did it")],
            tools=(Tool("publish", "published", approval=True),),
        ),
        "beta": Agent("beta", [Turn("beta closes")]),
    },
    root=Chain(["alpha", "beta"]),
    runs=[
        Run(
            text="go",
            truth=Truth(
                {
                    "run": ["start", "waits for alpha#1, call 1"],
                    "alpha#1": [
                        "opens for main",
                        "says 'alpha wants to'",
                        'calls 1: publish {"q": "it"}',
                        "suspends, asking 1",
                    ],
                },
            ),
        ),
        Run(
            answers=[Answer("alpha#1")],
            truth=Truth(
                {
                    "run": ["start", "end"],
                    "alpha#1": [
                        "opens for main",
                        "hears 1: 'published'",
                        "says 'alpha did it'",
                        "returns 'alpha did it'",
                    ],
                    "beta#1": ["opens for main", "says 'beta closes'", "returns 'beta closes'"],
                },
            ),
        ),
    ],
)

NODE_FAILURE = Scenario(
    "a-node-that-fails",
    "a node fails beside one that has ended: the run fails, and only one of them failed",
    ("graph",),
    agents={
        "alpha": Agent("alpha", [Turn("alpha drafts")]),
        "beta": Agent("beta", [Turn("beta was just about", fails="beta broke")]),
        "gamma": Agent("gamma", [Turn("gamma never speaks")]),
    },
    root=Chain(["alpha", "beta", "gamma"]),
    runs=[
        Run(
            text="go",
            truth=Truth(
                {
                    "run": ["start", "fails: beta broke"],
                    "alpha#1": ["opens for main", "says 'alpha drafts'", "returns 'alpha drafts'"],
                    "beta#1": ["opens for main", "says 'beta was just about'", "fails: beta broke"],
                },
            ),
        )
    ],
)

SUPERVISOR = Scenario(
    "hand-off-that-comes-back",
    "a supervisor hands over to one, then to another; control comes back by itself",
    ("supervisor",),
    agents={
        "main": Agent(
            "main",
            [
                Turn("main asks alpha", [Call("alpha", handoff=True)]),
                Turn("main asks beta", [Call("beta", handoff=True)]),
                Turn("main is done"),
            ],
            delegates=("alpha", "beta"),
        ),
        "alpha": Agent("alpha", [Turn("alpha answers")]),
        "beta": Agent("beta", [Turn("beta answers")]),
    },
    root="main",
    runs=[
        Run(
            text="go",
            truth=Truth(
                {
                    "run": ["start", "end"],
                    "main": [
                        "says 'main asks alpha'",
                        "calls 1: hand over to alpha",
                        "hears 1: 'Successfully transferred to alpha'",
                        "says 'main asks beta'",
                        "calls 2: hand over to beta",
                        "hears 2: 'Successfully transferred to beta'",
                        "says 'main is done'",
                    ],
                    "alpha#1": ["opens for main, call 1", "says 'alpha answers'", "returns 'alpha answers'"],
                    "beta#1": ["opens for main, call 2", "says 'beta answers'", "returns 'beta answers'"],
                },
                order=[
                    ("alpha#1 returns 'alpha answers'", "main says 'main asks beta'"),
                    ("beta#1 returns 'beta answers'", "main says 'main is done'"),
                ],
            ),
        )
    ],
)

SWARM = Scenario(
    "hand-offs-between-peers",
    "alpha hands over to beta, beta hands back: three invocations, the calls are their callers'",
    ("swarm",),
    agents={
        "alpha": Agent(
            "alpha",
            [Turn("alpha passes on", [Call("beta", handoff=True)]), Turn("alpha ends")],
            delegates=("beta",),
        ),
        "beta": Agent(
            "beta", [Turn("beta passes back", [Call("alpha", handoff=True)])], delegates=("alpha",)
        ),
    },
    root="alpha",
    runs=[
        Run(
            text="go",
            truth=Truth(
                {
                    "run": ["start", "end"],
                    "alpha#1": [
                        "opens for main",
                        "says 'alpha passes on'",
                        "calls 1: hand over to beta",
                        "hears 1: 'Successfully transferred to beta'",
                        "returns",
                    ],
                    "beta#1": [
                        "opens for main, call 1 of alpha#1",
                        "says 'beta passes back'",
                        "calls 1: hand over to alpha",
                        "hears 1: 'Successfully transferred to alpha'",
                        "returns",
                    ],
                    "alpha#2": [
                        "opens for main, call 1 of beta#1",
                        "says 'alpha ends'",
                        "returns 'alpha ends'",
                    ],
                },
                order=[
                    ("alpha#1 returns", "beta#1 opens for main, call 1 of alpha#1"),
                    ("beta#1 returns", "alpha#2 opens for main, call 1 of beta#1"),
                ],
            ),
        )
    ],
)

TRANSFER = Scenario(
    "hand-off-there-and-back",
    "the parent transfers to a chat agent, which transfers back: one conversation, two owners",
    ("transfer",),
    agents={
        "main": Agent(
            "main",
            [Turn("main passes on", [Call("alpha", handoff=True)]), Turn("main is done")],
            delegates=("alpha",),
        ),
        "alpha": Agent("alpha", [Turn("alpha passes back", [Call("main", handoff=True)])]),
    },
    root="main",
    runs=[
        Run(
            text="go",
            truth=Truth(
                {
                    "run": ["start", "end"],
                    "main": [
                        "says 'main passes on'",
                        "calls 1: hand over to alpha",
                        "hears 1: 'transferred to alpha'",
                        "says 'main is done'",
                    ],
                    "alpha#1": [
                        "opens for main, call 1",
                        "says 'alpha passes back'",
                        "calls 1: hand over to main",
                        "hears 1: 'transferred to main'",
                        "returns",
                    ],
                },
                order=[("alpha#1 returns", "main says 'main is done'")],
            ),
        )
    ],
)

STAYS = Scenario(
    "hand-off-that-stays",
    "a chat agent keeps the conversation: it is suspended, and the user's next words go to the same invocation",
    ("transfer",),
    agents={
        "main": Agent("main", [Turn("main passes on", [Call("alpha", handoff=True)])], delegates=("alpha",)),
        "alpha": Agent("alpha", [Turn("alpha takes over"), Turn("alpha goes on")]),
    },
    root="main",
    runs=[
        Run(
            text="go",
            truth=Truth(
                {
                    "run": ["start", "end"],
                    "main": [
                        "says 'main passes on'",
                        "calls 1: hand over to alpha",
                        "hears 1: 'transferred to alpha'",
                    ],
                    "alpha#1": ["opens for main, call 1", "says 'alpha takes over'", "suspends"],
                },
            ),
        ),
        Run(
            text="and then?",
            truth=Truth(
                {
                    "run": ["start", "end"],
                    "alpha#1": ["opens for main, call 1", "says 'alpha goes on'", "suspends"],
                },
            ),
        ),
    ],
)

GRAPHS = (
    SEQUENCE,
    NODE_TOOL,
    FAN_OUT,
    LOOP,
    NODE_APPROVAL,
    NODE_FAILURE,
    SUPERVISOR,
    SWARM,
    TRANSFER,
    STAYS,
)
