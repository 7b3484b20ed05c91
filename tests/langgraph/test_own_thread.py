"""Questions of subagents with a thread of their own: LangGraph does not hand them on, only the caller can answer."""

from byline_langgraph.scripted import Say
from kit import Play, agent, call, human, said
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.types import Command, interrupt
from test_interrupts import boss, confirm

OWN = {"configurable": {"thread_id": "alphas-own"}}

ASKED = [
    "start",
    "main says m1: 'boss asks'",
    'main calls call_A in m1: ask_alpha {"q": "qa"}',
    "alpha#1 opens as tool for main, call call_A in m1",
    "alpha#1 says m2: 'alpha asks'",
    'alpha#1 calls call_alpha in m2: confirm {"q": "sure"}',
]


def confirmer():
    return agent(
        "alpha",
        Say("alpha asks", calls=[call("call_alpha", "confirm", "sure")]),
        "alpha knows",
        tools=[confirm],
        checkpointer=InMemorySaver(),
    )


def played(ask_alpha):
    return Play(boss(call("call_A", "ask_alpha", "qa"), tools=[tool(ask_alpha)]))


def test_nobody_answers():
    alpha = confirmer()

    async def ask_alpha(q: str) -> str:
        """Ask."""
        return said(await alpha.ainvoke(human(q), OWN))

    assert played(ask_alpha).run().lines == [
        *ASKED,
        "main hears call_A: 'alpha asks'",
        "main says m3: 'boss done'",
        "alpha#1 fails interrupt_lost: its question was swallowed by the caller, and the run went on without an answer",
        "end pending call_alpha",
    ]


def test_the_caller_answers_itself():
    alpha = confirmer()

    async def ask_alpha(q: str) -> str:
        """Ask."""
        await alpha.ainvoke(human(q), OWN)
        return said(await alpha.ainvoke(Command(resume="yes, says the tool"), OWN))

    assert played(ask_alpha).run().lines == [
        *ASKED,
        "alpha#1 hears call_alpha: 'confirmed: yes, says the tool'",
        "alpha#1 says m3: 'alpha knows'",
        "alpha#1 returns 'alpha knows'",
        "main hears call_A: 'alpha knows'",
        "main says m4: 'boss done'",
        "end",
    ]


def test_the_caller_asks_on_its_behalf():
    alpha = confirmer()

    async def ask_alpha(q: str) -> str:
        """Ask."""
        if not (await alpha.aget_state(OWN)).interrupts:
            await alpha.ainvoke(human(q), OWN)
        return said(await alpha.ainvoke(Command(resume=interrupt("may alpha?")), OWN))

    play = played(ask_alpha)
    assert play.run().lines == [
        *ASKED,
        "alpha#1 suspends without asking",
        "waits [i1 main langgraph:interrupt 'may alpha?' on call_A]",
    ]
    assert play.resume({"i1": "yes"}).lines == [
        "start",
        "alpha#1 opens as tool for main, call call_A in None",
        "alpha#1 hears call_alpha: 'confirmed: yes'",
        "alpha#1 says m3: 'alpha knows'",
        "alpha#1 returns 'alpha knows'",
        "main hears call_A: 'alpha knows'",
        "main says m4: 'boss done'",
        "end",
    ]


def test_two_threads_of_one_agent_in_two_calls():
    alpha = agent("alpha", "alpha answers", checkpointer=InMemorySaver())

    @tool
    async def ask_alpha(q: str) -> str:
        """Ask."""
        return said(await alpha.ainvoke(human(q), {"configurable": {"thread_id": q}}))

    team = boss(call("call_A", "ask_alpha", "qa"), call("call_B", "ask_alpha", "qb"), tools=[ask_alpha])
    assert Play(team).run().lanes == {
        "run": ["start", "end"],
        "main": [
            "says m1: 'boss asks'",
            'calls call_A+ in m1: ask_alpha {"q": "qa"}',
            'calls call_B+ in m1: ask_alpha {"q": "qb"}',
            "calls +call_A",
            "calls +call_B",
            "hears call_A: 'alpha answers'",
            "hears call_B: 'alpha answers'",
            "says m2: 'boss done'",
        ],
        "alpha#1": [
            "opens as tool for main, call call_A in m1",
            "says m3: 'alpha answers'",
            "returns 'alpha answers'",
        ],
        "alpha#2": [
            "opens as tool for main, call call_B in m1",
            "says m4: 'alpha answers'",
            "returns 'alpha answers'",
        ],
    }


@tool
def confirm_twice(q: str) -> str:
    """Confirm."""
    return f"confirmed: {interrupt('sure?')} and {interrupt('really?')}"


def test_the_caller_answers_two_questions_and_writes_of_its_own_in_between():
    alpha = agent(
        "alpha",
        Say("alpha asks", calls=[call("call_alpha", "confirm_twice", "sure")]),
        "alpha knows",
        tools=[confirm_twice],
        checkpointer=InMemorySaver(),
    )

    async def ask_alpha(q: str) -> str:
        """Ask."""
        write = get_stream_writer()
        await alpha.ainvoke(human(q), OWN)
        await alpha.ainvoke(Command(resume="yes"), OWN)
        write("half way")
        answer = said(await alpha.ainvoke(Command(resume="really"), OWN))
        write("there")
        return answer

    lines = played(ask_alpha).run().lines
    written = [line for line in lines if " custom " in line]
    assert written == [
        "main custom langgraph.custom: 'half way'",
        "main custom langgraph.custom: 'there'",
    ]
    assert [line for line in lines if line not in written] == [
        *ASKED[:-1],
        'alpha#1 calls call_alpha in m2: confirm_twice {"q": "sure"}',
        "alpha#1 hears call_alpha: 'confirmed: yes and really'",
        "alpha#1 says m3: 'alpha knows'",
        "alpha#1 returns 'alpha knows'",
        "main hears call_A: 'alpha knows'",
        "main says m4: 'boss done'",
        "end",
    ]


def test_what_the_parent_writes_after_a_thread_of_its_own_inside_another_is_the_parents():
    beta = agent("beta", "beta answers", checkpointer=InMemorySaver())

    async def ask_beta(q: str) -> str:
        """Ask."""
        return said(await beta.ainvoke(human(q), {"configurable": {"thread_id": "betas-own"}}))

    alpha = agent(
        "alpha",
        Say("alpha asks", calls=[call("call_B", "ask_beta", "qb")]),
        "alpha answers",
        tools=[tool(ask_beta)],
        checkpointer=InMemorySaver(),
    )

    async def ask_alpha(q: str) -> str:
        """Ask."""
        write = get_stream_writer()
        answer = said(await alpha.ainvoke(human(q), OWN))
        write("there")
        return answer

    lines = played(ask_alpha).run().lines
    written = "main custom langgraph.custom: 'there'"  # comes when LangGraph hands it on
    lines.remove(written)
    assert lines == [
        "start",
        "main says m1: 'boss asks'",
        'main calls call_A in m1: ask_alpha {"q": "qa"}',
        "alpha#1 opens as tool for main, call call_A in m1",
        "alpha#1 says m2: 'alpha asks'",
        'alpha#1 calls call_B in m2: ask_beta {"q": "qb"}',
        "beta#1 opens as tool for alpha#1, call call_B in m2",
        "beta#1 says m3: 'beta answers'",
        "beta#1 returns 'beta answers'",
        "alpha#1 hears call_B: 'beta answers'",
        "alpha#1 says m4: 'alpha answers'",
        "alpha#1 returns 'alpha answers'",
        "main hears call_A: 'alpha answers'",
        "main says m5: 'boss done'",
        "end",
    ]
