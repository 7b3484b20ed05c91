"""The demo does the main job: run, show, write, and the file passes the judge and tells who did what."""

import json

from byline.cli import main
from byline.ledger import Ledger
from click.testing import CliRunner


def test_the_demo_runs_a_team_writes_its_stream_and_the_judge_accepts_it(tmp_path):
    file = tmp_path / "run.jsonl"
    ran = CliRunner().invoke(main, ["demo", "langgraph", "--pause", "0", "-o", str(file)])
    assert (ran.exit_code, ran.exception) == (0, None)
    checked = CliRunner().invoke(main, ["check", "--fail-on", "warning", str(file)])
    assert checked.exit_code == 0, checked.output

    ledger = Ledger.read(file.read_text().splitlines())
    assert ledger.refusals == ()
    assert [
        (branch.depth, branch.invocation.name, branch.invocation.status, len(branch.invocation.segments))
        for branch in ledger.tree()
    ] == [(0, "researcher", "finished", 1), (1, "archivist", "finished", 1), (0, "publisher", "finished", 2)]
    assert {
        branch.invocation.name: [text.text for text in branch.work.texts] for branch in ledger.tree()
    } == {
        "researcher": ["researcher: lightning, in 1911; the keeper's log confirms it."],
        "archivist": ["archivist: the log of 1911 says it was struck by lightning."],
        "publisher": ["publisher: this one needs a yes.", "publisher: it is out."],
    }
    publisher = next(one for one in ledger.invocations if one.name == "publisher")
    assert [(call.name, call.arguments, call.answer.content) for call in ledger.work(publisher.id).calls] == [
        ("publish", '{"headline": "Struck by lightning"}', "published (approved)")
    ]
    assert [run.status for run in ledger.runs] == ["interrupted", "finished"]
    assert [(call.name, call.answer.content) for call in ledger.work(None).calls] == [
        ("ask_researcher", "researcher: lightning, in 1911; the keeper's log confirms it."),
        ("ask_publisher", "publisher: it is out."),
    ]


def test_the_picture_shows_who_did_what(tmp_path):
    file = tmp_path / "run.jsonl"
    ran = CliRunner().invoke(main, ["demo", "--pause", "0", "-o", str(file)], env={"COLUMNS": "200"})
    assert ran.output.splitlines()[:5] == [
        "langgraph: an editor with two parallel subagents: one delegates further, one asks for approval",
        "✓ parent agent  finished  editor: the lighthouse was struck by lightning in 1911, and the story is out.",
        "├── ✓ researcher  finished  researcher: lightning, in 1911; the keeper's log confirms it.",
        "│   └── ✓ archivist  finished  archivist: the log of 1911 says it was struck by lightning.",
        "└── ✓ publisher  finished  publisher: it is out.",
    ]
    assert ran.output.splitlines()[-2:] == [f"  byline check {file}", f"  byline tree {file}"]


def test_a_demo_that_there_is_not_and_a_file_that_cannot_be_written(tmp_path):
    unknown = CliRunner().invoke(main, ["demo", "nothing"])
    there_are = (
        unknown.output.removeprefix("Error: there is no demo 'nothing'; there are ").strip().split(", ")
    )
    assert (unknown.exit_code, "langgraph" in there_are) == (1, True)
    bad = tmp_path / "no" / "run.jsonl"
    refused = CliRunner().invoke(main, ["demo", "-o", str(bad)])
    assert (refused.exit_code, refused.output) == (
        1,
        f"Error: cannot write {bad}: No such file or directory; choose another file with -o\n",
    )


def test_every_line_of_the_recording_is_an_event_with_a_timestamp(tmp_path):
    file = tmp_path / "run.jsonl"
    CliRunner().invoke(main, ["demo", "--pause", "0", "-o", str(file)])
    stamps = [json.loads(line)["timestamp"] for line in file.read_text().splitlines()]
    assert stamps == sorted(stamps)
