"""``Choosing``: which tools a run offers, whoever drives its loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentkit.agent.defaults import default_retriever
from agentkit.agent.offer import Offer
from agentkit.agent.offering import Offering, OfferPolicy
from agentkit.agent.recording import Start
from agentkit.messages import UserMessage
from agentkit.retrieval.retriever import Retriever
from agentkit.tracing.guarded import Tracing
from agentkit.tracing.models import TracedRetriever

OFFER_ALL_UP_TO = 32
"""With ``retriever="auto"``, libraries of at most this many tools are offered whole."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Choosing:
    """How the tools of a run are chosen.

    Attributes:
        retriever: Ranks the library; None always offers all of it.
        offers: How its findings are offered.
        all_up_to: Libraries of at most this many tools are offered whole; None for no such size.
        tracing: Is told of each search; None for nobody.
    """

    retriever: Retriever | None
    offers: OfferPolicy
    all_up_to: int | None = None
    tracing: Tracing | None = None

    @classmethod
    def of(
        cls,
        retriever: Retriever | Literal["auto"] | None,
        *,
        offers: OfferPolicy,
        tracing: Tracing | None,
    ) -> Choosing:
        """What an agent's argument ``retriever`` means."""
        if retriever != "auto":
            return cls(retriever=retriever, offers=offers, tracing=tracing)
        return cls(
            retriever=default_retriever(),
            offers=offers,
            all_up_to=OFFER_ALL_UP_TO,
            tracing=tracing,
        )

    async def offering(self, start: Start, *, goes_on: bool, defers: bool = False) -> Offering:
        """The tools for a run.

        Args:
            start: Where it begins.
            goes_on: Whether it goes on with the tools that it had, so that nothing is searched.
            defers: Whether the model's provider searches the rest, instead of ``search_tools``.
        """
        retriever = self.retriever
        is_small = self.all_up_to is not None and len(start.library) <= self.all_up_to
        if retriever is None or is_small:
            return Offering(offer=Offer.whole(start.library))
        if self.tracing is not None:
            retriever = TracedRetriever(retriever, self.tracing)
        said = [m.text for m in start.history if isinstance(m, UserMessage)][-1:]
        query = None if goes_on else "\n".join((*said, start.request)).strip()
        return await self.offers.offering(
            query, start.library, start.shown, retriever, start.emit, defers=defers
        )
