"""The text's list of what to confirm, point by point, and the links of a real app held to the rules of saved ones."""

from byline.artifacts import Artifacts
from byline.completion import completion, link_violations, links
from byline.grants import Grant, Resource
from byline.ledger import Ledger
from byline.team_view import AgentView, TeamView

REPORT = '<artifact title="Q3">all of it</artifact>'


def view(name, *members) -> AgentView:
    return AgentView(name, "agent", members=members)


def team(*members) -> TeamView:
    return TeamView("langgraph", "1.2.24", view("boss", *members))


def book(*events) -> Ledger:
    ledger = Ledger()
    started = {"type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0"}
    finished = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": {"type": "success"}}
    for event in (started, *events, finished):
        ledger.feed(event)
    return ledger


def call(id_, name, result, message="m1", **tag):
    return [
        {
            "type": "TOOL_CALL_START",
            "toolCallId": id_,
            "toolCallName": name,
            "parentMessageId": message,
            **tag,
        },
        {"type": "TOOL_CALL_END", "toolCallId": id_, **tag},
        {
            "type": "TOOL_CALL_RESULT",
            "messageId": f"{id_}:result",
            "toolCallId": id_,
            "content": result,
            **tag,
        },
    ]


def message(id_, text="so", **tag):
    return [
        {"type": "TEXT_MESSAGE_START", "messageId": id_, "role": "assistant", **tag},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": id_, "delta": text, **tag},
        {"type": "TEXT_MESSAGE_END", "messageId": id_, **tag},
    ]


def invocation(id_, name, *inside):
    started = {"type": "SUBAGENT_STARTED", "subagentRunId": id_, "name": name}
    return [started, *inside, {"type": "SUBAGENT_FINISHED", "subagentRunId": id_}]


def granted(*subagents) -> Grant:
    return Grant(
        "g",
        "ann",
        "r",
        "boss",
        "t",
        "default",
        frozenset(Resource("subagent", one) for one in subagents),
        0,
        1,
    )


def told(point) -> tuple:
    return point.holds, point.evidence


# -------------------------------------------------------------------------------------------------- the app's links


def test_the_links_of_an_app_are_listed_in_its_order():
    assert links(team(view("b", view("c")), view("a"))) == {"boss": ("b", "a"), "b": ("c",)}


def violations(found):
    return [(reason.code, reason.parent, reason.target) for reason in link_violations(found)]


def test_an_app_that_is_right_breaks_nothing():
    assert violations(team(view("a", view("c")), view("b", view("c")))) == []


def test_two_subagents_of_one_name_are_a_link_twice():
    assert violations(team(view("a"), view("b", view("c"), view("c")), view("a"))) == [
        ("duplicate", "boss", "a"),
        ("duplicate", "b", "c"),
    ]


def test_an_agent_below_itself_is_a_link_to_itself_or_a_cycle():
    assert violations(team(view("boss"))) == [("self_reference", "boss", "boss")]
    (reason,) = link_violations(team(view("a", view("b", view("boss")))))
    assert (reason.code, reason.cycle) == ("cycle", ("boss", "a", "b", "boss"))


# ---------------------------------------------------------------------------------------------------- point by point


def test_the_parents_list_is_the_intended_one():
    known = book(*invocation("a-1", "a"))
    assert told(completion(team(view("a")), known)[0]) == (None, "boss -> a: compare it with what you meant")
    assert told(completion(team(view("b")), known)[0]) == (False, "boss -> b; the recording also has a")


def test_no_reference_to_itself_and_no_cycle():
    assert told(completion(team(view("a")))[1]) == (True, "every agent's links hold")
    holds, evidence = told(completion(team(view("a", view("boss"))))[1])
    assert holds is False
    assert "boss -> a -> boss" in evidence


def test_the_user_may_use_what_is_directly_connected():
    assert completion(team(view("a")))[2].holds is None
    assert told(completion(team(view("a")), None, granted("a"))[2]) == (
        None,
        "the grant of 'ann' names 1 resources; byline grant inspect checks it",
    )


def test_the_direct_subagents_are_on_the_list_of_the_check():
    assert completion(team(view("a")))[3].holds is None
    assert told(completion(team(view("a")), None, granted("a"))[3]) == (True, "the grant names a")
    assert told(completion(team(view("a", view("c")), view("b")), None, granted("a"))[3]) == (
        False,
        "the grant does not name b",
    )


def test_original_and_placeholder_can_be_told_apart():
    once = book(*message("m1"), *call("c1", "task", REPORT))
    assert told(completion(team(), once)[4]) == (
        None,
        "1 shown, each once: Q3 in c1:result; what the parent was told is in the store: give --artifacts",
    )
    artifacts = Artifacts()
    kept = artifacts.keep(REPORT, thread="t", user="ann", source="c1").artifacts
    artifacts.sent(kept)
    assert told(completion(team(), once, None, artifacts, user="ann")[4]) == (
        True,
        f"1 shown, each once: Q3 in c1:result; placeholders sent: 1 of {kept[0].id}",
    )
    assert completion(team(), once, granted(), artifacts)[4].holds is True, "whose the grant is"
    assert told(completion(team(), once, None, artifacts, user="bob")[4]) == (
        None,
        "1 shown, each once: Q3 in c1:result; not kept for user 'bob': c1:result",
    )
    again = book(*message("m1"), *call("c1", "task", REPORT), *call("c2", "lookup_artifact", REPORT))
    holds, evidence = told(completion(team(), again, None, artifacts, user="ann")[4])
    assert holds is False
    assert evidence.endswith("the look-up returned it with its display tags, which must be taken off")
    assert told(completion(team(), book(*message("m1")))[4]) == (None, "the recording shows no artifact")


def test_the_original_is_looked_up_by_the_parent_and_only_where_it_is_needed():
    assert told(completion(team(), book(*message("m1")))[5]) == (True, "nothing was looked up")
    parents = book(*message("m1"), *call("c2", "lookup_artifact", "all of it"))
    assert told(completion(team(), parents)[5]) == (None, "1 look-ups: c2")
    tag = {"subagentRunId": "a-1"}
    inside = [*message("m2", **tag), *call("c3", "lookup_artifact", "not_the_parent: ...", "m2", **tag)]
    subagents = book(*invocation("a-1", "a", *inside))
    assert told(completion(team(view("a")), subagents)[5]) == (False, "lookup_artifact was called by a-1")


def test_without_a_recording_what_only_one_can_show_is_unknown():
    assert [point.holds for point in completion(team(view("a")))] == [None, True, None, None, None, None]
