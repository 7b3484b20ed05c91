"""Factories on LangGraph: nothing is built without permission, and nothing that was built is called without."""

import time

import pytest
from byline import Factory, attribute
from byline.errors import InputError, NoAdapterError
from byline.grants import (
    DeniedError,
    ExpiredError,
    Grants,
    NotCoveredError,
    Permit,
    ReplayedError,
    Resource,
    TableDecider,
)
from kit import attribute_plugins
from test_grants_on_graphs import EVERYTHING, SECRET, boss, guarded, permitted, play, shell

pytest.importorskip("jwt", reason="grants need PyJWT: pip install 'byline[grants]'")

DECLARED = [Resource("model", "big"), Resource("tool", "search")]


class Workshop:
    """Builds a boss with some tools, and counts."""

    def __init__(self, *tools, native=False):
        self.tools, self.native = tools, native
        self.models = []

    def __call__(self):
        graph, model = boss(*self.tools)
        self.models.append(model)
        if not self.native:
            return graph

        async def built():
            return graph

        return built()

    @property
    def requests(self):
        return [request for model in self.models for request in model.requests]


@pytest.mark.parametrize("native", [False, True], ids=["sync", "async"])
def test_a_permitted_run_is_built_and_runs(native):
    workshop = Workshop(native=native)
    agent = guarded(Factory(workshop, DECLARED))
    permit = permitted(agent)
    assert workshop.models == []
    events = play(agent, permit)
    assert [str(event.type) for event in events][-1] == "EventType.RUN_FINISHED"
    assert (len(workshop.models), len(workshop.requests)) == (1, 1)


def test_the_declared_team_is_checked_before_it_is_built():
    workshop = Workshop()
    agent = guarded(Factory(workshop, DECLARED))
    permit = permitted(agent)
    more = guarded(Factory(workshop, [*DECLARED, Resource("tool", "shell")]))
    with pytest.raises(NotCoveredError) as raised:
        play(more, permit)
    assert raised.value.resources == (Resource("tool", "shell"),)
    assert workshop.models == []


def test_who_is_denied_gets_nothing_built():
    workshop = Workshop()
    with pytest.raises(DeniedError):
        permitted(guarded(Factory(workshop, DECLARED), TableDecider([("ann", "model", "*")])))
    with pytest.raises(Exception, match="bad_signature"):
        play(guarded(Factory(workshop, DECLARED)), Permit("ann", "forged"))
    assert workshop.models == []


def test_the_real_objects_are_checked_before_they_are_called():
    workshop = Workshop(shell)
    agent = guarded(Factory(workshop, DECLARED))
    with pytest.raises(NotCoveredError) as raised:
        play(agent, permitted(agent))
    assert raised.value.resources == (Resource("tool", "shell"),)
    assert (len(workshop.models), workshop.requests) == (1, [])


def test_a_refusal_after_building_and_a_factory_that_fails_burn_no_grant():
    workshop, broken = Workshop(shell), True

    def build():
        if broken:
            raise ConnectionError("no catalogue")
        return workshop()

    agent = guarded(Factory(build, DECLARED))
    permit = permitted(agent)
    with pytest.raises(ConnectionError, match="no catalogue"):
        play(agent, permit)
    broken = False
    with pytest.raises(NotCoveredError):
        play(agent, permit)
    workshop.tools = ()
    play(agent, permit)
    with pytest.raises(ReplayedError):
        play(agent, permit)
    assert len(workshop.requests) == 1


def test_an_expired_grant_builds_nothing():
    workshop = Workshop()
    agent = guarded(Factory(workshop, DECLARED))
    permit = permitted(agent)
    later = Grants(SECRET, EVERYTHING, clock=lambda: time.time() + 3_600)
    agent = attribute(
        Factory(workshop, DECLARED), plugins=attribute_plugins(), grants=later, agent_id="boss", clock=None
    )
    with pytest.raises(ExpiredError):
        play(agent, permit)
    assert workshop.models == []


def test_without_grants_a_factory_is_just_a_target():
    workshop = Workshop()
    agent = attribute(Factory(workshop), plugins=attribute_plugins(), clock=None)
    assert agent.guarded is False
    play(agent, None)
    play(agent, None)
    assert len(workshop.models) == 2


def test_what_cannot_be_used_is_refused_with_its_cure():
    with pytest.raises(InputError, match="a function without arguments, got list"):
        Factory([])
    with pytest.raises(InputError, match="say agent_id="):
        guarded(Factory(boss, DECLARED), agent_id=None)
    agent = guarded(Factory(lambda: object(), DECLARED))
    with pytest.raises(NoAdapterError, match="no adapter takes builtins"):
        play(agent, permitted(agent))
    with pytest.raises(InputError, match="needs the framework's objects"):
        agent.stream({"messages": []})
    nested = guarded(Factory(lambda: Factory(boss), DECLARED))
    with pytest.raises(InputError, match="built another factory"):
        play(nested, permitted(nested))
