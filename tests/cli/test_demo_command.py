"""``agentkit demo``: what it asks, the whole loop with a double, and a real model that learns."""

import sys
from dataclasses import replace
from itertools import combinations

import pytest

from agentkit import open_store, resolve_model
from agentkit.cli.demo import Demo
from agentkit.cli.demo_questions import Questions, draw_questions
from agentkit.cli.demo_tools import TOOLS
from agentkit.errors import UsageError

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
def reader(invoke, tmp_path, monkeypatch):
    """The double as a plugin."""
    info = tmp_path / "plugins" / "agentkit_reader-1.0.dist-info"
    info.mkdir(parents=True)
    (info.parent / "agentkit_reader.py").write_text(READER)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: agentkit-reader\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[agentkit.models]\nreader = agentkit_reader:open_reader\n"
    )
    monkeypatch.syspath_prepend(str(info.parent))
    yield
    sys.modules.pop("agentkit_reader", None)


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


@pytest.mark.usefixtures("reader")
def test_json_is_the_whole_report(as_json, tmp_path):
    """--json prints what was measured and nothing else, and the store is where it says."""
    report = as_json("demo", "--model", "reader:a", "--questions", "10", "--seed", "4")
    assert (report["before"]["right"], report["before"]["of"]) == (0, 10)
    assert (report["after"]["right"], report["after"]["of"]) == (10, 10)
    assert report["before"]["interval"]["high"] < report["after"]["interval"]["low"]
    assert report["difference"]["value"] == 1
    assert sorted(report["promoted"]) == sorted(one.name for one in TOOLS)
    assert report["after"]["library_version"] == report["library_version"]
    assert report["rolled_back"]["right"] == 0
    assert (report["seed"], report["model"]) == (4, "reader")
    assert report["seconds"] > 0
    assert report["store"] == f"sqlite:///{tmp_path / 'cache' / 'demo.db'}"


@pytest.mark.usefixtures("reader")
def test_a_store_in_use_is_refused(invoke, store_url, tools_file):
    """A named store must be empty, or what it learned earlier would count as gained."""
    assert invoke("tools", "add", str(tools_file)).exit_code == 0
    result = invoke("demo", "--model", "reader:a", "--store", store_url)
    assert result.exit_code == 2
    assert "begins with an empty store" in result.stderr


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


@pytest.mark.parametrize("score", [0, 4, 10_000])
def test_too_few_or_too_many_questions_are_refused(score):
    """Each tool needs a question, and there are only so many numbers."""
    with pytest.raises(UsageError, match="cannot be drawn"):
        draw_questions(0, score)


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
    assert before.right < after.right
