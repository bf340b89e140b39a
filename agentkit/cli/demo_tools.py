"""Five tools of an office, as anybody writes them: each refuses what its definition does not say.

They are plain code on purpose. What a tool accepts is stated only in its body, where no model reads
it; a call that breaks it gets a sentence back, as a careful backend gives one.
"""

from __future__ import annotations

from collections.abc import Collection

from agentkit.errors import ModelRetry
from agentkit.tools.decorator import tool
from agentkit.tools.tool import Tool

TERMS = (36, 48, 60)
SIZES = ("small-36", "medium-40", "large-44")
QUARTERS = ("1st", "2nd", "3rd", "4th")
COLOURS = ("red-1", "green-2", "blue-3", "yellow-4")


def _one_of(name: str, value: object, accepted: Collection[object]) -> None:
    """Refuse a value that is not accepted.

    Raises:
        ModelRetry: With the values that are.
    """
    if value not in accepted:
        values = ", ".join(map(str, accepted))
        raise ModelRetry(f"{name} must be one of {values}, got {value}")


@tool(effects=("reads",))
def loan_rate(amount: int, periods: int) -> str:
    """What a loan costs a month.

    Args:
        amount: The sum.
        periods: How long it runs.
    """
    _one_of("periods", periods, TERMS)
    return f"{amount / periods:.2f} a month"


@tool(effects=("writes",))
def order_shirts(count: int, size: str) -> str:
    """Order shirts.

    Args:
        count: How many.
        size: The size.
    """
    _one_of("size", size, SIZES)
    return f"{count} shirts ordered"


@tool(effects=("reads",))
def report_sales(year: int, quarter: str) -> str:
    """Report what was sold.

    Args:
        year: The year.
        quarter: The quarter.
    """
    _one_of("quarter", quarter, QUARTERS)
    return f"sales of the {quarter} quarter of {year}"


@tool(effects=("writes",))
def colour_lamp(lamp: int, colour: str) -> str:
    """Set the colour of a lamp.

    Args:
        lamp: Number of the lamp.
        colour: Which colour.
    """
    _one_of("colour", colour, COLOURS)
    return f"lamp {lamp} is {colour}"


@tool(effects=("writes",))
def give_discount(customer: int, share: float) -> str:
    """Give a customer a discount.

    Args:
        customer: Number of the customer.
        share: How much.
    """
    if not 0 <= share <= 1:
        raise ModelRetry(f"share must be between 0 and 1, got {share}")
    return f"customer {customer} pays {1 - share:.0%} of the price"


TOOLS: tuple[Tool, ...] = (loan_rate, order_shirts, report_sales, colour_lamp, give_discount)
"""All of them."""
