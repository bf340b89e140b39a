"""What a person at a terminal sees; a pseudo-terminal stands in for one."""

import os
import pty
import select
import subprocess
import sys
import time

import pytest

PROGRAM = [sys.executable, "-c", "from agentkit.cli.main import main; main(prog_name='agentkit')"]


class Terminal:
    """A program on a pseudo-terminal: type into it, wait for what it shows."""

    def __init__(self, arguments, environment, folder):
        self._screen, program_side = pty.openpty()
        self.process = subprocess.Popen(
            [*PROGRAM, *arguments],
            stdin=program_side,
            stdout=program_side,
            stderr=program_side,
            env=environment,
            cwd=folder,
            start_new_session=True,
        )
        os.close(program_side)
        self.shown = ""

    def wait_for(self, text, seconds=60):
        """Read until ``text`` is on the screen."""
        deadline = time.monotonic() + seconds
        while text not in self.shown and time.monotonic() < deadline:
            if not self._read():
                break
        assert text in self.shown, self.shown

    def type(self, line):
        """Type a line; what was shown before is forgotten."""
        self.shown = ""
        os.write(self._screen, f"{line}\n".encode())

    def end(self):
        """Wait until the program ends; gives its status."""
        while self._read():
            pass
        os.close(self._screen)
        return self.process.wait(timeout=60)

    def _read(self):
        ready, _, _ = select.select([self._screen], [], [], 1)
        if not ready:
            return self.process.poll() is None
        try:
            piece = os.read(self._screen, 65536)
        except OSError:  # Linux says so when the program has closed its side
            return False
        self.shown += piece.decode()
        return bool(piece)


@pytest.fixture
def terminal(tmp_path, store_url, script, tools_file):
    """Starts a program on a terminal of its own."""
    started = []

    def start(*arguments):
        environment = {
            **os.environ,
            "PYTHONPATH": str(tmp_path / "plugins"),
            "AGENTKIT_STORE": store_url,
            "TERM": "xterm",
        }
        started.append(Terminal(arguments, environment, tmp_path))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()


def test_a_person_approves_and_refuses(terminal, script):
    """A destructive tool runs after yes, does not after no, and Ctrl-D leaves."""
    script(["wipe", {"path": "x"}], "Gone.", ["wipe", {"path": "y"}], "Kept.")
    chat = terminal("chat", "--tools", "desk.py", "--model", "script:a")
    chat.wait_for("> ")
    assert "script, 2 tools of library version 1. /tools" in chat.shown
    chat.type("wipe x")
    chat.wait_for('Run wipe(path="x")? [y/N]')
    chat.type("y")
    chat.wait_for("gives x is gone")
    chat.wait_for("Gone.")
    chat.wait_for("> ")
    chat.type("wipe y")
    chat.wait_for('Run wipe(path="y")? [y/N]')
    chat.type("n")
    chat.wait_for("denied: The user said no.")
    chat.wait_for("> ")
    chat.type("/exit")
    assert chat.end() == 0
    assert "To go on: agentkit chat --session" in chat.shown
