from agentkit import tool


@tool
def monthly_rate(amount: float, months: int) -> float:
    """What one month of a loan costs.

    Args:
        amount: The amount of the loan.
        months: How long it runs.
    """
    return amount / months


@tool
def with_tax(price: float) -> float:
    """A price with tax.

    Args:
        price: The price without tax.
    """
    return round(price * 1.2, 2)
