"""``agentkit run``, ``chat``, ``eval``, ``evolve`` and ``demo``."""

import importlib.util
import json
import os
import re
from dataclasses import replace
from itertools import combinations

import pytest

from agentkit import Episode, open_store, resolve_model
from agentkit.cli.demo import Demo, Questions, draw_questions
from agentkit.evolution import ToolManager


def test_tools_run_and_the_answer_is_on_stdout(invoke, tools_file, script):
    """The answer is data; what the tools did is told on stderr."""
    script(["add", {"a": 40}], "It is 42.")
    result = invoke("run", "What is 40 + 2?", "--tools", "desk.py:add", "--model", "script:a")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "It is 42.\n"
    assert "calls add(a=40)" in result.stderr
    assert "gives 42" in result.stderr
    assert "[finished, 2 turns" in result.stderr


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


DEPS = """
from agentkit import RunContext, tool

def deps_for(request) -> str:
    return "Ada"

@tool
def greet(ctx: RunContext[str]) -> str:
    '''Greet.'''
    return f"Hi {ctx.deps}"
"""


def test_deps_are_made_by_a_function_of_a_file(invoke, tmp_path, script):
    """--deps names what makes them; a name that is no function is refused."""
    (tmp_path / "shop_with_deps.py").write_text(DEPS)
    script(["greet", {}], "Greeted.")
    options = ["--tools", "shop_with_deps.py", "--model", "script:a", "--deps"]
    told = invoke("run", "Greet", *options, "shop_with_deps.py:deps_for")
    assert "gives Hi Ada" in told.stderr
    wrong = invoke("run", "Greet", *options, "shop_with_deps.py:nobody")
    assert "names no function; write FILE.py:FUNCTION" in wrong.stderr


@pytest.mark.parametrize(("typed", "told"), [("y", "gives x is gone"), ("n", "denied: The user")])
def test_a_person_approves_or_refuses(invoke, tools_file, script, monkeypatch, typed, told):
    """At a terminal somebody is asked whether a destructive tool may run."""
    monkeypatch.setattr("agentkit.cli.run.is_interactive", lambda: True)
    script(["wipe", {"path": "x"}], "Well.")
    options = ("--tools", "desk.py:wipe", "--model", "script:a")
    result = invoke("run", "Delete x", *options, typed=f"{typed}\n")
    assert 'Run wipe(path="x")? [y/N]' in result.stderr
    assert told in result.stderr


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


def test_without_a_question_each_line_is_a_turn_of_one_conversation(invoke, as_json, script):
    """Answers go to stdout, and the second turn knows the first."""
    script("Hello Ann.", "You are Ann.")
    result = invoke("run", "--model", "script:a", typed="I am Ann.\n\nWho am I?\n")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "Hello Ann.\nYou are Ann.\n"
    newest, oldest = as_json("episodes", "list")
    assert newest["session_id"] == oldest["session_id"]


def test_an_approval_at_the_terminal_shows_the_whole_call(invoke, tools_file, script, monkeypatch):
    """No run of blanks pushes a part of it out of sight."""
    monkeypatch.setattr("agentkit.cli.run.is_interactive", lambda: True)
    script(["wipe", {"path": "x" + " " * 900 + "/etc"}], "Done.")
    words = ("run", "Delete x", "--tools", "desk.py:wipe", "--model", "script:a")
    result = invoke(*words, typed="n\n")
    assert 'Run wipe(path="x ⟨900 blanks⟩ /etc")? [y/N]' in result.stderr


def test_no_name_of_a_model_begins_a_line_of_its_own(invoke, as_json, tools_file, script):
    """What it calls a tool or an argument stands as JSON where it holds a break."""
    script(["wipe\nForged: all is well", {"a\u2028Forged": 1}], "Done.")
    result = invoke("run", "Delete x", "--tools", "desk.py:wipe", "--model", "script:a")
    shown = invoke("episodes", "show", as_json("episodes", "list")[0]["episode_id"]).stdout
    assert '"wipe\\nForged: all is well"("a\\u2028Forged"=1)' in shown
    lines = [result.stdout, result.stderr, shown]
    assert not [line for text in lines for line in text.splitlines() if line.startswith("Forged")]


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


@pytest.fixture
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


@pytest.mark.usefixtures("tasks")
def test_a_file_of_tasks_is_asked_and_counted(evaluate, script, tmp_path):
    """Table and reports show the accuracy, and the row that is no task is told with its line."""
    script("It is 4.", "16", "1024")
    result = evaluate("--report", "r.html", "--report", "r.md")
    assert result.exit_code == 0, result.stderr
    assert "66.7%" in result.stdout
    assert "66.7" in (tmp_path / "r.md").read_text()
    assert (tmp_path / "r.html").read_text().lower().startswith("<!doctype html>")
    assert "2 of 3" in result.stdout
    assert "response mismatch" in result.stdout
    assert "left out: tasks.jsonl, line 4" in result.stderr.replace("\n", " ")
    assert "agentkit episodes list --verdict failed --label run=" in result.stderr


@pytest.mark.usefixtures("tasks")
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


@pytest.mark.usefixtures("tasks")
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


@pytest.mark.usefixtures("tasks")
def test_two_runs_are_compared(evaluate, invoke, script, tmp_path):
    """The comparison pairs the tasks, says which were gained and lost, and can be a page."""
    script("4", "16", "0")
    evaluate("--run", "before")
    script("4", "15", "1024")
    evaluate("--run", "after")
    result = invoke("eval", "--compare", "before", "after")
    assert result.exit_code == 0, result.stderr
    assert "before" in result.stdout
    assert "+66.7 points" in result.stdout
    again = invoke("eval", "--compare", "before", "after", "--json", "--report", "c.html")
    assert "+66.7 points" in (tmp_path / "c.html").read_text()
    told = json.loads(again.stdout)
    assert told["total"]["gained"] == ["power", "product"]


@pytest.mark.usefixtures("tasks")
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


BANK = '''
from agentkit import ModelRetry, tool

@tool(effects=("reads",))
def loan_rate(euro: int, periods: int) -> float:
    """What a loan costs a month.

    Args:
        euro: The sum.
        periods: Term in months.
    """
    if periods not in (36, 48, 60):
        raise ModelRetry(f"periods must be one of 36, 48, 60, got {periods}")
    return round(euro / periods, 2)
'''


def task(name, euro):
    """A task whose right answer is a loan over 48 months."""
    gold = {"name": "loan_rate", "arguments": {"euro": euro, "periods": 48}}
    return json.dumps(
        {"id": name, "request": f"{euro} over 50 months?", "expects": {"calls": [gold]}}
    )


@pytest.fixture
def failed(tmp_path, invoke, script):
    """A library with the bank's tool, and a run in which three customers were refused."""
    (tmp_path / "bank.py").write_text(BANK)
    seen = [task(f"seen-{at}", 1_000 + at) for at in range(3)]
    (tmp_path / "seen.jsonl").write_text("\n".join(seen) + "\n")
    assert invoke("tools", "add", "bank.py").exit_code == 0
    script(*(line for at in range(3) for line in calling(1_000 + at, (50, 40, 24)[at])))
    asked = invoke(
        *("eval", "seen.jsonl", "--environment", "bank.py", "--model", "script:a"),
        *("--concurrency", "1"),
    )
    assert asked.exit_code == 0, asked.stderr


def manager():
    """The manager of the store that the commands are given."""
    return ToolManager(open_store(os.environ["AGENTKIT_STORE"]))


def ledger():
    """What its events come to."""
    return manager().ledger


def calling(euro, periods):
    """A call, and what is said about its result."""
    return [["loan_rate", {"euro": euro, "periods": periods}], "So it is."]


@pytest.mark.usefixtures("failed")
def test_without_tasks_a_person_decides(invoke):
    """Where nothing can be compared, the proposal waits for an approval."""
    result = invoke("evolve")
    assert "passed the checks" in result.stdout
    [waits] = ledger().proposals.values()
    assert waits.state == "validated"
    assert f"next: agentkit review show {waits.proposal_id}" in result.stderr


@pytest.mark.usefixtures("failed")
def test_nothing_is_learned_from_episodes_of_others(invoke, as_json, tmp_path):
    """Imported ones are counted and left aside, until somebody vouches for them."""
    made = ("--output", "theirs.jsonl", "--store", "sqlite:///.agentkit/evaluations.db")
    assert invoke("episodes", "export", *made).exit_code == 0
    fresh = ("--store", f"sqlite:///{tmp_path / 'fresh.db'}")
    assert invoke("tools", "add", "bank.py", *fresh).exit_code == 0
    assert invoke("import", "theirs.jsonl", *fresh).exit_code == 0
    kept = ("evolve", "--answers", "sqlite:///absent.db", *fresh)
    assert "skipped 3 imported episodes" in invoke(*kept).stderr
    told = as_json(*kept, "--full")
    assert (told["looked_at"]["episodes"], told["looked_at"]["imported"]) == (0, 3)
    assert (told["proposals"], told["learned"]["uses"]) == ([], 0)
    assert [one["state"] for one in as_json(*kept, "--own")["proposals"]] == ["validated"]


@pytest.mark.usefixtures("failed")
def test_tools_that_the_library_does_not_know(invoke, tmp_path):
    """They are named with the next command, exit status 1; with their code they teach at once."""
    fresh = f"sqlite:///{tmp_path / 'fresh.db'}"
    open_store(fresh).close()
    result = invoke("evolve", "--store", fresh)
    assert result.exit_code == 1
    assert "loan_rate: 3 calls, 3 failed, and the library has no such tool" in result.stdout
    assert "agentkit evolve --tools FILE.py" in result.stderr
    taught = invoke("evolve", "--store", fresh, "--tools", "bank.py")
    assert taught.exit_code == 0, taught.stderr
    assert "registered 1 tool" in taught.stderr
    assert "passed the checks, waiting" in taught.stdout


@pytest.mark.usefixtures("failed")
def test_a_round_keeps_to_tools_or_to_instructions(as_json):
    """Both are looked at unless one is named; failures of tools teach nothing of instructions."""
    only = as_json("evolve", "--subjects", "instructions")
    assert (only["proposals"], only["looked_at"]["episodes"]) == ([], 3)
    assert len(as_json("evolve", "--subjects", "tools")["proposals"]) == 1


@pytest.mark.usefixtures("failed")
def test_a_round_reads_what_is_new_since_the_last_one(invoke, as_json):
    """``--full`` reads everything, and changes nothing."""
    first = as_json("evolve")
    assert (first["looked_at"]["episodes"], len(first["proposals"])) == (3, 1)
    again = invoke("evolve")
    assert "looked at 0 episodes, 0 judged, 0 went wrong; read 3 of earlier rounds" in again.stderr
    assert "passed the checks, waiting" in again.stdout  # what waits is looked at in each round
    whole = as_json("evolve", "--full")
    assert (whole["looked_at"]["episodes"], whole["looked_at"]["earlier"]) == (3, 0)
    assert len(ledger().proposals) == 1


def test_a_link_for_the_folder_of_a_project_is_refused(invoke, tmp_path, monkeypatch):
    """The cursor of a store elsewhere lies in ``.agentkit`` too, and leaves no project by it."""
    (outside := tmp_path / "outside").mkdir()
    (project := tmp_path / "project").mkdir()
    (project / ".agentkit").symlink_to(outside)
    monkeypatch.chdir(project)
    store = open_store("dir:library")
    store.append(Episode(episode_id="e1", request="Hi"))
    store.close()
    result = invoke("evolve", "--only", "evidence", "--store", "dir:library")
    assert ".agentkit is a link" in result.stderr
    assert not [*outside.iterdir()]


@pytest.mark.usefixtures("failed")
def test_a_round_names_its_proposers_and_gepa_says_what_it_needs(invoke):
    """Who looked is told with the cost; GEPA lacks a model, then the package."""
    told = invoke("evolve").stderr
    assert re.search(r"evidence: 1 suggestion, 1 new \(\d+\.\d s\)", told)
    assert "worth: no suggestion" in told
    asked = ("evolve", "--gepa", "9", "--tool", "loan_rate", "--tasks", "seen.jsonl")
    assert "--gepa needs --tasks, --feedback-model and one --tool" in invoke(*asked).stderr
    if importlib.util.find_spec("gepa") is None:
        without = invoke(*asked, "--feedback-model", "script:a")
        assert without.exit_code == 1
        assert 'pip install "agentkit-evolve[gepa]"' in " ".join(without.stderr.split())


READER = '''
import re
from agentkit.messages import ToolCall
from agentkit.testing import FunctionModel

SPOKEN = {
    "three years": (3, 36), "four years": (4, 48), "five years": (5, 60),
    "small": ("small", "small-36"), "medium": ("medium", "medium-40"), "large": ("large", "large-44"),
    "first": ("first", "1st"), "second": ("second", "2nd"), "third": ("third", "3rd"),
    "fourth": ("fourth", "4th"), "red": ("red", "red-1"), "green": ("green", "green-2"),
    "blue": ("blue", "blue-3"), "yellow": ("yellow", "yellow-4"),
    **{f"{n} percent": (float(n), n / 100) for n in (10, 15, 20, 25, 30, 40)},
}

def answer(request):
    """What the question says, in the words of the schema where that has any."""
    text = request.messages[-1].text
    properties = request.tools[0].parameters_schema["properties"]
    plain, hidden = properties
    number = re.search(r"\\d{2,}(?! percent)\\b", text)[0]
    said, learned = next(both for words, both in SPOKEN.items() if words in text)
    has_learned = {"enum", "maximum"} & properties[hidden].keys()
    arguments = {plain: int(number), hidden: learned if has_learned else said}
    return [ToolCall(call_id="1", name=request.tools[0].name, arguments=arguments)]

def open_reader(name):
    return FunctionModel(answer, name="reader")
'''


@pytest.fixture
def reader(invoke, plug_in):
    """The double as a plugin."""
    plug_in("agentkit_reader", READER, "[agentkit.models]\nreader = agentkit_reader:open_reader\n")


@pytest.mark.usefixtures("reader")
def test_the_demo_shows_the_whole_loop(invoke):
    """Refusals, promotions, a diff, the gain, the rollback, a table and what is next."""
    result = invoke("demo", "--model", "reader:a")
    assert result.exit_code == 0, result.stderr
    steps = [
        "periods must be one of 36, 48, 60, got",
        "0 of 30 right",
        "promoted  order_shirts",
        "+ enum: [36, 48, 60]",
        "30 of 30 right",
        "agentkit rollback",
        "3 of 3 answers are the old ones again",
        "95 % interval",
        "agentkit init",
        "agentkit eval",
        "agentkit evolve",
    ]
    places = [result.stdout.find(step) for step in steps]
    assert -1 not in places, steps[places.index(-1)]
    assert places == sorted(places)


@pytest.mark.parametrize("seed", range(5))
def test_parts_share_no_question_and_no_number(seed):
    """What is learned from and what decides is never what is reported."""
    drawn = draw_questions(seed, 50)
    parts = (drawn.learn, drawn.gate, drawn.score)
    for one, other in combinations(parts, 2):
        assert not {t.request for t in one.tasks} & {t.request for t in other.tasks}
        assert not {t.task_id for t in one.tasks} & {t.task_id for t in other.tasks}
    assert not any(task.expects for task in drawn.learn.tasks)
    assert all(task.expects for part in parts[1:] for task in part.tasks)


@pytest.mark.long
@pytest.mark.weights
async def test_the_real_model_is_refused_and_learns():
    """SmolLM2 breaks a hidden rule, and the learned definition makes it right on other questions."""
    drawn = draw_questions(20, 10)

    def about(benchmark):
        tasks = [task for task in benchmark.tasks if task.category == "order_shirts"]
        return replace(benchmark, tasks=tuple(tasks))

    questions = Questions(**{one: about(getattr(drawn, one)) for one in ("learn", "gate", "score")})
    store = open_store("memory:")
    model = resolve_model("local:smollm2-135m")
    demo = Demo(store, model, questions)
    before = await demo.score("before")
    outcome = await demo.evolve()
    after = await demo.score("after")
    model.close()
    assert [one.record.tool_name for one in outcome.promoted] == ["order_shirts"]
    assert before.total.passed < after.total.passed
