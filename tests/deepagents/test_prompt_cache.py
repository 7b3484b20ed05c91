"""What a subagent kept of its parent's prompt cache, before a model that simulates one."""

from byline.ledger import Ledger
from byline_langgraph.scripted import Say
from deepkit import Play, caching, compiled, deep, sub, task
from kit import call, model
from langchain.agents import create_agent
from langchain.agents.middleware import before_model, wrap_model_call
from langchain_core.language_models.fake import FakeListLLM
from langchain_core.messages import SystemMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

PROMPT = "You are the boss of this."


@tool
def look(q: str) -> str:
    """Look."""
    return f"seen {q}"


@tool
def smell(q: str) -> str:
    """Smell."""
    return f"smelt {q}"


LOOK = call("call_L", "look", "the file")


class Scene:
    """A boss that has looked at a file and then delegates, and a subagent; their models share one provider's cache."""

    def __init__(self, *turns, **spec):
        self.cache = []
        self.model = caching(self.cache, *turns)
        boss = caching(
            self.cache, Say("first", calls=[LOOK]), Say("then", calls=[task("call_A", "alpha")]), "done"
        )
        spec = {"name": "alpha", "description": "Does alpha.", "model": self.model, **spec}
        if "runnable" in spec:
            del spec["model"]
            spec["runnable"] = spec["runnable"](self.model)
        self.team = deep(
            boss, tools=[look], subagents=[spec], system_prompt=PROMPT, checkpointer=InMemorySaver()
        )

    def play(self, **options):
        trace = Play(self.team, **options).run()
        assert trace.lines[-1].startswith("end usage ")
        self.trace = trace
        return trace.caches["alpha#1"]

    def tokens(self, *kinds):
        """The words of the subagent's first request that are in messages of these kinds."""
        [first, *_] = self.model.requests
        return sum(len(f"{one.type}: {one.text} []".split()) for one in first.messages if one.type in kinds)


def test_an_unchanged_fork_keeps_it():
    scene = Scene("never said", "alpha answers", mode="fork")
    facts = scene.play()
    read, cached = facts["inputTokens"], facts["cachedInputTokens"]
    assert facts == {
        "prefix": "intact",
        "requests": 1,
        "firstRequest": {"inputTokens": read, "cachedInputTokens": cached},
        "inputTokens": read,
        "cachedInputTokens": cached,
    }
    # All that is new to the provider is the message with the task.
    [first] = scene.model.requests
    assert read - cached == len(f"human: {first.messages[-1].text} []".split())
    assert cached / read > 0.9


def test_a_fork_with_its_own_system_prompt_loses_it_where_its_own_begins():
    scene = Scene("never said", "alpha answers", mode="fork", system_prompt="You are alpha.")
    facts = scene.play()
    assert facts["prefix"] == "broken"
    assert facts["firstDifference"] == {"part": "system", "offset": len(PROMPT)}
    # The provider reads the system prompt and every message again.
    lost = facts["firstRequest"]["inputTokens"] - facts["firstRequest"]["cachedInputTokens"]
    assert lost > scene.tokens("system", "human")


def test_a_fork_with_its_own_tools_loses_it_at_the_tools():
    facts = Scene("never said", "alpha answers", mode="fork", tools=[look, smell]).play()
    difference = facts["firstDifference"]
    assert facts["prefix"] == "broken"
    assert difference.pop("index") > 0
    assert difference == {"part": "tools", "missing": [], "added": ["smell"]}


def test_a_fork_with_another_model_loses_it_at_once():
    scene = Scene("never said", "alpha answers", mode="fork")
    scene.model.model_name = "another"
    facts = scene.play()
    assert facts["firstDifference"] == {"part": "model", "parent": "byline/scripted", "own": "byline/another"}
    assert facts["firstRequest"]["cachedInputTokens"] == 0


def test_what_counts_is_what_the_model_received():
    @wrap_model_call
    async def rewrite(request, handler):
        return await handler(
            request.override(system_message=SystemMessage(f"Now: {request.system_message.text}"))
        )

    facts = Scene("never said", "alpha answers", mode="fork", middleware=[rewrite]).play()
    assert (facts["prefix"], facts["firstDifference"]) == ("broken", {"part": "system", "offset": 0})


def test_marks_for_the_provider_are_no_difference():
    @wrap_model_call
    async def mark(request, handler):
        block = {"type": "text", "text": request.system_message.text, "cache_control": {"type": "ephemeral"}}
        return await handler(request.override(system_message=SystemMessage([block])))

    assert Scene("never said", "alpha answers", mode="fork", middleware=[mark]).play()["prefix"] == "intact"


def test_a_compiled_fork_has_a_prompt_of_its_own():
    scene = Scene(
        "never said",
        "alpha answers",
        mode="fork",
        runnable=lambda model: create_agent(model, [look], system_prompt="I."),
    )
    facts = scene.play()
    assert facts["prefix"] == "broken"
    assert facts["firstDifference"]["part"] == "tools"


def test_what_isolation_cost():
    scene = Scene(
        Say("looking", calls=[LOOK, call("call_M", "look", "another file")]),
        Say("again", calls=[call("call_N", "look", "the file")]),
        "alpha answers",
        system_prompt="You are alpha.",
        tools=[look],
    )
    facts = scene.play()
    assert facts["prefix"] == "broken"
    assert facts["requests"] == 3
    # The file was looked at before; another file was not.
    repeated = [
        {**one, "toolCallId": scene.trace.names.rename(one["toolCallId"])} for one in facts["repeatedCalls"]
    ]
    assert repeated == [
        {"name": "look", "toolCallId": "call_L@alpha#1"},
        {"name": "look", "toolCallId": "call_N"},
    ]


def test_what_a_resumed_run_cannot_know_it_does_not_say():
    scene = Scene(
        "never said",
        Say("alpha looks", calls=[LOOK]),
        "alpha answers",
        mode="fork",
        interrupt_on={"look": True},
    )
    play = Play(scene.team)
    first = play.run()
    assert first.lines[-2] == "alpha#1 suspends i1"
    assert first.caches["alpha#1"]["prefix"] == "intact"
    second = play.resume({"i1": {"decisions": [{"type": "approve"}]}}, messages=first.history)
    assert second.lines[-1].startswith("end usage")
    facts = second.caches["alpha#1"]
    assert (facts["prefix"], facts["requests"]) == ("unknown", 1)


def test_it_is_told_when_the_run_fails():
    scene = Scene("never said", Say("alpha fails", fails=RuntimeError("down")), mode="fork")
    trace = Play(scene.team).run()
    assert trace.lines[-1].startswith("run fails RuntimeError: down")
    assert trace.caches == {"alpha#1": {"prefix": "intact", "requests": 1}}


def test_what_a_client_does_not_see_is_not_told_it_here():
    scene = Scene("never said", "alpha answers", mode="fork")
    seen = []
    trace = Play(scene.team, visibility="hidden", observers=[seen.append]).run()
    assert "promptCache" not in trace.events[-1].metadata["byline"]
    [entry] = seen[-1].metadata["byline"]["promptCache"]
    assert entry["prefix"] == "intact"


def test_the_ledger_has_it():
    scene = Scene("never said", "alpha answers", mode="fork")
    facts = scene.play()
    ledger = Ledger()
    for event in scene.trace.events:
        ledger.feed(event)
    [run] = ledger.runs
    [entry] = run.observed["promptCache"]
    [alpha] = [branch.invocation for branch in ledger.tree()]
    assert entry == {"subagentRunId": alpha.id, **facts}
    assert ledger.to_json()["runs"][0]["observed"] == {"promptCache": [entry]}


def test_an_ordinary_agent_says_nothing_of_caches():
    boss = create_agent(caching([], Say("looking", calls=[LOOK]), "done"), [look], name="boss")
    assert Play(boss).run().caches == {}


def test_a_nested_one_is_held_against_its_own_caller():
    cache = []
    deep_down = {
        "name": "beta",
        "description": "d",
        "mode": "fork",
        "model": caching(cache, "never said", "beta answers"),
    }
    lead = deep(
        caching(
            cache, Say("lead looks", calls=[LOOK]), Say("asks", calls=[task("call_B", "beta")]), "lead done"
        ),
        tools=[look],
        subagents=[deep_down],
        name="lead",
    )
    boss = caching(cache, Say("go", calls=[task("call_A", "lead")]), "done")
    trace = Play(deep(boss, subagents=[compiled("lead", lead)])).run()
    assert trace.lines[-1].startswith("end usage ")
    assert trace.caches["beta#1"]["prefix"] == "intact"
    assert trace.caches["lead#1"]["firstDifference"]["part"] == "tools"


def spent(read, cached=None):
    details = {} if cached is None else {"input_token_details": {"cache_read": cached}}
    return {"input_tokens": read, "output_tokens": 1, "total_tokens": read + 1, **details}


def test_what_is_read_and_cached_is_counted_over_all_requests_and_for_the_first_alone():
    alpha = sub(
        "alpha",
        Say("looks", calls=[LOOK], usage=spent(10, 4)),
        Say("looks again", calls=[LOOK], usage=spent(20)),
        Say("alpha answers", usage=spent(30, 8)),
        tools=[look],
    )
    trace = Play(deep(Say("go", calls=[task("call_A", "alpha")]), "done", subagents=[alpha])).run()
    facts = trace.caches["alpha#1"]
    del facts["firstDifference"]
    assert facts == {
        "prefix": "broken",
        "requests": 3,
        "firstRequest": {"inputTokens": 10, "cachedInputTokens": 4},
        "inputTokens": 60,
        "cachedInputTokens": 12,
    }


def test_a_first_request_without_account_is_not_made_up_of_the_second():
    alpha = sub("alpha", Say("looks", calls=[LOOK]), Say("alpha answers", usage=spent(30, 8)), tools=[look])
    trace = Play(deep(Say("go", calls=[task("call_A", "alpha")]), "done", subagents=[alpha])).run()
    facts = trace.caches["alpha#1"]
    del facts["firstDifference"]
    assert facts == {"prefix": "broken", "requests": 2}


def test_what_a_subagent_asks_beside_its_own_model_is_no_request_of_its_prompt():
    quiet = model(Say("a summary", usage=spent(1000, 1000))).with_config(tags=["nostream"])
    plain = FakeListLLM(responses=["completed"])

    @before_model
    async def ask_others(state, runtime):
        await quiet.ainvoke("sum up")
        await plain.ainvoke("complete this")

    alpha = sub("alpha", Say("alpha answers", usage=spent(10, 4)), middleware=[ask_others])
    trace = Play(deep(Say("go", calls=[task("call_A", "alpha")]), "done", subagents=[alpha])).run()
    facts = trace.caches["alpha#1"]
    assert (facts["requests"], facts["inputTokens"], facts["cachedInputTokens"]) == (1, 10, 4)
