"""Self-refine samples: asked as the runtime asks, learned from in the last answer alone."""

import asyncio
import dataclasses

import pytest
from hypothesis import given, settings, strategies as st

from agentkit import Agent
from agentkit.evaluation import AllowedCalls
from agentkit.messages import ToolCall
from agentkit.metrics import AllowedCall
from agentkit.models.prompted import PromptedModel
from agentkit.testing import FunctionModel
from agentkit_training import tiny_policy
from agentkit_training.fine_tuning.examples import Prompting, make_examples
from agentkit_training.fine_tuning.training import IGNORED, block
from agentkit_training.rollout.rendering import Renderer
from agentkit_training.toolace.difficulty import TaskDifficulty, gold_answers
from agentkit_training.toolace.rounds import refine_samples

POLICY = tiny_policy()
STYLES = [Prompting(), Prompting(constrained=False), Prompting(format="python")]
VALUES = st.sampled_from(["apple", "bread", "kg", "", "ä ]", "<|im_end|>"]) | st.integers(0, 99)
FIRST = st.lists(
    st.builds(
        lambda name, arguments: ToolCall(call_id="1", name=name, arguments=arguments),
        st.sampled_from(["get_price", "get_weight"]),
        st.dictionaries(st.sampled_from(["item", "unit"]), VALUES, max_size=2),
    ),
    min_size=1,
    max_size=3,
).map(tuple)


def tried(task_id, calls, *, shortfall=1.0):
    return TaskDifficulty(
        task_id=task_id, difficulty=shortfall, attempts=(calls,), shortfalls=(shortfall,)
    )


def call(item):
    return ToolCall(call_id="1", name="get_price", arguments={"item": item})


def runtime_prompt(task, tools, style, first):
    """What the runtime's adaptive refinement asks after ``first``, in the policy's tokens."""
    asked = []

    def answer(request):
        asked.append(request.messages)
        return style.answer(Renderer(POLICY), first)

    inner = FunctionModel(answer)
    constrained = style.constrained and style.format == "json"
    model = PromptedModel(inner, format=style.format, constrained=constrained)
    Agent(model, tools=tools, refine="adaptive").run_sync(task.request)
    return Renderer(POLICY).prompt(asked[1], {}).ids


@pytest.mark.parametrize("style", STYLES, ids=["constrained", "json", "python"])
def test_the_prompt_is_that_of_the_runtimes_refinement(shop, style):
    """Question, tools, first answer and request are token for token what the runtime will ask."""
    first = (call("aple"),)
    task = shop.tasks[0]
    samples = refine_samples(shop, gold_answers(shop).answers, [tried(task.task_id, first)])
    made = asyncio.run(make_examples(POLICY, samples.benchmark, samples.answers, prompting=style))
    tools = shop.environment(task).tools()
    assert [one.prompt for one in made.rows] == [runtime_prompt(task, tools, style, first)]


@settings(max_examples=15, deadline=None)
@given(first=FIRST, style=st.sampled_from(STYLES))
def test_no_token_of_the_first_answer_bears_loss(shop_of_one, first, style):
    """Only the gold answer bears loss, whatever the first one was (ToolACE-R, section 4.1)."""
    benchmark, answers = shop_of_one
    samples = refine_samples(benchmark, answers, [tried(benchmark.tasks[0].task_id, first)])
    made = asyncio.run(make_examples(POLICY, samples.benchmark, samples.answers, prompting=style))
    (row,) = made.rows
    batch = block(made.rows, pad=POLICY.pad_id)
    learned = [one for one in batch.labels[0].tolist() if one != IGNORED]
    gold = POLICY.tokenizer.decode(learned)
    shown = POLICY.tokenizer.decode(row.prompt)
    assert learned == list(row.completion)
    assert gold == style.answer(Renderer(POLICY), [call("apple")]) + "<|im_end|>"
    assert "Please refine your answer" in shown
    assert "get_" in shown.rpartition("<|im_start|>user")[0].rpartition("<|im_start|>assistant")[2]


@pytest.fixture(scope="module")
def shop_of_one():
    """A task whose tool takes an item, with its gold answer."""
    from agentkit import ToolDefinition
    from agentkit.evaluation import Benchmark, ExactCalls, GoldCall, Task

    definition = ToolDefinition.from_schema(
        "get_price", "Get a price.", {"properties": {"item": {"type": "string"}}}
    )
    expects = ExactCalls(calls=(GoldCall(name="get_price", arguments={"item": "apple"}),))
    task = Task(
        task_id="t",
        category="",
        request="What does an apple cost?",
        offered=("get_price",),
        expects=(expects,),
    )
    benchmark = Benchmark(name="one", tasks=(task,), definitions=(definition,))
    return benchmark, gold_answers(benchmark).answers


def test_right_first_answers_are_kept(shop):
    """Samples with A_1 = A stay, so that the policy learns to stop."""
    first = [tried("price-apple", (call("apple"),), shortfall=0.0)]
    first.append(tried("price-bread", (call("beer"),)))
    samples = refine_samples(shop, gold_answers(shop).answers, first)
    assert [task.task_id for task in samples.benchmark.tasks] == [
        "price-apple#refine",
        "price-bread#refine",
    ]


def test_a_first_answer_without_calls_makes_no_sample(shop):
    """The runtime refines calls alone, and so does training; the task is counted."""
    samples = refine_samples(shop, gold_answers(shop).answers, [tried("price-apple", ())])
    assert samples.benchmark.tasks == ()
    assert [out.where for out in samples.left_out] == ["price-apple"]


def test_a_right_value_is_not_unlearned(shop):
    """Where the first answer chose another allowed value, the gold answer repeats it."""
    allowed = AllowedCall(name="get_price", allowed={"item": ["apple", "an apple"]})
    task = dataclasses.replace(shop.tasks[0], expects=(AllowedCalls(calls=(allowed,)),))
    benchmark = dataclasses.replace(shop, tasks=(task,))
    first = [tried(task.task_id, (call("an apple"),), shortfall=0.0)]
    samples = refine_samples(benchmark, gold_answers(benchmark).answers, first)
    (gold,) = samples.answers.values()
    assert dict(gold.calls[0].arguments) == {"item": "an apple"}
