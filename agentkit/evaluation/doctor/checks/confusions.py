"""Pairs of tools that retrieval confuses, with the words that cause it.

Each tool is searched for with requests that it should answer: the first sentence of its
description, the requests of its worked calls, and those of stored episodes in which it gave a
result. Whoever ranks above it is a rival. Doubles are left out: no word tells them apart, and
another check reports them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentkit._waiting import wait_for
from agentkit.evaluation.doctor.catalogue import Catalogue
from agentkit.evaluation.doctor.finding import Confusion, Finding, Kind
from agentkit.evaluation.doctor.listing import listed, quoted
from agentkit.evaluation.doctor.term_weights import TermWeights
from agentkit.evaluation.doctor.text_mends import sentence_key, sentences
from agentkit.retrieval.cascade import CascadeRetriever
from agentkit.retrieval.retriever import Hit, Retriever
from agentkit.tools.definition import ToolDefinition

_LOOKED_AT = 10
_MOST_REQUESTS = 8
_FEWEST_WORDS = 3
_MOST_WORDS = 25
_WORDS_SHOWN = 5
_UNBOUNDED = 10**9

CONFUSED = Kind(
    code="confused",
    severity="warning",
    title="found behind another tool on their own words",
    why="A user who asks for what the tool says of itself is offered the other one first.",
    advice="Put a word that only it has into the name or the first sentence; take the shared "
    "words out of the other, where they are not its own.",
)
UNFINDABLE = Kind(
    code="not_found",
    severity="error",
    title=f"not among the first {_LOOKED_AT} tools found for their own words",
    why="No request in its own words reaches it, so an agent with retrieval never calls it.",
    advice="Give it words that others do not have: on what, from where, for whom.",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Loss:
    """One request of a tool that another tool won.

    Attributes:
        rival: Who ranked first.
        query: The request.
        place: Where the tool itself stood, from 1; 0 when it was not found.
    """

    rival: str
    query: str
    place: int


def confusions(catalogue: Catalogue) -> Iterator[Finding]:
    """One finding for each tool and rival, with the words behind it."""
    retriever = catalogue.retriever or CascadeRetriever(
        shortlist=_LOOKED_AT, offer=1, token_budget=_UNBOUNDED
    )
    losses = wait_for(_losses(catalogue, retriever))
    weights = TermWeights(catalogue.library.definitions)
    for name, found in losses.items():
        definition = catalogue.library[name].definition
        asked = len(_requests(catalogue, definition))
        for rival in dict.fromkeys(loss.rival for loss in found):
            against = [loss for loss in found if loss.rival == rival]
            yield _finding(catalogue, weights, definition, against, asked)


async def _losses(catalogue: Catalogue, retriever: Retriever) -> dict[str, list[_Loss]]:
    losses: dict[str, list[_Loss]] = {}
    for number, definition in enumerate(catalogue.definitions, start=1):
        own = catalogue.doubles.get(definition.name, frozenset((definition.name,)))
        for query in _requests(catalogue, definition):
            found = await retriever.retrieve(query, catalogue.library)
            loss = _lost(query, found.hits[:_LOOKED_AT], own)
            if loss is not None:
                losses.setdefault(definition.name, []).append(loss)
        if catalogue.progress is not None:
            catalogue.progress(number, len(catalogue.definitions))
    return losses


def _lost(query: str, hits: Sequence[Hit], own: frozenset[str]) -> _Loss | None:
    """Who won the request, when that was neither the tool nor one of its doubles."""
    names = [hit.definition.name for hit in hits]
    place = next((at for at, name in enumerate(names, start=1) if name in own), 0)
    if not names or place == 1:
        return None
    if place and hits[place - 1].score == hits[0].score:
        return None  # a draw
    return _Loss(rival=names[0], query=query, place=place)


def _requests(catalogue: Catalogue, definition: ToolDefinition) -> tuple[str, ...]:
    """What the tool should be found for, each once."""
    usage = catalogue.usage
    recorded = () if usage is None else usage.requests.get(definition.name, ())
    texts = (
        _opening(catalogue, definition),
        *(example.query for example in definition.examples),
        *recorded,
    )
    wanted = (text for text in texts if len(text.split()) >= _FEWEST_WORDS)
    return tuple(dict.fromkeys(wanted))[:_MOST_REQUESTS]


def _opening(catalogue: Catalogue, definition: ToolDefinition) -> str:
    """The first sentence of a description that other tools do not say as well."""
    for sentence in sentences(definition.description.summary):
        if sentence_key(sentence) not in catalogue.shared:
            return " ".join(sentence.split()[:_MOST_WORDS])
    return ""


def _finding(
    catalogue: Catalogue,
    weights: TermWeights,
    definition: ToolDefinition,
    losses: Sequence[_Loss],
    asked: int,
) -> Finding:
    first = losses[0]
    rival = catalogue.library[first.rival].definition
    words = Confusion(
        query=first.query,
        shared=weights.causes(first.query, definition, rival)[:_WORDS_SHOWN],
        own=weights.only(definition, rival)[:_WORDS_SHOWN],
        other=weights.only(rival, definition)[:_WORDS_SHOWN],
    )
    is_lost = all(loss.place == 0 for loss in losses) and len(losses) == asked
    return Finding(
        kind=UNFINDABLE if is_lost else CONFUSED,
        tools=(definition.name, rival.name),
        what=_told(definition, rival, losses, asked, words),
        where=("summary",),
        confusion=words,
    )


def _told(
    definition: ToolDefinition,
    rival: ToolDefinition,
    losses: Sequence[_Loss],
    asked: int,
    words: Confusion,
) -> str:
    place = losses[0].place
    stands = f"stands at {place}" if place else "is not found"
    often = f" ({len(losses)} of {asked} requests)" if asked > 1 else ""
    return (
        f"for {quoted(losses[0].query)} {definition.name} {stands} behind {rival.name}{often}, "
        f"because of {listed(words.shared) or 'its length'}; {told_apart(words)}"
    )


def told_apart(words: Confusion) -> str:
    """Which words would tell two tools apart."""
    if words.own:
        return f"only it says {listed(words.own)}"
    if words.other:
        return f"it begins with no word of its own, the other with {listed(words.other)}"
    return "both begin with the same words"
