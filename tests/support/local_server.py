"""``LocalServer``: a real server program of this machine, for tests, on a port of its own."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from agentkit.errors import AgentKitError

_LOG_TAIL = 2000
"""Characters of a server's log that an error shows."""


class ServerError(AgentKitError):
    """A server program is absent, or did not do what a test needs of it."""


class LocalServer(ABC):
    """Starts a server program, and ends, kills, pauses and starts it again as a test says.

    Its data lies in a temporary folder that goes with it. It listens on the loopback address, on a
    port that was free; that port stays when it is started again. A server that refuses to run as
    root runs as ``user`` then.

    Args:
        user: Whose name it takes on when this process is root's; None for no change.
        start_seconds: How long it may take until it answers.
    """

    def __init__(self, *, user: str | None = None, start_seconds: float = 30.0) -> None:
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="agentkit-server-"))
        self._user = user if user is not None and os.geteuid() == 0 else None
        self._start_seconds = start_seconds
        self._process: subprocess.Popen[bytes] | None = None
        if self._user is not None:
            found = pwd.getpwnam(self._user)
            os.chown(self.folder, found.pw_uid, found.pw_gid)

    @abstractmethod
    def command(self) -> Sequence[str]:
        """The program with its arguments; it must stay in the foreground."""

    @abstractmethod
    def answers(self) -> bool:
        """Whether the server takes requests now."""

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self._clear_away()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.stop()
        finally:
            self._clear_away()

    @property
    def is_running(self) -> bool:
        """Whether the program was started and did not end."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the program and wait until it answers.

        Raises:
            ServerError: It ended, or does not answer in time; with the end of its log.
        """
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command(), stdout=log, stderr=log, cwd=self.folder, user=self._user
            )
        deadline = time.monotonic() + self._start_seconds
        while not self.answers():
            if not self.is_running or time.monotonic() > deadline:
                raise ServerError(f"{self.command()[0]} does not answer:\n{self.log_tail}")
            time.sleep(0.02)

    def stop(self, signal_number: int = signal.SIGINT, *, seconds: float = 30.0) -> None:
        """Let the program end in good order. One that is not running is left alone.

        Raises:
            ServerError: It did not end in time; it is killed then.
        """
        if self._process is None or not self.is_running:
            return
        self.resume()
        self._process.send_signal(signal_number)
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired as error:
            self.kill()
            raise ServerError(f"{self.command()[0]} did not end in {seconds:g} s") from error

    def kill(self) -> None:
        """End the program at once (SIGKILL), as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def pause(self) -> None:
        """Let the program do nothing (SIGSTOP): connections stay and nobody answers."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on after a pause."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    def _clear_away(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def log_tail(self) -> str:
        """The end of what the program wrote."""
        text = self._log.read_text(encoding="utf-8", errors="replace") if self._log.exists() else ""
        return text[-_LOG_TAIL:]

    @property
    def _log(self) -> Path:
        return self.folder / "server.log"


def free_port() -> int:
    """A port of the loopback address that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def find_program(name: str, *, folders: Sequence[str] = ()) -> str | None:
    """The path of a program: on ``PATH``, or in one of ``folders`` (``*`` for any part of them).

    Where several folders have it, the one with the highest version in its name counts.
    """
    found = shutil.which(name)
    if found is not None:
        return found
    for pattern in folders:
        places = list(Path("/").glob(f"{pattern.lstrip('/')}/{name}"))
        if places:
            return str(max(places, key=_by_version))
    return None


def _by_version(path: Path) -> list[tuple[str, int]]:
    """Numbers in a path count as numbers: 10 is newer than 9."""
    return [(text, int(part or 0)) for text, part in re.findall(r"(\D+)(\d*)", str(path))]
