"""What a commit is worth that the server has acknowledged: read from its settings at open."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from agentkit.errors import StoreError, StoreUnavailableError
from agentkit_redis.connection import RedisConnection

logger = logging.getLogger(__name__)

Level: TypeAlias = Literal["always", "everysec", "os", "snapshots", "none", "unknown"]

_LINE = "CONFIG SET appendonly yes, CONFIG SET appendfsync everysec, then CONFIG REWRITE"

_WORTH: Mapping[Level, str] = {
    "always": "an acknowledged commit is on the disk of the server",
    "everysec": (
        "a power cut or a crash of the server's machine may take the commits of the last second or "
        "two; so may the end of its program alone, while the disk is slow"
    ),
    "os": (
        "a power cut or a crash of the server's machine may take the commits of the last half "
        f"minute or more. Set: {_LINE}"
    ),
    "snapshots": (
        "any crash of the server takes all commits since its last snapshot, which is made from "
        f"time to time. Set: {_LINE}"
    ),
    "none": f"the server keeps nothing: its end takes the whole library. Set: {_LINE}",
    "unknown": (
        "the server does not say how it keeps its data (CONFIG is forbidden, as on many managed "
        "services): ask whoever runs it for an append-only file with everysec or always"
    ),
}

_ENOUGH: Mapping[str, tuple[Level, ...]] = {
    "none": ("always", "everysec", "os", "snapshots", "none", "unknown"),
    "everysec": ("always", "everysec"),
    "always": ("always",),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Durability:
    """How a server keeps its data. Settings can be changed later; this is how they were.

    Attributes:
        level: ``always`` and ``everysec``: the append-only file with that ``appendfsync``; ``os``:
            with ``no``; ``snapshots``: RDB files alone; ``none``; ``unknown``.
        meaning: What an acknowledged commit is worth, and what to set where it is little.
    """

    level: Level
    meaning: str


def look_at(connection: RedisConnection) -> Durability:
    """How the server keeps its data now, and that it drops none by itself.

    Raises:
        StoreError: It may evict keys of the library, or does less than the URL requires.
    """
    settings = _settings(connection)
    _check_eviction(connection, settings)
    level = _level(settings)
    durability = Durability(level=level, meaning=_WORTH[level])
    required = connection.address.require
    if level not in _ENOUGH[required]:
        raise StoreError(
            f"{connection.address} keeps its data as {level!r}, the URL says require={required}: "
            f"{durability.meaning}"
        )
    if level in {"always", "everysec"}:
        logger.info("%s: %s", connection.address, durability.meaning)
    else:
        logger.warning("%s: %s", connection.address, durability.meaning)
    return durability


def _settings(connection: RedisConnection) -> dict[str, str]:
    """What CONFIG tells, and INFO where CONFIG is forbidden."""
    connection.ask("PING")  # a server that lets nobody in is another matter
    told: dict[str, str] = {}
    settings = ("appendonly", "appendfsync", "save", "maxmemory", "maxmemory-policy")
    for question in (("INFO", "memory"), *(("CONFIG GET", name) for name in settings)):
        try:
            found = connection.ask(*question)
        except StoreUnavailableError:
            raise
        except StoreError as error:
            logger.info("%s does not tell %s: %s", connection.address, " ".join(question), error)
        else:
            told |= {_text(key): _text(value) for key, value in found.items()}
    return told


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _level(settings: Mapping[str, str]) -> Level:
    if settings.get("appendonly") == "yes":
        match settings.get("appendfsync"):
            case "always":
                return "always"
            case "everysec":
                return "everysec"
            case "no":
                return "os"
    if settings.get("appendonly") == "no":
        return "snapshots" if settings.get("save") else "none"
    return "unknown"


def _check_eviction(connection: RedisConnection, settings: Mapping[str, str]) -> None:
    policy = settings.get("maxmemory-policy", settings.get("maxmemory_policy", ""))
    if not policy.startswith("allkeys-"):
        return  # keys that never expire, as all of ours, stay under the other policies
    words = (
        f"{connection.address} may drop any key when its memory is full (maxmemory-policy "
        f"{policy}), a whole library at once. Set: CONFIG SET maxmemory-policy noeviction, then "
        "CONFIG REWRITE"
    )
    if settings.get("maxmemory", "0") != "0":
        raise StoreError(words)
    logger.warning("%s. Until somebody sets maxmemory, it drops nothing", words)
