"""`byline inspect` on ADK: modes, tools, models, instructions, workflow nodes, and what will not run as written."""

from importlib.metadata import EntryPoint, version

import inspected
import pytest
from adk_kit import can
from byline.advice import advise
from byline.cli import main
from byline.inspection import describe
from byline_adk._plugin import AdkAdapter
from click.testing import CliRunner

APPROVES = "approvals true, " if can("approval") else ""  # before, neither yes nor no is true
LEAF = "" if can("nested_task") else ", leaf true"
SINGLE_TURN = (
    f"contract: mode single_turn, context isolated, interaction none, {APPROVES}returns automatic, "
    "concurrency parallel"
)
TASK = (
    "contract: mode task, context isolated, interaction clarify, approvals true, returns automatic, concurrency serial"
    + LEAF
)
CHAT = "contract: mode chat, context shared, interaction full, approvals true, returns manual, concurrency serial"
AGENT_TOOL = (
    "contract: mode agent_tool, context isolated, interaction none, approvals false, returns automatic, "
    "concurrency parallel"
)
INHERITED = "Gemini:gemini-2.5-flash  [public; not its own: from the agent above, or ADK's default]"


@pytest.fixture(autouse=True)
def _adapter(monkeypatch):
    """Make the adapter known as an installation does."""
    monkeypatch.setattr(
        "byline.hooks.entry_points", lambda group: [EntryPoint("adk", "byline_adk._plugin", group)]
    )


def inspect(target, *options):
    done = CliRunner().invoke(main, ["inspect", target, *options])
    assert done.exit_code == 0, done.output
    return done.output


def test_a_team_of_every_mode():
    output = inspect("inspected:team()")
    assert output.splitlines()[0] == f"adk {version('google-adk')}"
    assert output.split("\n\n")[0].splitlines()[1:] == [
        "root  (agent)",
        "│ description: runs the shop",
        "│ model: Gemini:gemini-2.5-flash  [public]",
        "│ prompt: You run the shop.  [public]",
        "│ tools: pay, expert, weather, booker  [public]",
        "│ middleware: before_model_callback  [public]",
        '│ approvals: {"pay": "always"}  [private]',
        "│ handoffs: desk, line  [public]",
        "├─ weather  (agent)  via tool weather",
        f"│    {SINGLE_TURN}",
        "│    model: Gemini:gemini-2.5-pro  [public]",
        "│    prompt: Look at {city}.  [public; names in braces are filled in from the session's state]",
        "│    tools: (none)  [public]",
        "├─ booker  (agent)  via tool booker",
        f"│    {TASK}",
        f"│    model: {INHERITED}",
        "│    prompt: [opaque: a function makes it anew for each request]",
        "│    tools: finish_task  [public]",
        "├─ desk  (agent)  via transfer_to_agent",
        f"│    {CHAT}",
        f"│    model: {INHERITED}",
        "│    prompt: (none)  [public]",
        "│    tools: (none)  [public]",
        "├─ line  (SequentialAgent)  via transfer_to_agent",
        "│  │ contract: mode workflow_agent, context shared",
        "│  │ nodes: first  [public]",
        "│  └─ first  (agent)  via sub_agents of SequentialAgent",
        "│       contract: mode workflow_agent, context shared, returns onward",
        f"│       model: {INHERITED}",
        "│       prompt: (none)  [public]",
        "│       tools: (none)  [public]",
        "└─ expert  (agent)  via AgentTool expert",
        f"     {AGENT_TOOL}",
        "     model: Gemini:gemini-2.5-pro  [public]",
        "     prompt: (none)  [public]",
        "     tools: (none)  [public]",
    ]


def test_a_workflow():
    assert inspect("inspected:flow()").split("\n\n")[0].splitlines()[1:] == [
        "flow  (Workflow)",
        "│ nodes: prepare, writer  [public]",
        "└─ writer  (agent)  via node writer",
        f"     contract: mode single_turn, context isolated, interaction none, {APPROVES}returns onward",
        "     model: Gemini:gemini-2.5-pro  [public]",
        "     prompt: (none)  [public]",
        "     tools: (none)  [public]",
    ]


def test_a_runner_and_an_app_show_their_plugins_but_not_ours():
    seen = [describe(target).root for target in (inspected.app(), inspected.runner())]
    assert [(one.name, one.facts["middleware"].value) for one in seen] == [("root", ["audit"])] * 2


def test_a_root_with_a_mode_is_named_with_the_cure():
    root = inspected.LlmAgent(name="root", model="gemini-2.5-flash", mode="single_turn")
    assert [one.to_json() for one in advise(AdkAdapter().describe(root))] == [
        {
            "rule": "mode-on-root",
            "level": "warning",
            "agent": "root",
            "message": "agent 'root' is the root and has mode='single_turn', which is for subagents",
            "cure": "leave mode out, and give it to the agents in sub_agents",
            "measured": False,
        }
    ]


@pytest.mark.parametrize(
    ("target", "told"),
    [
        (
            "inspected:task_under_sequential()",
            (
                (
                    "  warning  mode-without-caller  clerk: agent 'clerk' has mode='task' under SequentialAgent 'seq', which runs "
                    "it as if it had none"
                ),
                "      make it a node of a Workflow, or leave mode out",
            ),
        ),
        (
            "inspected:single_turn_under_sequential()",
            (
                (
                    "  warning  call-without-scheduler  boss: agent 'boss' delegates to 'helper' (mode='single_turn') inside "
                    "SequentialAgent 'seq', where ADK has…"
                ),
                "      use a Workflow in its place, or an LlmAgent as the root",
            ),
        ),
        (
            "inspected:task_after_transfer()",
            (
                (
                    "  warning  task-after-transfer  desk: agent 'desk' is reached by transfer and delegates the task 'clerk': ADK "
                    "fails when the call is made"
                ),
                "      give the task to the root, or make the caller a task as well",
            ),
        ),
    ],
)
def test_what_adk_accepts_and_drops_is_said_with_the_cure(target, told):
    lines = inspect(target).split("\nadvice:\n")[1].splitlines()
    assert (lines[0], lines[2]) == told
