"""What a client gets to see, and what a plugin decides."""

from byline import Contract, hookimpl
from byline_langgraph.scripted import Say
from kit import Play, Relay, agent, ask, call, human, model, said
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from test_interrupts import confirmer


def nested():
    """The parent asks alpha and beta at once; beta asks gamma."""
    relay = Relay("alpha beta alpha . beta gamma gamma . beta beta")
    gamma = agent("gamma", "gamma answers", model_options={"who": "gamma", "relay": relay})
    alpha = agent("alpha", "alpha answers", model_options={"who": "alpha", "relay": relay})
    beta = agent(
        "beta",
        Say("beta", calls=[call("call_C", "ask_gamma", "qc")], arguments="first"),
        "beta answers",
        tools=[ask(gamma, "ask_gamma")],
        model_options={"who": "beta", "relay": relay},
    )
    return agent(
        None,
        Say("", calls=[call("call_A", "ask_alpha", "qa"), call("call_B", "ask_beta", "qb")]),
        "main done",
        tools=[ask(alpha, "ask_alpha"), ask(beta, "ask_beta")],
    )


ASKED = [
    "start",
    'main calls call_A+ in m1: ask_alpha {"q": "qa"}',
    'main calls call_B+ in m1: ask_beta {"q": "qb"}',
    "main calls +call_A",
    "main calls +call_B",
]


def test_everything_is_shown():
    assert Play(nested()).run().lines == [
        *ASKED,
        "alpha#1 opens as tool for main, call call_A in m1",
        "beta#1 opens as tool for main, call call_B in m1",
        "alpha#1 says m2+: 'alpha '",
        "beta#1 says m3+: 'beta'",
        "alpha#1 says +m2: 'answers'",
        "alpha#1 returns 'alpha answers'",
        "main hears call_A: 'alpha answers'",
        "beta#1 says +m3: ''",
        'beta#1 calls call_C in m3: ask_gamma {"q": "qc"}',
        "gamma#1 opens as tool for beta#1, call call_C in m3",
        "gamma#1 says m4: 'gamma answers'",
        "gamma#1 returns 'gamma answers'",
        "beta#1 hears call_C: 'gamma answers'",
        "beta#1 says m5: 'beta answers'",
        "beta#1 returns 'beta answers'",
        "main hears call_B: 'beta answers'",
        "main says m6: 'main done'",
        "end",
    ]


INLINE = [
    *ASKED,
    "main says m2+: 'alpha '",
    "main says m3+: 'beta'",
    "main says +m2: 'answers'",
    "main hears call_A: 'alpha answers'",
    "main says +m3: ''",
    'main calls call_C in m3: ask_gamma {"q": "qc"}',
    "main says m4: 'gamma answers'",
    "main hears call_C: 'gamma answers'",
    "main says m5: 'beta answers'",
    "main hears call_B: 'beta answers'",
    "main says m6: 'main done'",
    "end",
]


def test_all_inline_for_clients_that_know_no_subagents():
    assert Play(nested(), visibility="inline").run().lines == INLINE


def test_all_inline_with_steps_that_are_counted():
    steps = [line for line in Play(nested(), visibility="inline").run().all if " step " in line]
    assert steps == [
        "main step +model",
        "main step -model",
        "main step +tools",
        "main step +model",
        "main step -model",
        "main step +model",
        "main step -model",
        "main step +model",
        "main step -model",
        "main step -tools",
        "main step +model",
        "main step -model",
    ]


def test_all_hidden():
    assert Play(nested(), visibility="hidden").run().lines == [
        *ASKED,
        "main hears call_A: 'alpha answers'",
        "main hears call_B: 'beta answers'",
        "main says m2: 'main done'",
        "end",
    ]


def test_one_hidden_by_its_name():
    assert Play(nested(), visibility={"beta": "hidden"}).run().lines == [
        *ASKED,
        "alpha#1 opens as tool for main, call call_A in m1",
        "alpha#1 says m2: 'alpha answers'",
        "alpha#1 returns 'alpha answers'",
        "main hears call_A: 'alpha answers'",
        "gamma#1 opens as tool for main, call call_B in m1",
        "gamma#1 says m3: 'gamma answers'",
        "gamma#1 returns 'gamma answers'",
        "main hears call_B: 'beta answers'",
        "main says m4: 'main done'",
        "end",
    ]


class HideBeta:
    def __init__(self):
        self.asked = []

    @hookimpl
    def byline_visibility(self, invocation):
        self.asked.append((invocation.framework, invocation.name, invocation.parent_id is None))
        return {"beta": "inline"}.get(invocation.name)


def test_a_hook_decides_before_the_argument():
    hook = HideBeta()
    assert Play(nested(), plugins=[hook], visibility="hidden").run().lines == [
        *ASKED,
        "main says m2+: 'beta'",
        "main hears call_A: 'alpha answers'",
        "main says +m2: ''",
        'main calls call_C in m2: ask_gamma {"q": "qc"}',
        "main hears call_C: 'gamma answers'",
        "main says m3: 'beta answers'",
        "main hears call_B: 'beta answers'",
        "main says m4: 'main done'",
        "end",
    ]
    assert hook.asked == [
        ("langgraph", "alpha", True),
        ("langgraph", "beta", True),
        ("langgraph", "gamma", False),
    ]


def test_a_question_of_a_hidden_subagent_is_its_callers():
    alpha = agent(
        "alpha",
        Say("alpha asks", calls=[call("call_B", "ask_beta", "qb")]),
        "alpha knows",
        tools=[ask(confirmer("beta"), "ask_beta")],
    )
    boss = agent(
        "boss",
        Say("boss asks", calls=[call("call_A", "ask_alpha", "qa")]),
        "boss done",
        tools=[ask(alpha, "ask_alpha")],
        checkpointer=InMemorySaver(),
    )
    play = Play(boss, visibility={"beta": "hidden"})
    assert play.run().lines == [
        "start",
        "main says m1: 'boss asks'",
        'main calls call_A in m1: ask_alpha {"q": "qa"}',
        "alpha#1 opens as tool for main, call call_A in m1",
        "alpha#1 says m2: 'alpha asks'",
        'alpha#1 calls call_B in m2: ask_beta {"q": "qb"}',
        "alpha#1 suspends i1",
        "waits [i1 alpha#1 langgraph:interrupt 'sure?' on call_B]",
    ]
    assert play.resume({"i1": "yes"}).lines == [
        "start",
        "alpha#1 opens as tool for main, call call_A in None",
        "alpha#1 hears call_B: 'beta knows'",
        "alpha#1 says m3: 'alpha knows'",
        "alpha#1 returns 'alpha knows'",
        "main hears call_A: 'alpha knows'",
        "main says m4: 'boss done'",
        "end",
    ]


class Helpers:
    """Says that the helper graph is no subagent, and what the others promise."""

    def __init__(self):
        self.candidates = []

    @hookimpl
    def byline_is_subagent(self, candidate):
        self.candidates.append(
            (candidate.name, candidate.native_name, candidate.node, candidate.tool, candidate.parent)
        )
        return False if candidate.name == "helper" else None

    @hookimpl
    def byline_contract(self, invocation):
        return (
            Contract(context="fork", interaction="clarify") if invocation.name == "alpha" else {"leaf": True}
        )


def test_a_plugin_says_what_is_a_subagent_and_what_it_promises():
    beta = agent("beta", "beta answers")
    helper_llm = model(Say("helper asks", calls=[call("call_B", "ask_beta", "qb")]))
    consult = ask(beta, "ask_beta")

    async def help_out(state: MessagesState) -> dict:
        answer = await helper_llm.ainvoke(state["messages"])
        return {"messages": [answer, *[await consult.ainvoke(one) for one in answer.tool_calls]]}

    inner = StateGraph(MessagesState)
    inner.add_node("help_out", help_out)
    inner.add_edge(START, "help_out")
    helper = inner.compile(name="helper")

    async def use(state: MessagesState) -> dict:
        return {"messages": [AIMessage(said(await helper.ainvoke(state)), id="used")]}

    outer = StateGraph(MessagesState)
    outer.add_node("use", use)
    outer.add_node("alpha", agent("alpha", "", "alpha answers"))
    outer.add_edge(START, "use")
    outer.add_edge("use", "alpha")
    hook = Helpers()
    assert Play(outer.compile(), plugins=[hook]).run().lines == [
        "start",
        "main says m1: 'helper asks'",
        'main calls call_B in m1: ask_beta {"q": "qb"}',
        (
            'beta#1 opens as {"framework": "langgraph", "mode": "tool", "context": "isolated", "interaction": "none", '
            '"approvals": true, "returns": "automatic", "concurrency": "parallel", "leaf": true} for main, '
            "call call_B in m1"
        ),
        "beta#1 says m2: 'beta answers'",
        "beta#1 returns 'beta answers'",
        "main hears call_B: 'beta answers'",
        (
            'alpha#1 opens as {"framework": "langgraph", "mode": "subgraph", "context": "fork", '
            '"interaction": "clarify", "approvals": true, "returns": "onward"} for main'
        ),
        "alpha#1 says m3: 'alpha answers'",
        "alpha#1 returns 'alpha answers'",
        "end",
    ]
    assert hook.candidates == [
        ("helper", "helper", "use", None, None),
        ("beta", "beta", "help_out", "ask_beta", None),
        ("alpha", "alpha", "alpha", None, None),
    ]


class Watcher:
    def __init__(self):
        self.told = []

    @hookimpl
    def byline_run_started(self, run):
        self.told.append(("started", run.thread_id, run.run_id))

    @hookimpl
    def byline_run_finished(self, run):
        self.told.append(("finished", run.run_id, run.error))
        raise RuntimeError("a watcher's fault is nobody's business")


def test_a_plugin_watches_runs():
    watcher = Watcher()
    assert Play(agent(None, "main done"), plugins=[watcher]).run().lines == [
        "start",
        "main says m1: 'main done'",
        "end",
    ]
    assert watcher.told == [("started", "t", "r1"), ("finished", "r1", None)]


def test_a_plugin_is_told_in_which_agent_a_candidate_stands():
    """What runs in a graph that is transparent runs in the agent that this one belongs to."""

    class Told:
        @hookimpl
        def byline_is_subagent(self, candidate):
            told.append((candidate.framework, candidate.name, candidate.parent))

    def around(name, inner):
        return StateGraph(MessagesState).add_node("inner", inner).add_edge(START, "inner").compile(name=name)

    told = []
    team = around("alpha", around("supervisor", around("beta", agent("gamma", "gamma answers"))))
    assert Play(around("main", team), plugins=[Told()]).run().lines == [
        "start",
        "alpha#1 opens as subgraph for main",
        "beta#1 opens as subgraph for alpha#1",
        "gamma#1 opens as subgraph for beta#1",
        "gamma#1 says m1: 'gamma answers'",
        "gamma#1 returns 'gamma answers'",
        "beta#1 returns 'gamma answers'",
        "alpha#1 returns 'gamma answers'",
        "end",
    ]
    assert told == [
        ("langgraph", "alpha", None),
        ("langgraph", "supervisor", "alpha"),
        ("langgraph", "beta", "alpha"),
        ("langgraph", "gamma", "beta"),
    ]


def test_an_invocation_names_the_run_that_a_tracer_knows_it_by():
    class Tracer(BaseCallbackHandler):
        def on_chain_start(self, serialized, inputs, *, run_id, **kwargs):
            runs.setdefault(kwargs.get("name"), str(run_id))

    runs = {}
    alpha = agent("alpha", "alpha answers")
    boss = agent(
        "boss",
        Say("boss asks", calls=[call("call_A", "ask_alpha", "qa")]),
        "boss done",
        tools=[ask(alpha, "ask_alpha")],
    )
    trace = Play(boss).stream(human("go"), {"callbacks": [Tracer()]})
    (started,) = [event for event in trace.events if event.type == "SUBAGENT_STARTED"]
    assert started.metadata["byline"]["langchainRunId"] == runs["alpha"]


def test_a_plugin_may_call_a_subagent_what_is_transparent_by_its_name():
    class Counts:
        @hookimpl
        def byline_is_subagent(self, candidate):
            return True if candidate.name == "supervisor" else None

    inner = agent("supervisor", "supervisor answers")
    team = StateGraph(MessagesState).add_node("inner", inner).add_edge(START, "inner").compile(name="main")
    answers = ["supervisor#1 says m1: 'supervisor answers'", "supervisor#1 returns 'supervisor answers'"]
    assert Play(team).run().lines == ["start", "main says m1: 'supervisor answers'", "end"]
    assert Play(team, plugins=[Counts()]).run().lines == [
        "start",
        "supervisor#1 opens as subgraph for main",
        *answers,
        "end",
    ]


def test_a_plugin_is_told_of_an_invocation_as_it_is_announced():
    class Told:
        @hookimpl
        def byline_contract(self, invocation):
            told.append(invocation)

    told = []
    beta = agent("beta", "beta answers")
    alpha = agent(
        "alpha",
        Say("alpha asks", calls=[call("call_B", "ask_beta", "qb")]),
        "alpha answers",
        tools=[ask(beta, "ask_beta")],
    )
    boss = agent(
        "boss",
        Say("boss asks", calls=[call("call_A", "ask_alpha", "qa")]),
        "boss done",
        tools=[ask(alpha, "ask_alpha")],
    )
    events = Play(boss, plugins=[Told()]).run().events
    first, second = [event for event in events if event.type == "SUBAGENT_STARTED"]
    assert [(one.framework, one.name, one.id, one.parent_id, one.description) for one in told] == [
        ("langgraph", "alpha", first.subagent_run_id, None, None),
        ("langgraph", "beta", second.subagent_run_id, first.subagent_run_id, None),
    ]
    assert [one.metadata for one in told] == [first.metadata["byline"], second.metadata["byline"]]
