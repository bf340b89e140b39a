"""A tool of a help desk. It refuses what its docstring does not say, as many a backend does."""

from agentkit import ModelRetry, tool

OUTCOMES = ("resolved", "duplicate", "cancelled")


@tool(effects=("writes",))
def close_ticket(ticket: int, outcome: str) -> str:
    """Close a ticket.

    Args:
        ticket: Number of the ticket.
        outcome: How it ended.
    """
    if outcome not in OUTCOMES:
        raise ModelRetry(f"outcome must be one of {', '.join(OUTCOMES)}, got {outcome}")
    return f"Ticket {ticket} is closed: {outcome}."
