"""Subagents that are nodes of a graph: subgraphs, fan-outs, the functional API."""

import operator
from typing import Annotated, TypedDict

from byline_langgraph.scripted import Say
from kit import Play, Relay, agent, ask, call, human, model, said
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Send
from test_interrupts import confirmer


def chain(**nodes):
    """A graph that runs its nodes one after the other."""
    builder = StateGraph(MessagesState)
    last = START
    for name, node in nodes.items():
        builder.add_node(name, node)
        builder.add_edge(last, name)
        last = name
    return builder


def test_subgraph_nodes_one_after_the_other():
    alpha, beta = agent("alpha", "alpha answers"), agent("beta", "alpha was here", "beta answers")
    assert Play(chain(first=alpha, second=beta).compile()).run().all == [
        "start",
        "main step +first",
        "alpha#1 opens as subgraph for main",
        "alpha#1 step +model",
        "alpha#1 says m1: 'alpha answers'",
        "alpha#1 step -model",
        "alpha#1 returns 'alpha answers'",
        "main step -first",
        "main step +second",
        "beta#1 opens as subgraph for main",
        "beta#1 step +model",
        "beta#1 says m2: 'beta answers'",
        "beta#1 step -model",
        "beta#1 returns 'beta answers'",
        "main step -second",
        "end",
    ]


def test_an_unnamed_subgraph_has_the_name_of_its_node():
    async def think(state: MessagesState) -> dict:
        return {"messages": [await model("inner words").ainvoke(state["messages"])]}

    inner = chain(think=think).compile()
    assert Play(chain(helper=inner).compile()).run().all == [
        "start",
        "main step +helper",
        "helper#1 opens as subgraph for main",
        "helper#1 step +think",
        "helper#1 says m1: 'inner words'",
        "helper#1 step -think",
        "helper#1 returns 'inner words'",
        "main step -helper",
        "end",
    ]


def test_an_agent_called_in_a_node_function():
    alpha = agent("alpha", "alpha answers")

    async def consult(state: MessagesState) -> dict:
        return {"messages": [AIMessage(said(await alpha.ainvoke(human("qa"))), id="own")]}

    assert Play(chain(consult=consult).compile()).run().lines == [
        "start",
        "alpha#1 opens as subgraph for main",
        "alpha#1 says m1: 'alpha answers'",
        "alpha#1 returns 'alpha answers'",
        "end",
    ]


class Topics(TypedDict):
    answers: Annotated[list[str], operator.add]


def test_a_fan_out_to_an_agent_and_steps_that_are_counted():
    relay = Relay("t1 t2 t3 t1 . t2 . t3")

    async def research(state: dict) -> dict:
        topic = state["topic"]
        worker = agent("worker", f"{topic} answer", model_options={"who": topic, "relay": relay})
        return {"answers": [said(await worker.ainvoke(human(topic)))]}

    builder = StateGraph(Topics)
    builder.add_node("research", research)
    builder.add_conditional_edges(
        START, lambda _: [Send("research", {"topic": topic}) for topic in ("t1", "t2", "t3")], ["research"]
    )
    builder.add_edge("research", END)
    assert Play(builder.compile()).run().all == [
        "start",
        "main step +research",
        "worker#1 opens as subgraph for main",
        "worker#1 step +model",
        "worker#2 opens as subgraph for main",
        "worker#2 step +model",
        "worker#3 opens as subgraph for main",
        "worker#3 step +model",
        "worker#1 says m1+: 't1 '",
        "worker#2 says m2+: 't2 '",
        "worker#3 says m3+: 't3 '",
        "worker#1 says +m1: 'answer'",
        "worker#1 step -model",
        "worker#1 returns 't1 answer'",
        "worker#2 says +m2: 'answer'",
        "worker#2 step -model",
        "worker#2 returns 't2 answer'",
        "worker#3 says +m3: 'answer'",
        "worker#3 step -model",
        "worker#3 returns 't3 answer'",
        "main step -research",
        'main state {"answers": ["t1 answer", "t2 answer", "t3 answer"]}',
        "end",
    ]


def test_a_fan_out_to_a_subgraph_node():
    worker = agent("worker", "worker answers")
    builder = StateGraph(MessagesState)
    builder.add_node("work", worker)
    builder.add_conditional_edges(
        START, lambda _: [Send("work", human("t1")), Send("work", human("t2"))], ["work"]
    )
    assert Play(builder.compile()).run().lanes == {
        "run": ["start", "end"],
        "worker#1": ["opens as subgraph for main", "says m1: 'worker answers'", "returns 'worker answers'"],
        "worker#2": ["opens as subgraph for main", "says m2: 'worker answers'", "returns 'worker answers'"],
    }


def test_the_functional_api():
    relay = Relay("alpha beta alpha . beta")
    alpha = agent("alpha", "alpha answers", model_options={"who": "alpha", "relay": relay})
    beta = agent("beta", "beta answers", model_options={"who": "beta", "relay": relay})

    @task
    async def ask_alpha(q: str) -> str:
        return said(await alpha.ainvoke(human(q)))

    @task
    async def ask_beta(q: str) -> str:
        return said(await beta.ainvoke(human(q)))

    @entrypoint()
    async def flow(given: dict) -> dict:
        first, second = ask_alpha("qa"), ask_beta("qb")
        return {"asked": given["messages"][-1].text, "both": f"{await first} + {await second}"}

    assert Play(flow).run("please").all == [
        "start",
        "main step +flow",
        "main step +ask_alpha",
        "main step +ask_beta",
        "alpha#1 opens as subgraph for main",
        "alpha#1 step +model",
        "beta#1 opens as subgraph for main",
        "beta#1 step +model",
        "alpha#1 says m1+: 'alpha '",
        "beta#1 says m2+: 'beta '",
        "alpha#1 says +m1: 'answers'",
        "alpha#1 step -model",
        "alpha#1 returns 'alpha answers'",
        "main step -ask_alpha",
        "beta#1 says +m2: 'answers'",
        "beta#1 step -model",
        "beta#1 returns 'beta answers'",
        "main step -ask_beta",
        "main step -flow",
        'main state {"asked": "please", "both": "alpha answers + beta answers"}',
        "end",
    ]


def test_the_functional_api_with_its_own_arguments():
    alpha = agent("alpha", "alpha answers")

    @task
    async def ask_alpha(q: str) -> str:
        return said(await alpha.ainvoke(human(q)))

    @entrypoint(checkpointer=InMemorySaver())
    async def flow(q: str) -> str:
        return "flow heard " + await ask_alpha(q)

    trace = Play(flow).stream("qa", {"configurable": {"thread_id": "f"}})
    assert trace.run.result == "flow heard alpha answers"
    assert trace.lines == [
        "start",
        "alpha#1 opens as subgraph for main",
        "alpha#1 says m1: 'alpha answers'",
        "alpha#1 returns 'alpha answers'",
        "end",
    ]


def test_an_agent_in_a_tool_of_a_subgraph_node():
    beta = agent("beta", "beta answers")
    alpha = agent(
        "alpha",
        Say("alpha asks", calls=[call("call_B", "ask_beta", "qb")]),
        "alpha answers",
        tools=[ask(beta, "ask_beta")],
    )
    assert Play(chain(first=alpha).compile()).run().lines == [
        "start",
        "alpha#1 opens as subgraph for main",
        "alpha#1 says m1: 'alpha asks'",
        'alpha#1 calls call_B in m1: ask_beta {"q": "qb"}',
        "beta#1 opens as tool for alpha#1, call call_B in m1",
        "beta#1 says m2: 'beta answers'",
        "beta#1 returns 'beta answers'",
        "alpha#1 hears call_B: 'beta answers'",
        "alpha#1 says m3: 'alpha answers'",
        "alpha#1 returns 'alpha answers'",
        "end",
    ]


def test_a_node_that_returns_a_message_without_a_model():
    def greet(state: MessagesState) -> dict:
        return {"messages": [AIMessage("hello from a node", id="greeting")]}

    def repeat(state: MessagesState) -> dict:
        return {"messages": state["messages"]}

    def again(state: MessagesState) -> dict:
        return {"messages": [AIMessage("and again")]}

    graph = chain(greet=greet, repeat=repeat, again=again).compile()
    assert Play(graph).run().lines == [
        "start",
        "main says greeting: 'hello from a node'",
        "main says said-1: 'and again'",
        "end",
    ]


def test_a_subgraph_that_passes_the_conversation_on_says_it_once():
    alpha = agent("alpha", "alpha answers")

    async def forward(state: MessagesState) -> dict:
        done = await alpha.ainvoke({"messages": state["messages"]})
        return {"messages": done["messages"][-1:]}

    def keep(state: MessagesState) -> dict:
        return {"messages": state["messages"][-1:]}

    assert Play(chain(forward=forward, keep=keep).compile()).run().lines == [
        "start",
        "alpha#1 opens as subgraph for main",
        "alpha#1 says m1: 'alpha answers'",
        "alpha#1 returns 'alpha answers'",
        "end",
    ]


def test_a_task_of_the_functional_api_asks():
    alpha = confirmer("alpha")

    @task
    async def first(q: str) -> str:
        return "first"

    @task
    async def ask_alpha(q: str) -> str:
        return said(await alpha.ainvoke(human(q)))

    @entrypoint(checkpointer=InMemorySaver())
    async def flow(given: dict) -> dict:
        return {"both": f"{await first('')} + {await ask_alpha('qa')}"}

    play = Play(flow)
    assert play.run().lines == [
        "start",
        "alpha#1 opens as subgraph for main",
        "alpha#1 says m1: 'alpha asks'",
        'alpha#1 calls call_alpha in m1: confirm {"q": "sure"}',
        "alpha#1 suspends i1",
        "waits [i1 alpha#1 langgraph:interrupt 'sure?' on call_alpha]",
    ]
    assert play.resume({"i1": "yes"}).lines == [
        "start",
        "alpha#1 opens as subgraph for main",
        "alpha#1 hears call_alpha: 'confirmed: yes'",
        "alpha#1 says m2: 'alpha knows'",
        "alpha#1 returns 'alpha knows'",
        'main state {"both": "first + alpha knows"}',
        "end",
    ]


def test_a_node_may_spell_its_messages_in_any_way_that_langgraph_takes():
    def tuples(state: MessagesState) -> dict:
        return {"messages": [("ai", "one"), ["assistant", "two"]]}

    def mappings(state: MessagesState) -> dict:
        calls = [{"id": "call_T", "name": "look", "args": {"q": 1}}]
        return {
            "messages": [
                {"role": "assistant", "content": "three"},
                {"role": "ai", "content": [{"type": "text", "text": "four"}], "id": "mine"},
                {"type": "ai", "content": "five", "tool_calls": calls},
            ]
        }

    def answers(state: MessagesState) -> dict:
        return {"messages": {"role": "tool", "content": "found", "tool_call_id": "call_T"}}

    def alone(state: MessagesState) -> Command:
        return Command(update={"messages": ("ai", "six")})

    def pairs(state: MessagesState) -> Command:
        return Command(update=[("messages", [("ai", "seven")])])

    def users(state: MessagesState) -> dict:
        return {
            "messages": ["ai", "what a user says", ("human", "too"), {"role": "system", "content": "rules"}]
        }

    def repeat(state: MessagesState) -> dict:
        return {"messages": state["messages"]}

    graph = chain(
        tuples=tuples,
        mappings=mappings,
        answers=answers,
        alone=alone,
        pairs=pairs,
        users=users,
        repeat=repeat,
    ).compile()
    trace = Play(graph).run()
    assert trace.lines == [
        "start",
        "main says said-1: 'one'",
        "main says said-2: 'two'",
        "main says said-3: 'three'",
        "main says mine: 'four'",
        "main says said-4: 'five'",
        'main calls call_T in said-4: look {"q": 1}',
        "main hears call_T: 'found'",
        "main says said-5: 'six'",
        "main says said-6: 'seven'",
        "end",
    ]
    assert [(one.type, one.text) for one in trace.run.result["messages"]] == [
        ("human", "go"),
        ("ai", "one"),
        ("ai", "two"),
        ("ai", "three"),
        ("ai", "four"),
        ("ai", "five"),
        ("tool", "found"),
        ("ai", "six"),
        ("ai", "seven"),
        ("human", "ai"),
        ("human", "what a user says"),
        ("human", "too"),
        ("system", "rules"),
    ]


def test_a_node_that_says_the_same_again_says_it_again():
    def greet(state: MessagesState) -> dict:
        return {"messages": [("ai", "ok")]}

    builder = chain(greet=greet)
    builder.add_conditional_edges("greet", lambda state: "greet" if len(state["messages"]) < 3 else "__end__")
    assert Play(builder.compile()).run().lines == [
        "start",
        "main says said-1: 'ok'",
        "main says said-2: 'ok'",
        "end",
    ]


def test_mappings_that_a_state_keeps_as_they_are_are_said_once():
    class Plain(TypedDict):
        messages: list

    def one(state: Plain) -> dict:
        return {"messages": [*state["messages"], {"role": "assistant", "content": "one"}]}

    def two(state: Plain) -> dict:
        return {"messages": [*state["messages"], {"role": "assistant", "content": "two"}]}

    builder = StateGraph(Plain).add_node("one", one).add_node("two", two)
    builder.add_edge(START, "one").add_edge("one", "two")
    assert Play(builder.compile()).run().lines == [
        "start",
        "main says said-1: 'one'",
        "main says said-2: 'two'",
        "end",
    ]


def test_the_words_of_a_subagents_node_are_the_subagents():
    def greet(state: MessagesState) -> dict:
        return {"messages": [("ai", "alpha greets")]}

    def keep(state: MessagesState) -> dict:
        return {"messages": state["messages"][-1:]}

    assert Play(chain(alpha=chain(greet=greet).compile(name="alpha"), keep=keep).compile()).run().lines == [
        "start",
        "alpha#1 opens as subgraph for main",
        "alpha#1 says said-1: 'alpha greets'",
        "alpha#1 returns 'alpha greets'",
        "end",
    ]


def test_what_is_no_message_is_langgraphs_to_refuse():
    def broken(state: MessagesState) -> dict:
        return {"messages": [{"role": "nobody", "content": "x"}]}

    trace = Play(chain(broken=broken).compile()).run()
    assert trace.lines[0] == "start"
    assert trace.lines[1].startswith("run fails ValueError: Unexpected message type: 'nobody'.")
    assert len(trace.lines) == 2


def test_the_steps_of_a_subagent_are_its_own():
    def one(state: MessagesState) -> dict:
        return {}

    inner = chain(one=one, two=one)
    outer = StateGraph(MessagesState)
    outer.add_node("alpha", inner.compile(name="alpha"))
    outer.add_edge(START, "alpha")
    assert Play(outer.compile()).run().all == [
        "start",
        "main step +alpha",
        "alpha#1 opens as subgraph for main",
        "alpha#1 step +one",
        "alpha#1 step -one",
        "alpha#1 step +two",
        "alpha#1 step -two",
        "alpha#1 returns 'go'",
        "main step -alpha",
        "end",
    ]


def test_a_node_of_a_subagent_that_answers_its_models_call_itself():
    llm = model(Say("alpha asks", calls=[call("call_B", "look", "x")]))

    async def think(state: MessagesState) -> dict:
        return {
            "messages": [await llm.ainvoke(state["messages"]), ToolMessage("seen", tool_call_id="call_B")]
        }

    outer = StateGraph(MessagesState)
    outer.add_node("alpha", chain(think=think).compile(name="alpha"))
    outer.add_edge(START, "alpha")
    assert Play(outer.compile()).run().lines == [
        "start",
        "alpha#1 opens as subgraph for main",
        "alpha#1 says m1: 'alpha asks'",
        'alpha#1 calls call_B in m1: look {"q": "x"}',
        "alpha#1 hears call_B: 'seen'",
        "alpha#1 returns 'seen'",
        "end",
    ]


def test_a_node_that_returns_its_chains_words_as_a_message_of_its_own_says_them_once():
    answers = RunnableLambda(lambda text: [HumanMessage(text)]) | model("main answers")

    async def think(state: MessagesState) -> dict:
        return {"messages": [AIMessage((await answers.ainvoke("go")).text)]}

    assert Play(chain(think=think).compile()).run().lines == ["start", "main says m1: 'main answers'", "end"]
