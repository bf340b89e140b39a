"""``agentkit bench``."""

from __future__ import annotations

import click

from agentkit.cli.boundary import CommandGroup


@click.group(
    cls=CommandGroup,
    places={
        "retrieval": "agentkit_bench.retrieval.command:retrieval",
        "language": "agentkit_bench.language.command:language",
    },
    epilog="""\b
Examples:
  agentkit bench retrieval --catalogue tools.jsonl --queries queries.jsonl
  agentkit bench language --tool loan_terms""",
)
def bench() -> None:
    """Measure how well tools are found, and how their words changed.

    How good an agent's answers are is measured by 'agentkit eval'.
    """
