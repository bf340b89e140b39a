"""What every engine of the composite benchmark does: the same two texts over the same functions.

Standard library only, because it runs in the environments of all adapters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def convert(amount: float, rate: float) -> float:
    """An amount in another currency."""
    return amount * rate


def discount(value: float, percent: float) -> float:
    """A value less some percent."""
    return value - value * percent / 100


def tax(value: float) -> float:
    """The tax on a value."""
    return value * 0.19


def fee(days: int) -> float:
    """The fee for some days."""
    return 2.5 * days


def add(left: float, right: float) -> float:
    """The sum of two numbers."""
    return left + right


CHILDREN: dict[str, Callable[..., Any]] = {
    "convert": convert,
    "discount": discount,
    "tax": tax,
    "fee": fee,
    "add": add,
}
QUOTE = '''
def quote(amount, rate, days):
    """The price of a stay in another currency, with tax and fee."""
    converted = convert(amount=amount, rate=rate)
    reduced = discount(value=converted, percent=5)
    taxed = tax(value=reduced)
    service = fee(days=days)
    return add(left=taxed, right=service)
'''
QUOTE_ARGUMENTS = {"amount": 120.0, "rate": 1.1, "days": 3}

PRICES = '''
def prices(rows, rate):
    """The price of every row in another currency."""
    return [convert(amount=row["amount"], rate=rate) for row in rows]
'''
PRICES_ARGUMENTS = {
    "rows": [{"name": f"row {i}", "amount": i * 1.5} for i in range(100)],
    "rate": 1.1,
}


def quote(amount: float, rate: float, days: int) -> float:
    """``QUOTE`` as plain Python: what the children cost when they are called directly."""
    converted = convert(amount=amount, rate=rate)
    reduced = discount(value=converted, percent=5)
    taxed = tax(value=reduced)
    service = fee(days=days)
    return add(left=taxed, right=service)


def prices(rows: list[dict[str, Any]], rate: float) -> list[float]:
    """``PRICES`` as plain Python."""
    return [convert(amount=row["amount"], rate=rate) for row in rows]
