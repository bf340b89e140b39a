"""Composites in jobs: tried out on the tasks' own code, and offered when held-out tasks are done."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit._waiting import wait_for
from agentkit.evaluation import EvaluationSettings
from agentkit.interop.export import artifact_of
from agentkit.messages import AssistantMessage, ToolCall, ToolMessage
from agentkit.models.base import ModelResponse
from agentkit.testing import FunctionModel
from agentkit_training import PolicyModel, tiny_policy
from agentkit_training.coevolution.keeper import LibraryKeeper
from agentkit_training.coevolution.settings import CoevolutionSettings, ablation
from agentkit_training.coevolution.tasks import pure_tools, with_composites
from agentkit_training.config.jobs import CoevolveConfig
from agentkit_training.config.reading import parse_config
from agentkit_training.fine_tuning.teaching import taught_examples
from agentkit_training.jobs.coevolve import coevolve_job
from agentkit_training.jobs.evaluate import evaluate_job
from agentkit_training.tasks.arithmetic import RECIPES, arithmetic, arithmetic_episodes
from agentkit_training.tasks.loading import TaskSpec

BILLS = arithmetic(train=4, test=3, recipes=RECIPES[:1])


@pytest.fixture
def keeper():
    """The library of a run on bills, with the code of the tasks' tools."""
    return LibraryKeeper(
        settings=CoevolutionSettings(composites=True),
        benchmark=BILLS.train,
        model=PolicyModel(tiny_policy()),
        tools=pure_tools(BILLS.train),
    )


def in_one_call(request):
    """Makes the one call that a bill takes, if a composite for it is offered."""
    if any(isinstance(one, ToolMessage) for one in request.messages):
        return ModelResponse(message=AssistantMessage(text="Done."))
    composite = next((tool for tool in request.tools if tool.is_composite), None)
    if composite is None:
        return ModelResponse(message=AssistantMessage(text="There is no such tool."))
    asked = next(one.text for one in request.messages if one.role == "user")
    task = next(one for one in BILLS.test.tasks if one.request == asked)
    first, second = task.expects[0].calls
    numbers = (first.arguments["a"], first.arguments["b"], second.arguments["b"])
    arguments = dict(zip(composite.signature.properties, numbers, strict=True))
    call = ToolCall(call_id="1", name=composite.name, arguments=arguments)
    return ModelResponse(message=AssistantMessage(tool_calls=(call,)))


def test_composites_of_pure_tools_are_tried_out_on_the_code_of_the_tasks(keeper):
    """The tasks' worlds bring the code; without it no composite of pure tools can be accepted."""
    assert [tool.name for tool in pure_tools(BILLS.train)] == ["add", "sub", "mul", "div"]
    (found,) = keeper.distil(arithmetic_episodes(BILLS.train))
    assert found.state == "active"


def test_held_out_tasks_offer_the_composites_of_the_library(keeper):
    """An evaluation with a library that has composites lets the model use them, and judges that."""
    keeper.distil(arithmetic_episodes(BILLS.train))
    library = artifact_of(keeper.store).library
    for given, passed in ((library, 3), (None, 0)):
        model, settings = FunctionModel(in_one_call), EvaluationSettings()
        report = evaluate_job(model, BILLS.test, settings, library=given)
        assert report.total.passed == passed


COCODA = """\
policy: {weights: tiny, precision: fp32, answer_tokens: 8}
tasks: {source: arithmetic, train: 30, validation: 0, test: 1}
asking: {max_steps: 4}
coevolution: {steps: 1, tasks_per_step: 1, group_size: 2}
warm_up: 2
cold_start: {batch_size: 8, epochs: 1}
"""


def test_a_run_of_cocoda_distils_composites_before_the_policy_learns(tmp_path):
    """The named configuration goes through all three stages; a resumed run does none of them again."""
    config = parse_config(COCODA, CoevolveConfig)
    config = replace(config, coevolution=ablation("cocoda-no-retrieval", config.coevolution))
    run = coevolve_job(config, tmp_path / "run")
    phases = dict.fromkeys(one.phase for one in run.records() if one.phase != "tasks")
    assert list(phases) == ["test", "warm-up", "cold start", "coevolve"]
    (warm,) = (one for one in run.records() if one.phase == "warm-up")
    assert warm.figures["tried"] == 2
    assert warm.figures["composites"] > 0
    longer = replace(config, coevolution=replace(config.coevolution, steps=2))
    again = coevolve_job(longer, tmp_path / "run", resumes=True)
    assert [one.phase for one in again.records()].count("warm-up") == 1


def test_a_cold_start_teaches_the_composites_that_tasks_offer(keeper):
    """A policy that never saw composites calls them wrongly; so most answers are taught with them."""
    keeper.distil(arithmetic_episodes(BILLS.train))
    library = artifact_of(keeper.store).library
    names = [tool.name for tool in library if tool.definition.is_composite]
    policy, spec = tiny_policy(), TaskSpec(source="arithmetic", train=4)
    for tasks, share in ((with_composites(BILLS.train, library), 0.5), (BILLS.train, 0.0)):
        settings = EvaluationSettings(max_steps=4)
        made = taught_examples(policy, tasks, spec, library=library, settings=settings)
        texts = [policy.tokenizer.decode(one.completion) for one in wait_for(made).rows]
        assert (sum(names[0] in text for text in texts) > share * len(texts)) is (share > 0)
