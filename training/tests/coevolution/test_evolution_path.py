"""ToolDNA's evolution stream: blocks that a policy writes beside perfect calls reach its next prompts."""

import json

import pytest

from agentkit.episodes import Episode, Turn, Verdict
from agentkit.evaluation import EvaluationSettings
from agentkit.messages import AssistantMessage, ToolResult
from agentkit.models.call_parser import parse_calls
from agentkit.tools.definition import ToolDefinition
from agentkit_training import PolicyModel, tiny_policy
from agentkit_training.coevolution.keeper import LibraryKeeper
from agentkit_training.coevolution.settings import CoevolutionSettings, as_learned_from
from agentkit_training.coevolution.source import Coevolution
from agentkit_training.coevolution.tasks import BLOCK_PROMPT
from agentkit_training.engines.base import Share
from agentkit_training.engines.lean import LeanEngine
from agentkit_training.rewards import tooldna_reward

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
    return keeper.decide([learned], run.source.memory.profile)[0]


def test_a_block_of_an_imperfect_episode_is_not_read(begin, bank):
    """The gate is r = 1 exactly (ToolDNA, appendix A): .9 does not pass."""
    run = begin(CoevolutionSettings(evolution=True))
    assert decided(run, written(f"{CALL}\n{BLOCK}", bank.definitions, score=0.9)) == ()
    assert run.source.library.version == 1


@pytest.mark.parametrize(
    ("block", "code"),
    [
        (BLOCK.replace("loan_rate", "house_rate"), "unreadable"),
        (BLOCK.replace("</description>", ""), "unreadable"),
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


TERMS_BLOCK = """<description>
Tool Name: loan_rate
Tool Description: What a loan costs a month.
Required Parameters:
periods(int): Term in months; the bank lends for {terms} only.
</description>"""


@pytest.fixture
def begin_writing(bank, writing):
    """Begins a run whose policy makes the right calls, and writes one of these blocks behind each."""

    def make(blocks):
        policy, left = tiny_policy(), iter(blocks)

        def answer(prompt):
            euro = int(prompt.rpartition("A loan of ")[2].partition(" ")[0])
            call = {"name": "loan_rate", "arguments": {"euro": euro, "periods": 36}}
            return json.dumps({"calls": [call]}) + "\n" + next(left)

        model = PolicyModel(policy, writer=writing(policy.tokenizer, answer), max_tokens=400)
        settings = CoevolutionSettings(evolution=True, group_size=2, tasks_per_step=2)
        source = Coevolution(
            model=model,
            keeper=LibraryKeeper(settings=settings, benchmark=bank),
            settings=settings,
            benchmark=bank,
            reward=tooldna_reward(bank, "R3"),
            asking=EvaluationSettings(max_steps=1),
        )
        return policy, source

    return make


def test_a_block_becomes_a_version_that_the_next_prompts_show(begin_writing):
    """Rollouts with r = 1 propose, the Tool Manager commits, and the policy reads the new text."""
    said = TERMS_BLOCK.format(terms="36, 48 or 60 months")
    policy, source = begin_writing([said] * 8)
    LeanEngine().train(policy, source, steps=1)
    (record,) = source.records
    assert record.rollouts.reward == 1
    assert {(one.stream, one.tool, one.state) for one in record.proposals} == {
        ("evolution", "loan_rate", "active")
    }
    assert (record.version, record.next_version) == (1, 2)
    shown = [
        policy.tokenizer.decode(one.sequences[0].prompt) for one in source.rollouts(1, Share())
    ]
    assert all("36, 48 or 60 months only" in prompt for prompt in shown)


def test_one_of_several_blocks_of_a_step_is_taken(begin_writing):
    """Blocks that word the same text otherwise conflict with it; half a block is told, not taken."""
    blocks = [
        TERMS_BLOCK.format(terms="36 months"),
        TERMS_BLOCK.format(terms="36 months").partition("</description>")[0],
        TERMS_BLOCK.format(terms="36 or 48 months"),
        "",
    ]
    policy, source = begin_writing(blocks)
    LeanEngine().train(policy, source, steps=1)
    (record,) = source.records
    assert [one.state for one in record.proposals].count("active") == 1
    refused = {one.codes for one in record.proposals if one.state == "rejected"}
    assert refused == {("conflict",), ("unreadable",)}
    assert record.next_version == 2
