"""``PinRouter``: keeps runs to what a person pinned, and does nothing else."""

from __future__ import annotations

import asyncio
import logging

from agentkit.agent.session import Route, RouteRequest
from agentkit.evolution.lifecycle.ledger import WHOLE_LIBRARY, Ledger
from agentkit.evolution.serving.overlay import Overlays
from agentkit.evolution.serving.watch import LedgerWatch
from agentkit.library.library import Library
from agentkit.library.store import EventStore

logger = logging.getLogger(__name__)


class PinRouter:
    """Makes the kill switch work where no candidate is tried; a ``Router`` for ``Agent``.

    Each run uses the version that a person pinned, of the whole library or of single tools. It
    needs an agent with a store, where the pinned version is. A ``CanaryRouter`` does the same, and
    serves candidates besides.

    Args:
        watch: Follows the ledger, or the store to follow.

    Example:
        >>> from agentkit import Agent, open_store
        >>> from agentkit.testing import ScriptedModel
        >>> store = open_store("memory:")
        >>> agent = Agent(ScriptedModel(["Hello."]), store=store, router=PinRouter(store))
        >>> agent.run_sync("Hi").text
        'Hello.'
    """

    def __init__(self, watch: LedgerWatch | EventStore) -> None:
        self.watch = watch if isinstance(watch, LedgerWatch) else LedgerWatch(watch)
        self._overlays = Overlays()

    async def route(self, asked: RouteRequest) -> Route:
        """The library of a run.

        Raises:
            StoreError: The ledger could not be read and never was, or a pinned version is gone.
        """
        return Route(library=await self.library_of(asked, await self.watch.current()))

    async def library_of(self, asked: RouteRequest, ledger: Ledger) -> Library:
        """The library of a run with what a ledger pins in its place.

        Raises:
            StoreError: A pinned version is gone.
        """
        if not ledger.pins:
            return asked.library
        whole = ledger.pinned_version()
        if whole is not None:
            return await _at(asked, whole)
        held = {
            name: (await _at(asked, version)).get(name)
            for name, version in ledger.pins.items()
            if name != WHOLE_LIBRARY and name in asked.library
        }
        definitions = [tool.definition for tool in held.values() if tool is not None]
        return self._overlays.of(asked.library, *definitions)


async def _at(asked: RouteRequest, version: int) -> Library:
    if asked.library.version == version:
        return asked.library
    library = await asyncio.to_thread(asked.at, version)
    if library.version != version:
        logger.error(
            "library version %d is pinned, but the agent has no store to load it from and goes on "
            "with version %d; make it with Agent(store=...)",
            version,
            library.version,
        )
    return library
