"""Retrieval as in the paper: judge, abstraction and its three stages."""

import asyncio
import itertools
import json
import re
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.errors import ModelTimeoutError
from agentkit.messages import Usage
from agentkit.retrieval import Candidates, SubGoal, estimate_tokens
from agentkit.testing import FunctionModel, ScriptedModel
from agentkit.tools.definition import Example, Specification
from agentkit_bench import ModelJudge, TypedDagRetriever
from agentkit_bench.abstraction import Abstraction, judge_composites
from agentkit_bench.paper_judge import (
    CHECK_SPECIFICATIONS,
    RANK_DESCRIPTIONS,
    RANK_EXAMPLES,
    description_line,
    example_line,
    read_order,
    read_verdicts,
    specification_line,
)

LINE = re.compile(r"^(\d+)\. (?:tool_(\d+))?", re.MULTILINE)
STAGES = ("L1 signature", "L2 description", "L3 specification", "L4 examples")


def level(request):
    """Which question a prompt asks."""
    system = request.messages[0].text
    marks = {"plan which": "plan", "Rank the tools by how well": "L2", "You check": "L3",
             "worked calls": "L4"}  # fmt: skip
    return next(name for mark, name in marks.items() if mark in system)


def judge(plan="no plan", **answers):
    """A model that answers each level as it is told, by text or by function."""

    def answer(request):
        found = ({"plan": plan} | answers).get(level(request), "nonsense")
        return found(request) if callable(found) else found

    return FunctionModel(answer)


def lines(request):
    return request.messages[-1].text.split("# Tools\n", 1)[1].splitlines()


def numbered(request):
    """Number and number of the tool of each candidate."""
    return [
        (int(number), int(tool or -1)) for number, tool in LINE.findall("\n".join(lines(request)))
    ]


def ranking(score):
    """An answer that ranks by ``score(tool)``, which depends on nothing else."""

    def answer(request):
        order = sorted(numbered(request), key=lambda pair: (-score(pair[1]), pair[1]))
        return json.dumps([number for number, _ in order])

    return answer


def verdicts(accepts):
    def answer(request):
        return json.dumps({str(number): accepts(tool) for number, tool in numbered(request)})

    return answer


def some_tools(count, **fields):
    """Tools with an argument of one type or another, conditions and an example."""
    kinds = ("number", "boolean", "integer")
    return [
        replace(
            ToolDefinition.from_schema(
                f"tool_{place}",
                "Does something.",
                {"properties": {"value": {"type": kinds[place % 3]}}, "required": ["value"]},
            ),
            specification=Specification(pre=("value != None",)),
            examples=(Example(arguments={"value": place}, result=place),),
        )
        for place in range(count)
    ]


BOOLEAN = '[{"intent": "switch it", "inputs": {"on": "true/false"}}]'


async def levels(model, library, query="a request", **options):
    retriever = TypedDagRetriever(model, **options)
    return await retriever.cascades(query, library)


async def test_the_levels_of_the_paper_run_in_order():
    """Types prune hard, the judge keeps k2, rejects and reranks; one tool is left."""
    library = Library(some_tools(90))
    model = judge(
        BOOLEAN, L2=ranking(lambda tool: tool), L3=verdicts(lambda tool: tool % 2 == 0),
        L4=ranking(lambda tool: -tool),
    )  # fmt: skip
    (cascade,) = await levels(model, library, k2=8)
    one, two, three, four = (level.tools for level in cascade.levels)
    assert tuple(level.stage for level in cascade.levels) == STAGES
    assert set(one) == {f"tool_{place}" for place in range(1, 90, 3)}
    assert list(two) == [f"tool_{place}" for place in range(88, 64, -3)]
    assert list(three) == ["tool_88", "tool_82", "tool_76", "tool_70"]
    assert four == ("tool_70",)
    assert cascade.goal.intent == "switch it"


async def test_the_context_is_the_union_over_the_steps():
    """Each step gives its best tool, in the order of the steps; a tool found twice counts once."""
    plan = json.dumps(
        [{"intent": f"{at} thing", "argument_names": ["x"]} for at in ("first", "second", "third")]
    )

    def by_step(request):
        step = request.messages[-1].text
        return "[1]" if "first" in step else "[2]" if "second" in step else "[1]"

    library = Library([replace(one, examples=()) for one in some_tools(5)])
    model = judge(plan, L2=by_step)
    found = await TypedDagRetriever(model).retrieve("do it all", library)
    assert [hit.definition.name for hit in found.hits] == ["tool_0", "tool_1"]
    assert [definition.name for definition in found.offered] == ["tool_0", "tool_1"]
    assert len(found.goals) == 3
    assert found.usage.requests == len(model.requests) == 1 + 3 * 2


async def test_cost_by_level_is_that_of_the_formula():
    """C_hier is the sum over l = 2, 3, 4 of what the records of S_(l-1) cost."""
    library = Library(some_tools(30))
    model = judge(BOOLEAN, L2="[1, 2, 3, 4]", L3='{"1": false}', L4="[1]")
    (cascade,) = await levels(model, library, k2=4)
    sets = [[library[name].definition for name in one.tools] for one in cascade.levels]

    def price(shown, definitions):
        return sum(estimate_tokens(shown(one) + "\n") for one in definitions)

    expected = [
        0,
        price(description_line, sets[0]),
        price(specification_line, sets[1]),
        price(example_line, sets[2]),
    ]
    assert [level.evidence_tokens for level in cascade.levels] == expected
    assert cascade.evidence_tokens == sum(expected)


ANSWERS = ["[1]", "[3, 1, 2]", '{"1": false, "2": false}', "nonsense", "", '["tool_1", "made_up"]',
           "[1, 1, 1, 1]", "x" * 50_000, BOOLEAN, '{"1": true}', "[9, 8, 7]"]  # fmt: skip


@given(
    count=st.integers(0, 50),
    answers=st.lists(st.sampled_from(ANSWERS), min_size=1, max_size=8),
    k2=st.integers(1, 40),
    prompt_budget=st.integers(500, 2000),
    surface=st.sampled_from(["best", "survivors"]),
    fails=st.booleans(),
)
def test_survivor_sets_are_nested_whatever_the_judge_says(
    count, answers, k2, prompt_budget, surface, fails
):
    """S1, S2, S3, S4 are nested, S2 has at most k2 tools, no prompt exceeds W, results repeat."""
    requests = []

    def answer(request):
        requests.append(request)
        size = sum(len(message.text) for message in request.messages)
        if fails and size % 5 == 0:
            raise RuntimeError("the judge broke")
        return answers[size % len(answers)]

    library = Library(some_tools(count))
    retriever = TypedDagRetriever(
        FunctionModel(answer), k2=k2, prompt_budget=prompt_budget, surface=surface
    )
    cascades = asyncio.run(retriever.cascades("a request", library))
    for cascade in cascades:
        sets = [set(library.tools), *(set(level.tools) for level in cascade.levels)]
        assert all(later <= earlier for earlier, later in itertools.pairwise(sets))
        assert len(sets[2]) <= k2
        assert len(sets[4]) == min(1, len(sets[3])) if surface == "best" else sets[4] == sets[3]
    texts = [[message.text for message in request.messages] for request in requests]
    assert all(sum(map(estimate_tokens, both)) <= prompt_budget for both in texts)
    found = asyncio.run(retriever.retrieve("a request", library))
    again = asyncio.run(retriever.retrieve("a request", library))
    assert (found.hits, found.notes, found.cards) == (again.hits, again.notes, again.cards)
    assert found.tokens <= 1600
    assert {hit.definition.name for hit in found.hits} <= set(library.tools)


async def test_when_every_candidate_is_rejected_the_step_has_no_tool():
    """As in the paper, S4 is then empty; a note says so."""
    model = judge(L2="[1]", L3=verdicts(lambda _: False))
    found = await TypedDagRetriever(model).retrieve("ask", Library(some_tools(3)))
    assert found.hits == ()
    assert "every candidate was rejected" in found.notes[-1]
    planned = TypedDagRetriever(judge(BOOLEAN))  # no tool takes what the step has
    assert (await planned.retrieve("ask", Library(some_tools(1)))).hits == ()


NAMES = ["add", "sub", "math.mul"]


def tools(count, words=3, specification=None):
    plain = (
        ToolDefinition.from_schema(f"tool_{place}", "word " * words, {}) for place in range(count)
    )
    return [replace(one, specification=specification or Specification()) for one in plain]


def names(definitions):
    return [definition.name for definition in definitions]


def shown(request):
    """Number and tool of each candidate in a prompt."""
    listed = request.messages[-1].text.split("# Tools\n", 1)[1]
    return [(int(number), int(tool or -1)) for number, tool in LINE.findall(listed)]


def by_preference(preference):
    """A judge that always orders tools the same way, ``preference`` being best first."""
    rank = {tool: place for place, tool in enumerate(preference)}

    def answer(request):
        ordered = sorted(shown(request), key=lambda pair: rank.get(pair[1], len(rank)))
        return json.dumps([number for number, _ in ordered])

    return FunctionModel(answer)


def cost(request, count):
    return sum(count(message.text) for message in request.messages)


# --- answers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        "[3, 1]", "3, 1", "3. math.mul\n1. add", "```json\n[3,1,]\n```", '["MATH.MUL", "Add"]',
        '{"ranking": [3, 1]}', '[{"number": 3}, {"id": 1}]', '{"add": 0.2, "math.mul": 0.9}',
        '["3. math.mul", "1. add"]', "math.mul, then add", "I'd take [3, 1] because math.mul",
        '[3, 99, -1, 0, 1, 3, 1e9, "no_such_tool", null, true, [], {}]', "[3, 1", "[3.0, 1.0]",
    ],
)  # fmt: skip
def test_orders_are_read_in_any_form(answer):
    """Numbers or names, lists, objects, scores or prose; invented ones and repetitions go."""
    assert read_order(answer, NAMES) == [2, 0]


@pytest.mark.parametrize(
    "answer",
    [
        '{"1": true, "2": false, "3": true}', '{"1": "yes", "2": "No.", "3": "compatible"}',
        '{"add": true, "sub": "incompatible: no list", "math.mul": 1}',
        '{"verdicts": {"1": true, "2": 0, "3": 1}}', "[1, 3]", '["add", "math.mul"]',
    ],
)  # fmt: skip
def test_verdicts_are_read_in_any_form(answer):
    """Objects of numbers or names; a bare list names the accepted ones."""
    assert read_verdicts(answer, NAMES) == {0: True, 1: False, 2: True}


@given(
    answer=st.one_of(
        st.text(max_size=200),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(NAMES),
            lambda part: (
                st.lists(part, max_size=5)
                | st.dictionaries(
                    st.sampled_from(["1", "2", "add", "name", "ok", "rejected", "yes"]),
                    part,
                    max_size=4,
                )
            ),
            max_leaves=20,
        ).map(json.dumps),
    )
)
def test_any_answer_is_read_without_an_error(answer):
    """Only places of candidates come out, each once."""
    order = read_order(answer, NAMES)
    assert len(order) == len(set(order))
    assert set(order) <= {0, 1, 2}
    assert read_verdicts(answer, NAMES).keys() <= {0, 1, 2}


# --- prompts --------------------------------------------------------------------------------------


async def test_what_fits_is_judged_in_one_pass():
    """One prompt for all candidates, as the paper has it; those not named come last, in order."""
    model = FunctionModel(lambda _: "[5, 2]")
    ranked = await ModelJudge(model).rank(RANK_DESCRIPTIONS, "a step", tools(5), 3)
    assert names(ranked.order) == ["tool_4", "tool_1", "tool_0", "tool_2", "tool_3"]
    assert ranked.usage == Usage(requests=len(model.requests)) == Usage(requests=1)
    assert "at most 3" in model.requests[0].messages[0].text


@given(
    count=st.integers(0, 120),
    words=st.integers(0, 60),
    keep=st.integers(1, 40),
    room=st.integers(130, 900),
    step=st.text(max_size=400),
    counter=st.sampled_from([estimate_tokens, len, lambda text: len(text.split()) * 3 + 1]),
    answer=st.sampled_from(["[1]", "[3, 2, 1]", "no idea", "", '{"2": false}', "[9999]"]),
)
def test_no_prompt_exceeds_the_budget(count, words, keep, room, step, counter, answer):
    """Whatever candidates, step, counter and answers: prompts fit, and nobody gets lost."""
    questions = (RANK_DESCRIPTIONS, CHECK_SPECIFICATIONS, RANK_EXAMPLES)
    budget = room + max(counter(question.instructions) for question in questions)
    model = FunctionModel(lambda _: answer)
    judge = ModelJudge(model, token_budget=budget, count_tokens=counter)
    candidates = tools(count, words, Specification(text=("condition " * words,)))
    ranked = asyncio.run(judge.rank(RANK_DESCRIPTIONS, step, candidates, keep))
    checked = asyncio.run(judge.check(CHECK_SPECIFICATIONS, step, candidates))
    assert all(cost(request, counter) <= budget for request in model.requests)
    assert sorted(names(ranked.order)) == sorted(names(candidates))
    assert checked.rejected <= set(names(candidates))
    assert (ranked.usage + checked.usage).requests == len(model.requests)


@given(st.randoms(use_true_random=False), st.integers(1, 200), st.integers(1, 12))
def test_a_tournament_finds_what_one_pass_would(random, count, keep):
    """A judge that always prefers the same of two tools gives the same best, however split."""
    preference = random.sample(range(count), count)
    candidates = tools(count, words=12)
    judge = ModelJudge(by_preference(preference), token_budget=900)
    ranked = asyncio.run(judge.rank(RANK_DESCRIPTIONS, "a step", candidates, keep))
    assert names(ranked.order)[:keep] == [f"tool_{tool}" for tool in preference][:keep]
    assert ranked.notes == ()


# --- judges that fail -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("Bananas are yellow.", "no candidate in the judge's answer 'Bananas are yellow.'"),
        ('["invented_tool", 77]', "no candidate"),
        ("", "answered nothing"),
        (ModelTimeoutError("too slow"), "ModelTimeoutError: too slow"),
    ],
)
async def test_a_useless_judge_changes_nothing_and_is_noted(answer, reason):
    """The order before is kept, nobody is rejected, the note gives the reason."""
    candidates = tools(4, specification=Specification(pre=("x > 0",)))
    ranked = await ModelJudge(ScriptedModel([answer])).rank(
        RANK_DESCRIPTIONS, "a step", candidates, 2
    )
    assert list(ranked.order) == candidates
    assert reason in ranked.notes[0]
    assert "the order before was kept" in ranked.notes[0]
    checked = await ModelJudge(ScriptedModel([answer])).check(
        CHECK_SPECIFICATIONS, "a step", candidates
    )
    assert (checked.rejected, checked.usage.requests) == (frozenset(), 1)
    assert "nobody was rejected" in checked.notes[0]


async def test_without_evidence_nothing_is_asked():
    """Tools without conditions or examples cost nothing and stay as they were."""
    model = ScriptedModel([])
    judge = ModelJudge(model)
    assert (await judge.check(CHECK_SPECIFICATIONS, "a step", tools(5))).rejected == frozenset()
    ranked = await judge.rank(RANK_EXAMPLES, "a step", tools(5), 1)
    assert (names(ranked.order), model.requests) == (names(tools(5)), [])
    one = await judge.rank(RANK_DESCRIPTIONS, "a step", tools(1), 1)
    assert (names(one.order), model.requests) == (["tool_0"], [])


def calling(name, *children, summary=""):
    """A tool, or a composite that calls others; its program is not run here."""
    definition = ToolDefinition.from_schema(name, summary, {})
    calls = ", ".join(f"tools[{child!r}]()" for child in children)
    return (
        replace(definition, body={"format": 2, "source": f"def f(): return [{calls}]"})
        if children
        else definition
    )


LIBRARY = Library(
    [
        calling("add"),
        calling("mul"),
        calling("pow"),
        calling("square_sum", "add", "pow"),
        calling("quadratic", "square_sum", "mul"),
        calling("other"),
    ]
)


def abstract_verdicts(scores, margin=0.1, library=LIBRARY):
    judged = judge_composites(scores, library.dag, margin=margin)
    return {one.name: one.verdict for one in judged}


async def moved(scores, library=LIBRARY):
    """The hits after the stage, best first, with their scores."""
    candidates = Candidates.of(library).add(scores)
    left = await Abstraction()("a request", SubGoal(intent="a step"), candidates)
    assert len(left) == len(candidates)
    return {hit.definition.name: round(hit.score, 3) for hit in left.hits}


async def test_a_composite_that_covers_pushes_its_parts_behind():
    """It is better than each part by the margin: parts through all layers go behind."""
    found = await moved({"quadratic": 1.0, "mul": 0.8, "pow": 0.7, "other": 0.6})
    assert found == {"quadratic": 1.0, "other": 0.6, "mul": 0.4, "pow": 0.35}
    assert list(found) == ["quadratic", "other", "mul", "pow"]


async def test_a_composite_that_is_too_broad_goes_behind():
    """A part that does the step better comes first; the other parts stay."""
    found = await moved({"mul": 1.0, "quadratic": 0.8, "pow": 0.5})
    assert list(found) == ["mul", "pow", "quadratic"]
    assert found["quadratic"] == 0.4


def test_descent_stops_at_the_highest_that_covers():
    """What lies below it is not looked at; where it does not cover, its parts are."""
    assert abstract_verdicts({"quadratic": 1.0, "square_sum": 0.5, "add": 0.4}) == {
        "quadratic": "covers"
    }
    assert abstract_verdicts({"quadratic": 0.5, "square_sum": 1.0, "add": 0.4}) == {
        "quadratic": "too_broad",
        "square_sum": "covers",
    }
    assert abstract_verdicts({"quadratic": 1.0, "square_sum": 0.95, "add": 0.4}) == {
        "quadratic": "indistinct",
        "square_sum": "covers",
    }


@pytest.mark.parametrize(
    ("whole", "part", "margin", "verdict"),
    [
        (1.0, 0.90, 0.1, "covers"),
        (1.0, 0.92, 0.1, "indistinct"),
        (1.0, 1.09, 0.1, "indistinct"),
        (1.0, 1.10, 0.1, "too_broad"),
        (1.0, 1.0, 0.0, "too_broad"),
        (0.0, 0.0, 0.1, "covers"),
        (0.0, 0.1, 0.1, "too_broad"),
    ],
)
def test_the_conditions_are_those_of_the_definition(whole, part, margin, verdict):
    """The margin is relative, and counts on its bound."""
    scores = {"quadratic": whole, "mul": part}
    assert abstract_verdicts(scores, margin=margin) == {"quadratic": verdict}


async def test_circles_and_missing_tools_do_not_disturb():
    """A broken library still gets an order; tools of a circle are no parts of each other."""
    library = Library(
        [calling("a", "b"), calling("b", "a"), calling("c", "a", "gone"), calling("self", "self")]
    )
    scores = {"a": 1.0, "b": 0.5, "c": 0.4, "self": 0.3}
    found = await moved(scores, library)
    assert found == {"a": 1.0, "b": 0.5, "self": 0.3, "c": 0.2}
    assert abstract_verdicts({"c": 1.0, "a": 0.2, "b": 0.1}, library=library) == {"c": "covers"}
