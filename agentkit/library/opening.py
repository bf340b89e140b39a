"""``open_store(url)``: from the name of a store to the store."""

from __future__ import annotations

import os
import re
from importlib import import_module
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from agentkit.errors import StoreError, StoreLookupError, UnknownSchemeError, UsageError
from agentkit.library.store import Store

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "agentkit.stores"
"""A plugin registers a callable here, under the scheme that it answers for; the callable takes
the whole URL and returns a ``Store``."""

_BUILT_IN = {
    "dir": "agentkit.library.directory:open_directory",
    "memory": "agentkit.library.memory:MemoryStore",
    "sqlite": "agentkit.library.sqlite.store:SQLiteStore",
}
"""Openers of our own stores by scheme, as ``module:name``; loaded on demand."""

_FILE_SUFFIXES = frozenset({".db", ".sqlite", ".sqlite3"})
_FIRST_PARTY = {
    "postgres": "agentkit-postgres",
    "postgresql": "agentkit-postgres",
    "redis": "agentkit-redis",
    "rediss": "agentkit-redis",
}


def open_store(url: str | os.PathLike[str]) -> Store:
    """Open a store for definitions and episodes.

    ==========================  =====================================================
    ``memory:``                 a new one in this process, gone with it
    ``sqlite:///library.db``    a file, relative to the working directory
    ``sqlite:////data/lib.db``  a file by its absolute path
    ``sqlite:///~/lib.db``      a file in the home directory
    ``library.db``              short for ``sqlite:///library.db``; also ``.sqlite``, ``.sqlite3``
    ``dir:tools``               a folder with one readable file a tool, made for review in git
    anything else               a plugin that registered the scheme
    ==========================  =====================================================

    Args:
        url: One of the above, or a path object, which is a SQLite file whatever its ending.

    Raises:
        UsageError: This is not the URL of a store.
        UnknownSchemeError: No installed store answers for the scheme; names the pip line.
        StoreFormatError: The file is broken or was written by a newer agentkit.
        StoreError: The store cannot be opened.

    Example:
        >>> store = open_store("memory:")
        >>> store.load()
        Library(0 tools, version=0)
        >>> store.close()
    """
    if isinstance(url, os.PathLike):
        return _open_built_in("sqlite", url)
    path = file_of(url)
    if path is not None:
        return _open_built_in("sqlite", path)
    scheme, colon, rest = url.partition(":")
    if not scheme or not colon:
        words = f"or a path that ends in {', '.join(sorted(_FILE_SUFFIXES))}"
        raise UsageError(f"{url!r} is no store's URL; write memory:, sqlite:///a.db, {words}")
    match scheme.lower():
        case "memory":
            if rest.strip("/"):
                words = "pass the store object around to share it, or use sqlite:///"
                raise UsageError(f"each memory: is a new one and has no name, got {url!r}; {words}")
            return _open_built_in("memory")
        case "sqlite":
            raise UsageError(
                f"{url!r} names no file; write sqlite:///library.db for a file here, "
                "sqlite:////data/library.db for one by its absolute path, or memory: for no file"
            )
        case ours if ours in _BUILT_IN:
            return _open_built_in(ours, url)
        case other:
            return _open_plugin(url, other)


def open_to_read(url: str) -> Store:
    """Open a store for a program that writes nothing: it is there already, and stays as it is.

    A SQLite file is opened so that not a byte of it changes; other stores are opened as usual,
    which may finish what a killed writer had started.

    Raises:
        StoreLookupError: There is no such file or folder; or as ``open_store``.

    Example:
        >>> try:
        ...     open_to_read("absent.db")
        ... except StoreError as error:
        ...     print(error)
        there is no store at absent.db
    """
    path = file_of(url)
    if path is not None and path.exists():
        return _open_built_in("sqlite", path, read_only=True)
    if path is None:
        store = open_store(url)
        folder = getattr(store, "path", None)  # of a store that lies in a folder
        if not isinstance(folder, Path) or folder.exists():
            return store
        store.close()
    raise StoreLookupError(f"there is no store at {url}")


def file_of(url: str) -> Path | None:
    """The file of a SQLite store's URL, whether it is there or not; None for any other URL.

    Example:
        >>> print(file_of("sqlite:///library.db"), file_of("library.db"), file_of("memory:"))
        library.db library.db None
    """
    if "://" not in url and PurePath(url).suffix in _FILE_SUFFIXES:
        return Path(url).expanduser()
    scheme, _, rest = url.partition(":")
    path = rest.removeprefix("///")
    if scheme.lower() != "sqlite" or path == rest or not path or path.startswith(":memory:"):
        return None
    return Path(path).expanduser()


def folder_of(url: str) -> Path | None:
    """The folder of a directory store's URL, whether it is there or not; None for any other URL.

    ``dir:library``, ``dir:/data/library``, ``dir:~/library`` and ``dir:///data/library`` are paths.

    Raises:
        UsageError: The URL names no folder.

    Example:
        >>> print(folder_of("dir:library"), folder_of("sqlite:///library.db"))
        library None
    """
    scheme, _, place = url.partition(":")
    if scheme.lower() != "dir":
        return None
    path = place.removeprefix("//")
    if not path or "?" in path:
        words = "write dir:library or dir:/data/library"
        raise UsageError(f"{url!r} is not the URL of a directory store; {words}")
    return Path(path).expanduser()


def place_of(url: str) -> Path | None:
    """The file or folder of a store that lies on this machine; None for any other store."""
    return file_of(url) or folder_of(url)


def _open_built_in(scheme: str, *place: object, **options: Any) -> Store:
    module, _, name = _BUILT_IN[scheme].partition(":")
    store: Store = getattr(import_module(module), name)(*place, **options)
    return store


def _open_plugin(url: str, scheme: str) -> Store:
    from importlib.metadata import entry_points

    plugins = {(found.name, found.value): found for found in entry_points(group=ENTRY_POINT_GROUP)}
    answering = [found for (name, _), found in plugins.items() if name == scheme]
    if not answering:
        raise UnknownSchemeError(
            _without_password(url),
            scheme=scheme,
            installed=sorted({*_BUILT_IN, *(name for name, _ in plugins)}),
            install=_advice(scheme),
        )
    if len(answering) > 1:
        claims = ", ".join(sorted(found.value for found in answering))
        raise StoreError(f"several plugins answer for {scheme!r} ({claims}); uninstall all but one")
    return _open_with(answering[0], url)


def _open_with(plugin: EntryPoint, url: str) -> Store:
    try:
        opener = plugin.load()
    except (ImportError, AttributeError) as error:
        words = f"cannot be loaded ({type(error).__name__}: {error}); install it again"
        raise StoreError(f"the plugin {plugin.value} for {plugin.name!r} {words}") from error
    store = opener(url)
    if not isinstance(store, Store):
        words = f"returned a {type(store).__name__}, which lacks some methods of a Store"
        raise StoreError(f"the plugin {plugin.value} for {plugin.name!r} {words}")
    return store


def _advice(scheme: str) -> str:
    package = _FIRST_PARTY.get(scheme)
    if package is not None:
        return f"Run: pip install {package}"
    return (
        f"Install a plugin that registers {scheme!r} under the entry point group "
        f"{ENTRY_POINT_GROUP!r}, or write one (docs/write-a-store.md)"
    )


def _without_password(url: str) -> str:
    """The URL as it may be shown, also one whose ``://`` was mistyped."""
    return re.sub(r":(?!//).*@", ":***@", url, flags=re.DOTALL)
