"""``agentkit run`` and ``agentkit chat``."""

import json


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


DEPS = '''
from dataclasses import dataclass
from agentkit import RunContext, tool

@dataclass
class Shop:
    customer: str

def deps_for(request) -> Shop:
    return Shop("Ada" if request is None else "Bob")

@tool
def greet(ctx: RunContext[Shop]) -> str:
    """Greet."""
    return f"Hi {ctx.deps.customer}"
'''


def test_deps_are_made_by_a_function_of_a_file(invoke, tmp_path, monkeypatch, script):
    """--deps names what makes them; a name that is no function is refused."""
    (tmp_path / "shop_with_deps.py").write_text(DEPS)
    monkeypatch.chdir(tmp_path)
    script(["greet", {}], "Greeted.")
    options = ["--tools", "shop_with_deps.py", "--model", "script:a"]
    result = invoke("run", "Greet", *options, "--deps", "shop_with_deps.py:deps_for")
    assert "gives Hi Ada" in result.stderr
    script(["greet", {}], "Greeted.")
    result = invoke("chat", *options, "--deps", "shop_with_deps.py:deps_for", typed="Greet\n")
    assert "gives Hi Ada" in result.stderr
    wrong = invoke("run", "Greet", *options, "--deps", "shop_with_deps.py:nobody")
    assert "names no function; write FILE.py:FUNCTION" in wrong.stderr


def test_calls_to_tools_without_code_are_printed(invoke, tools_file, script):
    """--catalogue offers the library; a call to one of its tools goes to stdout and waits."""
    invoke("tools", "add", "desk.py")
    script(["add", {"a": 5}])
    result = invoke("run", "5 + 2?", "--catalogue", "--model", "script:a")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "add(a=5)\n"
    assert "[deferred" in result.stderr


def test_a_destructive_tool_is_denied_without_a_terminal(invoke, tools_file, script):
    """Nobody can be asked in a pipe, so the tool does not run; --yes runs it."""
    script(["wipe", {"path": "x"}], "I could not.")
    result = invoke("run", "Delete x", "--tools", "desk.py:wipe", "--model", "script:a")
    assert "denied" in result.stderr
    script(["wipe", {"path": "x"}], "Done.")
    result = invoke("run", "Delete x", "--tools", "desk.py:wipe", "--model", "script:a", "--yes")
    assert "gives x is gone" in result.stderr


def test_the_question_can_come_from_stdin(invoke, script):
    """A dash reads the question from stdin."""
    script("Hello.")
    assert invoke("run", "-", "--model", "script:a", typed="Hi\n").stdout == "Hello.\n"


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


def test_what_is_piped_in_approves_nothing(invoke, tools_file, script):
    """In a pipe nobody is there to ask: the next line is a message, whatever it says."""
    script(["wipe", {"path": "x"}], "I may not.", "Yes to what?")
    result = invoke("chat", "--tools", "desk.py", "--model", "script:a", typed="Delete x\ny\n")
    assert "denied" in result.stderr
    assert result.stdout == "I may not.\nYes to what?\n"
