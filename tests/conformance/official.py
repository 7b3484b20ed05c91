"""The official bridges as hosts: the same native apps, in the hands of ag-ui-langgraph and ag-ui-adk."""

import importlib.util
import json
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version


def found(module):
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


class Official:
    """A host of ours with the official bridge in the place of byline."""

    results = False  # ends without a result are not held against it

    def __init__(self, ours):
        self.ours = ours
        self.name, self.forms, self.fork = ours.name, ours.forms, ours.fork
        self.versions = {**ours.versions, self.package: version(self.package)}

    def __getattr__(self, name):
        return getattr(self.ours, name)

    @property
    def declared(self):
        """Where the framework does something else, that is asked of the bridge too."""
        return {name: replace(one, reproduce=None) for name, one in self.ours.declared.items()}

    def contract(self, agent):
        """The bridges tell no contract, and none is asked of them."""

    def answer(self, content):
        """Take the words out of a result that was written as JSON."""
        with suppress(ValueError):
            content = json.loads(content) if isinstance(content, str) and content.startswith("{") else content
        return self.ours.answer(content)


class Stage:
    def __init__(self, run, log, request):
        self.run, self.log, self.request = run, log, request

    def requests(self):
        return [self.request(*entry) for entry in self.log]


class OfficialLangGraph(Official):
    package = "ag-ui-langgraph"

    def build(self, scenario):
        from ag_ui_langgraph import LangGraphAgent

        graph, log = self.ours.graph(scenario)
        # What its documentation offers for the whole surface: attributed, with interrupts as an outcome.
        bridge = LangGraphAgent(
            name="main",
            graph=graph,
            subagent_visibility="attributed",
            emit_interrupt_outcome=True,
            emit_raw_events=False,
        )
        return Stage(lambda run_input: bridge.clone().run(run_input), log, self.ours.request)


class OfficialAdk(Official):
    package = "ag-ui-adk"

    def build(self, scenario):
        from ag_ui_adk import ADKAgent

        log = []
        root = self.ours.root(scenario, log)
        bridge = ADKAgent(adk_agent=root, app_name="team", user_id="user", use_in_memory_services=True)
        return Stage(bridge.run, log, lambda agent, request: self.ours.request(agent, request, scenario))


def official_hosts(hosts):
    """Return the official bridges for those of our hosts whose framework they serve."""
    bridges = []
    for host in hosts:
        if host.name.startswith(("langgraph", "deepagents")) and found("ag_ui_langgraph"):
            bridges.append(OfficialLangGraph(host))
        if host.name.startswith("adk") and found("ag_ui_adk"):
            bridges.append(OfficialAdk(host))
    return bridges
