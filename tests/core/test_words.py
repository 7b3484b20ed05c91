"""The event of a word is what pydantic makes of the same values, in everything that can be asked of it."""

import copy
import pickle

import pytest
from byline._words import word
from byline.events import ReasoningMessageContentEvent, TextMessageContentEvent


@pytest.mark.parametrize("kind", [TextMessageContentEvent, ReasoningMessageContentEvent])
@pytest.mark.parametrize(("tag", "timestamp"), [(None, None), ("writer-1", 1700000000000)])
def test_a_word_is_the_event_that_pydantic_makes(kind, tag, timestamp):
    made = word(kind, "m", "né", tag, timestamp)
    checked = kind(message_id="m", delta="né", subagent_run_id=tag, timestamp=timestamp)
    assert made == checked
    assert list(made.__dict__) == list(checked.__dict__)
    assert repr(made) == repr(checked)
    assert made.model_fields_set == checked.model_fields_set
    assert made.model_extra == checked.model_extra == {}
    assert made.model_dump_json(by_alias=True, exclude_unset=True) == checked.model_dump_json(
        by_alias=True, exclude_unset=True
    )
    assert pickle.loads(pickle.dumps(made)) == copy.deepcopy(made) == checked
    assert made.model_copy(update={"delta": "x"}).delta == "x"


def test_words_share_nothing():
    one, other = (word(TextMessageContentEvent, "m", "a", None, None) for _ in range(2))
    one.metadata = {"mine": True}
    assert (other.metadata, other.model_fields_set) == (
        None,
        {"message_id", "delta", "subagent_run_id", "timestamp"},
    )
