"""Primitives on one or two numbers. Integers stay exact; a result is always finite."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Annotated

from pydantic import Field

from agentkit.errors import ModelRetry
from agentkit.testing.primitives.common import LIMITS, PURE, finite, worked
from agentkit.tools.decorator import tool

_TAGS = ("arithmetic",)
_DECIMALS = Context(prec=400)
"""Digits enough to round any float, whose largest has 309 before the point."""


@tool(
    effects=PURE,
    tags=_TAGS,
    pre=("isfinite(a)", "isfinite(b)"),
    post=("result == a + b",),
    complexity="O(1)",
    examples=(
        worked(7.5, "What do a coffee for 3 and a cake for 4.50 cost together?", a=3, b=4.5),
        worked(1.0, a=-1.5, b=2.5),
        worked(0, a=0, b=0),
    ),
)
def add(a: float, b: float) -> float:
    """Sum of two numbers.

    Args:
        a: First number.
        b: Second number.

    Returns:
        a plus b.

    Raises:
        ModelRetry: The sum is beyond the largest number.
    """
    return finite(a + b)


@tool(
    effects=PURE,
    tags=_TAGS,
    pre=("isfinite(a)", "isfinite(b)"),
    post=("result == a - b",),
    complexity="O(1)",
    examples=(
        worked(13, "I had 20 euros and spent 7. How much is left?", a=20, b=7),
        worked(-2.5, a=1, b=3.5),
        worked(0, a=4, b=4),
    ),
)
def sub(a: float, b: float) -> float:
    """Difference of two numbers.

    Args:
        a: Number to subtract from.
        b: Number to take away.

    Returns:
        a minus b.

    Raises:
        ModelRetry: The difference is beyond the largest number.
    """
    return finite(a - b)


@tool(
    effects=PURE,
    tags=_TAGS,
    pre=("isfinite(a)", "isfinite(b)"),
    post=("result == a * b",),
    complexity="O(1)",
    examples=(
        worked(12, "What do 3 notebooks at 4 dollars each cost?", a=3, b=4),
        worked(-0.75, a=-0.5, b=1.5),
        worked(0, a=0, b=12345),
    ),
)
def mul(a: float, b: float) -> float:
    """Product of two numbers.

    Args:
        a: First factor.
        b: Second factor.

    Returns:
        a times b.

    Raises:
        ModelRetry: The product is beyond the largest number.
    """
    return finite(a * b)


@tool(
    effects=PURE,
    tags=_TAGS,
    pre=("isfinite(a)", "isfinite(b)", "b != 0"),
    post=("is_close(result * b, a)",),
    complexity="O(1)",
    examples=(
        worked(22.5, "Four friends share a bill of 90. What does each pay?", a=90, b=4),
        worked(-3.0, a=9, b=-3),
        worked(0.0, a=0, b=5),
    ),
)
def div(a: float, b: float) -> float:
    """Quotient of two numbers, with its fraction. For whole parts use floor_div.

    Args:
        a: Number to divide.
        b: Number to divide by; not zero.

    Returns:
        a divided by b.

    Raises:
        ModelRetry: b is zero, or the quotient is beyond the largest number.
    """
    _check_divisor(a, b)
    return finite(a / b)


@tool(
    effects=PURE,
    tags=_TAGS,
    pre=("isfinite(a)", "isfinite(b)", "b != 0"),
    post=("is_close(result * b + a % b, a)", "result == round(result)"),
    complexity="O(1)",
    examples=(
        worked(7, "How many boxes of 12 can I fill with 95 eggs?", a=95, b=12),
        worked(-4, a=-7, b=2),
        worked(0, a=3, b=5),
    ),
)
def floor_div(a: float, b: float) -> float:
    """How many whole times one number goes into another, rounded down.

    Args:
        a: Number to divide.
        b: Number to divide by; not zero.

    Returns:
        The largest whole number that is not above a divided by b.

    Raises:
        ModelRetry: b is zero, or the quotient is beyond the largest number.
    """
    _check_divisor(a, b)
    return finite(a // b)


@tool(
    effects=PURE,
    tags=_TAGS,
    pre=("isfinite(a)", "isfinite(b)", "b != 0"),
    post=("result == a % b", "abs(result) <= abs(b)", "result * b >= 0"),
    complexity="O(1)",
    examples=(
        worked(11, "How many of 95 eggs are left over after filling boxes of 12?", a=95, b=12),
        worked(1, a=-7, b=2),
        worked(0, a=12, b=4),
    ),
)
def mod(a: float, b: float) -> float:
    """What is left of one number after taking out another a whole number of times.

    Args:
        a: Number to divide.
        b: Number to divide by; not zero. The remainder has its sign.

    Returns:
        a minus b times floor_div(a, b).

    Raises:
        ModelRetry: b is zero.
    """
    _check_divisor(a, b)
    return a % b


@tool(
    effects=PURE,
    tags=_TAGS,
    pre=("isfinite(base)", "base != 0 or exponent >= 0"),
    post=("result == base ** exponent",),
    complexity="O(log exponent)",
    examples=(
        worked(1024, "How many leaves has a binary tree of depth 10?", base=2, exponent=10),
        worked(0.25, base=2, exponent=-2),
        worked(1, base=0, exponent=0),
    ),
)
def pow_int(base: float, exponent: int) -> float:
    """A number to a whole power.

    Args:
        base: Number to multiply with itself.
        exponent: How often; a negative one gives the reciprocal.

    Returns:
        base to the power of exponent; 1 when the exponent is 0.

    Raises:
        ModelRetry: The power is beyond the largest number, or 0 is raised to a negative power.
    """
    if base == 0 and exponent < 0:
        raise ModelRetry(f"0 to the power of {exponent} is 1 divided by zero; use another base")
    if isinstance(base, int) and base.bit_length() > 1:
        bits = base.bit_length() * exponent
        if bits > LIMITS.integer_bits:
            return finite(math.inf)
    try:
        return finite(base**exponent)
    except OverflowError:
        return finite(math.inf)


@tool(
    effects=PURE,
    tags=_TAGS,
    pre=("isfinite(value)", "value >= 0"),
    post=("result >= 0", "is_close(result * result, value)"),
    complexity="O(1)",
    examples=(
        worked(12.0, "How long is the side of a square of 144 square metres?", value=144),
        worked(0.5, value=0.25),
        worked(0.0, value=0),
    ),
)
def sqrt(value: float) -> float:
    """Square root of a number.

    Args:
        value: Number that is not negative.

    Returns:
        The number that gives the value when it is multiplied with itself; not negative.

    Raises:
        ModelRetry: The value is negative.
    """
    if value < 0:
        raise ModelRetry(f"{value} is negative and has no real square root; give 0 or more")
    return math.sqrt(finite(value))


@tool(
    effects=PURE,
    tags=_TAGS,
    pre=("isfinite(value)",),
    post=("result + value == 0",),
    complexity="O(1)",
    examples=(
        worked(-250, "Book a refund of 250 as an amount.", value=250),
        worked(1.5, value=-1.5),
        worked(0, value=0),
    ),
)
def neg(value: float) -> float:
    """A number with the other sign.

    Args:
        value: Any number.

    Returns:
        Zero minus the value.
    """
    return -value


@tool(
    effects=PURE,
    tags=_TAGS,
    pre=("isfinite(value)",),
    post=("result >= 0", "result == value or result == -value"),
    complexity="O(1)",
    examples=(
        worked(3.5, "How far is -3.5 from zero?", value=-3.5),
        worked(8, value=8),
        worked(0, value=0),
    ),
)
def absolute(value: float) -> float:
    """A number without its sign.

    Args:
        value: Any number.

    Returns:
        The distance from zero.
    """
    return abs(value)


@tool(
    effects=PURE,
    tags=_TAGS,
    pre=("isfinite(value)", "-12 <= digits <= 12"),
    post=(
        "abs(result - value) <= 0.5 * 10 ** -digits + 1e-9 * max(1, abs(value))",
        "is_close(result * 10 ** digits, round(result * 10 ** digits))",
    ),
    complexity="O(1)",
    examples=(
        worked(19.99, "What is 19.9876 euros in cents?", value=19.9876, digits=2),
        worked(2.68, value=2.675, digits=2),
        worked(-3, value=-2.5),
        worked(1300, value=1250, digits=-2),
    ),
)
def round_to(value: float, digits: Annotated[int, Field(ge=-12, le=12)] = 0) -> float:
    """A number rounded to so many decimals; halves go away from zero, as on an invoice.

    Args:
        value: Any number; it counts as it is written, so 2.675 is a half and becomes 2.68.
        digits: Decimals to keep; negative ones round to tens, hundreds and so on.

    Returns:
        The nearest number with so many decimals.

    Raises:
        ModelRetry: digits is not between -12 and 12.
    """
    if not -12 <= digits <= 12:
        raise ModelRetry(f"digits is {digits}; give -12 to 12")
    step = Decimal(1).scaleb(-digits)
    rounded = Decimal(str(finite(value))).quantize(step, ROUND_HALF_UP, _DECIMALS)
    return int(rounded) if isinstance(value, int) or digits <= 0 else float(rounded)


def _check_divisor(a: float, b: float) -> None:
    if b == 0:
        raise ModelRetry(f"{a} can not be divided by zero; give another b, or leave the step out")


ARITHMETIC = (add, sub, mul, div, floor_div, mod, pow_int, sqrt, neg, absolute, round_to)
