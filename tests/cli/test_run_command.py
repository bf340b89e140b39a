"""``agentkit run``."""

import pytest

from agentkit.library.opening import open_store


def test_tools_run_and_the_answer_is_on_stdout(invoke, tools_file, script):
    """The answer is data; what the tools did is told on stderr."""
    script(["add", {"a": 40}], "It is 42.")
    result = invoke("run", "What is 40 + 2?", "--tools", "desk.py:add", "--model", "script:a")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "It is 42.\n"
    assert "calls add(a=40)" in result.stderr
    assert "gives 42" in result.stderr
    assert "[finished, 2 turns" in result.stderr


def test_json_holds_output_calls_and_the_episode(as_json, tools_file, script):
    """--json prints one object, and the episode it names is in the store."""
    script(["add", {"a": 1}], "Three.")
    told = as_json("run", "1 + 2?", "--tools", "desk.py:add", "--model", "script:a")
    assert told["output"] == "Three."
    assert told["stop_reason"] == "finished"
    assert told["calls"][0]["arguments"] == {"a": 1}
    shown = as_json("episodes", "show", told["episode_id"])
    assert shown["request"] == "1 + 2?"


def test_refinement_is_told(invoke, tools_file, script):
    """With --refine adaptive the rounds are told and the refined call runs."""
    script(["add", {"a": 1}], ["add", {"a": 2}], ["add", {"a": 2}], "Four.")
    result = invoke(
        "run", "?", "--tools", "desk.py:add", "--refine", "adaptive", "--model", "script:a"
    )
    assert "refined in 2 rounds: the last two answers agreed" in result.stderr
    assert "calls add(a=2)" in result.stderr


def test_calls_to_tools_without_code_are_printed(invoke, tools_file, script):
    """--catalogue offers the library; a call to one of its tools goes to stdout and waits."""
    invoke("tools", "add", "desk.py")
    script(["add", {"a": 5}])
    result = invoke("run", "5 + 2?", "--catalogue", "--model", "script:a")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "add(a=5)\n"
    assert "[deferred" in result.stderr


def test_tools_without_code_are_hidden_and_counted(invoke, as_json, tools_file, script, tmp_path):
    """A line says how many there are and how to offer them; --catalogue needs no line."""
    far = 'from agentkit import tool\n\n@tool\ndef far() -> int:\n    """Far."""\n    return 1\n'
    (tmp_path / "far.py").write_text(far)
    assert invoke("tools", "add", "far.py").exit_code == 0
    script("Hi.", "Hi.", "Hi.")
    asked = ("run", "hi", "--model", "script:a", "--tools", f"{tools_file}:add")
    first, again = invoke(*asked).stderr, invoke(*asked).stderr
    assert "If it belongs to another project, name the right `store`" in first
    assert "another project" not in again
    assert "not offered: 1 tool of the library without code here; --catalogue offers all" in again
    assert "not offered" not in invoke(*asked, "--catalogue").stderr
    assert {one["name"] for one in as_json("tools", "list")} == {"far", "add"}


def test_a_destructive_tool_is_denied_without_a_terminal(invoke, tools_file, script):
    """Nobody can be asked in a pipe, so the tool does not run; --yes runs it."""
    script(["wipe", {"path": "x"}], "I could not.")
    result = invoke("run", "Delete x", "--tools", "desk.py:wipe", "--model", "script:a")
    assert "denied" in result.stderr
    script(["wipe", {"path": "x"}], "Done.")
    result = invoke("run", "Delete x", "--tools", "desk.py:wipe", "--model", "script:a", "--yes")
    assert "gives x is gone" in result.stderr


def test_a_session_is_continued(invoke, script, store_url):
    """Two runs in one session are one conversation."""
    for text in ("I am Ann.", "Who am I?"):
        script(f"You said: {text}")
        invoke("run", text, "--session", "s1", "--model", "script:a")
    store = open_store(store_url)
    newest = next(iter(store.select()))
    store.close()
    assert (newest.session_id, newest.history_length) == ("s1", 2)


def test_the_question_can_come_from_stdin(invoke, script):
    """A dash reads the question from stdin."""
    script("Hello.")
    assert invoke("run", "-", "--model", "script:a", typed="Hi\n").stdout == "Hello.\n"


@pytest.mark.parametrize("question", ["", "  "])
def test_an_empty_question_is_misuse(invoke, question):
    """Nothing to ask ends with status 2."""
    result = invoke("run", question, "--model", "script:a")
    assert result.exit_code == 2
    assert "the question is empty" in result.stderr


def test_a_model_that_fails_is_told_and_the_episode_is_kept(invoke, as_json, script):
    """The status is 1, stderr has the reason and the episode's id, and the store has the episode."""
    script()
    result = invoke("run", "Hi", "--model", "script:a")
    assert result.exit_code == 1
    assert "Error: the model 'script' failed" in result.stderr
    assert "Traceback" not in result.stderr
    (kept,) = as_json("episodes", "list")
    assert kept["stop_reason"] == "error"
    assert f"[error, episode {kept['episode_id']}]" in result.stderr
