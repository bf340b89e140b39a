"""Things in texts that are not words, and taking them out."""

import base64

import pytest
from hypothesis import given, settings, strategies as st

from agentkit.evaluation.doctor.text_mends import (
    markup,
    repeats,
    with_folded_blanks,
    without_markup,
    without_repeats,
)
from agentkit.tools.invisible import invisible, without_invisible

MENDS = [without_invisible, without_markup, with_folded_blanks, without_repeats]
PIECES = st.sampled_from(
    [
        *("<p>", "</p>", "<b>", "&amp;", "&", "lt;", "<!--", "-->", "<", ">", "br", "/", " ", "\n"),
        *("Get the weather of a city now. ", "Give a city. ", "```", "|", "\u200b", "\u200d", "é"),
    ]
)
TEXTS = st.lists(PIECES, max_size=12).map("".join)


@pytest.mark.parametrize("mend", MENDS)
@settings(deadline=None)
@given(text=TEXTS)
def test_mending_twice_is_mending_once(mend, text):
    """Each mend leaves nothing for itself to do."""
    once = mend(text)
    assert mend(once) == once


@settings(deadline=None)
@given(TEXTS)
def test_mending_leaves_nothing_to_find(text):
    """After a mend its own search finds nothing."""
    assert invisible(without_invisible(text)) == ()
    assert markup(without_markup(text)) == ()
    assert repeats(without_repeats(text)) == ()


@settings(deadline=None)
@given(st.text(alphabet=st.characters(categories=["L", "Nd", "Po", "Zs"]), max_size=60))
def test_plain_texts_keep_their_words(text):
    """What has no markup and nothing invisible keeps every character but blanks."""
    assert without_invisible(text) == text
    assert with_folded_blanks(text).split() == text.split()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Find\u200b a city", ("\u200b",)),
        ("Find a city\U000e0041\U000e0042", ("\U000e0041", "\U000e0042")),
        ("user\u202etxt.exe", ("\u202e",)),
        ("bell\x07", ("\x07",)),
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", ()),
        ("family \U0001f468\u200d\U0001f469\u200d\U0001f467", ()),
        ("line\n\tindented\r\n", ()),
    ],
)
def test_invisible_characters(text, found):
    """Zero-width, direction, tag and control characters are found; scripts and emoji keep theirs."""
    assert invisible(text) == found


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        ("<p>Find a <b>city</b>.</p>", "Find a city."),
        ("Fish &amp; chips<br/>to go", "Fish & chips\nto go"),
        ("a < b and c > d", "a < b and c > d"),
        ("Path /users/<user_id>/posts", "Path /users/<user_id>/posts"),
        ("List<String> of names", "List<String> of names"),
        ("R&D budget", "R&D budget"),
        ("Give {system}|<code>, as <a>", "Give {system}|<code>, as <a>"),
        ("One<p>Two", "One\nTwo"),
    ],
)
def test_html_goes_and_placeholders_stay(text, mended):
    """Tags of HTML are dropped, other words in angle brackets are the author's."""
    assert without_markup(text) == mended


def test_code_keeps_its_blanks():
    """Indentation means something in code and tables."""
    for text in ("Run:\n```\nif x:\n    y()\n```", "Table:\n| a  | b |\n| 1  | 2 |"):
        assert with_folded_blanks(text) == text
    assert with_folded_blanks("Find:\n        a city\n\n\n\n        by  name") == (
        "Find:\na city\n\nby name"
    )


def test_repeated_sentences_go_once():
    """The first stays where it is, short phrases may repeat."""
    text = "Get the weather of a city. Give a city. Get the weather of a city."
    assert without_repeats(text) == "Get the weather of a city. Give a city."
    assert without_repeats("Yes. No. Yes. No.") == "Yes. No. Yes. No."


def test_findings_say_where_and_offer_a_mend(a_tool, look):
    """Each of the findings names the place, and its proposal takes it out."""
    definition = a_tool(
        text="Find a\u200b city.\n        Give its name here. Give its name here.",
        properties={"name": {"type": "string", "description": "<p>The &quot;name&quot;</p>"}},
    )
    found = {one.kind.code: one for one in look(definition)}
    assert found["invisible"].where == found["repeated_sentence"].where == ("summary",)
    assert found["markup"].where == ("parameters.name",)
    for code in ("invisible", "markup", "repeated_sentence"):
        after = found[code].proposal.after
        assert code not in {one.kind.code for one in look(after)}


def test_encoded_data_is_found_and_addresses_are_not(a_tool, codes):
    """Base64 is data; a long URL and a long identifier are not."""
    data = base64.b64encode(bytes(range(256))).decode()
    assert "blob" in codes(a_tool(text=f"An image: {data}"))
    assert "blob" in codes(a_tool(text=f"An icon data:image/png;base64,{data[:40]}"))
    url = "https://example.com/" + "/".join(["some-long-folder-name"] * 8)
    assert "blob" not in codes(a_tool(text=f"See {url} and {'some_long_name_' * 8}"))


@pytest.mark.parametrize("mend", MENDS)
@pytest.mark.parametrize(
    "piece", ["<b>", "<!--", "<p>", "&amp;", "&", "amp;", "\u200d", "<a ", "\n", "a. B ", "| "]
)
def test_hostile_texts_are_mended_in_time(mend, piece):
    """A hundred thousand characters of one piece do no harm, opened and never closed."""
    for text in (piece * (100_000 // len(piece)), "&amp;" + piece * 2_000):
        once = mend(text)
        assert mend(once) == once
