"""Multi-turn tasks of BFCL: how they are read, the worlds that they run in, and verdicts."""

import json
import random
import shutil
import sys
import threading
from functools import partial
from types import SimpleNamespace

import pytest

from agentkit import open_store
from agentkit.errors import DatasetError, MissingExtraError, ToolFailed
from agentkit.evaluation import AnyCall, FinalState, GoldCall, Task
from agentkit.evaluation.runner import evaluate
from agentkit.messages import ToolCall, UserMessage
from agentkit.testing import FunctionModel
from agentkit.tools import ToolDefinition
from agentkit_bench.bfcl_multi_turn import (
    ADDED_FUNCTIONS_REQUEST,
    UnreadableGoldError,
    find_files,
    load_bfcl_multi_turn,
    parse_gold,
)
from agentkit_bench.bfcl_simulators import SimulatorModules, refusal


def rewrite(path, change):
    """Change the rows of a file."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(row) + "\n" for row in change(rows)))


def reasons(folder, simulators):
    """What is left out, and why."""
    benchmark = load_bfcl_multi_turn(folder, simulators=simulators)
    return {one.where: one.reason for one in benchmark.left_out}


def test_user_turns_expect_what_the_gold_calls_do(task_of):
    """A turn with gold calls expects their state and results, and a call at all."""
    first, second, third = task_of("multi_turn_base_0").turns
    assert first.request == "File an empty paper named 'Plan' and show me what is there."
    gold = (GoldCall(name="file_paper", arguments={"title": "Plan"}), GoldCall(name="list_papers"))
    assert first.expects == (AnyCall(), FinalState(calls=gold, responses=True))
    assert second.expects[1].calls[0].arguments == {"title": "Plan", "drawer": "archive"}
    assert third.expects == ()


def test_missing_functions_are_offered_later(task_of):
    """A held-out tool is offered from its turn on, which says so in upstream's words."""
    first, second = task_of("multi_turn_miss_func_0").turns
    assert "shred" not in first.offers
    assert first.expects == ()
    assert (second.offers, second.request) == (("shred",), ADDED_FUNCTIONS_REQUEST)


def test_a_broken_row_is_left_out_by_its_line(sample_folder, simulators):
    """A row that is no question costs its line and no other."""
    path = sample_folder / "BFCL_v4_multi_turn_base.json"
    path.write_text(path.read_text() + '{"id": "multi_turn_base_3"\n{"id": 3}\n')
    assert list(reasons(sample_folder, simulators)) == [f"{path.name}, line {n}" for n in (4, 5)]


@pytest.mark.parametrize(
    ("gold", "reason"),
    [
        ([["file_paper(", "list_papers()"], [], []], "is no Python"),
        ([["burn(title='Plan')"], [], []], "a tool that no simulator has"),
        ([["stamp(number='three')"], [], []], "breaks the tool's own schema"),
        ([["stamp(number=open('x'))"], [], []], "no plain value"),
        ([["list_papers()"]], "its gold answer has 1"),
    ],
)
def test_gold_that_can_not_be_followed_is_left_out(sample_folder, simulators, gold, reason):
    """A question whose gold is no call that an agent could make is named with its reason."""
    path = sample_folder / "possible_answer" / "BFCL_v4_multi_turn_base.json"
    rewrite(path, lambda rows: [{**rows[0], "ground_truth": gold}, *rows[1:]])
    left_out = reasons(sample_folder, simulators)
    assert reason in left_out["multi_turn_base_0"]
    assert len(left_out) == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"involved_classes": ["Typewriter"]}, "['Typewriter'], which are not known"),
        ({"missed_function": {"1": ["burn"]}}, "['burn'], which no simulator has"),
        ({"question": [[], []]}, "0 messages and 0 added tools"),
        ({"question": []}, "0 user turns"),
    ],
)
def test_a_question_that_can_not_be_asked_is_left_out(sample_folder, simulators, change, reason):
    """What the simulators or a conversation can not give is no task."""
    path = sample_folder / "BFCL_v4_multi_turn_miss_func.json"
    rewrite(path, lambda rows: [{**rows[0], **change}])
    assert reason in reasons(sample_folder, simulators)["multi_turn_miss_func_0"]


def test_a_folder_without_questions_is_an_error(sample_folder, simulators):
    """The message says how many rows were left out, and why the first was."""
    for path in sample_folder.glob("BFCL_v4_*.json"):
        path.write_text("{}\n")
    with pytest.raises(DatasetError, match=r"4 were left out; the first of them: BFCL_v4"):
        load_bfcl_multi_turn(sample_folder, simulators=simulators)


def test_what_a_simulator_lacks_is_told_at_once(sample_folder, simulators, monkeypatch):
    """A missing package, class or method stops the loading, not the thousandth question."""
    path = sample_folder / "func_source_code" / "counter.py"
    text = path.read_text()
    monkeypatch.setitem(sys.modules, "mpmath", None)
    path.write_text(f"import mpmath\n{text}")
    with pytest.raises(MissingExtraError, match="pip install agentkit-bench"):
        load_bfcl_multi_turn(sample_folder, simulators=simulators)
    path.write_text(text.replace("def exact", "def inexact"))
    with pytest.raises(DatasetError, match=r"Counter has no method for the tools \['exact'\]"):
        load_bfcl_multi_turn(sample_folder, simulators=simulators)
    path.write_text(text.replace("class Counter", "class Abacus"))
    with pytest.raises(DatasetError, match="has no class Counter"):
        load_bfcl_multi_turn(sample_folder, simulators=simulators)


def test_the_package_is_read_as_it_lies(sample_folder, simulators, tmp_path):
    """An installed package, or the folder it lies in, is as good as what was fetched."""
    package = tmp_path / "site" / "bfcl_eval"
    code = package / "eval_checker" / "multi_turn_eval" / "func_source_code"
    shutil.copytree(sample_folder / "func_source_code", code)
    shutil.rmtree(sample_folder / "func_source_code")
    shutil.copytree(sample_folder, package / "data")
    for folder in (package, package.parent):
        assert len(load_bfcl_multi_turn(folder, simulators=simulators).tasks) == 6


NAMES = ("first", "second", "third")
TOOL = ToolDefinition.from_schema(
    "act", "", {"type": "object", "properties": {name: {} for name in NAMES}}
)
TOOLS = {"act": TOOL}


def test_a_gold_call_is_read():
    """Plain values of any depth, with or without names."""
    arguments = {"first": -1.5, "second": [None, True, {"a": "b"}], "third": "x"}
    written = "act(-1.5, [None, True, {'a': 'b'}], third='x')"
    assert parse_gold(written, TOOLS) == GoldCall(name="act", arguments=arguments)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("act(1, first=2)", "gives 'first' twice"),
        ("act(fourth=1)", "has no such parameter"),
        ("act(1, 2, 3, 4)", "has 4 arguments"),
        ("act(first={1, 2})", "JSON has no set"),
        ("act(first=act())", "no plain value"),
        ("world.act(first=1)", "no simulator has"),
        ("act", "is not a call"),
        ("act(first=" + "-" * 100_000 + "1)", "is no Python"),
        ("act(first='\0')", "is no Python"),
    ],
)
def test_what_is_no_call_of_the_tool_is_refused(text, reason):
    """The reason says what is wrong with it."""
    with pytest.raises(UnreadableGoldError, match=reason):
        parse_gold(text, TOOLS)


@pytest.fixture
def world(sample, task_of):
    """The world of a task, with a function for each of its tools."""

    def made(task_id):
        environment = sample.environment(task_of(task_id))
        return environment, functions(environment)

    return made


def called(environment, tool, /, **arguments):
    """The result of a call."""
    return environment.call(tool, arguments)


def functions(environment):
    """The tools of a world as functions of keywords."""
    return {tool.name: partial(called, environment, tool.name) for tool in environment.tools()}


def test_each_attempt_has_a_world_of_its_own(world):
    """What one attempt does is not seen by another."""
    first, tools = world("multi_turn_base_0")
    second, _ = world("multi_turn_base_0")
    before = second.state()
    assert first.state() == before
    tools["shred"](title="Note")
    assert second.state() == before != first.state()


def test_state_is_public_attributes_by_class(world):
    """Names with an underscore, and the way up from a drawer, are left out; all of it is JSON."""
    environment, tools = world("multi_turn_base_0")
    tools["stamp"](number=11)
    tools["stamp"](number=2)
    state = environment.state()
    assert json.loads(json.dumps(state)) == state
    assert state == {
        "FilingCabinet": {
            "long_context": False,
            "owner": "Kari",
            "stamps": [2, 11],
            "by_number": {"[7]": "lease"},
            "drawers": {
                "desk": {"name": "desk", "papers": {"Note": "Call Ola.", "Lease": "Until May."}},
                "archive": {"name": "archive", "papers": {}},
            },
        }
    }


@pytest.mark.parametrize(
    ("tool", "arguments", "result"),
    [
        ("list_papers", {}, {"titles": ["Note", "Lease"]}),
        ("read_paper", {"title": "Lease"}, "Until May."),
        ("file_paper", {"title": "Plan"}, "None"),
        ("stamp", {"number": 3}, "[3]"),
        ("exact", {"number": "1.50"}, "{'result': Decimal('1.50')}"),
        ("open_drawer", {"drawer": "café"}, {"error": "there is no drawer café"}),
        ("divide", {"a": 1e308, "b": 1e-308}, '{"result": Infinity}'),
    ],
)
def test_results_are_data_or_upstream_text(world, tool, arguments, result):
    """A dict is data where JSON can hold it; all else is the text that upstream makes of it."""
    _, tools = world("multi_turn_base_1")
    assert tools[tool](**arguments) == result


def test_what_a_tool_raises_is_passed_on(world):
    """The executor turns it into a failed result."""
    _, tools = world("multi_turn_base_1")
    with pytest.raises(ZeroDivisionError):
        tools["divide"](a=1, b=0)
    with pytest.raises(TypeError):
        tools["divide"](a=1)


def test_worlds_in_threads_do_not_disturb_each_other(sample, task_of):
    """Attempts side by side end as they would one after the other."""
    states = []

    def attempt(number):
        environment = sample.environment(task_of("multi_turn_base_0"))
        tools = functions(environment)
        for stamp in range(50):
            tools["stamp"](number=number * 100 + stamp)
        states.append((number, environment.state()["FilingCabinet"]["stamps"]))

    threads = [threading.Thread(target=attempt, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(states) == [
        (number, [number * 100 + stamp for stamp in range(50)]) for number in range(4)
    ]


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("power", {"base": 10, "exponent": 10**9}, "10 to the power 1000000000"),
        ("power", {"base": -3, "exponent": 10**400}, "a number of 1329 bits"),
        ("logarithm", {"value": 2, "base": 10, "precision": 10**8}, "precision is 100000000"),
        ("square_root", {"number": 2, "precision": 10**5}, "give at most 10000"),
        (
            "round_number",
            {"number": 5, "decimal_places": -(10**9)},
            "decimal_places is -1000000000",
        ),
    ],
)
def test_hopeless_arguments_are_refused_in_words(tool, arguments, words):
    """The refusal says which argument it is about and what is allowed."""
    assert words in refusal(tool, arguments, SimpleNamespace())


def test_a_refused_call_is_not_made(world):
    """The tool fails in words; what can end is run, also where it overflows."""
    _, tools = world("multi_turn_base_1")
    with pytest.raises(ToolFailed, match="too many digits"):
        tools["power"](base=10, exponent=10**9)
    assert tools["power"](base=2, exponent=10) == {"result": 1024}


@pytest.fixture
def code(sample_folder):
    """The folder with the sample's simulators."""
    return sample_folder / "func_source_code"


def test_modules_find_each_other(code):
    """An import under upstream's name gives the module that lies beside; it is loaded once."""
    modules = SimulatorModules(code)
    cabinet = modules.load("cabinet")
    assert cabinet.SPARE_PAPERS is modules.load("spare_papers").SPARE_PAPERS
    assert modules.load("cabinet") is cabinet


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("def (", "SyntaxError"),
        ("import no_such_package_anywhere", "no_such_package_anywhere"),
        (
            "from bfcl_eval.eval_checker.multi_turn_eval.func_source_code.gone import X",
            "there is no simulator",
        ),
    ],
)
def test_a_broken_simulator_is_an_error_each_time(code, text, reason):
    """The error names the file and the cause, and half a module is not kept."""
    (code / "broken.py").write_text(text)
    modules = SimulatorModules(code)
    for _ in range(2):
        with pytest.raises(DatasetError, match=reason):
            modules.load("broken")
    (code / "broken.py").write_text("MARK = 'mended and longer than before'\n")
    assert modules.load("broken").MARK


async def test_gold_calls_pass(play, task_of, calls):
    """What the gold answer does is right; a turn without gold calls is not judged."""
    filed = calls(("file_paper", {"title": "Plan"}), ("list_papers", {}))
    moved = calls(("move_paper", {"title": "Plan", "drawer": "archive"}))
    played = await play(task_of("multi_turn_base_0"), [filed], [moved], [])
    assert [verdict and verdict.passed for verdict in played.verdicts] == [True, True, None]


async def test_another_way_to_the_same_state_passes(play, task_of, calls):
    """Neither order nor number of calls counts, as long as the results are among them."""
    steps = [
        calls(("list_papers", {})),
        calls(("file_paper", {"title": "Plan", "text": "wrong"})),
        calls(("file_paper", {"title": "Plan", "text": ""})),
        calls(("list_papers", {})),
    ]
    played = await play(task_of("multi_turn_base_0"), steps, [], [])
    assert played.verdicts[0].passed


async def test_a_different_state_fails(play, task_of, calls):
    """The finding says where the world differs."""
    filed = calls(("file_paper", {"title": "Plan", "text": "x"}), ("list_papers", {}))
    verdict = (await play(task_of("multi_turn_base_0"), [filed], [], [])).verdicts[0]
    assert not verdict.passed
    (finding,) = verdict.evidence
    assert (finding.kind, finding.parameter) == (
        "state_differs",
        "FilingCabinet.drawers.desk.papers.Plan",
    )


async def test_a_result_that_was_not_obtained_fails(play, task_of, calls):
    """The state is right, but nobody looked."""
    filed = calls(("file_paper", {"title": "Plan"}))
    verdict = (await play(task_of("multi_turn_base_0"), [filed], [], [])).verdicts[0]
    assert [finding.kind for finding in verdict.evidence] == ["response_differs"]


async def test_results_of_earlier_turns_count(play, task_of, calls):
    """What was read before need not be read again, if this turn calls anything at all."""
    task = task_of("multi_turn_miss_param_0")
    read = calls(("read_paper", {"title": "Lease"}))
    again = await play(task, [read], [calls(("list_papers", {}))])
    assert again.verdicts[1].passed
    silent = await play(task, [read], [])
    assert [finding.kind for finding in silent.verdicts[1].evidence] == ["missing_call"]


async def test_the_last_turn_is_judged_at_the_step_limit(play, task_of, calls):
    """Upstream judges what was done when the steps ran out, if no user turn is left."""
    gold = calls(("divide", {"a": 7, "b": 2}), ("stamp", {"number": 3}))
    played = await play(task_of("multi_turn_base_1"), [gold, gold], max_steps=1)
    assert played.episodes[0].stop_reason == "step_limit"
    assert played.verdicts[0].passed


def gold_model(benchmark):
    """A model that makes the gold calls of each user turn in one step, then says so."""
    tasks = {task.request: task for task in benchmark.tasks}

    def answer(request):
        said = [m.text for m in request.messages if isinstance(m, UserMessage)]
        if not isinstance(request.messages[-1], UserMessage):
            return "Done."
        expects = tasks[said[0]].turns[len(said) - 1].expects
        gold = [call for one in expects if isinstance(one, FinalState) for call in one.calls]
        return [
            ToolCall(call_id=f"{len(said)}-{at}", name=call.name, arguments=call.arguments)
            for at, call in enumerate(gold)
        ] or "Hm."

    return FunctionModel(answer)


@pytest.mark.parametrize("concurrency", [1, 4])
async def test_gold_answers_pass_every_task(sample, concurrency):
    """Each user turn is an episode; where gold calls are expected, it passed."""
    store = open_store("memory:")
    model = gold_model(sample)
    outcome = await evaluate(sample, model=model, store=store, run="gold", concurrency=concurrency)
    assert outcome.finished == len(sample.tasks)
    kept = {(e.metadata["task"], int(e.metadata["user_turn"])): e for e in store.select()}
    expected = {
        (t.task_id, at): bool(u.expects) for t in sample.tasks for at, u in enumerate(t.turns)
    }
    assert {key: e.verdict is not None for key, e in kept.items()} == expected
    assert all(e.verdict.passed for e in kept.values() if e.verdict is not None)


@pytest.fixture(scope="module")
def upstream(upstream_folder, mpmath):
    """The real benchmark, where its simulators can be run."""
    return load_bfcl_multi_turn(upstream_folder)


def rows(path):
    """The lines of a file, by id."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return {row["id"]: row for row in map(json.loads, filter(None, lines))}


@pytest.mark.corpora
def test_all_questions_load(upstream):
    """800 questions with 128 tools; five have gold that no agent could follow."""
    assert upstream.name == "BFCL v4 multi-turn 2026.3.23"
    assert len(upstream.definitions) == 128
    assert len(upstream.tasks) == 795
    assert {one.where for one in upstream.left_out} == {
        "multi_turn_base_173",
        "multi_turn_long_context_173",
        "multi_turn_miss_func_173",
        "multi_turn_miss_func_49",
        "multi_turn_miss_param_173",
    }
    judged = [turn for task in upstream.tasks for turn in task.turns if turn.expects]
    assert all(any(turn.expects for turn in task.turns) for task in upstream.tasks)
    assert sum(len(turn.expects[1].calls) for turn in judged) == 4600


@pytest.mark.corpora
def test_every_gold_sequence_runs(upstream, upstream_folder):
    """None of the gold calls of the 800 questions raises, and each state is JSON."""
    tools = {definition.name: definition for definition in upstream.definitions}
    files, ran = find_files(upstream_folder), 0
    for path in sorted(files.data.glob("BFCL_v4_multi_turn_*.json")):
        questions, answers = rows(path), rows(files.data / "possible_answer" / path.name)
        for task_id, question in questions.items():
            world = upstream.environment(
                Task(
                    task_id=task_id,
                    category="",
                    request="",
                    offered=(),
                    start={
                        "classes": question["involved_classes"],
                        "scenarios": question["initial_config"],
                        "long_context": "long_context" in task_id,
                    },
                )
            )
            for text in (text for turn in answers[task_id]["ground_truth"] for text in turn):
                call = parse_gold(text, tools)
                assert isinstance(world.call(call.name, call.arguments), str | dict)
                ran += 1
            json.dumps(world.state(), allow_nan=False)
    assert ran == 4625


@pytest.mark.corpora
async def test_verdicts_are_those_of_the_package(upstream_package, mpmath, agreement):
    """On gold and on altered gold the package's own checker finds what our verifiers find."""
    benchmark = load_bfcl_multi_turn(upstream_package)
    altering = agreement.Altering(benchmark.tasks, random.Random(5))
    trials = [
        trial
        for task in altering.dice.sample(benchmark.tasks, 12)
        for trial in altering.trials(task)
    ]
    theirs = agreement.Theirs(upstream_package)
    outcomes = [one async for one in agreement.compared(benchmark, theirs, trials)]
    assert len(outcomes) > 90
    assert 0 < sum(not one.theirs for one in outcomes) < len(outcomes)
    assert [one for one in outcomes if not one.is_same("direct")] == []
    assert all(one.executor for one in outcomes if not one.is_same("agent"))
