"""With a policy that stays as it is, any model may try the tasks."""

from __future__ import annotations

from agentkit.messages import AssistantMessage, ToolCall
from agentkit.testing import FunctionModel
from agentkit_training.coevolution.checkpoint import FrozenEngine
from agentkit_training.jobs.coevolve import OutsideModel
from agentkit_training.rewards import verdict_reward


def other(asked):
    """A model of the runtime that asks for 18 or 24 months, and notes how it was asked."""

    def answer(request):
        asked.append(request.settings)
        arguments = {"euro": 1000, "periods": 18 if request.settings.seed % 2 else 24}
        call = ToolCall(call_id="1", name="loan_rate", arguments=arguments)
        return AssistantMessage(tool_calls=(call,))

    return OutsideModel(model=FunctionModel(answer, name="other"), max_tokens=48)


def test_the_library_learns_from_what_another_model_is_refused(begin):
    """The weights stay, the rule is learned; the other model was sampled, with short answers."""
    asked = []
    run = begin(reward=verdict_reward)
    before = run.weights.clone()
    run.source.model = other(asked)
    FrozenEngine().train(run.policy, run.source, steps=2)
    first, second = run.source.records
    assert [(one.tool, one.state) for one in first.proposals] == [("loan_rate", "active")]
    assert (first.next_version, second.version) == (2, 2)
    assert first.rollouts.count == len(asked) / 2 == 6
    assert {(one.temperature, one.max_tokens) for one in asked} == {(1.0, 48)}
    assert len({one.seed for one in asked}) > 1
    assert run.weights.equal(before)
