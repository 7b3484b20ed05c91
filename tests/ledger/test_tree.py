"""`byline tree`, from the file to the terminal."""

import gzip
import json
from pathlib import Path

import pytest
from byline.cli import main
from click.testing import CliRunner

DATA = Path(__file__).parent.parent / "data" / "ledger"


def tree(*arguments, **more):
    return CliRunner().invoke(main, ["tree", *map(str, arguments)], env={"COLUMNS": "80"}, **more)


def wire(*events):
    return "".join(json.dumps(event) + "\n" for event in events)


START = {"type": "RUN_STARTED", "threadId": "t", "runId": "r1", "protocolVersion": "1.0"}
FINISH = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r1"}


def test_a_delegation():
    shown = tree(DATA / "delegation.jsonl")
    assert shown.exit_code == 0
    assert shown.output.splitlines() == [
        "run r1 finished, 47 ms; p/x 30 in, 3 out",
        "the parent agent - 2 texts, 2 calls, 1 step",
        "│  “I ask two researchers.”",
        "├─ researcher ulm finished, 30 ms - 1 thought, 1 call, 1 activity, 1 step, 1 state change",
        "│  └─ atlas finished, 4 ms - 1 text",
        "│        “48.4 N”",
        "└─ researcher linz finished, 25 ms - 1 text, 1 custom event, 1 raw event",
        "      “On the Danube.”",
    ]


def test_how_invocations_end():
    assert tree(DATA / "failures.jsonl").output.splitlines() == [
        "run r1 failed: out of memory; x 1 in, ? out",
        "run r2 cancelled",
        "the parent agent",
        "├─ one failed",
        "│     why: the site is down (http_503)",
        "├─ two cancelled",
        "│     why: cut off (cancelled)",
        "├─ three failed",
        "│     why: its question was swallowed (interrupt_lost)",
        "└─ four abandoned - 1 text, 2 steps",
        "      “half a sentence”",
    ]


def test_what_was_never_announced_and_what_is_waited_for():
    assert tree(DATA / "unannounced.jsonl").output.splitlines() == [
        "run r1 interrupted",
        "the parent agent",
        "├─ (no name) a never announced - 1 text, 1 call",
        "│     “one two”",
        "├─ (no name) b never announced - 1 text, 1 state change",
        "│     “eins zwei”",
        "├─ (no name)  never announced - 1 step",
        "└─ (no name) c never announced",
        "waiting: c: x",
    ]


def test_long_words_are_shortened_and_control_characters_shown():
    events = wire(
        START,
        {"type": "SUBAGENT_STARTED", "subagentRunId": "s\x1b]0;x\x07", "name": "[bold]\u202eevil\n"},
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "subagentRunId": "s\x1b]0;x\x07"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "\x1b[2J" + "many words " * 100},
        {"type": "TEXT_MESSAGE_END", "messageId": "m"},
        {"type": "SUBAGENT_ERROR", "subagentRunId": "s\x1b]0;x\x07", "message": "\r\x9bno"},
        FINISH,
    )
    assert tree("-", input=events).output.splitlines() == [
        "run r1 finished",
        "the parent agent",
        "└─ [bold]\\u202eevil\\n s\\x1b]0;x\\x07 failed - 1 text",
        "      why: \\r\\x9bno",
        "      “\\x1b[2Jmany words many words many words many words many words many words…",
    ]


def test_what_is_not_accepted_is_named_and_left_out():
    events = wire(
        START,
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "subagentRunId": "a"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "mine", "subagentRunId": "a"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": " yours", "subagentRunId": "b"},
        {"type": "TEXT_MESSAGE_END", "messageId": "m"},
    )
    events += "\n{not json\n" + wire(FINISH)
    shown = tree("-", input=events)
    assert shown.exit_code == 0
    assert shown.output.splitlines()[:6] == [
        "run r1 finished",
        "the parent agent",
        "└─ (no name) a never announced - 1 text",
        "      “mine”",
        "2 records not accepted",
        "  line 4, event 3: text-owner: text message 'm' belongs to subagent 'a'; the ev…",
    ]
    assert shown.output.splitlines()[6].startswith("  line 7, event 5: not-json: ")


def test_json():
    document = json.loads(tree("--json", DATA / "suspended-and-continued.jsonl").output)
    assert (document["events"], document["error"], document["refusals"]) == (18, None, [])
    assert [(one["id"], one["depth"], one["status"]) for one in document["invocations"]] == [
        ("clerk", 0, "finished"),
        ("teller", 1, "finished"),
    ]
    assert document["invocations"][1]["work"]["calls"] == [
        {
            "id": "c1",
            "name": "pay",
            "arguments": "",
            "message": "m1",
            "answer": {
                "message": "a1",
                "content": "paid",
                "owner": "teller",
                "at": {"event": 14, "timestamp": 5012},
            },
            "start": {"event": 6, "timestamp": 124},
            "end": {"event": 7, "timestamp": 125},
        }
    ]


def test_refusals_have_their_line_in_json():
    document = json.loads(tree("--json", "-", input="\n\nnope\n").output)
    assert [(one["event"], one["line"], one["rule"]) for one in document["refusals"]] == [(0, 3, "not-json")]


@pytest.mark.parametrize("form", ["gzip", "array", "sse"])
def test_other_forms_of_a_file(form, tmp_path):
    lines = (DATA / "delegation.jsonl").read_bytes().splitlines()
    content = {
        "gzip": gzip.compress(b"\n".join(lines)),
        "array": b"[" + b",\n".join(lines) + b"]",
        "sse": b"".join(b"data: " + line + b"\r\n\r\n" for line in lines),
    }[form]
    file = tmp_path / "run"
    file.write_bytes(content)
    assert tree(file).output == tree(DATA / "delegation.jsonl").output


def test_a_file_that_is_not_there():
    shown = tree("/nowhere/run.jsonl")
    assert shown.exit_code == 2
    assert "cannot open /nowhere/run.jsonl: No such file or directory" in shown.output


def test_an_empty_file_has_only_the_parent_agent():
    shown = tree("-", input="")
    assert (shown.exit_code, shown.output) == (0, "the parent agent\n")


def test_a_deep_tree_stays_readable():
    events = [START]
    for depth in range(2000):
        parent = {"parentSubagentRunId": f"s{depth - 1}"} if depth else {}
        events.append({"type": "SUBAGENT_STARTED", "subagentRunId": f"s{depth}", "name": "n", **parent})
    lines = tree("-", input=wire(*events)).output.splitlines()
    assert len(lines) == 2002
    assert lines[1001].strip() == "└─ … 999 deep: n s999 abandoned"
    assert max(map(len, lines)) < 80
