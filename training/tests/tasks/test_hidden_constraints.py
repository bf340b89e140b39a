"""Hidden constraints: what the executor demands, how the runtime judges it, and parts that share nothing."""

import re

import pytest
from hypothesis import given, settings, strategies as st

from agentkit import open_store
from agentkit.composites import rule_problems
from agentkit.evaluation import EvaluationSettings, episodes_of_run, evaluate
from agentkit.evolution.proposal import Observations, Proposal
from agentkit.evolution.proposers.evidence import EvidenceProposer
from agentkit.evolution.proposers.observed import EvidenceConfig
from agentkit.messages import AssistantMessage, ToolCall, ToolMessage
from agentkit.models.base import ModelResponse
from agentkit.testing import FunctionModel
from agentkit.tools.rules import rule_sentence
from agentkit.tools.validation import ArgumentValidator
from agentkit_training.tasks.hidden_constraints.family import (
    ALL_KINDS,
    REFUSED,
    HiddenWorld,
    fillings_of,
    gold_calls,
    hidden_constraints,
    library_of,
    oracle_rules,
    tool_of,
)
from agentkit_training.tasks.hidden_constraints.tools import LOOKUPS, TOOLS, WORLDS, looked_up
from agentkit_training.tasks.splits import leakage

EVERY = {world: hidden_constraints(world, kinds=ALL_KINDS) for world in WORLDS}
TASKS = [(world, task) for world in WORLDS for _, part in EVERY[world] for task in part.tasks]
OTHER_GOLD = {
    (other, task.request): gold_calls(task)[-1].arguments
    for world, other in zip(WORLDS, reversed(WORLDS), strict=True)
    for _, part in EVERY[world]
    for task in part.tasks
}


def broken_by(world, task):
    """Calls that differ from the gold call in the one field that the demand is about."""
    tool, gold = tool_of(task), gold_calls(task)[-1].arguments
    demand = tool.demands[world]
    if tool.kind == "requires":
        return [{name: value for name, value in gold.items() if name not in demand.others}]
    name = getattr(demand, "parameter", "room")
    wrong = [OTHER_GOLD[world, task.request][name]]
    if tool.definition.signature.properties[name]["type"] == "integer":
        wrong += [0, -1, 3, 7]
    elif tool.kind != "condition":
        wrong += ["the usual", "Ann Lee"]
    return [{**gold, name: value} for value in wrong]


def test_gold_calls_are_taken_and_each_violation_of_the_field_is_refused():
    """The executor takes all gold calls, and none that breaks its demand in one field."""
    for world, task in TASKS:
        one = HiddenWorld([*TOOLS, *LOOKUPS], world)
        tools = {tool.name: tool for tool in one.tools()}
        *before, last = gold_calls(task)
        for call in before:
            tools[call.name](**call.arguments)
        assert one.refusal(last.name, last.arguments) == "", task
        for arguments in broken_by(world, task):
            assert one.refusal(last.name, arguments).startswith(REFUSED), (task, arguments)


def test_gold_calls_fit_the_contract():
    """What is refused is refused for the hidden demand, never for the schema that is told."""
    for _, task in TASKS:
        for call in gold_calls(task):
            known = TOOLS[call.name].definition if call.name in TOOLS else LOOKUPS[call.name]
            assert ArgumentValidator(known).runnable(call.arguments) == call.arguments


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", TOOLS)
def test_definitions_do_not_tell_the_demand(name, world):
    """No value, unit, form or other tool of the demand stands in the definition's texts."""
    tool = TOOLS[name]
    texts = [tool.definition.text, *tool.definition.description.parameters.values()]
    words = set(re.findall(r"\w+", " ".join(texts).casefold()))
    demand = tool.demands[world]
    told = {
        "enum": lambda: demand.values,
        "unit": lambda: [demand.unit, demand.minimum, demand.maximum, demand.multiple_of],
        "form": lambda: [demand.words, demand.example],
        "condition": lambda: [*re.findall(r'"(\w+)"', demand.expression), 6],
        "requires": lambda: ["must", "when", "required", "together"],
        "call_before": lambda: [demand.tool, "first", "before", "result"],
    }[tool.kind]()
    for value in told:
        assert str(value).casefold() not in " ".join(texts).casefold().split()
        assert not set(re.findall(r"\w+", str(value).casefold())) - {"a", "the", "of"} <= words
    assert not tool.definition.specification.rules


def test_questions_do_not_tell_values_that_they_do_not_mean():
    """Where a word or number has to be turned into another, the question does not hold the other."""
    for _, task in TASKS:
        tool = tool_of(task)
        if tool.kind in {"enum", "unit", "form"}:
            value = gold_calls(task)[-1].arguments[tool.demands["first"].parameter]
            said = re.findall(r"[\w/.-]+", task.request)
            assert str(value) not in said or value in {"card", "transfer", "cash"}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", TOOLS)
def test_oracle_rules_are_fit_for_a_library(name, world):
    """The Tool Manager's own checks have nothing against the repair that is known to be right."""
    (rule,) = oracle_rules(name, world)
    assert rule_problems(rule, TOOLS[name].definition, {**TOOLS, **LOOKUPS}) == ()


def test_refusals_tell_as_much_as_they_are_set_to():
    """A refusal says that it is one, and with ``rule`` also what was broken."""
    call = {"amount": 5000, "term": 4}
    assert (
        HiddenWorld(["request_loan"], "first", "nothing").refusal("request_loan", call) == REFUSED
    )
    (rule,) = oracle_rules("request_loan")
    told = HiddenWorld(["request_loan"], "first").refusal("request_loan", call)
    assert told == f"{REFUSED} {rule_sentence(rule)}"


def test_a_value_of_another_tool_is_taken_only_after_it_was_told():
    """The reference of the right person from the wrong lookup is refused."""
    code = looked_up("find_customer", "Ann Lee")
    for lookup, is_taken in (("find_customer", True), ("find_contract", False), (None, False)):
        world = HiddenWorld([*TOOLS, *LOOKUPS], "first")
        if lookup:
            next(tool for tool in world.tools() if tool.name == lookup)(name="Ann Lee")
        refusal = world.refusal("cancel_subscription", {"reference": code})
        assert (refusal == "") == is_taken


NAIVE = {"term": 4, "day": "3 May", "order": "4821", "amount": 3, "time": 2}
"""What somebody would write who knows the definition alone."""


def knowing(benchmark, *, wrong_first=False):
    """A model that knows the gold calls; or that first tries what the definition suggests."""
    gold = {task.request: gold_calls(task) for task in benchmark.tasks}

    def answer(request):
        question = next(one.text for one in request.messages if one.role == "user")
        done = sum(isinstance(one, ToolMessage) for one in request.messages)
        calls = [(one.name, dict(one.arguments)) for one in gold[question]]
        if wrong_first:
            name, arguments = calls[-1]
            naive = {key: NAIVE.get(key, "something") for key in arguments}
            demand = TOOLS[name].demands["first"].parameter
            calls.insert(0, (name, {**arguments, demand: naive[demand]}))
        if done >= len(calls):
            return ModelResponse(message=AssistantMessage(text="done"))
        name, arguments = calls[done]
        call = ToolCall(call_id=str(done), name=name, arguments=arguments)
        return ModelResponse(message=AssistantMessage(tool_calls=(call,)))

    return FunctionModel(answer)


async def episodes_with(benchmark, model, library=None, kinds=(), tries=1):
    """The episodes of all tasks."""
    store = open_store("memory:")
    steps = tries * (2 if "call_before" in kinds else 1)
    choice = "required" if steps == 1 else "auto"
    settings = EvaluationSettings(max_steps=steps, tool_choice=choice)
    await evaluate(benchmark, model=model, store=store, run="r", library=library, settings=settings)
    return list(episodes_of_run(store, "r"))


@pytest.mark.parametrize("judged", ["calls", "world"])
@pytest.mark.parametrize("repair", ["fixed", "words", "rules"])
async def test_gold_calls_pass_under_every_right_text(judged, repair):
    """Whoever makes the gold calls is right, whichever of the texts the tools have."""
    parts = hidden_constraints(kinds=ALL_KINDS, train=3, judged=judged)
    library = library_of(repair)
    found = await episodes_with(parts.train, knowing(parts.train), library, ALL_KINDS)
    assert len(found) == 36
    assert all(one.verdict.passed for one in found)


async def test_a_refused_call_counts_unless_the_world_alone_is_judged():
    """Mended after a refusal, an answer is wrong by its calls and right by what came of it."""
    for judged, right in (("calls", False), ("world", True)):
        parts = hidden_constraints(kinds=["enum", "unit", "form"], train=2, judged=judged)
        model = knowing(parts.train, wrong_first=True)
        found = await episodes_with(parts.train, model, tries=2)
        assert {one.verdict.passed for one in found} == {right}
        assert all(one.results[0].status == "failed" for one in found)


async def test_the_swapped_world_refuses_what_was_right_in_the_first():
    """A policy that has learned the first world by heart fails in the other, tool by tool."""
    kinds = ["enum", "unit", "form", "condition", "call_before"]
    first, swapped = (hidden_constraints(w, kinds=kinds, train=3) for w in ("first", "swapped"))
    found = await episodes_with(swapped.train, knowing(first.train), kinds=kinds)
    assert not any(one.verdict.passed for one in found)


async def test_the_evidence_proposer_learns_oracle_rules_from_refusals():
    """Evolution finds the repair of values where refusals tell it, and nothing where not."""
    kinds = ["enum", "unit", "form"]
    for says, least in (("rule", 7), ("nothing", 0)):
        parts = hidden_constraints(kinds=kinds, train=4, says=says)
        model = knowing(parts.train, wrong_first=True)
        episodes = await episodes_with(parts.train, model, tries=2)
        library = library_of("fixed", names=[one.name for one in parts.train.definitions])
        proposer = EvidenceProposer(EvidenceConfig(min_failures=1, min_episodes=1))
        proposals = await proposer.propose(Observations(library=library, episodes=tuple(episodes)))
        learned = {
            (one.candidate.name, rule)
            for one in proposals
            if isinstance(one, Proposal)
            for rule in one.candidate.specification.rules
        }
        values = {(name, rule) for name in TOOLS for rule in oracle_rules(name)}
        assert len({name for name, _ in learned}) >= least
        assert len(learned & values) >= least - 2  # a date may be learned as one that has a name
        assert bool(learned) == bool(least)


PARTS = ("train", "validation", "test")


@given(seed=st.integers(0, 10_000))
@settings(max_examples=10)
def test_parts_share_no_question_and_no_entity(seed):
    """A name, place or number that one part asks about is in no other."""
    parts = hidden_constraints(seed=seed, kinds=ALL_KINDS)
    benchmarks = dict(parts)
    for one in PARTS:
        for other in PARTS:
            if one != other:
                assert not leakage(benchmarks[one], benchmarks[other], functions="free").questions
    for tool in TOOLS.values():
        for slot in tool.slots:
            if slot.is_entity:
                words = [{one.words for one in fillings_of(slot, part, seed)} for part in PARTS]
                assert all(words)
                assert sum(map(len, words)) == len(set().union(*words)) == len(slot.fillings)


@given(seed=st.integers(0, 10_000), distractors=st.integers(0, 3))
@settings(max_examples=10)
def test_equal_seeds_give_equal_tasks(seed, distractors):
    """The same seed gives the same tasks; another seed gives others."""
    asked = {"kinds": ALL_KINDS, "train": 5, "distractors": distractors}
    first, again = (hidden_constraints(seed=seed, **asked).train.tasks for _ in range(2))
    assert first == again
    assert hidden_constraints(seed=seed + 1, **asked).train.tasks != first


@given(seed=st.integers(0, 10_000))
@settings(max_examples=10)
def test_the_swapped_world_asks_the_same_and_wants_something_else(seed):
    """Questions, tools and texts are equal in both worlds, and most gold calls are not."""
    first, swapped = (
        hidden_constraints(world, seed=seed, kinds=ALL_KINDS) for world in ("first", "swapped")
    )
    assert first.test.definitions == swapped.test.definitions
    for one, other in zip(first.test.tasks, swapped.test.tasks, strict=True):
        assert (one.task_id, one.request, one.offered) == (
            other.task_id,
            other.request,
            other.offered,
        )
        if tool_of(one).kind != "requires":  # whose question gives what both worlds want
            assert gold_calls(one)[-1] != gold_calls(other)[-1]
