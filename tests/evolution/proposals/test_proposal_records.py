"""Proposals as JSON."""

from __future__ import annotations

from agentkit import ToolDefinition
from agentkit.evolution import Proposal
from agentkit.library import Author


def test_an_author_without_a_name_survives():
    """Whoever gives no name can still be read back, with the proposal."""
    tool = ToolDefinition(name="ping")
    made = Proposal.of(tool, tool, stream="person", author=Author(kind="person", name=""))
    assert Proposal.from_json(made.to_json()) == made
