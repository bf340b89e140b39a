# ruff: noqa: INP001 - a folder of a user, no package
"""Tools of a small shop: what examples/own_tasks.yaml trains a policy to call."""

from __future__ import annotations

from agentkit import tool

_STATES = ("packed", "shipped", "delivered", "cancelled")


@tool
def order_status(order: str) -> str:
    """Where an order is.

    Args:
        order: Its number, such as A17.
    """
    return _STATES[sum(map(ord, order)) % len(_STATES)]


@tool
def order_price(order: str) -> float:
    """What an order costs, in euros.

    Args:
        order: Its number, such as A17.
    """
    return round(9.5 + sum(map(ord, order)) % 90, 2)


@tool
def cancel_order(order: str, reason: str) -> str:
    """Cancel an order.

    Args:
        order: Its number, such as A17.
        reason: Why, in the words of the customer.
    """
    return f"{order} is cancelled: {reason}"
