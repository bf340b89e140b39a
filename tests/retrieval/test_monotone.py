"""When adding tools keeps what was found: Assumption 3 of CoCoDA, and where it ends.

The paper assumes that a tool found in a library is found in every larger one "up to the shortlist
cap k2", or gives way to a composite that beats it at L4. Exactly this holds here:

* Default mode: every tool that was ranked is ranked, as long as no more tools match than stages
  keep. Where the cap bites, a tool gives way only to tools ranked above it, composite or not. Order
  may change, because the rarity of words is that of the whole library.
* Paper mode, with a judge who scores each tool by itself and L1 that does so anyway: S1 and S3
  within S2 only grow; S2 loses a tool only where the cap k2 bites; the tool of a step changes only
  to one that the judge prefers at L4, and that one is new, or was shown to L4 for the first time.
"""

from __future__ import annotations

import asyncio
import json
import re
import zlib
from dataclasses import replace

from hypothesis import given, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.retrieval import CascadeRetriever, TextRanker, default_stages
from agentkit.testing import FunctionModel
from agentkit.tools.definition import Example, Specification
from agentkit_bench import TypedDagRetriever

WORDS = ("rocket", "weather", "loan", "mail", "find", "fuel", "price", "天气")
ALL = 10**9
LINE = re.compile(r"^(\d+)\. (tool_\d+)", re.MULTILINE)


def tool(number, words, children=()):
    definition = ToolDefinition.from_schema(
        f"tool_{number}",
        " ".join(words),
        {"properties": {"value": {"type": ("number", "boolean")[number % 2]}}},
    )
    calls = ", ".join(f"tools[{child!r}]()" for child in children)
    return replace(
        definition,
        specification=Specification(pre=(f"value != {number}",)),
        examples=(Example(arguments={"value": number}, result=0),),
        body={"format": 2, "source": f"def f(): return [{calls}]"} if calls else None,
    )


@st.composite
def growing(draw):
    """Some tools, more tools, and a request."""
    texts = draw(st.lists(st.lists(st.sampled_from(WORDS), max_size=4), min_size=1, max_size=24))
    tools = []
    for number, words in enumerate(texts):
        before = st.sampled_from([f"tool_{one}" for one in range(number)] or ["tool_0"])
        children = draw(st.lists(before, max_size=2)) if number else ()
        tools.append(tool(number, words, children))
    kept = draw(st.integers(0, len(tools)))
    query = draw(st.lists(st.sampled_from(WORDS), max_size=3).map(" ".join))
    return Library(tools[:kept]), Library(tools), query


def found(searching, query, library):
    result = asyncio.run(searching.retrieve(query, library))
    return [hit.definition.name for hit in result.hits]


def retriever(keep, stages=None):
    """Nothing but ``keep`` cuts."""
    return CascadeRetriever(
        stages=stages or default_stages(keep, embedder=None),
        shortlist=keep,
        offer=1,
        token_budget=ALL,
    )


def ranker(keep):
    """One stage that ranks and cuts; what comes behind it may reorder what is left."""
    return retriever(keep, [TextRanker(embedder=None, keep=keep)])


@given(growing())
def test_without_a_cap_nothing_found_gets_lost(made):
    """As long as stages keep every match, a larger library gives a superset."""
    smaller, larger, query = made
    everything = retriever(len(larger) + 1)
    assert set(found(everything, query, smaller)) <= set(found(everything, query, larger))


@given(growing(), st.integers(1, 6))
def test_at_the_cap_a_tool_gives_way_to_better_ones_only(made, keep):
    """What is lost is outranked, in the larger library, by as many tools as the cap holds."""
    smaller, larger, query = made
    everything = found(ranker(len(larger) + 1), query, larger)
    before, after = found(ranker(keep), query, smaller), found(ranker(keep), query, larger)
    lost = [name for name in before if name not in after]
    if lost:
        assert len(everything) > keep
    assert all(everything.index(name) >= keep for name in lost)


def test_order_may_change_although_nothing_is_lost():
    """Two words of a request swap their weight when one of them becomes common."""
    smaller = Library([tool(0, ["rocket"]), tool(2, ["fuel"]), tool(4, ["fuel", "price"])])
    larger = smaller.with_tools([tool(number, ["rocket", "mail"]) for number in range(6, 30)])
    everything = ranker(99)
    assert found(everything, "rocket fuel", smaller)[0] == "tool_0"
    assert found(everything, "rocket fuel", larger)[0] == "tool_2"


def consistent_judge(seed):
    """Scores each tool by itself; rejects one in four."""

    def points(name, level):
        return zlib.crc32(f"{seed} {level} {name}".encode())

    def answer(request):
        system = request.messages[0].text
        if "plan which" in system:
            return '[{"intent": "a step", "inputs": {"value": "number"}}]'
        shown = LINE.findall(request.messages[-1].text)
        if "You check" in system:
            return json.dumps({number: points(name, "L3") % 4 > 0 for number, name in shown})
        level = "L4" if "worked calls" in system else "L2"
        ordered = sorted(shown, key=lambda pair: -points(pair[1], level))
        return json.dumps([int(number) for number, _ in ordered])

    return FunctionModel(answer), points


def levels(seed, library, k2):
    model, points = consistent_judge(seed)
    paper = TypedDagRetriever(model, k2=k2)
    (cascade,) = asyncio.run(paper.cascades("a request", library))
    return [level.tools for level in cascade.levels], points


@given(growing(), st.integers(0, 99))
def test_paper_mode_is_monotone_below_the_cap(made, seed):
    """With k2 as large as S1, S1 to S3 grow, and a step changes its tool for a better new one."""
    smaller, larger, _ = made
    before, points = levels(seed, smaller, len(larger) + 1)
    after, _ = levels(seed, larger, len(larger) + 1)
    assert all(set(old) <= set(new) for old, new in zip(before[:3], after[:3], strict=True))
    if before[3] and after[3] != before[3]:
        assert after[3][0] not in smaller
        assert points(after[3][0], "L4") > points(before[3][0], "L4")


@given(growing(), st.integers(0, 99), st.integers(1, 6))
def test_paper_mode_loses_tools_at_the_cap_only(made, seed, k2):
    """A tool leaves S2 exactly when k2 tools of the larger S1 are ranked above it."""
    smaller, larger, _ = made
    before, points = levels(seed, smaller, k2)
    after, _ = levels(seed, larger, k2)
    assert set(before[0]) <= set(after[0])
    for name in before[1]:
        above = sum(points(other, "L2") > points(name, "L2") for other in after[0])
        assert (name in after[1]) == (above < k2)
    for name in set(before[2]) & set(after[1]):
        assert name in after[2]


def test_a_primitive_may_displace_what_was_found():
    """The paper's "any tool it displaces is itself a composite" does not hold for Algorithm 2."""
    smaller = Library([tool(0, ["rocket"]), tool(2, ["rocket"])])
    larger = smaller.with_tools([tool(4, ["rocket"])])
    found = {
        (levels(seed, smaller, 32)[0][-1], levels(seed, larger, 32)[0][-1]) for seed in range(50)
    }
    assert {(("tool_0",), ("tool_4",)), (("tool_2",), ("tool_4",))} & found
