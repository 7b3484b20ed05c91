"""Finding tagged artifacts: every trap that is known, and time that is linear in the text."""

import gc
import time

import pytest
from byline._tags import TAGS, Tagged, Tags
from byline.errors import InputError
from hypothesis import example, given
from hypothesis import strategies as st

TAGS_ = Tags()


def bodies(text: str, tags: Tags = TAGS_) -> list[str]:
    return [found.body for found in tags.find(text)]


def closed(text: str) -> list[tuple[str, bool]]:
    return [(found.body, found.closed) for found in TAGS_.find(text)]


def test_one_artifact_with_text_around_it():
    text = 'Here: <artifact type="text/html" title="Report"><b>hi</b></artifact> Done.'
    assert TAGS_.find(text) == [
        Tagged(6, 68, "artifact", "<b>hi</b>", True, {"type": "text/html", "title": "Report"})
    ]
    assert text[6:68] == '<artifact type="text/html" title="Report"><b>hi</b></artifact>'


@pytest.mark.parametrize("tag", [tag for tag in TAGS if tag[0] != ":"])
def test_every_element_in_common_use(tag):
    text = f'<{tag} identifier="a" type="t" title="T">x</{tag}>'
    (found,) = TAGS_.find(text)
    assert (found.tag, found.body, dict(found.attributes)) == (
        tag,
        "x",
        {"identifier": "a", "type": "t", "title": "T"},
    )


def test_a_directive():
    text = 'Look:\n:::artifact{identifier="a" type="text/html" title="T"}\n```html\n<p>\n```\n:::\nDone.'
    (found,) = TAGS_.find(text)
    assert (found.tag, found.body, dict(found.attributes)) == (
        "artifact",
        "```html\n<p>\n```\n",
        {"identifier": "a", "type": "text/html", "title": "T"},
    )
    assert (text[: found.start], text[found.end :]) == ("Look:\n", "Done.")


def test_a_directive_end_inside_a_fence_does_not_close_it():
    text = ":::artifact{title='T'}\n```\n:::\n```\nrest\n:::\n"
    assert closed(text) == [("```\n:::\n```\nrest\n", True)]


def test_a_directive_whose_fence_never_ends_is_closed_by_the_next_end():
    assert closed(":::artifact{title='T'}\n```\ncode\n:::\nafter") == [("```\ncode\n", True)]


def test_another_directive_inside_a_directive():
    assert closed(":::artifact\n:::note\nx\n:::\ny\n:::\n") == [(":::note\nx\n:::\ny\n", True)]


def test_a_directive_in_the_middle_of_a_line_is_text():
    assert closed("see :::artifact{title='T'}\nx\n:::\n") == []


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("title=\"T\" type='t'", {"title": "T", "type": "t"}),
        ("type='t' title=\"T\"", {"title": "T", "type": "t"}),
        ("title = 'T'", {"title": "T"}),
        ("title=T type=text/html", {"title": "T", "type": "text/html"}),
        ('title="a > b"', {"title": "a > b"}),
        ('title="/>"', {"title": "/>"}),
        (
            "title=\"<artifact title='x'> </artifact> ``` `\"",
            {"title": "<artifact title='x'> </artifact> ``` `"},
        ),
        ('title="it\'s"', {"title": "it's"}),
        ("title='say \"x\"'", {"title": 'say "x"'}),
        ('title="&lt;b&gt; &amp; c"', {"title": "&lt;b&gt; &amp; c"}),
        ("hidden title='T'", {"hidden": "", "title": "T"}),
        ("title='one' title='two'", {"title": "one"}),
        ("\n  title='T'\r\n  type='t'\n", {"title": "T", "type": "t"}),
        ("title='여러 줄'", {"title": "여러 줄"}),
        ("", {}),
    ],
)
def test_attributes(written, read):
    (found,) = TAGS_.find(f"<artifact {written}>x</artifact>")
    assert (dict(found.attributes), found.body) == (read, "x")


@pytest.mark.parametrize(
    "text",
    [
        "no tag at all",
        "an <artifactual> element",
        "<artifacts>x</artifacts>",
        "a < artifact >",
        "<Artifact>x</Artifact>",
        "</artifact> alone",
        '<artifact title="never closed',
        "<artifact = >x</artifact>",
        "<artifact <b>>x</artifact>",
        "",
    ],
)
def test_what_is_no_artifact(text):
    assert closed(text) == []


def test_two_artifacts_in_one_result():
    assert closed("a<artifact>1</artifact>b<antArtifact>2</antArtifact>c") == [("1", True), ("2", True)]


def test_an_element_that_closes_itself_is_an_empty_artifact():
    assert closed('<artifact title="T"/>rest') == [("", True)]
    assert closed("<artifact>a<artifact/>b</artifact>") == [("a<artifact/>b", True)]


def test_elements_of_one_name_nest():
    assert closed("<artifact>a<artifact>b</artifact>c</artifact>d") == [("a<artifact>b</artifact>c", True)]


def test_an_element_of_another_name_inside_is_body():
    assert closed("<artifact>a</antArtifact><lobeArtifact>b</artifact>") == [
        ("a</antArtifact><lobeArtifact>b", True)
    ]


def test_an_unclosed_tag_reaches_to_the_end_and_says_so():
    assert closed("a<artifact>b") == [("b", False)]
    assert closed("<artifact>a<artifact>b</artifact>") == [("a<artifact>b</artifact>", False)]


def test_a_tag_inside_a_code_fence_is_text():
    assert closed("Write:\n```xml\n<artifact>x</artifact>\n```\n<artifact>y</artifact>") == [("y", True)]
    assert closed("~~~\n```\n<artifact>x</artifact>\n~~~\n<artifact>y</artifact>") == [("y", True)]
    assert closed("````\n```\n<artifact>x</artifact>\n```\n````\n<artifact>y</artifact>") == [("y", True)]
    assert closed("```\n<artifact>x</artifact>") == [], "a fence that is never closed reaches to the end"


def test_a_fence_with_words_behind_it_closes_nothing():
    assert closed("```\n```xml\n<artifact>x</artifact>\n```\n<artifact>y</artifact>") == [("y", True)]


def test_a_tag_inside_a_code_span_is_text():
    assert closed("Use `<artifact>` and `</artifact>`: <artifact>y</artifact>") == [("y", True)]
    assert closed("Use ``a ` <artifact>x</artifact>``: <artifact>y</artifact>") == [("y", True)]
    assert closed("A lone ` tick <artifact>y</artifact>") == [("y", True)]
    assert closed("A tick ` here\nand ` there <artifact>y</artifact>") == [("y", True)]


def test_a_close_tag_inside_a_fence_of_the_body_does_not_close():
    assert closed("<artifact>\n```\n</artifact>\n```\nrest</artifact>") == [
        ("\n```\n</artifact>\n```\nrest", True)
    ]


def test_a_fence_of_the_body_that_never_ends_hides_nothing():
    assert closed("<artifact>\n```\ncode</artifact> after") == [("\n```\ncode", True)]


def test_the_first_close_tag_that_nothing_hides_closes():
    assert closed('<artifact>const x = "</artifact>";</artifact>') == [('const x = "', True)]


def test_ticks_in_a_body_hide_nothing():
    assert closed("<artifact>a ` b</artifact> `") == [("a ` b", True)]


def test_carriage_returns():
    text = '<artifact\r\n title="T">\r\n```\r\n</artifact>\r\n```\r\nx\r\n</artifact>\r\n'
    assert closed(text) == [("\r\n```\r\n</artifact>\r\n```\r\nx\r\n", True)]
    assert closed(":::artifact{title='T'}\r\nx\r\n:::\r\ny") == [("x\r\n", True)]


def test_the_tags_are_an_option():
    assert bodies("<card>x</card><artifact>y</artifact>", Tags(["card"])) == ["x"]
    assert bodies(":::card\nx\n:::", Tags([":::card"])) == ["x\n"]
    assert bodies("<card>x</card>", Tags("card")) == ["x"]
    assert bodies("<card>x</card>", Tags([])) == []
    for bad in ("", "<artifact>", ":::", "a b", "1st"):
        with pytest.raises(InputError, match="is no tag"):
            Tags([bad])


# ------------------------------------------------------------------------------------------------------- taking off


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("plain <b>text</b>", "plain <b>text</b>"),
        ("a<artifact title='T'>b</artifact>c", "abc"),
        ('<artifact title="a > b">x</artifact>', "x"),
        ("a<artifact>b<artifact>c", "abc"),
        ("</artifact>x", "x"),
        ("```\n<artifact>x</artifact>\n```", "```\nx\n```"),
        ("<arti<artifact>fact>x", "&lt;artifact>x"),
        ("</arti</artifact>fact>x", "&lt;/artifact>x"),
        ("<artifact title='never", "&lt;artifact title='never"),
        ("ends with <artifact", "ends with &lt;artifact"),
        ("<artifactual>x", "<artifactual>x"),
        (":::artifact{title='T'}\nx\n:::\ny", "x\ny"),
        (":::note\nx\n:::\n:::artifact\ny\n:::", ":::note\nx\n:::\ny\n"),
        ("a ::: b", "a ::: b"),
    ],
)
def test_display_tags_are_taken_off(text, left):
    assert TAGS_.strip(text) == left
    assert TAGS_.find(left) == []


MARKUP = st.lists(
    st.sampled_from(
        [
            "<artifact>",
            "</artifact>",
            "<artifact ",
            'title="',
            "'",
            '"',
            ">",
            "/>",
            "<arti",
            "fact",
            "```",
            "\n",
            "`",
            ":::artifact",
            "{",
            "}",
            ":::",
            "~~~",
            " ",
            "x",
            "<antArtifact>",
            "</antArtifact>",
            "\r\n",
            "<",
            "/",
        ]
    ),
    max_size=40,
).map("".join)


@example("<artifact>:::artifact")
@given(MARKUP)
def test_whatever_is_left_after_taking_off_is_no_artifact(text):
    assert TAGS_.find(TAGS_.strip(text)) == []


@given(MARKUP)
def test_what_is_found_stands_in_the_text_and_does_not_overlap(text):
    at = 0
    for found in TAGS_.find(text):
        assert at <= found.start < found.end <= len(text)
        assert found.body in text[found.start : found.end]
        at = found.end


@given(MARKUP)
def test_a_code_fence_around_any_text_without_ticks_hides_it(text):
    text = text.replace("`", "")
    assert TAGS_.find(f"```\n{text}\n```") == []


# ------------------------------------------------------------------------------------------------------------- time


def decreasing_fences(size: int) -> str:
    longest = int((2 * size) ** 0.5)
    return "<artifact>" + "".join("`" * n + "x\n<artifact>\n" for n in range(longest, 2, -1))


HARD = {
    "one large body": lambda n: "<artifact>" + "x<y " * (n // 4) + "</artifact>",
    "never closed": lambda n: "<artifact>" * (n // 10),
    "never opened": lambda n: "</artifact>" * (n // 11),
    "opened and closed": lambda n: "<artifact></artifact>" * (n // 21),
    "tags that do not end": lambda n: '<artifact a="' * (n // 13),
    "tags in quotes of tags": lambda n: "<artifact a='<artifact b=\"" * (n // 26),
    "one tag of many attributes": lambda n: "<artifact " + 'a="1" ' * (n // 6),
    "blanks before an end": lambda n: "</artifact" + " " * n,
    "ticks of every length": lambda n: (
        "<artifact/>" + "".join("`" * k + "x" for k in range(1, int((2 * n) ** 0.5)))
    ),
    "lone ticks": lambda n: "<artifact/>" + "` `` " * (n // 5),
    "fences, each shorter": decreasing_fences,
    "fences": lambda n: "<artifact>" + "```\n" * (n // 4),
    "directives": lambda n: ":::artifact{\n" * (n // 13),
    "ends of directives": lambda n: ":::artifact\n" + ":::\n" * (n // 4),
    "blanks in a directive": lambda n: ":::artifact{" + " " * n,
}


def cost(tags: Tags, text: str) -> float:
    gc.collect()
    gc.disable()  # it looks at all that a large text gives, again and again: that is not the parser's cost
    try:
        best = 9.9
        for _ in range(3):
            began = time.process_time()
            tags.find(text)
            tags.strip(text)
            best = min(best, time.process_time() - began)
        return best
    finally:
        gc.enable()


@pytest.mark.parametrize("make", HARD.values(), ids=HARD.keys())
def test_time_is_linear_in_the_text(make):
    """Thirty-two times the text may cost up to two hundred times as much; what is quadratic costs a thousand times."""
    small, large = cost(TAGS_, make(12_500)), cost(TAGS_, make(400_000))
    assert large < 200 * max(small, 0.0005), (small, large)
