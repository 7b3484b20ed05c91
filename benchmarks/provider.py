"""A model provider on loopback that speaks OpenAI's chat API and always says the same: for benchmarks with a real client.

    python benchmarks/provider.py WORDS

Prints the port.  Who offers tools and has had no answer yet is told to call the first of them for `a` and for `b`, everybody
else gets so many words; streamed or whole, as asked.
"""

import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMMON = {"id": "x", "created": 0, "model": "scripted"}


def choices(request: dict[str, Any]) -> tuple[list[dict[str, Any]], str]:
    """Return the pieces of the answer, and why it ends."""
    if request.get("tools") and request["messages"][-1]["role"] != "tool":
        name = request["tools"][0]["function"]["name"]
        calls = [
            {
                "index": index,
                "id": f"call_{of}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps({"name": of})},
            }
            for index, of in enumerate("ab")
        ]
        return [{"role": "assistant", "content": None, "tool_calls": calls}], "tool_calls"
    words = [{"content": "word" if not number else " word"} for number in range(int(sys.argv[1]))]
    return [{"role": "assistant", "content": ""}, *words], "stop"


class Provider(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer one request."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        pieces, why = choices(request)
        body = b"".join(streamed(pieces, why)) if request.get("stream") else whole(pieces, why)
        self.send_response(200)
        kind = "text/event-stream" if request.get("stream") else "application/json"
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def streamed(pieces: list[dict[str, Any]], why: str) -> Iterator[bytes]:
    for piece in [*pieces, {}]:
        choice = {"index": 0, "delta": piece, "finish_reason": None if piece else why}
        event = {**COMMON, "object": "chat.completion.chunk", "choices": [choice]}
        yield f"data: {json.dumps(event)}\n\n".encode()
    yield b"data: [DONE]\n\n"


def whole(pieces: list[dict[str, Any]], why: str) -> bytes:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": "".join(piece.get("content") or "" for piece in pieces) or None,
    }
    calls = [call for piece in pieces for call in piece.get("tool_calls", ())]
    if calls:
        message["tool_calls"] = [{k: v for k, v in call.items() if k != "index"} for call in calls]
    choice = {"index": 0, "message": message, "finish_reason": why}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return json.dumps({**COMMON, "object": "chat.completion", "choices": [choice], "usage": usage}).encode()


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    print(server.server_port, flush=True)
    server.serve_forever()
