"""The rule table: complete against the text, shown by streams, and printed as its own page."""

import re
from pathlib import Path

import pytest
from byline.rules import PROFILES, RULES, levels, page

ROOT = Path(__file__).parent.parent.parent
DATA = ROOT / "tests" / "data" / "law"


def sentences():
    lines = (DATA / "sentences.txt").read_text().splitlines()
    return {line.split()[0]: line for line in lines if line and not line.startswith("#")}


def test_every_sentence_of_the_chapter_is_covered_by_a_rule():
    covered = {number for rule in RULES.values() for number in rule.covers}
    assert sentences().keys() - covered == set()
    assert covered - sentences().keys() == set()


def test_sentences_say_which_keyword_they_have():
    for line in sentences().values():
        assert re.fullmatch(r"[ALONST]\d+ +(MUST NOT|MUST|SHOULD|MAY|states) {2,}[A-Z].*\.", line), line


def test_an_error_covers_no_sentence_that_only_permits():
    keyword = {
        number: re.split(r" {2,}", re.sub(r"^(\w+) +", r"\1  ", line))[1]
        for number, line in sentences().items()
    }
    for rule in RULES.values():
        if rule.level == "error" and rule.covers:
            assert any(keyword[number] != "MAY" for number in rule.covers) or rule.id == "step-already-open"


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.id)
def test_a_row_is_well_formed(rule):
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.id)
    assert rule.law.endswith(".")
    assert not rule.hint.endswith(".")
    assert (rule.level is None) == (rule.shown != "streams")
    assert rule.shown == "streams" or rule.note


@pytest.mark.parametrize(
    "rule", [rule for rule in RULES.values() if rule.shown == "streams"], ids=lambda rule: rule.id
)
def test_a_judged_rule_has_a_legal_and_an_illegal_stream(rule):
    assert list((DATA / rule.id).glob("legal-*.jsonl"))
    assert list((DATA / rule.id).glob("illegal-*.jsonl"))
    assert f'"rule": "{rule.id}"' in (DATA / rule.id / "expected.json").read_text()


@pytest.mark.parametrize(
    "rule", [rule for rule in RULES.values() if rule.shown == "ledger"], ids=lambda rule: rule.id
)
def test_a_duty_of_a_reader_has_a_test_of_the_ledger(rule):
    file, _, test = rule.note.partition("::")
    assert f"\ndef {test}(" in (ROOT / "tests" / file).read_text()


def test_streams_belong_to_rules():
    assert {path.name for path in DATA.iterdir() if path.is_dir()} <= set(RULES)


def test_the_profiles_differ_only_where_the_table_says_so():
    assert levels("producer").keys() == {rule.id for rule in RULES.values() if rule.level}
    assert levels("consumer").keys() == {rule.id for rule in RULES.values() if rule.consumer}
    assert PROFILES == ("producer", "consumer")


def test_an_error_to_a_reader_is_an_error_to_a_writer():
    assert all(rule.level == "error" for rule in RULES.values() if rule.consumer == "error")


def test_the_rule_page_is_the_tables():
    assert (ROOT / "docs" / "rules.md").read_text() == page()
