"""Who takes up each snapshot of a replica: the agents that run on it."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from inspect import ismethod
from typing import TypeAlias

from agentkit.library.library import Library

TakeUp: TypeAlias = Callable[[Library], None]


class Followers:
    """Hands snapshots to those who follow, to each of them in ascending order.

    A method is not kept alive by being here: a follower that nobody uses any more drops out.
    """

    def __init__(self) -> None:
        self._all: list[_Follower] = []

    def add(self, take_up: TakeUp, library: Library) -> None:
        """Hand ``take_up`` a snapshot now, and the later ones when they come."""
        held = weakref.WeakMethod(take_up) if ismethod(take_up) else lambda: take_up
        follower = _Follower(held)
        self._all.append(follower)  # first: one that comes meanwhile is not missed
        follower.take_up(library)

    def take_up(self, library: Library) -> None:
        """Hand a snapshot to all that have none as new.

        Raises:
            Exception: What the first one raised that could not take it up. All were asked, and
                those that failed are asked again the next time.
        """
        failed: list[Exception] = []
        for follower in tuple(self._all):
            try:
                if not follower.take_up(library):
                    self._all.remove(follower)
            except Exception as error:  # noqa: BLE001 - raised below
                failed.append(error)
        if failed:
            raise failed[0]

    def in_fork(self) -> Followers:
        """The same for a process that was forked, with locks of its own."""
        followers = Followers()
        followers._all = [follower.in_fork() for follower in self._all]
        return followers


class _Follower:
    """One who follows.

    Args:
        take_up: Gives what is called with a snapshot; None when nobody is there any more.
        version: Of the last snapshot that was handed on.
    """

    def __init__(self, take_up: Callable[[], TakeUp | None], version: int = -1) -> None:
        self._take_up = take_up
        self._version = version
        self._lock = threading.Lock()

    def take_up(self, library: Library) -> bool:
        """Hand on a snapshot if it is newer; False when nobody is there any more."""
        take_up = self._take_up()
        if take_up is None:
            return False
        with self._lock:
            if library.version > self._version:
                take_up(library)
                self._version = library.version
        return True

    def in_fork(self) -> _Follower:
        """The same with a lock of its own."""
        return _Follower(self._take_up, self._version)
