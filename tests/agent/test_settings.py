"""What an agent is made with, and how to generate, for the agent and for one run."""

import pytest

from agentkit import Agent
from agentkit.agent import RefineSettings, ToolPolicy
from agentkit.errors import UsageError
from agentkit.models.base import ModelSettings
from agentkit.testing import FunctionModel, ScriptedModel


async def test_the_settings_of_a_run_lie_over_those_of_the_agent():
    """What the run says holds for it alone; what it leaves open is as the agent has it."""
    seen = []

    def note(request):
        seen.append(request.settings)
        return "Yes."

    own = ModelSettings(temperature=0.5, max_tokens=100, extra={"a": 1, "b": 2})
    agent = Agent(FunctionModel(note), settings=own)
    given = ModelSettings(temperature=0, seed=7, extra={"b": 3})
    await agent.run("Is it?", settings=given)
    async for _ in agent.stream("Is it?", settings=given):
        pass
    await agent.run("Is it?")
    both = ModelSettings(temperature=0, max_tokens=100, seed=7, extra={"a": 1, "b": 3})
    assert seen == [both, both, own]


def policy(**options):
    """An agent's options with this policy for its tools."""
    return lambda: {"tool_policy": ToolPolicy(**options)}


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        (policy(contracts="allways"), "contracts is 'allways'; use 'always' or 'off'"),
        (lambda: {"refine": "adaptiv"}, "refine is 'adaptiv'; use one of none, vanilla, adaptive"),
        (
            lambda: {"refine": RefineSettings(mode="adaptive", max_refinements=-1)},
            "max_refinements is -1; use 0 or more",
        ),
        (lambda: {"retriever": "all"}, "retriever is 'all'; use 'auto'"),
        (policy(timeout_seconds=0), "a call may take 0 seconds.*give more than 0"),
        (policy(retries=-1), "a tool has -1 retries; give 0 or more"),
        (policy(repeats=-1), "a call has -1 repeats; give 0 or more"),
    ],
)
def test_a_setting_that_means_nothing_is_refused(options, advice):
    """A slip in a setting is an error at once, and no check that is silently left out."""
    with pytest.raises(UsageError, match=advice):
        Agent(ScriptedModel([]), **options())
