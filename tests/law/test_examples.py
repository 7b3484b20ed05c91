"""Every rule against its own streams: what `tests/data/law` says must come out, and nothing else."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from byline.rules import RULES, levels
from byline.validator import Validator

DATA = Path(__file__).parent.parent / "data" / "law"
LEGAL = sorted(DATA.glob("*/legal-*.jsonl"))
ILLEGAL = sorted(DATA.glob("*/illegal-*.jsonl"))


def name(path):
    return f"{path.parent.name}/{path.stem}"


def findings(path, profile):
    judge = Validator(profile)
    found = [finding for line in path.read_bytes().splitlines() for finding in judge.feed(line)]
    return found + judge.finish()


def expected(path):
    return json.loads((path.parent / "expected.json").read_text())[path.name]


@pytest.mark.parametrize("path", LEGAL, ids=name)
@pytest.mark.parametrize("profile", ["producer", "consumer"])
def test_a_legal_stream_has_no_error_and_no_warning(path, profile):
    assert [one for one in findings(path, profile) if one.level != "info"] == []
    assert path.parent.name not in {one.rule for one in findings(path, profile)}


@pytest.mark.parametrize("path", ILLEGAL, ids=name)
def test_an_illegal_stream_has_the_findings_that_were_written_down(path):
    found, wanted = findings(path, "producer"), expected(path)
    for one, want in zip(found, wanted, strict=True):
        want.setdefault(
            "message", one.message
        )  # where it ends in a parser's own words, it is not written down
        row = RULES[one.rule]
        assert asdict(one) == {**want, "level": row.level, "law": row.law, "hint": row.hint}


@pytest.mark.parametrize("path", ILLEGAL, ids=name)
def test_the_consumer_profile_says_what_a_reader_must_reject(path):
    level = levels("consumer").get(path.parent.name)
    found = {one.rule: one.level for one in findings(path, "consumer")}
    assert found.get(path.parent.name) == level


def test_every_expectation_has_its_stream_and_every_stream_its_expectation():
    listed = {
        path.parent / file for path in DATA.glob("*/expected.json") for file in json.loads(path.read_text())
    }
    assert listed == set(ILLEGAL)
