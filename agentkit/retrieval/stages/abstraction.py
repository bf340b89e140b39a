"""``Abstraction``: the highest composite that covers the step first, its parts only where needed.

The abstraction axis of CoCoDA (section 3.2) for a ranking that is there already: "retrieval starts
from the highest-level tool whose signature can cover the current subgoal and descends to children
only when that composite is too broad, incompatible, or insufficiently discriminative". The paper
leaves the three conditions open; ``Verdict`` is ours, and needs no model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from agentkit.library.dag import Dag, reachable
from agentkit.retrieval.features import graph_features
from agentkit.retrieval.goals import SubGoal
from agentkit.retrieval.survivors import Survivors

Verdict: TypeAlias = Literal["covers", "too_broad", "incompatible", "indistinct"]
"""How a composite c with the score s(c) stands to the parts of it that are ranked.

Parts are all tools that c reaches in the DAG, except composites through which it is reached
again; u is the best ranked part, m the margin.

* ``too_broad``: s(u) >= (1 + m) * s(c). A part of it does the step better than the whole.
* ``incompatible``: types or conditions fit c worse than they fit u (the factor that earlier stages
  gave it is lower), and it is not too broad. A composite that they dropped is not ranked at all.
* ``covers``: s(c) >= (1 + m) * s(u), or no part is ranked.
* ``indistinct``: anything between. The ranking can not tell whole and part from each other.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """One composite that was looked at.

    Attributes:
        name: The composite.
        verdict: How it stands to its parts.
        parts: Its ranked parts, best first.
    """

    name: str
    verdict: Verdict
    parts: tuple[str, ...] = ()


def judge_composites(
    scores: Mapping[str, float],
    dag: Dag,
    *,
    margin: float,
    factors: Mapping[str, float] | None = None,
) -> tuple[Judged, ...]:
    """Walk down from the highest ranked composites.

    A composite below one that covers the step is not looked at: descent stops there. In a broken
    library, a composite in or above a cycle counts as lowest.

    Args:
        scores: The ranked tools, higher is better; those not above 0 are taken as 0.
        dag: What calls what.
        margin: How much better, relatively, is better.
        factors: How well types and conditions fit, 1 where it is not given.

    Returns:
        The composites that were looked at, in that order.
    """
    fit = factors or {}
    found: list[Judged] = []
    closed: set[str] = set()
    ranked = [name for name in scores if name in dag.composites]
    for name in sorted(ranked, key=lambda one: (-(dag.depths.get(one) or 0), -scores[one], one)):
        if name in closed:
            continue
        parts = _ranked_parts(name, scores, dag)
        verdict = _verdict(name, parts, scores, fit, margin)
        if verdict == "covers":
            closed.update(parts)
        found.append(Judged(name=name, verdict=verdict, parts=parts))
    return tuple(found)


class Abstraction:
    """Puts composites and their parts in the right order, and says where each hit stands.

    For each ranked composite, highest first (see ``Verdict``):

    * It covers the step: it stays where it is, and the scores of its ranked parts are multiplied
      by ``behind``. They were worse already; now one composite no longer takes the places of
      several tools beside it.
    * It is too broad or incompatible: its own score is multiplied by ``behind`` instead, so that
      its parts come first.
    * It is indistinct: nothing moves, and its parts are looked at in turn.

    Nothing is dropped. Graph features are attached to every hit. A library without composites
    costs one look at each hit.

    Args:
        margin: m of ``Verdict``; 0.1 is ten percent.
        behind: What a tool that is pushed behind keeps of its score, between 0 and 1.
    """

    name = "abstraction"

    def __init__(self, *, margin: float = 0.1, behind: float = 0.5) -> None:
        self._margin = margin
        self._behind = behind

    async def __call__(self, query: str, goal: SubGoal, survivors: Survivors) -> Survivors:
        """Move composites and parts; attach depth, children and subgraph size."""
        if any(hit.definition.is_composite for hit in survivors.hits):
            survivors = self._moved(survivors)
        return with_features(survivors)

    def _moved(self, survivors: Survivors) -> Survivors:
        scores = {hit.definition.name: max(0.0, hit.score) for hit in survivors.hits}
        judged = judge_composites(
            scores, survivors.library.dag, margin=self._margin, factors=_factors(survivors)
        )
        pushed: dict[str, str] = {}
        for one in judged:
            if one.verdict == "covers":
                pushed |= dict.fromkeys(one.parts, f"part of {one.name}, which covers the step")
            elif one.verdict != "indistinct":
                reason = f"{one.verdict.replace('_', ' ')}: {one.parts[0]} fits better"
                pushed.setdefault(one.name, reason)
        less = {name: (self._behind - 1) * scores[name] for name in pushed}
        return survivors.add(less, reason=pushed, field="abstraction")


def with_features(survivors: Survivors) -> Survivors:
    """The same survivors, each ranked tool with its place in the DAG (Algorithm 2, line 10)."""
    library = survivors.library
    hits = tuple(
        hit.at(graph_features(library, hit.definition.name))
        if hit.definition.name in library
        else hit  # a stage may show a tool in other words
        for hit in survivors.hits
    )
    return replace(survivors, hits=hits)


def _ranked_parts(name: str, scores: Mapping[str, float], dag: Dag) -> tuple[str, ...]:
    below = reachable(dag.children[name], dag.children)
    parts = [part for part in below if part in scores and part != name]
    if name in below:  # a broken library: what calls it again is no part of it
        parts = [part for part in parts if name not in reachable([part], dag.children)]
    return tuple(sorted(parts, key=lambda part: (-scores[part], part)))


def _verdict(
    name: str,
    parts: tuple[str, ...],
    scores: Mapping[str, float],
    fit: Mapping[str, float],
    margin: float,
) -> Verdict:
    if not parts:
        return "covers"
    whole, part = scores[name], scores[parts[0]]
    if part >= (1 + margin) * whole and part > 0:
        return "too_broad"
    if fit.get(name, 1.0) < fit.get(parts[0], 1.0):
        return "incompatible"
    return "covers" if whole >= (1 + margin) * part else "indistinct"


def _factors(survivors: Survivors) -> dict[str, float]:
    """How well types fit each ranked tool, as far as earlier stages have said so."""
    if survivors.factors is None:
        return {}
    rows = (
        (hit.definition.name, survivors.index.row(hit.definition.name)) for hit in survivors.hits
    )
    return {name: float(survivors.factors[row]) for name, row in rows if row is not None}
