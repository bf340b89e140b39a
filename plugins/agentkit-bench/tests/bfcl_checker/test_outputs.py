"""The answers that both checkers are given."""

from __future__ import annotations

import pytest

from agentkit.episodes import Episode, Turn
from agentkit.library import open_store
from agentkit.messages import AssistantMessage, ToolCall
from agentkit.tools.definition import Origin, ToolDefinition

FUNCTION = {
    "name": "find",
    "parameters": {
        "type": "dict",
        "properties": {
            "town": {"type": "string"},
            "n": {"type": "integer"},
            "where": {"type": "dict"},
        },
        "required": ["town"],
    },
}
GOLD = [{"find": {"town": ["Moss", "moss"], "n": [3, ""], "where": [{"x": [1, ""]}, ""]}}]


@pytest.fixture
def made(agreement):
    """The answers to one question, by the way they were made."""
    from bfcl_outputs import outputs

    return {one.kind: one for one in outputs(GOLD, [FUNCTION], "python")}


def test_gold_is_rendered_in_four_ways(made):
    """The first and the last option, without and with what may be left out."""
    assert made["gold:first"].calls == (("find", {"town": "Moss", "n": 3, "where": {"x": 1}}),)
    assert made["gold:last"].calls == (("find", {"town": "moss", "n": 3, "where": {"x": 1}}),)
    assert made["gold:fewest"].calls == (("find", {"town": "Moss"}),)


def test_each_wrong_answer_changes_one_thing(made):
    """A value, an argument or a call; what JSON can not hold is marked."""
    base = made["gold:first"].calls[0][1]
    for kind, one in made.items():
        if kind.startswith("value:"):
            changed = [name for name in base if one.calls[0][1][name] is not base[name]]
            assert len(changed) <= 1, kind
    assert made["calls:none"].calls == ()
    assert len(made["calls:first doubled"].calls) == 2
    assert not made["value:in a tuple"].is_json
    assert made["malformed"].calls is None


@pytest.mark.parametrize(
    ("value", "schema", "language", "text"),
    [
        (5, {"type": "long"}, "java", "5L"),
        (True, {"type": "boolean"}, "java", "true"),
        (
            ["a"],
            {"type": "ArrayList", "items": {"type": "String"}},
            "java",
            'new ArrayList<>(Arrays.asList("a"))',
        ),
        ([1], {"type": "Array", "items": {"type": "integer"}}, "java", "new integer[]{1}"),
        ({"k": 1}, {"type": "HashMap"}, "java", 'new HashMap<String, Object>() {{ put("k", 1); }}'),
        ({"k": ["a"]}, {"type": "dict"}, "javascript", '{k: ["a"]}'),
        ([[1, 2]], {"type": "array", "items": {"type": "array"}}, "javascript", "[[1, 2]]"),
    ],
)
def test_json_values_are_written_as_source_text(agreement, value, schema, language, text):
    """In the form that upstream's readers take."""
    from bfcl_outputs import source_text

    assert source_text(value, schema, language) == text


def test_the_answers_of_an_evaluation_are_read(agreement, tmp_path):
    """By task, under the benchmark's own names; with arguments that can not be read, as None."""
    url = f"sqlite:///{tmp_path}/episodes.db"
    renamed = ToolDefinition(name="find__2", origin=Origin(original_name="find"))
    good = ToolCall(call_id="1", name="find__2", arguments={"town": "Moss"})
    broken = ToolCall(call_id="1", name="find__2", malformed="{")
    store = open_store(url)
    for number, (run, task, calls) in enumerate(
        [("a", "t1", (good,)), ("a", "t2", (good, broken)), ("a", "t3", ()), ("b", "t1", ())]
    ):
        turns = (Turn(message=AssistantMessage(tool_calls=calls)),)
        labels = {"run": run, "task": task}
        episode = Episode(episode_id=str(number), request="?", turns=turns, metadata=labels)
        store.append(episode)
    store.close()
    assert agreement.real_outputs(url, "a", [renamed]) == {
        "t1": [(("find", {"town": "Moss"}),)],
        "t2": [None],
        "t3": [()],
    }
