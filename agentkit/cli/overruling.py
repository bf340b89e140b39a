"""``agentkit proposals overrule``: a person says that checks were wrong about words."""

from __future__ import annotations

from collections.abc import Sequence

import click

from agentkit.cli.managing import managed
from agentkit.cli.options import json_option, store_option
from agentkit.cli.proposal_view import print_decided
from agentkit.cli.stores import person
from agentkit.evolution.validation.overruling import OVERRULABLE, OVERRULABLE_OF_ARRIVALS


@click.command(
    short_help="Say that checks are wrong about a rejected proposal.",
    epilog="""\b
Example:
  agentkit proposals overrule anna-1 --code false_claim \\
    --reason 'the guarantee is what the dealer sells, not a promise of ours'""",
)
@click.argument("proposal_id", metavar="PROPOSAL")
@click.option(
    "--code",
    "codes",
    multiple=True,
    required=True,
    type=click.Choice(sorted(OVERRULABLE | OVERRULABLE_OF_ARRIVALS)),
    metavar="CODE",
    help="A code for which it is rejected, as 'proposals show' gives them; name them all.",
)
@click.option("--reason", required=True, help="Why the check is wrong, for the chain of events.")
@store_option
@json_option
def overrule(
    proposal_id: str, codes: Sequence[str], reason: str, store_url: str, as_json: bool
) -> None:
    """Say that the checks are wrong about the words of the rejected PROPOSAL.

    It goes on as if they had passed. You do not approve it by that: whoever must agree is asked,
    and the gates decide. Only codes that judge wording can be overruled, and of an imported tool
    those of the checks of imports.
    """
    with managed(store_url) as manager:
        record = manager.overrule(proposal_id, codes=codes, person=person(), reason=reason)
        stands = manager.standing(record.proposal_id)
    print_decided(record, stands, as_json=as_json)
