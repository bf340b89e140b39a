"""The same tool under several names."""

from __future__ import annotations

from collections.abc import Iterator

from agentkit.evaluation.doctor.catalogue import Catalogue
from agentkit.evaluation.doctor.doubles import Doubles
from agentkit.evaluation.doctor.finding import Finding, Kind
from agentkit.evaluation.doctor.listing import listed

DUPLICATE = Kind(
    code="duplicate",
    severity="warning",
    title="the same words and parameters under several names",
    why="The model can not know which to call, and each pushes another tool off the shortlist.",
    advice="Keep one; where they differ, say in the first sentence in what.",
)
NEAR_DUPLICATE = Kind(
    code="near_duplicate",
    severity="warning",
    title="almost the same words and parameters",
    why="Retrieval ranks them side by side, and the model has to guess.",
    advice="Keep one; where they differ, say in the first sentence in what.",
)

SIBLINGS = Kind(
    code="siblings",
    severity="note",
    title="tools made from one template, told apart by a word or two",
    why="They differ as their names say, but most of what a model reads of them is the same.",
    advice="One tool with a parameter may do; else put the word that differs first.",
)


def duplicates(catalogue: Catalogue) -> Iterator[Finding]:
    """Groups of tools that are alike; see ``agentkit.evaluation.doctor.doubles``."""
    reported = {definition.name for definition in catalogue.definitions}
    for group in catalogue.alike:
        if reported.intersection(group.tools):
            yield _finding(catalogue, group)


def _finding(catalogue: Catalogue, group: Doubles) -> Finding:
    tokens = sorted(catalogue.tokens(name) for name in group.tools)
    kind = NEAR_DUPLICATE
    if group.are_siblings:
        kind = SIBLINGS
    elif group.likeness == 1:
        kind = DUPLICATE
    alike = "the same" if kind is DUPLICATE else f"{group.likeness:.0%} alike"
    return Finding(
        kind=kind,
        tools=group.tools,
        what=f"{alike}: {listed(group.tools)}",
        where=("summary", "parameters"),
        tokens=sum(tokens[1:]),
    )
