"""Links: each condition of the text is a test named after it; the expectations are written out by hand."""

import threading
from dataclasses import replace

import pytest
from byline.errors import BylineError
from byline.team import (
    CODES,
    AgentRecord,
    InputReason,
    LinksForbiddenError,
    LinksInvalidError,
    LinksRefusedError,
    MemoryTeams,
    PermissionReason,
    Team,
    TeamError,
)
from hypothesis import given
from hypothesis import strategies as st


def team(*agents: AgentRecord) -> Team:
    return Team(MemoryTeams(agents))


def agent(id_: str, *subagents: str, owner: str = "ann", **more) -> AgentRecord:
    return AgentRecord(id_, owner, subagents=subagents, **more)


def refusal(saved: Team, parent: str, *targets: str, caller: str = "ann") -> LinksRefusedError:
    before = saved.get(parent)
    with pytest.raises(LinksRefusedError) as raised:
        saved.save(parent, targets, caller=caller)
    assert saved.get(parent) == before, "a refused save leaves what was saved"
    return raised.value


def told(refused: LinksRefusedError) -> list[tuple[type, str, str | None]]:
    return [(type(reason), reason.code, reason.target) for reason in refused.reasons]


# ----------------------------------------------------------------------------- conditions of a link, in order


def test_the_link_is_stored_as_a_list_of_references_in_its_order():
    saved = team(agent("boss"), agent("b"), agent("a"))
    assert saved.save("boss", ["b", "a"], caller="ann") == AgentRecord(
        "boss", "ann", "general", False, ("b", "a")
    )
    assert saved.get("boss").subagents == ("b", "a")


def test_the_parent_belongs_to_the_caller():
    refused = refusal(team(agent("boss", owner="bob"), agent("a")), "boss", "a")
    assert type(refused) is LinksForbiddenError
    assert told(refused) == [(PermissionReason, "not_owner", None)]
    assert str(refused.reasons[0]) == (
        "not_owner: 'boss' does not belong to 'ann': ask its owner to link, or link an agent of your own"
    )


def test_the_target_belongs_to_the_caller():
    refused = refusal(team(agent("boss"), agent("a", owner="bob")), "boss", "a")
    assert type(refused) is LinksForbiddenError
    assert told(refused) == [(PermissionReason, "not_owner", "a")]
    assert "bob" not in str(refused), "whose it is, is none of the caller's business"


def test_the_target_is_not_archived():
    refused = refusal(team(agent("boss"), agent("a", archived=True)), "boss", "a")
    assert type(refused) is LinksInvalidError
    assert told(refused) == [(InputReason, "archived", "a")]


def test_the_target_is_not_a_super_agent():
    refused = refusal(team(agent("boss"), agent("a", kind="super")), "boss", "a")
    assert type(refused) is LinksInvalidError
    assert told(refused) == [(InputReason, "super_agent", "a")]


def test_a_super_agent_may_have_subagents():
    saved = team(agent("boss", kind="super"), agent("a"))
    assert saved.save("boss", ["a"], caller="ann").subagents == ("a",)


def test_no_link_to_itself():
    refused = refusal(team(agent("boss")), "boss", "boss")
    assert told(refused) == [(InputReason, "self_reference", "boss")]


def test_no_link_twice():
    refused = refusal(team(agent("boss"), agent("a"), agent("b")), "boss", "a", "b", "a")
    assert told(refused) == [(InputReason, "duplicate", "a")]
    assert "3 times" not in str(refused)
    assert "2 times" in str(refused)


def test_no_cycle_and_the_cycle_is_shown():
    refused = refusal(team(agent("boss"), agent("a", "b"), agent("b", "boss")), "boss", "a")
    assert told(refused) == [(InputReason, "cycle", "a")]
    assert refused.reasons[0].cycle == ("boss", "a", "b", "boss")
    assert "boss -> a -> b -> boss" in str(refused)


def test_every_target_that_makes_a_cycle_is_named():
    refused = refusal(team(agent("boss"), agent("a", "boss"), agent("b", "a")), "boss", "b", "a")
    assert [reason.cycle for reason in refused.reasons] == [("boss", "b", "a", "boss"), ("boss", "a", "boss")]


def test_two_ways_to_one_agent_are_no_cycle():
    saved = team(agent("boss"), agent("a", "c"), agent("b", "c"), agent("c"))
    assert saved.save("boss", ["a", "b", "c"], caller="ann").subagents == ("a", "b", "c")


def test_an_unknown_target_is_an_input_error():
    assert told(refusal(team(agent("boss")), "boss", "ghost")) == [(InputReason, "unknown", "ghost")]


def test_every_reason_at_once_in_the_order_of_the_text():
    saved = team(
        agent("boss", owner="bob"),
        agent("loop", "boss"),
        agent("old", archived=True),
        agent("lord", kind="super"),
        agent("theirs", owner="bob", archived=True),
    )
    refused = refusal(saved, "boss", "loop", "lord", "boss", "old", "theirs", "ghost", "old")
    assert type(refused) is LinksForbiddenError
    assert told(refused) == [
        (PermissionReason, "not_owner", None),
        (PermissionReason, "not_owner", "theirs"),
        (InputReason, "unknown", "ghost"),
        (InputReason, "archived", "old"),
        (InputReason, "archived", "theirs"),
        (InputReason, "super_agent", "lord"),
        (InputReason, "self_reference", "boss"),
        (InputReason, "duplicate", "old"),
        (InputReason, "cycle", "loop"),
    ]
    assert [reason.code for reason in refused.permission] == ["not_owner", "not_owner"]
    assert len(refused.input) == 7
    assert CODES == (
        "not_owner",
        "unknown",
        "archived",
        "super_agent",
        "self_reference",
        "duplicate",
        "cycle",
    )


# ---------------------------------------------------------------------------------- failures and their judgement


def test_save_was_refused__change_the_target_and_save_again():
    saved = team(agent("boss", "a"), agent("a"), agent("b", archived=True))
    refusal(saved, "boss", "a", "b")
    saved.change("b", caller="ann", archived=False)
    assert saved.save("boss", ["a", "b"], caller="ann").subagents == ("a", "b")


def test_a_permission_error_is_not_an_input_error():
    saved = team(agent("boss"), agent("a", owner="bob"), agent("old", archived=True))
    with pytest.raises(LinksForbiddenError):
        saved.save("boss", ["a"], caller="ann")
    with pytest.raises(LinksInvalidError):
        saved.save("boss", ["old"], caller="ann")
    assert not issubclass(LinksForbiddenError, LinksInvalidError)
    assert not issubclass(LinksInvalidError, LinksForbiddenError)
    assert issubclass(LinksRefusedError, BylineError)


# --------------------------------------------------------------------------------------------- when a run starts


def test_the_saved_list_is_what_was_meant():
    saved = team(agent("boss"), agent("a"), agent("b"))
    saved.save("boss", ["a", "b"], caller="ann")
    saved.save("boss", ["b"], caller="ann")
    assert saved.check("boss").subagents == ("b",)


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        (lambda saved: saved.change("a", caller="ann", archived=True), (InputReason, "archived", "a")),
        (lambda saved: saved.change("a", caller="ann", owner="bob"), (PermissionReason, "not_owner", "a")),
        (lambda saved: saved.delete("a", caller="ann"), (InputReason, "unknown", "a")),
        (lambda saved: saved.change("a", caller="ann", kind="super"), (InputReason, "super_agent", "a")),
        (lambda saved: saved.change("boss", caller="ann", archived=True), (InputReason, "archived", None)),
        (lambda saved: saved.change("boss", caller="ann", owner="bob"), (PermissionReason, "not_owner", "a")),
    ],
    ids=["archived", "given-away", "deleted", "became-super", "parent-archived", "parent-given-away"],
)
def test_saved_is_not_permitted__a_link_is_checked_again_when_a_run_starts(since, expected):
    saved = team(agent("boss"), agent("a"))
    saved.save("boss", ["a"], caller="ann")
    assert saved.check("boss").subagents == ("a",)
    since(saved)
    assert saved.get("boss").subagents == ("a",), "the list itself stays as saved"
    with pytest.raises(LinksRefusedError) as raised:
        saved.check("boss")
    assert told(raised.value) == [expected]


def test_a_run_by_somebody_who_does_not_own_the_parent_can_be_held_to_the_caller():
    saved = team(agent("boss"))
    with pytest.raises(LinksForbiddenError):
        saved.check("boss", caller="bob")


# ------------------------------------------------------------------------------------------------------ bad input


def test_what_is_not_the_callers_cannot_be_changed_or_deleted():
    saved = team(agent("a"))
    for attempt in (
        lambda: saved.change("a", caller="bob", owner="bob"),
        lambda: saved.delete("a", caller="bob"),
        lambda: saved.add(agent("x"), caller="bob"),
    ):
        with pytest.raises(LinksForbiddenError):
            attempt()
    assert saved.get("a") == agent("a")


def test_adding_holds_the_links_too():
    saved = team(agent("a", archived=True))
    with pytest.raises(LinksInvalidError):
        saved.add(agent("boss", "a"), caller="ann")
    with pytest.raises(TeamError, match="no agent 'boss'"):
        saved.get("boss")
    with pytest.raises(TeamError, match="agent 'a' already"):
        saved.add(agent("a"), caller="ann")


@pytest.mark.parametrize(
    "make",
    [
        lambda: AgentRecord("", "ann"),
        lambda: AgentRecord("a", ""),
        lambda: AgentRecord("a", "ann", kind="duke"),
        lambda: AgentRecord("a", "ann", subagents="bc"),
        lambda: AgentRecord("a", "ann", subagents=("b", "")),
        lambda: AgentRecord("a", "ann", subagents=(3,)),
        lambda: team(agent("a"), agent("b")).save("a", "b", caller="ann"),
        lambda: team(agent("a")).save("nobody", ["a"], caller="ann"),
    ],
)
def test_values_that_cannot_be_used_are_refused(make):
    with pytest.raises(TeamError):
        make()


def test_a_chain_deeper_than_the_stack_is_followed():
    deep = [agent(f"a{i}", f"a{i + 1}") for i in range(20_000)]
    saved = team(agent("boss"), *deep, agent("a20000", "boss"))
    (reason,) = refusal(saved, "boss", "a0").reasons
    assert (len(reason.cycle), reason.cycle[:3], reason.cycle[-2:]) == (
        20_003,
        ("boss", "a0", "a1"),
        ("a20000", "boss"),
    )


# ----------------------------------------------------------------------------------------------------- concurrency


def test_two_saves_at_once_never_make_a_cycle():
    for _ in range(50):
        saved = team(agent("a"), agent("b"))
        start, refused = threading.Barrier(2), []

        def save(parent, target, saved=saved, start=start, refused=refused):
            start.wait()
            try:
                saved.save(parent, [target], caller="ann")
            except LinksInvalidError as fault:
                refused.append(fault.reasons[0].code)

        threads = [threading.Thread(target=save, args=pair) for pair in (("a", "b"), ("b", "a"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert refused == ["cycle"]


IDS = ["a", "b", "c", "d", "e"]


@given(st.lists(st.tuples(st.sampled_from(IDS), st.lists(st.sampled_from(IDS), max_size=4)), max_size=30))
def test_no_series_of_saves_leaves_a_cycle_a_double_or_a_link_to_itself(saves):
    saved = team(*(agent(id_) for id_ in IDS))
    for parent, targets in saves:
        before = saved.get(parent)
        try:
            after = saved.save(parent, targets, caller="ann")
        except LinksInvalidError:
            assert saved.get(parent) == before
        else:
            assert after == replace(before, subagents=tuple(targets))
    links = {id_: saved.get(id_).subagents for id_ in IDS}
    assert all(len(set(targets)) == len(targets) for targets in links.values())
    free = set(IDS)  # taking away whoever refers to nobody left must empty a team without a cycle
    while leaves := {id_ for id_ in free if not free.intersection(links[id_])}:
        free -= leaves
    assert not free
