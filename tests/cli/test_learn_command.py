"""``agentkit tools learn``."""

import pytest

from agentkit import Episode, ToolDefinition, open_store
from agentkit.episodes import Turn, Verdict
from agentkit.episodes.jsonl import write_episodes
from agentkit.library import LibraryChange
from agentkit.messages import AssistantMessage, ToolCall, ToolResult


def episode(number, request, *, passed=True, name="weather", arguments=None, value="sunny"):
    """One request, one call."""
    call = ToolCall(call_id="a", name=name, arguments=arguments or {"city": f"City {number}"})
    result = ToolResult(call_id="a", name=name, status="ok", value=value)
    return Episode(
        episode_id=f"e{number}",
        request=request,
        turns=(Turn(message=AssistantMessage(tool_calls=(call,)), results=(result,)),),
        verdict=None if passed is None else Verdict(passed=passed),
    )


LIVED = [
    episode(1, "Do I need an umbrella?"),
    episode(2, "Umbrella or coat?"),
    episode(3, "Is it a day for sandals?", passed=None),
    episode(4, "Mail it to ann@example.org"),
    episode(5, "An umbrella would be what?", passed=False),
]


@pytest.fixture
def remembered(store_url):
    """A library of one tool, and five episodes."""
    store = open_store(store_url)
    weather = ToolDefinition.from_schema("weather", "The weather in a city.", {})
    store.commit(LibraryChange(proposal_id="p", upserts=(weather,)), expected_version=0)
    for one in LIVED:
        store.append(one)
    store.close()


def test_it_learns_once_and_tells_why_not(invoke, remembered, as_json):
    """A table of tools, a table of words that no tool has, and the reasons on stderr."""
    result = invoke("tools", "learn")
    assert result.exit_code == 0
    assert "weather" in result.stdout
    assert "2 examples learned by 1 tool from 3 calls, library version 2" in result.stderr
    assert "1 with a private request" in result.stderr
    assert "1 episode without a verdict left out" in result.stderr
    assert [one["query"] for one in as_json("tools", "show", "weather")["examples"]] == [
        "Do I need an umbrella?",
        "Umbrella or coat?",
    ]
    again = invoke("tools", "learn")
    assert "0 examples learned by 0 tools from 3 calls, library version 2" in again.stderr
    assert "2 learned before" in again.stderr


def test_a_dry_run_changes_nothing(invoke, remembered, as_json):
    """It shows what would be learned, and the words that no tool has."""
    result = invoke("tools", "learn", "--dry-run")
    assert "umbrella" in result.stdout
    assert "2 examples to be learned by 1 tool from 3 calls, library version 1" in result.stderr
    assert "examples" not in as_json("tools", "show", "weather")


def test_json_holds_everything(remembered, as_json):
    """What was added, what not and why, and the unmatched words."""
    record = as_json("tools", "learn", "--dry-run", "--unjudged")
    assert (record["version"], record["is_written"], record["uses"]) == (1, False, 4)
    assert [one["query"] for one in record["added"]["weather"]] == [
        "Do I need an umbrella?",
        "Umbrella or coat?",
        "Is it a day for sandals?",
    ]
    assert record["evidence"] == ["e1", "e2", "e3"]
    assert [(one["episode_id"], one["reason"]) for one in record["skipped"]] == [("e4", "private")]
    assert record["unmatched"] == [
        {
            "word": "umbrella",
            "episodes": 3,
            "failed": 1,
            "requests": [
                "An umbrella would be what?",
                "Umbrella or coat?",
                "Do I need an umbrella?",
            ],
        }
    ]


def test_private_requests_are_kept_on_demand(remembered, as_json):
    """The flag turns the check off."""
    record = as_json("tools", "learn", "--keep-private", "--most", "9")
    assert "Mail it to ann@example.org" in [one["query"] for one in record["added"]["weather"]]


def test_a_cap_is_told(invoke, remembered):
    """What did not fit is counted."""
    result = invoke("tools", "learn", "--most", "1")
    assert "1 beyond the most examples of a tool" in result.stderr


def test_episodes_from_a_file(invoke, remembered, tmp_path, as_json):
    """The store's own are not looked at then."""
    write_episodes(tmp_path / "lived.jsonl", [episode(9, "Windy there?")])
    record = as_json("tools", "learn", "--from", str(tmp_path / "lived.jsonl"))
    assert record["evidence"] == ["e9"]


def test_code_of_pure_tools_keeps_their_results(invoke, tmp_path, store_url, as_json):
    """With the code at hand a result that is given again is kept."""
    (tmp_path / "sums.py").write_text('''
from agentkit import Effects, tool

@tool(effects=Effects.pure())
def double(x: float) -> float:
    """Twice a number."""
    return 2 * x
''')
    assert invoke("tools", "add", "sums.py").exit_code == 0
    store = open_store(store_url)
    store.append(episode(1, "Two of them?", name="double", arguments={"x": 3}, value=6))
    store.close()
    assert not as_json("tools", "learn", "--dry-run")["added"]["double"][0]["is_whole"]
    assert as_json("tools", "learn", "--tools", "sums.py")["added"]["double"][0]["is_whole"]


def test_nothing_to_learn_from(invoke, remembered, tmp_path):
    """An empty file is no error."""
    (tmp_path / "none.jsonl").write_text("")
    result = invoke("tools", "learn", "--from", "none.jsonl")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "0 examples learned by 0 tools from 0 calls, library version 1" in result.stderr


def test_without_a_store_it_says_so(invoke):
    """Nothing is made by looking."""
    result = invoke("tools", "learn")
    assert result.exit_code != 0
    assert "there is no store" in result.stderr


def test_a_file_without_any_episode_is_an_error(invoke, remembered, tmp_path) -> None:
    """Whoever names the wrong file is told so, line by line, and the exit status says it too."""
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text('{"city": "Bonn"}\nnot json\n', encoding="utf-8")
    result = invoke("tools", "learn", "--from", str(wrong))
    assert result.exit_code == 1
    assert "not an episode (it has no 'format')" in result.stderr
    assert "holds no episode: 2 lines skipped" in result.stderr
