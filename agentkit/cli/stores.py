"""Opening the store that a command was given."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from agentkit import evolution
from agentkit.cli.options import FOLDER
from agentkit.episodes.replacing import first_link
from agentkit.errors import StoreError, StoreLookupError
from agentkit.library import Author, EpisodeStore, Library, LibraryChange, Replica, Store
from agentkit.library.directory.store import folder_of
from agentkit.library.episode_writer import EpisodeWriter, WriterSettings
from agentkit.library.event_chain import Signer
from agentkit.library.opening import file_of, open_store, open_to_read
from agentkit.library.signing import environment_signer, key_texts

if TYPE_CHECKING:
    from agentkit.library.event_chain import Operation

MOST_IN_MEMORY = 100
"""How many episodes wait in memory for a store that is away, before they go to a file."""


@contextmanager
def opened(url: str) -> Iterator[Store]:
    """The store at ``url``, closed afterwards. The folder ``.agentkit`` is made when absent."""
    path = file_of(url)
    if path is not None and path.parent.name == FOLDER:
        if (link := first_link(path.parent)) is not None:
            raise StoreError(
                f"{link} is a link, and agentkit does not write outside of {path.parent}. Nothing "
                "was changed; delete the link, or name the place that it leads to with --store"
            )
        if not path.parent.exists():
            path.parent.mkdir(mode=0o700)
            (path.parent / ".gitignore").write_text("*\n")
    store = open_store(url)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def followed(
    store: Store, refresh: float, max_staleness: float | None, *, on: bool = True
) -> Iterator[Store]:
    """The store with its newest library at hand, for a program that runs for long.

    Args:
        store: An open store.
        refresh: Seconds between two looks for a new version.
        max_staleness: Seconds after which runs are refused where nobody knows whether there is a
            newer one; None to serve the last one for any time.
        on: Whether to follow it at all; False gives the store as it is.
    """
    if not on:
        yield store
        return
    replica = Replica(
        store,
        refresh_seconds=refresh,
        max_staleness_seconds=max_staleness,
        when_stale="serve" if max_staleness is None else "refuse",
    )
    try:
        yield replica
    finally:
        replica.stop()


@contextmanager
def gathered(store: Store, folder: str | None) -> Iterator[EpisodeStore]:
    """Where a program that answers on while its store is away keeps its episodes.

    Args:
        store: An open store; it is closed with the writer.
        folder: Takes files of episodes meanwhile; None gives the store as it is.
    """
    if folder is None:
        yield store
        return
    # So few in memory, because a server that is killed loses those.
    settings = WriterSettings(max_count=MOST_IN_MEMORY, wait_seconds=1.0, close_seconds=2.0)
    with EpisodeWriter(store, spill=folder, settings=settings) as writer:
        yield writer


@contextmanager
def opened_to_read(url: str) -> Iterator[Store]:
    """The store at ``url`` for a command that writes nothing: it must exist already.

    Raises:
        StoreLookupError: The URL names a file or a folder that is not there.
    """
    if not is_there(url):
        raise StoreLookupError(
            f"there is no store at {url} yet; start in your project's folder, name another store "
            "with --store, or make one with agentkit eval, agentkit tools add or agentkit tools "
            "import FILE"
        )
    with opened(url) as store:
        yield store


@contextmanager
def opened_if_there(url: str) -> Iterator[Store | None]:
    """The store at ``url``, such as the one of 'agentkit eval'; None where there is none yet."""
    if not is_there(url):
        yield None
        return
    with opened(url) as store:
        yield store


def is_there(url: str) -> bool:
    """Whether the file or the folder of a store exists; other stores are asked when opened."""
    path = file_of(url) or folder_of(url)
    return path is None or path.exists()


@contextmanager
def opened_untouched(url: str) -> Iterator[Store]:
    """The store at ``url`` for a command that only looks: not a byte of its file changes.

    Raises:
        StoreLookupError: The URL names a file that is not there.
    """
    store = open_to_read(url)
    try:
        yield store
    finally:
        store.close()


def commit(
    store: Store,
    build: Callable[[Library], LibraryChange | None],
    *,
    operation: Operation = "edit",
) -> int:
    """Commit what ``build`` makes of the newest library, again when another writer was faster.

    The change is written by the Tool Manager, with the event that tells of it.

    Args:
        store: Where to commit.
        build: Gives the change, or None when there is nothing to change.
        operation: What kind of change it is, for the event.

    Returns:
        The library version afterwards.

    Raises:
        StaleVersionError: Other writers were faster every time.
    """
    manager = evolution.ToolManager(store, author=person(), signer=event_signer())
    return manager.edit(build, operation=operation)


def event_signer() -> Signer | None:
    """Signs events with the key of the environment; None where there is none.

    Who only reads may have a public key there, which is refused when something is to be signed.
    """
    return _EnvironmentKey() if key_texts() else None


class _EnvironmentKey:
    """The key of the environment, read when it is needed."""

    def sign(self, event_hash: str) -> str:
        """See ``Signer.sign``."""
        signer = environment_signer()
        assert signer is not None  # there was a key, and nothing takes it away
        return signer.sign(event_hash)


def person() -> Author:
    """Who is at the keyboard, for the events of the library."""
    return Author(kind="person", name=author())


def new_proposal_id(what: str) -> str:
    """An id for one change made by hand."""
    return f"{what}-{uuid.uuid4().hex}"


def author() -> str:
    """Who is at the keyboard, for the history."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container's user may have no name
        return "agentkit"
