"""The suite on every host of ours whose framework is installed."""

import importlib
import importlib.util

from byline.hooks import Plugins
from byline.testing import find_hosts
from byline.testing.test_conformance import (
    parametrize,
    test_a_declared_cell_is_reproduced,
    test_no_overrides_without_a_reason,
    test_nothing_is_missing,
    test_scenario,
    test_the_official_client_agrees,
)

__all__ = [
    "test_a_declared_cell_is_reproduced",
    "test_no_overrides_without_a_reason",
    "test_nothing_is_missing",
    "test_scenario",
    "test_the_official_client_agrees",
]

# Without an installation there are no entry points, and the adapters have to be brought.
OURS = {"langgraph": "langgraph", "deepagents": "deepagents", "adk": "google.adk"}


def _found(module):
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def hosts():
    known = Plugins().names
    plugins = [
        importlib.import_module(f"byline_{name}._plugin")
        for name, framework in OURS.items()
        if name not in known and _found(framework) and _found(f"byline_{name}")
    ]
    return find_hosts(plugins=plugins)


HOSTS = hosts()

# What is not as the scenarios say, on the newest versions.  A new entry is a decision, and so is one that goes.
ADK = ["a-tool-that-calls-a-model", "usage-of-two-providers"]
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
        "a-fatal-failure",
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
