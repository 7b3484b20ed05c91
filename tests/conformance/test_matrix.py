"""The suite on every host of ours whose framework is installed."""

import json
from pathlib import Path

from byline.testing.test_conformance import (
    parametrize,
    test_a_declared_cell_is_reproduced,
    test_no_overrides_without_a_reason,
    test_nothing_is_missing,
    test_scenario,
    test_the_official_client_agrees,
)
from conform_matrix import digest, our_hosts, pages

__all__ = [
    "test_a_declared_cell_is_reproduced",
    "test_no_overrides_without_a_reason",
    "test_nothing_is_missing",
    "test_scenario",
    "test_the_official_client_agrees",
]

HOSTS = our_hosts()

# What is not as the scenarios say, on the newest versions.  A new entry is a decision, and so is one that goes.
ADK = ["a-tool-that-calls-a-model"]
BROKEN = ["a-handled-failure", "failure-in-the-middle-of-a-sentence", "a-retry"]
DECLARED = {
    "langgraph tool": [],
    "langgraph subgraph": [],
    "langgraph supervisor": [],
    "langgraph swarm": [],
    "deepagents isolated": [],
    "deepagents fork": [],
    "adk single_turn": [*ADK, *BROKEN, "a-fatal-failure", "approval-two-deep", "two-approvals-one-by-one"],
    "adk task": [*ADK, *BROKEN, "two-approvals-one-by-one"],
    "adk AgentTool": [
        *ADK,
        "failure-in-the-middle-of-a-sentence",
        "approval-in-a-subagent",
        "approval-two-deep",
        "two-approvals-one-by-one",
    ],
    "adk chat": [],
    "adk workflow agents": ["a-loop-of-two", "fan-out-of-three"],
    "adk Workflow": ["a-loop-of-two", "nodes-in-sequence"],
}
# Older versions of a framework may fall short in more; their cells are judged all the same.
NEWEST = {"adk": ("google-adk", "2.13")}


def pytest_generate_tests(metafunc):
    parametrize(metafunc, HOSTS)


def newest(host):
    package, least = NEWEST.get(host.name.split()[0], (None, None))
    return package is None or host.versions[package].startswith(least)


def test_the_declared_cells_are_these():
    assert {host.name: sorted(host.declared) for host in HOSTS if newest(host)} == {
        host.name: sorted(DECLARED[host.name]) for host in HOSTS if newest(host)
    }


DOCS = Path(__file__).parents[2] / "docs"
PLAYED = json.loads((DOCS / "conformance.json").read_text(encoding="utf-8"))


def test_the_pages_are_what_was_played():
    """Anything else was written by hand: run `nox -s matrix`."""
    for name, made in pages(PLAYED, DOCS).items():
        assert (DOCS / name).read_text(encoding="utf-8") == made, name


def test_what_was_played_are_these_scenarios():
    """A scenario was changed since: run `nox -s matrix`."""
    assert PLAYED["digest"] == digest(PLAYED["environments"])


def test_what_was_played_is_right():
    cells = [
        (one["python"], host, scenario, cell["findings"])
        for one in PLAYED["environments"]
        for host, played in one["hosts"].items()
        for scenario, cell in played.items()
        if cell["status"] == "wrong"
    ]
    assert cells == []
    assert {host for one in PLAYED["environments"] for host in one["hosts"]} == set(DECLARED)


def age(environment):
    versions = environment["versions"]
    main = next(versions[name] for name in ("google-adk", "deepagents", "langgraph") if name in versions)
    return [int(part) for part in main.split(".") if part.isdigit()]


def test_what_was_played_is_what_is_declared():
    """The newest versions in the matrix have the declared cells that the tests pin."""
    last = {}
    for one in sorted(PLAYED["environments"], key=age):
        last.update(one["hosts"])
    assert {
        host: sorted(name for name, cell in cells.items() if cell["status"] == "declared")
        for host, cells in last.items()
    } == {host: sorted(names) for host, names in DECLARED.items()}
