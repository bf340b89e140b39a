"""Trying composites whose children changed untried, for ``agentkit check``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from agentkit.cli.managing import managed
from agentkit.cli.output import Column, one_line, print_table, say
from agentkit.evaluation.results.texts import shown
from agentkit.evolution.insertion.policy import InsertPolicy
from agentkit.evolution.lifecycle.revalidating import Revalidation


def revalidated(
    store_url: str, targets: Sequence[str] = (), *, run_undeclared: bool = False
) -> Revalidation:
    """Look again at the composites that wait for it, and write what each was found to be.

    They are made of a tool that changed while nobody could try them. One whose worked calls hold
    waits no more; one that breaks stays marked.

    Args:
        store_url: Where the library is.
        targets: Python code of its tools; see ``load_tools``.
        run_undeclared: Whether tools that declare no effects may run.
    """
    trying = InsertPolicy(run_undeclared=run_undeclared)
    with managed(store_url, targets, trying=trying) as manager:
        return manager.revalidate()


def print_revalidation(found: Revalidation) -> None:
    """What became of each composite, and what to do about it."""
    rows = list(_rows(found))
    if not rows:
        say("no composite waits for re-validation")
        return
    columns = [
        Column(title="composite", fit="fold"),
        Column(title="found"),
        Column(title="why", fit="fold"),
    ]
    print_table(columns, rows)
    if found.unknown:
        say("what is unknown stays marked; give the code of its tools with --tools")
    if found.broken:
        say("fix what is broken, or take back the change that broke it ('agentkit rollback')")


def _rows(found: Revalidation) -> Iterator[tuple[str, str, str]]:
    kinds: Mapping[str, Mapping[str, str]] = {
        "broken": found.broken,
        "unknown": found.unknown,
        "holds": dict.fromkeys(found.holds, "its worked calls hold"),
    }
    for kind, composites in kinds.items():
        for name, why in composites.items():
            yield shown(name), kind, one_line(shown(why, 300))
