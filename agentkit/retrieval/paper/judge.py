"""``ModelJudge``: a model ranks or checks any number of candidates, each prompt within a budget."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from agentkit.errors import UsageError
from agentkit.messages import Usage
from agentkit.models.base import ChatModel, ModelSettings
from agentkit.retrieval.asking import PLANNER_SETTINGS, Asked, ask, fitted, shortened
from agentkit.retrieval.paper.answers import read_order, read_verdicts
from agentkit.retrieval.paper.prompts import (
    CHECK_SPECIFICATIONS,
    RANK_DESCRIPTIONS,
    RANK_EXAMPLES,
    Question,
)
from agentkit.retrieval.tokens import TokenCounter, estimate_tokens
from agentkit.tools.definition import ToolDefinition

_LEAST_ROOM = 128
"""Tokens for the step and at least one candidate."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What judging cost.

    Attributes:
        usage: As the model reports it.
        prompts: Prompts sent.
        prompt_tokens: Tokens of these prompts, as counted here; none is longer than the budget.
        evidence_tokens: Tokens of the candidates' lines, each counted once: the sum over c_l(v)
            in the paper's cost of the cascade (section 3.2 and Theorem 1). The prompts cost more,
            by the instructions, and by the rounds of a tournament.
    """

    usage: Usage = field(default_factory=Usage)
    prompts: int = 0
    prompt_tokens: int = 0
    evidence_tokens: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            usage=self.usage + other.usage,
            prompts=self.prompts + other.prompts,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            evidence_tokens=self.evidence_tokens + other.evidence_tokens,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranked:
    """Candidates in the order of a judge.

    Attributes:
        order: All candidates, best first; those that the judge did not name come last, in the
            order that they had.
        cost: What it cost.
        notes: Where the judge gave no use and the order before was kept.
    """

    order: tuple[ToolDefinition, ...]
    cost: Cost = field(default_factory=Cost)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Checked:
    """Candidates accepted and rejected by a judge.

    Attributes:
        rejected: Names of the rejected ones; whoever was not judged is not among them.
        cost: What it cost.
        notes: Where the judge gave no use and candidates were kept.
    """

    rejected: frozenset[str]
    cost: Cost = field(default_factory=Cost)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Batch:
    """Candidates that share one prompt."""

    system: str
    user: str
    candidates: tuple[ToolDefinition, ...]
    tokens: int


class ModelJudge:
    """Asks a model about candidates, in one prompt or in as many as the budget asks for.

    Each prompt holds at most ``token_budget`` tokens. Where all candidates fit into one, they are
    ranked in a single pass, as the paper has it. Where they do not, the judge holds a tournament:
    each batch is ranked on its own, and its ``keep`` best go on to the next round, so that a judge
    who always prefers the same of two tools finds what it would find in a single pass. Only where
    batches are hardly larger than ``keep``, the better part of each goes on, and a note says so.

    A judge that fails or answers nonsense changes nothing: the order before stays, nobody is
    rejected, and a note says so. It can not add a candidate.

    Args:
        model: Any chat model.
        token_budget: W, most tokens of one prompt.
        settings: How to generate.
        concurrency: Most prompts under way at a time.
        count_tokens: Counts the tokens of a text.

    Raises:
        UsageError: The budget leaves no room beside the instructions, or ``concurrency`` is below
            1.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        token_budget: int = 4096,
        settings: ModelSettings = PLANNER_SETTINGS,
        concurrency: int = 4,
        count_tokens: TokenCounter = estimate_tokens,
    ) -> None:
        if concurrency < 1:
            raise UsageError(f"concurrency must be 1 or more, got {concurrency}")
        self._model = model
        self._budget = token_budget
        self._settings = settings
        self._concurrency = concurrency
        self._count = count_tokens
        for question in (RANK_DESCRIPTIONS, CHECK_SPECIFICATIONS, RANK_EXAMPLES):
            self._room(question.instructions)

    async def rank(
        self, question: Question, step: str, candidates: Sequence[ToolDefinition], keep: int
    ) -> Ranked:
        """Order candidates for a step so that the ``keep`` best stand in front.

        Args:
            question: What is asked; see ``agentkit.retrieval.paper.prompts``.
            step: The step in words.
            candidates: What is ranked. Those with nothing to show are not asked about and keep
                their places: a tool without worked calls is neither better nor worse for that.
            keep: How many have to be found.
        """
        running = [one for one in candidates if question.shown(one)]
        losers: list[ToolDefinition] = []
        cost, notes = self._evidence(question, running), list[str]()
        is_over = len(running) < 2
        while not is_over:
            batches = self._batches(question, step, running, keep)
            answers = await self._ask_all(batches)
            cost += _spent(batches, answers)
            orders = [_ordered(one, said) for one, said in zip(batches, answers, strict=True)]
            notes += [note for _, note in orders if note]
            places = _places([len(one.candidates) for one in batches], keep)
            if len(batches) > 1 and places != [min(keep, len(one.candidates)) for one in batches]:
                notes.append(f"the {keep} best hardly fit into one prompt; batches were halved")
            running = _by_turns([order[:k] for (order, _), k in zip(orders, places, strict=True)])
            behind = _by_turns([order[k:] for (order, _), k in zip(orders, places, strict=True)])
            losers = [*behind, *losers]
            is_over = len(batches) == 1 or not behind or len(running) <= keep
        ranked = iter((*running, *losers))
        order = tuple(next(ranked) if question.shown(one) else one for one in candidates)
        return Ranked(order=order, cost=cost, notes=_counted(notes))

    async def check(
        self, question: Question, step: str, candidates: Sequence[ToolDefinition]
    ) -> Checked:
        """Accept or reject each candidate for a step; those with nothing to show are accepted."""
        shown = [one for one in candidates if question.shown(one)]
        batches = self._batches(question, step, shown, len(shown))
        answers = await self._ask_all(batches)
        rejected: set[str] = set()
        notes = []
        for batch, answer in zip(batches, answers, strict=True):
            names = [one.name for one in batch.candidates]
            verdicts = read_verdicts(answer.text, names)
            rejected |= {names[place] for place, verdict in verdicts.items() if not verdict}
            if not verdicts:
                notes.append(f"{_no_use(answer)}; nobody was rejected")
            elif len(verdicts) < len(names):
                notes.append("some candidates were not judged and stay")
        cost = self._evidence(question, shown) + _spent(batches, answers)
        return Checked(rejected=frozenset(rejected), cost=cost, notes=_counted(notes))

    def _evidence(self, question: Question, candidates: Sequence[ToolDefinition]) -> Cost:
        lines = filter(None, map(question.shown, candidates))
        return Cost(evidence_tokens=sum(self._count(line + "\n") for line in lines))

    async def _ask_all(self, batches: Sequence[_Batch]) -> list[Asked]:
        gate = asyncio.Semaphore(self._concurrency)

        async def one(batch: _Batch) -> Asked:
            async with gate:
                return await ask(self._model, batch.system, batch.user, self._settings)

        return list(await asyncio.gather(*(one(batch) for batch in batches)))

    # --- prompts ----------------------------------------------------------------------------------

    def _batches(
        self, question: Question, step: str, candidates: Sequence[ToolDefinition], keep: int
    ) -> list[_Batch]:
        """All candidates in prompts of at most the budget, in order."""
        system = question.instructions.format(keep=min(keep, len(candidates)))
        head = f"# Step\n{fitted(step, self._room(system) // 2, self._count)}\n\n# Tools\n"
        batches, start = [], 0
        while start < len(candidates):
            batch = self._filled(question, system, head, candidates[start:])
            batches.append(batch)
            start += len(batch.candidates)
        return batches

    def _filled(
        self, question: Question, system: str, head: str, candidates: Sequence[ToolDefinition]
    ) -> _Batch:
        """One prompt with as many of the first candidates as fit, at least one."""
        fixed = self._count(system) + self._count(head)
        lines: list[str] = []
        tokens = fixed
        for number, candidate in enumerate(candidates, start=1):
            line = f"{number}. {question.shown(candidate)}\n"
            price = self._count(line)
            if lines and tokens + price > self._budget:
                break
            lines.append(line)
            tokens += price
        # counts of parts do not always add up to the count of the whole
        while len(lines) > 1 and self._total(system, head, lines) > self._budget:
            lines.pop()
        if self._total(system, head, lines) > self._budget:
            lines = [fitted(lines[0], self._budget - fixed, self._count)]
        return _Batch(
            system, head + "".join(lines), tuple(candidates[: len(lines)]),
            self._total(system, head, lines),
        )  # fmt: skip

    def _room(self, system: str) -> int:
        """Tokens left beside the instructions.

        Raises:
            UsageError: Too few.
        """
        room = self._budget - self._count(system)
        if room < _LEAST_ROOM:
            raise UsageError(
                f"token_budget={self._budget} leaves {room} tokens beside the judge's "
                f"instructions; {_LEAST_ROOM} are the least"
            )
        return room

    def _total(self, system: str, head: str, lines: Sequence[str]) -> int:
        return self._count(system) + self._count(head + "".join(lines))


def _ordered(batch: _Batch, answer: Asked) -> tuple[list[ToolDefinition], str]:
    """The batch in the judge's order, the unnamed last, and what was wrong with the answer."""
    places = read_order(answer.text, [one.name for one in batch.candidates])
    rest = [place for place in range(len(batch.candidates)) if place not in set(places)]
    order = [batch.candidates[place] for place in (*places, *rest)]
    return order, "" if places else f"{_no_use(answer)}; the order before was kept"


def _places(sizes: Sequence[int], keep: int) -> list[int]:
    """How many of each batch go on: all of a single one, else the ``keep`` best of each.

    Where that would leave more than three quarters, half of each batch and its share of ``keep``.
    """
    total = sum(sizes)
    places = [min(keep, size) for size in sizes]
    if len(sizes) == 1:
        return [total]
    if 4 * sum(places) <= 3 * total:
        return places
    return [min(size, max(-(-size // 2), -(-keep * size // total))) for size in sizes]


def _by_turns(orders: Sequence[Sequence[ToolDefinition]]) -> list[ToolDefinition]:
    """The best of each, then the second of each, and so on."""
    return [one for rank in zip_longest(*orders) for one in rank if one is not None]


def _spent(batches: Sequence[_Batch], answers: Sequence[Asked]) -> Cost:
    usage = sum((answer.usage for answer in answers), start=Usage())
    tokens = sum(batch.tokens for batch in batches)
    return Cost(usage=usage, prompts=len(batches), prompt_tokens=tokens)


def _no_use(answer: Asked) -> str:
    return answer.failure or f"no candidate in the judge's answer {shortened(answer.text, 80)!r}"


def _counted(notes: Sequence[str]) -> tuple[str, ...]:
    """Each note once, with how often it held."""
    return tuple(
        f"{note} ({times} prompts)" if (times := notes.count(note)) > 1 else note
        for note in dict.fromkeys(notes)
    )
