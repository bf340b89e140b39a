"""The pages of the language report."""

import re
from html.parser import HTMLParser

import pytest

from agentkit import ToolDefinition
from agentkit.library import ToolRevision
from agentkit_bench.language import language_html, language_markdown, language_report

HOSTILE = "List <script>alert(1)</script> | `cars` \u202e [x](http://a.b) ``` end"


def report_of(*texts, name="cars"):
    """A report on one tool that had these summaries."""
    history = [
        ToolRevision(
            version=at, definition=ToolDefinition.from_schema(name, text, {}), proposal_id=str(at)
        )
        for at, text in enumerate(texts, 1)
    ]
    return language_report({name: history})


class Tags(HTMLParser):
    """Collects tags, and holds that what is opened is closed."""

    def __init__(self):
        super().__init__()
        self.seen, self.open = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag not in {"meta", "br"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_page_is_whole_and_loads_nothing():
    """One file, well formed, without scripts or links to anywhere."""
    page = language_html(report_of("List cars.", "List used cars.", "List all used cars."))
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert "script" not in tags.seen
    assert "img" not in tags.seen
    assert re.findall(r'(?:href|src)="(?!#)', page) == []
    assert "<ins>" in page


def test_texts_of_models_stay_text():
    """Markup in a description is shown, and what nobody sees is written out."""
    page = language_html(report_of("List cars.", HOSTILE, name="<b>cars</b>"))
    assert "<script" not in page
    assert "<b>" not in page
    assert "\u202e" not in page
    assert "U+202E" in page
    text = language_markdown(report_of("List cars.", HOSTILE))
    assert "\u202e" not in text
    assert "````text" in text  # a fence longer than the one inside


@pytest.mark.parametrize("texts", [(), ("List cars.",), ("", ""), ("cars", "trucks", "cars")])
def test_small_reports_are_pages_too(texts):
    """Nothing, one revision, no words, or the first words again."""
    report = report_of(*texts)
    assert "</html>" in language_html(report)
    assert language_markdown(report).startswith("# How the words")


def test_difference_is_shown_in_words():
    """Each changed field says what went and what came."""
    report = report_of("Number of periods.", "Number of months.")
    assert "<del>periods</del><ins>months</ins>" in language_html(report)
    assert "Number of [-periods-]{+months+}." in language_markdown(report)
