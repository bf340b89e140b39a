"""``agentkit search``: how tools rank for a request, and why."""

from __future__ import annotations

from typing import Any

import click

from agentkit._waiting import wait_for
from agentkit.cli.options import StoreUrl, command
from agentkit.cli.output import (
    Column,
    Output,
    cut,
    fold,
    one_line,
    print_table,
    print_text,
    right,
    say,
)
from agentkit.cli.stores import opened_to_read, retriever_of
from agentkit.library import Library
from agentkit.retrieval.cascade import default_retriever
from agentkit.retrieval.retriever import Retrieval
from agentkit.retrieval.words import terms
from agentkit.tools.error_messages import plural

_SHOWN_AS = {"shortlist": "shortlist, as cards", "offer": "offer, as schemas"}
"""Reports about what the model gets: their tokens are really spent, cards first."""


@command()
def search(
    query: str,
    *,
    limit: int = 10,
    explain: bool = False,
    store_url: StoreUrl,
) -> Output:
    """Rank the library's tools for QUERY, as an agent would.

    Tools marked with * would be offered to the model in full; the others of the shortlist would
    appear as one-line cards at most.

    Args:
        limit: Most rows.
        explain: Show what each stage left and cost, and where the score of each tool comes from.

    Examples:
      agentkit search "area of a triangle"
      agentkit search "book a flight" --limit 3 --json
      agentkit search "book a flight" --explain
    """
    with opened_to_read(store_url) as store:
        library = store.load()  # while it is open it also gives, and keeps, the search index
        retriever = retriever_of(store) or default_retriever()
        found = wait_for(retriever.retrieve(query, library))
    return Output(
        record=_record(found, library, limit, explain=explain),
        view=lambda: _print(found, library, limit, explain=explain),
    )


def _print(found: Retrieval, library: Library, limit: int, *, explain: bool) -> None:
    if explain:
        _print_stages(found)
    if not found.hits:
        say(_why_nothing(found, library))
        return
    offered = {definition.name for definition in found.offered}
    columns: list[Column | str] = [right("#"), "", fold("tool"), right("score")]
    columns += [fold("of which"), fold("why")] if explain else [cut("summary")]
    rows = []
    for rank, hit in enumerate(found.hits[:limit], start=1):
        name = hit.definition.name
        shares = (f"{field.replace('_', ' ')} {score:+.3f}" for field, score in hit.fields.items())
        summary = one_line(hit.definition.description.summary)
        more = (", ".join(shares), hit.reason) if explain else (summary,)
        rows.append((rank, "*" if name in offered else "", name, f"{hit.score:.3f}", *more))
    print_table(columns, rows)
    say(
        f"{len(found.hits)} of {len(library):,} tools in the shortlist, {len(found.offered)} "
        f"offered in full (*), about {found.tokens:,} prompt tokens; "
        f"library version {library.version}"
    )


def _print_stages(found: Retrieval) -> None:
    """What each stage kept and cost, and further notes."""
    rows = [
        (
            _SHOWN_AS.get(one.stage, one.stage.replace("_", " ")),
            f"{one.survivors:,}",
            f"{one.tokens:,}" if one.tokens else "",
            f"{one.cpu_seconds * 1e3:.2f}" if one.cpu_seconds else "",
        )
        for one in found.stages
    ]
    print_table(["stage", *map(right, ("tools left", "tokens", "CPU ms"))], rows)
    notes = ["CPU times are those of a first query, loading included; later ones take less."]
    notes += [f"No tool has: {', '.join(found.unmatched)}"] if found.unmatched else []
    click.echo()
    for note in (*notes, *found.notes):
        print_text(note)
    click.echo()


def _why_nothing(found: Retrieval, library: Library) -> str:
    if not library:
        return "The library is empty; fill it with 'agentkit tools import FILE' or 'tools add'."
    why = f"No tool has: {', '.join(found.unmatched)}" if found.unmatched else ""
    if not terms(found.query):
        why = "The query has no words to search for."
    tools = plural(len(library), "tool")
    return f"Nothing in library version {library.version} ({tools}) matches. {why}".rstrip()


def _record(found: Retrieval, library: Library, limit: int, *, explain: bool) -> dict[str, Any]:
    record: dict[str, Any] = {
        "query": found.query,
        "library_version": library.version,
        "tokens": found.tokens,
        "offered": [definition.name for definition in found.offered],
        "hits": [
            {
                "name": hit.definition.name,
                "score": hit.score,
                "reason": hit.reason,
                "summary": hit.definition.description.summary,
                **({"fields": dict(hit.fields)} if explain else {}),
            }
            for hit in found.hits[:limit]
        ],
    }
    if explain:
        record["stages"] = [
            {
                "stage": one.stage,
                "survivors": one.survivors,
                "tokens": one.tokens,
                "cpu_ms": round(one.cpu_seconds * 1e3, 3),
            }
            for one in found.stages
        ]
        record |= {"notes": list(found.notes), "unmatched": list(found.unmatched)}
    return record
