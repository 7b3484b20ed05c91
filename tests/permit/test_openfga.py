"""An OpenFGA server as a decider: the real client against a server that answers its check endpoint, on loopback."""

import asyncio
import json
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from byline.errors import InputError
from byline.grants import (
    AccessRequest,
    Attempt,
    DecisionFailedError,
    DecisionTimedOutError,
    DeniedError,
    Grants,
    Resource,
)

pytest.importorskip("openfga_sdk", reason="needs an extra: pip install 'byline[openfga]'")

from byline.deciders import OpenFgaDecider

SECRET = b"0123456789abcdef0123456789abcdef"
STORE = "01HXXXXXXXXXXXXXXXXXXXXXXX"
MODEL = "01HYYYYYYYYYYYYYYYYYYYYYYY"
TUPLES = {("user:ann", "can_use", "model:small"), ("user:ann", "can_use", "tool:search")}


class Server(ThreadingHTTPServer):
    """Answers `POST /stores/{store}/check` as an OpenFGA server does."""

    daemon_threads = True

    def __init__(self):
        self.asked, self.answer, self.slow = [], None, 0.0
        super().__init__(("127.0.0.1", 0), Check)
        self.url = f"http://127.0.0.1:{self.server_port}"


class Check(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, body))
        time.sleep(self.server.slow)
        key = body["tuple_key"]
        known = (key["user"], key["relation"], key["object"]) in TUPLES
        status, answer = self.server.answer or (200, {"allowed": known, "resolution": ""})
        raw = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        with suppress(ConnectionError):  # whoever asked has gone away
            self.wfile.write(raw)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def server():
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(server, user, kind, name, **options):
    request = AccessRequest(user, Resource(kind, name), "r", "boss", "t", "chat")
    return asyncio.run(OpenFgaDecider(server.url, STORE, model_id=MODEL, **options).can_use(request))


def issue(server, *resources, limit=2.0):
    service = Grants(SECRET, OpenFgaDecider(server.url, STORE, limit=limit), limit=30)
    return asyncio.run(service.issue(Attempt("ann", "r", "boss", "t", "chat", frozenset(resources))))


def test_the_server_is_asked_for_the_relation_with_the_context_of_the_run(server):
    assert ask(server, "ann", "tool", "search") is True
    [(path, body)] = server.asked
    assert path == f"/stores/{STORE}/check"
    assert body == {
        "tuple_key": {"user": "user:ann", "relation": "can_use", "object": "tool:search"},
        "authorization_model_id": MODEL,
        "context": {"run": "r", "parentAgent": "boss", "thread": "t", "mode": "chat"},
    }


@pytest.mark.parametrize(
    ("user", "kind", "name", "asked"),
    [
        ("bob", "tool", "search", ("user:bob", "tool:search")),
        ("*", "tool", "search", ("user:%2A", "tool:search")),
        ("group:x#member", "tool", "search", ("user:group%3Ax%23member", "tool:search")),
        ("ann", "skill", "/skills/pdf", ("user:ann", "skill:%2Fskills%2Fpdf")),
        ("앤", "subagent", "a b", ("user:%EC%95%A4", "subagent:a%20b")),
        ("\ud83d", "tool", "%73earch", ("user:%ED%A0%BD", "tool:%2573earch")),
    ],
)
def test_a_name_is_a_name_and_nothing_else(server, user, kind, name, asked):
    assert ask(server, user, kind, name) is False
    [(_, body)] = server.asked
    assert (body["tuple_key"]["user"], body["tuple_key"]["object"]) == asked


def test_another_relation_may_be_asked_for(server):
    assert ask(server, "ann", "tool", "search", relation="can_view") is False
    assert server.asked[0][1]["tuple_key"]["relation"] == "can_view"


def test_a_grant_is_made_of_its_answers(server):
    assert issue(server, Resource("model", "small"), Resource("tool", "search"))
    with pytest.raises(DeniedError) as raised:
        issue(server, Resource("model", "small"), Resource("tool", "shell"))
    assert raised.value.resources == (Resource("tool", "shell"),)


def test_it_has_a_time_limit_of_its_own_and_leaves_nothing_behind(server):
    server.slow = 0.6
    service = Grants(SECRET, OpenFgaDecider(server.url, STORE, limit=0.1), limit=30)
    begun = time.monotonic()
    attempt = Attempt("ann", "r", "boss", "t", "chat", frozenset({Resource("tool", "search")}))
    with pytest.raises(DecisionTimedOutError, match=r"OpenFGA did not answer within 0\.1 s"):
        asyncio.run(service.issue(attempt))
    assert time.monotonic() - begun < 5
    assert service.undecided == 0


def test_a_retried_answer_is_held_to_the_same_limit(server):
    server.answer = (429, {"code": "rate_limit_exceeded", "message": "later"})
    with pytest.raises(DecisionTimedOutError):
        issue(server, Resource("tool", "search"), limit=0.05)


@pytest.mark.parametrize(
    "answer",
    [
        (400, {"code": "validation_error", "message": "relation 'can_use' not found"}),
        (401, {"code": "unauthenticated", "message": "no"}),
        (404, {"code": "store_id_not_found", "message": "no store"}),
    ],
)
def test_an_answer_that_is_neither_yes_nor_no_permits_nothing(server, answer):
    server.answer = answer
    with pytest.raises(DecisionFailedError):
        issue(server, Resource("tool", "search"))


@pytest.mark.parametrize("answer", [{}, {"allowed": None}, {"allowed": False}])
def test_an_answer_without_a_yes_is_no_permission(server, answer):
    server.answer = (200, answer)
    with pytest.raises(DeniedError):
        issue(server, Resource("tool", "search"))


def test_a_server_that_is_not_there_permits_nothing(server):
    server.url = "http://127.0.0.1:9"
    with pytest.raises((DecisionFailedError, DecisionTimedOutError)):
        issue(server, Resource("tool", "search"))


@pytest.mark.parametrize(
    ("url", "store", "limit"),
    [("no url", STORE, 1.0), ("http://h", "no ulid", 1.0), ("http://h", STORE, 0.0)],
)
def test_what_cannot_be_used_is_refused_at_once(url, store, limit):
    with pytest.raises(InputError):
        OpenFgaDecider(url, store, limit=limit)
