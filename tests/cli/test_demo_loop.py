"""What the demo asks: three parts apart, gold calls that are taken, and a real model that learns."""

from dataclasses import replace
from itertools import combinations

import pytest

from agentkit import open_store, resolve_model
from agentkit.cli.demo.command import Demo
from agentkit.cli.demo.questions import Questions, draw_questions
from agentkit.errors import UsageError


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
