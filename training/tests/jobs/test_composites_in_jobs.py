"""Composites in jobs: tried out on the tasks' own code, and offered when held-out tasks are done."""

from __future__ import annotations

import pytest

from agentkit.evaluation import EvaluationSettings
from agentkit.interop.export import artifact_of
from agentkit.messages import AssistantMessage, ToolCall, ToolMessage
from agentkit.models.base import ModelResponse
from agentkit.testing import FunctionModel
from agentkit_training import PolicyModel, tiny_policy
from agentkit_training.coevolution.keeper import LibraryKeeper
from agentkit_training.coevolution.settings import CoevolutionSettings
from agentkit_training.coevolution.tasks import pure_tools
from agentkit_training.jobs.evaluate import evaluate_job
from agentkit_training.tasks.arithmetic import RECIPES, arithmetic, arithmetic_episodes

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
