"""Keeping what was worked out about a library for as long as that library lives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from agentkit.library.library import Library

T = TypeVar("T")


class PerLibrary(Generic[T]):
    """A value for each library snapshot, built when it is first asked for.

    Snapshots are told apart by identity: they never change, so what was built stays true. Several
    may be in use at once, as a conversation keeps its version until it ends; each value goes
    when its snapshot does. Two threads that ask at the same moment may both build.

    Args:
        build: Works the value out. It must not keep the library itself, or neither is ever freed.
    """

    def __init__(self, build: Callable[[Library], T]) -> None:
        self._build = build
        self._values: WeakKeyDictionary[Library, T] = WeakKeyDictionary()

    def __call__(self, library: Library) -> T:
        """The value for ``library``."""
        value = self._values.get(library)
        if value is None:
            value = self._values[library] = self._build(library)
        return value
