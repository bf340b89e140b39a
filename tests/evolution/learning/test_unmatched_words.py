"""The words that users say and no tool has."""

from __future__ import annotations

from agentkit import Library
from agentkit.evolution import unmatched_words

ROME = ("weather", {"city": "Rome"}, "sunny")


def said(episodes, library, **options):
    """Word and count of each."""
    return {one.word: one.episodes for one in unmatched_words(episodes, library, **options)}


def test_words_are_counted_with_requests_to_read(episode, catalogue):
    """Each request counts once, and those that went badly are told."""
    library = Library(catalogue)
    asked = [
        episode("Umbrella in Rome?", ROME),
        episode("Umbrella or coat?", passed=False),
        episode("Umbrella in Rome?", ROME, episode_id="again"),
        episode("What is the weather?", ROME),
    ]
    (word,) = unmatched_words(asked, library)
    assert (word.word, word.episodes, word.failed) == ("umbrella", 2, 1)
    assert word.requests == ("Umbrella in Rome?", "Umbrella or coat?")
    assert said(asked, library, least=1) == {"umbrella": 2, "coat": 1}


def test_data_is_no_word(episode, catalogue):
    """Numbers, and what was passed on to a tool, say nothing about the catalogue."""
    assert said([episode("Weather in Rome on day 12b?", ROME)], Library(catalogue), least=1) == {
        "day": 1
    }


def test_private_requests_are_left_out(episode, catalogue):
    """Neither their words nor their text are shown."""
    one = episode("Forward my umbrella to ann@example.org", passed=None)
    assert said([one], Library(catalogue), least=1) == {}


def test_what_was_learned_is_no_longer_unmatched(learner, episode):
    """A tool has the words of its examples."""
    asked = [episode("Umbrella in Rome?", ROME), episode("Umbrella for Oslo?", ROME)]
    assert "umbrella" in said(asked, learner.library)
    learner.learn(asked)
    assert "umbrella" not in said(asked, learner.library)
