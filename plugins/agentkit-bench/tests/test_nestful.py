"""NESTFUL: its files, and both ways of asking."""

import gzip
import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from agentkit import Library, ToolDefinition, open_store
from agentkit.errors import DatasetError
from agentkit.evaluation.runner import evaluate
from agentkit.evaluation.settings import EvaluationSettings
from agentkit.evolution.trajectories import Flow, Given, Step, Trajectory
from agentkit.messages import AssistantMessage, ToolCall
from agentkit.testing import FunctionModel
from agentkit.tools.definition import Specification
from agentkit.tools.rules import Form, OneOf
from agentkit.tools.validation import validate_arguments
from agentkit_bench import DataFlow, RecordedWorld, nestful_benchmark
from agentkit_bench.nestful import load_nestful
from agentkit_bench.nestful_benchmark import plannable

SAMPLE = Path(__file__).parent / "sample_nestful"


@pytest.fixture
def sample():
    """Eight questions written by us, in the form of two of the sources."""
    return load_nestful(SAMPLE)


def by_id(nestful, question_id):
    """One question."""
    return next(q for q in nestful.questions if q.trajectory.trajectory_id == question_id)


def test_references_become_flows(sample):
    """A reference names the call and the place; into a list it means the first item."""
    boats = by_id(sample, "nestful:complexfuncbench:0").trajectory
    assert boats.request == "Which boats go from Aker to Moss on 2026-05-01?"
    assert boats.steps[2].sources == {
        "from_id": Flow(step=0, path=(0, "id")),
        "to_id": Flow(step=1, path=(0, "id")),
        "day": Given(value="2026-05-01"),
    }
    assert boats.arguments(2) == {"from_id": "AK01", "to_id": "MO02", "day": "2026-05-01"}


def test_tools_have_schemas(sample):
    """Upstream's table of parameters becomes a schema; GET requests only read."""
    tools = {definition.name: definition for definition in sample.definitions}
    boats = tools["Find_Boats(Day)"]
    assert boats.signature.required == ("from_id", "to_id", "day")
    assert boats.signature.properties["class"] == {
        "type": "string",
        "enum": ["deck", "cabin"],
        "default": "deck",
    }
    assert boats.description.parameters["day"] == "The day."
    assert boats.signature.effects.is_read_only
    assert not tools["send_note"].signature.effects.is_read_only


def test_what_was_not_recorded_is_made_up(sample):
    """A source without responses gets one text for each place that a later call refers to."""
    question = by_id(sample, "nestful:glaive:0")
    assert not question.is_recorded
    assert question.trajectory.steps[0].result == {"note_id": "var1.note_id"}
    assert question.trajectory.arguments(1) == {"note_id": "var1.note_id", "to": "Ada"}
    assert not question.trajectory.steps[0].is_whole
    assert question.trajectory.answered == {0, 1}  # what the closing record names


def packed(folder, target, *, clipped=False):
    """The sample as one question a line, as a corpus beside the checkout has it."""
    rows = json.loads((folder / "complexfuncbench/complexfuncbench-data.json").read_text())
    tools = json.loads((folder / "complexfuncbench/complexfuncbench-spec.json").read_text())
    if clipped:
        for row in rows:
            first = row["output"][0]
            text = json.dumps(first["response"])
            first["response"] = {"_clipped_chars": len(text) - 5, "_head": text[:5]}
    with gzip.open(target / "queries.jsonl.gz", "wt") as lines:
        for number, row in enumerate(rows):
            record = {
                "id": f"nestful:complexfuncbench:{number}",
                "query": row["input"],
                "category": "complexfuncbench",
                "gold": row["output"],
            }
            lines.write(json.dumps(record) + "\n")
    with gzip.open(target / "tools.jsonl.gz", "wt") as lines:
        for tool in tools:
            properties = {n: {"type": "string"} for n in tool["query_parameters"]}
            record = {
                "id": f"nestful:complexfuncbench/{tool['name']}:0",
                "name": tool["name"],
                "description": tool["description"],
                "parameters": {"type": "object", "properties": properties},
            }
            lines.write(json.dumps(record) + "\n")


def test_clipped_responses_are_not_guessed(tmp_path):
    """What was cut off can not be read: the reference stays text, and the call is not whole."""
    packed(SAMPLE, tmp_path, clipped=True)
    trajectory = load_nestful(tmp_path).questions[0].trajectory
    assert not trajectory.steps[0].is_whole
    assert trajectory.steps[2].sources["from_id"] == Given(value="$var1.id$", uses=(0,))
    assert trajectory.steps[2].sources["to_id"] == Flow(step=1, path=(0, "id"))


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("complexfuncbench-data.json", "[{", "not JSON"),
        ("complexfuncbench-data.json", '[{"input": "x"}]', "KeyError: 'output'"),
        ("complexfuncbench-spec.json", '[{"name": "x"}]', "KeyError: 'description'"),
    ],
)
def test_broken_files_are_refused(tmp_path, file, text, told):
    """A file of another form is refused with its name and what is wrong."""
    shutil.copytree(SAMPLE, tmp_path / "data")
    (tmp_path / "data" / "complexfuncbench" / file).write_text(text)
    with pytest.raises(DatasetError, match=told):
        load_nestful(tmp_path / "data")


def test_an_empty_folder_is_told(tmp_path):
    """Without any questions the message says what to give."""
    with pytest.raises(DatasetError, match="fetch_nestful"):
        load_nestful(tmp_path)


FOLDER = Path(__file__).parent / "sample_nestful"


def task_by_id(benchmark, task_id):
    """One task."""
    return next(task for task in benchmark.tasks if task.task_id == task_id)


def test_a_plan_is_judged_by_its_flow_of_data():
    """The gold calls keep upstream's references; the tools that are offered take them."""
    benchmark = nestful_benchmark(FOLDER)
    task = task_by_id(benchmark, "nestful:complexfuncbench:0")
    (gold,) = task.expects
    assert isinstance(gold, DataFlow)
    assert gold.calls[2].arguments["from_id"] == "$var1.id$"
    assert "$var1.name$" in task.instructions
    assert benchmark.environment is None
    tools = {definition.name: definition for definition in benchmark.definitions}
    for task in benchmark.tasks:
        for call in task.expects[0].calls:
            assert validate_arguments(tools[call.name], call.arguments) == ()
    assert "Returns: " in tools["Find_Place"].text
    assert "where.lat" in tools["Find_Place"].text


def test_executed_questions_have_recorded_responses():
    """Only ComplexFuncBench recorded any; what they return is seen call by call."""
    benchmark = nestful_benchmark(FOLDER, asking="executed")
    assert {task.category for task in benchmark.tasks} == {"complexfuncbench"}
    task = task_by_id(benchmark, "nestful:complexfuncbench:0")
    find = {tool.name: tool for tool in benchmark.environment(task).tools()}["Find_Place"]
    assert find(query="Aker")[0]["id"] == "AK01"
    left = {one.where: one.reason for one in benchmark.left_out}
    assert left["nestful:glaive:0"] == "what its calls return was not recorded"


def test_gold_that_nobody_can_make_is_left_out(tmp_path):
    """One call breaks its schema, one names no tool, one needs what its record lacks."""
    folder = shutil.copytree(FOLDER, tmp_path / "nestful")
    path = folder / "complexfuncbench" / "complexfuncbench-data.json"
    rows = json.loads(path.read_text())

    def reason(asking="planned"):
        path.write_text(json.dumps(rows))
        left_out = nestful_benchmark(folder, asking=asking).left_out
        return {one.where: one.reason for one in left_out}.get("nestful:complexfuncbench:0")

    first, last = rows[0]["output"][0], rows[0]["output"][2]
    recorded = first["response"]
    first["response"] = {"_clipped_chars": 9000, "_head": '[{"na'}
    assert "cut short, and a later call needs" in reason("executed")
    assert reason() is None
    first["response"] = recorded
    last["arguments"]["class"] = "balloon"
    assert "`class` must be one of 'deck', 'cabin'" in reason()
    last["name"] = "Find_Boats"
    assert "there is no tool 'Find_Boats'" in reason()


def knowing(request):
    """A model that looks both places up, makes a mistake, corrects it and answers."""
    text = request.messages[-1].text
    done = [one for one in request.messages if isinstance(one, AssistantMessage)]
    if "Aker to Moss" not in request.messages[0].text:
        return "I do not know."
    right = {"from_id": "AK01", "to_id": "MO02", "day": "2026-05-01"}
    if not done:
        return [
            ToolCall(call_id=place, name="Find_Place", arguments={"query": place})
            for place in ("Aker", "Moss")
        ]
    if len(done) == 1:
        assert "MO02" in text
        wrong = {**right, "to_id": "MO03"}
        return [ToolCall(call_id="a", name="Find_Boats(Day)", arguments=wrong)]
    if len(done) == 2:
        assert "there is no answer to these arguments" in text
        assert "MO02" not in text
        return [ToolCall(call_id="b", name="Find_Boats(Day)", arguments=right)]
    return "B-0 goes from Aker to Moss."


async def test_a_model_that_recovers_passes():
    """All gold calls made is a pass, calls that were refused do not count; no call is a failure."""
    benchmark = nestful_benchmark(FOLDER, asking="executed")
    store = open_store("memory:")
    await evaluate(benchmark, model=FunctionModel(knowing), store=store, run="r")
    verdicts = {one.metadata["task"]: one.verdict for one in store.select()}
    right = verdicts.pop("nestful:complexfuncbench:0")
    assert right.passed
    assert right.metrics == dict.fromkeys(
        ("full_match", "partial_match", "function_f1", "parameter_f1"), 1.0
    )
    assert not any(verdict.passed for verdict in verdicts.values())
    (missing, *_) = next(iter(verdicts.values())).evidence
    assert missing.message == "Find_Place was not called"


async def test_a_gold_plan_passes():
    """The gold calls as one message are right; without a reference they are not."""
    benchmark = nestful_benchmark(FOLDER)
    gold = {task.request: task.expects[0].calls for task in benchmark.tasks}

    def planning(request):
        calls = gold[request.messages[-1].text]
        if "Aker to Moss" in request.messages[-1].text:
            calls = calls[2:]
        return [
            ToolCall(call_id=str(at), name=call.name, arguments=call.arguments)
            for at, call in enumerate(calls)
        ]

    store = open_store("memory:")
    await evaluate(benchmark, model=FunctionModel(planning), store=store, run="r")
    episodes = {one.metadata["task"]: one for one in store.select()}
    wrong = episodes.pop("nestful:complexfuncbench:0").verdict
    assert not wrong.passed
    assert wrong.metrics["partial_match"] == 0.0
    assert wrong.metrics["function_f1"] == 0.5
    assert all(one.verdict.passed for one in episodes.values())
    assert {one.stop_reason for one in episodes.values()} == {"deferred"}


@pytest.mark.corpora
def test_the_whole_of_nestful_loads(planned, executed):
    """What can be asked of each source, in either way, is as in the documents."""
    assert Counter(task.category for task in planned.tasks) == {
        "complexfuncbench": 998,
        "glaive": 140,
        "executable": 81,
        "sgd": 43,
    }
    assert len(planned.left_out) == 38
    assert Counter(task.category for task in executed.tasks) == {"complexfuncbench": 803}
    assert len(executed.left_out) == 497


TRIP = plannable(
    ToolDefinition.from_schema(
        "book_trip",
        "Book a trip.",
        {
            "type": "object",
            "properties": {
                "to": {"type": "string", "description": "The town."},
                "days": {"type": "integer", "description": "How many.", "default": 2},
                "class": {"type": "string", "enum": ["deck", "cabin"]},
                "guests": {"type": "array", "items": {"type": "integer"}},
                "from": {
                    "type": "object",
                    "properties": {"lat": {"type": "number"}},
                    "required": ["lat"],
                },
                "anything": {},
            },
            "required": ["to", "days"],
        },
        effects=None,
    ),
    ["booking.id", "price"],
)


@pytest.mark.parametrize(
    ("arguments", "taken"),
    [
        ({"to": "Aker", "days": 3}, True),
        ({"to": "$var1.town$", "days": "$var2.days$"}, True),
        ({"to": "Aker", "days": 1, "class": "$var1.offers[0].class$"}, True),
        ({"to": "Aker", "days": 1, "guests": [1, "$var1.guests[1]$"]}, True),
        ({"to": "Aker", "days": 1, "from": {"lat": "$var3.where.lat$"}}, True),
        ({"to": "Aker", "days": 1, "from": "$var3.where$", "anything": "$var1$"}, True),
        ({"to": "Aker", "days": "a few"}, False),
        ({"to": "Aker", "days": "$varx.y$"}, False),
        ({"to": "Aker", "days": 1, "class": "balloon"}, False),
        ({"to": "Aker", "days": 1, "guests": [1.5]}, False),
        ({"to": "Aker", "days": 1, "from": {"lat": "north"}}, False),
    ],
    ids=str,
)
def test_references_stand_for_values_of_any_type(arguments, taken):
    """A reference is taken wherever a value is, at any depth; all else is as strict as before."""
    assert (validate_arguments(TRIP, arguments) == ()) is taken


def test_learned_rules_hold_for_values_and_not_for_references():
    """What a rule in the schema or beside it narrows may be a reference in a plan."""
    schema = {"type": "object", "properties": {"periods": {"type": "integer"}, "start": {}}}
    rules = (OneOf(parameter="periods", values=(36, 48)), Form(parameter="start", format="date"))
    loan = ToolDefinition.from_schema("loan", "Quote a loan.", schema)
    loan = replace(loan, specification=Specification(rules=rules))
    referred = {"periods": "$var1.terms[0]$", "start": "$var1.start$"}
    assert validate_arguments(loan, referred)
    assert validate_arguments(plannable(loan, []), referred) == ()
    for plain in ({"periods": 40}, {"start": "soon"}):
        assert validate_arguments(plannable(loan, []), plain)


LOOK = ToolDefinition.from_schema(
    "look",
    "Look something up.",
    {
        "type": "object",
        "properties": {"at": {"type": "integer"}, "unit": {"type": "string", "default": "km"}},
    },
)
TRAJECTORY = Trajectory(
    trajectory_id="t",
    steps=(
        Step(tool="look", sources={"at": Given(value=1)}, result={"next": 2}),
        Step(tool="look", sources={"at": Flow(step=0, path=("next",))}, result="first"),
        Step(tool="look", sources={"at": Given(value=2)}, result="second"),
    ),
)


def test_a_recorded_call_is_answered_in_order():
    """Equal arguments get the recorded responses, of several the last for ever; the state tells."""
    world = RecordedWorld(TRAJECTORY, [LOOK])
    (look,) = world.tools()
    assert [look(at=2), look(at=2, unit="km"), look(at=2)] == ["first", "second", "second"]
    assert world.state() == {"made": {"2 look": True, "3 look": True}}
    assert look(at=1) == {"next": 2}


@pytest.fixture
def evolved():
    """NESTFUL's own tools with another summary, and schemas that take no references."""
    return Library(
        [
            replace(one, description=replace(one.description, summary=f"Evolved {one.name}."))
            for one in load_nestful(FOLDER).definitions
        ],
        version=3,
    )


def gold_model(benchmark):
    """A model that answers each question with its gold calls."""
    gold = {task.request: task.expects[0].calls for task in benchmark.tasks}

    def answer(request):
        asked = next(m.text for m in reversed(request.messages) if m.text in gold)
        calls = enumerate(gold[asked])
        return AssistantMessage(
            tool_calls=tuple(
                ToolCall(call_id=str(at), name=call.name, arguments=call.arguments)
                for at, call in calls
            )
        )

    return FunctionModel(answer, name="gold")


@pytest.mark.parametrize("tools", ["given", "retrieved"])
async def test_plans_take_references_with_a_library_too(evolved, tools):
    """The model reads the library's words; its schemas take the references that a plan needs."""
    benchmark = nestful_benchmark(FOLDER)
    model, store = gold_model(benchmark), open_store("memory:")
    settings = EvaluationSettings(tools=tools)
    await evaluate(benchmark, model=model, store=store, run="r", library=evolved, settings=settings)
    assert all(episode.verdict.passed for episode in store.select())
    assert all(
        tool.description.summary.startswith("Evolved ") and "Returns: " in tool.text
        for request in model.requests
        for tool in request.tools
    )
    assert {episode.library_version for episode in store.select()} == {3}
