"""What a tool says about two of its parameters together."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from agentkit.evolution.proposals.stated.statements import StatedNeed, StatedOrder

_Q = r"[`'\"]?"
_NAME = r"(?P<{0}>\w{{1,60}})"
_LEFT, _RIGHT = _Q + _NAME.format("left") + _Q, _Q + _NAME.format("right") + _Q
_ORDER = re.compile(
    rf"""{_LEFT}\s+(?P<words>
            (?:must|should|has\s+to|needs\s+to)\s+(?:be\s+|lie\s+)?(?:
                on\s+or\s+before
              | not\s+(?:be\s+)?(?:after|later\s+than|exceed|greater\s+than|more\s+than)
              | before|earlier\s+than|less\s+than\s+or\s+equal\s+to|at\s+most|less\s+than
              | smaller\s+than|below
              | on\s+or\s+after|not\s+(?:be\s+)?(?:before|earlier\s+than|less\s+than)
              | after|later\s+than|greater\s+than\s+or\s+equal\s+to|at\s+least|greater\s+than
              | more\s+than|above)
          | (?:must\s+not|cannot|can't|may\s+not)\s+(?:be\s+)?(?:
                after|later\s+than|exceed|greater\s+than|more\s+than
              | before|earlier\s+than|less\s+than)
          | <=|<|>=|>
        )\s+(?:the\s+)?{_RIGHT}(?!\w)""",
    re.VERBOSE | re.IGNORECASE,
)
_NEED = re.compile(
    rf"""{_LEFT}\s+(?:is|are|must\s+be)\s+(?:required|given|needed|provided|set)\s+
         (?:when|if|with|together\s+with|along\s+with)\s+(?:using\s+)?{_RIGHT}
       | {_Q}(?P<given>\w{{1,60}}){_Q}\s+(?:requires|needs|must\s+be\s+used\s+with)\s+
         (?:the\s+)?{_Q}(?P<other>\w{{1,60}}){_Q}""",
    re.VERBOSE | re.IGNORECASE,
)
_SMALLER = ("before", "earlier", "less", "smaller", "below", "at most", "on or before", "<")
_ITSELF = ("on or", "equal", "at most", "at least", "<=", ">=")


def stated_orders(text: str, names: Collection[str]) -> Iterator[StatedOrder]:
    """Which parameter may not be greater, or later, than which other one.

    Args:
        text: What the tool says.
        names: Names of its parameters.

    Example:
        >>> list(stated_orders("`start` must be before `end`", ["start", "end"]))
        [StatedOrder(left='start', sign='<', right='end', start=0)]
        >>> list(stated_orders("low must not exceed high", ["low", "high"]))
        [StatedOrder(left='low', sign='<=', right='high', start=0)]
    """
    for match in _ORDER.finditer(text):
        left, right = match["left"], match["right"]
        if left == right or left not in names or right not in names:
            continue
        words = " ".join(match["words"].casefold().split())
        is_negated = "not" in words or "can't" in words
        is_smaller = any(word in words for word in _SMALLER)
        is_itself = any(word in words for word in _ITSELF)
        if is_negated:
            is_smaller, is_itself = not is_smaller, not is_itself
        if not is_smaller:
            left, right = right, left
        yield StatedOrder(
            left=left, sign="<=" if is_itself else "<", right=right, start=match.start()
        )


def stated_needs(text: str, names: Collection[str]) -> Iterator[StatedNeed]:
    """Which parameter must be given with which other one.

    Example:
        >>> [(n.parameter, n.other)
        ...  for n in stated_needs("`currency` is required when `budget` is given",
        ...                        ["currency", "budget"])]
        [('budget', 'currency')]
    """
    for match in _NEED.finditer(text):
        given, other = match["right"] or match["given"], match["left"] or match["other"]
        if given != other and given in names and other in names:
            yield StatedNeed(parameter=given, other=other, start=match.start())
