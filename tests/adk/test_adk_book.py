"""The book of calls and invocations: what it makes of a stored session, and of agents that begin.

The events are ADK's own, as it stores them; callbacks come in the order in which ADK makes them.
"""

import contextvars

import pytest
from adk_kit import agent
from byline_adk import _identity
from byline_adk._identity import HERE, SPAWN, Book, Invocation, Kind, Spawn, is_placeholder
from byline_adk._remote import _RESPONSE, _TASK
from google.adk.agents import LoopAgent, SequentialAgent
from google.adk.events import Event, EventActions
from google.adk.events.event import NodeInfo
from google.adk.workflow import START, Workflow
from google.genai import types


@pytest.fixture(autouse=True)
def _in_a_context_of_its_own():
    here, spawn = HERE.set(None), SPAWN.set(None)
    yield
    HERE.reset(here)
    SPAWN.reset(spawn)


def called(id_, name, **args):
    return types.Part(function_call=types.FunctionCall(id=id_, name=name, args=args))


def answered(id_, name, **response):
    return types.Part(function_response=types.FunctionResponse(id=id_, name=name, response=response))


def stored(
    author, *parts, course="i1", branch=None, path="", scope=None, waits=(), to=None, error=None, beside=None
):
    parts = [types.Part(text=part) if isinstance(part, str) else part for part in parts]
    return Event(
        author=author,
        invocation_id=course,
        branch=branch,
        node_info=NodeInfo(path=path),
        isolation_scope=scope,
        content=types.Content(role="model", parts=parts) if parts else None,
        long_running_tool_ids=set(waits) or None,
        actions=EventActions(transfer_to_agent=to),
        error_code=error,
        custom_metadata=beside,
    )


def team(*children, **options):
    return agent("root", sub_agents=list(children), **options)


def replayed(root, *events):
    book = Book(root)
    book.replay(events)
    return book


def told(book):
    """The history as (role, owner, call)."""
    return [
        (one.role, one.subagent_run_id, one.tool_call_id if one.role == "tool" else one.tool_calls[0].id)
        for one in book.history()
    ]


# ------------------------------------------------------------------------------------------------ calls


def test_past_calls_are_told_as_messages():
    book = replayed(
        team(),
        stored("root", called("c1", "look", q="x")),
        stored("root", answered("c1", "look", result="seen")),
        stored("root", called("w1", "ticket"), waits=["w1"]),
    )
    assert [one.model_dump(by_alias=True, exclude_none=True) for one in book.history()] == [
        {
            "id": "c1:call",
            "role": "assistant",
            "toolCalls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
        },
        {"id": "c1:call:result", "role": "tool", "toolCallId": "c1", "content": ""},
        {
            "id": "w1:call",
            "role": "assistant",
            "toolCalls": [
                {"id": "w1", "type": "function", "function": {"name": "ticket", "arguments": "{}"}}
            ],
        },
    ]
    assert [(use.id, use.past) for use in book.waiting()] == [("w1", True)]


def test_what_a_long_running_tool_returned_at_once_is_no_answer_but_the_users_is():
    book = replayed(
        team(),
        stored("root", called("w1", "ticket"), called("w2", "ticket"), waits=["w1", "w2"]),
        stored(
            "root", answered("w1", "ticket", status="pending"), answered("w2", "ticket", status="pending")
        ),
        stored("user", answered("w1", "ticket", status="done"), course="i2"),
    )
    assert [use.id for use in book.waiting()] == ["w2"]
    assert told(book) == [("assistant", None, "w1"), ("tool", None, "w1"), ("assistant", None, "w2")]


def test_a_call_is_kept_as_it_was_made():
    book = Book(team())
    use = book.note_use(book.root, called("c1", "look", q="x").function_call, "i1", stored=True)
    bare = book.note_use(book.root, types.FunctionCall(id="c2"), "i1", stored=True)
    assert (use.name, use.args, use.course, use.past) == ("look", {"q": "x"}, "i1", False)
    assert (bare.name, bare.args) == ("", {})
    assert book.waiting() == []
    assert [book.use(id_) for id_ in ("c1", "c2", "never", None)] == [use, bare, None, None]


def test_a_remote_agent_that_says_again_what_it_waits_for_has_asked_once():
    peer, other = agent("peer", mode="single_turn"), agent("other", mode="single_turn")
    said = {"branch": "peer@c1", "beside": {_TASK: "task-1"}}
    elsewhere = {"branch": "other@c2", "beside": {_TASK: "task-2"}}
    book = replayed(
        team(peer, other),
        stored("root", called("c1", "peer"), called("c2", "other")),
        stored("peer", called("x1", "look"), **said),
        stored("peer", called("x1", "look"), **said),
        stored("other", called("x1", "look"), **elsewhere),
        stored("peer", answered("x1", "look", result="seen"), **said),
        stored("peer", called("x1", "look"), **said),
    )
    assert told(book) == [
        ("assistant", None, "c1"),
        ("assistant", None, "c2"),
        ("assistant", "c1", "x1"),
        ("tool", None, "x1"),
        ("assistant", "c2", "x1@c2"),
        ("assistant", "c1", "x1@c1"),
    ]


def test_what_a_peer_asks_a_confirmation_for_is_not_answered():
    asks = {_RESPONSE: {"metadata": {"adk_actions": {"requestedToolConfirmations": {"x1": {}}}}}}
    response = answered("x1", "look").function_response

    def placeholder(id_, beside):
        return is_placeholder(stored("peer", answered(id_, "look"), beside=beside), response)

    assert placeholder("x1", asks) is True
    assert placeholder("x1", {_TASK: "task-1"}) is False
    assert placeholder("x1", None) is False


def test_a_call_without_an_id_is_not_kept():
    assert told(replayed(team(), stored("root", called(None, "look")))) == []


LANES = (
    stored("root", called("c1", "desk"), called("c2", "desk")),
    stored("desk", called("x1", "look"), branch="desk@c1"),
    stored("desk", called("x1", "look"), branch="desk@c2"),
)


def test_an_answer_is_that_of_the_call_in_its_branch():
    book = replayed(
        team(agent("desk", mode="single_turn")),
        *LANES,
        stored("desk", answered("x1", "look", result="seen"), branch="desk@c1"),
    )
    assert told(book) == [
        ("assistant", None, "c1"),
        ("assistant", None, "c2"),
        ("assistant", "c1", "x1"),
        ("tool", None, "x1"),
        ("assistant", "c2", "x1@c2"),
    ]


def test_what_the_root_says_in_the_branch_of_a_call_is_the_calls():
    book = replayed(
        team(agent("desk", mode="single_turn")),
        LANES[0],
        stored("root", called("r1", "look"), branch="desk@c2"),
    )
    assert told(book)[-1] == ("assistant", "c2", "r1")


# ------------------------------------------------------------------------------------------- invocations


def test_what_was_answered_is_over_and_what_was_not_goes_on():
    desk = agent("desk", mode="single_turn")
    book = replayed(team(desk), *LANES, stored("root", answered("c1", "desk", result="done")))
    found = [book.enter(desk, f"desk@c{number}", "", "i2") for number in ("1", "2")]
    assert [(one.id, one.kind) for one in found] == [("c1#2", Kind.CALL), ("c2", Kind.CALL)]


def test_a_branch_ends_in_a_call_whose_id_may_hold_a_dot():
    steps = SequentialAgent(name="steps")
    book = replayed(team(steps), stored("root", called("c.1", "steps")))
    found = book.enter(steps, "lead@u.steps@c.1", "", "i2")
    assert (found.id, found.kind) == ("c.1", Kind.CALL)


def test_an_agent_tools_agent_that_begins_again_is_the_same():
    desk = agent("desk")
    book = Book(team(desk))
    use = book.note_use(book.root, called("c1", "desk").function_call, "i1", stored=True)
    SPAWN.set(Spawn(use))
    one = book.enter(desk, None, "", "i2")
    HERE.set(None)
    assert (one.id, book.enter(desk, None, "", "i2")) == ("c1", one)


def of_the_clerk(*parts, **more):
    return stored("clerk", *parts, branch="clerk@c1", scope="c1", **more)


@pytest.mark.parametrize(
    ("last", "goes_on_as"),
    [
        (of_the_clerk(error="BROKEN"), "c1#2"),
        (of_the_clerk("cut off", error="MAX_TOKENS"), "c1"),
        (of_the_clerk(), "c1"),
        (of_the_clerk("which one?"), "c1"),
    ],
    ids=["failed", "cut short", "nothing said", "asked"],
)
def test_a_task_that_failed_is_tried_again_and_any_other_goes_on(last, goes_on_as):
    clerk = agent("clerk", mode="task")
    book = replayed(team(clerk), stored("root", called("c1", "clerk")), last)
    found = book.enter(clerk, "clerk@c1", "", "i2")
    assert (found.id, found.kind) == (goes_on_as, Kind.TASK)


def test_the_call_of_a_task_that_failed_waits_again():
    book = replayed(
        team(agent("clerk", mode="task")),
        stored("root", called("c1", "clerk")),
        of_the_clerk("I try"),
        stored("root", answered("c1", "clerk", error="broke")),
        of_the_clerk(error="BROKEN"),
    )
    assert told(book) == [("assistant", None, "c1")]


def test_a_failure_of_what_is_no_task_takes_no_answer_back():
    book = replayed(
        team(agent("desk", mode="single_turn")),
        LANES[0],
        stored("root", answered("c1", "desk", result="done")),
        stored("desk", branch="desk@c1", error="BROKEN"),
    )
    assert told(book) == [("assistant", None, "c1"), ("tool", None, "c1"), ("assistant", None, "c2")]


def test_an_agent_without_modes_has_none():
    assert Invocation(Kind.PART, "steps", agent=SequentialAgent(name="steps")).mode is None


# ---------------------------------------------------------------------------------------------- transfers


def handing(id_, to, author, **more):
    return (
        stored(author, called(id_, "transfer_to_agent", agent_name=to), **more),
        stored(author, answered(id_, "transfer_to_agent", result=None), to=to, **more),
    )


def test_who_was_handed_control_goes_on_with_it():
    a, b = agent("a"), agent("b")
    book = replayed(team(a, b), *handing("t1", "a", "root"), stored("a", "how can I help?"))
    found = book.enter(a, None, "", "i2")
    assert (found.id, found.kind, found.parent, found.agent) == ("t1", Kind.CHAT, book.root, a)
    assert book.use("t1").spawned is found


def test_who_has_handed_control_on_is_not_in_control():
    a, b = agent("a"), agent("b")
    book = replayed(team(a, b), *handing("t1", "a", "root"), *handing("t2", "b", "a"))
    assert told(book) == [
        ("assistant", None, "t1"),
        ("tool", None, "t1"),
        ("assistant", "t1", "t2"),
        ("tool", None, "t2"),
    ]
    assert book.enter(b, None, "", "i2").id == "t2"
    assert book.past_owner(stored("a", "late")) is book.root


def test_a_transfer_that_no_model_made_is_named_by_its_event():
    a = agent("a")
    event = stored("root", to="a")
    book = replayed(team(a), event)
    assert book.enter(a, None, "", "i2").id == event.id


def test_a_transfer_is_that_of_the_call_in_its_branch():
    a = agent("a")
    desk = agent("desk", mode="single_turn", sub_agents=[a])
    book = replayed(
        team(desk),
        LANES[0],
        stored("desk", called("t1", "transfer_to_agent", agent_name="a"), branch="desk@c1"),
        stored("desk", called("t1", "transfer_to_agent", agent_name="a"), branch="desk@c2"),
        stored("desk", answered("t1", "transfer_to_agent"), branch="desk@c1", to="a"),
    )
    found = book.enter(a, "desk@c1", "", "i2")
    assert (found.id, found.parent.id) == ("t1", "c1")


def test_two_lanes_that_are_handed_to_one_agent_stay_two():
    a = agent("a")
    desk = agent("desk", mode="single_turn", sub_agents=[a])
    book = replayed(team(desk), LANES[0])
    for number in ("1", "2"):
        lane = f"desk@c{number}"
        one = book.enter(desk, lane, "", "i2")
        use = book.note_use(one, called(f"t{number}", "transfer_to_agent").function_call, "i2", stored=True)
        book.hand_off(one, use, "a", stored("desk", course="i2", branch=lane, to="a"))
    found = [book.enter(a, f"desk@c{number}", "", "i2") for number in ("1", "2")]
    assert [(one.id, one.parent.id) for one in found] == [("t1", "c1"), ("t2", "c2")]


def test_who_is_handed_control_anew_is_not_who_waited_for_an_answer():
    a = agent("a")
    book = replayed(team(a), *handing("t1", "a", "root"))
    book.resumed["a"] = waited = book.enter(a, None, "", "i2")
    use = book.note_use(book.root, called("t2", "transfer_to_agent").function_call, "i2", stored=True)
    book.hand_off(book.root, use, "a", stored("root", course="i2", to="a"))
    found = book.enter(a, None, "", "i2")
    assert (waited.id, found.id) == ("t1", "t2")


def test_chat_agents_below_a_node_of_a_workflow_stay_where_they_were_called():
    b = agent("b")
    a = agent("a", sub_agents=[b])
    lead = agent("lead", sub_agents=[a])
    book = Book(Workflow(name="flow", edges=[(START, lead)]))
    node = book.enter(lead, None, "flow@1/lead@1", "i1")
    assert (node.id, node.kind) == ("i1:flow@1/lead@1", Kind.NODE)
    found = []
    for id_, target, source in (("t1", a, node), ("t2", b, None)):
        source = source or found[-1]
        use = book.note_use(source, called(id_, "transfer_to_agent").function_call, "i1", stored=True)
        assert book.hand_off(source, use, target.name, stored(source.name, to=target.name)) == []
        assert (use.spawned.agent, use.spawned.course) == (target, "i1")
        found.append(book.enter(target, None, "flow@1/lead@1", "i1"))
    assert [(one.id, one.parent) for one in found] == [("t1", node), ("t2", found[0])]


def test_a_workflow_may_hand_control_to_whom_it_does_not_hold():
    book = Book(Workflow(name="flow", edges=[(START, agent("lead"))]))
    use = book.note_use(book.root, called("t1", "transfer_to_agent").function_call, "i1", stored=True)
    assert book.hand_off(book.root, use, "stranger", stored("flow", to="stranger")) == []
    found = use.spawned
    assert (found.id, found.kind, found.parent, found.agent) == ("t1", Kind.CHAT, book.root, None)


def test_control_may_be_left_where_it_was_not_handed():
    a, b = agent("a"), agent("b")
    book = replayed(team(a, b), *handing("t1", "a", "root"))
    one = book.enter(a, None, "", "i2")
    use = book.note_use(one, called("t2", "transfer_to_agent").function_call, "i2", stored=True)
    assert book.hand_off(one, use, "b", stored("a", course="i2", branch="elsewhere", to="b")) == [one]


# ----------------------------------------------------------------------------------------- nodes and parts


def test_a_stored_node_is_known_by_its_path():
    a = agent("a")
    flow = Workflow(name="flow", edges=[(START, a)])
    book = Book(flow)
    first = stored("a", called("x1", "look"), path="flow@1/a@1")
    book.replay([first])
    node = book.past_owner(first)
    assert (node.id, node.name, node.kind, node.parent, node.path) == (
        "i1:flow@1/a@1",
        "a",
        Kind.NODE,
        book.root,
        "flow@1/a@1",
    )
    assert book.past_owner(stored("a", "done", path="flow@1/a@1")) is node
    assert book.enter(a, None, "flow@1/a@1", "i1") is node
    assert told(book) == [("assistant", "i1:flow@1/a@1", "x1")]


def test_what_is_numbered_goes_on_from_the_final_texts_of_the_session():
    x = agent("x")
    book = replayed(SequentialAgent(name="root", sub_agents=[x]), stored("x", "one"), stored("x", "two"))
    assert book.enter(x, None, "", "i1").id == "i1:x#3"
    assert book.enter(x, None, "", "i2").id == "i2:x#1"


def test_past_parts_that_called_something_have_the_number_of_their_text():
    x, y = agent("x"), agent("y")
    inner = SequentialAgent(name="steps", sub_agents=[x, y])
    book = replayed(
        team(inner),
        stored("root", called("c1", "steps")),
        stored("x", called("x1", "look"), branch="steps@c1"),
        stored("x", "one", branch="steps@c1"),
        stored("x", called("x2", "look"), branch="steps@c1"),
        stored("y", called("y1", "look"), branch="steps@c1"),
    )
    assert told(book) == [
        ("assistant", None, "c1"),
        ("assistant", "c1/x#1", "x1"),
        ("assistant", "c1/x#2", "x2"),
        ("assistant", "c1/y#1", "y1"),
    ]


def test_parts_are_numbered_within_what_encloses_them():
    inner = agent("inner")
    steps = SequentialAgent(name="steps", sub_agents=[inner])
    root = LoopAgent(name="root", sub_agents=[steps])
    book = Book(root)
    begun = [book.enter(one, None, "", "i1").id for one in (root, steps, inner, steps, inner)]
    assert begun == [None, "i1:steps#1", "i1:steps#1/inner#1", "i1:steps#2", "i1:steps#2/inner#1"]


def test_parts_within_an_agent_tool_are_its_own():
    x, y = agent("x"), agent("y")
    steps = SequentialAgent(name="steps", sub_agents=[x, y])
    book = Book(team())
    use = book.note_use(book.root, called("c1", "steps").function_call, "i1", stored=True)
    SPAWN.set(Spawn(use))
    begun = [book.enter(one, None, "", "i2") for one in (steps, x, y)]
    assert [(one.id, one.kind) for one in begun] == [
        ("c1", Kind.CALL),
        ("c1/x#1", Kind.PART),
        ("c1/y#1", Kind.PART),
    ]
    assert begun[2].parent is begun[0]
    assert book.owner(stored("nobody", course="i2", error="BROKEN")) is begun[0]


def test_where_callbacks_know_no_path_the_first_event_tells_what_began(monkeypatch):
    monkeypatch.setattr(_identity, "can", lambda _: False)
    a, b, c, d = (agent(name) for name in "abcd")
    book = Book(team(a, b, c, d))

    def begun(one):
        found = contextvars.copy_context().run(book.enter, one, None, "", "i1")
        assert (found.id, found.kind) == (None, Kind.NODE)
        return found

    node, silent, off, elsewhere = begun(a), begun(b), begun(c), begun(d)
    book.place(node, stored("a", "hi", path="root@1/a@1"))
    book.place(silent, None)
    book.place(off, stored("c", "hi"))
    book.place(elsewhere, stored("d", "hi", path="root@1/another@1"))
    assert [(one.id, one.kind, one.path) for one in (node, silent, off, elsewhere)] == [
        ("i1:root@1/a@1", Kind.NODE, "root@1/a@1"),
        ("i1:b#1", Kind.PART, ""),
        ("i1:c#1", Kind.PART, ""),
        ("i1:d#1", Kind.PART, ""),
    ]
    assert book.enter(a, None, "root@1/a@1", "i1") is node


def test_where_callbacks_know_no_path_an_agent_without_a_model_runs_no_nodes(monkeypatch):
    monkeypatch.setattr(_identity, "can", lambda _: False)
    x, a = agent("x"), agent("a")
    book = Book(team(SequentialAgent(name="steps", sub_agents=[x]), a))
    inside, beside = book.enter(x, None, "", "i1"), book.enter(a, None, "root@1", "i1")
    assert [(one.id, one.kind) for one in (inside, beside)] == [("i1:x#1", Kind.PART), ("i1:a#1", Kind.PART)]


def test_where_callbacks_know_their_path_who_has_none_is_no_node(monkeypatch):
    monkeypatch.setattr(_identity, "can", lambda _: True)
    a = agent("a")
    found = Book(team(a)).enter(a, None, "", "i1")
    assert (found.id, found.kind) == ("i1:a#1", Kind.PART)


def in_workflows():
    a, b, c = agent("a"), agent("b"), agent("c")
    one, two = Workflow(name="one", edges=[(START, a)]), Workflow(name="two", edges=[(START, b)])
    return b, Book(Workflow(name="flow", edges=[(START, one), (one, two), (two, c)]))


def test_a_node_is_in_the_workflow_that_its_path_names():
    b, book = in_workflows()
    found = book.enter(b, None, "flow@1/two@1/b@1", "i1")
    assert (found.id, found.parent.id, found.parent.name) == ("i1:flow@1/two@1/b@1", "i1:flow@1/two@1", "two")
    assert found.parent.parent is book.root


def test_where_callbacks_know_no_path_the_first_event_tells_the_workflow_too(monkeypatch):
    monkeypatch.setattr(_identity, "can", lambda _: False)
    b, book = in_workflows()
    found = book.enter(b, None, "", "i1")
    book.place(found, stored("b", "hi", path="flow@1/two@1/b@1"))
    assert (found.id, found.parent.id, found.parent.name) == ("i1:flow@1/two@1/b@1", "i1:flow@1/two@1", "two")
    assert found.parent.parent is book.root


# --------------------------------------------------------------------------------------- whose is an event


def in_a_lane():
    """A call's agent, and before it in the book a node that runs in the same lane."""
    desk, node = agent("desk", mode="single_turn"), agent("node")
    book = replayed(team(desk, node), LANES[0])
    inner = book.enter(node, "desk@c1", "root@1/node@1", "i2")
    return book, inner, book.enter(desk, "desk@c1", "", "i2"), book.enter(desk, "desk@c2", "", "i2")


def test_an_event_is_whose_name_it_has_before_it_is_whose_place_it_has():
    book, inner, one, other = in_a_lane()
    here = {"course": "i2", "branch": "desk@c1", "path": "root@1/node@1"}
    assert book.owner(stored("desk", "mine", **here)) is one
    assert book.owner(stored("desk", error="BROKEN", **here)) is inner, "an error may have the parent's name"
    assert book.owner(stored("nobody", "whose?", **here)) is inner
    assert book.owner(stored("root", "mine", **here)) is book.root
    assert book.owner(stored("user", "said", **here)) is book.root
    assert book.owner(stored("nobody", "whose?", **{**here, "branch": "desk@c2"})) is book.root
    assert book.owner(stored("desk", "which?", course="i2")) is other, "who began last"


def test_an_event_is_not_whose_turn_is_over_or_another():
    book, _inner, one, other = in_a_lane()
    one.over = True
    assert book.owner(stored("desk", "mine", course="i2", branch="desk@c1")) is other
    assert book.owner(stored("desk", "mine", course="i3", branch="desk@c2")) is book.root


def test_an_error_under_the_parents_name_is_whose_failed():
    desk = agent("desk", mode="single_turn")
    book = replayed(team(desk), LANES[0])
    one, other = (book.enter(desk, f"desk@c{number}", "", "i2") for number in ("1", "2"))
    one.failure = ("model broke", "BROKEN")
    failed = stored("root", course="i2", error="BROKEN")
    assert book.owner(failed) is one
    assert book.owner(stored("root", "but said", course="i2", error="BROKEN")) is book.root
    assert book.owner(stored("desk", "mine", course="i2", branch="desk@c2")) is other


def test_a_turn_that_is_over_is_the_past_of_the_next():
    desk = agent("desk", mode="single_turn")
    book = Book(team(desk))
    use = book.note_use(book.root, called("c1", "desk").function_call, "i1", stored=True)
    one = book.enter(desk, "desk@c1", "", "i1")
    one.opened = one.left = one.done = one.speaking = True
    book.resumed["desk"] = one
    book.turn_over()
    assert (use.past, one.opened, one.left, one.done, one.speaking) == (True, False, False, False, False)
    assert (book.live, book.resumed) == ([], {})
