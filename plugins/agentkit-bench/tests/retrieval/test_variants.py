"""The ablations answer like any retriever: flat library, vectors alone, a tree of summaries."""

from __future__ import annotations

import asyncio
import json
import re
import zlib

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.errors import ModelTimeoutError, UsageError
from agentkit.retrieval import Retriever, estimate_tokens, schema_text
from agentkit.retrieval.embedders import as_embedder
from agentkit.retrieval.words import terms
from agentkit.testing import FunctionModel, sample_library
from agentkit_bench import VARIANTS, variant
from agentkit_bench.retrieval_variants import FlatLibrary
from agentkit_bench.text_hierarchy import (
    Hierarchy,
    TreeKind,
    descent,
    salient_words,
    text_hierarchy,
    text_tree,
)

SUBJECTS = ("weather", "flight", "hotel", "mail", "loan", "music", "recipe", "doctor")
VERBS = ("find", "book", "cancel", "list", "compare", "rate", "share", "print")


def embed(texts):
    """Vectors from words alone: enough to tell subjects apart."""
    rows = np.zeros((len(texts), 64), np.float32)
    for row, text in zip(rows, texts, strict=True):
        for word in terms(text):
            row[zlib.crc32(word.encode()) % 64] += 1
    return rows


def catalogue(count=64):
    return Library(
        ToolDefinition.from_schema(
            f"{VERBS[at // 8 % 8]}_{SUBJECTS[at % 8]}" + ("" if at < 64 else f"_{at}"),
            f"{VERBS[at // 8 % 8].title()} a {SUBJECTS[at % 8]}.",
            {},
        )
        for at in range(count)
    )


def every_variant(**options):
    model = FunctionModel(lambda _: "[2, 1]")
    return [variant(name, model=model, embedder=embed, **options) for name in VARIANTS]


@settings(max_examples=25, deadline=None)
@given(
    count=st.integers(0, 70),
    query=st.sampled_from(["book a flight", "", "天气", "x" * 5000, "find_mail"]),
    budget=st.integers(0, 500),
    shortlist=st.integers(1, 40),
)
def test_every_variant_keeps_its_budget_and_repeats(count, query, budget, shortlist):
    """One protocol: within the budget, tools of the library only, the same each time."""
    library = catalogue(count)
    for retriever in every_variant(token_budget=budget, shortlist=shortlist):
        assert isinstance(retriever, Retriever)
        found = asyncio.run(retriever.retrieve(query, library))
        names = [hit.definition.name for hit in found.hits]
        assert found.tokens <= budget
        assert len(set(names)) == len(names)
        assert set(names) <= set(library.tools)
        assert {definition.name for definition in found.offered} <= set(names)
        assert asyncio.run(retriever.retrieve(query, library)).hits == found.hits


def test_an_unknown_variant_is_refused():
    """The message lists what there is."""
    with pytest.raises(UsageError, match=r"'best'; use one of default, paper, flat_library"):
        variant("best")


def test_paper_mode_needs_a_model():
    """The message says which."""
    with pytest.raises(UsageError, match="planner is none"):
        variant("paper")


# --- flat library ---------------------------------------------------------------------------------


async def test_a_flat_library_is_given_in_full_as_far_as_it_fits():
    """In library order; a tool too large for what is left is passed over."""
    library = sample_library()
    whole = await FlatLibrary(token_budget=None).retrieve("anything", library)
    prices = [estimate_tokens(schema_text(one)) for one in library.definitions]
    assert [one.name for one in whole.offered] == list(library.tools)
    assert whole.tokens == sum(prices)
    some = await FlatLibrary(token_budget=sum(prices) - 1).retrieve("anything", library)
    assert len(some.offered) == len(library) - 1


async def test_a_flat_library_can_be_judged_as_a_whole():
    """Every description is shown to the model, in as many prompts as it takes."""
    library = catalogue(300)

    def prefers_mail(request):
        lines = request.messages[-1].text.split("# Tools\n")[1].splitlines()
        numbers = [int(line.split(".")[0]) for line in lines if "send" in line or "mail" in line]
        return json.dumps(numbers)

    model = FunctionModel(prefers_mail)
    flat = FlatLibrary(model=model, token_budget=400, prompt_budget=1000)
    found = await flat.retrieve("write to Ann", library)
    assert all("mail" in one.name for one in found.offered)
    assert found.usage.requests == len(model.requests) > 5
    shown = "".join(request.messages[-1].text for request in model.requests)
    assert all(f" {name}(" in shown for name in library.tools)


# --- flat dense -----------------------------------------------------------------------------------


async def test_flat_dense_ranks_by_vectors_alone():
    """The nearest in meaning comes first, every tool that is not opposite is ranked."""
    library = catalogue()
    found = await variant("flat_dense", embedder=embed, token_budget=9999).retrieve(
        "cancel hotel", library
    )
    assert found.hits[0].definition.name == "cancel_hotel"
    assert len(found.hits) == 15  # all others share neither word
    assert [hit.score for hit in found.hits] == sorted((h.score for h in found.hits), reverse=True)


async def test_flat_dense_sees_new_tools():
    """A changed library is searched as it is now."""
    retriever = variant("flat_dense", embedder=embed)
    library = catalogue(8)
    assert (await retriever.retrieve("paint a fence", library)).hits == ()
    grown = library.with_tools([ToolDefinition.from_schema("paint_fence", "Paint a fence.", {})])
    found = await retriever.retrieve("paint a fence", grown)
    assert found.hits[0].definition.name == "paint_fence"
    gone = grown.without(["paint_fence"])
    assert (await retriever.retrieve("paint a fence", gone)).hits == ()


# --- text hierarchy -------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(count=st.integers(0, 90), branching=st.integers(2, 12))
def test_a_tree_holds_every_tool_once(count, branching):
    """No cluster has more than ``branching`` children, and each tool is one leaf."""
    library = catalogue(count)
    tree = text_tree(
        library.definitions, TreeKind(embedder=as_embedder(embed), branching=branching)
    )
    leaves = [node.tool for node in tree.nodes if node.tool]
    assert sorted(leaves) == sorted(library.tools)
    assert all(len(node.children) <= branching for node in tree.nodes)
    assert all((not node.children) == bool(node.tool) for node in tree.nodes)
    assert len(tree.vectors) == max(len(tree.nodes), 0)
    below = [child for node in tree.nodes for child in node.children]
    assert sorted(below) == list(range(1, len(tree.nodes)))


def test_tools_that_are_all_alike_still_make_a_tree():
    """Vectors that can not tell tools apart end in even parts."""
    tools = [ToolDefinition.from_schema(f"tool_{'a' * at}", "", {}) for at in range(1, 200)]
    same = as_embedder(lambda texts: np.ones((len(texts), 4)))
    tree = text_tree(tools, TreeKind(embedder=same, branching=5))
    assert sum(bool(node.tool) for node in tree.nodes) == 199


async def test_the_descent_finds_the_tool_and_reads_few_summaries():
    """It opens the most alike clusters; a wide beam opens all."""
    library = catalogue(512)
    narrow = Hierarchy(as_embedder(embed), beam=2)
    wide = Hierarchy(as_embedder(embed), beam=999)
    few = await narrow.summaries("cancel hotel", library)
    every = await wide.summaries("cancel hotel", library)
    assert 0 < len(few) < len(every)
    found = await text_hierarchy(as_embedder(embed)).retrieve("cancel hotel", library)
    assert found.hits[0].definition.name.startswith("cancel_hotel")


def test_a_descent_through_everything_meets_everything():
    """With a beam as wide as the tree nothing is lost."""
    library = catalogue(100)
    tree = text_tree(library.definitions, TreeKind(embedder=as_embedder(embed)))
    met, read = descent(tree, np.zeros(len(tree.nodes), np.float32), beam=1000)
    assert len(met) == 100
    assert len(met) + len(read) == len(tree.nodes) - 1


def test_summaries_tell_clusters_apart():
    """Words of the whole library weigh less than words of the cluster."""
    tree = text_tree(catalogue().definitions, TreeKind(embedder=as_embedder(embed), branching=8))
    firsts = {tree.nodes[child].text.split(", ")[0] for child in tree.nodes[0].children}
    assert len(firsts) > 4
    assert salient_words([], {}) == ""


async def test_a_model_may_write_the_summaries_once():
    """One request a cluster, from the leaves up, kept for the library; a failure keeps the words."""
    prompts = []

    def summary(request):
        prompts.append(request.messages[-1].text)
        if "mail" in prompts[-1]:
            raise ModelTimeoutError("too slow")
        return "Tools for " + re.sub(r"\W+", " ", prompts[-1])[:60]

    library = catalogue()
    stage = Hierarchy(as_embedder(embed), model=FunctionModel(summary), branching=8)
    texts = await stage.summaries("hotel", library)
    asked = len(prompts)
    assert asked == sum(
        not n.tool
        for n in library.derived(TreeKind(embedder=as_embedder(embed), branching=8)).nodes
    )
    assert any(text.startswith("Tools for ") for text in texts)
    assert await stage.summaries("hotel", library) == texts
    assert len(prompts) == asked
    found = await text_hierarchy(as_embedder(embed), model=FunctionModel(summary)).retrieve(
        "cancel hotel", library
    )
    assert found.usage.requests > 0
