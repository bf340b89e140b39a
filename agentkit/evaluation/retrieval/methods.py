"""The methods that are compared: each a name and how its retriever is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from agentkit.errors import UsageError
from agentkit.evaluation.retrieval.equipment import Equipment
from agentkit.retrieval.cascade import CascadeRetriever, default_stages
from agentkit.retrieval.retriever import Retriever
from agentkit.retrieval.stages import Lexical
from agentkit.retrieval.survivors import Stage

Need = Literal["embedder", "model"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How many tools a retriever names and gives in full, and for how many tokens."""

    shortlist: int = 32
    offer: int = 5
    token_budget: int = 1600


DEEP = Limits(shortlist=100, offer=1, token_budget=10**9)
"""Limits that show the ranking itself, deeper than 32: tools of one name collapse into one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Method:
    """One way to find tools.

    Attributes:
        name: What tables call it.
        summary: What it does, in a line.
        build: Makes the retriever within limits.
        needs: What has to be in the equipment.
    """

    name: str
    summary: str
    build: Callable[[Limits, Equipment], Retriever]
    needs: frozenset[Need] = frozenset()

    def missing(self, equipment: Equipment) -> frozenset[Need]:
        """What the method needs and the equipment lacks."""
        given = {"embedder": equipment.embedder_name, "model": equipment.model_name}
        return frozenset(need for need in self.needs if given[need] is None)


def _cascade(limits: Limits, stages: tuple[Stage, ...]) -> Retriever:
    return CascadeRetriever(
        stages=stages,
        shortlist=limits.shortlist,
        offer=limits.offer,
        token_budget=limits.token_budget,
    )


METHODS: Mapping[str, Method] = {
    method.name: method
    for method in (
        Method(
            name="default",
            summary="what an agent uses",
            build=lambda limits, _: _cascade(limits, default_stages(limits.shortlist)),
        ),
        Method(
            name="lexical",
            summary="shared words alone",
            build=lambda limits, _: _cascade(limits, (Lexical(keep=limits.shortlist),)),
        ),
    )
}


def find_method(name: str) -> Method:
    """The method of that name.

    Raises:
        UsageError: There is no such method.
    """
    if name not in METHODS:
        raise UsageError(f"there is no method {name!r}; there are: {', '.join(METHODS)}")
    return METHODS[name]
