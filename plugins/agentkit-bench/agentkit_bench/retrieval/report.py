"""``MethodReport``: what one method did on one corpus, as typed numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentkit.metrics.statistics import Interval

RECALL_AT = (1, 5, 10, 32)
FULL_AT = (5, 10, 32)
TOKENS_AT = (5, 10, 32)


@dataclass(frozen=True, kw_only=True, slots=True)
class Quality:
    """How good the ranking is, means over the questions.

    Attributes:
        recall: The share of the gold tools among the first k, by k.
        full: The share of questions with all gold tools among the first k, by k.
        mrr: Mean of one divided by the rank of the first gold tool.
        name_hit: The share of tool names that, as a query, find their tool first.
        offered: Recall among the tools given in full within the budget.
        shown: Recall among the tools shown at all, by schema or card, within the budget.
    """

    recall: Mapping[int, float]
    full: Mapping[int, float]
    mrr: float
    name_hit: float
    offered: float
    shown: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What it costs.

    Attributes:
        tokens: Mean prompt tokens of what is shown: cards and full schemas.
        tokens_max: The highest of them.
        model_tokens: Mean tokens that the stages spent on a language model of their own.
        model_requests: Mean requests to it.
        schemas: Mean tokens of the full schemas of the first k tools, by k.
        cards: Mean tokens of the one-line cards of the first k tools, by k.
        build_cpu_s: CPU seconds of the first query beyond a usual one: loading, indexing.
        cpu_p50_ms: CPU milliseconds of a query, median.
        cpu_p99_ms: The same, 99th percentile.
        memory_mb: Resident memory that the retriever added to a process that held the library,
            after its first query; packages and weights that it loads included.
        peak_mb: Highest resident memory of the whole process.
    """

    tokens: float
    tokens_max: int
    model_tokens: float
    model_requests: float
    schemas: Mapping[int, float]
    cards: Mapping[int, float]
    build_cpu_s: float
    cpu_p50_ms: float
    cpu_p99_ms: float
    memory_mb: float
    peak_mb: float


@dataclass(frozen=True, kw_only=True, slots=True)
class MethodReport:
    """One method on one corpus.

    Attributes:
        method: Its name.
        tools: How many tools the catalogue holds.
        asked: Ids of the questions, in order.
        quality: How good it is.
        cost: What it costs.
        by_question: Recall of each question, by depth, for paired comparisons.
        notes: Fall-backs that the stages reported, with how many questions each met.
        unknown_gold: Gold tools that are in none of the files, and so can not be found.
    """

    method: str
    tools: int
    asked: tuple[str, ...]
    quality: Quality
    cost: Cost
    by_question: Mapping[int, Sequence[float]] = field(default_factory=dict)
    notes: Mapping[str, int] = field(default_factory=dict)
    unknown_gold: int = 0

    @property
    def questions(self) -> int:
        """How many were asked."""
        return len(self.asked)

    def to_json(self) -> dict[str, Any]:
        """One flat object with keys such as ``recall@5`` and ``cpu_p99_ms``."""
        quality, cost = self.quality, self.cost
        return {
            "method": self.method,
            "tools": self.tools,
            "questions": self.questions,
            "unknown_gold": self.unknown_gold,
            **_by_depth("recall", quality.recall, 4),
            **_by_depth("full", quality.full, 4),
            "mrr": round(quality.mrr, 4),
            "name_hit@1": round(quality.name_hit, 4),
            "offered_recall": round(quality.offered, 4),
            "shown_recall": round(quality.shown, 4),
            "tokens": round(cost.tokens),
            "tokens_max": cost.tokens_max,
            "model_tokens": round(cost.model_tokens),
            "model_requests": round(cost.model_requests, 2),
            **_by_depth("schema_tokens", cost.schemas, 0),
            **_by_depth("card_tokens", cost.cards, 0),
            "build_cpu_s": round(cost.build_cpu_s, 3),
            "cpu_p50_ms": round(cost.cpu_p50_ms, 3),
            "cpu_p99_ms": round(cost.cpu_p99_ms, 3),
            "memory_mb": round(cost.memory_mb, 1),
            "peak_mb": round(cost.peak_mb, 1),
            "notes": dict(self.notes),
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """How much one method finds beyond another on the same questions.

    Attributes:
        method: The one.
        against: The other.
        difference: Mean difference of recall with its paired 95% interval, by depth.
    """

    method: str
    against: str
    difference: Mapping[int, Interval]


def _by_depth(name: str, figures: Mapping[int, float], digits: int) -> dict[str, float]:
    return {
        f"{name}@{depth}": round(value, digits) if digits else round(value)
        for depth, value in figures.items()
    }
