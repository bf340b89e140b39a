"""``agentkit search``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from agentkit._waiting import wait_for
from agentkit.cli.options import json_option, store_option
from agentkit.cli.output import Column, one_line, plural, print_json, print_table, say
from agentkit.cli.search_explain import explanation, hit_explanation, print_explanation
from agentkit.cli.stores import opened_to_read
from agentkit.library import Library
from agentkit.retrieval.cascade import default_retriever
from agentkit.retrieval.retriever import Retrieval
from agentkit.retrieval.words import terms


@click.command(
    epilog="""\b
Examples:
  agentkit search "area of a triangle"
  agentkit search "book a flight" --limit 3 --json
  agentkit search "book a flight" --explain"""
)
@click.argument("query")
@click.option(
    "--limit",
    default=10,
    show_default=True,
    type=click.IntRange(min=1),
    metavar="N",
    help="Most rows.",
)
@click.option(
    "--explain",
    is_flag=True,
    help="Show what each stage left and cost, and where the score of each tool comes from.",
)
@store_option
@json_option
def search(query: str, *, limit: int, explain: bool, store_url: str, as_json: bool) -> None:
    """Rank the library's tools for QUERY, as an agent would.

    Tools marked with * would be offered to the model in full; the others of the shortlist would
    appear as one-line cards at most.
    """
    with opened_to_read(store_url) as store:
        library = store.load()  # while it is open it also gives, and keeps, the search index
        found = wait_for(default_retriever().retrieve(query, library))
    if as_json:
        print_json(_as_json(found, library, limit, explain=explain))
        return
    if explain:
        print_explanation(found, library, limit)
    if not found.hits:
        for line in _why_nothing(found, library, explain=explain):
            say(line)
        return
    if not explain:
        _print(found, limit)
    say(_outline(found, library))


def _why_nothing(found: Retrieval, library: Library, *, explain: bool) -> Iterator[str]:
    """What to do about an empty answer, unless an explanation has said it already."""
    if not library:
        yield "The library is empty; 'agentkit tools import FILE' or 'agentkit tools add' fills it."
        return
    yield (
        f"Nothing in library version {library.version} ({plural(len(library), 'tool')}) matches."
    )
    if explain:
        return
    if found.unmatched:
        yield f"No tool has: {', '.join(found.unmatched)}"
    elif not terms(found.query):
        yield "The query has no words to search for."
    yield from (f"Note: {note}" for note in found.notes)


def _print(found: Retrieval, limit: int) -> None:
    offered = {definition.name for definition in found.offered}
    columns = [
        Column(title="#", align="right"),
        Column(title="", fit="keep"),
        Column(title="tool", fit="fold"),
        Column(title="score", align="right"),
        Column(title="summary", fit="cut"),
    ]
    print_table(
        columns,
        (
            (
                rank,
                "*" if hit.definition.name in offered else "",
                hit.definition.name,
                f"{hit.score:.3f}",
                one_line(hit.definition.description.summary),
            )
            for rank, hit in enumerate(found.hits[:limit], start=1)
        ),
    )


def _outline(found: Retrieval, library: Library) -> str:
    return (
        f"{len(found.hits)} of {len(library):,} tools in the shortlist, {len(found.offered)} "
        f"offered in full (*), about {found.tokens:,} prompt tokens; "
        f"library version {library.version}"
    )


def _as_json(found: Retrieval, library: Library, limit: int, *, explain: bool) -> dict[str, Any]:
    offered = [definition.name for definition in found.offered]
    return {
        "query": found.query,
        "library_version": library.version,
        "tokens": found.tokens,
        "offered": offered,
        "hits": [
            {
                "name": hit.definition.name,
                "score": hit.score,
                "reason": hit.reason,
                "summary": hit.definition.description.summary,
            }
            | (hit_explanation(hit, found, library) if explain else {})
            for hit in found.hits[:limit]
        ],
    } | (explanation(found) if explain else {})
