"""What a person reads of a report."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from agentkit.episodes import Evidence
from agentkit.evaluation.results import report_html, report_markdown, summarise
from agentkit.evaluation.results.tables import notes
from agentkit.evaluation.results.texts import (
    shown,
)
from agentkit.evaluation.task import LeftOut
from agentkit.messages import AssistantMessage, ToolCall

HOSTILE = (
    '</code></details><script>alert("1")</script><img src=x onerror=alert(1)> | `a` [l](http://x)'
)
VOID = {"meta", "br"}


class Page(HTMLParser):
    """What a page is made of; fails on an element that is not closed where it should be."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.ids, self.links, self.attributes = [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        """Note an element."""
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        values = dict(attrs)
        self.attributes += values
        self.ids += [values["id"]] if "id" in values else []
        self.links += [values["href"]] if "href" in values else []

    def handle_endtag(self, tag):
        """Check that the innermost open element is closed."""
        assert self.open.pop() == tag

    def all(self, name):
        """Attributes of each element of a name."""
        return [attributes for tag, attributes in self.tags if tag == name]


@pytest.fixture
def report(maker):
    """A report about some hundred realistic episodes."""
    left_out = [LeftOut(where=f"java, line {at}", reason="no checker") for at in range(9)]
    return summarise(
        maker.run_of(tasks=20, attempts=2, faulty=0.05),
        planned=300,
        left_out=left_out,
        command="agentkit eval bfcl --run 'a run'",
    )


@pytest.fixture
def hostile(maker):
    """A report in which every text from outside attacks the page."""
    call = ToolCall(call_id="1", name=HOSTILE, arguments={HOSTILE: HOSTILE})
    episode = maker.episode(
        HOSTILE, HOSTILE, passed=False, request=HOSTILE, tool=HOSTILE, session="s"
    )
    turn = replace(episode.turns[0], message=AssistantMessage(text=HOSTILE, tool_calls=(call,)))
    labels = {**episode.metadata, "run": HOSTILE, "benchmark": HOSTILE}
    labels["settings"] = json.dumps({HOSTILE: HOSTILE})
    failed = replace(
        episode,
        turns=(turn,),
        model=HOSTILE,
        metadata=labels,
        error=HOSTILE,
        stop_reason="error",
        verdict=replace(episode.verdict, metrics={HOSTILE: 1.0}),
    )
    left_out = [LeftOut(where=HOSTILE, reason=HOSTILE)]
    return summarise([failed], left_out=left_out, command=HOSTILE)


def test_the_page_is_well_formed(report):
    """Every element is closed, every link leads somewhere, no id occurs twice."""
    page = Page(report_html(report))
    assert len(page.ids) == len(set(page.ids))
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)


def test_the_page_needs_no_network_and_no_script(report):
    """Nothing is loaded: no script, no image, no address of another place, and a policy says so."""
    text = report_html(report)
    page = Page(text)
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in page.tags}
    assert not re.search(r"https?://|url\(|@import", text)
    (policy,) = [one for one in page.all("meta") if "http-equiv" in one]
    assert policy["content"].startswith("default-src 'none'")


def test_hostile_text_shows_as_text(hostile):
    """A request that is a script is shown, not run, wherever texts of others stand."""
    page = Page(report_html(hostile))
    assert not {"script", "img"} & {tag for tag, _ in page.tags}
    assert not [name for name in page.attributes if name.startswith("on")]
    assert not [link for link in page.links if not link.startswith("#")]


def test_hostile_text_makes_no_markup_in_markdown(hostile):
    """Tags, links, code and table cells of others stay text."""
    text = report_markdown(hostile)
    outside = re.sub(r"(?s)(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    assert "<script" not in outside
    assert "<img" not in outside
    assert not re.search(r"(?<!\\)\]\(", outside)
    for row in (line for line in text.splitlines() if line.startswith("|")):
        assert row.endswith(" |")


def test_pages_hold_the_numbers(report):
    """Accuracy with its interval, categories, worst tools, examples, settings and command."""
    for text in (report_html(report), report_markdown(report).replace("\\", "")):
        assert f"{report.total.accuracy.value:.1%}" in text
        assert "parallel_multiple" in text
        assert report.tools[0].tool in text
        assert report.examples[0].task in text
        assert "agentkit eval bfcl --run" in text
        assert "no checker" in text
        assert "pass^k" in text


def test_all_that_spoils_a_run_is_noted(maker):
    """Each thing a reader has to know first is one sentence, for one and for many."""
    episodes = [
        replace(maker.episode("a", session="1"), stop_reason="error", error="ModelError: gone"),
        maker.episode("a", session="2"),
        maker.episode("b", ends=False),
        maker.episode("c", fault="checker_error"),
        maker.episode("d", judged=False),
    ]
    report = summarise(episodes, planned=9)
    told = "\n".join(notes(report))
    for sentence in (
        "Finished: 3 of 9 planned attempts.",
        "Begun and not finished: 1 attempt.",
        "broken: 1 checker error.",
        "Nobody judged 1 attempt; in no number.",
        "The model failed in 1 attempt; these count.",
    ):
        assert sentence in told
    assert "Finished: 3 of 9" in report_markdown(report)


def with_call(episode, call):
    """The episode with another call in its only turn."""
    turn = replace(episode.turns[0], message=AssistantMessage(tool_calls=(call,)))
    return replace(episode, turns=(turn,))


def with_evidence(episode, *evidence):
    """The failed episode with other evidence in its only turn."""
    turn = replace(episode.diagnosis.turns[0], evidence=evidence)
    return replace(episode, diagnosis=replace(episode.diagnosis, turns=(turn,)))


def test_an_example_shows_what_is_needed_to_judge_it(maker):
    """Request, call, expected and actual value, label and hint stand in it."""
    (example,) = summarise([maker.episode("t", passed=False)]).examples
    assert example.task == "t"
    assert example.request.startswith("What will the weather")
    assert example.calls[0].startswith("weather.forecast(")
    assert ", expected [" in example.findings[0]
    assert example.label == "argument_mismatch"
    assert example.hint


def test_huge_and_repeated_evidence_is_cut(maker):
    """A value of a million characters, or nested without end, takes a few hundred, once."""
    nested = []
    for _ in range(100_000):
        nested = [nested]
    huge = Evidence(
        kind="wrong_value", message="x" * 10**6, expected=list(range(10**5)), actual=10**5000
    )
    deep = Evidence(kind="wrong_value", message="deep", expected=nested)
    told = Evidence(kind="wrong_value", message="got 'off', allowed ['on']", expected=["on"])
    call = ToolCall(call_id="c1", name="t" * 10**5, arguments={"text": "y" * 10**6})
    episode = with_call(maker.episode("t", passed=False, request="z" * 10**6), call)
    (example,) = summarise([with_evidence(episode, huge, deep, told)]).examples
    assert len(repr(example)) < 6_000
    assert example.request.endswith("…")
    assert "RecursionError" not in example.findings[1]
    assert example.findings[2] == told.message


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("a\n\n  b", "a b"),
        ("evil \u202egnp.exe", "evil ⟨U+202E⟩gnp.exe"),
        ("half \ud800", "half ⟨U+D800⟩"),
        ("nul \x00", "nul ⟨U+0000⟩"),
        ("zero\u200bwidth", "zero⟨U+200B⟩width"),
        ("family 👨\u200d👩", "family 👨\u200d👩"),
        ("伊藤さん Pärt", "伊藤さん Pärt"),
    ],
)
def test_invisible_characters_are_named(text, seen):
    """What nobody would see, or what turns text around, is written out."""
    assert shown(text) == seen
