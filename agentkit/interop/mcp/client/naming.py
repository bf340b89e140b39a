"""Names of tools that come from several servers."""

from __future__ import annotations

import re

from agentkit.errors import UsageError

SEPARATOR = "__"
_SERVER = re.compile(r"[A-Za-z0-9]+(?:[_.-][A-Za-z0-9]+)*")


def checked_server_name(name: str) -> str:
    """The name, if it can stand before those of tools.

    Raises:
        UsageError: It can not: then two tools of two servers could get one name.

    Example:
        >>> checked_server_name("git-hub_2")
        'git-hub_2'
    """
    if not _SERVER.fullmatch(name):
        raise UsageError(
            f"{name!r} can not be the name of a server; use letters and digits, with single '_', "
            "'-' or '.' between them, because it stands before its tools' names: name__tool"
        )
    return name


def prefixed(server: str, tool: str) -> str:
    """The name of a server's tool among those of other servers.

    Two different pairs never give one name: a server's name has no two underscores in a row and
    ends with none, so the first two that stand together end it.

    Example:
        >>> prefixed("files", "read")
        'files__read'
    """
    return f"{checked_server_name(server)}{SEPARATOR}{tool}"


def parted(name: str) -> tuple[str, str] | None:
    """The inverse of ``prefixed``; None for a name without a server.

    Example:
        >>> parted("files___read"), parted("read")
        (('files', '_read'), None)
    """
    server, separator, tool = name.partition(SEPARATOR)
    return (server, tool) if separator and _SERVER.fullmatch(server) else None
