"""What is said, and how it streams."""

from byline.testing.scenario import Agent, Call, Cost, Run, Scenario, Tool, Truth, Turn

__all__ = ["CONTENT"]

_ASKS = Turn("main asks", [Call("alpha", task="do it")])
_DONE = Turn("main is done")
_MAIN = Agent("main", [_ASKS, _DONE], delegates=("alpha",))


WHOLE = Scenario(
    "a-model-that-does-not-stream",
    "a subagent's model gives its answers whole",
    ("call",),
    agents={
        "main": _MAIN,
        "alpha": Agent(
            "alpha",
            [Turn("alpha looks", [Call("look_up", {"q": "it"})]), Turn("alpha knows")],
            tools=(Tool("look_up", "found"),),
            streams=False,
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
                        "calls 1: alpha 'do it'",
                        "hears 1: 'alpha knows'",
                        "says 'main is done'",
                    ],
                    "alpha#1": [
                        "opens for main, call 1",
                        "says 'alpha looks'",
                        'calls 1: look_up {"q": "it"}',
                        "hears 1: 'found'",
                        "says 'alpha knows'",
                        "returns 'alpha knows'",
                    ],
                }
            ),
        )
    ],
)

ONE_CHUNK = Scenario(
    "arguments-in-one-chunk",
    "a call whose arguments come whole with its name",
    ("call",),
    agents={
        "main": Agent(
            "main",
            [Turn("main asks", [Call("alpha", task="do it")], arguments="first"), _DONE],
            delegates=("alpha",),
        ),
        "alpha": Agent(
            "alpha",
            [Turn("alpha looks", [Call("look_up", {"q": "it"})], arguments="first"), Turn("alpha knows")],
            tools=(Tool("look_up", "found"),),
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
                        "calls 1: alpha 'do it'",
                        "hears 1: 'alpha knows'",
                        "says 'main is done'",
                    ],
                    "alpha#1": [
                        "opens for main, call 1",
                        "says 'alpha looks'",
                        'calls 1: look_up {"q": "it"}',
                        "hears 1: 'found'",
                        "says 'alpha knows'",
                        "returns 'alpha knows'",
                    ],
                }
            ),
        )
    ],
)

REASONING = Scenario(
    "reasoning-beside-text",
    "what a subagent thinks is its own, and is not what it says",
    ("call",),
    agents={
        "main": Agent(
            "main",
            [
                Turn("main asks", [Call("alpha", task="do it")], reasoning="main wonders who knows"),
                Turn("main is done"),
            ],
            delegates=("alpha",),
        ),
        "alpha": Agent("alpha", [Turn("alpha answers", reasoning="alpha thinks it over")]),
    },
    root="main",
    runs=[
        Run(
            text="go",
            truth=Truth(
                {
                    "run": ["start", "end"],
                    "main": [
                        "thinks 'main wonders who knows'",
                        "says 'main asks'",
                        "calls 1: alpha 'do it'",
                        "hears 1: 'alpha answers'",
                        "says 'main is done'",
                    ],
                    "alpha#1": [
                        "opens for main, call 1",
                        "thinks 'alpha thinks it over'",
                        "says 'alpha answers'",
                        "returns 'alpha answers'",
                    ],
                }
            ),
        )
    ],
)

STATE = Scenario(
    "state-written-by-a-subagent",
    "state is the run's, whoever wrote it",
    ("call",),
    agents={
        "main": _MAIN,
        "alpha": Agent(
            "alpha",
            [Turn("alpha notes it", [Call("note", {"q": "lighthouse"})]), Turn("alpha noted it")],
            tools=(Tool("note", "noted", writes={"topic": "lighthouse"}),),
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
                        "calls 1: alpha 'do it'",
                        "hears 1: 'alpha noted it'",
                        "says 'main is done'",
                    ],
                    "alpha#1": [
                        "opens for main, call 1",
                        "says 'alpha notes it'",
                        'calls 1: note {"q": "lighthouse"}',
                        "hears 1: 'noted'",
                        "says 'alpha noted it'",
                        "returns 'alpha noted it'",
                    ],
                },
                state={"topic": "lighthouse"},
            ),
        )
    ],
)

USAGE = Scenario(
    "usage-of-two-providers",
    "every model call of the run counts, the subagents' too: one entry for each provider and model",
    ("call",),
    agents={
        "main": Agent(
            "main",
            [
                Turn("main asks", [Call("alpha", task="do it")], cost=Cost(100, 10)),
                Turn("main is done", cost=Cost(150, 5, cached=100)),
            ],
            delegates=("alpha",),
            model="big",
            provider="north",
        ),
        "alpha": Agent(
            "alpha", [Turn("alpha answers", cost=Cost(40, 7, cached=32))], model="small", provider="south"
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
                        "calls 1: alpha 'do it'",
                        "hears 1: 'alpha answers'",
                        "says 'main is done'",
                    ],
                    "alpha#1": ["opens for main, call 1", "says 'alpha answers'", "returns 'alpha answers'"],
                },
                usage=["north/big 250 in, 15 out, 100 cached", "south/small 40 in, 7 out, 32 cached"],
            ),
        )
    ],
)

HIDDEN = Scenario(
    "hidden",
    "a hidden subagent's words, calls and lifecycle stay out; the call that spawned it and its result stay",
    ("call",),
    agents={
        "main": Agent(
            "main",
            [Turn("main asks", [Call("alpha", task="a"), Call("beta", task="b")]), _DONE],
            delegates=("alpha", "beta"),
        ),
        "alpha": Agent(
            "alpha",
            [Turn("alpha looks", [Call("look_up", {"q": "it"})]), Turn("alpha knows")],
            tools=(Tool("look_up", "found"),),
        ),
        "beta": Agent("beta", [Turn("beta answers")]),
    },
    root="main",
    visibility={"alpha": "hidden"},
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
                        "hears 2: 'beta answers'",
                        "says 'main is done'",
                    ],
                    "beta#1": ["opens for main, call 2", "says 'beta answers'", "returns 'beta answers'"],
                }
            ),
        )
    ],
)

INLINE = Scenario(
    "inline",
    "an inline subagent's output is its caller's, without lifecycle and tags",
    ("call",),
    agents={
        "main": _MAIN,
        "alpha": Agent(
            "alpha",
            [Turn("alpha looks", [Call("look_up", {"q": "it"})]), Turn("alpha knows")],
            tools=(Tool("look_up", "found"),),
        ),
    },
    root="main",
    visibility={"alpha": "inline"},
    runs=[
        Run(
            text="go",
            truth=Truth(
                {
                    "run": ["start", "end"],
                    "main": [
                        "says 'main asks'",
                        "calls 1: alpha 'do it'",
                        "says 'alpha looks'",
                        'calls 2: look_up {"q": "it"}',
                        "hears 2: 'found'",
                        "says 'alpha knows'",
                        "hears 1: 'alpha knows'",
                        "says 'main is done'",
                    ],
                }
            ),
        )
    ],
)

UNICODE = Scenario(
    "unicode",
    "words in any script, with quotes, newlines and emoji, arrive as they were said",
    ("call",),
    agents={
        "main": Agent(
            "main",
            [
                Turn("main fragt: «größer?»", [Call("alpha", task="등대는 어디에?")]),
                Turn("main: 谢谢 \U0001f64f"),
            ],
            delegates=("alpha",),
        ),
        "alpha": Agent(
            "alpha",
            [
                Turn('alpha "שלום"\nзвучит', [Call("look_up", {"q": "naïve\t\U0001f9ed"})]),
                Turn("alpha: 등대는 \U0001f469‍\U0001f52c 곁에"),
            ],
            tools=(Tool("look_up", "é\u0301 ≠ é"),),
        ),
    },
    root="main",
    runs=[
        Run(
            text="go ✓",
            truth=Truth(
                {
                    "run": ["start", "end"],
                    "main": [
                        "says 'main fragt: «größer?»'",
                        "calls 1: alpha '등대는 어디에?'",
                        "hears 1: 'alpha: 등대는 \U0001f469\\u200d\U0001f52c 곁에'",
                        "says 'main: 谢谢 \U0001f64f'",
                    ],
                    "alpha#1": [
                        "opens for main, call 1",
                        "says 'alpha \"שלום\"\\nзвучит'",
                        'calls 1: look_up {"q": "naïve\\t\U0001f9ed"}',
                        "hears 1: 'é\u0301 ≠ é'",
                        "says 'alpha: 등대는 \U0001f469\\u200d\U0001f52c 곁에'",
                        "returns 'alpha: 등대는 \U0001f469\\u200d\U0001f52c 곁에'",
                    ],
                },
            ),
        )
    ],
)

_LONG = "alpha " + "word " * 4000 + "end"

LONG = Scenario(
    "a-very-long-text",
    "four thousand words in one message",
    ("call",),
    agents={"main": _MAIN, "alpha": Agent("alpha", [Turn(_LONG)])},
    root="main",
    runs=[
        Run(
            text="go",
            truth=Truth(
                {
                    "run": ["start", "end"],
                    "main": [
                        "says 'main asks'",
                        "calls 1: alpha 'do it'",
                        "hears 1: 'alpha " + "word " * 4000 + "end'",
                        "says 'main is done'",
                    ],
                    "alpha#1": [
                        "opens for main, call 1",
                        "says 'alpha " + "word " * 4000 + "end'",
                        "returns 'alpha " + "word " * 4000 + "end'",
                    ],
                }
            ),
        )
    ],
)

EMPTY = Scenario(
    "empty-texts",
    "models that call without a word",
    ("call",),
    agents={
        "main": Agent(
            "main", [Turn("", [Call("alpha", task="do it")]), Turn("main is done")], delegates=("alpha",)
        ),
        "alpha": Agent(
            "alpha",
            [Turn("", [Call("look_up", {"q": ""})]), Turn("alpha knows")],
            tools=(Tool("look_up", "found"),),
        ),
    },
    root="main",
    runs=[
        Run(
            text="go",
            truth=Truth(
                {
                    "run": ["start", "end"],
                    "main": ["calls 1: alpha 'do it'", "hears 1: 'alpha knows'", "says 'main is done'"],
                    "alpha#1": [
                        "opens for main, call 1",
                        'calls 1: look_up {"q": ""}',
                        "hears 1: 'found'",
                        "says 'alpha knows'",
                        "returns 'alpha knows'",
                    ],
                },
            ),
        )
    ],
)

CONTENT = (WHOLE, ONE_CHUNK, REASONING, STATE, USAGE, HIDDEN, INLINE, UNICODE, LONG, EMPTY)
