"""``NearDuplicates``: tools that say the same take one place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agentkit.retrieval.goals import SubGoal
from agentkit.retrieval.retriever import Hit
from agentkit.retrieval.survivors import Survivors
from agentkit.retrieval.words import terms
from agentkit.tools.definition import ToolDefinition

_ALIKE = 0.5
"""Which share of the words of two names must be common."""


class NearDuplicates:
    """Moves each tool that says the same as a better one behind all that say something new.

    The same server connected twice, or a tool kept under several names, would otherwise fill the
    few places that are shown. Two tools are near-duplicates when the texts of their descriptions
    are equal, capitals aside, the names of their parameters too, and their names share at least
    half of their words: ``work.get_weather`` and ``home.get_weather`` are, ``get_user`` and
    ``get_order`` are not, however carelessly they are described. Tools without a description are
    left alone.

    Nothing is dropped: the best of a group stays where it is and its reason names the others, and
    these come last, in order, with the lowest score of the ranking. Only ranked tools are looked
    at, so a ranking that keeps a few more than the shortlist lets others move up into their places.
    """

    name = "near_duplicates"

    async def __call__(self, query: str, goal: SubGoal, survivors: Survivors) -> Survivors:
        """Reorder the ranked tools."""
        groups = _groups(survivors.hits)
        if len(groups) == len(survivors.hits):
            return survivors
        lowest = survivors.hits[-1].score
        first = [_with_others(group) for group in groups]
        behind = {hit.definition.name: group[0] for group in groups for hit in group[1:]}
        last = [
            _behind(hit, behind[hit.definition.name], lowest)
            for hit in survivors.hits
            if hit.definition.name in behind
        ]
        return replace(survivors, hits=(*first, *last))


def _groups(hits: Sequence[Hit]) -> list[list[Hit]]:
    """The hits by what they say, the best of each group first, groups in order of their best."""
    groups: list[list[Hit]] = []
    alike: dict[str, list[list[Hit]]] = {}
    for hit in hits:
        text = hit.definition.text.casefold()
        known = alike.setdefault(text, []) if text else []
        group = next((one for one in known if _says_the_same(one[0], hit)), None)
        if group is None:
            groups.append([hit])
            known.append(groups[-1])
        else:
            group.append(hit)
    return groups


def _says_the_same(one: Hit, other: Hit) -> bool:
    """Whether two tools of one text are near-duplicates."""
    if _parameters(one.definition) != _parameters(other.definition):
        return False
    first, second = set(terms(one.definition.name)), set(terms(other.definition.name))
    return len(first & second) >= _ALIKE * len(first | second)


def _parameters(definition: ToolDefinition) -> set[str]:
    return set(definition.signature.parameters.get("properties") or ())


def _with_others(group: list[Hit]) -> Hit:
    best, *others = group
    if not others:
        return best
    also = "also as " + ", ".join(hit.definition.name for hit in others)
    return replace(best, reason="; ".join(filter(None, (best.reason, also))))


def _behind(hit: Hit, best: Hit, lowest: float) -> Hit:
    same = f"says the same as {best.definition.name}"
    reason = "; ".join(filter(None, (hit.reason, same)))
    return replace(hit, score=min(hit.score, lowest), reason=reason)
