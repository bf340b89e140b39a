"""The arithmetic family: solved by primitives, and cheaper with composites."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from agentkit import composite, open_store
from agentkit.evaluation import episodes_of_run, evaluate
from agentkit.library import Library
from agentkit.messages import AssistantMessage, ToolCall, ToolMessage
from agentkit.models.base import ModelResponse
from agentkit.testing import FunctionModel
from agentkit_training.coevolution.tasks import with_composites
from agentkit_training.tasks.arithmetic import (
    RECIPES,
    arithmetic,
    arithmetic_episodes,
    primitive_library,
)
from agentkit_training.tasks.splits import leakage

PRIMITIVES = primitive_library()


@composite(tools=PRIMITIVES)
def bill(n: float, c: float, f: float) -> float:
    """What n things cost at c each, with a fee of f."""
    return add(mul(n, c), f)  # noqa: F821 - names of tools; the function is data


def solving(benchmark, *, composites=()):
    """A model that makes the gold calls, or one call where a composite does a whole recipe."""
    gold = {task.request: task for task in benchmark.tasks}

    def answer(request):
        question = next(one.text for one in request.messages if one.role == "user")
        task = gold[question]
        calls = [(one.name, dict(one.arguments)) for one in task.expects[0].calls]
        results = [one.text for one in request.messages if isinstance(one, ToolMessage)]
        if task.category in composites:
            first, second = (arguments for _, arguments in calls)
            numbers = {"n": first["a"], "c": first["b"], "f": second["b"]}
            calls = [(task.category, numbers)]
        if len(results) == len(calls):
            return ModelResponse(message=AssistantMessage(text=f"It is {results[-1]}."))
        name, arguments = calls[len(results)]
        call = ToolCall(call_id=str(len(results)), name=name, arguments=arguments)
        return ModelResponse(message=AssistantMessage(tool_calls=(call,)))

    return FunctionModel(answer)


async def run(benchmark, model, library=None):
    """The episodes of all tasks."""
    store = open_store("memory:")
    await evaluate(benchmark, model=model, store=store, run="r", library=library)
    return list(episodes_of_run(store, "r"))


@given(seed=st.integers(0, 1000))
@settings(max_examples=20)
def test_gold_calls_reach_the_answer_that_the_task_wants(seed):
    """Replayed in the world, the gold calls end at the expected number, which is a whole one."""
    parts = arithmetic(seed=seed, train=6)
    for task, episode in zip(parts.train.tasks, arithmetic_episodes(parts.train), strict=True):
        wanted = task.expects[0].state["result"]
        assert isinstance(wanted, int)
        assert episode.results[-1].value == wanted
        assert episode.output == str(wanted)
        assert 2 <= len(episode.calls) <= 4


@given(seed=st.integers(0, 1000))
@settings(max_examples=10)
def test_parts_share_no_question(seed):
    """No two questions of a recipe have the same numbers, in whichever parts."""
    parts = arithmetic(seed=seed)
    for one, other in (("train", "test"), ("train", "validation"), ("validation", "test")):
        benchmarks = dict(parts)
        assert leakage(benchmarks[one], benchmarks[other], functions="free").is_clean
    assert parts.train.tasks == arithmetic(seed=seed).train.tasks
    fewer = arithmetic(seed=seed, train=3)
    assert fewer.test.tasks == parts.test.tasks  # however much is trained on


async def test_the_runtime_judges_solutions_right():
    """The gold calls pass; a question less solved does not."""
    benchmark = arithmetic(train=2).train
    found = await run(benchmark, solving(benchmark))
    assert len(found) == 2 * len(RECIPES)
    assert all(one.verdict.passed for one in found)
    silent = FunctionModel(lambda _: ModelResponse(message=AssistantMessage(text="42")))
    assert not any(one.verdict.passed for one in await run(benchmark, silent))


async def test_a_composite_solves_the_same_questions_with_fewer_calls():
    """The world takes a composite's result as it takes that of its primitives."""
    library = Library([*PRIMITIVES, bill])
    benchmark = arithmetic(train=3, recipes=RECIPES[:1]).train
    offering = with_composites(benchmark, library)
    plain = await run(benchmark, solving(benchmark))
    saved = await run(offering, solving(benchmark, composites=("bill",)), library)
    for episodes, calls in ((plain, 2), (saved, 1)):
        assert all(one.verdict.passed for one in episodes)
        assert {len(one.calls) for one in episodes} == {calls}
