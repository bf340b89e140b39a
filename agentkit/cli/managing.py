"""The Tool Manager of the store that a command was given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from agentkit import evolution
from agentkit.cli.loading import load_tools
from agentkit.cli.project import current_project
from agentkit.cli.stores import event_signer, opened_to_read
from agentkit.evolution.compare import EpisodeGates
from agentkit.evolution.decide import LifecyclePolicy
from agentkit.evolution.insert_outcomes import InsertPolicy
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.validation.semantic_judge import ModelSemanticJudge
from agentkit.library import Author, Store
from agentkit.models.resolve import resolve_model
from agentkit.tools.tool import Tool

targets_option = click.option(
    "--tools",
    "targets",
    multiple=True,
    metavar="MODULE:NAME|FILE.py[:NAME]",
    help="Python code of pure tools, to try composites that are made of a changed tool.",
)


@contextmanager
def managed(
    store_url: str,
    targets: Sequence[str] = (),
    *,
    lifecycle: LifecyclePolicy | None = None,
    trying: InsertPolicy = InsertPolicy(),  # noqa: B008 - frozen
    judge: str = "",
) -> Iterator[ToolManager]:
    """The manager of a store that exists already; the store is closed afterwards.

    Args:
        store_url: Where the library is.
        targets: Python code of tools; see ``load_tools``.
        lifecycle: What proposals have to go through; None for what the project says.
        trying: Which tools may run when composites are tried.
        judge: A model that reads changes that need a judge; empty for none.

    Raises:
        StoreError: There is no store yet.
        UsageError: A target can not be imported, or there is no such model.
    """
    with opened_to_read(store_url) as store:
        code = load_tools(targets)
        yield manager_of(store, code, lifecycle=lifecycle, trying=trying, judge=judge)


def manager_of(
    store: Store,
    tools: Sequence[Tool] = (),
    *,
    lifecycle: LifecyclePolicy | None = None,
    trying: InsertPolicy = InsertPolicy(),  # noqa: B008 - frozen
    judge: str = "",
) -> ToolManager:
    """The manager of an open store; see ``managed``."""
    asked = ModelSemanticJudge(resolve_model(judge)) if judge else None
    return evolution.ToolManager(
        store,
        tools=tools,
        policy=trying,
        author=Author(kind="program", name="agentkit"),
        lifecycle=lifecycle or current_project().policy,
        change_judge=asked,
        gates=EpisodeGates(episodes=store, rules=current_project().rules),
        signer=event_signer(),
    )
