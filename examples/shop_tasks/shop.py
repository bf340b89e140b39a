"""A small shop as a world for tasks: orders that an agent may look up, cancel and refund.

Each attempt at a task gets a shop of its own, so nothing that an agent does is seen by another.
The tools do what they are told; what an agent ought to do is in the policy, in shop_tasks.jsonl.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Literal

from agentkit import Tool, ToolFailed, tool
from agentkit.evaluation import Task

ORDERS: dict[str, dict[str, Any]] = {
    "A-101": {
        "email": "ada@example.org",
        "item": "desk lamp",
        "quantity": 1,
        "price_eur": 54.5,
        "status": "shipped",
        "delivered_on": None,
        "address": "Mill Lane 3, Aker",
    },
    "A-102": {
        "email": "ada@example.org",
        "item": "notebook",
        "quantity": 12,
        "price_eur": 42.0,
        "status": "processing",
        "delivered_on": None,
        "address": "Mill Lane 3, Aker",
    },
    "A-103": {
        "email": "ben@example.org",
        "item": "kettle",
        "quantity": 1,
        "price_eur": 39.0,
        "status": "delivered",
        "delivered_on": "2026-05-11",
        "address": "Quay 8, Moss",
    },
    "A-104": {
        "email": "ben@example.org",
        "item": "toaster",
        "quantity": 2,
        "price_eur": 80.0,
        "status": "delivered",
        "delivered_on": "2026-03-02",
        "address": "Quay 8, Moss",
    },
}


class Shop:
    """The orders of one attempt.

    Args:
        task: Its ``start`` may hold other ``orders`` than ``ORDERS``.
    """

    def __init__(self, task: Task) -> None:
        orders: dict[str, dict[str, Any]] = task.start.get("orders", ORDERS)
        self._orders = copy.deepcopy(orders)
        self._refunds: dict[str, float] = {}

    def tools(self) -> Sequence[Tool]:
        """What the agent can do."""
        return [
            tool(self.find_orders, effects=("reads",)),
            tool(self.get_order, effects=("reads",)),
            tool(self.cancel_order, effects=("writes",)),
            tool(self.refund_order, effects=("writes",)),
            tool(self.change_address, effects=("writes", "idempotent")),
        ]

    def state(self) -> dict[str, Any]:
        """What counts in the end: each order's status and address, and the refunds in euro."""
        return {
            "orders": {
                order_id: {"status": order["status"], "address": order["address"]}
                for order_id, order in self._orders.items()
            },
            "refunds": dict(self._refunds),
        }

    def find_orders(self, email: str) -> list[str]:
        """Find the ids of a customer's orders.

        Args:
            email: The customer's address, such as ada@example.org.
        """
        return [order_id for order_id, order in self._orders.items() if order["email"] == email]

    def get_order(self, order_id: str) -> dict[str, Any]:
        """Look an order up: item, quantity, price of the whole order in euro, status, address.

        Args:
            order_id: The order, such as A-101.
        """
        return dict(self._order(order_id))

    def cancel_order(
        self, order_id: str, reason: Literal["changed_mind", "ordered_by_mistake", "too_slow"]
    ) -> str:
        """Cancel an order.

        Args:
            order_id: The order, such as A-101.
            reason: Why the customer cancels.
        """
        self._order(order_id)["status"] = "cancelled"
        return f"{order_id} is cancelled ({reason})"

    def refund_order(self, order_id: str, amount_eur: float) -> str:
        """Pay money back for an order.

        Args:
            order_id: The order, such as A-101.
            amount_eur: How much, in euro.
        """
        self._order(order_id)
        if order_id in self._refunds:
            raise ToolFailed(f"{order_id} was refunded already; no order is refunded twice")
        self._refunds[order_id] = round(amount_eur, 2)
        return f"{self._refunds[order_id]} EUR will be paid back for {order_id}"

    def change_address(self, order_id: str, address: str) -> str:
        """Change where an order is sent.

        Args:
            order_id: The order, such as A-101.
            address: Street and number, then the town.
        """
        self._order(order_id)["address"] = address
        return f"{order_id} goes to {address}"

    def _order(self, order_id: str) -> dict[str, Any]:
        order = self._orders.get(order_id)
        if order is None:
            raise ToolFailed(f"there is no order {order_id!r}; find_orders lists a customer's")
        return order
