"""How many different words a text uses: the type-token ratio, plain and without its bias."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

from agentkit.errors import UsageError

WINDOW = 50
"""Words of the moving window, as Covington and McFall use for short texts."""


def type_token_ratio(tokens: Sequence[Hashable]) -> float | None:
    """Different words for each word: ``|types| / |tokens|``, in (0, 1]; None without words.

    ToolDNA (section 4.4) reports a fall from .2288 to .1953 and reads it as a more uniform
    vocabulary. The ratio falls with the length alone, though: a text said twice has half the ratio
    of the text said once, and vocabulary grows slower than text in any language (Heaps' law;
    Rosillo-Rodes et al., Physical Review Research 7(3), 2025, whom ToolDNA cites). Evolved texts
    are mostly longer, so a fall is no finding without ``moving_type_token_ratio`` beside it.

    Args:
        tokens: The words; ``words`` cuts a text into them.

    Example:
        >>> type_token_ratio("a rose is a rose".split())
        0.6
    """
    return len(set(tokens)) / len(tokens) if tokens else None


def moving_type_token_ratio(tokens: Sequence[Hashable], window: int = WINDOW) -> float | None:
    """The mean type-token ratio of all runs of ``window`` words, which length does not move.

    Covington and McFall, "Cutting the Gordian knot: the moving-average type-token ratio (MATTR)",
    Journal of Quantitative Linguistics 17(2), 2010. They leave open what a text shorter than the
    window has; here it has none, because its plain ratio could not be compared with the others.

    Args:
        tokens: The words.
        window: How many words each run has, 1 or more.

    Raises:
        UsageError: The window is smaller than 1.

    Example:
        >>> moving_type_token_ratio("a rose is a rose".split(), window=3)
        1.0
        >>> moving_type_token_ratio(["short"], window=3) is None
        True
    """
    if window < 1:
        raise UsageError(f"a window of {window} words holds nothing; give 1 or more")
    if len(tokens) < window:
        return None
    counts = Counter(tokens[:window])
    types = len(counts)
    for at in range(window, len(tokens)):
        leaving = tokens[at - window]
        counts[leaving] -= 1
        if not counts[leaving]:
            del counts[leaving]
        counts[tokens[at]] += 1
        types += len(counts)
    return types / (window * (len(tokens) - window + 1))
