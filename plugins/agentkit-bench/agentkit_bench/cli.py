"""``agentkit bench``."""

from __future__ import annotations

import click

from agentkit.cli.boundary import CommandGroup


@click.group(
    cls=CommandGroup,
    places={
        "retrieval": "agentkit_bench.retrieval.command:retrieval",
        "language": "agentkit_bench.language.command:language",
        "opaque": "agentkit_bench.opaque_command:opaque",
    },
    epilog="""\b
Examples:
  agentkit bench retrieval --catalogue tools.jsonl --queries queries.jsonl
  agentkit bench language --tool loan_terms
  agentkit bench opaque FOLDER --model local:smollm2-135m""",
)
def bench() -> None:
    """Measure how well tools are found, how their words changed, and what errors teach.

    How good an agent's answers are is measured by 'agentkit eval'.
    """
