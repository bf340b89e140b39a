"""The ablations answer like any retriever: flat library, vectors alone, a tree of summaries."""

from __future__ import annotations

import asyncio
import json
import zlib

import numpy as np
from hypothesis import given, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.retrieval import Retriever
from agentkit.retrieval.embedders import as_embedder
from agentkit.retrieval.words import terms
from agentkit.testing import FunctionModel
from agentkit_bench import VARIANTS, variant
from agentkit_bench.retrieval_variants import FlatLibrary
from agentkit_bench.text_hierarchy import Hierarchy, text_tree

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


# --- flat library ---------------------------------------------------------------------------------


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


# --- text hierarchy -------------------------------------------------------------------------------


@given(count=st.integers(0, 90), branching=st.integers(2, 12))
def test_a_tree_holds_every_tool_once(count, branching):
    """No cluster has more than ``branching`` children, and each tool is one leaf."""
    library = catalogue(count)
    tree = text_tree(library.definitions, as_embedder(embed), branching)
    leaves = [node.tool for node in tree.nodes if node.tool]
    assert sorted(leaves) == sorted(library.tools)
    assert all(len(node.children) <= branching for node in tree.nodes)
    assert all((not node.children) == bool(node.tool) for node in tree.nodes)
    assert len(tree.vectors) == max(len(tree.nodes), 0)
    below = [child for node in tree.nodes for child in node.children]
    assert sorted(below) == list(range(1, len(tree.nodes)))


async def test_the_descent_finds_the_tool_and_reads_few_summaries():
    """It opens the most alike clusters; a wide beam opens all."""
    library = catalogue(512)
    narrow = Hierarchy(as_embedder(embed), beam=2)
    wide = Hierarchy(as_embedder(embed), beam=999)
    few = narrow.summaries("cancel hotel", library)
    every = wide.summaries("cancel hotel", library)
    assert 0 < len(few) < len(every)
    found = await variant("text_hierarchy", embedder=embed).retrieve("cancel hotel", library)
    assert found.hits[0].definition.name.startswith("cancel_hotel")
