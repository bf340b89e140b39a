"""What the evidence proposer does about a tool that has learned rules in an earlier round."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit import Agent, Library, ToolDefinition, tool
from agentkit.episodes import Episode
from agentkit.evolution.proposer import Observations
from agentkit.evolution.proposers.evidence import EvidenceProposer
from agentkit.evolution.proposers.observed import EvidenceConfig
from agentkit.messages import ToolCall
from agentkit.testing import ScriptedModel
from agentkit.tools.definition import Specification
from agentkit.tools.rules import Between, CallBefore, Form, OneOf, Requires, Rule

TERMS = OneOf(parameter="periods", values=(36, 48))
PRICE = Between(parameter="total_price", maximum=100)


def knows(definition: ToolDefinition, *rules: Rule) -> Library:
    """A library with the tool and what it learned before."""
    return Library([replace(definition, specification=Specification(rules=rules))])


async def proposals(library: Library, *episodes: Episode, knobs: EvidenceConfig | None = None):
    """All that is suggested."""
    proposer = EvidenceProposer() if knobs is None else EvidenceProposer(knobs)
    return await proposer.propose(Observations(library=library, episodes=episodes))


async def learned(library: Library, *episodes: Episode):
    """The rules of the one proposal; None where nothing is suggested."""
    found = await proposals(library, *episodes)
    assert len(found) <= 1
    return found[0].candidate.specification.rules if found else None


@pytest.fixture
def calls(make_episode):
    """Makes episodes of one call each, with what came of it."""
    counter = iter(range(10_000))

    def make(*outcomes, **arguments):
        given = {"total_price": 8.5, "periods": 36, "note": "hello", **arguments}
        return [
            make_episode(f"e{next(counter)}", ("calculate_loan", given, one)) for one in outcomes
        ]

    return make


async def test_a_second_rule_joins_the_first(loan, calls):
    """What is learned of another parameter leaves what was known as it is."""
    text = "!note must be given as YYYY-MM-DD"
    rules = await learned(knows(loan, TERMS, PRICE), *calls(text, text))
    assert rules == (TERMS, PRICE, Form(parameter="note", format="date", example="2026-05-31"))


async def test_a_bound_stated_anew_takes_the_place_of_the_old_one(loan, calls):
    """The upper bound and its openness are one part; unit and step stay."""
    before = Between(parameter="total_price", minimum=1, maximum=100, unit="euros")
    text = "!total_price must be less than 50"
    rules = await learned(knows(loan, before), *calls(text, text, total_price=70.0))
    after = Between(parameter="total_price", minimum=1, exclusive_maximum=50, unit="euros")
    assert rules == (after,)


@pytest.mark.parametrize("values", [(36, 48), (48, 36)])
async def test_what_is_known_is_not_suggested_again(loan, calls, values):
    """The episodes of the first round teach nothing in the second, in whatever order values come."""
    text = "!periods must be one of 36, 48, got 31"
    known = knows(loan, OneOf(parameter="periods", values=values))
    assert await learned(known, *calls(text, text, periods=31)) is None


async def loan_runs(library: Library, *periods: int):
    """Real runs of the loan with its learned rules, one for each term."""

    @tool
    def calculate_loan(total_price: float, periods: int, note: str = "") -> str:
        """What a loan costs a month."""
        return f"{total_price / periods:.2f}"

    bound = calculate_loan.with_definition(library["calculate_loan"].definition)
    found = []
    for number in periods:
        call = ToolCall(
            call_id="1",
            name="calculate_loan",
            arguments={"total_price": 8.5, "periods": number},
        )
        model = ScriptedModel([[call], "Done."])
        found.append((await Agent(model, tools=[bound]).run("A loan, please.")).episode)
    return found


async def test_our_own_refusals_teach_nothing(loan):
    """A call that a learned rule refused never came to the tool, so it is no evidence for the rule.

    The text of the parameter lists fewer terms; the refusals must not count for that list either.
    """
    texts = {**loan.description.parameters, "periods": "Loan term (36/48)."}
    listing = replace(loan, description=replace(loan.description, parameters=texts))
    library = knows(listing, OneOf(parameter="periods", values=(36, 48, 60)))
    runs = await loan_runs(library, 31, 31, 50)
    assert all(one.results[0].failure.cause == "one_of" for one in runs)
    assert await proposals(library, *runs) == []


async def test_a_list_that_was_read_in_part_is_widened_when_the_tool_states_more(loan, calls):
    """Refusals from before the rule stated the short list; those of a run without it state all."""
    short, whole = "!periods must be one of 36, 48", "!periods must be one of 36, 48, 60"
    episodes = calls(short, short, whole, whole, periods=31)
    rules = await learned(knows(loan, TERMS), *episodes)
    assert rules == (OneOf(parameter="periods", values=(36, 48, 60)),)


async def test_a_bound_is_widened_when_the_tool_states_more(loan, calls):
    """The tool takes up to 200 now; the refusals of before said 100."""
    texts = ["!total_price must be at most 100", "!total_price must be at most 200"] * 2
    rules = await learned(knows(loan, PRICE), *calls(*texts, total_price=900.0))
    assert rules == (Between(parameter="total_price", maximum=200),)


async def test_a_rule_goes_when_the_tool_takes_what_it_refuses(loan, calls):
    """Runs without the rule show that the tool takes 60, which the list does not hold."""
    found = await proposals(knows(loan, TERMS, PRICE), *calls(7.0, 7.0, periods=60))
    [one] = found
    assert one.candidate.specification.rules == (PRICE,)
    assert "The rule refuses what the tool accepts (2 calls in 2 conversations)" in one.reason


async def test_rules_about_several_parameters_and_earlier_calls_are_relaxed_too(
    loan, calls, make_episode
):
    """A call that the tool took gives all that such a rule is about."""
    first, needs = CallBefore(tool="find_customer"), Requires(parameter="periods", others=("note",))
    assert await learned(knows(loan, needs, first), *calls(7.0, 7.0)) == (needs,)
    bare = ("calculate_loan", {"total_price": 8.5, "periods": 36}, 7.0)
    episodes = [make_episode("a", bare), make_episode("b", bare)]
    assert await learned(knows(loan, needs, first), *episodes) == ()
