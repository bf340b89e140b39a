"""Reports of runs and comparisons: numbers, tables and pages."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given, strategies as st

from agentkit.episodes import Evidence
from agentkit.errors import UsageError
from agentkit.evaluation.results import compare, report_html, report_markdown, summarise
from agentkit.evaluation.results.report import holm
from agentkit.evaluation.results.tables import notes
from agentkit.evaluation.results.texts import shown, visible
from agentkit.evaluation.task import LeftOut
from agentkit.evolution.validation.report import shown as excerpt
from agentkit.evolution.validation.texts import name_key
from agentkit.messages import AssistantMessage, ToolCall, Usage
from agentkit.tools.patterns import invisible


def test_accuracy_is_the_share_of_attempts_that_passed(maker):
    """Two of three attempts passed, with a Wilson interval around two thirds."""
    report = summarise(maker.episode(f"t-{at}", passed=at < 2) for at in range(3))
    total = report.total
    assert (total.attempts, total.passed, total.tasks) == (3, 2, 3)
    assert total.accuracy.value == pytest.approx(2 / 3)
    assert total.accuracy.low == pytest.approx(0.2077, abs=1e-4)  # scipy's binomtest, Wilson
    assert total.accuracy.high == pytest.approx(0.9385, abs=1e-4)


def test_an_attempt_passes_when_every_user_turn_does(maker):
    """One failed user turn fails the attempt; its score is the mean of the turns."""
    turns = {"session": "s", "user_turns": 2}
    first = maker.episode("t", passed=True, user_turn=0, ends=False, **turns)
    good = maker.episode("t", passed=True, user_turn=1, **turns)
    bad = maker.episode("t", passed=False, user_turn=1, **turns)
    assert summarise([first, good]).total.passed == 1
    report = summarise([first, bad])
    assert (report.total.attempts, report.total.passed) == (1, 0)
    assert report.total.score == (1.0 + bad.verdict.score) / 2
    broken_off = maker.episode("t", passed=True, user_turn=0, **turns)
    assert summarise([broken_off]).total.passed == 0


def test_only_a_finished_try_counts(maker):
    """What an interruption left behind is in no number but what was spent."""
    cut = maker.episode("t", passed=True, session="first", ends=False)
    whole = maker.episode("t", passed=False, session="second")
    report = summarise([cut, whole])
    assert (report.total.attempts, report.total.passed, report.total.unfinished) == (1, 0, 0)
    assert report.spent.prompt_tokens == cut.usage.prompt_tokens + whole.usage.prompt_tokens
    assert report.total.usage.prompt_tokens == whole.usage.prompt_tokens
    assert summarise([cut]).total.unfinished == 1


def test_the_first_of_two_finished_tries_counts(maker):
    """An attempt that was made twice is counted once."""
    first = maker.episode("t", passed=True, session="one")
    second = maker.episode("t", passed=False, session="two")
    for order in ([first, second], [second, first]):
        report = summarise(order)
        assert (report.total.attempts, report.total.passed) == (1, 1)


def test_faults_are_counted_apart(maker):
    """A broken reference says nothing about the agent: no accuracy, no label, no token."""
    good = maker.episode("a", passed=True)
    broken = maker.episode("b", passed=False, fault="gold_error")
    report = summarise([good, broken])
    assert (report.total.attempts, report.total.faults) == (1, {"gold_error": 1})
    assert report.total.turn_labels == {"pass": 1}
    assert report.total.usage == good.usage
    assert [(one.what, one.task) for one in report.incidents] == [("gold_error", "b")]


def test_an_attempt_without_a_verdict_is_counted_apart(maker):
    """Where nobody judged there is no accuracy."""
    report = summarise([maker.episode("a", judged=False)])
    assert (report.total.attempts, report.total.unjudged) == (0, 1)
    assert report.total.accuracy is None
    assert report.macro is None


def test_planned_attempts_stand_beside_the_finished(maker):
    """A category that was planned and not begun is a row with nothing in it."""
    report = summarise([maker.episode("a", "easy")], planned={"easy": 2, "hard": 3})
    assert (report.total.planned, report.total.finished) == (5, 1)
    assert [(one.name, one.planned, one.attempts) for one in report.categories] == [
        ("easy", 2, 1),
        ("hard", 3, 0),
    ]
    assert summarise([], planned=4).is_short


def with_verdict(episode, **values):
    """The episode with parts of its verdict changed."""
    return replace(episode, verdict=replace(episode.verdict, **values))


def test_metrics_are_means_over_the_attempts_that_have_them(maker):
    """A metric that only some verdicts have is averaged over those, each attempt once."""
    first = with_verdict(maker.episode("a"), metrics={"f1": 1.0, "order": 0.5})
    second = with_verdict(maker.episode("b"), metrics={"f1": 0.5})
    assert summarise([first, second]).total.metrics == {"f1": 0.75, "order": 0.5}


def test_tokens_and_cost_are_totals_of_the_counted_attempts(maker):
    """The cost of an adapter that knows no price is None, not zero."""
    usage = Usage(requests=2, prompt_tokens=10, cached_tokens=4, completion_tokens=5, cost_usd=0.25)
    first = replace(maker.episode("a"), usage=usage)
    second = replace(maker.episode("b"), usage=replace(usage, cost_usd=None))
    total = summarise([first, second]).total
    assert (total.usage.prompt_tokens, total.usage.cached_tokens) == (20, 8)
    assert total.usage.cost_usd == 0.25
    assert summarise([second]).total.usage.cost_usd is None


def test_model_errors_count_and_are_listed_by_type(maker):
    """An attempt on which the model failed stays in the accuracy and is named."""
    failed = [
        replace(
            maker.episode(f"t-{at}", passed=False),
            stop_reason="error",
            error=f"ModelStatusError: status 400, try {at}",
        )
        for at in range(3)
    ]
    report = summarise([*failed, maker.episode("good")])
    assert (report.total.attempts, report.total.passed, report.total.errors) == (4, 1, 3)
    assert [(one.what, one.count) for one in report.incidents] == [("ModelStatusError", 3)]


def test_worst_tools_come_first_with_their_share(maker):
    """Tools are ordered by the episodes that they spoilt; a good call of one is in its share."""
    episodes = [
        maker.episode("a", passed=False, tool="music.play"),
        maker.episode("b", passed=False, tool="music.play"),
        maker.episode("c", passed=True, tool="music.play"),
        maker.episode("d", passed=False, tool="database.query"),
    ]
    tools = summarise(episodes).tools
    assert [(one.tool, one.faulty, one.episodes) for one in tools] == [
        ("music.play", 2, 3),
        ("database.query", 1, 1),
    ]
    assert tools[0].labels == {"argument_mismatch": 2}


def test_what_was_left_out_is_grouped_by_reason():
    """Ten rows left out for one reason are one line with a few places."""
    left_out = [LeftOut(where=f"file, line {at:02d}", reason="no gold") for at in range(10)]
    left_out.append(LeftOut(where="other, line 1", reason="not JSON"))
    first, second = summarise([], left_out=left_out).left_out
    assert (first.reason, first.count, len(first.where)) == ("no gold", 10, 5)
    assert second.count == 1


def test_settings_that_differ_within_a_run_are_named(make):
    """Episodes that were asked otherwise than the rest do not go unseen."""
    episodes = [
        make(settings={"refine": mode}).episode(f"t-{mode}") for mode in ("none", "adaptive")
    ]
    episodes[1] = replace(episodes[1], episode_id="another")
    report = summarise(episodes)
    assert report.mixed == ("refine",)
    broken = maker_with_settings(make, "not JSON")
    assert summarise([broken]).settings == {"settings": "not JSON"}


def maker_with_settings(make, text):
    """An episode whose settings are this text."""
    episode = make().episode("t")
    return replace(episode, metadata={**episode.metadata, "settings": text})


SPECS = st.lists(
    st.fixed_dictionaries(
        {
            "task": st.sampled_from(["a", "b", "c"]),
            "attempt": st.integers(0, 2),
            "session": st.sampled_from(["s1", "s2"]),
            "passed": st.booleans(),
            "ends": st.booleans(),
            "judged": st.booleans(),
            "user_turn": st.integers(0, 1),
            "user_turns": st.integers(1, 2),
            "fault": st.sampled_from([None, None, None, "gold_error", "checker_error"]),
        }
    ),
    max_size=10,
)


def episodes_of(make, specs):
    """Episodes as specified; the category goes by the task."""
    maker = make()
    return [maker.episode(category=f"of {spec['task']}", **spec) for spec in specs]


@given(specs=SPECS, data=st.data())
def test_order_changes_nothing(make_once, specs, data):
    """Any permutation of the episodes gives the same report, to the last digit."""
    episodes = episodes_of(make_once, specs)
    shuffled = data.draw(st.permutations(episodes))
    assert summarise(shuffled) == summarise(episodes)


def test_pass_at_k_counts_tasks_with_enough_attempts(maker):
    """A task tried twice says nothing about three attempts."""
    episodes = [maker.episode("a", passed=at == 0, attempt=at) for at in range(3)] + [
        maker.episode("b", passed=True, attempt=at) for at in range(2)
    ]
    table = summarise(episodes).pass_at
    assert [(one.k, one.tasks) for one in table] == [(1, 2), (2, 2), (3, 1)]
    assert table[0].any_passes == pytest.approx((1 / 3 + 1) / 2)
    assert table[0].all_pass == pytest.approx((1 / 3 + 1) / 2)
    assert (table[2].any_passes, table[2].all_pass) == (1.0, 0.0)


def report_of(make, run, passed, *, settings=None, **options):
    """The report of a run with one attempt at each task; ``passed`` by task."""
    maker = make(run=run, settings=settings or {"refine": "none"}, **options)
    return summarise(
        maker.episode(task, "one" if at % 2 else "two", passed=one)
        for at, (task, one) in enumerate(passed.items())
    )


def test_tasks_gained_and_lost_are_named(make):
    """What only the second run passes is gained, what only the first does is lost."""
    a = report_of(make, "a", {"t1": True, "t2": False, "t3": False, "t4": True})
    b = report_of(make, "b", {"t1": False, "t2": True, "t3": True, "t4": True})
    comparison = compare(a, b)
    assert comparison.total.gained == ("t2", "t3")
    assert comparison.total.lost == ("t1",)
    assert (comparison.total.a, comparison.total.b) == (0.5, 0.75)
    assert comparison.total.difference.value == pytest.approx(0.25)


def test_only_tasks_of_both_are_compared(make):
    """A task that one run lacks is counted and compared with nothing."""
    a = report_of(make, "a", {"t1": True, "t2": True})
    b = report_of(make, "b", {"t2": False, "t3": True})
    comparison = compare(a, b)
    assert (comparison.total.tasks, comparison.total.lost) == (1, ("t2",))
    assert (comparison.only_a, comparison.only_b) == (("t1",), ("t3",))
    assert any("finished it: 2 tasks" in warning for warning in comparison.warnings)


def test_different_benchmarks_are_refused(make):
    """Tasks of another release are other tasks, whatever their ids."""
    a = report_of(make, "a", {"t": True}, benchmark="BFCL v3")
    b = report_of(make, "b", {"t": True}, benchmark="BFCL v4")
    with pytest.raises(UsageError, match=r"'BFCL v3'.*'BFCL v4'"):
        compare(a, b)


def test_one_changed_setting_is_what_is_compared(make):
    """A change in refinement alone, its limit included, needs no warning, nor does a sample."""
    a = report_of(make, "a", {"t": True}, settings={"refine": "none"})
    settings = {"refine": "adaptive", "max_refinements": 5, "sample": 9}
    b = report_of(make, "b", {"t": True}, settings=settings)
    comparison = compare(a, b)
    assert [*comparison.differences] == ["max_refinements", "refine", "sample"]
    assert comparison.warnings == ()


def test_repeated_attempts_are_compared_by_their_share(make):
    """Two of three passes against one of three is a gain, not a tie."""
    reports = [
        summarise(
            maker.episode("t", passed=at < passes, attempt=at)
            for maker in [make(run=run)]
            for at in range(3)
        )
        for run, passes in (("a", 1), ("b", 2))
    ]
    comparison = compare(*reports)
    assert comparison.total.gained == ("t",)
    assert comparison.total.difference.value == pytest.approx(1 / 3)


def test_the_p_value_is_mcnemars_mid_p(make):
    """Five gained and none lost: 2 x (1/2 x 1/32) = 1/32 (Fagerland et al. 2013)."""
    tasks = [f"t{at}" for at in range(8)]
    a = report_of(make, "a", {task: task >= "t5" for task in tasks})
    b = report_of(make, "b", dict.fromkeys(tasks, True))
    total = compare(a, b).total
    assert (len(total.gained), len(total.lost)) == (5, 0)
    assert total.p_value == pytest.approx(0.03125)


def test_few_pairs_have_the_interval_of_agresti_and_min(make):
    """Two gained and one lost of four: (2 - 1) / 6, and Wald's interval with half a pair each."""
    a = report_of(make, "a", {"t1": True, "t2": False, "t3": False, "t4": True})
    b = report_of(make, "b", {"t1": False, "t2": True, "t3": True, "t4": True})
    total = compare(a, b).total.difference
    error = (4 - 1 / 6) ** 0.5 / 6
    assert total.low == pytest.approx(1 / 6 - 1.959964 * error)
    assert total.high == pytest.approx(1 / 6 + 1.959964 * error)


def test_adjusted_p_values_are_holms():
    """The smallest of three counts three times, the next twice, and none falls below an earlier."""
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


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


IGNORED = "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b\u180e\u200b\u2060\u2065\u2800\u3164\ufe00\ufeff"
IGNORED += "\uffa0\ufff0\ufff9\U0001bca0\U0001d159\U0001d173\U000e0001\U000e0041\U000e0100\U000e01ef\U000e0fff"


@pytest.mark.parametrize("char", [*IGNORED, "\u2028", "\ue000", "\x1b"])
def test_checks_and_pages_have_one_rule_of_what_nobody_sees(char):
    """What a page writes out a check finds, by category and by Unicode's default-ignorable set."""
    text, mark = f"Q{char}Q", f"⟨U+{ord(char):04X}⟩"
    assert visible(text) == f"Q{mark}Q"
    assert invisible(text) == (char,)
    assert name_key(char) == ""
    assert "<U+" in excerpt(text)
