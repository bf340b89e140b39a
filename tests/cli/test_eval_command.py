"""``agentkit eval``."""

from __future__ import annotations

import json

import pytest

TASKS = [
    {"id": "sum", "category": "easy", "request": "2 + 2?", "expects": {"number": "4"}},
    {"id": "product", "category": "easy", "request": "3 * 5?", "expects": {"number": "15"}},
    {"id": "power", "category": "hard", "request": "2 ** 10?", "expects": {"number": "1024"}},
]
DESK = '''
from agentkit import tool

@tool
def power(base: int, exponent: int) -> int:
    """One number to the power of another."""
    return base**exponent
'''


@pytest.fixture(autouse=True)
def tasks(tmp_path):
    """Three tasks in a file, one row that is none, and a tool in another file."""
    rows = [json.dumps(task) for task in TASKS] + ['{"id": "sum"}']
    (tmp_path / "tasks.jsonl").write_text("\n".join(rows) + "\n")
    (tmp_path / "rubric.jsonl").write_text(
        '{"id": "hi", "request": "Hi!", "expects": {"rubric": {"polite": "It is polite."}}}\n'
    )
    (tmp_path / "desk.py").write_text(DESK)


@pytest.fixture
def evaluate(invoke):
    """Evaluates the scripted model on the tasks, one at a time."""

    def run(*arguments):
        common = ("--model", "script:a", "--concurrency", "1")
        return invoke("eval", "tasks.jsonl", *common, *arguments)

    return run


def test_a_file_of_tasks_is_asked_and_counted(evaluate, script):
    """The table shows the accuracy, and the row that is no task is told with its line."""
    script("It is 4.", "16", "1024")
    result = evaluate()
    assert result.exit_code == 0, result.stderr
    assert "66.7%" in result.stdout
    assert "2 of 3" in result.stdout
    assert "response mismatch" in result.stdout
    assert "left out: tasks.jsonl, line 4" in result.stderr.replace("\n", " ")
    assert "agentkit episodes list --verdict failed --label run=" in result.stderr


def test_an_edited_file_is_another_run(evaluate, script, tmp_path):
    """Answers to other questions are not taken for those to the questions of now."""
    script("4", "15", "1024")
    one = json.loads(evaluate("--json").stdout)
    edited = (tmp_path / "tasks.jsonl").read_text().replace('"number": "4"', '"number": "5"')
    (tmp_path / "tasks.jsonl").write_text(edited)
    script("4", "15", "1024")
    other = json.loads(evaluate("--json").stdout)
    assert one["run"] != other["run"]
    assert (one["total"]["passed"], other["total"]["passed"]) == (3, 2)


def test_what_the_model_could_not_answer_is_told(evaluate, script):
    """Unfinished attempts end with status 1 and the error; the report counts the others."""
    script("4")  # and no more: the script raises
    result = evaluate()
    assert result.exit_code == 1
    told = " ".join(result.stderr.split())
    assert "the model failed in 2 attempts (last: " in told
    assert "the same command retries them" in told
    assert "100.0%" in result.stdout
    script("15", "1024")
    again = evaluate()
    assert again.exit_code == 0
    assert "1 were done before" in again.stderr


def test_two_runs_are_compared(evaluate, invoke, script, tmp_path):
    """The comparison pairs the tasks, says which were gained and lost, and can be a page."""
    script("4", "16", "0")
    assert "--compare" not in evaluate("--run", "before").stderr
    script("4", "15", "1024")
    assert "agentkit eval --compare before after" in evaluate("--run", "after").stderr
    result = invoke("eval", "--compare", "before", "after")
    assert result.exit_code == 0, result.stderr
    assert "before" in result.stdout
    assert "+66.7 points" in result.stdout
    again = invoke("eval", "--compare", "before", "after", "--json", "--report", "c.html")
    assert "+66.7 points" in (tmp_path / "c.html").read_text()
    told = json.loads(again.stdout)
    assert told["total"]["gained"] == ["power", "product"]


def test_reports_are_written_as_html_and_markdown(evaluate, script, tmp_path):
    """Both files hold the numbers, and the page needs nothing from elsewhere."""
    script("4", "15", "1024")
    result = evaluate("--report", "r.html", "--report", "r.md")
    assert result.exit_code == 0, result.stderr
    assert "100" in (tmp_path / "r.md").read_text()
    page = (tmp_path / "r.html").read_text()
    assert page.lower().startswith("<!doctype html>")
    assert 'src="http' not in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("eval",), "give a BENCHMARK"),
        (("eval", "no-such-benchmark"), "there is no benchmark 'no-such-benchmark'"),
        (("eval", "tasks.jsonl", "--category", "odd"), "has no category 'odd'; it has easy, hard"),
        (("eval", "tasks.jsonl", "--report", "r.pdf"), "r.pdf is neither"),
        (("eval", "tasks.jsonl", "--report", "no/r.md"), "there is no folder no; make it"),
        (("eval", "rubric.jsonl", "--model", "script:a"), "1 of 1 tasks are judged by a rubric"),
        (("eval", "tasks.jsonl", "--compare", "a", "b"), "not both"),
    ],
)
def test_misuse_is_told_before_anything_is_asked(invoke, script, arguments, message):
    """What cannot work ends with status 2 and says what to do."""
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
