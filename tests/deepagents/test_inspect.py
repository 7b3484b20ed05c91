"""`byline inspect`: what a team is made of, where each value was read, and what is worth changing."""

import json
from importlib.metadata import EntryPoint, version

import pytest
import teams
from byline.advice import advise
from byline.artifacts import Artifacts
from byline.cli import main
from byline.errors import InputError
from byline.hooks import hookimpl
from byline.inspection import describe
from byline.stores import open_store
from byline.team_view import Fact
from byline.user import as_user
from byline_deepagents import _compat, _inspect, _private
from byline_langgraph import _private as langgraph_private
from byline_langgraph import lookup_tool
from byline_langgraph.scripted import Say
from click.testing import CliRunner
from deepkit import Play, caching, deep, fork, sub, task
from kit import call, model
from langchain_core.tools import tool


@pytest.fixture(autouse=True)
def _adapters(monkeypatch):
    """Make the adapters known as an installation does."""

    def found(group):
        return [EntryPoint(name, f"byline_{name}._plugin", group) for name in ("langgraph", "deepagents")]

    monkeypatch.setattr("byline.hooks.entry_points", found)


def inspect(target, *options):
    done = CliRunner().invoke(main, ["inspect", target, *options])
    assert done.exit_code == 0, done.output
    return done.output


def view(team, name):
    return next(agent for agent, _ in team.root.walk() if agent.name == name)


def advice(team, **options):
    return [(one.level, one.rule, one.agent) for one in advise(describe(team, **options))]


# ------------------------------------------------------------------ the tree


def test_a_deep_agent():
    team = describe(teams.shop())
    assert (team.framework, team.version, team.gaps) == ("deepagents", version("deepagents"), ())
    assert [(one.name, one.kind, one.via, one.contract.get("context")) for one, _ in team.root.walk()] == [
        ("shop", "deep agent", None, None),
        ("general-purpose", "subagent", "task", "isolated"),
        ("reviewer", "subagent", "task", "isolated"),
        ("fixer", "subagent", "task", "fork"),
        ("counter", "compiled subagent", "task", "isolated"),
    ]
    shop, fixer = team.root, view(team, "fixer")
    assert shop.facts["skills"] == Fact(
        ["/skills/shop/"], "public", "SkillsMiddleware.sources", "sources, not names"
    )
    assert shop.facts["approvals"].value == {"send": ["approve", "edit", "reject", "respond"]}
    assert view(team, "reviewer").facts["approvals"].value == {"send": ["approve", "reject"]}
    assert "task" in shop.value("tools")
    assert fixer.value("tools") == shop.value("tools")  # a fork has its own `task`, which refuses
    assert fixer.members == ()
    assert fixer.facts["prompt"].value == "You run the shop."
    assert fixer.contract["leaf"] is True
    assert view(team, "counter").facts["tools"].value == ["send"]
    assert {"FilesystemMiddleware", "HumanInTheLoopMiddleware", "SkillsMiddleware"} <= set(
        shop.value("middleware")
    )


def test_a_deep_agent_inside_a_plain_graph():
    team = describe(teams.around())
    assert team.framework == "deepagents"
    assert [(one.name, one.kind) for one, _ in team.root.walk()][:3] == [
        ("around", "graph"),
        ("shop", "deep agent"),
        ("general-purpose", "subagent"),
    ]


def test_permissions():
    from deepagents.middleware.filesystem import FilesystemPermission

    limits = [FilesystemPermission(operations=["write"], paths=["/memories/**"], mode="allow")]
    team = describe(deep("done", subagents=[sub("keeper", "x", permissions=limits)]))
    fact = view(team, "keeper").facts["permissions"]
    assert fact.source == "private"
    assert fact.value[0]["paths"] == ["/memories/**"]
    assert "permissions" not in team.root.facts


def test_an_async_subagent_is_opaque_and_says_why():
    team = describe(teams.beside())
    remote = view(team, "remote")
    assert (remote.kind, remote.via) == ("async subagent", "start_async_task")
    assert remote.facts["nodes"].source == "opaque"
    assert remote.facts["nodes"].reason == "graph 'remote' at http://127.0.0.1:1 runs by itself"


def test_every_agent_once_as_mermaid():
    assert inspect("teams:shop()", "--format", "mermaid").splitlines() == [
        "flowchart TD",
        '  a0["shop<br/>deep agent<br/>ScriptedModel:scripted"]',
        '  a1["general-purpose<br/>subagent<br/>ScriptedModel:scripted"]',
        '  a0 -- "task isolated" --> a1',
        '  a2["reviewer<br/>subagent<br/>ScriptedModel:scripted"]',
        '  a0 -- "task isolated" --> a2',
        '  a3["fixer<br/>subagent<br/>ScriptedModel:scripted"]',
        '  a0 -- "task fork" --> a3',
        '  a4["counter<br/>compiled subagent<br/>ScriptedModel:scripted"]',
        '  a0 -- "task isolated" --> a4',
    ]


def test_names_cannot_break_out_of_a_diagram_or_a_line(monkeypatch):
    bad = deep("done", name="main", subagents=[sub('x"]; click a0 "javascript:alert(1)"\n<script>', "x")])
    monkeypatch.setattr(teams, "bad", bad, raising=False)
    drawn = inspect("teams:bad", "--format", "mermaid")
    assert "<script>" not in drawn
    assert 'x"]' not in drawn
    assert "javascript:alert(1)#34; #60;script#62;" in drawn
    assert "\\n" not in inspect("teams:bad").split("description")[1].splitlines()[0]


def test_as_json():
    told = json.loads(inspect("teams:loose()", "--format", "json"))
    assert told["team"]["name"] == "loose"
    assert {one["name"]: one["contract"]["mode"] for one in told["team"]["members"]} == {
        "general-purpose": "isolated",
        "own_prompt": "fork",
        "own_tools": "fork",
        "own_model": "fork",
        "built": "fork",
        "good": "fork",
    }
    assert {fact["source"] for one in told["team"]["members"] for fact in one["facts"].values()} <= {
        "public",
        "private",
        "declared",
        "opaque",
    }


# ------------------------------------------------------------- private paths


@pytest.mark.parametrize("path", _private.PATHS)
def test_every_private_path_of_deepagents_is_there(path):
    graph = teams.beside()
    tools = graph.nodes["tools"].bound.tools_by_name
    start = tools["task"] if '"task"' in path else tools["start_async_task"] if "async" in path else None
    if start is None:
        reached = _inspect.Inspector().middleware(graph)
        start = next(one for one in reached if type(one).__name__ == "FilesystemMiddleware")
    found = _private.read(path, start)
    assert path == _private.PERMISSIONS or set(found) >= ({"remote"} if "async" in path else {"good"})


def test_a_private_path_that_is_gone_leaves_the_public_facts_and_is_named(monkeypatch):
    gone = 'nodes["model"].bound.func: cell system_message'

    def missing(_graph):
        raise KeyError

    monkeypatch.setitem(langgraph_private.PATHS, gone, missing)
    monkeypatch.setattr(_private, "PATHS", {**_private.PATHS, _private.SPECS: missing})
    team = describe(teams.shop())
    assert team.gaps == (gone, _private.SPECS)
    assert team.root.facts["prompt"].source == "opaque"
    # What is forked can still be told by the description of `task`.
    assert [(one.name, one.contract["context"]) for one in team.root.members] == [
        ("general-purpose", "isolated"),
        ("reviewer", "isolated"),
        ("fixer", "fork"),
        ("counter", "isolated"),
    ]
    assert [(one.rule, one.message) for one in advise(team)][:2] == [
        ("path-missing", f"cannot read {gone}"),
        ("path-missing", f"cannot read {_private.SPECS}"),
    ]


def test_the_supported_versions_are_said_in_one_place():
    assert _compat.supported()
    assert _compat.has("fork")


# -------------------------------------------------------------------- advice


def test_forks_that_lose_the_cache():
    assert advice(teams.loose()) == [
        ("warning", "fork-own-prompt", "own_prompt"),
        ("warning", "fork-own-tools", "own_tools"),
        ("warning", "fork-own-model", "own_model"),
        ("warning", "compiled-fork", "built"),
    ]


def test_a_fork_beside_an_async_subagent():
    assert advice(teams.beside()) == [("warning", "async-beside-fork", "good")]


def test_roles_that_were_declared():
    roles = {
        "judge": "verifier",
        "scout": "researcher",
        "digger": "researcher",
        "mason": "worker",
        "keeper": "memory",
    }
    assert advice(teams.roles(), roles=roles) == [
        ("warning", "verifier-forks", "judge"),
        ("warning", "researchers-fork", "scout"),
        ("warning", "researchers-fork", "digger"),
        ("info", "worker-isolated", "mason"),
        ("warning", "memory-isolated", "keeper"),
        ("warning", "memory-unlimited", "keeper"),
    ]


def test_roles_that_are_guessed_are_no_more_than_notes():
    team = deep("done", subagents=[fork("reviewer", "x"), sub("bob", "x")])
    assert advice(team) == [("info", "role-guessed", "reviewer"), ("info", "verifier-forks", "reviewer")]


def test_roles_that_a_plugin_knows():
    class Roles:
        @hookimpl
        def byline_role(self, agent):
            return "verifier" if agent.name == "judge" else None

    team = describe(teams.roles(), plugins=[Roles()])
    assert view(team, "judge").role == Fact("verifier", "declared", "byline_role")
    assert ("warning", "verifier-forks", "judge") in advice(teams.roles(), plugins=[Roles()])


@pytest.mark.parametrize(
    ("roles", "wrong"),
    [
        (
            {"judge": "boss"},
            "role 'boss' of 'judge' is unknown: expected one of worker, verifier, researcher, memory",
        ),
        (
            {"nobody": "worker"},
            "'nobody' was given a role and is not in the team: there are roles, general-purpose",
        ),
    ],
)
def test_roles_that_there_are_not(roles, wrong):
    with pytest.raises(InputError) as refused:
        describe(teams.roles(), roles=roles)
    assert str(refused.value).startswith(wrong)


@tool
def look(q: str) -> str:
    """Look."""
    return f"seen {q}"


def test_advice_from_a_recording(tmp_path, monkeypatch):
    looking = Say("looking", calls=[call("call_L", "look", "the file")])
    cache = []
    spec = {"description": "d", "tools": [look]}
    subagents = [
        {
            "name": "mason",
            "model": caching(cache, looking, "mason done"),
            "system_prompt": "You are mason.",
            **spec,
        },
        {
            "name": "special",
            "model": caching(cache, "no", "no", "special done"),
            "mode": "fork",
            "system_prompt": "S.",
            **spec,
        },
    ]
    boss = caching(
        cache,
        looking,
        Say("go", calls=[task("call_A", "mason")]),
        Say("on", calls=[task("call_B", "special")]),
        "done",
    )
    team = deep(boss, name="main", tools=[look], subagents=subagents, system_prompt="You run it.")
    monkeypatch.setattr(teams, "recorded", team, raising=False)
    trace = Play(team).run()
    assert trace.lines[-1].startswith("end")
    recording = tmp_path / "run.jsonl"
    recording.write_text("\n".join(event.model_dump_json(by_alias=True) for event in trace.events))
    told = json.loads(inspect("teams:recorded", "--format", "json", "--run", str(recording)))["advice"]
    measured = {one["rule"]: (one["agent"], one["message"]) for one in told if one["measured"]}
    assert measured["worker-isolated"] == (
        "mason",
        "it repeated 1 calls that its parent had made with the same arguments: look",
    )
    agent, message = measured["fork-own-prompt"]
    assert agent == "special"
    assert message.startswith("in 1 of 1 invocations the parent's prefix ended at the system; ")
    assert "from the recording:" in inspect("teams:recorded", "--run", str(recording))


def test_what_the_parent_was_told_is_read_in_the_store(tmp_path, monkeypatch):
    pytest.importorskip("sqlalchemy", reason="a durable store needs SQLAlchemy: pip install 'byline[store]'")
    result = '<artifact title="Q3">all of it</artifact>'
    url = f"sqlite:///{tmp_path / 'byline.db'}"
    with open_store(url) as store:
        artifacts = Artifacts(store.artifacts)
        boss = model(Say(calls=[task("c1", "writer")]), "done")
        team = deep(boss, name="main", tools=[lookup_tool(artifacts)], subagents=[sub("writer", result)])
        monkeypatch.setattr(teams, "recorded", team, raising=False)
        with as_user("ann"):
            trace = Play(team, artifacts=artifacts).run()
        (id_,) = store.artifacts.ids(trace.events[0].thread_id, "ann")
    recording = tmp_path / "run.jsonl"
    recording.write_text("\n".join(event.model_dump_json(by_alias=True) for event in trace.events))

    def point(*options):
        arguments = ["teams:recorded", "--format", "json", "--run", str(recording), *options]
        told = json.loads(inspect(*arguments))["complete"][4]
        shown = trace.names.rename(told["evidence"])
        return told["holds"], shown.replace(id_, "ID").partition("; ")[2]

    assert point() == (None, "what the parent was told is in the store: give --artifacts")
    assert point("--artifacts", url, "--user", "ann") == (True, "placeholders sent: 1 of ID")
    holds, evidence = point("--artifacts", url)
    assert (holds, evidence.partition(": ")[0]) == (None, "not kept for user ''")
    nowhere = f"sqlite:///{tmp_path / 'none.db'}"
    options = ["--run", str(recording), "--artifacts", nowhere]
    done = CliRunner().invoke(main, ["inspect", "teams:recorded", *options])
    assert (done.exit_code, f"there is no store {nowhere}" in done.output) == (1, True)
    assert not (tmp_path / "none.db").exists()


# ----------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        (["teams"], "'teams' names no target: expected MODULE:TARGET"),
        (
            ["no_such_module:team"],
            "there is no module 'no_such_module': run this in the folder that holds it, or install it",
        ),
        (["teams:nobody"], "module 'teams' has no 'nobody'"),
        (["teams:REMOTE"], "no adapter takes builtins.dict"),
        (["teams:shop()", "--role", "fixer"], "'fixer' declares no role: expected NAME=ROLE"),
        (["teams:shop()", "--role", "fixer=boss"], "role 'boss' of 'fixer' is unknown"),
        (["teams:shop()", "--run", "no-such-file.jsonl"], "no-such-file.jsonl"),
    ],
)
def test_what_cannot_be_inspected(arguments, wrong):
    done = CliRunner().invoke(main, ["inspect", *arguments])
    assert done.exit_code != 0
    assert wrong in done.output
    assert "Traceback" not in done.output
