"""``variant(name)``: the retrievers that are compared with each other, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from agentkit.errors import UsageError
from agentkit.models.base import ChatModel
from agentkit.retrieval.embedders import Embedder, as_embedder
from agentkit.retrieval.plan_parser import MAX_STEPS
from agentkit.retrieval.retriever import Retriever
from agentkit.retrieval.tokens import TokenCounter, estimate_tokens
from agentkit.retrieval.typed_dag import TypedDagRetriever
from agentkit.retrieval.variants.dense import flat_dense
from agentkit.retrieval.variants.flat_library import FlatLibrary
from agentkit.retrieval.variants.hierarchy import text_hierarchy
from agentkit.retrieval.word_vectors import packaged_embedder

VARIANTS: Mapping[str, str] = MappingProxyType(
    {
        "default": "the stages of this package; no model",
        "paper": "Algorithm 2 as written, a planner model judges L2, L3 and L4; needs a model",
        "flat_library": "every schema until the budget is full; with a model judged first",
        "flat_dense": "vectors alone; needs an embedder",
        "text_hierarchy": "a tree of text summaries, descended by vectors; needs an embedder",
    }
)
"""What can be compared, and in a line what each is."""


def variant(
    name: str,
    *,
    model: ChatModel | None = None,
    embedder: object | None = None,
    shortlist: int = 32,
    offer: int = 5,
    token_budget: int = 1600,
    count_tokens: TokenCounter = estimate_tokens,
) -> Retriever:
    """One of ``VARIANTS``, ready to run.

    Args:
        name: Which.
        model: A chat model: the planner and judge of ``paper``, the judge of ``flat_library``, the
            planner of ``default``, the author of summaries of ``text_hierarchy``.
        embedder: Whatever ``as_embedder`` takes; by default the static vectors of the extra
            ``vectors``.
        shortlist: Most tools to name.
        offer: Most tools to give in full; in ``paper`` and ``flat_library`` the budget decides.
        token_budget: Most tokens that cards and full schemas may cost together.
        count_tokens: Counts the tokens of a text.

    Raises:
        UsageError: There is no such variant, or it lacks a model or an embedder.

    Example:
        >>> type(variant("flat_library")).__name__
        'FlatLibrary'
    """
    if name == "flat_library":
        return FlatLibrary(model=model, token_budget=token_budget, count_tokens=count_tokens)
    if name == "default":
        return TypedDagRetriever(
            planner=model, embedder="auto" if embedder is None else embedder, shortlist=shortlist,
            offer=offer, token_budget=token_budget, count_tokens=count_tokens,
        )  # fmt: skip
    if name == "paper":
        return TypedDagRetriever(
            "paper", planner=model, surface="survivors", shortlist=shortlist,
            offer=max(offer, MAX_STEPS), token_budget=token_budget, count_tokens=count_tokens,
        )  # fmt: skip
    if name == "flat_dense":
        return flat_dense(
            _embedder(embedder, name), shortlist=shortlist, offer=offer, token_budget=token_budget,
            count_tokens=count_tokens,
        )  # fmt: skip
    if name == "text_hierarchy":
        return text_hierarchy(
            _embedder(embedder, name), model=model, shortlist=shortlist, offer=offer,
            token_budget=token_budget, count_tokens=count_tokens,
        )  # fmt: skip
    raise UsageError(f"there is no variant {name!r}; use one of {', '.join(VARIANTS)}")


def _embedder(given: object | None, name: str) -> Embedder:
    known = packaged_embedder() if given is None else as_embedder(given)
    if known is None:
        raise UsageError(
            f"the variant {name!r} needs vectors: give an embedder, or install the static ones "
            'with pip install "agentkit-evolve[vectors]"'
        )
    return known
