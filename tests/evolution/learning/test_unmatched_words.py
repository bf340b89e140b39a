"""The words that users say and no tool has."""

from __future__ import annotations

from agentkit import Library
from agentkit.evolution import unmatched_words
from agentkit.testing import sample_library

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


def test_names_and_values_of_parameters_are_words_of_a_tool(episode):
    """What stands in a schema matches as well."""
    library = Library(sample_library().definitions)
    names = {word for tool in library.definitions for word in tool.signature.properties}
    asked = [episode(" ".join(sorted(names)))]
    assert said(asked, library, least=1) == {}


def test_a_library_without_tools_has_no_word(episode):
    """Everything is unmatched, and nothing asked gives nothing."""
    assert said([episode("Umbrella?")], Library([]), least=1) == {"umbrella": 1}
    assert said([], Library([])) == {}
