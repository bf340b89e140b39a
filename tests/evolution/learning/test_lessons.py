"""Which uses become examples, and what of them is kept."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from agentkit import tool
from agentkit.errors import UsageError
from agentkit.evolution import InsertPolicy, LearningConfig, ToolManager
from agentkit.evolution.usage import varied
from agentkit.tools.definition import Effects, Example


def weather(city, value="sunny"):
    """A call of the tool."""
    return "weather", {"city": city}, value


def test_a_tool_learns_the_words_and_the_recorded_answer(learner, episode):
    """The example holds what was asked, what was called and what came back."""
    report = learner.learn([episode("Umbrella in Rome?", weather("Rome"))])
    example = Example(arguments={"city": "Rome"}, result="sunny", query="Umbrella in Rome?")
    assert report.added == {"weather": (example,)}
    assert learner.library["weather"].definition.examples == (example,)


def test_the_same_words_are_learned_once(learner, episode):
    """Another city is no other way to ask; other words are."""
    report = learner.learn(
        [
            episode("Umbrella in Rome?", weather("Rome")),
            episode("umbrella in OSLO", weather("Oslo")),
            episode("Do I need a coat in Bern?", weather("Bern")),
        ]
    )
    assert [one.query for one in report.added["weather"]] == [
        "Umbrella in Rome?",
        "Do I need a coat in Bern?",
    ]
    assert report.reasons == {"known_words": 1}


def test_beyond_the_cap_the_most_varied_words_are_kept(learner, episode):
    """A tool does not grow without bound, and the words that add most come first."""
    asked = ["Rain?", "Rain or snow?", "Rain or snow in the mountains?", "Fog?"]
    rules = LearningConfig(max_examples=2)
    report = learner.learn([episode(one, weather("Rome")) for one in asked], rules=rules)
    assert {one.query for one in report.added["weather"]} == {asked[2], asked[3]}
    assert report.reasons == {"full": 2}


def test_one_call_keeps_one_answer(learner, episode):
    """Asked for in other words, a call that has an answer is kept without the newer one."""
    report = learner.learn(
        [
            episode("Umbrella in Rome?", weather("Rome", "sunny"), started_at="1"),
            episode("Coat for Rome?", weather("Rome", "snow"), started_at="2"),
        ]
    )
    first, second = report.added["weather"]
    assert (first.is_whole, first.result) == (True, "sunny")
    assert (second.is_whole, second.result, second.query) == (False, None, "Coat for Rome?")


def test_a_long_result_is_left_out_and_never_clipped(learner, episode):
    """The example says so, and answers nothing."""
    report = learner.learn([episode("Umbrella in Rome?", weather("Rome", "sun " * 1_000))])
    (example,) = report.added["weather"]
    assert (example.is_whole, example.result) == (False, None)


@pytest.mark.parametrize("value", [float("nan"), "\ud800", {1: 2}])
def test_what_json_can_not_hold_is_left_out(learner, episode, value):
    """No store could keep it."""
    (example,) = learner.learn([episode("Umbrella?", weather("Rome", value))]).added["weather"]
    assert not example.is_whole


def test_a_long_argument_is_left_out(learner, episode):
    """The rest of the call is kept, without its result."""
    call = ("send_mail", {"to": "Ann", "text": "word " * 1_000}, "sent")
    (example,) = learner.learn([episode("Write to Ann.", call)]).added["send_mail"]
    assert (example.arguments, example.is_whole) == ({"to": "Ann"}, False)


def test_arguments_are_kept_as_a_run_mends_them(store, episode):
    """A number that the model wrote as text is kept as the number."""

    @tool(effects=["reads"])
    def forecast(days: int) -> str:
        """The weather of the next days."""
        return "sunny" * days

    manager = ToolManager(store)
    manager.register([forecast])
    report = manager.learn([episode("The week ahead?", ("forecast", {"days": "7"}, "sunny"))])
    assert report.added["forecast"][0].arguments == {"days": 7}


@pytest.mark.parametrize(
    ("request_text", "call", "reason"),
    [
        ("Umbrella?", ("umbrella", {}, 1), "unknown_tool"),
        ("", weather("Rome"), "no_words"),
        ("?!", weather("Rome"), "no_words"),
        ("rain \ud800", weather("Rome"), "no_words"),
        ("rain " * 500, weather("Rome"), "too_long"),
        ("Forward it to ann@example.org", weather("Rome"), "private"),
        ("Umbrella\u202e for Rome?", weather("Rome"), "invisible"),
        ("Umbrella?", ("weather", {"town": "Rome"}, "sunny"), "arguments_changed"),
    ],
)
def test_what_is_not_learned(learner, episode, request_text, call, reason):
    """Each use that teaches nothing is told with its reason, and nothing is written."""
    report = learner.learn([episode(request_text, call, episode_id="e1")])
    (skipped,) = report.skipped
    assert (skipped.tool, skipped.episode_id, skipped.reason) == (call[0], "e1", reason)
    assert "ann@" not in skipped.detail
    assert (report.is_written, report.added, learner.library.version) == (False, {}, 1)


def test_a_private_result_is_left_out(learner, episode):
    """What came back does not reach the library either, when all that was asked may."""
    told = {"sky": "sunny", "reporter": "ann@example.org"}
    (example,) = learner.learn([episode("Umbrella?", weather("Rome", told))]).added["weather"]
    assert (example.arguments, example.is_whole, example.result) == ({"city": "Rome"}, False, None)


# --- tools that may be run again ------------------------------------------------------------------


@tool(effects=Effects.pure())
def double(x: float) -> float:
    """Twice a number."""
    return 2 * x


@tool(effects=Effects.pure())
async def half(x: float) -> float:
    """Half of a number."""
    return x / 2


def kept(manager, episode, name, value, **options):
    """Whether the result of a call with 3 is kept."""
    report = manager.learn([episode("The number I want?", (name, {"x": 3}, value))], **options)
    (example,) = report.added[name]
    return example.is_whole


def test_a_pure_tool_keeps_a_result_that_it_gives_again(make_manager, episode):
    """It is run, sync or async, since the result is a test from then on."""
    manager = make_manager(double, half)
    assert kept(manager, episode, "double", 6)
    assert kept(manager, episode, "half", 1.5)


def test_what_runs_follows_the_policy(store, episode):
    """An undeclared tool answers from records, unless the caller vouches for it."""

    @tool
    def triple(x: float) -> float:
        """Three times a number."""
        return 3 * x

    manager = ToolManager(store, tools=[triple])
    manager.register([triple])
    assert kept(manager, episode, "triple", 10)
    trusting = ToolManager(store, tools=[triple], policy=InsertPolicy(run_undeclared=True))
    report = trusting.learn([episode("Another one?", ("triple", {"x": 4}, 10))])
    assert not report.added["triple"][0].is_whole


def test_a_composite_learns_words_only(make_manager, episode):
    """Its results are those of its children, which may have no record of them."""
    manager = make_manager()
    manager.insert('''
@composite(examples=[{"arguments": {"x": 2}, "result": 7}])
def line(x: float) -> float:
    """Twice a number, and three more."""
    return add(mul(x, 2), 3)
''')
    assert not kept(manager, episode, "line", 9)


# --- choosing -------------------------------------------------------------------------------------

WORDS = st.frozensets(st.sampled_from("abcdefgh"), min_size=1)


@given(st.lists(WORDS), st.lists(WORDS), st.integers(-1, 12))
def test_the_choice_is_bounded_and_covers_no_less_than_the_first(candidates, known, count):
    """As many as asked for, each once, and the first chosen adds most."""
    chosen = varied(candidates, known, count)
    assert len(chosen) == len(set(chosen)) == min(max(count, 0), len(candidates))
    covered = frozenset().union(*known)
    if chosen:
        assert len(candidates[chosen[0]] - covered) == max(len(c - covered) for c in candidates)


@pytest.mark.parametrize("name", ["max_examples", "longest_query", "max_results"])
def test_rules_that_make_no_sense_are_refused(name):
    """A negative cap is a mistake."""
    with pytest.raises(UsageError, match=name):
        LearningConfig(**{name: -1})
