"""Cedar policies as a decider."""

import asyncio

import pytest
from byline.errors import InputError
from byline.grants import AccessRequest, Attempt, DecisionFailedError, DeniedError, Grants, Resource

pytest.importorskip("cedarpy", reason="needs an extra: pip install 'byline[cedar]'")

from byline.deciders import CedarDecider

SECRET = b"0123456789abcdef0123456789abcdef"
POLICIES = """
permit (principal in Group::"writers", action == Action::"RESOURCE_CAN_USE", resource)
when { resource is Model || resource is Tool };
permit (principal == User::"ann", action, resource == Subagent::"writer")
when { context.mode == "chat" && context.parentAgent == "boss" };
forbid (principal, action, resource == Tool::"shell");
"""
ENTITIES = [
    {"uid": {"type": "User", "id": "ann"}, "attrs": {}, "parents": [{"type": "Group", "id": "writers"}]},
    {"uid": {"type": "User", "id": "bob"}, "attrs": {}, "parents": []},
]


def ask(user, kind, name, mode="chat", parent="boss", policies=POLICIES):
    request = AccessRequest(user, Resource(kind, name), "r", parent, "t", mode)
    return CedarDecider(policies, ENTITIES).can_use(request)


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        (("ann", "model", "small"), True),
        (("ann", "tool", "search"), True),
        (("ann", "tool", "shell"), False),
        (("ann", "middleware", "TodoList"), False),
        (("ann", "subagent", "writer"), True),
        (("ann", "subagent", "writer", "batch"), False),
        (("ann", "subagent", "writer", "chat", "other"), False),
        (("bob", "tool", "search"), False),
        (("nobody", "tool", "search"), False),
        (('ann", action, resource == Tool::"x', "tool", "search"), False),
        (("\x00\n한글\U0001f600", "tool", 'a"b\\c'), False),
    ],
)
def test_the_policies_are_asked(request_, answer):
    assert ask(*request_) is answer


def test_a_name_in_any_script_is_the_same_name():
    policies = 'permit (principal == User::"앤", action, resource == Tool::"say \\"hi\\"");'
    assert ask("앤", "tool", 'say "hi"', policies=policies) is True
    assert ask("앤", "tool", "say hi", policies=policies) is False


def issue(policies, *resources):
    service = Grants(SECRET, CedarDecider(policies, ENTITIES))
    return asyncio.run(service.issue(Attempt("ann", "r", "boss", "t", "chat", frozenset(resources))))


def test_a_grant_is_made_of_its_answers():
    assert issue(POLICIES, Resource("model", "small"), Resource("subagent", "writer"))
    with pytest.raises(DeniedError) as raised:
        issue(POLICIES, Resource("model", "small"), Resource("tool", "shell"))
    assert raised.value.resources == (Resource("tool", "shell"),)


def test_a_policy_that_cannot_be_evaluated_permits_nothing():
    broken = "permit (principal, action, resource); permit (principal, action, resource) when { context.nothing == 1 };"
    with pytest.raises(DecisionFailedError):
        issue(broken, Resource("tool", "search"))


def test_policies_that_cannot_be_read_are_refused_at_once():
    with pytest.raises(InputError, match="cannot be read as Cedar"):
        CedarDecider("permit everything;")
