"""``Abstraction``: the highest composite that covers the step first, its parts only where needed.

The abstraction axis of CoCoDA (section 3.2) for a ranking that is there already: "retrieval starts
from the highest-level tool whose signature can cover the current subgoal and descends to children
only when that composite is too broad, incompatible, or insufficiently discriminative". The paper
leaves the three conditions open; ``Verdict`` is ours, and needs no model. It is no stage of
the default, since no catalogue with labels shows a gain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from agentkit.library.dag import Dag, reachable
from agentkit.retrieval.candidates import Candidates
from agentkit.retrieval.retriever import SubGoal

Verdict: TypeAlias = Literal["covers", "too_broad", "indistinct"]
"""How a composite c with the score s(c) stands to the parts of it that are ranked.

Parts are all tools that c reaches in the DAG, except composites through which it is reached
again; u is the best ranked part, m the margin.

* ``too_broad``: s(u) >= (1 + m) * s(c). A part of it does the step better than the whole.
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
) -> tuple[Judged, ...]:
    """Walk down from the highest ranked composites.

    A composite below one that covers the step is not looked at: descent stops there. In a broken
    library, a composite in or above a cycle counts as lowest.

    Args:
        scores: The ranked tools, higher is better; those not above 0 are taken as 0.
        dag: What calls what.
        margin: How much better, relatively, is better.

    Returns:
        The composites that were looked at, in that order.
    """
    found: list[Judged] = []
    closed: set[str] = set()
    ranked = [name for name in scores if name in dag.composites]
    for name in sorted(ranked, key=lambda one: (-(dag.depths.get(one) or 0), -scores[one], one)):
        if name in closed:
            continue
        parts = _ranked_parts(name, scores, dag)
        verdict = _verdict(name, parts, scores, margin)
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
    * It is too broad: its own score is multiplied by ``behind`` instead, so that
      its parts come first.
    * It is indistinct: nothing moves, and its parts are looked at in turn.

    Nothing is dropped. A library without composites costs one look at each hit.

    Args:
        margin: m of ``Verdict``; 0.1 is ten percent.
        behind: What a tool that is pushed behind keeps of its score, between 0 and 1.
    """

    name = "abstraction"

    def __init__(self, *, margin: float = 0.1, behind: float = 0.5) -> None:
        self._margin = margin
        self._behind = behind

    async def __call__(self, query: str, goal: SubGoal, candidates: Candidates) -> Candidates:
        """Move composites and parts."""
        if any(hit.definition.is_composite for hit in candidates.hits):
            candidates = self._moved(candidates)
        return candidates

    def _moved(self, candidates: Candidates) -> Candidates:
        scores = {hit.definition.name: max(0.0, hit.score) for hit in candidates.hits}
        judged = judge_composites(scores, candidates.library.dag, margin=self._margin)
        pushed: dict[str, str] = {}
        for one in judged:
            if one.verdict == "covers":
                pushed |= dict.fromkeys(one.parts, f"part of {one.name}, which covers the step")
            elif one.verdict != "indistinct":
                reason = f"{one.verdict.replace('_', ' ')}: {one.parts[0]} fits better"
                pushed.setdefault(one.name, reason)
        less = {name: (self._behind - 1) * scores[name] for name in pushed}
        return candidates.add(less, reason=pushed, field="abstraction")


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
    margin: float,
) -> Verdict:
    if not parts:
        return "covers"
    whole, part = scores[name], scores[parts[0]]
    if part >= (1 + margin) * whole and part > 0:
        return "too_broad"
    return "covers" if whole >= (1 + margin) * part else "indistinct"
