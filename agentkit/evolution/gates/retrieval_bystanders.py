"""Whether other tools are still found by their own requests: the bystander gate without a model.

What a model is not shown it can not choose. Retrieval alone costs milliseconds a request and no
model, so this comes before any replay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from agentkit.errors import UsageError
from agentkit.evolution.gates.bystanders import bystander_gate
from agentkit.evolution.gates.decision import GateReport, GateRules, PairedSelection
from agentkit.library.library import Library
from agentkit.retrieval.retriever import Retriever

NAME = "retrieval bystanders"


def own_requests(library: Library) -> dict[str, tuple[str, ...]]:
    """The requests of each tool that its worked examples keep; tools without any are left out.

    A retriever that reads examples has seen these, so it finds a tool by them more easily than by
    new requests. Give requests of your own where you have them.
    """
    found = {
        one.name: tuple(dict.fromkeys(example.query for example in one.examples if example.query))
        for one in library.definitions
    }
    return {name: queries for name, queries in found.items() if queries}


async def retrieved_selections(
    before: Library,
    after: Library,
    *,
    retriever: Retriever,
    requests: Mapping[str, Iterable[str]],
    k: int = 5,
) -> tuple[PairedSelection, ...]:
    """The ``k`` tools ranked first for each request, in either library.

    Args:
        before: The library as it is.
        after: The library with the candidate in it.
        retriever: What ranks.
        requests: By name of the tool, requests that belong to it.
        k: How many tools a model gets to see.

    Raises:
        UsageError: ``k`` is less than 1.
    """
    if k < 1:
        raise UsageError(f"k must be 1 or more, got {k}")
    return tuple(
        [
            PairedSelection(
                task=f"{name}: {query}",
                expected=(name,),
                control=(await _ranked(retriever, query, before))[:k],
                candidate=(await _ranked(retriever, query, after))[:k],
            )
            for name, queries in requests.items()
            for query in queries
        ]
    )


async def retrieval_gate(
    before: Library,
    after: Library,
    *,
    tool: str,
    retriever: Retriever,
    requests: Mapping[str, Iterable[str]] | None = None,
    k: int = 5,
    rules: GateRules | None = None,
) -> GateReport:
    """Ask whether other tools are still among the ``k`` first for their own requests.

    Beside what ``bystander_gate`` counts, the report has the mean reciprocal rank (0 beyond ``k``)
    of the other tools before and after, which also tells how far they fell without being lost.

    Args:
        before: The library as it is.
        after: The library with the candidate in it.
        tool: Name of the tool whose definition is changed.
        retriever: What ranks.
        requests: By name of the tool, requests that belong to it; ``own_requests`` by default.
        k: How many tools a model gets to see.
        rules: The knobs; ``lost_share`` is the largest share that may be lost.

    Raises:
        UsageError: ``k`` is less than 1.
    """
    asked = own_requests(before) if requests is None else requests
    others = {name: queries for name, queries in asked.items() if name != tool}
    found = await retrieved_selections(before, after, retriever=retriever, requests=others, k=k)
    report = bystander_gate(found, tool=tool, rules=rules, once=True)
    ranks = {
        "control_reciprocal_rank": _mean_reciprocal([(one.expected, one.control) for one in found]),
        "candidate_reciprocal_rank": _mean_reciprocal(
            [(one.expected, one.candidate) for one in found]
        ),
    }
    return replace(report, gate=NAME, statistics={**report.statistics, **ranks, "k": k})


async def _ranked(retriever: Retriever, query: str, library: Library) -> tuple[str, ...]:
    retrieval = await retriever.retrieve(query, library)
    return tuple(hit.definition.name for hit in retrieval.hits)


def _mean_reciprocal(ranked: Sequence[tuple[tuple[str, ...], tuple[str, ...]]]) -> float:
    found = [1 / (names.index(own) + 1) if own in names else 0.0 for (own,), names in ranked]
    return sum(found) / len(found) if found else 0.0
