"""What ``agentkit serve --definitions`` runs: the library of a store, to read over HTTP."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from agentkit.cli.output import plural, say
from agentkit.cli.stores import opened_to_read
from agentkit.library import Store
from agentkit.server.keys import Keys
from agentkit.server.library.app import create_library_app
from agentkit.server.limits import ServerLimits
from agentkit.server.running import is_loopback, serve as serve_app


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a server listens, and to whom.

    Attributes:
        host: The address.
        port: The port; 0 takes a free one.
        insecure: Listen where other machines reach it although there are no keys.
        hosts: Host names to answer to; empty for the usual ones.
    """

    host: str
    port: int
    insecure: bool
    hosts: tuple[str, ...]


def serve_library(
    store: str, place: Place, *, keys: Keys | None, limits: ServerLimits, open_metrics: bool
) -> None:
    """Serve the library of a store, read-only, until SIGTERM or Ctrl-C.

    Args:
        store: The store's URL; it must exist.
        place: Where to listen.
        keys: Who may read; None lets everybody in.
        limits: What is taken on.
        open_metrics: Whether ``/metrics`` needs no key.

    Raises:
        MissingExtraError: Starlette or uvicorn is not installed.
        UsageError: Other machines would reach a server without keys.
    """
    with opened_to_read(store) as opened:
        app = create_library_app(
            opened,
            keys=keys,
            limits=limits,
            open_metrics=open_metrics,
            allowed_hosts=place.hosts or (("*",) if place.insecure else None),
        )
        serve_app(
            app,
            host=place.host,
            port=place.port,
            insecure=place.insecure,
            on_start=lambda url: _greet(opened, keys, url),
            on_stop=_part,
        )
    say("Stopped.")


def _greet(store: Store, keys: Keys | None, url: str) -> None:
    """Say where the server listens, and how to read from it."""
    library = store.load()
    say(f"Library version {library.version}, {plural(len(library), 'tool')}, at {url}/library/v1")
    key = "" if keys is None else "AGENTKIT_LIBRARY_KEY=... "
    if keys is not None:
        say(f"Keys: {', '.join(keys.names)}")
    elif not is_loopback(url.partition("//")[2].rpartition(":")[0].strip("[]")):
        say("Anybody who reaches this address can read the library.")
    say(f"Try: {key}agentkit tools list --store {url}")
    say(f"Ctrl-C stops it. Process {os.getpid()}.")


def _part() -> None:
    if sys.stderr.isatty():
        say("")  # ends the line in which the terminal shows ^C
