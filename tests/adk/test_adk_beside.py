"""`context` and `forwardedProps` of an input reach the app's tools and instructions through the session's state."""

import pytest
from adk_kit import agent, attribute, runner, user
from byline_adk.scripted import Say
from google.adk.tools import ToolContext

pytestmark = pytest.mark.anyio

CONTEXT = [{"description": "the page", "value": "/orders/7"}]


def seen_by(log):
    def look(tool_context: ToolContext) -> str:
        """Look."""
        state = tool_context.state
        log.append((state.get("_ag_ui_context"), state.get("_ag_ui_forwarded_props")))
        return "seen"

    return look


async def test_what_stands_beside_the_messages_is_in_the_state_and_the_client_does_not_get_it_back():
    log = []
    root = agent(
        "root",
        Say(calls=[("c1", "look", {})]),
        Say("one"),
        Say(calls=[("c2", "look", {})]),
        Say("two"),
        Say(calls=[("c3", "look", {})]),
        Say("three"),
        tools=[seen_by(log)],
    )
    app = attribute(runner(root))
    events = []
    for run, more in (
        ("r1", {"context": CONTEXT, "forwardedProps": {"tier": "gold"}}),
        ("r2", {"context": CONTEXT, "forwardedProps": {"tier": "basic"}}),
        ("r3", {"context": [], "forwardedProps": {}}),
    ):
        given = user("go", **more).model_copy(update={"run_id": run})
        events += [event async for event in app.run(given)]
    assert log == [(CONTEXT, {"tier": "gold"}), (CONTEXT, {"tier": "basic"}), ([], {})]
    assert [event.type for event in events if event.type.startswith("STATE")] == []
