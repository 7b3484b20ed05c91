"""Recording a deep agent: the `task` tool's subagents, isolated and forked, with their contracts."""

from pathlib import Path

import pytest
from byline import record
from recording_kit import events, faults, joined, told


@pytest.mark.filterwarnings("ignore:The feature `forked subagents` is in beta")
def test_a_deep_agent_and_its_two_kinds_of_subagents(tmp_path: Path):
    deepagents = pytest.importorskip("deepagents", reason="needs deepagents")
    from byline_langgraph.scripted import Say, ScriptedModel

    calls = [
        ("t1", "task", {"description": "look", "subagent_type": "looker"}),
        ("t2", "task", {"description": "go on", "subagent_type": "twin"}),
    ]
    agent = deepagents.create_deep_agent(
        model=ScriptedModel(
            script=[Say(calls=calls[:1]), Say(calls=calls[1:]), Say("all done")], requests=[]
        ),
        subagents=[
            {
                "name": "looker",
                "description": "looks",
                "system_prompt": "Look.",
                "model": ScriptedModel(script=[Say("looked")], requests=[]),
            },
            {
                "name": "twin",
                "description": "goes on",
                "system_prompt": "Go on.",
                "mode": "fork",
                "model": ScriptedModel(script=[Say("?"), Say("went on")], requests=[]),
            },
        ],
    )
    path = tmp_path / "run.jsonl"
    with record(path):
        out = agent.invoke({"messages": [("user", "hi")]}, {"configurable": {"thread_id": "t"}})
    assert out["messages"][-1].content == "all done"
    recorded = joined(events(path))
    contexts = {
        one["name"]: one["metadata"]["byline"]["context"]
        for one in recorded
        if one["type"] == "SUBAGENT_STARTED"
    }
    assert contexts == {"looker": "isolated", "twin": "fork"}
    assert told(recorded) == [
        "- RUN_STARTED t",
        "- TOOL_CALL_START t1 task",
        '- TOOL_CALL_ARGS {"description": "look", "subagent_type": "looker"}',
        "looker SUBAGENT_STARTED looker t1",
        "looker TEXT_MESSAGE_CONTENT looked",
        "looker SUBAGENT_FINISHED looked",
        "- TOOL_CALL_RESULT t1 looked",
        "- TOOL_CALL_START t2 task",
        '- TOOL_CALL_ARGS {"description": "go on", "subagent_type": "twin"}',
        "twin SUBAGENT_STARTED twin t2",
        "twin TEXT_MESSAGE_CONTENT went on",
        "twin SUBAGENT_FINISHED went on",
        "- TOOL_CALL_RESULT t2 went on",
        "- TEXT_MESSAGE_CONTENT all done",
        "- STATE_SNAPSHOT {'files': {}}",
        "- RUN_FINISHED success",
    ]
    assert faults(recorded) == []
