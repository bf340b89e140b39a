"""``agentkit tools doctor``: a check-up of a catalogue, without a model."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TextIO

import click

from agentkit.cli.doctor_report import print_kinds, print_overview, print_tools
from agentkit.cli.files import read_definitions
from agentkit.cli.loading import load_tools
from agentkit.cli.options import json_option, store_option
from agentkit.cli.output import plural, print_json, say, say_some
from agentkit.cli.progress import LineProgress
from agentkit.cli.stores import author, commit, new_proposal_id, opened_to_read
from agentkit.errors import UsageError
from agentkit.evaluation.doctor.catalogue import Catalogue
from agentkit.evaluation.doctor.checkup import Checkup, examine
from agentkit.evaluation.doctor.findings import KINDS, Proposal
from agentkit.evaluation.doctor.fixes import change_of
from agentkit.evaluation.doctor.provider_rules import DEFAULT_PROVIDERS, PROVIDERS
from agentkit.tools.definition import ToolDefinition

_SHOWN = 20
_MANY = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class _Request:
    """What to examine, and what to look for."""

    files: tuple[str, ...]
    codes: tuple[str, ...]
    tools: tuple[str, ...]
    providers: tuple[str, ...]
    store_url: str


@click.command(
    epilog="""\b
Examples:
  agentkit tools doctor
  agentkit tools doctor catalogue.jsonl.gz
  agentkit tools doctor --check confused --limit 50
  agentkit tools doctor --proposals fixes.jsonl
  agentkit tools doctor --apply"""
)
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option(
    "--check", "codes", multiple=True, metavar="CODE", help="Only this finding, each in full."
)
@click.option("--tool", "names", multiple=True, metavar="NAME", help="Only this tool, in full.")
@click.option(
    "--provider",
    "providers",
    multiple=True,
    type=click.Choice(PROVIDERS),
    help=f"Whose rules to check.  [default: {', '.join(DEFAULT_PROVIDERS)}]",
)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"Most findings of a kind, 0 for all.  [default: {_SHOWN}, all with --json]",
)
@click.option(
    "--proposals",
    "proposals_file",
    type=click.File("w", encoding="utf-8", lazy=True),
    help="Write what can be fixed mechanically to this file, one JSON object a tool.",
)
@click.option(
    "--apply",
    "is_applied",
    is_flag=True,
    help="Fix texts in the library (L2) after asking; contracts (L1) are left to you.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--exit-code", "with_exit_code", is_flag=True, help="Exit status 1 when there are errors."
)
@store_option
@json_option
def doctor(
    files: tuple[str, ...],
    codes: tuple[str, ...],
    names: tuple[str, ...],
    providers: tuple[str, ...],
    *,
    limit: int | None,
    proposals_file: TextIO | None,
    is_applied: bool,
    yes: bool,
    with_exit_code: bool,
    store_url: str,
    as_json: bool,
) -> None:
    """Look for what is wrong with a catalogue of tools, without a model.

    What it costs in tokens; texts that are missing, empty or unclean; types that are not declared;
    near duplicates; pairs that retrieval confuses, with the words that cause it; names that stand
    in each other's way; schemas that providers refuse; tools that episodes never used.

    Each FILE is examined instead of the library, and several as one catalogue: JSON or JSON lines,
    plain or .gz, as 'tools import' reads it, '-' for stdin; or FILE.py[:NAME].
    """
    _require_sense(files, is_applied=is_applied, yes=yes)
    request = _Request(
        files=files, codes=codes, tools=names, providers=providers, store_url=store_url
    )
    checkup = _examined(request)
    if as_json:
        print_json(checkup.to_json(limit=limit or None))
    elif codes:
        print_kinds(checkup, limit=_SHOWN if limit is None else limit or None)
    elif names:
        print_tools(checkup)
    else:
        print_overview(checkup)
    if proposals_file is not None:
        _write(proposals_file, checkup)
    if is_applied:
        _apply(checkup, store_url, yes=yes)
    if with_exit_code and any(finding.kind.severity == "error" for finding in checkup.findings):
        raise click.exceptions.Exit(1)


def _require_sense(files: Sequence[str], *, is_applied: bool, yes: bool) -> None:
    if is_applied and files:
        raise UsageError(
            "--apply changes the library, and FILE is examined alone; import it first, or write "
            "the fixes to a file with --proposals"
        )
    if is_applied and not yes and not _is_person_there():
        raise UsageError("--apply asks before it writes, and nobody is at the terminal; add --yes")


def _is_person_there() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _examined(request: _Request) -> Checkup:
    unknown = sorted(set(request.codes) - KINDS.keys())
    if unknown:
        close = get_close_matches(unknown[0], KINDS, n=1)
        meant = f"; did you mean {close[0]!r}?" if close else ""
        raise UsageError(
            f"there is no finding {', '.join(map(repr, unknown))}{meant} "
            f"The codes are {', '.join(KINDS)}"
        )
    if request.files:
        definitions = [one for name in request.files for one in _read(name)]
        catalogue = Catalogue.of(definitions, providers=request.providers)
    else:
        with opened_to_read(request.store_url) as store:
            catalogue = Catalogue.of(
                store.load().definitions, episodes=store.select(), providers=request.providers
            )
    number = len(catalogue.library)
    if number > _MANY:
        told = LineProgress(f"Examining {plural(number, 'tool')}")
        catalogue = replace(catalogue, progress=told)
    return examine(catalogue, codes=request.codes, tools=request.tools)


def _read(name: str) -> Iterable[ToolDefinition]:
    """The definitions of a file; what is unusable in it is said and left out."""
    if name.partition(":")[0].endswith(".py"):
        return [tool.definition for tool in load_tools([name])]
    batch = read_definitions(name)
    say_some(f"{name}: entry {one.index + 1} is unusable: {one.reason}" for one in batch.rejected)
    return batch.definitions


def _proposals(checkup: Checkup) -> list[Proposal]:
    return [*checkup.proposals("L2"), *checkup.proposals("L1")]


def _write(file: TextIO, checkup: Checkup) -> None:
    proposals = _proposals(checkup)
    lines = (json.dumps(proposal.to_json(), ensure_ascii=False) for proposal in proposals)
    file.writelines(f"{line}\n" for line in lines)
    saved = sum(proposal.saved for proposal in proposals)
    say(f"{plural(len(proposals), 'proposal')} in {file.name}, {saved:,} tokens less in all")


def _apply(checkup: Checkup, store_url: str, *, yes: bool) -> None:
    """Fix texts in the store, after a person has agreed."""
    proposals = checkup.proposals("L2")
    if not proposals:
        say("there is nothing to fix in texts")
        return
    for proposal in proposals:
        say(f"{proposal.before.name}: {proposal.reason} ({proposal.saved:,} tokens less)")
    if not yes and not click.confirm(f"Fix {plural(len(proposals), 'tool')}?", err=True):
        say("nothing was changed")
        return
    proposal_id = new_proposal_id("doctor")
    with opened_to_read(store_url) as store:
        version = commit(
            store,
            lambda library: change_of(library, proposals, proposal_id=proposal_id, author=author()),
            operation="mend",
        )
    say(f"fixed; library version {version}")
