"""Telling clients that the list of tools changed."""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp.server.session import ServerSession

_logger = logging.getLogger(__name__)
_MOST_SESSIONS = 1_024


class Announcer:
    """Knows who wants to hear of changes.

    Clients of 2026-07-28 and later listen to a stream that the official library serves; earlier
    ones get a notification on their connection.
    """

    def __init__(self) -> None:
        from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler

        self._bus = InMemorySubscriptionBus()
        self._sessions: OrderedDict[int, ServerSession] = OrderedDict()
        self.listen: Any = ListenHandler(self._bus)

    def add(self, session: ServerSession) -> None:
        """Remember a client that has shaken hands; of very many the oldest is forgotten."""
        self._sessions[id(session)] = session
        while len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)

    async def tools_changed(self) -> None:
        """Tell everybody. A client that is gone is forgotten."""
        from mcp.shared.subscriptions import ToolsListChanged

        await self._bus.publish(ToolsListChanged())
        for key, session in list(self._sessions.items()):
            try:
                await session.send_tool_list_changed()
            except Exception as error:  # noqa: BLE001 - whatever a closed connection raises
                _logger.info("a client is gone and hears of no more changes: %r", error)
                self._sessions.pop(key, None)
