"""Algorithm 2 as written: nested survivor sets, and one tool a step with its place in the DAG."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from dataclasses import replace

from hypothesis import given, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.retrieval import estimate_tokens
from agentkit.testing import FunctionModel
from agentkit.tools.definition import Example, Specification
from agentkit_bench import TypedDagRetriever
from agentkit_bench.paper_judge import description_line, example_line, specification_line

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
