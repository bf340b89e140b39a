"""The four tools of the sales assistant: plain typed functions with docstrings."""

from __future__ import annotations

from typing import Annotated, Literal

from inventory import Car, Inventory
from pydantic import Field

from agentkit import ModelRetry, Tool, tool

POLICIES = {
    "returns": "A car can be returned within 14 days and 500 km for a full refund.",
    "warranty": "Every car has 12 months of warranty; 24 months when it is younger than 3 years.",
    "test drive": "Test drives are free, take 30 minutes and need a driving licence.",
    "trade-in": "We take a car in payment after an inspection of 20 minutes.",
}

TERMS = (36, 48, 60)
"""What the bank lends for, in months. No schema says so: the bank refuses other terms."""


def sales_tools(inventory: Inventory, *, annual_rate: float = 0.059) -> list[Tool]:
    """The assistant's tools over one inventory.

    Args:
        inventory: Where cars are looked up.
        annual_rate: Interest on loans per year, as a fraction.
    """

    @tool(effects=("reads",))
    def search_inventory(
        query: str = "",
        body: Literal["hatchback", "estate", "suv"] | None = None,
        max_price_eur: Annotated[int, Field(ge=0)] | None = None,
    ) -> list[Car]:
        """Search the cars that are on the yard, cheapest first.

        Args:
            query: Search term, such as BMW X3.
            body: Body style; leave out for all.
            max_price_eur: Highest price in euro; leave out for no limit.
        """
        return inventory.search(query=query, body=body, max_price_eur=max_price_eur)

    @tool(effects=("reads",))
    def check_policy(topic: Literal["returns", "warranty", "test drive", "trade-in"]) -> str:
        """Look up what the dealership promises about a topic."""
        return POLICIES[topic]

    @tool(effects=("reads",))
    def calculate_loan(
        stock_number: str,
        down_payment_eur: Annotated[int, Field(ge=0)],
        periods: int,
    ) -> dict[str, float]:
        """Calculate the monthly rate of a car loan.

        Args:
            stock_number: The car's stock number, such as C-101.
            down_payment_eur: What the customer pays at once, in euro.
            periods: Term of the loan in months.
        """
        if periods not in TERMS:
            terms = ", ".join(map(str, TERMS))
            raise ModelRetry(f"periods must be one of {terms}; the bank refuses {periods}")
        car = inventory.get(stock_number)
        if car is None:
            raise ModelRetry(
                f"there is no car {stock_number}; search_inventory shows stock numbers"
            )
        if down_payment_eur >= car.price_eur:
            raise ModelRetry(f"the car costs {car.price_eur} EUR; the down payment must be less")
        monthly = annual_rate / 12
        loan = car.price_eur - down_payment_eur
        rate = loan * monthly / (1 - (1 + monthly) ** -periods)
        return {"monthly_rate_eur": round(rate, 2), "total_eur": round(rate * periods, 2)}

    @tool(deferred=True)
    def hand_over_to_person(reason: str) -> str:  # type: ignore[empty-body]  # a person answers
        """Hand the conversation over to a person in the shop, who then answers.

        Use it for complaints, for prices below the list, and whenever the customer asks for one.

        Args:
            reason: What the person should know, in one sentence.
        """

    return [search_inventory, check_policy, calculate_loan, hand_over_to_person]
