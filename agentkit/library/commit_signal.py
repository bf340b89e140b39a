"""``CommitSignal``: tells the watches of a store that lives in this process of each commit."""

from __future__ import annotations

import threading

from agentkit.errors import StoreError


class CommitSignal:
    """A store tells it of each commit, and every watch on it hears that.

    Args:
        store: What the store is called, for messages.

    Example:
        >>> signal = CommitSignal("this store")
        >>> watch = signal.watch()
        >>> signal.tell()
        >>> watch.wait(10), watch.wait(0)
        (True, False)
    """

    def __init__(self, store: str) -> None:
        self.store = store
        self.condition = threading.Condition()
        self.commits = 0
        self.ended = False

    def tell(self) -> None:
        """Something was committed."""
        with self.condition:
            self.commits += 1
            self.condition.notify_all()

    def end(self) -> None:
        """The store is closed; nothing more will be heard."""
        with self.condition:
            self.ended = True
            self.condition.notify_all()

    def watch(self) -> SignalWatch:
        """Begin to listen; see ``Watchable.watch``."""
        return SignalWatch(self)


class SignalWatch:
    """A ``Watch`` of a ``CommitSignal``. Any thread may close it, which ends a wait."""

    def __init__(self, signal: CommitSignal) -> None:
        self._signal = signal
        self._heard = signal.commits
        self._closed = False

    def wait(self, timeout_seconds: float) -> bool:
        """Wait for a commit; see ``Watch.wait``."""
        signal = self._signal
        with signal.condition:
            signal.condition.wait_for(self._is_over, timeout_seconds)
            if signal.ended or self._closed:
                raise StoreError(f"{signal.store} is closed, or this watch on it is")
            news = signal.commits != self._heard
            self._heard = signal.commits
            return news

    def close(self) -> None:
        """Hear nothing more. A second call does nothing."""
        with self._signal.condition:
            self._closed = True
            self._signal.condition.notify_all()

    def _is_over(self) -> bool:
        return self._signal.ended or self._closed or self._signal.commits != self._heard
