"""Serves agents over A2A on loopback, for tests of what hears them."""

import asyncio
import socket
from contextlib import asynccontextmanager

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.tasks import TaskUpdater
from a2a.types import AgentCapabilities, Task
from adk_kit import SSE
from google.adk.a2a import _compat as wire
from google.adk.a2a.converters.request_converter import convert_a2a_request_to_agent_run_request
from google.adk.a2a.executor.a2a_agent_executor import A2aAgentExecutor
from google.adk.a2a.executor.config import A2aAgentExecutorConfig
from google.adk.a2a.utils.agent_card_builder import AgentCardBuilder
from google.adk.a2a.utils.agent_to_a2a import to_a2a
from google.adk.agents.remote_a2a_agent import RemoteA2aAgent

__all__ = ["Guide", "RemoteA2aAgent", "served"]


def in_pieces(context, part_converter):
    request = convert_a2a_request_to_agent_run_request(context, part_converter)
    request.run_config.streaming_mode = SSE.streaming_mode
    return request


@asynccontextmanager
async def served(target, executor=None, *, streams=False):
    """Serve an agent over A2A; yields what makes an agent of it here."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = A2aAgentExecutorConfig(request_converter=in_pieces) if streams else None
    url = f"http://127.0.0.1:{port}/"
    card = AgentCardBuilder(agent=target, rpc_url=url, capabilities=AgentCapabilities(streaming=True))
    app = to_a2a(
        target,
        host="127.0.0.1",
        port=port,
        agent_card=await card.build(),
        agent_executor_factory=executor or (lambda runner: A2aAgentExecutor(runner=runner, config=config)),
    )
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="critical"))
    running = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    made = []

    def remote(**options):
        where = f"{url}.well-known/agent-card.json"
        made.append(RemoteA2aAgent(name="expert", description="knows", agent_card=where, **options))
        return made[-1]

    try:
        yield remote
    finally:
        for one in made:
            await one.cleanup()
        server.should_exit = True
        await running


class Guide(AgentExecutor):
    """An A2A agent that knows nothing of ADK."""

    async def execute(self, context, event_queue):
        if not context.current_task:
            status = wire.make_task_status(wire.TS_SUBMITTED)
            task = Task(id=context.task_id, status=status, context_id=context.context_id)
            await event_queue.enqueue_event(task)
        task = TaskUpdater(event_queue, context.task_id, context.context_id)
        await task.start_work(self._says(task, "searching"))
        if not any("Seoul" in part.text for part in context.message.parts):
            await task.requires_input(self._says(task, "Which city?"))
            return
        await task.add_artifact([wire.make_text_part("the palace")], last_chunk=True)
        await task.complete()

    def _says(self, task, text):
        return task.new_agent_message([wire.make_text_part(text)])

    async def cancel(self, context, event_queue):
        raise NotImplementedError
