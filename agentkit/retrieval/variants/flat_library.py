"""``FlatLibrary``: no retrieval at all, the library is given as it is."""

from __future__ import annotations

from time import perf_counter, thread_time

from agentkit.episodes import StageReport
from agentkit.library.library import Library
from agentkit.models.base import ChatModel
from agentkit.retrieval.cards import card, schema_text
from agentkit.retrieval.goals import SubGoal
from agentkit.retrieval.paper.judge import ModelJudge, Ranked
from agentkit.retrieval.paper.prompts import RANK_DESCRIPTIONS
from agentkit.retrieval.retriever import Hit, Retrieval
from agentkit.retrieval.tokens import TokenCounter, counted, estimate_tokens


class FlatLibrary:
    """Gives every tool in full, in library order, until the budget is full.

    With a model the whole library is judged first, without types and without a shortlist: the
    paper's flat baseline, whose cost is C_flat. There is no cheaper stage before it, so each
    request pays for every description.

    Args:
        model: Ranks the tools; None leaves them in library order.
        token_budget: Most tokens of full schemas; None for no bound.
        prompt_budget: Most tokens of one prompt of the model.
        count_tokens: Counts the tokens of a text.

    Example:
        >>> import asyncio
        >>> from agentkit.testing import sample_library
        >>> library = sample_library()
        >>> found = asyncio.run(FlatLibrary(token_budget=None).retrieve("anything", library))
        >>> len(found.offered) == len(library)
        True
    """

    def __init__(
        self,
        *,
        model: ChatModel | None = None,
        token_budget: int | None = 1600,
        prompt_budget: int = 4096,
        count_tokens: TokenCounter = estimate_tokens,
    ) -> None:
        self._judge = (
            None
            if model is None
            else ModelJudge(model, token_budget=prompt_budget, count_tokens=count_tokens)
        )
        self._budget = token_budget
        self._count = count_tokens

    async def retrieve(self, query: str, library: Library) -> Retrieval:
        """As many tools as the budget holds."""
        started, worked = perf_counter(), thread_time()
        ranked = await self._ranked(query, library)
        offered, spent = [], 0
        for definition in ranked.order:
            price = counted(schema_text(definition), self._count)
            if self._budget is not None and spent + price > self._budget:
                continue  # too large for what is left; a smaller one may fit
            offered.append(definition)
            spent += price
        report = StageReport(
            stage="flat library",
            survivors=len(offered),
            tokens=spent,
            seconds=perf_counter() - started,
            cpu_seconds=thread_time() - worked,
        )
        return Retrieval(
            query=query,
            hits=tuple(
                Hit(definition=definition, score=1 - place / len(offered))
                for place, definition in enumerate(offered)
            ),
            offered=tuple(offered),
            cards="\n".join(card(definition) for definition in offered),
            tokens=spent,
            stages=(report,),
            usage=ranked.cost.usage,
            goals=(SubGoal(intent=query),),
            notes=ranked.notes,
        )

    async def _ranked(self, query: str, library: Library) -> Ranked:
        if self._judge is None:
            return Ranked(order=library.definitions)
        return await self._judge.rank(RANK_DESCRIPTIONS, query, library.definitions, 32)
