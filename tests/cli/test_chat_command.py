"""``agentkit chat``, fed through a pipe."""

import json


def test_each_line_is_a_turn_of_one_conversation(invoke, as_json, script):
    """Answers go to stdout, and the second turn knows the first."""
    script("Hello Ann.", "You are Ann.")
    result = invoke("chat", "--model", "script:a", typed="I am Ann.\n\nWho am I?\n")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "Hello Ann.\nYou are Ann.\n"
    newest, oldest = as_json("episodes", "list")
    assert newest["session_id"] == oldest["session_id"]
    assert f"agentkit chat --session {newest['session_id']}" in result.stderr


def test_commands_are_not_sent_to_the_model(invoke, as_json, tools_file, script):
    """/help, /tools, /new and /exit are answered here; what follows /exit is not read."""
    script("One.", "Two.")
    typed = "/help\n/tools\nfirst\n/new\nsecond\n/exit\nthird\n"
    result = invoke("chat", "--tools", "desk.py", "--model", "script:a", typed=typed)
    assert result.exit_code == 0
    assert result.stdout == "One.\nTwo.\n"
    assert "/tools: what is offered" in result.stderr
    assert "add\nwipe" in result.stderr
    newest, oldest = as_json("episodes", "list")
    assert newest["session_id"] != oldest["session_id"]


def test_a_failure_ends_a_pipe_with_status_1(invoke, script):
    """When the last message failed, the status says so, and the error is one line."""
    script("Hello.")
    result = invoke("chat", "--model", "script:a", typed="Hi\nMore\n")
    assert result.exit_code == 1
    assert result.stdout == "Hello.\n"
    assert "the model 'script' failed" in result.stderr


def test_destructive_tools_are_denied_in_a_pipe(invoke, tools_file, script):
    """Nobody is there to ask."""
    script(["wipe", {"path": "x"}], "I may not.")
    result = invoke("chat", "--tools", "desk.py", "--model", "script:a", typed="Delete x\n")
    assert "denied" in result.stderr
    assert result.stdout == "I may not.\n"


def test_answers_as_lines_of_json(invoke, tools_file, script):
    """With --json each answer is a line with its calls and the library version it used."""
    script(["add", {"a": 1, "b": 2}], "3", "Bye.")
    result = invoke(
        "chat", "--json", "--tools", "desk.py", "--model", "script:a", typed="1+2\nBye\n"
    )
    first, second = map(json.loads, result.stdout.splitlines())
    assert (first["output"], second["output"]) == ("3", "Bye.")
    assert first["calls"][0]["name"] == "add"
    assert first["library_version"] == 1
