"""A client that goes back: an earlier message edited, or asked again.  What is kept stays, what is run again is new."""

from byline_langgraph.scripted import Say
from kit import Play, agent, ask, call
from langgraph.checkpoint.memory import InMemorySaver


def team():
    """A boss that asks alpha each time; its words tell how many answers the conversation already has."""
    alpha = agent("alpha", "alpha answers")
    turns = [
        Say("first", calls=[call("call_A", "ask_alpha")]),
        Say("one"),
        Say("second", calls=[call("call_B", "ask_alpha")]),
        Say("two"),
    ]
    return agent("boss", *turns, tools=[ask(alpha, "ask_alpha")], checkpointer=InMemorySaver())


def user(id_, text):
    return {"id": id_, "role": "user", "content": text}


def talk():
    """Two turns, and the client's copy after them."""
    play = Play(team())
    first = play.run(messages=[user("u1", "hello")])
    assert first.lines[-2:] == ["main says m3: 'one'", "end"]
    answer = {"id": play.names.native("m3"), "role": "assistant", "content": "one"}
    second = play.run(messages=[user("u1", "hello"), answer, user("u2", "more")])
    assert second.lines == [
        "start",
        "main says m4: 'second'",
        'main calls call_B in m4: ask_alpha {"q": ""}',
        "alpha#2 opens as tool for main, call call_B in m4",
        "alpha#2 says m5: 'alpha answers'",
        "alpha#2 returns 'alpha answers'",
        "main hears call_B: 'alpha answers'",
        "main says m6: 'two'",
        "end",
    ]
    last = {"id": play.names.native("m6"), "role": "assistant", "content": "two"}
    return play, [user("u1", "hello"), answer, user("u2", "more"), last]


SECOND_AGAIN = [
    "start",
    "main says m7: 'second'",
    'main calls call_B in m7: ask_alpha {"q": ""}',
    "alpha#3 opens as tool for main, call call_B in m7",
    "alpha#3 says m8: 'alpha answers'",
    "alpha#3 returns 'alpha answers'",
    "main hears call_B: 'alpha answers'",
    "main says m9: 'two'",
    "end",
]


def thread(play):
    state = play.agent.target.get_state({"configurable": {"thread_id": "t"}})
    return [(one.type, one.text, play.names.rename(str(one.id))) for one in state.values["messages"]]


def test_other_words_in_the_same_message():
    play, copy = talk()
    assert play.run(messages=[*copy[:2], user("u2", "something else")]).lines == SECOND_AGAIN
    kept = [entry for entry in thread(play) if entry[0] in ("human", "ai")]
    assert kept == [
        ("human", "hello", "u1"),
        ("ai", "first", "m1"),
        ("ai", "one", "m3"),
        ("human", "something else", "u2"),
        ("ai", "second", "m7"),
        ("ai", "two", "m9"),
    ]


def test_another_message_in_its_place():
    play, copy = talk()
    assert play.run(messages=[*copy[:2], user("u9", "something else")]).lines == SECOND_AGAIN
    assert [entry[2] for entry in thread(play) if entry[0] == "human"] == ["u1", "u9"]


def test_the_very_first_message():
    play, _ = talk()
    lines = play.run(messages=[user("u1", "good morning")]).lines
    assert lines[1:4] == [
        "main says m7: 'first'",
        'main calls call_A in m7: ask_alpha {"q": ""}',
        "alpha#3 opens as tool for main, call call_A in m7",
    ]
    assert [entry[1] for entry in thread(play) if entry[0] == "human"] == ["good morning"]


def test_asked_again():
    play, copy = talk()
    assert play.run(messages=copy[:3]).lines == SECOND_AGAIN
    assert [entry[2] for entry in thread(play) if entry[0] == "human"] == ["u1", "u2"]


def test_edited_twice():
    play, copy = talk()
    assert play.run(messages=[*copy[:2], user("u2", "something else")]).lines == SECOND_AGAIN
    again = play.run(messages=[*copy[:2], user("u2", "yet another")]).lines
    assert again[1] == "main says m10: 'second'"
    assert [entry[1] for entry in thread(play) if entry[0] == "human"] == ["hello", "yet another"]


def test_a_client_that_sends_only_what_is_new_goes_on():
    play, _ = talk()
    play.run(messages=[user("u3", "go on")])
    assert [entry[2] for entry in thread(play) if entry[0] == "human"] == ["u1", "u2", "u3"]


def test_a_client_that_has_shortened_its_copy_goes_on():
    play, copy = talk()
    play.run(messages=[*copy[2:], user("u3", "go on")])
    assert [entry[2] for entry in thread(play) if entry[0] == "human"] == ["u1", "u2", "u3"]


def test_a_client_without_the_answers_goes_on():
    play, _ = talk()
    play.run(messages=[user("u1", "hello"), user("u2", "more"), user("u3", "go on")])
    assert [entry[2] for entry in thread(play) if entry[0] == "human"] == ["u1", "u2", "u3"]
