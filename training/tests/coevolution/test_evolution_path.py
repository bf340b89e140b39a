"""The evolution path: blocks that a policy writes beside perfect calls (r = 1)."""

from __future__ import annotations

import pytest

from agentkit.episodes import Episode, Turn, Verdict
from agentkit.messages import AssistantMessage, ToolResult
from agentkit.models.call_parser import parse_calls
from agentkit.tools.definition import ToolDefinition
from agentkit_training.coevolution.settings import CoevolutionSettings, as_learned_from
from agentkit_training.coevolution.tasks import BLOCK_PROMPT

CALL = '{"calls": [{"name": "loan_rate", "arguments": {"euro": 1000, "periods": 36}}]}'
BLOCK = """<description>
Tool Name: loan_rate
Tool Description: What a loan costs a month.
Required Parameters:
periods(int): Term in months; the bank lends for a few terms only.
</description>"""


def written(text, tools, *, score=1.0):
    """An episode in which the policy wrote a text, read as the runtime reads it."""
    parsed = parse_calls(text, tools)
    results = tuple(
        ToolResult(call_id=call.call_id, name=call.name, status="ok", value=27.78)
        for call in parsed.calls
    )
    message = AssistantMessage(text=parsed.text, tool_calls=parsed.calls)
    return Episode(
        episode_id="e1",
        request="A loan of 1000 euro over three years",
        model="tiny",
        stop_reason="step_limit",
        turns=(Turn(message=message, results=results),),
        verdict=Verdict(passed=score == 1, score=score),
    )


def decided(run, episode):
    """What became of what an episode suggests."""
    learned = as_learned_from(episode)
    keeper = run.source.keeper
    return keeper.decide([learned], run.source.memory.profile, step=0).proposals


def test_a_block_of_a_perfect_episode_is_taken_up(begin, bank):
    """The text beside a right call becomes the tool's; the call is read as it was written."""
    run = begin(CoevolutionSettings(evolution=True))
    episode = written(f"{CALL}\n{BLOCK}", bank.definitions)
    assert [dict(call.arguments) for call in episode.calls] == [{"euro": 1000, "periods": 36}]
    (one,) = decided(run, episode)
    assert (one.stream, one.tool, one.state) == ("evolution", "loan_rate", "active")
    assert (
        "a few terms"
        in run.source.library["loan_rate"].definition.description.parameters["periods"]
    )


def test_a_block_of_an_imperfect_episode_is_not_read(begin, bank):
    """The gate is r = 1 exactly (ToolDNA, appendix A): .9 does not pass."""
    run = begin(CoevolutionSettings(evolution=True))
    assert decided(run, written(f"{CALL}\n{BLOCK}", bank.definitions, score=0.9)) == ()
    assert run.source.library.version == 1


@pytest.mark.parametrize(
    ("block", "code"),
    [
        (BLOCK.replace("loan_rate", "house_rate"), "unknown_tool"),
        (BLOCK.replace("</description>", ""), "half_block"),
        (BLOCK.replace("periods(int)", "term(int)"), "unknown_parameter"),
    ],
)
def test_a_bad_block_is_a_record_with_its_reason(begin, bank, block, code):
    """What a policy writes wrongly is refused and told, and changes nothing."""
    run = begin(CoevolutionSettings(evolution=True))
    (one,) = decided(run, written(f"{CALL}\n{block}", bank.definitions))
    assert one.state == "rejected"
    assert code in one.codes
    assert run.source.library.version == 1


def test_the_form_that_is_asked_for_can_be_read():
    """The prompt's own example is no call, whatever tools there are: the labelled form is not JSON."""
    tools = (ToolDefinition(name="function"), ToolDefinition(name="parameter"))
    assert parse_calls(BLOCK_PROMPT, tools).calls == ()
