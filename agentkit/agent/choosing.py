"""``Choosing``: which tools a run offers, whoever drives its loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentkit.agent.defaults import default_retriever
from agentkit.agent.recording import Start
from agentkit.agent.selection import Offer, Offering, OfferPolicy
from agentkit.errors import UsageError
from agentkit.messages import UserMessage
from agentkit.retrieval.retriever import Retriever
from agentkit.tracing.tracing import TracedRetriever, Tracing

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
        """What an agent's argument ``retriever`` means.

        Raises:
            UsageError: It is a word that means nothing.
        """
        if isinstance(retriever, str) and retriever != "auto":
            raise UsageError(
                f"retriever is {retriever!r}; use 'auto', an object with a method retrieve, or "
                "None to offer every tool"
            )
        if retriever != "auto":
            return cls(retriever=retriever, offers=offers, tracing=tracing)
        return cls(
            retriever=default_retriever(),
            offers=offers,
            all_up_to=OFFER_ALL_UP_TO,
            tracing=tracing,
        )

    async def offering(self, start: Start, *, defers: bool = False) -> Offering:
        """The tools for a run.

        A run without a request goes on with the tools that its conversation had. Where only
        messages tell of that, what was not called is unknown, and is searched for once more.

        Args:
            start: Where it begins.
            defers: Whether the model's provider searches the rest, instead of ``search_tools``.
        """
        retriever = self.retriever
        is_small = self.all_up_to is not None and len(start.library) <= self.all_up_to
        if retriever is None or is_small:
            return Offering(offer=Offer.whole(start.library))
        if self.tracing is not None:
            retriever = TracedRetriever(retriever, self.tracing)
        said = [m.text for m in start.history if isinstance(m, UserMessage)][-1:]
        goes_on = not start.request and start.shown.first is not None
        query = None if goes_on else "\n".join((*said, start.request)).strip()
        return await self.offers.offering(
            query, start.library, start.shown, retriever, start.emit, defers=defers
        )
