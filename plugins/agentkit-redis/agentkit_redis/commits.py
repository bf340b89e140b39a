"""Commits: one script that compares, and writes all or nothing."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from agentkit.errors import (
    AgentKitError,
    StaleChainError,
    StaleVersionError,
    StoreUnavailableError,
    ToolNotFoundError,
)
from agentkit.library.changes import check_change
from agentkit.library.library import nearest_names
from agentkit.library.store import LibraryChange
from agentkit_redis.connection import Word
from agentkit_redis.keys import FORMAT, raw, text_of
from agentkit_redis.marker import refused
from agentkit_redis.reading import LibraryReader
from agentkit_redis.records import definition_text, version_text
from agentkit_redis.scripts import COMMIT
from agentkit_redis.snapshots import Snapshots

if TYPE_CHECKING:
    from redis import RedisError

logger = logging.getLogger(__name__)


class Commits:
    """Applies changes.

    Args:
        reader: Of the library.
        snapshots: Tell which names there are, when one is unknown.
    """

    def __init__(self, reader: LibraryReader, snapshots: Snapshots) -> None:
        self._reader = reader
        self._snapshots = snapshots
        self._hint_is_refused = False
        keys = reader.keys
        self._keys = (
            keys.head,
            keys.versions,
            keys.proposals,
            keys.definitions,
            keys.tools,
            keys.revisions,
            keys.events,
        )

    def commit(self, change: LibraryChange, *, expected_version: int) -> int:
        """See ``ToolStore.commit``."""
        check_change(change)
        connection = self._reader.connection
        wanted = connection.address.replicas
        arguments = _arguments(
            change, expected_version, channel=self._reader.keys.channel, is_waited_for=wanted > 0
        )
        reached: int | RedisError = 0
        if wanted:
            answer, reached = connection.run_and_wait(COMMIT, self._keys, arguments, wanted)
        else:
            answer = connection.run(COMMIT, self._keys, arguments)
        if answer[0] != b"made":
            raise self._refusal(change, expected_version, answer)
        if not answer[2]:
            self._say_that_nobody_hears()
        if not isinstance(reached, int) or reached < wanted:
            raise self._too_few(reached)
        return int(answer[1])

    def _refusal(self, change: LibraryChange, expected: int, answer: list[bytes]) -> AgentKitError:
        match answer[0]:
            case b"stale":
                return StaleVersionError(expected=expected, actual=int(answer[1]))
            case b"chain":
                known = change.events[0].sequence - 1
                return StaleChainError(expected=known, actual=int(answer[1]))
            case b"absent":
                name = text_of(answer[1])
                nearest = nearest_names(name, self._snapshots.load().tools)
                return ToolNotFoundError(name, nearest=nearest, version=int(answer[2]))
            case _:
                return refused(self._reader.connection, self._reader.keys, answer)

    def _say_that_nobody_hears(self) -> None:
        if not self._hint_is_refused:
            logger.warning(
                "%s: commits are taken but not told: this user may not publish to %s; watches "
                "hear nothing of them, polls see them",
                self._reader.connection.address,
                self._reader.keys.channel,
            )
        self._hint_is_refused = True

    def _too_few(self, reached: int | RedisError) -> StoreUnavailableError:
        address = self._reader.connection.address
        wanted = address.replicas
        so_far = (
            f"{reached} of {wanted} replicas have it so far"
            if isinstance(reached, int)
            else f"nobody knows whether {wanted} replicas have it: WAIT answers {reached}"
        )
        return StoreUnavailableError(
            f"{address} has the change, but {so_far}. Send the same change again: it is not "
            "applied twice, and is waited for"
        )


def _arguments(
    change: LibraryChange, expected_version: int, *, channel: str, is_waited_for: bool
) -> list[Word]:
    """What the script wants, in its order."""
    tools = [definition_text(tool) for tool in change.upserts]
    first = change.events[0] if change.events else None
    arguments: list[Word] = [
        FORMAT,
        str(expected_version),
        raw(change.proposal_id),
        version_text(change, [stored for stored, _ in tools]) if change.makes_version else "",
        channel,
        str(first.sequence - 1 if first else 0),
        first.previous if first else "",
        len(tools),
        len(change.removals),
        len(change.events),
        int(is_waited_for),
    ]
    for stored, body in tools:
        arguments += [raw(stored.name), stored.digest, raw(body), raw(stored.origin)]
    arguments += map(raw, change.removals)
    for event in change.events:
        body = json.dumps(event.to_json(), ensure_ascii=False, separators=(",", ":"))
        arguments += [event.hash, raw(body)]
    return arguments
