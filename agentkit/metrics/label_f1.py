"""F1 of names: which tools were called and which parameters given, whatever their values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from statistics import fmean

from agentkit.errors import UsageError


def label_f1(predicted: Iterable[Hashable], gold: Iterable[Hashable]) -> float:
    """F1 of one answer's labels, each counted as often as it occurs; 1 when both have none.

    Example:
        >>> label_f1(["search", "book"], ["search", "search", "pay"])
        0.4
    """
    made, wanted = Counter(predicted), Counter(gold)
    total = made.total() + wanted.total()
    return 2 * (made & wanted).total() / total if total else 1.0


def macro_f1(predicted: Sequence[Iterable[Hashable]], gold: Sequence[Iterable[Hashable]]) -> float:
    """Mean over labels of their F1 in a whole benchmark, as NESTFUL's scorer reports it.

    Upstream it is scikit-learn's ``f1_score(average="macro")`` over sets of labels: how often a
    label occurs in one answer does not count, and labels that no gold answer has are ignored, so a
    superfluous call of another tool costs nothing. ``label_f1`` has neither weakness.

    Args:
        predicted: The labels of each answer.
        gold: The labels of each gold answer, in the same order.

    Raises:
        UsageError: There are not as many answers as gold answers.

    Example:
        >>> round(macro_f1([["a"], ["b", "x"]], [["a", "b"], ["b"]]), 3)
        0.833
    """
    if len(predicted) != len(gold):
        raise UsageError(f"{len(predicted)} answers can not be paired with {len(gold)} gold ones")
    made, wanted = [set(labels) for labels in predicted], [set(labels) for labels in gold]
    in_both = Counter(label for a, b in zip(made, wanted, strict=True) for label in a & b)
    in_made = Counter(label for labels in made for label in labels)
    in_gold = Counter(label for labels in wanted for label in labels)
    scores = [2 * in_both[label] / (in_made[label] + count) for label, count in in_gold.items()]
    return fmean(scores) if scores else 1.0
