"""``agentkit-train retriever``: word vectors that learn what users call the tools of a store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import click

from agentkit.cli.options import AsJson, StoreUrl, command, option
from agentkit.cli.output import print_json, print_table, print_text, say
from agentkit.cli.stores import label, opened_to_read
from agentkit.errors import UsageError
from agentkit.library import Library
from agentkit.library.copying import episodes_of
from agentkit_training.retriever import (
    Request,
    RetrieverReport,
    read_catalogue,
    read_requests,
    requests_of,
    train_retriever,
    write_vectors,
)

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@command()
def retriever(
    *,
    store_url: StoreUrl,
    tools: Annotated[Path | None, option(type=_FILE)] = None,
    requests: Annotated[Path | None, option(type=_FILE)] = None,
    output: Annotated[Path, option(type=click.Path(path_type=Path, dir_okay=False), required=True)],
    as_json: AsJson,
) -> None:
    """Train the word vectors of retrieval on the requests of episodes that passed.

    A trial holds back some requests, and some tools altogether. Only when the whole retriever finds
    more of the held-back requests, and tools that learned nothing lose next to nothing, are the
    vectors trained on everything and written. No text of a request is in the file.

    Args:
        store_url: Where the library is.
        tools (FILE): JSON lines with a tool each, instead of a store's.
        requests (FILE): JSON lines with "query" and "gold" (names of tools), instead of a store's
            episodes.
        output (FILE): The file.
        as_json: Print JSON.

    Examples:
      agentkit-train retriever --output shop.vectors
      agentkit-train retriever --store shop.db --requests asked.jsonl --output shop.vectors
      agentkit-train retriever --tools tools.jsonl --requests asked.jsonl --output shop.vectors
    """
    if tools is not None and requests is None:
        raise UsageError("--tools has no episodes; give --requests FILE as well")
    library, asked, source = _read(store_url, tools, requests)
    report = train_retriever(library, asked, source=source, tell=say)
    if report.vectors is not None:
        write_vectors(report.vectors, output)
    if as_json:
        print_json(report.to_json())
    else:
        _show(report)
    if report.vectors is None:
        raise click.exceptions.Exit(1)
    say(
        f"Wrote {output} ({output.stat().st_size / 1e6:.1f} MB). Use it with "
        f'Agent(retriever=default_retriever(vectors="{output}"))'
    )


def _read(
    store_url: str, tools: Path | None, requests: Path | None
) -> tuple[Library, tuple[Request, ...], str]:
    """The tools, what was asked, and where that is from."""
    if tools is not None and requests is not None:
        library, names = read_catalogue(tools)
        return library, read_requests(requests, names), requests.name
    with opened_to_read(store_url) as store:
        library = store.load()
        if requests is not None:
            names = {name: name for name in library.tools}
            return library, read_requests(requests, names), requests.name
        return library, requests_of(episodes_of(store)), label(store_url)


def _show(report: RetrieverReport) -> None:
    """Recall before and after, and what became of it."""
    figures = report.figures
    rows = [
        (told, at, figures.get(f"{kind}.before@{at}"), figures.get(f"{kind}.after@{at}"))
        for kind, told in (
            ("held_back", "requests held back"),
            ("bystanders", "tools that learned nothing"),
        )
        for at in (5, 32)
    ]
    print_table(
        ["measured on", "recall at", "before", "after"],
        [
            (told, str(at), f"{before:.3f}", f"{after:.3f}")
            for told, at, before, after in rows
            if before is not None and after is not None
        ],
    )
    if report.why:
        print_text(f"\nNothing was written: {report.why}.")
