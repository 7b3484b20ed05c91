"""Every way in which a run is refused before it starts: for any adapter, with the code that must come out.

A scenario is given `make(grants, **options)`, which attributes the target at hand, and where the run will be; it
returns the attributed agent and the permit to try, or raises where no grant is given at all.
"""

import asyncio
import base64
import json
import time
from dataclasses import replace

from byline.errors import StoreError
from byline.grants import Attempt, Grants, TableDecider, peek
from byline.team import AgentRecord, Links, LinksForbiddenError, LinksInvalidError, Team

__all__ = ["BROKEN_SINCE", "REFUSALS", "saved_links"]

SECRET = b"0123456789abcdef0123456789abcdef"
EVERYTHING = TableDecider([("*", "*", "*")])


def grants(decider=EVERYTHING, **options):
    return Grants(SECRET, decider, **options)


async def permitted(make, where, **changes):
    agent = make(grants())
    return agent, await agent.permit(**{"user": "ann", **where, **changes})


class Hangs:
    async def can_use(self, request):
        await asyncio.Event().wait()


class Raises:
    def can_use(self, request):
        raise RuntimeError("the policy file is broken")


class Down:
    def spend(self, jti, until):
        raise StoreError("connection refused")


async def denied(make, where):
    agent = make(grants(TableDecider([("bob", "*", "*")])))
    return agent, await agent.permit("ann", **where)


async def timed_out(make, where):
    agent = make(grants(Hangs(), limit=0.05))
    return agent, await agent.permit("ann", **where)


async def failed(make, where):
    agent = make(grants(Raises()))
    return agent, await agent.permit("ann", **where)


def by_another_clock(seconds):
    async def scenario(make, where):
        _, permit = await permitted(make, where)
        return make(grants(clock=lambda: time.time() + seconds)), permit

    return scenario


async def used_again(make, where):
    agent, permit = await permitted(make, where)
    assert agent._bound.guard.grants.ledger.spend(peek(permit.token).id, 4_000_000_000)
    return agent, permit


async def in_a_ledger_that_is_down(make, where):
    _, permit = await permitted(make, where)
    return make(grants(ledger=Down())), permit


def for_another(**changes):
    async def scenario(make, where):
        agent, permit = await permitted(make, where, **changes)
        return agent, replace(permit, user="ann", mode="default")

    return scenario


async def for_another_parent(make, where):
    other = make(grants(), agent_id="another")
    return make(grants()), await other.permit("ann", **where)


async def of_nothing(make, where):
    agent, permit = await permitted(make, where)
    attempt = Attempt("ann", where["run_id"], agent._bound.guard.agent_id, where["thread_id"])
    return agent, replace(permit, token=await grants().issue(attempt))


def with_token(change):
    async def scenario(make, where):
        agent, permit = await permitted(make, where)
        return agent, replace(permit, token=change(permit.token))

    return scenario


def unsigned(token):
    """The token's own claims under a header that says it needs no signature."""
    kept = json.loads(base64.urlsafe_b64decode(token.split(".")[0] + "=="))
    header = base64.urlsafe_b64encode(json.dumps({**kept, "alg": "none"}).encode()).decode().rstrip("=")
    return f"{header}.{token.split('.')[1]}."


async def sealed_elsewhere(make, where):
    agent = make(Grants(b"another secret of 32 bytes or more", EVERYTHING))
    return make(grants()), await agent.permit("ann", **where)


REFUSALS = {
    "denied": ("denied", denied),
    "the decision timed out": ("decision_timeout", timed_out),
    "the decider failed": ("decision_failed", failed),
    "expired": ("expired", by_another_clock(3_600)),
    "not yet valid": ("not_yet_valid", by_another_clock(-3_600)),
    "used again": ("replayed", used_again),
    "another run's": ("run_mismatch", for_another(run_id="another")),
    "another parent's": ("parent_mismatch", for_another_parent),
    "another user's": ("user_mismatch", for_another(user="bob")),
    "another thread's": ("scope_mismatch", for_another(thread_id="another")),
    "another mode's": ("scope_mismatch", for_another(mode="batch")),
    "covers nothing": ("not_covered", of_nothing),
    "no token": ("bad_signature", with_token(lambda token: None)),
    "cut": ("bad_signature", with_token(lambda token: token[:-5])),
    "unsigned": ("bad_signature", with_token(unsigned)),
    "ten megabytes": ("bad_signature", with_token(lambda token: token * (10_000_000 // len(token)))),
    "sealed with another key": ("bad_signature", sealed_elsewhere),
    "the ledger is down": ("store_unavailable", in_a_ledger_that_is_down),
}


def saved_links():
    """A parent `boss` of ann's with two links, and the team that they are saved in."""
    team = Team()
    for id_ in ("boss", "ana", "bea"):
        team.add(AgentRecord(id_, owner="ann"), caller="ann")
    team.save("boss", ["ana", "bea"], caller="ann")
    return team, Links(team, "boss")


BROKEN_SINCE = {
    "archived": (lambda team: team.change("bea", caller="ann", archived=True), LinksInvalidError),
    "given away": (lambda team: team.change("bea", caller="ann", owner="bob"), LinksForbiddenError),
    "deleted": (lambda team: team.delete("bea", caller="ann"), LinksInvalidError),
    "made a super agent": (lambda team: team.change("bea", caller="ann", kind="super"), LinksInvalidError),
    "the parent archived": (lambda team: team.change("boss", caller="ann", archived=True), LinksInvalidError),
}
"""What happens to a linked agent after it was linked, and how a run is refused then."""
