"""Putting definitions into the library, for ``agentkit tools add`` and ``tools import``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import click

from agentkit.cli import apis
from agentkit.cli.output import print_json, say, say_some
from agentkit.cli.stores import author, commit, new_proposal_id
from agentkit.errors import UsageError
from agentkit.evolution.validation.foreign_texts import suspicions_of_all
from agentkit.evolution.validation.report import shown
from agentkit.interop import openapi
from agentkit.library import Library, LibraryChange, Store
from agentkit.library.conflicts import ConflictPolicy, ImportPlan, plan_import
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.sources.json_records import RejectedEntry

__all__ = [
    "ConflictPolicy",
    "conflict_option",
    "import_definitions",
    "overrule_option",
    "reason_option",
    "report_import",
    "screened",
]

_ALL = " (--json names all)"

conflict_option = click.option(
    "--on-conflict",
    type=click.Choice(["error", "skip", "replace", "suffix"]),
    default="error",
    show_default=True,
    help="When a name stands for another definition: report it, keep the old one, take the new "
    "one, or add the new one as NAME__2.",
)
overrule_option = click.option(
    "--overrule",
    "overruled",
    multiple=True,
    metavar="TOOL",
    help="Import a tool although checks speak against its words, because you read them; may be "
    "given several times.",
)
reason_option = click.option("--reason", default="", help="Why, for the log.")


def screened(
    definitions: Sequence[ToolDefinition], overruled: Collection[str]
) -> tuple[list[ToolDefinition], dict[str, str]]:
    """The definitions whose words pass the checks of MCP listings, and what speaks against others.

    Args:
        definitions: Of a file that others may have written.
        overruled: Names that the person vouches for.

    Raises:
        UsageError: There is no definition of a name.
    """
    if unknown := sorted(set(overruled) - {one.name for one in definitions}):
        raise UsageError(f"the file has no tool {unknown[0]!r} to overrule")
    found = zip(definitions, suspicions_of_all(definitions), strict=True)
    against = {
        one.name: "; ".join(map(str, failed))
        for one, failed in found
        if failed and one.name not in overruled
    }
    return [one for one in definitions if one.name not in against], against


def import_definitions(
    store: Store, definitions: Sequence[ToolDefinition], on_conflict: ConflictPolicy, reason: str
) -> tuple[ImportPlan, int]:
    """Put definitions into the library in one new version.

    Returns:
        What became of each name, and the library version afterwards.
    """
    plan = ImportPlan()
    proposal_id = new_proposal_id("import")

    def build(library: Library) -> LibraryChange | None:
        nonlocal plan
        plan = plan_import(definitions, library, on_conflict=on_conflict)
        upserts = tuple(plan.upserts.values())
        if not upserts:
            return None
        return LibraryChange(
            proposal_id=proposal_id, upserts=upserts, author=author(), reason=reason
        )

    version = commit(store, build, operation="import")
    return plan, version


def report_import(
    plan: ImportPlan,
    version: int,
    rejected: Sequence[RejectedEntry] = (),
    *,
    api: openapi.OpenApiReport | None = None,
    against: Mapping[str, str] | None = None,
    as_json: bool,
) -> None:
    """Print what became of each definition.

    Raises:
        Exit: With status 1, where one could not be imported.
    """
    unusable = [{"entry": entry.index + 1, "reason": entry.reason} for entry in rejected]
    if as_json:
        told_of_api = {} if api is None else {"openapi": api.to_json()}
        record = {"library_version": version, **plan.to_json(), "unusable": unusable}
        record["suspicious"] = dict(against or {})
        print_json({**record, **told_of_api})
    else:
        counts = {
            "added": len(plan.added),
            "replaced": len(plan.replaced),
            "renamed": len(plan.renamed),
            "skipped": len(plan.skipped),
            "unchanged": plan.unchanged,
            "refused": len(plan.refused),
            "unusable": len(unusable),
            "suspicious": len(against or ()),
        }
        told = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
        click.echo(f"{told or 'nothing to import'}; library version {version}")
    taken = (f"{name!r} already stands for another definition" for name in plan.refused)
    say_some(
        (f"entry {entry['entry']} is unusable: {entry['reason']}" for entry in unusable), rest=_ALL
    )
    say_some(taken, rest=_ALL)
    told_against = (f"{shown(name)} is left out: {why}" for name, why in (against or {}).items())
    say_some(told_against, rest=_ALL)
    if against:
        say("take a tool whose words you have read with --overrule TOOL")
    if plan.refused:
        say("choose with --on-conflict which definition a name keeps, or 'suffix' for both")
    if api is not None:
        apis.tell(api)
    if unusable or plan.refused or against or (api is not None and api.unusable):
        raise click.exceptions.Exit(1)
