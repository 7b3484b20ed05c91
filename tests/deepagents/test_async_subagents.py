"""Async subagents run on a server: their tools are calls like any other, and nothing is made up about the run."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from byline_langgraph.scripted import Say
from deepkit import Play, deep

RUN = {
    "run_id": "run-1",
    "thread_id": "thread-1",
    "assistant_id": "remote",
    "status": "success",
    "metadata": {},
}
THREAD = {
    "thread_id": "thread-1",
    "status": "idle",
    "metadata": {},
    "values": {"messages": [{"type": "ai", "content": "remote words"}]},
    "interrupts": {},
}


class Server(BaseHTTPRequestHandler):
    """As much of an Agent Protocol server as the tools ask for."""

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.dumps(RUN if "/runs" in self.path else THREAD).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer  # noqa: N815

    def log_message(self, *_):
        pass


@pytest.fixture
def url():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_they_are_tool_calls(url):
    remote = {"name": "remote", "description": "Works elsewhere.", "graph_id": "remote", "url": url}
    start = ("call_A", "start_async_task", {"description": "do it", "subagent_type": "remote"})
    check = ("call_B", "check_async_task", {"task_id": "thread-1"})
    lines = (
        Play(deep(Say("go", calls=[start]), Say("well?", calls=[check]), "done", subagents=[remote]))
        .run()
        .lines
    )
    assert [line for line in lines if " opens " in line] == []
    started = next(line for line in lines if "hears call_A" in line)
    assert "thread-1" in started
    checked = next(line for line in lines if "hears call_B" in line)
    assert "remote words" in checked
    assert lines[-2:] == ["main says m3: 'done'", "end"]
